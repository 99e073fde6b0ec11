/* SPDX-License-Identifier: Apache-2.0 */
/*
 * defrag.h - reference 7: the fewest moves of members of other gangs after which a gang fits with its rule met. A move
 * takes one bound member to another node; a gang of which a member moves meets the rule that it met before. Only the
 * final state counts: the moves are a set. Pods in no gang and reserved ones never move.
 * State in, moves out; what it tries it takes back. Never moves anything.
 *
 * Exact on small clusters, as far as DEFRAG_PLANS goes; on larger ones a good answer with an honest lower bound.
 */
#ifndef FROND_CORE_DEFRAG_H
#define FROND_CORE_DEFRAG_H

#include "core/recover.h"
#include "core/span.h"

#define DEFRAG_NODES   16u    /* in a small cluster */
#define DEFRAG_MEMBERS 64u    /* of gangs in a small cluster */
#define DEFRAG_DEPTH   8u     /* moves that the exact search looks at */
#define DEFRAG_PLANS   32768u /* plans that it makes */
#define DEFRAG_HOLES   32u    /* domains that are tried in a larger one */
#define DEFRAG_MOVES   1024u  /* that one answer may have there */
#define DEFRAG_GANGS   256u   /* of which members move there */

struct moved_gang {
	struct frond_key key;
	uint32_t id;
	struct terms terms;
	struct rule rule; /* what it must keep; none when it does not meet its rule today */
};

struct mover { /* a member of a gang, and where it goes */
	struct frond_key pod;
	uint32_t entry, gang; /* gang: index in gangs */
	uint32_t rank, gpus, from, to, mask;
	uint64_t ring;
	bool moves; /* false: may, but need not; reserved ones may not */
	bool fixed;
};

struct defrag_work {
	struct roster roster;       /* of the gang in hand; its entries serve as positions too */
	struct frond_place *places; /* of the asked gang, then of the gang in hand */
	struct frond_room *room;    /* exceptions for the gang in hand: DEFRAG_MOVES */
	uint32_t room_count;
	struct mover *movers, *best;
	uint32_t count, best_count;
	struct moved_gang *gangs;
	uint32_t gang_count;
};

void defrag_layout(struct defrag_work *work, struct arena *arena, uint32_t pods);

/* Outcome: placed (no moves when it fits already); waits when no set of moves makes room; FROND_UNDECIDED when none was
 * found within the bounds on the search. FROND_PLAN_BOUNDED: a smaller set may exist. `defaults`: caps and weights of the
 * other gangs. FROND_SMALL: more than cap moves; out->count says how many. FROND_LIMIT: all that was found is over
 * DEFRAG_MOVES or DEFRAG_GANGS, or what-ifs in hand leave no room for it. */
int32_t defrag(struct defrag_work *work, struct core *core, const struct ask *ask, const struct ask *defaults,
	       struct frond_moves *out, struct frond_move *moves, uint32_t cap);

#endif
