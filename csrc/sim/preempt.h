/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preempt.h - `frond-sim preempt`: all jobs but one are planned, then that one may have places of lower priority
 * (reference 7, 11).
 */
#ifndef FROND_SIM_PREEMPT_H
#define FROND_SIM_PREEMPT_H

#include "sim/cluster.h"
#include "sim/report.h"

/* job: entry of the jobs file that is not planned with the others. */
int32_t preempt_run(const struct planning *planning, uint32_t job, struct report *report, struct complaint *complaint);

#endif
