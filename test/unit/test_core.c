/* SPDX-License-Identifier: Apache-2.0 */
/* Reservations and bound pods: booked as a whole or not at all, given back exactly, counted right. */
#include "cluster.h"

static struct cluster *c;
static const struct frond_key nobody = {0, 0};

void setUp(void)
{
	c = cluster_make("spine:1 leaf:2 node:2 gpu:8", "");
}

void tearDown(void)
{
	cluster_free(c);
}

/* ---- reserve ---------------------------------------------------------------------------------------------------- */

static void planned(void) /* three members of two GPUs on node-1, not booked yet */
{
	plan(c, &(struct wanted){.name = "a", .members = 3, .gpus = 2});
	TEST_ASSERT_EQUAL_STRING("node-1 node-1 node-1", spots(c));
	remember(c);
}

static void reserve(int32_t expected)
{
	TEST_ASSERT_EQUAL_INT32(expected, abi->reserve(c->engine, &c->request, c->members, c->places));
	if (expected != FROND_OK)
		unchanged(c);
	check(c);
}

static void test_a_plan_is_booked_as_it_was_made(void)
{
	planned();
	reserve(FROND_OK);
	TEST_ASSERT_EQUAL_UINT32(6, stats(c).gpus_reserved);
	TEST_ASSERT_TRUE(stats(c).generation > c->generation);
	TEST_ASSERT_NOT_NULL(
		strstr(dump(c), "node 0 gpus 8 topology 1 unhealthy 0 unavailable 0 flags 0 uplink 0 held 3f count 0"));
	remember(c);
	reserve(FROND_STALE); /* they hold something already */
}

static void test_reserve_refuses_malformed_calls(void)
{
	planned();
	c->request.gang = nobody;
	reserve(FROND_BAD);
	planned();
	c->request.members = 0;
	reserve(FROND_BAD);
	c->request.members = FROND_MEMBERS_MAX + 1;
	reserve(FROND_BAD);
	planned();
	c->members[2].pod = nobody;
	reserve(FROND_BAD);
	planned();
	c->places[2].slot = c->limits.nodes;
	reserve(FROND_BAD);
	c->places[2].slot = FROND_NONE;
	reserve(FROND_BAD);
	planned();
	c->places[2].gpu_mask = 0x10; /* one GPU where two were asked */
	reserve(FROND_BAD);
	c->places[2].gpu_mask = 0;
	reserve(FROND_BAD);
}

static void test_a_plan_is_stale_when_a_gpu_or_node_is_no_longer_to_be_had(void)
{
	planned();
	struct frond_key other = occupy(c, "node-1", 0x20);
	remember(c);
	reserve(FROND_STALE);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release(c->engine, &other));
	unhealthy(c, "node-1", 0x01);
	remember(c);
	reserve(FROND_STALE);
	unhealthy(c, "node-1", 0);
	cordon(c, "node-1");
	remember(c);
	reserve(FROND_STALE);
	node_flags(c, "node-1", FROND_NODE_DOWN);
	remember(c);
	reserve(FROND_STALE);
	node_remove(c, 0);
	remember(c);
	reserve(FROND_STALE);
	node_flags(c, "node-1", 0); /* it is back */
	reserve(FROND_OK);
}

static void test_a_plan_is_stale_when_pods_by_count_leave_too_little(void)
{
	planned();
	occupy_by_count(c, "node-1", 3); /* five are left for six; no mask collides */
	remember(c);
	reserve(FROND_STALE);
}

static void test_members_may_not_share_a_gpu_or_a_key(void)
{
	planned();
	c->places[2] = c->places[0];
	reserve(FROND_STALE);
	planned();
	c->members[2].pod = c->members[0].pod;
	reserve(FROND_STALE);
	planned();
	c->places[1].gpu_mask = 0x300; /* the node has eight */
	reserve(FROND_STALE);
	planned();
	reserve(FROND_OK);
}

