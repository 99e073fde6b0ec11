/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_order.c - the nodes that one pod could take, in the order in which the planner would take them.
 */
#include "core/place_work.h"

static bool is_outside(const struct place_work *work, uint32_t position) /* of the preferred domain */
{
	const struct ask *ask = work->ask;
	bool inside = position >= ask->domain_first && position < ask->domain_end &&
		      (ask->domain_nvlink == FROND_NONE || work->fabric->domain_of[position] == ask->domain_nvlink);
	return ask->domain_first < ask->domain_end && !inside;
}

/* ---- the offers of an item ------------------------------------------------------------------------------------------ */

/* The nodes of an item that a pod could take are a heap of keys where the item's positions are in scratch.sum, the one that
 * it would take first on top: those of the preferred domain, then best bottleneck, fewest GPUs left over, lowest position,
 * as inside a leaf. Every node is looked at once, however many of an item's nodes come to be ordered.
 *
 * CPU and memory are a matter of the node, not of the leaf. So where the host tells of them every node is a candidate of its
 * own, and steps 5a and 5b stand behind the bottleneck: fewest GPUs lost, then nodes that stay whole, then the least expected
 * waste, which is in scratch.list by position. All are 0 elsewhere. */
#define KEY_OUTSIDE 62u
#define KEY_LINK    38u
#define KEY_LOST    32u
#define KEY_BROKEN  31u
#define KEY_LEFT    16u
_Static_assert(FROND_LEAF_NODES < 1u << KEY_LEFT, "a position in a leaf");
_Static_assert(FROND_GPUS_MAX < 1u << (KEY_BROKEN - KEY_LEFT), "GPUs left over");
_Static_assert(2 * LOST_MAX < 1u << (KEY_LINK - KEY_LOST), "GPUs lost, moved up");
_Static_assert(KEY_LINK + 16 <= KEY_OUTSIDE, "a bottleneck");

static uint64_t *keys_of(const struct place_work *work, uint32_t item)
{
	return work->scratch.sum + item_start(work, item);
}

/* Does the pod mind what CPU and memory strand? */
static bool is_thrifty(const struct ask *ask)
{
	return ask->thrift != NULL && !ask->latency_sensitive;
}

static uint64_t key_of(const struct place_work *work, uint32_t item, uint32_t at, uint32_t lost)
{
	const struct node *node = &work->nodes[work->fabric->order[at]];
	uint64_t left = node_free_count(node) - work->gang.size;
	uint64_t broken =
		is_thrifty(work->ask) && work->ask->strategy != STRATEGY_DISTRIBUTED && left > 0 && node_whole(node);
	return (uint64_t)is_outside(work, at) << KEY_OUTSIDE |
	       (uint64_t)(UINT16_MAX - place_bottleneck(work, at)) << KEY_LINK | (uint64_t)lost << KEY_LOST |
	       broken << KEY_BROKEN | left << KEY_LEFT | (at - item_start(work, item));
}

/* table: NULL for a pod that is not thrifty. */
static struct waste waste_at(const struct place_work *work, const struct waste_table *table, uint32_t at)
{
	uint32_t slot = work->fabric->order[at];
	if (table == NULL)
		return (struct waste){0, 0};
	return waste_growth(table, slot, node_free_count(&work->nodes[slot]), work->gang.size);
}

/* waste: expected, of the nodes of the item that the keys are of. */
static bool is_before(const uint32_t *waste, uint64_t a, uint64_t b)
{
	uint32_t waste_a = waste[a & bits_first(KEY_LEFT)], waste_b = waste[b & bits_first(KEY_LEFT)];
	return a >> KEY_BROKEN == b >> KEY_BROKEN && waste_a != waste_b ? waste_a < waste_b : a < b;
}

static void sift_keys(struct place_work *work, uint32_t item, uint32_t root, uint32_t count)
{
	const uint32_t *waste = work->scratch.list + item_start(work, item);
	uint64_t *heap = keys_of(work, item), moved = heap[root];
	for (uint32_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
		if (child + 1 < count && is_before(waste, heap[child + 1], heap[child]))
			child++;
		if (!is_before(waste, heap[child], moved))
			break;
		heap[root] = heap[child];
		root = child;
	}
	heap[root] = moved;
}

/* Marks the nodes of an item that a pod could take, and heaps their keys; returns how many there are. */
static uint32_t gather(struct place_work *work, const struct waste_table *table, uint32_t item, uint16_t *position)
{
	uint64_t *keys = keys_of(work, item);
	uint32_t count = 0;
	for (uint32_t at = item_start(work, item); at < item_end(work, item); at++) {
		if (place_node_now(work, at) == 0)
			continue;
		position[work->fabric->order[at]] = PLACE_ORDERED;
		struct waste waste = waste_at(work, table, at);
		keys[count++] = key_of(work, item, at, waste.lost);
		work->scratch.list[at] = waste.expected;
	}
	for (uint32_t root = count / 2; root > 0; root--)
		sift_keys(work, item, root - 1, count);
	return count;
}

