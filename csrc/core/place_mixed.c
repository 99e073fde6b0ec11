/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_mixed.c - members of several sizes today (reference 3.4; the rule: place_mixed_rule.c). A candidate is a span, that is a node, an NVLink domain, a run
 * of leaves, a chain of spines, or everything, with one placement of the gang in it; candidates are compared from step 3 on.
 *
 * Phases:
 *   1. first-fit decreasing by size, then rank (place_fit.c), in every span that the bounds of place_pack.c do not rule out
 *   2. what it found is no worse than the bounds allow: done
 *   3. else the exact search of place_pack.c says what steps 1 to 3 can attain, and where. What it cannot say within the
 *      budget is flagged (answer->cut): it is never told as "never fits", nor as "waits".
 *
 * A span that goes on behind the last node of its first fit gives the same placement: one span is tried for each leaf,
 * and for each spine, that it may begin with.
 */
#include "core/place_mixed.h"

struct trial { /* the best placement so far; its positions are in work->candidates.picks */
	bool found;
	struct shape shape;
	struct gain gain;
	uint32_t first; /* lowest position */
};

/* ---- what it comes to -------------------------------------------------------------------------------------------------- */

static bool meets(const struct place_work *work, const struct shape *shape)
{
	const struct answer *answer = work->answer;
	switch (answer->plan.rule) {
	case FROND_RULE_SAME_LEAF:
	case FROND_RULE_COMPLETE_LEAF:
	case FROND_RULE_ADJACENT_LEAVES:
		return shape->chained && shape->use.runs == 1 && shape->use.leaves <= answer->need_leaves;
	case FROND_RULE_ADJACENT_SPINES:
		return shape->chained && shape->use.spines <= answer->need_spines;
	default:
		return true; /* one node, one domain: the span sees to it */
	}
}

/* Members choose their GPUs in rank order; false: one finds no set that is allowed. Step 4. */
static bool choose_gpus(struct place_work *work, struct gain *gain)
{
	bool chosen = true;
	for (uint32_t i = 0; i < work->ask->count; i++)
		if (fit_counts(work, i))
			work->taken[work->member_pos[i]] = 0;
	for (uint32_t i = 0; i < work->ask->count && chosen; i++) {
		if (!fit_counts(work, i))
			continue;
		uint32_t at = work->member_pos[i], set = place_gpus(work, at, work->ask->members[i].gpus);
		work->taken[at] = (uint16_t)(work->taken[at] | set);
		place_link(work, work->fabric->order[at], set, 1, gain);
		chosen = set != 0;
	}
	return chosen;
}

/* Steps 5 and 6, after choose_gpus(). */
static void add_leaves(struct place_work *work, const struct shape *shape, struct gain *gain)
{
	for (uint32_t item = shape->lo; item < shape->hi; item++) {
		uint32_t members = 0, gpus = 0;
		for (uint32_t at = item_start(work, item); at < item_end(work, item); at++) {
			uint32_t here = bits_count(work->taken[at]);
			members += work->take[at];
			gpus += here;
			place_node_gain(&work->nodes[work->fabric->order[at]], here, gain);
			if (here > 0)
				gain->models |= 1ull << work->nodes[work->fabric->order[at]].model;
		}
		if (members == 0)
			continue;
		place_leaf_gain(work, item, members, gpus, gain);
		gain->domains = (uint16_t)(gain->domains + place_domains(work, item));
	}
}

