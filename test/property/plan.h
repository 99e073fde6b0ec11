/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - part of oracle.c: THE answer to a gang (reference 3.4): every candidate is made, its key is counted, the
 * best is kept. docs/decisions/0002 says what a candidate is.
 *
 *  P1  Step 7 compares the lists of distinct nodes of the members that are placed (not pinned); of two lists that begin
 *      alike the shorter comes first.
 *  P2  Under the rule "nvlink domain" a candidate is a domain, in the order of the first node.
 *  P3  Mixed sizes: what steps 1 to 3 attain is found by brute force (pack.h). If first-fit decreasing attains it in a
 *      span, the best of these by steps 4 to 7 is the answer; else any placement that attains it. Of spans: under "single node" each leaf offers the node with the best links (step 4), then the fewest GPUs
 *      left over, then the lowest position; under "nvlink domain" a span is a domain; else as in the readings. A span
 *      is where the whole gang is: pinned members, too.
 *      `distributed` tries every span with the fewest members a node with which first-fit decreasing works anywhere,
 *      and with any number up to that which stays on one node.
 *  P4  A preferred NVLink domain restricts the nodes of its leaf.
 *  P5  There is no step 5b: a plan is not told of CPU and memory.
 *  P6  Step 4 counts models and NVLink domains over the whole gang, pinned members included. Where the fabric has an NVLink
 *      domain: a node is in its domain; one in none is by itself if its leaf has a domain; all nodes of a leaf without
 *      any are together.
 */
#ifndef FROND_TEST_PLAN_H
#define FROND_TEST_PLAN_H

#include <stdlib.h>

#include "segments.h"

enum { CANDIDATES_MAX = 4096, STEP3_KEY = 4, STEP4_KEY = 4, WHOLE_KEY = 2, STEP6_KEY = 2 };
enum step { STEP_NONE, STEP_3 = 3, STEP_4, STEP_5A, STEP_5C, STEP_6, STEP_7, STEPS };

struct key { /* lower is better, place by place */
	int step3[STEP3_KEY];
	int step4[STEP4_KEY];
	int whole[WHOLE_KEY]; /* 5a; latency-sensitive: what stands in its place, and in that of 6 */
	int score;            /* 5c */
	int step6[STEP6_KEY];
};

struct plan {
	struct placement placement;
	struct facts facts;
	struct key key;
};

struct outcome { /* what the answer for a gang must be */
	struct rule rule;
	bool placed, relaxed;
	bool inside;  /* the preferred domain was taken */
	bool bounded; /* there were more candidates than are compared */
	int compared; /* candidates */
	enum step decided;
	int members;
	bool open;        /* of the plan only the key of step 3 is known: plan_adopt() */
	bool adopted;     /* it was open, and an answer was as good */
	unsigned allowed; /* then: the nodes that it may use */
	struct plan plan;
};

/* ---- the key ---------------------------------------------------------------------------------------------------- */

