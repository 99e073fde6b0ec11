/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_segment.c - segments: blocks of consecutive ranks, each inside one domain, a leaf or an NVLink domain (spec 3.1). They
 * are part of the rule. Here for members of one size; place_fit.c has the others.
 *
 * While segments are on, the planner counts whole segments where it counts members otherwise: what is missing, what an item
 * holds, what a candidate gives to it. Two things are not whole segments. Members of a segment some of whom stay have to join
 * them, so their domain owes them room, and its item is in use anyway. The short last one is tried in every item that could
 * take it, as if it were a pinned member there (segments_each_tail).
 *
 * Inside a leaf with several NVLink domains the largest get most, the last one as tight as possible; where nodes are counted
 * (consolidated, caps) a table over the domains says how few will do.
 */
#include "core/place_segment.h"

#define SHORT UINT32_MAX /* of a leaf: it lacks room for what it owes */

/* ---- who belongs to which ---------------------------------------------------------------------------------------------- */

uint32_t segments_domain(const struct place_work *work, uint32_t position)
{
	return work->segments.nvlink ? work->fabric->domain_of[position] : work->fabric->leaf_of[position];
}

/* Members by domain, behind the picks: a segment that is owed something has a pinned member, which is in no pick. */
static struct pick *owed_of(const struct place_work *work)
{
	return work->candidates.picks + FROND_MEMBERS_MAX + 1 - work->segments.owed_count;
}

/* The list is sorted by domain, one entry for each. */
static void owe(struct place_work *work, uint32_t domain, uint32_t members)
{
	struct pick *owed = owed_of(work);
	uint32_t at = 0, count = work->segments.owed_count;
	while (at < count && owed[at].item < domain)
		at++;
	if (at < count && owed[at].item == domain) {
		owed[at].count += members;
		return;
	}
	memmove(owed - 1, owed, at * sizeof *owed);
	work->segments.owed_count++;
	(owed - 1)[at] = (struct pick){domain, members};
}

/* A segment has been counted. */
static void count_segment(struct place_work *work, uint32_t members, uint32_t pinned, uint32_t domain, bool last)
{
	struct segments *segments = &work->segments;
	bool whole = members == segments->size;
	segments->ragged |= !whole && !last;
	segments->ever.whole += whole;
	segments->ever.tail = whole ? 0 : members;
	if (pinned == 0) {
		segments->today.whole += whole;
		segments->today.tail = whole ? 0 : members;
	} else if (domain == FROND_NONE) {
		segments->apart = true;
	} else if (pinned < members) {
		owe(work, domain, members - pinned);
	}
}

/* A gang that is shorter than a segment is one. */
static struct segment_need whole_at_least(struct segment_need need)
{
	if (need.whole == 0 && need.tail > 0)
		return (struct segment_need){.size = need.tail, .whole = 1};
	return need;
}

static void count_segments(struct place_work *work)
{
	const struct fabric *fabric = work->fabric;
	struct segment_walk walk = work->segments.walk;
	uint32_t members = 0, pinned = 0, domain = FROND_NONE, segment = FROND_NONE;
	for (uint32_t i; (i = segment_next(&walk)) != FROND_NONE; members++) {
		if (walk.segment != segment && segment != FROND_NONE) {
			count_segment(work, members, pinned, domain, false);
			members = pinned = 0;
		}
		segment = walk.segment;
		if (work->ask->members[i].pinned_slot == FROND_NONE)
			continue;
		uint32_t here = segments_domain(work, fabric->position[work->ask->members[i].pinned_slot]);
		domain = pinned == 0 || domain == here ? here : FROND_NONE;
		pinned++;
	}
	count_segment(work, members, pinned, domain, true);
}

