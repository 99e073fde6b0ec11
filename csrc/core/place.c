/* SPDX-License-Identifier: Apache-2.0 */
#include "core/place_work.h"

#define STATES      3u         /* of a cell in place_table.c */
#define ROWS_LEAST  5u         /* of the table for the largest gang; with few of them it is computed more often */
#define CELLS_NODES 16384u     /* engines up to this size get a table that seldom has to be computed again */
#define CELLS_MOST  (1u << 21) /* its cells */

/* What stands in the scratch at one time: a list and sums by item, and beside them three rows by member, a view of every
 * spine or members to sort; or a list and as many rows of the table as there is room for. */
static void scratch_layout(struct scratch *scratch, struct arena *arena, uint32_t nodes, uint32_t members,
			   uint64_t least)
{
	uint64_t items = FABRIC_LEAVES(nodes) + nodes + 1; /* leaves, and nodes without one */
	uint64_t row = (uint64_t)STATES * (members + 1), cells = row > FROND_MEMBERS_MAX ? row : FROND_MEMBERS_MAX;
	uint64_t view = FABRIC_SPINES(nodes) * sizeof *scratch->view / sizeof *scratch->cells + 1;
	uint64_t rest = cells > view ? cells : view, rows = ROWS_LEAST * (row + 1);
	uint64_t all = (row + 1) * (items + 2); /* nothing is ever computed twice */
	if (nodes <= CELLS_NODES && rows < CELLS_MOST)
		rows = all < CELLS_MOST ? all : CELLS_MOST;
	if (items + rest < rows)
		rest = rows - items;
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

struct place_work *place_layout(struct arena *arena, const struct fabric *fabric, const struct ledger *ledger,
				struct gpuset *const *sets, uint32_t nodes, uint64_t scratch)
{
	struct place_work sizes = {0}; /* while only counting */
	struct place_work *place = arena_take(arena, 1, sizeof *place), *work = place == NULL ? &sizes : place;
	uint64_t leaves = FABRIC_LEAVES(nodes);
	uint32_t members = nodes < FROND_MEMBERS_MAX / FROND_GPUS_MAX ? nodes * FROND_GPUS_MAX : FROND_MEMBERS_MAX;
	work->pin = arena_take(arena, nodes, sizeof *work->pin);
	work->take = arena_take(arena, nodes, sizeof *work->take);
	work->taken = arena_take(arena, nodes, sizeof *work->taken);
	work->hold = arena_raw(arena, leaves, sizeof *work->hold);
	work->stamp = arena_take(arena, leaves, sizeof *work->stamp);
	work->leaf_pin = arena_take(arena, leaves, sizeof *work->leaf_pin);
	work->fill = arena_raw(arena, min_u32(nodes, FROND_LEAF_NODES), sizeof *work->fill);
	work->picks = arena_raw(arena, FROND_MEMBERS_MAX + 1, sizeof *work->picks);
	work->frames = arena_raw(arena, max_u32(members, PLACE_ORDERED) + 2, sizeof *work->frames);
	work->choices = arena_take(arena, CHOICES, sizeof *work->choices);
	work->alike_seen = arena_take(arena, FABRIC_SPINES(nodes), sizeof *work->alike_seen);
	work->member_pos = arena_raw(arena, FROND_MEMBERS_MAX, sizeof *work->member_pos);
	work->member_list = arena_raw(arena, FROND_MEMBERS_MAX, sizeof *work->member_list);
	scratch_layout(&work->scratch, arena, nodes, members, scratch);
	if (place == NULL)
		return NULL;
	place->fabric = fabric;
	place->ledger = ledger;
	place->nodes = ledger->nodes;
	place->sets = sets;
	return place;
}

void *place_scratch(struct place_work *work)
{
	return work->scratch.list;
}

/* ---- before --------------------------------------------------------------------------------------------------------- */

static void count_members(struct place_work *work)
{
	const struct ask *ask = work->ask;
	bool mixed = false;
	uint64_t gpus = 0;
	work->size = work->total = work->pins = 0;
	for (uint32_t i = 0; i < ask->count; i++) {
		const struct frond_member *member = &ask->members[i];
		work->member_pos[i] = FROND_NONE;
		if (member->gpus == 0)
			continue;
		mixed |= work->total > 0 && member->gpus != work->size;
		work->size = member->gpus;
		work->total++;
		work->pins += member->pinned_slot != FROND_NONE;
		gpus += member->gpus;
	}
	if (mixed)
		work->size = 0;
	work->missing = work->total - work->pins;
	work->answer->gpus = gpus;
	work->answer->members = work->total;
	work->answer->missing = work->missing;
	work->answer->gpus_each = work->size;
	work->answer->best_gap = FROND_NONE;
	work->answer->claimed = ask->gpu.mode == MODE_REQUIRED;
	work->answer->bandwidth_gbps = ask->bandwidth_gbps;
}

/* Marks pinned members (one = 1) or takes the marks away. */
static void mark_pins(struct place_work *work, uint32_t one)
{
	for (uint32_t i = 0; work->pins > 0 && i < work->ask->count; i++) {
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

static void begin(struct place_work *work, const struct ask *ask, struct answer *answer)
{
	const struct fabric *fabric = work->fabric;
	const struct gpu_wish *wish = &ask->gpu;
	*answer = (struct answer){0};
	work->ask = ask;
	work->answer = answer;
	count_members(work);
	work->items = fabric->leaf_count + (fabric->node_count - fabric->leaf_start[fabric->leaf_count]);
	work->lo = work->from = 0;
	work->hi = work->items;
	work->end = fabric->node_count;
	work->domain = work->preferred = FROND_NONE;
	work->seen = 0;
	work->stop = false;
	work->plan++;
	work->chosen_topology = FROND_NONE;
	work->constrained = wish->mode == MODE_REQUIRED;
	work->shaped = ask->room == NULL && ask->named_count == 0;
	work->counted = work->shaped && !work->constrained && ask->only_slot == FROND_NONE && work->size != 0 &&
			ask->max_nodes_per_leaf == 0 && ask->max_gpus_per_leaf == 0;
	work->alike = work->shaped && work->pins == 0 && ask->only_slot == FROND_NONE;
	work->per_leaf = UINT32_MAX;
	place_measure(work, FROND_GPUS_MAX, false);
	mark_pins(work, 1);
}

/* Leaves the scratch as begin() expects it. */
static void finish(struct place_work *work)
{
	mark_pins(work, UINT32_MAX);
	for (uint32_t i = 0; i < work->ask->count; i++)
		if (work->member_pos[i] != FROND_NONE && work->ask->members[i].gpus > 0)
			work->take[work->member_pos[i]] = work->taken[work->member_pos[i]] = 0;
}

/* ---- after ---------------------------------------------------------------------------------------------------------- */

/* Ranks of equal members: each in turn takes the first chosen node in fabric order that has a place (spec 3.4). */
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
			assert(pick < work->best.picks);
			position = item_start(work, work->picks[pick].item);
			end = item_end(work, work->picks[pick++].item);
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
	bool kept = work->shaped && work->size != 0 && work->ask->gpu.policy != GPU_SPREAD;
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
	struct frond_plan *plan = &work->answer->plan;
	struct extent use = {.spines = 0};
	uint32_t count = 0, last = FROND_NONE, last_spine = FROND_NONE, last_leaf = FROND_NONE;
	uint32_t on_node = 0, in_leaf = 0, loose = 0;
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
	for (uint32_t i = 0; i < count; i++) {
		uint32_t position = (uint32_t)work->member_list[i], leaf = fabric->leaf_of[position];
		bool same_leaf = position == last || (leaf != FROND_NONE && leaf == last_leaf);
		on_node = position == last ? on_node + 1 : 1;
		in_leaf = same_leaf ? in_leaf + 1 : 1;
		use.fullest_node = max_u32(use.fullest_node, on_node);
		use.fullest_leaf = max_u32(use.fullest_leaf, in_leaf);
		plan->nodes += position != last;
		last = position;
		if (same_leaf)
			continue;
		if (leaf == FROND_NONE) {
			loose++;
			continue;
		}
		plan->leaves++;
		plan->spines += fabric->leaf_spine[leaf] != last_spine;
		plan->runs +=
			last_leaf == FROND_NONE || leaf != last_leaf + 1 || fabric->leaf_spine[leaf] != last_spine;
		last_leaf = leaf;
		last_spine = fabric->leaf_spine[leaf];
	}
	use.spines = plan->spines + loose;
	use.leaves = plan->leaves + loose;
	use.runs = plan->runs + loose;
	use.nodes = plan->nodes;
	work->answer->extent = use;
}

/* ---- the decision --------------------------------------------------------------------------------------------------- */

static bool pins_inside(const struct place_work *work, uint32_t first, uint32_t end, uint32_t domain)
{
	for (uint32_t i = 0; work->pins > 0 && i < work->ask->count; i++) {
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

/* Step 2 of spec 3.4, then 3: inside the preferred domain if that is possible, else anywhere. */
static bool search(struct place_work *work, bool (*find)(struct place_work *))
{
	const struct ask *ask = work->ask;
	if (ask->domain_first < ask->domain_end &&
	    pins_inside(work, ask->domain_first, ask->domain_end, ask->domain_nvlink)) {
		work->from = ask->domain_first;
		work->end = ask->domain_end;
		work->lo = item_of(work, work->from);
		work->hi = item_of(work, work->end - 1) + 1;
		work->preferred = ask->domain_nvlink;
		bool found = find(work);
		work->lo = work->from = 0;
		work->hi = work->items;
		work->end = work->fabric->node_count;
		work->preferred = FROND_NONE;
		if (found) {
			work->answer->in_domain = true;
			return true;
		}
		place_measure(work, FROND_GPUS_MAX, false);
	}
	return find(work);
}

/* Phases: the rule from capacity; today's nodes under the rule; without it, if the mode allows. */
static uint32_t decide(struct place_work *work)
{
	bool mixed = work->size == 0;
	struct answer *answer = work->answer;
	enum mode mode = work->ask->mode;

	if (!(mixed ? place_mixed_rule(work) : place_rule(work)))
		return FROND_NEVER;
	if (work->fabric->leaf_count == 0) {
		mode = MODE_IGNORE;
		answer->plan.flags |= FROND_PLAN_NO_TOPOLOGY;
	}
	if (work->ask->latency_sensitive && mode != MODE_IGNORE) {
		mode = MODE_REQUIRED;
		if (answer->plan.rule >= FROND_RULE_ADJACENT_LEAVES)
			return FROND_REFUSED;
	}

	if (mode == MODE_IGNORE) {
		answer->plan.rule = FROND_RULE_NONE;
		answer->plan.flags &= ~(uint32_t)FROND_PLAN_SHAPELESS; /* no rule, no shape */
		if (search(work, mixed ? place_mixed_relaxed : place_relaxed))
			return FROND_PLACED;
	} else if (!(answer->plan.flags & FROND_PLAN_SHAPELESS)) {
		if (search(work, mixed ? place_mixed_span : place_span))
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
	work->per_leaf = UINT32_MAX;
	if (mixed)
		place_mixed_nearest(work);
	else
		place_nearest(work);
	place_blockers(work);
	return FROND_WAITS;
}

void place_gang(struct place_work *work, const struct ask *ask, struct answer *answer, struct frond_place *places)
{
	begin(work, ask, answer);
	answer->plan.outcome = work->total == 0 ? FROND_PLACED : decide(work);
	answer->candidates = work->seen;
	if (answer->plan.outcome == FROND_PLACED) {
		if (work->size != 0 || work->total == 0)
			hand_out_ranks(work); /* place_mixed.c has done so for its own */
		if (work->total > 0)
			answer->gain = work->best.gain;
		hand_out_gpus(work, places);
		count_use(work);
		finish(work);
	} else {
		mark_pins(work, UINT32_MAX);
	}
}

bool place_rule_of(struct place_work *work, const struct ask *ask, struct answer *answer)
{
	begin(work, ask, answer);
	bool fits = work->total == 0 || (work->size == 0 ? place_mixed_rule(work) : place_rule(work));
	mark_pins(work, UINT32_MAX);
	return fits;
}

/* ---- one pod -------------------------------------------------------------------------------------------------------- */

static bool is_outside(const struct place_work *work, uint32_t position) /* of the preferred domain */
{
	const struct ask *ask = work->ask;
	bool inside = position >= ask->domain_first && position < ask->domain_end &&
		      (ask->domain_nvlink == FROND_NONE || work->fabric->domain_of[position] == ask->domain_nvlink);
	return ask->domain_first < ask->domain_end && !inside;
}

/* How much more of the node is expected to be of no use when the pod is there. Where there is a topology, what keeps leaves
 * whole keeps nodes whole, and has its own steps. */
static uint32_t waste_of(const struct place_work *work, uint32_t slot)
{
	const struct thrift *thrift = work->ask->thrift;
	if (thrift == NULL || work->fabric->leaf_count > 0)
		return 0;
	return waste_growth(thrift, slot, node_free_count(&work->nodes[slot]), work->size);
}

/* A node that a pod could take. In frames: at = item, index = position, count = outside the preferred domain, rest = waste. */
static struct frame offer_of(struct place_work *work, uint32_t item, uint32_t position)
{
	uint32_t slot = work->fabric->order[position];
	struct frame offer = {.at = item, .index = position, .count = is_outside(work, position), .before = GAIN_NONE};
	place_link(work, slot, place_gpus(work, position, work->size), 1, &offer.before);
	place_node_gain(&work->nodes[slot], work->size, &offer.before);
	place_leaf_gain(work, item, 1, work->size, &offer.before);
	offer.rest = waste_of(work, slot);
	return offer;
}

/* The next node of an item that a pod would take after `last` (NULL: the first): those of the preferred domain, then best
 * bottleneck, fewest GPUs left over, lowest position, as inside a leaf. */
static bool next_offer(struct place_work *work, uint32_t item, const struct frame *last, struct frame *out)
{
	uint64_t after = last == NULL ? 0 : last->cost, best = UINT64_MAX;
	uint32_t found = FROND_NONE;
	for (uint32_t at = item_start(work, item); at < item_end(work, item); at++) {
		if (place_node_now(work, at) == 0)
			continue;
		const struct node *node = &work->nodes[work->fabric->order[at]];
		uint64_t link = UINT16_MAX - place_bottleneck(work, at), left = node_free_count(node) - work->size;
		uint64_t cost = 1 + ((uint64_t)is_outside(work, at) << 62 | link << 32 | left << 20 |
				     (at - item_start(work, item)));
		if (cost > after && cost < best) {
			best = cost;
			found = at;
		}
	}
	if (found != FROND_NONE) {
		*out = offer_of(work, item, found);
		out->cost = best;
	}
	return best != UINT64_MAX;
}

/* Below zero: a pod would take a before b. */
static int compare_offers(const struct place_work *work, const struct frame *a, const struct frame *b)
{
	if (a->count != b->count)
		return a->count < b->count ? -1 : 1;
	int order = place_compare_links(&a->before, &b->before);
	if (order == 0)
		order = (a->rest > b->rest) - (a->rest < b->rest);
	if (order == 0)
		order = place_compare(work, &a->before, &b->before);
	return order != 0 ? order : (a->at > b->at) - (a->at < b->at);
}

/* A heap in frames[0 … count); on top the last offer, or the first. */
static void sift_offers(struct place_work *work, uint32_t root, uint32_t count, bool first)
{
	struct frame *heap = work->frames, moved = heap[root];
	int sign = first ? -1 : 1;
	for (uint32_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
		if (child + 1 < count && sign * compare_offers(work, &heap[child + 1], &heap[child]) > 0)
			child++;
		if (sign * compare_offers(work, &moved, &heap[child]) >= 0)
			break;
		heap[root] = heap[child];
		root = child;
	}
	heap[root] = moved;
}

/* The first offers of the PLACE_ORDERED best items, as a heap with the best on top; returns how many. No other item can have
 * one of the first PLACE_ORDERED nodes. */
static uint32_t best_items(struct place_work *work)
{
	uint32_t count = 0;
	for (uint32_t item = 0; item < work->items; item++) {
		struct frame offer;
		if (place_hold(work, item) == 0 || !next_offer(work, item, NULL, &offer))
			continue;
		if (count < PLACE_ORDERED) {
			work->frames[count++] = offer;
			for (uint32_t root = count / 2; count == PLACE_ORDERED && root > 0; root--)
				sift_offers(work, root - 1, count, false);
		} else if (compare_offers(work, &offer, &work->frames[0]) < 0) {
			work->frames[0] = offer;
			sift_offers(work, 0, count, false);
		}
	}
	for (uint32_t root = count / 2; root > 0; root--)
		sift_offers(work, root - 1, count, true);
	return count;
}

void place_order(struct place_work *work, const struct ask *ask, struct answer *answer, uint16_t *position,
		 uint32_t slots)
{
	assert(ask->count == 1 && ask->members[0].gpus > 0 && ask->members[0].pinned_slot == FROND_NONE);
	memset(position, 0xff, slots * sizeof *position);
	begin(work, ask, answer);
	answer->plan.outcome = decide(work);
	answer->candidates = work->seen;
	if (answer->plan.outcome != FROND_PLACED)
		return;
	hand_out_ranks(work);
	count_use(work);
	finish(work);

	place_measure(work, FROND_GPUS_MAX, true);
	for (uint32_t item = 0; item < work->items; item++)
		for (uint32_t at = item_start(work, item); place_hold(work, item) > 0 && at < item_end(work, item);
		     at++)
			if (place_node_now(work, at) > 0)
				position[work->fabric->order[at]] = PLACE_ORDERED;
	uint32_t count = best_items(work);
	for (uint16_t rank = 0; rank < PLACE_ORDERED && count > 0; rank++) {
		struct frame taken = work->frames[0];
		position[work->fabric->order[taken.index]] = rank;
		if (!next_offer(work, taken.at, &taken, &work->frames[0]))
			work->frames[0] = work->frames[--count];
		sift_offers(work, 0, count, true);
	}
}
