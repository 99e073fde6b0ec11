/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger.h - sole owner of "who holds which GPU". An entry per pod that holds something: by device, or by count when
 * nobody knows the devices. Each GPU has at most one owner; whoever comes second is held by count and counted as a
 * conflict. Beside owners there are holds (hold.h): GPUs that are kept for a gang, with an owner or without. A node's held
 * mask has both, so that whoever looks for free GPUs sees neither. Knows nothing of gangs beyond the id that it carries
 * for gang.c.
 */
#ifndef FROND_CORE_LEDGER_H
#define FROND_CORE_LEDGER_H

#include "core/fabric.h"
#include "core/hold.h"

enum holding { HOLD_FREE, HOLD_RESERVED, HOLD_BOUND };

/* There is an entry for each pod, and at worst a gang: their ids, and what else has a small limit, are bits. An id is
 * stored one higher, so that none (FROND_NONE) is 0. */
#define ID_BITS       20u
#define ID_MASK       ((1u << ID_BITS) - 1)
#define SLOT_BITS     18u
#define SLOT_MASK     ((1u << SLOT_BITS) - 1)
#define LABEL_BITS    14u
#define LABEL_MASK    ((1u << LABEL_BITS) - 1)
#define BY_COUNT_BITS 16u
#define BY_COUNT_MASK ((1u << BY_COUNT_BITS) - 1)
_Static_assert(FROND_PODS_MAX <= ID_MASK && FROND_RANK_MAX < ID_MASK && FROND_NODES_MAX <= SLOT_MASK, "ids");
_Static_assert(FROND_POD_GPUS_MAX + FROND_GPUS_MAX <= BY_COUNT_MASK, "GPUs held by count");

__extension__ struct entry {
	struct frond_key pod;
	uint64_t gang_up : ID_BITS;      /* id in gang.h */
	uint64_t gang_next_up : ID_BITS; /* the gang's members; owned by gang.c */
	uint64_t gang_prev_up : ID_BITS; /* likewise */
	uint64_t hold : 2;               /* enum holding */
	uint64_t arrived : 1;            /* has reached Permit; owned by gang.c */
	uint64_t budgeted : 1;           /* evicting it would violate a disruption budget */
	uint64_t rank_up : ID_BITS;      /* none: in no plan of ours */
	uint64_t node_next_up : ID_BITS; /* the node's entries; few enough to walk along */
	uint64_t chain_up : ID_BITS;     /* next of the hash bucket, or of the free list */
	uint64_t ends : 1;               /* window.c: when it ends is known; zero between calls */
	uint64_t : 3;
	uint64_t slot_up : SLOT_BITS;      /* node; none: a member without GPUs */
	uint64_t by_count : BY_COUNT_BITS; /* GPUs held by count */
	uint64_t mask : FROND_GPUS_MAX;    /* GPUs held by device */
	uint64_t label_up : LABEL_BITS;    /* the caller's number for its name */
};
_Static_assert(sizeof(struct entry) == 40, "there is one for each pod");

static inline uint32_t entry_gang(const struct entry *entry)
{
	return (uint32_t)entry->gang_up - 1;
}

static inline uint32_t entry_gang_next(const struct entry *entry)
{
	return (uint32_t)entry->gang_next_up - 1;
}

static inline uint32_t entry_gang_prev(const struct entry *entry)
{
	return (uint32_t)entry->gang_prev_up - 1;
}

static inline uint32_t entry_node_next(const struct entry *entry)
{
	return (uint32_t)entry->node_next_up - 1;
}

static inline uint32_t entry_chain(const struct entry *entry)
{
	return (uint32_t)entry->chain_up - 1;
}

static inline uint32_t entry_rank(const struct entry *entry)
{
	return (uint32_t)entry->rank_up - 1;
}

static inline uint32_t entry_slot(const struct entry *entry)
{
	return (uint32_t)entry->slot_up - 1;
}

static inline uint32_t entry_label(const struct entry *entry)
{
	return (uint32_t)entry->label_up - 1;
}

static inline uint32_t entry_gpus(const struct entry *entry)
{
	return bits_count((uint32_t)entry->mask) + (uint32_t)entry->by_count;
}

struct ledger {
	struct undo *undo;
	struct fabric *fabric;
	struct node *nodes; /* the core's; held fields are written here */
	struct holds holds;
	struct entry *entries;
	uint32_t *bucket; /* hash → first entry */
	uint32_t cap, bucket_mask;
	uint32_t used;      /* from here on it changes */
	uint32_t free_head; /* entries given back */
	uint32_t fresh;     /* entries from here on were never used */
	uint64_t conflicts;
};

void ledger_layout(struct ledger *ledger, struct arena *arena, struct undo *undo, struct fabric *fabric,
		   struct node *nodes, uint32_t pod_cap, uint32_t hold_cap);

/* FROND_NONE when the pod holds nothing. */
uint32_t ledger_find(const struct ledger *ledger, struct frond_key pod);
/* The same of up to LEDGER_BATCH pods, sooner than one after the other: the memory of all is fetched at once. */
#define LEDGER_BATCH 16u
void ledger_find_all(const struct ledger *ledger, const struct frond_key *pods, uint32_t count, uint32_t *out);
/* The entry that holds a GPU by device; FROND_NONE: nobody. */
uint32_t ledger_owner(const struct ledger *ledger, uint32_t slot, uint32_t gpu);
/* GPUs of the node that entries hold by device: its held mask without those that are only kept. */
uint32_t ledger_owned(const struct ledger *ledger, uint32_t slot);
/* GPUs that an entry on a node would give to others if it left: not those that are kept. */
uint32_t ledger_frees(const struct ledger *ledger, const struct entry *entry);

/* Enters a pod that is not there yet. Devices in mask that have an owner or do not exist become holdings by count.
 * *out: its entry. FROND_LIMIT when the ledger is full. */
int32_t ledger_enter(struct ledger *ledger, struct frond_key pod, enum holding hold, uint32_t slot, uint32_t mask,
		     uint32_t by_count, uint32_t rank, uint32_t label, uint32_t *out);

/* Counts what an entry holds onto its node or off it, with the sums of leaf and spine; the entry itself stays. Who tries
 * what would be if pods were gone counts them off, and back before returning. The entry has a node. */
void ledger_count(struct ledger *ledger, const struct entry *entry, bool onto);

/* What the entry held by count it holds by these devices from now on; nobody else has them. */
void ledger_devices(struct ledger *ledger, uint32_t entry, uint32_t mask);

/* Gives back all that the entry holds and forgets it. It must have left its gang. */
void ledger_leave(struct ledger *ledger, uint32_t entry);

/* ---- holds ------------------------------------------------------------------------------------------------------------ */

/* Adds holds, all or none: see holds_add(). Never in a what-if. */
bool ledger_keep(struct ledger *ledger, const struct frond_hold *list, uint32_t count, uint32_t *bad, bool *twice);
/* Ends a hold, by id; the caller sweeps the order. */
void ledger_let_go(struct ledger *ledger, uint32_t id);

/* While it is lifted a gang's own holds keep nothing: what of them nobody has is free. One gang at a time; ledger_lower()
 * puts everything back, whatever came and went in between. */
void ledger_lift(struct ledger *ledger, struct frond_key gang);
void ledger_lower(struct ledger *ledger);

#endif
