/* SPDX-License-Identifier: Apache-2.0 */
#include "core/gang.h"

enum { GANG_WORDS = sizeof(struct gang) / sizeof(uint64_t) };
_Static_assert(GANG_WORDS < 1u << UNDO_WORDS_BITS && 2 * ID_BITS + 16 <= UNDO_PAYLOAD_BITS, "records of the undo log");

static undo_taker take_back;

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
	undo_own(gangs->undo, UNDO_MAKE, UNDO_BIND, take_back, gangs);
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
		at = gang_chain(&gangs->gangs[at]);
	return at;
}

/* Before what a gang asks for or was promised changes. */
static void save_gang(struct gangs *gangs, uint32_t id)
{
	if (undo_logs(gangs->undo))
		undo_append(gangs->undo, UNDO_SET, id, &gangs->gangs[id], GANG_WORDS);
}

static void terms_pack(struct gang *gang, const struct terms *terms)
{
	assert(terms->domain >> TERMS_DOMAIN_BITS == 0 && terms->bandwidth_gbps >> TERMS_GBPS_BITS == 0 &&
	       terms->gpu.min_gbps >> TERMS_GBPS_BITS == 0 && terms->gpu.prefer >> FROND_GPUS_MAX == 0);
	gang->domain = terms->domain & ((1ull << TERMS_DOMAIN_BITS) - 1);
	gang->prefer = (uint16_t)terms->gpu.prefer;
	gang->bandwidth_gbps = terms->bandwidth_gbps & TERMS_GBPS_MASK;
	gang->strategy = terms->strategy & 3u;
	gang->mode = (terms->mode == MODE_REQUIRED && terms->insists ? TERMS_INSISTS : terms->mode) & 3u;
	gang->recovery = terms->recovery & 3u;
	gang->policy = terms->gpu.policy & 3u;
	gang->gpu_mode = terms->gpu.mode & 3u;
	gang->locality = terms->gpu.locality & 3u;
	gang->min_gbps = terms->gpu.min_gbps & TERMS_GBPS_MASK;
	gang->latency_sensitive = terms->latency_sensitive;
}

struct terms gang_terms(const struct gang *gang)
{
	return (struct terms){.strategy = (uint8_t)gang->strategy,
			      .mode = gang->mode == TERMS_INSISTS ? (uint8_t)MODE_REQUIRED : (uint8_t)gang->mode,
			      .insists = gang->mode == TERMS_INSISTS,
			      .recovery = (uint8_t)gang->recovery,
			      .latency_sensitive = gang->latency_sensitive,
			      .bandwidth_gbps = (uint32_t)gang->bandwidth_gbps,
			      .domain = gang->domain,
			      .gpu = {.policy = (enum gpu_policy)gang->policy,
				      .mode = (enum mode)gang->gpu_mode,
				      .locality = (enum gpu_locality)gang->locality,
				      .min_gbps = (uint32_t)gang->min_gbps,
				      .prefer = gang->prefer}};
}

static uint32_t make(struct gangs *gangs, struct frond_key key)
{
	uint32_t home = hash(gangs, key), id = gangs->free_head != FROND_NONE ? gangs->free_head : gangs->fresh;
	assert(id < gangs->cap);
	bool used_before = id != gangs->fresh;
	if (undo_logs(gangs->undo))
		undo_append(gangs->undo, UNDO_MAKE, id, &gangs->gangs[id], used_before ? GANG_WORDS : 0);
	if (used_before)
		gangs->free_head = gang_chain(&gangs->gangs[id]);
	else
		gangs->fresh++;
	gangs->used++;
	gangs->gangs[id] = (struct gang){.key = key, .min_member = 1, .chain_up = (gangs->bucket[home] + 1) & ID_MASK};
	terms_pack(&gangs->gangs[id], &(struct terms){.gpu = GPU_WISH_DEFAULT});
	gangs->bucket[home] = id;
	return id;
}

/* Its last member has left. Returns who was before it in the chain of its bucket. */
static uint32_t end(struct gangs *gangs, uint32_t id)
{
	struct gang *gang = &gangs->gangs[id];
	uint32_t *home = &gangs->bucket[hash(gangs, gang->key)], before = *home;
	if (before == id) {
		*home = gang_chain(gang);
		before = FROND_NONE;
	} else {
		while (gang_chain(&gangs->gangs[before]) != id)
			before = gang_chain(&gangs->gangs[before]);
		gangs->gangs[before].chain_up = gang->chain_up;
	}
	gangs->timed -= gang->deadline_ms != 0;
	gang->chain_up = (gangs->free_head + 1) & ID_MASK; /* the rest stays, for whoever takes it back */
	gangs->free_head = id;
	gangs->used--;
	return before;
}

static void count_in(struct gang *gang, const struct entry *entry)
{
	gang->members++;
	if (entry->hold == HOLD_RESERVED && !entry->arrived)
		gang->missing++;
	if (entry->hold == HOLD_BOUND)
		gang->bound++;
}

