/* SPDX-License-Identifier: Apache-2.0 */
/*
 * victims.h - spec 7: which pods of lower priority have to go so that a gang fits with its rule met. Domain first: every
 * node, NVLink domain, run of leaves or run of spines that the rule allows has a price, and the cheapest one wins.
 * State in, pods out; what it tries it takes back. Never evicts anything.
 *
 * A victim is a bound pod of a gang whose priority is lower. Pods in no gang are none (nobody knows their priority), nor
 * are gangs that are being placed. A gang goes whole unless minMember of it remain.
 */
#ifndef FROND_CORE_VICTIMS_H
#define FROND_CORE_VICTIMS_H

#include "core/core.h"
#include "core/span.h"

#define VICTIM_PODS  8192u /* that one answer may have; as many as the undo log of a large engine holds */
#define VICTIM_GANGS 8192u /* of lower priority in one domain that are looked at */

struct price { /* of a domain; compared in this order, lower first (spec 7) */
	uint32_t budgets;
	int32_t priority;
	uint32_t gangs, gpus;
};

enum unit_state { UNIT_STAYS, UNIT_PART, UNIT_WHOLE };

struct unit { /* a gang that may have to go */
	uint32_t gang;
	uint8_t state;    /* enum unit_state */
	uint32_t inside;  /* its pods in the domain */
	uint32_t spare;   /* pods that may go without the gang falling under minMember */
	uint32_t parted;  /* pods that go, in UNIT_PART */
	uint32_t budgets; /* of the whole gang */
	uint32_t gpus;
};

struct victim { /* a pod that goes, and what it takes to put it back */
	struct frond_key pod;
	uint32_t entry, slot, mask, by_count, unit;
	bool stays; /* it turned out not to be needed */
};

struct victims_work {
	uint32_t pod_cap, unit_cap, node_cap, entry_cap;
	uint32_t *unit_of; /* by gang: its unit; valid when units[].gang agrees */
	struct unit *units;
	uint32_t unit_count;
	struct victim *list;
	uint32_t count;
	uint8_t *parts; /* by entry: goes without its gang; zero between domains */
	uint8_t *freed; /* by position: GPUs that victims give back; zero between domains */
};

void victims_layout(struct victims_work *work, struct arena *arena, uint32_t nodes, uint32_t pods);

/* places: where the gang goes then. FROND_SMALL: more than cap pods; out->count says how many. */
int32_t victims(struct victims_work *work, struct core *core, const struct ask *ask, int32_t priority,
		struct frond_victims *out, struct frond_place *places, struct frond_key *pods, uint32_t cap);

#endif
