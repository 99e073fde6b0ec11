/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_single.c - which leaf a gang takes that goes to one, where the sums of a leaf say all. Most leaves are dealt with
 * by a look at one or a few of their sums: they hold too few, or they are candidates that lose for certain.
 */
#include "core/place_work.h"

void place_see_single(struct place_work *work, uint32_t item)
{
	struct gain gain = GAIN_NONE;
	work->candidates.frames[0] = (struct frame){.at = item, .count = (uint16_t)work->gang.missing};
	work->candidates.depth = 1;
	work->candidates.same = 0;
	place_gain(work, item, work->gang.missing, &gain);
	place_see(work, &gain);
	if (item_split(work, item))
		place_pay(work, STEPS_LOOK * work->candidates.looks);
}

/* ---- the leaf that comes nearest ------------------------------------------------------------------------------------ */

/* A leaf that comes nearer than any before, if it could hold the gang at all: place_near.c need not look again. */
static void remember(struct place_work *work, uint32_t leaf, uint32_t room)
{
	uint32_t nodes, each;
	if (place_cap(work, leaf, &nodes, &each) < work->gang.total)
		return;
	work->candidates.near_leaf = leaf;
	work->candidates.near_room = room;
}

/* Least room that comes nearer. */
static uint32_t nearer(const struct place_work *work)
{
	return work->candidates.near_leaf == FROND_NONE ? 0 : work->candidates.near_room + 1;
}

/* ---- the leaf that wins --------------------------------------------------------------------------------------------- */

/* A leaf of like nodes with equal links: as a candidate it compares with others of its kind and model by their sums.
 * FROND_NONE: it is not. */
static uint32_t even_kind(const struct place_work *work, uint32_t item)
{
	const struct fabric *fabric = work->fabric;
	if (item >= fabric->leaf_count || fabric->leaf[item].odd != 0 || place_model(work, item) >= LEAF_MODELS ||
	    work->leaf_excepted[item] & EXCEPTED_TODAY)
		return FROND_NONE;
	uint32_t kind = fabric->leaf_kind[item];
	bool even = kind != KIND_NONE && (work->gang.size < 2 || gpuset_uniform(work->sets[kind >> 8]));
	return even ? kind : FROND_NONE;
}

/* No leaf of its kind breaks fewer leaves and nodes than the champion (step 5a): further steps decide. */
static bool breaks_least(const struct place_work *work)
{
	const struct gain *gain = &work->candidates.champion.gain;
	return work->ask->strategy == STRATEGY_DISTRIBUTED || (gain->broken_leaves == 0 && gain->broken_nodes == 0);
}

static void forget_champion(struct place_work *work)
{
	work->candidates.champion = (struct champion){.kind = FROND_NONE, .from = 1, .breaks = UINT32_MAX};
}

/* A leaf that brings this much, if others can be compared with it by their sums. */
static void set_champion(struct place_work *work, uint32_t item, const struct gain *gain)
{
	struct champion *champion = &work->candidates.champion;
	forget_champion(work);
	champion->kind = even_kind(work, item);
	if (champion->kind == FROND_NONE)
		return;
	champion->item = item;
	champion->model = place_model(work, item);
	champion->total = work->fabric->leaf[item].total;
	champion->gain = *gain;
	champion->value = gain->score / work->gang.missing;
	if (work->ask->latency_sensitive) { /* fewer free GPUs lose */
		champion->from = 0;
		champion->to = gain->free - 1;
		return;
	}
	if (work->ask->strategy != STRATEGY_DISTRIBUTED && gain->broken_leaves == 0)
		champion->breaks = work->gang.missing * work->gang.size + 1;
	if (work->ask->strategy == STRATEGY_CONSOLIDATED && breaks_least(work) && gain->opened_leaves == 0) {
		champion->from = gain->free + 1; /* more free GPUs lose */
		champion->to = UINT32_MAX;
	}
}

/* As many GPUs as the champion, each of them free or used: the score goes by the free ones alone. */
static inline bool scored_by_free(const struct leaf_sum *leaf, uint32_t total)
{
	return (leaf->free + leaf->used == total) & (leaf->total == total);
}

/* A leaf of the champion's kind whose candidate is sure to lose: it is worse, or behind it in the very same state.
 *
 * With F of T GPUs free a score is a · F + b / F + c, b not under 0, rounded down term by term and once more, which takes
 * less than 2 off. That is convex: where two values of F are too low even with these 2, so is every value between. It
 * decides where the champion breaks least. */
