/* SPDX-License-Identifier: Apache-2.0 */
/* place_single.c: among many leaves the one that 3.4 names, every candidate counted, and the nearest one when none will do. */
#include "rig.h"

enum { NODES_MOST = 12, MEMBERS_MOST = NODES_MOST * 16, TERMS_USED = 4, KEYS = 8 };

static struct frond_member members[MEMBERS_MOST + 1];
static struct frond_place places[MEMBERS_MOST + 1];
static struct answer answer;
static uint32_t placed, waiting, bounded;
static struct frond_room rooms[16]; /* nodes that take nobody today */

static void rig_extend(struct arena *arena, const struct frond_limits *limits)
{
	(void)arena;
	(void)limits;
}

/* ---- the slow way --------------------------------------------------------------------------------------------------- */

struct leaf_facts {
	uint32_t free, used, total, room, capacity; /* GPUs; members */
	uint32_t topology;                          /* of all its nodes: 0, or 1 with slower links */
	uint32_t broken; /* nodes that were wholly free and are partly used afterwards, where all find room */
};

static bool excepted(const struct ask *ask, uint32_t slot)
{
	for (uint32_t i = 0; i < ask->room_count; i++)
		if (ask->room[i].slot == slot)
			return true;
	return false;
}

/* Nodes of the leaf that the members break, who choose one after the other: fewest GPUs left over, then the first. */
static uint32_t broken_by(const struct ask *ask, uint32_t first, uint32_t end)
{
	const struct fabric *fabric = &rig->core.fabric;
	uint32_t broken = 0;
	static uint32_t left[256 * NODES_MOST], before[256 * NODES_MOST]; /* the last leaf may have many */
	TEST_ASSERT_LESS_OR_EQUAL_UINT32(256 * NODES_MOST, end - first);
	for (uint32_t at = first; at < end; at++) {
		const struct node *node = &rig->core.nodes[fabric->order[at]];
		bool open = node_open(node) && !excepted(ask, fabric->order[at]);
		left[at - first] = before[at - first] = open ? node_free_count(node) : 0;
	}
	for (uint32_t i = 0; i < ask->count; i++) {
		uint32_t tightest = UINT32_MAX;
		for (uint32_t at = 0; at < end - first; at++)
			if (left[at] >= ask->members[0].gpus && (tightest == UINT32_MAX || left[at] < left[tightest]))
				tightest = at;
		left[tightest] -= ask->members[0].gpus;
	}
	for (uint32_t at = 0; at < end - first; at++)
		broken += node_whole(&rig->core.nodes[fabric->order[first + at]]) && left[at] > 0 &&
			  left[at] < before[at];
	return broken;
}

static struct leaf_facts facts_of(const struct ask *ask, uint32_t leaf)
{
	const struct fabric *fabric = &rig->core.fabric;
	struct leaf_facts facts = {0};
	for (uint32_t at = fabric->leaf_start[leaf]; at < fabric->leaf_start[leaf + 1]; at++) {
		const struct node *node = &rig->core.nodes[fabric->order[at]];
		uint32_t free = node_free_count(node), gpus = ask->members[0].gpus;
		facts.topology = node->topology;
		facts.free += free;
		facts.used += node_used_count(node);
		facts.total += node->gpus;
		facts.capacity += node->gpus / gpus;
		facts.room += node_open(node) && !excepted(ask, fabric->order[at]) ? free / gpus : 0;
	}
	if (facts.room >= ask->count)
		facts.broken = broken_by(ask, fabric->leaf_start[leaf], fabric->leaf_start[leaf + 1]);
	return facts;
}

