/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN     64u
#define TABLES    (4u << 20) /* several kinds of 16-GPU nodes */
#define NAME_ROOM 32u
#define PAGE      4096u
#define FAST_GBPS 400u
#define SLOW_GBPS 100u
#define UNLINKED  97u   /* every so many nodes one is in no NVLink domain */
#define RACKS     4096u /* names of NVLink domains that there is room for */

static const struct {
	const char *model; /* NULL: a link table of ours */
	uint8_t gpus;
} kinds[NODE_KINDS] = {{"H100-SXM", 8}, {"DGX-1V", 8}, {"DGX-2", 16}, {NULL, 16},
		       {NULL, 16},      {"GB200", 4},  {"PCIE-8", 8}, {NULL, 13}};

void must(const struct cluster *cluster, int32_t code, const char *what)
{
	char text[1024];
	if (code == FROND_OK)
		return;
	input_print(&cluster->input, text, sizeof text);
	fprintf(stderr, "slowest: %s: %s: %.*s\n%s\n", what, cluster->abi->code_text(code), (int)cluster->len,
		cluster->text, text);
	exit(2);
}

struct frond_key pod_key(uint32_t slot)
{
	return (struct frond_key){1, slot + 1ull};
}

struct frond_key gang_key(uint32_t gang)
{
	return (struct frond_key){2, gang + 1ull};
}

uint32_t gang_of(const struct cluster *cluster, uint32_t slot)
{
	return slot / cluster->input.number[N_GANG];
}

/* ---- link tables ---------------------------------------------------------------------------------------------------- */

struct frond_topology links_uneven(struct dice *dice)
{
	struct frond_topology links = {.gpus = FROND_GPUS_MAX};
	uint32_t speeds = percent(dice, 50) ? 600 : 2 + below(dice, 4);
	for (uint32_t i = 0; i < links.gpus; i++) {
		links.numa[i] = i >= links.gpus / 2;
		for (uint32_t j = 0; j < i; j++)
			links.link_gbps[i][j] = links.link_gbps[j][i] = (uint16_t)(1 + below(dice, speeds));
	}
	return links;
}

/* GPUs in groups of so many, joined inside; nothing between. */
static struct frond_topology links_groups(uint32_t gpus, uint32_t each)
{
	struct frond_topology links = {.gpus = gpus};
	for (uint32_t i = 0; i < gpus; i++) {
		links.numa[i] = i >= gpus / 2;
		for (uint32_t j = 0; j < gpus; j++)
			links.link_gbps[i][j] = i != j && i / each == j / each ? 300 : 0;
	}
	return links;
}

static void put_links(struct cluster *cluster, struct dice *dice)
{
	struct frond_topology uneven = links_uneven(dice), pairs = links_groups(16, 2), odd = links_groups(13, 5);
	const struct frond_topology *all[] = {&uneven, &pairs, &odd};
	uint32_t *ids[] = {&cluster->uneven, &cluster->pairs, &cluster->odd};
	const uint32_t kind[] = {KIND_UNEVEN, KIND_PAIRS, KIND_ODD};
	for (uint32_t i = 0; i < 3; i++)
		if (cluster->input.number[N_KINDS] >> kind[i] & 1) /* a table takes long to build */
			must(cluster,
			     cluster->abi->topology_put(cluster->engine, all[i], ids[i], cluster->text, TEXT_CAP,
							&cluster->len),
			     "topology_put");
}

/* ---- nodes and pods ------------------------------------------------------------------------------------------------- */