static void test_members_of_a_booked_gang_may_join_later(void)
{
	place(c, &(struct wanted){.name = "a", .members = 1, .gpus = 2});
	const uint32_t pinned[] = {0, FROND_NONE};
	place(c, &(struct wanted){.name = "a", .members = 2, .gpus = 2, .pinned = pinned});
	TEST_ASSERT_EQUAL_UINT32(1, stats(c).gangs);
	TEST_ASSERT_EQUAL_UINT32(2, stats(c).pods);
}

static void test_what_is_unknown_is_said_to_be(void)
{
	struct frond_key pod = {77, 77};
	struct frond_place place_out;
	uint32_t verdict = 5, pods = 5;
	remember(c);
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, abi->permit(c->engine, &pod, &verdict));
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, abi->confirm(c->engine, &pod));
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, abi->release(c->engine, &pod));
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN,
				abi->binding(c->engine, &pod, &place_out, c->text, CLUSTER_TEXT, &c->len));
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, abi->release(c->engine, &nobody));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release_gang(c->engine, &pod, &pods));
	TEST_ASSERT_EQUAL_UINT32(5, verdict);
	TEST_ASSERT_EQUAL_UINT32(0, pods);
	unchanged(c);
}

static void test_what_was_booked_comes_back_whole(void)
{
	remember(c);
	place(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8});
	place(c, &(struct wanted){.name = "b", .members = 3, .gpus = 3});
	release(c, "a", 2);
	release(c, "b", 3);
	TEST_ASSERT_EQUAL_STRING(c->before, dump(c));
	struct frond_key pod = key_of("a", 1);
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, abi->release(c->engine, &pod)); /* twice is once too often */
}

/* ---- bound pods ------------------------------------------------------------------------------------------------- */

static void put(struct frond_key pod, const char *node, uint32_t gpus, uint32_t mask)
{
	uint32_t slot = slot_of(c, node);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, pod_try(c, pod, slot, gpus, mask, "ns/p", nobody));
	check(c);
}

static void test_a_pod_that_is_put_again_is_there_once(void)
{
	const struct frond_key pod = {4, 4};
	put(pod, "node-1", 2, 0x03);
	remember(c);
	put(pod, "node-1", 2, 0x03);
	unchanged(c);
	put(pod, "node-1", 2, 0); /* its annotation got lost: what we know stays */
	unchanged(c);
	TEST_ASSERT_EQUAL_UINT64(0, stats(c).conflicts);
}

static void test_a_pod_that_moves_or_changes_its_size_is_entered_anew(void)
{
	const struct frond_key pod = {4, 4};
	put(pod, "node-1", 2, 0x03);
	put(pod, "node-2", 2, 0x0c);
	TEST_ASSERT_EQUAL_UINT32(1, stats(c).pods);
	TEST_ASSERT_EQUAL_UINT32(2, stats(c).gpus_bound);
	TEST_ASSERT_NOT_NULL(strstr(dump(c), "bound node 1 mask c count 0"));
	put(pod, "node-2", 1, 0x80);
	TEST_ASSERT_NOT_NULL(strstr(dump(c), "bound node 1 mask 80 count 0"));
	put(pod, "node-2", 0, 0);
	TEST_ASSERT_EQUAL_UINT32(0, stats(c).gpus_bound);
	TEST_ASSERT_EQUAL_UINT32(1, stats(c).pods);
}

static void test_of_two_pods_that_claim_a_gpu_the_second_is_held_by_count(void)
{
	put((struct frond_key){4, 1}, "node-1", 2, 0x03);
	put((struct frond_key){4, 2}, "node-1", 2, 0x06);
	struct frond_stats out = stats(c);
	TEST_ASSERT_EQUAL_UINT64(1, out.conflicts);
	TEST_ASSERT_EQUAL_UINT32(3, out.gpus_bound);
	TEST_ASSERT_EQUAL_UINT32(1, out.gpus_by_count);
	TEST_ASSERT_EQUAL_UINT32(28, out.gpus_free);
	put((struct frond_key){4, 2}, "node-1", 2, 0x06); /* seen again: no second conflict */
	TEST_ASSERT_EQUAL_UINT64(1, stats(c).conflicts);
	plan(c, &(struct wanted){.name = "a", .members = 1, .gpus = 5, .only = 1});
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, c->plan.outcome); /* five free devices, but one of them is somebody's */
}

