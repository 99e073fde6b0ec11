/* SPDX-License-Identifier: Apache-2.0 */
/* The picture, byte for byte. */
#include "cluster.h"

#define KEY ". free   # in use by others   x unhealthy   ! not ready   - cordoned\n"

static struct cluster *c;

void setUp(void)
{
	c = NULL;
}

void tearDown(void)
{
	cluster_free(c);
}

static void expect(bool color, const char *picture)
{
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->map(c->engine, color, c->text, CLUSTER_TEXT - 1, &c->len));
	c->text[c->len] = 0;
	TEST_ASSERT_EQUAL_STRING(picture, c->text);
	check(c);
}

static void bind(const char *gang, uint32_t rank, const char *node, uint32_t mask, const char *name)
{
	uint32_t slot = slot_of(c, node);
	int32_t code = pod_try(c, key_of(gang, rank + 1), slot, (uint32_t)__builtin_popcount(mask), mask, name,
			       key_of(gang, UINT64_MAX));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, code);
}

static void test_an_empty_engine_draws_only_the_key(void)
{
	c = calloc(1, sizeof *c);
	TEST_ASSERT_NOT_NULL(c);
	engine_make(c, 1, 1, "", "");
	expect(false, KEY);
}

static void test_a_line_per_leaf_and_a_cell_per_gpu(void)
{
	c = cluster_make("spine:2 leaf:2 node:2 gpu:4", "");
	expect(false, "spine-1\n"
		      "  leaf-1      node-1 ....   node-2 ....\n"
		      "  leaf-2      node-3 ....   node-4 ....\n"
		      "spine-2\n"
		      "  leaf-3      node-5 ....   node-6 ....\n"
		      "  leaf-4      node-7 ....   node-8 ....\n" KEY);
}

static void test_letters_are_owners_in_order_of_appearance(void)
{
	c = cluster_make("spine:1 leaf:1 node:3 gpu:4", "");
	bind("b", 0, "node-2", 0x3, "ns/second");
	bind("a", 0, "node-1", 0x6, "ns/first");
	bind("a", 1, "node-2", 0xc, "ns/first");
	bind("d", 0, "node-3", 0x1, "ns/single");
	expect(false, "spine-1\n"
		      "  leaf-1      node-1 .AA.   node-2 BBAA   node-3 C...\n" KEY "A ns/first: 4 GPUs on 2 nodes\n"
		      "B ns/second: 2 GPUs on 1 node\n"
		      "C ns/single: 1 GPU on 1 node\n");
}

static void test_the_state_of_nodes_and_gpus_is_shown(void)
{
	c = cluster_make("spine:1 leaf:1 node:4 gpu:4", "");
	cordon(c, "node-1");
	node_flags(c, "node-2", FROND_NODE_DOWN | FROND_NODE_CORDONED);
	unhealthy(c, "node-3", 0x9);
	occupy_by_count(c, "node-3", 1);
	bind("a", 0, "node-4", 0x2, "ns/a");
	unhealthy(c, "node-4", 0x2); /* whoever holds it is more interesting */
	occupy_by_count(c, "node-4", 7);
	expect(false,
	       "spine-1\n"
	       "  leaf-1      node-1-....   node-2!....   node-3 x#.x   node-4 #A##\n" KEY "A ns/a: 1 GPU on 1 node\n");
}

static void test_nodes_without_a_leaf_come_last(void)
{
	c = calloc(1, sizeof *c);
	TEST_ASSERT_NOT_NULL(c);
	engine_make(c, 4, 8, "", "");
	node_put(c, 0, "out", 2, NULL, NULL);
	node_put(c, 1, "in", 2, "a-leaf-with-a-long-name", "s");
	node_put(c, 2, "cpu-only", 0, NULL, NULL);
	expect(false, "s\n"
		      "  a-leaf-with-a-long-name       in ..\n"
		      "without a leaf\n"
		      "            cpu-only \n"
		      "                 out ..\n" KEY);
}

static void test_wide_leaves_are_wrapped_after_four_nodes(void)
{
	c = cluster_make("spine:1 leaf:1 node:9 gpu:1", "");
	expect(false, "spine-1\n"
		      "  leaf-1      node-1 .   node-2 .   node-3 .   node-4 .\n"
		      "              node-5 .   node-6 .   node-7 .   node-8 .\n"
		      "              node-9 .\n" KEY);
}

static void test_color_marks_owners_and_dims_the_rest(void)
{
	c = cluster_make("spine:1 leaf:1 node:1 gpu:2", "");
	bind("a", 0, "node-1", 0x1, "ns/a");
	expect(true, "spine-1\n"
		     "  leaf-1      node-1 \033[31;1mA\033[0m\033[2m.\033[0m\n" KEY
		     "\033[31;1mA\033[0m ns/a: 1 GPU on 1 node\n");
}

static void test_reservations_and_pods_without_a_name_are_shown_as_such(void)
{
	c = cluster_make("spine:1 leaf:1 node:2 gpu:2", "");
	place(c, &(struct wanted){.name = "a", .members = 1, .gpus = 2});
	occupy(c, "node-2", 0x2);
	expect(false, "spine-1\n"
		      "  leaf-1      node-1 AA   node-2 .A\n" KEY "A (no name): 3 GPUs on 2 nodes\n");
}

static void test_more_owners_than_letters_share_a_star(void)
{
	c = cluster_make("spine:1 leaf:1 node:7 gpu:8", "");
	char name[16];
	for (uint32_t i = 0; i < 54; i++) { /* two more than there are letters */
		snprintf(name, sizeof name, "ns/g%u", (unsigned)i);
		bind(name, 0, c->nodes[i / 8].name, 1u << i % 8, name);
	}
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->map(c->engine, 0, c->text, CLUSTER_TEXT - 1, &c->len));
	c->text[c->len] = 0;
	TEST_ASSERT_NOT_NULL(strstr(c->text, "node-7 wxyz**..\n"));
	TEST_ASSERT_NOT_NULL(strstr(c->text, "\nz ns/g51: 1 GPU on 1 node\n* further owners: 2 GPUs\n"));
}

static void test_a_name_is_let_go_with_its_last_pod(void)
{
	c = cluster_make("spine:1 leaf:1 node:1 gpu:2", "");
	bind("a", 0, "node-1", 0x1, "ns/a");
	bind("a", 1, "node-1", 0x2, "ns/a");
	release(c, "a", 1);
	expect(false, "spine-1\n"
		      "  leaf-1      node-1 .A\n" KEY "A ns/a: 1 GPU on 1 node\n");
	struct frond_key pod = key_of("a", 2);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release(c->engine, &pod));
	expect(false, "spine-1\n"
		      "  leaf-1      node-1 ..\n" KEY);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_an_empty_engine_draws_only_the_key);
	RUN_TEST(test_a_line_per_leaf_and_a_cell_per_gpu);
	RUN_TEST(test_letters_are_owners_in_order_of_appearance);
	RUN_TEST(test_the_state_of_nodes_and_gpus_is_shown);
	RUN_TEST(test_nodes_without_a_leaf_come_last);
	RUN_TEST(test_wide_leaves_are_wrapped_after_four_nodes);
	RUN_TEST(test_color_marks_owners_and_dims_the_rest);
	RUN_TEST(test_reservations_and_pods_without_a_name_are_shown_as_such);
	RUN_TEST(test_more_owners_than_letters_share_a_star);
	RUN_TEST(test_a_name_is_let_go_with_its_last_pod);
	return UNITY_END();
}
