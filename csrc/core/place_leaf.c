/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_leaf.c - what a node and a leaf can take, which nodes of a leaf take it, and what that costs and brings
 * (steps 4 to 6 of reference 3.4). A leaf whose nodes are alike answers from its sums; any other by looking at its
 * nodes.
 */
#include "core/place_domain.h"

#define PARTIES_LOOKS (1u << 20) /* at nodes at most to fill a leaf, however many NVLink domains it has */

#define TERM_ONE 10000u /* a term of the weighted score, as an integer */

/* ---- nodes --------------------------------------------------------------------------------------------------------- */

static struct gpu_wish wish_on(const struct place_work *work, uint32_t slot)
{
	struct gpu_wish wish = work->ask->gpu;
	for (uint32_t i = 0; i < work->ask->named_count; i++)
		if (work->ask->named[i].slot == slot)
			wish.prefer |= work->ask->named[i].mask;
	return wish;
}

/* Where what was asked for in this plan, or one before it that wished the same, is kept; a new one takes the place of another,
 * and the caller sets its set. */
static struct choice *choice_of(const struct place_work *work, struct choice asked, bool *known)
{
	uint32_t key = (asked.free | (uint32_t)asked.held << 16) * 0x9e3779b1u;
	uint32_t hash = (key ^ ((uint32_t)asked.topology << 9 | asked.count)) * 0x85ebca6bu;
	struct choice *kept = &work->choices[hash >> (32 - CHOICES)];
	*known = kept->plan == work->choice_plan && kept->topology == asked.topology && kept->free == asked.free &&
		 kept->held == asked.held && kept->count == asked.count && kept->prefer == asked.prefer;
	if (!*known) {
		*kept = asked;
		kept->plan = work->choice_plan;
	}
	return kept;
}

/* The table answers the common question at once; a search for a claim is remembered, because nodes look alike. */
uint32_t place_choose(const struct place_work *work, uint32_t slot, uint32_t free, uint32_t held, uint32_t gpus)
{
	uint32_t topology = work->nodes[slot].topology;
	struct gpu_wish wish = wish_on(work, slot);
	bool plain = wish.policy == GPU_CONTIGUOUS && wish.locality == GPU_ANYWHERE && wish.min_gbps == 0 &&
		     wish.mode == MODE_PREFERRED;
	if (plain)
		return gpuset_choose(work->sets[topology], &wish, free, held, gpus);
	if (wish.policy != GPU_SPREAD)
		held = 0; /* who sits beside them does not matter */
	bool known;
	struct choice *kept = choice_of(work,
					(struct choice){.prefer = (uint16_t)wish.prefer,
							.topology = (uint16_t)topology,
							.free = (uint16_t)free,
							.held = (uint16_t)held,
							.count = (uint16_t)gpus},
					&known);
	if (!known) {
		struct gpuset *sets = work->sets[topology];
		kept->set = (uint16_t)gpuset_choose(sets, &wish, free, held, gpus);
		budget_charge(work->purse, STEPS_NODE + (uint64_t)STEPS_SET * gpuset_compared(sets));
	}
	return kept->set;
}

/* Members that choose GPUs of these one after the other until one finds no set. A claim that is Required never turns a
 * single GPU away. */
static uint32_t fits(const struct place_work *work, uint32_t slot, uint32_t free, uint32_t held, uint32_t count)
{
	uint32_t most = count / work->gang.size, members = 0;
	if (!work->scope.constrained || work->gang.size == 1)
		return most;
	bool known = false, kept = work->ask->named_count == 0;
	struct choice *choice = NULL, asked = {.topology = (uint16_t)work->nodes[slot].topology,
					       .free = (uint16_t)free,
					       .held = work->ask->gpu.policy == GPU_SPREAD ? (uint16_t)held : 0,
					       .most = (uint16_t)most,
					       .count = (uint16_t)(CHOICE_FITS + work->gang.size)};
	if (kept && (choice = choice_of(work, asked, &known), known))
		return choice->set;
	for (; members < most; members++) {
		uint32_t chosen = place_choose(work, slot, free, held, work->gang.size);
		if (chosen == 0)
			break;
		free &= ~chosen;
		held |= chosen;
	}
	if (kept)
		choice_of(work, asked, &known)->set = (uint16_t)members;
	return members;
}

/* The same of what is free on a node, once a plan, and for a pod alone no further than it needs: a node that the budget does not
 * reach takes nobody, whoever asks. */
