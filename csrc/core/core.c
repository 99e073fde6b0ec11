/* SPDX-License-Identifier: Apache-2.0 */
#include "core/core.h"

void core_layout(struct core *core, struct arena *arena, uint32_t nodes, uint32_t pods)
{
	core->node_cap = nodes;
	core->nodes = arena_take(arena, nodes, sizeof *core->nodes);
	fabric_layout(&core->fabric, arena, nodes);
	ledger_layout(&core->ledger, arena, core->nodes, nodes, pods);
	gangs_layout(&core->gangs, arena, &core->ledger, pods);
	core->work = place_layout(arena, &core->fabric, &core->ledger, nodes);
}

/* ---- cluster state ------------------------------------------------------------------------------------------------ */

void core_node_put(struct core *core, uint32_t slot, const struct node *node)
{
	assert(slot < core->node_cap && node->gpus <= FROND_GPUS_MAX);
	struct node *mine = &core->nodes[slot];
	struct node next = *node;
	next.present = true;
	next.held = mine->held;
	next.by_count = mine->by_count;
	*mine = next;
	core->generation++;
}

static void leave(struct core *core, uint32_t entry)
{
	gangs_part(&core->gangs, entry);
	ledger_leave(&core->ledger, entry);
	core->generation++;
}

void core_node_remove(struct core *core, uint32_t slot, void (*left)(void *context, uint32_t label), void *context)
{
	assert(slot < core->node_cap && core->nodes[slot].present);
	for (uint32_t entry = 0; entry < core->ledger.cap; entry++) {
		const struct entry *held = &core->ledger.entries[entry];
		if (held->hold == HOLD_FREE || held->slot != slot)
			continue;
		uint32_t label = held->label;
		leave(core, entry);
		left(context, label);
	}
	core->nodes[slot] = (struct node){.present = false};
	core->generation++;
}

int32_t core_pod_put(struct core *core, const struct core_pod *pod, bool *joined, uint32_t *dropped)
{
	*joined = false;
	*dropped = FROND_NONE;
	uint32_t at = ledger_find(&core->ledger, pod->pod);
	if (at != FROND_NONE) {
		struct entry *entry = &core->ledger.entries[at];
		uint32_t gpus = bits_count(entry->mask) + entry->by_count;
		if (entry->slot == pod->slot && gpus == bits_count(pod->mask) + pod->by_count &&
		    (pod->mask == 0 || entry->mask == pod->mask || entry->hold == HOLD_BOUND)) {
			if (entry->hold == HOLD_RESERVED) {
				gangs_bound(&core->gangs, at);
				core->generation++;
			}
			*joined = entry->label == FROND_NONE && pod->label != FROND_NONE;
			if (*joined)
				entry->label = pod->label;
			return FROND_OK;
		}
		*dropped = entry->label; /* it went elsewhere, or holds something else now */
		leave(core, at);
	}
	int32_t code = ledger_enter(&core->ledger, pod->pod, HOLD_BOUND, pod->slot, pod->mask, pod->by_count,
				    FROND_NONE, pod->label, &at);
	if (code != FROND_OK)
		return code;
	if (!key_zero(pod->gang))
		gangs_join(&core->gangs, pod->gang, at);
	*joined = true;
	core->generation++;
	return FROND_OK;
}

/* ---- plans and reservations ---------------------------------------------------------------------------------------- */

static void count_plan(struct core *core, const struct answer *answer)
{
	uint32_t outcome = answer->plan.outcome;
	core->plans++;
	core->placed += outcome == FROND_PLACED;
	core->waiting += outcome == FROND_WAITS;
	core->refused += outcome == FROND_NEVER || outcome == FROND_REFUSED;
	core->relaxed += (answer->plan.flags & FROND_PLAN_RELAXED) != 0;
	core->inexact += (answer->plan.flags & FROND_PLAN_INEXACT) != 0;
}

void core_plan(struct core *core, const struct ask *ask, struct answer *answer, struct frond_place *places)
{
	place_gang(core->work, ask, answer, places);
	answer->plan.generation = core->generation;
	count_plan(core, answer);
}

void core_order(struct core *core, const struct ask *ask, struct answer *answer, uint16_t *position)
{
	place_order(core->work, ask, answer, position, core->node_cap);
	answer->plan.generation = core->generation;
	count_plan(core, answer);
}

/* Everything that could refuse the booking is asked before anything is booked. */
static int32_t reservable(const struct core *core, const struct frond_member *member, const struct frond_place *place)
{
	if (key_zero(member->pod))
		return FROND_BAD;
	uint32_t at = ledger_find(&core->ledger, member->pod);
	if (member->pinned_slot != FROND_NONE)
		return at == FROND_NONE && member->gpus > 0 ? FROND_STALE : FROND_OK;
	if (at != FROND_NONE)
		return FROND_STALE; /* holds something already */
	if (member->gpus == 0)
		return FROND_OK;
	if (place->slot >= core->node_cap || bits_count(place->gpu_mask) != member->gpus)
		return FROND_BAD;
	const struct node *node = &core->nodes[place->slot];
	if (!node_open(node) || (place->gpu_mask & ~node_free_mask(node)) != 0)
		return FROND_STALE;
	return FROND_OK;
}

