/* SPDX-License-Identifier: Apache-2.0 */
/*
 * abi_state.c - what changes the state: nodes, link tables, pods, reservations, gangs, what-ifs.
 */
#include "engine/abi.h"

#include <inttypes.h>

#define GPU_PRODUCT "nvidia.com/gpu.product"
#define UPLINK_MASK ((1u << 20) - 1)

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
	if ((node->unavailable_mask & ~node->unhealthy_mask) != 0)
		return complain(complaint, 0,
				"node %s: unavailable GPUs must be unhealthy ones, %" PRIx32 ", got %" PRIx32,
				shown(name, node->name.len).text, node->unhealthy_mask, node->unavailable_mask);
	if ((node->flags & ~(NODE_FLAGS | FROND_NODE_REPLICAS | FROND_NODE_UNAVAILABLE)) != 0)
		return complain(complaint, 0, "node %s: flags must be a sum of %d, %d, %d and %d, got %" PRIu32,
				shown(name, node->name.len).text, FROND_NODE_CORDONED, FROND_NODE_DOWN,
				FROND_NODE_REPLICAS, FROND_NODE_UNAVAILABLE, node->flags);
	if ((node->flags & FROND_NODE_UNAVAILABLE) != 0 && (node->flags & NODE_FLAGS) == 0)
		return complain(
			complaint, 0,
			"node %s: an unavailable node (%d) must be cordoned (%d) or down (%d), got flags %" PRIu32,
			shown(name, node->name.len).text, FROND_NODE_UNAVAILABLE, FROND_NODE_CORDONED, FROND_NODE_DOWN,
			node->flags);
	if (node->uplink_gbps > FROND_UPLINK_MAX || node->reserved != 0)
		return complain(complaint, 0,
				"node %s: uplink must be at most %u gigabit/s and reserved 0, got %" PRIu32
				" and %" PRIu32,
				shown(name, node->name.len).text, FROND_UPLINK_MAX, node->uplink_gbps, node->reserved);
	if (!span_inside(node->model, in_len) ||
	    (node->topology != FROND_NONE && core_topology_gpus(&engine->core, node->topology) != node->gpus))
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

/* The model of a node's GPUs: as reported, else the file's, else the product label; empty: nobody says. */
static struct name_text find_model(const struct frond_engine *engine, const struct frond_node *node,
				   const struct frond_pair *labels, uint32_t label_count, const char *in, uint32_t name)
{
	uint32_t file = tree_file_node(&engine->tree, name);
	if (node->model.len > 0)
		return (struct name_text){(int)node->model.len, in + node->model.off};
	if (file != FROND_NONE && engine->tree.file_node[file].model != FILE_NO_MODEL) {
		const char *text = engine->machines.own[engine->tree.file_node[file].model].name;
		return (struct name_text){(int)strlen(text), text};
	}
	for (uint32_t i = 0; i < label_count; i++)
		if (labels[i].key.len == sizeof GPU_PRODUCT - 1 &&
		    memcmp(in + labels[i].key.off, GPU_PRODUCT, sizeof GPU_PRODUCT - 1) == 0)
			return (struct name_text){(int)labels[i].value.len, in + labels[i].value.off};
	return (struct name_text){0, ""};
}

/* The link table: as reported, else by the model. */
static int32_t find_topology(struct frond_engine *engine, const struct frond_node *node, const struct name_text *model,
			     uint32_t *id)
{
	*id = node->topology;
	if (node->topology != FROND_NONE)
		return FROND_OK;
	uint32_t machine = FROND_NONE;
	if (model->len > 0)
		machine = machines_find(&engine->machines, model->text, (uint32_t)model->len, node->gpus);
	return machines_table(&engine->machines, &engine->core, machine, node->gpus, id);
}

