/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random calls of the table against a simple model of what they mean: who owns which GPU, pod by pod, what is kept for whom,
 * and what each gang was promised. After each call the code it returned, the masks of every node, the owners, the gangs, the numbers and the
 * references to names are compared, and the invariant checker runs; a call that was refused has left the dump as it was,
 * and so has undo(). Clusters are small and change every few hundred calls.
 *
 * The number of calls is the first argument or FROND_MODEL_CALLS (30,000); FROND_SEED is the seed.
 */
#include "cluster.h"
#include "dice.h"
#include "engine/engine.h"

enum {
	NODES = 24,
	PODS = 80,
	GANGS = 10,
	LEDGER = 64,
	MEMBERS = 5,
	DEPTH = 3,
	EPISODE = 500,
	NOBODY = -1,
	RANKS = 6,
	LIST = 4
};
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
	uint32_t rank;
	bool arrived, named;
};

struct model_hold {
	int gang; /* NOBODY: no hold */
	uint32_t rank, slot, mask;
	int64_t deadline_ms;
};

struct model_gang {
	bool gone;
	uint32_t min_member;
	int32_t priority;
	int64_t deadline_ms;
};

struct model { /* what undo() brings back */
	struct model_node node[NODES];
	struct model_pod pod[PODS];
	struct model_gang gang[GANGS];
	struct model_hold hold[CLUSTER_HOLDS];
	uint64_t conflicts;
};

static struct model m, saved[DEPTH];
static char dumps[DEPTH][CLUSTER_TEXT], last[CLUSTER_TEXT]; /* before each what-if, and after the last call */
static uint32_t depth, nodes, ledger;
static uint64_t plans, expired, holds_expired;
static int64_t now_ms;
static bool refused; /* the call was, so nothing may have changed */

static struct cluster *c;
static uint64_t step, calls_wanted;
static uint32_t booked, stale, full, moved, bad, undone, late, learnt, wrong_masks, fetched, taken_over, replaced,
	clashed;

void setUp(void)
{
	c = NULL;
}

void tearDown(void)
{
	if (Unity.CurrentTestFailed)
		printf("in call %llu\n", (unsigned long long)step);
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

/* Every call ends here: refused calls are counted and must not have changed anything. */
static bool went(int32_t expected, int32_t code)
{
	TEST_ASSERT_EQUAL_INT32_MESSAGE(expected, code, c->text);
	refused = code != FROND_OK;
	return !refused;
}

/* Cluster state may not change inside a what-if. */
static int32_t outside(int32_t expected)
{
	return depth > 0 && expected == FROND_OK ? FROND_BAD : expected;
}

/* ---- what the model means --------------------------------------------------------------------------------------- */

static uint32_t owned_mask(uint32_t slot)
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

/* GPUs of the node that are kept from a gang, or from everybody but the owners (NOBODY). */
static uint32_t kept_mask(uint32_t slot, int gang)
{
	uint32_t mask = 0;
	for (uint32_t i = 0; i < CLUSTER_HOLDS; i++)
		if (m.hold[i].gang != NOBODY && m.hold[i].slot == slot && m.hold[i].gang != gang)
			mask |= m.hold[i].mask;
	return mask;
}

static struct model_hold *hold_of(int gang, uint32_t rank)
{
	for (uint32_t i = 0; gang != NOBODY && i < CLUSTER_HOLDS; i++)
		if (m.hold[i].gang == gang && m.hold[i].rank == rank)
			return &m.hold[i];
	return NULL;
}

static uint32_t holds_there(void)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < CLUSTER_HOLDS; i++)
		count += m.hold[i].gang != NOBODY;
	return count;
}

static uint32_t free_mask(uint32_t slot, int gang)
{
	return ((1u << m.node[slot].gpus) - 1) & ~owned_mask(slot) & ~kept_mask(slot, gang) & ~m.node[slot].unhealthy;
}

static uint32_t free_count(uint32_t slot, int gang)
{
	uint32_t free = (uint32_t)__builtin_popcount(free_mask(slot, gang)), count = count_on(slot);
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

static void gang_leave(uint32_t pod)
{
	int gang = m.pod[pod].gang;
	m.pod[pod].gang = NOBODY;
	if (gang != NOBODY && !gang_lives(gang))
		m.gang[gang] = (struct model_gang){.min_member = 1};
}

static void model_release(uint32_t pod)
{
	struct model_pod *mine = &m.pod[pod];
	for (uint32_t gpu = 0; mine->slot != FROND_NONE && gpu < FROND_GPUS_MAX; gpu++)
		if (m.node[mine->slot].owner[gpu] == (int)pod)
			m.node[mine->slot].owner[gpu] = NOBODY;
	mine->hold = FREE;
	gang_leave(pod);
	*mine = (struct model_pod){.hold = FREE, .gang = NOBODY};
}

/* A bound pod has come to where a hold waits for it. */
static void model_take_over(uint32_t pod)
{
	struct model_hold *hold = hold_of(m.pod[pod].gang, m.pod[pod].rank);
	if (hold == NULL || hold->slot != m.pod[pod].slot)
		return;
	hold->gang = NOBODY;
	taken_over++;
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
	m.pod[pod] = (struct model_pod){
		.hold = hold, .slot = slot, .gpus = gpus, .by_count = gpus - got, .gang = gang, .rank = FROND_NONE};
	m.conflicts += mask != 0 && got < gpus;
}

/* ---- calls ------------------------------------------------------------------------------------------------------ */

/* One of a few link tables of a node with so many GPUs, as a report would give it; FROND_NONE: none. */
static uint32_t report(uint32_t gpus)
{
	struct frond_topology topology = {.gpus = gpus};
	uint32_t id = FROND_NONE, gbps = 25 * below(3);
	if (gpus > 8 || percent(70))
		return FROND_NONE;
	for (uint32_t i = 0; i < gpus; i++)
		for (uint32_t j = 0; j < gpus; j++)
			if (i != j && (i ^ j) < 4)
				topology.link_gbps[i][j] = (uint16_t)gbps;
	int32_t code = abi->topology_put(c->engine, &topology, &id, c->text, CLUSTER_TEXT - 1, &c->len);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, code);
	return id;
}

