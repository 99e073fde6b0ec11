/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gang.h - which ledger entries belong together, and when they may go. A gang exists while it has an entry.
 * All or nothing: nobody is let through Permit before every planned member has arrived there; once the gang has gone,
 * a member that comes back (its bind failed) goes at once. Never decides a place.
 */
#ifndef FROND_CORE_GANG_H
#define FROND_CORE_GANG_H

#include "core/ledger.h"

struct gang {
	struct frond_key key;
	uint32_t first;   /* its entries, linked; FROND_NONE: this id is free */
	uint32_t members; /* entries in the list */
	uint32_t missing; /* reserved entries that have not reached Permit */
	bool gone;        /* let through; stays so while a member is left */
	uint32_t chain;   /* next of the hash bucket, or of the free list */
};

struct gangs {
	struct ledger *ledger;
	struct gang *gangs;
	uint32_t *bucket;
	uint32_t cap, bucket_mask, free_head, used;
};

void gangs_layout(struct gangs *gangs, struct arena *arena, struct ledger *ledger, uint32_t cap);
uint32_t gangs_find(const struct gangs *gangs, struct frond_key key);

/* Adds an entry to its gang, which is made when it is the first. There is room: one id per ledger entry. */
void gangs_join(struct gangs *gangs, struct frond_key key, uint32_t entry);
/* Takes an entry out of its gang, if it is in one; the last one ends the gang. */
void gangs_part(struct gangs *gangs, uint32_t entry);

/* A reserved member has reached Permit. */
enum frond_verdict gangs_arrive(struct gangs *gangs, uint32_t entry);
/* A reserved member is bound now. */
void gangs_bound(struct gangs *gangs, uint32_t entry);

#endif
