/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random clusters and gangs with everything that narrows a plan: caps per leaf, pinned members, room arrays, slow links,
 * mixed sizes, cordons. Every plan is re-checked naively (invariant 4), and what one mode answers must agree with what
 * the others do. The optimum itself is test/property/oracle.c's business.
 *
 * FROND_SEED: the seed. FROND_PLACE_STEPS: how many clusters.
 */
#include "cluster.h"
#include "dice.h"

enum { NODES = 24, LEAVES = 9, SPINES = 3, MEMBERS = 10, GANGS = 3 };

struct model_node {
	uint32_t leaf; /* FROND_NONE: none */
	uint32_t gpus, unhealthy, flags, uplink, held;
};

static struct {
	uint32_t nodes, leaves, max_nodes, max_gpus;
	struct model_node node[NODES];
	uint32_t spine[LEAVES], leaf_uplink[LEAVES]; /* by leaf, in fabric order */
	struct bound room[NODES + CLUSTER_SPARE];
} m;

struct gang { /* what was booked, to pin it later */
	struct wanted want;
	uint32_t sizes[MEMBERS], pinned[MEMBERS];
	char name[16], wishes[200];
	bool has_room;
};

static struct cluster *c;
static uint64_t seed;
static char where[64]; /* every failure says how to see it again */
static uint32_t placed, relaxed, waiting, never, refused;

void setUp(void)
{
	c = NULL;
}

void tearDown(void)
{
	if (Unity.CurrentTestFailed)
		printf("to see it again: %s\n", where);
	cluster_free(c);
}

#define HOLDS(condition) TEST_ASSERT_TRUE_MESSAGE(condition, #condition)

/* ---- a cluster -------------------------------------------------------------------------------------------------- */

static const uint32_t speeds[] = {0, 0, 100, 200, 400};

static void make_cluster(void)
{
	char fabric[8192], args[256] = "";
	int at = snprintf(fabric, sizeof fabric,
			  "{\"apiVersion\":\"topology.scheduler/v1alpha1\",\"kind\":\"Fabric\",\"spines\":[");
	bool fast = percent(50);
	memset(&m, 0, sizeof m);
	for (uint32_t spine = 0, spines = 1 + below(SPINES); spine < spines; spine++) {
		at += snprintf(fabric + at, sizeof fabric - (size_t)at, "%s{\"name\":\"s%u\",\"leaves\":[",
			       spine > 0 ? "," : "", (unsigned)spine);
		for (uint32_t i = 0, leaves = 1 + below(3); i < leaves; i++) {
			uint32_t leaf = m.leaves++, speed = fast ? 0 : speeds[below(5)];
			m.spine[leaf] = spine;
			m.leaf_uplink[leaf] = speed;
			at += snprintf(fabric + at, sizeof fabric - (size_t)at, "%s{\"name\":\"l%u\",",
				       i > 0 ? "," : "", (unsigned)leaf);
			if (speed > 0)
				at += snprintf(fabric + at, sizeof fabric - (size_t)at, "\"uplinkGbps\":%u,",
					       (unsigned)speed);
			at += snprintf(fabric + at, sizeof fabric - (size_t)at, "\"nodes\":[");
			for (uint32_t n = 0, nodes = below(4); n < nodes && m.nodes < NODES - 2; n++) {
				at += snprintf(fabric + at, sizeof fabric - (size_t)at, "%s\"n%u\"", n > 0 ? "," : "",
					       (unsigned)m.nodes);
				m.node[m.nodes++].leaf = leaf;
			}
			at += snprintf(fabric + at, sizeof fabric - (size_t)at, "]}");
		}
		at += snprintf(fabric + at, sizeof fabric - (size_t)at, "]}");
	}
	snprintf(fabric + at, sizeof fabric - (size_t)at, "]}");
	if (percent(40)) {
		m.max_nodes = percent(60) ? 1 + below(3) : 0;
		m.max_gpus = percent(60) ? 1 + below(20) : 0;
	}
	if (m.max_nodes > 0 && m.max_gpus > 0)
		snprintf(args, sizeof args, "{\"topologyConstraints\":{\"maxNodesPerLeaf\":%u,\"maxGPUsPerLeaf\":%u}}",
			 (unsigned)m.max_nodes, (unsigned)m.max_gpus);
	else if (m.max_nodes + m.max_gpus > 0)
		snprintf(args, sizeof args, "{\"topologyConstraints\":{\"%s\":%u}}",
			 m.max_nodes > 0 ? "maxNodesPerLeaf" : "maxGPUsPerLeaf", (unsigned)(m.max_nodes + m.max_gpus));
	for (uint32_t outside = percent(30) || m.nodes == 0 ? 1 + below(2) : 0; outside > 0; outside--)
		m.node[m.nodes++].leaf = FROND_NONE;
	c = calloc(1, sizeof *c);
	TEST_ASSERT_NOT_NULL(c);
	engine_make(c, NODES + CLUSTER_SPARE, 200, args, fabric);
}

