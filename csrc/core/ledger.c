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
		at = entry_chain(&ledger->entries[at]);
	return at;
}

uint32_t ledger_owner(const struct ledger *ledger, uint32_t slot, uint32_t gpu)
{
	uint32_t at = ledger->nodes[slot].first;
	while (at != FROND_NONE && !(ledger->entries[at].mask >> gpu & 1))
		at = entry_node_next(&ledger->entries[at]);
	return at;
}

static void save_counts(struct ledger *ledger)
{
	undo_save(ledger->undo, &ledger->used, sizeof *ledger - offsetof(struct ledger, used));
}

static void save_entry(struct ledger *ledger, uint32_t at)
{
	if (at != FROND_NONE)
		undo_save(ledger->undo, &ledger->entries[at], sizeof(struct entry));
}

/* All but the key. */
static void save_links(struct ledger *ledger, uint32_t at)
{
	undo_save(ledger->undo, &ledger->entries[at].pod + 1, sizeof(struct entry) - sizeof(struct frond_key));
}

/* What an entry holds on its node, onto it or off it. */
static void onto_node(struct ledger *ledger, uint32_t at)
{
	struct entry *entry = &ledger->entries[at];
	struct node *node = &ledger->nodes[entry_slot(entry)];
	fabric_take_out(ledger->fabric, entry_slot(entry), node);
	undo_save(ledger->undo, node, sizeof *node);
	node->held = (uint16_t)(node->held | entry->mask);
	node->by_count += entry->by_count;
	node_settle(node);
	entry->node_next_up = (node->first + 1) & ID_MASK;
	node->first = at;
	fabric_put_in(ledger->fabric, entry_slot(entry), node);
}

static void off_node(struct ledger *ledger, uint32_t at)
{
	struct entry *entry = &ledger->entries[at];
	struct node *node = &ledger->nodes[entry_slot(entry)];
	assert((node->held & entry->mask) == entry->mask && node->by_count >= entry->by_count);
	fabric_take_out(ledger->fabric, entry_slot(entry), node);
	undo_save(ledger->undo, node, sizeof *node);
	node->held = (uint16_t)(node->held & ~entry->mask);
	node->by_count -= entry->by_count;
	node_settle(node);
	if (node->first == at) {
		node->first = entry_node_next(entry);
	} else {
		uint32_t before = node->first;
		while (entry_node_next(&ledger->entries[before]) != at)
			before = entry_node_next(&ledger->entries[before]);
		save_links(ledger, before);
		ledger->entries[before].node_next_up = entry->node_next_up;
	}
	fabric_put_in(ledger->fabric, entry_slot(entry), node);
}

int32_t ledger_enter(struct ledger *ledger, struct frond_key pod, enum hold hold, uint32_t slot, uint32_t mask,
		     uint32_t by_count, uint32_t rank, uint32_t label, uint32_t *out)
{
	assert(hold != HOLD_FREE && ledger_find(ledger, pod) == FROND_NONE && by_count <= FROND_POD_GPUS_MAX);
	assert(rank == FROND_NONE || rank <= FROND_RANK_MAX);
	uint32_t at = ledger->free_head != FROND_NONE ? ledger->free_head : ledger->fresh;
	if (ledger->used == ledger->cap)
		return FROND_LIMIT;
	struct entry *entry = &ledger->entries[at];
	uint32_t home = hash(ledger, pod);
	save_counts(ledger);
	undo_save(ledger->undo, &ledger->bucket[home], sizeof *ledger->bucket);
	if (at != ledger->fresh)
		save_entry(ledger, at);

	uint32_t taken = 0;
	if (slot != FROND_NONE)
		taken = mask & (ledger->nodes[slot].held | ~bits_first(ledger->nodes[slot].gpus));
	if (at == ledger->fresh)
		ledger->fresh++;
	else
		ledger->free_head = entry_chain(entry);
	ledger->used++;
	ledger->conflicts += taken != 0;
	*entry = (struct entry){.pod = pod,
				.hold = (uint32_t)hold & 3u,
				.slot_up = (slot + 1) & SLOT_MASK,
				.mask = mask & ~taken & UINT16_MAX,
				.by_count = (by_count + bits_count(taken)) & BY_COUNT_MASK,
				.rank_up = (rank + 1) & ID_MASK,
				.label_up = (label + 1) & LABEL_MASK,
				.chain_up = (ledger->bucket[home] + 1) & ID_MASK};
	ledger->bucket[home] = at;
	if (slot != FROND_NONE)
		onto_node(ledger, at);
	*out = at;
	return FROND_OK;
}

void ledger_devices(struct ledger *ledger, uint32_t at, uint32_t mask)
{
	struct entry *entry = &ledger->entries[at];
	struct node *node = &ledger->nodes[entry_slot(entry)];
	assert((mask & node->held & ~(uint32_t)entry->mask) == 0 && entry_gpus(entry) == bits_count(mask));
	fabric_take_out(ledger->fabric, entry_slot(entry), node);
	undo_save(ledger->undo, node, sizeof *node);
	save_entry(ledger, at);
	node->held = (uint16_t)(node->held | mask);
	node->by_count -= entry->by_count;
	entry->mask = mask & UINT16_MAX;
	entry->by_count = 0;
	node_settle(node);
	fabric_put_in(ledger->fabric, entry_slot(entry), node);
}

void ledger_leave(struct ledger *ledger, uint32_t at)
{
	struct entry *entry = &ledger->entries[at];
	assert(entry->hold != HOLD_FREE && entry_gang(entry) == FROND_NONE);
	save_counts(ledger);
	save_entry(ledger, at);
	if (entry_slot(entry) != FROND_NONE)
		off_node(ledger, at);
	uint32_t *home = &ledger->bucket[hash(ledger, entry->pod)], before = *home;
	if (before == at) {
		undo_save(ledger->undo, home, sizeof *home);
		*home = entry_chain(entry);
	} else {
		while (entry_chain(&ledger->entries[before]) != at)
			before = entry_chain(&ledger->entries[before]);
		save_links(ledger, before);
		ledger->entries[before].chain_up = entry->chain_up;
	}
	*entry = (struct entry){.hold = HOLD_FREE, .chain_up = (ledger->free_head + 1) & ID_MASK};
	ledger->free_head = at;
	ledger->used--;
}
