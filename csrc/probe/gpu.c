/* SPDX-License-Identifier: Apache-2.0 */
/* Part of reading.h: what a GPU is and what it is used for. */
#include "probe/reading.h"

#include "probe/pods.h"

#include <stdlib.h>
#include <string.h>

#define MIB                1048576ull
#define MEMORY_MIB_MAX     (16ull << 20)
#define PERCENT_MAX        100u
#define PROCESSES_ASK_MAX  1024u /* asked for at most; a GPU that has more is over every limit anyway */
#define PROCESSES_ASK_MORE 16u   /* some may start between two calls */

static void processes_read(struct reading *reading, uint32_t index);

/* Everything unknown, until somebody knows better. */
static void gpu_clear(struct probe_gpu *gpu, uint32_t index)
{
	memset(gpu, 0, sizeof(*gpu));
	gpu->index = index;
	gpu->memory_mib = gpu->memory_used_mib = gpu->ecc_errors = gpu->clique = PROBE_UNKNOWN;
	gpu->utilization = gpu->rows_failed = gpu->rows_pending = gpu->pages_pending = gpu->xid = PROBE_UNKNOWN;
	gpu->link_count = gpu->link_gbps = gpu->fabric = gpu->fabric_status = gpu->mig = PROBE_UNKNOWN;
	gpu->slice_count = gpu->process_count = gpu->numa = gpu->rail = gpu->rail_level = PROBE_UNKNOWN;
	gpu->island = (int32_t)index;
}

void gpu_open(struct reading *reading, uint32_t index)
{
	gpu_clear(&reading->report->gpus[index], index);
	reading->opened[index] = ASK(reading, (int32_t)index, nvmlDeviceGetHandleByIndex_v2, index,
				     &reading->devices[index]) == NVML_SUCCESS;
}

/* ---- identity ---------------------------------------------------------------------------------------------------- */