int32_t put_node(struct cluster *cluster, uint32_t slot, uint32_t flags, uint32_t uplink, uint32_t leaf)
{
	static const char keys[] = "fabric.topograph.run/tier-0fabric.topograph.run/tier-1nvidia.com/gpu.clique";
	const struct machine *machine = &cluster->machines[slot];
	char in[256];
	uint32_t used = sizeof keys - 1, labels = 0;
	struct frond_pair pairs[3];
	struct frond_node node = {.slot = slot,
				  .gpus = machine->gpus,
				  .unhealthy_mask = machine->sick,
				  .unavailable_mask = slot % 2 == 0 ? machine->sick : 0u,
				  .flags = flags,
				  .uplink_gbps = uplink,
				  .topology = machine->kind == KIND_UNEVEN  ? cluster->uneven
					      : machine->kind == KIND_PAIRS ? cluster->pairs
					      : machine->kind == KIND_ODD   ? cluster->odd
									    : FROND_NONE};
	memcpy(in, keys, used);
	node.name.off = used;
	used += node.name.len = (uint32_t)snprintf(in + used, NAME_ROOM, "n%" PRIu32, slot);
	if (kinds[machine->kind].model != NULL) {
		node.model.off = used;
		used += node.model.len = (uint32_t)snprintf(in + used, NAME_ROOM, "%s", kinds[machine->kind].model);
	}
	if (leaf != FROND_NONE) {
		pairs[labels] = (struct frond_pair){.key = {0, 27}, .value = {used, 0}};
		used += pairs[labels++].value.len = (uint32_t)snprintf(in + used, NAME_ROOM, "l%" PRIu32, leaf);
		pairs[labels] = (struct frond_pair){.key = {27, 27}, .value = {used, 0}};
		used += pairs[labels++].value.len =
			(uint32_t)snprintf(in + used, NAME_ROOM, "s%" PRIu32, machine->spine);
	}
	uint32_t rack = cluster->input.number[N_RACK];
	if (rack > 0 && slot % UNLINKED != 0) {
		pairs[labels] = (struct frond_pair){.key = {54, 21}, .value = {used, 0}};
		used += pairs[labels++].value.len =
			(uint32_t)snprintf(in + used, NAME_ROOM, "q%" PRIu32, slot / rack % RACKS);
	}
	return cluster->abi->node_put(cluster->engine, &node, pairs, labels, in, used, cluster->text, TEXT_CAP,
				      &cluster->len);
}

int32_t put_pod(struct cluster *cluster, uint32_t slot)
{
	const struct machine *machine = &cluster->machines[slot];
	uint32_t gpus = (uint32_t)__builtin_popcount(machine->used), each = cluster->input.number[N_GANG];
	bool counted = cluster->input.number[N_USE] == USE_COUNT;
	struct frond_pod pod = {.pod = pod_key(slot),
				.slot = slot,
				.gpus = gpus,
				.gpu_mask = counted ? 0 : machine->used,
				.gang = gang_key(gang_of(cluster, slot)),
				.rank = slot % each};
	return cluster->abi->pod_put(cluster->engine, &pod, NULL, 0, cluster->text, TEXT_CAP, &cluster->len);
}

/* A running gang's needs: some of its members may be spared. */
static void put_gang(struct cluster *cluster, uint32_t gang, uint32_t members, struct dice *dice)
{
	uint32_t spare = members * cluster->input.number[N_SPARE] / 100;
	struct frond_request request = {.gang = gang_key(gang),
					.members = members,
					.min_member = members - spare > 0 ? members - spare : 1,
					.only_slot = FROND_NONE,
					.priority = (int32_t)below(dice, cluster->input.number[N_LEVELS])};
	must(cluster,
	     cluster->abi->gang_put(cluster->engine, &request, NULL, NULL, 0, cluster->text, TEXT_CAP, &cluster->len),
	     "gang_put");
}

/* ---- the whole of it -------------------------------------------------------------------------------------------------- */

static uint16_t used_of(const struct cluster *cluster, const struct machine *machine, struct dice *dice)
{
	uint32_t all = (1u << machine->gpus) - 1;
	switch (cluster->input.number[N_USE]) {
	case USE_ONE:
		return (uint16_t)(1u << below(dice, machine->gpus));
	case USE_MASK:
	case USE_COUNT:
		return (uint16_t)(1 + below(dice, all));
	case USE_HALF:
		return (uint16_t)(all >> machine->gpus / 2);
	case USE_ALL_BUT_ONE:
		return (uint16_t)(all ^ 1u << below(dice, machine->gpus));
	default:
		return (uint16_t)all;
	}
}