/* NVLink domains, if a node that could take a member is in one. */
static bool any_linked(const struct place_work *work)
{
	const struct fabric *fabric = work->fabric;
	for (uint32_t at = 0; fabric->domain_count > 0 && at < fabric->leaf_start[fabric->leaf_count]; at++)
		if (fabric->domain_of[at] != FROND_NONE &&
		    (work->gang.size != 0 ? place_node_cap(work, at) : pack_members(work, at, false)) > 0)
			return true;
	return false;
}

void segments_begin(struct place_work *work)
{
	struct segments *segments = &work->segments;
	const struct segmenting *asked = &work->ask->segments;
	*segments = (struct segments){.tail_item = FROND_NONE,
				      .missing = work->gang.missing,
				      .counted = work->scope.counted,
				      .alike = work->scope.alike};
	if (asked->size == 0 || work->gang.total <= 1 || work->fabric->leaf_count == 0)
		return;
	budget_charge(&work->budget, (uint64_t)STEPS_PART * work->ask->count + 2ull * work->fabric->node_count);
	segments->size = asked->size;
	segments->nvlink = asked->level == SEGMENT_NVLINK || (asked->level == SEGMENT_DEFAULT && any_linked(work));
	segments->walk = ask_segments(work->ask);
	segments->ever.size = segments->today.size = asked->size;
	count_segments(work);
	segments->ever = whole_at_least(segments->ever);
	segments->today = whole_at_least(segments->today);
	segments->ragged |= work->gang.size == 0;
	if (segments->ragged) { /* packed like members of several sizes */
		work->gang.size = 0;
		segments->counted = work->scope.counted = false;
	}
	work->answer->segment_size = asked->size;
	work->answer->segment_nvlink = segments->nvlink;
}

void segments_turn(struct place_work *work, enum segments_turn turn)
{
	const struct segments *segments = &work->segments;
	bool nvlink = turn != SEGMENTS_OFF && segments->nvlink;
	work->segments.on = turn == SEGMENTS_ON;
	work->segments.fit = turn == SEGMENTS_FIT;
	work->scope.linked = nvlink;
	work->scope.leafed = turn != SEGMENTS_OFF && !nvlink;
	work->scope.counted = segments->counted && !nvlink; /* sums and shapes know nothing of NVLink domains */
	work->scope.alike = segments->alike && turn == SEGMENTS_OFF;
	work->gang.missing = segments->on ? segments->today.whole : segments->missing;
	place_measure(work, FROND_GPUS_MAX, false);
}

/* ---- the domains of a leaf --------------------------------------------------------------------------------------------- */

static const struct segment_need *need_of(const struct place_work *work, bool today)
{
	return today ? &work->segments.today : &work->segments.ever;
}

static uint32_t owed_by(const struct place_work *work, uint32_t domain)
{
	const struct pick *owed = owed_of(work);
	for (uint32_t i = 0; i < work->segments.owed_count; i++)
		if (owed[i].item == domain)
			return owed[i].count;
	return 0;
}

struct parts parts_of(struct place_work *work, uint32_t leaf, bool today)
{
	const struct fabric *fabric = work->fabric;
	struct parts parts = {.first = FROND_NONE};
	budget_charge(&work->budget, (uint64_t)STEPS_PART * leaf_nodes(fabric, leaf));
	for (uint32_t at = item_start(work, leaf); at < item_end(work, leaf); at++) {
		uint32_t domain = fabric->domain_of[at];
		if (domain == FROND_NONE)
			continue;
		parts.first = parts.first == FROND_NONE ? domain : parts.first;
		uint32_t part = domain - parts.first; /* domains are numbered by their first nodes */
		if (part >= PARTS) {
			work->budget.spent = true;
			continue;
		}
		for (; parts.count <= part; parts.count++)
			parts.room[parts.count] = parts.nodes[parts.count] = 0;
		uint32_t room = today ? place_node_now(work, at) : place_node_cap(work, at);
		parts.room[part] += room;
		parts.nodes[part] += room > 0;
	}
	for (uint32_t part = 0; today && work->segments.owed_count > 0 && part < parts.count; part++) {
		uint32_t owed = owed_by(work, parts.first + part);
		parts.lacking |= owed > parts.room[part];
		parts.room[part] -= min_u32(owed, parts.room[part]);
	}
	return parts;
}

