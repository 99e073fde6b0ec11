/* SPDX-License-Identifier: Apache-2.0 */
#include "core/check.h"

#include <inttypes.h>

#define BROKEN(out, ...) (out_printf(out, __VA_ARGS__), FROND_BROKEN)

/* Invariant 1: a GPU has at most one owner; what the node says is held is what its entries hold. */
static int32_t check_node(const struct core *core, uint32_t slot, struct out *out)
{
	const struct ledger *ledger = &core->ledger;
	const struct node *node = &core->nodes[slot];
	uint32_t held = 0, by_count = 0, listed = 0;
	for (uint32_t at = node->first; at != FROND_NONE; at = entry_node_next(&ledger->entries[at])) {
		if (at >= ledger->cap || listed++ > ledger->used)
			return BROKEN(out, "node %" PRIu32 " lists entries without end or out of range", slot);
		const struct entry *entry = &ledger->entries[at];
		if (entry->hold == HOLD_FREE || entry_slot(entry) != slot)
			return BROKEN(out, "node %" PRIu32 " lists entry %" PRIu32 " that is not there", slot, at);
		if ((held & entry->mask) != 0)
			return BROKEN(out, "node %" PRIu32 ": a GPU of mask %" PRIx32 " has two owners", slot,
				      held & entry->mask);
		held |= entry->mask;
		by_count += entry->by_count;
	}
	if (held != node->held)
		return BROKEN(out, "node %" PRIu32 " holds mask %x but its owners hold %" PRIx32, slot,
			      (unsigned)node->held, held);
	if (node->free != node_count_free(node))
		return BROKEN(out, "node %" PRIu32 " says %u GPUs are free, it has %" PRIu32, slot,
			      (unsigned)node->free, node_count_free(node));
	if (!node->present && (held != 0 || node->by_count != 0))
		return BROKEN(out, "node %" PRIu32 " is gone but something is held there", slot);
	if (by_count != node->by_count)
		return BROKEN(out, "node %" PRIu32 " counts %" PRIu32 " GPUs held by count, its pods %" PRIu32, slot,
			      node->by_count, by_count);
	return FROND_OK;
}

/* Every entry is found by its key, holds what the owner table says, and no two share a GPU. */
static int32_t check_entries(const struct core *core, struct out *out)
{
	const struct ledger *ledger = &core->ledger;
	uint32_t used = 0, free = 0, on_nodes = 0, listed = 0;
	for (uint32_t at = 0; at < ledger->fresh; at++) {
		const struct entry *entry = &ledger->entries[at];
		if (entry->hold == HOLD_FREE)
			continue;
		used++;
		if (ledger_find(ledger, entry->pod) != at)
			return BROKEN(out, "entry %" PRIu32 " is not found by its key", at);
		if (entry_slot(entry) != FROND_NONE &&
		    (entry_slot(entry) >= core->node_cap || !core->nodes[entry_slot(entry)].present))
			return BROKEN(out, "entry %" PRIu32 " is on no node", at);
		if (entry_slot(entry) == FROND_NONE && (entry->mask != 0 || entry->by_count != 0))
			return BROKEN(out, "entry %" PRIu32 " holds GPUs of no node", at);
		on_nodes += entry_slot(entry) != FROND_NONE;
		if (entry->hold == HOLD_RESERVED && entry_gang(entry) == FROND_NONE)
			return BROKEN(out, "entry %" PRIu32 " is reserved in no gang", at);
	}
	for (uint32_t slot = 0; slot < core->node_cap; slot++)
		for (uint32_t at = core->nodes[slot].first; at < ledger->cap && listed <= ledger->used;
		     at = entry_node_next(&ledger->entries[at]))
			listed++;
	if (listed != on_nodes)
		return BROKEN(out, "%" PRIu32 " entries are on nodes, the nodes list %" PRIu32, on_nodes, listed);
	for (uint32_t at = ledger->free_head; at != FROND_NONE && free <= ledger->cap;
	     at = entry_chain(&ledger->entries[at]))
		free++;
	if (used != ledger->used || used + free != ledger->fresh || ledger->fresh > ledger->cap)
		return BROKEN(out,
			      "the ledger counts %" PRIu32 " entries, there are %" PRIu32 " and %" PRIu32
			      " free of %" PRIu32,
			      ledger->used, used, free, ledger->fresh);
	return FROND_OK;
}

