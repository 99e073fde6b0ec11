/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold.h - the table of holds (reference 7): GPUs of a node that are kept for a rank of a gang, although its pod is not there
 * yet or somebody still sits on them. By gang and rank, and by node; no two share a GPU. Knows neither nodes nor pods:
 * what a hold means for its node is written by ledger.c.
 */
#ifndef FROND_CORE_HOLD_H
#define FROND_CORE_HOLD_H

#include "core/base.h"

#define HOLD_DEADLINE_BITS 42u
#define HOLD_DEADLINE_MASK ((1ull << HOLD_DEADLINE_BITS) - 1)
#define HOLD_NUMBER_BITS   21u
#define HOLD_NUMBER_MASK   ((1u << HOLD_NUMBER_BITS) - 1)
_Static_assert(FROND_DEADLINE_MAX <= HOLD_DEADLINE_MASK && FROND_HOLDS_MAX <= HOLD_NUMBER_MASK, "bits of a hold");

__extension__ struct hold {
	struct frond_key gang;
	uint64_t deadline_ms : HOLD_DEADLINE_BITS; /* 0: none */
	uint64_t number : HOLD_NUMBER_BITS;        /* in the list that it came with */
	uint64_t ended : 1;                        /* this id is free; the rest stays, for whoever takes it back */
	uint32_t rank, slot;
	uint32_t next; /* of the hash bucket, or of the free list */
	uint16_t mask;
};
_Static_assert(sizeof(struct hold) == 40, "the caller pays for each");

struct holds {
	struct hold *all; /* by id */
	uint32_t *order;  /* ids by gang, then rank */
	uint32_t *bucket; /* hash of the slot → first id */
	uint32_t cap, bucket_mask;
	uint32_t used;           /* from here on it changes; entries in order */
	uint32_t free_head;      /* ids given back */
	uint32_t fresh;          /* ids from here on were never used */
	uint32_t timed;          /* holds with a deadline */
	int64_t soonest;         /* no deadline is before it */
	struct frond_key lifted; /* the gang whose plan is being made: its holds keep nothing from it; zero: none */
};

void holds_layout(struct holds *holds, struct arena *arena, uint32_t cap);

/* Place in the order of the first hold that is not before this gang and rank. */
uint32_t holds_seek(const struct holds *holds, struct frond_key gang, uint32_t rank);
/* Place in the order; FROND_NONE: there is no such hold. */
uint32_t holds_find(const struct holds *holds, struct frond_key gang, uint32_t rank);
/* The holds of a gang are order[*first] … order[*end - 1]. */
void holds_of(const struct holds *holds, struct frond_key gang, uint32_t *first, uint32_t *end);

/* Any hold on the node; FROND_NONE: none. */
uint32_t holds_on(const struct holds *holds, uint32_t slot);
/* GPUs of the node that are kept, but for a gang that is lifted. */
uint32_t holds_mask(const struct holds *holds, uint32_t slot);

/* Adds these, which are well formed and not too many. False: number *bad is the first that another hold, there before or in
 * the list, keeps out by one of its GPUs, or, *twice, by being for the same rank; then nothing has changed. */
bool holds_add(struct holds *holds, const struct frond_hold *list, uint32_t count, uint32_t *bad, bool *twice);
/* The same, and takes them out again. */
bool holds_try(struct holds *holds, const struct frond_hold *list, uint32_t count, uint32_t *bad, bool *twice);

/* Ends a hold. It stays in the order until holds_sweep() of the places first … end - 1 closes the gaps. */
void holds_end(struct holds *holds, uint32_t id);
void holds_sweep(struct holds *holds, uint32_t first, uint32_t end);
/* The one that ended last is there again. Returns its id. */
uint32_t holds_back(struct holds *holds);

#endif
