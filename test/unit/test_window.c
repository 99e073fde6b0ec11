/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_window.c - reservation windows (reference 7): hand-made ones, the window that stays, what is refused, and traces in which
 * others use kept nodes as backfill() allows while a gang waits. Every end and every domain: the oracle's verb reserve.
 */
#include "core/window.h"
#include "rig.h"

enum { MEMBERS = 64, ENDS = 512, MINUTE = 60000, TRACES = 1000 };

static struct window_work work;

static void rig_extend(struct arena *arena, const struct frond_limits *limits)
{
	window_layout(&work, arena, limits->pods);
}

static struct frond_window out;
static struct frond_place places[MEMBERS];
static struct frond_member members[MEMBERS];
static struct frond_end ends[ENDS];
static uint32_t end_count;

static void ends_at(struct frond_key pod, int64_t ms)
{
	uint32_t at = end_count++;
	TEST_ASSERT_LESS_OR_EQUAL_UINT32(ENDS, end_count);
	for (; at > 0 && ends[at - 1].ends_in_ms > ms; at--)
		ends[at] = ends[at - 1];
	ends[at] = (struct frond_end){pod, ms};
}

static int32_t look(const struct ask *ask, int32_t priority, const struct frond_place *kept, uint32_t *bad)
{
	struct window_question question = {
		.ask = ask, .priority = priority, .ends = ends, .end_count = end_count, .kept = kept};
	rig_remember();
	int32_t code = window(&work, &rig->core, &question, &out, places, bad);
	rig_unchanged();
	for (uint32_t i = 0; i < end_count; i++) {
		uint32_t at = ledger_find(&rig->core.ledger, ends[i].pod);
		TEST_ASSERT_TRUE(at == FROND_NONE || rig->core.ledger.entries[at].ends == 0);
	}
	return code;
}

static void open_window(const struct ask *ask, int32_t priority, const struct frond_place *kept)
{
	uint32_t bad;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, look(ask, priority, kept, &bad));
}

static void expect(int64_t start_ms, uint32_t nodes, uint32_t free, uint32_t first_slot)
{
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, out.outcome);
	TEST_ASSERT_EQUAL_INT64(start_ms, out.start_ms);
	TEST_ASSERT_EQUAL_UINT32(nodes, out.nodes);
	TEST_ASSERT_EQUAL_UINT32(free, out.free);
	TEST_ASSERT_EQUAL_UINT32(first_slot, places[0].slot);
}

/* A gang of one that is promised a priority, with an end or without (below zero). */
static struct frond_key runs(uint32_t gang, uint32_t slot, uint32_t gpus, int32_t priority, int64_t ends_ms)
{
	struct frond_key pod = bind(gang, 0, slot, gpus);
	promise(gang, 1, priority, &PLAIN);
	if (ends_ms >= 0)
		ends_at(pod, ends_ms);
	return pod;
}

static void begin(uint32_t spines, uint32_t leaves, uint32_t nodes, uint32_t gpus)
{
	rig_make(spines, leaves, nodes, gpus);
	end_count = 0;
}

/* ---- hand-made ------------------------------------------------------------------------------------------------------- */

static void the_leaf_that_is_free_first_is_the_window(void)
{
	begin(1, 3, 2, 8);
	runs(1, 0, 8, 0, 50 * MINUTE);
	runs(2, 2, 8, 0, 20 * MINUTE);
	runs(3, 3, 8, 0, 30 * MINUTE);
	runs(4, 4, 8, 0, -1);
	struct ask ask = ask_for(members, 2, 8, MODE_REQUIRED);
	open_window(&ask, 0, NULL);
	expect(30 * MINUTE, 2, 0, 2);
	TEST_ASSERT_EQUAL_UINT32(1, out.plan.leaves);
}

static void what_is_free_now_starts_now_in_the_first_domain(void)
{
	begin(1, 3, 2, 8);
	runs(1, 0, 8, 0, 50 * MINUTE);
	struct ask ask = ask_for(members, 2, 8, MODE_REQUIRED);
	open_window(&ask, 0, NULL);
	expect(0, 2, 2, 2);
}

