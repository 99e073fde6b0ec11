/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.h - one call of the ABI as a value: which one, with what, and where its answers go. The shim makes calls through
 * it, recordings are written from it, and frond-sim's replay reads it back, so all three mean the same by a call.
 * Owns nothing: every pointer is the caller's. Never decides anything.
 */
#ifndef FROND_CALL_H
#define FROND_CALL_H

#include "frond.h"

#include <stddef.h>

#define CALL_MISSING (-1) /* the library's table has no such function */

/* What goes into a call; the parts stand in this order in a recording. */
enum call_in {
	IN_LIMITS = 1 << 0,
	IN_TEXTS = 1 << 1, /* args and fabric */
	IN_JSON = 1 << 2,  /* all of the call's text */
	IN_NODE = 1 << 3,
	IN_TOPOLOGY = 1 << 4,
	IN_POD = 1 << 5,
	IN_REQUEST = 1 << 6,
	IN_POD_KEY = 1 << 7,
	IN_GANG_KEY = 1 << 8,
	IN_SLOT = 1 << 9,
	IN_NOW = 1 << 10,
	IN_COLOR = 1 << 11,
	IN_LABELS = 1 << 12,
	IN_MEMBERS = 1 << 13, /* as many as the request says; order: one */
	IN_PLACES = 1 << 14,
	IN_ANNOTATIONS = 1 << 15,
	IN_ROOM = 1 << 16,
	IN_THRIFT = 1 << 17, /* with its kinds and what nodes have left */
	IN_LIST_CAP = 1 << 18,
	IN_CAP = 1 << 19,
	IN_NAMED = 1 << 20,    /* as many as the request says */
	IN_ANY_GANG = 1 << 21, /* a gang's key, or none: all */
	IN_RANK = 1 << 22,
	IN_TAKER = 1 << 23, /* key of the pod that takes a hold over */
	IN_HOLDS = 1 << 24,
	IN_ENDS = 1 << 25,
	IN_KEPT = 1 << 26, /* places, as many as members, or none */
};

/* What comes out besides the code. */
enum call_out {
	OUT_ID = 1 << 0,
	OUT_VERDICT = 1 << 1,
	OUT_PODS = 1 << 2,
	OUT_EXPIRED = 1 << 3,
	OUT_PLAN = 1 << 4,
	OUT_PLACES = 1 << 5,
	OUT_POSITION = 1 << 6,
	OUT_GANG = 1 << 7,
	OUT_MOVES = 1 << 8,
	OUT_VICTIMS = 1 << 9,
	OUT_STATS = 1 << 10,
	OUT_TEXT = 1 << 11,
	OUT_HELD = 1 << 12,
	OUT_PLACE = 1 << 13, /* of the pod */
	OUT_COUNT = 1 << 14,
	OUT_HOLDS = 1 << 15,
	OUT_WINDOW = 1 << 16,
};

#define IN_JOB (IN_REQUEST | IN_NAMED | IN_MEMBERS | IN_ANNOTATIONS | IN_ROOM)

/* Every call that an engine takes: function of the table, what goes in, what comes out. */
#define CALLS(X)                                                                                                       \
	X(create, IN_LIMITS | IN_TEXTS | IN_CAP, OUT_TEXT)                                                             \
	X(config_put, IN_JSON | IN_CAP, OUT_TEXT)                                                                      \
	X(node_put, IN_NODE | IN_LABELS | IN_CAP, OUT_TEXT)                                                            \
	X(topology_put, IN_TOPOLOGY | IN_CAP, OUT_ID | OUT_TEXT)                                                       \
	X(node_remove, IN_SLOT, 0)                                                                                     \
	X(pod_put, IN_POD | IN_CAP, OUT_TEXT)                                                                          \
	X(pod_get, IN_POD_KEY, OUT_HELD)                                                                               \
	X(plan, IN_JOB | IN_CAP, OUT_PLAN | OUT_PLACES | OUT_TEXT)                                                     \
	X(order, IN_JOB | IN_THRIFT | IN_CAP, OUT_PLAN | OUT_POSITION | OUT_TEXT)                                      \
	X(reserve, IN_REQUEST | IN_NAMED | IN_MEMBERS | IN_PLACES, 0)                                                  \
	X(gang_put, IN_REQUEST | IN_NAMED | IN_ANNOTATIONS | IN_CAP, OUT_TEXT)                                         \
	X(gang_get, IN_GANG_KEY, OUT_GANG)                                                                             \
	X(permit, IN_POD_KEY, OUT_VERDICT)                                                                             \
	X(confirm, IN_POD_KEY, 0)                                                                                      \
	X(release, IN_POD_KEY, 0)                                                                                      \
	X(release_gang, IN_GANG_KEY, OUT_PODS)                                                                         \
	X(hold_put, IN_HOLDS | IN_CAP, OUT_TEXT)                                                                       \
	X(hold_take, IN_GANG_KEY | IN_RANK | IN_TAKER, 0)                                                              \
	X(hold_drop, IN_GANG_KEY | IN_RANK, OUT_COUNT)                                                                 \
	X(hold_list, IN_ANY_GANG | IN_LIST_CAP, OUT_HOLDS)                                                             \
	X(tick, IN_NOW | IN_LIST_CAP, OUT_EXPIRED)                                                                     \
	X(what_if, 0, 0)                                                                                               \
	X(undo, 0, 0)                                                                                                  \
	X(recover, IN_GANG_KEY | IN_ROOM | IN_LIST_CAP | IN_CAP, OUT_MOVES | OUT_TEXT)                                 \
	X(defrag, IN_JOB | IN_LIST_CAP | IN_CAP, OUT_MOVES | OUT_TEXT)                                                 \
	X(victims, IN_JOB | IN_LIST_CAP | IN_CAP, OUT_VICTIMS | OUT_PLACES | OUT_TEXT)                                 \
	X(window, IN_JOB | IN_ENDS | IN_KEPT | IN_CAP, OUT_WINDOW | OUT_PLACES | OUT_TEXT)                             \
	X(binding, IN_POD_KEY | IN_CAP, OUT_PLACE | OUT_TEXT)                                                          \
	X(stats, 0, OUT_STATS)                                                                                         \
	X(problems, IN_CAP, OUT_TEXT)                                                                                  \
	X(map, IN_COLOR | IN_CAP, OUT_TEXT)                                                                            \
	X(dump, IN_CAP, OUT_TEXT)                                                                                      \
	X(check, IN_CAP, OUT_TEXT)

