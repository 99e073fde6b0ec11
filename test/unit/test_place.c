/* SPDX-License-Identifier: Apache-2.0 */
/* What narrows a plan: caps per leaf, pinned members, members without GPUs or of several sizes, room, limits. */
#include "cluster.h"
#include "dice.h"
#include "engine/engine.h"

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

static void expect(const struct wanted *w, uint32_t rule, const char *nodes)
{
	uint32_t outcome = plan(c, w);
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, outcome, c->text);
	TEST_ASSERT_EQUAL_STRING(nodes, spots(c));
	TEST_ASSERT_EQUAL_UINT32(rule, c->plan.rule);
	TEST_ASSERT_EQUAL_UINT32(0, c->plan.flags);
}

static void expect_leaves(uint32_t members, uint32_t gpus, const char *wishes, uint32_t rule, const char *where)
{
	uint32_t outcome = plan(c, &(struct wanted){.name = "a", .members = members, .gpus = gpus, .wishes = wishes});
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, outcome, c->text);
	TEST_ASSERT_EQUAL_STRING(where, leaves(c));
	TEST_ASSERT_EQUAL_UINT32(rule, c->plan.rule);
}

static uint32_t outcome_of(uint32_t members, uint32_t gpus, const char *wishes)
{
	return plan(c, &(struct wanted){.name = "a", .members = members, .gpus = gpus, .wishes = wishes});
}

/* ---- caps per leaf ---------------------------------------------------------------------------------------------- */

static void test_a_cap_on_nodes_per_leaf_counts_as_capacity(void)
{
	cluster("spine:1 leaf:4 node:4 gpu:8", "{\"topologyConstraints\":{\"maxNodesPerLeaf\":2}}");
	expect_leaves(2, 8, "", FROND_RULE_SAME_LEAF, "leaf-1:2");
	expect_leaves(3, 8, "", FROND_RULE_ADJACENT_LEAVES, "leaf-1:2 leaf-2:1");
	expect_leaves(4, 8, "", FROND_RULE_ADJACENT_LEAVES, "leaf-1:2 leaf-2:2");
	expect_leaves(8, 8, "topology-mode=Ignore", FROND_RULE_NONE, "leaf-1:2 leaf-2:2 leaf-3:2 leaf-4:2");
	TEST_ASSERT_EQUAL_UINT32(FROND_NEVER, outcome_of(9, 8, ""));
	expect_leaves(17, 1, "", FROND_RULE_ADJACENT_LEAVES, "leaf-1:16 leaf-2:1");
}

static void test_a_cap_on_gpus_per_leaf_counts_as_capacity(void)
{
	cluster("spine:1 leaf:4 node:4 gpu:8", "{\"topologyConstraints\":{\"maxGPUsPerLeaf\":12}}");
	expect_leaves(2, 4, "", FROND_RULE_SINGLE_NODE, "leaf-1:2");
	expect_leaves(3, 4, "", FROND_RULE_SAME_LEAF, "leaf-1:3");
	expect_leaves(4, 4, "", FROND_RULE_ADJACENT_LEAVES, "leaf-1:2 leaf-2:2"); /* no node is broken */
	expect_leaves(2, 8, "", FROND_RULE_ADJACENT_LEAVES, "leaf-1:1 leaf-2:1");
	expect_leaves(12, 4, "topology-mode=Ignore", FROND_RULE_NONE, "leaf-1:3 leaf-2:3 leaf-3:3 leaf-4:3");
	TEST_ASSERT_EQUAL_UINT32(FROND_NEVER, outcome_of(13, 4, ""));
}

static void test_a_cap_below_one_member_leaves_no_leaf_for_it(void)
{
	cluster("spine:1 leaf:2 node:2 gpu:8", "{\"topologyConstraints\":{\"maxGPUsPerLeaf\":4}}");
	TEST_ASSERT_EQUAL_UINT32(FROND_NEVER, outcome_of(1, 5, ""));
	expect_leaves(1, 4, "", FROND_RULE_SINGLE_NODE, "leaf-1:1");
	expect_leaves(2, 4, "", FROND_RULE_ADJACENT_LEAVES, "leaf-1:1 leaf-2:1");
}

