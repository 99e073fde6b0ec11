/* SPDX-License-Identifier: Apache-2.0 */
/* What the leaves and spines say of their nodes: after every kind of change it is what counting them again gives. */
#include "cluster.h"
#include "dice.h"
#include "engine/engine.h"

static struct cluster *c;
static const struct fabric *fabric;

static void cluster(const char *text)
{
	cluster_free(c);
	c = cluster_make(text, "");
	fabric = &c->engine->core.fabric;
}

void setUp(void)
{
	c = NULL;
	cluster("spine:2 leaf:3 node:3 gpu:8");
}

void tearDown(void)
{
	cluster_free(c);
}

/* ---- a recount, from the nodes alone ---------------------------------------------------------------------------- */

static uint32_t popcount(uint32_t mask)
{
	return (uint32_t)__builtin_popcount(mask);
}

static uint32_t free_gpus(const struct node *node)
{
	uint32_t all = (1u << node->gpus) - 1, free = popcount(all & ~(uint32_t)(node->held | node->unhealthy));
	return free > node->by_count ? free - node->by_count : 0;
}

static uint32_t used_gpus(const struct node *node)
{
	uint32_t all = (1u << node->gpus) - 1, used = popcount(all & node->held) + node->by_count;
	return used < node->gpus ? used : node->gpus;
}

static bool same_kind(const struct node *a, const struct node *b)
{
	return a->gpus == b->gpus && a->topology == b->topology;
}

/* The leaves have been recounted. */
static void recount_blocks(void)
{
	uint32_t size = 1u << fabric->block_shift;
	for (uint32_t first = 0; first < fabric->leaf_count; first += size) {
		const struct block_sum *block = &fabric->block[first / size];
		const struct leaf_sum *leaf = &fabric->leaf[first];
		uint32_t count = fabric->leaf_count - first < size ? fabric->leaf_count - first : size;
		bool alike = true;
		for (uint32_t i = 0; i < count; i++) {
			alike &= leaf[i].total == leaf->total &&
				 fabric->leaf_kind[first + i] == fabric->leaf_kind[first];
		}
		TEST_ASSERT_EQUAL_UINT32(alike ? fabric->leaf_kind[first] : FROND_NONE, block->kind);
		TEST_ASSERT_EQUAL_UINT32(leaf->total, block->total);
		for (uint32_t gpus = 1; gpus <= FROND_GPUS_MAX + 1; gpus++) { /* one more: the free GPUs */
			uint32_t least = UINT32_MAX, most = 0;
			for (uint32_t i = 0; i < count; i++) {
				uint32_t here = gpus > FROND_GPUS_MAX ? leaf[i].free : leaf[i].at_least[gpus];
				least = here < least ? here : least;
				most = here > most ? here : most;
			}
			bool free = gpus > FROND_GPUS_MAX;
			TEST_ASSERT_EQUAL_UINT32(least, free ? block->free_least : block->least[gpus - 1]);
			TEST_ASSERT_EQUAL_UINT32(most, free ? block->free_most : block->most[gpus - 1]);
		}
	}
}

