/* SPDX-License-Identifier: Apache-2.0 */
/* span.c against what reference 3.3 says of nodes, leaves and spines, spelled out on small random fabrics. */
#include "core/span.h"
#include "dice.h"

#include <stdio.h>
#include <unity.h>

enum { NODES = 40, LEAVES = 12, SPINES = 4, FLOOR = 200, ROUNDS = 3000 };

static struct fabric fabric;
static uint32_t leaf_of[NODES], domain_of[NODES], leaf_start[LEAVES + 1], leaf_spine[LEAVES], leaf_uplink[LEAVES];
static uint32_t spine_start[SPINES + 1], spine_core[SPINES];

void setUp(void)
{
	fabric = (struct fabric){.leaf_of = leaf_of,
				 .domain_of = domain_of,
				 .leaf_start = leaf_start,
				 .leaf_spine = leaf_spine,
				 .leaf_uplink = leaf_uplink,
				 .spine_start = spine_start,
				 .spine_core = spine_core};
}

void tearDown(void)
{
}

static void add_nodes(uint32_t count, uint32_t leaf, bool domains)
{
	bool open = false; /* the node before is in a domain, whose nodes stand together */
	for (uint32_t i = 0; i < count && fabric.node_count < NODES; i++) {
		uint32_t at = fabric.node_count++;
		leaf_of[at] = leaf;
		domain_of[at] = FROND_NONE;
		bool linked = domains && !percent(25);
		fabric.domain_count += linked && (!open || percent(40));
		if (linked)
			domain_of[at] = fabric.domain_count - 1;
		open = linked;
	}
}

/* Leaves without nodes, spines without leaves, spines of two cores, slow links, NVLink domains, nodes without a leaf. */
static void roll_fabric(void)
{
	static const uint32_t speeds[] = {0, 0, 0, FLOOR, FLOOR - 1};
	setUp();
	leaf_start[0] = spine_start[0] = 0;
	fabric.spine_count = below(SPINES) + 1;
	for (uint32_t spine = 0; spine < fabric.spine_count; spine++) {
		spine_core[spine] = spine > 0 ? spine_core[spine - 1] + percent(25) : 0;
		for (uint32_t left = below(LEAVES / SPINES + 1); left > 0; left--) {
			uint32_t leaf = fabric.leaf_count++;
			leaf_spine[leaf] = spine;
			leaf_uplink[leaf] = speeds[below(5)];
			add_nodes(below(4), leaf, true);
			leaf_start[leaf + 1] = fabric.node_count;
		}
		spine_start[spine + 1] = fabric.leaf_count;
	}
	add_nodes(below(3), FROND_NONE, false);
}

static struct rule roll_rule(void)
{
	static const uint32_t names[] = {
		FROND_RULE_NONE,          FROND_RULE_SINGLE_NODE,     FROND_RULE_NVLINK_DOMAIN,  FROND_RULE_SAME_LEAF,
		FROND_RULE_COMPLETE_LEAF, FROND_RULE_ADJACENT_LEAVES, FROND_RULE_ADJACENT_SPINES};
	struct rule rule = {.name = names[below(7)], .bandwidth_gbps = percent(50) ? FLOOR : 0};
	if (rule.name == FROND_RULE_SAME_LEAF || rule.name == FROND_RULE_COMPLETE_LEAF)
		rule.need_leaves = 1;
	else if (rule.name == FROND_RULE_ADJACENT_LEAVES)
		rule.need_leaves = below(3) + 2;
	else if (rule.name == FROND_RULE_ADJACENT_SPINES)
		rule.need_spines = below(3) + 1;
	return rule;
}

/* ---- naive: sets as flags ---------------------------------------------------------------------------------------------- */

struct flags {
	bool node[NODES], leaf[LEAVES], spine[SPINES], domain[NODES];
	uint32_t nodes, leaves, spines, domains, loose, unlinked;
};

static uint32_t raise(bool *flag)
{
	uint32_t is_new = !*flag;
	*flag = true;
	return is_new;
}

static struct flags flags_of(const uint32_t *positions, uint32_t count)
{
	struct flags flags = {.nodes = 0};
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = positions[i], leaf = leaf_of[at];
		if (raise(&flags.node[at]) == 0)
			continue;
		flags.nodes++;
		if (domain_of[at] == FROND_NONE)
			flags.unlinked++;
		else
			flags.domains += raise(&flags.domain[domain_of[at]]);
		if (leaf == FROND_NONE) {
			flags.loose++;
			continue;
		}
		flags.leaves += raise(&flags.leaf[leaf]);
		flags.spines += raise(&flags.spine[leaf_spine[leaf]]);
	}
	return flags;
}