static void test_a_cap_is_for_one_job_and_not_for_what_others_hold(void)
{
	cluster("spine:1 leaf:2 node:4 gpu:8", "{\"topologyConstraints\":{\"maxNodesPerLeaf\":2}}");
	place(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8});
	expect(&(struct wanted){.name = "b", .members = 2, .gpus = 8}, FROND_RULE_SAME_LEAF, "node-3 node-4");
}

static void test_with_a_cap_on_nodes_the_roomiest_are_taken(void)
{
	cluster("spine:1 leaf:2 node:3 gpu:8", "{\"topologyConstraints\":{\"maxNodesPerLeaf\":2}}");
	occupy(c, "node-1", 0x3f); /* two left, and the tightest */
	expect(&(struct wanted){.name = "a", .members = 4, .gpus = 4}, FROND_RULE_SAME_LEAF,
	       "node-2 node-2 node-3 node-3");
}

static void test_distributed_spreads_over_as_many_nodes_as_the_cap_allows(void)
{
	cluster("spine:1 leaf:4 node:4 gpu:8", "{\"topologyConstraints\":{\"maxNodesPerLeaf\":1}}");
	expect_leaves(8, 1, "placement-strategy=distributed", FROND_RULE_ADJACENT_LEAVES,
		      "leaf-1:2 leaf-2:2 leaf-3:2 leaf-4:2");
	TEST_ASSERT_EQUAL_UINT32(0, c->plan.flags);
	TEST_ASSERT_EQUAL_UINT32(4, c->plan.nodes);
}

static void test_pinned_members_count_for_the_caps(void)
{
	cluster("spine:1 leaf:2 node:3 gpu:8",
		"{\"topologyConstraints\":{\"maxNodesPerLeaf\":1,\"maxGPUsPerLeaf\":6}}");
	const uint32_t pinned[] = {1, FROND_NONE, FROND_NONE};
	place(c, &(struct wanted){.name = "a", .members = 1, .gpus = 3, .only = 2});
	expect(&(struct wanted){.name = "a", .members = 3, .gpus = 3, .pinned = pinned}, FROND_RULE_ADJACENT_LEAVES,
	       "node-2 node-4 node-4"); /* 2 × 5,750 in leaf-2; 5,178 and 5,375 one in each */
	const uint32_t sizes[] = {3, 4, 2};
	expect(&(struct wanted){.name = "a", .members = 3, .sizes = sizes, .pinned = pinned},
	       FROND_RULE_ADJACENT_LEAVES, "node-2 node-4 node-2");
}

static void test_pinned_members_count_for_the_caps_on_their_node_too(void)
{
	cluster("spine:1 leaf:1 node:2 gpu:8", "{\"topologyConstraints\":{\"maxGPUsPerLeaf\":3}}");
	node_put(c, 3, "stray", 8, NULL, NULL); /* in no leaf, so without a cap: it could hold both */
	place(c, &(struct wanted){.name = "a", .members = 1, .gpus = 2, .only = 1});
	const uint32_t pinned[] = {0, FROND_NONE, FROND_NONE}, sizes[] = {2, 1, 1};
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS,
				 plan(c, &(struct wanted){.name = "a", .members = 2, .gpus = 2, .pinned = pinned}));
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_SINGLE_NODE, c->plan.rule);
	TEST_ASSERT_EQUAL_UINT32(
		FROND_WAITS, plan(c, &(struct wanted){.name = "a", .members = 3, .sizes = sizes, .pinned = pinned}));
}

/* ---- pinned members --------------------------------------------------------------------------------------------- */

/* Books one member of the gang on a node, as a restart would find it. */
static void bound(uint32_t rank, const char *node, uint32_t mask)
{
	uint32_t slot = slot_of(c, node);
	struct frond_key gang = key_of("a", UINT64_MAX);
	int32_t code = pod_try(c, key_of("a", rank + 1), slot, (uint32_t)__builtin_popcount(mask), mask, "ns/a", gang);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, code);
}

