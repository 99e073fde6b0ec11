/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.h - part of oracle.c: writes an instance as the files of reference 11.
 *
 * A file is built once as a tree of values and printed as JSON or as YAML, so that both say the same.
 */
#ifndef FROND_TEST_FILES_H
#define FROND_TEST_FILES_H

#include <stdlib.h>

#include <cjson/cJSON.h>

#include "instance.h"

/* The caller frees the text. */
static char *fabric_text(const struct fabric *fabric, bool as_yaml);
static char *jobs_text(const struct instance *instance, bool as_yaml);

/* ---- trees of values -------------------------------------------------------------------------------------------- */

static cJSON *mask_list(unsigned mask)
{
	cJSON *list = cJSON_CreateArray();
	for (int gpu = 0; gpu < GPUS_MAX; gpu++)
		if (mask & (1u << gpu))
			cJSON_AddItemToArray(list, cJSON_CreateNumber(gpu));
	return list;
}

static cJSON *fabric_spines(const struct fabric *fabric)
{
	cJSON *spines = cJSON_CreateArray();
	for (int s = 0; s < fabric->spine_count; s++) {
		cJSON *spine = cJSON_CreateObject();
		cJSON_AddItemToArray(spines, spine);
		cJSON_AddStringToObject(spine, "name", fabric->spine_names[s]);
		cJSON *leaves = cJSON_AddArrayToObject(spine, "leaves");
		for (int l = 0; l < fabric->leaf_count; l++) {
			if (fabric->leaves[l].spine != s)
				continue;
			cJSON *leaf = cJSON_CreateObject();
			cJSON_AddItemToArray(leaves, leaf);
			cJSON_AddStringToObject(leaf, "name", fabric->leaves[l].name);
			if (fabric->leaves[l].uplink_gbps > 0)
				cJSON_AddNumberToObject(leaf, "uplinkGbps", fabric->leaves[l].uplink_gbps);
			cJSON *nodes = cJSON_AddArrayToObject(leaf, "nodes");
			for (int n = 0; n < fabric->node_count; n++)
				if (fabric->nodes[n].leaf == l)
					cJSON_AddItemToArray(nodes, cJSON_CreateString(fabric->nodes[n].name));
		}
	}
	return spines;
}

static cJSON *own_models(const struct fabric *fabric)
{
	cJSON *list = cJSON_CreateArray();
	for (int m = 0; m < fabric->model_count; m++) {
		const struct model *model = &fabric->models[m];
		bool used = fabric->default_model == m;
		for (int n = 0; n < fabric->node_count; n++)
			used = used || fabric->nodes[n].model == m;
		if (!model->own || !used)
			continue;
		cJSON *entry = cJSON_CreateObject();
		cJSON_AddItemToArray(list, entry);
		cJSON_AddStringToObject(entry, "name", model->name);
		cJSON_AddNumberToObject(entry, "gpus", model->gpus);
		if (model->numa_given)
			cJSON_AddItemToObject(entry, "numa", cJSON_CreateIntArray(model->numa, model->gpus));
		cJSON *links = cJSON_AddArrayToObject(entry, "links");
		for (int gpu = 0; gpu < model->gpus; gpu++)
			cJSON_AddItemToArray(links, cJSON_CreateIntArray(model->links[gpu], model->gpus));
	}
	return list;
}

static void add_labels(const struct node *node, cJSON *entry)
{
	const char zone[] = {node->zone, '\0'};
	if (!node->clique[0] && !node->zone)
		return;
	cJSON *labels = cJSON_AddObjectToObject(entry, "labels");
	if (node->clique[0])
		cJSON_AddStringToObject(labels, "nvidia.com/gpu.clique", node->clique);
	if (node->zone)
		cJSON_AddStringToObject(labels, "zone", zone);
}

/* Only what differs from the defaults. NULL when nothing does. */
static cJSON *node_exception(const struct fabric *fabric, const struct node *node)
{
	cJSON *entry = cJSON_CreateObject();
	cJSON_AddStringToObject(entry, "name", node->name);
	if (!node->gpus_implied && (node->gpus != fabric->default_gpus || node->model_given))
		cJSON_AddNumberToObject(entry, "gpus", node->gpus);
	if (node->model_given)
		cJSON_AddStringToObject(entry, "model", fabric->models[node->model].name);
	if (node->used_mask)
		cJSON_AddItemToObject(entry, "usedGpus", mask_list(node->used_mask));
	if (node->unhealthy_mask)
		cJSON_AddItemToObject(entry, "unhealthyGpus", mask_list(node->unhealthy_mask));
	if (node->cordoned)
		cJSON_AddBoolToObject(entry, "cordoned", true);
	if (node->uplink_gbps != fabric->default_uplink_gbps)
		cJSON_AddNumberToObject(entry, "uplinkGbps", node->uplink_gbps);
	add_labels(node, entry);
	if (cJSON_GetArraySize(entry) > 1)
		return entry;
	cJSON_Delete(entry);
	return NULL;
}

