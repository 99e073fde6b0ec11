/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members of several pod templates, of which exceptions admit different numbers on a node: against every assignment of
 * members to nodes on small clusters, which shares no code with the planner.
 */
#include "cluster.h"
#include "dice.h"

enum { NODES = 4, GANG = 4, TEMPLATES = 3, STEPS = 4000 };

static struct cluster *c;
static char where[64]; /* how to see a failure again */

void setUp(void)
{
}

void tearDown(void)
{
	if (where[0] != 0 && Unity.CurrentTestFailed)
		printf("\nto see it again: %s\n", where);
	cluster_free(c);
	c = NULL;
}

struct gang {
	uint32_t members, sizes[GANG], templates[GANG];
	struct bound bounds[NODES][TEMPLATES]; /* UINT16_MAX: no exception */
	struct frond_room room[NODES * TEMPLATES];
	uint32_t room_count;
};

static uint32_t ask(const struct gang *gang, const char *wishes)
{
	char in[CLUSTER_IN];
	struct frond_pair pairs[16];
	const struct wanted want = {.name = "a", .members = gang->members, .sizes = gang->sizes, .wishes = wishes};
	uint32_t in_len = request_make(c, &want, in, pairs);
	for (uint32_t i = 0; i < gang->members; i++)
		c->members[i].pod_template = gang->templates[i];
	int32_t code = abi->plan(c->engine, &c->request, c->members, pairs, in, in_len, gang->room, gang->room_count,
				 &c->plan, c->places, c->text, CLUSTER_TEXT - 1, &c->len);
	c->text[c->len] = 0;
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, code, c->text);
	check(c);
	return c->plan.outcome;
}

/* ---- a launcher and its workers --------------------------------------------------------------------------------------- */

static void test_a_launcher_does_not_inherit_what_binds_the_workers(void)
{
	c = cluster_make("spine:1 leaf:1 node:3 gpu:8", "");
	/* Every node has CPU for one worker of 4 GPUs; of the launcher, which has as many GPUs, it takes any number. */
	struct gang gang = {.members = 2, .sizes = {4, 4}, .templates = {0, 1}, .room_count = 3};
	for (uint32_t slot = 0; slot < 3; slot++)
		gang.room[slot] = (struct frond_room){.slot = slot, .pod_template = 1, .today = 1, .ever = 1};
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, ask(&gang, ""), c->text);
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_SINGLE_NODE, c->plan.rule);
	TEST_ASSERT_EQUAL_UINT32(1, c->plan.nodes);
}

static void test_a_node_that_is_closed_to_workers_takes_the_launcher(void)
{
	c = cluster_make("spine:1 leaf:1 node:3 gpu:8", "");
	struct gang gang = {.members = 3, .sizes = {2, 8, 8}, .templates = {0, 1, 1}, .room_count = 1};
	gang.room[0] = (struct frond_room){.slot = 0, .pod_template = 1, .today = 0, .ever = UINT16_MAX};
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, ask(&gang, ""), c->text);
	TEST_ASSERT_EQUAL_UINT32(0, c->places[0].slot);
}

/* ---- every assignment ------------------------------------------------------------------------------------------------- */

/* The fewest nodes of an assignment that keeps to GPUs and exceptions; 0: there is none. */
static uint32_t fewest(const struct gang *gang, const uint32_t *gpus, bool today)
{
	uint32_t best = 0, all = 1;
	for (uint32_t i = 0; i < gang->members; i++)
		all *= NODES;
	for (uint32_t choice = 0; choice < all; choice++) {
		uint32_t used[NODES] = {0}, count[NODES][TEMPLATES] = {{0}}, nodes = 0, left = choice;
		bool good = true;
		for (uint32_t i = 0; i < gang->members; i++, left /= NODES) {
			used[left % NODES] += gang->sizes[i];
			count[left % NODES][gang->templates[i]]++;
		}
		for (uint32_t n = 0; n < NODES; n++) {
			good = good && used[n] <= gpus[n];
			nodes += used[n] > 0;
			for (uint32_t t = 0; t < TEMPLATES; t++) {
				const struct bound *bound = &gang->bounds[n][t];
				good = good && count[n][t] <= bound->ever && (!today || count[n][t] <= bound->today);
			}
		}
		if (good && (best == 0 || nodes < best))
			best = nodes;
	}
	return best;
}

