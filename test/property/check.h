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
	int placed, relaxed, waiting, never, refused;
};

struct stats {
	int instances, instances_greedy_lost;
	int instances_decided[STEPS]; /* by the last step that any of its jobs needed */
	int jobs, removed, decided[STEPS], bounded;
	struct tally all;
	struct tally by_rule[RULE_KINDS];
	struct tally by_strategy[STRATEGIES];
	struct tally by_mode[MODES];
	struct tally by_policy[POLICIES], by_claim_mode[MODES], by_locality[LOCALITIES];
	struct tally mixed, idle, latency, selector, min_bandwidth;
	int beyond_first_fit, latency_too_wide, shapeless, wrong_gpu_count, fewer_members;
	int domain_taken, domain_missed, domain_unknown;
	int with_floor;
};

static void tally_add(struct tally *tally, const struct job *job, const struct outcome *outcome)
{
	bool refused = gpu_count_wrong(job) || outcome->rule.too_wide;
	bool placed = !refused && outcome->placed;

	tally->refused += refused;
	tally->placed += placed;
	tally->relaxed += placed && outcome->relaxed;
	tally->never += !refused && outcome->rule.never;
	tally->waiting += !refused && !placed && !outcome->rule.never;
}

static void stats_add_claim(struct stats *stats, const struct job *job, const struct outcome *outcome)
{
	tally_add(&stats->by_policy[job->claim.policy], job, outcome);
	tally_add(&stats->by_claim_mode[job->claim.mode], job, outcome);
	tally_add(&stats->by_locality[job->claim.locality], job, outcome);
	if (job->claim.zone)
		tally_add(&stats->selector, job, outcome);
	if (job->claim.min_gbps > 0)
		tally_add(&stats->min_bandwidth, job, outcome);
}

static void stats_add(struct stats *stats, const struct fabric *fabric, const struct job *job,
		      const struct outcome *outcome)
{
	bool idle = false;
	for (int rank = 0; rank < job->members; rank++)
		idle = idle || job->sizes[rank] == 0;

	stats->jobs++;
	tally_add(&stats->all, job, outcome);
	tally_add(&stats->by_strategy[job->strategy], job, outcome);
	tally_add(&stats->by_mode[job->latency_sensitive ? MODE_REQUIRED : job->mode], job, outcome);
	if (job->claim.given)
		stats_add_claim(stats, job, outcome);
	if (!sizes_equal(job, job->members))
		tally_add(&stats->mixed, job, outcome);
	if (idle)
		tally_add(&stats->idle, job, outcome);
	if (job->latency_sensitive)
		tally_add(&stats->latency, job, outcome);
	stats->wrong_gpu_count += gpu_count_wrong(job);
	stats->latency_too_wide += outcome->rule.too_wide;
	if (!outcome->rule.never && !outcome->rule.too_wide) /* these have no rule to be counted under */
		tally_add(&stats->by_rule[outcome->rule.kind], job, outcome);
	stats->beyond_first_fit += outcome->adopted;
	stats->shapeless += outcome->rule.shapeless;
	stats->with_floor += job->floor_gbps > 0;
	stats->bounded += outcome->bounded;
	if (!outcome->placed || gpu_count_wrong(job))
		return;
	stats->decided[outcome->decided]++;
	stats->fewer_members += outcome->members < job->members;
	stats->domain_taken += outcome->inside;
	if (job->preferred[0] && !outcome->inside)
		*(nodes_named(fabric, job->preferred) ? &stats->domain_missed : &stats->domain_unknown) += 1;
}

/* What the whole instance looks like when all goes well: outcomes by entry. */
struct course {
	struct world world;
	struct outcome outcomes[ENTRIES_MAX];
	bool present[ENTRIES_MAX]; /* the job is placed, and not removed */
	struct state state;        /* at the end */
	bool greedy_lost;
};

/* Where the outcome is open, the answer's nodes are taken if they will do. */
static void answer_adopt(struct world *world, const struct job *job, const struct state *state, const cJSON *answer,
			 struct outcome *outcome)
{
	struct gang gang = gang_of(world, job, outcome->members);
	const cJSON *member;
	int node[MEMBERS_MAX];

	memset(node, -1, sizeof node);
	cJSON_ArrayForEach(member, cJSON_GetObjectItemCaseSensitive(answer, "members"))
	{
		const cJSON *rank = cJSON_GetObjectItemCaseSensitive(member, "rank");
		if (cJSON_IsNumber(rank) && rank->valueint >= 0 && rank->valueint < MEMBERS_MAX)
			node[rank->valueint] = node_by_name(world->fabric, text_of(member, "node"));
	}
	plan_adopt(&gang, state, node, outcome);
}

/* skip: an entry that is not planned, -1 for none. root: the answer to `plan`; NULL: there is none. */
static void course_run(const struct instance *instance, int skip, const cJSON *root, struct course *course)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "jobs");
	const cJSON *answer = cJSON_IsArray(list) ? list->child : NULL;

	world_open(&course->world, &instance->fabric);
	memset(course->present, 0, sizeof course->present);
	course->state = state_of_day(&instance->fabric);
	course->greedy_lost = false;
	for (int e = 0; e < instance->entry_count; e++) {
		const struct job *job = &instance->entries[e];
		struct outcome *outcome = &course->outcomes[e];
		if (e == skip) {
			*outcome = (struct outcome){.placed = false};
			continue;
		}
		if (job->removes >= 0) {
			if (course->present[job->removes])
				placement_give(&course->state, &course->outcomes[job->removes].plan.placement);
			course->present[job->removes] = false;
			continue;
		}
		*outcome = job_plan(&course->world, job, &course->state);
		if (outcome->open && answer != NULL)
			answer_adopt(&course->world, job, &course->state, answer, outcome);
		answer = answer == NULL ? NULL : answer->next;
		if (!outcome->placed || gpu_count_wrong(job))
			continue;
		course->greedy_lost =
			course->greedy_lost || greedy_is_defeated(&course->world, job, &course->state, outcome);
		placement_take(&course->state, &outcome->plan.placement);
		course->present[e] = true;
	}
}

