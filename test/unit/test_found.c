/* SPDX-License-Identifier: Apache-2.0 */
/* What a review of the engine found wrong: each with the smallest cluster that showed it, through the ABI. */
#include "cluster.h"

enum { SPINES_OF_THEIR_OWN = 5000, MOVES_MAX = 16, RESERVES_MAX = 100000 };

#define PCIE_NODES                                                                                                     \
	"defaults: {model: PCIE-8}\n"                                                                                  \
	"spines:\n"                                                                                                    \
	"- name: spine-1\n"                                                                                            \
	"  leaves:\n"                                                                                                  \
	"  - name: leaf-1\n"                                                                                           \
	"    nodes: [node-1, node-2, node-3, node-4]\n"

static struct cluster *c;
static struct frond_moves out;
static struct frond_move moves[MOVES_MAX];
static char sentence[FROND_TEXT_MAX + 1];

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

/* A bound member of a gang; mask 0: held by count. */
static void bind(const char *gang, uint32_t rank, const char *node, uint32_t gpus, uint32_t mask)
{
	uint32_t slot = slot_of(c, node);
	struct frond_pod pod = {.pod = key_of(gang, rank + 1),
				.slot = slot,
				.gpus = gpus,
				.gpu_mask = mask,
				.gang = key_of(gang, UINT64_MAX),
				.rank = rank};
	int32_t code = abi->pod_put(c->engine, &pod, "", 0, c->text, CLUSTER_TEXT - 1, &c->len);
	c->text[c->len] = 0;
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, code, c->text);
	check(c);
}

static void promise(const char *gang, uint32_t members, int32_t priority)
{
	struct frond_request request = {.gang = key_of(gang, UINT64_MAX),
					.members = members,
					.min_member = members,
					.only_slot = FROND_NONE,
					.priority = priority};
	int32_t code = abi->gang_put(c->engine, &request, NULL, "", 0, c->text, CLUSTER_TEXT - 1, &c->len);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, code);
	check(c);
}

static void recover(const char *gang)
{
	struct frond_key key = key_of(gang, UINT64_MAX);
	remember(c);
	uint32_t len = 0;
	int32_t code = abi->recover(c->engine, &key, NULL, 0, &out, moves, MOVES_MAX, sentence, FROND_TEXT_MAX, &len);
	sentence[len] = 0;
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, code, sentence);
	unchanged(c);
}

/* A per-host label configured as the spine looks like this. */
static void test_more_spines_than_there_is_room_for_are_a_problem_and_not_a_crash(void)
{
	c = calloc(1, sizeof *c);
	TEST_ASSERT_NOT_NULL(c);
	engine_make(c, SPINES_OF_THEIR_OWN, CLUSTER_PODS, "", "");
	for (uint32_t slot = 0; slot < SPINES_OF_THEIR_OWN; slot++) {
		char node[32], leaf[32], spine[32];
		snprintf(node, sizeof node, "node-%u", (unsigned)slot + 1);
		snprintf(leaf, sizeof leaf, "leaf-%u", (unsigned)slot + 1);
		snprintf(spine, sizeof spine, "spine-%u", (unsigned)slot + 1);
		TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, node_try(c, slot, node, 8, 0, 0, 0, leaf, spine), c->text);
	}
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->problems(c->engine, c->text, CLUSTER_TEXT - 1, &c->len));
	c->text[c->len] = 0;
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(c->text, "there are more than "), c->text);
	struct frond_stats seen = stats(c);
	TEST_ASSERT_EQUAL_UINT32(SPINES_OF_THEIR_OWN, seen.nodes);
	TEST_ASSERT_GREATER_THAN_UINT32(0, seen.nodes_without_leaf);
	TEST_ASSERT_EQUAL_UINT32(SPINES_OF_THEIR_OWN, seen.spines + seen.nodes_without_leaf);
	plan(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8, .wishes = "topology-mode=Preferred"});
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, c->plan.outcome, c->text);
	plan(c, &(struct wanted){.name = "b", .members = 1, .gpus = 8, .only = SPINES_OF_THEIR_OWN}); /* has no leaf */
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, c->plan.outcome, c->text);
}

