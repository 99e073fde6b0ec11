/* SPDX-License-Identifier: Apache-2.0 */
/* What-if: whatever is booked, permitted, bound and given back in between, undo() leaves the state as it was. */
#include "cluster.h"
#include "core/check.h"
#include "dice.h"
#include "engine/engine.h"

static struct cluster *c;

void setUp(void)
{
	c = cluster_make("spine:2 leaf:2 node:4 gpu:8", "");
}

void tearDown(void)
{
	cluster_free(c);
}

static void what_if(void)
{
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->what_if(c->engine));
	check(c);
}

static void undo(void)
{
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->undo(c->engine));
	check(c);
}

/* The bytes that undo() promises to bring back, behind the dump as well: lists, free lists, sums. */
struct bytes {
	struct ledger ledger;
	struct gangs gangs;
	struct entry entries[CLUSTER_PODS];
	struct gang gang[CLUSTER_PODS];
	struct node nodes[CLUSTER_NODES];
	struct leaf_sum leaves[4];
	struct spine_sum spines[2];
};

static void take(struct bytes *out)
{
	const struct core *core = &c->engine->core;
	memset(out, 0, sizeof *out);
	out->ledger = core->ledger;
	out->gangs = core->gangs;
	memcpy(out->entries, core->ledger.entries, core->ledger.fresh * sizeof *out->entries);
	memcpy(out->gang, core->gangs.gangs, core->gangs.fresh * sizeof *out->gang);
	memcpy(out->nodes, core->nodes, core->node_cap * sizeof *out->nodes);
	memcpy(out->leaves, core->fabric.leaf, sizeof out->leaves);
	memcpy(out->spines, core->fabric.spine, sizeof out->spines);
}

static void test_without_a_what_if_there_is_nothing_to_undo(void)
{
	remember(c);
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, abi->undo(c->engine));
	unchanged(c);
	what_if();
	undo();
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, abi->undo(c->engine));
	unchanged(c);
}

static void test_every_kind_of_change_is_taken_back(void)
{
	place(c, &(struct wanted){.name = "old", .members = 3, .gpus = 4, .deadline_ms = 50, .priority = 7});
	occupy_by_count(c, "node-9", 2);
	remember(c);
	what_if();
	struct frond_key first = key_of("old", 1), second = key_of("old", 2), gang = key_of("old", UINT64_MAX);
	uint32_t verdict, pods;
	place(c, &(struct wanted){.name = "new", .members = 2, .gpus = 8, .deadline_ms = 9});
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->permit(c->engine, &first, &verdict));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->confirm(c->engine, &first));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release(c->engine, &second));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release_gang(c->engine, &gang, &pods));
	TEST_ASSERT_EQUAL_UINT32(1, pods);
	check(c);
	TEST_ASSERT_EQUAL_UINT32(4, stats(c).pods); /* "new", the first of "old", and the one by count */
	undo();
	unchanged(c);
	struct frond_gang out;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->gang_get(c->engine, &gang, &out));
	TEST_ASSERT_EQUAL_INT64(50, out.deadline_ms);
	TEST_ASSERT_EQUAL_INT32(7, out.priority);
	TEST_ASSERT_EQUAL_UINT32(FROND_GANG_PLANNED, out.state);
}

static void test_the_name_of_a_pod_survives_its_release_in_a_what_if(void)
{
	const struct frond_key pod = {3, 3}, none = {0, 0};
	TEST_ASSERT_EQUAL_INT32(FROND_OK, pod_try(c, pod, 0, 1, 0x1, "ns/kept", none));
	what_if();
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release(c->engine, &pod));
	undo();
	uint32_t at = ledger_find(&c->engine->core.ledger, pod), len;
	TEST_ASSERT_NOT_EQUAL(FROND_NONE, at);
	const char *name = names_text(&c->engine->labels, entry_label(&c->engine->core.ledger.entries[at]), &len);
	TEST_ASSERT_EQUAL_UINT32(7, len);
	TEST_ASSERT_EQUAL_MEMORY("ns/kept", name, 7);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release(c->engine, &pod));
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, names_find(&c->engine->labels, "ns/kept", 7));
}

