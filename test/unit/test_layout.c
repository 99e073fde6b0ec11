/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of every record of frond.h, as numbers. A number that has to change here means a new FROND_ABI_VERSION.
 * The numbers are those of an LP64 machine; the only pointers are in the table.
 */
#include "frond.h"

#include <stddef.h>
#include <string.h>
#include <unity.h>

#define SIZE(size, record)       TEST_ASSERT_EQUAL_UINT64(size, sizeof(struct record))
#define AT(offset, record, name) TEST_ASSERT_EQUAL_UINT64(offset, offsetof(struct record, name))

void setUp(void)
{
}

void tearDown(void)
{
}

static void test_the_version_and_the_limits_are_what_callers_compiled_in(void)
{
	TEST_ASSERT_EQUAL_UINT32(6, FROND_ABI_VERSION);
	TEST_ASSERT_EQUAL_UINT32(16, FROND_GPUS_MAX);
	TEST_ASSERT_EQUAL_UINT32(131072, FROND_NODES_MAX);
	TEST_ASSERT_EQUAL_UINT32(16384, FROND_MEMBERS_MAX);
	TEST_ASSERT_EQUAL_UINT32(32768, FROND_HOLDS_MAX);
	TEST_ASSERT_EQUAL_UINT32(65535, FROND_LEAF_NODES);
	TEST_ASSERT_EQUAL_UINT32(256, FROND_TOPOLOGIES);
	TEST_ASSERT_EQUAL_UINT32(4096, FROND_CANDIDATES);
	TEST_ASSERT_EQUAL_UINT32(253, FROND_NAME_MAX);
	TEST_ASSERT_EQUAL_UINT32(4096, FROND_VALUE_MAX);
	TEST_ASSERT_EQUAL_UINT32(512, FROND_TEXT_MAX);
	TEST_ASSERT_EQUAL_UINT32(8, FROND_RESOURCES_MAX);
	TEST_ASSERT_EQUAL_UINT32(64, FROND_KINDS_MAX);
	TEST_ASSERT_EQUAL_UINT32(4294967295u, FROND_NONE);
}

static void test_the_numbers_of_codes_and_enums_stay(void)
{
	TEST_ASSERT_EQUAL_INT(0, FROND_OK);
	TEST_ASSERT_EQUAL_INT(1, FROND_BAD);
	TEST_ASSERT_EQUAL_INT(2, FROND_LIMIT);
	TEST_ASSERT_EQUAL_INT(3, FROND_UNKNOWN);
	TEST_ASSERT_EQUAL_INT(4, FROND_STALE);
	TEST_ASSERT_EQUAL_INT(5, FROND_SMALL);
	TEST_ASSERT_EQUAL_INT(6, FROND_BROKEN);
	TEST_ASSERT_EQUAL_INT(1, FROND_NODE_CORDONED);
	TEST_ASSERT_EQUAL_INT(2, FROND_NODE_DOWN);
	TEST_ASSERT_EQUAL_INT(1, FROND_POD_BUDGETED);
	TEST_ASSERT_EQUAL_INT(1, FROND_PLACED);
	TEST_ASSERT_EQUAL_INT(2, FROND_WAITS);
	TEST_ASSERT_EQUAL_INT(3, FROND_NEVER);
	TEST_ASSERT_EQUAL_INT(4, FROND_REFUSED);
	TEST_ASSERT_EQUAL_INT(0, FROND_RULE_NONE);
	TEST_ASSERT_EQUAL_INT(1, FROND_RULE_SINGLE_NODE);
	TEST_ASSERT_EQUAL_INT(2, FROND_RULE_NVLINK_DOMAIN);
	TEST_ASSERT_EQUAL_INT(3, FROND_RULE_SAME_LEAF);
	TEST_ASSERT_EQUAL_INT(4, FROND_RULE_COMPLETE_LEAF);
	TEST_ASSERT_EQUAL_INT(5, FROND_RULE_ADJACENT_LEAVES);
	TEST_ASSERT_EQUAL_INT(6, FROND_RULE_ADJACENT_SPINES);
	TEST_ASSERT_EQUAL_INT(1, FROND_PLAN_RELAXED);
	TEST_ASSERT_EQUAL_INT(2, FROND_PLAN_SHAPELESS);
	TEST_ASSERT_EQUAL_INT(4, FROND_PLAN_UNKNOWN_DOMAIN);
	TEST_ASSERT_EQUAL_INT(8, FROND_PLAN_NO_TOPOLOGY);
	TEST_ASSERT_EQUAL_INT(16, FROND_PLAN_BOUNDED);
	TEST_ASSERT_EQUAL_INT(32, FROND_PLAN_UNKNOWN_GPU);
	TEST_ASSERT_EQUAL_INT(64, FROND_PLAN_MIXED_MODELS);
	TEST_ASSERT_EQUAL_INT(1, FROND_HELD_RESERVED);
	TEST_ASSERT_EQUAL_INT(2, FROND_HELD_BOUND);
	TEST_ASSERT_EQUAL_INT(4, FROND_NODE_REPLICAS);
	TEST_ASSERT_EQUAL_INT(8, FROND_NODE_UNAVAILABLE);
	TEST_ASSERT_EQUAL_INT(1, FROND_HOLD);
	TEST_ASSERT_EQUAL_INT(2, FROND_GO);
	TEST_ASSERT_EQUAL_INT(1, FROND_GANG_GATHERING);
	TEST_ASSERT_EQUAL_INT(2, FROND_GANG_PLANNED);
	TEST_ASSERT_EQUAL_INT(3, FROND_GANG_RESERVED);
	TEST_ASSERT_EQUAL_INT(4, FROND_GANG_BOUND);
	TEST_ASSERT_EQUAL_INT(5, FROND_GANG_DEGRADED);
}

