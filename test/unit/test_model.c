/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random calls of the table against a simple model of what they mean: who owns which GPU, pod by pod. After each call
 * the code it returned, the masks of every node, the owners, the numbers and the references to names are compared, and
 * the invariant checker runs.
 *
 * FROND_SEED: the seed. FROND_MODEL_STEPS: how many calls (20,000).
 */
#include "cluster.h"
#include "dice.h"
#include "text/engine.h"

enum { NODES = 12, PODS = 80, GANGS = 10, LEDGER = 40, MEMBERS = 5, NOBODY = -1 };
enum { FREE, RESERVED, BOUND };

struct model_node {
	bool present;
	uint32_t gpus, unhealthy, flags, labels; /* labels: how many names it holds besides its own */
	int owner[FROND_GPUS_MAX];               /* a GPU beyond gpus may have one: the node has shrunk */
};

struct model_pod {
	int hold;
	uint32_t slot; /* FROND_NONE: a member without GPUs */
	uint32_t gpus; /* held in all, by device or by count */
	uint32_t by_count;
	int gang;
	bool arrived, named;
};

static struct {
	struct model_node node[NODES];
	struct model_pod pod[PODS];
	bool gone[GANGS];
	uint64_t conflicts, plans;
} m;

static struct cluster *c;
static uint64_t step;
static uint32_t booked, stale, full, moved;

void setUp(void)
{
	c = NULL;
}

void tearDown(void)
{
	if (Unity.CurrentTestFailed)
		printf("in step %llu\n", (unsigned long long)step);
	cluster_free(c);
}

static struct frond_key pod_key(uint32_t pod)
{
	return (struct frond_key){0x100 + pod % 3, pod + 1};
}

static struct frond_key gang_key(uint32_t gang)
{
	return (struct frond_key){0x200, gang + 1};
}

/* ---- what the model means --------------------------------------------------------------------------------------- */

static uint32_t held_mask(uint32_t slot)
{
	uint32_t mask = 0;
	for (uint32_t gpu = 0; gpu < FROND_GPUS_MAX; gpu++)
		mask |= m.node[slot].owner[gpu] != NOBODY ? 1u << gpu : 0;
	return mask;
}

static uint32_t count_on(uint32_t slot)
{
	uint32_t sum = 0;
	for (uint32_t pod = 0; pod < PODS; pod++)
		sum += m.pod[pod].hold != FREE && m.pod[pod].slot == slot ? m.pod[pod].by_count : 0;
	return sum;
}

static uint32_t free_mask(uint32_t slot)
{
	return ((1u << m.node[slot].gpus) - 1) & ~held_mask(slot) & ~m.node[slot].unhealthy;
}

static uint32_t free_count(uint32_t slot)
{
	uint32_t free = (uint32_t)__builtin_popcount(free_mask(slot)), count = count_on(slot);
	return free > count ? free - count : 0;
}

static uint32_t pods_held(void)
{
	uint32_t pods = 0;
	for (uint32_t pod = 0; pod < PODS; pod++)
		pods += m.pod[pod].hold != FREE;
	return pods;
}

static bool gang_lives(int gang)
{
	for (uint32_t pod = 0; pod < PODS; pod++)
		if (m.pod[pod].hold != FREE && m.pod[pod].gang == gang)
			return true;
	return false;
}

static void model_release(uint32_t pod)
{
	struct model_pod *mine = &m.pod[pod];
	for (uint32_t gpu = 0; mine->slot != FROND_NONE && gpu < FROND_GPUS_MAX; gpu++)
		if (m.node[mine->slot].owner[gpu] == (int)pod)
			m.node[mine->slot].owner[gpu] = NOBODY;
	int gang = mine->gang;
	*mine = (struct model_pod){.hold = FREE, .gang = NOBODY};
	if (gang != NOBODY && !gang_lives(gang))
		m.gone[gang] = false;
}

static void model_enter(uint32_t pod, int hold, uint32_t slot, uint32_t gpus, uint32_t mask, int gang)
{
	uint32_t got = 0;
	for (uint32_t gpu = 0; slot != FROND_NONE && gpu < FROND_GPUS_MAX; gpu++) {
		if (!(mask >> gpu & 1) || m.node[slot].owner[gpu] != NOBODY || gpu >= m.node[slot].gpus)
			continue;
		m.node[slot].owner[gpu] = (int)pod;
		got++;
	}
	m.pod[pod] = (struct model_pod){.hold = hold, .slot = slot, .gpus = gpus, .by_count = gpus - got, .gang = gang};
	m.conflicts += mask != 0 && got < gpus;
}

