/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_domain.h - which NVLink domain of a leaf the next members go to. Private to place_domain.c and place_leaf.c.
 */
#ifndef FROND_CORE_PLACE_DOMAIN_H
#define FROND_CORE_PLACE_DOMAIN_H

#include "core/place_work.h"

struct party;
struct parties {           /* of a leaf that is split */
	struct party *all; /* nodes in no domain that pinned members are on, then the domains; in work->member_list */
	uint32_t count;
	uint32_t first; /* number of the first domain */
};

struct party_nodes { /* which are party_has() of positions first … end - 1 */
	uint32_t first, end;
	uint32_t domain; /* FROND_NONE: those in none that pinned members are on; PARTY_ALL: every node */
};
#define PARTY_ALL (FROND_NONE - 1)

struct parties parties_of(const struct place_work *work, uint32_t item);
/* The party that the next of so many members go to, `bound` nodes being left to open (UINT32_MAX: any number), and never
 * again. False: there is none but nodes that are in no party. */
bool parties_pick(struct place_work *work, struct parties *parties, uint32_t members, uint32_t bound,
		  struct party_nodes *out);

static inline bool party_has(const struct place_work *work, const struct party_nodes *party, uint32_t position)
{
	return party->domain == PARTY_ALL || (work->fabric->domain_of[position] == party->domain &&
					      (party->domain != FROND_NONE || work->pin[position] > 0));
}

#endif
