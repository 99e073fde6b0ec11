/* SPDX-License-Identifier: Apache-2.0 */
/* A value of a document as JSON: what JSON would read is written as it stands, everything else is a string. */
#include "text/doc.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

static struct doc doc;

void setUp(void)
{
}

void tearDown(void)
{
	doc_free(&doc);
	doc = (struct doc){0};
}

static void read_doc(const char *text)
{
	struct complaint complaint = {.line = 0};
	doc_free(&doc);
	int32_t code = doc_read(text, (uint32_t)strlen(text), &doc, &complaint);
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, code, complaint.text);
}

static void json_of(uint32_t at, const char *expected)
{
	char *json = doc_json(&doc, at);
	TEST_ASSERT_NOT_NULL(json);
	TEST_ASSERT_EQUAL_STRING(expected, json);
	cJSON *parsed = cJSON_Parse(json);
	TEST_ASSERT_NOT_NULL_MESSAGE(parsed, json);
	cJSON_Delete(parsed);
	free(json);
}

static void is(const char *text, const char *expected)
{
	read_doc(text);
	json_of(0, expected);
}

static void test_maps_and_lists_keep_their_order(void)
{
	is("{}", "{}");
	is("[]", "[]");
	is("b: 1\na: [x, {y: z}]\nc: {}\n", "{\"b\":1,\"a\":[\"x\",{\"y\":\"z\"}],\"c\":{}}");
	is("{\"devices\": {\"policy\": \"contiguous\", \"count\": 8}}",
	   "{\"devices\":{\"policy\":\"contiguous\",\"count\":8}}");
}

static void test_plain_scalars_that_json_knows_stay_what_they_are(void)
{
	is("[0, -0, 7, -12, 1.5, 1e3, 1E+3, 2.5e-7, 10]", "[0,-0,7,-12,1.5,1e3,1E+3,2.5e-7,10]");
	is("[true, false, null, ~]", "[true,false,null,null]");
	is("a:\nb: 1\n", "{\"a\":null,\"b\":1}");
}

static void test_plain_scalars_that_json_does_not_know_are_strings(void)
{
	is("[007, +1, .5, 1., 1e, 1e+, 0x10, 1_000, -, --1, 1.5.2, .inf, .nan, NaN, Infinity]",
	   "[\"007\",\"+1\",\".5\",\"1.\",\"1e\",\"1e+\",\"0x10\",\"1_000\",\"-\",\"--1\",\"1.5.2\",\".inf\","
	   "\".nan\",\"NaN\",\"Infinity\"]");
	is("[True, yes, no, Null, on]", "[\"True\",\"yes\",\"no\",\"Null\",\"on\"]");
	is("[10m, 100Gb, node-1]", "[\"10m\",\"100Gb\",\"node-1\"]");
}

static void test_quotes_make_a_string_of_anything(void)
{
	is("['1', \"true\", 'null', '', \"~\"]", "[\"1\",\"true\",\"null\",\"\",\"~\"]");
}

static void test_what_json_must_escape_is_escaped(void)
{
	is("[\"a\\\"b\", \"a\\\\b\", \"tab\\there\", \"line\\nbreak\", \"bell\\a\"]",
	   "[\"a\\\"b\",\"a\\\\b\",\"tab\\u0009here\",\"line\\u000abreak\",\"bell\\u0007\"]");
	is("[\"gr\xc3\xbc\xc3\x9f\"]", "[\"gr\xc3\xbc\xc3\x9f\"]");
	is("\"ke\\ty\": \"v\\\"\"\n", "{\"ke\\u0009y\":\"v\\\"\"}");
}

static void test_a_part_of_a_document_is_written_alone(void)
{
	read_doc("jobs:\n- name: a\n  claim: {devices: {count: 2}}\n");
	uint32_t jobs = doc_get(&doc, 0, "jobs"), job = doc.values[jobs].first;
	json_of(doc_get(&doc, job, "claim"), "{\"devices\":{\"count\":2}}");
	json_of(doc_get(&doc, job, "name"), "\"a\"");
}

static void test_the_deepest_document_is_written(void)
{
	char text[2 * DOC_DEPTH_MAX + 2];
	memset(text, '[', DOC_DEPTH_MAX);
	memset(text + DOC_DEPTH_MAX, ']', DOC_DEPTH_MAX);
	text[2 * DOC_DEPTH_MAX] = 0;
	struct complaint complaint;
	uint32_t depth = DOC_DEPTH_MAX;
	while (doc_read(text + (DOC_DEPTH_MAX - depth), 2 * depth, &doc, &complaint) != FROND_OK)
		TEST_ASSERT_NOT_EQUAL(0, --depth);
	TEST_ASSERT_TRUE(depth >= DOC_DEPTH_MAX - 1);
	text[DOC_DEPTH_MAX + depth] = 0;
	json_of(0, text + (DOC_DEPTH_MAX - depth));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_maps_and_lists_keep_their_order);
	RUN_TEST(test_plain_scalars_that_json_knows_stay_what_they_are);
	RUN_TEST(test_plain_scalars_that_json_does_not_know_are_strings);
	RUN_TEST(test_quotes_make_a_string_of_anything);
	RUN_TEST(test_what_json_must_escape_is_escaped);
	RUN_TEST(test_a_part_of_a_document_is_written_alone);
	RUN_TEST(test_the_deepest_document_is_written);
	return UNITY_END();
}