static void test_the_rest_is_planned_around_those_that_are_bound(void)
{
	cluster("spine:1 leaf:3 node:4 gpu:8", "");
	bound(1, "node-6", 0xff); /* leaf-2 */
	const uint32_t pinned[] = {FROND_NONE, 5, FROND_NONE};
	expect(&(struct wanted){.name = "a", .members = 3, .gpus = 8, .pinned = pinned}, FROND_RULE_SAME_LEAF,
	       "node-5 node-6 node-7");
	TEST_ASSERT_EQUAL_HEX32(0xff, c->places[1].gpu_mask);
	const uint32_t eight[] = {FROND_NONE, 5,          FROND_NONE, FROND_NONE,
				  FROND_NONE, FROND_NONE, FROND_NONE, FROND_NONE};
	plan(c, &(struct wanted){.name = "a", .members = 8, .gpus = 8, .pinned = eight});
	TEST_ASSERT_EQUAL_STRING("leaf-1:4 leaf-2:4", leaves(c));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->reserve(c->engine, &c->request, c->members, c->places));
	check(c);
}

static void test_a_gang_for_one_node_stays_with_its_bound_member(void)
{
	cluster("spine:1 leaf:1 node:4 gpu:8", "");
	bound(0, "node-3", 0xc0);
	const uint32_t pinned[] = {2, FROND_NONE, FROND_NONE};
	expect(&(struct wanted){.name = "a", .members = 3, .gpus = 2, .pinned = pinned}, FROND_RULE_SINGLE_NODE,
	       "node-3 node-3 node-3");
	TEST_ASSERT_EQUAL_HEX32(0x03, c->places[1].gpu_mask);
	occupy(c, "node-3", 0x0f); /* two are left */
	plan(c, &(struct wanted){.name = "a", .members = 3, .gpus = 2, .pinned = pinned});
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, c->plan.outcome);
}

static void test_members_bound_apart_make_the_rule_impossible(void)
{
	cluster("spine:1 leaf:3 node:2 gpu:8", "");
	bound(0, "node-1", 0x0f);
	bound(1, "node-5", 0x0f);
	const uint32_t pinned[] = {0, 4, FROND_NONE};
	const struct wanted required = {.name = "a", .members = 3, .gpus = 4, .pinned = pinned};
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, plan(c, &required));
	struct wanted preferred = required;
	preferred.wishes = "topology-mode=Preferred";
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, plan(c, &preferred));
	TEST_ASSERT_EQUAL_STRING("node-1 node-5 node-1", spots(c)); /* no third leaf, no third node */
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_RELAXED, c->plan.flags);
	TEST_ASSERT_EQUAL_UINT32(2, c->plan.runs);
}

static void test_a_gang_that_is_all_bound_is_placed(void)
{
	cluster("spine:1 leaf:2 node:2 gpu:8", "");
	bound(0, "node-1", 0xff);
	bound(1, "node-2", 0xff);
	const uint32_t pinned[] = {0, 1};
	expect(&(struct wanted){.name = "a", .members = 2, .gpus = 8, .pinned = pinned}, FROND_RULE_COMPLETE_LEAF,
	       "node-1 node-2");
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->reserve(c->engine, &c->request, c->members, c->places));
}

/* One bound member outside the preferred domain and the gang cannot be inside it, however small that member is; one that
 * holds no GPU is nowhere. */
static void test_a_bound_member_outside_the_preferred_domain_keeps_the_gang_out_of_it(void)
{
	cluster("spine:2 leaf:2 node:2 gpu:8", "");
	const char *first = "topology-mode=Ignore placement-strategy=distributed preferred-domain=leaf-1",
		   *last = "topology-mode=Ignore placement-strategy=distributed preferred-domain=leaf-4";
	for (uint32_t gpus = 1; gpus <= 3; gpus++) {
		uint32_t pinned[] = {slot_of(c, "node-7"), FROND_NONE, FROND_NONE}, sizes[] = {gpus, gpus, gpus};
		struct wanted w = {.name = "a", .members = 3, .sizes = sizes, .pinned = pinned, .wishes = first};
		expect(&w, FROND_RULE_NONE, "node-7 node-1 node-3"); /* a leaf for each */
		w.wishes = last;
		expect(&w, FROND_RULE_NONE, "node-7 node-7 node-8");
		sizes[1] = 0;
		pinned[1] = slot_of(c, "node-1");
		expect(&w, FROND_RULE_NONE, "node-7 - node-8");
	}
}

