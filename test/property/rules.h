/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules.h - part of oracle.c: what the right answer is for a gang of equal members, by looking at every placement.
 *
 * A placement is how many members each node holds. With at most 14 nodes and 8 members there are at most 203,490 of
 * them, so nothing here is clever: each one is made, its facts are counted, and the best is kept.
 *
 * Where spec 3.3 and 3.4 leave room, the most literal reading was taken:
 *  R1  A leaf without nodes, or whose nodes cannot hold a member, still stands in fabric order: its neighbours are
 *      not adjacent to each other. The same for spines.
 *  R2  "complete leaf": every leaf that could hold the gang by capacity would have every one of its nodes in use. If
 *      one leaf could hold it and keep a node (even one that cannot hold a member), the name is "same leaf".
 *  R3  "no spine can hold it": no spine has a run of adjacent leaves that can.
 *  R4  distributed: n is the most nodes that the gang can be spread over by capacity and links; r, "complete leaf" and
 *      the number of spines are counted over the capacity placements that use n nodes. The placement itself need not.
 *  R5  latency-sensitive: Required whatever topology-mode says; node and leaf are tried by plain capacity, with
 *      distributed as well.
 *  R6  Capacity suffices but in no such shape: treated as Preferred, the rule missed is "adjacent spines", and every
 *      placement is relaxed.
 *  R7  Step 2 asks for the rule to be met inside the preferred domain, so a relaxed placement ignores the domain.
 *  R8  Rules bound the number of leaves and spines from above ("at most").
 *  R9  defaults.uplinkGbps is for nodes; a leaf without uplinkGbps is unlimited.
 */
#ifndef FROND_TEST_RULES_H
#define FROND_TEST_RULES_H

#include <assert.h>

#include "instance.h"

enum rule_kind {
	RULE_NONE,
	RULE_SINGLE_NODE,
	RULE_SAME_LEAF,
	RULE_COMPLETE_LEAF,
	RULE_ADJACENT_LEAVES,
	RULE_ADJACENT_SPINES,
	RULE_KINDS
};

static const char *const RULE_NAMES[RULE_KINDS] = {"none",          "single node",     "same leaf",
						   "complete leaf", "adjacent leaves", "adjacent spines"};

struct rule {
	enum rule_kind kind;
	int limit;      /* leaves or spines at most */
	bool never;     /* capacity does not suffice */
	bool too_wide;  /* latency-sensitive and wider than a leaf */
	bool shapeless; /* capacity suffices, but in no shape of 3.3 */
};

struct state { /* what the cluster looks like before a job */
	unsigned taken[NODES_MAX];
};

/* ---- the facts of one placement --------------------------------------------------------------------------------- */

struct facts {
	int spines, leaves, runs, nodes;
	int fullest_node, fullest_leaf;
	bool spines_adjacent;
	bool links_admit; /* a gang inside one leaf crosses no leaf link */
	bool leaf_whole;  /* one leaf, and every node of it in use */
	bool inside;      /* in the preferred domain; false when there is none */
};

static bool domain_known(const struct fabric *fabric, const char *name)
{
	bool known = false;
	for (int s = 0; s < fabric->spine_count; s++)
		known = known || strcmp(fabric->spine_names[s], name) == 0;
	for (int l = 0; l < fabric->leaf_count; l++)
		known = known || strcmp(fabric->leaves[l].name, name) == 0;
	return known;
}

static bool leaf_in_domain(const struct fabric *fabric, int leaf, const char *name)
{
	return strcmp(fabric->leaves[leaf].name, name) == 0 ||
	       strcmp(fabric->spine_names[fabric->leaves[leaf].spine], name) == 0;
}