int32_t abi_node_put(frond_engine *engine, const struct frond_node *node, const struct frond_pair *labels,
		     uint32_t label_count, const char *in, uint32_t in_len, char *text, uint32_t cap, uint32_t *len)
{
	struct complaint complaint;
	uint32_t topology = 0;
	*len = 0;
	if (engine->core.undo.depth > 0)
		return abi_fail(FROND_BAD, "cluster state cannot change inside a what-if", text, cap, len);
	if (check_node(engine, node, labels, label_count, in, in_len, &complaint) != FROND_OK)
		return abi_complain(&complaint, text, cap, len);
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
		return abi_complain(&complaint, text, cap, len);
	}
	if (entry.name == FROND_NONE) {
		drop_node(engine, &entry);
		return abi_fail(FROND_LIMIT, "no room for further names of nodes", text, cap, len);
	}
	struct name_text model = find_model(engine, node, labels, label_count, in, entry.name);
	if (find_topology(engine, node, &model, &topology) != FROND_OK) {
		drop_node(engine, &entry);
		return abi_fail(FROND_LIMIT, "no room for further link tables of nodes", text, cap, len);
	}
	uint32_t uplink = tree_put(&engine->tree, node->slot, &entry, node->uplink_gbps);
	if (engine->core.nodes[node->slot].present)
		machines_model_drop(&engine->machines, engine->core.nodes[node->slot].model);
	core_node_put(&engine->core, node->slot,
		      &(struct node){.gpus = node->gpus & NODE_GPUS_MASK,
				     .topology = (uint8_t)topology,
				     .model = machines_model_hold(&engine->machines, model.text, (uint32_t)model.len) &
					      (FROND_MODELS - 1),
				     .unhealthy = (uint16_t)node->unhealthy_mask,
				     .flags = node->flags & NODE_FLAGS,
				     .replicas = (node->flags & FROND_NODE_REPLICAS) != 0,
				     .unavailable = (node->flags & FROND_NODE_UNAVAILABLE) != 0,
				     .unavailable_gpus = (uint16_t)node->unavailable_mask,
				     .uplink_gbps = uplink & UPLINK_MASK});
	return FROND_OK;
}

int32_t abi_topology_put(frond_engine *engine, const struct frond_topology *topology, uint32_t *id, char *text,
			 uint32_t cap, uint32_t *len)
{
	*len = 0;
	if (topology->gpus > FROND_GPUS_MAX)
		return abi_fail(FROND_BAD, "topology.gpus: must be 0 to 16", text, cap, len);
	struct topology table = {.gpus = topology->gpus};
	struct complaint complaint;
	for (uint32_t i = 0; i < FROND_GPUS_MAX; i++) {
		table.numa[i] = topology->numa[i];
		if (i >= topology->gpus && topology->numa[i] != 0) {
			complain(&complaint, 0,
				 "topology.numa[%" PRIu32 "]: must be 0, there are %" PRIu32 " GPUs, got %u", i,
				 topology->gpus, (unsigned)topology->numa[i]);
			return abi_complain(&complaint, text, cap, len);
		}
		for (uint32_t j = 0; j < FROND_GPUS_MAX; j++) {
			uint16_t link = topology->link_gbps[i][j];
			table.link_gbps[i][j] = link;
			bool inside = i < topology->gpus && j < topology->gpus && i != j;
			if (link == topology->link_gbps[j][i] && (inside || link == 0))
				continue;
			complain(&complaint, 0, "topology.linkGbps[%" PRIu32 "][%" PRIu32 "]: must be %s, got %u", i, j,
				 inside ? "the same in both directions" : "0", (unsigned)link);
			return abi_complain(&complaint, text, cap, len);
		}
	}
	if (core_topology(&engine->core, &table, id) != FROND_OK)
		return abi_fail(FROND_LIMIT, "no room for further link tables of nodes", text, cap, len);
	return FROND_OK;
}

int32_t abi_node_remove(frond_engine *engine, uint32_t slot)
{
	if (slot >= engine->core.node_cap || !engine->core.nodes[slot].present)
		return FROND_UNKNOWN;
	if (engine->core.undo.depth > 0)
		return FROND_BAD;
	machines_model_drop(&engine->machines, engine->core.nodes[slot].model);
	core_node_remove(&engine->core, slot, drop_label, &engine->labels);
	tree_remove(&engine->tree, slot);
	return FROND_OK;
}

