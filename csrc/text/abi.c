/* SPDX-License-Identifier: Apache-2.0 */
/*
 * abi.c - the functions behind the table: each checks what came in, calls the core, and puts words around the answer.
 */
#include "core/check.h"
#include "text/request.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define NODE_LINE "spine:" /* a fabric that starts so is the one-line form */

/* ---- helpers -------------------------------------------------------------------------------------------------------- */

/* An error's sentence is cut at cap: the error is what matters. */
static int32_t fail(int32_t code, const char *sentence, char *text, uint32_t cap, uint32_t *len)
{
	uint32_t size = (uint32_t)strlen(sentence);
	*len = size < cap ? size : cap;
	if (*len > 0)
		memcpy(text, sentence, *len);
	return code;
}

static int32_t fail_complaint(const struct complaint *complaint, char *text, uint32_t cap, uint32_t *len)
{
	char sentence[FROND_TEXT_MAX + 32];
	if (complaint->line > 0)
		snprintf(sentence, sizeof sentence, "line %" PRIu32 ": %s", complaint->line, complaint->text);
	else
		snprintf(sentence, sizeof sentence, "%s", complaint->text);
	return fail(FROND_BAD, sentence, text, cap, len);
}

static void drop_label(void *context, uint32_t label)
{
	names_drop(context, label);
}

static uint32_t hold_label(struct frond_engine *engine, const char *in, struct frond_span span)
{
	/* Without room for it the map shows no name; that is no reason to refuse a booking. */
	if (span.len == 0)
		return FROND_NONE;
	return names_hold(&engine->names, in + span.off, span.len);
}

static void build(struct frond_engine *engine)
{
	if (tree_build(&engine->tree, engine->core.nodes, &engine->core.fabric))
		engine->core.generation++;
}

/* ---- words without an engine ------------------------------------------------------------------------------------------ */

static int32_t abi_args(const char *json, uint32_t json_len, struct frond_args *out, char *text, uint32_t cap,
			uint32_t *len)
{
	struct args args;
	struct complaint complaint;
	if (args_read(json, json_len, &args, &complaint) != FROND_OK)
		return fail_complaint(&complaint, text, cap, len);
	struct out writer = {.text = text, .cap = cap};
	*out = (struct frond_args){.permit_wait_s = args.permit_wait_s, .resource_count = args.resource_count};
	out->fabric_file.len = (uint32_t)strlen(args.fabric_file);
	out_printf(&writer, "%s", args.fabric_file);
	for (uint32_t i = 0; i < args.resource_count; i++) {
		out->resources[i] =
			(struct frond_span){.off = (uint32_t)writer.len, .len = (uint32_t)strlen(args.resources[i])};
		out_printf(&writer, "%s", args.resources[i]);
	}
	return out_finish(&writer, len);
}

static bool is_line(const char *fabric, uint32_t len)
{
	return len >= sizeof NODE_LINE - 1 && memcmp(fabric, NODE_LINE, sizeof NODE_LINE - 1) == 0;
}

static int32_t abi_fabric_expand(const char *fabric, uint32_t fabric_len, uint32_t line, char *text, uint32_t cap,
				 uint32_t *len)
{
	struct fabricfile file;
	struct complaint complaint;
	int32_t code = line ? fabricfile_read_line(fabric, fabric_len, &file, &complaint)
			    : fabricfile_read(fabric, fabric_len, &file, &complaint);
	if (code != FROND_OK)
		return fail_complaint(&complaint, text, cap, len);
	char *json = fabricfile_json(&file);
	fabricfile_free(&file);
	if (json == NULL)
		return fail(FROND_LIMIT, "out of memory", text, cap, len);
	struct out writer = {.text = text, .cap = cap};
	out_printf(&writer, "%s", json);
	free(json);
	return out_finish(&writer, len);
}

/* ---- life ---------------------------------------------------------------------------------------------------------------- */

static struct frond_engine *layout(struct arena *arena, const struct frond_limits *limits, struct frond_engine *scratch)
{
	struct frond_engine *engine = arena_take(arena, 1, sizeof *engine);
	if (engine == NULL)
		engine = scratch;
	uint32_t name_cap = 4 * limits->nodes + limits->pods + 16;
	uint32_t bytes = limits->text_bytes != 0 ? limits->text_bytes : 64 * (limits->nodes + limits->pods);
	core_layout(&engine->core, arena, limits->nodes, limits->pods);
	names_layout(&engine->names, arena, name_cap, bytes);
	tree_layout(&engine->tree, arena, &engine->names, limits->nodes, name_cap);
	return engine;
}