enum call_kind {
#define X(name, in, out) CALL_##name,
	CALLS(X)
#undef X
		CALL_KINDS
};

struct call_shape {
	const char *name;
	uint32_t in;  /* enum call_in */
	uint32_t out; /* enum call_out */
	size_t at;    /* of the function's pointer in the table */
};

extern const struct call_shape call_shapes[CALL_KINDS];

/* Only what the kind's shape names is looked at. */
struct call {
	enum call_kind kind;

	void *mem; /* create */
	uint64_t mem_bytes;
	const struct frond_limits *limits;
	const char *args, *fabric;
	uint32_t args_len, fabric_len;

	const struct frond_node *node;
	const struct frond_topology *topology;
	const struct frond_pod *pod;
	const struct frond_request *request;
	const struct frond_key *key;   /* of a pod or a gang; hold_list: NULL for all */
	const struct frond_key *taker; /* hold_take: the pod */
	const struct frond_hold *holds;
	uint32_t hold_count, rank;
	const struct frond_pair *pairs;
	uint32_t label_count; /* of annotations the request knows how many */
	const struct frond_member *members;
	const struct frond_place *booked; /* reserve: as many as members; window: likewise, or NULL */
	const struct frond_end *ends;
	uint32_t end_count;
	const struct frond_room *room; /* exceptions */
	uint32_t room_count;
	const struct frond_thrift *thrift; /* NULL: none, and none of the two below */
	const struct frond_kind *kinds;    /* as many as thrift says */
	const struct frond_left *left;     /* by slot */
	uint32_t slot, color;
	int64_t now_ms;
	const char *in; /* the text that spans are of, or the JSON */
	uint32_t in_len;

	frond_engine **engine; /* create */
	uint32_t *number;      /* id, verdict, or how many pods, expired gangs or holds */
	struct frond_plan *plan;
	struct frond_place *places;
	uint16_t *position;
	struct frond_gang *gang;
	struct frond_held *held;
	struct frond_place *place; /* binding */
	struct frond_moves *moves;
	struct frond_move *move_list;
	struct frond_victims *victims;
	struct frond_window *window;
	struct frond_key *keys; /* of victims, or of expired gangs */
	struct frond_hold *hold_list;
	uint32_t list_cap; /* entries that move_list, keys or hold_list has room for */
	struct frond_stats *stats;
	char *text;
	uint32_t cap;
	uint32_t *len;
};

/* Makes the call. CALL_MISSING when the library does not have it; then nothing was touched. */
int32_t call_run(const struct frond_abi *abi, frond_engine *engine, const struct call *call);

/* Entries in the member array of a call that has one. */
uint32_t call_members(const struct call *call);

/* ---- records, field by field ------------------------------------------------------------------------------------- */

enum field_type {
	FIELD_U16,
	FIELD_U32,
	FIELD_SLOT, /* a uint32_t that may be FROND_NONE */
	FIELD_I32,
	FIELD_U64,
	FIELD_I64,
	FIELD_HEX, /* a uint64_t */
	FIELD_KEY,
	FIELD_SPAN,
};

struct field {
	const char *name;
	enum field_type type;
	size_t at;
};

enum call_record {
	RECORD_LIMITS,
	RECORD_NODE,
	RECORD_POD,
	RECORD_REQUEST,
	RECORD_MEMBER,
	RECORD_ROOM,
	RECORD_THRIFT,
	RECORD_KIND,
	RECORD_PLACE,
	RECORD_PLAN,
	RECORD_GANG,
	RECORD_HELD,
	RECORD_NAMED,
	RECORD_MOVES,
	RECORD_MOVE,
	RECORD_VICTIMS,
	RECORD_END,
	RECORD_WINDOW,
	RECORD_STATS,
	RECORD_HOLD,
	RECORDS
};

struct field_list {
	const struct field *fields;
	uint32_t count;
};

/* All fields that callers set or read; reserved ones are zero and not named. */
extern const struct field_list call_fields[RECORDS];

#endif