/* Step 7: ascending lists of nodes, then rank → node, of member_pos against picks. */
static int compare_positions(struct place_work *work)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < work->ask->count; i++)
		if (fit_counts(work, i)) {
			work->member_list[count] = work->member_pos[i];
			work->scratch.cells[count++] = work->candidates.picks[i].item;
		}
	sort_u64(work->member_list, count);
	sort_u64(work->scratch.cells, count);
	for (uint32_t i = 0, j = 0; i < count || j < count;) {
		if (i == count || j == count)
			return i == count ? -1 : 1; /* a shorter list comes first */
		uint64_t a = work->member_list[i], b = work->scratch.cells[j];
		if (a != b)
			return a < b ? -1 : 1;
		while (i < count && work->member_list[i] == a)
			i++;
		while (j < count && work->scratch.cells[j] == b)
			j++;
	}
	for (uint32_t i = 0; i < work->ask->count; i++)
		if (fit_counts(work, i) && work->member_pos[i] != work->candidates.picks[i].item)
			return work->member_pos[i] < work->candidates.picks[i].item ? -1 : 1;
	return 0;
}

/* Compares the placement in hand with the best and keeps the better one. */
static void consider(struct place_work *work, struct trial *best)
{
	struct trial trial = {.found = true, .shape = fit_shape(work), .gain = GAIN_NONE};
	if (trial.shape.slow || !meets(work, &trial.shape))
		return;
	int order = best->found ? place_compare_extents(work->ask, &trial.shape.use, &best->shape.use) : -1;
	if (order <= 0 && !choose_gpus(work, &trial.gain))
		return;
	if (work->candidates.seen == FROND_CANDIDATES) {
		work->candidates.stop = true;
		return;
	}
	work->candidates.seen++;
	work->candidates.last = trial.shape.hi - trial.shape.lo;
	if (order > 0)
		return;
	add_leaves(work, &trial.shape, &trial.gain);
	budget_take(&work->budget, STEPS_CONSIDER * work->ask->count + item_end(work, trial.shape.hi - 1) -
					   item_start(work, trial.shape.lo));
	if (order == 0)
		order = place_compare(work, &trial.gain, &best->gain);
	trial.first = FROND_NONE;
	for (uint32_t i = 0; i < work->ask->count; i++)
		trial.first = min_u32(trial.first, work->member_pos[i]);
	if (order == 0 && trial.first != best->first)
		order = trial.first < best->first ? -1 : 1;
	else if (order == 0)
		order = compare_positions(work);
	if (order >= 0)
		return;
	*best = trial;
	for (uint32_t i = 0; i < work->ask->count; i++)
		work->candidates.picks[i].item = work->member_pos[i];
}

/* ---- spans, by first fit ----------------------------------------------------------------------------------------- */

static bool all_pins_in(const struct place_work *work, uint32_t lo, uint32_t hi)
{
	uint64_t pinned = 0;
	if (work->gang.pins > 0)
		budget_charge(work->purse, (hi - lo) / 2);
	for (uint32_t item = lo; work->gang.pins > 0 && item < hi; item++)
		pinned += item_pin(work, item);
	return pinned == work->gang.pins;
}

/* A span today. */
static void try_span(struct place_work *work, uint32_t lo, uint32_t hi, struct trial *best)
{
	if (work->candidates.stop || work->budget.spent || !pack_may(work, lo, hi) || !all_pins_in(work, lo, hi) ||
	    !fit_span(work, lo, hi))
		return;
	consider(work, best);
	fit_forget(work);
}

struct plain { /* wholly free leaves of one kind in a row: of the runs that are alike the first one wins by position */
	uint32_t end;    /* first leaf behind the row */
	uint32_t first;  /* a leaf of the run that was a candidate; FROND_NONE: there is none */
	uint32_t length; /* of that run */
};

/* All its nodes are open, free and alike. */
static bool is_plain(const struct place_work *work, uint32_t leaf)
{
	const struct fabric *fabric = work->fabric;
	uint32_t kind = fabric->leaf_kind[leaf], nodes = leaf_nodes(fabric, leaf);
	return kind != KIND_NONE && fabric->leaf_model[leaf] < LEAF_MODELS && !work->leaf_excepted[leaf] &&
	       fabric->leaf[leaf].odd == 0 && fabric->leaf[leaf].used == 0 &&
	       fabric->leaf[leaf].at_least[kind & UINT8_MAX] == nodes;
}

