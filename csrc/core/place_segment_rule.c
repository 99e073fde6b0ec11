/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_segment_rule.c - spec 3.3 with segments, for members of one size: the rule, from capacity alone, counted in whole
 * segments. Beside them every run has to find a place for the short one, which may use what is left of a domain, and may be
 * all that a leaf or spine of the run has.
 *
 * `distributed` counts one node per member. Where that is possible it is the same question with one member on a node; where
 * the cluster has fewer nodes, a table says how many of them segments can be spread over.
 */
#include "core/place_segment.h"

/* ---- what a leaf could hold ------------------------------------------------------------------------------------------- */

struct could {                     /* in the scratch, by leaf */
	uint16_t whole, with_tail; /* of struct segment_hold */
	uint32_t crossed;          /* its link is fast enough */
};
_Static_assert(sizeof(struct could) == sizeof(uint64_t), "one for each leaf, where sums are");

static struct could *coulds(const struct place_work *work)
{
	return (struct could *)(void *)work->scratch.sum;
}

/* `single`: one member on a node. */
static struct segment_hold holding_ever(struct place_work *work, uint32_t leaf, bool single)
{
	const struct ask *ask = work->ask;
	const struct segment_need *need = &work->segments.ever;
	struct segment_hold holding;
	if (!work->segments.nvlink) {
		uint32_t nodes, each, members = place_cap(work, leaf, &nodes, &each);
		if (!place_cap_counted(work, leaf))
			budget_charge(&work->budget, (uint64_t)STEPS_PART * leaf_nodes(work->fabric, leaf));
		return holding_of_members(single ? nodes : members, need);
	}
	struct parts parts = parts_of(work, leaf, false);
	holding = holding_of_parts(single ? parts.nodes : parts.room, parts.count, need);
	if (ask->max_nodes_per_leaf > 0 && single) {
		holding = holding_under(holding, need, ask->max_nodes_per_leaf);
	} else if (ask->max_nodes_per_leaf > 0) {
		struct fewest fewest;
		fewest_in(work, leaf, &parts, parts.count, false, &fewest);
		holding = holding_by_nodes(&fewest, ask->max_nodes_per_leaf);
	}
	if (ask->max_gpus_per_leaf > 0)
		holding = holding_under(holding, need, ask->max_gpus_per_leaf / work->gang.size);
	return holding;
}

static void count_leaves(struct place_work *work, bool single)
{
	for (uint32_t leaf = 0; leaf < work->fabric->leaf_count; leaf++) {
		struct segment_hold holding = holding_ever(work, leaf, single);
		coulds(work)[leaf] = (struct could){.whole = (uint16_t)min_u32(holding.whole, INT16_MAX),
						    .with_tail = (uint16_t)min_u32(holding.with_tail, INT16_MAX),
						    .crossed = !item_slow(work, leaf)};
	}
}

/* ---- how many nodes segments can be spread over ------------------------------------------------------------------------ */

/* The most nodes that 0, 1, … whole segments can use, + 1; [1]: and the short one; 0: they do not fit. */
struct reach {
	uint16_t nodes[2][ROW];
	uint32_t most;
};

static struct reach *reach_none(struct reach *reach)
{
	reach->most = 0;
	reach->nodes[0][0] = 1;
	reach->nodes[1][0] = 0;
	return reach;
}

/* Both together. */
static void reach_add(struct place_work *work, struct reach *reach, const struct reach *more)
{
	uint32_t all = reach->most + more->most, most = min_u32(min_u32(all, work->segments.ever.whole), ROW - 1);
	work->budget.spent |= all > ROW - 1 && work->segments.ever.whole > ROW - 1; /* more is not looked at */
	budget_charge(&work->budget, (uint64_t)(most + 1) * (more->most + 1));
	for (uint32_t w = reach->most + 1; w <= most; w++)
		reach->nodes[0][w] = reach->nodes[1][w] = 0;
	for (uint32_t w = most + 1; w-- > 0;) {
		uint32_t best[2] = {0, 0};
		for (uint32_t j = w > reach->most ? w - reach->most : 0; j <= min_u32(more->most, w); j++)
			for (uint32_t way = 0; way < 3;
			     way++) { /* the short one is in neither, in the first, in the other */
				uint32_t a = reach->nodes[way == 1][w - j], b = more->nodes[way == 2][j];
				if (a > 0 && b > 0)
					best[way > 0] = max_u32(best[way > 0], a + b - 1);
			}
		reach->nodes[0][w] = (uint16_t)best[0];
		reach->nodes[1][w] = (uint16_t)best[1];
	}
	reach->most = most;
}