static void count_per_leaf(const struct fabric *fabric, const int *counts, int *in_leaf, struct facts *facts)
{
	int nodes_of_leaf[LEAVES_MAX] = {0};

	for (int n = 0; n < fabric->node_count; n++) {
		int leaf = fabric->nodes[n].leaf;
		nodes_of_leaf[leaf]++;
		in_leaf[leaf] += counts[n];
		facts->nodes += counts[n] > 0;
		if (counts[n] > facts->fullest_node)
			facts->fullest_node = counts[n];
	}
	for (int l = 0; l < fabric->leaf_count; l++)
		if (in_leaf[l] > 0)
			facts->leaf_whole = facts->nodes == nodes_of_leaf[l]; /* read only when it is the one leaf */
}

static struct facts facts_of(const struct fabric *fabric, const struct job *job, const int *counts)
{
	struct facts facts = {.spines_adjacent = true, .inside = job->preferred[0] != '\0'};
	int in_leaf[LEAVES_MAX] = {0};
	int last_leaf = -1; /* in use */
	bool slow = false;

	count_per_leaf(fabric, counts, in_leaf, &facts);
	for (int l = 0; l < fabric->leaf_count; l++) {
		if (in_leaf[l] == 0)
			continue;
		const struct leaf *leaf = &fabric->leaves[l];
		int last_spine = last_leaf < 0 ? -1 : fabric->leaves[last_leaf].spine;
		facts.leaves++;
		facts.spines += leaf->spine != last_spine;
		facts.runs += last_leaf != l - 1 || leaf->spine != last_spine;
		if (last_leaf >= 0 && leaf->spine > last_spine + 1)
			facts.spines_adjacent = false;
		if (in_leaf[l] > facts.fullest_leaf)
			facts.fullest_leaf = in_leaf[l];
		slow = slow || (leaf->uplink_gbps > 0 && leaf->uplink_gbps < job->floor_gbps);
		facts.inside = facts.inside && leaf_in_domain(fabric, l, job->preferred);
		last_leaf = l;
	}
	facts.links_admit = facts.leaves == 1 || !slow;
	facts.leaf_whole = facts.leaf_whole && facts.leaves == 1;
	return facts;
}

static bool rule_is_met(const struct rule *rule, const struct facts *facts)
{
	switch (rule->kind) {
	case RULE_SINGLE_NODE:
		return facts->nodes == 1;
	case RULE_SAME_LEAF:
	case RULE_COMPLETE_LEAF:
		return facts->leaves == 1;
	case RULE_ADJACENT_LEAVES:
		return facts->spines == 1 && facts->runs == 1 && facts->leaves <= rule->limit;
	case RULE_ADJACENT_SPINES:
		return facts->spines <= rule->limit && facts->spines_adjacent && facts->runs == facts->spines;
	default:
		return true;
	}
}

/* ---- every placement -------------------------------------------------------------------------------------------- */

typedef void placement_visit(void *context, const int *counts);

struct walk {
	const int *places;
	int node_count;
	placement_visit *visit;
	void *context;
	int counts[NODES_MAX];
};

static void walk_node(struct walk *walk, int node, int left)
{
	if (left == 0) { /* the nodes from here on hold nobody */
		walk->visit(walk->context, walk->counts);
		return;
	}
	if (node == walk->node_count)
		return;
	for (int count = 0; count <= walk->places[node] && count <= left; count++) {
		walk->counts[node] = count;
		walk_node(walk, node + 1, left - count);
	}
	walk->counts[node] = 0;
}

static void each_placement(const struct fabric *fabric, const int *places, int members, placement_visit *visit,
			   void *context)
{
	struct walk walk = {.places = places, .node_count = fabric->node_count, .visit = visit, .context = context};
	walk_node(&walk, 0, members);
}

static bool node_admits(const struct node *node, const struct job *job)
{
	return node->uplink_gbps == 0 || node->uplink_gbps >= job->floor_gbps;
}

static unsigned node_free_mask(const struct node *node, unsigned taken)
{
	return ((1u << node->gpus) - 1) & ~(node->used_mask | node->unhealthy_mask | taken);
}

static int mask_count(unsigned mask)
{
	int count = 0;
	for (; mask; mask >>= 1)
		count += mask & 1;
	return count;
}