static bool are_like(const struct fabric *fabric, uint32_t a, uint32_t b)
{
	return fabric->leaf_kind[a] == fabric->leaf_kind[b] && fabric->leaf_model[a] == fabric->leaf_model[b] &&
	       leaf_nodes(fabric, a) == leaf_nodes(fabric, b) && fabric->leaf_uplink[a] == fabric->leaf_uplink[b] &&
	       fabric->leaf_slowest[a] == fabric->leaf_slowest[b];
}

/* A run from here is like one that was a candidate before. */
static bool plain_seen(const struct place_work *work, uint32_t from, uint32_t hi, struct plain *plain)
{
	if (!work->scope.alike || work->scope.preferred != FROND_NONE || !is_plain(work, from)) {
		plain->end = from;
		return false;
	}
	if (plain->end <= from)
		plain->end = from + 1;
	while (plain->end < hi && is_plain(work, plain->end) && are_like(work->fabric, plain->end, from))
		plain->end++;
	return plain->first != FROND_NONE && are_like(work->fabric, plain->first, from) &&
	       plain->end - from >= plain->length;
}

/* Runs of up to `leaves` leaves inside the scope, from every leaf on. Untouched spines of one shape have one answer. */
static void try_runs(struct place_work *work, uint32_t leaves, struct trial *best)
{
	const struct fabric *fabric = work->fabric;
	struct plain plain = {.first = FROND_NONE};
	for (uint32_t spine = 0; spine < fabric->spine_count; spine++) {
		uint32_t start = fabric->spine_start[spine], end = fabric->spine_start[spine + 1];
		uint32_t lo = max_u32(start, work->scope.lo), hi = min_u32(end, work->scope.hi);
		bool whole = lo == start && hi == end && work->scope.preferred == FROND_NONE;
		uint32_t before = work->candidates.seen;
		if (lo >= hi || !pack_may(work, lo, hi) || (whole && place_alike_seen(work, spine, true)))
			continue;
		for (uint32_t from = lo; from < hi; from++) {
			uint32_t most = leaves; /* runs that need more than the best are worse */
			if (best->found && leaves != UINT32_MAX && !fit_spreads(work))
				most = min_u32(most, best->shape.use.leaves);
			uint32_t to = item_slow(work, from) ? from + 1 : hi - from > most ? from + most : hi;
			uint32_t seen = work->candidates.seen;
			if (!pack_may(work, from, to) || plain_seen(work, from, hi, &plain))
				continue;
			try_span(work, from, to, best);
			if (work->candidates.seen > seen && plain.end - from >= work->candidates.last) {
				plain.first = from;
				plain.length = work->candidates.last;
			}
		}
		if (whole)
			place_alike_remember(work, spine, work->candidates.seen - before);
	}
}

/* Chains of two to `spines` spines; not chained: whatever lies between them. */
static void try_chains(struct place_work *work, uint32_t spines, bool chained, struct trial *best)
{
	const struct fabric *fabric = work->fabric;
	for (uint32_t first = 0, last = 0; first < fabric->spine_count && spines > 1; first++) {
		last = max_u32(first, last);
		while (last + 1 < fabric->spine_count && last + 1 - first < spines &&
		       (!chained || spine_adjacent(fabric, last + 1)))
			last++;
		uint32_t lo = max_u32(fabric->spine_start[first], work->scope.lo);
		uint32_t hi = min_u32(fabric->spine_start[last + 1], work->scope.hi);
		if (last > first && lo < hi)
			try_span(work, lo, hi, best);
	}
}

