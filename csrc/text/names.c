/* SPDX-License-Identifier: Apache-2.0 */
#include "text/names.h"

static uint32_t hash(const struct names *names, const char *text, uint32_t len)
{
	uint64_t mixed = 0xcbf29ce484222325ull; /* FNV-1a */
	for (uint32_t i = 0; i < len; i++)
		mixed = (mixed ^ (uint8_t)text[i]) * 0x100000001b3ull;
	return (uint32_t)(mixed ^ mixed >> 32) & names->bucket_mask;
}

void names_layout(struct names *names, struct arena *arena, uint32_t cap, uint32_t bytes)
{
	uint32_t buckets = 16;
	while (buckets < cap)
		buckets *= 2;
	names->cap = cap;
	names->bytes = bytes;
	names->bucket_mask = buckets - 1;
	names->names = arena_take(arena, cap, sizeof *names->names);
	names->bucket = arena_take(arena, buckets, sizeof *names->bucket);
	names->half[0] = arena_take(arena, bytes, 1);
	names->half[1] = arena_take(arena, bytes, 1);
	if (arena->base == NULL)
		return;
	for (uint32_t i = 0; i < buckets; i++)
		names->bucket[i] = FROND_NONE;
	for (uint32_t i = 0; i < cap; i++)
		names->names[i] = (struct name){.chain = i + 1 < cap ? i + 1 : FROND_NONE};
	names->free_head = 0;
}

const char *names_text(const struct names *names, uint32_t id, uint32_t *len)
{
	assert(id < names->cap && names->names[id].refs > 0);
	*len = names->names[id].len;
	return names->half[names->current] + names->names[id].off;
}

uint32_t names_find(const struct names *names, const char *text, uint32_t len)
{
	for (uint32_t id = names->bucket[hash(names, text, len)]; id != FROND_NONE; id = names->names[id].chain) {
		uint32_t have_len;
		const char *have = names_text(names, id, &have_len);
		if (have_len == len && memcmp(have, text, len) == 0)
			return id;
	}
	return FROND_NONE;
}

static void compact(struct names *names)
{
	const char *from = names->half[names->current];
	char *to = names->half[1 - names->current];
	uint32_t used = 0;
	for (uint32_t id = 0; id < names->cap; id++) {
		struct name *name = &names->names[id];
		if (name->refs == 0)
			continue;
		memcpy(to + used, from + name->off, name->len);
		name->off = used;
		used += name->len;
	}
	names->current = 1 - names->current;
	names->used = used;
}

uint32_t names_hold(struct names *names, const char *text, uint32_t len)
{
	assert(len > 0);
	uint32_t id = names_find(names, text, len);
	if (id != FROND_NONE) {
		names->names[id].refs++;
		return id;
	}
	if (len > names->bytes - names->used)
		compact(names);
	id = names->free_head;
	if (id == FROND_NONE || len > names->bytes - names->used)
		return FROND_NONE;
	names->free_head = names->names[id].chain;
	uint32_t home = hash(names, text, len);
	names->names[id] = (struct name){.off = names->used, .len = len, .refs = 1, .chain = names->bucket[home]};
	names->bucket[home] = id;
	memcpy(names->half[names->current] + names->used, text, len);
	names->used += len;
	return id;
}

void names_drop(struct names *names, uint32_t id)
{
	if (id == FROND_NONE)
		return;
	assert(id < names->cap && names->names[id].refs > 0);
	struct name *name = &names->names[id];
	if (name->refs > 1) {
		name->refs--;
		return;
	}
	uint32_t *link = &names->bucket[hash(names, names->half[names->current] + name->off, name->len)];
	while (*link != id)
		link = &names->names[*link].chain;
	*link = name->chain;
	*name = (struct name){.chain = names->free_head};
	names->free_head = id;
}
