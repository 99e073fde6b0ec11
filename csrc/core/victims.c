/* SPDX-License-Identifier: Apache-2.0 */
/*
 * victims.c - phases:
 *
 *   1  does it fit as it is? which rule must it meet?
 *   2  each domain by counting GPUs: on one node the exact optimum (a knapsack over the GPUs to be freed); in a larger
 *      one the cheapest gangs until there is room, then each is given back that is not needed, dearest first
 *   3  the cheapest domains by what the planner says: what is missing is added, what is not needed is given back. When
 *      counting is exact the first that works is the answer; on one node where it is not, every choice of pods that
 *      would be cheaper is tried (victims_node.c)
 */
#include "core/victims_work.h"

#define VICTIM_DOMAINS 32u  /* cheapest domains that the planner is asked about */
#define VICTIM_ASKS    512u /* plans for one domain */
#define VICTIM_CHOICE  8u   /* pods of a gang of which every choice is tried */

void victims_layout(struct victims_work *work, struct arena *arena, uint32_t nodes, uint32_t pods)
{
	work->node_cap = nodes;
	work->pod_cap = min_u32(pods, VICTIM_PODS);
	work->unit_cap = min_u32(pods, VICTIM_GANGS);
	work->entry_cap = pods;
	work->unit_of = arena_raw(arena, pods, sizeof *work->unit_of);
	work->units = arena_raw(arena, work->unit_cap, sizeof *work->units);
	work->list = arena_raw(arena, work->pod_cap, sizeof *work->list);
	work->parts = arena_raw(arena, pods, sizeof *work->parts);
	work->freed = arena_raw(arena, nodes, sizeof *work->freed);
}

int price_compare(const struct price *a, const struct price *b)
{
	if (a->budgets != b->budgets)
		return a->budgets < b->budgets ? -1 : 1;
	if (a->priority != b->priority)
		return a->priority < b->priority ? -1 : 1;
	if (a->gangs != b->gangs)
		return a->gangs < b->gangs ? -1 : 1;
	return (a->gpus > b->gpus) - (a->gpus < b->gpus);
}

/* ---- counting -------------------------------------------------------------------------------------------------------- */

static uint32_t node_room(const struct hunt *hunt, uint32_t position)
{
	const struct ask *ask = &hunt->ask;
	uint32_t slot = hunt->fabric->order[position];
	const struct node *node = &hunt->core->nodes[slot];
	if (!node_open(node) || !node_fast(node, ask->bandwidth_gbps) ||
	    (ask->only_slot != FROND_NONE && ask->only_slot != slot))
		return 0;
	uint32_t room = (node_free_count(node) + hunt->work->freed[position]) / hunt->size;
	if (ask->room != NULL) /* in members; of different sizes each has at least one GPU and at most all */
		room = min_u32(room, min_u32(ask->room[slot].today, ask->room[slot].ever) *
					     (hunt->mixed ? FROND_GPUS_MAX : 1u));
	return room;
}

uint32_t hunt_frees(const struct hunt *hunt, const struct entry *entry)
{
	return bits_count(entry->mask & ~(uint32_t)hunt->core->nodes[entry_slot(entry)].unhealthy) + entry->by_count;
}

static bool entry_inside(const struct hunt *hunt, const struct entry *entry, const struct domain *domain)
{
	if (entry_slot(entry) == FROND_NONE)
		return false;
	return span_has(hunt->fabric, &domain->span, hunt->fabric->position[entry_slot(entry)]);
}

/* A pod of the domain goes, or comes back. */
static void count_entry(struct hunt *hunt, const struct entry *entry, bool goes)
{
	uint32_t position = hunt->fabric->position[entry_slot(entry)], gpus = hunt_frees(hunt, entry);
	uint8_t *freed = &hunt->work->freed[position];
	hunt->room -= node_room(hunt, position);
	*freed = (uint8_t)(goes ? *freed + gpus : *freed - gpus);
	hunt->room += node_room(hunt, position);
}

