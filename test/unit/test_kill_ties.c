/* SPDX-License-Identifier: Apache-2.0 */
/* The last steps of reference 3.4, where everything before them is equal: positions, ranks, and which GPUs. */
#include "cluster.h"

/* Every leaf has the same score, so that steps 6 and 7 decide. */
#define EVEN                                                                                                           \
	"{\"scoringWeights\": {\"resourceAvailability\": 0, \"topologyAlignment\": 0, \"domainUtilization\": 0, "      \
	"\"historicalPerformance\": 1}}"

static struct cluster *c;

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

static void expect(const struct wanted *w, const char *nodes)
{
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, plan(c, w), c->text);
	TEST_ASSERT_EQUAL_STRING(nodes, spots(c));
}

/*
 * Two leaves of two nodes; a member takes three GPUs, so a node could hold two, a leaf four, and five need both leaves.
 * Every node and leaf is in use already: nothing new is broken up, and what is left is the same for every candidate.
 * Inside a leaf the tighter node comes first. Members in leaf-1 and leaf-2 as candidates: 4 + 1, 3 + 2, 2 + 3.
 */
static void worn(uint32_t first, uint32_t second, uint32_t third, uint32_t fourth)
{
	cluster("spine:1 leaf:2 node:2 gpu:8", EVEN);
	occupy(c, "node-1", first);
	occupy(c, "node-2", second);
	occupy(c, "node-3", third);
	occupy(c, "node-4", fourth);
}

#define TWO 0x03u /* room for two members */
#define ONE 0x1fu /* for one */

static void test_a_later_candidate_wins_when_its_nodes_are_lower(void)
{
	const struct wanted five = {.name = "a", .members = 5, .gpus = 3};
	worn(TWO, TWO, TWO, ONE); /* 4 + 1 takes 1 2 4, and 3 + 2 takes 1 2 3 4 */
	expect(&five, "node-1 node-1 node-2 node-3 node-4");
	worn(TWO, TWO, ONE, TWO); /* 4 + 1 takes 1 2 3, which is a beginning of 1 2 3 4 */
	expect(&five, "node-1 node-1 node-2 node-2 node-3");
	worn(ONE, TWO, TWO, ONE); /* 3 + 2 takes all four, 2 + 3 too: lower ranks decide */
	expect(&five, "node-1 node-2 node-2 node-3 node-4");
	worn(TWO, ONE, ONE, TWO); /* likewise */
	expect(&five, "node-1 node-1 node-2 node-3 node-4");
}

/* The GPUs of two nodes look alike by what is free and differ by who holds the rest: `spread` asks for the load. */
static void test_each_node_spreads_by_its_own_load(void)
{
	static const char fabric[] =
		"apiVersion: topology.scheduler/v1alpha1\n"
		"kind: Fabric\n"
		"defaults: {model: pairs}\n"
		"spines:\n"
		"- {name: s, leaves: [{name: l, nodes: [a, b]}]}\n"
		"models:\n"
		"- {name: pairs, gpus: 4, numa: [0, 0, 0, 0], links: [[0,50,0,0],[50,0,0,0],[0,0,0,50],[0,0,50,0]]}\n";
	cluster(fabric, "");
	occupy(c, "a", 0x01);
	unhealthy(c, "b", 0x01);
	expect(&(struct wanted){.name = "a",
				.members = 2,
				.gpus = 1,
				.wishes = "placement-strategy=distributed",
				.claim = "{\"devices\": {\"count\": 1, \"policy\": \"spread\"}}"},
	       "a b");
	TEST_ASSERT_EQUAL_HEX32(0x04, c->places[0].gpu_mask); /* the island of 0 and 1 has a load of one */
	TEST_ASSERT_EQUAL_HEX32(0x02, c->places[1].gpu_mask); /* nobody holds anything: the lowest */
}

