/* SPDX-License-Identifier: Apache-2.0 */
/* Reference 3.1 and 3.4: modes, topology-wait, strategies, preferred domain, bandwidth, latency. */
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

static uint32_t ask(uint32_t members, uint32_t gpus, const char *wishes)
{
	return plan(c, &(struct wanted){.name = "a", .members = members, .gpus = gpus, .wishes = wishes});
}

static void expect(uint32_t members, uint32_t gpus, const char *wishes, const char *where)
{
	uint32_t outcome = ask(members, gpus, wishes);
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, outcome, c->text);
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(0, c->plan.flags, c->text);
	TEST_ASSERT_EQUAL_STRING(where, leaves(c));
}

/* Two leaves with one node taken in each: three nodes fit in one leaf, four do not. */
static void two_worn_leaves(void)
{
	cluster("spine:1 leaf:2 node:4 gpu:8");
	occupy(c, "node-2", 0xff);
	occupy(c, "node-7", 0xff);
}

/* ---- modes ------------------------------------------------------------------------------------------------------ */

static void test_required_waits_preferred_relaxes_ignore_has_no_rule(void)
{
	two_worn_leaves();
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, ask(4, 8, "topology-mode=Required"));
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_COMPLETE_LEAF, c->plan.rule);
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(4, 8, "topology-mode=Preferred"));
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_COMPLETE_LEAF, c->plan.rule);
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_RELAXED, c->plan.flags);
	TEST_ASSERT_EQUAL_STRING("leaf-1:3 leaf-2:1", leaves(c));
	TEST_ASSERT_EQUAL_STRING("4 members on 4 nodes in 2 leaves under 1 spine; rule complete leaf relaxed", c->text);
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(4, 8, "topology-mode=Ignore"));
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_NONE, c->plan.rule);
	TEST_ASSERT_EQUAL_UINT32(0, c->plan.flags);
	TEST_ASSERT_EQUAL_UINT64(1, stats(c).relaxed);
}

static void test_a_rule_that_can_be_met_is_met_in_every_mode_that_has_one(void)
{
	two_worn_leaves();
	expect(3, 8, "topology-mode=Required", "leaf-1:3");
	expect(3, 8, "topology-mode=Preferred", "leaf-1:3");
}

static void test_preferred_and_ignore_wait_when_there_is_no_room_at_all(void)
{
	two_worn_leaves();
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, ask(7, 8, "topology-mode=Preferred"));
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, c->plan.wait_ms);
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, ask(7, 8, "topology-mode=Ignore"));
	TEST_ASSERT_EQUAL_UINT32(FROND_NEVER, ask(9, 8, "topology-mode=Ignore"));
}

static void test_the_default_mode_and_strategy_come_from_args(void)
{
	c = cluster_make("spine:1 leaf:2 node:4 gpu:8",
			 "{\"defaultTopologyMode\":\"Preferred\",\"defaultStrategy\":\"distributed\"}");
	occupy(c, "node-2", 0xff);
	occupy(c, "node-7", 0xff);
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(4, 8, ""));
	TEST_ASSERT_EQUAL_STRING("leaf-1:2 leaf-2:2", leaves(c)); /* as distributed spreads them */
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, ask(4, 8, "topology-mode=Required"));
}

/* ---- topology-wait ---------------------------------------------------------------------------------------------- */

static uint32_t ask_aged(int64_t age_ms, const char *wishes)
{
	return plan(c, &(struct wanted){.name = "a", .members = 4, .gpus = 8, .wishes = wishes, .age_ms = age_ms});
}

static void test_required_insists_until_topology_wait_ends(void)
{
	two_worn_leaves();
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, ask_aged(0, ""));
	TEST_ASSERT_EQUAL_UINT32(300000, c->plan.wait_ms); /* five minutes by default */
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, ask_aged(299999, ""));
	TEST_ASSERT_EQUAL_UINT32(1, c->plan.wait_ms);
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask_aged(300000, ""));
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_RELAXED, c->plan.flags);
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, ask_aged(300000, "topology-wait=10m"));
	TEST_ASSERT_EQUAL_UINT32(300000, c->plan.wait_ms);
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask_aged(1000, "topology-wait=1s"));
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, ask_aged(INT64_MAX - 1, "topology-wait=forever"));
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, c->plan.wait_ms);
}

