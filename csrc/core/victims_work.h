/* SPDX-License-Identifier: Apache-2.0 */
/*
 * victims_work.h - what the files of the hunt for victims share. Private to victims*.c.
 */
#ifndef FROND_CORE_VICTIMS_WORK_H
#define FROND_CORE_VICTIMS_WORK_H

#include "core/victims.h"

struct domain { /* a part of the fabric that the rule allows */
	struct span span;
	struct price price;
};

struct hunt { /* one call */
	struct victims_work *work;
	struct core *core;
	const struct fabric *fabric;
	struct ask ask;
	struct answer answer;
	struct frond_place *places;
	int32_t priority;
	struct spans spans;           /* of the rule */
	uint32_t size, need;          /* GPUs of a member and members to place; sizes differ: 1 and GPUs */
	uint64_t gpus;                /* to place */
	uint32_t pin_first, pin_last; /* positions of pinned members; first > last: none */
	bool mixed;                   /* sizes differ */
	bool exact;                   /* counting tells the truth */
	uint32_t room;                /* members that the domain in hand has room for */
	uint32_t choices, asks;       /* that victims_node.c has spent */
};

struct choice {         /* who goes of a node */
	uint32_t whole; /* units, by index */
	uint32_t pods;  /* pods of the other units, by index */
};

/* ---- victims.c ------------------------------------------------------------------------------------------------------- */

/* Below zero: a is cheaper. */
int price_compare(const struct price *a, const struct price *b);

/* By counting GPUs: is there room for the gang, with those gone that are marked? */
bool hunt_has_room(const struct hunt *hunt, const struct domain *domain);
/* Healthy GPUs that a pod gives back. */
uint32_t hunt_frees(const struct hunt *hunt, const struct entry *entry);
bool hunt_evictable(const struct hunt *hunt, const struct entry *entry);
/* Marks a pod of a unit, or all of the unit: goes, or stays after all. */
void hunt_set_part(struct hunt *hunt, struct unit *unit, uint32_t entry, bool goes);
void hunt_set_whole(struct hunt *hunt, struct unit *unit, const struct domain *domain, bool goes);
/* The units of a domain, cheapest first, and its room; nobody is marked. */
void hunt_collect(struct hunt *hunt, const struct domain *domain);
/* Does it fit without these? If so, they are in the list and the plan in answer and places. */
bool hunt_realise_choice(struct hunt *hunt, const struct domain *domain, struct choice choice);

/* ---- victims_node.c: a domain that is one node ------------------------------------------------------------------------ */

enum { NODE_PODS = FROND_GPUS_MAX }; /* that hold GPUs of a node; and units that are looked at */

/* Marks the cheapest pods of the units in hand that make room, by counting. */
void hunt_solve_node(struct hunt *hunt, const struct domain *domain);
/* A choice on this node that costs less than *least (equal: no more), which becomes its price; the cheapest, as far as the
 * bounds in victims_node.c go. */
bool hunt_search_node(struct hunt *hunt, const struct domain *domain, bool equal, struct price *least,
		      struct choice *choice);
/* Marks it, after hunt_collect(). */
void hunt_mark_choice(struct hunt *hunt, const struct domain *domain, struct choice choice);

#endif
