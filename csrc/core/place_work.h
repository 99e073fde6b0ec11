/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_work.h - the scratch that the files of the planner share. Private to place*.c.
 *
 * An item is a leaf, or a node without a leaf, which counts as a leaf and a spine of its own: nobody knows what it is
 * close to, so it is close to nothing. Items 0 … leaf_count - 1 are the leaves.
 */
#ifndef FROND_CORE_PLACE_WORK_H
#define FROND_CORE_PLACE_WORK_H

#include "core/place.h"

#define PLACE_CELLS (1u << 20) /* table of the exact search in place_choose.c; beyond it the answer says "inexact" */
#define PLACE_SETS  4096u      /* sets of leaves that are equal so far and compared further */
#define COST_TERMS  6u

struct cost { /* compared term by term, lower first */
	uint32_t term[COST_TERMS];
};

struct place_work {
	const struct fabric *fabric;
	const struct ledger *ledger;
	const struct node *nodes;
	const struct ask *ask;
	struct answer *answer;

	/* the gang */
	uint32_t size;     /* GPUs of a member; 0: sizes differ */
	uint32_t total;    /* members with GPUs */
	uint32_t missing;  /* of them, to be placed */
	uint32_t pins;     /* of them, pinned */
	uint32_t per_node; /* place_mixed.c: most members on a node; `distributed` tries as few as possible */

	/* by position */
	uint16_t *cap;  /* members that fit by capacity */
	uint16_t *now;  /* members that fit today */
	uint16_t *pin;  /* members already there */
	uint16_t *take; /* members that the plan puts there */

	/* by item */
	uint32_t items;
	uint32_t *item_cap;       /* members by capacity */
	uint32_t *item_cap_nodes; /* nodes by capacity */
	uint32_t *item_now;       /* members today */
	uint32_t *item_pin;       /* pinned members */
	uint32_t *item_got;       /* members that fill() gives it */
	bool *item_used;          /* chosen */
	bool *item_slow;          /* its link is under the floor: no gang may cross it */
	bool *item_whole;         /* nobody holds a GPU there */
	uint32_t *item_free;      /* GPUs free there */
	bool *item_best;          /* the choice that place_span.c keeps */

	/* for place_choose.c and sorting */
	uint32_t *list; /* items or positions */
	uint64_t *keys;
	int32_t *cells;

	/* by member */
	uint32_t *member_pos; /* position; FROND_NONE: not placed yet */
	uint64_t *member_list;

	uint32_t lo, hi; /* items that may be used now: all, or the preferred domain */
};

/* place_rule.c: spec 3.3 from capacity alone. False: never fits. */
bool place_rule(struct place_work *work);

/* place_span.c: the best choice of items under the rule, or with the rule relaxed; fills take[]. */
bool place_span(struct place_work *work);
bool place_relaxed(struct place_work *work);
/* In each spine first … last the run that takes most at per_node and per_item; marks them, returns what they take; 0
 * when a spine has none. */
uint64_t place_mark_runs(struct place_work *work, uint32_t first, uint32_t last, uint32_t per_node, uint32_t per_item);
/* The place that comes nearest to the rule today, for the sentence. */
void place_nearest(struct place_work *work);
/* One node for `members` of them: what breaks up least, then the tightest, then the lowest position; lower is better. */
uint64_t place_node_key(const struct place_work *work, uint32_t position, uint32_t members);

/* place_choose.c: fewest spines, leaves, runs among items [lo, hi) that hold `missing` and every pin. Marks item_used and
 * calls see() for the first such set in fabric order, with `consolidated` for every one of them up to PLACE_SETS. With
 * chain every spine of the range is used and in each one run of adjacent leaves. */
void place_choose(struct place_work *work, uint32_t lo, uint32_t hi, bool chain,
		  void (*see)(struct place_work *work, void *context), void *context);

/* place_fill.c: members to the nodes of the used items, no node over per_node, no item over per_item; take[]. */
void place_fill(struct place_work *work, uint32_t lo, uint32_t hi, uint32_t per_node, uint32_t per_item, bool use_all);
/* Members that an item can take, no node over per_node, caps per leaf honoured. */
uint32_t place_hold(const struct place_work *work, uint32_t item, const uint16_t *fit, const uint16_t *pin,
		    uint32_t per_node);
/* Nodes in use among items [lo, hi) after fill. */
uint32_t place_nodes_used(const struct place_work *work, uint32_t lo, uint32_t hi);

/* place_mixed.c: members of several sizes. */
bool place_mixed_rule(struct place_work *work);
bool place_mixed_span(struct place_work *work);
bool place_mixed_relaxed(struct place_work *work);
void place_mixed_nearest(struct place_work *work);

static inline uint32_t item_start(const struct place_work *work, uint32_t item)
{
	const struct fabric *fabric = work->fabric;
	if (item < fabric->leaf_count)
		return fabric->leaf_start[item];
	return fabric->leaf_start[fabric->leaf_count] + (item - fabric->leaf_count);
}

static inline uint32_t item_end(const struct place_work *work, uint32_t item)
{
	return item_start(work, item + 1);
}

static inline uint32_t item_spine(const struct place_work *work, uint32_t item)
{
	const struct fabric *fabric = work->fabric;
	return item < fabric->leaf_count ? fabric->leaf_spine[item] : fabric->spine_count + (item - fabric->leaf_count);
}

static inline bool item_adjacent(const struct place_work *work, uint32_t item) /* to the one before it */
{
	return item > 0 && item < work->fabric->leaf_count && item_spine(work, item) == item_spine(work, item - 1);
}

/* An item that a gang over several items may use. */
static inline bool item_usable(const struct place_work *work, uint32_t item)
{
	return !work->item_slow[item] && (work->item_now[item] > 0 || work->item_pin[item] > 0);
}

/* The most that one gang could have: a slow item is of use only to a gang that stays inside it. */
static inline uint64_t place_most(const struct place_work *work, const uint32_t *by_item)
{
	uint64_t sum = 0, most = 0;
	for (uint32_t item = 0; item < work->items; item++) {
		if (!work->item_slow[item])
			sum += by_item[item];
		else if (by_item[item] > most)
			most = by_item[item];
	}
	return sum > most ? sum : most;
}

static inline int cost_compare(const struct cost *a, const struct cost *b)
{
	for (uint32_t i = 0; i < COST_TERMS; i++)
		if (a->term[i] != b->term[i])
			return a->term[i] < b->term[i] ? -1 : 1;
	return 0;
}

/* Heap sort: no memory, same result everywhere. */
void sort_u64(uint64_t *keys, uint32_t count);

#endif
