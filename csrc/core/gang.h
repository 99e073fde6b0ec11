/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gang.h - which ledger entries belong together, what they ask for, and when they may go. A gang exists while it has an
 * entry. All or nothing: nobody is let through Permit before every planned member has arrived there; once the gang has
 * gone, a member that comes back (its bind failed) goes at once. A gang that was bound and falls under minMember is
 * degraded. Never decides a place.
 *
 *   gathering → planned → reserved → bound ⇄ degraded        (enum frond_gang_state)
 */
#ifndef FROND_CORE_GANG_H
#define FROND_CORE_GANG_H

#include "core/ask.h"
#include "core/ledger.h"

/* What a gang asks for, kept for recover, victims and defrag. */
struct terms {
	uint8_t strategy, mode; /* enum strategy, enum mode */
	uint8_t recovery;       /* enum recovery */
	bool latency_sensitive;
	bool insists; /* with MODE_REQUIRED: the rule is never relaxed, not for a repair either (topology-wait: forever) */
	uint32_t bandwidth_gbps;
	uint64_t domain; /* what the preferred domain's name hashes to, for the caller to find it by; 0: none */
	struct gpu_wish gpu;
};
#define TERMS_INSISTS     3u /* beside the values of enum mode */
#define TERMS_DOMAIN_BITS 44u
#define TERMS_GBPS_BITS   20u /* of both bandwidths */
#define TERMS_GBPS_MASK   ((1u << TERMS_GBPS_BITS) - 1)
#define DEADLINE_BITS     42u
#define DEADLINE_MASK     ((1ull << DEADLINE_BITS) - 1)
#define MIN_MEMBER_BITS   15u
#define MIN_MEMBER_MASK   ((1u << MIN_MEMBER_BITS) - 1)
_Static_assert(MODE_IGNORE < TERMS_INSISTS, "a mode of its own");
_Static_assert(FROND_DEADLINE_MAX <= DEADLINE_MASK && FROND_MEMBERS_MAX <= MIN_MEMBER_MASK, "promises");

/* With struct terms in it, packed: there is a gang for each pod, at worst. */
__extension__ struct gang {
	struct frond_key key;
	uint64_t first_up : ID_BITS; /* its entries, linked; none: this id is free */
	uint64_t chain_up : ID_BITS; /* next of the hash bucket, or of the free list */
	uint64_t members : ID_BITS;  /* entries in the list */
	uint64_t gone : 1;           /* let through; stays so while a member is left */
	uint64_t whole : 1;          /* has had minMember bound */
	uint64_t strategy : 2;
	uint64_t missing : ID_BITS; /* reserved entries that have not reached Permit */
	uint64_t bound : ID_BITS;
	uint64_t bandwidth_gbps : TERMS_GBPS_BITS;
	uint64_t mode : 2, recovery : 2; /* mode TERMS_INSISTS: Required that insists */
	uint64_t domain : TERMS_DOMAIN_BITS;
	uint64_t min_gbps : TERMS_GBPS_BITS;
	uint64_t deadline_ms : DEADLINE_BITS; /* 0: none */
	uint64_t min_member : MIN_MEMBER_BITS;
	uint64_t policy : 2, gpu_mode : 2, locality : 2;
	uint64_t latency_sensitive : 1;
	int32_t priority;
	uint16_t prefer;
	uint16_t lost; /* bound members that left after the gang was bound; stays at its largest value */
};
_Static_assert(sizeof(struct gang) == 56, "there is one for each pod, at worst");

static inline uint32_t gang_first(const struct gang *gang)
{
	return (uint32_t)gang->first_up - 1;
}

static inline uint32_t gang_chain(const struct gang *gang)
{
	return (uint32_t)gang->chain_up - 1;
}

struct gangs {
	struct ledger *ledger;
	struct undo *undo;
	struct gang *gangs;
	uint32_t *bucket;
	uint32_t cap, bucket_mask;
	uint32_t used;      /* from here on it changes */
	uint32_t free_head; /* ids given back */
	uint32_t fresh;     /* ids from here on were never used */
	uint32_t timed;     /* gangs with a deadline */
};

void gangs_layout(struct gangs *gangs, struct arena *arena, struct ledger *ledger, uint32_t cap);
uint32_t gangs_find(const struct gangs *gangs, struct frond_key key);

/* Adds an entry to its gang, which is made when it is the first. There is room: one id per ledger entry. */
void gangs_join(struct gangs *gangs, struct frond_key key, uint32_t entry);
/* Takes an entry out of its gang, if it is in one; the last one ends the gang. */
void gangs_part(struct gangs *gangs, uint32_t entry);

/* minMember, priority and deadline of an existing gang. */
void gangs_promise(struct gangs *gangs, uint32_t id, uint32_t min_member, int32_t priority, int64_t deadline_ms);
/* All that `kept` knew of itself beyond its entries: its only member came back as another entry. */
void gangs_carry(struct gangs *gangs, uint32_t id, const struct gang *kept);
/* Bandwidths have TERMS_GBPS_BITS, the domain TERMS_DOMAIN_BITS. */
void gangs_terms(struct gangs *gangs, uint32_t id, const struct terms *terms);
struct terms gang_terms(const struct gang *gang);

/* A reserved member has reached Permit. */
enum frond_verdict gangs_arrive(struct gangs *gangs, uint32_t entry);
/* A reserved member is bound now. */
void gangs_bound(struct gangs *gangs, uint32_t entry);

/* Any gang whose deadline is before now_ms and that still has reserved members, lowest id first; FROND_NONE: none. */
uint32_t gangs_overdue(const struct gangs *gangs, int64_t now_ms);

enum frond_gang_state gang_state(const struct gang *gang);

#endif
