/* SPDX-License-Identifier: Apache-2.0 */
/* words.c and what it stands on: utf8.c, kubename.c, duration.c, choice.c, json.c. */
#include "text/choice.h"
#include "text/duration.h"
#include "text/json.h"
#include "text/kubename.h"
#include "text/utf8.h"
#include "text/words.h"

#include <stdlib.h>
#include <string.h>
#include <unity.h>

void setUp(void)
{
}

void tearDown(void)
{
}

static int natural(const char *a, const char *b)
{
	return natural_compare(a, (uint32_t)strlen(a), b, (uint32_t)strlen(b));
}

/* ---- natural order --------------------------------------------------------------------------------------------- */

static void test_leaf_10_comes_after_leaf_2(void)
{
	TEST_ASSERT_GREATER_THAN(0, natural("leaf-10", "leaf-2"));
	TEST_ASSERT_LESS_THAN(0, natural("leaf-2", "leaf-10"));
}

static void test_equal_names_compare_equal(void)
{
	TEST_ASSERT_EQUAL(0, natural("leaf-7", "leaf-7"));
	TEST_ASSERT_EQUAL(0, natural("", ""));
}

static void test_a_prefix_comes_first(void)
{
	TEST_ASSERT_LESS_THAN(0, natural("leaf", "leaf-1"));
	TEST_ASSERT_GREATER_THAN(0, natural("leaf-1", "leaf"));
	TEST_ASSERT_LESS_THAN(0, natural("", "a"));
}

static void test_leading_zeros_break_ties_by_bytes(void)
{
	TEST_ASSERT_LESS_THAN(0, natural("leaf-02", "leaf-2"));
	TEST_ASSERT_GREATER_THAN(0, natural("leaf-2", "leaf-02"));
	TEST_ASSERT_LESS_THAN(0, natural("leaf-002", "leaf-3"));
	TEST_ASSERT_LESS_THAN(0, natural("a0", "a00"));
}

static void test_digit_runs_longer_than_any_integer_compare_by_value(void)
{
	TEST_ASSERT_LESS_THAN(0, natural("n99999999999999999999999999999998", "n99999999999999999999999999999999"));
	TEST_ASSERT_LESS_THAN(0, natural("n99999999999999999999999999999999", "n100000000000000000000000000000000"));
	TEST_ASSERT_GREATER_THAN(0, natural("n18446744073709551617", "n1"));
}

static void test_several_runs_compare_in_turn(void)
{
	TEST_ASSERT_LESS_THAN(0, natural("r2-n10", "r10-n2"));
	TEST_ASSERT_LESS_THAN(0, natural("r2-n2", "r2-n10"));
}

static void test_bytes_above_127_come_after_ascii(void)
{
	TEST_ASSERT_GREATER_THAN(0, natural("\xc3\xa4", "z"));
}

static int sign(int value)
{
	return (value > 0) - (value < 0);
}

static void test_natural_order_is_total(void)
{
	static const char *const names[] = {"",    "a",   "a0", "a00", "a1",  "a01", "a1b", "a01b", "a1b2", "a-",
					    "a-1", "a10", "0",  "00",  "1",   "01",  "10",  "9",    "A1",   "a 1",
					    "a.1", "a1.", "b",  "1a",  "01a", "1b",  "a1-", "a2",   "a02",  "a:"};
	const uint32_t count = sizeof(names) / sizeof(names[0]);
	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t j = 0; j < count; j++) {
			int order = sign(natural(names[i], names[j]));
			TEST_ASSERT_EQUAL_MESSAGE(order, -sign(natural(names[j], names[i])), names[i]);
			TEST_ASSERT_EQUAL_MESSAGE(i == j, order == 0, names[i]);
			for (uint32_t k = 0; k < count; k++) {
				if (order < 0 && natural(names[j], names[k]) < 0)
					TEST_ASSERT_LESS_THAN_MESSAGE(0, natural(names[i], names[k]), names[k]);
			}
		}
	}
}

/* ---- shown ----------------------------------------------------------------------------------------------------- */

static void test_short_values_are_shown_whole(void)
{
	TEST_ASSERT_EQUAL_STRING("10 minutes", shown("10 minutes", 10).text);
	TEST_ASSERT_EQUAL_STRING("", shown("", 0).text);
	TEST_ASSERT_EQUAL_STRING("", shown(NULL, 0).text);
}

static void test_40_bytes_are_shown_and_41_are_cut(void)
{
	const char *digits = "01234567890123456789012345678901234567890";
	TEST_ASSERT_EQUAL_STRING("0123456789012345678901234567890123456789", shown(digits, 40).text);
	TEST_ASSERT_EQUAL_STRING("0123456789012345678901234567890123456789…", shown(digits, 41).text);
}

