/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask.h - what a gang asks for and what it is answered, as integers: the words of reference 3.1 and 3.2 after text/wish
 * and text/claim have read them, and the numbers from which engine/explain makes a sentence.
 */
#ifndef FROND_CORE_ASK_H
#define FROND_CORE_ASK_H

#include "core/base.h"

enum strategy { STRATEGY_BALANCED, STRATEGY_CONSOLIDATED, STRATEGY_DISTRIBUTED };
enum mode { MODE_REQUIRED, MODE_PREFERRED, MODE_IGNORE };
enum recovery { RECOVERY_REPLACE, RECOVERY_MOVE_GANG, RECOVERY_WAIT };
enum gpu_policy { GPU_CONTIGUOUS, GPU_SPREAD, GPU_PREFER };
enum gpu_locality { GPU_ANYWHERE, GPU_SAME_SOCKET, GPU_NVLINK };

enum segment_level { SEGMENT_DEFAULT, SEGMENT_NVLINK, SEGMENT_LEAF };

/* Blocks of consecutive ranks, each inside one domain of the level. */
struct segmenting {
	uint16_t size; /* members; 0: none */
	uint8_t level; /* enum segment_level; by default NVLink domains, where there are any */
};

/* Which GPUs inside a node. Without a claim: GPU_WISH_DEFAULT. */
struct gpu_wish {
	enum gpu_policy policy;
	enum mode mode;
	enum gpu_locality locality;
	uint32_t min_gbps; /* GB/s; 0: none */
	uint32_t prefer;   /* mask of the listed GPUs, with GPU_PREFER */
};
#define GPU_WISH_DEFAULT                                                                                               \
	{                                                                                                              \
		GPU_CONTIGUOUS, MODE_PREFERRED, GPU_ANYWHERE, 0, 0                                                     \
	}

struct gpu_named { /* GPUs of one node that preferIds names by id: the engine's own, or the host's */
	uint32_t slot, mask;
};

/* The terms of the weighted score of reference 3.4, in its order. */
enum score_term {
	SCORE_RESOURCE_AVAILABILITY,
	SCORE_TOPOLOGY_ALIGNMENT,
	SCORE_DOMAIN_UTILIZATION,
	SCORE_HISTORICAL_PERFORMANCE,
	SCORE_MODEL_CACHE,
	SCORE_COST_EFFICIENCY,
	SCORE_DATA_LOCALITY,
	SCORE_UTILIZATION,
	SCORE_TERMS
};
#define WEIGHTS_TRAINING                                                                                               \
	{                                                                                                              \
		400, 300, 200, 100, 0, 0, 0, 0                                                                         \
	} /* thousandths */

/* What else pods ask for and nodes have left, for waste.h. */
struct thrift {
	const struct frond_kind *kinds;
	uint32_t count;
	struct frond_left asks;        /* of the pod */
	const struct frond_left *left; /* by slot */
};

struct ask {
	const struct frond_member *members; /* ascending rank */
	uint32_t count;
	enum strategy strategy;
	enum mode mode;
	bool latency_sensitive;
	uint32_t bandwidth_gbps;     /* floor; 0: none */
	uint32_t max_nodes_per_leaf; /* 0: no cap */
	uint32_t max_gpus_per_leaf;  /* 0: no cap */
	struct segmenting segments;
	uint32_t only_slot;                /* FROND_NONE: any */
	uint32_t domain_first, domain_end; /* positions of the preferred domain; equal: none */
	uint32_t domain_nvlink;            /* only nodes of this NVLink domain there; FROND_NONE: all */
	struct gpu_wish gpu;               /* which GPUs inside a node */
	struct gpu_named named[2 * FROND_GPUS_MAX];
	uint32_t named_count;
	const struct frond_room *room; /* exceptions, ascending by slot, then template */
	uint32_t room_count;
	const struct thrift *thrift;  /* place_order() alone; NULL: none */
	uint32_t weight[SCORE_TERMS]; /* thousandths */
};

/* The first exception of the slot; NULL: there is none. */
const struct frond_room *ask_room(const struct ask *ask, uint32_t slot);
/* What a node takes: now; as capacity for the rule; on its best day, which "never fits" goes by. */
enum room_when { ROOM_TODAY, ROOM_RULE, ROOM_EVER };
/* Members that the node takes by its exceptions, whichever template they are of; UINT32_MAX: as many as its GPUs allow. */
uint32_t ask_room_at(const struct ask *ask, uint32_t slot, enum room_when when);
/* Likewise, of one template. */
uint32_t ask_room_of(const struct ask *ask, uint32_t slot, uint32_t pod_template, enum room_when when);

