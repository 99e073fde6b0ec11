/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recover.c - phases of a repair:
 *
 *   1  who is lost; a what-if without them
 *   2  Replace: the planner places them beside the others, which stay; where the rule cannot hold so, at the nearest place,
 *      relaxed, unless the gang insists on its rule
 *   3  MoveGang: every target that the rule allows (recover_target.c) has so many moves, and the least of them is the lower
 *      bound. Targets go to the planner, cheapest first, until one works; of those that need as many moves the best by
 *      reference 3.4 wins, then the first
 *   4  when that is more than the lower bound (GPU sets, caps): every choice of fewer members, as far as RECOVER_TRIES
 *      goes; a number of moves of which every choice fails raises the lower bound, where the planner is exact
 *   5  who moves is not always told by the target: of few choices with as many moves all are compared by reference 3.4
 *
 * Half of the budget is for phases 3 to 5. What they find is planned once more from the budget that it was found with, so
 * that it is the same; when they find nothing the other half is for phase 2.
 */
#include "core/recover_work.h"

#include "core/sort.h"

#define RECOVER_TRIES 4096u /* choices of members that are looked at */
#define RECOVER_EXTRA 8u    /* healthy members in such a choice */
#define RECOVER_TIES  256u  /* choices with as many moves that are compared with the one that was found */

/* ---- roster --------------------------------------------------------------------------------------------------------- */

void roster_layout(struct roster *roster, struct arena *arena, uint32_t pods)
{
	roster->cap = min_u32(pods, FROND_MEMBERS_MAX);
	roster->members = arena_raw(arena, roster->cap, sizeof *roster->members);
	roster->entries = arena_raw(arena, roster->cap, sizeof *roster->entries);
}

static bool entry_before(const void *context, uint32_t a, uint32_t b)
{
	const struct entry *entries = context, *one = &entries[a], *other = &entries[b];
	if (entry_rank(one) != entry_rank(other))
		return entry_rank(one) < entry_rank(other); /* FROND_NONE is the highest */
	return key_before(one->pod, other->pod);
}

int32_t roster_fill(struct roster *roster, const struct core *core, uint32_t gang)
{
	const struct entry *entries = core->ledger.entries;
	roster->count = 0;
	if (core->gangs.gangs[gang].members > roster->cap)
		return FROND_LIMIT;
	for (uint32_t at = gang_first(&core->gangs.gangs[gang]); at != FROND_NONE; at = entry_gang_next(&entries[at]))
		roster->entries[roster->count++] = at;
	sort_ids(roster->entries, roster->count, entry_before, entries);
	for (uint32_t i = 0; i < roster->count; i++) {
		const struct entry *entry = &entries[roster->entries[i]];
		roster->members[i] = (struct frond_member){.pod = entry->pod,
							   .rank = entry_rank(entry),
							   .gpus = entry_gpus(entry),
							   .pinned_slot = entry_slot(entry)};
	}
	return FROND_OK;
}

void roster_ask(const struct roster *roster, const struct terms *terms, const struct ask *defaults,
		const struct frond_room *room, uint32_t room_count, struct ask *ask)
{
	*ask = (struct ask){.members = roster->members,
			    .count = roster->count,
			    .strategy = terms->strategy,
			    .mode = terms->mode,
			    .latency_sensitive = terms->latency_sensitive,
			    .bandwidth_gbps = terms->bandwidth_gbps,
			    .segments = terms->segments,
			    .max_nodes_per_leaf = defaults->max_nodes_per_leaf,
			    .max_gpus_per_leaf = defaults->max_gpus_per_leaf,
			    .only_slot = FROND_NONE,
			    .domain_first = defaults->domain_first,
			    .domain_end = defaults->domain_end,
			    .domain_nvlink = defaults->domain_nvlink,
			    .gpu = terms->gpu,
			    .room = room,
			    .room_count = room_count};
	memcpy(ask->weight, defaults->weight, sizeof ask->weight);
}

void what_if_leave(struct core *core, uint32_t entry)
{
	gangs_part(&core->gangs, entry);
	ledger_leave(&core->ledger, entry);
}

/* ---- phase 1: who is lost ------------------------------------------------------------------------------------------- */

