/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The best plan, by brute force, in the same process: the clusters and the judge are those of test/property (which share
 * no code with the engine), asked what frond-sim has no words for: bound members around which the rest is planned, room
 * per node, caps per leaf, one node alone, and members of several sizes far more often.
 *
 * FROND_SEED: the seed. FROND_PLACE_STEPS: how many clusters.
 */
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-function" /* the judge has more than is asked of it here */
#endif
#include "../property/files.h"
#include "../property/make.h"
#include "../property/plan.h"
#include "cluster.h"
#include "nearest.h"

enum { STEPS_USUAL = 1200, NOTES = 256, WHERE = 64, ARGS = 128 };

static struct cluster *c;
static char where[WHERE]; /* every failure says how to see it again */
static struct chance luck;
static struct instance instance;
static struct world world;
static struct state state;
static struct bounds bounds; /* of the gang in hand; the caps are the cluster's */
static bool bounded;         /* there is room per node */
static int only;             /* the one node in question; -1: all */
static struct {
	uint32_t placed, relaxed, waiting, never, refused, pinned, mixed;
} seen;

void setUp(void)
{
	c = NULL;
}

void tearDown(void)
{
	if (Unity.CurrentTestFailed)
		printf("to see it again: %s\n", where);
	cluster_free(c);
}

/* ---- the cluster ------------------------------------------------------------------------------------------------ */

static void node_enter(int n)
{
	static const char key[] = "nvidia.com/gpu.clique";
	const struct node *node = &instance.fabric.nodes[n];
	char in[2 * NAME_SIZE + sizeof key];
	uint32_t name = (uint32_t)strlen(node->name), clique = (uint32_t)strlen(node->clique);
	int len = snprintf(in, sizeof in, "%s%s%s", node->name, key, node->clique);
	struct frond_pair label = {{name, sizeof key - 1}, {name + (uint32_t)sizeof key - 1, clique}};
	struct frond_node put = {.slot = (uint32_t)n,
				 .gpus = (uint32_t)node->gpus,
				 .unhealthy_mask = state.sick[n],
				 .flags = state.closed[n] ? FROND_NODE_CORDONED : 0,
				 .uplink_gbps = (uint32_t)node->uplink_gbps,
				 .topology = FROND_NONE,
				 .name = {0, name}};
	int32_t code = abi->node_put(c->engine, &put, &label, clique > 0, in, (uint32_t)len, c->text, CLUSTER_TEXT - 1,
				     &c->len);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, code);
	snprintf(c->nodes[n].name, sizeof c->nodes[n].name, "%s", node->name);
	c->count = (uint32_t)instance.fabric.node_count;
}

static void cluster_enter(void)
{
	char *text = fabric_text(&instance.fabric, false), args[ARGS] = "", nodes[ARGS] = "", gpus[ARGS] = "";
	bounds = (struct bounds){
		.max_nodes_per_leaf = chance_percent(&luck, 20) ? 1 + chance_below(&luck, 3) : 0,
		.max_gpus_per_leaf =
			chance_percent(&luck, 20) ? 1 + chance_below(&luck, chance_percent(&luck, 30) ? 4 : 20) : 0};
	bool both = bounds.max_nodes_per_leaf > 0 && bounds.max_gpus_per_leaf > 0;
	if (bounds.max_nodes_per_leaf > 0)
		snprintf(nodes, sizeof nodes, "\"maxNodesPerLeaf\": %d", bounds.max_nodes_per_leaf);
	if (bounds.max_gpus_per_leaf > 0)
		snprintf(gpus, sizeof gpus, "\"maxGPUsPerLeaf\": %d", bounds.max_gpus_per_leaf);
	snprintf(args, sizeof args, "{\"topologyConstraints\": {%.32s%s%.32s}}", nodes, both ? ", " : "", gpus);
	cluster_free(c);
	c = calloc(1, sizeof *c);
	TEST_ASSERT_NOT_NULL(c);
	engine_make(c, NODES_MAX + CLUSTER_SPARE, CLUSTER_PODS, args, text);
	free(text);
	for (int n = 0; n < instance.fabric.node_count; n++) {
		node_enter(n);
		if (state.held[n] != 0)
			occupy(c, c->nodes[n].name, state.held[n]);
	}
	check(c);
}

