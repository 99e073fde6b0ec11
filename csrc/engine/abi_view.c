/* SPDX-License-Identifier: Apache-2.0 */
/*
 * abi_view.c - what is seen from outside: bindings, numbers, problems, the map, dump and check.
 */
#include "engine/abi.h"

#include "core/check.h"

#include <inttypes.h>

#define REPLICAS_NAMED 64u /* nodes; further ones are counted */

int32_t abi_binding(frond_engine *engine, const struct frond_key *pod, struct frond_place *place, char *text,
		    uint32_t cap, uint32_t *len)
{
	*len = 0;
	abi_build(engine);
	uint32_t at = ledger_find(&engine->core.ledger, *pod);
	if (at == FROND_NONE)
		return FROND_UNKNOWN;
	const struct entry *entry = &engine->core.ledger.entries[at];
	struct out writer = {.text = text, .cap = cap};
	*place = (struct frond_place){.slot = FROND_NONE};
	if (entry->mask != 0) {
		place->slot = entry_slot(entry);
		place->gpu_mask = (uint32_t)entry->mask;
		place->ring = gpuset_ring_packed(engine->core.sets[engine->core.nodes[place->slot].topology],
						 place->gpu_mask);
		uint32_t leaf = engine->core.fabric.leaf_of[engine->core.fabric.position[place->slot]];
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

int32_t abi_stats(frond_engine *engine, struct frond_stats *out)
{
	abi_build(engine);
	core_stats(&engine->core, out);
	return FROND_OK;
}

/* Nodes that let pods have more GPUs than they have devices. */
static void replicas_problems(const struct frond_engine *engine, struct out *out)
{
	uint32_t count = 0;
	for (uint32_t slot = 0; slot < engine->core.node_cap; slot++) {
		const struct node *node = &engine->core.nodes[slot];
		if (!node->present || !node->replicas || count++ >= REPLICAS_NAMED)
			continue;
		struct name_text name = engine_node_name(engine, slot);
		const char *shown_name = shown(name.text, (uint32_t)name.len).text;
		if (node->gpus > 0)
			out_printf(
				out,
				"node %s lets pods have more GPUs than its %u devices: replicas of shared GPUs are not "
				"scheduled, whole devices are\n",
				shown_name, (unsigned)node->gpus);
		else
			out_printf(
				out,
				"node %s lets pods have more than %u GPUs and no report names its devices: replicas of "
				"shared GPUs are not scheduled, no pod with GPUs goes there\n",
				shown_name, FROND_GPUS_MAX);
	}
	if (count > REPLICAS_NAMED)
		out_printf(out, "%" PRIu32 " further nodes let pods have more GPUs than they have devices\n",
			   count - REPLICAS_NAMED);
}

static void models_problem(const struct frond_engine *engine, struct out *out)
{
	uint32_t nodes = engine->machines.said[MODEL_FURTHER].nodes;
	if (nodes > 0)
		out_printf(out, "there are more than %u GPU models; those of %" PRIu32 " node%s count as one\n",
			   MODEL_FURTHER - 1, nodes, nodes == 1 ? "" : "s");
}

int32_t abi_problems(frond_engine *engine, char *text, uint32_t cap, uint32_t *len)
{
	struct out writer = {.text = text, .cap = cap};
	abi_build(engine);
	tree_problems(&engine->tree, &writer);
	replicas_problems(engine, &writer);
	models_problem(engine, &writer);
	return out_finish(&writer, len);
}

int32_t abi_map(frond_engine *engine, uint32_t color, char *text, uint32_t cap, uint32_t *len)
{
	struct out writer = {.text = text, .cap = cap};
	abi_build(engine);
	map_draw(engine, color != 0, &writer);
	return out_finish(&writer, len);
}

int32_t abi_dump(frond_engine *engine, char *text, uint32_t cap, uint32_t *len)
{
	struct out writer = {.text = text, .cap = cap};
	abi_build(engine);
	core_dump(&engine->core, &writer);
	return out_finish(&writer, len);
}

int32_t abi_check(frond_engine *engine, char *text, uint32_t cap, uint32_t *len)
{
	struct out writer = {.text = text, .cap = cap};
	abi_build(engine);
	int32_t code = core_check(&engine->core, &writer);
	*len = writer.len < cap ? (uint32_t)writer.len : cap - (cap > 0); /* an error's sentence is cut */
	return code;
}