static uint32_t fits_now(const struct place_work *work, uint32_t position)
{
	uint32_t slot = work->fabric->order[position];
	const struct node *node = &work->nodes[slot];
	uint8_t *now = &work->now[position];
	if (!work->scope.constrained || work->gang.size == 1)
		return node_free_count(node) / work->gang.size;
	if (*now == 0 && work->purse->left == 0) {
		work->answer->cut = work->purse->spent = true;
		*now = 1;
	}
	uint32_t count = work->ask->count == 1 ? work->gang.size : node_free_count(node);
	if (*now == 0)
		*now = (uint8_t)(1 + fits(work, slot, node_free_mask(node), node->held, count));
	return *now - 1u;
}

static uint32_t leaf_gpus(const struct place_work *work, uint32_t position)
{
	uint32_t most = work->ask->max_gpus_per_leaf;
	return most > 0 && work->fabric->leaf_of[position] != FROND_NONE ? most : UINT32_MAX;
}

uint32_t place_node_cap(const struct place_work *work, uint32_t position)
{
	uint32_t slot = work->fabric->order[position];
	const struct node *node = &work->nodes[slot];
	if (node->gpus < work->gang.size || !node_fast(node, work->ask->bandwidth_gbps) ||
	    !place_admits(work, position))
		return 0;
	uint32_t gpus = place_cap_mask(work, node);
	uint32_t members = fits(work, slot, gpus, 0, bits_count(gpus));
	members = min_u32(members, place_room(work, position, false));
	return min_u32(members, leaf_gpus(work, position) / work->gang.size);
}

uint32_t place_node_now(const struct place_work *work, uint32_t position)
{
	const struct ask *ask = work->ask;
	uint32_t slot = work->fabric->order[position];
	const struct node *node = &work->nodes[slot];
	uint32_t free = node_free_count(node), pinned = work->pin[position];
	if (free < work->gang.size || !node_open(node) || !node_fast(node, work->ask->bandwidth_gbps) ||
	    position < work->scope.from || position >= work->scope.end ||
	    (ask->only_slot != FROND_NONE && ask->only_slot != slot) || !place_in_domain(work, position))
		return 0;
	uint32_t members = fits_now(work, position);
	members = min_u32(members, place_room(work, position, true));
	members = min_u32(members, leaf_gpus(work, position) / work->gang.size);
	if (work->scope.one_node)
		return members >= work->gang.missing && pinned == work->gang.pins ? members : 0;
	return min_u32(members, work->scope.per_node > pinned ? work->scope.per_node - pinned : 0);
}

/* ---- items --------------------------------------------------------------------------------------------------------- */

void place_measure(struct place_work *work, uint32_t per_node, bool one_node)
{
	work->scope.per_node = per_node;
	work->scope.one_node = one_node;
	work->scope.measure++;
	work->scope.counted_gpus = work->fabric->gpus_most;
	if (per_node < FROND_GPUS_MAX)
		work->scope.counted_gpus = min_u32(work->scope.counted_gpus, per_node * work->gang.size);
	work->scope.quick = work->scope.counted && work->gang.pins == 0 && work->scope.domain == FROND_NONE &&
			    work->scope.preferred == FROND_NONE && work->ask->bandwidth_gbps == 0 &&
			    !work->segments.on && work->scope.from == 0 && work->scope.end == work->fabric->node_count;
}

/* The item's sums tell all: it is a leaf, wholly in question, and nobody of the gang is there. */
static bool by_sums(const struct place_work *work, uint32_t item)
{
	if (item >= work->fabric->leaf_count || work->leaf_excepted[item] & EXCEPTED_TODAY)
		return false;
	return work->scope.quick ||
	       (work->scope.counted && work->leaf_pin[item] == 0 && work->scope.domain == FROND_NONE &&
		work->scope.preferred == FROND_NONE && work->ask->bandwidth_gbps <= work->fabric->leaf_slowest[item] &&
		item_start(work, item) >= work->scope.from && item_end(work, item) <= work->scope.end);
}

