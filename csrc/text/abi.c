/* SPDX-License-Identifier: Apache-2.0 */
/*
 * abi.c - the functions behind the table: each checks what came in, calls the core, and puts words around the answer.
 */
#include "core/check.h"
#include "text/request.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define NODE_LINE    "spine:" /* a fabric that starts so is the one-line form */
#define GPU_PRODUCT  "nvidia.com/gpu.product"
#define NAME_BYTES   32u    /* of names for each node, on average, where the caller does not say */
#define TEXT_BYTES   65536u /* and for all together: a few long ones fit into a small engine */
#define LABELS_MAX   8192u  /* different names of gangs that the map can show */
#define LABEL_BYTES  40u
#define TABLES_LEAST 4096u /* bytes of GPU-set tables */

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

/* Inside a what-if nothing is given up for good. */
static void keep_label(void *context, uint32_t label)
{
	(void)context;
	(void)label;
}

static uint32_t hold_label(struct frond_engine *engine, const char *in, struct frond_span span)
{
	/* Without room for it the map shows no name; that is no reason to refuse a booking. */
	if (span.len == 0)
		return FROND_NONE;
	return names_hold(&engine->labels, in + span.off, span.len);
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
	uint32_t label_cap = min_u32(limits->pods, LABELS_MAX);
	core_layout(&engine->core, arena, limits, tree_scratch(limits->nodes));
	pool_layout(&engine->text, arena,
		    limits->text_bytes != 0 ? limits->text_bytes : TEXT_BYTES + NAME_BYTES * limits->nodes);
	names_layout(&engine->names, arena, &engine->text, TREE_NAMES(limits->nodes));
	names_layout(&engine->domains, arena, &engine->text, TREE_DOMAINS(limits->nodes));
	pool_layout(&engine->label_text, arena, LABEL_BYTES * label_cap);
	names_layout(&engine->labels, arena, &engine->label_text, label_cap);
	/* A tree is built between calls of the planner, and none is made meanwhile. */
	tree_layout(&engine->tree, arena, &engine->names, &engine->domains, limits->nodes,
		    arena->base == NULL ? NULL : place_scratch(engine->core.work));
	/* None of the three calls another, and nothing stays in their scratch from one call to the next. */
	struct arena recover = *arena, victims = *arena;
	recover_layout(&engine->recover, &recover, limits->nodes, limits->pods);
	victims_layout(&engine->victims, &victims, limits->nodes, limits->pods);
	defrag_layout(&engine->defrag, arena, limits->nodes, limits->pods);
	arena->used = recover.used > arena->used ? recover.used : arena->used;
	arena->used = victims.used > arena->used ? victims.used : arena->used;
	return engine;
}

static uint64_t abi_size_of(const struct frond_limits *limits)
{
	if (limits->nodes < 1 || limits->nodes > FROND_NODES_MAX || limits->pods < 1 || limits->pods > FROND_PODS_MAX ||
	    limits->text_bytes > (1u << 30) || limits->table_bytes > (1u << 30) ||
	    (limits->table_bytes != 0 && limits->table_bytes < TABLES_LEAST))
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
	if (code == FROND_OK)
		code = machines_load(&engine->machines, &file);
	fabricfile_free(&file);
	if (code != FROND_OK)
		return fail(code, "the fabric has more nodes, leaves, names, speeds or models than the engine's limits",
			    text, cap, len);
	return FROND_OK;
}