/* Is there room in every leaf of a run? */
static bool leaves_open(const struct hunt *hunt, const struct domain *domain)
{
	const struct fabric *fabric = hunt->fabric;
	for (uint32_t leaf = fabric->leaf_of[domain->span.first]; leaf <= fabric->leaf_of[domain->span.end - 1];
	     leaf++) {
		uint32_t first = fabric->leaf_start[leaf], end = fabric->leaf_start[leaf + 1];
		bool open = hunt->pin_first < end && hunt->pin_last >= first;
		for (uint32_t position = first; position < end && !open; position++)
			open = node_room(hunt, position) > 0;
		if (!open)
			return false;
	}
	return true;
}

bool hunt_has_room(const struct hunt *hunt, const struct domain *domain)
{
	bool run = hunt->spans.rule.name == FROND_RULE_ADJACENT_LEAVES && !hunt->spans.spreads;
	return hunt->room >= hunt->need && (!run || leaves_open(hunt, domain));
}

/* ---- gangs that may go ------------------------------------------------------------------------------------------------- */

bool hunt_evictable(const struct hunt *hunt, const struct entry *entry)
{
	if (entry->hold != HOLD_BOUND || entry_gang(entry) == FROND_NONE)
		return false;
	const struct gang *gang = &hunt->core->gangs.gangs[entry_gang(entry)];
	return gang->priority < hunt->priority && gang->members == gang->bound;
}

static void add_unit(struct hunt *hunt, uint32_t id)
{
	struct victims_work *work = hunt->work;
	const struct gang *gang = &hunt->core->gangs.gangs[id];
	uint32_t at = work->unit_of[id];
	if (at < work->unit_count && work->units[at].gang == id) {
		work->units[at].inside++;
		return;
	}
	if (work->unit_count == work->unit_cap)
		return;
	struct unit unit = {.gang = id, .inside = 1};
	unit.spare = gang->bound > gang->min_member ? gang->bound - gang->min_member : 0;
	for (uint32_t e = gang_first(gang); e != FROND_NONE; e = entry_gang_next(&hunt->core->ledger.entries[e])) {
		unit.budgets += hunt->core->ledger.entries[e].budgeted;
		unit.gpus += entry_gpus(&hunt->core->ledger.entries[e]);
	}
	work->unit_of[id] = work->unit_count;
	work->units[work->unit_count++] = unit;
}

static bool unit_before(const struct hunt *hunt, const struct unit *a, const struct unit *b)
{
	const struct gang *gang_a = &hunt->core->gangs.gangs[a->gang], *gang_b = &hunt->core->gangs.gangs[b->gang];
	struct price price_a = {a->budgets, gang_a->priority, 1, a->gpus};
	struct price price_b = {b->budgets, gang_b->priority, 1, b->gpus};
	int order = price_compare(&price_a, &price_b);
	if (order != 0)
		return order < 0;
	return key_before(gang_a->key, gang_b->key);
}

static void sift_units(const struct hunt *hunt, uint32_t root, uint32_t count)
{
	struct unit *units = hunt->work->units;
	for (uint32_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
		if (child + 1 < count && unit_before(hunt, &units[child], &units[child + 1]))
			child++;
		if (!unit_before(hunt, &units[root], &units[child]))
			return;
		struct unit unit = units[child];
		units[child] = units[root];
		units[root] = unit;
		root = child;
	}
}

void hunt_collect(struct hunt *hunt, const struct domain *domain)
{
	struct victims_work *work = hunt->work;
	const struct entry *entries = hunt->core->ledger.entries;
	work->unit_count = hunt->room = 0;
	for (uint32_t position = domain->span.first; position < domain->span.end; position++) {
		const struct node *node = &hunt->core->nodes[hunt->fabric->order[position]];
		if (!span_has(hunt->fabric, &domain->span, position))
			continue;
		hunt->room += node_room(hunt, position);
		for (uint32_t at = node->first; at != FROND_NONE; at = entry_node_next(&entries[at]))
			if (hunt_evictable(hunt, &entries[at]))
				add_unit(hunt, entry_gang(&entries[at]));
	}
	for (uint32_t root = work->unit_count / 2; root > 0; root--)
		sift_units(hunt, root - 1, work->unit_count);
	for (uint32_t end = work->unit_count; end > 1; end--) {
		struct unit unit = work->units[end - 1];
		work->units[end - 1] = work->units[0];
		work->units[0] = unit;
		sift_units(hunt, 0, end - 1);
	}
	for (uint32_t i = 0; i < work->unit_count; i++)
		work->unit_of[work->units[i].gang] = i;
}

