/* SPDX-License-Identifier: Apache-2.0 */
#include "core/ledger.h"

#include <stdlib.h>
#include <unity.h>

enum { NODES = 3, PODS = 5 };

static struct node nodes[NODES];
static struct undo undo;
static struct fabric fabric;
static struct ledger ledger;
static void *mem;

static void layout(struct arena *arena)
{
	undo_layout(&undo, arena, PODS, 0);
	fabric_layout(&fabric, arena, &undo, NODES);
	ledger_layout(&ledger, arena, &undo, &fabric, nodes, PODS, 0);
}

/* No tree: the nodes are in no leaf. What their leaves count is test_fabric.c's. */
void setUp(void)
{
	struct arena arena = {.base = NULL};
	undo = (struct undo){.depth = 0};
	fabric = (struct fabric){.node_count = 0};
	ledger = (struct ledger){.cap = 0};
	layout(&arena);
	mem = calloc(1, arena.used);
	TEST_ASSERT_NOT_NULL(mem);
	arena = (struct arena){.base = mem};
	layout(&arena);
	for (uint32_t slot = 0; slot < NODES; slot++)
		nodes[slot] = (struct node){.present = true, .gpus = 8, .first = FROND_NONE};
}

void tearDown(void)
{
	free(mem);
}

static uint32_t enter(uint64_t pod, uint32_t slot, uint32_t mask, uint32_t by_count)
{
	uint32_t at = FROND_NONE;
	int32_t code = ledger_enter(&ledger, (struct frond_key){7, pod}, HOLD_BOUND, slot, mask, by_count, FROND_NONE,
				    FROND_NONE, &at);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, code);
	return at;
}

static uint32_t owner(uint32_t slot, uint32_t gpu)
{
	return ledger_owner(&ledger, slot, gpu);
}

static void test_a_pod_holds_its_devices_until_it_leaves(void)
{
	uint32_t at = enter(1, 1, 0x0f, 0);
	TEST_ASSERT_EQUAL_HEX32(0x0f, nodes[1].held);
	TEST_ASSERT_EQUAL_HEX32(0xf0, node_free_mask(&nodes[1]));
	TEST_ASSERT_EQUAL_UINT32(4, node_free_count(&nodes[1]));
	for (uint32_t gpu = 0; gpu < 8; gpu++)
		TEST_ASSERT_EQUAL_UINT32(gpu < 4 ? at : FROND_NONE, owner(1, gpu));
	ledger_leave(&ledger, at);
	TEST_ASSERT_EQUAL_HEX32(0, nodes[1].held);
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, owner(1, 0));
	TEST_ASSERT_EQUAL_UINT32(0, ledger.used);
}

static void test_a_pod_is_found_by_both_halves_of_its_key(void)
{
	uint32_t at = enter(1, 0, 1, 0);
	TEST_ASSERT_EQUAL_UINT32(at, ledger_find(&ledger, (struct frond_key){7, 1}));
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, ledger_find(&ledger, (struct frond_key){1, 7}));
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, ledger_find(&ledger, (struct frond_key){7, 2}));
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, ledger_find(&ledger, (struct frond_key){8, 1}));
}

static void test_whoever_comes_second_is_held_by_count_and_is_a_conflict(void)
{
	uint32_t first = enter(1, 0, 0x03, 0), second = enter(2, 0, 0x06, 0);
	TEST_ASSERT_EQUAL_UINT32(first, owner(0, 1));
	TEST_ASSERT_EQUAL_UINT32(second, owner(0, 2));
	TEST_ASSERT_EQUAL_HEX32(0x04, ledger.entries[second].mask);
	TEST_ASSERT_EQUAL_UINT32(1, ledger.entries[second].by_count);
	TEST_ASSERT_EQUAL_UINT32(1, nodes[0].by_count);
	TEST_ASSERT_EQUAL_UINT64(1, ledger.conflicts);
	TEST_ASSERT_EQUAL_UINT32(4, node_free_count(&nodes[0])); /* 8 less 3 by device less 1 by count */
	ledger_leave(&ledger, first);
	TEST_ASSERT_EQUAL_HEX32(0x04, nodes[0].held);
	ledger_leave(&ledger, second);
	TEST_ASSERT_EQUAL_HEX32(0, nodes[0].held);
	TEST_ASSERT_EQUAL_UINT32(0, nodes[0].by_count);
}

