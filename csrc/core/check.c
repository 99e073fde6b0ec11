/* SPDX-License-Identifier: Apache-2.0 */
#include "core/check.h"

#include "core/sort.h"

#include <inttypes.h>

#define BROKEN(out, ...) (out_printf(out, __VA_ARGS__), FROND_BROKEN)

/* What holds keep of a node, from their list alone. */
static uint32_t kept_mask(const struct holds *holds, uint32_t slot)
{
	uint32_t mask = 0;
	for (uint32_t at = 0; at < holds->used; at++)
		mask |= holds->all[holds->order[at]].slot == slot ? holds->all[holds->order[at]].mask : 0u;
	return mask;
}

/* Invariant 1: a GPU has at most one owner; what the node says is held is what its entries hold and holds keep. */
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
	uint32_t kept = node->kept ? kept_mask(&ledger->holds, slot) : 0;
	if ((held | kept) != node->held || node->kept != (kept != 0))
		return BROKEN(out, "node %" PRIu32 " holds mask %x but its owners hold %" PRIx32 " and holds %" PRIx32,
			      slot, (unsigned)node->held, held, kept);
	if (node->free != node_count_free(node))
		return BROKEN(out, "node %" PRIu32 " says %u GPUs are free, it has %" PRIu32, slot,
			      (unsigned)node->free, node_count_free(node));
	if (!node->present && (node->held != 0 || node->by_count != 0))
		return BROKEN(out, "node %" PRIu32 " is gone but something is held there", slot);
	if (by_count != node->by_count)
		return BROKEN(out, "node %" PRIu32 " counts %" PRIu32 " GPUs held by count, its pods %" PRIu32, slot,
			      (uint32_t)node->by_count, by_count);
	if ((node->unavailable && node->flags == 0) || (node->unavailable_gpus & ~node->unhealthy) != 0)
		return BROKEN(out, "node %" PRIu32 " is no capacity for the rule, but open or healthy", slot);
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

/* Holds stand in order, on nodes that know of them, each is found by gang and rank and by node, and no two share a GPU. */
static int32_t check_holds(const struct core *core, struct out *out)
{
	const struct holds *holds = &core->ledger.holds;
	uint32_t free = 0, timed = 0;
	for (uint32_t at = 0; at < holds->used; at++) {
		uint32_t id = holds->order[at];
		if (id >= holds->fresh || holds->all[id].ended)
			return BROKEN(out, "place %" PRIu32 " of the holds has none", at);
		const struct hold *hold = &holds->all[id];
		if (holds_find(holds, hold->gang, hold->rank) != at)
			return BROKEN(out, "hold %" PRIu32 " is not found by its gang and rank", id);
		if (hold->slot >= core->node_cap || !core->nodes[hold->slot].present || !core->nodes[hold->slot].kept)
			return BROKEN(out, "hold %" PRIu32 " is on no node, or on one that does not know it", id);
		uint32_t gpus = 0, kept = kept_mask(holds, hold->slot);
		for (uint32_t other = holds_on(holds, hold->slot), seen = 0; other != FROND_NONE;
		     other = holds->all[other].next) {
			if (other >= holds->fresh || holds->all[other].ended || seen++ > holds->used)
				return BROKEN(out, "node %" PRIu32 " lists holds that are not there", hold->slot);
			gpus += holds->all[other].slot == hold->slot ? bits_count(holds->all[other].mask) : 0;
		}
		if (hold->mask == 0 || gpus != bits_count(kept) || holds_mask(holds, hold->slot) != kept)
			return BROKEN(out, "holds on node %" PRIu32 " share a GPU, or one is not listed there",
				      hold->slot);
		timed += hold->deadline_ms != 0;
		if (hold->deadline_ms != 0 && (int64_t)hold->deadline_ms < holds->soonest)
			return BROKEN(out, "hold %" PRIu32 " ends before the soonest", id);
	}
	for (uint32_t id = holds->free_head; id != FROND_NONE && free <= holds->cap; id = holds->all[id].next)
		free++;
	if (holds->used + free != holds->fresh || holds->fresh > holds->cap || timed != holds->timed ||
	    !key_zero(holds->lifted))
		return BROKEN(out,
			      "%" PRIu32 " holds and %" PRIu32 " free of %" PRIu32 ", %" PRIu32
			      " with a deadline of %" PRIu32,
			      holds->used, free, holds->fresh, timed, holds->timed);
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
	uint32_t at_least[FROND_GPUS_MAX + 1] = {0}, free = 0, used = 0, total = 0, odd = 0, lacking = 0;
	uint64_t models = 0;
	for (uint32_t position = fabric->leaf_start[leaf]; position < fabric->leaf_start[leaf + 1]; position++) {
		const struct node *node = &core->nodes[fabric->order[position]];
		for (uint32_t i = 0; node_open(node) && i <= node_free_count(node); i++)
			at_least[i]++;
		free += node_free_count(node);
		used += node_used_count(node);
		total += node->gpus;
		models |= 1ull << node->model;
		odd += node->unhealthy != 0 || node_kind(node) != fabric->leaf_kind[leaf];
		lacking += node_lacks(node);
	}
	bool same = sum->free == free && sum->used == used && sum->total == total && sum->odd == odd &&
		    fabric->leaf_lacking[leaf] == lacking;
	for (uint32_t i = 0; i <= FROND_GPUS_MAX; i++)
		same &= sum->at_least[i] == at_least[i];
	if (!same)
		return BROKEN(out, "leaf %" PRIu32 " counts other GPUs than its nodes have", leaf);
	bool several = (fabric->leaf_model[leaf] & LEAF_MODELS) != 0;
	same = models == 0 || ((models >> (fabric->leaf_model[leaf] & (LEAF_MODELS - 1)) & 1) != 0 &&
			       (models_count(models) > 1) == several);
	return same ? FROND_OK : BROKEN(out, "leaf %" PRIu32 " names other models than its nodes have", leaf);
}

