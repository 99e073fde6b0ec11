/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent sends about its node, and what it makes of answers. */
#include "agent/object.h"

#include "unity.h"

#include <stdlib.h>
#include <string.h>

static struct status status;
static struct complaint complaint;

void setUp(void)
{
	memset(&status, 0, sizeof(status));
}

void tearDown(void)
{
}

static void says(char *body, const char *want)
{
	TEST_ASSERT_NOT_NULL(body);
	TEST_ASSERT_EQUAL_STRING(want, body);
	free(body);
}

static void the_object_belongs_to_its_node(void)
{
	says(object_body("a", "u-1", NULL),
	     "{\"apiVersion\":\"gpu.scheduling/v1\",\"kind\":\"GpuNodeStatus\",\"metadata\":{\"name\":\"a\","
	     "\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"a\",\"uid\":\"u-1\"}]},"
	     "\"spec\":{\"nodeName\":\"a\"}}");
}

static void without_a_uid_it_belongs_to_nobody(void)
{
	says(object_body("a", "", NULL), "{\"apiVersion\":\"gpu.scheduling/v1\",\"kind\":\"GpuNodeStatus\","
					 "\"metadata\":{\"name\":\"a\"},\"spec\":{\"nodeName\":\"a\"}}");
}

static void a_status_says_nothing_of_owners(void)
{
	status.heartbeat_s = 0;
	says(object_body("a", "u-1", &status),
	     "{\"apiVersion\":\"gpu.scheduling/v1\",\"kind\":\"GpuNodeStatus\",\"metadata\":{\"name\":\"a\"},"
	     "\"status\":{\"total\":0,\"heartbeat\":\"1970-01-01T00:00:00Z\"}}");
}

static void paths_name_the_node(void)
{
	char path[OBJECT_PATH_ROOM];
	object_path("a.b", false, path);
	TEST_ASSERT_EQUAL_STRING("/apis/gpu.scheduling/v1/gpunodestatuses/a.b", path);
	object_path("a.b", true, path);
	TEST_ASSERT_EQUAL_STRING("/apis/gpu.scheduling/v1/gpunodestatuses/a.b/status", path);
	object_node_path("a.b", path);
	TEST_ASSERT_EQUAL_STRING("/api/v1/nodes/a.b", path);
}

static void a_uid_is_taken_only_when_it_is_one(void)
{
	char uid[OBJECT_UID_ROOM] = "before";
	static const char *const bad[] = {
		"",
		"{",
		"[]",
		"{}",
		"{\"metadata\":7}",
		"{\"metadata\":{\"uid\":7}}",
		"{\"metadata\":{\"uid\":\"\"}}",
		"{\"metadata\":{\"uid\":\"a\\\"b\"}}",
		"{\"metadata\":{\"uid\":\"a\\nb\"}}",
		"{\"metadata\":{\"uid\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}}",
	};
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		TEST_ASSERT_FALSE_MESSAGE(object_uid(bad[i], uid), bad[i]);
		TEST_ASSERT_EQUAL_STRING("before", uid);
	}
	TEST_ASSERT_TRUE(object_uid("{\"metadata\":{\"uid\":\"0a-B9\"}}", uid));
	TEST_ASSERT_EQUAL_STRING("0a-B9", uid);
}

static void a_status_is_found_in_its_object(void)
{
	TEST_ASSERT_EQUAL(FROND_OK,
			  object_status("{\"metadata\":{},\"status\":{\"total\":1,\"conditions\":[{}],\"devices\":"
					"[{\"id\":\"x\",\"index\":0,\"health\":\"Unknown\"}]}}",
					&status, &complaint));
	TEST_ASSERT_EQUAL(1, status.device_count);
	TEST_ASSERT_EQUAL_STRING("x", status.devices[0].id);
	static const char *const bad[] = {"", "{}", "7", "{\"status\":null}", "{\"status\":{\"total\":2}}"};
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		TEST_ASSERT_EQUAL_MESSAGE(FROND_BAD, object_status(bad[i], &status, &complaint), bad[i]);
	TEST_ASSERT_EQUAL(1, status.device_count);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(the_object_belongs_to_its_node);
	RUN_TEST(without_a_uid_it_belongs_to_nobody);
	RUN_TEST(a_status_says_nothing_of_owners);
	RUN_TEST(paths_name_the_node);
	RUN_TEST(a_uid_is_taken_only_when_it_is_one);
	RUN_TEST(a_status_is_found_in_its_object);
	return UNITY_END();
}
