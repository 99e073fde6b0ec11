/* SPDX-License-Identifier: Apache-2.0 */
/* What a waiting gang is told when little or nothing is free: the corners that random clusters seldom reach. */
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

static void cluster(const char *fabric)
{
	cluster_free(c);
	c = cluster_make(fabric, "");
}

static void expect(uint32_t members, uint32_t gpus, const char *wishes, const char *sentence)
{
	plan(c, &(struct wanted){.name = "a", .members = members, .gpus = gpus, .wishes = wishes});
	TEST_ASSERT_EQUAL_STRING(sentence, c->text);
}

static void full(const char *fabric, uint32_t mask)
{
	cluster(fabric);
	for (uint32_t slot = 0; slot < c->count; slot++)
		occupy(c, c->nodes[slot].name, mask);
}

static void test_a_full_cluster_names_the_first_place_and_no_room(void)
{
	full("spine:2 leaf:2 node:2 gpu:8", 0xff);
	expect(1, 8, "", "needs 1 node with 8 free GPUs; best node-1 has 0 free GPUs (node-1 in use)");
	expect(2, 8, "", "needs 2 nodes in one complete leaf; best leaf-1 has 0 free (2 nodes in use)");
	expect(3, 8, "", "needs 3 nodes in 2 adjacent leaves; best run leaf-1..leaf-2 has 0 free (4 nodes in use)");
	expect(5, 8, "", "needs 5 nodes in 2 adjacent spines; best run spine-1..spine-2 has 0 free (8 nodes in use)");
	expect(2, 8, "topology-mode=Ignore", "needs 2 nodes; the cluster has 0 free (8 nodes in use)");
	expect(2, 8, "topology-mode=Preferred", "needs 2 nodes; the cluster has 0 free (8 nodes in use)");
}

static void test_of_equal_places_the_first_is_named(void)
{
	full("spine:2 leaf:2 node:2 gpu:8", 0x0f);
	expect(1, 8, "", "needs 1 node with 8 free GPUs; best node-1 has 4 free GPUs (node-1 in use)");
	expect(4, 4, "", "needs 4 members of 4 GPUs in one complete leaf; best leaf-1 has room for 2 (2 nodes in use)");
	expect(5, 4, "",
	       "needs 5 members of 4 GPUs in 2 adjacent leaves; best run leaf-1..leaf-2 has room for 4 (4 nodes in "
	       "use)");
}

static void test_the_place_with_most_room_is_named_wherever_it_is(void)
{
	full("spine:3 leaf:2 node:2 gpu:8", 0x0f);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release(c->engine, &(struct frond_key){1, 8})); /* node-8, leaf-4 */
	check(c);
	expect(2, 8, "", "needs 2 nodes in one complete leaf; best leaf-4 has 1 free (node-7 in use)");
	expect(3, 8, "", "needs 3 nodes in 2 adjacent leaves; best run leaf-3..leaf-4 has 1 free (3 nodes in use)");
	expect(5, 8, "", "needs 5 nodes in 2 adjacent spines; best run spine-1..spine-2 has 1 free (7 nodes in use)");
	cordon(c, "node-8");
	expect(2, 8, "", "needs 2 nodes in one complete leaf; best leaf-1 has 0 free (2 nodes in use)");
	node_flags(c, "node-8", 0);
	occupy(c, "node-8", 0x01);
	expect(1, 8, "", "needs 1 node with 8 free GPUs; best node-8 has 7 free GPUs (node-8 in use)");
}

static void test_a_leaf_in_between_without_room_is_named(void)
{
	cluster("apiVersion: topology.scheduler/v1alpha1\n"
		"kind: Fabric\n"
		"defaults: {gpus: 8}\n"
		"spines:\n"
		"- {name: s, leaves: [{name: l1, nodes: [a1, a2, a3]}, {name: l2, nodes: [b1]}, {name: l3, nodes: [d1, "
		"d2, "
		"d3]}]}\n");
	cordon(c, "b1");
	expect(6, 8, "", "needs 6 nodes in 3 adjacent leaves; best run l1..l3 has 6 free but none in l2 (b1 cordoned)");
	expect(7, 8, "", "needs 7 nodes in 3 adjacent leaves; best run l1..l3 has 6 free (b1 cordoned)");
}

/* Only a gang that stays inside a leaf with a slow link may use it: it counts by itself or not at all. */
static void test_a_leaf_behind_a_slow_link_counts_by_itself(void)
{
	cluster("apiVersion: topology.scheduler/v1alpha1\n"
		"kind: Fabric\n"
		"defaults: {gpus: 8}\n"
		"spines:\n"
		"- {name: s, leaves: [{name: l1, uplinkGbps: 100, nodes: [a1, a2, a3, a4]}, {name: l2, nodes: [b1, "
		"b2]}]}\n");
	occupy(c, "a1", 0xff);
	expect(4, 8, "topology-mode=Ignore network-bandwidth=200Gb",
	       "needs 4 nodes; the cluster has 3 free (a1 in use)");
	occupy(c, "a2", 0xff);
	occupy(c, "a3", 0xff);
	expect(4, 8, "topology-mode=Ignore network-bandwidth=200Gb",
	       "needs 4 nodes; the cluster has 2 free (3 nodes in use)");
	TEST_ASSERT_EQUAL_UINT32(FROND_NEVER, plan(c, &(struct wanted){.name = "a",
								       .members = 6,
								       .gpus = 8,
								       .wishes = "topology-mode=Ignore "
										 "network-bandwidth=200Gb"}));
	TEST_ASSERT_NOT_NULL(strstr(c->text, "could hold 4 of them at best"));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_a_full_cluster_names_the_first_place_and_no_room);
	RUN_TEST(test_of_equal_places_the_first_is_named);
	RUN_TEST(test_the_place_with_most_room_is_named_wherever_it_is);
	RUN_TEST(test_a_leaf_in_between_without_room_is_named);
	RUN_TEST(test_a_leaf_behind_a_slow_link_counts_by_itself);
	return UNITY_END();
}