static void recount(void)
{
	check(c);
	const struct node *nodes = c->engine->core.nodes;
	static struct spine_sum spines[8];
	memset(spines, 0, sizeof spines);
	for (uint32_t leaf = 0; leaf < fabric->leaf_count; leaf++) {
		struct leaf_sum sum = {.free = 0};
		struct spine_sum *spine = &spines[fabric->leaf_spine[leaf]];
		uint32_t first = fabric->leaf_start[leaf], end = fabric->leaf_start[leaf + 1], slowest = UINT32_MAX;
		uint32_t lacking = 0;
		bool alike = first < end;
		for (uint32_t at = first; at < end; at++)
			alike &= same_kind(&nodes[fabric->order[at]], &nodes[fabric->order[first]]);
		for (uint32_t at = first; at < end; at++) {
			const struct node *node = &nodes[fabric->order[at]];
			uint32_t free = free_gpus(node), used = used_gpus(node);
			for (uint32_t i = 0; node->flags == 0 && i <= free; i++) {
				sum.at_least[i]++;
				spine->at_least[i]++;
			}
			sum.odd = (uint16_t)(sum.odd + (node->unhealthy != 0 || !alike));
			sum.free += free;
			sum.used += used;
			sum.total += node->gpus;
			bool holds = node->held != 0 || node->by_count > 0;
			spine->touched =
				(spine->touched + (node->flags != 0 || node->unhealthy != 0 || holds)) & 0x3ffffu;
			spine->lacking += node->unavailable || node->unavailable_gpus != 0;
			lacking += node->unavailable || node->unavailable_gpus != 0;
			if (node->uplink_gbps != 0 && node->uplink_gbps < slowest)
				slowest = node->uplink_gbps;
		}
		TEST_ASSERT_EQUAL_MEMORY(&sum, &fabric->leaf[leaf], sizeof sum);
		TEST_ASSERT_EQUAL_UINT32(alike ? node_kind(&nodes[fabric->order[first]]) : KIND_NONE,
					 fabric->leaf_kind[leaf]);
		TEST_ASSERT_EQUAL_UINT32(slowest, fabric->leaf_slowest[leaf]);
		TEST_ASSERT_EQUAL_UINT32(lacking, fabric->leaf_lacking[leaf]);
	}
	for (uint32_t spine = 0; spine < fabric->spine_count; spine++) {
		spines[spine].shape = fabric->spine[spine].shape; /* has tests of its own */
		TEST_ASSERT_EQUAL_MEMORY(&spines[spine], &fabric->spine[spine], sizeof spines[spine]);
	}
	recount_blocks();
}

/* ---- sums ------------------------------------------------------------------------------------------------------- */

static void test_a_fresh_cluster_is_wholly_free(void)
{
	recount();
	TEST_ASSERT_EQUAL_UINT32(3, fabric->leaf[0].at_least[8]);
	TEST_ASSERT_EQUAL_UINT32(0, fabric->leaf[0].at_least[9]);
	TEST_ASSERT_EQUAL_UINT32(24, fabric->leaf[5].free);
	TEST_ASSERT_EQUAL_UINT32(9, fabric->spine[1].at_least[0]);
	TEST_ASSERT_EQUAL_UINT32(0, fabric->spine[1].touched);
}

static void test_nodes_change(void)
{
	cordon(c, "node-1");
	recount();
	TEST_ASSERT_EQUAL_UINT32(2, fabric->leaf[0].at_least[0]); /* closed nodes take nothing */
	TEST_ASSERT_EQUAL_UINT32(24, fabric->leaf[0].free);       /* but their GPUs are free */
	node_flags(c, "node-1", FROND_NODE_DOWN);
	recount();
	node_flags(c, "node-1", 0);
	recount();
	TEST_ASSERT_EQUAL_UINT32(0, fabric->spine[0].touched);
	unhealthy(c, "node-2", 0x81);
	recount();
	TEST_ASSERT_EQUAL_UINT32(1, fabric->leaf[0].odd);
	TEST_ASSERT_EQUAL_UINT32(22, fabric->leaf[0].free);
	unhealthy(c, "node-2", 0);
	c->nodes[3].gpus = 4; /* another kind than its neighbours */
	node_refresh(c, 3);
	recount();
	TEST_ASSERT_EQUAL_UINT32(3, fabric->leaf[1].odd);
	TEST_ASSERT_EQUAL_UINT32(KIND_NONE, fabric->leaf_kind[1]);
	c->nodes[3].gpus = 8;
	node_refresh(c, 3);
	recount();
	TEST_ASSERT_EQUAL_UINT32(0, fabric->leaf[1].odd);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, node_try(c, 3, "node-4", 8, 0, 0, 100, NULL, NULL));
	recount();
	TEST_ASSERT_EQUAL_UINT32(100, fabric->leaf_slowest[1]);
}

static void test_nodes_come_and_go(void)
{
	node_remove(c, 4);
	recount();
	TEST_ASSERT_EQUAL_UINT32(16, fabric->leaf[1].total);
	node_remove(c, 3);
	node_remove(c, 5);
	recount(); /* an empty leaf keeps its place */
	TEST_ASSERT_EQUAL_UINT32(6, fabric->leaf_count);
	TEST_ASSERT_EQUAL_UINT32(KIND_NONE, fabric->leaf_kind[1]);
	node_put(c, 18, "guest", 4, "leaf-2", "spine-1"); /* not of the file, but its label names a leaf of it */
	recount();
	TEST_ASSERT_EQUAL_UINT32(4, fabric->leaf[1].total);
	node_put(c, 18, "guest", 4, "leaf-6", "spine-2");
	recount();
	TEST_ASSERT_EQUAL_UINT32(0, fabric->leaf[1].total);
	TEST_ASSERT_EQUAL_UINT32(28, fabric->leaf[5].total);
	node_put(c, 18, "guest", 4, NULL, NULL); /* outside the tree */
	recount();
	TEST_ASSERT_EQUAL_UINT32(24, fabric->leaf[5].total);
	node_refresh(c, 4);
	recount();
}

