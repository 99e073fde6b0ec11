/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.h - part of oracle.c: judges `reserve` by trying every end and, at each, every domain (reference 7, 11, 13).
 *
 * Where they leave room:
 *  W1  A pod has gone at its end. Lower priority of unknown end has gone now; a budget does not matter.
 *  W2  A gang starts with its minMember lowest ranks when these find room before all do.
 *  W3  A gang that may break its rule starts as soon as it fits, relaxed if no domain holds it by then.
 *  W4  Of a gang of several sizes the start is judged, not the nodes: more than one plan is right.
 */
#ifndef FROND_TEST_WINDOW_H
#define FROND_TEST_WINDOW_H

#include "victims.h"

struct opening {     /* what the answer must be */
	int start_m; /* minutes from now; -1: never */
	struct outcome outcome;
	int tried; /* times */
};

struct window_stats {
	int now, later, never, relaxed, open, fewer;
	int by_rule[RULE_KINDS];
	int64_t times;
};

/* The state when so many minutes have passed. */
static struct state state_after(const struct instance *instance, const struct course *course, int minutes)
{
	struct choice gone = {{0}, {0}};
	for (int e = 0; e < instance->entry_count; e++) {
		const struct job *job = &instance->entries[e];
		bool lower = job->priority < instance->entries[instance->defrag_for].priority;
		bool ended = job->ends_given ? job->ends_m <= minutes : lower;
		if (course->present[e] && ended)
			gone.gone[e] = (signed char)course->outcomes[e].members;
	}
	return state_without(instance, course, &gone);
}

static bool fits_after(const struct instance *instance, struct course *course, const struct gang *gang,
		       const struct rule *rule, int minutes, struct outcome *outcome)
{
	struct state state = state_after(instance, course, minutes);
	struct eviction domains = {.rule = *rule};

	domains_list(&instance->fabric, gang->job, &domains);
	for (int d = 0; !rule->shapeless && d < domains.domain_count; d++) {
		*outcome = plan_inside(gang, &state, rule, domains.domains[d]);
		if (outcome->placed)
			return true;
	}
	if (!may_relax(gang->job, rule))
		return false;
	const struct rule none = {.kind = RULE_NONE};
	*outcome = (struct outcome){.rule = *rule, .members = gang->members};
	outcome->relaxed = plan_under(gang, &state, &none, ~0u, outcome);
	return outcome->placed;
}

/* One time after the other, those of all ends and now. */
static struct opening opening_of(const struct instance *instance, struct course *course, int members)
{
	struct gang gang = gang_of(&course->world, &instance->entries[instance->defrag_for], members);
	struct rule rule = rule_of(&gang);
	struct opening opening = {.start_m = -1};

	for (int minutes = 0; !rule.never && !rule.too_wide && minutes <= ENDS_MAX; minutes++) {
		bool end = minutes == 0;
		for (int e = 0; e < instance->entry_count; e++)
			end = end || (course->present[e] && instance->entries[e].ends_given &&
				      instance->entries[e].ends_m == minutes);
		if (!end)
			continue;
		opening.tried++;
		if (fits_after(instance, course, &gang, &rule, minutes, &opening.outcome)) {
			opening.start_m = minutes;
			break;
		}
	}
	return opening;
}

static struct opening first_opening(const struct instance *instance, struct course *course)
{
	const struct job *job = &instance->entries[instance->defrag_for];
	struct opening all = opening_of(instance, course, job->members);
	if (least_members(job) == job->members || all.start_m == 0)
		return all;
	struct opening least = opening_of(instance, course, least_members(job)); /* W2 */
	return all.start_m >= 0 && all.start_m == least.start_m ? all : least;
}

/* Nodes of the plan, and of them those whose GPUs for the gang are free now. */
static unsigned nodes_of_plan(const struct placement *placement)
{
	unsigned nodes = 0;
	for (int rank = 0; rank < placement->members; rank++)
		if (placement->node[rank] >= 0)
			nodes |= 1u << placement->node[rank];
	return nodes;
}

static int nodes_free(const struct instance *instance, const struct course *course, const struct placement *placement)
{
	struct state now = state_after(instance, course, 0);
	unsigned busy = 0;
	for (int rank = 0; rank < placement->members; rank++) {
		int n = placement->node[rank];
		if (n >= 0 && (placement->mask[rank] & ~free_mask(&instance->fabric, &now, n)) != 0)
			busy |= 1u << n;
	}
	return mask_count(nodes_of_plan(placement) & ~busy);
}

