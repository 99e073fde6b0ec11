/* SPDX-License-Identifier: Apache-2.0 */
#include "text/doc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

static struct doc doc;
static struct complaint complaint;

void setUp(void)
{
	memset(&doc, 0, sizeof(doc));
	memset(&complaint, 0, sizeof(complaint));
}

void tearDown(void)
{
	doc_free(&doc);
}

/* From a copy of exactly this size, so that the sanitizer sees a step beyond. */
static int32_t read_exact(const char *text, uint32_t len)
{
	char *copy = malloc(len == 0 ? 1 : len);
	TEST_ASSERT_NOT_NULL(copy);
	memcpy(copy, text, len);
	doc_free(&doc);
	int32_t code = doc_read(copy, len, &doc, &complaint);
	free(copy);
	return code;
}

static void accepted(const char *text)
{
	int32_t code = read_exact(text, (uint32_t)strlen(text));
	TEST_ASSERT_EQUAL_MESSAGE(FROND_OK, code, complaint.text);
}

static void refused_bytes(const char *text, uint32_t len, uint32_t line, const char *sentence)
{
	TEST_ASSERT_EQUAL_MESSAGE(FROND_BAD, read_exact(text, len), text);
	TEST_ASSERT_EQUAL_STRING(sentence, complaint.text);
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(line, complaint.line, sentence);
	TEST_ASSERT_NULL(doc.values);
	TEST_ASSERT_NULL(doc.text);
}

static void refused(const char *text, uint32_t line, const char *sentence)
{
	refused_bytes(text, (uint32_t)strlen(text), line, sentence);
}

static void complained(int32_t code, uint32_t line, const char *sentence)
{
	TEST_ASSERT_EQUAL(FROND_BAD, code);
	TEST_ASSERT_EQUAL_STRING(sentence, complaint.text);
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(line, complaint.line, sentence);
}

/* ---- the tree -------------------------------------------------------------------------------------------------- */

static void test_yaml_and_json_give_the_same_tree(void)
{
	static const char *const texts[] = {"a: 1\nb:\n- x\n- {c: 'y'}\n", "{\"a\": 1, \"b\": [\"x\", {\"c\": \"y\"}]}",
					    "{\"a\":1,\"b\":[\"x\",{\"c\":\"y\"}]}"};
	for (uint32_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		accepted(texts[i]);
		TEST_ASSERT_EQUAL(DOC_MAP, doc.values[0].kind);
		TEST_ASSERT_EQUAL_UINT32(2, doc.values[0].count);
		uint32_t a = doc_get(&doc, 0, "a"), b = doc_get(&doc, 0, "b");
		TEST_ASSERT_EQUAL_STRING("1", doc_scalar(&doc, a));
		TEST_ASSERT_EQUAL(DOC_LIST, doc.values[b].kind);
		uint32_t x = doc.values[b].first, map = doc.values[x].next;
		TEST_ASSERT_EQUAL_STRING("x", doc_scalar(&doc, x));
		TEST_ASSERT_EQUAL_STRING("y", doc_scalar(&doc, doc_get(&doc, map, "c")));
		TEST_ASSERT_EQUAL_STRING("c", doc_key(&doc, doc_get(&doc, map, "c")));
		TEST_ASSERT_EQUAL_UINT32(DOC_NONE, doc.values[map].next);
		TEST_ASSERT_EQUAL_UINT32(DOC_NONE, doc_get(&doc, 0, "c"));
	}
}

static void test_values_know_their_lines_and_paths(void)
{
	accepted("# fabric\nspines:\n- name: s\n  leaves:\n  - name: a\n  - name: b\n    nodes: [n1,\n      n2]\n");
	uint32_t leaves = doc_get(&doc, doc.values[doc_get(&doc, 0, "spines")].first, "leaves");
	uint32_t nodes = doc_get(&doc, doc.values[doc.values[leaves].first].next, "nodes");
	TEST_ASSERT_EQUAL_STRING("spines[0].leaves[1].nodes", doc_path(&doc, nodes).text);
	TEST_ASSERT_EQUAL_UINT32(7, doc.values[nodes].line);
	uint32_t second = doc.values[doc.values[nodes].first].next;
	TEST_ASSERT_EQUAL_STRING("spines[0].leaves[1].nodes[1]", doc_path(&doc, second).text);
	TEST_ASSERT_EQUAL_UINT32(8, doc.values[second].line);
	TEST_ASSERT_EQUAL_STRING("document", doc_path(&doc, 0).text);
	TEST_ASSERT_EQUAL_UINT32(4, doc.values[leaves].key_line);
	TEST_ASSERT_EQUAL_UINT32(5, doc.values[leaves].line);
}

