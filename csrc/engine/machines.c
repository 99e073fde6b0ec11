/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/machines.h"

/* Product names that GPU feature discovery puts into nvidia.com/gpu.product (and AMD's labeller into its own), by how
 * they begin. Only boards whose links are always the same: others would be a guess. */
static const struct product {
	const char *prefix, *model;
	uint32_t gpus; /* in the machine; 0: any number */
} products[] = {
	{"NVIDIA-H100-80GB-HBM3", "H100-SXM", 0},
	{"NVIDIA-H200", "H100-SXM", 0},
	{"NVIDIA-A100-SXM4", "A100-SXM", 0},
	{"NVIDIA-B200", "B200-SXM", 0},
	{"NVIDIA-GB200", "GB200", 0},
	{"Tesla-V100-SXM2", "DGX-1V", 8},
	{"Tesla-V100-SXM3", "DGX-2", 16},
	{"AMD_Instinct_MI300X", "MI300X", 0},
};

static void truncate_to(struct topology *topology, uint32_t gpus)
{
	for (uint32_t i = 0; i < FROND_GPUS_MAX; i++)
		for (uint32_t j = 0; j < FROND_GPUS_MAX; j++)
			if (i >= gpus || j >= gpus)
				topology->link_gbps[i][j] = 0;
	for (uint32_t i = gpus; i < FROND_GPUS_MAX; i++)
		topology->numa[i] = 0;
	topology->gpus = gpus;
}

static void from_model(const struct fabric_model *model, struct topology *out)
{
	*out = (struct topology){.gpus = model->gpus};
	for (uint32_t i = 0; i < model->gpus; i++) {
		out->numa[i] = (uint8_t)model->numa[i];
		for (uint32_t j = 0; j < model->gpus; j++)
			out->link_gbps[i][j] = (uint16_t)model->link_gbps[i][j];
	}
}

int32_t machines_load(struct machines *machines, const struct fabricfile *file)
{
	machines->last.len = 0;
	for (uint32_t i = 0; i < file->model_count; i++) {
		const char *name = file->models[i].name;
		if (machines->count == MACHINES_MAX)
			return FROND_LIMIT;
		struct machine *machine = &machines->own[machines->count++];
		memcpy(machine->name, name, strlen(name) + 1);
		from_model(&file->models[i], &machine->topology);
	}
	return FROND_OK;
}

static bool is(const char *name, uint32_t len, const char *other)
{
	return strlen(other) == len && memcmp(name, other, len) == 0;
}

static uint32_t find(const struct machines *machines, const char *name, uint32_t len, uint32_t gpus)
{
	for (uint32_t i = 0; i < machines->count; i++)
		if (is(name, len, machines->own[i].name))
			return i;
	for (uint32_t i = 0; i < MODELS_KNOWN; i++)
		if (is(name, len, models_known[i].name))
			return MACHINES_MAX + i;
	for (uint32_t i = 0; i < sizeof products / sizeof *products; i++) {
		size_t prefix = strlen(products[i].prefix);
		if (len >= prefix && memcmp(name, products[i].prefix, prefix) == 0 &&
		    (products[i].gpus == 0 || products[i].gpus == gpus))
			return find(machines, products[i].model, (uint32_t)strlen(products[i].model), gpus);
	}
	return FROND_NONE;
}

uint32_t machines_find(struct machines *machines, const char *name, uint32_t len, uint32_t gpus)
{
	if (len > 0 && machines->last.len == len && machines->last.gpus == gpus &&
	    memcmp(machines->last.name, name, len) == 0)
		return machines->last.model;
	uint32_t model = find(machines, name, len, gpus);
	if (len <= sizeof machines->last.name) {
		memcpy(machines->last.name, name, len);
		machines->last.len = len;
		machines->last.gpus = gpus;
		machines->last.model = model;
	}
	return model;
}

/* The links of a model with all its GPUs; of an unknown one: none, and two NUMA nodes. */
static void links_of(const struct machines *machines, uint32_t model, uint32_t gpus, struct topology *out)
{
	struct fabric_model known = {.gpus = gpus};
	if (model < MACHINES_MAX) {
		*out = machines->own[model].topology;
		return;
	}
	models_numa_default(&known);
	if (model < MACHINES_MAX + MODELS_KNOWN)
		models_fill(model - MACHINES_MAX, &known);
	from_model(&known, out);
}

/* Ids of tables that no node had may mean others by now. */
static void forget_freed(struct machines *machines, const struct core *core)
{
	if (machines->freed == core->tables.freed)
		return;
	memset(machines->table, 0, sizeof machines->table);
	machines->freed = core->tables.freed;
}

int32_t machines_table(struct machines *machines, struct core *core, uint32_t model, uint32_t gpus, uint32_t *id)
{
	if (model == FROND_NONE)
		model = MACHINES_MAX + MODELS_KNOWN;
	forget_freed(machines, core);
	uint16_t *kept = &machines->table[model][gpus];
	if (*kept == 0) {
		struct topology topology;
		links_of(machines, model, gpus, &topology);
		if (topology.gpus < gpus) /* not what the model says it is */
			links_of(machines, MACHINES_MAX + MODELS_KNOWN, gpus, &topology);
		truncate_to(&topology, gpus);
		int32_t code = core_topology(core, &topology, id);
		if (code != FROND_OK)
			return code;
		forget_freed(machines, core);
		*kept = (uint16_t)(*id + 1);
	}
	*id = *kept - 1u;
	return FROND_OK;
}

/* ---- models as nodes say them ------------------------------------------------------------------------------------------ */

/* As a label would have it: GPU feature discovery writes dashes where the driver has blanks, and a last word for GPUs that
 * are shared. */
static struct model_said said_of(const char *name, uint32_t len)
{
	static const char shared[] = "-SHARED";
	struct model_said said = {.nodes = 0};
	if (len >= sizeof shared - 1 && memcmp(name + len - (sizeof shared - 1), shared, sizeof shared - 1) == 0)
		len -= (uint32_t)sizeof shared - 1;
	said.len = (uint8_t)min_u32(len, MODEL_BYTES);
	for (uint32_t i = 0; i < said.len; i++)
		said.name[i] = name[i] == ' ' ? '-' : name[i];
	return said;
}

uint32_t machines_model_hold(struct machines *machines, const char *name, uint32_t len)
{
	struct model_said said = said_of(name, len);
	uint32_t model = said.len == 0 ? MODEL_UNKNOWN : MODEL_FURTHER;
	for (uint32_t i = MODEL_FURTHER; i-- > MODEL_UNKNOWN + 1 && said.len > 0;) {
		const struct model_said *other = &machines->said[i];
		if (other->nodes == 0 && model == MODEL_FURTHER)
			model = i;
		if (other->nodes > 0 && other->len == said.len && memcmp(other->name, said.name, said.len) == 0) {
			model = i;
			break;
		}
	}
	said.nodes = machines->said[model].nodes + 1;
	machines->said[model] = said;
	return model;
}

void machines_model_drop(struct machines *machines, uint32_t model)
{
	assert(machines->said[model].nodes > 0);
	machines->said[model].nodes--;
}
