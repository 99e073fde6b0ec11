/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node.h - a node as numbers. What it has, what is wrong with it today, and how much of it is held.
 * held, kept, by_count and first are written by the ledger only.
 */
#ifndef FROND_CORE_NODE_H
#define FROND_CORE_NODE_H

#include "core/base.h"

#define NODE_GPUS_BITS 5u
#define NODE_GPUS_MASK ((1u << NODE_GPUS_BITS) - 1)
#define NODE_FLAGS     ((uint32_t)FROND_NODE_CORDONED | FROND_NODE_DOWN) /* what closes a node */

__extension__ struct node {
	uint8_t free; /* node_count_free(); node_settle() after every change */
	bool present : 1;
	uint8_t flags : 2;         /* NODE_FLAGS of enum frond_node_flag */
	bool replicas : 1;         /* FROND_NODE_REPLICAS; told by problems(), decides nothing */
	bool unavailable : 1;      /* FROND_NODE_UNAVAILABLE; some flag is set, too */
	bool kept : 1;             /* a hold lies on it */
	uint16_t unhealthy;        /* mask */
	uint16_t unavailable_gpus; /* mask: of the unhealthy ones, no capacity for the rule */
	uint16_t held;             /* mask of GPUs with an owner, or kept by a hold */
	uint32_t by_count : 24;    /* GPUs held by pods whose devices are unknown */
	uint32_t topology : 8;
	uint32_t uplink_gbps : 20; /* 0: unlimited */
	uint32_t gpus : NODE_GPUS_BITS;
	uint32_t model : 6; /* of its GPUs; nodes whose models differ have different ones */
	uint32_t first;     /* ledger entry on this node, linked; FROND_NONE: none */
};

_Static_assert(sizeof(struct node) == 20 && FROND_TOPOLOGIES - 1 <= UINT8_MAX && NODE_FLAGS < 1u << 2 &&
		       FROND_BY_COUNT_MAX < 1u << 24 && FROND_UPLINK_MAX < 1u << 20 &&
		       FROND_GPUS_MAX <= NODE_GPUS_MASK && FROND_MODELS <= 1u << 6,
	       "one for each node");

/* GPUs that are capacity for the rule (reference 3.3), whoever holds them. */
static inline uint32_t node_capacity_mask(const struct node *node)
{
	return node->unavailable ? 0 : bits_first(node->gpus) & ~(uint32_t)node->unavailable_gpus;
}

/* Some of its GPUs are not. */
static inline bool node_lacks(const struct node *node)
{
	return node->unavailable || node->unavailable_gpus != 0;
}

/* GPUs that could be handed out by device today, whoever else sits on the node by count. */
static inline uint32_t node_free_mask(const struct node *node)
{
	return bits_first(node->gpus) & ~(uint32_t)node->held & ~(uint32_t)node->unhealthy;
}

/* How many may be handed out: pods held by count take some of the free devices, nobody knows which. */
static inline uint32_t node_count_free(const struct node *node)
{
	uint32_t free = bits_count(node_free_mask(node));
	return free > node->by_count ? free - node->by_count : 0;
}

/* GPUs held by count come onto the node, or leave it. */
static inline void node_count(struct node *node, uint32_t gpus, bool onto)
{
	uint32_t by_count = onto ? node->by_count + gpus : node->by_count - gpus;
	assert(by_count <= FROND_BY_COUNT_MAX);
	node->by_count = by_count & FROND_BY_COUNT_MAX;
}

static inline void node_settle(struct node *node)
{
	node->free = (uint8_t)node_count_free(node);
}

static inline uint32_t node_free_count(const struct node *node)
{
	return node->free;
}

/* Of the GPUs that it has: pods may still hold some that a smaller node no longer has. */
static inline uint32_t node_used_count(const struct node *node)
{
	return min_u32(node->gpus, bits_count(node->held & bits_first(node->gpus)) + node->by_count);
}

static inline bool node_open(const struct node *node)
{
	return node->present && node->flags == 0;
}

/* Its uplink is not under a floor; 0: no floor. */
static inline bool node_fast(const struct node *node, uint32_t floor_gbps)
{
	return node->uplink_gbps == 0 || node->uplink_gbps >= floor_gbps;
}

/* Nobody has a GPU of it, and none is kept. */
static inline bool node_whole(const struct node *node)
{
	return node->held == 0 && node->by_count == 0;
}

#endif