static void test_a_path_of_hostile_keys_stays_short_and_printable(void)
{
	char text[8000] = "";
	for (uint32_t i = 0; i < 30; i++) {
		strcat(text, "{\"\\e[31mkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk\": ");
	}
	strcat(text, "1");
	for (uint32_t i = 0; i < 30; i++)
		strcat(text, "}");
	accepted(text);
	struct doc_path path = doc_path(&doc, doc.value_count - 1);
	TEST_ASSERT_LESS_THAN(sizeof(path.text), strlen(path.text));
	TEST_ASSERT_NULL(strchr(path.text, '\x1b'));
}

/* ---- what is refused ------------------------------------------------------------------------------------------- */

static void test_an_empty_document_is_refused(void)
{
	refused("", 1, "document: is empty");
	refused("# only a comment\n", 1, "document: is empty");
	TEST_ASSERT_EQUAL(FROND_BAD, doc_read(NULL, 0, &doc, &complaint));
}

static void test_duplicate_keys_are_refused_with_both_lines(void)
{
	refused("a: 1\nb: 2\na: 3\n", 3, "a: is written twice in this map, first on line 1");
	refused("x:\n- {b: 1,\n   'b': 2}\n", 3, "x[0].b: is written twice in this map, first on line 2");
	accepted("x: {b: 1}\ny: {b: 2}\n");
}

static void test_anchors_and_aliases_are_refused(void)
{
	refused("a: &x 1\nb: *x\n", 1, "a: anchors and aliases (&x, *x) are not allowed; write the value out");
	refused("a: 1\nb: *x\n", 2, "b: anchors and aliases (&x, *x) are not allowed; write the value out");
	refused("a: &x [1]\n", 1, "a: anchors and aliases (&x, *x) are not allowed; write the value out");
	refused("&x a: 1\n", 1, "document: anchors and aliases (&x, *x) are not allowed; write the value out");
	refused("a: &x {b: 1}\n", 1, "a: anchors and aliases (&x, *x) are not allowed; write the value out");
}

static void test_tags_are_refused(void)
{
	refused("a: !!str 1\n", 1, "a: tags (tag:yaml.org,2002:str) are not allowed; write the plain value");
	refused("a: !x {}\n", 1, "a: tags (!x) are not allowed; write the plain value");
}

static void test_a_second_document_is_refused(void)
{
	refused("a: 1\n---\nb: 2\n", 2, "document: a second one starts here; one a file is allowed");
	accepted("---\na: 1\n...\n");
}

static void test_a_stream_has_its_documents_one_after_the_other(void)
{
	static const char text[] = "a: 1\n---\n---\n- b\n- c\n--- # last\nd\n";
	TEST_ASSERT_EQUAL(FROND_OK, doc_read_stream(text, sizeof(text) - 1, &doc, &complaint));
	static const enum doc_kind kinds[] = {DOC_MAP, DOC_SCALAR, DOC_LIST, DOC_SCALAR};
	static const uint32_t lines[] = {1, 2, 3, 6};
	uint32_t root = 0;
	for (uint32_t i = 0; i < 4; i++, root = doc.values[root].next) {
		TEST_ASSERT_NOT_EQUAL(DOC_NONE, root);
		TEST_ASSERT_EQUAL(kinds[i], doc.values[root].kind);
		TEST_ASSERT_EQUAL_UINT32(lines[i], doc.values[root].key_line);
		TEST_ASSERT_EQUAL_UINT32(DOC_NONE, doc.values[root].parent);
		TEST_ASSERT_EQUAL(i == 1, doc_is_null(&doc, root));
	}
	TEST_ASSERT_EQUAL_UINT32(DOC_NONE, root);
	uint32_t list = doc.values[doc.values[0].next].next;
	TEST_ASSERT_EQUAL_STRING("[1]", doc_path(&doc, doc.values[list].last).text);
	doc_free(&doc);
	TEST_ASSERT_EQUAL(FROND_BAD, doc_read_stream("a: 1\n---\nb: [\n", 14, &doc, &complaint));
	TEST_ASSERT_EQUAL_UINT32(3, complaint.line);
	TEST_ASSERT_NULL(doc.values);
}