static void test_a_cut_never_halves_a_character(void)
{
	const char *text = "012345678901234567890123456789012345678ä and on";
	TEST_ASSERT_EQUAL_STRING("012345678901234567890123456789012345678…", shown(text, strlen(text)).text);
}

static void test_control_bytes_and_broken_utf8_are_shown_as_question_marks(void)
{
	TEST_ASSERT_EQUAL_STRING("a?b?c?d?", shown("a\nb\0c\x1b"
						   "d\xff",
						   8)
						     .text);
	TEST_ASSERT_EQUAL_STRING("?x", shown("\xc2\x9bx", 3).text);
	TEST_ASSERT_EQUAL_STRING("ä…", shown("ä…", 5).text);
}

/* ---- complain -------------------------------------------------------------------------------------------------- */

static void test_a_complaint_holds_line_and_sentence_and_returns_bad(void)
{
	struct complaint complaint;
	TEST_ASSERT_EQUAL(FROND_BAD, complain(&complaint, 7, "a.b: must be %d, got %s", 3, "4"));
	TEST_ASSERT_EQUAL_UINT32(7, complaint.line);
	TEST_ASSERT_EQUAL_STRING("a.b: must be 3, got 4", complaint.text);
}

static void test_a_complaint_is_one_line_whatever_comes_in(void)
{
	struct complaint complaint;
	complain(&complaint, 0, "a\nb\tc\x7f%s", "\xff\x1b[31m");
	TEST_ASSERT_EQUAL_STRING("a?b?c???[31m", complaint.text);
}

static void test_a_long_complaint_is_cut_at_its_size(void)
{
	char text[2 * FROND_TEXT_MAX];
	memset(text, 'x', sizeof(text));
	text[FROND_TEXT_MAX - 1] = '\0';
	struct complaint complaint;
	complain(&complaint, 0, "%s", text);
	TEST_ASSERT_EQUAL_UINT64(FROND_TEXT_MAX - 1, strlen(complaint.text));
	text[FROND_TEXT_MAX - 1] = 'x';
	text[FROND_TEXT_MAX] = '\0';
	complain(&complaint, 0, "%s", text);
	TEST_ASSERT_EQUAL_UINT64(FROND_TEXT_MAX - 1, strlen(complaint.text));
}

static void test_a_cut_complaint_stays_utf8(void)
{
	char text[FROND_TEXT_MAX + 8];
	memset(text, 'x', sizeof(text));
	memcpy(text + FROND_TEXT_MAX - 2, "…", 4);
	struct complaint complaint;
	complain(&complaint, 0, "%s", text);
	TEST_ASSERT_EQUAL_UINT64(FROND_TEXT_MAX - 2, strlen(complaint.text));
	TEST_ASSERT_EQUAL_INT('x', complaint.text[FROND_TEXT_MAX - 3]);
}

/* ---- names ----------------------------------------------------------------------------------------------------- */

static void test_node_names_are_dns_subdomains(void)
{
	TEST_ASSERT_TRUE(is_node_name("node-1", 6));
	TEST_ASSERT_TRUE(is_node_name("ip-10-0-0-1.ec2.internal", 24));
	TEST_ASSERT_TRUE(is_node_name("7", 1));
	static const char *const bad[] = {"",   "Node-1", "-node", "node-", "a..b", ".a",
					  "a.", "a.-b",   "a_b",   "a b",   "ä"};
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		TEST_ASSERT_FALSE_MESSAGE(is_node_name(bad[i], strlen(bad[i])), bad[i]);
}

static void test_names_have_at_most_253_bytes(void)
{
	char name[255];
	memset(name, 'a', sizeof(name));
	TEST_ASSERT_TRUE(is_node_name(name, 253));
	TEST_ASSERT_FALSE(is_node_name(name, 254));
	TEST_ASSERT_TRUE(is_domain_name(name, 253));
	TEST_ASSERT_FALSE(is_domain_name(name, 254));
	TEST_ASSERT_FALSE(is_domain_name(name, 0));
}

static void test_domain_names_may_have_capitals_and_underscores(void)
{
	TEST_ASSERT_TRUE(is_domain_name("Leaf_3.b-1", 10));
	TEST_ASSERT_FALSE(is_domain_name("leaf/3", 6));
	TEST_ASSERT_FALSE(is_domain_name("_leaf", 5));
	TEST_ASSERT_FALSE(is_domain_name("leaf.", 5));
}