static void test_pods_come_and_go(void)
{
	struct frond_key device = occupy(c, "node-1", 0x0f), count = occupy_by_count(c, "node-1", 3);
	recount();
	TEST_ASSERT_EQUAL_UINT32(17, fabric->leaf[0].free);
	TEST_ASSERT_EQUAL_UINT32(7, fabric->leaf[0].used);
	struct frond_key many = occupy_by_count(c, "node-1", 100); /* more than there are: used is no more than total */
	recount();
	TEST_ASSERT_EQUAL_UINT32(8, fabric->leaf[0].used);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, pod_try(c, device, 3, 2, 0x81, "", device)); /* moved */
	recount();
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release(c->engine, &count));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release(c->engine, &many));
	recount();
	TEST_ASSERT_EQUAL_UINT32(0, fabric->leaf[0].used);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release(c->engine, &device));
	recount();
	TEST_ASSERT_EQUAL_UINT32(0, fabric->spine[0].touched);
}

static void test_gangs_are_booked_bound_and_given_back(void)
{
	place(c, &(struct wanted){.name = "a", .members = 4, .gpus = 8});
	recount();
	struct frond_key pod = key_of("a", 1), gang = key_of("a", UINT64_MAX);
	uint32_t pods;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->confirm(c->engine, &pod));
	recount();
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release_gang(c->engine, &gang, &pods));
	recount();
	TEST_ASSERT_EQUAL_UINT32(1, fabric->spine[0].touched);
	place(c, &(struct wanted){.name = "b", .members = 2, .gpus = 2, .deadline_ms = 1});
	struct frond_key expired[2];
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->tick(c->engine, 2, expired, 2, &pods));
	TEST_ASSERT_EQUAL_UINT32(1, pods);
	recount();
	node_remove(c, 0); /* with the bound member */
	recount();
}

static void test_what_if_and_undo(void)
{
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->what_if(c->engine));
	place(c, &(struct wanted){.name = "a", .members = 5, .gpus = 3});
	recount();
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->what_if(c->engine));
	release(c, "a", 3);
	recount();
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->undo(c->engine));
	recount();
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->undo(c->engine));
	recount();
	TEST_ASSERT_EQUAL_UINT32(0, fabric->spine[0].touched + fabric->spine[1].touched);
}

/* Nodes and pods come, change and go; `settled`: nodes stay what they are, so that nothing is ever counted from scratch. */
static void random_changes(uint32_t steps, bool settled)
{
	const char *text = getenv("FROND_SEED");
	dice = text == NULL ? 3 : strtoull(text, NULL, 0);
	printf("seed %llu\n", (unsigned long long)dice);
	for (uint32_t step = 0; step < steps; step++) {
		uint32_t slot = below(c->count);
		struct cluster_node *node = &c->nodes[slot];
		struct frond_key pod = {1, 1 + below(40)};
		switch (below(6)) {
		case 0:
			node->gpus = settled || percent(70) ? 8 : 1 + below(8);
			node->unhealthy = percent(70) ? 0 : below(1u << node->gpus);
			node->flags = percent(70) ? 0 : 1 + below(3);
			node_refresh(c, slot);
			break;
		case 1:
			if (!settled)
				abi->node_remove(c->engine, slot); /* unknown when it is gone already */
			break;
		case 2:
			abi->release(c->engine, &pod);
			break;
		case 3:
			pod_try(c, pod, slot, below(4), 0, "", pod);
			break;
		default:
			pod_try(c, pod, slot, 2, 3u << below(7), "", pod);
		}
		recount();
	}
}

static void test_random_changes(void)
{
	random_changes(1500, false);
	cluster("spine:3 leaf:3 node:3 gpu:8");
	random_changes(1500, true);
}

/* ---- blocks ----------------------------------------------------------------------------------------------------- */

