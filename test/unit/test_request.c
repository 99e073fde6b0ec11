/* SPDX-License-Identifier: Apache-2.0 */
/* Requests whose claim would rather have certain GPUs: what the host names, and what nobody knows
 * (reference 3.2, 3.7). */
#include "cluster.h"
#include "dice.h"

static struct cluster *c;
static char claim[1024];

void setUp(void)
{
	c = cluster_make("spine:2 leaf:2 node:3 gpu:8", "");
}

void tearDown(void)
{
	cluster_free(c);
}

/* A claim that lists so many UUIDs, which the engine cannot read. */
static const char *prefers(uint32_t ids)
{
	int at = snprintf(claim, sizeof claim, "{\"devices\":{\"policy\":\"preferIds\",\"preferIds\":[");
	for (uint32_t i = 0; i < ids; i++)
		at += snprintf(claim + at, sizeof claim - (size_t)at, "%s\"GPU-%u\"", i > 0 ? "," : "", (unsigned)i);
	snprintf(claim + at, sizeof claim - (size_t)at, "]}}");
	return claim;
}

/* Plans, or orders when position is given, with GPUs that the host names. */
static uint32_t ask(const struct wanted *w, const struct frond_named *named, uint32_t count, uint16_t *position)
{
	char in[CLUSTER_IN];
	struct frond_pair pairs[16];
	uint32_t in_len = request_make(c, w, in, pairs);
	c->request.named_count = count;
	for (uint32_t i = 0; i < count; i++)
		c->request.named[i] = named[i];
	int32_t code = position == NULL
			       ? abi->plan(c->engine, &c->request, c->members, pairs, in, in_len, NULL, 0, &c->plan,
					   c->places, c->text, CLUSTER_TEXT - 1, &c->len)
			       : abi->order(c->engine, &c->request, c->members, pairs, in, in_len, NULL, 0, NULL, NULL,
					    NULL, &c->plan, position, c->text, CLUSTER_TEXT - 1, &c->len);
	c->text[c->len] = 0;
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, code, c->text);
	check(c);
	return c->plan.outcome;
}

static void test_named_gpus_are_had_when_they_are_free(void)
{
	const struct frond_named named[] = {{.slot = 7, .gpu_mask = 0x52}};
	struct wanted w = {.name = "a", .members = 1, .gpus = 3, .claim = prefers(3)};
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(&w, named, 1, NULL));
	TEST_ASSERT_EQUAL_UINT32(7, c->places[0].slot);
	TEST_ASSERT_EQUAL_HEX32(0x52, c->places[0].gpu_mask);
	TEST_ASSERT_EQUAL_UINT32(0, c->plan.flags);
	occupy(c, "node-8", 0x10); /* one of them: the others, and the best beside them */
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(&w, named, 1, NULL));
	TEST_ASSERT_EQUAL_UINT32(7, c->places[0].slot);
	TEST_ASSERT_EQUAL_HEX32(0x42, c->places[0].gpu_mask & 0x52);
	occupy(c, "node-8", 0x42); /* all of them: as if nothing had been named */
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(&w, NULL, 0, NULL));
	struct frond_place unnamed = c->places[0];
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(&w, named, 1, NULL));
	TEST_ASSERT_EQUAL_UINT32(unnamed.slot, c->places[0].slot);
	TEST_ASSERT_EQUAL_HEX32(unnamed.gpu_mask, c->places[0].gpu_mask);
}

static void test_a_node_without_room_for_the_pod_is_not_preferred(void)
{
	const struct frond_named named[] = {{.slot = 7, .gpu_mask = 0x01}};
	struct wanted w = {.name = "a", .members = 1, .gpus = 8, .claim = prefers(1)};
	occupy(c, "node-8", 0x80);
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(&w, named, 1, NULL));
	TEST_ASSERT_NOT_EQUAL(7, c->places[0].slot);
	w.gpus = 7;
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(&w, named, 1, NULL));
	TEST_ASSERT_EQUAL_UINT32(7, c->places[0].slot);
	cordon(c, "node-8");
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(&w, named, 1, NULL));
	TEST_ASSERT_NOT_EQUAL(7, c->places[0].slot);
}

