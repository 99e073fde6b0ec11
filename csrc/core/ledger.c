/* SPDX-License-Identifier: Apache-2.0 */
#include "core/ledger.h"

enum { ENTRY_WORDS = sizeof(struct entry) / sizeof(uint64_t) };

static undo_taker take_back;

static uint32_t hash(const struct ledger *ledger, struct frond_key pod)
{
	uint64_t mixed = (pod.hi ^ pod.lo * 0xff51afd7ed558ccdull) * 0x9e3779b97f4a7c15ull;
	return (uint32_t)(mixed >> 32) & ledger->bucket_mask;
}

void ledger_layout(struct ledger *ledger, struct arena *arena, struct undo *undo, struct fabric *fabric,
		   struct node *nodes, uint32_t pod_cap, uint32_t hold_cap)
{
	uint32_t buckets = 16;
	while (buckets < pod_cap / 2)
		buckets *= 2;
	ledger->undo = undo;
	undo_own(undo, UNDO_ENTER, UNDO_LET_GO, take_back, ledger);
	ledger->fabric = fabric;
	ledger->nodes = nodes;
	ledger->cap = pod_cap;
	ledger->bucket_mask = buckets - 1;
	ledger->entries = arena_raw(arena, pod_cap, sizeof *ledger->entries);
	ledger->bucket = arena_raw(arena, buckets, sizeof *ledger->bucket);
	holds_layout(&ledger->holds, arena, hold_cap);
	if (arena->base == NULL)
		return;
	for (uint32_t i = 0; i < buckets; i++)
		ledger->bucket[i] = FROND_NONE;
	ledger->free_head = FROND_NONE;
	ledger->fresh = 0;
}

/* From this one on in its chain. */
static uint32_t find_from(const struct ledger *ledger, struct frond_key pod, uint32_t at)
{
	while (at != FROND_NONE && !key_equal(ledger->entries[at].pod, pod))
		at = entry_chain(&ledger->entries[at]);
	return at;
}

uint32_t ledger_find(const struct ledger *ledger, struct frond_key pod)
{
	return find_from(ledger, pod, ledger->bucket[hash(ledger, pod)]);
}

void ledger_find_all(const struct ledger *ledger, const struct frond_key *pods, uint32_t count, uint32_t *out)
{
	assert(count <= LEDGER_BATCH);
	for (uint32_t i = 0; i < count; i++) {
		out[i] = hash(ledger, pods[i]);
		__builtin_prefetch(&ledger->bucket[out[i]]);
	}
	for (uint32_t i = 0; i < count; i++) {
		out[i] = ledger->bucket[out[i]];
		if (out[i] != FROND_NONE)
			__builtin_prefetch(&ledger->entries[out[i]]);
	}
	for (uint32_t i = 0; i < count; i++)
		out[i] = find_from(ledger, pods[i], out[i]);
}

uint32_t ledger_owner(const struct ledger *ledger, uint32_t slot, uint32_t gpu)
{
	uint32_t at = ledger->nodes[slot].first;
	while (at != FROND_NONE && !(ledger->entries[at].mask >> gpu & 1))
		at = entry_node_next(&ledger->entries[at]);
	return at;
}

uint32_t ledger_owned(const struct ledger *ledger, uint32_t slot)
{
	uint32_t owned = 0;
	if (!ledger->nodes[slot].kept)
		return ledger->nodes[slot].held;
	for (uint32_t at = ledger->nodes[slot].first; at != FROND_NONE; at = entry_node_next(&ledger->entries[at]))
		owned |= (uint32_t)ledger->entries[at].mask;
	return owned;
}

uint32_t ledger_frees(const struct ledger *ledger, const struct entry *entry)
{
	bool kept = ledger->nodes[entry_slot(entry)].kept;
	return (uint32_t)entry->mask & ~(kept ? holds_mask(&ledger->holds, entry_slot(entry)) : 0);
}

void ledger_count(struct ledger *ledger, const struct entry *entry, bool onto)
{
	struct node *node = &ledger->nodes[entry_slot(entry)];
	fabric_take_out(ledger->fabric, entry_slot(entry), node);
	node->held = (uint16_t)(onto ? node->held | entry->mask : node->held & ~ledger_frees(ledger, entry));
	node_count(node, (uint32_t)entry->by_count, onto);
	node_settle(node);
	fabric_put_in(ledger->fabric, entry_slot(entry), node);
}

/* Behind `before` in the node's list, FROND_NONE: as the first. */
static void onto_node(struct ledger *ledger, uint32_t at, uint32_t before)
{
	struct entry *entry = &ledger->entries[at];
	struct node *node = &ledger->nodes[entry_slot(entry)];
	ledger_count(ledger, entry, true);
	if (before == FROND_NONE) {
		entry->node_next_up = (node->first + 1) & ID_MASK;
		node->first = at;
	} else {
		entry->node_next_up = ledger->entries[before].node_next_up;
		ledger->entries[before].node_next_up = (at + 1) & ID_MASK;
	}
}

