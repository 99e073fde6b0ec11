/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent says about its node, and when that is news. */
#include "agent/picture.h"

#include "unity.h"

#include <stdio.h>
#include <string.h>

static struct picture picture;
static struct probe_report report;

void setUp(void)
{
	picture_start(&picture);
	memset(&report, 0, sizeof(report));
	report.state = PROBE_OK;
	report.gpu_count = report.gpus_found = 2;
	for (uint32_t i = 0; i < 2; i++) {
		struct probe_gpu *gpu = &report.gpus[i];
		gpu->index = i;
		snprintf(gpu->uuid, sizeof(gpu->uuid), "GPU-%u", i);
		gpu->health = PROBE_HEALTHY;
		gpu->memory_mib = 80000;
		gpu->numa = gpu->rail = PROBE_UNKNOWN;
	}
}

void tearDown(void)
{
	picture_end(&picture);
}

static void taken(void)
{
	picture_take(&picture, &report);
}

static void accepted(void)
{
	picture_write(&picture);
	picture_wrote(&picture, true);
}

static void nothing_is_news_before_a_good_report(void)
{
	TEST_ASSERT_FALSE(picture_changed(&picture));
	report.state = PROBE_NO_DRIVER;
	report.gpu_count = 0;
	taken();
	picture_doubt(&picture, "it hangs");
	TEST_ASSERT_FALSE(picture_changed(&picture));
	TEST_ASSERT_FALSE(picture.good);
}

static void the_first_good_report_is_news_until_it_is_accepted(void)
{
	taken();
	TEST_ASSERT_TRUE(picture_changed(&picture));
	picture_write(&picture);
	picture_wrote(&picture, false);
	TEST_ASSERT_TRUE(picture_changed(&picture));
	accepted();
	TEST_ASSERT_FALSE(picture_changed(&picture));
	taken();
	TEST_ASSERT_FALSE(picture_changed(&picture));
}

static void a_node_without_gpus_is_reported_as_such(void)
{
	report.gpu_count = report.gpus_found = 0;
	taken();
	TEST_ASSERT_TRUE(picture_changed(&picture)); /* somebody was asked, and there are none */
	TEST_ASSERT_EQUAL(0, picture.now.device_count);
}

static void what_changes_while_a_write_is_under_way_is_news_after_it(void)
{
	taken();
	picture_write(&picture);
	report.gpus[1].health = PROBE_UNHEALTHY;
	taken();
	picture_wrote(&picture, true);
	TEST_ASSERT_TRUE(picture_changed(&picture));
	TEST_ASSERT_EQUAL(PROBE_HEALTHY, picture.written.devices[1].health);
	accepted();
	TEST_ASSERT_FALSE(picture_changed(&picture));
}

static void gpus_that_nobody_can_ask_about_are_unknown_and_stay(void)
{
	report.gpus[1].health = PROBE_UNHEALTHY;
	taken();
	accepted();
	struct status before = picture.now;
	report.state = PROBE_BROKEN;
	strcpy(report.reason, "the driver is ill");
	report.gpu_count = 0;
	taken();
	TEST_ASSERT_TRUE(picture.doubted);
	TEST_ASSERT_TRUE(picture_changed(&picture));
	TEST_ASSERT_EQUAL(2, picture.now.device_count);
	TEST_ASSERT_EQUAL(PROBE_HEALTH_UNKNOWN, picture.now.devices[0].health);
	TEST_ASSERT_EQUAL(PROBE_UNHEALTHY, picture.now.devices[1].health);
	before.devices[0].health = PROBE_HEALTH_UNKNOWN;
	status_reason_set(&before.devices[0], report.reason);
	TEST_ASSERT_EQUAL_STRING("the driver is ill", before.devices[0].reason);
	TEST_ASSERT_EQUAL_MEMORY(&before, &picture.now, sizeof(before)); /* all else as it was */
	accepted();
	taken();
	TEST_ASSERT_FALSE(picture_changed(&picture));
	/* The driver comes back. */
	report.state = PROBE_OK;
	report.gpu_count = 2;
	taken();
	TEST_ASSERT_FALSE(picture.doubted);
	TEST_ASSERT_EQUAL(PROBE_HEALTHY, picture.now.devices[0].health);
}

