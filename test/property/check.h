/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - part of oracle.c: goes through an instance's jobs in order, checks each answer, follows what it took,
 * and counts what was seen, so that a run shows what it has proved.
 */
#ifndef FROND_TEST_CHECK_H
#define FROND_TEST_CHECK_H

#include "answer.h"
#include "greedy.h"

struct tally { /* of jobs */
	int placed, relaxed, waiting, never;
};

struct stats {
	int instances, instances_greedy_lost;
	int jobs, removed;
	struct tally all;
	struct tally by_rule[RULE_KINDS];
	struct tally by_strategy[3];
	struct tally by_mode[3];
	struct tally mixed;
	int latency_too_wide, shapeless, wrong_gpu_count, fewer_members;
	int domain_taken, domain_missed, domain_unknown;
	int with_floor;
};

static void tally_add(struct tally *tally, const cJSON *answer)
{
	bool placed = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(answer, "placed"));
	bool never = strstr(text_of(answer, "reason"), "never fits") != NULL;

	tally->placed += placed;
	tally->relaxed += placed && cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(answer, "relaxed"));
	tally->waiting += !placed && !never;
	tally->never += !placed && never;
}

static void stats_add(struct stats *stats, const struct fabric *fabric, const struct job *job,
		      const struct expected *expected, const cJSON *answer)
{
	if (!expected->rule.never && !expected->rule.too_wide) /* these have no rule to be counted under */
		tally_add(&stats->by_rule[expected->rule.kind], answer);
	stats->latency_too_wide += expected->rule.too_wide;
	stats->shapeless += expected->rule.shapeless;
	stats->with_floor += job->floor_gbps > 0;
	if (!job->preferred[0] || !expected->placed)
		return;
	stats->domain_unknown += !domain_known(fabric, job->preferred);
	stats->domain_taken += expected->inside;
	stats->domain_missed += domain_known(fabric, job->preferred) && !expected->inside;
}

/* What the answer must be, and for how many members (A1). */
static struct expected expected_of_job(const struct fabric *fabric, const struct state *state, const struct job *job,
				       int *members)
{
	struct expected expected = expected_of(fabric, state, job, job->members);

	*members = job->members;
	if (!expected.placed && job->min_member > 0 && job->min_member < job->members) {
		struct expected fewer = expected_of(fabric, state, job, job->min_member);
		if (fewer.placed) {
			*members = job->min_member;
			return fewer;
		}
	}
	return expected;
}

static bool check_wrong_count(const struct job *job, const cJSON *answer, struct complaint *complaint)
{
	if (!cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(answer, "placed")))
		return complain(complaint, "placed, although gpu-count is %d and the limits say %d", job->gpu_count,
				job_total_gpus(job));
	return check_reason(answer, complaint);
}

static bool check_job(const struct fabric *fabric, const struct state *state, const struct job *job,
		      const cJSON *answer, struct placement *placement, struct stats *stats, bool *greedy_lost,
		      struct complaint *complaint)
{
	if (strcmp(text_of(answer, "name"), job->name) != 0)
		return complain(complaint, "the answer is for \"%s\"", text_of(answer, "name"));
	if (!cJSON_IsBool(cJSON_GetObjectItemCaseSensitive(answer, "placed")))
		return complain(complaint, "the answer does not say whether it is placed");
	stats->jobs++;
	tally_add(&stats->all, answer);
	tally_add(&stats->by_strategy[job->strategy], answer);
	tally_add(&stats->by_mode[job->latency_sensitive ? MODE_REQUIRED : job->mode], answer);
	if (job->gpu_count > 0 && job->gpu_count != job_total_gpus(job)) {
		stats->wrong_gpu_count++;
		return check_wrong_count(job, answer, complaint);
	}
	if (!job_has_equal_sizes(job)) {
		tally_add(&stats->mixed, answer);
		return check_mixed(fabric, state, job, answer, placement, complaint);
	}
	int members;
	struct expected expected = expected_of_job(fabric, state, job, &members);
	stats->fewer_members += members < job->members;
	stats_add(stats, fabric, job, &expected, answer);
	*greedy_lost = *greedy_lost || greedy_is_defeated(fabric, state, job, &expected, members);
	return check_equal(fabric, state, job, &expected, members, answer, placement, complaint);
}

static void give_back(struct state *state, const struct placement *placement)
{
	for (int rank = 0; rank < placement->members; rank++)
		state->taken[placement->node[rank]] &= ~placement->mask[rank];
}

static void take(struct state *state, const struct placement *placement)
{
	for (int rank = 0; rank < placement->members; rank++)
		state->taken[placement->node[rank]] |= placement->mask[rank];
}

/* The whole answer to an instance. Stops at the first job that is wrong: what follows would be judged on a state that
 * should not be. */
static bool check_instance(const struct instance *instance, const cJSON *root, struct stats *stats,
			   struct complaint *complaint)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "jobs");
	const cJSON *answer = cJSON_IsArray(list) ? list->child : NULL;
	struct state state = {{0}};
	struct placement placements[ENTRIES_MAX] = {{0}};
	bool greedy_lost = false;

	stats->instances++;
	for (int e = 0; e < instance->entry_count; e++) {
		const struct job *job = &instance->entries[e];
		struct complaint what;
		if (job->removes >= 0) {
			stats->removed++;
			give_back(&state, &placements[job->removes]);
			continue;
		}
		if (!answer)
			return complain(complaint, "%s: no answer", job->name);
		if (!check_job(&instance->fabric, &state, job, answer, &placements[e], stats, &greedy_lost, &what))
			return complain(complaint, "%s: %.400s", job->name, what.text);
		take(&state, &placements[e]);
		answer = answer->next;
	}
	stats->instances_greedy_lost += greedy_lost;
	return answer ? complain(complaint, "there are more answers than jobs") : true;
}

/* ---- what a run has seen ---------------------------------------------------------------------------------------- */

static void tally_print(const char *name, const struct tally *tally)
{
	printf("  %-16s %7d placed (%d relaxed), %d waiting, %d never\n", name, tally->placed, tally->relaxed,
	       tally->waiting, tally->never);
}

static void stats_print(const struct stats *stats)
{
	printf("%d instances, %d jobs, %d removals\n", stats->instances, stats->jobs, stats->removed);
	tally_print("all", &stats->all);
	for (int i = 0; i < 3; i++)
		tally_print(MODE_NAMES[i], &stats->by_mode[i]);
	for (int i = 0; i < 3; i++)
		tally_print(STRATEGY_NAMES[i], &stats->by_strategy[i]);
	for (int i = 0; i < RULE_KINDS; i++)
		tally_print(RULE_NAMES[i], &stats->by_rule[i]);
	tally_print("mixed sizes", &stats->mixed);
	printf("  preferred domain %d taken, %d not possible, %d unknown; %d with a bandwidth floor\n",
	       stats->domain_taken, stats->domain_missed, stats->domain_unknown, stats->with_floor);
	printf("  %d in no such shape, %d too wide for latency-sensitive, %d wrong gpu-count, %d by minMember\n",
	       stats->shapeless, stats->latency_too_wide, stats->wrong_gpu_count, stats->fewer_members);
	printf("  %d of %d instances defeat greedy first-fit (%d %%)\n", stats->instances_greedy_lost, stats->instances,
	       stats->instances > 0 ? stats->instances_greedy_lost * 100 / stats->instances : 0);
}

#endif