static void test_undo_takes_back_one_level_at_a_time(void)
{
	enum { DEPTH = 8 };
	static char seen[DEPTH][CLUSTER_TEXT];
	uint64_t generation[DEPTH];
	for (uint32_t depth = 0; depth < DEPTH; depth++) {
		strcpy(seen[depth], dump(c));
		generation[depth] = stats(c).generation;
		what_if();
		char name[8];
		snprintf(name, sizeof name, "g%u", (unsigned)depth);
		place(c, &(struct wanted){.name = name, .members = 2, .gpus = 4});
	}
	for (uint32_t depth = DEPTH; depth-- > 0;) {
		undo();
		TEST_ASSERT_EQUAL_STRING(seen[depth], dump(c));
		TEST_ASSERT_EQUAL_UINT64(generation[depth], stats(c).generation);
	}
}

static void test_a_plan_inside_a_what_if_sees_what_was_booked_there(void)
{
	struct wanted w = {.name = "a", .members = 8, .gpus = 8};
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, plan(c, &w));
	what_if();
	place(c, &(struct wanted){.name = "b", .members = 9, .gpus = 8});
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, plan(c, &w));
	undo();
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, plan(c, &w));
}

static void test_cluster_state_may_not_change_in_a_what_if(void)
{
	place(c, &(struct wanted){.name = "a", .members = 1, .gpus = 1, .deadline_ms = 5});
	what_if();
	remember(c);
	struct frond_key key = {3, 3};
	uint32_t count = 9;
	TEST_ASSERT_EQUAL_INT32(FROND_BAD, node_try(c, 0, "node-1", 8, 0, 1, 0, NULL, NULL));
	TEST_ASSERT_EQUAL_STRING("cluster state cannot change inside a what-if", c->text);
	TEST_ASSERT_EQUAL_INT32(FROND_BAD, abi->node_remove(c->engine, 0));
	TEST_ASSERT_EQUAL_INT32(FROND_BAD, pod_try(c, key, 0, 1, 0, "", key));
	TEST_ASSERT_EQUAL_STRING("cluster state cannot change inside a what-if", c->text);
	TEST_ASSERT_EQUAL_INT32(FROND_BAD,
				abi->gang_put(c->engine, &c->request, NULL, "", 0, c->text, CLUSTER_TEXT, &c->len));
	TEST_ASSERT_EQUAL_INT32(FROND_BAD, abi->tick(c->engine, 1000, &key, 1, &count));
	TEST_ASSERT_EQUAL_UINT32(0, count);
	unchanged(c);
	undo();
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->tick(c->engine, 1000, &key, 1, &count));
	TEST_ASSERT_EQUAL_UINT32(1, count);
}

static void test_a_booking_that_is_stale_in_a_what_if_changes_nothing(void)
{
	what_if();
	plan(c, &(struct wanted){.name = "a", .members = 3, .gpus = 2});
	remember(c);
	c->places[2] = c->places[0]; /* two members on the same GPUs: found when two are booked already */
	TEST_ASSERT_EQUAL_INT32(FROND_STALE, abi->reserve(c->engine, &c->request, c->members, c->places));
	unchanged(c);
	undo();
}

/* Rounds of booking and giving back until the log is full: the last call is refused, and nothing of it has happened. */
static void fill(uint32_t members, uint32_t gpus, bool one_by_one)
{
	struct wanted w = {.name = "a", .members = members, .gpus = gpus, .wishes = "topology-mode=Ignore"};
	int32_t code = FROND_OK;
	static struct bytes before, after;
	static char start[CLUSTER_TEXT];
	strcpy(start, dump(c));
	take(&before);
	what_if();
	for (uint32_t round = 0; code == FROND_OK; round++) {
		TEST_ASSERT_LESS_THAN_UINT32(1000, round);
		TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, plan(c, &w));
		remember(c);
		code = abi->reserve(c->engine, &c->request, c->members, c->places);
		uint32_t pods = 0;
		for (uint32_t i = 0; one_by_one && code == FROND_OK && i < members; i++) {
			remember(c);
			code = abi->release(c->engine, &c->members[i].pod);
		}
		if (!one_by_one && code == FROND_OK) {
			remember(c);
			code = abi->release_gang(c->engine, &c->request.gang, &pods);
			TEST_ASSERT_EQUAL_UINT32(code == FROND_OK ? members : 0, pods);
		}
	}
	TEST_ASSERT_EQUAL_INT32(FROND_LIMIT, code);
	unchanged(c);
	undo();
	TEST_ASSERT_EQUAL_STRING(start, dump(c));
	take(&after);
	TEST_ASSERT_EQUAL_MEMORY(&before, &after, sizeof before);
}

