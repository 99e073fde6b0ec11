/* SPDX-License-Identifier: Apache-2.0 */
#include "core/place_work.h"

#define ROWS             3u     /* by member, of place_span.c */
#define POINTS_LEAST     5u     /* for place_table.c, in such rows: with few points it is computed more often */
#define TABLE_ITEM_BYTES 22u    /* of place_table.c: the list, three numbers and a key; an item is one node at least */
#define CELLS_NODES      16384u /* engines up to this size get a table that seldom has to be computed again */
#define CELLS_MOST       (1u << 21) /* its cells */

/* What stands in the scratch at one time: a list and sums by item, and beside them three rows by member, a view of every
 * spine or members to sort; or a list, numbers by item and as many rows of the table as there is room for. */
static void scratch_layout(struct scratch *scratch, struct arena *arena, uint32_t nodes, uint32_t members,
			   uint64_t least)
{
	uint64_t items = FABRIC_LEAVES(nodes) + nodes + 1; /* leaves, and nodes without one */
	uint64_t row = (uint64_t)ROWS * (members + 1), cells = row > FROND_MEMBERS_MAX ? row : FROND_MEMBERS_MAX;
	uint64_t view = FABRIC_SPINES(nodes) * sizeof *scratch->view / sizeof *scratch->cells + 1;
	uint64_t rest = cells > view ? cells : view, rows = POINTS_LEAST * (row + 1);
	uint64_t all = (row + 1) * (items + 2); /* nothing is ever computed twice */
	if (nodes <= CELLS_NODES && rows < CELLS_MOST)
		rows = all < CELLS_MOST ? all : CELLS_MOST;
	if (items + rest < rows)
		rest = rows - items;
	uint64_t table = (uint64_t)TABLE_ITEM_BYTES * nodes + 2 * sizeof *scratch->cells;
	least = least > table ? least : table;
	uint64_t bytes = items * sizeof *scratch->list + (items + rest) * sizeof *scratch->sum;
	least = least > gpuset_scratch() ? least : gpuset_scratch();
	if (bytes < least)
		rest += (least - bytes) / sizeof *scratch->sum + 1;
	scratch->list = arena_raw(arena, items, sizeof *scratch->list);
	scratch->sum = arena_raw(arena, items + rest, sizeof *scratch->sum);
	if (arena->base == NULL)
		return;
	scratch->cells = scratch->sum + items;
	scratch->view = (struct spine_view *)(void *)scratch->cells;
	scratch->end = arena->base + arena->used;
}

struct place_work *place_layout(struct arena *arena, struct fabric *fabric, const struct ledger *ledger,
				struct gpuset *const *sets, uint32_t nodes, uint64_t scratch)
{
	struct place_work sizes = {0}; /* while only counting */
	struct place_work *place = arena_take(arena, 1, sizeof *place), *work = place == NULL ? &sizes : place;
	uint64_t leaves = FABRIC_LEAVES(nodes);
	uint32_t members = nodes < FROND_MEMBERS_MAX / FROND_GPUS_MAX ? nodes * FROND_GPUS_MAX : FROND_MEMBERS_MAX;
	work->pin = arena_take(arena, nodes, sizeof *work->pin);
	work->take = arena_take(arena, nodes, sizeof *work->take);
	work->now = arena_raw(arena, nodes, sizeof *work->now);
	work->taken = arena_take(arena, nodes, sizeof *work->taken);
	work->hold = arena_raw(arena, leaves, sizeof *work->hold);
	work->stamp = arena_take(arena, leaves, sizeof *work->stamp);
	work->leaf_pin = arena_take(arena, leaves, sizeof *work->leaf_pin);
	work->limit = arena_take(arena, nodes, sizeof *work->limit);
	work->leaf_excepted = arena_take(arena, leaves, sizeof *work->leaf_excepted);
	work->leaf_never = arena_take(arena, leaves, sizeof *work->leaf_never);
	work->spine_excepted = arena_take(arena, FABRIC_SPINES(nodes), sizeof *work->spine_excepted);
	work->candidates.fill = arena_raw(arena, min_u32(nodes, FROND_LEAF_NODES), sizeof *work->candidates.fill);
	work->candidates.picks = arena_raw(arena, FROND_MEMBERS_MAX + 1, sizeof *work->candidates.picks);
	work->candidates.frames =
		arena_raw(arena, max_u32(members, PLACE_ORDERED) + 2, sizeof *work->candidates.frames);
	work->choices = arena_take(arena, 1u << CHOICES, sizeof *work->choices);
	work->candidates.alike_seen = arena_take(arena, FABRIC_SPINES(nodes), sizeof *work->candidates.alike_seen);
	work->candidates.gains = arena_take(arena, GAINS, sizeof *work->candidates.gains);
	work->member_pos = arena_raw(arena, FROND_MEMBERS_MAX, sizeof *work->member_pos);
	work->member_list = arena_raw(arena, FROND_MEMBERS_MAX, sizeof *work->member_list);
	scratch_layout(&work->scratch, arena, nodes, members, scratch);
	if (place == NULL)
		return NULL;
	place->purse = &place->budget;
	place->fabric = fabric;
	place->leaf_sums = fabric->leaf;
	place->spine_sums = fabric->spine;
	place->ledger = ledger;
	place->nodes = ledger->nodes;
	place->sets = sets;
	return place;
}