static void do_node_put(void)
{
	static const uint32_t sizes[] = {0, 2, 4, 8, 8, 8, 16};
	static const char *const leaf_names[] = {"l1", "l2", "l3", "l4", "l5", "l6", "l7", "l8", NULL, ""};
	static const char *const spine_names[] = {"s1", "s2", "s3", "s4", "l1", NULL};
	static const char tier0[] = "fabric.topograph.run/tier-0", tier1[] = "fabric.topograph.run/tier-1";
	uint32_t slot = below(nodes);
	struct model_node *node = &m.node[slot], next = *node;
	char in[256];
	int name = snprintf(in, sizeof in, "n%u%s", (unsigned)slot, percent(5) ? "x" : "");
	if (!node->present || percent(10))
		next.gpus = sizes[below(7)];
	next.unhealthy = percent(20) ? below(1u << next.gpus) : 0;
	next.flags = percent(15) ? 1 + below(3) : 0;
	uint32_t lasting = next.flags != 0 && percent(50) ? FROND_NODE_UNAVAILABLE : 0u;
	const char *leaf = leaf_names[percent(85) ? slot / 3 : below(10)],
		   *spine = spine_names[percent(90) ? slot / 6 : below(6)];
	next.labels = (leaf != NULL && *leaf != 0) + (spine != NULL && *spine != 0);
	next.present = true;
	struct frond_pair pairs[2] = {{{0, 0}, {0, 0}}};
	uint32_t labels = 0, at = (uint32_t)name, leaf_len = leaf == NULL ? 0 : (uint32_t)strlen(leaf);
	if (leaf != NULL)
		pairs[labels++] = (struct frond_pair){{at, sizeof tier0 - 1}, {at + sizeof tier0 - 1, leaf_len}};
	at += (uint32_t)snprintf(in + at, sizeof in - at, "%s%s", tier0, leaf == NULL ? "" : leaf);
	if (spine != NULL)
		pairs[labels++] =
			(struct frond_pair){{at, sizeof tier1 - 1}, {at + sizeof tier1 - 1, (uint32_t)strlen(spine)}};
	at += (uint32_t)snprintf(in + at, sizeof in - at, "%s%s", tier1, spine == NULL ? "" : spine);
	struct frond_node record = {.slot = slot,
				    .gpus = next.gpus,
				    .unhealthy_mask = next.unhealthy,
				    .unavailable_mask = percent(50) ? next.unhealthy : next.unhealthy & below(1u << 16),
				    .flags = next.flags | lasting,
				    .uplink_gbps = percent(20) ? 100 * below(4) : 0,
				    .topology = report(next.gpus),
				    .name = {0, (uint32_t)name}};
	int32_t code = abi->node_put(c->engine, &record, pairs, labels, in, at, c->text, CLUSTER_TEXT - 1, &c->len);
	c->text[c->len] = 0;
	if (!went(outside(FROND_OK), code))
		return;
	*node = next;
	snprintf(c->nodes[slot].name, sizeof c->nodes[slot].name, "%.*s", name, in);
}

static void do_node_remove(void)
{
	uint32_t slot = below(nodes + 2);
	bool known = slot < nodes && m.node[slot].present;
	if (!went(known ? outside(FROND_OK) : FROND_UNKNOWN, abi->node_remove(c->engine, slot)))
		return;
	for (uint32_t pod = 0; pod < PODS; pod++)
		if (m.pod[pod].hold != FREE && m.pod[pod].slot == slot)
			model_release(pod);
	for (uint32_t i = 0; i < CLUSTER_HOLDS; i++)
		if (m.hold[i].slot == slot)
			m.hold[i].gang = NOBODY;
	m.node[slot].present = false;
}

/* The pod is what we know of it already, or learns nothing but that it is bound, its gang and its name. */
static bool nothing_new(const struct model_pod *mine, uint32_t pod, uint32_t slot, uint32_t gpus, uint32_t mask)
{
	uint32_t have = 0;
	if (mine->hold == FREE || mine->slot != slot || mine->gpus != gpus)
		return false;
	for (uint32_t gpu = 0; gpu < FROND_GPUS_MAX; gpu++)
		have |= m.node[slot].owner[gpu] == (int)pod ? 1u << gpu : 0;
	return mask == 0 || ((have & ~mask) == 0 && (mask & ~have & ~owned_mask(slot)) == 0);
}

/* Devices of a pod that was held by count become known, and nobody else has them: it learns them where it is. */
static void learn_devices(struct model_pod *mine, uint32_t pod, uint32_t slot, uint32_t gpus, uint32_t mask)
{
	if (mine->hold == FREE || mine->slot != slot || mine->gpus != gpus || mask == 0 || mine->by_count == 0)
		return;
	for (uint32_t gpu = 0; gpu < FROND_GPUS_MAX; gpu++) {
		int owner = m.node[slot].owner[gpu];
		if (mask >> gpu & 1 ? owner != NOBODY && owner != (int)pod : owner == (int)pod)
			return;
	}
	for (uint32_t gpu = 0; gpu < FROND_GPUS_MAX; gpu++)
		if (mask >> gpu & 1)
			m.node[slot].owner[gpu] = (int)pod;
	mine->by_count = 0;
	learnt++;
}

