/* SPDX-License-Identifier: Apache-2.0 */
#include "text/args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

static struct args args;
static struct complaint complaint;

void setUp(void)
{
	memset(&args, 0xa5, sizeof(args));
	memset(&complaint, 0, sizeof(complaint));
}

void tearDown(void)
{
}

/* Read from a copy of exactly this size, so that the sanitizer sees a step beyond. */
static int32_t read_exact(const char *json, uint32_t len)
{
	char *copy = malloc(len == 0 ? 1 : len);
	TEST_ASSERT_NOT_NULL(copy);
	memcpy(copy, json, len);
	int32_t code = args_read(copy, len, &args, &complaint);
	free(copy);
	return code;
}

static void accepted(const char *json)
{
	int32_t code = read_exact(json, (uint32_t)strlen(json));
	TEST_ASSERT_EQUAL_MESSAGE(FROND_OK, code, complaint.text);
}

static void refused_bytes(const char *json, uint32_t len, const char *sentence)
{
	struct args before;
	setUp();
	memcpy(&before, &args, sizeof(args));
	TEST_ASSERT_EQUAL_MESSAGE(FROND_BAD, read_exact(json, len), json);
	TEST_ASSERT_EQUAL_STRING(sentence, complaint.text);
	TEST_ASSERT_EQUAL_MEMORY(&before, &args, sizeof(args)); /* on failure nothing has changed */
}

static void refused(const char *json, const char *sentence)
{
	refused_bytes(json, (uint32_t)strlen(json), sentence);
}

static void weights_are(const uint32_t want[SCORE_TERMS])
{
	TEST_ASSERT_EQUAL_UINT32_ARRAY(want, args.tuning.weight, SCORE_TERMS);
}

static void labels_are(const char *domain, const char *leaf, const char *spine, const char *core)
{
	TEST_ASSERT_EQUAL_STRING(domain, args.domain_label);
	TEST_ASSERT_EQUAL_STRING(leaf, args.leaf_label);
	TEST_ASSERT_EQUAL_STRING(spine, args.spine_label);
	TEST_ASSERT_EQUAL_STRING(core, args.core_label);
}

/* ---- defaults -------------------------------------------------------------------------------------------------- */

static void all_defaults(void)
{
	weights_are((const uint32_t[]){400, 300, 200, 100, 0, 0, 0, 0});
	TEST_ASSERT_EQUAL_UINT32(0, args.tuning.max_nodes_per_leaf);
	TEST_ASSERT_EQUAL_UINT32(0, args.tuning.max_gpus_per_leaf);
	labels_are("nvidia.com/gpu.clique", "fabric.topograph.run/tier-0", "fabric.topograph.run/tier-1",
		   "fabric.topograph.run/tier-2");
	TEST_ASSERT_EQUAL_STRING("", args.fabric_file);
	TEST_ASSERT_EQUAL_STRING("", args.core_path);
	TEST_ASSERT_EQUAL(STRATEGY_BALANCED, args.strategy);
	TEST_ASSERT_EQUAL(MODE_REQUIRED, args.mode);
	TEST_ASSERT_EQUAL_INT64(300000, args.wait_ms);
	TEST_ASSERT_EQUAL_INT64(60000, args.unavailable_after_ms);
	TEST_ASSERT_EQUAL(EXIT_ANNOTATE, args.device_exit);
	TEST_ASSERT_EQUAL_UINT32(60, args.permit_wait_s);
	TEST_ASSERT_EQUAL_UINT32(2, args.resource_count);
	TEST_ASSERT_EQUAL_STRING("nvidia.com/gpu", args.resources[0]);
	TEST_ASSERT_EQUAL_STRING("amd.com/gpu", args.resources[1]);
	TEST_ASSERT_TRUE(args.locks_enabled);
	TEST_ASSERT_EQUAL_STRING("frond-system", args.locks_namespace);
	TEST_ASSERT_EQUAL(RECOVERY_REPLACE, args.recovery);
	TEST_ASSERT_EQUAL_UINT32(40, args.node_lease_s);
	TEST_ASSERT_FALSE(args.force_delete);
	TEST_ASSERT_EQUAL_UINT32(8, args.max_concurrent_moves);
	TEST_ASSERT_EQUAL_UINT32(60, args.max_moves_per_minute);
}

