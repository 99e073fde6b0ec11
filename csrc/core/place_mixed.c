/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_mixed.c - members of several sizes: first-fit decreasing by size, then rank (spec 3.4). A candidate is a span,
 * that is a run of leaves, a run of spines, or everything, in which that works; candidates are compared by the placement
 * that it gives, from step 3 on.
 */
#include "core/place_work.h"

struct shape { /* of a placement, pinned members included */
	struct extent use;
	bool chained; /* its spines are adjacent, one run of leaves in each */
	bool slow;    /* it crosses a link that is under the floor */
};

struct trial { /* the best placement so far; its positions are in work->candidates.picks */
	bool found;
	struct shape shape;
	struct gain gain;
};

/* ---- first fit ------------------------------------------------------------------------------------------------------ */

static bool counts(const struct place_work *work, uint32_t i, bool today)
{
	const struct frond_member *member = &work->ask->members[i];
	return member->gpus > 0 && !(today && member->pinned_slot != FROND_NONE);
}

/* GPUs that the gang could have of a node: by capacity, or today. */
static uint32_t node_gpus(const struct place_work *work, uint32_t position, bool today)
{
	const struct ask *ask = work->ask;
	uint32_t slot = work->fabric->order[position];
	const struct node *node = &work->nodes[slot];
	if (!node_fast(node, ask->bandwidth_gbps) || place_room(work, position, false) == 0)
		return 0;
	if (!today)
		return node->gpus;
	if (!node_open(node) || position < work->scope.from || position >= work->scope.end ||
	    !place_in_domain(work, position) || (ask->only_slot != FROND_NONE && ask->only_slot != slot) ||
	    place_room(work, position, true) == 0)
		return 0;
	return node_free_count(node);
}

/* GPUs for a member of this size beside those in taken[]; 0: none. Which ones matters only when some sets are not
 * allowed; otherwise counting them is enough. */
static uint32_t try_gpus(const struct place_work *work, uint32_t at, uint32_t size, bool today)
{
	uint32_t slot = work->fabric->order[at], taken = work->taken[at];
	const struct node *node = &work->nodes[slot];
	if (bits_count(taken) + size > node_gpus(work, at, today))
		return 0;
	if (today)
		return place_gpus(work, at, size);
	return work->scope.constrained ? place_choose(work, slot, bits_first(node->gpus) & ~taken, taken, size)
				       : bits_lowest(bits_first(node->gpus) & ~taken, size);
}

static void forget(struct place_work *work, uint32_t lo, uint32_t hi)
{
	if (lo < hi)
		for (uint32_t position = item_start(work, lo); position < item_end(work, hi - 1); position++)
			work->take[position] = work->taken[position] = 0;
}

/* What the pinned members take of the caps of their leaves: GPUs << 32 | nodes, in sum. */
static void count_pinned(struct place_work *work, uint32_t lo, uint32_t hi, bool today)
{
	for (uint32_t item = lo; item < hi; item++) {
		work->scratch.sum[item] = 0;
		for (uint32_t at = item_start(work, item); today && at < item_end(work, item); at++)
			work->scratch.sum[item] += work->pin[at] > 0;
	}
	for (uint32_t i = 0; today && i < work->ask->count; i++) {
		const struct frond_member *member = &work->ask->members[i];
		if (member->gpus == 0 || member->pinned_slot == FROND_NONE)
			continue;
		uint32_t item = item_of(work, work->fabric->position[member->pinned_slot]);
		if (item >= lo && item < hi)
			work->scratch.sum[item] += (uint64_t)member->gpus << 32;
	}
}

static bool node_takes(const struct place_work *work, uint32_t at, uint32_t item, bool today)
{
	const struct ask *ask = work->ask;
	uint32_t pinned = today ? work->pin[at] : 0;
	if (work->take[at] + pinned >= work->scope.per_node || work->take[at] >= place_room(work, at, today))
		return false;
	bool fresh = work->take[at] == 0 && pinned == 0;
	return !(fresh && item < work->fabric->leaf_count && ask->max_nodes_per_leaf > 0 &&
		 (uint32_t)work->scratch.sum[item] >= ask->max_nodes_per_leaf);
}

