/* SPDX-License-Identifier: Apache-2.0 */
#include "core/place_work.h"

struct place_work *place_layout(struct arena *arena, const struct fabric *fabric, const struct ledger *ledger,
				uint32_t nodes)
{
	struct place_work scratch = {0};
	struct place_work *work = arena_take(arena, 1, sizeof *work);
	if (work == NULL)
		work = &scratch;
	uint64_t items = FABRIC_LEAVES(nodes) + nodes; /* leaves, and nodes without one */
	work->cap = arena_take(arena, nodes, sizeof *work->cap);
	work->now = arena_take(arena, nodes, sizeof *work->now);
	work->pin = arena_take(arena, nodes, sizeof *work->pin);
	work->take = arena_take(arena, nodes, sizeof *work->take);
	work->item_cap = arena_take(arena, items, sizeof *work->item_cap);
	work->item_cap_nodes = arena_take(arena, items, sizeof *work->item_cap_nodes);
	work->item_now = arena_take(arena, items, sizeof *work->item_now);
	work->item_pin = arena_take(arena, items, sizeof *work->item_pin);
	work->item_got = arena_take(arena, items, sizeof *work->item_got);
	work->item_used = arena_take(arena, items, sizeof *work->item_used);
	work->item_slow = arena_take(arena, items, sizeof *work->item_slow);
	work->item_whole = arena_take(arena, items, sizeof *work->item_whole);
	work->item_free = arena_take(arena, items, sizeof *work->item_free);
	work->item_best = arena_take(arena, items, sizeof *work->item_best);
	work->list = arena_take(arena, items, sizeof *work->list);
	work->keys = arena_take(arena, items, sizeof *work->keys);
	work->cells = arena_take(arena, PLACE_CELLS, sizeof *work->cells);
	work->member_pos = arena_take(arena, FROND_MEMBERS_MAX, sizeof *work->member_pos);
	work->member_list = arena_take(arena, FROND_MEMBERS_MAX, sizeof *work->member_list);
	if (arena->base == NULL)
		return NULL;
	work->fabric = fabric;
	work->ledger = ledger;
	work->nodes = ledger->nodes;
	return work;
}

static void count_members(struct place_work *work)
{
	const struct ask *ask = work->ask;
	work->size = work->total = work->pins = 0;
	bool mixed = false;
	work->answer->gpus = 0;
	for (uint32_t i = 0; i < ask->count; i++) {
		const struct frond_member *member = &ask->members[i];
		work->member_pos[i] = FROND_NONE;
		if (member->gpus == 0)
			continue;
		mixed |= work->total > 0 && member->gpus != work->size;
		work->size = member->gpus;
		work->total++;
		work->pins += member->pinned_slot != FROND_NONE;
		work->answer->gpus += member->gpus;
	}
	if (mixed)
		work->size = 0;
	work->missing = work->total - work->pins;
	work->answer->members = work->total;
	work->answer->missing = work->missing;
	work->answer->gpus_each = work->size;
}

/* How many members a node holds: by capacity, and today. Sizes differ: GPUs instead of members. */
static void measure_node(struct place_work *work, uint32_t position, uint32_t leaf)
{
	const struct ask *ask = work->ask;
	uint32_t slot = work->fabric->order[position];
	const struct node *node = &work->nodes[slot];
	uint32_t unit = work->size == 0 ? 1 : work->size;
	uint32_t cap = node->gpus / unit;
	uint32_t now = node_free_count(node) / unit;
	if (ask->room != NULL && work->size != 0) {
		cap = min_u32(cap, ask->room[slot].ever);
		now = min_u32(now, ask->room[slot].today);
	} else if (ask->room != NULL) {
		cap = ask->room[slot].ever > 0 ? cap : 0;
		now = ask->room[slot].today > 0 ? now : 0;
	}
	if (leaf != FROND_NONE && ask->max_gpus_per_leaf > 0) {
		cap = min_u32(cap, ask->max_gpus_per_leaf / unit);
		now = min_u32(now, ask->max_gpus_per_leaf / unit);
	}
	if (node->uplink_gbps != 0 && node->uplink_gbps < ask->bandwidth_gbps)
		cap = now = 0;
	if (!node_open(node) || (ask->only_slot != FROND_NONE && ask->only_slot != slot))
		now = 0;
	work->cap[position] = (uint16_t)cap;
	work->now[position] = (uint16_t)min_u32(cap, now);
	work->pin[position] = 0;
	work->take[position] = 0;
	work->answer->whole_nodes &= cap <= 1;
}

