/* SPDX-License-Identifier: Apache-2.0 */
#include "packers.h"

#include <string.h>

static struct amount minus(const struct amount *left, const struct amount *asks)
{
	return (struct amount){left->cpu_milli - asks->cpu_milli, left->memory_mib - asks->memory_mib,
			       left->gpus - asks->gpus};
}

static struct amount largest(const struct workload *workload)
{
	struct amount most = {0, 0, 0};
	for (uint32_t i = 0; i < workload->nodes; i++) {
		const struct amount *has = &workload->node[i].has;
		most.cpu_milli = has->cpu_milli > most.cpu_milli ? has->cpu_milli : most.cpu_milli;
		most.gpus = has->gpus > most.gpus ? has->gpus : most.gpus;
	}
	return most;
}

uint32_t best_fit_pick(void *context, const struct replay *replay, uint32_t shape)
{
	(void)context;
	const struct workload *workload = replay->workload;
	const struct shape *wanted = &workload->shape[shape];
	struct amount most = largest(workload);
	uint64_t best = UINT64_MAX;
	uint32_t node = NO_NODE;
	for (uint32_t i = 0; i < workload->nodes; i++) {
		if (!shape_fits(wanted, &replay->left[i], workload->node[i].model))
			continue;
		struct amount after = minus(&replay->left[i], &wanted->asks);
		/* both terms times the product of the two largest: integers, nothing rounded */
		uint64_t stays = (uint64_t)after.cpu_milli * most.gpus + (uint64_t)after.gpus * most.cpu_milli;
		if (stays < best) {
			best = stays;
			node = i;
		}
	}
	return node;
}

/* ---- gradients -------------------------------------------------------------------------------------------------- */

uint64_t fragments_fgd(const struct workload *workload, const struct amount *left, uint32_t model)
{
	uint64_t fragments = 0;
	for (uint32_t i = 0; i < workload->shapes; i++)
		if (!shape_fits(&workload->shape[i], left, model))
			fragments += (uint64_t)workload->shape[i].pods * left->gpus;
	return fragments;
}

void gradient_start(struct gradient *gradient, measure *of)
{
	memset(gradient, 0, sizeof *gradient);
	gradient->of = of;
}

int64_t gradient_at(struct gradient *gradient, const struct replay *replay, uint32_t node, uint32_t shape)
{
	const struct workload *workload = replay->workload;
	const struct amount *left = &replay->left[node];
	uint32_t model = workload->node[node].model;
	if (memcmp(&gradient->seen[node], left, sizeof *left) != 0) {
		gradient->seen[node] = *left;
		gradient->now[node] = gradient->of(workload, left, model);
		memset(gradient->known[node], 0, sizeof gradient->known[node]);
	}
	if (!gradient->known[node][shape]) {
		struct amount after = minus(left, &workload->shape[shape].asks);
		uint64_t then = gradient->of(workload, &after, model);
		gradient->grows[node][shape] = (int64_t)then - (int64_t)gradient->now[node];
		gradient->known[node][shape] = true;
	}
	return gradient->grows[node][shape];
}

uint32_t gradient_pick(void *context, const struct replay *replay, uint32_t shape)
{
	const struct workload *workload = replay->workload;
	int64_t best = INT64_MAX;
	uint32_t node = NO_NODE;
	for (uint32_t i = 0; i < workload->nodes; i++) {
		if (!shape_fits(&workload->shape[shape], &replay->left[i], workload->node[i].model))
			continue;
		int64_t grows = gradient_at(context, replay, i, shape);
		if (grows < best) {
			best = grows;
			node = i;
		}
	}
	return node;
}