static void make_nodes(void)
{
	static const uint32_t sizes[] = {0, 1, 2, 4, 8, 8, 8, 16};
	uint32_t usual = sizes[1 + below(7)];
	bool mixed = percent(40), fast = percent(60);
	for (uint32_t slot = 0; slot < m.nodes; slot++) {
		struct model_node *node = &m.node[slot];
		char name[16];
		node->gpus = mixed ? sizes[below(8)] : usual;
		node->uplink = fast ? 0 : speeds[below(5)];
		node->unhealthy = percent(10) ? below(1u << node->gpus) : 0;
		node->flags = percent(8) ? 1 + below(3) : 0;
		snprintf(name, sizeof name, "n%u", (unsigned)slot);
		node_put(c, slot, name, node->gpus, NULL, NULL);
		TEST_ASSERT_EQUAL_INT32(FROND_OK, node_try(c, slot, name, node->gpus, node->unhealthy, node->flags,
							   node->uplink, NULL, NULL));
		if (percent(30) && node->gpus > 0) {
			node->held = below(1u << node->gpus);
			if (node->held != 0)
				occupy(c, name, node->held);
		}
	}
}

/* ---- a gang ----------------------------------------------------------------------------------------------------- */

static void make_gang(struct gang *gang, uint32_t number)
{
	static const char *const modes[] = {"Required", "Preferred", "Ignore"};
	static const char *const strategies[] = {"balanced", "consolidated", "distributed"};
	static const uint32_t sizes[] = {1, 2, 3, 4, 8};
	*gang = (struct gang){.has_room = percent(25)};
	snprintf(gang->name, sizeof gang->name, "g%u", (unsigned)number);
	uint32_t size = sizes[below(5)], members = 1 + below(MEMBERS);
	bool mixed = percent(25);
	for (uint32_t i = 0; i < members; i++) {
		gang->sizes[i] = percent(10) ? 0 : mixed ? sizes[below(5)] : size;
		gang->pinned[i] = FROND_NONE;
	}
	int at = snprintf(gang->wishes, sizeof gang->wishes, "topology-mode=%s placement-strategy=%s", modes[below(3)],
			  strategies[below(3)]);
	if (percent(40))
		at += snprintf(gang->wishes + at, sizeof gang->wishes - (size_t)at, " network-bandwidth=%uGb",
			       (unsigned)speeds[2 + below(3)]);
	if (percent(20))
		at += snprintf(gang->wishes + at, sizeof gang->wishes - (size_t)at, " preferred-domain=%s%u",
			       percent(70) ? "l" : "s", (unsigned)below(LEAVES));
	if (percent(10))
		snprintf(gang->wishes + at, sizeof gang->wishes - (size_t)at, " latency-sensitive=true");
	gang->want = (struct wanted){.name = gang->name,
				     .members = members,
				     .sizes = gang->sizes,
				     .pinned = gang->pinned,
				     .wishes = gang->wishes,
				     .only = percent(5) ? 1 + below(m.nodes) : ANY_NODE};
}

static void make_room(struct gang *gang)
{
	for (uint32_t slot = 0; slot < NODES + CLUSTER_SPARE; slot++) {
		m.room[slot].ever = (uint16_t)(percent(70) ? 8 : below(4));
		m.room[slot].today = (uint16_t)(percent(70) ? m.room[slot].ever : below(m.room[slot].ever + 1u));
	}
	gang->want.room = gang->has_room ? m.room : NULL;
}

static uint32_t floor_of(const struct gang *gang)
{
	const char *at = strstr(gang->wishes, "bandwidth=");
	return at == NULL ? 0 : (uint32_t)atoi(at + strlen("bandwidth="));
}

/* ---- the naive re-check ----------------------------------------------------------------------------------------- */

struct facts {
	uint32_t nodes, leaves, spines, runs, outside;
	uint32_t first_spine, last_spine;
	bool slow;
};

