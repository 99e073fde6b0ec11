/* SPDX-License-Identifier: Apache-2.0 */
/* Segments: blocks of ranks that lie in one NVLink domain or leaf each. test_place_best.c has them against brute force. */
#include "cluster.h"

enum { RACK = 18, RACKS = 4, LEAF = 2 * RACK };

static struct cluster *c;

/* Two leaves of two racks each, of 18 nodes with 4 GPUs: n0 … n71. */
void setUp(void)
{
	static const char keys[] = "nvidia.com/gpu.cliquefabric.topograph.run/tier-0fabric.topograph.run/tier-1";
	c = calloc(1, sizeof *c);
	TEST_ASSERT_NOT_NULL(c);
	engine_make(c, RACKS * RACK, 128, "", "");
	for (uint32_t slot = 0; slot < RACKS * RACK; slot++) {
		char in[256];
		uint32_t at = sizeof keys - 1;
		struct frond_node node = {.slot = slot, .gpus = 4, .topology = FROND_NONE};
		struct frond_pair pairs[3] = {{{0, 21}, {0, 0}}, {{21, 27}, {0, 0}}, {{48, 27}, {0, 0}}};
		memcpy(in, keys, at);
		node.name.off = at;
		at += node.name.len = (uint32_t)snprintf(in + at, sizeof in - at, "n%02u", (unsigned)slot);
		pairs[0].value.off = at;
		at += pairs[0].value.len = (uint32_t)snprintf(in + at, sizeof in - at, "q%u", (unsigned)(slot / RACK));
		pairs[1].value.off = at;
		at += pairs[1].value.len = (uint32_t)snprintf(in + at, sizeof in - at, "l%u", (unsigned)(slot / LEAF));
		pairs[2].value.off = at;
		at += pairs[2].value.len = (uint32_t)snprintf(in + at, sizeof in - at, "s");
		TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->node_put(c->engine, &node, pairs, 3, in, at, c->text,
								CLUSTER_TEXT - 1, &c->len));
		snprintf(c->nodes[slot].name, sizeof c->nodes[slot].name, "n%02u", (unsigned)slot);
		c->nodes[slot].gpus = 4;
		c->count = slot + 1;
	}
	check(c);
}

void tearDown(void)
{
	cluster_free(c);
}

static uint32_t ask(uint32_t members, uint32_t gpus, const char *wishes, const uint32_t *pinned)
{
	return plan(
		c, &(struct wanted){.name = "a", .members = members, .gpus = gpus, .wishes = wishes, .pinned = pinned});
}

/* Ranks [first, end) are on consecutive nodes from this one on. */
static void in_a_row(uint32_t first, uint32_t end, uint32_t slot)
{
	for (uint32_t rank = first; rank < end; rank++)
		TEST_ASSERT_EQUAL_UINT32(slot + rank - first, c->places[rank].slot);
}

static void test_racks_of_18_give_16_and_the_last_ranks_use_what_is_left(void)
{
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(34, 4, "segment-size=16", NULL));
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_SAME_LEAF, c->plan.rule);
	in_a_row(0, 16, 0);
	in_a_row(16, 32, RACK);
	in_a_row(32, 34, 16); /* the short one comes last, wherever it lies */
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(48, 4, "segment-size=16", NULL));
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_ADJACENT_LEAVES, c->plan.rule);
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED,
				 ask(48, 4, "", NULL)); /* without them the leaves are as full as may be */
	in_a_row(0, 36, 0);
}

static void test_a_level_of_leaves_disregards_racks(void)
{
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(36, 4, "segment-size=20 segment-level=leaf", NULL));
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_COMPLETE_LEAF, c->plan.rule);
	in_a_row(0, 36, 0);
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(40, 4, "segment-size=20 segment-level=leaf", NULL));
	in_a_row(0, 20, 0);
	in_a_row(20, 40, LEAF);
}