static uint32_t hold_by_nodes(const struct place_work *work, uint32_t leaf)
{
	const struct ask *ask = work->ask;
	uint32_t rooms[FROND_GPUS_MAX + 1] = {0};
	uint32_t sum = 0, pinned_nodes = 0, most = 0;
	for (uint32_t position = item_start(work, leaf); position < item_end(work, leaf); position++) {
		uint32_t room = place_node_now(work, position);
		most = max_u32(most, room);
		if (work->pin[position] > 0) { /* a node that the gang uses already costs no further node */
			pinned_nodes++;
			sum += room;
		} else {
			rooms[room]++;
		}
	}
	uint32_t nodes = UINT32_MAX;
	if (ask->max_nodes_per_leaf > 0)
		nodes = ask->max_nodes_per_leaf > pinned_nodes ? ask->max_nodes_per_leaf - pinned_nodes : 0;
	for (uint32_t room = FROND_GPUS_MAX; room > 0; room--) {
		uint32_t count = min_u32(rooms[room], nodes);
		sum += count * room;
		nodes -= count;
	}
	if (ask->max_gpus_per_leaf > 0) {
		uint32_t in_leaf = ask->max_gpus_per_leaf / work->gang.size, pinned = work->leaf_pin[leaf];
		sum = min_u32(sum, in_leaf > pinned ? in_leaf - pinned : 0);
	}
	if (work->scope.one_node)
		return most > 0 && sum >= work->gang.missing ? work->gang.missing : 0;
	return sum;
}

uint32_t place_hold_members(struct place_work *work, uint32_t item)
{
	if (by_sums(work, item))
		return leaf_hold(work, &work->fabric->leaf[item]);
	if (item >= work->fabric->leaf_count) { /* one node */
		uint32_t room = place_node_now(work, item_start(work, item));
		budget_charge(&work->budget, STEPS_NODE / 2);
		return work->scope.one_node ? min_u32(room, work->gang.missing) : room;
	}
	if (work->stamp[item] != work->scope.measure) {
		work->hold[item] = hold_by_nodes(work, item);
		budget_charge(&work->budget, (uint64_t)STEPS_NODE * leaf_nodes(work->fabric, item));
		work->stamp[item] = work->scope.measure;
	}
	return work->hold[item];
}

uint32_t place_hold(struct place_work *work, uint32_t item)
{
	return work->segments.on ? segments_hold(work, item) : place_hold_members(work, item);
}

uint32_t place_capped(const struct place_work *work, const uint32_t rooms[FROND_GPUS_MAX + 1], bool leaf,
		      uint32_t *nodes)
{
	const struct ask *ask = work->ask;
	uint32_t sum = 0;
	if (leaf && ask->max_nodes_per_leaf > 0)
		*nodes = min_u32(*nodes, ask->max_nodes_per_leaf);
	uint32_t left = *nodes;
	for (uint32_t room = FROND_GPUS_MAX; room > 0; room--) {
		uint32_t count = min_u32(rooms[room], left);
		sum += count * room;
		left -= count;
	}
	if (leaf && ask->max_gpus_per_leaf > 0) {
		uint32_t most = ask->max_gpus_per_leaf / work->gang.size;
		sum = min_u32(sum, most);
		*nodes = min_u32(*nodes, most);
	}
	return sum;
}

uint32_t place_cap_by_nodes(const struct place_work *work, uint32_t item, uint32_t *nodes, uint32_t *node_members)
{
	uint32_t rooms[FROND_GPUS_MAX + 1] = {0};
	*nodes = *node_members = 0;
	budget_charge(work->purse, (uint64_t)STEPS_NODE * (item_end(work, item) - item_start(work, item)));
	if (item >= work->fabric->leaf_count) { /* one node */
		*node_members = place_node_cap(work, item_start(work, item));
		*nodes = *node_members > 0;
		return *node_members;
	}
	for (uint32_t position = item_start(work, item); position < item_end(work, item); position++) {
		uint32_t room = place_node_cap(work, position);
		rooms[room]++;
		*nodes += room > 0;
		*node_members = max_u32(*node_members, room);
	}
	return place_capped(work, rooms, true, nodes);
}

/* ---- which nodes of an item ------------------------------------------------------------------------------------------ */

struct rooms place_rooms_of(const struct place_work *work, uint32_t item)
{
	struct rooms rooms = {.spare = 0};
	for (uint32_t position = item_start(work, item); position < item_end(work, item); position++) {
		uint32_t room = place_node_now(work, position);
		if (work->pin[position] > 0) {
			rooms.spare += room;
			rooms.used++;
		} else {
			rooms.count[room]++;
		}
	}
	return rooms;
}

uint32_t rooms_fewest(const struct rooms *rooms, uint32_t members)
{
	uint32_t nodes = 0, left = members > rooms->spare ? members - rooms->spare : 0;
	for (uint32_t room = FROND_GPUS_MAX; room > 0 && left > 0; room--) {
		uint32_t count = min_u32(rooms->count[room], (left + room - 1) / room);
		nodes += count;
		left -= min_u32(left, count * room);
	}
	return left > 0 ? UINT32_MAX : nodes;
}