static int32_t check_spine(const struct core *core, uint32_t spine, struct out *out)
{
	const struct fabric *fabric = &core->fabric;
	uint32_t first = fabric->leaf_start[fabric->spine_start[spine]],
		 end = fabric->leaf_start[fabric->spine_start[spine + 1]], touched = 0, lacking = 0;
	for (uint32_t i = 0; i <= FROND_GPUS_MAX; i++) {
		uint32_t sum = 0;
		for (uint32_t leaf = fabric->spine_start[spine]; leaf < fabric->spine_start[spine + 1]; leaf++)
			sum += fabric->leaf[leaf].at_least[i];
		if (sum != fabric->spine[spine].at_least[i])
			return BROKEN(out, "spine %" PRIu32 " counts other nodes than its leaves", spine);
	}
	for (uint32_t position = first; position < end; position++) {
		const struct node *node = &core->nodes[fabric->order[position]];
		touched += !node_open(node) || node->unhealthy != 0 || !node_whole(node);
		lacking += node_lacks(node);
	}
	if (lacking != fabric->spine[spine].lacking)
		return BROKEN(out, "spine %" PRIu32 " counts %" PRIu32 " nodes that lack capacity, it has %" PRIu32,
			      spine, fabric->spine[spine].lacking, lacking);
	if (touched != fabric->spine[spine].touched)
		return BROKEN(out, "spine %" PRIu32 " counts %" PRIu32 " touched nodes, it has %" PRIu32, spine,
			      (uint32_t)fabric->spine[spine].touched, touched);
	return FROND_OK;
}

/* The sums of a block are what its leaves have, each of which has been checked. */
static int32_t check_block(const struct fabric *fabric, uint32_t first, struct out *out)
{
	const struct block_sum *block = &fabric->block[first >> fabric->block_shift];
	uint32_t end = min_u32(first + (1u << fabric->block_shift), fabric->leaf_count);
	uint32_t least = UINT32_MAX, most = 0, kind = fabric->leaf_kind[first];
	for (uint32_t leaf = first; leaf < end; leaf++) {
		const struct leaf_sum *sum = &fabric->leaf[leaf];
		least = min_u32(least, sum->free);
		most = max_u32(most, sum->free);
		kind = kind == fabric->leaf_kind[leaf] && sum->total == fabric->leaf[first].total ? kind : FROND_NONE;
	}
	bool same = block->free_least == least && block->free_most == most;
	same &= block->kind == kind && block->total == fabric->leaf[first].total;
	for (uint32_t i = 1; i <= FROND_GPUS_MAX; i++) {
		least = UINT32_MAX;
		most = 0;
		for (uint32_t leaf = first; leaf < end; leaf++) {
			least = min_u32(least, fabric->leaf[leaf].at_least[i]);
			most = max_u32(most, fabric->leaf[leaf].at_least[i]);
		}
		same &= block->least[i - 1] == least && block->most[i - 1] == most;
	}
	return same ? FROND_OK
		    : BROKEN(out, "leaves %" PRIu32 " to %" PRIu32 " have other counts than their block says", first,
			     end - 1);
}

