/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabricload.h - what the parts of fabricfile_read() share while a file is being read. Not for others.
 * fabricfile.c reads the tree, fabricmodels.c the machines, fabricnodes.c what holds for nodes.
 */
#ifndef FROND_TEXT_FABRICLOAD_H
#define FROND_TEXT_FABRICLOAD_H

#include "text/doc.h"
#include "text/fabricfile.h"
#include "text/range.h"

/* A name and where it stands, sorted to find it and its double. */
struct fabric_entry {
	const char *name; /* in the document, or a node's own */
	uint32_t index;   /* of the spine, leaf or node */
	uint32_t value;   /* of the name, in the document */
};

struct fabric_load {
	const struct doc *doc;
	struct fabricfile *fabric;
	struct complaint *complaint;
	struct fabric_node defaults;
	uint32_t spines, leaves, nodes; /* measured, before the fabric's own counts grow as they are read */
	struct fabric_entry *spine_names, *leaf_names, *node_names; /* by name, once the tree is read */
	uint32_t *exception; /* node → document value of its exception; 0, the root: none */
};

int32_t fabric_models_load(struct fabric_load *load);
int32_t fabric_defaults_load(struct fabric_load *load);
int32_t fabric_exceptions_load(struct fabric_load *load); /* after the tree */

/* The index of a known or own model; a complaint that lists them when there is none of this name. */
int32_t fabric_model_find(const struct fabric_load *load, uint32_t at, uint32_t *out);

/* uplinkGbps of a map, when it has one. */
int32_t fabric_uplink_read(const struct fabric_load *load, uint32_t map, uint32_t *out);

/* The names that a scalar stands for. */
int32_t fabric_range_open(const struct fabric_load *load, uint32_t at, struct range *out);

/* calloc that complains: NULL when there is no memory. */
void *fabric_take(const struct fabric_load *load, uint64_t count, uint64_t size);
int32_t fabric_copy(const struct fabric_load *load, const char *text, char **out);

#endif
