/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe_rig.h - a probe on a fake machine, the machine changed while it runs, and the comparison of what the probe says
 * with what the description says. Included once per suite; run from the root of the tree.
 */
#ifndef FROND_TEST_PROBE_RIG_H
#define FROND_TEST_PROBE_RIG_H

#include "../nvml/machine.h"
#include "probe/probe.h"
#include "probe/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unity.h>

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

#define FAKE      "build/nvml/libnvidia-ml.so.1"
#define FAKE_OLD  "build/nvml/old/libnvidia-ml.so.1"
#define HEARTBEAT 1790000000

static struct machine machine; /* what the fake plays now */
static struct probe_report report;
static struct probe *probe;
static char description[64], proc_folder[64], wrong_text[256];

/* The machine NAME with more lines. Another inode each time, so that the driver sees the change within one clock tick; while
 * there is no file it plays on. (Renaming over a file would make some file systems write to disk at once.) */
static inline void machine_set(const char *name, const char *lines)
{
	char next[80];
	snprintf(description, sizeof(description), "build/nvml/test.%d.machine", (int)getpid());
	snprintf(next, sizeof(next), "%s.next", description);
	FILE *file = fopen(next, "w");
	TEST_ASSERT_NOT_NULL(file);
	fprintf(file, "include ../../test/nvml/machines/%s.machine\n%s\n", name, lines);
	fclose(file);
	TEST_ASSERT_EQUAL_MESSAGE(0, machine_read(next, &machine), lines);
	unlink(description);
	TEST_ASSERT_EQUAL(0, rename(next, description));
	setenv("FROND_FAKE_NVML", description, 1);
}

static inline struct probe *machine_open(const char *library, const char *name)
{
	/* hwloc without plugins reads XML by itself. With them it would load and unload libxml2 for each topology, which is
	 * slow and loses what libxml2 keeps for each thread. */
	setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 1);
	char xml[80];
	snprintf(xml, sizeof(xml), "build/nvml/%s.xml", name);
	struct probe *opened = probe_open(&(struct probe_options){
		.nvml = library, .hwloc_xml = xml, .proc = proc_folder[0] != '\0' ? proc_folder : NULL});
	TEST_ASSERT_NOT_NULL(opened);
	return opened;
}

static inline void rig_start(const char *name, const char *lines)
{
	machine_set(name, lines);
	probe = machine_open(FAKE, name);
}

static inline void rig_stop(void)
{
	probe_close(probe);
	probe = NULL;
	if (description[0] != '\0')
		unlink(description);
}

/* ---- comparison -------------------------------------------------------------------------------------------------- */

#define BIT_OF(name) (1ull << call_number(name))

static inline uint32_t call_number(const char *name)
{
	for (uint32_t i = 0; probe_call_name(i) != NULL; i++)
		if (strcmp(probe_call_name(i), name) == 0)
			return i;
	TEST_FAIL_MESSAGE(name);
	return 0;
}

/* all: everything must be known. Otherwise what is not known is fine, what is known must be so. */
static inline bool number_is(const char *what, uint32_t at, int64_t got, int64_t want, bool all)
{
	if (got == want || (!all && (got == PROBE_UNKNOWN || got == PROBE_ABSENT)))
		return true;
	snprintf(wrong_text, sizeof(wrong_text), "%s %u: %" PRId64 ", should be %" PRId64, what, at, got, want);
	return false;
}

static inline bool text_is(const char *what, uint32_t at, const char *got, const char *want, bool all)
{
	if (strcmp(got, want) == 0 || (!all && got[0] == '\0'))
		return true;
	snprintf(wrong_text, sizeof(wrong_text), "%s %u: %.60s, should be %.60s", what, at, got, want);
	return false;
}

static inline bool pci_is(const char *what, uint32_t at, const struct probe_pci *got, const struct machine_place *want,
			  bool all)
{
	if (!got->known)
		return number_is(what, at, PROBE_UNKNOWN, 0, all);
	return number_is(what, at, got->domain, want->domain, true) && number_is(what, at, got->bus, want->bus, true) &&
	       number_is(what, at, got->device, want->device, true);
}

static inline uint32_t link_should(const struct machine *m, const struct machine_link *link)
{
	if (!link->up)
		return 0;
	uint32_t sold = m->link_version == 7 ? 50 : 25;
	return link->mbps >= sold * 900 ? sold : link->mbps / 1000 >= 5 ? link->mbps / 5000 * 5 : link->mbps / 1000;
}

