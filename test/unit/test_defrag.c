/* SPDX-License-Identifier: Apache-2.0 */
#include "core/defrag.h"
#include "rig.h"

enum { MEMBERS = 64, MOVES_MAX = 2048, RANDOM_CASES = 1500 };

static struct defrag_work work;

static void rig_extend(struct arena *arena, const struct frond_limits *limits)
{
	defrag_layout(&work, arena, limits->pods);
}

static struct frond_moves out;
static struct frond_move moves[MOVES_MAX];
static struct frond_member members[MEMBERS];
static struct frond_place places[MEMBERS];

/* A plan is paid from the budget of its call. */
static bool rule_asked(const struct ask *ask, struct answer *answer)
{
	budget_begin(place_budget(rig->core.work), rig->core.fabric.node_count);
	return place_rule_of(rig->core.work, ask, answer);
}

/* Carries the moves out as a set, and asks the planner. */
static bool fits_after(const struct ask *ask)
{
	struct ask strict = *ask;
	struct answer answer;
	uint32_t label, entry;
	strict.mode = ask->mode == MODE_PREFERRED ? MODE_REQUIRED : ask->mode;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, core_what_if(&rig->core));
	for (uint32_t i = 0; i < out.count; i++) {
		TEST_ASSERT_TRUE(moves[i].from != moves[i].to);
		TEST_ASSERT_EQUAL_UINT32(
			moves[i].from,
			entry_slot(&rig->core.ledger.entries[ledger_find(&rig->core.ledger, moves[i].pod)]));
		TEST_ASSERT_EQUAL_INT32(FROND_OK, core_release(&rig->core, moves[i].pod, &label));
	}
	for (uint32_t i = 0; i < out.count; i++) {
		const struct node *node = &rig->core.nodes[moves[i].to];
		TEST_ASSERT_TRUE(node_open(node));
		TEST_ASSERT_EQUAL_HEX32(0, moves[i].gpu_mask & ~node_free_mask(node));
		TEST_ASSERT_EQUAL_INT32(FROND_OK, ledger_enter(&rig->core.ledger, moves[i].pod, HOLD_BOUND, moves[i].to,
							       moves[i].gpu_mask, 0, 0, FROND_NONE, &entry));
	}
	budget_begin(place_budget(rig->core.work), rig->core.fabric.node_count);
	place_gang(rig->core.work, &strict, &answer, places);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, core_undo(&rig->core));
	return answer.plan.outcome == FROND_PLACED;
}

static void dig(const struct ask *ask, uint32_t cap, int32_t code)
{
	rig_remember();
	TEST_ASSERT_EQUAL_INT32(code, defrag(&work, &rig->core, ask, &rig->defaults, &out, moves, cap));
	rig_unchanged();
	TEST_ASSERT_LESS_OR_EQUAL_UINT32(out.count, out.lower_bound);
	TEST_ASSERT_TRUE(code != FROND_OK || out.outcome != FROND_PLACED || fits_after(ask));
}

static void expect(uint32_t outcome, uint32_t count, uint32_t bound)
{
	TEST_ASSERT_EQUAL_UINT32(outcome, out.outcome);
	TEST_ASSERT_EQUAL_UINT32(count, out.count);
	TEST_ASSERT_EQUAL_UINT32(bound, out.lower_bound);
}

/* ---- hand-made ------------------------------------------------------------------------------------------------------- */

static void what_fits_needs_no_move(void)
{
	rig_make(1, 2, 2, 8);
	bind(1, 0, 0, 4);
	promise(1, 1, 0, &PLAIN);
	struct ask ask = ask_for(members, 2, 8, MODE_REQUIRED);
	dig(&ask, MOVES_MAX, FROND_OK);
	expect(FROND_PLACED, 0, 0);
}

static void a_pod_moves_to_open_a_leaf(void)
{
	rig_make(1, 2, 2, 8);
	bind(1, 0, 0, 4);
	promise(1, 1, 0, &PLAIN);
	bind(2, 0, 2, 4);
	promise(2, 1, 0, &PLAIN);
	struct ask ask = ask_for(members, 2, 8, MODE_PREFERRED); /* whole leaf: one of the two must join the other */
	dig(&ask, MOVES_MAX, FROND_OK);
	expect(FROND_PLACED, 1, 1);
	ask = ask_for(members, 2, 8, MODE_IGNORE);
	dig(&ask, MOVES_MAX, FROND_OK);
	expect(FROND_PLACED, 0, 0);
}

