/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recover.c - phases of a repair:
 *
 *   1  who is lost; a what-if without them
 *   2  Replace: the planner places them beside the others, which stay
 *   3  MoveGang: every span that the rule allows (node, NVLink domain, run of leaves, adjacent spines, or one leaf
 *      whose link nobody may cross) needs so many moves: the members outside it, and where every leaf must be in use
 *      no fewer than there are leaves without anybody. The least of these is the lower bound. Spans go to the planner,
 *      cheapest first, until one works; of those that need as many moves the best by spec 3.4 wins, then the first
 *   4  when that is more than the lower bound (mixed sizes, GPU sets, caps): every choice of fewer members, as far as
 *      RECOVER_TRIES goes; a number of moves of which every choice fails raises the lower bound
 *   5  who moves is not always told by the span: of few choices with as many moves all are compared by spec 3.4
 */
#include "core/recover.h"

#include "core/sort.h"
#include "core/span.h"

#define RECOVER_TARGETS 64u   /* spans that the planner is asked about */
#define RECOVER_TRIES   4096u /* choices of members that the planner is asked about */
#define RECOVER_EXTRA   8u    /* healthy members in such a choice */
#define RECOVER_TIES    256u  /* choices with as many moves that are compared with the one that was found */

enum member_state { STAYS, LOST, MOVES, NO_GPUS };

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
		const struct frond_room *room, struct ask *ask)
{
	*ask = (struct ask){.members = roster->members,
			    .count = roster->count,
			    .strategy = terms->strategy,
			    .mode = terms->mode,
			    .latency_sensitive = terms->latency_sensitive,
			    .bandwidth_gbps = terms->bandwidth_gbps,
			    .max_nodes_per_leaf = defaults->max_nodes_per_leaf,
			    .max_gpus_per_leaf = defaults->max_gpus_per_leaf,
			    .only_slot = FROND_NONE,
			    .domain_first = defaults->domain_first,
			    .domain_end = defaults->domain_end,
			    .domain_nvlink = defaults->domain_nvlink,
			    .gpu = terms->gpu,
			    .room = room};
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
	uint64_t leaves = FABRIC_LEAVES(nodes) + 1;
	roster_layout(&work->roster, arena, pods);
	work->places = arena_raw(arena, work->roster.cap, sizeof *work->places);
	work->state = arena_raw(arena, work->roster.cap, sizeof *work->state);
	work->healthy = arena_raw(arena, leaves, sizeof *work->healthy);
	work->room = arena_raw(arena, leaves, sizeof *work->room);
	work->empty = arena_raw(arena, leaves, sizeof *work->empty);
	work->walls = arena_raw(arena, leaves, sizeof *work->walls);
}

struct view { /* one repair */
	struct recover_work *work;
	struct core *core;
	const struct fabric *fabric;
	struct ask ask;
	struct answer answer; /* of the last plan; after rule_of() the rule */
	struct rule rule;
	uint32_t total, lost; /* members with GPUs */
	uint32_t size;        /* GPUs of a member; 0: sizes differ */
	bool spreads;         /* may use fewer leaves or spines than the rule allows */
};

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
		work->state[i] = (uint8_t)state_of(view->core, &view->core->ledger.entries[work->roster.entries[i]]);
		if (work->state[i] == NO_GPUS)
			continue;
		mixed |= view->total > 0 && work->roster.members[i].gpus != view->size;
		view->size = work->roster.members[i].gpus;
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

/* ---- phase 3: spans ------------------------------------------------------------------------------------------------- */

/* Where the gang shall lie, what that keeps and what it costs; see next_target(). */
struct target {
	uint32_t index;  /* in their order */
	uint32_t lo, hi; /* member; leaves; spines */
	uint32_t
		leaf; /* no spines but this leaf, whose link is slow: whoever stays inside does not cross it; or FROND_NONE */
	uint32_t kept;  /* healthy members inside */
	uint32_t owed;  /* leaves or spines inside that have nobody and must be used */
	uint32_t least; /* moves, at least */
	uint32_t moves; /* moves when the planner agrees */
	bool none;      /* keeps nobody: goes anywhere */
	bool fits;      /* as far as free GPUs tell */
};

