/* SPDX-License-Identifier: Apache-2.0 */
/*
 * victims_count.c - room by counting GPUs, and gangs by what their going brings and costs.
 *
 * What a gang brings, its gain, is a bound: on a node with f GPUs free, of which f mod size are no use yet, freeing x more
 * makes room for (x + f mod size) / size members at most. Gains are counted in GPUs, and a choice whose gains do not add up to
 * size × the members that have no room cannot be enough.
 */
#include "core/sort.h"
#include "core/victims_work.h"

#define BY_COUNT_MOST                                                                                                  \
	200u /* held by count on a node whose room is counted in bytes; beyond that the node is left alone */

/* ---- nodes ------------------------------------------------------------------------------------------------------------ */

/* Members that a node may have: what the host's other filters admit; 0: it is not usable. */
static uint32_t node_admits(const struct hunt *hunt, uint32_t position)
{
	uint32_t slot = hunt->fabric->order[position];
	const struct node *node = &hunt->core->nodes[slot];
	if (!node_open(node) || !node_fast(node, hunt->ask.bandwidth_gbps) ||
	    (hunt->ask.only_slot != FROND_NONE && hunt->ask.only_slot != slot))
		return 0;
	return ask_room_at(&hunt->ask, slot, ROOM_TODAY);
}

/* Steps of the budget for a look at that. */
static uint32_t node_steps(const struct hunt *hunt)
{
	return hunt->ask.room_count > 0 ? 2 * STEPS_NODE : STEPS_NODE / 2;
}

/* GPUs of a node that are free once so many more are. */
static uint32_t gpus_on(const struct hunt *hunt, uint32_t position, uint32_t freed)
{
	const struct node *node = &hunt->core->nodes[hunt->fabric->order[position]];
	if (node->by_count == 0)
		return node_free_count(node) + freed;
	uint32_t free = bits_count(node_free_mask(node)) + freed;
	return free > node->by_count ? free - node->by_count : 0;
}

/* Members for which a node that admits so many has room with so many free GPUs. */
static uint32_t members_with(const struct hunt *hunt, uint32_t admitted, uint32_t free)
{
	if (hunt->by_gpus)
		return admitted < hunt->members ? 0 : free;
	return min_u32(free / hunt->size, admitted);
}

static uint32_t members_on(const struct hunt *hunt, uint32_t position, uint32_t freed)
{
	uint32_t admitted = node_admits(hunt, position);
	return admitted > 0 ? members_with(hunt, admitted, gpus_on(hunt, position, freed)) : 0;
}

/* Healthy GPUs that a pod gives back, and that are kept for nobody else. */
static uint32_t frees(const struct hunt *hunt, const struct entry *entry)
{
	return bits_count(ledger_frees(&hunt->core->ledger, entry) &
			  ~(uint32_t)hunt->core->nodes[entry_slot(entry)].unhealthy) +
	       (uint32_t)entry->by_count;
}

static const struct node *node_at(const struct hunt *hunt, uint32_t position)
{
	return &hunt->core->nodes[hunt->fabric->order[position]];
}

/* ---- gangs ------------------------------------------------------------------------------------------------------------ */

bool hunt_evictable(const struct hunt *hunt, const struct entry *entry, int32_t most)
{
	if (entry->hold != HOLD_BOUND || entry_gang(entry) == FROND_NONE)
		return false;
	const struct gang *gang = &hunt->core->gangs.gangs[entry_gang(entry)];
	return gang->priority < hunt->priority && gang->priority <= most && gang->members == gang->bound;
}

uint32_t hunt_spare(const struct hunt *hunt, uint32_t id)
{
	const struct gang *gang = &hunt->core->gangs.gangs[id];
	if (gang->bound > FROND_MEMBERS_MAX || gang->bound <= gang->min_member)
		return 0;
	return (uint32_t)(gang->bound - gang->min_member);
}

static bool rank_before(const void *context, uint32_t a, uint32_t b)
{
	const struct entry *entries = context;
	uint32_t rank = entry_rank(&entries[a]), other = entry_rank(&entries[b]);
	return rank != other ? rank > other : key_before(entries[a].pod, entries[b].pod);
}

