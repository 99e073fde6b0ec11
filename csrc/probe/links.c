/* SPDX-License-Identifier: Apache-2.0 */
/* Part of reading.h: the NVLinks of a GPU, how fast they are and where they lead. */
#include "probe/reading.h"

#include <string.h>

#define MBPS_PER_GBPS 1000u
#define MBPS_SANE_MAX 1000000u
#define GBPS_STEP     5u  /* what is sold is a multiple; the line carries a little more */
#define FIELD_LINKS   12u /* links whose speed has a field of its own */
#define FIELDS_MAX    (PROBE_LINKS_MAX + FIELD_LINKS + 1u)

static void link_read(struct reading *reading, uint32_t index, uint32_t at);
static void link_where(struct reading *reading, uint32_t index, uint32_t at);

/* ---- how many ---------------------------------------------------------------------------------------------------- */

static void field_ask(nvmlFieldValue_t *field, uint32_t id, uint32_t scope)
{
	memset(field, 0, sizeof(*field));
	field->fieldId = id;
	field->scopeId = scope;
	field->nvmlReturn = NVML_ERROR_UNKNOWN;
}

/* Drivers differ in the width that they give a number. */
static bool field_value(const nvmlFieldValue_t *field, uint64_t max, uint32_t *out)
{
	uint64_t value;
	if (field->valueType == NVML_VALUE_TYPE_UNSIGNED_INT)
		value = field->value.uiVal;
	else if (field->valueType == NVML_VALUE_TYPE_UNSIGNED_LONG ||
		 field->valueType == NVML_VALUE_TYPE_UNSIGNED_LONG_LONG)
		value = field->value.ullVal;
	else
		return false;
	*out = (uint32_t)value;
	return value <= max;
}

/* PROBE_ABSENT: the driver has no number for it. */
static int32_t count_read(struct reading *reading, uint32_t index)
{
	nvmlFieldValue_t field;
	field_ask(&field, NVML_FI_DEV_NVLINK_LINK_COUNT, 0);
	int32_t code = ASK(reading, (int32_t)index, nvmlDeviceGetFieldValues, reading->devices[index], 1, &field);
	if (code == NVML_SUCCESS)
		code = answered(reading, (int32_t)index, CALL_nvmlDeviceGetFieldValues, (int32_t)field.nvmlReturn);
	uint32_t count = 0;
	if (code != NVML_SUCCESS)
		return without(code);
	if (field_value(&field, NVML_NVLINK_MAX_LINKS, &count))
		return (int32_t)count;
	odd(reading, (int32_t)index, CALL_nvmlDeviceGetFieldValues);
	return PROBE_UNKNOWN;
}

/* ---- how fast ---------------------------------------------------------------------------------------------------- */

/* Newer drivers have one field with the link as its scope, older ones a field for each of twelve links. The one that a
 * driver does not have says so in its own code, which is no failure. */
static void speeds_read(struct reading *reading, uint32_t index, uint32_t count)
{
	nvmlFieldValue_t fields[FIELDS_MAX];
	uint32_t asked = 0;
	for (uint32_t i = 0; i < count; i++)
		field_ask(&fields[asked++], NVML_FI_DEV_NVLINK_GET_SPEED, i);
	for (uint32_t i = 0; i < count && i < FIELD_LINKS; i++)
		field_ask(&fields[asked++],
			  i < 6 ? NVML_FI_DEV_NVLINK_SPEED_MBPS_L0 + i : NVML_FI_DEV_NVLINK_SPEED_MBPS_L6 + i - 6, i);
	if (ASK(reading, (int32_t)index, nvmlDeviceGetFieldValues, reading->devices[index], (int)asked, fields) !=
	    NVML_SUCCESS)
		return;
	for (uint32_t i = 0; i < asked; i++) {
		uint32_t mbps = 0, link = i < count ? i : i - count;
		struct probe_link *out = &reading->report->gpus[index].links[link];
		if (fields[i].nvmlReturn != NVML_SUCCESS || out->line_mbps > 0)
			continue;
		if (!field_value(&fields[i], MBPS_SANE_MAX, &mbps))
			odd(reading, (int32_t)index, CALL_nvmlDeviceGetFieldValues);
		else if (mbps > 0)
			out->line_mbps = (int32_t)mbps;
	}
}

/* GB/s that a link of this version is sold with, in one direction; 0: not known here. */
static uint32_t nominal_gbps(int32_t version)
{
	static const uint8_t gbps[] = {
		[NVML_NVLINK_VERSION_1_0] = 20, [NVML_NVLINK_VERSION_2_0] = 25, [NVML_NVLINK_VERSION_2_2] = 25,
		[NVML_NVLINK_VERSION_3_0] = 25, [NVML_NVLINK_VERSION_3_1] = 25, [NVML_NVLINK_VERSION_4_0] = 25,
		[NVML_NVLINK_VERSION_5_0] = 50,
	};
	return version > 0 && version < (int32_t)sizeof(gbps) ? gbps[version] : 0;
}

