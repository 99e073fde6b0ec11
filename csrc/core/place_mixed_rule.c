/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_mixed_rule.c - reference 3.3 for members of several sizes: the rule, from capacity alone. A span counts if
 * first fit or the exact search of place_pack.c finds the gang in it in the form that the rule asks for; "never fits"
 * is said when the bounds or the search rule everything out, and what neither decides within the budget is flagged
 * (answer->cut). Spines of one shape have one capacity: the first of each is looked at.
 */
#include "core/place_mixed.h"

/* First fit finds a placement of that form. *nodes: that it uses. */
static bool could_quickly(struct place_work *work, uint32_t lo, uint32_t hi, enum pack_form form, uint32_t spread,
			  uint32_t *nodes)
{
	if (!pack_may(work, lo, hi) || !fit_span(work, lo, hi))
		return false;
	struct shape shape = fit_shape(work);
	bool chosen = fit_chosen(work);
	*nodes = shape.use.nodes;
	fit_forget(work);
	return chosen && !shape.slow &&
	       (form == PACK_ANY || (shape.chained && (form == PACK_CHAIN || shape.use.runs == 1))) &&
	       shape.use.nodes >= spread;
}

/* There is a placement of that form, or none, or nobody knows. *nodes: the fewest, or spread: the most that it uses. */
static enum pack_answer could_exactly(struct place_work *work, uint32_t lo, uint32_t hi, enum pack_form form,
				      uint32_t spread, uint32_t *nodes)
{
	uint64_t cost;
	if (!pack_may(work, lo, hi))
		return PACK_IMPOSSIBLE;
	enum pack_answer answer =
		pack_search(work, lo, hi, form, spread > 0 ? PACK_MOST_NODES : PACK_FEWEST_NODES, false, &cost);
	if (answer == PACK_IMPOSSIBLE && !fit_searchable(work))
		return PACK_CUT;
	if (answer != PACK_HOLDS || work->segments.fit) /* the search knows nothing of segments: it rules out */
		return answer == PACK_HOLDS ? PACK_CUT : answer;
	*nodes = (uint32_t)(spread > 0 ? work->gang.total - cost : cost % PACK_RUN_OF_LEAVES);
	return *nodes >= spread ? PACK_HOLDS : PACK_IMPOSSIBLE;
}

/* Is a spine of this shape looked at already? */
static bool repeated(const struct place_work *work, uint32_t spine)
{
	uint32_t shape = work->fabric->spine[spine].shape;
	return shape != spine && !place_own_capacity(work, spine) && !place_own_capacity(work, shape);
}

/* A run of so many leaves holds the gang; *nodes: of the one with fewest beside all that its leaves have. */
static enum pack_answer window_could(struct place_work *work, uint32_t length, uint32_t spread, bool *spare)
{
	const struct fabric *fabric = work->fabric;
	enum pack_answer answer = PACK_IMPOSSIBLE;
	for (uint32_t exactly = 0; exactly < 2; exactly++)
		for (uint32_t spine = 0; spine < fabric->spine_count; spine++)
			for (uint32_t lo = fabric->spine_start[spine];
			     lo + length <= fabric->spine_start[spine + 1] && !repeated(work, spine); lo++) {
				budget_charge(&work->budget, 1);
				if (fabric->leaf_start[lo + length] - fabric->leaf_start[lo] < spread)
					continue;
				if (work->budget.spent)
					return answer == PACK_HOLDS ? PACK_HOLDS : PACK_CUT;
				uint32_t nodes = 0, all = length == 1 ? leaf_nodes(fabric, lo) : 0;
				enum pack_answer here =
					!exactly ? (could_quickly(work, lo, lo + length, PACK_RUN, spread, &nodes)
							    ? PACK_HOLDS
							    : PACK_IMPOSSIBLE)
						 : could_exactly(work, lo, lo + length, PACK_RUN, spread, &nodes);
				if (here == PACK_CUT && answer == PACK_IMPOSSIBLE)
					answer = PACK_CUT;
				if (here != PACK_HOLDS)
					continue;
				answer = PACK_HOLDS;
				*spare |= (spread > 0 ? spread : nodes) < all;
				if (length > 1 || *spare)
					return answer;
			}
	return answer;
}