void hunt_rank(struct hunt *hunt)
{
	const struct gangs *gangs = &hunt->core->gangs;
	const struct entry *entries = hunt->core->ledger.entries;
	uint32_t *ids = (uint32_t *)(void *)hunt->work->units; /* of no use yet; a gang that shrinks has room in it */
	for (uint32_t id = 0; id < gangs->fresh; id++) {
		const struct gang *gang = &gangs->gangs[id];
		uint32_t count = 0, spare = hunt_spare(hunt, id);
		if (gang_first(gang) == FROND_NONE || gang->priority >= hunt->priority || gang->members != gang->bound)
			continue;
		for (uint32_t at = gang_first(gang); at != FROND_NONE; at = entry_gang_next(&entries[at])) {
			hunt->budgets |= entries[at].budgeted;
			if (spare > 0)
				ids[count++] = at;
		}
		sort_ids(ids, count, rank_before, entries);
		for (uint32_t i = 0; i < count; i++)
			hunt->work->rank_at[ids[i]] = i;
	}
}

void hunt_forget(struct hunt *hunt)
{
	for (uint32_t i = 0; i < SUMS; i++)
		hunt->sums[i].gang = FROND_NONE;
}

const struct sums *hunt_sums(struct hunt *hunt, uint32_t id)
{
	struct sums *sums = &hunt->sums[id % SUMS];
	const struct entry *entries = hunt->core->ledger.entries;
	const struct gang *gang = &hunt->core->gangs.gangs[id];
	bool shrinks = hunt_spare(hunt, id) > 0;
	if (sums->gang == id)
		return sums;
	*sums = (struct sums){.gang = id, .unbudgeted = (uint32_t)gang->bound, .even = true};
	for (uint32_t at = gang_first(gang); at != FROND_NONE; at = entry_gang_next(&entries[at])) {
		sums->even &= entry_gpus(&entries[at]) == entry_gpus(&entries[gang_first(gang)]);
		sums->gpus += entry_gpus(&entries[at]);
		sums->budgets += entries[at].budgeted;
		if (entries[at].budgeted)
			sums->unbudgeted = shrinks ? min_u32(sums->unbudgeted, hunt->work->rank_at[at]) : 0;
	}
	return sums;
}

bool hunt_may_go(struct hunt *hunt, uint32_t at, int32_t most, bool unbudgeted)
{
	const struct entry *entry = &hunt->core->ledger.entries[at];
	if (!hunt_evictable(hunt, entry, most))
		return false;
	if (!unbudgeted || !hunt->budgets)
		return true;
	const struct sums *sums = hunt_sums(hunt, entry_gang(entry));
	uint32_t spare = hunt_spare(hunt, entry_gang(entry));
	return sums->budgets == 0 || (spare > 0 && hunt->work->rank_at[at] < min_u32(spare, sums->unbudgeted));
}

/* ---- room ------------------------------------------------------------------------------------------------------------- */

/* The shape that a rule asks for, told room node by node in fabric order: a gang of one run uses every leaf of it, one of
 * several spines has one run in each and leaves none out. Where sizes differ only the planner knows. */
struct shape {
	uint32_t leaf, spine;
	uint32_t in_leaf;       /* members that the leaf in hand has room for */
	uint64_t run, best_run; /* of adjacent leaves with room, and the largest of the spine in hand */
	uint64_t chain, best;   /* of adjacent spines, and the largest part of the domain in such a shape */
	bool closed;            /* a leaf without room was seen */
};

static bool shape_matters(const struct hunt *hunt)
{
	return !hunt->mixed &&
	       (hunt->rule.name == FROND_RULE_ADJACENT_LEAVES || hunt->rule.name == FROND_RULE_ADJACENT_SPINES);
}

static bool leaf_pinned(const struct hunt *hunt, uint32_t leaf)
{
	return hunt->pin_first < hunt->fabric->leaf_start[leaf + 1] &&
	       hunt->pin_last >= hunt->fabric->leaf_start[leaf] && hunt->pin_first <= hunt->pin_last;
}

static void shape_end_leaf(const struct hunt *hunt, struct shape *shape)
{
	bool open = shape->in_leaf > 0 || leaf_pinned(hunt, shape->leaf);
	shape->run = open ? shape->run + shape->in_leaf : 0;
	shape->closed |= !open;
	shape->best_run = shape->run > shape->best_run ? shape->run : shape->best_run;
	shape->in_leaf = 0;
}

static void shape_end_spine(struct shape *shape)
{
	shape->chain = shape->best_run > 0 ? shape->chain + shape->best_run : 0;
	shape->best = shape->chain > shape->best ? shape->chain : shape->best;
	shape->run = shape->best_run = 0;
}