/* What an agent before this one has written: GPU 1 is dead by an XID. */
static struct status earlier(void)
{
	struct status status;
	report.gpus[1].health = PROBE_UNHEALTHY;
	strcpy(report.gpus[1].reason, "XID 79");
	status_from(&report, 1000, &status);
	report.gpus[1].health = PROBE_HEALTHY;
	report.gpus[1].reason[0] = '\0';
	return status;
}

static void what_was_reported_before_shows_only_when_nobody_can_be_asked(void)
{
	struct status before = earlier();
	picture_recall(&picture, &before, true);
	TEST_ASSERT_FALSE(picture_changed(&picture));
	picture_doubt(&picture, "it hangs");
	TEST_ASSERT_TRUE(picture_changed(&picture));
	TEST_ASSERT_EQUAL(2, picture.now.device_count);
	TEST_ASSERT_EQUAL(PROBE_HEALTH_UNKNOWN, picture.now.devices[0].health);
	TEST_ASSERT_EQUAL_STRING("it hangs", picture.now.devices[0].reason);
	TEST_ASSERT_EQUAL(PROBE_UNHEALTHY, picture.now.devices[1].health);
	TEST_ASSERT_EQUAL_STRING("XID 79", picture.now.devices[1].reason);
}

static void use_that_was_reported_before_is_not_replaced_by_what_nobody_read(void)
{
	report.gpus[0].utilization = 95;
	report.gpus[0].memory_used_mib = 70144;
	report.gpus[1].utilization = PROBE_UNKNOWN;
	report.gpus[1].memory_used_mib = PROBE_UNKNOWN;
	struct status before = earlier();
	picture_recall(&picture, &before, true);
	picture_doubt(&picture, "it hangs");
	accepted();
	TEST_ASSERT_EQUAL(95, picture.written.devices[0].utilization);
	TEST_ASSERT_EQUAL(70144, picture.written.devices[0].memory_used_mib);
	TEST_ASSERT_EQUAL(PROBE_UNKNOWN, picture.written.devices[1].utilization);
	TEST_ASSERT_EQUAL(PROBE_UNKNOWN, picture.written.devices[1].memory_used_mib);
}

static void an_xid_stands_until_the_driver_starts_again(void)
{
	struct status before = earlier();
	picture_recall(&picture, &before, true);
	for (uint32_t i = 0; i < 3; i++) {
		taken();
		TEST_ASSERT_EQUAL(PROBE_HEALTHY, picture.now.devices[0].health);
		TEST_ASSERT_EQUAL(PROBE_UNHEALTHY, picture.now.devices[1].health);
		TEST_ASSERT_EQUAL_STRING("XID 79", picture.now.devices[1].reason);
	}
	report.state = PROBE_NO_DRIVER;
	taken();
	report.state = PROBE_OK;
	taken();
	TEST_ASSERT_EQUAL(PROBE_HEALTHY, picture.now.devices[1].health);
	TEST_ASSERT_NULL(picture.recalled);
}

static void an_xid_that_is_recalled_after_the_driver_started_again_does_not_stand(void)
{
	struct status before = earlier();
	report.state = PROBE_NO_DRIVER;
	taken();
	report.state = PROBE_OK;
	taken();
	picture_recall(&picture, &before, true);
	for (uint32_t i = 0; i < 2; i++) {
		TEST_ASSERT_EQUAL(PROBE_HEALTHY, picture.now.devices[1].health);
		taken();
	}
}

static void what_is_recalled_late_shows_in_the_next_write(void)
{
	struct status before = earlier();
	report.gpus[0].uuid[0] = '\0';
	taken();
	picture_recall(&picture, &before, true);
	accepted(); /* without another look */
	TEST_ASSERT_EQUAL_STRING("GPU-0", picture.written.devices[0].id);
	TEST_ASSERT_EQUAL(PROBE_UNHEALTHY, picture.written.devices[1].health);
	TEST_ASSERT_EQUAL_STRING("XID 79", picture.written.devices[1].reason);
}

static void an_xid_does_not_outlive_a_restart_of_the_node(void)
{
	struct status before = earlier();
	picture_recall(&picture, &before, false);
	taken();
	TEST_ASSERT_EQUAL(PROBE_HEALTHY, picture.now.devices[1].health);
}

