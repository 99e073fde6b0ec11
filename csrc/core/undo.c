/* SPDX-License-Identifier: Apache-2.0 */
#include "core/undo.h"

#define UNDO_PODS 2048u /* operations that the log has room for in a large engine */

/* Behind its bytes, so that the log is read from its end: their address in the lower bits and their number above. Address
 * 0: a what-if begins here; its bytes are the mark before. */
#define AT_BITS 48u
#define AT_MASK ((1ull << AT_BITS) - 1)

void undo_layout(struct undo *undo, struct arena *arena, uint32_t pods)
{
	undo->cap = (uint64_t)UNDO_OPERATION * (64 + min_u32(pods, UNDO_PODS));
	undo->log = arena_raw(arena, undo->cap, 1);
}

static void append(struct undo *undo, void *at, const void *bytes, uint32_t size)
{
	uint64_t record = (uint64_t)(uintptr_t)at | (uint64_t)size << AT_BITS;
	assert((uint64_t)(uintptr_t)at <= AT_MASK && size >> (64 - AT_BITS) == 0);
	assert(undo->used + size + sizeof record <= undo->cap);
	memcpy(undo->log + undo->used, bytes, size);
	memcpy(undo->log + undo->used + size, &record, sizeof record);
	undo->used += size + sizeof record;
}

void undo_write(struct undo *undo, const void *at, uint32_t bytes)
{
	append(undo, (void *)(uintptr_t)at, at, bytes);
}

void undo_begin(struct undo *undo)
{
	uint64_t before = undo->mark;
	append(undo, NULL, &before, sizeof before);
	undo->mark = undo->used;
	undo->depth++;
}

void undo_back(struct undo *undo)
{
	assert(undo->depth > 0);
	for (bool begun = false; !begun;) {
		uint64_t record;
		undo->used -= sizeof record;
		memcpy(&record, undo->log + undo->used, sizeof record);
		uint64_t size = record >> AT_BITS;
		void *at = (void *)(uintptr_t)(record & AT_MASK);
		undo->used -= size;
		begun = at == NULL;
		memcpy(begun ? (void *)&undo->mark : at, undo->log + undo->used, size);
	}
	undo->depth--;
}

bool undo_room(const struct undo *undo, uint64_t operations)
{
	return undo->depth == 0 || operations <= (undo->cap - undo->used) / UNDO_OPERATION;
}