/* Sizes differ, so the members are placed first-fit decreasing, which knows sizes up to a node's 16 GPUs. */
static void test_a_lost_member_with_more_gpus_than_any_node_has_never_fits_again(void)
{
	cluster("spine:1 leaf:1 node:8 gpu:8", "");
	bind("a", 0, "node-1", FROND_GPUS_MAX + 1, 0);
	bind("a", 1, "node-2", 1, 0);
	node_flags(c, "node-1", FROND_NODE_DOWN);
	recover("a");
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_NEVER, out.outcome, sentence);
	TEST_ASSERT_EQUAL_UINT32(0, out.count);
}

/* A reservation that books nobody still logs the gang's promise and the generation. */
static void test_reserving_only_pinned_members_inside_a_what_if_ends_at_the_limit(void)
{
	cluster("spine:1 leaf:1 node:2 gpu:8", "");
	bind("a", 0, "node-1", 1, 1);
	remember(c);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->what_if(c->engine));
	struct frond_request request = {
		.gang = key_of("a", UINT64_MAX), .members = 1, .min_member = 1, .only_slot = FROND_NONE};
	struct frond_member member = {.pod = key_of("a", 1), .gpus = 1, .pinned_slot = 0};
	struct frond_place spot = {.slot = 0, .gpu_mask = 1};
	int32_t code = FROND_OK;
	for (uint32_t i = 0; i < RESERVES_MAX && code == FROND_OK; i++)
		code = abi->reserve(c->engine, &request, &member, &spot);
	TEST_ASSERT_EQUAL_INT32(FROND_LIMIT, code);
	check(c);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->undo(c->engine));
	unchanged(c);
}

/* leaf-1 has 8 free GPUs a node and leaf-2 two, but a job may take only 3 nodes, or 24 GPUs, of a leaf. */
static void places_under(const char *args, const char *strategy)
{
	static const char *const modes[] = {"Required", "Preferred", "Ignore"};
	cluster("spine:1 leaf:2 node:4 gpu:8", args);
	for (uint32_t slot = 4; slot < 8; slot++)
		occupy_by_count(c, c->nodes[slot].name, 6);
	for (uint32_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		char wishes[128];
		snprintf(wishes, sizeof wishes, "placement-strategy=%s topology-mode=%s", strategy, modes[i]);
		plan(c, &(struct wanted){.name = "a", .members = 30, .gpus = 1, .wishes = wishes});
		TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, c->plan.outcome, c->text);
		TEST_ASSERT_BITS_LOW(FROND_PLAN_RELAXED, c->plan.flags);
		TEST_ASSERT_EQUAL_STRING("leaf-1:24 leaf-2:6", leaves(c));
	}
}

static void test_consolidated_places_under_the_caps_of_a_leaf_what_balanced_places(void)
{
	static const char *const caps[] = {"{\"topologyConstraints\":{\"maxNodesPerLeaf\":3}}",
					   "{\"topologyConstraints\":{\"maxGPUsPerLeaf\":24}}"};
	for (uint32_t i = 0; i < sizeof caps / sizeof *caps; i++) {
		places_under(caps[i], "balanced");
		places_under(caps[i], "consolidated");
	}
}

/* After a restart gangs are known by their bound pods alone; a Required claim would refuse sets without NVLink. */
static void test_a_gang_that_says_nothing_is_recovered_on_nodes_without_nvlink(void)
{
	cluster(PCIE_NODES, "");
	bind("a", 0, "node-1", 2, 0);
	bind("a", 1, "node-2", 2, 0);
	node_flags(c, "node-1", FROND_NODE_DOWN);
	recover("a");
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, out.outcome, sentence);
	TEST_ASSERT_EQUAL_UINT32(1, out.count);
	TEST_ASSERT_EQUAL_UINT32(0, moves[0].rank);
	struct frond_moves silent = out;
	struct frond_move move = moves[0];
	promise("a", 2, 0); /* saying nothing in words is the same */
	recover("a");
	TEST_ASSERT_EQUAL_MEMORY(&silent, &out, sizeof out);
	TEST_ASSERT_EQUAL_MEMORY(&move, &moves[0], sizeof move);
}