static void an_end_that_is_now_is_over(void)
{
	begin(1, 1, 2, 8);
	runs(1, 0, 8, 0, 0);
	runs(2, 1, 8, 0, 5 * MINUTE);
	struct ask ask = ask_for(members, 1, 8, MODE_REQUIRED);
	open_window(&ask, 0, NULL);
	expect(0, 1, 1, 0);
}

static void lower_priority_of_unknown_end_counts_as_free_and_of_known_end_does_not(void)
{
	begin(1, 2, 1, 8);
	runs(1, 0, 8, 3, 40 * MINUTE);
	runs(2, 1, 8, 3, -1);
	struct ask ask = ask_for(members, 1, 8, MODE_REQUIRED);
	open_window(&ask, 4, NULL);
	expect(0, 1, 1, 1);
	open_window(&ask, 3, NULL); /* not lower */
	expect(40 * MINUTE, 1, 0, 0);
}

static void a_pod_in_no_gang_stays(void)
{
	begin(1, 1, 1, 8);
	bind(0, FROND_NONE, 0, 8);
	struct ask ask = ask_for(members, 1, 8, MODE_REQUIRED);
	open_window(&ask, 100, NULL);
	TEST_ASSERT_EQUAL_UINT32(FROND_WAITS, out.outcome);
	TEST_ASSERT_EQUAL_INT64(FROND_WINDOW_NEVER, out.start_ms);
}

static void a_window_opens_when_the_last_of_several_has_ended(void)
{
	begin(1, 1, 4, 4);
	for (uint32_t slot = 0; slot < 4; slot++)
		runs(slot + 1, slot, 4, 0, (int64_t)(10 + slot) * MINUTE);
	struct ask ask = ask_for(members, 3, 4, MODE_REQUIRED);
	open_window(&ask, 0, NULL);
	expect(12 * MINUTE, 3, 0, 0);
}

static void a_partly_used_node_counts_with_the_room_that_it_has(void)
{
	begin(1, 1, 2, 8);
	runs(1, 0, 4, 0, -1);
	runs(2, 0, 4, 0, 10 * MINUTE);
	runs(3, 1, 4, 0, -1);
	struct ask ask = ask_for(members, 2, 4, MODE_IGNORE);
	open_window(&ask, 0, NULL);
	expect(10 * MINUTE, 2, 1, 0);
}

static void preferred_starts_as_soon_as_it_fits_anywhere(void)
{
	begin(1, 2, 2, 8);
	runs(1, 0, 8, 0, 10 * MINUTE);
	runs(2, 1, 8, 0, 90 * MINUTE);
	runs(3, 2, 8, 0, 90 * MINUTE);
	struct ask ask = ask_for(members, 2, 8, MODE_PREFERRED);
	open_window(&ask, 0, NULL);
	expect(10 * MINUTE, 2, 1, 0);
	TEST_ASSERT_TRUE(out.plan.flags & FROND_PLAN_RELAXED);
	ask.mode = MODE_REQUIRED;
	open_window(&ask, 0, NULL);
	expect(90 * MINUTE, 2, 0, 0);
}

static void pinned_members_stay_and_are_no_nodes_of_the_window(void)
{
	begin(1, 2, 2, 8);
	struct frond_key pinned = bind(7, 0, 2, 8);
	promise(7, 2, 0, &PLAIN);
	runs(1, 3, 8, 0, 15 * MINUTE);
	struct ask ask = ask_for(members, 2, 8, MODE_REQUIRED);
	members[0].pod = pinned;
	members[0].pinned_slot = 2;
	open_window(&ask, 0, NULL);
	TEST_ASSERT_EQUAL_INT64(15 * MINUTE, out.start_ms);
	TEST_ASSERT_EQUAL_UINT32(1, out.nodes);
	TEST_ASSERT_EQUAL_UINT32(0, out.free);
	TEST_ASSERT_EQUAL_UINT32(3, places[1].slot);
}

static void never_fits_is_never(void)
{
	begin(1, 1, 2, 8);
	runs(1, 0, 8, 0, MINUTE);
	struct ask ask = ask_for(members, 3, 8, MODE_REQUIRED);
	open_window(&ask, 0, NULL);
	TEST_ASSERT_EQUAL_UINT32(FROND_NEVER, out.outcome);
	TEST_ASSERT_EQUAL_INT64(FROND_WINDOW_NEVER, out.start_ms);
}