void recover_layout(struct recover_work *work, struct arena *arena, uint32_t nodes, uint32_t pods)
{
	roster_layout(&work->roster, arena, pods);
	work->places = arena_raw(arena, work->roster.cap, sizeof *work->places);
	work->state = arena_raw(arena, work->roster.cap, sizeof *work->state);
	work->healthy = arena_raw(arena, work->roster.cap, sizeof *work->healthy);
	work->runs = arena_raw(arena, FABRIC_SPINES(nodes), sizeof *work->runs);
	work->staying = arena_raw(arena, FABRIC_LEAVES(nodes), sizeof *work->staying);
}

/* A member that holds no GPU, or whose node has left, has no place to lose. */
static enum member_state state_of(const struct core *core, const struct entry *entry)
{
	if (entry_slot(entry) == FROND_NONE || entry_gpus(entry) == 0)
		return NO_GPUS;
	const struct node *node = &core->nodes[entry_slot(entry)];
	/* A GPU that its node no longer has is lost as well. */
	bool failed = (node->flags & FROND_NODE_DOWN) != 0 || (entry->mask & node->unhealthy) != 0 ||
		      entry->mask >> node->gpus != 0;
	return failed && entry->hold == HOLD_BOUND ? LOST : STAYS;
}

static void find_lost(struct view *view)
{
	struct recover_work *work = view->work;
	bool mixed = false;
	for (uint32_t i = 0; i < work->roster.count; i++) {
		uint32_t gpus = work->roster.members[i].gpus;
		work->state[i] = (uint8_t)state_of(view->core, &view->core->ledger.entries[work->roster.entries[i]]);
		if (work->state[i] == NO_GPUS)
			continue;
		mixed |= view->total > 0 && gpus != view->size;
		view->size = gpus;
		view->gpus += gpus;
		view->large = gpus > view->largest ? 1 : view->large + (gpus == view->largest);
		view->largest = max_u32(view->largest, gpus);
		if (work->state[i] == STAYS)
			work->healthy[view->total - view->lost] = i;
		view->total++;
		view->lost += work->state[i] == LOST;
	}
	if (mixed)
		view->size = 0;
}

/* Those in this state leave their places. */
static void let_go(struct view *view, enum member_state state)
{
	struct roster *roster = &view->work->roster;
	for (uint32_t i = 0; i < roster->count; i++)
		if (view->work->state[i] == state) {
			what_if_leave(view->core, roster->entries[i]);
			roster->members[i].pinned_slot = FROND_NONE;
		}
}

/* ---- the answer ----------------------------------------------------------------------------------------------------- */

/* from[] of a mover is gone from the roster, but the what-if is over: the ledger has it again. */
static int32_t tell_moves(const struct view *view, struct frond_moves *out, struct frond_move *moves, uint32_t cap)
{
	const struct recover_work *work = view->work;
	out->count = 0;
	for (uint32_t i = 0; i < work->roster.count; i++) {
		if (work->state[i] != LOST && work->state[i] != MOVES)
			continue;
		const struct entry *entry = &view->core->ledger.entries[work->roster.entries[i]];
		if (out->count < cap)
			moves[out->count] = (struct frond_move){.pod = entry->pod,
								.rank = entry_rank(entry),
								.from = entry_slot(entry),
								.to = work->places[i].slot,
								.gpu_mask = work->places[i].gpu_mask,
								.ring = work->places[i].ring};
		out->count++;
	}
	return out->count > cap ? FROND_SMALL : FROND_OK;
}

/* ---- one try -------------------------------------------------------------------------------------------------------- */

/* A repair that works: whoever moves for a target, or a choice of healthy members by number. */
struct repair {
	bool found, chosen;
	uint32_t moves;
	struct target target;
	uint32_t choice[RECOVER_EXTRA], extra;
	struct answer answer;
	struct budget budget; /* before its plan */
	uint32_t plan;        /* number of its plan */
};

static void nobody_moves(struct view *view)
{
	struct recover_work *work = view->work;
	for (uint32_t i = 0; i < work->roster.count; i++)
		if (work->state[i] == MOVES) {
			work->state[i] = STAYS;
			work->roster.members[i].pinned_slot =
				entry_slot(&view->core->ledger.entries[work->roster.entries[i]]);
		}
}

static void mark_choice(struct view *view, const uint32_t *choice, uint32_t extra)
{
	for (uint32_t i = 0; i < extra; i++)
		view->work->state[view->work->healthy[choice[i]]] = MOVES;
}