static void measure(struct place_work *work)
{
	const struct fabric *fabric = work->fabric;
	work->items = fabric->leaf_count + (fabric->node_count - fabric->leaf_start[fabric->leaf_count]);
	work->lo = 0;
	work->hi = work->items;
	work->answer->whole_nodes = work->size != 0;
	for (uint32_t position = 0; position < fabric->node_count; position++)
		measure_node(work, position, fabric->leaf_of[position]);
	for (uint32_t i = 0; i < work->ask->count; i++) {
		const struct frond_member *member = &work->ask->members[i];
		if (member->gpus > 0 && member->pinned_slot != FROND_NONE)
			work->pin[fabric->position[member->pinned_slot]]++;
	}
	for (uint32_t item = 0; item < work->items; item++) {
		uint32_t uplink = item < fabric->leaf_count ? fabric->leaf_uplink[item] : 0;
		work->item_slow[item] = uplink != 0 && uplink < work->ask->bandwidth_gbps;
		work->item_used[item] = work->item_best[item] = false;
		work->item_pin[item] = 0;
		work->item_free[item] = 0;
		work->item_whole[item] = true;
		uint32_t nodes = 0;
		for (uint32_t position = item_start(work, item); position < item_end(work, item); position++) {
			const struct node *node = &work->nodes[fabric->order[position]];
			work->item_pin[item] += work->pin[position];
			work->item_free[item] += node_free_count(node);
			work->item_whole[item] &= node->held == 0 && node->by_count == 0;
			nodes += work->cap[position] > 0;
		}
		if (work->size == 0)
			continue; /* place_mixed.c tries members one by one instead of counting */
		if (item < fabric->leaf_count && work->ask->max_nodes_per_leaf > 0)
			nodes = min_u32(nodes, work->ask->max_nodes_per_leaf);
		if (item < fabric->leaf_count && work->ask->max_gpus_per_leaf > 0)
			nodes = min_u32(nodes, work->ask->max_gpus_per_leaf / work->size);
		work->item_cap_nodes[item] = nodes;
		work->item_cap[item] = place_hold(work, item, work->cap, NULL, FROND_GPUS_MAX);
		work->item_now[item] = place_hold(work, item, work->now, work->pin, FROND_GPUS_MAX);
	}
}

/* Ranks: each in turn takes the first chosen node in fabric order that has a place of its size (spec 3.4). */
static void hand_out_ranks(struct place_work *work)
{
	const struct ask *ask = work->ask;
	if (work->size != 0) {
		uint32_t position = 0, taken = 0;
		for (uint32_t i = 0; i < ask->count; i++) {
			if (ask->members[i].gpus == 0 || ask->members[i].pinned_slot != FROND_NONE)
				continue;
			while (taken == work->take[position]) {
				position++;
				taken = 0;
				assert(position < work->fabric->node_count);
			}
			work->member_pos[i] = position;
			taken++;
		}
		return;
	}
	for (uint32_t size = 1; size <= FROND_GPUS_MAX; size++) {
		uint32_t places = 0, next = 0;
		for (uint32_t i = 0; i < ask->count; i++)
			if (ask->members[i].gpus == size && ask->members[i].pinned_slot == FROND_NONE)
				work->member_list[places++] = work->member_pos[i];
		sort_u64(work->member_list, places);
		for (uint32_t i = 0; i < ask->count; i++)
			if (ask->members[i].gpus == size && ask->members[i].pinned_slot == FROND_NONE)
				work->member_pos[i] = (uint32_t)work->member_list[next++];
	}
}

/* Members of a node choose in rank order; this version gives each the lowest free indices. */
static void hand_out_gpus(struct place_work *work, struct frond_place *places)
{
	const struct ask *ask = work->ask;
	for (uint32_t position = 0; position < work->fabric->node_count; position++)
		work->list[position] = 0; /* handed out here so far */
	for (uint32_t i = 0; i < ask->count; i++) {
		const struct frond_member *member = &ask->members[i];
		places[i] = (struct frond_place){.slot = FROND_NONE};
		if (member->gpus == 0)
			continue;
		if (member->pinned_slot != FROND_NONE) {
			uint32_t entry = ledger_find(work->ledger, member->pod);
			places[i].slot = member->pinned_slot;
			places[i].gpu_mask = entry == FROND_NONE ? 0 : work->ledger->entries[entry].mask;
			continue;
		}
		uint32_t position = work->member_pos[i];
		uint32_t slot = work->fabric->order[position];
		uint32_t free = node_free_mask(&work->nodes[slot]) & ~work->list[position];
		places[i].slot = slot;
		places[i].gpu_mask = bits_lowest(free, member->gpus);
		work->list[position] |= places[i].gpu_mask;
	}
}

