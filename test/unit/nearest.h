/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nearest.h - part of test_place_best.c: what the sentence of a gang that waits must say (reference 8), found by
 * looking at every place: the one of the rule's shape that could hold the gang and has most room today, the first of
 * equal ones, and which nodes of it hold fewer members than they could.
 */
#ifndef FROND_TEST_NEAREST_H
#define FROND_TEST_NEAREST_H

#include "../property/plan.h"

struct nearest {
	const struct gang *gang;
	const struct state *state;
	struct room now, ever;
	int most_now[LEAVES_MAX], most_ever[LEAVES_MAX];
	int pins;
	bool found;
	int room;
	unsigned nodes; /* of the best place */
	char place[3 * NAME_SIZE], gap[NAME_SIZE];
};

static int pins_on(const struct gang *gang, unsigned nodes)
{
	int pins = 0;
	for (int rank = 0; rank < gang->members; rank++)
		pins += gang->pin[rank] >= 0 && (nodes >> gang->pin[rank] & 1) != 0;
	return pins;
}

static bool nearest_offer(struct nearest *nearest, int room, unsigned nodes)
{
	if (pins_on(nearest->gang, nodes) != nearest->pins || (nearest->found && room <= nearest->room))
		return false;
	nearest->found = true;
	nearest->room = room;
	nearest->nodes = nodes;
	return true;
}

static void nearest_node(struct nearest *nearest, int members)
{
	const struct fabric *fabric = nearest->gang->world->fabric;
	for (int n = 0; n < fabric->node_count; n++) {
		int free = nearest->state->closed[n] ? 0 : free_count(fabric, nearest->state, n);
		if (nearest->ever.places[n] >= members && nearest_offer(nearest, free, 1u << n))
			snprintf(nearest->place, sizeof nearest->place, "best %s", fabric->nodes[n].name);
	}
}

static bool leaf_offers_room(const struct nearest *nearest, int leaf)
{
	const struct fabric *fabric = nearest->gang->world->fabric;
	return !leaf_is_slow(fabric, nearest->gang->job, leaf) &&
	       (nearest->most_now[leaf] > 0 || pins_on(nearest->gang, span_of_leaves(fabric, leaf, leaf)) > 0);
}

static void nearest_leaves(struct nearest *nearest, int members, int length)
{
	const struct fabric *fabric = nearest->gang->world->fabric;
	for (int first = 0, last = length - 1; last < fabric->leaf_count; first++, last++) {
		int room = 0, ever = 0, gap = -1;
		if (fabric->leaves[first].spine != fabric->leaves[last].spine || fabric->leaves[first].loose)
			continue;
		for (int l = last; l >= first; l--) {
			bool crossed = length == 1 || !leaf_is_slow(fabric, nearest->gang->job, l);
			room += crossed ? nearest->most_now[l] : 0;
			ever += crossed ? nearest->most_ever[l] : 0;
			gap = leaf_offers_room(nearest, l) ? gap : l;
		}
		if (ever < members || !nearest_offer(nearest, room, span_of_leaves(fabric, first, last)))
			continue;
		if (length == 1)
			snprintf(nearest->place, sizeof nearest->place, "best %s", fabric->leaves[first].name);
		else
			snprintf(nearest->place, sizeof nearest->place, "best run %s..%s", fabric->leaves[first].name,
				 fabric->leaves[last].name);
		snprintf(nearest->gap, sizeof nearest->gap, "%s", gap < 0 ? "" : fabric->leaves[gap].name);
	}
}

static void nearest_spines(struct nearest *nearest, int length)
{
	const struct fabric *fabric = nearest->gang->world->fabric;
	for (int first = 0, last = length - 1; last < fabric->spine_count; first++, last++) {
		int room = 0, gap = -1;
		unsigned nodes = 0;
		for (int spine = last; spine >= first; spine--) {
			bool usable = false;
			for (int l = 0; l < fabric->leaf_count; l++) {
				if (fabric->leaves[l].spine != spine)
					continue;
				nodes |= span_of_leaves(fabric, l, l);
				usable = usable || leaf_offers_room(nearest, l);
				room += leaf_offers_room(nearest, l) ? nearest->most_now[l] : 0;
			}
			gap = usable ? gap : spine;
		}
		if (!nearest_offer(nearest, room, nodes))
			continue;
		snprintf(nearest->place, sizeof nearest->place, "best run %s..%s", fabric->spine_names[first],
			 fabric->spine_names[last]);
		snprintf(nearest->gap, sizeof nearest->gap, "%s", gap < 0 ? "" : fabric->spine_names[gap]);
	}
}

