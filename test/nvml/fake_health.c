/* SPDX-License-Identifier: Apache-2.0 */
/* The fake driver about what ails a GPU: memory errors, repairs of memory, events. */
#include "fake.h"

#include <stdlib.h>

struct nvmlEventSet_st {
	uint32_t wanted; /* a bit for each GPU whose XIDs somebody waits for */
};

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending)
{
	struct call call = enter(__func__, device, pending == NULL ? NULL : current);
	if (call.code == NVML_SUCCESS)
		*current = *pending = call.gpu->ecc_on ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
	return leave(&call, current, sizeof(*current));
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t errorType,
					 nvmlEccCounterType_t counterType, unsigned long long *eccCounts)
{
	struct call call = enter(__func__, device, eccCounts);
	bool wanted = errorType == NVML_MEMORY_ERROR_TYPE_UNCORRECTED && counterType == NVML_VOLATILE_ECC;
	if (call.code == NVML_SUCCESS)
		*eccCounts = wanted ? call.gpu->ecc_errors : 0;
	return leave(&call, eccCounts, sizeof(*eccCounts));
}

nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device, nvmlEnableState_t *isPending)
{
	struct call call = enter(__func__, device, isPending);
	if (call.code == NVML_SUCCESS && call.machine->has_remap)
		call.code = NVML_ERROR_NOT_SUPPORTED; /* a GPU either retires pages or remaps rows */
	if (call.code == NVML_SUCCESS)
		*isPending = call.gpu->pages_pending ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
	return leave(&call, isPending, sizeof(*isPending));
}

nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, nvmlPageRetirementCause_t cause, unsigned int *pageCount,
				       unsigned long long *addresses)
{
	(void)cause;
	(void)addresses;
	struct call call = enter(__func__, device, pageCount);
	if (call.code == NVML_SUCCESS && call.machine->has_remap)
		call.code = NVML_ERROR_NOT_SUPPORTED;
	if (call.code == NVML_SUCCESS)
		*pageCount = 0;
	return leave(&call, pageCount, 0);
}

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *corrRows, unsigned int *uncRows,
				       unsigned int *isPending, unsigned int *failureOccurred)
{
	bool room = corrRows != NULL && uncRows != NULL && isPending != NULL;
	struct call call = enter(__func__, device, room ? failureOccurred : NULL);
	if (call.code == NVML_SUCCESS && !call.machine->has_remap)
		call.code = NVML_ERROR_NOT_SUPPORTED;
	if (call.code == NVML_SUCCESS) {
		*corrRows = 0;
		*uncRows = call.gpu->remap_failed || call.gpu->remap_pending;
		*isPending = call.gpu->remap_pending;
		*failureOccurred = call.gpu->remap_failed;
	}
	return leave(&call, failureOccurred, sizeof(*failureOccurred));
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
	struct call call = enter_machine(__func__, set);
	if (call.code == NVML_SUCCESS) {
		set->handle = calloc(1, sizeof(*set->handle));
		if (set->handle == NULL)
			call.code = NVML_ERROR_MEMORY;
	}
	return leave(&call, set, 0);
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
	struct call call = enter_machine(__func__, "");
	free(set.handle); /* whatever the answer: a client that hears of an error cannot try again */
	return leave(&call, NULL, 0);
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *eventTypes)
{
	struct call call = enter(__func__, device, eventTypes);
	if (call.code == NVML_SUCCESS)
		*eventTypes = nvmlEventTypeXidCriticalError;
	return leave(&call, eventTypes, sizeof(*eventTypes));
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long eventTypes, nvmlEventSet_t set)
{
	struct call call = enter(__func__, device, set.handle);
	if (call.code == NVML_SUCCESS && (eventTypes & ~(unsigned long long)nvmlEventTypeXidCriticalError) != 0)
		call.code = NVML_ERROR_NOT_SUPPORTED;
	if (call.code == NVML_SUCCESS)
		set.handle->wanted |= 1u << call.index;
	return leave(&call, NULL, 0);
}

static nvmlReturn_t wait_next(const char *function, nvmlEventSet_t set, nvmlEventData_t *data)
{
	struct call call = enter_machine(function, set.handle == NULL ? NULL : data);
	uint32_t gpu = 0, xid = 0;
	if (call.code == NVML_SUCCESS && !xid_next(set.handle->wanted, &gpu, &xid))
		call.code = NVML_ERROR_TIMEOUT; /* at once: nobody who tests a driver wants to wait */
	if (call.code == NVML_SUCCESS)
		*data = (nvmlEventData_t){.device = handle_of(gpu, -1),
					  .eventType = nvmlEventTypeXidCriticalError,
					  .eventData = xid,
					  .gpuInstanceId = 0xffffffffu,
					  .computeInstanceId = 0xffffffffu};
	return leave(&call, data, 0);
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeoutms)
{
	(void)timeoutms;
	return wait_next("nvmlEventSetWait_v2", set, data);
}

nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeoutms)
{
	(void)timeoutms;
	return wait_next("nvmlEventSetWait", set, data);
}