/* ---- larger domains: cheapest first, then give back -------------------------------------------------------------------- */

enum part { PART_STAYS, PART_GOES, PART_NEEDED };

/* Of two pods of a gang, which one goes first? The one further to the front: neighbours free whole nodes. Which one is
 * given back first? The smaller, so that few are left. */
static bool part_before(const struct hunt *hunt, const struct entry *a, const struct entry *b, enum part part)
{
	uint32_t at = hunt->fabric->position[entry_slot(a)], other = hunt->fabric->position[entry_slot(b)];
	uint32_t frees = hunt_frees(hunt, a), other_frees = hunt_frees(hunt, b);
	if (part == PART_GOES && frees != other_frees)
		return frees < other_frees;
	if (at != other)
		return (at < other) == (part == PART_STAYS);
	return key_before(a->pod, b->pod) == (part == PART_STAYS);
}

/* The next pod of this gang in the domain that goes, of those that stay, or is given back, of those that go. */
static uint32_t find_part(const struct hunt *hunt, const struct unit *unit, const struct domain *domain, enum part part)
{
	const struct entry *entries = hunt->core->ledger.entries;
	uint32_t best = FROND_NONE;
	for (uint32_t at = gang_first(&hunt->core->gangs.gangs[unit->gang]); at != FROND_NONE;
	     at = entry_gang_next(&entries[at]))
		if (entry_inside(hunt, &entries[at], domain) && hunt->work->parts[at] == part &&
		    (best == FROND_NONE || part_before(hunt, &entries[at], &entries[best], part)))
			best = at;
	return best;
}

void hunt_set_part(struct hunt *hunt, struct unit *unit, uint32_t entry, bool goes)
{
	hunt->work->parts[entry] = goes ? PART_GOES : PART_STAYS;
	unit->parted = goes ? unit->parted + 1 : unit->parted - 1;
	unit->state = unit->parted > 0 ? UNIT_PART : UNIT_STAYS;
	count_entry(hunt, &hunt->core->ledger.entries[entry], goes);
}

void hunt_set_whole(struct hunt *hunt, struct unit *unit, const struct domain *domain, bool goes)
{
	const struct entry *entries = hunt->core->ledger.entries;
	for (uint32_t at = gang_first(&hunt->core->gangs.gangs[unit->gang]); at != FROND_NONE;
	     at = entry_gang_next(&entries[at]))
		if (entry_inside(hunt, &entries[at], domain))
			count_entry(hunt, &entries[at], goes);
	unit->state = goes ? UNIT_WHOLE : UNIT_STAYS;
}

static void keep_parts(struct hunt *hunt, struct unit *unit, const struct domain *domain)
{
	while (unit->parted > 0)
		hunt_set_part(hunt, unit, find_part(hunt, unit, domain, PART_GOES), false);
}

/* As many pods as may go without the gang, until there is room. */
static bool take_parts(struct hunt *hunt, struct unit *unit, const struct domain *domain)
{
	while (!hunt_has_room(hunt, domain) && unit->parted < min_u32(unit->spare, unit->inside))
		hunt_set_part(hunt, unit, find_part(hunt, unit, domain, PART_STAYS), true);
	return hunt_has_room(hunt, domain);
}

static void take_unit(struct hunt *hunt, struct unit *unit, const struct domain *domain)
{
	if (take_parts(hunt, unit, domain) || unit->parted == unit->inside)
		return;
	keep_parts(hunt, unit, domain);
	hunt_set_whole(hunt, unit, domain, true);
}

/* Pods that are not needed stay. */
static void shed_parts(struct hunt *hunt, struct unit *unit, const struct domain *domain)
{
	const struct entry *entries = hunt->core->ledger.entries;
	for (uint32_t left = unit->parted; left > 0; left--) {
		uint32_t entry = find_part(hunt, unit, domain, PART_GOES);
		hunt_set_part(hunt, unit, entry, false);
		if (hunt_has_room(hunt, domain))
			continue;
		hunt_set_part(hunt, unit, entry, true);
		hunt->work->parts[entry] = PART_NEEDED; /* not asked about again */
	}
	for (uint32_t at = gang_first(&hunt->core->gangs.gangs[unit->gang]); at != FROND_NONE;
	     at = entry_gang_next(&entries[at]))
		hunt->work->parts[at] = hunt->work->parts[at] != PART_STAYS ? PART_GOES : PART_STAYS;
}

