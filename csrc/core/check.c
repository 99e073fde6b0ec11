/* SPDX-License-Identifier: Apache-2.0 */
#include "core/check.h"

#include <inttypes.h>

#define BROKEN(out, ...) (out_printf(out, __VA_ARGS__), FROND_BROKEN)

/* Invariant 1: a GPU has at most one owner, and owner table, masks and counts say the same. */
static int32_t check_node(const struct core *core, uint32_t slot, struct out *out)
{
	const struct ledger *ledger = &core->ledger;
	const struct node *node = &core->nodes[slot];
	uint32_t held = 0, by_count = 0;
	for (uint32_t gpu = 0; gpu < FROND_GPUS_MAX; gpu++) {
		uint32_t owner = ledger->owner[slot * FROND_GPUS_MAX + gpu];
		if (owner == FROND_NONE)
			continue;
		held |= 1u << gpu;
		if (owner >= ledger->cap)
			return BROKEN(out, "node %" PRIu32 " gpu %" PRIu32 " has an owner out of range", slot, gpu);
		const struct entry *entry = &ledger->entries[owner];
		if (entry->hold == HOLD_FREE || entry->slot != slot || !(entry->mask >> gpu & 1))
			return BROKEN(out, "node %" PRIu32 " gpu %" PRIu32 " has an owner that does not hold it", slot,
				      gpu);
	}
	if (held != node->held)
		return BROKEN(out, "node %" PRIu32 " holds mask %" PRIx32 " but its owners hold %" PRIx32, slot,
			      node->held, held);
	if (!node->present && (held != 0 || node->by_count != 0))
		return BROKEN(out, "node %" PRIu32 " is gone but something is held there", slot);
	for (uint32_t at = 0; at < ledger->cap; at++)
		if (ledger->entries[at].hold != HOLD_FREE && ledger->entries[at].slot == slot)
			by_count += ledger->entries[at].by_count;
	if (by_count != node->by_count)
		return BROKEN(out, "node %" PRIu32 " counts %" PRIu32 " GPUs held by count, its pods %" PRIu32, slot,
			      node->by_count, by_count);
	return FROND_OK;
}

/* Every entry is found by its key, holds what the owner table says, and no two share a GPU. */
static int32_t check_entries(const struct core *core, struct out *out)
{
	const struct ledger *ledger = &core->ledger;
	uint32_t used = 0, free = 0;
	for (uint32_t at = 0; at < ledger->cap; at++) {
		const struct entry *entry = &ledger->entries[at];
		if (entry->hold == HOLD_FREE)
			continue;
		used++;
		if (ledger_find(ledger, entry->pod) != at)
			return BROKEN(out, "entry %" PRIu32 " is not found by its key", at);
		if (entry->slot != FROND_NONE && (entry->slot >= core->node_cap || !core->nodes[entry->slot].present))
			return BROKEN(out, "entry %" PRIu32 " is on no node", at);
		if (entry->slot == FROND_NONE && (entry->mask != 0 || entry->by_count != 0))
			return BROKEN(out, "entry %" PRIu32 " holds GPUs of no node", at);
		for (uint32_t gpu = 0; gpu < FROND_GPUS_MAX; gpu++)
			if (entry->mask >> gpu & 1 && ledger->owner[entry->slot * FROND_GPUS_MAX + gpu] != at)
				return BROKEN(out, "entry %" PRIu32 " holds gpu %" PRIu32 " that another owns", at,
					      gpu);
		if (entry->hold == HOLD_RESERVED && entry->gang == FROND_NONE)
			return BROKEN(out, "entry %" PRIu32 " is reserved in no gang", at);
	}
	for (uint32_t at = ledger->free_head; at != FROND_NONE && free <= ledger->cap; at = ledger->entries[at].chain)
		free++;
	if (used != ledger->used || used + free != ledger->cap)
		return BROKEN(out,
			      "the ledger counts %" PRIu32 " entries, there are %" PRIu32 " and %" PRIu32
			      " free of %" PRIu32,
			      ledger->used, used, free, ledger->cap);
	return FROND_OK;
}

static int32_t check_gangs(const struct core *core, struct out *out)
{
	const struct gangs *gangs = &core->gangs;
	uint32_t listed = 0, joined = 0, used = 0;
	for (uint32_t id = 0; id < gangs->cap; id++) {
		const struct gang *gang = &gangs->gangs[id];
		if (gang->first == FROND_NONE)
			continue;
		used++;
		uint32_t members = 0, missing = 0, previous = FROND_NONE;
		for (uint32_t at = gang->first; at != FROND_NONE && members <= gang->members;) {
			if (at >= core->ledger.cap)
				return BROKEN(out, "gang %" PRIu32 " lists an entry out of range", id);
			const struct entry *entry = &core->ledger.entries[at];
			if (entry->gang != id || entry->gang_prev != previous || entry->hold == HOLD_FREE)
				return BROKEN(out, "gang %" PRIu32 " lists entry %" PRIu32 " that is not its own", id,
					      at);
			members++;
			missing += entry->hold == HOLD_RESERVED && !entry->arrived;
			previous = at;
			at = entry->gang_next;
		}
		if (members != gang->members || missing != gang->missing || gangs_find(gangs, gang->key) != id)
			return BROKEN(out,
				      "gang %" PRIu32 " counts %" PRIu32 " members and %" PRIu32
				      " missing, it has %" PRIu32 " and %" PRIu32,
				      id, gang->members, gang->missing, members, missing);
		listed += members;
	}
	for (uint32_t at = 0; at < core->ledger.cap; at++)
		joined += core->ledger.entries[at].hold != HOLD_FREE && core->ledger.entries[at].gang != FROND_NONE;
	if (listed != joined || used != gangs->used)
		return BROKEN(out, "%" PRIu32 " entries are in gangs, the gangs list %" PRIu32, joined, listed);
	return FROND_OK;
}