/* Members that fit on a node today, at most: GPU sets may allow fewer. */
static uint32_t node_room(const struct view *view, uint32_t position)
{
	const struct ask *ask = &view->ask;
	uint32_t slot = view->fabric->order[position];
	const struct node *node = &view->core->nodes[slot];
	if (!node_open(node) || !node_fast(node, ask->bandwidth_gbps))
		return 0;
	uint32_t room = node_free_count(node) / max_u32(view->size, 1);
	return ask->room == NULL ? room : min_u32(room, min_u32(ask->room[slot].today, ask->room[slot].ever));
}

static uint32_t span_room(const struct view *view, const struct span *span)
{
	uint32_t room = 0;
	for (uint32_t position = span->first; position < span->end; position++)
		if (span_has(view->fabric, span, position))
			room += node_room(view, position);
	return room;
}

static uint32_t leaf_room(const struct view *view, uint32_t leaf)
{
	const struct fabric *fabric = view->fabric;
	struct span whole = span_of_leaf(fabric, leaf);
	if (view->ask.room != NULL || view->ask.bandwidth_gbps > fabric->leaf_slowest[leaf])
		return span_room(view, &whole);
	uint32_t size = max_u32(view->size, 1), room = 0;
	for (uint32_t gpus = size; gpus <= FROND_GPUS_MAX; gpus += size)
		room += fabric->leaf[leaf].at_least[gpus];
	return room;
}

static uint32_t position_of_member(const struct view *view, uint32_t i)
{
	return view->fabric->position[entry_slot(&view->core->ledger.entries[view->work->roster.entries[i]])];
}

static uint32_t leaf_of_member(const struct view *view, uint32_t i)
{
	return view->fabric->leaf_of[position_of_member(view, i)];
}

/* With the lost ones gone. */
static void sum_leaves(struct view *view)
{
	struct recover_work *work = view->work;
	uint32_t leaves = view->fabric->leaf_count;
	memset(work->healthy, 0, (leaves + 1) * sizeof *work->healthy);
	for (uint32_t i = 0; i < work->roster.count; i++)
		if (work->state[i] == STAYS && leaf_of_member(view, i) != FROND_NONE)
			work->healthy[leaf_of_member(view, i) + 1]++;
	work->room[0] = work->empty[0] = work->walls[0] = 0;
	for (uint32_t leaf = 0; leaf < leaves; leaf++) {
		uint32_t here = work->healthy[leaf + 1], room = leaf_room(view, leaf);
		work->healthy[leaf + 1] += work->healthy[leaf];
		work->room[leaf + 1] = work->room[leaf] + room;
		work->empty[leaf + 1] = work->empty[leaf] + (here == 0);
		work->walls[leaf + 1] = work->walls[leaf] + (leaf_slow(view->fabric, leaf, view->ask.bandwidth_gbps) ||
							     (here == 0 && room == 0));
	}
}

static uint32_t between(const uint32_t *sums, uint32_t lo, uint32_t hi)
{
	return sums[hi] - sums[lo];
}

/* The node or the NVLink domain of a member; empty when it is in no domain. */
static struct span span_of_member(const struct view *view, uint32_t i)
{
	uint32_t position = position_of_member(view, i);
	return view->rule.name == FROND_RULE_SINGLE_NODE ? span_of_node(position)
							 : span_of_nvlink(view->fabric, position);
}

static bool member_inside(const struct view *view, uint32_t i, const struct span *span)
{
	return span_has(view->fabric, span, position_of_member(view, i));
}

static bool next_place(const struct view *view, struct target *target)
{
	const struct recover_work *work = view->work;
	for (uint32_t i = target->lo; i < work->roster.count; i++) {
		uint32_t before = 0;
		if (work->state[i] != STAYS)
			continue;
		struct span span = span_of_member(view, i);
		for (uint32_t j = 0; j < i; j++)
			before += work->state[j] == STAYS && member_inside(view, j, &span);
		if (before > 0 || span.first == span.end)
			continue; /* seen with an earlier member */
		target->lo = i;
		target->kept = target->owed = 0;
		for (uint32_t j = i; j < work->roster.count; j++)
			target->kept += work->state[j] == STAYS && member_inside(view, j, &span);
		target->fits = span_room(view, &span) >= view->total - target->kept;
		return true;
	}
	return false;
}