static void test_the_small_records_lie_as_they_did(void)
{
	SIZE(16, frond_key);
	AT(0, frond_key, hi);
	AT(8, frond_key, lo);
	SIZE(8, frond_span);
	AT(0, frond_span, off);
	AT(4, frond_span, len);
	SIZE(16, frond_pair);
	AT(0, frond_pair, key);
	AT(8, frond_pair, value);
	SIZE(20, frond_limits);
	AT(0, frond_limits, nodes);
	AT(4, frond_limits, pods);
	AT(8, frond_limits, text_bytes);
	AT(12, frond_limits, table_bytes);
	AT(16, frond_limits, holds);
	SIZE(12, frond_room);
	AT(0, frond_room, slot);
	AT(4, frond_room, pod_template);
	AT(6, frond_room, today);
	AT(8, frond_room, ever);
	AT(10, frond_room, unavailable);
	SIZE(16, frond_place);
	AT(0, frond_place, slot);
	AT(4, frond_place, gpu_mask);
	AT(8, frond_place, ring);
}

static void test_args_lie_as_they_did(void)
{
	SIZE(88, frond_args);
	AT(0, frond_args, permit_wait_s);
	AT(4, frond_args, resource_count);
	AT(8, frond_args, fabric_file);
	AT(16, frond_args, resources);
	AT(80, frond_args, unavailable_after_ms);
	AT(84, frond_args, reserved);
}

static void test_nodes_topologies_and_pods_lie_as_they_did(void)
{
	SIZE(48, frond_node);
	AT(0, frond_node, slot);
	AT(4, frond_node, gpus);
	AT(8, frond_node, unhealthy_mask);
	AT(12, frond_node, flags);
	AT(16, frond_node, uplink_gbps);
	AT(20, frond_node, topology);
	AT(24, frond_node, name);
	AT(32, frond_node, model);
	AT(40, frond_node, unavailable_mask);
	AT(44, frond_node, reserved);
	SIZE(532, frond_topology);
	AT(0, frond_topology, gpus);
	AT(4, frond_topology, numa);
	AT(20, frond_topology, link_gbps);
	SIZE(64, frond_pod);
	AT(0, frond_pod, pod);
	AT(16, frond_pod, slot);
	AT(20, frond_pod, gpus);
	AT(24, frond_pod, gpu_mask);
	AT(28, frond_pod, rank);
	AT(32, frond_pod, name);
	AT(40, frond_pod, gang);
	AT(56, frond_pod, flags);
	AT(60, frond_pod, reserved);
	SIZE(40, frond_held);
	AT(0, frond_held, gang);
	AT(16, frond_held, slot);
	AT(20, frond_held, gpus);
	AT(24, frond_held, gpu_mask);
	AT(28, frond_held, by_count);
	AT(32, frond_held, rank);
	AT(36, frond_held, state);
	SIZE(40, frond_hold);
	AT(0, frond_hold, gang);
	AT(16, frond_hold, rank);
	AT(20, frond_hold, slot);
	AT(24, frond_hold, gpu_mask);
	AT(28, frond_hold, reserved);
	AT(32, frond_hold, deadline_ms);
}