static void test_an_old_gang_that_meets_its_rule_is_not_relaxed(void)
{
	cluster("spine:1 leaf:2 node:4 gpu:8");
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask_aged(INT64_MAX, ""));
	TEST_ASSERT_EQUAL_UINT32(0, c->plan.flags);
}

static void test_the_longest_and_the_shortest_wait_are_exact(void)
{
	two_worn_leaves();
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, ask_aged(0, "topology-wait=1000h"));
	TEST_ASSERT_EQUAL_UINT32(3600000000u, c->plan.wait_ms);
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask_aged(0, "topology-wait=0s"));
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_RELAXED, c->plan.flags);
}

/* ---- strategies ------------------------------------------------------------------------------------------------- */

static void test_strategies_differ_in_how_they_fill_a_leaf(void)
{
	cluster("spine:1 leaf:1 node:4 gpu:8");
	occupy(c, "node-1", 0x3f); /* two are left */
	occupy(c, "node-2", 0x0f); /* four */
	occupy(c, "node-4", 0x3f); /* two */
	expect(5, 2, "placement-strategy=consolidated", "leaf-1:5");
	TEST_ASSERT_EQUAL_STRING("node-1 node-3 node-3 node-3 node-3", spots(c));
	expect(5, 2, "placement-strategy=balanced", "leaf-1:5");
	TEST_ASSERT_EQUAL_STRING("node-1 node-2 node-2 node-3 node-4", spots(c));
	expect(5, 2, "placement-strategy=distributed", "leaf-1:5");
	TEST_ASSERT_EQUAL_STRING("node-1 node-2 node-2 node-3 node-4", spots(c));
	expect(4, 2, "placement-strategy=distributed", "leaf-1:4");
	TEST_ASSERT_EQUAL_STRING("node-1 node-2 node-3 node-4", spots(c));
}

static void test_distributed_spreads_over_the_leaves_that_its_rule_allows(void)
{
	cluster("spine:2 leaf:4 node:2 gpu:8");
	expect(8, 1, "placement-strategy=distributed", "leaf-1:2 leaf-2:2 leaf-3:2 leaf-4:2");
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_ADJACENT_LEAVES, c->plan.rule);
	expect(3, 1, "placement-strategy=distributed", "leaf-1:2 leaf-2:1");
	expect(2, 1, "placement-strategy=distributed", "leaf-1:2");
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_COMPLETE_LEAF, c->plan.rule);
	TEST_ASSERT_EQUAL_UINT32(2, c->plan.nodes);
	expect(1, 1, "placement-strategy=distributed", "leaf-1:1");
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_SINGLE_NODE, c->plan.rule);
	expect(8, 1, "placement-strategy=distributed topology-mode=Ignore",
	       "leaf-1:1 leaf-2:1 leaf-3:1 leaf-4:1 leaf-5:1 leaf-6:1 leaf-7:1 leaf-8:1");
}

static void test_distributed_counts_one_node_per_member_but_does_not_demand_it(void)
{
	cluster("spine:1 leaf:2 node:2 gpu:8");
	occupy(c, "node-1", 0xff);
	expect(4, 1, "placement-strategy=distributed", "leaf-1:2 leaf-2:2"); /* two on node-2 */
	TEST_ASSERT_EQUAL_STRING("node-2 node-2 node-3 node-3", spots(c)); /* two anyway, so no more nodes than that */
	expect(9, 1, "placement-strategy=distributed",
	       "leaf-1:3 leaf-2:6"); /* the cluster has fewer nodes than members */
}

