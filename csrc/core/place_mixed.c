/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_mixed.c - members of several sizes: first-fit decreasing by size, then rank (spec 3.4), over the same spans as
 * for equal members. cap[] and now[] count GPUs here, not members.
 */
#include "core/place_work.h"

/* Tries the gang on items [lo, hi): by capacity (all members, empty nodes) or today (missing ones, beside the pinned).
 * No node takes more than per_node members. On success member_pos and take[] are set. */
static bool fits(struct place_work *work, uint32_t lo, uint32_t hi, bool today, uint32_t per_node)
{
	const struct ask *ask = work->ask;
	const struct fabric *fabric = work->fabric;
	const uint16_t *gpus = today ? work->now : work->cap;
	for (uint32_t item = lo; item < hi; item++) {
		work->item_got[item] = 0; /* GPUs in the leaf */
		work->item_cap_nodes[item] = 0;
		for (uint32_t position = item_start(work, item); position < item_end(work, item); position++) {
			work->list[position] = 0; /* GPUs in the node */
			work->take[position] = 0;
			work->item_cap_nodes[item] += today && work->pin[position] > 0;
		}
	}
	for (uint32_t i = 0; today && i < ask->count; i++)
		if (ask->members[i].gpus > 0 && ask->members[i].pinned_slot != FROND_NONE) {
			uint32_t position = fabric->position[ask->members[i].pinned_slot],
				 leaf = fabric->leaf_of[position];
			if (leaf != FROND_NONE && leaf >= lo && leaf < hi)
				work->item_got[leaf] += ask->members[i].gpus;
		}
	for (uint32_t size = FROND_GPUS_MAX; size > 0; size--)
		for (uint32_t i = 0; i < ask->count; i++) {
			if (ask->members[i].gpus != size || (today && ask->members[i].pinned_slot != FROND_NONE))
				continue;
			uint32_t found = FROND_NONE;
			for (uint32_t item = lo; item < hi && found == FROND_NONE; item++) {
				bool leaf = item < fabric->leaf_count;
				if (hi - lo > 1 && work->item_slow[item])
					continue; /* a gang over several leaves may not cross a slow link */
				if (leaf && ask->max_gpus_per_leaf > 0 &&
				    work->item_got[item] + size > ask->max_gpus_per_leaf)
					continue;
				for (uint32_t p = item_start(work, item);
				     p < item_end(work, item) && found == FROND_NONE; p++) {
					uint32_t pinned = today ? work->pin[p] : 0;
					const struct frond_room *room =
						ask->room == NULL ? NULL : &ask->room[fabric->order[p]];
					bool fresh = work->take[p] == 0 && pinned == 0;
					bool full = room != NULL && work->take[p] >= (today ? room->today : room->ever);
					if (work->list[p] + size > gpus[p] || full ||
					    work->take[p] + pinned >= per_node)
						continue;
					if (fresh && leaf && ask->max_nodes_per_leaf > 0 &&
					    work->item_cap_nodes[item] >= ask->max_nodes_per_leaf)
						continue;
					work->item_cap_nodes[item] += fresh;
					found = p;
				}
				if (found != FROND_NONE)
					work->item_got[item] += size;
			}
			if (found == FROND_NONE)
				return false;
			work->list[found] += size;
			work->take[found]++;
			work->member_pos[i] = found;
		}
	return true;
}

static bool in_use(const struct place_work *work, uint32_t item)
{
	for (uint32_t position = item_start(work, item); position < item_end(work, item); position++)
		if (work->take[position] > 0 || work->pin[position] > 0)
			return true;
	return false;
}

static uint64_t pins_in(const struct place_work *work, uint32_t lo, uint32_t hi)
{
	uint64_t pinned = 0;
	for (uint32_t item = lo; item < hi; item++)
		pinned += work->item_pin[item];
	return pinned;
}