uint32_t place_nodes_for(struct place_work *work, uint32_t item, uint32_t members)
{
	if (work->segments.on)
		return segments_nodes_for(work, item, members);
	struct rooms rooms = place_rooms_of(work, item);
	return rooms_fewest(&rooms, members);
}

void place_nodes_upto(struct place_work *work, uint32_t item, uint32_t most, uint64_t *out)
{
	if (work->segments.on) {
		segments_nodes_upto(work, item, most, out);
		return;
	}
	struct rooms rooms = place_rooms_of(work, item);
	for (uint32_t members = 0; members <= most; members++)
		out[members] = rooms_fewest(&rooms, members);
}

uint32_t place_members_upto(struct place_work *work, uint32_t item, uint32_t most, uint64_t *out)
{
	if (work->segments.on)
		return segments_upto(work, item, most, out);
	struct rooms rooms = place_rooms_of(work, item);
	uint32_t nodes = 0;
	out[0] = min_u32(rooms.spare, most);
	for (uint32_t room = FROND_GPUS_MAX; room > 0; room--)
		for (uint32_t i = 0; i < rooms.count[room] && out[nodes] < most; i++, nodes++)
			out[nodes + 1] = min_u32((uint32_t)out[nodes] + room, most);
	return nodes + 1;
}

/* Nodes that the members of an item may open; UINT32_MAX: any number. */
static uint32_t node_bound(const struct place_work *work, uint32_t item, const struct rooms *rooms, uint32_t members)
{
	uint32_t bound = UINT32_MAX, cap = work->ask->max_nodes_per_leaf;
	if (work->scope.one_node)
		return work->gang.pins > 0 ? 0 : 1;
	if (place_shares(work))
		bound = rooms_fewest(rooms, members);
	if (cap > 0 && item < work->fabric->leaf_count)
		bound = min_u32(bound, cap > rooms->used ? cap - rooms->used : 0);
	return bound;
}

/* With `bound` nodes to open, may one with this room be among them, `members` being left? */
static bool affordable(struct rooms rooms, uint32_t bound, uint32_t room, uint32_t members)
{
	if (bound == 0)
		return false;
	rooms.count[room]--;
	rooms.spare += room;
	return rooms_fewest(&rooms, members) <= bound - 1;
}

uint32_t place_gpus(const struct place_work *work, uint32_t position, uint32_t gpus)
{
	uint32_t slot = work->fabric->order[position], taken = work->taken[position];
	const struct node *node = &work->nodes[slot];
	return place_choose(work, slot, node_free_mask(node) & ~taken, node->held | taken, gpus);
}

/* Every pair of its GPUs has the same bandwidth: which set it is does not matter for step 4. */
static bool even(const struct place_work *work, uint32_t position)
{
	const struct node *node = &work->nodes[work->fabric->order[position]];
	return work->gang.size < 2 || gpuset_uniform(work->sets[node->topology]);
}

uint32_t place_bottleneck(const struct place_work *work, uint32_t position)
{
	const struct node *node = &work->nodes[work->fabric->order[position]];
	if (work->gang.size < 2)
		return 0;
	if (even(work, position))
		return gpuset_bottleneck(work->sets[node->topology], bits_first(2));
	return gpuset_bottleneck(work->sets[node->topology], place_gpus(work, position, work->gang.size));
}

void place_empty(struct place_work *work, uint32_t item)
{
	for (uint32_t position = item_start(work, item); position < item_end(work, item); position++)
		work->taken[position] = work->take[position] = 0;
}

/* All nodes of the item are of one kind and model and healthy, with equal links, neither NVLink domains nor fewest nodes
 * are a question: they differ only in how many of their GPUs are free, and the leaf has counted that. */
static bool alike(const struct place_work *work, uint32_t item)
{
	const struct fabric *fabric = work->fabric;
	return by_sums(work, item) && fabric->leaf[item].odd == 0 && fabric->leaf_kind[item] != KIND_NONE &&
	       place_model(work, item) < LEAF_MODELS && !place_shares(work) &&
	       (work->gang.size < 2 || gpuset_uniform(work->sets[fabric->leaf_kind[item] >> 8]));
}

