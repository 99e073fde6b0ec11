/* SPDX-License-Identifier: Apache-2.0 */
/* Labels and fabric file → the ordered tree, seen as "spine[leaf(node node) leaf()] none(node)". */
#include "cluster.h"
#include "engine/engine.h"

static struct cluster *c;

void setUp(void)
{
	c = calloc(1, sizeof *c);
	TEST_ASSERT_NOT_NULL(c);
}

void tearDown(void)
{
	cluster_free(c);
}

static void labels_only(uint32_t nodes)
{
	engine_make(c, nodes, 64, "", "");
}

static void put(uint32_t slot, const char *name, const char *leaf, const char *spine)
{
	node_put(c, slot, name, 8, leaf, spine);
}

static void with_file(const char *fabric)
{
	cluster_free(c);
	c = cluster_make(fabric, "");
}

static int say_name(int at, const char *before, struct name_text name)
{
	return at + snprintf(c->shown + at, CLUSTER_TEXT - (size_t)at, "%s%.*s", before, name.len, name.text);
}

static const char *tree(void)
{
	const struct fabric *fabric = &c->engine->core.fabric;
	stats(c); /* builds it */
	check(c);
	int at = 0;
	c->shown[0] = 0;
	for (uint32_t leaf = 0; leaf < fabric->leaf_count; leaf++) {
		uint32_t spine = fabric->leaf_spine[leaf];
		if (leaf == fabric->spine_start[spine])
			at = say_name(at, leaf == 0 ? "" : " ",
				      engine_name(c->engine, c->engine->tree.spine_name[spine]));
		at = say_name(at, leaf == fabric->spine_start[spine] ? "[" : " ",
			      engine_name(c->engine, c->engine->tree.leaf_name[leaf]));
		at += snprintf(c->shown + at, CLUSTER_TEXT - (size_t)at, "(");
		for (uint32_t p = fabric->leaf_start[leaf]; p < fabric->leaf_start[leaf + 1]; p++)
			at = say_name(at, p == fabric->leaf_start[leaf] ? "" : " ",
				      engine_node_name(c->engine, fabric->order[p]));
		at += snprintf(c->shown + at, CLUSTER_TEXT - (size_t)at, "%s",
			       leaf + 1 == fabric->spine_start[spine + 1] ? ")]" : ")");
	}
	uint32_t outside = fabric->leaf_start[fabric->leaf_count];
	for (uint32_t p = outside; p < fabric->node_count; p++)
		at = say_name(at, p == outside ? " none(" : " ", engine_node_name(c->engine, fabric->order[p]));
	if (outside < fabric->node_count)
		snprintf(c->shown + at, CLUSTER_TEXT - (size_t)at, ")");
	return c->shown;
}

static void expect(const char *shape, const char *problems)
{
	TEST_ASSERT_EQUAL_STRING(shape, tree());
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->problems(c->engine, c->text, CLUSTER_TEXT - 1, &c->len));
	c->text[c->len] = 0;
	TEST_ASSERT_EQUAL_STRING(problems, c->text);
}

/* ---- labels ----------------------------------------------------------------------------------------------------- */

static void test_labels_make_a_tree_in_natural_order_of_names(void)
{
	labels_only(8);
	put(0, "node-10", "leaf-10", "spine-1");
	put(1, "node-9", "leaf-2", "spine-1");
	put(2, "node-2", "leaf-10", "spine-1");
	put(3, "node-1", "leaf-3", "spine-10");
	put(4, "node-5", "leaf-4", "spine-9");
	expect("spine-1[leaf-2(node-9) leaf-10(node-2 node-10)] spine-9[leaf-4(node-5)] spine-10[leaf-3(node-1)]", "");
}

static void test_the_order_in_which_nodes_arrive_does_not_matter(void)
{
	static const char *const names[] = {"n1", "n2", "n3", "n4", "n5"};
	static const char *const homes[][2] = {{"b", "s2"}, {"a", "s1"}, {"b", "s2"}, {"a", "s1"}, {"c", "s1"}};
	for (uint32_t shift = 0; shift < 5; shift++) {
		cluster_free(c);
		setUp();
		labels_only(5);
		for (uint32_t i = 0; i < 5; i++) {
			uint32_t which = (i * 2 + shift) % 5;
			put((which + shift) % 5, names[which], homes[which][0], homes[which][1]);
		}
		expect("s1[a(n2 n4) c(n5)] s2[b(n1 n3)]", "");
	}
}