static void test_a_reservation_that_is_bound_on_other_gpus_moves_there(void)
{
	place(c, &(struct wanted){.name = "a", .members = 2, .gpus = 2});
	struct frond_key pod = key_of("a", 1);
	put(pod, "node-1", 2, 0xc0);
	struct frond_stats out = stats(c);
	TEST_ASSERT_EQUAL_UINT32(2, out.gpus_bound);
	TEST_ASSERT_EQUAL_UINT32(2, out.gpus_reserved);
	TEST_ASSERT_EQUAL_UINT32(0, out.gpus_by_count);
	TEST_ASSERT_NOT_NULL(strstr(dump(c), "held cc count 0"));
}

static void test_a_node_that_shrinks_under_its_pods_keeps_them(void)
{
	put((struct frond_key){4, 1}, "node-1", 8, 0xff);
	c->nodes[0].gpus = 4;
	node_refresh(c, 0);
	TEST_ASSERT_EQUAL_UINT32(8, stats(c).gpus_bound);
	TEST_ASSERT_EQUAL_UINT32(24, stats(c).gpus_free);
	const struct frond_key pod = {4, 1};
	struct frond_place place_out;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->binding(c->engine, &pod, &place_out, c->text, CLUSTER_TEXT, &c->len));
	const uint32_t pinned[] = {0, FROND_NONE};
	struct wanted w = {.name = "a", .members = 2, .gpus = 8, .pinned = pinned, .wishes = "topology-mode=Ignore"};
	char in[CLUSTER_IN];
	struct frond_pair pairs[4];
	uint32_t in_len = request_make(c, &w, in, pairs);
	c->members[0].pod = pod;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->plan(c->engine, &c->request, c->members, pairs, in, in_len, NULL, 0,
						    &c->plan, c->places, c->text, CLUSTER_TEXT, &c->len));
	TEST_ASSERT_EQUAL_HEX32(0xff, c->places[0].gpu_mask);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release(c->engine, &pod));
	check(c);
	TEST_ASSERT_EQUAL_UINT32(28, stats(c).gpus_free);
}

static void test_gpus_that_a_smaller_node_no_longer_has_are_not_in_use(void)
{
	static const char *const names[] = {"node-1", "node-2", "node-3", "node-4"};
	for (uint32_t i = 0; i < 4; i++) {
		put((struct frond_key){4, 1 + i}, names[i], 4, 0x87);
		c->nodes[i].gpus = 4;
		node_refresh(c, i);
	}
	TEST_ASSERT_EQUAL_UINT32(4, stats(c).gpus_free);
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, plan(c, &(struct wanted){.name = "a", .members = 1, .gpus = 1}));
	TEST_ASSERT_EQUAL_HEX32(0x08, c->places[0].gpu_mask);
	check(c);
}

static void test_what_pods_held_is_forgotten_with_their_node(void)
{
	put((struct frond_key){4, 1}, "node-1", 2, 0x03);
	occupy_by_count(c, "node-1", 3);
	put((struct frond_key){4, 2}, "node-2", 2, 0x03);
	node_remove(c, 0);
	TEST_ASSERT_EQUAL_UINT32(1, stats(c).pods);
	node_refresh(c, 0);
	TEST_ASSERT_EQUAL_UINT32(30, stats(c).gpus_free);
}

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