static void pods_in_no_gang_stay(void)
{
	rig_make(1, 2, 2, 8);
	bind(0, FROND_NONE, 0, 4);
	bind(0, FROND_NONE, 2, 4);
	struct ask ask = ask_for(members, 2, 8, MODE_REQUIRED);
	dig(&ask, MOVES_MAX, FROND_OK);
	expect(FROND_WAITS, 0, 0);
}

static void reserved_pods_stay(void)
{
	rig_make(1, 2, 1, 8);
	struct frond_member two[2] = {{.pod = {3, 1}, .gpus = 4, .pinned_slot = FROND_NONE},
				      {.pod = {3, 2}, .rank = 1, .gpus = 4, .pinned_slot = FROND_NONE}};
	struct frond_request request = {.gang = gang_key(3), .members = 2, .min_member = 2, .only_slot = FROND_NONE};
	struct frond_place at[2] = {{.slot = 0, .gpu_mask = 0xf}, {.slot = 1, .gpu_mask = 0xf}};
	TEST_ASSERT_EQUAL_INT32(FROND_OK, core_reserve(&rig->core, &request, two, at));
	struct ask ask = ask_for(members, 1, 8, MODE_REQUIRED);
	dig(&ask, MOVES_MAX, FROND_OK);
	expect(FROND_WAITS, 0, 0);
}

static void a_gang_keeps_the_rule_that_it_meets(void)
{
	rig_make(1, 3, 2, 8);
	/* gang 1 in leaf 0 on one node by its rule; leaf 1 and 2 half full */
	bind(1, 0, 0, 3);
	bind(1, 1, 0, 3);
	promise(1, 2, 0, &PLAIN);
	bind(0, FROND_NONE, 2, 4);
	bind(0, FROND_NONE, 3, 5);
	bind(0, FROND_NONE, 4, 5);
	bind(0, FROND_NONE, 5, 1);
	struct ask ask = ask_for(members, 2, 8, MODE_REQUIRED);
	dig(&ask, MOVES_MAX, FROND_OK);
	expect(FROND_PLACED, 2, 2); /* both to node 5 */
	TEST_ASSERT_EQUAL_UINT32(5, moves[0].to);
	TEST_ASSERT_EQUAL_UINT32(5, moves[1].to);
	struct terms free = PLAIN;
	free.mode = MODE_IGNORE;
	bind(0, FROND_NONE, 5, 3); /* no node has room for both now */
	dig(&ask, MOVES_MAX, FROND_OK);
	expect(FROND_WAITS, 0, 0);
	promise(1, 2, 0, &free);
	dig(&ask, MOVES_MAX, FROND_OK);
	expect(FROND_PLACED, 2, 2);
}

static void a_third_pod_makes_room_for_the_second(void)
{
	rig_make(1, 3, 1, 8);
	/* 5 must leave node 0, fits only where the 3 is, which fits on node 2 */
	bind(1, 0, 0, 5);
	promise(1, 1, 0, &PLAIN);
	bind(2, 0, 1, 3);
	promise(2, 1, 0, &PLAIN);
	bind(0, FROND_NONE, 1, 2);
	bind(0, FROND_NONE, 2, 5);
	struct ask ask = ask_for(members, 1, 8, MODE_REQUIRED);
	dig(&ask, MOVES_MAX, FROND_OK);
	expect(FROND_PLACED, 2, 2);
}

static void a_small_buffer_says_how_many(void)
{
	rig_make(1, 2, 2, 8);
	bind(1, 0, 0, 4);
	promise(1, 1, 0, &PLAIN);
	bind(2, 0, 2, 4);
	promise(2, 1, 0, &PLAIN);
	struct ask ask = ask_for(members, 2, 8, MODE_REQUIRED);
	dig(&ask, 0, FROND_SMALL);
	expect(FROND_PLACED, 1, 1);
}

