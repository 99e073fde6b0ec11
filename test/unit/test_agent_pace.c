/* SPDX-License-Identifier: Apache-2.0 */
/* When the agent writes, when it waits, and how long. */
#include "agent/pace.h"

#include "unity.h"

static struct pace pace;

void setUp(void)
{
	pace_start(&pace, 30000, 1, 1000);
}

void tearDown(void)
{
}

static void the_first_write_is_due_at_once(void)
{
	TEST_ASSERT_EQUAL(0, pace_wait_ms(&pace, PACE_NO_NEWS, 1000));
	TEST_ASSERT_EQUAL(0, pace_wait_ms(&pace, PACE_NEWS, 1000));
}

static void what_is_due_comes_a_little_early_and_never_late(void)
{
	int64_t first = 0;
	bool differ = false;
	for (int64_t i = 0, now = 1000; i < 1000; i++, now += 100000) {
		pace_wrote(&pace, now);
		int64_t wait = pace_wait_ms(&pace, PACE_NO_NEWS, now);
		TEST_ASSERT_INT64_WITHIN(1500, 28500, wait);
		first = i == 0 ? wait : first;
		differ = differ || wait != first;
		TEST_ASSERT_EQUAL(0, pace_wait_ms(&pace, PACE_NO_NEWS, now + wait));
	}
	TEST_ASSERT_TRUE(differ);
}

static void changes_come_at_once_until_there_are_too_many(void)
{
	int64_t now = 5000;
	for (uint32_t i = 1; i < PACE_BURST; i++) {
		pace_wrote(&pace, now);
		TEST_ASSERT_EQUAL(PACE_LEAST_MS, pace_wait_ms(&pace, PACE_NEWS, now));
		now += PACE_LEAST_MS;
	}
	pace_wrote(&pace, now);
	TEST_ASSERT_EQUAL(5000 + PACE_GAP_MS, now + pace_wait_ms(&pace, PACE_NEWS, now));
}

static void bad_news_does_not_wait_for_its_turn(void)
{
	int64_t now = 5000;
	for (uint32_t i = 0; i < 100; i++) {
		pace_wrote(&pace, now);
		TEST_ASSERT_EQUAL(PACE_LEAST_MS, pace_wait_ms(&pace, PACE_BAD_NEWS, now));
		now += PACE_LEAST_MS;
	}
	TEST_ASSERT_LESS_OR_EQUAL(PACE_GAP_MS,
				  pace_wait_ms(&pace, PACE_NEWS, now)); /* and good news after it not long */
	pace_failed(&pace, 0, now); /* but a server that does not answer is left alone */
	TEST_ASSERT_GREATER_OR_EQUAL(PACE_BACKOFF_MS / 2, pace_wait_ms(&pace, PACE_BAD_NEWS, now));
}

static void in_the_long_run_there_is_a_write_a_gap(void)
{
	int64_t now = 5000;
	for (uint32_t i = 0; i < 100; i++) {
		now += pace_wait_ms(&pace, PACE_NEWS, now);
		pace_wrote(&pace, now);
	}
	TEST_ASSERT_EQUAL(5000 + (100 - PACE_BURST) * PACE_GAP_MS, now);
}

static void failures_wait_twice_as_long_each_up_to_a_limit(void)
{
	int64_t most = PACE_BACKOFF_MS;
	for (uint32_t i = 0; i < 100; i++) {
		pace_failed(&pace, 0, 1000);
		int64_t wait = pace_wait_ms(&pace, PACE_NEWS, 1000);
		TEST_ASSERT_TRUE(wait >= most / 2 && wait <= most);
		TEST_ASSERT_EQUAL(wait, pace_wait_ms(&pace, PACE_NO_NEWS, 1000)); /* what has no news as well */
		most = most * 2 < PACE_BACKOFF_MAX ? most * 2 : PACE_BACKOFF_MAX;
	}
	pace_wrote(&pace, 2000);
	pace_failed(&pace, 0, 2000);
	TEST_ASSERT_LESS_OR_EQUAL(PACE_BACKOFF_MS, pace_wait_ms(&pace, PACE_NEWS, 2000));
}

static void a_server_that_takes_something_else_is_well(void)
{
	for (uint32_t i = 0; i < 5; i++)
		pace_failed(&pace, 0, 1000);
	pace_answered(&pace);
	pace_failed(&pace, 0, 60000);
	TEST_ASSERT_LESS_OR_EQUAL(PACE_BACKOFF_MS, pace_wait_ms(&pace, PACE_BAD_NEWS, 60000));
}

static void the_server_may_ask_for_more_but_not_for_ever(void)
{
	pace_failed(&pace, 7, 1000);
	TEST_ASSERT_INT64_WITHIN(500, 7500, pace_wait_ms(&pace, PACE_NEWS, 1000));
	pace_failed(&pace, INT64_MAX, 1000);
	TEST_ASSERT_INT64_WITHIN(500, PACE_OBEYED_MAX_S * 1000 + 500, pace_wait_ms(&pace, PACE_NEWS, 1000));
}

static void agents_that_fail_together_do_not_come_back_together(void)
{
	uint32_t buckets[10] = {0};
	for (uint64_t seed = 0; seed < 1000; seed++) {
		pace_start(&pace, 30000, seed, 0);
		for (uint32_t i = 0; i < 6; i++)
			pace_failed(&pace, 0, 0);
		int64_t wait = pace_wait_ms(&pace, PACE_NEWS, 0);
		buckets[(wait - PACE_BACKOFF_MAX / 2) * 10 / (PACE_BACKOFF_MAX / 2 + 1)]++;
	}
	for (uint32_t i = 0; i < 10; i++)
		TEST_ASSERT_UINT32_WITHIN(50, 100, buckets[i]);
}

static void a_refusal_is_meant_when_nothing_else_is_heard_for_long(void)
{
	TEST_ASSERT_FALSE(pace_refused(&pace, false, 1000));
	TEST_ASSERT_FALSE(pace_refused(&pace, true, 2000));
	TEST_ASSERT_FALSE(pace_refused(&pace, true, 2000 + PACE_REFUSAL_MS - 1));
	TEST_ASSERT_TRUE(pace_refused(&pace, true, 2000 + PACE_REFUSAL_MS));
	TEST_ASSERT_TRUE(pace_refused(&pace, true, 2001 + PACE_REFUSAL_MS)); /* of the next request as well */
	TEST_ASSERT_FALSE(pace_refused(&pace, false, 2002 + PACE_REFUSAL_MS));
	TEST_ASSERT_FALSE(pace_refused(&pace, true, 2003 + PACE_REFUSAL_MS));
	TEST_ASSERT_FALSE(pace_refused(&pace, true, 2002 + 2 * PACE_REFUSAL_MS));
	TEST_ASSERT_TRUE(pace_refused(&pace, true, 2003 + 2 * PACE_REFUSAL_MS));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(the_first_write_is_due_at_once);
	RUN_TEST(what_is_due_comes_a_little_early_and_never_late);
	RUN_TEST(changes_come_at_once_until_there_are_too_many);
	RUN_TEST(bad_news_does_not_wait_for_its_turn);
	RUN_TEST(in_the_long_run_there_is_a_write_a_gap);
	RUN_TEST(failures_wait_twice_as_long_each_up_to_a_limit);
	RUN_TEST(a_server_that_takes_something_else_is_well);
	RUN_TEST(the_server_may_ask_for_more_but_not_for_ever);
	RUN_TEST(agents_that_fail_together_do_not_come_back_together);
	RUN_TEST(a_refusal_is_meant_when_nothing_else_is_heard_for_long);
	return UNITY_END();
}
