/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.h - one call of the ABI, made from the last numbers of an input, and the processor time that it took. What has to
 * come before it (a plan to be reserved, nodes that fail) is not measured.
 */
#ifndef FROND_SLOWEST_CALL_H
#define FROND_SLOWEST_CALL_H

#include "cluster.h"

struct result {
	int32_t code;
	uint32_t outcome, flags; /* of a plan, of moves or victims; 0: not one of these */
	bool stopped;            /* it was given up */
	uint64_t ns;             /* so long at least, then */
	uint64_t digest;         /* of all that it answered, its text apart */
};

struct caller; /* what calls need beside the engine */

struct caller *caller_open(uint32_t most_ms); /* given up after so long; NULL: out of memory */
void caller_close(struct caller *caller);

struct result call_make(struct caller *caller, struct cluster *cluster, const struct input *input);

#endif
