/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_domain.c - the NVLink domains of a leaf: how many a placement uses, and which one the next members go to (spec 3.4).
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
	uint16_t nodes, members; /* that it may open, and what they hold: hold_within() */
};
_Static_assert(sizeof(struct party) == sizeof(uint64_t) && LEAF_DOMAINS < FROND_MEMBERS_MAX,
	       "in member_list, and loose");

/* The party of a node; NULL: it is in none. */
static struct party *party_of(const struct place_work *work, const struct parties *parties, uint32_t position)
{
	uint32_t domain = work->fabric->domain_of[position];
	if (domain != FROND_NONE)
		return &parties->all[1 + domain - parties->first];
	return work->pin[position] > 0 ? &parties->all[0] : NULL;
}

/* They are numbered in the order of their first nodes. */
static struct parties begin(const struct place_work *work, uint32_t item)
{
	struct parties parties = {.all = (struct party *)(void *)work->member_list, .count = 1};
	parties.all[0] = (struct party){.room = 0};
	for (uint32_t position = item_start(work, item); position < item_end(work, item); position++) {
		uint32_t domain = work->fabric->domain_of[position];
		if (domain == FROND_NONE)
			continue;
		if (parties.count == 1)
			parties.first = domain;
		if (1 + domain - parties.first == parties.count)
			parties.all[parties.count++] = (struct party){.room = 0};
	}
	return parties;
}

struct parties parties_of(const struct place_work *work, uint32_t item)
{
	struct parties parties = begin(work, item);
	for (uint32_t position = item_start(work, item); position < item_end(work, item); position++) {
		struct party *party = party_of(work, &parties, position);
		if (party == NULL)
			continue;
		uint32_t room = place_node_now(work, position);
		party->room = (party->room + room) & PARTY_ROOM;
		party->pinned |= work->pin[position] > 0;
		parties.rooms |= 1u << room;
	}
	return parties;
}

/* What each party holds on `bound` further nodes, the roomiest of them, up to `members`. */
static void hold_within(struct place_work *work, uint32_t item, struct parties *parties, uint32_t members,
			uint32_t bound)
{
	for (uint32_t i = 0; i < parties->count; i++)
		parties->all[i].nodes = parties->all[i].members = 0;
	for (uint32_t room = FROND_GPUS_MAX; room > 0; room--) {
		if (!(parties->rooms & 1u << room))
			continue;
		work->candidates.looks += item_end(work, item) - item_start(work, item);
		for (uint32_t position = item_start(work, item); position < item_end(work, item); position++) {
			struct party *party = party_of(work, parties, position);
			bool opens = work->pin[position] == 0;
			if (party == NULL || party->done || (opens && party->nodes == bound) ||
			    place_node_now(work, position) != room)
				continue;
			party->nodes = (uint16_t)(party->nodes + opens);
			party->members = (uint16_t)min_u32(party->members + room, members);
		}
	}
}

struct offer { /* of a party */
	const struct party *party;
	bool holds; /* all members that are left */
};

/* Those in use first; one that holds all members, with the least room; else the one with most. */
static bool better(const struct offer *a, const struct offer *b)
{
	if (b->party == NULL)
		return true;
	if (a->party->pinned != b->party->pinned)
		return a->party->pinned;
	if (a->holds != b->holds)
		return a->holds;
	return a->holds ? a->party->room < b->party->room : a->party->room > b->party->room;
}

uint32_t parties_pick(struct place_work *work, uint32_t item, struct parties *parties, uint32_t members, uint32_t bound)
{
	struct offer best = {NULL, false};
	uint32_t next = parties->first; /* a lower domain has been seen */
	bool loose = false;             /* likewise PARTY_PINNED */
	if (bound != UINT32_MAX)
		hold_within(work, item, parties, members, min_u32(bound, members));
	work->candidates.looks += item_end(work, item) - item_start(work, item);
	for (uint32_t position = item_start(work, item); position < item_end(work, item); position++) {
		uint32_t domain = work->fabric->domain_of[position];
		struct offer offer = {.party = party_of(work, parties, position)};
		if (offer.party == NULL || (domain == FROND_NONE ? loose : domain < next))
			continue;
		next = domain == FROND_NONE ? next : domain + 1;
		loose |= domain == FROND_NONE;
		offer.holds = (bound != UINT32_MAX ? offer.party->members : offer.party->room) >= members;
		if (!offer.party->done && offer.party->room > 0 && better(&offer, &best))
			best = offer;
	}
	if (best.party == NULL)
		return PARTY_ALL;
	uint32_t index = (uint32_t)(best.party - parties->all);
	parties->all[index].done = true;
	return index == 0 ? PARTY_PINNED : parties->first + index - 1;
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
		if (party != NULL)
			party->pinned |= work->pin[position] > 0;
	}
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
