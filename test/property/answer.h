/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer.h - part of oracle.c: writes the right answer as the simulator must (spec 11), and says what is wrong with
 * another one.
 *
 *  A1  A wrong gpu-count is an answer: placed false with a reason. It is compared with all members' GPUs.
 *  A2  With minMember, "never fits" is said when not even minMember members ever fit.
 *  A3  A member without GPUs may be left out of `members` or stand there with no GPUs; the rest of its entry is free.
 */
#ifndef FROND_TEST_ANSWER_H
#define FROND_TEST_ANSWER_H

#include <limits.h>
#include <stdarg.h>

#include <cjson/cJSON.h>

#include "plan.h"

enum { COMPLAINT_SIZE = 1024 };

struct complaint {
	char text[COMPLAINT_SIZE];
};

__attribute__((format(printf, 2, 3))) static bool complain(struct complaint *complaint, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(complaint->text, sizeof complaint->text, format, args);
	va_end(args);
	return false;
}

static const char *text_of(const cJSON *object, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
	return text ? text : "";
}

/* ---- the right answer ------------------------------------------------------------------------------------------- */

static cJSON *ring_list(struct world *world, int n, unsigned set)
{
	const struct ring *ring = ring_of(&world->machines[world->fabric->nodes[n].model], set);
	return cJSON_CreateIntArray(ring->order, ring->count);
}

static cJSON *member_entry(struct world *world, int rank, int n, unsigned set)
{
	const struct fabric *fabric = world->fabric;
	const struct leaf *leaf = &fabric->leaves[fabric->nodes[n].leaf];
	char domain[2 * NAME_SIZE + 2];
	cJSON *member = cJSON_CreateObject();

	snprintf(domain, sizeof domain, "%s/%s", fabric->spine_names[leaf->spine], leaf->name);
	cJSON_AddNumberToObject(member, "rank", rank);
	cJSON_AddStringToObject(member, "node", fabric->nodes[n].name);
	cJSON_AddStringToObject(member, "domain", domain);
	cJSON_AddItemToObject(member, "gpus", ring_list(world, n, set));
	return member;
}

static cJSON *answer_placed(struct world *world, const char *name, const struct rule *rule, bool relaxed,
			    const struct placement *placement)
{
	const struct fabric *fabric = world->fabric;
	unsigned spines = 0, leaves = 0;
	cJSON *answer = cJSON_CreateObject();

	for (int rank = 0; rank < placement->members; rank++) {
		if (placement->node[rank] < 0)
			continue;
		leaves |= 1u << fabric->nodes[placement->node[rank]].leaf;
		spines |= 1u << fabric->leaves[fabric->nodes[placement->node[rank]].leaf].spine;
	}
	cJSON_AddStringToObject(answer, "name", name);
	cJSON_AddBoolToObject(answer, "placed", true);
	cJSON_AddStringToObject(answer, "rule", RULE_NAMES[rule->kind]);
	cJSON_AddBoolToObject(answer, "relaxed", relaxed);
	cJSON *list = cJSON_AddArrayToObject(answer, "spines");
	for (int s = 0; s < fabric->spine_count; s++)
		if (spines & (1u << s))
			cJSON_AddItemToArray(list, cJSON_CreateString(fabric->spine_names[s]));
	list = cJSON_AddArrayToObject(answer, "leaves");
	for (int l = 0; l < fabric->leaf_count; l++)
		if (leaves & (1u << l))
			cJSON_AddItemToArray(list, cJSON_CreateString(fabric->leaves[l].name));
	list = cJSON_AddArrayToObject(answer, "members");
	for (int rank = 0; rank < placement->members; rank++)
		if (placement->node[rank] >= 0)
			cJSON_AddItemToArray(list,
					     member_entry(world, rank, placement->node[rank], placement->mask[rank]));
	return answer;
}

static cJSON *answer_refused(const char *name, const char *reason)
{
	cJSON *answer = cJSON_CreateObject();
	cJSON_AddStringToObject(answer, "name", name);
	cJSON_AddBoolToObject(answer, "placed", false);
	cJSON_AddStringToObject(answer, "reason", reason);
	return answer;
}

