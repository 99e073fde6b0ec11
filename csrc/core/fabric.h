/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric.h - the ordered tree of spines, leaves and nodes. Immutable per generation: text/tree builds it anew when a
 * name, a label or the set of nodes changes. Ids are positions in fabric order, so comparing ids is comparing places.
 */
#ifndef FROND_CORE_FABRIC_H
#define FROND_CORE_FABRIC_H

#include "core/base.h"

struct fabric {
	uint32_t node_count;   /* entries in order */
	uint32_t leaf_count;   /* leaves 0 … leaf_count - 1, grouped by spine */
	uint32_t spine_count;  /* spines in fabric order */
	uint32_t *order;       /* position → slot; nodes of a leaf are contiguous, nodes without a leaf come last */
	uint32_t *position;    /* slot → position; FROND_NONE: not in the fabric */
	uint32_t *leaf_of;     /* position → leaf; FROND_NONE: none */
	uint32_t *leaf_start;  /* leaf → first position; [leaf_count] → first node without a leaf */
	uint32_t *leaf_spine;  /* leaf → spine */
	uint32_t *leaf_uplink; /* gigabit/s; 0: unlimited */
	uint32_t *spine_start; /* spine → first leaf; [spine_count] = leaf_count */
};

/* A labelled leaf has a node; a fabric file may list as many leaves again that have none: they keep their place in the
 * order, because two leaves with one between them are not adjacent. */
#define FABRIC_LEAVES(nodes) (2ull * (nodes))

void fabric_layout(struct fabric *fabric, struct arena *arena, uint32_t nodes);

static inline uint32_t leaf_nodes(const struct fabric *fabric, uint32_t leaf)
{
	return fabric->leaf_start[leaf + 1] - fabric->leaf_start[leaf];
}

#endif