static void test_a_device_that_the_node_does_not_have_is_held_by_count(void)
{
	uint32_t at = enter(1, 0, 0x180, 0);
	TEST_ASSERT_EQUAL_HEX32(0x80, nodes[0].held);
	TEST_ASSERT_EQUAL_UINT32(1, ledger.entries[at].by_count);
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, owner(0, 8));
	TEST_ASSERT_EQUAL_UINT64(1, ledger.conflicts);
}

static void test_holding_by_count_takes_free_devices_away_but_names_none(void)
{
	enter(1, 0, 0, 3);
	TEST_ASSERT_EQUAL_HEX32(0xff, node_free_mask(&nodes[0]));
	TEST_ASSERT_EQUAL_UINT32(5, node_free_count(&nodes[0]));
	enter(2, 0, 0, 9);
	TEST_ASSERT_EQUAL_UINT32(0, node_free_count(&nodes[0])); /* more than there are: none, not a wrap-around */
}

static void test_unhealthy_devices_are_not_free(void)
{
	nodes[0].unhealthy = 0x81;
	TEST_ASSERT_EQUAL_HEX32(0x7e, node_free_mask(&nodes[0]));
	enter(1, 0, 0x03, 0); /* a bound pod may hold one */
	TEST_ASSERT_EQUAL_UINT32(5, node_free_count(&nodes[0]));
}

static void test_a_member_without_gpus_has_an_entry_and_no_node(void)
{
	uint32_t at = enter(1, FROND_NONE, 0, 0);
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, entry_slot(&ledger.entries[at]));
	ledger_leave(&ledger, at);
	TEST_ASSERT_EQUAL_UINT32(0, ledger.used);
}

static void test_the_ledger_takes_exactly_its_limit_and_then_refuses(void)
{
	for (uint64_t pod = 1; pod <= PODS; pod++)
		enter(pod, 0, 1u << pod, 0);
	uint32_t at = 77;
	int32_t code =
		ledger_enter(&ledger, (struct frond_key){7, 99}, HOLD_BOUND, 0, 1, 0, FROND_NONE, FROND_NONE, &at);
	TEST_ASSERT_EQUAL_INT32(FROND_LIMIT, code);
	TEST_ASSERT_EQUAL_UINT32(77, at);
	TEST_ASSERT_EQUAL_HEX32(0x3e, nodes[0].held); /* nothing has changed */
	ledger_leave(&ledger, ledger_find(&ledger, (struct frond_key){7, 3}));
	enter(99, 0, 1, 0);
	TEST_ASSERT_EQUAL_HEX32(0x37, nodes[0].held);
}

static void test_keys_that_share_a_bucket_leave_in_any_order(void)
{
	for (uint32_t leaver = 0; leaver < PODS; leaver++) {
		for (uint64_t pod = 0; pod < PODS; pod++)
			enter(pod * 16 + 1, 2, 1u << pod, 0);
		for (uint32_t i = 0; i < PODS; i++) {
			uint64_t pod = (i * 3 + leaver) % PODS * 16 + 1;
			uint32_t at = ledger_find(&ledger, (struct frond_key){7, pod});
			TEST_ASSERT_NOT_EQUAL(FROND_NONE, at);
			ledger_leave(&ledger, at);
			TEST_ASSERT_EQUAL_UINT32(FROND_NONE, ledger_find(&ledger, (struct frond_key){7, pod}));
			TEST_ASSERT_EQUAL_UINT32(PODS - 1 - i, ledger.used);
		}
		TEST_ASSERT_EQUAL_HEX32(0, nodes[2].held);
	}
}

