/* SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

#include <string.h>

const struct call_shape call_shapes[CALL_KINDS] = {
#define X(name, in, out) [CALL_##name] = {#name, in, out, offsetof(struct frond_abi, name)},
	CALLS(X)
#undef X
};

/* ISO C compares function pointers of one type only, and the table's have many. */
static int has(const struct frond_abi *abi, enum call_kind kind)
{
	void (*function)(void) = NULL;
	memcpy(&function, (const char *)abi + call_shapes[kind].at, sizeof(function));
	return function != NULL;
}

int32_t call_run(const struct frond_abi *abi, frond_engine *engine, const struct call *c)
{
	if (!has(abi, c->kind))
		return CALL_MISSING;
	switch (c->kind) {
	case CALL_create:
		return abi->create(c->mem, c->mem_bytes, c->limits, c->args, c->args_len, c->fabric, c->fabric_len,
				   c->engine, c->text, c->cap, c->len);
	case CALL_config_put:
		return abi->config_put(engine, c->in, c->in_len, c->text, c->cap, c->len);
	case CALL_node_put:
		return abi->node_put(engine, c->node, c->pairs, c->label_count, c->in, c->in_len, c->text, c->cap,
				     c->len);
	case CALL_topology_put:
		return abi->topology_put(engine, c->topology, c->number, c->text, c->cap, c->len);
	case CALL_node_remove:
		return abi->node_remove(engine, c->slot);
	case CALL_pod_put:
		return abi->pod_put(engine, c->pod, c->in, c->in_len, c->text, c->cap, c->len);
	case CALL_pod_get:
		return abi->pod_get(engine, c->key, c->held);
	case CALL_plan:
		return abi->plan(engine, c->request, c->members, c->pairs, c->in, c->in_len, c->room, c->room_count,
				 c->plan, c->places, c->text, c->cap, c->len);
	case CALL_order:
		return abi->order(engine, c->request, c->members, c->pairs, c->in, c->in_len, c->room, c->room_count,
				  c->thrift, c->kinds, c->left, c->plan, c->position, c->text, c->cap, c->len);
	case CALL_reserve:
		return abi->reserve(engine, c->request, c->members, c->booked);
	case CALL_gang_put:
		return abi->gang_put(engine, c->request, c->pairs, c->in, c->in_len, c->text, c->cap, c->len);
	case CALL_gang_get:
		return abi->gang_get(engine, c->key, c->gang);
	case CALL_permit:
		return abi->permit(engine, c->key, c->number);
	case CALL_confirm:
		return abi->confirm(engine, c->key);
	case CALL_release:
		return abi->release(engine, c->key);
	case CALL_release_gang:
		return abi->release_gang(engine, c->key, c->number);
	case CALL_hold_put:
		return abi->hold_put(engine, c->holds, c->hold_count, c->text, c->cap, c->len);
	case CALL_hold_take:
		return abi->hold_take(engine, c->key, c->rank, c->taker);
	case CALL_hold_drop:
		return abi->hold_drop(engine, c->key, c->rank, c->number);
	case CALL_hold_list:
		return abi->hold_list(engine, c->key, c->hold_list, c->list_cap, c->number);
	case CALL_tick:
		return abi->tick(engine, c->now_ms, c->keys, c->list_cap, c->number);
	case CALL_what_if:
		return abi->what_if(engine);
	case CALL_undo:
		return abi->undo(engine);
	case CALL_recover:
		return abi->recover(engine, c->key, c->room, c->room_count, c->moves, c->move_list, c->list_cap,
				    c->text, c->cap, c->len);
	case CALL_defrag:
		return abi->defrag(engine, c->request, c->members, c->pairs, c->in, c->in_len, c->room, c->room_count,
				   c->moves, c->move_list, c->list_cap, c->text, c->cap, c->len);
	case CALL_victims:
		return abi->victims(engine, c->request, c->members, c->pairs, c->in, c->in_len, c->room, c->room_count,
				    c->victims, c->places, c->keys, c->list_cap, c->text, c->cap, c->len);
	case CALL_window:
		return abi->window(engine, c->request, c->members, c->pairs, c->in, c->in_len, c->room, c->room_count,
				   c->ends, c->end_count, c->booked, c->window, c->places, c->text, c->cap, c->len);
	case CALL_binding:
		return abi->binding(engine, c->key, c->place, c->text, c->cap, c->len);
	case CALL_stats:
		return abi->stats(engine, c->stats);
	case CALL_problems:
		return abi->problems(engine, c->text, c->cap, c->len);
	case CALL_map:
		return abi->map(engine, c->color, c->text, c->cap, c->len);
	case CALL_dump:
		return abi->dump(engine, c->text, c->cap, c->len);
	case CALL_check:
		return abi->check(engine, c->text, c->cap, c->len);
	case CALL_KINDS:
		break;
	}
	return CALL_MISSING;
}

