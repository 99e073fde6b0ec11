/* SPDX-License-Identifier: Apache-2.0 */
/* Large gangs and fabrics: the limits, and what happens when the exact search would not fit its table. */
#include "cluster.h"

static struct cluster *c;
static struct frond_member *members;
static struct frond_place *places;
static struct frond_request request;

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

/* The fabric of the line, all nodes free. */
static void engine(const char *line, uint32_t nodes, uint32_t gpus)
{
	engine_make(c, nodes, FROND_MEMBERS_MAX, "", line);
	for (uint32_t slot = 0; slot < nodes; slot++) {
		char name[32];
		snprintf(name, sizeof name, "node-%u", (unsigned)slot + 1);
		TEST_ASSERT_EQUAL_INT32(FROND_OK, node_try(c, slot, name, gpus, 0, 0, 0, NULL, NULL));
	}
	check(c);
}

static void close_node(uint32_t slot, uint32_t gpus)
{
	char name[32];
	snprintf(name, sizeof name, "node-%u", (unsigned)slot + 1);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, node_try(c, slot, name, gpus, 0, FROND_NODE_CORDONED, 0, NULL, NULL));
}

static uint32_t ask(uint32_t count, uint32_t gpus, const char *wishes)
{
	char in[256];
	struct frond_pair pairs[8];
	request = (struct frond_request){.gang = {5, 5},
					 .members = count,
					 .min_member = 1,
					 .gpus_desired = (uint64_t)count * gpus,
					 .only_slot = FROND_NONE};
	uint32_t in_len = wishes_read(wishes, in, 0, pairs, &request.annotations);
	for (uint32_t i = 0; i < count && i < FROND_MEMBERS_MAX; i++)
		members[i] =
			(struct frond_member){.pod = {5, i + 1}, .rank = i, .gpus = gpus, .pinned_slot = FROND_NONE};
	int32_t code = abi->plan(c->engine, &request, members, pairs, in, in_len, NULL, &c->plan, places, c->text,
				 CLUSTER_TEXT - 1, &c->len);
	c->text[c->len] = 0;
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, code, c->text);
	return c->plan.outcome;
}

static void expect(uint32_t rule, uint32_t flags, uint32_t spines, uint32_t leaves_used, uint32_t runs, uint32_t nodes)
{
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, c->plan.outcome, c->text);
	TEST_ASSERT_EQUAL_UINT32(rule, c->plan.rule);
	TEST_ASSERT_EQUAL_UINT32(flags, c->plan.flags);
	TEST_ASSERT_EQUAL_UINT32(spines, c->plan.spines);
	TEST_ASSERT_EQUAL_UINT32(leaves_used, c->plan.leaves);
	TEST_ASSERT_EQUAL_UINT32(runs, c->plan.runs);
	TEST_ASSERT_EQUAL_UINT32(nodes, c->plan.nodes);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->reserve(c->engine, &request, members, places));
	uint32_t pods;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release_gang(c->engine, &request.gang, &pods));
	TEST_ASSERT_EQUAL_UINT32(request.members, pods);
}

static void test_the_largest_gang_is_planned_and_booked_and_a_larger_one_refused(void)
{
	engine("spine:16 leaf:16 node:8 gpu:8", 2048, 8);
	ask(FROND_MEMBERS_MAX, 1, "");
	expect(FROND_RULE_ADJACENT_SPINES, 0, 16, 256, 16, 2048);
	TEST_ASSERT_EQUAL_UINT32(FROND_REFUSED, ask(FROND_MEMBERS_MAX + 1, 1, ""));
	TEST_ASSERT_EQUAL_STRING("the gang has 16385 members, at most 16384 are possible", c->text);
	TEST_ASSERT_EQUAL_UINT32(FROND_REFUSED, ask(UINT32_MAX, 1, ""));
}

static void test_a_leaf_may_have_every_node_and_a_node_be_a_leaf_of_its_own(void)
{
	engine("spine:1 leaf:1 node:1000 gpu:8", 1000, 8);
	ask(1000, 8, "");
	expect(FROND_RULE_COMPLETE_LEAF, 0, 1, 1, 1, 1000);
	cluster_free(c);
	c = calloc(1, sizeof *c);
	TEST_ASSERT_NOT_NULL(c);
	engine("spine:1 leaf:1000 node:1 gpu:8", 1000, 8);
	ask(1000, 8, "");
	expect(FROND_RULE_ADJACENT_LEAVES, 0, 1, 1000, 1, 1000);
	cluster_free(c);
	c = calloc(1, sizeof *c);
	TEST_ASSERT_NOT_NULL(c);
	engine("spine:100 leaf:1 node:1 gpu:8", 100, 8);
	ask(100, 8, "");
	expect(FROND_RULE_ADJACENT_SPINES, 0, 100, 100, 100, 100);
}

static void test_holes_beyond_the_table_are_answered_and_said_to_be_inexact(void)
{
	engine("spine:1 leaf:126 node:2 gpu:8", 252, 8);
	for (uint32_t slot = 0; slot < 252; slot += 2)
		close_node(slot, 8); /* every leaf has one node left */
	ask(100, 8, "topology-mode=Ignore");
	expect(FROND_RULE_NONE, FROND_PLAN_INEXACT, 1, 100, 1, 100);
	TEST_ASSERT_EQUAL_UINT64(1, stats(c).inexact);
}

static void test_long_chains_of_spines_are_answered_and_said_to_be_inexact(void)
{
	engine("spine:2 leaf:400 node:1 gpu:8", 800, 8);
	ask(500, 8, "");
	expect(FROND_RULE_ADJACENT_SPINES, FROND_PLAN_INEXACT, 2, 500, 2, 500);
	close_node(200, 8); /* two hundred leaves on one side of it, 199 on the other */
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, ask(601, 8, ""));
	ask(600, 8, "");
	expect(FROND_RULE_ADJACENT_SPINES, FROND_PLAN_INEXACT, 2, 600, 2, 600);
}

static void test_too_many_equal_sets_are_cut_off_and_said_to_be_inexact(void)
{
	engine("spine:1 leaf:48 node:1 gpu:8", 48, 8);
	for (uint32_t slot = 1; slot < 48; slot += 2)
		close_node(slot, 8); /* 24 leaves, none beside another: 735,471 ways to take eight */
	ask(8, 8, "topology-mode=Ignore placement-strategy=consolidated");
	expect(FROND_RULE_NONE, FROND_PLAN_INEXACT, 1, 8, 8, 8);
	ask(8, 8, "topology-mode=Ignore");
	expect(FROND_RULE_NONE, 0, 1, 8, 8, 8);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_the_largest_gang_is_planned_and_booked_and_a_larger_one_refused);
	RUN_TEST(test_a_leaf_may_have_every_node_and_a_node_be_a_leaf_of_its_own);
	RUN_TEST(test_holes_beyond_the_table_are_answered_and_said_to_be_inexact);
	RUN_TEST(test_long_chains_of_spines_are_answered_and_said_to_be_inexact);
	RUN_TEST(test_too_many_equal_sets_are_cut_off_and_said_to_be_inexact);
	return UNITY_END();
}
