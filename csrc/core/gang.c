/* SPDX-License-Identifier: Apache-2.0 */
#include "core/gang.h"

static uint32_t hash(const struct gangs *gangs, struct frond_key key)
{
	uint64_t mixed = (key.lo ^ (key.hi >> 31) ^ (key.hi << 33)) * 0x9e3779b97f4a7c15ull;
	return (uint32_t)(mixed >> 32) & gangs->bucket_mask;
}

void gangs_layout(struct gangs *gangs, struct arena *arena, struct ledger *ledger, uint32_t cap)
{
	uint32_t buckets = 16;
	while (buckets < cap)
		buckets *= 2;
	gangs->ledger = ledger;
	gangs->cap = cap;
	gangs->bucket_mask = buckets - 1;
	gangs->gangs = arena_take(arena, cap, sizeof *gangs->gangs);
	gangs->bucket = arena_take(arena, buckets, sizeof *gangs->bucket);
	if (arena->base == NULL)
		return;
	for (uint32_t i = 0; i < buckets; i++)
		gangs->bucket[i] = FROND_NONE;
	for (uint32_t i = 0; i < cap; i++)
		gangs->gangs[i] = (struct gang){.first = FROND_NONE, .chain = i + 1 < cap ? i + 1 : FROND_NONE};
	gangs->free_head = 0;
}

uint32_t gangs_find(const struct gangs *gangs, struct frond_key key)
{
	uint32_t at = gangs->bucket[hash(gangs, key)];
	while (at != FROND_NONE && !key_equal(gangs->gangs[at].key, key))
		at = gangs->gangs[at].chain;
	return at;
}

void gangs_join(struct gangs *gangs, struct frond_key key, uint32_t at)
{
	struct entry *entry = &gangs->ledger->entries[at];
	assert(entry->gang == FROND_NONE && entry->hold != HOLD_FREE);
	uint32_t id = gangs_find(gangs, key);
	if (id == FROND_NONE) {
		id = gangs->free_head;
		assert(id != FROND_NONE);
		gangs->free_head = gangs->gangs[id].chain;
		gangs->used++;
		uint32_t home = hash(gangs, key);
		gangs->gangs[id] = (struct gang){.key = key, .first = FROND_NONE, .chain = gangs->bucket[home]};
		gangs->bucket[home] = id;
	}
	struct gang *gang = &gangs->gangs[id];
	entry->gang = id;
	entry->gang_prev = FROND_NONE;
	entry->gang_next = gang->first;
	if (gang->first != FROND_NONE)
		gangs->ledger->entries[gang->first].gang_prev = at;
	gang->first = at;
	gang->members++;
	gang->missing += entry->hold == HOLD_RESERVED && !entry->arrived;
}

void gangs_part(struct gangs *gangs, uint32_t at)
{
	struct entry *entry = &gangs->ledger->entries[at];
	if (entry->gang == FROND_NONE)
		return;
	struct gang *gang = &gangs->gangs[entry->gang];
	if (entry->gang_prev != FROND_NONE)
		gangs->ledger->entries[entry->gang_prev].gang_next = entry->gang_next;
	else
		gang->first = entry->gang_next;
	if (entry->gang_next != FROND_NONE)
		gangs->ledger->entries[entry->gang_next].gang_prev = entry->gang_prev;
	gang->members--;
	gang->missing -= entry->hold == HOLD_RESERVED && !entry->arrived;
	if (gang->members == 0) {
		uint32_t id = entry->gang;
		uint32_t *link = &gangs->bucket[hash(gangs, gang->key)];
		while (*link != id)
			link = &gangs->gangs[*link].chain;
		*link = gang->chain;
		*gang = (struct gang){.first = FROND_NONE, .chain = gangs->free_head};
		gangs->free_head = id;
		gangs->used--;
	}
	entry->gang = entry->gang_next = entry->gang_prev = FROND_NONE;
}

enum frond_verdict gangs_arrive(struct gangs *gangs, uint32_t at)
{
	struct entry *entry = &gangs->ledger->entries[at];
	assert(entry->hold == HOLD_RESERVED && entry->gang != FROND_NONE);
	struct gang *gang = &gangs->gangs[entry->gang];
	gang->missing -= !entry->arrived;
	entry->arrived = true;
	if (gang->missing == 0)
		gang->gone = true;
	return gang->gone ? FROND_GO : FROND_HOLD;
}

void gangs_bound(struct gangs *gangs, uint32_t at)
{
	struct entry *entry = &gangs->ledger->entries[at];
	assert(entry->hold == HOLD_RESERVED);
	if (entry->gang != FROND_NONE)
		gangs->gangs[entry->gang].missing -= !entry->arrived;
	entry->arrived = true;
	entry->hold = HOLD_BOUND;
}