/* Whatever of it is not needed stays: all of it, or all but a few. */
static void give_back(struct hunt *hunt, struct unit *unit, const struct domain *domain)
{
	if (unit->state == UNIT_PART) {
		shed_parts(hunt, unit, domain);
		return;
	}
	hunt_set_whole(hunt, unit, domain, false);
	if (hunt_has_room(hunt, domain))
		return;
	while (unit->spare > 0 && unit->parted < unit->inside)
		hunt_set_part(hunt, unit, find_part(hunt, unit, domain, PART_STAYS), true);
	shed_parts(hunt, unit, domain);
	if (unit->parted > 0 && unit->parted <= unit->spare)
		return;
	keep_parts(hunt, unit, domain);
	hunt_set_whole(hunt, unit, domain, true);
}

/* All of it that stands in the way. */
static void take_all(struct hunt *hunt, struct unit *unit, const struct domain *domain)
{
	for (uint32_t at = 0; unit->inside <= unit->spare && at != FROND_NONE;) {
		at = find_part(hunt, unit, domain, PART_STAYS);
		if (at != FROND_NONE)
			hunt_set_part(hunt, unit, at, true);
	}
	unit->state = unit->inside <= unit->spare ? UNIT_PART : UNIT_WHOLE;
}

static void solve_greedy(struct hunt *hunt, const struct domain *domain)
{
	struct victims_work *work = hunt->work;
	for (uint32_t i = 0; i < work->unit_count && !hunt_has_room(hunt, domain); i++)
		take_unit(hunt, &work->units[i], domain);
	for (uint32_t i = work->unit_count; i-- > 0 && hunt_has_room(hunt, domain);)
		if (work->units[i].state != UNIT_STAYS)
			give_back(hunt, &work->units[i], domain);
}

/* ---- the price of a domain ------------------------------------------------------------------------------------------------ */

static void add_price(const struct hunt *hunt, const struct unit *unit, struct price *price)
{
	const struct entry *entries = hunt->core->ledger.entries;
	const struct gang *gang = &hunt->core->gangs.gangs[unit->gang];
	if (unit->state == UNIT_STAYS)
		return;
	price->priority = price->gangs == 0 || gang->priority > price->priority ? gang->priority : price->priority;
	price->gangs++;
	for (uint32_t at = gang_first(gang); unit->state == UNIT_PART && at != FROND_NONE;
	     at = entry_gang_next(&entries[at]))
		if (hunt->work->parts[at]) {
			price->budgets += entries[at].budgeted;
			price->gpus += entry_gpus(&entries[at]);
		}
	price->budgets += unit->state == UNIT_WHOLE ? unit->budgets : 0;
	price->gpus += unit->state == UNIT_WHOLE ? unit->gpus : 0;
}

static void solve(struct hunt *hunt, const struct domain *domain)
{
	hunt_collect(hunt, domain);
	if (hunt->spans.rule.name == FROND_RULE_SINGLE_NODE && hunt->work->unit_count <= NODE_PODS)
		hunt_solve_node(hunt, domain);
	else
		solve_greedy(hunt, domain);
}

/* Takes back what counting has marked. */
static void forget(struct hunt *hunt, const struct domain *domain)
{
	struct victims_work *work = hunt->work;
	for (uint32_t i = 0; i < work->unit_count; i++) {
		keep_parts(hunt, &work->units[i], domain);
		work->units[i].state = UNIT_STAYS;
	}
	memset(work->freed + domain->span.first, 0, domain->span.end - domain->span.first);
}

/* False: it does not help if all go. */
static bool price_of(struct hunt *hunt, struct domain *domain)
{
	domain->price = (struct price){0};
	solve(hunt, domain);
	bool helps = hunt_has_room(hunt, domain);
	for (uint32_t i = 0; i < hunt->work->unit_count; i++)
		add_price(hunt, &hunt->work->units[i], &domain->price);
	forget(hunt, domain);
	return helps;
}

