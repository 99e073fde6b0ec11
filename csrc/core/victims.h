/* SPDX-License-Identifier: Apache-2.0 */
/*
 * victims.h - reference 7: which pods of lower priority have to go so that a gang fits with its rule met. Domain first: every
 * node, NVLink domain, run of leaves or run of spines that the rule allows has a price, and the cheapest one wins.
 * State in, pods out; what it tries it takes back. Never evicts anything.
 *
 * A victim is a bound pod of a gang whose priority is lower. Pods in no gang are none (nobody knows their priority), nor
 * are gangs that are being placed. A gang goes whole, or its highest ranks go, as many as leave minMember.
 */
#ifndef FROND_CORE_VICTIMS_H
#define FROND_CORE_VICTIMS_H

#include "core/core.h"
#include "core/span.h"

#define VICTIM_GANGS FROND_MEMBERS_MAX /* of lower priority that are looked at in one domain; the rest of them stay */

struct price { /* of a choice; compared in this order, lower first (reference 7) */
	uint32_t budgets;
	int32_t priority;
	uint32_t gangs, pods, gpus;
};

struct unit { /* a gang that may have to go, with pods in the domain whose GPUs help */
	uint32_t gang;
	uint32_t first, count; /* of the list of those pods, highest ranks first */
	uint32_t shrinks;      /* of them, that may go without the gang going whole */
	uint32_t gain;         /* GPUs towards the members' room that its going brings, at most */
	uint32_t before;       /* gains of the units in front of it */
	uint32_t gone;         /* of its pods in the list, or UNIT_WHOLE */
	uint32_t best;         /* the same, in the cheapest choice so far */
	uint32_t at;           /* position of the first of them */
	uint16_t below;        /* the unit that was chosen before this one; UNIT_NONE: none */
};

struct eviction { /* what goes of a gang */
	uint32_t gang;
	uint32_t ranks; /* highest ones; UNIT_WHOLE: all of it */
};

struct victims_work {
	uint32_t gang_cap, node_cap, entry_cap;
	uint16_t *unit_of;      /* by gang: its unit; valid when units[].gang agrees */
	uint32_t *rank_at;      /* by entry, of a gang that may shrink: pods of it that go before this one */
	uint8_t *freed;         /* by position: GPUs that those chosen give back; zero between domains */
	struct unit *units;     /* of the domain in hand */
	struct eviction *evict; /* the cheapest choice of all */
	uint32_t unit_count, evict_count;
};

void victims_layout(struct victims_work *work, struct arena *arena, uint32_t nodes, uint32_t pods);

/* places: where the gang goes then. FROND_SMALL: more than cap pods; out->count says how many. */
int32_t victims(struct victims_work *work, struct core *core, const struct ask *ask, int32_t priority,
		struct frond_victims *out, struct frond_place *places, struct frond_key *pods, uint32_t cap);

#endif