static void test_distributed_over_spines_uses_no_more_leaves_than_it_has_members(void)
{
	cluster("spine:2 leaf:3 node:1 gpu:8");
	expect(4, 1, "placement-strategy=distributed", "leaf-1:1 leaf-2:1 leaf-3:1 leaf-4:1");
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_ADJACENT_SPINES, c->plan.rule);
	occupy(c, "node-2", 0xff); /* leaf-1 and leaf-3 are two runs: one of them is out */
	expect(4, 1, "placement-strategy=distributed", "leaf-1:1 leaf-4:1 leaf-5:1 leaf-6:1");
	occupy(c, "node-5", 0xff);
	expect(4, 1, "placement-strategy=distributed", "leaf-1:2 leaf-4:2");
}

#define CONSOLIDATED "placement-strategy=consolidated"

static void test_consolidated_takes_what_breaks_up_least(void)
{
	cluster("spine:1 leaf:4 node:2 gpu:8");
	expect(2, 8, CONSOLIDATED, "leaf-1:2");
	occupy(c, "node-6", 0xff);              /* leaf-3 */
	expect(1, 8, CONSOLIDATED, "leaf-3:1"); /* no whole leaf is broken up */
	expect(1, 4, CONSOLIDATED, "leaf-3:1");
	occupy(c, "node-7", 0x03);              /* leaf-4 is in use as well; node-7 has six left, node-8 eight */
	expect(1, 6, CONSOLIDATED, "leaf-4:1"); /* no whole node is broken up */
	expect(1, 8, CONSOLIDATED, "leaf-3:1"); /* nothing is left there */
	expect(2, 8, CONSOLIDATED, "leaf-1:2");
}

/* Leaf scores by hand, in ten-thousandths: 0.4 free/total + 0.3 ours/free + 0.2 used/total + 0.1. */
static void test_balanced_breaks_nothing_up_then_takes_the_higher_score(void)
{
	cluster("spine:1 leaf:2 node:2 gpu:8");
	occupy(c, "node-4", 0xff); /* leaf-2 is half used */
	expect(1, 8, "", "leaf-2:1");
	expect(1, 4, "", "leaf-2:1"); /* 2,000 + 1,500 + 1,000 + 1,000 against 5,750, but leaf-1 is whole */
	expect(1, 4, "placement-strategy=distributed", "leaf-1:1");
	expect(1, 4, CONSOLIDATED, "leaf-2:1");
	expect(2, 4, CONSOLIDATED, "leaf-2:2");
	expect(2, 4, "", "leaf-2:2");
	occupy(c, "node-1", 0xf0);    /* neither is whole now; leaf-1 has 12 of 16 GPUs free, leaf-2 eight */
	expect(1, 2, "", "leaf-1:1"); /* node-1 is broken already, node-3 is whole */
	expect(1, 8, "", "leaf-2:1"); /* 2,000 + 3,000 + 1,000 + 1,000 against 3,000 + 2,000 + 500 + 1,000 */
	occupy(c, "node-3", 0xf8);
	expect(1, 2, "", "leaf-2:1"); /* 750 + 2,000 + 1,625 + 1,000 against 3,000 + 500 + 500 + 1,000 */
	expect(1, 1, "", "leaf-1:1"); /* 3,000 + 250 + 500 + 1,000 against 750 + 1,000 + 1,625 + 1,000 */
}

static void test_links_count_more_than_the_score(void)
{
	cluster("apiVersion: topology.scheduler/v1alpha1\n"
		"kind: Fabric\n"
		"defaults: {model: A100-SXM}\n"
		"spines:\n"
		"- {name: s, leaves: [{name: slow, nodes: [a]}, {name: fast, nodes: [b]}, {name: none, nodes: [d]}]}\n"
		"nodes:\n"
		"- {name: b, model: H100-SXM}\n"
		"- {name: d, model: PCIE-8}\n");
	occupy(c, "b", 0x3f);
	expect(1, 2, "", "fast:1");           /* 450 GB/s; its score is lower */
	expect(1, 2, CONSOLIDATED, "fast:1"); /* before fragmentation too */
	expect(1, 1, "", "fast:1");           /* one GPU has no links; the others are whole */
	occupy(c, "b", 0x40);
	expect(1, 2, "", "slow:1"); /* 300 GB/s */
	occupy(c, "a", 0x7f);
	expect(1, 2, "", "none:1"); /* nothing else is left */
}