static void test_requests_and_members_lie_as_they_did(void)
{
	SIZE(208, frond_request);
	AT(0, frond_request, gang);
	AT(16, frond_request, members);
	AT(20, frond_request, min_member);
	AT(24, frond_request, gpus_desired);
	AT(32, frond_request, age_ms);
	AT(40, frond_request, only_slot);
	AT(44, frond_request, annotations);
	AT(48, frond_request, name);
	AT(56, frond_request, deadline_ms);
	AT(64, frond_request, priority);
	AT(68, frond_request, named_count);
	AT(72, frond_request, claim);
	AT(80, frond_request, named);
	SIZE(8, frond_named);
	AT(0, frond_named, slot);
	AT(4, frond_named, gpu_mask);
	SIZE(32, frond_member);
	AT(0, frond_member, pod);
	AT(16, frond_member, rank);
	AT(20, frond_member, gpus);
	AT(24, frond_member, pinned_slot);
	AT(28, frond_member, pod_template);
}

static void test_what_goes_with_thrift_lies_as_it_did(void)
{
	SIZE(16, frond_thrift);
	AT(0, frond_thrift, cpu_milli);
	AT(4, frond_thrift, memory_mib);
	AT(8, frond_thrift, kinds);
	AT(12, frond_thrift, reserved);
	SIZE(16, frond_kind);
	AT(0, frond_kind, cpu_milli);
	AT(4, frond_kind, memory_mib);
	AT(8, frond_kind, gpus);
	AT(12, frond_kind, pods);
	SIZE(8, frond_left);
	AT(0, frond_left, cpu_milli);
	AT(4, frond_left, memory_mib);
}

static void test_plans_and_gangs_lie_as_they_did(void)
{
	SIZE(40, frond_plan);
	AT(0, frond_plan, generation);
	AT(8, frond_plan, outcome);
	AT(12, frond_plan, rule);
	AT(16, frond_plan, flags);
	AT(20, frond_plan, spines);
	AT(24, frond_plan, leaves);
	AT(28, frond_plan, runs);
	AT(32, frond_plan, nodes);
	AT(36, frond_plan, wait_ms);
	SIZE(40, frond_gang);
	AT(0, frond_gang, state);
	AT(4, frond_gang, min_member);
	AT(8, frond_gang, members);
	AT(12, frond_gang, arrived);
	AT(16, frond_gang, bound);
	AT(20, frond_gang, lost);
	AT(24, frond_gang, priority);
	AT(28, frond_gang, reserved);
	AT(32, frond_gang, deadline_ms);
}

static void test_moves_and_victims_lie_as_they_did(void)
{
	SIZE(40, frond_move);
	AT(0, frond_move, pod);
	AT(16, frond_move, rank);
	AT(20, frond_move, from);
	AT(24, frond_move, to);
	AT(28, frond_move, gpu_mask);
	AT(32, frond_move, ring);
	SIZE(16, frond_moves);
	AT(0, frond_moves, outcome);
	AT(4, frond_moves, flags);
	AT(8, frond_moves, count);
	AT(12, frond_moves, lower_bound);
	SIZE(64, frond_victims);
	AT(0, frond_victims, outcome);
	AT(4, frond_victims, count);
	AT(8, frond_victims, budgets);
	AT(12, frond_victims, priority);
	AT(16, frond_victims, gangs);
	AT(20, frond_victims, gpus);
	AT(24, frond_victims, plan);
}

static void test_windows_lie_as_they_did(void)
{
	SIZE(24, frond_end);
	AT(0, frond_end, pod);
	AT(16, frond_end, ends_in_ms);
	SIZE(64, frond_window);
	AT(0, frond_window, outcome);
	AT(4, frond_window, kept);
	AT(8, frond_window, nodes);
	AT(12, frond_window, free);
	AT(16, frond_window, start_ms);
	AT(24, frond_window, plan);
	SIZE(32, frond_backfill);
	AT(0, frond_backfill, start_ms);
	AT(8, frond_backfill, ends_in_ms);
	AT(16, frond_backfill, window_priority);
	AT(20, frond_backfill, pod_priority);
	AT(24, frond_backfill, window_preempts);
	AT(28, frond_backfill, reserved);
}

