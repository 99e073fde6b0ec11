/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.h - where a gang goes: the rules of spec 3.3 and the order of 3.4, on today's free GPUs.
 * Pure: reads nodes, fabric and ledger, writes only its scratch and the caller's output. Never books anything.
 *
 * Exact for members of equal size in steps 1-3 (hard rules, preferred domain, strategy); ties go to the least new
 * fragmentation (6) and then to the lowest position (7). Steps 4 and 5 (GPU links, weighted score) and the comparison
 * of up to 4,096 candidates are not in this version. Mixed sizes: first-fit decreasing by size, then rank.
 */
#ifndef FROND_CORE_PLACE_H
#define FROND_CORE_PLACE_H

#include "core/ask.h"
#include "core/fabric.h"
#include "core/ledger.h"

struct place_work; /* scratch; sized by limits, laid out once */

struct place_work *place_layout(struct arena *arena, const struct fabric *fabric, const struct ledger *ledger,
				uint32_t nodes);

/* Fills answer always, and places[count] when the outcome is FROND_PLACED. */
void place_gang(struct place_work *work, const struct ask *ask, struct answer *answer, struct frond_place *places);

/* For one pod: the rank of every feasible node in the order in which place_gang would take it; UINT16_MAX elsewhere. */
void place_order(struct place_work *work, const struct ask *ask, struct answer *answer, uint16_t *position,
		 uint32_t slots);

#endif