/* Every node of 1,200 has a pod of its own gang: room for 300 nodes takes 300 gangs. */
static void more_gangs_than_an_answer_may_have_are_a_limit(void)
{
	static struct frond_member many[300];
	rig_make(2, 20, 30, 8);
	for (uint32_t slot = 0; slot < 1200; slot++) {
		bind(1 + slot, 0, slot, 1);
		promise(1 + slot, 1, 0, &PLAIN);
	}
	struct ask ask = ask_for(many, DEFRAG_GANGS + 44, 8, MODE_REQUIRED);
	TEST_ASSERT_EQUAL_INT32(FROND_LIMIT, defrag(&work, &rig->core, &ask, &rig->defaults, &out, moves, MOVES_MAX));
	TEST_ASSERT_EQUAL_UINT32(0, rig->core.undo.used);
	ask = ask_for(many, DEFRAG_GANGS - 16, 8, MODE_REQUIRED); /* eight leaves */
	TEST_ASSERT_EQUAL_INT32(FROND_OK, defrag(&work, &rig->core, &ask, &rig->defaults, &out, moves, MOVES_MAX));
	expect(FROND_PLACED, DEFRAG_GANGS - 16, DEFRAG_GANGS - 16);
}

/* Two leaves of 16 nodes. In the first half of the GPUs are held by a gang that nobody has room for elsewhere: whether
 * there is a way nobody has found out. */
static void a_hole_that_cannot_be_opened_is_undecided(void)
{
	rig_make(1, 2, 16, 8);
	for (uint32_t slot = 0; slot < 16; slot++) {
		bind(1, slot, slot, 4);
		bind(0, FROND_NONE, 16 + slot, 5);
	}
	promise(1, 16, 0, &PLAIN);
	struct ask ask = ask_for(members, 16, 8, MODE_REQUIRED);
	dig(&ask, MOVES_MAX, FROND_OK);
	expect(FROND_UNDECIDED, 0, 0);
	TEST_ASSERT_BITS_HIGH(FROND_PLAN_BOUNDED, out.flags);
	ask = ask_for(members, 33, 8, MODE_IGNORE); /* more than there are nodes */
	dig(&ask, MOVES_MAX, FROND_OK);
	expect(FROND_NEVER, 0, 0);
}

/* 800 nodes in leaves of 8: each node of a leaf but one has a pod of 1 to 4 GPUs. */
static void a_large_cluster_opens_a_leaf(void)
{
	dice = 3;
	rig_make(5, 20, 8, 8);
	for (uint32_t slot = 0; slot < 800; slot++) {
		bind(1 + slot, 0, slot, 1 + below(4));
		promise(1 + slot, 1, 0, &PLAIN);
	}
	struct ask ask = ask_for(members, 8, 8, MODE_REQUIRED);
	struct timespec from;
	clock_gettime(CLOCK_MONOTONIC, &from);
	dig(&ask, MOVES_MAX, FROND_OK);
	printf("a leaf of 8 on 800 nodes in use: %ld us, %u moves\n", micros_since(&from), out.count);
	expect(FROND_PLACED, 8, 8);
}

static void a_large_cluster_moves_gangs_around_their_rest(void)
{
	dice = 4;
	rig_make(2, 20, 4, 8);
	for (uint32_t leaf = 0; leaf < 40; leaf++) { /* gangs of three in a leaf, half a node each; two nodes shared */
		for (uint32_t rank = 0; rank < 3; rank++)
			bind(1 + leaf, rank, leaf * 4 + rank, 4);
		promise(1 + leaf, 3, 0, &PLAIN);
	}
	struct ask ask = ask_for(members, 3, 8, MODE_REQUIRED);
	dig(&ask, MOVES_MAX, FROND_OK);
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, out.outcome);
	TEST_ASSERT_EQUAL_UINT32(2, out.lower_bound);
	TEST_ASSERT_LESS_OR_EQUAL_UINT32(3, out.count); /* the gang moves to another leaf */
}

/* ---- against brute force ---------------------------------------------------------------------------------------------- */

enum { NODES = 24, RUNNING = 6, GANGS = 3, GANG_MAX = 3 };