/* One node for all of them: each leaf offers the one with the best links, then the fewest GPUs, then the first. */
static uint32_t offered_node(struct place_work *work, uint32_t item)
{
	struct gain best = GAIN_NONE;
	uint32_t offer = FROND_NONE, free = 0;
	const struct node *last = NULL;
	for (uint32_t at = item_start(work, item); at < item_end(work, item); at++) {
		const struct node *node = &work->nodes[work->fabric->order[at]];
		if (work->pin[at] != work->gang.pins || !fit_node(work, at))
			continue;
		if (last != NULL && work->scope.shaped && last->topology == node->topology &&
		    last->gpus == node->gpus && last->held == node->held && last->unhealthy == node->unhealthy &&
		    last->free == node->free)
			continue; /* as good as the last one */
		last = node;
		struct gain gain = GAIN_NONE;
		fit_put(work, at);
		bool chosen = choose_gpus(work, &gain);
		fit_forget(work);
		uint32_t gpus = node_free_count(node);
		bool better = offer == FROND_NONE || gain.worst > best.worst ||
			      (gain.worst == best.worst && gain.links > best.links) ||
			      (gain.worst == best.worst && gain.links == best.links && gpus < free);
		if (!chosen || !better)
			continue;
		offer = at;
		free = gpus;
		best = gain;
	}
	return offer;
}

static void try_nodes(struct place_work *work, struct trial *best)
{
	for (uint32_t item = work->scope.lo; item < work->scope.hi && !work->candidates.stop; item++) {
		if (!pack_may(work, item, item + 1))
			continue;
		uint32_t at = offered_node(work, item);
		if (at == FROND_NONE)
			continue;
		fit_put(work, at);
		consider(work, best);
		fit_forget(work);
	}
}

static void try_domain(struct place_work *work, uint32_t item, void *best)
{
	try_span(work, item, item + 1, best);
}

static void try_spans(struct place_work *work, struct trial *best)
{
	const struct answer *answer = work->answer;
	place_alike_forget(work);
	switch (answer->plan.rule) {
	case FROND_RULE_SINGLE_NODE:
		try_nodes(work, best);
		break;
	case FROND_RULE_NVLINK_DOMAIN:
		fit_domains(work, try_domain, best);
		break;
	case FROND_RULE_ADJACENT_SPINES:
		try_runs(work, UINT32_MAX, best);
		try_chains(work, answer->need_spines, true, best);
		break;
	case FROND_RULE_NONE:
		try_runs(work, UINT32_MAX, best);
		try_chains(work, UINT32_MAX, false, best);
		try_span(work, work->scope.lo, work->scope.hi, best);
		break;
	default:
		try_runs(work, answer->need_leaves, best);
		break;
	}
}

/* ---- spans, exactly ------------------------------------------------------------------------------------------------ */

struct exact { /* what is looked for, and what was found */
	enum pack_goal goal;
	uint64_t cost;      /* the lowest; PACK_NONE: no span holds the gang */
	bool cut;           /* of some span it is not known */
	struct trial *best; /* NULL: only the cost is of interest */
	uint64_t most;      /* otherwise: placements that cost no more are candidates */
};

static bool over_rule(const struct place_work *work, uint64_t cost)
{
	const struct answer *answer = work->answer;
	switch (answer->plan.rule) {
	case FROND_RULE_ADJACENT_SPINES:
		return cost / PACK_SPINE > answer->need_spines;
	case FROND_RULE_NONE:
	case FROND_RULE_NVLINK_DOMAIN:
		return false;
	default:
		return cost % PACK_SPINE / PACK_LEAF > answer->need_leaves;
	}
}

static void look(struct place_work *work, uint32_t lo, uint32_t hi, enum pack_form form, struct exact *exact)
{
	uint64_t cost;
	if (lo >= hi || exact->cut || work->candidates.stop || !pack_may(work, lo, hi) ||
	    (work->pack.today && !all_pins_in(work, lo, hi)))
		return;
	enum pack_answer answer = pack_search(work, lo, hi, form, exact->goal, exact->best != NULL, &cost);
	exact->cut |= answer == PACK_CUT;
	bool holds = answer == PACK_HOLDS && !(work->pack.today && over_rule(work, cost));
	if (holds && cost < exact->cost)
		exact->cost = cost;
	if (exact->best != NULL && holds && cost <= exact->most)
		consider(work, exact->best);
	if (exact->best != NULL)
		fit_forget(work);
}

