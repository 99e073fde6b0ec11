/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_table.c - fewest spines, then fewest leaves, then fewest runs (and nodes), exactly, when no single run will do.
 *
 *   row(i, state) = every way to use items i, i+1, … that no other beats, as points (cost, members): ascending costs,
 *   each with the most members that it can buy, more than any lower cost does. A cost is (spines, leaves, runs, nodes) in
 *   one integer, compared like one; state = is the spine in use already, and is the item just before, adjacent, in use.
 *
 * Row i follows from row i + 1 by merging: with the item, or without it. Rows are as long as there are costs that matter,
 * not as there are members, and prices keep them short (place_price.c): a point is left out when even the most that the
 * items before i can be worth leads to no set within the spines, leaves and runs that will do. Spines come first, then
 * leaves, then runs from a number that cannot be too high upwards, nodes at last, each with what is known already as a
 * bound.
 *
 * Walking forward, giving an item as many members as the rest of the cost allows, then one fewer, yields every set that
 * attains the least cost, in the order that reference 3.4 asks for. When not all rows fit into the scratch every second one is
 * dropped, and again; those between two that are left are computed again when the walk comes there.
 *
 * The points are paid from the budget of the call. When it ends before the least cost is known, a set is taken that has
 * the fewest spines and few leaves: the first answer is always found.
 */
#include "core/place_table.h"

#define NOT_KEPT UINT32_MAX
#define NO_WAY   (-1)

static uint64_t point_cost(const struct point *point)
{
	return (uint64_t)point->high << 32 | point->low;
}

/* The state that item i + 1 sees when item i leaves `state` behind; STATES: not allowed. */
static enum state pass(const struct table *table, uint32_t i, enum state state)
{
	if (table->free && !table->chain)
		return SPINE_UNUSED; /* it makes no difference */
	if (table->ends[i] == i + 1)
		return table->chain && state == SPINE_UNUSED ? STATES : SPINE_UNUSED;
	if (state == RUN_OPEN && !adjacent(table, i + 1))
		return RUN_ENDED;
	return state;
}

static enum state skipped(enum state state)
{
	return state == SPINE_UNUSED ? SPINE_UNUSED : RUN_ENDED;
}

static bool may_use(const struct table *table, enum state state)
{
	return !table->chain || state != RUN_ENDED;
}

/* What using an item costs in this state, without nodes. */
static uint64_t use_cost(const struct table *table, enum state state)
{
	if (table->free)
		return 0;
	return LEAF + (state == SPINE_UNUSED && !table->chain ? SPINE : 0) +
	       (state != RUN_OPEN && !table->chain && !table->any_runs ? RUN : 0);
}

/* ---- room ----------------------------------------------------------------------------------------------------------- */

/* What stands behind the numbers by item: all of them once more, worths, and the points of rows. False: there is no
 * room. */
static bool lay_out_rows(struct table *table)
{
	uint32_t *words = table->rest + 2 * table->count; /* keys_of() */
	int64_t bytes = table->work->scratch.end - (uint8_t *)words;
	int64_t taken = (2 + 2 * STATES) * (int64_t)(table->count * sizeof *words);
	if (bytes < taken + 2 * STATES * (int64_t)sizeof *table->pool)
		return false;
	table->all = words;
	table->all_most = (uint16_t *)(words + table->count);
	table->all_count = table->count;
	memcpy(table->all, table->work->scratch.list, table->count * sizeof *words);
	memcpy(table->all_most, table->most, table->count * sizeof *table->most);
	words += 2 * table->count;
	for (uint32_t i = 0; i < 2 * STATES; i++, words += table->count)
		table->prices[i / STATES].worth[i % STATES] = (int32_t *)words;
	table->pool = (struct point *)words;
	table->room = (uint32_t)((uint64_t)(bytes - taken) / sizeof *table->pool);
	return true;
}