static cJSON *fabric_tree(const struct fabric *fabric)
{
	cJSON *tree = cJSON_CreateObject();
	cJSON_AddStringToObject(tree, "apiVersion", "topology.scheduler/v1alpha1");
	cJSON_AddStringToObject(tree, "kind", "Fabric");
	if (fabric->default_gpus > 0) {
		cJSON *defaults = cJSON_AddObjectToObject(tree, "defaults");
		cJSON_AddNumberToObject(defaults, "gpus", fabric->default_gpus);
		if (model_is_named(fabric, fabric->default_model))
			cJSON_AddStringToObject(defaults, "model", fabric->models[fabric->default_model].name);
		if (fabric->default_uplink_gbps > 0)
			cJSON_AddNumberToObject(defaults, "uplinkGbps", fabric->default_uplink_gbps);
	}
	cJSON_AddItemToObject(tree, "spines", fabric_spines(fabric));
	cJSON *models = own_models(fabric);
	if (cJSON_GetArraySize(models) > 0)
		cJSON_AddItemToObject(tree, "models", models);
	else
		cJSON_Delete(models);
	cJSON *exceptions = cJSON_CreateArray();
	for (int n = 0; n < fabric->node_count; n++) {
		cJSON *entry = NULL;
		if (!fabric->leaves[fabric->nodes[n].leaf].loose) /* the file does not know it */
			entry = node_exception(fabric, &fabric->nodes[n]);
		if (entry)
			cJSON_AddItemToArray(exceptions, entry);
	}
	if (cJSON_GetArraySize(exceptions) > 0)
		cJSON_AddItemToObject(tree, "nodes", exceptions);
	else
		cJSON_Delete(exceptions);
	return tree;
}

static void add_annotations(const struct job *job, cJSON *entry)
{
	cJSON *notes = cJSON_CreateObject();
	char count[16];

	if (job->gpu_count > 0) {
		snprintf(count, sizeof count, "%d", job->gpu_count);
		cJSON_AddStringToObject(notes, "topology.scheduler/gpu-count", count);
	}
	if (job->preferred[0])
		cJSON_AddStringToObject(notes, "topology.scheduler/preferred-domain", job->preferred);
	if (job->floor_gbps > 0)
		cJSON_AddStringToObject(notes, "topology.scheduler/network-bandwidth", job->floor_text);
	if (job->latency_sensitive)
		cJSON_AddStringToObject(notes, "topology.scheduler/latency-sensitive", "true");
	if (job->strategy_given)
		cJSON_AddStringToObject(notes, "topology.scheduler/placement-strategy", STRATEGY_NAMES[job->strategy]);
	if (job->mode_given)
		cJSON_AddStringToObject(notes, "topology.scheduler/topology-mode", MODE_NAMES[job->mode]);
	if (job->segment_size > 0) {
		snprintf(count, sizeof count, "%d", job->segment_size);
		cJSON_AddStringToObject(notes, "topology.scheduler/segment-size", count);
	}
	if (job->segment_level != SEGMENT_DEFAULT)
		cJSON_AddStringToObject(notes, "topology.scheduler/segment-level", SEGMENT_NAMES[job->segment_level]);
	if (job->recovery_given)
		cJSON_AddStringToObject(notes, "topology.scheduler/recovery", RECOVERY_NAMES[job->recovery]);
	if (cJSON_GetArraySize(notes) > 0)
		cJSON_AddItemToObject(entry, "annotations", notes);
	else
		cJSON_Delete(notes);
}

static cJSON *ids_list(const struct fabric *fabric, const struct claim *claim)
{
	cJSON *list = mask_list(claim->prefer_mask);
	char id[NAME_SIZE + 8];
	for (int gpu = 0; claim->prefer_node >= 0 && gpu < GPUS_MAX; gpu++)
		if (claim->prefer_node_mask & (1u << gpu)) {
			snprintf(id, sizeof id, "%s-gpu-%d", fabric->nodes[claim->prefer_node].name, gpu);
			cJSON_AddItemToArray(list, cJSON_CreateString(id));
		}
	return list;
}

static void add_claim(const struct fabric *fabric, const struct claim *claim, cJSON *entry)
{
	const char zone[] = {claim->zone, '\0'};
	cJSON *tree = cJSON_AddObjectToObject(entry, "claim");
	cJSON *devices = cJSON_AddObjectToObject(tree, "devices");
	cJSON *topology = cJSON_AddObjectToObject(tree, "topology");

	cJSON_AddStringToObject(devices, "policy", POLICY_NAMES[claim->policy]);
	if (claim->policy == POLICY_PREFER_IDS)
		cJSON_AddItemToObject(devices, "preferIds", ids_list(fabric, claim));
	cJSON_AddStringToObject(topology, "locality", LOCALITY_NAMES[claim->locality]);
	if (claim->mode_given)
		cJSON_AddStringToObject(topology, "mode", MODE_NAMES[claim->mode]);
	if (claim->min_gbps > 0)
		cJSON_AddNumberToObject(topology, "minBandwidthGBps", claim->min_gbps);
	if (claim->zone) {
		cJSON *selector = cJSON_AddObjectToObject(tree, "selector");
		cJSON_AddStringToObject(cJSON_AddObjectToObject(selector, "matchLabels"), "zone", zone);
	}
}