/* ---- the question ----------------------------------------------------------------------------------------------- */

struct question {
	struct wanted want;
	uint32_t sizes[MEMBERS_MAX], pinned[MEMBERS_MAX];
	char wishes[NOTES], *claim;
	struct frond_room room[NODES_MAX + CLUSTER_SPARE];
};

/* "topology.scheduler/a": "b" → "a=b" */
static void wishes_write(const struct job *job, char *out)
{
	cJSON *entry = cJSON_CreateObject();
	const cJSON *note;
	int at = 0;
	out[0] = 0;
	add_annotations(job, entry);
	cJSON_ArrayForEach(note, cJSON_GetObjectItem(entry, "annotations"))
	{
		at += snprintf(out + at, NOTES - (size_t)at, "%s%s=%s", at > 0 ? " " : "",
			       strchr(note->string, '/') + 1, note->valuestring);
	}
	cJSON_Delete(entry);
}

static char *claim_write(const struct job *job)
{
	cJSON *entry = cJSON_CreateObject();
	char *text = NULL;
	if (job->claim.given) {
		add_claim(&instance.fabric, &job->claim, entry);
		text = cJSON_PrintUnformatted(cJSON_GetObjectItem(entry, "claim"));
	}
	cJSON_Delete(entry);
	return text;
}

/* What other filters leave of the nodes, for half of the gangs: once by capacity, and each day anew beside the bound. */
static void narrow_ever(void)
{
	bounded = chance_percent(&luck, 50);
	for (int n = 0; n < NODES_MAX; n++)
		bounds.ever[n] = bounded && chance_percent(&luck, 30) ? chance_below(&luck, 4) : MEMBERS_MAX;
}

static void narrow_today(const struct gang *gang)
{
	for (int n = 0; n < NODES_MAX; n++) {
		int most = bounds.ever[n];
		for (int rank = 0; rank < gang->members; rank++)
			most -= gang->pin[rank] == n;
		bounds.today[n] = bounded && chance_percent(&luck, 30) ? chance_below(&luck, most + 1) : most;
	}
	only = chance_percent(&luck, 4) ? chance_below(&luck, instance.fabric.node_count) : -1;
}

static void question_of(const struct gang *gang, struct question *out)
{
	const struct job *job = gang->job;
	for (int rank = 0; rank < job->members; rank++) {
		out->sizes[rank] = (uint32_t)job->sizes[rank];
		out->pinned[rank] = gang->pin[rank] < 0 ? FROND_NONE : (uint32_t)gang->pin[rank];
	}
	wishes_write(job, out->wishes);
	out->claim = claim_write(job);
	for (int n = 0; n < NODES_MAX; n++) { /* a selector is the host's affair: it leaves no room */
		bool matches = job->claim.zone == 0 || job->claim.zone == instance.fabric.nodes[n].zone;
		out->room[n].ever = (uint16_t)(matches ? bounds.ever[n] : 0);
		out->room[n].today = (uint16_t)(matches ? bounds.today[n] : 0);
	}
	out->want = (struct wanted){.name = job->name,
				    .members = (uint32_t)job->members,
				    .sizes = out->sizes,
				    .pinned = out->pinned,
				    .wishes = out->wishes,
				    .claim = out->claim,
				    .room = bounded || job->claim.zone != 0 ? out->room : NULL,
				    .only = only < 0 ? ANY_NODE : (uint32_t)only + 1};
}

/* ---- the answer ------------------------------------------------------------------------------------------------- */

static uint32_t outcome_of(const struct outcome *outcome)
{
	if (outcome->rule.never)
		return FROND_NEVER;
	if (outcome->rule.too_wide)
		return FROND_REFUSED;
	return outcome->placed ? FROND_PLACED : FROND_WAITS;
}

