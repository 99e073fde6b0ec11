/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selftest.h - part of oracle.c: a check that cannot fail is worthless, so each one is shown a wrong answer.
 *
 * First a table of answers made by hand, right ones and wrong ones; then random instances that brute force answers
 * itself (these must pass) and whose answers are then spoilt in one place (these must be caught).
 */
#ifndef FROND_TEST_SELFTEST_H
#define FROND_TEST_SELFTEST_H

#include "check.h"
#include "files.h"

/* ---- answers from short lines ----------------------------------------------------------------------------------- */

static cJSON *answer_list(const char *const *names, int count)
{
	cJSON *list = cJSON_CreateArray();
	for (int i = 0; i < count; i++)
		if (names[i])
			cJSON_AddItemToArray(list, cJSON_CreateString(names[i]));
	return list;
}

static cJSON *answer_refused(const char *name, const char *reason)
{
	cJSON *answer = cJSON_CreateObject();
	cJSON_AddStringToObject(answer, "name", name);
	cJSON_AddBoolToObject(answer, "placed", false);
	cJSON_AddStringToObject(answer, "reason", reason);
	return answer;
}

static void add_member(cJSON *members, const struct fabric *fabric, int rank, const struct node *node, cJSON *gpus)
{
	const struct leaf *leaf = &fabric->leaves[node->leaf];
	cJSON *member = cJSON_CreateObject();
	char domain[2 * NAME_SIZE + 2];

	snprintf(domain, sizeof domain, "%s/%s", fabric->spine_names[leaf->spine], leaf->name);
	cJSON_AddNumberToObject(member, "rank", rank);
	cJSON_AddStringToObject(member, "node", node->name);
	cJSON_AddStringToObject(member, "domain", domain);
	cJSON_AddItemToObject(member, "gpus", gpus);
	cJSON_AddItemToArray(members, member);
}

/* gpus[rank] becomes part of the answer. */
static cJSON *answer_placed(const struct fabric *fabric, const char *name, const char *rule, bool relaxed, int members,
			    const int *nodes, cJSON **gpus)
{
	const char *spines[SPINES_MAX] = {NULL};
	const char *leaves[LEAVES_MAX] = {NULL};
	cJSON *answer = cJSON_CreateObject();
	cJSON *list = cJSON_CreateArray();

	for (int rank = 0; rank < members; rank++) {
		int leaf = fabric->nodes[nodes[rank]].leaf;
		leaves[leaf] = fabric->leaves[leaf].name;
		spines[fabric->leaves[leaf].spine] = fabric->spine_names[fabric->leaves[leaf].spine];
		add_member(list, fabric, rank, &fabric->nodes[nodes[rank]], gpus[rank]);
	}
	cJSON_AddStringToObject(answer, "name", name);
	cJSON_AddBoolToObject(answer, "placed", true);
	cJSON_AddStringToObject(answer, "rule", rule);
	cJSON_AddBoolToObject(answer, "relaxed", relaxed);
	cJSON_AddItemToObject(answer, "spines", answer_list(spines, SPINES_MAX));
	cJSON_AddItemToObject(answer, "leaves", answer_list(leaves, LEAVES_MAX));
	cJSON_AddItemToObject(answer, "members", list);
	return answer;
}

static cJSON *digit_list(const char *digits)
{
	cJSON *list = cJSON_CreateArray();
	for (; *digits; digits++)
		cJSON_AddItemToArray(list, cJSON_CreateNumber(*digits - '0'));
	return list;
}

