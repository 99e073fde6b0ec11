/* SPDX-License-Identifier: Apache-2.0 */
#include "core/ask.h"

const struct frond_room *ask_room(const struct ask *ask, uint32_t slot)
{
	uint32_t low = 0, high = ask->room_count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (ask->room[middle].slot < slot)
			low = middle + 1;
		else
			high = middle;
	}
	return low < ask->room_count && ask->room[low].slot == slot ? &ask->room[low] : NULL;
}

uint32_t ask_room_ever(const struct ask *ask, uint32_t slot)
{
	uint32_t least = UINT32_MAX;
	const struct frond_room *room = ask_room(ask, slot), *end = ask->room + ask->room_count;
	for (; room != NULL && room < end && room->slot == slot; room++)
		least = min_u32(least, room->ever);
	return least;
}

uint32_t ask_room_today(const struct ask *ask, uint32_t slot)
{
	uint32_t least = ask_room_ever(ask, slot);
	const struct frond_room *room = ask_room(ask, slot), *end = ask->room + ask->room_count;
	for (; room != NULL && room < end && room->slot == slot; room++)
		least = min_u32(least, room->today);
	return least;
}
