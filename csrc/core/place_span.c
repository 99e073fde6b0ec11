/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_span.c - today's nodes under the rule, and without it. First the best value of step 3 of reference 3.4,
 * exactly; then every choice of leaves and counts that attains it, leaf by leaf in fabric order, more members first:
 * those are the candidates that steps 4 to 7 compare.
 *
 * Under the rule a gang takes runs of adjacent leaves. The rule comes from capacity, so no run shorter than r will ever
 * do: `consolidated` and `balanced` look at runs of exactly r leaves, `distributed` at all runs of up to r.
 */
#include "core/place_row.h"
#include "core/place_work.h"

/* ---- candidates ---------------------------------------------------------------------------------------------------- */

/* Do nodes of this candidate follow: behind `position` in an item that has been filled, or in later items? */
static bool used_after(const struct place_work *work, uint32_t position, uint32_t end, const uint8_t *takes, bool later)
{
	for (uint32_t at = position + 1; at < end && !later; at++)
		later = (takes == NULL ? work->take[at] : takes[at - position]) > 0;
	return later;
}

/* Two counts for one item, or for two NVLink domains of it: below zero, the first gives the lower list of nodes. *ranks: which one is lower by rank → node
 * if the nodes are the same. */
static int compare_fills(struct place_work *work, uint32_t item, uint32_t first, uint32_t second, bool first_later,
			 bool second_later, int *ranks)
{
	uint32_t tail_item = work->segments.tail_item, domain = work->scope.domain;
	uint32_t start = item_start(work, item), end = item_end(work, item);
	int order = 0;
	if (!budget_take(&work->budget, (uint64_t)STEPS_FILL * (end - start)))
		work->candidates.stop = true; /* after this one */
	place_fill(work, item, first);
	for (uint32_t at = start; at < end; at++)
		work->candidates.fill[at - start] = (uint8_t)work->take[at]; /* a node has few GPUs */
	place_empty(work, item);
	work->segments.tail_item = work->candidates.best.tail_item;
	work->scope.domain = work->candidates.best.domain;
	place_fill(work, item, second);
	work->segments.tail_item = tail_item;
	work->scope.domain = domain;
	for (uint32_t at = start; at < end && order == 0; at++) {
		uint32_t a = work->candidates.fill[at - start], b = work->take[at];
		if (a > 0 && b == 0)
			order = used_after(work, at, end, NULL, second_later) ? -1 : 1;
		else if (a == 0 && b > 0)
			order = used_after(work, at, end, &work->candidates.fill[at - start], first_later) ? 1 : -1;
		else if (a != b && *ranks == 0)
			*ranks = a > b ? -1 : 1;
	}
	place_empty(work, item);
	if (item_split(work, item))
		place_pay(work, 2 * STEPS_LOOK * work->candidates.looks); /* as many for the first one */
	return order;
}

/* Frames in front that are picks of the best candidate. With pinned members some frames are no picks. */
static uint32_t leading(const struct place_work *work)
{
	return work->gang.pins == 0 ? work->candidates.same : 0;
}

/* Step 7: is the candidate in hand lower than the best? Ascending lists of nodes, then rank → node. */
static bool lower(struct place_work *work)
{
	uint32_t same = leading(work);
	const struct frame *frame = work->candidates.frames, *frames_end = frame + work->candidates.depth;
	const struct pick *pick = work->candidates.picks, *picks_end = pick + work->candidates.best.picks;
	int ranks = 0;
	for (frame += same, pick += same;; frame++, pick++) {
		budget_charge(&work->budget, 1);
		while (frame < frames_end && item_members(work, frame->at, frame->count) == 0)
			frame++;
		if (frame == frames_end || pick == picks_end)
			return frame == frames_end && (pick < picks_end || ranks < 0);
		if (frame->at != pick->item)
			return frame->at < pick->item;
		bool tail = frame->at == work->segments.tail_item;
		if (frame->count == pick->count && tail == (pick->item == work->candidates.best.tail_item))
			continue;
		int order = compare_fills(work, frame->at, frame->count, pick->count, frame + 1 < frames_end,
					  pick + 1 < picks_end, &ranks);
		if (order != 0)
			return order < 0;
	}
}

bool place_see(struct place_work *work, const struct gain *gain)
{
	if (work->candidates.seen == FROND_CANDIDATES) {
		work->candidates.stop = true;
		return false;
	}
	work->candidates.seen++;
	if (work->candidates.best.found) {
		int order = place_compare(work, gain, &work->candidates.best.gain);
		/* On a tie the first candidate stays: it has more members further to the front. Only members that share
		 * nodes, or choose between NVLink domains, can have a later candidate with lower nodes, and
		 * segments, whose short one is tried here and there; leaves with slow links come last. */
		bool first = work->answer->whole_nodes && !work->fabric->split && !work->segments.on &&
			     work->ask->bandwidth_gbps == 0;
		if (order > 0 || (order == 0 && (first || !lower(work))))
			return true;
	}
	uint32_t same = leading(work);
	work->candidates.best = (struct best){.found = true,
					      .tail_item = work->segments.tail_item,
					      .domain = work->scope.domain,
					      .gain = *gain,
					      .picks = same,
					      .per_node = work->scope.per_node};
	work->candidates.same = work->candidates.depth;
	budget_charge(&work->budget, work->candidates.depth - same);
	for (uint32_t i = same; i < work->candidates.depth; i++)
		if (item_members(work, work->candidates.frames[i].at, work->candidates.frames[i].count) > 0)
			work->candidates.picks[work->candidates.best.picks++] =
				(struct pick){work->candidates.frames[i].at, work->candidates.frames[i].count};
	return true;
}

static void forget(struct place_work *work)
{
	work->candidates.best.found = false;
	work->candidates.seen = 0;
	work->candidates.stop = false;
	work->candidates.depth = 0;
}

