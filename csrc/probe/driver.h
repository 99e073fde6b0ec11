/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.h - the functions of NVML that we call, found by name in a library opened at run time. Owns the handle of the
 * library. A function that an older library does not have stays NULL; which version to prefer is the caller's affair.
 */
#ifndef FROND_PROBE_DRIVER_H
#define FROND_PROBE_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

/* Each name means that very version; without this the header would rename the old ones. */
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>

/* clang-format off */
#define DRIVER_CALLS(X) \
	X(nvmlInit_v2) X(nvmlShutdown) X(nvmlSystemGetDriverVersion) \
	X(nvmlDeviceGetCount_v2) X(nvmlDeviceGetHandleByIndex_v2) \
	X(nvmlDeviceGetUUID) X(nvmlDeviceGetName) X(nvmlDeviceGetPciInfo_v3) X(nvmlDeviceGetPciInfo_v2) \
	X(nvmlDeviceGetMemoryInfo_v2) X(nvmlDeviceGetMemoryInfo) X(nvmlDeviceGetUtilizationRates) \
	X(nvmlDeviceGetComputeRunningProcesses_v3) X(nvmlDeviceGetComputeRunningProcesses_v2) \
	X(nvmlDeviceGetComputeRunningProcesses) \
	X(nvmlDeviceGetFieldValues) X(nvmlDeviceGetNvLinkState) X(nvmlDeviceGetNvLinkVersion) \
	X(nvmlDeviceGetNvLinkRemoteDeviceType) X(nvmlDeviceGetNvLinkRemotePciInfo_v2) \
	X(nvmlDeviceGetGpuFabricInfoV) X(nvmlDeviceGetP2PStatus) X(nvmlDeviceGetTopologyCommonAncestor) \
	X(nvmlDeviceGetMigMode) X(nvmlDeviceGetMaxMigDeviceCount) X(nvmlDeviceGetMigDeviceHandleByIndex) \
	X(nvmlDeviceGetAttributes_v2) \
	X(nvmlDeviceGetTotalEccErrors) X(nvmlDeviceGetRetiredPagesPendingStatus) X(nvmlDeviceGetRemappedRows) \
	X(nvmlEventSetCreate) X(nvmlEventSetFree) X(nvmlDeviceRegisterEvents) X(nvmlEventSetWait_v2) X(nvmlEventSetWait)
/* clang-format on */

enum driver_call {
#define X(name) CALL_##name,
	DRIVER_CALLS(X)
#undef X
		DRIVER_CALL_COUNT, /* at most 64: probe_gpu.unsupported has a bit for each */
};

struct driver {
	void *library;
#define X(name) __typeof__(name) *name;
	DRIVER_CALLS(X)
#undef X
};

/* false: cannot be loaded, and why is in reason. */
bool driver_open(const char *path, struct driver *out, char *reason, uint32_t room);
void driver_close(struct driver *driver);

#endif
