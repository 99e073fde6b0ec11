/* SPDX-License-Identifier: Apache-2.0 */
/* Part of reading.h: memory errors and repairs, and the verdict. XIDs come from probe.c, which keeps the event set. */
#include "probe/reading.h"

#include <stdarg.h>
#include <stdio.h>

void memory_health_read(struct reading *reading, uint32_t index)
{
	struct probe_gpu *gpu = &reading->report->gpus[index];
	int32_t at = (int32_t)index;
	if (!reading->opened[index])
		return;
	nvmlDevice_t device = reading->devices[index];
	unsigned long long errors = 0;
	int32_t code = ASK(reading, at, nvmlDeviceGetTotalEccErrors, device, NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
			   NVML_VOLATILE_ECC, &errors);
	if (code != NVML_SUCCESS)
		gpu->ecc_errors = without(code);
	else if (errors > INT64_MAX)
		odd(reading, at, CALL_nvmlDeviceGetTotalEccErrors);
	else
		gpu->ecc_errors = (int64_t)errors;

	/* A GPU either remaps rows or, before Ampere, retires pages. */
	unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
	code = ASK(reading, at, nvmlDeviceGetRemappedRows, device, &corrected, &uncorrected, &pending, &failed);
	if (code != NVML_SUCCESS) {
		gpu->rows_failed = gpu->rows_pending = without(code);
	} else if (pending > 1 || failed > 1) {
		odd(reading, at, CALL_nvmlDeviceGetRemappedRows);
	} else {
		gpu->rows_failed = (int32_t)failed;
		gpu->rows_pending = (int32_t)pending;
	}
	nvmlEnableState_t retiring = NVML_FEATURE_DISABLED;
	code = ASK(reading, at, nvmlDeviceGetRetiredPagesPendingStatus, device, &retiring);
	if (code != NVML_SUCCESS)
		gpu->pages_pending = without(code);
	else if (retiring != NVML_FEATURE_DISABLED && retiring != NVML_FEATURE_ENABLED)
		odd(reading, at, CALL_nvmlDeviceGetRetiredPagesPendingStatus);
	else
		gpu->pages_pending = retiring == NVML_FEATURE_ENABLED;
}

/* ---- verdict ----------------------------------------------------------------------------------------------------- */

static bool verdict(struct probe_gpu *gpu, enum probe_health health, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static bool verdict(struct probe_gpu *gpu, enum probe_health health, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(gpu->reason, sizeof(gpu->reason), format, args);
	va_end(args);
	gpu->health = health;
	return true;
}

/* XIDs that a program causes and that leave the GPU as good as it was: an illegal access, a page fault, a channel that was
 * stopped or cleaned up, a video engine's complaint, a context switch that took too long. */
bool is_programs_fault(int32_t xid)
{
	return xid == 13 || xid == 31 || xid == 43 || xid == 45 || xid == 68 || xid == 109;
}

static bool is_ill(const struct reading *reading, uint32_t index, struct probe_gpu *gpu)
{
	if (reading->gone[index])
		return verdict(gpu, PROBE_UNHEALTHY, "the GPU is lost: it no longer answers its driver");
	if (reading->reset[index])
		return verdict(gpu, PROBE_UNHEALTHY, "the driver wants the GPU reset before it is used again");
	if (gpu->xid > 0 && !is_programs_fault(gpu->xid))
		return verdict(gpu, PROBE_UNHEALTHY, PROBE_XID_REASON "%d", (int)gpu->xid);
	if (gpu->rows_failed == 1)
		return verdict(gpu, PROBE_UNHEALTHY, "bad rows of its memory could not be remapped");
	if (gpu->ecc_errors > 0)
		return verdict(gpu, PROBE_UNHEALTHY, "%lld uncorrectable memory errors since the last reset",
			       (long long)gpu->ecc_errors);
	if (gpu->fabric == NVML_GPU_FABRIC_STATE_COMPLETED && gpu->fabric_status > 0)
		return verdict(gpu, PROBE_UNHEALTHY, "joining the NVLink fabric failed with code %d",
			       (int)gpu->fabric_status);
	return false;
}

/* Healthy is said only when everything that could speak against it was heard. */
void health_judge(const struct reading *reading, uint32_t index)
{
	struct probe_gpu *gpu = &reading->report->gpus[index];
	if (is_ill(reading, index, gpu))
		return;
	if (!reading->opened[index])
		verdict(gpu, PROBE_HEALTH_UNKNOWN, "the driver does not open the GPU");
	else if (gpu->uuid[0] == '\0')
		verdict(gpu, PROBE_HEALTH_UNKNOWN, "its UUID cannot be read");
	else if (gpu->ecc_errors == PROBE_UNKNOWN)
		verdict(gpu, PROBE_HEALTH_UNKNOWN, "its memory errors cannot be read");
	else if (gpu->rows_failed == PROBE_UNKNOWN)
		verdict(gpu, PROBE_HEALTH_UNKNOWN, "the repairs of its memory cannot be read");
	else if (gpu->xid == PROBE_UNKNOWN)
		verdict(gpu, PROBE_HEALTH_UNKNOWN, "its XIDs cannot be read");
	else if (gpu->fabric == PROBE_UNKNOWN)
		verdict(gpu, PROBE_HEALTH_UNKNOWN, "the state of its NVLink fabric cannot be read");
	else
		gpu->health = PROBE_HEALTHY;
}
