/* SPDX-License-Identifier: Apache-2.0 */
/* order(): for one pod, every feasible node's place in the order in which plan() would take it. */
#include "cluster.h"
#include "dice.h"

static struct cluster *c;
static uint16_t position[CLUSTER_NODES];

void setUp(void)
{
	c = NULL;
}

void tearDown(void)
{
	cluster_free(c);
}

static void cluster(const char *fabric, const char *args)
{
	cluster_free(c);
	c = cluster_make(fabric, args);
}

static uint32_t order(const struct wanted *w)
{
	char in[1024];
	struct frond_pair pairs[8];
	uint32_t in_len = request_make(c, w, in, pairs);
	memset(position, 0, sizeof position);
	int32_t code = abi->order(c->engine, &c->request, c->members, pairs, in, in_len, c->room,
				  exceptions_of(w->room, c->count, c->room), NULL, NULL, NULL, &c->plan, position,
				  c->text, CLUSTER_TEXT - 1, &c->len);
	c->text[c->len] = 0;
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, code, c->text);
	check(c);
	return c->plan.outcome;
}

/* "node-3 node-1": the feasible nodes in their order. */
static const char *ordered(const struct wanted *w)
{
	int at = 0;
	uint32_t outcome = order(w), feasible = 0;
	c->shown[0] = 0;
	for (uint32_t next = 0; next < c->count; next++)
		for (uint32_t slot = 0; slot < c->count; slot++)
			if (position[slot] == next) {
				at += snprintf(c->shown + at, CLUSTER_TEXT - (size_t)at, "%s%s", at > 0 ? " " : "",
					       c->nodes[slot].name);
				feasible++;
			}
	for (uint32_t slot = 0; slot < c->limits.nodes; slot++)
		feasible -= position[slot] != UINT16_MAX;
	TEST_ASSERT_EQUAL_UINT32(0, feasible); /* each place once, none beyond */
	TEST_ASSERT_EQUAL(c->shown[0] != 0, outcome == FROND_PLACED);
	return c->shown;
}

static void expect(uint32_t gpus, const char *wishes, const char *nodes)
{
	TEST_ASSERT_EQUAL_STRING(nodes,
				 ordered(&(struct wanted){.name = "p", .members = 1, .gpus = gpus, .wishes = wishes}));
}

static void test_all_nodes_in_fabric_order_when_nothing_tells_them_apart(void)
{
	cluster("spine:2 leaf:1 node:2 gpu:8", "");
	expect(8, "", "node-1 node-2 node-3 node-4");
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_SINGLE_NODE, c->plan.rule);
	TEST_ASSERT_EQUAL_UINT32(1, c->plan.nodes);
	TEST_ASSERT_EQUAL_STRING("1 member on 1 node in 1 leaf under 1 spine; rule single node met", c->text);
	TEST_ASSERT_EQUAL_UINT64(1, stats(c).placed);
}

#define CONSOLIDATED "placement-strategy=consolidated"

static void test_what_breaks_up_least_comes_first(void)
{
	cluster("spine:1 leaf:3 node:2 gpu:8", "");
	occupy(c, "node-4", 0x0f); /* leaf-2: node-4 has four left, node-3 is whole in a worn leaf */
	occupy(c, "node-6", 0xff); /* leaf-3: node-5 is whole in a worn leaf with less left */
	expect(4, CONSOLIDATED,
	       "node-4 node-5 node-3 node-1 node-2"); /* node-5 leaves four in its leaf, node-3 eight */
	expect(8, CONSOLIDATED, "node-5 node-3 node-1 node-2");
	expect(5, CONSOLIDATED, "node-5 node-3 node-1 node-2");
	expect(4, "",
	       "node-4 node-5 node-3 node-1 node-2"); /* node-4 alone breaks nothing; leaf-3 5,500, leaf-2 5,499 */
	expect(4, "placement-strategy=distributed", "node-1 node-2 node-4 node-3 node-5");
}

static void test_a_whole_leaf_counts_more_than_a_whole_node(void)
{
	cluster("apiVersion: topology.scheduler/v1alpha1\n"
		"kind: Fabric\n"
		"defaults: {gpus: 8}\n"
		"spines:\n"
		"- {name: s, leaves: [{name: l1, nodes: [a, b]}, {name: l2, nodes: [d, e]}]}\n"
		"nodes:\n"
		"- {name: a, gpus: 4}\n",
		"");
	occupy(c, "e", 0xff);
	expect(4, CONSOLIDATED, "d a b"); /* a would be used up, but its leaf is whole; l2 is worn already */
}

