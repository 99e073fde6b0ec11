/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifests.h - Kubernetes objects of a file, between reading them (manifests.c) and making jobs of them (gangs.c). Part of
 * jobs_read().
 */
#ifndef FROND_SIM_MANIFESTS_H
#define FROND_SIM_MANIFESTS_H

#include "sim/podtemplate.h"

#define CHAIN_MAX 3u /* a pod, its Job, the JobSet of that */

struct chain_link {           /* an object that a pod belongs to, itself the first */
	uint32_t annotations; /* DOC_NONE: none */
	uint64_t pods, gpus;  /* that the object asks for in all */
};

struct part { /* pods that are made from one template */
	struct pod_template pod;
	const char *name; /* of a replicated job; NULL: none */
	uint64_t pods;
	bool indexed;   /* its pods have a completion index */
	uint32_t claim; /* the GpuClaim that they name; FROND_NONE: none */
	struct chain_link chain[CHAIN_MAX];
	uint32_t links;
};

enum object_role { OBJECT_PODS, OBJECT_GROUP, OBJECT_CLAIM };

struct object {
	enum object_role role;
	const char *kind;
	const char *name, *space; /* "": no namespace is written */
	uint32_t at, name_at;     /* values in the document */

	/* pods */
	uint32_t first_part, part_count; /* by rank */
	bool gang;                       /* else every pod is a job of its own */
	bool stepwise;                   /* every part is a gang of its own */
	uint32_t min_member;             /* PodGroups, too; 0: all */
	uint32_t min_member_at;
	uint32_t group; /* the PodGroup that the pods belong to; FROND_NONE: none */

	/* a PodGroup: the last object that it is made of, after which it is complete */
	uint32_t last;

	/* a GpuClaim, malloc'd */
	char *claim_json;
	struct claim *claim;
	uint64_t users; /* pods that name it */
};

struct manifests {
	struct job_load *load;
	struct object *objects;
	uint32_t object_count, object_room;
	struct part *parts;
	uint32_t part_count, part_room;
};

/* Makes jobs of the objects, in the order of the file. */
int32_t gangs_make(struct manifests *manifests);

#endif
