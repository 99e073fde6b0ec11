/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_choose.c - fewest spines, then fewest leaves, then fewest runs, exactly, when no single run will do.
 *
 * The fewest spines follow from their sums. Leaves and runs come from one table over the usable items in fabric order:
 *   most(i, spines, leaves, runs, state) = most members that items i, i+1, … take with that much left to spend,
 * state = is the spine in use already, and is the item just before, adjacent, in use. Walking the table forward, taking
 * an item whenever the rest still suffices, gives the best sets in fabric order. The first one will do, except that
 * `consolidated` must see them all to find the fewest nodes. The table has a fixed size; a search that does not fit is
 * answered greedily and says so (FROND_PLAN_INEXACT).
 */
#include "core/place_work.h"

enum state { SPINE_UNUSED, RUN_ENDED, RUN_OPEN, STATES };

#define IMPOSSIBLE (-1)

struct table {
	struct place_work *work;
	uint32_t count;  /* usable items, in work->list */
	uint32_t spines; /* most that may be spent */
	uint32_t leaves;
	uint32_t runs;
	bool chain; /* every spine in use, one run in each: neither needs counting */
};

static uint64_t cell(const struct table *table, uint32_t i, uint32_t spines, uint32_t leaves, uint32_t runs,
		     enum state state)
{
	uint64_t at = i;
	at = at * (table->spines + 1) + spines;
	at = at * (table->leaves + 1) + leaves;
	at = at * (table->runs + 1) + runs;
	return at * STATES + state;
}

/* The state that item i + 1 sees when item i leaves `state` behind; STATES: not allowed. */
static enum state pass(const struct table *table, uint32_t i, enum state state)
{
	const struct place_work *work = table->work;
	const uint32_t *list = work->list;
	bool last = i + 1 == table->count;
	if (last || item_spine(work, list[i]) != item_spine(work, list[i + 1])) {
		if (table->chain && state == SPINE_UNUSED)
			return STATES;
		return SPINE_UNUSED;
	}
	if (state == RUN_OPEN && list[i + 1] != list[i] + 1)
		return RUN_ENDED;
	return state;
}

static int32_t rest(const struct table *table, uint32_t i, uint32_t spines, uint32_t leaves, uint32_t runs,
		    enum state after)
{
	enum state state = pass(table, i, after);
	if (state == STATES)
		return IMPOSSIBLE;
	if (i + 1 == table->count)
		return 0;
	return table->work->cells[cell(table, i + 1, spines, leaves, runs, state)];
}

static int32_t when_used(const struct table *table, uint32_t i, uint32_t spines, uint32_t leaves, uint32_t runs,
			 enum state state)
{
	uint32_t spine_cost = state == SPINE_UNUSED && !table->chain;
	uint32_t run_cost = state != RUN_OPEN && !table->chain;
	if (spines < spine_cost || leaves < 1 || runs < run_cost || (table->chain && state == RUN_ENDED))
		return IMPOSSIBLE;
	int32_t more = rest(table, i, spines - spine_cost, leaves - 1, runs - run_cost, RUN_OPEN);
	return more == IMPOSSIBLE ? IMPOSSIBLE : more + (int32_t)table->work->item_now[table->work->list[i]];
}

static int32_t when_skipped(const struct table *table, uint32_t i, uint32_t spines, uint32_t leaves, uint32_t runs,
			    enum state state)
{
	if (table->work->item_pin[table->work->list[i]] > 0)
		return IMPOSSIBLE; /* in use already */
	return rest(table, i, spines, leaves, runs, state == SPINE_UNUSED ? SPINE_UNUSED : RUN_ENDED);
}

static void fill_table(const struct table *table)
{
	for (uint32_t i = table->count; i-- > 0;)
		for (uint32_t spines = 0; spines <= table->spines; spines++)
			for (uint32_t leaves = 0; leaves <= table->leaves; leaves++)
				for (uint32_t runs = 0; runs <= table->runs; runs++)
					for (uint32_t state = 0; state < STATES; state++) {
						int32_t used = when_used(table, i, spines, leaves, runs, state);
						int32_t skipped = when_skipped(table, i, spines, leaves, runs, state);
						table->work->cells[cell(table, i, spines, leaves, runs, state)] =
							used > skipped ? used : skipped;
					}
}

