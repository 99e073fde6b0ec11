/* SPDX-License-Identifier: Apache-2.0 */
#include "core/fabric.h"

#define SHAPES_COMPARED 16u /* different shapes that a spine is compared with; a further one counts as a new shape */
#define TOUCHED_MASK    ((1u << 18) - 1)
#define SHAPE_MASK      ((1u << 14) - 1)

void fabric_layout(struct fabric *fabric, struct arena *arena, struct undo *undo, uint32_t nodes)
{
	uint64_t leaves = FABRIC_LEAVES(nodes), spines = FABRIC_SPINES(nodes);
	fabric->undo = undo;
	fabric->order = arena_raw(arena, nodes, sizeof *fabric->order);
	fabric->position = arena_raw(arena, nodes, sizeof *fabric->position);
	fabric->leaf_of = arena_raw(arena, nodes, sizeof *fabric->leaf_of);
	fabric->domain_of = arena_raw(arena, nodes, sizeof *fabric->domain_of);
	fabric->leaf_start = arena_raw(arena, leaves + 1, sizeof *fabric->leaf_start);
	fabric->leaf_spine = arena_raw(arena, leaves, sizeof *fabric->leaf_spine);
	fabric->leaf_uplink = arena_raw(arena, leaves, sizeof *fabric->leaf_uplink);
	fabric->leaf_kind = arena_raw(arena, leaves, sizeof *fabric->leaf_kind);
	fabric->leaf_lacking = arena_raw(arena, leaves, sizeof *fabric->leaf_lacking);
	fabric->leaf_model = arena_raw(arena, leaves, sizeof *fabric->leaf_model);
	fabric->leaf_slowest = arena_raw(arena, leaves, sizeof *fabric->leaf_slowest);
	fabric->leaf = arena_raw(arena, leaves, sizeof *fabric->leaf);
	fabric->spine_start = arena_raw(arena, spines + 1, sizeof *fabric->spine_start);
	fabric->spine_core = arena_raw(arena, spines, sizeof *fabric->spine_core);
	fabric->spine = arena_raw(arena, spines, sizeof *fabric->spine);
	fabric->block = arena_raw(arena, FABRIC_BLOCKS(nodes), sizeof *fabric->block);
	fabric->block_most = (uint32_t)FABRIC_BLOCKS(nodes);
	if (arena->base == NULL)
		return;
	for (uint32_t slot = 0; slot < nodes; slot++)
		fabric->position[slot] = FROND_NONE;
	fabric->leaf_start[0] = 0;
	fabric->spine_start[0] = 0;
}

/* ---- counts ------------------------------------------------------------------------------------------------------ */

/* at_least[0 … so many - 1] of its leaf and spine count the node. */
static uint32_t counts_of(const struct node *node)
{
	return node_open(node) ? node_free_count(node) + 1 : 0;
}

static void account(struct fabric *fabric, uint32_t leaf_id, const struct node *node, uint32_t one)
{
	struct leaf_sum *leaf = &fabric->leaf[leaf_id];
	struct spine_sum *spine = &fabric->spine[fabric->leaf_spine[leaf_id]];
	uint32_t free = node_free_count(node), used = node_used_count(node);
	for (uint32_t i = 0; i < counts_of(node); i++) {
		leaf->at_least[i] = (uint16_t)(leaf->at_least[i] + one);
		spine->at_least[i] += one;
	}
	if (node->unhealthy != 0 || node_kind(node) != fabric->leaf_kind[leaf_id])
		leaf->odd = (uint16_t)(leaf->odd + one);
	leaf->free += one * free; /* one is 1 or, modulo 2^32, -1 */
	leaf->used += one * used;
	leaf->total += one * node->gpus;
	if (!node_open(node) || node->unhealthy != 0 || !node_whole(node))
		spine->touched = (spine->touched + one) & TOUCHED_MASK;
	if (node_lacks(node)) {
		fabric->leaf_lacking[leaf_id] = (uint16_t)(fabric->leaf_lacking[leaf_id] + one);
		spine->lacking += one;
	}
}