static int32_t abi_create(void *mem, uint64_t bytes, const struct frond_limits *limits, const char *args,
			  uint32_t args_len, const char *fabric, uint32_t fabric_len, frond_engine **out, char *text,
			  uint32_t cap, uint32_t *len)
{
	uint64_t size = abi_size_of(limits);
	*len = 0;
	if (size == 0)
		return fail(FROND_LIMIT,
			    "limits: nodes must be 1 to 131072, pods 1 to 1048575, textBytes and tableBytes 0 or up "
			    "to 1 GiB",
			    text, cap, len);
	if (mem == NULL || (uintptr_t)mem % ARENA_ALIGN != 0 || bytes < size)
		return fail(FROND_BAD, "the engine's memory is too small or not aligned to 16", text, cap, len);
	struct args decoded;
	struct complaint complaint;
	if (args_read(args, args_len, &decoded, &complaint) != FROND_OK)
		return fail_complaint(&complaint, text, cap, len);
	struct arena arena = {.base = mem};
	struct frond_engine *engine = layout(&arena, limits, NULL);
	engine->args = decoded;
	engine->tuning = decoded.tuning;
	engine->tree.two_levels = decoded.spine_label[0] != 0;
	const char *labels[LEVELS] = {engine->args.domain_label, engine->args.leaf_label, engine->args.spine_label,
				      engine->args.core_label};
	for (uint32_t level = 0; level < LEVELS; level++)
		engine->levels[level] =
			(struct level_key){.label = labels[level], .len = (uint32_t)strlen(labels[level])};
	if (fabric_len > 0) {
		int32_t code = load_fabric(engine, fabric, fabric_len, text, cap, len);
		if (code != FROND_OK)
			return code;
	}
	*out = engine;
	return FROND_OK;
}

static int32_t abi_config_put(frond_engine *engine, const char *json, uint32_t json_len, char *text, uint32_t cap,
			      uint32_t *len)
{
	struct complaint complaint;
	*len = 0;
	if (engine->core.undo.depth > 0)
		return fail(FROND_BAD, "the configuration cannot change inside a what-if", text, cap, len);
	if (tuning_read(json, json_len, &engine->args.tuning, &engine->tuning, &complaint) != FROND_OK)
		return fail_complaint(&complaint, text, cap, len);
	engine->core.generation++; /* what was planned before was planned by other rules */
	return FROND_OK;
}

/* ---- cluster state --------------------------------------------------------------------------------------------------------- */

static int32_t check_node(const struct frond_engine *engine, const struct frond_node *node,
			  const struct frond_pair *labels, uint32_t label_count, const char *in, uint32_t in_len,
			  struct complaint *complaint)
{
	if (node->slot >= engine->core.node_cap)
		return complain(complaint, 0, "node slot %" PRIu32 ": the engine has room for %" PRIu32 " nodes",
				node->slot, engine->core.node_cap);
	if (!span_inside(node->name, in_len) || node->name.len == 0 || node->name.len > FROND_NAME_MAX)
		return complain(complaint, 0, "a node's name must have 1 to %u bytes", FROND_NAME_MAX);
	const char *name = in + node->name.off;
	if (node->gpus > FROND_GPUS_MAX)
		return complain(complaint, 0, "node %s has %" PRIu32 " GPUs, at most %u are possible",
				shown(name, node->name.len).text, node->gpus, FROND_GPUS_MAX);
	if (node->unhealthy_mask >> node->gpus != 0)
		return complain(complaint, 0, "node %s: unhealthy GPUs %" PRIx32 " but it has %" PRIu32,
				shown(name, node->name.len).text, node->unhealthy_mask, node->gpus);
	if ((node->flags & ~NODE_FLAGS) != 0)
		return complain(complaint, 0, "node %s: flags must be a sum of %d and %d, got %" PRIu32,
				shown(name, node->name.len).text, FROND_NODE_CORDONED, FROND_NODE_DOWN, node->flags);
	if (!span_inside(node->model, in_len) ||
	    (node->topology != FROND_NONE && (node->topology >= engine->core.set_count ||
					      gpuset_gpus(engine->core.sets[node->topology]) != node->gpus)))
		return complain(complaint, 0,
				"node %s: topology %" PRIu32 " is not known, or not of a node with %" PRIu32 " GPUs",
				shown(name, node->name.len).text, node->topology, node->gpus);
	for (uint32_t i = 0; i < label_count; i++)
		if (!span_inside(labels[i].key, in_len) || !span_inside(labels[i].value, in_len) ||
		    labels[i].value.len > FROND_NAME_MAX)
			return complain(complaint, 0, "node %s: a label that is too long",
					shown(name, node->name.len).text);
	return FROND_OK;
}

