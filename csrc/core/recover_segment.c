/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recover_segment.c - a repair of a gang that has segments. Who replaces a lost member goes to the domain of its segment; where
 * that has no room, the segment leaves as a whole, or another one does.
 */
#include "core/recover_work.h"

#define DAMAGED 64u /* domains that are counted; a segment in one more moves as a whole */

struct damage { /* to a domain */
	uint32_t domain;
	uint32_t room;   /* for members, at most, that nobody has been promised */
	uint32_t lacks;  /* members that have none */
	uint32_t fewest; /* members of a segment that stay there */
};

struct damages {
	uint32_t count;
	struct damage of[DAMAGED];
};

struct part {                /* a segment */
	uint32_t first, end; /* members, in the roster */
	uint32_t lost, stay; /* and those that move already */
	uint32_t domain;     /* of those that stay; FROND_NONE: several, or none */
};

static uint32_t domain_of(const struct view *view, uint32_t position)
{
	const struct fabric *fabric = view->fabric;
	return view->rule.segment_nvlink ? fabric->domain_of[position] : fabric->leaf_of[position];
}

/* The segment that begins with member *i, which becomes the first of the next one; FROND_NONE: there is none. */
static struct part next_part(const struct view *view, struct segment_walk *walk, uint32_t *i)
{
	struct part part = {.first = *i, .domain = FROND_NONE};
	uint32_t segment = walk->segment;
	for (; *i != FROND_NONE && walk->segment == segment; *i = segment_next(walk)) {
		part.end = *i + 1;
		if (view->work->state[*i] == LOST || view->work->state[*i] == MOVES)
			part.lost++;
		if (view->work->state[*i] != STAYS)
			continue;
		uint32_t here = domain_of(view, position_of_member(view, *i));
		part.domain = part.stay == 0 || part.domain == here ? here : FROND_NONE;
		part.stay++;
	}
	return part;
}

static struct damage *damage_of(const struct view *view, struct damages *damages, uint32_t domain, bool make)
{
	const struct fabric *fabric = view->fabric;
	for (uint32_t i = 0; i < damages->count; i++)
		if (damages->of[i].domain == domain)
			return &damages->of[i];
	if (!make || damages->count == DAMAGED)
		return NULL;
	struct damage *damage = &damages->of[damages->count++];
	*damage = (struct damage){.domain = domain, .fewest = UINT32_MAX};
	for (uint32_t at = 0; at < fabric->leaf_start[fabric->leaf_count]; at++)
		damage->room += domain_of(view, at) == domain ? targets_room(view, at) : 0;
	return damage;
}

static void mark(const struct view *view, const struct part *part)
{
	for (uint32_t i = part->first; i < part->end; i++)
		if (view->work->state[i] == STAYS)
			view->work->state[i] = MOVES;
}

uint32_t segments_mark(struct view *view)
{
	struct damages damages = {.count = 0};
	struct segment_walk walk = ask_segments(&view->ask);
	uint32_t moves = 0;
	for (uint32_t i = segment_next(&walk); i != FROND_NONE;) {
		struct part part = next_part(view, &walk, &i);
		moves += part.lost;
		if (part.stay == 0 || (part.lost == 0 && part.domain != FROND_NONE))
			continue;
		struct damage *damage = part.domain == FROND_NONE ? NULL : damage_of(view, &damages, part.domain, true);
		if (damage != NULL && damage->room >= part.lost) {
			damage->room -= part.lost;
			continue;
		}
		if (damage != NULL)
			damage->room += part.stay; /* at least: they leave */
		mark(view, &part);
		moves += part.stay;
	}
	return moves;
}

uint32_t segments_least(const struct view *view)
{
	struct damages damages = {.count = 0};
	struct segment_walk walk = ask_segments(&view->ask);
	uint32_t more = 0;
	for (uint32_t i = segment_next(&walk); i != FROND_NONE;) {
		struct part part = next_part(view, &walk, &i);
		if (part.stay > 0 && part.domain == FROND_NONE)
			return 0; /* it is apart already: nothing is known */
		struct damage *damage =
			part.stay == 0 || part.lost == 0 ? NULL : damage_of(view, &damages, part.domain, true);
		if (damage == NULL)
			continue;
		damage->lacks += part.lost > damage->room ? part.lost - damage->room : 0;
		damage->room -= min_u32(part.lost, damage->room);
	}
	walk = ask_segments(&view->ask);
	for (uint32_t i = segment_next(&walk); i != FROND_NONE;) {
		struct part part = next_part(view, &walk, &i);
		struct damage *damage = part.stay == 0 ? NULL : damage_of(view, &damages, part.domain, false);
		if (damage != NULL)
			damage->fewest = min_u32(damage->fewest, part.stay);
	}
	for (uint32_t d = 0; d < damages.count; d++)
		more += damages.of[d].lacks > 0 ? damages.of[d].fewest : 0;
	return more;
}
