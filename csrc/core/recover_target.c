/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recover_target.c - which parts of the fabric a gang could be repaired in, and what each costs, from sums over leaves and
 * spines alone: a target is a node, an NVLink domain, a run of leaves, adjacent spines with one run in each, or one leaf
 * whose link nobody may cross. Needs so many moves: the members outside it, and where every leaf must be in use no fewer
 * than there are leaves without anybody. The least over all targets with room is a lower bound, because a target without
 * room has none whoever moves inside it: what leaves a node gives it back what it needs elsewhere. Only where sizes differ
 * can small ones make room for a large one, and those who have to are counted, too.
 */
#include "core/recover_work.h"

/* Sums over the leaves, or spines, before it; in the planner's scratch, while no plan is made. */
struct sums {
	uint32_t *kept;  /* healthy members */
	uint32_t *room;  /* members that fit today beside them, at most */
	uint32_t *empty; /* leaves without a healthy member that a run has to use */
	uint32_t *walls; /* leaves, or spines, that no run, or chain, may use */
	/* sizes differ: GPUs that are free or the gang's own; members of the largest size that are there or fit beside the
	 * others; and how many more fit when smaller ones have left */
	uint32_t *gpus, *large, *bonus;
};

struct survey {
	struct view *view;
	struct sums leaf, spine;
	uint32_t *breaks;    /* spines that are not adjacent to the one before, likewise */
	uint32_t *inside;    /* by NVLink domain or position: healthy members */
	uint32_t *around;    /* by NVLink domain: members that fit beside them */
	uint32_t most_bonus; /* of a node */
	uint64_t taken;      /* words of the scratch */
	uint64_t left;       /* targets that may be seen */
	uint32_t index, least;
};

/* ---- sums ---------------------------------------------------------------------------------------------------------------- */

/* There is room: beside what the planner keeps by leaf and by node the sums are small. */
static uint32_t *take(struct survey *survey, uint64_t count)
{
	uint32_t *array = (uint32_t *)place_scratch(survey->view->core->work) + survey->taken;
	survey->taken += count;
	assert(survey->taken * sizeof *array <= place_scratch_bytes(survey->view->core->work));
	return array;
}

static struct sums sums_take(struct survey *survey, uint64_t count)
{
	return (struct sums){take(survey, count), take(survey, count), take(survey, count), take(survey, count),
			     take(survey, count), take(survey, count), take(survey, count)};
}

static uint32_t between(const uint32_t *sums, uint32_t lo, uint32_t hi)
{
	return sums[hi] - sums[lo];
}

/* Members that the caller lets onto a node. */
static uint32_t node_limit(const struct view *view, uint32_t slot)
{
	return ask_room_at(&view->ask, slot, ROOM_TODAY);
}

static bool node_usable(const struct view *view, uint32_t slot)
{
	const struct node *node = &view->core->nodes[slot];
	return node_open(node) && node_fast(node, view->ask.bandwidth_gbps) && node_limit(view, slot) > 0;
}

struct count { /* of a node or a leaf, at most: GPU sets may allow fewer */
	uint32_t room, gpus, large;
};

static struct count count_node(const struct view *view, uint32_t position)
{
	uint32_t slot = view->fabric->order[position], limit = node_limit(view, slot);
	if (!node_usable(view, slot))
		return (struct count){0, 0, 0};
	uint32_t free = node_free_count(&view->core->nodes[slot]);
	return (struct count){min_u32(free / max_u32(view->size, 1), limit), free,
			      min_u32(free / view->largest, limit)};
}

static struct count count_leaf(const struct view *view, uint32_t leaf)
{
	const struct fabric *fabric = view->fabric;
	const uint16_t *at_least = fabric->leaf[leaf].at_least;
	struct count all = {0, 0, 0};
	if (view->ask.room_count > 0 || view->ask.bandwidth_gbps > fabric->leaf_slowest[leaf]) {
		for (uint32_t at = fabric->leaf_start[leaf]; at < fabric->leaf_start[leaf + 1]; at++) {
			struct count one = count_node(view, at);
			all.room += one.room;
			all.gpus += one.gpus;
			all.large += one.large;
		}
		return all;
	}
	uint32_t size = max_u32(view->size, 1);
	for (uint32_t gpus = size; gpus <= FROND_GPUS_MAX; gpus += size)
		all.room += at_least[gpus];
	for (uint32_t gpus = view->largest; gpus <= FROND_GPUS_MAX; gpus += view->largest)
		all.large += at_least[gpus];
	all.gpus = all.room; /* where it matters sizes differ */
	return all;
}

