/* SPDX-License-Identifier: Apache-2.0 */
/* The sentences, byte for byte: users, events and scripts read them. */
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

static void expect(uint32_t members, uint32_t gpus, const char *wishes, const char *sentence)
{
	plan(c, &(struct wanted){.name = "a", .members = members, .gpus = gpus, .wishes = wishes});
	TEST_ASSERT_EQUAL_STRING(sentence, c->text);
}

static void expect_sizes(const uint32_t *sizes, uint32_t members, const char *wishes, const char *sentence)
{
	plan(c, &(struct wanted){.name = "a", .members = members, .sizes = sizes, .wishes = wishes});
	TEST_ASSERT_EQUAL_STRING(sentence, c->text);
}

/* ---- waiting ---------------------------------------------------------------------------------------------------- */

static void test_the_sentence_of_the_specification(void)
{
	cluster("spine:1 leaf:4 node:4 gpu:8");
	occupy(c, "node-1", 0xff);
	occupy(c, "node-5", 0xff);
	occupy(c, "node-6", 0xff);
	cordon(c, "node-14");
	expect(8, 8, "", "needs 8 nodes in 2 adjacent leaves; best run leaf-3..leaf-4 has 7 free (node-14 cordoned)");
}

static void test_one_leaf_and_a_complete_leaf(void)
{
	cluster("spine:1 leaf:2 node:4 gpu:8");
	occupy(c, "node-1", 0x01);
	occupy(c, "node-5", 0xff);
	occupy(c, "node-6", 0xff);
	node_flags(c, "node-2", FROND_NODE_DOWN);
	expect(3, 8, "", "needs 3 nodes in one leaf; best leaf-1 has 2 free (node-2 not ready, node-1 in use)");
	node_flags(c, "node-2", 0);
	expect(4, 8, "", "needs 4 nodes in one complete leaf; best leaf-1 has 3 free (node-1 in use)");
}

static void test_one_node(void)
{
	cluster("spine:1 leaf:1 node:3 gpu:8");
	occupy(c, "node-1", 0x07);
	occupy(c, "node-2", 0x01);
	cordon(c, "node-3");
	expect(1, 8, "", "needs 1 node with 8 free GPUs; best node-2 has 7 free GPUs (node-2 in use)");
	expect(4, 2, "", "needs 1 node with 8 free GPUs; best node-2 has 7 free GPUs (node-2 in use)");
	cluster("spine:1 leaf:1 node:1 gpu:1");
	cordon(c, "node-1");
	expect(1, 1, "", "needs 1 node with 1 free GPU; best node-1 has 0 free GPUs (node-1 cordoned)");
}

static void test_small_members_are_counted_as_members(void)
{
	cluster("spine:1 leaf:2 node:2 gpu:8");
	occupy(c, "node-1", 0xfe);
	occupy(c, "node-3", 0x3f);
	expect(6, 2, "", "needs 6 members of 2 GPUs in one complete leaf; best leaf-2 has room for 5 (node-3 in use)");
	expect(16, 1, "",
	       "needs 16 members of 1 GPU in one complete leaf; best leaf-2 has room for 10 (node-3 in use)");
	expect(10, 2, "",
	       "needs 10 members of 2 GPUs in 2 adjacent leaves; best run leaf-1..leaf-2 has room for 9 (2 nodes in "
	       "use)");
}

static void test_adjacent_spines(void)
{
	cluster("spine:3 leaf:1 node:2 gpu:8");
	occupy(c, "node-1", 0xff);
	occupy(c, "node-4", 0xff);
	expect(4, 8, "", "needs 4 nodes in 2 adjacent spines; best run spine-2..spine-3 has 3 free (node-4 in use)");
}

