/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric.h - the ordered tree of cores, spines, leaves, NVLink domains and nodes, and what is free in each part of it.
 * The tree is immutable per generation: engine/tree builds it anew when a name, a label or the set of nodes changes. Ids
 * are positions in fabric order, so comparing ids is comparing places. The counts change with every event, along the
 * node's path to the root only.
 */
#ifndef FROND_CORE_FABRIC_H
#define FROND_CORE_FABRIC_H

#include "core/node.h"
#include "core/undo.h"

struct leaf_sum {
	uint16_t at_least[FROND_GPUS_MAX + 1]; /* open nodes with so many free GPUs or more; [0]: open nodes */
	uint16_t odd;                          /* nodes with an unhealthy GPU, or of another kind than the leaf's */
	uint32_t free, used, total;            /* GPUs, of closed nodes too */
};

struct spine_sum {
	uint32_t at_least[FROND_GPUS_MAX + 1];
	/* nodes that are closed, unhealthy or in use; 0: all spines of this shape are alike today */
	uint32_t touched : 18;
	/* first spine that has the same leaves, nodes, NVLink domains, GPUs, models and speeds; its own id: none before it */
	uint32_t shape : 14;
	/* nodes that node_lacks(); 0: all spines of this shape have the same capacity for the rule */
	uint32_t lacking;
};

/* Bits of leaf_model beside the model. */
enum leaf_nodes_differ {
	LEAF_MODELS = 64, /* they are of several models; the model is one of them */
	LEAF_SPLIT = 128, /* they are not all in one NVLink domain, or all in none */
};
_Static_assert(FROND_MODELS <= LEAF_MODELS, "a model and two bits");

#define LEAF_DOMAINS 8191u /* NVLink domains of a leaf that are told apart; with more the leaf counts as one */

/* Leaves in a row, whatever spines they are under: a search passes over all of them by one look, or over those that are
 * under its spine, of which the same is true. */
struct block_sum {
	uint16_t least[FROND_GPUS_MAX], most[FROND_GPUS_MAX]; /* of their at_least[1 …] */
	uint32_t free_least, free_most;                       /* of their free GPUs */
	uint32_t kind;  /* leaf_kind of each, and all have as many GPUs; FROND_NONE: they differ */
	uint32_t total; /* GPUs of each, if so */
};

struct fabric {
	struct undo *undo;
	uint32_t node_count;    /* entries in order */
	uint32_t leaf_count;    /* leaves 0 … leaf_count - 1, grouped by spine */
	uint32_t spine_count;   /* spines in fabric order */
	uint32_t domain_count;  /* NVLink domains, each inside a leaf */
	uint32_t *order;        /* position → slot; nodes of a leaf are contiguous, nodes without a leaf come last */
	uint32_t *position;     /* slot → position; FROND_NONE: not in the fabric */
	uint32_t *leaf_of;      /* position → leaf; FROND_NONE: none */
	uint32_t *domain_of;    /* position → NVLink domain; FROND_NONE: none; numbered in fabric order */
	uint32_t *leaf_start;   /* leaf → first position; [leaf_count] → first node without a leaf */
	uint32_t *leaf_spine;   /* leaf → spine */
	uint32_t *leaf_uplink;  /* gigabit/s; 0: unlimited */
	uint16_t *leaf_kind;    /* node_kind() of all its nodes; KIND_NONE: they differ, or there are none */
	uint16_t *leaf_lacking; /* nodes that node_lacks() */
	uint8_t *leaf_model;    /* of all its nodes, or enum leaf_nodes_differ */
	uint32_t *leaf_slowest; /* smallest uplink of its nodes, gigabit/s; UINT32_MAX: all unlimited */
	uint32_t *spine_start;  /* spine → first leaf; [spine_count] = leaf_count */
	uint32_t *spine_core;   /* spine → core; spines of two cores are not adjacent */
	struct leaf_sum *leaf;
	struct spine_sum *spine;
	struct block_sum *block;
	uint32_t block_most;  /* blocks that there is room for */
	uint32_t block_shift; /* a block is 2^so many leaves; the last one may be shorter */
	struct {
		uint32_t counts; /* at_least[0 … counts - 1] of its leaf counted it */
		uint32_t free;   /* GPUs of that leaf */
	} out;                   /* the node that was taken out, until it is put in */
	uint32_t gpus_most;      /* of a node in a leaf */
	uint32_t lacking;        /* nodes that node_lacks(), with or without a leaf */
	bool split;              /* some leaf is LEAF_SPLIT */
	bool unlike;             /* leaf_model is not the same of all leaves */
	bool stale;              /* a node's GPUs, model, links or speed have changed: shapes are to be compared anew */
};

/* A labelled leaf has a node; a fabric file may list leaves that have none: they keep their place in the order, because
 * two leaves with one between them are not adjacent. A leaf of a large cluster has 16 to 64 nodes, and a spine several
 * leaves; small ones may be of any shape. */
#define FABRIC_LEAVES(nodes) ((nodes) / 8ull + 4096ull)
#define FABRIC_SPINES(nodes) ((nodes) / 32ull + 1024ull)
_Static_assert(FABRIC_SPINES(FROND_NODES_MAX) <= 1u << 14 && FROND_NODES_MAX < 1u << 18, "spine_sum has room");

/* A delta may have to look at each leaf of a block: there are 32 of them where the blocks suffice, and never more than 128. */
#define FABRIC_BLOCK_SHIFT      5u
#define FABRIC_BLOCK_SHIFT_MOST 7u
#define FABRIC_BLOCKS(nodes)    ((FABRIC_LEAVES(nodes) >> FABRIC_BLOCK_SHIFT_MOST) + 1)

void fabric_layout(struct fabric *fabric, struct arena *arena, struct undo *undo, uint32_t nodes);

/* After the tree has been built, or when stale: counts, kinds and shapes from scratch. */
void fabric_settle(struct fabric *fabric, const struct node *nodes);

/* A node is about to change (out), and has changed (in): the counts on its path. */
void fabric_take_out(struct fabric *fabric, uint32_t slot, const struct node *node);
void fabric_put_in(struct fabric *fabric, uint32_t slot, const struct node *node);

#define KIND_NONE UINT16_MAX
_Static_assert(((FROND_TOPOLOGIES - 1) << 8 | FROND_GPUS_MAX) < KIND_NONE, "every kind has a number");

static inline uint32_t node_kind(const struct node *node)
{
	return (uint32_t)node->topology << 8 | node->gpus;
}

static inline uint32_t leaf_nodes(const struct fabric *fabric, uint32_t leaf)
{
	return fabric->leaf_start[leaf + 1] - fabric->leaf_start[leaf];
}

/* The last leaf of its block, and one more. */
static inline uint32_t block_end(const struct fabric *fabric, uint32_t leaf)
{
	return min_u32(((leaf >> fabric->block_shift) + 1) << fabric->block_shift, fabric->leaf_count);
}

/* Is the spine next to the one before it? */
static inline bool spine_adjacent(const struct fabric *fabric, uint32_t spine)
{
	return spine > 0 && fabric->spine_core[spine] == fabric->spine_core[spine - 1];
}

#endif