static void test_a_pinned_member_that_the_ledger_does_not_know_makes_the_plan_stale(void)
{
	cluster("spine:1 leaf:2 node:2 gpu:8", "");
	const uint32_t pinned[] = {0, FROND_NONE};
	plan(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8, .pinned = pinned});
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, c->plan.outcome);
	TEST_ASSERT_EQUAL_HEX32(0, c->places[0].gpu_mask);
	TEST_ASSERT_EQUAL_INT32(FROND_STALE, abi->reserve(c->engine, &c->request, c->members, c->places));
	check(c);
}

static void test_a_cordon_does_not_touch_what_is_bound(void)
{
	cluster("spine:1 leaf:2 node:2 gpu:8", "");
	bound(0, "node-1", 0x0f);
	cordon(c, "node-1");
	const uint32_t pinned[] = {0, FROND_NONE, FROND_NONE};
	expect(&(struct wanted){.name = "a", .members = 3, .gpus = 4, .pinned = pinned}, FROND_RULE_COMPLETE_LEAF,
	       "node-1 node-2 node-2");
}

/* ---- members without GPUs, members of several sizes --------------------------------------------------------------- */

static void test_members_without_gpus_do_not_count_for_the_rule(void)
{
	cluster("spine:1 leaf:2 node:2 gpu:8", "");
	const uint32_t sizes[] = {0, 8, 0, 8, 0};
	expect(&(struct wanted){.name = "a", .members = 5, .sizes = sizes}, FROND_RULE_COMPLETE_LEAF,
	       "- node-1 - node-2 -");
	TEST_ASSERT_EQUAL_HEX32(0, c->places[0].gpu_mask);
}

static void test_a_gang_without_any_gpu_is_placed_nowhere(void)
{
	cluster("spine:1 leaf:1 node:1 gpu:8", "");
	place(c, &(struct wanted){.name = "a", .members = 2, .gpus = 0});
	TEST_ASSERT_EQUAL_STRING("- -", spots(c));
	TEST_ASSERT_EQUAL_STRING("no member asks for GPUs", c->text);
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_NONE, c->plan.rule);
	TEST_ASSERT_EQUAL_UINT32(0, c->plan.nodes);
	TEST_ASSERT_EQUAL_UINT32(2, stats(c).pods);
}

static void test_members_of_several_sizes_go_largest_first_and_ranks_stay_in_order(void)
{
	cluster("spine:1 leaf:2 node:3 gpu:8", "");
	const uint32_t one_node[] = {4, 2, 1};
	expect(&(struct wanted){.name = "a", .members = 3, .sizes = one_node}, FROND_RULE_SINGLE_NODE,
	       "node-1 node-1 node-1");
	const uint32_t one_leaf[] = {4, 8, 4, 8};
	expect(&(struct wanted){.name = "a", .members = 4, .sizes = one_leaf}, FROND_RULE_COMPLETE_LEAF,
	       "node-3 node-1 node-3 node-2");
	const uint32_t two_leaves[] = {8, 8, 8, 1};
	expect(&(struct wanted){.name = "a", .members = 4, .sizes = two_leaves}, FROND_RULE_ADJACENT_LEAVES,
	       "node-1 node-2 node-3 node-4");
}

static void test_members_of_several_sizes_are_distributed_too(void)
{
	cluster("spine:1 leaf:3 node:4 gpu:8", "");
	const uint32_t four[] = {2, 2, 1, 1}, six[] = {2, 2, 2, 1, 1, 1};
	struct wanted w = {.name = "a", .members = 4, .sizes = four, .wishes = "placement-strategy=distributed"};
	expect(&w, FROND_RULE_COMPLETE_LEAF, "node-1 node-2 node-3 node-4");
	w.wishes = "placement-strategy=distributed topology-mode=Ignore";
	expect(&w, FROND_RULE_NONE, "node-1 node-2 node-5 node-6"); /* two in the fullest leaf, not four */
	w = (struct wanted){.name = "a", .members = 6, .sizes = six, .wishes = "placement-strategy=distributed"};
	expect(&w, FROND_RULE_ADJACENT_LEAVES, "node-1 node-2 node-3 node-5 node-6 node-7"); /* three in each leaf */
	occupy(c, "node-3", 0xff);
	occupy(c, "node-4", 0xff);
	occupy(c, "node-6", 0xff);
	expect(&w, FROND_RULE_ADJACENT_LEAVES, "node-5 node-7 node-8 node-9 node-10 node-11"); /* leaf-2 and leaf-3 */
	w.wishes = "placement-strategy=balanced";
	expect(&w, FROND_RULE_SAME_LEAF,
	       "node-1 node-1 node-1 node-1 node-1 node-2"); /* leaf-3 is whole, leaf-1 a better fit than leaf-2 */
}

