/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_room.c - the nodes on which something else than GPUs decides how many members fit, during a plan. Only they, their
 * leaves and their spines are marked: everything else keeps its counts, its shape and its likeness to others.
 */
#include "core/place_work.h"

/* today << 4 | ever, inverted, so that 0 says: no exception. A nibble of 15 is no bound; where today has none but ever has,
 * today is ever, so that code is free to say that the list has to be asked. */
#define NIBBLE  15u
#define LISTED  ((uint8_t) ~(NIBBLE << 4))
#define WITHOUT 0u

static uint32_t nibble(uint32_t members)
{
	return min_u32(members, NIBBLE);
}

static uint8_t code_of(const struct place_work *work, const struct frond_room *room)
{
	uint32_t ever = room->ever, today = min_u32(room->today, ever);
	if (work->gang.templates > 1 || ever == NIBBLE || today == NIBBLE)
		return LISTED;
	return (uint8_t) ~(nibble(today) << 4 | nibble(ever));
}

/* Calls of one plan: marks, and takes the marks away. A node that takes whatever its GPUs allow is no exception. */
static void mark(struct place_work *work, bool there)
{
	const struct ask *ask = work->ask;
	const struct fabric *fabric = work->fabric;
	for (uint32_t i = 0; i < ask->room_count; i++) {
		const struct frond_room *room = &ask->room[i];
		uint32_t position = fabric->position[room->slot], leaf = fabric->leaf_of[position];
		uint8_t code = code_of(work, room);
		if (code == WITHOUT)
			continue;
		work->limit[position] = there ? code : WITHOUT;
		if (leaf == FROND_NONE)
			continue;
		work->leaf_excepted[leaf] = there;
		work->spine_excepted[fabric->leaf_spine[leaf]] = there;
	}
}

void place_rooms_mark(struct place_work *work)
{
	mark(work, true);
}

void place_rooms_clear(struct place_work *work)
{
	mark(work, false);
}

uint32_t place_room_listed(const struct place_work *work, uint32_t position, bool today)
{
	uint32_t slot = work->fabric->order[position], code = (uint8_t)~work->limit[position];
	if (work->limit[position] == LISTED)
		return today ? ask_room_today(work->ask, slot) : ask_room_ever(work->ask, slot);
	uint32_t members = today ? code >> 4 : code & NIBBLE;
	return members == NIBBLE ? UINT32_MAX : members;
}
