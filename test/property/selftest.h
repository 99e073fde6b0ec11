/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selftest.h - part of oracle.c: a judge that cannot fail is worthless, so each is shown right and wrong answers.
 *
 * First cases whose answers were worked out by hand; then random instances that brute force answers itself (these must
 * pass) and whose answers are then spoilt in one place (these must be caught).
 */
#ifndef FROND_TEST_SELFTEST_H
#define FROND_TEST_SELFTEST_H

#include "make.h"
#include "moves.h"
#include "victims.h"
#include "window.h"

struct score { /* of the self-test */
	int passed, failed, spoilt;
};

static void score_add(struct score *score, bool passed)
{
	*(passed ? &score->passed : &score->failed) += 1;
}

/* ---- the hand-made cluster -------------------------------------------------------------------------------------- */

enum { HAND_BOX = 1, HAND_SMALL_NODES = 6 };

/*
 * spine-1: leaf-10 (a1 a2 a3), leaf-2 (b1 b2), leaf-3 (c1); spine-2: leaf-4 (d1 d2); spine-3: leaf-5 (e1), leaf-6 (f1)
 * Four GPUs each, no links. By capacity and whole nodes: 2 = same leaf, 3 = complete leaf, 4 and 5 = two adjacent
 * leaves, 6 = three, 7 and 8 = two adjacent spines, 10 = all. small: only the six nodes of spine-1.
 */
static void hand_fabric(bool small, struct fabric *fabric)
{
	static const struct leaf leaves[] = {{"leaf-10", 0, 0, false}, {"leaf-2", 0, 0, false},
					     {"leaf-3", 0, 0, false},  {"leaf-4", 1, 0, false},
					     {"leaf-5", 2, 0, false},  {"leaf-6", 2, 0, false}};
	static const char *const nodes[] = {"a1", "a2", "a3", "b1", "b2", "c1", "d1", "d2", "e1", "f1"};
	static const int box[4][4] = {{0, 50, 25, 0}, {50, 0, 0, 25}, {25, 0, 0, 50}, {0, 25, 50, 0}};

	memset(fabric, 0, sizeof *fabric);
	fabric->spine_count = small ? 1 : 3;
	fabric->leaf_count = small ? 3 : 6;
	fabric->node_count = small ? HAND_SMALL_NODES : 10;
	fabric->default_gpus = 4;
	memcpy(fabric->leaves, leaves, sizeof leaves);
	model_uniform(fabric, "", GPUS_MAX, 0);
	memset(fabric->models[0].numa, 0, sizeof fabric->models[0].numa);
	model_uniform(fabric, "box-4", 4, 0);
	for (int a = 0; a < 4; a++)
		memcpy(fabric->models[HAND_BOX].links[a], box[a], sizeof box[a]);
	for (int s = 0; s < 3; s++)
		snprintf(fabric->spine_names[s], NAME_SIZE, "spine-%d", s + 1);
	for (int n = 0; n < fabric->node_count; n++) {
		snprintf(fabric->nodes[n].name, NAME_SIZE, "%s", nodes[n]);
		fabric->nodes[n].leaf = nodes[n][0] - 'a';
		fabric->nodes[n].gpus = 4;
	}
}

static bool hand_apply_node(struct node *node, const char *key)
{
	if (strcmp(key, "cordon") == 0)
		node->cordoned = true;
	else if (strcmp(key, "full") == 0)
		node->used_mask = 15;
	else if (strcmp(key, "half") == 0)
		node->used_mask = 3;
	else if (strcmp(key, "sick") == 0)
		node->unhealthy_mask = 1;
	else if (strcmp(key, "small") == 0)
		node->gpus = 2;
	else if (strcmp(key, "slow") == 0)
		node->uplink_gbps = 100;
	else if (strcmp(key, "box") == 0)
		node->model = HAND_BOX;
	else if (strcmp(key, "clique") == 0)
		snprintf(node->clique, NAME_SIZE, "rack-%c", node->name[0]);
	else if (strcmp(key, "zone") == 0)
		node->zone = 'a';
	else
		return false;
	return true;
}

static bool hand_apply_claim(struct claim *claim, const char *key, const char *value)
{
	if (strcmp(key, "policy") == 0)
		claim->policy = (enum policy)strtol(value, NULL, 10);
	else if (strcmp(key, "claim") == 0)
		claim->mode = (enum mode)strtol(value, NULL, 10);
	else if (strcmp(key, "locality") == 0)
		claim->locality = (enum locality)strtol(value, NULL, 10);
	else if (strcmp(key, "bandwidth") == 0)
		claim->min_gbps = (int)strtol(value, NULL, 10);
	else if (strcmp(key, "ids") == 0)
		claim->prefer_mask = (unsigned)strtol(value, NULL, 2);
	else if (strcmp(key, "select") == 0)
		claim->zone = value[0];
	else
		return false;
	return true;
}

/* One word of a case's circumstances, "key=value". */
static void hand_apply(struct instance *instance, struct job *job, const char *key, const char *value)
{
	int n = node_by_name(&instance->fabric, value);

	if (n >= 0 && hand_apply_node(&instance->fabric.nodes[n], key))
		return;
	if (hand_apply_claim(&job->claim, key, value))
		return;
	if (strcmp(key, "slow") == 0)
		instance->fabric.leaves[strcmp(value, "leaf-10") == 0 ? 0 : 1].uplink_gbps = 100;
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
	else if (strcmp(key, "policy6") == 0)
		job->recovery = (enum recovery)strtol(value, NULL, 10);
	else if (strcmp(key, "sizes") == 0)
		for (int rank = 0; value[rank]; rank++)
			job->sizes[rank] = value[rank] - '0';
	else
		assert(!"a word of a case is not known");
}

