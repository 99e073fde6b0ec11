/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim.h - the spec of a GpuClaim (reference 3.2), decoded strictly from JSON: what a pod asks of the GPUs inside its
 * node. Owns defaults and the meaning of every field. Never guesses and never looks a GPU, node or PodGroup up: an
 * unknown field, a wrong type, a duplicate key or an impossible value is one sentence that names the path:
 * claim.devices.policy: must be contiguous, spread or preferIds, got "fast"
 * What a later version will know (Shared, MIG and their fields) is refused by name.
 */
#ifndef FROND_TEXT_CLAIM_H
#define FROND_TEXT_CLAIM_H

#include "text/args.h" /* LABEL_KEY_MAX */

#define CLAIM_ID_MAX     (FROND_NAME_MAX + 7u) /* NODE-gpu-15 */
#define CLAIM_LABELS_MAX 16u
#define LABEL_VALUE_MAX  63u
#define CLAIM_GBPS_MAX   1000000u /* as for the links of a model in a fabric file */

struct claim_id {
	bool by_index;
	uint32_t index;            /* 0 … 15; when by_index */
	char id[CLAIM_ID_MAX + 1]; /* a UUID or NODE-gpu-INDEX; "" when by_index */
};

struct claim_label {
	char key[LABEL_KEY_MAX + 1];
	char value[LABEL_VALUE_MAX + 1];
};

struct claim {
	uint32_t count; /* GPUs of a pod; 0: not given */
	enum gpu_policy policy;
	enum mode mode; /* of policy, locality and bandwidth, not of the gang's rule */
	enum gpu_locality locality;
	uint32_t min_gbps; /* gigabyte/s inside the set; 0: none */
	uint32_t prefer_count;
	struct claim_id prefer[FROND_GPUS_MAX]; /* as written; none twice */
	char gang_ref[FROND_NAME_MAX + 1];      /* a PodGroup; "": not given */
	uint32_t label_count;
	struct claim_label labels[CLAIM_LABELS_MAX]; /* a node must carry all; as written, no key twice */
};

/* json may be empty (all defaults), as {} is. On failure *out is as before. */
int32_t claim_read(const char *json, uint32_t len, struct claim *out, struct complaint *complaint);

#endif