static void test_nodes_without_labels_are_outside_and_no_problem(void)
{
	labels_only(4);
	put(0, "cpu-1", NULL, NULL);
	put(1, "gpu-1", "leaf-1", "spine-1");
	put(2, "cpu-0", NULL, NULL);
	expect("spine-1[leaf-1(gpu-1)] none(cpu-0 cpu-1)", "");
	TEST_ASSERT_EQUAL_UINT32(2, stats(c).nodes_without_leaf);
}

static void test_an_empty_engine_has_an_empty_tree(void)
{
	labels_only(1);
	expect("", "");
	TEST_ASSERT_EQUAL_UINT32(0, stats(c).nodes);
	put(0, "n", "l", "s");
	node_remove(c, 0);
	expect("", "");
}

static void test_an_empty_label_is_no_label(void)
{
	labels_only(2);
	put(0, "n1", "", "");
	expect(" none(n1)", "");
}

static void test_a_leaf_with_two_parents_is_named_and_its_nodes_are_outside(void)
{
	labels_only(8);
	put(0, "n1", "leaf-1", "spine-2");
	put(1, "n2", "leaf-1", "spine-10");
	put(2, "n3", "leaf-2", "spine-2");
	put(3, "n4", "leaf-1", "spine-3");
	expect("spine-2[leaf-2(n3)] none(n1 n2 n4)",
	       "leaf leaf-1 has two parents, spine-2 and spine-3; 3 nodes are scheduled without topology\n");
	put(1, "n2", "leaf-1", "spine-2");
	put(3, "n4", "leaf-1", "spine-2"); /* mended */
	expect("spine-2[leaf-1(n1 n2 n4) leaf-2(n3)]", "");
}

static void test_a_loop_of_labels_is_named(void)
{
	labels_only(8);
	put(0, "n1", "a", "b");
	put(1, "n2", "b", "a");
	put(2, "n3", "self", "self");
	put(3, "n4", "leaf", "spine");
	expect("spine[leaf(n4)] none(n1 n2 n3)",
	       "leaf a is above itself: its spine b is a leaf under it; 1 node is scheduled without topology\n"
	       "leaf b is above itself: its spine a is a leaf under it; 1 node is scheduled without topology\n"
	       "leaf self is above itself: its spine self is a leaf under it; 1 node is scheduled without topology\n");
}

static void test_a_loop_through_three_names_is_named(void)
{
	labels_only(4);
	put(0, "n1", "a", "b");
	put(1, "n2", "b", "c");
	put(2, "n3", "c", "a");
	TEST_ASSERT_EQUAL_STRING(" none(n1 n2 n3)", tree());
	put(2, "n3", "c", "top"); /* a name may be a spine here and a leaf there: only a loop is wrong */
	expect("b[a(n1)] c[b(n2)] top[c(n3)]", "");
}

static void test_a_leaf_without_a_spine_and_a_spine_without_a_leaf_are_named(void)
{
	labels_only(8);
	put(0, "n1", "leaf-1", NULL);
	put(1, "n2", "leaf-2", "spine-1");
	put(2, "n3", NULL, "spine-1");
	put(3, "n4", NULL, "spine-1");
	expect("spine-1[leaf-2(n2)] none(n1 n3 n4)",
	       "leaf leaf-1 has no spine label on node n1; 1 node is scheduled without topology\n"
	       "node n3 has the spine spine-1 but no leaf label; 2 nodes are scheduled without topology\n");
}

static void test_a_leaf_whose_label_is_missing_on_one_node_keeps_the_others(void)
{
	labels_only(4);
	put(0, "n1", "leaf-1", "spine-1");
	put(1, "n2", "leaf-1", NULL);
	expect("spine-1[leaf-1(n1)] none(n2)",
	       "leaf leaf-1 has no spine label on node n2; 1 node is scheduled without topology\n");
}

