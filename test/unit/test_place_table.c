/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Step 3 of reference 3.4 without the rule, and over adjacent spines: fewest spines, leaves, runs and nodes, against a look at
 * every set of leaves; and what is answered where the budget of a call ends first.
 *
 * FROND_SEED: the seed.
 */
#include "cluster.h"
#include "dice.h"

enum { LEAVES = 10, LEAF_NODES = 3, LOOSE = 2, NODES = LEAVES * LEAF_NODES + LOOSE, WAYS = 1500 };

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

/* ---- a small cluster, and every set of its leaves ------------------------------------------------------------------ */

struct small { /* items: leaves in fabric order, then nodes without one */
	uint32_t leaves, items, spine[LEAVES + LOOSE];
	uint32_t nodes[LEAVES + LOOSE], room[LEAVES + LOOSE][LEAF_NODES]; /* free GPUs of each node, falling */
};

struct extent {
	uint32_t spines, leaves, runs, nodes;
};

static struct small m;

static bool better(struct extent a, struct extent b, bool by_nodes)
{
	if (a.spines != b.spines)
		return a.spines < b.spines;
	if (a.leaves != b.leaves)
		return a.leaves < b.leaves;
	if (a.runs != b.runs)
		return a.runs < b.runs;
	return by_nodes && a.nodes < b.nodes;
}

/* Fewest nodes of these items for so many members, one of each item at least; every number of nodes in every item. */
static uint32_t fewest_nodes(uint32_t set, uint32_t item, uint32_t members, uint32_t size)
{
	uint32_t best = UINT32_MAX, held = 0;
	while (item < m.items && !(set >> item & 1))
		item++;
	if (item == m.items)
		return members == 0 ? 0 : UINT32_MAX;
	for (uint32_t nodes = 1; nodes <= m.nodes[item] && m.room[item][nodes - 1] / size > 0; nodes++) {
		held += m.room[item][nodes - 1] / size;
		uint32_t rest = fewest_nodes(set, item + 1, members > held ? members - held : 0, size);
		if (rest != UINT32_MAX && rest + nodes < best)
			best = rest + nodes;
	}
	return best;
}

static uint32_t holds(uint32_t item, uint32_t size)
{
	uint32_t members = 0;
	for (uint32_t node = 0; node < m.nodes[item]; node++)
		members += m.room[item][node] / size;
	return members;
}

static struct extent extent_of(uint32_t set)
{
	struct extent extent = {0, 0, 0, 0};
	for (uint32_t item = 0; item < m.items; item++) {
		if (!(set >> item & 1))
			continue;
		bool beside = item > 0 && set >> (item - 1) & 1 && m.spine[item - 1] == m.spine[item];
		bool known = false;
		for (uint32_t other = 0; other < item; other++)
			known |= set >> other & 1 && m.spine[other] == m.spine[item];
		extent.spines += !known;
		extent.leaves++;
		extent.runs += !beside;
	}
	return extent;
}

static void make_small(uint32_t spines_most)
{
	char names[2][16];
	uint32_t slot = 0;
	m = (struct small){.leaves = 2 + below(LEAVES - 1)};
	m.items = m.leaves + below(LOOSE + 1);
	tearDown();
	setUp();
	engine_make(c, NODES, NODES, "", "");
	for (uint32_t item = 0, spine = 0; item < m.items; item++) {
		bool leaf = item < m.leaves;
		spine += item > 0 && (!leaf || (spine + 1 < spines_most && percent(35)));
		m.spine[item] = spine;
		m.nodes[item] = leaf ? 1 + below(LEAF_NODES) : 1;
		snprintf(names[0], sizeof names[0], "leaf-%u", (unsigned)item);
		snprintf(names[1], sizeof names[1], "spine-%u", (unsigned)spine);
		for (uint32_t node = 0; node < m.nodes[item]; node++, slot++) {
			char name[16];
			snprintf(name, sizeof name, "n%02u", (unsigned)slot);
			node_put(c, slot, name, 8, leaf ? names[0] : NULL, leaf ? names[1] : NULL);
			uint32_t used = percent(60) ? 0 : below(9), at = node;
			if (used > 0)
				occupy(c, name, (1u << used) - 1);
			for (; at > 0 && m.room[item][at - 1] < 8 - used; at--) /* falling */
				m.room[item][at] = m.room[item][at - 1];
			m.room[item][at] = 8 - used;
		}
	}
}