/* Fills the best candidate for good. */
static bool settle(struct place_work *work)
{
	if (work->candidates.stop)
		work->answer->plan.flags |= FROND_PLAN_BOUNDED;
	work->segments.tail_item = work->candidates.best.found ? work->candidates.best.tail_item : FROND_NONE;
	for (uint32_t i = 0; work->candidates.best.found && i < work->candidates.best.picks; i++)
		place_fill(work, work->candidates.picks[i].item, work->candidates.picks[i].count);
	work->segments.tail_item = FROND_NONE;
	return work->candidates.best.found;
}

/* ---- one run of adjacent leaves --------------------------------------------------------------------------------------- */

struct run {                          /* a search over runs of usable items */
	uint32_t length;              /* most leaves */
	bool exact;                   /* no fewer either */
	bool found;                   /* some window holds what is missing */
	uint32_t nodes;               /* fewest of such a window, when members may share nodes */
	uint32_t first_pin, last_pin; /* items; first > last: nobody is pinned */
	uint32_t pinned;              /* items from one to the other with a pinned member */
	void (*visit)(struct place_work *work, struct run *run, uint32_t lo, uint32_t hi);
};

/* Items of [lo, hi) that must get a member: those where nobody is pinned. */
static uint32_t owed(const struct place_work *work, const struct run *run, uint32_t lo, uint32_t hi)
{
	uint32_t count = hi > lo ? hi - lo : 0;
	if (work->gang.pins > 0 && lo <= run->first_pin && hi > run->last_pin)
		return count - run->pinned;
	for (uint32_t item = max_u32(lo, run->first_pin); work->gang.pins > 0 && item < min_u32(hi, run->last_pin + 1);
	     item++)
		count -= item_pin(work, item) > 0;
	return count;
}

/* Where windows that start at `item` end at most; 0: none does what it must. */
static uint32_t window_end(const struct place_work *work, const struct run *run, uint32_t item, uint32_t hi)
{
	uint32_t end = run->length < hi - item ? item + run->length : hi;
	if (run->exact && end != item + run->length)
		return 0;
	if (work->gang.pins > 0 && (item > run->first_pin || end <= run->last_pin))
		return 0;
	uint32_t must = run->exact ? end : work->gang.pins > 0 ? run->last_pin + 1 : item + 1;
	if (work->scratch.sum[end] - work->scratch.sum[item] < work->gang.missing ||
	    owed(work, run, item, must) > work->gang.missing)
		return 0;
	return end;
}

static void add_up(struct place_work *work, uint32_t lo, uint32_t hi)
{
	work->scratch.sum[lo] = 0;
	for (uint32_t item = lo; item < hi; item++)
		work->scratch.sum[item + 1] = work->scratch.sum[item] + item_most(work, item);
}

/* Where leaves have caps, or count segments: the fewest nodes of items [lo, hi) for 0 … members, each item in use; NO_NODES:
 * they do not fit. nodes[]: scratch for what one item needs. */
struct capped {
	uint16_t *least;
	uint64_t *nodes;
	uint64_t steps; /* that it took */
};

static struct capped fewest_capped(struct place_work *work, uint32_t lo, uint32_t hi, uint32_t members)
{
	uint32_t cells = members + 1 + LANES;
	uint16_t *least = (uint16_t *)(void *)work->scratch.cells, *next = least + cells, *own = next + cells;
	struct capped capped = {.nodes = work->scratch.cells + (3 * cells + 3) / 4,
				.steps = STEPS_NODE * (item_start(work, hi) - item_start(work, lo))};
	uint32_t start = 0; /* items that have to get one */
	for (uint32_t m = 0; m < cells; m++)
		least[m] = m == 0 ? 0 : NO_NODES;
	for (uint32_t item = lo; item < hi; item++) {
		uint32_t most = min_u32(place_hold(work, item), members), first = item_pin(work, item) == 0, rows = 1;
		place_nodes_upto(work, item, most, capped.nodes);
		for (uint32_t count = 0; count <= most; count++) {
			own[count] = (uint16_t)(capped.nodes[count] < NO_NODES ? capped.nodes[count] : NO_NODES);
			rows += count > 0 && own[count] != own[count - 1];
		}
		for (uint32_t m = 0; m < cells; m++)
			next[m] = NO_NODES;
		row_add(next, least, start, members, own, first, most);
		for (uint32_t m = members + 1; m < cells; m++)
			next[m] = NO_NODES; /* what the last lanes left there */
		uint16_t *swapped = least;
		least = next;
		next = swapped;
		start = min_u32(start + first, members);
		capped.steps += (uint64_t)STEPS_POINT * most + (members / LANES + 1ull) * (rows + 1);
	}
	capped.least = least;
	return capped;
}

struct tally {                              /* the nodes of a window, by the members they could take */
	uint32_t rooms[FROND_GPUS_MAX + 1]; /* of those that nobody of the gang uses yet */
	uint32_t tops[FROND_GPUS_MAX + 1];  /* of them, the roomiest of each item where nobody is pinned */
	uint32_t spare;                     /* room on the nodes that the gang uses */
	uint32_t items;                     /* without a pinned member */
};

/* Counts an item as part of the window (sign = 1), or no longer. */
static void tally_item(struct place_work *work, struct tally *tally, uint32_t item, uint32_t sign)
{
	uint32_t roomiest = 0;
	for (uint32_t at = item_start(work, item); at < item_end(work, item); at++) {
		uint32_t room = place_node_now(work, at);
		if (work->pin[at] > 0) {
			tally->spare += sign * room;
			continue;
		}
		tally->rooms[room] += sign;
		roomiest = max_u32(roomiest, room);
	}
	if (item_pin(work, item) == 0) {
		tally->tops[roomiest] += sign;
		tally->items += sign;
	}
}

