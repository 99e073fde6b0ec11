/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.c - phases:
 *
 *   1  pods whose end is known are found and marked, once; the others that could be evicted are counted off their nodes
 *   2  the first end by which the gang fits: pods leave in the order of their ends. The rule comes from capacity and does not
 *      change with them, so counts say of most times that no domain of the rule can hold the gang yet: pods leave until one
 *      may, and from there on the planner is asked. More room never hurts, so that ends are searched by doubling and
 *      halving; where a claim rules GPU sets out it may, and the planner is asked at one after the other
 *   3  at that time: the window in hand if it is free, else the plan in the first domain that holds the gang
 *   4  what of it is free now; everything is counted back
 */
#include "core/window.h"

#include "core/sort.h"

#define PROBE_SHARE 4u /* of the budget that is left may be spent on one plan */
#define FETCHED     8u /* leavers ahead */

struct view { /* one call */
	struct core *core;
	const struct window_question *asked;
	const struct ask *ask;
	const struct leaver *leavers; /* in the order of their ends */
	uint32_t leaver_count;
	uint32_t now;           /* leavers[0 … now) are over already */
	uint32_t gone;          /* leavers[0 … gone) have left */
	uint32_t planned;       /* as many had left when the planner was last asked; FROND_NONE: not yet */
	uint32_t missing, size; /* members to place and GPUs of each; sizes differ: all their GPUs, and 1 */
	struct rule rule;       /* that the gang must meet; none: or that it may break */
	struct answer answer;
	struct frond_place *places;
	bool cut; /* the budget ended a search */
};

static struct budget *budget_of(const struct view *view)
{
	return place_budget(view->core->work);
}

/* ---- pods leave and come back ---------------------------------------------------------------------------------------- */

void window_layout(struct window_work *work, struct arena *arena, uint32_t pods)
{
	work->leavers = arena_raw(arena, pods, sizeof *work->leavers);
}

/* Ends of pods that hold nothing that matters are left out. False: ends[*bad] names a pod for the second time. */
static bool mark_ends(struct view *view, struct leaver *leavers, uint32_t *bad)
{
	struct ledger *ledger = &view->core->ledger;
	struct frond_key pods[LEDGER_BATCH];
	uint32_t found[LEDGER_BATCH], count;
	budget_charge(budget_of(view), (uint64_t)STEPS_END * view->asked->end_count);
	for (uint32_t first = 0; first < view->asked->end_count; first += count) {
		count = min_u32(LEDGER_BATCH, view->asked->end_count - first);
		for (uint32_t i = 0; i < count; i++)
			pods[i] = view->asked->ends[first + i].pod;
		ledger_find_all(ledger, pods, count, found);
		for (uint32_t i = 0; i < count; i++) {
			if (found[i] == FROND_NONE || entry_slot(&ledger->entries[found[i]]) == FROND_NONE)
				continue;
			*bad = first + i;
			if (ledger->entries[found[i]].ends)
				return false;
			ledger->entries[found[i]].ends = 1;
			leavers[view->leaver_count++] = (struct leaver){.entry = found[i], .end = first + i};
		}
	}
	return true;
}

static void unmark_ends(const struct view *view)
{
	for (uint32_t i = 0; i < view->leaver_count; i++)
		view->core->ledger.entries[view->leavers[i].entry].ends = 0;
}

/* Pods of unknown end in gangs of lower priority, which victims() may evict: off their nodes, or back. */
static void count_evictable(const struct view *view, bool onto)
{
	const struct gangs *gangs = &view->core->gangs;
	struct ledger *ledger = &view->core->ledger;
	uint64_t steps = gangs->fresh;
	for (uint32_t id = 0; id < gangs->fresh; id++) {
		const struct gang *gang = &gangs->gangs[id];
		if (gang_first(gang) == FROND_NONE || gang->priority >= view->asked->priority ||
		    gang->members != gang->bound)
			continue;
		for (uint32_t at = gang_first(gang); at != FROND_NONE; at = entry_gang_next(&ledger->entries[at]))
			if (!ledger->entries[at].ends && entry_slot(&ledger->entries[at]) != FROND_NONE) {
				ledger_count(ledger, &ledger->entries[at], onto);
				steps += STEPS_POD;
			}
	}
	budget_charge(budget_of(view), steps);
}