/* The same for all nodes of a leaf at once, onto zeros. */
static void count_leaf(struct fabric *fabric, uint32_t leaf_id, const struct node *nodes)
{
	struct leaf_sum *leaf = &fabric->leaf[leaf_id];
	struct spine_sum *spine = &fabric->spine[fabric->leaf_spine[leaf_id]];
	uint32_t open[FROND_GPUS_MAX + 1] = {0}, odd = 0, at_least = 0;
	uint32_t touched = 0, lacking = 0;
	for (uint32_t at = fabric->leaf_start[leaf_id]; at < fabric->leaf_start[leaf_id + 1]; at++) {
		const struct node *node = &nodes[fabric->order[at]];
		uint32_t used = node_used_count(node);
		open[node_free_count(node)] += node_open(node);
		odd += node->unhealthy != 0 || node_kind(node) != fabric->leaf_kind[leaf_id];
		leaf->free += node_free_count(node);
		leaf->used += used;
		leaf->total += node->gpus;
		touched += !node_open(node) || node->unhealthy != 0 || !node_whole(node);
		lacking += node_lacks(node);
	}
	leaf->odd = (uint16_t)odd;
	fabric->leaf_lacking[leaf_id] = (uint16_t)lacking;
	spine->touched = (spine->touched + touched) & TOUCHED_MASK;
	spine->lacking += lacking;
	for (uint32_t free = FROND_GPUS_MAX + 1; free-- > 0;) {
		at_least += open[free];
		leaf->at_least[free] = (uint16_t)at_least;
		spine->at_least[free] += at_least;
	}
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* What the leaves of a block have, at the least and at the most. The loops over the counts have no branch and a fixed end, and
 * write what nobody else can see: compilers make a few instructions of each, so that a delta may do this. */
static void count_ends(const struct leaf_sum *leaves, uint32_t count, struct block_sum *block)
{
	struct block_sum sum = {
		.free_least = leaves->free, .free_most = leaves->free, .kind = block->kind, .total = block->total};
	memcpy(sum.least, &leaves->at_least[1], sizeof sum.least);
	memcpy(sum.most, &leaves->at_least[1], sizeof sum.most);
	for (uint32_t leaf = 1; leaf < count; leaf++) {
		const uint16_t *counts = &leaves[leaf].at_least[1];
		for (uint32_t i = 0; i < FROND_GPUS_MAX; i++)
			sum.least[i] = counts[i] < sum.least[i] ? counts[i] : sum.least[i];
		for (uint32_t i = 0; i < FROND_GPUS_MAX; i++)
			sum.most[i] = counts[i] > sum.most[i] ? counts[i] : sum.most[i];
		sum.free_least = min_u32(sum.free_least, leaves[leaf].free);
		sum.free_most = max_u32(sum.free_most, leaves[leaf].free);
	}
	*block = sum;
}

static void count_blocks(struct fabric *fabric)
{
	fabric->block_shift = FABRIC_BLOCK_SHIFT;
	while (fabric->leaf_count > fabric->block_most << fabric->block_shift)
		fabric->block_shift++;
	assert(fabric->block_shift <= FABRIC_BLOCK_SHIFT_MOST);
	for (uint32_t first = 0; first < fabric->leaf_count; first = block_end(fabric, first)) {
		struct block_sum *block = &fabric->block[first >> fabric->block_shift];
		block->kind = fabric->leaf_kind[first];
		block->total = fabric->leaf[first].total;
		for (uint32_t leaf = first; leaf < block_end(fabric, first); leaf++)
			if (fabric->leaf_kind[leaf] != block->kind || fabric->leaf[leaf].total != block->total)
				block->kind = FROND_NONE;
		count_ends(&fabric->leaf[first], block_end(fabric, first) - first, block);
	}
}

/* Before a node of this leaf is taken out. */
static void leave_block(struct fabric *fabric, uint32_t leaf, const struct node *node)
{
	fabric->out.counts = counts_of(node);
	fabric->out.free = fabric->leaf[leaf].free;
}

/* After it was put in: a count has changed by one at the most. A leaf that was at an end and no longer is may have been the
 * only one there: then all of them are looked at. */
static void enter_block(struct fabric *fabric, uint32_t leaf_id, const struct node *node)
{
	struct block_sum *block = &fabric->block[leaf_id >> fabric->block_shift];
	const struct leaf_sum *leaf = &fabric->leaf[leaf_id];
	uint32_t before = fabric->out.counts, now = counts_of(node);
	bool left = (fabric->out.free == block->free_least && leaf->free > block->free_least) ||
		    (fabric->out.free == block->free_most && leaf->free < block->free_most);
	block->free_least = min_u32(block->free_least, leaf->free);
	block->free_most = max_u32(block->free_most, leaf->free);
	for (uint32_t gpus = max_u32(before, 1); gpus < now; gpus++) { /* one more */
		uint16_t here = leaf->at_least[gpus], *most = &block->most[gpus - 1];
		*most = here > *most ? here : *most;
		left |= here == block->least[gpus - 1] + 1;
	}
	for (uint32_t gpus = max_u32(now, 1); gpus < before; gpus++) { /* one less */
		uint16_t here = leaf->at_least[gpus], *least = &block->least[gpus - 1];
		*least = here < *least ? here : *least;
		left |= here + 1 == block->most[gpus - 1];
	}
	uint32_t first = leaf_id >> fabric->block_shift << fabric->block_shift;
	if (left)
		count_ends(&fabric->leaf[first], block_end(fabric, first) - first, block);
}

/* ---- changes ----------------------------------------------------------------------------------------------------- */

static uint32_t leaf_of_slot(const struct fabric *fabric, uint32_t slot)
{
	uint32_t position = fabric->position[slot];
	return position == FROND_NONE ? FROND_NONE : fabric->leaf_of[position];
}

void fabric_take_out(struct fabric *fabric, uint32_t slot, const struct node *node)
{
	uint32_t leaf = leaf_of_slot(fabric, slot);
	fabric->lacking -= node->present && node_lacks(node);
	if (leaf == FROND_NONE || !node->present)
		return;
	leave_block(fabric, leaf, node);
	account(fabric, leaf, node, UINT32_MAX);
}

void fabric_put_in(struct fabric *fabric, uint32_t slot, const struct node *node)
{
	uint32_t leaf = leaf_of_slot(fabric, slot);
	fabric->lacking += node->present && node_lacks(node);
	if (leaf == FROND_NONE || !node->present)
		return;
	account(fabric, leaf, node, 1);
	enter_block(fabric, leaf, node);
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

static bool same_node(const struct node *a, const struct node *b)
{
	return node_kind(a) == node_kind(b) && a->model == b->model && a->uplink_gbps == b->uplink_gbps;
}

/* The same nodes share an NVLink domain: domains are numbered in the order of their first nodes. */
static bool same_domains(const struct fabric *fabric, uint32_t a_node, uint32_t b_node, uint32_t count)
{
	const uint32_t *a = fabric->domain_of + a_node, *b = fabric->domain_of + b_node;
	uint32_t apart = 0; /* b's number less a's, modulo 2^32 */
	bool known = false;
	for (uint32_t i = 0; i < count; i++) {
		if ((a[i] == FROND_NONE) != (b[i] == FROND_NONE))
			return false;
		if (a[i] == FROND_NONE)
			continue;
		apart = known ? apart : b[i] - a[i];
		known = true;
		if (b[i] - a[i] != apart)
			return false;
	}
	return true;
}

static bool same_shape(const struct fabric *fabric, const struct node *nodes, uint32_t a, uint32_t b)
{
	uint32_t a_leaf = fabric->spine_start[a], b_leaf = fabric->spine_start[b];
	uint32_t leaves = fabric->spine_start[a + 1] - a_leaf;
	if (fabric->spine_start[b + 1] - b_leaf != leaves)
		return false;
	for (uint32_t i = 0; i < leaves; i++)
		if (leaf_nodes(fabric, a_leaf + i) != leaf_nodes(fabric, b_leaf + i) ||
		    fabric->leaf_uplink[a_leaf + i] != fabric->leaf_uplink[b_leaf + i])
			return false;
	uint32_t a_node = fabric->leaf_start[a_leaf], b_node = fabric->leaf_start[b_leaf];
	uint32_t count = fabric->leaf_start[a_leaf + leaves] - a_node;
	for (uint32_t i = 0; i < count; i++)
		if (!same_node(&nodes[fabric->order[a_node + i]], &nodes[fabric->order[b_node + i]]))
			return false;
	return fabric->domain_count == 0 || same_domains(fabric, a_node, b_node, count);
}

static void compare_shapes(struct fabric *fabric, const struct node *nodes)
{
	uint32_t shapes[SHAPES_COMPARED], count = 0;
	for (uint32_t spine = 0; spine < fabric->spine_count; spine++) {
		uint32_t shape = spine;
		for (uint32_t i = 0; i < count && shape == spine; i++)
			if (same_shape(fabric, nodes, shapes[i], spine))
				shape = shapes[i];
		if (shape == spine && count < SHAPES_COMPARED)
			shapes[count++] = spine;
		fabric->spine[spine].shape = shape & SHAPE_MASK;
	}
}

/* Is the leaf split into several NVLink domains, or into some and nodes in none? */
static bool leaf_split(const struct fabric *fabric, uint32_t first, uint32_t end)
{
	uint32_t domains = 0, next = 0; /* they are numbered in order: a lower one has been seen */
	bool split = false;
	for (uint32_t at = first; at < end && fabric->domain_count > 0; at++) {
		uint32_t domain = fabric->domain_of[at];
		split |= domain != fabric->domain_of[first];
		if (domain == FROND_NONE || domain < next)
			continue;
		next = domain + 1;
		domains++;
	}
	return split && domains <= LEAF_DOMAINS;
}

void fabric_settle(struct fabric *fabric, const struct node *nodes)
{
	assert(fabric->undo->depth == 0);
	fabric->gpus_most = 0;
	fabric->split = fabric->unlike = false;
	memset(fabric->leaf, 0, fabric->leaf_count * sizeof *fabric->leaf);
	memset(fabric->spine, 0, fabric->spine_count * sizeof *fabric->spine);
	for (uint32_t leaf = 0; leaf < fabric->leaf_count; leaf++) {
		uint32_t first = fabric->leaf_start[leaf], end = fabric->leaf_start[leaf + 1];
		uint32_t kind = first < end ? node_kind(&nodes[fabric->order[first]]) : KIND_NONE, slowest = UINT32_MAX;
		uint32_t model = first < end ? nodes[fabric->order[first]].model : 0;
		for (uint32_t position = first; position < end; position++) {
			const struct node *node = &nodes[fabric->order[position]];
			model |= node->model != (model & (LEAF_MODELS - 1)) ? LEAF_MODELS : 0u;
			kind = node_kind(node) == kind ? kind : KIND_NONE;
			uint32_t uplink = node->uplink_gbps;
			fabric->gpus_most = max_u32(fabric->gpus_most, node->gpus);
			slowest = min_u32(slowest, uplink == 0 ? UINT32_MAX : uplink);
		}
		fabric->leaf_kind[leaf] = (uint16_t)kind;
		bool split = leaf_split(fabric, first, end);
		fabric->split |= split;
		fabric->leaf_model[leaf] = (uint8_t)(model | (split ? LEAF_SPLIT : 0u));
		fabric->unlike |= fabric->leaf_model[leaf] != fabric->leaf_model[0];
		fabric->leaf_slowest[leaf] = slowest;
		count_leaf(fabric, leaf, nodes);
	}
	count_blocks(fabric);
	compare_shapes(fabric, nodes);
	fabric->stale = false;
}
