/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.h - where a gang goes: the rules of reference 3.3 and the order of 3.4, on today's free GPUs.
 * Pure: reads nodes, fabric and ledger, writes only its scratch and the caller's output; what exceptions change in the
 * counts of leaves (place_room.c) is put back before it returns. Never books anything.
 *
 * Exact for members of equal size in steps 1-3 (hard rules, preferred domain, strategy) at any size. From step 4 on
 * (GPU links, fragmentation, weighted score, position) the first FROND_CANDIDATES placements that are equal so far are
 * compared, and FROND_PLAN_BOUNDED says that there were more. Mixed sizes: exact in steps 1-3 as far as the budget goes.
 */
#ifndef FROND_CORE_PLACE_H
#define FROND_CORE_PLACE_H

#include "core/budget.h"
#include "core/gpuset.h"
#include "core/ledger.h"
#include "core/span.h"

struct place_work; /* scratch; sized by limits, laid out once */

/* sets[node.topology] is the node's table. */
struct place_work *place_layout(struct arena *arena, struct fabric *fabric, const struct ledger *ledger,
				struct gpuset *const *sets, uint32_t nodes, uint64_t scratch);

/* Memory, of `scratch` bytes or more, that the planner leaves alone between its calls; what is in it does not last beyond
 * the next one. */
void *place_scratch(struct place_work *work);
uint64_t place_scratch_bytes(const struct place_work *work);

/* What plans of the call in hand are paid from; the call begins it. */
struct budget *place_budget(struct place_work *work);

/* Plans from here on are for one and the same ask: GPU sets that its claim made one of them look for the next ones know. Or
 * they are no longer. */
void place_repeat(struct place_work *work, bool repeats);

/* Fills answer always, and places[count] when the outcome is FROND_PLACED. */
void place_gang(struct place_work *work, const struct ask *ask, struct answer *answer, struct frond_place *places);

/* The same inside a span, in the part of the preferred domain that lies there if that is possible. False: not inside it. */
bool place_inside(struct place_work *work, const struct ask *ask, const struct span *span, struct answer *answer,
		  struct frond_place *places);

/* Of two placements of one gang, which one is better by steps 2 to 6 of reference 3.4? Below zero: a. */
int answer_compare(const struct ask *ask, const struct answer *a, const struct answer *b);

#define PLACE_ORDERED 1024u /* nodes that place_order puts in order */

/* For one pod: the rank of every feasible node in the order in which place_gang would take it, PLACE_ORDERED for those
 * behind it; UINT16_MAX elsewhere. With ask->thrift every node is a candidate of its own, and waste (waste.h) is step 5b. */
void place_order(struct place_work *work, const struct ask *ask, struct answer *answer, uint16_t *position,
		 uint32_t slots);

/* The rule of reference 3.3 alone, from capacity. False: never fits. */
bool place_rule_of(struct place_work *work, const struct ask *ask, struct answer *answer);

#endif