static void test_inside_a_leaf_links_come_before_what_is_left_over(void)
{
	cluster("apiVersion: topology.scheduler/v1alpha1\n"
		"kind: Fabric\n"
		"defaults: {model: A100-SXM}\n"
		"spines:\n"
		"- {name: s, leaves: [{name: l, nodes: [a, b, d]}]}\n"
		"nodes:\n"
		"- {name: b, model: H100-SXM}\n"
		"- {name: d, model: DGX-1V}\n",
		"");
	occupy(c, "d", 0x3f);
	expect(2, "", "b a d"); /* 450, 300 and 50 GB/s; d would be used up */
	expect(1, "", "d a b"); /* one GPU has no links: the fewest left over, then the position */
}

static void test_nodes_that_are_closed_full_or_sick_have_no_place(void)
{
	cluster("spine:1 leaf:1 node:6 gpu:8", "");
	cordon(c, "node-1");
	node_flags(c, "node-2", FROND_NODE_DOWN);
	unhealthy(c, "node-3", 0x01);
	occupy(c, "node-4", 0x80);
	occupy_by_count(c, "node-5", 1);
	expect(8, "", "node-6");
	TEST_ASSERT_EQUAL_UINT16(UINT16_MAX, position[0]);
	expect(7, "", "node-3 node-4 node-5 node-6"); /* nothing would be left on the first three */
	cordon(c, "node-6");
	expect(8, "", "");
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, c->plan.outcome);
	expect(9, "", "");
	TEST_ASSERT_EQUAL_UINT32(FROND_NEVER, c->plan.outcome);
}

static void test_the_preferred_domain_comes_first_and_the_rest_behind_it(void)
{
	cluster("spine:2 leaf:2 node:1 gpu:8", "");
	expect(8, "preferred-domain=leaf-3", "node-3 node-1 node-2 node-4");
	expect(8, "preferred-domain=spine-2", "node-3 node-4 node-1 node-2");
	expect(8, "preferred-domain=leaf-9", "node-1 node-2 node-3 node-4");
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_UNKNOWN_DOMAIN, c->plan.flags);
	occupy(c, "node-3", 0x01);
	expect(8, "preferred-domain=leaf-3", "node-1 node-2 node-4");
}

static void test_latency_sensitive_looks_for_most_free(void)
{
	cluster("spine:1 leaf:2 node:2 gpu:8", "");
	occupy(c, "node-1", 0x0f);
	expect(4, CONSOLIDATED, "node-1 node-2 node-3 node-4");
	expect(4, CONSOLIDATED " latency-sensitive=true", "node-3 node-4 node-1 node-2");
}

static void test_slow_nodes_capped_leaves_room_and_only_slot_count(void)
{
	cluster("spine:1 leaf:2 node:2 gpu:8", "{\"topologyConstraints\":{\"maxGPUsPerLeaf\":4}}");
	expect(5, "", "");
	TEST_ASSERT_EQUAL_UINT32(FROND_NEVER, c->plan.outcome);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, node_try(c, 0, "node-1", 8, 0, 0, 100, NULL, NULL));
	expect(4, "network-bandwidth=200Gb", "node-2 node-3 node-4");
	struct bound room[8] = {{1, 1, 0}, {0, 1, 0}, {1, 1, 0}, {0, 0, 0}};
	TEST_ASSERT_EQUAL_STRING("node-1 node-3",
				 ordered(&(struct wanted){.name = "p", .members = 1, .gpus = 4, .room = room}));
	TEST_ASSERT_EQUAL_STRING("node-3", ordered(&(struct wanted){.name = "p", .members = 1, .gpus = 4, .only = 3}));
}

static void test_nodes_without_a_leaf_have_their_place(void)
{
	c = calloc(1, sizeof *c);
	TEST_ASSERT_NOT_NULL(c);
	engine_make(c, 8, 64, "", "");
	node_put(c, 0, "out-1", 8, NULL, NULL);
	node_put(c, 1, "in-1", 8, "l", "s");
	node_put(c, 2, "in-2", 8, "l", "s");
	occupy(c, "out-1", 0x0f);
	expect(2, "", "out-1 in-1 in-2");
	expect(2, "preferred-domain=l", "in-1 in-2 out-1");
}