static void shape_add(const struct hunt *hunt, struct shape *shape, uint32_t position, uint32_t members)
{
	uint32_t leaf = hunt->fabric->leaf_of[position], spine = hunt->fabric->leaf_spine[leaf];
	if (leaf != shape->leaf && shape->leaf != FROND_NONE) {
		shape_end_leaf(hunt, shape);
		if (spine != shape->spine)
			shape_end_spine(shape);
		if (leaf != shape->leaf + 1) { /* one without nodes in between */
			shape->run = 0;
			shape->closed = true;
		}
		if (spine != shape->spine && spine != shape->spine + 1)
			shape->chain = 0;
	}
	shape->leaf = leaf;
	shape->spine = spine;
	shape->in_leaf += members;
}

static bool shape_holds(const struct hunt *hunt, struct shape *shape)
{
	shape_end_leaf(hunt, shape);
	shape_end_spine(shape);
	if (hunt->rule.name == FROND_RULE_ADJACENT_LEAVES && !hunt->spreads)
		return !shape->closed;
	return shape->best >= hunt->need;
}

static bool enough(const struct hunt *hunt, uint32_t room, uint64_t free)
{
	return room >= hunt->need && (!hunt->mixed || hunt->by_gpus || free >= hunt->gpus);
}

bool hunt_has_room(struct hunt *hunt)
{
	struct shape shape = {.leaf = FROND_NONE};
	if (!enough(hunt, hunt->room, hunt->free))
		return false;
	if (!shape_matters(hunt))
		return true;
	if (!hunt_pay(hunt, (uint64_t)node_steps(hunt) * (hunt->span.end - hunt->span.first)))
		return false;
	for (uint32_t position = hunt->span.first; position < hunt->span.end; position++)
		shape_add(hunt, &shape, position, members_on(hunt, position, hunt->work->freed[position]));
	return shape_holds(hunt, &shape);
}

static void note_priority(struct hunt *hunt, const struct entry *entry, int32_t most)
{
	if (entry->hold != HOLD_BOUND || entry_gang(entry) == FROND_NONE)
		return;
	int32_t priority = hunt->core->gangs.gangs[entry_gang(entry)].priority;
	if (priority <= most && priority > hunt->lower)
		hunt->lower = priority;
	if (priority > most && priority < hunt->higher)
		hunt->higher = priority;
}

bool hunt_could(struct hunt *hunt, int32_t most, bool unbudgeted)
{
	const struct entry *entries = hunt->core->ledger.entries;
	struct shape shape = {.leaf = FROND_NONE};
	uint32_t room = 0;
	uint64_t free = 0, steps = 0;
	bool shaped = shape_matters(hunt);
	hunt->lower = INT32_MIN;
	hunt->higher = INT32_MAX;
	for (uint32_t position = hunt->span.first; position < hunt->span.end; position++) {
		uint32_t freed = 0, members = 0, admitted = 0;
		if (span_has(hunt->fabric, &hunt->span, position))
			admitted = node_admits(hunt, position);
		steps += node_steps(hunt);
		if (admitted > 0) {
			for (uint32_t at = node_at(hunt, position)->first; at != FROND_NONE;
			     at = entry_node_next(&entries[at])) {
				steps += 2;
				note_priority(hunt, &entries[at], most);
				if (hunt_may_go(hunt, at, most, unbudgeted))
					freed += frees(hunt, &entries[at]);
			}
			uint32_t gpus = gpus_on(hunt, position, freed);
			members = members_with(hunt, admitted, gpus);
			free += gpus;
		}
		room += members;
		if (shaped)
			shape_add(hunt, &shape, position, members);
	}
	return hunt_pay(hunt, steps) && enough(hunt, room, free) && (!shaped || shape_holds(hunt, &shape));
}

/* ---- the gangs of a domain ----------------------------------------------------------------------------------------------- */

struct gift {                /* what freeing GPUs of a node can bring */
	uint32_t rest, most; /* free GPUs of no use yet; members at most, by all that may go */
};

/* False: nobody has to go from there. */
static bool node_gift(struct hunt *hunt, uint32_t position, int32_t most, struct gift *gift)
{
	const struct entry *entries = hunt->core->ledger.entries;
	const struct node *node = node_at(hunt, position);
	uint32_t freed = 0, admitted = 0;
	if (span_has(hunt->fabric, &hunt->span, position))
		admitted = node_admits(hunt, position);
	if (admitted == 0)
		return false;
	for (uint32_t at = node->first; at != FROND_NONE; at = entry_node_next(&entries[at]))
		if (hunt_evictable(hunt, &entries[at], most))
			freed += frees(hunt, &entries[at]);
	if (freed > 0 && node->by_count > BY_COUNT_MOST) {
		hunt->cut = true;
		return false;
	}
	uint32_t free = gpus_on(hunt, position, 0);
	gift->rest = free % hunt->size;
	gift->most = members_with(hunt, admitted, gpus_on(hunt, position, freed)) - members_with(hunt, admitted, free);
	return freed > 0 && (!hunt->exact || gift->most > 0);
}