static void look_in_domain(struct place_work *work, uint32_t item, void *exact)
{
	look(work, item, item + 1, PACK_RUN, exact);
}

/* A gang that stays inside a leaf does not mind its slow link: such leaves are spans by themselves. */
static void look_in_slow(struct place_work *work, struct exact *exact)
{
	for (uint32_t leaf = work->scope.lo; leaf < min_u32(work->scope.hi, work->fabric->leaf_count); leaf++)
		if (item_slow(work, leaf))
			look(work, leaf, leaf + 1, PACK_RUN, exact);
}

/* Runs of up to `length` leaves: each window of so many, or, to know only what they cost, all of a spine together. */
static void look_in_runs(struct place_work *work, uint32_t length, bool each, struct exact *exact)
{
	const struct fabric *fabric = work->fabric;
	struct plain plain = {.first = FROND_NONE};
	for (uint32_t spine = 0; spine < fabric->spine_count && !exact->cut; spine++) {
		uint32_t lo = max_u32(fabric->spine_start[spine], work->scope.lo), first = FROND_NONE, last = 0;
		uint32_t hi = min_u32(fabric->spine_start[spine + 1], work->scope.hi);
		uint32_t long_as = min_u32(length, hi - min_u32(lo, hi));
		for (uint32_t from = lo; from + long_as <= hi && long_as > 0; from++) {
			if (!pack_may(work, from, from + long_as) || plain_seen(work, from, hi, &plain))
				continue;
			if (plain.end - from >= long_as) {
				plain.first = from;
				plain.length = long_as;
			}
			if (each)
				look(work, from, from + long_as, PACK_RUN, exact);
			first = min_u32(first, from);
			last = from + long_as;
		}
		if (!each && first != FROND_NONE)
			look(work, first, last, PACK_RUN, exact);
	}
}

static void look_in_spines(struct place_work *work, struct exact *exact)
{
	const struct fabric *fabric = work->fabric;
	place_alike_forget(work);
	for (uint32_t spine = 0; spine < fabric->spine_count && !exact->cut; spine++) {
		uint32_t lo = max_u32(fabric->spine_start[spine], work->scope.lo);
		uint32_t hi = min_u32(fabric->spine_start[spine + 1], work->scope.hi);
		bool whole = lo == fabric->spine_start[spine] && hi == fabric->spine_start[spine + 1] &&
			     work->scope.preferred == FROND_NONE;
		if (whole && place_alike_seen(work, spine, false))
			continue;
		look(work, lo, hi, PACK_ANY, exact);
		if (whole)
			place_alike_remember(work, spine, 0);
	}
}

/* The bounds allow some chain of as many spines as the rule does. */
static bool chain_may(const struct place_work *work)
{
	const struct fabric *fabric = work->fabric;
	uint32_t spines = min_u32(work->answer->need_spines, fabric->spine_count);
	for (uint32_t first = 0; first + spines <= fabric->spine_count; first++) {
		uint32_t lo = max_u32(fabric->spine_start[first], work->scope.lo);
		uint32_t hi = min_u32(fabric->spine_start[first + spines], work->scope.hi);
		if (lo < hi && pack_may(work, lo, hi))
			return true;
	}
	return false;
}

