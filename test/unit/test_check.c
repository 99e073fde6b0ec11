/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mutation run over the invariant checker: a healthy state passes; each way of breaking it through the internal
 * structs is noticed, with a sentence; put back, it passes again.
 */
#include "cluster.h"
#include "text/engine.h"

static struct cluster *c;
static struct core *core;
static uint32_t reserved, bound, counted, idle; /* entries */

static uint32_t entry_of(const char *gang, uint32_t rank)
{
	uint32_t at = ledger_find(&core->ledger, key_of(gang, rank + 1));
	TEST_ASSERT_NOT_EQUAL(FROND_NONE, at);
	return at;
}

/* Two gangs, a member without GPUs, a bound pod, one held by count, a cordoned node, a node without a leaf. */
void setUp(void)
{
	const uint32_t sizes[] = {8, 4, 0};
	c = cluster_make("spine:2 leaf:2 node:2 gpu:8", "");
	core = &c->engine->core;
	node_put(c, 8, "stray", 4, NULL, NULL);
	place(c, &(struct wanted){.name = "a", .members = 3, .sizes = sizes});
	place(c, &(struct wanted){.name = "b", .members = 2, .gpus = 8});
	struct frond_key pod = key_of("b", 1);
	uint32_t verdict;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->permit(c->engine, &pod, &verdict));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->confirm(c->engine, &pod));
	struct frond_key other = occupy_by_count(c, "node-7", 3);
	cordon(c, "node-8");
	reserved = entry_of("a", 0);
	idle = entry_of("a", 2);
	bound = entry_of("b", 0);
	counted = ledger_find(&core->ledger, other);
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
	TEST_ASSERT_EQUAL_INT32(FROND_BROKEN, abi->check(c->engine, text, sizeof text - 1, &len));
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
#define OWNER(at) core->ledger.owner[ENTRY(at).slot * FROND_GPUS_MAX]

static void test_a_healthy_state_passes_and_so_does_an_empty_one(void)
{
	check(c);
	TEST_ASSERT_EQUAL_UINT32(6, stats(c).pods);
	struct cluster *empty = calloc(1, sizeof *empty);
	TEST_ASSERT_NOT_NULL(empty);
	engine_make(empty, 1, 1, "", "");
	check(empty);
	cluster_free(empty);
}

static void test_masks_of_nodes(void)
{
	uint32_t slot = ENTRY(reserved).slot, stray = slot_of(c, "stray");
	BREAK(core->nodes[slot].held, 0x7f, "holds mask 7f but its owners hold ff");
	BREAK(core->nodes[slot].held, 0, "holds mask 0 but its owners hold ff");
	BREAK(core->nodes[stray].held, 0x1, "holds mask 1 but its owners hold 0");
	BREAK(core->nodes[slot].by_count, 1, "counts 1 GPUs held by count, its pods 0");
	BREAK(core->nodes[ENTRY(counted).slot].by_count, 2, "counts 2 GPUs held by count, its pods 3");
}

static void test_owners_of_gpus(void)
{
	uint32_t stray = slot_of(c, "stray") * FROND_GPUS_MAX;
	BREAK(OWNER(reserved), FROND_NONE, "that another owns");
	BREAK(OWNER(reserved), bound, "that another owns");
	BREAK(OWNER(bound), reserved, "that another owns");
	BREAK(LEDGER.owner[stray], reserved, "has an owner that does not hold it");
	BREAK(LEDGER.owner[stray], CLUSTER_PODS - 1, "has an owner that does not hold it");
	BREAK(LEDGER.owner[stray], CLUSTER_PODS, "has an owner out of range");
}

static void test_entries_that_hold_what_they_should_not(void)
{
	BREAK(ENTRY(counted).mask, 0x01, "that another owns");
	BREAK(ENTRY(bound).mask, ENTRY(bound).mask >> 1, "has an owner that does not hold it");
	BREAK(ENTRY(idle).mask, 0x01, "holds GPUs of no node");
	BREAK(ENTRY(idle).by_count, 1, "holds GPUs of no node");
	BREAK(ENTRY(counted).by_count, 4, "counts 3 GPUs held by count, its pods 4");
	BREAK(ENTRY(counted).slot, c->limits.nodes, "is on no node");
	BREAK(ENTRY(counted).slot, slot_of(c, "stray"), "held by count");
	BREAK(ENTRY(reserved).slot, ENTRY(bound).slot, "that another owns");
	BREAK(ENTRY(counted).slot, c->limits.nodes - 1, "is on no node"); /* a slot without a node */
}

