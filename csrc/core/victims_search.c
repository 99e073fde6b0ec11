/* SPDX-License-Identifier: Apache-2.0 */
/*
 * victims_search.c - the cheapest choice of victims in one domain, by the order of reference 7. Phases:
 *
 *   1  can it do without touching a budget? how few budgets otherwise?
 *   2  the lowest priority up to which gangs must go for that
 *   3  among gangs up to it: fewest gangs, then pods, then GPUs
 *
 * 1 without budgets and 2 need no search: more victims never hurt, so all that may go are asked about at once. The rest is
 * branch and bound over gangs, those that bring most first, so that the first way down is short; every answer on the way is
 * relieved of what it does not need. A branch ends when what is chosen, and the least that must follow, costs no less than
 * the best so far.
 */
#include "core/victims_work.h"

enum goal { GOAL_BUDGETS, GOAL_PRICE };

struct seek { /* one branch and bound */
	struct hunt *hunt;
	enum goal goal;
	int32_t most;       /* priority of a victim */
	struct price limit; /* to be undercut */
	bool found;
	bool refused;            /* by the planner, where counting saw room */
	bool skipped;            /* it was not asked about every choice on the way down */
	uint32_t gap, wait;      /* choices that it is not asked about next, until there is an answer */
	uint16_t last;           /* unit that was chosen last; UNIT_NONE: none */
	uint64_t want;           /* gains that are needed in all */
	uint64_t unbudgeted;     /* gains of gangs that may go without a budget, which come first under GOAL_BUDGETS */
	uint64_t pods_n, pods_d; /* the most gain for a pod, as a fraction; for a GPU, for a budget */
	uint64_t gpus_n, gpus_d;
	uint64_t budgets_n, budgets_d;
};

/* Priorities are all up to the bound that is in force. */
static bool undercuts(const struct seek *seek, const struct price *price)
{
	const struct price *limit = &seek->limit;
	if (price->budgets != limit->budgets || seek->goal == GOAL_BUDGETS)
		return price->budgets < limit->budgets;
	if (price->gangs != limit->gangs)
		return price->gangs < limit->gangs;
	if (price->pods != limit->pods)
		return price->pods < limit->pods;
	return price->gpus < limit->gpus;
}

/* ---- units in order ------------------------------------------------------------------------------------------------------ */

static bool goes_unbudgeted(struct hunt *hunt, const struct unit *unit)
{
	const struct sums *sums = hunt_sums(hunt, unit->gang);
	return sums->budgets == 0 || (unit->shrinks > 0 && sums->unbudgeted > 0);
}

static bool unit_before(struct seek *seek, const struct unit *a, const struct unit *b)
{
	struct hunt *hunt = seek->hunt;
	const struct gang *gangs = hunt->core->gangs.gangs;
	if (seek->goal == GOAL_BUDGETS && hunt->budgets) {
		bool free_a = goes_unbudgeted(hunt, a), free_b = goes_unbudgeted(hunt, b);
		if (free_a != free_b)
			return free_a;
	}
	if (a->gain != b->gain)
		return a->gain > b->gain;
	if (a->at != b->at)
		return a->at < b->at;
	return key_before(gangs[a->gang].key, gangs[b->gang].key);
}

static void sift(struct seek *seek, uint32_t root, uint32_t count)
{
	struct unit *units = seek->hunt->work->units;
	for (uint32_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
		if (child + 1 < count && unit_before(seek, &units[child], &units[child + 1]))
			child++;
		if (!unit_before(seek, &units[root], &units[child]))
			return;
		struct unit unit = units[child];
		units[child] = units[root];
		units[root] = unit;
		root = child;
	}
}

static void sort_units(struct seek *seek)
{
	struct victims_work *work = seek->hunt->work;
	uint32_t count = work->unit_count, ordered = 1;
	while (ordered < count && !unit_before(seek, &work->units[ordered], &work->units[ordered - 1]))
		ordered++;
	for (uint32_t root = ordered < count ? count / 2 : 0; root > 0; root--)
		sift(seek, root - 1, count);
	for (uint32_t end = ordered < count ? count : 0; end > 1; end--) {
		struct unit unit = work->units[end - 1];
		work->units[end - 1] = work->units[0];
		work->units[0] = unit;
		sift(seek, 0, end - 1);
	}
	for (uint32_t i = 0; i < count; i++)
		work->unit_of[work->units[i].gang] = (uint16_t)i;
}

static void most_of(uint64_t gain, uint64_t cost, uint64_t *n, uint64_t *d)
{
	if (gain * *d > *n * cost) {
		*n = gain;
		*d = cost;
	}
}

