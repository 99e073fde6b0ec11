/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuset.h - which GPUs inside a node (reference 3.7). Nodes with equal topology share one table; it knows how good
 * every set of GPUs is and remembers the best one for every mask of free GPUs and size. It knows nothing of nodes,
 * owners or gangs: masks in, a mask out, the same every time.
 *
 * A table is not to be used by two threads at once, not even for reading: it fills itself on demand and has scratch
 * memory.
 */
#ifndef FROND_CORE_GPUSET_H
#define FROND_CORE_GPUSET_H

#include "core/ask.h"

struct topology {
	uint32_t gpus;
	uint8_t numa[FROND_GPUS_MAX];
	uint16_t link_gbps[FROND_GPUS_MAX][FROND_GPUS_MAX]; /* GB/s; symmetric, 0 with itself */
};

struct gpuset;

/* Memory that a table for that many GPUs needs, at an address that is a multiple of ARENA_ALIGN. */
uint64_t gpuset_bytes(uint32_t gpus);
/* Scratch that gpuset_build() and gpuset_ring() need for a table of up to FROND_GPUS_MAX; nothing stays in it between
 * calls. */
uint64_t gpuset_scratch(void);

/* Builds the table in the caller's memory, which must outlive it, and so must the scratch, which tables share; there is
 * nothing to free. */
struct gpuset *gpuset_build(void *memory, const struct topology *topology, void *scratch);

/* The same table at another place of memory, which may overlap the one where it was; that may be used for others then. */
struct gpuset *gpuset_move(struct gpuset *table, void *memory);

/* Built from an equal topology. */
bool gpuset_same(const struct gpuset *table, const struct topology *topology);

/* The best set of `count` of the free GPUs; 0: none is allowed, or count is 0. `held`: GPUs that somebody holds, for
 * the load of islands. A node with fewer GPUs than the topology passes masks of those that it has; but islands are the
 * topology's, so where GPUs that it lacks join them the node needs a table of its own. */
uint32_t gpuset_choose(struct gpuset *table, const struct gpu_wish *wish, uint32_t free, uint32_t held, uint32_t count);

/* Sets that gpuset_choose() compares for its last answer if the table of a large node remembers nothing: the same number
 * whenever the same is asked. */
uint32_t gpuset_compared(const struct gpuset *table);

/* The largest GB/s such that the set has a ring (two GPUs: a link) of hops that are no slower; fewer than two GPUs: 0. */
uint32_t gpuset_bottleneck(const struct gpuset *table, uint32_t set);

/* GB/s over all pairs of the set. */
uint64_t gpuset_sum(const struct gpuset *table, uint32_t set);

uint32_t gpuset_gpus(const struct gpuset *table);

/* All pairs have the same bandwidth. */
bool gpuset_uniform(const struct gpuset *table);

/* The set in ring order: best bottleneck, largest sum of hops, from its lowest index, lexicographically smallest. A set
 * with GPUs that the topology does not have: ascending. Rings that were asked for are remembered. Returns how many GPUs
 * there are. */
uint32_t gpuset_ring(struct gpuset *table, uint32_t set, uint8_t order[FROND_GPUS_MAX]);
/* The same as frond_place.ring holds it: four bits each, the first in the lowest. */
uint64_t gpuset_ring_packed(struct gpuset *table, uint32_t set);

#endif
