/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wish.h - what a workload asks for: the topology.scheduler/… annotations of reference 3.1, read into numbers.
 * Owns the annotation grammar and its units. Keys of other projects are passed over; an unknown topology.scheduler/ key
 * or an unparsable value is one sentence with the key, the value and an example. The keys that Frond itself
 * writes (rank, domain) are passed over too: the workload may be a copy of a placed pod.
 */
#ifndef FROND_TEXT_WISH_H
#define FROND_TEXT_WISH_H

#include "args.h"

struct wish {
	uint64_t gpu_count;                        /* 0: not given */
	char preferred_domain[FROND_NAME_MAX + 1]; /* "": not given */
	uint32_t bandwidth_gbps;                   /* floor; 0: none */
	bool latency_sensitive;
	enum strategy strategy;
	enum mode mode;
	int64_t wait_ms;
	enum recovery recovery;
	struct segmenting segments;
	int64_t expected_ms; /* that a member runs; WAIT_FOREVER: not given */
};

/* Defaults come from args. pairs are spans of in[0..in_len); spans outside it are refused. A key twice is refused. */
int32_t wish_read(const struct frond_pair *pairs, uint32_t count, const char *in, uint32_t in_len,
		  const struct args *args, struct wish *out, struct complaint *complaint);

#endif