/* ---- calls ------------------------------------------------------------------------------------------------------ */

static void do_node_put(void)
{
	static const uint32_t sizes[] = {0, 2, 4, 8, 8, 8, 16};
	static const char *const leaf_names[] = {"l1", "l2", "l3", "l4", NULL, ""};
	static const char *const spine_names[] = {"s1", "s2", "l1", NULL, "s1", "s2"};
	uint32_t slot = below(NODES);
	struct model_node *node = &m.node[slot], next = *node;
	char name[16];
	snprintf(name, sizeof name, "n%u%s", (unsigned)slot, percent(5) ? "x" : "");
	if (!node->present || percent(10))
		next.gpus = sizes[below(7)];
	next.unhealthy = percent(20) ? below(1u << next.gpus) : 0;
	next.flags = percent(15) ? 1 + below(3) : 0;
	const char *leaf = leaf_names[percent(80) ? slot / 3 : below(6)],
		   *spine = spine_names[percent(90) ? slot / 6 : below(6)];
	next.labels = (leaf != NULL && *leaf != 0) + (spine != NULL && *spine != 0);
	next.present = true;
	if (percent(5)) { /* one that must be refused */
		TEST_ASSERT_EQUAL_INT32(FROND_BAD, node_try(c, slot, name, 17, 0, 0, 0, leaf, spine));
		return;
	}
	TEST_ASSERT_EQUAL_INT32_MESSAGE(
		FROND_OK, node_try(c, slot, name, next.gpus, next.unhealthy, next.flags, 0, leaf, spine), c->text);
	*node = next;
	snprintf(c->nodes[slot].name, sizeof c->nodes[slot].name, "%s", name);
}

static void do_node_remove(void)
{
	uint32_t slot = below(NODES + 2);
	bool known = slot < NODES && m.node[slot].present;
	TEST_ASSERT_EQUAL_INT32(known ? FROND_OK : FROND_UNKNOWN, abi->node_remove(c->engine, slot));
	for (uint32_t pod = 0; known && pod < PODS; pod++)
		if (m.pod[pod].hold != FREE && m.pod[pod].slot == slot)
			model_release(pod);
	if (known)
		m.node[slot].present = false;
}

static void do_pod_put(void)
{
	uint32_t pod = below(PODS), slot = below(NODES), gpus = below(9), mask = 0;
	struct model_pod *mine = &m.pod[pod];
	if (mine->hold != FREE && mine->slot != FROND_NONE && percent(60)) { /* the watch sees what was planned */
		slot = mine->slot;
		gpus = mine->gpus;
		for (uint32_t gpu = 0; gpu < FROND_GPUS_MAX && percent(95); gpu++)
			mask |= m.node[slot].owner[gpu] == (int)pod ? 1u << gpu : 0;
	} else if (percent(60)) {
		mask = below(1u << 8) & ((1u << m.node[slot].gpus) - 1);
		gpus = (uint32_t)__builtin_popcount(mask);
	}
	bool listed = mask != 0 && mask >> m.node[slot].gpus == 0 && (uint32_t)__builtin_popcount(mask) == gpus;
	bool named = percent(50);
	int gang = mine->hold != FREE ? mine->gang : percent(50) ? (int)below(GANGS) : NOBODY;
	struct frond_key key = gang == NOBODY ? (struct frond_key){0, 0} : gang_key((uint32_t)gang);
	int32_t code = pod_try(c, pod_key(pod), slot, gpus, allocated(c, slot, mask), named ? "ns/gang" : "", key);
	if (!m.node[slot].present) {
		TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, code);
		return;
	}
	if (mine->hold == FREE && pods_held() == LEDGER) {
		TEST_ASSERT_EQUAL_INT32(FROND_LIMIT, code);
		full++;
		return;
	}
	TEST_ASSERT_EQUAL_INT32(FROND_OK, code);
	uint32_t have = 0;
	for (uint32_t gpu = 0; mine->hold != FREE && gpu < FROND_GPUS_MAX; gpu++)
		have |= mine->slot == slot && m.node[slot].owner[gpu] == (int)pod ? 1u << gpu : 0;
	bool same = mine->hold != FREE && mine->slot == slot && mine->gpus == gpus;
	if (same && (!listed || have == mask || mine->hold == BOUND)) {
		mine->hold = BOUND;
		mine->arrived = true;
		mine->named |= named;
		return;
	}
	moved += mine->hold != FREE;
	bool gone = gang != NOBODY && m.gone[gang];
	bool alone = mine->hold != FREE && gang != NOBODY;
	for (uint32_t other = 0; alone && other < PODS; other++)
		alone = other == pod || m.pod[other].hold == FREE || m.pod[other].gang != gang;
	if (mine->hold != FREE)
		model_release(pod);
	model_enter(pod, BOUND, slot, gpus, listed ? mask : 0, gang);
	m.pod[pod].named = named;
	if (gang != NOBODY)
		m.gone[gang] = gone && !alone; /* the last one took the gang with it, and made it anew */
}

