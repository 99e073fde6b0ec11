/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables.h - the link tables of all nodes: which there are, where they lie, and how many nodes have each. Owns their
 * memory. A table that no node has stays until its room or its id is needed; then such tables go, in turn, until there is
 * enough, and the others move together. Ids of tables that nodes have never change.
 */
#ifndef FROND_CORE_TABLES_H
#define FROND_CORE_TABLES_H

#include "core/gpuset.h"

struct tables {
	struct gpuset **sets; /* by id; NULL: none. [0]: of a node without GPUs, always there */
	uint32_t *nodes;      /* by id: that have it */
	uint8_t *memory;
	uint64_t cap, used; /* bytes; tables lie together at the begin */
	uint32_t next;      /* id at which the search for one to free begins: after the last one made */
	uint32_t freed;     /* tables so far; whoever remembers an id that no node has looks whether this has changed */
};

/* bytes 0: room for one kind of 16-GPU node and 127 kinds of 8-GPU nodes. */
void tables_layout(struct tables *tables, struct arena *arena, uint32_t bytes);

/* Bytes that a table for so many GPUs takes. */
uint64_t tables_bytes(uint32_t gpus);

/* The id of the table for these links, which is made if it is not there. FROND_LIMIT: the tables that nodes have leave no
 * room for it; then nothing was freed. scratch: of gpuset_scratch() bytes. */
int32_t tables_put(struct tables *tables, const struct topology *topology, void *scratch, uint32_t *id);

/* A node has the table from now on; has it no longer. */
void tables_hold(struct tables *tables, uint32_t id);
void tables_drop(struct tables *tables, uint32_t id);

#endif