/* Members of the largest size that fit more on a node when the gang's smaller ones have left it. When large ones leave,
 * too, they need what they give back. */
static uint32_t count_bonus(const struct view *view, uint32_t position)
{
	const struct entry *entries = view->core->ledger.entries;
	struct count count = count_node(view, position);
	uint32_t slot = view->fabric->order[position], gpus = count.gpus;
	if (!node_usable(view, slot))
		return 0;
	for (uint32_t at = view->core->nodes[slot].first; at != FROND_NONE; at = entry_node_next(&entries[at]))
		if (entry_gang(&entries[at]) == view->gang && entry_gpus(&entries[at]) < view->largest)
			gpus += entry_gpus(&entries[at]);
	return min_u32(gpus / view->largest, node_limit(view, slot)) - count.large;
}

/* Is the member the first of its gang in its node's list? */
static bool first_on_node(const struct view *view, uint32_t i)
{
	const struct entry *entries = view->core->ledger.entries;
	uint32_t at = view->core->nodes[entry_slot(&entries[view->work->roster.entries[i]])].first;
	while (entry_gang(&entries[at]) != view->gang)
		at = entry_node_next(&entries[at]);
	return at == view->work->roster.entries[i];
}

/* Counts of the gang's own members, one behind their leaves. */
static void add_members(struct survey *survey)
{
	const struct view *view = survey->view;
	struct sums *leaf = &survey->leaf;
	for (uint32_t i = 0; i < view->work->roster.count; i++) {
		if (view->work->state[i] != STAYS || leaf_of_member(view, i) == FROND_NONE)
			continue;
		uint32_t behind = leaf_of_member(view, i) + 1;
		leaf->kept[behind]++;
		leaf->gpus[behind] += view->work->roster.members[i].gpus;
		leaf->large[behind] += view->work->roster.members[i].gpus == view->largest;
		if (view->size != 0 || !first_on_node(view, i))
			continue;
		uint32_t bonus = count_bonus(view, position_of_member(view, i));
		leaf->bonus[behind] += bonus;
		survey->most_bonus = max_u32(survey->most_bonus, bonus);
	}
}

static void sum_leaves(struct survey *survey)
{
	const struct view *view = survey->view;
	struct sums *leaf = &survey->leaf;
	const struct fabric *fabric = view->fabric;
	uint64_t bytes = (fabric->leaf_count + 1ull) * sizeof(uint32_t);
	memset(leaf->kept, 0, bytes);
	memset(leaf->gpus, 0, bytes);
	memset(leaf->large, 0, bytes);
	memset(leaf->bonus, 0, bytes);
	leaf->room[0] = leaf->empty[0] = leaf->walls[0] = 0;
	add_members(survey);
	for (uint32_t at = 0; at < fabric->leaf_count; at++) {
		struct count count = count_leaf(view, at);
		bool empty = leaf->kept[at + 1] == 0;
		leaf->kept[at + 1] += leaf->kept[at];
		leaf->gpus[at + 1] += leaf->gpus[at] + count.gpus;
		leaf->large[at + 1] += leaf->large[at] + count.large;
		leaf->bonus[at + 1] += leaf->bonus[at];
		leaf->room[at + 1] = leaf->room[at] + count.room;
		leaf->empty[at + 1] = leaf->empty[at] + empty;
		leaf->walls[at + 1] = leaf->walls[at] +
				      (leaf_slow(fabric, at, view->ask.bandwidth_gbps) || (empty && count.room == 0));
	}
}

struct segment { /* leaves of a spine between two walls */
	struct leaf_run run;
	uint32_t kept, gaps, room, gpus, large, bonus;
};