/* The node's entries as their pods' numbers, last come first. */
static void listed(uint32_t slot, const uint64_t *pods, uint32_t count)
{
	uint32_t at = nodes[slot].first;
	for (uint32_t i = 0; i < count; i++) {
		TEST_ASSERT_NOT_EQUAL(FROND_NONE, at);
		TEST_ASSERT_EQUAL_UINT64(pods[i], ledger.entries[at].pod.lo);
		at = entry_node_next(&ledger.entries[at]);
	}
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, at);
}

static void test_a_node_lists_those_who_hold_something_there(void)
{
	enter(1, 0, 0x01, 0);
	uint32_t middle = enter(2, 0, 0x02, 0);
	uint32_t last = enter(3, 0, 0, 1);
	enter(4, 1, 0x01, 0);
	enter(5, FROND_NONE, 0, 0);
	listed(0, (const uint64_t[]){3, 2, 1}, 3);
	listed(1, (const uint64_t[]){4}, 1);
	listed(2, NULL, 0);
	ledger_leave(&ledger, middle);
	listed(0, (const uint64_t[]){3, 1}, 2);
	ledger_leave(&ledger, last);
	listed(0, (const uint64_t[]){1}, 1);
	ledger_leave(&ledger, ledger_find(&ledger, (struct frond_key){7, 1}));
	listed(0, NULL, 0);
	TEST_ASSERT_EQUAL_UINT32(2, ledger.used);
}

static void test_whoever_holds_by_count_owns_no_gpu(void)
{
	enter(1, 0, 0, 8);
	for (uint32_t gpu = 0; gpu < FROND_GPUS_MAX; gpu++)
		TEST_ASSERT_EQUAL_UINT32(FROND_NONE, owner(0, gpu));
}

static void test_sixteen_gpus_fit_and_the_last_node_has_its_own(void)
{
	nodes[NODES - 1].gpus = FROND_GPUS_MAX;
	uint32_t at = enter(1, NODES - 1, 0xffff, 0);
	TEST_ASSERT_EQUAL_UINT32(0, node_free_count(&nodes[NODES - 1]));
	TEST_ASSERT_EQUAL_UINT32(at, owner(NODES - 1, 15));
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, owner(NODES - 2, 15));
}

static void test_a_node_without_gpus_has_none_free(void)
{
	nodes[0].gpus = 0;
	TEST_ASSERT_EQUAL_HEX32(0, node_free_mask(&nodes[0]));
	TEST_ASSERT_EQUAL_UINT32(0, node_free_count(&nodes[0]));
	enter(1, 0, 0, 0); /* a pod that holds nothing */
	TEST_ASSERT_EQUAL_UINT32(1, ledger.used);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_a_pod_holds_its_devices_until_it_leaves);
	RUN_TEST(test_a_pod_is_found_by_both_halves_of_its_key);
	RUN_TEST(test_whoever_comes_second_is_held_by_count_and_is_a_conflict);
	RUN_TEST(test_a_device_that_the_node_does_not_have_is_held_by_count);
	RUN_TEST(test_holding_by_count_takes_free_devices_away_but_names_none);
	RUN_TEST(test_unhealthy_devices_are_not_free);
	RUN_TEST(test_a_member_without_gpus_has_an_entry_and_no_node);
	RUN_TEST(test_the_ledger_takes_exactly_its_limit_and_then_refuses);
	RUN_TEST(test_keys_that_share_a_bucket_leave_in_any_order);
	RUN_TEST(test_a_node_lists_those_who_hold_something_there);
	RUN_TEST(test_whoever_holds_by_count_owns_no_gpu);
	RUN_TEST(test_sixteen_gpus_fit_and_the_last_node_has_its_own);
	RUN_TEST(test_a_node_without_gpus_has_none_free);
	return UNITY_END();
}
