/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segments.h - part of oracle.c: gangs with segments (reference 3.1, 3.3, 13), by looking at every way to give them to domains.
 * For members of one size.
 *
 *  S1  A segment is so many members with GPUs in order of rank. Whole ones that are free to go anywhere are alike: only ways
 *      that give them to domains in fabric order are looked at, and an answer must be one.
 *  S2  distributed: as R2, over the placements that keep segments together.
 *  S3  When nothing could hold the segments, the rule keeps the name that it has without them, and is shapeless.
 *  S4  A gang of one member has no segments.
 */
#ifndef FROND_TEST_SEGMENTS_H
#define FROND_TEST_SEGMENTS_H

#include "pack.h"

static int with_gpus(const struct gang *gang)
{
	int members = 0;
	for (int rank = 0; rank < gang->members; rank++)
		members += gang->job->sizes[rank] > 0;
	return members;
}

static bool has_topology(const struct fabric *fabric)
{
	for (int l = 0; l < fabric->leaf_count; l++)
		if (!fabric->leaves[l].loose)
			return true;
	return false;
}

static bool is_segmented(const struct gang *gang)
{
	return gang->job->segment_size > 0 && with_gpus(gang) > 1 && has_topology(gang->world->fabric) &&
	       (gang->job->mode != MODE_IGNORE || gang->job->latency_sensitive);
}

/* By capacity: has a node that could take a member a clique? */
static bool by_nvlink(const struct gang *gang)
{
	const struct fabric *fabric = gang->world->fabric;
	struct gang all = gang_of(gang->world, gang->job, gang->members);
	struct room room;

	if (gang->job->segment_level != SEGMENT_DEFAULT)
		return gang->job->segment_level == SEGMENT_NVLINK;
	all.bounds = gang->bounds;
	room_measure(&all, NULL, &room);
	for (int n = 0; n < fabric->node_count; n++)
		if (room.places[n] > 0 && fabric->nodes[n].clique[0] && !fabric->leaves[fabric->nodes[n].leaf].loose)
			return true;
	return false;
}

/* The nodes that are in one domain with this one; 0: it is in none. */
static unsigned segment_domain(const struct fabric *fabric, bool nvlink, int n)
{
	if (fabric->leaves[fabric->nodes[n].leaf].loose)
		return 0;
	if (nvlink)
		return domain_of(fabric, n);
	unsigned domain = 0;
	for (int other = 0; other < fabric->node_count; other++)
		domain |= fabric->nodes[other].leaf == fabric->nodes[n].leaf ? 1u << other : 0;
	return domain;
}

static int segment_of(const struct gang *gang, int rank)
{
	int before = 0;
	for (int lower = 0; lower < rank; lower++)
		before += gang->job->sizes[lower] > 0;
	return before / gang->job->segment_size;
}

/* Does every segment lie in one domain? */
static bool segments_met(const struct gang *gang, const int *node)
{
	bool nvlink = by_nvlink(gang);
	for (int rank = 0; rank < gang->members; rank++) {
		if (gang->job->sizes[rank] == 0)
			continue;
		unsigned domain = segment_domain(gang->world->fabric, nvlink, node[rank]);
		for (int other = 0; other < gang->members; other++)
			if (gang->job->sizes[other] > 0 && segment_of(gang, other) == segment_of(gang, rank) &&
			    !(domain & (1u << node[other])))
				return false;
	}
	return true;
}

/* S1: ranks of a segment ascend with their nodes, free whole segments with their domains. */
static bool segments_ordered(const struct gang *gang, const int *node)
{
	bool nvlink = by_nvlink(gang);
	for (int rank = 0; rank < gang->members; rank++)
		for (int later = rank + 1; later < gang->members; later++) {
			int a = segment_of(gang, rank), b = segment_of(gang, later), members = 0;
			bool is_free = true;
			if (!is_missing(gang, rank) || !is_missing(gang, later))
				continue;
			if (a == b && node[later] < node[rank])
				return false;
			for (int other = 0; other < gang->members; other++) {
				int segment = segment_of(gang, other);
				if (gang->job->sizes[other] == 0 || (segment != a && segment != b))
					continue;
				is_free = is_free && gang->pin[other] < 0;
				members += segment == b;
			}
			unsigned first = segment_domain(gang->world->fabric, nvlink, node[rank]);
			unsigned second = segment_domain(gang->world->fabric, nvlink, node[later]);
			if (a != b && is_free && members == gang->job->segment_size &&
			    (second & -second) < (first & -first))
				return false;
		}
	return true;
}

/* ---- every way to give segments to domains ----------------------------------------------------------------------- */

