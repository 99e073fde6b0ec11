/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input decides which machine it is, and which calls of its driver fail or answer with which bytes. Whatever the driver
 * says, the report keeps its limits, and the API object made of it passes the strict reader.
 */
#include "fuzz.h"

#include "probe/status.h"

#include <unistd.h>

#define FAKE "build/nvml/libnvidia-ml.so.1"

static char description[64], bytes[64];

static void clean_up(void)
{
	unlink(description);
	unlink(bytes);
}

static void write_file(const char *path, const void *data, size_t size)
{
	unlink(path); /* another inode, so that the driver sees a change */
	FILE *file = fopen(path, "wb");
	MUST(file != NULL && fwrite(data, 1, size, file) == size && fclose(file) == 0);
}

/* Two bytes of the input choose; the others are the driver's dice. */
static void machine_write(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"dgx-1v", "dgx-2",  "dgx-a100", "dgx-h100",
					    "gb200",  "pcie-4", "mig",      "busy"};
	if (description[0] == '\0') {
		snprintf(description, sizeof description, "build/nvml/fuzz.%d.machine", (int)getpid());
		snprintf(bytes, sizeof bytes, "build/nvml/fuzz.%d.bytes", (int)getpid());
		MUST(setenv("FROND_FAKE_NVML", description, 1) == 0 &&
		     setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 1) == 0);
		MUST(atexit(clean_up) == 0);
	}
	write_file(bytes, data + 2, size - 2);
	char text[256];
	int len = snprintf(text, sizeof text, "include ../../test/nvml/machines/%s.machine\nbytes %s\n%s 40 0\n",
			   names[data[0] % 8], bytes, data[1] % 2 == 0 ? "garbage" : "inject");
	write_file(description, text, (size_t)len);
}

static void check_gpu(const struct probe_report *report, uint32_t i)
{
	const struct probe_gpu *gpu = &report->gpus[i];
	MUST(gpu->index == i && memchr(gpu->uuid, 0, sizeof gpu->uuid) != NULL &&
	     memchr(gpu->model, 0, sizeof gpu->model) != NULL);
	MUST(gpu->link_count <= (int32_t)PROBE_LINKS_MAX && gpu->slice_count <= (int32_t)PROBE_SLICES_MAX);
	MUST(gpu->process_count <= (int32_t)PROBE_PROCESSES_MAX && gpu->utilization <= 100);
	MUST(gpu->health != PROBE_HEALTH_UNKNOWN || gpu->reason[0] != '\0');
	for (uint32_t k = 0; k < report->gpu_count; k++)
		MUST(report->pairs[i][k].gbps == report->pairs[k][i].gbps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct probe_report report;
	static struct status status, again;
	static struct complaint complaint;
	if (size < 3)
		return 0;
	machine_write(data, size);
	struct probe *probe = probe_open(&(struct probe_options){.nvml = FAKE, .hwloc_xml = "/nonexistent"});
	MUST(probe != NULL);
	for (enum probe_depth depth = PROBE_ALL; depth <= PROBE_CHANGES; depth++) {
		probe_read(probe, depth, &report);
		MUST(report.state != PROBE_NO_LIBRARY && report.gpu_count <= PROBE_GPUS_MAX);
		MUST(report.failure_count <= PROBE_FAILURES_MAX &&
		     memchr(report.driver, 0, sizeof report.driver) != NULL);
		MUST(report.state == PROBE_OK || report.reason[0] != '\0');
		for (uint32_t i = 0; i < report.gpu_count; i++)
			check_gpu(&report, i);
		status_from(&report, 0, &status);
		cJSON *object = status_json(&status);
		MUST(object != NULL);
		char *text = cJSON_PrintUnformatted(object);
		cJSON_Delete(object);
		MUST(text != NULL);
		MUST(status_read(text, (uint32_t)strlen(text), &again, &complaint) == FROND_OK);
		MUST(memcmp(&status, &again, sizeof status) == 0);
		free(text);
	}
	probe_close(probe);
	return 0;
}