static void test_keys_that_are_lists_or_maps_are_refused(void)
{
	refused("{[1]: 2}", 1, "document: has a key that is not a plain word");
	refused("a:\n  ? {b: 1}\n  : 2\n", 2, "a: has a key that is not a plain word");
}

static void test_bytes_that_are_not_utf8_are_refused_with_their_line(void)
{
	refused("a: 1\nb: \xff\n", 2, "document: invalid leading UTF-8 octet");
	refused_bytes("\xff\xfe"
		      "a\0:\0 \0b\0",
		      10, 1, "document: invalid leading UTF-8 octet");
	refused("a: 1\n\nb: \x01\n", 3, "document: control characters are not allowed");
}

static void test_nul_is_refused_in_values_and_keys(void)
{
	refused("a: \"x\\0y\"\n", 1, "a: holds a NUL byte, which is not allowed");
	refused("\"x\\0y\": 1\n", 1, "document: has a key with a NUL byte, which is not allowed");
	refused_bytes("a: \0\n", 5, 1, "document: control characters are not allowed");
}

static void test_syntax_errors_say_what_and_where(void)
{
	refused("a: [1, 2\nb: 3\n", 2, "document: did not find expected ',' or ']' while parsing a flow sequence");
	refused("a: 1\n b: 2\n", 2, "document: mapping values are not allowed in this context");
	refused("a:\n\t- b\n", 2,
		"document: found character that cannot start any token while scanning for the next token");
	refused("{\"a\": 1", 1, "document: did not find expected ',' or '}' while parsing a flow mapping");
	refused("a: \"x\n", 1, "document: found unexpected end of stream while scanning a quoted scalar");
}

static void nested(uint32_t depth, char *text)
{
	memset(text, '[', depth);
	memset(text + depth, ']', depth);
	text[2 * depth] = '\0';
}

static void test_depth_32_is_read_and_33_is_not(void)
{
	char text[200001], sentence[FROND_TEXT_MAX] = "";
	nested(DOC_DEPTH_MAX, text);
	accepted(text);
	for (uint32_t i = 1; i < DOC_DEPTH_MAX; i++)
		strcat(sentence, "[0]");
	strcat(sentence, ": is nested more than 32 deep");
	nested(DOC_DEPTH_MAX + 1, text);
	refused(text, 1, sentence);
	nested(100000, text);
	TEST_ASSERT_EQUAL(FROND_BAD, read_exact(text, 200000));
}

static char *many_keys(uint32_t count)
{
	char *text = malloc(count * 16 + 1);
	TEST_ASSERT_NOT_NULL(text);
	uint32_t used = 0;
	text[0] = '\0';
	for (uint32_t i = 0; i < count; i++)
		used += (uint32_t)snprintf(text + used, 16, "key%u: 1\n", i);
	return text;
}

static void test_256_keys_in_a_map_are_read_and_257_are_not(void)
{
	char *text = many_keys(DOC_KEYS_MAX);
	accepted(text);
	TEST_ASSERT_EQUAL_UINT32(DOC_KEYS_MAX, doc.values[0].count);
	free(text);
	text = many_keys(DOC_KEYS_MAX + 1);
	refused(text, 1, "document: has more than 256 keys");
	free(text);
}

static void test_as_many_values_as_the_limit_are_read_and_no_more(void)
{
	uint32_t items = DOC_VALUES_MAX, size = 2 * items + 2; /* the list itself is one value */
	char *text = malloc(size);
	TEST_ASSERT_NOT_NULL(text);
	for (uint32_t i = 0; i < items; i++)
		memcpy(text + 2 * i, i == 0 ? "[1" : ",1", 2);
	text[2 * (items - 1)] = ']';
	text[2 * (items - 1) + 1] = '\n';
	TEST_ASSERT_EQUAL(FROND_OK, doc_read(text, 2 * items, &doc, &complaint));
	TEST_ASSERT_EQUAL_UINT32(DOC_VALUES_MAX, doc.value_count);
	doc_free(&doc);
	memcpy(text + 2 * (items - 1), ",1]\n", 4);
	TEST_ASSERT_EQUAL(FROND_BAD, doc_read(text, size, &doc, &complaint));
	TEST_ASSERT_EQUAL_STRING("document: has more than 4194304 values", complaint.text);
	free(text);
}

