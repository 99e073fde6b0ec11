/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.h - part of oracle.c: gangs of several sizes, by brute force. For every leaf each way to put members on its nodes
 * is made; for every set of leaves it is then known whether the gang fits into it with each of them in use, and over how
 * many nodes. The rule of such a gang (3.3), and the best that it can have by steps 1 to 3 of 3.4, follow from looking at
 * every set.
 *
 *  K1  With a claim that rules GPU sets out, members on a node choose in rank order: the members of one size follow each
 *      other here, or which ones sit there would matter.
 */
#ifndef FROND_TEST_PACK_H
#define FROND_TEST_PACK_H

#include "rules.h"

enum { MIXES = 1 << MEMBERS_MAX }; /* of members of each size, at most */

struct pack {
	const struct gang *gang;
	const struct state *state; /* NULL: by capacity */
	unsigned allowed;          /* nodes */
	int per_node, per_leaf;    /* members at most, those that stay included */
	int kinds, size[MEMBERS_MAX], count[MEMBERS_MAX], step[MEMBERS_MAX];
	int mixes;                                                /* from none to all */
	int on_node[NODES_MAX], in_leaf[LEAVES_MAX];              /* members that stay */
	int fewest[LEAVES_MAX][MIXES], widest[LEAVES_MAX][MIXES]; /* nodes; NOT_FOUND and -1: it cannot be */
};

struct heap { /* what a leaf has been given so far */
	int mix, members, gpus, fresh, nodes;
	int used[MEMBERS_MAX]; /* by kind */
};

/* Sizes in the order of the lowest rank that has them (K1). */
static void pack_open(struct pack *pack, const struct gang *gang, const struct state *state, unsigned allowed)
{
	pack->gang = gang;
	pack->state = state;
	pack->allowed = allowed;
	pack->per_node = pack->per_leaf = MEMBERS_MAX;
	pack->kinds = 0;
	pack->mixes = 1;
	memset(pack->count, 0, sizeof pack->count);
	memset(pack->on_node, 0, sizeof pack->on_node);
	memset(pack->in_leaf, 0, sizeof pack->in_leaf);
	for (int rank = 0; rank < gang->members; rank++) {
		int kind = 0;
		if (gang->pin[rank] >= 0) {
			pack->on_node[gang->pin[rank]]++;
			pack->in_leaf[gang->world->fabric->nodes[gang->pin[rank]].leaf]++;
		}
		if (!is_missing(gang, rank))
			continue;
		while (kind < pack->kinds && pack->size[kind] != gang->job->sizes[rank])
			kind++;
		pack->size[kind] = gang->job->sizes[rank];
		pack->kinds += kind == pack->kinds;
		pack->count[kind]++;
	}
	for (int kind = 0; kind < pack->kinds; kind++) {
		pack->step[kind] = pack->mixes;
		pack->mixes *= pack->count[kind] + 1;
	}
}

static bool claim_admits(const struct pack *pack, int n, const int *here)
{
	const struct fabric *fabric = pack->gang->world->fabric;
	unsigned free = pack->state ? free_mask(fabric, pack->state, n) : capacity_mask(pack->gang, n);
	unsigned held = pack->state ? pack->state->held[n] : 0;

	if (pack->gang->job->claim.mode != MODE_REQUIRED)
		return true;
	for (int kind = 0; kind < pack->kinds; kind++)
		for (int i = 0; i < here[kind]; i++) {
			unsigned set = choose_on(pack->gang, n, free, held, pack->size[kind]);
			if (!set)
				return false;
			free &= ~set;
			held |= set;
		}
	return true;
}

static void pack_leaf(struct pack *pack, int leaf, int n, struct heap heap);

/* Gives node n so many of each size from this kind on, then goes on to the next node. */
static void pack_node(struct pack *pack, int leaf, int n, int kind, int gpus, int members, int *here, struct heap heap)
{
	if (kind == pack->kinds) {
		int placed = 0;
		for (int k = 0; k < pack->kinds; k++)
			placed += here[k];
		if (placed > 0 && !claim_admits(pack, n, here))
			return;
		heap.members += placed;
		heap.fresh += placed > 0 && pack->on_node[n] == 0;
		heap.nodes += placed > 0;
		pack_leaf(pack, leaf, n + 1, heap);
		return;
	}
	for (here[kind] = 0;; here[kind]++) {
		pack_node(pack, leaf, n, kind + 1, gpus, members, here, heap);
		if (heap.used[kind] == pack->count[kind] || members == 0 || gpus < pack->size[kind])
			break;
		heap.used[kind]++;
		heap.mix += pack->step[kind];
		heap.gpus += pack->size[kind];
		gpus -= pack->size[kind];
		members--;
	}
}

