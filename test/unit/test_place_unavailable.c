/* SPDX-License-Identifier: Apache-2.0 */
/* Maintenance is not weather (reference 3.3): what has been closed or unhealthy for long is no capacity for the rule, but what a
 * gang could have on its best day still decides whether it ever fits. */
#include "cluster.h"

static struct cluster *c;

void setUp(void)
{
	c = NULL;
}

void tearDown(void)
{
	cluster_free(c);
}

static void cluster(const char *line)
{
	cluster_free(c);
	c = cluster_make(line, "");
}

#define LASTING (FROND_NODE_CORDONED | FROND_NODE_UNAVAILABLE)

/* GPUs of a node that wait for their repair. */
static void worn(const char *name, uint32_t unhealthy_mask, uint32_t unavailable_mask)
{
	struct frond_node node = {.slot = slot_of(c, name),
				  .gpus = c->nodes[slot_of(c, name)].gpus,
				  .unhealthy_mask = unhealthy_mask,
				  .unavailable_mask = unavailable_mask,
				  .topology = FROND_NONE,
				  .name = {0, (uint32_t)strlen(name)}};
	TEST_ASSERT_EQUAL_INT32_MESSAGE(
		FROND_OK,
		abi->node_put(c->engine, &node, NULL, 0, name, node.name.len, c->text, CLUSTER_TEXT - 1, &c->len),
		c->text);
	check(c);
}

static void expect(uint32_t outcome, uint32_t rule, uint32_t members, uint32_t gpus, const char *wishes)
{
	plan(c, &(struct wanted){.name = "a", .members = members, .gpus = gpus, .wishes = wishes});
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(outcome, c->plan.outcome, c->text);
	if (outcome != FROND_NEVER && outcome != FROND_REFUSED)
		TEST_ASSERT_EQUAL_UINT32_MESSAGE(rule, c->plan.rule, c->text);
}

static void says(const char *part)
{
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(c->text, part), c->text);
}

/* ---- 2,048 nodes in leaves of 32, one of each in maintenance ------------------------------------------------------- */

#define UPGRADED 2048u

static struct frond_plan ask(frond_engine *engine, uint32_t members)
{
	static struct frond_member list[UPGRADED + 1];
	static struct frond_place places[UPGRADED + 1];
	char text[512];
	uint32_t len;
	struct frond_plan out;
	struct frond_request request = {.gang = {1, 1},
					.members = members,
					.min_member = members,
					.gpus_desired = 8ull * members,
					.only_slot = FROND_NONE};
	for (uint32_t i = 0; i < members; i++)
		list[i] = (struct frond_member){.pod = {2, i + 1}, .rank = i, .gpus = 8, .pinned_slot = FROND_NONE};
	int32_t code = abi->plan(engine, &request, list, NULL, "", 0, NULL, 0, &out, places, text, sizeof text, &len);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, code);
	return out;
}

static void put_upgraded(frond_engine *engine, uint32_t flags)
{
	char name[32], text[512];
	uint32_t len;
	for (uint32_t slot = 0; slot < UPGRADED; slot++) {
		struct frond_node node = {.slot = slot,
					  .gpus = 8,
					  .topology = FROND_NONE,
					  .flags = slot % 32 == slot / 32 % 32 ? flags : 0,
					  .name = {0, (uint32_t)snprintf(name, sizeof name, "node-%u", slot + 1)}};
		TEST_ASSERT_EQUAL_INT32(
			FROND_OK, abi->node_put(engine, &node, NULL, 0, name, node.name.len, text, sizeof text, &len));
	}
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, abi->check(engine, text, sizeof text, &len), text);
}

