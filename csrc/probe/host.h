/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.h - where GPUs and NICs sit on the host, by hwloc: NUMA nodes and PCIe distances. Owns nothing after it returns.
 * hwloc is asked without its components that would open GPU drivers themselves.
 */
#ifndef FROND_PROBE_HOST_H
#define FROND_PROBE_HOST_H

#include "probe/probe.h"

struct host {
	uint32_t gpu_count;
	struct probe_pci gpus[PROBE_GPUS_MAX]; /* that it was asked about */
	int32_t numa[PROBE_GPUS_MAX];
	uint32_t nic_count, nics_found;
	struct probe_nic nics[PROBE_NICS_MAX];
	int32_t level[PROBE_GPUS_MAX][PROBE_NICS_MAX]; /* enum probe_level; PROBE_UNKNOWN: hwloc does not see the GPU */
	int32_t hops[PROBE_GPUS_MAX][PROBE_NICS_MAX];  /* bridges on the way, where the level is a PCIe one */
};

/* xml NULL: this machine. false: hwloc cannot say, *out is as it was. */
bool host_read(const char *xml, const struct probe_pci *gpus, uint32_t gpu_count, struct host *out);

#endif