/* A leaver leaves, or comes back. Leavers are all over the ledger and the cluster: what the next ones need is on its way while
 * this one is counted, entries first, then nodes, then leaves. Before the first of them is far beyond the last. */
static void count(const struct view *view, uint32_t at, bool leaves)
{
	const struct leaver *leavers = view->leavers;
	const struct fabric *fabric = &view->core->fabric;
	struct ledger *ledger = &view->core->ledger;
	uint32_t ahead = leaves ? FETCHED : 0 - FETCHED, leaf = at + ahead, node = leaf + ahead, entry = node + ahead;
	if (entry < view->leaver_count)
		__builtin_prefetch(&ledger->entries[leavers[entry].entry].pod + 2); /* what it holds is at its end */
	if (node < view->leaver_count) {
		uint32_t slot = entry_slot(&ledger->entries[leavers[node].entry]);
		__builtin_prefetch(&ledger->nodes[slot], 1);
		__builtin_prefetch(&fabric->position[slot]);
	}
	if (leaf < view->leaver_count) {
		uint32_t position = fabric->position[entry_slot(&ledger->entries[leavers[leaf].entry])];
		if (position != FROND_NONE)
			__builtin_prefetch(&fabric->leaf_of[position]);
	}
	ledger_count(ledger, &ledger->entries[leavers[at].entry], !leaves);
}

/* The time when so many have left. */
static void go_to(struct view *view, uint32_t left)
{
	uint32_t steps = left > view->gone ? left - view->gone : view->gone - left;
	budget_charge(budget_of(view), (uint64_t)STEPS_POD * steps);
	while (view->gone < left)
		count(view, view->gone++, true);
	while (view->gone > left)
		count(view, --view->gone, false);
}

/* ---- plans ----------------------------------------------------------------------------------------------------------- */

/* A plan may spend its share of what is left. False: nothing is left for it. */
static bool plan_begin(struct view *view, uint64_t *kept)
{
	struct budget *budget = budget_of(view);
	uint64_t steps = STEPS_REPAIR + (uint64_t)STEPS_POD * view->ask->count +
			 3ull * STEPS_NODE * view->core->fabric.node_count;
	if (!budget_take(budget, steps)) {
		view->cut = true;
		return false;
	}
	*kept = budget->left - budget->left / PROBE_SHARE;
	budget->left /= PROBE_SHARE;
	return true;
}

static void plan_end(struct view *view, uint64_t kept)
{
	struct budget *budget = budget_of(view);
	view->cut |= budget->spent || view->answer.cut;
	*budget = (struct budget){.left = budget->left + kept};
}

static bool fits_anywhere(struct view *view)
{
	uint64_t kept;
	if (!plan_begin(view, &kept))
		return false;
	place_gang(view->core->work, view->ask, &view->answer, view->places);
	plan_end(view, kept);
	view->planned = view->gone;
	return view->answer.plan.outcome == FROND_PLACED;
}

/* As plan() would at that time. */
static bool fits_at(struct view *view, uint32_t left)
{
	go_to(view, left);
	return fits_anywhere(view);
}

static bool fits_inside(struct view *view, const struct span *span)
{
	uint64_t kept;
	if (!plan_begin(view, &kept))
		return false;
	bool inside = place_inside(view->core->work, view->ask, span, &view->answer, view->places);
	plan_end(view, kept);
	return inside;
}

/* ---- phase 2: when --------------------------------------------------------------------------------------------------- */

static int64_t ends_in(const struct view *view, uint32_t leaver)
{
	return view->asked->ends[view->leavers[leaver].end].ends_in_ms;
}

