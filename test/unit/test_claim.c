/* SPDX-License-Identifier: Apache-2.0 */
#include "text/claim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

static struct claim claim;
static struct complaint complaint;

void setUp(void)
{
	memset(&claim, 0xa5, sizeof(claim));
	memset(&complaint, 0, sizeof(complaint));
}

void tearDown(void)
{
}

/* Read from a copy of exactly this size, so that the sanitizer sees a step beyond. */
static int32_t read_exact(const char *json, uint32_t len)
{
	char *copy = malloc(len == 0 ? 1 : len);
	TEST_ASSERT_NOT_NULL(copy);
	memcpy(copy, json, len);
	int32_t code = claim_read(copy, len, &claim, &complaint);
	free(copy);
	return code;
}

static void accepted(const char *json)
{
	setUp();
	int32_t code = read_exact(json, (uint32_t)strlen(json));
	TEST_ASSERT_EQUAL_MESSAGE(FROND_OK, code, complaint.text);
}

static void refused_bytes(const char *json, uint32_t len, const char *sentence)
{
	static struct claim before;
	setUp();
	memcpy(&before, &claim, sizeof(claim));
	TEST_ASSERT_EQUAL_MESSAGE(FROND_BAD, read_exact(json, len), json);
	TEST_ASSERT_EQUAL_STRING(sentence, complaint.text);
	TEST_ASSERT_EQUAL_MEMORY(&before, &claim, sizeof(claim)); /* on failure nothing has changed */
}

static void refused(const char *json, const char *sentence)
{
	refused_bytes(json, (uint32_t)strlen(json), sentence);
}

/* A claim of `count` copies of `item`, in which %u is the number of the copy, between `before` and `after`. */
static const char *repeated(const char *before, const char *item, uint32_t count, const char *after)
{
	static char json[4096];
	uint32_t used = (uint32_t)snprintf(json, sizeof(json), "%s", before);
	for (uint32_t i = 0; i < count; i++) {
		char number[16];
		snprintf(number, sizeof(number), "%u", i);
		const char *mark = strstr(item, "%u");
		TEST_ASSERT_NOT_NULL(mark);
		used += (uint32_t)snprintf(json + used, sizeof(json) - used, "%s%.*s%s%s", i == 0 ? "" : ", ",
					   (int)(mark - item), item, number, mark + 2);
	}
	snprintf(json + used, sizeof(json) - used, "%s", after);
	return json;
}

/* ---- good claims ----------------------------------------------------------------------------------------------- */

static void all_defaults(void)
{
	TEST_ASSERT_EQUAL_UINT32(0, claim.count);
	TEST_ASSERT_EQUAL(GPU_CONTIGUOUS, claim.policy);
	TEST_ASSERT_EQUAL(MODE_PREFERRED, claim.mode);
	TEST_ASSERT_EQUAL(GPU_ANYWHERE, claim.locality);
	TEST_ASSERT_EQUAL_UINT32(0, claim.min_gbps);
	TEST_ASSERT_EQUAL_UINT32(0, claim.prefer_count);
	TEST_ASSERT_EQUAL_STRING("", claim.gang_ref);
	TEST_ASSERT_EQUAL_UINT32(0, claim.label_count);
}

static void test_nothing_and_an_empty_object_give_the_defaults(void)
{
	TEST_ASSERT_EQUAL(FROND_OK, claim_read(NULL, 0, &claim, &complaint));
	all_defaults();
	static const char *const empty[] = {" \n\t\r", "{}", " {} \n",
					    "{\"devices\": {}, \"topology\": {}, \"selector\": {}}",
					    "{\"selector\": {\"matchLabels\": {}}}"};
	for (uint32_t i = 0; i < COUNT(empty); i++) {
		accepted(empty[i]);
		all_defaults();
	}
}

