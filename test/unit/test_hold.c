/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds: what each call does, and by equivalence that every decision minds them. For others a hold is a pod that nobody may
 * move or evict, so an engine with holds answers as one with such pods in their places; for its own gang it is nothing, so
 * the engine answers as one without. A hold on GPUs that others still have is, for who would evict or move them, a GPU that
 * brings nothing, as one that is unhealthy.
 *
 * FROND_SEED: the seed. FROND_HOLD_STEPS: how many random clusters.
 */
#include "cluster.h"
#include "dice.h"
#include "engine/engine.h"

enum { STEPS_USUAL = 1500, GANGS = 6, MOVES = 64, WHERE = 64 };

static struct cluster *c, *plain;
static char where[WHERE];
static struct {
	uint32_t placed, waiting, victims, windows, moves, repairs, ordered, own, clashing;
} seen;

void setUp(void)
{
	c = plain = NULL;
	where[0] = 0;
}

void tearDown(void)
{
	if (Unity.CurrentTestFailed && where[0] != 0)
		printf("to see it again: %s\n", where);
	cluster_free(c);
	cluster_free(plain);
}

/* ---- calls ------------------------------------------------------------------------------------------------------ */

static struct frond_hold hold_of(const char *gang, uint32_t rank, uint32_t slot, uint32_t mask)
{
	return (struct frond_hold){
		.gang = key_of(gang, UINT64_MAX), .rank = rank, .slot = slot, .gpu_mask = mask, .deadline_ms = 0};
}

static int32_t put_list(struct cluster *on, const struct frond_hold *list, uint32_t count)
{
	int32_t code = abi->hold_put(on->engine, list, count, on->text, CLUSTER_TEXT - 1, &on->len);
	on->text[on->len] = 0;
	check(on);
	return code;
}

static void put(const char *gang, uint32_t rank, const char *node, uint32_t mask)
{
	struct frond_hold hold = hold_of(gang, rank, slot_of(c, node), mask);
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, put_list(c, &hold, 1), c->text);
}

static int32_t take(const char *gang, uint32_t rank)
{
	struct frond_key key = key_of(gang, UINT64_MAX), pod = key_of(gang, rank + 1);
	int32_t code = abi->hold_take(c->engine, &key, rank, &pod);
	check(c);
	return code;
}

static uint32_t drop(struct cluster *on, const char *gang, uint32_t rank)
{
	struct frond_key key = key_of(gang, UINT64_MAX);
	uint32_t count = 99;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->hold_drop(on->engine, &key, rank, &count));
	check(on);
	return count;
}

static void tick(int64_t now_ms)
{
	struct frond_key expired;
	uint32_t count;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->tick(c->engine, now_ms, &expired, 1, &count));
	TEST_ASSERT_EQUAL_UINT32(0, count);
	check(c);
}

static void bind_pod(struct cluster *on, const char *gang, uint32_t rank, uint32_t slot, uint32_t mask)
{
	struct frond_pod pod = {.pod = key_of(gang, rank + 1),
				.slot = slot,
				.gpus = (uint32_t)__builtin_popcount(mask),
				.gpu_mask = mask,
				.rank = rank,
				.gang = key_of(gang, UINT64_MAX)};
	int32_t code = abi->pod_put(on->engine, &pod, "", 0, on->text, CLUSTER_TEXT - 1, &on->len);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, code);
	check(on);
}

static uint32_t free_gpus(const struct cluster *on, uint32_t slot)
{
	return node_free_mask(&on->engine->core.nodes[slot]);
}

/* ---- what a hold is --------------------------------------------------------------------------------------------- */

static void test_others_do_not_get_what_is_kept_and_the_own_gang_does(void)
{
	c = cluster_make("spine:1 leaf:1 node:2 gpu:8", "");
	put("mine", 0, "node-1", 0xff);
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, plan(c, &(struct wanted){.name = "other", .members = 1, .gpus = 8}));
	TEST_ASSERT_EQUAL_STRING("node-2", spots(c));
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, plan(c, &(struct wanted){.name = "other", .members = 2, .gpus = 8}));
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, plan(c, &(struct wanted){.name = "mine", .members = 2, .gpus = 8}));
	TEST_ASSERT_EQUAL_UINT32(8, stats(c).gpus_free);
	TEST_ASSERT_EQUAL_UINT32(8, stats(c).gpus_kept);
	TEST_ASSERT_EQUAL_UINT32(1, stats(c).holds);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->map(c->engine, 0, c->text, CLUSTER_TEXT - 1, &c->len));
	c->text[c->len] = 0;
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(c->text, "node-1 ++++++++"), c->text);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(c->text, "+ kept by a hold"), c->text);
}

