/* SPDX-License-Identifier: Apache-2.0 */
/* Large gangs and fabrics: the limits, exactness of steps 1 to 3 at any size, and the bound on candidates from step 4. */
#include "cluster.h"
#include "dice.h"

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

static void put_node(uint32_t slot, uint32_t gpus, uint32_t flags)
{
	char name[32];
	snprintf(name, sizeof name, "node-%u", (unsigned)slot + 1);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, node_try(c, slot, name, gpus, 0, flags, 0, NULL, NULL));
}

/* The fabric of the line, all nodes free, in an engine with room for `limit` nodes. */
static void engine_of(uint32_t limit, const char *line, uint32_t nodes, uint32_t gpus)
{
	engine_make(c, limit, FROND_MEMBERS_MAX, "", line);
	for (uint32_t slot = 0; slot < nodes; slot++)
		put_node(slot, gpus, 0);
	check(c);
}

static void engine(const char *line, uint32_t nodes, uint32_t gpus)
{
	engine_of(nodes, line, nodes, gpus);
}

static void close_node(uint32_t slot, uint32_t gpus)
{
	put_node(slot, gpus, FROND_NODE_CORDONED);
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
	int32_t code = abi->plan(c->engine, &request, members, pairs, in, in_len, NULL, 0, &c->plan, places, c->text,
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

/* The slots of the plan, by rank: from `first` on in steps. */
static void expect_slots(uint32_t first, uint32_t step, uint32_t from, uint32_t end)
{
	for (uint32_t i = from; i < end; i++)
		TEST_ASSERT_EQUAL_UINT32(first + (i - from) * step, places[i].slot);
}

static void test_a_run_over_a_hundred_worn_leaves_is_found(void)
{
	engine("spine:1 leaf:126 node:2 gpu:8", 252, 8);
	for (uint32_t slot = 0; slot < 252; slot += 2)
		close_node(slot, 8); /* every leaf has one node left */
	ask(100, 8, "topology-mode=Ignore");
	expect(FROND_RULE_NONE, 0, 1, 100, 1, 100);
	expect_slots(1, 2, 0, 100);
	close_node(99, 8); /* leaf-50: 49 leaves before it, 76 behind */
	ask(76, 8, "topology-mode=Ignore");
	expect(FROND_RULE_NONE, 0, 1, 76, 1, 76);
	expect_slots(101, 2, 0, 76);
	ask(77, 8, "topology-mode=Ignore");
	expect(FROND_RULE_NONE, FROND_PLAN_BOUNDED, 1, 77, 2, 77); /* 20,825 ways and more */
}

static void test_long_chains_of_spines_are_exact(void)
{
	engine("spine:2 leaf:400 node:1 gpu:8", 800, 8);
	ask(500, 8, "");
	expect(FROND_RULE_ADJACENT_SPINES, FROND_PLAN_BOUNDED, 2, 500, 2, 500); /* thousands of ways to split it */
	expect_slots(0, 1, 0, 500);
	close_node(200, 8); /* two hundred leaves on one side of it, 199 on the other */
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, ask(601, 8, ""));
	ask(600, 8, "");
	expect(FROND_RULE_ADJACENT_SPINES, 0, 2, 600, 2, 600); /* one way only */
	expect_slots(0, 1, 0, 200);
	expect_slots(400, 1, 200, 600);
}

/* A large engine keeps few rows of the table of place_table.c, far fewer than there are leaves here: between two that are
 * kept for good there are more than have a place, and they are computed again and again. */
static void test_a_chain_is_exact_where_few_rows_of_its_table_are_kept(void)
{
	engine_of(20000, "spine:2 leaf:1000 node:1 gpu:8", 2000, 8);
	ask(2000, 8, "");
	expect(FROND_RULE_ADJACENT_SPINES, 0, 2, 2000, 2, 2000);
	expect_slots(0, 1, 0, 2000);
	close_node(400, 8); /* 400 leaves on one side of it, 599 on the other */
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, ask(1600, 8, ""));
	ask(1599, 8, "");
	expect(FROND_RULE_ADJACENT_SPINES, 0, 2, 1599, 2, 1599); /* one way only */
	expect_slots(401, 1, 0, 1599);
}