/* The version says what a link is sold with, the line speed (25.8 for 25, 53.1 for 50) whether that is what it runs at.
 * Where they are far apart the line is believed. */
static int32_t link_gbps(const struct probe_link *link)
{
	uint32_t nominal = nominal_gbps(link->version);
	if (link->line_mbps <= 0)
		return nominal > 0 ? (int32_t)nominal : PROBE_UNKNOWN;
	uint32_t line = (uint32_t)link->line_mbps, sold = nominal * MBPS_PER_GBPS;
	if (nominal > 0 && line >= sold / 10 * 9 && line <= sold / 10 * 12)
		return (int32_t)nominal;
	uint32_t gbps = line / MBPS_PER_GBPS;
	return (int32_t)(gbps > GBPS_STEP ? gbps / GBPS_STEP * GBPS_STEP : gbps);
}

/* ---- where to ---------------------------------------------------------------------------------------------------- */

static void remote_pci_read(struct reading *reading, uint32_t index, uint32_t at)
{
	struct probe_link *link = &reading->report->gpus[index].links[at];
	nvmlPciInfo_t info;
	memset(&info, 0, sizeof(info));
	if (ASK(reading, (int32_t)index, nvmlDeviceGetNvLinkRemotePciInfo_v2, reading->devices[index], at, &info) !=
	    NVML_SUCCESS)
		return;
	if (!pci_from(&info, &link->remote_pci)) {
		odd(reading, (int32_t)index, CALL_nvmlDeviceGetNvLinkRemotePciInfo_v2);
		return;
	}
	for (uint32_t i = 0; i < reading->report->gpu_count; i++)
		if (i != index && pci_same(&reading->report->gpus[i].pci, &link->remote_pci))
			link->peer = (int32_t)i;
}

/* An old library cannot say what is at the other end. If it is one of our GPUs we see that ourselves. */
static void link_where(struct reading *reading, uint32_t index, uint32_t at)
{
	struct probe_link *link = &reading->report->gpus[index].links[at];
	nvmlIntNvLinkDeviceType_t type = NVML_NVLINK_DEVICE_TYPE_UNKNOWN;
	int32_t code =
		ASK(reading, (int32_t)index, nvmlDeviceGetNvLinkRemoteDeviceType, reading->devices[index], at, &type);
	if (code == NVML_SUCCESS && type == NVML_NVLINK_DEVICE_TYPE_SWITCH) {
		link->remote = PROBE_REMOTE_SWITCH;
		return;
	}
	if (code == NVML_SUCCESS && type == NVML_NVLINK_DEVICE_TYPE_IBMNPU) {
		link->remote = PROBE_REMOTE_OTHER;
		return;
	}
	if (code == NVML_SUCCESS && type != NVML_NVLINK_DEVICE_TYPE_GPU && type != NVML_NVLINK_DEVICE_TYPE_UNKNOWN)
		odd(reading, (int32_t)index, CALL_nvmlDeviceGetNvLinkRemoteDeviceType);
	remote_pci_read(reading, index, at);
	if (link->peer >= 0 || (code == NVML_SUCCESS && type == NVML_NVLINK_DEVICE_TYPE_GPU))
		link->remote = PROBE_REMOTE_GPU;
}

/* ---- a link, all links ------------------------------------------------------------------------------------------- */

/* A link that was up and is up leads where it led. */
static bool link_recall(const struct reading *reading, uint32_t index, uint32_t at, struct probe_link *link)
{
	if (reading->before == NULL)
		return false;
	const struct probe_gpu *before = &reading->before->gpus[index];
	const struct probe_link *known = &before->links[at];
	if (!same_gpu(reading, index) || before->link_count <= (int32_t)at || known->up != 1 ||
	    known->remote == PROBE_REMOTE_UNKNOWN || known->version < 0)
		return false;
	if (known->remote == PROBE_REMOTE_GPU && (known->peer < 0 || !same_gpu(reading, (uint32_t)known->peer)))
		return false;
	link->version = known->version;
	link->remote = known->remote;
	link->peer = known->peer;
	link->remote_pci = known->remote_pci;
	return true;
}

static void link_read(struct reading *reading, uint32_t index, uint32_t at)
{
	struct probe_link *link = &reading->report->gpus[index].links[at];
	unsigned version = 0;
	if (link->up == 0)
		link->gbps = 0;
	if (link->up != 1)
		return;
	if (!link_recall(reading, index, at, link)) {
		int32_t code =
			ASK(reading, (int32_t)index, nvmlDeviceGetNvLinkVersion, reading->devices[index], at, &version);
		if (code == NVML_SUCCESS && version > 0 && version <= INT8_MAX)
			link->version = (int32_t)version;
		else if (code == NVML_SUCCESS)
			odd(reading, (int32_t)index, CALL_nvmlDeviceGetNvLinkVersion);
		link_where(reading, index, at);
	}
	link->gbps = link_gbps(link);
}

