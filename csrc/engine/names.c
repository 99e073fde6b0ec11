/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/names.h"

#define RECORD  ((uint32_t)sizeof(uint16_t)) /* in front of each text: its length, so that the pool can be walked */
#define ID_BITS 18u /* of a cell; the others are of the hash: another one is another name, without a look at the text */
#define ID_UP   ((1u << ID_BITS) - 1) /* an id, one higher: a cell that is not empty is not 0 */

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
	uint32_t cells = 16;
	while (cells < cap + cap / 8)
		cells *= 2;
	assert(cap < ID_UP);
	names->pool = pool;
	names->cap = cap;
	names->cell_mask = cells - 1;
	names->names = arena_raw(arena, cap, sizeof *names->names);
	names->cell = arena_raw(arena, cells, sizeof *names->cell);
	if (arena->base == NULL)
		return;
	assert(pool->table_count < POOL_TABLES);
	pool->tables[pool->table_count++] = names;
	memset(names->cell, 0, cells * sizeof *names->cell);
	names->free_head = FROND_NONE;
	names->fresh = 0;
}

static bool reads(const struct names *names, uint32_t id, const char *text, uint32_t len)
{
	uint32_t mine;
	const char *its = names_text(names, id, &mine);
	return mine == len && memcmp(its, text, len) == 0;
}

static uint32_t home_of(const struct names *names, uint64_t mixed)
{
	return (uint32_t)mixed & names->cell_mask;
}

static uint32_t cell_of(uint64_t mixed, uint32_t id)
{
	return (uint32_t)(mixed >> 32) << ID_BITS | (id + 1);
}

static uint32_t id_in(uint32_t cell)
{
	return (cell & ID_UP) - 1;
}

/* The cell of a name, or the empty one where it belongs: there is one, cells are more than names. */
static uint32_t *find(const struct names *names, const char *text, uint32_t len, uint64_t mixed)
{
	uint32_t at = home_of(names, mixed), tag = cell_of(mixed, 0) & ~ID_UP;
	for (;; at = (at + 1) & names->cell_mask) {
		uint32_t cell = names->cell[at];
		if (cell == 0 || ((cell & ~ID_UP) == tag && reads(names, id_in(cell), text, len)))
			return &names->cell[at];
	}
}

uint32_t names_find(const struct names *names, const char *text, uint32_t len)
{
	uint32_t cell = *find(names, text, len, hash(text, len));
	return cell == 0 ? FROND_NONE : id_in(cell);
}

/* The name whose text lies there; NULL: nobody holds it any more. */
static struct name *owner(const struct pool *pool, uint32_t off, uint32_t len)
{
	uint64_t mixed = hash(pool->text + off, len);
	for (uint32_t i = 0; i < pool->table_count; i++) {
		struct names *names = pool->tables[i];
		for (uint32_t at = home_of(names, mixed); names->cell[at] != 0; at = (at + 1) & names->cell_mask)
			if (names->names[id_in(names->cell[at])].off == off)
				return &names->names[id_in(names->cell[at])];
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
	__builtin_prefetch(&names->cell[home_of(names, mixed)], 1);
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
	uint32_t *cell = find(names, text, len, mixed), id;
	if (*cell != 0) {
		id = id_in(*cell);
		assert(names->names[id].refs < UINT32_MAX);
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
		names->free_head = names->names[id].off;
	uint16_t size = (uint16_t)len;
	memcpy(pool->text + pool->used, &size, sizeof size);
	memcpy(pool->text + pool->used + RECORD, text, len);
	names->names[id] = (struct name){.off = pool->used + RECORD, .refs = 1};
	*cell = cell_of(mixed, id);
	pool->used += RECORD + len;
	return id;
}

bool names_again(struct names *names, uint32_t id, const char *text, uint32_t len)
{
	if (id == FROND_NONE)
		return false;
	struct name *name = &names->names[id];
	if (name->refs == 0 || !reads(names, id, text, len))
		return false;
	assert(name->refs < UINT32_MAX);
	name->refs++;
	return true;
}

static uint64_t hash_of(const struct names *names, uint32_t id)
{
	uint32_t len;
	const char *text = names_text(names, id, &len);
	return hash(text, len);
}

/* Names behind the empty cell that would not be found past it move up. */
static void close_gap(struct names *names, uint32_t gap)
{
	uint32_t mask = names->cell_mask;
	for (uint32_t at = (gap + 1) & mask; names->cell[at] != 0; at = (at + 1) & mask) {
		uint32_t home = home_of(names, hash_of(names, id_in(names->cell[at])));
		if (((at - home) & mask) < ((at - gap) & mask))
			continue;
		names->cell[gap] = names->cell[at];
		names->cell[at] = 0;
		gap = at;
	}
}

void names_drop(struct names *names, uint32_t id)
{
	if (id == FROND_NONE)
		return;
	assert(id < names->cap && names->names[id].refs > 0);
	struct name *name = &names->names[id];
	if (--name->refs > 0)
		return;
	name->refs = 1; /* its text is asked for once more */
	uint32_t at = home_of(names, hash_of(names, id));
	while (id_in(names->cell[at]) != id)
		at = (at + 1) & names->cell_mask;
	names->cell[at] = 0;
	close_gap(names, at);
	*name = (struct name){.off = names->free_head};
	names->free_head = id;
}
