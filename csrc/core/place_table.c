/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_table.c - fewest spines, then fewest leaves, then fewest runs (and nodes), exactly, when no single run will do.
 *
 *   least(i, state, m) = least cost with which items i, i+1, … take exactly m members, a cost being (spines, leaves,
 *   runs, nodes) in one integer, compared like one; state = is the spine in use already, and is the item just before,
 *   adjacent, in use.
 *
 * Row i follows from row i + 1. Walking forward, giving an item as many members as the rest of the cost allows, then one
 * fewer, yields every set that attains the least cost, in the order that spec 3.4 asks for. Rows that do not fit into
 * the scratch are computed again when they are needed, from the nearest row above that is kept: the answer is exact at any
 * size and only takes longer.
 */
#include "core/place_work.h"

enum state { SPINE_UNUSED, RUN_ENDED, RUN_OPEN, STATES };

#define IMPOSSIBLE UINT64_MAX
#define SPINE      (1ull << 48)
#define LEAF       (1ull << 32)
#define RUN        (1ull << 16)

struct table {
	struct place_work *work;
	uint32_t count;         /* usable items, in work->scratch.list */
	bool chain;             /* every spine in use, one run in each: neither needs counting */
	bool free;              /* no cost: whatever holds is a candidate */
	bool nodes;             /* nodes count */
	uint32_t width;         /* members + 1 */
	uint64_t *roll[2];      /* two rows while computing */
	uint64_t *rows;         /* that are kept: marks, then a stack */
	uint32_t *index;        /* which one each of them is */
	uint32_t stride, marks; /* rows 0, stride, 2 stride, … */
	uint32_t slots, used;   /* of the stack */
	uint32_t mark;          /* above the rows of the stack */
};

/* The state that item i + 1 sees when item i leaves `state` behind; STATES: not allowed. */
static enum state pass(const struct table *table, uint32_t i, enum state state)
{
	const struct place_work *work = table->work;
	const uint32_t *list = work->scratch.list;
	bool last = i + 1 == table->count;
	if (last || item_spine(work, list[i]) != item_spine(work, list[i + 1]))
		return table->chain && state == SPINE_UNUSED ? STATES : SPINE_UNUSED;
	if (state == RUN_OPEN && list[i + 1] != list[i] + 1)
		return RUN_ENDED;
	return state;
}

static enum state skipped(enum state state)
{
	return state == SPINE_UNUSED ? SPINE_UNUSED : RUN_ENDED;
}

/* What using an item costs in this state, without nodes. */
static uint64_t use_cost(const struct table *table, enum state state)
{
	if (table->chain && state == RUN_ENDED)
		return IMPOSSIBLE;
	if (table->free)
		return 0;
	return LEAF + (state == SPINE_UNUSED && !table->chain ? SPINE : 0) +
	       (state != RUN_OPEN && !table->chain ? RUN : 0);
}

/* ---- rows -------------------------------------------------------------------------------------------------------------- */

static uint64_t row_cells(const struct table *table)
{
	return (uint64_t)STATES * table->width;
}

/* Behind the last item nothing may be left over. */
static void end_row(const struct table *table, uint64_t *row)
{
	for (uint64_t i = 0; i < row_cells(table); i++)
		row[i] = IMPOSSIBLE;
	for (uint32_t state = 0; state < STATES; state++)
		row[(uint64_t)state * table->width] = 0;
}

/* Least cost of handing c = least … most of m to this item and the rest to the next row. That row is impossible below
 * some number of members (each spine of a chain wants one) and does not fall behind it. Nodes by count: in member_list. */
static uint64_t best_use(const struct table *table, uint32_t least, uint32_t most, uint32_t m, const uint64_t *next,
			 uint32_t possible)
{
	if (table->nodes) {
		uint64_t best = IMPOSSIBLE;
		for (uint32_t count = least; count <= most && count <= m; count++)
			if (next[m - count] != IMPOSSIBLE) {
				uint64_t cost = next[m - count] + table->work->member_list[count];
				best = cost < best ? cost : best;
			}
		return best;
	}
	uint32_t left = max_u32(m > most ? m - most : 0, possible);
	return left + least <= m ? next[left] : IMPOSSIBLE;
}

