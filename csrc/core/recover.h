/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recover.h - reference 6: a gang that has lost members, put back together with the fewest moves. State in, moves out;
 * what it tries it takes back, so the state is the same to the last bit afterwards. Never books anything.
 *
 * Also the roster: the members of a running gang as the planner wants them, which defrag.h needs too.
 */
#ifndef FROND_CORE_RECOVER_H
#define FROND_CORE_RECOVER_H

#include "core/core.h"

struct roster {                       /* a gang's members by rank, then key; those without a rank come last */
	struct frond_member *members; /* each pinned where it is */
	uint32_t *entries;            /* of the ledger, parallel; stale while the entry is away in a what-if */
	uint32_t count, cap;
};

void roster_layout(struct roster *roster, struct arena *arena, uint32_t pods);
/* FROND_LIMIT: more members than a plan may have. */
int32_t roster_fill(struct roster *roster, const struct core *core, uint32_t gang);
/* What the gang asks for: its own terms, the caps and weights of `defaults`. Points to the roster. */
void roster_ask(const struct roster *roster, const struct terms *terms, const struct ask *defaults,
		const struct frond_room *room, uint32_t room_count, struct ask *ask);

/* Takes a pod out of gang and ledger; for what-ifs that have asked for room. */
void what_if_leave(struct core *core, uint32_t entry);

struct leaf_run { /* leaves lo … hi - 1 */
	uint32_t lo, hi;
};

struct recover_work {
	struct roster roster;
	struct frond_place *places; /* by member */
	uint8_t *state;             /* by member: enum member_state */
	uint32_t *healthy;          /* members that are not lost, in the order of the roster */
	struct leaf_run *runs;      /* by spine: the run that keeps most members */
	uint32_t *staying;          /* by leaf: members that stay, for one target */
};

void recover_layout(struct recover_work *work, struct arena *arena, uint32_t nodes, uint32_t pods);

#define RECOVER_SHOWN 3u /* moves that a sentence has room for */

struct recover_choices {              /* of a gang that insists on a rule which cannot hold */
	uint32_t first, last;         /* leaves of those that stay; FROND_NONE: none */
	struct frond_moves preferred; /* if the rule were relaxed; the first of its moves */
	struct frond_move moves[RECOVER_SHOWN];
	struct frond_moves move_gang; /* if healthy members moved, too */
};

/* What other policies would do about a gang that recover() has left unrepaired, from what is left of that call's budget. */
void recover_otherwise(struct recover_work *work, struct core *core, uint32_t gang, const struct ask *defaults,
		       struct recover_choices *out);

/* The moves that repair a gang, by rank. Outcome: placed (no moves when nothing is lost), or waits.
 * FROND_UNDECIDED when the budget ended before a repair was found. With FROND_PLAN_BOUNDED there may be a better one; the
 * lower bound is true all the same. FROND_SMALL: more than cap; out->count says how many. FROND_LIMIT: more members than a
 * plan may have, or than the what-ifs in hand leave room for. */
int32_t recover(struct recover_work *work, struct core *core, uint32_t gang, const struct ask *defaults,
		struct frond_moves *out, struct frond_move *moves, uint32_t cap);

#endif