/* Ends at one moment are one time. */
static bool is_time(const struct view *view, uint32_t left)
{
	return left == view->leaver_count || left == 0 || ends_in(view, left) != ends_in(view, left - 1);
}

static uint32_t next_time(const struct view *view, uint32_t left)
{
	while (!is_time(view, left))
		left++;
	return left;
}

/* A time between lo and hi, near the middle; hi: there is none. */
static uint32_t time_between(const struct view *view, uint32_t lo, uint32_t hi)
{
	uint32_t middle = lo + (hi - lo) / 2, at = next_time(view, middle);
	if (at < hi && at > lo)
		return at;
	for (at = middle; at > lo && !is_time(view, at); at--)
		;
	return at > lo ? at : hi;
}

/* Members that leaves or spines with these counts take, at most. */
#define MEMBERS_OF(at_least, size, members)                                                                            \
	for (uint32_t gpus = (size); gpus <= FROND_GPUS_MAX; gpus += (size))                                           \
	(members) += (at_least)[gpus]

/* By counts alone: could a domain of the rule hold what is missing, or the whole cluster where there is no rule? *all: members
 * that the cluster takes; if not, or without a rule. */
static bool may_fit(const struct view *view, uint64_t *all)
{
	const struct fabric *fabric = &view->core->fabric;
	uint64_t whole = (uint64_t)view->missing * view->size;
	*all = 0;
	bool one_node = view->rule.name == FROND_RULE_SINGLE_NODE,
	     loose = view->rule.name == FROND_RULE_NONE || one_node;
	budget_charge(budget_of(view), 2ull * STEPS_LEAF * fabric->leaf_count);
	for (uint32_t leaf = 0; leaf < fabric->leaf_count; leaf++) {
		uint64_t members = 0;
		MEMBERS_OF(fabric->leaf[leaf].at_least, view->size, members);
		if (one_node)
			members = whole <= FROND_GPUS_MAX && fabric->leaf[leaf].at_least[whole] > 0 ? view->missing : 0;
		*all += members;
		if (view->rule.name < FROND_RULE_ADJACENT_LEAVES && !loose && members >= view->missing)
			return true;
		if (one_node && members > 0)
			return true;
	}
	for (uint32_t spine = 0; view->rule.name == FROND_RULE_ADJACENT_LEAVES && spine < fabric->spine_count;
	     spine++) {
		uint64_t members = 0;
		MEMBERS_OF(fabric->spine[spine].at_least, view->size, members);
		if (members >= view->missing)
			return true;
	}
	for (uint32_t at = fabric->leaf_start[fabric->leaf_count]; loose && at < fabric->node_count; at++) {
		const struct node *node = &view->core->nodes[fabric->order[at]];
		uint32_t free = node_open(node) ? node_free_count(node) : 0;
		if (one_node && free >= whole)
			return true;
		*all += free / view->size;
	}
	return *all >= view->missing &&
	       (view->rule.name == FROND_RULE_NONE || view->rule.name == FROND_RULE_ADJACENT_SPINES);
}

/* The same, once somebody has left the node; it did not fit before. *all: members that the cluster takes. */
static bool may_fit_since(const struct view *view, uint32_t slot, uint32_t free_before, uint64_t *all)
{
	const struct fabric *fabric = &view->core->fabric;
	const struct node *node = &view->core->nodes[slot];
	if (!node_open(node) || fabric->position[slot] == FROND_NONE)
		return false;
	uint32_t leaf = fabric->leaf_of[fabric->position[slot]], free = node_free_count(node);
	uint64_t members = 0;
	*all += free / view->size - free_before / view->size;
	switch (view->rule.name) {
	case FROND_RULE_NONE:
	case FROND_RULE_ADJACENT_SPINES:
		return *all >= view->missing;
	case FROND_RULE_SINGLE_NODE:
		return free >= (uint64_t)view->missing * view->size;
	default:
		break;
	}
	if (leaf == FROND_NONE)
		return false;
	if (view->rule.name == FROND_RULE_ADJACENT_LEAVES)
		MEMBERS_OF(fabric->spine[fabric->leaf_spine[leaf]].at_least, view->size, members);
	else
		MEMBERS_OF(fabric->leaf[leaf].at_least, view->size, members);
	return members >= view->missing;
}

