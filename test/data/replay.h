/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.h - the list of pods again and again until a whole pass places nothing; pods never end. Owns what is left of
 * each node; a picker says where a pod goes, and is wrong when the pod does not fit there.
 */
#ifndef FROND_DATA_REPLAY_H
#define FROND_DATA_REPLAY_H

#include "workload.h"

#define NO_NODE UINT32_MAX
#define MARKS   2u

extern const uint32_t replay_marks[MARKS]; /* percent of the GPUs */

struct replay {
	const struct workload *workload;
	struct amount left[OPENB_NODES_MAX];
	uint32_t gpus_given;

	/* what came of it */
	uint32_t placed, passes;
	uint32_t given_at_full; /* GPUs given when as many had been asked for as there are */
	uint32_t gpus_hungry;   /* GPUs given to pods that ask for more CPU per GPU than their node has */
	uint32_t free_at[MARKS][OPENB_NODES_MAX]; /* GPUs of each node, when so many had been given */
};

/* A node that admits the pod, or NO_NODE when none does. */
typedef uint32_t picker(void *context, const struct replay *replay, uint32_t shape);

/* Why GPUs are free at the end: a pod that asks for few enough of them would fit there, were there more of … */
struct stranded {
	uint32_t by_cpu, by_memory, by_both; /* GPUs */
};

struct stranded replay_stranded(const struct replay *replay);

/* false: the picker chose a node that does not admit the pod, or none although one does. */
bool replay_run(struct replay *replay, const struct workload *workload, picker *pick, void *context);

#endif
