/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_bound.c - members of several sizes, counted: what a node may give them, and which spans cannot hold them. For some
 * weights of the sizes, the most weight that a node with f free GPUs and room for m members can carry, summed over the
 * span, must be no less than the gang's: sums of the leaves before each one tell that at once. Never says that a span does
 * hold the gang.
 */
#include "core/place_work.h"

#define PAIRED 4u /* sizes of which every subset is a weight, as far as there is room */

/* ---- what a node may give ----------------------------------------------------------------------------------------- */

uint32_t pack_gpus(const struct place_work *work, uint32_t position, bool today)
{
	const struct ask *ask = work->ask;
	uint32_t slot = work->fabric->order[position];
	const struct node *node = &work->nodes[slot];
	if (!node_fast(node, ask->bandwidth_gbps) || !place_admits(work, position) ||
	    (work->scope.domain != FROND_NONE && work->scope.domain != work->fabric->domain_of[position]))
		return 0;
	if (!today)
		return bits_count(place_cap_mask(work, node));
	if (!node_open(node) || position < work->scope.from || position >= work->scope.end ||
	    !place_in_domain(work, position) || (ask->only_slot != FROND_NONE && ask->only_slot != slot))
		return 0;
	return node_free_count(node);
}

uint32_t pack_room(const struct place_work *work, uint32_t position, uint32_t kind, bool today)
{
	if (work->limit[position] == 0)
		return UINT32_MAX;
	uint32_t pod_template = work->pack.pod_template[kind];
	if (pod_template == FROND_NONE)
		return place_room(work, position, today);
	return ask_room_of(work->ask, work->fabric->order[position], pod_template, place_when(work, today));
}

uint32_t pack_members(const struct place_work *work, uint32_t position, bool today)
{
	const struct pack *pack = &work->pack;
	uint32_t pinned = today ? work->pin[position] : 0, most = work->scope.per_node, room = 0;
	most = most > pinned ? most - pinned : 0;
	if (work->limit[position] == 0)
		return most;
	for (uint32_t kind = 0; kind < pack->kinds && room < most; kind++)
		room += min_u32(pack_room(work, position, kind, today), pack->count[kind]);
	if (pack->kinds > 0 && pack->pod_template[0] == FROND_NONE)
		room = pack_room(work, position, 0, today);
	return min_u32(most, room);
}

/* ---- the gang by size ---------------------------------------------------------------------------------------------- */

bool pack_counts(const struct place_work *work, uint32_t member, bool today)
{
	const struct frond_member *asked = &work->ask->members[member];
	return asked->gpus > 0 && !(today && asked->pinned_slot != FROND_NONE);
}

/* The kind that a member is of, among those known so far; pack->kinds: a new one. */
static uint32_t kind_of(const struct place_work *work, uint32_t member)
{
	uint32_t kind = 0;
	while (kind < work->pack.kinds && !pack_is(work, member, kind))
		kind++;
	return kind;
}

/* Kinds by size, largest first, then template; `turn`: by the lowest rank that has them. False: there are too many. */
static bool count_kinds(struct place_work *work, bool today, bool templates)
{
	struct pack *pack = &work->pack;
	uint32_t first[FROND_GPUS_MAX];
	pack->today = today;
	pack->kinds = pack->members = 0;
	pack->gpus = 0;
	pack->oversized = false;
	for (uint32_t i = 0; i < work->ask->count; i++) {
		const struct frond_member *member = &work->ask->members[i];
		if (!pack_counts(work, i, today))
			continue;
		pack->members++;
		pack->gpus += member->gpus;
		if (member->gpus > FROND_GPUS_MAX) { /* a pod that was bound by count may say any number */
			pack->oversized = true;
			continue;
		}
		uint32_t at = kind_of(work, i), pod_template = templates ? member->pod_template : FROND_NONE;
		if (at < pack->kinds) {
			pack->count[at]++;
			continue;
		}
		if (pack->kinds == FROND_GPUS_MAX)
			return false;
		for (at = pack->kinds++;
		     at > 0 && (pack->size[at - 1] < member->gpus ||
				(pack->size[at - 1] == member->gpus && pack->pod_template[at - 1] > pod_template));
		     at--) {
			pack->size[at] = pack->size[at - 1];
			pack->pod_template[at] = pack->pod_template[at - 1];
			pack->count[at] = pack->count[at - 1];
			first[at] = first[at - 1];
		}
		pack->size[at] = member->gpus;
		pack->pod_template[at] = pod_template;
		pack->count[at] = 1;
		first[at] = i;
	}
	for (uint32_t kind = 0; kind < pack->kinds; kind++) {
		uint32_t at = kind;
		for (; at > 0 && first[pack->turn[at - 1]] > first[kind]; at--)
			pack->turn[at] = pack->turn[at - 1];
		pack->turn[at] = (uint8_t)kind;
	}
	return true;
}