/* The cheapest domains, in order; returns how many. */
static uint32_t cheapest(struct hunt *hunt, struct domain *best)
{
	uint32_t count = 0;
	for (struct spans spans = hunt->spans; spans_next(&spans);) {
		struct domain domain = {.span = spans.span};
		bool pinned = hunt->pin_first <= hunt->pin_last;
		if (pinned && (hunt->pin_first < domain.span.first || hunt->pin_last >= domain.span.end))
			continue;
		if (!price_of(hunt, &domain))
			continue;
		uint32_t at = count;
		while (at > 0 && price_compare(&domain.price, &best[at - 1].price) < 0)
			at--;
		if (at == VICTIM_DOMAINS)
			continue;
		count = min_u32(count + 1, VICTIM_DOMAINS);
		memmove(&best[at + 1], &best[at], (count - 1 - at) * sizeof *best);
		best[at] = domain;
	}
	return count;
}

/* ---- what the planner says ---------------------------------------------------------------------------------------------- */

static bool fits(struct hunt *hunt)
{
	place_gang(hunt->core->work, &hunt->ask, &hunt->answer, hunt->places);
	return hunt->answer.plan.outcome == FROND_PLACED;
}

/* A pod goes, for the time of the what-if. False: the list or the log is full. */
static bool evict(struct hunt *hunt, uint32_t at, uint32_t unit)
{
	struct victims_work *work = hunt->work;
	const struct entry *entry = &hunt->core->ledger.entries[at];
	if (work->count == work->pod_cap || !undo_room(&hunt->core->undo, 4))
		return false;
	work->list[work->count++] = (struct victim){.pod = entry->pod,
						    .entry = at,
						    .slot = entry_slot(entry),
						    .mask = entry->mask,
						    .by_count = entry->by_count,
						    .unit = unit};
	gangs_part(&hunt->core->gangs, at);
	ledger_leave(&hunt->core->ledger, at);
	return true;
}

static bool evict_unit(struct hunt *hunt, uint32_t i)
{
	const struct unit *unit = &hunt->work->units[i];
	const struct entry *entries = hunt->core->ledger.entries;
	bool done = true;
	for (uint32_t at = gang_first(&hunt->core->gangs.gangs[unit->gang]), next; at != FROND_NONE && done;
	     at = next) {
		next = entry_gang_next(&entries[at]);
		if (unit->state == UNIT_WHOLE || hunt->work->parts[at])
			done = evict(hunt, at, i);
	}
	return done;
}

/* Those of a unit (or one pod of it) come back, or go again. */
static void put_back(struct hunt *hunt, uint32_t first, uint32_t end, bool back)
{
	for (uint32_t i = first; i < end; i++) {
		struct victim *victim = &hunt->work->list[i];
		uint32_t at;
		victim->stays = back;
		if (back) {
			int32_t code = ledger_enter(&hunt->core->ledger, victim->pod, HOLD_BOUND, victim->slot,
						    victim->mask, victim->by_count, FROND_NONE, FROND_NONE, &at);
			assert(code == FROND_OK);
		} else {
			ledger_leave(&hunt->core->ledger, ledger_find(&hunt->core->ledger, victim->pod));
		}
	}
}

/* Tries to do without those that have gone; true: they stay. */
static bool spare_these(struct hunt *hunt, uint32_t first, uint32_t end, uint32_t *asks)
{
	if (*asks == 0)
		return false;
	--*asks;
	put_back(hunt, first, end, true);
	if (fits(hunt))
		return true;
	put_back(hunt, first, end, false);
	return false;
}

/* A gang of few pods that may go in part: the fewest of them that are enough, by trying all. */
static void spare_most(struct hunt *hunt, uint32_t first, uint32_t end, uint32_t spare, uint32_t *asks)
{
	uint32_t all = end - first;
	for (uint32_t size = 1; size <= spare && size < all; size++)
		for (uint32_t gone = 1; gone < 1u << all && *asks > 0; gone++) {
			if (bits_count(gone) != size)
				continue;
			--*asks;
			undo_begin(&hunt->core->undo);
			for (uint32_t i = 0; i < all; i++)
				if (!(gone >> i & 1))
					put_back(hunt, first + i, first + i + 1, true);
			bool enough = fits(hunt);
			undo_back(&hunt->core->undo);
			for (uint32_t i = 0; i < all; i++) {
				hunt->work->list[first + i].stays = false;
				if (enough && !(gone >> i & 1))
					put_back(hunt, first + i, first + i + 1, true);
			}
			if (enough)
				return;
		}
}