static void test_a_full_log_refuses_before_anything_changes(void)
{
	occupy(c, "node-16", 0x80);
	fill(1, 8, false);
	fill(3, 2, true);
	fill(60, 2, false);
	fill(60, 2, true);
	fill(120, 1, false);
	fill(7, 1, true);
}

static void test_stale_bookings_leave_nothing_in_the_log(void)
{
	remember(c);
	what_if();
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, plan(c, &(struct wanted){.name = "a", .members = 15, .gpus = 8}));
	c->places[14] = c->places[0];
	uint64_t logged = c->engine->core.undo.used;
	for (uint32_t round = 0; round < 1000; round++) {
		TEST_ASSERT_EQUAL_INT32(FROND_STALE, abi->reserve(c->engine, &c->request, c->members, c->places));
		TEST_ASSERT_EQUAL_UINT64(logged, c->engine->core.undo.used);
	}
	check(c);
	undo();
	unchanged(c);
}

static void test_what_an_older_gang_was_promised_in_a_what_if_is_taken_back(void)
{
	static struct bytes before, after;
	place(c, &(struct wanted){.name = "a", .members = 1, .gpus = 2, .deadline_ms = 5, .priority = 7});
	const uint32_t pinned[] = {c->places[0].slot, FROND_NONE, FROND_NONE};
	take(&before);
	what_if();
	place(c, &(struct wanted){.name = "a",
				  .members = 3,
				  .gpus = 2,
				  .pinned = pinned,
				  .min_member = 2,
				  .deadline_ms = 20,
				  .priority = 8,
				  .wishes = "topology-mode=Ignore recovery=MoveGang"});
	undo();
	take(&after);
	TEST_ASSERT_EQUAL_MEMORY(&before, &after, sizeof before);
}

/* Many of them share a place in the tables of pods and of gangs: one that leaves is taken out of the middle of a chain. */
static void test_whoever_leaves_from_the_middle_of_a_chain_comes_back_there(void)
{
	enum { MANY = 400, LEAVE = 40 };
	static struct bytes before, after;
	for (uint32_t i = 0; i < MANY; i++) {
		const struct frond_key key = {3, i + 1};
		TEST_ASSERT_EQUAL_INT32(FROND_OK, pod_try(c, key, i % 16, 0, 0, "", key));
	}
	take(&before);
	for (uint32_t first = 0; first < MANY; first += LEAVE) {
		what_if();
		for (uint32_t i = first; i < first + LEAVE; i++) {
			const struct frond_key key = {3, i * 7 % MANY + 1};
			TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release(c->engine, &key));
		}
		undo();
		take(&after);
		TEST_ASSERT_EQUAL_MEMORY(&before, &after, sizeof before);
	}
}

static void test_nesting_ends_with_the_log(void)
{
	remember(c);
	uint32_t depth = 0;
	for (; abi->what_if(c->engine) == FROND_OK; depth++)
		TEST_ASSERT_LESS_THAN_UINT32(1u << 20, depth);
	TEST_ASSERT_GREATER_THAN_UINT32(1000, depth);
	TEST_ASSERT_EQUAL_INT32(FROND_LIMIT, abi->what_if(c->engine));
	for (; depth > 0; depth--)
		TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->undo(c->engine));
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, abi->undo(c->engine));
	unchanged(c);
}

static void random_step(void)
{
	char name[4];
	snprintf(name, sizeof name, "%u", (unsigned)below(6));
	struct frond_key gang = key_of(name, UINT64_MAX), pod = key_of(name, 1 + below(4));
	uint32_t verdict, pods;
	switch (below(5)) {
	case 0:
		if (plan(c, &(struct wanted){.name = name,
					     .members = 1 + below(4),
					     .gpus = 1 + below(8),
					     .deadline_ms = below(3)}) == FROND_PLACED)
			abi->reserve(c->engine, &c->request, c->members, c->places); /* stale when it is there */
		break;
	case 1:
		abi->permit(c->engine, &pod, &verdict);
		break;
	case 2:
		abi->confirm(c->engine, &pod);
		break;
	case 3:
		abi->release(c->engine, &pod);
		break;
	default:
		abi->release_gang(c->engine, &gang, &pods);
	}
	check(c);
}

