/* SPDX-License-Identifier: Apache-2.0 */
#include "replay.h"

#include <string.h>

const uint32_t replay_marks[MARKS] = {50, 80};

static bool any_fits(const struct replay *replay, uint32_t shape)
{
	const struct workload *workload = replay->workload;
	for (uint32_t i = 0; i < workload->nodes; i++)
		if (shape_fits(&workload->shape[shape], &replay->left[i], workload->node[i].model))
			return true;
	return false;
}

static void give(struct replay *replay, uint32_t node, const struct amount *asks)
{
	const struct amount *has = &replay->workload->node[node].has;
	if ((uint64_t)asks->cpu_milli * has->gpus > (uint64_t)has->cpu_milli * asks->gpus)
		replay->gpus_hungry += asks->gpus;
	replay->left[node].cpu_milli -= asks->cpu_milli;
	replay->left[node].memory_mib -= asks->memory_mib;
	replay->left[node].gpus -= asks->gpus;
	for (uint32_t i = 0; i < MARKS; i++) {
		uint32_t mark = replay->workload->gpus * replay_marks[i] / 100;
		if (replay->gpus_given < mark && replay->gpus_given + asks->gpus >= mark)
			for (uint32_t at = 0; at < replay->workload->nodes; at++)
				replay->free_at[i][at] = replay->left[at].gpus;
	}
	replay->gpus_given += asks->gpus;
	replay->placed++;
}

bool replay_run(struct replay *replay, const struct workload *workload, picker *pick, void *context)
{
	bool over[OPENB_SHAPES_MAX] = {false}; /* found no node once: never will, because pods never end */
	uint64_t asked = 0;
	memset(replay, 0, sizeof *replay);
	replay->workload = workload;
	for (uint32_t i = 0; i < workload->nodes; i++)
		replay->left[i] = workload->node[i].has;
	for (bool some = true; some; replay->passes++) {
		some = false;
		for (uint32_t i = 0; i < workload->pods; i++) {
			uint32_t shape = workload->pod[i];
			const struct shape *wanted = &workload->shape[shape];
			uint32_t node = over[shape] ? NO_NODE : pick(context, replay, shape);
			if (node == NO_NODE && !over[shape] && any_fits(replay, shape))
				return false;
			if (node != NO_NODE && (node >= workload->nodes ||
						!shape_fits(wanted, &replay->left[node], workload->node[node].model)))
				return false;
			bool before = asked < workload->gpus;
			asked += wanted->asks.gpus;
			if (node != NO_NODE)
				give(replay, node, &wanted->asks);
			if (before && asked >= workload->gpus)
				replay->given_at_full = replay->gpus_given;
			over[shape] |= node == NO_NODE;
			some |= node != NO_NODE;
		}
	}
	return true;
}

struct stranded replay_stranded(const struct replay *replay)
{
	const struct workload *workload = replay->workload;
	struct stranded stranded = {0, 0, 0};
	for (uint32_t i = 0; i < workload->nodes; i++) {
		struct amount more_cpu = replay->left[i], more_memory = replay->left[i];
		bool cpu_helps = false, memory_helps = false;
		more_cpu.cpu_milli = more_memory.memory_mib = UINT32_MAX;
		for (uint32_t shape = 0; shape < workload->shapes; shape++) {
			cpu_helps |= shape_fits(&workload->shape[shape], &more_cpu, workload->node[i].model);
			memory_helps |= shape_fits(&workload->shape[shape], &more_memory, workload->node[i].model);
		}
		if (cpu_helps)
			stranded.by_cpu += replay->left[i].gpus;
		else if (memory_helps)
			stranded.by_memory += replay->left[i].gpus;
		else
			stranded.by_both += replay->left[i].gpus;
	}
	return stranded;
}