/* A larger one: one pod after the other, as long as the others are enough. */
static void spare_each(struct hunt *hunt, uint32_t first, uint32_t end, uint32_t spare, uint32_t *asks)
{
	uint32_t gone = 0;
	for (uint32_t i = end; i-- > first;)
		gone += !spare_these(hunt, i, i + 1, asks);
	for (uint32_t i = first; i < end && gone > spare; i++) /* too few would be left of the gang */
		if (hunt->work->list[i].stays)
			put_back(hunt, i, i + 1, false);
}

/* Whoever is not needed stays, dearest first: whole gangs, then single pods of those that may go in part. */
static void spare_some(struct hunt *hunt)
{
	struct victims_work *work = hunt->work;
	uint32_t asks = VICTIM_ASKS;
	for (uint32_t end = work->count, first; end > 0; end = first) {
		const struct unit *unit = &work->units[work->list[end - 1].unit];
		for (first = end; first > 0 && &work->units[work->list[first - 1].unit] == unit;)
			first--;
		/* All of them back and gone again, each of them, and at last once more. */
		if (!undo_room(&hunt->core->undo, 1 + 5ull * (end - first)))
			return;
		if (spare_these(hunt, first, end, &asks) || unit->spare == 0)
			continue;
		if (end - first <= VICTIM_CHOICE)
			spare_most(hunt, first, end, unit->spare, &asks);
		else
			spare_each(hunt, first, end, unit->spare, &asks);
	}
}

static bool victim_before(const struct hunt *hunt, const struct victim *a, const struct victim *b)
{
	if (a->unit != b->unit)
		return a->unit < b->unit;
	if (a->slot != b->slot && a->slot != FROND_NONE && b->slot != FROND_NONE)
		return hunt->fabric->position[a->slot] < hunt->fabric->position[b->slot];
	if (a->slot != b->slot)
		return b->slot == FROND_NONE;
	return key_before(a->pod, b->pod);
}

static void sift_list(const struct hunt *hunt, uint32_t root, uint32_t count)
{
	struct victim *list = hunt->work->list;
	for (uint32_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
		if (child + 1 < count && victim_before(hunt, &list[child], &list[child + 1]))
			child++;
		if (!victim_before(hunt, &list[root], &list[child]))
			return;
		struct victim victim = list[child];
		list[child] = list[root];
		list[root] = victim;
		root = child;
	}
}

/* By gang, cheapest first, then place: the ledger's lists go by history. */
static void sort_list(struct hunt *hunt)
{
	struct victims_work *work = hunt->work;
	for (uint32_t root = work->count / 2; root > 0; root--)
		sift_list(hunt, root - 1, work->count);
	for (uint32_t end = work->count; end > 1; end--) {
		struct victim victim = work->list[end - 1];
		work->list[end - 1] = work->list[0];
		work->list[0] = victim;
		sift_list(hunt, 0, end - 1);
	}
}

/* The domain inside a what-if: what counting found, more if the planner wants more, less if it can do with less. */
static bool evict_for(struct hunt *hunt, const struct domain *domain)
{
	struct victims_work *work = hunt->work;
	bool done = true;
	for (uint32_t i = 0; i < work->unit_count && done; i++)
		done = work->units[i].state == UNIT_STAYS || evict_unit(hunt, i);
	bool placed = done && fits(hunt);
	for (uint32_t i = 0; i < work->unit_count && done && !placed && i < VICTIM_ASKS; i++) {
		if (work->units[i].state == UNIT_WHOLE)
			continue;
		uint32_t before = work->count;
		take_all(hunt, &work->units[i], domain);
		done = evict_unit(hunt, i);
		placed = done && work->count > before && fits(hunt);
	}
	sort_list(hunt);
	if (placed)
		spare_some(hunt);
	return placed && fits(hunt); /* the last plan may have been a refusal */
}