/* The tightest take all they can, in order of position. */
static bool fill_by_sums(struct place_work *work, uint32_t item, uint32_t members)
{
	uint32_t each[FROND_GPUS_MAX + 1], nodes[FROND_GPUS_MAX + 1] = {0}, last = 0, roomiest = 0, count = 0;
	if (!alike(work, item) || work->scope.one_node)
		return false;
	const struct leaf_sum *leaf = &work->fabric->leaf[item];
	for (uint32_t free = work->gang.size, left = members; left > 0; free++) {
		assert(free <= FROND_GPUS_MAX);
		uint32_t have = leaf->at_least[free] - (free < FROND_GPUS_MAX ? leaf->at_least[free + 1] : 0u);
		if (have == 0)
			continue;
		each[free] = min_u32(free / work->gang.size, work->scope.per_node);
		nodes[free] = min_u32(have, (left + each[free] - 1) / each[free]);
		uint32_t placed = min_u32(left, nodes[free] * each[free]);
		left -= placed;
		count += nodes[free];
		roomiest = free;
		last = placed - (nodes[free] - 1) * each[free]; /* for the last of the roomiest */
	}
	for (uint32_t position = item_start(work, item); count > 0; position++) {
		const struct node *node = &work->nodes[work->fabric->order[position]];
		uint32_t free = node_free_count(node);
		if (nodes[free] == 0 || !node_open(node) || place_room(work, position, true) == 0)
			continue;
		work->take[position] = (uint8_t)(free == roomiest && nodes[free] == 1 ? last : each[free]);
		nodes[free]--;
		count--;
	}
	return true;
}

/* The item is one node. */
static void fill_node(struct place_work *work, uint32_t position, uint32_t members)
{
	work->take[position] = (uint8_t)members;
	for (; !even(work, position) && members > 0; members--)
		work->taken[position] = (uint16_t)(work->taken[position] | place_gpus(work, position, work->gang.size));
}

#define TURN_LEFT 8u         /* bits of GPUs left over */
#define TURN_NONE UINT32_MAX /* never again */

/* Where the next member on a node stands: best bottleneck, then fewest GPUs left over; lower comes first. */
static uint32_t turn_of(const struct place_work *work, uint32_t position)
{
	uint32_t free = node_free_count(&work->nodes[work->fabric->order[position]]);
	uint32_t left = free - (work->take[position] + 1u) * work->gang.size;
	return (UINT16_MAX - place_bottleneck(work, position)) << TURN_LEFT | left;
}

struct filling {
	struct rooms rooms;
	uint32_t *turns; /* by node of the item, in member_list: 0: not known; NULL: they are not kept */
	uint32_t bound;  /* nodes that may still be opened; UINT32_MAX: any number */
	uint32_t members;
};

/* Puts the members on a node whose turn it is, and says when it is its turn again; TURN_NONE: never. A node that may not
 * be opened now may not be opened later either: with another one more instead there are more. */
static uint32_t fill_turn(struct place_work *work, struct filling *filling, uint32_t position, uint32_t turn)
{
	uint32_t room = place_node_now(work, position);
	while (filling->members > 0 && work->take[position] < room) {
		bool fresh = work->take[position] == 0 && work->pin[position] == 0;
		uint32_t own = turn_of(work, position);
		if (own > turn)
			return own;
		if (fresh && filling->bound != UINT32_MAX)
			budget_charge(&work->budget, STEPS_NODE);
		if (fresh && filling->bound != UINT32_MAX &&
		    !affordable(filling->rooms, filling->bound, room, filling->members))
			break;
		uint32_t more = 1;
		if (even(work, position))
			more = min_u32(filling->members, room - work->take[position]); /* its turn until it is full */
		else {
			budget_charge(&work->budget,
				      STEPS_TURN); /* its set is looked for here, and again for the gain */
			work->taken[position] =
				(uint16_t)(work->taken[position] | place_gpus(work, position, work->gang.size));
		}
		if (fresh) {
			filling->rooms.count[room]--;
			filling->rooms.spare += room;
			filling->bound -= filling->bound != UINT32_MAX;
		}
		filling->rooms.spare -= more;
		work->take[position] = (uint8_t)(work->take[position] + more);
		filling->members -= more;
	}
	return TURN_NONE;
}

/* One member after the other: best bottleneck, fewest GPUs left over, lowest position (reference 3.4). All nodes whose turn it is
 * are filled in one go over the item: a few goes, because few different links and numbers of GPUs are met. Members that no
 * node of the party takes are left over. */