static void reach_domain(const struct segment_need *need, uint32_t room, uint32_t nodes, struct reach *reach)
{
	reach->most = min_u32(min_u32(room / need->size, need->whole), ROW - 1);
	for (uint32_t w = 0; w <= reach->most; w++)
		for (uint32_t tail = 0; tail < 2; tail++) {
			uint32_t members = w * need->size + tail * need->tail;
			bool fits = members <= room && !(tail && need->tail == 0);
			reach->nodes[tail][w] = (uint16_t)(fits ? min_u32(nodes, members) + 1 : 0);
		}
}

/* `used`: it must be, as every leaf of a run. */
static void reach_add_leaf(struct place_work *work, struct reach *reach, uint32_t leaf, bool used)
{
	const struct could *could = &coulds(work)[leaf];
	const struct segment_need *need = &work->segments.ever;
	struct reach here, domain;
	uint32_t cap = UINT16_MAX - 1;
	reach_none(&here);
	if (work->segments.nvlink) {
		struct parts parts = parts_of(work, leaf, false);
		for (uint32_t part = 0; part < parts.count; part++) {
			reach_domain(need, parts.room[part], parts.nodes[part], &domain);
			reach_add(work, &here, &domain);
		}
	} else {
		uint32_t nodes, each, members = place_cap(work, leaf, &nodes, &each);
		reach_domain(need, members, nodes, &here);
	}
	if (work->ask->max_nodes_per_leaf > 0)
		cap = min_u32(cap, work->ask->max_nodes_per_leaf);
	here.most = min_u32(here.most, could->whole);
	for (uint32_t w = 0; w <= here.most; w++) {
		here.nodes[0][w] = (uint16_t)min_u32(here.nodes[0][w], cap + 1);
		here.nodes[1][w] = (uint16_t)(w + 1 > could->with_tail ? 0 : min_u32(here.nodes[1][w], cap + 1));
	}
	if (used)
		here.nodes[0][0] = 0;
	reach_add(work, reach, &here);
}

/* Nodes that the whole gang can use; 0: it does not fit. */
static uint32_t reach_of_gang(const struct place_work *work, const struct reach *reach)
{
	const struct segment_need *need = &work->segments.ever;
	uint32_t nodes = need->whole <= reach->most ? reach->nodes[need->tail > 0][need->whole] : 0;
	return nodes > 0 ? nodes - 1 : 0;
}

/* ---- leaves, all of which are to be used ------------------------------------------------------------------------------- */

struct tally {
	uint64_t whole;
	uint32_t leaves, only_tail; /* of them, those that could take the short one alone */
	bool spare;                 /* in one of them the short one takes no other's place */
};

static bool tally_add(struct tally *tally, const struct could *could)
{
	if (could->whole == 0 && could->with_tail == NO_TAIL)
		return false;
	tally->whole += could->whole;
	tally->leaves++;
	tally->only_tail += could->whole == 0;
	tally->spare |= could->with_tail == could->whole + 1u;
	return tally->only_tail <= 1;
}

/* Whole segments that the leaves take beside the short one, if it is here. */
static uint64_t tally_whole(const struct tally *tally, bool tail)
{
	if (!tail)
		return tally->only_tail > 0 ? 0 : tally->whole;
	return tally->spare || tally->only_tail > 0 ? tally->whole : tally->whole - 1;
}

static bool tally_enough(const struct place_work *work, const struct tally *tally)
{
	const struct segment_need *need = &work->segments.ever;
	return tally_whole(tally, need->tail > 0) >= need->whole && tally->leaves <= need->whole + (need->tail > 0) &&
	       (tally->only_tail == 0 || need->tail > 0);
}

struct spread { /* of `distributed`, where the cluster has fewer nodes than the gang has members */
	bool on;
	uint32_t nodes; /* that have to be used */
};

/* Everything that a gang may cross, or one slow leaf: does it hold the gang? */
static bool somewhere_enough(struct place_work *work)
{
	const struct segment_need *need = &work->segments.ever;
	struct tally fast = {.whole = 0};
	for (uint32_t leaf = 0; leaf < work->fabric->leaf_count; leaf++) {
		struct tally slow = {.whole = 0};
		const struct could *could = &coulds(work)[leaf];
		if (could->crossed)
			tally_add(&fast, could);
		else if (tally_add(&slow, could) && tally_enough(work, &slow))
			return true;
	}
	return fast.whole >= need->whole + (need->tail > 0 && !fast.spare) && fast.leaves > 0;
}

/* n of `distributed`, where it is less than one node per member. */
static uint32_t most_nodes(struct place_work *work)
{
	struct reach fast, slow;
	uint32_t most = 0;
	reach_none(&fast);
	for (uint32_t leaf = 0; leaf < work->fabric->leaf_count; leaf++) {
		if (coulds(work)[leaf].crossed) {
			reach_add_leaf(work, &fast, leaf, false);
			continue;
		}
		reach_add_leaf(work, reach_none(&slow), leaf, true);
		most = max_u32(most, reach_of_gang(work, &slow));
	}
	return max_u32(max_u32(most, reach_of_gang(work, &fast)), 1);
}