struct brute {
	const struct ask *ask;
	struct answer rule;               /* of the asked gang */
	struct answer rule_of[GANGS + 1]; /* of the others */
	bool held[GANGS + 1];             /* they meet it */
	uint32_t count, slot[RUNNING], gpus[RUNNING], gang[RUNNING], home[RUNNING];
	uint32_t nodes, free[NODES]; /* with nobody of a gang */
	uint32_t gbps;               /* that every gang asks for */
};

static struct brute brute;
static uint32_t opened[RUNNING + 2]; /* cases by moves; the last: no moves help */
static uint32_t undecided;

/* Every place for the members of the asked gang from i on. */
static bool ask_fits(uint32_t i, uint32_t *slot)
{
	if (i == brute.ask->count)
		return rule_met(&brute.rule, brute.gbps, slot, i);
	for (slot[i] = 0; slot[i] < brute.nodes; slot[i]++) {
		uint32_t at = slot[i], gpus = members[i].gpus;
		if (!node_open(&rig->core.nodes[at]) || brute.free[at] < gpus)
			continue;
		brute.free[at] -= gpus;
		bool fits = ask_fits(i + 1, slot);
		brute.free[at] += gpus;
		if (fits)
			return true;
	}
	return false;
}

static bool rules_kept(void)
{
	for (uint32_t gang = 1; gang <= GANGS; gang++) {
		uint32_t slot[RUNNING], count = 0;
		bool moved = false;
		for (uint32_t i = 0; i < brute.count; i++)
			if (brute.gang[i] == gang) {
				slot[count++] = brute.slot[i];
				moved |= brute.slot[i] != brute.home[i];
			}
		struct answer links = {.plan.rule = FROND_RULE_NONE};
		if (moved && !rule_met(brute.held[gang] ? &brute.rule_of[gang] : &links, brute.gbps, slot, count))
			return false;
	}
	return true;
}

/* Can the members from i on be placed with so many moves? */
static bool shuffle(uint32_t i, uint32_t left)
{
	uint32_t slot[MEMBERS];
	if (i == brute.count)
		return rules_kept() && ask_fits(0, slot);
	for (uint32_t at = 0; at < brute.nodes; at++) {
		bool moves_here = at != brute.home[i];
		if (brute.free[at] < brute.gpus[i] || (moves_here && (left == 0 || !node_open(&rig->core.nodes[at]))))
			continue;
		brute.slot[i] = at;
		brute.free[at] -= brute.gpus[i];
		bool found = shuffle(i + 1, left - moves_here);
		brute.free[at] += brute.gpus[i];
		if (found)
			return true;
	}
	return false;
}