/* Every leaf of a spine between two that are used is used. */
static bool one_run_each(const struct flags *flags)
{
	for (uint32_t a = 0; a < fabric.leaf_count; a++)
		for (uint32_t b = a; b < fabric.leaf_count; b++)
			for (uint32_t between = a; between <= b; between++)
				if (flags->leaf[a] && flags->leaf[b] && leaf_spine[a] == leaf_spine[b] &&
				    !flags->leaf[between])
					return false;
	return true;
}

/* Spines between two that are used are used, and all are of one core. */
static bool one_chain(const struct flags *flags)
{
	for (uint32_t a = 0; a < fabric.spine_count; a++)
		for (uint32_t b = a; b < fabric.spine_count; b++)
			for (uint32_t between = a; between <= b; between++)
				if (flags->spine[a] && flags->spine[b] &&
				    (!flags->spine[between] || spine_core[a] != spine_core[b]))
					return false;
	return true;
}

static bool naive_met(const struct rule *rule, const uint32_t *positions, uint32_t count)
{
	struct flags flags = flags_of(positions, count);
	for (uint32_t leaf = 0; leaf < fabric.leaf_count; leaf++)
		if (flags.leaf[leaf] && flags.leaves + flags.loose > 1 && leaf_uplink[leaf] != 0 &&
		    leaf_uplink[leaf] < rule->bandwidth_gbps)
			return false;
	bool in_leaves = flags.loose == 0;
	switch (rule->name) {
	case FROND_RULE_NONE:
		return true;
	case FROND_RULE_SINGLE_NODE:
		return flags.nodes == 1;
	case FROND_RULE_NVLINK_DOMAIN:
		return flags.domains == 1 && flags.unlinked == 0;
	case FROND_RULE_ADJACENT_LEAVES:
		return in_leaves && flags.spines == 1 && flags.leaves <= rule->need_leaves && one_run_each(&flags);
	case FROND_RULE_ADJACENT_SPINES:
		return in_leaves && flags.spines <= rule->need_spines && one_run_each(&flags) && one_chain(&flags);
	default:
		return in_leaves && flags.leaves == 1;
	}
}

/* ---- tests ---------------------------------------------------------------------------------------------------------------- */

/* Nodes that are likely to lie together. */
static uint32_t roll_positions(uint32_t *positions)
{
	uint32_t count = below(6) + 1, first = below(fabric.node_count), width = below(fabric.node_count - first) + 1;
	for (uint32_t i = 0; i < count; i++)
		positions[i] = first + below(width);
	return count;
}

static bool inside_one_span(const struct rule *rule, const uint32_t *positions, uint32_t count)
{
	for (struct spans spans = spans_of(&fabric, rule, true); spans_next(&spans);) {
		uint32_t inside = 0;
		for (uint32_t i = 0; i < count; i++)
			inside += span_has(&fabric, &spans.span, positions[i]);
		if (inside == count)
			return true;
	}
	return false;
}

static void test_a_rule_is_met_as_the_spec_says_and_what_meets_it_lies_in_a_span(void)
{
	uint32_t met = 0;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint32_t positions[8];
		char where[32];
		snprintf(where, sizeof where, "round %u", (unsigned)round);
		dice = round;
		roll_fabric();
		for (uint32_t i = 0; i < 20 && fabric.node_count > 0; i++) {
			struct rule rule = roll_rule();
			uint32_t count = roll_positions(positions);
			bool expected = naive_met(&rule, positions, count);
			TEST_ASSERT_EQUAL_MESSAGE(expected, positions_meet(&fabric, positions, count, &rule), where);
			bool inside = inside_one_span(&rule, positions, count);
			TEST_ASSERT_TRUE_MESSAGE(!expected || inside, where);
			met += expected && rule.name != FROND_RULE_NONE;
		}
	}
	TEST_ASSERT_GREATER_THAN_UINT32(ROUNDS, met);
}