static void test_members_of_several_sizes_wait_relax_and_never_fit(void)
{
	cluster("spine:1 leaf:2 node:2 gpu:8", "");
	const uint32_t sizes[] = {8, 4, 4}, many[] = {8, 8, 8, 8, 1};
	occupy(c, "node-1", 0x1f);
	occupy(c, "node-3", 0x1f);
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, plan(c, &(struct wanted){.name = "a", .members = 3, .sizes = sizes}));
	struct wanted w = {.name = "a", .members = 3, .sizes = sizes, .wishes = "topology-mode=Preferred"};
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, plan(c, &w));
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_RELAXED, c->plan.flags);
	TEST_ASSERT_EQUAL_STRING("node-2 node-4 node-4", spots(c));
	TEST_ASSERT_EQUAL_UINT32(FROND_NEVER, plan(c, &(struct wanted){.name = "a", .members = 5, .sizes = many}));
}

static void test_members_of_several_sizes_do_not_cross_a_slow_link(void)
{
	cluster("apiVersion: topology.scheduler/v1alpha1\n"
		"kind: Fabric\n"
		"defaults: {gpus: 8}\n"
		"spines:\n"
		"- {name: s1, leaves: [{name: l1, uplinkGbps: 100, nodes: [a]}, {name: l2, nodes: [b]}]}\n"
		"- {name: s2, leaves: [{name: l3, nodes: [d, e]}]}\n",
		"");
	const uint32_t sizes[] = {8, 8, 4};
	struct wanted w = {.name = "a", .members = 3, .sizes = sizes, .wishes = "network-bandwidth=200Gb"};
	expect(&w, FROND_RULE_ADJACENT_SPINES, "b d e"); /* l1 is left out, its spine is not */
}

/* ---- room that the host counts ---------------------------------------------------------------------------------- */

static void test_room_bounds_what_fits_ever_and_today(void)
{
	cluster("spine:1 leaf:2 node:2 gpu:8", "");
	struct bound room[8];
	for (uint32_t i = 0; i < 8; i++)
		room[i] = (struct bound){.today = 8, .ever = 8};
	const struct wanted two = {.name = "a", .members = 2, .gpus = 8, .room = room};
	room[0].today = 0;
	expect(&two, FROND_RULE_COMPLETE_LEAF, "node-3 node-4");
	room[3].today = 0;
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, plan(c, &two));
	room[0].ever = room[3].ever = 0; /* not even on an empty day: the rule is another one */
	expect(&two, FROND_RULE_ADJACENT_LEAVES, "node-2 node-3");
	room[1].ever = 0;
	TEST_ASSERT_EQUAL_UINT32(FROND_NEVER, plan(c, &two));
}