static int32_t check_gangs(const struct core *core, struct out *out)
{
	const struct gangs *gangs = &core->gangs;
	uint32_t listed = 0, joined = 0, used = 0, timed = 0;
	for (uint32_t id = 0; id < gangs->fresh; id++) {
		const struct gang *gang = &gangs->gangs[id];
		if (gang_first(gang) == FROND_NONE)
			continue;
		used++;
		uint32_t members = 0, missing = 0, bound = 0, previous = FROND_NONE;
		for (uint32_t at = gang_first(gang); at != FROND_NONE && members <= gang->members;) {
			if (at >= core->ledger.cap)
				return BROKEN(out, "gang %" PRIu32 " lists an entry out of range", id);
			const struct entry *entry = &core->ledger.entries[at];
			if (entry_gang(entry) != id || entry_gang_prev(entry) != previous || entry->hold == HOLD_FREE)
				return BROKEN(out, "gang %" PRIu32 " lists entry %" PRIu32 " that is not its own", id,
					      at);
			members++;
			missing += entry->hold == HOLD_RESERVED && !entry->arrived;
			bound += entry->hold == HOLD_BOUND;
			previous = at;
			at = entry_gang_next(entry);
		}
		if (members != gang->members || missing != gang->missing || gangs_find(gangs, gang->key) != id)
			return BROKEN(out,
				      "gang %" PRIu32 " counts %" PRIu32 " members and %" PRIu32
				      " missing, it has %" PRIu32 " and %" PRIu32,
				      id, gang->members, gang->missing, members, missing);
		if (bound != gang->bound || (bound >= gang->min_member && !gang->whole))
			return BROKEN(out, "gang %" PRIu32 " counts %" PRIu32 " bound members, it has %" PRIu32, id,
				      (uint32_t)gang->bound, bound);
		timed += gang->deadline_ms != 0;
		listed += members;
	}
	if (timed != gangs->timed)
		return BROKEN(out, "%" PRIu32 " gangs have a deadline, %" PRIu32 " are counted", timed, gangs->timed);
	for (uint32_t at = 0; at < core->ledger.fresh; at++)
		joined += core->ledger.entries[at].hold != HOLD_FREE &&
			  entry_gang(&core->ledger.entries[at]) != FROND_NONE;
	if (listed != joined || used != gangs->used)
		return BROKEN(out, "%" PRIu32 " entries are in gangs, the gangs list %" PRIu32, joined, listed);
	return FROND_OK;
}

/* What a leaf says of its nodes is what its nodes say. */
static int32_t check_leaf(const struct core *core, uint32_t leaf, struct out *out)
{
	const struct fabric *fabric = &core->fabric;
	const struct leaf_sum *sum = &fabric->leaf[leaf];
	uint32_t at_least[FROND_GPUS_MAX + 1] = {0}, free = 0, used = 0, total = 0, odd = 0;
	for (uint32_t position = fabric->leaf_start[leaf]; position < fabric->leaf_start[leaf + 1]; position++) {
		const struct node *node = &core->nodes[fabric->order[position]];
		for (uint32_t i = 0; node_open(node) && i <= node_free_count(node); i++)
			at_least[i]++;
		free += node_free_count(node);
		used += node_used_count(node);
		total += node->gpus;
		odd += node->unhealthy != 0 || node_kind(node) != fabric->leaf_kind[leaf];
	}
	bool same = sum->free == free && sum->used == used && sum->total == total && sum->odd == odd;
	for (uint32_t i = 0; i <= FROND_GPUS_MAX; i++)
		same &= sum->at_least[i] == at_least[i];
	return same ? FROND_OK : BROKEN(out, "leaf %" PRIu32 " counts other GPUs than its nodes have", leaf);
}

static int32_t check_spine(const struct core *core, uint32_t spine, struct out *out)
{
	const struct fabric *fabric = &core->fabric;
	uint32_t first = fabric->leaf_start[fabric->spine_start[spine]],
		 end = fabric->leaf_start[fabric->spine_start[spine + 1]], touched = 0;
	for (uint32_t i = 0; i <= FROND_GPUS_MAX; i++) {
		uint32_t sum = 0;
		for (uint32_t leaf = fabric->spine_start[spine]; leaf < fabric->spine_start[spine + 1]; leaf++)
			sum += fabric->leaf[leaf].at_least[i];
		if (sum != fabric->spine[spine].at_least[i])
			return BROKEN(out, "spine %" PRIu32 " counts other nodes than its leaves", spine);
	}
	for (uint32_t position = first; position < end; position++) {
		const struct node *node = &core->nodes[fabric->order[position]];
		touched += !node_open(node) || node->unhealthy != 0 || node_used_count(node) > 0;
	}
	if (touched != fabric->spine[spine].touched)
		return BROKEN(out, "spine %" PRIu32 " counts %" PRIu32 " touched nodes, it has %" PRIu32, spine,
			      fabric->spine[spine].touched, touched);
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
		if (check_leaf(core, leaf, out) != FROND_OK)
			return FROND_BROKEN;
	}
	for (spine = 0; spine < fabric->spine_count; spine++)
		if (check_spine(core, spine, out) != FROND_OK)
			return FROND_BROKEN;
	for (uint32_t slot = 0; slot < core->node_cap; slot++) {
		present += core->nodes[slot].present;
		placed += fabric->position[slot] != FROND_NONE;
	}
	if (present != fabric->node_count || placed != fabric->node_count)
		return BROKEN(out, "%" PRIu32 " nodes are there, %" PRIu32 " are in the fabric", present,
			      fabric->node_count);
	return FROND_OK;
}