static inline uint32_t pair_should(const struct machine *m, uint32_t a, uint32_t b)
{
	uint32_t direct = 0, out = 0, back = 0;
	for (uint32_t i = 0; i < m->gpus[a].link_count; i++) {
		direct += m->gpus[a].links[i].peer == (int32_t)b ? link_should(m, &m->gpus[a].links[i]) : 0;
		out += m->gpus[a].links[i].peer == MACHINE_ON_SWITCH ? link_should(m, &m->gpus[a].links[i]) : 0;
	}
	for (uint32_t i = 0; i < m->gpus[b].link_count; i++)
		back += m->gpus[b].links[i].peer == MACHINE_ON_SWITCH ? link_should(m, &m->gpus[b].links[i]) : 0;
	return direct + (out < back ? out : back);
}

static inline bool links_are(const struct machine *m, const struct probe_gpu *gpu, bool all)
{
	const struct machine_gpu *should = &m->gpus[gpu->index];
	uint32_t sum = 0;
	/* A driver that denies having a count is believed about where the links end. */
	if (!all && (gpu->unsupported & BIT_OF("nvmlDeviceGetFieldValues")) != 0)
		return true;
	if (!number_is("links of", gpu->index, gpu->link_count, should->link_count, all))
		return false;
	for (int32_t i = 0; i < gpu->link_count; i++) {
		const struct probe_link *link = &gpu->links[i];
		const struct machine_link *want = &should->links[i];
		uint32_t at = gpu->index * 100 + (uint32_t)i;
		sum += link_should(m, want);
		if (!number_is("link up", at, link->up, want->up, all) ||
		    !number_is("link GB/s", at, link->gbps, link_should(m, want), all))
			return false;
		if (!want->up)
			continue;
		if (!number_is("link version", at, link->version, m->link_version, all) ||
		    !number_is("link speed", at, link->line_mbps, want->mbps, all) ||
		    !number_is("link peer", at, link->peer, want->peer, all) ||
		    !number_is("link to", at,
			       link->remote == PROBE_REMOTE_UNKNOWN ? PROBE_UNKNOWN : (int64_t)link->remote,
			       want->peer == MACHINE_ON_SWITCH ? PROBE_REMOTE_SWITCH : PROBE_REMOTE_GPU, all))
			return false;
	}
	return number_is("sum of links", gpu->index, gpu->link_gbps, sum, all);
}

static inline bool slices_are(const struct machine *m, const struct probe_gpu *gpu, bool all)
{
	const struct machine_gpu *should = &m->gpus[gpu->index];
	if (!number_is("mig", gpu->index, gpu->mig, m->has_mig ? (int64_t)should->mig_on : PROBE_ABSENT, all))
		return false;
	if (all && !number_is("slices", gpu->index, gpu->slice_count,
			      m->has_mig ? (int64_t)should->instance_count : PROBE_ABSENT, true))
		return false;
	/* "Not found" is how a place says that it is empty, so some slices may be missing, but none may be invented. */
	for (int32_t i = 0; i < gpu->slice_count; i++) {
		bool real = false;
		for (uint32_t k = 0; k < should->instance_count; k++) {
			char uuid[48];
			machine_mig_uuid(m, gpu->index, k, uuid);
			real = real || (strcmp(uuid, gpu->slices[i].uuid) == 0 &&
					strcmp(should->instances[k].profile, gpu->slices[i].profile) == 0);
		}
		if (!real)
			return text_is("slice", (uint32_t)i, gpu->slices[i].profile, "(one of the machine)", true);
	}
	return true;
}

static inline bool use_is(const struct machine *m, const struct probe_gpu *gpu, bool all)
{
	const struct machine_gpu *should = &m->gpus[gpu->index];
	uint32_t kept = should->process_count < PROBE_PROCESSES_MAX ? should->process_count : PROBE_PROCESSES_MAX;
	if (!number_is("memory", gpu->index, gpu->memory_mib, m->memory_mib, all) ||
	    !number_is("used", gpu->index, gpu->memory_used_mib, (int64_t)should->used_mib, all) ||
	    !number_is("utilization", gpu->index, gpu->utilization,
		       should->mig_on ? PROBE_ABSENT : (int64_t)should->utilization, all) ||
	    !number_is("processes", gpu->index, gpu->process_count, kept, all))
		return false;
	for (int32_t i = 0; i < gpu->process_count; i++)
		if (!number_is("pid", (uint32_t)i, gpu->processes[i].pid, should->processes[i].pid, true) ||
		    !number_is("memory of process", (uint32_t)i, gpu->processes[i].memory_mib,
			       (int64_t)should->processes[i].memory_mib, true))
			return false;
	return true;
}