/* Of a gang that may shrink every pod may be worth as much as a pod can be. */
static void measure(struct seek *seek)
{
	struct hunt *hunt = seek->hunt;
	struct victims_work *work = hunt->work;
	uint64_t sum = 0, pod = FROND_GPUS_MAX + hunt->size - 1;
	seek->pods_d = seek->gpus_d = seek->budgets_d = 1;
	for (uint32_t i = 0; i < work->unit_count; i++) {
		struct unit *unit = &work->units[i];
		const struct sums *sums = hunt_sums(hunt, unit->gang);
		bool free = goes_unbudgeted(hunt, unit);
		unit->before = (uint32_t)sum;
		unit->gone = 0;
		sum += unit->gain;
		seek->unbudgeted += free ? unit->gain : 0;
		if (unit->shrinks > 0) {
			most_of(pod, 1, &seek->pods_n, &seek->pods_d);
			most_of(hunt->size, 1, &seek->gpus_n, &seek->gpus_d);
			most_of(pod, 1, &seek->budgets_n, &seek->budgets_d);
			continue;
		}
		most_of(unit->gain, hunt->core->gangs.gangs[unit->gang].bound, &seek->pods_n, &seek->pods_d);
		most_of(unit->gain, sums->gpus, &seek->gpus_n, &seek->gpus_d);
		if (!free)
			most_of(unit->gain, sums->budgets, &seek->budgets_n, &seek->budgets_d);
	}
	uint32_t missing = hunt->need > hunt->room ? hunt->need - hunt->room : 0;
	seek->want = (uint64_t)missing * hunt->size;
}

/* ---- bounds -------------------------------------------------------------------------------------------------------------- */

static uint64_t at_least(uint64_t gain, uint64_t n, uint64_t d)
{
	return n == 0 ? 0 : (gain * d + n - 1) / n;
}

/* The fewest gangs from i on that bring so much: they come in falling order. */
static uint32_t fewest(const struct seek *seek, uint32_t i, uint64_t gain)
{
	const struct victims_work *work = seek->hunt->work;
	uint32_t lo = i, hi = work->unit_count; /* units i … hi - 1 are enough, i … lo - 1 are not */
	uint64_t target = work->units[i].before + gain;
	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (work->units[mid].before >= target)
			hi = mid;
		else
			lo = mid;
	}
	return hi - i;
}

/* Not even all units from i on bring what is missing, nor would they with less of what is chosen. */
static bool lacks(const struct seek *seek, uint32_t i)
{
	const struct victims_work *work = seek->hunt->work;
	if (work->unit_count == 0)
		return true;
	const struct unit *end = &work->units[work->unit_count - 1];
	uint64_t all = (uint64_t)end->before + end->gain, before = i < work->unit_count ? work->units[i].before : all;
	return seek->hunt->gain + all - before < seek->want;
}

/* Is there no way on from unit i that costs less than the limit? More has to go than is chosen. */
static bool hopeless(const struct seek *seek, uint32_t i)
{
	const struct hunt *hunt = seek->hunt;
	const struct victims_work *work = hunt->work;
	struct price least = hunt->price;
	if (i >= work->unit_count || lacks(seek, i))
		return true;
	uint64_t gain = seek->want > hunt->gain ? seek->want - hunt->gain : 0;
	if (seek->goal == GOAL_BUDGETS) {
		uint64_t free = seek->unbudgeted > work->units[i].before ? seek->unbudgeted - work->units[i].before : 0;
		if (gain > free)
			least.budgets += (uint32_t)at_least(gain - free, seek->budgets_n, seek->budgets_d);
		return !undercuts(seek, &least);
	}
	uint32_t gangs = gain == 0 ? 1 : fewest(seek, i, gain);
	uint64_t pods = at_least(gain, seek->pods_n, seek->pods_d), gpus = at_least(gain, seek->gpus_n, seek->gpus_d);
	least.gangs += gangs;
	least.pods += (uint32_t)(pods > gangs ? pods : gangs);
	least.gpus += (uint32_t)(gpus > gangs ? gpus : gangs);
	return !undercuts(seek, &least);
}

/* No choice at all costs less than the limit. */
static bool proven(struct seek *seek)
{
	struct hunt *hunt = seek->hunt;
	struct price price = hunt->price;
	uint32_t gain = hunt->gain;
	hunt->price = (struct price){0};
	hunt->gain = 0;
	bool none = hopeless(seek, 0);
	hunt->price = price;
	hunt->gain = gain;
	return none;
}

/* ---- choices ------------------------------------------------------------------------------------------------------------- */

/* The largest part of it that helps. */
static uint32_t most_gone(const struct unit *unit)
{
	return unit->shrinks == unit->count ? unit->count : UNIT_WHOLE;
}