/* ---- runs ---------------------------------------------------------------------------------------------------------------- */

/* Each node of the leaf is needed. */
static bool needs_each_node(struct place_work *work, uint32_t leaf)
{
	const struct segment_need *need = &work->segments.ever;
	uint32_t all = leaf_nodes(work->fabric, leaf), nodes;
	if (place_counts_nodes(work))
		return work->answer->need_nodes >= all;
	if (work->segments.nvlink) {
		struct fewest fewest;
		struct parts parts = parts_of(work, leaf, false);
		fewest_in(work, leaf, &parts, parts.count, false, &fewest);
		nodes = need->whole <= fewest.most ? fewest.nodes[need->tail > 0][need->whole] : NO_NODES;
	} else {
		struct rooms rooms = {.spare = 0};
		for (uint32_t at = item_start(work, leaf); at < item_end(work, leaf); at++)
			rooms.count[place_node_cap(work, at)]++;
		nodes = rooms_fewest(&rooms, work->gang.total);
	}
	return nodes >= all;
}

/* The shortest run of leaves that could hold the gang; 0: none. */
static uint32_t shortest_run(struct place_work *work, const struct spread *spread, bool *spare)
{
	const struct fabric *fabric = work->fabric;
	uint32_t best = 0;
	for (uint32_t first = 0; first < fabric->leaf_count; first++) {
		struct tally tally = {.whole = 0};
		struct reach reach;
		uint32_t end = fabric->spine_start[fabric->leaf_spine[first] + 1];
		reach_none(&reach);
		for (uint32_t leaf = first; leaf < end && (best == 0 || leaf - first < best); leaf++) {
			const struct could *could = &coulds(work)[leaf];
			budget_charge(&work->budget, 2);
			if ((leaf > first && (!could->crossed || !coulds(work)[first].crossed)) ||
			    !tally_add(&tally, could))
				break;
			if (spread->on)
				reach_add_leaf(work, &reach, leaf, true);
			if (!tally_enough(work, &tally) || (spread->on && reach_of_gang(work, &reach) < spread->nodes))
				continue;
			best = leaf - first + 1;
			if (best == 1)
				*spare = *spare || !needs_each_node(work, leaf);
			break;
		}
	}
	return best;
}

/* ---- spines -------------------------------------------------------------------------------------------------------------- */

struct spine_could { /* the most that a run of the spine takes */
	uint32_t whole;
	uint32_t with_tail; /* + 1; 0: it does not fit */
};
_Static_assert(sizeof(struct spine_could) <= sizeof(struct spine_view), "there is one for each spine");

static struct spine_could spine_could(struct place_work *work, uint32_t spine)
{
	const struct fabric *fabric = work->fabric;
	struct spine_could best = {.whole = 0};
	for (uint32_t first = fabric->spine_start[spine]; first < fabric->spine_start[spine + 1]; first++) {
		struct tally tally = {.whole = 0};
		for (uint32_t leaf = first; leaf < fabric->spine_start[spine + 1]; leaf++) {
			const struct could *could = &coulds(work)[leaf];
			budget_charge(&work->budget, 2);
			if (!could->crossed || !tally_add(&tally, could))
				break;
			best.whole = max_u32(best.whole, (uint32_t)tally_whole(&tally, false));
			if (work->segments.ever.tail > 0)
				best.with_tail = max_u32(best.with_tail, (uint32_t)tally_whole(&tally, true) + 1);
		}
	}
	return best;
}

static void reach_better(struct reach *best, const struct reach *reach)
{
	for (uint32_t w = 0; w <= reach->most; w++)
		for (uint32_t tail = 0; tail < 2; tail++) {
			uint16_t before = w <= best->most ? best->nodes[tail][w] : 0;
			best->nodes[tail][w] = reach->nodes[tail][w] > before ? reach->nodes[tail][w] : before;
		}
	best->most = max_u32(best->most, reach->most);
}

/* The runs of a spine, the best for each number of segments. */
static void reach_spine(struct place_work *work, uint32_t spine, struct reach *best)
{
	const struct fabric *fabric = work->fabric;
	reach_none(best);
	for (uint32_t first = fabric->spine_start[spine]; first < fabric->spine_start[spine + 1]; first++) {
		struct tally tally = {.whole = 0};
		struct reach reach;
		reach_none(&reach);
		for (uint32_t leaf = first; leaf < fabric->spine_start[spine + 1]; leaf++) {
			if (!coulds(work)[leaf].crossed || !tally_add(&tally, &coulds(work)[leaf]))
				break;
			reach_add_leaf(work, &reach, leaf, true);
			reach_better(best, &reach);
		}
	}
	best->nodes[0][0] = 0; /* every spine is used */
}

