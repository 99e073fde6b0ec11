/* SPDX-License-Identifier: Apache-2.0 */
#include "text/names.h"

struct record { /* in front of each text, so that the pool can be walked */
	uint32_t id, len;
};

static uint64_t hash(const char *text, uint32_t len)
{
	uint64_t mixed = len * 0x9e3779b97f4a7c15ull;
	while (len > 0) { /* eight bytes at a time, wherever they lie; the same on every machine of one byte order */
		uint64_t word = 0;
		uint32_t bytes = len < sizeof word ? len : (uint32_t)sizeof word;
		memcpy(&word, text, bytes);
		mixed = (mixed ^ word) * 0xff51afd7ed558ccdull;
		mixed ^= mixed >> 32;
		text += bytes;
		len -= bytes;
	}
	return mixed;
}

void names_layout(struct names *names, struct arena *arena, uint32_t cap, uint32_t bytes)
{
	uint32_t buckets = 16;
	while (buckets < cap)
		buckets *= 2;
	names->cap = cap;
	names->bytes = bytes;
	names->bucket_mask = buckets - 1;
	names->names = arena_raw(arena, cap, sizeof *names->names);
	names->bucket = arena_raw(arena, buckets, sizeof *names->bucket);
	names->pool = arena_raw(arena, bytes, 1);
	if (arena->base == NULL)
		return;
	for (uint32_t i = 0; i < buckets; i++)
		names->bucket[i] = FROND_NONE;
	names->free_head = FROND_NONE;
	names->fresh = names->used = 0;
}

const char *names_text(const struct names *names, uint32_t id, uint32_t *len)
{
	assert(id < names->fresh && names->names[id].refs > 0);
	*len = names->names[id].len;
	return names->pool + names->names[id].off;
}

static uint32_t *bucket_of(const struct names *names, uint64_t mixed)
{
	return &names->bucket[mixed & names->bucket_mask];
}

static uint16_t tag_of(uint64_t mixed)
{
	return (uint16_t)(mixed >> 48);
}

static uint32_t find(const struct names *names, const char *text, uint32_t len, uint64_t mixed)
{
	for (uint32_t id = *bucket_of(names, mixed); id != FROND_NONE; id = names->names[id].chain) {
		const struct name *name = &names->names[id];
		if (name->tag == tag_of(mixed) && name->len == len && memcmp(names->pool + name->off, text, len) == 0)
			return id;
	}
	return FROND_NONE;
}

uint32_t names_find(const struct names *names, const char *text, uint32_t len)
{
	return find(names, text, len, hash(text, len));
}

/* A record is alive when its name lies where the record does. */
static void compact(struct names *names)
{
	uint32_t to = 0;
	struct record record;
	for (uint32_t from = 0; from < names->used; from += (uint32_t)sizeof record + record.len) {
		memcpy(&record, names->pool + from, sizeof record);
		struct name *name = &names->names[record.id];
		if (name->refs == 0 || name->off != from + sizeof record)
			continue;
		memmove(names->pool + to, names->pool + from, sizeof record + record.len);
		name->off = to + (uint32_t)sizeof record;
		to += (uint32_t)sizeof record + record.len;
	}
	names->used = to;
}

uint64_t names_seek(const struct names *names, const char *text, uint32_t len)
{
	uint64_t mixed = hash(text, len);
	__builtin_prefetch(bucket_of(names, mixed), 1);
	return mixed;
}

uint32_t names_hold(struct names *names, const char *text, uint32_t len)
{
	return names_hold_at(names, hash(text, len), text, len);
}

uint32_t names_hold_at(struct names *names, uint64_t mixed, const char *text, uint32_t len)
{
	assert(len > 0 && len <= UINT16_MAX);
	uint32_t id = find(names, text, len, mixed);
	if (id != FROND_NONE) {
		names->names[id].refs++;
		return id;
	}
	uint64_t bytes = sizeof(struct record) + (uint64_t)len;
	if (bytes > names->bytes - names->used)
		compact(names);
	id = names->free_head != FROND_NONE ? names->free_head : names->fresh;
	if (id == names->cap || bytes > names->bytes - names->used)
		return FROND_NONE;
	if (id == names->fresh)
		names->fresh++;
	else
		names->free_head = names->names[id].chain;
	uint32_t *home = bucket_of(names, mixed);
	struct record record = {.id = id, .len = len};
	memcpy(names->pool + names->used, &record, sizeof record);
	memcpy(names->pool + names->used + sizeof record, text, len);
	names->names[id] = (struct name){.off = names->used + (uint32_t)sizeof record,
					 .len = (uint16_t)len,
					 .tag = tag_of(mixed),
					 .refs = 1,
					 .chain = *home};
	*home = id;
	names->used += (uint32_t)bytes;
	return id;
}

bool names_again(struct names *names, uint32_t id, const char *text, uint32_t len)
{
	if (id == FROND_NONE)
		return false;
	struct name *name = &names->names[id];
	if (name->refs == 0 || name->len != len || memcmp(names->pool + name->off, text, len) != 0)
		return false;
	name->refs++;
	return true;
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
	uint32_t *link = bucket_of(names, hash(names->pool + name->off, name->len));
	while (*link != id)
		link = &names->names[*link].chain;
	*link = name->chain;
	*name = (struct name){.chain = names->free_head};
	names->free_head = id;
}