static void count_out(struct gang *gang, const struct entry *entry)
{
	gang->members--;
	if (entry->hold == HOLD_RESERVED && !entry->arrived)
		gang->missing--;
	if (entry->hold == HOLD_BOUND)
		gang->bound--;
}

void gangs_join(struct gangs *gangs, struct frond_key key, uint32_t at)
{
	struct entry *entry = &gangs->ledger->entries[at];
	assert(entry_gang(entry) == FROND_NONE && entry->hold != HOLD_FREE);
	uint32_t id = gangs_find(gangs, key);
	if (id == FROND_NONE)
		id = make(gangs, key);
	struct gang *gang = &gangs->gangs[id];
	if (undo_logs(gangs->undo))
		undo_append(gangs->undo, UNDO_JOIN, (uint64_t)at << 1 | gang->whole, NULL, 0);
	entry->gang_up = (id + 1) & ID_MASK;
	entry->gang_prev_up = 0;
	entry->gang_next_up = gang->first_up;
	if (gang_first(gang) != FROND_NONE)
		gangs->ledger->entries[gang_first(gang)].gang_prev_up = (at + 1) & ID_MASK;
	gang->first_up = (at + 1) & ID_MASK;
	count_in(gang, entry);
	gang->whole |= gang->bound >= gang->min_member;
}

void gangs_part(struct gangs *gangs, uint32_t at)
{
	struct entry *entry = &gangs->ledger->entries[at];
	if (entry_gang(entry) == FROND_NONE)
		return;
	uint32_t id = entry_gang(entry), chained = FROND_NONE;
	struct gang *gang = &gangs->gangs[id];
	uint64_t lost = gang->lost, links = (uint64_t)entry->gang_prev_up << 2 * ID_BITS |
					    (uint64_t)entry->gang_next_up << ID_BITS | entry->gang_up;
	if (entry_gang_prev(entry) != FROND_NONE)
		gangs->ledger->entries[entry_gang_prev(entry)].gang_next_up = entry->gang_next_up;
	else
		gang->first_up = entry->gang_next_up;
	if (entry_gang_next(entry) != FROND_NONE)
		gangs->ledger->entries[entry_gang_next(entry)].gang_prev_up = entry->gang_prev_up;
	count_out(gang, entry);
	if (entry->hold == HOLD_BOUND && gang->whole && gang->lost < UINT16_MAX)
		gang->lost++;
	if (gang->members == 0)
		chained = end(gangs, id);
	entry->gang_up = entry->gang_next_up = entry->gang_prev_up = 0;
	if (undo_logs(gangs->undo))
		undo_append(gangs->undo, UNDO_PART,
			    ((chained + 1ull) & ID_MASK) << (ID_BITS + 16) | lost << ID_BITS | at, &links, 1);
}

void gangs_promise(struct gangs *gangs, uint32_t id, uint32_t min_member, int32_t priority, int64_t deadline_ms)
{
	struct gang *gang = &gangs->gangs[id];
	assert(min_member <= FROND_MEMBERS_MAX && deadline_ms >= 0 && deadline_ms <= FROND_DEADLINE_MAX);
	save_gang(gangs, id);
	gangs->timed += (deadline_ms != 0) - (uint32_t)(gang->deadline_ms != 0);
	gang->min_member = min_member & MIN_MEMBER_MASK;
	gang->priority = priority;
	gang->deadline_ms = (uint64_t)deadline_ms & DEADLINE_MASK;
	gang->whole |= gang->bound >= gang->min_member;
}

void gangs_carry(struct gangs *gangs, uint32_t id, const struct gang *kept)
{
	struct gang *gang = &gangs->gangs[id];
	gangs_promise(gangs, id, (uint32_t)kept->min_member, kept->priority, (int64_t)kept->deadline_ms);
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
	assert(entry->hold == HOLD_RESERVED && entry_gang(entry) != FROND_NONE);
	struct gang *gang = &gangs->gangs[entry_gang(entry)];
	if (undo_logs(gangs->undo))
		undo_append(gangs->undo, UNDO_ARRIVE, (uint64_t)at << 2 | (uint64_t)gang->gone << 1 | entry->arrived,
			    NULL, 0);
	if (!entry->arrived)
		gang->missing--;
	entry->arrived = 1;
	if (gang->missing == 0)
		gang->gone = 1;
	return gang->gone ? FROND_GO : FROND_HOLD;
}