/* The plan for those that are marked. */
static bool plan_movers(struct view *view)
{
	undo_begin(&view->core->undo);
	let_go(view, MOVES);
	place_gang(view->core->work, &view->ask, &view->answer, view->work->places);
	undo_back(&view->core->undo);
	bool placed = view->answer.plan.outcome == FROND_PLACED;
	view->doubt |= !placed && view->answer.cut;
	return placed;
}

/* Can the planner place those that move, with the rule met? False, and the budget is spent or there is doubt: nobody knows. *before: the
 * budget that the plan was made with. */
static bool movers_fit(struct view *view, uint32_t moves, struct budget *before)
{
	uint64_t steps = STEPS_REPAIR + (uint64_t)STEPS_ROSTER * view->work->roster.count +
			 (uint64_t)STEPS_MOVER * moves + (uint64_t)STEPS_LEAF * view->fabric->leaf_count;
	if (!budget_take(view->budget, steps))
		return false;
	*before = *view->budget;
	view->plans++;
	return plan_movers(view);
}

/* Takes what has just been planned when it needs fewer moves than the best, or as many and is better by
 * reference 3.4. */
static bool keep_better(const struct view *view, struct repair *best, uint32_t moves, const struct budget *before)
{
	if (best->found && (moves > best->moves ||
			    (moves == best->moves && answer_compare(&view->ask, &view->answer, &best->answer) >= 0)))
		return false;
	best->found = true;
	best->moves = moves;
	best->answer = view->answer;
	best->budget = *before;
	best->plan = view->plans;
	return true;
}

/* When everybody may move and it does not fit, no repair exists: where it ends, all could have gone. But to a node that is
 * closed nobody goes who does not sit there. */
static bool nobody_is_stuck(const struct view *view)
{
	for (uint32_t number = 0; number < view->total - view->lost; number++) {
		const struct entry *entry =
			&view->core->ledger.entries[view->work->roster.entries[view->work->healthy[number]]];
		if (!node_open(&view->core->nodes[entry_slot(entry)]))
			return false;
	}
	return true;
}

static bool try_target(struct view *view, const struct target *target, struct repair *best)
{
	struct budget before;
	target_choose(view, target);
	bool fits = movers_fit(view, target->moves, &before);
	if (!fits && target->none && !view->budget->spent && !view->doubt)
		view->hopeless = nobody_is_stuck(view);
	if (fits && keep_better(view, best, target->moves, &before)) {
		best->chosen = false;
		best->target = *target;
	}
	nobody_moves(view);
	return fits;
}

static bool try_choice(struct view *view, const uint32_t *choice, uint32_t extra, struct repair *best)
{
	struct budget before;
	mark_choice(view, choice, extra);
	bool fits = movers_fit(view, view->lost + extra, &before);
	if (fits && keep_better(view, best, view->lost + extra, &before)) {
		best->chosen = true;
		best->extra = extra;
		memcpy(best->choice, choice, extra * sizeof *choice);
	}
	nobody_moves(view);
	return fits;
}

/* Marks the movers of the best repair; its plan is in places, made again if it was not the last one. */
static void realise(struct view *view, const struct repair *best)
{
	if (best->chosen)
		mark_choice(view, best->choice, best->extra);
	else
		target_choose(view, &best->target);
	if (best->plan == view->plans)
		return;
	*view->budget = best->budget;
	bool fits = plan_movers(view);
	assert(fits); /* the same state, the same question and the same budget */
}

/* ---- phase 3: targets ----------------------------------------------------------------------------------------------- */

/* The same target, when segments without room for those that they have lost move as a whole. */
static void try_segments(struct view *view, struct target target, struct repair *best)
{
	target.segments = true;
	target_choose(view, &target);
	target.moves = 0;
	for (uint32_t i = 0; i < view->work->roster.count; i++)
		target.moves += view->work->state[i] == LOST || view->work->state[i] == MOVES;
	nobody_moves(view);
	if (!best->found || target.moves < best->moves)
		try_target(view, &target, best);
}

/* Of the targets that work with the fewest moves, the best by reference 3.4; equal: the first. */
static void try_targets(struct view *view, struct repair *best)
{
	for (uint32_t i = 0; i < view->target_count && !view->budget->spent; i++) {
		if (best->found && view->targets[i].moves > best->moves)
			return;
		bool fits = try_target(view, &view->targets[i], best);
		if (!fits && view->rule.segment_size > 0 && !view->targets[i].none)
			try_segments(view, view->targets[i], best);
	}
}