static void compute_row(const struct table *table, uint32_t i, const uint64_t *next, uint64_t *row)
{
	struct place_work *work = table->work;
	uint32_t item = work->scratch.list[i], most = item_most(work, item), least = item_pin(work, item) == 0;
	const uint64_t *used = next + (uint64_t)pass(table, i, RUN_OPEN) * table->width;
	uint32_t possible = 0;
	if (table->nodes)
		place_nodes_upto(work, item, min_u32(most, work->gang.missing), work->member_list);
	while (possible < table->width && used[possible] == IMPOSSIBLE)
		possible++;
	for (uint32_t state = 0; state < STATES; state++) {
		uint64_t cost = use_cost(table, state), *out = row + (uint64_t)state * table->width;
		enum state after = least == 0 ? STATES : pass(table, i, skipped(state)); /* pinned: in use already */
		const uint64_t *without = after == STATES ? NULL : next + (uint64_t)after * table->width;
		for (uint32_t m = 0; m < table->width; m++) {
			uint64_t with = IMPOSSIBLE;
			if (cost != IMPOSSIBLE)
				with = best_use(table, least, most, m, used, possible);
			if (with != IMPOSSIBLE)
				with += cost;
			uint64_t skip = without == NULL ? IMPOSSIBLE : without[m];
			out[m] = with < skip ? with : skip;
		}
	}
}

/* ---- rows that are kept -------------------------------------------------------------------------------------------------- */

/* Most rows that can be walked through, upwards, with this many slots when none is computed more often than `sweeps`
 * times; sums of both smaller cases: the part up to the first row that is kept, and the part behind it. */
static uint64_t reach(uint32_t slots, uint32_t sweeps)
{
	uint64_t rows = 1;
	for (uint32_t i = 1; i <= min_u32(slots, sweeps) && rows < UINT32_MAX; i++)
		rows = rows * (max_u32(slots, sweeps) + i) / i;
	return rows;
}

static uint64_t *kept_row(const struct table *table, uint32_t at)
{
	return table->rows + at * row_cells(table);
}

static void keep(struct table *table, uint32_t at, uint32_t i)
{
	table->index[at] = i;
	memcpy(kept_row(table, at), table->roll[i % 2], row_cells(table) * sizeof(uint64_t));
}

/* Row i into the two that are computed: one that is kept, or the one behind the last item. */
static void roll_from(struct table *table, uint32_t i, uint32_t at)
{
	if (i == table->count)
		end_row(table, table->roll[i % 2]);
	else
		memcpy(table->roll[i % 2], kept_row(table, at), row_cells(table) * sizeof(uint64_t));
}

/* Marks: every stride-th row, kept for good. */
static void keep_marks(struct table *table)
{
	roll_from(table, table->count, 0);
	for (uint32_t i = table->count; i-- > 0;) {
		compute_row(table, i, table->roll[(i + 1) % 2], table->roll[i % 2]);
		if (i % table->stride == 0)
			keep(table, i / table->stride, i);
	}
}

/* Computes rows from - 1 … to, the row before them being in roll, and keeps `to` and as many before it as have slots, so
 * that walking up from there computes as few as possible again. */
static void sweep(struct table *table, uint32_t from, uint32_t to)
{
	uint32_t slots = table->slots - table->used, sweeps = 1;
	while (reach(slots, sweeps) < from - to)
		sweeps++;
	uint64_t part = slots == 1 ? from - to : reach(slots, sweeps - 1);
	for (uint32_t i = from; i-- > to;) {
		compute_row(table, i, table->roll[(i + 1) % 2], table->roll[i % 2]);
		if (i != to && from - i < part)
			continue;
		keep(table, table->marks + table->used++, i);
		from = i;
		part = --slots <= 1 ? from - to : reach(slots, sweeps - 1);
	}
}

/* Row i of 0 … count - 1. Between two marks rows lie on a stack, the lowest on top. */
static const uint64_t *row_at(struct table *table, uint32_t i)
{
	if (i % table->stride == 0)
		return kept_row(table, i / table->stride);
	uint32_t mark = i / table->stride + 1;
	if (table->mark != mark) {
		table->mark = mark;
		table->used = 0;
	}
	uint32_t *stack = table->index + table->marks, low = 0, high = table->used;
	while (low < high) { /* rows above i, or i itself */
		uint32_t middle = low + (high - low) / 2;
		if (stack[middle] >= i)
			low = middle + 1;
		else
			high = middle;
	}
	if (low > 0 && stack[low - 1] == i)
		return kept_row(table, table->marks + low - 1);
	table->used = low < table->slots ? low : 0; /* full: from the mark again */
	bool begun = table->used > 0, last = mark == table->marks;
	uint32_t from = begun ? stack[table->used - 1] : last ? table->count : mark * table->stride;
	roll_from(table, from, begun ? table->marks + table->used - 1 : mark);
	sweep(table, from, i);
	return kept_row(table, table->marks + table->used - 1);
}