static void test_inside_a_leaf_links_come_before_what_is_left_over(void)
{
	cluster("apiVersion: topology.scheduler/v1alpha1\n"
		"kind: Fabric\n"
		"defaults: {model: A100-SXM}\n"
		"spines:\n"
		"- {name: s, leaves: [{name: l, nodes: [a, b, d]}]}\n"
		"nodes:\n"
		"- {name: b, model: H100-SXM}\n"
		"- {name: d, model: DGX-1V}\n");
	occupy(c, "a", 0x3f);
	expect(1, 2, "", "l:1");
	TEST_ASSERT_EQUAL_STRING("b", spots(c)); /* 450 GB/s; a would be used up */
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(5, 2, ""));
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_MIXED_MODELS, c->plan.flags);
	TEST_ASSERT_EQUAL_STRING("a b b b b", spots(c)); /* then 300, and nobody needs the 50 of d */
	cordon(c, "a");
	cordon(c, "b");
	expect(2, 2, "", "l:2");
	TEST_ASSERT_EQUAL_HEX32(0x09, c->places[0].gpu_mask); /* 0 and 3 share two links, as do others: the lowest */
	TEST_ASSERT_EQUAL_HEX32(0x06, c->places[1].gpu_mask);
}

static void test_gangs_break_up_few_leaves_then_few_nodes_then_open_few_then_leave_little(void)
{
	cluster("spine:2 leaf:2 node:4 gpu:8"); /* five are two in leaf-1 and three of leaf-2, or four and one */
	occupy(c, "node-1", 0xff);
	occupy(c, "node-2", 0xff);
	occupy(c, "node-13", 0xff);
	expect(5, 8, CONSOLIDATED, "leaf-1:1 leaf-2:4"); /* no whole leaf is broken up, one node is left over */

	cluster("spine:1 leaf:2 node:3 gpu:8");
	occupy(c, "node-1", 0xff);
	occupy(c, "node-4", 0x0f);
	expect(3, 4, CONSOLIDATED, "leaf-2:3"); /* more is left there, but no whole node is broken up */
	TEST_ASSERT_EQUAL_STRING("node-4 node-5 node-5", spots(c));

	cluster("apiVersion: topology.scheduler/v1alpha1\n"
		"kind: Fabric\n"
		"defaults: {gpus: 8}\n"
		"spines:\n"
		"- {name: s, leaves: [{name: l1, nodes: [a1, a2]}, {name: l2, nodes: [b1, b2, b3, b4]}]}\n");
	occupy(c, "b1", 0xff);
	expect(2, 8, CONSOLIDATED, "l2:2"); /* more is left there, but the whole leaf stays whole */

	cluster("spine:1 leaf:2 node:4 gpu:8");
	occupy(c, "node-1", 0xff);
	occupy(c, "node-5", 0xff);
	occupy(c, "node-6", 0xff);
	expect(2, 8, CONSOLIDATED, "leaf-2:2"); /* nothing is left there */
}

static void test_positions_break_ties(void)
{
	cluster("spine:2 leaf:2 node:2 gpu:8");
	for (int i = 0; i < 3; i++) {
		expect(1, 8, "", "leaf-1:1");
		TEST_ASSERT_EQUAL_STRING("node-1", spots(c));
		TEST_ASSERT_EQUAL_HEX32(0xff, c->places[0].gpu_mask);
	}
	occupy(c, "node-1", 0x12);
	expect(1, 2, CONSOLIDATED, "leaf-1:1");
	TEST_ASSERT_EQUAL_HEX32(0x05, c->places[0].gpu_mask);
}