/* Every node has a link table, each is counted by as many nodes as have it, and no two share memory. */
static int32_t check_tables(const struct core *core, struct out *out)
{
	const struct tables *tables = &core->tables;
	uint32_t nodes[FROND_TOPOLOGIES] = {0};
	uint64_t bytes = 0;
	for (uint32_t slot = 0; slot < core->node_cap; slot++) {
		const struct node *node = &core->nodes[slot];
		nodes[node->topology] += node->present;
		uint32_t gpus = core_topology_gpus(core, node->topology);
		if (node->present && (gpus == FROND_NONE || gpus < node->gpus))
			return BROKEN(out, "node %" PRIu32 " has %u GPUs, its link table %u fewer, or it is not there",
				      slot, (unsigned)node->gpus, (unsigned)node->topology);
	}
	for (uint32_t id = 0; id < FROND_TOPOLOGIES; id++) {
		if (nodes[id] != tables->nodes[id])
			return BROKEN(out,
				      "link table %" PRIu32 " counts %" PRIu32 " nodes that have it, %" PRIu32 " do",
				      id, tables->nodes[id], nodes[id]);
		const uint8_t *at = (const uint8_t *)core->sets[id];
		uint64_t size = at == NULL ? 0 : tables_bytes(gpuset_gpus(core->sets[id]));
		bytes += size;
		if (at != NULL && (at < tables->memory || at + size > tables->memory + tables->used))
			return BROKEN(out, "link table %" PRIu32 " lies outside the memory in use", id);
		for (uint32_t other = 0; at != NULL && other < FROND_TOPOLOGIES; other++)
			if (other != id && (const uint8_t *)core->sets[other] >= at &&
			    (const uint8_t *)core->sets[other] < at + size)
				return BROKEN(out, "link tables %" PRIu32 " and %" PRIu32 " share memory", id, other);
	}
	if (bytes != tables->used)
		return BROKEN(out, "link tables count %" PRIu64 " bytes, they have %" PRIu64, tables->used, bytes);
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
	if (code == FROND_OK)
		code = check_tables(core, out);
	return code;
}

/* The entry with the smallest key above `after`: slow, needs no memory, and the order is the same everywhere. */
static uint32_t next_entry(const struct core *core, const struct frond_key *after)
{
	uint32_t best = FROND_NONE;
	for (uint32_t at = 0; at < core->ledger.fresh; at++) {
		const struct entry *entry = &core->ledger.entries[at];
		if (entry->hold == HOLD_FREE)
			continue;
		struct frond_key key = entry->pod;
		if (after != NULL && !key_before(*after, key))
			continue;
		if (best == FROND_NONE || key_before(key, core->ledger.entries[best].pod))
			best = at;
	}
	return best;
}

static void dump_gang(const struct gang *gang, struct out *out)
{
	const struct terms unpacked = gang_terms(gang), *terms = &unpacked;
	out_printf(out, " gang %016" PRIx64 "%016" PRIx64 " state %d min %" PRIu32 " lost %" PRIu32 "%s", gang->key.hi,
		   gang->key.lo, (int)gang_state(gang), (uint32_t)gang->min_member, (uint32_t)gang->lost,
		   gang->gone ? " gone" : "");
	out_printf(out, " priority %" PRId32 " deadline %" PRId64 " terms %u %u %u %u %" PRIu32 " %" PRIx64,
		   gang->priority, (int64_t)gang->deadline_ms, (unsigned)terms->strategy, (unsigned)terms->mode,
		   (unsigned)terms->recovery, (unsigned)terms->latency_sensitive, terms->bandwidth_gbps, terms->domain);
	out_printf(out, " gpu %d %d %d %" PRIu32 " %" PRIx32, (int)terms->gpu.policy, (int)terms->gpu.mode,
		   (int)terms->gpu.locality, terms->gpu.min_gbps, terms->gpu.prefer);
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
			   "node %" PRIu32 " gpus %u topology %u unhealthy %x flags %u uplink %" PRIu32
			   " held %x count %" PRIu32 " position %" PRIu32,
			   slot, (unsigned)node->gpus, (unsigned)node->topology, (unsigned)node->unhealthy,
			   (unsigned)node->flags | (node->replicas ? (unsigned)FROND_NODE_REPLICAS : 0),
			   node->uplink_gbps, (unsigned)node->held, node->by_count, position);
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
		if (entry_slot(entry) != FROND_NONE)
			out_printf(out, " node %" PRIu32 " mask %x count %" PRIu32, entry_slot(entry),
				   (unsigned)entry->mask, entry->by_count);
		if (entry_rank(entry) != FROND_NONE)
			out_printf(out, " rank %" PRIu32, entry_rank(entry));
		if (entry_gang(entry) != FROND_NONE) {
			dump_gang(&core->gangs.gangs[entry_gang(entry)], out);
		}
		out_printf(out, "\n");
	}
}
