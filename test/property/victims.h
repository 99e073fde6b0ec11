/* SPDX-License-Identifier: Apache-2.0 */
/*
 * victims.h - part of oracle.c: judges `preempt` by trying every choice of victims that reference 7 allows, cheapest
 * first.
 *
 * Where reference 7, 11 and 13 leave room:
 *  V1  A gang goes whole, or its highest ranks go, as many as leave minMember, wherever they are.
 *  V2  A domain is a node, an NVLink domain, a leaf, or as many adjacent leaves or spines as the rule allows from a first one
 *      on; behind a slow leaf link it ends. Of equal cost the one that begins first.
 *  V3  A gang that may break its rule evicts so that the rule is met, and for any place at all only if no victims achieve that.
 *  V4  All members, else the minMember lowest ranks; both without victims first.
 *  V5  Of choices in one domain that cost the same any will do; the plan is the best one there, once they have gone.
 */
#ifndef FROND_TEST_VICTIMS_H
#define FROND_TEST_VICTIMS_H

#include "check.h"

enum { COSTS = 5, CHOICES_MAX = 1 << 17, DOMAINS_MAX = NODES_MAX + 1 };

struct choice { /* by entry: members that go, the highest ranks */
	signed char gone[ENTRIES_MAX];
	int cost[COSTS]; /* budgets, priority, gangs, pods, GPUs */
};

struct eviction { /* what the answer must be */
	bool placed, never, refused, relaxed, found;
	int members;
	int cost[COSTS];
	int domain; /* of domains; -1: nobody has to go */
	int domain_count;
	unsigned domains[DOMAINS_MAX];
	struct rule rule;
	int tried;
	struct choice choice; /* one of those that will do */
};

struct victim_stats {
	int fits, hopeless, never, evicting, relaxed, shrunk, budgets, fewer;
	int by_gangs[ENTRIES_MAX + 1];
	int by_rule[RULE_KINDS];
	int64_t choices;
};

static int least_members(const struct job *job)
{
	return job->min_member > 0 ? job->min_member : job->members;
}

/* ---- choices ---------------------------------------------------------------------------------------------------- */

static void cost_of(const struct instance *instance, const struct course *course, struct choice *choice)
{
	bool any = false;
	memset(choice->cost, 0, sizeof choice->cost);
	for (int e = 0; e < instance->entry_count; e++) {
		const struct job *job = &instance->entries[e];
		int gone = choice->gone[e], members = course->present[e] ? course->outcomes[e].members : 0;
		if (gone == 0)
			continue;
		choice->cost[0] += job->budgeted ? gone : 0;
		choice->cost[1] = !any || job->priority > choice->cost[1] ? job->priority : choice->cost[1];
		choice->cost[2]++;
		choice->cost[3] += gone;
		for (int rank = members - gone; rank < members; rank++)
			choice->cost[4] += job->sizes[rank];
		any = true;
	}
}

static bool may_go_of(const struct instance *instance, const struct course *course, int e, int gone)
{
	int members = course->present[e] ? course->outcomes[e].members : 0;
	return gone == 0 ||
	       (gone <= members && instance->entries[e].priority < instance->entries[instance->defrag_for].priority &&
		(gone == members || members - gone >= least_members(&instance->entries[e])));
}

static void choices_add(const struct instance *instance, const struct course *course, int e, struct choice *choice,
			struct choice *choices, int *count)
{
	if (e == instance->entry_count) {
		assert(*count < CHOICES_MAX);
		cost_of(instance, course, choice);
		choices[(*count)++] = *choice;
		return;
	}
	for (int gone = 0; gone <= MEMBERS_MAX; gone++)
		if (may_go_of(instance, course, e, gone)) {
			choice->gone[e] = (signed char)gone;
			choices_add(instance, course, e + 1, choice, choices, count);
		}
	choice->gone[e] = 0;
}

static int choice_compare(const void *a, const void *b)
{
	const struct choice *x = a, *y = b;
	int order = ints_compare(x->cost, y->cost, COSTS);
	return order != 0 ? order : memcmp(x->gone, y->gone, sizeof x->gone);
}