static void test_random_changes_nested_at_random_come_back_to_the_last_byte(void)
{
	enum { DEPTH = 6, ROUNDS = 40 };
	static struct bytes seen[DEPTH], now;
	uint32_t depth = 0;
	const char *text = getenv("FROND_SEED");
	dice = text == NULL ? 11 : strtoull(text, NULL, 0);
	printf("seed %llu\n", (unsigned long long)dice);
	for (uint32_t i = 0; i < 20; i++)
		random_step();
	for (uint32_t round = 0; round < ROUNDS || depth > 0; round++) {
		if (depth < DEPTH && round < ROUNDS && percent(60)) {
			take(&seen[depth++]);
			what_if();
			for (uint32_t i = below(12); i > 0; i--)
				random_step();
		} else if (depth > 0) {
			undo();
			take(&now);
			TEST_ASSERT_EQUAL_MEMORY(&seen[--depth], &now, sizeof now);
		}
	}
}

/* ---- the largest gang ------------------------------------------------------------------------------------------------ */

enum { LARGE = FROND_MEMBERS_MAX };

static struct core large;
static struct arena large_arena;

/* One node of 8 GPUs for each member, 64 in a leaf, all held by one gang or each by its own. */
static void large_make(bool own_gangs)
{
	const struct frond_limits limits = {.nodes = LARGE, .pods = LARGE, .table_bytes = 1u << 16};
	struct arena arena = {.base = NULL};
	memset(&large, 0, sizeof large);
	core_layout(&large, &arena, &limits, 0);
	large_arena = (struct arena){
		.base = aligned_alloc(ARENA_ALIGN, arena.used / ARENA_ALIGN * ARENA_ALIGN + ARENA_ALIGN)};
	TEST_ASSERT_NOT_NULL(large_arena.base);
	memset(large_arena.base, 0, arena.used);
	core_layout(&large, &large_arena, &limits, 0);
	struct fabric *fabric = &large.fabric;
	uint32_t topology, dropped;
	bool joined;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, core_topology(&large, &(struct topology){.gpus = 8}, &topology));
	for (uint32_t slot = 0; slot < LARGE; slot++) {
		core_node_put(&large, slot, &(struct node){.gpus = 8, .topology = (uint8_t)topology});
		fabric->order[slot] = fabric->position[slot] = slot;
		fabric->leaf_of[slot] = slot / 64;
		fabric->domain_of[slot] = FROND_NONE;
	}
	fabric->node_count = LARGE;
	fabric->leaf_count = fabric->spine_count = LARGE / 64;
	for (uint32_t leaf = 0; leaf < fabric->leaf_count; leaf++) {
		fabric->leaf_start[leaf + 1] = (leaf + 1) * 64;
		fabric->leaf_spine[leaf] = leaf;
		fabric->leaf_uplink[leaf] = fabric->spine_core[leaf] = 0;
		fabric->spine_start[leaf + 1] = leaf + 1;
	}
	fabric_settle(fabric, large.nodes);
	for (uint32_t i = 0; i < LARGE; i++) {
		struct core_pod pod = {.pod = {1, i + 1},
				       .gang = {2, own_gangs ? i + 1 : 1},
				       .slot = i * 7 % LARGE,
				       .mask = 0xff,
				       .rank = i,
				       .label = FROND_NONE};
		TEST_ASSERT_EQUAL_INT32(FROND_OK, core_pod_put(&large, &pod, &joined, &dropped));
	}
}

/* Everything but the log itself. */
static void large_copy(uint8_t *out)
{
	memcpy(out, large_arena.base, large_arena.used);
	memset(out + ((uint8_t *)large.undo.log - large_arena.base), 0, large.undo.cap * sizeof *large.undo.log);
}

