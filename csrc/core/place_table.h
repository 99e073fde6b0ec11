/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_table.h - what place_table.c and place_price.c share: the items in question, what they may cost, and prices.
 */
#ifndef FROND_CORE_PLACE_TABLE_H
#define FROND_CORE_PLACE_TABLE_H

#include "core/place_work.h"

enum state { SPINE_UNUSED, RUN_ENDED, RUN_OPEN, STATES };

#define SPINE (1ull << 48)
#define LEAF  (1ull << 32)
#define RUN   (1ull << 16)

struct point {
	uint32_t high, low; /* cost */
	uint32_t members;   /* not over what is missing */
};
/* A row is STATES headers {where its points begin, from the first header; how many; fewest members that they can do with}
 * and then the points. */

#define FINE 8 /* prices and worths are in eighths of a member */

struct prices {
	int64_t leaf, spine, run;
	int64_t least;          /* what a set that will do is worth at the least after them */
	int32_t *worth[STATES]; /* by item and state: most that the items before it can be worth */
};

struct table {
	struct place_work *work;
	uint32_t count; /* usable items, in work->scratch.list */
	bool chain;     /* every spine in use, one run in each: neither needs counting */
	bool free;      /* no cost: whatever holds is a candidate */
	bool any_runs;  /* runs do not count */
	bool nodes;     /* nodes count */
	bool failed;    /* the scratch did not suffice */

	/* what will do, from above */
	uint32_t spines, leaves, runs;
	uint64_t highest;        /* cost */
	struct prices prices[2]; /* good ones, and none at all */
	int64_t pick_price;      /* the one at which price_pick() finds the best set */

	/* by item */
	uint16_t *most;  /* members */
	uint32_t *ends;  /* behind the last item of its spine */
	uint32_t *where; /* its row, in the pool; NOT_KEPT */
	uint32_t *rest;  /* of the scratch */

	/* the items before those were dropped that lead nowhere with so many runs */
	uint32_t *all, all_count;
	uint16_t *all_most;

	struct point *pool;
	uint32_t room, top, kept_top; /* points */
	uint32_t stride;              /* rows 0, stride, 2 stride, … are kept */
	uint32_t options;             /* nodes: numbers of them in an item, in work->member_list with what they hold */
	struct point *spare[2];       /* nodes: lists that are being merged */
	uint64_t steps, steps_most;   /* of a row */
};

static inline uint32_t pinned(const struct table *table, uint32_t i)
{
	return table->work->gang.pins == 0 ? 0 : item_pin(table->work, table->work->scratch.list[i]);
}

static inline bool adjacent(const struct table *table, uint32_t i) /* to the one before, under the same spine */
{
	return table->work->scratch.list[i] == table->work->scratch.list[i - 1] + 1;
}

/* ---- place_price.c ---------------------------------------------------------------------------------------------------- */

struct priced {
	int64_t sum;  /* of the spines that are worth most, as many as will do, and of every one that must be in use */
	int64_t last; /* what the least of those that need not is worth; INT64_MAX: none of them will do */
	int64_t next; /* and the best of those left out; INT64_MIN: there are none */
};

/* Where each item's spine ends; after a change of the list. */
void price_ends(struct table *table);
/* Fewest spines that hold what is missing. */
uint32_t price_fewest_spines(const struct table *table);
struct priced price_spines(const struct table *table, const struct prices *prices);
/* The price of a leaf at which most leaves are seen to be needed; that of a spine which follows. */
int64_t price_leaf(const struct table *table);
int64_t price_spine(const struct table *table, const struct priced *priced);
/* Prices for leaf, run and spine, and the fewest runs that they do not rule out: prices[0], runs. What is to spare. */
int64_t price_runs(struct table *table);
/* Most that the items before each one can be worth, and what is needed. */
void price_worths(const struct table *table, struct prices *prices);
/* Leaves out items that lead nowhere at prices[0], with so much to spare; or all spines that nobody forces into use. */
void price_drop(struct table *table, int64_t spare, bool only_forced);
/* A good set at once, with the fewest spines: where[i] = 1. How many leaves it has; UINT32_MAX: it does not hold what is
 * missing. And the candidate that it is. */
uint32_t price_pick(struct table *table, int64_t price);
void price_see_picked(struct table *table);

#endif