static struct state state_without(const struct instance *instance, const struct course *course,
				  const struct choice *choice)
{
	struct state state = course->state;
	for (int e = 0; e < instance->entry_count; e++) {
		const struct placement *placement = &course->outcomes[e].plan.placement;
		for (int i = 1; i <= choice->gone[e]; i++) {
			int rank = placement->members - i;
			if (placement->node[rank] >= 0)
				state.held[placement->node[rank]] &= ~placement->mask[rank];
		}
	}
	return state;
}

/* ---- domains ---------------------------------------------------------------------------------------------------- */

static unsigned nodes_of_leaves(const struct fabric *fabric, int first, int end)
{
	unsigned nodes = 0;
	for (int n = 0; n < fabric->node_count; n++)
		if (fabric->nodes[n].leaf >= first && fabric->nodes[n].leaf < end)
			nodes |= 1u << n;
	return nodes;
}

static unsigned run_from(const struct fabric *fabric, const struct job *job, int first, int limit)
{
	int end = first + 1;
	while (end < first + limit && end < fabric->leaf_count &&
	       fabric->leaves[end].spine == fabric->leaves[first].spine && !leaf_is_slow(fabric, job, first) &&
	       !leaf_is_slow(fabric, job, end))
		end++;
	return nodes_of_leaves(fabric, first, end);
}

static unsigned chain_from(const struct fabric *fabric, int first, int limit)
{
	unsigned nodes = 0;
	for (int n = 0; n < fabric->node_count; n++) {
		int spine = fabric->leaves[fabric->nodes[n].leaf].spine;
		if (spine >= first && spine < first + limit)
			nodes |= 1u << n;
	}
	return nodes;
}

static void domains_list(const struct fabric *fabric, const struct job *job, struct eviction *eviction)
{
	const struct rule *rule = &eviction->rule;
	unsigned *domains = eviction->domains;
	int *count = &eviction->domain_count;

	*count = 0;
	if (rule->kind == RULE_NONE)
		domains[(*count)++] = ~0u;
	for (int n = 0; n < fabric->node_count; n++) {
		unsigned domain = domain_of(fabric, n);
		if (rule->kind == RULE_SINGLE_NODE)
			domains[(*count)++] = 1u << n;
		else if (rule->kind == RULE_NVLINK_DOMAIN && (domain & -domain) == 1u << n)
			domains[(*count)++] = domain;
	}
	for (int l = 0; l < fabric->leaf_count; l++)
		if (rule->kind == RULE_SAME_LEAF || rule->kind == RULE_COMPLETE_LEAF)
			domains[(*count)++] = nodes_of_leaves(fabric, l, l + 1);
		else if (rule->kind == RULE_ADJACENT_LEAVES)
			domains[(*count)++] = run_from(fabric, job, l, rule->limit);
	for (int s = 0; rule->kind == RULE_ADJACENT_SPINES && s < fabric->spine_count; s++)
		domains[(*count)++] = chain_from(fabric, s, rule->limit);
}

/* The best plan inside a domain (P4 and 3.4, step 2, as everywhere). */
static struct outcome plan_inside(const struct gang *gang, const struct state *state, const struct rule *rule,
				  unsigned domain)
{
	struct outcome outcome = {.rule = *rule, .members = gang->members};
	unsigned preferred = nodes_named(gang->world->fabric, gang->job->preferred) & domain;

	if (preferred)
		outcome.inside = plan_under(gang, state, rule, preferred, &outcome);
	if (!outcome.inside)
		plan_under(gang, state, rule, domain, &outcome);
	return outcome;
}

static bool gpus_suffice(const struct gang *gang, const struct state *state, unsigned domain)
{
	int need = 0, free = 0;
	for (int rank = 0; rank < gang->members; rank++)
		need += gang->job->sizes[rank];
	for (int n = 0; n < gang->world->fabric->node_count; n++)
		free += domain & (1u << n) ? free_count(gang->world->fabric, state, n) : 0;
	return free >= need;
}

/* ---- the cheapest ----------------------------------------------------------------------------------------------- */