static void machine_roll(const struct cluster *cluster, uint32_t slot, struct dice *dice)
{
	const uint32_t *number = cluster->input.number;
	struct machine *machine = &cluster->machines[slot];
	*machine = (struct machine){.leaf = FROND_NONE, .spine = FROND_NONE};
	if (number[N_LEAF] > 0 && !percent(dice, number[N_LOOSE])) {
		machine->leaf = slot / number[N_LEAF];
		machine->spine = machine->leaf / number[N_SPINE];
	}
	uint32_t skip = number[N_MIX] == 0 || machine->leaf == FROND_NONE ? below(dice, NODE_KINDS)
			: number[N_MIX] == 1                              ? machine->leaf
									  : machine->spine;
	while (!(number[N_KINDS] >> skip % NODE_KINDS & 1))
		skip++;
	machine->kind = (uint8_t)(skip % NODE_KINDS);
	machine->gpus = kinds[machine->kind].gpus;
	if (percent(dice, number[N_SICK]))
		machine->sick = (uint16_t)below(dice, 1u << machine->gpus);
	if (percent(dice, number[N_CLOSED]))
		machine->flags = (uint8_t)((percent(dice, 50) ? FROND_NODE_CORDONED : FROND_NODE_DOWN) |
					   (percent(dice, 50) ? FROND_NODE_UNAVAILABLE : 0));
	machine->uplink = number[N_SLOW] == 0 ? 0 : percent(dice, number[N_SLOW]) ? SLOW_GBPS : FAST_GBPS;
	if (percent(dice, number[N_USED]))
		machine->used = used_of(cluster, machine, dice);
}

static void fill(struct cluster *cluster)
{
	struct dice dice = {cluster->input.number[N_SEED]};
	uint32_t each = cluster->input.number[N_GANG];
	put_links(cluster, &dice);
	for (uint32_t slot = 0; slot < cluster->nodes; slot++) {
		machine_roll(cluster, slot, &dice);
		const struct machine *machine = &cluster->machines[slot];
		must(cluster, put_node(cluster, slot, machine->flags, machine->uplink, machine->leaf), "node_put");
	}
	for (uint32_t slot = 0, members = 0; slot < cluster->nodes; slot++) {
		if (cluster->machines[slot].used != 0) {
			must(cluster, put_pod(cluster, slot), "pod_put");
			members++;
		}
		if ((slot + 1) % each == 0 || slot + 1 == cluster->nodes) {
			if (members > 0)
				put_gang(cluster, gang_of(cluster, slot), members, &dice);
			members = 0;
		}
	}
	must(cluster, cluster->abi->problems(cluster->engine, cluster->text, TEXT_CAP, &cluster->len), "problems");
}

struct cluster *cluster_open(const struct frond_abi *abi, const struct input *input, char *text)
{
	struct cluster *cluster = calloc(1, sizeof *cluster);
	if (cluster == NULL)
		return NULL;
	uint32_t nodes = input->number[N_NODES], pods = nodes + FROND_MEMBERS_MAX;
	struct frond_limits limits = {.nodes = nodes, .pods = pods, .table_bytes = TABLES};
	cluster->abi = abi;
	cluster->nodes = nodes;
	cluster->text = text;
	memcpy(cluster->input.number, input->number, CLUSTER_NUMBERS * sizeof *input->number);
	cluster->bytes = (abi->size_of(&limits) + ALIGN - 1) / ALIGN * ALIGN;
	cluster->memory = aligned_alloc(ALIGN, cluster->bytes);
	cluster->copy = aligned_alloc(ALIGN, cluster->bytes);
	cluster->machines = calloc(nodes, sizeof *cluster->machines);
	if (cluster->memory == NULL || cluster->copy == NULL || cluster->machines == NULL) {
		cluster_close(cluster);
		return NULL;
	}
	memset(cluster->memory, 0, cluster->bytes);
	must(cluster,
	     abi->create(cluster->memory, cluster->bytes, &limits, NULL, 0, NULL, 0, &cluster->engine, text, TEXT_CAP,
			 &cluster->len),
	     "create");
	fill(cluster);
	memcpy(cluster->copy, cluster->memory, cluster->bytes);
	return cluster;
}

void cluster_close(struct cluster *cluster)
{
	if (cluster == NULL)
		return;
	free(cluster->memory);
	free(cluster->copy);
	free(cluster->machines);
	free(cluster);
}

void cluster_restore(struct cluster *cluster)
{
	for (uint64_t at = 0; at < cluster->bytes; at += PAGE) { /* most are as they were, and looking is faster */
		uint64_t bytes = cluster->bytes - at < PAGE ? cluster->bytes - at : PAGE;
		uint8_t *now = (uint8_t *)cluster->memory + at;
		const uint8_t *made = (const uint8_t *)cluster->copy + at;
		if (memcmp(now, made, bytes) != 0)
			memcpy(now, made, bytes);
	}
	cluster->dirty = false;
}