static void test_a_document_over_64_mebibyte_is_refused_unread(void)
{
	TEST_ASSERT_EQUAL(FROND_BAD, doc_read("a", DOC_BYTES_MAX + 1, &doc, &complaint));
	TEST_ASSERT_EQUAL_STRING("document: has 67108865 bytes; at most 67108864 are read", complaint.text);
	char *text = malloc(DOC_BYTES_MAX);
	TEST_ASSERT_NOT_NULL(text);
	memset(text, '\n', DOC_BYTES_MAX);
	text[0] = '7';
	TEST_ASSERT_EQUAL(FROND_OK, doc_read(text, DOC_BYTES_MAX, &doc, &complaint));
	free(text);
}

/* ---- readers --------------------------------------------------------------------------------------------------- */

static uint32_t value_of(const char *text)
{
	accepted(text);
	return doc.values[0].first;
}

static void test_lists_and_maps_are_told_apart(void)
{
	uint32_t at = value_of("a: [1]");
	TEST_ASSERT_EQUAL(FROND_OK, doc_list(&doc, at, &complaint));
	complained(doc_map(&doc, at, &complaint), 1, "a: must be a map, got a list");
	at = value_of("a: {}");
	TEST_ASSERT_EQUAL(FROND_OK, doc_map(&doc, at, &complaint));
	complained(doc_list(&doc, at, &complaint), 1, "a: must be a list, got a map");
	at = value_of("a: x");
	complained(doc_list(&doc, at, &complaint), 1, "a: must be a list, got a single value");
	complained(doc_map(&doc, at, &complaint), 1, "a: must be a map, got a single value");
}

static void test_only_known_keys_are_let_through(void)
{
	static const char *const keys[] = {"gpus", "model"};
	accepted("gpus: 8\nmodel: x\n");
	TEST_ASSERT_EQUAL(FROND_OK, doc_map_of(&doc, 0, keys, 2, &complaint));
	accepted("gpus: 8\ngpu:\n  7\n");
	complained(doc_map_of(&doc, 0, keys, 2, &complaint), 2, "gpu: is not a known key; allowed are gpus, model");
	accepted("[]");
	complained(doc_map_of(&doc, 0, keys, 2, &complaint), 1, "document: must be a map, got a list");
}

static void test_a_needed_key_that_is_missing_is_named(void)
{
	uint32_t out;
	uint32_t at = value_of("\na: {b: 1}");
	TEST_ASSERT_EQUAL(FROND_OK, doc_need(&doc, at, "b", &out, &complaint));
	TEST_ASSERT_EQUAL_STRING("1", doc_scalar(&doc, out));
	complained(doc_need(&doc, at, "c", &out, &complaint), 2, "a.c: is missing");
	complained(doc_need(&doc, 0, "c", &out, &complaint), 2, "c: is missing");
}

static void test_words_are_any_single_value_but_null(void)
{
	const char *word = NULL;
	TEST_ASSERT_EQUAL(FROND_OK, doc_word(&doc, value_of("a: 12"), &word, &complaint));
	TEST_ASSERT_EQUAL_STRING("12", word);
	TEST_ASSERT_EQUAL(FROND_OK, doc_word(&doc, value_of("a: ''"), &word, &complaint));
	TEST_ASSERT_EQUAL_STRING("", word);
	TEST_ASSERT_EQUAL(FROND_OK, doc_word(&doc, value_of("a: 'null'"), &word, &complaint));
	static const char *const nulls[] = {"a:", "a: ~", "a: null", "a: Null", "a: NULL"};
	for (uint32_t i = 0; i < sizeof(nulls) / sizeof(nulls[0]); i++)
		complained(doc_word(&doc, value_of(nulls[i]), &word, &complaint), 1, "a: must be text, got nothing");
	complained(doc_word(&doc, value_of("a: [x]"), &word, &complaint), 1, "a: must be text, got a list");
}