/* Everywhere that the rule allows. Fewest spines come first: if one is enough, no more than one is looked at. */
static void look_everywhere(struct place_work *work, struct exact *exact)
{
	uint32_t leaves = work->fabric->leaf_count, lo = work->scope.lo, hi = work->scope.hi;
	uint32_t need = work->answer->need_leaves;
	switch (work->answer->plan.rule) {
	case FROND_RULE_NVLINK_DOMAIN:
		fit_domains(work, look_in_domain, exact);
		return;
	case FROND_RULE_ADJACENT_SPINES:
		if (chain_may(work))
			look(work, lo, min_u32(hi, leaves), PACK_CHAIN, exact);
		break;
	case FROND_RULE_NONE:
		if (!fit_spreads(work)) {
			look_in_spines(work, exact);
			for (uint32_t item = max_u32(lo, leaves); item < hi; item++)
				look(work, item, item + 1, PACK_ANY, exact);
			look_in_slow(work, exact);
		}
		if (exact->cost / PACK_SPINE > 1)
			look(work, lo, hi, PACK_ANY, exact);
		if (fit_spreads(work))
			look_in_slow(work, exact);
		return;
	default:
		look_in_runs(work, need, exact->best != NULL || need == 1, exact);
		break;
	}
	if (need != 1)
		look_in_slow(work, exact);
}

/* A cost that no placement is under. */
static uint64_t least_cost(struct place_work *work)
{
	const struct pack *pack = &work->pack;
	const struct fabric *fabric = work->fabric;
	uint32_t rule = work->answer->plan.rule;
	uint32_t gpus = work->items > fabric->leaf_count ? FROND_GPUS_MAX : fabric->gpus_most;
	uint64_t spines = 1, leaves = 1, nodes = 0;
	if (rule == FROND_RULE_ADJACENT_SPINES)
		return 0;
	if (rule != FROND_RULE_NONE && rule != FROND_RULE_NVLINK_DOMAIN)
		leaves = fit_shortest(work, work->answer->need_leaves);
	bool one_spine = rule != FROND_RULE_NONE || work->gang.pins > 0;
	for (uint32_t spine = 0; spine < fabric->spine_count && !one_spine; spine++)
		one_spine = pack_may(work, fabric->spine_start[spine], fabric->spine_start[spine + 1]);
	for (uint32_t bound = 0; bound < pack->bounds && work->gang.pins == 0; bound++) {
		uint64_t most = pack->most[gpus][FROND_GPUS_MAX][bound];
		if (pack->leaf_most[bound] > 0 && rule == FROND_RULE_NONE)
			leaves = max_u32((uint32_t)leaves, (uint32_t)((pack->need[bound] + pack->leaf_most[bound] - 1) /
								      pack->leaf_most[bound]));
		if (most > 0 && (pack->need[bound] + most - 1) / most > nodes)
			nodes = (pack->need[bound] + most - 1) / most;
	}
	spines = one_spine ? 1 : 2;
	return spines * PACK_SPINE + leaves * PACK_LEAF + spines * PACK_RUN_OF_LEAVES +
	       (work->ask->strategy == STRATEGY_CONSOLIDATED ? nodes : 0);
}

static uint64_t cost_of(const struct place_work *work, const struct shape *shape)
{
	uint64_t cost =
		shape->use.spines * PACK_SPINE + shape->use.leaves * PACK_LEAF + shape->use.runs * PACK_RUN_OF_LEAVES;
	if (work->ask->strategy != STRATEGY_CONSOLIDATED)
		return cost;
	cost += shape->use.nodes;
	for (uint32_t at = item_start(work, shape->lo); work->gang.pins > 0 && at < item_end(work, shape->hi - 1); at++)
		cost -= work->pin[at] > 0;
	return cost;
}

/* Looks for the candidates that are as good as was found out. */
static void take_exact(struct place_work *work, enum pack_goal goal, uint64_t most, struct trial *best)
{
	struct exact exact = {.goal = goal, .cost = PACK_NONE, .best = best, .most = most};
	best->found = false;
	work->candidates.seen = 0;
	look_everywhere(work, &exact);
	work->answer->cut |= exact.cut;
}