void *place_scratch(struct place_work *work)
{
	return work->scratch.list;
}

uint64_t place_scratch_bytes(const struct place_work *work)
{
	return (uint64_t)(work->scratch.end - (uint8_t *)work->scratch.list);
}

struct budget *place_budget(struct place_work *work)
{
	return &work->budget;
}

void place_repeat(struct place_work *work, bool repeats)
{
	work->repeats = repeats;
	work->choice_plan = ++work->plan;
}

/* ---- before --------------------------------------------------------------------------------------------------------- */

/* A template whose members have several sizes has one bound for all of them, which kinds of one size cannot keep. */
static bool templates_have_one_size(struct place_work *work)
{
	const struct ask *ask = work->ask;
	uint64_t *size = work->member_list; /* by template: GPUs of its members; 0: none seen yet */
	memset(size, 0, work->gang.templates * sizeof *size);
	for (uint32_t i = 0; i < ask->count; i++) {
		const struct frond_member *member = &ask->members[i];
		if (member->gpus == 0 || member->pinned_slot != FROND_NONE)
			continue;
		if (size[member->pod_template] != 0 && size[member->pod_template] != member->gpus)
			return false;
		size[member->pod_template] = member->gpus;
	}
	return true;
}

static void count_members(struct place_work *work)
{
	const struct ask *ask = work->ask;
	bool mixed = false;
	uint64_t gpus = 0;
	work->gang.size = work->gang.total = work->gang.pins = work->gang.templates = 0;
	for (uint32_t i = 0; i < ask->count; i++) {
		const struct frond_member *member = &ask->members[i];
		work->member_pos[i] = FROND_NONE;
		if (member->gpus == 0)
			continue;
		mixed |= work->gang.total > 0 && member->gpus != work->gang.size;
		work->gang.size = member->gpus;
		work->gang.total++;
		work->gang.pins += member->pinned_slot != FROND_NONE;
		work->gang.templates = max_u32(work->gang.templates, member->pod_template + 1);
		gpus += member->gpus;
	}
	/* Members of one size that exceptions tell apart are packed like those of several. */
	work->gang.templated =
		work->gang.templates > 1 && ask_tells_apart(ask, work->gang.templates) && templates_have_one_size(work);
	if (mixed || work->gang.templated)
		work->gang.size = 0;
	work->gang.missing = work->gang.total - work->gang.pins;
	work->answer->gpus = gpus;
	work->answer->members = work->gang.total;
	work->answer->missing = work->gang.missing;
	work->answer->gpus_each = work->gang.size;
	work->answer->best_gap = FROND_NONE;
	work->answer->claimed = ask->gpu.mode == MODE_REQUIRED;
	work->answer->bandwidth_gbps = ask->bandwidth_gbps;
}

/* Marks pinned members (one = 1) or takes the marks away. */
static void mark_pins(struct place_work *work, uint32_t one)
{
	for (uint32_t i = 0; work->gang.pins > 0 && i < work->ask->count; i++) {
		const struct frond_member *member = &work->ask->members[i];
		if (member->gpus == 0 || member->pinned_slot == FROND_NONE)
			continue;
		uint32_t position = work->fabric->position[member->pinned_slot];
		work->pin[position] = (uint16_t)(work->pin[position] + one);
		uint32_t leaf = work->fabric->leaf_of[position];
		if (leaf != FROND_NONE)
			work->leaf_pin[leaf] = (uint16_t)(work->leaf_pin[leaf] + one);
	}
}