struct cast {
	const struct gang *gang;
	const int *places; /* members by node */
	unsigned allowed;
	void (*visit)(void *context, const struct cast *cast);
	void *context;
	int segments, missing[MEMBERS_MAX], all[MEMBERS_MAX], pinned[MEMBERS_MAX]; /* by segment; a node, or -1 */
	bool apart;
	int domain_count;
	unsigned domains[NODES_MAX];
	int in_domain[NODES_MAX]; /* members to be placed */
	unsigned pinned_nodes;
	bool nvlink;
};

static int cast_room(const struct cast *cast, unsigned domain)
{
	int room = 0;
	for (int n = 0; n < cast->gang->world->fabric->node_count; n++)
		room += domain & cast->allowed & (1u << n) ? cast->places[n] : 0;
	return room;
}

static int leaf_of_domain(const struct cast *cast, int d)
{
	return cast->gang->world->fabric->nodes[__builtin_ctz(cast->domains[d])].leaf;
}

static void cast_try(struct cast *cast, int segment, int least)
{
	if (segment == cast->segments) {
		cast->visit(cast->context, cast);
		return;
	}
	bool bound = cast->pinned[segment] >= 0;
	bool whole = !bound && cast->all[segment] == cast->gang->job->segment_size;
	for (int d = whole ? least : 0; d < cast->domain_count; d++) {
		if (bound && !(cast->domains[d] & (1u << cast->pinned[segment])))
			continue;
		cast->in_domain[d] += cast->missing[segment];
		if (cast->in_domain[d] <= cast_room(cast, cast->domains[d]))
			cast_try(cast, segment + 1, whole ? d : least);
		cast->in_domain[d] -= cast->missing[segment];
	}
}

static void each_cast(const struct gang *gang, const int *places, unsigned allowed,
		      void (*visit)(void *context, const struct cast *cast), void *context)
{
	const struct fabric *fabric = gang->world->fabric;
	struct cast cast = {.gang = gang, .places = places, .allowed = allowed, .visit = visit, .context = context};

	cast.nvlink = by_nvlink(gang);
	for (int n = 0; n < fabric->node_count; n++) {
		unsigned domain = segment_domain(fabric, cast.nvlink, n);
		if (domain && (domain & -domain) == 1u << n)
			cast.domains[cast.domain_count++] = domain;
	}
	memset(cast.pinned, -1, sizeof cast.pinned);
	for (int rank = 0; rank < gang->members; rank++) {
		if (gang->job->sizes[rank] == 0)
			continue;
		int segment = segment_of(gang, rank), pin = gang->pin[rank];
		cast.segments = segment + 1;
		cast.all[segment]++;
		cast.missing[segment] += pin < 0;
		if (pin < 0)
			continue;
		cast.pinned_nodes |= 1u << pin;
		if (cast.pinned[segment] >= 0 &&
		    !(segment_domain(fabric, cast.nvlink, pin) & (1u << cast.pinned[segment])))
			return; /* they are apart */
		cast.pinned[segment] = pin;
	}
	cast_try(&cast, 0, 0);
}

/* What a way comes to: members by leaf, fewest nodes; false: a leaf has a cap that it is over. */
static bool cast_count(const struct cast *cast, int *in_leaf, int *nodes)
{
	const struct gang *gang = cast->gang;
	const struct fabric *fabric = gang->world->fabric;
	int opened[LEAVES_MAX] = {0};

	memset(in_leaf, 0, LEAVES_MAX * sizeof *in_leaf);
	*nodes = 0;
	for (int d = 0; d < cast->domain_count; d++) {
		int leaf = leaf_of_domain(cast, d);
		int fewest = fewest_nodes(fabric, cast->places, cast->domains[d] & cast->allowed, cast->pinned_nodes,
					  leaf, cast->in_domain[d]);
		in_leaf[leaf] += cast->in_domain[d];
		opened[leaf] += fewest;
		*nodes += fewest;
	}
	for (int l = 0; l < fabric->leaf_count; l++) {
		if (in_leaf[l] > 0 &&
		    (opened[l] > nodes_to_open(gang, l) ||
		     in_leaf[l] * equal_size(gang) + pinned_share(gang, l).gpus > max_gpus_per_leaf(gang, l)))
			return false;
	}
	for (int rank = 0; rank < gang->members; rank++)
		if (gang->pin[rank] >= 0)
			in_leaf[fabric->nodes[gang->pin[rank]].leaf]++;
	*nodes += mask_count(cast->pinned_nodes);
	return true;
}

/* ---- the rule ---------------------------------------------------------------------------------------------------- */