static void test_enough_in_all_but_with_a_break_in_between(void)
{
	cluster("apiVersion: topology.scheduler/v1alpha1\n"
		"kind: Fabric\n"
		"defaults: {gpus: 8}\n"
		"spines:\n"
		"- {name: s1, leaves: [{name: l1, nodes: [a1, a2, a3]}]}\n"
		"- {name: s2, leaves: [{name: l2, nodes: [b1]}]}\n"
		"- {name: s3, leaves: [{name: l3, nodes: [c1, c2, c3]}]}\n");
	cordon(c, "b1");
	expect(6, 8, "", "needs 6 nodes in 3 adjacent spines; best run s1..s3 has 6 free but none in s2 (b1 cordoned)");
	expect(7, 8, "", "needs 7 nodes in 3 adjacent spines; best run s1..s3 has 6 free (b1 cordoned)");
}

static void test_without_a_rule_the_whole_cluster_counts(void)
{
	cluster("spine:1 leaf:2 node:2 gpu:8");
	cordon(c, "node-3");
	expect(4, 8, "topology-mode=Ignore", "needs 4 nodes; the cluster has 3 free (node-3 cordoned)");
	expect(4, 8, "topology-mode=Preferred", "needs 4 nodes; the cluster has 3 free (node-3 cordoned)");
	expect(4, 8, "topology-mode=Ignore preferred-domain=moon",
	       "needs 4 nodes; the cluster has 3 free (node-3 cordoned); preferred-domain is not in the fabric");
}

static void test_every_cause_is_named_once_or_counted(void)
{
	cluster("spine:1 leaf:1 node:10 gpu:8");
	struct bound room[14];
	for (uint32_t i = 0; i < 14; i++)
		room[i] = (struct bound){8, 8, 0};
	room[9].today = 0;
	cordon(c, "node-1");
	node_flags(c, "node-2", FROND_NODE_DOWN);
	node_flags(c, "node-3", FROND_NODE_DOWN | FROND_NODE_CORDONED);
	unhealthy(c, "node-4", 0x01);
	occupy(c, "node-5", 0x01);
	unhealthy(c, "node-5", 0x02); /* in use comes before sick */
	occupy_by_count(c, "node-6", 1);
	plan(c, &(struct wanted){.name = "a", .members = 9, .gpus = 8, .room = room});
	TEST_ASSERT_EQUAL_STRING(
		"needs 9 nodes in one leaf; best leaf-1 has 3 free (node-1 cordoned, 2 nodes not ready, "
		"node-4 with unhealthy GPUs, 2 nodes in use, node-10 ruled out by other constraints)",
		c->text);
}

static void test_a_run_across_a_slow_link_is_not_the_best(void)
{
	cluster("apiVersion: topology.scheduler/v1alpha1\n"
		"kind: Fabric\n"
		"defaults: {gpus: 8}\n"
		"spines:\n"
		"- name: s\n"
		"  leaves:\n"
		"  - {name: l1, uplinkGbps: 100, nodes: [a1, a2]}\n"
		"  - {name: l2, nodes: [b1, b2]}\n"
		"  - {name: l3, nodes: [c1, c2]}\n");
	cordon(c, "c2");
	expect(4, 8, "network-bandwidth=200Gb",
	       "needs 4 nodes in 2 adjacent leaves; best run l2..l3 has 3 free (c2 cordoned)");
}

static void test_members_of_several_sizes(void)
{
	cluster("spine:1 leaf:2 node:2 gpu:8");
	const uint32_t sizes[] = {8, 4, 4}, many[] = {8, 8, 8, 8, 4};
	occupy(c, "node-1", 0x1f);
	occupy(c, "node-3", 0x1f);
	expect_sizes(
		sizes, 3, "",
		"needs 3 members with 16 GPUs in one complete leaf; the cluster has 22 free GPUs (2 nodes in use)");
	expect_sizes(many, 5, "", "never fits: needs 5 members with 36 GPUs; the cluster could hold 32 GPUs at best");
}

/* ---- never, refused --------------------------------------------------------------------------------------------- */