static void test_what_waits_is_told_in_segments(void)
{
	for (uint32_t slot = 0; slot < RACKS * RACK; slot += RACK)
		for (uint32_t i = 0; i < 3; i++)
			occupy(c, c->nodes[slot + i].name, 0xf);
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, ask(32, 4, "segment-size=16", NULL));
	TEST_ASSERT_EQUAL_STRING(
		"needs 2 segments of 16 nodes in NVLink domains of one leaf; best l0 has room for 0 whole "
		"segments (6 nodes in use)",
		c->text);
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, ask(34, 4, "segment-size=16", NULL));
	TEST_ASSERT_NOT_NULL(
		strstr(c->text, "needs 2 segments of 16 nodes and one of 2 in NVLink domains of one leaf; "));
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(30, 4, "segment-size=15", NULL));
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(32, 4, "segment-size=16 topology-mode=Preferred", NULL));
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_RELAXED, c->plan.flags);
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(32, 4, "segment-size=16 topology-mode=Ignore", NULL));
	TEST_ASSERT_EQUAL_UINT32(0, c->plan.flags);
}

static void test_what_no_domain_could_hold_counts_as_a_preference(void)
{
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(38, 4, "segment-size=19", NULL));
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_RELAXED | FROND_PLAN_SHAPELESS | FROND_PLAN_SEGMENTLESS, c->plan.flags);
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_ADJACENT_LEAVES, c->plan.rule); /* as without them */
	TEST_ASSERT_NOT_NULL(strstr(c->text, "; the fabric could never hold its segments of 19 in NVLink domains"));
	TEST_ASSERT_EQUAL_UINT32(FROND_REFUSED, ask(30, 4, "segment-size=19 latency-sensitive=true", NULL));
	TEST_ASSERT_EQUAL_UINT32(FROND_NEVER, ask(73, 4, "segment-size=19", NULL)); /* nor without segments */
}

static void test_several_members_share_nodes_of_their_domain(void)
{
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(40, 1, "segment-size=32 placement-strategy=consolidated", NULL));
	TEST_ASSERT_EQUAL_UINT32(10, c->plan.nodes);
	for (uint32_t rank = 0; rank < 40; rank++)
		TEST_ASSERT_EQUAL_UINT32(rank / 4, c->places[rank].slot);
}

/* Rank 2 is missing: it belongs where ranks 0, 1 and 3 are. */
static void test_a_segment_is_bound_to_where_its_members_are(void)
{
	uint32_t pinned[8] = {18, 19, FROND_NONE, 20, FROND_NONE, FROND_NONE, FROND_NONE, FROND_NONE};
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(8, 4, "segment-size=4", pinned));
	TEST_ASSERT_EQUAL_UINT32(18, c->places[2].slot / RACK * RACK);
	for (uint32_t rank = 5; rank < 8; rank++)
		TEST_ASSERT_EQUAL_UINT32(c->places[4].slot / RACK, c->places[rank].slot / RACK);
	for (uint32_t slot = 21; slot < LEAF; slot++)
		occupy(c, c->nodes[slot].name, 0xf);
	occupy(c, c->nodes[18].name, 0xf);
	occupy(c, c->nodes[19].name, 0xf);
	occupy(c, c->nodes[20].name, 0xf);
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, ask(8, 4, "segment-size=4", pinned)); /* rack 0 is free, but not theirs */
	pinned[3] = 0;
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, ask(8, 4, "segment-size=4", pinned)); /* they are apart */
}

static void test_members_of_several_sizes_keep_their_segments(void)
{
	uint32_t sizes[9] = {1, 4, 4, 4, 4, 4, 4, 4, 4};
	uint32_t outcome = plan(c, &(struct wanted){.name = "a",
						    .members = 9,
						    .sizes = sizes,
						    .wishes = "segment-size=3 network-bandwidth=1Gb"});
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, outcome);
	for (uint32_t rank = 0; rank < 9; rank++)
		TEST_ASSERT_EQUAL_UINT32(c->places[rank / 3 * 3].slot / RACK, c->places[rank].slot / RACK);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_racks_of_18_give_16_and_the_last_ranks_use_what_is_left);
	RUN_TEST(test_a_level_of_leaves_disregards_racks);
	RUN_TEST(test_what_waits_is_told_in_segments);
	RUN_TEST(test_what_no_domain_could_hold_counts_as_a_preference);
	RUN_TEST(test_several_members_share_nodes_of_their_domain);
	RUN_TEST(test_a_segment_is_bound_to_where_its_members_are);
	RUN_TEST(test_members_of_several_sizes_keep_their_segments);
	return UNITY_END();
}