/* Returns who was before it in the node's list; it still knows who was behind it. */
static uint32_t off_node(struct ledger *ledger, uint32_t at)
{
	const struct entry *entry = &ledger->entries[at];
	struct node *node = &ledger->nodes[entry_slot(entry)];
	assert((node->held & entry->mask) == entry->mask && node->by_count >= entry->by_count);
	ledger_count(ledger, entry, false);
	if (node->first == at) {
		node->first = entry_node_next(entry);
		return FROND_NONE;
	}
	uint32_t before = node->first;
	while (entry_node_next(&ledger->entries[before]) != at)
		before = entry_node_next(&ledger->entries[before]);
	ledger->entries[before].node_next_up = entry->node_next_up;
	return before;
}

/* The same for the chain of its bucket. */
static void into_chain(struct ledger *ledger, uint32_t at, uint32_t before)
{
	struct entry *entry = &ledger->entries[at];
	uint32_t *home = &ledger->bucket[hash(ledger, entry->pod)];
	if (before == FROND_NONE) {
		entry->chain_up = (*home + 1) & ID_MASK;
		*home = at;
	} else {
		entry->chain_up = ledger->entries[before].chain_up;
		ledger->entries[before].chain_up = (at + 1) & ID_MASK;
	}
}

static uint32_t out_of_chain(struct ledger *ledger, uint32_t at)
{
	const struct entry *entry = &ledger->entries[at];
	uint32_t *home = &ledger->bucket[hash(ledger, entry->pod)], before = *home;
	if (before == at) {
		*home = entry_chain(entry);
		return FROND_NONE;
	}
	while (entry_chain(&ledger->entries[before]) != at)
		before = entry_chain(&ledger->entries[before]);
	ledger->entries[before].chain_up = entry->chain_up;
	return before;
}

int32_t ledger_enter(struct ledger *ledger, struct frond_key pod, enum holding hold, uint32_t slot, uint32_t mask,
		     uint32_t by_count, uint32_t rank, uint32_t label, uint32_t *out)
{
	assert(hold != HOLD_FREE && ledger_find(ledger, pod) == FROND_NONE && by_count <= FROND_POD_GPUS_MAX);
	assert(rank == FROND_NONE || rank <= FROND_RANK_MAX);
	uint32_t at = ledger->free_head != FROND_NONE ? ledger->free_head : ledger->fresh;
	if (ledger->used == ledger->cap)
		return FROND_LIMIT;
	struct entry *entry = &ledger->entries[at];
	bool used_before = at != ledger->fresh;
	uint32_t taken = 0;
	if (slot != FROND_NONE)
		taken = mask & (ledger_owned(ledger, slot) | ~bits_first(ledger->nodes[slot].gpus));
	if (undo_logs(ledger->undo))
		undo_append(ledger->undo, UNDO_ENTER, (uint64_t)at << 1 | (taken != 0), entry,
			    used_before ? ENTRY_WORDS : 0);
	if (used_before)
		ledger->free_head = entry_chain(entry);
	else
		ledger->fresh++;
	ledger->used++;
	ledger->conflicts += taken != 0;
	*entry = (struct entry){.pod = pod,
				.hold = (uint32_t)hold & 3u,
				.slot_up = (slot + 1) & SLOT_MASK,
				.mask = mask & ~taken & UINT16_MAX,
				.by_count = (by_count + bits_count(taken)) & BY_COUNT_MASK,
				.rank_up = (rank + 1) & ID_MASK,
				.label_up = (label + 1) & LABEL_MASK};
	into_chain(ledger, at, FROND_NONE);
	if (slot != FROND_NONE)
		onto_node(ledger, at, FROND_NONE);
	*out = at;
	return FROND_OK;
}

static void take_back_enter(struct ledger *ledger, uint64_t payload, const uint64_t *content, uint32_t words)
{
	uint32_t at = (uint32_t)(payload >> 1);
	struct entry *entry = &ledger->entries[at];
	uint32_t on_node = entry_slot(entry) != FROND_NONE ? off_node(ledger, at) : FROND_NONE;
	uint32_t in_chain = out_of_chain(ledger, at);
	assert(on_node == FROND_NONE && in_chain == FROND_NONE); /* it came last, to the front */
	ledger->conflicts -= payload & 1;
	ledger->used--;
	if (words == 0) {
		ledger->fresh--;
		return;
	}
	memcpy(entry, content, sizeof *entry);
	ledger->free_head = at;
}

void ledger_devices(struct ledger *ledger, uint32_t at, uint32_t mask)
{
	struct entry *entry = &ledger->entries[at];
	struct node *node = &ledger->nodes[entry_slot(entry)];
	assert((mask & ledger_owned(ledger, entry_slot(entry)) & ~(uint32_t)entry->mask) == 0 &&
	       entry_gpus(entry) == bits_count(mask));
	assert(!undo_logs(ledger->undo)); /* a fact, never a guess */
	fabric_take_out(ledger->fabric, entry_slot(entry), node);
	node->held = (uint16_t)(node->held | mask);
	node_count(node, (uint32_t)entry->by_count, false);
	entry->mask = mask & UINT16_MAX;
	entry->by_count = 0;
	node_settle(node);
	fabric_put_in(ledger->fabric, entry_slot(entry), node);
}