/* Of one domain; by capacity nobody is there yet. */
static struct rooms rooms_of_part(struct place_work *work, uint32_t leaf, uint32_t domain, bool today)
{
	struct rooms rooms = {.spare = 0};
	for (uint32_t at = item_start(work, leaf); at < item_end(work, leaf); at++) {
		if (work->fabric->domain_of[at] != domain)
			continue;
		uint32_t room = today ? place_node_now(work, at) : place_node_cap(work, at);
		if (today && work->pin[at] > 0) {
			rooms.spare += room;
			rooms.used++;
		} else {
			rooms.count[room]++;
		}
	}
	return rooms;
}

static uint16_t add_nodes(uint16_t a, uint32_t b)
{
	return a == NO_NODES || b >= (uint32_t)NO_NODES - a ? NO_NODES : (uint16_t)(a + b);
}

/* What one domain needs for so many segments, and the short one. */
struct needs {
	struct rooms rooms;
	uint32_t owed, most;
};

static struct needs needs_of(struct place_work *work, uint32_t leaf, const struct parts *parts, uint32_t part,
			     bool today)
{
	const struct segment_need *need = need_of(work, today);
	uint32_t domain = parts->first + part;
	return (struct needs){.rooms = rooms_of_part(work, leaf, domain, today),
			      .owed = today ? owed_by(work, domain) : 0,
			      .most = parts->room[part] / need->size};
}

static uint32_t needs_nodes(const struct segment_need *need, const struct needs *needs, uint32_t segments, bool tail)
{
	return rooms_fewest(&needs->rooms, needs->owed + segments * need->size + (tail ? need->tail : 0));
}

/* One domain more. */
static void fewest_add(struct place_work *work, struct fewest *fewest, const struct segment_need *need,
		       const struct needs *needs)
{
	uint16_t plain[ROW], with[ROW];
	uint32_t own = min_u32(needs->most, ROW - 1), most = min_u32(fewest->most + own, ROW - 1);
	work->budget.spent |= fewest->most + needs->most > ROW - 1; /* more is not looked at */
	budget_charge(&work->budget, (uint64_t)(most + 1) * (own + 1));
	for (uint32_t j = 0; j <= own; j++) {
		plain[j] = add_nodes(0, min_u32(needs_nodes(need, needs, j, false), NO_NODES));
		with[j] =
			need->tail == 0 ? NO_NODES : add_nodes(0, min_u32(needs_nodes(need, needs, j, true), NO_NODES));
	}
	for (uint32_t w = fewest->most + 1; w <= most; w++)
		fewest->nodes[0][w] = fewest->nodes[1][w] = NO_NODES;
	for (uint32_t w = most + 1; w-- > 0;) {
		uint16_t least[2] = {NO_NODES, NO_NODES};
		for (uint32_t j = 0; j <= min_u32(own, w); j++) {
			uint16_t none = add_nodes(fewest->nodes[0][w - j], plain[j]);
			uint16_t before = add_nodes(fewest->nodes[1][w - j], plain[j]);
			uint16_t here = add_nodes(fewest->nodes[0][w - j], with[j]);
			least[0] = none < least[0] ? none : least[0];
			least[1] = before < least[1] ? before : least[1];
			least[1] = here < least[1] ? here : least[1];
		}
		fewest->nodes[0][w] = least[0];
		fewest->nodes[1][w] = least[1];
	}
	fewest->most = most;
}

