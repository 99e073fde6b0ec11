/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_segment_rule.c - reference 3.3 with segments, for members of one size: the rule, from capacity alone, counted in whole
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
	uint16_t nodes;            /* that members could use, at most */
	uint16_t crossed;          /* its link is fast enough */
};
_Static_assert(sizeof(struct could) == sizeof(uint64_t), "one for each leaf, where sums are");

static struct could *coulds(const struct place_work *work)
{
	return (struct could *)(void *)work->scratch.sum;
}

/* `single`: one member on a node. *nodes: that take any. */
static struct segment_hold holding_ever(struct place_work *work, uint32_t leaf, bool single, uint32_t *nodes)
{
	const struct ask *ask = work->ask;
	const struct segment_need *need = &work->segments.ever;
	struct segment_hold holding;
	if (!work->segments.nvlink) {
		uint32_t each, members = place_cap(work, leaf, nodes, &each);
		if (!place_cap_counted(work, leaf))
			budget_charge(&work->budget, (uint64_t)STEPS_PART * leaf_nodes(work->fabric, leaf));
		return holding_of_members(single ? *nodes : members, need);
	}
	struct parts parts;
	parts_of(work, leaf, false, &parts);
	*nodes = 0;
	for (uint32_t part = 0; part < parts.count; part++)
		*nodes += parts.nodes[part];
	holding = holding_of_parts(single ? parts.nodes : parts.room, parts.count, need);
	if (ask->max_nodes_per_leaf > 0 && single) {
		holding = holding_under(holding, need, ask->max_nodes_per_leaf);
	} else if (ask->max_nodes_per_leaf > 0) {
		struct fewest fewest;
		fewest_in(work, &parts, false, &fewest);
		holding = holding_by_nodes(&fewest, ask->max_nodes_per_leaf);
	}
	if (ask->max_gpus_per_leaf > 0)
		holding = holding_under(holding, need, ask->max_gpus_per_leaf / work->gang.size);
	return holding;
}

static void count_leaves(struct place_work *work, bool single)
{
	for (uint32_t leaf = 0; leaf < work->fabric->leaf_count; leaf++) {
		uint32_t nodes;
		struct segment_hold holding = holding_ever(work, leaf, single, &nodes);
		coulds(work)[leaf] = (struct could){.whole = (uint16_t)min_u32(holding.whole, INT16_MAX),
						    .with_tail = (uint16_t)min_u32(holding.with_tail, INT16_MAX),
						    .nodes = (uint16_t)nodes,
						    .crossed = !item_slow(work, leaf)};
	}
}

/* ---- how many nodes segments can be spread over ------------------------------------------------------------------------ */

/* The most nodes that 0, 1, … whole segments can use; [1]: and the short one; below 0: they do not fit. */
struct reach {
	int16_t nodes[2][ROW + LANES]; /* NO_REACH in the lanes behind `most` */
	uint32_t most;
};

/* They reach so far; behind that, nothing. */
static void reach_end(struct reach *reach, uint32_t most)
{
	reach->most = most;
	for (uint32_t w = most + 1; w <= most + LANES; w++)
		reach->nodes[0][w] = reach->nodes[1][w] = NO_REACH;
}

static struct reach *reach_none(struct reach *reach)
{
	reach->nodes[0][0] = 0;
	reach->nodes[1][0] = NO_REACH;
	reach_end(reach, 0);
	return reach;
}

/* Both together. Where the budget ends nobody knows. */
static void reach_add(struct place_work *work, struct reach *reach, const struct reach *more)
{
	bool tail = work->segments.ever.tail > 0;
	uint32_t all = reach->most + more->most, most = min_u32(min_u32(all, work->segments.ever.whole), ROW - 1);
	const struct reach *few = more->most < reach->most ? more : reach, *many = few == more ? reach : more;
	work->budget.spent |= all > ROW - 1 && work->segments.ever.whole > ROW - 1; /* more is not looked at */
	if (!budget_take(&work->budget, STEPS_PART + (most / LANES + 1ull) * (few->most + 2))) {
		work->segments.unknown = true;
		return;
	}
	struct reach both;
	for (uint32_t w = 0; w <= most; w++)
		both.nodes[0][w] = both.nodes[1][w] = NO_REACH;
	reach_end(&both, most);
	for (uint32_t j = 0; j <= min_u32(few->most, most); j++) {
		uint32_t count = min_u32(many->most, most - j) + 1;
		if (few->nodes[0][j] >= 0) {
			row_most(both.nodes[0] + j, many->nodes[0], count, few->nodes[0][j]);
			if (tail)
				row_most(both.nodes[1] + j, many->nodes[1], count, few->nodes[0][j]);
		}
		if (tail && few->nodes[1][j] >= 0)
			row_most(both.nodes[1] + j, many->nodes[0], count, few->nodes[1][j]);
	}
	for (uint32_t w = 0; w <= most; w++)
		for (uint32_t with = 0; with < 2; with++)
			reach->nodes[with][w] = both.nodes[with][w] < 0 ? NO_REACH : both.nodes[with][w];
	reach_end(reach, most);
}