/* Runs of leaves under one spine, each of them in use. */
static bool next_run(const struct view *view, struct target *target)
{
	const struct recover_work *work = view->work;
	const struct fabric *fabric = view->fabric;
	for (;; target->lo++, target->hi = target->lo + (view->spreads ? 0 : view->rule.need_leaves - 1)) {
		if (target->lo >= fabric->leaf_count)
			return false;
		target->hi++;
		uint32_t spine = fabric->leaf_spine[target->lo];
		if (target->hi > fabric->spine_start[spine + 1] || target->hi - target->lo > view->rule.need_leaves)
			continue;
		target->kept = between(work->healthy, target->lo, target->hi);
		target->owed = between(work->empty, target->lo, target->hi);
		uint32_t room = between(work->room, target->lo, target->hi);
		target->fits = room >= view->total - target->kept &&
			       (target->hi - target->lo == 1 || between(work->walls, target->lo, target->hi) == 0);
		return true;
	}
}

struct segment { /* leaves of a spine between two walls */
	uint32_t lo, hi;
	uint32_t kept, gaps, room;
};

/* The segment of a spine that keeps most members; .room: the most of any segment. */
static struct segment best_segment(const struct view *view, uint32_t spine)
{
	const struct recover_work *work = view->work;
	struct segment best = {.lo = 1};
	uint32_t end = view->fabric->spine_start[spine + 1], start = view->fabric->spine_start[spine];
	for (uint32_t leaf = start; leaf <= end; leaf++) {
		if (leaf < end && between(work->walls, leaf, leaf + 1) == 0)
			continue;
		struct segment segment = {.lo = start, .hi = leaf};
		start = leaf + 1;
		if (segment.lo == segment.hi)
			continue;
		segment.kept = between(work->healthy, segment.lo, segment.hi);
		segment.room = max_u32(best.room, between(work->room, segment.lo, segment.hi));
		best.room = segment.room;
		if (best.lo < best.hi && segment.kept <= best.kept)
			continue;
		uint32_t first = segment.lo, last = segment.hi;
		while (first < last && between(work->empty, first, first + 1) > 0)
			first++;
		while (first < last && between(work->empty, last - 1, last) > 0)
			last--;
		segment.gaps = segment.kept == 0 ? 1 : between(work->empty, first, last);
		best = segment;
	}
	return best;
}

/* Adjacent spines, each of them in use with one run. */
static bool next_chain(const struct view *view, struct target *target)
{
	const struct fabric *fabric = view->fabric;
	for (;; target->lo++, target->hi = target->lo + (view->spreads ? 0 : view->rule.need_spines - 1)) {
		if (target->lo >= fabric->spine_count)
			return false;
		target->hi++;
		bool chained = target->hi <= fabric->spine_count && target->hi - target->lo <= view->rule.need_spines;
		uint32_t room = 0;
		target->kept = target->owed = 0;
		for (uint32_t spine = target->lo; chained && spine < target->hi; spine++) {
			struct segment segment = best_segment(view, spine);
			chained = segment.lo < segment.hi && (spine == target->lo || spine_adjacent(fabric, spine));
			target->kept += segment.kept;
			target->owed += segment.gaps;
			room += segment.room;
		}
		if (!chained)
			continue;
		target->fits = room >= view->total - target->kept;
		return true;
	}
}

/* A gang that may use fewer spines than the rule allows may be in one leaf. Those with a fast link are in a chain. */
static bool next_slow_leaf(const struct view *view, struct target *target)
{
	const struct recover_work *work = view->work;
	for (uint32_t leaf = target->leaf + 1; view->spreads && leaf < view->fabric->leaf_count; leaf++) {
		if (!leaf_slow(view->fabric, leaf, view->ask.bandwidth_gbps))
			continue;
		target->leaf = leaf;
		target->kept = between(work->healthy, leaf, leaf + 1);
		target->owed = 0;
		target->fits = between(work->room, leaf, leaf + 1) >= view->total - target->kept;
		return true;
	}
	return false;
}

