/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reserve.h - `frond-sim reserve`: all jobs but one run; where and when that one will find room (reference 7, 11).
 */
#ifndef FROND_SIM_RESERVE_H
#define FROND_SIM_RESERVE_H

#include "sim/cluster.h"
#include "sim/report.h"

/* job: entry of the jobs file that is not planned with the others. */
int32_t reserve_run(const struct planning *planning, uint32_t job, struct report *report, struct complaint *complaint);

#endif
