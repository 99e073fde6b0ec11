/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_room.c - the nodes on which something else than GPUs decides how many members fit, during a plan. Only they, their
 * leaves and their spines are marked: everything else keeps its counts, its shape and its likeness to others.
 *
 * A node that takes nobody is closed to this gang: for the time of the plan it is left out of the counts of its leaf and
 * its spine, which then tell the truth again. Where a node takes some, but fewer than its GPUs allow, the leaf is counted
 * node by node.
 */
#include "core/place_work.h"

/* today << 4 | ever, inverted, so that 0 says: no exception. A nibble of 15 is no bound; where today has none but ever has,
 * today is ever, so those codes are free: with 0 the list has to be asked, with 1 to 14 that is ever, but nobody has been
 * let in for long, so that it is nothing for the rule and nothing today. */
#define NIBBLE  15u
#define LISTED  ((uint8_t) ~(NIBBLE << 4))
#define WITHOUT 0u

static uint8_t long_code(uint32_t ever)
{
	return (uint8_t) ~(ever == 0 ? 0 : NIBBLE << 4 | ever);
}

static uint8_t code_of(const struct place_work *work, const struct frond_room *room)
{
	const struct node *node = &work->nodes[room->slot];
	uint32_t ever = room->ever, today = min_u32(room->today, ever), each = max_u32(work->gang.size, 1);
	if (today >= node_free_count(node) / each && ever >= node->gpus / each && room->unavailable == 0)
		return WITHOUT; /* GPUs decide after all */
	if (work->gang.templates > 1 || ever == NIBBLE || today == NIBBLE)
		return LISTED;
	if (room->unavailable > 0) {
		ever = min_u32(ever, node->gpus / each);
		return room->unavailable < room->ever || ever >= NIBBLE ? LISTED : long_code(ever);
	}
	return (uint8_t) ~(min_u32(today, NIBBLE) << 4 | min_u32(ever, NIBBLE));
}

/* The node leaves the counts of its leaf and spine (one = -1, modulo 2^32), or comes back. */
static void count(struct place_work *work, uint32_t leaf, const struct node *node, uint32_t one)
{
	if (!node_open(node))
		return; /* it is in none of them */
	struct leaf_sum *sum = &work->leaf_sums[leaf];
	struct spine_sum *spine = &work->spine_sums[work->fabric->leaf_spine[leaf]];
	for (uint32_t gpus = 0; gpus <= node_free_count(node); gpus++) {
		sum->at_least[gpus] = (uint16_t)(sum->at_least[gpus] + one);
		spine->at_least[gpus] += one;
	}
}

void place_rooms_mark(struct place_work *work)
{
	const struct fabric *fabric = work->fabric;
	budget_charge(&work->budget, (uint64_t)STEPS_EXCEPTION * work->ask->room_count);
	for (uint32_t i = 0; i < work->ask->room_count; i++) {
		const struct frond_room *room = &work->ask->room[i];
		uint32_t position = fabric->position[room->slot], leaf = fabric->leaf_of[position];
		uint8_t code = code_of(work, room);
		if (code == WITHOUT)
			continue;
		work->limit[position] = code;
		work->rooms_lack |= room->unavailable > 0;
		if (leaf == FROND_NONE)
			continue;
		work->spine_excepted[fabric->leaf_spine[leaf]] = true;
		work->leaf_excepted[leaf] |= EXCEPTED;
		uint32_t today = place_room_listed(work, position, ROOM_TODAY);
		uint32_t rule = place_room_listed(work, position, ROOM_RULE);
		if (code != LISTED && today == 0)
			count(work, leaf, &work->nodes[room->slot], UINT32_MAX);
		else
			work->leaf_excepted[leaf] |= EXCEPTED_TODAY;
		if (code != LISTED && rule == 0)
			work->leaf_never[leaf] =
				(uint16_t)(work->leaf_never[leaf] + !node_lacks(&work->nodes[room->slot]));
		else if (code == LISTED || rule != UINT32_MAX)
			work->leaf_excepted[leaf] |= EXCEPTED_CAPACITY;
	}
}

void place_rooms_clear(struct place_work *work)
{
	const struct fabric *fabric = work->fabric;
	work->rooms_lack = false;
	for (uint32_t i = 0; i < work->ask->room_count; i++) {
		uint32_t slot = work->ask->room[i].slot, position = fabric->position[slot];
		uint32_t leaf = fabric->leaf_of[position];
		uint8_t code = work->limit[position];
		if (code == WITHOUT)
			continue;
		if (leaf != FROND_NONE) {
			if (code != LISTED && place_room(work, position, true) == 0)
				count(work, leaf, &work->nodes[slot], 1);
			work->leaf_excepted[leaf] = 0;
			work->leaf_never[leaf] = 0;
			work->spine_excepted[fabric->leaf_spine[leaf]] = false;
		}
		work->limit[position] = WITHOUT;
	}
}

uint32_t place_room_listed(const struct place_work *work, uint32_t position, enum room_when when)
{
	uint32_t slot = work->fabric->order[position], code = (uint8_t)~work->limit[position];
	uint32_t today = code >> 4, ever = code & NIBBLE;
	if (work->limit[position] == LISTED)
		return ask_room_at(work->ask, slot, when);
	if (today == NIBBLE && ever != NIBBLE)
		return when == ROOM_EVER ? ever : 0;
	uint32_t members = when == ROOM_TODAY ? today : ever;
	return members == NIBBLE ? UINT32_MAX : members;
}