static void reach_domain(const struct segment_need *need, uint32_t room, uint32_t nodes, struct reach *reach)
{
	uint32_t most = min_u32(min_u32(room / need->size, need->whole), ROW - 1);
	for (uint32_t w = 0; w <= most; w++)
		for (uint32_t tail = 0; tail < 2; tail++) {
			uint32_t members = w * need->size + tail * need->tail;
			bool fits = members <= room && !(tail && need->tail == 0);
			reach->nodes[tail][w] = (int16_t)(fits ? (int32_t)min_u32(nodes, members) : NO_REACH);
		}
	reach_end(reach, most);
}

/* `used`: it must be, as every leaf of a run. */
static void reach_add_leaf(struct place_work *work, struct reach *reach, uint32_t leaf, bool used)
{
	const struct could *could = &coulds(work)[leaf];
	const struct segment_need *need = &work->segments.ever;
	struct reach here, domain;
	int16_t cap = INT16_MAX;
	reach_none(&here);
	if (work->segments.nvlink) {
		struct parts parts;
		parts_of(work, leaf, false, &parts);
		for (uint32_t part = 0; part < parts.count && !work->segments.unknown; part++) {
			reach_domain(need, parts.room[part], parts.nodes[part], &domain);
			reach_add(work, &here, &domain);
		}
	} else {
		uint32_t nodes, each, members = place_cap(work, leaf, &nodes, &each);
		reach_domain(need, members, nodes, &here);
	}
	if (work->ask->max_nodes_per_leaf > 0)
		cap = (int16_t)min_u32(INT16_MAX, work->ask->max_nodes_per_leaf);
	reach_end(&here, min_u32(here.most, could->whole));
	for (uint32_t w = 0; w <= here.most; w++) {
		here.nodes[0][w] = here.nodes[0][w] < cap ? here.nodes[0][w] : cap;
		here.nodes[1][w] = here.nodes[1][w] < cap ? here.nodes[1][w] : cap;
		if (w + 1 > could->with_tail)
			here.nodes[1][w] = NO_REACH;
	}
	if (used)
		here.nodes[0][0] = NO_REACH;
	reach_add(work, reach, &here);
}

/* Nodes that the whole gang can use; 0: it does not fit. */
static uint32_t reach_of_gang(const struct place_work *work, const struct reach *reach)
{
	const struct segment_need *need = &work->segments.ever;
	if (need->whole > reach->most || reach->nodes[need->tail > 0][need->whole] < 0)
		return 0;
	return (uint32_t)reach->nodes[need->tail > 0][need->whole];
}

/* ---- leaves, all of which are to be used ------------------------------------------------------------------------------- */

struct tally {
	uint64_t whole;
	uint32_t leaves, only_tail; /* of them, those that could take the short one alone */
	uint32_t spare;             /* and those in which it takes no other's place */
	uint64_t nodes;             /* that members could use, at most */
};

static bool tally_add(struct tally *tally, const struct could *could)
{
	if (could->whole == 0 && could->with_tail == NO_TAIL)
		return false;
	tally->whole += could->whole;
	tally->leaves++;
	tally->only_tail += could->whole == 0;
	tally->spare += could->with_tail == could->whole + 1u;
	tally->nodes += could->nodes;
	return tally->only_tail <= 1;
}

static void tally_remove(struct tally *tally, const struct could *could)
{
	tally->whole -= could->whole;
	tally->leaves--;
	tally->only_tail -= could->whole == 0;
	tally->spare -= could->with_tail == could->whole + 1u;
	tally->nodes -= could->nodes;
}

