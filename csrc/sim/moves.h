/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moves.h - `frond-sim recover` and `frond-sim defrag`: the jobs are planned first, then something fails, or one more job
 * wants room (reference 11).
 */
#ifndef FROND_SIM_MOVES_H
#define FROND_SIM_MOVES_H

#include "sim/cluster.h"
#include "sim/report.h"

struct failure {           /* of a node */
	bool down;         /* the whole of it */
	uint32_t gpu_mask; /* else these; 0: nothing fails there */
};

/* "node-3,node-9/gpu-2,leaf-1,spine-2" as one entry a node of the fabric, malloc'd. A leaf or a spine is all of its nodes. A
 * name that belongs to two of node, leaf and spine is refused. */
int32_t failures_read(const char *text, const struct fabricfile *fabric, struct failure **out,
		      struct complaint *complaint);

int32_t recover_run(const struct planning *planning, const struct failure *failures, struct report *report,
		    struct complaint *complaint);

/* job: entry of the jobs file that is not planned with the others. */
int32_t defrag_run(const struct planning *planning, uint32_t job, struct report *report, struct complaint *complaint);

#endif
