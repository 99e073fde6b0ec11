/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_fill.c - from chosen leaves to nodes: how many members each leaf gets (fabric order, more members first), and
 * which nodes take them inside a leaf (fewest GPUs left over, then lowest position).
 */
#include "core/place_work.h"

static uint32_t node_room(uint32_t fits, uint32_t pinned, uint32_t per_node)
{
	return min_u32(fits, per_node > pinned ? per_node - pinned : 0);
}

uint32_t place_hold(const struct place_work *work, uint32_t item, const uint16_t *fit, const uint16_t *pin,
		    uint32_t per_node)
{
	const struct ask *ask = work->ask;
	bool leaf = item < work->fabric->leaf_count;
	uint32_t histogram[FROND_GPUS_MAX + 1] = {0};
	uint32_t sum = 0, pinned_nodes = 0, pinned_members = 0;
	for (uint32_t position = item_start(work, item); position < item_end(work, item); position++) {
		uint32_t pinned = pin == NULL ? 0 : pin[position];
		uint32_t room = node_room(fit[position], pinned, per_node);
		pinned_members += pinned;
		if (pinned > 0) { /* a node that the gang uses already costs no further node */
			pinned_nodes++;
			sum += room;
		} else {
			histogram[room]++;
		}
	}
	uint32_t nodes = UINT32_MAX;
	if (leaf && ask->max_nodes_per_leaf > 0)
		nodes = ask->max_nodes_per_leaf > pinned_nodes ? ask->max_nodes_per_leaf - pinned_nodes : 0;
	for (uint32_t room = FROND_GPUS_MAX; room > 0; room--) {
		uint32_t count = min_u32(histogram[room], nodes);
		sum += count * room;
		nodes -= count;
	}
	if (leaf && ask->max_gpus_per_leaf > 0) {
		uint32_t most = ask->max_gpus_per_leaf / work->size;
		sum = min_u32(sum, most > pinned_members ? most - pinned_members : 0);
	}
	return sum;
}

/* With a cap on nodes only the roomiest may be used, or the members would not fit: returns the least room to use and
 * how many nodes with exactly that room. */
static void cap_nodes(const struct place_work *work, uint32_t item, uint32_t per_node, uint32_t *least,
		      uint32_t *at_least)
{
	*least = 1;
	*at_least = UINT32_MAX;
	if (item >= work->fabric->leaf_count || work->ask->max_nodes_per_leaf == 0)
		return;
	uint32_t histogram[FROND_GPUS_MAX + 1] = {0}, nodes = work->ask->max_nodes_per_leaf;
	for (uint32_t position = item_start(work, item); position < item_end(work, item); position++) {
		if (work->pin[position] == 0)
			histogram[node_room(work->now[position], 0, per_node)]++;
		else
			nodes -= nodes > 0;
	}
	for (uint32_t room = FROND_GPUS_MAX; room > 0; room--) {
		*least = room;
		*at_least = nodes;
		if (histogram[room] >= nodes)
			return;
		nodes -= histogram[room];
	}
}

/* Puts `members` on the nodes of an item, one by one: fewest GPUs left over, then lowest position. */
static void fill_item(struct place_work *work, uint32_t item, uint32_t members, uint32_t per_node)
{
	uint32_t least, at_least;
	cap_nodes(work, item, per_node, &least, &at_least);
	while (members > 0) {
		uint32_t best = FROND_NONE, best_left = UINT32_MAX;
		for (uint32_t position = item_start(work, item); position < item_end(work, item); position++) {
			uint32_t room = node_room(work->now[position], work->pin[position], per_node);
			bool fresh = work->take[position] == 0 && work->pin[position] == 0;
			if (work->take[position] >= room ||
			    (fresh && (room < least || (room == least && at_least == 0))))
				continue;
			uint32_t free = node_free_count(&work->nodes[work->fabric->order[position]]);
			uint32_t left = free - (work->take[position] + 1u) * work->size;
			if (left < best_left) {
				best = position;
				best_left = left;
			}
		}
		assert(best != FROND_NONE);
		uint32_t room = node_room(work->now[best], work->pin[best], per_node);
		if (work->take[best] == 0 && work->pin[best] == 0 && room == least && at_least != UINT32_MAX)
			at_least--;
		uint32_t more = min_u32(members, room - work->take[best]); /* it stays the tightest until it is full */
		work->take[best] = (uint16_t)(work->take[best] + more);
		members -= more;
	}
}