static void test_whole_numbers_keep_to_their_bounds(void)
{
	int64_t number = 77;
	TEST_ASSERT_EQUAL(FROND_OK, doc_whole(&doc, value_of("a: 16"), 0, 16, &number, &complaint));
	TEST_ASSERT_EQUAL_INT64(16, number);
	TEST_ASSERT_EQUAL(FROND_OK, doc_whole(&doc, value_of("a: 0"), 0, 16, &number, &complaint));
	TEST_ASSERT_EQUAL(FROND_OK, doc_whole(&doc, value_of("a: -5"), -5, 16, &number, &complaint));
	TEST_ASSERT_EQUAL_INT64(-5, number);
	complained(doc_whole(&doc, value_of("a: 17"), 0, 16, &number, &complaint), 1,
		   "a: must be between 0 and 16, got 17");
	complained(doc_whole(&doc, value_of("a: -1"), 0, 16, &number, &complaint), 1,
		   "a: must be between 0 and 16, got -1");
	TEST_ASSERT_EQUAL_INT64(-5, number);
}

static void test_what_is_no_whole_number_is_refused(void)
{
	int64_t number;
	static const char *const bad[] = {
		"8.0", "0x8", "010", "1e3", "8_000", "eight", "true", "--1", "99999999999999999999"};
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char text[64], sentence[128];
		snprintf(text, sizeof(text), "a: %s", bad[i]);
		snprintf(sentence, sizeof(sentence), "a: must be a whole number between 0 and 16, got \"%s\"", bad[i]);
		complained(doc_whole(&doc, value_of(text), 0, 16, &number, &complaint), 1, sentence);
	}
	complained(doc_whole(&doc, value_of("a: '8'"), 0, 16, &number, &complaint), 1,
		   "a: must be a whole number without quotes, got \"8\"");
	complained(doc_whole(&doc, value_of("a: [8]"), 0, 16, &number, &complaint), 1,
		   "a: must be a whole number, got a list");
	complained(doc_whole(&doc, value_of("a:"), 0, 16, &number, &complaint), 1,
		   "a: must be a whole number, got nothing");
}

static void test_booleans_are_true_or_false_without_quotes(void)
{
	bool flag = false;
	TEST_ASSERT_EQUAL(FROND_OK, doc_bool(&doc, value_of("a: true"), &flag, &complaint));
	TEST_ASSERT_TRUE(flag);
	TEST_ASSERT_EQUAL(FROND_OK, doc_bool(&doc, value_of("a: false"), &flag, &complaint));
	TEST_ASSERT_FALSE(flag);
	complained(doc_bool(&doc, value_of("a: yes"), &flag, &complaint), 1, "a: must be true or false, got \"yes\"");
	complained(doc_bool(&doc, value_of("a: 'true'"), &flag, &complaint), 1,
		   "a: must be true or false, got \"true\"");
	complained(doc_bool(&doc, value_of("a: {}"), &flag, &complaint), 1, "a: must be true or false, got a map");
	complained(doc_bool(&doc, value_of("a:"), &flag, &complaint), 1, "a: must be true or false, got \"\"");
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_yaml_and_json_give_the_same_tree);
	RUN_TEST(test_values_know_their_lines_and_paths);
	RUN_TEST(test_a_path_of_hostile_keys_stays_short_and_printable);
	RUN_TEST(test_an_empty_document_is_refused);
	RUN_TEST(test_duplicate_keys_are_refused_with_both_lines);
	RUN_TEST(test_anchors_and_aliases_are_refused);
	RUN_TEST(test_tags_are_refused);
	RUN_TEST(test_a_second_document_is_refused);
	RUN_TEST(test_a_stream_has_its_documents_one_after_the_other);
	RUN_TEST(test_keys_that_are_lists_or_maps_are_refused);
	RUN_TEST(test_bytes_that_are_not_utf8_are_refused_with_their_line);
	RUN_TEST(test_nul_is_refused_in_values_and_keys);
	RUN_TEST(test_syntax_errors_say_what_and_where);
	RUN_TEST(test_depth_32_is_read_and_33_is_not);
	RUN_TEST(test_256_keys_in_a_map_are_read_and_257_are_not);
	RUN_TEST(test_as_many_values_as_the_limit_are_read_and_no_more);
	RUN_TEST(test_a_document_over_64_mebibyte_is_refused_unread);
	RUN_TEST(test_lists_and_maps_are_told_apart);
	RUN_TEST(test_only_known_keys_are_let_through);
	RUN_TEST(test_a_needed_key_that_is_missing_is_named);
	RUN_TEST(test_words_are_any_single_value_but_null);
	RUN_TEST(test_whole_numbers_keep_to_their_bounds);
	RUN_TEST(test_what_is_no_whole_number_is_refused);
	RUN_TEST(test_booleans_are_true_or_false_without_quotes);
	return UNITY_END();
}