static uint32_t total(uint32_t size)
{
	uint32_t members = 0;
	for (uint32_t item = 0; item < m.items; item++)
		members += holds(item, size);
	return members;
}

static uint32_t ask(uint32_t members, uint32_t size, const char *wishes)
{
	return plan(c, &(struct wanted){.name = "a", .members = members, .gpus = size, .wishes = wishes});
}

static uint32_t loose_used(uint32_t members)
{
	uint32_t slots = 0, used = 0;
	for (uint32_t item = 0; item < m.leaves; item++)
		slots += m.nodes[item];
	for (uint32_t slot = slots; slot < slots + m.items - m.leaves; slot++) {
		bool in = false;
		for (uint32_t i = 0; i < members; i++)
			in |= c->places[i].slot == slot;
		used += in;
	}
	return used;
}

static void test_no_set_of_leaves_is_better_without_the_rule(void)
{
	uint32_t several = 0;
	for (uint32_t way = 0; way < WAYS; way++) {
		make_small(LEAVES);
		uint32_t size = percent(50) ? 8 : 1 + below(8), most = total(size);
		if (most < 2)
			continue;
		uint32_t members = percent(15) ? most : 2 + below(most - 1);
		members = members > CLUSTER_MEMBERS ? CLUSTER_MEMBERS : members;
		bool by_nodes = percent(50);
		struct extent best = {UINT32_MAX, 0, 0, 0};
		for (uint32_t set = 1; set < 1u << m.items; set++) {
			uint32_t held = 0, used = 0;
			bool empty = false;
			for (uint32_t item = 0; item < m.items; item++)
				if (set >> item & 1) {
					held += holds(item, size);
					empty |= holds(item, size) == 0;
					used++;
				}
			struct extent extent = extent_of(set);
			if (empty || held < members || used > members || better(best, extent, false))
				continue;
			if (by_nodes)
				extent.nodes = fewest_nodes(set, 0, members, size);
			if (better(extent, best, by_nodes))
				best = extent;
		}
		ask(members, size,
		    by_nodes ? "topology-mode=Ignore placement-strategy=consolidated" : "topology-mode=Ignore");
		TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, c->plan.outcome, c->text);
		uint32_t loose = loose_used(members);
		TEST_ASSERT_EQUAL_UINT32(best.spines, c->plan.spines + loose);
		TEST_ASSERT_EQUAL_UINT32(best.leaves, c->plan.leaves + loose);
		TEST_ASSERT_EQUAL_UINT32(best.runs, c->plan.runs + loose);
		if (by_nodes)
			TEST_ASSERT_EQUAL_UINT32(best.nodes, c->plan.nodes);
		several += best.leaves > 1;
	}
	TEST_ASSERT_GREATER_THAN_UINT32(WAYS / 2, several);
}

static void test_all_that_is_free_is_a_plan_and_one_member_more_waits(void)
{
	for (uint32_t way = 0; way < WAYS / 10; way++) {
		make_small(LEAVES);
		uint32_t size = 1 + below(8), most = total(size);
		if (most < 2 || most >= CLUSTER_MEMBERS)
			continue;
		TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, ask(most, size, "topology-mode=Ignore"), c->text);
		TEST_ASSERT_NOT_EQUAL(FROND_PLACED, ask(most + 1, size, "topology-mode=Ignore"));
	}
}

