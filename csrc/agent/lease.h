/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease.h - the body and the address of our node's Lease, by which the scheduler knows that the agent lives. A report has
 * kilobytes that every scheduler reads; a renewal has a time. Owns nothing, no clock; texts are the caller's to free().
 */
#ifndef FROND_AGENT_LEASE_H
#define FROND_AGENT_LEASE_H

#include "agent/object.h"

#define LEASE_DURATION_S 90 /* the scheduler calls an agent silent after that: three renewals are missed */

void lease_path(const char *node, char out[OBJECT_PATH_ROOM]);

/* All of the Lease, each time: an apply takes back what it no longer says. It goes when the node with that uid does, unless
 * the uid is "". now_us: microseconds since 1970. NULL: out of memory. */
char *lease_body(const char *node, const char *uid, int64_t now_us);

#endif
