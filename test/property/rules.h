/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules.h - part of oracle.c: what a gang must meet (reference 3.3), from capacity, by looking at every way to share
 * its members out over the leaves.
 *
 * Where reference 3.3 leaves room, docs/decisions/0001 and 0002 decide, and after them:
 *  R1  "complete leaf": a leaf that could hold the gang and keep a node (even one that cannot hold a member) makes it
 *      "same leaf".
 *  R2  distributed: n is the most nodes that the gang can be spread over by capacity and links; r, "complete leaf" and
 *      the number of spines are counted over the capacity placements that use n nodes.
 *  R3  Rules bound the number of leaves and spines from above ("at most").
 *  R4  defaults.uplinkGbps is for nodes; a leaf without uplinkGbps is unlimited.
 *  R5  What has been unavailable for long is no capacity for the rule; a gang that would never fit, or would be refused as
 *      latency-sensitive and too wide, has the rule that it would have with all of it.
 */
#ifndef FROND_TEST_RULES_H
#define FROND_TEST_RULES_H

#include "gpus.h"

enum rule_kind {
	RULE_NONE,
	RULE_SINGLE_NODE,
	RULE_NVLINK_DOMAIN,
	RULE_SAME_LEAF,
	RULE_COMPLETE_LEAF,
	RULE_ADJACENT_LEAVES,
	RULE_ADJACENT_SPINES,
	RULE_KINDS
};

static const char *const RULE_NAMES[RULE_KINDS] = {"none",          "single node",     "nvlink domain",  "same leaf",
						   "complete leaf", "adjacent leaves", "adjacent spines"};

struct rule {
	enum rule_kind kind;
	int limit;      /* leaves or spines at most */
	bool never;     /* capacity does not suffice */
	bool too_wide;  /* latency-sensitive and wider than a leaf */
	bool shapeless; /* capacity suffices, but in no shape of 3.3 */
};

struct world { /* a fabric, and what was found out about its machines */
	const struct fabric *fabric;
	struct machine machines[MODELS_MAX];
};

struct state { /* of the day */
	unsigned held[NODES_MAX], sick[NODES_MAX];
	int counted[NODES_MAX]; /* GPUs of pods that do not say which ones they hold */
	bool closed[NODES_MAX]; /* cordoned or failed */
};

enum { AVAILABILITY, ALIGNMENT, UTILIZATION, HISTORY, NO_DATA, TERMS };

struct bounds {                                    /* what a host may add; frond-sim has no words for it */
	int ever[NODES_MAX], today[NODES_MAX];     /* members on a node: on its best day, and beside those that stay */
	int unavailable[NODES_MAX];                /* of ever, no capacity for the rule */
	int max_nodes_per_leaf, max_gpus_per_leaf; /* 0: no cap */
	int weights[TERMS];                        /* thousandths */
};

struct gang {
	struct world *world;
	const struct job *job;
	int members;                 /* all, or the minMember lowest ranks */
	int pin[MEMBERS_MAX];        /* the node of a member that stays, -1 for one that is to be placed */
	const struct bounds *bounds; /* NULL: none */
	bool ever;                   /* capacity counts what is unavailable, too */
};

static void world_open(struct world *world, const struct fabric *fabric)
{
	memset(world, 0, sizeof *world);
	world->fabric = fabric;
	for (int m = 0; m < fabric->model_count; m++)
		world->machines[m].model = &fabric->models[m];
}

static struct state state_of_day(const struct fabric *fabric)
{
	struct state state = {{0}, {0}, {0}, {0}};
	for (int n = 0; n < fabric->node_count; n++) {
		state.held[n] = fabric->nodes[n].used_mask;
		state.sick[n] = fabric->nodes[n].unhealthy_mask;
		state.closed[n] = fabric->nodes[n].cordoned;
	}
	return state;
}

