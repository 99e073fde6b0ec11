/* SPDX-License-Identifier: Apache-2.0 */
/*
 * victims.c - the call. Phases:
 *
 *   1  does it fit as it is, relaxed if the gang allows that? which rule must it meet?
 *   2  the cheapest choice of victims in each domain, in fabric order, that undercuts those before (victims_search.c); for
 *      a gang that may break its rule and finds none, in the whole cluster without it
 *   3  the plan inside that domain, once they have gone
 *
 * What is tried is done to the nodes' masks and the counts above them alone, and taken back: the ledger stays as it is.
 */
#include "core/victims_work.h"

#define SHARE      4u  /* of the budget that is left may be spent on one domain */
#define PLAN_SHARE 3u  /* of the budget is kept for the plan at the end */
#define SET_STEPS  64u /* that choosing sets of GPUs on a node is worth */

_Static_assert(VICTIM_GANGS < UNIT_NONE, "a unit's number has 16 bits");

void victims_layout(struct victims_work *work, struct arena *arena, uint32_t nodes, uint32_t pods)
{
	work->node_cap = nodes;
	work->entry_cap = pods;
	work->gang_cap = min_u32(pods, VICTIM_GANGS);
	work->unit_of = arena_raw(arena, pods, sizeof *work->unit_of);
	work->rank_at = arena_raw(arena, pods, sizeof *work->rank_at);
	work->freed = arena_raw(arena, nodes, sizeof *work->freed);
	work->units = arena_raw(arena, work->gang_cap, sizeof *work->units);
	work->evict = arena_raw(arena, work->gang_cap, sizeof *work->evict);
}

int price_compare(const struct price *a, const struct price *b)
{
	if (a->budgets != b->budgets)
		return a->budgets < b->budgets ? -1 : 1;
	if (a->priority != b->priority)
		return a->priority < b->priority ? -1 : 1;
	if (a->gangs != b->gangs)
		return a->gangs < b->gangs ? -1 : 1;
	if (a->pods != b->pods)
		return a->pods < b->pods ? -1 : 1;
	return (a->gpus > b->gpus) - (a->gpus < b->gpus);
}

bool hunt_pay(struct hunt *hunt, uint64_t steps)
{
	struct budget *budget = place_budget(hunt->core->work);
	bool granted = steps <= hunt->steps && budget_take(budget, steps);
	if (!granted) { /* they may have been done already: then they are paid for as far as possible */
		budget->left -= budget->left < steps ? budget->left : steps;
		hunt->cut = true;
	}
	hunt->steps -= hunt->steps < steps ? hunt->steps : steps;
	return granted;
}

void hunt_found(struct hunt *hunt)
{
	uint64_t left = place_budget(hunt->core->work)->left;
	uint64_t share =
		hunt->rule.name == FROND_RULE_NONE ? left : left / SHARE; /* without a rule there is one domain */
	hunt->steps = hunt->found || hunt->steps < share ? hunt->steps : share;
	hunt->found = true;
}

/* ---- what if ------------------------------------------------------------------------------------------------------------- */

/* A pod's GPUs become free, or are held again. */
static void set_held(struct hunt *hunt, const struct entry *entry, bool held)
{
	if (entry_slot(entry) != FROND_NONE)
		ledger_count(&hunt->core->ledger, entry, held);
}

static void set_gang_held(struct hunt *hunt, uint32_t gang, uint32_t ranks, bool held)
{
	const struct entry *entries = hunt->core->ledger.entries;
	for (uint32_t at = gang_first(&hunt->core->gangs.gangs[gang]); at != FROND_NONE;
	     at = entry_gang_next(&entries[at]))
		if (ranks == UNIT_WHOLE || hunt->work->rank_at[at] < ranks)
			set_held(hunt, &entries[at], held);
}

static bool fits(struct hunt *hunt, const struct ask *ask)
{
	place_gang(hunt->core->work, ask, &hunt->answer, hunt->places);
	return hunt->answer.plan.outcome == FROND_PLACED;
}

/* The plan inside the span in hand. */
static bool fits_inside(struct hunt *hunt)
{
	bool placed = hunt->rule.name == FROND_RULE_NONE
			      ? fits(hunt, &hunt->ask)
			      : place_inside(hunt->core->work, &hunt->ask, &hunt->span, &hunt->answer, hunt->places);
	hunt->cut |= !placed && hunt->answer.cut; /* a plan that a bound has ended rules nothing out */
	return placed;
}

