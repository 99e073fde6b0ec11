/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer.h - part of oracle.c: reads the simulator's answer (spec 11) and says what is wrong with it.
 *
 * Every check returns true when all is well; otherwise it has put one sentence into the complaint.
 *
 * More literal readings (see rules.h for R1 to R9):
 *  A1  minMember below members: all members are planned if they can be, relaxed if need be; else the minMember lowest
 *      ranks are planned as a gang of that size, with the rule of that size.
 *  A2  A wrong gpu-count is an answer: placed false with a reason. It is compared with all members' GPUs.
 *  A3  remove of a job that was not placed gives nothing back and is no error.
 *  A4  A preferred-domain that names nothing leaves the answer as if it were not there.
 */
#ifndef FROND_TEST_ANSWER_H
#define FROND_TEST_ANSWER_H

#include <limits.h>
#include <stdarg.h>

#include <cjson/cJSON.h>

#include "instance.h"
#include "rules.h"

enum { COMPLAINT_SIZE = 512 };

struct complaint {
	char text[COMPLAINT_SIZE];
};

struct placement { /* the members of an answer, after their hard rules were checked */
	int members;
	int node[MEMBERS_MAX];
	unsigned mask[MEMBERS_MAX];
	int counts[NODES_MAX];
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

/* ---- A: hard rules ---------------------------------------------------------------------------------------------- */

static int node_by_name(const struct fabric *fabric, const char *name)
{
	for (int n = 0; n < fabric->node_count; n++)
		if (strcmp(fabric->nodes[n].name, name) == 0)
			return n;
	return -1;
}

/* One member's GPUs: as many as asked, each once, in range, free and healthy. *taken grows by them. */
static bool check_gpus(const struct node *node, const cJSON *gpus, int size, unsigned *taken, unsigned *mask,
		       struct complaint *complaint)
{
	const cJSON *item;

	if (!cJSON_IsArray(gpus) || cJSON_GetArraySize(gpus) != size)
		return complain(complaint, "a member on %s has %d GPUs, not %d", node->name, cJSON_GetArraySize(gpus),
				size);
	cJSON_ArrayForEach(item, gpus)
	{
		int gpu = cJSON_IsNumber(item) ? item->valueint : -1;
		if (gpu < 0 || gpu >= node->gpus || item->valuedouble != gpu)
			return complain(complaint, "%s has no GPU %d", node->name, gpu);
		unsigned bit = 1u << gpu;
		if (*taken & bit)
			return complain(complaint, "GPU %d of %s is given twice", gpu, node->name);
		if (node->used_mask & bit)
			return complain(complaint, "GPU %d of %s is in use", gpu, node->name);
		if (node->unhealthy_mask & bit)
			return complain(complaint, "GPU %d of %s is unhealthy", gpu, node->name);
		*taken |= bit;
		*mask |= bit;
	}
	return true;
}

static bool check_member(const struct fabric *fabric, const struct job *job, const cJSON *member, int rank,
			 struct state *after, struct placement *placement, struct complaint *complaint)
{
	const cJSON *rank_item = cJSON_GetObjectItemCaseSensitive(member, "rank");
	char domain[2 * NAME_SIZE + 2];

	if (!cJSON_IsNumber(rank_item) || rank_item->valueint != rank)
		return complain(complaint, "member %d does not have rank %d", rank, rank);
	int n = node_by_name(fabric, text_of(member, "node"));
	if (n < 0)
		return complain(complaint, "rank %d is on unknown node \"%s\"", rank, text_of(member, "node"));
	const struct node *node = &fabric->nodes[n];
	const struct leaf *leaf = &fabric->leaves[node->leaf];
	if (node->cordoned)
		return complain(complaint, "rank %d is on cordoned node %s", rank, node->name);
	if (!node_admits(node, job))
		return complain(complaint, "rank %d is on %s, whose uplink is too slow", rank, node->name);
	snprintf(domain, sizeof domain, "%s/%s", fabric->spine_names[leaf->spine], leaf->name);
	if (strcmp(text_of(member, "domain"), domain) != 0)
		return complain(complaint, "rank %d on %s has domain \"%s\", not %s", rank, node->name,
				text_of(member, "domain"), domain);
	placement->node[rank] = n;
	placement->counts[n]++;
	return check_gpus(node, cJSON_GetObjectItemCaseSensitive(member, "gpus"), job->sizes[rank], &after->taken[n],
			  &placement->mask[rank], complaint);
}

static bool check_members(const struct fabric *fabric, const struct state *state, const struct job *job,
			  const cJSON *answer, int members, struct placement *placement, struct complaint *complaint)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(answer, "members");
	struct state after = *state;