static void test_every_field_is_read(void)
{
	accepted("{\"devices\": {\"count\": 4, \"policy\": \"preferIds\", \"exclusivity\": \"Exclusive\","
		 "\"preferIds\": [3, \"0\", \"GPU-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c\", \"node-3-gpu-2\"]},"
		 "\"topology\": {\"mode\": \"Required\", \"locality\": \"nvlink\", \"minBandwidthGBps\": 300},"
		 "\"selector\": {\"matchLabels\": {\"nvidia.com/gpu.product\": \"H100\", \"pool\": \"\"}},"
		 "\"gangRef\": \"train-a\"}");
	TEST_ASSERT_EQUAL_UINT32(4, claim.count);
	TEST_ASSERT_EQUAL(GPU_PREFER, claim.policy);
	TEST_ASSERT_EQUAL_UINT32(4, claim.prefer_count);
	TEST_ASSERT_TRUE(claim.prefer[0].by_index);
	TEST_ASSERT_EQUAL_UINT32(3, claim.prefer[0].index);
	TEST_ASSERT_TRUE(claim.prefer[1].by_index);
	TEST_ASSERT_EQUAL_UINT32(0, claim.prefer[1].index);
	TEST_ASSERT_EQUAL_STRING("", claim.prefer[1].id);
	TEST_ASSERT_FALSE(claim.prefer[2].by_index);
	TEST_ASSERT_EQUAL_STRING("GPU-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c", claim.prefer[2].id);
	TEST_ASSERT_FALSE(claim.prefer[3].by_index);
	TEST_ASSERT_EQUAL_STRING("node-3-gpu-2", claim.prefer[3].id);
	TEST_ASSERT_EQUAL(MODE_REQUIRED, claim.mode);
	TEST_ASSERT_EQUAL(GPU_NVLINK, claim.locality);
	TEST_ASSERT_EQUAL_UINT32(300, claim.min_gbps);
	TEST_ASSERT_EQUAL_UINT32(2, claim.label_count);
	TEST_ASSERT_EQUAL_STRING("nvidia.com/gpu.product", claim.labels[0].key);
	TEST_ASSERT_EQUAL_STRING("H100", claim.labels[0].value);
	TEST_ASSERT_EQUAL_STRING("pool", claim.labels[1].key);
	TEST_ASSERT_EQUAL_STRING("", claim.labels[1].value);
	TEST_ASSERT_EQUAL_STRING("train-a", claim.gang_ref);
}

static void test_every_word_has_its_meaning(void)
{
	accepted("{\"devices\": {\"policy\": \"contiguous\"}, \"topology\": {\"mode\": \"Preferred\"}}");
	TEST_ASSERT_EQUAL(GPU_CONTIGUOUS, claim.policy);
	TEST_ASSERT_EQUAL(MODE_PREFERRED, claim.mode);
	accepted("{\"devices\": {\"policy\": \"spread\"}, \"topology\": {\"mode\": \"Ignore\"}}");
	TEST_ASSERT_EQUAL(GPU_SPREAD, claim.policy);
	TEST_ASSERT_EQUAL(MODE_IGNORE, claim.mode);
	static const struct {
		const char *word;
		enum gpu_locality want;
	} localities[] = {{"any", GPU_ANYWHERE},
			  {"same-node", GPU_ANYWHERE},
			  {"same-socket", GPU_SAME_SOCKET},
			  {"nvlink", GPU_NVLINK}};
	for (uint32_t i = 0; i < COUNT(localities); i++) {
		char json[80];
		snprintf(json, sizeof(json), "{\"topology\": {\"locality\": \"%s\"}}", localities[i].word);
		accepted(json);
		TEST_ASSERT_EQUAL(localities[i].want, claim.locality);
	}
}

/* ---- the document ---------------------------------------------------------------------------------------------- */

static void test_a_document_that_is_not_one_json_object_is_refused(void)
{
	refused("[]", "claim: must be an object");
	refused("null", "claim: must be an object");
	refused("\"x\"", "claim: must be an object");
	refused("{", "claim: is not valid JSON at byte 1");
	refused("{} x", "claim: has more text after the end of its object, at byte 2");
	refused("{\"gangRef\": \"a}", "claim: is not valid JSON at byte 13");
	refused_bytes("{}\0", 3, "claim: holds a NUL byte, which is not allowed");
	refused("{\"gangRef\": \"a\\u0000b\"}", "claim: holds a NUL byte, which is not allowed");
	refused("{\"gangRef\": \"\xc3(\"}", "claim: is not UTF-8 at byte 13");
	refused("{\"gangRef\": \"\\ud800\"}", "claim: is not valid JSON at byte 13");
}