/* Members that are all bound leave nothing to place: whatever they use is the set. */
static void test_nothing_is_missing_when_everybody_is_bound(void)
{
	engine_make(c, 8, 8, "", "");
	for (uint32_t slot = 0; slot < 4; slot++) {
		char name[16], leaf[16];
		snprintf(name, sizeof name, "n%u", (unsigned)slot);
		snprintf(leaf, sizeof leaf, "leaf-%u", (unsigned)slot);
		node_put(c, slot, name, 8, leaf, slot < 2 ? "s0" : "s1");
	}
	const struct wanted bound = {.name = "a", .members = 2, .gpus = 8, .wishes = "topology-mode=Ignore"};
	place(c, &bound);
	const uint32_t pinned[] = {c->places[0].slot, c->places[1].slot};
	struct wanted again = bound;
	again.pinned = pinned;
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, plan(c, &again), c->text);
	TEST_ASSERT_EQUAL_UINT32(2, c->plan.leaves);
	again.members = 3; /* one is missing, and the two leaves of the bound ones are full */
	const uint32_t half[] = {pinned[0], pinned[1], FROND_NONE};
	again.pinned = half;
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, plan(c, &again), c->text);
	TEST_ASSERT_EQUAL_UINT32(3, c->plan.leaves);
	TEST_ASSERT_EQUAL_UINT32(2, c->plan.spines);
}

/* ---- adjacent spines ------------------------------------------------------------------------------------------------ */

/* Fewest leaves of spines [spine, last] for what is missing, one run in each; UINT32_MAX: they do not hold it. */
static uint32_t fewest_in_chain(uint32_t spine, uint32_t last, uint32_t missing, uint32_t size)
{
	uint32_t best = UINT32_MAX;
	if (spine > last)
		return missing == 0 ? 0 : UINT32_MAX;
	for (uint32_t lo = 0; lo < m.leaves; lo++) {
		uint32_t held = 0;
		for (uint32_t hi = lo; hi < m.leaves && m.spine[hi] == spine && m.spine[lo] == spine; hi++) {
			if (holds(hi, size) == 0)
				break;
			held += holds(hi, size);
			uint32_t rest = fewest_in_chain(spine + 1, last, missing > held ? missing - held : 0, size);
			if (rest != UINT32_MAX && rest + hi - lo + 1 < best)
				best = rest + hi - lo + 1;
		}
	}
	return best;
}

static void test_no_chain_of_spines_takes_fewer_leaves(void)
{
	uint32_t chains = 0;
	for (uint32_t way = 0; way < WAYS; way++) {
		make_small(4);
		uint32_t size = percent(50) ? 8 : 1 + below(8), most = total(size);
		if (most < 2)
			continue;
		uint32_t members = most > CLUSTER_MEMBERS ? CLUSTER_MEMBERS : 1 + most / 2 + below(most - most / 2);
		if (ask(members, size, "topology-mode=Required") != FROND_PLACED ||
		    c->plan.rule != FROND_RULE_ADJACENT_SPINES || c->plan.flags & FROND_PLAN_RELAXED)
			continue; /* capacity in no such shape: without the rule */
		uint32_t best = UINT32_MAX;
		for (uint32_t first = 0; first + c->plan.spines <= m.spine[m.leaves - 1] + 1; first++) {
			uint32_t fewest = fewest_in_chain(first, first + c->plan.spines - 1, members, size);
			best = fewest < best ? fewest : best;
		}
		TEST_ASSERT_EQUAL_UINT32(best, c->plan.leaves);
		TEST_ASSERT_EQUAL_UINT32(c->plan.spines, c->plan.runs);
		chains++;
	}
	TEST_ASSERT_GREATER_THAN_UINT32(WAYS / 20, chains);
}

/* ---- where the budget ends ------------------------------------------------------------------------------------------ */

static struct frond_member members[FROND_MEMBERS_MAX];
static struct frond_place places[FROND_MEMBERS_MAX];

static uint32_t ask_large(uint32_t count, uint32_t gpus, const char *wishes)
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
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->plan(c->engine, &request, members, pairs, in, in_len, NULL, 0, &c->plan,
						    places, c->text, CLUSTER_TEXT - 1, &c->len));
	return c->plan.outcome;
}