static void fill_party(struct place_work *work, const struct party_nodes *party, struct filling *filling)
{
	uint32_t nodes = party->end - party->first, *turns = filling->turns;
	budget_charge(&work->budget, (uint64_t)STEPS_TURN * nodes);
	for (uint32_t turn = 0, next; filling->members > 0 && turn != TURN_NONE; turn = next) {
		next = TURN_NONE;
		work->candidates.looks += nodes;
		budget_charge(&work->budget, turns != NULL ? nodes / 2 : (uint64_t)STEPS_TURN * nodes);
		for (uint32_t i = 0; i < nodes; i++) {
			uint32_t own = turns != NULL ? turns[i] : 0;
			if (own <= turn)
				own = party_has(work, party, party->first + i)
					      ? fill_turn(work, filling, party->first + i, turn)
					      : TURN_NONE;
			if (turns != NULL)
				turns[i] = own;
			next = min_u32(own, next);
		}
	}
}

/* Fewest NVLink domains, largest first, the last as tight as possible. */
static void fill_domains(struct place_work *work, uint32_t item, struct filling *filling)
{
	struct party_nodes party;
	struct parties parties = parties_of(work, item);
	while (filling->members > 0 && parties_pick(work, &parties, filling->members, filling->bound, &party)) {
		fill_party(work, &party, filling);
		if (work->candidates.looks > PARTIES_LOOKS) {
			work->budget.spent = true; /* the others go to any node */
			return;
		}
	}
}

static void fill_item(struct place_work *work, uint32_t item, uint32_t members)
{
	if (fill_by_sums(work, item, members))
		return;
	if (item >= work->fabric->leaf_count) {
		fill_node(work, item_start(work, item), members);
		return;
	}
	const struct party_nodes all = {item_start(work, item), item_end(work, item), PARTY_ALL};
	struct filling filling = {.rooms = place_rooms_of(work, item), .members = members};
	filling.bound = node_bound(work, item, &filling.rooms, members);
	work->candidates.looks = 0;
	if (item_split(work, item))
		fill_domains(work, item, &filling);
	uint32_t nodes = all.end - all.first; /* the domains were in the list that the turns are kept in now */
	if (nodes <= FROND_MEMBERS_MAX * sizeof *work->member_list / sizeof *filling.turns)
		filling.turns = memset(work->member_list, 0, nodes * sizeof *filling.turns);
	fill_party(work, &all, &filling);
	assert(filling.members == 0);
}

void place_fill_members(struct place_work *work, uint32_t first, uint32_t end, const struct rooms *rooms,
			uint32_t members, uint32_t bound)
{
	const struct party_nodes all = {first, end, PARTY_ALL};
	struct filling filling = {.rooms = *rooms, .members = members, .bound = bound};
	fill_party(work, &all, &filling);
	assert(filling.members == 0);
}

void place_fill(struct place_work *work, uint32_t item, uint32_t count)
{
	if (work->segments.on && work->segments.nvlink)
		segments_fill(work, item, count);
	else
		fill_item(work, item, item_members(work, item, count));
}

/* ---- what it costs and brings ------------------------------------------------------------------------------------------ */

struct totals {
	uint32_t free, used, total; /* GPUs */
};

static struct totals totals_of(const struct place_work *work, uint32_t item)
{
	if (item < work->fabric->leaf_count) {
		const struct leaf_sum *leaf = &work->fabric->leaf[item];
		return (struct totals){leaf->free, leaf->used, leaf->total};
	}
	const struct node *node = &work->nodes[work->fabric->order[item_start(work, item)]];
	return (struct totals){node_free_count(node), node_used_count(node), node->gpus};
}

/* The weighted score of a leaf before placement (reference 3.4): terms in ten-thousandths, weights in thousandths.
 * Terms for which there is no data count 0, unknown history 1. */
static uint64_t compute_score(const struct place_work *work, uint32_t free, uint32_t used, uint32_t total,
			      uint32_t gpus)
{
	const uint32_t *weight = work->ask->weight;
	uint64_t available = (uint64_t)TERM_ONE * free / total;
	uint64_t terms[SCORE_TERMS] = {0};
	terms[SCORE_RESOURCE_AVAILABILITY] = available;
	terms[SCORE_TOPOLOGY_ALIGNMENT] = (uint64_t)TERM_ONE * gpus / free;
	terms[SCORE_DOMAIN_UTILIZATION] =
		work->ask->strategy == STRATEGY_DISTRIBUTED ? available : (uint64_t)TERM_ONE * used / total;
	terms[SCORE_HISTORICAL_PERFORMANCE] = TERM_ONE;
	uint64_t sum = 0, weights = 0;
	for (uint32_t i = 0; i < SCORE_TERMS; i++) {
		sum += weight[i] * terms[i];
		weights += weight[i];
	}
	return weights == 0 ? 0 : sum / weights;
}