static void test_problems_beyond_sixteen_are_counted(void)
{
	labels_only(20);
	char leaf[16], name[16];
	for (uint32_t i = 0; i < 19; i++) {
		snprintf(leaf, sizeof leaf, "leaf-%u", (unsigned)i);
		snprintf(name, sizeof name, "n%u", (unsigned)i);
		put(i, name, leaf, NULL);
	}
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->problems(c->engine, c->text, CLUSTER_TEXT - 1, &c->len));
	c->text[c->len] = 0;
	TEST_ASSERT_NOT_NULL(strstr(c->text, "leaf leaf-15 has no spine label on node n15; 1 node is scheduled"));
	TEST_ASSERT_NULL(strstr(c->text, "leaf-16"));
	TEST_ASSERT_NOT_NULL(strstr(c->text, "\n3 further problems of the fabric\n"));
}

/* ---- change ----------------------------------------------------------------------------------------------------- */

static void test_a_relabelled_node_moves_and_keeps_its_pods(void)
{
	labels_only(4);
	put(0, "n1", "leaf-1", "spine-1");
	put(1, "n2", "leaf-2", "spine-1");
	occupy(c, "n1", 0x0f);
	uint64_t before = stats(c).generation;
	put(0, "n1", "leaf-2", "spine-1");
	expect("spine-1[leaf-2(n1 n2)]", "");
	TEST_ASSERT_EQUAL_UINT32(4, stats(c).gpus_bound);
	TEST_ASSERT_TRUE(stats(c).generation > before);
}

static void test_a_removed_node_leaves_and_its_slot_takes_another(void)
{
	labels_only(2);
	put(0, "n1", "leaf-1", "spine-1");
	put(1, "n2", "leaf-2", "spine-2");
	occupy(c, "n1", 0xff);
	node_remove(c, 0);
	expect("spine-2[leaf-2(n2)]", "");
	TEST_ASSERT_EQUAL_UINT32(0, stats(c).pods);
	put(0, "n3", "leaf-2", "spine-2");
	expect("spine-2[leaf-2(n2 n3)]", "");
	TEST_ASSERT_EQUAL_UINT32(16, stats(c).gpus_free);
}

static void test_a_node_may_change_its_slot_after_it_was_removed(void)
{
	labels_only(2);
	put(0, "n1", "leaf-1", "spine-1");
	TEST_ASSERT_EQUAL_INT32(FROND_BAD, node_try(c, 1, "n1", 8, 0, 0, 0, "leaf-1", "spine-1"));
	TEST_ASSERT_EQUAL_STRING("node n1 is in slot 0 already", c->text);
	node_remove(c, 0);
	put(1, "n1", "leaf-1", "spine-1");
	expect("spine-1[leaf-1(n1)]", "");
}

static void test_a_slot_may_change_its_name(void)
{
	labels_only(2);
	put(0, "n1", "leaf-1", "spine-1");
	put(0, "n2", "leaf-1", "spine-1");
	expect("spine-1[leaf-1(n2)]", "");
	put(1, "n1", "leaf-1", "spine-1"); /* the old name is free again */
	expect("spine-1[leaf-1(n1 n2)]", "");
}

static void test_nothing_is_rebuilt_when_neither_name_nor_label_changes(void)
{
	labels_only(2);
	put(0, "n1", "leaf-1", "spine-1");
	tree();
	TEST_ASSERT_FALSE(c->engine->tree.dirty);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, node_try(c, 0, "n1", 4, 1, 1, 100, "leaf-1", "spine-1"));
	TEST_ASSERT_FALSE(c->engine->tree.dirty);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, node_try(c, 0, "n1", 4, 1, 1, 100, "leaf-2", "spine-1"));
	TEST_ASSERT_TRUE(c->engine->tree.dirty);
}

/* ---- other levels ----------------------------------------------------------------------------------------------- */

static void put_labelled(uint32_t slot, const char *name, const char *key, const char *value)
{
	char in[256];
	int len = snprintf(in, sizeof in, "%s%s%s", name, key, value);
	uint32_t a = (uint32_t)strlen(name), b = (uint32_t)strlen(key), end = (uint32_t)len;
	struct frond_pair pair = {{a, b}, {a + b, end - a - b}};
	struct frond_node node = {.slot = slot, .gpus = 8, .topology = FROND_NONE, .name = {0, a}};
	int32_t code = abi->node_put(c->engine, &node, &pair, 1, in, end, c->text, CLUSTER_TEXT - 1, &c->len);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, code);
}