static void take_all(struct table *table)
{
	table->count = table->all_count;
	memcpy(table->work->scratch.list, table->all, table->count * sizeof *table->all);
	memcpy(table->most, table->all_most, table->count * sizeof *table->most);
	price_ends(table);
}

/* ---- rows -------------------------------------------------------------------------------------------------------------- */

static uint32_t row_points(const struct point *row)
{
	return STATES + row[0].low + row[1].low + row[2].low;
}

struct list {
	const struct point *at, *end;
};

static struct list list_of(const struct point *row, enum state state)
{
	if (state == STATES)
		return (struct list){NULL, NULL};
	const struct point *at = row + row[state].high;
	return (struct list){at, at + row[state].low};
}

/* Merges `with`, at so much more for so many members more, and `without` into out: of two points that cost the same the
 * one with more members, nothing that does not have more than all before, and nothing from which even the best of the
 * items before leads to no set that will do. */
static uint32_t merge(const struct table *table, uint32_t i, enum state state, struct list with, uint64_t cost,
		      uint32_t members, struct list without, struct point *out)
{
	const struct prices *prices = &table->prices[0];
	const uint32_t missing = table->work->gang.missing;
	int64_t leaf = prices->leaf, spine = prices->spine, run = prices->run, least = INT64_MIN, fewest = INT64_MIN;
	uint32_t count = 0;
	int64_t most = NO_WAY;
	if (!table->free) {
		least = prices->least - prices->worth[state][i];
		fewest = (table->prices[1].least - table->prices[1].worth[state][i] + FINE - 1) / FINE;
	}
	while (most < missing) {
		uint64_t a = with.at < with.end ? point_cost(with.at) + cost : UINT64_MAX;
		uint64_t b = without.at < without.end ? point_cost(without.at) : UINT64_MAX;
		uint64_t lower = a <= b ? a : b;
		uint32_t held;
		if (lower > table->highest)
			break;
		if (a <= b) {
			held = with.at++->members + members;
			held = held < missing ? held : missing;
		} else {
			held = without.at++->members;
		}
		if (held <= most)
			continue;
		most = held;
		if (count > 0 && point_cost(&out[count - 1]) == lower)
			count--;
		int64_t worth = FINE * (int64_t)held - leaf * (int64_t)(lower >> 32 & UINT16_MAX) -
				spine * (int64_t)(lower >> 48) - run * (int64_t)(lower >> 16 & UINT16_MAX);
		out[count] = (struct point){(uint32_t)(lower >> 32), (uint32_t)lower, held};
		count += held == missing || (worth >= least && held >= fewest);
	}
	return count;
}

/* Can item i be met in this state? */
static bool state_occurs(const struct table *table, uint32_t i, enum state state)
{
	if (state == SPINE_UNUSED)
		return true;
	return i > 0 && table->ends[i - 1] != i && (state == RUN_ENDED || adjacent(table, i));
}

static uint32_t item_nodes(const struct table *table, uint32_t i)
{
	uint32_t item = table->work->scratch.list[i];
	return item_end(table->work, item) - item_start(table->work, item);
}

/* Points that row i may have. */
static uint64_t row_bound(const struct table *table, uint32_t i, const struct point *next)
{
	uint64_t with = list_of(next, pass(table, i, RUN_OPEN)).end - list_of(next, pass(table, i, RUN_OPEN)).at;
	uint64_t options = table->nodes ? item_nodes(table, i) + 1u : 1, points = STATES;
	uint64_t most = (uint64_t)table->work->gang.missing + 1; /* each has more members than the one before */
	for (uint32_t state = 0; state < STATES; state++) {
		if (!state_occurs(table, i, state))
			continue;
		struct list without = list_of(next, pass(table, i, skipped(state)));
		uint64_t sum = with * options + (uint64_t)(without.end - without.at);
		points += sum < most ? sum : most;
	}
	return points;
}

