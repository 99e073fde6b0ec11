/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_mixed.h - what the two halves of the planner for members of several sizes share: place_mixed_rule.c by capacity,
 * place_mixed.c today. Private to them and place_fit.c, which tries first fit in a span.
 */
#ifndef FROND_CORE_PLACE_MIXED_H
#define FROND_CORE_PLACE_MIXED_H

#include "core/place_work.h"

struct shape { /* of a placement, pinned members included */
	struct extent use;
	uint32_t lo, hi; /* items, from the first one in use */
	bool chained;    /* its spines are adjacent, one run of leaves in each */
	bool slow;       /* it crosses a link that is under the floor */
};

/* First-fit decreasing on items [lo, hi). On success member_pos and take[] are set; of equal sizes lower ranks are on
 * lower nodes (reference 3.4), as first fit leaves them. */
bool fit_span(struct place_work *work, uint32_t lo, uint32_t hi);
/* First fit has tried the largest first. Do the members find sets of GPUs on their nodes in rank order, too? */
bool fit_chosen(struct place_work *work);
/* Takes every member away again. */
void fit_forget(struct place_work *work);
/* All members on one node, which choose in rank order: would that work? And puts them there. */
bool fit_node(const struct place_work *work, uint32_t at);
void fit_put(struct place_work *work, uint32_t at);
/* Of the members that have been put somewhere, and of the pinned ones when today. */
struct shape fit_shape(const struct place_work *work);

typedef void domain_visit(struct place_work *work, uint32_t item, void *context);
/* The NVLink domains of the scope that have all pinned members, one after the other as scope.domain. */
void fit_domains(struct place_work *work, domain_visit *visit, void *context);
/* The shortest window of leaves, of `most` at most, that the bounds allow: no run of fewer leaves holds the gang.
 * UINT32_MAX: none. */
uint32_t fit_shortest(struct place_work *work, uint32_t most);
/* Of a claim that rules sets out, place_pack.c knows what fits on a node only if members of one size follow each other. */
bool fit_searchable(const struct place_work *work);

static inline bool fit_counts(const struct place_work *work, uint32_t i)
{
	return pack_counts(work, i, work->pack.today);
}

static inline bool fit_capped(const struct place_work *work)
{
	return work->ask->max_nodes_per_leaf > 0 || work->ask->max_gpus_per_leaf > 0;
}

static inline bool fit_spreads(const struct place_work *work)
{
	return work->ask->strategy == STRATEGY_DISTRIBUTED;
}

#endif