static cJSON *answer_of(struct world *world, const struct job *job, const struct outcome *outcome)
{
	if (gpu_count_wrong(job))
		return answer_refused(job->name, "gpu-count is wrong");
	if (outcome->placed)
		return answer_placed(world, job->name, &outcome->rule, outcome->relaxed, &outcome->plan.placement);
	return answer_refused(job->name, outcome->rule.never ? "never fits" : "must wait");
}

/* ---- another answer --------------------------------------------------------------------------------------------- */

/* A3: a copy without the members that have no GPUs and should have none. */
static cJSON *without_idle_members(const struct job *job, const cJSON *answer)
{
	cJSON *copy = cJSON_Duplicate(answer, true);
	cJSON *members = cJSON_GetObjectItemCaseSensitive(copy, "members");

	for (int i = cJSON_GetArraySize(members) - 1; i >= 0; i--) {
		const cJSON *member = cJSON_GetArrayItem(members, i);
		const cJSON *rank = cJSON_GetObjectItemCaseSensitive(member, "rank");
		bool idle = cJSON_IsNumber(rank) && rank->valueint >= 0 && rank->valueint < job->members &&
			    job->sizes[rank->valueint] == 0;
		if (idle && cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(member, "gpus")) == 0)
			cJSON_DeleteItemFromArray(members, i);
	}
	return copy;
}

/* The first key whose values differ, with both values. */
static bool complain_difference(const cJSON *right, const cJSON *answer, struct complaint *complaint)
{
	const cJSON *item;
	const char *key = "more than there should be";
	char *wanted = NULL, *got = NULL;

	cJSON_ArrayForEach(item, right)
	{
		const cJSON *other = cJSON_GetObjectItemCaseSensitive(answer, item->string);
		if (other && cJSON_Compare(item, other, true))
			continue;
		key = item->string;
		wanted = cJSON_PrintUnformatted(item);
		got = other ? cJSON_PrintUnformatted(other) : NULL;
		break;
	}
	complain(complaint, "\"%s\" must be %.450s, not %.450s", key, wanted ? wanted : "nothing",
		 got ? got : "nothing");
	free(wanted);
	free(got);
	return false;
}

/* Not placed, and rightly so: the reason is one sentence and says whether another day would help. */
static bool check_refusal(const struct job *job, const struct outcome *outcome, const cJSON *answer,
			  struct complaint *complaint)
{
	const char *reason = text_of(answer, "reason");
	bool says_never = strstr(reason, "never fits") != NULL;

	if (!reason[0] || strchr(reason, '\n') || cJSON_GetArraySize(answer) != 3)
		return complain(complaint, "a refusal has a name, placed and a reason of one sentence");
	if (gpu_count_wrong(job) || outcome->rule.too_wide) /* refused for another cause than room */
		return true;
	if (says_never != outcome->rule.never)
		return complain(complaint, "capacity %s, but the reason is: %s",
				outcome->rule.never ? "never suffices" : "suffices", reason);
	return true;
}

static bool check_answer(struct world *world, const struct job *job, const struct outcome *outcome, const cJSON *answer,
			 struct complaint *complaint)
{
	cJSON *right = answer_of(world, job, outcome);
	cJSON *trimmed = without_idle_members(job, answer);
	bool placed = outcome->placed && !gpu_count_wrong(job);
	bool fine;

	if (placed && outcome->open)
		fine = complain(complaint,
				"it can be placed, by step 3 as well as [%d %d %d %d], and the answer is none such",
				outcome->plan.key.step3[0], outcome->plan.key.step3[1], outcome->plan.key.step3[2],
				outcome->plan.key.step3[3]);
	else if (strcmp(text_of(answer, "name"), job->name) != 0)
		fine = complain(complaint, "the answer is for \"%s\"", text_of(answer, "name"));
	else if (!placed && cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(answer, "placed")))
		fine = check_refusal(job, outcome, answer, complaint);
	else
		fine = cJSON_Compare(right, trimmed, true) || complain_difference(right, trimmed, complaint);
	cJSON_Delete(trimmed);
	cJSON_Delete(right);
	return fine;
}

#endif