static void test_of_too_many_equal_sets_the_first_are_compared_and_the_plan_says_so(void)
{
	engine("spine:1 leaf:48 node:1 gpu:8", 48, 8);
	for (uint32_t slot = 1; slot < 48; slot += 2)
		close_node(slot, 8); /* 24 leaves, none beside another: 735,471 ways to take eight */
	ask(8, 8, "topology-mode=Ignore placement-strategy=consolidated");
	expect(FROND_RULE_NONE, FROND_PLAN_BOUNDED, 1, 8, 8, 8);
	expect_slots(0, 2, 0, 8);
	ask(8, 8, "topology-mode=Ignore");
	expect(FROND_RULE_NONE, FROND_PLAN_BOUNDED, 1, 8, 8, 8);
	expect_slots(0, 2, 0, 8);
	TEST_ASSERT_EQUAL_UINT64(2, stats(c).bounded);
	TEST_ASSERT_EQUAL_UINT64(2 * FROND_CANDIDATES, stats(c).steps);
}

/* So many leaves of one node, with a closed one between any two when step is 2; the last node is half used, so that a
 * pod of four GPUs would rather go there. */
static void lone_leaves(uint32_t leaves_open, uint32_t step)
{
	char line[64];
	cluster_free(c);
	c = calloc(1, sizeof *c);
	TEST_ASSERT_NOT_NULL(c);
	uint32_t nodes = step * (leaves_open - 1) + 1;
	snprintf(line, sizeof line, "spine:1 leaf:%u node:1 gpu:8", (unsigned)nodes);
	engine(line, nodes, 8);
	for (uint32_t slot = 1; step == 2 && slot < nodes; slot += 2)
		close_node(slot, 8);
	TEST_ASSERT_EQUAL_INT32(FROND_OK,
				pod_try(c, (struct frond_key){1, 1}, nodes - 1, 4, 0xf, "", (struct frond_key){0, 0}));
}

static void test_exactly_4096_candidates_are_compared(void)
{
	lone_leaves(91, 2); /* 4,095 pairs */
	ask(2, 4, "topology-mode=Ignore placement-strategy=distributed");
	expect(FROND_RULE_NONE, 0, 1, 2, 2, 2);
	TEST_ASSERT_EQUAL_UINT64(4095, stats(c).steps);
	lone_leaves(92, 2); /* 4,186 */
	ask(2, 4, "topology-mode=Ignore placement-strategy=distributed");
	expect(FROND_RULE_NONE, FROND_PLAN_BOUNDED, 1, 2, 2, 2);
	TEST_ASSERT_EQUAL_UINT64(4096, stats(c).steps);
	lone_leaves(4096, 1);
	ask(1, 4, "placement-strategy=consolidated");
	expect(FROND_RULE_SINGLE_NODE, 0, 1, 1, 1, 1);
	ask(1, 4, "placement-strategy=consolidated");
	TEST_ASSERT_EQUAL_UINT32(4095, places[0].slot); /* the last of them is the best */
	lone_leaves(4097, 1);
	ask(1, 4, "placement-strategy=consolidated");
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_BOUNDED, c->plan.flags);
	TEST_ASSERT_EQUAL_UINT32(0, places[0].slot); /* the best is one too far */
}

/* Candidates of spines that look like one before are not looked at again, but they count. */
static void expect_compared(const char *line, uint32_t nodes, uint32_t count, uint32_t flags, uint64_t compared)
{
	cluster_free(c);
	c = calloc(1, sizeof *c);
	TEST_ASSERT_NOT_NULL(c);
	engine(line, nodes, 8);
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(count, 8, ""));
	TEST_ASSERT_EQUAL_UINT32(flags, c->plan.flags);
	TEST_ASSERT_EQUAL_UINT64(compared, stats(c).steps);
	expect_slots(0, 1, 0, count);
	close_node(0, 8); /* one of them is no longer like the others, and a node of it is out of the question */
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(count, 8, ""));
	expect_slots(1, 1, 0, count);
}