/* Fewest nodes for `members` in the window, each item in use: the roomiest of each that has nobody pinned, then the
 * roomiest of all. UINT32_MAX: they do not fit. */
static uint32_t tally_fewest(const struct tally *tally, uint32_t members)
{
	uint32_t nodes = tally->items, held = tally->spare;
	for (uint32_t room = 1; room <= FROND_GPUS_MAX; room++)
		held += tally->tops[room] * room;
	if (nodes > members)
		return UINT32_MAX;
	uint32_t left = members > held ? members - held : 0;
	for (uint32_t room = FROND_GPUS_MAX; room > 0 && left > 0; room--) {
		uint32_t count = min_u32(tally->rooms[room] - tally->tops[room], (left + room - 1) / room);
		nodes += count;
		left -= min_u32(left, count * room);
	}
	return left > 0 ? UINT32_MAX : nodes;
}

static bool leaves_capped(const struct place_work *work)
{
	return work->ask->max_nodes_per_leaf > 0 || work->ask->max_gpus_per_leaf > 0 || work->segments.on;
}

/* The same for items [lo, hi). */
static uint32_t fewest_nodes(struct place_work *work, uint32_t lo, uint32_t hi, uint32_t members)
{
	struct tally tally = {.spare = 0};
	for (uint32_t item = lo; item < hi; item++)
		tally_item(work, &tally, item, 1);
	return tally_fewest(&tally, members);
}

/* The window becomes [lo, hi), neither end moving back. */
static void tally_slide(struct place_work *work, struct tally *tally, uint32_t *from, uint32_t *to, uint32_t lo,
			uint32_t hi)
{
	budget_charge(&work->budget, (uint64_t)STEPS_NODE * (item_start(work, hi) - item_start(work, *to) +
							     item_start(work, lo) - item_start(work, *from)));
	for (; *to < hi; ++*to)
		tally_item(work, tally, *to, 1);
	for (; *from < lo; ++*from)
		tally_item(work, tally, *from, UINT32_MAX);
}

/* Is there a window at all, and how few nodes does one need? */
static void run_measure(struct place_work *work, struct run *run, uint32_t lo, uint32_t hi)
{
	struct tally tally = {.spare = 0};
	uint32_t from = lo, to = lo, fewest;
	add_up(work, lo, hi);
	for (uint32_t item = lo; item < hi; item++) {
		uint32_t end = window_end(work, run, item, hi);
		if (end == 0)
			continue;
		run->found = true;
		if (!place_shares(work))
			continue;
		if (leaves_capped(work)) {
			if (run->nodes != UINT32_MAX && work->budget.left == 0) {
				work->answer->cut = work->budget.spent = true; /* another may need fewer */
				continue;
			}
			struct capped capped = fewest_capped(work, item, end, work->gang.missing);
			budget_charge(&work->budget, capped.steps);
			fewest = capped.least[work->gang.missing] == NO_NODES ? UINT32_MAX
									      : capped.least[work->gang.missing];
		} else {
			tally_slide(work, &tally, &from, &to, item, end);
			fewest = tally_fewest(&tally, work->gang.missing);
		}
		run->nodes = min_u32(run->nodes, fewest);
	}
}

/* The same where leaves have caps: one look at the rest of the window is for all counts. */
static uint32_t next_count_capped(struct place_work *work, const struct run *run, const struct frame *frame,
				  uint32_t from, uint32_t end)
{
	struct capped rest = fewest_capped(work, frame->at + 1, end, frame->rest - frame->least);
	place_pay(work, rest.steps + (uint64_t)STEPS_POINT * from);
	if (work->candidates.stop)
		return UINT32_MAX;
	place_nodes_upto(work, frame->at, from, rest.nodes);
	for (uint32_t count = from + 1; count-- > frame->least;) {
		uint32_t after = rest.least[frame->rest - count];
		if (after != NO_NODES && frame->cost + rest.nodes[count] + after <= run->nodes)
			return count;
	}
	return UINT32_MAX;
}

/* The largest count up to `from` that lets the rest of the window do its part; UINT32_MAX: none down to the frame's
 * least. Only members that may share nodes have anything to check: the bounds see to the rest. */
static uint32_t next_count(struct place_work *work, const struct run *run, const struct frame *frame, uint32_t from,
			   uint32_t end)
{
	if (!place_shares(work))
		return from;
	if (leaves_capped(work))
		return next_count_capped(work, run, frame, from, end);
	for (uint32_t count = from + 1; count-- > frame->least && !work->candidates.stop;) {
		place_pay(work, (uint64_t)STEPS_NODE * (item_start(work, end) - item_start(work, frame->at)));
		uint64_t nodes = frame->cost + place_nodes_for(work, frame->at, count);
		uint32_t after = frame->rest == count && frame->at + 1 == end
					 ? 0
					 : fewest_nodes(work, frame->at + 1, end, frame->rest - count);
		if (after != UINT32_MAX && nodes + after <= run->nodes)
			return count;
	}
	return UINT32_MAX;
}