/* The part of step 4 that pinned members bring along. */
static void count_pinned(struct place_work *work)
{
	const struct fabric *fabric = work->fabric;
	uint32_t count = 0;
	work->gang.models = 0;
	work->gang.domains = 0;
	for (uint32_t i = 0; work->gang.pins > 0 && i < work->ask->count; i++) {
		const struct frond_member *member = &work->ask->members[i];
		if (member->gpus == 0 || member->pinned_slot == FROND_NONE)
			continue;
		uint32_t at = fabric->position[member->pinned_slot], leaf = fabric->leaf_of[at];
		bool split = leaf != FROND_NONE && (fabric->leaf_model[leaf] & LEAF_SPLIT) != 0;
		uint32_t own = fabric->node_count + at; /* higher than any domain: the node by itself */
		work->gang.models |= 1ull << work->nodes[member->pinned_slot].model;
		work->member_list[count++] = !split ? (uint64_t)item_of(work, at) << 32 | UINT32_MAX
					     : fabric->domain_of[at] != FROND_NONE ? fabric->domain_of[at]
										   : own;
	}
	sort_u64(work->member_list, fabric->domain_count > 0 ? count : 0);
	for (uint32_t i = 0; fabric->domain_count > 0 && i < count; i++)
		work->gang.domains += i == 0 || work->member_list[i] != work->member_list[i - 1];
}

static void begin(struct place_work *work, const struct ask *ask, struct answer *answer)
{
	const struct fabric *fabric = work->fabric;
	const struct gpu_wish *wish = &ask->gpu;
	*answer = (struct answer){0};
	work->ask = ask;
	work->answer = answer;
	count_members(work);
	work->items = fabric->leaf_count + (fabric->node_count - fabric->leaf_start[fabric->leaf_count]);
	work->scope.lo = work->scope.from = 0;
	work->scope.hi = work->items;
	work->scope.end = fabric->node_count;
	work->scope.domain = work->scope.preferred = FROND_NONE;
	work->candidates.seen = 0;
	work->candidates.stop = false;
	work->plan++;
	work->choice_plan = work->repeats ? work->choice_plan : work->plan;
	work->chosen_topology = FROND_NONE;
	work->scope.constrained = wish->mode == MODE_REQUIRED;
	work->scope.shaped = ask->named_count == 0;
	work->scope.counted = work->scope.shaped && !work->scope.constrained && ask->only_slot == FROND_NONE &&
			      work->gang.size != 0 && ask->max_nodes_per_leaf == 0 && ask->max_gpus_per_leaf == 0;
	work->scope.alike = work->scope.shaped && work->gang.pins == 0 && ask->only_slot == FROND_NONE;
	work->scope.per_leaf = UINT32_MAX;
	work->scope.ever = false;
	work->scope.leafed = work->scope.linked = false;
	work->segments.on = false;
	work->segments.tail_item = FROND_NONE;
	place_measure(work, FROND_GPUS_MAX, false);
	mark_pins(work, 1);
	count_pinned(work);
	place_rooms_mark(work);
	if (work->scope.constrained)
		memset(work->now, 0, fabric->node_count * sizeof *work->now);
	segments_begin(work);
}

/* Leaves the scratch as begin() expects it. */
static void finish(struct place_work *work)
{
	mark_pins(work, UINT32_MAX);
	for (uint32_t i = 0; i < work->ask->count; i++)
		if (work->member_pos[i] != FROND_NONE && work->ask->members[i].gpus > 0)
			work->taken[work->member_pos[i]] = work->take[work->member_pos[i]] = 0;
}

/* ---- after ---------------------------------------------------------------------------------------------------------- */

/* Ranks of equal members: each in turn takes the first chosen node in fabric order that has a place (reference 3.4). */
static void hand_out_ranks(struct place_work *work)
{
	const struct ask *ask = work->ask;
	uint32_t pick = 0, position = 0, end = 0, taken = 0;
	for (uint32_t i = 0; i < ask->count; i++) {
		work->member_pos[i] = FROND_NONE;
		if (ask->members[i].gpus == 0 || ask->members[i].pinned_slot != FROND_NONE)
			continue;
		while (position == end || taken == work->take[position]) {
			taken = 0;
			if (position < end && ++position < end)
				continue;
			assert(pick < work->candidates.best.picks);
			position = item_start(work, work->candidates.picks[pick].item);
			end = item_end(work, work->candidates.picks[pick++].item);
		}
		work->member_pos[i] = position;
		taken++;
	}
}

