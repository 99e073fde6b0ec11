/* SPDX-License-Identifier: Apache-2.0 */
/* Step 4 of reference 3.4 before the bottleneck: fewest GPU models, fewest NVLink domains, in a leaf and between candidates. */
#include "cluster.h"
#include "engine/engine.h"

static struct cluster *c;

void setUp(void)
{
	c = calloc(1, sizeof *c);
	TEST_ASSERT_NOT_NULL(c);
	engine_make(c, 128, 256, "", "");
}

void tearDown(void)
{
	cluster_free(c);
}

/* A node of 4 GPUs; domain and model may be NULL. */
static void put(uint32_t slot, const char *domain, const char *leaf, const char *model)
{
	static const char *const keys[] = {"fabric.topograph.run/tier-0", "fabric.topograph.run/tier-1",
					   "nvidia.com/gpu.clique"};
	const char *values[] = {leaf, "spine-1", domain};
	char in[512];
	uint32_t at = (uint32_t)snprintf(in, sizeof in, "n%u", (unsigned)slot + 1), count = 0;
	struct frond_node node = {.slot = slot, .gpus = 4, .topology = FROND_NONE, .name = {0, at}};
	struct frond_pair pairs[3];
	for (uint32_t i = 0; i < 3; i++) {
		if (values[i] == NULL)
			continue;
		uint32_t key = (uint32_t)strlen(keys[i]), value = (uint32_t)strlen(values[i]);
		memcpy(in + at, keys[i], key);
		memcpy(in + at + key, values[i], value);
		pairs[count++] = (struct frond_pair){{at, key}, {at + key, value}};
		at += key + value;
	}
	if (model != NULL) {
		node.model = (struct frond_span){at, (uint32_t)strlen(model)};
		memcpy(in + at, model, node.model.len);
		at += node.model.len;
	}
	int32_t code = abi->node_put(c->engine, &node, pairs, count, in, at, c->text, CLUSTER_TEXT - 1, &c->len);
	c->text[c->len] = 0;
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, code, c->text);
	struct cluster_node *mine = &c->nodes[slot];
	*mine = (struct cluster_node){.gpus = 4};
	snprintf(mine->name, sizeof mine->name, "n%u", (unsigned)slot + 1);
	snprintf(mine->leaf, sizeof mine->leaf, "%s", leaf);
	c->count = slot >= c->count ? slot + 1 : c->count;
	check(c);
}

/* A leaf of GB200 nodes, one for each letter, which names its NVLink domain; '-': in none. */
static void put_leaf(uint32_t slot, const char *leaf, const char *letters)
{
	for (; *letters != 0; letters++, slot++) {
		char domain[] = {*letters, 0};
		put(slot, *letters == '-' ? NULL : domain, leaf, "GB200");
	}
}

static void expect(const struct wanted *wanted, const char *nodes)
{
	uint32_t outcome = plan(c, wanted);
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, outcome, c->text);
	TEST_ASSERT_EQUAL_STRING(nodes, spots(c));
}

static void expect_whole(uint32_t members, const char *wishes, const char *nodes)
{
	expect(&(struct wanted){.name = "a", .members = members, .gpus = 4, .wishes = wishes}, nodes);
}

/* ---- in a leaf -------------------------------------------------------------------------------------------------------- */

static void test_16_members_go_to_the_domain_that_holds_them(void)
{
	for (uint32_t slot = 0; slot < 28; slot++)
		put(slot, slot < 10 ? "small" : "large", "leaf-1", "GB200");
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, plan(c, &(struct wanted){.name = "a", .members = 16, .gpus = 4}));
	for (uint32_t i = 0; i < 16; i++)
		TEST_ASSERT_EQUAL_UINT32(10 + i, c->places[i].slot);
	TEST_ASSERT_EQUAL_UINT32(1, c->engine->core.fabric.domain_count - 1);
}

