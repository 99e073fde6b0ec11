/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status.h - the status of a GpuNodeStatus (reference 4), as a record and as JSON, both ways. The limits and patterns
 * are those of the CRD. Owns nothing; no clock: the time of the heartbeat comes from the caller.
 *
 * Reading is strict, because a report that contradicts itself must not be believed: unknown fields, fields twice, wrong
 * types, numbers out of range, gaps in the indices, ids twice, links that only one end has, islands that do not follow
 * from the links.
 */
#ifndef FROND_PROBE_STATUS_H
#define FROND_PROBE_STATUS_H

#include "probe/probe.h"
#include "text/words.h"

#include <cjson/cJSON.h>

#define STATUS_ID_MAX      128u
#define STATUS_MODEL_MAX   128u
#define STATUS_SLICES_MAX  16u
#define STATUS_PROFILE_MAX 32u
#define STATUS_REASON_MAX  128u
#define STATUS_RAIL_MAX    64u
#define STATUS_CLIQUE_MAX  64u
#define STATUS_PODS_MAX    64u
#define STATUS_POD_MAX     317u /* namespace/name */
#define STATUS_MIB_MAX     (16u << 20)
#define STATUS_GBPS_MAX    65535u
#define STATUS_SUM_MAX     1000000u
#define STATUS_NUMA_MAX    255u

enum status_kind { STATUS_NVLINK, STATUS_NVSWITCH, STATUS_XGMI, STATUS_PCIE, STATUS_KIND_UNSAID };

struct status_link {
	uint32_t peer; /* an index */
	enum status_kind kind;
	uint32_t gbps;
};

struct status_slice {
	char id[STATUS_ID_MAX + 1];
	char profile[STATUS_PROFILE_MAX + 1];
};

struct status_device { /* numbers: PROBE_UNKNOWN means that the field is absent */
	char id[STATUS_ID_MAX + 1];
	uint32_t index;
	char model[STATUS_MODEL_MAX + 1]; /* "": absent */
	char pci[17];                     /* "": absent */
	enum probe_health health;
	char reason[STATUS_REASON_MAX + 1]; /* "": absent */
	char rail[STATUS_RAIL_MAX + 1];     /* "": absent */
	char clique[STATUS_CLIQUE_MAX + 1]; /* "": absent */
	int64_t memory_mib, memory_used_mib;
	int32_t numa, island, gbps, utilization;
	bool mig_mode; /* cut into slices, or about to be: nobody can have all of it; false: absent */
	uint32_t link_count, slice_count, pod_count;
	struct status_link links[PROBE_GPUS_MAX - 1]; /* by peer */
	struct status_slice slices[STATUS_SLICES_MAX];
	char pods[STATUS_PODS_MAX][STATUS_POD_MAX + 1]; /* by name */
};

struct status {
	int64_t heartbeat_s; /* since 1970; PROBE_UNKNOWN: absent */
	uint32_t device_count;
	struct status_device devices[PROBE_GPUS_MAX]; /* by index */
};

/* What the API object can say of a report. A GPU whose UUID was never seen is "unknown-INDEX": the API wants an id. */
void status_from(const struct probe_report *report, int64_t heartbeat_s, struct status *out);

/* Text for a reason: cut to its room, and what is not printable ASCII becomes "?", because the API takes UTF-8 only. */
void status_reason_set(struct status_device *device, const char *text);

/* Its UUID was never seen; it was a critical XID that made it unhealthy. */
bool status_nameless(const struct status_device *device);
bool status_by_xid(const struct status_device *device);

/* The caller gives it to cJSON_Delete(). NULL: out of memory. The same status gives the same text. */
cJSON *status_json(const struct status *status);

/* FROND_OK, or FROND_BAD with a sentence that names the path; then *out is as before. */
int32_t status_read(const char *json, uint32_t len, struct status *out, struct complaint *complaint);

#endif