static cJSON *window_by_brute_force(const struct instance *instance, struct course *course,
				    const struct opening *opening)
{
	const struct fabric *fabric = &instance->fabric;
	cJSON *root = cJSON_CreateObject();
	char start[16] = "never";
	bool open = opening->start_m >= 0;
	const struct placement *placement = &opening->outcome.plan.placement;
	unsigned nodes = open ? nodes_of_plan(placement) : 0;

	if (opening->start_m == 0)
		snprintf(start, sizeof start, "now");
	else if (open && opening->start_m % 60 == 0)
		snprintf(start, sizeof start, "%dh", opening->start_m / 60);
	else if (open && opening->start_m > 60)
		snprintf(start, sizeof start, "%dh%dm", opening->start_m / 60, opening->start_m % 60);
	else if (open)
		snprintf(start, sizeof start, "%dm", opening->start_m);
	cJSON_AddStringToObject(root, "start", start);
	cJSON *list = cJSON_AddArrayToObject(root, "nodes");
	for (int n = 0; n < fabric->node_count; n++)
		if (nodes & (1u << n))
			cJSON_AddItemToArray(list, cJSON_CreateString(fabric->nodes[n].name));
	cJSON_AddNumberToObject(root, "free", open ? nodes_free(instance, course, placement) : 0);
	list = cJSON_AddArrayToObject(root, "leaves");
	for (int l = 0; l < fabric->leaf_count; l++)
		if (nodes & nodes_of_leaves(fabric, l, l + 1))
			cJSON_AddItemToArray(list, cJSON_CreateString(fabric->leaves[l].name));
	warnings_add(fabric, &instance->entries[instance->defrag_for], root);
	return root;
}

static bool check_window(const struct instance *instance, struct course *course, const cJSON *root,
			 struct window_stats *stats, struct complaint *complaint)
{
	struct opening opening = first_opening(instance, course);
	cJSON *right = window_by_brute_force(instance, course, &opening);
	cJSON_DeleteItemFromObjectCaseSensitive(right, "warnings");
	cJSON *answer = cJSON_Duplicate(root, true);
	bool open = opening.start_m >= 0 && opening.outcome.open;
	bool warned = warnings_take(&instance->fabric, &instance->entries[instance->defrag_for], answer, complaint);
	bool holds =
		open ? strcmp(text_of(answer, "start"), text_of(right, "start")) == 0 && cJSON_GetArraySize(answer) == 4
		     : cJSON_Compare(answer, right, true);

	stats->times += opening.tried;
	stats->now += opening.start_m == 0;
	stats->later += opening.start_m > 0;
	stats->never += opening.start_m < 0;
	stats->open += open;
	if (opening.start_m >= 0) {
		stats->relaxed += opening.outcome.relaxed;
		stats->fewer += opening.outcome.members < instance->entries[instance->defrag_for].members;
		stats->by_rule[opening.outcome.rule.kind] += opening.start_m > 0;
	}
	if (!holds) {
		char *text = cJSON_PrintUnformatted(right);
		complain(complaint, "the window must be %s", text);
		free(text);
	}
	cJSON_Delete(answer);
	cJSON_Delete(right);
	return holds && warned;
}

static void window_stats_print(const struct window_stats *stats)
{
	printf("  %d start now, %d later, %d never; %d relaxed, %d by minMember, %d of several sizes; %lld times "
	       "tried\n",
	       stats->now, stats->later, stats->never, stats->relaxed, stats->fewer, stats->open,
	       (long long)stats->times);
	for (int i = 0; i < RULE_KINDS; i++)
		printf("  later under %-15s %d\n", RULE_NAMES[i], stats->by_rule[i]);
}

/* ---- for the self-test ------------------------------------------------------------------------------------------ */

enum { WINDOW_SPOILINGS = 4 };

/* Another start, a node less, one more that is free, a leaf less. */
static bool spoil_window(cJSON *root, int how)
{
	static const char *const lists[] = {NULL, "nodes", NULL, "leaves"};
	if (how == 0)
		return cJSON_ReplaceItemInObject(root, "start", cJSON_CreateString("13s"));
	if (how == 2)
		return cJSON_ReplaceItemInObject(root, "free",
						 cJSON_CreateNumber(cJSON_GetObjectItem(root, "free")->valueint + 1));
	cJSON *list = cJSON_GetObjectItem(root, lists[how]);
	if (!list->child)
		return false;
	cJSON_DeleteItemFromArray(list, 0);
	return true;
}

#endif