/* Merges one number of nodes that the item may open after the other. */
static uint32_t merge_nodes(struct table *table, uint32_t i, enum state state, struct list with, struct list without,
			    struct point *out)
{
	struct place_work *work = table->work;
	uint32_t count = 0, turn = 0;
	for (uint32_t nodes = pinned(table, i) == 0; nodes < table->options && table->steps < table->steps_most;
	     nodes++) {
		table->steps += (uint64_t)(with.end - with.at) + (uint64_t)(without.end - without.at);
		count = merge(table, i, state, with, use_cost(table, state) + nodes, (uint32_t)work->member_list[nodes],
			      without, table->spare[turn]);
		without = (struct list){table->spare[turn], table->spare[turn] + count};
		turn = 1 - turn;
	}
	count = (uint32_t)(without.end - without.at);
	if (count > 0) /* an empty row has no address */
		memcpy(out, without.at, count * sizeof *out);
	return count;
}

static void compute_row(struct table *table, uint32_t i, const struct point *next, struct point *row)
{
	struct place_work *work = table->work;
	uint32_t pin = pinned(table, i), at = STATES;
	enum state used = pass(table, i, RUN_OPEN);
	if (table->nodes)
		table->options = place_members_upto(work, work->scratch.list[i], table->most[i], work->member_list);
	table->steps = 0;
	for (uint32_t state = 0; state < STATES; state++) {
		row[state] = (struct point){.high = at, .low = 0, .members = UINT32_MAX};
		if (!state_occurs(table, i, state))
			continue;
		enum state after = pin > 0 ? STATES : pass(table, i, skipped(state)); /* pinned: in use already */
		struct list none = {NULL, NULL}, without = list_of(next, after);
		struct list with = may_use(table, state) ? list_of(next, used) : none;
		if (after != STATES)
			row[state].members = next[after].members;
		if (may_use(table, state) && next[used].members != UINT32_MAX)
			row[state].members = min_u32(row[state].members, next[used].members + (pin == 0));
		table->steps += 4 + (uint64_t)(with.end - with.at) + (uint64_t)(without.end - without.at);
		row[state].low = table->nodes ? merge_nodes(table, i, state, with, without, row + at)
					      : merge(table, i, state, with, use_cost(table, state), table->most[i],
						      without, row + at);
		at += row[state].low;
	}
}

/* Drops every second of the rows that are kept; `last` is the one that the next follows from. */
static void thin(struct table *table, uint32_t last)
{
	uint32_t top = table->where[table->count] + row_points(table->pool + table->where[table->count]);
	table->stride *= 2;
	for (uint32_t i = table->count; i-- > last;) {
		if (table->where[i] == NOT_KEPT)
			continue;
		if (i % table->stride != 0 && i != last) {
			table->where[i] = NOT_KEPT;
			continue;
		}
		uint32_t points = row_points(table->pool + table->where[i]);
		memmove(table->pool + top, table->pool + table->where[i], points * sizeof *table->pool);
		table->where[i] = top;
		top += points;
	}
	table->top = top;
}

/* All rows from the last to the first; as many are kept as fit into half of the room. Where not all are, walking through
 * them computes each once more, which is paid for now. False: the budget has ended, or there is no room. */