static cJSON *jobs_tree(const struct instance *instance)
{
	cJSON *tree = cJSON_CreateObject();
	cJSON *jobs = cJSON_AddArrayToObject(tree, "jobs");
	for (int e = 0; e < instance->entry_count; e++) {
		const struct job *job = &instance->entries[e];
		cJSON *entry = cJSON_CreateObject();
		cJSON_AddItemToArray(jobs, entry);
		if (job->removes >= 0) {
			cJSON_AddStringToObject(entry, "remove", instance->entries[job->removes].name);
			continue;
		}
		cJSON_AddStringToObject(entry, "name", job->name);
		cJSON_AddNumberToObject(entry, "members", job->members);
		if (job->sizes_as_list)
			cJSON_AddItemToObject(entry, "gpusPerMember", cJSON_CreateIntArray(job->sizes, job->members));
		else
			cJSON_AddNumberToObject(entry, "gpusPerMember", job->sizes[0]);
		if (job->min_member > 0)
			cJSON_AddNumberToObject(entry, "minMember", job->min_member);
		if (job->priority != 0)
			cJSON_AddNumberToObject(entry, "priority", job->priority);
		if (job->budgeted)
			cJSON_AddBoolToObject(entry, "budgeted", true);
		if (job->ends_given) {
			char ends[16];
			snprintf(ends, sizeof ends, "%dm", job->ends_m);
			cJSON_AddStringToObject(entry, "endsIn", ends);
		}
		add_annotations(job, entry);
		if (job->claim.given)
			add_claim(&instance->fabric, &job->claim, entry);
	}
	return tree;
}

/* ---- YAML ------------------------------------------------------------------------------------------------------- */

static void yaml_scalar(FILE *out, const cJSON *value)
{
	if (cJSON_IsNumber(value))
		fprintf(out, "%d", value->valueint);
	else if (cJSON_IsBool(value))
		fputs(cJSON_IsTrue(value) ? "true" : "false", out);
	else if (strcmp(value->valuestring, "true") == 0 ||
		 strspn(value->valuestring, "0123456789") == strlen(value->valuestring))
		fprintf(out, "\"%s\"", value->valuestring); /* a string that YAML would take for something else */
	else
		fputs(value->valuestring, out);
}

static bool yaml_is_scalar(const cJSON *value)
{
	return !cJSON_IsArray(value) && !cJSON_IsObject(value);
}

/* A list or map of scalars goes on one line, as people write it. */
static bool yaml_is_flat(const cJSON *value)
{
	const cJSON *child;
	cJSON_ArrayForEach(child, value) if (!yaml_is_scalar(child)) return false;
	return true;
}

static void yaml_flow(FILE *out, const cJSON *value)
{
	const cJSON *child;
	fputc(cJSON_IsArray(value) ? '[' : '{', out);
	cJSON_ArrayForEach(child, value)
	{
		if (child->string)
			fprintf(out, "%s: ", child->string);
		yaml_scalar(out, child);
		fputs(child->next ? ", " : "", out);
	}
	fputc(cJSON_IsArray(value) ? ']' : '}', out);
}

/* Writes a list or map from the cursor on; its lines after the first begin at this column. */
static void yaml_block(FILE *out, const cJSON *value, int column)
{
	const cJSON *child;
	cJSON_ArrayForEach(child, value)
	{
		if (child != value->child)
			fprintf(out, "%*s", column, "");
		if (cJSON_IsArray(value))
			fputs("- ", out);
		else
			fprintf(out, "%s:", child->string);
		bool in_map = cJSON_IsObject(value);
		if (yaml_is_scalar(child) || yaml_is_flat(child)) {
			fputs(in_map ? " " : "", out);
			if (yaml_is_scalar(child))
				yaml_scalar(out, child);
			else
				yaml_flow(out, child);
			fputc('\n', out);
			continue;
		}
		if (in_map) /* a list may stand in its parent's column */
			fprintf(out, "\n%*s", cJSON_IsArray(child) ? column : column + 2, "");
		yaml_block(out, child, in_map && cJSON_IsArray(child) ? column : column + 2);
	}
}

static char *tree_text(cJSON *tree, bool as_yaml)
{
	char *text = NULL;
	size_t size = 0;

	if (as_yaml) {
		FILE *out = open_memstream(&text, &size);
		yaml_block(out, tree, 0);
		fclose(out);
	} else {
		text = cJSON_Print(tree);
	}
	cJSON_Delete(tree);
	return text;
}

static char *fabric_text(const struct fabric *fabric, bool as_yaml)
{
	return tree_text(fabric_tree(fabric), as_yaml);
}

static char *jobs_text(const struct instance *instance, bool as_yaml)
{
	return tree_text(jobs_tree(instance), as_yaml);
}

#endif