static void test_relaxed_gangs_take_few_spines_then_few_leaves_then_few_runs(void)
{
	cluster("spine:2 leaf:4 node:2 gpu:8");
	occupy(c, "node-1", 0xff); /* leaf-1 and leaf-3 have one node each, leaf-2 and leaf-4 two */
	occupy(c, "node-5", 0xff);
	occupy(c, "node-9", 0xff); /* leaf-5 one, leaf-6 to leaf-8 two */
	expect(2, 8, "topology-mode=Ignore", "leaf-2:2");
	expect(4, 8, "topology-mode=Ignore", "leaf-6:2 leaf-7:2"); /* leaf-2 and leaf-4 are two runs */
	expect(7, 8, "topology-mode=Ignore", "leaf-5:1 leaf-6:2 leaf-7:2 leaf-8:2");
	occupy(c, "node-13", 0xff); /* leaf-7: four in two leaves are two runs everywhere */
	expect(4, 8, "topology-mode=Ignore", "leaf-2:2 leaf-4:2");
	TEST_ASSERT_EQUAL_UINT32(2, c->plan.runs);
	expect(5, 8, "topology-mode=Ignore", "leaf-2:2 leaf-3:1 leaf-4:2");
}

/* ---- preferred domain ------------------------------------------------------------------------------------------- */

static void test_the_preferred_domain_is_taken_when_the_rule_is_met_there(void)
{
	cluster("spine:2 leaf:4 node:4 gpu:8");
	expect(1, 8, "preferred-domain=leaf-3", "leaf-3:1");
	expect(4, 8, "preferred-domain=leaf-7", "leaf-7:4");
	expect(2, 8, "preferred-domain=spine-2", "leaf-5:2");
	expect(8, 8, "preferred-domain=spine-2", "leaf-5:4 leaf-6:4");
	expect(8, 8, "preferred-domain=leaf-3", "leaf-1:4 leaf-2:4"); /* it does not fit there */
	expect(32, 8, "preferred-domain=spine-2",
	       "leaf-1:4 leaf-2:4 leaf-3:4 leaf-4:4 leaf-5:4 leaf-6:4 leaf-7:4 leaf-8:4");
}

static void test_a_full_preferred_domain_is_passed_over(void)
{
	cluster("spine:2 leaf:2 node:2 gpu:8");
	occupy(c, "node-5", 0xff); /* leaf-3 */
	expect(2, 8, "preferred-domain=leaf-3", "leaf-1:2");
	expect(2, 8, "preferred-domain=spine-2", "leaf-4:2");
	expect(4, 8, "preferred-domain=spine-2", "leaf-1:2 leaf-2:2");
}

static void test_under_ignore_the_preferred_domain_is_taken_when_the_gang_fits(void)
{
	cluster("spine:2 leaf:3 node:2 gpu:8");
	occupy(c, "node-9", 0xff); /* leaf-5: leaf-4 and leaf-6 are not adjacent */
	occupy(c, "node-10", 0xff);
	expect(4, 8, "preferred-domain=spine-2", "leaf-1:2 leaf-2:2");
	expect(4, 8, "preferred-domain=spine-2 topology-mode=Ignore", "leaf-4:2 leaf-6:2");
	occupy(c, "node-1", 0xff); /* now no run of two is left anywhere */
	occupy(c, "node-5", 0xff);
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(4, 8, "preferred-domain=spine-2 topology-mode=Preferred"));
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_RELAXED, c->plan.flags);
	TEST_ASSERT_EQUAL_STRING("leaf-4:2 leaf-6:2", leaves(c)); /* as it would without the wish: fewest leaves */
}

static void test_a_wide_rule_may_be_met_inside_a_small_domain(void)
{
	cluster("spine:2 leaf:2 node:2 gpu:8");
	/* One node per member is the rule's measure, not its demand: eight are two spines, but one leaf holds them. */
	expect(8, 1, "placement-strategy=distributed preferred-domain=leaf-3", "leaf-3:8");
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_ADJACENT_SPINES, c->plan.rule);
	expect(8, 1, "placement-strategy=distributed preferred-domain=spine-2", "leaf-3:4 leaf-4:4");
	expect(8, 1, "placement-strategy=distributed", "leaf-1:2 leaf-2:2 leaf-3:2 leaf-4:2");
}

