/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mutation run over the invariant checker: a healthy state passes; each way of breaking it through the internal
 * structs is noticed, with a sentence; put back, it passes again.
 */
#include "cluster.h"
#include "engine/engine.h"

static struct cluster *c;
static struct core *core;
static uint32_t reserved, bound, counted, full, idle, shared; /* entries */

static uint32_t entry_of(const char *gang, uint32_t rank)
{
	uint32_t at = ledger_find(&core->ledger, key_of(gang, rank + 1));
	TEST_ASSERT_NOT_EQUAL(FROND_NONE, at);
	return at;
}

/* Two gangs, one with a deadline, a member without GPUs, a bound pod, one held by count, two that share a node with a
 * member, a cordoned node, a node without a leaf. */
void setUp(void)
{
	const uint32_t sizes[] = {8, 4, 0};
	struct frond_key pod = key_of("b", 1);
	uint32_t verdict;
	c = cluster_make("spine:2 leaf:2 node:2 gpu:8", "");
	core = &c->engine->core;
	node_put(c, 8, "stray", 4, NULL, NULL);
	place(c, &(struct wanted){.name = "a", .members = 3, .sizes = sizes, .deadline_ms = 9});
	uint32_t half = c->places[1].slot; /* four of its GPUs are free */
	occupy(c, c->nodes[half].name, 0x80);
	struct frond_key neighbour = occupy(c, c->nodes[half].name, 0x40);
	place(c, &(struct wanted){.name = "b", .members = 2, .gpus = 8});
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->permit(c->engine, &pod, &verdict));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->confirm(c->engine, &pod));
	struct frond_key other = occupy_by_count(c, "node-7", 3), over = occupy_by_count(c, "stray", 9);
	place(c, &(struct wanted){.name = "gone", .members = 1, .gpus = 1});
	release(c, "gone", 1); /* leaves an entry and a gang behind that are free again */
	cordon(c, "node-8");
	reserved = entry_of("a", 0);
	idle = entry_of("a", 2);
	bound = entry_of("b", 0);
	counted = ledger_find(&core->ledger, other);
	full = ledger_find(&core->ledger, over);
	shared = ledger_find(&core->ledger, neighbour); /* the first of its node's list */
	check(c);
}

void tearDown(void)
{
	cluster_free(c);
}

static void broken(const char *part)
{
	char text[FROND_TEXT_MAX];
	uint32_t len = 0;
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_BROKEN, abi->check(c->engine, text, sizeof text - 1, &len), part);
	TEST_ASSERT_NOT_EQUAL(0, len);
	text[len] = 0;
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(text, part), text);
}

#define BREAK(field, value, sentence)                                                                                  \
	do {                                                                                                           \
		__typeof__(field) kept = (field);                                                                      \
		(field) = (value);                                                                                     \
		broken(sentence);                                                                                      \
		(field) = kept;                                                                                        \
		check(c);                                                                                              \
	} while (0)

#define LEDGER    core->ledger
#define ENTRY(at) core->ledger.entries[at]
#define NODE(at)  core->nodes[entry_slot(&ENTRY(at))]

/* The same for bits of a record; and for an id among them, which is stored one higher. */
#define BREAK_BITS(record, bits, value, sentence)                                                                      \
	do {                                                                                                           \
		__typeof__(record) kept = (record);                                                                    \
		(record).bits = (value);                                                                               \
		broken(sentence);                                                                                      \
		(record) = kept;                                                                                       \
		check(c);                                                                                              \
	} while (0)
#define BREAK_ID(record, id, value, sentence) BREAK_BITS(record, id##_up, ((value) + 1u) & 0x3fffu, sentence)

static void test_a_healthy_state_passes_and_so_does_an_empty_one(void)
{
	check(c);
	TEST_ASSERT_EQUAL_UINT32(9, stats(c).pods);
	struct cluster *empty = calloc(1, sizeof *empty);
	TEST_ASSERT_NOT_NULL(empty);
	engine_make(empty, 1, 1, "", "");
	check(empty);
	cluster_free(empty);
}

/* ---- the ledger ------------------------------------------------------------------------------------------------- */

