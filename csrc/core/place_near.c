/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_near.c - the place that comes nearest to the rule today, and what stands in the way there, for the sentence.
 */
#include "core/place_work.h"

static void nearest(struct place_work *work, enum best_kind kind, uint32_t first, uint32_t last, uint64_t room)
{
	struct answer *answer = work->answer;
	if (answer->best != BEST_NONE && room <= answer->best_room)
		return;
	answer->best = kind;
	answer->best_first = first;
	answer->best_last = last;
	answer->best_room = room;
}

static bool any_usable(struct place_work *work, uint32_t lo, uint32_t hi)
{
	for (uint32_t item = lo; item < hi; item++)
		if (item_usable(work, item))
			return true;
	return false;
}

/* Free GPUs of the node that could hold the gang and has most of them. */
static void nearest_node(struct place_work *work)
{
	const struct fabric *fabric = work->fabric;
	const struct answer *answer = work->answer;
	for (uint32_t item = 0; item < work->items; item++) {
		bool leaf = item < fabric->leaf_count;
		if (answer->best != BEST_NONE && leaf && !work->leaf_excepted[item] &&
		    (answer->best_room >= FROND_GPUS_MAX || fabric->leaf[item].at_least[answer->best_room + 1] == 0))
			continue; /* no node of this leaf has more */
		for (uint32_t at = item_start(work, item); at < item_end(work, item); at++) {
			const struct node *node = &work->nodes[fabric->order[at]];
			uint32_t free = node_open(node) ? node_free_count(node) : 0;
			if (work->pin[at] == work->gang.pins &&
			    (answer->best == BEST_NONE || free > answer->best_room) &&
			    place_node_cap(work, at) >= work->gang.total)
				nearest(work, BEST_NODE, at, at, free);
		}
	}
}

/* The leaf with most room whose capacity would do. */
static void nearest_leaf(struct place_work *work)
{
	const struct fabric *fabric = work->fabric;
	bool looked = work->candidates.near_plan == work->plan; /* place_single.c, at all but hopeless spines */
	uint32_t best = looked ? work->candidates.near_leaf : FROND_NONE,
		 most = best == FROND_NONE ? 0 : work->candidates.near_room;
	for (uint32_t spine = 0; spine < (looked ? work->candidates.near_end : fabric->spine_count); spine++) {
		if (looked && !place_hopeless(work, spine))
			continue;
		for (uint32_t leaf = fabric->spine_start[spine]; leaf < fabric->spine_start[spine + 1]; leaf++) {
			uint32_t room = place_hold(work, leaf), nodes, each;
			bool nearer = best == FROND_NONE || room > most || (room == most && leaf < best);
			if (nearer && place_cap(work, leaf, &nodes, &each) >= work->gang.total) {
				best = leaf;
				most = room;
			}
		}
	}
	if (best != FROND_NONE)
		nearest(work, BEST_LEAVES, best, best, most);
}

/* Windows of need_leaves leaves whose capacity would do. Spines with less room than the best so far are passed over. */
static void nearest_leaves(struct place_work *work)
{
	const struct fabric *fabric = work->fabric;
	struct answer *answer = work->answer;
	uint32_t length = answer->need_leaves;
	for (uint32_t spine = 0; spine < fabric->spine_count; spine++) {
		uint32_t lo = fabric->spine_start[spine], hi = fabric->spine_start[spine + 1];
		uint64_t most = 0;
		for (uint32_t gpus = work->gang.size; work->scope.counted && gpus <= FROND_GPUS_MAX;
		     gpus += work->gang.size)
			most += fabric->spine[spine].at_least[gpus];
		if (hi - lo < length || (work->scope.counted && answer->best != BEST_NONE && most <= answer->best_room))
			continue;
		uint64_t room = 0, cap = 0, pinned = 0;
		for (uint32_t leaf = lo; leaf < hi; leaf++) {
			uint32_t nodes, each;
			if (length == 1 || !item_slow(work, leaf)) {
				room += place_hold(work, leaf);
				cap += place_cap(work, leaf, &nodes, &each);
			}
			pinned += item_pin(work, leaf);
			if (leaf + 1 < lo + length)
				continue;
			uint32_t first = leaf + 1 - length;
			if (cap >= work->gang.total && pinned == work->gang.pins)
				nearest(work, BEST_LEAVES, first, leaf, room);
			if (length == 1 || !item_slow(work, first)) {
				room -= place_hold(work, first);
				cap -= place_cap(work, first, &nodes, &each);
			}
			pinned -= item_pin(work, first);
		}
	}
}

static void find_gap(struct place_work *work)
{
	struct answer *answer = work->answer;
	for (uint32_t leaf = answer->best_last + 1; answer->best == BEST_LEAVES && leaf-- > answer->best_first;)
		if (!any_usable(work, leaf, leaf + 1))
			answer->best_gap = leaf;
}

