/* SPDX-License-Identifier: Apache-2.0 */
#include "core/fabric.h"

void fabric_layout(struct fabric *fabric, struct arena *arena, uint32_t nodes)
{
	fabric->order = arena_take(arena, nodes, sizeof *fabric->order);
	fabric->position = arena_take(arena, nodes, sizeof *fabric->position);
	fabric->leaf_of = arena_take(arena, nodes, sizeof *fabric->leaf_of);
	fabric->leaf_start = arena_take(arena, FABRIC_LEAVES(nodes) + 1, sizeof *fabric->leaf_start);
	fabric->leaf_spine = arena_take(arena, FABRIC_LEAVES(nodes), sizeof *fabric->leaf_spine);
	fabric->leaf_uplink = arena_take(arena, FABRIC_LEAVES(nodes), sizeof *fabric->leaf_uplink);
	fabric->spine_start = arena_take(arena, FABRIC_LEAVES(nodes) + 1, sizeof *fabric->spine_start);
	if (arena->base == NULL)
		return;
	for (uint32_t slot = 0; slot < nodes; slot++)
		fabric->position[slot] = FROND_NONE;
	fabric->leaf_start[0] = 0;
	fabric->spine_start[0] = 0;
}