int32_t core_reserve(struct core *core, const struct frond_request *request, const struct frond_member *members,
		     const struct frond_place *places)
{
	uint32_t fresh = 0;
	for (uint32_t i = 0; i < request->members; i++) {
		int32_t code = reservable(core, &members[i], &places[i]);
		if (code != FROND_OK)
			return code;
		fresh += members[i].pinned_slot == FROND_NONE;
	}
	if (fresh > core->ledger.cap - core->ledger.used)
		return FROND_LIMIT;
	uint64_t generation = core->generation;
	uint32_t i = 0;
	for (; i < request->members; i++) {
		if (members[i].pinned_slot != FROND_NONE)
			continue;
		uint32_t slot = members[i].gpus == 0 ? FROND_NONE : places[i].slot, entry;
		/* Two members on the same GPU, the same pod twice, or more than pods held by count leave free. */
		if (ledger_find(&core->ledger, members[i].pod) != FROND_NONE ||
		    (slot != FROND_NONE && ((places[i].gpu_mask & ~node_free_mask(&core->nodes[slot])) != 0 ||
					    members[i].gpus > node_free_count(&core->nodes[slot]))))
			break;
		int32_t code = ledger_enter(&core->ledger, members[i].pod, HOLD_RESERVED, slot,
					    slot == FROND_NONE ? 0 : places[i].gpu_mask, 0, members[i].rank, FROND_NONE,
					    &entry);
		assert(code == FROND_OK);
		gangs_join(&core->gangs, request->gang, entry);
	}
	if (i < request->members) {
		for (uint32_t undo = 0; undo < i; undo++)
			if (members[undo].pinned_slot == FROND_NONE)
				leave(core, ledger_find(&core->ledger, members[undo].pod));
		core->generation = generation;
		return FROND_STALE;
	}
	core->generation++;
	return FROND_OK;
}

static int32_t find_reserved(const struct core *core, struct frond_key pod, uint32_t *at)
{
	*at = ledger_find(&core->ledger, pod);
	if (*at == FROND_NONE || core->ledger.entries[*at].hold != HOLD_RESERVED)
		return FROND_UNKNOWN;
	return FROND_OK;
}

int32_t core_permit(struct core *core, struct frond_key pod, uint32_t *verdict)
{
	uint32_t at;
	int32_t code = find_reserved(core, pod, &at);
	if (code == FROND_OK)
		*verdict = gangs_arrive(&core->gangs, at);
	return code;
}

int32_t core_confirm(struct core *core, struct frond_key pod)
{
	uint32_t at;
	int32_t code = find_reserved(core, pod, &at);
	if (code == FROND_OK) {
		gangs_bound(&core->gangs, at);
		core->generation++;
	} else if (at != FROND_NONE) {
		code = FROND_OK; /* the watch was faster: bound already */
	}
	return code;
}

int32_t core_release(struct core *core, struct frond_key pod, uint32_t *label)
{
	uint32_t at = ledger_find(&core->ledger, pod);
	if (at == FROND_NONE)
		return FROND_UNKNOWN;
	*label = core->ledger.entries[at].label;
	leave(core, at);
	return FROND_OK;
}

int32_t core_release_gang(struct core *core, struct frond_key gang, uint32_t *pods,
			  void (*left)(void *context, uint32_t label), void *context)
{
	*pods = 0;
	uint32_t id = gangs_find(&core->gangs, gang);
	if (id == FROND_NONE)
		return FROND_OK;
	uint32_t at = core->gangs.gangs[id].first;
	while (at != FROND_NONE) {
		const struct entry *entry = &core->ledger.entries[at];
		uint32_t next = entry->gang_next, label = entry->label;
		if (entry->hold == HOLD_RESERVED) {
			leave(core, at);
			left(context, label);
			++*pods;
		}
		at = next;
	}
	return FROND_OK;
}

void core_stats(const struct core *core, struct frond_stats *out)
{
	*out = (struct frond_stats){.generation = core->generation,
				    .nodes = core->fabric.node_count,
				    .leaves = core->fabric.leaf_count,
				    .spines = core->fabric.spine_count,
				    .pods = core->ledger.used,
				    .gangs = core->gangs.used,
				    .plans = core->plans,
				    .placed = core->placed,
				    .waiting = core->waiting,
				    .refused = core->refused,
				    .relaxed = core->relaxed,
				    .inexact = core->inexact,
				    .conflicts = core->ledger.conflicts};
	out->nodes_without_leaf = core->fabric.node_count - core->fabric.leaf_start[core->fabric.leaf_count];
	for (uint32_t slot = 0; slot < core->node_cap; slot++) {
		const struct node *node = &core->nodes[slot];
		if (!node->present)
			continue;
		out->gpus += node->gpus;
		out->gpus_unhealthy += bits_count(node->unhealthy & bits_first(node->gpus));
		out->gpus_by_count += node->by_count;
		out->gpus_free += node_free_count(node);
	}
	for (uint32_t at = 0; at < core->ledger.cap; at++) {
		const struct entry *entry = &core->ledger.entries[at];
		out->gpus_reserved += entry->hold == HOLD_RESERVED ? bits_count(entry->mask) : 0;
		out->gpus_bound += entry->hold == HOLD_BOUND ? bits_count(entry->mask) : 0;
	}
}
