/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/standing.h"

_Static_assert(sizeof(uint16_t) * LEVELS == sizeof(uint64_t), "the names of a saying are hashed as one number");

const struct standing standing_nowhere = {.nodes = 0};

void standings_layout(struct standings *standings, struct arena *arena, struct names *names, uint32_t nodes)
{
	uint32_t buckets = 16;
	standings->cap = min_u32(STANDINGS(nodes), nodes + 1);
	while (buckets < standings->cap / 2)
		buckets *= 2;
	standings->names = names;
	standings->bucket_mask = buckets - 1;
	standings->all = arena_raw(arena, standings->cap, sizeof *standings->all);
	standings->bucket = arena_raw(arena, buckets, sizeof *standings->bucket);
	if (arena->base == NULL)
		return;
	memset(standings->bucket, 0xff, buckets * sizeof *standings->bucket); /* FROND_NONE */
	standings->free_head = standings->last = FROND_NONE;
	standings->fresh = 0;
}

static uint32_t *bucket_of(const struct standings *standings, const uint16_t name_up[LEVELS])
{
	uint64_t mixed;
	memcpy(&mixed, name_up, sizeof mixed);
	return &standings->bucket[mixed * 0x9e3779b97f4a7c15ull >> 32 & standings->bucket_mask];
}

/* Do nodes of this number say that? */
static bool says(const struct standings *standings, uint32_t id, const struct said *said)
{
	if (id >= standings->fresh || standings->all[id].nodes == 0)
		return false;
	for (uint32_t level = 0; level < LEVELS; level++) {
		uint32_t name = standing_name(&standings->all[id], level), len = 0;
		if (name == FROND_NONE && said->len[level] == 0)
			continue;
		if (name == FROND_NONE || said->len[level] == 0)
			return false;
		const char *text = names_text(standings->names, name, &len);
		if (len != said->len[level] || memcmp(text, said->text[level], len) != 0)
			return false;
	}
	return true;
}

static void drop_names(struct standings *standings, const uint16_t name_up[LEVELS])
{
	for (uint32_t level = 0; level < LEVELS; level++)
		names_drop(standings->names, name_up[level] - 1u);
}

/* Names are held already, and stay so only for a number that is new. */
static uint32_t enter(struct standings *standings, const uint16_t name_up[LEVELS])
{
	uint32_t *home = bucket_of(standings, name_up), id = *home;
	while (id != FROND_NONE && memcmp(standings->all[id].name_up, name_up, sizeof standings->all[id].name_up) != 0)
		id = standings->all[id].chain;
	if (id != FROND_NONE) {
		standings->all[id].nodes++;
		drop_names(standings, name_up);
		return id;
	}
	id = standings->free_head != FROND_NONE ? standings->free_head : standings->fresh;
	if (id == standings->cap) {
		drop_names(standings, name_up);
		return STANDING_LOST;
	}
	if (id == standings->fresh)
		standings->fresh++;
	else
		standings->free_head = standings->all[id].chain;
	standings->all[id] = (struct standing){.nodes = 1, .chain = *home};
	memcpy(standings->all[id].name_up, name_up, sizeof standings->all[id].name_up);
	*home = id;
	return id;
}

uint32_t standings_hold(struct standings *standings, const struct said *said, uint32_t before)
{
	/* Mostly a node says what it said before, or what the node before it said. */
	const uint32_t likely[] = {before, standings->last};
	for (uint32_t i = 0; i < 2; i++)
		if (says(standings, likely[i], said)) {
			standings->all[likely[i]].nodes++;
			return standings->last = likely[i];
		}
	uint16_t name_up[LEVELS] = {0};
	bool silent = true;
	for (uint32_t level = 0; level < LEVELS; level++) {
		if (said->len[level] == 0)
			continue;
		silent = false;
		uint32_t name = names_hold(standings->names, said->text[level], said->len[level]);
		if (name == FROND_NONE) {
			drop_names(standings, name_up);
			return STANDING_LOST;
		}
		name_up[level] = (uint16_t)(name + 1);
	}
	return silent ? STANDING_NONE : (standings->last = enter(standings, name_up));
}

void standings_drop(struct standings *standings, uint32_t id)
{
	if (id >= standings->cap)
		return;
	struct standing *standing = &standings->all[id];
	assert(standing->nodes > 0);
	if (--standing->nodes > 0)
		return;
	uint32_t *link = bucket_of(standings, standing->name_up);
	while (*link != id)
		link = &standings->all[*link].chain;
	*link = standing->chain;
	drop_names(standings, standing->name_up);
	*standing = (struct standing){.chain = standings->free_head};
	standings->free_head = id;
}