/* What the node's labels say of its place; of a label that is there twice, the first that is not empty. */
static void read_levels(const struct frond_engine *engine, const struct frond_pair *labels, uint32_t count,
			const char *in, struct said *out)
{
	*out = (struct said){.len = {0}};
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t level = 0; level < LEVELS; level++) {
			const struct level_key *key = &engine->levels[level];
			if (labels[i].key.len != key->len || out->len[level] != 0 || key->len == 0 ||
			    memcmp(in + labels[i].key.off, key->label, key->len) != 0)
				continue;
			out->text[level] = in + labels[i].value.off;
			out->len[level] = labels[i].value.len;
		}
}

static void drop_node(struct frond_engine *engine, const struct tree_node *node)
{
	names_drop(&engine->names, node->name);
	standings_drop(&engine->tree.standings, node->standing);
}

/* The link table: as reported, else by the model that is named, else the file's, else the product label. */
static int32_t find_topology(struct frond_engine *engine, const struct frond_node *node,
			     const struct frond_pair *labels, uint32_t label_count, const char *in, uint32_t name,
			     uint32_t *id)
{
	struct machines *machines = &engine->machines;
	uint32_t model = FROND_NONE, file = tree_file_node(&engine->tree, name);
	if (node->topology != FROND_NONE) {
		*id = node->topology;
		return FROND_OK;
	}
	if (node->model.len > 0)
		model = machines_find(machines, in + node->model.off, node->model.len, node->gpus);
	else if (file != FROND_NONE && engine->tree.file_node[file].model != FILE_NO_MODEL)
		model = engine->tree.file_node[file].model;
	for (uint32_t i = 0; i < label_count && model == FROND_NONE && node->model.len == 0; i++)
		if (labels[i].key.len == sizeof GPU_PRODUCT - 1 &&
		    memcmp(in + labels[i].key.off, GPU_PRODUCT, sizeof GPU_PRODUCT - 1) == 0)
			model = machines_find(machines, in + labels[i].value.off, labels[i].value.len, node->gpus);
	return machines_table(machines, &engine->core, model, node->gpus, id);
}

static int32_t abi_node_put(frond_engine *engine, const struct frond_node *node, const struct frond_pair *labels,
			    uint32_t label_count, const char *in, uint32_t in_len, char *text, uint32_t cap,
			    uint32_t *len)
{
	struct complaint complaint;
	uint32_t topology = 0;
	*len = 0;
	if (engine->core.undo.depth > 0)
		return fail(FROND_BAD, "cluster state cannot change inside a what-if", text, cap, len);
	if (check_node(engine, node, labels, label_count, in, in_len, &complaint) != FROND_OK)
		return fail_complaint(&complaint, text, cap, len);
	const char *name = in + node->name.off;
	uint64_t hash = names_seek(&engine->names, name, node->name.len);
	struct tree_node entry = engine->tree.nodes[node->slot];
	struct said said;
	read_levels(engine, labels, label_count, in, &said);
	entry.standing = standings_hold(&engine->tree.standings, &said, entry.standing);
	if (!names_again(&engine->names, entry.name, name, node->name.len))
		entry.name = names_hold_at(&engine->names, hash, name, node->name.len);
	uint32_t other = entry.name == FROND_NONE ? FROND_NONE : engine->tree.slot_of[entry.name];
	if (other != FROND_NONE && other != node->slot) {
		complain(&complaint, 0, "node %s is in slot %" PRIu32 " already", shown(name, node->name.len).text,
			 other);
		drop_node(engine, &entry);
		return fail_complaint(&complaint, text, cap, len);
	}
	if (entry.name == FROND_NONE) {
		drop_node(engine, &entry);
		return fail(FROND_LIMIT, "no room for further names of nodes", text, cap, len);
	}
	if (find_topology(engine, node, labels, label_count, in, entry.name, &topology) != FROND_OK) {
		drop_node(engine, &entry);
		return fail(FROND_LIMIT, "no room for further link tables of nodes", text, cap, len);
	}
	uint32_t uplink = tree_put(&engine->tree, node->slot, &entry, node->uplink_gbps);
	core_node_put(&engine->core, node->slot,
		      &(struct node){.gpus = (uint8_t)node->gpus,
				     .topology = (uint8_t)topology,
				     .unhealthy = (uint16_t)node->unhealthy_mask,
				     .flags = node->flags & NODE_FLAGS,
				     .uplink_gbps = uplink});
	return FROND_OK;
}