static void test_a_rolling_upgrade_of_2048_nodes_stops_no_gang(void)
{
	static const struct {
		uint32_t members, rule, leaves;
	} gangs[] = {{31, FROND_RULE_SAME_LEAF, 1},         {32, FROND_RULE_ADJACENT_LEAVES, 2},
		     {62, FROND_RULE_ADJACENT_LEAVES, 2},   {64, FROND_RULE_ADJACENT_LEAVES, 3},
		     {128, FROND_RULE_ADJACENT_LEAVES, 5},  {256, FROND_RULE_ADJACENT_SPINES, 9},
		     {512, FROND_RULE_ADJACENT_SPINES, 17}, {1984, FROND_RULE_ADJACENT_SPINES, 64}};
	static const char fabric[] = "spine:8 leaf:8 node:32 gpu:8";
	const struct frond_limits limits = {.nodes = UPGRADED, .pods = UPGRADED};
	abi = frond_abi_get();
	uint64_t bytes = abi->size_of(&limits);
	void *memory = aligned_alloc(16, (bytes + 15) / 16 * 16);
	TEST_ASSERT_NOT_NULL(memory);
	frond_engine *engine;
	char text[512];
	uint32_t len;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->create(memory, bytes, &limits, "", 0, fabric, sizeof fabric - 1, &engine,
						      text, sizeof text, &len));
	put_upgraded(engine, LASTING);
	for (uint32_t i = 0; i < sizeof gangs / sizeof gangs[0]; i++) {
		struct frond_plan plan = ask(engine, gangs[i].members);
		TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, plan.outcome);
		TEST_ASSERT_EQUAL_UINT32(gangs[i].rule, plan.rule);
		TEST_ASSERT_EQUAL_UINT32(gangs[i].leaves, plan.leaves);
		TEST_ASSERT_EQUAL_UINT32(0, plan.flags & ~(uint32_t)FROND_PLAN_BOUNDED);
	}
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, ask(engine, 1985).outcome);
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, ask(engine, 2048).outcome);
	put_upgraded(engine, FROND_NODE_CORDONED); /* a minute ago they were all there */
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask(engine, 31).outcome);
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, ask(engine, 32).outcome);
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, ask(engine, 512).outcome);
	put_upgraded(engine, 0);
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_COMPLETE_LEAF, ask(engine, 32).rule);
	free(memory);
}

/* ---- small ---------------------------------------------------------------------------------------------------------- */

static void test_a_gang_that_fits_on_its_best_day_waits_under_the_rule_of_that_day(void)
{
	cluster("spine:1 leaf:2 node:2 gpu:8");
	node_flags(c, "node-2", LASTING);
	expect(FROND_WAITS, FROND_RULE_ADJACENT_LEAVES, 4, 8, NULL);
	says("needs 4 nodes in 2 adjacent leaves; best run leaf-1..leaf-2 has 3 free (node-2 cordoned)");
	expect(FROND_WAITS, FROND_RULE_NONE, 4, 8, "topology-mode=Preferred");
	says("the cluster has 3 free (node-2 cordoned)");
	expect(FROND_NEVER, 0, 5, 8, NULL);
	says("never fits: needs 5 nodes; the cluster could hold 4 of them at best");
	node_flags(c, "node-2", 0); /* open again: capacity at once */
	expect(FROND_PLACED, FROND_RULE_ADJACENT_LEAVES, 4, 8, NULL);
}

static void test_a_latency_sensitive_gang_is_refused_only_if_it_is_too_wide_on_its_best_day(void)
{
	cluster("spine:1 leaf:2 node:2 gpu:8");
	node_flags(c, "node-1", LASTING);
	node_flags(c, "node-3", FROND_NODE_DOWN | FROND_NODE_UNAVAILABLE);
	expect(FROND_WAITS, FROND_RULE_COMPLETE_LEAF, 2, 8, "latency-sensitive=true");
	says("(node-1 cordoned)");
	expect(FROND_REFUSED, 0, 3, 8, "latency-sensitive=true");
	expect(FROND_PLACED, FROND_RULE_ADJACENT_LEAVES, 2, 8, NULL);
}