static void test_nothing_and_an_empty_object_give_the_defaults(void)
{
	TEST_ASSERT_EQUAL(FROND_OK, args_read(NULL, 0, &args, &complaint));
	all_defaults();
	static const char *const empty[] = {" \n\t\r", "{}", " {} \n",
					    "{\"topology\": {}, \"scoringWeights\": {}, "
					    "\"recovery\": {}, \"deviceLocks\": {}, "
					    "\"topologyConstraints\": {}}"};
	for (uint32_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
		setUp();
		accepted(empty[i]);
		all_defaults();
	}
}

static void test_every_field_is_read(void)
{
	accepted("{\"apiVersion\": \"kubescheduler.config.k8s.io/v1\", \"kind\": \"TopologyGPUArgs\","
		 "\"scoringPreset\": \"agents\", \"scoringWeights\": {\"utilization\": 0.005, \"modelCache\": 1},"
		 "\"topologyConstraints\": {\"maxNodesPerLeaf\": 4, \"maxGPUsPerLeaf\": 32},"
		 "\"topology\": {\"preset\": \"eks\", \"fabricFile\": \"/etc/frond/fabric.yaml\"},"
		 "\"defaultStrategy\": \"consolidated\", \"defaultTopologyMode\": \"Preferred\","
		 "\"defaultTopologyWait\": \"forever\", \"deviceExit\": \"annotate\","
		 "\"permitWaitingTimeSeconds\": 120, \"gpuResources\": [\"amd.com/gpu\"],"
		 "\"deviceLocks\": {\"enabled\": false, \"namespace\": \"locks\"},"
		 "\"recovery\": {\"policy\": \"MoveGang\", \"nodeLeaseSeconds\": 20, \"forceDelete\": true,"
		 "\"maxConcurrentMoves\": 1, \"maxMovesPerMinute\": 2}, \"corePath\": \"/usr/lib/libfrond.so\"}");
	weights_are((const uint32_t[]){300, 250, 0, 0, 1000, 150, 100, 5});
	TEST_ASSERT_EQUAL_UINT32(4, args.tuning.max_nodes_per_leaf);
	TEST_ASSERT_EQUAL_UINT32(32, args.tuning.max_gpus_per_leaf);
	labels_are("nvidia.com/gpu.clique", "topology.k8s.aws/network-node-layer-3",
		   "topology.k8s.aws/network-node-layer-2", "topology.k8s.aws/network-node-layer-1");
	TEST_ASSERT_EQUAL_STRING("/etc/frond/fabric.yaml", args.fabric_file);
	TEST_ASSERT_EQUAL_STRING("/usr/lib/libfrond.so", args.core_path);
	TEST_ASSERT_EQUAL(STRATEGY_CONSOLIDATED, args.strategy);
	TEST_ASSERT_EQUAL(MODE_PREFERRED, args.mode);
	TEST_ASSERT_EQUAL_INT64(WAIT_FOREVER, args.wait_ms);
	TEST_ASSERT_EQUAL_UINT32(120, args.permit_wait_s);
	TEST_ASSERT_EQUAL_UINT32(1, args.resource_count);
	TEST_ASSERT_EQUAL_STRING("amd.com/gpu", args.resources[0]);
	TEST_ASSERT_EQUAL_STRING("", args.resources[1]);
	TEST_ASSERT_FALSE(args.locks_enabled);
	TEST_ASSERT_EQUAL_STRING("locks", args.locks_namespace);
	TEST_ASSERT_EQUAL(RECOVERY_MOVE_GANG, args.recovery);
	TEST_ASSERT_EQUAL_UINT32(20, args.node_lease_s);
	TEST_ASSERT_TRUE(args.force_delete);
	TEST_ASSERT_EQUAL_UINT32(1, args.max_concurrent_moves);
	TEST_ASSERT_EQUAL_UINT32(2, args.max_moves_per_minute);
}

/* ---- the document ---------------------------------------------------------------------------------------------- */

