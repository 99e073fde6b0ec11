/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_span.c - today's nodes under the rule, and without it: which items a gang of equal members takes.
 * A candidate is a set of items; it is filled, its cost taken, and the lowest cost wins, the first one on a tie.
 */
#include "core/place_work.h"

struct best {
	struct cost cost;
	uint32_t lo, hi; /* items; item_best says which of them */
	uint32_t per_node, per_item;
	bool use_all, found;
};

/* ---- cost: the strategy's own terms, then step 6 of spec 3.4 ----------------------------------------------------- */

uint64_t place_node_key(const struct place_work *work, uint32_t position, uint32_t members)
{
	const struct fabric *fabric = work->fabric;
	const struct node *node = &work->nodes[fabric->order[position]];
	uint32_t leaf = fabric->leaf_of[position];
	uint32_t item =
		leaf != FROND_NONE ? leaf : fabric->leaf_count + position - fabric->leaf_start[fabric->leaf_count];
	uint32_t gpus = members * work->size;
	uint64_t breaks_leaf = work->item_whole[item] && gpus < work->item_free[item];
	uint64_t breaks_node = node->held == 0 && node->by_count == 0 && gpus < node->gpus;
	uint64_t opens_leaf = work->item_whole[item];
	uint64_t left_in_leaf = work->item_free[item] - gpus;
	uint64_t left_in_node = node_free_count(node) - gpus;
	if (work->ask->latency_sensitive) { /* most free GPUs in the leaf, in place of step 6 */
		breaks_leaf = breaks_node = opens_leaf = 0;
		left_in_leaf = FROND_NODES_MAX * FROND_GPUS_MAX - work->item_free[item];
	}
	return breaks_leaf << 46 | breaks_node << 45 | opens_leaf << 44 | left_in_leaf << 22 | left_in_node << 17 |
	       position;
}

static struct cost cost_of(const struct place_work *work, const struct best *candidate)
{
	struct cost cost = {{0}};
	if (work->ask->strategy == STRATEGY_DISTRIBUTED) {
		cost.term[0] = candidate->per_node;
		cost.term[1] = candidate->per_item;
	} else {
		for (uint32_t item = candidate->lo; item < candidate->hi; item++)
			cost.term[0] += work->item_used[item]; /* spines and runs are equal among the candidates */
		if (work->ask->strategy == STRATEGY_CONSOLIDATED)
			cost.term[1] = place_nodes_used(work, candidate->lo, candidate->hi);
	}
	uint32_t left_free = 0;
	for (uint32_t item = candidate->lo; item < candidate->hi; item++) {
		if (!work->item_used[item])
			continue;
		uint32_t taken = 0;
		for (uint32_t position = item_start(work, item); position < item_end(work, item); position++) {
			const struct node *node = &work->nodes[work->fabric->order[position]];
			uint32_t gpus = work->take[position] * work->size;
			taken += gpus;
			cost.term[3] += gpus > 0 && node->held == 0 && node->by_count == 0 && gpus < node->gpus;
		}
		cost.term[2] += work->item_whole[item] && taken > 0 && taken < work->item_free[item];
		cost.term[4] += work->item_whole[item] && taken > 0;
		left_free += taken > 0 ? work->item_free[item] - taken : 0;
		cost.term[5] += work->item_free[item];
	}
	if (work->ask->latency_sensitive)
		cost = (struct cost){{cost.term[0], cost.term[1], UINT32_MAX - cost.term[5], 0, 0, 0}};
	else
		cost.term[5] = left_free;
	return cost;
}

/* ---- candidates -------------------------------------------------------------------------------------------------- */

