/* SPDX-License-Identifier: Apache-2.0 */
#include "core/core.h"

void core_layout(struct core *core, struct arena *arena, const struct frond_limits *limits, uint64_t scratch)
{
	uint32_t nodes = limits->nodes, pods = limits->pods;
	core->node_cap = nodes;
	core->nodes = arena_take(arena, nodes, sizeof *core->nodes);
	undo_layout(&core->undo, arena, pods, limits->holds);
	fabric_layout(&core->fabric, arena, &core->undo, nodes);
	ledger_layout(&core->ledger, arena, &core->undo, &core->fabric, core->nodes, pods, limits->holds);
	gangs_layout(&core->gangs, arena, &core->ledger, pods);
	tables_layout(&core->tables, arena, limits->table_bytes);
	core->sets = core->tables.sets;
	core->work = place_layout(arena, &core->fabric, &core->ledger, core->sets, nodes, scratch);
	if (arena->base == NULL)
		return;
	for (uint32_t slot = 0; slot < nodes; slot++)
		core->nodes[slot].first = FROND_NONE;
	uint32_t none;
	int32_t code = core_topology(core, &(struct topology){.gpus = 0}, &none);
	assert(code == FROND_OK && none == 0);
}

int32_t core_topology(struct core *core, const struct topology *topology, uint32_t *id)
{
	return tables_put(&core->tables, topology, place_scratch(core->work), id);
}

uint32_t core_topology_gpus(const struct core *core, uint32_t id)
{
	return id < FROND_TOPOLOGIES && core->sets[id] != NULL ? gpuset_gpus(core->sets[id]) : FROND_NONE;
}

/* ---- cluster state ------------------------------------------------------------------------------------------------ */

void core_node_put(struct core *core, uint32_t slot, const struct node *node)
{
	assert(slot < core->node_cap && node->gpus <= FROND_GPUS_MAX && core->sets[node->topology] != NULL);
	assert(core->undo.depth == 0);
	struct node *mine = &core->nodes[slot];
	struct node next = *node;
	next.present = true;
	next.held = mine->held;
	next.kept = mine->kept;
	next.by_count = mine->by_count;
	next.first = mine->first;
	node_settle(&next);
	if (mine->present &&
	    (node_kind(mine) != node_kind(&next) || mine->model != next.model || mine->uplink_gbps != next.uplink_gbps))
		core->fabric.stale = true;
	fabric_take_out(&core->fabric, slot, mine);
	if (mine->present)
		tables_drop(&core->tables, mine->topology);
	tables_hold(&core->tables, next.topology);
	*mine = next;
	fabric_put_in(&core->fabric, slot, mine);
	core->generation++;
}

static void leave(struct core *core, uint32_t entry)
{
	gangs_part(&core->gangs, entry);
	ledger_leave(&core->ledger, entry);
	core->generation++;
}

/* The hold at this place in their order is over. */
static void end_hold(struct core *core, uint32_t at)
{
	ledger_let_go(&core->ledger, core->ledger.holds.order[at]);
	holds_sweep(&core->ledger.holds, at, at + 1);
	core->generation++;
}

void core_node_remove(struct core *core, uint32_t slot, void (*left)(void *context, uint32_t label), void *context)
{
	assert(slot < core->node_cap && core->nodes[slot].present && core->undo.depth == 0);
	while (core->nodes[slot].first != FROND_NONE) {
		uint32_t entry = core->nodes[slot].first, label = entry_label(&core->ledger.entries[entry]);
		leave(core, entry);
		left(context, label);
	}
	const struct holds *holds = &core->ledger.holds;
	for (uint32_t id = holds_on(holds, slot); id != FROND_NONE; id = holds_on(holds, slot))
		end_hold(core, holds_find(holds, holds->all[id].gang, holds->all[id].rank));
	fabric_take_out(&core->fabric, slot, &core->nodes[slot]);
	tables_drop(&core->tables, core->nodes[slot].topology);
	core->nodes[slot] = (struct node){.first = FROND_NONE};
	core->generation++;
}

/* Does the entry say what the pod says? One held by count learns its devices when they become known, unless they are
 * still somebody else's. */
static bool says_the_same(const struct core *core, const struct entry *entry, const struct core_pod *pod)
{
	if (entry_slot(entry) != pod->slot || entry_gpus(entry) != bits_count(pod->mask) + pod->by_count)
		return false;
	uint32_t lacks = pod->mask & ~(uint32_t)entry->mask;
	return pod->mask == 0 ||
	       ((entry->mask & ~pod->mask) == 0 && (lacks & ~ledger_owned(&core->ledger, pod->slot)) == 0);
}