/* Weights: GPUs; members of a size or larger, all of them among these; members of one size; of two of three sizes. */
static void set_weights(struct pack *pack)
{
	uint32_t bound = 0, all = (1u << min_u32(pack->kinds, PAIRED)) - 1;
	for (uint32_t kind = 0; kind < pack->kinds; kind++)
		pack->weight[0][kind] = (uint8_t)pack->size[kind];
	for (uint32_t prefix = 0; prefix < pack->kinds && bound + 1 < PACK_BOUNDS; prefix++) {
		bound++;
		for (uint32_t kind = 0; kind < pack->kinds; kind++)
			pack->weight[bound][kind] = kind <= prefix;
	}
	for (uint32_t set = 2; set < all && pack->kinds <= PAIRED && bound + 1 < PACK_BOUNDS; set++) {
		if (((set + 1) & set) == 0)
			continue; /* the largest ones: counted */
		bound++;
		for (uint32_t kind = 0; kind < pack->kinds; kind++)
			pack->weight[bound][kind] = set >> kind & 1;
	}
	pack->bounds = bound + 1;
}

static void set_bounds(struct pack *pack)
{
	for (uint32_t bound = 0; bound < PACK_BOUNDS; bound++) {
		bool known = bound < pack->bounds;
		pack->need[bound] = 0;
		for (uint32_t kind = 0; known && kind < pack->kinds; kind++)
			pack->need[bound] += (uint64_t)pack->weight[bound][kind] * pack->count[kind];
		for (uint32_t gpus = 0; gpus <= FROND_GPUS_MAX; gpus++)
			for (uint32_t members = 0; members <= FROND_GPUS_MAX; members++) {
				uint32_t most = 0;
				for (uint32_t kind = 0; known && members > 0 && kind < pack->kinds; kind++)
					if (pack->size[kind] <= gpus)
						most = max_u32(most, pack->weight[bound][kind] +
									     pack->most[gpus - pack->size[kind]]
										       [members - 1][bound]);
				pack->most[gpus][members][bound] = (uint16_t)most;
			}
	}
}

/* ---- bounds -------------------------------------------------------------------------------------------------------- */

static void add_node(const struct place_work *work, uint32_t position, uint32_t *sums)
{
	const struct pack *pack = &work->pack;
	uint32_t gpus = pack_gpus(work, position, pack->today);
	if (gpus == 0)
		return;
	const uint16_t *most = pack->most[gpus][pack_members(work, position, pack->today)];
	for (uint32_t bound = 0; bound < PACK_BOUNDS; bound++)
		sums[bound] += most[bound];
}

/* The leaf's own counts tell what its nodes have: nothing restricts it to some of them. */
static bool counted(const struct place_work *work, uint32_t leaf)
{
	const struct fabric *fabric = work->fabric;
	const struct scope *scope = &work->scope;
	uint32_t by_nodes = work->pack.today ? EXCEPTED_TODAY : EXCEPTED;
	if (work->leaf_excepted[leaf] & by_nodes || scope->domain != FROND_NONE ||
	    work->ask->bandwidth_gbps > fabric->leaf_slowest[leaf])
		return false;
	if (!work->pack.today)
		return fabric->leaf_kind[leaf] != KIND_NONE &&
		       (work->scope.ever || fabric->leaf_lacking[leaf] == 0 || fabric->leaf[leaf].odd == 0);
	return scope->preferred == FROND_NONE && work->ask->only_slot == FROND_NONE && work->leaf_pin[leaf] == 0 &&
	       fabric->leaf_start[leaf] >= scope->from && fabric->leaf_start[leaf + 1] <= scope->end;
}

