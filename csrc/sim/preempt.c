/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/preempt.h"

#include "sim/summary.h"

#include <stdlib.h>

struct asked_victims { /* what the engine proposes; cap entries each, malloc'd */
	struct frond_victims victims;
	struct frond_key *pods;
	const char **jobs;
	uint32_t *ranks;
	uint32_t cap;
};

static int32_t lists_make(struct asked_victims *asked, uint32_t cap, struct complaint *complaint)
{
	asked->cap = cap;
	asked->pods = calloc(cap, sizeof(*asked->pods));
	asked->jobs = calloc(cap, sizeof(*asked->jobs));
	asked->ranks = calloc(cap, sizeof(*asked->ranks));
	if (asked->pods == NULL || asked->jobs == NULL || asked->ranks == NULL)
		return complain(complaint, 0, "out of memory");
	return FROND_OK;
}

static void lists_free(struct asked_victims *asked)
{
	free(asked->pods);
	free(asked->jobs);
	free(asked->ranks);
}

static int key_compare(const void *a, const void *b)
{
	const struct frond_key *x = a, *y = b;
	if (x->hi != y->hi)
		return x->hi < y->hi ? -1 : 1;
	return (x->lo > y->lo) - (x->lo < y->lo);
}

/* In the order of the jobs file, then by rank. */
static void victims_name(const struct sim *sim, struct asked_victims *asked)
{
	qsort(asked->pods, asked->victims.count, sizeof(*asked->pods), key_compare);
	for (uint32_t i = 0; i < asked->victims.count; i++) {
		asked->jobs[i] = sim->planning->jobs->list[member_job(asked->pods[i])].name;
		asked->ranks[i] = member_rank(asked->pods[i]);
	}
}

static int32_t victims_ask(struct sim *sim, uint32_t job, const struct question *question, uint32_t members,
			   struct asked_victims *asked)
{
	uint32_t len = 0;
	struct frond_request request = question->request;
	request.members = members;
	int32_t code =
		sim->abi->victims(sim->engine, &request, sim->members, question->pairs, question->in, question->in_len,
				  question->room, question->room_count, &asked->victims, sim->places, asked->pods,
				  asked->cap, sim->reason, sizeof(sim->reason) - 1, &len);
	sim->reason[code == FROND_OK ? len : 0] = '\0';
	return code == FROND_OK ? code : sim_broken(sim, code, "victims", sim->planning->jobs->list[job].name);
}

/* All members, else the minMember lowest ranks (reference 3.5); first without victims, for nobody goes when it fits anyway. What
 * never fits keeps the sentence that plan has for it. */
static int32_t decide(struct sim *sim, uint32_t index, const struct question *question, struct asked_victims *asked,
		      uint32_t *members)
{
	const struct job *job = &sim->planning->jobs->list[index];
	const uint32_t tries[] = {job->members, job->min_member};
	uint32_t count = job->min_member < job->members ? 2 : 1;
	int32_t code = FROND_OK;
	for (uint32_t i = 0; i < 2 * count; i++) {
		*members = tries[i % count];
		code = sim_ask(sim, index, question, *members);
		if (code != FROND_OK)
			return code;
		asked->victims = (struct frond_victims){.outcome = sim->plan.outcome, .plan = sim->plan};
		bool waits = sim->plan.outcome == FROND_WAITS || sim->plan.outcome == FROND_UNDECIDED;
		if (i >= count && waits)
			code = victims_ask(sim, index, question, *members, asked);
		if (code != FROND_OK || asked->victims.outcome == FROND_PLACED)
			return code;
	}
	return code;
}

static void victims_report(const struct sim *sim, uint32_t index, uint32_t members, struct asked_victims *asked,
			   struct report *report)
{
	const struct job *job = &sim->planning->jobs->list[index];
	/* Only the plan that was asked for first has looked for the domain and the ids. */
	uint32_t flags =
		asked->victims.plan.flags | (sim->plan.flags & (FROND_PLAN_UNKNOWN_DOMAIN | FROND_PLAN_UNKNOWN_GPU));
	struct warnings warnings = warnings_of(sim->planning->fabric, sim->planning->jobs, job, flags);
	if (asked->victims.outcome != FROND_PLACED) {
		report_stays(report, job->name, sim->reason, &warnings);
		return;
	}
	victims_name(sim, asked);
	const struct answer_placed placed = {.name = job->name,
					     .plan = &asked->victims.plan,
					     .places = sim->places,
					     .members = members,
					     .asked = job->members,
					     .scratch = sim->scratch,
					     .warnings = &warnings};
	report_victims(report,
		       &(struct answer_victims){
			       .placed = &placed, .cost = &asked->victims, .jobs = asked->jobs, .ranks = asked->ranks});
}

int32_t preempt_run(const struct planning *planning, uint32_t job, struct report *report, struct complaint *complaint)
{
	struct sim sim;
	struct question question = {.in = NULL};
	struct asked_victims asked = {.pods = NULL};
	uint32_t members = 0;
	int32_t code = sim_open(&sim, planning, complaint);
	if (code == FROND_OK)
		code = sim_jobs_but(&sim, job);
	if (code == FROND_OK)
		code = question_make(&sim, job, &question);
	if (code == FROND_OK)
		code = lists_make(&asked, sim_members(&sim), complaint);
	if (code == FROND_OK)
		code = decide(&sim, job, &question, &asked, &members);
	if (code == FROND_OK)
		victims_report(&sim, job, members, &asked, report);
	if (code == FROND_OK)
		code = summary_write(&sim, report);
	free(question.in);
	lists_free(&asked);
	sim_close(&sim);
	return code;
}