/* ---- the window that the gang has ------------------------------------------------------------------------------------- */

static void a_window_stays_unless_another_starts_earlier(void)
{
	struct frond_place kept[2];
	begin(1, 3, 2, 8);
	for (uint32_t slot = 0; slot < 6; slot++)
		runs(slot + 1, slot, 8, 0, (slot / 2 == 1 ? 20 : 30) * (int64_t)MINUTE);
	struct ask ask = ask_for(members, 2, 8, MODE_REQUIRED);
	open_window(&ask, 0, NULL);
	expect(20 * MINUTE, 2, 0, 2);
	memcpy(kept, places, sizeof kept);
	open_window(&ask, 0, kept);
	expect(20 * MINUTE, 2, 0, 2);
	TEST_ASSERT_EQUAL_UINT32(1, out.kept);

	for (uint32_t i = 0; i < end_count; i++) /* all at one time: the first leaf is no better than what it has */
		ends[i].ends_in_ms = 20 * MINUTE;
	open_window(&ask, 0, kept);
	expect(20 * MINUTE, 2, 0, 2);
	TEST_ASSERT_EQUAL_UINT32(1, out.kept);
	TEST_ASSERT_EQUAL_UINT32(1, out.plan.leaves);
	open_window(&ask, 0, NULL);
	expect(20 * MINUTE, 2, 0, 0);

	core_release(&rig->core, (struct frond_key){1, 5}, &(uint32_t){0}); /* the last leaf is free earlier */
	core_release(&rig->core, (struct frond_key){1, 6}, &(uint32_t){0});
	open_window(&ask, 0, kept);
	expect(0, 2, 2, 4);
	TEST_ASSERT_EQUAL_UINT32(0, out.kept);
}

static void a_window_whose_node_is_closed_or_gone_does_not_stay(void)
{
	struct frond_place kept[2];
	begin(1, 2, 2, 8);
	for (uint32_t slot = 0; slot < 4; slot++)
		runs(slot + 1, slot, 8, 0, (slot < 2 ? 20 : 30) * (int64_t)MINUTE);
	struct ask ask = ask_for(members, 2, 8, MODE_REQUIRED);
	open_window(&ask, 0, NULL);
	expect(20 * MINUTE, 2, 0, 0);
	memcpy(kept, places, sizeof kept);
	node_flags(1, FROND_NODE_CORDONED, 0);
	open_window(&ask, 0, kept);
	expect(30 * MINUTE, 2, 0, 2);
	TEST_ASSERT_EQUAL_UINT32(0, out.kept);
	node_flags(1, 0, 1); /* a GPU of it is ill */
	open_window(&ask, 0, kept);
	expect(30 * MINUTE, 2, 0, 2);
	node_flags(1, 0, 0);
	kept[1].slot = 99; /* never was one */
	open_window(&ask, 0, kept);
	expect(20 * MINUTE, 2, 0, 0);
	TEST_ASSERT_EQUAL_UINT32(0, out.kept);
}

static void a_window_that_no_longer_meets_the_rule_does_not_stay(void)
{
	begin(1, 2, 2, 8);
	for (uint32_t slot = 0; slot < 4; slot++)
		runs(slot + 1, slot, 8, 0, 20 * MINUTE);
	struct ask ask = ask_for(members, 2, 8, MODE_REQUIRED);
	struct frond_place apart[2] = {{.slot = 1, .gpu_mask = 0xff}, {.slot = 2, .gpu_mask = 0xff}};
	open_window(&ask, 0, apart);
	expect(20 * MINUTE, 2, 0, 0);
	TEST_ASSERT_EQUAL_UINT32(0, out.kept);
	struct frond_place fewer[2] = {{.slot = 2, .gpu_mask = 0xff}, {.slot = 3, .gpu_mask = 0x0f}};
	open_window(&ask, 0, fewer);
	TEST_ASSERT_EQUAL_UINT32(0, out.kept);
}

/* ---- what is refused --------------------------------------------------------------------------------------------------- */

