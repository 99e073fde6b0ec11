/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topo.h - Lingjun's fabric as topo.csv has it, and how much of it is in use. A spine is a PSW; a leaf is a (PSW, ASW)
 * pair, because the same ASW name occurs under several PSWs. Fabric order: natural order of PSW, ASW, then host name.
 */
#ifndef FROND_DATA_TOPO_H
#define FROND_DATA_TOPO_H

#include <stdbool.h>
#include <stdint.h>

#define TOPO_NODES_MAX  4096u
#define TOPO_LEAVES_MAX 256u
#define TOPO_SPINES_MAX 16u
#define TOPO_GPUS       8u /* a host */

struct topo_node {
	char name[72], spine_name[16], leaf_name[16];
	uint32_t leaf;
	uint32_t by_name; /* the node that is here-th in order of names, whatever the fabric */
	bool used;
};

struct topo_leaf {
	uint32_t spine, first, nodes; /* first: its first node */
};

struct topo {
	uint32_t nodes, leaves, spines;
	struct topo_node node[TOPO_NODES_MAX]; /* in fabric order */
	struct topo_leaf leaf[TOPO_LEAVES_MAX];
};

void topo_read(struct topo *topo, const char *path);
/* The fabric file of reference 11; the caller frees it. */
char *topo_fabric(const struct topo *topo);

/* Empties the fabric, then fills it to `percent` of the nodes: whole nodes, half of the jobs single nodes anywhere, the
 * others gangs of 2 to 8 that start in some leaf and go on in the next ones. The same seed, the same state. */
void topo_fill(struct topo *topo, uint64_t seed, uint32_t percent);

#endif