static void test_label_keys_have_an_optional_dns_prefix(void)
{
	char name[64];
	memset(name, 'n', sizeof(name));
	TEST_ASSERT_TRUE(is_label_key("zone", 4));
	TEST_ASSERT_TRUE(is_label_key("topology.k8s.aws/network-node-layer-3", 37));
	TEST_ASSERT_TRUE(is_label_key(name, 63));
	TEST_ASSERT_FALSE(is_label_key(name, 64));
	TEST_ASSERT_FALSE(is_label_key("", 0));
	TEST_ASSERT_FALSE(is_label_key("/zone", 5));
	TEST_ASSERT_FALSE(is_label_key("a/", 2));
	TEST_ASSERT_FALSE(is_label_key("a/b/c", 5));
	TEST_ASSERT_FALSE(is_label_key("A.com/b", 7));
}

static void test_resource_names_need_their_prefix(void)
{
	TEST_ASSERT_TRUE(is_resource_name("nvidia.com/mig-1g.5gb", 21));
	TEST_ASSERT_FALSE(is_resource_name("cpu", 3));
	TEST_ASSERT_FALSE(is_resource_name("", 0));
}

static void test_label_values_and_namespaces_have_at_most_63_bytes(void)
{
	char name[64];
	memset(name, 'n', sizeof(name));
	TEST_ASSERT_TRUE(is_label_value("", 0));
	TEST_ASSERT_TRUE(is_label_value(name, 63));
	TEST_ASSERT_FALSE(is_label_value(name, 64));
	TEST_ASSERT_FALSE(is_label_value("-a", 2));
	TEST_ASSERT_TRUE(is_namespace_name(name, 63));
	TEST_ASSERT_FALSE(is_namespace_name(name, 64));
	TEST_ASSERT_FALSE(is_namespace_name("", 0));
	TEST_ASSERT_FALSE(is_namespace_name("a.b", 3));
}

/* ---- durations ------------------------------------------------------------------------------------------------- */

static void duration_is(const char *text, int64_t want_ms)
{
	int64_t ms = -1;
	TEST_ASSERT_NULL_MESSAGE(duration_read(text, strlen(text), &ms), text);
	TEST_ASSERT_EQUAL_INT64_MESSAGE(want_ms, ms, text);
}

static void test_durations_are_hours_minutes_seconds_or_forever(void)
{
	duration_is("5m", 300000);
	duration_is("90s", 90000);
	duration_is("1h30m", 5400000);
	duration_is("1h0m5s", 3605000);
	duration_is("0s", 0);
	duration_is("forever", WAIT_FOREVER);
	duration_is("1000h", INT64_C(3600000000));
	duration_is("3600000s", INT64_C(3600000000));
}

static void test_what_is_no_duration_says_how_to_write_one(void)
{
	static const char *const bad[] = {"",     "5",  "m",   "10 minutes", "5m5m", "5s5m",   "-5m",
					  "1.5h", "5M", "5ms", "5m ",        " 5m",  "Forever"};
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int64_t ms = -1;
		TEST_ASSERT_EQUAL_STRING_MESSAGE("a duration; write for example \"10m\" or \"forever\"",
						 duration_read(bad[i], strlen(bad[i]), &ms), bad[i]);
		TEST_ASSERT_EQUAL_INT64(-1, ms);
	}
}

static void test_a_duration_over_1000_hours_is_refused(void)
{
	static const char *const bad[] = {"1000h1s", "1001h", "3600001s", "99999999s", "99999999999999999999999h"};
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int64_t ms = -1;
		TEST_ASSERT_EQUAL_STRING_MESSAGE("a duration of at most 1000h; for longer write \"forever\"",
						 duration_read(bad[i], strlen(bad[i]), &ms), bad[i]);
		TEST_ASSERT_EQUAL_INT64(-1, ms);
	}
}

/* ---- choices, UTF-8, JSON -------------------------------------------------------------------------------------- */

static void test_words_become_their_enums_exactly_spelled(void)
{
	TEST_ASSERT_EQUAL_UINT32(STRATEGY_DISTRIBUTED, choice_find(&choice_strategy, "distributed", 11));
	TEST_ASSERT_EQUAL_UINT32(MODE_IGNORE, choice_find(&choice_mode, "Ignore", 6));
	TEST_ASSERT_EQUAL_UINT32(RECOVERY_WAIT, choice_find(&choice_recovery, "Wait", 4));
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, choice_find(&choice_mode, "ignore", 6));
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, choice_find(&choice_mode, "Ignor", 5));
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, choice_find(&choice_mode, "", 0));
	TEST_ASSERT_EQUAL_STRING("Required, Preferred or Ignore", choice_list(&choice_mode).text);
}

