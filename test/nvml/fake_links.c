/* SPDX-License-Identifier: Apache-2.0 */
/* The fake driver about what joins GPUs: NVLink, the fabric, pairs. */
#include "fake.h"

#include <string.h>

#define SWITCH_DEVICE_ID 0x22a310deu
#define SWITCH_BUS       0xf0u /* of the first switch; no GPU or NIC of ours sits there */

static const struct machine_link *link_of(struct call *call, unsigned int link)
{
	if (call->code != NVML_SUCCESS)
		return NULL;
	if (link >= NVML_NVLINK_MAX_LINKS)
		call->code = NVML_ERROR_INVALID_ARGUMENT;
	else if (link >= call->gpu->link_count)
		call->code = NVML_ERROR_NOT_SUPPORTED;
	return call->code == NVML_SUCCESS ? &call->gpu->links[link] : NULL;
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, nvmlEnableState_t *isActive)
{
	struct call call = enter(__func__, device, isActive);
	const struct machine_link *found = link_of(&call, link);
	if (found != NULL)
		*isActive = found->up ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
	return leave(&call, isActive, sizeof(*isActive));
}

nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned int link, unsigned int *version)
{
	struct call call = enter(__func__, device, version);
	if (link_of(&call, link) != NULL)
		*version = call.machine->link_version;
	return leave(&call, version, sizeof(*version));
}

nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned int link, nvmlNvLinkCapability_t capability,
					   unsigned int *capResult)
{
	struct call call = enter(__func__, device, capResult);
	if (call.code == NVML_SUCCESS && (unsigned)capability >= NVML_NVLINK_CAP_COUNT)
		call.code = NVML_ERROR_INVALID_ARGUMENT;
	if (link_of(&call, link) != NULL)
		*capResult = capability == NVML_NVLINK_CAP_P2P_SUPPORTED || capability == NVML_NVLINK_CAP_VALID ||
			     capability == NVML_NVLINK_CAP_P2P_ATOMICS;
	return leave(&call, capResult, sizeof(*capResult));
}

static nvmlReturn_t remote(const char *function, nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci)
{
	struct call call = enter(function, device, pci);
	const struct machine_link *found = link_of(&call, link);
	if (found != NULL && !found->up)
		call.code = NVML_ERROR_NOT_SUPPORTED;
	else if (found != NULL && found->peer != MACHINE_ON_SWITCH)
		pci_fill(&call.machine->gpus[found->peer].place, 0, pci);
	else if (found != NULL)
		pci_fill(&(struct machine_place){.bus = SWITCH_BUS, .device = found->nvswitch % 32}, SWITCH_DEVICE_ID,
			 pci);
	return leave(&call, pci, sizeof(*pci));
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci)
{
	return remote("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, link, pci);
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci)
{
	nvmlPciInfo_t whole; /* the first version ended before the sub-system */
	nvmlReturn_t code = remote("nvmlDeviceGetNvLinkRemotePciInfo", device, link, &whole);
	if (code == NVML_SUCCESS)
		memcpy(pci, &whole, offsetof(nvmlPciInfo_t, pciSubSystemId));
	return code;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link,
						 nvmlIntNvLinkDeviceType_t *pNvLinkDeviceType)
{
	struct call call = enter(__func__, device, pNvLinkDeviceType);
	const struct machine_link *found = link_of(&call, link);
	if (found != NULL)
		*pNvLinkDeviceType = !found->up                         ? NVML_NVLINK_DEVICE_TYPE_UNKNOWN
				     : found->peer == MACHINE_ON_SWITCH ? NVML_NVLINK_DEVICE_TYPE_SWITCH
									: NVML_NVLINK_DEVICE_TYPE_GPU;
	return leave(&call, pNvLinkDeviceType, sizeof(*pNvLinkDeviceType));
}

/* ---- field values ------------------------------------------------------------------------------------------------ */

static nvmlReturn_t speed(const struct machine_gpu *gpu, uint32_t link, unsigned int *mbps)
{
	if (link >= gpu->link_count)
		return NVML_ERROR_NOT_SUPPORTED;
	*mbps = gpu->links[link].up ? gpu->links[link].mbps : 0;
	return NVML_SUCCESS;
}

static void field(const struct call *call, nvmlFieldValue_t *value)
{
	const struct machine_gpu *gpu = call->gpu;
	uint32_t id = value->fieldId;
	value->timestamp = 0;
	value->latencyUsec = 0;
	value->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
	value->nvmlReturn = NVML_SUCCESS;
	value->value.ullVal = 0;
	if (id == NVML_FI_DEV_NVLINK_LINK_COUNT)
		value->value.uiVal = gpu->link_count;
	else if (id == NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON || id == NVML_FI_DEV_NVLINK_SPEED_MBPS_L0)
		value->nvmlReturn = speed(gpu, 0, &value->value.uiVal);
	else if (id > NVML_FI_DEV_NVLINK_SPEED_MBPS_L0 && id <= NVML_FI_DEV_NVLINK_SPEED_MBPS_L5)
		value->nvmlReturn = speed(gpu, id - NVML_FI_DEV_NVLINK_SPEED_MBPS_L0, &value->value.uiVal);
	else if (id >= NVML_FI_DEV_NVLINK_SPEED_MBPS_L6 && id <= NVML_FI_DEV_NVLINK_SPEED_MBPS_L11)
		value->nvmlReturn = speed(gpu, id - NVML_FI_DEV_NVLINK_SPEED_MBPS_L6 + 6, &value->value.uiVal);
	else if (id == NVML_FI_DEV_NVLINK_GET_SPEED && call->machine->major >= 9)
		value->nvmlReturn = speed(gpu, value->scopeId, &value->value.uiVal);
	else
		value->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int valuesCount, nvmlFieldValue_t *values)
{
	struct call call = enter(__func__, device, values);
	for (int i = 0; call.code == NVML_SUCCESS && i < valuesCount; i++)
		field(&call, &values[i]);
	return leave(&call, values, valuesCount > 0 ? sizeof(*values) * (size_t)valuesCount : 0);
}

/* ---- fabric and pairs -------------------------------------------------------------------------------------------- */

nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t *info)
{
	struct call call = enter(__func__, device, info);
	if (call.code == NVML_SUCCESS && !call.machine->fabric)
		call.code = NVML_ERROR_NOT_SUPPORTED;
	if (call.code == NVML_SUCCESS) {
		memcpy(info->clusterUuid, call.machine->cluster, sizeof(info->clusterUuid));
		info->status = (nvmlReturn_t)call.machine->fabric_status;
		info->cliqueId = call.machine->clique + call.gpu->clique_elsewhere;
		info->state = (nvmlGpuFabricState_t)call.machine->fabric_state;
	}
	return leave(&call, info, sizeof(*info));
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfoV_t *info)
{
	struct call call = enter(__func__, device, info);
	bool third = call.code == NVML_SUCCESS && info->version == nvmlGpuFabricInfo_v3;
	if (call.code == NVML_SUCCESS && !third && info->version != nvmlGpuFabricInfo_v2)
		call.code = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (call.code == NVML_SUCCESS && !call.machine->fabric)
		call.code = NVML_ERROR_NOT_SUPPORTED;
	if (call.code == NVML_SUCCESS) {
		memcpy(info->clusterUuid, call.machine->cluster, sizeof(info->clusterUuid));
		info->status = (nvmlReturn_t)call.machine->fabric_status;
		info->cliqueId = call.machine->clique + call.gpu->clique_elsewhere;
		info->state = (nvmlGpuFabricState_t)call.machine->fabric_state;
		info->healthMask = 0;
		if (third)
			info->healthSummary = NVML_GPU_FABRIC_HEALTH_SUMMARY_HEALTHY;
	}
	return leave(&call, info, third ? sizeof(*info) : offsetof(nvmlGpuFabricInfoV_t, healthSummary));
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device1, nvmlDevice_t device2,
						 nvmlGpuTopologyLevel_t *pathInfo)
{
	struct call call = enter(__func__, device1, pathInfo);
	uint32_t peer = 0;
	if (call.code == NVML_SUCCESS)
		call.code = second_gpu(&call, device2, &peer);
	if (call.code == NVML_SUCCESS)
		*pathInfo = peer == call.index ? NVML_TOPOLOGY_INTERNAL
					       : (nvmlGpuTopologyLevel_t)machine_level(&call.gpu->place,
										       &call.machine->gpus[peer].place);
	return leave(&call, pathInfo, sizeof(*pathInfo));
}

nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, nvmlGpuTopologyLevel_t level, unsigned int *count,
					      nvmlDevice_t *deviceArray)
{
	struct call call = enter(__func__, device, count);
	unsigned found = 0, room = call.code == NVML_SUCCESS && deviceArray != NULL ? *count : 0;
	for (uint32_t peer = 0; call.code == NVML_SUCCESS && peer < call.machine->gpu_count; peer++) {
		if (peer == call.index ||
		    machine_level(&call.gpu->place, &call.machine->gpus[peer].place) > (unsigned)level)
			continue;
		if (found < room)
			deviceArray[found] = handle_of(peer, -1);
		found++;
	}
	if (call.code == NVML_SUCCESS)
		*count = found;
	return leave(&call, count, 0);
}

static bool joined(const struct call *call, uint32_t peer)
{
	bool here = false, there = false;
	for (uint32_t i = 0; i < call->gpu->link_count; i++) {
		const struct machine_link *link = &call->gpu->links[i];
		if (link->up && link->peer == (int32_t)peer)
			return true;
		here = here || (link->up && link->peer == MACHINE_ON_SWITCH);
	}
	for (uint32_t i = 0; i < call->machine->gpus[peer].link_count; i++) {
		const struct machine_link *link = &call->machine->gpus[peer].links[i];
		there = there || (link->up && link->peer == MACHINE_ON_SWITCH);
	}
	return here && there;
}

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device1, nvmlDevice_t device2, nvmlGpuP2PCapsIndex_t p2pIndex,
				    nvmlGpuP2PStatus_t *p2pStatus)
{
	struct call call = enter(__func__, device1, p2pStatus);
	uint32_t peer = 0;
	if (call.code == NVML_SUCCESS)
		call.code = second_gpu(&call, device2, &peer);
	if (call.code == NVML_SUCCESS && ((unsigned)p2pIndex >= NVML_P2P_CAPS_INDEX_UNKNOWN || peer == call.index))
		call.code = NVML_ERROR_INVALID_ARGUMENT;
	if (call.code == NVML_SUCCESS) {
		bool direct = joined(&call, peer);
		bool near = machine_level(&call.gpu->place, &call.machine->gpus[peer].place) < 50;
		bool fine = p2pIndex == NVML_P2P_CAPS_INDEX_NVLINK ? direct
			    : p2pIndex == NVML_P2P_CAPS_INDEX_PCI  ? near
								   : direct || near;
		*p2pStatus = fine ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED;
	}
	return leave(&call, p2pStatus, sizeof(*p2pStatus));
}
