/* SPDX-License-Identifier: Apache-2.0 */
/* The Lease by which the scheduler knows that the agent lives. */
#include "agent/lease.h"

#include "unity.h"

#include <stdlib.h>
#include <string.h>

void setUp(void)
{
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

static void a_renewal_says_all_of_it(void)
{
	says(lease_body("a", "u-1", 1790000000000007),
	     "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":\"gns-a\","
	     "\"labels\":{\"gpu.scheduling/heartbeat\":\"true\"},"
	     "\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"a\",\"uid\":\"u-1\"}]},"
	     "\"spec\":{\"holderIdentity\":\"a\",\"leaseDurationSeconds\":90,"
	     "\"renewTime\":\"2026-09-21T14:13:20.000007Z\"}}");
}

static void without_a_uid_it_belongs_to_nobody(void)
{
	says(lease_body("a", "", 0),
	     "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":\"gns-a\","
	     "\"labels\":{\"gpu.scheduling/heartbeat\":\"true\"}},"
	     "\"spec\":{\"holderIdentity\":\"a\",\"leaseDurationSeconds\":90,"
	     "\"renewTime\":\"1970-01-01T00:00:00.000000Z\"}}");
}

static void the_longest_name_of_a_node_fits(void)
{
	char node[254], path[OBJECT_PATH_ROOM];
	memset(node, 'a', 253);
	node[253] = '\0';
	lease_path(node, path);
	TEST_ASSERT_EQUAL(strlen("/apis/coordination.k8s.io/v1/namespaces/frond-system/leases/gns-") + 253,
			  strlen(path));
	char *body = lease_body(node, "", 0);
	TEST_ASSERT_NOT_NULL(body);
	const char *name = strstr(body, "\"gns-");
	TEST_ASSERT_NOT_NULL(name);
	TEST_ASSERT_EQUAL(253, strspn(name + strlen("\"gns-"), "a"));
	free(body);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(a_renewal_says_all_of_it);
	RUN_TEST(without_a_uid_it_belongs_to_nobody);
	RUN_TEST(the_longest_name_of_a_node_fits);
	return UNITY_END();
}
