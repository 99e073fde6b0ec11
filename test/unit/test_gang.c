/* SPDX-License-Identifier: Apache-2.0 */
/* Through the ABI: a gang is what reserve() books, permit() lets through, confirm() and pod_put() bind. */
#include "cluster.h"

static struct cluster *c;

void setUp(void)
{
	c = cluster_make("spine:1 leaf:2 node:4 gpu:8", "");
}

void tearDown(void)
{
	cluster_free(c);
}

static struct frond_key member(const char *gang, uint32_t rank)
{
	return key_of(gang, rank + 1);
}

static uint32_t permit(const char *gang, uint32_t rank)
{
	struct frond_key pod = member(gang, rank);
	uint32_t verdict = 99;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->permit(c->engine, &pod, &verdict));
	check(c);
	return verdict;
}

static int32_t confirm(const char *gang, uint32_t rank)
{
	struct frond_key pod = member(gang, rank);
	int32_t code = abi->confirm(c->engine, &pod);
	check(c);
	return code;
}

static uint32_t release_gang(const char *gang)
{
	struct frond_key key = key_of(gang, UINT64_MAX);
	uint32_t pods = 99;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release_gang(c->engine, &key, &pods));
	check(c);
	return pods;
}

static void test_nobody_goes_before_the_last_member_has_arrived(void)
{
	place(c, &(struct wanted){.name = "a", .members = 3, .gpus = 8});
	TEST_ASSERT_EQUAL_UINT32(FROND_HOLD, permit("a", 2));
	TEST_ASSERT_EQUAL_UINT32(FROND_HOLD, permit("a", 0));
	TEST_ASSERT_EQUAL_UINT32(FROND_GO, permit("a", 1));
	TEST_ASSERT_EQUAL_UINT32(FROND_GO, permit("a", 0)); /* those that waited ask again */
	TEST_ASSERT_EQUAL_UINT32(FROND_GO, permit("a", 2));
}

static void test_arriving_twice_counts_once(void)
{
	place(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8});
	TEST_ASSERT_EQUAL_UINT32(FROND_HOLD, permit("a", 0));
	TEST_ASSERT_EQUAL_UINT32(FROND_HOLD, permit("a", 0));
	TEST_ASSERT_EQUAL_UINT32(FROND_GO, permit("a", 1));
}

static void test_a_gang_of_one_goes_at_once(void)
{
	place(c, &(struct wanted){.name = "a", .members = 1, .gpus = 1});
	TEST_ASSERT_EQUAL_UINT32(FROND_GO, permit("a", 0));
}

static void test_members_without_gpus_are_waited_for(void)
{
	const uint32_t sizes[] = {0, 8, 8};
	place(c, &(struct wanted){.name = "a", .members = 3, .sizes = sizes});
	TEST_ASSERT_EQUAL_UINT32(FROND_HOLD, permit("a", 1));
	TEST_ASSERT_EQUAL_UINT32(FROND_HOLD, permit("a", 2));
	TEST_ASSERT_EQUAL_UINT32(FROND_GO, permit("a", 0));
	TEST_ASSERT_EQUAL_UINT32(3, stats(c).pods);
}

static void test_gangs_do_not_wait_for_each_other(void)
{
	place(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8});
	place(c, &(struct wanted){.name = "b", .members = 2, .gpus = 8});
	TEST_ASSERT_EQUAL_UINT32(2, stats(c).gangs);
	TEST_ASSERT_EQUAL_UINT32(FROND_HOLD, permit("a", 0));
	TEST_ASSERT_EQUAL_UINT32(FROND_HOLD, permit("b", 0));
	TEST_ASSERT_EQUAL_UINT32(FROND_GO, permit("b", 1));
	TEST_ASSERT_EQUAL_UINT32(FROND_HOLD, permit("a", 0));
}

static void test_a_confirmed_member_is_bound_and_no_longer_permitted(void)
{
	place(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8});
	permit("a", 0);
	permit("a", 1);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, confirm("a", 0));
	TEST_ASSERT_EQUAL_UINT32(8, stats(c).gpus_bound);
	TEST_ASSERT_EQUAL_UINT32(8, stats(c).gpus_reserved);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, confirm("a", 0)); /* the watch may have been faster */
	struct frond_key pod = member("a", 0);
	uint32_t verdict = 99;
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, abi->permit(c->engine, &pod, &verdict));
	TEST_ASSERT_EQUAL_UINT32(99, verdict);
}