static void leave_all(void)
{
	for (uint32_t i = 0; i < LARGE; i++) {
		uint32_t label;
		/* neither in the order in which they came nor backwards */
		TEST_ASSERT_EQUAL_INT32(FROND_OK,
					core_release(&large, (struct frond_key){1, i * 5 % LARGE + 1}, &label));
	}
	TEST_ASSERT_EQUAL_UINT32(0, large.ledger.used);
	TEST_ASSERT_EQUAL_UINT32(0, large.gangs.used);
}

static void reserve_all(void)
{
	struct frond_member *members = malloc(LARGE * sizeof *members);
	struct frond_place *places = malloc(LARGE * sizeof *places);
	TEST_ASSERT_TRUE(members != NULL && places != NULL);
	for (uint32_t i = 0; i < LARGE; i++) {
		members[i] = (struct frond_member){.pod = {3, i + 1}, .rank = i, .gpus = 8, .pinned_slot = FROND_NONE};
		places[i] = (struct frond_place){.slot = i, .gpu_mask = 0xff};
	}
	struct frond_request request = {.members = LARGE, .min_member = LARGE, .gang = {3, 9}, .deadline_ms = 5};
	TEST_ASSERT_EQUAL_INT32(FROND_OK, core_reserve(&large, &request, members, places));
	TEST_ASSERT_EQUAL_UINT32(LARGE, large.ledger.used);
	free(members);
	free(places);
}

/* To the last bit, in whatever order they leave; and a gang as large may enter where others have left. */
static void test_the_largest_gang_leaves_and_enters_in_a_what_if(void)
{
	for (uint32_t own_gangs = 0; own_gangs < 2; own_gangs++) {
		large_make(own_gangs == 1);
		uint8_t *before = malloc(large_arena.used), *after = malloc(large_arena.used);
		TEST_ASSERT_TRUE(before != NULL && after != NULL);
		struct core counts = large;
		large_copy(before);
		TEST_ASSERT_EQUAL_INT32(FROND_OK, core_what_if(&large));
		leave_all();
		TEST_ASSERT_LESS_OR_EQUAL_UINT64(UNDO_LEAVING * LARGE + 64, large.undo.used * sizeof *large.undo.log);
		TEST_ASSERT_EQUAL_INT32(FROND_OK, core_undo(&large));
		large_copy(after);
		TEST_ASSERT_EQUAL_MEMORY(before, after, large_arena.used);
		TEST_ASSERT_EQUAL_MEMORY(&counts, &large, sizeof large);
		free(before);
		free(after);
		leave_all(); /* in earnest */
		char text[256];
		struct out out = {.text = text, .cap = sizeof text};
		TEST_ASSERT_EQUAL_INT32(FROND_OK, core_what_if(&large));
		reserve_all();
		TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, core_check(&large, &out), text);
		TEST_ASSERT_EQUAL_INT32(FROND_OK, core_undo(&large));
		TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, core_check(&large, &out), text);
		TEST_ASSERT_EQUAL_UINT32(0, large.ledger.used);
		free(large_arena.base);
	}
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_without_a_what_if_there_is_nothing_to_undo);
	RUN_TEST(test_every_kind_of_change_is_taken_back);
	RUN_TEST(test_the_name_of_a_pod_survives_its_release_in_a_what_if);
	RUN_TEST(test_undo_takes_back_one_level_at_a_time);
	RUN_TEST(test_a_plan_inside_a_what_if_sees_what_was_booked_there);
	RUN_TEST(test_cluster_state_may_not_change_in_a_what_if);
	RUN_TEST(test_a_booking_that_is_stale_in_a_what_if_changes_nothing);
	RUN_TEST(test_random_changes_nested_at_random_come_back_to_the_last_byte);
	RUN_TEST(test_what_an_older_gang_was_promised_in_a_what_if_is_taken_back);
	RUN_TEST(test_whoever_leaves_from_the_middle_of_a_chain_comes_back_there);
	RUN_TEST(test_nesting_ends_with_the_log);
	RUN_TEST(test_a_full_log_refuses_before_anything_changes);
	RUN_TEST(test_stale_bookings_leave_nothing_in_the_log);
	RUN_TEST(test_the_largest_gang_leaves_and_enters_in_a_what_if);
	return UNITY_END();
}