static struct target no_target(const struct view *view)
{
	uint32_t length = view->rule.need_leaves > 0 ? view->rule.need_leaves : view->rule.need_spines;
	return (struct target){
		.index = FROND_NONE, .leaf = FROND_NONE, .hi = view->spreads || length == 0 ? 0 : length - 1};
}

/* Every span of the rule in fabric order, and at last the one that keeps nobody. */
static bool next_target(const struct view *view, struct target *target)
{
	bool found = false;
	if (target->none)
		return false;
	bool by_place = view->rule.name == FROND_RULE_SINGLE_NODE || view->rule.name == FROND_RULE_NVLINK_DOMAIN;
	if (by_place) {
		target->lo += target->index != FROND_NONE;
		found = next_place(view, target);
	} else {
		found = view->rule.name == FROND_RULE_ADJACENT_SPINES
				? next_chain(view, target) || next_slow_leaf(view, target)
				: next_run(view, target);
	}
	target->index++;
	if (!found)
		*target = (struct target){.index = target->index, .leaf = FROND_NONE, .none = true, .fits = true};
	uint32_t outside = view->total - target->kept;
	target->least = max_u32(outside, view->rule.name == FROND_RULE_ADJACENT_SPINES ? 0 : target->owed);
	target->moves = max_u32(outside, target->owed);
	if (target->moves > view->total || (target->kept == 0 && !target->none))
		target->fits = false; /* more leaves than members; or the same as the last one */
	return true;
}

/* No plan has fewer moves: each lies in one of the spans. */
static uint32_t lower_bound(const struct view *view)
{
	uint32_t least = view->total;
	for (struct target target = no_target(view); next_target(view, &target);)
		if (target.fits)
			least = min_u32(least, target.least);
	return least;
}

/* The first span that costs least behind (moves, index). */
static bool cheapest_after(const struct view *view, const struct target *last, struct target *best)
{
	bool found = false;
	for (struct target target = no_target(view); next_target(view, &target);) {
		bool behind = last == NULL || target.moves > last->moves ||
			      (target.moves == last->moves && target.index > last->index);
		if (target.fits && behind && (!found || target.moves < best->moves)) {
			*best = target;
			found = true;
		}
	}
	return found;
}

static bool target_keeps(const struct view *view, const struct target *target, uint32_t i)
{
	uint32_t leaf = leaf_of_member(view, i);
	if (target->none)
		return false;
	if (view->rule.name == FROND_RULE_SINGLE_NODE || view->rule.name == FROND_RULE_NVLINK_DOMAIN) {
		struct span span = span_of_member(view, target->lo);
		return member_inside(view, i, &span);
	}
	if (leaf == FROND_NONE)
		return false;
	if (view->rule.name != FROND_RULE_ADJACENT_SPINES)
		return leaf >= target->lo && leaf < target->hi;
	if (target->leaf != FROND_NONE)
		return leaf == target->leaf;
	uint32_t spine = view->fabric->leaf_spine[leaf];
	if (spine < target->lo || spine >= target->hi)
		return false;
	struct segment segment = best_segment(view, spine);
	return leaf >= segment.lo && leaf < segment.hi;
}

/* Is somebody of its leaf, of those with a lower index, staying too? */
static bool has_company(const struct view *view, uint32_t i)
{
	for (uint32_t j = 0; j < i; j++)
		if (view->work->state[j] == STAYS && leaf_of_member(view, j) == leaf_of_member(view, i))
			return true;
	return false;
}

/* Who moves for this span: those outside, and for leaves that nobody uses yet the last ones that are not alone. */
static void choose_movers(struct view *view, const struct target *target)
{
	struct recover_work *work = view->work;
	uint32_t extra = target->moves - (view->total - target->kept);
	for (uint32_t i = 0; i < work->roster.count; i++)
		if (work->state[i] == STAYS && !target_keeps(view, target, i))
			work->state[i] = MOVES;
	for (uint32_t i = work->roster.count; i-- > 0 && extra > 0;)
		if (work->state[i] == STAYS && has_company(view, i)) {
			work->state[i] = MOVES;
			extra--;
		}
}

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

