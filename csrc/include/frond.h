/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frond.h - the ABI of libfrond.so: the only header that crosses between the C engine and its callers.
 *
 * The library exports one symbol, frond_abi_get(). It returns a table that starts with its version and its size;
 * callers check both before they touch anything else.
 *
 * Rules that hold for every function:
 *  - 0 (FROND_OK) is success, everything else is an enum frond_code. On failure nothing has changed.
 *  - "Does not fit" is an answer, not an error: it arrives in frond_plan.outcome with a sentence.
 *  - Records are fixed-width and pointer-free; reserved fields are zero. Strings are spans of the text buffer that
 *    goes with the call. Arrays are pointer + count.
 *  - A text output is (char *text, uint32_t cap, uint32_t *len). *len is the text's length, without a final NUL; when
 *    the buffer is too small the call returns FROND_SMALL, *len is the capacity to call again with, and the buffer
 *    holds nothing useful. An error's sentence is cut at cap instead, because the error is what matters.
 *  - The engine has no lock, clock, thread, file or global: the caller serialises calls and passes time in.
 *  - Memory belongs to the caller: ask size(), allocate, create(); free it when done. There is no destroy.
 */
#ifndef FROND_H
#define FROND_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FROND_ABI_VERSION 6u

/* Named limits. Over a limit is a refusal, never a truncation. */
#define FROND_GPUS_MAX      16u               /* GPUs in one node */
#define FROND_NODES_MAX     131072u           /* nodes in one engine */
#define FROND_PODS_MAX      1048575u          /* pods that hold something in one engine */
#define FROND_MEMBERS_MAX   16384u            /* members of one gang */
#define FROND_HOLDS_MAX     32768u            /* holds in one engine */
#define FROND_RANK_MAX      1000000u          /* of a member */
#define FROND_POD_GPUS_MAX  32768u            /* that a pod holds by count */
#define FROND_BY_COUNT_MAX  16777215u         /* that pods of one node hold by count */
#define FROND_UPLINK_MAX    1000000u          /* gigabit/s of a node */
#define FROND_MODELS        64u               /* different GPU models in one engine; further ones count as one */
#define FROND_LEAF_NODES    65535u            /* nodes in one leaf */
#define FROND_TOPOLOGIES    256u              /* different link tables of nodes in one engine */
#define FROND_CANDIDATES    4096u             /* equal placements that are compared further (reference 3.4) */
#define FROND_NAME_MAX      253u              /* bytes in the name of a node or domain, as in Kubernetes */
#define FROND_VALUE_MAX     4096u             /* bytes in an annotation value that we read */
#define FROND_TEXT_MAX      512u              /* bytes that hold any sentence of ours */
#define FROND_RESOURCES_MAX 8u                /* names of GPU resources in args */
#define FROND_KINDS_MAX     64u               /* kinds of pods that order() expects */
#define FROND_NONE          UINT32_MAX        /* no node, no domain */
#define FROND_DEADLINE_MAX  ((1ll << 42) - 1) /* ms; since 1970 that is the year 2109 */

/* One list gives codes and texts. */
#define FROND_CODES(X)                                                                                                 \
	X(FROND_OK, 0, "done")                                                                                         \
	X(FROND_BAD, 1, "bad input")                                                                                   \
	X(FROND_LIMIT, 2, "over a limit")                                                                              \
	X(FROND_UNKNOWN, 3, "not known")                                                                               \
	X(FROND_STALE, 4, "the plan is stale")                                                                         \
	X(FROND_SMALL, 5, "output buffer too small")                                                                   \
	X(FROND_BROKEN, 6, "an invariant does not hold")

enum frond_code {
#define X(name, number, text) name = number,
	FROND_CODES(X)
#undef X
};

/* ---- records ------------------------------------------------------------------------------------------------ */

struct frond_key { /* a pod's UID, or a gang's identity: 128 bits that the caller derives, never zero */
	uint64_t hi;
	uint64_t lo;
};