static void test_deep_nesting_is_refused_and_does_not_crash(void)
{
	static const char *const steps[] = {"[", "{\"devices\":", "{\"a\":"};
	for (uint32_t s = 0; s < COUNT(steps); s++) {
		uint32_t step = (uint32_t)strlen(steps[s]);
		char *json = malloc(10000u * step);
		TEST_ASSERT_NOT_NULL(json);
		for (uint32_t i = 0; i < 10000; i++)
			memcpy(json + i * step, steps[s], step);
		TEST_ASSERT_EQUAL(FROND_BAD, read_exact(json, 10000u * step));
		TEST_ASSERT_EQUAL_STRING_LEN("claim: is not valid JSON at byte ", complaint.text, 33);
		free(json);
	}
	refused("{\"devices\": {\"count\": [[[[1]]]]}}",
		"claim.devices.count: must be a whole number between 1 and 16, got a list");
}

/* Every prefix and every changed byte of a good claim: an answer, and a sentence when it is a refusal. */
static void test_damaged_claims_never_crash(void)
{
	static const char good[] =
		"{\"devices\":{\"count\":2,\"policy\":\"preferIds\",\"preferIds\":[1,\"2\",\"g-1\"]},"
		"\"topology\":{\"mode\":\"Ignore\",\"minBandwidthGBps\":5},"
		"\"selector\":{\"matchLabels\":{\"a/b\":\"c\"}},\"gangRef\":\"x\"}";
	static const char bytes[] = "\"{}[]:,\\0-.eE \x01\x7f\xff";
	uint32_t len = sizeof(good) - 1;
	accepted(good);
	for (uint32_t i = 1; i < len; i++)
		TEST_ASSERT_EQUAL(FROND_BAD, read_exact(good, i));
	for (uint32_t i = 0; i < len; i++) {
		for (uint32_t j = 0; j < sizeof(bytes); j++) { /* the NUL too */
			char bad[sizeof(good)];
			memcpy(bad, good, sizeof(good));
			bad[i] = bytes[j];
			complaint.text[0] = '\0';
			int32_t code = read_exact(bad, len);
			TEST_ASSERT_TRUE(code == FROND_OK || code == FROND_BAD);
			TEST_ASSERT_TRUE((code == FROND_OK) == (complaint.text[0] == '\0'));
			TEST_ASSERT_TRUE(code == FROND_OK || strncmp(complaint.text, "claim", 5) == 0);
		}
	}
}

static void test_unknown_fields_are_named_with_their_path(void)
{
	refused("{\"device\": {}}", "claim.device: is not a known field");
	refused("{\"GangRef\": \"x\"}", "claim.GangRef: is not a known field");
	refused("{\"devices\": {\"polcy\": \"spread\"}}", "claim.devices.polcy: is not a known field");
	refused("{\"topology\": {\"\": 1}}", "claim.topology.: is not a known field");
	refused("{\"selector\": {\"matchExpressions\": []}}", "claim.selector.matchExpressions: is not a known field");
}

static void test_a_key_written_twice_is_refused_at_every_depth(void)
{
	refused("{\"gangRef\": \"a\", \"gangRef\": \"a\"}", "claim.gangRef: is written twice");
	refused("{\"devices\": {\"count\": 1, \"count\": 1}}", "claim.devices.count: is written twice");
	refused("{\"topology\": {\"mode\": \"Ignore\", \"mode\": \"Ignore\"}}",
		"claim.topology.mode: is written twice");
	refused("{\"selector\": {\"matchLabels\": {}, \"matchLabels\": {}}}",
		"claim.selector.matchLabels: is written twice");
	refused("{\"selector\": {\"matchLabels\": {\"a\": \"1\", \"b\": \"2\", \"a\": \"1\"}}}",
		"claim.selector.matchLabels.a: is written twice");
}