/* `distributed`: fewest members on the fullest node, then in the fullest item, pinned ones included. */
static bool spread(const struct place_work *work, struct best *candidate)
{
	uint32_t fullest_node = 1, fullest_item = 1;
	for (uint32_t item = candidate->lo; item < candidate->hi; item++)
		for (uint32_t position = item_start(work, item);
		     work->item_used[item] && position < item_end(work, item); position++)
			fullest_node = max_u32(fullest_node, work->pin[position]);
	for (candidate->per_node = fullest_node; candidate->per_node <= FROND_GPUS_MAX; candidate->per_node++) {
		uint64_t members = 0, most = 0;
		for (uint32_t item = candidate->lo; item < candidate->hi; item++) {
			if (!work->item_used[item])
				continue;
			uint32_t hold = place_hold(work, item, work->now, work->pin, candidate->per_node);
			work->item_got[item] = hold;
			members += hold;
			most = max_u32((uint32_t)most, hold + work->item_pin[item]);
			fullest_item = max_u32(fullest_item, work->item_pin[item]);
		}
		if (members < work->missing)
			continue;
		uint32_t low = fullest_item, high = (uint32_t)most;
		while (low < high) {
			uint32_t middle = low + (high - low) / 2;
			members = 0;
			for (uint32_t item = candidate->lo; item < candidate->hi; item++)
				if (work->item_used[item] && middle > work->item_pin[item])
					members += min_u32(work->item_got[item], middle - work->item_pin[item]);
			if (members >= work->missing)
				high = middle;
			else
				low = middle + 1;
		}
		candidate->per_item = low;
		return true;
	}
	return false;
}

/* Judges the items that are marked used in [lo, hi), and keeps them when they are better than the best so far. */
static void consider(struct place_work *work, uint32_t lo, uint32_t hi, bool use_all, struct best *best)
{
	uint32_t owed = 0;
	uint64_t pinned = 0;
	for (uint32_t item = lo; item < hi; item++) {
		owed += use_all && work->item_used[item] && work->item_pin[item] == 0;
		pinned += work->item_used[item] ? work->item_pin[item] : 0;
	}
	if (owed > work->missing || pinned != work->pins)
		return;
	struct best candidate = {.lo = lo,
				 .hi = hi,
				 .per_node = FROND_GPUS_MAX,
				 .per_item = UINT32_MAX,
				 .use_all = use_all,
				 .found = true};
	if (work->ask->strategy == STRATEGY_DISTRIBUTED && !spread(work, &candidate))
		return;
	place_fill(work, lo, hi, candidate.per_node, candidate.per_item, use_all);
	candidate.cost = cost_of(work, &candidate);
	if (best->found && cost_compare(&best->cost, &candidate.cost) <= 0)
		return;
	for (uint32_t item = lo; item < hi; item++)
		work->item_best[item] = work->item_used[item];
	*best = candidate;
}

struct choice {
	uint32_t lo, hi;
	struct best *best;
};

static void consider_choice(struct place_work *work, void *context)
{
	struct choice *choice = context;
	consider(work, choice->lo, choice->hi, true, choice->best);
}

/* Fills the best candidate for good. */
static bool settle(struct place_work *work, const struct best *best)
{
	for (uint32_t position = 0; position < work->fabric->node_count; position++)
		work->take[position] = 0;
	for (uint32_t item = 0; item < work->items; item++)
		work->item_used[item] = best->found && item >= best->lo && item < best->hi && work->item_best[item];
	if (best->found)
		place_fill(work, best->lo, best->hi, best->per_node, best->per_item, best->use_all);
	return best->found;
}

static void use(struct place_work *work, uint32_t lo, uint32_t hi)
{
	for (uint32_t item = lo; item < hi; item++)
		work->item_used[item] = true;
}

/* Can items [lo, hi) hold what is missing, with every pin inside and every item in use? */
static bool window_holds(const struct place_work *work, uint32_t lo, uint32_t hi)
{
	uint64_t members = 0, pinned = 0, owed = 0;
	for (uint32_t item = lo; item < hi; item++) {
		members += work->item_now[item];
		pinned += work->item_pin[item];
		owed += work->item_pin[item] == 0;
	}
	return members >= work->missing && pinned == work->pins && owed <= work->missing;
}