static void test_a_pod_takes_its_hold_over_as_a_reservation(void)
{
	c = cluster_make("spine:1 leaf:1 node:2 gpu:8", "");
	put("mine", 3, "node-1", 0x0f);
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, take("mine", 2));
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, take("other", 3));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, take("mine", 3));
	struct frond_key pod = key_of("mine", 4), gang = key_of("mine", UINT64_MAX);
	struct frond_held held;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->pod_get(c->engine, &pod, &held));
	TEST_ASSERT_EQUAL_UINT32(FROND_HELD_RESERVED, held.state);
	TEST_ASSERT_EQUAL_HEX32(0x0f, held.gpu_mask);
	TEST_ASSERT_EQUAL_UINT32(3, held.rank);
	TEST_ASSERT_EQUAL_MEMORY(&gang, &held.gang, sizeof gang);
	TEST_ASSERT_EQUAL_UINT32(0, stats(c).holds);
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, take("mine", 3));
	put("mine", 3, "node-2", 0x0f); /* the same pod cannot take another */
	TEST_ASSERT_EQUAL_INT32(FROND_STALE, take("mine", 3));
	pod = (struct frond_key){0, 0};
	TEST_ASSERT_EQUAL_INT32(FROND_BAD, abi->hold_take(c->engine, &gang, 3, &pod));
}

static void test_a_hold_waits_until_its_gpus_are_to_be_had(void)
{
	c = cluster_make("spine:1 leaf:1 node:2 gpu:8", "");
	struct frond_key victim = occupy(c, "node-1", 0x03);
	put("mine", 0, "node-1", 0x0f);
	TEST_ASSERT_EQUAL_UINT32(2, stats(c).gpus_kept);
	remember(c);
	TEST_ASSERT_EQUAL_INT32(FROND_STALE, take("mine", 0));
	unchanged(c);
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, plan(c, &(struct wanted){.name = "mine", .members = 2, .gpus = 8}));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release(c->engine, &victim));
	check(c);
	TEST_ASSERT_EQUAL_HEX32(0xf0, free_gpus(c, 0)); /* the victim's GPUs are not free for a moment */
	TEST_ASSERT_EQUAL_UINT32(4, stats(c).gpus_kept);
	cordon(c, "node-1");
	TEST_ASSERT_EQUAL_INT32(FROND_STALE, take("mine", 0));
	node_flags(c, "node-1", 0);
	unhealthy(c, "node-1", 0x08);
	TEST_ASSERT_EQUAL_INT32(FROND_STALE, take("mine", 0));
	unhealthy(c, "node-1", 0);
	struct frond_key counted = occupy_by_count(c, "node-1", 5);
	TEST_ASSERT_EQUAL_INT32(FROND_STALE, take("mine", 0)); /* it may sit on one of them */
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release(c->engine, &counted));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, take("mine", 0));
}

static void test_a_bound_pod_takes_over_the_hold_of_its_rank_on_its_node_and_no_other(void)
{
	c = cluster_make("spine:1 leaf:1 node:3 gpu:8", "");
	put("mine", 0, "node-1", 0x0f);
	put("mine", 1, "node-2", 0x0f);
	bind_pod(c, "mine", 0, 2, 0x0f); /* the pod that shall be replaced is seen once more */
	TEST_ASSERT_EQUAL_UINT32(2, stats(c).holds);
	bind_pod(c, "mine", 1, 1, 0xf0); /* on other GPUs of the node */
	TEST_ASSERT_EQUAL_UINT32(1, stats(c).holds);
	TEST_ASSERT_EQUAL_HEX32(0x0f, free_gpus(c, 1));
	bind_pod(c, "other", 7, 0, 0x03); /* a fact that nobody asked us about: it has them, by device */
	TEST_ASSERT_EQUAL_UINT32(1, stats(c).holds);
	TEST_ASSERT_EQUAL_UINT64(0, stats(c).conflicts);
	TEST_ASSERT_EQUAL_HEX32(0xf0, free_gpus(c, 0));
	struct frond_pod late = {.pod = key_of("mine", 9), .slot = 0, .gpus = 1, .gpu_mask = 0x80, .rank = FROND_NONE};
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->pod_put(c->engine, &late, "", 0, c->text, CLUSTER_TEXT - 1, &c->len));
	TEST_ASSERT_EQUAL_UINT32(1, stats(c).holds);
	late.gang = key_of("mine", UINT64_MAX); /* who it is becomes known later */
	late.rank = 0;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->pod_put(c->engine, &late, "", 0, c->text, CLUSTER_TEXT - 1, &c->len));
	check(c);
	TEST_ASSERT_EQUAL_UINT32(0, stats(c).holds);
	TEST_ASSERT_EQUAL_HEX32(0x7c, free_gpus(c, 0));
}