/* Members of a node choose in rank order. Neighbours in rank mostly sit on nodes that look alike: the last answer is
 * kept. */
static struct frond_place place_of(struct place_work *work, uint32_t position, uint32_t gpus)
{
	uint32_t slot = work->fabric->order[position];
	const struct node *node = &work->nodes[slot];
	uint32_t free = node_free_mask(node) & ~(uint32_t)work->taken[position];
	bool kept = work->scope.shaped && work->gang.size != 0 && work->ask->gpu.policy != GPU_SPREAD;
	if (!kept || node->topology != work->chosen_topology || free != work->chosen_free) {
		work->chosen_mask = place_gpus(work, position, gpus);
		assert(bits_count(work->chosen_mask) == gpus);
		work->chosen_ring = gpuset_ring_packed(work->sets[node->topology], work->chosen_mask);
		work->chosen_topology = node->topology;
		work->chosen_free = free;
	}
	work->taken[position] = (uint16_t)(work->taken[position] | work->chosen_mask);
	return (struct frond_place){.slot = slot, .gpu_mask = work->chosen_mask, .ring = work->chosen_ring};
}

static void hand_out_gpus(struct place_work *work, struct frond_place *places)
{
	const struct ask *ask = work->ask;
	for (uint32_t i = 0; i < ask->count; i++)
		if (work->member_pos[i] != FROND_NONE)
			work->taken[work->member_pos[i]] = 0; /* what fill() tried */
	for (uint32_t i = 0; i < ask->count; i++) {
		const struct frond_member *member = &ask->members[i];
		if (member->gpus == 0) {
			places[i] = (struct frond_place){.slot = FROND_NONE};
			continue;
		}
		if (member->pinned_slot == FROND_NONE) {
			places[i] = place_of(work, work->member_pos[i], member->gpus);
			continue;
		}
		uint32_t entry = ledger_find(work->ledger, member->pod);
		places[i] = (struct frond_place){.slot = member->pinned_slot};
		if (entry != FROND_NONE)
			places[i].gpu_mask = work->ledger->entries[entry].mask;
		if (places[i].gpu_mask != 0)
			places[i].ring = gpuset_ring_packed(work->sets[work->nodes[member->pinned_slot].topology],
							    places[i].gpu_mask);
	}
}

/* Positions of the gang are ascending by rank when nobody is pinned and sizes are equal; otherwise they are sorted. */
static void count_use(struct place_work *work)
{
	const struct fabric *fabric = work->fabric;
	struct use use = use_none();
	uint32_t count = 0;
	bool ascending = true;
	for (uint32_t i = 0; i < work->ask->count; i++) {
		const struct frond_member *member = &work->ask->members[i];
		if (member->gpus == 0)
			continue;
		uint32_t position =
			member->pinned_slot != FROND_NONE ? fabric->position[member->pinned_slot] : work->member_pos[i];
		ascending &= count == 0 || position >= work->member_list[count - 1];
		work->member_list[count++] = position;
	}
	if (!ascending)
		sort_u64(work->member_list, count);
	for (uint32_t i = 0; i < count; i++)
		use_add(&use, fabric, (uint32_t)work->member_list[i], 0);
	plan_use(&work->answer->plan, &use);
	work->answer->extent = use.extent;
}

/* ---- the decision --------------------------------------------------------------------------------------------------- */

static bool pins_inside(const struct place_work *work, uint32_t first, uint32_t end, uint32_t domain)
{
	for (uint32_t i = 0; work->gang.pins > 0 && i < work->ask->count; i++) {
		const struct frond_member *member = &work->ask->members[i];
		if (member->gpus == 0 || member->pinned_slot == FROND_NONE)
			continue;
		uint32_t position = work->fabric->position[member->pinned_slot];
		if (position < first || position >= end ||
		    (domain != FROND_NONE && work->fabric->domain_of[position] != domain))
			return false;
	}
	return true;
}