/* Steps 4 to 6 of reference 3.4: the lower, the better. */
static void rank_of(const struct ask *ask, const struct leaf_facts *facts, uint64_t rank[KEYS])
{
	uint64_t gpus = (uint64_t)ask->count * ask->members[0].gpus;
	uint64_t available = 10000ull * facts->free / facts->total, used = 10000ull * facts->used / facts->total;
	uint64_t terms[TERMS_USED] = {available, 10000ull * gpus / facts->free,
				      ask->strategy == STRATEGY_DISTRIBUTED ? available : used, 10000};
	uint64_t sum = 0, weights = 0, opened = facts->used == 0, left = facts->free - gpus;
	for (uint32_t i = 0; i < SCORE_TERMS; i++) {
		sum += i < TERMS_USED ? ask->weight[i] * terms[i] : 0;
		weights += ask->weight[i];
	}
	uint64_t score = UINT64_MAX - sum / weights;
	memset(rank, 0, KEYS * sizeof *rank);
	rank[0] = ask->members[0].gpus > 1 ? facts->topology : 0;
	if (ask->latency_sensitive) {
		rank[1] = UINT64_MAX - facts->free;
		rank[2] = score;
		return;
	}
	if (ask->strategy != STRATEGY_DISTRIBUTED) {
		rank[1] = opened && left > 0;
		rank[2] = facts->broken;
	}
	bool score_last = ask->strategy == STRATEGY_CONSOLIDATED;
	rank[score_last ? 3 : 4] = opened;
	rank[score_last ? 4 : 5] = left;
	rank[score_last ? 5 : 3] = score;
}

static bool before(const uint64_t a[KEYS], const uint64_t b[KEYS])
{
	for (uint32_t i = 0; i < KEYS; i++)
		if (a[i] != b[i])
			return a[i] < b[i];
	return false;
}

/* The leaf that wins, FROND_NONE without a candidate; *nearest: the first with most room, *most, that could hold it. */
static uint32_t winner(const struct ask *ask, uint32_t *candidates, uint32_t *nearest, uint32_t *most)
{
	const struct fabric *fabric = &rig->core.fabric;
	uint64_t best[KEYS] = {0}, rank[KEYS];
	uint32_t leaf_best = FROND_NONE;
	*candidates = *most = 0;
	*nearest = FROND_NONE;
	for (uint32_t leaf = 0; leaf < fabric->leaf_count; leaf++) {
		struct leaf_facts facts = facts_of(ask, leaf);
		bool could = facts.capacity >= ask->count;
		if (could && (*nearest == FROND_NONE || facts.room > *most)) {
			*most = facts.room;
			*nearest = leaf;
		}
		if (facts.room < ask->count || ++*candidates > FROND_CANDIDATES)
			continue;
		rank_of(ask, &facts, rank);
		if (leaf_best == FROND_NONE || before(rank, best)) {
			memcpy(best, rank, sizeof best);
			leaf_best = leaf;
		}
	}
	return leaf_best;
}

/* ---- against the planner --------------------------------------------------------------------------------------------- */

static struct ask random_ask(uint32_t nodes, uint32_t gpus)
{
	bool one = nodes == 1 || percent(25), shared = !one && gpus > 1 && percent(30);
	uint32_t size = one ? 1 + below(gpus) : shared ? 1 + below(gpus - 1) : gpus, each = gpus / size;
	uint32_t count = one ? 1 : each + 1 + below((nodes - 1) * each); /* more than one node, not more than a leaf */
	struct ask ask = ask_for(members, count, size, MODE_REQUIRED);
	ask.strategy = shared ? STRATEGY_BALANCED : (enum strategy)below(3); /* the others spread, or count nodes */
	ask.latency_sensitive = percent(20);
	for (uint32_t i = 0; i < SCORE_TERMS && percent(80); i++)
		ask.weight[i] = percent(25) ? 0 : below(1001);
	ask.weight[SCORE_HISTORICAL_PERFORMANCE]++; /* never all of them 0 */
	uint32_t slot = below(rig->core.fabric.node_count);
	for (; percent(20) && ask.room_count < sizeof rooms / sizeof *rooms && slot < rig->core.fabric.node_count;
	     slot += 1 + below(2 * nodes))
		rooms[ask.room_count++] = (struct frond_room){.slot = slot, .ever = UINT16_MAX};
	ask.room = rooms;
	return ask;
}