	memset(placement, 0, sizeof *placement);
	placement->members = members;
	if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != members)
		return complain(complaint, "the answer has %d members, not %d", cJSON_GetArraySize(list), members);
	for (int rank = 0; rank < members; rank++)
		if (!check_member(fabric, job, cJSON_GetArrayItem(list, rank), rank, &after, placement, complaint))
			return false;
	return true;
}

/* names_used[i] NULL: position i of the fabric is not in use and must not be listed. */
static bool check_list(const cJSON *answer, const char *key, const char *const *names_used, int count,
		       struct complaint *complaint)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(answer, key);
	const cJSON *item = cJSON_IsArray(list) ? list->child : NULL;

	for (int i = 0; i < count; i++) {
		if (!names_used[i])
			continue;
		const char *listed = cJSON_GetStringValue(item);
		if (!listed || strcmp(listed, names_used[i]) != 0)
			return complain(complaint, "\"%s\" has \"%s\" where %s belongs", key, listed ? listed : "",
					names_used[i]);
		item = item->next;
	}
	return item ? complain(complaint, "\"%s\" lists more than the members use", key) : true;
}

static bool check_lists(const struct fabric *fabric, const struct placement *placement, const cJSON *answer,
			struct complaint *complaint)
{
	const char *spines[SPINES_MAX] = {NULL};
	const char *leaves[LEAVES_MAX] = {NULL};

	for (int rank = 0; rank < placement->members; rank++) {
		int leaf = fabric->nodes[placement->node[rank]].leaf;
		leaves[leaf] = fabric->leaves[leaf].name;
		spines[fabric->leaves[leaf].spine] = fabric->spine_names[fabric->leaves[leaf].spine];
	}
	return check_list(answer, "spines", spines, fabric->spine_count, complaint) &&
	       check_list(answer, "leaves", leaves, fabric->leaf_count, complaint);
}

/* ---- D: each rank takes the first chosen node in fabric order that has a place of its size ---------------------- */

static bool check_rank_order(const struct fabric *fabric, const struct job *job, const struct placement *placement,
			     struct complaint *complaint)
{
	for (int rank = 0; rank < placement->members; rank++)
		for (int later = rank + 1; later < placement->members; later++)
			if (job->sizes[later] == job->sizes[rank] && placement->node[later] < placement->node[rank])
				return complain(complaint, "rank %d is on %s although rank %d has the earlier %s", rank,
						fabric->nodes[placement->node[rank]].name, later,
						fabric->nodes[placement->node[later]].name);
	return true;
}

/* ---- B and C: gangs of equal members ---------------------------------------------------------------------------- */

static bool check_reason(const cJSON *answer, struct complaint *complaint)
{
	const char *reason = text_of(answer, "reason");
	if (strlen(reason) < 10 || strchr(reason, '\n'))
		return complain(complaint, "the reason is not one sentence: \"%s\"", reason);
	return true;
}

/* Not placed, and brute force agrees: the reason says whether another day would help. */
static bool check_refusal(const struct job *job, const struct expected *expected, const cJSON *answer,
			  struct complaint *complaint)
{
	bool says_never = strstr(text_of(answer, "reason"), "never fits") != NULL;

	if (!check_reason(answer, complaint))
		return false;
	if (job->min_member > 0 || expected->rule.too_wide) /* which gang "never" is said of is open there */
		return true;
	if (says_never != expected->rule.never)
		return complain(complaint, "capacity %s, but the reason is: %s",
				expected->rule.never ? "never suffices" : "suffices", text_of(answer, "reason"));
	return true;
}