struct segment_shapes {
	struct shapes shapes;
	bool any;
};

/* The most nodes that members in these domains can use. */
static int most_nodes_of(const struct cast *cast)
{
	const struct fabric *fabric = cast->gang->world->fabric;
	int most[LEAVES_MAX] = {0}, sum = 0;

	for (int d = 0; d < cast->domain_count; d++) {
		int nodes = 0;
		for (int n = 0; n < fabric->node_count; n++)
			nodes += cast->domains[d] & (1u << n) && cast->places[n] > 0;
		most[leaf_of_domain(cast, d)] += nodes < cast->in_domain[d] ? nodes : cast->in_domain[d];
	}
	for (int l = 0; l < fabric->leaf_count; l++)
		sum += most[l] < max_nodes_per_leaf(cast->gang) ? most[l] : max_nodes_per_leaf(cast->gang);
	return sum;
}

static void segment_shapes_visit(void *context, const struct cast *cast)
{
	struct segment_shapes *all = context;
	struct shapes *shapes = &all->shapes;
	const struct fabric *fabric = cast->gang->world->fabric;
	int in_leaf[LEAVES_MAX], fewest, most, whole = 0;

	if (!cast_count(cast, in_leaf, &fewest))
		return;
	struct facts facts = facts_of_leaves(fabric, cast->gang->job, in_leaf);
	if (!facts.links_admit)
		return;
	most = most_nodes_of(cast);
	for (int l = 0; l < fabric->leaf_count; l++)
		whole += in_leaf[l] > 0 ? nodes_of_leaf(fabric, l) : 0;
	all->any = true;
	if (fewest < shapes->fewest_nodes)
		shapes->fewest_nodes = fewest;
	if (shapes->nodes_wanted > 0) {
		if (most < shapes->nodes_wanted)
			return;
		fewest = shapes->nodes_wanted;
	}
	if (most > shapes->most_nodes)
		shapes->most_nodes = most;
	if (facts.runs == 1 && facts.loose == 0 && facts.leaves < shapes->fewest_leaves)
		shapes->fewest_leaves = facts.leaves;
	if (facts.spines_adjacent && facts.runs == facts.spines && facts.spines < shapes->fewest_spines)
		shapes->fewest_spines = facts.spines;
	if (facts.leaves == 1 && fewest < whole)
		shapes->leaf_to_spare = true;
}

static struct rule rule_with_segments(const struct gang *gang)
{
	struct rule plain = rule_by_capacity(gang);
	struct room room;
	int members = with_gpus(gang);

	if (!is_segmented(gang) || plain.never || plain.shapeless)
		return plain;
	room_measure(gang, NULL, &room);
	struct segment_shapes shapes = {.shapes = {gang, &room, 0, NOT_FOUND, 0, NOT_FOUND, NOT_FOUND, false}};
	each_cast(gang, room.places, ~0u, segment_shapes_visit, &shapes);
	bool one_node = shapes.shapes.fewest_nodes == 1;
	if (spreads_by_rule(gang->job) && shapes.any) {
		int n = shapes.shapes.most_nodes < members ? shapes.shapes.most_nodes : members;
		one_node = one_node && n <= 1;
		shapes.shapes = (struct shapes){gang, &room, n > 1 ? n : 1, NOT_FOUND, 0, NOT_FOUND, NOT_FOUND, false};
		each_cast(gang, room.places, ~0u, segment_shapes_visit, &shapes);
	}
	struct rule rule =
		rule_from_shape(gang->job, one_node, some_domain_holds(gang, &room, members), &shapes.shapes);
	if (rule.shapeless || (!shapes.any && rule.too_wide)) {
		rule = plain;
		rule.too_wide = gang->job->latency_sensitive;
		rule.shapeless = true; /* S3 */
	}
	return rule;
}

/* R5 */
static bool rule_is_ever(const struct gang *all)
{
	struct rule rule = rule_with_segments(all);
	return rule.never || rule.too_wide;
}

/* Pins do not count: the rule comes from capacity. */
static struct rule rule_of(const struct gang *gang)
{
	struct gang all = gang_of(gang->world, gang->job, gang->members);
	all.bounds = gang->bounds;
	all.ever = rule_is_ever(&all);
	return rule_with_segments(&all);
}

/* The nodes on which a segment can be at all. */
static unsigned segment_nodes(const struct gang *gang)
{
	unsigned nodes = 0;
	for (int n = 0; n < gang->world->fabric->node_count; n++)
		nodes |= segment_domain(gang->world->fabric, by_nvlink(gang), n) ? 1u << n : 0;
	return nodes;
}

#endif