/* In the first domain in which any of the cheapest choices makes room. */
static void try_choices(const struct instance *instance, struct course *course, const struct gang *gang,
			const struct choice *choices, int count, struct eviction *eviction)
{
	for (int i = 0; i < count; i++) {
		if (eviction->found && ints_compare(choices[i].cost, eviction->cost, COSTS) != 0)
			return;
		struct state state = state_without(instance, course, &choices[i]);
		int end = eviction->found ? eviction->domain : eviction->domain_count;
		eviction->tried++;
		for (int d = 0; d < end; d++) {
			if (!gpus_suffice(gang, &state, eviction->domains[d]) ||
			    !plan_inside(gang, &state, &eviction->rule, eviction->domains[d]).placed)
				continue;
			eviction->found = true;
			eviction->domain = d;
			eviction->choice = choices[i];
			memcpy(eviction->cost, choices[i].cost, sizeof eviction->cost);
			break;
		}
	}
}

static struct choice *choices_list(const struct instance *instance, const struct course *course, int *count)
{
	struct choice choice = {{0}, {0}}, *choices = calloc(CHOICES_MAX, sizeof *choices);
	assert(choices);
	*count = 0;
	choices_add(instance, course, 0, &choice, choices, count);
	qsort(choices, (size_t)*count, sizeof *choices, choice_compare);
	return choices;
}

static bool evict_for(const struct instance *instance, struct course *course, int members, const struct choice *choices,
		      int count, struct eviction *eviction)
{
	const struct job *job = &instance->entries[instance->defrag_for];
	struct gang gang = gang_of(&course->world, job, members);
	struct rule rule = rule_of(&gang);

	if (rule.never || rule.too_wide)
		return false;
	eviction->members = members;
	eviction->rule = rule;
	eviction->relaxed = false;
	if (!rule.shapeless) {
		domains_list(&instance->fabric, job, eviction);
		try_choices(instance, course, &gang, choices, count, eviction);
	}
	if (!eviction->found && may_relax(job, &rule)) { /* V3 */
		eviction->relaxed = true;
		eviction->rule = (struct rule){.kind = RULE_NONE};
		domains_list(&instance->fabric, job, eviction);
		try_choices(instance, course, &gang, choices, count, eviction);
		eviction->rule = rule;
	}
	return eviction->found;
}

static struct eviction eviction_of(const struct instance *instance, struct course *course)
{
	const struct job *job = &instance->entries[instance->defrag_for];
	struct eviction eviction = {.domain = -1};
	struct outcome outcome = job_plan(&course->world, job, &course->state);

	eviction.members = outcome.members;
	eviction.never = outcome.rule.never;
	eviction.refused = outcome.rule.too_wide;
	eviction.placed = outcome.placed;
	if (outcome.placed)
		return eviction;
	int count;
	struct choice *choices = choices_list(instance, course, &count);
	eviction.placed = evict_for(instance, course, job->members, choices, count, &eviction) ||
			  (least_members(job) < job->members &&
			   evict_for(instance, course, least_members(job), choices, count, &eviction));
	free(choices);
	return eviction;
}

/* ---- the answer ------------------------------------------------------------------------------------------------- */

static const char *const COST_NAMES[COSTS] = {"budgets", "priority", "gangs", "pods", "gpus"};

/* Who goes, as a choice; false: not such a set. */
static bool victims_read(const struct instance *instance, const struct course *course, const cJSON *root,
			 struct choice *choice, struct complaint *complaint)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "victims"), *item;
	unsigned gone[ENTRIES_MAX] = {0};

	memset(choice, 0, sizeof *choice);
	if (!cJSON_IsArray(list))
		return complain(complaint, "the answer must have victims");
	cJSON_ArrayForEach(item, list)
	{
		const cJSON *rank = cJSON_GetObjectItemCaseSensitive(item, "rank");
		int e = job_by_name(instance, text_of(item, "job"));
		if (cJSON_GetArraySize(item) != 2 || e < 0 || !course->present[e] || !cJSON_IsNumber(rank) ||
		    rank->valueint < 0 || rank->valueint >= course->outcomes[e].members ||
		    gone[e] & (1u << rank->valueint))
			return complain(complaint, "a victim that is not running, or twice");
		gone[e] |= 1u << rank->valueint;
		choice->gone[e]++;
	}
	for (int e = 0; e < instance->entry_count; e++) {
		int members = course->present[e] ? course->outcomes[e].members : 0;
		if (!may_go_of(instance, course, e, choice->gone[e]))
			return complain(complaint, "%d of %s may not go", choice->gone[e], instance->entries[e].name);
		for (int i = 1; i <= choice->gone[e]; i++)
			if (!(gone[e] & (1u << (members - i))))
				return complain(complaint, "%s keeps a higher rank than it loses",
						instance->entries[e].name);
	}
	cost_of(instance, course, choice);
	return true;
}

