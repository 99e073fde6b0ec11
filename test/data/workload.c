/* SPDX-License-Identifier: Apache-2.0 */
#include "workload.h"

#include "csv.h"
#include "tally.h"

#include <stdio.h>
#include <string.h>

enum { NODE_NAME, NODE_CPU, NODE_MEMORY, NODE_GPUS, NODE_MODEL };
enum { POD_NAME, POD_CPU, POD_MEMORY, POD_GPUS, POD_MILLI, POD_SPEC };

#define WHOLE_GPU 1000u

static uint32_t model_find(struct workload *workload, const struct csv *csv, const char *name, size_t len)
{
	for (uint32_t i = 0; i < workload->models; i++)
		if (strlen(workload->model[i]) == len && strncmp(workload->model[i], name, len) == 0)
			return i;
	if (workload->models == OPENB_MODELS_MAX || len >= sizeof workload->model[0])
		data_refuse("%s:%u: has too many models, or one with a long name", csv->path, csv->line);
	memcpy(workload->model[workload->models], name, len);
	return workload->models++;
}

static void nodes_read(struct workload *workload, const char *path)
{
	struct csv csv;
	csv_open(&csv, path, "sn,cpu_milli,memory_mib,gpu,model");
	while (csv_row(&csv)) {
		if (workload->nodes == OPENB_NODES_MAX || strlen(csv.field[NODE_NAME]) >= sizeof workload->node[0].name)
			data_refuse("%s:%u: has too many nodes, or one with a long name", path, csv.line);
		struct openb_node *node = &workload->node[workload->nodes++];
		strcpy(node->name, csv.field[NODE_NAME]);
		node->has = (struct amount){csv_number(&csv, NODE_CPU), csv_number(&csv, NODE_MEMORY),
					    csv_number(&csv, NODE_GPUS)};
		node->model = model_find(workload, &csv, csv.field[NODE_MODEL], strlen(csv.field[NODE_MODEL]));
		workload->gpus += node->has.gpus;
	}
	csv_close(&csv);
}

/* "V100M16|V100M32": the models that a pod accepts; nothing: all. */
static uint32_t models_read(struct workload *workload, const struct csv *csv)
{
	const char *at = csv->count > POD_SPEC ? csv->field[POD_SPEC] : "";
	uint32_t models = *at == 0 ? UINT32_MAX : 0;
	while (*at != 0) {
		size_t len = strcspn(at, "|");
		models |= 1u << model_find(workload, csv, at, len);
		at += len + (at[len] == '|');
	}
	return models;
}

static uint32_t shape_find(struct workload *workload, const struct csv *csv, const struct shape *wanted)
{
	uint32_t i = 0;
	while (i < workload->shapes && (workload->shape[i].models != wanted->models ||
					memcmp(&workload->shape[i].asks, &wanted->asks, sizeof wanted->asks) != 0))
		i++;
	if (i == OPENB_SHAPES_MAX)
		data_refuse("%s:%u: has more than %u kinds of pods", csv->path, csv->line, OPENB_SHAPES_MAX);
	if (i == workload->shapes)
		workload->shape[workload->shapes++] = *wanted;
	return i;
}

static void pods_read(struct workload *workload, const char *path)
{
	struct csv csv;
	csv_open(&csv, path, "name,cpu_milli,memory_mib,num_gpu,gpu_milli");
	while (csv_row(&csv)) {
		struct shape wanted = {
			.asks = {csv_number(&csv, POD_CPU), csv_number(&csv, POD_MEMORY), csv_number(&csv, POD_GPUS)}};
		if (wanted.asks.gpus == 0 || csv_number(&csv, POD_MILLI) != WHOLE_GPU) {
			workload->left_out++;
			continue;
		}
		if (workload->pods == OPENB_PODS_MAX)
			data_refuse("%s: has more than %u pods", path, OPENB_PODS_MAX);
		wanted.models = models_read(workload, &csv);
		uint32_t shape = shape_find(workload, &csv, &wanted);
		workload->shape[shape].pods++;
		workload->pod[workload->pods++] = shape;
		workload->gpus_asked += wanted.asks.gpus;
	}
	csv_close(&csv);
}

void workload_read(struct workload *workload, const char *nodes_path, const char *pods_path)
{
	memset(workload, 0, sizeof *workload);
	nodes_read(workload, nodes_path);
	pods_read(workload, pods_path);
}

bool shape_fits(const struct shape *shape, const struct amount *left, uint32_t model)
{
	return shape->asks.gpus <= left->gpus && shape->asks.cpu_milli <= left->cpu_milli &&
	       shape->asks.memory_mib <= left->memory_mib && (shape->models >> model & 1) != 0;
}