static void do_pod_put(void)
{
	uint32_t pod = below(PODS), slot = below(nodes), gpus = below(9), mask = 0;
	struct model_pod *mine = &m.pod[pod];
	if (mine->hold != FREE && mine->by_count > 0 && mine->slot != FROND_NONE && percent(70)) {
		slot = mine->slot; /* by now it knows its devices */
		gpus = mine->gpus;
		for (uint32_t gpu = 0; gpu < m.node[slot].gpus; gpu++)
			if ((uint32_t)__builtin_popcount(mask) < gpus && percent(80))
				mask |= 1u << gpu;
	} else if (mine->hold != FREE && mine->slot != FROND_NONE &&
		   percent(60)) { /* the watch sees what was planned */
		slot = mine->slot;
		gpus = mine->gpus;
		for (uint32_t gpu = 0; gpu < FROND_GPUS_MAX && percent(95); gpu++)
			mask |= m.node[slot].owner[gpu] == (int)pod ? 1u << gpu : 0;
	} else if (percent(60)) {
		mask = below(1u << 8) & ((1u << m.node[slot].gpus) - 1);
		gpus = (uint32_t)__builtin_popcount(mask);
	}
	if (percent(3)) { /* a host that is wrong */
		mask = below(1u << 16);
		gpus = percent(50) ? (uint32_t)__builtin_popcount(mask) : gpus;
	}
	bool wrong = mask != 0 && (mask >> m.node[slot].gpus != 0 || (uint32_t)__builtin_popcount(mask) != gpus);
	bool named = percent(50);
	int gang = mine->hold != FREE && percent(80) ? mine->gang : percent(50) ? (int)below(GANGS) : NOBODY;
	struct frond_key key = gang == NOBODY ? (struct frond_key){0, 0} : gang_key((uint32_t)gang);
	uint32_t rank = percent(40) ? FROND_NONE : below(RANKS);
	const struct model_hold *waits = &m.hold[below(8)];
	if (waits->gang != NOBODY && mine->hold == FREE && percent(40)) { /* it comes to where it is waited for */
		gang = waits->gang;
		key = gang_key((uint32_t)gang);
		rank = waits->rank;
		slot = waits->slot;
		mask = percent(50) ? waits->mask : 0;
		gpus = (uint32_t)__builtin_popcount(waits->mask);
		wrong = mask >> m.node[slot].gpus != 0;
	}
	struct frond_pod record = {.pod = pod_key(pod),
				   .slot = slot,
				   .gpus = gpus,
				   .gpu_mask = mask,
				   .name = {0, named ? 7 : 0},
				   .gang = key,
				   .rank = rank};
	int32_t code = abi->pod_put(c->engine, &record, "ns/gang", 7, c->text, CLUSTER_TEXT - 1, &c->len);
	c->text[c->len] = 0;
	bool no_room = depth == 0 && mine->hold == FREE && pods_held() == ledger;
	full += no_room && m.node[slot].present;
	wrong_masks += wrong && m.node[slot].present;
	if (!went(!m.node[slot].present ? FROND_UNKNOWN
		  : wrong               ? FROND_BAD
		  : no_room             ? FROND_LIMIT
					: outside(FROND_OK),
		  code))
		return;
	if (gang == NOBODY)
		gang = mine->hold != FREE ? mine->gang : NOBODY; /* not said: it stays in the one it is in */
	learn_devices(mine, pod, slot, gpus, mask);
	if (nothing_new(mine, pod, slot, gpus, mask)) {
		mine->hold = BOUND;
		mine->arrived = true;
		mine->named |= named;
		bool known = gang == mine->gang && (rank == FROND_NONE || rank == mine->rank);
		if (gang != mine->gang) {
			gang_leave(pod);
			mine->gang = gang;
		}
		mine->rank = rank == FROND_NONE ? mine->rank : rank;
		if (!known)
			model_take_over(pod);
		return;
	}
	moved += mine->hold != FREE;
	if (mine->hold != FREE && rank == FROND_NONE && mine->slot == slot)
		rank = mine->rank;
	int before = mine->hold != FREE ? mine->gang : NOBODY;
	struct model_gang kept = before != NOBODY ? m.gang[before] : (struct model_gang){.min_member = 1};
	if (mine->hold != FREE)
		model_release(pod);
	if (gang != NOBODY && gang == before)
		m.gang[gang] = kept; /* nobody has left: what the gang was promised stays */
	model_enter(pod, BOUND, slot, gpus, mask, gang);
	m.pod[pod].named = named;
	m.pod[pod].rank = rank;
	model_take_over(pod);
}

static void fill_request(uint32_t gang, uint32_t members)
{
	c->request = (struct frond_request){.gang = gang_key(gang),
					    .members = members,
					    .min_member = 1 + below(members),
					    .only_slot = FROND_NONE,
					    .age_ms = percent(50) ? 0 : 1000000,
					    .priority = (int32_t)below(5) - 2,
					    .deadline_ms = percent(50) ? 0 : now_ms + below(400)};
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
						      .pinned_slot = pinned ? pod->slot : FROND_NONE};
	}
}

static uint32_t pod_of(struct frond_key key)
{
	return (uint32_t)key.lo - 1;
}

static void check_places(int gang)
{
	uint32_t taken[NODES] = {0}, count[NODES] = {0};
	for (uint32_t i = 0; i < c->request.members; i++) {
		const struct frond_place *at = &c->places[i];
		if (c->members[i].gpus == 0 || c->members[i].pinned_slot != FROND_NONE)
			continue;
		TEST_ASSERT_TRUE(at->slot < nodes && m.node[at->slot].present && m.node[at->slot].flags == 0);
		TEST_ASSERT_EQUAL_HEX32(0, at->gpu_mask & ~free_mask(at->slot, gang));
		TEST_ASSERT_EQUAL_HEX32(0, at->gpu_mask & taken[at->slot]);
		TEST_ASSERT_EQUAL_UINT32(c->members[i].gpus, (uint32_t)__builtin_popcount(at->gpu_mask));
		taken[at->slot] |= at->gpu_mask;
		count[at->slot] += c->members[i].gpus;
		TEST_ASSERT_TRUE(count[at->slot] <= free_count(at->slot, gang));
	}
}