static void judge(const struct ask *ask)
{
	uint32_t candidates, nearest, most, leaf = winner(ask, &candidates, &nearest, &most);
	core_plan(&rig->core, ask, &answer, places);
	if (leaf == FROND_NONE) {
		waiting++;
		TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, answer.plan.outcome);
		if (ask->count == 1)
			return; /* the nearest is a node */
		TEST_ASSERT_EQUAL_UINT32(BEST_LEAVES, answer.best);
		TEST_ASSERT_EQUAL_UINT32(nearest, answer.best_first);
		TEST_ASSERT_EQUAL_UINT64(most, answer.best_room);
		return;
	}
	placed++;
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, answer.plan.outcome);
	TEST_ASSERT_EQUAL_UINT32(1, answer.plan.leaves);
	TEST_ASSERT_EQUAL_UINT32(leaf, rig->core.fabric.leaf_of[rig->core.fabric.position[places[0].slot]]);
	bool over = candidates > FROND_CANDIDATES;
	bounded += over;
	TEST_ASSERT_EQUAL_UINT32(over ? FROND_CANDIDATES : candidates, answer.candidates);
	TEST_ASSERT_EQUAL_UINT32(over ? FROND_PLAN_BOUNDED : 0, answer.plan.flags);
}

/* Spines that nobody uses, some that are worn evenly, some where everything happens; or hardly a node left anywhere. */
static void wear(uint32_t slots, uint32_t per_spine, uint32_t gpus)
{
	bool full = percent(25);
	uint32_t worn = 0; /* percent of the spine's nodes */
	for (uint32_t slot = 0; slot < slots; slot++) {
		if (slot % per_spine == 0)
			worn = full ? 60 + below(40) : below(4) * 15;
		if (percent(worn))
			bind(0, FROND_NONE, slot, 1 + below(gpus));
		uint32_t flags = percent(50) ? FROND_NODE_CORDONED : 0, broken = percent(50) ? 1u << below(gpus) : 0;
		if (worn >= 45 && percent(2))
			node_flags(slot, flags, broken);
	}
}

/* Some leaves lose nodes to the last one. */
static void make_uneven(uint32_t nodes)
{
	struct fabric *fabric = &rig->core.fabric;
	for (uint32_t leaf = 0, at = 0; leaf < fabric->leaf_count; leaf++) {
		uint32_t count = percent(30) ? below(nodes + 1) : nodes;
		uint32_t end = leaf + 1 == fabric->leaf_count ? fabric->node_count : at + count;
		for (; at < end; at++)
			fabric->leaf_of[at] = leaf;
		fabric->leaf_start[leaf + 1] = end;
	}
	fabric_settle(fabric, rig->core.nodes);
}

/* Every so many leaves, of the first ones, get slower links between the GPUs of their nodes. */
static void slow_down(uint32_t gpus, uint32_t step, uint32_t end)
{
	struct fabric *fabric = &rig->core.fabric;
	struct topology topology = {.gpus = gpus};
	uint32_t id;
	for (uint32_t i = 0; i < gpus; i++)
		for (uint32_t j = 0; j < gpus; j++)
			topology.link_gbps[i][j] = i == j ? 0 : 100;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, core_topology(&rig->core, &topology, &id));
	for (uint32_t leaf = 0; leaf < fabric->leaf_count; leaf++)
		for (uint32_t at = fabric->leaf_start[leaf];
		     leaf % step == 0 && leaf < end && at < fabric->leaf_start[leaf + 1]; at++) {
			struct node node = rig->core.nodes[at];
			node.topology = (uint8_t)id;
			core_node_put(&rig->core, at, &node);
		}
	fabric_settle(fabric, rig->core.nodes);
}

static void use_one(uint32_t slot)
{
	if (node_free_count(&rig->core.nodes[slot]) > 0)
		bind(0, FROND_NONE, slot, 1);
}

static void healthy(void)
{
	char broken[FROND_TEXT_MAX] = "";
	struct out out = {.text = broken, .cap = sizeof broken};
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, core_check(&rig->core, &out), broken);
}

static void one_cluster(void)
{
	uint32_t spines = 1 + below(6), leaves = 1 + below(30), nodes = 1 + below(NODES_MOST), gpus = 1u << below(5);
	rig_make(spines, leaves, nodes, gpus);
	if (percent(40))
		make_uneven(nodes);
	if (gpus <= 8 && percent(30))
		slow_down(gpus, 3, UINT32_MAX);
	wear(spines * leaves * nodes, leaves * nodes, gpus);
	for (uint32_t i = 0; i < 12; i++) {
		struct ask ask = random_ask(nodes, gpus);
		judge(&ask);
		use_one(below(spines * leaves * nodes)); /* what was counted changes */
	}
	healthy();
}