uint64_t place_score(struct place_work *work, uint32_t free, uint32_t used, uint32_t total, uint32_t gpus)
{
	uint64_t value = compute_score(work, free, used, total, gpus);
	work->scores[free % SCORES] = (struct score){
		.plan = work->plan, .free = free, .used = used, .total = total, .gpus = gpus, .value = (uint32_t)value};
	return value;
}

void place_leaf_gain(struct place_work *work, uint32_t item, uint32_t members, uint32_t gpus, struct gain *gain)
{
	struct totals totals = totals_of(work, item);
	assert(gpus > 0 && gpus <= totals.free);
	gain->score += members * (uint32_t)place_leaf_score(work, totals.free, totals.used, totals.total, gpus);
	gain->broken_leaves += totals.used == 0 && gpus < totals.free;
	gain->opened_leaves += totals.used == 0;
	gain->left += totals.free - gpus;
	gain->free += totals.free;
	gain->models |= work->gang.models;
}

void place_node_gain(const struct node *node, uint32_t gpus, struct gain *gain)
{
	gain->broken_nodes += gpus > 0 && node_whole(node) && gpus < node_free_count(node);
}

void place_link(const struct place_work *work, uint32_t slot, uint32_t set, uint32_t members, struct gain *gain)
{
	if (bits_count(set) < 2)
		return;
	uint32_t link = gpuset_bottleneck(work->sets[work->nodes[slot].topology], set);
	gain->worst = (uint16_t)min_u32(gain->worst, link);
	gain->links += link * members;
}

/* The nodes that fill() takes are those with the fewest free GPUs, each to its limit. */
static bool gain_by_sums(struct place_work *work, uint32_t item, uint32_t members, struct gain *gain)
{
	const struct fabric *fabric = work->fabric;
	if (!alike(work, item))
		return false;
	struct gpuset *set = work->sets[fabric->leaf_kind[item] >> 8];
	const struct leaf_sum *leaf = &fabric->leaf[item];
	uint32_t whole = fabric->leaf_kind[item] & UINT8_MAX, left = members;
	uint32_t free = work->scope.one_node ? members * work->gang.size : work->gang.size;
	for (; left > 0; free++) {
		assert(free <= whole);
		uint32_t nodes = leaf->at_least[free] - (free < FROND_GPUS_MAX ? leaf->at_least[free + 1] : 0u);
		uint32_t each = work->scope.one_node ? members : min_u32(free / work->gang.size, work->scope.per_node);
		if (nodes == 0)
			continue;
		uint32_t opened = min_u32(nodes, (left + each - 1) / each), placed = min_u32(left, opened * each);
		if (free == whole) { /* nodes that nobody used: those left with a free GPU are broken */
			uint32_t last = placed - (opened - 1) * each;
			gain->broken_nodes += each * work->gang.size < whole ? opened : last < each;
		}
		left -= placed;
		if (work->scope.one_node)
			break;
	}
	if (work->gang.size > 1) {
		uint32_t link = gpuset_bottleneck(set, bits_first(2));
		gain->worst = (uint16_t)min_u32(gain->worst, link);
		gain->links += link * members;
	}
	gain->models |= 1ull << (fabric->leaf_model[item] & (LEAF_MODELS - 1));
	gain->domains = (uint16_t)(gain->domains + (fabric->domain_count > 0));
	place_leaf_gain(work, item, members, members * work->gang.size, gain);
	return true;
}

void place_gain(struct place_work *work, uint32_t item, uint32_t count, struct gain *gain)
{
	uint32_t members = item_members(work, item, count);
	if (members == 0 || gain_by_sums(work, item, members, gain))
		return;
	place_fill(work, item, count);
	for (uint32_t position = item_start(work, item); position < item_end(work, item); position++) {
		uint32_t take = work->take[position], slot = work->fabric->order[position];
		if (take == 0)
			continue;
		place_node_gain(&work->nodes[slot], take * work->gang.size, gain);
		gain->models |= 1ull << work->nodes[slot].model;
		if (even(work, position)) {
			if (work->gang.size > 1)
				place_link(work, slot, bits_first(2), take, gain);
			continue;
		}
		work->taken[position] = 0;
		for (uint32_t i = 0; i < take; i++) {
			uint32_t set = place_gpus(work, position, work->gang.size);
			place_link(work, slot, set, 1, gain);
			work->taken[position] = (uint16_t)(work->taken[position] | set);
		}
	}
	gain->domains = (uint16_t)(gain->domains + place_domains(work, item));
	place_leaf_gain(work, item, members, members * work->gang.size, gain);
	place_empty(work, item);
}

