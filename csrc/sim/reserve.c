/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/reserve.h"

#include "sim/summary.h"

#include <stdlib.h>

struct ends { /* malloc'd */
	struct frond_end *list;
	uint32_t count;
};

static int end_compare(const void *a, const void *b)
{
	const struct frond_end *x = a, *y = b;
	return (x->ends_in_ms > y->ends_in_ms) - (x->ends_in_ms < y->ends_in_ms);
}

/* Of every member that runs and whose job says when it ends. */
static int32_t ends_make(const struct sim *sim, struct ends *out, struct complaint *complaint)
{
	const struct jobs *jobs = sim->planning->jobs;
	*out = (struct ends){.list = calloc(sim_members(sim), sizeof(*out->list))};
	if (out->list == NULL)
		return complain(complaint, 0, "out of memory");
	for (uint32_t i = 0; i < jobs->count; i++)
		for (uint32_t rank = 0; rank < sim->placed[i] && jobs->list[i].ends_in_ms != JOB_NEVER_ENDS; rank++)
			out->list[out->count++] =
				(struct frond_end){.pod = member_key(i, rank), .ends_in_ms = jobs->list[i].ends_in_ms};
	qsort(out->list, out->count, sizeof(*out->list), end_compare);
	return FROND_OK;
}

static int32_t window_ask(struct sim *sim, uint32_t index, const struct question *question, const struct ends *ends,
			  uint32_t members, struct frond_window *out)
{
	struct frond_request request = question->request;
	uint32_t len = 0;
	request.members = members;
	int32_t code = sim->abi->window(sim->engine, &request, sim->members, question->pairs, question->in,
					question->in_len, question->room, question->room_count, ends->list, ends->count,
					NULL, out, sim->places, sim->reason, sizeof(sim->reason) - 1, &len);
	sim->reason[code == FROND_OK ? len : 0] = '\0';
	return code == FROND_OK ? code : sim_broken(sim, code, "window", sim->planning->jobs->list[index].name);
}

/* A gang starts with the minMember lowest ranks when these find room first, with all when they do not
 * (reference 3.5). */
static int32_t decide(struct sim *sim, uint32_t index, const struct question *question, const struct ends *ends,
		      struct frond_window *out, uint32_t *members)
{
	const struct job *job = &sim->planning->jobs->list[index];
	struct frond_window all;
	*members = job->members;
	int32_t code = window_ask(sim, index, question, ends, job->members, out);
	if (code != FROND_OK || job->min_member == job->members || out->start_ms == 0)
		return code;
	all = *out;
	*members = job->min_member;
	code = window_ask(sim, index, question, ends, job->min_member, out);
	if (code != FROND_OK || all.outcome != FROND_PLACED || out->start_ms < all.start_ms)
		return code;
	*members = job->members;
	return window_ask(sim, index, question, ends, job->members, out);
}

int32_t reserve_run(const struct planning *planning, uint32_t job, struct report *report, struct complaint *complaint)
{
	struct sim sim;
	struct question question = {.in = NULL};
	struct ends ends = {.list = NULL};
	struct frond_window window = {0};
	uint32_t members = 0;
	int32_t code = sim_open(&sim, planning, complaint);
	if (code == FROND_OK)
		code = sim_jobs_but(&sim, job);
	if (code == FROND_OK)
		code = question_make(&sim, job, &question);
	if (code == FROND_OK)
		code = ends_make(&sim, &ends, complaint);
	if (code == FROND_OK)
		code = decide(&sim, job, &question, &ends, &window, &members);
	if (code == FROND_OK) {
		const struct job *asked = &planning->jobs->list[job];
		struct warnings warnings = warnings_of(planning->fabric, planning->jobs, asked, window.plan.flags);
		report_window(report, &(struct answer_window){.name = asked->name,
							      .window = &window,
							      .places = sim.places,
							      .members = window.outcome == FROND_PLACED ? members : 0,
							      .reason = sim.reason,
							      .scratch = sim.scratch,
							      .warnings = &warnings});
	}
	if (code == FROND_OK)
		code = summary_write(&sim, report);
	free(question.in);
	free(ends.list);
	sim_close(&sim);
	return code;
}