static void test_spines_that_are_alike_count_as_if_each_were_looked_at(void)
{
	expect_compared("spine:64 leaf:64 node:1 gpu:8", 4096, 1, 0, 4096);
	expect_compared("spine:64 leaf:65 node:1 gpu:8", 4160, 1, FROND_PLAN_BOUNDED, 4096);
	/* Two spines, one run in each: 286 ways in each pair of neighbours. */
	expect_compared("spine:15 leaf:12 node:1 gpu:8", 180, 14, 0, 14 * 286);
	expect_compared("spine:16 leaf:12 node:1 gpu:8", 192, 14, FROND_PLAN_BOUNDED, 4096);
}

/* ---- against a small computation of its own ------------------------------------------------------------------------ */

enum { LEAVES = 60, EACH = 4, MOST = LEAVES };

/* Most members that so many leaves in so many runs can take, the last leaf being used or not; -1: no such choice. */
static int most[MOST + 1][MOST + 1][2];

static void fewest(const uint32_t *room, uint32_t need, uint32_t *leaves_used, uint32_t *runs)
{
	memset(most, 0xff, sizeof most);
	most[0][0][0] = 0;
	for (uint32_t leaf = 0; leaf < LEAVES; leaf++)
		for (uint32_t k = MOST + 1; k-- > 0;)
			for (uint32_t r = MOST + 1; r-- > 0;) {
				int skip = most[k][r][0] > most[k][r][1] ? most[k][r][0] : most[k][r][1], take = -1;
				if (k > 0 && most[k - 1][r][1] >= 0)
					take = most[k - 1][r][1] + (int)room[leaf];
				if (k > 0 && r > 0 && most[k - 1][r - 1][0] >= 0 &&
				    most[k - 1][r - 1][0] + (int)room[leaf] > take)
					take = most[k - 1][r - 1][0] + (int)room[leaf];
				most[k][r][0] = skip;
				most[k][r][1] = room[leaf] > 0 ? take : -1;
			}
	for (*leaves_used = 1; *leaves_used <= MOST; ++*leaves_used)
		for (*runs = 1; *runs <= MOST; ++*runs)
			for (uint32_t last = 0; last < 2; last++)
				if (most[*leaves_used][*runs][last] >= (int)need)
					return;
	TEST_FAIL_MESSAGE("the small computation found nothing");
}

static void test_leaves_and_runs_are_the_fewest(void)
{
	const char *text = getenv("FROND_SEED");
	dice = text == NULL ? 5 : strtoull(text, NULL, 0);
	printf("seed %llu\n", (unsigned long long)dice);
	engine("spine:1 leaf:60 node:4 gpu:8", LEAVES * EACH, 8);
	for (uint32_t round = 0; round < 60; round++) {
		uint32_t room[LEAVES] = {0}, all = 0, leaves_used, runs, closed = 20 + below(60);
		for (uint32_t slot = 0; slot < LEAVES * EACH; slot++) {
			bool open = !percent(closed);
			room[slot / EACH] += open;
			all += open;
			put_node(slot, 8, open ? 0 : FROND_NODE_CORDONED);
		}
		uint32_t need = 1 + below(all < 80 ? all : 80);
		fewest(room, need, &leaves_used, &runs);
		ask(need, 8, "topology-mode=Ignore");
		TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, c->plan.outcome, c->text);
		TEST_ASSERT_EQUAL_UINT32(leaves_used, c->plan.leaves);
		TEST_ASSERT_EQUAL_UINT32(runs, c->plan.runs);
		check(c);
	}
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_the_largest_gang_is_planned_and_booked_and_a_larger_one_refused);
	RUN_TEST(test_a_leaf_may_have_every_node_and_a_node_be_a_leaf_of_its_own);
	RUN_TEST(test_a_run_over_a_hundred_worn_leaves_is_found);
	RUN_TEST(test_long_chains_of_spines_are_exact);
	RUN_TEST(test_a_chain_is_exact_where_few_rows_of_its_table_are_kept);
	RUN_TEST(test_of_too_many_equal_sets_the_first_are_compared_and_the_plan_says_so);
	RUN_TEST(test_exactly_4096_candidates_are_compared);
	RUN_TEST(test_spines_that_are_alike_count_as_if_each_were_looked_at);
	RUN_TEST(test_leaves_and_runs_are_the_fewest);
	return UNITY_END();
}
