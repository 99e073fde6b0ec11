/* SPDX-License-Identifier: Apache-2.0 */
/* The fake driver about GPUs cut into slices. */
#include "fake.h"

#include <string.h>

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *currentMode, unsigned int *pendingMode)
{
	struct call call = enter(__func__, device, pendingMode == NULL ? NULL : currentMode);
	if (call.code == NVML_SUCCESS && !call.machine->has_mig)
		call.code = NVML_ERROR_NOT_SUPPORTED;
	if (call.code == NVML_SUCCESS)
		*currentMode = *pendingMode = call.gpu->mig_odd > 0 ? call.gpu->mig_odd : call.gpu->mig_on;
	return leave(&call, currentMode, sizeof(*currentMode));
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *isMigDevice)
{
	struct call call = enter_any(__func__, device, isMigDevice);
	if (call.code == NVML_SUCCESS)
		*isMigDevice = call.instance >= 0;
	return leave(&call, isMigDevice, sizeof(*isMigDevice));
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count)
{
	struct call call = enter(__func__, device, count);
	if (call.code == NVML_SUCCESS)
		*count = call.gpu->instance_count > 7 ? call.gpu->instance_count : call.machine->has_mig ? 7 : 0;
	return leave(&call, count, sizeof(*count));
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *migDevice)
{
	struct call call = enter(__func__, device, migDevice);
	if (call.code == NVML_SUCCESS && !call.gpu->mig_on)
		call.code = NVML_ERROR_NOT_SUPPORTED;
	if (call.code == NVML_SUCCESS && index >= call.gpu->instance_count)
		call.code = NVML_ERROR_NOT_FOUND;
	if (call.code == NVML_SUCCESS)
		*migDevice = handle_of(call.index, (int32_t)index);
	return leave(&call, migDevice, 0);
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t migDevice, nvmlDevice_t *device)
{
	struct call call = enter_any(__func__, migDevice, device);
	if (call.code == NVML_SUCCESS && call.instance < 0)
		call.code = NVML_ERROR_INVALID_ARGUMENT;
	if (call.code == NVML_SUCCESS)
		*device = handle_of(call.index, -1);
	return leave(&call, device, 0);
}

/* In our machines a slice has one number for both. */
static nvmlReturn_t instance_id(const char *function, nvmlDevice_t device, unsigned int *id)
{
	struct call call = enter_any(function, device, id);
	if (call.code == NVML_SUCCESS && call.instance < 0)
		call.code = NVML_ERROR_NOT_SUPPORTED;
	if (call.code == NVML_SUCCESS)
		*id = (unsigned)call.instance;
	return leave(&call, id, sizeof(*id));
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int *id)
{
	return instance_id("nvmlDeviceGetGpuInstanceId", device, id);
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned int *id)
{
	return instance_id("nvmlDeviceGetComputeInstanceId", device, id);
}

static nvmlReturn_t attributes(const char *function, nvmlDevice_t device, nvmlDeviceAttributes_t *out)
{
	struct call call = enter_any(function, device, out);
	if (call.code == NVML_SUCCESS && call.instance < 0)
		call.code = NVML_ERROR_NOT_SUPPORTED;
	if (call.code == NVML_SUCCESS) {
		const struct machine_instance *instance = &call.gpu->instances[call.instance];
		memset(out, 0, sizeof(*out));
		out->multiprocessorCount = 14 * instance->compute_slices;
		out->gpuInstanceSliceCount = instance->slices;
		out->computeInstanceSliceCount = instance->compute_slices;
		out->memorySizeMB = instance->memory_mib;
	}
	return leave(&call, out, sizeof(*out));
}

nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *out)
{
	return attributes("nvmlDeviceGetAttributes_v2", device, out);
}

nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t device, nvmlDeviceAttributes_t *out)
{
	return attributes("nvmlDeviceGetAttributes", device, out);
}