static void test_the_smallest_domain_that_holds_all_is_taken(void)
{
	put_leaf(0, "leaf-1", "aaaabbbcc");
	expect_whole(2, "", "n8 n9");
	expect_whole(3, "", "n5 n6 n7");
	expect_whole(4, "", "n1 n2 n3 n4");
}

static void test_the_largest_domains_come_first_and_the_last_one_is_tight(void)
{
	put_leaf(0, "leaf-1", "aabbbbcccd");
	expect_whole(5, "", "n3 n4 n5 n6 n10");
	expect_whole(6, "", "n1 n2 n3 n4 n5 n6");
	expect_whole(8, "", "n3 n4 n5 n6 n7 n8 n9 n10");
}

static void test_domains_count_with_the_room_that_they_have_today(void)
{
	put_leaf(0, "leaf-1", "aaaabbb");
	occupy(c, "n1", 0x01);
	occupy(c, "n2", 0x01);
	expect_whole(3, "", "n5 n6 n7");
	expect_whole(2, "", "n3 n4");
}

static void test_nodes_of_a_domain_need_not_be_neighbours(void)
{
	put_leaf(0, "leaf-1", "abababa");
	expect_whole(3, "", "n2 n4 n6");
	expect_whole(4, "", "n1 n3 n5 n7");
}

static void test_nodes_in_no_domain_come_last(void)
{
	put_leaf(0, "leaf-1", "--aabb");
	expect_whole(2, "", "n3 n4");
	expect_whole(4, "", "n3 n4 n5 n6");
	expect_whole(5, "", "n3 n4 n5 n6 n1"); /* where domains stand together, they also stand last */
}

/* Two nodes hold the four members; the domain that has two such nodes, not the one with more room on more of them. */
static void test_fewest_nodes_come_before_fewest_domains(void)
{
	put_leaf(0, "leaf-1", "aaaabb");
	for (uint32_t slot = 0; slot < 4; slot++) {
		char name[8];
		snprintf(name, sizeof name, "n%u", (unsigned)slot + 1);
		occupy(c, name, 0x7);
	}
	const struct wanted gang = {.name = "a", .members = 8, .gpus = 1, .wishes = "placement-strategy=consolidated"};
	expect(&gang, "n5 n5 n5 n5 n6 n6 n6 n6");
	put_leaf(6, "leaf-1", "c");
	put_leaf(7, "leaf-1", "c");
	expect(&gang, "n5 n5 n5 n5 n6 n6 n6 n6"); /* of two domains that hold them on two nodes the first */
	occupy(c, "n6", 0x1);
	expect(&gang, "n7 n7 n7 n7 n8 n8 n8 n8");
}

/* The domain with the least room would hold all, but on five nodes; on two, one of its and one of the other's. */
static void test_a_domain_that_needs_more_nodes_does_not_hold_the_gang(void)
{
	put_leaf(0, "leaf-1", "aaaaabb");
	for (uint32_t slot = 0; slot < 5; slot++) {
		char name[8];
		snprintf(name, sizeof name, "n%u", (unsigned)slot + 1);
		occupy(c, name, 0x7);
	}
	expect(&(struct wanted){.name = "a", .members = 5, .gpus = 1, .wishes = "placement-strategy=consolidated"},
	       "n6 n6 n6 n6 n7");
}

static void test_members_follow_the_pinned_ones_into_their_domain(void)
{
	static const uint32_t pinned[] = {1, FROND_NONE, FROND_NONE};
	static const uint32_t loose[] = {5, FROND_NONE, FROND_NONE};
	put_leaf(0, "leaf-1", "aaabb-");
	const struct wanted gang = {.name = "a", .members = 3, .gpus = 2, .pinned = pinned};
	expect(&gang, "n2 n1 n1"); /* b has less room, and would hold them, too */
	const struct wanted other = {.name = "a", .members = 3, .gpus = 2, .pinned = loose};
	expect(&other, "n6 n6 n6");
}

