/* SPDX-License-Identifier: Apache-2.0 */
#include "optimum.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define NEED_MAX   1024u
#define IMPOSSIBLE UINT16_MAX

/* ---- supply and cost -------------------------------------------------------------------------------------------- */

void supply_capacity(struct supply *supply, const struct topo *topo)
{
	*supply = (struct supply){.topo = topo};
	for (uint32_t leaf = 0; leaf < topo->leaves; leaf++)
		supply->room[leaf] = topo->leaf[leaf].nodes;
}

void supply_today(struct supply *supply, const struct topo *topo)
{
	*supply = (struct supply){.topo = topo};
	for (uint32_t i = 0; i < topo->nodes; i++)
		supply->room[topo->node[i].leaf] += !topo->node[i].used;
}

struct cost cost_of(const struct topo *topo, const uint32_t *nodes, uint32_t count)
{
	bool leaf_used[TOPO_LEAVES_MAX] = {false}, spine_used[TOPO_SPINES_MAX] = {false};
	for (uint32_t i = 0; i < count; i++) {
		uint32_t leaf = topo->node[nodes[i]].leaf;
		leaf_used[leaf] = spine_used[topo->leaf[leaf].spine] = true;
	}
	struct cost cost = {0};
	uint32_t spine_runs = 0;
	for (uint32_t leaf = 0; leaf < topo->leaves; leaf++) {
		bool joined = leaf > 0 && leaf_used[leaf - 1] && topo->leaf[leaf - 1].spine == topo->leaf[leaf].spine;
		cost.leaves += leaf_used[leaf];
		cost.runs += leaf_used[leaf] && !joined;
	}
	for (uint32_t spine = 0; spine < topo->spines; spine++) {
		cost.spines += spine_used[spine];
		spine_runs += spine_used[spine] && (spine == 0 || !spine_used[spine - 1]);
	}
	cost.spines_adjacent = spine_runs == 1;
	return cost;
}

/* ---- any placement ---------------------------------------------------------------------------------------------- */

static int larger_first(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	return (a < b) - (a > b);
}

/* The fewest leaves of these spines that hold the gang; 0: they cannot. */
static uint32_t fewest_leaves(const struct supply *today, uint32_t spines, uint32_t need)
{
	uint32_t rooms[TOPO_LEAVES_MAX], count = 0, nodes = 0;
	for (uint32_t leaf = 0; leaf < today->topo->leaves; leaf++)
		if (spines >> today->topo->leaf[leaf].spine & 1)
			rooms[count++] = today->room[leaf];
	qsort(rooms, count, sizeof rooms[0], larger_first);
	for (uint32_t i = 0; i < count; i++) {
		nodes += rooms[i];
		if (nodes >= need)
			return i + 1;
	}
	return 0;
}

/* runs[last one taken?][leaves taken][nodes so far, at most need] */
typedef uint16_t run_table[2][TOPO_LEAVES_MAX + 1][NEED_MAX + 1];

static void lower(uint16_t *to, uint16_t value)
{
	if (value < *to)
		*to = value;
}

static uint32_t fewest_runs(const struct supply *today, uint32_t spines, uint32_t need, uint32_t leaves)
{
	static run_table tables[2];
	run_table *from = &tables[0], *to = &tables[1];
	memset(from, 0xff, sizeof *from);
	(*from)[0][0][0] = 0;
	for (uint32_t leaf = 0; leaf < today->topo->leaves; leaf++) {
		uint32_t room = today->room[leaf], spine = today->topo->leaf[leaf].spine;
		bool may = room > 0 && (spines >> spine & 1) != 0;
		bool joined = leaf > 0 && today->topo->leaf[leaf - 1].spine == spine;
		memset(to, 0xff, sizeof *to);
		for (uint32_t taken = 0; taken <= leaves; taken++)
			for (uint32_t nodes = 0; nodes <= need; nodes++)
				for (uint32_t last = 0; last < 2; last++) {
					uint16_t runs = (*from)[last][taken][nodes];
					if (runs == IMPOSSIBLE)
						continue;
					lower(&(*to)[0][taken][nodes], runs);
					if (!may || taken == leaves)
						continue;
					uint32_t sum = nodes + room < need ? nodes + room : need;
					uint16_t more = (uint16_t)(runs + !(last == 1 && joined));
					lower(&(*to)[1][taken + 1][sum], more);
				}
		run_table *swap = from;
		from = to;
		to = swap;
	}
	uint16_t best = IMPOSSIBLE;
	lower(&best, (*from)[0][leaves][need]);
	lower(&best, (*from)[1][leaves][need]);
	return best;
}