static void expect_gang(const char *name, uint32_t bound)
{
	struct frond_gang gang;
	struct frond_key key = key_of(name, UINT64_MAX);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->gang_get(c->engine, &key, &gang));
	TEST_ASSERT_EQUAL_UINT32(FROND_GANG_BOUND, gang.state);
	TEST_ASSERT_EQUAL_UINT32(bound, gang.bound);
	TEST_ASSERT_EQUAL_UINT32(bound, gang.members);
	TEST_ASSERT_EQUAL_UINT32(bound, gang.min_member);
	TEST_ASSERT_EQUAL_UINT32(0, gang.lost);
	TEST_ASSERT_EQUAL_INT32(1000, gang.priority);
}

/* What drift under deviceExit annotate looks like: the device plugin took other GPUs than the plan said. */
static void test_a_bound_pod_with_other_devices_keeps_its_gang_and_nobody_is_lost(void)
{
	cluster("spine:1 leaf:1 node:4 gpu:8", "");
	bind("one", 0, "node-1", 2, 0x3);
	promise("one", 1, 1000);
	bind("one", 0, "node-1", 2, 0xc);
	expect_gang("one", 1);

	bind("two", 0, "node-2", 2, 0x3);
	bind("two", 1, "node-3", 2, 0x3);
	promise("two", 2, 1000);
	bind("two", 0, "node-2", 2, 0xc);
	expect_gang("two", 2);

	place(c, &(struct wanted){
			 .name = "new", .members = 1, .gpus = 2, .priority = 1000, .only = 1 + slot_of(c, "node-4")});
	TEST_ASSERT_EQUAL_HEX32(0x3, c->places[0].gpu_mask);
	bind("new", 0, "node-4", 2, 0xc); /* reserved, and then bound with others */
	expect_gang("new", 1);
	TEST_ASSERT_EQUAL_UINT32(8, stats(c).gpus_bound);
	TEST_ASSERT_EQUAL_UINT32(0, stats(c).gpus_reserved);
	plan(c, &(struct wanted){.name = "next", .members = 1, .gpus = 6, .only = 1 + slot_of(c, "node-1")});
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, c->plan.outcome, c->text);
	TEST_ASSERT_EQUAL_HEX32(0xf3, c->places[0].gpu_mask);
}

static void test_a_gpu_that_its_node_no_longer_has_is_a_loss(void)
{
	cluster("spine:1 leaf:1 node:4 gpu:8", "");
	bind("a", 0, "node-1", 2, 0xc0);
	bind("b", 0, "node-1", 2, 0x3);
	c->nodes[slot_of(c, "node-1")].gpus = 4;
	node_refresh(c, slot_of(c, "node-1"));
	recover("a");
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, out.outcome, sentence);
	TEST_ASSERT_EQUAL_UINT32(1, out.count);
	TEST_ASSERT_EQUAL_UINT32(1, out.lower_bound);
	TEST_ASSERT_EQUAL_UINT32(slot_of(c, "node-1"), moves[0].from);
	TEST_ASSERT_EQUAL_UINT32(slot_of(c, "node-1"), moves[0].to); /* two of its four are free: the tightest fit */
	TEST_ASSERT_EQUAL_HEX32(0xc, moves[0].gpu_mask);
	recover("b"); /* its GPUs are still there */
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, out.outcome, sentence);
	TEST_ASSERT_EQUAL_UINT32(0, out.count);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_more_spines_than_there_is_room_for_are_a_problem_and_not_a_crash);
	RUN_TEST(test_a_lost_member_with_more_gpus_than_any_node_has_never_fits_again);
	RUN_TEST(test_reserving_only_pinned_members_inside_a_what_if_ends_at_the_limit);
	RUN_TEST(test_consolidated_places_under_the_caps_of_a_leaf_what_balanced_places);
	RUN_TEST(test_a_gang_that_says_nothing_is_recovered_on_nodes_without_nvlink);
	RUN_TEST(test_a_bound_pod_with_other_devices_keeps_its_gang_and_nobody_is_lost);
	RUN_TEST(test_a_gpu_that_its_node_no_longer_has_is_a_loss);
	return UNITY_END();
}