/* Puts a member of this size on the first node of [lo, hi) that takes it; FROND_NONE: none does. *from: no node before it
 * does, as the last member of this size has found: what is taken only grows. */
static uint32_t put_first(struct place_work *work, uint32_t lo, uint32_t hi, uint32_t size, bool today, uint32_t *from)
{
	uint32_t most = work->ask->max_gpus_per_leaf;
	for (uint32_t item = *from == FROND_NONE ? lo : item_of(work, *from); item < hi; item++) {
		if (hi - lo > 1 && item_slow(work, item))
			continue; /* a gang over several leaves may not cross a slow link */
		if (item < work->fabric->leaf_count && most > 0 && (work->scratch.sum[item] >> 32) + size > most)
			continue;
		uint32_t at = item_start(work, item);
		if (*from != FROND_NONE && *from > at)
			at = *from;
		for (; at < item_end(work, item); at++) {
			uint32_t set = node_takes(work, at, item, today) ? try_gpus(work, at, size, today) : 0;
			if (set == 0)
				continue;
			bool fresh = work->take[at] == 0 && !(today && work->pin[at] > 0);
			work->scratch.sum[item] += ((uint64_t)size << 32) + fresh;
			work->taken[at] = (uint16_t)(work->taken[at] | set);
			work->take[at]++;
			*from = at;
			return at;
		}
	}
	return FROND_NONE;
}

/* A member that no node can have: a pod that was bound by count may say any number. */
static bool too_large(const struct place_work *work, bool today)
{
	for (uint32_t i = 0; i < work->ask->count; i++)
		if (counts(work, i, today) && work->ask->members[i].gpus > FROND_GPUS_MAX)
			return true;
	return false;
}

/* Tries the gang on items [lo, hi): by capacity (all members, empty nodes) or today (missing ones, beside the pinned).
 * No node takes more than per_node members. On success member_pos and take[] are set; of equal sizes lower ranks are on
 * lower nodes (spec 3.4), as first fit leaves them. */
static bool fits(struct place_work *work, uint32_t lo, uint32_t hi, bool today)
{
	const struct ask *ask = work->ask;
	forget(work, lo, hi);
	count_pinned(work, lo, hi, today);
	if (too_large(work, today))
		return false;
	for (uint32_t size = FROND_GPUS_MAX; size > 0; size--) {
		uint32_t from = FROND_NONE;
		for (uint32_t i = 0; i < ask->count; i++) {
			if (ask->members[i].gpus != size || !counts(work, i, today))
				continue;
			work->member_pos[i] = put_first(work, lo, hi, size, today, &from);
			if (work->member_pos[i] == FROND_NONE)
				return false;
		}
	}
	return true;
}

/* ---- what it comes to -------------------------------------------------------------------------------------------------- */

/* Of the members that fits() has put on items [lo, hi), and of the pinned ones there when today. */
static struct shape shape_of(const struct place_work *work, uint32_t lo, uint32_t hi, bool today)
{
	struct shape shape = {.chained = true};
	uint32_t last = FROND_NONE, slow = 0;
	for (uint32_t item = lo; item < hi; item++) {
		uint32_t members = 0;
		for (uint32_t at = item_start(work, item); at < item_end(work, item); at++) {
			uint32_t here = work->take[at] + (today ? work->pin[at] : 0u);
			shape.use.nodes += here > 0;
			shape.use.fullest_node = max_u32(shape.use.fullest_node, here);
			members += here;
		}
		if (members == 0)
			continue;
		uint32_t spine = item_spine(work, item);
		bool new_spine = last == FROND_NONE || item_spine(work, last) != spine;
		bool joins = !new_spine && item == last + 1;
		shape.use.leaves++;
		shape.use.spines += new_spine;
		shape.use.runs += !joins;
		shape.chained &= item < work->fabric->leaf_count && (joins || new_spine);
		if (last != FROND_NONE && new_spine)
			shape.chained &= spine == item_spine(work, last) + 1 && spine_adjacent(work->fabric, spine);
		shape.use.fullest_leaf = max_u32(shape.use.fullest_leaf, members);
		slow += item_slow(work, item);
		last = item;
	}
	shape.slow = slow > 0 && shape.use.leaves > 1;
	return shape;
}

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
		if (counts(work, i, true))
			work->taken[work->member_pos[i]] = 0;
	for (uint32_t i = 0; i < work->ask->count && chosen; i++) {
		if (!counts(work, i, true))
			continue;
		uint32_t at = work->member_pos[i], set = place_gpus(work, at, work->ask->members[i].gpus);
		work->taken[at] = (uint16_t)(work->taken[at] | set);
		place_link(work, work->fabric->order[at], set, 1, gain);
		chosen = set != 0;
	}
	return chosen;
}