static void test_sections_that_are_not_objects_are_refused(void)
{
	refused("{\"devices\": 4}", "claim.devices: must be an object");
	refused("{\"topology\": null}", "claim.topology: must be an object");
	refused("{\"selector\": []}", "claim.selector: must be an object");
	refused("{\"selector\": {\"matchLabels\": []}}",
		"claim.selector.matchLabels: must be an object of label keys and values, got a list");
	refused("{\"selector\": {\"matchLabels\": null}}",
		"claim.selector.matchLabels: must be an object of label keys and values, got null");
}

/* ---- devices --------------------------------------------------------------------------------------------------- */

static void test_the_count_is_1_to_16(void)
{
	accepted("{\"devices\": {\"count\": 1}}");
	TEST_ASSERT_EQUAL_UINT32(1, claim.count);
	accepted("{\"devices\": {\"count\": 16}}");
	TEST_ASSERT_EQUAL_UINT32(16, claim.count);
	static const char *const bad[][2] = {
		{"0", "0"},         {"17", "17"},
		{"-1", "-1"},       {"1.5", "1.5"},
		{"1e999", "inf"},   {"-1e999", "-inf"},
		{"\"4\"", "\"4\""}, {"true", "true"},
		{"null", "null"},   {"{}", "an object"},
		{"[1]", "a list"},  {"4294967297", "4294967297"},
		{"1e-400", "0"},    {"18446744073709551617", "1.84467440737096e+19"},
	};
	for (uint32_t i = 0; i < COUNT(bad); i++) {
		char json[80], sentence[120];
		snprintf(json, sizeof(json), "{\"devices\": {\"count\": %s}}", bad[i][0]);
		snprintf(sentence, sizeof(sentence),
			 "claim.devices.count: must be a whole number between 1 and 16, got %s", bad[i][1]);
		refused(json, sentence);
	}
	refused("{\"devices\": {\"count\": NaN}}", "claim: is not valid JSON at byte 22");
	refused("{\"devices\": {\"count\": Infinity}}", "claim: is not valid JSON at byte 22");
}

static void test_words_are_one_of_their_list(void)
{
	refused("{\"devices\": {\"policy\": \"fast\"}}",
		"claim.devices.policy: must be contiguous, spread or preferIds, got \"fast\"");
	refused("{\"devices\": {\"policy\": \"Spread\"}}",
		"claim.devices.policy: must be contiguous, spread or preferIds, got \"Spread\"");
	refused("{\"devices\": {\"policy\": 1}}",
		"claim.devices.policy: must be contiguous, spread or preferIds, got 1");
	refused("{\"devices\": {\"exclusivity\": \"exclusive\"}}",
		"claim.devices.exclusivity: must be Exclusive, Shared or MIG, got \"exclusive\"");
	refused("{\"topology\": {\"mode\": \"required\"}}",
		"claim.topology.mode: must be Required, Preferred or Ignore, got \"required\"");
	refused("{\"topology\": {\"locality\": \"rack\"}}",
		"claim.topology.locality: must be any, same-node, same-socket or nvlink, got \"rack\"");
	refused("{\"topology\": {\"locality\": null}}",
		"claim.topology.locality: must be any, same-node, same-socket or nvlink, got null");
}

static void test_what_comes_later_is_refused_by_name(void)
{
	refused("{\"devices\": {\"exclusivity\": \"Shared\"}}",
		"claim.devices.exclusivity: Shared is not yet supported; only Exclusive is allowed");
	refused("{\"devices\": {\"exclusivity\": \"MIG\"}}",
		"claim.devices.exclusivity: MIG is not yet supported; only Exclusive is allowed");
	refused("{\"devices\": {\"memoryMiB\": 4096}}", "claim.devices.memoryMiB: is not yet supported; leave it out");
	refused("{\"devices\": {\"exclusivity\": \"Exclusive\", \"computePercent\": null}}",
		"claim.devices.computePercent: is not yet supported; leave it out");
	refused("{\"devices\": {\"migProfile\": \"1g.5gb\"}}",
		"claim.devices.migProfile: is not yet supported; leave it out");
	refused("{\"devices\": {\"migProfile\": \"1g.5gb\", \"exclusivity\": \"MIG\"}}",
		"claim.devices.exclusivity: MIG is not yet supported; only Exclusive is allowed");
}

