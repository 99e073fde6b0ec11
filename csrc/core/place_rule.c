/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_rule.c - spec 3.3: the rule that a gang of equal members must meet. It comes from capacity alone, so it does
 * not change with the weather.
 *
 *   n = 1                  all members on one node
 *   r = 1                  one leaf; "complete" when every leaf that could hold the gang is needed node for node
 *   r > 1                  at most r adjacent leaves under one spine, every leaf of the run in use
 *   no spine can hold it   fewest adjacent spines, in each one run of adjacent leaves
 */
#include "core/place_work.h"

/* A latency-sensitive gang wants the smallest domain that could hold it, whatever its strategy. */
static bool counts_nodes(const struct place_work *work)
{
	return work->ask->strategy == STRATEGY_DISTRIBUTED && !work->ask->latency_sensitive;
}

/* Is a span with this room enough? `distributed` counts one node per member. */
static bool enough(const struct place_work *work, uint64_t members, uint64_t nodes)
{
	return members >= work->total && (!counts_nodes(work) || nodes >= work->answer->need_nodes);
}

/* The fewest nodes that hold the gang. */
static uint32_t fewest_nodes(const struct place_work *work, const uint16_t *fit, uint32_t first, uint32_t end)
{
	uint32_t histogram[FROND_GPUS_MAX + 1] = {0}, members = 0, nodes = 0;
	for (uint32_t position = first; position < end; position++)
		histogram[fit[position]]++;
	for (uint32_t fits = FROND_GPUS_MAX; fits > 0; fits--)
		for (uint32_t i = 0; i < histogram[fits] && members < work->total; i++) {
			members += fits;
			nodes++;
		}
	return nodes;
}

/* n: with `distributed` one node per member, fewer if the cluster has fewer that one gang could use together. */
static uint32_t nodes_needed(const struct place_work *work)
{
	if (!counts_nodes(work))
		return fewest_nodes(work, work->cap, 0, work->fabric->node_count);
	uint64_t members = 0, nodes = 0, most = 0;
	for (uint32_t item = 0; item < work->items; item++) {
		if (!work->item_slow[item]) {
			members += work->item_cap[item];
			nodes += work->item_cap_nodes[item];
		} else if (work->item_cap[item] >= work->total && work->item_cap_nodes[item] > most) {
			most = work->item_cap_nodes[item];
		}
	}
	if (members >= work->total && nodes > most)
		most = nodes;
	return most < work->total ? (uint32_t)most : work->total;
}

/* r: the shortest run of adjacent leaves that is enough; 0: no spine has one. */
static uint32_t fewest_leaves(const struct place_work *work)
{
	const struct fabric *fabric = work->fabric;
	uint32_t best = 0;
	for (uint32_t first = 0; first < fabric->leaf_count; first++) {
		uint64_t members = 0, nodes = 0;
		for (uint32_t leaf = first; leaf < fabric->leaf_count; leaf++) {
			uint32_t length = leaf - first + 1;
			bool joined = leaf == first || item_adjacent(work, leaf);
			bool crossed = length > 1 && (work->item_slow[leaf] || work->item_slow[first]);
			if (!joined || crossed || work->item_cap[leaf] == 0 || (best != 0 && length >= best))
				break;
			members += work->item_cap[leaf];
			nodes += work->item_cap_nodes[leaf];
			if (enough(work, members, nodes)) {
				best = length;
				break;
			}
		}
	}
	return best;
}

/* The best run of a spine by capacity: most members (`distributed`: most nodes). */
static void best_run(const struct place_work *work, uint32_t spine, uint64_t *members, uint64_t *nodes)
{
	const struct fabric *fabric = work->fabric;
	bool by_nodes = counts_nodes(work);
	uint64_t run_members = 0, run_nodes = 0;
	*members = *nodes = 0;
	for (uint32_t leaf = fabric->spine_start[spine]; leaf < fabric->spine_start[spine + 1]; leaf++) {
		if (work->item_cap[leaf] == 0 || work->item_slow[leaf]) {
			run_members = run_nodes = 0;
			continue;
		}
		run_members += work->item_cap[leaf];
		run_nodes += work->item_cap_nodes[leaf];
		if (by_nodes ? run_nodes > *nodes : run_members > *members) {
			*members = run_members;
			*nodes = run_nodes;
		}
	}
}

static uint32_t fewest_spines(const struct place_work *work)
{
	uint32_t spines = work->fabric->spine_count, best = 0;
	for (uint32_t first = 0; first < spines; first++) {
		uint64_t members = 0, nodes = 0;
		for (uint32_t spine = first; spine < spines && (best == 0 || spine - first + 1 < best); spine++) {
			uint64_t run_members, run_nodes;
			best_run(work, spine, &run_members, &run_nodes);
			if (run_members == 0)
				break;
			members += run_members;
			nodes += run_nodes;
			if (enough(work, members, nodes)) {
				best = spine - first + 1;
				break;
			}
		}
	}
	return best;
}

static bool needs_complete_leaf(const struct place_work *work)
{
	const struct fabric *fabric = work->fabric;
	for (uint32_t leaf = 0; leaf < fabric->leaf_count; leaf++) {
		if (!enough(work, work->item_cap[leaf], work->item_cap_nodes[leaf]))
			continue;
		uint32_t needed = counts_nodes(work) ? work->answer->need_nodes
						     : fewest_nodes(work, work->cap, fabric->leaf_start[leaf],
								    fabric->leaf_start[leaf + 1]);
		if (needed < leaf_nodes(fabric, leaf))
			return false;
	}
	return true;
}

bool place_rule(struct place_work *work)
{
	struct answer *answer = work->answer;
	bool one_node = false;
	for (uint32_t position = 0; position < work->fabric->node_count; position++)
		one_node |= work->cap[position] >= work->total;
	answer->ever = place_most(work, work->item_cap);
	if (answer->ever < work->total)
		return false;

	answer->need_nodes = nodes_needed(work);
	if (answer->need_nodes == 1 && one_node) {
		answer->plan.rule = FROND_RULE_SINGLE_NODE;
		return true;
	}
	answer->need_leaves = fewest_leaves(work);
	if (answer->need_leaves == 1)
		answer->plan.rule = needs_complete_leaf(work) ? FROND_RULE_COMPLETE_LEAF : FROND_RULE_SAME_LEAF;
	else if (answer->need_leaves > 1)
		answer->plan.rule = FROND_RULE_ADJACENT_LEAVES;
	else {
		answer->plan.rule = FROND_RULE_ADJACENT_SPINES;
		answer->need_spines = fewest_spines(work);
		if (answer->need_spines == 0)
			answer->plan.flags |= FROND_PLAN_SHAPELESS;
	}
	return true;
}