static void test_one_pod_does_not_mind_domains(void)
{
	put_leaf(0, "leaf-1", "aab");
	expect_whole(1, "", "n1");
}

/* ---- between candidates ------------------------------------------------------------------------------------------------ */

static void test_the_leaf_with_fewer_domains_is_taken(void)
{
	put_leaf(0, "leaf-1", "aabb");
	put_leaf(4, "leaf-2", "cccd");
	expect_whole(3, "", "n5 n6 n7");
	expect_whole(2, "", "n1 n2");
}

static void test_a_leaf_without_domains_counts_as_one(void)
{
	put_leaf(0, "leaf-1", "ab");
	put_leaf(2, "leaf-2", "--");
	put_leaf(4, "leaf-3", "-c");
	expect_whole(2, "", "n3 n4");
	occupy(c, "n4", 0x01);
	expect_whole(2, "", "n1 n2");
}

static void test_a_later_candidate_may_have_lower_nodes(void)
{
	put_leaf(0, "leaf-1", "abb");
	put_leaf(3, "leaf-2", "ccd"); /* 2 + 2 and 1 + 3 are worse than 2 + 2 in two domains, 3 + 1 in three */
	expect_whole(4, "", "n2 n3 n4 n5");
}

static void test_without_domains_nothing_is_different(void)
{
	put_leaf(0, "leaf-1", "--");
	put_leaf(2, "leaf-2", "--");
	expect_whole(2, "placement-strategy=distributed topology-mode=Ignore", "n1 n3");
	put_leaf(4, "leaf-3", "aa");
	expect_whole(2, "placement-strategy=distributed topology-mode=Ignore", "n1 n3");
}

/* ---- models --------------------------------------------------------------------------------------------------------------- */

static void two_models(void)
{
	static const char *const leaves[] = {"leaf-1", "leaf-1", "leaf-2", "leaf-2", "leaf-3", "leaf-3"};
	for (uint32_t slot = 0; slot < 6; slot++)
		put(slot, NULL, leaves[slot], slot < 2 ? "H100-SXM" : "A100-SXM");
}

static void test_a_gang_does_not_mix_models_if_it_need_not(void)
{
	two_models();
	expect_whole(4, "", "n3 n4 n5 n6");
	TEST_ASSERT_EQUAL_UINT32(0, c->plan.flags);
	TEST_ASSERT_NULL(strstr(c->text, "model"));
	expect_whole(2, "", "n1 n2");
}

static void test_mixed_models_are_told(void)
{
	two_models();
	expect_whole(5, "", "n1 n2 n3 n4 n5");
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_MIXED_MODELS, c->plan.flags);
	TEST_ASSERT_EQUAL_STRING(
		"5 members on 5 nodes in 3 leaves under 1 spine; rule adjacent leaves met; its GPUs are of "
		"2 models",
		c->text);
}

static void test_models_of_pinned_members_count(void)
{
	static const uint32_t pinned[] = {3, FROND_NONE};
	two_models();
	put(0, NULL, "leaf-1", "A100-SXM");
	put(1, NULL, "leaf-1", "H100-SXM");
	put(2, NULL, "leaf-2", "H100-SXM");
	const struct wanted gang = {
		.name = "a", .members = 2, .gpus = 4, .pinned = pinned, .wishes = "topology-mode=Ignore"};
	expect(&gang, "n4 n3"); /* fewest leaves comes first */
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_MIXED_MODELS, c->plan.flags);
	occupy(c, "n3", 0xf);
	occupy(c, "n4", 0xf);
	expect(&gang, "n4 n5"); /* of the leaves beside it the one with its model */
	TEST_ASSERT_EQUAL_UINT32(0, c->plan.flags);
}