static bool compute_rows(struct table *table)
{
	struct point *pool = table->pool;
	for (uint32_t i = 0; i < table->count; i++)
		table->where[i] = NOT_KEPT;
	for (uint32_t state = 0; state < STATES; state++) { /* behind the last item nothing may be left over */
		pool[state] = (struct point){.high = STATES + state, .low = 1, .members = 0};
		pool[STATES + state] = (struct point){0, 0, 0};
	}
	table->where[table->count] = 0;
	table->top = 2 * STATES;
	table->stride = 1;
	uint64_t steps = 0;
	for (uint32_t i = table->count; i-- > 0;) {
		uint64_t bound = row_bound(table, i, pool + table->where[i + 1]);
		while (table->top + bound > table->room / 2) {
			if (table->stride >= 2 * table->count || table->top + bound > table->room)
				break;
			thin(table, i + 1);
		}
		if (table->top + bound > table->room)
			return false;
		table->steps_most = table->work->budget.left / STEPS_POINT + 1;
		compute_row(table, i, pool + table->where[i + 1], pool + table->top);
		steps += table->steps;
		if (!budget_take(&table->work->budget, STEPS_POINT * table->steps))
			return false;
		if (table->where[i + 1] != 0 && (i + 1) % table->stride != 0 && table->stride > 1) {
			uint32_t points = row_points(pool + table->top);
			memmove(pool + table->where[i + 1], pool + table->top, points * sizeof *pool);
			table->top = table->where[i + 1];
			table->where[i + 1] = NOT_KEPT;
		}
		table->where[i] = table->top;
		table->top += row_points(pool + table->top);
	}
	table->kept_top = table->top;
	return table->stride == 1 || budget_take(&table->work->budget, STEPS_POINT * steps);
}

/* Row i; those up to the next one that is kept are computed again with it. NULL: there is no room. */
static const struct point *row_at(struct table *table, uint32_t i)
{
	if (table->where[i] != NOT_KEPT)
		return table->pool + table->where[i];
	uint32_t first = i / table->stride * table->stride + 1, last = first - 1 + table->stride;
	last = last < table->count ? last : table->count;
	bool emptied = false;
	for (uint32_t j = last; j-- > first;) {
		if (table->where[j] != NOT_KEPT)
			continue;
		uint64_t bound = row_bound(table, j, table->pool + table->where[j + 1]);
		if (table->top + bound > table->room) {
			if (emptied)
				return NULL;
			emptied = true;
			table->top = table->kept_top;
			for (uint32_t k = 0; k < table->count; k++)
				table->where[k] = k % table->stride == 0 ? table->where[k] : NOT_KEPT;
			j = last;
			continue;
		}
		table->steps_most = UINT64_MAX;
		compute_row(table, j, table->pool + table->where[j + 1], table->pool + table->top);
		table->where[j] = table->top;
		table->top += row_points(table->pool + table->top);
		place_pay(table->work, STEPS_POINT * table->steps);
	}
	return table->pool + table->where[i];
}

struct range { /* of members for the items that follow */
	int64_t least, most;
};

/* How many members items i … can take at this cost, or less, after item i - 1 has left `after` behind. */
static struct range within(struct table *table, uint32_t i, enum state after, uint64_t cost)
{
	const struct range none = {.least = 0, .most = NO_WAY};
	if (after == STATES)
		return none;
	if (table->free && !table->chain)
		return (struct range){0, (int64_t)table->work->scratch.sum[i]};
	const struct point *row = row_at(table, i);
	if (row == NULL) {
		table->failed = true;
		return none;
	}
	struct list list = list_of(row, after);
	if (list.at == list.end || point_cost(list.at) > cost)
		return none;
	const struct point *last = list.at; /* that does not cost more */
	for (size_t count = (size_t)(list.end - list.at); count > 1;) {
		size_t half = count / 2;
		last = point_cost(last + half) <= cost ? last + half : last;
		count -= half;
	}
	return (struct range){row[after].members, last->members};
}

/* ---- candidates ---------------------------------------------------------------------------------------------------------- */

struct walk {
	struct table *table;
	uint32_t nodes;    /* that the item in hand opens, where they count */
	uint64_t cost;     /* to attain */
	uint32_t last_pin; /* index of the last item that must be in use; FROND_NONE: none */
};

/* The counts up to `from` with which the frame's item leaves the rest room at no higher cost: the largest, and where
 * nodes do not count also the least, all between them being good. False: none. */