static struct facts facts_of(const uint32_t *members_on, uint32_t bandwidth)
{
	struct facts facts = {0};
	bool in_use[LEAVES] = {false};
	for (uint32_t slot = 0; slot < m.nodes; slot++) {
		facts.nodes += members_on[slot] > 0;
		if (members_on[slot] > 0 && m.node[slot].leaf != FROND_NONE)
			in_use[m.node[slot].leaf] = true;
		else
			facts.outside += members_on[slot] > 0;
	}
	for (uint32_t leaf = 0; leaf < m.leaves; leaf++) {
		if (!in_use[leaf])
			continue;
		bool new_spine = facts.spines == 0 || m.spine[leaf] != facts.last_spine;
		if (facts.spines == 0)
			facts.first_spine = m.spine[leaf];
		facts.leaves++;
		facts.spines += new_spine;
		facts.runs += new_spine || !in_use[leaf - 1];
		facts.last_spine = m.spine[leaf];
		facts.slow |= m.leaf_uplink[leaf] != 0 && m.leaf_uplink[leaf] < bandwidth;
	}
	return facts;
}

static void check_shape(const struct facts *facts)
{
	bool adjacent = facts->last_spine - facts->first_spine + 1 == facts->spines;
	switch (c->plan.rule) {
	case FROND_RULE_SINGLE_NODE:
		HOLDS(facts->nodes == 1);
		break;
	case FROND_RULE_SAME_LEAF:
	case FROND_RULE_COMPLETE_LEAF:
		HOLDS(facts->leaves == 1 && facts->outside == 0);
		break;
	case FROND_RULE_ADJACENT_LEAVES:
		HOLDS(facts->spines == 1 && facts->runs == 1 && facts->outside == 0);
		break;
	case FROND_RULE_ADJACENT_SPINES:
		HOLDS(facts->runs == facts->spines && adjacent && facts->outside == 0);
		break;
	default:
		break;
	}
}

static void check_caps(const struct gang *gang, const uint32_t *members_on, const uint32_t *fresh_on)
{
	for (uint32_t leaf = 0; leaf < m.leaves; leaf++) {
		uint32_t nodes = 0, gpus = 0, fresh_nodes = 0, fresh = 0;
		for (uint32_t slot = 0; slot < m.nodes; slot++) {
			if (m.node[slot].leaf != leaf)
				continue;
			nodes += members_on[slot] > 0;
			fresh += fresh_on[slot];
			fresh_nodes += fresh_on[slot] > 0 && fresh_on[slot] == members_on[slot];
		}
		for (uint32_t i = 0; i < gang->want.members; i++)
			gpus += gang->sizes[i] > 0 && m.node[c->places[i].slot].leaf == leaf ? gang->sizes[i] : 0;
		HOLDS(m.max_nodes == 0 || nodes <= m.max_nodes ||
		      fresh_nodes == 0); /* pinned ones may be over it already */
		HOLDS(m.max_gpus == 0 || gpus <= m.max_gpus || fresh == 0);
	}
}

static void check_plan(const struct gang *gang)
{
	uint32_t members_on[NODES] = {0}, fresh_on[NODES] = {0}, taken[NODES] = {0}, bandwidth = floor_of(gang);
	bool pinned_any = false;
	for (uint32_t i = 0; i < gang->want.members; i++) {
		const struct frond_place *at = &c->places[i];
		if (gang->sizes[i] == 0) {
			HOLDS(at->slot == FROND_NONE && at->gpu_mask == 0);
			continue;
		}
		HOLDS(at->slot < m.nodes);
		const struct model_node *node = &m.node[at->slot];
		members_on[at->slot]++;
		if (gang->pinned[i] != FROND_NONE) {
			pinned_any = true;
			HOLDS(at->slot == gang->pinned[i]);
			HOLDS((uint32_t)__builtin_popcount(at->gpu_mask) == gang->sizes[i]);
			continue;
		}
		fresh_on[at->slot]++;
		HOLDS(node->flags == 0);
		HOLDS(gang->want.only == ANY_NODE || gang->want.only - 1 == at->slot);
		HOLDS((uint32_t)__builtin_popcount(at->gpu_mask) == gang->sizes[i]);
		HOLDS((at->gpu_mask & (node->held | node->unhealthy | taken[at->slot])) == 0);
		HOLDS(at->gpu_mask >> node->gpus == 0);
		HOLDS(node->uplink == 0 || node->uplink >= bandwidth);
		taken[at->slot] |= at->gpu_mask;
		for (uint32_t j = i + 1; j < gang->want.members; j++)
			HOLDS(gang->sizes[j] != gang->sizes[i] || gang->pinned[j] != FROND_NONE ||
			      c->places[j].slot >= at->slot); /* slots follow the fabric's order */
	}
	for (uint32_t slot = 0; slot < m.nodes; slot++)
		HOLDS(gang->want.room == NULL || fresh_on[slot] <= m.room[slot].today);
	check_caps(gang, members_on, fresh_on);
	struct facts facts = facts_of(members_on, bandwidth);
	HOLDS(facts.leaves + facts.outside <= 1 || !facts.slow || pinned_any);
	TEST_ASSERT_EQUAL_UINT32(facts.nodes, c->plan.nodes);
	TEST_ASSERT_EQUAL_UINT32(facts.leaves, c->plan.leaves);
	TEST_ASSERT_EQUAL_UINT32(facts.spines, c->plan.spines);
	TEST_ASSERT_EQUAL_UINT32(facts.runs, c->plan.runs);
	if ((c->plan.flags & FROND_PLAN_RELAXED) == 0 && facts.nodes > 0)
		check_shape(&facts);
}