static void one_case(void)
{
	struct gang gang = {.members = 2 + below(GANG - 1)};
	uint32_t all[NODES], free[NODES];
	c = cluster_make("spine:1 leaf:1 node:4 gpu:4", "");
	for (uint32_t n = 0; n < NODES; n++) {
		uint32_t used = percent(50) ? 0 : below(4);
		all[n] = 4;
		free[n] = 4 - used;
		if (used > 0)
			occupy(c, c->nodes[n].name, (1u << used) - 1);
	}
	uint32_t templates = 2 + below(TEMPLATES - 1), size = 1 + below(4);
	for (uint32_t i = 0; i < gang.members; i++) {
		gang.templates[i] = i < templates ? i : below(templates);
		gang.sizes[i] = i < templates ? (percent(60) ? size : 1 + below(4)) : gang.sizes[gang.templates[i]];
	}
	for (uint32_t n = 0; n < NODES; n++)
		for (uint32_t t = 0; t < TEMPLATES; t++) {
			struct bound *bound = &gang.bounds[n][t];
			*bound = (struct bound){UINT16_MAX, UINT16_MAX, 0};
			bool asked = false;
			for (uint32_t i = 0; i < gang.members; i++)
				asked = asked || gang.templates[i] == t;
			if (!asked || percent(60))
				continue;
			bound->ever = (uint16_t)below(4);
			bound->today = (uint16_t)(percent(50) ? bound->ever : below(bound->ever + 1u));
			gang.room[gang.room_count++] = (struct frond_room){
				.slot = n, .pod_template = (uint16_t)t, .today = bound->today, .ever = bound->ever};
		}
	uint32_t outcome = ask(&gang, "topology-mode=Ignore placement-strategy=consolidated");
	uint32_t ever = fewest(&gang, all, false), now = fewest(&gang, free, true);
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(ever == 0  ? FROND_NEVER
					 : now == 0 ? FROND_WAITS
						    : FROND_PLACED,
					 outcome, c->text);
	if (outcome == FROND_PLACED) {
		TEST_ASSERT_EQUAL_UINT32(now, c->plan.nodes);
		for (uint32_t n = 0; n < NODES; n++) {
			uint32_t count[TEMPLATES] = {0}, used = 0;
			for (uint32_t i = 0; i < gang.members; i++)
				if (c->places[i].slot == n) {
					count[gang.templates[i]]++;
					TEST_ASSERT_EQUAL_HEX32(0, used & c->places[i].gpu_mask);
					used |= c->places[i].gpu_mask;
				}
			for (uint32_t t = 0; t < TEMPLATES; t++)
				TEST_ASSERT_TRUE(count[t] <= gang.bounds[n][t].today);
		}
	}
	cluster_free(c);
	c = NULL;
}

static void test_every_plan_is_the_best_of_all_assignments(void)
{
	const char *seed_text = getenv("FROND_SEED");
	uint64_t seed = seed_text == NULL ? 20261118 : strtoull(seed_text, NULL, 0);
	printf("seed %llu\n", (unsigned long long)seed);
	for (uint32_t i = 0; i < STEPS; i++) {
		dice = seed + i;
		snprintf(where, sizeof where, "FROND_SEED=%llu and one step", (unsigned long long)(seed + i));
		one_case();
	}
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_a_launcher_does_not_inherit_what_binds_the_workers);
	RUN_TEST(test_a_node_that_is_closed_to_workers_takes_the_launcher);
	RUN_TEST(test_every_plan_is_the_best_of_all_assignments);
	return UNITY_END();
}
