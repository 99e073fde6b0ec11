/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args.h - TopologyGPUArgs of reference 5, decoded strictly from JSON (cJSON).
 * Owns defaults and the meaning of every field. Never guesses: an unknown field, a wrong type, a duplicate key or an
 * impossible value is one sentence that names the path: "args.scoringWeights.topologyAlignment: must be between 0 and 1, got -3".
 */
#ifndef FROND_TEXT_ARGS_H
#define FROND_TEXT_ARGS_H

#include "words.h"

enum device_exit { EXIT_ANNOTATE, EXIT_ENV, EXIT_DRA };

#define LABEL_KEY_MAX  317u /* 253 + '/' + 63, as in Kubernetes */
#define PATH_MAX_BYTES 4095u

struct tuning {                       /* what may change while the engine lives */
	uint32_t weight[SCORE_TERMS]; /* thousandths; preset, then scoringWeights over it; never all 0 */
	uint32_t max_nodes_per_leaf;  /* 0: no cap */
	uint32_t max_gpus_per_leaf;   /* 0: no cap */
};

struct args {
	struct tuning tuning;
	char domain_label[LABEL_KEY_MAX + 1]; /* NVLink domain; never "" */
	char leaf_label[LABEL_KEY_MAX + 1];   /* "" when the fabric comes from a file alone */
	char spine_label[LABEL_KEY_MAX + 1];  /* "" when there is no such level */
	char core_label[LABEL_KEY_MAX + 1];   /* likewise */
	char fabric_file[PATH_MAX_BYTES + 1];
	char core_path[PATH_MAX_BYTES + 1];
	enum strategy strategy;
	enum mode mode;
	int64_t wait_ms;              /* WAIT_FOREVER allowed; default 5 min */
	int64_t unavailable_after_ms; /* at most 1,000 h; default 1 min */
	enum device_exit device_exit;
	uint32_t permit_wait_s; /* default 60; 1 … 900, upstream's own ceiling */
	uint32_t resource_count;
	char resources[FROND_RESOURCES_MAX][LABEL_KEY_MAX + 1]; /* default nvidia.com/gpu, amd.com/gpu */
	bool locks_enabled;
	char locks_namespace[64]; /* default frond-system */
	enum recovery recovery;
	uint32_t node_lease_s;
	bool force_delete;
	uint32_t max_concurrent_moves;
	uint32_t max_moves_per_minute;
};

/* json may be empty (all defaults). The object may also carry apiVersion and kind, checked when present. */
int32_t args_read(const char *json, uint32_t len, struct args *out, struct complaint *complaint);

/* The spec of a SchedulerConfig: the fields of args that are tuning, read the same way over those in *start. */
int32_t tuning_read(const char *json, uint32_t len, const struct tuning *start, struct tuning *out,
		    struct complaint *complaint);

#endif
