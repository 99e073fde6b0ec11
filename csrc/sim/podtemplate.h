/* SPDX-License-Identifier: Apache-2.0 */
/*
 * podtemplate.h - what is read of a pod, or of a template that pods are made from: its GPUs, its annotations, the PodGroup
 * and the GpuClaim that it names. Owns how GPUs are counted: as Kubernetes does, limits before requests. Part of
 * jobs_read(); names are not looked up here.
 */
#ifndef FROND_SIM_PODTEMPLATE_H
#define FROND_SIM_PODTEMPLATE_H

#include "sim/jobload.h"

#define GPU_COUNT_KEY "topology.scheduler/gpu-count"

struct pod_template {
	uint32_t annotations; /* the map; DOC_NONE: none */
	uint32_t gpus;
	uint32_t gpus_at;  /* where GPUs would stand */
	uint32_t group_at; /* value of the label that names a PodGroup; DOC_NONE: none */
	uint32_t claim_at; /* value of the annotation that names a GpuClaim; DOC_NONE: none */
	uint32_t index_at; /* label or annotation with the completion index; DOC_NONE: none */
	int32_t priority;
};

/* at: a map with metadata and spec. */
int32_t pod_template_read(const struct job_load *load, uint32_t at, struct pod_template *out);

/* The map under a key; DOC_NONE: it is not there, or null. Anything else is refused. */
int32_t map_find(const struct job_load *load, uint32_t at, const char *key, uint32_t *out);
/* A whole number under a key; what *out holds before is the default. */
int32_t number_find(const struct job_load *load, uint32_t at, const char *key, int64_t min, int64_t max, int64_t *out);
/* metadata.annotations of an object or template, with those of ours checked. */
int32_t annotations_find(const struct job_load *load, uint32_t at, uint32_t *out);

#endif