static void test_room_that_a_taint_has_closed_for_long_is_no_capacity_for_the_rule(void)
{
	cluster("spine:1 leaf:2 node:2 gpu:8", "");
	struct bound room[8];
	for (uint32_t i = 0; i < 8; i++)
		room[i] = (struct bound){.today = 8, .ever = 8};
	const struct wanted two = {.name = "a", .members = 2, .gpus = 8, .room = room};
	room[0].today = room[3].today = 0;
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, plan(c, &two));
	room[0].unavailable = room[3].unavailable = 8;
	expect(&two, FROND_RULE_ADJACENT_LEAVES, "node-2 node-3");
	room[0].today = 8; /* what is no capacity takes nobody */
	expect(&two, FROND_RULE_ADJACENT_LEAVES, "node-2 node-3");
	room[1].today = 0;
	room[1].unavailable = 8;
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, plan(c, &two)); /* it would fit another day */
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_COMPLETE_LEAF, c->plan.rule);
	const struct wanted four = {.name = "a", .members = 4, .gpus = 8, .room = room},
			    five = {.name = "a", .members = 5, .gpus = 8, .room = room};
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, plan(c, &four));
	TEST_ASSERT_EQUAL_UINT32(FROND_NEVER, plan(c, &five));
	for (uint32_t i = 0; i < 8; i++)
		room[i] = (struct bound){.today = 2, .ever = 5, .unavailable = 3};
	expect(&(struct wanted){.name = "a", .members = 3, .gpus = 1, .room = room}, FROND_RULE_COMPLETE_LEAF,
	       "node-1 node-1 node-2");
}

static void test_room_counts_members_on_a_node(void)
{
	cluster("spine:1 leaf:1 node:3 gpu:8", "");
	struct bound room[7];
	for (uint32_t i = 0; i < 7; i++)
		room[i] = (struct bound){.today = 2, .ever = 2};
	expect(&(struct wanted){.name = "a", .members = 2, .gpus = 1, .room = room}, FROND_RULE_SINGLE_NODE,
	       "node-1 node-1");
	room[1].today = 1;
	expect(&(struct wanted){.name = "a", .members = 5, .gpus = 1, .room = room}, FROND_RULE_COMPLETE_LEAF,
	       "node-1 node-1 node-2 node-3 node-3");
	const uint32_t sizes[] = {1, 2, 1, 2, 1};
	plan(c, &(struct wanted){.name = "a", .members = 5, .sizes = sizes, .room = room});
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, c->plan.outcome, c->text);
	TEST_ASSERT_EQUAL_STRING("node-2 node-1 node-3 node-1 node-3", spots(c));
	room[1].today = 0;
	plan(c, &(struct wanted){.name = "a", .members = 5, .sizes = sizes, .room = room});
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, c->plan.outcome);
}

static void test_only_slot_plans_on_that_node_or_not_at_all(void)
{
	cluster("spine:1 leaf:2 node:2 gpu:8", "");
	expect(&(struct wanted){.name = "a", .members = 1, .gpus = 8, .only = 4}, FROND_RULE_SINGLE_NODE, "node-4");
	expect(&(struct wanted){.name = "a", .members = 2, .gpus = 4, .only = 3}, FROND_RULE_SINGLE_NODE,
	       "node-3 node-3");
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS,
				 plan(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8, .only = 1}));
	occupy(c, "node-4", 0x01);
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS,
				 plan(c, &(struct wanted){.name = "a", .members = 1, .gpus = 8, .only = 4}));
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS,
				 plan(c, &(struct wanted){.name = "a", .members = 1, .gpus = 8, .only = 8}));
}

/* ---- limits ----------------------------------------------------------------------------------------------------- */

static void test_sixteen_gpus_are_the_most_of_a_member(void)
{
	c = calloc(1, sizeof *c);
	TEST_ASSERT_NOT_NULL(c);
	engine_make(c, 4, 8, "", "");
	node_put(c, 0, "n", 16, "l", "s");
	expect(&(struct wanted){.name = "a", .members = 1, .gpus = 16}, FROND_RULE_SINGLE_NODE, "n");
	TEST_ASSERT_EQUAL_HEX32(0xffff, c->places[0].gpu_mask);
	TEST_ASSERT_EQUAL_UINT32(FROND_REFUSED, outcome_of(1, 17, ""));
	TEST_ASSERT_EQUAL_STRING("rank 0 asks for 17 GPUs, a node has at most 16", c->text);
	expect(&(struct wanted){.name = "a", .members = 16, .gpus = 1}, FROND_RULE_SINGLE_NODE,
	       "n n n n n n n n n n n n n n n n");
}

/* ---- what the core is told, and what it tells ------------------------------------------------------------------- */