/* The shortest run of leaves that holds the gang; 0: none. *spare: one leaf does, with a node left. */
static uint32_t fewest_leaves(struct place_work *work, uint32_t spread, bool *spare)
{
	*spare = false;
	for (uint32_t length = fit_shortest(work, UINT32_MAX - 1); length <= work->fabric->leaf_count; length++) {
		enum pack_answer answer = work->budget.spent ? PACK_CUT : window_could(work, length, spread, spare);
		if (answer == PACK_HOLDS)
			return length;
		work->answer->cut |= answer == PACK_CUT;
		if (work->budget.spent)
			return 0;
	}
	return 0;
}

/* Spines of the shortest chain that the bounds allow; UINT32_MAX: none. */
static uint32_t shortest_chain(const struct place_work *work)
{
	const struct fabric *fabric = work->fabric;
	uint32_t best = UINT32_MAX, first = 0;
	for (uint32_t last = 0; last < fabric->spine_count; last++) {
		if (!spine_adjacent(fabric, last))
			first = last;
		for (; first <= last && pack_may(work, fabric->spine_start[first], fabric->spine_start[last + 1]);
		     first++)
			best = min_u32(best, last - first + 1);
	}
	return best;
}

static uint32_t fewest_spines(struct place_work *work, uint32_t spread)
{
	const struct fabric *fabric = work->fabric;
	for (uint32_t length = max_u32(spread > 0 ? 1 : 2, shortest_chain(work)); length <= fabric->spine_count;
	     length++)
		for (uint32_t exactly = 0; exactly < 2; exactly++)
			for (uint32_t first = 0, joined = 0; first + length <= fabric->spine_count; first++) {
				uint32_t lo = fabric->spine_start[first], hi = fabric->spine_start[first + length],
					 nodes;
				budget_charge(&work->budget, 1);
				joined = max_u32(joined, first);
				while (joined + 1 < first + length && spine_adjacent(fabric, joined + 1))
					joined++;
				if (joined + 1 < first + length || lo == hi ||
				    fabric->leaf_start[hi] - fabric->leaf_start[lo] < spread || !pack_may(work, lo, hi))
					continue;
				enum pack_answer answer = could_quickly(work, lo, hi, PACK_CHAIN, spread, &nodes)
								  ? PACK_HOLDS
								  : PACK_IMPOSSIBLE;
				if (exactly)
					answer = could_exactly(work, lo, hi, PACK_CHAIN, spread, &nodes);
				work->answer->cut |= answer == PACK_CUT;
				if (answer == PACK_HOLDS)
					return length;
				if (work->budget.spent)
					return 0;
			}
	return 0;
}

/* Everything at once, or one leaf alone when its link is slow. *nodes: that it is spread over, with spread. */
static enum pack_answer cluster_could(struct place_work *work, uint32_t spread, uint32_t *nodes)
{
	uint32_t here;
	enum pack_answer answer = PACK_IMPOSSIBLE;
	*nodes = 0;
	for (uint32_t exactly = 0; exactly < 2 && answer != PACK_HOLDS; exactly++)
		for (uint32_t leaf = 0; leaf <= work->fabric->leaf_count; leaf++) {
			bool all = leaf == work->fabric->leaf_count;
			if (!all && !item_slow(work, leaf))
				continue;
			uint32_t lo = all ? 0 : leaf, hi = all ? work->items : leaf + 1;
			enum pack_answer one = exactly ? could_exactly(work, lo, hi, PACK_ANY, spread, &here)
					       : could_quickly(work, lo, hi, PACK_ANY, spread, &here) ? PACK_HOLDS
												      : PACK_IMPOSSIBLE;
			if (one == PACK_HOLDS)
				*nodes = max_u32(*nodes, here);
			if (one == PACK_HOLDS || (one == PACK_CUT && answer == PACK_IMPOSSIBLE))
				answer = one;
		}
	return answer;
}

static bool node_could(const struct place_work *work)
{
	for (uint32_t at = 0; work->pack.gpus <= FROND_GPUS_MAX && at < work->fabric->node_count; at++)
		if (fit_node(work, at))
			return true;
	return false;
}

static void domain_could(struct place_work *work, uint32_t item, void *holds)
{
	uint32_t nodes;
	if (*(bool *)holds)
		return;
	enum pack_answer answer = could_quickly(work, item, item + 1, PACK_RUN, 0, &nodes)
					  ? PACK_HOLDS
					  : could_exactly(work, item, item + 1, PACK_RUN, 0, &nodes);
	*(bool *)holds = answer == PACK_HOLDS;
	work->answer->cut |= answer == PACK_CUT;
}

/* n of reference 3.3 for `distributed`: the most nodes that one placement can use. One member a node, if that is
 * possible; else the search says, or what first fit finds with as few on a node as it can. */