static void compare(const struct gang *gang, const struct outcome *outcome)
{
	static const uint32_t rules[RULE_KINDS] = {
		FROND_RULE_NONE,          FROND_RULE_SINGLE_NODE,     FROND_RULE_NVLINK_DOMAIN,  FROND_RULE_SAME_LEAF,
		FROND_RULE_COMPLETE_LEAF, FROND_RULE_ADJACENT_LEAVES, FROND_RULE_ADJACENT_SPINES};
	const struct plan *best = &outcome->plan;
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(outcome_of(outcome), c->plan.outcome, c->text);
	if (!outcome->placed)
		return;
	uint32_t flags = (outcome->relaxed ? FROND_PLAN_RELAXED : 0u) |
			 (outcome->rule.shapeless ? FROND_PLAN_SHAPELESS : 0u) |
			 (outcome->bounded ? FROND_PLAN_BOUNDED : 0u);
	TEST_ASSERT_EQUAL_UINT32(rules[outcome->rule.kind], c->plan.rule);
	TEST_ASSERT_EQUAL_UINT32(flags, c->plan.flags & ~(uint32_t)FROND_PLAN_UNKNOWN_DOMAIN);
	TEST_ASSERT_EQUAL_UINT32(best->facts.nodes, c->plan.nodes);
	TEST_ASSERT_EQUAL_UINT32(best->facts.leaves, c->plan.leaves);
	TEST_ASSERT_EQUAL_UINT32(best->facts.spines, c->plan.spines);
	TEST_ASSERT_EQUAL_UINT32(best->facts.runs, c->plan.runs);
	for (int rank = 0; rank < gang->members; rank++) {
		int n = best->placement.node[rank];
		TEST_ASSERT_EQUAL_UINT32(n < 0 ? FROND_NONE : (uint32_t)n, c->places[rank].slot);
		if (is_missing(gang, rank))
			TEST_ASSERT_EQUAL_HEX32(best->placement.mask[rank], c->places[rank].gpu_mask);
	}
}

/* "needs …; best leaf-1 has 2 free (node-1 in use)" */
static void compare_sentence(const struct gang *gang, const struct state *today, const struct rule *rule)
{
	char expected[CLUSTER_IN] = "";
	char *unknown = strstr(c->text, "; preferred-domain is not in the fabric"), *tail;
	if (unknown != NULL)
		*unknown = 0;
	tail = strstr(c->text, "; ");
	nearest_write(gang, today, rule, expected, sizeof expected);
	TEST_ASSERT_EQUAL_STRING_MESSAGE(expected, tail == NULL ? "" : tail + 2, c->text);
	if (rule->limit > 0 && !may_relax(gang->job, rule)) {
		snprintf(expected, sizeof expected, " in %d adjacent ", rule->limit);
		TEST_ASSERT_NOT_NULL_MESSAGE(strstr(c->text, expected), c->text);
	}
}

static bool ask(const struct gang *gang)
{
	struct question question;
	narrow_today(gang);
	question_of(gang, &question);
	struct state today = state;
	for (int n = 0; only >= 0 && n < instance.fabric.node_count; n++)
		today.closed[n] = today.closed[n] || n != only;
	struct outcome outcome = gang_plan(gang, &today);
	uint64_t steps = stats(c).steps;
	plan(c, &question.want);
	free(question.claim);
	compare(gang, &outcome);
	if (sizes_equal(gang->job, gang->members)) /* else some spans are not worth a look */
		TEST_ASSERT_EQUAL_UINT64(outcome.compared, stats(c).steps - steps);
	if (c->plan.outcome == FROND_WAITS && only < 0)
		compare_sentence(gang, &today, &outcome.rule);
	seen.placed += c->plan.outcome == FROND_PLACED;
	seen.relaxed += outcome.relaxed;
	seen.waiting += c->plan.outcome == FROND_WAITS;
	seen.never += c->plan.outcome == FROND_NEVER;
	seen.refused += c->plan.outcome == FROND_REFUSED;
	seen.pinned += count_missing(gang) < gang->members;
	seen.mixed += !sizes_equal(gang->job, gang->members);
	return outcome.placed;
}

/* ---- one gang after the other ----------------------------------------------------------------------------------- */

static void book(struct gang *gang)
{
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->reserve(c->engine, &c->request, c->members, c->places));
	check(c);
	for (int rank = 0; rank < gang->members; rank++) {
		if (!is_missing(gang, rank))
			continue;
		state.held[c->places[rank].slot] |= c->places[rank].gpu_mask;
		gang->pin[rank] = (int)c->places[rank].slot;
	}
}