static bool enough(struct seek *seek)
{
	struct hunt *hunt = seek->hunt;
	bool room = hunt_has_room(hunt), fits = room && (hunt->exact || hunt_fits_choice(hunt, seek->most, seek->last));
	seek->refused = room && !fits;
	return fits;
}

/* Asks whether what is chosen is enough, with units from i on still to come. Plans are dear: until there is an answer, each
 * refusal doubles the number of choices that go by without a plan. */
static bool ask(struct seek *seek, uint32_t i)
{
	struct hunt *hunt = seek->hunt;
	if (!undercuts(seek, &hunt->price) || hunt->price.gangs == 0)
		return false;
	if (!seek->found && seek->wait > 0 && i < hunt->work->unit_count) {
		seek->wait--;
		seek->skipped = true;
		return false;
	}
	bool fits = enough(seek);
	if (seek->refused && !seek->found && !hunt->by_sets)
		seek->wait = seek->gap = 2 * seek->gap + 1;
	return fits;
}

/* What is chosen is enough: is it so with less of this unit? */
static void relieve(struct seek *seek, struct unit *unit)
{
	struct hunt *hunt = seek->hunt;
	uint32_t gone = unit->gone, fewest = 1, most = min_u32(unit->shrinks, gone);
	hunt_choose(hunt, unit, 0);
	if (enough(seek))
		return;
	hunt_choose(hunt, unit, most > 0 ? most : gone);
	if (most > 0 && most < gone && !enough(seek))
		most = gone;
	while (most > 0 && most != UNIT_WHOLE && fewest < most) {
		uint32_t middle = fewest + (most - fewest) / 2;
		hunt_choose(hunt, unit, middle);
		if (enough(seek))
			most = middle;
		else
			fewest = middle + 1;
	}
	hunt_choose(hunt, unit, most > 0 ? most : gone);
}

/* What is chosen is enough. Without what it does not need it is the best so far; then all is as before. */
static void keep(struct seek *seek)
{
	struct hunt *hunt = seek->hunt;
	struct unit *units = hunt->work->units;
	for (uint32_t i = 0; i < hunt->work->unit_count; i++)
		units[i].best = units[i].gone;
	for (uint16_t i = seek->last; i != UNIT_NONE && hunt_pay(hunt, 32 + 16ull * units[i].count); i = units[i].below)
		relieve(seek, &units[i]);
	seek->limit = hunt->price;
	seek->found = true;
	hunt_found(hunt);
	for (uint16_t i = seek->last; i != UNIT_NONE; i = units[i].below) {
		uint32_t gone = units[i].best;
		units[i].best = units[i].gone;
		hunt_choose(hunt, &units[i], gone);
	}
}

/* Back to the unit that was chosen last: less of it, or nothing. Returns the unit to go on with. */
static uint32_t step_back(struct seek *seek, bool lacking)
{
	struct hunt *hunt = seek->hunt;
	uint32_t i = seek->last;
	struct unit *unit = &hunt->work->units[i];
	uint32_t gone = lacking ? 0 : unit->gone == UNIT_WHOLE ? unit->shrinks : unit->gone - 1;
	hunt_choose(hunt, unit, gone);
	if (gone == 0)
		seek->last = unit->below;
	return i + 1;
}

/* first: any choice will do. */
static bool seek_cheapest(struct seek *seek, bool first)
{
	struct hunt *hunt = seek->hunt;
	struct unit *units = hunt->work->units;
	uint32_t i = 0;
	bool asked = false; /* what is chosen has been seen not to be enough */
	sort_units(seek);
	measure(seek);
	seek->last = UNIT_NONE;
	for (;;) {
		bool fits = !asked && ask(seek, i);
		if (fits)
			keep(seek);
		if ((fits && (first || proven(seek))) || !hunt_pay(hunt, 24))
			break;
		if (!fits && !hopeless(seek, i)) {
			units[i].below = seek->last;
			seek->last = (uint16_t)i;
			hunt_choose(hunt, &units[i], most_gone(&units[i]));
			hunt_pay(hunt, 8ull * units[i].count);
			asked = false;
			i++;
			continue;
		}
		if (seek->last == UNIT_NONE)
			break;
		hunt_pay(hunt, 8ull * units[seek->last].count);
		uint16_t last = seek->last;
		i = step_back(seek, !fits && i == last + 1u && lacks(seek, i));
		asked = seek->last != last && !seek->skipped; /* on the way down this was not enough */
	}
	while (seek->last != UNIT_NONE) {
		hunt_choose(hunt, &units[seek->last], 0);
		seek->last = units[seek->last].below;
	}
	return seek->found;
}

/* ---- phases ---------------------------------------------------------------------------------------------------------------- */