static unsigned free_mask(const struct fabric *fabric, const struct state *state, int n)
{
	return node_all(&fabric->nodes[n]) & ~state->held[n] & ~state->sick[n];
}

/* How many of them may be handed out. */
static int free_count(const struct fabric *fabric, const struct state *state, int n)
{
	int free = mask_count(free_mask(fabric, state, n)) - state->counted[n];
	return free > 0 ? free : 0;
}

static struct gang gang_of(struct world *world, const struct job *job, int members)
{
	struct gang gang = {.world = world, .job = job, .members = members};
	for (int rank = 0; rank < MEMBERS_MAX; rank++)
		gang.pin[rank] = -1;
	return gang;
}

/* Members with GPUs that are still to be placed. */
static bool is_missing(const struct gang *gang, int rank)
{
	return gang->job->sizes[rank] > 0 && gang->pin[rank] < 0;
}

static int count_missing(const struct gang *gang)
{
	int missing = 0;
	for (int rank = 0; rank < gang->members; rank++)
		missing += is_missing(gang, rank);
	return missing;
}

static int equal_size(const struct gang *gang)
{
	int size = 0;
	for (int rank = 0; rank < gang->members; rank++)
		if (gang->job->sizes[rank] > size)
			size = gang->job->sizes[rank];
	return size;
}

/* ---- what a host may add ---------------------------------------------------------------------------------------- */

static int node_bound(const struct gang *gang, bool today, int n)
{
	if (!gang->bounds)
		return MEMBERS_MAX;
	int ever = gang->bounds->ever[n], rule = ever - gang->bounds->unavailable[n], now = gang->bounds->today[n];
	return !today ? gang->ever ? ever : rule : now < rule ? now : rule;
}

static int max_nodes_per_leaf(const struct gang *gang)
{
	return gang->bounds && gang->bounds->max_nodes_per_leaf > 0 ? gang->bounds->max_nodes_per_leaf : NODES_MAX;
}

static int max_gpus_per_leaf(const struct gang *gang, int leaf)
{
	bool capped = gang->bounds && gang->bounds->max_gpus_per_leaf > 0 && !gang->world->fabric->leaves[leaf].loose;
	return capped ? gang->bounds->max_gpus_per_leaf : MEMBERS_MAX * GPUS_MAX;
}

struct share { /* of a leaf, that members which stay have */
	int nodes, gpus;
};

static struct share pinned_share(const struct gang *gang, int leaf)
{
	struct share share = {0, 0};
	unsigned nodes = 0;
	for (int rank = 0; rank < gang->members; rank++)
		if (gang->pin[rank] >= 0 && gang->world->fabric->nodes[gang->pin[rank]].leaf == leaf) {
			nodes |= 1u << gang->pin[rank];
			share.gpus += gang->job->sizes[rank];
		}
	share.nodes = mask_count(nodes);
	return share;
}

/* Nodes that may still be opened in a leaf. */
static int nodes_to_open(const struct gang *gang, int leaf)
{
	int left = max_nodes_per_leaf(gang) - pinned_share(gang, leaf).nodes;
	return left > 0 ? left : 0;
}

/* ---- what a node has for a member ------------------------------------------------------------------------------- */

static bool node_admits(const struct node *node, const struct job *job)
{
	bool fast = node->uplink_gbps == 0 || node->uplink_gbps >= job->floor_gbps;
	return fast && (job->claim.zone == 0 || job->claim.zone == node->zone);
}

static unsigned choose_on(const struct gang *gang, int n, unsigned free, unsigned held, int size)
{
	const struct node *node = &gang->world->fabric->nodes[n];
	const struct claim *claim = &gang->job->claim;
	unsigned prefer = claim->prefer_mask | (claim->prefer_node == n ? claim->prefer_node_mask : 0);
	return set_choose(claim, &gang->world->machines[node->model], node_all(node), free, held, prefer, size);
}

/* GPUs that count as capacity: what a fabric file says is cordoned or unhealthy has been so for long
 * (reference 3.3). */
