/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan does not depend on how much memory the engine was given: the same cluster in an engine that has room for every
 * row of place_table.c, and in one for many more nodes, whose rows for a gang of thousands do not all fit and are computed
 * again and again. Both must say the same, down to the last GPU and the number of candidates.
 *
 * FROND_SEED: the seed.
 */
#include "cluster.h"
#include "dice.h"

enum {
	SPINES = 8,
	LEAVES = 14, /* of a spine */
	EACH = 6,
	GPUS = 8,
	NODES = SPINES * LEAVES * EACH,
	ROOMY = 20000, /* above 16,384 nodes the table of a small engine would take too much memory */
	MEMBERS = NODES * GPUS,
	ROUNDS = 16
};

struct side {
	struct cluster *cluster;
	struct frond_plan plan;
	uint64_t compared;
	struct frond_place places[MEMBERS];
};

static struct side small, large;
static struct frond_member members[MEMBERS];
static uint32_t pinned[MEMBERS];

void setUp(void)
{
}

void tearDown(void)
{
	cluster_free(small.cluster);
	cluster_free(large.cluster);
	small.cluster = large.cluster = NULL;
}

static void open_side(struct side *side, uint32_t nodes)
{
	side->cluster = calloc(1, sizeof *side->cluster);
	TEST_ASSERT_NOT_NULL(side->cluster);
	engine_make(side->cluster, nodes, MEMBERS + NODES, "", "spine:8 leaf:14 node:6 gpu:8");
}

static void put(struct side *side, uint32_t slot, uint32_t flags, uint32_t used)
{
	struct frond_key pod = {1, slot + 1};
	char name[32];
	snprintf(name, sizeof name, "node-%u", (unsigned)slot + 1);
	abi->release(side->cluster->engine, &pod);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, node_try(side->cluster, slot, name, GPUS, 0, flags, 0, NULL, NULL));
	if (used > 0)
		TEST_ASSERT_EQUAL_INT32(FROND_OK,
					pod_try(side->cluster, pod, slot, used, 0, "", (struct frond_key){0, 0}));
}

static void ask(struct side *side, uint32_t count, uint32_t gpus, const char *wishes)
{
	struct cluster *c = side->cluster;
	char in[256];
	struct frond_pair pairs[8];
	struct frond_request request = {.gang = {5, 5},
					.members = count,
					.min_member = 1,
					.gpus_desired = (uint64_t)count * gpus,
					.only_slot = FROND_NONE};
	uint32_t in_len = wishes_read(wishes, in, 0, pairs, &request.annotations);
	uint64_t before = stats(c).steps;
	for (uint32_t i = 0; i < count; i++)
		members[i] =
			(struct frond_member){.pod = {5, i + 1}, .rank = i, .gpus = gpus, .pinned_slot = pinned[i]};
	int32_t code = abi->plan(c->engine, &request, members, pairs, in, in_len, NULL, 0, &side->plan, side->places,
				 c->text, CLUSTER_TEXT - 1, &c->len);
	c->text[c->len] = 0;
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, code, c->text);
	side->compared = stats(c).steps - before;
	side->plan.generation = 0;
}

static void one_round(uint32_t round)
{
	static const char *const wishes[] = {"topology-mode=Ignore",
					     "topology-mode=Ignore placement-strategy=consolidated",
					     "topology-mode=Preferred", "placement-strategy=distributed"};
	uint32_t closed = 5 + below(50), room = 0, gpus = percent(70) ? 1 : 2 + below(3);
	for (uint32_t slot = 0; slot < NODES; slot++) {
		uint32_t flags = percent(closed) ? FROND_NODE_CORDONED : 0, used = percent(40) ? below(GPUS) : 0;
		put(&small, slot, flags, used);
		put(&large, slot, flags, used);
		room += flags == 0 ? (GPUS - used) / gpus : 0;
	}
	check(small.cluster);
	check(large.cluster);
	bool shares = round % 4 == 1; /* fewest nodes: a row costs more */
	uint32_t count = 1 + below(shares && room > 500 ? 500 : room), spread = percent(30) ? 1 + below(4) : 0;
	for (uint32_t i = 0; i < count; i++)
		pinned[i] = i < spread ? below(NODES) : FROND_NONE;
	ask(&small, count, gpus, wishes[round % 4]);
	ask(&large, count, gpus, wishes[round % 4]);
	TEST_ASSERT_EQUAL_STRING(small.cluster->text, large.cluster->text);
	TEST_ASSERT_EQUAL_MEMORY(&small.plan, &large.plan, sizeof small.plan);
	TEST_ASSERT_EQUAL_UINT64(small.compared, large.compared);
	if (small.plan.outcome == FROND_PLACED)
		TEST_ASSERT_EQUAL_MEMORY(small.places, large.places, count * sizeof *small.places);
}

static void test_a_plan_is_the_same_whatever_memory_the_engine_has(void)
{
	const char *text = getenv("FROND_SEED");
	dice = text == NULL ? 11 : strtoull(text, NULL, 0);
	printf("seed %llu\n", (unsigned long long)dice);
	open_side(&small, NODES);
	open_side(&large, ROOMY);
	for (uint32_t round = 0; round < ROUNDS; round++)
		one_round(round);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_a_plan_is_the_same_whatever_memory_the_engine_has);
	return UNITY_END();
}