static void test_stats_lie_as_they_did(void)
{
	SIZE(144, frond_stats);
	AT(0, frond_stats, generation);
	AT(8, frond_stats, nodes);
	AT(12, frond_stats, nodes_without_leaf);
	AT(16, frond_stats, leaves);
	AT(20, frond_stats, spines);
	AT(24, frond_stats, gpus);
	AT(28, frond_stats, gpus_unhealthy);
	AT(32, frond_stats, gpus_reserved);
	AT(36, frond_stats, gpus_bound);
	AT(40, frond_stats, gpus_by_count);
	AT(44, frond_stats, gpus_free);
	AT(48, frond_stats, pods);
	AT(52, frond_stats, gangs);
	AT(56, frond_stats, holds);
	AT(60, frond_stats, gpus_kept);
	AT(64, frond_stats, plans);
	AT(72, frond_stats, placed);
	AT(80, frond_stats, waiting);
	AT(88, frond_stats, refused);
	AT(96, frond_stats, relaxed);
	AT(104, frond_stats, bounded);
	AT(112, frond_stats, steps);
	AT(120, frond_stats, expired);
	AT(128, frond_stats, conflicts);
	AT(136, frond_stats, holds_expired);
}

static void test_the_table_lies_as_it_did(void)
{
	SIZE(312, frond_abi);
	AT(0, frond_abi, version);
	AT(4, frond_abi, size);
	AT(8, frond_abi, args);
	AT(16, frond_abi, fabric_expand);
	AT(24, frond_abi, size_of);
	AT(32, frond_abi, create);
	AT(40, frond_abi, config_put);
	AT(48, frond_abi, node_put);
	AT(56, frond_abi, topology_put);
	AT(64, frond_abi, node_remove);
	AT(72, frond_abi, pod_put);
	AT(80, frond_abi, pod_get);
	AT(88, frond_abi, plan);
	AT(96, frond_abi, order);
	AT(104, frond_abi, reserve);
	AT(112, frond_abi, gang_put);
	AT(120, frond_abi, gang_get);
	AT(128, frond_abi, permit);
	AT(136, frond_abi, confirm);
	AT(144, frond_abi, release);
	AT(152, frond_abi, release_gang);
	AT(160, frond_abi, hold_put);
	AT(168, frond_abi, hold_take);
	AT(176, frond_abi, hold_drop);
	AT(184, frond_abi, hold_list);
	AT(192, frond_abi, tick);
	AT(200, frond_abi, what_if);
	AT(208, frond_abi, undo);
	AT(216, frond_abi, recover);
	AT(224, frond_abi, defrag);
	AT(232, frond_abi, victims);
	AT(240, frond_abi, window);
	AT(248, frond_abi, backfill);
	AT(256, frond_abi, binding);
	AT(264, frond_abi, stats);
	AT(272, frond_abi, problems);
	AT(280, frond_abi, map);
	AT(288, frond_abi, dump);
	AT(296, frond_abi, check);
	AT(304, frond_abi, code_text);
}

static void test_the_table_says_its_version_and_size_and_has_no_hole(void)
{
	const struct frond_abi *table = frond_abi_get();
	TEST_ASSERT_EQUAL_UINT32(FROND_ABI_VERSION, table->version);
	TEST_ASSERT_EQUAL_UINT32(sizeof *table, table->size);
	TEST_ASSERT_EQUAL_PTR(table, frond_abi_get());
	for (size_t at = 8; at < sizeof *table; at += sizeof(void *)) {
		void *function;
		memcpy(&function, (const char *)table + at, sizeof function);
		TEST_ASSERT_NOT_NULL(function);
	}
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_the_version_and_the_limits_are_what_callers_compiled_in);
	RUN_TEST(test_the_numbers_of_codes_and_enums_stay);
	RUN_TEST(test_the_small_records_lie_as_they_did);
	RUN_TEST(test_args_lie_as_they_did);
	RUN_TEST(test_nodes_topologies_and_pods_lie_as_they_did);
	RUN_TEST(test_requests_and_members_lie_as_they_did);
	RUN_TEST(test_what_goes_with_thrift_lies_as_it_did);
	RUN_TEST(test_plans_and_gangs_lie_as_they_did);
	RUN_TEST(test_moves_and_victims_lie_as_they_did);
	RUN_TEST(test_windows_lie_as_they_did);
	RUN_TEST(test_stats_lie_as_they_did);
	RUN_TEST(test_the_table_lies_as_it_did);
	RUN_TEST(test_the_table_says_its_version_and_size_and_has_no_hole);
	return UNITY_END();
}