static void test_holds(void)
{
	uint32_t seven = slot_of(c, "node-7"), eight = slot_of(c, "node-8");
	struct frond_hold list[] = {{.gang = {5, 1}, .rank = 0, .slot = eight, .gpu_mask = 0x0f, .deadline_ms = 9},
				    {.gang = {5, 1}, .rank = 1, .slot = eight, .gpu_mask = 0xf0}};
	struct holds *holds = &core->ledger.holds;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->hold_put(c->engine, list, 2, c->text, CLUSTER_TEXT - 1, &c->len));
	check(c);
	struct hold *first = &holds->all[holds->order[0]];
	BREAK(core->nodes[eight].held, 0x0f, "holds mask f but its owners hold 0 and holds ff");
	BREAK_BITS(core->nodes[eight], kept, false, "holds mask ff but its owners hold 0 and holds 0");
	BREAK_BITS(core->nodes[seven], kept, true, "holds mask");
	BREAK(first->rank, 2, "is not found by its gang and rank");
	BREAK(first->slot, seven, "holds mask");
	BREAK(first->mask, 0x1f, "share a GPU");
	BREAK_BITS(*first, ended, 1, "has none");
	BREAK_BITS(*first, deadline_ms, 0, "with a deadline");
	BREAK_BITS(*first, deadline_ms, 8, "ends before the soonest");
	BREAK(holds->order[1], holds->order[0], "holds mask");
	BREAK(holds->used, 1, "holds mask");
	BREAK(holds->timed, 2, "with a deadline");
	BREAK(holds->free_head, 0, "free of");
	BREAK(holds->lifted, ((struct frond_key){5, 2}), "with a deadline");
}

static void test_masks_and_counts_of_nodes(void)
{
	BREAK(NODE(reserved).held, 0x7f, "holds mask 7f but its owners hold ff");
	BREAK(NODE(reserved).held, 0, "holds mask 0 but its owners hold ff");
	BREAK(core->nodes[slot_of(c, "node-8")].held, 0x1, "holds mask 1 but its owners hold 0");
	BREAK_BITS(NODE(reserved), by_count, 1, "counts 1 GPUs held by count, its pods 0"); /* it has no free GPU */
	BREAK_BITS(NODE(counted), by_count, 2, "says 5 GPUs are free, it has 6");
	BREAK_BITS(NODE(full), by_count, 5, "counts 5 GPUs held by count, its pods 9"); /* none is free either way */
	BREAK(NODE(counted).free, 4, "says 4 GPUs are free, it has 5");
	BREAK(core->nodes[c->limits.nodes - 1].held, 1, "holds mask 1 but its owners hold 0");
	BREAK_BITS(core->nodes[c->limits.nodes - 1], by_count, 1, "is gone but something is held there");
	BREAK_BITS(NODE(reserved), present, false, "is on no node");
}

static void test_a_gpu_has_one_owner(void)
{
	uint32_t other = entry_node_next(&ENTRY(shared)); /* a neighbour on the same node */
	TEST_ASSERT_NOT_EQUAL(FROND_NONE, other);
	BREAK_BITS(ENTRY(shared), mask, ENTRY(other).mask, "has two owners");
	BREAK_BITS(ENTRY(other), mask, ENTRY(other).mask | ENTRY(shared).mask, "has two owners");
	BREAK_BITS(ENTRY(shared), mask, 0, "but its owners hold");
	BREAK_BITS(ENTRY(counted), mask, 0x01, "holds mask 0 but its owners hold 1");
}

static void test_entries_that_hold_what_they_should_not(void)
{
	BREAK_BITS(ENTRY(idle), mask, 0x01, "holds GPUs of no node");
	BREAK_BITS(ENTRY(idle), by_count, 1, "holds GPUs of no node");
	BREAK_BITS(ENTRY(counted), by_count, 4, "counts 3 GPUs held by count, its pods 4");
	BREAK_ID(ENTRY(counted), slot, c->limits.nodes, "is on no node");
	BREAK_ID(ENTRY(counted), slot, c->limits.nodes - 1, "is on no node"); /* a slot without a node */
	BREAK_ID(ENTRY(counted), slot, slot_of(c, "node-8"), "that is not there");
	BREAK_ID(ENTRY(idle), slot, slot_of(c, "node-8"), "entries are on nodes, the nodes list");
	BREAK_ID(ENTRY(reserved), gang, FROND_NONE, "is reserved in no gang");
	BREAK_BITS(ENTRY(counted), hold, HOLD_RESERVED, "is reserved in no gang");
}