static void sharpen_cost(struct place_work *work, struct trial *best)
{
	enum pack_goal goal = work->ask->strategy == STRATEGY_CONSOLIDATED ? PACK_FEWEST_NODES : PACK_FEWEST_LEAVES;
	uint64_t found = best->found ? cost_of(work, &best->shape) : PACK_NONE;
	if (best->found && found <= least_cost(work))
		return;
	struct exact exact = {.goal = goal, .cost = PACK_NONE};
	look_everywhere(work, &exact);
	if (exact.cut || (exact.cost >= found && !fit_searchable(work))) {
		work->answer->cut = true;
		return;
	}
	if (exact.cost >= found)
		return;
	if (work->segments.fit) { /* it knows nothing of segments */
		work->answer->cut = true;
		return;
	}
	struct trial better = {.found = false};
	uint32_t seen = work->candidates.seen;
	take_exact(work, goal, exact.cost, &better);
	if (better.found)
		*best = better;
	else
		work->candidates.seen = seen;
	work->answer->cut |= !better.found;
}

static uint32_t most_pinned(const struct place_work *work)
{
	uint32_t most = 0;
	for (uint32_t i = 0; i < work->ask->count && work->gang.pins > 0; i++) {
		const struct frond_member *member = &work->ask->members[i];
		if (member->gpus > 0 && member->pinned_slot != FROND_NONE)
			most = max_u32(most, work->pin[work->fabric->position[member->pinned_slot]]);
	}
	return most;
}

/* Does it work with so many members on a node and in a leaf at most? */
static enum pack_answer spread_holds(struct place_work *work, uint32_t per_node, uint32_t per_leaf)
{
	struct exact exact = {.goal = PACK_FEWEST_LEAVES, .cost = PACK_NONE};
	if (per_node != work->scope.per_node)
		pack_measure(work, per_node);
	work->scope.per_leaf = per_leaf;
	look_everywhere(work, &exact);
	work->scope.per_leaf = UINT32_MAX;
	return exact.cut ? PACK_CUT : exact.cost == PACK_NONE ? PACK_IMPOSSIBLE : PACK_HOLDS;
}

/* `distributed`: fewest members on the fullest node, then in the fullest leaf. */
static void sharpen_spread(struct place_work *work, struct trial *best)
{
	uint32_t per_node = max_u32(most_pinned(work), 1), least = 1, most;
	uint32_t found = best->found ? best->shape.use.fullest_node : UINT32_MAX;
	for (uint32_t i = 0; i < work->ask->count && work->gang.pins > 0; i++) {
		const struct frond_member *member = &work->ask->members[i];
		if (member->gpus > 0 && member->pinned_slot != FROND_NONE)
			least = max_u32(least,
					item_pin(work, item_of(work, work->fabric->position[member->pinned_slot])));
	}
	uint32_t items = work->scope.hi - work->scope.lo; /* no more than so many leaves share the gang */
	if (work->answer->plan.rule != FROND_RULE_NONE && work->answer->plan.rule != FROND_RULE_ADJACENT_SPINES)
		items = min_u32(items, work->answer->need_leaves);
	least = max_u32(least, (work->gang.total + items - 1) / items);
	enum pack_answer answer = PACK_IMPOSSIBLE;
	if (work->segments.fit) { /* the search knows nothing of segments */
		work->answer->cut = true;
		return;
	}
	for (; per_node < found && per_node <= FROND_GPUS_MAX; per_node++) {
		answer = spread_holds(work, per_node, UINT32_MAX);
		if (answer != PACK_IMPOSSIBLE)
			break;
	}
	if (answer == PACK_CUT || (answer == PACK_IMPOSSIBLE && !best->found)) {
		work->answer->cut |= answer == PACK_CUT || !fit_searchable(work);
		return;
	}
	per_node = min_u32(per_node, found);
	most = per_node == found ? best->shape.use.fullest_leaf : work->gang.total;
	for (uint32_t high = most; least < high && answer != PACK_CUT;) {
		uint32_t middle = least + (high - least) / 2;
		answer = spread_holds(work, per_node, middle);
		if (answer == PACK_HOLDS)
			most = high = middle;
		else
			least = middle + 1;
	}
	work->answer->cut |= answer == PACK_CUT;
	if (best->found && per_node == found && most == best->shape.use.fullest_leaf)
		return;
	struct trial better = {.found = false};
	pack_measure(work, per_node);
	work->scope.per_leaf = most;
	take_exact(work, PACK_FEWEST_LEAVES, UINT64_MAX - 1, &better);
	work->scope.per_leaf = UINT32_MAX;
	if (better.found)
		*best = better;
	work->answer->cut |= !better.found;
}