static void test_the_watch_binds_a_reserved_member_by_itself(void)
{
	place(c, &(struct wanted){.name = "a", .members = 2, .gpus = 4});
	struct frond_place at = c->places[0];
	int32_t code = pod_try(c, member("a", 0), at.slot, 4, allocated(c, at.slot, at.gpu_mask), "ns/a",
			       key_of("a", UINT64_MAX));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, code);
	check(c);
	TEST_ASSERT_EQUAL_UINT32(4, stats(c).gpus_bound);
	TEST_ASSERT_EQUAL_UINT32(4, stats(c).gpus_reserved);
	TEST_ASSERT_EQUAL_UINT32(1, stats(c).gangs);
	TEST_ASSERT_EQUAL_UINT32(FROND_GO, permit("a", 1)); /* nobody is missing but this one */
}

static void test_the_watch_binds_it_without_an_annotation_and_the_plan_stands(void)
{
	place(c, &(struct wanted){.name = "a", .members = 1, .gpus = 4});
	struct frond_place at = c->places[0];
	TEST_ASSERT_EQUAL_INT32(FROND_OK, pod_try(c, member("a", 0), at.slot, 4, "", "", (struct frond_key){0, 0}));
	check(c);
	TEST_ASSERT_EQUAL_UINT32(4, stats(c).gpus_bound);
	TEST_ASSERT_EQUAL_UINT32(0, stats(c).gpus_by_count);
}

static void test_a_member_that_was_bound_elsewhere_gives_its_reservation_back(void)
{
	place(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8});
	uint32_t elsewhere = slot_of(c, "node-8");
	TEST_ASSERT_NOT_EQUAL(elsewhere, c->places[0].slot);
	int32_t code = pod_try(c, member("a", 0), elsewhere, 8, allocated(c, elsewhere, 0xff), "ns/a",
			       key_of("a", UINT64_MAX));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, code);
	check(c);
	TEST_ASSERT_EQUAL_UINT32(8, stats(c).gpus_bound);
	TEST_ASSERT_EQUAL_UINT32(8, stats(c).gpus_reserved);
	TEST_ASSERT_EQUAL_UINT32(1, stats(c).gangs);
	TEST_ASSERT_EQUAL_UINT32(2, stats(c).pods);
}

static void test_release_gang_gives_back_what_is_not_bound(void)
{
	place(c, &(struct wanted){.name = "a", .members = 3, .gpus = 8});
	confirm("a", 1);
	TEST_ASSERT_EQUAL_UINT32(2, release_gang("a"));
	TEST_ASSERT_EQUAL_UINT32(8, stats(c).gpus_bound);
	TEST_ASSERT_EQUAL_UINT32(0, stats(c).gpus_reserved);
	TEST_ASSERT_EQUAL_UINT32(1, stats(c).gangs);
	TEST_ASSERT_EQUAL_UINT32(0, release_gang("a"));
	TEST_ASSERT_EQUAL_UINT32(0, release_gang("nobody"));
}

static void test_the_last_release_ends_the_gang_and_a_new_one_starts_afresh(void)
{
	place(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8});
	permit("a", 0);
	permit("a", 1);
	release(c, "a", 2);
	TEST_ASSERT_EQUAL_UINT32(0, stats(c).gangs);
	TEST_ASSERT_EQUAL_UINT32(64, stats(c).gpus_free);
	place(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8});
	TEST_ASSERT_EQUAL_UINT32(FROND_HOLD, permit("a", 0)); /* that it had gone before does not count */
}

static void test_a_member_that_comes_back_goes_at_once(void)
{
	place(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8});
	permit("a", 0);
	permit("a", 1);
	confirm("a", 0);
	struct frond_key pod = member("a", 1);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release(c->engine, &pod)); /* its bind failed */
	uint32_t pinned[] = {c->places[0].slot, FROND_NONE};
	place(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8, .pinned = pinned});
	TEST_ASSERT_EQUAL_UINT32(FROND_GO, permit("a", 1));
}