/* From leaf 32 on the leaves have a node less, which the last one gets. */
static void shorten(uint32_t nodes)
{
	struct fabric *fabric = &rig->core.fabric;
	for (uint32_t leaf = 32, at = 32 * nodes; leaf < fabric->leaf_count; leaf++) {
		uint32_t end = leaf + 1 == fabric->leaf_count ? fabric->node_count : at + nodes - 1;
		for (; at < end; at++)
			fabric->leaf_of[at] = leaf;
		fabric->leaf_start[leaf + 1] = end;
	}
	fabric_settle(fabric, rig->core.nodes);
}

/* The leaves of a block are used alike, but for one leaf now and then: blocks lose, or do not come nearer, and that leaf
 * among them does not. */
static void even_cluster(void)
{
	uint32_t spines = 1 + below(4), leaves = 8 + below(64), nodes = 2 + below(3), gpus = 1u << below(4), used = 0;
	bool same = percent(50); /* in all blocks */
	rig_make(spines, leaves, nodes, gpus);
	struct fabric *fabric = &rig->core.fabric;
	if (nodes > 2 && percent(30))
		shorten(nodes);
	if (percent(30))
		slow_down(gpus, 1, percent(50) ? 32 : 64);
	for (uint32_t leaf = 0; leaf < fabric->leaf_count; leaf++) {
		uint32_t slot = fabric->leaf_start[leaf];
		if (leaf % 32 == 0)
			used = same ? gpus : 1 + below(gpus);
		bind(0, FROND_NONE, slot, percent(1) ? 1 : used);
		if (percent(1))
			bind(0, FROND_NONE, slot + 1, 1 + below(gpus));
		if (percent(1))
			node_flags(slot + 1, percent(50) ? FROND_NODE_CORDONED : 0, percent(50) ? 1 : 0);
	}
	for (uint32_t i = 0; i < 12; i++) {
		struct ask ask = random_ask(nodes, gpus);
		if (percent(50))
			ask.strategy = STRATEGY_BALANCED;
		judge(&ask);
		if (percent(30))
			use_one(below(fabric->node_count));
	}
	healthy();
}

static void test_blocks_of_leaves_that_are_passed_over_hide_none_that_counts(void)
{
	random_cases(1500, even_cluster);
}

/* Leaf 0 is the best by its score, which the best of a later block has too, and that one breaks no node; the others of the
 * block have a lower score, because more of their GPUs are free, or fewer. */
static void test_a_block_with_a_leaf_as_good_as_the_best_is_looked_at(void)
{
	for (uint32_t fewer = 0; fewer < 2; fewer++) {
		rig_make(1, 64, 2, 8);
		for (uint32_t leaf = 0; leaf < 64; leaf++) {
			bool best = leaf == 0 || leaf == 40;
			bind(0, FROND_NONE, 2 * leaf, leaf == 40 ? 4 : best || fewer ? 8 : 7);
			if (leaf == 40 || (!best && fewer))
				bind(0, FROND_NONE, 2 * leaf + 1, leaf == 40 ? 4 : 1);
		}
		struct ask ask = ask_for(members, 1, 1, MODE_REQUIRED);
		memset(ask.weight, 0, sizeof ask.weight);
		ask.weight[fewer ? SCORE_RESOURCE_AVAILABILITY : SCORE_DOMAIN_UTILIZATION] = 1000;
		judge(&ask);
		TEST_ASSERT_EQUAL_UINT32(80, places[0].slot);
		TEST_ASSERT_EQUAL_UINT32(64, answer.candidates);
	}
}

/* The blocks tell that leaf 40 has the most free GPUs of those in use. Leaf 5 has as many, in a block of which they tell less
 * because leaf 7 is full. */