static uint64_t abi_size_of(const struct frond_limits *limits)
{
	if (limits->nodes < 1 || limits->nodes > FROND_NODES_MAX || limits->pods < 1 || limits->pods > (1u << 24) ||
	    limits->text_bytes > (1u << 30) || limits->reserved != 0)
		return 0;
	struct frond_engine scratch = {.args = {.core_path = ""}};
	struct arena arena = {.base = NULL};
	layout(&arena, limits, &scratch);
	return arena.used;
}

static int32_t load_fabric(struct frond_engine *engine, const char *fabric, uint32_t fabric_len, char *text,
			   uint32_t cap, uint32_t *len)
{
	struct fabricfile file;
	struct complaint complaint;
	int32_t code = is_line(fabric, fabric_len) ? fabricfile_read_line(fabric, fabric_len, &file, &complaint)
						   : fabricfile_read(fabric, fabric_len, &file, &complaint);
	if (code != FROND_OK)
		return fail_complaint(&complaint, text, cap, len);
	code = tree_load(&engine->tree, &file);
	fabricfile_free(&file);
	if (code != FROND_OK)
		return fail(code, "the fabric has more nodes, leaves or names than the engine's limits", text, cap,
			    len);
	return FROND_OK;
}

static int32_t abi_create(void *mem, uint64_t bytes, const struct frond_limits *limits, const char *args,
			  uint32_t args_len, const char *fabric, uint32_t fabric_len, frond_engine **out, char *text,
			  uint32_t cap, uint32_t *len)
{
	uint64_t size = abi_size_of(limits);
	*len = 0;
	if (size == 0)
		return fail(FROND_LIMIT, "a limit is out of range", text, cap, len);
	if (mem == NULL || (uintptr_t)mem % ARENA_ALIGN != 0 || bytes < size)
		return fail(FROND_BAD, "the engine's memory is too small or not aligned to 16", text, cap, len);
	struct args decoded;
	struct complaint complaint;
	if (args_read(args, args_len, &decoded, &complaint) != FROND_OK)
		return fail_complaint(&complaint, text, cap, len);
	memset(mem, 0, size);
	struct arena arena = {.base = mem};
	struct frond_engine *engine = layout(&arena, limits, NULL);
	engine->args = decoded;
	engine->tree.two_levels = decoded.spine_label[0] != 0;
	if (fabric_len > 0) {
		int32_t code = load_fabric(engine, fabric, fabric_len, text, cap, len);
		if (code != FROND_OK)
			return code;
	}
	*out = engine;
	return FROND_OK;
}

/* ---- cluster state --------------------------------------------------------------------------------------------------------- */

static uint32_t hold_label_value(struct frond_engine *engine, const char *label, const struct frond_pair *labels,
				 uint32_t count, const char *in, bool *full)
{
	uint32_t key_len = (uint32_t)strlen(label);
	for (uint32_t i = 0; i < count && key_len > 0; i++) {
		if (labels[i].key.len != key_len || memcmp(in + labels[i].key.off, label, key_len) != 0)
			continue;
		if (labels[i].value.len == 0)
			return FROND_NONE;
		uint32_t id = names_hold(&engine->names, in + labels[i].value.off, labels[i].value.len);
		*full |= id == FROND_NONE;
		return id;
	}
	return FROND_NONE;
}

static int32_t check_node(const struct frond_engine *engine, const struct frond_node *node,
			  const struct frond_pair *labels, uint32_t label_count, const char *in, uint32_t in_len,
			  struct complaint *complaint)
{
	if (node->slot >= engine->core.node_cap)
		return complain(complaint, 0, "node slot %" PRIu32 ": the engine has room for %" PRIu32 " nodes",
				node->slot, engine->core.node_cap);
	if (!span_inside(node->name, in_len) || node->name.len == 0 || node->name.len > FROND_NAME_MAX)
		return complain(complaint, 0, "a node's name must have 1 to %u bytes", FROND_NAME_MAX);
	struct shown name = shown(in + node->name.off, node->name.len);
	if (node->gpus > FROND_GPUS_MAX)
		return complain(complaint, 0, "node %s has %" PRIu32 " GPUs, at most %u are possible", name.text,
				node->gpus, FROND_GPUS_MAX);
	if (node->unhealthy_mask >> node->gpus != 0 ||
	    (node->flags & ~(uint32_t)(FROND_NODE_CORDONED | FROND_NODE_DOWN)) != 0 || node->reserved != 0)
		return complain(complaint, 0, "node %s: unhealthy GPUs or flags that it cannot have", name.text);
	uint32_t known = names_find(&engine->names, in + node->name.off, node->name.len);
	if (known != FROND_NONE && engine->tree.slot_of[known] != FROND_NONE &&
	    engine->tree.slot_of[known] != node->slot)
		return complain(complaint, 0, "node %s is in slot %" PRIu32 " already", name.text,
				engine->tree.slot_of[known]);
	for (uint32_t i = 0; i < label_count; i++)
		if (!span_inside(labels[i].key, in_len) || !span_inside(labels[i].value, in_len) ||
		    labels[i].value.len > FROND_NAME_MAX)
			return complain(complaint, 0, "node %s: a label that is too long", name.text);
	return FROND_OK;
}