static int32_t abi_topology_put(frond_engine *engine, const struct frond_topology *topology, uint32_t *id, char *text,
				uint32_t cap, uint32_t *len)
{
	*len = 0;
	if (topology->gpus > FROND_GPUS_MAX)
		return fail(FROND_BAD, "topology.gpus: must be 0 to 16", text, cap, len);
	struct topology table = {.gpus = topology->gpus};
	struct complaint complaint;
	for (uint32_t i = 0; i < FROND_GPUS_MAX; i++) {
		table.numa[i] = topology->numa[i];
		if (i >= topology->gpus && topology->numa[i] != 0) {
			complain(&complaint, 0,
				 "topology.numa[%" PRIu32 "]: must be 0, there are %" PRIu32 " GPUs, got %u", i,
				 topology->gpus, (unsigned)topology->numa[i]);
			return fail_complaint(&complaint, text, cap, len);
		}
		for (uint32_t j = 0; j < FROND_GPUS_MAX; j++) {
			uint16_t link = topology->link_gbps[i][j];
			table.link_gbps[i][j] = link;
			bool inside = i < topology->gpus && j < topology->gpus && i != j;
			if (link == topology->link_gbps[j][i] && (inside || link == 0))
				continue;
			complain(&complaint, 0, "topology.linkGbps[%" PRIu32 "][%" PRIu32 "]: must be %s, got %u", i, j,
				 inside ? "the same in both directions" : "0", (unsigned)link);
			return fail_complaint(&complaint, text, cap, len);
		}
	}
	if (core_topology(&engine->core, &table, id) != FROND_OK)
		return fail(FROND_LIMIT, "no room for further link tables of nodes", text, cap, len);
	return FROND_OK;
}

static int32_t abi_node_remove(frond_engine *engine, uint32_t slot)
{
	if (slot >= engine->core.node_cap || !engine->core.nodes[slot].present)
		return FROND_UNKNOWN;
	if (engine->core.undo.depth > 0)
		return FROND_BAD;
	core_node_remove(&engine->core, slot, drop_label, &engine->labels);
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
	if (key_zero(pod->pod))
		return fail(FROND_BAD, "pod.pod: must not be zero", text, cap, len);
	if (!span_inside(pod->allocated, in_len) || !span_inside(pod->name, in_len))
		return fail(FROND_BAD, "pod.allocated, pod.name: must lie inside the text", text, cap, len);
	if ((pod->flags & ~(uint32_t)FROND_POD_BUDGETED) != 0)
		return fail(FROND_BAD, "pod.flags: must be 0 or 1", text, cap, len);
	if (pod->slot >= engine->core.node_cap || !engine->core.nodes[pod->slot].present)
		return fail(FROND_UNKNOWN, "the pod's node is not known", text, cap, len);
	if (pod->gpus > FROND_POD_GPUS_MAX)
		return fail(FROND_BAD, "pod.gpus: must be at most 32768", text, cap, len);
	if (engine->core.undo.depth > 0)
		return fail(FROND_BAD, "cluster state cannot change inside a what-if", text, cap, len);
	struct core_pod entry = {.pod = pod->pod,
				 .gang = pod->gang,
				 .slot = pod->slot,
				 .by_count = pod->gpus,
				 .rank = pod->rank > FROND_RANK_MAX ? FROND_NONE : pod->rank,
				 .budgeted = (pod->flags & FROND_POD_BUDGETED) != 0};
	if (pod->allocated.len > 0 &&
	    read_allocated(engine, pod->slot, in + pod->allocated.off, pod->allocated.len, pod->gpus, &entry.mask))
		entry.by_count = 0;
	else
		entry.mask = 0; /* not a list that we could have written: held by count */
	entry.label = hold_label(engine, in, pod->name);
	bool joined;
	uint32_t dropped;
	int32_t code = core_pod_put(&engine->core, &entry, &joined, &dropped);
	names_drop(&engine->labels, dropped);
	if (!joined)
		names_drop(&engine->labels, entry.label);
	if (code != FROND_OK)
		return fail(code, "no room for further pods", text, cap, len);
	return FROND_OK;
}