/* All rows when there is room for them; else half of the room for marks, the rest for what lies between two of them. */
static void plan_rows(struct table *table)
{
	uint64_t *cells = (uint64_t *)(void *)table->work->scratch.list + (table->count + 1) / 2;
	uint64_t room = (uint64_t)(table->work->scratch.end - (uint8_t *)cells) / sizeof *cells;
	uint64_t rows = room / (row_cells(table) + 1); /* and an index each */
	assert(rows >= 2 + 2);
	rows -= 2;
	table->roll[0] = cells;
	table->roll[1] = cells + row_cells(table);
	table->rows = cells + 2 * row_cells(table);
	table->index = (uint32_t *)(void *)(table->rows + rows * row_cells(table));
	table->stride = rows >= table->count ? 1 : (uint32_t)(table->count / (rows / 2) + 1);
	table->marks = (table->count + table->stride - 1) / table->stride;
	table->slots = rows > table->marks ? (uint32_t)rows - table->marks : 0;
	table->mark = FROND_NONE;
	keep_marks(table);
}

/* Least cost of items i … for `rest` members after item i - 1 has left `after` behind. Without cost, chain and table: do
 * the items that follow have room? */
static uint64_t least(struct table *table, uint32_t i, enum state after, uint32_t rest)
{
	if (after == STATES)
		return IMPOSSIBLE;
	if (table->free && !table->chain)
		return rest <= table->work->scratch.sum[i] ? 0 : IMPOSSIBLE;
	if (i == table->count)
		return rest == 0 ? 0 : IMPOSSIBLE;
	return row_at(table, i)[(uint64_t)after * table->width + rest];
}

/* ---- candidates ---------------------------------------------------------------------------------------------------------- */

struct walk {
	struct table *table;
	uint64_t cost;     /* to attain */
	uint32_t last_pin; /* index of the last item that must be in use; FROND_NONE: none */
};

/* Can the rest be completed at no higher cost when this item gets `count`? */
static bool count_works(struct walk *walk, const struct frame *frame, uint32_t count)
{
	struct table *table = walk->table;
	uint64_t cost = use_cost(table, frame->state);
	uint64_t rest = least(table, frame->index + 1, pass(table, frame->index, RUN_OPEN), frame->rest - count);
	if (cost == IMPOSSIBLE || rest == IMPOSSIBLE)
		return false;
	return frame->cost + cost + rest + (table->nodes ? place_nodes_for(table->work, frame->at, count) : 0) <=
	       walk->cost;
}

/* The largest count up to `from` that works; UINT32_MAX: none. Where nodes do not count, the frame's least says all once
 * the frame has been noted. */
static uint32_t next_count(struct walk *walk, const struct frame *frame, uint32_t from, bool noted)
{
	if (noted && !walk->table->nodes)
		return from;
	for (uint32_t count = from + 1; count-- > frame->least;)
		if (count_works(walk, frame, count))
			return count;
	return UINT32_MAX;
}

static bool skip_works(struct walk *walk, uint32_t i, enum state state, uint32_t rest, uint64_t cost)
{
	struct table *table = walk->table;
	if (item_pin(table->work, table->work->scratch.list[i]) > 0)
		return false;
	uint64_t more = least(table, i + 1, pass(table, i, skipped(state)), rest);
	return more != IMPOSSIBLE && cost + more <= walk->cost;
}

