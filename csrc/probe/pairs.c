/* SPDX-License-Identifier: Apache-2.0 */
/* Part of reading.h: what the driver says of two GPUs at once. */
#include "probe/reading.h"

static int32_t p2p_read(struct reading *reading, uint32_t a, uint32_t b, nvmlGpuP2PCapsIndex_t what)
{
	nvmlGpuP2PStatus_t status = NVML_P2P_STATUS_UNKNOWN;
	int32_t code = ASK(reading, (int32_t)a, nvmlDeviceGetP2PStatus, reading->devices[a], reading->devices[b], what,
			   &status);
	if (code != NVML_SUCCESS)
		return without(code);
	if (status == NVML_P2P_STATUS_UNKNOWN)
		return PROBE_UNKNOWN;
	if ((uint32_t)status < NVML_P2P_STATUS_UNKNOWN)
		return status == NVML_P2P_STATUS_OK;
	odd(reading, (int32_t)a, CALL_nvmlDeviceGetP2PStatus);
	return PROBE_UNKNOWN;
}

static int32_t level_read(struct reading *reading, uint32_t a, uint32_t b)
{
	nvmlGpuTopologyLevel_t level = NVML_TOPOLOGY_INTERNAL;
	int32_t code = ASK(reading, (int32_t)a, nvmlDeviceGetTopologyCommonAncestor, reading->devices[a],
			   reading->devices[b], &level);
	if (code != NVML_SUCCESS)
		return without(code);
	if ((uint32_t)level <= NVML_TOPOLOGY_SYSTEM && (uint32_t)level % 10 == 0)
		return (int32_t)level;
	odd(reading, (int32_t)a, CALL_nvmlDeviceGetTopologyCommonAncestor);
	return PROBE_UNKNOWN;
}

/* The code of a pair does not say which of the two is lost, so a pair is asked about only while both answer. */
static bool both_there(const struct reading *reading, uint32_t a, uint32_t b)
{
	return reading->opened[a] && reading->opened[b] && !reading->gone[a] && !reading->gone[b];
}

/* While the links between two GPUs are as they were, so is what the driver says of the two. */
static bool recalls(const struct reading *reading, uint32_t a, uint32_t b)
{
	const struct probe_report *now = reading->report, *before = reading->before;
	return before != NULL && same_gpu(reading, a) && same_gpu(reading, b) && before->pairs[a][b].level >= 0 &&
	       now->pairs[a][b].gbps == before->pairs[a][b].gbps && now->pairs[a][b].gbps >= 0;
}

void pairs_read(struct reading *reading)
{
	struct probe_report *report = reading->report;
	for (uint32_t a = 0; a < report->gpu_count; a++) {
		for (uint32_t b = a + 1; b < report->gpu_count; b++) {
			struct probe_pair *pair = &report->pairs[a][b];
			if (!both_there(reading, a, b))
				continue;
			if (recalls(reading, a, b)) {
				const struct probe_pair *before = &reading->before->pairs[a][b];
				pair->level = before->level;
				pair->p2p_read = before->p2p_read;
				pair->p2p_write = before->p2p_write;
				pair->p2p_nvlink = before->p2p_nvlink;
			} else {
				pair->level = level_read(reading, a, b);
				pair->p2p_read = p2p_read(reading, a, b, NVML_P2P_CAPS_INDEX_READ);
				pair->p2p_write = p2p_read(reading, a, b, NVML_P2P_CAPS_INDEX_WRITE);
				pair->p2p_nvlink = p2p_read(reading, a, b, NVML_P2P_CAPS_INDEX_NVLINK);
			}
			report->pairs[b][a] = *pair;
		}
	}
}
