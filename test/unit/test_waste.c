/* SPDX-License-Identifier: Apache-2.0 */
/* What is lost of one node and what is expected to be, by hand. What it does to the order of nodes is in test_thrift.c. */
#include "core/waste.h"
#include "dice.h"

#include <unity.h>

void setUp(void)
{
}

void tearDown(void)
{
}

static struct waste waste_all(const struct frond_kind *kinds, uint32_t count, struct frond_left left, uint32_t free)
{
	struct waste_table table;
	waste_begin(&table, &(struct thrift){.kinds = kinds, .count = count});
	return waste_of(&table, left, free);
}

static struct waste growth(const struct thrift *thrift, uint32_t slot, uint32_t free, uint32_t gpus)
{
	struct waste_table table;
	waste_begin(&table, thrift);
	return waste_growth(&table, slot, free, gpus);
}

static uint32_t waste_by(struct frond_kind kind, uint32_t cpu_milli, uint32_t memory_mib, uint32_t free)
{
	return waste_all(&kind, 1, (struct frond_left){cpu_milli, memory_mib}, free).expected;
}

static uint32_t lost_by(const struct frond_kind *kinds, uint32_t count, uint32_t cpu_milli, uint32_t memory_mib,
			uint32_t free)
{
	return waste_all(kinds, count, (struct frond_left){cpu_milli, memory_mib}, free).lost;
}

static void test_nothing_is_wasted_where_all_fit(void)
{
	TEST_ASSERT_EQUAL_UINT32(0, waste_by((struct frond_kind){1000, 100, 1, 1}, 8000, 800, 8));
	TEST_ASSERT_EQUAL_UINT32(0, waste_by((struct frond_kind){1000, 100, 2, 1}, 4000, 400, 8));
	TEST_ASSERT_EQUAL_UINT32(0, waste_by((struct frond_kind){4000, 400, 8, 1}, 4000, 400, 8));
}

static void test_what_cpu_or_memory_keep_from_use_is_wasted(void)
{
	TEST_ASSERT_EQUAL_UINT32(1, waste_by((struct frond_kind){1000, 100, 1, 1}, 7999, 800, 8));
	TEST_ASSERT_EQUAL_UINT32(4, waste_by((struct frond_kind){1000, 100, 1, 1}, 4000, 800, 8));
	TEST_ASSERT_EQUAL_UINT32(5, waste_by((struct frond_kind){1000, 100, 1, 1}, 4000, 399, 8)); /* three fit */
	TEST_ASSERT_EQUAL_UINT32(6,
				 waste_by((struct frond_kind){1000, 100, 2, 1}, 1999, 800, 8)); /* one of four fits */
}

static void test_gpus_too_few_for_one_more_are_not_wasted_while_another_fits(void)
{
	TEST_ASSERT_EQUAL_UINT32(0, waste_by((struct frond_kind){1000, 0, 4, 1}, 1000, 0, 7));
	TEST_ASSERT_EQUAL_UINT32(2, waste_by((struct frond_kind){1000, 0, 2, 1}, 1000, 0, 5));
}

static void test_a_node_that_takes_none_counts_all_its_gpus_once_more(void)
{
	TEST_ASSERT_EQUAL_UINT32(3, waste_by((struct frond_kind){0, 0, 4, 1}, 0, 0, 3));          /* by GPUs: none */
	TEST_ASSERT_EQUAL_UINT32(8 + 8, waste_by((struct frond_kind){1000, 0, 1, 1}, 999, 0, 8)); /* by GPUs: eight */
	TEST_ASSERT_EQUAL_UINT32(6 + 7, waste_by((struct frond_kind){1000, 0, 3, 1}, 0, 0, 7));   /* by GPUs: two */
	TEST_ASSERT_EQUAL_UINT32(0, waste_by((struct frond_kind){1000, 1000, 1, 1000}, 0, 0, 0)); /* nothing is free */
}

static void test_what_a_kind_does_not_ask_for_does_not_bound_it(void)
{
	TEST_ASSERT_EQUAL_UINT32(0, waste_by((struct frond_kind){0, 0, 1, 1}, 0, 0, 16));
	TEST_ASSERT_EQUAL_UINT32(2, waste_by((struct frond_kind){0, 100, 1, 1}, 0, 600, 8));
	TEST_ASSERT_EQUAL_UINT32(2, waste_by((struct frond_kind){100, 0, 1, 1}, 600, 0, 8));
}