static void test_a_document_that_is_not_one_json_object_is_refused(void)
{
	refused("[]", "args: must be an object");
	refused("null", "args: must be an object");
	refused("7", "args: must be an object");
	refused("{", "args: is not valid JSON at byte 1");
	refused("{\"corePath\": }", "args: is not valid JSON at byte 13");
	refused("{\"1\":1,", "args: is not valid JSON at byte 7");
	refused("{} x", "args: has more text after the end of its object, at byte 2");
	refused("{}{}", "args: has more text after the end of its object, at byte 2");
}

static void test_nul_bytes_are_refused_raw_and_escaped(void)
{
	refused_bytes("{}\0", 3, "args: holds a NUL byte, which is not allowed");
	refused("{\"corePath\": \"a\\u0000b\"}", "args: holds a NUL byte, which is not allowed");
	accepted("{\"corePath\": \"a\\\\u0000b\"}");
	TEST_ASSERT_EQUAL_STRING("a\\u0000b", args.core_path);
}

static void test_bytes_that_are_not_utf8_are_refused(void)
{
	refused("{\"corePath\": \"\xff\"}", "args: is not UTF-8 at byte 14");
}

static void test_deep_nesting_is_refused_and_does_not_crash(void)
{
	char json[100001];
	memset(json, '[', sizeof(json));
	json[100000] = '\0';
	TEST_ASSERT_EQUAL(FROND_BAD, read_exact(json, 100000));
	TEST_ASSERT_EQUAL_STRING("args: is not valid JSON at byte 1000", complaint.text);
}

static void test_a_document_of_one_mebibyte_is_read_and_one_byte_more_is_not(void)
{
	uint32_t size = (1u << 20) + 1;
	char *json = malloc(size);
	TEST_ASSERT_NOT_NULL(json);
	memset(json, ' ', size);
	json[0] = '{';
	json[1] = '}';
	TEST_ASSERT_EQUAL(FROND_OK, args_read(json, size - 1, &args, &complaint));
	TEST_ASSERT_EQUAL(FROND_BAD, args_read(json, size, &args, &complaint));
	TEST_ASSERT_EQUAL_STRING("args: has 1048577 bytes; at most 1048576 are read", complaint.text);
	free(json);
}

static void test_unknown_fields_are_named_with_their_path(void)
{
	refused("{\"scoringWeight\": {}}", "args.scoringWeight: is not a known field");
	refused("{\"CorePath\": \"x\"}", "args.CorePath: is not a known field");
	refused("{\"scoringWeights\": {\"speed\": 1}}", "args.scoringWeights.speed: is not a known field");
	refused("{\"topology\": {\"level\": []}}", "args.topology.level: is not a known field");
	refused("{\"topologyConstraints\": {\"x\": 1}}", "args.topologyConstraints.x: is not a known field");
	refused("{\"deviceLocks\": {\"on\": true}}", "args.deviceLocks.on: is not a known field");
	refused("{\"recovery\": {\"\": 1}}", "args.recovery.: is not a known field");
}

static void test_a_key_written_twice_is_refused_at_every_depth(void)
{
	refused("{\"corePath\": \"a\", \"corePath\": \"a\"}", "args.corePath: is written twice");
	refused("{\"recovery\": {\"forceDelete\": true, \"forceDelete\": false}}",
		"args.recovery.forceDelete: is written twice");
}

static void test_another_kind_or_version_is_refused(void)
{
	accepted("{\"apiVersion\": \"topology.scheduler/v1alpha1\"}");
	refused("{\"kind\": \"CoschedulingArgs\"}", "args.kind: must be TopologyGPUArgs, got \"CoschedulingArgs\"");
	refused("{\"apiVersion\": \"v1\"}", "args.apiVersion: must be kubescheduler.config.k8s.io/v1 or "
					    "topology.scheduler/v1alpha1, got \"v1\"");
}

/* ---- weights --------------------------------------------------------------------------------------------------- */

static void test_presets_set_all_weights(void)
{
	accepted("{\"scoringPreset\": \"training\"}");
	weights_are((const uint32_t[]){400, 300, 200, 100, 0, 0, 0, 0});
	accepted("{\"scoringPreset\": \"agents\"}");
	weights_are((const uint32_t[]){300, 250, 0, 0, 200, 150, 100, 0});
	accepted("{\"scoringPreset\": \"utilization\"}");
	weights_are((const uint32_t[]){400, 300, 200, 100, 0, 0, 0, 200});
	refused("{\"scoringPreset\": \"fast\"}",
		"args.scoringPreset: must be training, agents or utilization, got \"fast\"");
	refused("{\"scoringPreset\": 1}", "args.scoringPreset: must be training, agents or utilization, got 1");
}