/* ---- nothing that fits is missed -------------------------------------------------------------------------------- */

static int more_room_first(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x < y) - (x > y);
}

/* The most members of one size that a leaf, or a node without one, could take today; nobody is pinned. */
static uint32_t most_in(const struct gang *gang, uint32_t leaf, uint32_t outside, uint32_t size)
{
	uint32_t rooms[NODES] = {0}, count = 0, sum = 0, bandwidth = floor_of(gang);
	for (uint32_t slot = 0; slot < m.nodes; slot++) {
		const struct model_node *node = &m.node[slot];
		if (leaf != FROND_NONE ? node->leaf != leaf : slot != outside)
			continue;
		uint32_t free = ((1u << node->gpus) - 1) & ~node->held & ~node->unhealthy;
		uint32_t fit = (uint32_t)__builtin_popcount(free) / size;
		if (gang->want.room != NULL && fit > m.room[slot].today)
			fit = m.room[slot].today;
		if (node->flags != 0 || (node->uplink != 0 && node->uplink < bandwidth) ||
		    (gang->want.only != ANY_NODE && gang->want.only - 1 != slot))
			fit = 0;
		rooms[count++] = fit;
	}
	qsort(rooms, count, sizeof *rooms, more_room_first);
	for (uint32_t i = 0; i < count && (leaf == FROND_NONE || m.max_nodes == 0 || i < m.max_nodes); i++)
		sum += rooms[i];
	if (leaf != FROND_NONE && m.max_gpus > 0 && sum > m.max_gpus / size)
		sum = m.max_gpus / size;
	return sum;
}

/* Under Ignore a gang of equal members is placed if and only if there is room at all. */
static void check_nothing_missed(const struct gang *gang, uint32_t outcome)
{
	uint32_t size = 0, members = 0, sum = 0, most = 0;
	for (uint32_t i = 0; i < gang->want.members; i++) {
		if (gang->pinned[i] != FROND_NONE || (size != 0 && gang->sizes[i] != 0 && gang->sizes[i] != size))
			return;
		size = gang->sizes[i] != 0 ? gang->sizes[i] : size;
		members += gang->sizes[i] != 0;
	}
	for (uint32_t leaf = 0; leaf < m.leaves && size > 0; leaf++) {
		uint32_t here = most_in(gang, leaf, 0, size);
		bool slow = m.leaf_uplink[leaf] != 0 && m.leaf_uplink[leaf] < floor_of(gang);
		sum += slow ? 0 : here;
		most = here > most ? here : most;
	}
	for (uint32_t slot = 0; slot < m.nodes && size > 0; slot++)
		sum += m.node[slot].leaf == FROND_NONE ? most_in(gang, FROND_NONE, slot, size) : 0;
	HOLDS((outcome == FROND_PLACED) == (sum >= members || most >= members));
}

/* ---- modes agree ------------------------------------------------------------------------------------------------ */

static uint32_t plan_as(const struct gang *gang, const char *mode, struct frond_place *places)
{
	char wishes[256];
	const char *rest = strchr(gang->wishes, ' ');
	snprintf(wishes, sizeof wishes, "topology-mode=%s%s", mode, rest);
	struct wanted want = gang->want;
	want.wishes = wishes;
	plan(c, &want);
	if (c->plan.outcome == FROND_PLACED)
		check_plan(gang);
	memcpy(places, c->places, MEMBERS * sizeof *places);
	return c->plan.outcome;
}