/* ---- the rules --------------------------------------------------------------------------------------------------- */

static bool span_node(struct place_work *work)
{
	uint64_t best = UINT64_MAX;
	for (uint32_t item = work->lo; item < work->hi; item++)
		for (uint32_t position = item_start(work, item); position < item_end(work, item); position++) {
			if (work->now[position] < work->missing || work->pin[position] != work->pins ||
			    work->item_now[item] < work->missing || /* caps per leaf count pinned members as well */
			    (work->missing == 0 && work->pins == 0))
				continue;
			uint64_t key = place_node_key(work, position, work->missing);
			best = key < best ? key : best;
		}
	if (best == UINT64_MAX)
		return false;
	memset(work->take, 0, work->fabric->node_count * sizeof *work->take);
	work->take[best % FROND_NODES_MAX] = (uint16_t)work->missing;
	return true;
}

/* At most `longest` adjacent leaves. The fewest that hold the gang win, but `distributed` weighs every length. */
static bool span_leaves(struct place_work *work, uint32_t longest)
{
	struct best best = {.found = false};
	uint32_t end = min_u32(work->hi, work->fabric->leaf_count);
	for (uint32_t length = 1; length <= longest; length++) {
		uint32_t broken = work->lo; /* items before this one cannot be in a run that reaches further */
		for (uint32_t item = work->lo; item < end; item++) {
			bool usable = length == 1 ? work->item_now[item] > 0 || work->item_pin[item] > 0
						  : item_usable(work, item);
			if (!usable)
				broken = item + 1;
			else if (item > broken && !item_adjacent(work, item))
				broken = item;
			if (item + 1 < broken + length || !window_holds(work, item + 1 - length, item + 1))
				continue;
			use(work, item + 1 - length, item + 1);
			consider(work, item + 1 - length, item + 1, true, &best);
		}
		if (best.found && work->ask->strategy != STRATEGY_DISTRIBUTED)
			break;
	}
	return settle(work, &best);
}

uint64_t place_mark_runs(struct place_work *work, uint32_t first, uint32_t last, uint32_t per_node, uint32_t per_item)
{
	uint64_t sum = 0;
	for (uint32_t spine = first; spine <= last; spine++) {
		uint32_t start = max_u32(work->fabric->spine_start[spine], work->lo);
		uint32_t end = min_u32(work->fabric->spine_start[spine + 1], work->hi);
		uint32_t run = start, best_lo = start, best_hi = start;
		uint64_t members = 0, most = 0;
		bool pinned = false, best_pinned = false;
		for (uint32_t item = start; item < end; item++) {
			work->item_used[item] = false;
			if (!item_usable(work, item)) {
				run = item + 1;
				members = 0;
				pinned = false;
				continue;
			}
			uint32_t hold = place_hold(work, item, work->now, work->pin, per_node);
			uint32_t left = per_item > work->item_pin[item] ? per_item - work->item_pin[item] : 0;
			members += min_u32(hold, left);
			pinned |= work->item_pin[item] > 0;
			bool more = members > most || work->item_pin[item] > 0;
			if ((pinned && !best_pinned) || (pinned == best_pinned && more)) {
				most = members;
				best_lo = run;
				best_hi = item + 1;
				best_pinned = pinned;
			}
		}
		use(work, best_lo, best_hi);
		if (best_lo == best_hi)
			return 0;
		sum += most;
	}
	return sum;
}

/* Takes leaves off the far ends until no more are used than there are members for them. */
static void trim(struct place_work *work, uint32_t lo, uint32_t hi)
{
	uint32_t owed = 0;
	for (uint32_t item = lo; item < hi; item++)
		owed += work->item_used[item] && work->item_pin[item] == 0;
	for (uint32_t item = hi; item > lo && owed > work->missing; item--) {
		bool inner = item - 1 > lo && item_adjacent(work, item - 1) && work->item_used[item - 2];
		if (work->item_used[item - 1] && work->item_pin[item - 1] == 0 && inner) {
			work->item_used[item - 1] = false;
			owed--;
		}
	}
}