static void test_only_well_formed_utf8_has_a_length(void)
{
	TEST_ASSERT_EQUAL_UINT32(0, utf8_length("", 0));
	TEST_ASSERT_EQUAL_UINT32(1, utf8_length("a", 1));
	TEST_ASSERT_EQUAL_UINT32(2, utf8_length("ä", 2));
	TEST_ASSERT_EQUAL_UINT32(3, utf8_length("…", 3));
	TEST_ASSERT_EQUAL_UINT32(4, utf8_length("\xf0\x9f\x8d\x83", 4));
	TEST_ASSERT_EQUAL_UINT32(0, utf8_length("…", 2));
	static const char *const bad[] = {"\x80",
					  "\xc0\xaf",
					  "\xc1\x81",
					  "\xe0\x9f\xbf",
					  "\xed\xa0\x80",
					  "\xf0\x8f\xbf\xbf",
					  "\xf4\x90\x80\x80",
					  "\xf5\x80\x80\x80",
					  "\xff",
					  "\xc3(",
					  "\xe2\x82("};
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		TEST_ASSERT_EQUAL_UINT32(0, utf8_length(bad[i], strlen(bad[i])));
	TEST_ASSERT_EQUAL_UINT64(4, utf8_valid_until("aä.\xff.", 6));
	TEST_ASSERT_EQUAL_UINT64(3, utf8_valid_until("aä", 3));
}

static void json_is(const char *text, uint64_t len, const char *want)
{
	char buffer[256];
	struct out out = {.text = buffer, .cap = sizeof(buffer)};
	json_string(&out, text, len);
	TEST_ASSERT_EQUAL_STRING(want, buffer);
}

static void test_json_strings_are_escaped(void)
{
	json_is("leaf-1", 6, "\"leaf-1\"");
	json_is("", 0, "\"\"");
	json_is("a\"b\\c", 5, "\"a\\\"b\\\\c\"");
	json_is("a\n\0\x1f", 4, "\"a\\u000a\\u0000\\u001f\"");
	json_is("ä…", 5, "\"ä…\"");
	json_is("a\xff"
		"b",
		3, "\"a\\ufffdb\"");
}

static void test_long_json_strings_come_out_whole(void)
{
	char text[3000], buffer[3003];
	memset(text, 'y', sizeof(text));
	struct out out = {.text = buffer, .cap = sizeof(buffer)};
	json_string(&out, text, sizeof(text));
	TEST_ASSERT_EQUAL_UINT64(3002, out.len);
	TEST_ASSERT_EQUAL_INT('"', buffer[3001]);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_leaf_10_comes_after_leaf_2);
	RUN_TEST(test_equal_names_compare_equal);
	RUN_TEST(test_a_prefix_comes_first);
	RUN_TEST(test_leading_zeros_break_ties_by_bytes);
	RUN_TEST(test_digit_runs_longer_than_any_integer_compare_by_value);
	RUN_TEST(test_several_runs_compare_in_turn);
	RUN_TEST(test_bytes_above_127_come_after_ascii);
	RUN_TEST(test_natural_order_is_total);
	RUN_TEST(test_short_values_are_shown_whole);
	RUN_TEST(test_40_bytes_are_shown_and_41_are_cut);
	RUN_TEST(test_a_cut_never_halves_a_character);
	RUN_TEST(test_control_bytes_and_broken_utf8_are_shown_as_question_marks);
	RUN_TEST(test_a_complaint_holds_line_and_sentence_and_returns_bad);
	RUN_TEST(test_a_complaint_is_one_line_whatever_comes_in);
	RUN_TEST(test_a_long_complaint_is_cut_at_its_size);
	RUN_TEST(test_a_cut_complaint_stays_utf8);
	RUN_TEST(test_node_names_are_dns_subdomains);
	RUN_TEST(test_names_have_at_most_253_bytes);
	RUN_TEST(test_domain_names_may_have_capitals_and_underscores);
	RUN_TEST(test_label_keys_have_an_optional_dns_prefix);
	RUN_TEST(test_resource_names_need_their_prefix);
	RUN_TEST(test_label_values_and_namespaces_have_at_most_63_bytes);
	RUN_TEST(test_durations_are_hours_minutes_seconds_or_forever);
	RUN_TEST(test_what_is_no_duration_says_how_to_write_one);
	RUN_TEST(test_a_duration_over_1000_hours_is_refused);
	RUN_TEST(test_words_become_their_enums_exactly_spelled);
	RUN_TEST(test_only_well_formed_utf8_has_a_length);
	RUN_TEST(test_json_strings_are_escaped);
	RUN_TEST(test_long_json_strings_come_out_whole);
	return UNITY_END();
}
