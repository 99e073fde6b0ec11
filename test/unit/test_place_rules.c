/* SPDX-License-Identifier: Apache-2.0 */
/* Reference 3.3: which rule a gang must meet, and that today's nodes meet it or the gang waits. */
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

static void cluster(const char *fabric)
{
	cluster_free(c);
	c = cluster_make(fabric, "");
}

static void expect(uint32_t members, uint32_t gpus, const char *wishes, uint32_t rule, const char *where)
{
	uint32_t outcome = plan(c, &(struct wanted){.name = "a", .members = members, .gpus = gpus, .wishes = wishes});
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, outcome, c->text);
	TEST_ASSERT_EQUAL_UINT32(rule, c->plan.rule);
	TEST_ASSERT_EQUAL_UINT32(0, c->plan.flags);
	TEST_ASSERT_EQUAL_STRING(where, leaves(c));
}

static void expect_waits(uint32_t members, uint32_t gpus, uint32_t rule)
{
	uint32_t outcome = plan(c, &(struct wanted){.name = "a", .members = members, .gpus = gpus});
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_WAITS, outcome, c->text);
	TEST_ASSERT_EQUAL_UINT32(rule, c->plan.rule);
}

static void expect_never(uint32_t members, uint32_t gpus, const char *wishes)
{
	uint32_t outcome = plan(c, &(struct wanted){.name = "a", .members = members, .gpus = gpus, .wishes = wishes});
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_NEVER, outcome, c->text);
	TEST_ASSERT_EQUAL_INT(0, strncmp(c->text, "never fits: ", 12));
}

/* ---- leaves of four whole nodes, as the seeds ask --------------------------------------------------------------- */

static void test_whole_nodes_in_leaves_of_four_have_the_rules_of_the_seeds(void)
{
	cluster("spine:2 leaf:4 node:4 gpu:8");
	expect(1, 8, "", FROND_RULE_SINGLE_NODE, "leaf-1:1");
	expect(2, 8, "", FROND_RULE_SAME_LEAF, "leaf-1:2");
	expect(3, 8, "", FROND_RULE_SAME_LEAF, "leaf-1:3");
	expect(4, 8, "", FROND_RULE_COMPLETE_LEAF, "leaf-1:4");
	expect(5, 8, "", FROND_RULE_ADJACENT_LEAVES, "leaf-1:4 leaf-2:1");
	expect(8, 8, "", FROND_RULE_ADJACENT_LEAVES, "leaf-1:4 leaf-2:4");
	expect(9, 8, "", FROND_RULE_ADJACENT_LEAVES, "leaf-1:4 leaf-2:4 leaf-3:1");
	expect(16, 8, "", FROND_RULE_ADJACENT_LEAVES, "leaf-1:4 leaf-2:4 leaf-3:4 leaf-4:4");
	TEST_ASSERT_EQUAL_UINT32(16, c->plan.nodes);
	TEST_ASSERT_EQUAL_UINT32(4, c->plan.leaves);
	TEST_ASSERT_EQUAL_UINT32(1, c->plan.runs);
	TEST_ASSERT_EQUAL_UINT32(1, c->plan.spines);
}

static void test_beyond_a_spine_adjacent_spines_and_beyond_the_cluster_never(void)
{
	cluster("spine:2 leaf:4 node:4 gpu:8");
	expect(17, 8, "", FROND_RULE_ADJACENT_SPINES, "leaf-1:4 leaf-2:4 leaf-3:4 leaf-4:4 leaf-5:1");
	TEST_ASSERT_EQUAL_UINT32(2, c->plan.spines);
	TEST_ASSERT_EQUAL_UINT32(2, c->plan.runs);
	expect(32, 8, "", FROND_RULE_ADJACENT_SPINES,
	       "leaf-1:4 leaf-2:4 leaf-3:4 leaf-4:4 leaf-5:4 leaf-6:4 leaf-7:4 leaf-8:4");
	expect_never(33, 8, "");
	TEST_ASSERT_EQUAL_STRING("never fits: needs 33 nodes; the cluster could hold 32 of them at best", c->text);
}