uint32_t call_members(const struct call *call)
{
	return call->kind == CALL_order ? 1 : call->request->members;
}

/* ---- records, field by field ------------------------------------------------------------------------------------- */

#define FIELD(type, record, field)                                                                                     \
	{                                                                                                              \
#field, FIELD_##type, offsetof(struct frond_##record, field)                                           \
	}
#define LIST(list)                                                                                                     \
	{                                                                                                              \
		list, sizeof(list) / sizeof(list[0])                                                                   \
	}

static const struct field limits_fields[] = {FIELD(U32, limits, nodes), FIELD(U32, limits, pods),
					     FIELD(U32, limits, text_bytes), FIELD(U32, limits, table_bytes),
					     FIELD(U32, limits, holds)};

static const struct field hold_fields[] = {FIELD(KEY, hold, gang), FIELD(U32, hold, rank), FIELD(U32, hold, slot),
					   FIELD(U32, hold, gpu_mask), FIELD(I64, hold, deadline_ms)};

static const struct field node_fields[] = {FIELD(U32, node, slot),           FIELD(U32, node, gpus),
					   FIELD(U32, node, unhealthy_mask), FIELD(U32, node, unavailable_mask),
					   FIELD(U32, node, flags),          FIELD(U32, node, uplink_gbps),
					   FIELD(SLOT, node, topology),      FIELD(SPAN, node, name),
					   FIELD(SPAN, node, model)};

static const struct field pod_fields[] = {FIELD(KEY, pod, pod),      FIELD(U32, pod, slot),  FIELD(U32, pod, gpus),
					  FIELD(U32, pod, gpu_mask), FIELD(SLOT, pod, rank), FIELD(SPAN, pod, name),
					  FIELD(KEY, pod, gang),     FIELD(U32, pod, flags)};

static const struct field held_fields[] = {
	FIELD(KEY, held, gang),     FIELD(SLOT, held, slot), FIELD(U32, held, gpus), FIELD(U32, held, gpu_mask),
	FIELD(U32, held, by_count), FIELD(SLOT, held, rank), FIELD(U32, held, state)};

static const struct field named_fields[] = {FIELD(U32, named, slot), FIELD(U32, named, gpu_mask)};

static const struct field request_fields[] = {
	FIELD(KEY, request, gang),         FIELD(U32, request, members),     FIELD(U32, request, min_member),
	FIELD(U64, request, gpus_desired), FIELD(I64, request, age_ms),      FIELD(SLOT, request, only_slot),
	FIELD(U32, request, annotations),  FIELD(SPAN, request, name),       FIELD(I64, request, deadline_ms),
	FIELD(I32, request, priority),     FIELD(U32, request, named_count), FIELD(SPAN, request, claim)};

static const struct field member_fields[] = {FIELD(KEY, member, pod), FIELD(U32, member, rank),
					     FIELD(U32, member, gpus), FIELD(SLOT, member, pinned_slot),
					     FIELD(U32, member, pod_template)};

static const struct field room_fields[] = {FIELD(U32, room, slot), FIELD(U16, room, pod_template),
					   FIELD(U16, room, today), FIELD(U16, room, ever),
					   FIELD(U16, room, unavailable)};

static const struct field thrift_fields[] = {FIELD(U32, thrift, cpu_milli), FIELD(U32, thrift, memory_mib),
					     FIELD(U32, thrift, kinds)};

static const struct field kind_fields[] = {FIELD(U32, kind, cpu_milli), FIELD(U32, kind, memory_mib),
					   FIELD(U32, kind, gpus), FIELD(U32, kind, pods)};

static const struct field place_fields[] = {FIELD(SLOT, place, slot), FIELD(U32, place, gpu_mask),
					    FIELD(HEX, place, ring)};