/* On one node: can the members choose their GPUs one after the other? */
static bool sets_there(struct hunt *hunt, struct node node)
{
	uint32_t slot = hunt->fabric->order[hunt->span.first];
	struct gpu_wish wish = hunt->ask.gpu;
	for (uint32_t i = 0; i < hunt->ask.named_count; i++)
		if (hunt->ask.named[i].slot == slot)
			wish.prefer |= hunt->ask.named[i].mask;
	if (node_count_free(&node) < hunt->gpus)
		return false;
	uint32_t free = node_free_mask(&node), held = node.held;
	for (uint32_t member = 0; member < hunt->members; member++) {
		uint32_t set = gpuset_choose(hunt->core->sets[node.topology], &wish, free, held, hunt->size);
		if (set == 0)
			return false;
		free &= ~set;
		held |= set;
	}
	return true;
}

static void leave_node(const struct hunt *hunt, struct node *node, const struct entry *entry)
{
	node->held = (uint16_t)(node->held & ~ledger_frees(&hunt->core->ledger, entry));
	node_count(node, (uint32_t)entry->by_count, false);
}

static bool sets_without(struct hunt *hunt, int32_t most, bool unbudgeted)
{
	const struct entry *entries = hunt->core->ledger.entries;
	struct node node = hunt->core->nodes[hunt->fabric->order[hunt->span.first]];
	for (uint32_t at = node.first; at != FROND_NONE; at = entry_node_next(&entries[at]))
		if (hunt_may_go(hunt, at, most, unbudgeted))
			leave_node(hunt, &node, &entries[at]);
	bool there = sets_there(hunt, node);
	hunt_forget(hunt);
	return there;
}

static bool sets_of_choice(struct hunt *hunt, int32_t most, uint16_t last)
{
	const struct victims_work *work = hunt->work;
	struct node node = hunt->core->nodes[hunt->fabric->order[hunt->span.first]];
	for (uint16_t i = last; i != UNIT_NONE; i = work->units[i].below)
		for (uint32_t p = 0; p < min_u32(work->units[i].gone, work->units[i].count); p++)
			leave_node(hunt, &node, &hunt->core->ledger.entries[hunt->inside[work->units[i].first + p]]);
	bool there = sets_there(hunt, node);
	hunt_refill(hunt, most); /* rings of GPUs are found in the same scratch */
	return there;
}

/* What a plan does beside what it counts itself: it is linear in the cluster and the gang, and the domain is emptied for it. */
static uint64_t plan_steps(const struct hunt *hunt)
{
	return STEPS_PLAN + (uint64_t)STEPS_NODE * hunt->fabric->node_count + 16ull * hunt->ask.count +
	       32ull * (hunt->span.end - hunt->span.first) + 48ull * hunt->inside_count;
}

bool hunt_fits_without(struct hunt *hunt, int32_t most, bool unbudgeted)
{
	const struct entry *entries = hunt->core->ledger.entries;
	if (hunt->by_sets)
		return hunt_pay(hunt, SET_STEPS) && sets_without(hunt, most, unbudgeted);
	if (!hunt_pay(hunt, plan_steps(hunt)))
		return false;
	for (int turn = 0; turn < 2; turn++) {
		for (uint32_t position = hunt->span.first; position < hunt->span.end; position++) {
			uint32_t slot = hunt->fabric->order[position];
			for (uint32_t at = hunt->core->nodes[slot].first; at != FROND_NONE;
			     at = entry_node_next(&entries[at]))
				if (hunt_may_go(hunt, at, most, unbudgeted))
					set_held(hunt, &entries[at], turn == 1);
		}
		if (turn == 0) {
			fits_inside(hunt);
			hunt_forget(hunt);
		}
	}
	return hunt->answer.plan.outcome == FROND_PLACED &&
	       (hunt->rule.name == FROND_RULE_NONE || hunt->answer.in_domain);
}

/* The list of pods is lost while the planner works: until it is there again, each unit knows how many ranks go. */
bool hunt_fits_choice(struct hunt *hunt, int32_t most, uint16_t last)
{
	struct unit *units = hunt->work->units;
	if (hunt->by_sets)
		return hunt_pay(hunt, SET_STEPS) && sets_of_choice(hunt, most, last);
	if (!hunt_pay(hunt, plan_steps(hunt)))
		return false;
	for (uint16_t i = last; i != UNIT_NONE; i = units[i].below)
		units[i].first = hunt_ranks(hunt, &units[i], units[i].gone);
	for (uint16_t i = last; i != UNIT_NONE; i = units[i].below)
		set_gang_held(hunt, units[i].gang, units[i].first, false);
	bool placed = fits_inside(hunt);
	for (uint16_t i = last; i != UNIT_NONE; i = units[i].below)
		set_gang_held(hunt, units[i].gang, units[i].first, true);
	hunt_refill(hunt, most);
	return placed;
}

/* ---- the call -------------------------------------------------------------------------------------------------------------- */

