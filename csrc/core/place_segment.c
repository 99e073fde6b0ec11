/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_segment.c - segments: blocks of consecutive ranks, each inside one domain, a leaf or an NVLink domain (reference 3.1). They
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

/* Until all are counted they stand in member_list, as domain << 32 | members. */
static void owe(struct place_work *work, uint32_t domain, uint32_t members)
{
	work->member_list[work->segments.owed_count++] = (uint64_t)domain << 32 | members;
}

/* The list is sorted by domain, one entry for each. */
static void sort_owed(struct place_work *work)
{
	uint64_t *list = work->member_list;
	uint32_t counted = work->segments.owed_count, domains = 0;
	sort_u64(list, counted);
	for (uint32_t i = 0; i < counted; i++)
		if (domains > 0 && list[domains - 1] >> 32 == list[i] >> 32)
			list[domains - 1] += (uint32_t)list[i];
		else
			list[domains++] = list[i];
	work->segments.owed_count = domains;
	struct pick *owed = owed_of(work);
	for (uint32_t i = 0; i < domains; i++)
		owed[i] = (struct pick){(uint32_t)(list[i] >> 32), (uint32_t)list[i]};
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
	sort_owed(work);
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

/* Index of the first entry of this domain or a later one. */
static uint32_t owed_from(const struct place_work *work, uint32_t domain)
{
	const struct pick *owed = owed_of(work);
	uint32_t low = 0, high = work->segments.owed_count;
	while (low < high) {
		uint32_t middle = (low + high) / 2;
		if (owed[middle].item < domain)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint32_t owed_by(const struct place_work *work, uint32_t domain)
{
	uint32_t at = owed_from(work, domain);
	return at < work->segments.owed_count && owed_of(work)[at].item == domain ? owed_of(work)[at].count : 0;
}

void parts_of(struct place_work *work, uint32_t leaf, bool today, struct parts *parts)
{
	const struct fabric *fabric = work->fabric;
	parts->first = FROND_NONE;
	parts->count = 0;
	parts->lacking = false;
	budget_charge(&work->budget, (uint64_t)STEPS_PART * leaf_nodes(fabric, leaf));
	for (uint32_t at = item_start(work, leaf); at < item_end(work, leaf); at++) {
		uint32_t domain = fabric->domain_of[at];
		if (domain == FROND_NONE)
			continue;
		parts->first = parts->first == FROND_NONE ? domain : parts->first;
		uint32_t part = domain - parts->first; /* domains are numbered by their first nodes */
		if (part >= PARTS) {
			work->budget.spent = true;
			parts->lacking |= today && work->pin[at] > 0 && owed_by(work, domain) > 0;
			continue;
		}
		for (; parts->count <= part; parts->count++) {
			parts->room[parts->count] = parts->nodes[parts->count] = 0;
			parts->rooms[parts->count] = (struct rooms){.spare = 0};
			parts->start[parts->count] = at;
		}
		parts->end[part] = at + 1;
		uint32_t room = today ? place_node_now(work, at) : place_node_cap(work, at);
		struct rooms *rooms = &parts->rooms[part];
		parts->room[part] += room;
		parts->nodes[part] += room > 0;
		if (today && work->pin[at] > 0) {
			rooms->spare += room;
			rooms->used++;
		} else {
			rooms->count[room]++;
		}
	}
	for (uint32_t part = 0; today && work->segments.owed_count > 0 && part < parts->count; part++) {
		uint32_t owed = owed_by(work, parts->first + part);
		parts->lacking |= owed > parts->room[part];
		parts->room[part] -= min_u32(owed, parts->room[part]);
	}
}

/* What one domain needs for so many segments, and the short one. */
struct needs {
	const struct rooms *rooms;
	uint32_t owed, most;
};

static struct needs needs_of(struct place_work *work, const struct parts *parts, uint32_t part, bool today)
{
	return (struct needs){.rooms = &parts->rooms[part],
			      .owed = today ? owed_by(work, parts->first + part) : 0,
			      .most = parts->room[part] / need_of(work, today)->size};
}

static uint16_t needs_nodes(const struct segment_need *need, const struct needs *needs, uint32_t segments, bool tail)
{
	uint32_t members = needs->owed + segments * need->size + (tail ? need->tail : 0);
	return (uint16_t)min_u32(rooms_fewest(needs->rooms, members), NO_NODES);
}

/* One domain more. */
static void fewest_add(struct place_work *work, struct fewest *fewest, const struct segment_need *need,
		       const struct needs *needs)
{
	uint16_t plain[ROW], with[ROW], least[2][ROW + LANES];
	uint32_t row = min_u32(need->whole, ROW - 1);
	uint32_t own = min_u32(needs->most, row), most = min_u32(fewest->most + own, row), steps = 0;
	work->budget.spent |= need->whole > row && fewest->most + needs->most > row; /* more is not looked at */
	for (uint32_t j = 0; j <= own; j++) {
		plain[j] = needs_nodes(need, needs, j, false);
		with[j] = need->tail == 0 ? (uint16_t)NO_NODES : needs_nodes(need, needs, j, true);
		steps += j == 0 || plain[j] != plain[j - 1];
	}
	budget_charge(&work->budget, STEPS_NODE * (own + 1ull) + (most / LANES + 1ull) * steps);
	for (uint32_t w = fewest->most + 1; w < most + 1 + LANES; w++)
		fewest->nodes[0][w] = fewest->nodes[1][w] = NO_NODES;
	for (uint32_t w = 0; w < most + 1 + LANES; w++)
		least[0][w] = least[1][w] = NO_NODES;
	row_add(least[0], fewest->nodes[0], 0, most, plain, 0, own);
	if (need->tail > 0) {
		row_add(least[1], fewest->nodes[1], 0, most, plain, 0, own);
		row_add(least[1], fewest->nodes[0], 0, most, with, 0, own);
	}
	memcpy(fewest->nodes[0], least[0], (most + 1) * sizeof least[0][0]);
	memcpy(fewest->nodes[1], least[1], (most + 1) * sizeof least[1][0]);
	fewest->most = most;
}

static void fewest_none(struct fewest *fewest)
{
	fewest->most = 0;
	fewest->nodes[0][0] = 0;
	fewest->nodes[1][0] = NO_NODES;
}

static void fewest_add_parts(struct place_work *work, const struct parts *parts, uint32_t first, uint32_t end,
			     bool today, struct fewest *fewest)
{
	for (uint32_t part = first; part < end; part++) {
		struct needs needs = needs_of(work, parts, part, today);
		const struct segment_need *need = need_of(work, today);
		bool tail = need->tail > 0 && parts->room[part] >= need->tail;
		if (needs.most > 0 || needs.owed > 0 || tail)
			fewest_add(work, fewest, need, &needs);
	}
}

void fewest_in(struct place_work *work, const struct parts *parts, bool today, struct fewest *fewest)
{
	fewest_none(fewest);
	fewest_add_parts(work, parts, 0, parts->count, today, fewest);
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

/* Where nodes are counted a leaf gives no more than the tables have room for: segments_fill() goes by them. */
static struct segment_hold within_row(struct place_work *work, struct segment_hold holding)
{
	work->budget.spent |= holding.whole >= ROW || holding.with_tail > ROW;
	holding.whole = min_u32(holding.whole, ROW - 1);
	holding.with_tail = min_u32(holding.with_tail, ROW);
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
	if (!work->segments.nvlink)
		return owed_by(work, item);
	if (work->segments.owed_count == 0 || item_pin(work, item) == 0)
		return 0;                                   /* who is owed joins a pinned one */
	uint32_t first = FROND_NONE, last = 0, members = 0; /* the domains of a leaf have consecutive numbers */
	for (uint32_t at = item_start(work, item); at < item_end(work, item); at++)
		if (fabric->domain_of[at] != FROND_NONE) {
			first = min_u32(first, fabric->domain_of[at]);
			last = max_u32(last, fabric->domain_of[at]);
		}
	for (uint32_t i = owed_from(work, first); i < work->segments.owed_count && owed[i].item <= last; i++)
		members += owed[i].count;
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
		struct parts parts;
		parts_of(work, leaf, true, &parts);
		if (parts.lacking)
			return SHORT;
		holding = holding_of_parts(parts.room, parts.count, need);
		if (ask->max_nodes_per_leaf > 0) {
			struct fewest fewest;
			struct rooms rooms = place_rooms_of(work, leaf);
			uint32_t cap = ask->max_nodes_per_leaf;
			fewest_in(work, &parts, true, &fewest);
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
		if (place_shares(work) || ask->max_nodes_per_leaf > 0)
			holding = within_row(work, holding);
	}
	return min_u32(holding.whole, INT16_MAX) | min_u32(holding.with_tail, INT16_MAX) << 16;
}

static uint32_t hold_kept(struct place_work *work, uint32_t item)
{
	if (item >= work->fabric->leaf_count)
		return 0;             /* in no domain */
	if (!work->segments.nvlink) { /* hold[] is of its members */
		budget_charge(&work->budget, STEPS_ITEM);
		return hold_of(work, item);
	}
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
	bool done = false, tried = false;
	if (!work->segments.on || work->segments.today.tail == 0)
		return try(work, context);
	for (uint32_t item = work->scope.lo; item < min_u32(work->scope.hi, work->fabric->leaf_count) && !done;
	     item++) {
		if (!segments_tail_fits(work, item))
			continue;
		if (tried && work->budget.left == 0) { /* each of them is a search */
			work->answer->cut = work->budget.spent = true;
			break;
		}
		work->segments.tail_item = item;
		work->gang.pins++;
		done = try(work, context);
		work->gang.pins--;
		work->segments.tail_item = FROND_NONE;
		tried = true;
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
	struct parts parts;
	parts_of(work, item, true, &parts);
	fewest_in(work, &parts, true, &fewest);
	uint32_t nodes = segments <= fewest.most ? fewest.nodes[item == work->segments.tail_item][segments] : NO_NODES;
	return nodes == NO_NODES ? UINT32_MAX : nodes;
}

struct opening { /* nodes, the roomiest first, after those that the gang uses */
	const struct rooms *rooms;
	uint32_t room, left; /* of the next one, and how many have it */
	uint32_t nodes, held;
};

static struct opening open_none(const struct rooms *rooms)
{
	return (struct opening){
		.rooms = rooms, .room = FROND_GPUS_MAX, .left = rooms->count[FROND_GPUS_MAX], .held = rooms->spare};
}

static bool open_next(struct opening *open)
{
	while (open->left == 0 && open->room > 1)
		open->left = open->rooms->count[--open->room];
	if (open->left == 0)
		return false;
	open->left--;
	open->nodes++;
	open->held += open->room;
	return true;
}

void segments_nodes_upto(struct place_work *work, uint32_t item, uint32_t most, uint64_t *out)
{
	uint32_t size = work->segments.today.size;
	if (!work->segments.nvlink) {
		struct rooms rooms = place_rooms_of(work, item);
		struct opening open = open_none(&rooms);
		uint32_t members = segments_members(work, item, 0);
		for (uint32_t w = 0; w <= most; w++, members += size) {
			while (open.held < members && open_next(&open))
				;
			out[w] = open.held < members ? UINT32_MAX : open.nodes;
		}
		return;
	}
	struct fewest fewest;
	struct parts parts;
	parts_of(work, item, true, &parts);
	fewest_in(work, &parts, true, &fewest);
	for (uint32_t w = 0; w <= most; w++) {
		uint32_t nodes = w <= fewest.most ? fewest.nodes[item == work->segments.tail_item][w] : NO_NODES;
		out[w] = nodes == NO_NODES ? UINT32_MAX : nodes;
	}
}

/* In a leaf that is one domain. */
static uint32_t leaf_upto(struct place_work *work, uint32_t item, uint32_t most, uint64_t *out)
{
	struct rooms rooms = place_rooms_of(work, item);
	struct opening open = open_none(&rooms);
	uint32_t size = work->segments.today.size, fixed = segments_members(work, item, 0), count = 0;
	uint32_t all = rooms.spare;
	for (uint32_t room = 1; room <= FROND_GPUS_MAX; room++)
		all += room * rooms.count[room];
	out[0] = 0;
	if (all < fixed)
		return 1;
	while (open.held < fixed)
		open_next(&open);
	uint32_t last = min_u32(most, (all - fixed) / size);
	while ((out[count] = min_u32(most, (open.held - fixed) / size)) < last) {
		open_next(&open);
		count++;
	}
	return count + 1;
}

/* From the fewest nodes by segments to the most segments by nodes, in place: there are no more numbers of nodes than of
 * segments that matter, but a segment may need several, so that out[] has room for every node of the item. */
uint32_t segments_upto(struct place_work *work, uint32_t item, uint32_t most, uint64_t *out)
{
	if (!work->segments.nvlink)
		return leaf_upto(work, item, most, out);
	struct fewest fewest;
	struct parts parts;
	parts_of(work, item, true, &parts);
	fewest_in(work, &parts, true, &fewest);
	uint32_t base = 0, last = 0;
	for (uint32_t w = 0; w <= most; w++) {
		uint32_t nodes = w <= fewest.most ? fewest.nodes[item == work->segments.tail_item][w] : NO_NODES;
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

struct giving { /* what the domains that have not been given theirs have to take, on so many nodes */
	const struct parts *parts;
	struct gives *gives;
	uint32_t segments, nodes;
	bool tail;
};

/* One domain, with what those before it need. */
static void give_part(struct place_work *work, struct giving *giving, uint32_t part, const struct fewest *before)
{
	const struct segment_need *need = &work->segments.today;
	struct needs needs = needs_of(work, giving->parts, part, true);
	for (uint32_t j = 0; j <= min_u32(giving->segments, needs.most); j++)
		for (uint32_t here = 0; here <= giving->tail; here++) {
			uint32_t own = needs_nodes(need, &needs, j, here), rest = giving->segments - j;
			if (rest > before->most || before->nodes[giving->tail - here][rest] == NO_NODES ||
			    own > giving->nodes || before->nodes[giving->tail - here][rest] != giving->nodes - own)
				continue;
			giving->gives->members[part] += j * need->size + here * need->tail;
			giving->nodes -= own;
			giving->segments -= j;
			giving->tail = giving->tail && !here;
			return;
		}
	assert(false);
}

/* The domains [first, end): the later half, with the table of those before it, then the earlier one. */
static void give_parts(struct place_work *work, struct giving *giving, uint32_t first, uint32_t end,
		       const struct fewest *before)
{
	if (end - first == 1) {
		give_part(work, giving, first, before);
		return;
	}
	uint32_t middle = first + (end - first) / 2;
	struct fewest fewest = *before;
	fewest_add_parts(work, giving->parts, first, middle, true, &fewest);
	give_parts(work, giving, middle, end, &fewest);
	give_parts(work, giving, first, middle, before);
}

/* With the fewest nodes; from the last domain to the first, as little for the later ones as that allows. */
static void give_by_nodes(struct place_work *work, const struct parts *parts, uint32_t segments, bool tail,
			  struct gives *gives)
{
	struct fewest fewest;
	fewest_in(work, parts, true, &fewest);
	struct giving giving = {.parts = parts,
				.gives = gives,
				.segments = segments,
				.nodes = fewest.nodes[tail][segments],
				.tail = tail};
	assert(giving.nodes != NO_NODES);
	fewest_none(&fewest);
	if (parts->count > 0)
		give_parts(work, &giving, 0, parts->count, &fewest);
}

void segments_fill(struct place_work *work, uint32_t item, uint32_t segments)
{
	struct parts parts;
	struct gives gives;
	bool counted = place_shares(work) || work->ask->max_nodes_per_leaf > 0, tail = item == work->segments.tail_item;
	parts_of(work, item, true, &parts);
	memset(gives.members, 0, parts.count * sizeof *gives.members);
	for (uint32_t part = 0; work->segments.owed_count > 0 && part < parts.count; part++)
		gives.members[part] = owed_by(work, parts.first + part);
	if (counted)
		give_by_nodes(work, &parts, segments, tail, &gives);
	else
		give_by_room(&parts, &work->segments.today, segments, tail, &gives);
	for (uint32_t part = 0; part < parts.count; part++) {
		if (gives.members[part] == 0)
			continue;
		uint32_t bound = counted ? rooms_fewest(&parts.rooms[part], gives.members[part]) : UINT32_MAX;
		work->scope.domain = parts.first + part;
		place_fill_members(work, parts.start[part], parts.end[part], &parts.rooms[part], gives.members[part],
				   bound);
		work->scope.domain = FROND_NONE;
	}
}

/* ---- ranks -------------------------------------------------------------------------------------------------------------------- */

/* Where a pinned member of the segment is that begins with member i; FROND_NONE: all of it is missing. */
static uint32_t pinned_at(const struct place_work *work, struct segment_walk walk, uint32_t i)
{
	for (uint32_t segment = walk.segment; i != FROND_NONE && walk.segment == segment; i = segment_next(&walk)) {
		uint32_t slot = work->ask->members[i].pinned_slot;
		if (slot != FROND_NONE)
			return work->fabric->position[slot];
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

/* The first node of a domain in its item. */
static uint32_t domain_start(const struct place_work *work, uint32_t item, uint32_t domain)
{
	uint32_t at = item_start(work, item);
	while (segments_domain(work, at) != domain)
		at++;
	return at;
}

struct free_segments {               /* the domain in hand, and whole segments of it that have no ranks yet */
	uint32_t pick;               /* the next */
	uint32_t first, count, next; /* domains of the one in hand: first … first + count - 1; the next of them */
	uint32_t members[PARTS];     /* of each, beyond what it owes */
	uint32_t starts[PARTS];      /* its first node */
	uint32_t domain, start, left;
	uint32_t tail, tail_start; /* domain of the short one; FROND_NONE: not met yet */
};

/* Counts the domains of the next pick. Those behind the last that is looked at were given nobody. */
static bool next_pick(const struct place_work *work, struct free_segments *free)
{
	if (free->pick == work->candidates.best.picks)
		return false;
	uint32_t item = work->candidates.picks[free->pick++].item;
	free->count = free->next = 0;
	free->first = FROND_NONE;
	for (uint32_t at = item_start(work, item); at < item_end(work, item); at++) {
		uint32_t domain = segments_domain(work, at);
		if (domain == FROND_NONE)
			continue;
		free->first = free->first == FROND_NONE ? domain : free->first;
		uint32_t part = domain - free->first; /* domains are numbered by their first nodes */
		if (part >= PARTS)
			continue;
		for (; free->count <= part; free->count++) {
			free->members[free->count] = 0;
			free->starts[free->count] = at;
		}
		free->members[part] += work->take[at];
	}
	for (uint32_t part = 0; work->segments.owed_count > 0 && part < free->count; part++)
		free->members[part] -= owed_by(work, free->first + part);
	return true;
}

/* The next domain in fabric order that takes members beyond what it owes. */
static bool next_domain(const struct place_work *work, struct free_segments *free)
{
	const struct segment_need *need = &work->segments.today;
	for (;;) {
		while (free->next < free->count && free->members[free->next] == 0)
			free->next++;
		if (free->next < free->count)
			break;
		if (!next_pick(work, free))
			return false;
	}
	uint32_t members = free->members[free->next];
	free->domain = free->first + free->next;
	free->start = free->starts[free->next++];
	free->left = members / need->size;
	if (members % need->size != 0) {
		free->tail = free->domain;
		free->tail_start = free->start;
	}
	return true;
}

/* Where the segment that begins with member i goes: to its pinned ones, or to the next domain; the short one where it is. */
static struct handing hand_segment(const struct place_work *work, struct segment_walk walk, uint32_t i,
				   const struct handing *before, struct free_segments *free)
{
	uint32_t pinned = pinned_at(work, walk, i);
	struct handing hand = {.domain = FROND_NONE};
	if (pinned != FROND_NONE) {
		hand.domain = segments_domain(work, pinned);
		if (hand.domain != before->domain)
			hand.at = domain_start(work, item_of(work, pinned), hand.domain);
	} else if (is_whole(work, walk, i)) {
		while (free->left == 0)
			if (!next_domain(work, free))
				assert(false);
		free->left--;
		hand = (struct handing){free->domain, free->start};
	} else {
		while (free->tail == FROND_NONE && next_domain(work, free))
			;
		hand = (struct handing){free->tail, free->tail_start};
	}
	return hand.domain == before->domain ? *before : hand;
}

void segments_hand_out(struct place_work *work)
{
	const struct ask *ask = work->ask;
	struct segment_walk walk = work->segments.walk;
	struct free_segments free = {.pick = 0, .tail = FROND_NONE};
	struct handing hand = {.domain = FROND_NONE};
	uint32_t segment = FROND_NONE;
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
			hand = hand_segment(work, walk, i, &hand, &free);
		}
		if (ask->members[i].pinned_slot != FROND_NONE)
			continue;
		assert(hand.domain != FROND_NONE);
		while (segments_domain(work, hand.at) != hand.domain || work->taken[hand.at] == work->take[hand.at])
			hand.at++;
		work->taken[hand.at]++;
		work->member_pos[i] = hand.at;
	}
}