static void test_a_plan_that_is_booked_replaces_the_holds_of_its_ranks(void)
{
	c = cluster_make("spine:1 leaf:1 node:4 gpu:8", "");
	put("mine", 0, "node-4", 0xff);
	put("mine", 1, "node-1", 0xff);
	put("mine", 2, "node-2", 0x01);
	place(c, &(struct wanted){.name = "mine", .members = 2, .gpus = 8});
	TEST_ASSERT_EQUAL_STRING("node-1 node-2", spots(c));
	TEST_ASSERT_EQUAL_UINT32(1, stats(c).holds); /* that of rank 2, on a GPU of rank 1 */
	TEST_ASSERT_EQUAL_HEX32(0xff, free_gpus(c, 3));
	TEST_ASSERT_EQUAL_INT32(FROND_STALE, take("mine", 2));
	release(c, "mine", 2);
	TEST_ASSERT_EQUAL_HEX32(0xfe, free_gpus(c, 1));
	/* Somebody else's plan from before the hold is stale. */
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, plan(c, &(struct wanted){.name = "other", .members = 1, .gpus = 8}));
	put("mine", 5, c->nodes[c->places[0].slot].name, 0x80);
	remember(c);
	TEST_ASSERT_EQUAL_INT32(FROND_STALE, abi->reserve(c->engine, &c->request, c->members, c->places));
	unchanged(c);
}

static void test_a_hold_ends_with_its_deadline_its_node_or_when_it_is_dropped(void)
{
	c = cluster_make("spine:1 leaf:1 node:3 gpu:8", "");
	struct frond_hold list[] = {hold_of("a", 0, 0, 1), hold_of("a", 1, 0, 2), hold_of("b", 0, 1, 1),
				    hold_of("b", 1, 2, 1)};
	list[0].deadline_ms = 100;
	list[2].deadline_ms = FROND_DEADLINE_MAX;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, put_list(c, list, 4));
	tick(100);
	TEST_ASSERT_EQUAL_UINT32(4, stats(c).holds);
	tick(101);
	TEST_ASSERT_EQUAL_UINT32(3, stats(c).holds);
	TEST_ASSERT_EQUAL_UINT64(1, stats(c).holds_expired);
	TEST_ASSERT_EQUAL_HEX32(0xfd, free_gpus(c, 0));
	TEST_ASSERT_EQUAL_UINT32(0, drop(c, "a", 0));
	TEST_ASSERT_EQUAL_UINT32(1, drop(c, "a", 1));
	node_remove(c, 2);
	TEST_ASSERT_EQUAL_UINT32(1, stats(c).holds);
	TEST_ASSERT_EQUAL_UINT32(1, drop(c, "b", FROND_NONE));
	TEST_ASSERT_EQUAL_UINT32(0, stats(c).holds);
	TEST_ASSERT_EQUAL_UINT32(16, stats(c).gpus_free);
}

/* A device plugin that restarts lets its node have no GPUs for a moment. */
static void test_a_hold_outlives_a_node_that_has_fewer_gpus_for_a_while(void)
{
	c = cluster_make("spine:1 leaf:1 node:1 gpu:8", "");
	put("mine", 0, "node-1", 0xc0);
	c->nodes[0].gpus = 4;
	node_refresh(c, 0);
	TEST_ASSERT_EQUAL_UINT32(0, stats(c).gpus_kept);
	TEST_ASSERT_EQUAL_INT32(FROND_STALE, take("mine", 0));
	c->nodes[0].gpus = 8;
	node_refresh(c, 0);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, take("mine", 0));
}

static void test_the_deadline_of_a_hold_becomes_that_of_its_gang(void)
{
	c = cluster_make("spine:1 leaf:1 node:2 gpu:8", "");
	place(c, &(struct wanted){.name = "mine", .members = 1, .gpus = 8, .deadline_ms = 50});
	struct frond_key pod = key_of("mine", 1), gang = key_of("mine", UINT64_MAX), expired[2];
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->confirm(c->engine, &pod));
	struct frond_hold hold = hold_of("mine", 1, 1, 0xff);
	hold.deadline_ms = 1000;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, put_list(c, &hold, 1));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, take("mine", 1));
	tick(500); /* long after the first deadline */
	uint32_t count = 0;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->tick(c->engine, 1001, expired, 2, &count));
	TEST_ASSERT_EQUAL_UINT32(1, count);
	TEST_ASSERT_EQUAL_MEMORY(&gang, expired, sizeof gang);
}

static void test_the_list_is_sorted_and_says_how_much_room_it_needs(void)
{
	struct frond_hold list[40], out[48];
	uint32_t count = 0;
	c = cluster_make("spine:1 leaf:1 node:8 gpu:8", "");
	for (uint32_t i = 0; i < 40; i++)
		list[i] = (struct frond_hold){.gang = {3 - i % 3, i % 2 + 1},
					      .rank = 100 - i,
					      .slot = i / 8,
					      .gpu_mask = 1u << i % 8,
					      .deadline_ms = i};
	TEST_ASSERT_EQUAL_INT32(FROND_OK, put_list(c, list, 40));
	TEST_ASSERT_EQUAL_INT32(FROND_SMALL, abi->hold_list(c->engine, NULL, out, 39, &count));
	TEST_ASSERT_EQUAL_UINT32(40, count);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->hold_list(c->engine, NULL, out, 40, &count));
	for (uint32_t i = 0; i < 40; i++) {
		const struct frond_hold *from = &list[100 - out[i].rank];
		TEST_ASSERT_EQUAL_MEMORY(from, &out[i], sizeof *from);
		TEST_ASSERT_TRUE(i == 0 || key_before(out[i - 1].gang, out[i].gang) ||
				 (key_equal(out[i - 1].gang, out[i].gang) && out[i - 1].rank < out[i].rank));
	}
	struct frond_key gang = {2, 1};
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->hold_list(c->engine, &gang, out, 48, &count));
	TEST_ASSERT_EQUAL_UINT32(6, count);
	gang.lo = 9;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->hold_list(c->engine, &gang, out, 0, &count));
	TEST_ASSERT_EQUAL_UINT32(0, count);
}