/* On success the pods are in the list and the plan in answer and places. */
static bool realise(struct hunt *hunt, const struct domain *domain)
{
	hunt->work->count = 0;
	solve(hunt, domain);
	undo_begin(&hunt->core->undo);
	bool placed = evict_for(hunt, domain);
	undo_back(&hunt->core->undo);
	forget(hunt, domain);
	return placed;
}

bool hunt_realise_choice(struct hunt *hunt, const struct domain *domain, struct choice choice)
{
	struct victims_work *work = hunt->work;
	bool done = true;
	work->count = 0;
	hunt_collect(hunt, domain);
	hunt_mark_choice(hunt, domain, choice);
	undo_begin(&hunt->core->undo);
	for (uint32_t i = 0; i < work->unit_count && done; i++)
		done = work->units[i].state == UNIT_STAYS || evict_unit(hunt, i);
	sort_list(hunt);
	bool placed = done && fits(hunt);
	undo_back(&hunt->core->undo);
	forget(hunt, domain);
	return placed;
}

static struct price list_price(const struct hunt *hunt, uint32_t *pods)
{
	const struct victims_work *work = hunt->work;
	struct price price = {0};
	uint32_t last = FROND_NONE;
	*pods = 0;
	for (uint32_t i = 0; i < work->count; i++) {
		const struct victim *victim = &work->list[i];
		if (victim->stays)
			continue;
		const struct entry *entry = &hunt->core->ledger.entries[victim->entry]; /* the what-if is over */
		int32_t priority = hunt->core->gangs.gangs[entry_gang(entry)].priority;
		++*pods;
		price.priority = price.gangs == 0 || priority > price.priority ? priority : price.priority;
		price.gangs += entry_gang(entry) != last;
		last = entry_gang(entry);
		price.budgets += entry->budgeted;
		price.gpus += entry_gpus(entry);
	}
	return price;
}

static void begin(struct hunt *hunt, const struct ask *ask)
{
	hunt->ask = *ask;
	if (hunt->ask.mode == MODE_PREFERRED)
		hunt->ask.mode = MODE_REQUIRED; /* nobody goes for a relaxed placement */
	hunt->size = 1;
	hunt->pin_first = FROND_NONE;
	for (uint32_t i = 0; i < ask->count; i++) {
		const struct frond_member *member = &ask->members[i];
		if (member->gpus == 0)
			continue;
		hunt->mixed |= hunt->gpus > 0 && member->gpus != hunt->size;
		hunt->size = member->gpus;
		hunt->gpus += member->gpus;
	}
	uint64_t pinned = 0;
	uint32_t missing = 0;
	for (uint32_t i = 0; i < ask->count; i++) {
		const struct frond_member *member = &ask->members[i];
		if (member->gpus == 0)
			continue;
		if (member->pinned_slot == FROND_NONE) {
			missing++;
			continue;
		}
		uint32_t position = hunt->fabric->position[member->pinned_slot];
		pinned += member->gpus;
		hunt->pin_last = hunt->pin_first == FROND_NONE ? position : max_u32(hunt->pin_last, position);
		hunt->pin_first = min_u32(hunt->pin_first, position);
	}
	hunt->gpus -= pinned;
	hunt->size = hunt->mixed ? 1 : hunt->size;
	hunt->need = hunt->mixed ? (uint32_t)hunt->gpus : missing;
}

static void learn_rule(struct hunt *hunt)
{
	const struct ask *ask = &hunt->ask;
	struct rule rule = rule_of(ask, &hunt->answer);
	hunt->spans = spans_of(hunt->fabric, &rule, ask_spreads(ask));
	bool capped = ask->max_nodes_per_leaf > 0 || ask->max_gpus_per_leaf > 0;
	bool crosses = hunt->spans.rule.name == FROND_RULE_NONE && ask->bandwidth_gbps > 0;
	bool shaped = hunt->spans.rule.name == FROND_RULE_ADJACENT_SPINES ||
		      (hunt->spans.rule.name == FROND_RULE_ADJACENT_LEAVES && hunt->spans.spreads);
	hunt->exact = ask->gpu.mode != MODE_REQUIRED && !capped && !crosses && !shaped &&
		      (!hunt->mixed || hunt->spans.rule.name == FROND_RULE_SINGLE_NODE);
}