static unsigned capacity_mask(const struct gang *gang, int n)
{
	const struct node *node = &gang->world->fabric->nodes[n];
	if (gang->ever)
		return node_all(node);
	return node->cordoned ? 0 : node_all(node) & ~node->unhealthy_mask;
}

struct room { /* for members of one size: how many each node holds, and the GPUs of the first, the second… */
	int places[NODES_MAX];
	unsigned sets[NODES_MAX][GPUS_MAX];
};

/* state NULL: by capacity. */
static void room_measure(const struct gang *gang, const struct state *state, struct room *room)
{
	const struct fabric *fabric = gang->world->fabric;
	int size = equal_size(gang);

	memset(room, 0, sizeof *room);
	for (int n = 0; n < fabric->node_count; n++) {
		if (!node_admits(&fabric->nodes[n], gang->job) || (state && state->closed[n]))
			continue;
		unsigned free = state ? free_mask(fabric, state, n) : capacity_mask(gang, n);
		unsigned held = state ? state->held[n] : 0, set;
		int most = node_bound(gang, state != NULL, n), cap = max_gpus_per_leaf(gang, fabric->nodes[n].leaf);
		if (state && free_count(fabric, state, n) < cap)
			cap = free_count(fabric, state, n);
		most = most < cap / size ? most : cap / size;
		while (room->places[n] < most && (set = choose_on(gang, n, free, held, size)) != 0) {
			room->sets[n][room->places[n]++] = set;
			free &= ~set;
			held |= set;
		}
	}
}

/* ---- the facts of a placement ----------------------------------------------------------------------------------- */

struct facts {
	int spines, leaves, runs, nodes;
	int loose; /* of them, for nodes without a leaf */
	int fullest_node, fullest_leaf;
	bool spines_adjacent;
	bool links_admit; /* a gang inside one leaf crosses no leaf link */
	bool one_domain;  /* all nodes have the same NVLink domain; known only when the nodes are */
};

static bool leaf_is_slow(const struct fabric *fabric, const struct job *job, int leaf)
{
	return fabric->leaves[leaf].uplink_gbps > 0 && fabric->leaves[leaf].uplink_gbps < job->floor_gbps;
}

/* What follows from the number of members in each leaf. */
static struct facts facts_of_leaves(const struct fabric *fabric, const struct job *job, const int *in_leaf)
{
	struct facts facts = {.spines_adjacent = true};
	int last_leaf = -1; /* in use */
	bool slow = false;

	for (int l = 0; l < fabric->leaf_count; l++) {
		if (in_leaf[l] == 0)
			continue;
		int spine = fabric->leaves[l].spine;
		int last_spine = last_leaf < 0 ? -1 : fabric->leaves[last_leaf].spine;
		facts.leaves++;
		facts.spines += spine != last_spine;
		facts.runs += last_leaf != l - 1 || spine != last_spine;
		facts.loose += fabric->leaves[l].loose;
		if ((last_leaf >= 0 && spine > last_spine + 1) || fabric->leaves[l].loose)
			facts.spines_adjacent = false;
		if (in_leaf[l] > facts.fullest_leaf)
			facts.fullest_leaf = in_leaf[l];
		slow = slow || leaf_is_slow(fabric, job, l);
		last_leaf = l;
	}
	facts.links_admit = facts.leaves <= 1 || !slow;
	return facts;
}

static bool same_domain(const struct fabric *fabric, int a, int b)
{
	return fabric->nodes[a].leaf == fabric->nodes[b].leaf && fabric->nodes[a].clique[0] &&
	       strcmp(fabric->nodes[a].clique, fabric->nodes[b].clique) == 0;
}

/* What follows from the node of each member, -1 for none. */
static struct facts facts_of_nodes(const struct fabric *fabric, const struct job *job, const int *node, int members)
{
	int in_leaf[LEAVES_MAX] = {0}, on_node[NODES_MAX] = {0}, first = -1;
	bool one_domain = true;

