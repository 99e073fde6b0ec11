/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order() with thrift: in a cluster without topology the GPUs that are expected to be of no use decide after the links. The
 * random part reads the rule naively, pod by pod, and shares no code with the engine; where links and waste are equal it
 * takes the order without thrift, which test_place_best.c and the oracle have checked by other means.
 */
#include "cluster.h"
#include "dice.h"

enum { NODES = 1100, ORDERED = 1024, LINKED = 450 /* GB/s, H100-SXM */ };

static struct cluster *c;
static uint32_t count; /* nodes */
static struct frond_left left[NODES];
static struct frond_kind kinds[FROND_KINDS_MAX + 1];
static uint16_t plain[NODES], careful[NODES];

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

/* A node outside of any leaf. */
static void loose(uint32_t gpus, uint32_t cpu_milli, uint32_t memory_mib, uint32_t flags, uint32_t unhealthy_mask,
		  const char *model)
{
	char in[64];
	uint32_t name = (uint32_t)snprintf(in, sizeof in, "n%u", (unsigned)count);
	uint32_t end = name + (uint32_t)snprintf(in + name, sizeof in - name, "%s", model);
	struct frond_node node = {.slot = count,
				  .gpus = gpus,
				  .unhealthy_mask = unhealthy_mask,
				  .flags = flags,
				  .topology = FROND_NONE,
				  .name = {0, name},
				  .model = {name, end - name}};
	TEST_ASSERT_EQUAL_INT32(FROND_OK,
				abi->node_put(c->engine, &node, NULL, 0, in, end, c->text, CLUSTER_TEXT - 1, &c->len));
	left[count++] = (struct frond_left){cpu_milli, memory_mib};
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
	loose(8, 8000, 8000, 0, 0, "");  /* a CPU for each GPU */
	loose(8, 64000, 8000, 0, 0, ""); /* more than enough */
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
	loose(8, 8000, 8000, 0, 0, "H100-SXM");
	loose(8, 64000, 8000, 0, 0, "");
	kinds[0] = (struct frond_kind){1000, 1000, 1, 5};
	expect(2, &(struct frond_thrift){.cpu_milli = 7000, .memory_mib = 1000, .kinds = 1}, "", 0);
	expect(1, &(struct frond_thrift){.cpu_milli = 7000, .memory_mib = 1000, .kinds = 1}, "", 1); /* has no links */
}

static void test_with_a_topology_the_old_order_stands(void)
{
	engine_make(c, 4, 16, "", "");
	node_put(c, 0, "a", 8, "leaf-1", "spine-1");
	node_put(c, 1, "b", 8, NULL, NULL); /* one node with a leaf is a topology */
	left[0] = (struct frond_left){8000, 8000};
	left[1] = (struct frond_left){64000, 8000};
	kinds[0] = (struct frond_kind){1000, 1000, 1, 5};
	struct frond_thrift thrift = {.cpu_milli = 4000, .memory_mib = 1000, .kinds = 1};
	expect(1, NULL, "", 0);
	expect(1, &thrift, "", 0);
	node_remove(c, 0);
	node_put(c, 0, "a", 8, NULL, NULL);
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
	loose(8, 8000, 8000, 0, 0, "");
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
	loose(8, 8000, 8000, 0, 0, "");
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

struct naive { /* by slot */
	int64_t free, link, grows;
	bool fits;
};

static bool before(const struct naive *naive, uint32_t a, uint32_t b)
{
	if (naive[a].link != naive[b].link)
		return naive[a].link > naive[b].link;
	if (naive[a].grows != naive[b].grows)
		return naive[a].grows < naive[b].grows;
	return plain[a] < plain[b] || (plain[a] == plain[b] && a < b);
}

static void instance(uint32_t nodes)
{
	static struct naive naive[NODES];
	static struct bound room[NODES];
	static const char *const models[] = {"", "H100-SXM", "PCIE-8"};
	static const char *const wishes[] = {"", "placement-strategy=consolidated", "placement-strategy=distributed",
					     "latency-sensitive=true", "topology-mode=Preferred"};
	uint32_t size = 1 + below(4), scale = 1 + below(40);
	engine_make(c, nodes, nodes * 2, "", "");
	for (count = 0; count < nodes;) {
		uint32_t slot = count, model = below(3), gpus = 1 + below(8);
		uint32_t sick = percent(20) ? below(1u << gpus) : 0, flags = percent(10) ? 1 + below(3) : 0;
		uint32_t used = percent(60) ? below(gpus + 1) : 0;
		loose(gpus, below(8 * scale), below(8 * scale), flags, sick, models[model]);
		if (used > 0)
			use(slot, used);
		int64_t free = (int64_t)gpus - __builtin_popcount(sick) - used;
		room[slot] = (struct bound){.today = percent(90), .ever = 1};
		naive[slot] = (struct naive){.free = free > 0 ? free : 0, .link = size > 1 && model == 1 ? LINKED : 0};
		naive[slot].fits = flags == 0 && naive[slot].free >= size && room[slot].today > 0;
	}
	struct frond_thrift thrift = {below(4 * scale), below(4 * scale), below(FROND_KINDS_MAX + 1), 0};
	for (uint32_t i = 0; i < thrift.kinds; i++)
		kinds[i] = (struct frond_kind){below(2 * scale), percent(30) ? 0 : below(2 * scale), 1 + below(16),
					       1 + below(percent(10) ? FROND_PODS_MAX : 9)};
	const char *wish = wishes[below(5)];
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, order(size, wish, room, NULL, plain), c->text);
	struct frond_plan planned = c->plan;
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, order(size, wish, room, &thrift, careful), c->text);
	TEST_ASSERT_EQUAL_MEMORY(&planned, &c->plan, sizeof planned);
	check(c);
	for (uint32_t slot = 0; slot < nodes; slot++) {
		int64_t cpu = left[slot].cpu_milli, memory = left[slot].memory_mib;
		int64_t cpu_then = cpu > thrift.cpu_milli ? cpu - thrift.cpu_milli : 0;
		int64_t memory_then = memory > thrift.memory_mib ? memory - thrift.memory_mib : 0;
		if (naive[slot].fits)
			naive[slot].grows = useless(&thrift, naive[slot].free - size, cpu_then, memory_then) -
					    useless(&thrift, naive[slot].free, cpu, memory);
	}
	for (uint32_t slot = 0; slot < nodes; slot++) {
		uint32_t rank = 0;
		for (uint32_t other = 0; naive[slot].fits && other < nodes; other++)
			rank += other != slot && naive[other].fits && before(naive, other, slot);
		rank = rank < ORDERED ? rank : ORDERED;
		TEST_ASSERT_EQUAL_UINT16(naive[slot].fits ? rank : UINT16_MAX, careful[slot]);
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
	RUN_TEST(test_with_a_topology_the_old_order_stands);
	RUN_TEST(test_over_a_limit_is_refused_and_the_limit_is_not);
	RUN_TEST(test_what_goes_with_thrift_must_be_there);
	RUN_TEST(test_every_node_has_the_place_that_the_rule_says);
	return UNITY_END();
}