void fewest_in(struct place_work *work, uint32_t leaf, const struct parts *parts, uint32_t count, bool today,
	       struct fewest *fewest)
{
	const struct segment_need *need = need_of(work, today);
	fewest->most = 0;
	fewest->nodes[0][0] = 0;
	fewest->nodes[1][0] = NO_NODES;
	for (uint32_t part = 0; part < count; part++) {
		struct needs needs = needs_of(work, leaf, parts, part, today);
		budget_charge(&work->budget, (uint64_t)STEPS_PART + leaf_nodes(work->fabric, leaf));
		fewest_add(work, fewest, need, &needs);
	}
}

/* ---- what a leaf holds ----------------------------------------------------------------------------------------------------- */

struct segment_hold holding_under(struct segment_hold holding, const struct segment_need *need, uint32_t members)
{
	holding.whole = min_u32(holding.whole, members / need->size);
	if (members < need->tail)
		holding.with_tail = NO_TAIL;
	else
		holding.with_tail = min_u32(holding.with_tail, (members - need->tail) / need->size + 1);
	return holding;
}

struct segment_hold holding_of_members(uint32_t members, const struct segment_need *need)
{
	struct segment_hold all = {.whole = UINT32_MAX, .with_tail = need->tail > 0 ? UINT32_MAX : NO_TAIL};
	return holding_under(all, need, members);
}

struct segment_hold holding_of_parts(const uint32_t *room, uint32_t count, const struct segment_need *need)
{
	struct segment_hold holding = {.whole = 0, .with_tail = NO_TAIL};
	bool spare = false;
	for (uint32_t part = 0; part < count; part++) {
		holding.whole += room[part] / need->size;
		spare |= room[part] % need->size >= need->tail;
	}
	if (need->tail > 0)
		holding.with_tail = holding.whole + spare;
	return holding;
}

struct segment_hold holding_by_nodes(const struct fewest *fewest, uint32_t nodes)
{
	struct segment_hold holding = {.whole = 0, .with_tail = NO_TAIL};
	for (uint32_t w = 0; w <= fewest->most; w++) {
		if (fewest->nodes[0][w] != NO_NODES && fewest->nodes[0][w] <= nodes)
			holding.whole = w;
		if (fewest->nodes[1][w] != NO_NODES && fewest->nodes[1][w] <= nodes)
			holding.with_tail = w + 1;
	}
	return holding;
}

uint32_t segments_owed(const struct place_work *work, uint32_t item)
{
	const struct pick *owed = owed_of(work);
	const struct fabric *fabric = work->fabric;
	uint32_t members = 0;
	for (uint32_t i = 0; i < work->segments.owed_count; i++) {
		if (!work->segments.nvlink) {
			members += owed[i].item == item ? owed[i].count : 0;
			continue;
		}
		for (uint32_t at = item_start(work, item); at < item_end(work, item); at++)
			if (fabric->domain_of[at] == owed[i].item) {
				members += owed[i].count;
				break;
			}
	}
	return members;
}

/* SHORT: it cannot even take what it owes. */
static uint32_t hold_of(struct place_work *work, uint32_t leaf)
{
	const struct ask *ask = work->ask;
	const struct segment_need *need = &work->segments.today;
	struct segment_hold holding;
	if (!work->segments.nvlink) {
		uint32_t members = place_hold_members(work, leaf), owed = owed_by(work, leaf);
		if (members < owed)
			return SHORT;
		holding = holding_of_members(members - owed, need);
	} else {
		struct parts parts = parts_of(work, leaf, true);
		if (parts.lacking)
			return SHORT;
		holding = holding_of_parts(parts.room, parts.count, need);
		if (ask->max_nodes_per_leaf > 0) {
			struct fewest fewest;
			struct rooms rooms = place_rooms_of(work, leaf);
			uint32_t cap = ask->max_nodes_per_leaf;
			fewest_in(work, leaf, &parts, parts.count, true, &fewest);
			cap = cap > rooms.used ? cap - rooms.used : 0;
			if (fewest.nodes[0][0] > cap)
				return SHORT;
			holding = holding_by_nodes(&fewest, cap);
		}
		if (ask->max_gpus_per_leaf > 0) {
			uint32_t taken = work->leaf_pin[leaf] + segments_owed(work, leaf);
			uint32_t members = ask->max_gpus_per_leaf / work->gang.size;
			if (members < taken)
				return SHORT;
			holding = holding_under(holding, need, members - taken);
		}
	}
	return min_u32(holding.whole, INT16_MAX) | min_u32(holding.with_tail, INT16_MAX) << 16;
}