static void test_a_leaf_in_the_same_state_before_the_likely_winner_is_taken(void)
{
	rig_make(1, 64, 2, 8);
	for (uint32_t leaf = 0; leaf < 64; leaf++)
		bind(0, FROND_NONE, 2 * leaf, leaf == 5 || leaf == 40 ? 1 : 4);
	bind(0, FROND_NONE, 15, 8);
	struct ask ask = ask_for(members, 1, 8, MODE_REQUIRED);
	memset(ask.weight, 0, sizeof ask.weight);
	ask.weight[SCORE_RESOURCE_AVAILABILITY] = 1000;
	judge(&ask);
	TEST_ASSERT_EQUAL_UINT32(11, places[0].slot);
	TEST_ASSERT_EQUAL_UINT32(63, answer.candidates);
}

/* The last leaf would win, and is one too many. */
static void test_a_likely_winner_behind_those_that_are_compared_has_no_say(void)
{
	uint32_t leaves = FROND_CANDIDATES + 1;
	rig_make(1, leaves, 2, 2);
	for (uint32_t leaf = 0; leaf < leaves; leaf++)
		bind(0, FROND_NONE, 2 * leaf, leaf == leaves - 1 ? 1 : 2);
	struct ask ask = ask_for(members, 1, 2, MODE_REQUIRED);
	memset(ask.weight, 0, sizeof ask.weight);
	ask.weight[SCORE_RESOURCE_AVAILABILITY] = 1000;
	judge(&ask);
	TEST_ASSERT_EQUAL_UINT32(1, places[0].slot);
	TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_BOUNDED, answer.plan.flags);
}

/* 32 to 128 leaves; here each leaf is one node. */
static void test_blocks_are_as_small_as_there_is_room_for(void)
{
	static const struct {
		uint32_t leaves, shift;
	} sizes[] = {{1, 5}, {1088, 5}, {1089, 6}, {2240, 6}, {2241, 7}, {4681, 7}};
	for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		uint32_t leaves = sizes[i].leaves;
		rig_make(1, leaves, 1, 2);
		TEST_ASSERT_EQUAL_UINT32(sizes[i].shift, rig->core.fabric.block_shift);
		bind(0, FROND_NONE, leaves - 1, 1);
		bind(0, FROND_NONE, leaves / 2, 1);
		healthy();
	}
	TEST_ASSERT_EQUAL_UINT64(4681, FABRIC_LEAVES(4681));
}

static void test_the_leaf_that_a_gang_takes_is_the_best_of_many(void)
{
	random_cases(400, one_cluster);
	printf("%u placed, %u waiting\n", (unsigned)placed, (unsigned)waiting);
	TEST_ASSERT_GREATER_THAN_UINT32(3000, placed);
	TEST_ASSERT_GREATER_THAN_UINT32(200, waiting);
}

/* The bound falls into a stretch of leaves that lose for certain, on one that would win, and where spines are alike. */
static void many_leaves(void)
{
	uint32_t spines = 1 + below(8), leaves = 5000 / spines, gpus = 2;
	rig_make(spines, leaves, 2, gpus);
	for (uint32_t slot = 0; slot < spines * leaves * 2; slot++)
		if (random_seed % 2 == 0 && percent(random_seed % 4 == 0 ? 5 : 25))
			bind(0, FROND_NONE, slot, 1);
	uint32_t best = below(256); /* all others lose to it for certain, or it to them */
	for (uint32_t slot = 0; slot < spines * leaves * 2; slot += 2)
		if (random_seed % 4 == 1 && slot / 2 != best)
			bind(0, FROND_NONE, slot, 1);
	for (uint32_t i = 0; i < 4; i++) {
		struct ask ask = random_ask(2, gpus);
		judge(&ask);
	}
}

static void test_of_more_leaves_than_are_compared_the_first_count(void)
{
	random_cases(20, many_leaves);
	TEST_ASSERT_GREATER_THAN_UINT32(20, bounded);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_the_leaf_that_a_gang_takes_is_the_best_of_many);
	RUN_TEST(test_blocks_of_leaves_that_are_passed_over_hide_none_that_counts);
	RUN_TEST(test_a_block_with_a_leaf_as_good_as_the_best_is_looked_at);
	RUN_TEST(test_a_leaf_in_the_same_state_before_the_likely_winner_is_taken);
	RUN_TEST(test_a_likely_winner_behind_those_that_are_compared_has_no_say);
	RUN_TEST(test_blocks_are_as_small_as_there_is_room_for);
	RUN_TEST(test_of_more_leaves_than_are_compared_the_first_count);
	return rig_end();
}
