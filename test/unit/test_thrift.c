/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order() with thrift, with a topology and without: every node is a candidate of its own. GPUs that no kind can use any more
 * come before step 5a, those that are expected to be of no use after it. The random part reads steps 2 to 7 naively, node by node and pod by pod, and shares no code with
 * the engine.
 */
#include "cluster.h"
#include "dice.h"

enum { NODES = 1100, ORDERED = 1024, LINKED = 450 /* GB/s, H100-SXM */ };

static struct cluster *c;
static uint32_t count; /* nodes */
static struct frond_left left[NODES];
static struct frond_kind kinds[FROND_KINDS_MAX + 1];
static uint16_t careful[NODES];

void setUp(void)
{
	count = 0;
	c = calloc(1, sizeof *c);
	TEST_ASSERT_NOT_NULL(c);
}

void tearDown(void)
{
	cluster_free(c);
}

/* leaf FROND_NONE: outside of any; else the leaf of that number, three of them under a spine. */
static void put(uint32_t gpus, uint32_t cpu_milli, uint32_t memory_mib, uint32_t flags, uint32_t unhealthy_mask,
		const char *model, uint32_t leaf)
{
	static const char keys[] = "fabric.topograph.run/tier-0fabric.topograph.run/tier-1";
	enum { KEY = sizeof keys / 2 };
	char in[192];
	uint32_t name = (uint32_t)snprintf(in, sizeof in, "%sn%u", keys, (unsigned)count) - 2 * KEY;
	uint32_t at = 2 * KEY + name, model_len = (uint32_t)snprintf(in + at, sizeof in - at, "%s", model);
	uint32_t leaf_at = at + model_len,
		 leaf_len = (uint32_t)snprintf(in + leaf_at, sizeof in - leaf_at, "l%u", (unsigned)leaf);
	uint32_t spine_at = leaf_at + leaf_len,
		 spine_len = (uint32_t)snprintf(in + spine_at, sizeof in - spine_at, "s%u", (unsigned)leaf / 3);
	struct frond_pair labels[2] = {{{0, KEY}, {leaf_at, leaf_len}}, {{KEY, KEY}, {spine_at, spine_len}}};
	struct frond_node node = {.slot = count,
				  .gpus = gpus,
				  .unhealthy_mask = unhealthy_mask,
				  .flags = flags,
				  .topology = FROND_NONE,
				  .name = {2 * KEY, name},
				  .model = {at, model_len}};
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->node_put(c->engine, &node, labels, leaf == FROND_NONE ? 0 : 2, in,
							spine_at + spine_len, c->text, CLUSTER_TEXT - 1, &c->len));
	left[count++] = (struct frond_left){cpu_milli, memory_mib};
}

static void loose(uint32_t gpus, uint32_t cpu_milli, uint32_t memory_mib, const char *model)
{
	put(gpus, cpu_milli, memory_mib, 0, 0, model, FROND_NONE);
}

static void use(uint32_t slot, uint32_t gpus)
{
	struct frond_key pod = {1, ++c->others};
	TEST_ASSERT_EQUAL_INT32(FROND_OK, pod_try(c, pod, slot, gpus, 0, "", (struct frond_key){0, 0}));
}

static int32_t order(uint32_t gpus, const char *wishes, const struct bound *room, const struct frond_thrift *thrift,
		     uint16_t *position)
{
	char in[256];
	struct frond_pair pairs[8];
	uint32_t in_len =
		request_make(c, &(struct wanted){.name = "p", .members = 1, .gpus = gpus, .wishes = wishes}, in, pairs);
	int32_t code = abi->order(c->engine, &c->request, c->members, pairs, in, in_len, c->room,
				  exceptions_of(room, count, c->room), thrift, kinds, left, &c->plan, position, c->text,
				  CLUSTER_TEXT - 1, &c->len);
	c->text[c->len] = 0;
	return code;
}

static void expect(uint32_t gpus, const struct frond_thrift *thrift, const char *wishes, uint32_t first)
{
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, order(gpus, wishes, NULL, thrift, careful), c->text);
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, c->plan.outcome);
	TEST_ASSERT_EQUAL_UINT16(0, careful[first]);
	check(c);
}