struct chain { /* of adjacent spines */
	uint64_t whole;
	int64_t tail;   /* what the short one takes of it, at best, or adds; INT64_MIN: it does not fit */
	uint32_t empty; /* spines that could not do without it */
};

static bool chain_add(struct chain *chain, const struct spine_could *could)
{
	int64_t more = (int64_t)could->with_tail - 1 - (int64_t)could->whole;
	chain->whole += could->whole;
	chain->empty += could->whole == 0;
	if (could->with_tail > 0 && (could->whole == 0 || (chain->empty == 0 && more > chain->tail)))
		chain->tail = more; /* it is in the one that has no other, if there is one */
	return (could->whole > 0 || could->with_tail > 0) && chain->empty <= 1;
}

static bool chain_enough(const struct place_work *work, const struct chain *chain)
{
	const struct segment_need *need = &work->segments.ever;
	if (need->tail == 0)
		return chain->whole >= need->whole;
	return chain->tail != INT64_MIN && (int64_t)chain->whole + chain->tail >= (int64_t)need->whole;
}

static uint32_t fewest_spines(struct place_work *work, const struct spread *spread)
{
	const struct fabric *fabric = work->fabric;
	struct spine_could *could = (struct spine_could *)(void *)work->scratch.cells;
	uint32_t best = 0;
	for (uint32_t spine = 0; spine < fabric->spine_count; spine++)
		could[spine] = spine_could(work, spine);
	for (uint32_t first = 0; first < fabric->spine_count; first++) {
		struct chain chain = {.tail = INT64_MIN};
		struct reach reach, here;
		reach_none(&reach);
		for (uint32_t spine = first; spine < fabric->spine_count && (best == 0 || spine - first + 1 < best);
		     spine++) {
			budget_charge(&work->budget, 2);
			if ((spine > first && !spine_adjacent(fabric, spine)) || !chain_add(&chain, &could[spine]))
				break;
			if (spread->on) {
				reach_spine(work, spine, &here);
				reach_add(work, &reach, &here);
			}
			if (chain_enough(work, &chain) &&
			    !(spread->on && reach_of_gang(work, &reach) < spread->nodes)) {
				best = spine - first + 1;
				break;
			}
		}
	}
	return best;
}

/* ---- the rule ------------------------------------------------------------------------------------------------------------ */

static bool node_could(const struct place_work *work)
{
	if (work->gang.total > FROND_GPUS_MAX)
		return false;
	for (uint32_t at = 0; at < work->fabric->leaf_start[work->fabric->leaf_count]; at++)
		if (place_node_cap(work, at) >= work->gang.total)
			return true;
	return false;
}

/* n, and what leaves could hold when that many nodes are used. */
static struct spread count_nodes(struct place_work *work)
{
	struct spread spread = {.on = false, .nodes = work->gang.total};
	if (!place_counts_nodes(work)) {
		count_leaves(work, false);
		return spread;
	}
	count_leaves(work, true);
	if (somewhere_enough(work))
		return spread;
	count_leaves(work, false);
	spread.on = true;
	spread.nodes = most_nodes(work);
	return spread;
}

static bool find_rule(struct place_work *work)
{
	struct answer *answer = work->answer;
	struct spread spread = count_nodes(work);
	bool spare = false, one_node = node_could(work);
	answer->need_nodes = place_counts_nodes(work) ? spread.nodes : one_node ? 1 : 2;
	answer->need_leaves = answer->need_spines = 0;
	if (answer->need_nodes == 1 && one_node) {
		answer->plan.rule = FROND_RULE_SINGLE_NODE;
		return true;
	}
	if (work->ask->latency_sensitive && place_domain_could(work)) {
		answer->need_leaves = 1;
		answer->plan.rule = FROND_RULE_NVLINK_DOMAIN;
		return true;
	}
	answer->need_leaves = shortest_run(work, &spread, &spare);
	if (answer->need_leaves > 0) {
		answer->plan.rule = answer->need_leaves > 1 ? FROND_RULE_ADJACENT_LEAVES
				    : spare                 ? FROND_RULE_SAME_LEAF
							    : FROND_RULE_COMPLETE_LEAF;
		return true;
	}
	answer->plan.rule = FROND_RULE_ADJACENT_SPINES;
	answer->need_spines = fewest_spines(work, &spread);
	return answer->need_spines > 0;
}

/* The rule that the gang would have without segments stays its name when no part of the fabric could hold them. */
bool segments_rule(struct place_work *work)
{
	struct answer before = *work->answer;
	segments_turn(work, SEGMENTS_NODES);
	bool found = find_rule(work);
	segments_turn(work, SEGMENTS_OFF);
	if (!found)
		*work->answer = before;
	return found;
}