static void fill_request(uint32_t gang, uint32_t members)
{
	c->request = (struct frond_request){.gang = gang_key(gang),
					    .members = members,
					    .min_member = members,
					    .only_slot = FROND_NONE,
					    .age_ms = percent(50) ? 0 : 1000000};
	uint32_t size = 1 + below(8), next = below(PODS);
	for (uint32_t i = 0; i < members; i++) {
		next = (next + 1 + below(PODS / MEMBERS - 1)) % PODS;
		for (uint32_t tries = 0; tries < 5 && m.pod[next].hold != FREE && m.pod[next].gang != (int)gang;
		     tries++)
			next = (next + 1) % PODS; /* mostly, not always, one that may be booked */
		struct model_pod *pod = &m.pod[next];
		bool pinned = pod->hold == BOUND && pod->gang == (int)gang && pod->slot != FROND_NONE &&
			      pod->gpus > 0 && pod->gpus <= 16;
		c->members[i] = (struct frond_member){.pod = pod_key(next),
						      .rank = i,
						      .gpus = pinned        ? pod->gpus
							      : percent(10) ? 0
							      : percent(80) ? size
									    : 1 + below(8),
						      .pinned_slot = pinned ? pod->slot : FROND_NONE,
						      .reserved = 0};
	}
}

static uint32_t pod_of(struct frond_key key)
{
	return (uint32_t)key.lo - 1;
}

static void check_places(void)
{
	uint32_t taken[NODES] = {0}, count[NODES] = {0};
	for (uint32_t i = 0; i < c->request.members; i++) {
		const struct frond_place *at = &c->places[i];
		if (c->members[i].gpus == 0 || c->members[i].pinned_slot != FROND_NONE)
			continue;
		TEST_ASSERT_TRUE(at->slot < NODES && m.node[at->slot].present && m.node[at->slot].flags == 0);
		TEST_ASSERT_EQUAL_HEX32(0, at->gpu_mask & ~free_mask(at->slot));
		TEST_ASSERT_EQUAL_HEX32(0, at->gpu_mask & taken[at->slot]);
		TEST_ASSERT_EQUAL_UINT32(c->members[i].gpus, (uint32_t)__builtin_popcount(at->gpu_mask));
		taken[at->slot] |= at->gpu_mask;
		count[at->slot] += c->members[i].gpus;
		TEST_ASSERT_TRUE(count[at->slot] <= free_count(at->slot));
	}
}

/* May the model book this? */
static bool bookable(void)
{
	uint32_t fresh = 0, taken[NODES] = {0}, count[NODES] = {0};
	for (uint32_t i = 0; i < c->request.members; i++) {
		const struct frond_place *at = &c->places[i];
		const struct model_pod *pod = &m.pod[pod_of(c->members[i].pod)];
		if (c->members[i].pinned_slot != FROND_NONE)
			continue; /* bound when it was pinned, and nothing has happened since */
		fresh++;
		for (uint32_t j = 0; j < i; j++)
			if (c->members[j].pinned_slot == FROND_NONE &&
			    pod_of(c->members[j].pod) == pod_of(c->members[i].pod))
				return false;
		if (pod->hold != FREE)
			return false;
		if (c->members[i].gpus == 0)
			continue;
		count[at->slot] += c->members[i].gpus;
		if (!m.node[at->slot].present || m.node[at->slot].flags != 0 ||
		    (at->gpu_mask & ~free_mask(at->slot)) != 0 || (at->gpu_mask & taken[at->slot]) != 0 ||
		    count[at->slot] > free_count(at->slot))
			return false;
		taken[at->slot] |= at->gpu_mask;
	}
	return fresh + pods_held() <= LEDGER;
}