static void test_weights_apply_over_the_preset_whatever_their_order(void)
{
	accepted("{\"scoringWeights\": {\"topologyAlignment\": 0}, \"scoringPreset\": \"agents\"}");
	weights_are((const uint32_t[]){300, 0, 0, 0, 200, 150, 100, 0});
}

static void test_every_weight_has_its_own_name(void)
{
	static const char *const names[SCORE_TERMS] = {
		[SCORE_RESOURCE_AVAILABILITY] = "resourceAvailability",
		[SCORE_TOPOLOGY_ALIGNMENT] = "topologyAlignment",
		[SCORE_DOMAIN_UTILIZATION] = "domainUtilization",
		[SCORE_HISTORICAL_PERFORMANCE] = "historicalPerformance",
		[SCORE_MODEL_CACHE] = "modelCache",
		[SCORE_COST_EFFICIENCY] = "costEfficiency",
		[SCORE_DATA_LOCALITY] = "dataLocality",
		[SCORE_UTILIZATION] = "utilization",
	};
	for (uint32_t i = 0; i < SCORE_TERMS; i++) {
		uint32_t want[SCORE_TERMS] = {400, 300, 200, 100, 0, 0, 0, 200};
		char json[120];
		snprintf(json, sizeof(json),
			 "{\"scoringPreset\": \"utilization\", \"scoringWeights\": {\"%s\": 0.987}}", names[i]);
		want[i] = 987;
		accepted(json);
		weights_are(want);
	}
}

static void test_every_number_of_thousandths_is_read_exactly(void)
{
	for (uint32_t i = 0; i <= 1000; i++) {
		char json[80];
		snprintf(json, sizeof(json), "{\"scoringWeights\": {\"costEfficiency\": %u.%03u}}", i / 1000, i % 1000);
		accepted(json);
		TEST_ASSERT_EQUAL_UINT32(i, args.tuning.weight[SCORE_COST_EFFICIENCY]);
	}
	accepted("{\"scoringWeights\": {\"costEfficiency\": 1e-1}}");
	TEST_ASSERT_EQUAL_UINT32(100, args.tuning.weight[SCORE_COST_EFFICIENCY]);
}

static void test_weights_outside_0_to_1_are_refused(void)
{
	refused("{\"scoringWeights\": {\"topologyAlignment\": -3}}",
		"args.scoringWeights.topologyAlignment: must be between 0 and 1, got -3");
	refused("{\"scoringWeights\": {\"topologyAlignment\": 1.001}}",
		"args.scoringWeights.topologyAlignment: must be between 0 and 1, got 1.001");
	refused("{\"scoringWeights\": {\"utilization\": -0.001}}",
		"args.scoringWeights.utilization: must be between 0 and 1, got -0.001");
	refused("{\"scoringWeights\": {\"utilization\": 1e999}}",
		"args.scoringWeights.utilization: must be between 0 and 1, got inf");
	refused("{\"scoringWeights\": {\"utilization\": \"0.5\"}}",
		"args.scoringWeights.utilization: must be between 0 and 1, got \"0.5\"");
	refused("{\"scoringWeights\": {\"utilization\": null}}",
		"args.scoringWeights.utilization: must be between 0 and 1, got null");
	refused("{\"scoringWeights\": {\"utilization\": NaN}}", "args: is not valid JSON at byte 35");
}

static void test_weights_have_at_most_three_decimals(void)
{
	refused("{\"scoringWeights\": {\"dataLocality\": 0.1234}}",
		"args.scoringWeights.dataLocality: must have at most 3 decimals, got 0.1234");
	refused("{\"scoringWeights\": {\"dataLocality\": 0.0005}}",
		"args.scoringWeights.dataLocality: must have at most 3 decimals, got 0.0005");
	refused("{\"scoringWeights\": {\"dataLocality\": 0.9999999}}",
		"args.scoringWeights.dataLocality: must have at most 3 decimals, got 0.9999999");
}