static bool next_counts(struct walk *walk, struct frame *frame, uint32_t from)
{
	struct table *table = walk->table;
	struct place_work *work = table->work;
	uint64_t cost = frame->cost + use_cost(table, frame->state);
	enum state after = pass(table, frame->index, RUN_OPEN);
	uint32_t options = 1, nodes = 0;
	if (!may_use(table, frame->state) || cost > walk->cost || from < frame->least)
		return false;
	if (table->nodes) {
		within(table, frame->index + 1, after, 0); /* a row that is computed now would use the same list */
		place_pay(work, STEPS_VISIT + STEPS_OPTION * (uint64_t)item_nodes(table, frame->index));
		options = place_members_upto(work, frame->at, from, work->member_list);
		nodes = options - 1;
	}
	for (;; nodes--) {
		int64_t low = frame->least, high = from;
		if (table->nodes) {
			high = (int64_t)work->member_list[nodes] < high ? (int64_t)work->member_list[nodes] : high;
			if (nodes > 0 && (int64_t)work->member_list[nodes - 1] >= low)
				low = (int64_t)work->member_list[nodes - 1] + 1;
		}
		if (cost + nodes <= walk->cost) {
			struct range rest = within(table, frame->index + 1, after, walk->cost - cost - nodes);
			high = high < frame->rest - rest.least ? high : frame->rest - rest.least;
			low = low > frame->rest - rest.most ? low : frame->rest - rest.most;
			if (rest.most != NO_WAY && low <= high) {
				frame->count = (uint16_t)high;
				walk->nodes = nodes;
				frame->least = table->nodes ? frame->least : (uint16_t)low;
				return true;
			}
		}
		if (nodes == 0)
			return false;
	}
}

static bool skip_works(struct walk *walk, uint32_t i, enum state state, uint32_t rest, uint64_t cost)
{
	struct table *table = walk->table;
	if (pinned(table, i) > 0)
		return false;
	struct range after = within(table, i + 1, pass(table, i, skipped(state)), walk->cost - cost);
	return after.most >= rest && after.least <= rest;
}

/* Without cost and chain there are sums instead. */
static uint32_t walk_most(const struct table *table, uint32_t i)
{
	const uint64_t *sum = table->work->scratch.sum;
	return table->most != NULL ? table->most[i] : (uint32_t)(sum[i] - sum[i + 1]);
}

static void walk_on(struct walk *walk)
{
	struct table *table = walk->table;
	struct place_work *work = table->work;
	uint32_t i = 0, rest = work->gang.missing;
	enum state state = SPINE_UNUSED;
	uint64_t cost = 0;
	struct gain gain = GAIN_NONE;
	bool down = true;
	work->candidates.depth = 0;
	work->candidates.same = 0;
	while (!work->candidates.stop && !table->failed) {
		struct frame frame;
		if (!down) { /* fewer members for the last item, or none */
			if (work->candidates.depth == 0)
				return;
			frame = work->candidates.frames[--work->candidates.depth];
			work->candidates.same = min_u32(work->candidates.same, work->candidates.depth);
			bool fewer = frame.count > frame.least;
			if (fewer && table->nodes)
				fewer = next_counts(walk, &frame, frame.count - 1);
			else if (fewer)
				frame.count--;
			if (!fewer) {
				if (!frame.skip)
					continue;
				i = frame.index + 1;
				state = pass(table, frame.index, skipped(frame.state));
				rest = frame.rest;
				cost = frame.cost;
				gain = frame.before;
				down = true;
				continue;
			}
		} else {
			bool pin = walk->last_pin != FROND_NONE && i <= walk->last_pin;
			if (i == table->count || (rest == 0 && !pin && !table->chain)) {
				place_see(work, &gain);
				down = false;
				continue;
			}
			uint32_t item = work->scratch.list[i];
			place_pay(work, STEPS_VISIT);
			frame = (struct frame){.at = item,
					       .index = i,
					       .least = pinned(table, i) == 0,
					       .rest = (uint16_t)rest,
					       .state = (uint8_t)state,
					       .cost = cost,
					       .before = gain};
			bool skip = skip_works(walk, i, state, rest, cost);
			if (!next_counts(walk, &frame, min_u32(walk_most(table, i), rest))) {
				down = skip;
				state = pass(table, i, skipped(state));
				i++;
				continue;
			}
			frame.skip = skip;
		}
		work->candidates.frames[work->candidates.depth++] = frame;
		gain = frame.before;
		place_pay(work, place_gain_kept(work, frame.at, frame.count, &gain));
		cost = frame.cost + use_cost(table, frame.state) + walk->nodes;
		rest = frame.rest - frame.count;
		state = pass(table, frame.index, RUN_OPEN);
		i = frame.index + 1;
		down = true;
	}
}