static bool check_cost(const cJSON *root, const struct choice *choice, const struct eviction *eviction,
		       struct complaint *complaint)
{
	const cJSON *cost = cJSON_GetObjectItemCaseSensitive(root, "cost");
	if (cJSON_GetArraySize(cost) != COSTS)
		return complain(complaint, "the cost has %d parts", COSTS);
	for (int i = 0; i < COSTS; i++) {
		const cJSON *part = cJSON_GetObjectItemCaseSensitive(cost, COST_NAMES[i]);
		if (!cJSON_IsNumber(part) || part->valueint != choice->cost[i])
			return complain(complaint, "%s of these victims are %d", COST_NAMES[i], choice->cost[i]);
	}
	for (int i = 0; i < COSTS; i++)
		if (choice->cost[i] != eviction->cost[i])
			return complain(complaint, "%s must be %d, not %d, of %d %d %d %d %d", COST_NAMES[i],
					eviction->cost[i], choice->cost[i], eviction->cost[0], eviction->cost[1],
					eviction->cost[2], eviction->cost[3], eviction->cost[4]);
	return true;
}

/* The plan that the job has once they have gone. */
static struct outcome plan_after(const struct instance *instance, struct course *course,
				 const struct eviction *eviction, const struct choice *choice)
{
	const struct job *job = &instance->entries[instance->defrag_for];
	const struct rule none = {.kind = RULE_NONE};
	struct gang gang = gang_of(&course->world, job, eviction->members);
	struct state state = state_without(instance, course, choice);

	if (eviction->domain < 0)
		return job_plan(&course->world, job, &course->state);
	if (!eviction->relaxed)
		return plan_inside(&gang, &state, &eviction->rule, eviction->domains[eviction->domain]);
	struct outcome outcome = {.rule = eviction->rule, .members = gang.members};
	outcome.relaxed = plan_under(&gang, &state, &none, ~0u, &outcome);
	return outcome;
}

static bool check_preempt(const struct instance *instance, struct course *course, const cJSON *root,
			  struct victim_stats *stats, struct complaint *complaint)
{
	const struct job *job = &instance->entries[instance->defrag_for];
	const char *reason = text_of(root, "reason");
	struct eviction eviction = eviction_of(instance, course);
	struct choice choice;

	stats->choices += eviction.tried;
	stats->never += eviction.never;
	stats->hopeless += !eviction.placed && !eviction.never;
	stats->fits += eviction.placed && eviction.domain < 0;
	if (!eviction.placed) {
		if (!cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(root, "placed")) ||
		    cJSON_GetArraySize(root) != 2 + cJSON_HasObjectItem(root, "warnings") || !reason[0] ||
		    strchr(reason, '\n'))
			return complain(complaint, "it cannot be placed, and the answer says so with a reason");
		return eviction.refused || (strstr(reason, "never fits") != NULL) == eviction.never ||
		       complain(complaint, "capacity %s, but the reason is: %s",
				eviction.never ? "never suffices" : "suffices", reason);
	}
	if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(root, "placed")) || cJSON_GetArraySize(root) != 4)
		return complain(complaint, "it can be placed at cost %d %d %d %d %d", eviction.cost[0],
				eviction.cost[1], eviction.cost[2], eviction.cost[3], eviction.cost[4]);
	if (!victims_read(instance, course, root, &choice, complaint) ||
	    !check_cost(root, &choice, &eviction, complaint))
		return false;
	struct outcome outcome = plan_after(instance, course, &eviction, &choice);
	if (!outcome.placed)
		return complain(complaint, "these victims do not make room in the first domain of the cheapest");
	if (outcome.open) { /* of several sizes: any plan that is as good by step 3 */
		struct state state = eviction.domain < 0 ? course->state : state_without(instance, course, &choice);
		answer_adopt(&course->world, job, &state, cJSON_GetObjectItemCaseSensitive(root, "plan"), &outcome);
	}
	if (eviction.domain >= 0) {
		stats->evicting++;
		stats->relaxed += eviction.relaxed;
		stats->by_gangs[choice.cost[2]]++;
		stats->by_rule[eviction.rule.kind]++;
		stats->budgets += choice.cost[0] > 0;
		for (int e = 0; e < instance->entry_count; e++)
			if (choice.gone[e] > 0 && choice.gone[e] < course->outcomes[e].members) {
				stats->shrunk++;
				break;
			}
	}
	stats->fewer += outcome.members < job->members;
	return check_answer(&course->world, job, &outcome, cJSON_GetObjectItemCaseSensitive(root, "plan"), complaint);
}