static void test_a_pod_goes_where_it_strands_no_gpu(void)
{
	static const char *const strategies[] = {"placement-strategy=balanced", "placement-strategy=consolidated",
						 "placement-strategy=distributed"};
	engine_make(c, 4, 16, "", "");
	loose(8, 8000, 8000, "");  /* a CPU for each GPU */
	loose(8, 64000, 8000, ""); /* more than enough */
	kinds[0] = (struct frond_kind){1000, 1000, 1, 5};
	for (uint32_t i = 0; i < 3; i++) {
		expect(1, NULL, strategies[i], 0);
		expect(1, &(struct frond_thrift){.cpu_milli = 4000, .memory_mib = 1000, .kinds = 1}, strategies[i], 1);
		TEST_ASSERT_EQUAL_UINT16(1, careful[0]);
		TEST_ASSERT_EQUAL_UINT32(FROND_PLAN_NO_TOPOLOGY, c->plan.flags);
	}
	expect(1, &(struct frond_thrift){.cpu_milli = 4000, .memory_mib = 1000}, "", 0); /* nobody is expected */
	expect(1, &(struct frond_thrift){.cpu_milli = 1000, .memory_mib = 1000, .kinds = 1}, "", 0); /* nothing grows */
}

static void test_links_come_first(void)
{
	engine_make(c, 4, 16, "", "");
	loose(8, 8000, 8000, "H100-SXM");
	loose(8, 64000, 8000, "");
	kinds[0] = (struct frond_kind){1000, 1000, 1, 5};
	expect(2, &(struct frond_thrift){.cpu_milli = 7000, .memory_mib = 1000, .kinds = 1}, "", 0);
	expect(1, &(struct frond_thrift){.cpu_milli = 7000, .memory_mib = 1000, .kinds = 1}, "", 1); /* has no links */
}

static void test_with_a_topology_the_same_holds(void)
{
	engine_make(c, 4, 16, "", "");
	put(8, 8000, 8000, 0, 0, "", 0);
	put(8, 64000, 8000, 0, 0, "", 0); /* inside a leaf */
	put(8, 8000, 8000, 0, 0, "", 1);
	loose(8, 64000, 9000, ""); /* outside of any */
	for (uint32_t slot = 0; slot < count; slot++)
		use(slot, 1); /* nothing is whole */
	kinds[0] = (struct frond_kind){1000, 1000, 1, 5};
	struct frond_thrift thrift = {.cpu_milli = 4000, .memory_mib = 1000, .kinds = 1};
	expect(1, NULL, "", 2);
	expect(1, &thrift, "", 3);
	use(3, 7);
	expect(1, NULL, "", 2);
	expect(1, &thrift, "", 1);
	expect(1, &thrift, "latency-sensitive=true", 0); /* does not mind */
}

/* A node in use that the pod leaves without CPU, a whole one beside it and one in a leaf of its own. */
static void make_one_in_use(void)
{
	engine_make(c, 4, 16, "", "");
	put(8, 4000, 8000, 0, 0, "", 0);
	put(8, 64000, 8000, 0, 0, "", 0);
	put(8, 64000, 8000, 0, 0, "", 1);
	use(0, 1);
	kinds[0] = (struct frond_kind){1000, 1000, 1, 5};
	kinds[1] = (struct frond_kind){0, 1000, 1, 1};
}

static void test_what_is_whole_stays_whole_while_some_kind_can_use_the_gpus(void)
{
	make_one_in_use();
	struct frond_thrift thrift = {.cpu_milli = 4000, .memory_mib = 1000, .kinds = 2};
	expect(1, &thrift, "", 0);                                /* six GPUs without CPU, for pods that need none */
	expect(1, &thrift, "placement-strategy=consolidated", 0); /* the same */
	TEST_ASSERT_EQUAL_UINT16(1, careful[1]);                  /* a whole node before a whole leaf */
	expect(1, &thrift, "placement-strategy=distributed", 2);  /* is not asked */
}

static void test_what_is_whole_is_broken_up_before_gpus_are_lost_to_every_kind(void)
{
	static const char *const strategies[] = {"placement-strategy=balanced", "placement-strategy=consolidated"};
	make_one_in_use();
	struct frond_thrift thrift = {.cpu_milli = 4000, .memory_mib = 1000, .kinds = 1};
	for (uint32_t i = 0; i < 2; i++) {
		expect(1, &thrift, strategies[i], 1);
		TEST_ASSERT_EQUAL_UINT16(1, careful[2]); /* even a whole leaf before six GPUs without CPU */
		TEST_ASSERT_EQUAL_UINT16(2, careful[0]);
	}
	thrift.cpu_milli = 3000;
	left[0].cpu_milli = 9000; /* CPU for the six GPUs that stay free: nothing is lost */
	expect(1, &thrift, "", 0);
	left[0].cpu_milli = 8999;
	expect(1, &thrift, "", 1);
	expect(1, &thrift, "latency-sensitive=true", 0); /* does not mind */
}

