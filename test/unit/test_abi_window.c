/* SPDX-License-Identifier: Apache-2.0 */
/* window() and backfill() through the ABI: what they say, and what they refuse with which sentence. */
#include "cluster.h"
#include "text/duration.h"

static struct cluster *c;

void setUp(void)
{
	c = cluster_make("spine:1 leaf:2 node:2 gpu:8", "");
}

void tearDown(void)
{
	cluster_free(c);
}

static struct frond_window out;

static int32_t ask(const struct frond_end *ends, uint32_t count)
{
	char in[CLUSTER_IN];
	struct frond_pair pairs[16];
	struct wanted w = {.name = "big", .members = 2, .gpus = 8};
	uint32_t in_len = request_make(c, &w, in, pairs);
	int32_t code = abi->window(c->engine, &c->request, c->members, pairs, in, in_len, NULL, 0, ends, count, NULL,
				   &out, c->places, c->text, CLUSTER_TEXT - 1, &c->len);
	c->text[c->len] = 0;
	check(c);
	return code;
}

static void refused(const struct frond_end *ends, uint32_t count, const char *sentence)
{
	remember(c);
	TEST_ASSERT_EQUAL_INT32(FROND_BAD, ask(ends, count));
	TEST_ASSERT_EQUAL_STRING(sentence, c->text);
	unchanged(c);
}

static void test_a_window_says_when_and_where(void)
{
	TEST_ASSERT_EQUAL_INT32(FROND_OK, ask(NULL, 0));
	TEST_ASSERT_EQUAL_STRING("2 of 2 nodes are free in leaf-1", c->text);
	TEST_ASSERT_EQUAL_INT64(0, out.start_ms);
}

static void test_ends_are_checked_one_by_one(void)
{
	refused(&(struct frond_end){{1, 1}, -1}, 1, "ends[0].ends_in_ms: must be between 0 and 4398046511103, got -1");
	refused(&(struct frond_end){{1, 1}, FROND_DEADLINE_MAX + 1}, 1,
		"ends[0].ends_in_ms: must be between 0 and 4398046511103, got 4398046511104");
	refused((struct frond_end[]){{{1, 1}, 5}, {{1, 2}, 4}}, 2, "ends[1].ends_in_ms: must ascend, got 4 after 5");
}

static void test_backfill_says_why(void)
{
	static const struct {
		struct frond_backfill question;
		int32_t code;
		uint32_t allowed;
		const char *sentence;
	} cases[] = {
		{{.start_ms = 2700000, .ends_in_ms = 2400000},
		 FROND_OK,
		 1,
		 "it ends in 40m, the reservation starts in 45m"},
		{{.start_ms = 60000, .ends_in_ms = 61000},
		 FROND_OK,
		 0,
		 "it ends in 1m1s, the reservation starts in 1m, and priority 0 does not matter, because the gang "
		 "never preempts"},
		{{.start_ms = 60000, .ends_in_ms = -1, .window_preempts = 1, .window_priority = 3, .pod_priority = 2},
		 FROND_OK,
		 1,
		 "it may be evicted for the reservation: priority 2 is under 3"},
		{{.start_ms = 60000, .ends_in_ms = -1, .window_preempts = 1},
		 FROND_OK,
		 0,
		 "nobody knows when it ends, the reservation starts in 1m, and priority 0 is not lower"},
		{{.start_ms = -1}, FROND_BAD, 2, "start_ms: must be between 0 and 4398046511103, got -1"},
		{{.ends_in_ms = -2}, FROND_BAD, 2, "ends_in_ms: must be between -1 and 4398046511103, got -2"},
		{{.window_preempts = 2}, FROND_BAD, 2, "window_preempts: must be 0 or 1, got 2, and reserved 0"},
		{{.reserved = 1}, FROND_BAD, 2, "window_preempts: must be 0 or 1, got 0, and reserved 0"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint32_t allowed = 2;
		TEST_ASSERT_EQUAL_INT32(
			cases[i].code, abi->backfill(&cases[i].question, &allowed, c->text, CLUSTER_TEXT - 1, &c->len));
		c->text[c->len] = 0;
		TEST_ASSERT_EQUAL_STRING(cases[i].sentence, c->text);
		TEST_ASSERT_EQUAL_UINT32(cases[i].allowed, allowed);
	}
}

static void test_durations_read_as_they_are_written(void)
{
	static const struct {
		int64_t ms;
		const char *text;
	} cases[] = {{-1, "never"},       {0, "now"},
		     {1, "1s"},           {1000, "1s"},
		     {59001, "1m"},       {2700000, "45m"},
		     {3600000, "1h"},     {5400000, "1h30m"},
		     {3661000, "1h1m1s"}, {FROND_DEADLINE_MAX, "1221679h35m12s"}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int64_t ms = 0;
		struct duration_text text = duration_text(cases[i].ms);
		TEST_ASSERT_EQUAL_STRING(cases[i].text, text.text);
		if (cases[i].ms > 0 && cases[i].ms % 1000 == 0) {
			TEST_ASSERT_NULL(duration_read(text.text, strlen(text.text), &ms));
			TEST_ASSERT_EQUAL_INT64(cases[i].ms, ms);
		}
	}
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_a_window_says_when_and_where);
	RUN_TEST(test_ends_are_checked_one_by_one);
	RUN_TEST(test_backfill_says_why);
	RUN_TEST(test_durations_read_as_they_are_written);
	return UNITY_END();
}