/* Nodes without a leaf, each a spine of its own: far too many sets, and all of them alike. */
static void test_a_gang_over_thousands_of_lone_nodes_takes_the_first_of_them(void)
{
	enum { MANY = 4000, WANTED = 2500 };
	engine_make(c, MANY, 16, "", "");
	for (uint32_t slot = 0; slot < MANY; slot++) {
		char name[16];
		snprintf(name, sizeof name, "n%04u", (unsigned)slot);
		TEST_ASSERT_EQUAL_INT32(FROND_OK, node_try(c, slot, name, 8, 0, 0, 0, NULL, NULL));
	}
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask_large(WANTED, 8, "topology-mode=Ignore"));
	TEST_ASSERT_TRUE(c->plan.flags & FROND_PLAN_BOUNDED);
	for (uint32_t i = 0; i < WANTED; i++)
		TEST_ASSERT_EQUAL_UINT32(i, places[i].slot);
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask_large(MANY, 8, "topology-mode=Ignore"));
	TEST_ASSERT_NOT_EQUAL(FROND_PLACED, ask_large(MANY + 1, 8, "topology-mode=Ignore"));
}

/* Many spines of many worn leaves: the fewest spines are those with the largest sums, however far the search comes. */
static void test_spines_are_the_fewest_whether_or_not_the_plan_is_bounded(void)
{
	enum { SPINES = 60, PER_SPINE = 40, PER_LEAF = 3, ALL = SPINES * PER_SPINE * PER_LEAF };
	uint32_t sums[SPINES] = {0};
	engine_make(c, ALL, 16, "", "");
	for (uint32_t slot = 0; slot < ALL; slot++) {
		char name[16], leaf[16], spine[16];
		uint32_t flags = percent(40) ? FROND_NODE_CORDONED : 0, at = slot / PER_LEAF / PER_SPINE;
		snprintf(name, sizeof name, "n%05u", (unsigned)slot);
		snprintf(leaf, sizeof leaf, "l%u", (unsigned)(slot / PER_LEAF));
		snprintf(spine, sizeof spine, "s%u", (unsigned)at);
		TEST_ASSERT_EQUAL_INT32(FROND_OK, node_try(c, slot, name, 8, 0, flags, 0, leaf, spine));
		sums[at] += flags == 0;
	}
	for (uint32_t i = 0; i < SPINES; i++) /* falling */
		for (uint32_t j = i + 1; j < SPINES; j++)
			if (sums[j] > sums[i]) {
				uint32_t sum = sums[i];
				sums[i] = sums[j];
				sums[j] = sum;
			}
	for (uint32_t wanted = 100, spines = 0, held = 0; wanted < 3000; wanted += 700) {
		while (held < wanted)
			held += sums[spines++];
		TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, ask_large(wanted, 8, "topology-mode=Ignore"));
		TEST_ASSERT_EQUAL_UINT32(spines, c->plan.spines);
		TEST_ASSERT_EQUAL_UINT32(wanted, c->plan.nodes);
	}
}

int main(void)
{
	const char *given = getenv("FROND_SEED");
	dice = given != NULL ? strtoull(given, NULL, 10) : 31;
	printf("seed %llu\n", (unsigned long long)dice);
	UNITY_BEGIN();
	RUN_TEST(test_no_set_of_leaves_is_better_without_the_rule);
	RUN_TEST(test_all_that_is_free_is_a_plan_and_one_member_more_waits);
	RUN_TEST(test_nothing_is_missing_when_everybody_is_bound);
	RUN_TEST(test_no_chain_of_spines_takes_fewer_leaves);
	RUN_TEST(test_a_gang_over_thousands_of_lone_nodes_takes_the_first_of_them);
	RUN_TEST(test_spines_are_the_fewest_whether_or_not_the_plan_is_bounded);
	return UNITY_END();
}