/* ---- phase 4: choices of members ------------------------------------------------------------------------------------ */

/* How many choices there are; over `most`: most + 1. */
static uint64_t choices(uint32_t of, uint32_t count, uint64_t most)
{
	uint64_t number = 1;
	for (uint32_t i = 0; i < count; i++) {
		number = number * (of - i) / (i + 1);
		if (number > most)
			return most + 1;
	}
	return number;
}

/* The next choice in order, of `count` numbers under `of`. */
static bool next_choice(uint32_t *choice, uint32_t count, uint32_t of)
{
	uint32_t at = count;
	while (at > 0 && choice[at - 1] == of - count + at - 1)
		at--;
	if (at == 0)
		return false;
	choice[at - 1]++;
	for (; at < count; at++)
		choice[at] = choice[at - 1] + 1;
	return true;
}

struct edge { /* the healthy members furthest to one side: one of them stays, whatever the choice */
	uint32_t count;
	uint32_t number[RECOVER_EXTRA + 1], position[RECOVER_EXTRA + 1];
};

static void edge_add(struct edge *edge, uint32_t number, uint32_t position, bool front)
{
	uint32_t at = edge->count;
	while (at > 0 && (front ? position < edge->position[at - 1] : position > edge->position[at - 1]))
		at--;
	if (at > RECOVER_EXTRA)
		return;
	edge->count = min_u32(edge->count + 1, RECOVER_EXTRA + 1);
	memmove(&edge->number[at + 1], &edge->number[at], (edge->count - 1 - at) * sizeof *edge->number);
	memmove(&edge->position[at + 1], &edge->position[at], (edge->count - 1 - at) * sizeof *edge->position);
	edge->number[at] = number;
	edge->position[at] = position;
}

/* Position of the outermost one that stays; FROND_NONE: nobody does. */
static uint32_t edge_position(const struct edge *edge, const uint32_t *choice, uint32_t extra)
{
	for (uint32_t i = 0; i < edge->count; i++) {
		bool moves = false;
		for (uint32_t j = 0; j < extra; j++)
			moves |= choice[j] == edge->number[i];
		if (!moves)
			return edge->position[i];
	}
	return FROND_NONE;
}

struct edges {
	struct edge front, back;
};

static struct edges edges_of(const struct view *view)
{
	struct edges edges = {.front = {.count = 0}, .back = {.count = 0}};
	for (uint32_t number = 0; number < view->total - view->lost; number++) {
		uint32_t position = position_of_member(view, view->work->healthy[number]);
		edge_add(&edges.front, number, position, true);
		edge_add(&edges.back, number, position, false);
	}
	return edges;
}

/* Could those that stay be part of a gang that meets the rule? A look at the outermost ones, before the planner is asked. */
static bool may_stay(const struct view *view, const struct edges *edges, const uint32_t *choice, uint32_t extra)
{
	const struct fabric *fabric = view->fabric;
	uint32_t first = edge_position(&edges->front, choice, extra), last = edge_position(&edges->back, choice, extra);
	if (view->rule.name == FROND_RULE_NONE || first == FROND_NONE || first == last)
		return true;
	if (view->rule.name == FROND_RULE_SINGLE_NODE)
		return false;
	if (view->rule.name == FROND_RULE_NVLINK_DOMAIN)
		return fabric->domain_of[first] == fabric->domain_of[last];
	uint32_t leaf = fabric->leaf_of[first], last_leaf = fabric->leaf_of[last];
	if (leaf == FROND_NONE || last_leaf == FROND_NONE)
		return false;
	uint32_t spine = fabric->leaf_spine[leaf], last_spine = fabric->leaf_spine[last_leaf];
	if (view->rule.name == FROND_RULE_ADJACENT_SPINES)
		return last_spine - spine < view->rule.need_spines;
	return spine == last_spine && last_leaf - leaf < view->rule.need_leaves;
}

