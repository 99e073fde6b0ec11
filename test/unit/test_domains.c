/* SPDX-License-Identifier: Apache-2.0 */
/* The levels below the leaf and above the spine: NVLink domains and cores, from labels to plans. */
#include "cluster.h"
#include "engine/engine.h"

static struct cluster *c;
static const struct fabric *fabric;

void setUp(void)
{
	c = calloc(1, sizeof *c);
	TEST_ASSERT_NOT_NULL(c);
	engine_make(c, 16, 64, "", "");
	fabric = &c->engine->core.fabric;
}

void tearDown(void)
{
	cluster_free(c);
}

/* Labels from the nearest level on: NVLink domain, leaf, spine, core; NULL: no such label. */
static void put(uint32_t slot, const char *name, const char *domain, const char *leaf, const char *spine,
		const char *core)
{
	static const char *const keys[] = {"nvidia.com/gpu.clique", "fabric.topograph.run/tier-0",
					   "fabric.topograph.run/tier-1", "fabric.topograph.run/tier-2"};
	const char *values[] = {domain, leaf, spine, core};
	char in[512];
	uint32_t at = (uint32_t)snprintf(in, sizeof in, "%s", name), count = 0;
	struct frond_node node = {.slot = slot, .gpus = 8, .topology = FROND_NONE, .name = {0, at}};
	struct frond_pair pairs[4];
	for (uint32_t i = 0; i < 4; i++) {
		if (values[i] == NULL)
			continue;
		uint32_t key = (uint32_t)strlen(keys[i]), value = (uint32_t)strlen(values[i]);
		memcpy(in + at, keys[i], key);
		memcpy(in + at + key, values[i], value);
		pairs[count++] = (struct frond_pair){{at, key}, {at + key, value}};
		at += key + value;
	}
	int32_t code = abi->node_put(c->engine, &node, pairs, count, in, at, c->text, CLUSTER_TEXT - 1, &c->len);
	c->text[c->len] = 0;
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, code, c->text);
	struct cluster_node *mine = &c->nodes[slot];
	*mine = (struct cluster_node){.gpus = 8};
	snprintf(mine->name, sizeof mine->name, "%s", name);
	snprintf(mine->leaf, sizeof mine->leaf, "%s", leaf == NULL ? "none" : leaf);
	c->count = slot >= c->count ? slot + 1 : c->count;
	check(c);
}

static void expect(uint32_t members, const char *wishes, uint32_t rule, const char *nodes)
{
	uint32_t outcome = plan(c, &(struct wanted){.name = "a", .members = members, .gpus = 8, .wishes = wishes});
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, outcome, c->text);
	TEST_ASSERT_EQUAL_STRING(nodes, spots(c));
	TEST_ASSERT_EQUAL_UINT32(rule, c->plan.rule);
}

static void problems(const char *text)
{
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->problems(c->engine, c->text, CLUSTER_TEXT - 1, &c->len));
	c->text[c->len] = 0;
	TEST_ASSERT_EQUAL_STRING(text, c->text);
}

/* ---- NVLink domains --------------------------------------------------------------------------------------------- */

static void two_cliques(void) /* their nodes alternate by name */
{
	put(0, "n1", "q1", "l", "s", NULL);
	put(1, "n2", "q2", "l", "s", NULL);
	put(2, "n3", "q1", "l", "s", NULL);
	put(3, "n4", "q2", "l", "s", NULL);
}

static void test_nodes_of_a_domain_stand_together(void)
{
	two_cliques();
	TEST_ASSERT_EQUAL_UINT32(2, fabric->domain_count);
	TEST_ASSERT_EQUAL_UINT32(1, fabric->position[2]); /* n1 n3 n2 n4 */
	TEST_ASSERT_EQUAL_UINT32(2, fabric->position[1]);
	TEST_ASSERT_EQUAL_UINT32(fabric->domain_of[0], fabric->domain_of[1]);
	TEST_ASSERT_EQUAL_UINT32(fabric->domain_of[2], fabric->domain_of[3]);
	TEST_ASSERT_NOT_EQUAL(fabric->domain_of[0], fabric->domain_of[2]);
	problems("");
}