	for (int rank = 0; rank < members; rank++) {
		if (node[rank] < 0)
			continue;
		in_leaf[fabric->nodes[node[rank]].leaf]++;
		on_node[node[rank]]++;
		first = first < 0 ? node[rank] : first;
		one_domain = one_domain && same_domain(fabric, first, node[rank]);
	}
	struct facts facts = facts_of_leaves(fabric, job, in_leaf);
	facts.one_domain = one_domain;
	for (int n = 0; n < fabric->node_count; n++) {
		facts.nodes += on_node[n] > 0;
		if (on_node[n] > facts.fullest_node)
			facts.fullest_node = on_node[n];
	}
	return facts;
}

static bool rule_is_met(const struct rule *rule, const struct facts *facts)
{
	switch (rule->kind) {
	case RULE_SINGLE_NODE:
		return facts->nodes == 1;
	case RULE_NVLINK_DOMAIN:
		return facts->one_domain;
	case RULE_SAME_LEAF:
	case RULE_COMPLETE_LEAF:
		return facts->leaves == 1 && facts->loose == 0;
	case RULE_ADJACENT_LEAVES:
		return facts->spines == 1 && facts->runs == 1 && facts->leaves <= rule->limit && facts->loose == 0;
	case RULE_ADJACENT_SPINES:
		return facts->spines <= rule->limit && facts->spines_adjacent && facts->runs == facts->spines;
	default:
		return true;
	}
}

/* ---- every way to share members out over leaves ----------------------------------------------------------------- */

typedef void counts_visit(void *context, const int *counts);

struct counts_walk {
	const int *most;
	int leaf_count;
	counts_visit *visit;
	void *context;
	int counts[LEAVES_MAX];
};

static void counts_try(struct counts_walk *walk, int leaf, int left)
{
	if (left == 0) { /* the leaves from here on get nobody */
		walk->visit(walk->context, walk->counts);
		return;
	}
	if (leaf == walk->leaf_count)
		return;
	for (int count = walk->most[leaf] < left ? walk->most[leaf] : left; count >= 0; count--) {
		walk->counts[leaf] = count;
		counts_try(walk, leaf + 1, left - count);
	}
	walk->counts[leaf] = 0;
}

/* In the order of docs/decisions/0002: leaf by leaf in fabric order, more members first. */
static void each_counts(const struct fabric *fabric, const int *most, int members, counts_visit *visit, void *context)
{
	struct counts_walk walk = {.most = most, .leaf_count = fabric->leaf_count, .visit = visit, .context = context};
	counts_try(&walk, 0, members);
}

enum { NOT_FOUND = 1000 };

/* The fewest nodes of a leaf that hold so many members, roomiest first; NOT_FOUND when all of them do not.
 * free_nodes: those in use already, whose room costs nothing. allowed: the nodes that may be used. */
static int fewest_nodes(const struct fabric *fabric, const int *places, unsigned allowed, unsigned free_nodes, int leaf,
			int members)
{
	int rooms[GPUS_MAX + 1] = {0}, nodes = 0;

	for (int n = 0; n < fabric->node_count; n++) {
		if (fabric->nodes[n].leaf != leaf || !(allowed & (1u << n)))
			continue;
		if (free_nodes & (1u << n))
			members -= places[n];
		else
			rooms[places[n]]++;
	}
	for (int room = GPUS_MAX; room > 0; room--)
		for (; members > 0 && rooms[room] > 0; rooms[room]--) {
			members -= room;
			nodes++;
		}
	return members > 0 ? NOT_FOUND : nodes;
}

static int nodes_of_leaf(const struct fabric *fabric, int leaf)
{
	int nodes = 0;
	for (int n = 0; n < fabric->node_count; n++)
		nodes += fabric->nodes[n].leaf == leaf;
	return nodes;
}