/* The segment of a spine that keeps most members; room, gpus, large and bonus: the most of any segment. */
static struct segment best_segment(const struct view *view, const struct sums *leaf, uint32_t spine)
{
	struct segment best = {.run = {.lo = 1}};
	uint32_t end = view->fabric->spine_start[spine + 1], start = view->fabric->spine_start[spine];
	for (uint32_t at = start; at <= end; at++) {
		if (at < end && between(leaf->walls, at, at + 1) == 0)
			continue;
		struct leaf_run run = {.lo = start, .hi = at};
		start = at + 1;
		if (run.lo == run.hi)
			continue;
		uint32_t kept = between(leaf->kept, run.lo, run.hi);
		best.room = max_u32(best.room, between(leaf->room, run.lo, run.hi));
		best.gpus = max_u32(best.gpus, between(leaf->gpus, run.lo, run.hi));
		best.large = max_u32(best.large, between(leaf->large, run.lo, run.hi));
		best.bonus = max_u32(best.bonus, between(leaf->bonus, run.lo, run.hi));
		if (best.run.lo < best.run.hi && kept <= best.kept)
			continue;
		uint32_t first = run.lo, last = run.hi;
		while (first < last && between(leaf->empty, first, first + 1) > 0)
			first++;
		while (first < last && between(leaf->empty, last - 1, last) > 0)
			last--;
		best.run = run;
		best.kept = kept;
		best.gaps = kept == 0 ? 1 : between(leaf->empty, first, last);
	}
	return best;
}

static void sum_spines(struct survey *survey)
{
	const struct view *view = survey->view;
	struct sums *spine = &survey->spine;
	spine->kept[0] = spine->room[0] = spine->empty[0] = spine->walls[0] = spine->gpus[0] = spine->large[0] = 0;
	spine->bonus[0] = survey->breaks[0] = 0;
	for (uint32_t at = 0; at < view->fabric->spine_count; at++) {
		struct segment segment = best_segment(view, &survey->leaf, at);
		view->work->runs[at] = segment.run;
		spine->kept[at + 1] = spine->kept[at] + segment.kept;
		spine->room[at + 1] = spine->room[at] + segment.room;
		spine->empty[at + 1] = spine->empty[at] + segment.gaps;
		spine->gpus[at + 1] = spine->gpus[at] + segment.gpus;
		spine->large[at + 1] = spine->large[at] + segment.large;
		spine->bonus[at + 1] = spine->bonus[at] + segment.bonus;
		spine->walls[at + 1] = spine->walls[at] + (segment.run.lo >= segment.run.hi);
		survey->breaks[at + 1] = survey->breaks[at] + !spine_adjacent(view->fabric, at);
	}
}

/* ---- targets --------------------------------------------------------------------------------------------------------------- */

/* Among those that cost as much the first one comes first. */
static void keep_target(struct view *view, const struct target *target)
{
	uint32_t at = view->target_count;
	while (at > 0 && target->moves < view->targets[at - 1].moves)
		at--;
	if (at == RECOVER_TARGETS)
		return;
	view->target_count = min_u32(view->target_count + 1, RECOVER_TARGETS);
	memmove(&view->targets[at + 1], &view->targets[at], (view->target_count - 1 - at) * sizeof *view->targets);
	view->targets[at] = *target;
}

/* Members that have to leave a node that they could stay on, so that it has room for a large one; at least. FROND_NONE:
 * there is no room whoever moves. */
static uint32_t moves_inside(const struct survey *survey, const struct sums *sums, uint32_t lo, uint32_t hi)
{
	const struct view *view = survey->view;
	if (between(sums->room, lo, hi) < view->total - between(sums->kept, lo, hi))
		return FROND_NONE;
	if (view->size != 0)
		return 0;
	uint32_t large = between(sums->large, lo, hi), bonus = between(sums->bonus, lo, hi);
	if (between(sums->gpus, lo, hi) < view->gpus || large + bonus < view->large)
		return FROND_NONE;
	return large >= view->large ? 0 : (view->large - large + survey->most_bonus - 1) / survey->most_bonus;
}