struct walk {
	const struct table *table;
	void (*see)(struct place_work *work, void *context);
	void *context;
	uint32_t left; /* sets that may still be seen */
};

/* Every set that items i, i+1, … complete within what is left to spend. Each branch taken leads to one at least. */
static void walk_on(struct walk *walk, uint32_t i, uint32_t spines, uint32_t leaves, uint32_t runs, enum state state,
		    int32_t need)
{
	const struct table *table = walk->table;
	struct place_work *work = table->work;
	if (walk->left == 0)
		return;
	if (i == table->count) {
		walk->see(work, walk->context);
		walk->left--;
		return;
	}
	uint32_t item = work->list[i];
	int32_t with = when_used(table, i, spines, leaves, runs, state);
	if (with != IMPOSSIBLE && with >= need) {
		work->item_used[item] = true;
		walk_on(walk, i + 1, spines - (state == SPINE_UNUSED && !table->chain), leaves - 1,
			runs - (state != RUN_OPEN && !table->chain), pass(table, i, RUN_OPEN),
			need - (int32_t)work->item_now[item]);
		work->item_used[item] = false;
	}
	int32_t without = when_skipped(table, i, spines, leaves, runs, state);
	if (without != IMPOSSIBLE && without >= need) {
		enum state after = state == SPINE_UNUSED ? SPINE_UNUSED : RUN_ENDED;
		walk_on(walk, i + 1, spines, leaves, runs, pass(table, i, after), need);
	}
}

/* Fewest leaves, then fewest runs that suffice, then the sets themselves. */
static void read_table(struct walk *walk)
{
	const struct table *table = walk->table;
	struct place_work *work = table->work;
	int32_t need = (int32_t)work->missing;
	uint32_t leaves = 0, runs = 0;
	while (leaves <= table->leaves &&
	       work->cells[cell(table, 0, table->spines, leaves, table->runs, SPINE_UNUSED)] < need)
		leaves++;
	if (leaves > table->leaves)
		return;
	while (work->cells[cell(table, 0, table->spines, leaves, runs, SPINE_UNUSED)] < need)
		runs++;
	uint32_t most = work->ask->strategy == STRATEGY_CONSOLIDATED ? PLACE_SETS + 1 : 1;
	walk->left = most;
	walk_on(walk, 0, table->spines, leaves, runs, SPINE_UNUSED, need);
	if (most > 1 && walk->left == 0)
		work->answer->plan.flags |= FROND_PLAN_INEXACT;
}

/* Marks spines until they hold what is missing: those with pins, then the largest sums. Returns how many; 0: none do.
 * In work->keys: item_now and item of the usable items inside the marked spines, largest first. */
static uint32_t fewest_spines(struct place_work *work, uint32_t count, uint32_t *inside)
{
	uint64_t held = 0;
	uint32_t groups = 0, taken = 0;
	for (uint32_t i = 0;
	     i < count;) { /* one group per spine: pinned first, then by sum; first item in the low bits */
		uint32_t spine = item_spine(work, work->list[i]), first = i;
		uint64_t sum = 0, pinned = 0;
		for (; i < count && item_spine(work, work->list[i]) == spine; i++) {
			sum += work->item_now[work->list[i]];
			pinned += work->item_pin[work->list[i]];
		}
		work->keys[groups++] = (uint64_t)(pinned == 0) << 63 | (UINT32_MAX / 2 - sum) << 32 | first;
	}
	sort_u64(work->keys, groups);
	for (uint32_t g = 0; g < groups; g++) {
		bool pinned = work->keys[g] >> 63 == 0;
		if (!pinned && held >= work->missing)
			break;
		held += UINT32_MAX / 2 - (work->keys[g] >> 32 & UINT32_MAX / 2);
		assert(taken < FROND_MEMBERS_MAX); /* each holds a member, missing or pinned */
		work->member_list[taken++] = (uint32_t)work->keys[g];
	}
	if (held < work->missing)
		return 0;
	*inside = 0;
	for (uint32_t g = 0; g < taken; g++) {
		uint32_t i = (uint32_t)work->member_list[g];
		uint32_t spine = item_spine(work, work->list[i]);
		for (; i < count && item_spine(work, work->list[i]) == spine; i++) {
			uint32_t item = work->list[i];
			uint64_t unpinned = work->item_pin[item] == 0;
			work->keys[(*inside)++] =
				unpinned << 63 | (uint64_t)(UINT32_MAX / 2 - work->item_now[item]) << 32 | item;
		}
	}
	sort_u64(work->keys, *inside);
	return taken;
}

