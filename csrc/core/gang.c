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
	while (buckets < cap / 2)
		buckets *= 2;
	gangs->ledger = ledger;
	gangs->undo = ledger->undo;
	gangs->cap = cap;
	gangs->bucket_mask = buckets - 1;
	gangs->gangs = arena_raw(arena, cap, sizeof *gangs->gangs);
	gangs->bucket = arena_raw(arena, buckets, sizeof *gangs->bucket);
	if (arena->base == NULL)
		return;
	for (uint32_t i = 0; i < buckets; i++)
		gangs->bucket[i] = FROND_NONE;
	gangs->free_head = FROND_NONE;
	gangs->fresh = 0;
}

uint32_t gangs_find(const struct gangs *gangs, struct frond_key key)
{
	uint32_t at = gangs->bucket[hash(gangs, key)];
	while (at != FROND_NONE && !key_equal(gangs->gangs[at].key, key))
		at = gangs->gangs[at].chain;
	return at;
}

static void save_gang(struct gangs *gangs, uint32_t id)
{
	undo_save(gangs->undo, gangs, sizeof *gangs);
	undo_save(gangs->undo, &gangs->gangs[id], sizeof(struct gang));
}

static void save_entry(struct gangs *gangs, uint32_t at)
{
	if (at != FROND_NONE)
		undo_save(gangs->undo, &gangs->ledger->entries[at], sizeof(struct entry));
}

static void terms_pack(struct gang *gang, const struct terms *terms)
{
	assert(terms->domain >> TERMS_DOMAIN_BITS == 0 && terms->bandwidth_gbps >> TERMS_GBPS_BITS == 0 &&
	       terms->gpu.min_gbps >> TERMS_GBPS_BITS == 0 && terms->gpu.prefer >> FROND_GPUS_MAX == 0);
	gang->domain_low = (uint32_t)terms->domain;
	gang->domain_high = terms->domain >> 32 & UINT16_MAX;
	gang->prefer = terms->gpu.prefer & UINT16_MAX;
	gang->bandwidth_gbps = terms->bandwidth_gbps & ((1u << TERMS_GBPS_BITS) - 1);
	gang->strategy = terms->strategy & 3u;
	gang->mode = terms->mode & 3u;
	gang->recovery = terms->recovery & 3u;
	gang->policy = terms->gpu.policy & 3u;
	gang->gpu_mode = terms->gpu.mode & 3u;
	gang->locality = terms->gpu.locality & 3u;
	gang->min_gbps = terms->gpu.min_gbps & ((1u << TERMS_GBPS_BITS) - 1);
	gang->latency_sensitive = terms->latency_sensitive;
}

struct terms gang_terms(const struct gang *gang)
{
	return (struct terms){.strategy = (uint8_t)gang->strategy,
			      .mode = (uint8_t)gang->mode,
			      .recovery = (uint8_t)gang->recovery,
			      .latency_sensitive = gang->latency_sensitive,
			      .bandwidth_gbps = gang->bandwidth_gbps,
			      .domain = (uint64_t)gang->domain_high << 32 | gang->domain_low,
			      .gpu = {.policy = (enum gpu_policy)gang->policy,
				      .mode = (enum mode)gang->gpu_mode,
				      .locality = (enum gpu_locality)gang->locality,
				      .min_gbps = gang->min_gbps,
				      .prefer = gang->prefer}};
}

static uint32_t make(struct gangs *gangs, struct frond_key key)
{
	uint32_t home = hash(gangs, key), id = gangs->free_head != FROND_NONE ? gangs->free_head : gangs->fresh;
	assert(id < gangs->cap);
	undo_save(gangs->undo, gangs, sizeof *gangs);
	if (id != gangs->fresh)
		undo_save(gangs->undo, &gangs->gangs[id], sizeof(struct gang));
	undo_save(gangs->undo, &gangs->bucket[home], sizeof *gangs->bucket);
	if (id == gangs->fresh)
		gangs->fresh++;
	else
		gangs->free_head = gangs->gangs[id].chain;
	gangs->used++;
	gangs->gangs[id] =
		(struct gang){.key = key, .first = FROND_NONE, .min_member = 1, .chain = gangs->bucket[home]};
	terms_pack(&gangs->gangs[id], &(struct terms){.gpu = GPU_WISH_DEFAULT});
	gangs->bucket[home] = id;
	return id;
}

static void end(struct gangs *gangs, uint32_t id)
{
	struct gang *gang = &gangs->gangs[id];
	uint32_t *link = &gangs->bucket[hash(gangs, gang->key)];
	while (*link != id)
		link = &gangs->gangs[*link].chain;
	undo_save(gangs->undo, link, sizeof *link);
	*link = gang->chain;
	gangs->timed -= gang->deadline_ms != 0;
	*gang = (struct gang){.first = FROND_NONE, .chain = gangs->free_head};
	gangs->free_head = id;
	gangs->used--;
}

