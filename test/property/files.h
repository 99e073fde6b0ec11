/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.h - part of oracle.c: writes an instance as the files of spec 11.
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

/* The machine of spec 11's own example. */
static cJSON *own_models(void)
{
	return cJSON_Parse("[{\"name\": \"box-4\", \"gpus\": 4, \"numa\": [0, 0, 1, 1],"
			   " \"links\": [[0,50,25,0],[50,0,0,25],[25,0,0,50],[0,25,50,0]]}]");
}

static bool uses_own_model(const struct fabric *fabric)
{
	bool uses = fabric->default_model && strcmp(fabric->default_model, "box-4") == 0;
	for (int n = 0; n < fabric->node_count; n++)
		uses = uses || (fabric->nodes[n].model && strcmp(fabric->nodes[n].model, "box-4") == 0);
	return uses;
}

/* Only what differs from the defaults. NULL when nothing does. */
static cJSON *node_exception(const struct fabric *fabric, const struct node *node)
{
	cJSON *entry = cJSON_CreateObject();
	cJSON_AddStringToObject(entry, "name", node->name);
	/* Whether a model of its own brings its number of GPUs, or the defaults' number holds, is left open: say it. */
	if (node->gpus != fabric->default_gpus || node->model)
		cJSON_AddNumberToObject(entry, "gpus", node->gpus);
	if (node->model)
		cJSON_AddStringToObject(entry, "model", node->model);
	if (node->used_mask)
		cJSON_AddItemToObject(entry, "usedGpus", mask_list(node->used_mask));
	if (node->unhealthy_mask)
		cJSON_AddItemToObject(entry, "unhealthyGpus", mask_list(node->unhealthy_mask));
	if (node->cordoned)
		cJSON_AddBoolToObject(entry, "cordoned", true);
	if (node->uplink_gbps != fabric->default_uplink_gbps)
		cJSON_AddNumberToObject(entry, "uplinkGbps", node->uplink_gbps);
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
		if (fabric->default_model)
			cJSON_AddStringToObject(defaults, "model", fabric->default_model);
		if (fabric->default_uplink_gbps > 0)
			cJSON_AddNumberToObject(defaults, "uplinkGbps", fabric->default_uplink_gbps);
	}
	cJSON_AddItemToObject(tree, "spines", fabric_spines(fabric));
	if (uses_own_model(fabric))
		cJSON_AddItemToObject(tree, "models", own_models());
	cJSON *exceptions = cJSON_CreateArray();
	for (int n = 0; n < fabric->node_count; n++) {
		cJSON *entry = node_exception(fabric, &fabric->nodes[n]);
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
	if (cJSON_GetArraySize(notes) > 0)
		cJSON_AddItemToObject(entry, "annotations", notes);
	else
		cJSON_Delete(notes);
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
		add_annotations(job, entry);
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
