/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map.c - the cluster as a picture: a line per leaf, a cell per GPU, a letter per gang. First version: plain text that
 * a terminal of 100 columns shows; the owners are listed below.
 */
#include "engine/engine.h"

#include <inttypes.h>

#define MAP_OWNERS_MAX 52u /* letters */

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

struct owner {
	uint32_t label;
	uint32_t gpus, nodes, last_slot;
};

struct legend {
	struct owner owners[MAP_OWNERS_MAX];
	uint32_t count;
	uint32_t unnamed; /* GPUs of owners beyond the letters */
	bool kept;        /* some GPU is */
};

/* Which letter a holder has: by the name that people know it by, in order of first appearance in the fabric. */
static uint32_t owner_index(struct legend *legend, uint32_t label)
{
	for (uint32_t i = 0; i < legend->count; i++)
		if (legend->owners[i].label == label)
			return i;
	if (legend->count == MAP_OWNERS_MAX)
		return FROND_NONE;
	legend->owners[legend->count] = (struct owner){.label = label, .last_slot = FROND_NONE};
	return legend->count++;
}

/* A million GPUs have a million cells: no format is read for them. */
static void draw_cell(struct out *out, bool color, uint32_t owner, char cell)
{
	char bright[] = "\033[31;1m";
	if (color && owner != FROND_NONE) {
		bright[3] = (char)('1' + owner % 6);
		out_bytes(out, bright, sizeof bright - 1);
	} else if (color) {
		out_bytes(out, "\033[2m", 4);
	}
	out_bytes(out, &cell, 1);
	if (color)
		out_bytes(out, "\033[0m", 4);
}

static void draw_gpus(const struct frond_engine *engine, uint32_t slot, bool color, struct legend *legend,
		      struct out *out)
{
	const struct ledger *ledger = &engine->core.ledger;
	const struct node *node = &engine->core.nodes[slot];
	uint32_t by_count = node->by_count, kept = node->kept ? holds_mask(&ledger->holds, slot) : 0;
	for (uint32_t gpu = 0; gpu < node->gpus; gpu++) {
		uint32_t at = ledger_owner(ledger, slot, gpu);
		if (at != FROND_NONE) {
			uint32_t owner = owner_index(legend, entry_label(&ledger->entries[at]));
			draw_cell(out, color, owner, owner == FROND_NONE ? '*' : letters[owner]);
			if (owner == FROND_NONE) {
				legend->unnamed++;
				continue;
			}
			legend->owners[owner].gpus++;
			legend->owners[owner].nodes += legend->owners[owner].last_slot != slot;
			legend->owners[owner].last_slot = slot;
		} else if (node->unhealthy >> gpu & 1) {
			draw_cell(out, color, FROND_NONE, 'x');
		} else if (kept >> gpu & 1) {
			draw_cell(out, color, FROND_NONE, '+');
			legend->kept = true;
		} else if (by_count > 0) { /* somewhere on this node, nobody knows where */
			draw_cell(out, color, FROND_NONE, '#');
			by_count--;
		} else {
			draw_cell(out, color, FROND_NONE, '.');
		}
	}
}

static void draw_node(const struct frond_engine *engine, uint32_t slot, bool color, struct legend *legend,
		      struct out *out)
{
	struct name_text name = engine_node_name(engine, slot);
	const struct node *node = &engine->core.nodes[slot];
	const char *mark = node->flags & FROND_NODE_DOWN ? "!" : node->flags & FROND_NODE_CORDONED ? "-" : " ";
	out_printf(out, " %*.*s%s", name.len < 8 ? 8 : name.len, name.len, name.text, mark);
	draw_gpus(engine, slot, color, legend, out);
}

void map_draw(const struct frond_engine *engine, bool color, struct out *out)
{
	const struct fabric *fabric = &engine->core.fabric;
	struct legend legend = {.count = 0};
	for (uint32_t leaf = 0; leaf < fabric->leaf_count; leaf++) {
		uint32_t spine = fabric->leaf_spine[leaf];
		if (leaf == fabric->spine_start[spine]) {
			struct name_text name = engine_name(engine, engine->tree.spine_name[spine]);
			out_printf(out, "%.*s\n", name.len, name.text);
		}
		struct name_text name = engine_name(engine, engine->tree.leaf_name[leaf]);
		out_printf(out, "  %-9.*s", name.len, name.text);
		for (uint32_t position = fabric->leaf_start[leaf]; position < fabric->leaf_start[leaf + 1];
		     position++) {
			uint32_t in_leaf = position - fabric->leaf_start[leaf];
			if (in_leaf > 0 && in_leaf % 4 == 0)
				out_printf(out, "\n           ");
			draw_node(engine, fabric->order[position], color, &legend, out);
		}
		out_printf(out, "\n");
	}
	if (fabric->leaf_start[fabric->leaf_count] < fabric->node_count)
		out_printf(out, "without a leaf\n");
	for (uint32_t position = fabric->leaf_start[fabric->leaf_count]; position < fabric->node_count; position++) {
		out_printf(out, "           ");
		draw_node(engine, fabric->order[position], color, &legend, out);
		out_printf(out, "\n");
	}
	out_printf(out, ". free   # in use by others   x unhealthy   ! not ready   - cordoned%s\n",
		   legend.kept ? "   + kept by a hold" : "");
	for (uint32_t i = 0; i < legend.count; i++) {
		const struct owner *owner = &legend.owners[i];
		draw_cell(out, color, i, letters[i]);
		if (owner->label == FROND_NONE)
			out_printf(out, " (no name)");
		else {
			uint32_t len;
			const char *label = names_text(&engine->labels, owner->label, &len);
			struct name_text name = {(int)len, label};
			out_printf(out, " %.*s", name.len, name.text);
		}
		out_printf(out, ": %" PRIu32 " GPU%s on %" PRIu32 " node%s\n", owner->gpus, owner->gpus == 1 ? "" : "s",
			   owner->nodes, owner->nodes == 1 ? "" : "s");
	}
	if (legend.unnamed > 0)
		out_printf(out, "* further owners: %" PRIu32 " GPUs\n", legend.unnamed);
}
