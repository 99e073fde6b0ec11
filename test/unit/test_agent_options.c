/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's command line and environment. What is refused is tried on the program: test/agent/run.py. */
#include "agent/options.h"

#include "unity.h"

#include <string.h>

static struct agent_options options;
static struct complaint complaint;
static struct agent_environment environment;

void setUp(void)
{
	environment = (struct agent_environment){"node-7", "10.0.0.1", "443"};
}

void tearDown(void)
{
}

static int32_t read_with(const char *flag, const char *value)
{
	char *argv[] = {(char *)"frond-agent", (char *)flag, (char *)value, NULL};
	return agent_options_read(flag == NULL ? 1 : value == NULL ? 2 : 3, argv, &environment, &options, &complaint);
}

static void accepts(const char *flag, const char *value)
{
	TEST_ASSERT_EQUAL_MESSAGE(FROND_OK, read_with(flag, value), complaint.text);
}

static void refuses(const char *flag, const char *value)
{
	TEST_ASSERT_EQUAL_MESSAGE(FROND_BAD, read_with(flag, value), value);
}

static void a_pod_needs_no_flags(void)
{
	accepts(NULL, NULL);
	TEST_ASSERT_EQUAL(AGENT_RUN, options.verb);
	TEST_ASSERT_EQUAL_STRING("node-7", options.node);
	TEST_ASSERT_EQUAL_STRING("https://10.0.0.1:443", options.api);
	TEST_ASSERT_EQUAL_STRING("/var/run/secrets/kubernetes.io/serviceaccount/token", options.token_file);
	TEST_ASSERT_EQUAL_STRING("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt", options.ca_file);
	TEST_ASSERT_EQUAL_STRING("127.0.0.1", options.host);
	TEST_ASSERT_EQUAL(9417, options.port);
	TEST_ASSERT_EQUAL(500, options.interval_ms);
	TEST_ASSERT_EQUAL(30000, options.heartbeat_ms);
	environment.service_host = "fd00::1";
	accepts(NULL, NULL);
	TEST_ASSERT_EQUAL_STRING("https://[fd00::1]:443", options.api);
}

static void the_environment_is_checked_like_flags(void)
{
	environment.node_name = "Node";
	refuses(NULL, NULL);
	TEST_ASSERT_EQUAL_STRING_LEN("NODE_NAME must be", complaint.text, 17);
	setUp();
	environment.service_host = "host/path";
	refuses(NULL, NULL);
	char host[400];
	memset(host, 'h', sizeof(host));
	host[sizeof(host) - 1] = '\0';
	environment.service_host = host;
	refuses(NULL, NULL);
	environment = (struct agent_environment){0};
	refuses(NULL, NULL);
	accepts("--once", NULL); /* needs none of it */
}

static void names_have_a_limit(void)
{
	char name[256];
	memset(name, 'a', sizeof(name));
	name[253] = '\0';
	accepts("--node", name);
	TEST_ASSERT_EQUAL_STRING(name, options.node);
	name[253] = 'a';
	name[254] = '\0';
	refuses("--node", name);
	refuses("--node", "");
	refuses("--node", "a/../b");
}

static void urls_lead_to_a_server_and_nowhere_else(void)
{
	accepts("--api", "https://a.example:6443/");
	TEST_ASSERT_EQUAL_STRING("https://a.example:6443", options.api);
	const char *bad[] = {"https://",    "https:///",     "http://a", "https://a/b",
			     "https://a?b", "https://u:p@a", "a",        "https://a b"};
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refuses("--api", bad[i]);
}

static void addresses_to_listen_on(void)
{
	accepts("--listen", "[::1]:80");
	TEST_ASSERT_EQUAL_STRING("::1", options.host);
	accepts("--listen", "fd00::2:9417");
	TEST_ASSERT_EQUAL_STRING("fd00::2", options.host);
	TEST_ASSERT_EQUAL(9417, options.port);
	accepts("--listen", "0.0.0.0:65535");
	accepts("--listen", "none");
	TEST_ASSERT_EQUAL(0, options.port);
	const char *bad[] = {":80", "[]:80", "a:", "a:0", "a:65536", "a:1x", "a", "a:000080"};
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refuses("--listen", bad[i]);
}

static void times_have_units_and_limits(void)
{
	accepts("--interval", "1ms");
	TEST_ASSERT_EQUAL(1, options.interval_ms);
	accepts("--interval", "1m");
	TEST_ASSERT_EQUAL(60000, options.interval_ms);
	accepts("--heartbeat", "80s");
	const char *bad[] = {"0ms", "61s", "1", "s", "1h", "-1s", "1.5s", "9999999ms", "1s "};
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refuses("--interval", bad[i]);
	refuses("--heartbeat", "81s");
	refuses("--heartbeat", "999ms");
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(a_pod_needs_no_flags);
	RUN_TEST(the_environment_is_checked_like_flags);
	RUN_TEST(names_have_a_limit);
	RUN_TEST(urls_lead_to_a_server_and_nowhere_else);
	RUN_TEST(addresses_to_listen_on);
	RUN_TEST(times_have_units_and_limits);
	return UNITY_END();
}