static void a_gpu_that_has_no_name_any_more_keeps_it(void)
{
	strcpy(report.gpus[1].model, "M");
	struct status before = earlier();
	picture_recall(&picture, &before, true);
	report.gpus[1].uuid[0] = report.gpus[1].model[0] = '\0';
	report.gpus[1].memory_mib = PROBE_UNKNOWN;
	taken();
	TEST_ASSERT_EQUAL_STRING("GPU-1", picture.now.devices[1].id);
	TEST_ASSERT_EQUAL_STRING("M", picture.now.devices[1].model);
	TEST_ASSERT_EQUAL(80000, picture.now.devices[1].memory_mib);
}

static void another_machine_has_nothing_of_the_one_before(void)
{
	struct status before = earlier();
	strcpy(report.gpus[0].uuid, "GPU-other");
	report.gpus[1].uuid[0] = '\0';
	picture_recall(&picture, &before, true);
	taken();
	TEST_ASSERT_EQUAL_STRING("unknown-1", picture.now.devices[1].id);
	TEST_ASSERT_EQUAL(PROBE_HEALTHY, picture.now.devices[1].health);
	TEST_ASSERT_NULL(picture.recalled);
}

static void bad_news_is_told_from_good(void)
{
	report.pairs[0][1].gbps = report.pairs[1][0].gbps = 50;
	taken();
	accepted();
	TEST_ASSERT_FALSE(picture_worse(&picture));
	report.pairs[0][1].gbps = report.pairs[1][0].gbps = 25;
	taken();
	TEST_ASSERT_TRUE(picture_worse(&picture));
	accepted();
	TEST_ASSERT_FALSE(picture_worse(&picture));
	report.pairs[0][1].gbps = report.pairs[1][0].gbps = 50;
	taken();
	TEST_ASSERT_TRUE(picture_changed(&picture));
	TEST_ASSERT_FALSE(picture_worse(&picture));
	accepted();
	report.gpus[1].health = PROBE_HEALTH_UNKNOWN;
	taken();
	TEST_ASSERT_TRUE(picture_worse(&picture));
	accepted();
	report.gpus[1].health = PROBE_HEALTHY;
	taken();
	TEST_ASSERT_FALSE(picture_worse(&picture));
	accepted();
	picture_doubt(&picture, "it hangs");
	TEST_ASSERT_TRUE(picture_worse(&picture));
	accepted();
	report.gpu_count = 1;
	taken();
	TEST_ASSERT_TRUE(picture_worse(&picture));
}

static void every_field_is_news(void)
{
	taken();
	accepted();
	report.pairs[0][1].gbps = report.pairs[1][0].gbps = 50;
	taken();
	TEST_ASSERT_TRUE(picture_changed(&picture));
	accepted();
	report.gpus[0].process_count = 1;
	strcpy(report.gpus[0].processes[0].pod, "uid-1");
	taken();
	TEST_ASSERT_TRUE(picture_changed(&picture));
	accepted();
	strcpy(report.gpus[0].processes[0].pod, "uid-2"); /* as many pods, another one */
	taken();
	TEST_ASSERT_TRUE(picture_changed(&picture));
	accepted();
	report.gpu_count = 1;
	taken();
	TEST_ASSERT_TRUE(picture_changed(&picture));
}

static void use_that_wavers_is_no_news(void)
{
	report.gpus[0].utilization = 50;
	report.gpus[0].memory_used_mib = 10000;
	taken();
	accepted();
	TEST_ASSERT_EQUAL(50, picture.written.devices[0].utilization);
	TEST_ASSERT_EQUAL(9984, picture.written.devices[0].memory_used_mib);
	for (int32_t i = 0; i < 1000; i++) {
		report.gpus[0].utilization = 50 + (i % 3 - 1) * 12;
		report.gpus[0].memory_used_mib = 10000 + i % 900;
		taken();
		TEST_ASSERT_FALSE(picture_changed(&picture));
	}
}