/* 1, 0, PROBE_UNKNOWN, or PROBE_ABSENT: the driver says that there is no such link. */
static int32_t state_read(struct reading *reading, uint32_t index, uint32_t at)
{
	nvmlEnableState_t state = NVML_FEATURE_DISABLED;
	int32_t code = asks(reading, (int32_t)index, reading->driver->nvmlDeviceGetNvLinkState != NULL)
			       ? (int32_t)reading->driver->nvmlDeviceGetNvLinkState(reading->devices[index], at, &state)
			       : unasked(reading, CALL_nvmlDeviceGetNvLinkState,
					 reading->driver->nvmlDeviceGetNvLinkState != NULL);
	/* This is how drivers say where the links end; it is a failure only for a link that must be there. */
	if (code == NVML_ERROR_INVALID_ARGUMENT || code == PROBE_CODE_MISSING)
		return PROBE_ABSENT;
	if (answered(reading, (int32_t)index, CALL_nvmlDeviceGetNvLinkState, code) != NVML_SUCCESS)
		return without(code);
	if (state == NVML_FEATURE_DISABLED || state == NVML_FEATURE_ENABLED)
		return state == NVML_FEATURE_ENABLED;
	odd(reading, (int32_t)index, CALL_nvmlDeviceGetNvLinkState);
	return PROBE_UNKNOWN;
}

static int32_t sum_gbps(const struct probe_gpu *gpu)
{
	int32_t sum = 0;
	for (int32_t i = 0; i < gpu->link_count; i++) {
		if (gpu->links[i].gbps < 0)
			return PROBE_UNKNOWN;
		sum += gpu->links[i].gbps;
	}
	return gpu->link_count < 0 || gpu->links_found > (uint32_t)gpu->link_count ? PROBE_UNKNOWN : sum;
}

void links_read(struct reading *reading, uint32_t index)
{
	struct probe_gpu *gpu = &reading->report->gpus[index];
	for (uint32_t i = 0; i < PROBE_LINKS_MAX; i++)
		gpu->links[i] = (struct probe_link){.up = PROBE_UNKNOWN,
						    .version = PROBE_UNKNOWN,
						    .line_mbps = PROBE_UNKNOWN,
						    .gbps = PROBE_UNKNOWN,
						    .peer = PROBE_UNKNOWN};
	if (!reading->opened[index])
		return;

	/* 1. How many, by the driver's own count; else as many as answer, without a gap. */
	int32_t count = count_read(reading, index);
	if (count == PROBE_UNKNOWN)
		return;
	int32_t most = count >= 0 ? count : (int32_t)PROBE_LINKS_MAX, answering = 0;
	int32_t states[PROBE_LINKS_MAX];
	for (int32_t i = 0; i < most; i++) {
		states[i] = state_read(reading, index, (uint32_t)i);
		if (states[i] != PROBE_ABSENT)
			answering = i + 1;
		else if (i == 0 && count == PROBE_ABSENT)
			break; /* neither a number nor a first link: a GPU without NVLink */
	}
	gpu->link_count = count >= 0 ? count : answering;
	gpu->links_found = (uint32_t)gpu->link_count;

	/* 2. Each of them. One that the count promises and the driver denies is not known. */
	for (int32_t i = 0; i < gpu->link_count; i++)
		gpu->links[i].up = states[i] == PROBE_ABSENT ? PROBE_UNKNOWN : states[i];
	if (gpu->link_count > 0)
		speeds_read(reading, index, (uint32_t)gpu->link_count);
	for (int32_t i = 0; i < gpu->link_count; i++)
		link_read(reading, index, (uint32_t)i);
	gpu->link_gbps = sum_gbps(gpu);
}

/* ---- fabric ------------------------------------------------------------------------------------------------------ */

void fabric_read(struct reading *reading, uint32_t index)
{
	struct probe_gpu *gpu = &reading->report->gpus[index];
	if (!reading->opened[index])
		return;
	nvmlGpuFabricInfoV_t info;
	memset(&info, 0, sizeof(info));
	info.version = nvmlGpuFabricInfo_v2; /* the third version adds a summary that older drivers do not know */
	int32_t code = ASK(reading, (int32_t)index, nvmlDeviceGetGpuFabricInfoV, reading->devices[index], &info);
	if (code != NVML_SUCCESS || info.state == NVML_GPU_FABRIC_STATE_NOT_SUPPORTED) {
		int32_t nothing = code == NVML_SUCCESS ? PROBE_ABSENT : without(code);
		gpu->fabric = gpu->fabric_status = nothing;
		gpu->clique = nothing;
		return;
	}
	if (info.state > NVML_GPU_FABRIC_STATE_COMPLETED || (uint32_t)info.status > NVML_ERROR_UNKNOWN) {
		odd(reading, (int32_t)index, CALL_nvmlDeviceGetGpuFabricInfoV);
		return;
	}
	gpu->fabric = (int32_t)info.state;
	gpu->fabric_status = (int32_t)info.status;
	if (info.state != NVML_GPU_FABRIC_STATE_COMPLETED || info.status != NVML_SUCCESS)
		return;
	gpu->clique = info.cliqueId;
	gpu->cluster_known = true;
	memcpy(gpu->cluster, info.clusterUuid, sizeof(gpu->cluster));
}