static void test_an_unknown_domain_is_a_warning(void)
{
	cluster("spine:1 leaf:2 node:2 gpu:8");
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(2, 8, "preferred-domain=leaf-77"));
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_UNKNOWN_DOMAIN, c->plan.flags);
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(2, 8, "preferred-domain=node-1")); /* a node is no domain */
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_UNKNOWN_DOMAIN, c->plan.flags);
}

/* ---- bandwidth -------------------------------------------------------------------------------------------------- */

static const char speeds[] = "apiVersion: topology.scheduler/v1alpha1\n"
			     "kind: Fabric\n"
			     "defaults: {gpus: 8, uplinkGbps: 400}\n"
			     "spines:\n"
			     "- name: s\n"
			     "  leaves:\n"
			     "  - {name: l1, uplinkGbps: 100, nodes: [a1, a2]}\n"
			     "  - {name: l2, nodes: [b1, b2]}\n"
			     "  - {name: l3, uplinkGbps: 400, nodes: [c1, c2]}\n"
			     "nodes:\n"
			     "- {name: b1, uplinkGbps: 100}\n";

static void test_slow_nodes_are_not_eligible(void)
{
	cluster(speeds);
	occupy(c, "a1", 0xff);
	occupy(c, "c1", 0xff);
	expect(2, 8, "", "l2:2");
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, ask(2, 8, "network-bandwidth=200Gb")); /* b1 is too slow */
	expect(2, 8, "network-bandwidth=100Gb", "l2:2");
	expect(1, 8, "network-bandwidth=400Gb", "l1:1");
	TEST_ASSERT_EQUAL_UINT32(FROND_NEVER, ask(1, 8, "network-bandwidth=401Gb"));
}

static void test_a_slow_leaf_link_is_not_crossed_but_may_stay_inside(void)
{
	cluster(speeds);
	expect(4, 8, "", "l1:2 l2:2");
	expect(3, 8, "network-bandwidth=200Gb", "l2:1 l3:2");
	expect(2, 8, "network-bandwidth=200Gb", "l1:2");
	expect(2, 8, "network-bandwidth=200Gb preferred-domain=l1", "l1:2");
	expect(3, 8, "network-bandwidth=200Gb topology-mode=Ignore", "l2:1 l3:2");
	TEST_ASSERT_EQUAL_UINT32(FROND_NEVER, ask(4, 8, "network-bandwidth=200Gb")); /* three that it could combine */
	TEST_ASSERT_EQUAL_STRING(
		"never fits: needs 4 nodes; the cluster could hold 3 of them at best on links of 200 Gb or more",
		c->text);
}

static void test_with_slow_links_everywhere_nothing_wider_than_a_leaf_fits(void)
{
	cluster("apiVersion: topology.scheduler/v1alpha1\n"
		"kind: Fabric\n"
		"defaults: {gpus: 8}\n"
		"spines:\n"
		"- {name: s, leaves: [{name: l1, uplinkGbps: 100, nodes: [a1]}, {name: l2, uplinkGbps: 100, nodes: "
		"[b1, b2]}]}\n");
	expect(2, 8, "network-bandwidth=200Gb", "l2:2");
	TEST_ASSERT_EQUAL_UINT32(FROND_NEVER, ask(3, 8, "network-bandwidth=200Gb"));
	TEST_ASSERT_EQUAL_UINT32(FROND_NEVER, ask(3, 8, "network-bandwidth=200Gb topology-mode=Ignore"));
	const uint32_t sizes[] = {8, 8, 4};
	plan(c, &(struct wanted){.name = "a",
				 .members = 3,
				 .sizes = sizes,
				 .wishes = "network-bandwidth=200Gb topology-mode=Ignore"});
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_NEVER, c->plan.outcome, c->text);
	expect(3, 8, "network-bandwidth=100Gb", "l1:1 l2:2");
}