static int32_t check_mask(const struct frond_engine *engine, const struct frond_pod *pod, struct complaint *complaint)
{
	uint32_t gpus = engine->core.nodes[pod->slot].gpus;
	if ((pod->gpu_mask & ~bits_first(gpus)) != 0) {
		struct name_text name = engine_node_name(engine, pod->slot);
		return complain(complaint, 0,
				"pod.gpuMask: must be GPUs of node %s, which has %" PRIu32 ", got mask %" PRIx32,
				shown(name.text, (uint32_t)name.len).text, gpus, pod->gpu_mask);
	}
	if (pod->gpu_mask != 0 && bits_count(pod->gpu_mask) != pod->gpus)
		return complain(complaint, 0,
				"pod.gpuMask: must be 0 or as many GPUs as pod.gpus, %" PRIu32 ", got mask %" PRIx32
				" with %" PRIu32,
				pod->gpus, pod->gpu_mask, bits_count(pod->gpu_mask));
	return FROND_OK;
}

int32_t abi_pod_put(frond_engine *engine, const struct frond_pod *pod, const char *in, uint32_t in_len, char *text,
		    uint32_t cap, uint32_t *len)
{
	struct complaint complaint;
	*len = 0;
	if (key_zero(pod->pod))
		return abi_fail(FROND_BAD, "pod.pod: must not be zero", text, cap, len);
	if (!span_inside(pod->name, in_len))
		return abi_fail(FROND_BAD, "pod.name: must lie inside the text", text, cap, len);
	if ((pod->flags & ~(uint32_t)FROND_POD_BUDGETED) != 0)
		return abi_fail(FROND_BAD, "pod.flags: must be 0 or 1", text, cap, len);
	if (pod->reserved != 0)
		return abi_fail(FROND_BAD, "pod.reserved: must be 0", text, cap, len);
	if (pod->slot >= engine->core.node_cap || !engine->core.nodes[pod->slot].present)
		return abi_fail(FROND_UNKNOWN, "the pod's node is not known", text, cap, len);
	if (pod->gpus > FROND_POD_GPUS_MAX)
		return abi_fail(FROND_BAD, "pod.gpus: must be at most 32768", text, cap, len);
	if (check_mask(engine, pod, &complaint) != FROND_OK)
		return abi_complain(&complaint, text, cap, len);
	if (engine->core.nodes[pod->slot].by_count + pod->gpus > FROND_BY_COUNT_MAX)
		return abi_fail(FROND_LIMIT, "pods of one node hold at most 16777215 GPUs by count", text, cap, len);
	if (engine->core.undo.depth > 0)
		return abi_fail(FROND_BAD, "cluster state cannot change inside a what-if", text, cap, len);
	struct core_pod entry = {.pod = pod->pod,
				 .gang = pod->gang,
				 .slot = pod->slot,
				 .mask = pod->gpu_mask,
				 .by_count = pod->gpu_mask == 0 ? pod->gpus : 0,
				 .rank = pod->rank > FROND_RANK_MAX ? FROND_NONE : pod->rank,
				 .budgeted = (pod->flags & FROND_POD_BUDGETED) != 0};
	entry.label = hold_label(engine, in, pod->name);
	bool joined;
	uint32_t dropped;
	int32_t code = core_pod_put(&engine->core, &entry, &joined, &dropped);
	names_drop(&engine->labels, dropped);
	if (!joined)
		names_drop(&engine->labels, entry.label);
	if (code != FROND_OK)
		return abi_fail(code, "no room for further pods", text, cap, len);
	return FROND_OK;
}

int32_t abi_pod_get(frond_engine *engine, const struct frond_key *pod, struct frond_held *out)
{
	uint32_t at = ledger_find(&engine->core.ledger, *pod);
	if (at == FROND_NONE)
		return FROND_UNKNOWN;
	const struct entry *entry = &engine->core.ledger.entries[at];
	*out = (struct frond_held){.slot = entry_slot(entry),
				   .gpus = entry_gpus(entry),
				   .gpu_mask = (uint32_t)entry->mask,
				   .by_count = (uint32_t)entry->by_count,
				   .rank = entry_rank(entry),
				   .state = entry->hold == HOLD_BOUND ? FROND_HELD_BOUND : FROND_HELD_RESERVED};
	if (entry_gang(entry) != FROND_NONE)
		out->gang = engine->core.gangs.gangs[entry_gang(entry)].key;
	return FROND_OK;
}

