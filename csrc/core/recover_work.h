/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recover_work.h - what the files of a repair share. Private to recover*.c.
 */
#ifndef FROND_CORE_RECOVER_WORK_H
#define FROND_CORE_RECOVER_WORK_H

#include "core/recover.h"
#include "core/span.h"

#define RECOVER_TARGETS 64u /* that the planner is asked about */

enum member_state { STAYS, LOST, MOVES, NO_GPUS };

/* Where the gang shall lie, what that keeps and what it costs. */
struct target {
	uint32_t index;  /* in their order */
	uint32_t lo, hi; /* member; leaves; spines */
	uint32_t
		leaf; /* no spines but this leaf, whose link is slow: who stays inside does not cross it; or FROND_NONE */
	uint32_t kept;  /* healthy members inside */
	uint32_t owed;  /* leaves or spines inside that have nobody and must be used */
	uint32_t moves; /* when the planner agrees */
	bool none;      /* keeps nobody: goes anywhere */
	bool segments;  /* those that have no room for their lost ones move as a whole */
};

struct view { /* one repair */
	struct recover_work *work;
	struct core *core;
	const struct fabric *fabric;
	struct budget *budget;
	struct ask ask;
	struct answer answer; /* of the last plan; after place_rule_of() the rule */
	struct rule rule;
	uint32_t gang;
	uint32_t total, lost; /* members with GPUs */
	uint32_t size;        /* GPUs of a member; 0: sizes differ */
	uint64_t gpus;        /* of all of them */
	uint32_t largest;     /* GPUs of the largest member, and how many are as large */
	uint32_t large;
	bool spreads;   /* may use fewer leaves or spines than the rule allows */
	uint32_t plans; /* made so far */
	bool doubt;     /* a bound ended a plan that placed nobody: it rules nothing out */
	bool cut;       /* a bound ended the search: there may be a better repair */
	bool hopeless;  /* no repair with the rule met exists */
	uint32_t target_count;
	struct target targets[RECOVER_TARGETS]; /* the cheapest, cheapest first */
};

static inline uint32_t position_of_member(const struct view *view, uint32_t i)
{
	return view->fabric->position[entry_slot(&view->core->ledger.entries[view->work->roster.entries[i]])];
}

static inline uint32_t leaf_of_member(const struct view *view, uint32_t i)
{
	return view->fabric->leaf_of[position_of_member(view, i)];
}

/* ---- recover_target.c -------------------------------------------------------------------------------------------------- */

/* The targets of the rule, with the lost ones gone and nobody marked. Returns moves without which there is no repair; the
 * budget may end it early: view->cut. */
uint32_t targets_survey(struct view *view);
/* Members that fit on a node beside the others, at most. */
uint32_t targets_room(const struct view *view, uint32_t position);
/* Marks who moves for this target. */
void target_choose(struct view *view, const struct target *target);

/* ---- recover_segment.c: gangs with segments ------------------------------------------------------------------------------ */

/* Marks the members of segments that have to leave beside those that move already; returns how many move then, lost ones
 * included. */
uint32_t segments_mark(struct view *view);
/* Nobody is marked: healthy members that have to move, because the domain of a segment has no room for its lost ones and
 * only a whole segment can leave it; at least. Members have one size. */
uint32_t segments_least(const struct view *view);

#endif