/* Every choice of exactly so many healthy members, until one works; *complete: all were looked at. */
static bool try_choices(struct view *view, const struct edges *edges, uint32_t extra, struct repair *best,
			bool *complete)
{
	uint32_t choice[RECOVER_EXTRA], healthy = view->total - view->lost;
	for (uint32_t i = 0; i < extra; i++)
		choice[i] = i;
	*complete = true;
	do {
		*complete = budget_take(view->budget, extra + 1ull);
		if (*complete && may_stay(view, edges, choice, extra) && try_choice(view, choice, extra, best))
			return true;
		*complete &= !view->budget->spent && !view->doubt;
	} while (*complete && next_choice(choice, extra, healthy));
	return false;
}

/* Fewer moves than the best has, one more each time; *least follows what has been ruled out. A plan of members of several
 * sizes that fails rules nothing out: the planner does not promise to find every one. */
static void try_fewer(struct view *view, uint32_t *least, struct repair *best)
{
	uint64_t left = RECOVER_TRIES;
	struct edges edges = edges_of(view);
	uint32_t most = best->found ? best->moves : view->total + 1;
	for (uint32_t moves = *least; moves < most; moves++) {
		uint32_t extra = moves - view->lost;
		uint64_t number = extra > RECOVER_EXTRA ? left + 1 : choices(view->total - view->lost, extra, left);
		bool complete;
		if (number > left)
			return;
		left -= number;
		if (try_choices(view, &edges, extra, best, &complete) || !complete)
			return;
		if (view->size != 0)
			*least = moves + 1;
	}
	view->hopeless = !best->found;
}

/* ---- phase 5: choices with as many moves ------------------------------------------------------------------------------ */

/* Puts the best plan with as many moves in place of the one that was found, which wins when it is as good. */
static void compare_choices(struct view *view, struct repair *best)
{
	uint32_t choice[RECOVER_EXTRA], healthy = view->total - view->lost, extra = best->moves - view->lost;
	if (!best->found || extra == 0 || extra > RECOVER_EXTRA || choices(healthy, extra, RECOVER_TIES) > RECOVER_TIES)
		return;
	struct edges edges = edges_of(view);
	for (uint32_t i = 0; i < extra; i++)
		choice[i] = i;
	do {
		if (may_stay(view, &edges, choice, extra))
			try_choice(view, choice, extra, best);
	} while (!view->budget->spent && next_choice(choice, extra, healthy));
}

/* ---- policies ------------------------------------------------------------------------------------------------------- */

/* No rule to restore: the healthy ones stay, unless nothing is possible beside them (a link that is too slow, a cap). */
static void move_few(struct view *view, uint32_t *least, struct repair *best)
{
	const struct target all = {.none = true, .moves = view->total};
	try_target(view, &all, best); /* there is an answer, or there is none at all, before the search begins */
	if (!view->hopeless)
		try_fewer(view, least, best);
}

static void move_by_rule(struct view *view, uint32_t *least, struct repair *best)
{
	view->rule = rule_of(&view->ask, &view->answer);
	view->spreads = ask_spreads(&view->ask);
	*least = targets_survey(view);
	if (view->rule.segment_size > 0 && view->rule.name > FROND_RULE_NVLINK_DOMAIN && view->size != 0)
		*least = max_u32(*least, view->lost + segments_least(view));
	try_targets(view, best);
	if (!view->hopeless && (!best->found || best->moves > *least))
		try_fewer(view, least, best);
}

/* The lost ones have left. True: a plan with the rule met and the fewest moves is in places. */
static bool move_gang(struct view *view, struct frond_moves *out)
{
	struct repair best = {.found = false};
	uint32_t least = view->lost;
	enum mode mode = view->ask.mode;
	if (mode == MODE_IGNORE || view->fabric->leaf_count == 0) {
		move_few(view, &least, &best);
	} else if (!place_rule_of(view->core->work, &view->ask, &view->answer) ||
		   (view->answer.plan.flags & FROND_PLAN_SHAPELESS)) {
		view->cut |= view->answer.cut;
		return false; /* the rule cannot be restored, as far as is known */
	} else {
		view->ask.mode = MODE_REQUIRED;
		move_by_rule(view, &least, &best);
	}
	compare_choices(view, &best);
	out->lower_bound = least;
	view->cut |= view->budget->spent || view->doubt || !best.found || best.moves > least;
	view->cut &= !view->hopeless;
	if (best.found) {
		realise(view, &best);
		view->answer = best.answer;
	}
	view->ask.mode = mode;
	return best.found;
}

