/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger.h - sole owner of "who holds which GPU". An entry per pod that holds something: by device, or by count when
 * nobody knows the devices. Each GPU has at most one owner; whoever comes second is held by count and counted as a
 * conflict. Knows nothing of gangs beyond the id that it carries for gang.c.
 */
#ifndef FROND_CORE_LEDGER_H
#define FROND_CORE_LEDGER_H

#include "core/fabric.h"

enum hold { HOLD_FREE, HOLD_RESERVED, HOLD_BOUND };

#define ENTRY_BY_COUNT 24u /* bits */

struct entry {
	struct frond_key pod;
	uint32_t slot;                      /* node; FROND_NONE: a member without GPUs */
	uint32_t by_count : ENTRY_BY_COUNT; /* GPUs held by count */
	uint32_t hold : 2;                  /* enum hold */
	uint32_t arrived : 1;               /* has reached Permit; owned by gang.c */
	uint32_t budgeted : 1;              /* evicting it would violate a disruption budget */
	uint16_t mask;                      /* GPUs held by device */
	uint32_t rank;                      /* FROND_NONE: in no plan of ours */
	uint32_t label;                     /* the caller's number for its name; FROND_NONE: none */
	uint32_t gang;                      /* id in gang.h; FROND_NONE: none */
	uint32_t gang_next, gang_prev;      /* the gang's members; owned by gang.c */
	uint32_t node_next;                 /* the node's entries; few enough to find the one before by walking */
	uint32_t chain;                     /* next entry of the hash bucket, or of the free list */
};

struct ledger {
	struct undo *undo;
	struct fabric *fabric;
	struct node *nodes; /* the core's; held fields are written here */
	struct entry *entries;
	uint32_t *bucket; /* hash → first entry */
	uint32_t cap, bucket_mask, used;
	uint32_t free_head; /* entries given back */
	uint32_t fresh;     /* entries from here on were never used */
	uint64_t conflicts;
};

void ledger_layout(struct ledger *ledger, struct arena *arena, struct undo *undo, struct fabric *fabric,
		   struct node *nodes, uint32_t pod_cap);

/* FROND_NONE when the pod holds nothing. */
uint32_t ledger_find(const struct ledger *ledger, struct frond_key pod);
/* The entry that holds a GPU by device; FROND_NONE: nobody. */
uint32_t ledger_owner(const struct ledger *ledger, uint32_t slot, uint32_t gpu);

/* Enters a pod that is not there yet. Devices in mask that have an owner or do not exist become holdings by count.
 * *out: its entry. FROND_LIMIT when the ledger is full. */
int32_t ledger_enter(struct ledger *ledger, struct frond_key pod, enum hold hold, uint32_t slot, uint32_t mask,
		     uint32_t by_count, uint32_t rank, uint32_t label, uint32_t *out);

/* What the entry held by count it holds by these devices from now on; nobody else has them. */
void ledger_devices(struct ledger *ledger, uint32_t entry, uint32_t mask);

/* Gives back all that the entry holds and forgets it. It must have left its gang. */
void ledger_leave(struct ledger *ledger, uint32_t entry);

static inline uint32_t entry_gpus(const struct entry *entry)
{
	return bits_count(entry->mask) + entry->by_count;
}

#endif
