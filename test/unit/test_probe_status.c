/* SPDX-License-Identifier: Apache-2.0 */
/* The API object that a report becomes, and the strict reader of it. */
#include "probe_rig.h"

#include "probe/pods.h"

#include <sys/stat.h>

static struct status status, before;
static struct complaint complaint;

void setUp(void)
{
	probe = NULL;
	description[0] = proc_folder[0] = '\0';
	memset(&status, 0xa5, sizeof(status));
	memset(&before, 0xa5, sizeof(before));
}

void tearDown(void)
{
	rig_stop();
}

/* Read from a copy of exactly this size, so that the sanitizer sees a step beyond. */
static int32_t read_exact(const char *json, uint32_t len)
{
	char *copy = malloc(len == 0 ? 1 : len);
	TEST_ASSERT_NOT_NULL(copy);
	memcpy(copy, json, len);
	int32_t code = status_read(copy, len, &status, &complaint);
	free(copy);
	return code;
}

static void refused(const char *json, const char *sentence)
{
	setUp();
	TEST_ASSERT_EQUAL_MESSAGE(FROND_BAD, read_exact(json, (uint32_t)strlen(json)), json);
	TEST_ASSERT_EQUAL_STRING(sentence, complaint.text);
	TEST_ASSERT_EQUAL_MEMORY(&before, &status, sizeof(status)); /* on failure nothing has changed */
}

static void accepted(const char *json)
{
	setUp();
	TEST_ASSERT_EQUAL_MESSAGE(FROND_OK, read_exact(json, (uint32_t)strlen(json)), complaint.text);
}

/* A status of one device with these fields beside the three that it must have. */
static const char *device(const char *fields)
{
	static char json[4096];
	snprintf(json, sizeof(json),
		 "{\"total\": 1, \"devices\": [{\"id\": \"GPU-1\", \"index\": 0, \"health\": \"Healthy\"%s%s}]}",
		 fields[0] == '\0' ? "" : ", ", fields);
	return json;
}