struct frond_span { /* bytes [off, off + len) of the call's text buffer */
	uint32_t off;
	uint32_t len;
};

struct frond_pair { /* a label or an annotation */
	struct frond_span key;
	struct frond_span value;
};

/* With `nodes` nodes there may be nodes / 8 + 4,096 leaves, nodes / 32 + 1,024 spines, and names for them and for
 * nodes / 16 + 4,096 cores and NVLink domains. Nodes of further ones are scheduled without topology, and problems() says
 * so. Nodes of a fabric file may have 512 different uplinks. */
struct frond_limits {
	uint32_t nodes;       /* slots 0 … nodes - 1 */
	uint32_t pods;        /* pods that hold GPUs or reservations at one time */
	uint32_t text_bytes;  /* names of nodes and domains, 2 bytes beside each; 0: 32 bytes a node and 64 KiB */
	uint32_t table_bytes; /* for GPU-set tables; 0: room for one kind of 16-GPU node and 127 kinds of 8-GPU nodes */
	uint32_t holds;       /* at one time; 0: none */
};

/* What the host needs to know of the args; the rest stays in the engine. Spans are of the text that args() fills. */
struct frond_args {
	uint32_t permit_wait_s;
	uint32_t resource_count;
	struct frond_span fabric_file; /* path that the host reads and gives to create(); len 0: none */
	struct frond_span resources[FROND_RESOURCES_MAX];
	uint32_t unavailable_after_ms; /* for FROND_NODE_UNAVAILABLE, unavailable_mask and frond_room.unavailable */
	uint32_t reserved;
};

enum frond_node_flag {
	FROND_NODE_CORDONED = 1, /* takes nothing new today; still capacity, but for UNAVAILABLE */
	FROND_NODE_DOWN = 2,     /* not ready today; likewise */
	/* It lets pods have more GPUs than it has devices: replicas of shared ones (time-slicing, MPS, HAMi). gpus are the
	 * devices that are known, 0 when none is; problems() names the node. */
	FROND_NODE_REPLICAS = 4,
	/* No capacity for the rule: has been closed for longer than unavailableAfter (reference 3.3). "Never fits" still counts
	 * it. Only with CORDONED or DOWN; what a taint closes, and for whom, frond_room says. */
	FROND_NODE_UNAVAILABLE = 8,
};

struct frond_node {
	uint32_t slot; /* the caller's dense number for this node; put again with the same slot = change */
	uint32_t gpus;
	uint32_t unhealthy_mask;
	uint32_t flags;       /* enum frond_node_flag */
	uint32_t uplink_gbps; /* gigabit/s, at most FROND_UPLINK_MAX; 0: not known here, the fabric file may know */
	uint32_t topology;    /* from topology_put(); FROND_NONE: by model */
	struct frond_span name;
	struct frond_span model;   /* of reference 3.7, of the fabric file, or a GPU product label; len 0: the file's */
	uint32_t unavailable_mask; /* of unhealthy_mask: for longer than unavailableAfter, no capacity for the rule */
	uint32_t reserved;
};

struct frond_topology { /* the links between the GPUs of a node */
	uint32_t gpus;
	uint8_t numa[FROND_GPUS_MAX];
	uint16_t link_gbps[FROND_GPUS_MAX][FROND_GPUS_MAX]; /* GB/s; symmetric, 0: through PCIe or the host */
};

struct frond_pod { /* a bound pod that holds GPUs, ours or another scheduler's */
	struct frond_key pod;
	uint32_t slot;
	uint32_t gpus;
	uint32_t gpu_mask;      /* bit i: GPU i of the node, as many bits as gpus; 0: held by count, devices unknown */
	uint32_t rank;          /* FROND_NONE, or over FROND_RANK_MAX: not known */
	struct frond_span name; /* for the map: namespace/name of its gang, or its own */
	struct frond_key gang;  /* zero: none, or not known */
	uint32_t flags;         /* enum frond_pod_flag */
	uint32_t reserved;
};

