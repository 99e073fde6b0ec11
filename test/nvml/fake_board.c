/* SPDX-License-Identifier: Apache-2.0 */
/* The fake driver about the board: what monitors ask for and the probe does not. Plausible numbers, the same for every GPU. */
#include "fake.h"

#include <limits.h>
#include <string.h>

#define CLOCK_IDLE_MHZ   210u
#define CLOCK_MAX_MHZ    1980u
#define POWER_LIMIT_MW   700000u
#define POWER_LEAST_MW   200000u
#define PCIE_GENERATION  5u
#define PCIE_WIDTH       16u
#define SLOWDOWN_CELSIUS 90u
#define SAMPLING_US      167000u
#define BITS_PER_WORD    (sizeof(unsigned long) * CHAR_BIT)

/* A number that does not depend on the machine. */
static nvmlReturn_t fixed(const char *function, nvmlDevice_t device, unsigned int value, unsigned int *out)
{
	struct call call = enter(function, device, out);
	if (call.code == NVML_SUCCESS)
		*out = value;
	return leave(&call, out, sizeof(*out));
}

static nvmlReturn_t absent(const char *function, nvmlDevice_t device, const void *out)
{
	struct call call = enter(function, device, out);
	if (call.code == NVML_SUCCESS)
		call.code = NVML_ERROR_NOT_SUPPORTED;
	return leave(&call, NULL, 0);
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *clock)
{
	(void)type;
	return fixed(__func__, device, CLOCK_IDLE_MHZ, clock);
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *clock)
{
	(void)type;
	return fixed(__func__, device, CLOCK_MAX_MHZ, clock);
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned int *limit)
{
	return fixed(__func__, device, POWER_LIMIT_MW, limit);
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *limit)
{
	return fixed(__func__, device, POWER_LIMIT_MW, limit);
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int *minLimit,
							  unsigned int *maxLimit)
{
	struct call call = enter(__func__, device, maxLimit == NULL ? NULL : minLimit);
	if (call.code == NVML_SUCCESS) {
		*minLimit = POWER_LEAST_MW;
		*maxLimit = POWER_LIMIT_MW;
	}
	return leave(&call, minLimit, sizeof(*minLimit));
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *energy)
{
	struct call call = enter(__func__, device, energy);
	if (call.code == NVML_SUCCESS)
		*energy = 0;
	return leave(&call, energy, sizeof(*energy));
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, nvmlTemperatureThresholds_t thresholdType,
					       unsigned int *temp)
{
	(void)thresholdType;
	return fixed(__func__, device, SLOWDOWN_CELSIUS, temp);
}

nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int *speed)
{
	return absent(__func__, device, speed); /* the fans are the chassis' */
}

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, nvmlPstates_t *pState)
{
	struct call call = enter(__func__, device, pState);
	if (call.code == NVML_SUCCESS)
		*pState = NVML_PSTATE_0;
	return leave(&call, pState, sizeof(*pState));
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device, unsigned int *maxLinkGen)
{
	return fixed(__func__, device, PCIE_GENERATION, maxLinkGen);
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned int *maxLinkWidth)
{
	return fixed(__func__, device, PCIE_WIDTH, maxLinkWidth);
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned int *currLinkGen)
{
	return fixed(__func__, device, PCIE_GENERATION, currLinkGen);
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned int *currLinkWidth)
{
	return fixed(__func__, device, PCIE_WIDTH, currLinkWidth);
}

nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, nvmlPcieUtilCounter_t counter, unsigned int *value)
{
	(void)counter;
	return fixed(__func__, device, 0, value);
}

static nvmlReturn_t codec(const char *function, nvmlDevice_t device, unsigned int *utilization, unsigned int *period)
{
	struct call call = enter(function, device, period == NULL ? NULL : utilization);
	if (call.code == NVML_SUCCESS) {
		*utilization = 0;
		*period = SAMPLING_US;
	}
	return leave(&call, utilization, sizeof(*utilization));
}

nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned int *utilization,
					     unsigned int *samplingPeriodUs)
{
	return codec(__func__, device, utilization, samplingPeriodUs);
}

nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned int *utilization,
					     unsigned int *samplingPeriodUs)
{
	return codec(__func__, device, utilization, samplingPeriodUs);
}

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *utilization,
					     unsigned int *processSamplesCount, unsigned long long lastSeenTimeStamp)
{
	(void)utilization;
	(void)lastSeenTimeStamp;
	return absent(__func__, device, processSamplesCount);
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *bar1Memory)
{
	struct call call = enter(__func__, device, bar1Memory);
	if (call.code == NVML_SUCCESS) {
		bar1Memory->bar1Total = (unsigned long long)call.machine->memory_mib << 20;
		bar1Memory->bar1Used = 0;
		bar1Memory->bar1Free = bar1Memory->bar1Total;
	}
	return leave(&call, bar1Memory, sizeof(*bar1Memory));
}

nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char *version, unsigned int length)
{
	struct call call = enter(__func__, device, version);
	return leave_text(&call, "96.00.00.00.01", version, length);
}

nvmlReturn_t nvmlDeviceGetBoardPartNumber(nvmlDevice_t device, char *partNumber, unsigned int length)
{
	struct call call = enter(__func__, device, partNumber);
	return leave_text(&call, "000-00000-0000-000", partNumber, length);
}

static nvmlReturn_t disabled(const char *function, nvmlDevice_t device, nvmlEnableState_t *state)
{
	struct call call = enter(function, device, state);
	if (call.code == NVML_SUCCESS)
		*state = NVML_FEATURE_DISABLED;
	return leave(&call, state, sizeof(*state));
}

nvmlReturn_t nvmlDeviceGetDisplayMode(nvmlDevice_t device, nvmlEnableState_t *display)
{
	return disabled(__func__, device, display);
}

nvmlReturn_t nvmlDeviceGetDisplayActive(nvmlDevice_t device, nvmlEnableState_t *isActive)
{
	return disabled(__func__, device, isActive);
}

nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_t device, nvmlGpuVirtualizationMode_t *pVirtualMode)
{
	struct call call = enter(__func__, device, pVirtualMode);
	if (call.code == NVML_SUCCESS)
		*pVirtualMode = NVML_GPU_VIRTUALIZATION_MODE_NONE;
	return leave(&call, pVirtualMode, sizeof(*pVirtualMode));
}

/* In our machines a NUMA node has one processor with its number. */
static nvmlReturn_t near(const char *function, nvmlDevice_t device, unsigned int words, unsigned long *set)
{
	struct call call = enter(function, device, words == 0 ? NULL : set);
	if (call.code == NVML_SUCCESS) {
		memset(set, 0, words * sizeof(*set));
		set[0] = 1ul << call.gpu->place.numa % BITS_PER_WORD;
	}
	return leave(&call, set, words * sizeof(*set));
}

nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int cpuSetSize, unsigned long *cpuSet)
{
	return near(__func__, device, cpuSetSize, cpuSet);
}

nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int nodeSetSize, unsigned long *nodeSet,
					 nvmlAffinityScope_t scope)
{
	(void)scope;
	return near(__func__, device, nodeSetSize, nodeSet);
}
