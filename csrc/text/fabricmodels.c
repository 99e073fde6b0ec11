/* SPDX-License-Identifier: Apache-2.0 */
/* `models:` of a fabric file: machines of the user's own, beside those that are known by name. */
#include "text/fabricload.h"

#include "text/kubename.h"
#include "text/models.h"

#include <stdio.h>
#include <string.h>

#define MODELS_OWN_MAX 64u
#define LINK_GBPS_MAX  65535
#define COUNT(array)   ((uint32_t)(sizeof(array) / sizeof((array)[0])))

static int32_t model_read(struct fabric_load *load, uint32_t at, struct fabric_model *model);
static int32_t model_name_read(struct fabric_load *load, uint32_t map, struct fabric_model *model);
static int32_t numa_read(const struct fabric_load *load, uint32_t at, struct fabric_model *model);
static int32_t links_read(const struct fabric_load *load, uint32_t at, struct fabric_model *model);
static int32_t links_check(const struct fabric_load *load, uint32_t at, const struct fabric_model *model);
static uint32_t model_index(const struct fabricfile *fabric, const char *name);

int32_t fabric_models_load(struct fabric_load *load)
{
	const struct doc *doc = load->doc;
	struct fabricfile *fabric = load->fabric;
	uint32_t list = doc_get(doc, 0, "models");
	int32_t code = list == DOC_NONE ? FROND_OK : doc_list(doc, list, load->complaint);
	if (code != FROND_OK)
		return code;
	uint32_t own = list == DOC_NONE ? 0 : doc->values[list].count;
	if (own > MODELS_OWN_MAX)
		return doc_complain(doc, list, load->complaint, "has %u entries; at most %u are allowed", own,
				    MODELS_OWN_MAX);

	fabric->models = fabric_take(load, MODELS_KNOWN + own, sizeof(*fabric->models));
	if (fabric->models == NULL)
		return FROND_BAD;
	for (uint32_t i = 0; i < MODELS_KNOWN && code == FROND_OK; i++) {
		models_fill(i, &fabric->models[i]);
		code = fabric_copy(load, models_known[i].name, &fabric->models[i].name);
		fabric->model_count++;
	}
	uint32_t at = own == 0 ? DOC_NONE : doc->values[list].first;
	for (; at != DOC_NONE && code == FROND_OK; at = doc->values[at].next)
		code = model_read(load, at, &fabric->models[fabric->model_count]);
	return code;
}

int32_t fabric_model_find(const struct fabric_load *load, uint32_t at, uint32_t *out)
{
	const char *name = NULL;
	int32_t code = doc_word(load->doc, at, &name, load->complaint);
	if (code != FROND_OK)
		return code;
	*out = model_index(load->fabric, name);
	if (*out != FROND_NONE)
		return FROND_OK;
	char known[FROND_TEXT_MAX / 2] = "";
	uint32_t used = 0;
	for (uint32_t i = 0; i < load->fabric->model_count && used < sizeof(known); i++)
		used += (uint32_t)snprintf(known + used, sizeof(known) - used, "%s%s", i == 0 ? "" : ", ",
					   load->fabric->models[i].name);
	return doc_complain(load->doc, at, load->complaint,
			    "\"%s\" is not a known model; known are %s; others are defined under models",
			    shown(name, strlen(name)).text, known);
}

static int32_t model_read(struct fabric_load *load, uint32_t at, struct fabric_model *model)
{
	static const char *const known[] = {"name", "gpus", "numa", "links"};
	const struct doc *doc = load->doc;
	uint32_t gpus = DOC_NONE, links = DOC_NONE;
	int64_t number = 0;
	int32_t code = doc_map_of(doc, at, known, COUNT(known), load->complaint);
	if (code == FROND_OK)
		code = doc_need(doc, at, "gpus", &gpus, load->complaint);
	if (code == FROND_OK)
		code = doc_whole(doc, gpus, 1, FROND_GPUS_MAX, &number, load->complaint);
	if (code == FROND_OK)
		code = doc_need(doc, at, "links", &links, load->complaint);
	if (code != FROND_OK)
		return code;
	model->gpus = (uint32_t)number;
	code = links_read(load, links, model);
	uint32_t numa = doc_get(doc, at, "numa");
	if (code == FROND_OK && numa == DOC_NONE)
		models_numa_default(model);
	else if (code == FROND_OK)
		code = numa_read(load, numa, model);
	return code == FROND_OK ? model_name_read(load, at, model) : code;
}