/* Step 2 of reference 3.4, then 3: inside the preferred domain if that is possible, else anywhere. */
static bool search(struct place_work *work, bool (*find)(struct place_work *))
{
	const struct ask *ask = work->ask;
	if (ask->domain_first < ask->domain_end &&
	    pins_inside(work, ask->domain_first, ask->domain_end, ask->domain_nvlink)) {
		work->scope.from = ask->domain_first;
		work->scope.end = ask->domain_end;
		work->scope.lo = item_of(work, work->scope.from);
		work->scope.hi = item_of(work, work->scope.end - 1) + 1;
		work->scope.preferred = ask->domain_nvlink;
		bool found = find(work);
		work->scope.lo = work->scope.from = 0;
		work->scope.hi = work->items;
		work->scope.end = work->fabric->node_count;
		work->scope.preferred = FROND_NONE;
		if (found) {
			work->answer->in_domain = true;
			return true;
		}
		place_measure(work, FROND_GPUS_MAX, false);
	}
	return find(work);
}

/* Segments are part of the rule, as long as some part of the fabric could hold them. */
static bool rule_by_capacity(struct place_work *work, bool ever)
{
	struct answer *answer = work->answer;
	work->scope.ever = ever;
	answer->need_nodes = answer->need_leaves = answer->need_spines = 0;
	answer->ever = 0;
	answer->plan.rule = FROND_RULE_NONE;
	answer->plan.flags &= ~(uint32_t)(FROND_PLAN_SHAPELESS | FROND_PLAN_SEGMENTLESS);
	if (!(work->gang.size == 0 ? place_mixed_rule(work) : place_rule(work)))
		return false;
	if (work->segments.size == 0 || answer->plan.flags & FROND_PLAN_SHAPELESS)
		return true;
	work->segments.unknown = false;
	if (!(work->segments.ragged ? segments_fit_rule(work) : segments_rule(work)) && !work->segments.unknown)
		answer->plan.flags |= FROND_PLAN_SHAPELESS | FROND_PLAN_SEGMENTLESS;
	return true;
}

/* The rule from capacity (reference 3.3), which leaves out what has been unavailable for long. "Never fits" counts that, and so
 * does the refusal of a latency-sensitive gang: who would fit with it waits for it, under the rule that it has then. */
static bool find_rule(struct place_work *work)
{
	const struct answer *answer = work->answer;
	bool fits = rule_by_capacity(work, false);
	bool wide = work->ask->latency_sensitive &&
		    (answer->plan.rule >= FROND_RULE_ADJACENT_LEAVES || answer->plan.flags & FROND_PLAN_SEGMENTLESS);
	if ((fits && !wide) || (!fits && answer->cut) || (work->fabric->lacking == 0 && !work->rooms_lack))
		return fits;
	return rule_by_capacity(work, true);
}

/* Today's nodes under the rule. */
static bool find_span(struct place_work *work)
{
	if (work->segments.size > 0 && work->segments.ragged)
		return segments_fit_span(work);
	return work->gang.size == 0 ? place_mixed_span(work) : place_span(work);
}

/* Phases: the rule from capacity; today's nodes under the rule; without it, if the mode allows. */
static uint32_t decide(struct place_work *work)
{
	bool mixed = work->gang.size == 0;
	struct answer *answer = work->answer;
	enum mode mode = work->ask->mode;

	if (mode == MODE_IGNORE)
		work->segments.size = 0;
	if (!find_rule(work))
		return answer->cut ? FROND_UNDECIDED : FROND_NEVER;
	work->scope.ever = true; /* the place that comes nearest may lack only what is unavailable */
	if (work->fabric->leaf_count == 0) {
		mode = MODE_IGNORE;
		answer->plan.flags |= FROND_PLAN_NO_TOPOLOGY;
	}
	if (work->ask->latency_sensitive && mode != MODE_IGNORE) {
		mode = MODE_REQUIRED;
		if (answer->plan.rule >= FROND_RULE_ADJACENT_LEAVES || answer->plan.flags & FROND_PLAN_SEGMENTLESS)
			return answer->cut ? FROND_UNDECIDED : FROND_REFUSED; /* a smaller domain may hold it */
	}

	if (work->segments.unknown && mode == MODE_REQUIRED)
		return FROND_UNDECIDED;

	if (mode == MODE_IGNORE) {
		answer->plan.rule = FROND_RULE_NONE;
		answer->plan.flags &=
			~(uint32_t)(FROND_PLAN_SHAPELESS | FROND_PLAN_SEGMENTLESS); /* no rule, no shape */
		if (search(work, mixed ? place_mixed_relaxed : place_relaxed))
			return FROND_PLACED;
	} else if (!(answer->plan.flags & FROND_PLAN_SHAPELESS) && !work->segments.unknown) {
		if (search(work, find_span))
			return FROND_PLACED;
	} else {
		mode = MODE_PREFERRED;
	}
	if (mode == MODE_PREFERRED && (mixed ? place_mixed_relaxed : place_relaxed)(work)) {
		answer->plan.flags |= FROND_PLAN_RELAXED;
		return FROND_PLACED;
	}
	if (mode != MODE_REQUIRED)
		answer->plan.rule = FROND_RULE_NONE; /* the sentence is about the whole cluster */
	place_measure(work, FROND_GPUS_MAX, false);
	work->scope.per_leaf = UINT32_MAX;
	if (mixed)
		place_mixed_nearest(work);
	else
		place_nearest(work);
	place_blockers(work);
	bool inexact = mixed || (work->segments.size > 0 && mode == MODE_REQUIRED);
	return answer->cut || (inexact && work->budget.spent) ? FROND_UNDECIDED : FROND_WAITS;
}

