/* SPDX-License-Identifier: Apache-2.0 */
/*
 * standing.h - where nodes say that they stand: NVLink domain, leaf, spine and core by their labels. Nodes of one leaf
 * mostly say the same, so every such saying is kept once, with the names that it holds, and a node has its number.
 * Knows nothing of what forms a tree.
 */
#ifndef FROND_ENGINE_STANDING_H
#define FROND_ENGINE_STANDING_H

#include "core/fabric.h"
#include "engine/names.h"

enum level { LEVEL_DOMAIN, LEVEL_LEAF, LEVEL_SPINE, LEVEL_CORE, LEVELS };

struct standing {
	uint16_t name_up[LEVELS]; /* ids, stored one higher; 0: it does not say */
	uint32_t nodes;           /* that say so; 0: this number is free */
	uint32_t chain;           /* next of the hash bucket, or of the free list */
};

#define STANDING_NONE FROND_NONE       /* says nothing */
#define STANDING_LOST (FROND_NONE - 1) /* there was no room for what it says */

/* A node more than a leaf's may say something else for each NVLink domain; and one number is held before another is let
 * go. */
#define STANDING_DOMAINS(nodes) ((nodes) / 16ull + 4096ull)
#define STANDINGS(nodes)        ((uint32_t)(FABRIC_LEAVES(nodes) + STANDING_DOMAINS(nodes) + 1ull))

struct standings {
	struct names *names; /* of domains */
	struct standing *all;
	uint32_t *bucket;
	uint32_t cap, bucket_mask;
	uint32_t free_head; /* numbers given back */
	uint32_t fresh;     /* numbers from here on were never used */
	uint32_t last;      /* that was held; may be gone */
};

void standings_layout(struct standings *standings, struct arena *arena, struct names *names, uint32_t nodes);

struct said { /* by labels; len 0: nothing */
	const char *text[LEVELS];
	uint32_t len[LEVELS];
};

/* One node more says so; `before` is what the same node said until now. */
uint32_t standings_hold(struct standings *standings, const struct said *said, uint32_t before);
/* One less; STANDING_NONE and STANDING_LOST are allowed. */
void standings_drop(struct standings *standings, uint32_t id);

/* FROND_NONE: it does not say. */
static inline uint32_t standing_name(const struct standing *standing, enum level level)
{
	return standing->name_up[level] - 1u;
}

extern const struct standing standing_nowhere;

static inline const struct standing *standing_of(const struct standings *standings, uint32_t id)
{
	return id < standings->cap ? &standings->all[id] : &standing_nowhere;
}

#endif