void gangs_join(struct gangs *gangs, struct frond_key key, uint32_t at)
{
	struct entry *entry = &gangs->ledger->entries[at];
	assert(entry->gang == FROND_NONE && entry->hold != HOLD_FREE);
	uint32_t id = gangs_find(gangs, key);
	if (id == FROND_NONE)
		id = make(gangs, key); /* saves what was there */
	else
		save_gang(gangs, id);
	struct gang *gang = &gangs->gangs[id];
	save_entry(gangs, at);
	save_entry(gangs, gang->first);
	entry->gang = id;
	entry->gang_prev = FROND_NONE;
	entry->gang_next = gang->first;
	if (gang->first != FROND_NONE)
		gangs->ledger->entries[gang->first].gang_prev = at;
	gang->first = at;
	gang->members++;
	gang->missing += entry->hold == HOLD_RESERVED && !entry->arrived;
	gang->bound += entry->hold == HOLD_BOUND;
	gang->whole |= gang->bound >= gang->min_member;
}

void gangs_part(struct gangs *gangs, uint32_t at)
{
	struct entry *entry = &gangs->ledger->entries[at];
	if (entry->gang == FROND_NONE)
		return;
	struct gang *gang = &gangs->gangs[entry->gang];
	save_gang(gangs, entry->gang);
	save_entry(gangs, at);
	save_entry(gangs, entry->gang_prev);
	save_entry(gangs, entry->gang_next);
	if (entry->gang_prev != FROND_NONE)
		gangs->ledger->entries[entry->gang_prev].gang_next = entry->gang_next;
	else
		gang->first = entry->gang_next;
	if (entry->gang_next != FROND_NONE)
		gangs->ledger->entries[entry->gang_next].gang_prev = entry->gang_prev;
	gang->members--;
	gang->missing -= entry->hold == HOLD_RESERVED && !entry->arrived;
	gang->bound -= entry->hold == HOLD_BOUND;
	gang->lost += entry->hold == HOLD_BOUND && gang->whole;
	if (gang->members == 0)
		end(gangs, entry->gang);
	entry->gang = entry->gang_next = entry->gang_prev = FROND_NONE;
}

void gangs_promise(struct gangs *gangs, uint32_t id, uint32_t min_member, int32_t priority, int64_t deadline_ms)
{
	struct gang *gang = &gangs->gangs[id];
	save_gang(gangs, id);
	gangs->timed += (deadline_ms != 0) - (uint32_t)(gang->deadline_ms != 0);
	gang->min_member = min_member;
	gang->priority = priority;
	gang->deadline_ms = deadline_ms;
	gang->whole |= gang->bound >= gang->min_member;
}

void gangs_carry(struct gangs *gangs, uint32_t id, const struct gang *kept)
{
	struct gang *gang = &gangs->gangs[id];
	gangs_promise(gangs, id, kept->min_member, kept->priority, kept->deadline_ms);
	struct terms terms = gang_terms(kept);
	terms_pack(gang, &terms);
	gang->gone = kept->gone;
	gang->whole |= kept->whole;
	gang->lost = kept->lost;
}

void gangs_terms(struct gangs *gangs, uint32_t id, const struct terms *terms)
{
	save_gang(gangs, id);
	terms_pack(&gangs->gangs[id], terms);
}

enum frond_verdict gangs_arrive(struct gangs *gangs, uint32_t at)
{
	struct entry *entry = &gangs->ledger->entries[at];
	assert(entry->hold == HOLD_RESERVED && entry->gang != FROND_NONE);
	struct gang *gang = &gangs->gangs[entry->gang];
	save_gang(gangs, entry->gang);
	save_entry(gangs, at);
	gang->missing -= !entry->arrived;
	entry->arrived = 1;
	if (gang->missing == 0)
		gang->gone = 1;
	return gang->gone ? FROND_GO : FROND_HOLD;
}

void gangs_bound(struct gangs *gangs, uint32_t at)
{
	struct entry *entry = &gangs->ledger->entries[at];
	assert(entry->hold == HOLD_RESERVED && entry->gang != FROND_NONE);
	struct gang *gang = &gangs->gangs[entry->gang];
	save_gang(gangs, entry->gang);
	save_entry(gangs, at);
	gang->missing -= !entry->arrived;
	entry->arrived = 1;
	entry->hold = HOLD_BOUND;
	gang->bound++;
	if (gang->bound >= gang->min_member) {
		gang->whole = 1;
		gang->lost = 0; /* whole again */
	}
}

uint32_t gangs_overdue(const struct gangs *gangs, int64_t now_ms)
{
	for (uint32_t id = 0; gangs->timed > 0 && id < gangs->fresh; id++) {
		const struct gang *gang = &gangs->gangs[id];
		if (gang->first != FROND_NONE && gang->deadline_ms != 0 && gang->deadline_ms < now_ms &&
		    gang->members > gang->bound)
			return id;
	}
	return FROND_NONE;
}

enum frond_gang_state gang_state(const struct gang *gang)
{
	if (gang->members > gang->bound)
		return gang->missing == gang->members - gang->bound && gang->bound == 0 ? FROND_GANG_PLANNED
											: FROND_GANG_RESERVED;
	if (gang->bound >= gang->min_member)
		return FROND_GANG_BOUND;
	return gang->whole ? FROND_GANG_DEGRADED : FROND_GANG_GATHERING;
}
