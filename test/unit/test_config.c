/* SPDX-License-Identifier: Apache-2.0 */
/* config_put(): tuning of a living engine. The grammar itself is that of args, see test_args.c. */
#include "cluster.h"
#include "engine/engine.h"

#define LINE "spine:1 leaf:4 node:4 gpu:8"

static struct cluster *c;

void setUp(void)
{
	c = NULL;
}

void tearDown(void)
{
	cluster_free(c);
}

/* Read from a copy of exactly this size, so that the sanitizer sees a step beyond. */
static int32_t put_bytes(const char *spec, uint32_t size)
{
	char *copy = malloc(size == 0 ? 1 : size);
	TEST_ASSERT_NOT_NULL(copy);
	memcpy(copy, spec, size);
	int32_t code = abi->config_put(c->engine, copy, size, c->text, CLUSTER_TEXT - 1, &c->len);
	free(copy);
	c->text[c->len] = 0;
	check(c);
	return code;
}

static void put(const char *spec)
{
	uint64_t before = stats(c).generation;
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, put_bytes(spec, (uint32_t)strlen(spec)), c->text);
	TEST_ASSERT_EQUAL_UINT32(0, c->len);
	TEST_ASSERT_GREATER_THAN_UINT64(before, stats(c).generation); /* what was planned before is stale */
}

static void weights_are(const uint32_t want[SCORE_TERMS])
{
	TEST_ASSERT_EQUAL_UINT32_ARRAY(want, c->engine->tuning.weight, SCORE_TERMS);
}

static void caps_are(uint32_t nodes, uint32_t gpus)
{
	TEST_ASSERT_EQUAL_UINT32(nodes, c->engine->tuning.max_nodes_per_leaf);
	TEST_ASSERT_EQUAL_UINT32(gpus, c->engine->tuning.max_gpus_per_leaf);
}

/* Where a gang of whole nodes goes. */
static void goes(uint32_t members, const char *where)
{
	uint32_t outcome = plan(c, &(struct wanted){.name = "a", .members = members, .gpus = 8});
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, outcome, c->text);
	TEST_ASSERT_EQUAL_STRING(where, leaves(c));
}

static const uint32_t training[SCORE_TERMS] = {400, 300, 200, 100, 0, 0, 0, 0};

static void test_each_key_takes_effect_and_what_is_not_named_is_the_start(void)
{
	c = cluster_make(LINE,
			 "{\"scoringWeights\":{\"modelCache\":0.5},\"topologyConstraints\":{\"maxGPUsPerLeaf\":24}}");
	const uint32_t start[SCORE_TERMS] = {400, 300, 200, 100, 500, 0, 0, 0};
	weights_are(start);
	goes(4, "leaf-1:3 leaf-2:1");

	put("{\"scoringPreset\":\"agents\"}");
	weights_are((const uint32_t[]){300, 250, 0, 0, 200, 150, 100, 0});
	caps_are(0, 24);
	put("{\"scoringPreset\":\"training\"}");
	weights_are(training);
	put("{\"scoringWeights\":{\"utilization\":1}}");
	weights_are((const uint32_t[]){400, 300, 200, 100, 500, 0, 0, 1000});
	put("{\"scoringPreset\":\"agents\",\"scoringWeights\":{\"topologyAlignment\":0}}");
	weights_are((const uint32_t[]){300, 0, 0, 0, 200, 150, 100, 0});

	put("{\"topologyConstraints\":{\"maxNodesPerLeaf\":2}}");
	weights_are(start);
	caps_are(2, 24);
	goes(4, "leaf-1:2 leaf-2:2");
	put("{\"topologyConstraints\":{\"maxGPUsPerLeaf\":8}}");
	caps_are(0, 8);
	goes(2, "leaf-1:1 leaf-2:1");

	static const char *const nothing[] = {"{}", "", " ", "{\"topologyConstraints\":{},\"scoringWeights\":{}}"};
	for (uint32_t i = 0; i < 4; i++) {
		put("{\"scoringPreset\":\"utilization\",\"topologyConstraints\":{\"maxGPUsPerLeaf\":8,"
		    "\"maxNodesPerLeaf\":1}}");
		put(nothing[i]);
		weights_are(start);
		caps_are(0, 24);
		goes(4, "leaf-1:3 leaf-2:1");
	}
}

/* Two leaves differ in what is free and in what is used, so the weights decide between them. */
static void test_weights_decide_the_next_plan(void)
{
	c = cluster_make("spine:1 leaf:2 node:4 gpu:8", "");
	occupy(c, "node-1", 0xff);
	occupy(c, "node-2", 0xff);
	occupy(c, "node-5", 0xff);
	struct wanted gang = {.name = "a", .members = 1, .gpus = 8};
	put("{\"scoringWeights\":{\"resourceAvailability\":1,\"topologyAlignment\":0,\"domainUtilization\":0}}");
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, plan(c, &gang));
	TEST_ASSERT_EQUAL_STRING("node-6", spots(c));
	put("{\"scoringWeights\":{\"resourceAvailability\":0,\"topologyAlignment\":0,\"domainUtilization\":1}}");
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, plan(c, &gang));
	TEST_ASSERT_EQUAL_STRING("node-3", spots(c));
}