/* May the model book this? */
static bool bookable(int gang)
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
		    (at->gpu_mask & ~free_mask(at->slot, gang)) != 0 || (at->gpu_mask & taken[at->slot]) != 0 ||
		    count[at->slot] > free_count(at->slot, gang))
			return false;
		taken[at->slot] |= at->gpu_mask;
	}
	return fresh + pods_held() <= ledger;
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
	int32_t code = abi->plan(c->engine, &c->request, c->members, pairs, wishes, in_len, NULL, 0, &c->plan,
				 c->places, c->text, CLUSTER_TEXT - 1, &c->len);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, code);
	plans++;
	if (c->plan.outcome != FROND_PLACED)
		return;
	check_places((int)gang);
	for (uint32_t i = 0; i < members && percent(10); i++) /* something else happens in between */
		if (c->members[i].gpus > 0 && c->members[i].pinned_slot == FROND_NONE)
			c->places[i].slot = below(nodes);
	bool expected = bookable((int)gang);
	code = abi->reserve(c->engine, &c->request, c->members, c->places);
	TEST_ASSERT_EQUAL(expected, code == FROND_OK);
	refused = !expected;
	stale += !expected;
	booked += expected;
	for (uint32_t i = 0; expected && i < members; i++) {
		if (c->members[i].pinned_slot != FROND_NONE)
			continue;
		uint32_t slot = c->members[i].gpus == 0 ? FROND_NONE : c->places[i].slot;
		model_enter(pod_of(c->members[i].pod), RESERVED, slot, c->members[i].gpus,
			    slot == FROND_NONE ? 0 : c->places[i].gpu_mask, (int)gang);
		m.pod[pod_of(c->members[i].pod)].rank = c->members[i].rank;
		struct model_hold *hold = hold_of((int)gang, c->members[i].rank);
		if (hold != NULL) {
			hold->gang = NOBODY;
			replaced++;
		}
	}
	if (expected && gang_lives((int)gang)) {
		m.gang[gang].min_member = c->request.min_member;
		m.gang[gang].priority = c->request.priority;
		m.gang[gang].deadline_ms = c->request.deadline_ms;
	}
}

static void do_permit(void)
{
	uint32_t pod = below(PODS), verdict = 0;
	struct frond_key key = pod_key(pod);
	int32_t code = abi->permit(c->engine, &key, &verdict);
	if (!went(m.pod[pod].hold == RESERVED ? FROND_OK : FROND_UNKNOWN, code))
		return;
	m.pod[pod].arrived = true;
	bool all = true;
	for (uint32_t other = 0; other < PODS; other++)
		all &= m.pod[other].hold != RESERVED || m.pod[other].gang != m.pod[pod].gang || m.pod[other].arrived;
	m.gang[m.pod[pod].gang].gone |= all;
	TEST_ASSERT_EQUAL_UINT32(m.gang[m.pod[pod].gang].gone ? FROND_GO : FROND_HOLD, verdict);
}

static void do_confirm(void)
{
	uint32_t pod = below(PODS);
	struct frond_key key = pod_key(pod);
	went(m.pod[pod].hold == FREE ? FROND_UNKNOWN : FROND_OK, abi->confirm(c->engine, &key));
	if (m.pod[pod].hold == RESERVED) {
		m.pod[pod].hold = BOUND;
		m.pod[pod].arrived = true;
	}
}

static void do_release(void)
{
	uint32_t pod = below(PODS);
	struct frond_key key = pod_key(pod);
	if (went(m.pod[pod].hold == FREE ? FROND_UNKNOWN : FROND_OK, abi->release(c->engine, &key)))
		model_release(pod);
}

static uint32_t release_reserved(uint32_t gang)
{
	uint32_t count = 0;
	for (uint32_t pod = 0; pod < PODS; pod++)
		if (m.pod[pod].hold == RESERVED && m.pod[pod].gang == (int)gang) {
			model_release(pod);
			count++;
		}
	return count;
}

static void do_release_gang(void)
{
	uint32_t gang = below(GANGS), pods = 99;
	struct frond_key key = gang_key(gang);
	went(FROND_OK, abi->release_gang(c->engine, &key, &pods));
	TEST_ASSERT_EQUAL_UINT32(release_reserved(gang), pods);
}

static void do_tick(void)
{
	struct frond_key keys[GANGS];
	uint32_t count = 99, expected = 0;
	now_ms += below(100);
	if (!went(outside(FROND_OK), abi->tick(c->engine, now_ms, keys, GANGS, &count))) {
		TEST_ASSERT_EQUAL_UINT32(0, count);
		return;
	}
	for (uint32_t i = 0; i < CLUSTER_HOLDS; i++)
		if (m.hold[i].gang != NOBODY && m.hold[i].deadline_ms != 0 && m.hold[i].deadline_ms < now_ms) {
			m.hold[i].gang = NOBODY;
			holds_expired++;
		}
	for (uint32_t gang = 0; gang < GANGS; gang++) {
		int64_t deadline = m.gang[gang].deadline_ms;
		if (deadline == 0 || deadline >= now_ms || release_reserved(gang) == 0)
			continue;
		bool told = false;
		for (uint32_t i = 0; i < count && i < GANGS; i++)
			told |= keys[i].hi == gang_key(gang).hi && keys[i].lo == gang_key(gang).lo;
		TEST_ASSERT_TRUE(told);
		expected++;
	}
	TEST_ASSERT_EQUAL_UINT32(expected, count);
	expired += count;
	late += count;
}