static void test_all_weights_zero_is_refused(void)
{
	refused("{\"scoringWeights\": {\"resourceAvailability\": 0, \"topologyAlignment\": 0, \"domainUtilization\": "
		"0, "
		"\"historicalPerformance\": 0}}",
		"args.scoringWeights: all weights are 0; at least one must be above");
	accepted("{\"scoringWeights\": {\"resourceAvailability\": 0, \"topologyAlignment\": 0, \"domainUtilization\": "
		 "0, "
		 "\"historicalPerformance\": 0.001}}");
}

static void test_sections_that_are_not_objects_are_refused(void)
{
	refused("{\"scoringWeights\": [0.5]}", "args.scoringWeights: must be an object");
	refused("{\"topology\": null}", "args.topology: must be an object");
	refused("{\"recovery\": \"Replace\"}", "args.recovery: must be an object");
	refused("{\"deviceLocks\": true}", "args.deviceLocks: must be an object");
	refused("{\"topologyConstraints\": 4}", "args.topologyConstraints: must be an object");
}

/* ---- topology -------------------------------------------------------------------------------------------------- */

static void test_presets_name_their_labels(void)
{
	static const char *const want[][4] = {
		{"topograph", "fabric.topograph.run/tier-0", "fabric.topograph.run/tier-1",
		 "fabric.topograph.run/tier-2"},
		{"topograph-legacy", "network.topology.nvidia.com/leaf", "network.topology.nvidia.com/spine",
		 "network.topology.nvidia.com/core"},
		{"eks", "topology.k8s.aws/network-node-layer-3", "topology.k8s.aws/network-node-layer-2",
		 "topology.k8s.aws/network-node-layer-1"},
		{"gke", "cloud.google.com/gce-topology-subblock", "cloud.google.com/gce-topology-block", ""},
		{"oci", "oci.oraclecloud.com/host.rack_id", "oci.oraclecloud.com/host.network_block_id", ""},
		{"coreweave", "backend.coreweave.cloud/leafgroup", "backend.coreweave.cloud/fabric", ""},
	};
	for (uint32_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		char json[80];
		snprintf(json, sizeof(json), "{\"topology\": {\"preset\": \"%s\"}}", want[i][0]);
		accepted(json);
		labels_are("nvidia.com/gpu.clique", want[i][1], want[i][2], want[i][3]);
	}
	refused("{\"topology\": {\"preset\": \"azure\"}}",
		"args.topology.preset: must be topograph, topograph-legacy, eks, gke, oci or coreweave, got \"azure\"");
}

static void test_a_fabric_file_alone_needs_no_labels_but_the_nvlink_domains(void)
{
	accepted("{\"topology\": {\"fabricFile\": \"f.yaml\"}}");
	TEST_ASSERT_EQUAL_STRING("f.yaml", args.fabric_file);
	labels_are("nvidia.com/gpu.clique", "", "", "");
}

static void test_levels_name_the_labels_nearest_first(void)
{
	accepted("{\"topology\": {\"levels\": [\"example.com/rack\"]}}");
	labels_are("nvidia.com/gpu.clique", "example.com/rack", "", "");
	accepted("{\"topology\": {\"levels\": [\"rack\", \"row\"], \"fabricFile\": \"f\"}}");
	labels_are("nvidia.com/gpu.clique", "rack", "row", "");
	accepted("{\"topology\": {\"levels\": [\"rack\", \"row\", \"hall\"]}}");
	labels_are("nvidia.com/gpu.clique", "rack", "row", "hall");
	accepted("{\"topology\": {\"levels\": [\"chassis\", \"rack\", \"row\", \"hall\"]}}");
	labels_are("chassis", "rack", "row", "hall");
}

