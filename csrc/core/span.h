/* SPDX-License-Identifier: Apache-2.0 */
/*
 * span.h - parts of the fabric, by position alone: what a span is, which spans a rule of reference 3.3 allows, what
 * nodes a gang uses, and whether that meets a rule. Reads the tree; never looks at what is free, who holds it or who is
 * asked for.
 */
#ifndef FROND_CORE_SPAN_H
#define FROND_CORE_SPAN_H

#include "core/ask.h"
#include "core/fabric.h"

struct span { /* positions first … end - 1, or those of them that are in an NVLink domain */
	uint32_t first, end;
	uint32_t nvlink; /* FROND_NONE: all of them */
};

static inline bool span_has(const struct fabric *fabric, const struct span *span, uint32_t position)
{
	return position >= span->first && position < span->end &&
	       (span->nvlink == FROND_NONE || fabric->domain_of[position] == span->nvlink);
}

static inline struct span span_of_node(uint32_t position)
{
	return (struct span){position, position + 1, FROND_NONE};
}

static inline struct span span_of_leaf(const struct fabric *fabric, uint32_t leaf)
{
	return (struct span){fabric->leaf_start[leaf], fabric->leaf_start[leaf + 1], FROND_NONE};
}

/* The NVLink domain of a node, which lies inside one leaf; empty: it is in none. */
struct span span_of_nvlink(const struct fabric *fabric, uint32_t position);

/* The leaf's link is under a floor: no gang may cross it. */
static inline bool leaf_slow(const struct fabric *fabric, uint32_t leaf, uint32_t floor_gbps)
{
	uint32_t uplink = fabric->leaf_uplink[leaf];
	return uplink != 0 && uplink < floor_gbps;
}

/* ---- a rule, and the spans in which it can be met --------------------------------------------------------------------- */

struct rule {
	uint32_t name; /* enum frond_rule */
	uint32_t need_leaves, need_spines;
	uint32_t bandwidth_gbps; /* floor; 0: none */
	uint32_t segment_size;   /* 0: none */
	bool segment_nvlink;     /* their domains are NVLink domains; else leaves */
};

/* The rule that a plan was told. */
struct rule rule_of(const struct ask *ask, const struct answer *answer);

/* The gang may use fewer leaves or spines than the rule allows. */
static inline bool ask_spreads(const struct ask *ask)
{
	return ask->strategy == STRATEGY_DISTRIBUTED && !ask->latency_sensitive;
}

/* The spans of a rule, the longest from each node, leaf or spine, in fabric order. A node without a leaf
 * is a single node, and in a span without a rule. */
struct spans {
	const struct fabric *fabric;
	struct rule rule;
	bool spreads;     /* a run may be shorter */
	struct span span; /* the one in hand */
	uint32_t cursor;
};

/* Before the first one. */
struct spans spans_of(const struct fabric *fabric, const struct rule *rule, bool spreads);
bool spans_next(struct spans *spans);

/* ---- the nodes that a gang uses ---------------------------------------------------------------------------------------- */

struct use {
	struct extent extent;
	uint32_t domains;  /* NVLink domains; a node in none counts as one */
	uint32_t unlinked; /* nodes in none */
	uint32_t chains;   /* sets of adjacent spines */
	uint32_t loose;    /* nodes without a leaf: each counts as a leaf, a spine and a chain of its own */
	uint32_t slow;     /* leaves whose link is under the floor */
	/* where the last member was */
	uint32_t last, last_leaf, last_spine;
	uint32_t on_node, in_leaf;
};

static inline struct use use_none(void)
{
	return (struct use){.last = FROND_NONE, .last_leaf = FROND_NONE, .last_spine = FROND_NONE};
}

/* A member is on this node, where those before it have ascending positions. */
static inline void use_add(struct use *use, const struct fabric *fabric, uint32_t position, uint32_t floor_gbps)
{
	uint32_t leaf = fabric->leaf_of[position];
	bool same = position == use->last, same_leaf = same || (leaf != FROND_NONE && leaf == use->last_leaf);
	use->on_node = same ? use->on_node + 1 : 1;
	use->in_leaf = same_leaf ? use->in_leaf + 1 : 1;
	use->extent.fullest_node = max_u32(use->extent.fullest_node, use->on_node);
	use->extent.fullest_leaf = max_u32(use->extent.fullest_leaf, use->in_leaf);
	if (same)
		return;
	uint32_t domain = fabric->domain_of[position];
	use->extent.nodes++;
	use->domains += use->last == FROND_NONE || domain == FROND_NONE || domain != fabric->domain_of[use->last];
	use->unlinked += domain == FROND_NONE;
	use->last = position;
	if (same_leaf)
		return;
	use->extent.leaves++;
	if (leaf == FROND_NONE) { /* these come last */
		use->extent.spines++;
		use->extent.runs++;
		use->chains++;
		use->loose++;
		return;
	}
	uint32_t spine = fabric->leaf_spine[leaf];
	bool new_spine = spine != use->last_spine;
	use->slow += leaf_slow(fabric, leaf, floor_gbps);
	use->extent.spines += new_spine;
	use->extent.runs += new_spine || leaf != use->last_leaf + 1;
	use->chains += new_spine && (use->last_spine == FROND_NONE || spine != use->last_spine + 1 ||
				     !spine_adjacent(fabric, spine));
	use->last_leaf = leaf;
	use->last_spine = spine;
}

/* What the members use, as a plan tells it: nodes without a leaf are in no leaf and no spine there. */
static inline void plan_use(struct frond_plan *plan, const struct use *use)
{
	plan->spines = use->extent.spines - use->loose;
	plan->leaves = use->extent.leaves - use->loose;
	plan->runs = use->extent.runs - use->loose;
	plan->nodes = use->extent.nodes;
}

/* No link is too slow for it, and the rule is met. */
bool use_meets(const struct use *use, const struct rule *rule);
/* By members on these positions, in order of rank; afterwards they are sorted. */
bool positions_meet(const struct fabric *fabric, uint32_t *positions, uint32_t count, const struct rule *rule);

#endif
