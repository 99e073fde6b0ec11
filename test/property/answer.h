/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer.h - part of oracle.c: writes the right answer as the simulator must (reference 11), and says what is wrong
 * with another one.
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

/* ---- warnings --------------------------------------------------------------------------------------------------- */

static bool is_unknown_domain(const struct fabric *fabric, const char *name)
{
	bool known = name[0] == '\0';
	for (int s = 0; s < fabric->spine_count; s++)
		known = known || strcmp(fabric->spine_names[s], name) == 0;
	for (int l = 0; l < fabric->leaf_count; l++)
		known = known || strcmp(fabric->leaves[l].name, name) == 0;
	for (int n = 0; n < fabric->node_count; n++)
		known = known || strcmp(fabric->nodes[n].clique, name) == 0;
	return !known;
}

static int unknown_speeds(const struct fabric *fabric)
{
	int unknown = 0;
	for (int n = 0; n < fabric->node_count; n++)
		unknown += fabric->nodes[n].gpus > 0 && fabric->nodes[n].uplink_gbps == 0;
	return unknown;
}

static void warnings_add(const struct fabric *fabric, const struct job *job, cJSON *answer)
{
	char text[64];
	cJSON *list = cJSON_CreateArray();

	snprintf(text, sizeof text, "network-bandwidth: %d nodes", unknown_speeds(fabric));
	if (is_unknown_domain(fabric, job->preferred))
		cJSON_AddItemToArray(list, cJSON_CreateString("preferred-domain: unknown"));
	if (job->floor_gbps > 0 && unknown_speeds(fabric) > 0)
		cJSON_AddItemToArray(list, cJSON_CreateString(text));
	if (list->child)
		cJSON_AddItemToObject(answer, "warnings", list);
	else
		cJSON_Delete(list);
}

/* The answer warns of an unknown domain and of unknown speeds exactly when there is cause, and each warning is one
 * sentence. What it warns of besides is not judged here. Takes the warnings out of the answer. */
static bool warnings_take(const struct fabric *fabric, const struct job *job, cJSON *answer,
			  struct complaint *complaint)
{
	cJSON *list = cJSON_DetachItemFromObjectCaseSensitive(answer, "warnings"), *item;
	bool fine = !list || (cJSON_IsArray(list) && list->child), domain = false, speeds = false;
	char number[32];

	snprintf(number, sizeof number, " %d node", unknown_speeds(fabric));
	cJSON_ArrayForEach(item, list)
	{
		const char *text = cJSON_IsString(item) ? item->valuestring : "";
		fine = fine && text[0] && !strchr(text, '\n');
		domain = domain || strncmp(text, "preferred-domain:", 17) == 0;
		speeds = speeds || (strncmp(text, "network-bandwidth:", 18) == 0 && strstr(text, number));
	}
	cJSON_Delete(list);
	if (!fine)
		return complain(complaint, "warnings are a list of sentences, or not there");
	if (gpu_count_wrong(job))
		return true;
	if (domain != is_unknown_domain(fabric, job->preferred))
		return complain(complaint, "the domain \"%s\" is %sknown and the answer %s", job->preferred,
				domain ? "" : "not ", domain ? "warns" : "does not warn");
	if (speeds != (job->floor_gbps > 0 && unknown_speeds(fabric) > 0))
		return complain(complaint, "the speed of%s is not known, a floor is %d, and the answer %s", number,
				job->floor_gbps, speeds ? "warns" : "does not warn");
	return true;
}

static cJSON *answer_of(struct world *world, const struct job *job, const struct outcome *outcome)
{
	cJSON *answer;

	if (gpu_count_wrong(job))
		answer = answer_refused(job->name, "gpu-count is wrong");
	else if (outcome->placed)
		answer = answer_placed(world, job->name, &outcome->rule, outcome->relaxed, &outcome->plan.placement);
	else
		answer = answer_refused(job->name, outcome->rule.never ? "never fits" : "must wait");
	if (!gpu_count_wrong(job) && outcome->placed && outcome->members < job->members)
		cJSON_AddNumberToObject(answer, "placedMembers", outcome->members);
	warnings_add(world->fabric, job, answer);
	return answer;
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

	cJSON_DeleteItemFromObjectCaseSensitive(right, "warnings");
	if (!warnings_take(world->fabric, job, trimmed, complaint))
		fine = false;
	else if (placed && outcome->open)
		fine = complain(complaint,
				"it can be placed, by step 3 as well as [%d %d %d %d], and the answer is none such",
				outcome->plan.key.step3[0], outcome->plan.key.step3[1], outcome->plan.key.step3[2],
				outcome->plan.key.step3[3]);
	else if (strcmp(text_of(answer, "name"), job->name) != 0)
		fine = complain(complaint, "the answer is for \"%s\"", text_of(answer, "name"));
	else if (!placed && cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(answer, "placed")))
		fine = check_refusal(job, outcome, trimmed, complaint);
	else
		fine = cJSON_Compare(right, trimmed, true) || complain_difference(right, trimmed, complaint);
	cJSON_Delete(trimmed);
	cJSON_Delete(right);
	return fine;
}

#endif