static void test_small_members_are_counted_as_the_node_holds_them(void)
{
	cluster("spine:2 leaf:4 node:4 gpu:8");
	expect(8, 1, "", FROND_RULE_SINGLE_NODE, "leaf-1:8");
	TEST_ASSERT_EQUAL_STRING("node-1 node-1 node-1 node-1 node-1 node-1 node-1 node-1", spots(c));
	expect(9, 1, "", FROND_RULE_SAME_LEAF, "leaf-1:9");
	expect(8, 4, "", FROND_RULE_COMPLETE_LEAF, "leaf-1:8");
	expect(9, 4, "", FROND_RULE_ADJACENT_LEAVES, "leaf-1:8 leaf-2:1");
	expect(4, 3, "", FROND_RULE_SAME_LEAF, "leaf-1:4"); /* two of three fit on a node */
	expect(4, 5, "", FROND_RULE_COMPLETE_LEAF, "leaf-1:4");
}

static void test_a_member_larger_than_any_node_never_fits(void)
{
	cluster("spine:1 leaf:1 node:2 gpu:4");
	expect_never(1, 5, "");
	expect_never(2, 16, "");
	expect_never(3, 4, "topology-mode=Ignore");
	expect(2, 4, "", FROND_RULE_COMPLETE_LEAF, "leaf-1:2");
}

static void test_neighbours_in_rank_are_neighbours_in_the_fabric(void)
{
	cluster("spine:1 leaf:2 node:2 gpu:8");
	expect(8, 4, "", FROND_RULE_ADJACENT_LEAVES, "leaf-1:4 leaf-2:4");
	TEST_ASSERT_EQUAL_STRING("node-1 node-1 node-2 node-2 node-3 node-3 node-4 node-4", spots(c));
	TEST_ASSERT_EQUAL_HEX32(0x0f, c->places[0].gpu_mask);
	TEST_ASSERT_EQUAL_HEX32(0xf0, c->places[1].gpu_mask);
}

/* ---- the rule does not change with the weather ------------------------------------------------------------------ */

static void test_use_cordons_health_and_failures_never_change_the_rule(void)
{
	cluster("spine:1 leaf:2 node:4 gpu:8");
	cordon(c, "node-1");
	node_flags(c, "node-5", FROND_NODE_DOWN);
	expect_waits(4, 8, FROND_RULE_COMPLETE_LEAF);
	expect(3, 8, "", FROND_RULE_SAME_LEAF, "leaf-1:3");
	cordon(c, "node-2");
	unhealthy(c, "node-6", 0x10);
	expect_waits(3, 8, FROND_RULE_SAME_LEAF);
	node_flags(c, "node-1", 0);
	expect(3, 8, "", FROND_RULE_SAME_LEAF, "leaf-1:3");
	occupy_by_count(c, "node-3", 1); /* one GPU, nobody knows which */
	expect_waits(3, 8, FROND_RULE_SAME_LEAF);
	expect(3, 7, "", FROND_RULE_SAME_LEAF, "leaf-1:3");
}

static void test_a_run_must_be_adjacent_today(void)
{
	cluster("spine:2 leaf:4 node:4 gpu:8");
	cordon(c, "node-6"); /* leaf-2 */
	expect(8, 8, "", FROND_RULE_ADJACENT_LEAVES, "leaf-3:4 leaf-4:4");
	cordon(c, "node-13"); /* leaf-4: leaf-1 and leaf-3 are whole, but not adjacent */
	expect(8, 8, "", FROND_RULE_ADJACENT_LEAVES, "leaf-5:4 leaf-6:4");
	cordon(c, "node-21"); /* leaf-6 */
	cordon(c, "node-29"); /* leaf-8; leaf-5 and leaf-7 alone */
	expect_waits(8, 8, FROND_RULE_ADJACENT_LEAVES);
	expect(7, 8, "", FROND_RULE_ADJACENT_LEAVES, "leaf-1:4 leaf-2:3");
}

static void test_leaves_of_two_spines_are_not_adjacent(void)
{
	cluster("spine:2 leaf:2 node:2 gpu:8");
	occupy(c, "node-1", 0xff); /* leaf-1 */
	occupy(c, "node-7", 0xff); /* leaf-4; leaf-2 and leaf-3 are free side by side */
	expect_waits(4, 8, FROND_RULE_ADJACENT_LEAVES);
}