static void stats_add_course(struct stats *stats, const struct instance *instance, const struct course *course)
{
	enum step last = STEP_NONE;

	stats->instances++;
	stats->instances_greedy_lost += course->greedy_lost;
	for (int e = 0; e < instance->entry_count; e++) {
		const struct job *job = &instance->entries[e];
		stats->removed += job->removes >= 0;
		if (job->removes >= 0)
			continue;
		stats_add(stats, &instance->fabric, job, &course->outcomes[e]);
		if (course->outcomes[e].placed && !gpu_count_wrong(job) && course->outcomes[e].decided > last)
			last = course->outcomes[e].decided;
	}
	stats->instances_decided[last]++;
}

/* The whole answer to `plan`. Stops at the first job that is wrong: the others follow from it. */
static bool check_plans(const struct instance *instance, struct course *course, const cJSON *root,
			struct complaint *complaint)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "jobs");
	const cJSON *answer = cJSON_IsArray(list) ? list->child : NULL;

	for (int e = 0; e < instance->entry_count; e++) {
		const struct job *job = &instance->entries[e];
		struct complaint what;
		if (job->removes >= 0)
			continue;
		if (!answer)
			return complain(complaint, "%s: no answer", job->name);
		if (!check_answer(&course->world, job, &course->outcomes[e], answer, &what))
			return complain(complaint, "%s: %.980s", job->name, what.text);
		answer = answer->next;
	}
	return answer ? complain(complaint, "there are more answers than jobs") : true;
}

/* ---- what a run has seen ---------------------------------------------------------------------------------------- */

static void tally_print(const char *kind, const char *name, const struct tally *tally)
{
	printf("  %-10s %-15s %6d placed (%d relaxed), %d waiting, %d never, %d refused\n", kind, name, tally->placed,
	       tally->relaxed, tally->waiting, tally->never, tally->refused);
}

static void stats_print(const struct stats *stats)
{
	printf("%d instances, %d jobs, %d removals\n", stats->instances, stats->jobs, stats->removed);
	tally_print("all", "", &stats->all);
	for (int i = 0; i < MODES; i++)
		tally_print("mode", MODE_NAMES[i], &stats->by_mode[i]);
	for (int i = 0; i < STRATEGIES; i++)
		tally_print("strategy", STRATEGY_NAMES[i], &stats->by_strategy[i]);
	for (int i = 0; i < RULE_KINDS; i++)
		tally_print("rule", RULE_NAMES[i], &stats->by_rule[i]);
	for (int i = 0; i < POLICIES; i++)
		tally_print("policy", POLICY_NAMES[i], &stats->by_policy[i]);
	for (int i = 0; i < MODES; i++)
		tally_print("claim mode", MODE_NAMES[i], &stats->by_claim_mode[i]);
	for (int i = 0; i < LOCALITIES; i++)
		tally_print("locality", LOCALITY_NAMES[i], &stats->by_locality[i]);
	tally_print("claim", "minBandwidth", &stats->min_bandwidth);
	tally_print("claim", "selector", &stats->selector);
	tally_print("members", "mixed sizes", &stats->mixed);
	printf("  of mixed sizes %d are placed better than by first fit\n", stats->beyond_first_fit);
	tally_print("members", "some idle", &stats->idle);
	tally_print("wish", "latency", &stats->latency);
	printf("  preferred domain %d taken, %d not possible, %d unknown; %d with a bandwidth floor\n",
	       stats->domain_taken, stats->domain_missed, stats->domain_unknown, stats->with_floor);
	printf("  %d in no such shape, %d too wide for latency-sensitive, %d wrong gpu-count, %d by minMember, "
	       "%d over 4,096 candidates\n",
	       stats->shapeless, stats->latency_too_wide, stats->wrong_gpu_count, stats->fewer_members, stats->bounded);
	printf("  jobs decided by steps 1-3: %d, by 4: %d, by 5a: %d, by 5c: %d, by 6: %d, by 7: %d\n",
	       stats->decided[STEP_3], stats->decided[STEP_4], stats->decided[STEP_5A], stats->decided[STEP_5C],
	       stats->decided[STEP_6], stats->decided[STEP_7]);
	printf("  instances that needed step 3 at most: %d, 4: %d, 5a: %d, 5c: %d, 6: %d, 7: %d; nothing placed: %d\n",
	       stats->instances_decided[STEP_3], stats->instances_decided[STEP_4], stats->instances_decided[STEP_5A],
	       stats->instances_decided[STEP_5C], stats->instances_decided[STEP_6], stats->instances_decided[STEP_7],
	       stats->instances_decided[STEP_NONE]);
	printf("  %d of %d instances defeat greedy first-fit (%d %%)\n", stats->instances_greedy_lost, stats->instances,
	       stats->instances > 0 ? stats->instances_greedy_lost * 100 / stats->instances : 0);
}

#endif
