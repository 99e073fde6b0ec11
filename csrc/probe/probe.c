/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/probe.h"

#include "probe/reading.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_ROOM           512u
#define EVENTS_PER_READ_MAX 64u
#define GPUS_SANE_MAX       1024u
#define LIBRARY             "libnvidia-ml.so.1"
#define XID_MAX             100000u

struct probe {
	char nvml[PATH_ROOM], xml[PATH_ROOM], proc[PATH_ROOM];
	bool here; /* hwloc looks at this machine, not at a file */
	bool loaded, running;
	struct driver driver;
	bool watching; /* events holds an event set */
	nvmlEventSet_t events;
	struct gpu_session gpus[PROBE_GPUS_MAX]; /* all zero: nothing is known yet */
	bool host_read;
	struct host host;
	struct probe_report last; /* of the last whole read */
	bool whole;
};

static bool session_open(struct probe *probe, struct reading *reading);
static void session_close(struct probe *probe);
static bool count_read(struct probe *probe, struct reading *reading);
static void events_read(struct probe *probe, struct reading *reading);
static void host_update(struct probe *probe, struct probe_report *report);

/* ---- entry points ------------------------------------------------------------------------------------------------ */

static bool path_copy(const char *path, char out[PATH_ROOM])
{
	size_t len = strlen(path);
	if (len >= PATH_ROOM)
		return false;
	memcpy(out, path, len + 1);
	return true;
}

struct probe *probe_open(const struct probe_options *options)
{
	struct probe *probe = calloc(1, sizeof(*probe));
	if (probe == NULL)
		return NULL;
	probe->here = options->hwloc_xml == NULL;
	if (path_copy(options->nvml == NULL ? LIBRARY : options->nvml, probe->nvml) &&
	    path_copy(probe->here ? "" : options->hwloc_xml, probe->xml) &&
	    path_copy(options->proc == NULL ? "/proc" : options->proc, probe->proc))
		return probe;
	free(probe);
	return NULL;
}

void probe_close(struct probe *probe)
{
	if (probe == NULL)
		return;
	session_close(probe);
	free(probe);
}

static void pairs_clear(struct probe_report *report)
{
	for (uint32_t a = 0; a < PROBE_GPUS_MAX; a++)
		for (uint32_t b = 0; b < PROBE_GPUS_MAX; b++)
			report->pairs[a][b] = (struct probe_pair){.gbps = PROBE_UNKNOWN,
								  .level = PROBE_UNKNOWN,
								  .p2p_read = PROBE_UNKNOWN,
								  .p2p_write = PROBE_UNKNOWN,
								  .p2p_nvlink = PROBE_UNKNOWN};
}

void probe_read(struct probe *probe, enum probe_depth depth, struct probe_report *report)
{
	struct reading reading = {.driver = &probe->driver, .report = report, .proc = probe->proc};
	memset(report, 0, sizeof(*report));
	pairs_clear(report);

	/* 1. The driver and its devices. */
	if (!session_open(probe, &reading) || !count_read(probe, &reading))
		return;
	if (depth == PROBE_CHANGES && probe->whole)
		reading.before = &probe->last;

	/* 2. What each GPU says of itself: all names first, because links lead to names. */
	for (uint32_t i = 0; i < report->gpu_count; i++) {
		gpu_open(&reading, i);
		gpu_identify(&reading, i, &probe->gpus[i]);
	}
	for (uint32_t i = 0; i < report->gpu_count; i++) {
		memory_health_read(&reading, i);
		fabric_read(&reading, i);
		links_read(&reading, i);
		slices_read(&reading, i);
		gpu_use(&reading, i);
	}
	events_read(probe, &reading);

	/* 3. One picture. */
	merge_links(report);
	merge_islands(report);
	pairs_read(&reading);
	host_update(probe, report);
	for (uint32_t i = 0; i < report->gpu_count; i++)
		health_judge(&reading, i);
	if (reading.before == NULL) {
		probe->last = *report;
		probe->whole = true;
	}
}