static void test_one_level_of_labels_is_one_spine_named_after_its_first_leaf(void)
{
	engine_make(c, 4, 8, "{\"topology\":{\"levels\":[\"example.com/rack\"]}}", "");
	put_labelled(0, "n1", "example.com/rack", "rack-10");
	put_labelled(1, "n2", "example.com/rack", "rack-2");
	put_labelled(2, "n3", "other.com/rack", "rack-1");
	expect("rack-2[rack-2(n2) rack-10(n1)] none(n3)", "");
}

static void test_a_preset_reads_its_own_labels_and_no_others(void)
{
	engine_make(c, 4, 8, "{\"topology\":{\"preset\":\"topograph-legacy\"}}", "");
	put(0, "n1", "leaf-1", "spine-1"); /* the labels of another preset */
	put_labelled(1, "n2", "network.topology.nvidia.com/leaf", "leaf-1");
	expect(" none(n1 n2)", "leaf leaf-1 has no spine label on node n2; 1 node is scheduled without topology\n");
}

/* ---- the fabric file -------------------------------------------------------------------------------------------- */

static const char file[] = "apiVersion: topology.scheduler/v1alpha1\n"
			   "kind: Fabric\n"
			   "defaults: {gpus: 8, uplinkGbps: 400}\n"
			   "spines:\n"
			   "- name: south\n"
			   "  leaves:\n"
			   "  - {name: z, nodes: [n9, n3]}\n"
			   "  - {name: m, uplinkGbps: 200, nodes: [n4]}\n"
			   "  - {name: a, nodes: [n1, n2]}\n"
			   "- name: north\n"
			   "  leaves:\n"
			   "  - {name: b, nodes: [n7]}\n"
			   "nodes:\n"
			   "- {name: n7, uplinkGbps: 100}\n";

static void test_the_order_of_the_file_decides(void)
{
	with_file(file);
	expect("south[z(n9 n3) m(n4) a(n1 n2)] north[b(n7)]", "");
}

static void test_a_line_is_a_file_too(void)
{
	with_file("spine:2 leaf:2 node:1 gpu:8");
	expect("spine-1[leaf-1(node-1) leaf-2(node-2)] spine-2[leaf-3(node-3) leaf-4(node-4)]", "");
}

static void test_a_leaf_of_the_file_keeps_its_place_when_its_nodes_are_gone(void)
{
	with_file(file);
	node_remove(c, slot_of(c, "n4"));
	expect("south[z(n9 n3) m() a(n1 n2)] north[b(n7)]", "");
	node_remove(c, slot_of(c, "n9"));
	node_remove(c, slot_of(c, "n3"));
	node_remove(c, slot_of(c, "n7"));
	expect("south[z() m() a(n1 n2)] north[b()]", "");
	node_refresh(c, slot_of(c, "n4"));
	expect("south[z() m(n4) a(n1 n2)] north[b()]", "");
}

static void test_speeds_come_from_the_host_or_else_from_the_file(void)
{
	with_file(file);
	const struct core *core = &c->engine->core;
	tree();
	TEST_ASSERT_EQUAL_UINT32(400, core->nodes[slot_of(c, "n1")].uplink_gbps);
	TEST_ASSERT_EQUAL_UINT32(100, core->nodes[slot_of(c, "n7")].uplink_gbps);
	TEST_ASSERT_EQUAL_UINT32(0, core->fabric.leaf_uplink[0]);
	TEST_ASSERT_EQUAL_UINT32(200, core->fabric.leaf_uplink[1]);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, node_try(c, slot_of(c, "n7"), "n7", 8, 0, 0, 50, NULL, NULL));
	TEST_ASSERT_EQUAL_UINT32(50, core->nodes[slot_of(c, "n7")].uplink_gbps);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, node_try(c, slot_of(c, "n7"), "n7", 8, 0, 0, 0, NULL, NULL));
	TEST_ASSERT_EQUAL_UINT32(100, core->nodes[slot_of(c, "n7")].uplink_gbps);
}

static void test_for_a_node_of_the_file_its_labels_do_not_count(void)
{
	with_file(file);
	put(slot_of(c, "n1"), "n1", "b", "north");
	put(slot_of(c, "n2"), "n2", "loop", "loop");
	expect("south[z(n9 n3) m(n4) a(n1 n2)] north[b(n7)]", "");
}