static void test_links_come_before_what_is_lost(void)
{
	engine_make(c, 4, 16, "", "");
	loose(8, 8000, 8000, "H100-SXM");
	loose(8, 64000, 8000, "");
	kinds[0] = (struct frond_kind){1000, 1000, 1, 5};
	struct frond_thrift thrift = {.cpu_milli = 8000, .memory_mib = 1000, .kinds = 1};
	expect(2, &thrift, "", 0); /* six GPUs are lost */
	expect(1, &thrift, "", 1);
}

/* ---- what is refused -------------------------------------------------------------------------------------------- */

static void refused(const struct frond_thrift *thrift, const char *sentence)
{
	remember(c);
	TEST_ASSERT_EQUAL_INT32(FROND_BAD, order(1, "", NULL, thrift, careful));
	TEST_ASSERT_EQUAL_STRING(sentence, c->text);
	unchanged(c);
}

static void test_over_a_limit_is_refused_and_the_limit_is_not(void)
{
	engine_make(c, 4, 16, "", "");
	loose(8, 8000, 8000, "");
	for (uint32_t i = 0; i <= FROND_KINDS_MAX; i++)
		kinds[i] = (struct frond_kind){UINT32_MAX, UINT32_MAX, FROND_GPUS_MAX, FROND_PODS_MAX};
	struct frond_thrift thrift = {UINT32_MAX, UINT32_MAX, FROND_KINDS_MAX, 0};
	expect(1, &thrift, "", 0);
	kinds[7].gpus = 1;
	kinds[8].pods = 1;
	expect(1, &thrift, "", 0);
	kinds[7].gpus = 0;
	refused(&thrift, "kinds[7].gpus: must be 1 to 16, got 0");
	kinds[7].gpus = 17;
	refused(&thrift, "kinds[7].gpus: must be 1 to 16, got 17");
	kinds[7].gpus = 1;
	kinds[63].pods = 0;
	refused(&thrift, "kinds[63].pods: must be 1 to 1048575, got 0");
	kinds[63].pods = FROND_PODS_MAX + 1;
	refused(&thrift, "kinds[63].pods: must be 1 to 1048575, got 1048576");
	thrift.kinds = 63;
	expect(1, &thrift, "", 0);
	thrift.kinds = FROND_KINDS_MAX + 1;
	refused(&thrift, "thrift: kinds must be 0 to 64, got 65, and reserved 0");
	thrift.kinds = 0;
	thrift.reserved = 1;
	refused(&thrift, "thrift: kinds must be 0 to 64, got 0, and reserved 0");
}

static void test_what_goes_with_thrift_must_be_there(void)
{
	engine_make(c, 4, 16, "", "");
	loose(8, 8000, 8000, "");
	struct frond_thrift thrift = {.kinds = 1};
	expect(1, NULL, "", 0);
	for (uint32_t i = 0; i < 2; i++) {
		remember(c);
		TEST_ASSERT_EQUAL_INT32(FROND_BAD, abi->order(c->engine, &c->request, c->members, NULL, "p", 1, NULL, 0,
							      &thrift, i == 0 ? NULL : kinds, i == 0 ? left : NULL,
							      &c->plan, careful, c->text, CLUSTER_TEXT - 1, &c->len));
		c->text[c->len] = 0;
		TEST_ASSERT_EQUAL_STRING("kinds, left: must not be missing beside thrift", c->text);
		unchanged(c);
	}
	TEST_ASSERT_EQUAL_INT32(FROND_OK,
				abi->order(c->engine, &c->request, c->members, NULL, "p", 1, NULL, 0, NULL, NULL, NULL,
					   &c->plan, careful, c->text, CLUSTER_TEXT - 1, &c->len));
}

/* ---- the rule, read naively ------------------------------------------------------------------------------------- */

static int64_t fill(const struct frond_kind *kind, int64_t free, int64_t cpu, int64_t memory, bool only_gpus)
{
	int64_t pods = 0;
	while (free >= kind->gpus && (only_gpus || (cpu >= kind->cpu_milli && memory >= kind->memory_mib))) {
		free -= kind->gpus;
		cpu -= kind->cpu_milli;
		memory -= kind->memory_mib;
		pods++;
	}
	return pods;
}

static int64_t useless(const struct frond_thrift *thrift, int64_t free, int64_t cpu, int64_t memory)
{
	int64_t sum = 0;
	for (uint32_t i = 0; i < thrift->kinds; i++) {
		int64_t by_gpus = fill(&kinds[i], free, cpu, memory, true);
		int64_t by_all = fill(&kinds[i], free, cpu, memory, false), each = (by_gpus - by_all) * kinds[i].gpus;
		sum += kinds[i].pods * (by_all == 0 ? each + free : each);
	}
	return sum;
}

