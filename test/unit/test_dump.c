/* SPDX-License-Identifier: Apache-2.0 */
/* The dump: the same text as printf's, pods by key however they came, in as many rounds as its memory takes. */
#include "rig.h"

#include <inttypes.h>
#include <stdarg.h>

static void rig_extend(struct arena *arena, const struct frond_limits *limits)
{
	(void)arena;
	(void)limits;
}

/* ---- naive -------------------------------------------------------------------------------------------------------------- */

static uint32_t at_text;

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	at_text += (uint32_t)vsnprintf(rig->before + at_text, RIG_TEXT - at_text, format, arguments);
	va_end(arguments);
}

static void say_gang(const struct gang *gang)
{
	struct terms terms = gang_terms(gang);
	say(" gang %016" PRIx64 "%016" PRIx64 " state %d min %u lost %u%s", gang->key.hi, gang->key.lo,
	    (int)gang_state(gang), (unsigned)gang->min_member, (unsigned)gang->lost, gang->gone ? " gone" : "");
	say(" priority %" PRId32 " deadline %" PRId64 " terms %u %u %u %u %" PRIu32 " %" PRIx64, gang->priority,
	    (int64_t)gang->deadline_ms, (unsigned)terms.strategy, (unsigned)terms.mode, (unsigned)terms.recovery,
	    (unsigned)terms.latency_sensitive, terms.bandwidth_gbps, terms.domain);
	say(" gpu %d %d %d %" PRIu32 " %" PRIx32 "", (int)terms.gpu.policy, (int)terms.gpu.mode,
	    (int)terms.gpu.locality, terms.gpu.min_gbps, terms.gpu.prefer);
}

static void say_pod(const struct entry *entry)
{
	say("pod %016" PRIx64 "%016" PRIx64 " %s", entry->pod.hi, entry->pod.lo,
	    entry->hold == HOLD_BOUND ? "bound"
	    : entry->arrived          ? "arrived"
				      : "reserved");
	if (entry_slot(entry) != FROND_NONE)
		say(" node %u mask %x count %u", (unsigned)entry_slot(entry), (unsigned)entry->mask,
		    (unsigned)entry->by_count);
	if (entry_rank(entry) != FROND_NONE)
		say(" rank %u", (unsigned)entry_rank(entry));
	if (entry_gang(entry) != FROND_NONE)
		say_gang(&rig->core.gangs.gangs[entry_gang(entry)]);
	say("\n");
}

static void naive_dump(void)
{
	const struct core *core = &rig->core;
	at_text = 0;
	say("frond dump 1\n");
	for (uint32_t slot = 0; slot < core->node_cap; slot++) {
		const struct node *node = &core->nodes[slot];
		uint32_t position = core->fabric.position[slot], leaf = core->fabric.leaf_of[position];
		say("node %u gpus %u topology %u unhealthy %x unavailable %x flags %u uplink %u held %x count %u "
		    "position %u leaf %u spine %u\n",
		    (unsigned)slot, (unsigned)node->gpus, (unsigned)node->topology, (unsigned)node->unhealthy,
		    (unsigned)node->unavailable_gpus, (unsigned)node->flags + 8u * node->unavailable,
		    (unsigned)node->uplink_gbps, (unsigned)node->held, (unsigned)node->by_count, (unsigned)position,
		    (unsigned)leaf, (unsigned)core->fabric.leaf_spine[leaf]);
	}
	struct frond_key last = {0, 0};
	for (uint32_t told = 0; told < core->ledger.used; told++) {
		const struct entry *best = NULL;
		for (uint32_t at = 0; at < core->ledger.fresh; at++) {
			const struct entry *entry = &core->ledger.entries[at];
			if (entry->hold != HOLD_FREE && (told == 0 || key_before(last, entry->pod)) &&
			    (best == NULL || key_before(entry->pod, best->pod)))
				best = entry;
		}
		TEST_ASSERT_NOT_NULL(best);
		say_pod(best);
		last = best->pod;
	}
}

/* ---- random states -------------------------------------------------------------------------------------------------------- */

static uint64_t roll64(void)
{
	return (uint64_t)below(UINT32_MAX) << 32 | below(UINT32_MAX);
}

/* Keys that differ early, late, only in their last bits, or only in their first. */
static struct frond_key roll_key(uint32_t kind)
{
	switch (kind) {
	case 0:
		return (struct frond_key){roll64(), roll64()};
	case 1:
		return (struct frond_key){7, 1 + below(1000)};
	case 2:
		return (struct frond_key){(uint64_t)below(2) << 63 | below(3), roll64()};
	default:
		return (struct frond_key){below(8), (uint64_t)below(4) << 60 | below(16)};
	}
}