/* ---- today ---------------------------------------------------------------------------------------------------------------- */

/* Puts the gang where the best trial was, for good. */
static bool settle(struct place_work *work, const struct trial *best)
{
	if (!best->found)
		return false;
	if (work->candidates.stop)
		work->answer->plan.flags |= FROND_PLAN_BOUNDED;
	work->candidates.best.gain = best->gain;
	for (uint32_t i = 0; i < work->ask->count; i++)
		work->member_pos[i] = fit_counts(work, i) ? work->candidates.picks[i].item : FROND_NONE;
	return true;
}

/* The bounds allow some span that meets the rule. */
static bool span_may(struct place_work *work)
{
	switch (work->answer->plan.rule) {
	case FROND_RULE_ADJACENT_SPINES:
		return chain_may(work);
	case FROND_RULE_SAME_LEAF:
	case FROND_RULE_COMPLETE_LEAF:
	case FROND_RULE_ADJACENT_LEAVES:
		return fit_shortest(work, work->answer->need_leaves) != UINT32_MAX;
	default:
		return pack_may(work, work->scope.lo, work->scope.hi);
	}
}

bool place_mixed_span(struct place_work *work)
{
	struct trial best = {.found = false};
	work->candidates.seen = 0;
	work->candidates.stop = false;
	if (work->scope.lo >= work->scope.hi)
		return false;
	work->scope.per_node = FROND_GPUS_MAX;
	pack_begin(work, true);
	if (!span_may(work))
		return false;
	if (fit_spreads(work))
		pack_measure(work, 1);
	try_spans(work, &best);
	/* the fewest on a node that work anywhere, or any number that is no more than sit on one already */
	for (uint32_t pinned = most_pinned(work); (!best.found || work->scope.per_node < pinned) &&
						  work->scope.per_node < FROND_GPUS_MAX && !work->budget.spent;) {
		pack_measure(work, work->scope.per_node + 1);
		try_spans(work, &best);
	}
	if (work->answer->plan.rule != FROND_RULE_SINGLE_NODE && work->gang.missing > 0) {
		if (fit_spreads(work))
			sharpen_spread(work, &best);
		else
			sharpen_cost(work, &best);
	}
	work->scope.per_node = FROND_GPUS_MAX;
	return settle(work, &best);
}

bool place_mixed_relaxed(struct place_work *work)
{
	uint32_t rule = work->answer->plan.rule;
	work->answer->plan.rule = FROND_RULE_NONE; /* nothing to meet */
	bool found = place_mixed_span(work);
	work->answer->plan.rule = rule;
	return found;
}

void place_mixed_nearest(struct place_work *work)
{
	struct answer *answer = work->answer;
	answer->best = BEST_CLUSTER;
	answer->best_room = 0;
	for (uint32_t at = 0; at < work->fabric->node_count; at++)
		if (pack_members(work, at, true) > 0)
			answer->best_room += pack_gpus(work, at, true);
}

bool segments_fit_span(struct place_work *work)
{
	bool parted = work->answer->plan.rule > FROND_RULE_NVLINK_DOMAIN; /* else all of it is in one domain */
	segments_turn(work, parted ? SEGMENTS_FIT : SEGMENTS_NODES);
	bool found = place_mixed_span(work);
	segments_turn(work, SEGMENTS_OFF);
	return found;
}
