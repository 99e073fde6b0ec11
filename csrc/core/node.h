/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node.h - a node as numbers. What it has, what is wrong with it today, and how much of it is held.
 * The held fields are written by the ledger only.
 */
#ifndef FROND_CORE_NODE_H
#define FROND_CORE_NODE_H

#include "core/base.h"

struct node {
	bool present;
	uint32_t gpus;
	uint32_t unhealthy;   /* mask */
	uint32_t flags;       /* enum frond_node_flag */
	uint32_t uplink_gbps; /* 0: unlimited */
	uint32_t held;        /* mask of GPUs with an owner */
	uint32_t by_count;    /* GPUs held by pods whose devices are unknown */
};

/* GPUs that could be handed out by device today, whoever else sits on the node by count. */
static inline uint32_t node_free_mask(const struct node *node)
{
	return bits_first(node->gpus) & ~node->held & ~node->unhealthy;
}

/* How many may be handed out: pods held by count take some of the free devices, nobody knows which. */
static inline uint32_t node_free_count(const struct node *node)
{
	uint32_t free = bits_count(node_free_mask(node));
	return free > node->by_count ? free - node->by_count : 0;
}

static inline bool node_open(const struct node *node)
{
	return node->present && node->flags == 0;
}

#endif