static void test_lists_of_nodes(void)
{
	uint32_t slot = entry_slot(&ENTRY(shared)), empty = slot_of(c, "node-8"),
		 other = entry_node_next(&ENTRY(shared));
	BREAK(core->nodes[slot].first, FROND_NONE, "entries are on nodes, the nodes list");
	BREAK(core->nodes[slot].first, other, "entries are on nodes, the nodes list");
	BREAK(core->nodes[slot].first, CLUSTER_PODS, "entries are on nodes, the nodes list");
	BREAK(core->nodes[empty].first, reserved, "entries are on nodes, the nodes list");
	BREAK(core->nodes[empty].first, LEDGER.free_head, "entries are on nodes, the nodes list");
	BREAK_ID(ENTRY(shared), node_next, FROND_NONE, "entries are on nodes, the nodes list");
	BREAK_ID(ENTRY(shared), node_next, shared, "entries are on nodes, the nodes list"); /* a loop */
	BREAK_ID(ENTRY(shared), node_next, reserved, "entries are on nodes, the nodes list");
	BREAK(core->nodes[empty].first, CLUSTER_PODS, "lists entries without end or out of range");
}

static void test_keys_and_lists_of_the_ledger(void)
{
	BREAK(ENTRY(reserved).pod.lo, 12345, "is not found by its key");
	BREAK(ENTRY(reserved).pod, ENTRY(bound).pod, "is not found by its key");
	BREAK(LEDGER.used, 8, "the ledger counts 8 entries, there are 9");
	BREAK(LEDGER.used, 10, "the ledger counts 10 entries, there are 9");
	BREAK(LEDGER.free_head, FROND_NONE, "there are 9 and 0 free of 10");
	BREAK(LEDGER.fresh, 11, "there are 9 and 1 free of 11");
	BREAK(LEDGER.cap, 9, "there are 9 and 1 free of 10");
	BREAK_ID(ENTRY(LEDGER.free_head), chain, LEDGER.free_head, "there are 9 and 513 free of 10"); /* a loop */
	BREAK_BITS(ENTRY(idle), hold, HOLD_FREE, "the ledger counts 9 entries, there are 8");
	for (uint32_t i = 0; i <= LEDGER.bucket_mask; i++)
		if (LEDGER.bucket[i] == reserved)
			BREAK(LEDGER.bucket[i], FROND_NONE, "is not found by its key");
}

/* ---- gangs ------------------------------------------------------------------------------------------------------ */

static void test_counts_of_gangs(void)
{
	struct gangs *gangs = &core->gangs;
	struct gang *gang = &gangs->gangs[entry_gang(&ENTRY(reserved))],
		    *half = &gangs->gangs[entry_gang(&ENTRY(bound))];
	BREAK_BITS(*gang, members, 2, "counts 2 members");
	BREAK_BITS(*gang, members, 4, "counts 4 members");
	BREAK_BITS(*gang, missing, 2, "2 missing, it has 3 and 3");
	BREAK_BITS(*gang, bound, 1, "counts 1 bound members, it has 0");
	BREAK_BITS(*half, bound, 0, "counts 0 bound members, it has 1");
	BREAK_BITS(*half, min_member, 1, "counts 1 bound members, it has 1"); /* bound enough, but never whole */
	BREAK(gang->key.hi, 1, "counts 3 members");
	BREAK(gangs->used, 3, "entries are in gangs");
	BREAK(gangs->timed, 0, "1 gangs have a deadline, 0 are counted");
	BREAK_BITS(*gang, deadline_ms, 0, "0 gangs have a deadline, 1 are counted");
	BREAK_BITS(*half, deadline_ms, 7, "2 gangs have a deadline, 1 are counted");
	BREAK_BITS(ENTRY(reserved), arrived, true, "3 missing, it has 3 and 2");
	BREAK_BITS(ENTRY(reserved), hold, HOLD_BOUND, "3 missing, it has 3 and 2");
	for (uint32_t i = 0; i <= gangs->bucket_mask; i++)
		if (gangs->bucket[i] == entry_gang(&ENTRY(reserved)))
			BREAK(gangs->bucket[i], FROND_NONE, "counts 3 members");
}

static void test_lists_of_gangs(void)
{
	struct gang *gang = &core->gangs.gangs[entry_gang(&ENTRY(reserved))];
	BREAK_ID(core->gangs.gangs[entry_gang(&ENTRY(bound))], first, FROND_NONE,
		 "5 entries are in gangs, the gangs list 3");
	BREAK_ID(*gang, first, FROND_NONE, "0 gangs have a deadline, 1 are counted");
	BREAK_ID(*gang, first, bound, "that is not its own");
	BREAK_ID(*gang, first, CLUSTER_PODS, "lists an entry out of range");
	BREAK_ID(ENTRY(bound), gang, entry_gang(&ENTRY(reserved)), "that is not its own");
	BREAK_ID(ENTRY(bound), gang, FROND_NONE, "that is not its own");
	BREAK_ID(ENTRY(gang_first(gang)), gang_prev, bound, "that is not its own");
	BREAK_ID(ENTRY(gang_first(gang)), gang_next, FROND_NONE, "counts 3 members");
	BREAK_ID(ENTRY(gang_first(gang)), gang_next, gang_first(gang), "that is not its own"); /* a loop */
	BREAK_ID(ENTRY(counted), gang, entry_gang(&ENTRY(reserved)), "6 entries are in gangs, the gangs list 5");
}