static bool check_rule_words(const struct expected *expected, const cJSON *answer, struct complaint *complaint)
{
	const cJSON *relaxed = cJSON_GetObjectItemCaseSensitive(answer, "relaxed");
	const char *name = RULE_NAMES[expected->rule.kind];

	if (strcmp(text_of(answer, "rule"), name) != 0)
		return complain(complaint, "the rule is \"%s\", not \"%s\"", name, text_of(answer, "rule"));
	if (!cJSON_IsBool(relaxed) || cJSON_IsTrue(relaxed) != expected->relaxed)
		return complain(complaint, "\"relaxed\" must be %s: the rule %s be met today",
				expected->relaxed ? "true" : "false", expected->relaxed ? "cannot" : "can");
	return true;
}

static bool check_best(const struct fabric *fabric, const struct job *job, const struct expected *expected,
		       const struct placement *placement, struct complaint *complaint)
{
	struct facts facts = facts_of(fabric, job, placement->counts);
	const int *best = expected->best.key;
	int key[KEY_LENGTH];

	if (!facts.links_admit)
		return complain(complaint, "the gang crosses a leaf link that is too slow");
	if (!expected->relaxed && !rule_is_met(&expected->rule, &facts))
		return complain(complaint,
				"the rule \"%s\" (at most %d) is broken: %d spines, %d leaves, %d runs, %d nodes",
				RULE_NAMES[expected->rule.kind], expected->rule.limit, facts.spines, facts.leaves,
				facts.runs, facts.nodes);
	if (expected->inside && !facts.inside)
		return complain(complaint, "the gang fits into %s but is not there", job->preferred);
	strategy_key(job, &facts, key);
	if (keys_compare(key, best, expected->depth) > 0)
		return complain(complaint, "%s: the answer has (%d, %d, %d, %d), the best is (%d, %d, %d, %d)",
				STRATEGY_NAMES[job->strategy], key[0], key[1], key[2], key[3], best[0], best[1],
				best[2], best[3]);
	/* Better than the best of all would be a mistake of ours, or a rule that we missed. */
	if (keys_compare(key, best, expected->depth) < 0)
		return complain(complaint, "the answer is better than brute force allows");
	return true;
}

static bool check_equal(const struct fabric *fabric, const struct state *state, const struct job *job,
			const struct expected *expected, int members, const cJSON *answer, struct placement *placement,
			struct complaint *complaint)
{
	if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(answer, "placed"))) {
		if (expected->placed)
			return complain(complaint, "not placed, although %s",
					expected->relaxed ? "a relaxed placement exists" : "a placement exists");
		return check_refusal(job, expected, answer, complaint);
	}
	if (!expected->placed)
		return complain(complaint, "placed, although no placement is allowed (rule \"%s\"%s%s)",
				RULE_NAMES[expected->rule.kind], expected->rule.never ? ", never fits" : "",
				expected->rule.too_wide ? ", wider than latency-sensitive allows" : "");
	return check_members(fabric, state, job, answer, members, placement, complaint) &&
	       check_lists(fabric, placement, answer, complaint) && check_rule_words(expected, answer, complaint) &&
	       check_best(fabric, job, expected, placement, complaint) &&
	       check_rank_order(fabric, job, placement, complaint);
}

/* ---- E: gangs of mixed members, one direction only -------------------------------------------------------------- */

struct mixed { /* GPUs of the nodes that admit a member, whatever its size */
	int free, ever;
	int ever_node_max, ever_leaf_max;
};

static struct mixed mixed_of(const struct fabric *fabric, const struct state *state, const struct job *job)
{
	struct mixed mixed = {0};
	int of_leaf[LEAVES_MAX] = {0};

