/* SPDX-License-Identifier: Apache-2.0 */
/* Large gangs of several sizes: what the bounds prove, what the search decides, and what neither does. */
#include "cluster.h"

static struct cluster *c;
static struct frond_member *members;
static struct frond_place *places;

void setUp(void)
{
	c = calloc(1, sizeof *c);
	members = calloc(FROND_MEMBERS_MAX, sizeof *members);
	places = calloc(FROND_MEMBERS_MAX, sizeof *places);
	TEST_ASSERT_TRUE(c != NULL && members != NULL && places != NULL);
}

void tearDown(void)
{
	cluster_free(c);
	free(members);
	free(places);
}

static void put_node(uint32_t slot, uint32_t unhealthy)
{
	char name[32];
	snprintf(name, sizeof name, "node-%u", (unsigned)slot + 1);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, node_try(c, slot, name, 8, unhealthy, 0, 0, NULL, NULL));
}

/* Nodes of eight GPUs, of which the mask is out of order. */
static void engine(const char *line, uint32_t nodes, uint32_t unhealthy)
{
	engine_make(c, nodes, FROND_MEMBERS_MAX, "", line);
	for (uint32_t slot = 0; slot < nodes; slot++)
		put_node(slot, unhealthy);
	check(c);
}

struct some {
	uint32_t count, gpus;
};

static uint32_t ask(const struct some *some, uint32_t sizes, const char *wishes)
{
	char in[256];
	struct frond_pair pairs[8];
	struct frond_request request = {.gang = {5, 5}, .min_member = 1, .only_slot = FROND_NONE};
	for (uint32_t i = 0; i < sizes; i++)
		for (uint32_t j = 0; j < some[i].count; j++) {
			uint32_t rank = request.members++;
			members[rank] = (struct frond_member){
				.pod = {5, rank + 1}, .rank = rank, .gpus = some[i].gpus, .pinned_slot = FROND_NONE};
			request.gpus_desired += some[i].gpus;
		}
	uint32_t in_len = wishes_read(wishes, in, 0, pairs, &request.annotations);
	int32_t code = abi->plan(c->engine, &request, members, pairs, in, in_len, NULL, 0, &c->plan, places, c->text,
				 CLUSTER_TEXT - 1, &c->len);
	c->text[c->len] = 0;
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, code, c->text);
	return c->plan.outcome;
}

/* The launcher has the lowest rank and comes behind the whole nodes: first fit decreasing. */
static void test_a_launcher_and_its_workers_fill_a_spine(void)
{
	static const struct some gang[] = {{1, 1}, {255, 8}};
	engine("spine:4 leaf:16 node:16 gpu:8", 1024, 0);
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, ask(gang, 2, ""), c->text);
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_ADJACENT_LEAVES, c->plan.rule);
	TEST_ASSERT_EQUAL_UINT32(0, c->plan.flags);
	TEST_ASSERT_EQUAL_UINT32(16, c->plan.leaves);
	TEST_ASSERT_EQUAL_UINT32(255, places[0].slot);
	for (uint32_t rank = 1; rank < 256; rank++)
		TEST_ASSERT_EQUAL_UINT32(rank - 1, places[rank].slot);
}

/* 65 nodes with seven GPUs or more are asked for, and there are none: every run of leaves is ruled out by its sums. */
static void test_a_gang_that_waits_is_told_so_by_the_bounds(void)
{
	static const struct some gang[] = {{1, 8}, {64, 7}};
	engine("spine:1 leaf:500 node:8 gpu:8", 4000, 0x03);
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_WAITS, ask(gang, 2, ""), c->text);
	TEST_ASSERT_EQUAL_UINT32(0, c->plan.flags);
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_WAITS, ask(gang, 2, "topology-mode=Preferred"), c->text);
	put_node(100, 0);
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_WAITS, ask(gang, 2, "placement-strategy=distributed"), c->text);
}

/* One node in each leaf of eight is bad: no nine leaves have 65, and the gang goes over ten, relaxed. */
static void test_fewest_leaves_are_found_among_hundreds(void)
{
	static const struct some gang[] = {{1, 8}, {64, 7}};
	engine("spine:1 leaf:300 node:8 gpu:8", 2400, 0);
	for (uint32_t leaf = 0; leaf < 300; leaf++)
		put_node(8 * leaf, 0xff);
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_WAITS, ask(gang, 2, ""), c->text);
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, ask(gang, 2, "topology-mode=Preferred"), c->text);
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_RELAXED, c->plan.flags);
	TEST_ASSERT_EQUAL_UINT32(10, c->plan.leaves);
	TEST_ASSERT_EQUAL_UINT32(1, c->plan.runs);
}

/* A run from each leaf but the last, and everything. Every node has lost a GPU: no two leaves are passed over as alike. */
static void test_exactly_4096_spans_are_compared(void)
{
	static const struct some gang[] = {{1, 7}, {1, 4}};
	engine("spine:1 leaf:4096 node:1 gpu:8", 4096, 1);
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(gang, 2, "topology-mode=Ignore"));
	TEST_ASSERT_EQUAL_UINT32(0, c->plan.flags);
	TEST_ASSERT_EQUAL_UINT64(4096, stats(c).steps);
	tearDown();
	setUp();
	engine("spine:1 leaf:4097 node:1 gpu:8", 4097, 1);
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(gang, 2, "topology-mode=Ignore"));
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_BOUNDED, c->plan.flags);
	TEST_ASSERT_EQUAL_UINT64(4096, stats(c).steps);
}

/* 4 + 2 + 2, 3 + 3 + 2 and 2 + 2 + 2 + 2, no GPU to spare, and first fit strands one beside 4 + 3: neither it nor a bound
 * nor a search within the budget says anything. Nobody says that it never fits, or that it waits. */
static void test_what_nothing_decides_is_undecided(void)
{
	static const struct some gang[] = {{1, 4}, {1022, 3}, {2561, 2}};
	engine("spine:1 leaf:64 node:16 gpu:8", 1024, 0);
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_UNDECIDED, ask(gang, 3, "topology-mode=Ignore"), c->text);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(c->text, "it may fit"), c->text);
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_BOUNDED, c->plan.flags & FROND_PLAN_BOUNDED);
}

/* A GPU more than there is, and one member that no node holds: bounds prove it at any size. */
static void test_never_is_proven_at_any_size(void)
{
	static const struct some more[] = {{512, 4}, {1024, 3}, {1537, 2}}, fives[] = {{1025, 5}, {3, 1}};
	engine("spine:1 leaf:64 node:16 gpu:8", 1024, 0);
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_NEVER, ask(more, 3, "topology-mode=Ignore"), c->text);
	TEST_ASSERT_EQUAL_UINT32(0, c->plan.flags);
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_NEVER, ask(fives, 2, ""), c->text);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(c->text, "members of these sizes do not fit its nodes together"), c->text);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_a_launcher_and_its_workers_fill_a_spine);
	RUN_TEST(test_a_gang_that_waits_is_told_so_by_the_bounds);
	RUN_TEST(test_fewest_leaves_are_found_among_hundreds);
	RUN_TEST(test_exactly_4096_spans_are_compared);
	RUN_TEST(test_what_nothing_decides_is_undecided);
	RUN_TEST(test_never_is_proven_at_any_size);
	return UNITY_END();
}