static void refused(int32_t expected, const struct frond_hold *list, uint32_t count, const char *sentence)
{
	remember(c);
	TEST_ASSERT_EQUAL_INT32(expected, put_list(c, list, count));
	TEST_ASSERT_EQUAL_STRING(sentence, c->text);
	unchanged(c);
}

static void test_a_list_with_one_bad_hold_adds_none_and_names_the_first(void)
{
	c = cluster_make("spine:1 leaf:1 node:3 gpu:8", "");
	put("a", 0, "node-1", 0x03);
	struct frond_hold list[] = {hold_of("b", 0, 1, 0x01), hold_of("b", 1, 1, 0x02), hold_of("b", 2, 2, 0x01)};
	const struct frond_hold good = list[1];
	list[1].gpu_mask = 0x01;
	refused(FROND_BAD, list, 3,
		"holds[1].gpuMask: GPUs 1 of node node-2 are kept for rank 0 of the same gang already");
	list[1] = hold_of("b", 1, 0, 0x06);
	refused(FROND_BAD, list, 3,
		"holds[1].gpuMask: GPUs 2 of node node-1 are kept for rank 0 of another gang already");
	list[1] = hold_of("a", 0, 1, 0x02);
	refused(FROND_BAD, list, 3, "holds[1].rank: rank 0 of its gang has a hold already");
	list[1] = hold_of("b", 0, 1, 0x02);
	refused(FROND_BAD, list, 3, "holds[1].rank: rank 0 of its gang has a hold already");
	list[2].slot = 9; /* comes later, and is not what is told */
	refused(FROND_BAD, list, 3, "holds[1].rank: rank 0 of its gang has a hold already");
	list[1] = good;
	refused(FROND_BAD, list, 3, "holds[2].slot: must be a node that is there, got 9");
	list[2].slot = 3; /* room for a node, and none there */
	refused(FROND_BAD, list, 3, "holds[2].slot: must be a node that is there, got 3");
	list[2].slot = 2;
	list[2].gpu_mask = 0;
	refused(FROND_BAD, list, 3, "holds[2].gpuMask: must be some GPUs of node node-3, which has 8, got mask 0");
	list[2].gpu_mask = 0x180;
	refused(FROND_BAD, list, 3, "holds[2].gpuMask: must be some GPUs of node node-3, which has 8, got mask 180");
	list[2].gpu_mask = 1;
	list[2].rank = FROND_RANK_MAX + 1;
	refused(FROND_BAD, list, 3, "holds[2].rank: must be 0 to 1000000, got 1000001");
	list[2].rank = FROND_RANK_MAX;
	list[2].deadline_ms = FROND_DEADLINE_MAX + 1;
	refused(FROND_BAD, list, 3, "holds[2].deadlineMs: must be 0 to 4398046511103, got 4398046511104");
	list[2].deadline_ms = -1;
	refused(FROND_BAD, list, 3, "holds[2].deadlineMs: must be 0 to 4398046511103, got -1");
	list[2].deadline_ms = 0;
	list[2].reserved = 1;
	refused(FROND_BAD, list, 3, "holds[2].reserved: must be 0");
	list[2].reserved = 0;
	list[2].gang = (struct frond_key){0, 0};
	refused(FROND_BAD, list, 3, "holds[2].gang: must not be zero");
	list[2].gang = list[0].gang;
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, put_list(c, list, 3), c->text);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, put_list(c, list, 0));
	TEST_ASSERT_EQUAL_UINT32(4, stats(c).holds);
}

static void test_there_are_as_many_holds_as_the_limits_say(void)
{
	static struct frond_hold list[CLUSTER_HOLDS + 1];
	char text[128];
	c = cluster_make("spine:1 leaf:1 node:17 gpu:8", "");
	for (uint32_t i = 0; i <= CLUSTER_HOLDS; i++)
		list[i] = hold_of("a", i, i / 8, 1u << i % 8);
	snprintf(text, sizeof text, "holds: the engine has room for %d, there are 0, got %d more", CLUSTER_HOLDS,
		 CLUSTER_HOLDS + 1);
	refused(FROND_LIMIT, list, CLUSTER_HOLDS + 1, text);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, put_list(c, list, CLUSTER_HOLDS));
	snprintf(text, sizeof text, "holds: the engine has room for %d, there are %d, got 1 more", CLUSTER_HOLDS,
		 CLUSTER_HOLDS);
	refused(FROND_LIMIT, list + CLUSTER_HOLDS, 1, text);
	TEST_ASSERT_EQUAL_UINT32(CLUSTER_HOLDS, drop(c, "a", FROND_NONE));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, put_list(c, list + CLUSTER_HOLDS, 1));
}

