/* SPDX-License-Identifier: Apache-2.0 */
#include "text/range.h"

#include "dice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unity.h>

static uint64_t seed;

void setUp(void)
{
}
void tearDown(void)
{
}

/* names: separated by spaces. */
static void stands_for(const char *word, const char *names)
{
	struct range range;
	char name[FROND_NAME_MAX + 2], all[4096] = "";
	const char *wrong = range_open(word, &range);
	uint64_t count = 0;
	TEST_ASSERT_NULL_MESSAGE(wrong, word);
	for (; range_next(&range, name); count++) {
		strcat(all, count == 0 ? "" : " ");
		strcat(all, name);
	}
	TEST_ASSERT_EQUAL_STRING(names, all);
	TEST_ASSERT_EQUAL_UINT64_MESSAGE(range.count, count, word);
	TEST_ASSERT_FALSE(range_next(&range, name));
}

static void refused(const char *word, const char *sentence)
{
	struct range range;
	TEST_ASSERT_EQUAL_STRING(sentence, range_open(word, &range));
}

static void test_a_word_without_brackets_is_itself(void)
{
	stands_for("node-1", "node-1");
	stands_for("", "");
	stands_for("no]de", "no]de"); /* no name, which is for others to say */
}

static void test_numbers_and_ranges_come_in_the_order_written(void)
{
	stands_for("node[1-4,7]", "node1 node2 node3 node4 node7");
	stands_for("a[7,1-2].b", "a7.b a1.b a2.b");
	stands_for("[0-2]", "0 1 2");
	stands_for("n[5]", "n5");
	stands_for("n[3-3]", "n3");
}

static void test_leading_zeros_are_kept(void)
{
	stands_for("n[098-101]", "n098 n099 n100 n101");
	stands_for("n[9-11]", "n9 n10 n11");
	stands_for("n[00-02,10]", "n00 n01 n02 n10");
	stands_for("n[0-10]", "n0 n1 n2 n3 n4 n5 n6 n7 n8 n9 n10"); /* a zero is no leading zero */
}

static void test_mixed_widths_are_refused_with_leading_zeros(void)
{
	static const char *const words[] = {"n[1-032]", "n[001-32]", "n[01-100]", "n[1,02]", "n[01-02,3]", "n[0,01]"};
	for (uint32_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		refused(words[i],
			"has numbers of different width; with leading zeros all need the same number of digits");
}

static void test_what_is_no_range_is_refused(void)
{
	refused("n[4-1]", "has a range that runs backwards; the lower number comes first");
	refused("n[]", "has an empty range; write for example node[001-032] or node[1-4,7]");
	refused("n[1,]", "has an empty range; write for example node[001-032] or node[1-4,7]");
	refused("n[,1]", "has an empty range; write for example node[001-032] or node[1-4,7]");
	refused("n[1-4", "has a range without its end; write for example node[001-032] or node[1-4,7]");
	refused("n[1][2]", "has more than one pair of brackets; one is allowed");
	refused("n[[1]]", "has more than one pair of brackets; one is allowed");
	refused("n[1]]", "has more than one pair of brackets; one is allowed");
	static const char *const words[] = {"n[a]", "n[1-]", "n[-1]", "n[1-2-3]", "n[1 -2]", "n[1-b]", "n[+1]"};
	for (uint32_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		refused(words[i],
			"has something else than numbers in its range; write for example node[001-032] or node[1-4,7]");
}

static void test_ranges_keep_to_their_limits(void)
{
	struct range range;
	TEST_ASSERT_NULL(range_open("n[1-131072]", &range));
	TEST_ASSERT_EQUAL_UINT64(131072, range.count);
	refused("n[0-131072]", "stands for more than 131072 names, the most that are allowed");
	refused("n[1-131072,0]", "stands for more than 131072 names, the most that are allowed");
	stands_for("n[999999998-999999999]", "n999999998 n999999999");
	refused("n[0-1000000000]", "has a number of more than 9 digits, the most that are allowed");
}

static void test_a_name_that_is_too_long_is_cut_and_no_name(void)
{
	char word[400], name[FROND_NAME_MAX + 2];
	struct range range;
	memset(word, 'a', sizeof(word));
	strcpy(word + 252, "[1-10]");
	TEST_ASSERT_NULL(range_open(word, &range));
	for (uint32_t i = 1; i <= 10; i++) {
		TEST_ASSERT_TRUE(range_next(&range, name));
		TEST_ASSERT_EQUAL_UINT64(i < 10 ? 253 : 254, strlen(name));
	}
	strcpy(word + 300, "[1]");
	word[252] = 'a';
	word[253] = word[254] = word[255] = word[256] = word[257] = word[258] = 'a';
	TEST_ASSERT_NULL(range_open(word, &range));
	TEST_ASSERT_TRUE(range_next(&range, name));
	TEST_ASSERT_EQUAL_UINT64(254, strlen(name));
}

/* Random lists, written down name by name beside the range. */
static void test_random_ranges_are_what_they_say(void)
{
	for (uint32_t round = 0; round < 500; round++) {
		char word[256] = "n[", want[4096] = "";
		uint32_t width = percent(50) ? 1 + below(4) : 0, items = 1 + below(4);
		uint32_t most = width == 0 ? 2000 : width == 1 ? 9 : width == 2 ? 99 : width == 3 ? 999 : 2000;
		for (uint32_t i = 0; i < items; i++) {
			uint32_t first = below(most + 1), last = first + below(8);
			last = last > most ? most : last;
			sprintf(word + strlen(word), percent(50) || first != last ? "%s%0*u-%0*u" : "%s%0*u",
				i == 0 ? "" : ",", (int)width, first, (int)width, last);
			for (uint32_t number = first; number <= last; number++)
				sprintf(want + strlen(want), "%sn%0*u", want[0] == '\0' ? "" : " ", (int)width, number);
		}
		strcat(word, "]");
		stands_for(word, want);
	}
}

int main(void)
{
	const char *given = getenv("FROND_SEED");
	seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
	dice = seed;
	printf("seed %llu\n", (unsigned long long)seed);
	UNITY_BEGIN();
	RUN_TEST(test_a_word_without_brackets_is_itself);
	RUN_TEST(test_numbers_and_ranges_come_in_the_order_written);
	RUN_TEST(test_leading_zeros_are_kept);
	RUN_TEST(test_mixed_widths_are_refused_with_leading_zeros);
	RUN_TEST(test_what_is_no_range_is_refused);
	RUN_TEST(test_ranges_keep_to_their_limits);
	RUN_TEST(test_a_name_that_is_too_long_is_cut_and_no_name);
	RUN_TEST(test_random_ranges_are_what_they_say);
	return UNITY_END();
}
