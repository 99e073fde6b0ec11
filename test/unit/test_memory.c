/* SPDX-License-Identifier: Apache-2.0 */
/* What an engine reserves, what it has room for, and that answers do not depend on how much scratch there is. */
#include "cluster.h"
#include "dice.h"
#include "engine/engine.h"

static struct cluster *c, *other;

void setUp(void)
{
	c = calloc(1, sizeof *c);
	other = calloc(1, sizeof *other);
	TEST_ASSERT_TRUE(c != NULL && other != NULL);
}

void tearDown(void)
{
	cluster_free(c);
	cluster_free(other);
}

static void test_an_engine_for_100000_nodes_and_pods_reserves_32_mb_and_2_more_for_16384_holds(void)
{
	struct frond_limits limits = {.nodes = 100000, .pods = 100000};
	abi = frond_abi_get();
	printf("%llu bytes without holds\n", (unsigned long long)abi->size_of(&limits));
	TEST_ASSERT_LESS_OR_EQUAL_UINT64(32000000, abi->size_of(&limits));
	limits.holds = 16384;
	printf("%llu bytes with 16384\n", (unsigned long long)abi->size_of(&limits));
	TEST_ASSERT_LESS_OR_EQUAL_UINT64(34000000, abi->size_of(&limits));
	limits.holds = FROND_HOLDS_MAX;
	TEST_ASSERT_NOT_EQUAL(0, abi->size_of(&limits));
	limits.holds = FROND_HOLDS_MAX + 1;
	TEST_ASSERT_EQUAL_UINT64(0, abi->size_of(&limits));
}

/* As many leaves as there is room for; a node more, in a leaf more, stays outside and is named. */
static void test_an_eighth_of_the_nodes_and_4096_may_be_leaves(void)
{
	enum { NODES = 20000, LEAVES = NODES / 8 + 4096 };
	char name[16], leaf[16], spine[16];
	engine_make(c, NODES, 16, "", "");
	for (uint32_t i = 0; i <= LEAVES; i++) {
		snprintf(name, sizeof name, "n%u", (unsigned)i);
		snprintf(leaf, sizeof leaf, "l%u", (unsigned)i);
		snprintf(spine, sizeof spine, "s%u", (unsigned)i / 10);
		TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, node_try(c, i, name, 8, 0, 0, 0, leaf, spine), c->text);
		if (i + 1 < LEAVES)
			continue;
		TEST_ASSERT_EQUAL_UINT32(LEAVES, stats(c).leaves);
		TEST_ASSERT_EQUAL_UINT32(i == LEAVES, stats(c).nodes_without_leaf);
	}
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->problems(c->engine, c->text, CLUSTER_TEXT - 1, &c->len));
	c->text[c->len] = 0;
	TEST_ASSERT_EQUAL_STRING("there are more than 6596 leaves or 1649 spines, among them leaf l6596; 1 node is "
				 "scheduled without topology\n",
				 c->text);
	check(c);
}

/* Each node in a leaf of its own: more names than there is room for. */
static void test_nodes_whose_leaf_has_no_room_for_a_name_are_scheduled_without_one(void)
{
	enum { NODES = 20000 };
	char name[16], leaf[16], problems[64];
	engine_make(c, NODES, 16, "", "");
	for (uint32_t i = 0; i < NODES; i++) {
		snprintf(name, sizeof name, "n%u", (unsigned)i);
		TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, node_try(c, i, name, 8, 0, 0, 0, name, "s"), c->text);
	}
	uint32_t leaves = stats(c).leaves, named = c->engine->tree.standings.fresh;
	TEST_ASSERT_EQUAL_UINT32(NODES / 8 + 4096, leaves);
	TEST_ASSERT_EQUAL_UINT32(NODES - leaves, stats(c).nodes_without_leaf);
	TEST_ASSERT_EQUAL_UINT32(NODES / 8 + 4096 + NODES / 16 + 4096 + 1, named);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->problems(c->engine, c->text, CLUSTER_TEXT - 1, &c->len));
	c->text[c->len] = 0;
	snprintf(problems, sizeof problems, "%u further problems of the fabric\n",
		 (unsigned)(named - leaves + 1 - TREE_PROBLEMS_MAX));
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(c->text, problems), c->text);
	check(c);
	for (uint32_t i = 0; i <= NODES; i++) { /* in leaves of ten there is room for all, once there is for one */
		snprintf(name, sizeof name, "n%u", (unsigned)(i % NODES));
		snprintf(leaf, sizeof leaf, "l%u", (unsigned)(i % NODES / 10));
		TEST_ASSERT_EQUAL_INT32(FROND_OK, node_try(c, i % NODES, name, 8, 0, 0, 0, leaf, "s"));
	}
	TEST_ASSERT_EQUAL_UINT32(0, stats(c).nodes_without_leaf);
	check(c);
}