/* Steps 5 and 6, after choose_gpus(). */
static void add_leaves(struct place_work *work, uint32_t lo, uint32_t hi, struct gain *gain)
{
	for (uint32_t item = lo; item < hi; item++) {
		uint32_t members = 0, gpus = 0;
		for (uint32_t at = item_start(work, item); at < item_end(work, item); at++) {
			uint32_t here = bits_count(work->taken[at]);
			members += work->take[at];
			gpus += here;
			place_node_gain(&work->nodes[work->fabric->order[at]], here, gain);
		}
		if (members > 0)
			place_leaf_gain(work, item, members, gpus, gain);
	}
}

/* Step 7: ascending lists of nodes, then rank → node, of member_pos against picks. */
static int compare_positions(struct place_work *work)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < work->ask->count; i++)
		if (counts(work, i, true)) {
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
		if (counts(work, i, true) && work->member_pos[i] != work->candidates.picks[i].item)
			return work->member_pos[i] < work->candidates.picks[i].item ? -1 : 1;
	return 0;
}

/* Compares the placement that fits() found on [lo, hi) with the best and keeps the better one. */
static void consider(struct place_work *work, uint32_t lo, uint32_t hi, struct trial *best)
{
	struct trial trial = {.found = true, .shape = shape_of(work, lo, hi, true), .gain = GAIN_NONE};
	if (trial.shape.slow || !meets(work, &trial.shape) || !choose_gpus(work, &trial.gain))
		return;
	if (work->candidates.seen == FROND_CANDIDATES) {
		work->candidates.stop = true;
		return;
	}
	work->candidates.seen++;
	add_leaves(work, lo, hi, &trial.gain);
	int order = best->found ? place_compare_extents(work->ask, &trial.shape.use, &best->shape.use) : -1;
	if (order == 0)
		order = place_compare(work, &trial.gain, &best->gain);
	if (order == 0)
		order = compare_positions(work);
	if (order >= 0)
		return;
	*best = trial;
	for (uint32_t i = 0; i < work->ask->count; i++)
		work->candidates.picks[i].item = work->member_pos[i];
}

/* ---- spans --------------------------------------------------------------------------------------------------------------- */

static bool all_pins_in(const struct place_work *work, uint32_t lo, uint32_t hi)
{
	uint64_t pinned = 0;
	for (uint32_t item = lo; work->gang.pins > 0 && item < hi; item++)
		pinned += item_pin(work, item);
	return pinned == work->gang.pins;
}

/* GPUs that the items before each one have, in the list: a span with fewer than the gang wants is not worth a try. */
static void sum_gpus(struct place_work *work, bool today)
{
	work->scratch.list[0] = 0;
	for (uint32_t item = 0; item < work->items; item++) {
		uint32_t gpus = 0;
		for (uint32_t at = item_start(work, item); at < item_end(work, item); at++)
			gpus += node_gpus(work, at, today);
		work->scratch.list[item + 1] = work->scratch.list[item] + gpus;
	}
	work->gang.want = 0;
	for (uint32_t i = 0; i < work->ask->count; i++)
		work->gang.want += counts(work, i, today) ? work->ask->members[i].gpus : 0;
}

static bool worth(const struct place_work *work, uint32_t lo, uint32_t hi)
{
	return work->scratch.list[hi] - work->scratch.list[lo] >= work->gang.want;
}