/* `inside`: of moves_inside(). False: as many have been seen as may be. */
static bool see(struct survey *survey, struct target target, uint32_t inside)
{
	struct view *view = survey->view;
	uint32_t outside = view->total - target.kept;
	target.index = survey->index++;
	target.moves = max_u32(outside, target.owed);
	if (survey->left == 0)
		return false;
	survey->left--;
	if (inside == FROND_NONE || target.moves > view->total || (target.kept == 0 && !target.none))
		return true; /* no room; more leaves than members; or the same as the last one */
	/* What a spine owes is a guess: another segment of it may owe less. */
	uint32_t owed = view->rule.name == FROND_RULE_ADJACENT_SPINES ? 0 : target.owed;
	survey->least = min_u32(survey->least, max_u32(outside + inside, owed));
	if (inside == 0)
		keep_target(view, &target); /* otherwise others have to move as well: choices of members */
	return true;
}

/* Its node, or its NVLink domain; FROND_NONE: it is in none. */
static uint32_t place_of_member(const struct view *view, uint32_t i)
{
	uint32_t position = position_of_member(view, i);
	return view->rule.name == FROND_RULE_SINGLE_NODE ? position : view->fabric->domain_of[position];
}

/* Nodes, or NVLink domains, that have a healthy member; in the order of the first one of each. */
static bool see_places(struct survey *survey)
{
	struct view *view = survey->view;
	const struct fabric *fabric = view->fabric;
	const struct recover_work *work = view->work;
	bool single = view->rule.name == FROND_RULE_SINGLE_NODE, more = true;
	memset(survey->inside, 0, fabric->node_count * sizeof *survey->inside);
	memset(survey->around, 0, fabric->node_count * sizeof *survey->around);
	for (uint32_t at = 0; at < fabric->node_count; at++) {
		uint32_t place = single ? at : fabric->domain_of[at];
		if (place != FROND_NONE)
			survey->around[place] += count_node(view, at).room;
	}
	for (uint32_t i = 0; i < work->roster.count; i++)
		if (work->state[i] == STAYS && place_of_member(view, i) != FROND_NONE)
			survey->inside[place_of_member(view, i)]++;
	for (uint32_t i = 0; i < work->roster.count && more; i++) {
		uint32_t place = work->state[i] == STAYS ? place_of_member(view, i) : FROND_NONE;
		if (place == FROND_NONE || survey->inside[place] == 0)
			continue;
		struct target target = {.lo = i, .leaf = FROND_NONE, .kept = survey->inside[place]};
		more = see(survey, target, survey->around[place] >= view->total - target.kept ? 0 : FROND_NONE);
		survey->inside[place] = 0; /* seen */
	}
	return more;
}

/* Runs of leaves under one spine, each of them in use. */
static bool see_runs(struct survey *survey)
{
	struct view *view = survey->view;
	const struct fabric *fabric = view->fabric;
	const struct sums *leaf = &survey->leaf;
	bool more = true;
	for (uint32_t lo = 0; lo < fabric->leaf_count && more; lo++) {
		uint32_t end = min_u32(lo + view->rule.need_leaves, fabric->spine_start[fabric->leaf_spine[lo] + 1]);
		for (uint32_t hi = lo + (view->spreads ? 1 : view->rule.need_leaves); hi <= end && more; hi++) {
			struct target target = {.lo = lo,
						.hi = hi,
						.leaf = FROND_NONE,
						.kept = between(leaf->kept, lo, hi),
						.owed = between(leaf->empty, lo, hi)};
			bool walled = hi - lo > 1 && between(leaf->walls, lo, hi) > 0;
			more = see(survey, target, walled ? FROND_NONE : moves_inside(survey, leaf, lo, hi));
		}
	}
	return more;
}

/* Adjacent spines, each of them in use with one run. */
static bool see_chains(struct survey *survey)
{
	struct view *view = survey->view;
	const struct sums *spine = &survey->spine;
	bool more = true;
	for (uint32_t lo = 0; lo < view->fabric->spine_count && more; lo++) {
		uint32_t end = min_u32(lo + view->rule.need_spines, view->fabric->spine_count);
		for (uint32_t hi = lo + (view->spreads ? 1 : view->rule.need_spines); hi <= end && more; hi++) {
			if (between(spine->walls, lo, hi) > 0 || between(survey->breaks, lo + 1, hi) > 0)
				break; /* longer ones have it, too */
			struct target target = {.lo = lo,
						.hi = hi,
						.leaf = FROND_NONE,
						.kept = between(spine->kept, lo, hi),
						.owed = between(spine->empty, lo, hi)};
			more = see(survey, target, moves_inside(survey, spine, lo, hi));
		}
	}
	return more;
}