/* Some members go; those that stay are pinned. A node may be closed, another be in use. */
static void lose_some(struct gang *gang)
{
	for (int rank = 0; rank < gang->members; rank++) {
		struct frond_key pod = key_of(gang->job->name, (uint64_t)rank + 1);
		if (gang->job->sizes[rank] > 0 && chance_percent(&luck, 50))
			continue;
		TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release(c->engine, &pod));
		if (gang->pin[rank] >= 0)
			state.held[gang->pin[rank]] &= ~c->places[rank].gpu_mask;
		gang->pin[rank] = -1;
	}
	int closed = chance_below(&luck, instance.fabric.node_count),
	    taken = chance_below(&luck, instance.fabric.node_count);
	unsigned free = free_mask(&instance.fabric, &state, taken);
	unsigned mask = free & (unsigned)chance_below(&luck, SETS);
	if (chance_percent(&luck, 40)) {
		state.closed[closed] = true;
		node_enter(closed);
	}
	if (mask != 0 && chance_percent(&luck, 40)) {
		state.held[taken] |= mask;
		occupy(c, c->nodes[taken].name, mask);
	}
}

/* What the makers of test/property seldom draw. */
static void vary(struct job *job)
{
	job->gpu_count = job->min_member = 0;
	job->latency_sensitive |= chance_percent(&luck, 15);
	if (job->members > 1 && chance_percent(&luck, 40))
		for (int rank = 0; rank < job->members; rank++)
			job->sizes[rank] = 1 + chance_below(&luck, chance_percent(&luck, 50) ? 3 : job->sizes[0]);
	if (!sizes_equal(job, job->members) && job->claim.mode == MODE_REQUIRED)
		job->claim = CLAIM_NONE;
}

static void one_cluster(uint64_t seed)
{
	luck = chance_for(seed, 1, VERB_PLAN);
	instance_make(seed, 0, chance_percent(&luck, 50) ? VERB_PLAN : VERB_RECOVER,
		      &instance); /* the latter are calmer */
	world_open(&world, &instance.fabric);
	state = state_of_day(&instance.fabric);
	cluster_enter();
	for (int e = 0; e < instance.entry_count; e++) {
		struct job *job = &instance.entries[e];
		if (job->removes >= 0)
			continue;
		vary(job);
		struct gang gang = gang_of(&world, job, job->members);
		gang.bounds = &bounds;
		narrow_ever();
		if (!ask(&gang))
			continue;
		book(&gang);
		lose_some(&gang);
		if (ask(&gang))
			book(&gang);
	}
}

static void test_every_plan_is_the_best_one_also_around_bound_members(void)
{
	const char *steps_text = getenv("FROND_PLACE_STEPS"), *seed_text = getenv("FROND_SEED");
	uint32_t steps = steps_text == NULL ? STEPS_USUAL : (uint32_t)strtoul(steps_text, NULL, 10);
	uint64_t seed = seed_text == NULL ? 20260101 : strtoull(seed_text, NULL, 0);
	printf("seed %llu\n", (unsigned long long)seed);
	for (uint32_t i = 0; i < steps; i++) {
		snprintf(where, sizeof where, "FROND_SEED=%llu FROND_PLACE_STEPS=1", (unsigned long long)(seed + i));
		one_cluster(seed + i);
	}
	printf("%u placed (%u relaxed), %u waiting, %u never, %u refused; %u with bound members, %u of several sizes\n",
	       (unsigned)seen.placed, (unsigned)seen.relaxed, (unsigned)seen.waiting, (unsigned)seen.never,
	       (unsigned)seen.refused, (unsigned)seen.pinned, (unsigned)seen.mixed);
	TEST_ASSERT_TRUE(steps < STEPS_USUAL ||
			 (seen.placed > 1000 && seen.relaxed > 100 && seen.waiting > 300 && seen.never > 100 &&
			  seen.refused > 10 && seen.pinned > 500 && seen.mixed > 500));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_every_plan_is_the_best_one_also_around_bound_members);
	return UNITY_END();
}