/* ---- reservations ---------------------------------------------------------------------------------------------------------------- */

int32_t abi_reserve(frond_engine *engine, const struct frond_request *request, const struct frond_member *members,
		    const struct frond_place *places)
{
	struct complaint unused;
	if (key_zero(request->gang) || request->members == 0 || request->members > FROND_MEMBERS_MAX ||
	    request->min_member == 0 || request->min_member > FROND_MEMBERS_MAX || request->deadline_ms < 0 ||
	    request->deadline_ms > FROND_DEADLINE_MAX)
		return FROND_BAD;
	if (named_formed(engine, request, &unused) != FROND_OK)
		return FROND_BAD;
	return core_reserve(&engine->core, request, members, places);
}

int32_t abi_permit(frond_engine *engine, const struct frond_key *pod, uint32_t *verdict)
{
	return core_permit(&engine->core, *pod, verdict);
}

int32_t abi_confirm(frond_engine *engine, const struct frond_key *pod)
{
	return core_confirm(&engine->core, *pod);
}

int32_t abi_release(frond_engine *engine, const struct frond_key *pod)
{
	uint32_t label = FROND_NONE;
	int32_t code = core_release(&engine->core, *pod, &label);
	if (engine->core.undo.depth == 0)
		names_drop(&engine->labels, label); /* undo() brings the entry back, and its label */
	return code;
}

int32_t abi_release_gang(frond_engine *engine, const struct frond_key *gang, uint32_t *pods)
{
	return core_release_gang(&engine->core, *gang, pods, engine->core.undo.depth == 0 ? drop_label : keep_label,
				 &engine->labels);
}

int32_t abi_gang_put(frond_engine *engine, const struct frond_request *request, const struct frond_pair *annotations,
		     const char *in, uint32_t in_len, char *text, uint32_t cap, uint32_t *len)
{
	struct wish wish;
	struct terms terms;
	struct complaint complaint;
	*len = 0;
	uint32_t id = gangs_find(&engine->core.gangs, request->gang);
	if (id == FROND_NONE)
		return abi_fail(FROND_UNKNOWN, "nobody of the gang holds anything", text, cap, len);
	if (engine->core.undo.depth > 0)
		return abi_fail(FROND_BAD, "cluster state cannot change inside a what-if", text, cap, len);
	if (request->min_member < 1 || request->min_member > FROND_MEMBERS_MAX || !span_inside(request->claim, in_len))
		return abi_fail(FROND_BAD, "request: minMember must be 1 to 16384, the claim inside the text", text,
				cap, len);
	if (named_formed(engine, request, &complaint) != FROND_OK)
		return abi_complain(&complaint, text, cap, len);
	if (terms_read(engine, request, annotations, in, in_len, &wish, &terms, &complaint) != FROND_OK)
		return abi_complain(&complaint, text, cap, len);
	gangs_promise(&engine->core.gangs, id, request->min_member, request->priority,
		      engine->core.gangs.gangs[id].deadline_ms);
	gangs_terms(&engine->core.gangs, id, &terms);
	return FROND_OK;
}

int32_t abi_gang_get(frond_engine *engine, const struct frond_key *key, struct frond_gang *out)
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

int32_t abi_tick(frond_engine *engine, int64_t now_ms, struct frond_key *expired, uint32_t cap, uint32_t *count)
{
	*count = 0;
	if (engine->core.undo.depth > 0)
		return FROND_BAD;
	*count = core_tick(&engine->core, now_ms, expired, cap, drop_label, &engine->labels);
	return FROND_OK;
}

int32_t abi_what_if(frond_engine *engine)
{
	abi_build(engine);
	return core_what_if(&engine->core);
}

int32_t abi_undo(frond_engine *engine)
{
	return core_undo(&engine->core);
}