static void test_the_first_in_order_is_what_plan_takes_in_every_mode_and_strategy(void)
{
	static const char *const modes[] = {"Required", "Preferred", "Ignore"};
	static const char *const strategies[] = {"balanced", "consolidated", "distributed"};
	static const char *const more[] = {"", " preferred-domain=leaf-2", " preferred-domain=spine-2",
					   " latency-sensitive=true"};
	const char *text = getenv("FROND_SEED");
	dice = text == NULL ? 7 : strtoull(text, NULL, 0);
	printf("seed %llu\n", (unsigned long long)dice);
	for (uint32_t round = 0; round < 60; round++) {
		cluster(round % 2 == 0 ? "spine:2 leaf:2 node:3 gpu:8" : "spine:2 leaf:2 node:2 gpu:4", "");
		for (uint32_t slot = 0; slot < c->count; slot++) {
			uint32_t mask = below(1u << c->nodes[slot].gpus);
			if (below(2) == 0 && mask != 0)
				occupy(c, c->nodes[slot].name, mask);
		}
		for (uint32_t i = 0; i < 36; i++) {
			char wishes[128];
			snprintf(wishes, sizeof wishes, "topology-mode=%s placement-strategy=%s%s", modes[i % 3],
				 strategies[i / 3 % 3], more[i / 9]);
			struct wanted w = {.name = "p", .members = 1, .gpus = 1 + below(4), .wishes = wishes};
			uint32_t outcome = plan(c, &w);
			struct frond_plan planned = c->plan;
			TEST_ASSERT_EQUAL_UINT32(outcome, order(&w));
			TEST_ASSERT_EQUAL_MEMORY(&planned, &c->plan, sizeof planned);
			if (outcome == FROND_PLACED)
				TEST_ASSERT_EQUAL_UINT16_MESSAGE(0, position[c->places[0].slot], wishes);
		}
	}
}

/* A pod takes the best node; when that one is out of the question, the next one: that is the order. */
static void test_each_place_is_what_plan_takes_when_those_before_it_are_out_of_the_question(void)
{
	static const char *const strategies[] = {"balanced", "consolidated", "distributed"};
	const char *text = getenv("FROND_SEED");
	dice = text == NULL ? 8 : strtoull(text, NULL, 0);
	printf("seed %llu\n", (unsigned long long)dice);
	for (uint32_t round = 0; round < 40; round++) {
		cluster(round % 2 == 0 ? "spine:2 leaf:2 node:3 gpu:8" : "spine:1 leaf:3 node:2 gpu:4", "");
		for (uint32_t slot = 0; slot < c->count; slot++) {
			uint32_t mask = below(1u << c->nodes[slot].gpus);
			if (percent(50) && mask != 0)
				occupy(c, c->nodes[slot].name, mask);
		}
		struct bound room[CLUSTER_NODES];
		for (uint32_t slot = 0; slot < CLUSTER_NODES; slot++)
			room[slot] = (struct bound){1, 1, 0};
		char wishes[64];
		snprintf(wishes, sizeof wishes, "topology-mode=Ignore placement-strategy=%s", strategies[round % 3]);
		struct wanted w = {.name = "p", .members = 1, .gpus = 1 + below(4), .wishes = wishes, .room = room};
		order(&w);
		uint16_t seen[CLUSTER_NODES];
		memcpy(seen, position, sizeof seen);
		for (uint16_t next = 0; plan(c, &w) == FROND_PLACED; next++) {
			TEST_ASSERT_EQUAL_UINT16_MESSAGE(next, seen[c->places[0].slot], wishes);
			room[c->places[0].slot].today = 0;
		}
	}
}

/* stats.steps: candidates compared. */
static void test_the_order_of_one_pod_compares_as_many_candidates_as_its_plan(void)
{
	const struct wanted pod = {.name = "p", .members = 1, .gpus = 2},
			    large = {.name = "q", .members = 1, .gpus = 16};
	cluster("spine:2 leaf:3 node:2 gpu:8", "");
	occupy(c, "node-1", 0x01);
	uint64_t before = stats(c).steps;
	plan(c, &pod);
	uint64_t compared = stats(c).steps - before;
	TEST_ASSERT_EQUAL_UINT64(6, compared); /* one for each leaf */
	order(&pod);
	TEST_ASSERT_EQUAL_UINT64(before + 2 * compared, stats(c).steps);
	TEST_ASSERT_EQUAL_UINT32(FROND_NEVER, plan(c, &large));
	TEST_ASSERT_EQUAL_UINT64(before + 2 * compared, stats(c).steps);
}