static struct unit *find_unit(const struct hunt *hunt, uint32_t gang)
{
	struct victims_work *work = hunt->work;
	uint32_t at = work->unit_of[gang];
	return at < work->unit_count && work->units[at].gang == gang ? &work->units[at] : NULL;
}

/* A pod whose GPUs help; unit->before is the last node that was counted for it. */
static void add_pod(struct hunt *hunt, const struct entry *entry, uint32_t position, const struct gift *gift)
{
	struct victims_work *work = hunt->work;
	struct unit *unit = find_unit(hunt, entry_gang(entry));
	uint32_t gpus = frees(hunt, entry);
	if (unit == NULL && work->unit_count == work->gang_cap) {
		hunt->cut = true;
		return;
	}
	if (unit == NULL) {
		unit = &work->units[work->unit_count];
		*unit = (struct unit){
			.gang = entry_gang(entry), .before = FROND_NONE, .at = position, .below = UNIT_NONE};
		work->unit_of[unit->gang] = (uint16_t)work->unit_count++;
	}
	gpus += unit->before == position ? 0 : gift->rest;
	unit->gain += min_u32(gpus, gift->most * hunt->size);
	unit->before = position;
	unit->count++;
	hunt->inside_count++;
}

static bool rank_at_before(const void *context, uint32_t a, uint32_t b)
{
	const uint32_t *rank_at = context;
	return rank_at[a] < rank_at[b];
}

void hunt_refill(struct hunt *hunt, int32_t most)
{
	struct victims_work *work = hunt->work;
	const struct entry *entries = hunt->core->ledger.entries;
	uint32_t sum = 0;
	hunt_forget(hunt);
	for (uint32_t i = 0; i < work->unit_count; sum += work->units[i++].count)
		work->units[i].first = sum;
	for (uint32_t position = hunt->span.first; position < hunt->span.end; position++) {
		struct gift gift;
		if (!node_gift(hunt, position, most, &gift))
			continue;
		for (uint32_t at = node_at(hunt, position)->first; at != FROND_NONE;
		     at = entry_node_next(&entries[at])) {
			struct unit *unit = NULL;
			if (hunt_evictable(hunt, &entries[at], most) && frees(hunt, &entries[at]) > 0)
				unit = find_unit(hunt, entry_gang(&entries[at]));
			if (unit != NULL)
				hunt->inside[unit->first++] = at;
		}
	}
	for (uint32_t i = 0; i < work->unit_count; i++) {
		struct unit *unit = &work->units[i];
		uint32_t spare = hunt_spare(hunt, unit->gang);
		unit->first -= unit->count;
		if (spare == 0)
			continue;
		sort_ids(hunt->inside + unit->first, unit->count, rank_at_before, work->rank_at);
		for (unit->shrinks = 0; unit->shrinks < unit->count; unit->shrinks++)
			if (work->rank_at[hunt->inside[unit->first + unit->shrinks]] >= spare)
				break;
	}
}

void hunt_collect(struct hunt *hunt, int32_t most)
{
	struct victims_work *work = hunt->work;
	const struct entry *entries = hunt->core->ledger.entries;
	work->unit_count = hunt->room = hunt->inside_count = 0;
	hunt->free = 0;
	hunt->gain = 0;
	hunt->price = (struct price){0};
	for (uint32_t position = hunt->span.first; position < hunt->span.end; position++) {
		struct gift gift;
		uint32_t admitted = 0;
		if (span_has(hunt->fabric, &hunt->span, position))
			admitted = node_admits(hunt, position);
		if (admitted > 0) {
			hunt->room += members_with(hunt, admitted, gpus_on(hunt, position, 0));
			hunt->free += gpus_on(hunt, position, 0);
		}
		if (!node_gift(hunt, position, most, &gift))
			continue;
		for (uint32_t at = node_at(hunt, position)->first; at != FROND_NONE;
		     at = entry_node_next(&entries[at])) {
			if (!hunt_evictable(hunt, &entries[at], most) || frees(hunt, &entries[at]) == 0)
				continue;
			if (hunt->inside_count == hunt->inside_cap) {
				hunt->cut = true;
				break;
			}
			add_pod(hunt, &entries[at], position, &gift);
		}
	}
	hunt_pay(hunt, 3ull * node_steps(hunt) * (hunt->span.end - hunt->span.first) + 16ull * hunt->inside_count +
			       64ull * work->unit_count);
	hunt_refill(hunt, most);
}