static void test_kinds_count_as_often_as_there_are_pods_of_them(void)
{
	const struct frond_kind kinds[] = {{1000, 0, 1, 10}, {4000, 0, 4, 3}, {0, 0, 8, 7}};
	struct frond_left left = {2000, 0};
	TEST_ASSERT_EQUAL_UINT32(0, waste_all(kinds, 0, left, 6).expected);
	TEST_ASSERT_EQUAL_UINT32(10 * 4, waste_all(kinds, 1, left, 6).expected);
	TEST_ASSERT_EQUAL_UINT32(10 * 4 + 3 * (4 + 6), waste_all(kinds, 2, left, 6).expected);
	TEST_ASSERT_EQUAL_UINT32(10 * 4 + 3 * (4 + 6) + 7 * 6, waste_all(kinds, 3, left, 6).expected);
}

static void test_lost_is_what_no_kind_can_use(void)
{
	const struct frond_kind light_last[] = {{4000, 0, 1, 90}, {1000, 100, 1, 1}}; /* how many pods: no matter */
	TEST_ASSERT_EQUAL_UINT32(0, lost_by(light_last, 0, 0, 0, 8));                 /* nobody is known */
	TEST_ASSERT_EQUAL_UINT32(6, lost_by(light_last, 1, 8000, 800, 8));
	TEST_ASSERT_EQUAL_UINT32(0, lost_by(light_last, 2, 8000, 800, 8));
	TEST_ASSERT_EQUAL_UINT32(1, lost_by(light_last, 2, 7999, 800, 8));
	TEST_ASSERT_EQUAL_UINT32(5, lost_by(light_last, 2, 8000, 399, 8)); /* memory for three of the light ones */
	TEST_ASSERT_EQUAL_UINT32(8, lost_by(light_last, 2, 999, 800, 8));
	TEST_ASSERT_EQUAL_UINT32(0, lost_by(light_last, 2, 0, 0, 0)); /* nothing is free */
}

static void test_gpus_too_few_for_any_kind_are_not_lost(void)
{
	const struct frond_kind large[] = {{1000, 0, 4, 1}, {0, 0, 8, 1}};
	TEST_ASSERT_EQUAL_UINT32(0, lost_by(large, 2, 0, 0, 3)); /* CPU is not what stands in the way */
	TEST_ASSERT_EQUAL_UINT32(4, lost_by(large, 2, 999, 0, 7));
	TEST_ASSERT_EQUAL_UINT32(0, lost_by(large, 2, 1000, 0, 7));
	TEST_ASSERT_EQUAL_UINT32(0, lost_by(large, 2, 0, 0, 8));
	TEST_ASSERT_EQUAL_UINT32(4, lost_by(large, 2, 1000, 0, 15)); /* eight of twelve: of the kind that needs none */
	TEST_ASSERT_EQUAL_UINT32(4, lost_by(large, 1, 1000, 0, 15) - lost_by(large, 1, 1000, 0, 11)); /* four of each */
}

static void test_growth_is_the_difference_moved_up(void)
{
	const struct frond_kind kinds[] = {{1000, 100, 1, 1}};
	const struct frond_left left[] = {{8000, 800}, {8000, 800}, {4000, 800}};
	struct thrift thrift = {kinds, 1, {1000, 100}, left};
	TEST_ASSERT_EQUAL_UINT32(WASTE_MAX, growth(&thrift, 0, 8, 1).expected); /* a pod of the kind itself */
	TEST_ASSERT_EQUAL_UINT32(LOST_MAX, growth(&thrift, 0, 8, 1).lost);
	thrift.asks.cpu_milli = 3000;
	TEST_ASSERT_EQUAL_UINT32(WASTE_MAX + 2, growth(&thrift, 0, 8, 1).expected);
	TEST_ASSERT_EQUAL_UINT32(LOST_MAX + 2, growth(&thrift, 0, 8, 1).lost);
	TEST_ASSERT_EQUAL_UINT32(LOST_MAX - 4, growth(&thrift, 2, 8, 7).lost);
	TEST_ASSERT_EQUAL_UINT32(WASTE_MAX - 4,
				 growth(&thrift, 2, 8, 7).expected); /* one GPU and CPU for one are left */
	thrift.asks.cpu_milli = 5000;                                /* more than is left of the third: then none is */
	TEST_ASSERT_EQUAL_UINT32(WASTE_MAX + (7 + 7) - 4, growth(&thrift, 2, 8, 1).expected);
	thrift.asks = (struct frond_left){0, 801};
	TEST_ASSERT_EQUAL_UINT32(WASTE_MAX + (7 + 7) - 4, growth(&thrift, 2, 8, 1).expected);
}

