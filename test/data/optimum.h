/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optimum.h - the exact answers that plans over whole nodes are held against, found without the engine and with none of
 * its code. Input is how many nodes each leaf has to give, by capacity and today.
 *
 * Any placement: fewest spines, then fewest leaves, then fewest runs (reference 3.4, step 3).
 *   Spines: every set of spines, smaller ones first. In a smallest set that holds the gang no spine can be left out, so
 *   leaves may be taken largest first, which is the fewest that the set allows; the least over all smallest sets counts.
 *   Runs: a table over the leaves of such a set in fabric order, (leaves taken, nodes so far, last one taken?) → runs.
 * Rule (reference 3.3): from capacity; then the fewest leaves that meet it today, by trying every run.
 */
#ifndef FROND_DATA_OPTIMUM_H
#define FROND_DATA_OPTIMUM_H

#include "topo.h"

#include "frond.h"

struct supply { /* nodes that can be had, by leaf */
	const struct topo *topo;
	uint32_t room[TOPO_LEAVES_MAX];
};

struct cost {
	uint32_t spines, leaves, runs;
	bool spines_adjacent;
};

struct rule {
	enum frond_rule kind;
	uint32_t leaves; /* adjacent, under one spine; or: */
	uint32_t spines; /* adjacent, one run in each */
};

void supply_capacity(struct supply *supply, const struct topo *topo);
void supply_today(struct supply *supply, const struct topo *topo);
/* What these nodes, by index, cost. */
struct cost cost_of(const struct topo *topo, const uint32_t *nodes, uint32_t count);

/* false: the nodes do not suffice. */
bool optimum_any(const struct supply *today, uint32_t need, struct cost *out);

/* The rule of a gang of `need` whole nodes, two or more. false: capacity does not suffice, or in no such shape. */
bool topo_rule(const struct supply *capacity, uint32_t need, struct rule *out);
bool rule_allows(const struct rule *rule, const struct cost *cost);
/* false: the rule cannot be met today. */
bool optimum_rule(const struct supply *today, const struct rule *rule, uint32_t need, struct cost *out);

#endif
