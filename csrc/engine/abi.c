/* SPDX-License-Identifier: Apache-2.0 */
/*
 * abi.c - the table of the ABI, what needs no engine, and how an engine comes to be.
 */
#include "engine/abi.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define NODE_LINE    "spine:" /* a fabric that starts so is the one-line form */
#define NAME_BYTES   32u      /* of names for each node, on average, where the caller does not say */
#define TEXT_BYTES   65536u   /* and for all together: a few long ones fit into a small engine */
#define LABELS_MAX   8192u    /* different names of gangs that the map can show */
#define LABEL_BYTES  40u
#define TABLES_LEAST 4096u /* bytes of GPU-set tables */

/* ---- helpers -------------------------------------------------------------------------------------------------------- */

/* An error's sentence is cut at cap: the error is what matters. */
int32_t abi_fail(int32_t code, const char *sentence, char *text, uint32_t cap, uint32_t *len)
{
	uint32_t size = (uint32_t)strlen(sentence);
	*len = size < cap ? size : cap;
	if (*len > 0)
		memcpy(text, sentence, *len);
	return code;
}

int32_t abi_complain(const struct complaint *complaint, char *text, uint32_t cap, uint32_t *len)
{
	char sentence[FROND_TEXT_MAX + 32];
	if (complaint->line > 0)
		snprintf(sentence, sizeof sentence, "line %" PRIu32 ": %s", complaint->line, complaint->text);
	else
		snprintf(sentence, sizeof sentence, "%s", complaint->text);
	return abi_fail(FROND_BAD, sentence, text, cap, len);
}

void abi_build(struct frond_engine *engine)
{
	if (tree_build(&engine->tree, engine->core.nodes, &engine->core.fabric))
		engine->core.generation++;
}

/* ---- words without an engine ------------------------------------------------------------------------------------------ */

int32_t abi_args(const char *json, uint32_t json_len, struct frond_args *out, char *text, uint32_t cap, uint32_t *len)
{
	struct args args;
	struct complaint complaint;
	if (args_read(json, json_len, &args, &complaint) != FROND_OK)
		return abi_complain(&complaint, text, cap, len);
	struct out writer = {.text = text, .cap = cap};
	*out = (struct frond_args){.permit_wait_s = args.permit_wait_s,
				   .resource_count = args.resource_count,
				   .unavailable_after_ms = (uint32_t)args.unavailable_after_ms};
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

int32_t abi_fabric_expand(const char *fabric, uint32_t fabric_len, uint32_t line, char *text, uint32_t cap,
			  uint32_t *len)
{
	struct fabricfile file;
	struct complaint complaint;
	int32_t code = line ? fabricfile_read_line(fabric, fabric_len, &file, &complaint)
			    : fabricfile_read(fabric, fabric_len, &file, &complaint);
	if (code != FROND_OK)
		return abi_complain(&complaint, text, cap, len);
	char *json = fabricfile_json(&file);
	fabricfile_free(&file);
	if (json == NULL)
		return abi_fail(FROND_LIMIT, "out of memory", text, cap, len);
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
	/* None of the four calls another, and nothing stays in their scratch from one call to the next. */
	struct arena recover = *arena, victims = *arena, window = *arena;
	recover_layout(&engine->recover, &recover, limits->nodes, limits->pods);
	victims_layout(&engine->victims, &victims, limits->nodes, limits->pods);
	window_layout(&engine->window, &window, limits->pods);
	defrag_layout(&engine->defrag, arena, limits->pods);
	arena->used = recover.used > arena->used ? recover.used : arena->used;
	arena->used = victims.used > arena->used ? victims.used : arena->used;
	arena->used = window.used > arena->used ? window.used : arena->used;
	return engine;
}

uint64_t abi_size_of(const struct frond_limits *limits)
{
	if (limits->nodes < 1 || limits->nodes > FROND_NODES_MAX || limits->pods < 1 || limits->pods > FROND_PODS_MAX ||
	    limits->holds > FROND_HOLDS_MAX || limits->text_bytes > (1u << 30) || limits->table_bytes > (1u << 30) ||
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
		return abi_complain(&complaint, text, cap, len);
	code = tree_load(&engine->tree, &file);
	if (code == FROND_OK)
		code = machines_load(&engine->machines, &file);
	fabricfile_free(&file);
	if (code != FROND_OK)
		return abi_fail(code,
				"the fabric has more nodes, leaves, names, speeds or models than the engine's limits",
				text, cap, len);
	return FROND_OK;
}

int32_t abi_create(void *mem, uint64_t bytes, const struct frond_limits *limits, const char *args, uint32_t args_len,
		   const char *fabric, uint32_t fabric_len, frond_engine **out, char *text, uint32_t cap, uint32_t *len)
{
	uint64_t size = abi_size_of(limits);
	*len = 0;
	if (size == 0)
		return abi_fail(FROND_LIMIT,
				"limits: nodes must be 1 to 131072, pods 1 to 1048575, holds 0 to 32768, textBytes and "
				"tableBytes 0 or up to 1 GiB",
				text, cap, len);
	if (mem == NULL || (uintptr_t)mem % ARENA_ALIGN != 0 || bytes < size)
		return abi_fail(FROND_BAD, "the engine's memory is too small or not aligned to 16", text, cap, len);
	struct args decoded;
	struct complaint complaint;
	if (args_read(args, args_len, &decoded, &complaint) != FROND_OK)
		return abi_complain(&complaint, text, cap, len);
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

int32_t abi_config_put(frond_engine *engine, const char *json, uint32_t json_len, char *text, uint32_t cap,
		       uint32_t *len)
{
	struct complaint complaint;
	*len = 0;
	if (engine->core.undo.depth > 0)
		return abi_fail(FROND_BAD, "the configuration cannot change inside a what-if", text, cap, len);
	if (tuning_read(json, json_len, &engine->args.tuning, &engine->tuning, &complaint) != FROND_OK)
		return abi_complain(&complaint, text, cap, len);
	engine->core.generation++; /* what was planned before was planned by other rules */
	return FROND_OK;
}

const char *abi_code_text(int32_t code)
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
					       .pod_get = abi_pod_get,
					       .plan = abi_plan,
					       .order = abi_order,
					       .reserve = abi_reserve,
					       .permit = abi_permit,
					       .confirm = abi_confirm,
					       .release = abi_release,
					       .release_gang = abi_release_gang,
					       .hold_put = abi_hold_put,
					       .hold_take = abi_hold_take,
					       .hold_drop = abi_hold_drop,
					       .hold_list = abi_hold_list,
					       .topology_put = abi_topology_put,
					       .gang_put = abi_gang_put,
					       .gang_get = abi_gang_get,
					       .tick = abi_tick,
					       .recover = abi_recover,
					       .defrag = abi_defrag,
					       .victims = abi_victims,
					       .window = abi_window,
					       .backfill = abi_backfill,
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