static void test_behind_1024_nodes_the_rest_has_one_place(void)
{
	enum { LEAVES = 11, EACH = 100, NODES = LEAVES * EACH, ORDERED = 1024 };
	uint16_t at[NODES];
	char name[32];
	c = calloc(1, sizeof *c);
	TEST_ASSERT_NOT_NULL(c);
	engine_make(c, NODES, 64, "", "spine:1 leaf:11 node:100 gpu:8");
	for (uint32_t slot = 0; slot < NODES; slot++) { /* the first leaf has ten nodes in use, the last none */
		snprintf(name, sizeof name, "node-%u", (unsigned)slot + 1);
		TEST_ASSERT_EQUAL_INT32(FROND_OK, node_try(c, slot, name, 8, 0, 0, 0, NULL, NULL));
		struct frond_key pod = {1, slot + 1};
		if (slot % EACH < LEAVES - 1 - slot / EACH)
			TEST_ASSERT_EQUAL_INT32(FROND_OK, pod_try(c, pod, slot, 8, 0, "", (struct frond_key){0, 0}));
	}
	struct frond_member member = {.pod = {5, 1}, .gpus = 8, .pinned_slot = FROND_NONE};
	struct frond_request request = {
		.gang = {5, 1}, .members = 1, .min_member = 1, .gpus_desired = 8, .only_slot = FROND_NONE};
	int32_t code = abi->order(c->engine, &request, &member, NULL, "", 0, NULL, 0, NULL, NULL, NULL, &c->plan, at,
				  c->text, CLUSTER_TEXT, &c->len);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, code);
	check(c);
	uint32_t next =
		0; /* the emptier the leaf, the higher its score, and the last one, which is whole, comes last */
	for (uint32_t turn = LEAVES; turn-- > 0;) {
		uint32_t leaf = (turn + LEAVES - 1) % LEAVES;
		for (uint32_t i = 0; i < EACH; i++) {
			uint32_t slot = leaf * EACH + i;
			uint32_t expected = i < LEAVES - 1 - leaf ? UINT16_MAX : next < ORDERED ? next : ORDERED;
			TEST_ASSERT_EQUAL_UINT16(expected, at[slot]);
			next += expected != UINT16_MAX;
		}
	}
	TEST_ASSERT_EQUAL_UINT32(NODES - 55, next);
}

/* Every leaf is one node in use, and a pod of one GPU breaks nothing up: consolidated takes the one where least is left,
 * then the lowest. */
static void test_of_more_than_1024_leaves_the_best_are_in_order(void)
{
	enum { NODES = 1400, ORDERED = 1024, GPUS = 8 };
	static uint16_t at[NODES];
	uint32_t next = 0, free[NODES];
	char name[32];
	c = calloc(1, sizeof *c);
	TEST_ASSERT_NOT_NULL(c);
	engine_make(c, NODES, NODES, "{\"defaultStrategy\": \"consolidated\"}", "spine:14 leaf:100 node:1 gpu:8");
	dice = 7;
	for (uint32_t slot = 0; slot < NODES; slot++) {
		struct frond_key pod = {1, slot + 1};
		free[slot] = slot == ORDERED - 1 ? GPUS - 1 : 1 + below(GPUS - 1); /* the last of the first is bad */
		snprintf(name, sizeof name, "node-%u", (unsigned)slot + 1);
		TEST_ASSERT_EQUAL_INT32(FROND_OK, node_try(c, slot, name, GPUS, 0, 0, 0, NULL, NULL));
		TEST_ASSERT_EQUAL_INT32(FROND_OK,
					pod_try(c, pod, slot, GPUS - free[slot], 0, "", (struct frond_key){0, 0}));
	}
	struct frond_member member = {.pod = {5, 1}, .gpus = 1, .pinned_slot = FROND_NONE};
	struct frond_request request = {
		.gang = {5, 1}, .members = 1, .min_member = 1, .gpus_desired = 1, .only_slot = FROND_NONE};
	int32_t code = abi->order(c->engine, &request, &member, NULL, "", 0, NULL, 0, NULL, NULL, NULL, &c->plan, at,
				  c->text, CLUSTER_TEXT, &c->len);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, code);
	check(c);
	for (uint32_t left = 1; left < GPUS; left++)
		for (uint32_t slot = 0; slot < NODES; slot++)
			if (free[slot] == left) {
				TEST_ASSERT_EQUAL_UINT16(next < ORDERED ? next : ORDERED, at[slot]);
				next++;
			}
	TEST_ASSERT_EQUAL_UINT32(NODES, next);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_all_nodes_in_fabric_order_when_nothing_tells_them_apart);
	RUN_TEST(test_what_breaks_up_least_comes_first);
	RUN_TEST(test_a_whole_leaf_counts_more_than_a_whole_node);
	RUN_TEST(test_inside_a_leaf_links_come_before_what_is_left_over);
	RUN_TEST(test_nodes_that_are_closed_full_or_sick_have_no_place);
	RUN_TEST(test_the_preferred_domain_comes_first_and_the_rest_behind_it);
	RUN_TEST(test_latency_sensitive_looks_for_most_free);
	RUN_TEST(test_slow_nodes_capped_leaves_room_and_only_slot_count);
	RUN_TEST(test_nodes_without_a_leaf_have_their_place);
	RUN_TEST(test_the_first_in_order_is_what_plan_takes_in_every_mode_and_strategy);
	RUN_TEST(test_each_place_is_what_plan_takes_when_those_before_it_are_out_of_the_question);
	RUN_TEST(test_the_order_of_one_pod_compares_as_many_candidates_as_its_plan);
	RUN_TEST(test_behind_1024_nodes_the_rest_has_one_place);
	RUN_TEST(test_of_more_than_1024_leaves_the_best_are_in_order);
	return UNITY_END();
}