/* The same pod on the same node with the same number of GPUs, which now have names. */
static bool tells_devices(const struct core *core, const struct entry *entry, const struct core_pod *pod)
{
	return pod->mask != 0 && entry->by_count > 0 && entry_slot(entry) == pod->slot &&
	       entry_gpus(entry) == bits_count(pod->mask) && (entry->mask & ~pod->mask) == 0 &&
	       ((pod->mask & ~(uint32_t)entry->mask) & ledger_owned(&core->ledger, pod->slot)) == 0;
}

/* A bound pod of this rank has come to the node: if that was kept for it, the hold has done its work. One that lies elsewhere
 * stays: it is for the pod that replaces this one. */
static void take_over(struct core *core, uint32_t entry)
{
	const struct entry *pod = &core->ledger.entries[entry];
	if (!core->nodes[entry_slot(pod)].kept || entry_gang(pod) == FROND_NONE || entry_rank(pod) == FROND_NONE)
		return;
	const struct holds *holds = &core->ledger.holds;
	uint32_t at = holds_find(holds, core->gangs.gangs[entry_gang(pod)].key, entry_rank(pod));
	if (at != FROND_NONE && holds->all[holds->order[at]].slot == entry_slot(pod))
		end_hold(core, at);
}

/* Facts that a pod may tell later than that it is bound. */
static void learn(struct core *core, uint32_t at, const struct core_pod *pod, bool *joined)
{
	struct entry *entry = &core->ledger.entries[at];
	bool known = true; /* by gang and rank */
	if (entry->hold == HOLD_RESERVED) {
		gangs_bound(&core->gangs, at);
		core->generation++;
	}
	if (!key_zero(pod->gang) &&
	    (entry_gang(entry) == FROND_NONE || !key_equal(core->gangs.gangs[entry_gang(entry)].key, pod->gang))) {
		gangs_part(&core->gangs, at);
		gangs_join(&core->gangs, pod->gang, at);
		core->generation++;
		known = false;
	}
	if (pod->rank != FROND_NONE && entry_rank(entry) != pod->rank) {
		entry->rank_up = (pod->rank + 1) & ID_MASK;
		core->generation++;
		known = false;
	}
	if (!known)
		take_over(core, at);
	entry->budgeted = pod->budgeted;
	*joined = entry_label(entry) == FROND_NONE && pod->label != FROND_NONE;
	if (*joined)
		entry->label_up = (pod->label + 1) & LABEL_MASK;
}

int32_t core_pod_put(struct core *core, const struct core_pod *pod, bool *joined, uint32_t *dropped)
{
	assert(core->undo.depth == 0);
	*joined = false;
	*dropped = FROND_NONE;
	uint32_t at = ledger_find(&core->ledger, pod->pod);
	if (at != FROND_NONE && tells_devices(core, &core->ledger.entries[at], pod)) {
		ledger_devices(&core->ledger, at, pod->mask);
		core->generation++;
	}
	if (at != FROND_NONE && says_the_same(core, &core->ledger.entries[at], pod)) {
		learn(core, at, pod, joined);
		return FROND_OK;
	}
	if (at == FROND_NONE && core->ledger.used == core->ledger.cap)
		return FROND_LIMIT;
	uint32_t rank = pod->rank;
	struct frond_key gang = pod->gang;
	struct gang kept = {.key = {0, 0}};
	if (at != FROND_NONE) { /* it went elsewhere, or holds something else than we thought */
		const struct entry *entry = &core->ledger.entries[at];
		rank = rank == FROND_NONE && entry_slot(entry) == pod->slot ? entry_rank(entry) : rank;
		if (entry_gang(entry) != FROND_NONE)
			kept = core->gangs.gangs[entry_gang(entry)];
		if (key_zero(gang))
			gang = kept.key;
		*dropped = entry_label(entry);
		leave(core, at);
	}
	int32_t code = ledger_enter(&core->ledger, pod->pod, HOLD_BOUND, pod->slot, pod->mask, pod->by_count, rank,
				    pod->label, &at);
	assert(code == FROND_OK);
	core->ledger.entries[at].budgeted = pod->budgeted;
	if (!key_zero(gang))
		gangs_join(&core->gangs, gang, at);
	if (!key_zero(gang) && key_equal(gang, kept.key))
		gangs_carry(&core->gangs, entry_gang(&core->ledger.entries[at]), &kept); /* nobody has left */
	take_over(core, at);
	*joined = true;
	core->generation++;
	return FROND_OK;
}

