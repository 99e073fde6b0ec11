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

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_a_cap_of_one_gpu_per_leaf_counts_on_each_node_too);
	RUN_TEST(test_candidates_of_spines_that_look_alike_are_counted_without_a_look);
	RUN_TEST(test_the_nearest_run_does_not_cross_spines);
	return UNITY_END();
}