/* Members of this size that each node could hold at best: use, cordons and health do not count. */
static void places_ever(const struct fabric *fabric, const struct job *job, int size, int *places)
{
	for (int n = 0; n < fabric->node_count; n++)
		places[n] = node_admits(&fabric->nodes[n], job) ? fabric->nodes[n].gpus / size : 0;
}

static void places_today(const struct fabric *fabric, const struct state *state, const struct job *job, int size,
			 int *places)
{
	for (int n = 0; n < fabric->node_count; n++) {
		const struct node *node = &fabric->nodes[n];
		bool open = node_admits(node, job) && !node->cordoned;
		places[n] = open ? mask_count(node_free_mask(node, state->taken[n])) / size : 0;
	}
}

/* ---- the rule, from capacity (3.3) ------------------------------------------------------------------------------ */

enum { NOT_FOUND = 1000 };

struct shapes {
	const struct fabric *fabric;
	const struct job *job;
	int nodes_wanted; /* only placements over this many nodes count; 0: all */
	int fewest_nodes, most_nodes;
	int fewest_leaves;  /* in one run */
	int fewest_spines;  /* adjacent, one run in each */
	bool leaf_to_spare; /* one leaf holds it and has a node left */
};

static void shapes_visit(void *context, const int *counts)
{
	struct shapes *shapes = context;
	struct facts facts = facts_of(shapes->fabric, shapes->job, counts);

	if (!facts.links_admit || (shapes->nodes_wanted > 0 && facts.nodes != shapes->nodes_wanted))
		return;
	if (facts.nodes < shapes->fewest_nodes)
		shapes->fewest_nodes = facts.nodes;
	if (facts.nodes > shapes->most_nodes)
		shapes->most_nodes = facts.nodes;
	if (facts.runs == 1 && facts.leaves < shapes->fewest_leaves)
		shapes->fewest_leaves = facts.leaves;
	if (facts.spines_adjacent && facts.runs == facts.spines && facts.spines < shapes->fewest_spines)
		shapes->fewest_spines = facts.spines;
	if (facts.leaves == 1 && !facts.leaf_whole)
		shapes->leaf_to_spare = true;
}

static struct shapes shapes_of(const struct fabric *fabric, const struct job *job, int members, int nodes_wanted)
{
	struct shapes shapes = {fabric, job, nodes_wanted, NOT_FOUND, 0, NOT_FOUND, NOT_FOUND, false};
	int places[NODES_MAX];

	places_ever(fabric, job, job->sizes[0], places);
	each_placement(fabric, places, members, shapes_visit, &shapes);
	return shapes;
}

static struct rule rule_of(const struct fabric *fabric, const struct job *job, int members)
{
	struct shapes shapes = shapes_of(fabric, job, members, 0);

	if (shapes.most_nodes == 0)
		return (struct rule){.never = true};
	if (job->mode == MODE_IGNORE && !job->latency_sensitive)
		return (struct rule){.kind = RULE_NONE};
	int n = shapes.fewest_nodes;
	if (job->strategy == STRATEGY_DISTRIBUTED && !job->latency_sensitive) { /* R4, R5 */
		n = shapes.most_nodes;
		shapes = shapes_of(fabric, job, members, n);
	}
	if (n == 1)
		return (struct rule){.kind = RULE_SINGLE_NODE};
	if (shapes.fewest_leaves == 1)
		return (struct rule){.kind = shapes.leaf_to_spare ? RULE_SAME_LEAF : RULE_COMPLETE_LEAF};
	if (job->latency_sensitive)
		return (struct rule){.kind = RULE_SAME_LEAF, .too_wide = true};
	if (shapes.fewest_leaves < NOT_FOUND)
		return (struct rule){.kind = RULE_ADJACENT_LEAVES, .limit = shapes.fewest_leaves};
	return (struct rule){.kind = RULE_ADJACENT_SPINES, /* no spine meets limit 0: then every placement is relaxed */
			     .limit = shapes.fewest_spines < NOT_FOUND ? shapes.fewest_spines : 0,
			     .shapeless = shapes.fewest_spines == NOT_FOUND};
}

