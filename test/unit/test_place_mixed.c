/* SPDX-License-Identifier: Apache-2.0 */
/* Members of several sizes: whether they fit, exactly, and which span is the best from step 3 of reference 3.4 on. */
#include "cluster.h"

static struct cluster *c;

void setUp(void)
{
	c = NULL;
}

void tearDown(void)
{
	cluster_free(c);
}

static void cluster(const char *fabric, const char *args)
{
	cluster_free(c);
	c = cluster_make(fabric, args);
}

#define FABRIC                                                                                                         \
	"apiVersion: topology.scheduler/v1alpha1\n"                                                                    \
	"kind: Fabric\n"                                                                                               \
	"defaults: {gpus: 8}\n"

static void expect(const uint32_t *sizes, uint32_t members, const char *wishes, uint32_t rule, const char *nodes)
{
	const struct wanted want = {.name = "a", .members = members, .sizes = sizes, .wishes = wishes};
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, plan(c, &want), c->text);
	TEST_ASSERT_EQUAL_UINT32(rule, c->plan.rule);
	TEST_ASSERT_EQUAL_STRING(nodes, spots(c));
}

/* ---- step 7 ----------------------------------------------------------------------------------------------------- */

/* Two runs of three leaves: 1 2 3 and 2 3 4. The small one has the lowest rank and comes last, on node-3 or node-4: it is
 * the lists of nodes that are compared, and 1 is lower than 2. */
static void test_lists_of_nodes_decide_and_not_the_node_of_the_lowest_rank(void)
{
	static const uint32_t sizes[] = {4, 8, 8};
	cluster("spine:1 leaf:4 node:1 gpu:8", "");
	expect(sizes, 3, "", FROND_RULE_ADJACENT_LEAVES, "node-3 node-1 node-2");
}

/* Distributed, anywhere: b1 b2 d1 d2 is found first, inside one spine; a1 a2 b1 b2 only when both spines are looked at.
 * One member a node, two a leaf, one leaf full and one with 12 of 16 in both: the lower nodes win. */
static void test_a_span_that_is_found_later_wins_when_its_nodes_are_lower(void)
{
	static const uint32_t falling[] = {8, 8, 8, 4}, rising[] = {4, 8, 8, 8};
	cluster(FABRIC "spines:\n"
		       "- {name: s0, leaves: [{name: l0, nodes: [full]}]}\n"
		       "- {name: s1, leaves: [{name: l1, nodes: [a1, a2]}]}\n"
		       "- {name: s2, leaves: [{name: l2, nodes: [b1, b2]}, {name: l3, nodes: [d1, d2]}]}\n",
		"");
	occupy(c, "full", 0xff);
	expect(falling, 4, "placement-strategy=distributed topology-mode=Ignore", FROND_RULE_NONE, "a1 a2 b1 b2");
	expect(rising, 4, "placement-strategy=distributed topology-mode=Ignore", FROND_RULE_NONE, "b2 a1 a2 b1");
}

/* ---- the rule --------------------------------------------------------------------------------------------------- */

/* One per member, fewer if the cluster has fewer: the only node, or the only one that is fast enough. */
static void test_distributed_over_the_only_node_is_a_single_node(void)
{
	static const uint32_t sizes[] = {4, 2, 2};
	cluster("spine:1 leaf:1 node:1 gpu:8", "");
	expect(sizes, 3, "placement-strategy=distributed", FROND_RULE_SINGLE_NODE, "node-1 node-1 node-1");
	cluster(FABRIC "spines: [{name: s, leaves: [{name: l, nodes: [a, b]}]}]\n"
		       "nodes: [{name: a, uplinkGbps: 100}]\n",
		"");
	expect(sizes, 3, "placement-strategy=distributed network-bandwidth=200Gb", FROND_RULE_SINGLE_NODE, "b b b");
	expect(sizes, 3, "placement-strategy=distributed", FROND_RULE_COMPLETE_LEAF, "a a b"); /* two on the first */
}

/* A node without a leaf is no leaf to which a cap applies. */
static void test_a_cap_per_leaf_is_not_for_nodes_without_one(void)
{
	static const uint32_t sizes[] = {4, 2};
	cluster("spine:1 leaf:1 node:1 gpu:8", "{\"topologyConstraints\": {\"maxGPUsPerLeaf\": 2}}");
	node_put(c, 1, "loose", 8, NULL, NULL);
	expect(sizes, 2, "", FROND_RULE_SINGLE_NODE, "loose loose");
	expect(sizes, 2, "topology-mode=Ignore", FROND_RULE_NONE, "loose loose"); /* first fit would use two */
}

/* ---- where first fit fails --------------------------------------------------------------------------------------- */

/* First fit begins with 4 and 3 on one node and strands a GPU; 4 + 2 + 2 and 3 + 3 + 2 fit. */
static void test_two_full_nodes_hold_what_first_fit_does_not(void)
{
	static const uint32_t sizes[] = {4, 3, 3, 2, 2, 2};
	cluster("spine:1 leaf:1 node:2 gpu:8", "");
	expect(sizes, 6, "topology-mode=Ignore", FROND_RULE_NONE, "node-1 node-2 node-2 node-1 node-1 node-2");
	TEST_ASSERT_EQUAL_UINT32(0, c->plan.flags);
	expect(sizes, 6, "", FROND_RULE_COMPLETE_LEAF, "node-1 node-2 node-2 node-1 node-1 node-2");
	expect(sizes, 6, "placement-strategy=distributed", FROND_RULE_COMPLETE_LEAF,
	       "node-1 node-2 node-2 node-1 node-1 node-2");
}