static bool loses(struct place_work *work, uint32_t item)
{
	struct champion *champion = &work->candidates.champion;
	const struct leaf_sum *leaf = &work->fabric->leaf[item], *best = &work->fabric->leaf[champion->item];
	struct gain gain = GAIN_NONE;
	if (item > champion->item && memcmp(leaf, best, sizeof *leaf) == 0)
		return true;
	bool scored = work->ask->strategy != STRATEGY_CONSOLIDATED && !work->ask->latency_sensitive;
	if (scored && breaks_least(work)) {
		uint64_t score = place_leaf_score(work, leaf->free, leaf->used, leaf->total,
						  work->gang.missing * work->gang.size);
		if (score + 2 <= champion->value && scored_by_free(leaf, champion->total)) {
			bool first = champion->from > champion->to;
			champion->from = first ? leaf->free : min_u32(champion->from, leaf->free);
			champion->to = first ? leaf->free : max_u32(champion->to, leaf->free);
		}
		if (score < champion->value)
			return true;
	}
	place_gain(work, item, work->gang.missing, &gain);
	return place_compare(work, &gain, &champion->gain) > 0;
}

/* ---- leaf by leaf --------------------------------------------------------------------------------------------------- */

/* The first of the leaves [item, hi) that has so many nodes with `gpus` free; hi: none. */
static inline uint32_t skip_short(const struct leaf_sum *leaves, uint32_t item, uint32_t hi, uint32_t gpus,
				  uint32_t nodes)
{
	while (item < hi && leaves[item].at_least[gpus] < nodes)
		item++;
	return item;
}

/* The first of the leaves [item, hi) that is not known to lose to the champion; hi: none. So many nodes with `gpus` free
 * hold what is missing. unlike: of fabric; where it is false the compiler leaves models out. */
static inline uint32_t skip_losers(const struct place_work *work, uint32_t item, uint32_t hi, uint32_t gpus,
				   uint32_t nodes, bool unlike)
{
	const struct champion *champion = &work->candidates.champion;
	const struct leaf_sum *leaves = work->fabric->leaf;
	const uint16_t *kinds = work->fabric->leaf_kind;
	uint32_t kind = champion->kind, total = champion->total, breaks = champion->breaks;
	uint32_t from = champion->from, span = champion->to - from; /* free - from wraps around when it is lower */
	if (from > champion->to) {                                  /* no leaf has so many free */
		from = UINT32_MAX;
		span = 0;
	}
	const uint8_t *models = work->fabric->leaf_model;
	uint32_t mask = work->scope.one_node ? ~(uint32_t)LEAF_SPLIT : UINT32_MAX, model = champion->model;
	if (kind == FROND_NONE)
		return item;
	for (; item < hi; item++) {
		const struct leaf_sum *leaf = &leaves[item];
		if (leaf->at_least[gpus] < nodes || leaf->odd != 0 || kinds[item] != kind ||
		    (unlike && (models[item] & mask) != model) || work->leaf_excepted[item] & EXCEPTED_TODAY)
			break;
		/* without a branch: leaves in use and leaves that are not come in any order */
		if (!(((leaf->used == 0) & (leaf->free >= breaks)) |
		      ((leaf->free - from <= span) & scored_by_free(leaf, total))))
			break;
	}
	return item;
}

struct walk {           /* over the leaves of a spine */
	uint32_t gpus;  /* one count of a leaf says of most that they hold too few or enough: nodes with so many free */
	uint32_t each;  /* most members on such a node */
	uint32_t least; /* with fewer such nodes a leaf does not even come nearer */
	uint32_t enough; /* so many hold what is missing */
};

static inline void walk_leaves(struct place_work *work, struct walk *walk, uint32_t lo, uint32_t hi)
{
	const struct fabric *fabric = work->fabric;
	for (uint32_t item = lo; !work->candidates.stop; item++) {
		item = skip_short(fabric->leaf, item, hi, walk->gpus, walk->least);
		uint32_t room = FROND_CANDIDATES - work->candidates.seen; /* candidates that may still be counted */
		uint32_t end = min_u32(hi, item + room);
		uint32_t next = fabric->unlike ? skip_losers(work, item, end, walk->gpus, walk->enough, true)
					       : skip_losers(work, item, end, walk->gpus, walk->enough, false);
		work->candidates.seen += next - item;
		room -= next - item;
		if ((item = next) == hi)
			break;
		const struct leaf_sum *leaf = &fabric->leaf[item];
		uint32_t hold = place_hold(work, item);
		if (hold < work->gang.missing) {
			if (hold >= nearer(work))
				remember(work, item, hold);
			walk->least = (nearer(work) + walk->each - 1) / walk->each;
		} else if (fabric->leaf_kind[item] == work->candidates.champion.kind &&
			   place_model(work, item) == work->candidates.champion.model &&
			   work->candidates.champion.kind != FROND_NONE && leaf->odd == 0 && room > 0 &&
			   !(work->leaf_excepted[item] & EXCEPTED_TODAY) && loses(work, item)) {
			work->candidates.seen++;
		} else {
			place_see_single(work, item);
			if (work->candidates.picks[0].item != work->candidates.champion.item ||
			    work->candidates.champion.kind == FROND_NONE)
				set_champion(work, work->candidates.picks[0].item, &work->candidates.best.gain);
		}
	}
}