/* ---- the driver -------------------------------------------------------------------------------------------------- */

static bool refuse(struct probe *probe, struct probe_report *report, enum probe_state state, const char *what,
		   int32_t code)
{
	report->state = state;
	snprintf(report->reason, sizeof(report->reason), "%s: NVML code %d", what, (int)code);
	session_close(probe); /* the next read starts afresh: a driver may be installed or loaded again meanwhile */
	return false;
}

static bool session_open(struct probe *probe, struct reading *reading)
{
	struct probe_report *report = reading->report;
	if (!probe->loaded && !driver_open(probe->nvml, &probe->driver, report->reason, sizeof(report->reason))) {
		report->state = PROBE_NO_LIBRARY;
		return false;
	}
	probe->loaded = true;
	if (!probe->running) {
		int32_t code = ASK(reading, -1, nvmlInit_v2, );
		if (code != NVML_SUCCESS)
			return refuse(probe, report, PROBE_NO_DRIVER, "the NVIDIA driver does not answer", code);
	}
	probe->running = true;
	char version[sizeof(report->driver)] = "";
	if (ASK(reading, -1, nvmlSystemGetDriverVersion, version, sizeof(version)) == NVML_SUCCESS) {
		if (text_settle(version, sizeof(version)))
			memcpy(report->driver, version, sizeof(version));
		else
			odd(reading, -1, CALL_nvmlSystemGetDriverVersion);
	}
	return true;
}

static void session_close(struct probe *probe)
{
	if (probe->watching && probe->driver.nvmlEventSetFree != NULL)
		probe->driver.nvmlEventSetFree(probe->events);
	if (probe->running)
		probe->driver.nvmlShutdown();
	if (probe->loaded)
		driver_close(&probe->driver);
	probe->loaded = probe->running = probe->watching = probe->whole = probe->host_read = false;
	memset(probe->gpus, 0, sizeof(probe->gpus)); /* a driver that starts again counts again */
}

static bool count_read(struct probe *probe, struct reading *reading)
{
	struct probe_report *report = reading->report;
	unsigned count = 0;
	int32_t code = ASK(reading, -1, nvmlDeviceGetCount_v2, &count);
	if (code == NVML_ERROR_UNINITIALIZED || code == NVML_ERROR_DRIVER_NOT_LOADED ||
	    code == NVML_ERROR_LIB_RM_VERSION_MISMATCH)
		return refuse(probe, report, PROBE_NO_DRIVER, "the NVIDIA driver no longer answers", code);
	if (code == NVML_SUCCESS && count > GPUS_SANE_MAX) {
		odd(reading, -1, CALL_nvmlDeviceGetCount_v2);
		code = PROBE_CODE_ODD;
	}
	if (code != NVML_SUCCESS) {
		report->state = PROBE_BROKEN;
		snprintf(report->reason, sizeof(report->reason),
			 "the driver does not say how many GPUs it has: NVML code %d", (int)code);
		return false;
	}
	report->gpus_found = count;
	report->gpu_count = count < PROBE_GPUS_MAX ? count : PROBE_GPUS_MAX;
	if (count > PROBE_GPUS_MAX)
		snprintf(report->reason, sizeof(report->reason),
			 "the driver has %u GPUs; only the first %u are reported", count, PROBE_GPUS_MAX);
	return true;
}

/* ---- XIDs -------------------------------------------------------------------------------------------------------- */

/* Whether the XIDs of GPU i are heard: 0, PROBE_ABSENT or PROBE_UNKNOWN. */
static int32_t watch(struct probe *probe, struct reading *reading, uint32_t i)
{
	if (probe->gpus[i].watched)
		return 0;
	if (!reading->opened[i])
		return PROBE_UNKNOWN;
	int32_t code = ASK(reading, (int32_t)i, nvmlDeviceRegisterEvents, reading->devices[i],
			   nvmlEventTypeXidCriticalError, probe->events);
	probe->gpus[i].watched = code == NVML_SUCCESS;
	probe->gpus[i].watched_as = reading->devices[i];
	return code == NVML_SUCCESS ? 0 : without(code);
}