enum frond_pod_flag {
	FROND_POD_BUDGETED = 1, /* evicting it would violate a disruption budget */
};

enum frond_held_state {
	FROND_HELD_RESERVED = 1, /* booked, not bound yet */
	FROND_HELD_BOUND = 2,
};

struct frond_held {            /* what a pod holds, see pod_get() */
	struct frond_key gang; /* zero: none */
	uint32_t slot;         /* FROND_NONE: a member without GPUs */
	uint32_t gpus;         /* by device and by count together */
	uint32_t gpu_mask;     /* by device */
	uint32_t by_count;     /* GPUs whose devices nobody knows, or somebody else had before */
	uint32_t rank;         /* FROND_NONE: not known */
	uint32_t state;        /* enum frond_held_state */
};

/* GPUs of a node that are kept for a rank of a gang, although its pod is not there yet or somebody still sits on them: a
 * victim that is leaving, or the gang's own. Others do not get them; the gang's own calls see them as free unless they are in
 * use. A hold ends when a pod of that rank takes it over (hold_take(), reserve(), pod_put() on its node), when hold_drop() is
 * told so, when tick() comes to a time behind its deadline, and with its node. */
struct frond_hold {
	struct frond_key gang;
	uint32_t rank;
	uint32_t slot;
	uint32_t gpu_mask;
	uint32_t reserved;
	int64_t deadline_ms; /* 0: none */
};

/* GPUs of one node that a claim's preferIds names: the host knows UUIDs, the engine does not. Beside choosing them inside
 * their node, plans go to that node if they can. Read with preferIds only. */
struct frond_named {
	uint32_t slot;
	uint32_t gpu_mask;
};

struct frond_request {
	struct frond_key gang; /* of a pod in no gang: the pod's own key */
	uint32_t members;      /* entries in the member array, by ascending rank */
	uint32_t min_member;
	uint64_t gpus_desired;  /* by limits: GPUs of a pod × desired pods of the object that carries gpu-count */
	int64_t age_ms;         /* since the last member was created: topology-wait counts from there */
	uint32_t only_slot;     /* plan on this node only; FROND_NONE: anywhere */
	uint32_t annotations;   /* entries in the pair array */
	struct frond_span name; /* for sentences: namespace/name */
	int64_t deadline_ms;    /* reserve(): tick() gives the places back when it is later; 0: never */
	int32_t priority;
	uint32_t named_count;    /* entries in named, each slot once; the rest of them is zero */
	struct frond_span claim; /* the spec of its GpuClaim, JSON; len 0: none */
	struct frond_named named[FROND_GPUS_MAX];
};

struct frond_member {
	struct frond_key pod;
	uint32_t rank;
	uint32_t gpus;         /* 0: counts for all-or-nothing, not for the rule; placed by upstream */
	uint32_t pinned_slot;  /* already bound there (the ledger knows its GPUs); FROND_NONE: to be placed */
	uint32_t pod_template; /* members that are scheduled alike have the same; under the number of members */
};

/* Where something else than GPUs decides how many members of a pod template a node takes: an exception. Lists ascend by
 * slot, then template, and name each pair once. A node that is not in the list takes what its GPUs allow. */
struct frond_room {
	uint32_t slot;         /* of a node that is there */
	uint16_t pod_template; /* that a member has; recover(): 0 */
	uint16_t today; /* members that fit now by everything but the ledger: filters, CPU, memory, assumed pods */
	uint16_t ever;  /* members that would fit on the empty, healthy node: labels, allocatable */
	/* of ever: no capacity for the rule, because the node has been closed to the template (by a taint) for longer than
	 * unavailableAfter; today is at most what is left */
	uint16_t unavailable;
};

