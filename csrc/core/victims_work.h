/* SPDX-License-Identifier: Apache-2.0 */
/*
 * victims_work.h - what the files of the hunt for victims share. Private to victims*.c.
 *
 *   victims.c          the call: is anybody to go, domain after domain, the plan once they have gone
 *   victims_count.c    room by counting GPUs, gangs by what their going brings and costs
 *   victims_search.c   the cheapest choice in a domain
 */
#ifndef FROND_CORE_VICTIMS_WORK_H
#define FROND_CORE_VICTIMS_WORK_H

#include "core/victims.h"

#define UNIT_WHOLE UINT32_MAX
#define UNIT_NONE  UINT16_MAX
enum { SUMS = 1024 };

struct sums { /* of a gang */
	uint32_t gang;
	uint32_t budgets, gpus;
	uint32_t unbudgeted; /* highest ranks that no budget is about */
	bool even;           /* all members have the same GPUs */
};

struct hunt { /* one call */
	struct victims_work *work;
	struct core *core;
	const struct fabric *fabric;
	struct ask ask;
	struct answer answer;
	struct frond_place *places;
	int32_t priority;
	struct rule rule;
	bool spreads;
	uint32_t members;             /* to place */
	uint32_t size, need;          /* GPUs of a member and how many of them; sizes differ: of the largest */
	uint64_t gpus;                /* to place in all */
	uint32_t pin_first, pin_last; /* positions of pinned members; first > last: none */
	bool mixed;                   /* sizes differ */
	bool by_gpus;                 /* sizes differ, on one node: GPUs are counted, size is 1 */
	bool by_sets;     /* one node, of which some sets of GPUs are not allowed: they are chosen, not counted */
	bool exact;       /* counting tells the truth */
	struct span span; /* the domain in hand */
	uint32_t room;    /* members that it has room for with those gone that are chosen */
	uint64_t free;    /* GPUs, where sizes differ */
	uint32_t *inside; /* the units' pods, in the planner's scratch; gone after a plan */
	uint32_t inside_cap, inside_count;
	struct price price;    /* of what is chosen; its priority is of no account */
	uint32_t gain;         /* of what is chosen, at most */
	uint64_t steps;        /* that this domain may still take */
	bool cut;              /* something was not looked at: a bound */
	bool budgets;          /* some pod that may go has one */
	int32_t lower, higher; /* hunt_could(): the nearest priorities of gangs there, up to its bound and above it */
	struct sums *sums;     /* by gang % SUMS, in the planner's scratch, too */
	bool found;            /* somewhere */
};

/* ---- victims.c ------------------------------------------------------------------------------------------------------- */

/* Below zero: a is cheaper. */
int price_compare(const struct price *a, const struct price *b);
/* Pays from the call's budget and the domain's share of it. False: no more. */
bool hunt_pay(struct hunt *hunt, uint64_t steps);
/* A first choice has been found: from here on a domain has its share only. */
void hunt_found(struct hunt *hunt);
/* Does the gang fit into the domain in hand, with all gone that may go, or those that are chosen? For both there is room by
 * counting. */
bool hunt_fits_without(struct hunt *hunt, int32_t most, bool unbudgeted);
bool hunt_fits_choice(struct hunt *hunt, int32_t most, uint16_t last);

/* ---- victims_count.c -------------------------------------------------------------------------------------------------- */

bool hunt_evictable(const struct hunt *hunt, const struct entry *entry, int32_t most);
/* May the pod go, of a gang up to this priority, and without touching a budget if so asked? */
bool hunt_may_go(struct hunt *hunt, uint32_t entry, int32_t most, bool unbudgeted);
/* Pods that may go without the gang going whole. */
uint32_t hunt_spare(const struct hunt *hunt, uint32_t gang);
const struct sums *hunt_sums(struct hunt *hunt, uint32_t gang);
/* The planner has used its scratch: what is known of sums is lost. */
void hunt_forget(struct hunt *hunt);
/* Order of the pods of gangs that may shrink; once a call. */
void hunt_rank(struct hunt *hunt);
/* By counting: is there room in the domain in hand, with those chosen gone? */
bool hunt_has_room(struct hunt *hunt);
/* The same, with all gone that may go. */
bool hunt_could(struct hunt *hunt, int32_t most, bool unbudgeted);
/* The gangs of the domain up to a priority, those that bring most first; nobody is chosen. */
void hunt_collect(struct hunt *hunt, int32_t most);
/* The list of their pods once more, after a plan. */
void hunt_refill(struct hunt *hunt, int32_t most);
/* So many pods of its list go, or all of the gang (UNIT_WHOLE): room, price and gain follow. */
void hunt_choose(struct hunt *hunt, struct unit *unit, uint32_t gone);
/* Highest ranks of the gang that go when so many of the list do. */
uint32_t hunt_ranks(const struct hunt *hunt, const struct unit *unit, uint32_t gone);

/* ---- victims_search.c -------------------------------------------------------------------------------------------------- */

/* A choice in the domain in hand that is cheaper than *least, which becomes its price; it is in work->evict. */
bool hunt_search(struct hunt *hunt, struct price *least);

#endif
