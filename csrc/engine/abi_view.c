/* SPDX-License-Identifier: Apache-2.0 */
/*
 * abi_view.c - what is seen from outside: bindings, numbers, problems, the map, dump and check.
 */
#include "engine/abi.h"

#include "core/check.h"

#include <inttypes.h>

int32_t abi_binding(frond_engine *engine, const struct frond_key *pod, char *text, uint32_t cap, uint32_t *len)
{
	*len = 0;
	abi_build(engine);
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

int32_t abi_stats(frond_engine *engine, struct frond_stats *out)
{
	abi_build(engine);
	core_stats(&engine->core, out);
	return FROND_OK;
}

int32_t abi_problems(frond_engine *engine, char *text, uint32_t cap, uint32_t *len)
{
	struct out writer = {.text = text, .cap = cap};
	abi_build(engine);
	tree_problems(&engine->tree, &writer);
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