static int32_t abi_node_put(frond_engine *engine, const struct frond_node *node, const struct frond_pair *labels,
			    uint32_t label_count, const char *in, uint32_t in_len, char *text, uint32_t cap,
			    uint32_t *len)
{
	struct complaint complaint;
	*len = 0;
	if (check_node(engine, node, labels, label_count, in, in_len, &complaint) != FROND_OK)
		return fail_complaint(&complaint, text, cap, len);
	bool full = false;
	struct tree_node entry = {.uplink_gbps = node->uplink_gbps};
	entry.leaf = hold_label_value(engine, engine->args.leaf_label, labels, label_count, in, &full);
	entry.spine = hold_label_value(engine, engine->args.spine_label, labels, label_count, in, &full);
	entry.name = names_hold(&engine->names, in + node->name.off, node->name.len);
	if (full || entry.name == FROND_NONE) {
		names_drop(&engine->names, entry.leaf);
		names_drop(&engine->names, entry.spine);
		names_drop(&engine->names, entry.name);
		return fail(FROND_LIMIT, "no room for further names of nodes and domains", text, cap, len);
	}
	uint32_t uplink = tree_put(&engine->tree, node->slot, &entry);
	core_node_put(&engine->core, node->slot,
		      &(struct node){.gpus = node->gpus,
				     .unhealthy = node->unhealthy_mask,
				     .flags = node->flags,
				     .uplink_gbps = uplink});
	return FROND_OK;
}

static int32_t abi_node_remove(frond_engine *engine, uint32_t slot)
{
	if (slot >= engine->core.node_cap || !engine->core.nodes[slot].present)
		return FROND_UNKNOWN;
	core_node_remove(&engine->core, slot, drop_label, &engine->names);
	tree_remove(&engine->tree, slot);
	return FROND_OK;
}

/* "NODE-gpu-0,NODE-gpu-3" → mask. False when it is not such a list for this node, or has another number of GPUs. */
static bool read_allocated(const struct frond_engine *engine, uint32_t slot, const char *at, uint32_t len,
			   uint32_t gpus, uint32_t *mask)
{
	struct name_text name = engine_node_name(engine, slot);
	const char *end = at + len;
	*mask = 0;
	while (at < end) {
		uint32_t prefix = (uint32_t)name.len + 5, index = 0, digits = 0;
		if ((size_t)(end - at) < prefix || memcmp(at, name.text, (size_t)name.len) != 0 ||
		    memcmp(at + name.len, "-gpu-", 5) != 0)
			return false;
		for (at += prefix; at < end && *at >= '0' && *at <= '9' && digits < 3; at++, digits++)
			index = index * 10 + (uint32_t)(*at - '0');
		if (digits == 0 || index >= engine->core.nodes[slot].gpus || *mask >> index & 1)
			return false;
		*mask |= 1u << index;
		if (at < end && *at++ != ',')
			return false;
	}
	return bits_count(*mask) == gpus;
}

static int32_t abi_pod_put(frond_engine *engine, const struct frond_pod *pod, const char *in, uint32_t in_len,
			   char *text, uint32_t cap, uint32_t *len)
{
	*len = 0;
	if (key_zero(pod->pod) || !span_inside(pod->allocated, in_len) || !span_inside(pod->name, in_len))
		return fail(FROND_BAD, "a pod without a key, or text outside its buffer", text, cap, len);
	if (pod->slot >= engine->core.node_cap || !engine->core.nodes[pod->slot].present)
		return fail(FROND_UNKNOWN, "the pod's node is not known", text, cap, len);
	if (pod->gpus > (1u << 16))
		return fail(FROND_BAD, "a pod holds more GPUs than a node can have", text, cap, len);
	struct core_pod entry = {.pod = pod->pod, .gang = pod->gang, .slot = pod->slot, .by_count = pod->gpus};
	if (pod->allocated.len > 0 &&
	    read_allocated(engine, pod->slot, in + pod->allocated.off, pod->allocated.len, pod->gpus, &entry.mask))
		entry.by_count = 0;
	else
		entry.mask = 0; /* not a list that we could have written: held by count */
	entry.label = hold_label(engine, in, pod->name);
	bool joined;
	uint32_t dropped;
	int32_t code = core_pod_put(&engine->core, &entry, &joined, &dropped);
	names_drop(&engine->names, dropped);
	if (!joined)
		names_drop(&engine->names, entry.label);
	if (code != FROND_OK)
		return fail(code, "no room for further pods", text, cap, len);
	return FROND_OK;
}

