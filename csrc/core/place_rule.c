/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_rule.c - reference 3.3: the rule that a gang of equal members must meet. It comes from capacity alone, so it
 * does not change with the weather.
 *
 *   n = 1                  all members on one node
 *   r = 1                  one leaf; "complete" when every leaf that could hold the gang is needed node for node
 *   r > 1                  at most r adjacent leaves under one spine, every leaf of the run in use
 *   no spine can hold it   fewest adjacent spines, in each one run of adjacent leaves
 *
 * A latency-sensitive gang wants the smallest of node, NVLink domain and leaf. Spines of one shape without exceptions and
 * without unavailable nodes have one capacity: the first of each is looked at.
 */
#include "core/place_work.h"

#define LEAVES_FIRST 64u /* leaves that are looked at before anything is added up */

bool place_counts_nodes(const struct place_work *work)
{
	return work->ask->strategy == STRATEGY_DISTRIBUTED && !work->ask->latency_sensitive;
}

/* Is a span with this room enough? `distributed` counts one node per member. */
static bool enough(const struct place_work *work, uint64_t members, uint64_t nodes)
{
	return members >= work->gang.total && (!place_counts_nodes(work) || nodes >= work->answer->need_nodes);
}

/* The spine whose view this one shares. */
static uint32_t view_spine(const struct place_work *work, uint32_t spine)
{
	if (place_own_capacity(work, spine))
		return spine;
	return work->candidates.alike_seen[work->fabric->spine[spine].shape] - 1;
}

static const struct spine_view *view_of(const struct place_work *work, uint32_t spine)
{
	return &work->scratch.view[view_spine(work, spine)];
}

/* ---- what each spine could hold -------------------------------------------------------------------------------------- */

/* In scratch.sum and scratch.list: what each leaf could hold, for view_runs(). */
static void view_leaves(struct place_work *work, uint32_t spine)
{
	struct spine_view *view = &work->scratch.view[spine];
	*view = (struct spine_view){.members = 0};
	budget_charge(&work->budget,
		      2ull * STEPS_LEAF * (work->fabric->spine_start[spine + 1] - work->fabric->spine_start[spine]));
	for (uint32_t leaf = work->fabric->spine_start[spine]; leaf < work->fabric->spine_start[spine + 1]; leaf++) {
		uint32_t nodes, most, members = place_cap(work, leaf, &nodes, &most);
		work->scratch.sum[leaf] = members;
		work->scratch.list[leaf] = nodes;
		view->node_members = max_u32(view->node_members, most);
		if (!item_slow(work, leaf)) {
			view->members += members;
			view->nodes += nodes;
			continue;
		}
		view->slow_members = max_u32(view->slow_members, members);
		if (members >= work->gang.total)
			view->slow_nodes = max_u32(view->slow_nodes, nodes);
	}
}

/* Each node of the leaf is needed. */
static bool needs_each_node(const struct place_work *work, uint32_t leaf)
{
	uint32_t rooms[FROND_GPUS_MAX + 1] = {0}, nodes = 0, left = work->gang.total,
					all = leaf_nodes(work->fabric, leaf);
	if (place_counts_nodes(work))
		return work->answer->need_nodes >= all;
	uint32_t holding, each;
	if (work->scope.quick && place_cap(work, leaf, &holding, &each) == holding * each)
		return (left + each - 1) / each >= all; /* all its nodes take the same */
	budget_charge(work->purse, (uint64_t)STEPS_NODE * all);
	for (uint32_t at = item_start(work, leaf); at < item_end(work, leaf); at++)
		rooms[place_node_cap(work, at)]++;
	for (uint32_t room = FROND_GPUS_MAX; room > 0 && left > 0; room--) {
		uint32_t count = min_u32(rooms[room], (left + room - 1) / room);
		nodes += count;
		left -= min_u32(left, count * room);
	}
	return nodes >= all;
}