static struct ask ask_of(const struct wanted *w, enum strategy strategy, enum mode mode)
{
	char in[CLUSTER_IN];
	struct frond_pair pairs[16];
	request_make(c, w, in, pairs);
	return (struct ask){.members = c->members,
			    .count = w->members,
			    .strategy = strategy,
			    .mode = mode,
			    .only_slot = FROND_NONE,
			    .domain_nvlink = FROND_NONE,
			    .gpu = GPU_WISH_DEFAULT,
			    .weight = WEIGHTS_TRAINING};
}

static void test_gpus_are_named_by_as_many_entries_as_the_ask_says(void)
{
	cluster("spine:1 leaf:1 node:1 gpu:8", "");
	struct answer answer;
	struct ask ask =
		ask_of(&(struct wanted){.name = "a", .members = 1, .gpus = 2}, STRATEGY_BALANCED, MODE_REQUIRED);
	ask.gpu.policy = GPU_PREFER;
	for (uint32_t i = 0; i < FROND_GPUS_MAX; i++)
		ask.named[i] = (struct gpu_named){.slot = 0, .mask = 1u << (7 - i % 8)};
	/* none: the lowest; GPU 7: with the lowest of its socket; then as many of the named as there are, the lowest */
	static const uint32_t masks[] = {0x03, 0x90, 0xc0, 0x60, 0x30};
	for (uint32_t count = 0; count < sizeof masks / sizeof *masks; count++) {
		ask.named_count = count;
		core_plan(&c->engine->core, &ask, &answer, c->places);
		TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, answer.plan.outcome);
		TEST_ASSERT_EQUAL_HEX32(masks[count], c->places[0].gpu_mask);
	}
}

/* Members on the same node, or in the same leaf: by a look at every pair. */
static uint32_t fullest(const uint32_t *at, uint32_t count)
{
	uint32_t most = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t same = 0;
		for (uint32_t j = 0; j < count; j++)
			same += at[i] == at[j];
		most = same > most ? same : most;
	}
	return most;
}

static uint32_t distinct(const uint32_t *at, uint32_t count)
{
	uint32_t out = 0;
	for (uint32_t i = 0; i < count; i++) {
		bool before = false;
		for (uint32_t j = 0; j < i; j++)
			before |= at[i] == at[j];
		out += !before;
	}
	return out;
}

enum { SPINES = 3, LEAVES = 3, EACH = 2, INSIDE = SPINES * LEAVES * EACH, STRAYS = 4 };

/* Slots are in fabric order. A stray is a leaf and a spine of its own, and next to nobody. */
static void extent_is_what_the_places_use(const struct extent *extent)
{
	uint32_t node[CLUSTER_MEMBERS], leaf[CLUSTER_MEMBERS], spine[CLUSTER_MEMBERS], count = 0, runs = 0;
	for (uint32_t i = 0; i < c->request.members; i++) {
		uint32_t slot = c->places[i].slot;
		if (slot == FROND_NONE)
			continue;
		node[count] = slot;
		leaf[count] = slot < INSIDE ? slot / EACH : 2 * slot;
		spine[count] = slot < INSIDE ? slot / EACH / LEAVES : slot;
		count++;
	}
	for (uint32_t at = 0; at < 2 * (INSIDE + STRAYS); at++) { /* a run begins where the leaf before is not in use */
		bool here = false, before = false;
		for (uint32_t i = 0; i < count; i++) {
			here |= leaf[i] == at;
			before |= leaf[i] + 1 == at && at % LEAVES != 0 && at < SPINES * LEAVES;
		}
		runs += here && !before;
	}
	TEST_ASSERT_EQUAL_UINT32(distinct(spine, count), extent->spines);
	TEST_ASSERT_EQUAL_UINT32(distinct(leaf, count), extent->leaves);
	TEST_ASSERT_EQUAL_UINT32(runs, extent->runs);
	TEST_ASSERT_EQUAL_UINT32(distinct(node, count), extent->nodes);
	TEST_ASSERT_EQUAL_UINT32(fullest(node, count), extent->fullest_node);
	TEST_ASSERT_EQUAL_UINT32(fullest(leaf, count), extent->fullest_leaf);
}

