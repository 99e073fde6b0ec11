/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabricfile.h - a fabric written by hand: the YAML or JSON of reference 11, or the one-line form
 * "spine:2 leaf:4 node:4 gpu:8" (each number counts per parent; names count through the whole cluster; H100-SXM unless
 * "model:GB200" follows; "nvlink:18" puts so many consecutive nodes of a leaf into one NVLink domain).
 * Owns the parsed fabric until fabricfile_free(). Every complaint has a line and a path. Never partly read.
 */
#ifndef FROND_TEXT_FABRICFILE_H
#define FROND_TEXT_FABRICFILE_H

#include "words.h"

struct fabric_label {
	char *key;
	char *value;
};

struct fabric_model { /* known by name (reference 3.7) or defined by the file */
	char *name;
	uint32_t gpus;
	uint32_t numa[FROND_GPUS_MAX];
	uint32_t link_gbps[FROND_GPUS_MAX][FROND_GPUS_MAX]; /* GB/s */
};

struct fabric_spine {
	char *name;
};

struct fabric_leaf {
	char *name;
	uint32_t spine;       /* index into spines */
	uint32_t uplink_gbps; /* 0: unlimited */
};

struct fabric_node {
	char *name;
	uint32_t leaf;        /* index into leaves */
	uint32_t gpus;        /* 0 is allowed: a node without GPUs */
	uint32_t model;       /* index into models; FROND_NONE: none named */
	uint32_t uplink_gbps; /* 0: unlimited */
	uint32_t used_mask;
	uint32_t unhealthy_mask;
	bool cordoned;
	struct fabric_label *labels;
	uint32_t label_count;
};

struct fabricfile { /* spines, leaves and nodes each in fabric order: leaves grouped by spine, nodes by leaf */
	struct fabric_model *models;
	struct fabric_spine *spines;
	struct fabric_leaf *leaves;
	struct fabric_node *nodes;
	uint32_t model_count, spine_count, leaf_count, node_count;
};

/* On success the caller frees with fabricfile_free(); on failure *out is all zero. */
int32_t fabricfile_read(const char *text, uint32_t len, struct fabricfile *out, struct complaint *complaint);
int32_t fabricfile_read_line(const char *text, uint32_t len, struct fabricfile *out, struct complaint *complaint);
void fabricfile_free(struct fabricfile *fabric);

/* The JSON of frond_abi.fabric_expand, malloc'd and NUL-terminated. */
char *fabricfile_json(const struct fabricfile *fabric);

#endif