static void test_a_domain_that_the_user_prefers_comes_first(void)
{
	const struct frond_named named[] = {{.slot = 7, .gpu_mask = 0x03}};
	struct wanted w = {
		.name = "a", .members = 1, .gpus = 2, .claim = prefers(2), .wishes = "preferred-domain=leaf-1"};
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(&w, named, 1, NULL));
	TEST_ASSERT_LESS_THAN_UINT32(3, c->places[0].slot);
}

static void test_a_gang_goes_where_its_named_gpus_are_if_all_of_it_fits_there(void)
{
	const struct frond_named named[] = {{.slot = 4, .gpu_mask = 0xf0}};
	struct wanted w = {.name = "a", .members = 2, .gpus = 4, .claim = prefers(4)};
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(&w, named, 1, NULL));
	TEST_ASSERT_EQUAL_UINT32(4, c->places[0].slot);
	TEST_ASSERT_EQUAL_HEX32(0xf0, c->places[0].gpu_mask); /* rank 0 chooses first */
	TEST_ASSERT_EQUAL_UINT32(4, c->places[1].slot);
	w.members = 3; /* never on one node: wherever the rule says */
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(&w, named, 1, NULL));
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_SAME_LEAF, c->plan.rule);
}

static void test_ids_that_nobody_knows_are_told(void)
{
	const struct frond_named named[] = {{.slot = 0, .gpu_mask = 0x03}};
	struct wanted w = {.name = "a", .members = 1, .gpus = 2, .claim = prefers(3)};
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(&w, named, 1, NULL));
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_UNKNOWN_GPU, c->plan.flags);
	TEST_ASSERT_NOT_NULL(strstr(c->text, "; preferIds lists a GPU that is not in the cluster"));
	w.claim = prefers(2);
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(&w, named, 1, NULL));
	TEST_ASSERT_EQUAL_UINT32(0, c->plan.flags);
	/* What the engine reads itself counts once, though the host names it too. */
	w.claim = "{\"devices\":{\"policy\":\"preferIds\",\"preferIds\":[\"node-1-gpu-0\",\"GPU-1\",\"GPU-2\"]}}";
	ask(&w, named, 1, NULL);
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_UNKNOWN_GPU, c->plan.flags);
	w.claim = "{\"devices\":{\"policy\":\"preferIds\",\"preferIds\":[\"node-1-gpu-0\",\"GPU-1\"]}}";
	ask(&w, named, 1, NULL);
	TEST_ASSERT_EQUAL_UINT32(0, c->plan.flags);
	w.claim = "{\"devices\":{\"policy\":\"preferIds\",\"preferIds\":[0,\"3\",\"node-99-gpu-0\"]}}";
	ask(&w, NULL, 0, NULL);
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_UNKNOWN_GPU, c->plan.flags);
	w.claim = "{\"devices\":{\"policy\":\"spread\"}}"; /* read with preferIds only */
	ask(&w, named, 1, NULL);
	TEST_ASSERT_EQUAL_UINT32(0, c->plan.flags);
}

/* ---- against the rule, node by node -------------------------------------------------------------------------------- */

enum { NODES = 12, ROUNDS = 3000 };

static uint32_t taken[NODES], closed;

static uint32_t ones(uint32_t mask)
{
	uint32_t count = 0;
	for (; mask != 0; mask &= mask - 1)
		count++;
	return count;
}