static void do_gang_put(void)
{
	static const char *const wishes[] = {"", "recovery=Wait", "topology-mode=Ignore placement-strategy=distributed",
					     "latency-sensitive=perhaps"};
	uint32_t gang = below(GANGS), wish = below(4);
	char in[256];
	struct frond_pair pairs[4];
	struct frond_request request = {
		.gang = gang_key(gang), .min_member = below(5), .priority = (int32_t)below(9) - 4};
	uint32_t in_len = wishes_read(wishes[wish], in, 0, pairs, &request.annotations);
	int32_t code = abi->gang_put(c->engine, &request, pairs, in, in_len, c->text, CLUSTER_TEXT - 1, &c->len);
	c->text[c->len] = 0;
	bool fine = request.min_member > 0 && wish < 3 && depth == 0;
	if (!went(!gang_lives((int)gang) ? FROND_UNKNOWN : fine ? FROND_OK : FROND_BAD, code)) {
		TEST_ASSERT_NOT_EQUAL(0, c->len);
		return;
	}
	m.gang[gang].min_member = request.min_member;
	m.gang[gang].priority = request.priority;
}

/* May the model add this one to what is there and to those of the list before it? */
static bool may_keep(const struct frond_hold *list, uint32_t at)
{
	const struct frond_hold *hold = &list[at];
	int gang = (int)hold->gang.lo - 1;
	if (hold->gang.hi == 0 || hold->rank > FROND_RANK_MAX || hold->slot >= nodes || !m.node[hold->slot].present ||
	    hold->gpu_mask == 0 || hold->gpu_mask >> m.node[hold->slot].gpus != 0 || hold->reserved != 0 ||
	    hold->deadline_ms < 0 || hold->deadline_ms > FROND_DEADLINE_MAX)
		return false;
	if (hold_of(gang, hold->rank) != NULL || (kept_mask(hold->slot, NOBODY) & hold->gpu_mask) != 0)
		return false;
	for (uint32_t i = 0; i < at; i++)
		if ((list[i].gang.lo == hold->gang.lo && list[i].rank == hold->rank) ||
		    (list[i].slot == hold->slot && (list[i].gpu_mask & hold->gpu_mask) != 0))
			return false;
	return true;
}

static void hold_spoil(struct frond_hold *hold)
{
	switch (below(6)) {
	case 0:
		hold->gang = (struct frond_key){0, 0};
		break;
	case 1:
		hold->rank = FROND_RANK_MAX + 1 + below(2) * (FROND_NONE - FROND_RANK_MAX - 1);
		break;
	case 2:
		hold->slot = nodes + below(2);
		break;
	case 3:
		hold->gpu_mask = below(2) ? 0 : 1u << (16 + below(16));
		break;
	case 4:
		hold->reserved = 1;
		break;
	default:
		hold->deadline_ms = below(2) ? -1 : FROND_DEADLINE_MAX + 1;
	}
}

static void do_hold_put(void)
{
	struct frond_hold list[LIST];
	uint32_t count = percent(60) ? 1 : below(LIST + 1), first = 0;
	char text[32];
	for (uint32_t i = 0; i < count; i++) {
		uint32_t slot = below(nodes);
		list[i] = (struct frond_hold){.gang = gang_key(below(GANGS)),
					      .rank = below(RANKS),
					      .slot = slot,
					      .gpu_mask = percent(70) ? 1u << below(8) : below(256),
					      .deadline_ms = percent(50) ? 0 : now_ms + below(400)};
		list[i].gpu_mask &= percent(90) ? (1u << m.node[slot].gpus) - 1 : UINT32_MAX;
		if (percent(3))
			hold_spoil(&list[i]);
	}
	while (first < count && may_keep(list, first))
		first++;
	bool full_up = holds_there() + count > CLUSTER_HOLDS;
	int32_t code = abi->hold_put(c->engine, list, count, c->text, CLUSTER_TEXT - 1, &c->len);
	c->text[c->len] = 0;
	if (!went(depth > 0 ? FROND_BAD : full_up ? FROND_LIMIT : first < count ? FROND_BAD : FROND_OK, code)) {
		snprintf(text, sizeof text, "holds[%u].", (unsigned)first);
		if (depth == 0 && !full_up)
			TEST_ASSERT_EQUAL_STRING_LEN_MESSAGE(text, c->text, strlen(text), c->text);
		clashed += depth == 0;
		return;
	}
	for (uint32_t i = 0, at = 0; i < count; i++) {
		while (m.hold[at].gang != NOBODY)
			at++;
		m.hold[at] = (struct model_hold){(int)list[i].gang.lo - 1, list[i].rank, list[i].slot, list[i].gpu_mask,
						 list[i].deadline_ms};
	}
}

static void do_hold_take(void)
{
	uint32_t gang = below(GANGS), rank = below(RANKS), pod = below(PODS);
	const struct model_hold *any = &m.hold[below(CLUSTER_HOLDS)];
	for (uint32_t tries = 0; tries < 8 && any->gang == NOBODY; tries++)
		any = &m.hold[below(CLUSTER_HOLDS / 8)];
	if (any->gang != NOBODY) {
		gang = (uint32_t)any->gang;
		rank = any->rank;
	}
	for (uint32_t tries = 0; tries < 4 && m.pod[pod].hold != FREE; tries++)
		pod = below(PODS);
	struct model_hold *hold = hold_of((int)gang, rank);
	struct frond_key gang_id = gang_key(gang), pod_id = pod_key(pod);
	bool ready = false;
	if (hold != NULL) { /* as if it kept nothing */
		uint32_t slot = hold->slot, mask = hold->mask;
		hold->gang = NOBODY;
		ready = m.pod[pod].hold == FREE && m.node[slot].flags == 0 && (mask & ~free_mask(slot, NOBODY)) == 0 &&
			(uint32_t)__builtin_popcount(mask) <= free_count(slot, NOBODY);
		hold->gang = (int)gang;
	}
	int32_t code = abi->hold_take(c->engine, &gang_id, rank, &pod_id);
	if (!went(hold == NULL            ? FROND_UNKNOWN
		  : !ready                ? FROND_STALE
		  : pods_held() == ledger ? FROND_LIMIT
					  : FROND_OK,
		  code))
		return;
	hold->gang = NOBODY;
	model_enter(pod, RESERVED, hold->slot, (uint32_t)__builtin_popcount(hold->mask), hold->mask, (int)gang);
	m.pod[pod].rank = rank;
	m.gang[gang].deadline_ms = hold->deadline_ms;
	fetched++;
}

