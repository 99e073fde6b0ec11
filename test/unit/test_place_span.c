/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of leaves and chains of spines: which are candidates, how many, and what is said when none will do. */
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

static uint32_t ask(uint32_t members, uint32_t gpus, const char *wishes)
{
	return plan(c, &(struct wanted){.name = "a", .members = members, .gpus = gpus, .wishes = wishes});
}

/* ---- caps ------------------------------------------------------------------------------------------------------- */

static void test_a_cap_of_one_gpu_per_leaf_counts_on_each_node_too(void)
{
	cluster("spine:1 leaf:3 node:1 gpu:8", "{\"topologyConstraints\": {\"maxGPUsPerLeaf\": 1}}");
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, ask(2, 1, ""), c->text);
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_ADJACENT_LEAVES, c->plan.rule);
	TEST_ASSERT_EQUAL_STRING("leaf-1:1 leaf-2:1", leaves(c));
	TEST_ASSERT_EQUAL_UINT32(FROND_NEVER, ask(4, 1, ""));
}

/* A node without a leaf is a leaf of its own, but no leaf to which a cap applies. */
static void test_a_cap_per_leaf_is_not_for_nodes_without_one(void)
{
	cluster("spine:1 leaf:1 node:1 gpu:8", "{\"topologyConstraints\": {\"maxGPUsPerLeaf\": 2}}");
	node_put(c, 1, "loose", 8, NULL, NULL);
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, ask(1, 8, ""), c->text);
	TEST_ASSERT_EQUAL_STRING("loose", spots(c));
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, ask(4, 2, ""), c->text);
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_SINGLE_NODE, c->plan.rule);
	TEST_ASSERT_EQUAL_STRING("loose loose loose loose", spots(c));
}

/* ---- positions -------------------------------------------------------------------------------------------------- */

/* Every node has room for one, and could hold two: 2 + 1 takes 1 2 3, and 1 + 2, which is looked at later, 1 3 4. */
static void test_a_later_candidate_with_higher_nodes_does_not_win(void)
{
	cluster("spine:1 leaf:2 node:2 gpu:8", "");
	for (uint32_t slot = 0; slot < c->count; slot++)
		occupy(c, c->nodes[slot].name, 0x1f);
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, ask(3, 3, "topology-mode=Ignore"), c->text);
	TEST_ASSERT_EQUAL_STRING("node-1 node-2 node-3", spots(c));
}

/* ---- distributed ------------------------------------------------------------------------------------------------ */

static void test_distributed_may_fill_nodes_of_sixteen(void)
{
	cluster("apiVersion: topology.scheduler/v1alpha1\n"
		"kind: Fabric\n"
		"defaults: {gpus: 16}\n"
		"spines: [{name: s, leaves: [{name: l, nodes: [a, b]}]}]\n",
		"");
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, ask(32, 1, "placement-strategy=distributed"), c->text);
	TEST_ASSERT_EQUAL_UINT32(2, c->plan.nodes);
}

/* Two nodes could take a member, so the gang spans two; the leaf of small ones counts for nothing. */
static void test_distributed_does_not_count_leaves_whose_nodes_are_too_small(void)
{
	cluster("apiVersion: topology.scheduler/v1alpha1\n"
		"kind: Fabric\n"
		"defaults: {gpus: 8}\n"
		"spines: [{name: s, leaves: [{name: l1, nodes: [a]}, {name: l2, nodes: [b, d]}]}]\n"
		"nodes: [{name: a, gpus: 2}]\n",
		"");
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, ask(3, 4, "placement-strategy=distributed"), c->text);
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_COMPLETE_LEAF, c->plan.rule);
	TEST_ASSERT_EQUAL_STRING("b b d", spots(c));
}

/* ---- how many candidates ---------------------------------------------------------------------------------------- */

/* 21 nodes over two spines of 20 leaves: i leaves in one and 21 - i in the other, in one run each, can lie in
 * (21 - i) · i ways, for i = 1 … 20 together 1,540. Three pairs of spines have 4,620, two have 3,080. */
