/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - the invariants, recomputed the slow way from the entries alone, and the canonical dump of the state.
 * Every test calls check after every step.
 */
#ifndef FROND_CORE_CHECK_H
#define FROND_CORE_CHECK_H

#include "core/core.h"
#include "core/out.h"

/* FROND_BROKEN with one sentence in out, or FROND_OK. */
int32_t core_check(const struct core *core, struct out *out);

/* The same state gives the same bytes, whatever the history: nodes by slot, entries by key, holds by gang and rank. */
void core_dump(struct core *core, struct out *out);

#endif