#define LATENCY "latency-sensitive=true"

static void test_latency_sensitive_wants_the_smallest_of_node_domain_and_leaf(void)
{
	two_cliques();
	expect(1, LATENCY, FROND_RULE_SINGLE_NODE, "n1");
	expect(2, LATENCY, FROND_RULE_NVLINK_DOMAIN, "n1 n3");
	expect(3, LATENCY, FROND_RULE_SAME_LEAF, "n1 n3 n2");
	expect(4, LATENCY, FROND_RULE_COMPLETE_LEAF, "n1 n3 n2 n4");
	expect(2, "", FROND_RULE_SAME_LEAF, "n1 n3"); /* others prefer a domain */
	occupy(c, "n3", 0x01);
	expect(2, LATENCY, FROND_RULE_NVLINK_DOMAIN, "n2 n4");
	expect(2, "", FROND_RULE_SAME_LEAF, "n2 n4");
	occupy(c, "n4", 0x01);
	expect(2, "", FROND_RULE_SAME_LEAF, "n1 n2"); /* and do without */
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS,
				 plan(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8, .wishes = LATENCY}));
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_NVLINK_DOMAIN, c->plan.rule);
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, c->plan.wait_ms); /* without end */
}

static void caps(const char *json)
{
	int32_t code = abi->config_put(c->engine, json, (uint32_t)strlen(json), c->text, CLUSTER_TEXT - 1, &c->len);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, code);
}

static void test_caps_per_leaf_count_for_domains_too(void)
{
	two_cliques();
	caps("{\"topologyConstraints\":{\"maxGPUsPerLeaf\":8}}"); /* one whole node of the only leaf: never two */
	TEST_ASSERT_EQUAL_UINT32(FROND_NEVER,
				 plan(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8, .wishes = LATENCY}));
	put(4, "n5", "q3", "m", "s", NULL); /* two leaves hold it, one node each: wider than a leaf */
	TEST_ASSERT_EQUAL_UINT32(FROND_REFUSED,
				 plan(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8, .wishes = LATENCY}));
	caps("{\"topologyConstraints\":{\"maxNodesPerLeaf\":1}}");
	TEST_ASSERT_EQUAL_UINT32(FROND_REFUSED,
				 plan(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8, .wishes = LATENCY}));
	caps("{\"topologyConstraints\":{\"maxNodesPerLeaf\":2}}");
	expect(2, LATENCY, FROND_RULE_NVLINK_DOMAIN, "n1 n3");
	caps("{\"topologyConstraints\":{\"maxGPUsPerLeaf\":16}}");
	expect(2, LATENCY, FROND_RULE_NVLINK_DOMAIN, "n1 n3");
}

static void test_a_domain_may_be_preferred(void)
{
	two_cliques();
	expect(2, "preferred-domain=q2", FROND_RULE_SAME_LEAF, "n2 n4");
	expect(1, "preferred-domain=q2", FROND_RULE_SINGLE_NODE, "n2");
	expect(3, "preferred-domain=q2", FROND_RULE_SAME_LEAF, "n1 n3 n2"); /* it does not fit there */
	TEST_ASSERT_EQUAL_UINT32(0, c->plan.flags);
	expect(2, "preferred-domain=q3", FROND_RULE_SAME_LEAF, "n1 n3");
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_UNKNOWN_DOMAIN, c->plan.flags);
}

static void test_a_domain_ends_with_its_leaf(void)
{
	put(0, "n1", "q", "l1", "s", NULL);
	put(1, "n2", "q", "l2", "s", NULL);
	TEST_ASSERT_EQUAL_UINT32(2, fabric->domain_count);
	TEST_ASSERT_EQUAL_UINT32(FROND_REFUSED,
				 plan(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8, .wishes = LATENCY}));
}