/* A span today, with the fewest members on the fullest node that work for `distributed`. */
static void try_span(struct place_work *work, uint32_t lo, uint32_t hi, struct trial *best)
{
	if (work->candidates.stop || !all_pins_in(work, lo, hi) || !worth(work, lo, hi))
		return;
	bool spreads = work->ask->strategy == STRATEGY_DISTRIBUTED;
	for (work->scope.per_node = spreads ? 1 : FROND_GPUS_MAX; work->scope.per_node <= FROND_GPUS_MAX;
	     work->scope.per_node++)
		if (fits(work, lo, hi, true)) {
			uint32_t before = work->candidates.seen;
			consider(work, lo, hi, best);
			if (work->candidates.seen > before || !spreads || work->candidates.stop)
				break;
		}
	forget(work, lo, hi);
}

static bool is_chain(const struct place_work *work, uint32_t first, uint32_t last)
{
	for (uint32_t spine = first + 1; spine <= last; spine++)
		if (!spine_adjacent(work->fabric, spine))
			return false;
	return true;
}

/* Runs of up to `leaves` leaves, then of 2 to `spines` spines, inside [work->scope.lo, work->scope.hi). */
static void try_runs(struct place_work *work, uint32_t leaves, uint32_t spines, bool chained, struct trial *best)
{
	const struct fabric *fabric = work->fabric;
	uint32_t to = min_u32(work->scope.hi, fabric->leaf_count);
	for (uint32_t lo = work->scope.lo; lo < to; lo++)
		for (uint32_t hi = lo + 1;
		     hi <= to && hi - lo <= leaves && item_spine(work, lo) == item_spine(work, hi - 1); hi++)
			try_span(work, lo, hi, best);
	for (uint32_t first = 0; first < fabric->spine_count; first++)
		for (uint32_t last = first + 1; last < fabric->spine_count && last - first < spines; last++) {
			uint32_t lo = max_u32(fabric->spine_start[first], work->scope.lo);
			uint32_t hi = min_u32(fabric->spine_start[last + 1], work->scope.hi);
			if (lo < hi && (!chained || is_chain(work, first, last)))
				try_span(work, lo, hi, best);
		}
}

/* One node for all of them: each leaf offers the one with the best links, then the fewest GPUs, then the first. */
static void try_nodes(struct place_work *work, struct trial *best)
{
	uint32_t from = work->scope.from, end = work->scope.end;
	for (uint32_t item = work->scope.lo; item < work->scope.hi && !work->candidates.stop; item++) {
		struct trial offer = {.found = false};
		uint32_t node = FROND_NONE, free = 0;
		for (uint32_t at = item_start(work, item); at < item_end(work, item); at++) {
			uint32_t gpus = node_gpus(work, at, true);
			work->scope.from = max_u32(from, at);
			work->scope.end = min_u32(end, at + 1);
			work->scope.per_node = FROND_GPUS_MAX;
			struct gain gain = GAIN_NONE;
			bool works = (gpus > 0 || work->gang.missing == 0) && work->pin[at] == work->gang.pins &&
				     fits(work, item, item + 1, true) && choose_gpus(work, &gain);
			bool better =
				works &&
				(node == FROND_NONE || gain.worst > offer.gain.worst ||
				 (gain.worst == offer.gain.worst && gain.links > offer.gain.links) ||
				 (gain.worst == offer.gain.worst && gain.links == offer.gain.links && gpus < free));
			if (better) {
				node = at;
				free = gpus;
				offer.gain = gain;
			}
			forget(work, item, item + 1);
			work->scope.from = from;
			work->scope.end = end;
		}
		if (node == FROND_NONE)
			continue;
		work->scope.from = node;
		work->scope.end = node + 1;
		bool fit = fits(work, item, item + 1, true);
		assert(fit);
		consider(work, item, item + 1, best);
		forget(work, item, item + 1);
		work->scope.from = from;
		work->scope.end = end;
	}
}

static void try_domains(struct place_work *work, struct trial *best)
{
	const struct fabric *fabric = work->fabric;
	uint32_t next = 0; /* domains are numbered in order: a lower one has been seen */
	for (uint32_t at = item_start(work, work->scope.lo); at < item_end(work, work->scope.hi - 1); at++) {
		if (fabric->domain_of[at] == FROND_NONE || fabric->domain_of[at] < next)
			continue;
		work->scope.domain = fabric->domain_of[at];
		next = work->scope.domain + 1;
		if (!place_pins_in_domain(work))
			continue;
		try_span(work, item_of(work, at), item_of(work, at) + 1, best);
	}
	work->scope.domain = FROND_NONE;
}