static uint32_t hold_kept(struct place_work *work, uint32_t item)
{
	if (item >= work->fabric->leaf_count)
		return 0;           /* in no domain */
	if (!work->segments.nvlink) /* hold[] is of its members */
		return hold_of(work, item);
	if (work->stamp[item] != work->scope.measure) {
		work->hold[item] = hold_of(work, item);
		work->stamp[item] = work->scope.measure;
	}
	return work->hold[item];
}

uint32_t segments_hold(struct place_work *work, uint32_t item)
{
	uint32_t hold = hold_kept(work, item);
	if (hold == SHORT)
		return 0;
	if (item != work->segments.tail_item)
		return hold & UINT16_MAX;
	return hold >> 16 == NO_TAIL ? 0 : (hold >> 16) - 1;
}

bool segments_tail_fits(struct place_work *work, uint32_t item)
{
	uint32_t hold = hold_kept(work, item), fixed = segments_members(work, item, 0) + work->segments.today.tail;
	if (work->scope.per_leaf != UINT32_MAX && item < work->fabric->leaf_count &&
	    fixed + work->leaf_pin[item] > work->scope.per_leaf)
		return false;
	return hold != SHORT && hold >> 16 != NO_TAIL;
}

uint32_t segments_members(const struct place_work *work, uint32_t item, uint32_t segments)
{
	const struct segment_need *need = &work->segments.today;
	return segments * need->size + (item == work->segments.tail_item ? need->tail : 0) +
	       (work->segments.owed_count > 0 ? segments_owed(work, item) : 0);
}

uint32_t segments_most(struct place_work *work, uint32_t item)
{
	uint32_t hold = segments_hold(work, item), per_leaf = work->scope.per_leaf;
	if (per_leaf == UINT32_MAX || hold == 0)
		return hold;
	uint32_t fixed = work->leaf_pin[item] + segments_members(work, item, 0);
	return per_leaf > fixed ? min_u32(hold, (per_leaf - fixed) / work->segments.today.size) : 0;
}

bool segments_ready(struct place_work *work)
{
	if (!work->segments.on)
		return true;
	if (work->segments.apart)
		return false;
	for (uint32_t leaf = 0; work->segments.owed_count > 0 && leaf < work->fabric->leaf_count; leaf++)
		if (work->leaf_pin[leaf] > 0 && hold_kept(work, leaf) == SHORT)
			return false;
	return true;
}

bool segments_each_tail(struct place_work *work, bool (*try)(struct place_work *work, void *context), void *context)
{
	bool done = false;
	if (!work->segments.on || work->segments.today.tail == 0)
		return try(work, context);
	for (uint32_t item = work->scope.lo; item < min_u32(work->scope.hi, work->fabric->leaf_count) && !done;
	     item++) {
		if (!segments_tail_fits(work, item))
			continue;
		work->segments.tail_item = item;
		work->gang.pins++;
		done = try(work, context);
		work->gang.pins--;
		work->segments.tail_item = FROND_NONE;
	}
	return done;
}

/* ---- which nodes ------------------------------------------------------------------------------------------------------------ */