/* Every way to hand what is missing to the leaves of windows that start at `start`. */
static void walk_window(struct place_work *work, const struct run *run, uint32_t start, uint32_t end)
{
	uint32_t at = start, rest = work->gang.missing;
	uint64_t cost = 0;
	struct gain gain = GAIN_NONE;
	bool down = true;
	work->candidates.depth = 0;
	while (!work->candidates.stop) {
		if (!down) { /* one member fewer for the last leaf, or another leaf before it */
			if (work->candidates.depth == 0)
				return;
			struct frame *top = &work->candidates.frames[work->candidates.depth - 1];
			uint32_t count =
				top->count > top->least ? next_count(work, run, top, top->count - 1, end) : UINT32_MAX;
			if (count == UINT32_MAX) {
				work->candidates.depth--;
				continue;
			}
			top->count = (uint16_t)count;
		} else {
			bool whole = run->exact ? at == end : rest == 0 && (work->gang.pins == 0 || at > run->last_pin);
			if (whole) {
				work->candidates.same = 0;
				place_see(work, &gain);
				down = false;
				continue;
			}
			uint32_t must = run->exact ? end : work->gang.pins > 0 ? run->last_pin + 1 : at + 1;
			uint64_t after = at < end ? work->scratch.sum[end] - work->scratch.sum[at + 1] : 0;
			uint32_t later = owed(work, run, at + 1, must);
			struct frame frame = {.at = at, .rest = (uint16_t)rest, .cost = cost, .before = gain};
			uint32_t least = 0, count = 0;
			if (at < end) {
				least = item_pin(work, at) == 0;
				if (rest > after)
					least = max_u32(least, (uint32_t)(rest - after));
				count = min_u32(item_most(work, at), rest > later ? rest - later : 0);
			}
			frame.least = (uint16_t)least;
			if (at >= end || count < least || later > rest ||
			    (count = next_count(work, run, &frame, count, end)) == UINT32_MAX) {
				down = false;
				continue;
			}
			frame.count = (uint16_t)count;
			work->candidates.frames[work->candidates.depth++] = frame;
		}
		const struct frame *top = &work->candidates.frames[work->candidates.depth - 1];
		gain = top->before;
		place_pay(work, place_gain_kept(work, top->at, top->count, &gain));
		cost = top->cost + (place_shares(work) ? place_nodes_for(work, top->at, top->count) : 0);
		rest = top->rest - top->count;
		at = top->at + 1;
		down = true;
	}
}

static void run_walk(struct place_work *work, struct run *run, uint32_t lo, uint32_t hi)
{
	add_up(work, lo, hi);
	for (uint32_t item = lo; item < hi && !work->candidates.stop; item++) {
		uint32_t end = window_end(work, run, item, hi);
		if (end != 0)
			walk_window(work, run, item, end);
	}
}

static void visit_singles(struct place_work *work, struct run *run, uint32_t lo, uint32_t hi)
{
	for (uint32_t item = lo; item < hi && !work->candidates.stop; item++)
		if (item_pin(work, item) > 0 || place_hold(work, item) > 0)
			run->visit(work, run, item, item + 1);
}

/* Maximal runs among the leaves [lo, hi) of one spine. */
static void visit_runs(struct place_work *work, struct run *run, uint32_t lo, uint32_t hi)
{
	uint32_t start = lo;
	if (run->length == 1) {
		visit_singles(work, run, lo, hi);
		return;
	}
	for (uint32_t item = lo; item <= hi && !work->candidates.stop; item++) {
		if (item < hi && item_usable(work, item))
			continue;
		if (item > start)
			run->visit(work, run, start, item);
		start = item + 1;
		/* A leaf with a slow link: only for a gang that stays inside. */
		if (item < hi && !run->exact && item_slow(work, item) && place_hold(work, item) > 0)
			run->visit(work, run, item, item + 1);
	}
}

static void visit_spines(struct place_work *work, struct run *run)
{
	const struct fabric *fabric = work->fabric;
	uint32_t last = work->scope.hi > 0 && work->scope.lo < fabric->leaf_count
				? item_spine(work, min_u32(work->scope.hi, fabric->leaf_count) - 1)
				: 0;
	bool counting = run->visit == run_walk;
	place_alike_forget(work);
	for (uint32_t spine = work->scope.lo < fabric->leaf_count ? item_spine(work, work->scope.lo)
								  : fabric->spine_count;
	     spine <= last && spine < fabric->spine_count && !work->candidates.stop; spine++) {
		uint32_t lo = max_u32(fabric->spine_start[spine], work->scope.lo);
		uint32_t hi = min_u32(fabric->spine_start[spine + 1], work->scope.hi);
		bool whole = lo == fabric->spine_start[spine] && hi == fabric->spine_start[spine + 1];
		if ((work->gang.pins == 0 && place_hopeless(work, spine)) ||
		    (whole && place_alike_seen(work, spine, counting)))
			continue;
		uint32_t before = work->candidates.seen;
		budget_charge(&work->budget, (uint64_t)STEPS_ITEM * (hi - lo));
		visit_runs(work, run, lo, hi);
		if (whole)
			place_alike_remember(work, spine, work->candidates.seen - before);
	}
}

/* Nodes without a leaf, each by itself. singles: one of them takes all that is missing, or none does. */
static void visit_loose(struct place_work *work, struct run *run, bool singles)
{
	for (uint32_t item = max_u32(work->scope.lo, work->fabric->leaf_count);
	     item < work->scope.hi && !work->candidates.stop; item++) {
		uint32_t hold = place_hold(work, item);
		if (!singles && (hold > 0 || item_pin(work, item) > 0))
			run->visit(work, run, item, item + 1);
		if (!singles || hold < work->gang.missing)
			continue;
		place_pay(work, STEPS_GAIN + STEPS_FILL);
		if (!work->candidates.stop)
			place_see_single(work, item);
	}
}

static struct run run_of(const struct place_work *work, uint32_t length, bool exact)
{
	struct run run = {.length = length, .exact = exact, .nodes = UINT32_MAX, .first_pin = 1};
	for (uint32_t item = 0, first = FROND_NONE; work->gang.pins > 0 && item < work->items; item++)
		if (item_pin(work, item) > 0) {
			first = first == FROND_NONE ? item : first;
			run.first_pin = first;
			run.last_pin = item;
			run.pinned++;
		}
	return run;
}

static void swap_scope(struct place_work *work, uint32_t *lo, uint32_t *hi)
{
	uint32_t first = work->scope.lo, end = work->scope.hi;
	work->scope.lo = *lo;
	work->scope.hi = *hi;
	*lo = first;
	*hi = end;
}

