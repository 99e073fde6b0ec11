/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <unity.h>

enum { CAP = 8, RECORD = 2 /* in front of each text */, BYTES = CAP * RECORD + 64 };

static struct names names;
static struct pool pool;
static void *mem;

static void make(uint32_t cap, uint32_t bytes)
{
	struct arena arena = {.base = NULL};
	free(mem);
	memset(&names, 0, sizeof names);
	memset(&pool, 0, sizeof pool);
	pool_layout(&pool, &arena, bytes);
	names_layout(&names, &arena, &pool, cap);
	mem = calloc(1, arena.used);
	TEST_ASSERT_NOT_NULL(mem);
	arena = (struct arena){.base = mem};
	pool_layout(&pool, &arena, bytes);
	names_layout(&names, &arena, &pool, cap);
}

void setUp(void)
{
	make(CAP, BYTES);
}

void tearDown(void)
{
	free(mem);
	mem = NULL;
}

static uint32_t hold(const char *text)
{
	return names_hold(&names, text, (uint32_t)strlen(text));
}

static uint32_t find(const char *text)
{
	return names_find(&names, text, (uint32_t)strlen(text));
}

static void is(const char *text, uint32_t id)
{
	uint32_t len;
	const char *have = names_text(&names, id, &len);
	TEST_ASSERT_EQUAL_UINT32(strlen(text), len);
	TEST_ASSERT_EQUAL_MEMORY(text, have, len);
}

static void test_a_name_is_kept_once_however_many_hold_it(void)
{
	uint32_t id = hold("leaf-1");
	TEST_ASSERT_EQUAL_UINT32(id, hold("leaf-1"));
	TEST_ASSERT_EQUAL_UINT32(RECORD + 6, pool.used);
	names_drop(&names, id);
	TEST_ASSERT_EQUAL_UINT32(id, find("leaf-1"));
	names_drop(&names, id);
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, find("leaf-1"));
}

static void test_names_that_share_a_beginning_are_different(void)
{
	uint32_t one = hold("leaf-1"), ten = hold("leaf-10"), l = hold("l");
	TEST_ASSERT_NOT_EQUAL(one, ten);
	is("leaf-1", one);
	is("leaf-10", ten);
	is("l", l);
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, find("leaf-"));
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, find("leaf-100"));
}

static void test_dropping_nobody_is_allowed(void)
{
	names_drop(&names, FROND_NONE);
	TEST_ASSERT_EQUAL_UINT32(0, pool.used);
}

static void test_there_is_room_for_exactly_the_limit_of_names(void)
{
	char text[8];
	for (uint32_t i = 0; i < CAP; i++) {
		snprintf(text, sizeof text, "n%u", (unsigned)i);
		TEST_ASSERT_NOT_EQUAL(FROND_NONE, hold(text));
	}
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, hold("one too many"));
	TEST_ASSERT_NOT_EQUAL(FROND_NONE, hold("n3")); /* known already */
	names_drop(&names, find("n7"));
	uint32_t id = hold("in its place");
	TEST_ASSERT_NOT_EQUAL(FROND_NONE, id);
	is("in its place", id);
	is("n6", find("n6"));
}

static void test_there_is_room_for_exactly_the_limit_of_bytes(void)
{
	char text[BYTES + 1];
	memset(text, 'x', sizeof text);
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, names_hold(&names, text, BYTES - RECORD + 1));
	uint32_t id = names_hold(&names, text, BYTES - RECORD);
	TEST_ASSERT_NOT_EQUAL(FROND_NONE, id);
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, hold("y"));
	names_drop(&names, id);
	TEST_ASSERT_NOT_EQUAL(FROND_NONE, hold("y")); /* its bytes come back */
}

static void test_ids_survive_when_names_move_together(void)
{
	uint32_t keep = hold("keep-me"), also = hold("me-too");
	char text[16];
	for (uint32_t i = 0; i < 1000; i++) { /* each round leaves a hole; moves happen every few rounds */
		snprintf(text, sizeof text, "passing-%u", (unsigned)i);
		uint32_t id = hold(text);
		TEST_ASSERT_NOT_EQUAL(FROND_NONE, id);
		is(text, id);
		is("keep-me", keep);
		is("me-too", also);
		TEST_ASSERT_EQUAL_UINT32(keep, find("keep-me"));
		names_drop(&names, id);
	}
	names_drop(&names, keep);
	names_drop(&names, also);
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, find("keep-me"));
}

static void test_a_move_that_frees_too_little_changes_nothing_for_those_who_stay(void)
{
	char text[BYTES];
	memset(text, 'z', sizeof text);
	uint32_t gone = hold("gone"), stays = names_hold(&names, text, BYTES - 2 * RECORD - 10);
	names_drop(&names, gone);
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, hold("eleven-byte")); /* ten bytes are left after the move */
	TEST_ASSERT_EQUAL_UINT32(stays, names_find(&names, text, BYTES - 2 * RECORD - 10));
	TEST_ASSERT_NOT_EQUAL(FROND_NONE, hold("ten-bytes!"));
}

static void test_names_in_one_bucket_are_all_found(void)
{
	make(300, 300 * (RECORD + 3));
	char text[8];
	for (uint32_t i = 0; i < 300; i++) {
		snprintf(text, sizeof text, "%u", (unsigned)i);
		hold(text);
	}
	for (uint32_t i = 0; i < 300; i += 2) {
		snprintf(text, sizeof text, "%u", (unsigned)i);
		names_drop(&names, find(text));
	}
	for (uint32_t i = 0; i < 300; i++) {
		snprintf(text, sizeof text, "%u", (unsigned)i);
		TEST_ASSERT_EQUAL(i % 2 == 1, find(text) != FROND_NONE);
	}
}

static void test_bytes_that_are_no_text_are_names_too(void)
{
	uint32_t id = names_hold(&names, "a\0b", 3), other = names_hold(&names, "a\0c", 3);
	TEST_ASSERT_NOT_EQUAL(id, other);
	TEST_ASSERT_EQUAL_UINT32(other, names_find(&names, "a\0c", 3));
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, names_find(&names, "a", 1));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_a_name_is_kept_once_however_many_hold_it);
	RUN_TEST(test_names_that_share_a_beginning_are_different);
	RUN_TEST(test_dropping_nobody_is_allowed);
	RUN_TEST(test_there_is_room_for_exactly_the_limit_of_names);
	RUN_TEST(test_there_is_room_for_exactly_the_limit_of_bytes);
	RUN_TEST(test_ids_survive_when_names_move_together);
	RUN_TEST(test_a_move_that_frees_too_little_changes_nothing_for_those_who_stay);
	RUN_TEST(test_names_in_one_bucket_are_all_found);
	RUN_TEST(test_bytes_that_are_no_text_are_names_too);
	return UNITY_END();
}