static void test_bad_levels_are_refused(void)
{
	refused("{\"topology\": {\"levels\": []}}", "args.topology.levels: is empty; 1 to 4 label keys are allowed");
	refused("{\"topology\": {\"levels\": \"rack\"}}",
		"args.topology.levels: must be a list of label keys, nearest first, got \"rack\"");
	refused("{\"topology\": {\"levels\": [\"a\", 2]}}", "args.topology.levels[1]: must be a label key in quotes");
	refused("{\"topology\": {\"levels\": [\"a\", \"b\", \"c\", \"d\", \"e\"]}}",
		"args.topology.levels: has more than 4 entries; allowed are NVLink domain, leaf, spine and core");
	refused("{\"topology\": {\"levels\": [\"a b\"]}}", "args.topology.levels[0]: \"a b\" is not a label key; "
							   "allowed is a name of 1 to 63 letters, digits, \"-\", "
							   "\"_\" and \".\", optionally after a DNS name and \"/\"");
	refused("{\"topology\": {\"levels\": [\"a\", \"b\", \"c\", \"\"]}}",
		"args.topology.levels[3]: \"\" is not a label key; allowed is a name of 1 to 63 letters, digits, "
		"\"-\", "
		"\"_\" and \".\", optionally after a DNS name and \"/\"");
	refused("{\"topology\": {\"levels\": [\"a\", \"a\"]}}",
		"args.topology.levels[1]: repeats \"a\"; each level has its own key");
	refused("{\"topology\": {\"levels\": [\"a\", \"b\", \"c\", \"b\"]}}",
		"args.topology.levels[3]: repeats \"b\"; each level has its own key");
	refused("{\"topology\": {\"preset\": \"eks\", \"levels\": [\"a\"]}}",
		"args.topology: has both preset and levels; only one of them is allowed");
}

static void test_the_longest_label_key_fits(void)
{
	char json[400] = "{\"topology\": {\"levels\": [\"";
	uint64_t start = strlen(json);
	memset(json + start, 'a', 317);
	json[start + 253] = '/';
	strcpy(json + start + 317, "\"]}}");
	accepted(json);
	TEST_ASSERT_EQUAL_UINT64(LABEL_KEY_MAX, strlen(args.leaf_label));
	strcpy(json + start + 317, "a\"]}}");
	TEST_ASSERT_EQUAL(FROND_BAD, read_exact(json, (uint32_t)strlen(json)));
}

static void test_paths_have_1_to_4095_bytes_and_no_control_characters(void)
{
	static char json[5000];
	strcpy(json, "{\"corePath\": \"");
	uint64_t start = strlen(json);
	memset(json + start, 'p', PATH_MAX_BYTES + 1);
	strcpy(json + start + PATH_MAX_BYTES, "\"}");
	accepted(json);
	TEST_ASSERT_EQUAL_UINT64(PATH_MAX_BYTES, strlen(args.core_path));
	json[start + PATH_MAX_BYTES] = 'p';
	strcpy(json + start + PATH_MAX_BYTES + 1, "\"}");
	refused(json, "args.corePath: is 4096 bytes long; at most 4095 are allowed");
	refused("{\"corePath\": \"\"}", "args.corePath: must be the path of a file, got \"\"");
	refused("{\"corePath\": 3}", "args.corePath: must be the path of a file, got 3");
	refused("{\"topology\": {\"fabricFile\": \"a\\nb\"}}",
		"args.topology.fabricFile: must be a path without control characters, got \"a?b\"");
}

/* ---- the rest -------------------------------------------------------------------------------------------------- */

static void test_words_are_one_of_their_list(void)
{
	refused("{\"defaultStrategy\": \"Balanced\"}",
		"args.defaultStrategy: must be balanced, consolidated or distributed, got \"Balanced\"");
	refused("{\"defaultTopologyMode\": true}",
		"args.defaultTopologyMode: must be Required, Preferred or Ignore, got true");
	refused("{\"recovery\": {\"policy\": []}}",
		"args.recovery.policy: must be Replace, MoveGang or Wait, got a list");
}

static void test_nodes_are_unavailable_after_a_duration(void)
{
	accepted("{\"unavailableAfter\": \"1h30m\"}");
	TEST_ASSERT_EQUAL_INT64(5400000, args.unavailable_after_ms);
	accepted("{\"unavailableAfter\": \"0s\"}"); /* at once */
	TEST_ASSERT_EQUAL_INT64(0, args.unavailable_after_ms);
	accepted("{\"unavailableAfter\": \"1000h\"}");
	TEST_ASSERT_EQUAL_INT64(3600000000, args.unavailable_after_ms);
	static const char *const bad[] = {"\"1 minute\"", "\"forever\"", "\"1001h\"", "\"\"", "60"};
	for (uint32_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		char json[64], sentence[128];
		snprintf(json, sizeof json, "{\"unavailableAfter\": %s}", bad[i]);
		snprintf(sentence, sizeof sentence,
			 "args.unavailableAfter: must be a duration of at most 1000h in quotes, for example \"1m\", "
			 "got %s",
			 bad[i]);
		refused(json, sentence);
	}
}

