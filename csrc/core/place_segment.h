/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_segment.h - what place_segment.c and place_segment_rule.c share: the domains of a leaf, and segments in them. Private
 * to them.
 */
#ifndef FROND_CORE_PLACE_SEGMENT_H
#define FROND_CORE_PLACE_SEGMENT_H

#include "core/place_row.h"
#include "core/place_work.h"

#define PARTS      512u  /* NVLink domains of a leaf that are looked at */
#define ROW        2048u /* segments, where nodes are counted */
#define STEPS_PART 5u    /* of the budget, for a domain that is looked at, and for a node of it */
#define NO_TAIL    0u

struct parts {
	uint32_t count, first;             /* domains first … first + count - 1 */
	uint32_t room[PARTS];              /* members, beyond those owed */
	uint32_t nodes[PARTS];             /* with room */
	uint32_t start[PARTS], end[PARTS]; /* positions; there may be others between */
	struct rooms rooms[PARTS];         /* with those owed; by capacity nobody is there yet */
	bool lacking;                      /* one owes more than it has room for */
};

/* The NVLink domains of a leaf, by capacity or today. */
void parts_of(struct place_work *work, uint32_t leaf, bool today, struct parts *parts);

/* Fewest nodes for 0, 1, … whole segments in the first domains of a leaf; [1]: and the short one. They never fall. */
struct fewest {
	uint16_t nodes[2][ROW + LANES]; /* behind `most` there is room for the last lanes */
	uint32_t most;                  /* segments, no more than the gang has */
};

/* Over all domains. */
void fewest_in(struct place_work *work, const struct parts *parts, bool today, struct fewest *fewest);

struct segment_hold {
	uint32_t whole;     /* segments */
	uint32_t with_tail; /* beside the short one, + 1; NO_TAIL: that does not fit at all */
};

/* No more than so many members in all. */
struct segment_hold holding_under(struct segment_hold holding, const struct segment_need *need, uint32_t members);
/* One domain with room for so many members. */
struct segment_hold holding_of_members(uint32_t members, const struct segment_need *need);
/* By counting: the short one uses what is left of a domain, or the place of a whole one. */
struct segment_hold holding_of_parts(const uint32_t *room, uint32_t count, const struct segment_need *need);
/* With so many nodes. */
struct segment_hold holding_by_nodes(const struct fewest *fewest, uint32_t nodes);

#endif