uint32_t segments_nodes_for(struct place_work *work, uint32_t item, uint32_t segments)
{
	if (!work->segments.nvlink) {
		struct rooms rooms = place_rooms_of(work, item);
		return rooms_fewest(&rooms, segments_members(work, item, segments));
	}
	struct fewest fewest;
	struct parts parts = parts_of(work, item, true);
	fewest_in(work, item, &parts, parts.count, true, &fewest);
	uint32_t nodes = segments <= fewest.most ? fewest.nodes[item == work->segments.tail_item][segments] : NO_NODES;
	return nodes == NO_NODES ? UINT32_MAX : nodes;
}

void segments_nodes_upto(struct place_work *work, uint32_t item, uint32_t most, uint64_t *out)
{
	if (!work->segments.nvlink) {
		struct rooms rooms = place_rooms_of(work, item);
		for (uint32_t w = 0; w <= most; w++)
			out[w] = rooms_fewest(&rooms, segments_members(work, item, w));
		return;
	}
	struct fewest fewest;
	struct parts parts = parts_of(work, item, true);
	fewest_in(work, item, &parts, parts.count, true, &fewest);
	for (uint32_t w = 0; w <= most; w++) {
		uint32_t nodes = w <= fewest.most ? fewest.nodes[item == work->segments.tail_item][w] : NO_NODES;
		out[w] = nodes == NO_NODES ? UINT32_MAX : nodes;
	}
}

/* From the fewest nodes by segments to the most segments by nodes, in place: there are no more numbers of nodes than of
 * segments that matter, but a segment may need several, so that out[] has room for every node of the item. */
uint32_t segments_upto(struct place_work *work, uint32_t item, uint32_t most, uint64_t *out)
{
	struct rooms rooms = place_rooms_of(work, item);
	struct fewest fewest;
	if (work->segments.nvlink) {
		struct parts parts = parts_of(work, item, true);
		fewest_in(work, item, &parts, parts.count, true, &fewest);
	}
	uint32_t base = 0, last = 0;
	for (uint32_t w = 0; w <= most; w++) {
		uint32_t nodes = !work->segments.nvlink ? rooms_fewest(&rooms, segments_members(work, item, w))
				 : w <= fewest.most     ? fewest.nodes[item == work->segments.tail_item][w]
							: NO_NODES;
		if (nodes >= NO_NODES)
			break;
		base = w == 0 ? nodes : base;
		for (; last + 1 < nodes - base; last++)
			out[last + 1] = out[last];
		last = nodes - base;
		out[last] = w;
	}
	return last + 1;
}

uint32_t segments_base(struct place_work *work)
{
	uint32_t nodes = 0;
	if (!work->segments.on || !place_shares(work))
		return 0;
	for (uint32_t leaf = 0; work->gang.pins > 0 && leaf < work->fabric->leaf_count; leaf++)
		if (item_pin(work, leaf) > 0 && segments_members(work, leaf, 0) > 0)
			nodes += segments_nodes_for(work, leaf, 0);
	return nodes;
}

/* Members for each domain. */
struct gives {
	uint32_t members[PARTS];
};

/* The largest domains first, the last as tight as possible; the short one where the least is left, if possible in one that
 * has others. */
static void give_by_room(struct parts *parts, const struct segment_need *need, uint32_t segments, bool tail,
			 struct gives *gives)
{
	while (segments > 0) {
		uint32_t best = FROND_NONE, most = 0;
		for (uint32_t part = 0; part < parts->count; part++) {
			uint32_t here = parts->room[part] / need->size;
			bool better = most >= segments ? here >= segments && here < most : here > most;
			if (better) {
				best = part;
				most = here;
			}
		}
		assert(best != FROND_NONE);
		uint32_t given = min_u32(most, segments) * need->size;
		gives->members[best] += given;
		parts->room[best] -= given;
		segments -= min_u32(most, segments);
	}
	uint32_t best = FROND_NONE;
	for (uint32_t part = 0; tail && part < parts->count; part++) {
		bool used = gives->members[part] > 0;
		if (parts->room[part] < need->tail)
			continue;
		if (best == FROND_NONE || (used && gives->members[best] == 0) ||
		    (used == (gives->members[best] > 0) && parts->room[part] < parts->room[best]))
			best = part;
	}
	assert(!tail || best != FROND_NONE);
	if (tail)
		gives->members[best] += need->tail;
}

