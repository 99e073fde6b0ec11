/* SPDX-License-Identifier: Apache-2.0 */
#include "host.h"

#include <stdio.h>
#include <stdlib.h>

static char *model_fabric(const struct workload *workload)
{
	size_t cap = 256 + (size_t)workload->models * 64 + (size_t)workload->nodes * 40;
	char *text = malloc(cap);
	if (text == NULL)
		abort();
	int at = snprintf(text, cap,
			  "apiVersion: topology.scheduler/v1alpha1\nkind: Fabric\nspines:\n- name: all\n  leaves:\n");
	for (uint32_t model = 0; model < workload->models; model++) {
		uint32_t nodes = 0;
		at += snprintf(text + at, cap - (size_t)at, "  - {name: %s, nodes: [", workload->model[model]);
		for (uint32_t i = 0; i < workload->nodes; i++)
			if (workload->node[i].model == model)
				at += snprintf(text + at, cap - (size_t)at, "%s%s", nodes++ > 0 ? ", " : "",
					       workload->node[i].name);
		at += snprintf(text + at, cap - (size_t)at, "]}\n");
	}
	return text;
}

void host_start(struct host *host, const struct workload *workload, const struct host_choice *choice)
{
	char *fabric = choice->leaf_per_model ? model_fabric(workload) : NULL;
	host->choice = *choice;
	gradient_start(&host->waste, waste_expected);
	driver_start(&host->driver, workload->nodes, workload->gpus, fabric != NULL ? fabric : "");
	for (uint32_t i = 0; i < workload->nodes; i++)
		driver_node(&host->driver, i, workload->node[i].name, workload->node[i].has.gpus);
	free(fabric);
}

void host_stop(struct host *host)
{
	driver_check(&host->driver);
	driver_stop(&host->driver);
}

/* ---- what the host knows ---------------------------------------------------------------------------------------- */

static uint32_t places_by(uint32_t left, uint32_t asks, uint32_t most)
{
	return asks == 0 || left / asks > most ? most : left / asks;
}

uint64_t waste_expected(const struct workload *workload, const struct amount *left, uint32_t model)
{
	uint64_t kept = 0;
	for (uint32_t i = 0; i < workload->shapes; i++) {
		const struct shape *shape = &workload->shape[i];
		uint32_t by_gpus = left->gpus / shape->asks.gpus, by_all = by_gpus;
		by_all = places_by(left->cpu_milli, shape->asks.cpu_milli, by_all);
		by_all = places_by(left->memory_mib, shape->asks.memory_mib, by_all);
		if ((shape->models >> model & 1) == 0)
			by_all = 0;
		kept += (uint64_t)shape->pods * (by_gpus - by_all) * shape->asks.gpus;
	}
	return fragments_fgd(workload, left, model) + kept;
}

static void open_nodes(struct host *host, const struct replay *replay, uint32_t shape)
{
	const struct workload *workload = replay->workload;
	const struct shape *wanted = &workload->shape[shape];
	int64_t least = INT64_MAX;
	for (uint32_t i = 0; i < workload->nodes; i++) {
		const struct openb_node *node = &workload->node[i];
		host->room[i].ever = shape_fits(wanted, &node->has, node->model);
		host->room[i].today = shape_fits(wanted, &replay->left[i], node->model);
		if (!host->choice.careful || host->room[i].today == 0)
			continue;
		int64_t grows = gradient_at(&host->waste, replay, i, shape);
		least = grows < least ? grows : least;
	}
	for (uint32_t i = 0; i < workload->nodes && host->choice.careful; i++)
		if (host->room[i].today > 0 && gradient_at(&host->waste, replay, i, shape) > least)
			host->room[i].today = 0;
}

uint32_t host_pick(void *context, const struct replay *replay, uint32_t shape)
{
	struct host *host = context;
	struct gang gang = {.members = 1,
			    .gpus = replay->workload->shape[shape].asks.gpus,
			    .strategy = host->choice.strategy,
			    .room = host->room,
			    .only_slot = FROND_NONE};
	open_nodes(host, replay, shape);
	if (driver_order(&host->driver, &gang, host->position) != FROND_PLACED)
		return NO_NODE;
	for (uint32_t i = 0; i < replay->workload->nodes; i++)
		if (host->position[i] == 0)
			gang.only_slot = i;
	if (driver_plan(&host->driver, &gang) != FROND_PLACED) /* which GPUs */
		return NO_NODE;
	driver_reserve(&host->driver);
	return gang.only_slot;
}