#define PREFER "{\"devices\": {\"policy\": \"preferIds\", \"preferIds\": "
#define ID_RULE                                                                                                        \
	"must be an index from 0 to 15, or an id of at most 260 letters, digits, \"-\", \"_\" and \".\" with a "       \
	"letter or digit at both ends"

static void test_ids_and_their_policy_come_together(void)
{
	refused("{\"devices\": {\"policy\": \"preferIds\"}}",
		"claim.devices.preferIds: is missing; policy preferIds needs 1 to 16 indices or ids");
	refused("{\"devices\": {\"preferIds\": [1]}}",
		"claim.devices.preferIds: is allowed with policy preferIds only, got policy contiguous");
	refused("{\"devices\": {\"preferIds\": [], \"policy\": \"spread\"}}",
		"claim.devices.preferIds: is allowed with policy preferIds only, got policy spread");
	refused(PREFER "[]}}", "claim.devices.preferIds: is empty; 1 to 16 indices or ids are allowed");
	refused(PREFER "\"1\"}}", "claim.devices.preferIds: must be a list of GPU indices or ids, got \"1\"");
	refused(PREFER "null}}", "claim.devices.preferIds: must be a list of GPU indices or ids, got null");
}

static void test_16_ids_fit_and_17_do_not(void)
{
	accepted(repeated(PREFER "[", "%u", 16, "]}}"));
	TEST_ASSERT_EQUAL_UINT32(16, claim.prefer_count);
	for (uint32_t i = 0; i < 16; i++) {
		TEST_ASSERT_TRUE(claim.prefer[i].by_index);
		TEST_ASSERT_EQUAL_UINT32(i, claim.prefer[i].index);
	}
	accepted(repeated(PREFER "[", "\"%u\"", 16, "]}}"));
	TEST_ASSERT_EQUAL_UINT32(15, claim.prefer[15].index);
	accepted(repeated(PREFER "[", "\"n-gpu-%u\"", 16, "]}}"));
	TEST_ASSERT_EQUAL_STRING("n-gpu-15", claim.prefer[15].id);
	refused(repeated(PREFER "[", "\"n-gpu-%u\"", 17, "]}}"),
		"claim.devices.preferIds: has more than 16 entries; a node has no more GPUs");
}

static void test_bad_ids_are_refused_with_their_place(void)
{
	static const char *const bad[][2] = {
		{"16", "16"},
		{"-1", "-1"},
		{"1.5", "1.5"},
		{"1e999", "inf"},
		{"\"16\"", "\"16\""},
		{"\"99999999999999999999\"", "\"99999999999999999999\""},
		{"\"\"", "\"\""},
		{"\"-1\"", "\"-1\""},
		{"null", "null"},
		{"[0]", "a list"},
		{"\"a,b\"", "\"a,b\""},
		{"\"a b\"", "\"a b\""},
		{"\"gpu-\"", "\"gpu-\""},
		{"\"gpu\\n1\"", "\"gpu?1\""},
		{"\"gr\xc3\xbcn\"", "\"gr\xc3\xbcn\""},
		{"false", "false"},
	};
	for (uint32_t i = 0; i < COUNT(bad); i++) {
		char json[120], sentence[FROND_TEXT_MAX];
		snprintf(json, sizeof(json), PREFER "[0, %s]}}", bad[i][0]);
		snprintf(sentence, sizeof(sentence), "claim.devices.preferIds[1]: " ID_RULE ", got %s", bad[i][1]);
		refused(json, sentence);
	}
}