/* ---- plans and reservations ---------------------------------------------------------------------------------------- */

void core_count(struct core *core, const struct answer *answer)
{
	uint32_t outcome = answer->plan.outcome;
	core->plans++;
	core->placed += outcome == FROND_PLACED;
	core->waiting += outcome == FROND_WAITS;
	core->refused += outcome == FROND_NEVER || outcome == FROND_REFUSED;
	core->relaxed += (answer->plan.flags & FROND_PLAN_RELAXED) != 0;
	core->bounded += (answer->plan.flags & FROND_PLAN_BOUNDED) != 0;
	core->steps += answer->candidates;
}

void core_plan(struct core *core, const struct ask *ask, struct answer *answer, struct frond_place *places)
{
	budget_begin(place_budget(core->work), core->fabric.node_count);
	place_gang(core->work, ask, answer, places);
	answer->plan.generation = core->generation;
}

void core_order(struct core *core, const struct ask *ask, struct answer *answer, uint16_t *position)
{
	budget_begin(place_budget(core->work), core->fabric.node_count);
	place_order(core->work, ask, answer, position, core->node_cap);
	answer->plan.generation = core->generation;
}

/* Everything that could refuse the booking is asked before anything is booked. */
static int32_t reservable(const struct core *core, const struct frond_member *member, const struct frond_place *place)
{
	if (key_zero(member->pod) || member->rank > FROND_RANK_MAX)
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

/* Pods of these ranks have come: their holds are over, wherever they lie, for a better plan has replaced them. */
static void end_holds(struct core *core, const struct frond_request *request, const struct frond_member *members)
{
	struct holds *holds = &core->ledger.holds;
	uint32_t first, end;
	holds_of(holds, request->gang, &first, &end);
	for (uint32_t i = 0; first < end && i < request->members; i++) {
		uint32_t at = holds_find(holds, request->gang, members[i].rank);
		if (members[i].pinned_slot == FROND_NONE && at != FROND_NONE && !holds->all[holds->order[at]].ended)
			ledger_let_go(&core->ledger, holds->order[at]);
	}
	holds_sweep(holds, first, end);
}

/* The gang's own holds are lifted. */
static int32_t reserve(struct core *core, const struct frond_request *request, const struct frond_member *members,
		       const struct frond_place *places)
{
	uint32_t fresh = 0, holds, holds_end;
	holds_of(&core->ledger.holds, request->gang, &holds, &holds_end);
	for (uint32_t i = 0; i < request->members; i++) {
		int32_t code = reservable(core, &members[i], &places[i]);
		if (code != FROND_OK)
			return code;
		fresh += members[i].pinned_slot == FROND_NONE;
	}
	if (fresh > core->ledger.cap - core->ledger.used ||
	    !undo_room_bytes(&core->undo, UNDO_OPERATION + (uint64_t)UNDO_RESERVING * fresh +
						  (uint64_t)UNDO_HOLD * min_u32(fresh, holds_end - holds)))
		return FROND_LIMIT;
	uint64_t generation = core->generation, logged = core->undo.used;
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
		if (undo_logs(&core->undo))
			undo_rewind(&core->undo, logged);
		for (uint32_t undo = 0; undo < i && !undo_logs(&core->undo); undo++)
			if (members[undo].pinned_slot == FROND_NONE)
				leave(core, ledger_find(&core->ledger, members[undo].pod));
		core->generation = generation;
		return FROND_STALE;
	}
	uint32_t id = gangs_find(&core->gangs, request->gang);
	if (id != FROND_NONE)
		gangs_promise(&core->gangs, id, request->min_member, request->priority, request->deadline_ms);
	end_holds(core, request, members);
	core->generation++;
	return FROND_OK;
}

int32_t core_reserve(struct core *core, const struct frond_request *request, const struct frond_member *members,
		     const struct frond_place *places)
{
	ledger_lift(&core->ledger, request->gang);
	int32_t code = reserve(core, request, members, places);
	ledger_lower(&core->ledger);
	return code;
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
	if (code == FROND_OK && !undo_room(&core->undo, 1))
		code = FROND_LIMIT;
	if (code == FROND_OK) {
		bool new = !core->ledger.entries[at].arrived;
		*verdict = gangs_arrive(&core->gangs, at);
		if (new)
			core->generation++;
	}
	return code;
}