void ledger_leave(struct ledger *ledger, uint32_t at)
{
	struct entry *entry = &ledger->entries[at];
	assert(entry->hold != HOLD_FREE && entry_gang(entry) == FROND_NONE);
	uint32_t on_node = FROND_NONE, hold = entry->hold;
	if (entry_slot(entry) != FROND_NONE)
		on_node = off_node(ledger, at);
	uint32_t in_chain = out_of_chain(ledger, at);
	if (undo_logs(ledger->undo))
		undo_append(ledger->undo, UNDO_LEAVE,
			    ((on_node + 1ull) & ID_MASK) << (ID_BITS + 2) | ((in_chain + 1ull) & ID_MASK) << 2 | hold,
			    NULL, 0);
	entry->hold = HOLD_FREE; /* the rest stays, for whoever takes it back */
	entry->chain_up = (ledger->free_head + 1) & ID_MASK;
	ledger->free_head = at;
	ledger->used--;
}

/* Who left last is the first that is free. */
static void take_back_leave(struct ledger *ledger, uint64_t payload)
{
	uint32_t at = ledger->free_head;
	struct entry *entry = &ledger->entries[at];
	ledger->free_head = entry_chain(entry);
	ledger->used++;
	entry->hold = payload & 3u;
	into_chain(ledger, at, (uint32_t)(payload >> 2 & ID_MASK) - 1);
	if (entry_slot(entry) != FROND_NONE)
		onto_node(ledger, at, (uint32_t)(payload >> (ID_BITS + 2)) - 1);
}

/* ---- holds ------------------------------------------------------------------------------------------------------------ */

/* A hold lies on its node, or is about to leave it: what of it nobody has is held, or free. */
static void count_hold(struct ledger *ledger, uint32_t slot, uint32_t mask, bool keeps)
{
	struct node *node = &ledger->nodes[slot];
	uint32_t idle = mask & ~ledger_owned(ledger, slot);
	fabric_take_out(ledger->fabric, slot, node);
	node->held = (uint16_t)(keeps ? node->held | idle : node->held & ~idle);
	node_settle(node);
	fabric_put_in(ledger->fabric, slot, node);
}

static void keep(struct ledger *ledger, uint32_t slot, uint32_t mask)
{
	count_hold(ledger, slot, mask, true);
	ledger->nodes[slot].kept = true;
}

bool ledger_keep(struct ledger *ledger, const struct frond_hold *list, uint32_t count, uint32_t *bad, bool *twice)
{
	assert(!undo_logs(ledger->undo)); /* ids of holds that a what-if has ended stay free until it is taken back */
	if (!holds_add(&ledger->holds, list, count, bad, twice))
		return false;
	for (uint32_t i = 0; i < count; i++)
		keep(ledger, list[i].slot, list[i].gpu_mask);
	return true;
}

void ledger_let_go(struct ledger *ledger, uint32_t id)
{
	const struct hold *hold = &ledger->holds.all[id];
	if (undo_logs(ledger->undo))
		undo_append(ledger->undo, UNDO_LET_GO, 0, NULL, 0);
	count_hold(ledger, hold->slot, hold->mask, false);
	holds_end(&ledger->holds, id);
	ledger->nodes[hold->slot].kept = holds_on(&ledger->holds, hold->slot) != FROND_NONE;
}

static void count_lifted(struct ledger *ledger, bool keeps)
{
	const struct holds *holds = &ledger->holds;
	uint32_t first, end;
	holds_of(holds, holds->lifted, &first, &end);
	for (uint32_t at = first; at < end; at++) {
		const struct hold *hold = &holds->all[holds->order[at]];
		count_hold(ledger, hold->slot, hold->mask, keeps);
	}
}

void ledger_lift(struct ledger *ledger, struct frond_key gang)
{
	assert(key_zero(ledger->holds.lifted));
	ledger->holds.lifted = gang;
	count_lifted(ledger, false);
}

void ledger_lower(struct ledger *ledger)
{
	count_lifted(ledger, true);
	ledger->holds.lifted = (struct frond_key){0, 0};
}

static void take_back_let_go(struct ledger *ledger)
{
	const struct hold *hold = &ledger->holds.all[holds_back(&ledger->holds)];
	keep(ledger, hold->slot, hold->mask);
}

static void take_back(void *owner, enum undo_kind kind, uint64_t payload, const uint64_t *content, uint32_t words)
{
	if (kind == UNDO_ENTER)
		take_back_enter(owner, payload, content, words);
	else if (kind == UNDO_LEAVE)
		take_back_leave(owner, payload);
	else
		take_back_let_go(owner);
}
