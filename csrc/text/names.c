/* SPDX-License-Identifier: Apache-2.0 */
#include "text/names.h"

#define RECORD ((uint32_t)sizeof(uint16_t)) /* in front of each text: its length, so that the pool can be walked */

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

void pool_layout(struct pool *pool, struct arena *arena, uint32_t bytes)
{
	pool->bytes = bytes;
	pool->text = arena_raw(arena, bytes, 1);
	pool->used = pool->table_count = 0;
}

void names_layout(struct names *names, struct arena *arena, struct pool *pool, uint32_t cap)
{
	uint32_t buckets = 16;
	while (buckets < cap / 2)
		buckets *= 2;
	names->pool = pool;
	names->cap = cap;
	names->bucket_mask = buckets - 1;
	names->names = arena_raw(arena, cap, sizeof *names->names);
	names->bucket = arena_raw(arena, buckets, sizeof *names->bucket);
	if (arena->base == NULL)
		return;
	assert(pool->table_count < POOL_TABLES);
	pool->tables[pool->table_count++] = names;
	memset(names->bucket, 0xff, buckets * sizeof *names->bucket); /* FROND_NONE */
	names->free_head = FROND_NONE;
	names->fresh = 0;
}

static const char *text_of(const struct names *names, const struct name *name, uint32_t *len)
{
	uint16_t size;
	memcpy(&size, names->pool->text + name->off - RECORD, sizeof size);
	*len = size;
	return names->pool->text + name->off;
}

static bool reads(const struct names *names, const struct name *name, const char *text, uint32_t len)
{
	uint32_t mine;
	const char *its = text_of(names, name, &mine);
	return mine == len && memcmp(its, text, len) == 0;
}

const char *names_text(const struct names *names, uint32_t id, uint32_t *len)
{
	assert(id < names->fresh && names->names[id].refs > 0);
	return text_of(names, &names->names[id], len);
}

static uint32_t *bucket_of(const struct names *names, uint64_t mixed)
{
	return &names->bucket[mixed & names->bucket_mask];
}

static uint32_t tag_of(uint64_t mixed)
{
	return (uint32_t)(mixed >> 57);
}

static uint32_t find(const struct names *names, const char *text, uint32_t len, uint64_t mixed)
{
	for (uint32_t id = *bucket_of(names, mixed); id != FROND_NONE; id = names->names[id].chain) {
		const struct name *name = &names->names[id];
		if (name->tag == tag_of(mixed) && reads(names, name, text, len))
			return id;
	}
	return FROND_NONE;
}

uint32_t names_find(const struct names *names, const char *text, uint32_t len)
{
	return find(names, text, len, hash(text, len));
}

/* The name whose text lies there; NULL: nobody holds it any more. */
static struct name *owner(const struct pool *pool, uint32_t off, uint32_t len)
{
	uint64_t mixed = hash(pool->text + off, len);
	for (uint32_t i = 0; i < pool->table_count; i++) {
		struct names *names = pool->tables[i];
		for (uint32_t id = *bucket_of(names, mixed); id != FROND_NONE; id = names->names[id].chain)
			if (names->names[id].off == off)
				return &names->names[id];
	}
	return NULL;
}

static void compact(struct pool *pool)
{
	uint32_t to = 0;
	uint16_t len;
	for (uint32_t from = 0; from < pool->used; from += RECORD + len) {
		memcpy(&len, pool->text + from, sizeof len);
		struct name *name = owner(pool, from + RECORD, len);
		if (name == NULL)
			continue;
		memmove(pool->text + to, pool->text + from, RECORD + len);
		name->off = to + RECORD;
		to += RECORD + len;
	}
	pool->used = to;
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
	struct pool *pool = names->pool;
	uint32_t id = find(names, text, len, mixed);
	if (id != FROND_NONE) {
		assert(names->names[id].refs < NAME_REFS_MAX);
		names->names[id].refs++;
		return id;
	}
	id = names->free_head != FROND_NONE ? names->free_head : names->fresh;
	if (id == names->cap)
		return FROND_NONE;
	if (RECORD + len > pool->bytes - pool->used)
		compact(pool);
	if (RECORD + len > pool->bytes - pool->used)
		return FROND_NONE;
	if (id == names->fresh)
		names->fresh++;
	else
		names->free_head = names->names[id].chain;
	uint32_t *home = bucket_of(names, mixed);
	uint16_t size = (uint16_t)len;
	memcpy(pool->text + pool->used, &size, sizeof size);
	memcpy(pool->text + pool->used + RECORD, text, len);
	names->names[id] =
		(struct name){.off = pool->used + RECORD, .refs = 1, .tag = tag_of(mixed) & 0x7f, .chain = *home};
	*home = id;
	pool->used += RECORD + len;
	return id;
}

bool names_again(struct names *names, uint32_t id, const char *text, uint32_t len)
{
	if (id == FROND_NONE)
		return false;
	struct name *name = &names->names[id];
	if (name->refs == 0 || !reads(names, name, text, len))
		return false;
	assert(name->refs < NAME_REFS_MAX);
	name->refs++;
	return true;
}

void names_drop(struct names *names, uint32_t id)
{
	if (id == FROND_NONE)
		return;
	assert(id < names->cap && names->names[id].refs > 0);
	struct name *name = &names->names[id];
	if (--name->refs > 0)
		return;
	uint32_t len;
	const char *text = text_of(names, name, &len);
	uint32_t *link = bucket_of(names, hash(text, len));
	while (*link != id)
		link = &names->names[*link].chain;
	*link = name->chain;
	*name = (struct name){.chain = names->free_head};
	names->free_head = id;
}