static void test_never_says_what_the_cluster_could_hold(void)
{
	cluster("spine:1 leaf:2 node:2 gpu:8");
	expect(5, 8, "", "never fits: needs 5 nodes; the cluster could hold 4 of them at best");
	expect(33, 1, "", "never fits: needs 33 members of 1 GPU; the cluster could hold 32 of them at best");
	expect(1, 9, "", "never fits: needs 1 node; the cluster could hold 0 of them at best");
	expect(1, 8, "network-bandwidth=100Gb", "1 member on 1 node in 1 leaf under 1 spine; rule single node met");
}

static void test_what_a_user_got_wrong_is_refused_in_words(void)
{
	cluster("spine:1 leaf:2 node:2 gpu:8");
	expect(2, 8, "gpu-count=16", "2 members on 2 nodes in 1 leaf under 1 spine; rule complete leaf met");
	expect(2, 8, "gpu-count=15", "topology.scheduler/gpu-count is 15 but the limits of the pods add up to 16");
	TEST_ASSERT_EQUAL_UINT32(FROND_REFUSED, c->plan.outcome);
	expect(1, 17, "", "rank 0 asks for 17 GPUs, a node has at most 16");
	TEST_ASSERT_EQUAL_UINT32(FROND_REFUSED, c->plan.outcome);
	expect(3, 8, "latency-sensitive=true",
	       "latency-sensitive asks for one leaf at most, but 3 nodes never fit in one leaf");
	TEST_ASSERT_EQUAL_UINT32(FROND_REFUSED, c->plan.outcome);
	plan(c, &(struct wanted){.name = "a", .members = 1, .gpus = 1, .wishes = "topology-mode=Maybe"});
	TEST_ASSERT_EQUAL_UINT32(FROND_REFUSED, c->plan.outcome);
	TEST_ASSERT_NOT_NULL(strstr(c->text, "topology.scheduler/topology-mode"));
	TEST_ASSERT_NOT_NULL(strstr(c->text, "Maybe"));
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_NONE, c->plan.rule);
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, c->plan.wait_ms);
}

static void min_member(uint32_t least, const char *sentence)
{
	struct frond_member member = {.pod = {1, 1}, .gpus = 1, .pinned_slot = FROND_NONE};
	struct frond_request request = {
		.gang = {1, 1}, .members = 1, .min_member = least, .gpus_desired = 1, .only_slot = FROND_NONE};
	int32_t code = abi->plan(c->engine, &request, &member, NULL, NULL, 0, NULL, 0, &c->plan, c->places, c->text,
				 CLUSTER_TEXT - 1, &c->len);
	c->text[c->len] = 0;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, code);
	TEST_ASSERT_EQUAL_STRING(sentence, c->text);
}

static void test_min_member_has_bounds(void)
{
	cluster("spine:1 leaf:2 node:2 gpu:8");
	min_member(0, "minMember must be between 1 and 16384, got 0");
	TEST_ASSERT_EQUAL_UINT32(FROND_REFUSED, c->plan.outcome);
	min_member(16384, "1 member on 1 node in 1 leaf under 1 spine; rule single node met");
	min_member(16385, "minMember must be between 1 and 16384, got 16385");
	TEST_ASSERT_EQUAL_UINT64(2, stats(c).refused);
}

/* ---- placed ----------------------------------------------------------------------------------------------------- */

static void test_placed_says_where_in_numbers_and_which_rule(void)
{
	cluster("spine:2 leaf:2 node:2 gpu:8");
	expect(1, 8, "", "1 member on 1 node in 1 leaf under 1 spine; rule single node met");
	expect(2, 8, "", "2 members on 2 nodes in 1 leaf under 1 spine; rule complete leaf met");
	expect(9, 1, "", "9 members on 2 nodes in 1 leaf under 1 spine; rule complete leaf met");
	expect(4, 8, "", "4 members on 4 nodes in 2 leaves under 1 spine; rule adjacent leaves met");
	expect(8, 8, "", "8 members on 8 nodes in 4 leaves under 2 spines; rule adjacent spines met");
	expect(2, 8, "topology-mode=Ignore", "2 members on 2 nodes in 1 leaf under 1 spine");
	expect(2, 8, "preferred-domain=leaf-9",
	       "2 members on 2 nodes in 1 leaf under 1 spine; rule complete leaf met; preferred-domain is not in the "
	       "fabric");
	expect(1, 0, "", "no member asks for GPUs");
	cluster("spine:1 leaf:2 node:3 gpu:8");
	expect(2, 8, "", "2 members on 2 nodes in 1 leaf under 1 spine; rule same leaf met");
}