/* A running gang is worth more than its rule: the nearest place is what a relaxed plan takes, those that stay counting. */
static bool replace(struct view *view, bool insists, struct frond_moves *out)
{
	out->lower_bound = view->lost;
	place_gang(view->core->work, &view->ask, &view->answer, view->work->places);
	bool relaxes = view->ask.mode == MODE_REQUIRED && !view->ask.latency_sensitive && !insists;
	if (view->answer.plan.outcome == FROND_WAITS && relaxes) {
		view->ask.mode = MODE_PREFERRED;
		place_gang(view->core->work, &view->ask, &view->answer, view->work->places);
	}
	return view->answer.plan.outcome == FROND_PLACED;
}

/* The other half is for what comes after. */
static bool move_gang_by_half(struct view *view, struct frond_moves *out)
{
	uint64_t half = view->budget->left / 2;
	view->budget->left -= half;
	bool placed = move_gang(view, out);
	*view->budget = (struct budget){.left = view->budget->left + half};
	return placed;
}

static int32_t repair(struct view *view, const struct terms *terms, const struct ask *defaults, struct frond_moves *out,
		      struct frond_move *moves, uint32_t cap)
{
	struct recover_work *work = view->work;
	struct core *core = view->core;
	*out = (struct frond_moves){.outcome = FROND_PLACED};
	int32_t code = roster_fill(&work->roster, core, view->gang);
	if (code != FROND_OK)
		return code;
	find_lost(view);
	if (view->lost == 0)
		return FROND_OK;
	if (terms->recovery == RECOVERY_WAIT) {
		out->outcome = FROND_WAITS;
		return FROND_OK;
	}
	/* Nobody leaves twice: once the whole gang has room in the log, so has every try. */
	if (!undo_room_bytes(&core->undo, 2ull * UNDO_OPERATION + (uint64_t)UNDO_LEAVING * view->total))
		return FROND_LIMIT;
	undo_begin(&core->undo);
	roster_ask(&work->roster, terms, defaults, defaults->room, defaults->room_count, &view->ask);
	let_go(view, LOST);
	bool placed = (terms->recovery == RECOVERY_MOVE_GANG && move_gang_by_half(view, out)) ||
		      replace(view, terms->insists, out);
	undo_back(&core->undo);
	bool cut = view->cut || view->budget->spent;
	out->flags = view->answer.plan.flags | (cut ? FROND_PLAN_BOUNDED : 0u);
	out->outcome = placed || !cut ? view->answer.plan.outcome : (uint32_t)FROND_UNDECIDED;
	if (!placed)
		out->lower_bound = 0;
	return placed ? tell_moves(view, out, moves, cap) : FROND_OK;
}

static struct view view_of(struct recover_work *work, struct core *core, uint32_t gang)
{
	return (struct view){
		.work = work, .core = core, .fabric = &core->fabric, .gang = gang, .budget = place_budget(core->work)};
}

int32_t recover(struct recover_work *work, struct core *core, uint32_t gang, const struct ask *defaults,
		struct frond_moves *out, struct frond_move *moves, uint32_t cap)
{
	struct terms terms = gang_terms(&core->gangs.gangs[gang]); /* a what-if may end the gang */
	struct view view = view_of(work, core, gang);
	budget_begin(view.budget, core->fabric.node_count);
	return repair(&view, &terms, defaults, out, moves, cap);
}

void recover_otherwise(struct recover_work *work, struct core *core, uint32_t gang, const struct ask *defaults,
		       struct recover_choices *out)
{
	struct terms terms = gang_terms(&core->gangs.gangs[gang]);
	struct view view = view_of(work, core, gang);
	*out = (struct recover_choices){.first = FROND_NONE};
	terms.recovery = RECOVERY_MOVE_GANG;
	terms.insists = true;
	repair(&view, &terms, defaults, &out->move_gang, NULL, 0);
	view = view_of(work, core, gang);
	terms.recovery = RECOVERY_REPLACE;
	terms.insists = false;
	repair(&view, &terms, defaults, &out->preferred, out->moves, RECOVER_SHOWN);
	for (uint32_t i = 0; i < work->roster.count; i++) {
		uint32_t leaf = work->state[i] == STAYS ? leaf_of_member(&view, i) : FROND_NONE;
		if (leaf == FROND_NONE)
			continue;
		out->first = min_u32(out->first, leaf);
		out->last = max_u32(out->last, leaf);
	}
}