/* ---- the best of today (3.4, steps 1 to 3) ---------------------------------------------------------------------- */

enum { KEY_LENGTH = 4 };

struct best {
	bool exists;
	int key[KEY_LENGTH];
	int counts[NODES_MAX];
};

static void strategy_key(const struct job *job, const struct facts *facts, int *key)
{
	memset(key, 0, KEY_LENGTH * sizeof *key);
	if (job->strategy == STRATEGY_DISTRIBUTED) {
		key[0] = facts->fullest_node;
		key[1] = facts->fullest_leaf;
		return;
	}
	key[0] = facts->spines;
	key[1] = facts->leaves;
	key[2] = facts->runs;
	key[3] = job->strategy == STRATEGY_CONSOLIDATED ? facts->nodes : 0;
}

/* Negative, zero, positive as a is better than, equal to, worse than b in the first depth places. */
static int keys_compare(const int *a, const int *b, int depth)
{
	for (int i = 0; i < depth; i++)
		if (a[i] != b[i])
			return a[i] - b[i];
	return 0;
}

struct today {
	const struct fabric *fabric;
	const struct job *job;
	struct rule rule;
	struct best any, met, met_inside;
};

static void best_keep(struct best *best, const int *key, const int *counts)
{
	if (best->exists && keys_compare(key, best->key, KEY_LENGTH) >= 0)
		return;
	best->exists = true;
	memcpy(best->key, key, sizeof best->key);
	memcpy(best->counts, counts, sizeof best->counts);
}

static void today_visit(void *context, const int *counts)
{
	struct today *today = context;
	struct facts facts = facts_of(today->fabric, today->job, counts);
	int key[KEY_LENGTH];

	if (!facts.links_admit)
		return;
	strategy_key(today->job, &facts, key);
	best_keep(&today->any, key, counts);
	if (!rule_is_met(&today->rule, &facts))
		return;
	best_keep(&today->met, key, counts);
	if (facts.inside)
		best_keep(&today->met_inside, key, counts);
}

/* What the answer for so many of the job's members must be. */
struct expected {
	struct rule rule;
	bool placed;
	bool relaxed;
	bool inside;      /* the preferred domain must be taken */
	int depth;        /* how much of the key is promised */
	struct best best; /* of those that the answer may choose from */
	struct best met;  /* of those that meet the rule, wherever */
};

static bool members_share_nodes(const struct fabric *fabric, const int *places)
{
	for (int n = 0; n < fabric->node_count; n++)
		if (places[n] > 1)
			return true;
	return false;
}

static struct expected expected_of(const struct fabric *fabric, const struct state *state, const struct job *job,
				   int members)
{
	struct today today = {.fabric = fabric, .job = job, .rule = rule_of(fabric, job, members)};
	struct expected expected = {.rule = today.rule, .depth = KEY_LENGTH};
	bool may_relax = today.rule.shapeless || (job->mode == MODE_PREFERRED && !job->latency_sensitive);
	int places[NODES_MAX];

	if (today.rule.never || today.rule.too_wide)
		return expected;
	places_today(fabric, state, job, job->sizes[0], places);
	each_placement(fabric, places, members, today_visit, &today);
	expected.met = today.met;
	if (today.met.exists) { /* under Ignore every placement: RULE_NONE is met by all */
		expected.inside = today.met_inside.exists;
		expected.best = expected.inside ? today.met_inside : today.met;
	} else if (may_relax) { /* R7: the domain does not count */
		expected.relaxed = today.any.exists;
		expected.best = today.any;
	}
	expected.placed = expected.best.exists;
	/* The first slice of the engine does not promise the fewest nodes when small members go anywhere. */
	if ((expected.relaxed || today.rule.kind == RULE_NONE) && members_share_nodes(fabric, places))
		expected.depth = 3;
	return expected;
}

#endif