/* With the fewest nodes; from the last domain to the first, as little for the later ones as that allows. */
static void give_by_nodes(struct place_work *work, uint32_t leaf, const struct parts *parts, uint32_t segments,
			  bool tail, struct gives *gives)
{
	const struct segment_need *need = &work->segments.today;
	struct fewest fewest;
	fewest_in(work, leaf, parts, parts->count, true, &fewest);
	uint32_t nodes = fewest.nodes[tail][segments];
	assert(nodes != NO_NODES);
	for (uint32_t part = parts->count; part-- > 0;) {
		struct needs needs = needs_of(work, leaf, parts, part, true);
		bool found = false;
		fewest_in(work, leaf, parts, part, true, &fewest);
		for (uint32_t j = 0; j <= min_u32(segments, needs.most) && !found; j++)
			for (uint32_t here = 0; here <= tail && !found; here++) {
				uint32_t own = needs_nodes(need, &needs, j, here), before = segments - j;
				if (before > fewest.most || fewest.nodes[tail - here][before] == NO_NODES ||
				    own > nodes || fewest.nodes[tail - here][before] != nodes - own)
					continue;
				found = true;
				gives->members[part] += j * need->size + here * need->tail;
				nodes -= own;
				segments -= j;
				tail = tail && !here;
			}
		assert(found);
	}
}

void segments_fill(struct place_work *work, uint32_t item, uint32_t segments)
{
	struct parts parts = parts_of(work, item, true);
	struct gives gives;
	bool counted = place_shares(work) || work->ask->max_nodes_per_leaf > 0, tail = item == work->segments.tail_item;
	memset(gives.members, 0, parts.count * sizeof *gives.members);
	for (uint32_t part = 0; work->segments.owed_count > 0 && part < parts.count; part++)
		gives.members[part] = owed_by(work, parts.first + part);
	if (counted)
		give_by_nodes(work, item, &parts, segments, tail, &gives);
	else
		give_by_room(&parts, &work->segments.today, segments, tail, &gives);
	for (uint32_t part = 0; part < parts.count; part++) {
		if (gives.members[part] == 0)
			continue;
		uint32_t bound = UINT32_MAX;
		if (counted) {
			struct rooms rooms = rooms_of_part(work, item, parts.first + part, true);
			bound = rooms_fewest(&rooms, gives.members[part]);
		}
		work->scope.domain = parts.first + part;
		place_fill_members(work, item, gives.members[part], bound);
		work->scope.domain = FROND_NONE;
	}
}

/* ---- ranks -------------------------------------------------------------------------------------------------------------------- */

/* The domain of a pinned member of the segment that begins with member i; FROND_NONE: all of it is missing. */
static uint32_t pinned_domain(const struct place_work *work, struct segment_walk walk, uint32_t i)
{
	for (uint32_t segment = walk.segment; i != FROND_NONE && walk.segment == segment; i = segment_next(&walk)) {
		uint32_t slot = work->ask->members[i].pinned_slot;
		if (slot != FROND_NONE)
			return segments_domain(work, work->fabric->position[slot]);
	}
	return FROND_NONE;
}

static bool is_whole(const struct place_work *work, struct segment_walk walk, uint32_t i)
{
	uint32_t members = 0;
	for (uint32_t segment = walk.segment; i != FROND_NONE && walk.segment == segment; i = segment_next(&walk))
		members++;
	return members == work->segments.today.size;
}

struct handing { /* nodes of a domain, from the first that may have a place left */
	uint32_t domain, at;
};