static void test_a_what_if_takes_holds_over_and_gives_them_back(void)
{
	uint32_t count;
	c = cluster_make("spine:1 leaf:1 node:4 gpu:8", "");
	put("mine", 0, "node-1", 0x0f);
	put("mine", 1, "node-1", 0xf0);
	put("other", 0, "node-2", 0x0f);
	struct frond_key gang = key_of("mine", UINT64_MAX);
	remember(c);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->what_if(c->engine));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, take("mine", 0));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->what_if(c->engine));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, take("mine", 1));
	place(c, &(struct wanted){.name = "other", .members = 3, .gpus = 8});
	TEST_ASSERT_EQUAL_UINT32(0, stats(c).holds);
	struct frond_hold hold = hold_of("third", 0, 1, 0x80);
	TEST_ASSERT_EQUAL_INT32(FROND_BAD, put_list(c, &hold, 1));
	TEST_ASSERT_EQUAL_STRING("holds cannot be put inside a what-if", c->text);
	TEST_ASSERT_EQUAL_INT32(FROND_BAD, abi->hold_drop(c->engine, &gang, FROND_NONE, &count));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->undo(c->engine));
	check(c);
	TEST_ASSERT_EQUAL_UINT32(2, stats(c).holds);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->undo(c->engine));
	unchanged(c);
}

/* ---- the same as a pod that nobody may touch ----------------------------------------------------------------------- */

struct asked { /* all that came out of one question */
	int32_t code;
	struct frond_plan plan;
	struct frond_place places[CLUSTER_MEMBERS];
	uint16_t position[CLUSTER_NODES];
	struct frond_victims victims;
	struct frond_key pods[CLUSTER_PODS];
	struct frond_window window;
	struct frond_moves moves;
	struct frond_move move[MOVES];
	char text[FROND_TEXT_MAX + 1];
};

static void finish(struct cluster *on, struct asked *out)
{
	snprintf(out->text, sizeof out->text, "%.*s", (int)on->len, on->text);
	out->plan.generation = out->victims.plan.generation = out->window.plan.generation = 0;
	check(on);
}

static void ask_plan(struct cluster *on, const struct wanted *w, struct asked *out)
{
	memset(out, 0, sizeof *out);
	plan(on, w);
	out->plan = on->plan;
	if (on->plan.outcome == FROND_PLACED)
		memcpy(out->places, on->places, w->members * sizeof *out->places);
	finish(on, out);
}

static void ask_order(struct cluster *on, const struct wanted *w, struct asked *out)
{
	char in[CLUSTER_IN];
	struct frond_pair pairs[16];
	uint32_t in_len = request_make(on, w, in, pairs);
	memset(out, 0, sizeof *out);
	out->code = abi->order(on->engine, &on->request, on->members, pairs, in, in_len, NULL, 0, NULL, NULL, NULL,
			       &out->plan, out->position, on->text, CLUSTER_TEXT - 1, &on->len);
	finish(on, out);
}

static void ask_victims(struct cluster *on, const struct wanted *w, struct asked *out)
{
	char in[CLUSTER_IN];
	struct frond_pair pairs[16];
	uint32_t in_len = request_make(on, w, in, pairs);
	memset(out, 0, sizeof *out);
	out->code = abi->victims(on->engine, &on->request, on->members, pairs, in, in_len, NULL, 0, &out->victims,
				 out->places, out->pods, CLUSTER_PODS, on->text, CLUSTER_TEXT - 1, &on->len);
	if (out->victims.outcome != FROND_PLACED)
		memset(out->places, 0, sizeof out->places);
	finish(on, out);
}

static struct frond_end ends[CLUSTER_PODS]; /* of pods that run */
static uint32_t end_count;

static void ask_window(struct cluster *on, const struct wanted *w, struct asked *out)
{
	char in[CLUSTER_IN];
	struct frond_pair pairs[16];
	uint32_t in_len = request_make(on, w, in, pairs);
	memset(out, 0, sizeof *out);
	out->code = abi->window(on->engine, &on->request, on->members, pairs, in, in_len, NULL, 0, ends, end_count,
				NULL, &out->window, out->places, on->text, CLUSTER_TEXT - 1, &on->len);
	if (out->window.outcome != FROND_PLACED)
		memset(out->places, 0, sizeof out->places);
	finish(on, out);
}

static void ask_defrag(struct cluster *on, const struct wanted *w, struct asked *out)
{
	char in[CLUSTER_IN];
	struct frond_pair pairs[16];
	uint32_t in_len = request_make(on, w, in, pairs);
	memset(out, 0, sizeof *out);
	out->code = abi->defrag(on->engine, &on->request, on->members, pairs, in, in_len, NULL, 0, &out->moves,
				out->move, MOVES, on->text, CLUSTER_TEXT - 1, &on->len);
	finish(on, out);
}

static void ask_recover(struct cluster *on, const struct wanted *w, struct asked *out)
{
	struct frond_key gang = key_of(w->name, UINT64_MAX);
	memset(out, 0, sizeof *out);
	out->code = abi->recover(on->engine, &gang, NULL, 0, &out->moves, out->move, MOVES, on->text, CLUSTER_TEXT - 1,
				 &on->len);
	finish(on, out);
}