static uint32_t most_nodes(struct place_work *work)
{
	uint32_t nodes;
	pack_measure(work, 1);
	if (cluster_could(work, 1, &nodes) == PACK_HOLDS)
		return work->gang.total;
	pack_measure(work, FROND_GPUS_MAX);
	uint32_t most = 0;
	for (uint32_t leaf = 0; leaf <= work->fabric->leaf_count; leaf++) {
		bool all = leaf == work->fabric->leaf_count;
		if (!all && !item_slow(work, leaf))
			continue;
		enum pack_answer answer =
			could_exactly(work, all ? 0 : leaf, all ? work->items : leaf + 1, PACK_ANY, 1, &nodes);
		work->answer->cut |= answer == PACK_CUT;
		if (answer == PACK_HOLDS)
			most = max_u32(most, nodes);
	}
	for (uint32_t each = 2; each <= FROND_GPUS_MAX && most == 0; each++) {
		if (work->budget.spent) /* fewer on a node may do, but one look has to be enough */
			each = FROND_GPUS_MAX;
		pack_measure(work, each);
		if (could_quickly(work, 0, work->items, PACK_ANY, 1, &nodes))
			most = nodes;
	}
	return max_u32(most, 1);
}

static bool never(struct place_work *work)
{
	work->scope.per_node = FROND_GPUS_MAX;
	for (uint32_t at = 0; at < work->fabric->node_count; at++)
		if (pack_members(work, at, false) > 0)
			work->answer->ever += pack_gpus(work, at, false);
	return false;
}

static bool find_rule(struct place_work *work)
{
	struct answer *answer = work->answer;
	bool spread = fit_spreads(work) && !work->ask->latency_sensitive, spare, holds = false;
	pack_begin(work, false);
	if (work->items == 0)
		return never(work);
	switch (cluster_could(work, 0, &answer->need_nodes)) {
	case PACK_IMPOSSIBLE:
		return never(work);
	case PACK_CUT:
		answer->cut = true;
		return false;
	case PACK_HOLDS:
		break;
	}
	uint32_t nodes = spread ? most_nodes(work) : 0;
	if (spread)
		answer->need_nodes = nodes;
	if (nodes <= 1 && node_could(work)) {
		answer->need_nodes = 1;
		answer->plan.rule = FROND_RULE_SINGLE_NODE;
		return true;
	}
	if (work->ask->latency_sensitive && work->fabric->domain_count > 0) {
		fit_domains(work, domain_could, &holds);
		if (holds) {
			answer->need_leaves = 1;
			answer->plan.rule = FROND_RULE_NVLINK_DOMAIN;
			return true;
		}
	}
	answer->need_leaves = fewest_leaves(work, nodes, &spare);
	if (answer->need_leaves > 0) {
		answer->plan.rule = answer->need_leaves > 1 ? FROND_RULE_ADJACENT_LEAVES
				    : spare                 ? FROND_RULE_SAME_LEAF
							    : FROND_RULE_COMPLETE_LEAF;
	} else {
		answer->plan.rule = FROND_RULE_ADJACENT_SPINES;
		answer->need_spines = fewest_spines(work, nodes);
		if (answer->need_spines == 0)
			answer->plan.flags |= FROND_PLAN_SHAPELESS;
	}
	work->scope.per_node = FROND_GPUS_MAX;
	return true;
}

/* Half of the budget is for today's nodes. */
bool place_mixed_rule(struct place_work *work)
{
	struct budget *budget = &work->budget;
	uint64_t kept = budget->spent ? 0 : budget->left / 2;
	budget->left -= kept;
	bool found = find_rule(work);
	work->answer->cut |= budget->spent;
	budget->left += kept;
	budget->spent = budget->left == 0;
	return found;
}

/* Segments of several sizes: first fit says where they could be, and the search where not. */
bool segments_fit_rule(struct place_work *work)
{
	struct answer *answer = work->answer, before = *answer;
	bool shaped = work->scope.shaped;
	segments_turn(work, SEGMENTS_FIT);
	work->scope.shaped = false;
	answer->need_nodes = answer->need_leaves = answer->need_spines = 0;
	answer->cut = false;
	bool found = place_mixed_rule(work) && !(answer->plan.flags & FROND_PLAN_SHAPELESS);
	work->scope.shaped = shaped;
	segments_turn(work, SEGMENTS_OFF);
	if (!found) {
		work->segments.unknown = answer->cut;
		before.cut |= answer->cut;
		*answer = before;
	}
	return found;
}