/* The roomiest nodes, as many as the leaf may have, and those where members stay; no more GPUs than it may have. */
static int most_in_leaf(const struct gang *gang, const int *places, unsigned allowed, int leaf)
{
	const struct fabric *fabric = gang->world->fabric;
	struct share pinned = pinned_share(gang, leaf);
	int rooms[GPUS_MAX + 1] = {0}, most = 0, left = nodes_to_open(gang, leaf), size = equal_size(gang);

	for (int n = 0; n < fabric->node_count; n++) {
		bool stays = false;
		if (fabric->nodes[n].leaf != leaf || !(allowed & (1u << n)))
			continue;
		for (int rank = 0; rank < gang->members; rank++)
			stays = stays || gang->pin[rank] == n;
		if (stays)
			most += places[n];
		else
			rooms[places[n]]++;
	}
	for (int room = GPUS_MAX; room > 0; room--)
		for (; left > 0 && rooms[room] > 0; rooms[room]--, left--)
			most += room;
	int gpus = max_gpus_per_leaf(gang, leaf) - pinned.gpus;
	return gpus <= 0 ? 0 : most < gpus / size ? most : gpus / size;
}

static void most_per_leaf(const struct gang *gang, const int *places, unsigned allowed, int *most)
{
	memset(most, 0, LEAVES_MAX * sizeof *most);
	for (int l = 0; l < gang->world->fabric->leaf_count; l++)
		most[l] = most_in_leaf(gang, places, allowed, l);
}

/* ---- the rule for equal members --------------------------------------------------------------------------------- */

struct shapes {
	const struct gang *gang;
	const struct room *room;
	int nodes_wanted; /* only placements over this many nodes count; 0: all */
	int fewest_nodes, most_nodes;
	int fewest_leaves;  /* in one run */
	int fewest_spines;  /* adjacent, one run in each */
	bool leaf_to_spare; /* one leaf holds it and has a node left */
};

static void shapes_visit(void *context, const int *counts)
{
	struct shapes *shapes = context;
	const struct fabric *fabric = shapes->gang->world->fabric;
	struct facts facts = facts_of_leaves(fabric, shapes->gang->job, counts);
	int fewest = 0, most = 0, whole = 0;

	if (!facts.links_admit)
		return;
	for (int l = 0; l < fabric->leaf_count; l++) {
		int with_room = 0;
		if (counts[l] == 0)
			continue;
		for (int n = 0; n < fabric->node_count; n++)
			with_room += fabric->nodes[n].leaf == l && shapes->room->places[n] > 0;
		fewest += fewest_nodes(fabric, shapes->room->places, ~0u, 0, l, counts[l]);
		if (with_room > max_nodes_per_leaf(shapes->gang))
			with_room = max_nodes_per_leaf(shapes->gang);
		most += counts[l] < with_room ? counts[l] : with_room;
		whole += nodes_of_leaf(fabric, l);
	}
	if (shapes->nodes_wanted > 0) {
		if (most < shapes->nodes_wanted)
			return;
		fewest = shapes->nodes_wanted;
	}
	if (fewest < shapes->fewest_nodes)
		shapes->fewest_nodes = fewest;
	if (most > shapes->most_nodes)
		shapes->most_nodes = most;
	if (facts.runs == 1 && facts.loose == 0 && facts.leaves < shapes->fewest_leaves)
		shapes->fewest_leaves = facts.leaves;
	if (facts.spines_adjacent && facts.runs == facts.spines && facts.spines < shapes->fewest_spines)
		shapes->fewest_spines = facts.spines;
	if (facts.leaves == 1 && facts.loose == 0 && fewest < whole)
		shapes->leaf_to_spare = true;
}