static void test_leaves_between_which_one_is_in_maintenance_have_no_shape(void)
{
	cluster("spine:1 leaf:3 node:2 gpu:8");
	node_flags(c, "node-3", LASTING);
	expect(FROND_PLACED, FROND_RULE_ADJACENT_LEAVES, 4, 8, NULL);
	TEST_ASSERT_EQUAL_UINT32(3, c->plan.leaves);
	node_flags(c, "node-4", LASTING);
	expect(FROND_PLACED, FROND_RULE_ADJACENT_SPINES, 4, 8, NULL);
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_SHAPELESS | FROND_PLAN_RELAXED, c->plan.flags);
	node_flags(c, "node-4", FROND_NODE_CORDONED);
	expect(FROND_WAITS, FROND_RULE_ADJACENT_LEAVES, 4, 8, NULL);
}

static void test_gpus_that_wait_for_their_repair_are_no_capacity(void)
{
	cluster("spine:1 leaf:2 node:2 gpu:8");
	worn("node-1", 0x81, 0x00);
	worn("node-3", 0x01, 0x00);
	expect(FROND_WAITS, FROND_RULE_COMPLETE_LEAF, 2, 8, NULL); /* the weather of today */
	worn("node-1", 0x81, 0x80);
	worn("node-3", 0x01, 0x01);
	expect(FROND_PLACED, FROND_RULE_ADJACENT_LEAVES, 2, 8, NULL);
	expect(FROND_WAITS, FROND_RULE_ADJACENT_LEAVES, 3, 8, NULL);
	expect(FROND_PLACED, FROND_RULE_COMPLETE_LEAF, 3, 4, NULL);
	expect(FROND_PLACED, FROND_RULE_ADJACENT_LEAVES, 4, 4, NULL); /* 1 + 2 in a leaf */
	worn("node-3", 0x01, 0x00);
	expect(FROND_WAITS, FROND_RULE_COMPLETE_LEAF, 2, 8, NULL);
	expect(FROND_WAITS, FROND_RULE_COMPLETE_LEAF, 4, 4, NULL);
	worn("node-1", 0, 0);
	expect(FROND_PLACED, FROND_RULE_COMPLETE_LEAF, 4, 4, NULL);
}

static void test_members_of_several_sizes_have_the_same_capacity(void)
{
	cluster("spine:1 leaf:2 node:2 gpu:8");
	const uint32_t sizes[] = {8, 7, 1}, wide[] = {8, 8, 8, 7, 1}, never[] = {8, 8, 8, 8, 1};
	struct wanted w = {.name = "a", .members = 3, .sizes = sizes};
	plan(c, &w);
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_COMPLETE_LEAF, c->plan.rule);
	node_flags(c, "node-1", LASTING);
	worn("node-3", 0x1, 0x1);
	plan(c, &w);
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, c->plan.outcome, c->text);
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_ADJACENT_LEAVES, c->plan.rule);
	w = (struct wanted){.name = "a", .members = 5, .sizes = wide};
	plan(c, &w);
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_WAITS, c->plan.outcome, c->text);
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_ADJACENT_LEAVES, c->plan.rule);
	w = (struct wanted){.name = "a", .members = 5, .sizes = never};
	plan(c, &w);
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_NEVER, c->plan.outcome, c->text);
	says("the cluster could hold 32 GPUs at best");
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_a_rolling_upgrade_of_2048_nodes_stops_no_gang);
	RUN_TEST(test_a_gang_that_fits_on_its_best_day_waits_under_the_rule_of_that_day);
	RUN_TEST(test_a_latency_sensitive_gang_is_refused_only_if_it_is_too_wide_on_its_best_day);
	RUN_TEST(test_leaves_between_which_one_is_in_maintenance_have_no_shape);
	RUN_TEST(test_gpus_that_wait_for_their_repair_are_no_capacity);
	RUN_TEST(test_members_of_several_sizes_have_the_same_capacity);
	return UNITY_END();
}
