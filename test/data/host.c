/* SPDX-License-Identifier: Apache-2.0 */
#include "host.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAF_NODES   16u
#define SPINE_LEAVES 16u
#define GANG_NODES   4u
#define GANG_GPUS    8u
#define FABRIC_BYTES (256u + OPENB_NODES_MAX * 64u)

struct text {
	char bytes[FABRIC_BYTES];
	size_t len;
};

static void __attribute__((format(printf, 2, 3))) say(struct text *text, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int len = vsnprintf(text->bytes + text->len, sizeof text->bytes - text->len, format, args);
	va_end(args);
	if (len < 0 || (size_t)len >= sizeof text->bytes - text->len)
		abort();
	text->len += (size_t)len;
}

static void say_models(struct text *text, const struct workload *workload)
{
	say(text, "- name: all\n  leaves:\n");
	for (uint32_t model = 0; model < workload->models; model++) {
		const char *comma = "";
		say(text, "  - {name: %s, nodes: [", workload->model[model]);
		for (uint32_t i = 0; i < workload->nodes; i++) {
			if (workload->node[i].model != model)
				continue;
			say(text, "%s%s", comma, workload->node[i].name);
			comma = ", ";
		}
		say(text, "]}\n");
	}
}

static void say_leaves(struct text *text, const struct workload *workload)
{
	for (uint32_t i = 0; i < workload->nodes; i++) {
		uint32_t leaf = i / LEAF_NODES;
		if (i % (LEAF_NODES * SPINE_LEAVES) == 0)
			say(text, "- name: spine-%u\n  leaves:\n", leaf / SPINE_LEAVES);
		if (i % LEAF_NODES == 0)
			say(text, "  - {name: leaf-%u, nodes: [", leaf);
		bool last = i % LEAF_NODES == LEAF_NODES - 1 || i == workload->nodes - 1;
		say(text, "%s%s", workload->node[i].name, last ? "]}\n" : ", ");
	}
}

static const char *fabric_text(enum host_fabric fabric, const struct workload *workload)
{
	static struct text text;
	text.len = 0;
	if (fabric == NO_TOPOLOGY)
		return "";
	say(&text, "apiVersion: topology.scheduler/v1alpha1\nkind: Fabric\nspines:\n");
	if (fabric == LEAF_PER_MODEL)
		say_models(&text, workload);
	else
		say_leaves(&text, workload);
	return text.bytes;
}

static void engine_start(struct driver *driver, const struct workload *workload, enum host_fabric fabric)
{
	driver_start(driver, workload->nodes, workload->gpus, fabric_text(fabric, workload));
	for (uint32_t i = 0; i < workload->nodes; i++)
		driver_node(driver, i, workload->node[i].name, workload->node[i].has.gpus);
}

void host_start(struct host *host, const struct workload *workload, const struct host_choice *choice)
{
	memset(host, 0, sizeof *host);
	host->choice = *choice;
	for (uint32_t i = 0; i < workload->shapes; i++)
		while (memcmp(&workload->shape[host->kind_of[i]].asks, &workload->shape[i].asks,
			      sizeof workload->shape[i].asks) != 0)
			host->kind_of[i]++;
	engine_start(&host->driver, workload, choice->fabric);
}

void host_stop(struct host *host)
{
	driver_check(&host->driver);
	driver_stop(&host->driver);
}

/* ---- gangs ------------------------------------------------------------------------------------------------------ */

uint32_t host_gangs(const struct workload *workload, const uint32_t *free)
{
	static struct driver driver;
	struct gang gang = {.members = GANG_NODES, .gpus = GANG_GPUS, .only_slot = FROND_NONE};
	uint32_t count = 0;
	engine_start(&driver, workload, LEAVES_OF_16);
	for (uint32_t i = 0; i < workload->nodes; i++)
		if (workload->node[i].has.gpus > free[i])
			driver_occupy(&driver, i, workload->node[i].has.gpus - free[i]);
	for (; driver_plan(&driver, &gang) == FROND_PLACED; count++)
		driver_reserve(&driver);
	driver_check(&driver);
	driver_stop(&driver);
	return count;
}

uint32_t leaf_gangs(const struct workload *workload, const uint32_t *free)
{
	uint32_t count = 0, nodes = 0;
	for (uint32_t i = 0; i < workload->nodes; i++) {
		nodes = (i % LEAF_NODES == 0 ? 0 : nodes) + (free[i] == GANG_GPUS);
		count += free[i] == GANG_GPUS && nodes % GANG_NODES == 0;
	}
	return count;
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