/* `consolidated`: fewest nodes over all used items. Nodes in use already cost nothing; then the roomiest of each item
 * that must be in use, then the roomiest of all. */
static void fill_consolidated(struct place_work *work, uint32_t lo, uint32_t hi, bool use_all)
{
	uint32_t left = work->missing, owed = 0;
	for (uint32_t item = lo; item < hi; item++)
		owed += use_all && work->item_used[item] && work->item_pin[item] == 0;
	for (uint32_t phase = 0; phase < 3; phase++) { /* pinned nodes, one per item, the rest */
		uint32_t count = 0;
		for (uint32_t item = lo; item < hi; item++) {
			if (!work->item_used[item])
				continue;
			uint32_t best = FROND_NONE;
			for (uint32_t position = item_start(work, item); position < item_end(work, item); position++) {
				uint32_t room = work->now[position];
				if (room == 0 || work->take[position] > 0 || (phase == 0 && work->pin[position] == 0))
					continue;
				if (phase == 1) {
					if (best == FROND_NONE || room > work->now[best])
						best = position;
					continue;
				}
				work->keys[count++] = (uint64_t)(FROND_GPUS_MAX - room) << 32 | position;
			}
			if (phase == 1 && best != FROND_NONE && use_all && work->item_pin[item] == 0)
				work->keys[count++] = best; /* in fabric order */
		}
		sort_u64(work->keys, count);
		for (uint32_t i = 0; i < count && left > 0; i++) {
			uint32_t position = (uint32_t)work->keys[i];
			owed -= phase == 1;
			uint32_t spare = left > owed ? left - owed : 0; /* keep one for each item still to come */
			uint32_t more = min_u32(work->now[position], spare);
			work->take[position] = (uint16_t)more;
			left -= more;
		}
	}
	assert(left == 0);
}

void place_fill(struct place_work *work, uint32_t lo, uint32_t hi, uint32_t per_node, uint32_t per_item, bool use_all)
{
	uint32_t left = work->missing, owed = 0;
	for (uint32_t position = item_start(work, lo); position < item_end(work, hi - 1); position++)
		work->take[position] = 0;
	if (work->ask->strategy == STRATEGY_CONSOLIDATED && work->ask->max_nodes_per_leaf == 0 &&
	    work->ask->max_gpus_per_leaf == 0) {
		fill_consolidated(work, lo, hi, use_all);
		return;
	}
	for (uint32_t item = lo; item < hi; item++)
		owed += use_all && work->item_used[item] && work->item_pin[item] == 0;
	for (uint32_t item = lo; item < hi && left > 0; item++) {
		if (!work->item_used[item])
			continue;
		owed -= use_all && work->item_pin[item] == 0;
		uint32_t most = per_item > work->item_pin[item] ? per_item - work->item_pin[item] : 0;
		most = min_u32(most, place_hold(work, item, work->now, work->pin, per_node));
		uint32_t members = min_u32(most, left - owed);
		fill_item(work, item, members, per_node);
		left -= members;
	}
	assert(left == 0);
}

uint32_t place_nodes_used(const struct place_work *work, uint32_t lo, uint32_t hi)
{
	uint32_t nodes = 0;
	for (uint32_t item = lo; item < hi; item++)
		for (uint32_t position = item_start(work, item);
		     work->item_used[item] && position < item_end(work, item); position++)
			nodes += work->take[position] > 0 || work->pin[position] > 0;
	return nodes;
}