/* Finds out, while the next row is at hand, what may be tried later in this item's place: fewer members, or none. */
static void note_others(struct walk *walk, struct frame *frame)
{
	frame->skip = skip_works(walk, frame->index, frame->state, frame->rest, frame->cost);
	if (walk->table->nodes)
		return; /* whether fewer members will do depends on their number */
	uint32_t low = frame->least,
		 high = frame->count; /* as many as `high` will do; fewer than some number will not */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (count_works(walk, frame, middle))
			high = middle;
		else
			low = middle + 1;
	}
	frame->least = high;
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
	while (!work->candidates.stop) {
		struct frame frame;
		if (!down) { /* fewer members for the last item, or none */
			if (work->candidates.depth == 0)
				return;
			frame = work->candidates.frames[--work->candidates.depth];
			uint32_t count = frame.count > frame.least ? next_count(walk, &frame, frame.count - 1, true)
								   : UINT32_MAX;
			if (count == UINT32_MAX) {
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
			frame.count = count;
		} else {
			bool pinned = walk->last_pin != FROND_NONE && i <= walk->last_pin;
			if (i == table->count || (rest == 0 && !pinned && !table->chain)) {
				place_see(work, &gain);
				down = false;
				continue;
			}
			uint32_t item = work->scratch.list[i];
			frame = (struct frame){.at = item,
					       .index = i,
					       .least = item_pin(work, item) == 0,
					       .rest = rest,
					       .state = state,
					       .cost = cost,
					       .before = gain};
			uint32_t most = min_u32(item_most(work, item), rest);
			frame.count = most >= frame.least ? next_count(walk, &frame, most, false) : UINT32_MAX;
			if (frame.count == UINT32_MAX) {
				down = skip_works(walk, i, state, rest, cost);
				state = pass(table, i, skipped(state));
				i++;
				continue;
			}
			note_others(walk, &frame);
		}
		work->candidates.frames[work->candidates.depth++] = frame;
		gain = frame.before;
		place_gain(work, frame.at, frame.count, &gain);
		cost = frame.cost + use_cost(table, frame.state) +
		       (table->nodes ? place_nodes_for(work, frame.at, frame.count) : 0);
		rest = frame.rest - frame.count;
		state = pass(table, frame.index, RUN_OPEN);
		i = frame.index + 1;
		down = true;
	}
}

/* ---- which items can matter ------------------------------------------------------------------------------------------------ */

/* Spines that are in no set of the fewest spines are left out: even with the largest others they do not hold enough. */
static uint32_t drop_small_spines(struct place_work *work, uint32_t count)
{
	uint32_t groups = 0, needed = 0, kept = 0;
	uint64_t held = 0, last = 0;
	for (uint32_t i = 0; i < count;) { /* descending sums, in keys */
		uint32_t spine = item_spine(work, work->scratch.list[i]);
		uint64_t sum = 0;
		for (; i < count && item_spine(work, work->scratch.list[i]) == spine; i++)
			sum += item_most(work, work->scratch.list[i]);
		work->scratch.sum[groups++] = UINT64_MAX - sum;
	}
	sort_u64(work->scratch.sum, groups);
	while (needed < groups && held < work->gang.missing) {
		last = UINT64_MAX - work->scratch.sum[needed++];
		held += last;
	}
	if (held < work->gang.missing)
		return count;                       /* it does not fit; the table says so */
	uint64_t spare = held - work->gang.missing; /* what the smallest of them may be short of */
	for (uint32_t i = 0; i < count;) {
		uint32_t spine = item_spine(work, work->scratch.list[i]), first = i;
		uint64_t sum = 0;
		for (; i < count && item_spine(work, work->scratch.list[i]) == spine; i++)
			sum += item_most(work, work->scratch.list[i]);
		for (uint32_t j = first; sum + spare >= last && j < i; j++)
			work->scratch.list[kept++] = work->scratch.list[j];
	}
	return kept;
}

void place_table(struct place_work *work, uint32_t lo, uint32_t hi, bool chain, bool free, uint64_t *most)
{
	struct table table = {.work = work,
			      .chain = chain,
			      .free = free,
			      .nodes = !free && place_shares(work),
			      .width = work->gang.missing + 1};
	uint64_t members = 0, pinned = 0;
	for (uint32_t item = lo; item < hi; item++)
		if (item_usable(work, item) && (item_most(work, item) > 0 || item_pin(work, item) > 0)) {
			work->scratch.list[table.count++] = item;
			members += item_most(work, item);
			pinned += item_pin(work, item);
		}
	if (members < work->gang.missing || pinned != work->gang.pins || table.count == 0)
		return;
	if (!chain && !free && work->gang.pins == 0)
		table.count = drop_small_spines(work, table.count);

	struct walk walk = {.table = &table, .last_pin = FROND_NONE};
	for (uint32_t i = 0; work->gang.pins > 0 && i < table.count; i++)
		walk.last_pin = item_pin(work, work->scratch.list[i]) > 0 ? i : walk.last_pin;
	if (free && !chain) {
		work->scratch.sum[table.count] = 0;
		for (uint32_t i = table.count; i-- > 0;)
			work->scratch.sum[i] = work->scratch.sum[i + 1] + item_most(work, work->scratch.list[i]);
	} else {
		plan_rows(&table);
	}
	walk.cost = least(&table, 0, SPINE_UNUSED, work->gang.missing);
	if (walk.cost == IMPOSSIBLE || walk.cost > *most)
		return;
	if (walk.cost < *most) {
		*most = walk.cost;
		work->candidates.best.found = false;
		work->candidates.seen = 0;
	}
	walk_on(&walk);
}