/* Puts the gang where the best trial was, for good. */
static bool settle(struct place_work *work, const struct trial *best)
{
	if (!best->found)
		return false;
	if (work->candidates.stop)
		work->answer->plan.flags |= FROND_PLAN_BOUNDED;
	work->candidates.best.gain = best->gain;
	for (uint32_t i = 0; i < work->ask->count; i++)
		work->member_pos[i] = counts(work, i, true) ? work->candidates.picks[i].item : FROND_NONE;
	return true;
}

/* ---- by capacity ---------------------------------------------------------------------------------------------------------- */

static bool could(struct place_work *work, uint32_t lo, uint32_t hi, struct shape *shape)
{
	bool holds = worth(work, lo, hi) && fits(work, lo, hi, false);
	if (holds)
		*shape = shape_of(work, lo, hi, false);
	forget(work, lo, hi);
	return holds && !shape->slow;
}

/* The shortest run of leaves that holds the gang, every leaf in use; 0: none. *spare: one leaf does, with a node left. A
 * placement that is one run is found in that run itself, so longer ones need not be tried once one length works. */
static uint32_t fewest_leaves(struct place_work *work, bool *spare)
{
	const struct fabric *fabric = work->fabric;
	struct shape shape;
	*spare = false;
	for (uint32_t length = 1; length <= fabric->leaf_count; length++) {
		bool found = false;
		for (uint32_t lo = 0; lo + length <= fabric->leaf_count && (length == 1 || !found); lo++) {
			if (item_spine(work, lo) != item_spine(work, lo + length - 1) ||
			    !could(work, lo, lo + length, &shape) || !shape.chained || shape.use.leaves != length)
				continue;
			found = true;
			*spare |= length == 1 && shape.use.nodes < leaf_nodes(fabric, lo);
		}
		if (found)
			return length;
	}
	return 0;
}

static uint32_t fewest_spines(struct place_work *work)
{
	const struct fabric *fabric = work->fabric;
	struct shape shape;
	for (uint32_t length = 2; length <= fabric->spine_count; length++)
		for (uint32_t first = 0; first + length <= fabric->spine_count; first++)
			if (is_chain(work, first, first + length - 1) &&
			    could(work, fabric->spine_start[first], fabric->spine_start[first + length], &shape) &&
			    shape.chained && shape.use.spines == length)
				return length;
	return 0;
}

/* One node, or one NVLink domain, that could hold the gang. */
static bool stretch_could(struct place_work *work, bool domains)
{
	const struct fabric *fabric = work->fabric;
	for (uint32_t at = 0, next = 0; at < fabric->node_count; at++) {
		uint32_t domain = fabric->domain_of[at], item = item_of(work, at);
		if (domains && (domain == FROND_NONE || domain < next))
			continue;
		next = domains ? domain + 1 : 0;
		uint32_t end = domains ? item_end(work, item) : at + 1;
		bool fit = true;
		count_pinned(work, item, item + 1, false);
		for (uint32_t size = FROND_GPUS_MAX; size > 0 && fit; size--)
			for (uint32_t i = 0; i < work->ask->count && fit; i++) {
				if (work->ask->members[i].gpus != size)
					continue;
				fit = false;
				for (uint32_t node = at; node < end && !fit; node++) {
					if (domains && fabric->domain_of[node] != domain)
						continue;
					uint32_t most = work->ask->max_gpus_per_leaf;
					bool over = most > 0 && item < fabric->leaf_count &&
						    (work->scratch.sum[item] >> 32) + size > most;
					uint32_t set = !over && node_takes(work, node, item, false)
							       ? try_gpus(work, node, size, false)
							       : 0;
					if (set == 0)
						continue;
					work->scratch.sum[item] += ((uint64_t)size << 32) + (work->take[node] == 0);
					work->taken[node] = (uint16_t)(work->taken[node] | set);
					work->take[node]++;
					fit = true;
				}
			}
		forget(work, item, item + 1);
		if (fit)
			return true;
	}
	return false;
}