/* A slow leaf is of use only to a gang that stays inside it. */
static void nearest_cluster(struct nearest *nearest)
{
	const struct fabric *fabric = nearest->gang->world->fabric;
	int sum = 0, most = 0;
	for (int l = 0; l < fabric->leaf_count; l++) {
		if (!leaf_is_slow(fabric, nearest->gang->job, l))
			sum += nearest->most_now[l];
		else if (nearest->most_now[l] > most)
			most = nearest->most_now[l];
	}
	nearest->found = true;
	nearest->room = sum > most ? sum : most;
	nearest->nodes = ~0u;
	snprintf(nearest->place, sizeof nearest->place, "the cluster");
}

/* Several sizes: the sentence counts the GPUs that the cluster has. */
static void nearest_gpus(struct nearest *nearest)
{
	const struct gang *gang = nearest->gang;
	nearest_cluster(nearest);
	nearest->room = 0;
	for (int n = 0; n < gang->world->fabric->node_count; n++)
		if (node_admits(&gang->world->fabric->nodes[n], gang->job) && node_bound(gang, true, n) > 0 &&
		    node_bound(gang, false, n) > 0 && !nearest->state->closed[n])
			nearest->room += free_count(gang->world->fabric, nearest->state, n);
}

/* Does a node hold fewer members (several sizes: have fewer GPUs) than it could? */
static bool holds_less(const struct nearest *nearest, int n, bool mixed)
{
	const struct fabric *fabric = nearest->gang->world->fabric;
	if (pins_on(nearest->gang, 1u << n) > 0)
		return false;
	if (!mixed)
		return nearest->now.places[n] < nearest->ever.places[n];
	return nearest->state->closed[n] ? fabric->nodes[n].gpus > 0
					 : free_count(fabric, nearest->state, n) < fabric->nodes[n].gpus;
}

static int blockers_write(const struct nearest *nearest, bool mixed, char *out, size_t size)
{
	enum { CORDONED, UNHEALTHY, IN_USE, FILTERED, CAUSES };
	static const char *const texts[CAUSES] = {"cordoned", "with unhealthy GPUs", "in use",
						  "ruled out by other constraints"};
	const struct fabric *fabric = nearest->gang->world->fabric;
	int counts[CAUSES] = {0}, firsts[CAUSES] = {0}, at = 0;
	for (int n = fabric->node_count - 1; n >= 0; n--) {
		if ((nearest->nodes >> n & 1) == 0 || !holds_less(nearest, n, mixed))
			continue;
		bool used = nearest->state->held[n] != 0 || nearest->state->counted[n] > 0;
		int cause = nearest->state->closed[n]      ? CORDONED
			    : used                         ? IN_USE
			    : nearest->state->sick[n] != 0 ? UNHEALTHY
							   : FILTERED;
		counts[cause]++;
		firsts[cause] = n;
	}
	for (int cause = 0; cause < CAUSES; cause++) {
		const char *before = at > 0 ? ", " : " (";
		if (counts[cause] == 1)
			at += snprintf(out + at, size - (size_t)at, "%s%s %s", before,
				       fabric->nodes[firsts[cause]].name, texts[cause]);
		else if (counts[cause] > 1)
			at += snprintf(out + at, size - (size_t)at, "%s%d nodes %s", before, counts[cause],
				       texts[cause]);
	}
	return at == 0 ? 0 : at + snprintf(out + at, size - (size_t)at, ")");
}