static const char *pair(const char *first, const char *second)
{
	static char json[4096];
	snprintf(json, sizeof(json),
		 "{\"total\": 2, \"devices\": [{\"id\": \"a\", \"index\": 0, \"health\": \"Healthy\"%s}, "
		 "{\"id\": \"b\", \"index\": 1, \"health\": \"Healthy\"%s}]}",
		 first, second);
	return json;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static char *written(void)
{
	status_from(&report, HEARTBEAT, &status);
	cJSON *object = status_json(&status);
	TEST_ASSERT_NOT_NULL(object);
	char *text = cJSON_PrintUnformatted(object);
	cJSON_Delete(object);
	TEST_ASSERT_NOT_NULL(text);
	return text;
}

static void file_put(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	TEST_ASSERT_NOT_NULL_MESSAGE(file, path);
	fputs(text, file);
	fclose(file);
}

/* PROC/PID/cgroup for each of count processes. */
static void proc_put(uint32_t pid, const char *cgroup)
{
	char path[128];
	snprintf(proc_folder, sizeof(proc_folder), "build/nvml/proc.%d", (int)getpid());
	mkdir(proc_folder, 0755);
	snprintf(path, sizeof(path), "%s/%u", proc_folder, pid);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/%u/cgroup", proc_folder, pid);
	file_put(path, cgroup);
}

static void proc_remove(const uint32_t *pids, uint32_t count)
{
	char path[128];
	for (uint32_t i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%u/cgroup", proc_folder, pids[i]);
		unlink(path);
		snprintf(path, sizeof(path), "%s/%u", proc_folder, pids[i]);
		rmdir(path);
	}
	rmdir(proc_folder);
}

static void test_a_machine_becomes_its_object(void)
{
	static const uint32_t pids[] = {11, 12, 13, 14};
	proc_put(11, "0::/kubepods.slice/kubepods-burstable.slice/"
		     "kubepods-burstable-pod9a1b2c3d_0001_4000_8000_00000000beef.slice/cri-containerd-0a.scope\n");
	proc_put(12, "12:devices:/kubepods/besteffort/pod1a1b2c3d-0001-4000-8000-00000000beef/0a0b\n");
	proc_put(13, "0::/kubepods.slice/kubepods-burstable-pod9a1b2c3d_0001_4000_8000_00000000beef.slice/x\n");
	proc_put(14, "0::/user.slice/session-1.scope\n");
	rig_start("pcie-4",
		  "process 1 11 5\nprocess 1 12 6\nprocess 1 13 7\nprocess 1 14 8\nprocess 1 15 9\nutilization 1 40\n"
		  "used 1 35\nlost 3");
	probe_read(probe, PROBE_ALL, &report);
	char *text = written();
	TEST_ASSERT_EQUAL_STRING(
		"{\"total\":4,\"heartbeat\":\"2026-09-21T14:13:20Z\",\"devices\":["
		"{\"id\":\"GPU-1a5b7c06-0000-4000-8000-000000000000\",\"index\":0,\"model\":\"NVIDIA "
		"L40S\",\"memoryMiB\":46068,"
		"\"health\":\"Healthy\",\"numaNode\":0,\"pciBusId\":\"00000000:17:00.0\",\"rail\":\"mlx5_0\","
		"\"island\":0,"
		"\"bandwidthGBps\":0,"
		"\"utilization\":0,\"memoryUsedMiB\":0},"
		"{\"id\":\"GPU-1a5b7c06-0000-4000-8000-000000000001\",\"index\":1,\"model\":\"NVIDIA "
		"L40S\",\"memoryMiB\":46068,"
		"\"health\":\"Healthy\",\"numaNode\":0,\"pciBusId\":\"00000000:31:00.0\",\"rail\":\"mlx5_0\","
		"\"island\":1,"
		"\"bandwidthGBps\":0,"
		"\"utilization\":40,\"memoryUsedMiB\":35,\"inUseBy\":[\"1a1b2c3d-0001-4000-8000-00000000beef\","
		"\"9a1b2c3d-0001-4000-8000-00000000beef\"]},"
		"{\"id\":\"GPU-1a5b7c06-0000-4000-8000-000000000002\",\"index\":2,\"model\":\"NVIDIA "
		"L40S\",\"memoryMiB\":46068,"
		"\"health\":\"Healthy\",\"numaNode\":1,\"pciBusId\":\"00000000:B1:00.0\",\"rail\":\"mlx5_1\","
		"\"island\":2,"
		"\"bandwidthGBps\":0,"
		"\"utilization\":0,\"memoryUsedMiB\":0},"
		"{\"id\":\"unknown-3\",\"index\":3,\"health\":\"Unhealthy\",\"reason\":\"the GPU is lost: it no longer "
		"answers its driver\",\"island\":3}]}",
		text);
	free(text);
	proc_remove(pids, COUNT(pids));
}

static void test_what_only_the_driver_can_tell_once_is_marked(void)
{
	rig_start("dgx-h100", "lost 3\nxid 5 79\nxid 6 31");
	probe_read(probe, PROBE_ALL, &report);
	status_from(&report, HEARTBEAT, &status);
	for (uint32_t i = 0; i < 8; i++) {
		TEST_ASSERT_EQUAL(i == 3, status_nameless(&status.devices[i]));
		TEST_ASSERT_EQUAL(i == 5, status_by_xid(&status.devices[i]));
	}
	status_reason_set(&status.devices[0], "gr\xc3\xbc\n");
	TEST_ASSERT_EQUAL_STRING("gr???", status.devices[0].reason);
	char longer[200];
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	status_reason_set(&status.devices[0], longer);
	TEST_ASSERT_EQUAL(STATUS_REASON_MAX, strlen(status.devices[0].reason));
}

static void test_links_and_slices_are_written(void)
{
	rig_start("dgx-1v", "");
	probe_read(probe, PROBE_ALL, &report);
	char *text = written();
	TEST_ASSERT_NOT_NULL(
		strstr(text, "\"island\":0,\"bandwidthGBps\":150,\"links\":[{\"peer\":1,\"kind\":\"NVLink\","
			     "\"bandwidthGBps\":25},{\"peer\":2,\"kind\":\"NVLink\",\"bandwidthGBps\":25},{\"peer\":3,"
			     "\"kind\":\"NVLink\",\"bandwidthGBps\":50},{\"peer\":4,\"kind\":\"NVLink\","
			     "\"bandwidthGBps\":50}],\"utilization\""));
	free(text);
	rig_stop();
	rig_start("mig", "");
	probe_read(probe, PROBE_ALL, &report);
	text = written();
	TEST_ASSERT_NOT_NULL(
		strstr(text, "\"mig\":[{\"id\":\"MIG-1a5b7c07-0000-5000-8000-000000000100\",\"profile\":\"3g.20gb\"},"
			     "{\"id\":\"MIG-1a5b7c07-0000-5000-8000-000000000101\",\"profile\":\"3g.20gb\"}]"));
	TEST_ASSERT_NOT_NULL(strstr(text, "{\"peer\":7,\"kind\":\"NVSwitch\",\"bandwidthGBps\":300}]"));
	/* GPUs 0 to 3 are in MIG mode, and 2 has no slice yet. */
	TEST_ASSERT_EQUAL_INT32(FROND_OK, read_exact(text, (uint32_t)strlen(text)));
	for (uint32_t i = 0; i < status.device_count; i++)
		TEST_ASSERT_EQUAL(i < 4, status.devices[i].mig_mode);
	TEST_ASSERT_EQUAL_UINT32(0, status.devices[2].slice_count);
	TEST_ASSERT_NULL(strstr(text, "clique"));
	free(text);
	rig_stop();
	rig_start("gb200", "");
	probe_read(probe, PROBE_ALL, &report);
	text = written();
	TEST_ASSERT_NOT_NULL(strstr(text, "\"clique\":\"5f2c1e0a-9b7d-4c3e-8f60-112233445566.32766\""));
	free(text);
}

static void test_a_node_without_a_driver_has_no_devices(void)
{
	memset(&report, 0, sizeof(report));
	report.state = PROBE_NO_DRIVER;
	char *text = written();
	TEST_ASSERT_EQUAL_STRING("{\"total\":0,\"heartbeat\":\"2026-09-21T14:13:20Z\"}", text);
	free(text);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static void test_every_field_is_read(void)
{
	accepted("{\"total\": 2, \"heartbeat\": \"2024-02-29T23:59:59Z\", \"devices\": ["
		 "{\"id\": \"GPU-1\", \"index\": 0, \"model\": \"X\", \"memoryMiB\": 16777216, \"health\": "
		 "\"Unhealthy\", \"numaNode\": 255,"
		 " \"pciBusId\": \"0000:0a:1f.7\", \"island\": 4, \"bandwidthGBps\": 1000000,"
		 " \"links\": [{\"peer\": 1, \"kind\": \"XGMI\", \"bandwidthGBps\": 65535}],"
		 " \"migMode\": true, \"mig\": [{\"id\": \"MIG-1\", \"profile\": \"1g.5gb\"}, {\"id\": \"MIG-2\", "
		 "\"profile\": "
		 "\"1g.5gb\"}],"
		 " \"reason\": \"XID 79\", \"rail\": \"mlx5_0\", \"clique\": \"ab-c.7\","
		 " \"utilization\": 100, \"memoryUsedMiB\": 3, \"inUseBy\": [\"a/b\", \"c\"]},"
		 "{\"id\": \"GPU-2\", \"index\": 1, \"health\": \"Unknown\", \"island\": 4,"
		 " \"links\": [{\"peer\": 0, \"bandwidthGBps\": 65535}]}]}");
	TEST_ASSERT_EQUAL_INT64(1709251199, status.heartbeat_s);
	TEST_ASSERT_EQUAL_UINT32(2, status.device_count);
	const struct status_device *first = &status.devices[0], *second = &status.devices[1];
	TEST_ASSERT_EQUAL_STRING("GPU-1", first->id);
	TEST_ASSERT_EQUAL_STRING("XID 79", first->reason);
	TEST_ASSERT_EQUAL_STRING("mlx5_0", first->rail);
	TEST_ASSERT_EQUAL_STRING("ab-c.7", first->clique);
	TEST_ASSERT_EQUAL_STRING("X", first->model);
	TEST_ASSERT_EQUAL_INT64(16777216, first->memory_mib);
	TEST_ASSERT_EQUAL(PROBE_UNHEALTHY, first->health);
	TEST_ASSERT_EQUAL_INT(255, first->numa);
	TEST_ASSERT_EQUAL_STRING("0000:0a:1f.7", first->pci);
	TEST_ASSERT_EQUAL_INT(4, first->island);
	TEST_ASSERT_EQUAL_INT(1000000, first->gbps);
	TEST_ASSERT_EQUAL_UINT32(1, first->link_count);
	TEST_ASSERT_EQUAL_UINT32(65535, first->links[0].gbps);
	TEST_ASSERT_EQUAL(STATUS_XGMI, first->links[0].kind);
	TEST_ASSERT_EQUAL(STATUS_KIND_UNSAID, second->links[0].kind);
	TEST_ASSERT_EQUAL_UINT32(2, first->slice_count);
	TEST_ASSERT_TRUE(first->mig_mode && !second->mig_mode);
	TEST_ASSERT_EQUAL_STRING("MIG-2", first->slices[1].id);
	TEST_ASSERT_EQUAL_INT(100, first->utilization);
	TEST_ASSERT_EQUAL_INT64(3, first->memory_used_mib);
	TEST_ASSERT_EQUAL_UINT32(2, first->pod_count);
	TEST_ASSERT_EQUAL_STRING("c", first->pods[1]);
	TEST_ASSERT_EQUAL(PROBE_HEALTH_UNKNOWN, second->health);
	TEST_ASSERT_EQUAL_INT(PROBE_UNKNOWN, second->numa);
	accepted("{\"total\": 0}");
	TEST_ASSERT_EQUAL_INT64(PROBE_UNKNOWN, status.heartbeat_s);
	accepted(device(""));
}

static void test_what_is_not_a_status_is_refused(void)
{
	refused("", "status: is empty");
	refused("[]", "status: must be an object");
	refused("{", "status: is not valid JSON at byte 1");
	refused("{}", "status.total: is missing");
	refused("{\"total\": 17}", "status.total: must be a whole number between 0 and 16, got 17");
	refused("{\"total\": 1}", "status.total: is 1, but there are 0 devices");
	refused("{\"total\": 0, \"total\": 0}", "status.total: is written twice");
	refused("{\"total\": 0, \"devicez\": []}", "status.devicez: is not a known field");
	refused("{\"total\": 0, \"devices\": {}}", "status.devices: must be a list, got an object");
	refused("{\"total\": 1, \"devices\": [7]}", "status.devices[0]: must be an object");
	refused("{\"total\": 1, \"devices\": [{\"id\": \"a\", \"index\": 0}]}", "status.devices[0].health: is missing");
	refused("{\"total\": 1, \"devices\": [{\"id\": \"a\", \"index\": 1, \"health\": \"Healthy\"}]}",
		"status.devices[0].index: is 1; indices must be 0 to n - 1 in order");
	refused("{\"total\": 1, \"devices\": [{\"id\": \"-a\", \"index\": 0, \"health\": \"Healthy\"}]}",
		"status.devices[0].id: must be at most 128 letters, digits, \"-\", \".\" and \"_\" with a letter or "
		"digit at both "
		"ends, got \"-a\"");
}

static void test_times_are_whole_seconds_in_utc(void)
{
	static const char *const bad[] = {"",
					  "2026-01-31",
					  "2026-01-31T23:59:59",
					  "2026-01-31T23:59:59+00:00",
					  "2026-01-31T23:59:59ZZ",
					  "2026-02-29T00:00:00Z",
					  "2100-02-29T00:00:00Z",
					  "2026-13-01T00:00:00Z",
					  "2026-00-01T00:00:00Z",
					  "2026-01-00T00:00:00Z",
					  "2026-01-01T24:00:00Z",
					  "2026-01-01T00:60:00Z",
					  "2026-01-01T00:00:60Z",
					  "1969-12-31T23:59:59Z"};
	for (uint32_t i = 0; i < COUNT(bad); i++) {
		char json[128], sentence[160];
		snprintf(json, sizeof(json), "{\"total\": 0, \"heartbeat\": \"%s\"}", bad[i]);
		snprintf(sentence, sizeof(sentence),
			 "status.heartbeat: must be a time like 2026-01-31T23:59:59Z, got \"%s\"", bad[i]);
		refused(json, sentence);
	}
	accepted("{\"total\": 0, \"heartbeat\": \"1970-01-01T00:00:00Z\"}");
	TEST_ASSERT_EQUAL_INT64(0, status.heartbeat_s);
	accepted("{\"total\": 0, \"heartbeat\": \"2000-02-29T12:00:00Z\"}");
	TEST_ASSERT_EQUAL_INT64(951825600, status.heartbeat_s);
}

static void test_fields_of_a_device_have_their_limits(void)
{
	static const struct {
		const char *fields, *sentence;
	} bad[] = {
		{"\"rail\": 1", "status.devices[0].rail: must be at most 64 printable characters, got 1"},
		{"\"clique\": \"a,b\"", "status.devices[0].clique: must be at most 64 letters, digits, \"-\", \".\" "
					"and \"_\" with a letter or "
					"digit at both ends, got \"a,b\""},
		{"\"lane\": 1", "status.devices[0].lane: is not a known field"},
		{"\"memoryMiB\": 16777217",
		 "status.devices[0].memoryMiB: must be a whole number between 0 and 16777216, got 16777217"},
		{"\"memoryUsedMiB\": -1",
		 "status.devices[0].memoryUsedMiB: must be a whole number between 0 and 16777216, got -1"},
		{"\"utilization\": 100.5",
		 "status.devices[0].utilization: must be a whole number between 0 and 100, got 100.5"},
		{"\"numaNode\": 256", "status.devices[0].numaNode: must be a whole number between 0 and 255, got 256"},
		{"\"island\": 16", "status.devices[0].island: must be a whole number between 0 and 15, got 16"},
		{"\"bandwidthGBps\": \"1\"",
		 "status.devices[0].bandwidthGBps: must be a whole number between 0 and 1000000, got \"1\""},
		{"\"model\": \"\"", "status.devices[0].model: must be at most 128 printable characters, got \"\""},
		{"\"model\": \"a\\nb\"",
		 "status.devices[0].model: must be at most 128 printable characters, got \"a?b\""},
		{"\"pciBusId\": \"000:00:00.0\"",
		 "status.devices[0].pciBusId: must be like 00000000:1B:00.0, got \"000:00:00.0\""},
		{"\"pciBusId\": \"0000:00:00.8\"",
		 "status.devices[0].pciBusId: must be like 00000000:1B:00.0, got \"0000:00:00.8\""},
		{"\"pciBusId\": \"0000:00:00\"",
		 "status.devices[0].pciBusId: must be like 00000000:1B:00.0, got \"0000:00:00\""},
		{"\"links\": [{\"peer\": 0, \"bandwidthGBps\": 1}]",
		 "status.devices[0].links[0].peer: 0 is the device itself"},
		{"\"links\": [{\"peer\": 1, \"bandwidthGBps\": 1}]", "status.devices[0].links[0].peer: 1 is no device"},
		{"\"links\": [{\"bandwidthGBps\": 1}]", "status.devices[0].links[0].peer: is missing"},
		{"\"links\": [{\"peer\": 1}]", "status.devices[0].links[0].bandwidthGBps: is missing"},
		{"\"links\": [{\"peer\": 2, \"bandwidthGBps\": 1}, {\"peer\": 1, \"bandwidthGBps\": 1}]",
		 "status.devices[0].links[1].peer: 1 comes after 2; peers must ascend"},
		{"\"links\": [{\"peer\": 1, \"bandwidthGBps\": 65536}]",
		 "status.devices[0].links[0].bandwidthGBps: must be a whole number between 0 and 65535, got 65536"},
		{"\"links\": [{\"peer\": 1, \"kind\": \"NV\", \"bandwidthGBps\": 1}]",
		 "status.devices[0].links[0].kind: must be NVLink, NVSwitch, XGMI or PCIe, got \"NV\""},
		{"\"migMode\": 1", "status.devices[0].migMode: must be true or false, got 1"},
		{"\"mig\": [{\"id\": \"m\"}]", "status.devices[0].mig[0].profile: is missing"},
		{"\"mig\": [{\"profile\": \"m\"}]", "status.devices[0].mig[0].id: is missing"},
		{"\"mig\": [{\"id\": \"m\", \"profile\": \"p\"}, {\"id\": \"m\", \"profile\": \"p\"}]",
		 "status.devices[0].mig[1].id: repeats entry 0"},
		{"\"inUseBy\": [3]", "status.devices[0].inUseBy[0]: must be the UID of a pod or namespace/name"},
		{"\"inUseBy\": [\"A\"]", "status.devices[0].inUseBy[0]: must be the UID of a pod or namespace/name"},
		{"\"inUseBy\": [\"a/\"]", "status.devices[0].inUseBy[0]: must be the UID of a pod or namespace/name"},
		{"\"inUseBy\": [\"a/b/c\"]",
		 "status.devices[0].inUseBy[0]: must be the UID of a pod or namespace/name"},
		{"\"inUseBy\": [\"b\", \"a\"]",
		 "status.devices[0].inUseBy[1]: must come after the entry before it, and once"},
		{"\"inUseBy\": [\"a\", \"a\"]",
		 "status.devices[0].inUseBy[1]: must come after the entry before it, and once"},
	};
	for (uint32_t i = 0; i < COUNT(bad); i++)
		refused(device(bad[i].fields), bad[i].sentence);
	refused("{\"total\": 1, \"devices\": [{\"id\": \"a\", \"index\": 0, \"health\": \"Ill\"}]}",
		"status.devices[0].health: must be Unknown, Healthy or Unhealthy, got \"Ill\"");
}

static void test_a_status_that_contradicts_itself_is_refused(void)
{
	refused(pair(", \"links\": [{\"peer\": 1, \"bandwidthGBps\": 25}]", ""),
		"status.devices[0].links[0].bandwidthGBps: is 25, but device 1 says 0");
	refused(pair(", \"links\": [{\"peer\": 1, \"bandwidthGBps\": 25}]",
		     ", \"links\": [{\"peer\": 0, \"bandwidthGBps\": 50}]"),
		"status.devices[0].links[0].bandwidthGBps: is 25, but device 1 says 50");
	refused(pair(", \"island\": 0", ", \"island\": 0"),
		"status.devices[1].island: is 0 as device 0 has 0, but links do not join the two");
	refused(pair(", \"island\": 0, \"links\": [{\"peer\": 1, \"bandwidthGBps\": 25}]",
		     ", \"island\": 1, \"links\": [{\"peer\": 0, \"bandwidthGBps\": 25}]"),
		"status.devices[1].island: is 1 as device 0 has 0, but links join the two");
	accepted(pair(", \"island\": 3, \"links\": [{\"peer\": 1, \"bandwidthGBps\": 25}]",
		      ", \"island\": 3, \"links\": [{\"peer\": 0, \"bandwidthGBps\": 25}]"));
	accepted(pair(", \"island\": 3", ""));
	refused("{\"total\": 2, \"devices\": [{\"id\": \"a\", \"index\": 0, \"health\": \"Healthy\"}, {\"id\": \"a\", "
		"\"index\": 1, "
		"\"health\": \"Healthy\"}]}",
		"status.devices[1].id: is also the id of device 0");
}

static void test_lists_end_at_their_limits(void)
{
	static char json[65536];
	for (uint32_t count = 16; count <= 17; count++) {
		uint32_t used = (uint32_t)snprintf(json, sizeof(json), "{\"total\": 16, \"devices\": [");
		for (uint32_t i = 0; i < count; i++)
			used += (uint32_t)snprintf(json + used, sizeof(json) - used,
						   "%s{\"id\": \"g%u\", \"index\": %u, \"health\": \"Healthy\"}",
						   i == 0 ? "" : ", ", i, i % 16);
		snprintf(json + used, sizeof(json) - used, "]}");
		if (count == 16)
			accepted(json);
		else
			refused(json, "status.devices: has more than 16 entries");
	}
	for (uint32_t count = 64; count <= 65; count++) {
		static char fields[4096];
		uint32_t used = (uint32_t)snprintf(fields, sizeof(fields), "\"inUseBy\": [");
		for (uint32_t i = 0; i < count; i++)
			used += (uint32_t)snprintf(fields + used, sizeof(fields) - used, "%s\"p%03u\"",
						   i == 0 ? "" : ", ", i);
		snprintf(fields + used, sizeof(fields) - used, "]");
		if (count == 64)
			accepted(device(fields));
		else
			refused(device(fields), "status.devices[0].inUseBy: has more than 64 entries");
	}
}

/* ---- pods -------------------------------------------------------------------------------------------------------- */

static void test_the_pod_of_a_control_group(void)
{
	static const struct {
		const char *text, *pod;
	} cases[] = {
		{"0::/kubepods/burstable/pod4cf8db2d-06c0-7d70-1a51-e59b25b2c16c/abc",
		 "4cf8db2d-06c0-7d70-1a51-e59b25b2c16c"},
		{"0::/kubepods/pod4CF8DB2D-06c0-7d70-1a51-e59b25b2c16c", "4cf8db2d-06c0-7d70-1a51-e59b25b2c16c"},
		{"0::/kubepods.slice/kubepods-pod4cf8db2d_06c0_7d70_1a51_e59b25b2c16c.slice/cri-o-1.scope",
		 "4cf8db2d-06c0-7d70-1a51-e59b25b2c16c"},
		{"0::/kubelet.slice/kubelet-kubepods.slice/"
		 "kubelet-kubepods-pod4cf8db2d_06c0_7d70_1a51_e59b25b2c16c.slice",
		 "4cf8db2d-06c0-7d70-1a51-e59b25b2c16c"},
		{"0::/kubepods/podd1c8e9a0b1c2d3e4f5061728394a5b6c/x",
		 "d1c8e9a0b1c2d3e4f5061728394a5b6c"}, /* a static pod */
		{"0::/podman/pod4cf8db2d-06c0-7d70-1a51-e59b25b2c16c", ""},
		{"0::/kubepods/burstable/pod4cf8db2d-06c0", ""},
		{"0::/kubepods/burstable/pod4cf8db2d-06c0-7d70-1a51-e59b25b2c16cc", ""},
		{"0::/kubepods/tripod4cf8db2d-06c0-7d70-1a51-e59b25b2c16c", ""},
		{"0::/kubepods", ""},
		{"", ""},
	};
	for (uint32_t i = 0; i < COUNT(cases); i++) {
		char pod[POD_UID_ROOM];
		memset(pod, 'x', sizeof(pod));
		TEST_ASSERT_EQUAL_MESSAGE(cases[i].pod[0] != '\0', pod_of_cgroup(cases[i].text, pod), cases[i].text);
		TEST_ASSERT_EQUAL_STRING(cases[i].pod, pod);
	}
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_a_machine_becomes_its_object);
	RUN_TEST(test_what_only_the_driver_can_tell_once_is_marked);
	RUN_TEST(test_links_and_slices_are_written);
	RUN_TEST(test_a_node_without_a_driver_has_no_devices);
	RUN_TEST(test_every_field_is_read);
	RUN_TEST(test_what_is_not_a_status_is_refused);
	RUN_TEST(test_times_are_whole_seconds_in_utc);
	RUN_TEST(test_fields_of_a_device_have_their_limits);
	RUN_TEST(test_a_status_that_contradicts_itself_is_refused);
	RUN_TEST(test_lists_end_at_their_limits);
	RUN_TEST(test_the_pod_of_a_control_group);
	return UNITY_END();
}
