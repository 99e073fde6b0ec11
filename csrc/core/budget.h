/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget.h - the bound on the work of one call (reference 9), in steps that are counted, so that the same input gives the same
 * answer on every machine. A step is a look at a node, a leaf, a cell of a table: a few nanoseconds. Whoever begins a call
 * begins its budget; all that the call does, plans inside of a repair too, is paid from it. Work that is linear in the
 * gang or the cluster and done once a call is not counted: a first answer is always found, unless a
 * claim makes nodes dear (place_leaf.c), and what the budget cuts off is told as FROND_PLAN_BOUNDED.
 */
#ifndef FROND_CORE_BUDGET_H
#define FROND_CORE_BUDGET_H

#include "core/base.h"

/*
 * What things cost, in steps of some 6 ns; measured by test/slowest, whose slowest calls are those that spend all of it.
 * What a plan does once for every node, leaf or member, however often a call plans, is charged as well.
 */
#define STEPS_NODE      4u   /* a node is looked at */
#define STEPS_SET       1u   /* a set of GPUs is compared */
#define STEPS_ITEM      2u   /* an item that has been looked at is asked again */
#define STEPS_LEAF      2u   /* what a leaf has in sum */
#define STEPS_EXCEPTION 12u  /* an exception is marked, and the mark is taken away */
#define STEPS_GAIN      8u   /* a gain that is kept, or that the sums of a leaf tell */
#define STEPS_FILL      24u  /* a node of an item that is filled to see what that brings */
#define STEPS_TURN      16u  /* and one whose turn has to be found, or a member that takes its turn */
#define STEPS_POINT     2u   /* a point of a table over members */
#define STEPS_PRICE     3u   /* an item, for every price that is tried */
#define STEPS_VISIT     8u   /* an item, to see whether it may be in a candidate */
#define STEPS_OPTION    6u   /* and a node of it, where it matters how many it opens */
#define STEPS_BOUNDS    8u   /* several sizes: the bounds of a leaf, from its sums */
#define STEPS_WEIGH     10u  /* a node whose exceptions count for them */
#define STEPS_FIT       4u   /* a node that first fit passes */
#define STEPS_MEMBER    20u  /* a member finds its node by first fit */
#define STEPS_CONSIDER  40u  /* a member of a candidate is compared */
#define STEPS_PLAN      256u /* a plan in a what-if, beside what the planner pays itself */
#define STEPS_REPAIR    512u /* and one of a repair, or of a later day */
#define STEPS_ROSTER    8u   /* every member, to be counted and handed out */
#define STEPS_MOVER     32u  /* every member that leaves, is placed and comes back */
#define STEPS_POD       16u  /* a pod is counted off its node, or back */
#define STEPS_END       6u   /* the pod of an end is found, and marked */
#define STEPS_HOLE      64u  /* a node of a hole, looked at for each ratio */

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