static void test_at_the_limits_nothing_overflows(void)
{
	struct frond_kind kinds[FROND_KINDS_MAX];
	for (uint32_t i = 0; i < FROND_KINDS_MAX; i++)
		kinds[i] = (struct frond_kind){UINT32_MAX, UINT32_MAX, 1, FROND_PODS_MAX};
	const struct frond_left left[] = {{0, 0}, {UINT32_MAX, UINT32_MAX}};
	struct thrift thrift = {kinds, FROND_KINDS_MAX, {UINT32_MAX, UINT32_MAX}, left};
	uint64_t all = (uint64_t)FROND_KINDS_MAX * FROND_PODS_MAX;
	TEST_ASSERT_EQUAL_UINT64(WASTE_MAX, waste_all(kinds, FROND_KINDS_MAX, left[0], FROND_GPUS_MAX).expected);
	TEST_ASSERT_EQUAL_UINT64(all * 15, waste_all(kinds, FROND_KINDS_MAX, left[1], FROND_GPUS_MAX).expected);
	TEST_ASSERT_EQUAL_UINT64(0, growth(&thrift, 0, FROND_GPUS_MAX, FROND_GPUS_MAX).expected); /* all of it goes */
	TEST_ASSERT_EQUAL_UINT32(0, growth(&thrift, 0, FROND_GPUS_MAX, FROND_GPUS_MAX).lost);
	TEST_ASSERT_EQUAL_UINT64(WASTE_MAX + all * (15 + 15) - all * 15,
				 growth(&thrift, 1, FROND_GPUS_MAX, 1).expected);
	for (uint32_t i = 0; i < FROND_KINDS_MAX; i++)
		kinds[i] = (struct frond_kind){268435455, 0, 1, FROND_PODS_MAX}; /* sixteen of them just fit */
	TEST_ASSERT_EQUAL_UINT64(0, waste_all(kinds, FROND_KINDS_MAX, left[1], FROND_GPUS_MAX).expected);
	for (uint32_t i = 0; i < FROND_KINDS_MAX; i++)
		kinds[i].cpu_milli++; /* a product of 32 bits would be zero here */
	TEST_ASSERT_EQUAL_UINT64(all, waste_all(kinds, FROND_KINDS_MAX, left[1], FROND_GPUS_MAX).expected);
}

/* waste.h, word by word, kind by kind. */
static struct waste by_the_words(const struct frond_kind *kinds, uint32_t count, struct frond_left left, uint32_t free)
{
	struct waste waste = {0, 0};
	uint32_t most_by_gpus = 0, most_by_all = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t by_gpus = free / kinds[i].gpus, fit = by_gpus;
		while ((uint64_t)fit * kinds[i].cpu_milli > left.cpu_milli ||
		       (uint64_t)fit * kinds[i].memory_mib > left.memory_mib)
			fit--;
		waste.expected += kinds[i].pods * ((by_gpus - fit) * kinds[i].gpus + (fit == 0 ? free : 0));
		most_by_gpus = max_u32(most_by_gpus, by_gpus * kinds[i].gpus);
		most_by_all = max_u32(most_by_all, fit * kinds[i].gpus);
	}
	waste.lost = most_by_gpus - most_by_all;
	return waste;
}

static void one_node_of_many(void)
{
	struct frond_kind kinds[FROND_KINDS_MAX];
	uint32_t count = below(FROND_KINDS_MAX + 1), most = 1 + below(16);
	for (uint32_t i = 0; i < count; i++)
		kinds[i] = (struct frond_kind){below(most), below(most), 1 + below(FROND_GPUS_MAX), 1 + below(9)};
	for (uint32_t free = 0; free <= FROND_GPUS_MAX; free++) {
		struct frond_left left = {below(4 * most), below(4 * most)};
		struct waste words = by_the_words(kinds, count, left, free),
			     waste = waste_all(kinds, count, left, free);
		TEST_ASSERT_EQUAL_UINT32(words.lost, waste.lost);
		TEST_ASSERT_EQUAL_UINT32(words.expected, waste.expected);
	}
}

static void test_kinds_that_were_sorted_out_waste_what_the_words_say(void)
{
	for (uint32_t seed = 0; seed < 2000; seed++) {
		dice = seed;
		one_node_of_many();
	}
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_nothing_is_wasted_where_all_fit);
	RUN_TEST(test_what_cpu_or_memory_keep_from_use_is_wasted);
	RUN_TEST(test_gpus_too_few_for_one_more_are_not_wasted_while_another_fits);
	RUN_TEST(test_a_node_that_takes_none_counts_all_its_gpus_once_more);
	RUN_TEST(test_what_a_kind_does_not_ask_for_does_not_bound_it);
	RUN_TEST(test_kinds_count_as_often_as_there_are_pods_of_them);
	RUN_TEST(test_lost_is_what_no_kind_can_use);
	RUN_TEST(test_gpus_too_few_for_any_kind_are_not_lost);
	RUN_TEST(test_growth_is_the_difference_moved_up);
	RUN_TEST(test_at_the_limits_nothing_overflows);
	RUN_TEST(test_kinds_that_were_sorted_out_waste_what_the_words_say);
	return UNITY_END();
}