/* A node of eight GPUs in leaf l of spine s, in an NVLink domain. */
static void put(uint32_t slot, const char *name, const char *domain)
{
	static const char *const labels[] = {"nvidia.com/gpu.clique", "fabric.topograph.run/tier-0", "l",
					     "fabric.topograph.run/tier-1", "s"};
	char in[256];
	struct frond_span spans[7];
	uint32_t at = 0;
	for (uint32_t i = 0; i < 7; i++) {
		const char *word = i == 0 ? name : i == 2 ? domain : labels[i == 1 ? 0 : i - 2];
		spans[i] = (struct frond_span){at, (uint32_t)strlen(word)};
		memcpy(in + at, word, spans[i].len);
		at += spans[i].len;
	}
	struct frond_pair pairs[3] = {{spans[1], spans[2]}, {spans[3], spans[4]}, {spans[5], spans[6]}};
	struct frond_node node = {.slot = slot, .gpus = 8, .topology = FROND_NONE, .name = spans[0]};
	int32_t code = abi->node_put(c->engine, &node, pairs, 3, in, at, c->text, CLUSTER_TEXT - 1, &c->len);
	c->text[c->len] = 0;
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, code, c->text);
	c->nodes[slot] = (struct cluster_node){.gpus = 8};
	snprintf(c->nodes[slot].name, sizeof c->nodes[slot].name, "%s", name);
	c->count = slot + 1;
	check(c);
}

/* Two domains of one leaf, their nodes in fabric order: a1 a2, b1 b2. A gang of 4 and 8 needs two nodes. */
static void test_members_of_several_sizes_take_one_nvlink_domain(void)
{
	static const uint32_t sizes[] = {4, 8};
	const struct wanted mixed = {.name = "m", .members = 2, .sizes = sizes, .wishes = "latency-sensitive=true"};
	c = calloc(1, sizeof *c);
	TEST_ASSERT_NOT_NULL(c);
	engine_make(c, 8, 64, "", "");
	put(0, "a1", "qa");
	put(1, "a2", "qa");
	put(2, "b1", "qb");
	put(3, "b2", "qb");
	expect(&mixed, "a2 a1"); /* the largest first */
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_NVLINK_DOMAIN, c->plan.rule);
	occupy(c, "a1", 0x01);
	expect(&mixed, "a1 a2");
	occupy(c, "a2", 0x01);
	expect(&mixed, "b2 b1"); /* qa has no room for the eight */
	occupy(c, "b1", 0x01);
	expect(&(struct wanted){.name = "p", .members = 1, .gpus = 4, .wishes = "preferred-domain=qb"}, "b1");
	occupy(c, "b2", 0x1f);
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, plan(c, &mixed)); /* b1 alone is not enough, two domains are not one */
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_NVLINK_DOMAIN, c->plan.rule);
}

/* Leaf scores by hand: 0.4 free/total + 0.3 ours/free + 0.2 used/total + 0.1. */
static void test_members_of_several_sizes_on_one_node_take_the_leaf_with_the_higher_score(void)
{
	static const uint32_t sizes[] = {4, 2};
	cluster("spine:1 leaf:2 node:2 gpu:8", "");
	occupy(c, "node-4", 0xff); /* leaf-1 4,000 + 1,125 + 0 + 1,000; leaf-2 2,000 + 2,250 + 1,000 + 1,000 */
	expect(&(struct wanted){.name = "m", .members = 2, .sizes = sizes}, "node-3 node-3");
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_SINGLE_NODE, c->plan.rule);
	occupy(c, "node-3", 0x01); /* leaf-2 1,750 + 2,571 + 1,125 + 1,000: more still */
	expect(&(struct wanted){.name = "m", .members = 2, .sizes = sizes}, "node-3 node-3");
	occupy(c, "node-3", 0x06); /* five are left */
	expect(&(struct wanted){.name = "m", .members = 2, .sizes = sizes}, "node-1 node-1");
}