static int32_t check_fabric(const struct core *core, struct out *out)
{
	const struct fabric *fabric = &core->fabric;
	uint32_t leaf = 0, spine = 0, present = 0, placed = 0;
	for (uint32_t position = 0; position < fabric->node_count; position++) {
		uint32_t slot = fabric->order[position];
		if (slot >= core->node_cap || fabric->position[slot] != position || !core->nodes[slot].present)
			return BROKEN(out, "position %" PRIu32 " and its node disagree", position);
		while (leaf < fabric->leaf_count && position >= fabric->leaf_start[leaf + 1])
			leaf++;
		if (fabric->leaf_of[position] != (leaf < fabric->leaf_count ? leaf : FROND_NONE))
			return BROKEN(out, "position %" PRIu32 " is in the wrong leaf", position);
	}
	for (leaf = 0; leaf < fabric->leaf_count; leaf++) {
		while (spine < fabric->spine_count && leaf >= fabric->spine_start[spine + 1])
			spine++;
		if (spine == fabric->spine_count || fabric->leaf_spine[leaf] != spine ||
		    fabric->leaf_start[leaf] > fabric->leaf_start[leaf + 1])
			return BROKEN(out, "leaf %" PRIu32 " is under the wrong spine or ends before it begins", leaf);
	}
	for (uint32_t slot = 0; slot < core->node_cap; slot++) {
		present += core->nodes[slot].present;
		placed += fabric->position[slot] != FROND_NONE;
	}
	if (present != fabric->node_count || placed != fabric->node_count)
		return BROKEN(out, "%" PRIu32 " nodes are there, %" PRIu32 " are in the fabric", present,
			      fabric->node_count);
	return FROND_OK;
}

int32_t core_check(const struct core *core, struct out *out)
{
	int32_t code = check_entries(core, out);
	for (uint32_t slot = 0; code == FROND_OK && slot < core->node_cap; slot++)
		if (core->nodes[slot].present || core->nodes[slot].held != 0 || core->nodes[slot].by_count != 0)
			code = check_node(core, slot, out);
	if (code == FROND_OK)
		code = check_gangs(core, out);
	if (code == FROND_OK)
		code = check_fabric(core, out);
	return code;
}

/* The entry with the smallest key above `after`: slow, needs no memory, and the order is the same everywhere. */
static uint32_t next_entry(const struct core *core, const struct frond_key *after)
{
	uint32_t best = FROND_NONE;
	for (uint32_t at = 0; at < core->ledger.cap; at++) {
		const struct entry *entry = &core->ledger.entries[at];
		if (entry->hold == HOLD_FREE)
			continue;
		struct frond_key key = entry->pod;
		if (after != NULL && (key.hi < after->hi || (key.hi == after->hi && key.lo <= after->lo)))
			continue;
		if (best != FROND_NONE) {
			struct frond_key other = core->ledger.entries[best].pod;
			if (key.hi > other.hi || (key.hi == other.hi && key.lo > other.lo))
				continue;
		}
		best = at;
	}
	return best;
}

void core_dump(struct core *core, struct out *out)
{
	const struct fabric *fabric = &core->fabric;
	out_printf(out, "frond dump 1\n");
	for (uint32_t slot = 0; slot < core->node_cap; slot++) {
		const struct node *node = &core->nodes[slot];
		if (!node->present)
			continue;
		uint32_t position = fabric->position[slot];
		uint32_t leaf = fabric->leaf_of[position];
		out_printf(out,
			   "node %" PRIu32 " gpus %" PRIu32 " unhealthy %" PRIx32 " flags %" PRIu32 " uplink %" PRIu32
			   " held %" PRIx32 " count %" PRIu32 " position %" PRIu32,
			   slot, node->gpus, node->unhealthy, node->flags, node->uplink_gbps, node->held,
			   node->by_count, position);
		if (leaf == FROND_NONE)
			out_printf(out, " leaf none\n");
		else
			out_printf(out, " leaf %" PRIu32 " spine %" PRIu32 "\n", leaf, fabric->leaf_spine[leaf]);
	}
	struct frond_key last;
	for (uint32_t at = next_entry(core, NULL); at != FROND_NONE; at = next_entry(core, &last)) {
		const struct entry *entry = &core->ledger.entries[at];
		last = entry->pod;
		out_printf(out, "pod %016" PRIx64 "%016" PRIx64 " %s", last.hi, last.lo,
			   entry->hold == HOLD_BOUND ? "bound"
			   : entry->arrived          ? "arrived"
						     : "reserved");
		if (entry->slot != FROND_NONE)
			out_printf(out, " node %" PRIu32 " mask %" PRIx32 " count %" PRIu32, entry->slot, entry->mask,
				   entry->by_count);
		if (entry->rank != FROND_NONE)
			out_printf(out, " rank %" PRIu32, entry->rank);
		if (entry->gang != FROND_NONE) {
			const struct gang *gang = &core->gangs.gangs[entry->gang];
			out_printf(out, " gang %016" PRIx64 "%016" PRIx64 "%s", gang->key.hi, gang->key.lo,
				   gang->gone ? " gone" : "");
		}
		out_printf(out, "\n");
	}
}