void gangs_bound(struct gangs *gangs, uint32_t at)
{
	struct entry *entry = &gangs->ledger->entries[at];
	assert(entry->hold == HOLD_RESERVED && entry_gang(entry) != FROND_NONE);
	struct gang *gang = &gangs->gangs[entry_gang(entry)];
	if (undo_logs(gangs->undo))
		undo_append(gangs->undo, UNDO_BIND,
			    (uint64_t)gang->lost << (ID_BITS + 2) | (uint64_t)at << 2 | (uint64_t)gang->whole << 1 |
				    entry->arrived,
			    NULL, 0);
	if (!entry->arrived)
		gang->missing--;
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
		if (gang_first(gang) != FROND_NONE && gang->deadline_ms != 0 && (int64_t)gang->deadline_ms < now_ms &&
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

/* ---- what-ifs, taken back ------------------------------------------------------------------------------------------------ */

static void take_back_make(struct gangs *gangs, uint32_t id, const uint64_t *content, uint32_t words)
{
	struct gang *gang = &gangs->gangs[id];
	assert(gang_first(gang) == FROND_NONE); /* whoever made it has left */
	gangs->bucket[hash(gangs, gang->key)] = gang_chain(gang);
	gangs->used--;
	if (words == 0) {
		gangs->fresh--;
		return;
	}
	memcpy(gang, content, sizeof *gang);
	gangs->free_head = id;
}

static void take_back_join(struct gangs *gangs, uint32_t at, bool whole)
{
	struct entry *entry = &gangs->ledger->entries[at];
	struct gang *gang = &gangs->gangs[entry_gang(entry)];
	assert(gang_first(gang) == at);
	gang->first_up = entry->gang_next_up;
	if (entry_gang_next(entry) != FROND_NONE)
		gangs->ledger->entries[entry_gang_next(entry)].gang_prev_up = 0;
	count_out(gang, entry);
	gang->whole = whole;
	entry->gang_up = entry->gang_next_up = 0;
}

/* The gang comes back to its place in the chain of its bucket. */
static void take_back_end(struct gangs *gangs, uint32_t id, uint32_t before)
{
	struct gang *gang = &gangs->gangs[id];
	assert(gangs->free_head == id);
	gangs->free_head = gang_chain(gang);
	gangs->used++;
	gangs->timed += gang->deadline_ms != 0;
	uint32_t *home = &gangs->bucket[hash(gangs, gang->key)];
	if (before == FROND_NONE) {
		gang->chain_up = (*home + 1) & ID_MASK;
		*home = id;
	} else {
		gang->chain_up = gangs->gangs[before].chain_up;
		gangs->gangs[before].chain_up = (id + 1) & ID_MASK;
	}
}

static void take_back_part(struct gangs *gangs, uint64_t payload, uint64_t links)
{
	uint32_t at = payload & ID_MASK;
	struct entry *entry = &gangs->ledger->entries[at];
	entry->gang_up = links & ID_MASK;
	entry->gang_next_up = links >> ID_BITS & ID_MASK;
	entry->gang_prev_up = links >> 2 * ID_BITS & ID_MASK;
	struct gang *gang = &gangs->gangs[entry_gang(entry)];
	if (gang->members == 0)
		take_back_end(gangs, entry_gang(entry), (uint32_t)(payload >> (ID_BITS + 16)) - 1);
	if (entry_gang_prev(entry) != FROND_NONE)
		gangs->ledger->entries[entry_gang_prev(entry)].gang_next_up = (at + 1) & ID_MASK;
	else
		gang->first_up = (at + 1) & ID_MASK;
	if (entry_gang_next(entry) != FROND_NONE)
		gangs->ledger->entries[entry_gang_next(entry)].gang_prev_up = (at + 1) & ID_MASK;
	count_in(gang, entry);
	gang->lost = (uint16_t)(payload >> ID_BITS);
}

static void take_back_set(struct gangs *gangs, uint32_t id, const uint64_t *content)
{
	struct gang *gang = &gangs->gangs[id];
	gangs->timed -= gang->deadline_ms != 0;
	memcpy(gang, content, sizeof *gang);
	gangs->timed += gang->deadline_ms != 0;
}

static void take_back_arrive(struct gangs *gangs, uint64_t payload)
{
	struct entry *entry = &gangs->ledger->entries[payload >> 2];
	struct gang *gang = &gangs->gangs[entry_gang(entry)];
	entry->arrived = payload & 1;
	if (!entry->arrived)
		gang->missing++;
	gang->gone = payload >> 1 & 1;
}

static void take_back_bind(struct gangs *gangs, uint64_t payload)
{
	struct entry *entry = &gangs->ledger->entries[payload >> 2 & ID_MASK];
	struct gang *gang = &gangs->gangs[entry_gang(entry)];
	entry->hold = HOLD_RESERVED;
	entry->arrived = payload & 1;
	if (!entry->arrived)
		gang->missing++;
	gang->bound--;
	gang->whole = payload >> 1 & 1;
	gang->lost = (uint16_t)(payload >> (ID_BITS + 2));
}

static void take_back(void *owner, enum undo_kind kind, uint64_t payload, const uint64_t *content, uint32_t words)
{
	switch (kind) {
	case UNDO_MAKE:
		take_back_make(owner, (uint32_t)payload, content, words);
		break;
	case UNDO_JOIN:
		take_back_join(owner, (uint32_t)(payload >> 1), payload & 1);
		break;
	case UNDO_PART:
		take_back_part(owner, payload, *content);
		break;
	case UNDO_SET:
		take_back_set(owner, (uint32_t)payload, content);
		break;
	case UNDO_ARRIVE:
		take_back_arrive(owner, payload);
		break;
	default:
		take_back_bind(owner, payload);
	}
}