static int32_t check_blocks(const struct fabric *fabric, struct out *out)
{
	for (uint32_t leaf = 0; leaf < fabric->leaf_count; leaf += 1u << fabric->block_shift)
		if (check_block(fabric, leaf, out) != FROND_OK)
			return FROND_BROKEN;
	return FROND_OK;
}

static int32_t check_fabric(const struct core *core, struct out *out)
{
	const struct fabric *fabric = &core->fabric;
	uint32_t leaf = 0, spine = 0, present = 0, placed = 0, lacking = 0;
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
	if (check_blocks(fabric, out) != FROND_OK)
		return FROND_BROKEN;
	for (uint32_t slot = 0; slot < core->node_cap; slot++) {
		present += core->nodes[slot].present;
		placed += fabric->position[slot] != FROND_NONE;
		lacking += core->nodes[slot].present && node_lacks(&core->nodes[slot]);
	}
	if (lacking != fabric->lacking)
		return BROKEN(out, "%" PRIu32 " nodes lack capacity, the fabric counts %" PRIu32, lacking,
			      fabric->lacking);
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
		code = check_holds(core, out);
	if (code == FROND_OK)
		code = check_gangs(core, out);
	if (code == FROND_OK)
		code = check_fabric(core, out);
	if (code == FROND_OK)
		code = check_tables(core, out);
	return code;
}

/* ---- dump: text that is the same for the same state, whatever the history ------------------------------------------------ */

enum { LINE = 640 }; /* bytes of the longest line, and more */

/* A line in the making: a dump of 100,000 pods is 30 MB, for which printf is too slow. */
struct line {
	uint32_t len;
	char text[LINE];
};

__attribute__((always_inline)) static inline void put_text(struct line *line, const char *text)
{
	uint32_t len = (uint32_t)strlen(text);
	assert(line->len + len <= LINE);
	memcpy(line->text + line->len, text, len);
	line->len += len;
}

static void put_decimal(struct line *line, uint64_t value)
{
	uint32_t digits = 1;
	for (uint64_t rest = value; rest >= 10; rest /= 10)
		digits++;
	assert(line->len + digits <= LINE);
	line->len += digits;
	for (uint32_t i = 1; i <= digits; i++, value /= 10)
		line->text[line->len - i] = (char)('0' + value % 10);
}

/* At least so many digits. */
static void put_hexadecimal(struct line *line, uint64_t value, uint32_t digits)
{
	while (digits < 16 && value >> 4 * digits != 0)
		digits++;
	assert(line->len + digits <= LINE);
	for (uint32_t i = digits; i-- > 0; value >>= 4)
		line->text[line->len + i] = "0123456789abcdef"[value & 15];
	line->len += digits;
}

/* " gpus 8": what it is, and how many. */
__attribute__((always_inline)) static inline void put_number(struct line *line, const char *what, uint64_t value)
{
	put_text(line, what);
	put_decimal(line, value);
}

static inline void put_signed(struct line *line, const char *what, int64_t value)
{
	put_text(line, what);
	put_text(line, value < 0 ? "-" : "");
	put_decimal(line, value < 0 ? ~(uint64_t)value + 1 : (uint64_t)value);
}

static inline void put_hex(struct line *line, const char *what, uint64_t value)
{
	put_text(line, what);
	put_hexadecimal(line, value, 1);
}