static void test_every_leaf_of_the_run_is_in_use(void)
{
	cluster("spine:1 leaf:3 node:2 gpu:8");
	expect(5, 8, "", FROND_RULE_ADJACENT_LEAVES, "leaf-1:2 leaf-2:2 leaf-3:1");
	occupy(c, "node-3", 0xff); /* leaf-2 */
	occupy(c, "node-4", 0xff);
	expect_waits(4, 8, FROND_RULE_ADJACENT_LEAVES); /* leaf-1 and leaf-3 would do, with a hole between them */
}

/* ---- uneven leaves ---------------------------------------------------------------------------------------------- */

static const char uneven[] = "apiVersion: topology.scheduler/v1alpha1\n"
			     "kind: Fabric\n"
			     "defaults: {gpus: 8}\n"
			     "spines:\n"
			     "- name: s1\n"
			     "  leaves:\n"
			     "  - {name: l1, nodes: [n1]}\n"
			     "  - {name: l2, nodes: [n2, n3, n4]}\n"
			     "  - {name: l3, nodes: [n5, n6]}\n"
			     "  - {name: l4, nodes: [n7, n8, n9, n10, n11]}\n"
			     "- name: s2\n"
			     "  leaves:\n"
			     "  - {name: l5, nodes: [n12, n13, n14]}\n";

static void test_uneven_leaves_give_the_rule_that_the_best_of_them_allows(void)
{
	cluster(uneven);
	expect(1, 8, "", FROND_RULE_SINGLE_NODE, "l1:1");
	expect(2, 8, "", FROND_RULE_SAME_LEAF, "l3:2");
	expect(3, 8, "", FROND_RULE_SAME_LEAF, "l2:3");
	expect(4, 8, "", FROND_RULE_SAME_LEAF, "l4:4");
	expect(5, 8, "", FROND_RULE_COMPLETE_LEAF, "l4:5");
	expect(6, 8, "", FROND_RULE_ADJACENT_LEAVES, "l3:1 l4:5"); /* full leaves score highest */
	expect(7, 8, "", FROND_RULE_ADJACENT_LEAVES, "l3:2 l4:5");
	expect(8, 8, "", FROND_RULE_ADJACENT_LEAVES, "l2:1 l3:2 l4:5");
	expect(11, 8, "", FROND_RULE_ADJACENT_LEAVES, "l1:1 l2:3 l3:2 l4:5");
	expect(12, 8, "", FROND_RULE_ADJACENT_SPINES, "l2:3 l3:1 l4:5 l5:3"); /* four leaves, not five */
	expect_never(15, 8, "");
}

static void test_a_rule_counts_leaves_by_capacity_not_by_todays_luck(void)
{
	cluster(uneven);
	cordon(c, "n7"); /* l4 has four today */
	expect_waits(5, 8, FROND_RULE_COMPLETE_LEAF);
	expect(6, 8, "", FROND_RULE_ADJACENT_LEAVES, "l3:2 l4:4");
	expect_waits(7, 8, FROND_RULE_ADJACENT_LEAVES);
}

static void test_nodes_of_several_sizes_share_a_leaf(void)
{
	cluster("apiVersion: topology.scheduler/v1alpha1\n"
		"kind: Fabric\n"
		"spines:\n"
		"- {name: s, leaves: [{name: l, nodes: [a, b, d]}, {name: m, nodes: [e, f]}]}\n"
		"nodes:\n"
		"- {name: a, gpus: 16}\n"
		"- {name: b, gpus: 4}\n"
		"- {name: d, gpus: 0}\n"
		"- {name: e, gpus: 8}\n"
		"- {name: f, gpus: 8}\n");
	expect(4, 4, "", FROND_RULE_SINGLE_NODE, "l:4");
	expect(5, 4, "", FROND_RULE_SAME_LEAF, "l:5"); /* d could not hold one, but it is a node of the leaf */
	expect(6, 4, "", FROND_RULE_ADJACENT_LEAVES, "l:5 m:1");
	TEST_ASSERT_EQUAL_STRING("a a a a b e", spots(c));
}