static void test_the_wait_is_a_duration(void)
{
	accepted("{\"defaultTopologyWait\": \"1h30m\"}");
	TEST_ASSERT_EQUAL_INT64(5400000, args.wait_ms);
	refused("{\"defaultTopologyWait\": \"10 minutes\"}",
		"args.defaultTopologyWait: \"10 minutes\" is not a duration; "
		"write for example \"10m\" or \"forever\"");
	refused("{\"defaultTopologyWait\": \"2000h\"}",
		"args.defaultTopologyWait: \"2000h\" is not a duration of at most "
		"1000h; for longer write \"forever\"");
	refused("{\"defaultTopologyWait\": 300}", "args.defaultTopologyWait: must be a duration in quotes, for example "
						  "\"10m\" or \"forever\", got 300");
}

static void test_device_exits_of_later_versions_are_refused_by_name(void)
{
	accepted("{\"deviceExit\": \"annotate\"}");
	refused("{\"deviceExit\": \"env\"}", "args.deviceExit: env is not supported by this version yet, use annotate");
	refused("{\"deviceExit\": \"dra\"}", "args.deviceExit: dra is not supported by this version yet, use annotate");
	refused("{\"deviceExit\": \"x\"}", "args.deviceExit: must be annotate, env or dra, got \"x\"");
}

static void number_bounds(const char *format, const char *path, uint32_t min, uint32_t max)
{
	char json[100], sentence[200];
	const double values[] = {min, max, (double)min - 1, (double)max + 1, -1, 1.5, 4294967296.0 + min};
	for (uint32_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		char number[32];
		snprintf(number, sizeof(number), "%.15g", values[i]);
		snprintf(json, sizeof(json), "{%s%s%s", format, number, strchr(format, '{') ? "}}" : "}");
		if (i < 2) {
			accepted(json);
			continue;
		}
		snprintf(sentence, sizeof(sentence), "%s: must be a whole number between %u and %u, got %s", path, min,
			 max, number);
		refused(json, sentence);
	}
}

static void test_numbers_keep_to_their_bounds(void)
{
	number_bounds("\"permitWaitingTimeSeconds\": ", "args.permitWaitingTimeSeconds", 1, 900);
	number_bounds("\"topologyConstraints\": {\"maxNodesPerLeaf\": ", "args.topologyConstraints.maxNodesPerLeaf", 1,
		      131072);
	number_bounds("\"topologyConstraints\": {\"maxGPUsPerLeaf\": ", "args.topologyConstraints.maxGPUsPerLeaf", 1,
		      2097152);
	number_bounds("\"recovery\": {\"nodeLeaseSeconds\": ", "args.recovery.nodeLeaseSeconds", 1, 3600);
	number_bounds("\"recovery\": {\"maxConcurrentMoves\": ", "args.recovery.maxConcurrentMoves", 1, 10000);
	number_bounds("\"recovery\": {\"maxMovesPerMinute\": ", "args.recovery.maxMovesPerMinute", 1, 10000);
	refused("{\"permitWaitingTimeSeconds\": \"60\"}",
		"args.permitWaitingTimeSeconds: must be a whole number between 1 and 900, got \"60\"");
}

static void test_booleans_are_booleans(void)
{
	refused("{\"deviceLocks\": {\"enabled\": \"true\"}}",
		"args.deviceLocks.enabled: must be true or false, got \"true\"");
	refused("{\"recovery\": {\"forceDelete\": 1}}", "args.recovery.forceDelete: must be true or false, got 1");
	refused("{\"recovery\": {\"forceDelete\": {}}}",
		"args.recovery.forceDelete: must be true or false, got an object");
}

static void test_the_namespace_is_a_dns_label(void)
{
	refused("{\"deviceLocks\": {\"namespace\": \"a.b\"}}",
		"args.deviceLocks.namespace: must be a namespace: 1 to 63 of a-z, 0-9 and \"-\", with a letter or "
		"digit at both "
		"ends, got \"a.b\"");
	refused("{\"deviceLocks\": {\"namespace\": false}}", "args.deviceLocks.namespace: must be a namespace: 1 to 63 "
							     "of a-z, 0-9 and \"-\", with a letter or digit at both "
							     "ends, got false");
}