/* Takes what has happened since the last read, without waiting. */
static int32_t events_take(struct probe *probe, struct reading *reading)
{
	for (uint32_t taken = 0; taken < EVENTS_PER_READ_MAX; taken++) {
		nvmlEventData_t event;
		memset(&event, 0, sizeof(event));
		bool second = probe->driver.nvmlEventSetWait_v2 != NULL;
		__typeof__(nvmlEventSetWait_v2) *wait =
			second ? probe->driver.nvmlEventSetWait_v2 : probe->driver.nvmlEventSetWait;
		uint32_t call = second ? CALL_nvmlEventSetWait_v2 : CALL_nvmlEventSetWait;
		int32_t code = wait == NULL ? unasked(reading, call, false) : (int32_t)wait(probe->events, &event, 0);
		if (code == NVML_ERROR_TIMEOUT)
			return NVML_SUCCESS;
		if (code != NVML_SUCCESS)
			return code == PROBE_CODE_MISSING ? code : answered(reading, -1, call, code);
		for (uint32_t i = 0; i < PROBE_GPUS_MAX; i++) {
			struct gpu_session *gpu = &probe->gpus[i];
			if (gpu->watched && gpu->watched_as.handle == event.device.handle &&
			    (event.eventType & nvmlEventTypeXidCriticalError) != 0 &&
			    (gpu->xid <= 0 || is_programs_fault(gpu->xid))) /* programs die of a sick GPU, after it */
				gpu->xid = event.eventData > XID_MAX ? (int32_t)XID_MAX : (int32_t)event.eventData;
		}
	}
	return NVML_SUCCESS; /* the rest comes with the next read */
}

/* A critical XID stays with its GPU until the driver starts again: nothing less than a reset repairs what it stands for. */
static void events_read(struct probe *probe, struct reading *reading)
{
	int32_t heard = 0;
	if (!probe->watching) {
		int32_t code = ASK(reading, -1, nvmlEventSetCreate, &probe->events);
		probe->watching = code == NVML_SUCCESS;
		heard = code == NVML_SUCCESS ? 0 : code == PROBE_CODE_MISSING ? PROBE_ABSENT : PROBE_UNKNOWN;
	}
	int32_t each[PROBE_GPUS_MAX];
	for (uint32_t i = 0; i < reading->report->gpu_count; i++)
		each[i] = probe->watching ? watch(probe, reading, i) : heard;
	if (probe->watching) {
		int32_t code = events_take(probe, reading);
		heard = code == NVML_SUCCESS ? 0 : code == PROBE_CODE_MISSING ? PROBE_ABSENT : PROBE_UNKNOWN;
	}
	for (uint32_t i = 0; i < reading->report->gpu_count; i++) {
		int32_t xid = probe->gpus[i].xid;
		reading->report->gpus[i].xid = xid > 0 ? xid : heard != 0 ? heard : each[i];
	}
}

/* ---- the host ---------------------------------------------------------------------------------------------------- */

/* Boards do not move: hwloc is asked again only when the GPUs have other addresses. */
static void host_update(struct probe *probe, struct probe_report *report)
{
	struct probe_pci gpus[PROBE_GPUS_MAX];
	bool same = probe->host_read && probe->host.gpu_count == report->gpu_count;
	for (uint32_t i = 0; i < report->gpu_count; i++) {
		gpus[i] = report->gpus[i].pci;
		same = same && gpus[i].known == probe->host.gpus[i].known &&
		       (!gpus[i].known || pci_same(&gpus[i], &probe->host.gpus[i]));
	}
	if (!same)
		probe->host_read = host_read(probe->here ? NULL : probe->xml, gpus, report->gpu_count, &probe->host);
	if (probe->host_read)
		merge_host(report, &probe->host);
}