/* A gang that may use fewer spines than the rule allows may be in one leaf. Those with a fast link are in a chain. */
static bool see_slow_leaves(struct survey *survey)
{
	struct view *view = survey->view;
	bool more = true;
	for (uint32_t at = 0; view->spreads && at < view->fabric->leaf_count && more; at++)
		if (leaf_slow(view->fabric, at, view->ask.bandwidth_gbps)) {
			struct target target = {.leaf = at, .kept = between(survey->leaf.kept, at, at + 1)};
			more = see(survey, target, moves_inside(survey, &survey->leaf, at, at + 1));
		}
	return more;
}

uint32_t targets_survey(struct view *view)
{
	/* Half of what is left is for plans. */
	uint64_t half = view->budget->left / 2;
	struct survey survey = {.view = view, .least = view->total, .left = half};
	uint64_t leaves = view->fabric->leaf_count + 1ull, spines = view->fabric->spine_count + 1ull;
	bool complete;
	view->target_count = 0;
	if (view->rule.name == FROND_RULE_SINGLE_NODE || view->rule.name == FROND_RULE_NVLINK_DOMAIN) {
		survey.inside = take(&survey, view->fabric->node_count);
		survey.around = take(&survey, view->fabric->node_count);
		complete = see_places(&survey);
	} else {
		survey.leaf = sums_take(&survey, leaves);
		sum_leaves(&survey);
		if (view->rule.name == FROND_RULE_ADJACENT_SPINES) {
			survey.spine = sums_take(&survey, spines);
			survey.breaks = take(&survey, spines);
			sum_spines(&survey);
			complete = see_chains(&survey) && see_slow_leaves(&survey);
		} else {
			complete = see_runs(&survey);
		}
	}
	view->budget->left -= half - survey.left;
	view->cut |= !complete;
	/* One that keeps nobody is always there. */
	view->target_count = min_u32(view->target_count, RECOVER_TARGETS - 1);
	view->targets[view->target_count++] =
		(struct target){.index = survey.index, .leaf = FROND_NONE, .none = true, .moves = view->total};
	return complete ? max_u32(survey.least, view->lost) : view->lost;
}

/* ---- who moves for a target ------------------------------------------------------------------------------------------------ */

static bool keeps(const struct view *view, const struct target *target, uint32_t i)
{
	if (target->none)
		return false;
	if (view->rule.name == FROND_RULE_SINGLE_NODE || view->rule.name == FROND_RULE_NVLINK_DOMAIN)
		return place_of_member(view, i) == place_of_member(view, target->lo);
	uint32_t leaf = leaf_of_member(view, i);
	if (leaf == FROND_NONE)
		return false;
	if (view->rule.name != FROND_RULE_ADJACENT_SPINES)
		return leaf >= target->lo && leaf < target->hi;
	if (target->leaf != FROND_NONE)
		return leaf == target->leaf;
	uint32_t spine = view->fabric->leaf_spine[leaf];
	return spine >= target->lo && spine < target->hi && leaf >= view->work->runs[spine].lo &&
	       leaf < view->work->runs[spine].hi;
}

/* Those outside, and for leaves that nobody uses yet the last ones that are not alone in their leaf. */
void target_choose(struct view *view, const struct target *target)
{
	struct recover_work *work = view->work;
	uint32_t extra = target->moves - (view->total - target->kept);
	for (uint32_t i = 0; i < work->roster.count; i++)
		if (work->state[i] == STAYS && !keeps(view, target, i))
			work->state[i] = MOVES;
	if (extra == 0)
		return;
	memset(work->staying, 0, view->fabric->leaf_count * sizeof *work->staying);
	for (uint32_t i = 0; i < work->roster.count; i++)
		if (work->state[i] == STAYS)
			work->staying[leaf_of_member(view, i)]++;
	for (uint32_t i = work->roster.count; i-- > 0 && extra > 0;)
		if (work->state[i] == STAYS && work->staying[leaf_of_member(view, i)]-- > 1) {
			work->state[i] = MOVES;
			extra--;
		}
}
