/* SPDX-License-Identifier: Apache-2.0 */
#include "text/wish.h"

#include <stdlib.h>
#include <string.h>
#include <unity.h>

#define PREFIX "topology.scheduler/"

static struct args args;
static struct wish wish;
static struct complaint complaint;

void setUp(void)
{
	TEST_ASSERT_EQUAL(FROND_OK, args_read(NULL, 0, &args, &complaint));
	memset(&wish, 0xa5, sizeof(wish));
	memset(&complaint, 0, sizeof(complaint));
}

void tearDown(void)
{
}

/* One annotation, in a buffer of exactly its size. */
static int32_t read_bytes(const char *key, const char *value, uint32_t value_len)
{
	uint32_t key_len = (uint32_t)strlen(key);
	char *in = malloc(key_len + value_len == 0 ? 1 : key_len + value_len);
	TEST_ASSERT_NOT_NULL(in);
	memcpy(in, key, key_len);
	memcpy(in + key_len, value, value_len);
	struct frond_pair pair = {{0, key_len}, {key_len, value_len}};
	int32_t code = wish_read(&pair, 1, in, key_len + value_len, &args, &wish, &complaint);
	free(in);
	return code;
}

static void accepted(const char *key, const char *value)
{
	int32_t code = read_bytes(key, value, (uint32_t)strlen(value));
	TEST_ASSERT_EQUAL_MESSAGE(FROND_OK, code, complaint.text);
}

static void refused(const char *key, const char *value, const char *sentence)
{
	struct wish before;
	memset(&wish, 0xa5, sizeof(wish));
	memcpy(&before, &wish, sizeof(wish));
	TEST_ASSERT_EQUAL_MESSAGE(FROND_BAD, read_bytes(key, value, (uint32_t)strlen(value)), value);
	TEST_ASSERT_EQUAL_STRING(sentence, complaint.text);
	TEST_ASSERT_EQUAL_MEMORY(&before, &wish, sizeof(wish)); /* on failure nothing has changed */
}

/* ---- defaults and keys ----------------------------------------------------------------------------------------- */

static void test_without_annotations_a_wish_is_what_args_say(void)
{
	args.strategy = STRATEGY_DISTRIBUTED;
	args.mode = MODE_PREFERRED;
	args.wait_ms = 7;
	args.recovery = RECOVERY_WAIT;
	TEST_ASSERT_EQUAL(FROND_OK, wish_read(NULL, 0, NULL, 0, &args, &wish, &complaint));
	TEST_ASSERT_EQUAL_UINT64(0, wish.gpu_count);
	TEST_ASSERT_EQUAL_STRING("", wish.preferred_domain);
	TEST_ASSERT_EQUAL_UINT32(0, wish.bandwidth_gbps);
	TEST_ASSERT_FALSE(wish.latency_sensitive);
	TEST_ASSERT_EQUAL(STRATEGY_DISTRIBUTED, wish.strategy);
	TEST_ASSERT_EQUAL(MODE_PREFERRED, wish.mode);
	TEST_ASSERT_EQUAL_INT64(7, wish.wait_ms);
	TEST_ASSERT_EQUAL(RECOVERY_WAIT, wish.recovery);
}

static void test_all_annotations_together_are_read(void)
{
	static const char in[] = PREFIX "gpu-count"
					"16" PREFIX "preferred-domain"
					"leaf-1" PREFIX "recovery"
					"MoveGang";
	const uint32_t p = sizeof(PREFIX) - 1;
	const struct frond_pair pairs[] = {
		{{0, p + 9}, {p + 9, 2}},
		{{p + 11, p + 16}, {2 * p + 27, 6}},
		{{2 * p + 33, p + 8}, {3 * p + 41, 8}},
	};
	TEST_ASSERT_EQUAL(FROND_OK, wish_read(pairs, 3, in, sizeof(in) - 1, &args, &wish, &complaint));
	TEST_ASSERT_EQUAL_UINT64(16, wish.gpu_count);
	TEST_ASSERT_EQUAL_STRING("leaf-1", wish.preferred_domain);
	TEST_ASSERT_EQUAL(RECOVERY_MOVE_GANG, wish.recovery);
}