/* "same leaf|a1 a2:0123", "complete leaf, relaxed|a1 b1", "no|reason"; without GPUs a member has 0 to 3. */
static cJSON *answer_from_line(const struct fabric *fabric, const char *name, const char *line)
{
	char text[256];
	int nodes[MEMBERS_MAX], members = 0;
	cJSON *gpus[MEMBERS_MAX];

	snprintf(text, sizeof text, "%s", line);
	char *rest = strchr(text, '|');
	*rest++ = '\0';
	if (strcmp(text, "no") == 0)
		return answer_refused(name, rest);
	char *relaxed = strstr(text, ", relaxed");
	if (relaxed)
		*relaxed = '\0';
	for (char *save = NULL, *word = strtok_r(rest, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		char *digits = strchr(word, ':');
		if (digits)
			*digits++ = '\0';
		nodes[members] = node_by_name(fabric, word);
		assert(nodes[members] >= 0);
		gpus[members++] = digit_list(digits ? digits : "0123");
	}
	return answer_placed(fabric, name, text, relaxed != NULL, members, nodes, gpus);
}

/* ---- the hand-made cluster -------------------------------------------------------------------------------------- */

/*
 * spine-1: leaf-10 (a1 a2 a3), leaf-2 (b1 b2), leaf-3 (c1);  spine-2: leaf-4 (d1 d2);  spine-3: leaf-5 (e1), leaf-6 (f1)
 * Four GPUs each. By capacity and whole nodes: 2 = same leaf, 3 = complete leaf, 4 and 5 = two adjacent leaves,
 * 6 = three, 7 and 8 = two adjacent spines, 10 = all.
 */
static struct fabric hand_fabric(void)
{
	static const struct leaf leaves[] = {{"leaf-10", 0, 0}, {"leaf-2", 0, 0}, {"leaf-3", 0, 0},
					     {"leaf-4", 1, 0},  {"leaf-5", 2, 0}, {"leaf-6", 2, 0}};
	static const char *const nodes[] = {"a1", "a2", "a3", "b1", "b2", "c1", "d1", "d2", "e1", "f1"};
	struct fabric fabric = {.spine_count = 3, .leaf_count = 6, .node_count = 10, .default_gpus = 4};

	memcpy(fabric.leaves, leaves, sizeof leaves);
	for (int s = 0; s < 3; s++)
		snprintf(fabric.spine_names[s], NAME_SIZE, "spine-%d", s + 1);
	for (int n = 0; n < fabric.node_count; n++) {
		snprintf(fabric.nodes[n].name, NAME_SIZE, "%s", nodes[n]);
		fabric.nodes[n].leaf = nodes[n][0] - 'a';
		fabric.nodes[n].gpus = 4;
	}
	return fabric;
}

/* One word of a case's circumstances, "key=value". */
static void hand_apply(struct instance *instance, const char *key, const char *value)
{
	struct fabric *fabric = &instance->fabric;
	struct job *job = &instance->entries[0];
	int n = node_by_name(fabric, value);

	if (strcmp(key, "cordon") == 0)
		fabric->nodes[n].cordoned = true;
	else if (strcmp(key, "full") == 0)
		fabric->nodes[n].used_mask = 15;
	else if (strcmp(key, "used0") == 0)
		fabric->nodes[n].used_mask = 1;
	else if (strcmp(key, "sick0") == 0)
		fabric->nodes[n].unhealthy_mask = 1;
	else if (strcmp(key, "small") == 0)
		fabric->nodes[n].gpus = 2;
	else if (strcmp(key, "slow") == 0 && n >= 0)
		fabric->nodes[n].uplink_gbps = 100;
	else if (strcmp(key, "slow") == 0)
		fabric->leaves[strcmp(value, "leaf-10") == 0 ? 0 : 1].uplink_gbps = 100;
	else if (strcmp(key, "floor") == 0)
		job->floor_gbps = (int)strtol(value, NULL, 10);
	else if (strcmp(key, "prefer") == 0)
		snprintf(job->preferred, NAME_SIZE, "%s", value);
	else if (strcmp(key, "latency") == 0)
		job->latency_sensitive = true;
	else if (strcmp(key, "min") == 0)
		job->min_member = (int)strtol(value, NULL, 10);
	else if (strcmp(key, "count") == 0)
		job->gpu_count = (int)strtol(value, NULL, 10);
	else if (strcmp(key, "sizes") == 0)
		for (int rank = 0; value[rank]; rank++)
			job->sizes[rank] = value[rank] - '0';
	else
		assert(!"a word of a case is not known");
}

/* "2x4 Required balanced cordon=a1 …": members, GPUs each, mode and strategy by first letter, circumstances. */
static struct instance hand_instance(const char *line)
{
	struct instance instance = {.fabric = hand_fabric(), .entry_count = 1};
	struct job *job = &instance.entries[0];
	char text[128];

	snprintf(text, sizeof text, "%s", line);
	job->removes = -1;
	snprintf(job->name, NAME_SIZE, "job");
	job->members = text[0] - '0';
	for (int rank = 0; rank < job->members; rank++)
		job->sizes[rank] = text[2] - '0';
	job->mode = text[4] == 'R' ? MODE_REQUIRED : text[4] == 'P' ? MODE_PREFERRED : MODE_IGNORE;
	job->strategy = text[5] == 'c'   ? STRATEGY_CONSOLIDATED
			: text[5] == 'b' ? STRATEGY_BALANCED
					 : STRATEGY_DISTRIBUTED;
	for (char *save = NULL, *word = strtok_r(text + 6, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		char *value = strchr(word, '=');
		*value++ = '\0';
		hand_apply(&instance, word, value);
	}
	return instance;
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

struct hand_case {
	const char *title;
	const char *job;    /* MEMBERSxGPUS, a space, mode R P I and strategy c b d, circumstances */
	const char *answer; /* see answer_from_line */
	const char *from;   /* spoils the answer's text: from becomes to */
	const char *to;
	const char *caught; /* in the complaint; NULL: the answer is right */
};

static const struct hand_case HAND_CASES[] = {
	/* right answers */
	{"two nodes in one leaf", "2x4 Rb", "same leaf|b1 b2", 0, 0, 0},
	{"a complete leaf", "3x4 Rb", "complete leaf|a1 a2 a3", 0, 0, 0},
	{"adjacent leaves in the file's order", "4x4 Rc", "adjacent leaves|a1 a2 b1 b2", 0, 0, 0},
	{"three adjacent leaves", "6x4 Rb", "adjacent leaves|a1 a2 a3 b1 b2 c1", 0, 0, 0},
	{"adjacent spines", "7x4 Rb", "adjacent spines|a1 a2 a3 b1 b2 d1 d2", 0, 0, 0},
	{"one node for two members", "2x2 Rb", "single node|b1:01 b1:23", 0, 0, 0},
	{"relaxed keeps the missed rule", "3x4 Pb full=a1", "complete leaf, relaxed|a2 a3 b2", 0, 0, 0},
	{"Preferred that need not relax", "2x4 Pb full=a1", "same leaf|d1 d2", 0, 0, 0},
	{"waits", "3x4 Rb full=a1", "no|needs 3 nodes in one leaf", 0, 0, 0},
	{"never fits", "8x8 Rb", "no|never fits: no node has 8 GPUs", 0, 0, 0},
	{"Ignore has no rule", "2x4 Ib", "none|d1 d2", 0, 0, 0},
	{"distributed over two nodes of a leaf", "2x2 Rd", "same leaf|b1:01 b2:23", 0, 0, 0},
	{"distributed may double up inside its leaf", "3x2 Rd full=a1", "complete leaf|a2:01 a2:23 a3:01", 0, 0, 0},
	{"preferred leaf", "2x4 Rb prefer=leaf-4", "same leaf|d1 d2", 0, 0, 0},
	{"preferred leaf without room", "2x4 Rb prefer=leaf-4 full=d1", "same leaf|a1 a3", 0, 0, 0},
	{"unknown domain", "2x4 Rb prefer=leaf-77", "same leaf|a1 a2", 0, 0, 0},
	{"a slow leaf is not crossed", "4x4 Rb floor=200 slow=leaf-10", "adjacent spines|b1 b2 d1 d2", 0, 0, 0},
	{"a slow leaf may hold all", "3x4 Rb floor=200 slow=leaf-10", "complete leaf|a1 a2 a3", 0, 0, 0},
	{"no such shape", "8x4 Rb small=b1 small=b2", "adjacent spines, relaxed|a1 a2 a3 c1 d1 d2 e1 f1", 0, 0, 0},
	{"latency-sensitive", "2x2 Rd latency=1", "single node|a1:01 a1:23", 0, 0, 0},
	{"too wide for latency-sensitive", "4x4 Pb latency=1", "no|needs 4 nodes, a leaf has 3", 0, 0, 0},
	{"latency-sensitive is Required", "2x2 Ib latency=1", "single node|a1:01 a1:23", 0, 0, 0},
	{"latency-sensitive never relaxes", "3x4 Pb latency=1 full=a1", "no|needs 3 nodes in one leaf", 0, 0, 0},
	{"no more spines than by capacity", "8x4 Rb full=d1", "no|needs 8 nodes in 2 adjacent spines", 0, 0, 0},
	{"three adjacent spines, not two others", "8x4 Rb small=d2", "adjacent spines|a1 a2 a3 b1 b2 d1 e1 f1", 0, 0,
	 0},
	{"minMember", "3x4 Rb min=2 full=a1", "same leaf|a2 a3", 0, 0, 0},
	{"wrong gpu-count", "2x4 Rb count=9", "no|gpu-count is 9, the limits say 8", 0, 0, 0},
	{"mixed sizes", "3x4 Rb sizes=424", "same leaf|a1 a2:01 a3", 0, 0, 0},
	/* A: hard rules */
	{"a GPU twice in a member", "2x4 Rb", "same leaf|b1:0012 b2", 0, 0, "given twice"},
	{"a GPU in two members", "2x2 Rb", "single node|b1:01 b1:12", 0, 0, "given twice"},
	{"a GPU in use", "2x2 Rb used0=b1", "single node|b1:01 b1:23", 0, 0, "is in use"},
	{"an unhealthy GPU", "1x2 Rb sick0=b1", "single node|b1:01", 0, 0, "is unhealthy"},
	{"a GPU that is not there", "1x2 Rb small=b1", "single node|b1:02", 0, 0, "has no GPU 2"},
	{"too few GPUs", "1x2 Rb", "single node|b1:0", 0, 0, "has 1 GPUs, not 2"},
	{"a cordoned node", "2x4 Rb cordon=b1", "same leaf|b1 b2", 0, 0, "cordoned"},
	{"a slow node", "2x4 Rb floor=200 slow=b1", "same leaf|b1 b2", 0, 0, "uplink is too slow"},
	{"a slow leaf link", "4x4 Ib floor=200 slow=leaf-2", "none|a1 a2 a3 b1", 0, 0, "leaf link"},
	{"an unknown node", "1x4 Rb", "single node|b1", "\"b1\"", "\"b9\"", "unknown node"},
	{"a wrong domain", "1x4 Rb", "single node|b1", "spine-1/leaf-2", "spine-2/leaf-2", "domain"},
	{"a member missing", "2x4 Rb", "same leaf|b1", 0, 0, "1 members, not 2"},
	{"a wrong rank", "2x4 Rb", "same leaf|b1 b2", "\"rank\":1", "\"rank\":2", "rank"},
	{"a leaf not listed", "4x4 Rb", "adjacent leaves|a1 a2 a3 b1", ",\"leaf-2\"]", "]", "\"leaves\""},
	{"a spine too many", "1x4 Rb", "single node|b1", "[\"spine-1\"", "[\"spine-1\",\"spine-2\"", "lists more"},
	{"leaves in natural order", "4x4 Rb", "adjacent leaves|a1 a2 a3 b1", "\"leaf-10\",\"leaf-2\"",
	 "\"leaf-2\",\"leaf-10\"", "\"leaves\""},
	{"another job's name", "1x4 Rb", "single node|b1", "\"job\"", "\"bob\"", "is for"},
	{"an answer too many", "1x4 Rb", "single node|b1", "]}]}]}", "]}]},{}]}", "more answers"},
	{"no answer", "1x4 Rb", "single node|b1", "\"jobs\"", "\"yobs\"", "no answer"},
	/* B: the rule, and whether it can be met */
	{"complete leaf called same leaf", "3x4 Rb", "same leaf|a1 a2 a3", 0, 0, "the rule is"},
	{"same leaf called complete leaf", "2x4 Rb", "complete leaf|b1 b2", 0, 0, "the rule is"},
	{"a rule under Ignore", "2x4 Ib", "same leaf|b1 b2", 0, 0, "the rule is"},
	{"relaxed for nothing", "2x4 Pb", "same leaf, relaxed|b1 b2", 0, 0, "\"relaxed\" must be false"},
	{"relaxed and not said", "3x4 Pb full=a1", "complete leaf|a2 a3 b2", 0, 0, "\"relaxed\" must be true"},
	{"not placed though feasible", "3x4 Rb", "no|needs 3 nodes in one leaf", 0, 0, "not placed"},
	{"not placed though it may relax", "3x4 Pb full=a1", "no|needs 3 nodes in one leaf", 0, 0, "not placed"},
	{"not placed though in no such shape", "8x4 Rb small=b1 small=b2", "no|needs 8 nodes somewhere", 0, 0,
	 "not placed"},
	{"Required broken", "3x4 Rb full=a1", "complete leaf, relaxed|a2 a3 b2", 0, 0, "no placement is allowed"},
	{"latency-sensitive broken", "4x4 Pb latency=1", "same leaf|a1 a2 a3 b1", 0, 0, "no placement is allowed"},
	{"two leaves for one", "2x4 Rb", "same leaf|a1 b1", 0, 0, "is broken"},
	{"two nodes for one", "2x2 Rb", "single node|a1:01 a2:01", 0, 0, "is broken"},
	{"leaves that are not adjacent", "4x4 Rb", "adjacent leaves|a1 a2 a3 c1", 0, 0, "is broken"},
	{"more leaves than r", "4x4 Rb", "adjacent leaves|a1 a2 b1 c1", 0, 0, "is broken"},
	{"two spines for one", "4x4 Rb", "adjacent leaves|a1 a2 a3 d1", 0, 0, "is broken"},
	{"spines that are not adjacent", "8x4 Rb", "adjacent spines|a1 a2 a3 b1 b2 c1 e1 f1", 0, 0, "is broken"},
	{"two runs in a spine", "6x4 Rb small=b1", "adjacent spines|a1 a2 a3 c1 d1 d2", 0, 0, "is broken"},
	{"never fits and not said", "8x8 Rb", "no|needs 8 nodes somewhere", 0, 0, "never suffices"},
	{"never fits said of a bad day", "3x4 Rb full=a1", "no|never fits anywhere", 0, 0, "capacity suffices"},
	{"no reason", "3x4 Rb full=a1", "no|", 0, 0, "one sentence"},
	{"a reason of two lines", "3x4 Rb full=a1", "no|needs three\nnodes", 0, 0, "one sentence"},
	{"all or nothing less than minMember", "3x4 Rb min=2 full=a1", "same leaf|a2", 0, 0, "1 members, not 2"},
	{"placed by a wrong gpu-count", "2x4 Rb count=9", "same leaf|b1 b2", 0, 0, "gpu-count"},
	/* C: steps 2 and 3 */
	{"preferred leaf passed by", "2x4 Rb prefer=leaf-4", "same leaf|a1 a2", 0, 0, "fits into leaf-4"},
	{"preferred spine passed by under Ignore", "2x4 Ib prefer=spine-3", "none|a1 a2", 0, 0, "fits into spine-3"},
	{"Ignore over two leaves", "2x4 Ib", "none|a1 b1", 0, 0, "the best is"},
	{"more leaves than adjacent spines need", "7x4 Rb", "adjacent spines|a1 a2 a3 b1 b2 c1 d2", 0, 0,
	 "the best is"},
	{"relaxed over two spines", "3x4 Pb full=a1", "complete leaf, relaxed|a2 a3 d1", 0, 0, "the best is"},
	{"relaxed in two runs", "3x4 Pb full=a1", "complete leaf, relaxed|a2 a3 c1", 0, 0, "the best is"},
	{"consolidated over three nodes", "3x2 Rc", "same leaf|a1:01 a2:01 a3:01", 0, 0, "the best is"},
	{"distributed on one node", "2x2 Rd", "same leaf|a1:01 a1:23", 0, 0, "the best is"},
	{"distributed on one leaf under Ignore", "2x2 Id", "none|a1:01 a2:01", 0, 0, "the best is"},
	/* D: rank order */
	{"ranks that go back", "2x4 Rb", "same leaf|b2 b1", 0, 0, "earlier"},
	{"ranks of one size that go back", "3x4 Rb sizes=424", "same leaf|a3 a2:01 a1", 0, 0, "earlier"},
	/* E: mixed sizes */
	{"mixed: wrong rule", "2x4 Rb sizes=21", "same leaf|a1:01 a1:2", 0, 0, "largest node"},
	{"mixed: a rule too narrow", "5x4 Rb sizes=44442", "same leaf|a1 a2 a3 b1 b2:01", 0, 0, "no leaf has"},
	{"mixed: broken and not said", "3x4 Pb sizes=424", "same leaf|a1 a2:01 b1", 0, 0, "does not say so"},
	{"mixed: relaxed for nothing", "3x4 Pb sizes=424", "same leaf, relaxed|a1 a2:01 a3", 0, 0, "is met"},
	{"mixed: Required broken", "3x4 Rb sizes=424", "same leaf, relaxed|a1 a2:01 b1", 0, 0, "is Required"},
	{"mixed: a GPU twice", "2x4 Rb sizes=21", "single node|a1:01 a1:1", 0, 0, "given twice"},
};

/* The answer's text with one change; the caller frees it. */
static char *spoil(char *text, const char *from, const char *to)
{
	char *spoilt = NULL;
	size_t size = 0;
	char *at = from ? strstr(text, from) : NULL;

	assert(!from || at);
	if (!at)
		return text;
	FILE *out = open_memstream(&spoilt, &size);
	fprintf(out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
	fclose(out);
	free(text);
	return spoilt;
}

static bool hand_case_holds(const struct hand_case *hand)
{
	struct instance instance = hand_instance(hand->job);
	struct complaint complaint = {""};
	struct stats stats = {0};
	cJSON *root = cJSON_CreateObject();
	cJSON *jobs = cJSON_AddArrayToObject(root, "jobs");

	cJSON_AddItemToArray(jobs, answer_from_line(&instance.fabric, instance.entries[0].name, hand->answer));
	char *text = spoil(cJSON_PrintUnformatted(root), hand->from, hand->to);
	cJSON_Delete(root);
	root = cJSON_Parse(text);
	bool accepted = check_instance(&instance, root, &stats, &complaint);
	bool holds = hand->caught ? !accepted && strstr(complaint.text, hand->caught) : accepted;
	if (!holds)
		printf("FAILED %s: %s\n  %s\n", hand->title, accepted ? "accepted" : complaint.text, text);
	cJSON_Delete(root);
	free(text);
	return holds;
}

/* ---- jobs that see each other ----------------------------------------------------------------------------------- */

/* Two whole-node jobs; the second gets its node from the first, which is right only after a removal. */
static bool sequence_holds(bool with_removal)
{
	struct instance instance = hand_instance("1x4 Rb");
	struct complaint complaint = {""};
	struct stats stats = {0};
	cJSON *root = cJSON_CreateObject();
	cJSON *jobs = cJSON_AddArrayToObject(root, "jobs");

	if (with_removal)
		instance.entries[instance.entry_count++] = (struct job){.removes = 0};
	instance.entries[instance.entry_count] = instance.entries[0];
	snprintf(instance.entries[instance.entry_count++].name, NAME_SIZE, "next");
	cJSON_AddItemToArray(jobs, answer_from_line(&instance.fabric, "job", "single node|b1"));
	cJSON_AddItemToArray(jobs, answer_from_line(&instance.fabric, "next", "single node|b1"));
	bool accepted = check_instance(&instance, root, &stats, &complaint);
	cJSON_Delete(root);
	if (accepted != with_removal)
		printf("FAILED a node given again %s removal: %s\n", with_removal ? "after" : "without",
		       complaint.text);
	return accepted == with_removal;
}

/* ---- random instances, answered by brute force itself ----------------------------------------------------------- */

/* Ranks ascend over the nodes of the best placement and take the lowest free GPUs. */
static cJSON *answer_from_best(const struct fabric *fabric, const struct state *state, const struct job *job,
			       const struct expected *expected, int members)
{
	int nodes[MEMBERS_MAX], rank = 0;
	cJSON *gpus[MEMBERS_MAX];

	for (int n = 0; n < fabric->node_count; n++) {
		unsigned left = node_free_mask(&fabric->nodes[n], state->taken[n]);
		for (int i = 0; i < expected->best.counts[n]; i++) {
			unsigned mask = 0;
			for (int g = 0; g < job->sizes[0]; g++) {
				mask |= left & -left;
				left &= left - 1;
			}
			nodes[rank] = n;
			gpus[rank++] = mask_list(mask);
		}
	}
	assert(rank == members);
	return answer_placed(fabric, job->name, RULE_NAMES[expected->rule.kind], expected->relaxed, members, nodes,
			     gpus);
}

static cJSON *answer_by_brute_force(const struct fabric *fabric, const struct state *state, const struct job *job)
{
	int members;
	struct expected expected = expected_of_job(fabric, state, job, &members);

	if (!job_has_equal_sizes(job) || expected.rule.never)
		return answer_refused(job->name, "never fits, says brute force");
	if (!expected.placed || (job->gpu_count > 0 && job->gpu_count != job_total_gpus(job)))
		return answer_refused(job->name, "needs what it cannot have");
	return answer_from_best(fabric, state, job, &expected, members);
}

static cJSON *instance_answer(const struct instance *instance)
{
	cJSON *root = cJSON_CreateObject();
	cJSON *jobs = cJSON_AddArrayToObject(root, "jobs");
	struct placement placements[ENTRIES_MAX] = {{0}};
	struct state state = {{0}};
	struct complaint complaint;

	for (int e = 0; e < instance->entry_count; e++) {
		const struct job *job = &instance->entries[e];
		if (job->removes >= 0) {
			give_back(&state, &placements[job->removes]);
			continue;
		}
		cJSON *answer = answer_by_brute_force(&instance->fabric, &state, job);
		cJSON_AddItemToArray(jobs, answer);
		int members = cJSON_GetArraySize(cJSON_GetObjectItem(answer, "members"));
		if (check_members(&instance->fabric, &state, job, answer, members, &placements[e], &complaint))
			take(&state, &placements[e]);
	}
	return root;
}

enum spoiling { SPOIL_RELAXED, SPOIL_RULE, SPOIL_PLACED, SPOIL_SHORT, SPOIL_ORDER, SPOIL_GPU, SPOILINGS };

/* Spoils a placed answer in one way. False when it cannot be spoilt that way. */
static bool spoil_answer(cJSON *answer, enum spoiling how)
{
	cJSON *members = cJSON_GetObjectItem(answer, "members");
	cJSON *first = cJSON_GetArrayItem(members, 0);
	cJSON *last = cJSON_GetArrayItem(members, cJSON_GetArraySize(members) - 1);
	const char *rule = text_of(answer, "rule");

	switch (how) {
	case SPOIL_RELAXED:
		return cJSON_ReplaceItemInObject(
			answer, "relaxed", cJSON_CreateBool(!cJSON_IsTrue(cJSON_GetObjectItem(answer, "relaxed"))));
	case SPOIL_RULE:
		return cJSON_ReplaceItemInObject(answer, "rule",
						 cJSON_CreateString(RULE_NAMES[(rule_by_name(rule) + 1) % RULE_KINDS]));
	case SPOIL_PLACED:
		cJSON_AddStringToObject(answer, "reason", "needs what it could have");
		return cJSON_ReplaceItemInObject(answer, "placed", cJSON_CreateFalse());
	case SPOIL_SHORT:
		cJSON_DeleteItemFromArray(members, cJSON_GetArraySize(members) - 1);
		return true;
	case SPOIL_ORDER: /* the first and the last member change nodes and keep their ranks */
		if (strcmp(text_of(first, "node"), text_of(last, "node")) == 0)
			return false;
		cJSON_ReplaceItemInObject(last, "rank", cJSON_CreateNumber(0));
		cJSON_ReplaceItemInObject(first, "rank", cJSON_CreateNumber(cJSON_GetArraySize(members) - 1));
		first = cJSON_DetachItemFromArray(members, 0);
		last = cJSON_DetachItemFromArray(members, cJSON_GetArraySize(members) - 1);
		cJSON_InsertItemInArray(members, 0, last);
		cJSON_AddItemToArray(members, first);
		return true;
	case SPOIL_GPU: /* no node has this one */
		cJSON_ReplaceItemInArray(cJSON_GetObjectItem(last, "gpus"), 0, cJSON_CreateNumber(GPUS_MAX));
		return true;
	default:
		return false;
	}
}

/* Every placed answer of the instance, spoilt in every way, is caught. Counts the ways that were tried. */
static bool spoilt_are_caught(const struct instance *instance, const cJSON *root, int *tried)
{
	int answers = cJSON_GetArraySize(cJSON_GetObjectItem(root, "jobs"));
	bool all_caught = true;

	for (int a = 0; a < answers; a++) {
		for (int how = 0; how < SPOILINGS; how++) {
			struct complaint complaint = {""};
			struct stats ignored = {0};
			cJSON *copy = cJSON_Duplicate(root, true);
			cJSON *answer = cJSON_GetArrayItem(cJSON_GetObjectItem(copy, "jobs"), a);
			if (cJSON_IsTrue(cJSON_GetObjectItem(answer, "placed")) &&
			    spoil_answer(answer, (enum spoiling)how)) {
				++*tried;
				if (check_instance(instance, copy, &ignored, &complaint)) {
					printf("FAILED spoiling %d of answer %d is accepted\n", how, a);
					all_caught = false;
				}
			}
			cJSON_Delete(copy);
		}
	}
	return all_caught;
}

/* ---- all of it -------------------------------------------------------------------------------------------------- */

enum { SELF_INSTANCES = 200, SELF_SPOILT = 50 };

static int self_test(uint64_t seed)
{
	struct stats stats = {0};
	int passed = 0, failed = 0, tried = 0;

	for (size_t i = 0; i < sizeof HAND_CASES / sizeof *HAND_CASES; i++)
		*(hand_case_holds(&HAND_CASES[i]) ? &passed : &failed) += 1;
	*(sequence_holds(false) ? &passed : &failed) += 1;
	*(sequence_holds(true) ? &passed : &failed) += 1;
	printf("seed %llu\n", (unsigned long long)seed);
	for (int i = 0; i < SELF_INSTANCES; i++) {
		struct instance instance;
		struct complaint complaint = {""};
		instance_make(seed, (uint64_t)i, &instance);
		cJSON *root = instance_answer(&instance);
		bool right = check_instance(&instance, root, &stats, &complaint);
		if (!right)
			printf("FAILED index %d: brute force contradicts itself: %s\n", i, complaint.text);
		if (right && i < SELF_SPOILT)
			right = spoilt_are_caught(&instance, root, &tried);
		*(right ? &passed : &failed) += 1;
		cJSON_Delete(root);
	}
	stats_print(&stats);
	printf("  %d spoilt answers tried\n%d passed, %d failed\n", tried, passed, failed);
	return failed > 0;
}

#endif