static void do_plan_and_reserve(void)
{
	static const char *const modes[] = {"Required", "Preferred", "Ignore"};
	char in[128];
	struct frond_pair pairs[4];
	uint32_t gang = below(GANGS), members = 1 + below(MEMBERS);
	fill_request(gang, members);
	snprintf(in, sizeof in, "topology-mode=%s", modes[below(3)]);
	char wishes[128];
	uint32_t in_len = wishes_read(in, wishes, 0, pairs, &c->request.annotations);
	int32_t code = abi->plan(c->engine, &c->request, c->members, pairs, wishes, in_len, NULL, &c->plan, c->places,
				 c->text, CLUSTER_TEXT - 1, &c->len);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, code);
	m.plans++;
	if (c->plan.outcome != FROND_PLACED)
		return;
	check_places();
	for (uint32_t i = 0; i < members && percent(10); i++) /* something else happens in between */
		if (c->members[i].gpus > 0 && c->members[i].pinned_slot == FROND_NONE)
			c->places[i].slot = below(NODES);
	bool expected = bookable();
	code = abi->reserve(c->engine, &c->request, c->members, c->places);
	TEST_ASSERT_EQUAL(expected, code == FROND_OK);
	stale += !expected;
	booked += expected;
	for (uint32_t i = 0; expected && i < members; i++) {
		if (c->members[i].pinned_slot != FROND_NONE)
			continue;
		uint32_t slot = c->members[i].gpus == 0 ? FROND_NONE : c->places[i].slot;
		model_enter(pod_of(c->members[i].pod), RESERVED, slot, c->members[i].gpus,
			    slot == FROND_NONE ? 0 : c->places[i].gpu_mask, (int)gang);
	}
}

static void do_permit(void)
{
	uint32_t pod = below(PODS), verdict = 0;
	struct frond_key key = pod_key(pod);
	int32_t code = abi->permit(c->engine, &key, &verdict);
	TEST_ASSERT_EQUAL_INT32(m.pod[pod].hold == RESERVED ? FROND_OK : FROND_UNKNOWN, code);
	if (code != FROND_OK)
		return;
	m.pod[pod].arrived = true;
	bool all = true;
	for (uint32_t other = 0; other < PODS; other++)
		all &= m.pod[other].hold != RESERVED || m.pod[other].gang != m.pod[pod].gang || m.pod[other].arrived;
	m.gone[m.pod[pod].gang] |= all;
	TEST_ASSERT_EQUAL_UINT32(m.gone[m.pod[pod].gang] ? FROND_GO : FROND_HOLD, verdict);
}

static void do_confirm(void)
{
	uint32_t pod = below(PODS);
	struct frond_key key = pod_key(pod);
	TEST_ASSERT_EQUAL_INT32(m.pod[pod].hold == FREE ? FROND_UNKNOWN : FROND_OK, abi->confirm(c->engine, &key));
	if (m.pod[pod].hold == RESERVED) {
		m.pod[pod].hold = BOUND;
		m.pod[pod].arrived = true;
	}
}

static void do_release(void)
{
	uint32_t pod = below(PODS);
	struct frond_key key = pod_key(pod);
	TEST_ASSERT_EQUAL_INT32(m.pod[pod].hold == FREE ? FROND_UNKNOWN : FROND_OK, abi->release(c->engine, &key));
	if (m.pod[pod].hold != FREE)
		model_release(pod);
}

static void do_release_gang(void)
{
	uint32_t gang = below(GANGS), pods = 99, expected = 0;
	struct frond_key key = gang_key(gang);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release_gang(c->engine, &key, &pods));
	for (uint32_t pod = 0; pod < PODS; pod++)
		if (m.pod[pod].hold == RESERVED && m.pod[pod].gang == (int)gang) {
			model_release(pod);
			expected++;
		}
	TEST_ASSERT_EQUAL_UINT32(expected, pods);
}

/* ---- compare ---------------------------------------------------------------------------------------------------- */