static void do_hold_drop(void)
{
	uint32_t gang = below(GANGS), rank = percent(40) ? FROND_NONE : below(RANKS), count = 99, expected = 0;
	struct frond_key key = gang_key(gang);
	if (!went(outside(FROND_OK), abi->hold_drop(c->engine, &key, rank, &count)))
		return;
	for (uint32_t i = 0; i < CLUSTER_HOLDS; i++)
		if (m.hold[i].gang == (int)gang && (rank == FROND_NONE || m.hold[i].rank == rank)) {
			m.hold[i].gang = NOBODY;
			expected++;
		}
	TEST_ASSERT_EQUAL_UINT32(expected, count);
}

static void do_what_if(void)
{
	if (depth == DEPTH)
		return;
	strcpy(dumps[depth], last);
	saved[depth++] = m;
	went(FROND_OK, abi->what_if(c->engine));
}

static void do_undo(void)
{
	if (!went(depth > 0 ? FROND_OK : FROND_UNKNOWN, abi->undo(c->engine)))
		return;
	m = saved[--depth];
	TEST_ASSERT_EQUAL_STRING(dumps[depth], dump(c));
	undone++;
}

/* Tuning says how to plan, not who holds what. */
static void do_config_put(void)
{
	static const char *const specs[] = {"{}", "{\"scoringPreset\":\"agents\"}",
					    "{\"topologyConstraints\":{\"maxNodesPerLeaf\":2}}",
					    "{\"topologyConstraints\":{\"maxNodesPerLeaf\":0}}"};
	uint32_t which = below(4);
	went(outside(which == 3 ? FROND_BAD : FROND_OK),
	     abi->config_put(c->engine, specs[which], (uint32_t)strlen(specs[which]), c->text, CLUSTER_TEXT - 1,
			     &c->len));
}

/* Calls that nobody may make: each is refused, with a sentence where there is room for one. */
static void do_bad(void)
{
	struct frond_node node = {.slot = 0, .gpus = 8, .topology = FROND_NONE, .name = {0, 3}};
	struct frond_pod pod = {.pod = {7, 7}, .rank = FROND_NONE};
	struct frond_member member = {.pod = {7, 7}, .gpus = 1, .pinned_slot = FROND_NONE};
	struct frond_request request = {.gang = {7, 7}, .members = 1, .min_member = 1, .only_slot = FROND_NONE};
	struct frond_place place = {.slot = nodes, .gpu_mask = 1};
	struct frond_topology topology = {.gpus = 2};
	uint16_t position[NODES];
	uint32_t id = 77, kind = below(14);
	int32_t code = FROND_OK;
	c->len = 1;
	switch (kind) {
	case 0:
		node.slot = nodes + below(3);
		break;
	case 1:
		node.gpus = 17 + below(1000);
		break;
	case 2:
		node.unhealthy_mask = 0x100u << below(20);
		break;
	case 3:
		node.flags = 8u << below(28);
		break;
	case 4:
		node.name.len = below(2) ? 0 : 4 + below(1000);
		break;
	case 5:
		node.topology = 200 + below(1000);
		break;
	case 6:
		pod.pod = (struct frond_key){0, 0};
		code = abi->pod_put(c->engine, &pod, "", 0, c->text, CLUSTER_TEXT - 1, &c->len);
		break;
	case 7:
		pod.name.len = 1 + below(UINT32_MAX);
		code = abi->pod_put(c->engine, &pod, "", 0, c->text, CLUSTER_TEXT - 1, &c->len);
		break;
	case 8:
		request.age_ms = -1 - (int64_t)below(1000);
		code = abi->plan(c->engine, &request, &member, NULL, "", 0, NULL, 0, &c->plan, c->places, c->text,
				 CLUSTER_TEXT - 1, &c->len);
		break;
	case 9:
		request.members = 2;
		code = abi->order(c->engine, &request, &member, NULL, "", 0, NULL, 0, NULL, NULL, NULL, &c->plan,
				  position, c->text, CLUSTER_TEXT - 1, &c->len);
		break;
	case 10:
		code = abi->reserve(c->engine, &request, &member, &place);
		break;
	case 11:
		request.deadline_ms = -1;
		code = abi->reserve(c->engine, &request, &member, &place);
		break;
	case 12:
		topology.link_gbps[0][1] = (uint16_t)(1 + below(1000)); /* one direction only */
		code = abi->topology_put(c->engine, &topology, &id, c->text, CLUSTER_TEXT - 1, &c->len);
		break;
	default:
		topology.gpus = 17 + below(1000);
		code = abi->topology_put(c->engine, &topology, &id, c->text, CLUSTER_TEXT - 1, &c->len);
	}
	if (kind <= 5)
		code = abi->node_put(c->engine, &node, NULL, 0, "bad", 3, c->text, CLUSTER_TEXT - 1, &c->len);
	TEST_ASSERT_EQUAL_INT32(FROND_BAD, code);
	TEST_ASSERT_NOT_EQUAL(0, c->len);
	refused = true;
	bad++;
}

/* ---- compare ---------------------------------------------------------------------------------------------------- */