static void test_nodes_without_a_domain_are_in_none(void)
{
	put(0, "n1", NULL, "l", "s", NULL);
	put(1, "n2", NULL, "l", "s", NULL);
	put(2, "n3", "q", NULL, NULL, NULL); /* a domain without a leaf is none */
	TEST_ASSERT_EQUAL_UINT32(0, fabric->domain_count);
	expect(2, LATENCY, FROND_RULE_COMPLETE_LEAF, "n1 n2"); /* to have no domain in common is not to share one */
}

/* ---- cores ------------------------------------------------------------------------------------------------------ */

/* Three spines of two nodes each: two under one core, one under another. */
static void two_cores(void)
{
	static const char *const leaves_of[] = {"l1", "l1", "l2", "l2", "l3", "l3"};
	static const char *const spines_of[] = {"s1", "s1", "s2", "s2", "s3", "s3"};
	for (uint32_t slot = 0; slot < 6; slot++) {
		char name[8];
		snprintf(name, sizeof name, "n%u", (unsigned)slot + 1);
		put(slot, name, NULL, leaves_of[slot], spines_of[slot], slot < 4 ? "c1" : "c2");
	}
}

static void test_spines_of_two_cores_are_not_adjacent(void)
{
	two_cores();
	TEST_ASSERT_TRUE(spine_adjacent(fabric, 1));
	TEST_ASSERT_FALSE(spine_adjacent(fabric, 2));
	expect(4, "", FROND_RULE_ADJACENT_SPINES, "n1 n2 n3 n4");
	occupy(c, "n1", 0x01); /* s2 and s3 are next to each other, but under two cores */
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, plan(c, &(struct wanted){.name = "a", .members = 4, .gpus = 8}));
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_ADJACENT_SPINES, c->plan.rule);
	problems("");
}

static void test_a_gang_wider_than_a_core_has_no_shape(void)
{
	two_cores();
	expect(6, "", FROND_RULE_ADJACENT_SPINES, "n1 n2 n3 n4 n5 n6");
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_RELAXED | FROND_PLAN_SHAPELESS, c->plan.flags);
}

static void test_a_core_may_be_preferred(void)
{
	two_cores();
	expect(2, "preferred-domain=c2", FROND_RULE_COMPLETE_LEAF, "n5 n6");
	expect(4, "preferred-domain=c1", FROND_RULE_ADJACENT_SPINES, "n1 n2 n3 n4");
	expect(4, "preferred-domain=c2", FROND_RULE_ADJACENT_SPINES, "n1 n2 n3 n4");
}

static void test_a_spine_with_two_cores_is_named_and_keeps_its_nodes(void)
{
	two_cores();
	put(1, "n2", NULL, "l1", "s1", "c2");
	problems("spine s1 has two parents, c1 and c2; it is scheduled without a core\n");
	TEST_ASSERT_EQUAL_UINT32(0, stats(c).nodes_without_leaf);
	expect(2, "preferred-domain=l1", FROND_RULE_COMPLETE_LEAF, "n1 n2");
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_nodes_of_a_domain_stand_together);
	RUN_TEST(test_latency_sensitive_wants_the_smallest_of_node_domain_and_leaf);
	RUN_TEST(test_caps_per_leaf_count_for_domains_too);
	RUN_TEST(test_a_domain_may_be_preferred);
	RUN_TEST(test_a_domain_ends_with_its_leaf);
	RUN_TEST(test_nodes_without_a_domain_are_in_none);
	RUN_TEST(test_spines_of_two_cores_are_not_adjacent);
	RUN_TEST(test_a_gang_wider_than_a_core_has_no_shape);
	RUN_TEST(test_a_core_may_be_preferred);
	RUN_TEST(test_a_spine_with_two_cores_is_named_and_keeps_its_nodes);
	return UNITY_END();
}