static void begin(struct hunt *hunt, const struct ask *ask)
{
	uint32_t by_size[FROND_GPUS_MAX + 1] = {0}, at_least = 0, weight = 0;
	hunt->ask = *ask;
	hunt->pin_first = FROND_NONE;
	hunt->members = 0;
	hunt->gpus = 0;
	for (uint32_t i = 0; i < ask->count; i++) {
		const struct frond_member *member = &ask->members[i];
		if (member->gpus == 0)
			continue;
		if (member->pinned_slot == FROND_NONE) {
			by_size[member->gpus]++;
			hunt->members++;
			hunt->gpus += member->gpus;
			continue;
		}
		uint32_t position = hunt->fabric->position[member->pinned_slot];
		hunt->pin_last = hunt->pin_first == FROND_NONE ? position : max_u32(hunt->pin_last, position);
		hunt->pin_first = min_u32(hunt->pin_first, position);
	}
	/* Where sizes differ, those of a size and above need room of that size; the size that needs most of it is counted. */
	hunt->size = 1;
	hunt->need = 0;
	hunt->mixed = false;
	for (uint32_t size = FROND_GPUS_MAX; size > 0; size--) {
		hunt->mixed |= by_size[size] > 0 && at_least > 0;
		at_least += by_size[size];
		if (by_size[size] == 0 || at_least * size < weight)
			continue;
		weight = at_least * size;
		hunt->size = size;
		hunt->need = at_least;
	}
}

static void learn_rule(struct hunt *hunt, const struct answer *answer)
{
	const struct ask *ask = &hunt->ask;
	bool claimed = ask->gpu.mode == MODE_REQUIRED,
	     capped = ask->max_nodes_per_leaf > 0 || ask->max_gpus_per_leaf > 0;
	hunt->rule = rule_of(ask, answer);
	hunt->spreads = ask_spreads(ask);
	bool single = hunt->rule.name == FROND_RULE_SINGLE_NODE;
	bool crosses = hunt->rule.name == FROND_RULE_NONE && ask->bandwidth_gbps > 0;
	bool pinned = hunt->pin_first != FROND_NONE, spines = hunt->rule.name == FROND_RULE_ADJACENT_SPINES;
	bool shaped = (spines && (pinned || ask->bandwidth_gbps > 0)) ||
		      (hunt->rule.name == FROND_RULE_ADJACENT_LEAVES && hunt->spreads && pinned);
	hunt->by_gpus = hunt->mixed && single;
	bool segments = hunt->rule.segment_size > 0; /* the planner's to count */
	hunt->by_sets = claimed && single && !hunt->mixed && !capped && !segments;
	hunt->exact = !segments && !claimed && !capped && !crosses && !shaped && (!hunt->mixed || single);
	if (hunt->by_gpus) {
		hunt->size = 1;
		hunt->need = (uint32_t)hunt->gpus;
	}
}