static void test_a_block_has_32_leaves_and_the_last_one_fewer(void)
{
	cluster("spine:3 leaf:11 node:1 gpu:8"); /* the second block is one leaf */
	TEST_ASSERT_EQUAL_UINT32(5, fabric->block_shift);
	TEST_ASSERT_EQUAL_UINT32(32, block_end(fabric, 31));
	TEST_ASSERT_EQUAL_UINT32(33, block_end(fabric, 32));
	recount();
	occupy(c, "node-32", 0xff);
	recount();
	TEST_ASSERT_EQUAL_UINT32(0, fabric->block[0].free_least);
	TEST_ASSERT_EQUAL_UINT32(8, fabric->block[1].free_least);
	occupy(c, "node-33", 0x01);
	recount();
	TEST_ASSERT_EQUAL_UINT32(7, fabric->block[1].free_most);
	cluster("spine:2 leaf:16 node:2 gpu:8");
	recount();
	TEST_ASSERT_EQUAL_UINT32(32, block_end(fabric, 0));
	random_changes(600, true);
	cluster("spine:3 leaf:23 node:2 gpu:8");
	random_changes(600, true);
	random_changes(600, false);
}

/* The last leaf with the most or the least of something has one less or more; or it was not the last. */
static void test_the_ends_of_a_block_move_with_the_last_leaf_that_was_there(void)
{
	const struct block_sum *block = fabric->block;
	for (uint32_t leaf = 0; leaf < 6; leaf++) {
		char name[16];
		snprintf(name, sizeof name, "node-%u", (unsigned)leaf * 3 + 1);
		TEST_ASSERT_EQUAL_UINT32(3, block->most[7]);
		TEST_ASSERT_EQUAL_UINT32(24, block->free_most);
		occupy(c, name, 0xf0);
		recount();
		TEST_ASSERT_EQUAL_UINT32(2, block->least[7]);
		TEST_ASSERT_EQUAL_UINT32(3, block->least[3]);
		TEST_ASSERT_EQUAL_UINT32(20, block->free_least);
	}
	TEST_ASSERT_EQUAL_UINT32(2, block->most[7]);
	TEST_ASSERT_EQUAL_UINT32(20, block->free_most);
	cordon(c, "node-1"); /* its GPUs stay free */
	TEST_ASSERT_EQUAL_UINT32(2, block->least[3]);
	TEST_ASSERT_EQUAL_UINT32(2, block->least[0]);
	TEST_ASSERT_EQUAL_UINT32(3, block->most[3]);
	TEST_ASSERT_EQUAL_UINT32(20, block->free_least);
	node_flags(c, "node-1", 0);
	TEST_ASSERT_EQUAL_UINT32(3, block->least[0]);
	unhealthy(c, "node-2", 0x01);
	recount();
	TEST_ASSERT_EQUAL_UINT32(19, block->free_least);
	TEST_ASSERT_NOT_EQUAL(FROND_NONE, block->kind);
	c->nodes[0].gpus = 4;
	node_refresh(c, 0);
	recount();
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, block->kind);
}

/* ---- shapes ----------------------------------------------------------------------------------------------------- */

#define HEAD "apiVersion: topology.scheduler/v1alpha1\nkind: Fabric\ndefaults: {gpus: 4, model: H100-SXM}\nspines:\n"

static void shapes(uint32_t second, uint32_t third)
{
	check(c);
	TEST_ASSERT_EQUAL_UINT32(0, fabric->spine[0].shape);
	TEST_ASSERT_EQUAL_UINT32(second, fabric->spine[1].shape);
	TEST_ASSERT_EQUAL_UINT32(third, fabric->spine[2].shape);
}

static void test_spines_alike_have_the_shape_of_the_first(void)
{
	cluster("spine:3 leaf:2 node:2 gpu:4");
	shapes(0, 0);
	occupy(c, "node-5", 0x1); /* what is in use today is no shape */
	cordon(c, "node-9");
	unhealthy(c, "node-10", 0x1);
	shapes(0, 0);
}

