/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobload.h - what the parts of jobs_read() share while a file is being read. Not for others.
 * jobs.c reads `jobs:` and looks after names; manifests.c reads Kubernetes objects, podtemplate.c the pods in them, and
 * gangs.c makes jobs of them.
 */
#ifndef FROND_SIM_JOBLOAD_H
#define FROND_SIM_JOBLOAD_H

#include "sim/jobs.h"

struct job_load {
	struct jobs *jobs;
	struct args args; /* defaults, to check annotations against */
	struct complaint *complaint;
	uint32_t room; /* entries that jobs->list has memory for */
};

/* Appends a job with nothing in it but defaults; at: where its name stands. */
int32_t job_add(struct job_load *load, uint32_t at, struct job **out);
/* Appends an annotation to the job. */
int32_t job_annotate(const struct job_load *load, struct job *job, uint32_t at);
/* One annotation of a map, so that the line is known. */
int32_t annotation_check(const struct job_load *load, uint32_t map, uint32_t at);
/* A GpuClaim's spec into json and claim, both malloc'd; path: what its complaints begin with instead of "claim". */
int32_t claim_load(const struct job_load *load, uint32_t at, const char *path, char **json, struct claim **claim);

/* Every document of the file is an object. */
int32_t manifests_read(struct job_load *load);

#endif