/* After fits(): every leaf of the run in use; over several spines one run in each, none left out. */
static bool shaped(const struct place_work *work, uint32_t lo, uint32_t hi)
{
	bool spine_used = false, run_ended = false;
	for (uint32_t item = lo; item < hi; item++) {
		if (item > lo && !item_adjacent(work, item)) {
			if (!spine_used)
				return false;
			spine_used = run_ended = false;
		}
		bool used = in_use(work, item);
		if (used && run_ended)
			return false;
		run_ended |= spine_used && !used;
		spine_used |= used;
	}
	return spine_used;
}

static void forget(struct place_work *work)
{
	memset(work->take, 0, work->fabric->node_count * sizeof *work->take);
}

/* Runs fits() over a window, with per_node members on a node at most. Leaves nothing outside. */
static bool try_window(struct place_work *work, uint32_t lo, uint32_t hi, bool today)
{
	forget(work);
	if (today && pins_in(work, lo, hi) != work->pins)
		return false;
	return fits(work, lo, hi, today, work->per_node);
}

static bool crosses_slow(const struct place_work *work, uint32_t lo, uint32_t hi)
{
	for (uint32_t item = lo; item < hi; item++)
		if (work->item_slow[item])
			return true;
	return false;
}

/* The first run of `length` adjacent leaves inside [from, to) that holds the gang. */
static bool try_runs(struct place_work *work, uint32_t from, uint32_t to, uint32_t length, bool today)
{
	to = min_u32(to, work->fabric->leaf_count);
	for (uint32_t lo = from; lo + length <= to; lo++) {
		if (item_spine(work, lo) != item_spine(work, lo + length - 1))
			continue;
		if (length > 1 && crosses_slow(work, lo, lo + length))
			continue;
		if (try_window(work, lo, lo + length, today) &&
		    (!today || length == 1 || shaped(work, lo, lo + length)))
			return true;
	}
	return false;
}

static bool try_spines(struct place_work *work, uint32_t length, bool today)
{
	const struct fabric *fabric = work->fabric;
	for (uint32_t first = 0; first + length <= fabric->spine_count; first++) {
		uint32_t lo = fabric->spine_start[first], hi = fabric->spine_start[first + length];
		if (lo < work->lo || hi > work->hi)
			continue;
		if (try_window(work, lo, hi, today) && (!today || shaped(work, lo, hi)))
			return true;
	}
	return false;
}

/* One node for all of them. */
static bool try_nodes(struct place_work *work, bool today)
{
	const struct ask *ask = work->ask;
	uint64_t gpus = 0;
	uint32_t members = 0;
	for (uint32_t i = 0; i < ask->count; i++) {
		bool counts = ask->members[i].gpus > 0 && !(today && ask->members[i].pinned_slot != FROND_NONE);
		gpus += counts ? ask->members[i].gpus : 0;
		members += counts;
	}
	for (uint32_t item = work->lo; item < work->hi; item++)
		for (uint32_t p = item_start(work, item); p < item_end(work, item); p++) {
			const struct frond_room *room = ask->room == NULL ? NULL : &ask->room[work->fabric->order[p]];
			bool over = item < work->fabric->leaf_count && ask->max_gpus_per_leaf > 0 &&
				    work->answer->gpus > ask->max_gpus_per_leaf; /* with the pinned ones */
			if (gpus > (today ? work->now[p] : work->cap[p]) || (today && work->pin[p] != work->pins) ||
			    over || (room != NULL && members > (today ? room->today : room->ever)))
				continue;
			forget(work);
			work->take[p] = (uint16_t)members;
			for (uint32_t i = 0; i < ask->count; i++)
				if (ask->members[i].gpus > 0)
					work->member_pos[i] = p;
			return true;
		}
	return false;
}

/* Every leaf that could hold the gang would have each of its nodes in use. */
static bool needs_complete_leaf(struct place_work *work)
{
	for (uint32_t leaf = 0; leaf < work->fabric->leaf_count; leaf++) {
		if (!try_window(work, leaf, leaf + 1, false))
			continue;
		for (uint32_t p = item_start(work, leaf); p < item_end(work, leaf); p++)
			if (work->take[p] == 0)
				return false;
	}
	return true;
}