static inline void put_key(struct line *line, const char *what, struct frond_key key)
{
	put_text(line, what);
	put_hexadecimal(line, key.hi, 16);
	put_hexadecimal(line, key.lo, 16);
}

static void put_line(struct line *line, struct out *out)
{
	put_text(line, "\n");
	out_bytes(out, line->text, line->len);
	line->len = 0;
}

static void dump_node(const struct core *core, uint32_t slot, struct line *line)
{
	const struct node *node = &core->nodes[slot];
	uint32_t position = core->fabric.position[slot], leaf = core->fabric.leaf_of[position];
	put_number(line, "node ", slot);
	put_number(line, " gpus ", node->gpus);
	put_number(line, " topology ", node->topology);
	put_hex(line, " unhealthy ", node->unhealthy);
	put_hex(line, " unavailable ", node->unavailable_gpus);
	put_number(line, " flags ",
		   (uint32_t)node->flags | (node->replicas ? (uint32_t)FROND_NODE_REPLICAS : 0) |
			   (node->unavailable ? (uint32_t)FROND_NODE_UNAVAILABLE : 0));
	put_number(line, " uplink ", node->uplink_gbps);
	put_hex(line, " held ", node->held);
	put_number(line, " count ", node->by_count);
	put_number(line, " position ", position);
	if (leaf == FROND_NONE) {
		put_text(line, " leaf none");
		return;
	}
	put_number(line, " leaf ", leaf);
	put_number(line, " spine ", core->fabric.leaf_spine[leaf]);
}

static void dump_gang(const struct gang *gang, struct line *line)
{
	const struct terms terms = gang_terms(gang);
	put_key(line, " gang ", gang->key);
	put_number(line, " state ", (uint32_t)gang_state(gang));
	put_number(line, " min ", gang->min_member);
	put_number(line, " lost ", gang->lost);
	put_text(line, gang->gone ? " gone" : "");
	put_signed(line, " priority ", gang->priority);
	put_number(line, " deadline ", gang->deadline_ms);
	put_number(line, " terms ", terms.strategy);
	put_number(line, " ", terms.mode);
	put_number(line, " ", terms.recovery);
	put_number(line, " ", terms.latency_sensitive);
	put_number(line, " ", terms.bandwidth_gbps);
	put_hex(line, " ", terms.domain);
	put_number(line, " gpu ", (uint32_t)terms.gpu.policy);
	put_number(line, " ", (uint32_t)terms.gpu.mode);
	put_number(line, " ", (uint32_t)terms.gpu.locality);
	put_number(line, " ", terms.gpu.min_gbps);
	put_hex(line, " ", terms.gpu.prefer);
}

static void dump_pod(const struct core *core, const struct entry *entry, struct line *line)
{
	put_key(line, "pod ", entry->pod);
	put_text(line, entry->hold == HOLD_BOUND ? " bound" : entry->arrived ? " arrived" : " reserved");
	if (entry_slot(entry) != FROND_NONE) {
		put_number(line, " node ", entry_slot(entry));
		put_hex(line, " mask ", entry->mask);
		put_number(line, " count ", entry->by_count);
	}
	if (entry_rank(entry) != FROND_NONE)
		put_number(line, " rank ", entry_rank(entry));
	if (entry_gang(entry) != FROND_NONE)
		dump_gang(&core->gangs.gangs[entry_gang(entry)], line);
}

static void dump_hold(const struct hold *hold, struct line *line)
{
	put_key(line, "hold gang ", hold->gang);
	put_number(line, " rank ", hold->rank);
	put_number(line, " node ", hold->slot);
	put_hex(line, " mask ", hold->mask);
	put_number(line, " deadline ", hold->deadline_ms);
}

/* ---- pods by key ----------------------------------------------------------------------------------------------------------- */

static bool pod_before(const void *context, uint32_t a, uint32_t b)
{
	const struct entry *entries = context;
	return key_before(entries[a].pod, entries[b].pod);
}

struct prefix { /* of keys: PREFIX_BITS from the first bit on in which two keys differ */
	bool low;
	uint32_t shift;
};
#define PREFIX_BITS (64u - ID_BITS)

static uint64_t prefix_of(const struct prefix *prefix, struct frond_key key)
{
	return (prefix->low ? key.lo : key.hi) >> prefix->shift & ((1ull << PREFIX_BITS) - 1);
}

