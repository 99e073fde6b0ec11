/* SPDX-License-Identifier: Apache-2.0 */
/* `defaults:` and `nodes:` of a fabric file: what every node has, and what single nodes have instead. */
#include "text/fabricload.h"

#include "text/kubename.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

static int32_t machine_read(const struct fabric_load *load, uint32_t map, struct fabric_node *node);
static int32_t exception_read(struct fabric_load *load, uint32_t at);
static int32_t node_change(const struct fabric_load *load, uint32_t map, struct fabric_node *node);
static int32_t exception_node_find(struct fabric_load *load, uint32_t at, const char *name, struct fabric_node **out);
static int32_t mask_read(const struct fabric_load *load, uint32_t map, const char *key, uint32_t gpus, uint32_t *out);
static int32_t labels_read(const struct fabric_load *load, uint32_t at, struct fabric_node *node);

int32_t fabric_defaults_load(struct fabric_load *load)
{
	static const char *const known[] = {"gpus", "model", "uplinkGbps"};
	load->defaults = (struct fabric_node){.model = FROND_NONE};
	uint32_t at = doc_get(load->doc, 0, "defaults");
	if (at == DOC_NONE)
		return FROND_OK;
	int32_t code = doc_map_of(load->doc, at, known, COUNT(known), load->complaint);
	return code == FROND_OK ? machine_read(load, at, &load->defaults) : code;
}

int32_t fabric_exceptions_load(struct fabric_load *load)
{
	uint32_t list = doc_get(load->doc, 0, "nodes");
	if (list == DOC_NONE)
		return FROND_OK;
	int32_t code = doc_list(load->doc, list, load->complaint);
	uint32_t at = code == FROND_OK ? load->doc->values[list].first : DOC_NONE;
	for (; at != DOC_NONE && code == FROND_OK; at = load->doc->values[at].next)
		code = exception_read(load, at);
	return code;
}

int32_t fabric_uplink_read(const struct fabric_load *load, uint32_t map, uint32_t *out)
{
	uint32_t at = doc_get(load->doc, map, "uplinkGbps");
	if (at == DOC_NONE)
		return FROND_OK;
	int64_t number = 0;
	int32_t code = doc_whole(load->doc, at, 1, FROND_UPLINK_MAX, &number, load->complaint);
	if (code == FROND_OK)
		*out = (uint32_t)number;
	return code;
}

/* gpus, model and uplinkGbps. A model without a number of GPUs has all of its own. */
static int32_t machine_read(const struct fabric_load *load, uint32_t map, struct fabric_node *node)
{
	uint32_t model = doc_get(load->doc, map, "model"), gpus = doc_get(load->doc, map, "gpus");
	int64_t number = node->gpus;
	int32_t code = fabric_uplink_read(load, map, &node->uplink_gbps);
	if (code == FROND_OK && model != DOC_NONE) {
		code = fabric_model_find(load, model, &node->model);
		if (code == FROND_OK)
			number = load->fabric->models[node->model].gpus;
	}
	if (code == FROND_OK && gpus != DOC_NONE)
		code = doc_whole(load->doc, gpus, 0, FROND_GPUS_MAX, &number, load->complaint);
	if (code != FROND_OK)
		return code;
	node->gpus = (uint32_t)number;
	if (node->model == FROND_NONE || node->gpus <= load->fabric->models[node->model].gpus)
		return FROND_OK;
	assert(gpus != DOC_NONE); /* what defaults or the model bring along always fits */
	return doc_complain(load->doc, gpus, load->complaint, "is %u, but %s has %u GPUs; at most %u are allowed",
			    node->gpus, load->fabric->models[node->model].name, load->fabric->models[node->model].gpus,
			    load->fabric->models[node->model].gpus);
}

/* One node, or each of a range. */
static int32_t exception_read(struct fabric_load *load, uint32_t at)
{
	static const char *const known[] = {"name",          "gpus",     "model",      "usedGpus",
					    "unhealthyGpus", "cordoned", "uplinkGbps", "labels"};
	const struct doc *doc = load->doc;
	uint32_t word = DOC_NONE;
	const char *text = NULL;
	struct range range;
	char name[FROND_NAME_MAX + 2];
	int32_t code = doc_map_of(doc, at, known, COUNT(known), load->complaint);
	if (code == FROND_OK)
		code = doc_need(doc, at, "name", &word, load->complaint);
	if (code == FROND_OK)
		code = doc_word(doc, word, &text, load->complaint);
	if (code == FROND_OK)
		code = fabric_range_open(load, word, &range);
	while (code == FROND_OK && range_next(&range, name)) {
		struct fabric_node *node = NULL;
		code = exception_node_find(load, word, name, &node);
		if (code == FROND_OK)
			code = node_change(load, at, node);
	}
	return code;
}

