/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask.h - what a gang asks for and what it is answered, as integers: the words of spec 3.1 after text/wish has read
 * them, and the numbers from which text/explain makes a sentence.
 */
#ifndef FROND_CORE_ASK_H
#define FROND_CORE_ASK_H

#include "core/base.h"

enum strategy { STRATEGY_BALANCED, STRATEGY_CONSOLIDATED, STRATEGY_DISTRIBUTED };
enum mode { MODE_REQUIRED, MODE_PREFERRED, MODE_IGNORE };

struct ask {
	const struct frond_member *members; /* ascending rank */
	uint32_t count;
	enum strategy strategy;
	enum mode mode;
	bool latency_sensitive;
	uint32_t bandwidth_gbps;           /* floor; 0: none */
	uint32_t max_nodes_per_leaf;       /* 0: no cap */
	uint32_t max_gpus_per_leaf;        /* 0: no cap */
	uint32_t only_slot;                /* FROND_NONE: any */
	uint32_t domain_first, domain_end; /* leaves of the preferred domain; equal: none */
	const struct frond_room *room;     /* by slot; NULL: no bound */
};

enum best_kind { BEST_NONE, BEST_NODE, BEST_LEAVES, BEST_SPINES, BEST_CLUSTER };

struct answer {
	struct frond_plan plan;
	uint32_t members;     /* with GPUs, pinned ones included */
	uint32_t gpus_each;   /* 0: sizes differ */
	uint64_t gpus;        /* of all of them together */
	bool whole_nodes;     /* no node could hold two members: count in nodes */
	uint32_t need_nodes;  /* n of spec 3.3 */
	uint32_t need_leaves; /* r; 0: no spine holds it */
	uint32_t need_spines;
	uint64_t ever;                  /* members (sizes differ: GPUs) that the cluster could hold by capacity */
	enum best_kind best;            /* the place that comes nearest when the rule is not met today */
	uint32_t best_first, best_last; /* node position, leaves or spines, by best */
	uint64_t best_room;             /* members (sizes differ: GPUs) that it has room for */
	uint32_t best_gap;              /* leaf or spine in between that has no room at all; FROND_NONE: none */
	uint32_t missing;               /* members to be placed, without pinned ones */
};

#endif