/* No node of the leaf may be used. */
static bool barred(const struct place_work *work, uint32_t leaf)
{
	const struct fabric *fabric = work->fabric;
	uint32_t first = fabric->leaf_start[leaf], end = fabric->leaf_start[leaf + 1], only = work->ask->only_slot;
	if (!work->pack.today)
		return false;
	return end <= work->scope.from || first >= work->scope.end ||
	       (only != FROND_NONE && (fabric->position[only] < first || fabric->position[only] >= end));
}

static void add_leaf(const struct place_work *work, uint32_t leaf, uint32_t *sums)
{
	const struct fabric *fabric = work->fabric;
	const struct pack *pack = &work->pack;
	const struct leaf_sum *sum = &fabric->leaf[leaf];
	uint32_t members = work->scope.per_node;
	if (barred(work, leaf))
		return;
	if (!counted(work, leaf)) {
		for (uint32_t at = item_start(work, leaf); at < item_end(work, leaf); at++)
			add_node(work, at, sums);
		return;
	}
	if (!pack->today) {
		uint32_t gpus = fabric->leaf_kind[leaf] & UINT8_MAX;
		uint32_t nodes = leaf_nodes(fabric, leaf) - (work->scope.ever ? 0u : fabric->leaf_lacking[leaf]);
		for (uint32_t bound = 0; bound < PACK_BOUNDS; bound++)
			sums[bound] += nodes * pack->most[gpus][members][bound];
		return;
	}
	for (uint32_t gpus = 1; gpus <= fabric->gpus_most && sum->at_least[gpus] > 0; gpus++) {
		uint32_t nodes = sum->at_least[gpus];
		const uint16_t *most = pack->most[gpus][members], *less = pack->most[gpus - 1][members];
		for (uint32_t bound = 0; bound < PACK_BOUNDS; bound++)
			sums[bound] += nodes * (uint32_t)(most[bound] - less[bound]);
	}
}

/* Caps per leaf: its GPUs, of which each weight has a share. */
static void cap_leaf(const struct place_work *work, uint32_t *sums)
{
	const struct pack *pack = &work->pack;
	uint32_t gpus = work->ask->max_gpus_per_leaf, nodes = work->ask->max_nodes_per_leaf;
	uint32_t smallest = pack->size[pack->kinds - 1];
	for (uint32_t bound = 0; bound < PACK_BOUNDS; bound++) {
		if (gpus > 0)
			sums[bound] = min_u32(sums[bound], bound == 0 ? gpus : gpus / smallest);
		if (nodes > 0)
			sums[bound] = min_u32(sums[bound], nodes * pack->most[FROND_GPUS_MAX][FROND_GPUS_MAX][bound]);
	}
}

