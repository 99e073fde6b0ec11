/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.h - `frond-sim bench`: how long the engine takes on a large generated cluster, in time and as a ratio to a scan
 * of memory in the same process. The work of each case sits in bench_measured(), so that callgrind can count it alone
 * (--toggle-collect=bench_measured).
 */
#ifndef FROND_SIM_BENCH_H
#define FROND_SIM_BENCH_H

#include "sim/options.h"

#include <stdio.h>

/* Runs one case (NULL: all) on so many nodes and prints a line each. Returns FROND_OK, or FROND_BAD for an unknown case. */
int32_t bench_run(const char *name, uint32_t nodes, uint32_t repeat, FILE *out, struct complaint *complaint);

#endif
