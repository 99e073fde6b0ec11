/* SPDX-License-Identifier: Apache-2.0 */
/*
 * models.h - the machines that Frond knows by name (reference 3.7): how many GPUs, which links, which NUMA nodes.
 */
#ifndef FROND_TEXT_MODELS_H
#define FROND_TEXT_MODELS_H

#include "text/fabricfile.h"

#define MODELS_KNOWN 9u
#define MODEL_LINE   "H100-SXM" /* of the nodes of the one-line form */

struct model_known {
	const char *name;
	uint32_t gpus;
	uint32_t pair_gbps; /* GB/s between any two GPUs, when links is NULL */
	const uint32_t (*links)[FROND_GPUS_MAX];
};
extern const struct model_known models_known[MODELS_KNOWN];

/* GPUs, links and NUMA of models_known[index]; the name stays as it is. */
void models_fill(uint32_t index, struct fabric_model *out);

/* Two NUMA nodes of equal size (with an odd number of GPUs the first has one more). */
void models_numa_default(struct fabric_model *model);

#endif
