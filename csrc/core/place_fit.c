/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_fit.c - members of several sizes, tried: first-fit decreasing by size, then rank, in a span, and what the
 * placement that it gives comes to. Never compares two of them.
 */
#include "core/place_mixed.h"

/* ---- first fit ------------------------------------------------------------------------------------------------------ */

/* GPUs for a member of this size beside those in taken[]; 0: none. Which ones matters only when some sets are not
 * allowed; otherwise counting them is enough. */
static uint32_t try_gpus(const struct place_work *work, uint32_t at, uint32_t size)
{
	uint32_t slot = work->fabric->order[at], taken = work->taken[at];
	const struct node *node = &work->nodes[slot];
	bool today = work->pack.today;
	if (bits_count(taken) + size > pack_gpus(work, at, today))
		return 0;
	uint32_t free = (today ? node_free_mask(node) : place_cap_mask(work, node)) & ~taken;
	if (!work->scope.constrained)
		return bits_lowest(free, size);
	return place_choose(work, slot, free, (today ? node->held : 0u) | taken, size);
}

void fit_forget(struct place_work *work)
{
	for (uint32_t i = 0; i < work->ask->count; i++) {
		uint32_t at = work->member_pos[i];
		if (at == FROND_NONE)
			continue;
		work->taken[at] = work->take[at] = 0;
		work->member_pos[i] = FROND_NONE;
	}
}

