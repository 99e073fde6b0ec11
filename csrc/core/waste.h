/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waste.h - the GPUs of a node that are of no use, because CPU or memory run out first. Pure arithmetic: knows no node and no
 * ledger, decides nothing.
 *
 * For one kind of pod on a node with `free` GPUs and some CPU and memory: by GPUs g = floor(free / kind.gpus) of them fit, by
 * everything a <= g of them (what a kind does not ask for does not bound it).
 *
 * Lost are the GPUs that no kind can use any more: the most that one kind would use by GPUs alone, max of g * kind.gpus, less
 * the most that one would use by everything, max of a * kind.gpus. How many pods there are of a kind does not matter.
 *
 * Expected waste: filled with pods of one kind, the node would keep (g - a) * kind.gpus GPUs that only CPU or memory stand in
 * the way of; and when not even one fits, all its free GPUs are of no use to that kind. The sum of both over all kinds, each
 * as often as there are pods of it.
 */
#ifndef FROND_CORE_WASTE_H
#define FROND_CORE_WASTE_H

#include "core/ask.h"

struct waste {
	uint32_t lost;     /* GPUs */
	uint32_t expected; /* GPUs times pods */
};

/* Neither summand of a kind is over the free GPUs, so no expected waste is over this, and no growth from one to another is
 * over it either way. No more than the free GPUs are lost. */
#define WASTE_MAX ((uint64_t)FROND_KINDS_MAX * FROND_PODS_MAX * 2 * FROND_GPUS_MAX)
#define LOST_MAX  FROND_GPUS_MAX
_Static_assert(2 * WASTE_MAX <= UINT32_MAX, "waste, and growth moved up by WASTE_MAX, are 32 bits");

/* A kind on a node with so many free GPUs that at least one of it fits by GPUs. */
struct waste_kind {
	uint32_t cpu_milli, memory_mib;
	uint32_t gpus;
	uint32_t most; /* that fit by GPUs */
	uint32_t each; /* expected waste for each of them that does not fit */
	uint32_t none; /* expected waste if none does */
};

/* What is the same for all nodes with so many free GPUs. The kinds of which one fits by GPUs come first: those need no
 * division. */
struct waste_row {
	uint32_t usable;                /* GPUs that the kind which uses most of them would use, by GPUs */
	uint32_t always;                /* expected waste for kinds that none fits of by GPUs */
	uint32_t ones, count;           /* kinds of which one fits by GPUs; and all */
	uint64_t cpu_milli, memory_mib; /* with so much left nothing is lost, and nothing else wasted */
	struct waste_kind kind[FROND_KINDS_MAX];
};

/* The kinds of pods of an ask, sorted out by the free GPUs of a node: many nodes are judged by them. */
struct waste_table {
	const struct thrift *thrift;
	struct waste_row row[FROND_GPUS_MAX + 1];
};

/* Kinds within their limits (frond.h). The thrift outlives the table. */
void waste_begin(struct waste_table *table, const struct thrift *thrift);

/* free <= FROND_GPUS_MAX */
struct waste waste_of(const struct waste_table *table, struct frond_left left, uint32_t free);

/* How much the waste of a node with `free` GPUs grows by the pod, which takes `gpus` of them, plus LOST_MAX and WASTE_MAX, so
 * that it is never negative. A pod that asks for more CPU or memory than is left leaves none. */
struct waste waste_growth(const struct waste_table *table, uint32_t slot, uint32_t free, uint32_t gpus);

#endif