/* Windows that the short segment's item is in. */
static bool visit_around_tail(struct place_work *work, void *context)
{
	struct run *run = context, all = *run;
	const struct fabric *fabric = work->fabric;
	uint32_t lo = work->scope.lo, hi = work->scope.hi, tail = work->segments.tail_item;
	if (tail != FROND_NONE) {
		uint32_t spine = item_spine(work, tail);
		bool pins = run->first_pin <= run->last_pin;
		run->first_pin = pins ? min_u32(run->first_pin, tail) : tail;
		run->last_pin = pins ? max_u32(run->last_pin, tail) : tail;
		run->pinned += work->leaf_pin[tail] == 0;
		lo = max_u32(lo, max_u32(fabric->spine_start[spine], tail - min_u32(tail, run->length - 1)));
		hi = min_u32(hi, min_u32(fabric->spine_start[spine + 1], tail + run->length));
		budget_charge(&work->budget, (uint64_t)STEPS_ITEM * (hi - lo));
	}
	swap_scope(work, &lo, &hi);
	visit_spines(work, run);
	swap_scope(work, &lo, &hi);
	run->first_pin = all.first_pin;
	run->last_pin = all.last_pin;
	run->pinned = all.pinned;
	return work->candidates.stop || (run->found && run->visit == run_measure && !place_shares(work));
}

static bool visit(struct place_work *work, struct run *run, bool loose,
		  void (*with)(struct place_work *work, struct run *run, uint32_t lo, uint32_t hi))
{
	run->visit = with;
	run->found = false;
	work->candidates.near_plan = 0;
	bool singles = work->scope.quick && run->length == 1 && with == run_walk && !place_shares(work);
	if (singles)
		place_singles(work);
	else if (work->segments.on)
		segments_each_tail(work, visit_around_tail, run);
	else
		visit_spines(work, run);
	if (loose)
		visit_loose(work, run, singles);
	return run->found;
}

static uint32_t fullest_pinned_node(const struct place_work *work)
{
	uint32_t most = 1;
	for (uint32_t i = 0; work->gang.pins > 0 && i < work->ask->count; i++) {
		const struct frond_member *member = &work->ask->members[i];
		if (member->gpus > 0 && member->pinned_slot != FROND_NONE)
			most = max_u32(most, work->pin[work->fabric->position[member->pinned_slot]]);
	}
	return most;
}

static uint32_t fullest_pinned_item(const struct place_work *work)
{
	uint32_t most = 1;
	for (uint32_t item = 0; work->gang.pins > 0 && item < work->items; item++)
		most = max_u32(most, item_pin(work, item) + (work->segments.on ? segments_owed(work, item) : 0));
	return most;
}

/* `distributed`: fewest members on the fullest node, then in the fullest leaf, pinned ones included, for which `holds`
 * says yes. Leaves the measure at that. */
static bool spread(struct place_work *work, bool (*holds)(struct place_work *work, void *context), void *context)
{
	uint32_t low = fullest_pinned_node(work), high = FROND_GPUS_MAX;
	work->scope.per_leaf = UINT32_MAX;
	place_measure(work, low, false);
	if (!segments_ready(work) ||
	    !holds(work, context)) { /* with more on a node there is more room: if it is never enough, one look tells */
		place_measure(work, FROND_GPUS_MAX, false);
		if (low >= high || !segments_ready(work) || !holds(work, context))
			return false;
		for (low++; low < high;) {
			uint32_t middle = low + (high - low) / 2;
			place_measure(work, middle, false);
			if (segments_ready(work) && holds(work, context))
				high = middle;
			else
				low = middle + 1;
		}
		place_measure(work, high, false);
	}
	low = fullest_pinned_item(work);
	high = work->gang.total;
	while (low < high) {
		work->scope.per_leaf = low + (high - low) / 2;
		if (holds(work, context))
			high = work->scope.per_leaf;
		else
			low = work->scope.per_leaf + 1;
	}
	work->scope.per_leaf = low;
	return true;
}

struct runs { /* for spread() */
	struct run *run;
	bool loose;
};

static bool runs_hold(struct place_work *work, void *context)
{
	struct runs *runs = context;
	return visit(work, runs->run, runs->loose, run_measure);
}

/* Runs of up to `length` leaves. */
static bool span_runs(struct place_work *work, uint32_t length, bool loose)
{
	forget(work);
	bool spreads = work->ask->strategy == STRATEGY_DISTRIBUTED && !work->scope.one_node;
	struct run run = run_of(work, length, !spreads);
	if (spreads) {
		if (!spread(work, runs_hold, &(struct runs){.run = &run, .loose = loose}))
			return false;
	} else if (place_shares(work) && !visit(work, &run, loose, run_measure)) {
		return false;
	}
	visit(work, &run, loose, run_walk);
	return settle(work);
}

static bool span_node(struct place_work *work)
{
	if (work->gang.pins > 0 && fullest_pinned_node(work) != work->gang.pins)
		return false; /* they are apart already */
	place_measure(work, FROND_GPUS_MAX, true);
	bool found = span_runs(work, 1, true);
	place_measure(work, FROND_GPUS_MAX, false);
	return found;
}

/* One NVLink domain (latency-sensitive only): each is a candidate of its own. */
/* Step 7 between two NVLink domains: one may begin first in the fabric and have its free nodes behind those of the other. */
static bool domain_lower(struct place_work *work, uint32_t item, const struct best *than, const struct pick *pick)
{
	struct best best = work->candidates.best;
	int ranks = 0;
	if (pick->item != item)
		return false; /* that leaf came before this one */
	work->candidates.best = *than;
	int order = compare_fills(work, item, work->candidates.picks[0].count, pick->count, false, false, &ranks);
	work->candidates.best = best;
	return order < 0 || (order == 0 && ranks < 0);
}