/* ---- plans -------------------------------------------------------------------------------------------------------------------- */

/* A decision counts when its sentence has been told, not when the caller has to come again with more room. */
static int32_t told(frond_engine *engine, const struct answer *answer, struct out *writer, uint32_t *len)
{
	int32_t code = out_finish(writer, len);
	if (code == FROND_OK)
		core_count(&engine->core, answer);
	return code;
}

/* Reads, plans (or orders, when position is given), explains. */
static int32_t decide(frond_engine *engine, const struct frond_request *request, const struct frond_member *members,
		      const struct frond_pair *annotations, const char *in, uint32_t in_len,
		      const struct frond_room *room, const struct thrift *thrift, struct frond_plan *out,
		      struct frond_place *places, uint16_t *position, char *text, uint32_t cap, uint32_t *len)
{
	struct asked asked;
	struct complaint complaint;
	bool refused;
	*len = 0;
	build(engine);
	int32_t code =
		request_read(engine, request, members, annotations, in, in_len, room, &asked, &refused, &complaint);
	if (code != FROND_OK)
		return fail_complaint(&complaint, text, cap, len);
	struct out writer = {.text = text, .cap = cap};
	struct answer answer = {.plan = {.generation = engine->core.generation, .outcome = FROND_REFUSED}};
	if (refused) {
		answer.plan.wait_ms = FROND_NONE;
		*out = answer.plan;
		out_printf(&writer, "%s", complaint.text);
		return told(engine, &answer, &writer, len);
	}
	asked.ask.thrift = thrift;
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
	return told(engine, &answer, &writer, len);
}

static int32_t abi_plan(frond_engine *engine, const struct frond_request *request, const struct frond_member *members,
			const struct frond_pair *annotations, const char *in, uint32_t in_len,
			const struct frond_room *room, struct frond_plan *out, struct frond_place *places, char *text,
			uint32_t cap, uint32_t *len)
{
	return decide(engine, request, members, annotations, in, in_len, room, NULL, out, places, NULL, text, cap, len);
}

/* Over a limit waste.c would overflow. CPU and memory may be anything. */
static bool thrift_formed(const struct frond_thrift *thrift, const struct frond_kind *kinds,
			  const struct frond_left *left, struct complaint *complaint)
{
	if (thrift->kinds > FROND_KINDS_MAX || thrift->reserved != 0) {
		complain(complaint, 0, "thrift: kinds must be 0 to %u, got %" PRIu32 ", and reserved 0",
			 FROND_KINDS_MAX, thrift->kinds);
		return false;
	}
	if (left == NULL || (kinds == NULL && thrift->kinds > 0)) {
		complain(complaint, 0, "kinds, left: must not be missing beside thrift");
		return false;
	}
	for (uint32_t i = 0; i < thrift->kinds; i++) {
		if (kinds[i].gpus < 1 || kinds[i].gpus > FROND_GPUS_MAX) {
			complain(complaint, 0, "kinds[%" PRIu32 "].gpus: must be 1 to %u, got %" PRIu32, i,
				 FROND_GPUS_MAX, kinds[i].gpus);
			return false;
		}
		if (kinds[i].pods < 1 || kinds[i].pods > FROND_PODS_MAX) {
			complain(complaint, 0, "kinds[%" PRIu32 "].pods: must be 1 to %u, got %" PRIu32, i,
				 FROND_PODS_MAX, kinds[i].pods);
			return false;
		}
	}
	return true;
}

