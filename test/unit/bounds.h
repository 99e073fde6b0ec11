/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bounds.h - for the suites, which think of every node's room by slot: the list of exceptions that the ABI wants.
 */
#ifndef FROND_TEST_BOUNDS_H
#define FROND_TEST_BOUNDS_H

#include "frond.h"

#include <stddef.h>

struct bound { /* members that a node takes, whatever its GPUs say */
	uint16_t today, ever, unavailable;
};

/* Exceptions for slots 0 … nodes - 1, where the bound can bind at all; bounds NULL: none. Returns how many. */
static inline uint32_t exceptions_of(const struct bound *bounds, uint32_t nodes, struct frond_room *out)
{
	uint32_t count = 0;
	for (uint32_t slot = 0; bounds != NULL && slot < nodes; slot++)
		if (bounds[slot].today < FROND_GPUS_MAX || bounds[slot].ever < FROND_GPUS_MAX)
			out[count++] = (struct frond_room){.slot = slot,
							   .today = bounds[slot].today,
							   .ever = bounds[slot].ever,
							   .unavailable = bounds[slot].unavailable};
	return count;
}

#endif