static struct shapes shapes_of(const struct gang *gang, const struct room *room, int members, int nodes_wanted)
{
	const struct fabric *fabric = gang->world->fabric;
	struct shapes shapes = {gang, room, nodes_wanted, NOT_FOUND, 0, NOT_FOUND, NOT_FOUND, false};
	int most[LEAVES_MAX];

	most_per_leaf(gang, room->places, ~0u, most);
	each_counts(fabric, most, members, shapes_visit, &shapes);
	return shapes;
}

static unsigned domain_of(const struct fabric *fabric, int n)
{
	unsigned domain = 0;
	for (int other = 0; other < fabric->node_count; other++)
		if (same_domain(fabric, n, other))
			domain |= 1u << other;
	return domain;
}

static bool some_domain_holds(const struct gang *gang, const struct room *room, int members)
{
	const struct fabric *fabric = gang->world->fabric;
	for (int n = 0; n < fabric->node_count; n++)
		if (most_in_leaf(gang, room->places, domain_of(fabric, n), fabric->nodes[n].leaf) >= members)
			return true;
	return false;
}

/* From n, r and the number of spines, once they are known. */
static struct rule rule_from_shape(const struct job *job, bool one_node, bool one_domain, const struct shapes *shapes)
{
	if (job->mode == MODE_IGNORE && !job->latency_sensitive)
		return (struct rule){.kind = RULE_NONE};
	if (one_node)
		return (struct rule){.kind = RULE_SINGLE_NODE};
	if (job->latency_sensitive && one_domain)
		return (struct rule){.kind = RULE_NVLINK_DOMAIN};
	if (shapes->fewest_leaves == 1)
		return (struct rule){.kind = shapes->leaf_to_spare ? RULE_SAME_LEAF : RULE_COMPLETE_LEAF};
	if (job->latency_sensitive)
		return (struct rule){.kind = RULE_SAME_LEAF, .too_wide = true};
	if (shapes->fewest_leaves < NOT_FOUND)
		return (struct rule){.kind = RULE_ADJACENT_LEAVES, .limit = shapes->fewest_leaves};
	return (struct rule){.kind = RULE_ADJACENT_SPINES, /* no spine meets limit 0: then every placement is relaxed */
			     .limit = shapes->fewest_spines < NOT_FOUND ? shapes->fewest_spines : 0,
			     .shapeless = shapes->fewest_spines == NOT_FOUND};
}

static bool spreads_by_rule(const struct job *job)
{
	return job->strategy == STRATEGY_DISTRIBUTED && !job->latency_sensitive;
}

static struct rule rule_of_equal(const struct gang *all)
{
	struct room room;
	int members = count_missing(all);

	room_measure(all, NULL, &room);
	struct shapes shapes = shapes_of(all, &room, members, 0);
	if (shapes.most_nodes == 0)
		return (struct rule){.never = true};
	int n = shapes.fewest_nodes;
	if (spreads_by_rule(all->job)) { /* R2 */
		n = shapes.most_nodes;
		shapes = shapes_of(all, &room, members, n);
	}
	return rule_from_shape(all->job, n == 1, some_domain_holds(all, &room, members), &shapes);
}

/* ---- mixed sizes: first-fit decreasing in a span ---------------------------------------------------------------- */

struct placement {
	int members;
	int node[MEMBERS_MAX]; /* -1: a member without GPUs, or that is not placed */
	unsigned mask[MEMBERS_MAX];
};

/* Members by falling size, then rank, each on the first node of the span with room for it and fewer than per_node
 * members. A span of several leaves does not use the slow ones. Afterwards members of one size change places so that
 * lower ranks come first. state NULL: by capacity. */