/* What order() needs to keep the GPUs of nodes of use: it sees no CPU and no memory, and a node that runs out of them before
 * it runs out of GPUs has GPUs that nobody can use. Nothing of it is kept after the call. */
struct frond_thrift {
	uint32_t cpu_milli, memory_mib; /* that the pod asks for */
	uint32_t kinds;                 /* entries in the kind array, at most FROND_KINDS_MAX */
	uint32_t reserved;
};

struct frond_kind {                     /* pods that ask for the same */
	uint32_t cpu_milli, memory_mib; /* 0: does not ask for it */
	uint32_t gpus;                  /* 1 to FROND_GPUS_MAX */
	uint32_t pods;                  /* how many there are: 1 to FROND_PODS_MAX */
};

struct frond_left { /* by slot, an array of limits.nodes entries: what a node has left of what the engine does not see */
	uint32_t cpu_milli, memory_mib;
};

enum frond_outcome {
	FROND_PLACED = 1,
	FROND_WAITS = 2,     /* would fit another day */
	FROND_NEVER = 3,     /* capacity does not suffice: never fits */
	FROND_REFUSED = 4,   /* what was asked is wrong or contradicts itself */
	FROND_UNDECIDED = 5, /* the bound on a call's work was reached before an answer was found: it may fit */
};

enum frond_rule {
	FROND_RULE_NONE = 0,
	FROND_RULE_SINGLE_NODE = 1,
	FROND_RULE_NVLINK_DOMAIN = 2, /* latency-sensitive gangs only */
	FROND_RULE_SAME_LEAF = 3,
	FROND_RULE_COMPLETE_LEAF = 4,
	FROND_RULE_ADJACENT_LEAVES = 5,
	FROND_RULE_ADJACENT_SPINES = 6,
};

enum frond_plan_flag {
	FROND_PLAN_RELAXED = 1,        /* the rule could not be met and was allowed to break */
	FROND_PLAN_SHAPELESS = 2,      /* capacity suffices but not in the rule's shape: treated as Preferred */
	FROND_PLAN_UNKNOWN_DOMAIN = 4, /* preferred-domain names nothing in the fabric */
	FROND_PLAN_NO_TOPOLOGY = 8,    /* the cluster has no leaves: treated as Ignore */
	FROND_PLAN_BOUNDED = 16,       /* a bound cut the search: a better answer may exist */
	FROND_PLAN_UNKNOWN_GPU = 32,   /* preferIds lists an id that is no GPU of this cluster */
	FROND_PLAN_MIXED_MODELS = 64,  /* the gang has GPUs of more than one model */
	FROND_PLAN_SEGMENTLESS = 128,  /* SHAPELESS because of segments alone */
};

struct frond_plan {
	uint64_t generation;                  /* of the state that was planned on */
	uint32_t outcome;                     /* enum frond_outcome */
	uint32_t rule;                        /* enum frond_rule */
	uint32_t flags;                       /* enum frond_plan_flag */
	uint32_t spines, leaves, runs, nodes; /* in use, pinned members included */
	uint32_t wait_ms; /* when waiting under Required: how long until topology-wait ends; FROND_NONE: for ever */
};

struct frond_place {       /* parallel to the member array */
	uint32_t slot;     /* FROND_NONE for a member without GPUs */
	uint32_t gpu_mask; /* bit i: GPU i */
	uint64_t ring;     /* the same GPUs in ring order, four bits each, the first in the lowest */
};

enum frond_verdict { FROND_HOLD = 1, FROND_GO = 2 };

enum frond_gang_state {
	FROND_GANG_GATHERING = 1, /* some members hold places, fewer than minMember, nothing is reserved */
	FROND_GANG_PLANNED = 2,   /* every place is reserved, nobody has reached Permit */
	FROND_GANG_RESERVED = 3,  /* members are arriving at Permit, or being bound */
	FROND_GANG_BOUND = 4,     /* minMember or more are bound, nothing is reserved */
	FROND_GANG_DEGRADED = 5,  /* was bound, and has lost members below minMember */
};