static bool span_domain(struct place_work *work)
{
	const struct fabric *fabric = work->fabric;
	struct best best = {.found = false};
	struct pick pick = {0};
	uint32_t winner = FROND_NONE, next = 0; /* domains are numbered in order: a lower one has been seen */
	uint32_t best_use = 0;                  /* step 3: members on the fullest node, or nodes; all else is equal */
	forget(work);
	for (uint32_t at = item_start(work, work->scope.lo);
	     work->scope.lo < work->scope.hi && at < item_end(work, work->scope.hi - 1); at++) {
		if (fabric->domain_of[at] == FROND_NONE || fabric->domain_of[at] < next)
			continue;
		if (work->budget.left == 0) { /* each of them is a look at all of its leaf */
			work->answer->cut = work->budget.spent = true;
			break;
		}
		work->scope.domain = fabric->domain_of[at];
		next = work->scope.domain + 1;
		if (!place_pins_in_domain(work))
			continue;
		place_measure(work, FROND_GPUS_MAX, false);
		struct run run = run_of(work, 1, true);
		uint32_t item = item_of(work, at);
		work->candidates.best = (struct best){.found = false};
		if (work->ask->strategy == STRATEGY_DISTRIBUTED) /* the fewest on the fullest node of this domain */
			place_measure(work, fullest_pinned_node(work), false);
		while (place_hold(work, item) < work->gang.missing && work->scope.per_node < FROND_GPUS_MAX)
			place_measure(work, work->scope.per_node + 1, false);
		run.nodes = UINT32_MAX;
		run_measure(work, &run, item, item + 1);
		run_walk(work, &run, item, item + 1);
		uint32_t use = work->ask->strategy == STRATEGY_DISTRIBUTED ? work->scope.per_node
			       : place_shares(work)                        ? run.nodes
									   : 0;
		if (!work->candidates.best.found || (best.found && use > best_use))
			continue;
		int order = !best.found || use < best_use
				    ? -1
				    : place_compare(work, &work->candidates.best.gain, &best.gain);
		if (order < 0 || (order == 0 && domain_lower(work, item, &best, &pick))) {
			best_use = use;
			best = work->candidates.best;
			pick = work->candidates.picks[0];
			winner = work->scope.domain;
		}
	}
	work->scope.domain = winner;
	work->candidates.best = best;
	work->candidates.picks[0] = pick;
	place_measure(work, best.found ? best.per_node : FROND_GPUS_MAX, false);
	bool found = settle(work);
	work->scope.domain = FROND_NONE;
	return found;
}

/* ---- adjacent spines ---------------------------------------------------------------------------------------------------- */

/* What the best run of a spine takes; with pins it must hold them all. 0: no run will do. */
static uint64_t best_run(struct place_work *work, uint32_t lo, uint32_t hi)
{
	uint64_t most = 0, members = 0, pinned = 0, all = 0;
	for (uint32_t item = lo; work->gang.pins > 0 && item < hi; item++)
		all += item_pin(work, item);
	for (uint32_t item = lo; item < hi; item++) {
		if (!item_usable(work, item)) {
			members = pinned = 0;
			continue;
		}
		members += item_most(work, item);
		pinned += item_pin(work, item);
		if (pinned == all && members + pinned > most)
			most = members + pinned;
	}
	return most == 0 ? 0 : most - all + (all > 0); /* > 0 also when only pinned members are there */
}

struct chain { /* adjacent spines first … last, and their items inside the preferred domain */
	uint32_t first, last, lo, hi;
	/* kept up to date spine by spine */
	uint64_t members, pinned; /* in their best runs; of the gang */
	uint32_t empty, apart;    /* spines without a run that would do; not adjacent to the one before */
	uint32_t reach;           /* no later start has a chain that holds the gang and ends before this spine */
};

/* What chains want to know of a spine, in alike_seen[]: chains of all lengths ask for it again and again. */
#define SPINE_PINNED 16u /* bits below: members of its best run, no more than are missing, + 1; 0: no run will do */
_Static_assert(FROND_MEMBERS_MAX < 1u << (SPINE_PINNED - 1), "members of a spine");

/* Spines that have a leaf in the scope: no others are in a chain. */
static uint32_t spines_first(const struct place_work *work)
{
	return work->scope.lo < work->fabric->leaf_count ? item_spine(work, work->scope.lo) : work->fabric->spine_count;
}

static uint32_t spines_end(const struct place_work *work)
{
	uint32_t hi = min_u32(work->scope.hi, work->fabric->leaf_count);
	return work->scope.lo < hi ? item_spine(work, hi - 1) + 1 : spines_first(work);
}

/* Counts every one of them under the present measure. */
static void spines_count(struct place_work *work)
{
	const struct fabric *fabric = work->fabric;
	uint32_t item_steps = work->segments.on ? STEPS_ITEM + STEPS_NODE : STEPS_ITEM;
	budget_charge(&work->budget, (uint64_t)item_steps * (work->scope.hi - work->scope.lo) +
					     (uint64_t)STEPS_LEAF * (spines_end(work) - spines_first(work)));
	for (uint32_t spine = spines_first(work); spine < spines_end(work); spine++) {
		uint32_t lo = max_u32(fabric->spine_start[spine], work->scope.lo);
		uint32_t hi = min_u32(fabric->spine_start[spine + 1], work->scope.hi), here = 0;
		uint64_t run = best_run(work, lo, hi), missing = work->gang.missing;
		for (uint32_t item = lo; work->gang.pins > 0 && item < hi; item++)
			here += item_pin(work, item);
		uint64_t members = run - (here > 0 && run > 0);
		work->candidates.alike_seen[spine] =
			here << SPINE_PINNED | (run == 0 ? 0 : (uint32_t)(members < missing ? members : missing) + 1);
	}
}