static int32_t abi_order(frond_engine *engine, const struct frond_request *request, const struct frond_member *member,
			 const struct frond_pair *annotations, const char *in, uint32_t in_len,
			 const struct frond_room *room, const struct frond_thrift *thrift,
			 const struct frond_kind *kinds, const struct frond_left *left, struct frond_plan *out,
			 uint16_t *position, char *text, uint32_t cap, uint32_t *len)
{
	struct complaint complaint;
	struct thrift care;
	*len = 0;
	if (request->members != 1 || member->gpus == 0 || member->pinned_slot != FROND_NONE)
		return fail(FROND_BAD, "only one pod with GPUs can be ordered", text, cap, len);
	if (thrift != NULL && !thrift_formed(thrift, kinds, left, &complaint))
		return fail_complaint(&complaint, text, cap, len);
	if (thrift != NULL)
		care = (struct thrift){kinds, thrift->kinds, {thrift->cpu_milli, thrift->memory_mib}, left};
	memset(position, 0xff, engine->core.node_cap * sizeof *position);
	return decide(engine, request, member, annotations, in, in_len, room, thrift == NULL ? NULL : &care, out, NULL,
		      position, text, cap, len);
}

/* ---- reservations ---------------------------------------------------------------------------------------------------------------- */

static int32_t abi_reserve(frond_engine *engine, const struct frond_request *request,
			   const struct frond_member *members, const struct frond_place *places)
{
	if (key_zero(request->gang) || request->members == 0 || request->members > FROND_MEMBERS_MAX ||
	    request->min_member == 0 || request->min_member > FROND_MEMBERS_MAX || request->reserved != 0 ||
	    request->deadline_ms < 0 || request->deadline_ms > FROND_DEADLINE_MAX)
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
	if (engine->core.undo.depth == 0)
		names_drop(&engine->labels, label); /* undo() brings the entry back, and its label */
	return code;
}

static int32_t abi_release_gang(frond_engine *engine, const struct frond_key *gang, uint32_t *pods)
{
	return core_release_gang(&engine->core, *gang, pods, engine->core.undo.depth == 0 ? drop_label : keep_label,
				 &engine->labels);
}

static int32_t abi_gang_put(frond_engine *engine, const struct frond_request *request,
			    const struct frond_pair *annotations, const char *in, uint32_t in_len, char *text,
			    uint32_t cap, uint32_t *len)
{
	struct wish wish;
	struct terms terms;
	struct complaint complaint;
	*len = 0;
	uint32_t id = gangs_find(&engine->core.gangs, request->gang);
	if (id == FROND_NONE)
		return fail(FROND_UNKNOWN, "nobody of the gang holds anything", text, cap, len);
	if (engine->core.undo.depth > 0)
		return fail(FROND_BAD, "cluster state cannot change inside a what-if", text, cap, len);
	if (request->min_member < 1 || request->min_member > FROND_MEMBERS_MAX || request->reserved != 0 ||
	    !span_inside(request->claim, in_len))
		return fail(FROND_BAD, "request: minMember must be 1 to 16384, reserved 0, the claim inside the text",
			    text, cap, len);
	if (terms_read(engine, request, annotations, in, in_len, &wish, &terms, &complaint) != FROND_OK)
		return fail_complaint(&complaint, text, cap, len);
	gangs_promise(&engine->core.gangs, id, request->min_member, request->priority,
		      engine->core.gangs.gangs[id].deadline_ms);
	gangs_terms(&engine->core.gangs, id, &terms);
	return FROND_OK;
}

static int32_t abi_gang_get(frond_engine *engine, const struct frond_key *key, struct frond_gang *out)
{
	uint32_t id = gangs_find(&engine->core.gangs, *key);
	if (id == FROND_NONE)
		return FROND_UNKNOWN;
	const struct gang *gang = &engine->core.gangs.gangs[id];
	*out = (struct frond_gang){.state = gang_state(gang),
				   .min_member = gang->min_member,
				   .members = gang->members,
				   .arrived = gang->members - gang->bound - gang->missing,
				   .bound = gang->bound,
				   .lost = gang->lost,
				   .priority = gang->priority,
				   .deadline_ms = gang->deadline_ms};
	return FROND_OK;
}

static int32_t abi_tick(frond_engine *engine, int64_t now_ms, struct frond_key *expired, uint32_t cap, uint32_t *count)
{
	*count = 0;
	if (engine->core.undo.depth > 0)
		return FROND_BAD;
	*count = core_tick(&engine->core, now_ms, expired, cap, drop_label, &engine->labels);
	return FROND_OK;
}