static inline bool is_programs(uint32_t xid)
{
	return xid == 13 || xid == 31 || xid == 43 || xid == 45 || xid == 68 || xid == 109;
}

/* The first that is the GPU's own, or else the last. */
static inline uint32_t xid_that_counts(const struct machine_gpu *gpu)
{
	uint32_t xid = 0;
	for (uint32_t i = 0; i < gpu->xid_count && (xid == 0 || is_programs(xid)); i++)
		xid = gpu->xids[i];
	return xid;
}

static inline bool was_told(const struct probe_report *r, uint32_t gpu, int32_t code)
{
	for (uint32_t i = 0; i < r->failure_count; i++)
		if (r->failures[i].gpu == (int32_t)gpu && r->failures[i].code == code)
			return true;
	return r->failures_found > r->failure_count;
}

static inline bool health_is(const struct machine *m, const struct probe_report *r, const struct probe_gpu *gpu,
			     bool all)
{
	const struct machine_gpu *should = &m->gpus[gpu->index];
	uint32_t xid = xid_that_counts(should);
	bool ill = should->lost || should->remap_failed || should->ecc_errors > 0 || (xid > 0 && !is_programs(xid));
	if (all && !should->lost &&
	    (!number_is("ECC errors", gpu->index, gpu->ecc_errors, (int64_t)should->ecc_errors, true) ||
	     !number_is("rows failed", gpu->index, gpu->rows_failed, m->has_remap ? should->remap_failed : PROBE_ABSENT,
			true) ||
	     !number_is("rows pending", gpu->index, gpu->rows_pending,
			m->has_remap ? should->remap_pending : PROBE_ABSENT, true) ||
	     !number_is("pages pending", gpu->index, gpu->pages_pending,
			m->has_remap ? PROBE_ABSENT : should->pages_pending, true) ||
	     !number_is("XID", gpu->index, gpu->xid, xid, true)))
		return false;
	if (gpu->health == PROBE_HEALTH_UNKNOWN && !all)
		return gpu->reason[0] != '\0' || text_is("reason", gpu->index, "", "(some)", true);
	if (!all && gpu->health == PROBE_UNHEALTHY && (was_told(r, gpu->index, 15) || was_told(r, gpu->index, 16)))
		return true;
	if (!all && gpu->health == PROBE_HEALTHY &&
	    (gpu->unsupported & (BIT_OF("nvmlDeviceGetTotalEccErrors") | BIT_OF("nvmlDeviceRegisterEvents") |
				 BIT_OF("nvmlDeviceGetRemappedRows"))) != 0)
		return true; /* the driver denies having what would speak against it */
	return number_is("health", gpu->index, gpu->health, ill ? PROBE_UNHEALTHY : PROBE_HEALTHY, true) &&
	       number_is("has a reason", gpu->index, gpu->reason[0] != '\0', ill, true);
}

static inline bool fabric_is(const struct machine *m, const struct probe_gpu *gpu, bool all)
{
	int64_t nothing = PROBE_ABSENT;
	if (!number_is("fabric", gpu->index, gpu->fabric, m->fabric ? m->fabric_state : nothing, all) ||
	    !number_is("clique", gpu->index, gpu->clique, m->fabric ? m->clique : nothing, all))
		return false;
	return !gpu->cluster_known || number_is("cluster", gpu->index, memcmp(gpu->cluster, m->cluster, 16), 0, true);
}

/* The nearest NICs of a GPU; the first of them that fewest have, in PCI order. */
static inline bool rails_are(const struct machine *m, const struct probe_report *r, bool all)
{
	uint32_t taken[MACHINE_NICS_MAX] = {0};
	for (uint32_t g = 0; g < r->gpu_count; g++) {
		const struct probe_gpu *gpu = &r->gpus[g];
		uint32_t best = UINT32_MAX, nearest = UINT32_MAX;
		for (uint32_t i = 0; i < m->nic_count; i++) {
			uint32_t level = machine_level(&m->gpus[g].place, &m->nics[i].place);
			if (level < nearest || (level == nearest && taken[i] < taken[best]))
				best = i, nearest = level;
		}
		bool lost = m->gpus[g].lost;
		if (!number_is("numa", g, gpu->numa, m->gpus[g].place.numa, all && !lost))
			return false;
		if (m->nic_count == 0)
			continue;
		taken[best]++;
		if (!number_is("rail level", g, gpu->rail_level, nearest, all && !lost))
			return false;
		if (all && !lost && !text_is("rail", g, r->nics[gpu->rail].name, m->nics[best].name, true))
			return false;
	}
	return true;
}