static bool would_fit(struct hunt *hunt, int32_t most, bool unbudgeted)
{
	return hunt_could(hunt, most, unbudgeted) && (hunt->exact || hunt_fits_without(hunt, most, unbudgeted));
}

static bool fits_with_budgets(struct hunt *hunt, int32_t most, uint32_t budgets)
{
	struct seek seek = {.hunt = hunt, .goal = GOAL_BUDGETS, .most = most, .limit = {.budgets = budgets + 1}};
	if (budgets == 0)
		return would_fit(hunt, most, true);
	if (!would_fit(hunt, most, false))
		return false;
	int32_t lower = hunt->lower, higher = hunt->higher;
	hunt_collect(hunt, most);
	bool found = seek_cheapest(&seek, true);
	hunt->lower = lower;
	hunt->higher = higher;
	return found;
}

/* Somewhere above lo and up to hi, where it works: the lowest priority up to which gangs must go. Between two that gangs have
 * there is nothing to be tried. */
static int32_t lowest_between(struct hunt *hunt, int64_t lo, int64_t hi, uint32_t budgets, bool by_counting)
{
	for (bool first = true; hi - lo > 1; first = false) {
		int64_t mid =
			first ? hi - 1 : lo + (hi - lo) / 2; /* mostly the one that others have reached is the lowest */
		bool fits = by_counting ? hunt_could(hunt, (int32_t)mid, budgets == 0)
					: fits_with_budgets(hunt, (int32_t)mid, budgets);
		if (fits)
			hi = hunt->lower;
		else
			lo = (int64_t)hunt->higher - 1 < hi ? (int64_t)hunt->higher - 1 : hi - 1;
	}
	return (int32_t)hi;
}

/* Counting is a bound from below, and mostly it is the answer. */
static int32_t lowest_priority(struct hunt *hunt, int32_t most, uint32_t budgets)
{
	int32_t least = lowest_between(hunt, (int64_t)INT32_MIN - 1, most, budgets, true);
	if ((hunt->exact && budgets == 0) || least == most || fits_with_budgets(hunt, least, budgets))
		return least;
	return lowest_between(hunt, least, most, budgets, false);
}

/* The choice that was found last, if it is cheaper than *least. */
static bool write_down(struct hunt *hunt, struct price price, struct price *least)
{
	struct victims_work *work = hunt->work;
	price.priority = INT32_MIN;
	for (uint32_t i = 0; i < work->unit_count; i++) {
		int32_t priority = hunt->core->gangs.gangs[work->units[i].gang].priority;
		if (work->units[i].best > 0 && priority > price.priority)
			price.priority = priority;
	}
	if (price_compare(&price, least) >= 0)
		return false;
	*least = price;
	work->evict_count = 0;
	for (uint32_t i = 0; i < work->unit_count; i++) {
		const struct unit *unit = &work->units[i];
		if (unit->best > 0)
			work->evict[work->evict_count++] =
				(struct eviction){unit->gang, hunt_ranks(hunt, unit, unit->best)};
	}
	return true;
}

/* As few as in *least, or fewer; *better: such a choice is cheaper already. */
static bool fewest_budgets(struct hunt *hunt, int32_t most, struct price *least, uint32_t *budgets, bool *better)
{
	uint32_t under = least->budgets < UINT32_MAX ? least->budgets + 1 : UINT32_MAX;
	struct seek seek = {.hunt = hunt, .goal = GOAL_BUDGETS, .most = most, .limit = {.budgets = under}};
	if (!hunt->budgets || !would_fit(hunt, most, false))
		return false;
	hunt_collect(hunt, most);
	bool found = seek_cheapest(&seek, false);
	*budgets = seek.limit.budgets;
	*better = found && write_down(hunt, seek.limit, least);
	return found;
}

bool hunt_search(struct hunt *hunt, struct price *least)
{
	int32_t all = hunt->priority - 1, most = least->budgets == 0 && least->priority < all ? least->priority : all;
	uint32_t budgets = 0;
	bool better = false;
	if (!would_fit(hunt, most, true)) {
		most = all;
		if (least->budgets == 0 || !fewest_budgets(hunt, most, least, &budgets, &better))
			return false;
		if (budgets == least->budgets && least->priority < most)
			most = least->priority;
		if (most < all && !better && !fits_with_budgets(hunt, most, budgets))
			return false;
	}
	most = lowest_priority(hunt, most, budgets);
	struct seek seek = {.hunt = hunt, .goal = GOAL_PRICE, .most = most, .limit = {.budgets = budgets + 1}};
	if (budgets == least->budgets && most == least->priority)
		seek.limit = *least;
	hunt_collect(hunt, most);
	return (seek_cheapest(&seek, false) && write_down(hunt, seek.limit, least)) || better;
}
