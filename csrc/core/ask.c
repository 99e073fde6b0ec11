/* SPDX-License-Identifier: Apache-2.0 */
#include "core/ask.h"

/* Exceptions are spread over the slots, so where one would be by its slot is near to where it is; from there on the steps
 * double until the slot is passed, and the last one is halved. */
const struct frond_room *ask_room(const struct ask *ask, uint32_t slot)
{
	const struct frond_room *room = ask->room;
	if (ask->room_count == 0 || slot < room[0].slot || slot > room[ask->room_count - 1].slot)
		return NULL;
	uint32_t last = room[ask->room_count - 1].slot;
	uint32_t low = (uint32_t)((uint64_t)slot * (ask->room_count - 1) / (last > 0 ? last : 1)), high = low + 1;
	for (uint32_t step = 1; low > 0 && room[low].slot >= slot; step *= 2)
		low -= min_u32(low, step);
	for (uint32_t step = 1; high < ask->room_count && room[high].slot < slot; step *= 2)
		high += min_u32(ask->room_count - high, step);
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (ask->room[middle].slot < slot)
			low = middle + 1;
		else
			high = middle;
	}
	return low < ask->room_count && ask->room[low].slot == slot ? &ask->room[low] : NULL;
}

static uint32_t bound_of(const struct frond_room *room, enum room_when when)
{
	uint32_t rule = (uint32_t)room->ever - room->unavailable;
	return when == ROOM_EVER ? room->ever : when == ROOM_RULE ? rule : min_u32(room->today, rule);
}

/* The smallest bound of the slot's templates. */
uint32_t ask_room_at(const struct ask *ask, uint32_t slot, enum room_when when)
{
	uint32_t least = UINT32_MAX;
	const struct frond_room *room = ask_room(ask, slot), *end = ask->room + ask->room_count;
	for (; room != NULL && room < end && room->slot == slot; room++)
		least = min_u32(least, bound_of(room, when));
	return least;
}

uint32_t ask_room_of(const struct ask *ask, uint32_t slot, uint32_t pod_template, enum room_when when)
{
	const struct frond_room *room = ask_room(ask, slot), *end = ask->room + ask->room_count;
	for (; room != NULL && room < end && room->slot == slot; room++)
		if (room->pod_template == pod_template)
			return bound_of(room, when);
	return UINT32_MAX;
}

bool ask_tells_apart(const struct ask *ask, uint32_t count)
{
	for (uint32_t first = 0, end; first < ask->room_count; first = end) {
		const struct frond_room *room = &ask->room[first];
		for (end = first; end < ask->room_count && ask->room[end].slot == room->slot; end++)
			if (ask->room[end].today != room->today || ask->room[end].ever != room->ever ||
			    ask->room[end].unavailable != room->unavailable)
				return true;
		if (end - first != count)
			return true;
	}
	return false;
}