static void test_relaxed_names_the_rule_that_was_missed(void)
{
	cluster("spine:1 leaf:3 node:1 gpu:8");
	occupy(c, "node-2", 0xff);
	expect(2, 8, "topology-mode=Preferred",
	       "2 members on 2 nodes in 2 leaves under 1 spine; rule adjacent leaves relaxed");
	node_remove(c, slot_of(c, "node-2"));
	expect(2, 8, "",
	       "2 members on 2 nodes in 2 leaves under 1 spine; rule adjacent spines relaxed; the fabric could never "
	       "meet it");
}

static void test_pinned_members_are_part_of_the_numbers(void)
{
	cluster("spine:1 leaf:3 node:2 gpu:8");
	place(c, &(struct wanted){.name = "a", .members = 1, .gpus = 8});
	const uint32_t pinned[] = {0, FROND_NONE}, apart[] = {0, 4, FROND_NONE};
	struct wanted w = {.name = "a", .members = 2, .gpus = 8, .pinned = pinned};
	plan(c, &w);
	TEST_ASSERT_EQUAL_STRING("2 members on 2 nodes in 1 leaf under 1 spine; rule complete leaf met", c->text);
	occupy(c, "node-2", 0x01);
	plan(c, &w); /* leaf-2 is free, but the bound member is not there; its node is no obstacle */
	TEST_ASSERT_EQUAL_STRING("needs 2 nodes in one complete leaf; best leaf-1 has 0 free (node-2 in use)", c->text);
	w = (struct wanted){.name = "a", .members = 3, .gpus = 8, .pinned = apart};
	plan(c, &w);
	TEST_ASSERT_EQUAL_STRING("needs 3 nodes in 2 adjacent leaves; its bound members are apart", c->text);
}

/* ---- when little or nothing is free ---- */

static void full(const char *fabric, uint32_t mask)
{
	cluster(fabric);
	for (uint32_t slot = 0; slot < c->count; slot++)
		occupy(c, c->nodes[slot].name, mask);
}

static void test_a_full_cluster_names_the_first_place_and_no_room(void)
{
	full("spine:2 leaf:2 node:2 gpu:8", 0xff);
	expect(1, 8, "", "needs 1 node with 8 free GPUs; best node-1 has 0 free GPUs (node-1 in use)");
	expect(2, 8, "", "needs 2 nodes in one complete leaf; best leaf-1 has 0 free (2 nodes in use)");
	expect(3, 8, "", "needs 3 nodes in 2 adjacent leaves; best run leaf-1..leaf-2 has 0 free (4 nodes in use)");
	expect(5, 8, "", "needs 5 nodes in 2 adjacent spines; best run spine-1..spine-2 has 0 free (8 nodes in use)");
	expect(2, 8, "topology-mode=Ignore", "needs 2 nodes; the cluster has 0 free (8 nodes in use)");
	expect(2, 8, "topology-mode=Preferred", "needs 2 nodes; the cluster has 0 free (8 nodes in use)");
}

static void test_of_equal_places_the_first_is_named(void)
{
	full("spine:2 leaf:2 node:2 gpu:8", 0x0f);
	expect(1, 8, "", "needs 1 node with 8 free GPUs; best node-1 has 4 free GPUs (node-1 in use)");
	expect(4, 4, "", "needs 4 members of 4 GPUs in one complete leaf; best leaf-1 has room for 2 (2 nodes in use)");
	expect(5, 4, "",
	       "needs 5 members of 4 GPUs in 2 adjacent leaves; best run leaf-1..leaf-2 has room for 4 (4 nodes in "
	       "use)");
}

