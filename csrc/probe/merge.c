/* SPDX-License-Identifier: Apache-2.0 */
/* Part of reading.h: one picture out of what single calls said. Needs neither library. */
#include "probe/reading.h"

#include <string.h>

#define FABRIC_COMPLETE 3

/* ---- links matrix ------------------------------------------------------------------------------------------------ */

struct lane { /* what a GPU says about its links to one peer */
	bool known;
	int32_t direct, switched; /* GB/s */
};

/* A link that might lead to the peer and whose state, end or speed is not known makes the sum unknown. */
static struct lane lane_to(const struct probe_gpu *gpu, int32_t peer)
{
	struct lane lane = {.known = gpu->link_count >= 0 && gpu->links_found <= PROBE_LINKS_MAX};
	for (int32_t i = 0; i < gpu->link_count; i++) {
		const struct probe_link *link = &gpu->links[i];
		if (link->up == 0 || link->remote == PROBE_REMOTE_OTHER ||
		    (link->remote == PROBE_REMOTE_GPU && link->peer >= 0 && link->peer != peer))
			continue;
		if (link->up < 0 || link->gbps < 0 || link->remote == PROBE_REMOTE_UNKNOWN ||
		    (link->remote == PROBE_REMOTE_GPU && link->peer < 0))
			lane.known = false;
		else if (link->remote == PROBE_REMOTE_SWITCH)
			lane.switched += link->gbps;
		else
			lane.direct += link->gbps;
	}
	return lane;
}

/* 1: switches join the two, 0: they do not, PROBE_UNKNOWN: their fabric is still being set up. GPUs without a fabric
 * state (before Hopper) are joined by the switches that they share. */
static int32_t same_fabric(const struct probe_gpu *a, const struct probe_gpu *b)
{
	if (a->fabric == PROBE_ABSENT && b->fabric == PROBE_ABSENT)
		return 1;
	if (a->fabric != FABRIC_COMPLETE || b->fabric != FABRIC_COMPLETE || !a->cluster_known || !b->cluster_known)
		return PROBE_UNKNOWN;
	return a->clique == b->clique && memcmp(a->cluster, b->cluster, sizeof(a->cluster)) == 0;
}

static int32_t least(int32_t a, int32_t b)
{
	return a < b ? a : b;
}

/* What both ends say; where they differ, a link has just gone down or come up, and the smaller is safe. */
static void pair_merge(const struct probe_gpu *a, const struct probe_gpu *b, struct probe_pair *out)
{
	struct lane there = lane_to(a, (int32_t)b->index), back = lane_to(b, (int32_t)a->index);
	out->gbps = PROBE_UNKNOWN;
	if (!there.known || !back.known)
		return;
	int32_t direct = least(there.direct, back.direct), switched = least(there.switched, back.switched);
	if (switched > 0) {
		int32_t same = same_fabric(a, b);
		if (same == PROBE_UNKNOWN)
			return;
		switched = same == 1 ? switched : 0;
	}
	out->gbps = direct + switched;
	out->through = switched > 0 ? PROBE_REMOTE_SWITCH : direct > 0 ? PROBE_REMOTE_GPU : PROBE_REMOTE_UNKNOWN;
}

void merge_links(struct probe_report *report)
{
	for (uint32_t a = 0; a < report->gpu_count; a++) {
		report->pairs[a][a].gbps = 0;
		for (uint32_t b = a + 1; b < report->gpu_count; b++) {
			pair_merge(&report->gpus[a], &report->gpus[b], &report->pairs[a][b]);
			report->pairs[b][a].gbps = report->pairs[a][b].gbps;
			report->pairs[b][a].through = report->pairs[a][b].through;
		}
	}
}

/* ---- islands ----------------------------------------------------------------------------------------------------- */

/* Numbers spread along known links until none changes: at most as many rounds as there are GPUs. */
void merge_islands(struct probe_report *report)
{
	uint32_t count = report->gpu_count;
	int32_t lowest[PROBE_GPUS_MAX];
	for (uint32_t i = 0; i < count; i++)
		lowest[i] = (int32_t)i;
	for (uint32_t round = 0; round < count; round++)
		for (uint32_t a = 0; a < count; a++)
			for (uint32_t b = 0; b < count; b++)
				if (report->pairs[a][b].gbps > 0)
					lowest[a] = least(lowest[a], lowest[b]);
	int32_t next = 0;
	for (uint32_t i = 0; i < count; i++)
		report->gpus[i].island = lowest[i] == (int32_t)i ? next++ : report->gpus[lowest[i]].island;
}

/* ---- NUMA and rails ---------------------------------------------------------------------------------------------- */

/* The nearest NIC, by level and then bridges on the way; among equals the one that fewest GPUs have, then the first. */
static int32_t nearest(const struct host *host, uint32_t gpu, const uint32_t *taken)
{
	int32_t best = PROBE_UNKNOWN;
	for (uint32_t nic = 0; nic < host->nic_count; nic++) {
		const int32_t *level = host->level[gpu], *hops = host->hops[gpu];
		if (level[nic] < 0)
			continue;
		if (best < 0 || level[nic] < level[best] ||
		    (level[nic] == level[best] &&
		     (hops[nic] < hops[best] || (hops[nic] == hops[best] && taken[nic] < taken[best]))))
			best = (int32_t)nic;
	}
	return best;
}

void merge_host(struct probe_report *report, const struct host *host)
{
	uint32_t taken[PROBE_NICS_MAX] = {0};
	report->host_known = true;
	report->nic_count = host->nic_count;
	report->nics_found = host->nics_found;
	memcpy(report->nics, host->nics, sizeof(report->nics));
	for (uint32_t i = 0; i < report->gpu_count; i++) {
		struct probe_gpu *gpu = &report->gpus[i];
		gpu->numa = host->numa[i];
		gpu->rail = nearest(host, i, taken);
		if (gpu->rail < 0)
			continue;
		gpu->rail_level = host->level[i][gpu->rail];
		taken[gpu->rail]++;
	}
}