int32_t core_confirm(struct core *core, struct frond_key pod)
{
	uint32_t at;
	int32_t code = find_reserved(core, pod, &at);
	if (code == FROND_OK && !undo_room(&core->undo, 1))
		return FROND_LIMIT;
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
	if (!undo_room(&core->undo, 1))
		return FROND_LIMIT;
	*label = entry_label(&core->ledger.entries[at]);
	leave(core, at);
	return FROND_OK;
}

/* Gives back what the gang's members hold that are not bound. */
static uint32_t release_unbound(struct core *core, uint32_t id, void (*left)(void *context, uint32_t label),
				void *context)
{
	uint32_t pods = 0;
	for (uint32_t at = gang_first(&core->gangs.gangs[id]), next; at != FROND_NONE; at = next) {
		const struct entry *entry = &core->ledger.entries[at];
		uint32_t label = entry_label(entry);
		next = entry_gang_next(entry);
		if (entry->hold != HOLD_RESERVED)
			continue;
		leave(core, at);
		left(context, label);
		pods++;
	}
	return pods;
}

int32_t core_release_gang(struct core *core, struct frond_key gang, uint32_t *pods,
			  void (*left)(void *context, uint32_t label), void *context)
{
	*pods = 0;
	uint32_t id = gangs_find(&core->gangs, gang);
	if (id == FROND_NONE)
		return FROND_OK;
	if (!undo_room_bytes(&core->undo, (uint64_t)UNDO_LEAVING * core->gangs.gangs[id].members))
		return FROND_LIMIT;
	*pods = release_unbound(core, id, left, context);
	return FROND_OK;
}

/* ---- holds ------------------------------------------------------------------------------------------------------------ */

static enum hold_fault fault_of(const struct core *core, const struct frond_hold *hold)
{
	if (key_zero(hold->gang))
		return HOLD_NO_GANG;
	if (hold->rank > FROND_RANK_MAX)
		return HOLD_BAD_RANK;
	if (hold->slot >= core->node_cap || !core->nodes[hold->slot].present)
		return HOLD_NO_NODE;
	if (hold->gpu_mask == 0 || (hold->gpu_mask & ~bits_first(core->nodes[hold->slot].gpus)) != 0)
		return HOLD_BAD_MASK;
	if (hold->reserved != 0)
		return HOLD_NOT_ZERO;
	return hold->deadline_ms < 0 || hold->deadline_ms > FROND_DEADLINE_MAX ? HOLD_BAD_DEADLINE : HOLD_FINE;
}

enum hold_fault core_hold_put(struct core *core, const struct frond_hold *list, uint32_t count, uint32_t *bad)
{
	struct ledger *ledger = &core->ledger;
	enum hold_fault fault = HOLD_FINE;
	uint32_t formed = 0;
	bool twice;
	assert(core->undo.depth == 0);
	if (count > ledger->holds.cap - ledger->holds.used)
		return HOLD_NO_ROOM;
	while (formed < count && (fault = fault_of(core, &list[formed])) == HOLD_FINE)
		formed++;
	/* Of those before the first that is not well formed one may have to be named instead. */
	bool good = fault == HOLD_FINE ? ledger_keep(ledger, list, count, bad, &twice)
				       : holds_try(&ledger->holds, list, formed, bad, &twice);
	if (!good)
		return twice ? HOLD_TWICE : HOLD_CLASH;
	*bad = formed;
	core->generation += fault == HOLD_FINE && count > 0;
	return fault;
}

/* Could a pod be booked on the hold's GPUs, which are not kept from it? */
static bool hold_ready(const struct core *core, const struct hold *hold)
{
	struct node node = core->nodes[hold->slot];
	node.held = (uint16_t)(node.held & ~(hold->mask & ~ledger_owned(&core->ledger, hold->slot)));
	return node_open(&node) && (hold->mask & ~node_free_mask(&node)) == 0 &&
	       bits_count(hold->mask) <= node_count_free(&node);
}

int32_t core_hold_take(struct core *core, struct frond_key gang, uint32_t rank, struct frond_key pod)
{
	const struct holds *holds = &core->ledger.holds;
	uint32_t at = holds_find(holds, gang, rank), entry;
	if (at == FROND_NONE)
		return FROND_UNKNOWN;
	const struct hold hold = holds->all[holds->order[at]];
	if (ledger_find(&core->ledger, pod) != FROND_NONE || !hold_ready(core, &hold))
		return FROND_STALE;
	if (core->ledger.used == core->ledger.cap || !undo_room(&core->undo, 2))
		return FROND_LIMIT;
	end_hold(core, at);
	int32_t code =
		ledger_enter(&core->ledger, pod, HOLD_RESERVED, hold.slot, hold.mask, 0, rank, FROND_NONE, &entry);
	assert(code == FROND_OK);
	gangs_join(&core->gangs, gang, entry);
	uint32_t id = entry_gang(&core->ledger.entries[entry]);
	gangs_promise(&core->gangs, id, (uint32_t)core->gangs.gangs[id].min_member, core->gangs.gangs[id].priority,
		      (int64_t)hold.deadline_ms);
	return FROND_OK;
}