/* 15 GPUs for 16; three of five on two nodes; and what every bound allows and no packing does. */
static void test_never_is_said_when_it_is_proven(void)
{
	static const uint32_t sizes[] = {4, 3, 3, 2, 2, 2}, fives[] = {5, 5, 5, 1}, tight[] = {5, 5, 2, 2, 2};
	const struct wanted sum = {.name = "a", .members = 6, .sizes = sizes, .wishes = "topology-mode=Ignore"};
	const struct wanted large = {.name = "b", .members = 4, .sizes = fives, .wishes = "topology-mode=Ignore"};
	const struct wanted packed = {.name = "c", .members = 5, .sizes = tight, .wishes = "topology-mode=Ignore"};
	cluster(FABRIC "spines: [{name: s, leaves: [{name: l, nodes: [a, b]}]}]\n"
		       "nodes: [{name: b, gpus: 7}]\n",
		"");
	TEST_ASSERT_EQUAL_UINT32(FROND_NEVER, plan(c, &sum));
	TEST_ASSERT_EQUAL_UINT32(FROND_NEVER, plan(c, &large));
	cluster("spine:1 leaf:1 node:2 gpu:8", "");
	TEST_ASSERT_EQUAL_UINT32(FROND_NEVER, plan(c, &packed));
	TEST_ASSERT_EQUAL_UINT32(0, c->plan.flags);
}

/* Today a node less: the gang waits, and that, too, is a proof. */
static void test_a_gang_waits_where_no_packing_fits_today(void)
{
	static const uint32_t sizes[] = {4, 3, 3, 2, 2, 2};
	const struct wanted want = {.name = "a", .members = 6, .sizes = sizes, .wishes = ""};
	cluster("spine:1 leaf:1 node:2 gpu:8", "");
	occupy(c, "node-2", 0x01);
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, plan(c, &want));
}

/* Fewest nodes: 5 + 3, 5 + 3 and 4 + 4; first fit puts 4 beside nothing. */
static void test_consolidated_uses_the_fewest_nodes(void)
{
	static const uint32_t sizes[] = {5, 5, 4, 4, 3, 3};
	cluster("spine:1 leaf:1 node:6 gpu:8", "");
	expect(sizes, 6, "placement-strategy=consolidated", FROND_RULE_SAME_LEAF,
	       "node-1 node-2 node-3 node-3 node-1 node-2");
	static const uint32_t apart[] = {4, 3, 3, 2, 2, 2};
	expect(apart, 6, "placement-strategy=consolidated", FROND_RULE_SAME_LEAF,
	       "node-1 node-2 node-2 node-1 node-1 node-2");
	TEST_ASSERT_EQUAL_UINT32(2, c->plan.nodes);
}

/* Two spines with a leaf in between that is full: relaxed, one spine that packs tightly comes before two. */
static void test_relaxed_takes_the_one_spine_that_holds_it(void)
{
	static const uint32_t sizes[] = {4, 3, 3, 2, 2, 2};
	cluster(FABRIC
		"spines:\n"
		"- {name: s0, leaves: [{name: l0, nodes: [a]}]}\n"
		"- {name: s1, leaves: [{name: l1, nodes: [b]}, {name: l2, nodes: [full]}, {name: l3, nodes: [d]}]}\n",
		"");
	occupy(c, "full", 0xff);
	expect(sizes, 6, "topology-mode=Preferred", FROND_RULE_ADJACENT_LEAVES, "b d d b b d");
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_RELAXED, c->plan.flags);
}

/* ---- how many candidates ---------------------------------------------------------------------------------------- */

/* A run from each leaf but the last, and everything together once more; longer runs give the same placement. Of wholly
 * free leaves that are alike the first run wins by position: the others are not looked at. */
static void test_one_span_is_compared_for_each_leaf(void)
{
	static const uint32_t sizes[] = {7, 4};
	char name[16];
	cluster("spine:1 leaf:91 node:1 gpu:8", "");
	expect(sizes, 2, "topology-mode=Ignore", FROND_RULE_NONE, "node-1 node-2");
	TEST_ASSERT_EQUAL_UINT32(0, c->plan.flags);
	TEST_ASSERT_EQUAL_UINT64(2, stats(c).steps);
	for (uint32_t i = 1; i <= 91; i++) {
		snprintf(name, sizeof name, "node-%u", (unsigned)i);
		occupy(c, name, 1);
	}
	expect(sizes, 2, "topology-mode=Ignore", FROND_RULE_NONE, "node-1 node-2");
	TEST_ASSERT_EQUAL_UINT32(0, c->plan.flags);
	TEST_ASSERT_EQUAL_UINT64(2 + 91, stats(c).steps);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_lists_of_nodes_decide_and_not_the_node_of_the_lowest_rank);
	RUN_TEST(test_a_span_that_is_found_later_wins_when_its_nodes_are_lower);
	RUN_TEST(test_distributed_over_the_only_node_is_a_single_node);
	RUN_TEST(test_a_cap_per_leaf_is_not_for_nodes_without_one);
	RUN_TEST(test_two_full_nodes_hold_what_first_fit_does_not);
	RUN_TEST(test_never_is_said_when_it_is_proven);
	RUN_TEST(test_a_gang_waits_where_no_packing_fits_today);
	RUN_TEST(test_consolidated_uses_the_fewest_nodes);
	RUN_TEST(test_relaxed_takes_the_one_spine_that_holds_it);
	RUN_TEST(test_one_span_is_compared_for_each_leaf);
	return UNITY_END();
}
