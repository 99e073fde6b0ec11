/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary.h - the last lines of `-o text`: how full the cluster is, and the largest gang of whole nodes that would still fit.
 * Asks the engine and books nothing.
 */
#ifndef FROND_SIM_SUMMARY_H
#define FROND_SIM_SUMMARY_H

#include "sim/cluster.h"
#include "sim/report.h"

/* Writes nothing in any other format. */
int32_t summary_write(struct sim *sim, struct report *report);

#endif