uint64_t place_gain_kept(struct place_work *work, uint32_t item, uint32_t count, struct gain *gain)
{
	uint32_t members = item_members(work, item, count);
	struct gained *kept = &work->candidates.gains[(item * 7 + members) % GAINS];
	const struct gain *more = &kept->gain;
	uint64_t steps = STEPS_GAIN;
	if (kept->measure != work->scope.measure || kept->item != item || kept->count != members) {
		*kept = (struct gained){
			.measure = work->scope.measure, .item = item, .count = members, .gain = GAIN_NONE};
		place_gain(work, item, count, &kept->gain);
		if (!alike(work, item))
			steps += (uint64_t)STEPS_FILL * (item_end(work, item) - item_start(work, item));
		if (item_split(work, item))
			steps += STEPS_LOOK * work->candidates.looks;
	}
	gain->models |= more->models;
	gain->domains = (uint16_t)(gain->domains + more->domains);
	gain->worst = (uint16_t)min_u32(gain->worst, more->worst);
	gain->broken_leaves += more->broken_leaves;
	gain->broken_nodes += more->broken_nodes;
	gain->opened_leaves += more->opened_leaves;
	gain->links += more->links;
	gain->score += more->score;
	gain->left += more->left;
	gain->free += more->free;
	return steps;
}

static int order_u64(uint64_t a, uint64_t b) /* lower first */
{
	return a < b ? -1 : a > b;
}

/* Step 4. */
static int compare_links(const struct gain *a, const struct gain *b)
{
	int order = 0;
	if (a->models != b->models) /* they seldom differ, and counting them takes longer than all the rest */
		order = order_u64(models_count(a->models), models_count(b->models));
	if (order == 0 && (order = order_u64(a->domains, b->domains)) == 0)
		order = order_u64(b->worst, a->worst);
	return order != 0 ? order : order_u64(b->links, a->links);
}

/* Below zero: a is better by steps 4 to 6. lost, expected: what step 5b says of GPUs that are surely and that are probably
 * stranded, 0 where it says nothing. */
static int compare_gains(const struct ask *ask, const struct gain *a, const struct gain *b, int lost, int expected)
{
	bool spreads = ask->strategy == STRATEGY_DISTRIBUTED;
	int order = compare_links(a, b);
	if (order != 0)
		return order;
	int score = order_u64(b->score, a->score);
	if (ask->latency_sensitive)
		return (order = order_u64(b->free, a->free)) != 0 ? order : score;
	if ((order = lost) != 0 ||
	    (!spreads && ((order = order_u64(a->broken_leaves, b->broken_leaves)) != 0 ||
			  (order = order_u64(a->broken_nodes, b->broken_nodes)) != 0)) ||
	    (order = expected) != 0)
		return order;
	if ((order = order_u64(a->opened_leaves, b->opened_leaves)) == 0)
		order = order_u64(a->left, b->left);
	if (ask->strategy == STRATEGY_CONSOLIDATED)
		return order != 0 ? order : score;
	return score != 0 ? score : order;
}

int place_compare(const struct place_work *work, const struct gain *a, const struct gain *b)
{
	return compare_gains(work->ask, a, b, 0, 0);
}

int place_compare_pod(const struct place_work *work, const struct gain *a, struct waste waste_a, const struct gain *b,
		      struct waste waste_b)
{
	return compare_gains(work->ask, a, b, order_u64(waste_a.lost, waste_b.lost),
			     order_u64(waste_a.expected, waste_b.expected));
}

int place_compare_extents(const struct ask *ask, const struct extent *a, const struct extent *b)
{
	int order;
	if (ask->strategy == STRATEGY_DISTRIBUTED) {
		order = order_u64(a->fullest_node, b->fullest_node);
		return order != 0 ? order : order_u64(a->fullest_leaf, b->fullest_leaf);
	}
	if ((order = order_u64(a->spines, b->spines)) == 0 && (order = order_u64(a->leaves, b->leaves)) == 0)
		order = order_u64(a->runs, b->runs);
	if (order == 0 && ask->strategy == STRATEGY_CONSOLIDATED)
		order = order_u64(a->nodes, b->nodes);
	return order;
}

int answer_compare(const struct ask *ask, const struct answer *a, const struct answer *b)
{
	if (a->in_domain != b->in_domain)
		return a->in_domain ? -1 : 1;
	int order = place_compare_extents(ask, &a->extent, &b->extent);
	return order != 0 ? order : compare_gains(ask, &a->gain, &b->gain, 0, 0);
}