struct frond_gang {
	uint32_t state; /* enum frond_gang_state */
	uint32_t min_member;
	uint32_t members; /* that hold a place */
	uint32_t arrived; /* of them, reserved and at Permit */
	uint32_t bound;
	uint32_t lost; /* bound members that have gone since the gang was bound; 65,535: or more */
	int32_t priority;
	uint32_t reserved;
	int64_t deadline_ms; /* 0: none */
};

struct frond_move { /* one member that changes its place */
	struct frond_key pod;
	uint32_t rank;
	uint32_t from, to; /* slots */
	uint32_t gpu_mask; /* there */
	uint64_t ring;
};

struct frond_moves {
	uint32_t
		outcome; /* enum frond_outcome: placed when the moves restore the rule or open the hole (or none is needed) */
	uint32_t flags; /* enum frond_plan_flag */
	uint32_t count;
	uint32_t lower_bound; /* no plan has fewer */
};

struct frond_victims {    /* what has to go; compared in this order, lower first */
	uint32_t outcome; /* enum frond_outcome */
	uint32_t count;   /* pods */
	uint32_t budgets; /* pods whose disruption budget would be violated */
	int32_t priority; /* highest among them */
	uint32_t gangs;   /* gangs evicted, whole or in part */
	uint32_t gpus;
	struct frond_plan plan; /* where the gang goes then */
};

struct frond_end { /* when a pod is expected to end */
	struct frond_key pod;
	int64_t ends_in_ms; /* from now; 0 to FROND_DEADLINE_MAX */
};

#define FROND_WINDOW_NEVER (-1ll) /* as far as ends are known */

struct frond_window {     /* where a gang that waits will find room, and when */
	uint32_t outcome; /* enum frond_outcome: placed when start_ms says when, waits when the ends do not suffice */
	uint32_t kept;    /* 1: it is the window that the gang has */
	uint32_t nodes, free;   /* of the window; of them, those that have the members' GPUs free now */
	int64_t start_ms;       /* from now; 0: now; FROND_WINDOW_NEVER unless placed */
	struct frond_plan plan; /* at that time */
};

struct frond_backfill {          /* may a pod use nodes that a window keeps? */
	int64_t start_ms;        /* of the window, from now */
	int64_t ends_in_ms;      /* of the pod, from its start; FROND_WINDOW_NEVER: not known */
	int32_t window_priority; /* of the gang that has the window */
	int32_t pod_priority;
	uint32_t window_preempts; /* 0: preemptionPolicy Never */
	uint32_t reserved;
};

struct frond_stats {
	uint64_t generation; /* grows with every change that plan() can see */
	uint32_t nodes, nodes_without_leaf, leaves, spines;
	uint32_t gpus, gpus_unhealthy, gpus_reserved, gpus_bound, gpus_by_count, gpus_free;
	uint32_t pods, gangs;
	uint32_t holds, gpus_kept; /* gpus_kept: of holds, that nobody has */
	uint64_t plans, placed, waiting, refused, relaxed;
	uint64_t bounded;       /* plans that a bound has cut */
	uint64_t steps;         /* candidates compared */
	uint64_t expired;       /* gangs whose reservation tick() gave back */
	uint64_t conflicts;     /* bound pods that claimed a GPU which had an owner: kept by count */
	uint64_t holds_expired; /* that tick() has ended */
};

/* ---- the table ---------------------------------------------------------------------------------------------- */

typedef struct frond_engine frond_engine; /* opaque; lives in the caller's memory */

struct frond_abi {
	uint32_t version; /* FROND_ABI_VERSION */
	uint32_t size;    /* sizeof(struct frond_abi) */