/* The first time after now by which it may fit; false: it never does. */
static bool find_may_fit(struct view *view, uint32_t *at)
{
	uint64_t all;
	go_to(view, view->now);
	*at = next_time(view, view->now + 1);
	if (may_fit(view, &all))
		return true;
	bool may = false;
	while (!may && view->gone < view->leaver_count) {
		uint32_t slot = entry_slot(&view->core->ledger.entries[view->leavers[view->gone].entry]);
		uint32_t free_before = node_free_count(&view->core->nodes[slot]);
		count(view, view->gone++, true);
		may = may_fit_since(view, slot, free_before, &all);
	}
	budget_charge(budget_of(view), (uint64_t)STEPS_POD * (view->gone - view->now));
	*at = next_time(view, view->gone);
	return may;
}

/* No later time is worth a look: there is none, it never fits, or the budget is spent. */
static bool is_last(const struct view *view, uint32_t at)
{
	uint32_t outcome = view->answer.plan.outcome;
	return at == view->leaver_count || outcome == FROND_NEVER || outcome == FROND_REFUSED || budget_of(view)->spent;
}

/* The first time from `from` on at which it fits, where it fits at all after it: by doubling, so that few pods move when the
 * end is near, then by halves. False: at none. */
static bool find_by_halves(struct view *view, uint32_t from, uint32_t *at)
{
	uint32_t count = view->leaver_count, lo = from, step = 1;
	*at = from;
	while (!fits_at(view, *at)) {
		if (is_last(view, *at))
			return false;
		lo = *at;
		*at = next_time(view, count - lo > step ? lo + step : count);
		step *= 2;
	}
	for (;;) {
		uint32_t middle = *at > lo ? time_between(view, lo, *at) : *at;
		if (middle == *at)
			return true;
		if (fits_at(view, middle))
			*at = middle;
		else
			lo = middle;
	}
}

/* The same, one time after the other. */
static bool find_in_order(struct view *view, uint32_t from, uint32_t *at)
{
	for (*at = from; !fits_at(view, *at); *at = next_time(view, *at + 1))
		if (is_last(view, *at))
			return false;
	return true;
}

static bool find_time(struct view *view, uint32_t *at)
{
	*at = view->now;
	if (fits_at(view, view->now))
		return true;
	if (is_last(view, view->now))
		return false;
	bool relaxes = view->ask->mode != MODE_REQUIRED || view->answer.plan.flags & FROND_PLAN_SHAPELESS;
	view->rule = rule_of(view->ask, &view->answer);
	if (relaxes && !view->ask->latency_sensitive)
		view->rule.name = FROND_RULE_NONE;
	uint32_t from;
	if (!find_may_fit(view, &from))
		return false;
	if (view->ask->gpu.mode == MODE_REQUIRED)
		return find_in_order(view, from, at);
	return find_by_halves(view, from, at);
}

/* ---- phase 3: where -------------------------------------------------------------------------------------------------- */

/* Could the span hold what is missing, by counting GPUs of open nodes? */
static bool may_hold(const struct view *view, const struct span *span)
{
	const struct fabric *fabric = &view->core->fabric;
	uint64_t members = 0;
	for (uint32_t at = span->first; at < span->end && members < view->missing;) {
		uint32_t leaf = fabric->leaf_of[at];
		bool whole = leaf != FROND_NONE && span->nvlink == FROND_NONE && fabric->leaf_start[leaf] == at &&
			     fabric->leaf_start[leaf + 1] <= span->end;
		if (whole) {
			for (uint32_t gpus = view->size; gpus <= FROND_GPUS_MAX; gpus += view->size)
				members += fabric->leaf[leaf].at_least[gpus];
			at = fabric->leaf_start[leaf + 1];
			continue;
		}
		const struct node *node = &view->core->nodes[fabric->order[at]];
		if (node_open(node) && span_has(fabric, span, at))
			members += node_free_count(node) / view->size;
		at++;
	}
	return members >= view->missing;
}