/* Rows of the sums: as many bounds as the scratch has room for. Returns the steps that it took. */
static uint64_t sum_leaves(struct place_work *work)
{
	struct pack *pack = &work->pack;
	const struct fabric *fabric = work->fabric;
	uint32_t rows = fabric->leaf_count + 1;
	uint64_t *from = work->scratch.cells + FROND_MEMBERS_MAX; /* place_mixed.c sorts members before that */
	uint64_t room = (uint64_t)((uint64_t *)(void *)work->scratch.end - from) * 2;
	pack->rows = min_u32(PACK_BOUNDS, (uint32_t)(room / rows));
	pack->rows = min_u32(pack->rows, pack->bounds);
	pack->sums = (uint32_t *)(void *)from;
	pack->free = from + ((uint64_t)rows * pack->rows + 1) / 2;
	uint32_t all[PACK_BOUNDS] = {0};
	uint32_t loose = work->ask->room_count > 0 ? STEPS_WEIGH : STEPS_NODE + STEPS_ITEM;
	uint64_t steps = (uint64_t)loose * (work->items - fabric->leaf_count);
	for (uint32_t bound = 0; bound < PACK_BOUNDS; bound++)
		pack->leaf_most[bound] = 0;
	for (uint32_t leaf = 0; leaf < fabric->leaf_count; leaf++) {
		uint32_t here[PACK_BOUNDS] = {0};
		memcpy(pack->sums + (size_t)leaf * pack->rows, all, pack->rows * sizeof *all);
		add_leaf(work, leaf, here);
		uint32_t each = work->leaf_excepted[leaf] ? STEPS_WEIGH : STEPS_NODE + STEPS_ITEM;
		steps += counted(work, leaf) || barred(work, leaf) ? STEPS_BOUNDS
								   : (uint64_t)each * leaf_nodes(fabric, leaf);
		if (work->ask->max_gpus_per_leaf > 0 || work->ask->max_nodes_per_leaf > 0)
			cap_leaf(work, here);
		for (uint32_t bound = 0; bound < PACK_BOUNDS; bound++) {
			all[bound] += here[bound];
			pack->leaf_most[bound] = max_u32(pack->leaf_most[bound], here[bound]);
		}
	}
	memcpy(pack->sums + (size_t)fabric->leaf_count * pack->rows, all, pack->rows * sizeof *all);
	for (uint32_t item = fabric->leaf_count; item < work->items; item++) {
		uint32_t here[PACK_BOUNDS] = {0};
		add_node(work, item_start(work, item), here);
		for (uint32_t bound = 0; bound < PACK_BOUNDS; bound++) {
			all[bound] += here[bound];
			pack->leaf_most[bound] = max_u32(pack->leaf_most[bound], here[bound]);
		}
	}
	memcpy(pack->all, all, sizeof all);
	return steps;
}

void pack_begin(struct place_work *work, bool today)
{
	/* With too many templates one number has to do for all of a size: the smallest is the safe one. */
	if (!count_kinds(work, today, work->gang.templated))
		count_kinds(work, today, false);
	if (work->pack.kinds > 0) {
		set_weights(&work->pack);
		set_bounds(&work->pack);
		budget_charge(&work->budget, sum_leaves(work));
	}
}

void pack_measure(struct place_work *work, uint32_t per_node)
{
	work->scope.per_node = per_node;
	if (work->pack.kinds == 0)
		return;
	budget_take(&work->budget, sum_leaves(work)); /* who measures again minds it */
}

bool pack_may(const struct place_work *work, uint32_t lo, uint32_t hi)
{
	const struct pack *pack = &work->pack;
	uint32_t leaves = work->fabric->leaf_count;
	if (pack->oversized)
		return false;
	if (pack->kinds == 0)
		return true;
	if (hi > leaves && lo == 0) { /* everything */
		for (uint32_t bound = 0; bound < pack->bounds; bound++)
			if (pack->all[bound] < pack->need[bound])
				return false;
		return true;
	}
	if (hi > leaves) { /* from somewhere on: only the nodes themselves tell */
		uint32_t sums[PACK_BOUNDS] = {0};
		for (uint32_t item = lo; item < min_u32(hi, leaves); item++)
			add_leaf(work, item, sums);
		for (uint32_t item = max_u32(lo, leaves); item < hi; item++)
			add_node(work, item_start(work, item), sums);
		for (uint32_t bound = 0; bound < pack->bounds; bound++)
			if (sums[bound] < pack->need[bound])
				return false;
		return true;
	}
	const uint32_t *before = pack->sums + (size_t)lo * pack->rows, *behind = pack->sums + (size_t)hi * pack->rows;
	for (uint32_t bound = 0; bound < pack->rows; bound++)
		if (behind[bound] - before[bound] < pack->need[bound])
			return false;
	return true;
}