/* GPUs that the kind which could use most of them would use. */
static int64_t used_at_most(const struct frond_thrift *thrift, int64_t free, int64_t cpu, int64_t memory,
			    bool only_gpus)
{
	int64_t most = 0;
	for (uint32_t i = 0; i < thrift->kinds; i++) {
		int64_t uses = fill(&kinds[i], free, cpu, memory, only_gpus) * kinds[i].gpus;
		most = uses > most ? uses : most;
	}
	return most;
}

static int64_t lost(const struct frond_thrift *thrift, int64_t free, int64_t cpu, int64_t memory)
{
	return used_at_most(thrift, free, cpu, memory, true) - used_at_most(thrift, free, cpu, memory, false);
}

struct naive { /* by slot */
	int64_t gpus, free, used, link, grows, loses;
	int64_t leaf; /* its own number behind those of the leaves: outside of any */
	bool fits, outside;
};

struct domain { /* a leaf, or a node that has none */
	int64_t gpus, free, used;
};

static struct naive naive[NODES];
static struct domain domains[2 * NODES]; /* by leaf */
static int64_t size;                     /* GPUs of the pod */
static uint32_t strategy;                /* 1: consolidated, 2: distributed */
static bool latency;

static int64_t score(const struct domain *domain)
{
	int64_t available = 10000 * domain->free / domain->gpus, used = 10000 * domain->used / domain->gpus;
	return (400 * available + 300 * (10000 * size / domain->free) + 200 * (strategy == 2 ? available : used) +
		100 * 10000) /
	       1000;
}

enum { TURNS = 14 };

/* What decides, turn by turn; lower comes first. */
static void turns(uint32_t slot, int64_t turn[TURNS])
{
	const struct naive *node = &naive[slot];
	const struct domain *domain = &domains[node->leaf];
	bool wears = !latency && strategy != 2;
	int64_t opened = domain->used == 0, stays = domain->free - size;
	memset(turn, 0, TURNS * sizeof *turn);
	turn[0] = node->outside;
	turn[1] = -node->link;
	turn[2] = latency ? 0 : node->loses;
	turn[3] = latency ? -domain->free : wears && domain->used == 0 && stays > 0;
	turn[4] = wears && node->used == 0 && node->free > size;
	turn[5] = latency ? 0 : node->grows;
	turn[6] = strategy == 1 && !latency ? opened : 0;
	turn[7] = strategy == 1 && !latency ? stays : 0;
	turn[8] = -score(domain);
	turn[9] = latency ? 0 : opened;
	turn[10] = latency ? 0 : stays;
	turn[11] = node->leaf;
	turn[12] = node->free - size;
	turn[13] = slot;
}

static bool before(uint32_t a, uint32_t b)
{
	int64_t first[TURNS], second[TURNS];
	turns(a, first);
	turns(b, second);
	for (uint32_t i = 0; i < TURNS; i++)
		if (first[i] != second[i])
			return first[i] < second[i];
	return false;
}

/* A node, and what the rule must know of it; GPUs that are sick or used by count may be the same. */
static void roll_node(uint32_t leaves, uint32_t scale, struct bound *room)
{
	static const char *const models[] = {"", "H100-SXM", "PCIE-8"};
	uint32_t slot = count, model = below(3), gpus = 1 + below(8);
	uint32_t leaf = leaves == 0 || percent(10) ? FROND_NONE : below(leaves);
	uint32_t sick = percent(20) ? below(1u << gpus) : 0, flags = percent(10) ? 1 + below(3) : 0;
	uint32_t used = percent(60) ? below(gpus + 1) : 0;
	put(gpus, below(8 * scale), below(8 * scale), flags, sick, models[model], leaf);
	if (used > 0)
		use(slot, used);
	int64_t free = (int64_t)gpus - __builtin_popcount(sick) - used;
	struct naive *node = &naive[slot];
	*room = (struct bound){.today = percent(90), .ever = 1};
	*node = (struct naive){.gpus = gpus,
			       .free = free > 0 ? free : 0,
			       .used = used,
			       .leaf = leaf == FROND_NONE ? NODES + slot : leaf,
			       .link = size > 1 && model == 1 ? LINKED : 0};
	node->fits = flags == 0 && node->free >= size && room->today > 0;
	domains[node->leaf].gpus += node->gpus;
	domains[node->leaf].free += node->free;
	domains[node->leaf].used += node->used;
}