/* Every domain of the rule. True: the victims are in work->evict, and the domain in the span in hand. */
static bool find_cheapest(struct hunt *hunt)
{
	struct budget *budget = place_budget(hunt->core->work);
	struct price least = {UINT32_MAX, INT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
	struct span best = {0, 0, FROND_NONE};
	bool pinned = hunt->pin_first <= hunt->pin_last && hunt->pin_first != FROND_NONE;
	for (struct spans spans = spans_of(hunt->fabric, &hunt->rule, hunt->spreads); spans_next(&spans);) {
		hunt->span = spans.span;
		hunt->steps = hunt->found ? budget->left / SHARE : budget->left;
		if (budget->spent || budget->left == 0) {
			hunt->cut = true;
			break;
		}
		if (pinned && (!span_has(hunt->fabric, &hunt->span, hunt->pin_first) ||
			       !span_has(hunt->fabric, &hunt->span, hunt->pin_last)))
			continue;
		if (hunt_search(hunt, &least))
			best = spans.span;
	}
	hunt->span = best;
	return best.first < best.end;
}

/* The plan once they have gone. */
static bool plan_without(struct hunt *hunt)
{
	const struct victims_work *work = hunt->work;
	for (uint32_t i = 0; i < work->evict_count; i++)
		set_gang_held(hunt, work->evict[i].gang, work->evict[i].ranks, false);
	bool placed = fits_inside(hunt);
	for (uint32_t i = 0; i < work->evict_count; i++)
		set_gang_held(hunt, work->evict[i].gang, work->evict[i].ranks, true);
	return placed;
}

static bool hunt_down(struct hunt *hunt)
{
	struct budget *budget = place_budget(hunt->core->work);
	uint64_t kept = budget->left / PLAN_SHARE;
	budget->left -= kept;
	hunt->found = false;
	hunt_forget(hunt);
	bool found = find_cheapest(hunt);
	*budget = (struct budget){.left = budget->left + kept}; /* what is left of the search is the plan's, too */
	return found && plan_without(hunt);
}

/* With the rule met; else, for a gang that may break it, anywhere. */
static bool find_victims(struct hunt *hunt, const struct answer *waits)
{
	bool relaxes = hunt->ask.mode == MODE_PREFERRED && !hunt->ask.latency_sensitive;
	if (!relaxes) {
		learn_rule(hunt, waits);
		return hunt_down(hunt);
	}
	struct answer strict = *waits;
	hunt->ask.mode = MODE_REQUIRED;
	if (!fits(hunt, &hunt->ask))
		strict = hunt->answer;
	learn_rule(hunt, &strict);
	bool found = strict.plan.rule != FROND_RULE_NONE && hunt_down(hunt);
	if (found || hunt->cut)
		return found;
	hunt->ask.mode = MODE_PREFERRED;
	begin(hunt, &hunt->ask);
	learn_rule(hunt, waits);
	hunt->rule.name = FROND_RULE_NONE;
	return hunt_down(hunt);
}

static void sift_keys(struct frond_key *keys, uint32_t root, uint32_t count)
{
	for (uint32_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
		if (child + 1 < count && key_before(keys[child], keys[child + 1]))
			child++;
		if (!key_before(keys[root], keys[child]))
			return;
		struct frond_key key = keys[child];
		keys[child] = keys[root];
		keys[root] = key;
		root = child;
	}
}

/* By key: the ledger's lists go by history. */
static void sort_keys(struct frond_key *keys, uint32_t count)
{
	for (uint32_t root = count / 2; root > 0; root--)
		sift_keys(keys, root - 1, count);
	for (uint32_t end = count; end > 1; end--) {
		struct frond_key key = keys[end - 1];
		keys[end - 1] = keys[0];
		keys[0] = key;
		sift_keys(keys, 0, end - 1);
	}
}

/* The price, counted from the pods that go, and their keys. */
static int32_t tell(struct hunt *hunt, struct frond_victims *out, struct frond_key *pods, uint32_t cap)
{
	const struct victims_work *work = hunt->work;
	const struct entry *entries = hunt->core->ledger.entries;
	hunt->answer.plan.generation = hunt->core->generation;
	out->outcome = hunt->answer.plan.outcome;
	out->plan = hunt->answer.plan;
	for (uint32_t i = 0; i < work->evict_count; i++) {
		const struct gang *gang = &hunt->core->gangs.gangs[work->evict[i].gang];
		uint32_t ranks = work->evict[i].ranks;
		out->priority = i == 0 || gang->priority > out->priority ? gang->priority : out->priority;
		out->gangs++;
		for (uint32_t at = gang_first(gang); at != FROND_NONE; at = entry_gang_next(&entries[at])) {
			if (ranks != UNIT_WHOLE && work->rank_at[at] >= ranks)
				continue;
			if (out->count < cap)
				pods[out->count] = entries[at].pod;
			out->count++;
			out->budgets += entries[at].budgeted;
			out->gpus += entry_gpus(&entries[at]);
		}
	}
	if (out->count > cap)
		return FROND_SMALL;
	sort_keys(pods, out->count);
	return FROND_OK;
}

int32_t victims(struct victims_work *work, struct core *core, const struct ask *ask, int32_t priority,
		struct frond_victims *out, struct frond_place *places, struct frond_key *pods, uint32_t cap)
{
	struct hunt hunt = {
		.work = work, .core = core, .fabric = &core->fabric, .places = places, .priority = priority};
	*out = (struct frond_victims){0};
	work->evict_count = 0;
	budget_begin(place_budget(core->work), core->fabric.node_count);
	begin(&hunt, ask);
	bool placed = fits(&hunt, &hunt.ask);
	if (placed || hunt.answer.plan.outcome != FROND_WAITS || priority == INT32_MIN)
		return tell(&hunt, out, pods, cap);
	struct answer waits = hunt.answer;
	hunt.cut = waits.cut;
	hunt.sums = place_scratch(core->work);
	hunt.inside = (uint32_t *)(void *)(hunt.sums + SUMS);
	assert(place_scratch_bytes(core->work) > SUMS * sizeof *hunt.sums);
	hunt.inside_cap =
		(uint32_t)((place_scratch_bytes(core->work) - SUMS * sizeof *hunt.sums) / sizeof *hunt.inside);
	memset(work->unit_of, 0, work->entry_cap * sizeof *work->unit_of);
	memset(work->freed, 0, work->node_cap * sizeof *work->freed);
	hunt_rank(&hunt);
	bool found = find_victims(&hunt, &waits);
	if (!found) {
		hunt.answer = waits;
		work->evict_count = 0;
		if (hunt.cut)
			hunt.answer.plan.outcome = FROND_UNDECIDED;
	}
	if (hunt.cut)
		hunt.answer.plan.flags |= FROND_PLAN_BOUNDED;
	return tell(&hunt, out, pods, cap);
}
