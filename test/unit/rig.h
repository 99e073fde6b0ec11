/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rig.h - a cluster on the core's own interface, for tests of what the engine's table does not show: recover, victims,
 * defrag. A test has one rig at a time; rig_make() begins the next one.
 *
 * Slots, positions and fabric order are the same here: node 0 is the first of the first leaf.
 */
#ifndef FROND_TEST_RIG_H
#define FROND_TEST_RIG_H

#include "core/check.h"
#include "core/core.h"
#include "dice.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unity.h>

enum { RIG_TEXT = 1 << 16, RIG_DUMPED = 512, RIG_RULED = 32 };

struct rig {
	struct core core;
	uint32_t pods; /* made so far */
	struct ask defaults;
	char before[RIG_TEXT], after[RIG_TEXT];
};

static struct rig *rig;
static void *rig_memory; /* of the rig in hand; kept for the next one when it is large enough */
static uint64_t rig_bytes;
static uint64_t random_seed; /* of the random case in hand; 0: none */

static const struct terms PLAIN = {.gpu = GPU_WISH_DEFAULT};

/* The scratch of what is tested, laid out behind the core; each test has its own. */
static void rig_extend(struct arena *arena, const struct frond_limits *limits);

/* ---- life -------------------------------------------------------------------------------------------------------- */

void setUp(void)
{
	random_seed = 0;
}

void tearDown(void)
{
	if (random_seed != 0)
		printf("failed with seed %llu\n", (unsigned long long)random_seed);
}

static inline int rig_end(void)
{
	free(rig_memory);
	free(rig);
	return UNITY_END();
}

static inline void rig_memory_make(const struct frond_limits *limits)
{
	struct arena arena = {.base = NULL};
	if (rig == NULL)
		rig = malloc(sizeof *rig);
	TEST_ASSERT_NOT_NULL(rig);
	memset(rig, 0, sizeof *rig);
	core_layout(&rig->core, &arena, limits, 0);
	rig_extend(&arena, limits);
	if (arena.used > rig_bytes) {
		free(rig_memory);
		rig_bytes = (arena.used + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
		rig_memory = aligned_alloc(ARENA_ALIGN, rig_bytes);
		TEST_ASSERT_NOT_NULL(rig_memory);
	}
	memset(rig_memory, 0, arena.used);
	arena = (struct arena){.base = rig_memory};
	core_layout(&rig->core, &arena, limits, 0);
	rig_extend(&arena, limits);
}

/* All nodes have the same GPUs, on two NUMA nodes, every pair of them linked alike. */
static inline void rig_make(uint32_t spines, uint32_t leaves, uint32_t nodes, uint32_t gpus)
{
	struct frond_limits limits = {.nodes = spines * leaves * nodes,
				      .pods = spines * leaves * nodes * 8 + 8,
				      .table_bytes = (1u << 16) + (uint32_t)gpuset_bytes(gpus)};
	rig_memory_make(&limits);
	rig->defaults = (struct ask){.only_slot = FROND_NONE, .domain_nvlink = FROND_NONE, .weight = WEIGHTS_TRAINING};

	struct topology topology = {.gpus = gpus};
	for (uint32_t i = 0; i < gpus; i++) {
		topology.numa[i] = i >= gpus / 2;
		for (uint32_t j = 0; j < gpus; j++)
			topology.link_gbps[i][j] = i == j ? 0 : 450;
	}
	uint32_t id;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, core_topology(&rig->core, &topology, &id));
	struct fabric *fabric = &rig->core.fabric;
	fabric->spine_count = spines;
	fabric->leaf_count = spines * leaves;
	for (uint32_t slot = 0; slot < limits.nodes; slot++) {
		core_node_put(&rig->core, slot, &(struct node){.gpus = gpus & NODE_GPUS_MASK, .topology = (uint8_t)id});
		fabric->order[slot] = fabric->position[slot] = slot;
		fabric->leaf_of[slot] = slot / nodes;
		fabric->domain_of[slot] = FROND_NONE;
	}
	fabric->node_count = limits.nodes;
	for (uint32_t leaf = 0; leaf < fabric->leaf_count; leaf++) {
		fabric->leaf_start[leaf + 1] = (leaf + 1) * nodes;
		fabric->leaf_spine[leaf] = leaf / leaves;
		fabric->leaf_uplink[leaf] = 0;
	}
	for (uint32_t spine = 0; spine < spines; spine++) {
		fabric->spine_start[spine + 1] = (spine + 1) * leaves;
		fabric->spine_core[spine] = 0;
	}
	fabric_settle(fabric, rig->core.nodes);
}

