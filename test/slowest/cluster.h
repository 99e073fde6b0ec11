/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster.h - an engine with a cluster in it, made from the first numbers of an input, and a copy of its memory, to which it
 * can be put back at any time: nothing that a call remembers or breaks outlives it. Goes through the ABI only.
 */
#ifndef FROND_SLOWEST_CLUSTER_H
#define FROND_SLOWEST_CLUSTER_H

#include "frond.h"
#include "input.h"

#define TEXT_CAP (64u << 20) /* a dump of 100,000 nodes */

struct machine { /* a node, by slot */
	uint8_t kind, gpus;
	uint16_t sick;
	uint16_t used; /* mask; with USE_COUNT only its number counts */
	uint8_t flags;
	uint32_t uplink;
	uint32_t leaf, spine; /* FROND_NONE: none */
};

struct cluster {
	const struct frond_abi *abi;
	struct input input; /* its first numbers */
	frond_engine *engine;
	void *memory, *copy;
	uint64_t bytes;
	uint32_t nodes;
	struct machine *machines;
	uint32_t uneven, pairs, odd; /* link tables */
	bool dirty;                  /* is not as it was made */
	char *text;                  /* TEXT_CAP, the caller's */
	uint32_t len;
};

/* NULL: out of memory. An engine that refuses what is put into it ends the program: the input is within its limits. */
struct cluster *cluster_open(const struct frond_abi *abi, const struct input *input, char *text);
void cluster_close(struct cluster *cluster);
/* As it was made, with nothing remembered. */
void cluster_restore(struct cluster *cluster);

struct frond_key pod_key(uint32_t slot);
struct frond_key gang_key(uint32_t gang);
/* The running gang of a node. */
uint32_t gang_of(const struct cluster *cluster, uint32_t slot);
/* Puts a node again, with other flags. */
int32_t put_node(struct cluster *cluster, uint32_t slot, uint32_t flags, uint32_t uplink, uint32_t leaf);
int32_t put_pod(struct cluster *cluster, uint32_t slot);
/* A link table of 16 GPUs without any order. */
struct frond_topology links_uneven(struct dice *dice);

void must(const struct cluster *cluster, int32_t code, const char *what);

#endif