static void instance(uint32_t nodes)
{
	static struct bound room[NODES];
	static const char *const strategies[] = {"balanced", "consolidated", "distributed"};
	static const char *const modes[] = {"Required", "Preferred", "Ignore"};
	char wishes[128];
	uint32_t scale = 1 + below(40), leaves = percent(30) ? 0 : 1 + below(1 + nodes / 3);
	uint32_t preferred = percent(20) && leaves > 0 ? below(leaves) : FROND_NONE;
	size = 1 + below(4);
	strategy = below(3);
	latency = percent(20);
	int at = snprintf(wishes, sizeof wishes, "placement-strategy=%s topology-mode=%s%s", strategies[strategy],
			  modes[below(3)], latency ? " latency-sensitive=true" : "");
	if (preferred != FROND_NONE)
		snprintf(wishes + at, sizeof wishes - (size_t)at, " preferred-domain=l%u", (unsigned)preferred);
	engine_make(c, nodes, nodes * 2, "", "");
	memset(domains, 0, sizeof domains);
	for (count = 0; count < nodes;)
		roll_node(leaves, scale, &room[count]);
	/* the more kinds there are, the less is lost to all of them */
	uint32_t most_kinds = percent(60) ? 4 : FROND_KINDS_MAX;
	struct frond_thrift thrift = {below(4 * scale), below(4 * scale), below(most_kinds + 1), 0};
	for (uint32_t i = 0; i < thrift.kinds; i++)
		kinds[i] = (struct frond_kind){below(2 * scale), percent(30) ? 0 : below(2 * scale), 1 + below(16),
					       1 + below(percent(10) ? FROND_PODS_MAX : 9)};
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, order((uint32_t)size, wishes, room, NULL, careful), c->text);
	struct frond_plan planned = c->plan;
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, order((uint32_t)size, wishes, room, &thrift, careful), c->text);
	TEST_ASSERT_EQUAL_MEMORY(&planned, &c->plan, sizeof planned);
	check(c);
	for (uint32_t slot = 0; slot < nodes; slot++) {
		int64_t cpu = left[slot].cpu_milli, memory = left[slot].memory_mib;
		int64_t cpu_then = cpu > thrift.cpu_milli ? cpu - thrift.cpu_milli : 0;
		int64_t memory_then = memory > thrift.memory_mib ? memory - thrift.memory_mib : 0;
		/* a name that no node has is no domain */
		naive[slot].outside =
			preferred != FROND_NONE && domains[preferred].gpus > 0 && naive[slot].leaf != preferred;
		if (!naive[slot].fits)
			continue;
		naive[slot].grows = useless(&thrift, naive[slot].free - size, cpu_then, memory_then) -
				    useless(&thrift, naive[slot].free, cpu, memory);
		naive[slot].loses = lost(&thrift, naive[slot].free - size, cpu_then, memory_then) -
				    lost(&thrift, naive[slot].free, cpu, memory);
	}
	for (uint32_t slot = 0; slot < nodes; slot++) {
		uint32_t rank = 0;
		for (uint32_t other = 0; naive[slot].fits && other < nodes; other++)
			rank += other != slot && naive[other].fits && before(other, slot);
		rank = rank < ORDERED ? rank : ORDERED;
		TEST_ASSERT_EQUAL_UINT16_MESSAGE(naive[slot].fits ? rank : UINT16_MAX, careful[slot], wishes);
	}
}

static void test_every_node_has_the_place_that_the_rule_says(void)
{
	const char *text = getenv("FROND_SEED");
	uint64_t seed = text == NULL ? 20 : strtoull(text, NULL, 0);
	printf("seed %llu\n", (unsigned long long)seed);
	dice = seed;
	for (uint32_t round = 0; round < 1500; round++) {
		instance(1 + below(40));
		free(c->mem);
		memset(c, 0, sizeof *c);
	}
	instance(NODES); /* more than are put in order */
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_a_pod_goes_where_it_strands_no_gpu);
	RUN_TEST(test_links_come_first);
	RUN_TEST(test_with_a_topology_the_same_holds);
	RUN_TEST(test_what_is_whole_stays_whole_while_some_kind_can_use_the_gpus);
	RUN_TEST(test_what_is_whole_is_broken_up_before_gpus_are_lost_to_every_kind);
	RUN_TEST(test_links_come_before_what_is_lost);
	RUN_TEST(test_over_a_limit_is_refused_and_the_limit_is_not);
	RUN_TEST(test_what_goes_with_thrift_must_be_there);
	RUN_TEST(test_every_node_has_the_place_that_the_rule_says);
	return UNITY_END();
}