	for (int n = 0; n < fabric->node_count; n++) {
		const struct node *node = &fabric->nodes[n];
		if (!node_admits(node, job))
			continue;
		mixed.free += node->cordoned ? 0 : mask_count(node_free_mask(node, state->taken[n]));
		mixed.ever += node->gpus;
		of_leaf[node->leaf] += node->gpus;
		if (node->gpus > mixed.ever_node_max)
			mixed.ever_node_max = node->gpus;
		if (of_leaf[node->leaf] > mixed.ever_leaf_max)
			mixed.ever_leaf_max = of_leaf[node->leaf];
	}
	return mixed;
}

static enum rule_kind rule_by_name(const char *name)
{
	int kind = 0;
	while (kind < RULE_KINDS && strcmp(RULE_NAMES[kind], name) != 0)
		kind++;
	return (enum rule_kind)kind;
}

/* How many leaves or spines the rule allows is not known here, so only what holds for any number is checked. */
static bool check_mixed_rule(const struct fabric *fabric, const struct job *job, const struct mixed *mixed,
			     const struct placement *placement, const cJSON *answer, struct complaint *complaint)
{
	struct facts facts = facts_of(fabric, job, placement->counts);
	struct rule rule = {.kind = rule_by_name(text_of(answer, "rule")), .limit = INT_MAX};
	struct rule least = {.kind = rule.kind, .limit = 1};
	bool relaxed = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(answer, "relaxed"));
	bool ignore = job->mode == MODE_IGNORE && !job->latency_sensitive;
	bool packs = job->strategy != STRATEGY_DISTRIBUTED || job->latency_sensitive;
	int total = job_total_gpus(job);

	if (rule.kind == RULE_KINDS || ignore != (rule.kind == RULE_NONE))
		return complain(complaint, "the rule cannot be \"%s\"", text_of(answer, "rule"));
	if (!facts.links_admit)
		return complain(complaint, "the gang crosses a leaf link that is too slow");
	if (packs && !ignore && (mixed->ever_node_max >= total) != (rule.kind == RULE_SINGLE_NODE))
		return complain(complaint, "the rule is \"%s\", but the largest node has %d GPUs for %d",
				text_of(answer, "rule"), mixed->ever_node_max, total);
	if ((rule.kind == RULE_SAME_LEAF || rule.kind == RULE_COMPLETE_LEAF) && mixed->ever_leaf_max < total)
		return complain(complaint, "the rule is \"%s\", but no leaf has %d GPUs", text_of(answer, "rule"),
				total);
	if (job->latency_sensitive && rule.kind > RULE_COMPLETE_LEAF)
		return complain(complaint, "latency-sensitive, but the rule is wider than a leaf");
	if (!relaxed && !rule_is_met(&rule, &facts))
		return complain(complaint, "the rule \"%s\" is broken and \"relaxed\" does not say so",
				text_of(answer, "rule"));
	if (relaxed && rule_is_met(&least, &facts))
		return complain(complaint, "\"relaxed\", but the rule \"%s\" is met", text_of(answer, "rule"));
	if (relaxed && job->latency_sensitive)
		return complain(complaint, "\"relaxed\", but latency-sensitive never is");
	if (relaxed && job->mode == MODE_REQUIRED && rule.kind != RULE_ADJACENT_SPINES)
		return complain(complaint, "\"relaxed\", but the job is Required");
	return true;
}

static bool check_mixed(const struct fabric *fabric, const struct state *state, const struct job *job,
			const cJSON *answer, struct placement *placement, struct complaint *complaint)
{
	struct mixed mixed = mixed_of(fabric, state, job);
	int total = job_total_gpus(job);

	if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(answer, "placed"))) {
		if (mixed.ever < total && !strstr(text_of(answer, "reason"), "never fits"))
			return complain(complaint, "capacity never suffices, but the reason is: %s",
					text_of(answer, "reason"));
		return check_reason(answer, complaint);
	}
	if (mixed.free < total)
		return complain(complaint, "placed, although only %d GPUs are free for %d", mixed.free, total);
	return check_members(fabric, state, job, answer, job->members, placement, complaint) &&
	       check_lists(fabric, placement, answer, complaint) &&
	       check_mixed_rule(fabric, job, &mixed, placement, answer, complaint) &&
	       check_rank_order(fabric, job, placement, complaint);
}

#endif