/* A fabric file whose nodes have more speeds than are kept. */
static void test_nodes_of_a_fabric_file_have_512_speeds_at_most(void)
{
	enum { BYTES = 64 * (FILE_SPEEDS + 2) };
	static char fabric[BYTES];
	for (uint32_t speeds = FILE_SPEEDS; speeds <= FILE_SPEEDS + 1; speeds++) {
		const struct frond_limits limits = {.nodes = FILE_SPEEDS + 1, .pods = 1};
		int at = snprintf(fabric, BYTES,
				  "defaults: {gpus: 8}\nspines: [{name: s, leaves: [{name: l, nodes: [n1");
		for (uint32_t i = 2; i <= speeds; i++)
			at += snprintf(fabric + at, (size_t)(BYTES - at), ", n%u", (unsigned)i);
		at += snprintf(fabric + at, (size_t)(BYTES - at), "]}]}]\nnodes:\n");
		for (uint32_t i = 1; i <= speeds; i++)
			at += snprintf(fabric + at, (size_t)(BYTES - at), "- {name: n%u, uplinkGbps: %u}\n",
				       (unsigned)i, (unsigned)i);
		abi = frond_abi_get();
		uint64_t bytes = abi->size_of(&limits);
		void *memory = aligned_alloc(16, (bytes + 15) / 16 * 16);
		int32_t code = abi->create(memory, bytes, &limits, "", 0, fabric, (uint32_t)at, &c->engine, c->text,
					   CLUSTER_TEXT - 1, &c->len);
		free(memory);
		c->text[c->len] = 0;
		TEST_ASSERT_EQUAL_INT32_MESSAGE(speeds <= FILE_SPEEDS ? FROND_OK : FROND_LIMIT, code, c->text);
	}
}

/* One kind of 16-GPU node and 127 others of 8 GPUs. */
static void test_there_are_tables_for_a_node_of_16_gpus_and_for_127_kinds_of_8(void)
{
	engine_make(c, 4, 4, "", "");
	for (uint32_t kind = 0; kind < 128; kind++) { /* the table of a node without GPUs is the first of all */
		struct frond_topology topology = {.gpus = kind == 0 ? 16 : 8};
		topology.link_gbps[0][1] = topology.link_gbps[1][0] = (uint16_t)(kind + 1);
		uint32_t id;
		TEST_ASSERT_EQUAL_INT32(
			FROND_OK, abi->topology_put(c->engine, &topology, &id, c->text, CLUSTER_TEXT - 1, &c->len));
		TEST_ASSERT_EQUAL_UINT32(kind + 1, id);
	}
}

static void test_names_of_two_tables_move_together(void)
{
	static char memory[4096];
	struct arena arena = {.base = (uint8_t *)memory};
	struct pool pool;
	struct names names, domains;
	pool_layout(&pool, &arena, 64);
	names_layout(&names, &arena, &pool, 8);
	names_layout(&domains, &arena, &pool, 8);
	uint32_t node = names_hold(&names, "same", 4), domain = names_hold(&domains, "same", 4), len;
	TEST_ASSERT_EQUAL_UINT32(12, pool.used); /* one text each: ids are of two tables */
	for (uint32_t i = 0; i < 100; i++) {
		char text[16];
		snprintf(text, sizeof text, "passing-%u", (unsigned)i);
		struct names *table = i % 2 == 0 ? &names : &domains;
		uint32_t id = names_hold(table, text, (uint32_t)strlen(text));
		TEST_ASSERT_NOT_EQUAL(FROND_NONE, id);
		TEST_ASSERT_EQUAL_MEMORY(text, names_text(table, id, &len), strlen(text));
		names_drop(table, id);
	}
	TEST_ASSERT_EQUAL_UINT32(node, names_find(&names, "same", 4));
	TEST_ASSERT_EQUAL_UINT32(domain, names_find(&domains, "same", 4));
	names_drop(&domains, domain);
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, names_find(&domains, "same", 4));
	TEST_ASSERT_EQUAL_MEMORY("same", names_text(&names, node, &len), 4);
}