static void test_an_id_twice_is_refused(void)
{
	refused(PREFER "[1, 2, 1]}}", "claim.devices.preferIds[2]: repeats entry 0; each GPU is listed once");
	refused(PREFER "[1, \"1\"]}}", "claim.devices.preferIds[1]: repeats entry 0; each GPU is listed once");
	refused(PREFER "[\"07\", 7]}}", "claim.devices.preferIds[1]: repeats entry 0; each GPU is listed once");
	refused(PREFER "[0, \"GPU-a\", \"GPU-a\"]}}",
		"claim.devices.preferIds[2]: repeats entry 1; each GPU is listed once");
	accepted(PREFER "[0, \"GPU-a\", \"GPU-A\"]}}"); /* ids are compared byte by byte */
}

static void test_the_longest_id_fits(void)
{
	char json[400] = PREFER "[\"";
	uint64_t start = strlen(json);
	memset(json + start, 'n', 253);
	strcpy(json + start + 253, "-gpu-15\"]}}");
	accepted(json);
	TEST_ASSERT_EQUAL_UINT64(260, strlen(claim.prefer[0].id));
	TEST_ASSERT_EQUAL_STRING("-gpu-15", claim.prefer[0].id + 253);
	strcpy(json + start + 253, "n-gpu-15\"]}}");
	refused(json, "claim.devices.preferIds[0]: " ID_RULE ", got \"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn…\"");
}

/* ---- topology, selector, gang ---------------------------------------------------------------------------------- */

static void test_the_bandwidth_is_0_to_a_million(void)
{
	accepted("{\"topology\": {\"minBandwidthGBps\": 0}}");
	TEST_ASSERT_EQUAL_UINT32(0, claim.min_gbps);
	accepted("{\"topology\": {\"minBandwidthGBps\": 1000000}}");
	TEST_ASSERT_EQUAL_UINT32(1000000, claim.min_gbps);
	static const char *const bad[][2] = {{"1000001", "1000001"}, {"-1", "-1"},
					     {"0.5", "0.5"},         {"1e999", "inf"},
					     {"\"300\"", "\"300\""}, {"4294967596", "4294967596"}};
	for (uint32_t i = 0; i < COUNT(bad); i++) {
		char json[80], sentence[120];
		snprintf(json, sizeof(json), "{\"topology\": {\"minBandwidthGBps\": %s}}", bad[i][0]);
		snprintf(sentence, sizeof(sentence),
			 "claim.topology.minBandwidthGBps: must be a whole number between 0 and 1000000, got %s",
			 bad[i][1]);
		refused(json, sentence);
	}
}

static void test_16_labels_fit_and_17_do_not(void)
{
	accepted(repeated("{\"selector\": {\"matchLabels\": {", "\"k%u\": \"v\"", 16, "}}}"));
	TEST_ASSERT_EQUAL_UINT32(16, claim.label_count);
	TEST_ASSERT_EQUAL_STRING("k15", claim.labels[15].key);
	TEST_ASSERT_EQUAL_STRING("v", claim.labels[15].value);
	refused(repeated("{\"selector\": {\"matchLabels\": {", "\"k%u\": \"v\"", 17, "}}}"),
		"claim.selector.matchLabels: has more than 16 labels");
}

static void test_labels_are_label_keys_and_values(void)
{
	refused("{\"selector\": {\"matchLabels\": {\"\": \"x\"}}}",
		"claim.selector.matchLabels: \"\" is not a label key; allowed is a name of 1 to 63 letters, digits, "
		"\"-\", \"_\" and \".\", optionally after a DNS name and \"/\"");
	refused("{\"selector\": {\"matchLabels\": {\"a b\": \"x\"}}}",
		"claim.selector.matchLabels: \"a b\" is not a label key; allowed is a name of 1 to 63 letters, digits, "
		"\"-\", \"_\" and \".\", optionally after a DNS name and \"/\"");
	refused("{\"selector\": {\"matchLabels\": {\"a\": \"x y\"}}}",
		"claim.selector.matchLabels.a: must be a label value in quotes: 0 to 63 letters, digits, \"-\", \"_\" "
		"and \".\", with a letter or digit at both ends, got \"x y\"");
	refused("{\"selector\": {\"matchLabels\": {\"a\": true}}}",
		"claim.selector.matchLabels.a: must be a label value in quotes: 0 to 63 letters, digits, \"-\", \"_\" "
		"and \".\", with a letter or digit at both ends, got true");
}