static void a_pod_with_two_ends_is_refused(void)
{
	uint32_t bad;
	begin(1, 1, 2, 8);
	struct frond_key pod = runs(1, 0, 8, 0, MINUTE);
	ends_at(pod, 2 * MINUTE);
	struct ask ask = ask_for(members, 2, 8, MODE_REQUIRED);
	TEST_ASSERT_EQUAL_INT32(FROND_BAD, look(&ask, 0, NULL, &bad));
	TEST_ASSERT_EQUAL_UINT32(1, bad);
}

static void ends_of_pods_that_hold_nothing_do_not_matter(void)
{
	begin(1, 1, 1, 8);
	ends_at((struct frond_key){8, 1}, MINUTE);
	ends_at((struct frond_key){8, 1}, MINUTE);
	runs(1, 0, 8, 0, 2 * MINUTE);
	struct ask ask = ask_for(members, 1, 8, MODE_REQUIRED);
	open_window(&ask, 0, NULL);
	expect(2 * MINUTE, 1, 0, 0);
}

/* ---- a cluster of many pods: found by halves, bounded work ------------------------------------------------------------ */

static void the_first_of_many_ends_is_found(void)
{
	begin(4, 4, 4, 4);
	for (uint32_t slot = 0; slot < 64; slot++)
		for (uint32_t i = 0; i < 4; i++)
			runs(1 + slot * 4 + i, slot, 1, 0, (int64_t)(1 + (slot * 37 + i * 11) % 256) * MINUTE);
	for (uint32_t gang = 1; gang <= 4; gang++) {
		struct ask ask = ask_for(members, gang, 4, MODE_REQUIRED);
		int64_t first = INT64_MAX; /* over leaves: the gang'th smallest of their nodes' last ends */
		for (uint32_t leaf = 0; leaf < 16; leaf++) {
			int64_t last[4] = {0};
			for (uint32_t n = 0; n < 4; n++)
				for (uint32_t i = 0; i < 4; i++) {
					int64_t end = (int64_t)(1 + ((leaf * 4 + n) * 37 + i * 11) % 256) * MINUTE;
					last[n] = end > last[n] ? end : last[n];
				}
			for (uint32_t a = 0; a < 4; a++)
				for (uint32_t b = a + 1; b < 4; b++)
					if (last[b] < last[a]) {
						int64_t swap = last[a];
						last[a] = last[b];
						last[b] = swap;
					}
			first = last[gang - 1] < first ? last[gang - 1] : first;
		}
		open_window(&ask, 0, NULL);
		TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, out.outcome);
		TEST_ASSERT_EQUAL_INT64(first, out.start_ms);
	}
}

/* ---- traces: a gang waits at the head, others backfill ----------------------------------------------------------------- */

enum { TRACE_NODES = 12, TRACE_GPUS = 4, TRACE_PODS = 96, TRACE_MINUTES = 400 };

struct trace_pod {
	uint32_t gpus, arrives, runs_for; /* minutes */
	uint32_t ends;                    /* when it has started; 0: not yet */
	struct frond_key key;
};

static struct trace_pod trace[TRACE_PODS];
static uint32_t trace_count;

static void trace_start(struct trace_pod *pod, uint32_t gang, uint32_t slot, uint32_t now)
{
	pod->key = runs(gang, slot, pod->gpus, 0, -1);
	pod->ends = now + pod->runs_for;
}

static void trace_roll(void)
{
	trace_count = 0;
	for (uint32_t slot = 0; slot < TRACE_NODES; slot++)
		for (uint32_t left = TRACE_GPUS; left > 0 && percent(80);) {
			uint32_t gpus = 1 + below(left);
			trace[trace_count++] = (struct trace_pod){.gpus = gpus, .runs_for = 1 + below(60)};
			left -= gpus;
			trace_start(&trace[trace_count - 1], trace_count, slot, 0);
		}
	while (trace_count < TRACE_PODS)
		trace[trace_count++] = (struct trace_pod){
			.gpus = 1 + below(TRACE_GPUS), .arrives = below(90), .runs_for = 1 + below(50)};
}

static void trace_end_pods(uint32_t now)
{
	for (uint32_t i = 0; i < trace_count; i++)
		if (trace[i].ends == now && now > 0)
			TEST_ASSERT_EQUAL_INT32(FROND_OK, core_release(&rig->core, trace[i].key, &(uint32_t){0}));
	end_count = 0;
	for (uint32_t i = 0; i < trace_count; i++)
		if (trace[i].ends > now)
			ends_at(trace[i].key, (int64_t)(trace[i].ends - now) * MINUTE);
}

