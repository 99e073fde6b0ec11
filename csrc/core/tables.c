/* SPDX-License-Identifier: Apache-2.0 */
#include "core/tables.h"

#define TABLES_DEFAULT (17u << 16) /* one kind of 16-GPU node, and 127 kinds of 8-GPU nodes */

void tables_layout(struct tables *tables, struct arena *arena, uint32_t bytes)
{
	tables->sets = arena_take(arena, FROND_TOPOLOGIES, sizeof(struct gpuset *));
	tables->nodes = arena_take(arena, FROND_TOPOLOGIES, sizeof *tables->nodes);
	tables->cap = bytes != 0 ? bytes : TABLES_DEFAULT;
	tables->memory = arena_raw(arena, tables->cap, 1);
	tables->used = 0;
	tables->next = tables->freed = 0;
}

uint64_t tables_bytes(uint32_t gpus)
{
	return (gpuset_bytes(gpus) + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
}

static uint64_t bytes_of(const struct tables *tables, uint32_t id)
{
	return tables->sets[id] == NULL ? 0 : tables_bytes(gpuset_gpus(tables->sets[id]));
}

static bool is_free_to_go(const struct tables *tables, uint32_t id)
{
	return id != 0 && tables->sets[id] != NULL && tables->nodes[id] == 0;
}

/* Would there be an id and so many bytes if all went that no node has? */
static bool has_room(const struct tables *tables, uint64_t bytes)
{
	uint64_t kept = 0;
	uint32_t ids = 0;
	for (uint32_t id = 0; id < FROND_TOPOLOGIES; id++) {
		bool stays = tables->sets[id] != NULL && !is_free_to_go(tables, id);
		kept += stays ? bytes_of(tables, id) : 0;
		ids += stays;
	}
	return ids < FROND_TOPOLOGIES && bytes <= tables->cap - kept;
}

/* Closes the gap of so many bytes at `gap`: what lies above it moves down, lowest first. */
static void close_gap(struct tables *tables, uint8_t *gap, uint64_t bytes)
{
	tables->used -= bytes;
	while (gap < tables->memory + tables->used) {
		uint32_t above = FROND_TOPOLOGIES;
		for (uint32_t id = 0; id < FROND_TOPOLOGIES && above == FROND_TOPOLOGIES; id++)
			if ((uint8_t *)tables->sets[id] == gap + bytes)
				above = id;
		assert(above < FROND_TOPOLOGIES);
		tables->sets[above] = gpuset_move(tables->sets[above], gap);
		gap += bytes_of(tables, above);
	}
}

/* The lowest free id, once there is one and room for so many bytes at the end. */
static uint32_t make_room(struct tables *tables, uint64_t bytes)
{
	uint32_t id = 0;
	while (id < FROND_TOPOLOGIES && tables->sets[id] != NULL)
		id++;
	for (uint32_t tried = 0; id == FROND_TOPOLOGIES || bytes > tables->cap - tables->used; tried++) {
		uint32_t going = (tables->next + tried) % FROND_TOPOLOGIES;
		assert(tried < FROND_TOPOLOGIES);
		if (!is_free_to_go(tables, going))
			continue;
		uint64_t gap = bytes_of(tables, going);
		uint8_t *at = (uint8_t *)tables->sets[going];
		tables->sets[going] = NULL;
		tables->freed++;
		close_gap(tables, at, gap);
		id = min_u32(id, going);
	}
	return id;
}

int32_t tables_put(struct tables *tables, const struct topology *topology, void *scratch, uint32_t *id)
{
	for (*id = 0; *id < FROND_TOPOLOGIES; ++*id)
		if (tables->sets[*id] != NULL && gpuset_same(tables->sets[*id], topology))
			return FROND_OK;
	uint64_t bytes = tables_bytes(topology->gpus);
	if (!has_room(tables, bytes))
		return FROND_LIMIT;
	*id = make_room(tables, bytes);
	tables->sets[*id] = gpuset_build(tables->memory + tables->used, topology, scratch);
	tables->used += bytes;
	tables->next = *id + 1;
	return FROND_OK;
}

void tables_hold(struct tables *tables, uint32_t id)
{
	assert(id < FROND_TOPOLOGIES && tables->sets[id] != NULL);
	tables->nodes[id]++;
}

void tables_drop(struct tables *tables, uint32_t id)
{
	assert(id < FROND_TOPOLOGIES && tables->sets[id] != NULL && tables->nodes[id] > 0);
	tables->nodes[id]--;
}
