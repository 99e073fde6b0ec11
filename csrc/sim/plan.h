/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - the verb `plan`: jobs go through the engine's table one after the other, as the scheduler's would, and the
 * engine checks itself after each. Owns the engine while it runs.
 */
#ifndef FROND_SIM_PLAN_H
#define FROND_SIM_PLAN_H

#include "sim/jobs.h"
#include "sim/report.h"

struct planning {
	const struct fabricfile *fabric;
	const char *fabric_text; /* what create() takes: the file, or the one-line form */
	uint32_t fabric_len;
	const struct jobs *jobs;
	struct report *report;
};

/* Anything but FROND_OK is the program's fault, or memory that ran out; the complaint says which. */
int32_t plan_run(const struct planning *planning, struct complaint *complaint);

#endif