static int32_t tell(struct hunt *hunt, struct frond_victims *out, struct frond_key *pods, uint32_t cap)
{
	const struct victims_work *work = hunt->work;
	struct price price = list_price(hunt, &out->count);
	uint32_t told = 0;
	out->outcome = hunt->answer.plan.outcome;
	out->plan = hunt->answer.plan;
	out->budgets = price.budgets;
	out->priority = price.priority;
	out->gangs = price.gangs;
	out->gpus = price.gpus;
	if (out->count > cap)
		return FROND_SMALL;
	for (uint32_t i = 0; i < work->count; i++)
		if (!work->list[i].stays)
			pods[told++] = work->list[i].pod;
	return FROND_OK;
}

struct offer {              /* the cheapest victims so far */
	bool found, chosen; /* chosen: by victims_node.c */
	struct domain domain;
	struct choice choice;
	struct price price;
};

/* Every node where a choice of pods undercuts the offer, or costs the same and the node comes first. */
static void search_nodes(struct hunt *hunt, struct offer *best)
{
	if (!best->found)
		best->price = (struct price){UINT32_MAX, INT32_MAX, UINT32_MAX, UINT32_MAX};
	for (struct spans spans = hunt->spans; spans_next(&spans);) {
		struct domain domain = {.span = spans.span};
		bool first = best->found && domain.span.first < best->domain.span.first;
		if (!price_of(hunt, &domain))
			continue;
		int order = price_compare(&domain.price, &best->price); /* counting: no choice is cheaper */
		bool hopeless = domain.price.gangs > 0 && (order > 0 || (order == 0 && !first));
		if (!hopeless && hunt_search_node(hunt, &domain, first, &best->price, &best->choice)) {
			best->domain = domain;
			best->found = best->chosen = true;
		}
	}
}

/* Phases 2 and 3. True: the victims are in the list and the plan in answer and places. */
static bool find_cheapest(struct hunt *hunt)
{
	struct domain domains[VICTIM_DOMAINS];
	struct offer best = {.found = false};
	uint32_t count = cheapest(hunt, domains);
	for (uint32_t i = 0; i < count && !(best.found && hunt->exact); i++) {
		uint32_t gone;
		if (!realise(hunt, &domains[i]))
			continue;
		struct price price = list_price(hunt, &gone);
		if (!best.found || price_compare(&price, &best.price) < 0)
			best = (struct offer){.found = true, .domain = domains[i], .price = price};
	}
	if (hunt->exact)
		return best.found;
	if (hunt->spans.rule.name == FROND_RULE_SINGLE_NODE)
		search_nodes(hunt, &best);
	if (best.chosen)
		return hunt_realise_choice(hunt, &best.domain, best.choice);
	return best.found && realise(hunt, &best.domain); /* the same again */
}

int32_t victims(struct victims_work *work, struct core *core, const struct ask *ask, int32_t priority,
		struct frond_victims *out, struct frond_place *places, struct frond_key *pods, uint32_t cap)
{
	struct hunt hunt = {
		.work = work, .core = core, .fabric = &core->fabric, .places = places, .priority = priority};
	*out = (struct frond_victims){0};
	budget_begin(place_budget(core->work), core->fabric.node_count);
	if (!undo_room(&core->undo, 8))
		return FROND_LIMIT;
	begin(&hunt, ask);
	work->count = 0;
	if (fits(&hunt) || hunt.answer.plan.outcome != FROND_WAITS) {
		hunt.answer.plan.generation = core->generation;
		return tell(&hunt, out, pods, cap);
	}
	memset(work->unit_of, 0, work->entry_cap * sizeof *work->unit_of);
	memset(work->parts, 0, work->entry_cap * sizeof *work->parts);
	memset(work->freed, 0, work->node_cap * sizeof *work->freed);
	learn_rule(&hunt);
	struct answer waits = hunt.answer;
	if (!find_cheapest(&hunt)) {
		hunt.answer = waits;
		work->count = 0;
	}
	hunt.answer.plan.generation = core->generation;
	return tell(&hunt, out, pods, cap);
}