/* The plan in the first domain that holds the gang; without a rule, or when the budget has no more, as plan() would. */
static void choose_domain(struct view *view)
{
	const struct fabric *fabric = &view->core->fabric;
	bool asked = view->planned == view->gone; /* or what was tried last is another time */
	bool placed = asked ? view->answer.plan.outcome == FROND_PLACED : fits_anywhere(view);
	struct rule rule = rule_of(view->ask, &view->answer);
	if (!placed || rule.name == FROND_RULE_NONE || view->answer.plan.flags & FROND_PLAN_RELAXED)
		return;
	for (struct spans spans = spans_of(fabric, &rule, ask_spreads(view->ask)); spans_next(&spans);) {
		if (!budget_take(budget_of(view), 1 + (spans.span.end - spans.span.first) / 8)) {
			view->cut = true;
			break;
		}
		if (may_hold(view, &spans.span) && fits_inside(view, &spans.span))
			return;
	}
	*budget_of(view) = (struct budget){.left = budget_of(view)->left};
	place_gang(view->core->work, view->ask, &view->answer, view->places);
}

/* A node of the window, in a list that is sorted by node. */
#define NODE_SHIFT 8u /* bits for what is wanted there */
#define NODE_BUSY  (1ull << 7)

/* The nodes of a window, and how many of them have the members' GPUs free. */
static void count_nodes(const struct view *view, const struct frond_place *places, uint32_t *nodes, uint32_t *free)
{
	uint64_t *list = place_scratch(view->core->work);
	uint32_t count = 0;
	*nodes = *free = 0;
	for (uint32_t i = 0; i < view->ask->count; i++) {
		const struct frond_member *member = &view->ask->members[i];
		if (member->gpus == 0 || member->pinned_slot != FROND_NONE)
			continue;
		const struct node *node = &view->core->nodes[places[i].slot];
		bool busy = !node_open(node) || (places[i].gpu_mask & ~node_free_mask(node)) != 0;
		list[count++] = (uint64_t)places[i].slot << NODE_SHIFT | (busy ? NODE_BUSY : 0) | member->gpus;
	}
	assert(count * sizeof *list <= place_scratch_bytes(view->core->work));
	sort_u64(list, count);
	for (uint32_t i = 0; i < count;) {
		uint64_t slot = list[i] >> NODE_SHIFT;
		uint32_t wanted = 0;
		bool busy = false;
		for (; i < count && list[i] >> NODE_SHIFT == slot; i++) {
			wanted += (uint32_t)(list[i] & (NODE_BUSY - 1));
			busy |= (list[i] & NODE_BUSY) != 0;
		}
		*nodes += 1;
		*free += !busy && wanted <= node_free_count(&view->core->nodes[slot]);
	}
}

/* Do the members still fit there as they are, by number and by the rule? *plan: what they use. */
static bool kept_meets(const struct view *view, const struct rule *rule, struct frond_plan *plan)
{
	const struct fabric *fabric = &view->core->fabric;
	const struct frond_place *kept = view->asked->kept;
	uint32_t *positions = place_scratch(view->core->work), count = 0;
	for (uint32_t i = 0; i < view->ask->count; i++) {
		const struct frond_member *member = &view->ask->members[i];
		if (member->gpus == 0)
			continue;
		bool pinned = member->pinned_slot != FROND_NONE;
		uint32_t slot = pinned ? member->pinned_slot : kept[i].slot;
		if (slot >= view->core->node_cap || !view->core->nodes[slot].present ||
		    (!pinned && bits_count(kept[i].gpu_mask) != member->gpus))
			return false;
		positions[count++] = fabric->position[slot];
	}
	if (!positions_meet(fabric, positions, count, rule))
		return false;
	struct use use = use_none();
	for (uint32_t i = 0; i < count; i++)
		use_add(&use, fabric, positions[i], 0);
	plan_use(plan, &use);
	return true;
}