bool place_mixed_rule(struct place_work *work)
{
	struct answer *answer = work->answer;
	for (uint32_t position = 0; position < work->fabric->node_count; position++)
		answer->ever += work->cap[position];
	bool spreads = work->ask->strategy == STRATEGY_DISTRIBUTED && !work->ask->latency_sensitive;
	work->per_node = spreads ? 1 : FROND_GPUS_MAX;
	while (!try_window(work, 0, work->items, false) && !try_runs(work, 0, work->items, 1, false))
		if (work->per_node++ == FROND_GPUS_MAX)
			return false;
	answer->need_nodes = 0; /* how many the first fit takes */
	for (uint32_t position = 0; position < work->fabric->node_count; position++)
		answer->need_nodes += work->take[position] > 0;
	if ((!spreads || answer->need_nodes == 1) && try_nodes(work, false)) {
		answer->need_nodes = 1;
		answer->plan.rule = FROND_RULE_SINGLE_NODE;
		return true;
	}
	for (uint32_t length = 1; length <= work->fabric->leaf_count; length++)
		if (try_runs(work, 0, work->items, length, false)) {
			answer->need_leaves = length;
			answer->plan.rule = length > 1                  ? FROND_RULE_ADJACENT_LEAVES
					    : needs_complete_leaf(work) ? FROND_RULE_COMPLETE_LEAF
									: FROND_RULE_SAME_LEAF;
			return true;
		}
	answer->plan.rule = FROND_RULE_ADJACENT_SPINES;
	for (uint32_t length = 2; length <= work->fabric->spine_count; length++)
		if (try_spines(work, length, false)) {
			answer->need_spines = length;
			return true;
		}
	answer->plan.flags |= FROND_PLAN_SHAPELESS;
	return true;
}

bool place_mixed_span(struct place_work *work)
{
	if (work->answer->plan.rule == FROND_RULE_SINGLE_NODE)
		return try_nodes(work, true);
	bool spreads = work->ask->strategy == STRATEGY_DISTRIBUTED; /* widest first, else shortest first */
	uint32_t leaves = work->answer->need_leaves, spines = work->answer->need_spines;
	work->per_node = spreads ? 1 : FROND_GPUS_MAX;
	for (; work->per_node <= FROND_GPUS_MAX; work->per_node++) {
		for (uint32_t i = 1; i <= leaves; i++)
			if (try_runs(work, work->lo, work->hi, spreads ? leaves + 1 - i : i, true))
				return true;
		for (uint32_t i = 1; i <= spines; i++)
			if (try_spines(work, spreads ? spines + 1 - i : i, true))
				return true;
	}
	return false;
}

/* Shortest run first, then everything; `distributed`: everything, or one leaf whose link is slow. */
bool place_mixed_relaxed(struct place_work *work)
{
	if (work->ask->strategy == STRATEGY_DISTRIBUTED) {
		for (work->per_node = 1; work->per_node <= FROND_GPUS_MAX; work->per_node++)
			if (try_window(work, work->lo, work->hi, true) || try_runs(work, work->lo, work->hi, 1, true))
				return true;
		return false;
	}
	work->per_node = FROND_GPUS_MAX;
	if (try_nodes(work, true))
		return true;
	for (uint32_t length = 1; length <= work->fabric->leaf_count; length++)
		if (try_runs(work, work->lo, work->hi, length, true))
			return true;
	return try_window(work, work->lo, work->hi, true);
}

void place_mixed_nearest(struct place_work *work)
{
	struct answer *answer = work->answer;
	answer->best = BEST_CLUSTER;
	answer->best_gap = FROND_NONE;
	answer->best_room = 0;
	for (uint32_t position = 0; position < work->fabric->node_count; position++)
		answer->best_room += work->now[position];
}