static void test_the_longest_label_fits(void)
{
	char json[500] = "{\"selector\": {\"matchLabels\": {\"";
	uint64_t start = strlen(json);
	memset(json + start, 'a', 317);
	json[start + 253] = '/';
	strcpy(json + start + 317, "\": \"");
	uint64_t value = strlen(json);
	memset(json + value, 'v', 64);
	strcpy(json + value + 63, "\"}}}");
	accepted(json);
	TEST_ASSERT_EQUAL_UINT64(317, strlen(claim.labels[0].key));
	TEST_ASSERT_EQUAL_UINT64(63, strlen(claim.labels[0].value));
	strcpy(json + value + 63, "v\"}}}");
	TEST_ASSERT_EQUAL(FROND_BAD, read_exact(json, (uint32_t)strlen(json)));
	strcpy(json + start + 317, "a\": \"\"}}}");
	TEST_ASSERT_EQUAL(FROND_BAD, read_exact(json, (uint32_t)strlen(json)));
}

static void test_the_gang_is_a_pod_groups_name(void)
{
	char json[300] = "{\"gangRef\": \"";
	uint64_t start = strlen(json);
	memset(json + start, 'g', 254);
	strcpy(json + start + 253, "\"}");
	accepted(json);
	TEST_ASSERT_EQUAL_UINT64(253, strlen(claim.gang_ref));
	strcpy(json + start + 253, "g\"}");
	TEST_ASSERT_EQUAL(FROND_BAD, read_exact(json, (uint32_t)strlen(json)));

	static const char *const bad[][2] = {
		{"\"\"", "\"\""}, {"\"Train\"", "\"Train\""}, {"\"a/b\"", "\"a/b\""}, {"\"a-\"", "\"a-\""}, {"7", "7"},
		{"null", "null"}};
	for (uint32_t i = 0; i < COUNT(bad); i++) {
		char sentence[FROND_TEXT_MAX];
		snprintf(json, sizeof(json), "{\"gangRef\": %s}", bad[i][0]);
		snprintf(sentence, sizeof(sentence),
			 "claim.gangRef: must be the name of a PodGroup: 1 to 253 of a-z, 0-9, \"-\" and \".\", with a "
			 "letter or digit at both ends of each part, got %s",
			 bad[i][1]);
		refused(json, sentence);
	}
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_nothing_and_an_empty_object_give_the_defaults);
	RUN_TEST(test_every_field_is_read);
	RUN_TEST(test_every_word_has_its_meaning);
	RUN_TEST(test_a_document_that_is_not_one_json_object_is_refused);
	RUN_TEST(test_deep_nesting_is_refused_and_does_not_crash);
	RUN_TEST(test_damaged_claims_never_crash);
	RUN_TEST(test_unknown_fields_are_named_with_their_path);
	RUN_TEST(test_a_key_written_twice_is_refused_at_every_depth);
	RUN_TEST(test_sections_that_are_not_objects_are_refused);
	RUN_TEST(test_the_count_is_1_to_16);
	RUN_TEST(test_words_are_one_of_their_list);
	RUN_TEST(test_what_comes_later_is_refused_by_name);
	RUN_TEST(test_ids_and_their_policy_come_together);
	RUN_TEST(test_16_ids_fit_and_17_do_not);
	RUN_TEST(test_bad_ids_are_refused_with_their_place);
	RUN_TEST(test_an_id_twice_is_refused);
	RUN_TEST(test_the_longest_id_fits);
	RUN_TEST(test_the_bandwidth_is_0_to_a_million);
	RUN_TEST(test_16_labels_fit_and_17_do_not);
	RUN_TEST(test_labels_are_label_keys_and_values);
	RUN_TEST(test_the_longest_label_fits);
	RUN_TEST(test_the_gang_is_a_pod_groups_name);
	return UNITY_END();
}