static void compare_gang(uint32_t gang)
{
	struct frond_key key = gang_key(gang);
	struct frond_gang out;
	int32_t code = abi->gang_get(c->engine, &key, &out);
	TEST_ASSERT_EQUAL_INT32(gang_lives((int)gang) ? FROND_OK : FROND_UNKNOWN, code);
	if (code != FROND_OK)
		return;
	uint32_t members = 0, arrived = 0, bound = 0;
	for (uint32_t pod = 0; pod < PODS; pod++) {
		const struct model_pod *mine = &m.pod[pod];
		if (mine->hold == FREE || mine->gang != (int)gang)
			continue;
		members++;
		arrived += mine->hold == RESERVED && mine->arrived;
		bound += mine->hold == BOUND;
	}
	TEST_ASSERT_EQUAL_UINT32(members, out.members);
	TEST_ASSERT_EQUAL_UINT32(arrived, out.arrived);
	TEST_ASSERT_EQUAL_UINT32(bound, out.bound);
	TEST_ASSERT_EQUAL_UINT32(m.gang[gang].min_member, out.min_member);
	TEST_ASSERT_EQUAL_INT32(m.gang[gang].priority, out.priority);
	TEST_ASSERT_EQUAL_INT64(m.gang[gang].deadline_ms, out.deadline_ms);
	if (members > bound)
		TEST_ASSERT_EQUAL_UINT32(arrived == 0 && bound == 0 ? FROND_GANG_PLANNED : FROND_GANG_RESERVED,
					 out.state);
	else if (bound >= out.min_member)
		TEST_ASSERT_EQUAL_UINT32(FROND_GANG_BOUND, out.state);
	else /* which of them depends on whether it was ever whole: test_gang.c */
		TEST_ASSERT_TRUE(out.state == FROND_GANG_GATHERING || out.state == FROND_GANG_DEGRADED);
}

static void compare_pod(uint32_t pod)
{
	const struct model_pod *mine = &m.pod[pod];
	struct frond_key key = pod_key(pod), zero = {0, 0};
	struct frond_held out;
	uint32_t mask = 0;
	int32_t code = abi->pod_get(c->engine, &key, &out);
	TEST_ASSERT_EQUAL_INT32(mine->hold == FREE ? FROND_UNKNOWN : FROND_OK, code);
	if (code != FROND_OK)
		return;
	for (uint32_t gpu = 0; mine->slot != FROND_NONE && gpu < FROND_GPUS_MAX; gpu++)
		mask |= m.node[mine->slot].owner[gpu] == (int)pod ? 1u << gpu : 0;
	struct frond_key gang = mine->gang == NOBODY ? zero : gang_key((uint32_t)mine->gang);
	TEST_ASSERT_EQUAL_UINT32(mine->slot, out.slot);
	TEST_ASSERT_EQUAL_UINT32(mine->gpus, out.gpus);
	TEST_ASSERT_EQUAL_UINT32(mine->by_count, out.by_count);
	TEST_ASSERT_EQUAL_HEX32(mask, out.gpu_mask);
	TEST_ASSERT_EQUAL_MEMORY(&gang, &out.gang, sizeof gang);
	TEST_ASSERT_EQUAL_UINT32(mine->hold == BOUND ? FROND_HELD_BOUND : FROND_HELD_RESERVED, out.state);
	TEST_ASSERT_EQUAL_UINT32(mine->rank, out.rank);
}

/* The list has every hold of the model, in order, and no other. */
static void compare_holds(void)
{
	struct frond_hold list[CLUSTER_HOLDS];
	uint32_t count = 0;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->hold_list(c->engine, NULL, list, CLUSTER_HOLDS, &count));
	TEST_ASSERT_EQUAL_UINT32(holds_there(), count);
	for (uint32_t i = 0; i < count; i++) {
		const struct model_hold *hold = hold_of((int)list[i].gang.lo - 1, list[i].rank);
		TEST_ASSERT_TRUE(hold != NULL && hold->slot == list[i].slot && hold->mask == list[i].gpu_mask &&
				 hold->deadline_ms == list[i].deadline_ms && list[i].gang.hi == 0x200);
		TEST_ASSERT_TRUE(i == 0 || list[i - 1].gang.lo < list[i].gang.lo ||
				 (list[i - 1].gang.lo == list[i].gang.lo && list[i - 1].rank < list[i].rank));
	}
}

static uint32_t references(const struct names *names)
{
	uint32_t refs = 0;
	for (uint32_t id = 0; id < names->fresh; id++)
		refs += names->names[id].refs;
	return refs;
}

/* Names that nodes hold by what they say of their place; each saying holds its own once. */
static uint32_t said_names(void)
{
	const struct standings *standings = &c->engine->tree.standings;
	uint32_t once = 0, said = 0;
	for (uint32_t id = 0; id < standings->fresh; id++)
		for (uint32_t level = 0; level < LEVELS && standings->all[id].nodes > 0; level++)
			if (standings->all[id].name_up[level] != 0) {
				once++;
				said += standings->all[id].nodes;
			}
	TEST_ASSERT_EQUAL_UINT32(once, references(&c->engine->domains));
	return said;
}

