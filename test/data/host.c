/* SPDX-License-Identifier: Apache-2.0 */
#include "host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	memset(host, 0, sizeof *host);
	host->choice = *choice;
	for (uint32_t i = 0; i < workload->shapes; i++)
		while (memcmp(&workload->shape[host->kind_of[i]].asks, &workload->shape[i].asks,
			      sizeof workload->shape[i].asks) != 0)
			host->kind_of[i]++;
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

/* Most pods first; then what asks for less. */
static int compare_kinds(const void *a, const void *b)
{
	const struct frond_kind *x = a, *y = b;
	if (x->pods != y->pods)
		return x->pods > y->pods ? -1 : 1;
	if (x->gpus != y->gpus)
		return x->gpus < y->gpus ? -1 : 1;
	if (x->cpu_milli != y->cpu_milli)
		return x->cpu_milli < y->cpu_milli ? -1 : 1;
	return (x->memory_mib > y->memory_mib) - (x->memory_mib < y->memory_mib);
}

/* The most frequent kinds of the pods placed so far. */
static uint32_t learned(struct host *host, const struct workload *workload)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < workload->shapes; i++) {
		const struct amount *asks = &workload->shape[i].asks;
		if (host->placed[i] > 0)
			host->kinds[count++] =
				(struct frond_kind){asks->cpu_milli, asks->memory_mib, asks->gpus, host->placed[i]};
	}
	qsort(host->kinds, count, sizeof *host->kinds, compare_kinds);
	return count < FROND_KINDS_MAX ? count : FROND_KINDS_MAX;
}

/* Nodes on which CPU, memory or the model decide; returns how many. */
static uint32_t look(struct host *host, const struct replay *replay, uint32_t shape)
{
	uint32_t count = 0;
	const struct workload *workload = replay->workload;
	const struct shape *wanted = &workload->shape[shape];
	for (uint32_t i = 0; i < workload->nodes; i++) {
		const struct openb_node *node = &workload->node[i];
		const struct amount *left = &replay->left[i];
		bool ever = shape_fits(wanted, &node->has, node->model), today = shape_fits(wanted, left, node->model);
		if (!ever || !today)
			host->room[count++] = (struct frond_room){.slot = i, .today = today, .ever = ever};
		host->left[i] = (struct frond_left){left->cpu_milli, left->memory_mib};
	}
	return count;
}

uint32_t host_pick(void *context, const struct replay *replay, uint32_t shape)
{
	struct host *host = context;
	const struct amount *asks = &replay->workload->shape[shape].asks;
	struct gang gang = {.members = 1,
			    .gpus = asks->gpus,
			    .strategy = host->choice.strategy,
			    .room = host->room,
			    .only_slot = FROND_NONE};
	struct thrift thrift = {.asks = {asks->cpu_milli, asks->memory_mib, learned(host, replay->workload), 0},
				.kinds = host->kinds,
				.left = host->left};
	gang.room_count = look(host, replay, shape);
	if (driver_order(&host->driver, &gang, host->choice.thrift ? &thrift : NULL, host->position) != FROND_PLACED)
		return NO_NODE;
	for (uint32_t i = 0; i < replay->workload->nodes; i++)
		if (host->position[i] == 0)
			gang.only_slot = i;
	if (driver_plan(&host->driver, &gang) != FROND_PLACED) /* which GPUs */
		return NO_NODE;
	driver_reserve(&host->driver);
	host->placed[host->kind_of[shape]]++;
	return gang.only_slot;
}