static void test_keys_of_other_projects_are_passed_over(void)
{
	accepted("example.com/gpu-count", "many");
	accepted("gpu-count", "many");
	accepted("topology.scheduler", "x");
	accepted("", "");
	TEST_ASSERT_EQUAL_UINT64(0, wish.gpu_count);
}

static void test_keys_that_frond_writes_are_passed_over(void)
{
	accepted(PREFIX "rank", "3");
	accepted(PREFIX "domain", "spine-1/leaf-3");
	TEST_ASSERT_EQUAL_STRING("", wish.preferred_domain);
}

static void test_an_unknown_key_is_refused_by_name(void)
{
	static const char known[] = "; known are gpu-count, preferred-domain, network-bandwidth, latency-sensitive, "
				    "placement-strategy, topology-mode, topology-wait, recovery, segment-size, "
				    "segment-level, expected-duration";
	char sentence[FROND_TEXT_MAX] = PREFIX "gpu-cnt: is not a known key";
	refused(PREFIX "gpu-cnt", "1", strcat(sentence, known));
	strcpy(sentence, PREFIX ": is not a known key");
	refused(PREFIX, "1", strcat(sentence, known));
	strcpy(sentence, PREFIX "Gpu-Count: is not a known key");
	refused(PREFIX "Gpu-Count", "1", strcat(sentence, known));
}

static void test_a_key_twice_is_refused(void)
{
	static const char in[] = PREFIX "gpu-count"
					"1";
	const struct frond_pair pair = {{0, sizeof(in) - 2}, {sizeof(in) - 2, 1}}, pairs[] = {pair, pair};
	TEST_ASSERT_EQUAL(FROND_BAD, wish_read(pairs, 2, in, sizeof(in) - 1, &args, &wish, &complaint));
	TEST_ASSERT_EQUAL_STRING(PREFIX "gpu-count: is written twice", complaint.text);
}

static void test_spans_outside_the_text_are_refused(void)
{
	static const struct frond_pair bad[] = {{{0, 5}, {0, 0}},
						{{5, 0}, {0, 0}},
						{{0, 0}, {4, 1}},
						{{UINT32_MAX, 2}, {0, 0}},
						{{0, 0}, {1, UINT32_MAX}}};
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		TEST_ASSERT_EQUAL(FROND_BAD, wish_read(&bad[i], 1, "text", 4, &args, &wish, &complaint));
		TEST_ASSERT_EQUAL_STRING("annotation 0: lies outside the text that came with it", complaint.text);
	}
	const struct frond_pair edge = {{4, 0}, {0, 4}};
	TEST_ASSERT_EQUAL(FROND_OK, wish_read(&edge, 1, "text", 4, &args, &wish, &complaint));
}