/* Runs of leaves: the shortest that is enough, and the one with most members (`distributed`: most nodes). */
static void view_runs(struct place_work *work, uint32_t spine)
{
	struct spine_view *view = &work->scratch.view[spine];
	bool by_nodes = place_counts_nodes(work);
	const uint64_t *caps = work->scratch.sum;
	const uint32_t *caps_nodes = work->scratch.list;
	uint32_t start = work->fabric->spine_start[spine];
	uint64_t run_members = 0, run_nodes = 0; /* from the start of the run */
	uint64_t members = 0, nodes = 0;         /* from `start`, the last leaf from which the run is enough */
	for (uint32_t leaf = start; leaf < work->fabric->spine_start[spine + 1]; leaf++) {
		if (enough(work, caps[leaf], caps_nodes[leaf])) {
			view->shortest = 1;
			view->spare_leaf = view->spare_leaf || !needs_each_node(work, leaf);
		}
		if (caps[leaf] == 0 || item_slow(work, leaf)) {
			run_members = run_nodes = members = nodes = 0;
			start = leaf + 1;
			continue;
		}
		run_members += caps[leaf];
		run_nodes += caps_nodes[leaf];
		members += caps[leaf];
		nodes += caps_nodes[leaf];
		if (by_nodes ? run_nodes > view->run_nodes : run_members > view->run_members) {
			view->run_members = run_members;
			view->run_nodes = run_nodes;
		}
		while (start < leaf) { /* can the run do without its first leaf? */
			if (!enough(work, members - caps[start], nodes - caps_nodes[start]))
				break;
			members -= caps[start];
			nodes -= caps_nodes[start++];
		}
		uint32_t length = leaf - start + 1;
		if (enough(work, members, nodes) && (view->shortest == 0 || length < view->shortest))
			view->shortest = length;
	}
}

/* ---- the cluster ------------------------------------------------------------------------------------------------------- */

struct sums {
	uint64_t members, nodes;           /* of everything that a gang may cross */
	uint32_t slow_members, slow_nodes; /* most inside one slow leaf */
	uint32_t node_members;
};

static struct sums add_up(struct place_work *work)
{
	const struct fabric *fabric = work->fabric;
	struct sums sums = {.members = 0};
	place_alike_forget(work);
	for (uint32_t spine = 0; spine < fabric->spine_count; spine++) {
		uint32_t *first = &work->candidates.alike_seen[fabric->spine[spine].shape];
		if (*first == 0 && !place_own_capacity(work, spine))
			*first = spine + 1;
		uint32_t from = view_spine(work, spine);
		const struct spine_view *view = &work->scratch.view[from];
		if (from == spine) {
			view_leaves(work, spine);
			sums.slow_members = max_u32(sums.slow_members, view->slow_members);
			sums.slow_nodes = max_u32(sums.slow_nodes, view->slow_nodes);
			sums.node_members = max_u32(sums.node_members, view->node_members);
		}
		sums.members += view->members;
		sums.nodes += view->nodes;
	}
	for (uint32_t item = fabric->leaf_count; item < work->items; item++) {
		uint32_t nodes, most;
		sums.members += place_cap(work, item, &nodes, &most);
		sums.nodes += nodes;
		sums.node_members = max_u32(sums.node_members, most);
	}
	return sums;
}

/* The shortest chain of adjacent spines whose best runs are enough; 0: none is. */
static uint32_t fewest_spines(const struct place_work *work)
{
	const struct fabric *fabric = work->fabric;
	uint64_t members = 0, nodes = 0; /* of the spines from `first` on */
	uint32_t best = 0, first = 0;
	for (uint32_t spine = 0; spine < fabric->spine_count; spine++) {
		const struct spine_view *view = view_of(work, spine);
		if (view->run_members == 0 || !spine_adjacent(fabric, spine)) {
			members = nodes = 0;
			first = spine + (view->run_members == 0);
		}
		members += view->run_members;
		nodes += view->run_members == 0 ? 0 : view->run_nodes;
		for (; first <= spine && enough(work, members, nodes); first++) {
			if (best == 0 || spine - first + 1 < best)
				best = spine - first + 1;
			members -= view_of(work, first)->run_members;
			nodes -= view_of(work, first)->run_nodes;
		}
	}
	return best;
}

/* Members that an NVLink domain could hold, of which the node at from is the first: all of it is in one leaf, whose caps
 * count, but a fabric file may put other nodes between. */
static uint32_t domain_cap(const struct place_work *work, uint32_t from)
{
	const struct fabric *fabric = work->fabric;
	uint32_t rooms[FROND_GPUS_MAX + 1] = {0}, nodes = 0;
	budget_charge(work->purse, (fabric->leaf_start[fabric->leaf_of[from] + 1] - from) / 8);
	for (uint32_t at = from; at < fabric->leaf_start[fabric->leaf_of[from] + 1]; at++) {
		if (fabric->domain_of[at] != fabric->domain_of[from])
			continue;
		uint32_t room = place_node_cap(work, at);
		rooms[room]++;
		nodes += room > 0;
	}
	return place_capped(work, rooms, true, &nodes);
}

/* Room of the domains of a leaf, without the leaf's caps, in member_list: of as many as have a place there. Returns the first
 * of them. */