static void test_after_a_restart_the_rest_waits_for_each_other_around_the_bound(void)
{
	struct frond_key gang = key_of("a", UINT64_MAX);
	uint32_t slot = slot_of(c, "node-2");
	TEST_ASSERT_EQUAL_INT32(FROND_OK, pod_try(c, member("a", 0), slot, 8, allocated(c, slot, 0xff), "ns/a", gang));
	const uint32_t pinned[] = {slot, FROND_NONE, FROND_NONE};
	place(c, &(struct wanted){.name = "a", .members = 3, .gpus = 8, .pinned = pinned});
	TEST_ASSERT_EQUAL_STRING("node-2 node-1 node-3", spots(c));
	TEST_ASSERT_EQUAL_UINT32(1, stats(c).gangs);
	TEST_ASSERT_EQUAL_UINT32(FROND_HOLD, permit("a", 1));
	TEST_ASSERT_EQUAL_UINT32(FROND_GO, permit("a", 2));
}

static void test_a_removed_node_takes_its_members_out_of_their_gang(void)
{
	place(c, &(struct wanted){.name = "a", .members = 3, .gpus = 8});
	uint32_t lost = c->places[1].slot;
	TEST_ASSERT_EQUAL_UINT32(FROND_HOLD, permit("a", 0));
	node_remove(c, lost);
	TEST_ASSERT_EQUAL_UINT32(2, stats(c).pods);
	TEST_ASSERT_EQUAL_UINT32(16, stats(c).gpus_reserved);
	struct frond_key pod = member("a", 1);
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, abi->release(c->engine, &pod));
	TEST_ASSERT_EQUAL_UINT32(FROND_GO, permit("a", 2)); /* the host must have dropped the plan: nobody is missing */
}

static void test_pods_of_others_are_in_no_gang(void)
{
	struct frond_key pod = occupy(c, "node-1", 0x01);
	TEST_ASSERT_EQUAL_UINT32(0, stats(c).gangs);
	uint32_t verdict;
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, abi->permit(c->engine, &pod, &verdict));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release(c->engine, &pod));
	check(c);
}

static void test_many_gangs_come_and_go_in_any_order(void)
{
	enum { MANY = 500 };
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < MANY; i++) {
			struct frond_key key = {3, i + 1};
			TEST_ASSERT_EQUAL_INT32(FROND_OK, pod_try(c, key, i % 8, 0, "", "", key));
		}
		TEST_ASSERT_EQUAL_UINT32(MANY, stats(c).gangs);
		for (uint32_t i = 0; i < MANY; i++) {
			struct frond_key key = {3, (round == 0 ? i : i * 7 % MANY) + 1};
			TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release(c->engine, &key));
			if (i % 50 == 0)
				check(c);
		}
		TEST_ASSERT_EQUAL_UINT32(0, stats(c).gangs);
	}
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_nobody_goes_before_the_last_member_has_arrived);
	RUN_TEST(test_arriving_twice_counts_once);
	RUN_TEST(test_a_gang_of_one_goes_at_once);
	RUN_TEST(test_members_without_gpus_are_waited_for);
	RUN_TEST(test_gangs_do_not_wait_for_each_other);
	RUN_TEST(test_a_confirmed_member_is_bound_and_no_longer_permitted);
	RUN_TEST(test_the_watch_binds_a_reserved_member_by_itself);
	RUN_TEST(test_the_watch_binds_it_without_an_annotation_and_the_plan_stands);
	RUN_TEST(test_a_member_that_was_bound_elsewhere_gives_its_reservation_back);
	RUN_TEST(test_release_gang_gives_back_what_is_not_bound);
	RUN_TEST(test_the_last_release_ends_the_gang_and_a_new_one_starts_afresh);
	RUN_TEST(test_a_member_that_comes_back_goes_at_once);
	RUN_TEST(test_after_a_restart_the_rest_waits_for_each_other_around_the_bound);
	RUN_TEST(test_a_removed_node_takes_its_members_out_of_their_gang);
	RUN_TEST(test_pods_of_others_are_in_no_gang);
	RUN_TEST(test_many_gangs_come_and_go_in_any_order);
	return UNITY_END();
}