/* Slow links and NVLink domains here and there. */
static inline void rig_shuffle_fabric(void)
{
	struct fabric *fabric = &rig->core.fabric;
	for (uint32_t leaf = 0; leaf < fabric->leaf_count; leaf++) {
		fabric->leaf_uplink[leaf] = percent(25) ? 100 : 0;
		uint32_t first = fabric->leaf_start[leaf], even = FROND_NONE, odd = FROND_NONE;
		for (uint32_t at = first; at < fabric->leaf_start[leaf + 1]; at++) { /* two domains, interleaved */
			uint32_t *domain = (at - first) % 2 == 0 ? &even : &odd;
			if (*domain == FROND_NONE && percent(70))
				*domain = fabric->domain_count++;
			fabric->domain_of[at] = *domain;
		}
	}
	fabric_settle(fabric, rig->core.nodes);
}

/* ---- nodes, pods, gangs ------------------------------------------------------------------------------------------- */

static inline void node_flags(uint32_t slot, uint32_t flags, uint32_t unhealthy)
{
	struct node node = rig->core.nodes[slot];
	node.flags = flags & NODE_FLAGS;
	node.unhealthy = (uint16_t)unhealthy;
	core_node_put(&rig->core, slot, &node);
}

static inline struct frond_key gang_key(uint32_t gang)
{
	return (struct frond_key){7, gang};
}

static inline uint32_t gang_id(uint32_t gang)
{
	return gangs_find(&rig->core.gangs, gang_key(gang));
}

/* A bound pod with the lowest free GPUs of a node; gang 0: in none. */
static inline struct frond_key bind(uint32_t gang, uint32_t rank, uint32_t slot, uint32_t gpus)
{
	struct core_pod pod = {.pod = {1, ++rig->pods},
			       .gang = gang == 0 ? (struct frond_key){0, 0} : gang_key(gang),
			       .slot = slot,
			       .mask = bits_lowest(node_free_mask(&rig->core.nodes[slot]), gpus),
			       .label = FROND_NONE,
			       .rank = rank};
	bool joined;
	uint32_t dropped;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, core_pod_put(&rig->core, &pod, &joined, &dropped));
	return pod.pod;
}

static inline void promise(uint32_t gang, uint32_t min_member, int32_t priority, const struct terms *terms)
{
	gangs_promise(&rig->core.gangs, gang_id(gang), min_member, priority, 0);
	gangs_terms(&rig->core.gangs, gang_id(gang), terms);
}

/* A gang that is not there yet; fills members[count]. */
static inline struct ask ask_for(struct frond_member *members, uint32_t count, uint32_t gpus, enum mode mode)
{
	struct ask ask = rig->defaults;
	for (uint32_t i = 0; i < count; i++)
		members[i] =
			(struct frond_member){.pod = {9, i + 1}, .rank = i, .gpus = gpus, .pinned_slot = FROND_NONE};
	ask.members = members;
	ask.count = count;
	ask.mode = mode;
	ask.gpu = (struct gpu_wish)GPU_WISH_DEFAULT;
	return ask;
}

/* ---- state -------------------------------------------------------------------------------------------------------- */

