/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workload.h - openb as its tables have it: nodes, and the pods that ask for whole GPUs (num_gpu ≥ 1, gpu_milli =
 * 1000) in file order. Pods that ask for the same are one shape.
 */
#ifndef FROND_DATA_WORKLOAD_H
#define FROND_DATA_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

#define OPENB_NODES_MAX  2048u
#define OPENB_PODS_MAX   16384u
#define OPENB_SHAPES_MAX 512u
#define OPENB_MODELS_MAX 32u

struct amount {
	uint32_t cpu_milli, memory_mib, gpus;
};

struct openb_node {
	char name[32];
	struct amount has;
	uint32_t model;
};

struct shape {
	struct amount asks;
	uint32_t models; /* bit per model that it accepts */
	uint32_t pods;   /* of the list: how often it is asked for */
};

struct workload {
	struct openb_node node[OPENB_NODES_MAX];
	struct shape shape[OPENB_SHAPES_MAX];
	uint32_t pod[OPENB_PODS_MAX]; /* shape of each, in file order */
	char model[OPENB_MODELS_MAX][16];
	uint32_t nodes, shapes, pods, models;
	uint32_t left_out;   /* pods that ask for a part of a GPU, or for none */
	uint32_t gpus;       /* of all nodes */
	uint32_t gpus_asked; /* by the list, once through */
};

void workload_read(struct workload *workload, const char *nodes_path, const char *pods_path);

/* Does the node, with this much left, admit a pod of the shape? */
bool shape_fits(const struct shape *shape, const struct amount *left, uint32_t model);

#endif