/* Counts a spine as part of the chain (sign = 1), or no longer. */
static void chain_count(const struct place_work *work, struct chain *chain, uint32_t spine, uint32_t sign)
{
	uint32_t counted = work->candidates.alike_seen[spine], run = counted & ((1u << SPINE_PINNED) - 1);
	uint64_t factor = sign == 1 ? 1 : UINT64_MAX;
	chain->members += factor * (run - (run > 0));
	chain->pinned += factor * (counted >> SPINE_PINNED);
	chain->empty += sign * (run == 0);
}

static void chain_apart(const struct place_work *work, struct chain *chain, uint32_t spine, uint32_t sign)
{
	chain->apart += sign * !spine_adjacent(work->fabric, spine);
}

/* The chain of spines first … last; most of them are those that it had. */
static void chain_move(const struct place_work *work, struct chain *chain, uint32_t first, uint32_t last)
{
	bool little = chain->first > chain->last || chain->last < first || last - first < (chain->last - first) / 2;
	if (little) { /* in common */
		*chain = (struct chain){.first = first, .last = first, .reach = chain->reach};
		chain_count(work, chain, first, 1);
	}
	while (chain->first < first) {
		chain_count(work, chain, chain->first++, UINT32_MAX);
		chain_apart(work, chain, chain->first, UINT32_MAX);
	}
	while (chain->last > last) {
		chain_apart(work, chain, chain->last, UINT32_MAX);
		chain_count(work, chain, chain->last--, UINT32_MAX);
	}
	while (chain->last < last) {
		chain_count(work, chain, ++chain->last, 1);
		chain_apart(work, chain, chain->last, 1);
	}
	chain->lo = max_u32(work->fabric->spine_start[first], work->scope.lo);
	chain->hi = min_u32(work->fabric->spine_start[last + 1], work->scope.hi);
}

/* Can they hold what is missing, one run in each, and every pin? */
static bool chain_holds(const struct place_work *work, const struct chain *chain)
{
	return chain->empty == 0 && chain->members >= work->gang.missing && chain->pinned == work->gang.pins;
}

static struct chain no_chain(void)
{
	return (struct chain){.first = 1}; /* first > last */
}

/* The next chain of up to `longest` adjacent spines that can hold the gang, shorter ones first at each start. One that
 * begins later and ends no later holds no more: where a start found none, the next one need not look. */
static bool next_chain(struct place_work *work, uint32_t shortest, uint32_t longest, struct chain *chain)
{
	bool begun = chain->first <= chain->last;
	uint32_t first = begun ? chain->first : spines_first(work), end = spines_end(work);
	uint32_t last = begun ? chain->last + 1 : first + shortest - 1;
	while (first + shortest <= end) {
		bool inside = last - first < longest && last < end;
		if (inside) {
			budget_charge(&work->budget, 1);
			chain_move(work, chain, first, last);
			if (chain->apart == 0 && chain_holds(work, chain))
				return true;
			if (chain->apart == 0 && chain->empty == 0)
				chain->reach = max_u32(chain->reach, last++);
			else
				inside = false; /* nor does a longer one */
		}
		if (!inside) {
			first++;
			last = max_u32(first + shortest - 1, chain->reach);
		}
	}
	return false;
}

struct chains { /* for spread() */
	uint32_t shortest, longest;
	bool spreads;
	uint64_t most; /* cost of the best */
};

/* A longer chain holds more: at each start only the longest is looked at. */
static bool some_chain_holds(struct place_work *work, void *context)
{
	const struct chains *chains = context;
	const struct fabric *fabric = work->fabric;
	struct chain chain = no_chain();
	uint32_t end = spines_end(work);
	spines_count(work);
	for (uint32_t first = spines_first(work), last = first; first < end; first++, last = max_u32(first, last)) {
		chain_move(work, &chain, first, last);
		while (chain.empty == 0 && last - first + 1 < chains->longest && last + 1 < end &&
		       spine_adjacent(fabric, last + 1)) {
			chain_move(work, &chain, first, last + 1);
			if (chain.empty > 0) {
				chain_move(work, &chain, first, last);
				break;
			}
			last++;
		}
		if (chain.apart == 0 && chain_holds(work, &chain))
			return true;
	}
	/* `distributed` may fit into one leaf after all, and one that stays inside a leaf crosses no link. */
	for (uint32_t item = work->scope.lo;
	     chains->shortest == 1 && item < min_u32(work->scope.hi, work->fabric->leaf_count); item++)
		if (item_slow(work, item) && item_most(work, item) >= work->gang.missing &&
		    item_pin(work, item) == work->gang.pins)
			return true;
	return false;
}

/* Spines that can be in a chain with the one of the short segment; put back by swap_scope(). */
static void scope_around_tail(struct place_work *work, uint32_t longest, uint32_t *lo, uint32_t *hi)
{
	const struct fabric *fabric = work->fabric;
	*lo = work->scope.lo;
	*hi = work->scope.hi;
	if (work->segments.tail_item != FROND_NONE) {
		uint32_t spine = item_spine(work, work->segments.tail_item), before = min_u32(spine, longest - 1);
		*lo = max_u32(*lo, fabric->spine_start[spine - before]);
		*hi = min_u32(*hi, fabric->spine_start[min_u32(spine + longest, fabric->spine_count)]);
	}
	swap_scope(work, lo, hi);
}

static bool a_chain_around_tail_holds(struct place_work *work, void *context)
{
	const struct chains *chains = context;
	uint32_t lo, hi;
	scope_around_tail(work, chains->longest, &lo, &hi);
	bool holds = some_chain_holds(work, context);
	swap_scope(work, &lo, &hi);
	return holds;
}