static uint32_t domain_rooms(const struct place_work *work, uint32_t leaf)
{
	const struct fabric *fabric = work->fabric;
	uint32_t first = FROND_NONE, count = 0;
	for (uint32_t at = fabric->leaf_start[leaf]; at < fabric->leaf_start[leaf + 1]; at++) {
		uint32_t domain = fabric->domain_of[at];
		first = first == FROND_NONE ? domain : first;
		if (domain == FROND_NONE || domain - first >= FROND_MEMBERS_MAX)
			continue;
		for (; count <= domain - first; count++)
			work->member_list[count] = 0;
		work->member_list[domain - first] += place_node_cap(work, at);
	}
	return first;
}

bool place_domain_could(const struct place_work *work)
{
	const struct fabric *fabric = work->fabric;
	for (uint32_t leaf = 0; leaf < fabric->leaf_count && fabric->domain_count > 0; leaf++) {
		uint32_t first = domain_rooms(work, leaf), next = first; /* a lower one has been seen */
		for (uint32_t at = fabric->leaf_start[leaf]; first != FROND_NONE && at < fabric->leaf_start[leaf + 1];
		     at++) {
			uint32_t domain = fabric->domain_of[at];
			if (domain == FROND_NONE || domain < next)
				continue;
			next = domain + 1;
			if (domain - first < FROND_MEMBERS_MAX && work->member_list[domain - first] < work->gang.total)
				continue;
			if (work->purse->left == 0) {
				work->answer->cut = work->purse->spent = true;
				return false;
			}
			if (domain_cap(work, at) >= work->gang.total)
				return true;
		}
	}
	return false;
}

/* One of the first leaves holds the gang with a node to spare, and has a node on which no fewer fit than on any other: then
 * there is nothing to add up. */
static bool fits_a_first_leaf(struct place_work *work)
{
	const struct fabric *fabric = work->fabric;
	uint32_t most = fabric->gpus_most / work->gang.size, each = 0;
	bool spare = false;
	if (!work->scope.counted || place_counts_nodes(work) || work->ask->latency_sensitive ||
	    most >= work->gang.total || work->items > fabric->leaf_count)
		return false;
	for (uint32_t leaf = 0; leaf < min_u32(fabric->leaf_count, LEAVES_FIRST) && (!spare || each < most); leaf++) {
		uint32_t nodes, here;
		if (!place_cap_counted(work, leaf))
			return false;
		spare |= place_cap(work, leaf, &nodes, &here) >= work->gang.total && !needs_each_node(work, leaf);
		each = max_u32(each, here);
	}
	if (!spare || each < most)
		return false;
	work->answer->whole_nodes = most <= 1;
	work->answer->need_nodes = 2; /* or more */
	work->answer->need_leaves = 1;
	work->answer->plan.rule = FROND_RULE_SAME_LEAF;
	return true;
}

bool place_rule(struct place_work *work)
{
	struct answer *answer = work->answer;
	if (fits_a_first_leaf(work))
		return true;
	struct sums sums = add_up(work);
	answer->whole_nodes = sums.node_members <= 1;
	answer->ever = sums.members > sums.slow_members ? sums.members : sums.slow_members;
	if (answer->ever < work->gang.total)
		return false;
	answer->need_nodes = sums.node_members >= work->gang.total ? 1 : 2; /* one, or more */
	if (place_counts_nodes(work)) {
		uint64_t nodes = sums.slow_nodes;
		if (sums.members >= work->gang.total && sums.nodes > nodes)
			nodes = sums.nodes;
		answer->need_nodes = nodes < work->gang.total ? (uint32_t)nodes : work->gang.total;
	}
	if (answer->need_nodes == 1 && sums.node_members >= work->gang.total) {
		answer->plan.rule = FROND_RULE_SINGLE_NODE;
		return true;
	}
	if (work->ask->latency_sensitive && place_domain_could(work)) {
		answer->need_leaves = 1;
		answer->plan.rule = FROND_RULE_NVLINK_DOMAIN;
		return true;
	}
	if (work->ask->latency_sensitive && answer->cut)
		return false;
	bool spare = false;
	for (uint32_t spine = 0; spine < work->fabric->spine_count; spine++) {
		if (view_spine(work, spine) != spine)
			continue;
		view_runs(work, spine);
		uint32_t shortest = work->scratch.view[spine].shortest;
		if (shortest != 0 && (answer->need_leaves == 0 || shortest < answer->need_leaves))
			answer->need_leaves = shortest;
		spare |= work->scratch.view[spine].spare_leaf;
	}
	if (answer->need_leaves == 1)
		answer->plan.rule = spare ? FROND_RULE_SAME_LEAF : FROND_RULE_COMPLETE_LEAF;
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