static struct asked mine, theirs;

/* Both engines are asked the same, and say the same. */
static void compare(void (*question)(struct cluster *, const struct wanted *, struct asked *), const struct wanted *w)
{
	remember(c);
	question(c, w, &mine);
	question(plain, w, &theirs);
	TEST_ASSERT_EQUAL_INT32(theirs.code, mine.code);
	TEST_ASSERT_EQUAL_STRING(theirs.text, mine.text);
	TEST_ASSERT_EQUAL_MEMORY(&theirs.plan, &mine.plan, sizeof mine.plan);
	TEST_ASSERT_EQUAL_MEMORY(theirs.places, mine.places, sizeof mine.places);
	TEST_ASSERT_EQUAL_MEMORY(theirs.position, mine.position, sizeof mine.position);
	TEST_ASSERT_EQUAL_MEMORY(&theirs.victims, &mine.victims, sizeof mine.victims);
	TEST_ASSERT_EQUAL_MEMORY(theirs.pods, mine.pods, sizeof mine.pods);
	TEST_ASSERT_EQUAL_MEMORY(&theirs.window, &mine.window, sizeof mine.window);
	TEST_ASSERT_EQUAL_MEMORY(&theirs.moves, &mine.moves, sizeof mine.moves);
	TEST_ASSERT_EQUAL_MEMORY(theirs.move, mine.move, sizeof mine.move);
	unchanged(c);
}

struct bound_gang {
	char name[8], wishes[128];
	bool placed;
	struct wanted want;
	uint32_t slots[CLUSTER_MEMBERS];
};

static struct bound_gang gangs[GANGS];
static uint32_t kept[CLUSTER_NODES]; /* by slot: all holds */

static void draw_wishes(char *out, size_t cap)
{
	static const char *const modes[] = {"Required", "Preferred", "Ignore"};
	static const char *const strategies[] = {"balanced", "consolidated", "distributed"};
	static const char *const recoveries[] = {"Replace", "MoveGang", "MoveGang", "Wait"};
	snprintf(out, cap, "topology-mode=%s placement-strategy=%s recovery=%s", modes[below(3)], strategies[below(3)],
		 recoveries[below(4)]);
}

static void gang_tell(struct cluster *on, const struct bound_gang *gang)
{
	char in[CLUSTER_IN];
	struct frond_pair pairs[16];
	uint32_t in_len = request_make(on, &gang->want, in, pairs);
	int32_t code = abi->gang_put(on->engine, &on->request, pairs, in, in_len, on->text, CLUSTER_TEXT - 1, &on->len);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, code);
}

static void gang_bind(struct cluster *on, const struct bound_gang *gang)
{
	place(on, &gang->want);
	for (uint32_t i = 0; i < gang->want.members; i++) {
		struct frond_key pod = key_of(gang->name, i + 1);
		TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->confirm(on->engine, &pod));
	}
	gang_tell(on, gang);
	check(on);
}

static void gangs_enter(uint32_t gpus)
{
	end_count = 0;
	for (uint32_t i = 0; i < GANGS; i++) {
		struct bound_gang *gang = &gangs[i];
		memset(gang, 0, sizeof *gang);
		snprintf(gang->name, sizeof gang->name, "g%u", (unsigned)i);
		draw_wishes(gang->wishes, sizeof gang->wishes);
		gang->want = (struct wanted){.name = gang->name,
					     .members = 1 + below(4),
					     .gpus = percent(40) ? gpus : 1 + below(gpus),
					     .wishes = gang->wishes,
					     .priority = (int32_t)below(4)};
		gang->want.min_member = 1 + below(gang->want.members);
		gang->placed = plan(c, &gang->want) == FROND_PLACED;
		for (uint32_t m = 0; gang->placed && m < gang->want.members; m++)
			gang->slots[m] = c->places[m].slot;
		if (!gang->placed)
			continue;
		gang_bind(c, gang);
		gang_bind(plain, gang);
		for (uint32_t m = 0, known = percent(60); known && m < gang->want.members; m++)
			ends[end_count++] = (struct frond_end){key_of(gang->name, m + 1), 1000 * (int64_t)(i / 2)};
	}
}

/* What is wrong with nodes today, and who else is there. */
static void both_wear(void)
{
	for (uint32_t slot = 0; slot < c->count; slot++) {
		uint32_t flags = percent(8) ? 1 + below(3) : 0,
			 sick = percent(8) ? below(1u << c->nodes[slot].gpus) : 0;
		uint32_t counted = percent(5) ? 1 + below(2) : 0,
			 other = percent(15) ? free_gpus(c, slot) & below(256) : 0;
		struct cluster *both[] = {c, plain};
		for (uint32_t i = 0; i < 2; i++) {
			if (other != 0)
				occupy(both[i], c->nodes[slot].name, other);
			if (counted > 0)
				occupy_by_count(both[i], c->nodes[slot].name, counted);
			both[i]->nodes[slot].flags = flags;
			both[i]->nodes[slot].unhealthy = sick;
			node_refresh(both[i], slot);
		}
	}
}