/* By what recover compares two plans. */
static void test_the_extent_of_a_plan_is_what_its_places_use(void)
{
	static const enum mode modes[] = {MODE_PREFERRED, MODE_IGNORE};
	uint32_t placed = 0, rounds = 400;
	const char *text = getenv("FROND_SEED");
	dice = text == NULL ? 5 : strtoull(text, NULL, 0);
	printf("seed %llu\n", (unsigned long long)dice);
	for (uint32_t round = 0; round < rounds; round++) {
		if (round % 20 == 0) {
			cluster("spine:3 leaf:3 node:2 gpu:4", "");
			for (uint32_t i = 0; i < STRAYS; i++) {
				char name[16];
				snprintf(name, sizeof name, "stray-%u", (unsigned)i);
				node_put(c, INSIDE + i, name, 4, NULL, NULL);
			}
			for (uint32_t slot = 0; slot < INSIDE + STRAYS; slot++)
				if (percent(60))
					occupy(c, c->nodes[slot].name, 1 + below(15));
		}
		uint32_t sizes[16], pinned[16], equal = below(3), count = 1 + below(16);
		for (uint32_t i = 0; i < count; i++) {
			sizes[i] = percent(10) ? 0 : equal != 0 ? equal : 1 + below(3);
			pinned[i] = percent(20) && sizes[i] > 0 ? below(INSIDE + STRAYS) : FROND_NONE;
		}
		struct wanted w = {.name = "a", .members = count, .sizes = sizes, .pinned = pinned};
		struct ask ask = ask_of(&w, (enum strategy)below(3), modes[below(2)]);
		struct answer answer;
		core_plan(&c->engine->core, &ask, &answer, c->places);
		if (answer.plan.outcome != FROND_PLACED)
			continue;
		placed++;
		extent_is_what_the_places_use(&answer.extent);
	}
	TEST_ASSERT_GREATER_THAN_UINT32(rounds / 3, placed);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_a_cap_on_nodes_per_leaf_counts_as_capacity);
	RUN_TEST(test_a_cap_on_gpus_per_leaf_counts_as_capacity);
	RUN_TEST(test_a_cap_below_one_member_leaves_no_leaf_for_it);
	RUN_TEST(test_a_cap_is_for_one_job_and_not_for_what_others_hold);
	RUN_TEST(test_with_a_cap_on_nodes_the_roomiest_are_taken);
	RUN_TEST(test_distributed_spreads_over_as_many_nodes_as_the_cap_allows);
	RUN_TEST(test_pinned_members_count_for_the_caps);
	RUN_TEST(test_pinned_members_count_for_the_caps_on_their_node_too);
	RUN_TEST(test_the_rest_is_planned_around_those_that_are_bound);
	RUN_TEST(test_a_gang_for_one_node_stays_with_its_bound_member);
	RUN_TEST(test_members_bound_apart_make_the_rule_impossible);
	RUN_TEST(test_a_gang_that_is_all_bound_is_placed);
	RUN_TEST(test_a_bound_member_outside_the_preferred_domain_keeps_the_gang_out_of_it);
	RUN_TEST(test_a_pinned_member_that_the_ledger_does_not_know_makes_the_plan_stale);
	RUN_TEST(test_a_cordon_does_not_touch_what_is_bound);
	RUN_TEST(test_members_without_gpus_do_not_count_for_the_rule);
	RUN_TEST(test_a_gang_without_any_gpu_is_placed_nowhere);
	RUN_TEST(test_members_of_several_sizes_go_largest_first_and_ranks_stay_in_order);
	RUN_TEST(test_members_of_several_sizes_are_distributed_too);
	RUN_TEST(test_members_of_several_sizes_wait_relax_and_never_fit);
	RUN_TEST(test_members_of_several_sizes_do_not_cross_a_slow_link);
	RUN_TEST(test_room_bounds_what_fits_ever_and_today);
	RUN_TEST(test_room_that_a_taint_has_closed_for_long_is_no_capacity_for_the_rule);
	RUN_TEST(test_room_counts_members_on_a_node);
	RUN_TEST(test_only_slot_plans_on_that_node_or_not_at_all);
	RUN_TEST(test_sixteen_gpus_are_the_most_of_a_member);
	RUN_TEST(test_gpus_are_named_by_as_many_entries_as_the_ask_says);
	RUN_TEST(test_the_extent_of_a_plan_is_what_its_places_use);
	return UNITY_END();
}