/* What the pinned members take of the caps of their leaves: GPUs << 32 | nodes, in sum. */
static void count_pinned(struct place_work *work, uint32_t lo, uint32_t hi)
{
	bool today = work->pack.today;
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

static bool is_fresh(const struct place_work *work, uint32_t at)
{
	return work->take[at] == 0 && !(work->pack.today && work->pin[at] > 0);
}

static bool node_takes(const struct place_work *work, uint32_t at, uint32_t item)
{
	if (work->take[at] >= pack_members(work, at, work->pack.today))
		return false;
	return !(is_fresh(work, at) && item < work->fabric->leaf_count && work->ask->max_nodes_per_leaf > 0 &&
		 (uint32_t)work->scratch.sum[item] >= work->ask->max_nodes_per_leaf);
}

/* Puts a member of this kind on the first node of [lo, hi) that takes it; FROND_NONE: none does. *from: no node before it
 * does, as the last member of this kind has found: what is taken only grows. *here: so many of the kind are on that node. */
static uint32_t put_first(struct place_work *work, uint32_t lo, uint32_t hi, uint32_t kind, uint32_t *from,
			  uint32_t *here, uint64_t *steps)
{
	uint32_t most = work->ask->max_gpus_per_leaf, size = work->pack.size[kind];
	for (uint32_t item = *from == FROND_NONE ? lo : item_of(work, *from); item < hi; item++) {
		++*steps;
		if (work->scope.constrained && work->budget.left == 0) {
			work->answer->cut = work->budget.spent = true; /* sets are dear: nobody knows of the others */
			return FROND_NONE;
		}
		if (hi - lo > 1 && item_slow(work, item))
			continue; /* a gang over several leaves may not cross a slow link */
		if (item < work->fabric->leaf_count && most > 0 && (work->scratch.sum[item] >> 32) + size > most)
			continue;
		uint32_t at = item_start(work, item);
		if (*from != FROND_NONE && *from > at)
			at = *from;
		for (; at < item_end(work, item); at++) {
			*steps += work->limit[at] == 0 ? STEPS_FIT : STEPS_FIT + STEPS_NODE; /* to look it up */
			uint32_t before = at == *from ? *here : 0;
			bool takes = node_takes(work, at, item) && before < pack_room(work, at, kind, work->pack.today);
			uint32_t set = takes ? try_gpus(work, at, size) : 0;
			if (set == 0)
				continue;
			if (fit_capped(work))
				work->scratch.sum[item] += ((uint64_t)size << 32) + is_fresh(work, at);
			work->taken[at] = (uint16_t)(work->taken[at] | set);
			work->take[at]++;
			*from = at;
			*here = before + 1;
			return at;
		}
	}
	return FROND_NONE;
}

/* ---- segments ---------------------------------------------------------------------------------------------------------- */

/* Members of a kind that have been put on a node. */
static uint32_t kind_on(const struct place_work *work, uint32_t at, uint32_t kind)
{
	uint32_t members = 0;
	for (uint32_t i = 0; i < work->ask->count; i++)
		members += work->member_pos[i] == at && pack_is(work, i, kind);
	return members;
}

/* No more of a kind than its exceptions allow; they are counted only where they may be that many. */
static bool kind_fits(const struct place_work *work, uint32_t at, uint32_t kind, uint64_t *steps)
{
	if (work->limit[at] == 0)
		return true;
	uint32_t room = pack_room(work, at, kind, work->pack.today);
	*steps += STEPS_NODE;
	if (work->take[at] < room)
		return true;
	*steps += room > 0 ? work->ask->count / 2 : 0;
	return room > 0 && kind_on(work, at, kind) < room;
}

/* Puts a member on the first node of a domain that takes it; its GPUs are in member_list. *from: no node before it does, as
 * the last member of this kind has found. */
static bool put_in_domain(struct place_work *work, uint32_t item, uint32_t domain, uint32_t kind, uint32_t i,
			  uint32_t *from, uint64_t *steps)
{
	uint32_t most = work->ask->max_gpus_per_leaf, size = work->pack.size[kind];
	if (most > 0 && (work->scratch.sum[item] >> 32) + size > most)
		return false;
	for (uint32_t at = *from; at < item_end(work, item) && *steps <= work->budget.left; at++) {
		*steps += STEPS_FIT;
		if (segments_domain(work, at) != domain || !node_takes(work, at, item) ||
		    !kind_fits(work, at, kind, steps))
			continue;
		uint32_t set = try_gpus(work, at, size);
		if (set == 0)
			continue;
		if (fit_capped(work))
			work->scratch.sum[item] += ((uint64_t)size << 32) + is_fresh(work, at);
		work->taken[at] = (uint16_t)(work->taken[at] | set);
		work->take[at]++;
		work->member_pos[i] = at;
		work->member_list[i] = set;
		*from = at;
		return true;
	}
	work->answer->cut |= *steps > work->budget.left; /* nobody knows of the others */
	return false;
}

/* Takes the members of a segment away again, the last one first. */
static void take_back(struct place_work *work, uint32_t item, uint32_t first, uint32_t end)
{
	for (uint32_t i = end; i-- > first;) {
		uint32_t at = work->member_pos[i];
		if (at == FROND_NONE || !fit_counts(work, i))
			continue;
		work->take[at]--;
		work->taken[at] = (uint16_t)(work->taken[at] & ~work->member_list[i]);
		if (fit_capped(work))
			work->scratch.sum[item] -= ((uint64_t)work->ask->members[i].gpus << 32) + is_fresh(work, at);
		work->member_pos[i] = FROND_NONE;
	}
}

/* The members first … end - 1, largest first, all in that domain or none. */
static bool put_segment(struct place_work *work, uint32_t item, uint32_t domain, uint32_t first, uint32_t end,
			uint64_t *steps)
{
	bool fit = true;
	for (uint32_t kind = 0; kind < work->pack.kinds && fit; kind++) {
		uint32_t from = item_start(work, item);
		*steps += (end - first) / 2;
		for (uint32_t i = first; i < end && fit; i++)
			if (pack_is(work, i, kind) && fit_counts(work, i))
				fit = put_in_domain(work, item, domain, kind, i, &from, steps);
	}
	if (!fit)
		take_back(work, item, first, end);
	return fit;
}

/* The first domain of [lo, hi) that takes the segment; `bound`: the one in which others of it stay. */
static bool put_somewhere(struct place_work *work, uint32_t lo, uint32_t hi, uint32_t bound, uint32_t first,
			  uint32_t end, uint64_t *steps)
{
	for (uint32_t item = lo; item < min_u32(hi, work->fabric->leaf_count); item++) {
		uint32_t next = 0; /* domains are numbered in order: a lower one has been tried */
		if (hi - lo > 1 && item_slow(work, item))
			continue;
		for (uint32_t at = item_start(work, item); at < item_end(work, item); at++) {
			uint32_t domain = segments_domain(work, at);
			++*steps;
			if (domain == FROND_NONE || domain < next || (bound != FROND_NONE && domain != bound))
				continue;
			next = domain + 1;
			if (*steps > work->budget.left) {
				work->answer->cut = true; /* nobody knows of the others */
				return false;
			}
			if (put_segment(work, item, domain, first, end, steps))
				return true;
		}
	}
	return false;
}

/* Segment by segment, each in the first domain that takes all of it. */
static bool fit_segments(struct place_work *work, uint32_t lo, uint32_t hi)
{
	struct segment_walk walk = work->segments.walk;
	uint64_t steps = (uint64_t)STEPS_MEMBER * work->ask->count;
	bool fit = !work->pack.oversized && !(work->pack.today && work->segments.apart);
	if (work->budget.spent) {
		work->answer->cut = true;
		return false;
	}
	if (fit_capped(work))
		count_pinned(work, lo, hi);
	uint32_t i = segment_next(&walk);
	while (fit && i != FROND_NONE) {
		uint32_t first = i, segment = walk.segment, bound = FROND_NONE, end = i;
		for (; i != FROND_NONE && walk.segment == segment; i = segment_next(&walk)) {
			uint32_t slot = work->ask->members[i].pinned_slot;
			if (work->pack.today && slot != FROND_NONE)
				bound = segments_domain(work, work->fabric->position[slot]);
			end = i + 1;
		}
		fit = put_somewhere(work, lo, hi, bound, first, end, &steps);
	}
	budget_take(&work->budget, steps);
	if (!fit)
		fit_forget(work);
	return fit;
}

bool fit_span(struct place_work *work, uint32_t lo, uint32_t hi)
{
	if (work->segments.fit)
		return fit_segments(work, lo, hi);
	const struct pack *pack = &work->pack;
	uint64_t steps = (uint64_t)(pack->kinds + STEPS_MEMBER) * work->ask->count;
	bool fit = !pack->oversized;
	if (fit_capped(work))
		count_pinned(work, lo, hi);
	for (uint32_t kind = 0; kind < pack->kinds && fit; kind++) {
		uint32_t from = FROND_NONE, here = 0;
		for (uint32_t i = 0; i < work->ask->count && fit; i++) {
			if (!pack_is(work, i, kind) || !fit_counts(work, i))
				continue;
			work->member_pos[i] = put_first(work, lo, hi, kind, &from, &here, &steps);
			fit = work->member_pos[i] != FROND_NONE;
		}
	}
	budget_take(&work->budget, steps);
	if (!fit)
		fit_forget(work);
	return fit;
}

bool fit_chosen(struct place_work *work)
{
	if (!work->scope.constrained)
		return true;
	for (uint32_t i = 0; i < work->ask->count; i++)
		if (work->member_pos[i] != FROND_NONE)
			work->taken[work->member_pos[i]] = 0;
	for (uint32_t i = 0; i < work->ask->count; i++) {
		uint32_t at = work->member_pos[i];
		uint32_t set = at == FROND_NONE ? 0 : try_gpus(work, at, work->ask->members[i].gpus);
		if (at != FROND_NONE && set == 0)
			return false;
		if (at != FROND_NONE)
			work->taken[at] = (uint16_t)(work->taken[at] | set);
	}
	return true;
}

bool fit_node(const struct place_work *work, uint32_t at)
{
	const struct pack *pack = &work->pack;
	uint32_t slot = work->fabric->order[at], item = item_of(work, at);
	const struct node *node = &work->nodes[slot];
	uint32_t most = item < work->fabric->leaf_count ? work->ask->max_gpus_per_leaf : 0;
	if (pack->gpus > pack_gpus(work, at, pack->today) || pack->members > pack_members(work, at, pack->today) ||
	    (most > 0 && work->answer->gpus > most))
		return false;
	for (uint32_t kind = 0; work->limit[at] != 0 && kind < pack->kinds; kind++)
		if (pack->count[kind] > pack_room(work, at, kind, pack->today))
			return false;
	uint32_t free = pack->today ? node_free_mask(node) : place_cap_mask(work, node);
	uint32_t held = pack->today ? node->held : 0;
	for (uint32_t i = 0; i < work->ask->count && work->scope.constrained; i++) {
		if (!fit_counts(work, i))
			continue;
		uint32_t set = place_choose(work, slot, free, held, work->ask->members[i].gpus);
		if (set == 0)
			return false;
		free &= ~set;
		held |= set;
	}
	return true;
}

void fit_put(struct place_work *work, uint32_t at)
{
	for (uint32_t i = 0; i < work->ask->count; i++)
		if (fit_counts(work, i)) {
			work->member_pos[i] = at;
			work->take[at]++;
		}
}

/* ---- what it comes to ------------------------------------------------------------------------------------------------ */

static void widen(const struct place_work *work, uint32_t position, struct shape *shape)
{
	uint32_t item = item_of(work, position);
	shape->lo = min_u32(shape->lo, item);
	shape->hi = max_u32(shape->hi, item + 1);
}

struct shape fit_shape(const struct place_work *work)
{
	struct shape shape = {.lo = work->items, .chained = true};
	uint32_t last = FROND_NONE, slow = 0;
	bool today = work->pack.today;
	for (uint32_t i = 0; i < work->ask->count; i++) {
		const struct frond_member *member = &work->ask->members[i];
		if (work->member_pos[i] != FROND_NONE)
			widen(work, work->member_pos[i], &shape);
		else if (today && member->gpus > 0 && member->pinned_slot != FROND_NONE)
			widen(work, work->fabric->position[member->pinned_slot], &shape);
	}
	if (shape.lo < shape.hi) /* pinned members may be far away */
		budget_charge(work->purse, (item_start(work, shape.hi) - item_start(work, shape.lo)) / 4);
	for (uint32_t item = shape.lo; item < shape.hi; item++) {
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

/* ---- where to look --------------------------------------------------------------------------------------------------- */

void fit_domains(struct place_work *work, domain_visit *visit, void *context)
{
	const struct fabric *fabric = work->fabric;
	uint32_t next = 0; /* domains are numbered in order: a lower one has been seen */
	for (uint32_t at = item_start(work, work->scope.lo); at < item_end(work, work->scope.hi - 1); at++) {
		if (fabric->domain_of[at] == FROND_NONE || fabric->domain_of[at] < next)
			continue;
		if (work->budget.spent) { /* each of them is a look at all of its leaf */
			work->answer->cut = true;
			break;
		}
		work->scope.domain = fabric->domain_of[at];
		next = work->scope.domain + 1;
		if (!work->pack.today || place_pins_in_domain(work))
			visit(work, item_of(work, at), context);
	}
	work->scope.domain = FROND_NONE;
}

uint32_t fit_shortest(struct place_work *work, uint32_t most)
{
	const struct fabric *fabric = work->fabric;
	uint32_t best = UINT32_MAX;
	for (uint32_t spine = 0; spine < fabric->spine_count && best > 1; spine++) {
		uint32_t lo = max_u32(fabric->spine_start[spine], work->scope.lo);
		uint32_t end = min_u32(fabric->spine_start[spine + 1], work->scope.hi);
		for (uint32_t hi = lo + 1; lo < end && hi <= end; hi++) {
			uint32_t longest = min_u32(most, best - 1);
			if (hi - lo > longest)
				lo = hi - longest;
			while (lo < hi && pack_may(work, lo, hi)) {
				best = hi - lo;
				lo++;
			}
			if (lo == hi || best == 1)
				break;
		}
	}
	return best;
}

bool fit_searchable(const struct place_work *work)
{
	uint32_t blocks = 0, last = 0;
	for (uint32_t i = 0; i < work->ask->count && work->scope.constrained; i++) {
		if (!fit_counts(work, i))
			continue;
		blocks += work->ask->members[i].gpus != last;
		last = work->ask->members[i].gpus;
	}
	return !work->scope.constrained || blocks == work->pack.kinds;
}