/* Holds of others on GPUs that nobody has; in the other engine a pod sits there. */
static void others_keep(void)
{
	for (uint32_t slot = 0; slot < c->count; slot++) {
		uint32_t idle = ((1u << c->nodes[slot].gpus) - 1) & ~(uint32_t)c->engine->core.nodes[slot].held;
		uint32_t mask = percent(40) ? idle & below(256) : 0;
		if (mask == 0)
			continue;
		struct frond_hold hold = hold_of(percent(50) ? "other" : "third", slot, slot, mask);
		TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, put_list(c, &hold, 1), c->text);
		occupy(plain, c->nodes[slot].name, mask);
		kept[slot] |= mask;
	}
}

/* Holds of the gang that asks, wherever there is no other: on free GPUs, on its own and on those of others. */
static void own_keep(const char *name)
{
	for (uint32_t slot = 0; slot < c->count; slot++) {
		uint32_t mask = percent(40) ? below(1u << c->nodes[slot].gpus) & ~kept[slot] : 0;
		if (mask == 0)
			continue;
		struct frond_hold hold = hold_of(name, slot, slot, mask);
		TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, put_list(c, &hold, 1), c->text);
		seen.own++;
	}
}

static void ask_all(const struct wanted *w)
{
	own_keep(w->name);
	compare(ask_plan, w);
	seen.placed += mine.plan.outcome == FROND_PLACED;
	seen.waiting += mine.plan.outcome == FROND_WAITS;
	if (w->members == 1 && w->pinned == NULL) {
		compare(ask_order, w);
		seen.ordered++;
	}
	compare(ask_victims, w);
	seen.victims += mine.victims.count > 0;
	compare(ask_window, w);
	seen.windows += mine.window.start_ms > 0;
	compare(ask_defrag, w);
	seen.moves += mine.moves.count > 0;
	drop(c, w->name, FROND_NONE);
}

/* A gang that is not there yet, or one of those that are, with further members. */
static void ask_somebody(uint32_t gpus)
{
	static uint32_t pinned[CLUSTER_MEMBERS];
	char wishes[128];
	draw_wishes(wishes, sizeof wishes);
	struct wanted w = {.name = "asker",
			   .members = 1 + below(5),
			   .gpus = percent(50) ? gpus : 1 + below(gpus),
			   .wishes = wishes,
			   .claim = percent(25)
					    ? "{\"devices\": {\"policy\": \"contiguous\"}, \"topology\": {\"mode\": "
					      "\"Required\", \"minBandwidthGBps\": 100}}"
					    : NULL,
			   .age_ms = percent(20) ? 10000000 : 0,
			   .priority = (int32_t)below(5)};
	const struct bound_gang *gang = &gangs[below(GANGS)];
	if (gang->placed && percent(30)) {
		w.name = gang->name;
		w.gpus = gang->want.gpus;
		w.members = gang->want.members + 1 + below(2);
		for (uint32_t i = 0; i < w.members; i++)
			pinned[i] = i < gang->want.members ? gang->slots[i] : FROND_NONE;
		w.pinned = pinned;
	}
	ask_all(&w);
}

static void both_make(uint32_t *gpus)
{
	char line[64];
	*gpus = percent(50) ? 4 : 8;
	snprintf(line, sizeof line, "spine:%u leaf:%u node:%u gpu:%u", (unsigned)(1 + below(3)),
		 (unsigned)(1 + below(3)), (unsigned)(1 + below(4)), (unsigned)*gpus);
	cluster_free(c);
	cluster_free(plain);
	c = cluster_make(line, "");
	plain = cluster_make(line, "");
	memset(kept, 0, sizeof kept);
}

static void one_cluster(void)
{
	uint32_t gpus;
	both_make(&gpus);
	gangs_enter(gpus);
	both_wear();
	others_keep();
	for (uint32_t i = 0; i < 3; i++)
		ask_somebody(gpus);
	for (uint32_t i = 0; i < GANGS; i++) {
		if (!gangs[i].placed)
			continue;
		own_keep(gangs[i].name);
		compare(ask_recover, &gangs[i].want);
		seen.repairs += mine.moves.count > 0;
		drop(c, gangs[i].name, FROND_NONE);
	}
}

