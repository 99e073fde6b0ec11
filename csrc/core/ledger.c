/* SPDX-License-Identifier: Apache-2.0 */
#include "core/ledger.h"

static uint32_t hash(const struct ledger *ledger, struct frond_key pod)
{
	uint64_t mixed = (pod.hi ^ (pod.lo >> 29) ^ (pod.lo << 35)) * 0x9e3779b97f4a7c15ull;
	return (uint32_t)(mixed >> 32) & ledger->bucket_mask;
}

void ledger_layout(struct ledger *ledger, struct arena *arena, struct node *nodes, uint32_t node_cap, uint32_t pod_cap)
{
	uint32_t buckets = 16;
	while (buckets < pod_cap)
		buckets *= 2;
	ledger->nodes = nodes;
	ledger->cap = pod_cap;
	ledger->bucket_mask = buckets - 1;
	ledger->entries = arena_take(arena, pod_cap, sizeof *ledger->entries);
	ledger->owner = arena_take(arena, (uint64_t)node_cap * FROND_GPUS_MAX, sizeof *ledger->owner);
	ledger->bucket = arena_take(arena, buckets, sizeof *ledger->bucket);
	if (arena->base == NULL)
		return;
	for (uint64_t i = 0; i < (uint64_t)node_cap * FROND_GPUS_MAX; i++)
		ledger->owner[i] = FROND_NONE;
	for (uint32_t i = 0; i < buckets; i++)
		ledger->bucket[i] = FROND_NONE;
	for (uint32_t i = 0; i < pod_cap; i++)
		ledger->entries[i].chain = i + 1 < pod_cap ? i + 1 : FROND_NONE;
	ledger->free_head = 0;
}

uint32_t ledger_find(const struct ledger *ledger, struct frond_key pod)
{
	uint32_t at = ledger->bucket[hash(ledger, pod)];
	while (at != FROND_NONE && !key_equal(ledger->entries[at].pod, pod))
		at = ledger->entries[at].chain;
	return at;
}

int32_t ledger_enter(struct ledger *ledger, struct frond_key pod, enum hold hold, uint32_t slot, uint32_t mask,
		     uint32_t by_count, uint32_t rank, uint32_t label, uint32_t *out)
{
	assert(hold != HOLD_FREE && ledger_find(ledger, pod) == FROND_NONE);
	uint32_t at = ledger->free_head;
	if (at == FROND_NONE)
		return FROND_LIMIT;
	struct entry *entry = &ledger->entries[at];
	ledger->free_head = entry->chain;
	ledger->used++;

	uint32_t taken = 0;
	if (slot != FROND_NONE) {
		struct node *node = &ledger->nodes[slot];
		taken = mask & (node->held | ~bits_first(node->gpus));
		node->held |= mask & ~taken;
		node->by_count += by_count + bits_count(taken);
		for (uint32_t gpu = 0; gpu < FROND_GPUS_MAX; gpu++)
			if ((mask & ~taken) >> gpu & 1)
				ledger->owner[slot * FROND_GPUS_MAX + gpu] = at;
		ledger->conflicts += taken != 0;
	}
	uint32_t home = hash(ledger, pod);
	*entry = (struct entry){.pod = pod,
				.hold = hold,
				.slot = slot,
				.mask = mask & ~taken,
				.by_count = by_count + bits_count(taken),
				.rank = rank,
				.label = label,
				.gang = FROND_NONE,
				.gang_next = FROND_NONE,
				.gang_prev = FROND_NONE,
				.chain = ledger->bucket[home]};
	ledger->bucket[home] = at;
	*out = at;
	return FROND_OK;
}

void ledger_leave(struct ledger *ledger, uint32_t at)
{
	struct entry *entry = &ledger->entries[at];
	assert(entry->hold != HOLD_FREE && entry->gang == FROND_NONE);
	if (entry->slot != FROND_NONE) {
		struct node *node = &ledger->nodes[entry->slot];
		assert((node->held & entry->mask) == entry->mask && node->by_count >= entry->by_count);
		node->held &= ~entry->mask;
		node->by_count -= entry->by_count;
		for (uint32_t gpu = 0; gpu < FROND_GPUS_MAX; gpu++)
			if (entry->mask >> gpu & 1)
				ledger->owner[entry->slot * FROND_GPUS_MAX + gpu] = FROND_NONE;
	}
	uint32_t *link = &ledger->bucket[hash(ledger, entry->pod)];
	while (*link != at)
		link = &ledger->entries[*link].chain;
	*link = entry->chain;
	*entry = (struct entry){.hold = HOLD_FREE, .chain = ledger->free_head};
	ledger->free_head = at;
	ledger->used--;
}