static int32_t model_name_read(struct fabric_load *load, uint32_t map, struct fabric_model *model)
{
	uint32_t at;
	const char *name = NULL;
	int32_t code = doc_need(load->doc, map, "name", &at, load->complaint);
	if (code == FROND_OK)
		code = doc_word(load->doc, at, &name, load->complaint);
	if (code != FROND_OK)
		return code;
	struct shown seen = shown(name, strlen(name));
	if (!is_domain_name(name, strlen(name)))
		return doc_complain(load->doc, at, load->complaint,
				    "\"%s\" is not a model's name; allowed are " DOMAIN_NAME_RULE, seen.text);
	if (model_index(load->fabric, name) != FROND_NONE)
		return doc_complain(load->doc, at, load->complaint,
				    "model \"%s\" is already defined; choose another name", seen.text);
	code = fabric_copy(load, name, &model->name);
	load->fabric->model_count++;
	return code;
}

static int32_t numa_read(const struct fabric_load *load, uint32_t at, struct fabric_model *model)
{
	const struct doc *doc = load->doc;
	int32_t code = doc_list(doc, at, load->complaint);
	if (code == FROND_OK && doc->values[at].count != model->gpus)
		return doc_complain(doc, at, load->complaint, "has %u entries; %u are needed, one for each GPU",
				    doc->values[at].count, model->gpus);
	uint32_t i = code == FROND_OK ? doc->values[at].first : DOC_NONE;
	for (uint32_t gpu = 0; i != DOC_NONE && code == FROND_OK; i = doc->values[i].next, gpu++) {
		int64_t number = 0;
		code = doc_whole(doc, i, 0, FROND_GPUS_MAX - 1, &number, load->complaint);
		model->numa[gpu] = (uint32_t)number;
	}
	return code;
}

static int32_t links_read(const struct fabric_load *load, uint32_t at, struct fabric_model *model)
{
	const struct doc *doc = load->doc;
	int32_t code = doc_list(doc, at, load->complaint);
	if (code == FROND_OK && doc->values[at].count != model->gpus)
		return doc_complain(doc, at, load->complaint, "has %u rows; %u are needed, one for each GPU",
				    doc->values[at].count, model->gpus);
	uint32_t row = code == FROND_OK ? doc->values[at].first : DOC_NONE;
	for (uint32_t i = 0; row != DOC_NONE; row = doc->values[row].next, i++) {
		code = doc_list(doc, row, load->complaint);
		if (code != FROND_OK)
			return code;
		if (doc->values[row].count != model->gpus)
			return doc_complain(doc, row, load->complaint,
					    "has %u entries; %u are needed, one for each GPU", doc->values[row].count,
					    model->gpus);
		uint32_t cell = doc->values[row].first;
		for (uint32_t j = 0; cell != DOC_NONE; cell = doc->values[cell].next, j++) {
			int64_t number;
			code = doc_whole(doc, cell, 0, LINK_GBPS_MAX, &number, load->complaint);
			if (code != FROND_OK)
				return code;
			model->link_gbps[i][j] = (uint32_t)number;
		}
	}
	return code == FROND_OK ? links_check(load, at, model) : code;
}

/* A GPU has no link to itself, and a link is as fast one way as the other. */
static int32_t links_check(const struct fabric_load *load, uint32_t at, const struct fabric_model *model)
{
	const struct doc *doc = load->doc;
	uint32_t row = doc->values[at].first;
	for (uint32_t i = 0; i < model->gpus; row = doc->values[row].next, i++) {
		uint32_t cell = doc->values[row].first;
		for (uint32_t j = 0; j <= i; cell = doc->values[cell].next, j++) {
			uint32_t there = model->link_gbps[i][j], back = model->link_gbps[j][i];
			if (i == j && there != 0)
				return doc_complain(doc, cell, load->complaint,
						    "must be 0, a GPU has no link to itself, got %u", there);
			if (there != back)
				return doc_complain(doc, cell, load->complaint,
						    "is %u but the way back is %u; links must be symmetric", there,
						    back);
		}
	}
	return FROND_OK;
}

static uint32_t model_index(const struct fabricfile *fabric, const char *name)
{
	for (uint32_t i = 0; i < fabric->model_count; i++) {
		if (strcmp(fabric->models[i].name, name) == 0)
			return i;
	}
	return FROND_NONE;
}