/* Inside the leaf nobody crosses its link. Both nodes take two: the gang fills it, or spans both all the same. */
static void test_distributed_over_a_leaf_with_a_slow_link_counts_its_nodes(void)
{
	static const char wishes[] = "placement-strategy=distributed network-bandwidth=200Gb";
	cluster("apiVersion: topology.scheduler/v1alpha1\n"
		"kind: Fabric\n"
		"defaults: {gpus: 8}\n"
		"spines: [{name: s, leaves: [{name: l, uplinkGbps: 100, nodes: [a, b]}]}]\n");
	expect(3, 4, wishes, FROND_RULE_COMPLETE_LEAF, "l:3");
	expect(4, 4, wishes, FROND_RULE_COMPLETE_LEAF, "l:4");
	expect_never(5, 4, wishes);
}

/* ---- adjacent spines -------------------------------------------------------------------------------------------- */

static void test_a_spine_between_two_others_must_be_in_use(void)
{
	cluster("apiVersion: topology.scheduler/v1alpha1\n"
		"kind: Fabric\n"
		"defaults: {gpus: 8}\n"
		"spines:\n"
		"- {name: s1, leaves: [{name: l1, nodes: [a1, a2, a3]}]}\n"
		"- {name: s2, leaves: [{name: l2, nodes: [b1]}]}\n"
		"- {name: s3, leaves: [{name: l3, nodes: [c1, c2, c3]}]}\n");
	expect(4, 8, "", FROND_RULE_ADJACENT_SPINES, "l1:3 l2:1");
	expect(6, 8, "", FROND_RULE_ADJACENT_SPINES, "l1:3 l2:1 l3:2");
	cordon(c, "b1"); /* s1 and s3 have six, but are not adjacent */
	expect_waits(6, 8, FROND_RULE_ADJACENT_SPINES);
}

static void test_over_several_spines_each_has_one_run_and_few_leaves(void)
{
	cluster("apiVersion: topology.scheduler/v1alpha1\n"
		"kind: Fabric\n"
		"defaults: {gpus: 8}\n"
		"spines:\n"
		"- {name: s1, leaves: [{name: l1, nodes: [a1]}, {name: l2, nodes: [a2, a3, a4]}]}\n"
		"- {name: s2, leaves: [{name: l3, nodes: [b1, b2]}, {name: l4, nodes: [b3]}, {name: l5, nodes: "
		"[b4]}]}\n");
	expect(5, 8, "", FROND_RULE_ADJACENT_SPINES, "l2:3 l3:2"); /* two leaves suffice */
	occupy(c, "b3", 0xff);                                     /* l3 and l5 are two runs now */
	expect(6, 8, "", FROND_RULE_ADJACENT_SPINES, "l1:1 l2:3 l3:2");
	expect_waits(7, 8, FROND_RULE_ADJACENT_SPINES);
}

static void test_of_two_pairs_of_spines_the_one_with_fewer_leaves_wins(void)
{
	cluster("apiVersion: topology.scheduler/v1alpha1\n"
		"kind: Fabric\n"
		"defaults: {gpus: 8}\n"
		"spines:\n"
		"- {name: s1, leaves: [{name: l1, nodes: [a1, a2, a3]}]}\n"
		"- {name: s2, leaves: [{name: l2, nodes: [b1]}, {name: l3, nodes: [b2]}]}\n"
		"- {name: s3, leaves: [{name: l4, nodes: [c1]}]}\n"
		"nodes:\n"
		"- {name: a3, gpus: 4}\n");
	/* l2, l3 and l4 would break up no leaf, but they are three. */
	expect(3, 8, "", FROND_RULE_ADJACENT_SPINES, "l1:2 l2:1");
	expect(3, 8, "placement-strategy=consolidated", FROND_RULE_ADJACENT_SPINES, "l1:2 l2:1");
}

/* ---- shapes that the fabric never has --------------------------------------------------------------------------- */

