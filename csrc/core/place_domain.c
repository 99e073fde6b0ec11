/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_domain.c - the NVLink domains of a leaf: how many a placement uses, and which one the next members go to (reference 3.4).
 * Only leaves whose nodes are not all in one domain, or all in none, are looked at.
 *
 * A party are the nodes of a leaf that members choose from before any other of it: an NVLink domain by its number, or the
 * nodes in none that pinned members are on. Those which pinned members use already cost nothing and come first. Nodes in no
 * domain that nobody is pinned on are in no party; they come last, and each counts as a domain of its own.
 */
#include "core/place_domain.h"

#define PARTY_ROOM ((1u << 30) - 1)

struct party {
	uint32_t room : 30; /* members that it takes today */
	uint32_t pinned : 1;
	uint32_t done : 1;
	uint32_t first, end; /* positions; it may have gaps */
};
_Static_assert(sizeof(struct party) * (LEAF_DOMAINS + 1ull) <= sizeof(uint64_t) * FROND_MEMBERS_MAX, "in member_list");

/* The party of a node; NULL: it is in none. */
static struct party *party_of(const struct place_work *work, const struct parties *parties, uint32_t position)
{
	uint32_t domain = work->fabric->domain_of[position];
	if (domain != FROND_NONE)
		return &parties->all[1 + domain - parties->first];
	return work->pin[position] > 0 ? &parties->all[0] : NULL;
}

/* Domains are numbered in the order of their first nodes. */
static struct parties begin(const struct place_work *work, uint32_t item)
{
	struct parties parties = {.all = (struct party *)(void *)work->member_list, .count = 1};
	parties.all[0] = (struct party){.room = 0};
	for (uint32_t position = item_start(work, item); position < item_end(work, item); position++) {
		uint32_t domain = work->fabric->domain_of[position];
		if (domain != FROND_NONE && parties.count == 1)
			parties.first = domain;
		if (domain != FROND_NONE && 1 + domain - parties.first == parties.count)
			parties.all[parties.count++] = (struct party){.room = 0};
		struct party *party = party_of(work, &parties, position);
		if (party == NULL)
			continue;
		if (party->end == 0)
			party->first = position;
		party->end = position + 1;
		party->pinned |= work->pin[position] > 0;
	}
	return parties;
}

struct parties parties_of(const struct place_work *work, uint32_t item)
{
	struct parties parties = begin(work, item);
	for (uint32_t position = item_start(work, item); position < item_end(work, item); position++) {
		struct party *party = party_of(work, &parties, position);
		if (party != NULL)
			party->room = (party->room + place_node_now(work, position)) & PARTY_ROOM;
	}
	return parties;
}

/* Does it hold so many members on `bound` further nodes, the roomiest of them? */
static bool holds_within(struct place_work *work, const struct parties *parties, const struct party *party,
			 uint32_t members, uint32_t bound)
{
	uint32_t nodes[FROND_GPUS_MAX + 1] = {0}, held = 0;
	work->candidates.looks += party->end - party->first;
	for (uint32_t position = party->first; position < party->end; position++) {
		if (party_of(work, parties, position) != party)
			continue;
		uint32_t room = place_node_now(work, position);
		if (work->pin[position] > 0)
			held += room;
		else
			nodes[room]++;
	}
	for (uint32_t room = FROND_GPUS_MAX; room > 0 && bound > 0; room--) {
		uint32_t count = min_u32(nodes[room], bound);
		held += count * room;
		bound -= count;
	}
	return held >= members;
}

struct offer { /* of a party */
	const struct party *party;
	bool holds; /* all members that are left */
};

/* Those in use first; one that holds all members, with the least room; else the one with most; then the first. */
static bool better(const struct offer *a, const struct offer *b)
{
	if (b->party == NULL)
		return true;
	if (a->party->pinned != b->party->pinned)
		return a->party->pinned;
	if (a->holds != b->holds)
		return a->holds;
	if (a->party->room != b->party->room)
		return a->holds == (a->party->room < b->party->room);
	return a->party->first < b->party->first;
}

bool parties_pick(struct place_work *work, struct parties *parties, uint32_t members, uint32_t bound,
		  struct party_nodes *out)
{
	struct offer best = {NULL, false};
	work->candidates.looks += parties->count;
	for (uint32_t i = 0; i < parties->count; i++) {
		struct offer offer = {.party = &parties->all[i], .holds = parties->all[i].room >= members};
		if (offer.party->done || offer.party->room == 0)
			continue;
		if (offer.holds && bound != UINT32_MAX)
			offer.holds = holds_within(work, parties, offer.party, members, bound);
		if (better(&offer, &best))
			best = offer;
	}
	if (best.party == NULL)
		return false;
	uint32_t index = (uint32_t)(best.party - parties->all);
	parties->all[index].done = true;
	*out = (struct party_nodes){.first = best.party->first,
				    .end = best.party->end,
				    .domain = index == 0 ? FROND_NONE : parties->first + index - 1};
	return true;
}

uint32_t place_domains(const struct place_work *work, uint32_t item)
{
	const struct fabric *fabric = work->fabric;
	if (fabric->domain_count == 0)
		return 0;
	if (item >= fabric->leaf_count || !(fabric->leaf_model[item] & LEAF_SPLIT))
		return item_pin(work, item) == 0;
	struct parties parties = begin(work, item);
	uint32_t count = 0;
	for (uint32_t position = item_start(work, item); position < item_end(work, item); position++) {
		struct party *party = party_of(work, &parties, position);
		if (work->take[position] == 0 || (party != NULL && (party->pinned || party->done)))
			continue;
		count++;
		if (party != NULL)
			party->done = true;
	}
	return count;
}