static void count_use(struct place_work *work)
{
	const struct fabric *fabric = work->fabric;
	struct frond_plan *plan = &work->answer->plan;
	uint32_t last_spine = FROND_NONE, last_leaf = FROND_NONE;
	for (uint32_t position = 0; position < fabric->node_count; position++) {
		if (work->take[position] == 0 && work->pin[position] == 0)
			continue;
		plan->nodes++;
		uint32_t leaf = fabric->leaf_of[position];
		if (leaf == FROND_NONE || leaf == last_leaf)
			continue;
		plan->leaves++;
		plan->spines += fabric->leaf_spine[leaf] != last_spine;
		plan->runs +=
			last_leaf == FROND_NONE || leaf != last_leaf + 1 || fabric->leaf_spine[leaf] != last_spine;
		last_leaf = leaf;
		last_spine = fabric->leaf_spine[leaf];
	}
}

static bool pins_inside(const struct place_work *work, uint32_t lo, uint32_t hi)
{
	for (uint32_t item = 0; item < work->items; item++)
		if (work->item_pin[item] > 0 && (item < lo || item >= hi))
			return false;
	return true;
}

/* Step 2 of spec 3.4, then 3: inside the preferred domain if that is possible, else anywhere. */
static bool search(struct place_work *work, bool (*find)(struct place_work *))
{
	const struct ask *ask = work->ask;
	if (ask->domain_first < ask->domain_end && pins_inside(work, ask->domain_first, ask->domain_end)) {
		work->lo = ask->domain_first;
		work->hi = ask->domain_end;
		bool found = find(work);
		work->lo = 0;
		work->hi = work->items;
		if (found)
			return true;
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
	if (mixed)
		place_mixed_nearest(work);
	else
		place_nearest(work);
	return FROND_WAITS;
}

static void begin(struct place_work *work, const struct ask *ask, struct answer *answer)
{
	*answer = (struct answer){0};
	work->ask = ask;
	work->answer = answer;
	count_members(work);
	measure(work);
}

void place_gang(struct place_work *work, const struct ask *ask, struct answer *answer, struct frond_place *places)
{
	begin(work, ask, answer);
	answer->plan.outcome = work->total == 0 ? FROND_PLACED : decide(work);
	if (answer->plan.outcome != FROND_PLACED)
		return;
	hand_out_ranks(work);
	hand_out_gpus(work, places);
	count_use(work);
}

void place_order(struct place_work *work, const struct ask *ask, struct answer *answer, uint16_t *position,
		 uint32_t slots)
{
	assert(ask->count == 1 && ask->members[0].gpus > 0 && ask->members[0].pinned_slot == FROND_NONE);
	memset(position, 0xff, slots * sizeof *position);
	begin(work, ask, answer);
	answer->plan.outcome = decide(work);
	if (answer->plan.outcome != FROND_PLACED)
		return;

	uint32_t count = 0;
	for (uint32_t at = 0; at < work->fabric->node_count; at++) {
		if (work->now[at] == 0)
			continue;
		uint32_t leaf = work->fabric->leaf_of[at];
		bool outside =
			ask->domain_first < ask->domain_end && (leaf < ask->domain_first || leaf >= ask->domain_end);
		work->keys[count++] = (uint64_t)outside << 63 | place_node_key(work, at, 1);
	}
	sort_u64(work->keys, count);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = (uint32_t)(work->keys[i] % FROND_NODES_MAX);
		position[work->fabric->order[at]] = (uint16_t)min_u32(i, UINT16_MAX - 1);
	}
	count_use(work);
}

static void sift(uint64_t *keys, uint32_t root, uint32_t count)
{
	for (uint32_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
		if (child + 1 < count && keys[child + 1] > keys[child])
			child++;
		if (keys[root] >= keys[child])
			return;
		uint64_t key = keys[root];
		keys[root] = keys[child];
		keys[child] = key;
		root = child;
	}
}

void sort_u64(uint64_t *keys, uint32_t count)
{
	for (uint32_t i = count / 2; i > 0; i--)
		sift(keys, i - 1, count);
	for (uint32_t end = count; end > 1; end--) {
		uint64_t key = keys[0];
		keys[0] = keys[end - 1];
		keys[end - 1] = key;
		sift(keys, 0, end - 1);
	}
}
