/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hold.h"

#include "core/sort.h"

#define INSERTED_MOST 64u /* that find their place one by one; more are sorted with all the others */

static uint32_t *bucket_of(const struct holds *holds, uint32_t slot)
{
	return &holds->bucket[slot * 0x9e3779b1u >> 8 & holds->bucket_mask];
}

void holds_layout(struct holds *holds, struct arena *arena, uint32_t cap)
{
	uint32_t buckets = 1;
	while (buckets < cap)
		buckets *= 2;
	holds->cap = cap;
	holds->bucket_mask = buckets - 1;
	holds->all = arena_raw(arena, cap, sizeof *holds->all);
	holds->order = arena_raw(arena, cap, sizeof *holds->order);
	holds->bucket = arena_raw(arena, buckets, sizeof *holds->bucket);
	if (arena->base == NULL)
		return;
	for (uint32_t i = 0; i < buckets; i++)
		holds->bucket[i] = FROND_NONE;
	holds->free_head = FROND_NONE;
	holds->fresh = 0;
	holds->soonest = INT64_MAX;
}

/* ---- finding --------------------------------------------------------------------------------------------------------- */

uint32_t holds_seek(const struct holds *holds, struct frond_key gang, uint32_t rank)
{
	uint32_t low = 0, high = holds->used;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct hold *hold = &holds->all[holds->order[middle]];
		bool before = key_equal(hold->gang, gang) ? hold->rank < rank : key_before(hold->gang, gang);
		if (before)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint32_t holds_find(const struct holds *holds, struct frond_key gang, uint32_t rank)
{
	uint32_t at = holds_seek(holds, gang, rank);
	if (at == holds->used)
		return FROND_NONE;
	const struct hold *hold = &holds->all[holds->order[at]];
	return key_equal(hold->gang, gang) && hold->rank == rank ? at : FROND_NONE;
}

void holds_of(const struct holds *holds, struct frond_key gang, uint32_t *first, uint32_t *end)
{
	*first = *end = 0;
	if (holds->used == 0)
		return;
	*first = holds_seek(holds, gang, 0);
	*end = *first;
	if (*first < holds->used && key_equal(holds->all[holds->order[*first]].gang, gang))
		*end = holds_seek(holds, gang, FROND_NONE);
}

uint32_t holds_on(const struct holds *holds, uint32_t slot)
{
	uint32_t id = *bucket_of(holds, slot);
	while (id != FROND_NONE && holds->all[id].slot != slot)
		id = holds->all[id].next;
	return id;
}

uint32_t holds_mask(const struct holds *holds, uint32_t slot)
{
	uint32_t mask = 0;
	for (uint32_t id = *bucket_of(holds, slot); id != FROND_NONE; id = holds->all[id].next)
		if (holds->all[id].slot == slot && !key_equal(holds->all[id].gang, holds->lifted))
			mask |= holds->all[id].mask;
	return mask;
}

/* ---- coming and going ------------------------------------------------------------------------------------------------ */

/* Onto its node and into the counts. */
static void link_hold(struct holds *holds, uint32_t id)
{
	struct hold *hold = &holds->all[id];
	uint32_t *home = bucket_of(holds, hold->slot);
	hold->next = *home;
	hold->ended = 0;
	*home = id;
	if (hold->deadline_ms == 0)
		return;
	holds->timed++;
	holds->soonest = holds->soonest < (int64_t)hold->deadline_ms ? holds->soonest : (int64_t)hold->deadline_ms;
}

void holds_end(struct holds *holds, uint32_t id)
{
	struct hold *hold = &holds->all[id];
	uint32_t *link = bucket_of(holds, hold->slot);
	assert(!hold->ended);
	while (*link != id)
		link = &holds->all[*link].next;
	*link = hold->next;
	holds->timed -= hold->deadline_ms != 0;
	hold->ended = 1;
	hold->next = holds->free_head;
	holds->free_head = id;
}

void holds_sweep(struct holds *holds, uint32_t first, uint32_t end)
{
	uint32_t to = first;
	for (uint32_t at = first; at < end; at++)
		if (!holds->all[holds->order[at]].ended)
			holds->order[to++] = holds->order[at];
	memmove(&holds->order[to], &holds->order[end], (holds->used - end) * sizeof *holds->order);
	holds->used -= end - to;
}

uint32_t holds_back(struct holds *holds)
{
	uint32_t id = holds->free_head;
	struct hold *hold = &holds->all[id];
	holds->free_head = hold->next;
	link_hold(holds, id);
	uint32_t at = holds_seek(holds, hold->gang, hold->rank);
	memmove(&holds->order[at + 1], &holds->order[at], (holds->used++ - at) * sizeof *holds->order);
	holds->order[at] = id;
	return id;
}

static bool hold_before(const void *context, uint32_t a, uint32_t b)
{
	const struct hold *all = context, *one = &all[a], *other = &all[b];
	if (!key_equal(one->gang, other->gang))
		return key_before(one->gang, other->gang);
	return one->rank != other->rank ? one->rank < other->rank : one->number < other->number;
}

/* Of the new ones, which stand sorted behind the old ones, the first for whose rank there is another before it in the list;
 * FROND_NONE: none. */
static uint32_t first_twice(const struct holds *holds, uint32_t count)
{
	uint32_t first = FROND_NONE;
	for (uint32_t i = 1; i < count; i++) {
		const struct hold *hold = &holds->all[holds->order[holds->used + i]],
				  *before = &holds->all[holds->order[holds->used + i - 1]];
		if (key_equal(hold->gang, before->gang) && hold->rank == before->rank)
			first = min_u32(first, (uint32_t)hold->number);
	}
	return first;
}

/* Record number `number` of a list. */
static void enter(struct holds *holds, const struct frond_hold *from, uint32_t number)
{
	uint32_t id = holds->free_head != FROND_NONE ? holds->free_head : holds->fresh;
	if (id == holds->fresh)
		holds->fresh++;
	else
		holds->free_head = holds->all[id].next;
	holds->all[id] = (struct hold){.gang = from->gang,
				       .deadline_ms = (uint64_t)from->deadline_ms & HOLD_DEADLINE_MASK,
				       .number = number & HOLD_NUMBER_MASK,
				       .rank = from->rank,
				       .slot = from->slot,
				       .mask = (uint16_t)from->gpu_mask};
	holds->order[holds->used + number] = id;
	link_hold(holds, id);
}

/* The new ones, which stand sorted behind the old ones, find their places among them. */
static void merge(struct holds *holds, uint32_t count)
{
	if (count > INSERTED_MOST) {
		holds->used += count;
		sort_ids(holds->order, holds->used, hold_before, holds->all);
		return;
	}
	for (; count > 0; count--) {
		uint32_t id = holds->order[holds->used];
		uint32_t at = holds_seek(holds, holds->all[id].gang, holds->all[id].rank);
		memmove(&holds->order[at + 1], &holds->order[at], (holds->used++ - at) * sizeof *holds->order);
		holds->order[at] = id;
	}
}

/* Enters them, and leaves their ids sorted behind the order; false: see holds_add(). */
static bool enter_all(struct holds *holds, const struct frond_hold *list, uint32_t count, uint32_t *entered,
		      uint32_t *bad, bool *twice)
{
	uint32_t at = 0;
	assert(count <= holds->cap - holds->used && key_zero(holds->lifted));
	for (*twice = false; at < count; at++) {
		*twice = holds_find(holds, list[at].gang, list[at].rank) != FROND_NONE;
		if (*twice || (holds_mask(holds, list[at].slot) & list[at].gpu_mask) != 0)
			break;
		enter(holds, &list[at], at);
	}
	sort_ids(holds->order + holds->used, at, hold_before, holds->all);
	uint32_t first = first_twice(holds, at);
	*entered = at;
	*bad = min_u32(first, at);
	*twice |= first != FROND_NONE;
	return *bad == count;
}

static void leave_all(struct holds *holds, uint32_t count, int64_t soonest)
{
	for (uint32_t i = 0; i < count; i++)
		holds_end(holds, holds->order[holds->used + i]);
	holds->soonest = soonest;
}

bool holds_add(struct holds *holds, const struct frond_hold *list, uint32_t count, uint32_t *bad, bool *twice)
{
	int64_t soonest = holds->soonest;
	uint32_t entered;
	bool good = enter_all(holds, list, count, &entered, bad, twice);
	if (good)
		merge(holds, count);
	else
		leave_all(holds, entered, soonest);
	return good;
}

bool holds_try(struct holds *holds, const struct frond_hold *list, uint32_t count, uint32_t *bad, bool *twice)
{
	int64_t soonest = holds->soonest;
	uint32_t entered;
	bool good = enter_all(holds, list, count, &entered, bad, twice);
	leave_all(holds, entered, soonest);
	return good;
}