/* ---- the whole ------------------------------------------------------------------------------------------------------------- */

/* The numbers by item, behind the list. */
static void lay_out_items(struct table *table)
{
	uint32_t *words = table->work->scratch.list + table->count, count = table->count;
	table->ends = words;
	table->where = words + count; /* and one behind the last item */
	table->most = (uint16_t *)(words + 2 * count + 1);
	words += 2 * count + 1 + (count + 1) / 2;
	table->rest = words + ((uintptr_t)words % sizeof(uint64_t) != 0); /* keys_of() */
	assert((uint8_t *)(table->rest + 2 * count) <= table->work->scratch.end);
	for (uint32_t i = 0; i < count; i++)
		table->most[i] = (uint16_t)min_u32(item_most(table->work, table->work->scratch.list[i]),
						   table->work->gang.missing);
	price_ends(table);
}

/* The least cost of all members; UINT64_MAX: none within `highest`. False: the budget has ended first. */
static bool least_cost(struct table *table, uint64_t *cost)
{
	for (uint32_t k = 0; k < 2 && !table->free; k++)
		price_worths(table, &table->prices[k]);
	if (!compute_rows(table))
		return false;
	const struct point *row = table->pool + table->where[0];
	struct list list = list_of(row, SPINE_UNUSED);
	bool found = list.at < list.end && list.end[-1].members >= table->work->gang.missing &&
		     row[SPINE_UNUSED].members <= table->work->gang.missing;
	*cost = found ? point_cost(list.end - 1) : UINT64_MAX;
	return true;
}

static uint32_t leaves_of(uint64_t cost)
{
	return (uint32_t)(cost >> 32) & UINT16_MAX;
}

/* The fewest spines, then bounds for the fewest leaves. Between them a table without runs decides; it is short. */
static bool solve_leaves(struct table *table, uint32_t most, uint64_t *cost)
{
	int64_t missing = FINE * (int64_t)table->work->gang.missing;
	struct prices *prices = &table->prices[0];
	*cost = UINT64_MAX;
	table->spines = table->chain ? 0 : price_fewest_spines(table);
	prices->leaf = price_leaf(table);
	struct priced priced = price_spines(table, prices);
	prices->spine = price_spine(table, &priced);
	uint32_t picked = price_pick(table, prices->leaf), plain = price_pick(table, 0);
	table->pick_price = picked <= plain ? prices->leaf : 0;
	table->leaves = min_u32(min_u32(picked, plain), most);
	int64_t lack = missing - priced.sum, spare = prices->leaf * table->leaves - lack;
	if (spare < 0)
		return true; /* more leaves than `most` */
	if (!table->chain)
		price_drop(table, spare, priced.last == INT64_MAX);
	if (!lay_out_rows(table))
		return false;
	*cost = table->spines * SPINE + table->leaves * LEAF;
	if (table->chain || spare < prices->leaf)
		return true; /* one leaf fewer would not do */
	table->any_runs = true;
	table->highest = *cost;
	bool solved = least_cost(table, cost);
	table->any_runs = false;
	table->leaves = leaves_of(*cost);
	return solved;
}