/* The node that a pod would rather be on; NODES: none. Slots are in fabric order. */
static uint32_t rather(const struct frond_named *named, uint32_t count, uint32_t gpus)
{
	uint32_t best = NODES, most = 0;
	for (uint32_t slot = 0; slot < NODES; slot++)
		for (uint32_t i = 0; i < count; i++) {
			uint32_t here = ones(named[i].gpu_mask & 0xff & ~taken[slot]);
			here = here < gpus ? here : gpus;
			if (named[i].slot == slot && !(closed >> slot & 1) && 8 - ones(taken[slot]) >= gpus &&
			    here > most) {
				best = slot;
				most = here;
			}
		}
	return best;
}

static void test_random_clusters_agree_with_the_rule(void)
{
	const char *seed = getenv("FROND_SEED");
	uint32_t steered = 0, elsewhere = 0;
	dice = seed == NULL ? 20260118 : strtoull(seed, NULL, 0);
	printf("seed %llu\n", (unsigned long long)dice);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		if (round % 20 == 0) {
			cluster_free(c);
			c = cluster_make("spine:2 leaf:2 node:3 gpu:8", "");
			closed = 0;
			for (uint32_t slot = 0; slot < NODES; slot++) {
				taken[slot] = percent(60) ? below(256) : 0;
				if (taken[slot] != 0)
					occupy(c, c->nodes[slot].name, taken[slot]);
				if (percent(15)) {
					closed |= 1u << slot;
					cordon(c, c->nodes[slot].name);
				}
			}
		}
		struct frond_named named[4];
		uint32_t count = 0, bits = 0, gpus = 1 + below(8);
		for (uint32_t slot = 0; slot < NODES && count < 4; slot++)
			if (percent(20)) {
				named[count] =
					(struct frond_named){.slot = slot, .gpu_mask = 1u << below(8) | 1u << below(8)};
				bits += ones(named[count++].gpu_mask);
			}
		struct wanted w = {.name = "p", .members = 1, .gpus = gpus, .claim = bits == 0 ? NULL : prefers(bits)};
		uint32_t want = rather(named, count, gpus), outcome = ask(&w, named, count, NULL);
		struct frond_place got = c->places[0];
		uint16_t position[NODES + CLUSTER_SPARE];
		TEST_ASSERT_EQUAL_UINT32(0, c->plan.flags & FROND_PLAN_UNKNOWN_GPU);
		if (want == NODES) {
			elsewhere++;
			w.claim = NULL; /* nothing that is named can be had: as without a claim */
			TEST_ASSERT_EQUAL_UINT32(outcome, ask(&w, NULL, 0, NULL));
			if (outcome == FROND_PLACED)
				TEST_ASSERT_EQUAL_MEMORY(&got, &c->places[0], sizeof got);
			continue;
		}
		steered++;
		TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, outcome);
		TEST_ASSERT_EQUAL_UINT32(want, got.slot);
		for (uint32_t i = 0; i < count; i++)
			if (named[i].slot == want) {
				uint32_t free = ones(named[i].gpu_mask & ~taken[want]);
				TEST_ASSERT_EQUAL_UINT32(free < gpus ? free : gpus,
							 ones(named[i].gpu_mask & got.gpu_mask));
			}
		TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(&w, named, count, position));
		TEST_ASSERT_EQUAL_UINT16(0, position[want]);
	}
	printf("%u of %u went to a named GPU, %u could not\n", (unsigned)steered, (unsigned)ROUNDS,
	       (unsigned)elsewhere);
	TEST_ASSERT_TRUE(steered > ROUNDS / 4 && elsewhere > ROUNDS / 10);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_named_gpus_are_had_when_they_are_free);
	RUN_TEST(test_a_node_without_room_for_the_pod_is_not_preferred);
	RUN_TEST(test_a_domain_that_the_user_prefers_comes_first);
	RUN_TEST(test_a_gang_goes_where_its_named_gpus_are_if_all_of_it_fits_there);
	RUN_TEST(test_ids_that_nobody_knows_are_told);
	RUN_TEST(test_random_clusters_agree_with_the_rule);
	return UNITY_END();
}