	/* Decodes TopologyGPUArgs (JSON) strictly. On FROND_BAD text holds one sentence that names the path. */
	int32_t (*args)(const char *json, uint32_t json_len, struct frond_args *out, char *text, uint32_t cap,
			uint32_t *len);

	/* A fabric (YAML, JSON, or one line such as "spine:2 leaf:4 node:4 gpu:8" when is_line) → JSON
	 * {"nodes":[{"name","spine","leaf","gpus","model","uplinkGbps","usedGpus","unhealthyGpus","cordoned",
	 * "labels"}]} in fabric order. */
	int32_t (*fabric_expand)(const char *fabric, uint32_t fabric_len, uint32_t is_line, char *text, uint32_t cap,
				 uint32_t *len);

	/* Bytes that an engine with these limits needs; 0 when a limit is out of range. */
	uint64_t (*size_of)(const struct frond_limits *limits);

	/* Makes an engine in mem (aligned to 16). args and fabric may be empty. */
	int32_t (*create)(void *mem, uint64_t bytes, const struct frond_limits *limits, const char *args,
			  uint32_t args_len, const char *fabric, uint32_t fabric_len, frond_engine **out, char *text,
			  uint32_t cap, uint32_t *len);

	/* Tunes a living engine: scoringPreset, scoringWeights, topologyConstraints (JSON), as in TopologyGPUArgs. What it
	 * does not name is again what create() was given. Not inside a what-if. On FROND_BAD text holds one sentence that
	 * names the path, which begins with "spec". */
	int32_t (*config_put)(frond_engine *engine, const char *json, uint32_t json_len, char *text, uint32_t cap,
			      uint32_t *len);

	/* Cluster state. Only this, config_put() and the reservations below change what plan() sees. */
	int32_t (*node_put)(frond_engine *engine, const struct frond_node *node, const struct frond_pair *labels,
			    uint32_t label_count, const char *in, uint32_t in_len, char *text, uint32_t cap,
			    uint32_t *len);
	/* A link table as a node report gives it; equal tables share one id. An id is good for as long as a node has it.
	 * Before and after that its table is kept until the room is needed: topology_put(), and node_put() of a node that
	 * goes by its model, then give room and id of tables that no node has to others. So put a table right before the
	 * node that is to have it. FROND_LIMIT: the tables that nodes have leave no room. */
	int32_t (*topology_put)(frond_engine *engine, const struct frond_topology *topology, uint32_t *id, char *text,
				uint32_t cap, uint32_t *len);
	/* What pods held on the node is forgotten with it; put them again if it comes back. */
	int32_t (*node_remove)(frond_engine *engine, uint32_t slot);
	/* A pod that was reserved becomes bound; one that is unknown is entered. GPUs of its mask that somebody else has are
	 * held by count. */
	int32_t (*pod_put)(frond_engine *engine, const struct frond_pod *pod, const char *in, uint32_t in_len,
			   char *text, uint32_t cap, uint32_t *len);
	/* What a pod holds. FROND_UNKNOWN when it holds nothing. */
	int32_t (*pod_get)(frond_engine *engine, const struct frond_key *pod, struct frond_held *out);

	/* Plans members jointly and changes nothing. places has room for request->members.
	 * text: why here, or what is needed, the best that there is and what stands in the way. */
	int32_t (*plan)(frond_engine *engine, const struct frond_request *request, const struct frond_member *members,
			const struct frond_pair *annotations, const char *in, uint32_t in_len,
			const struct frond_room *room, uint32_t room_count, struct frond_plan *out,
			struct frond_place *places, char *text, uint32_t cap, uint32_t *len);
	/* For one pod: position[slot] = its place in the order of feasible nodes, UINT16_MAX where it does not fit.
	 * Without thrift the same answer as plan(), for every node at once. With it every node is weighed by itself: after links
	 * the fewest GPUs that no kind can use any more, then what stays whole, then the GPUs that are expected to be of no
	 * use, where they grow least first; out is the plan without it. thrift NULL: kinds and left are not read. */
	int32_t (*order)(frond_engine *engine, const struct frond_request *request, const struct frond_member *member,
			 const struct frond_pair *annotations, const char *in, uint32_t in_len,
			 const struct frond_room *room, uint32_t room_count, const struct frond_thrift *thrift,
			 const struct frond_kind *kinds, const struct frond_left *left, struct frond_plan *out,
			 uint16_t *position, char *text, uint32_t cap, uint32_t *len);

