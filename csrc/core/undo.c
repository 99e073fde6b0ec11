/* SPDX-License-Identifier: Apache-2.0 */
#include "core/undo.h"

#define UNDO_SPARE 32768u /* bytes beside those for the largest gang: to begin, and for small engines */

#define KIND_MASK  ((1u << UNDO_KIND_BITS) - 1)
#define WORDS_MASK ((1u << UNDO_WORDS_BITS) - 1)

_Static_assert(UNDO_KINDS <= KIND_MASK + 1, "kinds of records");

void undo_layout(struct undo *undo, struct arena *arena, uint32_t pods, uint32_t holds)
{
	uint64_t bytes = (uint64_t)UNDO_RESERVING * min_u32(pods, FROND_MEMBERS_MAX) +
			 (uint64_t)UNDO_HOLD * min_u32(holds, FROND_MEMBERS_MAX) + UNDO_SPARE;
	undo->cap = bytes / sizeof *undo->log;
	undo->log = arena_raw(arena, undo->cap, sizeof *undo->log);
}

void undo_own(struct undo *undo, enum undo_kind first, enum undo_kind last, undo_taker *take_back, void *owner)
{
	for (uint32_t kind = first; kind <= (uint32_t)last; kind++) {
		undo->owners[kind].take_back = take_back;
		undo->owners[kind].owner = owner;
	}
}

void undo_append(struct undo *undo, enum undo_kind kind, uint64_t payload, const void *content, uint32_t words)
{
	assert(payload >> UNDO_PAYLOAD_BITS == 0 && words <= WORDS_MASK);
	assert(undo->used + words + 1 <= undo->cap);
	if (words > 0)
		memcpy(undo->log + undo->used, content, words * sizeof *undo->log);
	undo->used += words;
	undo->log[undo->used++] = payload << (UNDO_KIND_BITS + UNDO_WORDS_BITS) | words << UNDO_KIND_BITS | kind;
}

void undo_save(struct undo *undo, uint64_t *at)
{
	if (undo_logs(undo))
		undo_append(undo, UNDO_WORD, (uint64_t)(uintptr_t)at, at, 1);
}

void undo_begin(struct undo *undo)
{
	undo_append(undo, UNDO_BEGIN, 0, NULL, 0);
	undo->depth++;
}

/* The last record, which tells its kind. */
static enum undo_kind take_back(struct undo *undo)
{
	uint64_t header = undo->log[undo->used - 1], payload = header >> (UNDO_KIND_BITS + UNDO_WORDS_BITS);
	uint32_t words = (uint32_t)(header >> UNDO_KIND_BITS) & WORDS_MASK;
	enum undo_kind kind = (enum undo_kind)(header & KIND_MASK);
	undo->used -= 1 + words;
	const uint64_t *content = undo->log + undo->used;
	if (kind == UNDO_WORD)
		*(uint64_t *)(uintptr_t)payload = *content;
	else if (kind != UNDO_BEGIN)
		undo->owners[kind].take_back(undo->owners[kind].owner, kind, payload, content, words);
	return kind;
}

void undo_back(struct undo *undo)
{
	assert(undo->depth > 0);
	while (take_back(undo) != UNDO_BEGIN)
		;
	undo->depth--;
}

void undo_rewind(struct undo *undo, uint64_t used)
{
	assert(undo->depth > 0);
	while (undo->used > used) {
		enum undo_kind kind = take_back(undo);
		assert(kind != UNDO_BEGIN);
	}
	assert(undo->used == used);
}

bool undo_room_bytes(const struct undo *undo, uint64_t bytes)
{
	return undo->depth == 0 || bytes <= (undo->cap - undo->used) * sizeof *undo->log;
}

bool undo_room(const struct undo *undo, uint64_t operations)
{
	assert(operations <= UINT32_MAX);
	return undo_room_bytes(undo, UNDO_OPERATION * operations);
}
