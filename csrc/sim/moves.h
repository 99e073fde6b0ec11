/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moves.h - `frond-sim recover` and `frond-sim defrag`: the jobs are planned first, then something fails, or one more job
 * wants room (spec 11).
 */
#ifndef FROND_SIM_MOVES_H
#define FROND_SIM_MOVES_H

#include "sim/cluster.h"
#include "sim/report.h"

struct failure {
	uint32_t slot;
	bool down;         /* the whole node */
	uint32_t gpu_mask; /* else these */
};

struct failures {
	struct failure *list; /* malloc'd, one per node of the fabric that fails */
	uint32_t count;
};

/* "node-3,node-9/gpu-2" */
int32_t failures_read(const char *text, const struct fabricfile *fabric, struct failures *out,
		      struct complaint *complaint);

int32_t recover_run(const struct planning *planning, const struct failures *failures, struct report *report,
		    struct complaint *complaint);

/* job: entry of the jobs file that is not planned with the others. */
int32_t defrag_run(const struct planning *planning, uint32_t job, struct report *report, struct complaint *complaint);

#endif