static void check_modes(const struct gang *gang)
{
	struct frond_place required[MEMBERS], preferred[MEMBERS], ignored[MEMBERS];
	uint32_t a = plan_as(gang, "Required", required);
	struct frond_plan insists = c->plan;
	uint32_t b = plan_as(gang, "Preferred", preferred), flags = c->plan.flags;
	uint32_t third = plan_as(gang, "Ignore", ignored);
	HOLDS((a == FROND_NEVER) == (b == FROND_NEVER) && (b == FROND_NEVER) == (third == FROND_NEVER));
	if (strstr(gang->wishes, "latency") != NULL) {
		HOLDS(a == b && b == third);
		return;
	}
	HOLDS(a != FROND_REFUSED && b != FROND_REFUSED && third != FROND_REFUSED);
	if (a == FROND_PLACED) {
		HOLDS(b == FROND_PLACED);
		TEST_ASSERT_EQUAL_MEMORY(required, preferred, gang->want.members * sizeof *required);
		TEST_ASSERT_EQUAL_UINT32(insists.flags, flags);
	} else if (b == FROND_PLACED) {
		HOLDS((flags & FROND_PLAN_RELAXED) != 0);
	}
	HOLDS((b == FROND_PLACED) == (third == FROND_PLACED));
	check_nothing_missed(gang, third);
}

/* ---- one gang after the other ----------------------------------------------------------------------------------- */

static void book(struct gang *gang)
{
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->reserve(c->engine, &c->request, c->members, c->places));
	check(c);
	for (uint32_t i = 0; i < gang->want.members; i++) {
		if (gang->sizes[i] == 0 || gang->pinned[i] != FROND_NONE)
			continue;
		m.node[c->places[i].slot].held |= c->places[i].gpu_mask;
		gang->pinned[i] = c->places[i].slot;
	}
}

/* Some members go; those that stay are pinned, and the rest is planned around them. */
static void lose_some(struct gang *gang)
{
	for (uint32_t i = 0; i < gang->want.members; i++) {
		if (gang->sizes[i] > 0 && percent(50))
			continue;
		struct frond_key pod = key_of(gang->name, i + 1);
		TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release(c->engine, &pod));
		if (gang->sizes[i] > 0)
			m.node[c->places[i].slot].held &= ~c->places[i].gpu_mask;
		gang->pinned[i] = FROND_NONE;
	}
	check(c);
}

static bool step(struct gang *gang)
{
	make_room(gang);
	check_modes(gang);
	plan(c, &gang->want);
	placed += c->plan.outcome == FROND_PLACED;
	relaxed += (c->plan.flags & FROND_PLAN_RELAXED) != 0;
	waiting += c->plan.outcome == FROND_WAITS;
	never += c->plan.outcome == FROND_NEVER;
	refused += c->plan.outcome == FROND_REFUSED;
	if (c->plan.outcome != FROND_PLACED)
		return false;
	check_plan(gang);
	book(gang);
	return true;
}

static void one_cluster(void)
{
	struct gang gang;
	make_cluster();
	make_nodes();
	for (uint32_t number = 0; number < GANGS; number++) {
		make_gang(&gang, number);
		if (!step(&gang))
			continue;
		lose_some(&gang);
		if (m.nodes > 0 && percent(30)) {
			uint32_t slot = below(m.nodes);
			m.node[slot].flags = FROND_NODE_CORDONED;
			TEST_ASSERT_EQUAL_INT32(FROND_OK, node_try(c, slot, c->nodes[slot].name, m.node[slot].gpus,
								   m.node[slot].unhealthy, m.node[slot].flags,
								   m.node[slot].uplink, NULL, NULL));
		}
		step(&gang);
	}
	cluster_free(c);
	c = NULL;
}

static void test_every_plan_passes_a_naive_check_and_modes_agree(void)
{
	const char *steps_text = getenv("FROND_PLACE_STEPS"), *seed_text = getenv("FROND_SEED");
	uint32_t steps = steps_text == NULL ? 400 : (uint32_t)strtoul(steps_text, NULL, 10);
	seed = seed_text == NULL ? 20260101 : strtoull(seed_text, NULL, 0);
	printf("seed %llu\n", (unsigned long long)seed);
	for (uint32_t i = 0; i < steps; i++) {
		dice = seed + i;
		snprintf(where, sizeof where, "FROND_SEED=%llu FROND_PLACE_STEPS=1", (unsigned long long)(seed + i));
		one_cluster();
	}
	printf("%u placed (%u relaxed), %u waiting, %u never, %u refused\n", (unsigned)placed, (unsigned)relaxed,
	       (unsigned)waiting, (unsigned)never, (unsigned)refused);
	HOLDS(steps < 400 || (placed > 100 && relaxed > 20 && waiting > 50 && never > 20 && refused > 2));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_every_plan_passes_a_naive_check_and_modes_agree);
	return UNITY_END();
}