/* Those that have come take any node with room; one of the window only if they end before it starts. */
static void trace_backfill(uint32_t now, const bool *kept, int64_t start_ms)
{
	for (uint32_t i = 0; i < trace_count; i++) {
		struct trace_pod *pod = &trace[i];
		if (pod->ends > 0 || pod->arrives > now)
			continue;
		bool early = (int64_t)pod->runs_for * MINUTE <= start_ms;
		for (uint32_t slot = 0; slot < TRACE_NODES; slot++)
			if ((early || !kept[slot]) && node_free_count(&rig->core.nodes[slot]) >= pod->gpus) {
				trace_start(pod, i + 1, slot, now);
				break;
			}
	}
}

/* When the gang starts; backfill: others may start before it. */
static uint32_t trace_run(const struct ask *ask, bool backfill)
{
	static struct frond_place kept[MEMBERS];
	bool has = false;
	int64_t promised = INT64_MAX; /* minutes from the beginning */
	for (uint32_t now = 0; now < TRACE_MINUTES; now++) {
		trace_end_pods(now);
		open_window(ask, 0, has ? kept : NULL);
		TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, out.outcome);
		if (out.start_ms == 0)
			return now;
		int64_t start = now + out.start_ms / MINUTE;
		TEST_ASSERT_TRUE(start < promised || (start == promised && (!has || out.kept == 1)));
		promised = start;
		memcpy(kept, places, ask->count * sizeof *kept);
		has = true;
		bool nodes[TRACE_NODES] = {false};
		for (uint32_t i = 0; i < ask->count; i++)
			nodes[places[i].slot] = true;
		if (backfill)
			trace_backfill(now, nodes, out.start_ms);
	}
	TEST_FAIL_MESSAGE("the gang has never started");
	return TRACE_MINUTES;
}

static void one_trace(void)
{
	uint64_t roll = dice;
	uint32_t starts[2], last = 0;
	for (uint32_t backfill = 0; backfill < 2; backfill++) {
		dice = roll;
		begin(2, 2, 3, TRACE_GPUS);
		trace_roll();
		last = 0;
		for (uint32_t i = 0; i < trace_count; i++)
			last = trace[i].ends > last ? trace[i].ends : last;
		struct ask ask = ask_for(members, 1 + below(6), 1 + below(TRACE_GPUS), MODE_REQUIRED);
		starts[backfill] = trace_run(&ask, backfill == 1);
	}
	TEST_ASSERT_LESS_OR_EQUAL_UINT32(starts[0], starts[1]);
	TEST_ASSERT_LESS_OR_EQUAL_UINT32(last, starts[1]);
}

static void a_gang_at_the_head_never_starts_later_because_others_backfill(void)
{
	random_cases(TRACES, one_trace);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(the_leaf_that_is_free_first_is_the_window);
	RUN_TEST(what_is_free_now_starts_now_in_the_first_domain);
	RUN_TEST(an_end_that_is_now_is_over);
	RUN_TEST(lower_priority_of_unknown_end_counts_as_free_and_of_known_end_does_not);
	RUN_TEST(a_pod_in_no_gang_stays);
	RUN_TEST(a_window_opens_when_the_last_of_several_has_ended);
	RUN_TEST(a_partly_used_node_counts_with_the_room_that_it_has);
	RUN_TEST(preferred_starts_as_soon_as_it_fits_anywhere);
	RUN_TEST(pinned_members_stay_and_are_no_nodes_of_the_window);
	RUN_TEST(never_fits_is_never);
	RUN_TEST(a_window_stays_unless_another_starts_earlier);
	RUN_TEST(a_window_whose_node_is_closed_or_gone_does_not_stay);
	RUN_TEST(a_window_that_no_longer_meets_the_rule_does_not_stay);
	RUN_TEST(a_pod_with_two_ends_is_refused);
	RUN_TEST(ends_of_pods_that_hold_nothing_do_not_matter);
	RUN_TEST(the_first_of_many_ends_is_found);
	RUN_TEST(a_gang_at_the_head_never_starts_later_because_others_backfill);
	return rig_end();
}