static inline bool pairs_are(const struct machine *m, const struct probe_report *r, bool all)
{
	for (uint32_t a = 0; a < r->gpu_count; a++) {
		for (uint32_t b = 0; b < r->gpu_count; b++) {
			const struct probe_pair *pair = &r->pairs[a][b];
			bool lost = m->gpus[a].lost || m->gpus[b].lost;
			uint32_t at = a * 100 + b, should = pair_should(m, a, b);
			if (a == b)
				continue;
			uint64_t denied = r->gpus[a].unsupported | r->gpus[b].unsupported;
			if (all || (denied & BIT_OF("nvmlDeviceGetFieldValues")) == 0)
				if (!number_is("pair GB/s", at, pair->gbps, should, all && !lost))
					return false;
			bool near = machine_level(&m->gpus[a].place, &m->gpus[b].place) < 50;
			if (!number_is("level", at, pair->level, machine_level(&m->gpus[a].place, &m->gpus[b].place),
				       all && !lost) ||
			    !number_is("P2P NVLink", at, pair->p2p_nvlink, should > 0, all && !lost) ||
			    !number_is("P2P read", at, pair->p2p_read, should > 0 || near, all && !lost) ||
			    !number_is("P2P write", at, pair->p2p_write, should > 0 || near, all && !lost))
				return false;
		}
	}
	return true;
}

/* What the probe says about a machine; wrong_text has the first thing that is not so. */
static inline bool report_is(const struct machine *m, const struct probe_report *r, bool all)
{
	for (uint32_t i = 0; i < r->gpu_count; i++) {
		const struct probe_gpu *gpu = &r->gpus[i];
		bool full = all && !m->gpus[i].lost;
		char uuid[48];
		machine_uuid(m, i, uuid);
		if (!number_is("index", i, gpu->index, i, true) || !text_is("uuid", i, gpu->uuid, uuid, full) ||
		    !text_is("model", i, gpu->model, m->model, full) ||
		    !pci_is("PCI", i, &gpu->pci, &m->gpus[i].place, full) || !links_are(m, gpu, full) ||
		    !slices_are(m, gpu, full) || !use_is(m, gpu, full) || !health_is(m, r, gpu, all) ||
		    !fabric_is(m, gpu, full))
			return false;
	}
	return pairs_are(m, r, all) && rails_are(m, r, all);
}

/* Whatever the driver said: the report keeps its own rules, and the API object made of it passes the strict reader. */
static inline bool report_holds_together(const struct probe_report *r)
{
	static struct status status, again;
	static struct complaint complaint;
	for (uint32_t a = 0; a < r->gpu_count; a++) {
		const struct probe_gpu *gpu = &r->gpus[a];
		if (memchr(gpu->uuid, 0, sizeof(gpu->uuid)) == NULL ||
		    memchr(gpu->model, 0, sizeof(gpu->model)) == NULL || gpu->link_count > (int32_t)PROBE_LINKS_MAX ||
		    gpu->slice_count > (int32_t)PROBE_SLICES_MAX || gpu->process_count > (int32_t)PROBE_PROCESSES_MAX ||
		    gpu->utilization > 100)
			return text_is("limits of", a, gpu->uuid, "(in order)", true);
		for (uint32_t b = 0; b < r->gpu_count; b++)
			if (!number_is("symmetry", a * 100 + b, r->pairs[a][b].gbps, r->pairs[b][a].gbps, true))
				return false;
	}
	status_from(r, HEARTBEAT, &status);
	cJSON *object = status_json(&status);
	char *text = object == NULL ? NULL : cJSON_PrintUnformatted(object);
	cJSON_Delete(object);
	memset(&again, 0, sizeof(again));
	bool good = text != NULL && status_read(text, (uint32_t)strlen(text), &again, &complaint) == FROND_OK;
	free(text);
	if (!good)
		return text_is("status", 0, complaint.text, "(accepted)", true);
	return number_is("status read back", 0, memcmp(&status, &again, sizeof(status)), 0, true);
}

#endif