static void random_case(void)
{
	static const uint32_t SHAPES[][3] = {{1, 2, 3}, {1, 3, 2}, {1, 4, 1}, {2, 2, 1},
					     {3, 2, 1}, {1, 1, 4}, {2, 1, 2}};
	const uint32_t *shape = SHAPES[below(7)];
	brute = (struct brute){.nodes = shape[0] * shape[1] * shape[2]};
	rig_make(shape[0], shape[1], shape[2], 4);
	brute.gbps = percent(25) ? 200 : 0;
	rig_shuffle_fabric();
	uint32_t ranks[GANGS + 1] = {0};
	for (uint32_t tries = 0; tries < 20 && brute.count < RUNNING; tries++) {
		uint32_t slot = below(brute.nodes), gpus = 1 + below(3), gang = below(GANGS + 1);
		if (gpus > node_free_count(&rig->core.nodes[slot]) || ranks[gang] == GANG_MAX)
			continue;
		if (gang != 0) {
			brute.gang[brute.count] = gang;
			brute.gpus[brute.count] = gpus;
			brute.home[brute.count++] = slot;
		}
		bind(gang, ranks[gang]++, slot, gpus);
	}
	for (uint32_t gang = 1; gang <= GANGS; gang++) {
		struct terms terms = {
			.mode = (uint8_t)below(3), .strategy = (uint8_t)below(3), .gpu = GPU_WISH_DEFAULT};
		terms.latency_sensitive = percent(20);
		terms.bandwidth_gbps = brute.gbps;
		struct frond_member gang_members[GANG_MAX];
		uint32_t slots[GANG_MAX], count = 0;
		if (ranks[gang] == 0)
			continue;
		promise(gang, ranks[gang], 0, &terms);
		for (uint32_t i = 0; i < brute.count; i++)
			if (brute.gang[i] == gang) {
				slots[count] = brute.home[i];
				gang_members[count] = (struct frond_member){.pod = {8, i + 1},
									    .rank = count,
									    .gpus = brute.gpus[i],
									    .pinned_slot = FROND_NONE};
				count++;
			}
		struct ask ask = ask_for(members, 0, 0, (enum mode)terms.mode);
		ask.members = gang_members;
		ask.count = count;
		ask.strategy = (enum strategy)terms.strategy;
		ask.latency_sensitive = terms.latency_sensitive;
		ask.bandwidth_gbps = terms.bandwidth_gbps;
		bool ruled = rule_asked(&ask, &brute.rule_of[gang]) && ask.mode != MODE_IGNORE &&
			     !(brute.rule_of[gang].plan.flags & FROND_PLAN_SHAPELESS);
		brute.held[gang] = ruled && rule_met(&brute.rule_of[gang], brute.gbps, slots, count);
	}
	for (uint32_t slot = 0; slot < brute.nodes; slot++) {
		if (percent(15))
			node_flags(slot, FROND_NODE_CORDONED, 0);
		brute.free[slot] = node_free_count(&rig->core.nodes[slot]);
	}
	for (uint32_t i = 0; i < brute.count; i++)
		brute.free[brute.home[i]] += brute.gpus[i];
	struct ask ask = ask_for(members, 1 + below(4), 1 + below(4), (enum mode)below(3));
	ask.strategy = (enum strategy)below(3);
	ask.latency_sensitive = percent(20);
	ask.bandwidth_gbps = brute.gbps;
	brute.ask = &ask;
	dig(&ask, MOVES_MAX, FROND_OK);
	if (!rule_asked(&ask, &brute.rule) || (brute.rule.plan.flags & FROND_PLAN_SHAPELESS) ||
	    (ask.latency_sensitive && ask.mode != MODE_IGNORE && brute.rule.plan.rule >= FROND_RULE_ADJACENT_LEAVES)) {
		TEST_ASSERT_EQUAL_UINT32(0, out.count);
		return;
	}
	if (ask.mode == MODE_IGNORE)
		brute.rule.plan.rule = FROND_RULE_NONE;
	uint32_t least = 0;
	while (least <= brute.count && !shuffle(0, least))
		least++;
	if (out.outcome == FROND_UNDECIDED) { /* more plans than a call may make: told so, and seldom */
		TEST_ASSERT_TRUE(out.flags & FROND_PLAN_BOUNDED);
		TEST_ASSERT_EQUAL_UINT32(0, out.count);
		undecided++;
		return;
	}
	if (least > brute.count)
		expect(FROND_WAITS, 0, 0);
	else
		expect(FROND_PLACED, least, least);
	opened[least > brute.count ? RUNNING + 1 : least]++;
}

static void random_holes_take_the_fewest_moves(void)
{
	random_cases(RANDOM_CASES, random_case);
	printf("holes by moves:");
	for (uint32_t i = 0; i <= RUNNING + 1; i++)
		printf(" %u", opened[i]);
	printf("\n");
	TEST_ASSERT_GREATER_THAN_UINT32(0, opened[2]);
	TEST_ASSERT_LESS_OR_EQUAL_UINT32(RANDOM_CASES / 100, undecided);
}

/* ---- larger clusters: valid, and honest ---------------------------------------------------------------------------------- */

enum { JOBS = 24, JOB_MAX = 4 };

struct job {
	uint32_t count, slot[JOB_MAX];
	struct frond_member members[JOB_MAX];
	struct ask ask;
};

static struct job jobs[JOBS];
static uint32_t exact; /* answers that equal their lower bound */

