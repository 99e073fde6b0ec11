/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_price.c - bounds for place_table.c. With a price for a spine, a leaf and a run, a set of items is worth its members
 * less what it costs, and the best that any set can be worth is a sum over spines: no set within so many spines, leaves and
 * runs has more members than that and the prices of all of them. What cannot be in a set that will do is seen from it, and
 * how many leaves and runs are needed at least. It bounds from above, so nothing that matters is lost; good prices leave
 * little more than the best sets. Also a set that is good, found at once, for want of a better one.
 */
#include "core/place_table.h"

/* ---- prices: how few leaves and runs could do, and what each item may be worth -------------------------------------- */

#define WORTHLESS (INT64_MIN / 4)

/* The sets of a spine's items so far that are worth most after prices for leaves and runs, by the state that they leave
 * behind. */
struct sweep {
	int64_t worth[STATES];
};

static int64_t max_i64(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static struct sweep sweep_begin(void)
{
	return (struct sweep){.worth = {0, WORTHLESS, WORTHLESS}};
}

/* One item more, beside the one before or not. Pinned: it must be in. */
static inline struct sweep sweep_over(const struct table *table, const struct prices *prices, uint32_t i, bool beside,
				      struct sweep sweep)
{
	bool pin = pinned(table, i) > 0;
	int64_t item = FINE * (int64_t)table->most[i] - prices->leaf;
	int64_t ended = max_i64(sweep.worth[RUN_ENDED], sweep.worth[RUN_OPEN]), begun = sweep.worth[SPINE_UNUSED];
	if (!table->chain)
		begun = max_i64(begun, ended) - prices->run;
	if (beside)
		begun = max_i64(begun, sweep.worth[RUN_OPEN]);
	return (struct sweep){
		.worth = {pin ? WORTHLESS : sweep.worth[SPINE_UNUSED], pin ? WORTHLESS : ended, begun + item}};
}

static inline struct sweep sweep_on(const struct table *table, const struct prices *prices, uint32_t i, bool first,
				    struct sweep sweep)
{
	return sweep_over(table, prices, i, !first && adjacent(table, i), sweep);
}

/* The same from the last item to the first. */
static inline struct sweep sweep_back(const struct table *table, const struct prices *prices, uint32_t i, bool last,
				      struct sweep sweep)
{
	return sweep_over(table, prices, i, !last && adjacent(table, i + 1), sweep);
}

/* The set of a spine's items [first, end) that is worth most: one item at least, every pinned one. Forced: it must be in
 * use. */
static int64_t spine_worth(const struct table *table, const struct prices *prices, uint32_t first, uint32_t end,
			   bool *forced)
{
	struct sweep sweep = sweep_begin();
	for (uint32_t i = first; i < end; i++)
		sweep = sweep_on(table, prices, i, i == first, sweep);
	*forced = table->chain || sweep.worth[SPINE_UNUSED] < 0;
	return max_i64(sweep.worth[RUN_ENDED], sweep.worth[RUN_OPEN]);
}

/* Most that the items before each one can be worth, and with them the state in which it is met. */
void price_worths(const struct table *table, struct prices *prices)
{
	int64_t before = 0;
	for (uint32_t i = 0, end; i < table->count; i = end) {
		struct sweep sweep = sweep_begin();
		end = table->ends[i];
		for (uint32_t j = i; j < end; j++) {
			if (j > i && !adjacent(table, j)) /* pass() */
				sweep.worth[RUN_ENDED] = max_i64(sweep.worth[RUN_ENDED], sweep.worth[RUN_OPEN]);
			for (uint32_t state = 0; state < STATES; state++) {
				int64_t worth = sweep.worth[state] + before;
				worth -= state == SPINE_UNUSED ? 0 : prices->spine;
				prices->worth[state][j] = (int32_t)max_i64(worth, INT32_MIN);
			}
			sweep = sweep_on(table, prices, j, j == i, sweep);
		}
		int64_t used = max_i64(sweep.worth[RUN_ENDED], sweep.worth[RUN_OPEN]) - prices->spine;
		before += max_i64(used, table->chain ? WORTHLESS : sweep.worth[SPINE_UNUSED]);
	}
	prices->least = FINE * (int64_t)table->work->gang.missing - prices->leaf * table->leaves -
			prices->spine * table->spines - prices->run * table->runs;
}

/* Keys stand where worths will be. */
static int64_t *keys_of(const struct table *table)
{
	return (int64_t *)(void *)table->rest;
}

/* The largest `wanted` of them: their sum, the least of them, and the largest of the others. */
static void take_largest(const int64_t *keys, uint32_t count, uint32_t wanted, struct priced *priced)
{
	int64_t low = INT64_MAX, high = INT64_MIN, more = 0;
	uint32_t above = 0;
	for (uint32_t i = 0; i < count; i++) {
		low = keys[i] < low ? keys[i] : low;
		high = keys[i] > high ? keys[i] : high;
	}
	while (low < high && wanted > 0) { /* as many as are wanted are not under `low` */
		int64_t middle = high - (high - low) / 2;
		uint32_t over = 0;
		for (uint32_t i = 0; i < count; i++)
			over += keys[i] >= middle;
		if (over >= wanted)
			low = middle;
		else
			high = middle - 1;
	}
	for (uint32_t i = 0; i < count; i++) {
		bool over = wanted > 0 && keys[i] > low;
		above += over;
		more += over ? keys[i] : 0;
		if (!over && (wanted == 0 || keys[i] < low))
			priced->next = max_i64(priced->next, keys[i]);
	}
	if (wanted == 0)
		return;
	uint32_t equal = 0;
	for (uint32_t i = 0; i < count; i++)
		equal += keys[i] == low;
	priced->sum += more + (wanted - above) * low;
	priced->last = low;
	if (above + equal > wanted)
		priced->next = low;
}

struct priced price_spines(const struct table *table, const struct prices *prices)
{
	struct priced priced = {.sum = 0, .last = INT64_MAX, .next = INT64_MIN};
	int64_t *keys = keys_of(table);
	uint32_t others = 0, wanted = table->spines;
	budget_charge(&table->work->budget, (uint64_t)STEPS_PRICE * table->count);
	for (uint32_t i = 0; i < table->count; i = table->ends[i]) {
		bool forced;
		int64_t worth = spine_worth(table, prices, i, table->ends[i], &forced);
		if (forced) {
			priced.sum += worth;
			wanted -= !table->chain;
		} else {
			keys[others++] = worth;
		}
	}
	assert(table->chain || wanted <= others);
	if (!table->chain)
		take_largest(keys, others, wanted, &priced);
	return priced;
}

/* Fewest spines: those that must be in use, and the largest. */
uint32_t price_fewest_spines(const struct table *table)
{
	const struct prices none = {.leaf = 0};
	uint64_t *keys = (uint64_t *)(void *)keys_of(table), held = 0;
	uint32_t others = 0, needed = 0;
	for (uint32_t i = 0; i < table->count; i = table->ends[i]) {
		bool forced;
		uint64_t members = (uint64_t)spine_worth(table, &none, i, table->ends[i], &forced) / FINE;
		needed += forced;
		held += forced ? members : 0;
		if (!forced)
			keys[others++] = UINT64_MAX - members;
	}
	sort_u64(keys, others);
	for (uint32_t i = 0; held < table->work->gang.missing; i++, needed++) {
		assert(i < others);
		held += UINT64_MAX - keys[i];
	}
	return needed;
}

static uint32_t largest_item(const struct table *table)
{
	uint32_t largest = 1;
	for (uint32_t i = 0; i < table->count; i++)
		largest = max_u32(largest, table->most[i]);
	return largest;
}

/* The price of a leaf at which most leaves are seen to be needed: for what is missing beyond what spines are worth. With
 * a higher or lower one it is fewer. */
int64_t price_leaf(const struct table *table)
{
	int64_t low = 1, high = FINE * (int64_t)largest_item(table),
		missing = FINE * (int64_t)table->work->gang.missing;
	while (low < high) {
		int64_t middle = low + (high - low) / 2;
		int64_t here = missing - price_spines(table, &(struct prices){.leaf = middle}).sum;
		int64_t above = missing - price_spines(table, &(struct prices){.leaf = middle + 1}).sum;
		if (above * middle > here * (middle + 1))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Anything between the last spine that will do and the next is a price that tells them apart. */
int64_t price_spine(const struct table *table, const struct priced *priced)
{
	if (table->chain || priced->last == INT64_MAX)
		return 0;
	return priced->next == INT64_MIN ? priced->last : priced->last - (priced->last - priced->next) / 2;
}

/* What the best set could be worth at most, within spines, leaves and runs, beyond what is missing. */
static int64_t spare_at(const struct table *table, const struct prices *prices)
{
	return price_spines(table, prices).sum + prices->leaf * table->leaves + prices->run * table->runs -
	       FINE * (int64_t)table->work->gang.missing;
}

/* Looks for prices that leave little to spare, step by step from those that there are; it has a single valley. Any prices are
 * right, better ones rule more out: without a budget nothing is left to be ruled out. */
static int64_t improve_prices(struct table *table, int64_t step)
{
	struct prices *best = &table->prices[0];
	int64_t spare = spare_at(table, best);
	for (uint32_t turn = 0, still = 0; step > 0 && spare >= 0 && table->work->budget.left > 0;) {
		static const int ways[][2] = {{0, -1}, {0, 1}, {-1, 0}, {1, 0}, {-1, 1}, {1, -1}};
		enum { WAYS = sizeof ways / sizeof ways[0] };
		struct prices other = {.leaf = best->leaf + ways[turn][0] * step,
				       .run = best->run + ways[turn][1] * step};
		int64_t less = other.leaf < 0 || other.run < 0 ? spare : spare_at(table, &other);
		if (less < spare) {
			best->leaf = other.leaf;
			best->run = other.run;
			spare = less;
			still = 0;
			continue; /* once more this way */
		}
		turn = (turn + 1) % WAYS;
		if (++still == WAYS) {
			step /= 2;
			still = 0;
		}
	}
	return spare;
}

/* Prices for a leaf and a run, and the fewest runs that they do not rule out. What is to spare then. */
int64_t price_runs(struct table *table)
{
	struct prices *prices = &table->prices[0];
	int64_t spare;
	for (;;) {
		spare = improve_prices(table, max_i64(prices->leaf / 16, 1));
		if (spare >= 0)
			break;
		table->runs += prices->run == 0 ? 1 : (uint32_t)((-spare + prices->run - 1) / prices->run);
	}
	struct priced priced = price_spines(table, prices);
	prices->spine = price_spine(table, &priced);
	return spare;
}

/* ---- a set that is good, and found at once --------------------------------------------------------------------------- */

struct window { /* a run of items, in use */
	uint32_t lo, hi;
	int64_t worth;
};

/* The run of a spine's items [first, end) that is worth most, with every pinned one in it. */
static struct window best_window(const struct table *table, uint32_t first, uint32_t end, int64_t price)
{
	struct window best = {.worth = INT64_MIN};
	uint32_t pins = 0, lo = first, seen = 0;
	for (uint32_t i = first; i < end; i++)
		pins += pinned(table, i) > 0;
	int64_t worth = 0;
	for (uint32_t i = first; i < end; i++) {
		if (i > lo && (!adjacent(table, i) || (worth < 0 && seen == 0))) {
			lo = i;
			worth = 0;
			seen = 0;
		}
		worth += FINE * (int64_t)table->most[i] - price;
		seen += pinned(table, i) > 0;
		if (seen == pins && worth >= best.worth)
			best = (struct window){lo, i + 1, worth};
	}
	return best;
}

/* Leaves at the ends of a spine's run [lo, hi) that can be spared. */
static void trim(struct table *table, uint32_t lo, uint32_t hi, uint64_t *held, uint32_t *leaves)
{
	while (hi - lo > 1) {
		bool low = pinned(table, lo) == 0, high = pinned(table, hi - 1) == 0;
		bool lower = low && (!high || table->most[lo] < table->most[hi - 1]);
		uint32_t i = lower ? lo : hi - 1;
		if ((!low && !high) || *held - table->most[i] < table->work->gang.missing)
			return;
		*held -= table->most[i];
		*leaves -= 1;
		table->where[i] = 0;
		lo += lower;
		hi -= !lower;
	}
}

static uint32_t pick_chain(struct table *table, int64_t price)
{
	uint64_t held = 0;
	uint32_t leaves = 0;
	memset(table->where, 0, table->count * sizeof *table->where);
	for (uint32_t i = 0; i < table->count; i = table->ends[i]) {
		struct window window = best_window(table, i, table->ends[i], price);
		assert(window.worth != INT64_MIN);
		for (uint32_t j = window.lo; j < window.hi; j++) {
			table->where[j] = 1;
			held += table->most[j];
			leaves++;
		}
	}
	if (held < table->work->gang.missing)
		return UINT32_MAX;
	for (uint32_t i = 0; i < table->count; i = table->ends[i]) {
		uint32_t lo = i, hi = table->ends[i];
		while (table->where[lo] == 0)
			lo++;
		while (table->where[hi - 1] == 0)
			hi--;
		trim(table, lo, hi, &held, &leaves);
	}
	return leaves;
}

/* Spines by what they are worth at this price of a leaf, and their largest leaves: where[i] = 1. How many leaves;
 * UINT32_MAX: they do not hold what is missing. */
uint32_t price_pick(struct table *table, int64_t price)
{
	if (table->chain)
		return pick_chain(table, price);
	const struct prices prices = {.leaf = price};
	struct priced priced = price_spines(table, &prices);
	uint64_t *keys = (uint64_t *)(void *)keys_of(table), held = 0;
	uint32_t wanted = table->spines, leaves = 0, others = 0;
	bool forced;
	for (uint32_t i = 0; i < table->count;
	     i = table->ends[i]) /* those better than the last, then the first of its equals */
		wanted -= spine_worth(table, &prices, i, table->ends[i], &forced) > priced.last || forced;
	for (uint32_t i = 0; i < table->count; i = table->ends[i]) {
		int64_t worth = spine_worth(table, &prices, i, table->ends[i], &forced);
		bool equal = !forced && worth == priced.last && wanted > 0;
		bool chosen = forced || equal || worth > priced.last;
		wanted -= equal;
		for (uint32_t j = i; j < table->ends[i]; j++) {
			bool pin = pinned(table, j) > 0;
			table->where[j] = pin;
			held += pin ? table->most[j] : 0;
			leaves += pin;
			if (chosen && !pin)
				keys[others++] = (uint64_t)(UINT32_MAX - table->most[j]) << 32 | j;
		}
	}
	sort_u64(keys, others);
	for (uint32_t i = 0; held < table->work->gang.missing; i++) {
		if (i == others)
			return UINT32_MAX;
		uint32_t item = (uint32_t)keys[i];
		table->where[item] = 1;
		held += table->most[item];
		leaves++;
	}
	return leaves;
}

/* The candidate is what price_pick() has chosen. */
void price_see_picked(struct table *table)
{
	struct place_work *work = table->work;
	struct gain gain = GAIN_NONE;
	uint32_t rest = work->gang.missing, owed = 0;
	for (uint32_t i = 0; i < table->count; i++)
		owed += table->where[i] == 1 && pinned(table, i) == 0;
	work->candidates.depth = 0;
	for (uint32_t i = 0; i < table->count; i++) {
		if (table->where[i] != 1)
			continue;
		uint32_t least = pinned(table, i) == 0;
		owed -= least;
		uint32_t count = min_u32(table->most[i], rest - owed);
		work->candidates.frames[work->candidates.depth++] =
			(struct frame){.at = work->scratch.list[i], .count = (uint16_t)count};
		place_gain(work, work->scratch.list[i], count, &gain);
		rest -= count;
	}
	assert(rest == 0);
	work->candidates.same = 0;
	place_see(work, &gain);
	work->candidates.stop = true;
}

/* By item: where its spine ends. */
void price_ends(struct table *table)
{
	const uint32_t *list = table->work->scratch.list;
	for (uint32_t i = table->count; i-- > 0;) {
		bool last = i + 1 == table->count ||
			    item_spine(table->work, list[i]) != item_spine(table->work, list[i + 1]);
		table->ends[i] = last ? i + 1 : table->ends[i + 1];
	}
}

/* Leaves out spines, and leaves of them, that lead nowhere at these prices; `spare` is what a set may lose against the
 * best. What the best set with an item in it is worth: up to it, and from it on. */
void price_drop(struct table *table, int64_t spare, bool only_forced)
{
	struct place_work *work = table->work;
	const struct prices *prices = &table->prices[0];
	uint32_t kept = 0;
	for (uint32_t i = 0, end; i < table->count; i = end) {
		struct sweep sweep = sweep_begin();
		int64_t *upto = keys_of(table); /* by item of the spine */
		end = table->ends[i];
		for (uint32_t j = i; j < end; j++) {
			sweep = sweep_on(table, prices, j, j == i, sweep);
			upto[j - i] = sweep.worth[RUN_OPEN];
		}
		bool forced = sweep.worth[SPINE_UNUSED] < 0;
		int64_t lost = prices->spine - max_i64(sweep.worth[RUN_ENDED], sweep.worth[RUN_OPEN]);
		int64_t best = forced ? prices->spine - lost : max_i64(prices->spine, prices->spine - lost);
		if ((only_forced && !forced) || (!forced && lost > spare))
			continue;
		sweep = sweep_begin();
		for (uint32_t j = end; j-- > i;) {
			sweep = sweep_back(table, prices, j, j + 1 == end, sweep);
			int64_t item = FINE * (int64_t)table->most[j] - prices->leaf;
			/* the run that it is in has been paid for twice */
			upto[j - i] += sweep.worth[RUN_OPEN] - item + prices->run;
		}
		for (uint32_t j = i; j < end; j++) {
			if (pinned(table, j) == 0 && best - upto[j - i] > spare)
				continue;
			work->scratch.list[kept] = work->scratch.list[j];
			table->most[kept++] = table->most[j];
		}
	}
	table->count = kept;
	price_ends(table);
}
