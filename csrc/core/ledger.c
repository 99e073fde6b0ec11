/* SPDX-License-Identifier: Apache-2.0 */
#include "core/ledger.h"

static uint32_t hash(const struct ledger *ledger, struct frond_key pod)
{
	uint64_t mixed = (pod.hi ^ (pod.lo >> 29) ^ (pod.lo << 35)) * 0x9e3779b97f4a7c15ull;
	return (uint32_t)(mixed >> 32) & ledger->bucket_mask;
}

void ledger_layout(struct ledger *ledger, struct arena *arena, struct undo *undo, struct fabric *fabric,
		   struct node *nodes, uint32_t pod_cap)
{
	uint32_t buckets = 16;
	while (buckets < pod_cap / 2)
		buckets *= 2;
	ledger->undo = undo;
	ledger->fabric = fabric;
	ledger->nodes = nodes;
	ledger->cap = pod_cap;
	ledger->bucket_mask = buckets - 1;
	ledger->entries = arena_raw(arena, pod_cap, sizeof *ledger->entries);
	ledger->bucket = arena_raw(arena, buckets, sizeof *ledger->bucket);
	if (arena->base == NULL)
		return;
	for (uint32_t i = 0; i < buckets; i++)
		ledger->bucket[i] = FROND_NONE;
	ledger->free_head = FROND_NONE;
	ledger->fresh = 0;
}

uint32_t ledger_find(const struct ledger *ledger, struct frond_key pod)
{
	uint32_t at = ledger->bucket[hash(ledger, pod)];
	while (at != FROND_NONE && !key_equal(ledger->entries[at].pod, pod))
		at = ledger->entries[at].chain;
	return at;
}

uint32_t ledger_owner(const struct ledger *ledger, uint32_t slot, uint32_t gpu)
{
	uint32_t at = ledger->nodes[slot].first;
	while (at != FROND_NONE && !(ledger->entries[at].mask >> gpu & 1))
		at = ledger->entries[at].node_next;
	return at;
}

static void save_entry(struct ledger *ledger, uint32_t at)
{
	if (at != FROND_NONE)
		undo_save(ledger->undo, &ledger->entries[at], sizeof(struct entry));
}

/* What an entry holds on its node, onto it or off it. */
static void onto_node(struct ledger *ledger, uint32_t at)
{
	struct entry *entry = &ledger->entries[at];
	struct node *node = &ledger->nodes[entry->slot];
	fabric_take_out(ledger->fabric, entry->slot, node);
	undo_save(ledger->undo, node, sizeof *node);
	node->held = (uint16_t)(node->held | entry->mask);
	node->by_count += entry->by_count;
	node_settle(node);
	entry->node_next = node->first;
	node->first = at;
	fabric_put_in(ledger->fabric, entry->slot, node);
}

static void off_node(struct ledger *ledger, uint32_t at)
{
	struct entry *entry = &ledger->entries[at];
	struct node *node = &ledger->nodes[entry->slot];
	assert((node->held & entry->mask) == entry->mask && node->by_count >= entry->by_count);
	fabric_take_out(ledger->fabric, entry->slot, node);
	undo_save(ledger->undo, node, sizeof *node);
	node->held = (uint16_t)(node->held & ~entry->mask);
	node->by_count -= entry->by_count;
	node_settle(node);
	uint32_t *link = &node->first;
	while (*link != at)
		link = &ledger->entries[*link].node_next;
	undo_save(ledger->undo, link, sizeof *link);
	*link = entry->node_next;
	fabric_put_in(ledger->fabric, entry->slot, node);
}

int32_t ledger_enter(struct ledger *ledger, struct frond_key pod, enum hold hold, uint32_t slot, uint32_t mask,
		     uint32_t by_count, uint32_t rank, uint32_t label, uint32_t *out)
{
	assert(hold != HOLD_FREE && ledger_find(ledger, pod) == FROND_NONE && by_count < 1u << (ENTRY_BY_COUNT - 1));
	uint32_t at = ledger->free_head != FROND_NONE ? ledger->free_head : ledger->fresh;
	if (ledger->used == ledger->cap)
		return FROND_LIMIT;
	struct entry *entry = &ledger->entries[at];
	uint32_t home = hash(ledger, pod);
	undo_save(ledger->undo, ledger, sizeof *ledger);
	undo_save(ledger->undo, &ledger->bucket[home], sizeof *ledger->bucket);
	if (at != ledger->fresh)
		save_entry(ledger, at);

	uint32_t taken = 0;
	if (slot != FROND_NONE)
		taken = mask & (ledger->nodes[slot].held | ~bits_first(ledger->nodes[slot].gpus));
	if (at == ledger->fresh)
		ledger->fresh++;
	else
		ledger->free_head = entry->chain;
	ledger->used++;
	ledger->conflicts += taken != 0;
	*entry = (struct entry){.pod = pod,
				.hold = (uint32_t)hold & 3u,
				.slot = slot,
				.mask = (uint16_t)(mask & ~taken),
				.by_count = (by_count + bits_count(taken)) & ((1u << ENTRY_BY_COUNT) - 1),
				.rank = rank,
				.label = label,
				.gang = FROND_NONE,
				.gang_next = FROND_NONE,
				.gang_prev = FROND_NONE,
				.node_next = FROND_NONE,
				.chain = ledger->bucket[home]};
	ledger->bucket[home] = at;
	if (slot != FROND_NONE)
		onto_node(ledger, at);
	*out = at;
	return FROND_OK;
}

void ledger_devices(struct ledger *ledger, uint32_t at, uint32_t mask)
{
	struct entry *entry = &ledger->entries[at];
	struct node *node = &ledger->nodes[entry->slot];
	assert((mask & node->held & ~(uint32_t)entry->mask) == 0 && entry_gpus(entry) == bits_count(mask));
	fabric_take_out(ledger->fabric, entry->slot, node);
	undo_save(ledger->undo, node, sizeof *node);
	save_entry(ledger, at);
	node->held = (uint16_t)(node->held | mask);
	node->by_count -= entry->by_count;
	entry->mask = (uint16_t)mask;
	entry->by_count = 0;
	node_settle(node);
	fabric_put_in(ledger->fabric, entry->slot, node);
}

void ledger_leave(struct ledger *ledger, uint32_t at)
{
	struct entry *entry = &ledger->entries[at];
	assert(entry->hold != HOLD_FREE && entry->gang == FROND_NONE);
	undo_save(ledger->undo, ledger, sizeof *ledger);
	save_entry(ledger, at);
	if (entry->slot != FROND_NONE)
		off_node(ledger, at);
	uint32_t *link = &ledger->bucket[hash(ledger, entry->pod)];
	while (*link != at)
		link = &ledger->entries[*link].chain;
	undo_save(ledger->undo, link, sizeof *link);
	*link = entry->chain;
	*entry = (struct entry){.hold = HOLD_FREE, .chain = ledger->free_head};
	ledger->free_head = at;
	ledger->used--;
}
