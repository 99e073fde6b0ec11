/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - every name once: a string becomes an id that stays the same while somebody holds it.
 * The text is in a pool of bytes that several tables may share, each with ids of its own; when it is full, live names move
 * together inside it. Ids do not change.
 */
#ifndef FROND_ENGINE_NAMES_H
#define FROND_ENGINE_NAMES_H

#include "core/base.h"

struct name {
	uint32_t off;  /* of the text in the pool; of a free one: the next of the free list */
	uint32_t refs; /* 0: free */
};

struct names {
	struct pool *pool;
	struct name *names;
	uint32_t *cell; /* hash → id and a part of the hash, or the next cell; 0: empty */
	uint32_t cap, cell_mask;
	uint32_t free_head; /* ids given back */
	uint32_t fresh;     /* ids from here on were never used */
};

#define POOL_TABLES 2u

struct pool {
	char *text; /* records one after the other: length, text */
	uint32_t bytes, used;
	struct names *tables[POOL_TABLES];
	uint32_t table_count;
};

void pool_layout(struct pool *pool, struct arena *arena, uint32_t bytes);
void names_layout(struct names *names, struct arena *arena, struct pool *pool, uint32_t cap);

/* FROND_NONE when nobody holds that name. */
uint32_t names_find(const struct names *names, const char *text, uint32_t len);
/* Holds a name; FROND_NONE when there is no room for it. */
uint32_t names_hold(struct names *names, const char *text, uint32_t len);
/* The same in two steps, for a caller that has something else to do while memory answers: a hash, then hold it. */
uint64_t names_seek(const struct names *names, const char *text, uint32_t len);
uint32_t names_hold_at(struct names *names, uint64_t hash, const char *text, uint32_t len);
/* Holds it once more when it is this very text; FROND_NONE is allowed. False: it is not. Cheaper than names_hold(). */
bool names_again(struct names *names, uint32_t id, const char *text, uint32_t len);
/* Lets go of it; FROND_NONE is allowed. */
void names_drop(struct names *names, uint32_t id);

/* Not NUL-terminated; valid until the next names_hold(). */
static inline const char *names_text(const struct names *names, uint32_t id, uint32_t *len)
{
	assert(id < names->fresh && names->names[id].refs > 0);
	const char *text = names->pool->text + names->names[id].off;
	uint16_t size;
	memcpy(&size, text - sizeof size, sizeof size);
	*len = size;
	return text;
}

#endif