static bool first_fit(const struct gang *gang, const struct state *state, unsigned span, int per_node, int *node)
{
	const struct fabric *fabric = gang->world->fabric;
	unsigned free[NODES_MAX], held[NODES_MAX], leaves = 0;
	int on_node[NODES_MAX] = {0}, placed[NODES_MAX] = {0}, left[NODES_MAX];
	struct share in_leaf[LEAVES_MAX];

	for (int n = 0; n < fabric->node_count; n++) {
		free[n] = state ? free_mask(fabric, state, n) : capacity_mask(gang, n);
		held[n] = state ? state->held[n] : 0;
		left[n] = state ? free_count(fabric, state, n) : mask_count(free[n]);
		leaves |= span & (1u << n) ? 1u << fabric->nodes[n].leaf : 0;
	}
	for (int l = 0; l < fabric->leaf_count; l++)
		in_leaf[l] = pinned_share(gang, l);
	for (int rank = 0; rank < gang->members; rank++) {
		node[rank] = gang->pin[rank];
		if (node[rank] >= 0)
			on_node[node[rank]]++;
	}
	for (int size = GPUS_MAX; size > 0; size--)
		for (int rank = 0; rank < gang->members; rank++) {
			if (gang->job->sizes[rank] != size || gang->pin[rank] >= 0)
				continue;
			for (int n = 0; n < fabric->node_count && node[rank] < 0; n++) {
				bool slow = mask_count(leaves) > 1 &&
					    leaf_is_slow(fabric, gang->job, fabric->nodes[n].leaf);
				struct share *share = &in_leaf[fabric->nodes[n].leaf];
				if (!(span & (1u << n)) || slow || on_node[n] >= per_node ||
				    !node_admits(&fabric->nodes[n], gang->job) || (state && state->closed[n]) ||
				    placed[n] >= node_bound(gang, state != NULL, n) || left[n] < size ||
				    share->gpus + size > max_gpus_per_leaf(gang, fabric->nodes[n].leaf) ||
				    (on_node[n] == 0 && share->nodes >= max_nodes_per_leaf(gang)))
					continue;
				unsigned set = choose_on(gang, n, free[n], held[n], size);
				if (!set)
					continue;
				free[n] &= ~set;
				held[n] |= set;
				left[n] -= size;
				share->gpus += size;
				share->nodes += on_node[n] == 0;
				on_node[n]++;
				placed[n]++;
				node[rank] = n;
			}
			if (node[rank] < 0)
				return false;
		}
	for (int rank = 0; rank < gang->members; rank++)
		for (int later = rank + 1; later < gang->members; later++)
			if (is_missing(gang, rank) && is_missing(gang, later) &&
			    gang->job->sizes[rank] == gang->job->sizes[later] && node[later] < node[rank]) {
				int kept = node[rank];
				node[rank] = node[later];
				node[later] = kept;
			}
	return true;
}

static unsigned span_of_leaves(const struct fabric *fabric, int first, int last)
{
	unsigned span = 0;
	for (int n = 0; n < fabric->node_count; n++)
		if (fabric->nodes[n].leaf >= first && fabric->nodes[n].leaf <= last)
			span |= 1u << n;
	return span;
}

enum { SPANS_MAX = LEAVES_MAX * LEAVES_MAX + SPINES_MAX * SPINES_MAX + 1 };

/* Runs of leaves under one spine, runs of several spines, everything: each kind in fabric order. */
static int spans_list(const struct fabric *fabric, unsigned *spans)
{
	int count = 0;
	for (int first = 0; first < fabric->leaf_count; first++)
		for (int last = first; last < fabric->leaf_count; last++)
			if (fabric->leaves[first].spine == fabric->leaves[last].spine && !fabric->leaves[first].loose)
				spans[count++] = span_of_leaves(fabric, first, last);
	for (int first = 0; first < fabric->spine_count; first++)
		for (int last = first + 1; last < fabric->spine_count; last++) {
			unsigned span = 0;
			for (int l = 0; l < fabric->leaf_count; l++)
				if (fabric->leaves[l].spine >= first && fabric->leaves[l].spine <= last)
					span |= span_of_leaves(fabric, l, l);
			spans[count++] = span;
		}
	spans[count++] = ~0u;
	return count;
}

#endif