static void test_what_is_used_is_counted_once(void)
{
	for (uint32_t round = 0; round < ROUNDS; round++) {
		dice = round;
		roll_fabric();
		if (fabric.node_count == 0)
			continue;
		uint32_t positions[8], count = roll_positions(positions), on_node[NODES] = {0}, in_leaf[LEAVES] = {0};
		uint32_t fullest_node = 0, fullest_leaf = 0;
		struct rule none = {.name = FROND_RULE_NONE};
		TEST_ASSERT_TRUE(positions_meet(&fabric, positions, count, &none)); /* sorts */
		struct use use = use_none();
		for (uint32_t i = 0; i < count; i++) {
			uint32_t at = positions[i], leaf = leaf_of[at];
			use_add(&use, &fabric, at, FLOOR);
			fullest_node = max_u32(fullest_node, ++on_node[at]);
			fullest_leaf = max_u32(fullest_leaf, leaf == FROND_NONE ? on_node[at] : ++in_leaf[leaf]);
		}
		struct flags flags = flags_of(positions, count);
		TEST_ASSERT_EQUAL_UINT32(flags.nodes, use.extent.nodes);
		TEST_ASSERT_EQUAL_UINT32(flags.leaves + flags.loose, use.extent.leaves);
		TEST_ASSERT_EQUAL_UINT32(flags.spines + flags.loose, use.extent.spines);
		TEST_ASSERT_EQUAL_UINT32(flags.loose, use.loose);
		TEST_ASSERT_EQUAL_UINT32(flags.domains + flags.unlinked, use.domains);
		TEST_ASSERT_EQUAL_UINT32(flags.unlinked, use.unlinked);
		TEST_ASSERT_EQUAL_UINT32(fullest_node, use.extent.fullest_node);
		TEST_ASSERT_EQUAL_UINT32(fullest_leaf, use.extent.fullest_leaf);
		uint32_t starts = flags.loose; /* of runs: a leaf before which its spine has none that is used */
		for (uint32_t leaf = 0; leaf < fabric.leaf_count; leaf++)
			starts += flags.leaf[leaf] &&
				  (leaf == 0 || !flags.leaf[leaf - 1] || leaf_spine[leaf - 1] != leaf_spine[leaf]);
		TEST_ASSERT_EQUAL_UINT32(starts, use.extent.runs);
	}
}

static bool span_allowed(const struct rule *rule, const uint32_t *positions, uint32_t count)
{
	struct flags flags = flags_of(positions, count);
	if (rule->name == FROND_RULE_ADJACENT_SPINES)
		return flags.spines <= rule->need_spines && flags.loose == 0;
	if (rule->need_leaves > 0)
		return flags.leaves <= rule->need_leaves && flags.spines == 1;
	return rule->name == FROND_RULE_NONE ? count == fabric.node_count : naive_met(rule, positions, count);
}

/* All positions of a span are of one node, domain, run or chain of the rule's length, in order, each span once. */
static void test_spans_are_as_long_as_the_rule_says_and_come_in_order(void)
{
	for (uint32_t round = 0; round < ROUNDS; round++) {
		dice = round;
		roll_fabric();
		struct rule rule = roll_rule();
		bool spreads = percent(50);
		uint32_t before = FROND_NONE;
		for (struct spans spans = spans_of(&fabric, &rule, spreads); spans_next(&spans);) {
			struct span span = spans.span;
			uint32_t positions[NODES], count = 0;
			TEST_ASSERT_TRUE(span.first < span.end && span.end <= fabric.node_count);
			for (uint32_t at = span.first; at < span.end; at++)
				if (span_has(&fabric, &span, at))
					positions[count++] = at;
			uint32_t order = span.nvlink != FROND_NONE ? positions[0] : span.first;
			TEST_ASSERT_TRUE(count > 0 && (before == FROND_NONE || order >= before));
			before = order;
			TEST_ASSERT_TRUE(span_allowed(&rule, positions, count));
		}
	}
}

static void test_a_fabric_without_nodes_has_no_span(void)
{
	setUp();
	leaf_start[0] = spine_start[0] = 0;
	for (uint32_t name = FROND_RULE_NONE; name <= FROND_RULE_ADJACENT_SPINES; name++) {
		struct rule rule = {.name = name, .need_leaves = 1, .need_spines = 1};
		struct spans spans = spans_of(&fabric, &rule, true);
		TEST_ASSERT_FALSE(spans_next(&spans));
	}
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_a_rule_is_met_as_the_spec_says_and_what_meets_it_lies_in_a_span);
	RUN_TEST(test_what_is_used_is_counted_once);
	RUN_TEST(test_spans_are_as_long_as_the_rule_says_and_come_in_order);
	RUN_TEST(test_a_fabric_without_nodes_has_no_span);
	return UNITY_END();
}