uint32_t core_hold_drop(struct core *core, struct frond_key gang, uint32_t rank)
{
	struct holds *holds = &core->ledger.holds;
	uint32_t first, end;
	assert(core->undo.depth == 0);
	holds_of(holds, gang, &first, &end);
	if (rank != FROND_NONE) {
		uint32_t at = holds_find(holds, gang, rank);
		first = at == FROND_NONE ? 0 : at;
		end = at == FROND_NONE ? 0 : at + 1;
	}
	for (uint32_t at = first; at < end; at++)
		ledger_let_go(&core->ledger, holds->order[at]);
	holds_sweep(holds, first, end);
	core->generation += end - first;
	return end - first;
}

/* Ends the holds whose deadline is before now_ms. */
static void end_overdue(struct core *core, int64_t now_ms)
{
	struct holds *holds = &core->ledger.holds;
	uint32_t used = holds->used;
	if (holds->timed == 0 || holds->soonest >= now_ms)
		return;
	holds->soonest = INT64_MAX;
	for (uint32_t at = 0; at < used; at++) {
		const struct hold *hold = &holds->all[holds->order[at]];
		int64_t deadline_ms = (int64_t)hold->deadline_ms;
		if (deadline_ms != 0 && deadline_ms < now_ms)
			ledger_let_go(&core->ledger, holds->order[at]);
		else if (deadline_ms != 0 && deadline_ms < holds->soonest)
			holds->soonest = deadline_ms;
	}
	holds_sweep(holds, 0, used);
	core->holds_expired += used - holds->used;
	core->generation += used - holds->used;
}

uint32_t core_tick(struct core *core, int64_t now_ms, struct frond_key *expired, uint32_t cap,
		   void (*left)(void *context, uint32_t label), void *context)
{
	assert(core->undo.depth == 0);
	uint32_t count = 0;
	end_overdue(core, now_ms);
	for (uint32_t id = gangs_overdue(&core->gangs, now_ms); id != FROND_NONE && count < cap;
	     id = gangs_overdue(&core->gangs, now_ms)) {
		expired[count++] = core->gangs.gangs[id].key;
		release_unbound(core, id, left, context);
		core->expired++;
	}
	return count;
}

int32_t core_what_if(struct core *core)
{
	if (!undo_room(&core->undo, 1))
		return FROND_LIMIT;
	undo_begin(&core->undo);
	undo_save(&core->undo, &core->generation);
	return FROND_OK;
}

int32_t core_undo(struct core *core)
{
	if (core->undo.depth == 0)
		return FROND_UNKNOWN;
	undo_back(&core->undo);
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
				    .bounded = core->bounded,
				    .steps = core->steps,
				    .expired = core->expired,
				    .conflicts = core->ledger.conflicts,
				    .holds = core->ledger.holds.used,
				    .holds_expired = core->holds_expired};
	out->nodes_without_leaf = core->fabric.node_count - core->fabric.leaf_start[core->fabric.leaf_count];
	for (uint32_t slot = 0; slot < core->node_cap; slot++) {
		const struct node *node = &core->nodes[slot];
		if (!node->present)
			continue;
		out->gpus += node->gpus;
		out->gpus_unhealthy += bits_count(node->unhealthy & bits_first(node->gpus));
		out->gpus_by_count += node->by_count;
		out->gpus_free += node_free_count(node);
		if (node->kept)
			out->gpus_kept += bits_count(bits_first(node->gpus) & holds_mask(&core->ledger.holds, slot) &
						     ~ledger_owned(&core->ledger, slot));
	}
	for (uint32_t at = 0; at < core->ledger.fresh; at++) {
		const struct entry *entry = &core->ledger.entries[at];
		out->gpus_reserved += entry->hold == HOLD_RESERVED ? bits_count(entry->mask) : 0;
		out->gpus_bound += entry->hold == HOLD_BOUND ? bits_count(entry->mask) : 0;
	}
}