/* Holds on GPUs that somebody has: who may be evicted or moved brings nothing there, as if they were unhealthy. */
static void one_cluster_in_use(void)
{
	uint32_t gpus;
	char wishes[128];
	both_make(&gpus);
	gangs_enter(gpus);
	for (uint32_t slot = 0; slot < c->count; slot++) {
		uint32_t mask = percent(50) ? c->engine->core.nodes[slot].held & below(256) : 0;
		if (mask == 0)
			continue;
		struct frond_hold hold = hold_of("other", slot, slot, mask);
		TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, put_list(c, &hold, 1), c->text);
		plain->nodes[slot].unhealthy = mask;
		node_refresh(plain, slot);
		seen.clashing++;
	}
	draw_wishes(wishes, sizeof wishes);
	struct wanted w = {.name = "asker",
			   .members = 1 + below(4),
			   .gpus = percent(50) ? gpus : 1 + below(gpus),
			   .wishes = wishes,
			   .priority = 1 + (int32_t)below(4)};
	remember(c);
	ask_victims(c, &w, &mine);
	ask_victims(plain, &w, &theirs);
	TEST_ASSERT_EQUAL_UINT32(theirs.victims.outcome, mine.victims.outcome);
	TEST_ASSERT_EQUAL_UINT32(theirs.victims.count, mine.victims.count);
	TEST_ASSERT_EQUAL_MEMORY(theirs.pods, mine.pods, sizeof mine.pods);
	for (uint32_t i = 0; mine.victims.outcome == FROND_PLACED && i < w.members; i++)
		TEST_ASSERT_EQUAL_HEX32(0, mine.places[i].gpu_mask & plain->nodes[mine.places[i].slot].unhealthy);
	ask_window(c, &w, &mine);
	ask_window(plain, &w, &theirs);
	TEST_ASSERT_EQUAL_UINT32(theirs.window.outcome, mine.window.outcome);
	TEST_ASSERT_EQUAL_INT64(theirs.window.start_ms, mine.window.start_ms);
	ask_defrag(c, &w, &mine);
	ask_defrag(plain, &w, &theirs);
	TEST_ASSERT_EQUAL_UINT32(theirs.moves.outcome, mine.moves.outcome);
	TEST_ASSERT_EQUAL_UINT32(theirs.moves.count, mine.moves.count);
	TEST_ASSERT_EQUAL_UINT32(theirs.moves.lower_bound, mine.moves.lower_bound);
	unchanged(c);
}

static void many(void (*one)(void))
{
	const char *steps_text = getenv("FROND_HOLD_STEPS"), *seed_text = getenv("FROND_SEED");
	uint32_t steps = steps_text == NULL ? STEPS_USUAL : (uint32_t)strtoul(steps_text, NULL, 10);
	uint64_t seed = seed_text == NULL ? 20260101 : strtoull(seed_text, NULL, 0);
	printf("seed %llu, %u clusters\n", (unsigned long long)seed, (unsigned)steps);
	for (uint32_t i = 0; i < steps; i++) {
		dice = seed + i;
		snprintf(where, sizeof where, "FROND_SEED=%llu FROND_HOLD_STEPS=1", (unsigned long long)(seed + i));
		one();
	}
	bool enough = steps < STEPS_USUAL;
	if (one == one_cluster)
		enough |= seen.placed > 500 && seen.waiting > 500 && seen.victims > 100 && seen.windows > 50 &&
			  seen.moves > 30 && seen.repairs > 50 && seen.ordered > 300 && seen.own > 1000;
	else
		enough |= seen.clashing > 1000;
	printf("%u placed, %u waiting, %u with victims, %u with windows, %u with moves, %u repairs, %u orders, %u own "
	       "holds, %u on GPUs "
	       "in use\n",
	       (unsigned)seen.placed, (unsigned)seen.waiting, (unsigned)seen.victims, (unsigned)seen.windows,
	       (unsigned)seen.moves, (unsigned)seen.repairs, (unsigned)seen.ordered, (unsigned)seen.own,
	       (unsigned)seen.clashing);
	TEST_ASSERT_TRUE(enough);
}

static void test_with_holds_every_decision_is_as_with_pods_that_nobody_may_touch(void)
{
	many(one_cluster);
}

static void test_nobody_is_evicted_or_moved_for_gpus_that_are_kept_for_another(void)
{
	many(one_cluster_in_use);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_others_do_not_get_what_is_kept_and_the_own_gang_does);
	RUN_TEST(test_a_pod_takes_its_hold_over_as_a_reservation);
	RUN_TEST(test_a_hold_waits_until_its_gpus_are_to_be_had);
	RUN_TEST(test_a_bound_pod_takes_over_the_hold_of_its_rank_on_its_node_and_no_other);
	RUN_TEST(test_a_plan_that_is_booked_replaces_the_holds_of_its_ranks);
	RUN_TEST(test_a_hold_ends_with_its_deadline_its_node_or_when_it_is_dropped);
	RUN_TEST(test_a_hold_outlives_a_node_that_has_fewer_gpus_for_a_while);
	RUN_TEST(test_the_deadline_of_a_hold_becomes_that_of_its_gang);
	RUN_TEST(test_the_list_is_sorted_and_says_how_much_room_it_needs);
	RUN_TEST(test_a_list_with_one_bad_hold_adds_none_and_names_the_first);
	RUN_TEST(test_there_are_as_many_holds_as_the_limits_say);
	RUN_TEST(test_a_what_if_takes_holds_over_and_gives_them_back);
	RUN_TEST(test_with_holds_every_decision_is_as_with_pods_that_nobody_may_touch);
	RUN_TEST(test_nobody_is_evicted_or_moved_for_gpus_that_are_kept_for_another);
	return UNITY_END();
}