static void pack_leaf(struct pack *pack, int leaf, int n, struct heap heap)
{
	const struct gang *gang = pack->gang;
	const struct fabric *fabric = gang->world->fabric;
	int here[MEMBERS_MAX];

	while (n < fabric->node_count &&
	       (fabric->nodes[n].leaf != leaf || !(pack->allowed & (1u << n)) ||
		!node_admits(&fabric->nodes[n], gang->job) || (pack->state && pack->state->closed[n])))
		n++;
	if (n < fabric->node_count) {
		int members = pack->per_node - pack->on_node[n], bound = node_bound(gang, pack->state != NULL, n);
		int gpus = pack->state ? free_count(fabric, pack->state, n) : mask_count(capacity_mask(gang, n));
		members = members < bound ? members : bound;
		pack_node(pack, leaf, n, 0, gpus, members < 0 ? 0 : members, here, heap);
		return;
	}
	if (heap.members > 0 && (heap.gpus + pinned_share(gang, leaf).gpus > max_gpus_per_leaf(gang, leaf) ||
				 (heap.fresh > nodes_to_open(gang, leaf) && !fabric->leaves[leaf].loose) ||
				 heap.members + pack->in_leaf[leaf] > pack->per_leaf))
		return;
	if (heap.fresh < pack->fewest[leaf][heap.mix])
		pack->fewest[leaf][heap.mix] = heap.fresh;
	if (heap.nodes > pack->widest[leaf][heap.mix])
		pack->widest[leaf][heap.mix] = heap.nodes;
}

/* After a change of per_node or per_leaf. */
static void pack_fill(struct pack *pack)
{
	for (int leaf = 0; leaf < pack->gang->world->fabric->leaf_count; leaf++) {
		for (int mix = 0; mix < pack->mixes; mix++) {
			pack->fewest[leaf][mix] = NOT_FOUND;
			pack->widest[leaf][mix] = -1;
		}
		pack_leaf(pack, leaf, 0, (struct heap){0});
	}
}

/* ---- every set of leaves ---------------------------------------------------------------------------------------- */

/* The leaves, 1 for each in use, and the fewest and most nodes that the gang then takes beside those where members stay. */
typedef void set_visit(void *context, const int *leaves, int fewest, int widest);

struct set_walk {
	const struct pack *pack;
	set_visit *visit;
	void *context;
	int leaves[LEAVES_MAX];
};

static bool mix_within(const struct pack *pack, int part, int mix)
{
	for (int kind = 0; kind < pack->kinds; kind++)
		if (part / pack->step[kind] % (pack->count[kind] + 1) >
		    mix / pack->step[kind] % (pack->count[kind] + 1))
			return false;
	return true;
}

static void sets_try(struct set_walk *walk, int leaf, int used, const int *fewest, const int *widest)
{
	const struct pack *pack = walk->pack;
	int with_fewest[MIXES], with_widest[MIXES];
	bool any = false;

	if (leaf == pack->gang->world->fabric->leaf_count) {
		if (fewest[pack->mixes - 1] < NOT_FOUND)
			walk->visit(walk->context, walk->leaves, fewest[pack->mixes - 1], widest[pack->mixes - 1]);
		return;
	}
	walk->leaves[leaf] = 0;
	if (pack->in_leaf[leaf] == 0)
		sets_try(walk, leaf + 1, used, fewest, widest);
	if (used == pack->gang->members)
		return;
	for (int mix = 0; mix < pack->mixes; mix++) {
		with_fewest[mix] = NOT_FOUND;
		with_widest[mix] = -1;
		for (int part = 0; part <= mix; part++) {
			if ((part == 0 && pack->in_leaf[leaf] == 0) || pack->fewest[leaf][part] == NOT_FOUND ||
			    !mix_within(pack, part, mix) || fewest[mix - part] == NOT_FOUND)
				continue;
			int few = fewest[mix - part] + pack->fewest[leaf][part];
			int wide = widest[mix - part] + pack->widest[leaf][part];
			with_fewest[mix] = few < with_fewest[mix] ? few : with_fewest[mix];
			with_widest[mix] = wide > with_widest[mix] ? wide : with_widest[mix];
			any = true;
		}
	}
	walk->leaves[leaf] = 1;
	if (any)
		sets_try(walk, leaf + 1, used + 1, with_fewest, with_widest);
	walk->leaves[leaf] = 0;
}

