/* SPDX-License-Identifier: Apache-2.0 */
/*
 * greedy.h - part of oracle.c: what a plain scheduler would do, one member at a time, first node with room.
 *
 * It is here to show that the random instances are worth solving: a share of them must defeat it.
 */
#ifndef FROND_TEST_GREEDY_H
#define FROND_TEST_GREEDY_H

#include "rules.h"

/* False when some member finds no node. */
static bool greedy_place(const struct fabric *fabric, const struct state *state, const struct job *job, int members,
			 int *counts)
{
	int places[NODES_MAX];

	places_today(fabric, state, job, job->sizes[0], places);
	memset(counts, 0, NODES_MAX * sizeof *counts);
	for (int rank = 0; rank < members; rank++) {
		int n = 0;
		while (n < fabric->node_count && counts[n] == places[n])
			n++;
		if (n == fabric->node_count)
			return false;
		counts[n]++;
	}
	return true;
}

/* The job's rule can be met today, and greedy fails, breaks it, or meets it in a worse way by step 3. */
static bool greedy_is_defeated(const struct fabric *fabric, const struct state *state, const struct job *job,
			       const struct expected *expected, int members)
{
	int counts[NODES_MAX];
	int key[KEY_LENGTH];

	if (!expected->met.exists)
		return false;
	if (!greedy_place(fabric, state, job, members, counts))
		return true;
	struct facts facts = facts_of(fabric, job, counts);
	strategy_key(job, &facts, key);
	return !facts.links_admit || !rule_is_met(&expected->rule, &facts) ||
	       keys_compare(key, expected->met.key, KEY_LENGTH) > 0;
}

#endif