static void test_the_place_with_most_room_is_named_wherever_it_is(void)
{
	full("spine:3 leaf:2 node:2 gpu:8", 0x0f);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release(c->engine, &(struct frond_key){1, 8})); /* node-8, leaf-4 */
	check(c);
	expect(2, 8, "", "needs 2 nodes in one complete leaf; best leaf-4 has 1 free (node-7 in use)");
	expect(3, 8, "", "needs 3 nodes in 2 adjacent leaves; best run leaf-3..leaf-4 has 1 free (3 nodes in use)");
	expect(5, 8, "", "needs 5 nodes in 2 adjacent spines; best run spine-1..spine-2 has 1 free (7 nodes in use)");
	cordon(c, "node-8");
	expect(2, 8, "", "needs 2 nodes in one complete leaf; best leaf-1 has 0 free (2 nodes in use)");
	node_flags(c, "node-8", 0);
	occupy(c, "node-8", 0x01);
	expect(1, 8, "", "needs 1 node with 8 free GPUs; best node-8 has 7 free GPUs (node-8 in use)");
}

static void test_a_leaf_in_between_without_room_is_named(void)
{
	cluster("apiVersion: topology.scheduler/v1alpha1\n"
		"kind: Fabric\n"
		"defaults: {gpus: 8}\n"
		"spines:\n"
		"- {name: s, leaves: [{name: l1, nodes: [a1, a2, a3]}, {name: l2, nodes: [b1]}, {name: l3, nodes: [d1, "
		"d2, "
		"d3]}]}\n");
	cordon(c, "b1");
	expect(6, 8, "", "needs 6 nodes in 3 adjacent leaves; best run l1..l3 has 6 free but none in l2 (b1 cordoned)");
	expect(7, 8, "", "needs 7 nodes in 3 adjacent leaves; best run l1..l3 has 6 free (b1 cordoned)");
}

/* Only a gang that stays inside a leaf with a slow link may use it: it counts by itself or not at all. */
static void test_a_leaf_behind_a_slow_link_counts_by_itself(void)
{
	cluster("apiVersion: topology.scheduler/v1alpha1\n"
		"kind: Fabric\n"
		"defaults: {gpus: 8}\n"
		"spines:\n"
		"- {name: s, leaves: [{name: l1, uplinkGbps: 100, nodes: [a1, a2, a3, a4]}, {name: l2, nodes: [b1, "
		"b2]}]}\n");
	occupy(c, "a1", 0xff);
	expect(4, 8, "topology-mode=Ignore network-bandwidth=200Gb",
	       "needs 4 nodes; the cluster has 3 free (a1 in use)");
	occupy(c, "a2", 0xff);
	occupy(c, "a3", 0xff);
	expect(4, 8, "topology-mode=Ignore network-bandwidth=200Gb",
	       "needs 4 nodes; the cluster has 2 free (3 nodes in use)");
	TEST_ASSERT_EQUAL_UINT32(FROND_NEVER, plan(c, &(struct wanted){.name = "a",
								       .members = 6,
								       .gpus = 8,
								       .wishes = "topology-mode=Ignore "
										 "network-bandwidth=200Gb"}));
	TEST_ASSERT_NOT_NULL(strstr(c->text, "could hold 4 of them at best"));
}

/* ---- repair ----------------------------------------------------------------------------------------------------- */

static void run(const char *name, uint32_t members, const char *wishes)
{
	struct wanted w = {.name = name, .members = members, .gpus = 8, .wishes = wishes};
	struct frond_pair pairs[16];
	char in[CLUSTER_IN];
	place(c, &w);
	uint32_t in_len = request_make(c, &w, in, pairs);
	TEST_ASSERT_EQUAL_INT32(
		FROND_OK, abi->gang_put(c->engine, &c->request, pairs, in, in_len, c->text, CLUSTER_TEXT - 1, &c->len));
	for (uint32_t i = 0; i < members; i++)
		TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->confirm(c->engine, &c->members[i].pod));
}

