/* SPDX-License-Identifier: Apache-2.0 */
/*
 * greedy.h - part of oracle.c: what a plain scheduler would do, one member at a time, first node with room.
 *
 * It is here to show that the random instances are worth solving: a share of them must defeat it.
 */
#ifndef FROND_TEST_GREEDY_H
#define FROND_TEST_GREEDY_H

#include "plan.h"

/* The job's rule can be met today, and greedy fails, breaks it, or meets it in a worse way by step 3. */
static bool greedy_is_defeated(struct world *world, const struct job *job, const struct state *state,
			       const struct outcome *outcome)
{
	struct gang gang = gang_of(world, job, outcome->members);
	int node[MEMBERS_MAX], key[STEP3_KEY], n = 0, taken = 0;
	struct room room;

	if (!outcome->placed || outcome->relaxed || !sizes_equal(job, outcome->members))
		return false;
	room_measure(&gang, state, &room);
	for (int rank = 0; rank < gang.members; rank++) {
		node[rank] = -1;
		if (!is_missing(&gang, rank))
			continue;
		while (n < world->fabric->node_count && taken == room.places[n]) {
			n++;
			taken = 0;
		}
		if (n == world->fabric->node_count)
			return true;
		node[rank] = n;
		taken++;
	}
	struct facts facts = facts_of_nodes(world->fabric, job, node, gang.members);
	key_step3(job, &facts, key);
	return !facts.links_admit || !rule_is_met(&outcome->rule, &facts) ||
	       ints_compare(key, outcome->plan.key.step3, STEP3_KEY) > 0;
}

#endif
