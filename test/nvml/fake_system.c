/* SPDX-License-Identifier: Apache-2.0 */
/* The fake driver about itself: start, stop, versions, the words of its codes, handles. */
#include "fake.h"

#include <stdio.h>
#include <string.h>

#define NVML_VERSION_PREFIX "13."

nvmlReturn_t nvmlInit(void)
{
	return fake_open("nvmlInit");
}

nvmlReturn_t nvmlInit_v2(void)
{
	return fake_open("nvmlInit_v2");
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
	(void)flags;
	return fake_open("nvmlInitWithFlags");
}

nvmlReturn_t nvmlShutdown(void)
{
	return fake_close("nvmlShutdown");
}

const char *nvmlErrorString(nvmlReturn_t result)
{
	switch (result) {
	case NVML_SUCCESS:
		return "fake: success";
	case NVML_ERROR_UNINITIALIZED:
		return "fake: not initialized";
	case NVML_ERROR_INVALID_ARGUMENT:
		return "fake: invalid argument";
	case NVML_ERROR_NOT_SUPPORTED:
		return "fake: not supported";
	case NVML_ERROR_NOT_FOUND:
		return "fake: not found";
	case NVML_ERROR_INSUFFICIENT_SIZE:
		return "fake: insufficient size";
	case NVML_ERROR_DRIVER_NOT_LOADED:
		return "fake: no driver";
	case NVML_ERROR_TIMEOUT:
		return "fake: timeout";
	case NVML_ERROR_GPU_IS_LOST:
		return "fake: GPU is lost";
	default:
		return "fake: another error";
	}
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
	struct call call = enter_machine(__func__, version);
	return leave_text(&call, call.machine->driver, version, length);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
	struct call call = enter_machine(__func__, version);
	char text[64];
	snprintf(text, sizeof(text), NVML_VERSION_PREFIX "%s", call.machine->driver);
	return leave_text(&call, text, version, length);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *cudaDriverVersion)
{
	struct call call = enter_machine(__func__, cudaDriverVersion);
	if (call.code == NVML_SUCCESS)
		*cudaDriverVersion = (int)call.machine->cuda;
	return leave(&call, cudaDriverVersion, sizeof(*cudaDriverVersion));
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *cudaDriverVersion)
{
	return nvmlSystemGetCudaDriverVersion(cudaDriverVersion);
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length)
{
	struct call call = enter_machine(__func__, name);
	char text[32];
	snprintf(text, sizeof(text), "process-%u", pid);
	return leave_text(&call, text, name, length);
}

static nvmlReturn_t count(const char *function, unsigned int *deviceCount)
{
	struct call call = enter_machine(function, deviceCount);
	if (call.code == NVML_SUCCESS)
		*deviceCount = call.machine->gpu_count;
	return leave(&call, deviceCount, sizeof(*deviceCount));
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int *deviceCount)
{
	return count("nvmlDeviceGetCount", deviceCount);
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *deviceCount)
{
	return count("nvmlDeviceGetCount_v2", deviceCount);
}

/* The first GPU that matches, with the errors of the real one; handles are never garbage, because no client could tell. */
static nvmlReturn_t handle(struct call *call, uint32_t gpu, nvmlReturn_t none, nvmlDevice_t *device)
{
	if (call->code == NVML_SUCCESS && gpu >= call->machine->gpu_count)
		call->code = none;
	if (call->code == NVML_SUCCESS && call->machine->gpus[gpu].lost)
		call->code = NVML_ERROR_GPU_IS_LOST;
	if (call->code == NVML_SUCCESS)
		*device = handle_of(gpu, -1);
	return leave(call, device, 0);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
	struct call call = enter_machine("nvmlDeviceGetHandleByIndex", device);
	return handle(&call, index, NVML_ERROR_INVALID_ARGUMENT, device);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
	struct call call = enter_machine("nvmlDeviceGetHandleByIndex_v2", device);
	return handle(&call, index, NVML_ERROR_INVALID_ARGUMENT, device);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
	struct call call = enter_machine(__func__, uuid == NULL ? NULL : device);
	uint32_t gpu = 0;
	for (; call.code == NVML_SUCCESS && gpu < call.machine->gpu_count; gpu++) {
		char text[48];
		machine_uuid(call.machine, gpu, text);
		if (strcmp(text, uuid) == 0)
			break;
		for (uint32_t i = 0; i < call.machine->gpus[gpu].instance_count; i++) {
			machine_mig_uuid(call.machine, gpu, i, text);
			if (strcmp(text, uuid) == 0) {
				*device = handle_of(gpu, (int32_t)i);
				return leave(&call, device, 0);
			}
		}
	}
	return handle(&call, gpu, NVML_ERROR_NOT_FOUND, device);
}

static nvmlReturn_t by_bus(const char *function, const char *pciBusId, nvmlDevice_t *device)
{
	struct call call = enter_machine(function, pciBusId == NULL ? NULL : device);
	unsigned domain = 0, bus = 0, number = 0;
	if (call.code == NVML_SUCCESS && sscanf(pciBusId, "%x:%x:%x", &domain, &bus, &number) != 3)
		call.code = NVML_ERROR_INVALID_ARGUMENT;
	uint32_t gpu = 0;
	for (; call.code == NVML_SUCCESS && gpu < call.machine->gpu_count; gpu++) {
		const struct machine_place *place = &call.machine->gpus[gpu].place;
		if (place->domain == domain && place->bus == bus && place->device == number)
			break;
	}
	return handle(&call, gpu, NVML_ERROR_NOT_FOUND, device);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *pciBusId, nvmlDevice_t *device)
{
	return by_bus("nvmlDeviceGetHandleByPciBusId", pciBusId, device);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *pciBusId, nvmlDevice_t *device)
{
	return by_bus("nvmlDeviceGetHandleByPciBusId_v2", pciBusId, device);
}