static uint32_t domain_start(const struct place_work *work, uint32_t pick, uint32_t domain)
{
	uint32_t item = work->candidates.picks[pick].item, at = item_start(work, item);
	while (at < item_end(work, item) && segments_domain(work, at) != domain)
		at++;
	return at;
}

/* The pick whose item has the domain; they ascend, as domains do. */
static uint32_t pick_of(const struct place_work *work, uint32_t domain)
{
	uint32_t pick = 0;
	while (domain_start(work, pick, domain) == item_end(work, work->candidates.picks[pick].item)) {
		pick++;
		assert(pick < work->candidates.best.picks);
	}
	return pick;
}

static uint32_t taken_of(const struct place_work *work, uint32_t pick, uint32_t domain)
{
	uint32_t item = work->candidates.picks[pick].item, members = 0;
	for (uint32_t at = item_start(work, item); at < item_end(work, item); at++)
		members += segments_domain(work, at) == domain ? work->take[at] : 0;
	return members;
}

struct free_segments { /* the domain in hand, and whole segments of it that have no ranks yet */
	uint32_t pick, domain, left;
	uint32_t tail; /* domain of the short one; FROND_NONE: not met yet */
};

/* The next domain in fabric order that takes members beyond what it owes. */
static bool next_domain(const struct place_work *work, struct free_segments *free)
{
	const struct segment_need *need = &work->segments.today;
	for (; free->pick < work->candidates.best.picks; free->pick++) {
		uint32_t item = work->candidates.picks[free->pick].item;
		uint32_t least = free->domain == FROND_NONE ? 0 : free->domain + 1, next = FROND_NONE;
		for (uint32_t at = item_start(work, item); at < item_end(work, item); at++) {
			uint32_t domain = segments_domain(work, at);
			if (domain != FROND_NONE && domain >= least && work->take[at] > 0)
				next = min_u32(next, domain);
		}
		if (next == FROND_NONE)
			continue;
		uint32_t members = taken_of(work, free->pick, next) - owed_by(work, next);
		free->domain = next;
		free->left = members / need->size;
		if (members % need->size != 0)
			free->tail = next;
		return true;
	}
	return false;
}

void segments_hand_out(struct place_work *work)
{
	const struct ask *ask = work->ask;
	struct segment_walk walk = work->segments.walk;
	struct free_segments free = {.domain = FROND_NONE, .tail = FROND_NONE};
	struct handing hand = {.domain = FROND_NONE};
	uint32_t segment = FROND_NONE, domain = FROND_NONE;
	work->segments.handed = true;
	for (uint32_t i = 0; i < ask->count; i++)
		work->member_pos[i] = FROND_NONE;
	for (uint32_t i = 0; i < work->candidates.best.picks; i++) {
		uint32_t item = work->candidates.picks[i].item;
		for (uint32_t at = item_start(work, item); at < item_end(work, item); at++)
			work->taken[at] = 0; /* from here on: members that have been handed out */
	}
	for (uint32_t i; (i = segment_next(&walk)) != FROND_NONE;) {
		if (walk.segment != segment) {
			segment = walk.segment;
			domain = pinned_domain(work, walk, i);
			bool whole = domain == FROND_NONE && is_whole(work, walk, i);
			while (whole && free.left == 0)
				if (!next_domain(work, &free))
					assert(false);
			if (whole) {
				domain = free.domain;
				free.left--;
			} else if (domain == FROND_NONE) {
				while (free.tail == FROND_NONE && next_domain(work, &free))
					;
				domain = free.tail;
			}
		}
		if (ask->members[i].pinned_slot != FROND_NONE)
			continue;
		assert(domain != FROND_NONE);
		if (hand.domain != domain)
			hand = (struct handing){domain, domain_start(work, pick_of(work, domain), domain)};
		while (segments_domain(work, hand.at) != domain || work->taken[hand.at] == work->take[hand.at])
			hand.at++;
		work->taken[hand.at]++;
		work->member_pos[i] = hand.at;
	}
}
