/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpus.h - part of oracle.c: which GPUs of a node a member gets (reference 3.7), by trying all sets and all rings.
 *
 *  G1  Several wishes of a Preferred claim: sets with the right locality first, among them those with the bandwidth,
 *      then the policy's own order.
 *  G2  Islands are those of the node's GPUs, whoever holds them and however healthy they are.
 *  G3  A node without a model has no links and two NUMA nodes of equal size (the first has one more of an odd number).
 */
#ifndef FROND_TEST_GPUS_H
#define FROND_TEST_GPUS_H

#include "instance.h"

struct ring {
	bool known;
	int bottleneck, hops; /* of the best ring; hops: sum of bandwidths */
	int pairs;            /* sum of bandwidths over all pairs */
	int order[GPUS_MAX];
	int count;
};

/* A model's sets, each looked at when first asked for. */
struct machine {
	const struct model *model;
	struct ring rings[SETS];
};

struct ring_walk {
	const struct model *model;
	int order[GPUS_MAX];
	int count;
	unsigned left;
	struct ring *best;
};

/* Rings come in lexicographic order, so that the first of equal ones is the smallest. */
static void ring_try(struct ring_walk *walk, int at, int bottleneck, int hops)
{
	if (walk->left == 0) {
		int closing = walk->count > 2 ? walk->model->links[walk->order[at - 1]][walk->order[0]] : bottleneck;
		int least = closing < bottleneck ? closing : bottleneck;
		int sum = walk->count > 2 ? hops + closing : hops;
		struct ring *best = walk->best;
		if (best->known && (least < best->bottleneck || (least == best->bottleneck && sum <= best->hops)))
			return;
		best->known = true;
		best->bottleneck = least;
		best->hops = sum;
		memcpy(best->order, walk->order, sizeof best->order);
		return;
	}
	for (int gpu = 0; gpu < GPUS_MAX; gpu++) {
		if (!(walk->left & (1u << gpu)))
			continue;
		int link = walk->model->links[walk->order[at - 1]][gpu];
		walk->order[at] = gpu;
		walk->left &= ~(1u << gpu);
		ring_try(walk, at + 1, link < bottleneck ? link : bottleneck, hops + link);
		walk->left |= 1u << gpu;
	}
}

enum { NO_HOP = 1 << 20 };

static const struct ring *ring_of(struct machine *machine, unsigned set)
{
	struct ring *ring = &machine->rings[set];
	struct ring_walk walk = {.model = machine->model, .count = mask_count(set), .best = ring};

	if (ring->known)
		return ring;
	ring->count = walk.count;
	for (int a = 0; a < GPUS_MAX; a++)
		for (int b = a + 1; b < GPUS_MAX; b++)
			if ((set & (1u << a)) && (set & (1u << b)))
				ring->pairs += machine->model->links[a][b];
	if (walk.count == 0) {
		ring->known = true;
		return ring;
	}
	while (!(set & (1u << walk.order[0])))
		walk.order[0]++;
	walk.left = set & ~(1u << walk.order[0]);
	ring_try(&walk, 1, walk.count > 1 ? NO_HOP : 0, 0);
	return ring;
}

static int numa_count(const struct model *model, unsigned set)
{
	unsigned seen = 0;
	for (int gpu = 0; gpu < GPUS_MAX; gpu++)
		if (set & (1u << gpu))
			seen |= 1u << model->numa[gpu];
	return mask_count(seen);
}

/* All GPUs that this one reaches over links, itself included. */
static unsigned island_of(const struct model *model, unsigned all, int gpu)
{
	unsigned island = 1u << gpu;
	for (int round = 0; round < GPUS_MAX; round++)
		for (int a = 0; a < GPUS_MAX; a++)
			for (int b = 0; b < GPUS_MAX; b++)
				if ((island & (1u << a)) && (all & (1u << b)) && model->links[a][b] > 0)
					island |= 1u << b;
	return island;
}

static bool one_island(const struct model *model, unsigned all, unsigned set)
{
	int first = 0;
	while (!(set & (1u << first)))
		first++;
	return (set & ~island_of(model, all, first)) == 0;
}

static int island_load(const struct model *model, unsigned all, unsigned held, unsigned set)
{
	int load = 0;
	for (int gpu = 0; gpu < GPUS_MAX; gpu++)
		if (set & (1u << gpu))
			load += mask_count(island_of(model, all, gpu) & held);
	return load;
}

static bool locality_met(const struct claim *claim, const struct model *model, unsigned all, unsigned set)
{
	if (claim->locality == LOCALITY_SAME_SOCKET)
		return numa_count(model, set) == 1;
	return claim->locality != LOCALITY_NVLINK || one_island(model, all, set);
}

static bool bandwidth_met(const struct claim *claim, struct machine *machine, unsigned set)
{
	return mask_count(set) < 2 || ring_of(machine, set)->bottleneck >= claim->min_gbps;
}

static bool set_allowed(const struct claim *claim, struct machine *machine, unsigned all, unsigned set)
{
	if (claim->mode != MODE_REQUIRED)
		return true;
	if (claim->policy == POLICY_CONTIGUOUS && !one_island(machine->model, all, set))
		return false;
	return locality_met(claim, machine->model, all, set) && bandwidth_met(claim, machine, set);
}

enum { SET_KEY = 8 };

/* Higher is better, place by place. */
static void set_key(const struct claim *claim, struct machine *machine, unsigned all, unsigned free, unsigned held,
		    unsigned prefer, unsigned set, int *key)
{
	const struct model *model = machine->model;
	int at = 0;

	memset(key, 0, SET_KEY * sizeof *key);
	if (claim->mode == MODE_IGNORE)
		return;
	key[at++] = locality_met(claim, model, all, set);
	key[at++] = bandwidth_met(claim, machine, set);
	if (claim->policy == POLICY_SPREAD) {
		key[at++] = -ring_of(machine, set)->pairs;
		key[at++] = numa_count(model, set);
		key[at++] = -island_load(model, all, held, set);
		return;
	}
	if (claim->policy == POLICY_PREFER_IDS)
		key[at++] = mask_count(set & prefer);
	key[at++] = ring_of(machine, set)->bottleneck;
	key[at++] = ring_of(machine, set)->pairs;
	key[at++] = -numa_count(model, set);
	key[at++] = ring_of(machine, free & ~set)->bottleneck;
	key[at++] = ring_of(machine, free & ~set)->pairs;
}

/* Sets of one size: is a before b, their indices compared from the lowest on? */
static bool set_before(unsigned a, unsigned b)
{
	unsigned differ = a ^ b;
	return (a & differ & -differ) != 0;
}

/* The set of this many GPUs that a member gets, 0 when none is allowed. held: by whomever, for the load of islands. */
static unsigned set_choose(const struct claim *claim, struct machine *machine, unsigned all, unsigned free,
			   unsigned held, unsigned prefer, int count)
{
	unsigned best = 0;
	int best_key[SET_KEY] = {0}, key[SET_KEY];

	for (unsigned set = 1; set < SETS; set++) {
		if ((set & ~free) || mask_count(set) != count || !set_allowed(claim, machine, all, set))
			continue;
		set_key(claim, machine, all, free, held, prefer, set, key);
		int at = 0;
		while (at < SET_KEY - 1 && key[at] == best_key[at])
			at++;
		if (best == 0 || key[at] > best_key[at] || (key[at] == best_key[at] && set_before(set, best))) {
			best = set;
			memcpy(best_key, key, sizeof key);
		}
	}
	return best;
}

#endif
