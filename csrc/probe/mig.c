/* SPDX-License-Identifier: Apache-2.0 */
/* Part of reading.h: the slices that a GPU is cut into. */
#include "probe/reading.h"

#include <stdio.h>
#include <string.h>

#define GIB_MIB         1024u
#define EIGHTHS         8u /* memory is handed out in eighths of a GPU */
#define SLICES_SANE_MAX 64u

/* The driver names a slice "MODEL MIG 1g.5gb"; drivers that do not, say its parts. */
static bool profile_from_name(const char *name, char *out, uint32_t room)
{
	const char *mark = strstr(name, " MIG ");
	if (mark == NULL)
		return false;
	const char *profile = mark + strlen(" MIG ");
	size_t len = strlen(profile);
	if (len == 0 || len >= room || strspn(profile, "0123456789abcdefghijklmnopqrstuvwxyz.+") != len)
		return false;
	memcpy(out, profile, len + 1);
	return true;
}

/* "1g.5gb": GPU slices, and memory as the share of the GPU's that was meant, in whole GB. "1c.2g.10gb" when a compute
 * instance has only some of the slices of its GPU instance. */
static bool profile_from_parts(const nvmlDeviceAttributes_t *parts, int64_t total_mib, char *out, uint32_t room)
{
	unsigned slices = parts->gpuInstanceSliceCount, compute = parts->computeInstanceSliceCount;
	if (total_mib <= 0 || slices == 0 || slices > EIGHTHS || compute == 0 || compute > slices ||
	    parts->memorySizeMB == 0 || parts->memorySizeMB > (uint64_t)total_mib)
		return false;
	uint64_t total = (uint64_t)total_mib, eighths = (parts->memorySizeMB * EIGHTHS + total - 1) / total;
	unsigned gb = (unsigned)((eighths * ((total + GIB_MIB - 1) / GIB_MIB) + EIGHTHS / 2) / EIGHTHS);
	if (compute < slices)
		snprintf(out, room, "%uc.%ug.%ugb", compute, slices, gb);
	else
		snprintf(out, room, "%ug.%ugb", slices, gb);
	return true;
}

static bool slice_read(struct reading *reading, uint32_t index, nvmlDevice_t device, struct probe_slice *out)
{
	int32_t at = (int32_t)index;
	char uuid[sizeof(out->uuid)] = "", name[96] = "";
	if (ASK(reading, at, nvmlDeviceGetUUID, device, uuid, sizeof(uuid)) != NVML_SUCCESS)
		return false;
	const struct probe_gpu *gpu = &reading->report->gpus[index];
	bool good = text_settle(uuid, sizeof(uuid));
	for (const struct probe_slice *other = gpu->slices; good && other < out; other++)
		good = strcmp(other->uuid, uuid) != 0;
	if (!good) {
		odd(reading, at, CALL_nvmlDeviceGetUUID);
		return false;
	}
	memcpy(out->uuid, uuid, sizeof(uuid));
	if (ASK(reading, at, nvmlDeviceGetName, device, name, sizeof(name)) == NVML_SUCCESS &&
	    text_settle(name, sizeof(name)) && profile_from_name(name, out->profile, sizeof(out->profile)))
		return true;
	nvmlDeviceAttributes_t parts;
	memset(&parts, 0, sizeof(parts));
	if (ASK(reading, at, nvmlDeviceGetAttributes_v2, device, &parts) != NVML_SUCCESS)
		return false;
	if (profile_from_parts(&parts, gpu->memory_mib, out->profile, sizeof(out->profile)))
		return true;
	odd(reading, at, CALL_nvmlDeviceGetAttributes_v2);
	return false;
}

/* One slice that cannot be read makes the list unknown: half a list would look like free slices. */
void slices_read(struct reading *reading, uint32_t index)
{
	struct probe_gpu *gpu = &reading->report->gpus[index];
	int32_t at = (int32_t)index;
	unsigned mode = 0, pending = 0, places = 0;
	if (!reading->opened[index])
		return;
	nvmlDevice_t device = reading->devices[index];
	int32_t code = ASK(reading, at, nvmlDeviceGetMigMode, device, &mode, &pending);
	if (code != NVML_SUCCESS || mode > NVML_DEVICE_MIG_ENABLE) {
		gpu->mig = gpu->slice_count = code == NVML_SUCCESS ? PROBE_UNKNOWN : without(code);
		if (code == NVML_SUCCESS)
			odd(reading, at, CALL_nvmlDeviceGetMigMode);
		return;
	}
	gpu->mig = (int32_t)mode;
	if (mode == NVML_DEVICE_MIG_DISABLE) {
		gpu->slice_count = 0;
		return;
	}
	if (ASK(reading, at, nvmlDeviceGetMaxMigDeviceCount, device, &places) != NVML_SUCCESS)
		return;
	if (places > SLICES_SANE_MAX) {
		odd(reading, at, CALL_nvmlDeviceGetMaxMigDeviceCount);
		return;
	}
	int32_t count = 0;
	gpu->slices_found = 0;
	for (uint32_t i = 0; i < places; i++) {
		nvmlDevice_t slice;
		memset(&slice, 0, sizeof(slice));
		if (!asks(reading, at, reading->driver->nvmlDeviceGetMigDeviceHandleByIndex != NULL))
			return;
		code = (int32_t)reading->driver->nvmlDeviceGetMigDeviceHandleByIndex(device, i, &slice);
		if (code == NVML_ERROR_NOT_FOUND)
			continue; /* a place that nobody has taken */
		if (answered(reading, at, CALL_nvmlDeviceGetMigDeviceHandleByIndex, code) != NVML_SUCCESS)
			return;
		gpu->slices_found++;
		if (gpu->slices_found <= PROBE_SLICES_MAX && !slice_read(reading, index, slice, &gpu->slices[count++]))
			return;
	}
	gpu->slice_count = count;
}