/* Three of seven are bound in leaf-1. The fullest leaf has three whatever happens, so leaf-2 may have three as well. Scores
 * of a leaf for k of its three nodes: 0.4 + 0.3 k/3 + 0.2 + 0.1; 3 + 1 makes 38,000 and 2 + 2 makes 36,000. */
static void test_distributed_counts_bound_members_in_the_fullest_leaf(void)
{
	uint32_t pinned[7] = {0, 1, 2, FROND_NONE, FROND_NONE, FROND_NONE, FROND_NONE};
	cluster("spine:1 leaf:3 node:3 gpu:8", "");
	for (uint32_t rank = 0; rank < 3; rank++)
		TEST_ASSERT_EQUAL_INT32(
			FROND_OK, pod_try(c, key_of("a", rank + 1), rank, 8, 0xff, "ns/a", key_of("a", UINT64_MAX)));
	expect(&(struct wanted){.name = "a",
				.members = 7,
				.gpus = 8,
				.pinned = pinned,
				.wishes = "placement-strategy=distributed"},
	       "node-1 node-2 node-3 node-4 node-5 node-6 node-7");
	TEST_ASSERT_EQUAL_UINT32(FROND_RULE_ADJACENT_LEAVES, c->plan.rule);
}

/* A pod that was held by count takes a good GPU away, until it says that it has the bad one. */
static void test_a_pod_that_turns_out_to_hold_a_bad_gpu_gives_a_good_one_back(void)
{
	const struct wanted seven = {.name = "a", .members = 1, .gpus = 7};
	cluster("spine:1 leaf:1 node:1 gpu:8", "");
	unhealthy(c, "node-1", 0x01);
	struct frond_key pod = occupy_by_count(c, "node-1", 1);
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, plan(c, &seven));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, pod_try(c, pod, 0, 1, 0x01, "", (struct frond_key){0, 0}));
	check(c);
	expect(&seven, "node-1");
	TEST_ASSERT_EQUAL_HEX32(0xfe, c->places[0].gpu_mask);
}

/* The bound member sits behind a slow link, so the other one may not be in another leaf, relaxed or not. */
static void test_members_of_several_sizes_do_not_leave_a_bound_one_behind_a_slow_link(void)
{
	static const uint32_t sizes[] = {8, 4}, pinned[] = {0, FROND_NONE};
	struct wanted mixed = {.name = "a",
			       .members = 2,
			       .sizes = sizes,
			       .pinned = pinned,
			       .wishes = "topology-mode=Preferred network-bandwidth=200Gb"};
	cluster("apiVersion: topology.scheduler/v1alpha1\n"
		"kind: Fabric\n"
		"defaults: {gpus: 8}\n"
		"spines:\n"
		"- {name: s, leaves: [{name: l1, uplinkGbps: 100, nodes: [a1, a2]}, {name: l2, nodes: [b1, b2]}]}\n",
		"");
	TEST_ASSERT_EQUAL_INT32(FROND_OK, pod_try(c, key_of("a", 1), 0, 8, 0xff, "ns/a", key_of("a", UINT64_MAX)));
	expect(&mixed, "a1 a2");
	occupy(c, "a2", 0xff);
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, plan(c, &mixed));
	mixed.wishes = "topology-mode=Preferred network-bandwidth=100Gb";
	expect(&mixed, "a1 b1");
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_RELAXED, c->plan.flags);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_a_later_candidate_wins_when_its_nodes_are_lower);
	RUN_TEST(test_each_node_spreads_by_its_own_load);
	RUN_TEST(test_members_of_several_sizes_take_one_nvlink_domain);
	RUN_TEST(test_members_of_several_sizes_on_one_node_take_the_leaf_with_the_higher_score);
	RUN_TEST(test_distributed_counts_bound_members_in_the_fullest_leaf);
	RUN_TEST(test_a_pod_that_turns_out_to_hold_a_bad_gpu_gives_a_good_one_back);
	RUN_TEST(test_members_of_several_sizes_do_not_leave_a_bound_one_behind_a_slow_link);
	return UNITY_END();
}
