/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.h - Frond as a picker: the engine, which sees GPUs and fabric, and the part of its host, which knows CPU, memory
 * and models and says through frond_room which nodes are open to the pod. The node is the first of the engine's order().
 *
 * The plain host opens every node that admits the pod. The careful one opens, of these, only those where the GPUs that
 * it expects to be of no use grow least: it alone can know that a node runs out of CPU before it runs out of GPUs.
 */
#ifndef FROND_DATA_HOST_H
#define FROND_DATA_HOST_H

#include "driver.h"
#include "packers.h"

struct host_choice {
	bool leaf_per_model;  /* a fabric file with one spine and a leaf for each model; else no topology at all */
	bool careful;         /* see above */
	const char *strategy; /* NULL: the default, balanced */
};

struct host {
	struct host_choice choice;
	struct driver driver;
	struct gradient waste;
	struct frond_room room[OPENB_NODES_MAX];
	uint16_t position[OPENB_NODES_MAX];
};

/* For a kind of pod: the node's free GPUs if it cannot take one (FGD's fragments), and the GPUs that CPU or memory keep
 * from use when the node is filled with such pods: places by GPUs less places by everything, times GPUs. */
measure waste_expected;

void host_start(struct host *host, const struct workload *workload, const struct host_choice *choice);
void host_stop(struct host *host);

picker host_pick; /* struct host; books what it picks */

#endif