/* Everything at once, or one leaf alone when its link is slow. */
static bool cluster_could(struct place_work *work, uint32_t *nodes)
{
	struct shape shape = {.chained = false};
	bool found = could(work, 0, work->items, &shape);
	for (uint32_t leaf = 0; leaf < work->fabric->leaf_count && !found; leaf++)
		found = item_slow(work, leaf) && could(work, leaf, leaf + 1, &shape);
	*nodes = shape.use.nodes;
	return found;
}

bool place_mixed_rule(struct place_work *work)
{
	struct answer *answer = work->answer;
	bool spreads = work->ask->strategy == STRATEGY_DISTRIBUTED && !work->ask->latency_sensitive, spare;
	if (work->items == 0 || too_large(work, false))
		return false;
	sum_gpus(work, false);
	for (uint32_t position = 0; position < work->fabric->node_count; position++)
		answer->ever += node_gpus(work, position, false);
	for (work->scope.per_node = spreads ? 1 : FROND_GPUS_MAX; !cluster_could(work, &answer->need_nodes);
	     work->scope.per_node++)
		if (work->scope.per_node >= FROND_GPUS_MAX)
			return false;
	uint32_t per_node = work->scope.per_node;
	work->scope.per_node = FROND_GPUS_MAX;
	if ((!spreads || answer->need_nodes == 1) && stretch_could(work, false)) {
		answer->need_nodes = 1;
		answer->plan.rule = FROND_RULE_SINGLE_NODE;
		return true;
	}
	if (work->ask->latency_sensitive && stretch_could(work, true)) {
		answer->need_leaves = 1;
		answer->plan.rule = FROND_RULE_NVLINK_DOMAIN;
		return true;
	}
	work->scope.per_node = per_node;
	answer->need_leaves = fewest_leaves(work, &spare);
	if (answer->need_leaves > 0) {
		answer->plan.rule = answer->need_leaves > 1 ? FROND_RULE_ADJACENT_LEAVES
				    : spare                 ? FROND_RULE_SAME_LEAF
							    : FROND_RULE_COMPLETE_LEAF;
		return true;
	}
	answer->plan.rule = FROND_RULE_ADJACENT_SPINES;
	answer->need_spines = fewest_spines(work);
	if (answer->need_spines == 0)
		answer->plan.flags |= FROND_PLAN_SHAPELESS;
	return true;
}

/* ---- today ---------------------------------------------------------------------------------------------------------------- */

bool place_mixed_span(struct place_work *work)
{
	struct trial best = {.found = false};
	const struct answer *answer = work->answer;
	work->candidates.seen = 0;
	work->candidates.stop = false;
	if (work->scope.lo >= work->scope.hi)
		return false;
	sum_gpus(work, true);
	switch (answer->plan.rule) {
	case FROND_RULE_SINGLE_NODE:
		try_nodes(work, &best);
		break;
	case FROND_RULE_NVLINK_DOMAIN:
		try_domains(work, &best);
		break;
	case FROND_RULE_ADJACENT_SPINES:
		try_runs(work, UINT32_MAX, answer->need_spines, true, &best);
		break;
	default:
		try_runs(work, answer->need_leaves, 0, true, &best);
		break;
	}
	return settle(work, &best);
}

bool place_mixed_relaxed(struct place_work *work)
{
	struct trial best = {.found = false};
	uint32_t rule = work->answer->plan.rule;
	work->candidates.seen = 0;
	work->candidates.stop = false;
	if (work->scope.lo >= work->scope.hi)
		return false;
	sum_gpus(work, true);
	work->answer->plan.rule = FROND_RULE_NONE; /* nothing to meet */
	try_runs(work, UINT32_MAX, UINT32_MAX, false, &best);
	try_span(work, work->scope.lo, work->scope.hi, &best);
	work->answer->plan.rule = rule;
	return settle(work, &best);
}

void place_mixed_nearest(struct place_work *work)
{
	struct answer *answer = work->answer;
	answer->best = BEST_CLUSTER;
	answer->best_room = 0;
	for (uint32_t position = 0; position < work->fabric->node_count; position++)
		answer->best_room += node_gpus(work, position, true);
}
