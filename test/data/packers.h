/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packers.h - the two baselines of the FGD paper (ATC'23), for pods of whole GPUs, and the gradient that FGD goes down.
 * Ties go to the first node of the file.
 *
 *   best-fit   the node on which the least stays free: ½ · CPU ÷ CPU of the largest node + ½ · GPUs ÷ GPUs of the
 *              largest node
 *   FGD        the node where expected fragmentation grows least. A node's fragmentation for a kind of pod: its free
 *              GPUs if it cannot take such a pod (any resource, model), else 0; expected over the list's kinds of pods
 */
#ifndef FROND_DATA_PACKERS_H
#define FROND_DATA_PACKERS_H

#include "replay.h"

/* What is bad about a node with this much left; summed over the pods of the list, not their mean, to stay whole. */
typedef uint64_t measure(const struct workload *workload, const struct amount *left, uint32_t model);

measure fragments_fgd;

/* How much a measure grows on a node by a pod; remembered until the node changes. */
struct gradient {
	measure *of;
	struct amount seen[OPENB_NODES_MAX];
	uint64_t now[OPENB_NODES_MAX];
	int64_t grows[OPENB_NODES_MAX][OPENB_SHAPES_MAX];
	bool known[OPENB_NODES_MAX][OPENB_SHAPES_MAX];
};

void gradient_start(struct gradient *gradient, measure *of);
/* The pod must fit there. */
int64_t gradient_at(struct gradient *gradient, const struct replay *replay, uint32_t node, uint32_t shape);

picker best_fit_pick; /* no context */
picker gradient_pick; /* struct gradient: where it grows least */

#endif