static void test_capacity_in_no_such_shape_is_treated_as_preferred(void)
{
	cluster("apiVersion: topology.scheduler/v1alpha1\n"
		"kind: Fabric\n"
		"defaults: {gpus: 8}\n"
		"spines:\n"
		"- {name: s1, leaves: [{name: l1, nodes: [a1, a2]}]}\n"
		"- {name: s2, leaves: [{name: l2, nodes: [b1]}]}\n"
		"- {name: s3, leaves: [{name: l3, nodes: [c1, c2]}]}\n"
		"nodes:\n"
		"- {name: b1, gpus: 0}\n");
	plan(c, &(struct wanted){.name = "a", .members = 4, .gpus = 8});
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, c->plan.outcome, c->text);
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_ADJACENT_SPINES, c->plan.rule);
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_RELAXED | FROND_PLAN_SHAPELESS, c->plan.flags);
	TEST_ASSERT_EQUAL_STRING("l1:2 l3:2", leaves(c));
	cordon(c, "a1");
	plan(c, &(struct wanted){.name = "a", .members = 4, .gpus = 8});
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, c->plan.outcome);
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, c->plan.wait_ms); /* nothing changes when topology-wait ends */
	node_flags(c, "a1", 0);
	expect(4, 8, "topology-mode=Ignore", FROND_RULE_NONE, "l1:2 l3:2"); /* no rule, so no warning either */
}

static void test_a_leaf_that_holds_nobody_parts_its_neighbours(void)
{
	cluster("apiVersion: topology.scheduler/v1alpha1\n"
		"kind: Fabric\n"
		"defaults: {gpus: 8}\n"
		"spines:\n"
		"- {name: s, leaves: [{name: l1, nodes: [a1, a2]}, {name: l2, nodes: []}, {name: l3, nodes: [c1, "
		"c2]}]}\n");
	plan(c, &(struct wanted){.name = "a", .members = 4, .gpus = 8});
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_RELAXED | FROND_PLAN_SHAPELESS, c->plan.flags);
	TEST_ASSERT_EQUAL_STRING("l1:2 l3:2", leaves(c));
	TEST_ASSERT_EQUAL_UINT32(2, c->plan.runs);
}

/* ---- nodes without a leaf --------------------------------------------------------------------------------------- */

static void some_nodes_without_a_leaf(void)
{
	cluster_free(c);
	c = calloc(1, sizeof *c);
	TEST_ASSERT_NOT_NULL(c);
	engine_make(c, 8, 64, "", "");
	node_put(c, 0, "in-1", 8, "leaf-1", "spine-1");
	node_put(c, 1, "in-2", 8, "leaf-1", "spine-1");
	node_put(c, 2, "out-1", 8, NULL, NULL);
	node_put(c, 3, "out-2", 8, NULL, NULL);
}

static void test_a_node_without_a_leaf_takes_gangs_that_fit_on_one_node(void)
{
	some_nodes_without_a_leaf();
	occupy(c, "in-1", 0x01);
	occupy(c, "in-2", 0x01);
	expect(2, 4, "", FROND_RULE_SINGLE_NODE, "none:2");
	TEST_ASSERT_EQUAL_UINT32(0, c->plan.leaves);
	TEST_ASSERT_EQUAL_UINT32(1, c->plan.nodes);
}

static void test_a_node_without_a_leaf_takes_no_wider_gang_that_is_required(void)
{
	some_nodes_without_a_leaf();
	expect(2, 8, "", FROND_RULE_COMPLETE_LEAF, "leaf-1:2");
	occupy(c, "in-1", 0x01);
	expect_waits(2, 8, FROND_RULE_COMPLETE_LEAF);
	plan(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8, .wishes = "topology-mode=Preferred"});
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, c->plan.outcome, c->text);
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_RELAXED, c->plan.flags);
	TEST_ASSERT_EQUAL_STRING("out-1 out-2", spots(c)); /* 8,000 each, in-2 has 6,474 */
}

static void test_a_gang_that_needs_nodes_without_a_leaf_has_no_shape(void)
{
	some_nodes_without_a_leaf();
	plan(c, &(struct wanted){.name = "a", .members = 4, .gpus = 8});
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_RELAXED | FROND_PLAN_SHAPELESS, c->plan.flags);
	TEST_ASSERT_EQUAL_STRING("in-1 in-2 out-1 out-2", spots(c));
	expect_never(5, 8, "");
}