static void test_a_long_value_is_refused_with_its_length_only(void)
{
	char *value = malloc(262144);
	TEST_ASSERT_NOT_NULL(value);
	memset(value, '1', 262144);
	TEST_ASSERT_EQUAL(FROND_BAD, read_bytes(PREFIX "gpu-count", value, 262144));
	TEST_ASSERT_EQUAL_STRING(PREFIX "gpu-count: is 262144 bytes long; at most 4096 are read", complaint.text);
	TEST_ASSERT_EQUAL(FROND_BAD, read_bytes(PREFIX "gpu-count", value, FROND_VALUE_MAX + 1));
	TEST_ASSERT_EQUAL_STRING(PREFIX "gpu-count: is 4097 bytes long; at most 4096 are read", complaint.text);
	TEST_ASSERT_EQUAL(FROND_BAD, read_bytes(PREFIX "gpu-count", value, FROND_VALUE_MAX));
	TEST_ASSERT_EQUAL_STRING(PREFIX
				 "gpu-count: \"1111111111111111111111111111111111111111…\" is not a number of GPUs "
				 "from 1 to 2147483648; write for example \"16\"",
				 complaint.text);
	TEST_ASSERT_EQUAL(FROND_OK, read_bytes("example.com/other", value, 262144));
	free(value);
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

static void test_gpu_count_is_1_to_2_to_the_31(void)
{
	accepted(PREFIX "gpu-count", "1");
	TEST_ASSERT_EQUAL_UINT64(1, wish.gpu_count);
	accepted(PREFIX "gpu-count", "2147483648");
	TEST_ASSERT_EQUAL_UINT64(2147483648u, wish.gpu_count);
	refused(PREFIX "gpu-count", "0",
		PREFIX "gpu-count: \"0\" is not a number of GPUs from 1 to 2147483648; write for example \"16\"");
	refused(PREFIX "gpu-count", "2147483649",
		PREFIX
		"gpu-count: \"2147483649\" is not a number of GPUs from 1 to 2147483648; write for example \"16\"");
	static const char *const bad[] = {
		"", "-1", "+1", " 1", "1 ", "016", "1.0", "0x10", "16\n", "sixteen", "99999999999999999999999999"};
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		TEST_ASSERT_EQUAL_MESSAGE(FROND_BAD, read_bytes(PREFIX "gpu-count", bad[i], (uint32_t)strlen(bad[i])),
					  bad[i]);
	TEST_ASSERT_EQUAL(FROND_BAD, read_bytes(PREFIX "gpu-count", "1\0", 2));
}

static void test_the_preferred_domain_is_a_name_of_at_most_253_bytes(void)
{
	char name[256];
	memset(name, 'd', sizeof(name));
	name[FROND_NAME_MAX] = '\0';
	accepted(PREFIX "preferred-domain", name);
	TEST_ASSERT_EQUAL_STRING(name, wish.preferred_domain);
	name[FROND_NAME_MAX] = 'd';
	TEST_ASSERT_EQUAL(FROND_BAD, read_bytes(PREFIX "preferred-domain", name, FROND_NAME_MAX + 1));
	refused(PREFIX "preferred-domain", "",
		PREFIX
		"preferred-domain: \"\" is not the name of a domain; write for example \"leaf-1\" or \"spine-1\"");
	refused(PREFIX "preferred-domain", "leaf 1",
		PREFIX "preferred-domain: \"leaf 1\" is not the name of a domain; write for example \"leaf-1\" or "
		       "\"spine-1\"");
}

static void bandwidth_is(const char *value, uint32_t gbps)
{
	accepted(PREFIX "network-bandwidth", value);
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(gbps, wish.bandwidth_gbps, value);
}

static void test_bandwidth_is_in_whole_gigabit_rounded_up(void)
{
	bandwidth_is("100Gb", 100);
	bandwidth_is("200Gb", 200);
	bandwidth_is("1.6Tb", 1600);
	bandwidth_is("1Mb", 1);
	bandwidth_is("1000Mb", 1);
	bandwidth_is("1001Mb", 2);
	bandwidth_is("1000.000001Mb", 2);
	bandwidth_is("2.5Gb", 3);
	bandwidth_is("0.000001Mb", 1);
	bandwidth_is("0.4Tb", 400);
	bandwidth_is("0.400001Tb", 401);
	bandwidth_is("1000Tb", 1000000);
	bandwidth_is("1000000Gb", 1000000);
	bandwidth_is("1000000000Mb", 1000000);
}

static void test_what_is_no_bandwidth_is_refused(void)
{
	refused(PREFIX "network-bandwidth", "fast",
		PREFIX "network-bandwidth: \"fast\" is not a bandwidth of at most 1000Tb; write for example \"100Gb\", "
		       "\"1.6Tb\" or \"500Mb\"");
	static const char *const bad[] = {"",       "100",       "Gb",           "100G",
					  "100GB",  "100gb",     "100 Gb",       "-1Gb",
					  ".5Tb",   "1.Tb",      "1..5Tb",       "1,5Tb",
					  "0Gb",    "0.0Tb",     "01Gb",         "1e3Gb",
					  "100Kb",  "100Gbps",   "1.1234567Tb",  "1000.000001Tb",
					  "1001Tb", "1000001Gb", "1000000001Mb", "99999999999999999999Tb",
					  "100Gb\n"};
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		TEST_ASSERT_EQUAL_MESSAGE(
			FROND_BAD, read_bytes(PREFIX "network-bandwidth", bad[i], (uint32_t)strlen(bad[i])), bad[i]);
}

static void test_latency_sensitive_is_required_without_end(void)
{
	args.mode = MODE_PREFERRED;
	accepted(PREFIX "latency-sensitive", "true");
	TEST_ASSERT_TRUE(wish.latency_sensitive);
	TEST_ASSERT_EQUAL(MODE_REQUIRED, wish.mode);
	TEST_ASSERT_EQUAL_INT64(WAIT_FOREVER, wish.wait_ms);
	accepted(PREFIX "latency-sensitive", "false");
	TEST_ASSERT_FALSE(wish.latency_sensitive);
	TEST_ASSERT_EQUAL(MODE_PREFERRED, wish.mode);
	refused(PREFIX "latency-sensitive", "yes",
		PREFIX "latency-sensitive: \"yes\" is not true or false; write for example \"true\"");
}

static void test_strategy_mode_and_recovery_are_words_of_their_lists(void)
{
	accepted(PREFIX "placement-strategy", "consolidated");
	TEST_ASSERT_EQUAL(STRATEGY_CONSOLIDATED, wish.strategy);
	accepted(PREFIX "topology-mode", "Ignore");
	TEST_ASSERT_EQUAL(MODE_IGNORE, wish.mode);
	accepted(PREFIX "recovery", "Wait");
	TEST_ASSERT_EQUAL(RECOVERY_WAIT, wish.recovery);
	refused(PREFIX "placement-strategy", "packed",
		PREFIX "placement-strategy: \"packed\" is not a strategy; write \"consolidated\", \"distributed\" or "
		       "\"balanced\"");
	refused(PREFIX "topology-mode", "required",
		PREFIX "topology-mode: \"required\" is not a mode; write \"Required\", \"Preferred\" or \"Ignore\"");
	refused(PREFIX "recovery", "",
		PREFIX "recovery: \"\" is not a recovery policy; write \"Replace\", \"MoveGang\" or \"Wait\"");
}

static void test_the_wait_is_a_duration(void)
{
	accepted(PREFIX "topology-wait", "10m");
	TEST_ASSERT_EQUAL_INT64(600000, wish.wait_ms);
	accepted(PREFIX "topology-wait", "forever");
	TEST_ASSERT_EQUAL_INT64(WAIT_FOREVER, wish.wait_ms);
	refused(PREFIX "topology-wait", "10 minutes",
		PREFIX "topology-wait: \"10 minutes\" is not a duration; write for example \"10m\" or \"forever\"");
}

static void test_a_segment_is_so_many_ranks(void)
{
	static const char sentence[] = " is not a number of ranks from 1 to 2147483647; write for example \"16\"";
	static const char *const wrong[] = {"0",   "",    "-1",  "2147483648", "99999999999999999999",
					    "016", "16 ", "1.5", "all"};
	accepted("", "");
	TEST_ASSERT_EQUAL_UINT16(0, wish.segments.size);
	accepted(PREFIX "segment-size", "16");
	TEST_ASSERT_EQUAL_UINT16(16, wish.segments.size);
	TEST_ASSERT_EQUAL(SEGMENT_DEFAULT, wish.segments.level);
	accepted(PREFIX "segment-size", "2147483647"); /* the whole gang, whatever its size */
	TEST_ASSERT_EQUAL_UINT16(FROND_MEMBERS_MAX, wish.segments.size);
	for (uint32_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		char expected[FROND_TEXT_MAX];
		snprintf(expected, sizeof expected, PREFIX "segment-size: \"%s\"%s", wrong[i], sentence);
		refused(PREFIX "segment-size", wrong[i], expected);
	}
	refused(PREFIX "segment-level", "rack",
		PREFIX "segment-level: \"rack\" is not a level; write \"nvlink\" or \"leaf\"");
	refused(PREFIX "segment-level", "leaf",
		PREFIX "segment-level: is given without a segment-size; write for example " PREFIX
		       "segment-size: \"16\"");
}

static void test_the_expected_duration_has_an_end(void)
{
	static const char sentence[] = " is not how long a member runs; write for example \"2h\" or \"1h30m\"";
	static const char *const wrong[] = {"soon", "forever", "", "0s", "2"};
	accepted("", "");
	TEST_ASSERT_EQUAL_INT64(WAIT_FOREVER, wish.expected_ms);
	accepted(PREFIX "expected-duration", "2h");
	TEST_ASSERT_EQUAL_INT64(7200000, wish.expected_ms);
	for (uint32_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		char expected[FROND_TEXT_MAX];
		snprintf(expected, sizeof expected, PREFIX "expected-duration: \"%s\"%s", wrong[i], sentence);
		refused(PREFIX "expected-duration", wrong[i], expected);
	}
}

/* Reference 3.1: who writes Required himself waits without end, unless he says for how long. */
static void test_a_mode_that_is_written_does_not_relax(void)
{
	args.mode = MODE_REQUIRED;
	args.wait_ms = 300000;
	accepted(PREFIX "recovery", "Wait");
	TEST_ASSERT_EQUAL(MODE_REQUIRED, wish.mode);
	TEST_ASSERT_EQUAL_INT64(300000, wish.wait_ms);
	accepted(PREFIX "topology-wait", "10m");
	TEST_ASSERT_EQUAL_INT64(600000, wish.wait_ms);
	accepted(PREFIX "topology-mode", "Required");
	TEST_ASSERT_EQUAL_INT64(WAIT_FOREVER, wish.wait_ms);
	args.mode = MODE_PREFERRED;
	accepted(PREFIX "topology-mode", "Required");
	TEST_ASSERT_EQUAL(MODE_REQUIRED, wish.mode);
	TEST_ASSERT_EQUAL_INT64(WAIT_FOREVER, wish.wait_ms);

	static const char in[] = PREFIX "topology-wait"
					"10m" PREFIX "topology-mode"
					"Required";
	const uint32_t p = sizeof(PREFIX) - 1;
	const struct frond_pair pairs[] = {{{0, p + 13}, {p + 13, 3}}, {{p + 16, p + 13}, {2 * p + 29, 8}}},
				turned[] = {pairs[1], pairs[0]};
	TEST_ASSERT_EQUAL(FROND_OK, wish_read(pairs, 2, in, sizeof(in) - 1, &args, &wish, &complaint));
	TEST_ASSERT_EQUAL(MODE_REQUIRED, wish.mode);
	TEST_ASSERT_EQUAL_INT64(600000, wish.wait_ms);
	TEST_ASSERT_EQUAL(FROND_OK, wish_read(turned, 2, in, sizeof(in) - 1, &args, &wish, &complaint));
	TEST_ASSERT_EQUAL_INT64(600000, wish.wait_ms);
}

static void test_hostile_bytes_are_shown_harmlessly(void)
{
	refused(PREFIX "topology-mode", "\x1b[31m\n",
		PREFIX "topology-mode: \"?[31m?\" is not a mode; write \"Required\", \"Preferred\" or \"Ignore\"");
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_without_annotations_a_wish_is_what_args_say);
	RUN_TEST(test_all_annotations_together_are_read);
	RUN_TEST(test_keys_of_other_projects_are_passed_over);
	RUN_TEST(test_keys_that_frond_writes_are_passed_over);
	RUN_TEST(test_an_unknown_key_is_refused_by_name);
	RUN_TEST(test_a_key_twice_is_refused);
	RUN_TEST(test_spans_outside_the_text_are_refused);
	RUN_TEST(test_a_long_value_is_refused_with_its_length_only);
	RUN_TEST(test_gpu_count_is_1_to_2_to_the_31);
	RUN_TEST(test_the_preferred_domain_is_a_name_of_at_most_253_bytes);
	RUN_TEST(test_bandwidth_is_in_whole_gigabit_rounded_up);
	RUN_TEST(test_what_is_no_bandwidth_is_refused);
	RUN_TEST(test_latency_sensitive_is_required_without_end);
	RUN_TEST(test_strategy_mode_and_recovery_are_words_of_their_lists);
	RUN_TEST(test_the_wait_is_a_duration);
	RUN_TEST(test_a_segment_is_so_many_ranks);
	RUN_TEST(test_the_expected_duration_has_an_end);
	RUN_TEST(test_a_mode_that_is_written_does_not_relax);
	RUN_TEST(test_hostile_bytes_are_shown_harmlessly);
	return UNITY_END();
}