static void expect_repair(const char *name, const char *sentence)
{
	struct frond_key key = key_of(name, UINT64_MAX);
	struct frond_moves out;
	struct frond_move moves[16];
	remember(c);
	TEST_ASSERT_EQUAL_INT32(
		FROND_OK, abi->recover(c->engine, &key, NULL, 0, &out, moves, 16, c->text, CLUSTER_TEXT - 1, &c->len));
	c->text[c->len] = 0;
	TEST_ASSERT_EQUAL_STRING(sentence, c->text);
	unchanged(c);
}

static void test_a_gang_that_insists_is_told_what_each_policy_would_do(void)
{
	cluster("spine:2 leaf:4 node:4 gpu:8");
	run("a", 8, "topology-mode=Required");
	run("b", 8, "topology-mode=Required recovery=Wait");
	node_flags(c, "node-3", FROND_NODE_DOWN);
	expect_repair("a", "no spare in leaf-1..leaf-2; Preferred: rank 2 → node-17; MoveGang: 8 moves");
	for (uint32_t i = 0; i < 5; i++) {
		char node[16];
		snprintf(node, sizeof node, "node-%u", (unsigned)(3 + i));
		node_flags(c, node, FROND_NODE_DOWN);
	}
	expect_repair("a",
		      "no spare in leaf-1..leaf-2; Preferred: rank 2 → node-17, rank 3 → node-18, rank 4 → node-19 "
		      "and 2 more; MoveGang: 8 moves");
	node_flags(c, "node-9", FROND_NODE_DOWN);
	expect_repair("b", "members are lost, and its recovery policy is Wait");
}

static void test_where_nothing_helps_that_is_said(void)
{
	cluster("spine:1 leaf:1 node:4 gpu:8");
	run("a", 4, "topology-mode=Required");
	node_flags(c, "node-3", FROND_NODE_DOWN);
	expect_repair("a", "no spare in leaf-1; Preferred: no moves help; MoveGang: no moves help");
}

static void test_a_repair_that_relaxes_the_rule_says_so(void)
{
	cluster("spine:2 leaf:1 node:4 gpu:8");
	run("a", 4, "");
	node_flags(c, "node-3", FROND_NODE_DOWN);
	expect_repair("a", "1 move repairs the gang with the rule relaxed; fewer than 1 are not possible");
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_the_sentence_of_the_specification);
	RUN_TEST(test_one_leaf_and_a_complete_leaf);
	RUN_TEST(test_one_node);
	RUN_TEST(test_small_members_are_counted_as_members);
	RUN_TEST(test_adjacent_spines);
	RUN_TEST(test_enough_in_all_but_with_a_break_in_between);
	RUN_TEST(test_without_a_rule_the_whole_cluster_counts);
	RUN_TEST(test_every_cause_is_named_once_or_counted);
	RUN_TEST(test_a_run_across_a_slow_link_is_not_the_best);
	RUN_TEST(test_members_of_several_sizes);
	RUN_TEST(test_never_says_what_the_cluster_could_hold);
	RUN_TEST(test_what_a_user_got_wrong_is_refused_in_words);
	RUN_TEST(test_min_member_has_bounds);
	RUN_TEST(test_placed_says_where_in_numbers_and_which_rule);
	RUN_TEST(test_relaxed_names_the_rule_that_was_missed);
	RUN_TEST(test_pinned_members_are_part_of_the_numbers);
	RUN_TEST(test_a_full_cluster_names_the_first_place_and_no_room);
	RUN_TEST(test_of_equal_places_the_first_is_named);
	RUN_TEST(test_the_place_with_most_room_is_named_wherever_it_is);
	RUN_TEST(test_a_leaf_in_between_without_room_is_named);
	RUN_TEST(test_a_leaf_behind_a_slow_link_counts_by_itself);
	RUN_TEST(test_a_gang_that_insists_is_told_what_each_policy_would_do);
	RUN_TEST(test_where_nothing_helps_that_is_said);
	RUN_TEST(test_a_repair_that_relaxes_the_rule_says_so);
	return UNITY_END();
}