/* The fewest runs: from a number that cannot be too high upwards. */
static bool solve_runs(struct table *table, uint64_t *cost)
{
	uint64_t leaves = *cost;
	for (table->runs = table->spines;; table->runs++) {
		take_all(table);
		int64_t spare = price_runs(table);
		price_drop(table, spare, false);
		table->highest = leaves + table->runs * RUN;
		if (!least_cost(table, cost))
			return false;
		if (*cost != UINT64_MAX)
			return true;
		assert(table->runs < table->leaves);
	}
}

/* Nodes at last: few sets are left among which they are to be counted. */
static bool solve_nodes(struct table *table, uint64_t *cost)
{
	uint32_t lists = table->work->gang.missing + 1;
	if (table->room < 4 * (uint64_t)lists)
		return false;
	table->room -= 2 * lists;
	table->spare[0] = table->pool + table->room;
	table->spare[1] = table->spare[0] + lists;
	table->nodes = true;
	table->highest = *cost + RUN - 1;
	table->leaves = leaves_of(*cost);
	table->runs = (uint32_t)*cost >> 16;
	return least_cost(table, cost);
}

/* The least cost; UINT64_MAX: it is over *most. False: the budget or the scratch did not suffice. */
static bool solve(struct table *table, uint64_t most, uint64_t *cost)
{
	if (table->free) {
		table->highest = UINT64_MAX - 1;
		return lay_out_rows(table) && least_cost(table, cost);
	}
	if (!solve_leaves(table, most == UINT64_MAX ? UINT32_MAX : leaves_of(most), cost))
		return false;
	if (*cost == UINT64_MAX)
		return true;
	table->highest = *cost;
	if (!(table->chain ? least_cost(table, cost) : solve_runs(table, cost)))
		return false;
	return *cost == UINT64_MAX || !place_shares(table->work) || solve_nodes(table, cost);
}

/* Without an exact answer: what was found before, or a set that is good. */
static void settle_for(struct table *table)
{
	struct place_work *work = table->work;
	work->budget.spent = true;
	if (!work->candidates.best.found && price_pick(table, table->pick_price) != UINT32_MAX)
		price_see_picked(table);
	work->candidates.stop = true;
}

static bool same_or_better(struct place_work *work, uint64_t cost, uint64_t *most)
{
	if (cost > *most || cost == UINT64_MAX)
		return false;
	if (cost < *most) {
		*most = cost;
		work->candidates.best.found = false;
		work->candidates.seen = 0;
	}
	return true;
}

void place_table(struct place_work *work, uint32_t lo, uint32_t hi, bool chain, bool free, uint64_t *most)
{
	struct table table = {.work = work, .chain = chain, .free = free};
	struct walk walk = {.table = &table, .last_pin = FROND_NONE};
	uint64_t members = 0, pins = 0;
	for (uint32_t item = lo; item < hi; item++)
		if (item_usable(work, item) && (item_most(work, item) > 0 || item_pin(work, item) > 0)) {
			work->scratch.list[table.count++] = item;
			members += item_most(work, item);
			pins += item_pin(work, item);
		}
	if (members < work->gang.missing || pins != work->gang.pins || table.count == 0)
		return;
	if (free && !chain) {
		work->scratch.sum[table.count] = 0;
		for (uint32_t i = table.count; i-- > 0;)
			work->scratch.sum[i] = work->scratch.sum[i + 1] + item_most(work, work->scratch.list[i]);
	} else {
		lay_out_items(&table);
		if (!solve(&table, *most, &walk.cost)) {
			settle_for(&table);
			return;
		}
	}
	if (!same_or_better(work, walk.cost == UINT64_MAX ? UINT64_MAX : walk.cost + segments_base(work), most))
		return;
	for (uint32_t i = 0; work->gang.pins > 0 && i < table.count; i++)
		walk.last_pin = pinned(&table, i) > 0 ? i : walk.last_pin;
	walk_on(&walk);
	if (table.failed)
		settle_for(&table);
}