static void consider_spread_spines(struct place_work *work, uint32_t lo, uint32_t hi, struct best *best)
{
	uint32_t first = item_spine(work, lo), last = item_spine(work, hi - 1);
	for (uint32_t per_node = 1; per_node <= FROND_GPUS_MAX; per_node++) {
		if (place_mark_runs(work, first, last, per_node, UINT32_MAX) < work->missing)
			continue;
		uint32_t low = 1, high = work->total;
		while (low < high) {
			uint32_t middle = low + (high - low) / 2;
			if (place_mark_runs(work, first, last, per_node, middle) >= work->missing)
				high = middle;
			else
				low = middle + 1;
		}
		place_mark_runs(work, first, last, per_node, low);
		trim(work, lo, hi);
		consider(work, lo, hi, true, best);
		return;
	}
}

/* At most need_spines adjacent spines, every one in use, one run of adjacent leaves in each. */
static bool span_spines(struct place_work *work)
{
	struct best best = {.found = false};
	const struct fabric *fabric = work->fabric;
	/* `distributed` may fit into one leaf after all, and one that stays inside a leaf crosses no link. */
	for (uint32_t item = work->lo; item < work->hi && item < fabric->leaf_count; item++)
		if (work->item_slow[item] && window_holds(work, item, item + 1)) {
			use(work, item, item + 1);
			consider(work, item, item + 1, true, &best);
		}
	for (uint32_t length = 1; length <= work->answer->need_spines; length++) {
		for (uint32_t first = 0; first + length <= fabric->spine_count; first++) {
			uint32_t lo = max_u32(fabric->spine_start[first], work->lo);
			uint32_t hi = min_u32(fabric->spine_start[first + length], work->hi);
			if (lo >= hi || item_spine(work, lo) != first || item_spine(work, hi - 1) != first + length - 1)
				continue;
			uint64_t members = 0, pinned = 0;
			for (uint32_t item = lo; item < hi; item++) {
				members += item_usable(work, item) ? work->item_now[item] : 0;
				pinned += work->item_pin[item];
			}
			if (members < work->missing || pinned != work->pins)
				continue;
			if (work->ask->strategy == STRATEGY_DISTRIBUTED)
				consider_spread_spines(work, lo, hi, &best);
			else
				place_choose(work, lo, hi, true, consider_choice,
					     &(struct choice){.lo = lo, .hi = hi, .best = &best});
		}
		if (best.found && work->ask->strategy != STRATEGY_DISTRIBUTED)
			break;
	}
	return settle(work, &best);
}

bool place_span(struct place_work *work)
{
	switch (work->answer->plan.rule) {
	case FROND_RULE_SINGLE_NODE:
		return span_node(work);
	case FROND_RULE_SAME_LEAF:
	case FROND_RULE_COMPLETE_LEAF:
	case FROND_RULE_ADJACENT_LEAVES:
		return span_leaves(work, work->answer->need_leaves);
	default:
		return span_spines(work);
	}
}