static void compare(void)
{
	const struct core *core = &c->engine->core;
	struct frond_stats out = stats(c), want = {.plans = plans,
						   .conflicts = m.conflicts,
						   .expired = expired,
						   .holds = holds_there(),
						   .holds_expired = holds_expired};
	uint32_t node_names = 0, pod_names = 0;
	check(c);
	compare_holds();
	for (uint32_t slot = 0; slot < nodes; slot++) {
		const struct model_node *node = &m.node[slot];
		TEST_ASSERT_EQUAL(node->present, core->nodes[slot].present);
		if (!node->present)
			continue;
		uint32_t kept = kept_mask(slot, NOBODY);
		TEST_ASSERT_EQUAL_HEX32(owned_mask(slot) | kept, core->nodes[slot].held);
		want.gpus_kept += (uint32_t)__builtin_popcount(kept & ~owned_mask(slot) & ((1u << node->gpus) - 1));
		TEST_ASSERT_EQUAL_UINT32(count_on(slot), core->nodes[slot].by_count);
		for (uint32_t gpu = 0; gpu < FROND_GPUS_MAX; gpu++) {
			uint32_t at = ledger_owner(&core->ledger, slot, gpu);
			int owner = at == FROND_NONE ? NOBODY : (int)pod_of(core->ledger.entries[at].pod);
			TEST_ASSERT_EQUAL_INT(node->owner[gpu], owner);
		}
		want.nodes++;
		want.gpus += node->gpus;
		want.gpus_unhealthy += (uint32_t)__builtin_popcount(node->unhealthy);
		want.gpus_by_count += count_on(slot);
		want.gpus_free += free_count(slot, NOBODY);
		node_names += 1 + node->labels;
	}
	for (uint32_t pod = 0; pod < PODS; pod++) {
		const struct model_pod *mine = &m.pod[pod];
		compare_pod(pod);
		want.pods += mine->hold != FREE;
		want.gpus_reserved += mine->hold == RESERVED ? mine->gpus - mine->by_count : 0;
		want.gpus_bound += mine->hold == BOUND ? mine->gpus - mine->by_count : 0;
		pod_names += mine->hold != FREE && mine->named;
	}
	for (uint32_t gang = 0; gang < GANGS; gang++) {
		want.gangs += gang_lives((int)gang);
		compare_gang(gang);
	}
	TEST_ASSERT_EQUAL_UINT64(out.plans, out.placed + out.waiting + out.refused);
	want.generation = out.generation;
	want.nodes_without_leaf = out.nodes_without_leaf; /* the tree's own, see test_tree.c */
	want.leaves = out.leaves;
	want.spines = out.spines;
	want.placed = out.placed; /* the planner's, see test_place*.c */
	want.waiting = out.waiting;
	want.refused = out.refused;
	want.relaxed = out.relaxed;
	want.bounded = out.bounded;
	want.steps = out.steps;
	TEST_ASSERT_EQUAL_MEMORY(&want, &out, sizeof want);
	TEST_ASSERT_EQUAL_UINT32(node_names, references(&c->engine->names) + said_names());
	if (depth == 0) /* inside a what-if no name is given up for good */
		TEST_ASSERT_EQUAL_UINT32(pod_names, references(&c->engine->labels));
}

/* A new engine of another size, with nothing in it. */
static void begin_episode(void)
{
	cluster_free(c);
	c = calloc(1, sizeof *c);
	TEST_ASSERT_NOT_NULL(c);
	nodes = 1 + below(NODES);
	ledger = 8 + below(LEDGER - 7);
	depth = 0;
	plans = expired = holds_expired = 0;
	memset(&m, 0, sizeof m);
	for (uint32_t slot = 0; slot < NODES; slot++)
		for (uint32_t gpu = 0; gpu < FROND_GPUS_MAX; gpu++)
			m.node[slot].owner[gpu] = NOBODY;
	for (uint32_t pod = 0; pod < PODS; pod++)
		m.pod[pod].gang = NOBODY;
	for (uint32_t gang = 0; gang < GANGS; gang++)
		m.gang[gang].min_member = 1;
	for (uint32_t i = 0; i < CLUSTER_HOLDS; i++)
		m.hold[i].gang = NOBODY;
	engine_make(c, nodes, ledger, "", "");
	strcpy(last, dump(c));
}

static void test_random_calls_mean_what_the_model_says(void)
{
	static void (*const calls[])(void) = {
		do_node_put,
		do_node_put,
		do_node_put,
		do_pod_put,
		do_pod_put,
		do_pod_put,
		do_plan_and_reserve,
		do_plan_and_reserve,
		do_plan_and_reserve,
		do_permit,
		do_permit,
		do_confirm,
		do_release,
		do_release,
		do_release_gang,
		do_tick,
		do_gang_put,
		do_what_if,
		do_undo,
		do_undo,
		do_config_put,
		do_hold_put,
		do_hold_put,
		do_hold_take,
		do_hold_take,
		do_hold_drop,
		do_bad,
	};
	const char *seed_text = getenv("FROND_SEED");
	dice = seed_text == NULL ? 20260101 : strtoull(seed_text, NULL, 0);
	printf("seed %llu, %llu calls\n", (unsigned long long)dice, (unsigned long long)calls_wanted);
	for (step = 0; step < calls_wanted; step++) {
		if (step % EPISODE == 0)
			begin_episode();
		refused = false;
		if (percent(2))
			do_node_remove();
		else
			calls[below(sizeof calls / sizeof *calls)]();
		compare();
		if (refused)
			TEST_ASSERT_EQUAL_STRING(last, dump(c));
		else
			strcpy(last, dump(c));
	}
	printf("%u booked, %u stale, %u refused by a full ledger, %u moved, %u bad, %u undone, %u too late, %u "
	       "learnt, %u wrong masks; holds: %u taken, %u taken over, %u replaced, %u lists refused\n",
	       (unsigned)booked, (unsigned)stale, (unsigned)full, (unsigned)moved, (unsigned)bad, (unsigned)undone,
	       (unsigned)late, (unsigned)learnt, (unsigned)wrong_masks, (unsigned)fetched, (unsigned)taken_over,
	       (unsigned)replaced, (unsigned)clashed);
	TEST_ASSERT_TRUE(calls_wanted < 30000 || (booked > 300 && stale > 50 && full > 10 && moved > 50 && bad > 500 &&
						  undone > 300 && late > 50 && learnt > 0 && wrong_masks > 50 &&
						  fetched > 50 && taken_over > 20 && replaced > 10 && clashed > 100));
}

int main(int argc, char **argv)
{
	const char *text = argc > 1 ? argv[1] : getenv("FROND_MODEL_CALLS");
	calls_wanted = text == NULL ? 30000 : strtoull(text, NULL, 10);
	UNITY_BEGIN();
	RUN_TEST(test_random_calls_mean_what_the_model_says);
	return UNITY_END();
}
