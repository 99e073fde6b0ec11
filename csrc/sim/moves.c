/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/moves.h"

#include "sim/summary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- what fails ------------------------------------------------------------------------------------------------ */

static bool is_called(const char *name, const char *text, size_t len)
{
	return strlen(name) == len && memcmp(name, text, len) == 0;
}

static uint32_t node_named(const struct fabricfile *fabric, const char *name, size_t len)
{
	for (uint32_t slot = 0; slot < fabric->node_count; slot++)
		if (is_called(fabric->nodes[slot].name, name, len))
			return slot;
	return FROND_NONE;
}

static uint32_t leaf_named(const struct fabricfile *fabric, const char *name, size_t len)
{
	for (uint32_t leaf = 0; leaf < fabric->leaf_count; leaf++)
		if (is_called(fabric->leaves[leaf].name, name, len))
			return leaf;
	return FROND_NONE;
}

static uint32_t spine_named(const struct fabricfile *fabric, const char *name, size_t len)
{
	for (uint32_t spine = 0; spine < fabric->spine_count; spine++)
		if (is_called(fabric->spines[spine].name, name, len))
			return spine;
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

static int32_t gpu_fail(const char *text, size_t len, const struct fabricfile *fabric, uint32_t slot,
			struct failure *failures, struct complaint *complaint)
{
	const struct fabric_node *node = &fabric->nodes[slot];
	uint32_t gpu = gpu_named(text, len);
	if (gpu >= node->gpus)
		return complain(complaint, 1, "\"%s\" is not a GPU of %s, which has %" PRIu32 "; write %s/gpu-0",
				shown(text + 1, len - 1).text, node->name, node->gpus, node->name);
	failures[slot].gpu_mask |= 1u << gpu;
	return FROND_OK;
}

/* A node, a GPU of a node, a leaf or a spine. */
static int32_t failure_read(const char *text, size_t len, const struct fabricfile *fabric, struct failure *failures,
			    struct complaint *complaint)
{
	const char *slash = memchr(text, '/', len);
	size_t name = slash == NULL ? len : (size_t)(slash - text);
	uint32_t slot = node_named(fabric, text, name);
	if (slot != FROND_NONE && slash != NULL)
		return gpu_fail(slash, len - name, fabric, slot, failures, complaint);
	uint32_t leaf = slash == NULL ? leaf_named(fabric, text, name) : FROND_NONE;
	uint32_t spine = slash == NULL ? spine_named(fabric, text, name) : FROND_NONE;
	uint32_t found = (slot != FROND_NONE) + (leaf != FROND_NONE) + (spine != FROND_NONE);
	if (found == 0)
		return complain(complaint, 1,
				"\"%s\" is not a node%s of the fabric; write node-3, node-3/gpu-2, leaf-1 or spine-2, "
				"with commas between",
				shown(text, name).text, slash == NULL ? ", leaf or spine" : "");
	if (found > 1)
		return complain(complaint, 1, "\"%s\" is the name of a %s and of a %s; name the nodes that fail",
				shown(text, name).text, slot != FROND_NONE ? "node" : "leaf",
				leaf != FROND_NONE && slot != FROND_NONE ? "leaf" : "spine");
	for (uint32_t i = 0; i < fabric->node_count; i++) {
		uint32_t at = fabric->nodes[i].leaf;
		failures[i].down |= i == slot || at == leaf || fabric->leaves[at].spine == spine;
	}
	return FROND_OK;
}

int32_t failures_read(const char *text, const struct fabricfile *fabric, struct failure **out,
		      struct complaint *complaint)
{
	*out = calloc((uint64_t)fabric->node_count + 1, sizeof(**out));
	if (*out == NULL)
		return complain(complaint, 1, "out of memory");
	for (;; text++) {
		size_t len = strcspn(text, ",");
		int32_t code = failure_read(text, len, fabric, *out, complaint);
		if (code != FROND_OK) {
			free(*out);
			*out = NULL;
			return code;
		}
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
				 sim->placed[index], text, sizeof(text) - 1, &len);
	free(question.in);
	if (code != FROND_OK)
		return sim_broken(sim, code, "recover", name);
	text[len] = '\0';
	struct warnings warnings = warnings_of(sim->planning->fabric, sim->planning->jobs,
					       &sim->planning->jobs->list[index], asked->moves.flags);
	if (asked->moves.outcome != FROND_PLACED)
		report_unrepaired(report, name, text);
	if (asked->moves.outcome != FROND_PLACED || asked->moves.count > 0)
		report_warned(report, name, &warnings);
	report_list(sim, report, asked);
	*lower_bound += asked->moves.lower_bound;
	for (uint32_t i = 0; i < asked->moves.count && code == FROND_OK; i++)
		code = sim_move(sim, index, &asked->list[i]);
	return code;
}

int32_t recover_run(const struct planning *planning, const struct failure *failures, struct report *report,
		    struct complaint *complaint)
{
	struct sim sim;
	struct asked_moves asked = {.list = NULL};
	uint32_t lower_bound = 0;
	int32_t code = sim_open(&sim, planning, complaint);
	if (code == FROND_OK)
		code = sim_jobs_but(&sim, FROND_NONE);
	for (uint32_t slot = 0; slot < planning->fabric->node_count && code == FROND_OK; slot++)
		if (failures[slot].down || failures[slot].gpu_mask != 0)
			code = sim_fail(&sim, slot, failures[slot].down, failures[slot].gpu_mask);
	if (code == FROND_OK && (asked.list = calloc(sim_members(&sim), sizeof(*asked.list))) == NULL)
		code = complain(complaint, 0, "out of memory");
	if (code == FROND_OK) {
		code = report_moves_begin(report, complaint);
		for (uint32_t i = 0; i < planning->jobs->count && code == FROND_OK; i++)
			if (sim.placed[i] > 0)
				code = repair(&sim, i, report, &asked, &lower_bound);
		report_moves_end(report, lower_bound);
	}
	if (code == FROND_OK)
		code = summary_write(&sim, report);
	free(asked.list);
	sim_close(&sim);
	return code;
}

/* What the engine proposes for the job, and why it proposes nothing. */
static int32_t defrag_report(struct sim *sim, uint32_t job, const struct asked_moves *asked, const char *reason,
			     struct report *report)
{
	const struct planning *planning = sim->planning;
	const char *name = planning->jobs->list[job].name;
	struct warnings warnings =
		warnings_of(planning->fabric, planning->jobs, &planning->jobs->list[job], asked->moves.flags);
	int32_t code = report_moves_begin(report, sim->complaint);
	if (code == FROND_OK) {
		report_list(sim, report, asked);
		report_warned(report, name, &warnings);
		if (asked->moves.outcome != FROND_PLACED)
			report_unrepaired(report, name, reason);
	}
	report_moves_end(report, asked->moves.lower_bound);
	return code == FROND_OK ? summary_write(sim, report) : code;
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
		code = sim.abi->defrag(sim.engine, &question.request, sim.members, question.pairs, question.in,
				       question.in_len, question.room, question.room_count, &asked.moves, asked.list,
				       cap, text, sizeof(text) - 1, &len);
		if (code != FROND_OK)
			sim_broken(&sim, code, "defrag", planning->jobs->list[job].name);
	}
	if (code == FROND_OK) {
		text[len] = '\0';
		code = defrag_report(&sim, job, &asked, text, report);
	}
	free(question.in);
	free(asked.list);
	sim_close(&sim);
	return code;
}