static void each_set(const struct pack *pack, set_visit *visit, void *context)
{
	struct set_walk walk = {.pack = pack, .visit = visit, .context = context};
	int fewest[MIXES], widest[MIXES];

	for (int mix = 0; mix < pack->mixes; mix++) {
		fewest[mix] = mix == 0 ? 0 : NOT_FOUND;
		widest[mix] = mix == 0 ? 0 : -1;
	}
	sets_try(&walk, 0, 0, fewest, widest);
}

/* ---- the rule --------------------------------------------------------------------------------------------------- */

static void mixed_visit(void *context, const int *leaves, int fewest, int widest)
{
	struct shapes *shapes = context;
	const struct fabric *fabric = shapes->gang->world->fabric;
	struct facts facts = facts_of_leaves(fabric, shapes->gang->job, leaves);
	int whole = 0;

	if (!facts.links_admit || widest < shapes->nodes_wanted)
		return;
	for (int l = 0; l < fabric->leaf_count; l++)
		whole += leaves[l] ? nodes_of_leaf(fabric, l) : 0;
	int nodes = shapes->nodes_wanted > 0 ? shapes->nodes_wanted : fewest;
	if (fewest < shapes->fewest_nodes)
		shapes->fewest_nodes = fewest;
	if (widest > shapes->most_nodes)
		shapes->most_nodes = widest;
	if (facts.runs == 1 && facts.loose == 0 && facts.leaves < shapes->fewest_leaves)
		shapes->fewest_leaves = facts.leaves;
	if (facts.spines_adjacent && facts.runs == facts.spines && facts.spines < shapes->fewest_spines)
		shapes->fewest_spines = facts.spines;
	if (facts.leaves == 1 && facts.loose == 0 && nodes < whole)
		shapes->leaf_to_spare = true;
}

static struct shapes mixed_shapes(struct pack *pack, int nodes_wanted)
{
	struct shapes shapes = {pack->gang, NULL, nodes_wanted, NOT_FOUND, 0, NOT_FOUND, NOT_FOUND, false};

	each_set(pack, mixed_visit, &shapes);
	return shapes;
}

static struct rule rule_of_mixed(const struct gang *all)
{
	static struct pack pack; /* large */
	const struct fabric *fabric = all->world->fabric;
	bool one_domain = false;

	pack_open(&pack, all, NULL, ~0u);
	pack_fill(&pack);
	struct shapes shapes = mixed_shapes(&pack, 0);
	if (shapes.fewest_nodes == NOT_FOUND)
		return (struct rule){.never = true};
	bool one_node = shapes.fewest_nodes == 1;
	if (spreads_by_rule(all->job)) { /* R2 */
		one_node = shapes.most_nodes == 1;
		shapes = mixed_shapes(&pack, shapes.most_nodes);
	}
	for (int n = 0; n < fabric->node_count && all->job->latency_sensitive && !one_domain; n++) {
		pack_open(&pack, all, NULL, domain_of(fabric, n));
		pack_fill(&pack);
		one_domain = mixed_shapes(&pack, 0).fewest_nodes < NOT_FOUND;
	}
	return rule_from_shape(all->job, one_node, one_domain, &shapes);
}

static struct rule rule_by_capacity(const struct gang *all)
{
	return sizes_equal(all->job, all->members) ? rule_of_equal(all) : rule_of_mixed(all);
}

/* R5 */
static bool rule_is_ever(const struct gang *all)
{
	struct rule rule = rule_by_capacity(all);
	return rule.never || rule.too_wide;
}

/* Pins do not count: the rule comes from capacity. */
static struct rule rule_of(const struct gang *gang)
{
	struct gang all = gang_of(gang->world, gang->job, gang->members);
	all.bounds = gang->bounds;
	all.ever = rule_is_ever(&all);
	return rule_by_capacity(&all);
}

#endif