static void test_one_model_has_one_number_however_it_is_written(void)
{
	const struct node *nodes = c->engine->core.nodes;
	put(0, NULL, "leaf-1", "NVIDIA H100 80GB HBM3");
	put(1, NULL, "leaf-1", "NVIDIA-H100-80GB-HBM3");
	put(2, NULL, "leaf-1", "NVIDIA-H100-80GB-HBM3-SHARED");
	put(3, NULL, "leaf-1", "NVIDIA-H200");
	put(4, NULL, "leaf-1", NULL);
	TEST_ASSERT_EQUAL_UINT32(nodes[0].model, nodes[1].model);
	TEST_ASSERT_EQUAL_UINT32(nodes[0].model, nodes[2].model);
	TEST_ASSERT_TRUE(nodes[0].model != nodes[3].model && nodes[3].model != nodes[4].model);
	TEST_ASSERT_EQUAL_UINT32(nodes[1].topology, nodes[3].topology); /* the same links do not make one of them */
}

static const char *problems(void)
{
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->problems(c->engine, c->text, CLUSTER_TEXT - 1, &c->len));
	c->text[c->len] = 0;
	return c->text;
}

static void test_62_models_are_told_apart_and_numbers_come_back(void)
{
	char model[16];
	const struct node *nodes = c->engine->core.nodes;
	for (uint32_t slot = 0; slot < 65; slot++) {
		snprintf(model, sizeof model, "gpu-%u", (unsigned)slot);
		put(slot, NULL, "leaf-1", model);
		for (uint32_t other = 0; other < slot && slot < 62; other++)
			TEST_ASSERT_TRUE(nodes[other].model != nodes[slot].model);
		if (slot == 61)
			TEST_ASSERT_EQUAL_STRING("", problems());
		if (slot == 62)
			TEST_ASSERT_EQUAL_STRING("there are more than 62 GPU models; those of 1 node count as one\n",
						 problems());
	}
	TEST_ASSERT_EQUAL_UINT32(nodes[62].model, nodes[64].model);
	for (uint32_t slot = 0; slot < 3; slot++)
		TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->node_remove(c->engine, slot));
	for (uint32_t slot = 62; slot < 65; slot++)
		put(slot, NULL, "leaf-1", slot == 64 ? "gpu-63" : slot == 63 ? "gpu-63" : "gpu-62");
	TEST_ASSERT_EQUAL_STRING("", problems());
	TEST_ASSERT_EQUAL_UINT32(nodes[63].model, nodes[64].model);
	TEST_ASSERT_TRUE(nodes[62].model != nodes[63].model);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_16_members_go_to_the_domain_that_holds_them);
	RUN_TEST(test_the_smallest_domain_that_holds_all_is_taken);
	RUN_TEST(test_the_largest_domains_come_first_and_the_last_one_is_tight);
	RUN_TEST(test_domains_count_with_the_room_that_they_have_today);
	RUN_TEST(test_nodes_of_a_domain_need_not_be_neighbours);
	RUN_TEST(test_nodes_in_no_domain_come_last);
	RUN_TEST(test_fewest_nodes_come_before_fewest_domains);
	RUN_TEST(test_a_domain_that_needs_more_nodes_does_not_hold_the_gang);
	RUN_TEST(test_members_follow_the_pinned_ones_into_their_domain);
	RUN_TEST(test_one_pod_does_not_mind_domains);
	RUN_TEST(test_the_leaf_with_fewer_domains_is_taken);
	RUN_TEST(test_a_leaf_without_domains_counts_as_one);
	RUN_TEST(test_a_later_candidate_may_have_lower_nodes);
	RUN_TEST(test_without_domains_nothing_is_different);
	RUN_TEST(test_a_gang_does_not_mix_models_if_it_need_not);
	RUN_TEST(test_mixed_models_are_told);
	RUN_TEST(test_models_of_pinned_members_count);
	RUN_TEST(test_one_model_has_one_number_however_it_is_written);
	RUN_TEST(test_62_models_are_told_apart_and_numbers_come_back);
	return UNITY_END();
}