static void test_the_rule_counts_no_run_across_a_slow_link(void)
{
	cluster("apiVersion: topology.scheduler/v1alpha1\n"
		"kind: Fabric\n"
		"defaults: {gpus: 8}\n"
		"spines:\n"
		"- name: s\n"
		"  leaves:\n"
		"  - {name: l1, uplinkGbps: 100, nodes: [a1, a2]}\n"
		"  - {name: l2, nodes: [b1, b2]}\n"
		"  - {name: l3, nodes: [c1]}\n"
		"  - {name: l4, nodes: [d1]}\n");
	expect(4, 8, "", "l1:2 l2:2");
	expect(4, 8, "network-bandwidth=200Gb", "l2:2 l3:1 l4:1");
}

static void test_distributed_counts_only_nodes_that_it_could_use_together(void)
{
	cluster("apiVersion: topology.scheduler/v1alpha1\n"
		"kind: Fabric\n"
		"defaults: {gpus: 8}\n"
		"spines:\n"
		"- {name: s, leaves: [{name: l1, uplinkGbps: 50, nodes: [a1, a2]}, {name: l2, nodes: [b1]}]}\n");
	expect(3, 4, "network-bandwidth=100Gb placement-strategy=distributed", "l1:3");
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_COMPLETE_LEAF, c->plan.rule);
}

static void test_distributed_over_spines_may_stay_inside_a_leaf_whose_link_is_slow(void)
{
	cluster("apiVersion: topology.scheduler/v1alpha1\n"
		"kind: Fabric\n"
		"defaults: {gpus: 8}\n"
		"spines:\n"
		"- {name: s1, leaves: [{name: l1, uplinkGbps: 50, nodes: [a1, a2]}, {name: l2, nodes: [b1, b2]}]}\n"
		"- {name: s2, leaves: [{name: l3, nodes: [c1, c2]}]}\n");
	static const char wishes[] = "network-bandwidth=100Gb placement-strategy=distributed";
	expect(4, 2, wishes, "l2:2 l3:2");
	occupy(c, "b1", 0xff);
	occupy(c, "b2", 0xff);
	expect(4, 2, wishes, "l1:4"); /* two on a node either way: the earlier leaf */
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_ADJACENT_SPINES, c->plan.rule);
	occupy(c, "c1", 0xff);
	occupy(c, "c2", 0xff);
	expect(4, 2, wishes, "l1:4");
}

/* ---- latency-sensitive ------------------------------------------------------------------------------------------ */

static void test_latency_sensitive_takes_the_leaf_with_most_free(void)
{
	cluster("spine:1 leaf:2 node:4 gpu:8");
	occupy(c, "node-1", 0xff);
	expect(2, 8, CONSOLIDATED, "leaf-1:2");
	expect(2, 8, CONSOLIDATED " latency-sensitive=true", "leaf-2:2");
	expect(1, 8, CONSOLIDATED " latency-sensitive=true", "leaf-2:1");
	expect(2, 8, CONSOLIDATED " latency-sensitive=false", "leaf-1:2");
	expect(3, 8, "latency-sensitive=true", "leaf-2:3"); /* before the score: 7,250 against 7,500 */
	expect(3, 8, CONSOLIDATED " latency-sensitive=true", "leaf-2:3");
}

static void test_latency_sensitive_is_required_without_end(void)
{
	two_worn_leaves();
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, ask_aged(INT64_MAX, "latency-sensitive=true topology-mode=Ignore"));
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, c->plan.wait_ms);
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_COMPLETE_LEAF, c->plan.rule);
}

static void test_latency_sensitive_wider_than_a_leaf_is_refused(void)
{
	cluster("spine:1 leaf:2 node:4 gpu:8");
	TEST_ASSERT_EQUAL_UINT32(FROND_REFUSED, ask(5, 8, "latency-sensitive=true"));
	TEST_ASSERT_EQUAL_STRING("latency-sensitive asks for one leaf at most, but 5 nodes never fit in one leaf",
				 c->text);
	TEST_ASSERT_EQUAL_UINT64(1, stats(c).refused);
}