static void test_bad_specs_are_refused_in_a_sentence_and_change_nothing(void)
{
	static const struct {
		const char *spec, *sentence;
	} bad[] = {
		{"{\"scoringPreset\":\"fast\"}",
		 "spec.scoringPreset: must be training, agents or utilization, got \"fast\""},
		{"{\"scoringWeights\":{\"topologyAlignment\":-3}}",
		 "spec.scoringWeights.topologyAlignment: must be between 0 and 1, got -3"},
		{"{\"scoringWeights\":{\"topologyAlignment\":0.0001}}",
		 "spec.scoringWeights.topologyAlignment: must have at most 3 decimals, got 0.0001"},
		{"{\"scoringWeights\":{\"speed\":1}}", "spec.scoringWeights.speed: is not a known field"},
		{"{\"scoringWeights\":[]}", "spec.scoringWeights: must be an object"},
		{"{\"scoringWeights\":{\"resourceAvailability\":0,\"topologyAlignment\":0,\"domainUtilization\":0,"
		 "\"historicalPerformance\":0}}",
		 "spec.scoringWeights: all weights are 0; at least one must be above"},
		{"{\"scoringPreset\":\"agents\",\"topologyConstraints\":{\"maxNodesPerLeaf\":0}}",
		 "spec.topologyConstraints.maxNodesPerLeaf: must be a whole number between 1 and 131072, got 0"},
		{"{\"topologyConstraints\":{\"maxGPUsPerLeaf\":1.5}}",
		 "spec.topologyConstraints.maxGPUsPerLeaf: must be a whole number between 1 and 2097152, got 1.5"},
		{"{\"topologyConstraints\":{\"maxLeaves\":1}}",
		 "spec.topologyConstraints.maxLeaves: is not a known field"},
		{"{\"topologyConstraints\":{\"maxNodesPerLeaf\":1,\"maxNodesPerLeaf\":2}}",
		 "spec.topologyConstraints.maxNodesPerLeaf: is written twice"},
		{"{\"topologyConstraints\":null}", "spec.topologyConstraints: must be an object"},
		{"{\"defaultStrategy\":\"balanced\"}", "spec.defaultStrategy: is not a known field"},
		{"{\"kind\":\"TopologyGPUArgs\"}", "spec.kind: is not a known field"},
		{"[]", "spec: must be an object"},
		{"{", "spec: is not valid JSON at byte 1"},
		{"{} {}", "spec: has more text after the end of its object, at byte 2"},
		{"{\"scoringPreset\":\"\\u0000\"}", "spec: holds a NUL byte, which is not allowed"},
	};
	c = cluster_make(LINE, "");
	put("{\"scoringPreset\":\"agents\",\"topologyConstraints\":{\"maxNodesPerLeaf\":2,\"maxGPUsPerLeaf\":9}}");
	struct tuning before = c->engine->tuning;
	for (uint32_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		remember(c);
		TEST_ASSERT_EQUAL_INT32(FROND_BAD, put_bytes(bad[i].spec, (uint32_t)strlen(bad[i].spec)));
		TEST_ASSERT_EQUAL_STRING(bad[i].sentence, c->text);
		TEST_ASSERT_EQUAL_MEMORY(&before, &c->engine->tuning, sizeof before);
		unchanged(c);
	}
	uint32_t len = 0;
	TEST_ASSERT_EQUAL_INT32(FROND_BAD, abi->config_put(c->engine, "[]", 2, c->text, 4, &len));
	TEST_ASSERT_EQUAL_UINT32(4, len); /* an error's sentence is cut */
	TEST_ASSERT_EQUAL_STRING_LEN("spec", c->text, 4);
}

static void test_nothing_is_tuned_inside_a_what_if(void)
{
	c = cluster_make(LINE, "");
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->what_if(c->engine));
	remember(c);
	TEST_ASSERT_EQUAL_INT32(FROND_BAD, put_bytes("{\"topologyConstraints\":{\"maxNodesPerLeaf\":1}}", 43));
	TEST_ASSERT_EQUAL_STRING("the configuration cannot change inside a what-if", c->text);
	unchanged(c);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->undo(c->engine));
	goes(4, "leaf-1:4");
	put("{\"topologyConstraints\":{\"maxNodesPerLeaf\":1}}");
	goes(4, "leaf-1:1 leaf-2:1 leaf-3:1 leaf-4:1");
}

/* What holds places keeps them; what is repaired later is repaired by the new caps. */
static void test_what_is_booked_stays(void)
{
	c = cluster_make(LINE, "");
	place(c, &(struct wanted){.name = "b", .members = 4, .gpus = 8});
	char before[CLUSTER_TEXT];
	strcpy(before, dump(c));
	put("{\"topologyConstraints\":{\"maxNodesPerLeaf\":1}}");
	TEST_ASSERT_EQUAL_STRING(before, dump(c));
	goes(3, "leaf-2:1 leaf-3:1 leaf-4:1");
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_each_key_takes_effect_and_what_is_not_named_is_the_start);
	RUN_TEST(test_weights_decide_the_next_plan);
	RUN_TEST(test_bad_specs_are_refused_in_a_sentence_and_change_nothing);
	RUN_TEST(test_nothing_is_tuned_inside_a_what_if);
	RUN_TEST(test_what_is_booked_stays);
	return UNITY_END();
}