/* "2x4 Rb cordon=a1 …": members, GPUs each, mode R P I and strategy c b d, circumstances. Adds a job. */
static void hand_job(struct instance *instance, const char *line)
{
	struct job *job = job_add(instance);
	char text[160];

	snprintf(text, sizeof text, "%s", line);
	job->claim = CLAIM_NONE;
	job->members = text[0] - '0';
	for (int rank = 0; rank < job->members; rank++)
		job->sizes[rank] = text[2] - '0';
	job->mode = text[4] == 'R' ? MODE_REQUIRED : text[4] == 'P' ? MODE_PREFERRED : MODE_IGNORE;
	job->mode_given = true;
	job->strategy = text[5] == 'c'   ? STRATEGY_CONSOLIDATED
			: text[5] == 'b' ? STRATEGY_BALANCED
					 : STRATEGY_DISTRIBUTED;
	for (char *save = NULL, *word = strtok_r(text + 6, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		char *value = strchr(word, '=');
		assert(value);
		*value++ = '\0';
		hand_apply(instance, job, word, value);
	}
}

/* ---- plans by hand ---------------------------------------------------------------------------------------------- */

struct hand_case {
	const char *title;
	const char *job; /* see hand_job */
	const char
		*answer; /* "same leaf|a1 a2:0132", "complete leaf, relaxed|a1 b1", "no|", "never|"; 0123 if not said */
};

static const struct hand_case HAND_CASES[] = {
	/* the rules */
	{"the leaf that the gang fills", "2x4 Rb", "same leaf|b1 b2"},
	{"a complete leaf", "3x4 Rb", "complete leaf|a1 a2 a3"},
	{"adjacent leaves in the file's order", "4x4 Rc", "adjacent leaves|a1 a2 a3 b1"},
	{"three adjacent leaves", "6x4 Rb", "adjacent leaves|a1 a2 a3 b1 b2 c1"},
	{"adjacent spines, fewest leaves", "7x4 Rb", "adjacent spines|a1 a2 a3 b1 b2 d1 d2"},
	{"one node for two members", "2x2 Rb", "single node|c1:01 c1:23"},
	{"relaxed keeps the missed rule", "3x4 Pb full=a1", "complete leaf, relaxed|b1 b2 c1"},
	{"Preferred that need not relax", "2x4 Pb full=a1", "same leaf|b1 b2"},
	{"waits", "3x4 Rb full=a1", "no|"},
	{"never fits", "8x8 Rb", "never|"},
	{"Ignore has no rule", "2x4 Ib", "none|b1 b2"},
	{"distributed over two nodes of a leaf", "2x2 Rd", "same leaf|b1:01 b2:01"},
	{"distributed may double up inside a leaf", "3x2 Rd full=a1", "complete leaf|b1:01 b1:23 b2:01"},
	{"a slow leaf is not crossed", "4x4 Rb floor=200 slow=leaf-10", "adjacent spines|b1 b2 d1 d2"},
	{"a slow leaf may hold all", "3x4 Rb floor=200 slow=leaf-10", "complete leaf|a1 a2 a3"},
	{"a slow node", "2x4 Rb floor=200 slow=b1", "same leaf|d1 d2"},
	{"no such shape", "8x4 Rb small=b1 small=b2", "adjacent spines, relaxed|a1 a2 a3 c1 d1 d2 e1 f1"},
	{"no more spines than by capacity", "8x4 Rb full=d1", "no|"},
	{"three adjacent spines, not two others", "8x4 Rb small=d2", "adjacent spines|a1 a2 a3 b1 b2 c1 d1 e1"},
	{"minMember", "3x4 Rb min=2 full=a1", "same leaf|b1 b2"},
	{"wrong gpu-count", "2x4 Rb count=9", "no|"},
	{"mixed sizes", "3x4 Rb sizes=424", "complete leaf|a1 a3:01 a2"},
	{"mixed sizes on one node: the links decide", "2x2 Rb sizes=21 box=a2", "single node|a2:01 a2:2"},
	{"a member without GPUs", "3x4 Rb sizes=404", "same leaf|b1 - b2"},
	{"cordoned, sick", "2x4 Rb cordon=b1 sick=d1", "same leaf|a1 a2"},
	/* latency-sensitive */
	{"latency: a node, whatever the strategy", "2x2 Rd latency=1", "single node|a1:01 a1:23"},
	{"latency: too wide", "4x4 Pb latency=1", "no|"},
	{"latency: is Required", "2x2 Ib latency=1", "single node|a1:01 a1:23"},
	{"latency: never relaxes", "3x4 Pb latency=1 full=a1", "no|"},
	{"latency: NVLink domain", "2x4 Rb latency=1 clique=a2 clique=a3", "nvlink domain|a2 a3"},
	{"latency: NVLink domain of nodes apart", "2x4 Rb latency=1 clique=a1 clique=a3", "nvlink domain|a1 a3"},
	{"latency: NVLink domain is taken", "2x4 Rb latency=1 clique=a2 clique=a3 full=a3", "no|"},
	/* step 2 */
	{"preferred leaf", "2x4 Rb prefer=leaf-4", "same leaf|d1 d2"},
	{"preferred leaf without room", "2x4 Rb prefer=leaf-4 full=d1", "same leaf|b1 b2"},
	{"preferred NVLink domain", "2x4 Rb prefer=rack-a clique=a1 clique=a3", "same leaf|a1 a3"},
	{"unknown domain", "2x4 Rb prefer=leaf-77", "same leaf|b1 b2"},
	/* steps 4 to 6; 10,000 x of leaf-10 is 6,999, of leaf-2 and leaf-4 8,000 for two whole nodes */
	{"4: the links decide", "2x2 Rd box=d1 box=d2", "same leaf|d1:01 d2:01"},
	{"4: inside a leaf", "2x2 Rd prefer=leaf-10 box=a2 box=a3", "same leaf|a2:01 a3:01"},
	{"5a: no leaf and no node is broken", "1x2 Rb half=a1", "single node|a1:23"},
	{"5a: nor with consolidated", "1x2 Rc half=a1", "single node|a1:23"},
	{"5a: leaves before nodes", "1x2 Rb full=a1 small=b1", "single node|a2:01"},
	{"5a: is not asked with distributed", "1x2 Rd half=a1", "single node|c1:01"},
	{"5c: the leaf that fits tightest", "1x4 Rb half=a1", "single node|c1"},
	{"6 before 5c: no new leaf is opened", "1x4 Rc half=a1", "single node|a2"},
	{"latency in place of 5a: most free", "1x2 Rb half=b1 latency=1", "single node|a1:01"},
	{"latency in place of 6: most free", "1x2 Rc half=a1 latency=1", "single node|a1:23"},
	{"latency, then 5c", "1x2 Rb half=a1 half=a2 half=b1 latency=1", "single node|d1:01"},
	{"latency, then 5c, with consolidated", "1x2 Rc half=a1 half=a2 half=b1 latency=1", "single node|d1:01"},
	/* 3.7 */
	{"ring order", "1x4 Rb box=a1", "single node|a1:0132"},
	{"a set without a ring", "1x3 Rb prefer=leaf-3 box=c1", "single node|c1:012"},
	{"spread", "1x2 Rb prefer=leaf-3 box=c1 policy=1", "single node|c1:03"},
	{"listed ids", "1x2 Rb prefer=leaf-3 policy=2 ids=1010", "single node|c1:13"},
	{"best links first", "2x2 Rb prefer=leaf-3 box=c1", "single node|c1:01 c1:23"},
	{"Required contiguous is one island", "1x2 Rb claim=0 box=f1", "single node|f1:01"},
	{"one island is never there", "1x2 Rb claim=0", "never|"},
	{"minBandwidth refuses", "1x2 Rb claim=0 bandwidth=60 box=f1", "never|"},
	{"same-socket", "1x2 Rb prefer=leaf-3 box=c1 policy=1 locality=2", "single node|c1:01"},
	{"Ignore takes the lowest", "1x2 Rb prefer=leaf-3 box=c1 policy=1 claim=2", "single node|c1:01"},
	{"selector", "1x2 Rb select=a zone=d2", "single node|d2:01"},
};

/* "a2:0132" into a member; "-" for one without GPUs. */
static cJSON *member_from_word(struct world *world, int rank, char *word)
{
	char *colon = strchr(word, ':');
	const char *digits = colon ? colon + 1 : "0123";
	if (colon)
		*colon = '\0';
	int n = node_by_name(world->fabric, word);
	assert(n >= 0);
	cJSON *member = member_entry(world, rank, n, 0);
	cJSON *gpus = cJSON_GetObjectItemCaseSensitive(member, "gpus");
	for (; *digits; digits++)
		cJSON_AddItemToArray(gpus, cJSON_CreateNumber(*digits - '0'));
	return member;
}

static cJSON *answer_from_line(struct world *world, const char *name, const char *line)
{
	struct placement placement = {.members = 0};
	struct rule rule = {.kind = RULE_NONE};
	char text[160];
	cJSON *members[MEMBERS_MAX] = {NULL};

	snprintf(text, sizeof text, "%s", line);
	char *rest = strchr(text, '|');
	*rest++ = '\0';
	if (strcmp(text, "no") == 0 || strcmp(text, "never") == 0)
		return answer_refused(name, text[2] ? "never fits" : "must wait");
	char *relaxed = strstr(text, ", relaxed");
	if (relaxed)
		*relaxed = '\0';
	while (strcmp(RULE_NAMES[rule.kind], text) != 0)
		rule.kind++;
	for (char *save = NULL, *word = strtok_r(rest, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		int rank = placement.members++;
		placement.node[rank] = -1;
		if (word[0] == '-')
			continue;
		members[rank] = member_from_word(world, rank, word);
		placement.node[rank] = node_by_name(world->fabric, word);
	}
	cJSON *answer = answer_placed(world, name, &rule, relaxed != NULL, &placement);
	cJSON *list = cJSON_CreateArray();
	for (int rank = 0; rank < placement.members; rank++)
		if (members[rank])
			cJSON_AddItemToArray(list, members[rank]);
	cJSON_ReplaceItemInObject(answer, "members", list);
	return answer;
}

static bool hand_case_holds(const struct hand_case *hand, struct course *course)
{
	struct instance instance = {.entry_count = 0};
	struct complaint complaint = {""};

	hand_fabric(false, &instance.fabric);
	hand_job(&instance, hand->job);
	course_run(&instance, -1, NULL, course);
	const struct job *job = &instance.entries[0];
	cJSON *answer = answer_from_line(&course->world, job->name, hand->answer);
	int placed = cJSON_GetArraySize(cJSON_GetObjectItem(answer, "members"));
	if (placed > 0 && job->min_member > 0 && placed < job->members)
		cJSON_AddNumberToObject(answer, "placedMembers", placed);
	warnings_add(&instance.fabric, job, answer);
	bool holds = check_answer(&course->world, &instance.entries[0], &course->outcomes[0], answer, &complaint);
	if (!holds)
		printf("FAILED %s: %s\n", hand->title, complaint.text);
	cJSON_Delete(answer);
	return holds;
}

/* ---- moves by hand ---------------------------------------------------------------------------------------------- */

struct hand_moves {
	const char *title;
	const char *jobs[3]; /* defrag: the last one is to fit */
	const char *fail;    /* "a1 b2/2"; NULL: defrag */
	const char *answer;  /* "job-a:0:a1>a3 …|lowerBound", and "|job-a" when that stays unrepaired */
	const char *caught;  /* in the complaint; NULL: the answer is right */
};

static const struct hand_moves HAND_MOVES[] = {
	/* a 2x4 in leaf-10 holds a1 and a2, in leaf-2 b1 and b2 */
	{"Replace beside the others", {"2x4 Rb prefer=leaf-10"}, "a1", "job-a:0:a1>a3|1", NULL},
	{"Replace elsewhere", {"2x4 Rb prefer=leaf-10"}, "a1", "job-a:0:a1>b1|1", "belongs on a3"},
	{"Replace moves a healthy one", {"2x4 Rb prefer=leaf-10"}, "a1", "job-a:0:a1>a3 job-a:1:a2>a3|2", "is healthy"},
	{"Replace forgets one", {"2x4 Rb prefer=leaf-10"}, "a1", "|1", "is lost"},
	{"lowerBound too high", {"2x4 Rb prefer=leaf-10"}, "a1", "job-a:0:a1>a3|2", "lowerBound must be 1"},
	{"lowerBound too low", {"2x4 Rb prefer=leaf-10"}, "a1", "job-a:0:a1>a3|0", "lowerBound must be 1"},
	{"Required waits", {"2x4 Rb"}, "b1", "|0|job-a", NULL},
	{"Required waits, and nobody says so", {"2x4 Rb"}, "b1", "|0", "not named"},
	{"repaired and named", {"2x4 Rb prefer=leaf-10"}, "a1", "job-a:0:a1>a3|1|job-a", "is repaired and named"},
	{"Required is not broken", {"2x4 Rb"}, "b1", "job-a:0:b1>c1|1", "cannot be repaired"},
	{"Preferred breaks it", {"2x4 Pb"}, "b1", "job-a:0:b1>c1|1", NULL},
	{"Wait", {"2x4 Pb policy6=2"}, "b1", "|0|job-a", NULL},
	{"Wait moves", {"2x4 Pb policy6=2"}, "b1", "job-a:0:b1>c1|1", "Wait"},
	{"MoveGang", {"2x4 Rb policy6=1"}, "b1", "job-a:0:b1>d1 job-a:1:b2>d2|2", NULL},
	{"MoveGang to another leaf as good", {"2x4 Rb policy6=1"}, "b1", "job-a:0:b1>a1 job-a:1:b2>a3|2", NULL},
	{"MoveGang breaks the rule", {"2x4 Rb policy6=1"}, "b1", "job-a:0:b1>d1 job-a:1:b2>c1|2", "does not meet"},
	{"MoveGang onto one node", {"2x4 Rb policy6=1"}, "b1", "job-a:0:b1>d1 job-a:1:b2>d1|2", "has no place"},
	{"MoveGang to the dead node", {"2x4 Rb policy6=1"}, "b1", "job-a:0:b1>b1 job-a:1:b2>b1|2", "may not use"},
	{"MoveGang that need not move more", {"2x4 Rb policy6=1 prefer=leaf-10"}, "a1", "job-a:0:a1>a3|1", NULL},
	{"MoveGang that moves too much",
	 {"2x4 Rb policy6=1 prefer=leaf-10"},
	 "a1",
	 "job-a:0:a1>d1 job-a:1:a2>d2|2",
	 "is healthy"},
	{"a GPU fails: the same node", {"1x2 Rb prefer=leaf-3"}, "c1/0", "job-a:0:c1>c1|1", NULL},
	{"another GPU fails", {"1x2 Rb prefer=leaf-3"}, "c1/3", "|0", NULL},
	{"another GPU fails, and it moves",
	 {"1x2 Rb prefer=leaf-3"},
	 "c1/3",
	 "job-a:0:c1>c1|1",
	 "nothing of it is lost"},
	{"Replace stays in the NVLink domain",
	 {"2x3 Rb latency=1 clique=a2 clique=a3 clique=b1"},
	 "a3/0",
	 "job-a:1:a3>a3|1",
	 NULL},
	{"Replace finds nothing else in the NVLink domain",
	 {"2x4 Rb latency=1 clique=a2 clique=a3"},
	 "a3",
	 "|0|job-a",
	 NULL},
	{"Replace leaves the NVLink domain",
	 {"2x3 Rb latency=1 clique=a2 clique=a3 clique=b1"},
	 "a3/0",
	 "job-a:1:a3>a1|1",
	 "belongs on a3"},
	{"two gangs, two failures",
	 {"2x4 Rb prefer=leaf-10", "2x4 Pb"},
	 "a1 b1",
	 "job-a:0:a1>a3 job-b:0:b1>c1|2",
	 NULL},
	{"a move of nobody", {"2x4 Rb"}, "b1", "job-a:7:b1>d1|1", "not running"},
	{"a move from elsewhere", {"2x4 Pb"}, "b1", "job-a:0:d1>c1|1", "said to move"},
	/* defrag, on spine-1 alone: a 1x2 that holds a1 keeps a 3x4 out of leaf-10 */
	{"defrag: one move", {"1x2 Rb prefer=leaf-10", "3x4 Rb"}, NULL, "job-a:0:a1>b2|1", NULL},
	{"defrag: a lower bound may be low", {"1x2 Rb prefer=leaf-10", "3x4 Rb"}, NULL, "job-a:0:a1>c1|0", NULL},
	{"defrag: lowerBound too high", {"1x2 Rb prefer=leaf-10", "3x4 Rb"}, NULL, "job-a:0:a1>b2|2", "above"},
	{"defrag: does not help", {"1x2 Rb prefer=leaf-10", "3x4 Rb"}, NULL, "job-a:0:a1>a2|1", "does not fit"},
	{"defrag: goes nowhere", {"1x2 Rb prefer=leaf-10", "3x4 Rb"}, NULL, "job-a:0:a1>a1|1", "cannot go"},
	{"defrag: nothing done", {"1x2 Rb prefer=leaf-10", "3x4 Rb"}, NULL, "|0", "the answer has 0"},
	{"defrag: fits already", {"1x2 Rb prefer=leaf-3", "3x4 Rb"}, NULL, "|0", NULL},
	{"defrag: fits already, and moves", {"1x2 Rb prefer=leaf-3", "3x4 Rb"}, NULL, "job-a:0:c1>b1|1", "already"},
	{"defrag: hopeless", {"3x2 Rd", "6x4 Rb"}, NULL, "|0|job-b", NULL},
	{"defrag: hopeless, and not said", {"3x2 Rd", "6x4 Rb"}, NULL, "|0", "job-b is not unrepaired"},
	{"defrag: fits already, and unrepaired", {"1x2 Rb prefer=leaf-3", "3x4 Rb"}, NULL, "|0|job-b", "is unrepaired"},
	{"defrag: a gang keeps its rule",
	 {"2x2 Rd prefer=leaf-10", "3x4 Rb"},
	 NULL,
	 "job-a:0:a1>b1 job-a:1:a2>b2|2",
	 NULL},
	{"defrag: a gang loses its rule",
	 {"2x2 Rd prefer=leaf-10", "3x4 Rb"},
	 NULL,
	 "job-a:0:a1>b1 job-a:1:a2>c1|2",
	 "its rule any more"},
	{"defrag: more moves than needed",
	 {"1x2 Rb prefer=leaf-10", "1x2 Rb prefer=leaf-3", "3x4 Rb"},
	 NULL,
	 "job-a:0:a1>b1 job-b:0:c1>b2|1",
	 "are enough"},
};

static void add_unrepaired(cJSON *list, const char *job)
{
	cJSON *item = cJSON_CreateObject();
	cJSON_AddItemToArray(list, item);
	cJSON_AddStringToObject(item, "job", job);
	cJSON_AddStringToObject(item, "reason", "there is no place");
}

static cJSON *moves_from_line(const char *line)
{
	cJSON *root = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(root, "moves");
	char text[160];

	snprintf(text, sizeof text, "%s", line);
	char *bound = strchr(text, '|');
	*bound++ = '\0';
	for (char *save = NULL, *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		char *rank = strchr(word, ':'), *from = strchr(rank + 1, ':'), *to = strchr(word, '>');
		*rank++ = *from++ = *to++ = '\0';
		cJSON *move = cJSON_CreateObject();
		cJSON_AddItemToArray(list, move);
		cJSON_AddStringToObject(move, "job", word);
		cJSON_AddNumberToObject(move, "rank", (double)strtol(rank, NULL, 10));
		cJSON_AddStringToObject(move, "from", from);
		cJSON_AddStringToObject(move, "to", to);
	}
	char *unrepaired = strchr(bound, '|');
	cJSON_AddNumberToObject(root, "lowerBound", (double)strtol(bound, NULL, 10));
	list = cJSON_AddArrayToObject(root, "unrepaired");
	if (unrepaired)
		add_unrepaired(list, unrepaired + 1);
	return root;
}

static void hand_failures(struct instance *instance, const char *line)
{
	char text[64];

	snprintf(text, sizeof text, "%s", line);
	for (char *save = NULL, *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		char *gpu = strchr(word, '/');
		if (gpu)
			*gpu++ = '\0';
		instance->failures[instance->failure_count++] =
			(struct failure){node_by_name(&instance->fabric, word), gpu ? gpu[0] - '0' : -1};
	}
}

static bool hand_moves_hold(const struct hand_moves *hand, struct course *course)
{
	struct instance instance = {.entry_count = 0};
	struct complaint complaint = {""};
	struct move_stats ignored = {0};

	hand_fabric(!hand->fail, &instance.fabric);
	for (int j = 0; j < 3 && hand->jobs[j]; j++)
		hand_job(&instance, hand->jobs[j]);
	instance.defrag_for = instance.entry_count - 1;
	if (hand->fail)
		hand_failures(&instance, hand->fail);
	course_run(&instance, hand->fail ? -1 : instance.defrag_for, NULL, course);
	cJSON *root = moves_from_line(hand->answer);
	bool right = hand->fail ? check_recover(&instance, course, root, &ignored, &complaint)
				: check_defrag(&instance, course, root, &ignored, &complaint);
	bool holds = hand->caught ? !right && strstr(complaint.text, hand->caught) : right;
	if (!holds)
		printf("FAILED %s: %s\n", hand->title, right ? "accepted" : complaint.text);
	cJSON_Delete(root);
	return holds;
}

/* ---- random plans ----------------------------------------------------------------------------------------------- */

static cJSON *plans_by_brute_force(const struct instance *instance, struct course *course)
{
	cJSON *root = cJSON_CreateObject();
	cJSON *jobs = cJSON_AddArrayToObject(root, "jobs");

	for (int e = 0; e < instance->entry_count; e++)
		if (instance->entries[e].removes < 0)
			cJSON_AddItemToArray(jobs,
					     answer_of(&course->world, &instance->entries[e], &course->outcomes[e]));
	return root;
}

enum spoiling {
	SPOIL_RELAXED,
	SPOIL_RULE,
	SPOIL_PLACED,
	SPOIL_MISSING,
	SPOIL_NODE,
	SPOIL_LEAVES,
	SPOIL_SPINES,
	SPOIL_DOMAIN,
	SPOIL_GPU,
	SPOIL_RING,
	SPOIL_RANKS,
	SPOIL_REASON,
	SPOIL_OUTCOME,
	SPOIL_WARNINGS,
	SPOIL_FEWER,
	SPOILINGS
};

static const char *const SPOILING_NAMES[SPOILINGS] = {
	"relaxed", "rule", "placed", "a member missing", "node",    "leaves",   "spines",        "domain",
	"GPU",     "ring", "ranks",  "never or not",     "outcome", "warnings", "placedMembers",
};

static bool spoil_text(cJSON *object, const char *key, const char *value)
{
	if (strcmp(text_of(object, key), value) == 0)
		return false;
	return cJSON_ReplaceItemInObject(object, key, cJSON_CreateString(value));
}

/* Another node, leaf or spine of the same fabric. */
static bool spoil_place(const struct fabric *fabric, cJSON *answer, cJSON *member, enum spoiling how)
{
	cJSON *leaves = cJSON_GetObjectItem(answer, "leaves"), *spines = cJSON_GetObjectItem(answer, "spines");

	if (how == SPOIL_NODE)
		return spoil_text(member, "node", fabric->nodes[0].name) ||
		       spoil_text(member, "node", fabric->nodes[fabric->node_count - 1].name);
	if (how == SPOIL_DOMAIN)
		return spoil_text(member, "domain", "spine-0/leaf-0");
	if (how == SPOIL_LEAVES && cJSON_GetArraySize(leaves) > 1)
		return cJSON_AddItemToArray(leaves, cJSON_DetachItemFromArray(leaves, 0));
	return cJSON_AddItemToArray(how == SPOIL_LEAVES ? leaves : spines, cJSON_CreateString("leaf-0"));
}

/* Another GPU of the node, or the right ones in another order. */
static bool spoil_gpus(cJSON *member, enum spoiling how)
{
	cJSON *gpus = cJSON_GetObjectItem(member, "gpus");
	int count = cJSON_GetArraySize(gpus);

	if (how == SPOIL_RING)
		return count > 1 && cJSON_AddItemToArray(gpus, cJSON_DetachItemFromArray(gpus, 0));
	for (int gpu = 0; gpu < GPUS_MAX; gpu++) {
		bool there = false;
		for (int i = 0; i < count; i++)
			there = there || cJSON_GetArrayItem(gpus, i)->valueint == gpu;
		if (!there)
			return cJSON_ReplaceItemInArray(gpus, 0, cJSON_CreateNumber(gpu));
	}
	return false;
}

/* The first and the last member change nodes. */
static bool spoil_ranks(cJSON *members)
{
	cJSON *first = cJSON_GetArrayItem(members, 0);
	cJSON *last = cJSON_GetArrayItem(members, cJSON_GetArraySize(members) - 1);
	char node[NAME_SIZE];

	if (strcmp(text_of(first, "node"), text_of(last, "node")) == 0)
		return false;
	snprintf(node, sizeof node, "%s", text_of(first, "node"));
	return spoil_text(first, "node", text_of(last, "node")) && spoil_text(last, "node", node);
}

/* Spoils an answer in one way. False when it cannot be spoilt that way. */
static bool spoil(const struct fabric *fabric, cJSON *answer, bool too_wide, enum spoiling how)
{
	cJSON *members = cJSON_GetObjectItem(answer, "members");
	cJSON *member = cJSON_GetArrayItem(members, 0);
	bool never = strstr(text_of(answer, "reason"), "never") != NULL;

	if (how == SPOIL_WARNINGS || how == SPOIL_FEWER) {
		const char *key = how == SPOIL_FEWER ? "placedMembers" : "warnings";
		bool there = cJSON_HasObjectItem(answer, key) && !(too_wide && how == SPOIL_WARNINGS);
		cJSON_DeleteItemFromObject(answer, key);
		return there;
	}
	if (how == SPOIL_OUTCOME && !members)
		return cJSON_ReplaceItemInObject(answer, "placed", cJSON_CreateTrue());
	if (how == SPOIL_REASON && !members)
		return !too_wide && spoil_text(answer, "reason", never ? "must wait" : "never fits");
	if (!members || how == SPOIL_OUTCOME || how == SPOIL_REASON)
		return false;
	switch (how) {
	case SPOIL_RELAXED:
		return cJSON_ReplaceItemInObject(
			answer, "relaxed", cJSON_CreateBool(!cJSON_IsTrue(cJSON_GetObjectItem(answer, "relaxed"))));
	case SPOIL_RULE:
		return spoil_text(answer, "rule", "same leaf") || spoil_text(answer, "rule", "complete leaf");
	case SPOIL_PLACED:
		cJSON_AddStringToObject(answer, "reason", "needs what it could have");
		return cJSON_ReplaceItemInObject(answer, "placed", cJSON_CreateFalse());
	case SPOIL_MISSING:
		cJSON_DeleteItemFromArray(members, 0);
		return true;
	case SPOIL_GPU:
	case SPOIL_RING:
		return spoil_gpus(member, how);
	case SPOIL_RANKS:
		return spoil_ranks(members);
	default:
		return spoil_place(fabric, answer, member, how);
	}
}

/* Every answer of the instance, spoilt in every way, is caught. */
static bool spoilt_plans_are_caught(const struct instance *instance, struct course *course, const cJSON *root,
				    int *tried)
{
	bool all_caught = true;
	int answers = 0;

	for (int e = 0; e < instance->entry_count; e++) {
		bool odd = gpu_count_wrong(&instance->entries[e]) || course->outcomes[e].rule.too_wide;
		if (instance->entries[e].removes >= 0)
			continue;
		for (int how = 0; how < SPOILINGS; how++) {
			struct complaint complaint = {""};
			cJSON *copy = cJSON_Duplicate(root, true);
			cJSON *answer = cJSON_GetArrayItem(cJSON_GetObjectItem(copy, "jobs"), answers);
			if (spoil(&instance->fabric, answer, odd, (enum spoiling)how)) {
				tried[how]++;
				if (check_plans(instance, course, copy, &complaint)) {
					printf("FAILED spoilt %s of answer %d is accepted\n", SPOILING_NAMES[how],
					       answers);
					all_caught = false;
				}
			}
			cJSON_Delete(copy);
		}
		answers++;
	}
	return all_caught;
}

/* ---- random moves ----------------------------------------------------------------------------------------------- */

static void add_move(cJSON *list, const struct instance *instance, int e, int rank, int from, int to)
{
	cJSON *move = cJSON_CreateObject();
	cJSON_AddItemToArray(list, move);
	cJSON_AddStringToObject(move, "job", instance->entries[e].name);
	cJSON_AddNumberToObject(move, "rank", rank);
	cJSON_AddStringToObject(move, "from", instance->fabric.nodes[from].name);
	cJSON_AddStringToObject(move, "to", instance->fabric.nodes[to].name);
}

static int add_repairs(const struct instance *instance, struct course *course, cJSON *list, cJSON *unrepaired)
{
	struct state state = course->state;
	int count = 0;

	fail_state(instance, &state);
	for (int e = 0; e < instance->entry_count; e++) {
		const struct job *job = &instance->entries[e];
		const struct outcome *before = &course->outcomes[e];
		struct facts facts;
		struct complaint complaint;
		int to[MEMBERS_MAX];
		if (!course->present[e])
			continue;
		unsigned lost = lost_members(instance, &before->plan.placement);
		struct repair repair = {.possible = false};
		if (lost && job->recovery != RECOVERY_WAIT)
			repair = repair_of(course, job, before, lost, &state);
		if (lost && !repair.possible)
			add_unrepaired(unrepaired, job->name);
		if (!repair.possible)
			continue;
		for (int rank = 0; rank < before->members; rank++) {
			to[rank] = -1;
			if (!(repair.moving & (1u << rank)))
				continue;
			to[rank] = repair.outcome.plan.placement.node[rank];
			add_move(list, instance, e, rank, before->plan.placement.node[rank], to[rank]);
			count++;
		}
		bool applied = moves_apply(course, job, before, to, &state, &facts, &complaint);
		assert(applied);
	}
	return count;
}

static int add_shuffle(const struct instance *instance, struct course *course, cJSON *list, cJSON *unrepaired)
{
	struct shuffle shuffle;

	shuffle_open(&shuffle, instance, course);
	int count = fewest_moves(&shuffle);
	for (int i = 0; count > 0 && i < shuffle.count; i++)
		if (shuffle.node[i] != shuffle.before[i])
			add_move(list, instance, shuffle.job[i], shuffle.rank[i], shuffle.before[i], shuffle.node[i]);
	if (count < 0)
		add_unrepaired(unrepaired, instance->entries[instance->defrag_for].name);
	free(shuffle.fits_by_free);
	return count > 0 ? count : 0;
}

static bool check_moves(const struct instance *instance, struct course *course, enum verb verb, const cJSON *root,
			struct move_stats *stats, struct complaint *complaint)
{
	return verb == VERB_RECOVER ? check_recover(instance, course, root, stats, complaint)
				    : check_defrag(instance, course, root, stats, complaint);
}

enum { MOVE_SPOILINGS = 5 };

/* A bound too high, a move missing, a move twice, a move to an unknown node, an unrepaired job that is not named. */
static bool spoil_moves(cJSON *root, int how)
{
	cJSON *list = cJSON_GetObjectItem(root, "moves"), *unrepaired = cJSON_GetObjectItem(root, "unrepaired");
	bool some = unrepaired->child != NULL;

	if (how == 4)
		cJSON_DeleteItemFromArray(unrepaired, 0);
	if (how == 4)
		return some;
	if (how == 0)
		return cJSON_ReplaceItemInObject(
			root, "lowerBound", cJSON_CreateNumber(cJSON_GetObjectItem(root, "lowerBound")->valueint + 1));
	if (!list->child)
		return false;
	if (how == 1)
		cJSON_DeleteItemFromArray(list, 0);
	else if (how == 2)
		cJSON_AddItemToArray(list, cJSON_Duplicate(list->child, true));
	else
		spoil_text(list->child, "to", "node-0");
	return true;
}

/* Of plans with segments brute force knows only how good they are, so it cannot give the answer itself. */
static void instance_make_whole(uint64_t seed, uint64_t index, enum verb verb, struct instance *instance)
{
	instance_make(seed, index, verb, instance);
	for (int e = 0; e < instance->entry_count; e++)
		instance->entries[e].segment_size = 0;
}

/* Likewise of some plans for several sizes. */
static bool some_open(const struct instance *instance, const struct course *course)
{
	for (int e = 0; e < instance->entry_count; e++)
		if (instance->entries[e].removes < 0 && course->outcomes[e].placed && course->outcomes[e].open)
			return true;
	return false;
}

static bool random_moves_hold(uint64_t seed, uint64_t index, enum verb verb, struct course *course,
			      struct move_stats *stats, struct score *score)
{
	struct move_stats ignored = {0};
	struct instance instance;
	struct complaint complaint = {""};
	cJSON *root = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(root, "moves");
	cJSON *unrepaired = cJSON_AddArrayToObject(root, "unrepaired");

	instance_make_whole(seed, index, verb, &instance);
	course_run(&instance, verb == VERB_DEFRAG ? instance.defrag_for : -1, NULL, course);
	int least = verb == VERB_RECOVER ? add_repairs(&instance, course, list, unrepaired)
					 : add_shuffle(&instance, course, list, unrepaired);
	cJSON_AddNumberToObject(root, "lowerBound", least);
	bool holds = check_moves(&instance, course, verb, root, stats, &complaint);
	for (int how = 0; holds && how < MOVE_SPOILINGS; how++) {
		cJSON *copy = cJSON_Duplicate(root, true);
		if (spoil_moves(copy, how)) {
			score->spoilt++;
			holds = !check_moves(&instance, course, verb, copy, &ignored, &complaint);
			if (!holds)
				complain(&complaint, "spoilt way %d is accepted", how);
		}
		cJSON_Delete(copy);
	}
	if (!holds)
		printf("FAILED %s index %llu: %s\n", VERB_NAMES[verb], (unsigned long long)index, complaint.text);
	cJSON_Delete(root);
	return holds;
}

/* ---- random victims --------------------------------------------------------------------------------------------- */

static bool random_victims_hold(uint64_t seed, uint64_t index, struct course *course, struct victim_stats *stats,
				struct score *score)
{
	struct victim_stats ignored = {0};
	struct instance instance;
	struct complaint complaint = {""};

	instance_make_whole(seed, index, VERB_PREEMPT, &instance);
	course_run(&instance, instance.defrag_for, NULL, course);
	if (some_open(&instance, course))
		return true;
	cJSON *root = preempt_by_brute_force(&instance, course);
	if (root == NULL)
		return true;
	bool holds = check_preempt(&instance, course, root, stats, &complaint);
	for (int how = 0; holds && how < PREEMPT_SPOILINGS; how++) {
		cJSON *copy = cJSON_Duplicate(root, true);
		if (spoil_preempt(copy, how)) {
			score->spoilt++;
			holds = !check_preempt(&instance, course, copy, &ignored, &complaint);
			if (!holds)
				complain(&complaint, "spoilt way %d is accepted", how);
		}
		cJSON_Delete(copy);
	}
	if (!holds)
		printf("FAILED preempt index %llu: %s\n", (unsigned long long)index, complaint.text);
	cJSON_Delete(root);
	return holds;
}

/* ---- random windows --------------------------------------------------------------------------------------------- */

static bool random_windows_hold(uint64_t seed, uint64_t index, struct course *course, struct window_stats *stats,
				struct score *score)
{
	struct window_stats ignored = {0};
	struct instance instance;
	struct complaint complaint = {""};

	instance_make_whole(seed, index, VERB_RESERVE, &instance);
	course_run(&instance, instance.defrag_for, NULL, course);
	if (some_open(&instance, course))
		return true;
	struct opening opening = first_opening(&instance, course);
	cJSON *root = window_by_brute_force(&instance, course, &opening);
	bool holds = check_window(&instance, course, root, stats, &complaint);
	for (int how = 0; holds && !opening.outcome.open && how < WINDOW_SPOILINGS; how++) {
		cJSON *copy = cJSON_Duplicate(root, true);
		if (spoil_window(copy, how)) {
			score->spoilt++;
			holds = !check_window(&instance, course, copy, &ignored, &complaint);
			if (!holds)
				complain(&complaint, "spoilt way %d is accepted", how);
		}
		cJSON_Delete(copy);
	}
	if (!holds)
		printf("FAILED reserve index %llu: %s\n", (unsigned long long)index, complaint.text);
	cJSON_Delete(root);
	return holds;
}

/* ---- all of it -------------------------------------------------------------------------------------------------- */

enum { SELF_PLANS = 150, SELF_SPOILT = 75, SELF_MOVES = 150 };

static bool some_untried(const int *tried)
{
	for (int how = 0; how < SPOILINGS; how++)
		if (tried[how] == 0)
			return true;
	return false;
}

/* As many as it takes until every way to spoil an answer has been tried: some are seldom possible. */
static void random_plans(uint64_t seed, struct course *course, struct score *score)
{
	static struct stats stats;
	int tried[SPOILINGS] = {0};

	for (int i = 0; i < SELF_PLANS || (some_untried(tried) && i < 20 * SELF_PLANS); i++) {
		struct instance instance;
		struct complaint complaint = {""};
		instance_make_whole(seed, (uint64_t)i, VERB_PLAN, &instance);
		course_run(&instance, -1, NULL, course);
		if (some_open(&instance, course))
			continue;
		stats_add_course(&stats, &instance, course);
		cJSON *root = plans_by_brute_force(&instance, course);
		bool right = check_plans(&instance, course, root, &complaint);
		if (!right)
			printf("FAILED index %d: brute force contradicts itself: %s\n", i, complaint.text);
		if (right && (i < SELF_SPOILT || some_untried(tried)))
			right = spoilt_plans_are_caught(&instance, course, root, tried);
		score_add(score, right);
		cJSON_Delete(root);
	}
	stats_print(&stats);
	for (int how = 0; how < SPOILINGS; how++) {
		printf("  spoilt %s: %d caught\n", SPOILING_NAMES[how], tried[how]);
		score->spoilt += tried[how];
		score_add(score, tried[how] > 0); /* a way that was never tried shows nothing */
	}
}

static int self_test(uint64_t seed)
{
	static struct course course; /* large */
	struct score score = {0};

	printf("seed %llu\n", (unsigned long long)seed);
	for (size_t i = 0; i < sizeof HAND_CASES / sizeof *HAND_CASES; i++)
		score_add(&score, hand_case_holds(&HAND_CASES[i], &course));
	for (size_t i = 0; i < sizeof HAND_MOVES / sizeof *HAND_MOVES; i++)
		score_add(&score, hand_moves_hold(&HAND_MOVES[i], &course));
	random_plans(seed, &course, &score);
	for (int verb = VERB_RECOVER; verb <= VERB_DEFRAG; verb++) {
		struct move_stats stats = {0};
		for (uint64_t i = 0; i < SELF_MOVES; i++)
			score_add(&score, random_moves_hold(seed, i, (enum verb)verb, &course, &stats, &score));
		printf("%s\n", VERB_NAMES[verb]);
		move_stats_print((enum verb)verb, &stats);
	}
	static struct victim_stats victim_stats;
	for (uint64_t i = 0; i < SELF_MOVES; i++)
		score_add(&score, random_victims_hold(seed, i, &course, &victim_stats, &score));
	printf("preempt\n");
	victim_stats_print(&victim_stats);
	static struct window_stats window_stats;
	for (uint64_t i = 0; i < SELF_MOVES; i++)
		score_add(&score, random_windows_hold(seed, i, &course, &window_stats, &score));
	printf("reserve\n");
	window_stats_print(&window_stats);
	printf("  %d spoilt answers tried\n%d passed, %d failed\n", score.spoilt, score.passed, score.failed);
	return score.failed > 0;
}

#endif