/* ---- choosing ------------------------------------------------------------------------------------------------------------ */

uint32_t hunt_ranks(const struct hunt *hunt, const struct unit *unit, uint32_t gone)
{
	if (gone == 0 || gone == UNIT_WHOLE)
		return gone;
	return hunt->work->rank_at[hunt->inside[unit->first + gone - 1]] + 1;
}

/* Adds what it costs that so much of the unit goes, or takes it away. */
static void add_cost(struct hunt *hunt, const struct unit *unit, uint32_t gone, bool goes)
{
	const struct entry *entries = hunt->core->ledger.entries;
	const struct gang *gang = &hunt->core->gangs.gangs[unit->gang];
	const struct sums *sums = hunt_sums(hunt, unit->gang);
	uint32_t ranks = hunt_ranks(hunt, unit, gone), bound = (uint32_t)gang->bound;
	struct price cost = {.budgets = sums->budgets, .gangs = 1, .pods = bound, .gpus = sums->gpus};
	if (gone == 0)
		return;
	if (gone != UNIT_WHOLE) {
		bool walk = !sums->even || (sums->budgets > 0 && sums->budgets < bound);
		cost = (struct price){.budgets = sums->budgets > 0 && !walk ? ranks : 0,
				      .gangs = 1,
				      .pods = ranks,
				      .gpus = walk ? 0 : sums->gpus / bound * ranks};
		for (uint32_t at = gang_first(gang); walk && at != FROND_NONE; at = entry_gang_next(&entries[at]))
			if (hunt->work->rank_at[at] < ranks) {
				cost.budgets += entries[at].budgeted;
				cost.gpus += entry_gpus(&entries[at]);
			}
	}
	uint32_t sign = goes ? 1 : UINT32_MAX;
	hunt->price.budgets += sign * cost.budgets;
	hunt->price.gangs += sign * cost.gangs;
	hunt->price.pods += sign * cost.pods;
	hunt->price.gpus += sign * cost.gpus;
}

static uint32_t gain_of(const struct hunt *hunt, const struct unit *unit, uint32_t gone)
{
	uint32_t gain = 0;
	if (gone >= unit->count)
		return unit->gain;
	for (uint32_t i = 0; i < gone; i++) {
		const struct entry *entry = &hunt->core->ledger.entries[hunt->inside[unit->first + i]];
		uint32_t position = hunt->fabric->position[entry_slot(entry)];
		gain += frees(hunt, entry) + gpus_on(hunt, position, 0) % hunt->size;
	}
	return min_u32(gain, unit->gain);
}

/* A pod goes, or comes back. */
static void count_pod(struct hunt *hunt, uint32_t at, bool goes)
{
	const struct entry *entry = &hunt->core->ledger.entries[at];
	uint32_t position = hunt->fabric->position[entry_slot(entry)], gpus = frees(hunt, entry);
	uint8_t *freed = &hunt->work->freed[position];
	uint32_t before = gpus_on(hunt, position, *freed);
	*freed = (uint8_t)(goes ? *freed + gpus : *freed - gpus);
	uint32_t after = gpus_on(hunt, position, *freed);
	uint32_t admitted = node_admits(hunt, position);
	hunt->room += members_with(hunt, admitted, after) - members_with(hunt, admitted, before);
	hunt->free += after;
	hunt->free -= before;
}

void hunt_choose(struct hunt *hunt, struct unit *unit, uint32_t gone)
{
	uint32_t before = min_u32(unit->gone, unit->count), after = min_u32(gone, unit->count);
	add_cost(hunt, unit, unit->gone, false);
	add_cost(hunt, unit, gone, true);
	hunt->gain = hunt->gain - gain_of(hunt, unit, unit->gone) + gain_of(hunt, unit, gone);
	for (uint32_t i = before; i < after; i++)
		count_pod(hunt, hunt->inside[unit->first + i], true);
	for (uint32_t i = after; i < before; i++)
		count_pod(hunt, hunt->inside[unit->first + i], false);
	unit->gone = gone;
}