/* Roomiest items first, pinned ones always: an upper bound on leaves, and the answer when the table is too small. */
static uint32_t greedy(struct place_work *work, uint32_t inside, bool mark)
{
	uint64_t held = 0;
	uint32_t leaves = 0;
	for (uint32_t i = 0; i < inside; i++) {
		uint32_t item = (uint32_t)work->keys[i];
		if (work->item_pin[item] == 0 && held >= work->missing)
			break;
		held += work->item_now[item];
		leaves++;
		if (mark)
			work->item_used[item] = true;
	}
	return leaves;
}

/* One run in each spine without the table: the roomiest, with leaves taken off the far ends while the rest suffices. */
static bool chain_greedy(struct place_work *work, uint32_t lo, uint32_t hi)
{
	uint64_t held =
		place_mark_runs(work, item_spine(work, lo), item_spine(work, hi - 1), FROND_GPUS_MAX, UINT32_MAX);
	if (held < work->missing)
		return false;
	for (uint32_t item = hi; item > lo; item--) {
		bool inner = item - 1 > lo && item_adjacent(work, item - 1) && work->item_used[item - 2];
		bool far_end = work->item_used[item - 1] && (item == hi || !work->item_used[item]);
		if (inner && far_end && work->item_pin[item - 1] == 0 &&
		    held - work->item_now[item - 1] >= work->missing) {
			work->item_used[item - 1] = false;
			held -= work->item_now[item - 1];
		}
	}
	return true;
}

void place_choose(struct place_work *work, uint32_t lo, uint32_t hi, bool chain,
		  void (*see)(struct place_work *work, void *context), void *context)
{
	struct table table = {.work = work, .chain = chain};
	uint64_t pinned = 0;
	uint32_t inside = 0, spines = 0;
	for (uint32_t item = lo; item < hi; item++) {
		work->item_used[item] = false;
		if (item_usable(work, item)) {
			uint32_t last = table.count == 0 ? FROND_NONE : item_spine(work, work->list[table.count - 1]);
			spines += item_spine(work, item) != last;
			work->list[table.count++] = item;
			pinned += work->item_pin[item];
		}
	}
	if (table.count == 0 || pinned != work->pins)
		return;
	if (chain && spines != item_spine(work, hi - 1) - item_spine(work, lo) + 1)
		return; /* a spine without a usable leaf breaks the chain */
	if (chain) {
		table.leaves = table.count;
	} else {
		table.spines = fewest_spines(work, table.count, &inside);
		if (table.spines == 0)
			return;
		table.leaves = greedy(work, inside, false);
		table.runs = table.leaves;
	}
	uint64_t cells = (uint64_t)table.count * (table.spines + 1) * (table.leaves + 1) * (table.runs + 1) * STATES;
	if (cells <= PLACE_CELLS) {
		fill_table(&table);
		read_table(&(struct walk){.table = &table, .see = see, .context = context});
		return;
	}
	if (chain && !chain_greedy(work, lo, hi))
		return;
	if (!chain)
		greedy(work, inside, true);
	work->answer->plan.flags |= FROND_PLAN_INEXACT;
	see(work, context);
}