/* The first of the `count` keys of an item that are left, as an offer. In frames: at = item, index = position, least = keys
 * left, count = outside the preferred domain, rest = GPUs lost, cost = expected waste. */
static struct frame offer_of(struct place_work *work, uint32_t item, uint32_t count)
{
	uint64_t key = keys_of(work, item)[0];
	uint32_t position = item_start(work, item) + (uint32_t)(key & bits_first(KEY_LEFT));
	uint32_t slot = work->fabric->order[position];
	struct frame offer = {.at = item,
			      .index = position,
			      .least = (uint16_t)count,
			      .count = (uint16_t)(key >> KEY_OUTSIDE),
			      .rest = (uint16_t)(key >> KEY_LOST & bits_first(KEY_LINK - KEY_LOST)),
			      .cost = work->scratch.list[position],
			      .before = GAIN_NONE};
	if (work->gang.size > 1)
		place_link(work, slot, place_gpus(work, position, work->gang.size), 1, &offer.before);
	place_node_gain(&work->nodes[slot], work->gang.size, &offer.before);
	place_leaf_gain(work, item, 1, work->gang.size, &offer.before);
	return offer;
}

/* The offer of the same item after this one, in its place. False: there is none. */
static bool next_offer(struct place_work *work, struct frame *offer)
{
	uint64_t *keys = keys_of(work, offer->at);
	uint32_t count = offer->least - 1;
	if (count == 0)
		return false;
	keys[0] = keys[count];
	sift_keys(work, offer->at, 0, count);
	*offer = offer_of(work, offer->at, count);
	return true;
}

/* ---- the best offers of all items ----------------------------------------------------------------------------------- */

/* Below zero: a pod would take a before b. */
static int compare_offers(const struct place_work *work, const struct frame *a, const struct frame *b)
{
	int by_item = (a->at > b->at) - (a->at < b->at);
	if (a->count != b->count)
		return a->count < b->count ? -1 : 1;
	if (a->rest == b->rest && a->cost == b->cost && memcmp(&a->before, &b->before, sizeof a->before) == 0)
		return by_item; /* most nodes are in the state of many others */
	struct waste waste_a = {a->rest, (uint32_t)a->cost}, waste_b = {b->rest, (uint32_t)b->cost};
	int order = place_compare_pod(work, &a->before, waste_a, &b->before, waste_b);
	return order != 0 ? order : by_item;
}

/* A heap in frames[0 … count); on top the last offer, or the first. */
static void sift_offers(struct place_work *work, uint32_t root, uint32_t count, bool first)
{
	struct frame *heap = work->candidates.frames, moved = heap[root];
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
static uint32_t best_items(struct place_work *work, const struct waste_table *table, uint16_t *position)
{
	uint32_t count = 0;
	for (uint32_t item = 0; item < work->items; item++) {
		uint32_t nodes = gather(work, table, item, position);
		if (nodes == 0)
			continue;
		struct frame offer = offer_of(work, item, nodes);
		if (count < PLACE_ORDERED) {
			work->candidates.frames[count++] = offer;
			for (uint32_t root = count / 2; count == PLACE_ORDERED && root > 0; root--)
				sift_offers(work, root - 1, count, false);
		} else if (compare_offers(work, &offer, &work->candidates.frames[0]) < 0) {
			work->candidates.frames[0] = offer;
			sift_offers(work, 0, count, false);
		}
	}
	for (uint32_t root = count / 2; root > 0; root--)
		sift_offers(work, root - 1, count, true);
	return count;
}

static void order_nodes(struct place_work *work, uint16_t *position)
{
	struct waste_table table;
	bool thrifty = is_thrifty(work->ask);
	if (thrifty)
		waste_begin(&table, work->ask->thrift);
	place_measure(work, FROND_GPUS_MAX, true);
	uint32_t count = best_items(work, thrifty ? &table : NULL, position);
	for (uint16_t rank = 0; rank < PLACE_ORDERED && count > 0; rank++) {
		struct frame *first = &work->candidates.frames[0];
		position[work->fabric->order[first->index]] = rank;
		if (!next_offer(work, first))
			*first = work->candidates.frames[--count];
		sift_offers(work, 0, count, true);
	}
}

void place_order(struct place_work *work, const struct ask *ask, struct answer *answer, uint16_t *position,
		 uint32_t slots)
{
	assert(ask->count == 1 && ask->members[0].gpus > 0 && ask->members[0].pinned_slot == FROND_NONE);
	memset(position, 0xff, slots * sizeof *position);
	place_begin(work, ask, answer);
	place_end(work);
	if (answer->plan.outcome == FROND_PLACED)
		order_nodes(work, position);
	place_rooms_clear(work);
}