static void test_a_node_that_is_gone_holds_nothing(void)
{
	BREAK(core->nodes[ENTRY(reserved).slot].present, false, "is on no node");
	BREAK(core->nodes[c->limits.nodes - 1].held, 1, "holds mask 1 but its owners hold 0");
	BREAK(core->nodes[c->limits.nodes - 1].by_count, 1, "is gone but something is held there");
}

static void test_keys_and_lists_of_the_ledger(void)
{
	BREAK(ENTRY(reserved).pod.lo, 12345, "is not found by its key");
	BREAK(ENTRY(reserved).pod, ENTRY(bound).pod, "is not found by its key");
	BREAK(LEDGER.used, 5, "the ledger counts 5 entries, there are 6");
	BREAK(LEDGER.used, 7, "the ledger counts 7 entries, there are 6");
	BREAK(LEDGER.free_head, FROND_NONE, "there are 6 and 0 free of 512");
	BREAK(ENTRY(LEDGER.free_head).chain, LEDGER.free_head, "there are 6 and 513 free of 512"); /* a loop */
	BREAK(ENTRY(counted).hold, HOLD_FREE, "the ledger counts 6 entries, there are 5");
	for (uint32_t i = 0; i <= LEDGER.bucket_mask; i++)
		if (LEDGER.bucket[i] == reserved)
			BREAK(LEDGER.bucket[i], FROND_NONE, "is not found by its key");
}

static void test_reservations_are_in_gangs(void)
{
	BREAK(ENTRY(reserved).gang, FROND_NONE, "is reserved in no gang");
	BREAK(ENTRY(counted).hold, HOLD_RESERVED, "is reserved in no gang");
}

static void test_lists_and_counts_of_gangs(void)
{
	struct gangs *gangs = &core->gangs;
	struct gang *gang = &gangs->gangs[ENTRY(reserved).gang];
	BREAK(gang->members, 2, "counts 2 members");
	BREAK(gang->members, 4, "counts 4 members");
	BREAK(gang->missing, 2, "2 missing, it has 3 and 3");
	BREAK(gang->key.hi, 1, "counts 3 members");
	BREAK(gang->first, FROND_NONE, "entries are in gangs");
	BREAK(gang->first, bound, "that is not its own");
	BREAK(gang->first, CLUSTER_PODS, "lists an entry out of range");
	BREAK(gangs->used, 3, "entries are in gangs");
	BREAK(ENTRY(reserved).arrived, true, "3 missing, it has 3 and 2");
	BREAK(ENTRY(reserved).hold, HOLD_BOUND, "3 missing, it has 3 and 2");
	BREAK(ENTRY(bound).gang, ENTRY(reserved).gang, "that is not its own");
	BREAK(ENTRY(bound).gang, FROND_NONE, "that is not its own");
	BREAK(ENTRY(gang->first).gang_prev, bound, "that is not its own");
	BREAK(ENTRY(gang->first).gang_next, FROND_NONE, "counts 3 members");
	BREAK(ENTRY(gang->first).gang_next, gang->first, "that is not its own"); /* a loop */
	BREAK(ENTRY(counted).gang, ENTRY(reserved).gang, "6 entries are in gangs, the gangs list 5");
}

static void test_order_of_the_fabric(void)
{
	struct fabric *fabric = &core->fabric;
	BREAK(fabric->order[0], 1, "position 0 and its node disagree");
	BREAK(fabric->order[0], c->limits.nodes, "position 0 and its node disagree");
	BREAK(fabric->position[0], 1, "position 0 and its node disagree");
	BREAK(fabric->position[0], FROND_NONE, "position 0 and its node disagree");
	BREAK(fabric->position[c->limits.nodes - 1], 0, "9 nodes are there, 9 are in the fabric");
	BREAK(fabric->node_count, 8, "9 nodes are there, 8 are in the fabric");
	BREAK(core->nodes[c->limits.nodes - 1].present, true, "10 nodes are there, 9 are in the fabric");
	BREAK(core->nodes[slot_of(c, "stray")].present, false, "position 8 and its node disagree");
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
	RUN_TEST(test_masks_of_nodes);
	RUN_TEST(test_owners_of_gpus);
	RUN_TEST(test_entries_that_hold_what_they_should_not);
	RUN_TEST(test_a_node_that_is_gone_holds_nothing);
	RUN_TEST(test_keys_and_lists_of_the_ledger);
	RUN_TEST(test_reservations_are_in_gangs);
	RUN_TEST(test_lists_and_counts_of_gangs);
	RUN_TEST(test_order_of_the_fabric);
	RUN_TEST(test_leaves_and_spines_of_the_fabric);
	RUN_TEST(test_the_sentence_is_cut_where_the_buffer_ends);
	return UNITY_END();
}