void place_begin(struct place_work *work, const struct ask *ask, struct answer *answer)
{
	begin(work, ask, answer);
	answer->plan.outcome = work->gang.total == 0 ? FROND_PLACED : decide(work);
	answer->candidates = work->candidates.seen;
	if (work->budget.spent || answer->cut) {
		answer->cut = true;
		answer->plan.flags |= FROND_PLAN_BOUNDED;
	}
	if (answer->plan.outcome != FROND_PLACED)
		return;
	if ((work->gang.size != 0 || work->gang.total == 0) && !work->segments.handed)
		hand_out_ranks(work); /* place_mixed.c and place_segment.c have done so for their own */
	if (work->gang.total == 0)
		return;
	answer->gain = work->candidates.best.gain;
	answer->gain.models |= work->gang.models;
	answer->gain.domains = (uint16_t)(answer->gain.domains + work->gang.domains);
	if (models_count(answer->gain.models) > 1)
		answer->plan.flags |= FROND_PLAN_MIXED_MODELS;
}

void place_end(struct place_work *work)
{
	if (work->answer->plan.outcome == FROND_PLACED) {
		count_use(work);
		finish(work);
	} else {
		mark_pins(work, UINT32_MAX);
	}
}

void place_gang(struct place_work *work, const struct ask *ask, struct answer *answer, struct frond_place *places)
{
	place_begin(work, ask, answer);
	if (answer->plan.outcome == FROND_PLACED)
		hand_out_gpus(work, places);
	place_end(work);
	place_rooms_clear(work);
}

/* The preferred domain as far as it lies in the span. False: it does not. */
static bool prefer_inside(struct ask *ask, const struct span *span)
{
	uint32_t first = max_u32(ask->domain_first, span->first), end = min_u32(ask->domain_end, span->end);
	bool apart =
		ask->domain_nvlink != FROND_NONE && span->nvlink != FROND_NONE && ask->domain_nvlink != span->nvlink;
	if (first >= end || apart)
		return false;
	ask->domain_first = first;
	ask->domain_end = end;
	ask->domain_nvlink = ask->domain_nvlink != FROND_NONE ? ask->domain_nvlink : span->nvlink;
	return true;
}

bool place_inside(struct place_work *work, const struct ask *ask, const struct span *span, struct answer *answer,
		  struct frond_place *places)
{
	struct ask inside = *ask;
	if (prefer_inside(&inside, span)) {
		place_gang(work, &inside, answer, places);
		if (answer->plan.outcome == FROND_PLACED && answer->in_domain)
			return true;
	}
	inside.domain_first = span->first;
	inside.domain_end = span->end;
	inside.domain_nvlink = span->nvlink;
	place_gang(work, &inside, answer, places);
	return answer->plan.outcome == FROND_PLACED && answer->in_domain;
}

bool place_rule_of(struct place_work *work, const struct ask *ask, struct answer *answer)
{
	begin(work, ask, answer);
	bool fits = work->gang.total == 0 || find_rule(work);
	mark_pins(work, UINT32_MAX);
	place_rooms_clear(work);
	return fits;
}
