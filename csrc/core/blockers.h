/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blockers.h - what stands in the way between two positions, for the sentence of a plan that has just been refused.
 */
#ifndef FROND_CORE_BLOCKERS_H
#define FROND_CORE_BLOCKERS_H

#include "core/place.h"

enum blocker { BLOCKED_CORDONED, BLOCKED_DOWN, BLOCKED_UNHEALTHY, BLOCKED_IN_USE, BLOCKED_FILTERED, BLOCKERS };

struct blockers {
	uint32_t count[BLOCKERS]; /* nodes that could hold a member and hold fewer than they could */
	uint32_t first[BLOCKERS]; /* position of the first one */
};

/* Of the plan that work made last; first and last are positions, inclusive. */
struct blockers place_blockers(const struct place_work *work, uint32_t first, uint32_t last);

#endif