static void test_candidates_of_spines_that_look_alike_are_counted_without_a_look(void)
{
	cluster("spine:3 leaf:20 node:1 gpu:8", "");
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, ask(21, 8, ""), c->text);
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_ADJACENT_SPINES, c->plan.rule);
	TEST_ASSERT_EQUAL_UINT32(0, c->plan.flags);
	cluster("spine:4 leaf:20 node:1 gpu:8", "");
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, ask(21, 8, ""), c->text);
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_BOUNDED, c->plan.flags);
	TEST_ASSERT_EQUAL_UINT32(2, c->plan.spines);
}

/* ---- leaves that look alike ------------------------------------------------------------------------------------- */

/* l1 and l3 have two free GPUs of eight each, l2 has all eight. l2 has better links than l1; l3 has the links of l2 and the
 * counts of l1, and breaks nothing up. */
static void test_a_leaf_that_looks_like_one_with_worse_links_is_compared_all_the_same(void)
{
	cluster("apiVersion: topology.scheduler/v1alpha1\n"
		"kind: Fabric\n"
		"defaults: {model: H100-SXM}\n"
		"spines: [{name: s, leaves: [{name: l1, nodes: [a]}, {name: l2, nodes: [b]}, {name: l3, nodes: "
		"[d]}]}]\n"
		"nodes: [{name: a, model: A100-SXM}]\n",
		"");
	occupy(c, "a", 0x3f);
	occupy(c, "d", 0x3f);
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, ask(1, 2, "placement-strategy=consolidated"), c->text);
	TEST_ASSERT_EQUAL_STRING("d", spots(c));
}

/* ---- the nearest place ------------------------------------------------------------------------------------------ */

/* leaf-2 and leaf-3 have most room, but lie under two spines. */
static void test_the_nearest_run_does_not_cross_spines(void)
{
	cluster("spine:2 leaf:2 node:2 gpu:8", "");
	occupy(c, "node-1", 0xff);
	occupy(c, "node-8", 0xff);
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, ask(4, 8, ""));
	TEST_ASSERT_EQUAL_STRING(
		"needs 4 nodes in 2 adjacent leaves; best run leaf-1..leaf-2 has 3 free (node-1 in use)", c->text);
}

/* Two nodes fit into one leaf, whose link they do not cross then, however slow. */
static void test_a_leaf_with_a_slow_link_is_the_nearest_when_the_gang_could_stay_inside(void)
{
	cluster("apiVersion: topology.scheduler/v1alpha1\n"
		"kind: Fabric\n"
		"defaults: {gpus: 8}\n"
		"spines:\n"
		"- {name: s, leaves: [{name: l1, nodes: [a1, a2]}, {name: l2, uplinkGbps: 100, nodes: [b1, b2]},"
		" {name: l3, nodes: [d1, d2]}]}\n",
		"");
	for (uint32_t slot = 0; slot < c->count; slot++)
		if (slot != slot_of(c, "b1"))
			occupy(c, c->nodes[slot].name, 0xff);
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, ask(2, 8, "network-bandwidth=200Gb"));
	TEST_ASSERT_EQUAL_STRING("needs 2 nodes in one complete leaf; best l2 has 1 free (b2 in use)", c->text);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_a_cap_of_one_gpu_per_leaf_counts_on_each_node_too);
	RUN_TEST(test_a_cap_per_leaf_is_not_for_nodes_without_one);
	RUN_TEST(test_a_later_candidate_with_higher_nodes_does_not_win);
	RUN_TEST(test_distributed_may_fill_nodes_of_sixteen);
	RUN_TEST(test_distributed_does_not_count_leaves_whose_nodes_are_too_small);
	RUN_TEST(test_candidates_of_spines_that_look_alike_are_counted_without_a_look);
	RUN_TEST(test_a_leaf_that_looks_like_one_with_worse_links_is_compared_all_the_same);
	RUN_TEST(test_the_nearest_run_does_not_cross_spines);
	RUN_TEST(test_a_leaf_with_a_slow_link_is_the_nearest_when_the_gang_could_stay_inside);
	return UNITY_END();
}