static inline void rig_look(char *text)
{
	char broken[FROND_TEXT_MAX] = "";
	struct out out = {.text = broken, .cap = sizeof broken};
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, core_check(&rig->core, &out), broken);
	out = (struct out){.text = text, .cap = RIG_TEXT};
	core_dump(&rig->core, &out);
	TEST_ASSERT_EQUAL_UINT32(0, rig->core.undo.depth);
	TEST_ASSERT_EQUAL_UINT64(0, rig->core.undo.used);
}

/* Around a call that must leave the state as it was. The dump of a large cluster is slow: no picture of those. */
static inline void rig_remember(void)
{
	if (rig->core.node_cap < RIG_DUMPED)
		rig_look(rig->before);
}

static inline void rig_unchanged(void)
{
	if (rig->core.node_cap >= RIG_DUMPED)
		return;
	rig_look(rig->after);
	TEST_ASSERT_EQUAL_STRING(rig->before, rig->after);
}

/* ---- against brute force ------------------------------------------------------------------------------------------- */

/* The rule of reference 3.3, the slow way, and no slow leaf link crossed. */
static inline bool rule_met(const struct answer *rule, uint32_t gbps, const uint32_t *slot, uint32_t count)
{
	const struct fabric *fabric = &rig->core.fabric;
	bool used[RIG_RULED] = {false}, leaf_used[RIG_RULED] = {false};
	uint32_t nodes = 0, leaves = 0, spines = 0, runs = 0, first = RIG_RULED, last = 0;
	TEST_ASSERT_LESS_OR_EQUAL_UINT32(RIG_RULED, fabric->node_count);
	for (uint32_t i = 0; i < count; i++)
		used[slot[i]] = leaf_used[fabric->leaf_of[slot[i]]] = true;
	for (uint32_t i = 0; i < RIG_RULED; i++)
		nodes += used[i];
	for (uint32_t spine = 0; spine < fabric->spine_count; spine++) {
		bool here = false;
		for (uint32_t leaf = fabric->spine_start[spine]; leaf < fabric->spine_start[spine + 1]; leaf++) {
			leaves += leaf_used[leaf];
			here |= leaf_used[leaf];
			runs += leaf_used[leaf] && (leaf == fabric->spine_start[spine] || !leaf_used[leaf - 1]);
		}
		spines += here;
		first = here && first == RIG_RULED ? spine : first;
		last = here ? spine : last;
	}
	bool one_domain = fabric->domain_of[slot[0]] != FROND_NONE, slow = false;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t uplink = fabric->leaf_uplink[fabric->leaf_of[slot[i]]];
		one_domain &= fabric->domain_of[slot[i]] == fabric->domain_of[slot[0]];
		slow |= uplink != 0 && uplink < gbps;
	}
	if (slow && leaves > 1)
		return false;
	switch (rule->plan.rule) {
	case FROND_RULE_NONE:
		return true;
	case FROND_RULE_NVLINK_DOMAIN:
		return one_domain;
	case FROND_RULE_SINGLE_NODE:
		return nodes == 1;
	case FROND_RULE_SAME_LEAF:
	case FROND_RULE_COMPLETE_LEAF:
		return leaves == 1;
	case FROND_RULE_ADJACENT_LEAVES:
		return spines == 1 && runs == 1 && leaves <= rule->need_leaves;
	default:
		return spines <= rule->need_spines && last - first + 1 == spines && runs == spines;
	}
}

/* Seeds 1 … count; a failure prints its own. */
static inline void random_cases(uint64_t count, void (*one)(void))
{
	for (uint64_t seed = 1; seed <= count; seed++) {
		dice = seed;
		random_seed = seed;
		one();
	}
	random_seed = 0;
}

static inline long micros_since(const struct timespec *from)
{
	struct timespec to;
	clock_gettime(CLOCK_MONOTONIC, &to);
	return (long)((to.tv_sec - from->tv_sec) * 1000000 + (to.tv_nsec - from->tv_nsec) / 1000);
}

#endif