/* Would a leaf like the champion, of whose GPUs so many are free and all others used, have a score that is lower for sure? */
static bool scores_low(struct place_work *work, uint32_t free)
{
	const struct champion *champion = &work->candidates.champion;
	return (free >= champion->from && free <= champion->to) ||
	       place_leaf_score(work, free, champion->total - free, champion->total,
				work->gang.missing * work->gang.size) +
			       2 <=
		       champion->value;
}

/* Do leaves like the champion lose with so many of their GPUs free, from `least` to `most`? Either their number says so
 * (struct champion), or nobody uses any of them and each would be broken, or their scores are lower and decide. */
static inline bool lose_between(struct place_work *work, uint32_t least, uint32_t most)
{
	struct champion *champion = &work->candidates.champion;
	if ((least >= champion->from && most <= champion->to) ||
	    (least == champion->total && least >= champion->breaks))
		return true;
	if (work->ask->strategy == STRATEGY_CONSOLIDATED || work->ask->latency_sensitive || !breaks_least(work) ||
	    !scores_low(work, least) || !scores_low(work, most))
		return false;
	bool first = champion->from > champion->to;
	champion->from = first ? least : min_u32(champion->from, least);
	champion->to = first ? most : max_u32(champion->to, most);
	return true;
}

/* Do the sums of their block say of these leaves that they are candidates, all of them, that lose? A leaf with a GPU that is
 * neither free nor used has fewer in use than lose_between() takes for granted: its score is no higher. */
static inline bool block_loses(struct place_work *work, const struct walk *walk, uint32_t lo, uint32_t hi)
{
	const struct fabric *fabric = work->fabric;
	const struct block_sum *block = &fabric->block[lo >> fabric->block_shift];
	const struct champion *champion = &work->candidates.champion;
	if (block->least[walk->gpus - 1] < walk->enough || champion->kind == FROND_NONE || fabric->unlike ||
	    block->kind != champion->kind || block->total != champion->total ||
	    hi - lo > FROND_CANDIDATES - work->candidates.seen ||
	    !lose_between(work, block->free_least, block->free_most))
		return false;
	work->candidates.seen += hi - lo;
	return true;
}

/* The first spine from this one on of which the sums of one block do not say that all its leaves are candidates, and known to
 * lose without a look at scores. Nothing else is to be asked about those before it: they are not hopeless, and where they are
 * untouched, others of their shape have as many candidates. */
static inline uint32_t skip_spines(struct place_work *work, const struct walk *walk, uint32_t spine)
{
	const struct fabric *fabric = work->fabric;
	const struct champion *champion = &work->candidates.champion;
	const uint32_t *starts = fabric->spine_start;
	uint32_t kind = champion->kind, total = champion->total, from = champion->from, to = champion->to;
	uint32_t shift = fabric->block_shift, counted = walk->gpus - 1, enough = walk->enough;
	uint32_t unused = total >= champion->breaks ? total : UINT32_MAX; /* leaves with so many free GPUs lose */
	uint32_t first = starts[spine], lo = first, end = first + (FROND_CANDIDATES - work->candidates.seen);
	if (kind == FROND_NONE || fabric->unlike)
		return spine;
	for (; spine < fabric->spine_count; spine++) {
		uint32_t hi = starts[spine + 1];
		const struct block_sum *block = &fabric->block[lo >> shift];
		if (lo == hi || hi > end || (lo ^ (hi - 1)) >> shift != 0 || work->spine_excepted[spine] ||
		    block->least[counted] < enough || block->kind != kind || block->total != total)
			break;
		if ((block->free_least < from || block->free_most > to) && block->free_least != unused)
			break;
		lo = hi;
	}
	work->candidates.seen += lo - first;
	return spine;
}

