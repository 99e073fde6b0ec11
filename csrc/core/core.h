/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core.h - the engine in ids and integers: nodes, fabric, ledger, gangs and the planner in one piece of memory.
 * No text, clock, file, thread or global. On failure nothing has changed.
 */
#ifndef FROND_CORE_CORE_H
#define FROND_CORE_CORE_H

#include "core/gang.h"
#include "core/place.h"
#include "core/tables.h"

struct core {
	uint32_t node_cap;
	struct node *nodes; /* by slot */
	struct undo undo;
	struct fabric fabric;
	struct ledger ledger;
	struct gangs gangs;
	struct gpuset **sets; /* by node.topology; [0]: of a node without GPUs; owned by tables */
	struct tables tables; /* the sets, their memory, and how many nodes have each */
	struct place_work *work;
	uint64_t generation; /* grows with every change; undo takes it back */
	uint64_t plans, placed, waiting, refused, relaxed, bounded, steps, expired, holds_expired;
};

/* scratch: bytes of the planner's that the caller wants too, see place_scratch(). */
void core_layout(struct core *core, struct arena *arena, const struct frond_limits *limits, uint64_t scratch);

/* The table for these links: *id is what node.topology wants. FROND_LIMIT: those that nodes have leave no room. */
int32_t core_topology(struct core *core, const struct topology *topology, uint32_t *id);
/* GPUs of the table with that id; FROND_NONE: there is none. */
uint32_t core_topology_gpus(const struct core *core, uint32_t id);

void core_node_put(struct core *core, uint32_t slot, const struct node *node);
/* Forgets the node and what pods held there; calls left() with the label of each. */
void core_node_remove(struct core *core, uint32_t slot, void (*left)(void *context, uint32_t label), void *context);

struct core_pod {
	struct frond_key pod, gang; /* gang zero: none */
	uint32_t slot, mask, by_count, label, rank;
	bool budgeted;
};
/* *joined: the entry holds the label from now on; the label of what it replaced goes to *dropped. */
int32_t core_pod_put(struct core *core, const struct core_pod *pod, bool *joined, uint32_t *dropped);

void core_plan(struct core *core, const struct ask *ask, struct answer *answer, struct frond_place *places);
void core_order(struct core *core, const struct ask *ask, struct answer *answer, uint16_t *position);

/* Counts a decision that has been told. */
void core_count(struct core *core, const struct answer *answer);

int32_t core_reserve(struct core *core, const struct frond_request *request, const struct frond_member *members,
		     const struct frond_place *places);
int32_t core_permit(struct core *core, struct frond_key pod, uint32_t *verdict);
int32_t core_confirm(struct core *core, struct frond_key pod);
int32_t core_release(struct core *core, struct frond_key pod, uint32_t *label);
int32_t core_release_gang(struct core *core, struct frond_key gang, uint32_t *pods,
			  void (*left)(void *context, uint32_t label), void *context);
/* Ends overdue holds, and gives the unbound places of overdue gangs back; their keys, up to cap; returns how many there were. */
uint32_t core_tick(struct core *core, int64_t now_ms, struct frond_key *expired, uint32_t cap,
		   void (*left)(void *context, uint32_t label), void *context);

/* Why a hold cannot be put. */
enum hold_fault {
	HOLD_FINE,
	HOLD_NO_ROOM, /* for all of them */
	HOLD_NO_GANG,
	HOLD_BAD_RANK,
	HOLD_NO_NODE,
	HOLD_BAD_MASK,
	HOLD_NOT_ZERO, /* a reserved field */
	HOLD_BAD_DEADLINE,
	HOLD_CLASH, /* another hold has a GPU of it */
	HOLD_TWICE, /* another hold is for the same rank */
};
/* Holds, all or none; *bad: which one is the first that cannot be put. */
enum hold_fault core_hold_put(struct core *core, const struct frond_hold *list, uint32_t count, uint32_t *bad);
/* The pod of a hold's rank is booked on its GPUs, and the hold is over. */
int32_t core_hold_take(struct core *core, struct frond_key gang, uint32_t rank, struct frond_key pod);
/* Ends the hold of a rank, or all of a gang (FROND_NONE); returns how many. */
uint32_t core_hold_drop(struct core *core, struct frond_key gang, uint32_t rank);

/* What if: taken back by core_undo(), to any depth. FROND_LIMIT: the log is full. */
int32_t core_what_if(struct core *core);
int32_t core_undo(struct core *core);

void core_stats(const struct core *core, struct frond_stats *out);

#endif