/* A gang where the planner puts it; false: nowhere. */
static bool job_start(uint32_t j)
{
	struct job *job = &jobs[j];
	struct frond_place at[JOB_MAX];
	struct answer answer;
	uint32_t gpus = 1 + below(8);
	job->count = 1 + below(JOB_MAX);
	for (uint32_t i = 0; i < job->count; i++)
		job->members[i] = (struct frond_member){
			.pod = {8, j * JOB_MAX + i + 1}, .rank = i, .gpus = gpus, .pinned_slot = FROND_NONE};
	job->ask = ask_for(members, 0, 0, MODE_REQUIRED);
	job->ask.members = job->members;
	job->ask.count = job->count;
	job->ask.strategy = (enum strategy)below(3);
	place_gang(rig->core.work, &job->ask, &answer, at);
	if (answer.plan.outcome != FROND_PLACED) {
		job->count = 0;
		return false;
	}
	for (uint32_t i = 0; i < job->count; i++) {
		job->members[i].pod = bind(1 + j, i, at[i].slot, gpus);
		job->slot[i] = at[i].slot;
	}
	struct terms terms = {.strategy = (uint8_t)job->ask.strategy, .gpu = GPU_WISH_DEFAULT};
	promise(1 + j, job->count, 0, &terms);
	return true;
}

static void job_stop(uint32_t j)
{
	uint32_t label;
	for (uint32_t i = 0; i < jobs[j].count; i++)
		TEST_ASSERT_EQUAL_INT32(FROND_OK, core_release(&rig->core, jobs[j].members[i].pod, &label));
	jobs[j].count = 0;
}

static void random_large_case(void)
{
	brute = (struct brute){.nodes = NODES};
	rig_make(2, 4, 3, 8);
	for (uint32_t j = 0; j < JOBS; j++)
		job_start(j);
	for (uint32_t j = 0; j < JOBS; j++)
		if (jobs[j].count > 0 && percent(40))
			job_stop(j);
	struct ask ask = ask_for(members, 1 + below(6), 4 + 4 * below(2), MODE_REQUIRED);
	dig(&ask, MOVES_MAX, FROND_OK);
	opened[min_u32(out.count, RUNNING + 1)]++;
	exact += out.count > 0 && out.count == out.lower_bound;
	for (uint32_t j = 0; j < JOBS; j++) {
		struct answer answer;
		uint32_t slot[JOB_MAX];
		memcpy(slot, jobs[j].slot, sizeof slot);
		for (uint32_t i = 0; i < jobs[j].count; i++)
			for (uint32_t m = 0; m < out.count; m++)
				if (key_equal(moves[m].pod, jobs[j].members[i].pod))
					slot[i] = moves[m].to;
		if (jobs[j].count == 0)
			continue;
		TEST_ASSERT_TRUE(rule_asked(&jobs[j].ask, &answer));
		TEST_ASSERT_TRUE(rule_met(&answer, brute.gbps, slot, jobs[j].count));
	}
}

static void random_large_clusters_stay_valid(void)
{
	memset(opened, 0, sizeof opened);
	random_cases(300, random_large_case);
	printf("24 nodes, holes by moves:");
	for (uint32_t i = 0; i <= RUNNING + 1; i++)
		printf(" %u", opened[i]);
	printf("; proven minimal: %u\n", exact);
	TEST_ASSERT_GREATER_THAN_UINT32(0, opened[2]);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(what_fits_needs_no_move);
	RUN_TEST(a_pod_moves_to_open_a_leaf);
	RUN_TEST(pods_in_no_gang_stay);
	RUN_TEST(reserved_pods_stay);
	RUN_TEST(a_gang_keeps_the_rule_that_it_meets);
	RUN_TEST(a_third_pod_makes_room_for_the_second);
	RUN_TEST(a_small_buffer_says_how_many);
	RUN_TEST(more_gangs_than_an_answer_may_have_are_a_limit);
	RUN_TEST(a_hole_that_cannot_be_opened_is_undecided);
	RUN_TEST(a_large_cluster_opens_a_leaf);
	RUN_TEST(a_large_cluster_moves_gangs_around_their_rest);
	RUN_TEST(random_holes_take_the_fewest_moves);
	RUN_TEST(random_large_clusters_stay_valid);
	return rig_end();
}