/* Do exceptions treat templates 0 … count - 1 differently? Every slot has one for each of them, and all are the same: no. */
bool ask_tells_apart(const struct ask *ask, uint32_t count);

struct segment_walk { /* over the members with GPUs, in order of rank */
	const struct ask *ask;
	bool by_rank; /* ranks say which members are in a segment; else their order does */
	uint32_t next, without, seen;
	uint32_t segment; /* of the last one */
};

/* Before the first one; segments are asked for. */
struct segment_walk ask_segments(const struct ask *ask);
/* The next member with GPUs, and its segment; FROND_NONE: there is none. */
uint32_t segment_next(struct segment_walk *walk);

/* What keeps a node that could hold a member from doing so today. */
enum blocker { BLOCKED_CORDONED, BLOCKED_DOWN, BLOCKED_UNHEALTHY, BLOCKED_IN_USE, BLOCKED_FILTERED, BLOCKERS };

enum best_kind { BEST_NONE, BEST_NODE, BEST_LEAVES, BEST_SPINES, BEST_CLUSTER };

/* What a placement uses, pinned members included: step 3 of reference 3.4. A node without a leaf counts as a leaf and a spine. */
struct extent {
	uint32_t spines, leaves, runs, nodes;
	uint32_t fullest_node, fullest_leaf; /* members there */
};

/* What a placement costs and brings, without pinned members: steps 4 to 6 of reference 3.4. */
struct gain {
	uint64_t models;  /* mask of the GPU models, of pinned members too */
	uint16_t domains; /* NVLink domains that pinned members are not in, see place_domains() */
	uint16_t worst;   /* least bottleneck of a member; UINT16_MAX: no member has two GPUs */
	uint32_t broken_leaves, broken_nodes, opened_leaves;
	uint32_t links; /* sum of the members' bottlenecks */
	uint32_t score; /* sum over the members of their leaf's score */
	uint32_t left;  /* GPUs that stay free in the leaves touched */
	uint32_t free;  /* GPUs that were free there */
};
static inline uint32_t models_count(uint64_t models)
{
	return bits_count((uint32_t)models) + bits_count((uint32_t)(models >> 32));
}

_Static_assert((uint64_t)FROND_MEMBERS_MAX *UINT16_MAX <= UINT32_MAX, "a link is 16 bits, a score less than 14");

struct answer {
	struct frond_plan plan;
	bool in_domain;       /* placed inside the preferred domain */
	struct extent extent; /* placed: how good it is; see answer_compare() */
	struct gain gain;
	uint32_t members;     /* with GPUs, pinned ones included */
	uint32_t gpus_each;   /* 0: sizes differ */
	uint64_t gpus;        /* of all of them together */
	bool whole_nodes;     /* no node could hold two members: count in nodes */
	uint32_t need_nodes;  /* n of reference 3.3 */
	uint32_t need_leaves; /* r; 0: no spine holds it */
	uint32_t need_spines;
	uint64_t ever;                    /* members (sizes differ: GPUs) that the cluster could hold by capacity */
	enum best_kind best;              /* the place that comes nearest when the rule is not met today */
	uint32_t best_first, best_last;   /* node position, leaves or spines, by best */
	uint64_t best_room;               /* members (sizes differ: GPUs) that it has room for */
	uint32_t best_gap;                /* leaf or spine in between that has no room at all; FROND_NONE: none */
	uint32_t segment_size;            /* as asked for; 0: none */
	bool best_segments;               /* best_room is in segments */
	bool segment_nvlink;              /* their domains are NVLink domains; else leaves */
	uint32_t missing;                 /* members to be placed, without pinned ones */
	bool claimed;                     /* a claim rules some GPU sets out */
	uint32_t bandwidth_gbps;          /* floor that was asked for; 0: none */
	uint32_t candidates;              /* compared */
	bool cut;                         /* the bound on the work of a call ended the search: budget.h */
	uint32_t blocked[BLOCKERS];       /* nodes of the best place that could hold more than they do */
	uint32_t blocked_first[BLOCKERS]; /* position of the first one */
};

#endif