static void test_a_cluster_without_topology_ignores_it_and_says_so(void)
{
	c = calloc(1, sizeof *c);
	TEST_ASSERT_NOT_NULL(c);
	engine_make(c, 4, 64, "", "");
	node_put(c, 0, "n1", 8, NULL, NULL);
	node_put(c, 1, "n2", 8, NULL, NULL);
	plan(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8});
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, c->plan.outcome, c->text);
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_NONE, c->plan.rule);
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_NO_TOPOLOGY, c->plan.flags);
	TEST_ASSERT_EQUAL_STRING("2 members on 2 nodes; the cluster has no topology", c->text);
	plan(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8, .wishes = "latency-sensitive=true"});
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, c->plan.outcome);
	occupy(c, "n1", 0x01);
	plan(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8});
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, c->plan.outcome);
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, c->plan.wait_ms);
}

static void test_an_engine_without_nodes_never_fits_anything(void)
{
	c = calloc(1, sizeof *c);
	TEST_ASSERT_NOT_NULL(c);
	engine_make(c, 4, 64, "", "");
	expect_never(1, 1, "");
	expect_never(1, 1, "topology-mode=Ignore");
	const uint32_t sizes[] = {1, 2};
	plan(c, &(struct wanted){.name = "a", .members = 2, .sizes = sizes});
	TEST_ASSERT_EQUAL_UINT32(FROND_NEVER, c->plan.outcome);
}

/* Two nodes have the same GPUs free as far as anyone knows which, but a pod holds some of the second's by count. */
static void test_a_claim_counts_pods_that_hold_gpus_by_count(void)
{
	const char *claim = "{\"topology\": {\"mode\": \"Required\", \"locality\": \"same-socket\"}}";
	cluster("spine:1 leaf:1 node:2 gpu:8");
	occupy_by_count(c, "node-2", 6);
	plan(c, &(struct wanted){.name = "a", .members = 5, .gpus = 2, .claim = claim});
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, c->plan.outcome);
	TEST_ASSERT_EQUAL_STRING("node-1 node-1 node-1 node-1 node-2", spots(c));
	plan(c, &(struct wanted){.name = "a", .members = 6, .gpus = 2, .claim = claim});
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, c->plan.outcome);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_whole_nodes_in_leaves_of_four_have_the_rules_of_the_seeds);
	RUN_TEST(test_beyond_a_spine_adjacent_spines_and_beyond_the_cluster_never);
	RUN_TEST(test_small_members_are_counted_as_the_node_holds_them);
	RUN_TEST(test_a_member_larger_than_any_node_never_fits);
	RUN_TEST(test_neighbours_in_rank_are_neighbours_in_the_fabric);
	RUN_TEST(test_use_cordons_health_and_failures_never_change_the_rule);
	RUN_TEST(test_a_run_must_be_adjacent_today);
	RUN_TEST(test_leaves_of_two_spines_are_not_adjacent);
	RUN_TEST(test_every_leaf_of_the_run_is_in_use);
	RUN_TEST(test_uneven_leaves_give_the_rule_that_the_best_of_them_allows);
	RUN_TEST(test_a_rule_counts_leaves_by_capacity_not_by_todays_luck);
	RUN_TEST(test_nodes_of_several_sizes_share_a_leaf);
	RUN_TEST(test_distributed_over_a_leaf_with_a_slow_link_counts_its_nodes);
	RUN_TEST(test_a_spine_between_two_others_must_be_in_use);
	RUN_TEST(test_over_several_spines_each_has_one_run_and_few_leaves);
	RUN_TEST(test_of_two_pairs_of_spines_the_one_with_fewer_leaves_wins);
	RUN_TEST(test_capacity_in_no_such_shape_is_treated_as_preferred);
	RUN_TEST(test_a_leaf_that_holds_nobody_parts_its_neighbours);
	RUN_TEST(test_a_node_without_a_leaf_takes_gangs_that_fit_on_one_node);
	RUN_TEST(test_a_node_without_a_leaf_takes_no_wider_gang_that_is_required);
	RUN_TEST(test_a_gang_that_needs_nodes_without_a_leaf_has_no_shape);
	RUN_TEST(test_a_cluster_without_topology_ignores_it_and_says_so);
	RUN_TEST(test_an_engine_without_nodes_never_fits_anything);
	RUN_TEST(test_a_claim_counts_pods_that_hold_gpus_by_count);
	return UNITY_END();
}