static void test_stats_count_what_there_is(void)
{
	node_put(c, 4, "stray", 4, NULL, NULL);
	unhealthy(c, "node-4", 0x81);
	occupy_by_count(c, "node-4", 1);
	occupy(c, "node-4", 0x02);
	place(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8});
	plan(c, &(struct wanted){.name = "w", .members = 4, .gpus = 8});
	plan(c, &(struct wanted){.name = "n", .members = 5, .gpus = 8});
	plan(c, &(struct wanted){.name = "r", .members = 1, .gpus = 17});
	struct frond_key pod = key_of("a", 1);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->confirm(c->engine, &pod));
	struct frond_stats out = stats(c);
	TEST_ASSERT_EQUAL_UINT32(5, out.nodes);
	TEST_ASSERT_EQUAL_UINT32(1, out.nodes_without_leaf);
	TEST_ASSERT_EQUAL_UINT32(2, out.leaves);
	TEST_ASSERT_EQUAL_UINT32(1, out.spines);
	TEST_ASSERT_EQUAL_UINT32(36, out.gpus);
	TEST_ASSERT_EQUAL_UINT32(2, out.gpus_unhealthy);
	TEST_ASSERT_EQUAL_UINT32(8, out.gpus_reserved);
	TEST_ASSERT_EQUAL_UINT32(9, out.gpus_bound);
	TEST_ASSERT_EQUAL_UINT32(1, out.gpus_by_count);
	TEST_ASSERT_EQUAL_UINT32(16, out.gpus_free);
	TEST_ASSERT_EQUAL_UINT32(4, out.pods);
	TEST_ASSERT_EQUAL_UINT32(1, out.gangs);
	TEST_ASSERT_EQUAL_UINT64(4, out.plans);
	TEST_ASSERT_EQUAL_UINT64(1, out.placed);
	TEST_ASSERT_EQUAL_UINT64(1, out.waiting);
	TEST_ASSERT_EQUAL_UINT64(2, out.refused);
	TEST_ASSERT_EQUAL_UINT64(0, out.relaxed);
	TEST_ASSERT_EQUAL_UINT64(0, out.bounded);
	TEST_ASSERT_EQUAL_UINT64(0, out.expired);
	TEST_ASSERT_EQUAL_UINT64(0, out.conflicts);
}

static void test_the_generation_grows_with_every_change_and_with_nothing_else(void)
{
	uint64_t last = stats(c).generation;
	plan(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8});
	TEST_ASSERT_EQUAL_UINT64(last, stats(c).generation);
	TEST_ASSERT_EQUAL_UINT64(last, c->plan.generation);
	reserve(FROND_OK);
	TEST_ASSERT_TRUE(stats(c).generation > last);
	last = stats(c).generation;
	cordon(c, "node-3");
	TEST_ASSERT_TRUE(stats(c).generation > last);
	last = stats(c).generation;
	occupy(c, "node-4", 1);
	TEST_ASSERT_TRUE(stats(c).generation > last);
	last = stats(c).generation;
	release(c, "a", 1);
	TEST_ASSERT_TRUE(stats(c).generation > last);
	last = stats(c).generation;
	node_remove(c, 3);
	TEST_ASSERT_TRUE(stats(c).generation > last);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_a_plan_is_booked_as_it_was_made);
	RUN_TEST(test_reserve_refuses_malformed_calls);
	RUN_TEST(test_a_plan_is_stale_when_a_gpu_or_node_is_no_longer_to_be_had);
	RUN_TEST(test_a_plan_is_stale_when_pods_by_count_leave_too_little);
	RUN_TEST(test_members_may_not_share_a_gpu_or_a_key);
	RUN_TEST(test_members_of_a_booked_gang_may_join_later);
	RUN_TEST(test_what_is_unknown_is_said_to_be);
	RUN_TEST(test_what_was_booked_comes_back_whole);
	RUN_TEST(test_a_pod_that_is_put_again_is_there_once);
	RUN_TEST(test_a_pod_that_moves_or_changes_its_size_is_entered_anew);
	RUN_TEST(test_of_two_pods_that_claim_a_gpu_the_second_is_held_by_count);
	RUN_TEST(test_a_reservation_that_is_bound_on_other_gpus_moves_there);
	RUN_TEST(test_a_node_that_shrinks_under_its_pods_keeps_them);
	RUN_TEST(test_gpus_that_a_smaller_node_no_longer_has_are_not_in_use);
	RUN_TEST(test_what_pods_held_is_forgotten_with_their_node);
	RUN_TEST(test_stats_count_what_there_is);
	RUN_TEST(test_the_generation_grows_with_every_change_and_with_nothing_else);
	return UNITY_END();
}