static void victim_stats_print(const struct victim_stats *stats)
{
	printf("  %d fit already, %d never, %d hopeless, %d evict (%d relaxed, %d shrink a gang, %d against a budget): "
	       "%d one "
	       "gang, %d two, %d three; %d by minMember; %lld choices tried\n",
	       stats->fits, stats->never, stats->hopeless, stats->evicting, stats->relaxed, stats->shrunk,
	       stats->budgets, stats->by_gangs[1], stats->by_gangs[2], stats->by_gangs[3], stats->fewer,
	       (long long)stats->choices);
	for (int i = 0; i < RULE_KINDS; i++)
		printf("  evict under %-15s %d\n", RULE_NAMES[i], stats->by_rule[i]);
}

/* ---- for the self-test ------------------------------------------------------------------------------------------ */

/* The answer that brute force gives; NULL where it knows of the plan only how good it is. */
static cJSON *preempt_by_brute_force(const struct instance *instance, struct course *course)
{
	const struct job *job = &instance->entries[instance->defrag_for];
	struct eviction eviction = eviction_of(instance, course);
	cJSON *root = cJSON_CreateObject();

	cJSON_AddBoolToObject(root, "placed", eviction.placed);
	if (!eviction.placed) {
		cJSON_AddStringToObject(root, "reason", eviction.never ? "never fits" : "must wait");
		return root;
	}
	cJSON *list = cJSON_AddArrayToObject(root, "victims");
	for (int e = 0; e < instance->entry_count; e++)
		for (int i = 1; i <= eviction.choice.gone[e]; i++) {
			cJSON *victim = cJSON_CreateObject();
			cJSON_AddItemToArray(list, victim);
			cJSON_AddStringToObject(victim, "job", instance->entries[e].name);
			cJSON_AddNumberToObject(victim, "rank", course->outcomes[e].members - i);
		}
	cJSON *cost = cJSON_AddObjectToObject(root, "cost");
	for (int i = 0; i < COSTS; i++)
		cJSON_AddNumberToObject(cost, COST_NAMES[i], eviction.cost[i]);
	struct outcome outcome = plan_after(instance, course, &eviction, &eviction.choice);
	if (outcome.open) {
		cJSON_Delete(root);
		return NULL;
	}
	cJSON_AddItemToObject(root, "plan", answer_of(&course->world, job, &outcome));
	return root;
}

enum { PREEMPT_SPOILINGS = 5 };

/* Not placed, a victim less, one more GPU in the cost, another node in the plan, a plan that is relaxed. */
static bool spoil_preempt(cJSON *root, int how)
{
	cJSON *plan = cJSON_GetObjectItem(root, "plan"), *list = cJSON_GetObjectItem(root, "victims");

	if (!plan)
		return false;
	if (how == 0)
		return cJSON_ReplaceItemInObject(root, "placed", cJSON_CreateFalse());
	if (how == 1 && list->child) {
		cJSON_DeleteItemFromArray(list, 0);
		return true;
	}
	if (how == 2) {
		cJSON *cost = cJSON_GetObjectItem(root, "cost");
		return cJSON_ReplaceItemInObject(cost, "gpus",
						 cJSON_CreateNumber(cJSON_GetObjectItem(cost, "gpus")->valueint + 1));
	}
	cJSON *member = cJSON_GetObjectItem(plan, "members")->child;
	if (how == 3 && member)
		return cJSON_ReplaceItemInObject(member, "node", cJSON_CreateString("node-0"));
	if (how == 4)
		return cJSON_ReplaceItemInObject(plan, "rule", cJSON_CreateString("some other"));
	return false;
}

#endif