/* ---- plans -------------------------------------------------------------------------------------------------------------------- */

/* Reads, plans (or orders, when position is given), explains. */
static int32_t decide(frond_engine *engine, const struct frond_request *request, const struct frond_member *members,
		      const struct frond_pair *annotations, const char *in, uint32_t in_len,
		      const struct frond_room *room, struct frond_plan *out, struct frond_place *places,
		      uint16_t *position, char *text, uint32_t cap, uint32_t *len)
{
	struct asked asked;
	struct complaint complaint;
	bool refused;
	*len = 0;
	build(engine);
	int32_t code =
		request_read(engine, request, members, annotations, in, in_len, room, &asked, &refused, &complaint);
	if (code != FROND_OK)
		return fail(code, "a malformed request", text, cap, len);
	struct out writer = {.text = text, .cap = cap};
	if (refused) {
		engine->core.plans++;
		engine->core.refused++;
		*out = (struct frond_plan){
			.generation = engine->core.generation, .outcome = FROND_REFUSED, .wait_ms = FROND_NONE};
		out_printf(&writer, "%s", complaint.text);
		return out_finish(&writer, len);
	}
	struct answer answer;
	if (position != NULL)
		core_order(&engine->core, &asked.ask, &answer, position);
	else
		core_plan(&engine->core, &asked.ask, &answer, places);
	answer.plan.flags |= asked.flags;
	answer.plan.wait_ms = FROND_NONE;
	/* Without a rule (no topology, no such shape) nothing changes when topology-wait ends. */
	bool insists =
		asked.ask.mode == MODE_REQUIRED && answer.plan.rule != FROND_RULE_NONE && !asked.wish.latency_sensitive;
	if (answer.plan.outcome == FROND_WAITS && insists && asked.wish.wait_ms != WAIT_FOREVER) {
		int64_t left = asked.wish.wait_ms - request->age_ms;
		answer.plan.wait_ms = left < FROND_NONE - 1 ? (uint32_t)left : FROND_NONE - 1;
	}
	*out = answer.plan;
	explain(engine, &answer, &writer);
	return out_finish(&writer, len);
}

static int32_t abi_plan(frond_engine *engine, const struct frond_request *request, const struct frond_member *members,
			const struct frond_pair *annotations, const char *in, uint32_t in_len,
			const struct frond_room *room, struct frond_plan *out, struct frond_place *places, char *text,
			uint32_t cap, uint32_t *len)
{
	return decide(engine, request, members, annotations, in, in_len, room, out, places, NULL, text, cap, len);
}

static int32_t abi_order(frond_engine *engine, const struct frond_request *request, const struct frond_member *member,
			 const struct frond_pair *annotations, const char *in, uint32_t in_len,
			 const struct frond_room *room, struct frond_plan *out, uint16_t *position, char *text,
			 uint32_t cap, uint32_t *len)
{
	*len = 0;
	if (request->members != 1 || member->gpus == 0 || member->pinned_slot != FROND_NONE)
		return fail(FROND_BAD, "only one pod with GPUs can be ordered", text, cap, len);
	memset(position, 0xff, engine->core.node_cap * sizeof *position);
	return decide(engine, request, member, annotations, in, in_len, room, out, NULL, position, text, cap, len);
}

/* ---- reservations ---------------------------------------------------------------------------------------------------------------- */

static int32_t abi_reserve(frond_engine *engine, const struct frond_request *request,
			   const struct frond_member *members, const struct frond_place *places)
{
	if (key_zero(request->gang) || request->members == 0 || request->members > FROND_MEMBERS_MAX)
		return FROND_BAD;
	return core_reserve(&engine->core, request, members, places);
}

static int32_t abi_permit(frond_engine *engine, const struct frond_key *pod, uint32_t *verdict)
{
	return core_permit(&engine->core, *pod, verdict);
}

static int32_t abi_confirm(frond_engine *engine, const struct frond_key *pod)
{
	return core_confirm(&engine->core, *pod);
}

static int32_t abi_release(frond_engine *engine, const struct frond_key *pod)
{
	uint32_t label = FROND_NONE;
	int32_t code = core_release(&engine->core, *pod, &label);
	names_drop(&engine->names, label);
	return code;
}

