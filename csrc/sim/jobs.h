/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobs.h - the jobs file of reference 11, or Kubernetes manifests instead, checked as a whole before anything is
 * planned. Owns the document and the list until jobs_free(). Knows names and numbers, not the engine.
 */
#ifndef FROND_SIM_JOBS_H
#define FROND_SIM_JOBS_H

#include "text/claim.h"
#include "text/doc.h"

#define JOB_NEVER_ENDS INT64_MAX

struct job {
	const char *name; /* in the document, or made */
	char *name_made;  /* malloc'd; NULL: it is in the document */
	uint32_t at;      /* value in the document that complaints about the name go to */
	uint32_t removes; /* index of the job that this entry takes away; FROND_NONE: it is a job itself */
	uint32_t members;
	uint32_t min_member;
	uint32_t gpus_each;    /* of every member; 0: gpus says */
	uint8_t *gpus;         /* by rank, malloc'd; NULL: gpus_each says */
	uint64_t gpus_desired; /* of the object that carries gpu-count; 0: of all members */
	uint32_t *annotations; /* values in the document, malloc'd */
	uint32_t annotation_count;
	int32_t priority;
	bool budgeted;       /* evicting any pod of it violates a disruption budget */
	int64_t ends_in_ms;  /* from now on; JOB_NEVER_ENDS: not said */
	char *claim_json;    /* the spec of its GpuClaim; NULL: none */
	struct claim *claim; /* the same, read */
};

struct jobs {
	struct doc doc;
	struct job *list;
	uint32_t count;
};

/* On failure *out is all zero. */
int32_t jobs_read(const char *text, uint32_t len, struct jobs *out, struct complaint *complaint);
void jobs_free(struct jobs *jobs);

/* GPUs by rank; out has room for job->members. Returns their sum. */
uint64_t job_gpus(const struct job *job, uint32_t *out);
/* The value of one of its annotations; NULL: it does not have it. */
const char *job_annotation(const struct jobs *jobs, const struct job *job, const char *key);

#endif
