/* SPDX-License-Identifier: Apache-2.0 */
#include "core/undo.h"

#define UNDO_PODS 2048u /* operations that the log has room for in a large engine */

struct record {         /* behind its bytes, so that the log is read from its end */
	void *at;       /* NULL: a what-if begins here; its bytes are the mark before */
	uint32_t bytes; /* of the log that belong to it, without the record */
	uint32_t size;  /* of them, to be written back */
};

void undo_layout(struct undo *undo, struct arena *arena, uint32_t pods)
{
	undo->cap = (uint64_t)UNDO_OPERATION * (64 + min_u32(pods, UNDO_PODS));
	undo->log = arena_raw(arena, undo->cap, 1);
}

static void append(struct undo *undo, void *at, const void *bytes, uint32_t size)
{
	uint32_t padded = (size + 7) / 8 * 8;
	assert(undo->used + padded + sizeof(struct record) <= undo->cap);
	memcpy(undo->log + undo->used, bytes, size);
	struct record record = {.at = at, .bytes = padded, .size = size};
	memcpy(undo->log + undo->used + padded, &record, sizeof record);
	undo->used += padded + sizeof record;
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
		struct record record;
		undo->used -= sizeof record;
		memcpy(&record, undo->log + undo->used, sizeof record);
		undo->used -= record.bytes;
		begun = record.at == NULL;
		memcpy(begun ? &undo->mark : record.at, undo->log + undo->used, record.size);
	}
	undo->depth--;
}

bool undo_room(const struct undo *undo, uint64_t operations)
{
	return undo->depth == 0 || operations <= (undo->cap - undo->used) / UNDO_OPERATION;
}