	/* Books a plan, all of it or nothing. FROND_STALE when a GPU or node is no longer to be had. */
	int32_t (*reserve)(frond_engine *engine, const struct frond_request *request,
			   const struct frond_member *members, const struct frond_place *places);
	/* What a gang that holds something asks for (annotations, claim, minMember, priority): recover(), victims() and
	 * defrag() go by it. FROND_UNKNOWN when nobody of it holds anything. */
	int32_t (*gang_put)(frond_engine *engine, const struct frond_request *request,
			    const struct frond_pair *annotations, const char *in, uint32_t in_len, char *text,
			    uint32_t cap, uint32_t *len);
	int32_t (*gang_get)(frond_engine *engine, const struct frond_key *gang, struct frond_gang *out);
	/* A reserved member has reached Permit. FROND_GO once all of its gang have. */
	int32_t (*permit)(frond_engine *engine, const struct frond_key *pod, uint32_t *verdict);
	/* A reserved member is bound. */
	int32_t (*confirm)(frond_engine *engine, const struct frond_key *pod);
	/* Gives back what a pod holds, reserved or bound. FROND_UNKNOWN when it holds nothing. */
	int32_t (*release)(frond_engine *engine, const struct frond_key *pod);
	/* Gives back what members of the gang hold that are not bound; *pods: how many. */
	int32_t (*release_gang)(frond_engine *engine, const struct frond_key *gang, uint32_t *pods);

	/* Adds holds, all of them or none: text names the first that cannot be added, and why. A rank has one hold at most; one
	 * that a better plan replaces is dropped before. Not inside a what-if. */
	int32_t (*hold_put)(frond_engine *engine, const struct frond_hold *holds, uint32_t count, char *text,
			    uint32_t cap, uint32_t *len);
	/* The pod of that rank has come: it is booked on the GPUs of its hold as by reserve(), with the hold's deadline for
	 * its gang, and the hold ends. FROND_UNKNOWN: there is no such hold. FROND_STALE: its GPUs are in use, unhealthy or
	 * gone, its node takes nothing new today, or the pod holds something already. */
	int32_t (*hold_take)(frond_engine *engine, const struct frond_key *gang, uint32_t rank,
			     const struct frond_key *pod);
	/* Ends the hold of one rank, or of all ranks (FROND_NONE) of a gang; *count: how many. Not inside a what-if. */
	int32_t (*hold_drop)(frond_engine *engine, const struct frond_key *gang, uint32_t rank, uint32_t *count);
	/* The holds of a gang (NULL: of all) by gang and rank. FROND_SMALL: *count is how many there are. */
	int32_t (*hold_list)(frond_engine *engine, const struct frond_key *gang, struct frond_hold *out, uint32_t cap,
			     uint32_t *count);

	/* Time has come to now_ms: gangs whose deadline has passed before all were bound give their unbound places back,
	 * and holds whose deadline has passed end. The keys of up to cap of those gangs; call again while *count is cap. Not inside a what-if. */
	int32_t (*tick)(frond_engine *engine, int64_t now_ms, struct frond_key *expired, uint32_t cap, uint32_t *count);

	/* What if: everything that reserve, hold_take, permit, confirm, release and release_gang do from here on is taken back by
	 * undo(), to any depth. Cluster state may not change in between (FROND_BAD). */
	int32_t (*what_if)(frond_engine *engine);
	int32_t (*undo)(frond_engine *engine);

