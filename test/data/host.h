/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.h - Frond as a picker: the engine, which sees GPUs and fabric, and the part of its host, which knows CPU, memory
 * and models. The host says through frond_room which nodes admit the pod and, if asked to, through frond_thrift what it
 * knows of CPU and memory, as the scheduler does: what nodes have left, and which kinds of pods there have been so far. It
 * knows nothing of pods to come. The node is the first of the engine's order().
 */
#ifndef FROND_DATA_HOST_H
#define FROND_DATA_HOST_H

#include "driver.h"
#include "replay.h"

enum host_fabric {
	NO_TOPOLOGY,
	LEAF_PER_MODEL, /* one spine, a leaf for each model */
	LEAVES_OF_16,   /* the nodes as the file has them, 16 to a leaf, 16 leaves to a spine */
};

struct host_choice {
	enum host_fabric fabric;
	bool thrift;          /* the engine is told of CPU and memory */
	const char *strategy; /* NULL: the default, balanced */
};

struct host {
	struct host_choice choice;
	struct driver driver;
	uint32_t kind_of[OPENB_SHAPES_MAX]; /* the first shape that asks for the same, whatever models they accept */
	uint32_t placed[OPENB_SHAPES_MAX];  /* pods so far, by that shape */
	struct frond_kind kinds[OPENB_SHAPES_MAX];
	struct frond_room room[OPENB_NODES_MAX];
	struct frond_left left[OPENB_NODES_MAX];
	uint16_t position[OPENB_NODES_MAX];
};

void host_start(struct host *host, const struct workload *workload, const struct host_choice *choice);
void host_stop(struct host *host);

/* Gangs of four nodes of eight GPUs that find their leaf one after the other, leaves of 16, where this much is free. */
uint32_t host_gangs(const struct workload *workload, const uint32_t *free);
/* The same, counted without the engine. */
uint32_t leaf_gangs(const struct workload *workload, const uint32_t *free);

picker host_pick; /* struct host; books what it picks */

#endif