static int32_t abi_what_if(frond_engine *engine)
{
	build(engine);
	return core_what_if(&engine->core);
}

static int32_t abi_undo(frond_engine *engine)
{
	return core_undo(&engine->core);
}

/* ---- repair and room --------------------------------------------------------------------------------------------------------------- */

/* What a gang that says nothing of it goes by. */
static struct ask defaults_of(const struct frond_engine *engine)
{
	struct ask ask = {.only_slot = FROND_NONE,
			  .domain_nvlink = FROND_NONE,
			  .max_nodes_per_leaf = engine->tuning.max_nodes_per_leaf,
			  .max_gpus_per_leaf = engine->tuning.max_gpus_per_leaf,
			  .gpu = GPU_WISH_DEFAULT};
	memcpy(ask.weight, engine->tuning.weight, sizeof ask.weight);
	return ask;
}

/* "2 moves make room", "1 move makes room" */
static int32_t tell_moves(int32_t code, const struct frond_moves *moves, const char *verb, const char *object,
			  struct out *writer, uint32_t *len)
{
	if (code != FROND_OK)
		return code;
	if (moves->outcome != FROND_PLACED)
		out_printf(writer, "no moves %s %s", verb, object);
	else if (moves->count == 0)
		out_printf(writer, "nothing has to move");
	else
		out_printf(writer, "%" PRIu32 " move%s %s%s %s%s; fewer than %" PRIu32 " are not possible",
			   moves->count, moves->count == 1 ? "" : "s", verb, moves->count == 1 ? "s" : "", object,
			   moves->flags & FROND_PLAN_RELAXED ? " with the rule relaxed" : "", moves->lower_bound);
	return out_finish(writer, len);
}

static int32_t abi_recover(frond_engine *engine, const struct frond_key *gang, const struct frond_room *room,
			   struct frond_moves *out, struct frond_move *moves, uint32_t cap, char *text,
			   uint32_t text_cap, uint32_t *len)
{
	struct out writer = {.text = text, .cap = text_cap};
	*len = 0;
	build(engine);
	uint32_t id = gangs_find(&engine->core.gangs, *gang);
	if (id == FROND_NONE)
		return fail(FROND_UNKNOWN, "nobody of the gang holds anything", text, text_cap, len);
	struct ask defaults = defaults_of(engine);
	tree_find_hash(&engine->tree, &engine->core.fabric, gang_terms(&engine->core.gangs.gangs[id]).domain,
		       &defaults.domain_first, &defaults.domain_end, &defaults.domain_nvlink);
	int32_t code = recover(&engine->recover, &engine->core, id, &defaults, room, out, moves, cap);
	return tell_moves(code, out, "repair", "the gang", &writer, len);
}

/* Reads a request for which others shall make room. FROND_OK with *refused: the sentence is in text. */
static int32_t read_for_room(frond_engine *engine, const struct frond_request *request,
			     const struct frond_member *members, const struct frond_pair *annotations, const char *in,
			     uint32_t in_len, const struct frond_room *room, struct asked *asked, bool *refused,
			     struct out *writer, struct complaint *complaint)
{
	build(engine);
	int32_t code = request_read(engine, request, members, annotations, in, in_len, room, asked, refused, complaint);
	if (code == FROND_OK && *refused)
		out_printf(writer, "%s", complaint->text);
	return code;
}

static int32_t abi_defrag(frond_engine *engine, const struct frond_request *request, const struct frond_member *members,
			  const struct frond_pair *annotations, const char *in, uint32_t in_len,
			  const struct frond_room *room, struct frond_moves *out, struct frond_move *moves,
			  uint32_t cap, char *text, uint32_t text_cap, uint32_t *len)
{
	struct asked asked;
	bool refused;
	struct out writer = {.text = text, .cap = text_cap};
	*len = 0;
	struct complaint complaint;
	int32_t code = read_for_room(engine, request, members, annotations, in, in_len, room, &asked, &refused, &writer,
				     &complaint);
	if (code != FROND_OK)
		return fail_complaint(&complaint, text, text_cap, len);
	if (refused) {
		*out = (struct frond_moves){.outcome = FROND_REFUSED};
		return out_finish(&writer, len);
	}
	struct ask defaults = defaults_of(engine);
	code = defrag(&engine->defrag, &engine->core, &asked.ask, &defaults, out, moves, cap);
	return tell_moves(code, out, "make", "room", &writer, len);
}

