/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget.h - the bound on the work of one call (spec 9), in steps that are counted, so that the same input gives the same
 * answer on every machine. A step is a look at a node, a leaf, a cell of a table: a few nanoseconds. Whoever begins a call
 * begins its budget; all that the call does, plans inside of a repair too, is paid from it. Work that is linear in the
 * gang or the cluster and done once a call is not counted: a first answer is always found, and what the budget cuts off
 * is told as FROND_PLAN_BOUNDED.
 */
#ifndef FROND_CORE_BUDGET_H
#define FROND_CORE_BUDGET_H

#include "core/base.h"

#define BUDGET_STEPS      (5u << 19) /* of a call on a small cluster */
#define BUDGET_STEPS_NODE 50u        /* and for every node more */

struct budget {
	uint64_t left;
	bool spent; /* somebody was refused */
};

static inline void budget_begin(struct budget *budget, uint32_t nodes)
{
	*budget = (struct budget){.left = BUDGET_STEPS + (uint64_t)BUDGET_STEPS_NODE * nodes};
}

/* May so many steps be done? They are paid for if so; if not, nothing more is granted in this call. */
static inline bool budget_take(struct budget *budget, uint64_t steps)
{
	if (budget->spent || steps > budget->left) {
		budget->spent = true;
		return false;
	}
	budget->left -= steps;
	return true;
}

/* Pays for work that is linear and has to be done, whatever is left. */
static inline void budget_charge(struct budget *budget, uint64_t steps)
{
	budget->left -= steps < budget->left ? steps : budget->left;
}

#endif