static int32_t node_change(const struct fabric_load *load, uint32_t map, struct fabric_node *node)
{
	const struct doc *doc = load->doc;
	int32_t code = machine_read(load, map, node);
	if (code == FROND_OK)
		code = mask_read(load, map, "usedGpus", node->gpus, &node->used_mask);
	if (code == FROND_OK)
		code = mask_read(load, map, "unhealthyGpus", node->gpus, &node->unhealthy_mask);
	if (code != FROND_OK)
		return code;
	uint32_t cordoned = doc_get(doc, map, "cordoned"), labels = doc_get(doc, map, "labels");
	if (cordoned != DOC_NONE)
		code = doc_bool(doc, cordoned, &node->cordoned, load->complaint);
	if (code == FROND_OK && labels != DOC_NONE)
		code = labels_read(load, labels, node);
	return code;
}

static int entry_find(const void *name, const void *entry)
{
	return strcmp(name, ((const struct fabric_entry *)entry)->name);
}

static int32_t exception_node_find(struct fabric_load *load, uint32_t at, const char *name, struct fabric_node **out)
{
	const struct doc *doc = load->doc;
	const struct fabric_entry *entry =
		bsearch(name, load->node_names, load->fabric->node_count, sizeof(*entry), entry_find);
	if (entry == NULL)
		return doc_complain(doc, at, load->complaint, "no leaf lists a node \"%s\"",
				    shown(name, strlen(name)).text);
	uint32_t *seen = &load->exception[entry->index];
	if (*seen != 0)
		return doc_complain(doc, at, load->complaint,
				    "node \"%s\" already has an entry on line %u; one is allowed",
				    shown(name, strlen(name)).text, doc->values[*seen].line);
	*seen = at;
	*out = &load->fabric->nodes[entry->index];
	return FROND_OK;
}

static int32_t mask_read(const struct fabric_load *load, uint32_t map, const char *key, uint32_t gpus, uint32_t *out)
{
	const struct doc *doc = load->doc;
	uint32_t list = doc_get(doc, map, key);
	if (list == DOC_NONE)
		return FROND_OK;
	int32_t code = doc_list(doc, list, load->complaint);
	if (code != FROND_OK)
		return code;
	for (uint32_t at = doc->values[list].first; at != DOC_NONE; at = doc->values[at].next) {
		int64_t gpu = 0;
		if (gpus == 0)
			return doc_complain(doc, at, load->complaint, "names a GPU, but the node has none");
		code = doc_whole(doc, at, 0, (int64_t)gpus - 1, &gpu, load->complaint);
		if (code != FROND_OK)
			return code;
		if ((*out & 1u << gpu) != 0)
			return doc_complain(doc, at, load->complaint, "GPU %u is already listed", (uint32_t)gpu);
		*out |= 1u << gpu;
	}
	return FROND_OK;
}

static int32_t labels_read(const struct fabric_load *load, uint32_t at, struct fabric_node *node)
{
	const struct doc *doc = load->doc;
	int32_t code = doc_map(doc, at, load->complaint);
	if (code != FROND_OK)
		return code;
	node->labels = fabric_take(load, doc->values[at].count, sizeof(*node->labels));
	if (node->labels == NULL)
		return FROND_BAD;
	for (uint32_t i = doc->values[at].first; i != DOC_NONE; i = doc->values[i].next) {
		const char *key = doc_key(doc, i), *value = NULL;
		code = doc_word(doc, i, &value, load->complaint);
		if (code != FROND_OK)
			return code;
		if (!is_label_key(key, strlen(key)))
			return doc_complain(doc, i, load->complaint, "is not a label key; allowed is " LABEL_KEY_RULE);
		if (!is_label_value(value, strlen(value)))
			return doc_complain(doc, i, load->complaint,
					    "\"%s\" is not a label value; allowed are " LABEL_VALUE_RULE,
					    shown(value, strlen(value)).text);
		struct fabric_label *label = &node->labels[node->label_count++];
		code = fabric_copy(load, key, &label->key);
		if (code == FROND_OK)
			code = fabric_copy(load, value, &label->value);
		if (code != FROND_OK)
			return code;
	}
	return FROND_OK;
}