/* Letters, digits and hyphens, as in GPU-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c: it becomes a key of the API object. */
static bool is_uuid(char *buffer, uint32_t size)
{
	if (!text_settle(buffer, size))
		return false;
	size_t len = strlen(buffer);
	return strspn(buffer, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-") == len &&
	       buffer[0] != '-' && buffer[len - 1] != '-';
}

static void uuid_read(struct reading *reading, uint32_t index, nvmlDevice_t device)
{
	struct probe_gpu *gpu = &reading->report->gpus[index];
	char text[sizeof(gpu->uuid)] = "";
	if (ASK(reading, (int32_t)index, nvmlDeviceGetUUID, device, text, sizeof(text)) != NVML_SUCCESS)
		return;
	bool twice = false;
	for (uint32_t i = 0; i < index; i++)
		twice = twice || strncmp(reading->report->gpus[i].uuid, text, sizeof(text)) == 0;
	if (twice || !is_uuid(text, sizeof(text)))
		odd(reading, (int32_t)index, CALL_nvmlDeviceGetUUID);
	else
		memcpy(gpu->uuid, text, sizeof(text));
}

static void model_read(struct reading *reading, uint32_t index, nvmlDevice_t device)
{
	struct probe_gpu *gpu = &reading->report->gpus[index];
	char text[sizeof(gpu->model)] = "";
	if (ASK(reading, (int32_t)index, nvmlDeviceGetName, device, text, sizeof(text)) != NVML_SUCCESS)
		return;
	if (text_settle(text, sizeof(text)))
		memcpy(gpu->model, text, sizeof(text));
	else
		odd(reading, (int32_t)index, CALL_nvmlDeviceGetName);
}

static void pci_read(struct reading *reading, uint32_t index, nvmlDevice_t device)
{
	struct probe_pci pci = {.known = false};
	nvmlPciInfo_t info;
	memset(&info, 0, sizeof(info));
	bool third = reading->driver->nvmlDeviceGetPciInfo_v3 != NULL;
	int32_t code = third ? ASK(reading, (int32_t)index, nvmlDeviceGetPciInfo_v3, device, &info)
			     : ASK(reading, (int32_t)index, nvmlDeviceGetPciInfo_v2, device, &info);
	if (code != NVML_SUCCESS)
		return;
	bool good = pci_from(&info, &pci);
	for (uint32_t i = 0; i < index; i++)
		good = good && !pci_same(&reading->report->gpus[i].pci, &pci);
	if (good)
		reading->report->gpus[index].pci = pci;
	else
		odd(reading, (int32_t)index, third ? CALL_nvmlDeviceGetPciInfo_v3 : CALL_nvmlDeviceGetPciInfo_v2);
}

static void memory_read(struct reading *reading, uint32_t index, nvmlDevice_t device)
{
	struct probe_gpu *gpu = &reading->report->gpus[index];
	uint64_t total, used;
	int32_t code;
	bool second = reading->driver->nvmlDeviceGetMemoryInfo_v2 != NULL;
	if (second) { /* its "used" leaves out what the driver keeps for itself */
		nvmlMemory_v2_t memory;
		memset(&memory, 0, sizeof(memory));
		memory.version = nvmlMemory_v2;
		code = ASK(reading, (int32_t)index, nvmlDeviceGetMemoryInfo_v2, device, &memory);
		total = memory.total, used = memory.used;
	} else {
		nvmlMemory_t memory;
		memset(&memory, 0, sizeof(memory));
		code = ASK(reading, (int32_t)index, nvmlDeviceGetMemoryInfo, device, &memory);
		total = memory.total, used = memory.used;
	}
	if (code != NVML_SUCCESS) {
		gpu->memory_used_mib = without(code);
		return;
	}
	if (total / MIB > MEMORY_MIB_MAX || used > total) {
		odd(reading, (int32_t)index, second ? CALL_nvmlDeviceGetMemoryInfo_v2 : CALL_nvmlDeviceGetMemoryInfo);
		return;
	}
	gpu->memory_mib = (int64_t)(total / MIB);
	gpu->memory_used_mib = (int64_t)(used / MIB);
}

/* What could not be read now but was known in this session is filled in: a GPU that dies keeps its name. */
static void identity_recall(struct probe_report *report, uint32_t index, struct identity *known)
{
	struct probe_gpu *gpu = &report->gpus[index];
	if (gpu->uuid[0] != '\0' && strcmp(known->uuid, gpu->uuid) != 0)
		memset(known, 0, sizeof(*known)); /* another GPU has this index now */
	bool taken = false;                       /* by a GPU that says so itself */
	for (uint32_t i = 0; i < index; i++)
		taken = taken || (known->uuid[0] != '\0' && strcmp(report->gpus[i].uuid, known->uuid) == 0) ||
			pci_same(&report->gpus[i].pci, &known->pci);
	if (taken)
		memset(known, 0, sizeof(*known));
	if (gpu->uuid[0] == '\0' && known->uuid[0] != '\0') {
		memcpy(gpu->uuid, known->uuid, sizeof(gpu->uuid));
		gpu->remembered = true;
	}
	if (gpu->model[0] == '\0' && known->model[0] != '\0') {
		memcpy(gpu->model, known->model, sizeof(gpu->model));
		gpu->remembered = true;
	}
	if (!gpu->pci.known && known->pci.known) {
		gpu->pci = known->pci;
		gpu->remembered = true;
	}
	if (gpu->memory_mib < 0 && known->uuid[0] != '\0' && known->memory_mib > 0) {
		gpu->memory_mib = known->memory_mib;
		gpu->remembered = true;
	}
	if (gpu->uuid[0] == '\0')
		return;
	memcpy(known->uuid, gpu->uuid, sizeof(known->uuid));
	memcpy(known->model, gpu->model, sizeof(known->model));
	known->pci = gpu->pci;
	known->memory_mib = gpu->memory_mib;
}

void gpu_identify(struct reading *reading, uint32_t index, struct gpu_session *session)
{
	if (reading->opened[index]) {
		nvmlDevice_t device = reading->devices[index];
		uuid_read(reading, index, device);
		const struct probe_gpu *before =
			reading->before != NULL && same_gpu(reading, index) ? &reading->before->gpus[index] : NULL;
		if (before != NULL && before->pci.known && before->model[0] != '\0') {
			reading->report->gpus[index].pci = before->pci;
			memcpy(reading->report->gpus[index].model, before->model, sizeof(before->model));
		} else {
			pci_read(reading, index, device);
			model_read(reading, index, device);
		}
		memory_read(reading, index, device);
	}
	identity_recall(reading->report, index, &session->identity);
}

/* ---- use --------------------------------------------------------------------------------------------------------- */

void gpu_use(struct reading *reading, uint32_t index)
{
	struct probe_gpu *gpu = &reading->report->gpus[index];
	nvmlUtilization_t rates = {.gpu = 0};
	if (!reading->opened[index])
		return;
	int32_t code = ASK(reading, (int32_t)index, nvmlDeviceGetUtilizationRates, reading->devices[index], &rates);
	if (code != NVML_SUCCESS)
		gpu->utilization = without(code);
	else if (rates.gpu > PERCENT_MAX)
		odd(reading, (int32_t)index, CALL_nvmlDeviceGetUtilizationRates);
	else
		gpu->utilization = (int32_t)rates.gpu;
	processes_read(reading, index);
}

/* All versions say PID and memory; the newer ones also say the slice, which the PID makes superfluous here. */
static int32_t processes_ask(struct reading *reading, uint32_t index, uint32_t room, uint32_t *count,
			     nvmlProcessInfo_t *out)
{
	nvmlDevice_t device = reading->devices[index];
	*count = room;
	if (reading->driver->nvmlDeviceGetComputeRunningProcesses_v3 != NULL)
		return ASK(reading, (int32_t)index, nvmlDeviceGetComputeRunningProcesses_v3, device, count, out);
	if (reading->driver->nvmlDeviceGetComputeRunningProcesses_v2 != NULL)
		return ASK(reading, (int32_t)index, nvmlDeviceGetComputeRunningProcesses_v2, device, count, out);
	nvmlProcessInfo_v1_t *first = calloc(room, sizeof(*first));
	if (first == NULL)
		return NVML_ERROR_MEMORY;
	int32_t code = ASK(reading, (int32_t)index, nvmlDeviceGetComputeRunningProcesses, device, count, first);
	for (uint32_t i = 0; code == NVML_SUCCESS && i < *count && i < room; i++)
		out[i] = (nvmlProcessInfo_t){.pid = first[i].pid, .usedGpuMemory = first[i].usedGpuMemory};
	free(first);
	return code;
}

static int by_pid(const void *a, const void *b)
{
	uint32_t left = ((const nvmlProcessInfo_t *)a)->pid, right = ((const nvmlProcessInfo_t *)b)->pid;
	return left < right ? -1 : left > right;
}

static void processes_keep(const struct reading *reading, struct probe_gpu *gpu, nvmlProcessInfo_t *infos,
			   uint32_t count)
{
	qsort(infos, count, sizeof(*infos), by_pid);
	gpu->processes_found = count;
	gpu->process_count = (int32_t)(count < PROBE_PROCESSES_MAX ? count : PROBE_PROCESSES_MAX);
	for (int32_t i = 0; i < gpu->process_count; i++) {
		struct probe_process *process = &gpu->processes[i];
		uint64_t mib = infos[i].usedGpuMemory / MIB; /* all ones: the driver does not know */
		process->pid = infos[i].pid;
		process->memory_mib = mib > MEMORY_MIB_MAX ? PROBE_UNKNOWN : (int64_t)mib;
		pod_of_process(reading->proc, process->pid, process->pod);
	}
}

static void processes_read(struct reading *reading, uint32_t index)
{
	struct probe_gpu *gpu = &reading->report->gpus[index];
	uint32_t room = PROBE_PROCESSES_MAX, count = 0;
	nvmlProcessInfo_t *infos = calloc(room, sizeof(*infos));
	int32_t code = infos == NULL ? (int32_t)NVML_ERROR_MEMORY : processes_ask(reading, index, room, &count, infos);
	if (code == NVML_ERROR_INSUFFICIENT_SIZE && count > room && count <= PROCESSES_ASK_MAX) {
		free(infos);
		room = count + PROCESSES_ASK_MORE;
		infos = calloc(room, sizeof(*infos));
		code = infos == NULL ? (int32_t)NVML_ERROR_MEMORY : processes_ask(reading, index, room, &count, infos);
	}
	if (code == NVML_SUCCESS && count <= room)
		processes_keep(reading, gpu, infos, count);
	else if (code == NVML_SUCCESS)
		odd(reading, (int32_t)index, CALL_nvmlDeviceGetComputeRunningProcesses_v3);
	else
		gpu->process_count = without(code);
	free(infos);
}
