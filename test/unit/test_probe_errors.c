/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver that fails at random, and one that answers with any bytes that fit: never a crash, never a wrong value that is
 * said to be known, and always a report that holds together.
 *
 * FROND_SEED: the seed. FROND_PROBE_ERRORS: how many errors at least (10,000).
 */
#include "probe_rig.h"

#include "dice.h"

#define ERRORS_DEFAULT 10000u
#define READS_ODD      400u

static const char *const names[] = {"dgx-1v", "dgx-2", "dgx-a100", "dgx-h100", "gb200",
				    "pcie-4", "mig",   "busy",     "dead-gpu", "link-down"};
static uint64_t seed;
static char where[400];

void setUp(void)
{
	probe = NULL;
	description[0] = proc_folder[0] = '\0';
	dice = seed;
}

void tearDown(void)
{
	rig_stop();
}

static uint32_t from_environment(const char *name, uint32_t otherwise)
{
	const char *text = getenv(name);
	return text == NULL ? otherwise : (uint32_t)strtoul(text, NULL, 10);
}

static const char *with_seed(const char *what, const char *name, const char *lines)
{
	snprintf(where, sizeof(where), "%s: %s with \"%s\" (FROND_SEED=%llu)", what, name, lines,
		 (unsigned long long)seed);
	return where;
}

static uint32_t failures_in(const struct probe_report *r)
{
	uint32_t sum = 0;
	for (uint32_t i = 0; i < r->failure_count; i++)
		sum += r->failures[i].times;
	for (uint32_t i = 0; i < r->gpu_count; i++)
		sum += (uint32_t)__builtin_popcountll(r->gpus[i].unsupported);
	return sum;
}

static uint32_t reads_fail(uint32_t from, uint32_t percent_max)
{
	uint32_t known = 0;
	const char *name = names[below(COUNT(names))];
	char lines[64];
	snprintf(lines, sizeof(lines), "inject %u %u", 1 + below(percent_max), from);
	rig_start(name, lines);
	for (uint32_t i = 0; i < 3; i++) {
		probe_read(probe, percent(50) ? PROBE_ALL : PROBE_CHANGES, &report);
		if (report.state != PROBE_OK) {
			TEST_ASSERT_TRUE_MESSAGE(report.reason[0] != '\0' && report.gpu_count == 0,
						 with_seed("no reason", name, lines));
		} else {
			TEST_ASSERT_EQUAL_UINT32(machine.gpu_count, report.gpu_count);
		}
		TEST_ASSERT_TRUE_MESSAGE(report_is(&machine, &report, false), with_seed(wrong_text, name, lines));
		TEST_ASSERT_TRUE_MESSAGE(report_holds_together(&report), with_seed(wrong_text, name, lines));
		known += failures_in(&report);
	}
	rig_stop();
	return known;
}

static void test_ten_thousand_error_codes_make_nothing_wrong(void)
{
	uint32_t wanted = from_environment("FROND_PROBE_ERRORS", ERRORS_DEFAULT), errors = 0, rounds = 0;
	while (errors < wanted)
		errors += reads_fail((uint32_t)seed + rounds++, 30) + 1; /* + 1: it ends whatever happens */
	printf("%u errors in %u rounds, seed %llu\n", errors, rounds, (unsigned long long)seed);
}

/* Every function, every code, always: the driver is wrong in one way and right in all others. */
static void test_every_call_with_every_code(void)
{
	for (uint32_t call = 0; probe_call_name(call) != NULL; call++) {
		for (uint32_t code = 1; code <= 31; code++) {
			const char *name = names[(call + code) % COUNT(names)];
			char lines[128];
			snprintf(lines, sizeof(lines), "fail %s any %u", probe_call_name(call),
				 code == 31 ? 999 : code);
			rig_start(name, lines);
			for (enum probe_depth depth = PROBE_ALL; depth <= PROBE_CHANGES; depth++) {
				probe_read(probe, depth, &report);
				TEST_ASSERT_TRUE_MESSAGE(report_is(&machine, &report, false),
							 with_seed(wrong_text, name, lines));
				TEST_ASSERT_TRUE_MESSAGE(report_holds_together(&report),
							 with_seed(wrong_text, name, lines));
			}
			rig_stop();
		}
	}
}

/* What was known before the errors is not forgotten wrongly, and all of it is there again after them. */
static void test_after_the_errors_everything_is_known_again(void)
{
	for (uint32_t i = 0; i < COUNT(names); i++) {
		const char *name = names[i];
		rig_start(name, "");
		for (uint32_t round = 0; round < 5; round++) {
			char lines[64];
			snprintf(lines, sizeof(lines), "inject 40 %u", (uint32_t)seed + round);
			machine_set(name, lines);
			probe_read(probe, PROBE_CHANGES, &report);
			TEST_ASSERT_TRUE_MESSAGE(report_is(&machine, &report, false),
						 with_seed(wrong_text, name, lines));
		}
		machine_set(name, "");
		for (enum probe_depth depth = PROBE_ALL; depth <= PROBE_CHANGES; depth++) {
			probe_read(probe, depth, &report);
			TEST_ASSERT_TRUE_MESSAGE(report_is(&machine, &report, true), with_seed(wrong_text, name, ""));
		}
		rig_stop();
	}
}

static void test_odd_answers_never_break_the_report(void)
{
	uint32_t odd_answers = 0;
	for (uint32_t i = 0; i < READS_ODD; i++) {
		const char *name = names[below(COUNT(names))];
		char lines[64];
		snprintf(lines, sizeof(lines), "garbage %u %u", 1 + below(100), (uint32_t)seed + i);
		rig_start(name, lines);
		for (uint32_t k = 0; k < 2; k++) {
			probe_read(probe, k == 0 ? PROBE_ALL : PROBE_CHANGES, &report);
			TEST_ASSERT_TRUE_MESSAGE(report_holds_together(&report), with_seed(wrong_text, name, lines));
			for (uint32_t f = 0; f < report.failure_count; f++)
				odd_answers += report.failures[f].code == PROBE_CODE_ODD ? report.failures[f].times : 0;
		}
		rig_stop();
	}
	TEST_ASSERT_TRUE(odd_answers > READS_ODD);
}

int main(void)
{
	seed = from_environment("FROND_SEED", 20260117);
	UNITY_BEGIN();
	RUN_TEST(test_ten_thousand_error_codes_make_nothing_wrong);
	RUN_TEST(test_every_call_with_every_code);
	RUN_TEST(test_after_the_errors_everything_is_known_again);
	RUN_TEST(test_odd_answers_never_break_the_report);
	return UNITY_END();
}