/* ---- the fabric ------------------------------------------------------------------------------------------------- */

static void test_order_of_the_fabric(void)
{
	struct fabric *fabric = &core->fabric;
	BREAK(fabric->order[0], 1, "position 0 and its node disagree");
	BREAK(fabric->order[0], c->limits.nodes, "position 0 and its node disagree");
	BREAK(fabric->position[0], 1, "position 0 and its node disagree");
	BREAK(fabric->position[0], FROND_NONE, "position 0 and its node disagree");
	BREAK(fabric->position[c->limits.nodes - 1], 0, "9 nodes are there, 9 are in the fabric");
	BREAK(fabric->node_count, 8, "9 nodes are there, 8 are in the fabric");
	BREAK_BITS(core->nodes[c->limits.nodes - 1], present, true, "10 nodes are there, 9 are in the fabric");
	BREAK_BITS(core->nodes[slot_of(c, "node-8")], present, false, "position 7 and its node disagree");
}

static void test_leaves_and_spines_of_the_fabric(void)
{
	struct fabric *fabric = &core->fabric;
	BREAK(fabric->leaf_of[0], 1, "position 0 is in the wrong leaf");
	BREAK(fabric->leaf_of[0], FROND_NONE, "position 0 is in the wrong leaf");
	BREAK(fabric->leaf_of[8], 3, "position 8 is in the wrong leaf");
	BREAK(fabric->leaf_start[1], 1, "position 1 is in the wrong leaf");
	BREAK(fabric->leaf_start[4], 9, "position 8 is in the wrong leaf");
	BREAK(fabric->leaf_start[0], 3, "ends before it begins");
	BREAK(fabric->leaf_spine[1], 1, "leaf 1 is under the wrong spine");
	BREAK(fabric->spine_start[1], 1, "leaf 1 is under the wrong spine");
	BREAK(fabric->spine_start[2], 3, "leaf 3 is under the wrong spine");
	BREAK(fabric->leaf_count, 3, "position 6 is in the wrong leaf");
	BREAK(fabric->spine_count, 1, "leaf 2 is under the wrong spine");
}

static void test_sums_of_leaves_and_spines(void)
{
	struct fabric *fabric = &core->fabric;
	for (uint32_t leaf = 0; leaf < fabric->leaf_count; leaf++) {
		struct leaf_sum *sum = &fabric->leaf[leaf];
		for (uint32_t i = 0; i <= FROND_GPUS_MAX; i++)
			BREAK(sum->at_least[i], (uint16_t)(sum->at_least[i] + 1),
			      "counts other GPUs than its nodes have");
		BREAK(sum->free, sum->free + 1, "counts other GPUs than its nodes have");
		BREAK(sum->used, sum->used - 1, "counts other GPUs than its nodes have");
		BREAK(sum->total, sum->total + 8, "counts other GPUs than its nodes have");
		BREAK(sum->odd, (uint16_t)(sum->odd + 1), "counts other GPUs than its nodes have");
		BREAK(fabric->leaf_lacking[leaf], 1, "counts other GPUs than its nodes have");
		BREAK(fabric->leaf_kind[leaf], KIND_NONE, "counts other GPUs than its nodes have");
		BREAK(fabric->leaf_model[leaf], (uint8_t)(fabric->leaf_model[leaf] ^ LEAF_MODELS),
		      "names other models than its nodes have");
	}
	for (uint32_t spine = 0; spine < fabric->spine_count; spine++) {
		struct spine_sum *sum = &fabric->spine[spine];
		for (uint32_t i = 0; i <= FROND_GPUS_MAX; i++)
			BREAK(sum->at_least[i], sum->at_least[i] - 1, "counts other nodes than its leaves");
		BREAK_BITS(*sum, touched, (sum->touched + 1u) & 0xffffu, "touched nodes, it has");
		BREAK(sum->lacking, sum->lacking + 1, "nodes that lack capacity, it has");
	}
}