/* No rule: 3.4 alone. One item that holds all is best for two strategies and crosses no leaf link, so slow ones count. */
bool place_relaxed(struct place_work *work)
{
	struct best best = {.found = false};
	if (work->total == 1)
		return span_node(work); /* every strategy asks the same; place_order goes by the same key */
	for (uint32_t item = work->lo; item < work->hi; item++)
		if (window_holds(work, item, item + 1)) {
			use(work, item, item + 1);
			consider(work, item, item + 1, true, &best);
		}
	if (work->ask->strategy == STRATEGY_DISTRIBUTED) {
		uint64_t members = 0, pinned = 0;
		for (uint32_t item = work->lo; item < work->hi; item++) {
			work->item_used[item] = item_usable(work, item);
			members += work->item_used[item] ? work->item_now[item] : 0;
			pinned += work->item_used[item] ? work->item_pin[item] : 0;
		}
		if (members >= work->missing && pinned == work->pins && work->lo < work->hi)
			consider(work, work->lo, work->hi, false, &best);
	} else if (!best.found) {
		place_choose(work, work->lo, work->hi, false, consider_choice,
			     &(struct choice){.lo = work->lo, .hi = work->hi, .best = &best});
	}
	return settle(work, &best);
}

/* ---- for the sentence -------------------------------------------------------------------------------------------- */

static void nearest(struct place_work *work, enum best_kind kind, uint32_t first, uint32_t last, uint64_t room)
{
	struct answer *answer = work->answer;
	if (answer->best != BEST_NONE && room <= answer->best_room)
		return;
	answer->best_gap = FROND_NONE;
	answer->best = kind;
	answer->best_first = first;
	answer->best_last = last;
	answer->best_room = room;
}

static bool any_usable(const struct place_work *work, uint32_t lo, uint32_t hi)
{
	for (uint32_t item = lo; item < hi; item++)
		if (item_usable(work, item))
			return true;
	return false;
}

void place_nearest(struct place_work *work)
{
	const struct fabric *fabric = work->fabric;
	const struct answer *answer = work->answer;
	if (answer->plan.rule == FROND_RULE_SINGLE_NODE) {
		for (uint32_t position = 0; position < fabric->node_count; position++)
			if (work->cap[position] >= work->total && work->pin[position] == work->pins)
				nearest(work, BEST_NODE, position, position,
					node_open(&work->nodes[fabric->order[position]])
						? node_free_count(&work->nodes[fabric->order[position]])
						: 0);
		return;
	}
	if (answer->plan.rule == FROND_RULE_NONE) {
		nearest(work, BEST_CLUSTER, 0, 0, place_most(work, work->item_now));
		return;
	}
	if (answer->plan.rule == FROND_RULE_ADJACENT_SPINES) {
		for (uint32_t first = 0; first + answer->need_spines <= fabric->spine_count; first++) {
			uint64_t room = 0, pinned = 0;
			uint32_t last = first + answer->need_spines - 1;
			for (uint32_t item = fabric->spine_start[first]; item < fabric->spine_start[last + 1]; item++) {
				room += item_usable(work, item) ? work->item_now[item] : 0;
				pinned += work->item_pin[item];
			}
			if (pinned == work->pins)
				nearest(work, BEST_SPINES, first, last, room);
		}
		for (uint32_t spine = answer->best_last + 1;
		     answer->best == BEST_SPINES && spine-- > answer->best_first;)
			if (!any_usable(work, fabric->spine_start[spine], fabric->spine_start[spine + 1]))
				work->answer->best_gap = spine;
		return;
	}
	for (uint32_t first = 0; first + answer->need_leaves <= fabric->leaf_count; first++) {
		uint64_t room = 0, cap = 0, pinned = 0;
		uint32_t last = first + answer->need_leaves - 1;
		if (fabric->leaf_spine[first] != fabric->leaf_spine[last])
			continue;
		for (uint32_t item = first; item <= last; item++) {
			bool crossed = first != last && work->item_slow[item];
			room += crossed ? 0 : work->item_now[item];
			cap += crossed ? 0 : work->item_cap[item];
			pinned += work->item_pin[item];
		}
		if (cap >= work->total && pinned == work->pins)
			nearest(work, BEST_LEAVES, first, last, room);
	}
	for (uint32_t leaf = answer->best_last + 1; answer->best == BEST_LEAVES && leaf-- > answer->best_first;)
		if (!any_usable(work, leaf, leaf + 1))
			work->answer->best_gap = leaf;
}
