/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/moves.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- what fails ------------------------------------------------------------------------------------------------ */

static uint32_t node_named(const struct fabricfile *fabric, const char *name, size_t len)
{
	for (uint32_t slot = 0; slot < fabric->node_count; slot++)
		if (strlen(fabric->nodes[slot].name) == len && memcmp(fabric->nodes[slot].name, name, len) == 0)
			return slot;
	return FROND_NONE;
}

/* The GPU of "/gpu-INDEX"; FROND_NONE when it is something else. */
static uint32_t gpu_named(const char *text, size_t len)
{
	uint32_t index = 0;
	if (len < 6 || len > 7 || memcmp(text, "/gpu-", 5) != 0)
		return FROND_NONE;
	for (size_t i = 5; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return FROND_NONE;
		index = index * 10 + (uint32_t)(text[i] - '0');
	}
	return index;
}

static int32_t failure_read(const char *text, size_t len, const struct fabricfile *fabric, struct failure *out,
			    struct complaint *complaint)
{
	const char *slash = memchr(text, '/', len);
	size_t name = slash == NULL ? len : (size_t)(slash - text);
	uint32_t slot = node_named(fabric, text, name);
	if (slot == FROND_NONE)
		return complain(complaint, 1,
				"\"%s\" is not a node of the fabric; write node-3 or node-3/gpu-2, with commas between",
				shown(text, name).text);
	*out = (struct failure){.slot = slot, .down = slash == NULL};
	if (slash == NULL)
		return FROND_OK;
	uint32_t gpu = gpu_named(slash, len - name);
	if (gpu >= fabric->nodes[slot].gpus)
		return complain(complaint, 1, "\"%s\" is not a GPU of %s, which has %" PRIu32 "; write %s/gpu-0",
				shown(slash + 1, len - name - 1).text, fabric->nodes[slot].name,
				fabric->nodes[slot].gpus, fabric->nodes[slot].name);
	out->gpu_mask = 1u << gpu;
	return FROND_OK;
}

int32_t failures_read(const char *text, const struct fabricfile *fabric, struct failures *out,
		      struct complaint *complaint)
{
	uint64_t entries = 1;
	for (const char *at = text; *at != '\0'; at++)
		entries += *at == ',';
	*out = (struct failures){.list = calloc(entries, sizeof(*out->list))};
	if (out->list == NULL)
		return complain(complaint, 1, "out of memory");
	for (;; text++) {
		size_t len = strcspn(text, ",");
		struct failure failure = {0};
		int32_t code = failure_read(text, len, fabric, &failure, complaint);
		if (code != FROND_OK) {
			free(out->list);
			*out = (struct failures){.list = NULL};
			return code;
		}
		uint32_t i = 0;
		while (i < out->count && out->list[i].slot != failure.slot)
			i++;
		out->count += i == out->count;
		out->list[i].slot = failure.slot;
		out->list[i].down |= failure.down;
		out->list[i].gpu_mask |= failure.gpu_mask;
		text += len;
		if (*text == '\0')
			return FROND_OK;
	}
}

/* ---- moves ----------------------------------------------------------------------------------------------------- */

struct asked_moves { /* what the engine proposes */
	struct frond_moves moves;
	struct frond_move *list; /* malloc'd */
};

static void report_list(const struct sim *sim, struct report *report, const struct asked_moves *asked)
{
	const struct jobs *jobs = sim->planning->jobs;
	for (uint32_t i = 0; i < asked->moves.count; i++) {
		const struct frond_move *move = &asked->list[i];
		report_move(report, jobs->list[member_job(move->pod)].name, move->rank, move->from, move->to);
	}
}

/* One gang after the other, in the order of the file; each sees what the earlier ones took. */
static int32_t repair(struct sim *sim, uint32_t index, struct report *report, struct asked_moves *asked,
		      uint32_t *lower_bound)
{
	const char *name = sim->planning->jobs->list[index].name;
	struct frond_key gang = gang_key(index);
	struct question question;
	char text[FROND_TEXT_MAX];
	uint32_t len = 0;
	int32_t code = question_make(sim, index, &question);
	if (code != FROND_OK)
		return code;
	code = sim->abi->recover(sim->engine, &gang, question.room, question.room_count, &asked->moves, asked->list,
				 sim->placed[index], text, sizeof(text), &len);
	free(question.in);
	if (code != FROND_OK)
		return sim_broken(sim, code, "recover", name);
	if (asked->moves.outcome != FROND_PLACED)
		report_note(report, name, text, len);
	report_list(sim, report, asked);
	*lower_bound += asked->moves.lower_bound;
	for (uint32_t i = 0; i < asked->moves.count && code == FROND_OK; i++)
		code = sim_move(sim, index, &asked->list[i]);
	return code;
}

int32_t recover_run(const struct planning *planning, const struct failures *failures, struct report *report,
		    struct complaint *complaint)
{
	struct sim sim;
	struct asked_moves asked = {.list = NULL};
	uint32_t lower_bound = 0;
	int32_t code = sim_open(&sim, planning, complaint);
	if (code == FROND_OK)
		code = sim_jobs_but(&sim, FROND_NONE);
	for (uint32_t i = 0; i < failures->count && code == FROND_OK; i++)
		code = sim_fail(&sim, failures->list[i].slot, failures->list[i].down, failures->list[i].gpu_mask);
	if (code == FROND_OK && (asked.list = calloc(sim_members(&sim), sizeof(*asked.list))) == NULL)
		code = complain(complaint, 0, "out of memory");
	report_moves_begin(report);
	for (uint32_t i = 0; i < planning->jobs->count && code == FROND_OK; i++)
		if (sim.placed[i] > 0)
			code = repair(&sim, i, report, &asked, &lower_bound);
	report_moves_end(report, lower_bound);
	free(asked.list);
	sim_close(&sim);
	return code;
}

int32_t defrag_run(const struct planning *planning, uint32_t job, struct report *report, struct complaint *complaint)
{
	struct sim sim;
	struct question question = {.in = NULL};
	struct asked_moves asked = {.list = NULL};
	char text[FROND_TEXT_MAX];
	uint32_t len = 0, cap = 0;
	int32_t code = sim_open(&sim, planning, complaint);
	if (code == FROND_OK)
		code = sim_jobs_but(&sim, job);
	if (code == FROND_OK)
		code = question_make(&sim, job, &question);
	if (code == FROND_OK) {
		cap = sim_members(&sim);
		asked.list = calloc(cap, sizeof(*asked.list));
		code = asked.list == NULL ? complain(complaint, 0, "out of memory") : FROND_OK;
	}
	if (code == FROND_OK) {
		const char *name = planning->jobs->list[job].name;
		code = sim.abi->defrag(sim.engine, &question.request, sim.members, question.pairs, question.in,
				       question.in_len, question.room, question.room_count, &asked.moves, asked.list,
				       cap, text, sizeof(text), &len);
		if (code != FROND_OK)
			sim_broken(&sim, code, "defrag", name);
		else if (asked.moves.count == 0)
			report_note(report, name, text, len);
	}
	report_moves_begin(report);
	if (code == FROND_OK)
		report_list(&sim, report, &asked);
	report_moves_end(report, asked.moves.lower_bound);
	free(question.in);
	free(asked.list);
	sim_close(&sim);
	return code;
}