	/* Pure: state in, ordered actions out; nothing is booked. moves has room for cap; FROND_SMALL: out->count says
	 * how many. text: one sentence. */
	/* A gang that has lost members (their node is down, or their GPU is unhealthy): reference 6. */
	int32_t (*recover)(frond_engine *engine, const struct frond_key *gang, const struct frond_room *room,
			   uint32_t room_count, struct frond_moves *out, struct frond_move *moves, uint32_t cap,
			   char *text, uint32_t text_cap, uint32_t *len);
	/* The fewest moves of members of other gangs after which this one fits: reference 7. room is the asked gang's: whether
	 * the host's other filters admit a member where it moves is for the host to check. */
	int32_t (*defrag)(frond_engine *engine, const struct frond_request *request, const struct frond_member *members,
			  const struct frond_pair *annotations, const char *in, uint32_t in_len,
			  const struct frond_room *room, uint32_t room_count, struct frond_moves *out,
			  struct frond_move *moves, uint32_t cap, char *text, uint32_t text_cap, uint32_t *len);
	/* Pods of lower priority that have to go so that this gang fits, and where it goes then: reference 7. */
	int32_t (*victims)(frond_engine *engine, const struct frond_request *request,
			   const struct frond_member *members, const struct frond_pair *annotations, const char *in,
			   uint32_t in_len, const struct frond_room *room, uint32_t room_count,
			   struct frond_victims *out, struct frond_place *places, struct frond_key *pods, uint32_t cap,
			   char *text, uint32_t text_cap, uint32_t *len);

	/* A gang that waits: where and when all of it will find room, if the pods of ends (ascending by ends_in_ms, each pod
	 * once; pods that hold nothing do not matter) leave as expected. Pods of unknown end stay, but those of gangs of lower
	 * priority count as gone. kept: the window that the gang has, parallel to members, as places was; it stays unless
	 * another starts earlier; NULL: none. text: one sentence. */
	int32_t (*window)(frond_engine *engine, const struct frond_request *request, const struct frond_member *members,
			  const struct frond_pair *annotations, const char *in, uint32_t in_len,
			  const struct frond_room *room, uint32_t room_count, const struct frond_end *ends,
			  uint32_t end_count, const struct frond_place *kept, struct frond_window *out,
			  struct frond_place *places, char *text, uint32_t cap, uint32_t *len);
	/* Reference 7: a pod uses kept nodes only if it ends before the window starts, or if the gang could evict it. *allowed: 0
	 * or 1; text: why. */
	int32_t (*backfill)(const struct frond_backfill *question, uint32_t *allowed, char *text, uint32_t cap,
			    uint32_t *len);

	/* What the pod's Binding carries (reference 3.6): its GPUs in ring order, for the host to write their ids (slot FROND_NONE,
	 * no GPUs: none are held by device), and "KEY=VALUE\n" for each annotation that the engine has the words for. */
	int32_t (*binding)(frond_engine *engine, const struct frond_key *pod, struct frond_place *place, char *text,
			   uint32_t cap, uint32_t *len);

	/* Seen from outside. */
	int32_t (*stats)(frond_engine *engine, struct frond_stats *out);
	int32_t (*problems)(frond_engine *engine, char *text, uint32_t cap,
			    uint32_t *len); /* of the fabric: a line each */
	int32_t (*map)(frond_engine *engine, uint32_t color, char *text, uint32_t cap, uint32_t *len);
	int32_t (*dump)(frond_engine *engine, char *text, uint32_t cap, uint32_t *len);
	int32_t (*check)(frond_engine *engine, char *text, uint32_t cap, uint32_t *len); /* FROND_BROKEN names it */

	const char *(*code_text)(int32_t code);
};

/* The library's one export. Never fails; the table lives as long as the library is loaded. */
const struct frond_abi *frond_abi_get(void);

#ifdef __cplusplus
}
#endif
#endif