static int32_t abi_victims(frond_engine *engine, const struct frond_request *request,
			   const struct frond_member *members, const struct frond_pair *annotations, const char *in,
			   uint32_t in_len, const struct frond_room *room, struct frond_victims *out,
			   struct frond_place *places, struct frond_key *pods, uint32_t cap, char *text,
			   uint32_t text_cap, uint32_t *len)
{
	struct asked asked;
	bool refused;
	struct out writer = {.text = text, .cap = text_cap};
	*len = 0;
	struct complaint complaint;
	int32_t code = read_for_room(engine, request, members, annotations, in, in_len, room, &asked, &refused, &writer,
				     &complaint);
	if (code != FROND_OK)
		return fail_complaint(&complaint, text, text_cap, len);
	if (refused) {
		*out = (struct frond_victims){.outcome = FROND_REFUSED};
		return out_finish(&writer, len);
	}
	code = victims(&engine->victims, &engine->core, &asked.ask, request->priority, out, places, pods, cap);
	if (code != FROND_OK)
		return code;
	if (out->outcome != FROND_PLACED)
		out_printf(&writer, "even without every pod of lower priority than %" PRId32 " it does not fit",
			   request->priority);
	else if (out->count == 0)
		out_printf(&writer, "it fits, nobody has to go");
	else
		out_printf(&writer,
			   "%" PRIu32 " pod%s of %" PRIu32 " gang%s with %" PRIu32
			   " GPUs have to go, of priority %" PRId32 " at most, %" PRIu32 " against a disruption budget",
			   out->count, out->count == 1 ? "" : "s", out->gangs, out->gangs == 1 ? "" : "s", out->gpus,
			   out->priority, out->budgets);
	return out_finish(&writer, len);
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
		struct name_text node = engine_node_name(engine, entry_slot(entry));
		const char *before = "gpu.scheduling/allocated=";
		uint8_t ring[FROND_GPUS_MAX];
		uint32_t gpus = gpuset_ring(engine->core.sets[engine->core.nodes[entry_slot(entry)].topology],
					    entry->mask, ring);
		for (uint32_t i = 0; i < gpus; i++) {
			out_printf(&writer, "%s%.*s-gpu-%u", before, node.len, node.text, (unsigned)ring[i]);
			before = ",";
		}
		out_printf(&writer, "\n");
		uint32_t leaf = engine->core.fabric.leaf_of[engine->core.fabric.position[entry_slot(entry)]];
		if (leaf != FROND_NONE) {
			struct name_text name = engine_name(engine, engine->tree.leaf_name[leaf]);
			struct name_text spine =
				engine_name(engine, engine->tree.spine_name[engine->core.fabric.leaf_spine[leaf]]);
			out_printf(&writer, "topology.scheduler/domain=%.*s/%.*s\n", spine.len, spine.text, name.len,
				   name.text);
		}
	}
	if (entry_rank(entry) != FROND_NONE)
		out_printf(&writer, "topology.scheduler/rank=%" PRIu32 "\n", entry_rank(entry));
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
					       .config_put = abi_config_put,
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
					       .topology_put = abi_topology_put,
					       .gang_put = abi_gang_put,
					       .gang_get = abi_gang_get,
					       .tick = abi_tick,
					       .recover = abi_recover,
					       .defrag = abi_defrag,
					       .victims = abi_victims,
					       .what_if = abi_what_if,
					       .undo = abi_undo,
					       .binding = abi_binding,
					       .stats = abi_stats,
					       .problems = abi_problems,
					       .map = abi_map,
					       .dump = abi_dump,
					       .check = abi_check,
					       .code_text = abi_code_text};
	return &table;
}
