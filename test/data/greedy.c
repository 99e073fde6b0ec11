/* SPDX-License-Identifier: Apache-2.0 */
#include "greedy.h"

#include <assert.h>

void greedy_first_by_name(const struct topo *topo, uint32_t need, uint32_t *nodes)
{
	uint32_t got = 0;
	for (uint32_t i = 0; i < topo->nodes && got < need; i++)
		if (!topo->node[topo->node[i].by_name].used)
			nodes[got++] = topo->node[i].by_name;
	assert(got == need);
}

void greedy_first_by_fabric(const struct topo *topo, uint32_t need, uint32_t *nodes)
{
	uint32_t got = 0;
	for (uint32_t i = 0; i < topo->nodes && got < need; i++)
		if (!topo->node[i].used)
			nodes[got++] = i;
	assert(got == need);
}

/* The domain with the least room that holds `need`, else the one with the most. */
static uint32_t best_fit(const uint32_t *room, uint32_t count, uint32_t need)
{
	uint32_t best = 0;
	for (uint32_t i = 1; i < count; i++) {
		bool fits = room[i] >= need, best_fits = room[best] >= need;
		if (fits != best_fits ? fits : fits ? room[i] < room[best] : room[i] > room[best])
			best = i;
	}
	assert(count > 0 && room[best] > 0);
	return best;
}

/* Takes `need` nodes from the leaves; room goes down with them. Returns how many nodes there are now. */
static uint32_t take_leaves(const struct topo *topo, uint32_t *room, uint32_t need, uint32_t *nodes, uint32_t got)
{
	while (need > 0) {
		uint32_t leaf = best_fit(room, topo->leaves, need);
		const struct topo_leaf *here = &topo->leaf[leaf];
		for (uint32_t i = here->first; i < here->first + here->nodes && need > 0; i++)
			if (!topo->node[i].used) {
				nodes[got++] = i;
				need--;
			}
		room[leaf] = 0;
	}
	return got;
}

void greedy_best_leaf(const struct topo *topo, uint32_t need, uint32_t *nodes)
{
	uint32_t room[TOPO_LEAVES_MAX] = {0};
	for (uint32_t i = 0; i < topo->nodes; i++)
		room[topo->node[i].leaf] += !topo->node[i].used;
	take_leaves(topo, room, need, nodes, 0);
}

void greedy_best_tree(const struct topo *topo, uint32_t need, uint32_t *nodes)
{
	uint32_t spine_room[TOPO_SPINES_MAX] = {0}, got = 0;
	for (uint32_t i = 0; i < topo->nodes; i++)
		spine_room[topo->leaf[topo->node[i].leaf].spine] += !topo->node[i].used;
	while (got < need) {
		uint32_t spine = best_fit(spine_room, topo->spines, need - got), room[TOPO_LEAVES_MAX] = {0};
		uint32_t share = need - got < spine_room[spine] ? need - got : spine_room[spine];
		for (uint32_t i = 0; i < topo->nodes; i++)
			if (topo->leaf[topo->node[i].leaf].spine == spine)
				room[topo->node[i].leaf] += !topo->node[i].used;
		got = take_leaves(topo, room, share, nodes, got);
		spine_room[spine] = 0;
	}
}