/* What follows the first "; " of the sentence; empty when nothing does. */
static void nearest_write(const struct gang *gang, const struct state *state, const struct rule *rule, char *out,
			  size_t size)
{
	static struct nearest nearest; /* large */
	struct gang all = gang_of(gang->world, gang->job, gang->members);
	bool mixed = !sizes_equal(gang->job, gang->members), whole = true;
	bool insists = rule->kind != RULE_NONE && !may_relax(gang->job, rule);
	int members = count_missing(&all), at;

	all.bounds = gang->bounds;
	all.ever = rule_is_ever(&all);
	room_measure(&all, NULL, &nearest.ever);
	for (int n = 0; n < NODES_MAX; n++)
		whole = whole && nearest.ever.places[n] <= 1;
	all.ever = true; /* what is unavailable may be all that is lacking */
	nearest = (struct nearest){.gang = gang, .state = state, .pins = pins_on(gang, ~0u)};
	room_measure(gang, state, &nearest.now);
	room_measure(&all, NULL, &nearest.ever);
	most_per_leaf(gang, nearest.now.places, ~0u, nearest.most_now);
	most_per_leaf(&all, nearest.ever.places, ~0u, nearest.most_ever);
	if (mixed)
		nearest_gpus(&nearest);
	else if (!insists)
		nearest_cluster(&nearest);
	else if (rule->kind == RULE_SINGLE_NODE)
		nearest_node(&nearest, members);
	else if (rule->kind == RULE_ADJACENT_SPINES)
		nearest_spines(&nearest, rule->limit);
	else
		nearest_leaves(&nearest, members, rule->kind == RULE_ADJACENT_LEAVES ? rule->limit : 1);
	out[0] = 0;
	if (!nearest.found) {
		snprintf(out, size, "%s", nearest.pins > 0 ? "its bound members are apart" : "");
		return;
	}
	if (mixed || (insists && rule->kind == RULE_SINGLE_NODE))
		at = snprintf(out, size, "%s has %d free GPU%s", nearest.place, nearest.room,
			      nearest.room == 1 ? "" : "s");
	else
		at = snprintf(out, size, whole ? "%s has %d free" : "%s has room for %d", nearest.place, nearest.room);
	if (nearest.gap[0] && nearest.room >= count_missing(gang))
		at += snprintf(out + at, size - (size_t)at, " but none in %s", nearest.gap);
	blockers_write(&nearest, mixed, out + at, size - (size_t)at);
}

/* The beginning of the sentence for a gang that no day could place. */
static void never_write(const struct gang *gang, char *out, size_t size)
{
	struct gang all = gang_of(gang->world, gang->job, gang->members);
	const struct fabric *fabric = gang->world->fabric;
	bool mixed = !sizes_equal(gang->job, gang->members), whole = true;
	int members = count_missing(&all), gpus = 0, sum = 0, most = 0, in_leaf[LEAVES_MAX];
	struct room room;

	all.bounds = gang->bounds;
	all.ever = true;
	for (int rank = 0; rank < gang->members; rank++)
		gpus += gang->job->sizes[rank];
	for (int n = 0; mixed && n < fabric->node_count; n++)
		if (node_admits(&fabric->nodes[n], gang->job) && node_bound(&all, false, n) > 0)
			sum += fabric->nodes[n].gpus;
	if (mixed) {
		snprintf(out, size, "never fits: needs %d members with %d GPUs; the cluster could hold %d GPUs at best",
			 members, gpus, sum);
		return;
	}
	room_measure(&all, NULL, &room);
	most_per_leaf(&all, room.places, ~0u, in_leaf);
	for (int l = 0; l < fabric->leaf_count; l++)
		if (!leaf_is_slow(fabric, gang->job, l))
			sum += in_leaf[l];
		else if (in_leaf[l] > most)
			most = in_leaf[l];
	for (int n = 0; n < fabric->node_count; n++)
		whole = whole && room.places[n] <= 1;
	int size_each = equal_size(gang), at = snprintf(out, size, "never fits: needs %d ", members);
	if (whole)
		at += snprintf(out + at, size - (size_t)at, "node%s", members == 1 ? "" : "s");
	else
		at += snprintf(out + at, size - (size_t)at, "member%s of %d GPU%s", members == 1 ? "" : "s", size_each,
			       size_each == 1 ? "" : "s");
	snprintf(out + at, size - (size_t)at, "; the cluster could hold %d of them at best", sum > most ? sum : most);
}

#endif
