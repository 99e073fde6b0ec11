/* SPDX-License-Identifier: Apache-2.0 */
/*
 * undo.h - what-if: a log of old bytes. Whoever changes ledger, gangs or counts saves what it overwrites first; undoing
 * writes the old bytes back in reverse order, so the state before and after is the same to the last bit. Nests to any
 * depth; the log has a fixed size, and an operation asks for room before it begins, so that it never stops half-way.
 * Costs one branch when nobody asks "what if".
 */
#ifndef FROND_CORE_UNDO_H
#define FROND_CORE_UNDO_H

#include "core/base.h"

#define UNDO_OPERATION 512u /* bytes that entering, changing or leaving one ledger entry logs at most */

struct undo {
	uint8_t *log;
	uint64_t cap, used;
	uint64_t mark; /* where the innermost what-if begins */
	uint32_t depth;
};

void undo_layout(struct undo *undo, struct arena *arena, uint32_t pods);

void undo_begin(struct undo *undo);
/* Takes back everything since the last undo_begin(). */
void undo_back(struct undo *undo);

/* May `operations` more of them be logged? Always, when nothing is logged. */
bool undo_room(const struct undo *undo, uint64_t operations);

void undo_write(struct undo *undo, const void *at, uint32_t bytes);

/* Call before changing these bytes. */
static inline void undo_save(struct undo *undo, const void *at, uint32_t bytes)
{
	if (undo->depth > 0)
		undo_write(undo, at, bytes);
}

#endif