static void use_that_changes_is_news_once_it_lasts(void)
{
	taken();
	accepted();
	report.gpus[0].utilization = 100;
	uint32_t writes = 0;
	for (uint32_t i = 0; i < 100; i++) {
		taken();
		if (picture_changed(&picture)) {
			writes++;
			accepted();
		}
	}
	TEST_ASSERT_INT_WITHIN(PICTURE_PERCENT_NEWS - 1, 100, picture.written.devices[0].utilization);
	TEST_ASSERT_LESS_OR_EQUAL(8, writes);
	accepted(); /* a heartbeat says the rest */
	TEST_ASSERT_EQUAL(100, picture.written.devices[0].utilization);
	report.gpus[0].utilization = 0;
	for (uint32_t i = 0; i < 100; i++)
		taken();
	accepted();
	TEST_ASSERT_EQUAL(0, picture.written.devices[0].utilization);
	TEST_ASSERT_FALSE(picture_changed(&picture));
}

static void use_that_cannot_be_read_is_not_said(void)
{
	report.gpus[0].utilization = 40;
	report.gpus[0].memory_used_mib = 4096;
	taken();
	accepted();
	report.gpus[0].utilization = PROBE_UNKNOWN;
	report.gpus[0].memory_used_mib = PROBE_UNKNOWN;
	taken();
	accepted();
	TEST_ASSERT_EQUAL(PROBE_UNKNOWN, picture.written.devices[0].utilization);
	TEST_ASSERT_EQUAL(PROBE_UNKNOWN, picture.written.devices[0].memory_used_mib);
	report.gpus[0].utilization = 80;
	taken();
	TEST_ASSERT_EQUAL(80, picture.now.devices[0].utilization); /* not smoothed with what is long gone */
}

static void another_gpu_in_the_same_place_has_its_own_use(void)
{
	report.gpus[0].utilization = 100;
	taken();
	strcpy(report.gpus[0].uuid, "GPU-new");
	report.gpus[0].utilization = 0;
	taken();
	TEST_ASSERT_EQUAL(0, picture.now.devices[0].utilization);
}

static void use_at_its_limits_stays_within_them(void)
{
	report.gpus[0].utilization = 100;
	report.gpus[0].memory_used_mib = STATUS_MIB_MAX;
	report.gpus[1].utilization = 1;
	report.gpus[1].memory_used_mib = 1;
	taken();
	accepted();
	TEST_ASSERT_EQUAL(100, picture.written.devices[0].utilization);
	TEST_ASSERT_EQUAL(STATUS_MIB_MAX, picture.written.devices[0].memory_used_mib);
	TEST_ASSERT_EQUAL(0, picture.written.devices[1].utilization);
	TEST_ASSERT_EQUAL(0, picture.written.devices[1].memory_used_mib);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(nothing_is_news_before_a_good_report);
	RUN_TEST(the_first_good_report_is_news_until_it_is_accepted);
	RUN_TEST(a_node_without_gpus_is_reported_as_such);
	RUN_TEST(what_changes_while_a_write_is_under_way_is_news_after_it);
	RUN_TEST(gpus_that_nobody_can_ask_about_are_unknown_and_stay);
	RUN_TEST(what_was_reported_before_shows_only_when_nobody_can_be_asked);
	RUN_TEST(use_that_was_reported_before_is_not_replaced_by_what_nobody_read);
	RUN_TEST(an_xid_stands_until_the_driver_starts_again);
	RUN_TEST(an_xid_that_is_recalled_after_the_driver_started_again_does_not_stand);
	RUN_TEST(what_is_recalled_late_shows_in_the_next_write);
	RUN_TEST(an_xid_does_not_outlive_a_restart_of_the_node);
	RUN_TEST(a_gpu_that_has_no_name_any_more_keeps_it);
	RUN_TEST(another_machine_has_nothing_of_the_one_before);
	RUN_TEST(bad_news_is_told_from_good);
	RUN_TEST(every_field_is_news);
	RUN_TEST(use_that_wavers_is_no_news);
	RUN_TEST(use_that_changes_is_news_once_it_lasts);
	RUN_TEST(use_that_cannot_be_read_is_not_said);
	RUN_TEST(another_gpu_in_the_same_place_has_its_own_use);
	RUN_TEST(use_at_its_limits_stays_within_them);
	return UNITY_END();
}