static void test_latency_sensitive_wants_the_smallest_domain_whatever_the_strategy(void)
{
	cluster("spine:1 leaf:2 node:4 gpu:8");
	expect(4, 2, "latency-sensitive=true placement-strategy=distributed", "leaf-1:4");
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_SINGLE_NODE, c->plan.rule);
	expect(9, 2, "latency-sensitive=true placement-strategy=distributed", "leaf-1:9");
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_SAME_LEAF, c->plan.rule);
	TEST_ASSERT_EQUAL_UINT32(3, c->plan.nodes);
	const uint32_t sizes[] = {1, 2, 4};
	plan(c, &(struct wanted){.name = "a",
				 .members = 3,
				 .sizes = sizes,
				 .wishes = "latency-sensitive=true placement-strategy=distributed"});
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_SINGLE_NODE, c->plan.rule);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_required_waits_preferred_relaxes_ignore_has_no_rule);
	RUN_TEST(test_a_rule_that_can_be_met_is_met_in_every_mode_that_has_one);
	RUN_TEST(test_preferred_and_ignore_wait_when_there_is_no_room_at_all);
	RUN_TEST(test_the_default_mode_and_strategy_come_from_args);
	RUN_TEST(test_required_insists_until_topology_wait_ends);
	RUN_TEST(test_an_old_gang_that_meets_its_rule_is_not_relaxed);
	RUN_TEST(test_the_longest_and_the_shortest_wait_are_exact);
	RUN_TEST(test_strategies_differ_in_how_they_fill_a_leaf);
	RUN_TEST(test_distributed_spreads_over_the_leaves_that_its_rule_allows);
	RUN_TEST(test_distributed_counts_one_node_per_member_but_does_not_demand_it);
	RUN_TEST(test_distributed_over_spines_uses_no_more_leaves_than_it_has_members);
	RUN_TEST(test_consolidated_takes_what_breaks_up_least);
	RUN_TEST(test_balanced_breaks_nothing_up_then_takes_the_higher_score);
	RUN_TEST(test_links_count_more_than_the_score);
	RUN_TEST(test_inside_a_leaf_links_come_before_what_is_left_over);
	RUN_TEST(test_gangs_break_up_few_leaves_then_few_nodes_then_open_few_then_leave_little);
	RUN_TEST(test_positions_break_ties);
	RUN_TEST(test_relaxed_gangs_take_few_spines_then_few_leaves_then_few_runs);
	RUN_TEST(test_the_preferred_domain_is_taken_when_the_rule_is_met_there);
	RUN_TEST(test_a_full_preferred_domain_is_passed_over);
	RUN_TEST(test_under_ignore_the_preferred_domain_is_taken_when_the_gang_fits);
	RUN_TEST(test_a_wide_rule_may_be_met_inside_a_small_domain);
	RUN_TEST(test_an_unknown_domain_is_a_warning);
	RUN_TEST(test_slow_nodes_are_not_eligible);
	RUN_TEST(test_a_slow_leaf_link_is_not_crossed_but_may_stay_inside);
	RUN_TEST(test_with_slow_links_everywhere_nothing_wider_than_a_leaf_fits);
	RUN_TEST(test_the_rule_counts_no_run_across_a_slow_link);
	RUN_TEST(test_distributed_counts_only_nodes_that_it_could_use_together);
	RUN_TEST(test_distributed_over_spines_may_stay_inside_a_leaf_whose_link_is_slow);
	RUN_TEST(test_latency_sensitive_takes_the_leaf_with_most_free);
	RUN_TEST(test_latency_sensitive_is_required_without_end);
	RUN_TEST(test_latency_sensitive_wider_than_a_leaf_is_refused);
	RUN_TEST(test_latency_sensitive_wants_the_smallest_domain_whatever_the_strategy);
	return UNITY_END();
}
