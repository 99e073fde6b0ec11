/* SPDX-License-Identifier: Apache-2.0 */
/*
 * undo.h - what-if: a log of what has been done. Whoever changes ledger or gangs logs a record from which the change can be
 * taken back exactly; undoing takes the records back in reverse order, so that each finds the state as it left it, and the
 * state before and after is the same to the last bit. What can be told from the state itself is not logged: whoever leaves
 * stays where it was, marked as free, and the sums of leaves and spines follow from the nodes. So a member that leaves its
 * gang and its node costs 24 bytes, and the largest gang fits.
 *
 * Nests to any depth; the log has a fixed size, and an operation asks for room before it begins, so that it never stops
 * half-way. Costs one branch when nobody asks "what if". Never knows what a record means: its owner does.
 */
#ifndef FROND_CORE_UNDO_H
#define FROND_CORE_UNDO_H

#include "core/base.h"

/* A record is a header and up to seven words of content in front of it: the log is read from its end. */
#define UNDO_KIND_BITS    4u
#define UNDO_WORDS_BITS   3u
#define UNDO_PAYLOAD_BITS (64u - UNDO_KIND_BITS - UNDO_WORDS_BITS)

enum undo_kind {
	UNDO_BEGIN, /* a what-if begins here */
	UNDO_WORD,  /* eight bytes; the payload is their address */
	UNDO_ENTER, /* ledger.c: an entry; content: what was there before, if it had been used */
	UNDO_LEAVE,
	UNDO_LET_GO, /* a hold has ended */
	UNDO_MAKE,   /* gang.c: a gang likewise */
	UNDO_JOIN,
	UNDO_PART,
	UNDO_SET, /* content: the gang */
	UNDO_ARRIVE,
	UNDO_BIND,
	UNDO_KINDS
};

/* Takes one change back. */
typedef void undo_taker(void *owner, enum undo_kind kind, uint64_t payload, const uint64_t *content, uint32_t words);

/* Bytes that are logged at most: when a member leaves its gang, which may end with it, and its node; when one enters and
 * joins, beside an operation for all of them that makes the gang and promises; by any operation on one ledger entry. */
#define UNDO_LEAVING   24u
#define UNDO_RESERVING 56u
#define UNDO_OPERATION 128u
#define UNDO_HOLD      8u /* when a hold ends */

struct undo {
	uint64_t *log;
	uint64_t cap, used; /* words */
	uint32_t depth;
	struct {
		undo_taker *take_back;
		void *owner;
	} owners[UNDO_KINDS];
};

void undo_layout(struct undo *undo, struct arena *arena, uint32_t pods, uint32_t holds);
/* Records of the kinds first … last are taken back by this one. */
void undo_own(struct undo *undo, enum undo_kind first, enum undo_kind last, undo_taker *take_back, void *owner);

void undo_begin(struct undo *undo);
/* Takes back everything since the last undo_begin(). */
void undo_back(struct undo *undo);
/* Takes back everything since undo->used had this value, which is inside the what-if in hand. */
void undo_rewind(struct undo *undo, uint64_t used);

/* May so many bytes, or operations of any kind, be logged? Always, when nothing is logged. */
bool undo_room_bytes(const struct undo *undo, uint64_t bytes);
bool undo_room(const struct undo *undo, uint64_t operations);

void undo_append(struct undo *undo, enum undo_kind kind, uint64_t payload, const void *content, uint32_t words);

/* Call before the change, if undo_logs(). */
static inline bool undo_logs(const struct undo *undo)
{
	return undo->depth > 0;
}

/* Call before changing these eight bytes. */
void undo_save(struct undo *undo, uint64_t *at);

#endif
