/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.h - one engine, driven through its ABI alone (frond.h), for replays. Owns the engine's memory and the buffers
 * of the last answer. A call that the engine refuses with a code ends the program: replays only ask what is allowed.
 */
#ifndef FROND_DATA_DRIVER_H
#define FROND_DATA_DRIVER_H

#include "frond.h"

struct driver {
	const struct frond_abi *abi;
	frond_engine *engine;
	void *mem;
	uint64_t keys; /* pods and gangs so far: each has a key of its own */

	/* the last question and its answer */
	struct frond_request request;
	struct frond_member *members; /* FROND_MEMBERS_MAX */
	struct frond_place *places;
	struct frond_plan plan;
	char text[FROND_TEXT_MAX * 8]; /* NUL-terminated here */
	uint32_t len;
};

struct gang { /* members of equal size */
	uint32_t members, gpus;
	const char *mode, *strategy;   /* annotations; NULL: not written */
	const struct frond_room *room; /* exceptions */
	uint32_t room_count;
	uint32_t only_slot; /* FROND_NONE: anywhere */
};

struct thrift { /* for driver_order() */
	struct frond_thrift asks;
	const struct frond_kind *kinds;
	const struct frond_left *left; /* by slot */
};

/* fabric: a fabric file's text, "" for none. */
void driver_start(struct driver *driver, uint32_t nodes, uint32_t pods, const char *fabric);
void driver_stop(struct driver *driver);

void driver_node(struct driver *driver, uint32_t slot, const char *name, uint32_t gpus);
/* Somebody else's pod, held by count. */
void driver_occupy(struct driver *driver, uint32_t slot, uint32_t gpus);

/* The answer is in plan, places and text; nothing changes. Returns enum frond_outcome. */
uint32_t driver_plan(struct driver *driver, const struct gang *gang);
/* For one pod: position by slot. thrift NULL: none. */
uint32_t driver_order(struct driver *driver, const struct gang *gang, const struct thrift *thrift, uint16_t *position);
/* Books what the last driver_plan() answered. */
void driver_reserve(struct driver *driver);
/* The engine's own invariant checker. */
void driver_check(struct driver *driver);

#endif