bool optimum_any(const struct supply *today, uint32_t need, struct cost *out)
{
	assert(need > 0 && need <= NEED_MAX);
	uint32_t sets = 1u << today->topo->spines;
	struct cost best = {0};
	for (uint32_t size = 1; size <= today->topo->spines && best.leaves == 0; size++)
		for (uint32_t set = 1; set < sets; set++) {
			uint32_t leaves =
				(uint32_t)__builtin_popcount(set) == size ? fewest_leaves(today, set, need) : 0;
			if (leaves != 0 && (best.leaves == 0 || leaves < best.leaves))
				best = (struct cost){.spines = size, .leaves = leaves};
		}
	if (best.leaves == 0)
		return false;
	best.runs = IMPOSSIBLE;
	for (uint32_t set = 1; set < sets; set++) {
		if ((uint32_t)__builtin_popcount(set) != best.spines || fewest_leaves(today, set, need) != best.leaves)
			continue;
		uint32_t runs = fewest_runs(today, set, need, best.leaves);
		if (runs < best.runs)
			best.runs = runs;
	}
	*out = best;
	return true;
}

/* ---- the rule --------------------------------------------------------------------------------------------------- */

/* Most nodes in one run of exactly `length` leaves of the spine, each of which has a node to give; 0: no such run. */
static uint32_t most_in_run(const struct supply *supply, uint32_t spine, uint32_t length)
{
	const struct topo *topo = supply->topo;
	uint32_t most = 0;
	for (uint32_t first = 0; first + length <= topo->leaves; first++) {
		uint32_t nodes = 0, leaf = first;
		while (leaf < first + length && topo->leaf[leaf].spine == spine && supply->room[leaf] > 0)
			nodes += supply->room[leaf++];
		if (leaf == first + length && nodes > most)
			most = nodes;
	}
	return most;
}

/* The shortest run under one spine that holds the gang; 0: none. */
static uint32_t shortest_run(const struct supply *supply, uint32_t need)
{
	for (uint32_t length = 1; length <= supply->topo->leaves; length++)
		for (uint32_t spine = 0; spine < supply->topo->spines; spine++)
			if (most_in_run(supply, spine, length) >= need)
				return length;
	return 0;
}

/* The fewest leaves in one run for each of the spines first … first + count - 1 that hold the gang; 0: they cannot. */
static uint32_t shortest_runs(const struct supply *supply, uint32_t first, uint32_t count, uint32_t need)
{
	uint32_t leaves = supply->topo->leaves;
	uint32_t most[TOPO_LEAVES_MAX + 1] = {0}; /* by leaves taken so far; 0: not possible, but for the start */
	for (uint32_t spine = first; spine < first + count; spine++) {
		uint32_t next[TOPO_LEAVES_MAX + 1] = {0};
		for (uint32_t length = 1; length <= leaves; length++) {
			uint32_t run = most_in_run(supply, spine, length);
			for (uint32_t before = 0; run > 0 && before + length <= leaves; before++) {
				bool possible = spine == first ? before == 0 : most[before] > 0;
				if (possible && most[before] + run > next[before + length])
					next[before + length] = most[before] + run;
			}
		}
		memcpy(most, next, sizeof most);
	}
	for (uint32_t taken = 1; taken <= leaves; taken++)
		if (most[taken] >= need)
			return taken;
	return 0;
}

static bool complete_leaf(const struct supply *capacity, uint32_t need)
{
	for (uint32_t leaf = 0; leaf < capacity->topo->leaves; leaf++)
		if (capacity->room[leaf] > need)
			return false;
	return true;
}

bool topo_rule(const struct supply *capacity, uint32_t need, struct rule *out)
{
	*out = (struct rule){.kind = FROND_RULE_ADJACENT_LEAVES, .leaves = shortest_run(capacity, need)};
	if (out->leaves == 1)
		out->kind = complete_leaf(capacity, need) ? FROND_RULE_COMPLETE_LEAF : FROND_RULE_SAME_LEAF;
	if (out->leaves > 0)
		return true;
	out->kind = FROND_RULE_ADJACENT_SPINES;
	for (uint32_t count = 1; count <= capacity->topo->spines; count++)
		for (uint32_t first = 0; first + count <= capacity->topo->spines; first++)
			if (shortest_runs(capacity, first, count, need) > 0) {
				out->spines = count;
				return true;
			}
	return false;
}

bool rule_allows(const struct rule *rule, const struct cost *cost)
{
	if (rule->kind == FROND_RULE_ADJACENT_SPINES)
		return cost->spines <= rule->spines && cost->spines_adjacent && cost->runs == cost->spines;
	return cost->spines == 1 && cost->runs == 1 && cost->leaves <= rule->leaves;
}

bool optimum_rule(const struct supply *today, const struct rule *rule, uint32_t need, struct cost *out)
{
	*out = (struct cost){.spines_adjacent = true};
	if (rule->kind != FROND_RULE_ADJACENT_SPINES) {
		out->spines = out->runs = 1;
		out->leaves = shortest_run(today, need);
		return out->leaves > 0 && out->leaves <= rule->leaves;
	}
	out->spines = out->runs = rule->spines;
	for (uint32_t first = 0; first + rule->spines <= today->topo->spines; first++) {
		uint32_t leaves = shortest_runs(today, first, rule->spines, need);
		if (leaves > 0 && (out->leaves == 0 || leaves < out->leaves))
			out->leaves = leaves;
	}
	return out->leaves > 0;
}