static void test_leaves_nodes_and_their_numbers_make_a_shape(void)
{
	cluster(HEAD "- {name: a, leaves: [{name: a1, nodes: [n1, n2]}, {name: a2, nodes: [n3]}]}\n"
		     "- {name: b, leaves: [{name: b1, nodes: [n4]}, {name: b2, nodes: [n5, n6]}]}\n"
		     "- {name: d, leaves: [{name: d1, nodes: [n7, n8, n9]}]}\n");
	shapes(1, 2);
	cluster(HEAD "- {name: a, leaves: [{name: a1, nodes: [n1, n2]}, {name: a2, nodes: [n3]}]}\n"
		     "- {name: b, leaves: [{name: b1, nodes: [n4, n5, n6]}]}\n"
		     "- {name: d, leaves: [{name: d1, nodes: [n7, n8]}, {name: d2, nodes: [n9]}]}\n");
	shapes(1, 0);
}

static void test_speeds_and_kinds_make_a_shape(void)
{
	cluster(HEAD "- {name: a, leaves: [{name: a1, uplinkGbps: 100, nodes: [n1]}]}\n"
		     "- {name: b, leaves: [{name: b1, nodes: [n2]}]}\n"
		     "- {name: d, leaves: [{name: d1, uplinkGbps: 100, nodes: [n3]}]}\n");
	shapes(1, 0);
	cluster(HEAD "- {name: a, leaves: [{name: a1, nodes: [n1]}]}\n"
		     "- {name: b, leaves: [{name: b1, nodes: [n2]}]}\n"
		     "- {name: d, leaves: [{name: d1, nodes: [n3]}]}\n"
		     "nodes:\n- {name: n2, uplinkGbps: 100}\n- {name: n3, model: A100-SXM, gpus: 4}\n");
	shapes(1, 2); /* the node's uplink, the links between its GPUs */
}

static void test_a_node_that_changes_its_kind_changes_the_shape(void)
{
	cluster("spine:3 leaf:1 node:2 gpu:4");
	shapes(0, 0);
	c->nodes[2].gpus = 3;
	node_refresh(c, 2);
	shapes(1, 0);
	c->nodes[4].gpus = 3;
	node_refresh(c, 4);
	shapes(1, 1);
	c->nodes[2].gpus = c->nodes[4].gpus = 4;
	node_refresh(c, 2);
	node_refresh(c, 4);
	shapes(0, 0);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, node_try(c, 4, "node-5", 4, 0, 0, 100, NULL, NULL));
	shapes(0, 2);
	node_remove(c, 3);
	shapes(1, 2);
}

/* ---- the tree --------------------------------------------------------------------------------------------------- */

static void test_positions_are_fabric_order_and_nodes_without_a_leaf_come_last(void)
{
	node_put(c, 18, "stray", 8, NULL, NULL);
	check(c);
	TEST_ASSERT_EQUAL_UINT32(19, fabric->node_count);
	for (uint32_t slot = 0; slot < 18; slot++) {
		TEST_ASSERT_EQUAL_UINT32(slot, fabric->position[slot]);
		TEST_ASSERT_EQUAL_UINT32(slot / 3, fabric->leaf_of[slot]);
	}
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, fabric->leaf_of[18]);
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, fabric->position[19]);
	TEST_ASSERT_EQUAL_UINT32(3, leaf_nodes(fabric, 5));
	TEST_ASSERT_TRUE(spine_adjacent(fabric, 1));
	TEST_ASSERT_FALSE(spine_adjacent(fabric, 0)); /* nothing is before it */
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_a_fresh_cluster_is_wholly_free);
	RUN_TEST(test_nodes_change);
	RUN_TEST(test_nodes_come_and_go);
	RUN_TEST(test_pods_come_and_go);
	RUN_TEST(test_gangs_are_booked_bound_and_given_back);
	RUN_TEST(test_what_if_and_undo);
	RUN_TEST(test_random_changes);
	RUN_TEST(test_a_block_has_32_leaves_and_the_last_one_fewer);
	RUN_TEST(test_the_ends_of_a_block_move_with_the_last_leaf_that_was_there);
	RUN_TEST(test_spines_alike_have_the_shape_of_the_first);
	RUN_TEST(test_leaves_nodes_and_their_numbers_make_a_shape);
	RUN_TEST(test_speeds_and_kinds_make_a_shape);
	RUN_TEST(test_a_node_that_changes_its_kind_changes_the_shape);
	RUN_TEST(test_positions_are_fabric_order_and_nodes_without_a_leaf_come_last);
	return UNITY_END();
}
