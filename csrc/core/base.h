/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base.h - what every part of the core stands on: an arena over the caller's memory, bits, asserts.
 * Asserts are for our own guarantees and stay on in release; input from outside is checked and answered with a code.
 */
#ifndef FROND_CORE_BASE_H
#define FROND_CORE_BASE_H

#include "frond.h"

#ifdef NDEBUG
#error "asserts stay on: do not define NDEBUG"
#endif
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ARENA_ALIGN 16u

/* Lays arrays out one after the other. With base NULL it only counts, so one function both sizes and places. */
struct arena {
	uint8_t *base;
	uint64_t used;
};

static inline void *arena_raw(struct arena *arena, uint64_t count, uint64_t size)
{
	assert(size > 0 && count <= UINT64_MAX / 4 / size);
	uint64_t at = (arena->used + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
	arena->used = at + count * size;
	return arena->base == NULL ? NULL : arena->base + at;
}

/* Zeroed. What is written before it is read takes arena_raw(): memory that is never used is then never touched. */
static inline void *arena_take(struct arena *arena, uint64_t count, uint64_t size)
{
	void *memory = arena_raw(arena, count, size);
	if (memory != NULL)
		memset(memory, 0, count * size);
	return memory;
}

static inline uint32_t
bits_count(uint32_t mask) /* in parallel: not every machine that we build for counts bits itself */
{
	mask -= mask >> 1 & 0x55555555u;
	mask = (mask & 0x33333333u) + (mask >> 2 & 0x33333333u);
	return ((mask + (mask >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24;
}

/* The lowest `count` bits of mask. */
static inline uint32_t bits_lowest(uint32_t mask, uint32_t count)
{
	uint32_t out = 0;
	for (; count > 0; count--) {
		assert(mask != 0);
		uint32_t low = mask & (~mask + 1);
		out |= low;
		mask ^= low;
	}
	return out;
}

static inline uint32_t bits_first(uint32_t count)
{
	assert(count <= FROND_GPUS_MAX);
	return (1u << count) - 1u;
}

static inline uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static inline uint32_t max_u32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static inline bool key_equal(struct frond_key a, struct frond_key b)
{
	return a.hi == b.hi && a.lo == b.lo;
}

static inline bool key_before(struct frond_key a, struct frond_key b)
{
	return a.hi != b.hi ? a.hi < b.hi : a.lo < b.lo;
}

static inline bool key_zero(struct frond_key key)
{
	return key.hi == 0 && key.lo == 0;
}

#endif