static bool chains_hold(struct place_work *work, void *context)
{
	return segments_each_tail(work, a_chain_around_tail_holds, context);
}

/* A gang that stays inside a leaf crosses no link, however slow. */
static void see_slow_items(struct place_work *work)
{
	for (uint32_t item = work->scope.lo; item < work->scope.hi && !work->candidates.stop; item++) {
		if (item_slow(work, item) && item_most(work, item) >= work->gang.missing &&
		    item_pin(work, item) == work->gang.pins)
			place_see_single(work, item);
	}
}

/* Is every spine of the chain untouched, and like the one at the same place in the other? */
static bool chain_alike(const struct place_work *work, const struct chain *chain, const struct chain *other)
{
	const struct fabric *fabric = work->fabric;
	if (!work->scope.alike || chain->last - chain->first != other->last - other->first ||
	    chain->lo != fabric->spine_start[chain->first] || chain->hi != fabric->spine_start[chain->last + 1])
		return false;
	for (uint32_t i = 0; i <= chain->last - chain->first; i++)
		if (!place_untouched(work, chain->first + i) ||
		    fabric->spine[chain->first + i].shape != fabric->spine[other->first + i].shape)
			return false;
	return true;
}

static bool walk_chains(struct place_work *work, void *context)
{
	struct chains *chains = context;
	struct chain chain = no_chain(), untouched = {.first = 1};
	uint32_t alike = 0, lo, hi;
	scope_around_tail(work, chains->longest, &lo, &hi);
	spines_count(work);
	while (!work->candidates.stop && next_chain(work, chains->shortest, chains->longest, &chain)) {
		if (untouched.first <= untouched.last && chain_alike(work, &chain, &untouched)) {
			work->candidates.stop = work->candidates.seen + alike > FROND_CANDIDATES;
			work->candidates.seen = min_u32(work->candidates.seen + alike, FROND_CANDIDATES);
			continue;
		}
		uint32_t before = work->candidates.seen;
		uint64_t cost = chains->most;
		place_table(work, chain.lo, chain.hi, true, chains->spreads, &chains->most);
		if (chain_alike(work, &chain, &chain)) {
			alike = cost == chains->most ? work->candidates.seen - before : work->candidates.seen;
			untouched = chain;
		}
	}
	if (chains->spreads)
		see_slow_items(work);
	swap_scope(work, &lo, &hi);
	return work->candidates.stop;
}

/* At most need_spines adjacent spines, every one in use, one run of adjacent leaves in each. */
static bool span_spines(struct place_work *work)
{
	uint32_t longest = work->answer->need_spines;
	bool spreads = work->ask->strategy == STRATEGY_DISTRIBUTED;
	struct chains chains = {
		.shortest = spreads ? 1 : longest, .longest = longest, .spreads = spreads, .most = UINT64_MAX};
	forget(work);
	if (spreads && !spread(work, chains_hold, &chains))
		return false;
	segments_each_tail(work, walk_chains, &chains);
	return settle(work);
}

static bool span_of_rule(struct place_work *work)
{
	switch (work->answer->plan.rule) {
	case FROND_RULE_SINGLE_NODE:
		return span_node(work);
	case FROND_RULE_NVLINK_DOMAIN:
		return span_domain(work);
	case FROND_RULE_SAME_LEAF:
	case FROND_RULE_COMPLETE_LEAF:
	case FROND_RULE_ADJACENT_LEAVES:
		return span_runs(work, work->answer->need_leaves, false);
	default:
		return span_spines(work);
	}
}

bool place_span(struct place_work *work)
{
	bool parted = work->answer->plan.rule > FROND_RULE_NVLINK_DOMAIN; /* else all of it is in one domain */
	work->scope.per_leaf = UINT32_MAX;
	if (work->segments.size > 0)
		segments_turn(work, parted ? SEGMENTS_ON : SEGMENTS_NODES);
	place_measure(work, FROND_GPUS_MAX, false);
	bool found = segments_ready(work) && span_of_rule(work);
	if (found && work->segments.on)
		segments_hand_out(work);
	if (work->segments.size > 0)
		segments_turn(work, SEGMENTS_OFF);
	return found;
}

/* ---- without the rule ----------------------------------------------------------------------------------------------------- */

static bool everywhere_holds(struct place_work *work, void *context)
{
	(void)context;
	uint64_t members = 0, pinned = 0;
	budget_charge(&work->budget, (uint64_t)STEPS_ITEM * (work->scope.hi - work->scope.lo));
	for (uint32_t item = work->scope.lo; item < work->scope.hi; item++) {
		if (item_slow(work, item)) { /* of use to a gang that stays inside it */
			if (item_most(work, item) >= work->gang.missing && item_pin(work, item) == work->gang.pins)
				return true;
			continue;
		}
		members += item_most(work, item);
		pinned += item_pin(work, item);
	}
	return members >= work->gang.missing && pinned == work->gang.pins;
}

/* No rule: 3.4 alone. One item that holds all is best for two strategies and crosses no leaf link, so slow ones count. */
bool place_relaxed(struct place_work *work)
{
	place_measure(work, FROND_GPUS_MAX, false);
	work->scope.per_leaf = UINT32_MAX;
	if (work->gang.total == 1)
		return span_node(work); /* every strategy asks the same; place_order goes by the same order */
	if (work->ask->strategy != STRATEGY_DISTRIBUTED) {
		if (span_runs(work, 1, true))
			return true;
		forget(work);
		uint64_t most = UINT64_MAX;
		place_table(work, work->scope.lo, work->scope.hi, false, false, &most);
		return settle(work);
	}
	forget(work);
	if (!spread(work, everywhere_holds, NULL))
		return false;
	uint64_t most = UINT64_MAX;
	place_table(work, work->scope.lo, work->scope.hi, false, true, &most);
	see_slow_items(work);
	return settle(work);
}