static void compare(void)
{
	const struct core *core = &c->engine->core;
	struct frond_stats out = stats(c),
			   want = {.generation = out.generation, .plans = m.plans, .conflicts = m.conflicts};
	uint32_t refs = 0, expected_refs = 0;
	check(c);
	for (uint32_t slot = 0; slot < NODES; slot++) {
		const struct model_node *node = &m.node[slot];
		TEST_ASSERT_EQUAL(node->present, core->nodes[slot].present);
		if (!node->present)
			continue;
		TEST_ASSERT_EQUAL_HEX32(held_mask(slot), core->nodes[slot].held);
		TEST_ASSERT_EQUAL_UINT32(count_on(slot), core->nodes[slot].by_count);
		for (uint32_t gpu = 0; gpu < FROND_GPUS_MAX; gpu++) {
			uint32_t at = core->ledger.owner[slot * FROND_GPUS_MAX + gpu];
			int owner = at == FROND_NONE ? NOBODY : (int)pod_of(core->ledger.entries[at].pod);
			TEST_ASSERT_EQUAL_INT(node->owner[gpu], owner);
		}
		want.nodes++;
		want.gpus += node->gpus;
		want.gpus_unhealthy += (uint32_t)__builtin_popcount(node->unhealthy);
		want.gpus_by_count += count_on(slot);
		want.gpus_free += free_count(slot);
		expected_refs += 1 + node->labels;
	}
	for (uint32_t pod = 0; pod < PODS; pod++) {
		const struct model_pod *mine = &m.pod[pod];
		want.pods += mine->hold != FREE;
		want.gpus_reserved += mine->hold == RESERVED ? mine->gpus - mine->by_count : 0;
		want.gpus_bound += mine->hold == BOUND ? mine->gpus - mine->by_count : 0;
		expected_refs += mine->hold != FREE && mine->named;
	}
	for (int gang = 0; gang < GANGS; gang++)
		want.gangs += gang_lives(gang);
	want.nodes_without_leaf = out.nodes_without_leaf; /* the tree's own, see test_tree.c */
	want.leaves = out.leaves;
	want.spines = out.spines;
	want.placed = out.placed;
	want.waiting = out.waiting;
	want.refused = out.refused;
	want.relaxed = out.relaxed;
	TEST_ASSERT_EQUAL_UINT64(out.plans, out.placed + out.waiting + out.refused);
	TEST_ASSERT_EQUAL_MEMORY(&want, &out, sizeof want);
	for (uint32_t id = 0; id < c->engine->names.cap; id++)
		refs += c->engine->names.names[id].refs;
	TEST_ASSERT_EQUAL_UINT32(expected_refs, refs);
}

static void test_random_calls_mean_what_the_model_says(void)
{
	static void (*const calls[])(void) = {
		do_node_put, do_node_put,         do_node_put,         do_pod_put,          do_pod_put,
		do_pod_put,  do_plan_and_reserve, do_plan_and_reserve, do_plan_and_reserve, do_permit,
		do_permit,   do_confirm,          do_release,          do_release,          do_release_gang,
	};
	const char *steps_text = getenv("FROND_MODEL_STEPS"), *seed_text = getenv("FROND_SEED");
	uint64_t steps = steps_text == NULL ? 20000 : strtoull(steps_text, NULL, 10);
	dice = seed_text == NULL ? 20260101 : strtoull(seed_text, NULL, 0);
	printf("seed %llu, %llu steps\n", (unsigned long long)dice, (unsigned long long)steps);
	memset(&m, 0, sizeof m);
	for (uint32_t slot = 0; slot < NODES; slot++)
		for (uint32_t gpu = 0; gpu < FROND_GPUS_MAX; gpu++)
			m.node[slot].owner[gpu] = NOBODY;
	for (uint32_t pod = 0; pod < PODS; pod++)
		m.pod[pod].gang = NOBODY;
	c = calloc(1, sizeof *c);
	TEST_ASSERT_NOT_NULL(c);
	engine_make(c, NODES, LEDGER, "", "");
	for (step = 0; step < steps; step++) {
		if (percent(2))
			do_node_remove();
		else
			calls[below(sizeof calls / sizeof *calls)]();
		compare();
	}
	printf("%u booked, %u stale, %u refused by a full ledger, %u moved\n", (unsigned)booked, (unsigned)stale,
	       (unsigned)full, (unsigned)moved);
	TEST_ASSERT_TRUE(steps < 20000 || (booked > 300 && stale > 50 && full > 10 && moved > 50));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_random_calls_mean_what_the_model_says);
	return UNITY_END();
}