static struct prefix find_prefix(const struct core *core)
{
	struct frond_key first = {0, 0};
	uint64_t high = 0, low = 0;
	bool any = false;
	for (uint32_t at = 0; at < core->ledger.fresh; at++) {
		const struct entry *entry = &core->ledger.entries[at];
		if (entry->hold == HOLD_FREE)
			continue;
		first = any ? first : entry->pod;
		any = true;
		high |= first.hi ^ entry->pod.hi;
		low |= first.lo ^ entry->pod.lo;
	}
	struct prefix prefix = {.low = high == 0, .shift = 0};
	for (uint64_t differ = high == 0 ? low : high; differ >> prefix.shift >> PREFIX_BITS != 0;)
		prefix.shift++;
	return prefix;
}

/* Those of one prefix by their whole key. */
static void sort_alike(const struct core *core, uint64_t *words, uint32_t count)
{
	uint32_t *ids = (uint32_t *)(void *)words;
	uint64_t prefix = words[0] & ~(uint64_t)ID_MASK;
	for (uint32_t i = 0; i < count; i++)
		ids[i] = (uint32_t)(words[i] & ID_MASK); /* in the first half of their own memory */
	sort_ids(ids, count, pod_before, core->ledger.entries);
	for (uint32_t i = count; i-- > 0;) {
		uint32_t id = ids[i];
		words[i] = prefix | id;
	}
}

static void sort_pods(const struct core *core, uint64_t *words, uint32_t count)
{
	sort_u64(words, count);
	for (uint32_t first = 0, end; first < count; first = end) {
		for (end = first + 1; end < count && words[end] >> ID_BITS == words[first] >> ID_BITS;)
			end++;
		if (end - first > 1)
			sort_alike(core, words + first, end - first);
	}
}

/* The next pods by key, behind `after` (NULL: from the first), as many as there is room for: a prefix of the key and the
 * entry in each word. */
static uint32_t next_pods(const struct core *core, const struct prefix *prefix, const struct frond_key *after,
			  uint64_t *words, uint32_t cap)
{
	const struct entry *entries = core->ledger.entries;
	uint32_t count = 0, bound = FROND_NONE; /* pods from this one on are left for later */
	for (uint32_t at = 0; at < core->ledger.fresh; at++) {
		if (entries[at].hold == HOLD_FREE || (after != NULL && !key_before(*after, entries[at].pod)) ||
		    (bound != FROND_NONE && !key_before(entries[at].pod, entries[bound].pod)))
			continue;
		if (count == cap) {
			sort_pods(core, words, count);
			count /= 2;
			bound = (uint32_t)(words[count] & ID_MASK);
		}
		if (bound == FROND_NONE || key_before(entries[at].pod, entries[bound].pod))
			words[count++] = prefix_of(prefix, entries[at].pod) << ID_BITS | at;
	}
	sort_pods(core, words, count);
	return count;
}

void core_dump(struct core *core, struct out *out)
{
	struct line line = {.len = 0};
	put_text(&line, "frond dump 1");
	put_line(&line, out);
	for (uint32_t slot = 0; slot < core->node_cap; slot++)
		if (core->nodes[slot].present) {
			dump_node(core, slot, &line);
			put_line(&line, out);
		}
	uint64_t *words = place_scratch(core->work), cap = place_scratch_bytes(core->work) / sizeof *words;
	struct prefix prefix = find_prefix(core);
	struct frond_key last;
	for (uint32_t told = 0, count; told < core->ledger.used; told += count) {
		count = next_pods(core, &prefix, told == 0 ? NULL : &last, words, (uint32_t)cap);
		for (uint32_t i = 0; i < count; i++) {
			const struct entry *entry = &core->ledger.entries[words[i] & ID_MASK];
			dump_pod(core, entry, &line);
			put_line(&line, out);
			last = entry->pod;
		}
	}
	for (uint32_t at = 0; at < core->ledger.holds.used; at++) {
		dump_hold(&core->ledger.holds.all[core->ledger.holds.order[at]], &line);
		put_line(&line, out);
	}
}