/* The gang starts nowhere earlier than now: where the window that it has is free by now, too, it stays. */
static bool kept_stays(struct view *view)
{
	uint32_t nodes, free;
	struct frond_plan plan = view->answer.plan;
	if (view->asked->kept == NULL)
		return false;
	struct rule rule = rule_of(view->ask, &view->answer);
	if (view->answer.plan.flags & FROND_PLAN_RELAXED)
		rule.name = FROND_RULE_NONE;
	if (!kept_meets(view, &rule, &plan))
		return false;
	count_nodes(view, view->asked->kept, &nodes, &free);
	if (nodes == free)
		view->answer.plan = plan;
	return nodes == free;
}

/* ---- the call -------------------------------------------------------------------------------------------------------- */

static void count_members(struct view *view)
{
	bool mixed = false;
	uint64_t gpus = 0;
	for (uint32_t i = 0; i < view->ask->count; i++) {
		const struct frond_member *member = &view->ask->members[i];
		if (member->gpus == 0 || member->pinned_slot != FROND_NONE)
			continue;
		mixed |= gpus > 0 && view->size != member->gpus;
		view->size = member->gpus;
		gpus += member->gpus;
	}
	view->size = mixed || gpus == 0 ? 1 : view->size;
	view->missing = (uint32_t)(gpus / view->size);
}

static void tell(struct view *view, uint32_t at, struct frond_window *out)
{
	out->start_ms = at > view->now ? ends_in(view, at - 1) : 0;
	go_to(view, view->now);
	count_nodes(view, view->places, &out->nodes, &out->free);
}

static void find(struct view *view, struct frond_window *out)
{
	uint32_t at;
	while (view->now < view->leaver_count && ends_in(view, view->now) == 0)
		view->now++;
	if (!find_time(view, &at)) {
		uint32_t *outcome = &view->answer.plan.outcome;
		if (view->cut && *outcome != FROND_NEVER && *outcome != FROND_REFUSED)
			*outcome = FROND_UNDECIDED;
		return;
	}
	go_to(view, at);
	choose_domain(view);
	if (view->answer.plan.outcome != FROND_PLACED) {
		view->answer.plan.outcome = FROND_UNDECIDED; /* found with a larger share of the budget */
		view->cut = true;
		return;
	}
	out->kept = kept_stays(view);
	if (out->kept)
		memcpy(view->places, view->asked->kept, view->ask->count * sizeof *view->places);
	tell(view, at, out);
}

int32_t window(struct window_work *work, struct core *core, const struct window_question *question,
	       struct frond_window *out, struct frond_place *places, uint32_t *bad)
{
	struct view view = {.core = core,
			    .asked = question,
			    .ask = question->ask,
			    .leavers = work->leavers,
			    .planned = FROND_NONE,
			    .places = places};
	*out = (struct frond_window){.start_ms = FROND_WINDOW_NEVER};
	budget_begin(place_budget(core->work), core->fabric.node_count);
	if (!mark_ends(&view, work->leavers, bad)) {
		unmark_ends(&view);
		return FROND_BAD;
	}
	count_members(&view);
	count_evictable(&view, false);
	place_repeat(core->work, true);
	find(&view, out);
	place_repeat(core->work, false);
	go_to(&view, 0);
	count_evictable(&view, true);
	unmark_ends(&view);
	view.answer.plan.generation = core->generation;
	view.answer.plan.flags |= view.cut ? FROND_PLAN_BOUNDED : 0;
	out->plan = view.answer.plan;
	out->outcome = view.answer.plan.outcome;
	return FROND_OK;
}