/* Adds what a spine has to a window of spines (sign = 1), or takes it away. */
static void count_spine(struct place_work *work, uint32_t spine, uint64_t sign, uint64_t *room, uint64_t *pinned)
{
	const struct fabric *fabric = work->fabric;
	for (uint32_t item = fabric->spine_start[spine]; item < fabric->spine_start[spine + 1]; item++) {
		*room += item_usable(work, item) ? sign * place_hold(work, item) : 0;
		*pinned += sign * item_pin(work, item);
	}
}

/* Windows of need_spines spines, one after the other. */
static void nearest_spines(struct place_work *work)
{
	const struct fabric *fabric = work->fabric;
	struct answer *answer = work->answer;
	uint64_t room = 0, pinned = 0;
	uint32_t length = answer->need_spines, joined = 0; /* spines up to this one that are adjacent in a row */
	assert(length > 0);
	for (uint32_t last = 0; last < fabric->spine_count; last++) {
		count_spine(work, last, 1, &room, &pinned);
		joined = spine_adjacent(fabric, last) ? joined + 1 : 1;
		if (last + 1 < length)
			continue;
		uint32_t first = last + 1 - length;
		if (joined >= length && pinned == work->gang.pins)
			nearest(work, BEST_SPINES, first, last, room);
		count_spine(work, first, UINT64_MAX, &room, &pinned);
	}
	for (uint32_t spine = answer->best_last + 1; answer->best == BEST_SPINES && spine-- > answer->best_first;)
		if (!any_usable(work, fabric->spine_start[spine], fabric->spine_start[spine + 1]))
			answer->best_gap = spine;
}

/* The most that one gang could have: a slow item is of use only to a gang that stays inside it. */
static void nearest_cluster(struct place_work *work)
{
	uint64_t sum = 0, most = 0;
	for (uint32_t item = 0; item < work->items; item++) {
		uint32_t hold = place_hold(work, item);
		if (!item_slow(work, item))
			sum += hold;
		else
			most = hold > most ? hold : most;
	}
	nearest(work, BEST_CLUSTER, 0, 0, sum > most ? sum : most);
}

/* Does the node hold fewer members than it could? */
static bool holds_less(const struct place_work *work, uint32_t at)
{
	const struct node *node = &work->nodes[work->fabric->order[at]];
	if (work->pin[at] > 0)
		return false;
	if (work->gang.size == 0)
		return node_open(node) ? node_free_count(node) < node->gpus : node->gpus > 0;
	return place_node_now(work, at) < place_node_cap(work, at);
}

static void count_blockers(struct place_work *work, uint32_t first, uint32_t end)
{
	struct answer *answer = work->answer;
	for (uint32_t at = first; at < end; at++) {
		if (!holds_less(work, at))
			continue;
		const struct node *node = &work->nodes[work->fabric->order[at]];
		enum blocker why = BLOCKED_FILTERED;
		if (node->flags & FROND_NODE_DOWN)
			why = BLOCKED_DOWN;
		else if (node->flags & FROND_NODE_CORDONED)
			why = BLOCKED_CORDONED;
		else if (!node_whole(node))
			why = BLOCKED_IN_USE;
		else if (node->unhealthy != 0)
			why = BLOCKED_UNHEALTHY;
		if (answer->blocked[why]++ == 0)
			answer->blocked_first[why] = at;
	}
}

void place_blockers(struct place_work *work)
{
	const struct fabric *fabric = work->fabric;
	const struct answer *answer = work->answer;
	uint32_t first = answer->best_first, last = answer->best_last;
	switch (answer->best) {
	case BEST_NONE:
		break;
	case BEST_NODE:
		count_blockers(work, first, last + 1);
		break;
	case BEST_LEAVES:
		count_blockers(work, fabric->leaf_start[first], fabric->leaf_start[last + 1]);
		break;
	case BEST_SPINES:
		count_blockers(work, fabric->leaf_start[fabric->spine_start[first]],
			       fabric->leaf_start[fabric->spine_start[last + 1]]);
		break;
	case BEST_CLUSTER:
		count_blockers(work, 0, fabric->node_count);
		break;
	}
}

void place_nearest(struct place_work *work)
{
	switch (work->answer->plan.rule) {
	case FROND_RULE_SINGLE_NODE:
		nearest_node(work);
		break;
	case FROND_RULE_NONE:
		nearest_cluster(work);
		break;
	case FROND_RULE_ADJACENT_SPINES:
		nearest_spines(work);
		break;
	default:
		if (work->scope.quick && work->answer->need_leaves == 1)
			nearest_leaf(work);
		else
			nearest_leaves(work);
		find_gap(work);
		break;
	}
}
