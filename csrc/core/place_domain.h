/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_domain.h - which NVLink domain of a leaf the next members go to. Private to place_domain.c and place_leaf.c.
 */
#ifndef FROND_CORE_PLACE_DOMAIN_H
#define FROND_CORE_PLACE_DOMAIN_H

#include "core/place_work.h"

#define PARTY_ALL    (FROND_NONE - 1) /* no party: every node of the leaf */
#define PARTY_PINNED FROND_NONE       /* nodes in no domain that pinned members are on */

struct party;
struct parties {           /* of a leaf that is split */
	struct party *all; /* PARTY_PINNED, then the domains; in work->member_list */
	uint32_t count;
	uint32_t first; /* number of the first domain */
	uint32_t rooms; /* mask of the members that nodes take */
};

struct parties parties_of(const struct place_work *work, uint32_t item);
/* The party that the next of so many members go to, `bound` nodes being left to open (UINT32_MAX: any number), and never
 * again. PARTY_ALL: there is none but nodes that are in no party. */
uint32_t parties_pick(struct place_work *work, uint32_t item, struct parties *parties, uint32_t members,
		      uint32_t bound);

static inline bool in_party(const struct place_work *work, uint32_t position, uint32_t party)
{
	return party == PARTY_ALL ||
	       (work->fabric->domain_of[position] == party && (party != PARTY_PINNED || work->pin[position] > 0));
}

#endif