/* Can the planner place those that move, with the rule met? On success they stay marked. */
static bool movers_fit(struct view *view)
{
	uint32_t movers = 0;
	for (uint32_t i = 0; i < view->work->roster.count; i++)
		movers += view->work->state[i] == MOVES;
	if (!undo_room(&view->core->undo, 1ull + movers)) { /* too many for the log */
		nobody_moves(view);
		return false;
	}
	undo_begin(&view->core->undo);
	let_go(view, MOVES);
	place_gang(view->core->work, &view->ask, &view->answer, view->work->places);
	undo_back(&view->core->undo);
	bool placed = view->answer.plan.outcome == FROND_PLACED;
	if (!placed)
		nobody_moves(view);
	return placed;
}

static bool target_works(struct view *view, const struct target *target)
{
	choose_movers(view, target);
	return movers_fit(view);
}

/* Of the spans that work with the fewest moves, the best by spec 3.4; equal: the first. Spans are looked for while nobody is
 * marked. */
static bool try_targets(struct view *view, uint32_t *moves)
{
	struct target target, next = {.index = FROND_NONE}, best = next;
	struct answer answer;
	bool found = false, more = cheapest_after(view, NULL, &target);
	for (uint32_t tries = 0; more && tries < RECOVER_TARGETS; tries++, target = next) {
		if (found && target.moves > *moves)
			break;
		more = cheapest_after(view, &target, &next);
		if (!target_works(view, &target))
			continue;
		bool better = !found || answer_compare(&view->ask, &view->answer, &answer) < 0;
		*moves = target.moves;
		if (better && !(more && next.moves == target.moves))
			return true; /* the last one to compare */
		if (better) {
			best = target;
			answer = view->answer;
		}
		found = true;
		nobody_moves(view);
	}
	return found && target_works(view, &best); /* the same again */
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

/* The member that is number `number` among the healthy ones. */
static uint32_t healthy_member(const struct view *view, uint32_t number)
{
	for (uint32_t i = 0;; i++) {
		assert(i < view->work->roster.count);
		if (view->work->state[i] == LOST || view->work->state[i] == NO_GPUS)
			continue;
		if (number-- == 0)
			return i;
	}
}

static bool choice_works(struct view *view, const uint32_t *choice, uint32_t extra)
{
	for (uint32_t i = 0; i < extra; i++)
		view->work->state[healthy_member(view, choice[i])] = MOVES;
	return movers_fit(view);
}

/* Every choice of exactly so many healthy members. */
static bool try_choices(struct view *view, uint32_t extra)
{
	uint32_t choice[RECOVER_EXTRA], healthy = view->total - view->lost;
	for (uint32_t i = 0; i < extra; i++)
		choice[i] = i;
	do {
		if (choice_works(view, choice, extra))
			return true;
	} while (next_choice(choice, extra, healthy));
	return false;
}

/* Fewer than *most moves, one more each time; *least follows what has been ruled out. */
static bool try_fewer(struct view *view, uint32_t *least, uint32_t most)
{
	uint64_t left = RECOVER_TRIES;
	for (; *least < most; ++*least) {
		uint32_t extra = *least - view->lost;
		uint64_t number = extra > RECOVER_EXTRA ? left + 1 : choices(view->total - view->lost, extra, left);
		if (number > left)
			return false;
		left -= number;
		if (try_choices(view, extra))
			return true;
	}
	return false;
}

/* ---- phase 5: choices with as many moves ------------------------------------------------------------------------------ */

/* The healthy members that move in the plan in hand, as a choice; over RECOVER_EXTRA: how many. */
static uint32_t choice_in_hand(const struct view *view, uint32_t choice[RECOVER_EXTRA])
{
	uint32_t extra = 0, healthy = 0;
	for (uint32_t i = 0; i < view->work->roster.count; i++) {
		uint32_t state = view->work->state[i];
		if (state == MOVES && extra++ < RECOVER_EXTRA)
			choice[extra - 1] = healthy;
		healthy += state == MOVES || state == STAYS;
	}
	return extra;
}

/* Puts the best plan with as many moves in place of the one in hand, which wins when it is as good. */
static bool compare_choices(struct view *view)
{
	uint32_t best[RECOVER_EXTRA], choice[RECOVER_EXTRA], healthy = view->total - view->lost;
	uint32_t extra = choice_in_hand(view, best);
	if (extra == 0 || extra > RECOVER_EXTRA || choices(healthy, extra, RECOVER_TIES) > RECOVER_TIES)
		return true;
	struct answer answer = view->answer;
	nobody_moves(view);
	for (uint32_t i = 0; i < extra; i++)
		choice[i] = i;
	do {
		if (!choice_works(view, choice, extra))
			continue;
		if (answer_compare(&view->ask, &view->answer, &answer) < 0) {
			answer = view->answer;
			memcpy(best, choice, extra * sizeof *best);
		}
		nobody_moves(view);
	} while (next_choice(choice, extra, healthy));
	return choice_works(view, best, extra);
}

/* ---- policies ------------------------------------------------------------------------------------------------------- */

/* No rule to restore: the healthy ones stay, unless nothing is possible beside them (a link that is too slow, a cap). */
static bool move_few(struct view *view, struct frond_moves *out)
{
	uint32_t least = view->lost;
	const struct target all = {.none = true, .moves = view->total};
	bool found = try_fewer(view, &least, view->total) || target_works(view, &all);
	out->lower_bound = least;
	return found && compare_choices(view);
}

/* The lost ones have left. True: a plan with the rule met and the fewest moves is in places. */
static bool move_gang(struct view *view, struct frond_moves *out)
{
	if (view->ask.mode == MODE_IGNORE || view->fabric->leaf_count == 0)
		return move_few(view, out);
	if (!place_rule_of(view->core->work, &view->ask, &view->answer) ||
	    (view->answer.plan.flags & FROND_PLAN_SHAPELESS))
		return false; /* the rule cannot be restored */
	view->rule = rule_of(&view->ask, &view->answer);
	view->spreads = ask_spreads(&view->ask);
	sum_leaves(view);

	enum mode mode = view->ask.mode;
	uint32_t least = max_u32(view->lost, lower_bound(view)), moves = view->total + 1;
	view->ask.mode = MODE_REQUIRED;
	bool found = try_targets(view, &moves);
	if (!found || moves > least) {
		nobody_moves(view);
		if (try_fewer(view, &least, moves))
			found = true;
		else if (found)
			found = try_targets(view, &moves); /* the same again: nothing better is known */
	}
	found = found && compare_choices(view);
	view->ask.mode = mode;
	out->lower_bound = least;
	return found;
}

static bool replace(struct view *view, struct frond_moves *out)
{
	place_gang(view->core->work, &view->ask, &view->answer, view->work->places);
	out->lower_bound = view->lost;
	return view->answer.plan.outcome == FROND_PLACED;
}

int32_t recover(struct recover_work *work, struct core *core, uint32_t gang, const struct ask *defaults,
		const struct frond_room *room, struct frond_moves *out, struct frond_move *moves, uint32_t cap)
{
	struct terms terms = gang_terms(&core->gangs.gangs[gang]); /* a what-if may end the gang */
	struct view view = {.work = work, .core = core, .fabric = &core->fabric};
	*out = (struct frond_moves){.outcome = FROND_PLACED};
	budget_begin(place_budget(core->work), core->fabric.node_count);
	int32_t code = roster_fill(&work->roster, core, gang);
	if (code != FROND_OK)
		return code;
	find_lost(&view);
	if (view.lost == 0)
		return FROND_OK;
	if (terms.recovery == RECOVERY_WAIT) {
		out->outcome = FROND_WAITS;
		return FROND_OK;
	}
	if (!undo_room(&core->undo, 1))
		return FROND_LIMIT;
	undo_begin(&core->undo);
	if (!undo_room(&core->undo, 2ull + view.lost)) {
		undo_back(&core->undo);
		return FROND_LIMIT;
	}
	roster_ask(&work->roster, &terms, defaults, room, &view.ask);
	let_go(&view, LOST);
	bool placed = terms.recovery == RECOVERY_MOVE_GANG && move_gang(&view, out);
	if (!placed)
		placed = replace(&view, out);
	undo_back(&core->undo);
	out->flags = view.answer.plan.flags;
	out->outcome = placed ? FROND_PLACED : view.answer.plan.outcome;
	if (!placed)
		out->lower_bound = 0;
	return placed ? tell_moves(&view, out, moves, cap) : FROND_OK;
}