static void roll_state(void)
{
	rig_make(1 + below(2), 1 + below(3), 1 + below(4), 8);
	uint32_t nodes = rig->core.node_cap, kind = below(4);
	for (uint32_t slot = 0; slot < nodes; slot++) {
		struct node node = rig->core.nodes[slot];
		node.uplink_gbps = (percent(30) ? below(FROND_UPLINK_MAX) : 0) & 0xfffff;
		core_node_put(&rig->core, slot, &node);
		node_flags(slot, below(4), percent(30) ? below(256) : 0);
		node = rig->core.nodes[slot];
		node.unavailable = node.flags != 0 && percent(50);
		node.unavailable_gpus = (uint16_t)(node.unhealthy & below(256));
		core_node_put(&rig->core, slot, &node);
	}
	for (uint32_t i = below(40); i > 0; i--) {
		struct core_pod pod = {.pod = roll_key(kind),
				       .gang = percent(60) ? (struct frond_key){3, 1 + below(4)}
							   : (struct frond_key){0, 0},
				       .slot = below(nodes),
				       .by_count = percent(20) ? below(3) : 0,
				       .mask = percent(50) ? below(256) : 0,
				       .label = FROND_NONE,
				       .rank = percent(50) ? below(FROND_RANK_MAX) : FROND_NONE};
		bool joined;
		uint32_t dropped, label;
		if (!key_zero(pod.pod) && rig->core.ledger.used < rig->core.ledger.cap)
			TEST_ASSERT_EQUAL_INT32(FROND_OK, core_pod_put(&rig->core, &pod, &joined, &dropped));
		if (percent(15))
			core_release(&rig->core, roll_key(kind), &label);
	}
	for (uint32_t gang = 1; gang <= 4; gang++) {
		uint32_t id = gangs_find(&rig->core.gangs, (struct frond_key){3, gang});
		struct terms terms = {.strategy = (uint8_t)below(3),
				      .bandwidth_gbps = below(1000),
				      .domain = below(1u << TERMS_DOMAIN_BITS),
				      .gpu = GPU_WISH_DEFAULT};
		if (id == FROND_NONE)
			continue;
		gangs_promise(&rig->core.gangs, id, below(9), (int32_t)(roll64() & UINT32_MAX),
			      (int64_t)below(1u << 30));
		gangs_terms(&rig->core.gangs, id, &terms);
	}
}

static void test_it_is_what_printf_says_with_pods_by_key(void)
{
	for (uint64_t seed = 1; seed <= 500; seed++) {
		dice = random_seed = seed;
		roll_state();
		naive_dump();
		struct out out = {.text = rig->after, .cap = RIG_TEXT};
		core_dump(&rig->core, &out);
		TEST_ASSERT_EQUAL_UINT64(at_text, out.len);
		TEST_ASSERT_EQUAL_STRING(rig->before, rig->after);
	}
	random_seed = 0;
}

static void test_a_small_buffer_gets_what_fits_and_learns_the_length(void)
{
	dice = 5;
	roll_state();
	naive_dump();
	for (uint32_t cap = 0; cap <= at_text + 1; cap++) {
		char *text = malloc(cap + 1u);
		TEST_ASSERT_NOT_NULL(text);
		memset(text, '#', cap + 1u);
		struct out out = {.text = text, .cap = cap};
		uint32_t len;
		core_dump(&rig->core, &out);
		TEST_ASSERT_EQUAL_UINT64(at_text, out.len);
		TEST_ASSERT_EQUAL_INT32(cap > at_text ? FROND_OK : FROND_SMALL, out_finish(&out, &len));
		TEST_ASSERT_TRUE(cap == 0 || memcmp(rig->before, text, min_u32(cap - 1, at_text)) == 0);
		TEST_ASSERT_TRUE(text[cap] == '#');
		free(text);
	}
}

/* More pods than the planner's scratch has room for: they come in several rounds. */
static void test_more_pods_than_there_is_memory_for_come_in_order(void)
{
	enum { NODES = 16400, PODS = 320000, BYTES = 64 << 20 };
	const struct frond_limits limits = {.nodes = NODES, .pods = PODS, .table_bytes = 1u << 16};
	rig_memory_make(&limits);
	TEST_ASSERT_LESS_THAN_UINT64(PODS, place_scratch_bytes(rig->core.work) / sizeof(uint64_t));
	core_node_put(&rig->core, 0, &(struct node){.gpus = 0});
	rig->core.fabric.node_count = 1;
	rig->core.fabric.position[0] = rig->core.fabric.order[0] = 0;
	rig->core.fabric.leaf_of[0] = rig->core.fabric.domain_of[0] = FROND_NONE;
	for (uint32_t i = 0; i < PODS; i++) {
		uint32_t entry;
		struct frond_key key = {i % 5, (uint64_t)i * 0x9e3779b97f4a7c15u};
		TEST_ASSERT_EQUAL_INT32(FROND_OK, ledger_enter(&rig->core.ledger, key, HOLD_BOUND, FROND_NONE, 0, 0,
							       FROND_NONE, FROND_NONE, &entry));
	}
	struct out out = {.text = malloc(BYTES), .cap = BYTES};
	TEST_ASSERT_NOT_NULL(out.text);
	core_dump(&rig->core, &out);
	TEST_ASSERT_LESS_THAN_UINT64(BYTES, out.len);
	const char *last = NULL; /* of the lines, the last pod's */
	uint32_t lines = 0;
	for (const char *line = out.text, *next; line < out.text + out.len; line = next) {
		for (next = line; *next++ != '\n';)
			;
		if (memcmp(line, "pod ", 4) != 0)
			continue;
		TEST_ASSERT_TRUE(last == NULL || memcmp(last, line, 36) < 0);
		last = line;
		lines++;
	}
	TEST_ASSERT_EQUAL_UINT32(PODS, lines);
	free(out.text);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_it_is_what_printf_says_with_pods_by_key);
	RUN_TEST(test_a_small_buffer_gets_what_fits_and_learns_the_length);
	RUN_TEST(test_more_pods_than_there_is_memory_for_come_in_order);
	return rig_end();
}