/* Exceptions are left out of the counts of leaves and spines, not of blocks. */
static void walk_spine(struct place_work *work, struct walk *walk, uint32_t spine)
{
	const struct fabric *fabric = work->fabric;
	uint32_t hi = fabric->spine_start[spine + 1];
	for (uint32_t lo = fabric->spine_start[spine], end; lo < hi && !work->candidates.stop; lo = end) {
		end = min_u32(block_end(fabric, lo), hi);
		bool exact = !work->spine_excepted[spine];
		if (exact && fabric->block[lo >> fabric->block_shift].most[walk->gpus - 1] < walk->least)
			continue; /* they do not even come nearer */
		if (!exact || !block_loses(work, walk, lo, end))
			walk_leaves(work, walk, lo, end);
	}
}

/* ---- a favourite ---------------------------------------------------------------------------------------------------- */

/* The first leaf of a block with so many free GPUs, if it is a candidate that others can be compared with by their sums, and
 * is sure to have its turn; FROND_NONE otherwise. */
static uint32_t leaf_with(struct place_work *work, uint32_t block, uint32_t free)
{
	const struct fabric *fabric = work->fabric;
	uint32_t leaf = block << fabric->block_shift, end = block_end(fabric, leaf);
	while (leaf < end && fabric->leaf[leaf].free != free)
		leaf++;
	bool sure = leaf < end && leaf < FROND_CANDIDATES - work->candidates.seen &&
		    even_kind(work, leaf) != FROND_NONE && place_hold(work, leaf) >= work->gang.missing;
	return sure ? leaf : FROND_NONE;
}

/* Leaves come in the order of the fabric, and each that is better than all before it costs more than many that lose. So a leaf
 * that is likely to win is found first: one that is in use and has the most free GPUs, or one that has the fewest, because
 * those have the best scores (see loses()). What loses to it may be passed over at once, because it will have its turn. */
static void find_favourite(struct place_work *work, const struct walk *walk)
{
	const struct fabric *fabric = work->fabric;
	uint32_t high = 0, low = UINT32_MAX, blocks[2] = {FROND_NONE, FROND_NONE};
	forget_champion(work);
	if (fabric->leaf_count == 0 || fabric->unlike || fabric->split || walk->gpus > FROND_GPUS_MAX)
		return;
	const struct block_sum *usual = &fabric->block[0];            /* against other kinds a favourite helps little */
	uint32_t total = usual->total + work->ask->latency_sensitive; /* which likes them unused */
	if (usual->kind == FROND_NONE)
		return;
	for (uint32_t at = 0; at <= (fabric->leaf_count - 1) >> fabric->block_shift; at++) {
		const struct block_sum *block = &fabric->block[at];
		if (block->least[walk->gpus - 1] < walk->enough || block->kind != usual->kind ||
		    block->total != usual->total)
			continue;
		if (block->free_most > high && block->free_most < total) {
			high = block->free_most;
			blocks[0] = at;
		}
		if (block->free_least < low) {
			low = block->free_least;
			blocks[1] = at;
		}
	}
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t leaf = blocks[i] != FROND_NONE ? leaf_with(work, blocks[i], i == 0 ? high : low) : FROND_NONE;
		struct gain gain = GAIN_NONE;
		if (leaf == FROND_NONE)
			continue;
		place_gain(work, leaf, work->gang.missing, &gain);
		if (work->candidates.champion.kind == FROND_NONE ||
		    place_compare(work, &gain, &work->candidates.champion.gain) < 0)
			set_champion(work, leaf, &gain);
	}
}

/* Leaves that lose for certain are counted and looked at no further. */
void place_singles(struct place_work *work)
{
	const struct fabric *fabric = work->fabric;
	struct walk walk = {.gpus = work->gang.size,
			    .each = max_u32(work->scope.counted_gpus / work->gang.size, 1),
			    .enough = work->gang.missing};
	if (work->scope.one_node)
		walk = (struct walk){
			.gpus = work->gang.missing * work->gang.size, .each = work->gang.missing, .enough = 1};
	assert(!work->candidates.best.found);
	work->candidates.near_leaf = FROND_NONE;
	work->candidates.near_plan = work->plan;
	work->candidates.near_end = 0;
	find_favourite(work, &walk);
	place_alike_forget(work);
	for (uint32_t spine = 0; spine < fabric->spine_count && !work->candidates.stop; spine++) {
		if ((spine = skip_spines(work, &walk, spine)) == fabric->spine_count)
			break;
		if (place_hopeless(work, spine)) {
			work->candidates.near_end = spine + 1;
			continue;
		}
		uint32_t before = work->candidates.seen;
		if (place_alike_seen(work, spine, true))
			continue;
		walk_spine(work, &walk, spine);
		place_alike_remember(work, spine, work->candidates.seen - before);
	}
	assert(work->candidates.champion.kind == FROND_NONE || work->candidates.best.found);
}
