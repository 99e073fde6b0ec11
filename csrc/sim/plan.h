/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - `frond-sim plan`: every job in order, each seeing what the earlier ones took (reference 11).
 */
#ifndef FROND_SIM_PLAN_H
#define FROND_SIM_PLAN_H

#include "sim/cluster.h"
#include "sim/report.h"

/* Writes the answers to the report. A complaint means that the engine is wrong, not the input. */
int32_t plan_run(const struct planning *planning, struct report *report, struct complaint *complaint);

#endif