static void test_gpu_resources_are_1_to_8_names_without_doubles(void)
{
	accepted("{\"gpuResources\": [\"a.b/1\", \"a.b/2\", \"a.b/3\", \"a.b/4\", \"a.b/5\", \"a.b/6\", \"a.b/7\", "
		 "\"a.b/8\"]}");
	TEST_ASSERT_EQUAL_UINT32(8, args.resource_count);
	TEST_ASSERT_EQUAL_STRING("a.b/8", args.resources[7]);
	refused("{\"gpuResources\": [\"a.b/1\", \"a.b/2\", \"a.b/3\", \"a.b/4\", \"a.b/5\", \"a.b/6\", \"a.b/7\", "
		"\"a.b/8\", \"a.b/9\"]}",
		"args.gpuResources: has more than 8 entries");
	refused("{\"gpuResources\": []}", "args.gpuResources: is empty; 1 to 8 resource names are allowed");
	refused("{\"gpuResources\": {}}", "args.gpuResources: must be a list of resource names, got an object");
	refused("{\"gpuResources\": [\"a.b/c\", \"a.b/c\"]}", "args.gpuResources[1]: repeats entry 0");
	refused("{\"gpuResources\": [\"gpu\"]}",
		"args.gpuResources[0]: must be a resource name: DNS name, \"/\", name, as in nvidia.com/gpu");
	refused("{\"gpuResources\": [\"\"]}",
		"args.gpuResources[0]: must be a resource name: DNS name, \"/\", name, as in nvidia.com/gpu");
	refused("{\"gpuResources\": [null]}",
		"args.gpuResources[0]: must be a resource name: DNS name, \"/\", name, as in nvidia.com/gpu");
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_nothing_and_an_empty_object_give_the_defaults);
	RUN_TEST(test_every_field_is_read);
	RUN_TEST(test_a_document_that_is_not_one_json_object_is_refused);
	RUN_TEST(test_nul_bytes_are_refused_raw_and_escaped);
	RUN_TEST(test_bytes_that_are_not_utf8_are_refused);
	RUN_TEST(test_deep_nesting_is_refused_and_does_not_crash);
	RUN_TEST(test_a_document_of_one_mebibyte_is_read_and_one_byte_more_is_not);
	RUN_TEST(test_unknown_fields_are_named_with_their_path);
	RUN_TEST(test_a_key_written_twice_is_refused_at_every_depth);
	RUN_TEST(test_another_kind_or_version_is_refused);
	RUN_TEST(test_presets_set_all_weights);
	RUN_TEST(test_weights_apply_over_the_preset_whatever_their_order);
	RUN_TEST(test_every_weight_has_its_own_name);
	RUN_TEST(test_every_number_of_thousandths_is_read_exactly);
	RUN_TEST(test_weights_outside_0_to_1_are_refused);
	RUN_TEST(test_weights_have_at_most_three_decimals);
	RUN_TEST(test_all_weights_zero_is_refused);
	RUN_TEST(test_sections_that_are_not_objects_are_refused);
	RUN_TEST(test_presets_name_their_labels);
	RUN_TEST(test_a_fabric_file_alone_needs_no_labels_but_the_nvlink_domains);
	RUN_TEST(test_levels_name_the_labels_nearest_first);
	RUN_TEST(test_bad_levels_are_refused);
	RUN_TEST(test_the_longest_label_key_fits);
	RUN_TEST(test_paths_have_1_to_4095_bytes_and_no_control_characters);
	RUN_TEST(test_words_are_one_of_their_list);
	RUN_TEST(test_nodes_are_unavailable_after_a_duration);
	RUN_TEST(test_the_wait_is_a_duration);
	RUN_TEST(test_device_exits_of_later_versions_are_refused_by_name);
	RUN_TEST(test_numbers_keep_to_their_bounds);
	RUN_TEST(test_booleans_are_booleans);
	RUN_TEST(test_the_namespace_is_a_dns_label);
	RUN_TEST(test_gpu_resources_are_1_to_8_names_without_doubles);
	return UNITY_END();
}