/* Whole segments that the leaves take beside the short one, if it is here. */
static uint64_t tally_whole(const struct tally *tally, bool tail)
{
	if (!tail)
		return tally->only_tail > 0 ? 0 : tally->whole;
	return tally->spare > 0 || tally->only_tail > 0 ? tally->whole : tally->whole - 1;
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
	return fast.whole >= need->whole + (need->tail > 0 && fast.spare == 0) && fast.leaves > 0;
}

/* n of `distributed`, where it is less than one node per member. */
static uint32_t most_nodes(struct place_work *work)
{
	struct reach fast, slow;
	uint32_t most = 0;
	reach_none(&fast);
	for (uint32_t leaf = 0; leaf < work->fabric->leaf_count && !work->segments.unknown; leaf++) {
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
		struct parts parts;
		parts_of(work, leaf, false, &parts);
		fewest_in(work, &parts, false, &fewest);
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
static uint32_t shortest_run(struct place_work *work, bool *spare)
{
	const struct fabric *fabric = work->fabric;
	const struct could *could = coulds(work);
	uint32_t best = 0, first = 0; /* leaves first … leaf are the longest run that ends here and is worth a look */
	struct tally tally = {.whole = 0};
	budget_charge(&work->budget, (uint64_t)STEPS_ITEM * fabric->leaf_count);
	for (uint32_t leaf = 0; leaf < fabric->leaf_count; leaf++) {
		bool joins = leaf > first && could[leaf].crossed && could[first].crossed &&
			     fabric->leaf_spine[leaf] == fabric->leaf_spine[first];
		if (!joins) {
			tally = (struct tally){.whole = 0};
			first = leaf;
		}
		if (could[leaf].whole == 0 && could[leaf].with_tail == NO_TAIL) {
			tally = (struct tally){.whole = 0};
			first = leaf + 1;
			continue;
		}
		tally_add(&tally, &could[leaf]);
		for (; tally.only_tail > 1 || (best > 0 && leaf - first + 1 > best); first++)
			tally_remove(&tally, &could[first]);
		for (; first <= leaf && tally_enough(work, &tally); first++) {
			best = leaf - first + 1;
			if (best == 1)
				*spare = *spare || !needs_each_node(work, leaf);
			tally_remove(&tally, &could[first]);
		}
	}
	return best;
}

/* The same, where it has to use so many nodes. */
static uint32_t shortest_spread(struct place_work *work, const struct spread *spread, bool *spare)
{
	const struct fabric *fabric = work->fabric;
	uint32_t best = 0;
	for (uint32_t first = 0; first < fabric->leaf_count; first++) {
		struct tally tally = {.whole = 0};
		struct reach reach;
		uint32_t end = fabric->spine_start[fabric->leaf_spine[first] + 1], reached = first;
		reach_none(&reach);
		for (uint32_t leaf = first; leaf < end && (best == 0 || leaf - first < best); leaf++) {
			const struct could *could = &coulds(work)[leaf];
			work->segments.unknown |= !budget_take(&work->budget, STEPS_ITEM);
			if (work->segments.unknown)
				return 0;
			if ((leaf > first && (!could->crossed || !coulds(work)[first].crossed)) ||
			    !tally_add(&tally, could))
				break;
			if (!tally_enough(work, &tally) || tally.nodes < spread->nodes)
				continue;
			for (; reached <= leaf && !work->segments.unknown; reached++)
				reach_add_leaf(work, &reach, reached, true);
			if (reach_of_gang(work, &reach) < spread->nodes)
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

/* A run takes no less when it is longer: only the longest that end with a leaf are asked, which with the short one may have
 * one leaf that takes nothing else. */
static struct spine_could spine_could(struct place_work *work, uint32_t spine)
{
	const struct fabric *fabric = work->fabric;
	const struct could *could = coulds(work);
	struct spine_could best = {.whole = 0};
	struct tally tally = {.whole = 0};
	uint32_t first = fabric->spine_start[spine], end = fabric->spine_start[spine + 1];
	uint64_t plain = 0; /* of the run of leaves that take whole ones */
	budget_charge(&work->budget, (uint64_t)STEPS_ITEM * (end - first));
	for (uint32_t leaf = first; leaf < end; leaf++) {
		plain = could[leaf].whole > 0 && could[leaf].crossed ? plain + could[leaf].whole : 0;
		best.whole = max_u32(best.whole, (uint32_t)plain);
		if (!could[leaf].crossed || (could[leaf].whole == 0 && could[leaf].with_tail == NO_TAIL)) {
			tally = (struct tally){.whole = 0};
			first = leaf + 1;
			continue;
		}
		tally_add(&tally, &could[leaf]);
		for (; tally.only_tail > 1; first++)
			tally_remove(&tally, &could[first]);
		if (work->segments.ever.tail > 0)
			best.with_tail = max_u32(best.with_tail, (uint32_t)tally_whole(&tally, true) + 1);
	}
	return best;
}

static void reach_better(struct reach *best, const struct reach *reach)
{
	for (uint32_t w = 0; w <= reach->most; w++)
		for (uint32_t tail = 0; tail < 2; tail++) {
			int16_t before = w <= best->most ? best->nodes[tail][w] : (int16_t)NO_REACH;
			best->nodes[tail][w] = reach->nodes[tail][w] > before ? reach->nodes[tail][w] : before;
		}
	reach_end(best, max_u32(best->most, reach->most));
}

/* The runs of a spine, the best for each number of segments. */
static void reach_spine(struct place_work *work, uint32_t spine, struct reach *best)
{
	const struct fabric *fabric = work->fabric;
	uint32_t end = fabric->spine_start[spine + 1];
	reach_none(best);
	for (uint32_t first = fabric->spine_start[spine]; first < end && !work->segments.unknown; first++) {
		struct tally tally = {.whole = 0};
		struct reach reach;
		reach_none(&reach);
		for (uint32_t leaf = first; leaf < end && !work->segments.unknown; leaf++) {
			if (!coulds(work)[leaf].crossed || !tally_add(&tally, &coulds(work)[leaf]))
				break;
			reach_add_leaf(work, &reach, leaf, true);
			reach_better(best, &reach);
		}
	}
	best->nodes[0][0] = NO_REACH; /* every spine is used */
}

struct chain { /* of adjacent spines */
	uint64_t whole;
	int64_t tail;   /* what the short one takes of it, at best, or adds; INT64_MIN: it does not fit */
	uint32_t empty; /* spines that could not do without it */
	uint64_t nodes; /* that members could use, at most */
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

/* Nodes of a spine that members could use, at most. */
static uint64_t spine_nodes(const struct place_work *work, uint32_t spine)
{
	uint64_t nodes = 0;
	for (uint32_t leaf = work->fabric->spine_start[spine]; leaf < work->fabric->spine_start[spine + 1]; leaf++)
		nodes += coulds(work)[leaf].crossed ? coulds(work)[leaf].nodes : 0;
	return nodes;
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
		uint32_t reached = first;
		reach_none(&reach);
		for (uint32_t spine = first; spine < fabric->spine_count && (best == 0 || spine - first + 1 < best);
		     spine++) {
			work->segments.unknown |= !budget_take(&work->budget, STEPS_ITEM);
			if (work->segments.unknown)
				return 0;
			if ((spine > first && !spine_adjacent(fabric, spine)) || !chain_add(&chain, &could[spine]))
				break;
			chain.nodes += spread->on ? spine_nodes(work, spine) : 0;
			if (!chain_enough(work, &chain) || (spread->on && chain.nodes < spread->nodes))
				continue;
			for (; spread->on && reached <= spine && !work->segments.unknown; reached++) {
				reach_spine(work, reached, &here);
				reach_add(work, &reach, &here);
			}
			if (spread->on && reach_of_gang(work, &reach) < spread->nodes)
				continue;
			best = spine - first + 1;
			break;
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
	answer->need_leaves = spread.on ? shortest_spread(work, &spread, &spare) : shortest_run(work, &spare);
	if (answer->need_leaves > 0) {
		answer->plan.rule = answer->need_leaves > 1 ? FROND_RULE_ADJACENT_LEAVES
				    : spare                 ? FROND_RULE_SAME_LEAF
							    : FROND_RULE_COMPLETE_LEAF;
		return true;
	}
	answer->plan.rule = FROND_RULE_ADJACENT_SPINES;
	answer->need_spines = work->segments.unknown ? 0 : fewest_spines(work, &spread);
	return answer->need_spines > 0;
}

/* The rule that the gang would have without segments stays its name when no part of the fabric could hold them. */
bool segments_rule(struct place_work *work)
{
	struct answer before = *work->answer;
	segments_turn(work, SEGMENTS_NODES);
	bool found = find_rule(work) && !work->segments.unknown;
	segments_turn(work, SEGMENTS_OFF);
	if (!found) {
		before.cut |= work->segments.unknown;
		*work->answer = before;
	}
	return found;
}