static const struct field plan_fields[] = {
	FIELD(U64, plan, generation), FIELD(U32, plan, outcome), FIELD(U32, plan, rule),
	FIELD(U32, plan, flags),      FIELD(U32, plan, spines),  FIELD(U32, plan, leaves),
	FIELD(U32, plan, runs),       FIELD(U32, plan, nodes),   FIELD(SLOT, plan, wait_ms)};

static const struct field gang_fields[] = {FIELD(U32, gang, state),    FIELD(U32, gang, min_member),
					   FIELD(U32, gang, members),  FIELD(U32, gang, arrived),
					   FIELD(U32, gang, bound),    FIELD(U32, gang, lost),
					   FIELD(I32, gang, priority), FIELD(I64, gang, deadline_ms)};

static const struct field moves_fields[] = {FIELD(U32, moves, outcome), FIELD(U32, moves, flags),
					    FIELD(U32, moves, count), FIELD(U32, moves, lower_bound)};

static const struct field move_fields[] = {FIELD(KEY, move, pod), FIELD(SLOT, move, rank),    FIELD(SLOT, move, from),
					   FIELD(SLOT, move, to), FIELD(U32, move, gpu_mask), FIELD(HEX, move, ring)};

/* The plan that victims make room for follows by its own fields. */
static const struct field victims_fields[] = {FIELD(U32, victims, outcome), FIELD(U32, victims, count),
					      FIELD(U32, victims, budgets), FIELD(I32, victims, priority),
					      FIELD(U32, victims, gangs),   FIELD(U32, victims, gpus)};

static const struct field end_fields[] = {FIELD(KEY, end, pod), FIELD(I64, end, ends_in_ms)};

/* The plan at the start of the window follows by its own fields. */
static const struct field window_fields[] = {FIELD(U32, window, outcome), FIELD(U32, window, kept),
					     FIELD(U32, window, nodes), FIELD(U32, window, free),
					     FIELD(I64, window, start_ms)};

static const struct field stats_fields[] = {
	FIELD(U64, stats, generation),     FIELD(U32, stats, nodes),         FIELD(U32, stats, nodes_without_leaf),
	FIELD(U32, stats, leaves),         FIELD(U32, stats, spines),        FIELD(U32, stats, gpus),
	FIELD(U32, stats, gpus_unhealthy), FIELD(U32, stats, gpus_reserved), FIELD(U32, stats, gpus_bound),
	FIELD(U32, stats, gpus_by_count),  FIELD(U32, stats, gpus_free),     FIELD(U32, stats, pods),
	FIELD(U32, stats, gangs),          FIELD(U32, stats, holds),         FIELD(U32, stats, gpus_kept),
	FIELD(U64, stats, plans),          FIELD(U64, stats, placed),        FIELD(U64, stats, waiting),
	FIELD(U64, stats, refused),        FIELD(U64, stats, relaxed),       FIELD(U64, stats, bounded),
	FIELD(U64, stats, steps),          FIELD(U64, stats, expired),       FIELD(U64, stats, conflicts),
	FIELD(U64, stats, holds_expired)};

const struct field_list call_fields[RECORDS] = {
	[RECORD_LIMITS] = LIST(limits_fields), [RECORD_NODE] = LIST(node_fields),
	[RECORD_POD] = LIST(pod_fields),       [RECORD_REQUEST] = LIST(request_fields),
	[RECORD_MEMBER] = LIST(member_fields), [RECORD_ROOM] = LIST(room_fields),
	[RECORD_THRIFT] = LIST(thrift_fields), [RECORD_KIND] = LIST(kind_fields),
	[RECORD_PLACE] = LIST(place_fields),   [RECORD_PLAN] = LIST(plan_fields),
	[RECORD_GANG] = LIST(gang_fields),     [RECORD_HELD] = LIST(held_fields),
	[RECORD_NAMED] = LIST(named_fields),   [RECORD_MOVES] = LIST(moves_fields),
	[RECORD_MOVE] = LIST(move_fields),     [RECORD_VICTIMS] = LIST(victims_fields),
	[RECORD_END] = LIST(end_fields),       [RECORD_WINDOW] = LIST(window_fields),
	[RECORD_STATS] = LIST(stats_fields),   [RECORD_HOLD] = LIST(hold_fields)};