static int32_t abi_release_gang(frond_engine *engine, const struct frond_key *gang, uint32_t *pods)
{
	return core_release_gang(&engine->core, *gang, pods, drop_label, &engine->names);
}

static int32_t abi_binding(frond_engine *engine, const struct frond_key *pod, char *text, uint32_t cap, uint32_t *len)
{
	*len = 0;
	build(engine);
	uint32_t at = ledger_find(&engine->core.ledger, *pod);
	if (at == FROND_NONE)
		return FROND_UNKNOWN;
	const struct entry *entry = &engine->core.ledger.entries[at];
	struct out writer = {.text = text, .cap = cap};
	if (entry->mask != 0) {
		struct name_text node = engine_node_name(engine, entry->slot);
		const char *before = "gpu.scheduling/allocated=";
		for (uint32_t gpu = 0; gpu < FROND_GPUS_MAX; gpu++) {
			if (!(entry->mask >> gpu & 1))
				continue;
			out_printf(&writer, "%s%.*s-gpu-%" PRIu32, before, node.len, node.text, gpu);
			before = ",";
		}
		out_printf(&writer, "\n");
		uint32_t leaf = engine->core.fabric.leaf_of[engine->core.fabric.position[entry->slot]];
		if (leaf != FROND_NONE) {
			struct name_text name = engine_name(engine, engine->tree.leaf_name[leaf]);
			struct name_text spine =
				engine_name(engine, engine->tree.spine_name[engine->core.fabric.leaf_spine[leaf]]);
			out_printf(&writer, "topology.scheduler/domain=%.*s/%.*s\n", spine.len, spine.text, name.len,
				   name.text);
		}
	}
	if (entry->rank != FROND_NONE)
		out_printf(&writer, "topology.scheduler/rank=%" PRIu32 "\n", entry->rank);
	return out_finish(&writer, len);
}

/* ---- seen from outside ----------------------------------------------------------------------------------------------------------- */

static int32_t abi_stats(frond_engine *engine, struct frond_stats *out)
{
	build(engine);
	core_stats(&engine->core, out);
	return FROND_OK;
}

static int32_t abi_problems(frond_engine *engine, char *text, uint32_t cap, uint32_t *len)
{
	struct out writer = {.text = text, .cap = cap};
	build(engine);
	tree_problems(&engine->tree, &writer);
	return out_finish(&writer, len);
}

static int32_t abi_map(frond_engine *engine, uint32_t color, char *text, uint32_t cap, uint32_t *len)
{
	struct out writer = {.text = text, .cap = cap};
	build(engine);
	map_draw(engine, color != 0, &writer);
	return out_finish(&writer, len);
}

static int32_t abi_dump(frond_engine *engine, char *text, uint32_t cap, uint32_t *len)
{
	struct out writer = {.text = text, .cap = cap};
	build(engine);
	core_dump(&engine->core, &writer);
	return out_finish(&writer, len);
}

static int32_t abi_check(frond_engine *engine, char *text, uint32_t cap, uint32_t *len)
{
	struct out writer = {.text = text, .cap = cap};
	build(engine);
	int32_t code = core_check(&engine->core, &writer);
	*len = writer.len < cap ? (uint32_t)writer.len : cap - (cap > 0); /* an error's sentence is cut */
	return code;
}

static const char *abi_code_text(int32_t code)
{
	switch (code) {
#define X(name, number, text)                                                                                          \
	case name:                                                                                                     \
		return text;
		FROND_CODES(X)
#undef X
	default:
		return "unknown code";
	}
}

/* GCC's visibility attribute: everything else in the library is hidden. */
__attribute__((visibility("default"))) const struct frond_abi *frond_abi_get(void)
{
	static const struct frond_abi table = {.version = FROND_ABI_VERSION,
					       .size = sizeof(struct frond_abi),
					       .args = abi_args,
					       .fabric_expand = abi_fabric_expand,
					       .size_of = abi_size_of,
					       .create = abi_create,
					       .node_put = abi_node_put,
					       .node_remove = abi_node_remove,
					       .pod_put = abi_pod_put,
					       .plan = abi_plan,
					       .order = abi_order,
					       .reserve = abi_reserve,
					       .permit = abi_permit,
					       .confirm = abi_confirm,
					       .release = abi_release,
					       .release_gang = abi_release_gang,
					       .binding = abi_binding,
					       .stats = abi_stats,
					       .problems = abi_problems,
					       .map = abi_map,
					       .dump = abi_dump,
					       .check = abi_check,
					       .code_text = abi_code_text};
	return &table;
}