static void key_step3(const struct job *job, const struct facts *facts, int *key)
{
	memset(key, 0, STEP3_KEY * sizeof *key);
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

static int bottleneck_of(const struct gang *gang, int n, unsigned set)
{
	return ring_of(&gang->world->machines[gang->world->fabric->nodes[n].model], set)->bottleneck;
}

/* P5: the nodes that count as one NVLink domain with this one; 0: nothing counts. */
static unsigned linked_with(const struct fabric *fabric, int n)
{
	bool somewhere = false, in_leaf = false;
	unsigned leaf = 0;
	for (int other = 0; other < fabric->node_count; other++) {
		bool same_leaf = fabric->nodes[other].leaf == fabric->nodes[n].leaf;
		somewhere = somewhere || domain_of(fabric, other);
		in_leaf = in_leaf || (same_leaf && domain_of(fabric, other));
		leaf |= same_leaf ? 1u << other : 0;
	}
	if (!somewhere)
		return 0;
	return domain_of(fabric, n) ? domain_of(fabric, n) : in_leaf ? 1u << n : leaf;
}

/* Members with GPUs whose node is the first of the gang with such a model, or in such a domain. */
static void count_kinds(const struct gang *gang, const struct placement *placement, int *models, int *domains)
{
	const struct fabric *fabric = gang->world->fabric;

	*models = *domains = 0;
	for (int rank = 0; rank < gang->members; rank++) {
		int n = placement->node[rank];
		bool model_seen = false, domain_seen = false;
		if (gang->job->sizes[rank] == 0)
			continue;
		for (int lower = 0; lower < rank; lower++) {
			int other = placement->node[lower];
			if (gang->job->sizes[lower] == 0)
				continue;
			model_seen = model_seen || strcmp(fabric->models[fabric->nodes[n].model].name,
							  fabric->models[fabric->nodes[other].model].name) == 0;
			domain_seen = domain_seen || linked_with(fabric, n) & (1u << other);
		}
		*models += !model_seen;
		*domains += !domain_seen && linked_with(fabric, n);
	}
}

static void key_step4(const struct gang *gang, const struct placement *placement, int *key)
{
	int worst = NO_HOP, sum = 0;
	count_kinds(gang, placement, &key[0], &key[1]);
	for (int rank = 0; rank < gang->members; rank++) {
		if (!is_missing(gang, rank) || gang->job->sizes[rank] < 2)
			continue;
		int bottleneck = bottleneck_of(gang, placement->node[rank], placement->mask[rank]);
		worst = bottleneck < worst ? bottleneck : worst;
		sum += bottleneck;
	}
	key[2] = -worst;
	key[3] = -sum;
}

struct tally_gpus { /* of a leaf, before placement, and what the gang takes */
	int total, free, held, taken, members;
	int nodes_opened; /* wholly free before, partly used afterwards */
};

static void count_leaf(const struct gang *gang, const struct state *state, const struct placement *placement, int leaf,
		       struct tally_gpus *tally)
{
	const struct fabric *fabric = gang->world->fabric;

	memset(tally, 0, sizeof *tally);
	for (int n = 0; n < fabric->node_count; n++) {
		int taken = 0, free = free_count(fabric, state, n);
		int used = mask_count(state->held[n]) + state->counted[n];
		if (fabric->nodes[n].leaf != leaf)
			continue;
		for (int rank = 0; rank < gang->members; rank++) {
			bool here = is_missing(gang, rank) && placement->node[rank] == n;
			taken += here ? gang->job->sizes[rank] : 0;
			tally->members += here;
		}
		tally->total += fabric->nodes[n].gpus;
		tally->free += free;
		tally->held += used < fabric->nodes[n].gpus ? used : fabric->nodes[n].gpus;
		tally->taken += taken;
		tally->nodes_opened += used == 0 && taken > 0 && free > taken;
	}
}

/* History is unknown here and counts 1, what has no data 0. */
static int leaf_score(const struct gang *gang, const struct tally_gpus *tally)
{
	static const int usual[TERMS] = {400, 300, 200, 100, 0};
	const int *weights = gang->bounds ? gang->bounds->weights : usual;
	int terms[TERMS] = {[AVAILABILITY] = 10000 * tally->free / tally->total,
			    [ALIGNMENT] = 10000 * tally->taken / tally->free,
			    [UTILIZATION] = 10000 * tally->held / tally->total,
			    [HISTORY] = 10000},
	    sum = 0, all = 0;
	if (gang->job->strategy == STRATEGY_DISTRIBUTED)
		terms[UTILIZATION] = terms[AVAILABILITY];
	for (int t = 0; t < TERMS; t++) {
		sum += weights[t] * terms[t];
		all += weights[t];
	}
	return sum / all;
}

static void key_steps5and6(const struct gang *gang, const struct state *state, const struct placement *placement,
			   struct key *key)
{
	const struct fabric *fabric = gang->world->fabric;
	int broken_leaves = 0, broken_nodes = 0, opened_leaves = 0, left = 0, free_in_used = 0;

	key->score = 0;
	for (int l = 0; l < fabric->leaf_count; l++) {
		struct tally_gpus tally;
		count_leaf(gang, state, placement, l, &tally);
		if (tally.members == 0)
			continue;
		key->score -= tally.members * leaf_score(gang, &tally);
		broken_leaves += tally.held == 0 && tally.free > tally.taken;
		broken_nodes += tally.nodes_opened;
		opened_leaves += tally.held == 0;
		left += tally.free - tally.taken;
		free_in_used += tally.free;
	}
	memset(key->whole, 0, sizeof key->whole);
	memset(key->step6, 0, sizeof key->step6);
	if (gang->job->latency_sensitive) {
		key->whole[0] = -free_in_used;
		return;
	}
	if (gang->job->strategy != STRATEGY_DISTRIBUTED) {
		key->whole[0] = broken_leaves;
		key->whole[1] = broken_nodes;
	}
	key->step6[0] = opened_leaves;
	key->step6[1] = left;
}

static struct plan plan_of(const struct gang *gang, const struct state *state, const struct placement *placement)
{
	struct plan plan = {.placement = *placement};
	plan.facts = facts_of_nodes(gang->world->fabric, gang->job, placement->node, gang->members);
	key_step3(gang->job, &plan.facts, plan.key.step3);
	key_step4(gang, placement, plan.key.step4);
	key_steps5and6(gang, state, placement, &plan.key);
	return plan;
}

/* Negative, zero, positive as a is better than, equal to, worse than b. */
static int ints_compare(const int *a, const int *b, int count)
{
	for (int i = 0; i < count; i++)
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

static int positions_compare(const struct placement *a, const struct placement *b)
{
	unsigned nodes_a = 0, nodes_b = 0;
	for (int rank = 0; rank < a->members; rank++) { /* a pinned member has no mask here */
		nodes_a |= a->mask[rank] ? 1u << a->node[rank] : 0;
		nodes_b |= b->mask[rank] ? 1u << b->node[rank] : 0;
	}
	while (nodes_a && nodes_b) { /* P1 */
		unsigned first_a = nodes_a & -nodes_a, first_b = nodes_b & -nodes_b;
		if (first_a != first_b)
			return first_a < first_b ? -1 : 1;
		nodes_a &= nodes_a - 1;
		nodes_b &= nodes_b - 1;
	}
	if (nodes_a || nodes_b)
		return nodes_b ? -1 : 1;
	int order = ints_compare(a->node, b->node, a->members);
	for (int rank = 0; order == 0 && rank < a->members; rank++)
		if (a->mask[rank] != b->mask[rank])
			order = set_before(a->mask[rank], b->mask[rank]) ? -1 : 1;
	return order;
}

/* *step: where they differ. */
static int plans_compare(const struct job *job, const struct plan *a, const struct plan *b, enum step *step)
{
	int order = ints_compare(a->key.step3, b->key.step3, STEP3_KEY);
	*step = STEP_3;
	if (order == 0) {
		*step = STEP_4;
		order = ints_compare(a->key.step4, b->key.step4, STEP4_KEY);
	}
	if (order == 0) {
		*step = STEP_5A;
		order = ints_compare(a->key.whole, b->key.whole, WHOLE_KEY);
	}
	for (int turn = 0; order == 0 && turn < 2; turn++) {
		bool sixth = (turn == 0) == (job->strategy == STRATEGY_CONSOLIDATED);
		*step = sixth ? STEP_6 : STEP_5C;
		order = sixth ? ints_compare(a->key.step6, b->key.step6, STEP6_KEY)
			      : ints_compare(&a->key.score, &b->key.score, 1);
	}
	if (order == 0) {
		*step = STEP_7;
		order = positions_compare(&a->placement, &b->placement);
	}
	if (order == 0)
		*step = STEP_NONE;
	return order;
}

/* ---- equal members ---------------------------------------------------------------------------------------------- */

struct candidate {
	unsigned allowed; /* nodes */
	int counts[LEAVES_MAX];
	int per_node; /* of a node at most, pinned ones included */
};

struct search {
	const struct gang *gang;
	const struct state *state;
	struct rule rule; /* kind RULE_NONE: every placement will do */
	unsigned allowed;
	struct room room;
	int pinned[NODES_MAX];
	unsigned pinned_nodes;
	int best[STEP3_KEY];
	int count; /* candidates that are equal up to step 3; only the first 4,096 are kept */
	struct candidate candidates[CANDIDATES_MAX];
};

/* Members that a node takes beside its pinned ones, with so many on a node at most. */
static void places_under(const struct search *search, int per_node, int *places)
{
	for (int n = 0; n < NODES_MAX; n++) {
		int left = per_node - search->pinned[n];
		places[n] = search->room.places[n] < left ? search->room.places[n] : left;
		if (places[n] < 0)
			places[n] = 0;
	}
}

/* The fewest members that the fullest node must take. */
static int fullest_node(const struct search *search, const int *counts)
{
	const struct fabric *fabric = search->gang->world->fabric;
	int per_node = 1;

	for (int n = 0; n < fabric->node_count; n++)
		if (search->pinned[n] > per_node)
			per_node = search->pinned[n];
	for (;; per_node++) {
		int places[NODES_MAX], most[LEAVES_MAX], l = 0;
		places_under(search, per_node, places);
		most_per_leaf(search->gang, places, search->allowed, most);
		while (l < fabric->leaf_count && most[l] >= counts[l])
			l++;
		if (l == fabric->leaf_count)
			return per_node;
	}
}

static int fewest_new_nodes(const struct search *search, unsigned allowed, int leaf, int members)
{
	return fewest_nodes(search->gang->world->fabric, search->room.places, allowed, search->pinned_nodes, leaf,
			    members);
}

static void search_visit(void *context, const int *counts)
{
	struct search *search = context;
	const struct gang *gang = search->gang;
	const struct fabric *fabric = gang->world->fabric;
	int in_leaf[LEAVES_MAX], key[STEP3_KEY], nodes = mask_count(search->pinned_nodes), total = 0;

	memcpy(in_leaf, counts, sizeof in_leaf);
	for (int n = 0; n < fabric->node_count; n++)
		in_leaf[fabric->nodes[n].leaf] += search->pinned[n];
	struct facts facts = facts_of_leaves(fabric, gang->job, in_leaf);
	if (!facts.links_admit)
		return;
	for (int l = 0; l < fabric->leaf_count; l++) {
		total += in_leaf[l];
		if (counts[l] > 0)
			nodes += fewest_new_nodes(search, search->allowed, l, counts[l]);
	}
	facts.nodes = nodes;
	facts.one_domain = true; /* the search is made in one domain at a time */
	if (!rule_is_met(&search->rule, &facts))
		return;
	facts.fullest_node = search->rule.kind == RULE_SINGLE_NODE ? total : fullest_node(search, counts);
	key_step3(gang->job, &facts, key);
	int order = search->count == 0 ? -1 : ints_compare(key, search->best, STEP3_KEY);
	if (order > 0)
		return;
	if (order < 0) {
		search->count = 0;
		memcpy(search->best, key, sizeof key);
	}
	if (search->count < CANDIDATES_MAX) {
		struct candidate *candidate = &search->candidates[search->count];
		candidate->allowed = search->allowed;
		candidate->per_node = gang->job->strategy == STRATEGY_DISTRIBUTED ? facts.fullest_node : MEMBERS_MAX;
		memcpy(candidate->counts, counts, sizeof candidate->counts);
	}
	search->count++;
}

/* Could the leaf's other members still be held, with so many further nodes? */
static bool rest_fits(const struct search *search, unsigned allowed, const int *places, const int *taken, int leaf,
		      int members, int new_nodes)
{
	int left[NODES_MAX];
	unsigned in_use = search->pinned_nodes;
	for (int n = 0; n < NODES_MAX; n++) {
		left[n] = places[n] - taken[n];
		in_use |= taken[n] > 0 ? 1u << n : 0;
	}
	return fewest_nodes(search->gang->world->fabric, left, allowed, in_use, leaf, members) <= new_nodes;
}

/* The nodes of a leaf that its next members choose from. One domain after the other: those of pinned members before
 * others; one that holds all that are left, with the least room, else the one with most; of equals the first. Then nodes in
 * no domain. Where all nodes of the leaf are in one domain, or all in none, or the gang is for one node: all at once. */
static unsigned next_nodes(const struct search *search, const struct candidate *candidate, int leaf, const int *places,
			   unsigned done, int members, int new_nodes)
{
	const struct fabric *fabric = search->gang->world->fabric;
	unsigned nodes = 0, linked = 0, best = 0, loose_pins = 0;
	int asking = 0, best_room = 0;
	bool best_pinned = false, best_holds = false;

	for (int n = 0; n < fabric->node_count; n++)
		if (fabric->nodes[n].leaf == leaf) {
			nodes |= 1u << n;
			linked |= domain_of(fabric, n);
			loose_pins |= domain_of(fabric, n) ? 0 : search->pinned_nodes & (1u << n);
		}
	for (int rank = 0; rank < search->gang->members; rank++)
		asking += search->gang->job->sizes[rank] > 0;
	if (!linked || domain_of(fabric, __builtin_ctz(nodes)) == nodes || search->rule.kind == RULE_SINGLE_NODE ||
	    asking == 1)
		return nodes;
	for (int n = 0; n < fabric->node_count; n++) {
		unsigned party = domain_of(fabric, n) ? domain_of(fabric, n) : loose_pins & (1u << n) ? loose_pins : 0;
		int room = 0;
		if (!(nodes & (1u << n)) || (party & -party) != 1u << n || (party & done))
			continue;
		for (int other = 0; other < fabric->node_count; other++)
			room += party & candidate->allowed & (1u << other) ? places[other] : 0;
		bool pinned = party & search->pinned_nodes;
		bool holds = fewest_nodes(fabric, places, party & candidate->allowed, search->pinned_nodes, leaf,
					  members) <= new_nodes;
		bool better = !best || (pinned && !best_pinned);
		if (best && pinned == best_pinned)
			better = holds != best_holds ? holds : holds ? room < best_room : room > best_room;
		if (room == 0 || !better)
			continue;
		best = party;
		best_room = room;
		best_pinned = pinned;
		best_holds = holds;
	}
	return best ? best : nodes;
}

/* The members that a leaf gets choose one after the other: best bottleneck, fewest GPUs left over, lowest position;
 * never so that the others could not be held by the nodes that are left. */
static void fill_leaf(const struct search *search, const struct candidate *candidate, int leaf, int *taken)
{
	const struct gang *gang = search->gang;
	const struct fabric *fabric = gang->world->fabric;
	bool bounded = search->rule.kind == RULE_SINGLE_NODE || gang->job->strategy == STRATEGY_CONSOLIDATED;
	int new_nodes =
		bounded ? fewest_new_nodes(search, candidate->allowed, leaf, candidate->counts[leaf]) : NODES_MAX;
	int places[NODES_MAX], size = equal_size(gang), to_open = nodes_to_open(gang, leaf);

	new_nodes = new_nodes < to_open ? new_nodes : to_open;
	places_under(search, candidate->per_node, places);
	unsigned done = 0, among = 0;
	for (int left = candidate->counts[leaf]; left > 0;) {
		int best = -1, best_bottleneck = 0, best_left = 0;
		if (among == 0)
			among = next_nodes(search, candidate, leaf, places, done, left, new_nodes);
		for (int n = 0; n < fabric->node_count; n++) {
			if (!(among & candidate->allowed & (1u << n)) || taken[n] == places[n])
				continue;
			bool fresh = taken[n] == 0 && search->pinned[n] == 0;
			taken[n]++;
			bool possible = fresh <= new_nodes && rest_fits(search, candidate->allowed, places, taken, leaf,
									left - 1, new_nodes - fresh);
			taken[n]--;
			if (!possible)
				continue;
			int bottleneck = bottleneck_of(gang, n, search->room.sets[n][taken[n]]);
			int kept = free_count(fabric, search->state, n) - (taken[n] + 1) * size;
			if (best < 0 || bottleneck > best_bottleneck ||
			    (bottleneck == best_bottleneck && kept < best_left)) {
				best = n;
				best_bottleneck = bottleneck;
				best_left = kept;
			}
		}
		if (best < 0) { /* nobody else goes there */
			assert(!(among & done));
			done |= among;
			among = 0;
			continue;
		}
		new_nodes -= taken[best] == 0 && search->pinned[best] == 0;
		taken[best]++;
		left--;
	}
}

/* Each rank takes the first chosen node in fabric order that has a place; on a node they choose in rank order. */
static struct placement candidate_place(const struct search *search, const struct candidate *candidate)
{
	const struct gang *gang = search->gang;
	const struct fabric *fabric = gang->world->fabric;
	struct placement placement = {.members = gang->members};
	int taken[NODES_MAX] = {0}, n = 0, given = 0;

	for (int l = 0; l < fabric->leaf_count; l++)
		fill_leaf(search, candidate, l, taken);
	for (int rank = 0; rank < gang->members; rank++) {
		placement.node[rank] = gang->pin[rank];
		if (!is_missing(gang, rank))
			continue;
		while (given == taken[n]) {
			n++;
			given = 0;
		}
		placement.node[rank] = n;
		placement.mask[rank] = search->room.sets[n][given++];
	}
	return placement;
}

static void search_open(struct search *search, const struct gang *gang, const struct state *state,
			const struct rule *rule)
{
	search->gang = gang;
	search->state = state;
	search->rule = *rule;
	search->count = 0;
	search->pinned_nodes = 0;
	memset(search->pinned, 0, sizeof search->pinned);
	for (int rank = 0; rank < gang->members; rank++)
		if (gang->pin[rank] >= 0) {
			search->pinned[gang->pin[rank]]++;
			search->pinned_nodes |= 1u << gang->pin[rank];
		}
	room_measure(gang, state, &search->room);
}

static void search_in(struct search *search, unsigned allowed)
{
	int most[LEAVES_MAX];

	search->allowed = allowed;
	most_per_leaf(search->gang, search->room.places, allowed, most);
	each_counts(search->gang->world->fabric, most, count_missing(search->gang), search_visit, search);
}

/* Keeps the better plan and at which step the best of the others was beaten. */
static void plan_keep(const struct job *job, const struct plan *plan, struct outcome *outcome)
{
	enum step step = STEP_3;
	int order = outcome->placed ? plans_compare(job, plan, &outcome->plan, &step) : -1;

	if (order < 0)
		outcome->plan = *plan;
	if (order != 0 && outcome->placed && step > outcome->decided)
		outcome->decided = step;
	if (!outcome->placed)
		outcome->decided = STEP_3;
	outcome->placed = true;
	outcome->compared++;
}

static bool plan_equal(const struct gang *gang, const struct state *state, const struct rule *rule, unsigned allowed,
		       struct outcome *outcome)
{
	const struct fabric *fabric = gang->world->fabric;
	static struct search search; /* large */

	search_open(&search, gang, state, rule);
	if (rule->kind == RULE_NVLINK_DOMAIN) {
		for (int n = 0; n < fabric->node_count; n++) {
			unsigned domain = domain_of(fabric, n);
			if ((domain & -domain) == 1u << n && !(search.pinned_nodes & ~domain))
				search_in(&search, allowed & domain);
		}
	} else {
		search_in(&search, allowed);
	}
	outcome->bounded = search.count > CANDIDATES_MAX;
	for (int i = 0; i < search.count && i < CANDIDATES_MAX; i++) {
		struct placement placement = candidate_place(&search, &search.candidates[i]);
		struct plan plan = plan_of(gang, state, &placement);
		assert(ints_compare(plan.key.step3, search.best, STEP3_KEY) == 0);
		plan_keep(gang->job, &plan, outcome);
	}
	return outcome->placed;
}

/* ---- mixed sizes ------------------------------------------------------------------------------------------------ */

/* On each node members choose in rank order. */
static bool masks_choose(const struct gang *gang, const struct state *state, struct placement *placement)
{
	struct state after = *state;

	for (int rank = 0; rank < gang->members; rank++) {
		int n = placement->node[rank];
		if (!is_missing(gang, rank))
			continue;
		placement->mask[rank] = choose_on(gang, n, free_mask(gang->world->fabric, &after, n), after.held[n],
						  gang->job->sizes[rank]);
		if (placement->mask[rank] == 0)
			return false;
		after.held[n] |= placement->mask[rank];
	}
	return true;
}

/* First-fit decreasing in a span, with so many members on a node at most. */
static bool span_plan(const struct gang *gang, const struct state *state, const struct rule *rule, unsigned span,
		      int per_node, struct plan *plan)
{
	struct placement placement = {.members = gang->members};

	if (!first_fit(gang, state, span, per_node, placement.node) || !masks_choose(gang, state, &placement))
		return false;
	*plan = plan_of(gang, state, &placement);
	return plan->facts.links_admit && rule_is_met(rule, &plan->facts);
}

/* The node that a leaf offers for the whole gang. */
static bool leaf_offers(const struct gang *gang, const struct state *state, const struct rule *rule, unsigned allowed,
			int leaf, struct plan *best)
{
	const struct fabric *fabric = gang->world->fabric;
	int best_free = 0;
	bool found = false;

	for (int n = 0; n < fabric->node_count; n++) {
		struct plan plan;
		int free = free_count(fabric, state, n); /* all take the same of it */
		if (fabric->nodes[n].leaf != leaf ||
		    !span_plan(gang, state, rule, allowed & (1u << n), MEMBERS_MAX, &plan))
			continue;
		int order = found ? ints_compare(plan.key.step4, best->key.step4, STEP4_KEY) : -1;
		if (order > 0 || (order == 0 && free >= best_free))
			continue;
		found = true;
		*best = plan;
		best_free = free;
	}
	return found;
}

static bool pins_inside(const struct gang *gang, unsigned nodes)
{
	for (int rank = 0; rank < gang->members; rank++)
		if (gang->pin[rank] >= 0 && !(nodes & (1u << gang->pin[rank])))
			return false;
	return true;
}

/* The best of what first-fit decreasing gives in each span. */
static bool plan_first_fit(const struct gang *gang, const struct state *state, const struct rule *rule,
			   unsigned allowed, struct outcome *outcome)
{
	const struct fabric *fabric = gang->world->fabric;
	bool spreads = gang->job->strategy == STRATEGY_DISTRIBUTED;
	unsigned spans[SPANS_MAX];
	struct plan plan;
	int count = 0, pinned[NODES_MAX] = {0}, most_pinned = 0;

	for (int rank = 0; rank < gang->members; rank++)
		if (gang->pin[rank] >= 0 && ++pinned[gang->pin[rank]] > most_pinned)
			most_pinned = pinned[gang->pin[rank]];

	for (int l = 0; rule->kind == RULE_SINGLE_NODE && l < fabric->leaf_count; l++)
		if (leaf_offers(gang, state, rule, allowed, l, &plan))
			plan_keep(gang->job, &plan, outcome);
	for (int n = 0; rule->kind == RULE_NVLINK_DOMAIN && n < fabric->node_count; n++) {
		unsigned domain = domain_of(fabric, n);
		if ((domain & -domain) == 1u << n)
			spans[count++] = domain;
	}
	if (rule->kind != RULE_SINGLE_NODE && rule->kind != RULE_NVLINK_DOMAIN)
		count = spans_list(fabric, spans);
	for (int per_node = spreads ? 1 : MEMBERS_MAX; per_node <= MEMBERS_MAX; per_node++) {
		for (int i = 0; i < count; i++)
			if (pins_inside(gang, spans[i]) &&
			    span_plan(gang, state, rule, spans[i] & allowed, per_node, &plan))
				plan_keep(gang->job, &plan, outcome);
		if (outcome->placed && per_node >= most_pinned)
			break;
	}
	return outcome->placed;
}

/* The best that any placement attains by step 3, from every set of leaves. */
struct attained {
	const struct pack *pack;
	const struct rule *rule;
	bool found;
	int key[STEP3_KEY];
};

static void attained_visit(void *context, const int *leaves, int fewest, int widest)
{
	struct attained *attained = context;
	const struct pack *pack = attained->pack;
	struct facts facts = facts_of_leaves(pack->gang->world->fabric, pack->gang->job, leaves);
	int key[STEP3_KEY];

	(void)widest;
	facts.nodes = fewest;
	for (int n = 0; n < NODES_MAX; n++)
		facts.nodes += pack->on_node[n] > 0;
	facts.one_domain = true; /* one domain at a time */
	if (!facts.links_admit || !rule_is_met(attained->rule, &facts))
		return;
	facts.fullest_node = pack->per_node;
	facts.fullest_leaf = pack->per_leaf;
	key_step3(pack->gang->job, &facts, key);
	if (!attained->found || ints_compare(key, attained->key, STEP3_KEY) < 0)
		memcpy(attained->key, key, sizeof key);
	attained->found = true;
}

/* `distributed` has at most so many on a node and in a leaf: the first that works. */
static void attained_in(const struct gang *gang, const struct state *state, unsigned allowed, struct attained *attained)
{
	static struct pack pack; /* large */
	bool spreads = gang->job->strategy == STRATEGY_DISTRIBUTED, works = false;
	int per_node = 1, per_leaf = 1;

	pack_open(&pack, gang, state, allowed);
	attained->pack = &pack;
	for (int n = 0; n < NODES_MAX; n++)
		per_node = pack.on_node[n] > per_node ? pack.on_node[n] : per_node;
	for (int l = 0; l < LEAVES_MAX; l++)
		per_leaf = pack.in_leaf[l] > per_leaf ? pack.in_leaf[l] : per_leaf;
	for (pack.per_node = spreads ? per_node : MEMBERS_MAX; pack.per_node <= MEMBERS_MAX && !works;
	     pack.per_node++) {
		pack_fill(&pack);
		struct attained any = {.pack = &pack, .rule = attained->rule};
		each_set(&pack, attained_visit, &any);
		works = any.found;
		for (pack.per_leaf = spreads ? per_leaf : MEMBERS_MAX; works && pack.per_leaf <= MEMBERS_MAX;
		     pack.per_leaf++) {
			struct attained here = {.pack = &pack, .rule = attained->rule};
			pack_fill(&pack);
			each_set(&pack, attained_visit, &here);
			if (!here.found)
				continue;
			if (!attained->found || ints_compare(here.key, attained->key, STEP3_KEY) < 0)
				memcpy(attained->key, here.key, sizeof here.key);
			attained->found = true;
			break;
		}
		pack.per_leaf = MEMBERS_MAX;
	}
}

/* Steps 1 to 3 by brute force. The plan itself is what first fit gives where that is as good; elsewhere there is none
 * here, and any one that is as good will do: see plan_adopt(). */
static bool plan_mixed(const struct gang *gang, const struct state *state, const struct rule *rule, unsigned allowed,
		       struct outcome *outcome)
{
	const struct fabric *fabric = gang->world->fabric;
	struct attained attained = {.rule = rule};
	bool stretches = rule->kind == RULE_SINGLE_NODE || rule->kind == RULE_NVLINK_DOMAIN;

	for (int n = 0; stretches && n < fabric->node_count; n++) {
		unsigned nodes = rule->kind == RULE_SINGLE_NODE ? 1u << n : domain_of(fabric, n);
		if (nodes && pins_inside(gang, nodes))
			attained_in(gang, state, nodes & allowed, &attained);
	}
	if (!stretches)
		attained_in(gang, state, allowed, &attained);
	if (!attained.found)
		return false;
	outcome->open = !plan_first_fit(gang, state, rule, allowed, outcome) ||
			ints_compare(outcome->plan.key.step3, attained.key, STEP3_KEY) != 0;
	assert(outcome->open || ints_compare(outcome->plan.key.step3, attained.key, STEP3_KEY) >= 0);
	memcpy(outcome->plan.key.step3, attained.key, sizeof attained.key);
	outcome->allowed = allowed;
	outcome->decided = STEP_3;
	return outcome->placed = true;
}

/* ---- a gang ----------------------------------------------------------------------------------------------------- */

/* The nodes of a domain by its name; 0 when nothing is called so. */
static unsigned nodes_named(const struct fabric *fabric, const char *name)
{
	unsigned nodes = 0;
	for (int n = 0; name[0] && n < fabric->node_count; n++) {
		const struct leaf *leaf = &fabric->leaves[fabric->nodes[n].leaf];
		if (strcmp(leaf->name, name) == 0 || strcmp(fabric->spine_names[leaf->spine], name) == 0 ||
		    strcmp(fabric->nodes[n].clique, name) == 0)
			nodes |= 1u << n;
	}
	return nodes;
}

/* ---- segments ----------------------------------------------------------------------------------------------------- */

struct segmented { /* the best that any way attains by step 3 */
	const struct rule *rule;
	int per_node, per_leaf;
	bool found;
	int key[STEP3_KEY];
};

static void segmented_visit(void *context, const struct cast *cast)
{
	struct segmented *best = context;
	int in_leaf[LEAVES_MAX], key[STEP3_KEY], nodes;

	if (!cast_count(cast, in_leaf, &nodes))
		return;
	struct facts facts = facts_of_leaves(cast->gang->world->fabric, cast->gang->job, in_leaf);
	facts.nodes = nodes;
	if (!facts.links_admit || !rule_is_met(best->rule, &facts) || facts.fullest_leaf > best->per_leaf)
		return;
	facts.fullest_node = best->per_node;
	key_step3(cast->gang->job, &facts, key);
	if (!best->found || ints_compare(key, best->key, STEP3_KEY) < 0)
		memcpy(best->key, key, sizeof key);
	best->found = true;
}

/* Steps 1 to 3: of the plan itself only how good it is. */
static bool plan_segmented(const struct gang *gang, const struct state *state, const struct rule *rule,
			   unsigned allowed, struct outcome *outcome)
{
	bool spreads = gang->job->strategy == STRATEGY_DISTRIBUTED;
	struct segmented best = {.rule = rule, .per_leaf = MEMBERS_MAX};
	struct room room;
	int pinned[NODES_MAX] = {0}, most_pinned = 1;

	room_measure(gang, state, &room);
	for (int rank = 0; rank < gang->members; rank++)
		if (gang->pin[rank] >= 0 && ++pinned[gang->pin[rank]] > most_pinned)
			most_pinned = pinned[gang->pin[rank]];
	for (best.per_node = spreads ? most_pinned : MEMBERS_MAX; best.per_node <= MEMBERS_MAX && !best.found;
	     best.per_node++) {
		int places[NODES_MAX];
		for (int n = 0; n < NODES_MAX; n++) {
			int most = best.per_node - pinned[n];
			places[n] = room.places[n] < most ? room.places[n] : most > 0 ? most : 0;
		}
		each_cast(gang, places, allowed, segmented_visit, &best);
	}
	if (!best.found)
		return false;
	outcome->open = true;
	outcome->allowed = allowed;
	outcome->decided = STEP_3;
	memcpy(outcome->plan.key.step3, best.key, sizeof best.key);
	return outcome->placed = true;
}

static bool plan_under(const struct gang *gang, const struct state *state, const struct rule *rule, unsigned allowed,
		       struct outcome *outcome)
{
	if (is_segmented(gang) && rule->kind != RULE_NONE) {
		if (rule->kind > RULE_NVLINK_DOMAIN)
			return plan_segmented(gang, state, rule, allowed, outcome);
		allowed &= segment_nodes(gang);
	}
	return sizes_equal(gang->job, gang->members) ? plan_equal(gang, state, rule, allowed, outcome)
						     : plan_mixed(gang, state, rule, allowed, outcome);
}

static bool may_relax(const struct job *job, const struct rule *rule)
{
	return rule->shapeless || (job->mode == MODE_PREFERRED && !job->latency_sensitive);
}

/* With the rule met, or not at all. */
static struct outcome gang_plan_met(const struct gang *gang, const struct state *state)
{
	struct outcome outcome = {.rule = rule_of(gang), .members = gang->members};
	unsigned preferred = nodes_named(gang->world->fabric, gang->job->preferred);

	if (outcome.rule.never || outcome.rule.too_wide || outcome.rule.shapeless)
		return outcome;
	if (preferred && pins_inside(gang, preferred))
		outcome.inside = plan_under(gang, state, &outcome.rule, preferred, &outcome);
	if (!outcome.inside)
		plan_under(gang, state, &outcome.rule, ~0u, &outcome);
	return outcome;
}

static struct outcome gang_plan(const struct gang *gang, const struct state *state)
{
	const struct rule none = {.kind = RULE_NONE};
	struct outcome outcome = gang_plan_met(gang, state);

	if (outcome.placed || outcome.rule.never || outcome.rule.too_wide || !may_relax(gang->job, &outcome.rule))
		return outcome;
	outcome.relaxed = plan_under(gang, state, &none, ~0u, &outcome);
	return outcome;
}

/* The node of each rank in an answer, where the outcome is open: if every constraint is met, and step 3 no worse than
 * possible, the outcome's plan is this one from now on. */
static bool plan_adopt(const struct gang *gang, const struct state *state, const int *node, struct outcome *outcome)
{
	const struct fabric *fabric = gang->world->fabric;
	const struct rule none = {.kind = RULE_NONE};
	struct placement placement = {.members = gang->members};
	bool segmented = is_segmented(gang) && !outcome->relaxed && outcome->rule.kind != RULE_NONE;
	int placed[NODES_MAX] = {0}, gpus[NODES_MAX] = {0}, in_leaf[LEAVES_MAX] = {0}, opened[LEAVES_MAX] = {0};

	for (int rank = 0; rank < gang->members; rank++) {
		int n = placement.node[rank] = is_missing(gang, rank) ? node[rank] : gang->pin[rank];
		if (!is_missing(gang, rank))
			continue;
		if (n < 0 || !(outcome->allowed & (1u << n)) || !node_admits(&fabric->nodes[n], gang->job) ||
		    state->closed[n])
			return false;
		for (int lower = 0; lower < rank; lower++)
			if (!segmented && is_missing(gang, lower) &&
			    gang->job->sizes[lower] == gang->job->sizes[rank] && node[lower] > n)
				return false;
		placed[n]++;
		gpus[n] += gang->job->sizes[rank];
	}
	for (int n = 0; n < fabric->node_count; n++) {
		bool stays = false;
		for (int rank = 0; rank < gang->members; rank++)
			stays = stays || gang->pin[rank] == n;
		in_leaf[fabric->nodes[n].leaf] += gpus[n];
		opened[fabric->nodes[n].leaf] += placed[n] > 0 && !stays;
		if (placed[n] > 0 && (placed[n] > node_bound(gang, true, n) || gpus[n] > free_count(fabric, state, n)))
			return false;
	}
	for (int l = 0; l < fabric->leaf_count; l++)
		if (in_leaf[l] > 0 && (in_leaf[l] + pinned_share(gang, l).gpus > max_gpus_per_leaf(gang, l) ||
				       (opened[l] > nodes_to_open(gang, l) && !fabric->leaves[l].loose)))
			return false;
	if (segmented && (!segments_met(gang, placement.node) || !segments_ordered(gang, placement.node)))
		return false;
	if (!masks_choose(gang, state, &placement))
		return false;
	struct plan plan = plan_of(gang, state, &placement);
	if (!plan.facts.links_admit || !rule_is_met(outcome->relaxed ? &none : &outcome->rule, &plan.facts) ||
	    ints_compare(plan.key.step3, outcome->plan.key.step3, STEP3_KEY) != 0)
		return false;
	outcome->plan = plan;
	outcome->open = false;
	outcome->adopted = true;
	return true;
}

/* All members, else the minMember lowest ranks. */
static struct outcome job_plan(struct world *world, const struct job *job, const struct state *state)
{
	struct gang gang = gang_of(world, job, job->members);
	struct outcome outcome = gang_plan(&gang, state);

	if (outcome.placed || job->min_member == 0 || job->min_member == job->members)
		return outcome;
	gang.members = job->min_member;
	return gang_plan(&gang, state);
}

static bool gpu_count_wrong(const struct job *job)
{
	return job->gpu_count > 0 && job->gpu_count != job_total_gpus(job);
}

static void placement_take(struct state *state, const struct placement *placement)
{
	for (int rank = 0; rank < placement->members; rank++)
		if (placement->node[rank] >= 0)
			state->held[placement->node[rank]] |= placement->mask[rank];
}

static void placement_give(struct state *state, const struct placement *placement)
{
	for (int rank = 0; rank < placement->members; rank++)
		if (placement->node[rank] >= 0)
			state->held[placement->node[rank]] &= ~placement->mask[rank];
}

#endif