/* ---- the same answer with little scratch ------------------------------------------------------------------------- */

enum { NODES = 2400, MOST = 2000 };
static struct frond_member members[MOST];
static struct frond_place mine[MOST], theirs[MOST];

static void load(struct cluster *into, uint32_t limit)
{
	engine_make(into, limit, MOST, "", "spine:6 leaf:50 node:8 gpu:8");
	for (uint32_t slot = 0; slot < NODES; slot++) {
		char name[16];
		snprintf(name, sizeof name, "node-%u", (unsigned)slot + 1);
		uint32_t flags = percent(45) ? FROND_NODE_CORDONED : 0;
		TEST_ASSERT_EQUAL_INT32(FROND_OK, node_try(into, slot, name, 8, 0, flags, 0, NULL, NULL));
	}
}

static void ask(struct cluster *of, uint32_t count, uint32_t gpus, const char *wishes, struct frond_place *places)
{
	char in[256];
	struct frond_pair pairs[8];
	struct frond_request request = {.gang = {5, 5},
					.members = count,
					.min_member = count,
					.gpus_desired = (uint64_t)count * gpus,
					.only_slot = FROND_NONE};
	uint32_t in_len = wishes_read(wishes, in, 0, pairs, &request.annotations);
	for (uint32_t i = 0; i < count; i++)
		members[i] =
			(struct frond_member){.pod = {5, i + 1}, .rank = i, .gpus = gpus, .pinned_slot = FROND_NONE};
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->plan(of->engine, &request, members, pairs, in, in_len, NULL, 0,
						    &of->plan, places, of->text, CLUSTER_TEXT - 1, &of->len));
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, of->plan.outcome);
}

static void test_a_table_that_is_computed_again_says_the_same(void)
{
	static const char *const wishes[] = {"topology-mode=Ignore", "topology-mode=Preferred",
					     "topology-mode=Ignore placement-strategy=consolidated"};
	for (uint32_t round = 0; round < 2; round++) {
		dice = 11 + round;
		tearDown();
		setUp();
		load(c, NODES);
		dice = 11 + round;
		load(other, 20000); /* few rows of a large gang fit into the scratch of a large engine */
		for (uint32_t i = 0; i < 3; i++) {
			uint32_t count = 600 + below(500);
			ask(c, count, 8, wishes[i], mine);
			ask(other, count, 8, wishes[i], theirs);
			TEST_ASSERT_EQUAL_MEMORY(mine, theirs, count * sizeof *mine);
			TEST_ASSERT_EQUAL_UINT32(c->plan.runs, other->plan.runs);
			TEST_ASSERT_EQUAL_UINT32(c->plan.flags, other->plan.flags);
		}
		ask(c, 900, 3, wishes[2], mine); /* nodes count as well */
		ask(other, 900, 3, wishes[2], theirs);
		TEST_ASSERT_EQUAL_MEMORY(mine, theirs, 900 * sizeof *mine);
	}
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_an_engine_for_100000_nodes_and_pods_reserves_32_mb_and_2_more_for_16384_holds);
	RUN_TEST(test_an_eighth_of_the_nodes_and_4096_may_be_leaves);
	RUN_TEST(test_nodes_whose_leaf_has_no_room_for_a_name_are_scheduled_without_one);
	RUN_TEST(test_nodes_of_a_fabric_file_have_512_speeds_at_most);
	RUN_TEST(test_there_are_tables_for_a_node_of_16_gpus_and_for_127_kinds_of_8);
	RUN_TEST(test_names_of_two_tables_move_together);
	RUN_TEST(test_a_table_that_is_computed_again_says_the_same);
	return UNITY_END();
}
