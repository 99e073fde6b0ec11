/* SPDX-License-Identifier: Apache-2.0 */
/* The fake driver about one GPU: what it is, what it does. */
#include "fake.h"

#include <stdio.h>
#include <string.h>

#define MIB            1048576ull
#define GPU_DEVICE_ID  0x20b010deu /* some device of the vendor */
#define NO_INSTANCE_ID 0xffffffffu

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
	struct call call = enter_any(__func__, device, name);
	char text[128] = "";
	if (call.code == NVML_SUCCESS && call.instance >= 0)
		snprintf(text, sizeof(text), "%s MIG %s", call.machine->model,
			 call.gpu->instances[call.instance].profile);
	else if (call.code == NVML_SUCCESS)
		snprintf(text, sizeof(text), "%s", call.machine->model);
	return leave_text(&call, text, name, length);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
	struct call call = enter_any(__func__, device, uuid);
	char text[48] = "";
	if (call.code == NVML_SUCCESS && call.instance >= 0)
		machine_mig_uuid(call.machine, call.index, (uint32_t)call.instance, text);
	else if (call.code == NVML_SUCCESS)
		machine_uuid(call.machine, call.index, text);
	return leave_text(&call, text, uuid, length);
}

nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned int length)
{
	struct call call = enter(__func__, device, serial);
	char text[32];
	snprintf(text, sizeof(text), "%06u%04u", call.machine->node, call.index);
	return leave_text(&call, text, serial, length);
}

nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, nvmlBrandType_t *type)
{
	struct call call = enter(__func__, device, type);
	if (call.code == NVML_SUCCESS)
		*type = NVML_BRAND_NVIDIA;
	return leave(&call, type, sizeof(*type));
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
	struct call call = enter_any(__func__, device, index);
	if (call.code == NVML_SUCCESS)
		*index = call.instance >= 0 ? (unsigned)call.instance : call.index;
	return leave(&call, index, sizeof(*index));
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minorNumber)
{
	struct call call = enter(__func__, device, minorNumber);
	if (call.code == NVML_SUCCESS)
		*minorNumber = call.index;
	return leave(&call, minorNumber, sizeof(*minorNumber));
}

nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, nvmlDeviceArchitecture_t *arch)
{
	struct call call = enter(__func__, device, arch);
	if (call.code == NVML_SUCCESS) {
		uint32_t capability = call.machine->major * 10 + call.machine->minor;
		*arch = capability >= 100  ? NVML_DEVICE_ARCH_BLACKWELL
			: capability >= 90 ? NVML_DEVICE_ARCH_HOPPER
			: capability >= 89 ? NVML_DEVICE_ARCH_ADA
			: capability >= 80 ? NVML_DEVICE_ARCH_AMPERE
					   : NVML_DEVICE_ARCH_VOLTA;
	}
	return leave(&call, arch, sizeof(*arch));
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
	struct call call = enter(__func__, device, minor == NULL ? NULL : major);
	if (call.code == NVML_SUCCESS) {
		*major = (int)call.machine->major;
		*minor = (int)call.machine->minor;
	}
	return leave(&call, major, sizeof(*major));
}

nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t *mode)
{
	struct call call = enter(__func__, device, mode);
	if (call.code == NVML_SUCCESS)
		*mode = NVML_FEATURE_ENABLED;
	return leave(&call, mode, sizeof(*mode));
}

nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t *mode)
{
	struct call call = enter(__func__, device, mode);
	if (call.code == NVML_SUCCESS)
		*mode = NVML_COMPUTEMODE_DEFAULT;
	return leave(&call, mode, sizeof(*mode));
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensorType, unsigned int *temp)
{
	struct call call = enter(__func__, device, temp);
	if (call.code == NVML_SUCCESS && sensorType != NVML_TEMPERATURE_GPU)
		call.code = NVML_ERROR_INVALID_ARGUMENT;
	if (call.code == NVML_SUCCESS)
		*temp = 30 + call.gpu->utilization / 2;
	return leave(&call, temp, sizeof(*temp));
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *power)
{
	struct call call = enter(__func__, device, power);
	if (call.code == NVML_SUCCESS)
		*power = 60000 + call.gpu->utilization * 3000;
	return leave(&call, power, sizeof(*power));
}

static nvmlReturn_t pci(const char *function, nvmlDevice_t device, nvmlPciInfo_t *out)
{
	struct call call = enter_any(function, device, out);
	if (call.code == NVML_SUCCESS)
		pci_fill(&call.gpu->place, GPU_DEVICE_ID, out);
	return leave(&call, out, sizeof(*out));
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *out)
{
	return pci("nvmlDeviceGetPciInfo_v3", device, out);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *out)
{
	return pci("nvmlDeviceGetPciInfo_v2", device, out);
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *out)
{
	nvmlPciInfo_t whole; /* the first version ended before the sub-system and had the short bus id only */
	nvmlReturn_t code = pci("nvmlDeviceGetPciInfo", device, &whole);
	if (code == NVML_SUCCESS)
		memcpy(out, &whole, offsetof(nvmlPciInfo_t, pciSubSystemId));
	return code;
}

nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t device, unsigned int *node)
{
	struct call call = enter(__func__, device, node);
	if (call.code == NVML_SUCCESS)
		*node = call.gpu->place.numa;
	return leave(&call, node, sizeof(*node));
}

static uint64_t total_mib(const struct call *call)
{
	return call->instance >= 0 ? call->gpu->instances[call->instance].memory_mib : call->machine->memory_mib;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	struct call call = enter_any(__func__, device, memory);
	if (call.code == NVML_SUCCESS) {
		memory->total = total_mib(&call) * MIB;
		memory->used = call.instance >= 0 ? 0 : call.gpu->used_mib * MIB;
		memory->free = memory->total - memory->used;
	}
	return leave(&call, memory, sizeof(*memory));
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
	struct call call = enter_any(__func__, device, memory);
	if (call.code == NVML_SUCCESS && memory->version != nvmlMemory_v2)
		call.code = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (call.code == NVML_SUCCESS) {
		memory->total = total_mib(&call) * MIB;
		memory->reserved = 0;
		memory->used = call.instance >= 0 ? 0 : call.gpu->used_mib * MIB;
		memory->free = memory->total - memory->used;
	}
	return leave(&call, memory, sizeof(*memory));
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
	struct call call = enter(__func__, device, utilization);
	if (call.code == NVML_SUCCESS && call.gpu->mig_on)
		call.code = NVML_ERROR_NOT_SUPPORTED; /* as the real one: a cut GPU has no number of its own */
	if (call.code == NVML_SUCCESS) {
		utilization->gpu = call.gpu->utilization;
		utilization->memory = call.gpu->utilization / 2;
	}
	return leave(&call, utilization, sizeof(*utilization));
}

/* ---- processes --------------------------------------------------------------------------------------------------- */

/* How many there are, or that the caller's room is too small for them. */
static void processes_begin(struct call *call, unsigned int *infoCount, const void *infos)
{
	if (call->code != NVML_SUCCESS)
		return;
	unsigned room = *infoCount;
	*infoCount = call->gpu->process_count;
	if (room < *infoCount)
		call->code = NVML_ERROR_INSUFFICIENT_SIZE;
	else if (infos == NULL && *infoCount > 0)
		call->code = NVML_ERROR_INVALID_ARGUMENT;
}

static nvmlReturn_t processes(const char *function, nvmlDevice_t device, unsigned int *infoCount,
			      nvmlProcessInfo_t *infos)
{
	struct call call = enter(function, device, infoCount);
	processes_begin(&call, infoCount, infos);
	if (call.code != NVML_SUCCESS)
		return leave(&call, infoCount, 0);
	for (uint32_t i = 0; i < *infoCount; i++) {
		uint32_t instance = call.gpu->instance_count > 0 ? i % call.gpu->instance_count : NO_INSTANCE_ID;
		infos[i] = (nvmlProcessInfo_t){.pid = call.gpu->processes[i].pid,
					       .usedGpuMemory = call.gpu->processes[i].memory_mib * MIB,
					       .gpuInstanceId = instance,
					       .computeInstanceId = instance == NO_INSTANCE_ID ? instance : 0};
	}
	return leave(&call, infoCount, sizeof(*infoCount));
}

static nvmlReturn_t none(const char *function, nvmlDevice_t device, unsigned int *infoCount)
{
	struct call call = enter(function, device, infoCount);
	if (call.code == NVML_SUCCESS)
		*infoCount = 0;
	return leave(&call, infoCount, 0);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *infoCount,
						     nvmlProcessInfo_t *infos)
{
	return processes("nvmlDeviceGetComputeRunningProcesses_v3", device, infoCount, infos);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *infoCount,
						     nvmlProcessInfo_v2_t *infos)
{
	return processes("nvmlDeviceGetComputeRunningProcesses_v2", device, infoCount, infos);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *infoCount,
						  nvmlProcessInfo_v1_t *infos)
{
	struct call call = enter(__func__, device, infoCount);
	processes_begin(&call, infoCount, infos);
	for (uint32_t i = 0; call.code == NVML_SUCCESS && i < *infoCount; i++)
		infos[i] = (nvmlProcessInfo_v1_t){.pid = call.gpu->processes[i].pid,
						  .usedGpuMemory = call.gpu->processes[i].memory_mib * MIB};
	return leave(&call, infoCount, 0);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int *infoCount,
						      nvmlProcessInfo_t *infos)
{
	(void)infos;
	return none(__func__, device, infoCount);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *infoCount,
							nvmlProcessInfo_t *infos)
{
	(void)infos;
	return none(__func__, device, infoCount);
}
