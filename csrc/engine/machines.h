/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machines.h - from what is known of a node's GPUs to the id of their link table: a model of the fabric file, a model
 * of reference 3.7, or a product name as GPU feature discovery writes it; whatever is unknown has no links and two NUMA nodes. A node with fewer
 * GPUs than its model has the first ones. It also numbers the models that nodes have, known or not, so that plans can tell them apart.
 */
#ifndef FROND_ENGINE_MACHINES_H
#define FROND_ENGINE_MACHINES_H

#include "core/core.h"
#include "text/models.h"

#define MACHINES_MAX       64u /* models of one fabric file */
#define MACHINE_REMEMBERED 64u /* bytes of a name */
#define MODEL_BYTES        63u /* of a model's name that tell it from others: as long as a label may be */
#define MODEL_UNKNOWN      0u  /* nobody says which */
#define MODEL_FURTHER      (FROND_MODELS - 1) /* there were no numbers left */

struct machines {
	struct machine {
		char name[FROND_NAME_MAX + 1];
		struct topology topology;
	} own[MACHINES_MAX];
	uint32_t count;
	struct { /* the last answer of machines_find(): the next node is mostly of the same model */
		char name[MACHINE_REMEMBERED];
		uint32_t len, gpus, model; /* len 0: none */
	} last;
	uint32_t freed; /* core.tables.freed when `table` was begun: ids from before another freeing may mean others */
	/* (model, GPUs) → link table + 1; 0: not asked for yet. Own models, known ones, then the unknown one. */
	uint16_t table[MACHINES_MAX + MODELS_KNOWN + 1][FROND_GPUS_MAX + 1];
	struct model_said {
		uint32_t nodes; /* that have it; 0: the number is free */
		uint8_t len;
		char name[MODEL_BYTES];
	} said[FROND_MODELS];
};

/* Takes the models of the file over; FROND_LIMIT: too many. */
int32_t machines_load(struct machines *machines, const struct fabricfile *file);

/* The model that is called so, of a node with so many GPUs; FROND_NONE: unknown. */
uint32_t machines_find(struct machines *machines, const char *name, uint32_t len, uint32_t gpus);

/* The number of the model that is called so, for a node that says so (len 0: MODEL_UNKNOWN); and one node less has it. */
uint32_t machines_model_hold(struct machines *machines, const char *name, uint32_t len);
void machines_model_drop(struct machines *machines, uint32_t model);

/* The link table of a node with so many GPUs of a model (FROND_NONE: unknown). */
int32_t machines_table(struct machines *machines, struct core *core, uint32_t model, uint32_t gpus, uint32_t *id);

#endif