static void test_sums_of_blocks(void)
{
	static const char wrong[] = "leaves 0 to 3 have other counts than their block says";
	struct fabric *fabric = &core->fabric;
	struct block_sum *block = fabric->block;
	for (uint32_t i = 0; i < FROND_GPUS_MAX; i++) {
		BREAK(block->least[i], (uint16_t)(block->least[i] + 1), wrong);
		BREAK(block->most[i], (uint16_t)(block->most[i] - 1), wrong);
	}
	BREAK(block->free_least, block->free_least - 1, wrong);
	BREAK(block->free_most, block->free_most + 1, wrong);
	BREAK(block->kind, FROND_NONE, wrong);
	BREAK(block->total, block->total + 1, wrong);
	struct block_sum blocks[2] = {block[0], block[1]}; /* of two leaves each */
	fabric->block_shift = 1;
	block[1] = block[0];
	broken("leaves 0 to 1 have other counts than their block says");
	fabric->block_shift = 5;
	block[0] = blocks[0];
	block[1] = blocks[1];
	check(c);
}

static void test_nodes_that_say_something_else_than_their_leaf_has_counted(void)
{
	struct node *node = &core->nodes[slot_of(c, "node-8")]; /* cordoned, and otherwise free */
	BREAK_BITS(*node, flags, 0, "counts other GPUs than its nodes have");
	BREAK_BITS(*node, gpus, 7, "says 8 GPUs are free, it has 7");
	BREAK(node->unhealthy, 1, "says 8 GPUs are free, it has 7");
	BREAK(node->free, 7, "says 7 GPUs are free, it has 8");
	BREAK_BITS(*node, unavailable, true, "counts other GPUs than its nodes have");
	BREAK(node->unavailable_gpus, 1, "is no capacity for the rule, but open or healthy");
	BREAK_BITS(core->nodes[slot_of(c, "node-7")], unavailable, true,
		   "is no capacity for the rule, but open or healthy");
	BREAK(core->fabric.lacking, 1, "0 nodes lack capacity, the fabric counts 1");
	BREAK_BITS(*node, topology, 0, "counts other GPUs than its nodes have");
}

static void test_counts_and_memory_of_link_tables(void)
{
	struct tables *tables = &core->tables;
	uint32_t id = core->nodes[0].topology;
	TEST_ASSERT_TRUE(id > 0 && tables->nodes[id] > 1);
	BREAK(tables->nodes[id], tables->nodes[id] + 1, "nodes that have it");
	BREAK(tables->nodes[id], tables->nodes[id] - 1, "nodes that have it");
	BREAK(tables->nodes[255], 1, "link table 255 counts 1 nodes that have it, 0 do");
	BREAK(tables->sets[id], NULL, "fewer, or it is not there");
	BREAK(tables->sets[255], tables->sets[id], "share memory");
	BREAK(tables->used, tables->used + 16, "bytes, they have");
	BREAK(tables->used, tables->used - 16, "lies outside the memory in use");
}

static void test_the_sentence_is_cut_where_the_buffer_ends(void)
{
	char text[8] = "#######";
	uint32_t len = 99;
	core->ledger.used++;
	TEST_ASSERT_EQUAL_INT32(FROND_BROKEN, abi->check(c->engine, text, 4, &len));
	TEST_ASSERT_TRUE(len <= 4);
	TEST_ASSERT_EQUAL_MEMORY("the", text, 3);
	TEST_ASSERT_EQUAL_MEMORY("###", text + 4, 3);
	TEST_ASSERT_EQUAL_INT32(FROND_BROKEN, abi->check(c->engine, NULL, 0, &len));
	TEST_ASSERT_EQUAL_UINT32(0, len);
	core->ledger.used--;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->check(c->engine, NULL, 0, &len));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_a_healthy_state_passes_and_so_does_an_empty_one);
	RUN_TEST(test_holds);
	RUN_TEST(test_masks_and_counts_of_nodes);
	RUN_TEST(test_a_gpu_has_one_owner);
	RUN_TEST(test_entries_that_hold_what_they_should_not);
	RUN_TEST(test_lists_of_nodes);
	RUN_TEST(test_keys_and_lists_of_the_ledger);
	RUN_TEST(test_counts_of_gangs);
	RUN_TEST(test_lists_of_gangs);
	RUN_TEST(test_order_of_the_fabric);
	RUN_TEST(test_leaves_and_spines_of_the_fabric);
	RUN_TEST(test_sums_of_leaves_and_spines);
	RUN_TEST(test_sums_of_blocks);
	RUN_TEST(test_nodes_that_say_something_else_than_their_leaf_has_counted);
	RUN_TEST(test_counts_and_memory_of_link_tables);
	RUN_TEST(test_the_sentence_is_cut_where_the_buffer_ends);
	return UNITY_END();
}