static void test_labelled_nodes_join_the_leaves_of_the_file_after_those_it_lists(void)
{
	with_file(file);
	put(6, "n0", "m", "south");
	put(7, "n5", "m", NULL); /* the file knows the spine */
	expect("south[z(n9 n3) m(n4 n0 n5) a(n1 n2)] north[b(n7)]", "");
}

static void test_labelled_leaves_and_spines_follow_those_of_the_file(void)
{
	with_file(file);
	put(6, "x1", "aa", "south");
	put(7, "x2", "leaf-2", "east");
	put(8, "x3", "leaf-10", "east");
	put(9, "x4", "leaf-1", "north");
	expect("south[z(n9 n3) m(n4) a(n1 n2) aa(x1)] north[b(n7) leaf-1(x4)] east[leaf-2(x2) leaf-10(x3)]", "");
	node_remove(c, slot_of(c, "n7"));
	node_remove(c, slot_of(c, "n1"));
	node_remove(c, slot_of(c, "n2"));
	expect("south[z(n9 n3) m(n4) a() aa(x1)] north[b() leaf-1(x4)] east[leaf-2(x2) leaf-10(x3)]", "");
}

static void test_a_label_that_contradicts_the_file_is_named(void)
{
	with_file(file);
	put(6, "n0", "m", "north");
	expect("south[z(n9 n3) m(n4) a(n1 n2)] north[b(n7)] none(n0)",
	       "leaf m is under south in the fabric file but labelled north; 1 node is scheduled without topology\n");
}

static void test_a_node_outside_the_file_and_without_labels_is_outside(void)
{
	with_file(file);
	put(6, "n0", NULL, NULL);
	expect("south[z(n9 n3) m(n4) a(n1 n2)] north[b(n7)] none(n0)", "");
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_labels_make_a_tree_in_natural_order_of_names);
	RUN_TEST(test_the_order_in_which_nodes_arrive_does_not_matter);
	RUN_TEST(test_nodes_without_labels_are_outside_and_no_problem);
	RUN_TEST(test_an_empty_engine_has_an_empty_tree);
	RUN_TEST(test_an_empty_label_is_no_label);
	RUN_TEST(test_a_leaf_with_two_parents_is_named_and_its_nodes_are_outside);
	RUN_TEST(test_a_loop_of_labels_is_named);
	RUN_TEST(test_a_loop_through_three_names_is_named);
	RUN_TEST(test_a_leaf_without_a_spine_and_a_spine_without_a_leaf_are_named);
	RUN_TEST(test_a_leaf_whose_label_is_missing_on_one_node_keeps_the_others);
	RUN_TEST(test_problems_beyond_sixteen_are_counted);
	RUN_TEST(test_a_relabelled_node_moves_and_keeps_its_pods);
	RUN_TEST(test_a_removed_node_leaves_and_its_slot_takes_another);
	RUN_TEST(test_a_node_may_change_its_slot_after_it_was_removed);
	RUN_TEST(test_a_slot_may_change_its_name);
	RUN_TEST(test_nothing_is_rebuilt_when_neither_name_nor_label_changes);
	RUN_TEST(test_one_level_of_labels_is_one_spine_named_after_its_first_leaf);
	RUN_TEST(test_a_preset_reads_its_own_labels_and_no_others);
	RUN_TEST(test_the_order_of_the_file_decides);
	RUN_TEST(test_a_line_is_a_file_too);
	RUN_TEST(test_a_leaf_of_the_file_keeps_its_place_when_its_nodes_are_gone);
	RUN_TEST(test_speeds_come_from_the_host_or_else_from_the_file);
	RUN_TEST(test_for_a_node_of_the_file_its_labels_do_not_count);
	RUN_TEST(test_labelled_nodes_join_the_leaves_of_the_file_after_those_it_lists);
	RUN_TEST(test_labelled_leaves_and_spines_follow_those_of_the_file);
	RUN_TEST(test_a_label_that_contradicts_the_file_is_named);
	RUN_TEST(test_a_node_outside_the_file_and_without_labels_is_outside);
	return UNITY_END();
}
