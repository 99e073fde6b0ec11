/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_work.h - the scratch that the files of the planner share. Private to place*.c.
 *
 * An item is a leaf, or a node without a leaf, which counts as a leaf and a spine of its own: nobody knows what it is
 * close to, so it is close to nothing. Items 0 … leaf_count - 1 are the leaves.
 */
#ifndef FROND_CORE_PLACE_WORK_H
#define FROND_CORE_PLACE_WORK_H

#include "core/place.h"
#include "core/sort.h"
#include "core/waste.h"

#define SCORES  512u /* leaf scores that are remembered during a plan */
#define CHOICES 11u  /* GPU sets likewise, as bits */

#define GAIN_NONE                                                                                                      \
	{                                                                                                              \
		.worst = UINT16_MAX                                                                                    \
	}

struct choice { /* a GPU set that a claim made us look for, or how many members find one, one after the other */
	uint32_t plan;
	union {
		uint16_t prefer, most; /* the members: no more than the GPUs that pods hold by count leave room for */
	};
	uint16_t free, held, set;
	uint16_t topology, count; /* CHOICE_FITS + count: set is the number of members */
};
#define CHOICE_FITS 0x100u

struct frame {              /* an item that the candidate in hand uses */
	uint32_t at;        /* item */
	uint32_t index;     /* of it in work->scratch.list, for place_table.c */
	uint16_t count;     /* members it gets */
	uint16_t least;     /* fewest to try */
	uint16_t rest;      /* members still to place before this item */
	uint8_t state;      /* place_table.c */
	bool skip;          /* place_table.c: the item may be left out as well */
	uint64_t cost;      /* before this item */
	struct gain before; /* of the items before this one */
};
_Static_assert(FROND_MEMBERS_MAX <= UINT16_MAX && FROND_LEAF_NODES <= UINT16_MAX, "there are as many as members");

#define STEPS_LOOK 2u /* of the budget, for candidates.looks */

#define GAINS 256u

struct gained { /* the gain of an item, kept: candidates one after the other ask for few of them over and over */
	uint32_t measure, item, count;
	struct gain gain;
};

struct pick { /* members for an item */
	uint32_t item, count;
};

/* The best candidate so far. */
struct best {
	bool found;
	uint32_t tail_item; /* of segments.tail_item */
	uint32_t domain;    /* of scope.domain */
	struct gain gain;
	uint32_t picks; /* entries in work->candidates.picks, ascending items */
	uint32_t per_node;
};

/* The best candidate so far, or one that will have its turn, when it is one leaf to which others of the same kind lose by their
 * sums. */
struct champion {
	uint32_t kind;  /* FROND_NONE: there is none such */
	uint32_t model; /* place_model() */
	uint32_t item;
	uint32_t total; /* GPUs of that leaf */
	struct gain gain;
	uint32_t value;    /* its score */
	uint32_t from, to; /* free GPUs of leaves that are sure to be worse; from > to: not known of any */
	uint32_t breaks;   /* a leaf that nobody uses is worse with so many free GPUs: it would be broken */
};

struct spine_view {                        /* what a spine could hold by capacity */
	uint64_t members, nodes;           /* in leaves that a gang may cross */
	uint64_t run_members, run_nodes;   /* in its best run */
	uint32_t slow_members, slow_nodes; /* most in one leaf with a slow link, of those that hold the gang: nodes */
	uint32_t shortest;                 /* run of leaves that holds the gang; 0: none */
	uint32_t node_members;             /* most on one node */
	bool spare_leaf;                   /* a leaf holds the gang without using each of its nodes */
};

struct gang_asked {         /* the members of the gang in hand, counted */
	uint32_t size;      /* GPUs of a member; 0: sizes differ */
	uint32_t total;     /* members with GPUs */
	uint32_t missing;   /* of them, to be placed */
	uint32_t pins;      /* of them, pinned */
	uint32_t templates; /* highest pod template + 1 */
	bool templated;     /* exceptions tell them apart */
	uint64_t models;    /* GPU models of the pinned ones */
	uint32_t domains;   /* NVLink domains of the pinned ones, as place_domains() counts them */
};

struct segment_need { /* segments of members of one size: whole ones, and the short last one */
	uint32_t size, whole, tail;
};

/* Blocks of ranks that shall lie in one domain each: place_segment.c. While `on`, what is counted of a gang and of items are
 * whole segments: gang.missing, place_hold(), place_fill() and the counts of candidates. */
struct segments {
	uint32_t size; /* as asked for; 0: none */
	bool nvlink;   /* domains are NVLink domains; else leaves */
	bool ragged; /* members, or segments, are of several sizes: place_fit.c, and what it finds need not be the best */
	bool on, fit;                    /* SEGMENTS_ON, SEGMENTS_FIT */
	bool unknown;                    /* whether any part of the fabric could hold them */
	bool handed;                     /* their ranks have been handed out */
	struct segment_walk walk;        /* before the first member */
	bool apart;                      /* the pinned members of a segment are in several domains, or none */
	struct segment_need ever, today; /* of the gang by capacity; those that nobody of is pinned */
	uint32_t owed_count;             /* domains that have to take missing members of segments some of whom stay */
	uint32_t tail_item;              /* today's short one is here; FROND_NONE: not yet, or there is none */
	/* as they are without segments */
	uint32_t missing;
	bool counted, alike;
};

enum segments_turn { /* what they count for: nothing; the nodes that take any; all, by counting or by first fit */
		     SEGMENTS_OFF,
		     SEGMENTS_NODES,
		     SEGMENTS_ON,
		     SEGMENTS_FIT,
};

#define PACK_BOUNDS 8u

struct pack {           /* the gang by size, and what bounds the spans that could hold it: place_bound.c */
	bool today;     /* the missing members on what is free; else all of them on empty nodes */
	bool oversized; /* a member has more GPUs than any node */
	uint32_t members, kinds;
	uint64_t gpus;                               /* of all of them */
	uint32_t size[FROND_GPUS_MAX];               /* by kind, largest first */
	uint32_t pod_template[FROND_GPUS_MAX];       /* by kind; FROND_NONE: of any, exceptions are the same for all */
	uint32_t count[FROND_GPUS_MAX];              /* members of it */
	uint8_t turn[FROND_GPUS_MAX];                /* kinds by the lowest rank that has them */
	uint32_t bounds;                             /* in use */
	uint8_t weight[PACK_BOUNDS][FROND_GPUS_MAX]; /* of a member, by kind */
	uint64_t need[PACK_BOUNDS];                  /* weight of the gang */
	uint16_t most[FROND_GPUS_MAX + 1][FROND_GPUS_MAX + 1][PACK_BOUNDS]; /* on a node, by GPUs and members */
	uint32_t rows;                                                      /* bounds that sums[] has */
	uint32_t *sums;                  /* leaf → most weight in the leaves before it; in the scratch */
	uint32_t all[PACK_BOUNDS];       /* everywhere */
	uint32_t leaf_most[PACK_BOUNDS]; /* in one item */
	uint64_t *free;                  /* the scratch behind sums[] */
};

struct scope { /* which nodes are in question, and how they and leaves are measured; place_measure() after a change */
	bool counted;          /* the sums of a leaf say how many members it takes */
	uint32_t counted_gpus; /* most GPUs of a node that members take: more than its size need not be looked for */
	bool constrained;      /* some sets of free GPUs are not allowed */
	bool shaped;           /* spines of one shape have one capacity for this gang */
	bool alike;            /* and untouched ones have the same room today */
	bool ever;             /* capacity counts what is unavailable, too: find_rule() of place.c */
	bool one_node;         /* what is missing goes to one node */
	bool quick;            /* so do those of every leaf: nothing restricts this search to part of one */
	uint32_t per_node;     /* most members on a node */
	uint32_t per_leaf;     /* most members in a leaf */
	uint32_t domain;       /* only nodes of this NVLink domain; FROND_NONE: of any */
	uint32_t preferred;    /* likewise, the preferred one */
	uint32_t lo, hi;       /* items that may be used now: all, or the preferred domain */
	uint32_t from, end;    /* positions that may be used now */
	uint32_t measure;      /* number of the present measure */
	bool leafed, linked;   /* only nodes that have a leaf, an NVLink domain */
};

struct candidates { /* of steps 4 to 7 of reference 3.4 */
	struct best best;
	struct pick *picks;
	struct frame *frames;
	struct gained *gains; /* place_gain_kept() */
	uint32_t depth;       /* frames in use */
	uint32_t seen;        /* candidates compared so far */
	uint32_t same;        /* frames in front that are picks of the best one, as they are */
	bool stop;            /* the bound has been reached */
	uint64_t looks;       /* at nodes that place_fill() has had last, to put members into NVLink domains */
	uint32_t last;        /* place_mixed.c: items from the first to the last in use, of the last one */

	struct champion champion; /* place_single.c */
	/* the leaf with most room, of all in spines that are not hopeless; FROND_NONE: none could hold the gang */
	uint32_t near_leaf, near_room;
	uint32_t near_plan; /* when every such leaf was looked at */
	uint32_t near_end;  /* behind the last hopeless spine */
	uint32_t *
		alike_seen; /* by spine: candidates of an untouched one of this shape + 1; 0: not met yet. In place_rule.c:
				 the first spine of this shape without a capacity of its own + 1 */
	uint8_t *fill;      /* by node of a leaf: take[], of another count */
};

/* Of a leaf: one of its nodes is an exception, and must be looked at for what it takes today, or by capacity. */
enum excepted { EXCEPTED = 1, EXCEPTED_TODAY = 2, EXCEPTED_CAPACITY = 4 };

struct place_work {
	const struct fabric *fabric;
	const struct ledger *ledger;
	const struct node *nodes;
	struct gpuset *const *sets;
	const struct ask *ask;
	struct answer *answer;

	struct gang_asked gang;
	struct segments segments;
	struct pack pack;
	struct scope scope;
	struct candidates candidates;
	struct budget budget; /* of the call: place_budget() */
	struct budget *purse; /* the same, for those who only look */

	/* by position; zero outside a plan */
	uint16_t *pin;   /* members already there */
	uint8_t *take;   /* members that the plan puts there */
	uint8_t *now;    /* with a claim: members that its free GPUs have sets for + 1; 0: not looked at yet */
	uint16_t *taken; /* GPUs handed out there so far, or tried */

	/* exceptions; zero outside a plan, see place_room.c */
	uint8_t *limit;          /* by position */
	uint8_t *leaf_excepted;  /* by leaf: enum excepted */
	uint16_t *leaf_never;    /* by leaf: nodes that are no capacity for the rule by their exception alone */
	uint8_t *spine_excepted; /* by spine: one of its nodes is one */
	bool rooms_lack;         /* exceptions say that nodes have been unavailable for long */
	struct leaf_sum *leaf_sums;
	struct spine_sum *spine_sums; /* the fabric's, which leave out closed nodes during a plan */

	uint32_t items;
	/* by leaf: a node without one is an item that is its own sum */
	uint32_t *hold; /* members that it takes; valid when stamp[leaf] == measure */
	uint32_t *stamp;
	uint16_t *leaf_pin; /* pinned members; zero outside a plan */

	/* One stretch of memory for what is used one after the other; nothing stays in it from one use to the next. */
	struct scratch {
		uint32_t *list;          /* items of place_table.c, nodes in place_rule.c, waste in place_order.c */
		uint64_t *sum;           /* by item, inside one search; or keys to sort, where there are no sums */
		uint64_t *cells;         /* beside the two: a few rows by member, or members to sort */
		struct spine_view *view; /* in cells, for place_rule.c */
		uint8_t *end;
	} scratch;

	/* by member */
	uint32_t *member_pos; /* position; FROND_NONE: not placed yet */
	uint64_t *member_list;

	/* leaf scores that were computed, by free GPUs */
	struct score {
		uint32_t plan, free, used, total, gpus;
		uint32_t value;
	} scores[SCORES];
	struct choice *choices; /* by what was free */
	uint32_t plan;          /* number of the present one */
	uint32_t choice_plan;   /* the first of those whose choices are kept */
	bool repeats;           /* see place_repeat() */
	/* the GPUs that were chosen last */
	uint32_t chosen_topology, chosen_free, chosen_mask;
	uint64_t chosen_ring;
};

/* ---- place.c: the frame of every plan --------------------------------------------------------------------------------- */

/* Decides which node each member gets: member_pos[], answer. */
void place_begin(struct place_work *work, const struct ask *ask, struct answer *answer);
/* Counts what the placement uses, and leaves the scratch as place_begin() expects it, but for exceptions: those stay until
 * place_rooms_clear(). */
void place_end(struct place_work *work);

/* ---- place_room.c: exceptions ------------------------------------------------------------------------------------------ */

void place_rooms_mark(struct place_work *work);
void place_rooms_clear(struct place_work *work);
uint32_t place_room_listed(const struct place_work *work, uint32_t position, enum room_when when);

/* ---- place_leaf.c: what a node and an item can take ---------------------------------------------------------------- */

void place_measure(struct place_work *work, uint32_t per_node, bool one_node);
/* Members that a node could hold by capacity, and today beside the pinned ones; not over per_node. */
uint32_t place_node_cap(const struct place_work *work, uint32_t position);
uint32_t place_node_now(const struct place_work *work, uint32_t position);
/* Members that an item takes today under the present measure; caps per leaf count. */
uint32_t place_hold_members(struct place_work *work, uint32_t item);
/* The same, or the whole segments. */
uint32_t place_hold(struct place_work *work, uint32_t item);
/* What place_cap() says below, by a look at every node. */
uint32_t place_cap_by_nodes(const struct place_work *work, uint32_t item, uint32_t *nodes, uint32_t *node_members);
/* Members of nodes that have these rooms, the roomiest first; in a leaf under its caps. *nodes: how many have any, and how
 * many of them count. */
uint32_t place_capped(const struct place_work *work, const uint32_t rooms[FROND_GPUS_MAX + 1], bool leaf,
		      uint32_t *nodes);
/* Fewest nodes of an item, beyond those with pinned members, that hold `members`; for 0 … most of them at once. */
uint32_t place_nodes_for(struct place_work *work, uint32_t item, uint32_t members);
void place_nodes_upto(struct place_work *work, uint32_t item, uint32_t most, uint64_t *out);
/* The other way round: members, not over `most`, on 0, 1, … further nodes. How many numbers of nodes make a difference. */
uint32_t place_members_upto(struct place_work *work, uint32_t item, uint32_t most, uint64_t *out);
/* Puts members on the nodes of an item: take[]. */
void place_fill(struct place_work *work, uint32_t item, uint32_t count);
void place_empty(struct place_work *work, uint32_t item);
/* NVLink domains of an item that take[] puts members into and pinned ones are not in. A node in none counts as one where its
 * leaf has any; all nodes of a leaf without any count as one together; where there is none at all nothing counts. */
uint32_t place_domains(const struct place_work *work, uint32_t item);
/* Adds to *gain what `members` in this item cost and bring. */
void place_gain(struct place_work *work, uint32_t item, uint32_t count, struct gain *gain);
/* The same, from what was kept if it was asked for before; steps of the budget that it takes. */
uint64_t place_gain_kept(struct place_work *work, uint32_t item, uint32_t count, struct gain *gain);
/* Below zero: a is better. Step 3; steps 4 to 6; the same for a pod of which the waste of step 5b is known. */
int place_compare_extents(const struct ask *ask, const struct extent *a, const struct extent *b);
int place_compare(const struct place_work *work, const struct gain *a, const struct gain *b);
int place_compare_pod(const struct place_work *work, const struct gain *a, struct waste waste_a, const struct gain *b,
		      struct waste waste_b);
/* Computes the weighted score of a leaf for a member of a gang that takes so many of its GPUs, and remembers it. */
uint64_t place_score(struct place_work *work, uint32_t free, uint32_t used, uint32_t total, uint32_t gpus);
/* What a member of the gang would choose on a node of this kind; 0: no set is allowed. */
uint32_t place_choose(const struct place_work *work, uint32_t slot, uint32_t free, uint32_t held, uint32_t gpus);
/* GPUs for a member of `gpus` on a node after those in taken[]; 0: none is allowed. */
uint32_t place_gpus(const struct place_work *work, uint32_t position, uint32_t gpus);
/* The bottleneck of the GPUs that the next member on this node would get; 0 for members of one GPU. */
uint32_t place_bottleneck(const struct place_work *work, uint32_t position);
/* What a member on this node adds to step 4. */
void place_link(const struct place_work *work, uint32_t slot, uint32_t set, uint32_t members, struct gain *gain);
void place_leaf_gain(struct place_work *work, uint32_t item, uint32_t members, uint32_t gpus, struct gain *gain);
void place_node_gain(const struct node *node, uint32_t gpus, struct gain *gain);

/* Of nodes of an item that nobody of the gang uses yet, how many could take so many members; under the present scope. */
struct rooms {
	uint32_t count[FROND_GPUS_MAX + 1];
	uint32_t spare; /* room on nodes that the gang uses */
	uint32_t used;  /* such nodes */
};
/* Fewest further nodes for so many members; UINT32_MAX: they do not fit. */
uint32_t rooms_fewest(const struct rooms *rooms, uint32_t members);
struct rooms place_rooms_of(const struct place_work *work, uint32_t item);
/* Puts members on the nodes at [first, end) that are in scope, which have these rooms, opening so many at most. */
void place_fill_members(struct place_work *work, uint32_t first, uint32_t end, const struct rooms *rooms,
			uint32_t members, uint32_t bound);

/* ---- place_rule.c: reference 3.3 from capacity alone. False: it does not suffice. -------------------------------------------------- */

bool place_rule(struct place_work *work);
/* A latency-sensitive gang wants the smallest domain that could hold it, whatever its strategy. */
bool place_counts_nodes(const struct place_work *work);
/* Could one NVLink domain hold the gang? */
bool place_domain_could(const struct place_work *work);

/* ---- place_segment.c: blocks of ranks that shall lie in one domain each ------------------------------------------------- */

/* Reads what the ask says of them; pins are marked, and nothing is on. */
void segments_begin(struct place_work *work);
void segments_turn(struct place_work *work, enum segments_turn turn);
/* Of the level; FROND_NONE: the node is in none. */
uint32_t segments_domain(const struct place_work *work, uint32_t position);
/* The rule with segments, where the one without has been found; false: capacity suffices for none. */
bool segments_rule(struct place_work *work);
/* Every segment that has a pinned member lies in one domain, and there is room in it for the rest. */
bool segments_ready(struct place_work *work);
/* While they are on: what an item holds and most of it under scope.per_leaf; members that so many segments of it are, with
 * the short one and those owed; may the short one be there? */
uint32_t segments_hold(struct place_work *work, uint32_t item);
uint32_t segments_most(struct place_work *work, uint32_t item);
uint32_t segments_members(const struct place_work *work, uint32_t item, uint32_t segments);
bool segments_tail_fits(struct place_work *work, uint32_t item);
uint32_t segments_nodes_for(struct place_work *work, uint32_t item, uint32_t segments);
/* Of place_nodes_upto(), and place_members_upto() beyond what the item needs anyway. */
void segments_nodes_upto(struct place_work *work, uint32_t item, uint32_t most, uint64_t *out);
uint32_t segments_upto(struct place_work *work, uint32_t item, uint32_t most, uint64_t *out);
/* Nodes that items need anyway, for what they owe and the short one. */
uint32_t segments_base(struct place_work *work);
void segments_fill(struct place_work *work, uint32_t item, uint32_t segments);
/* The same for members, or segments, of several sizes. */
bool segments_fit_rule(struct place_work *work);
bool segments_fit_span(struct place_work *work);
/* Ranks of equal members on the nodes that the best candidate takes. */
void segments_hand_out(struct place_work *work);
/* Members that an item owes to segments of pinned ones. */
uint32_t segments_owed(const struct place_work *work, uint32_t item);
/* Tries every item for today's short one, while segments are on; true: one try said so. Without a short one: one try. */
bool segments_each_tail(struct place_work *work, bool (*try)(struct place_work *work, void *context), void *context);

/* ---- place_span.c: today's nodes under the rule, or without it; the candidates go to place_see(). -------------------- */

bool place_span(struct place_work *work);
bool place_relaxed(struct place_work *work);
/* The candidate in frames[0 … depth) with its gain; true: go on. */
bool place_see(struct place_work *work, const struct gain *gain);
/* ---- place_single.c: leaves that may hold the whole gang, by their sums -------------------------------------------- */

/* Every leaf with room for what is missing is a candidate. */
void place_singles(struct place_work *work);
/* The candidate is one item that gets all that is missing. */
void place_see_single(struct place_work *work, uint32_t item);

/* ---- place_near.c --------------------------------------------------------------------------------------------------- */

/* The place that comes nearest to the rule today, and what stands in the way there. */
void place_nearest(struct place_work *work);
void place_blockers(struct place_work *work);

/* ---- place_table.c: sets of items that are not one run --------------------------------------------------------------- */

/* Fewest spines, leaves, runs (and nodes) among items [lo, hi) that hold what is missing and every pin; every set that
 * attains it is a candidate. With chain every spine of the range is used, in each one run of adjacent leaves. Does
 * nothing when the cost is over *most, and lowers it when it is under. `free`: no cost, every set is a candidate. */
void place_table(struct place_work *work, uint32_t lo, uint32_t hi, bool chain, bool free, uint64_t *most);

/* ---- place_bound.c: members of several sizes, counted, and which spans cannot hold them ----------------------------- */

/* GPUs that the gang could have of a node, and members that it could take: by capacity, or today beside the pinned. */
uint32_t pack_gpus(const struct place_work *work, uint32_t position, bool today);
uint32_t pack_members(const struct place_work *work, uint32_t position, bool today);
/* Members of one kind that a node takes by its exceptions; UINT32_MAX: as many as its GPUs allow. */
uint32_t pack_room(const struct place_work *work, uint32_t position, uint32_t kind, bool today);
/* Is the member of this kind? */
static inline bool pack_is(const struct place_work *work, uint32_t member, uint32_t kind)
{
	const struct frond_member *asked = &work->ask->members[member];
	uint32_t pod_template = work->pack.pod_template[kind];
	return asked->gpus == work->pack.size[kind] &&
	       (pod_template == FROND_NONE || asked->pod_template == pod_template);
}
/* Is the member one of those to be placed? By capacity all are. */
bool pack_counts(const struct place_work *work, uint32_t member, bool today);
/* Counts the gang and the bounds of every leaf, under the present scope; pack_measure() again, with so many on a node. */
void pack_begin(struct place_work *work, bool today);
void pack_measure(struct place_work *work, uint32_t per_node);
/* False: items [lo, hi) cannot hold the gang, whatever goes where. */
bool pack_may(const struct place_work *work, uint32_t lo, uint32_t hi);

enum pack_form {
	PACK_ANY,
	PACK_RUN,
	PACK_CHAIN
}; /* any items; a run under one spine; a run in each of a chain of spines */
enum pack_goal { PACK_FEWEST_LEAVES, PACK_FEWEST_NODES, PACK_MOST_NODES };
enum pack_answer { PACK_HOLDS, PACK_IMPOSSIBLE, PACK_CUT };
#define PACK_NONE          UINT64_MAX
#define PACK_SPINE         (1ull << 48)
#define PACK_LEAF          (1ull << 32)
#define PACK_RUN_OF_LEAVES (1ull << 16)
/* The cheapest placement of that form on items [lo, hi): its spines, leaves, runs, as the constants above weigh them, and
 * with PACK_FEWEST_NODES nodes that have no pinned member; with PACK_MOST_NODES members less nodes, and nothing else. put:
 * member_pos and take[] are set. PACK_CUT: not known. */
enum pack_answer pack_search(struct place_work *work, uint32_t lo, uint32_t hi, enum pack_form form,
			     enum pack_goal goal, bool put, uint64_t *cost);

/* ---- place_mixed.c, place_mixed_rule.c: members of several sizes ---------------------------------------------------------------------------- */

bool place_mixed_rule(struct place_work *work);
bool place_mixed_span(struct place_work *work);
bool place_mixed_relaxed(struct place_work *work);
void place_mixed_nearest(struct place_work *work);

/* ---- small things ------------------------------------------------------------------------------------------------------- */

static inline uint32_t item_start(const struct place_work *work, uint32_t item)
{
	const struct fabric *fabric = work->fabric;
	if (item < fabric->leaf_count)
		return fabric->leaf_start[item];
	return fabric->leaf_start[fabric->leaf_count] + (item - fabric->leaf_count);
}

static inline uint32_t item_end(const struct place_work *work, uint32_t item)
{
	return item_start(work, item + 1);
}

static inline uint32_t item_of(const struct place_work *work, uint32_t position)
{
	const struct fabric *fabric = work->fabric;
	uint32_t leaf = fabric->leaf_of[position];
	return leaf != FROND_NONE ? leaf : fabric->leaf_count + position - fabric->leaf_start[fabric->leaf_count];
}

static inline uint32_t item_spine(const struct place_work *work, uint32_t item)
{
	const struct fabric *fabric = work->fabric;
	return item < fabric->leaf_count ? fabric->leaf_spine[item] : fabric->spine_count + (item - fabric->leaf_count);
}

/* Of a leaf: the model of its nodes, and how they differ in what members on several of them mind. */
static inline uint32_t place_model(const struct place_work *work, uint32_t leaf)
{
	uint32_t model = work->fabric->leaf_model[leaf];
	return work->scope.one_node ? model & ~(uint32_t)LEAF_SPLIT : model;
}

/* Does it matter which nodes of the item are in one NVLink domain? */
static inline bool item_split(const struct place_work *work, uint32_t item)
{
	return work->fabric->split && item < work->fabric->leaf_count && (place_model(work, item) & LEAF_SPLIT) != 0;
}

/* Its link is under the floor: no gang may cross it. */
static inline bool item_slow(const struct place_work *work, uint32_t item)
{
	uint32_t uplink = item < work->fabric->leaf_count ? work->fabric->leaf_uplink[item] : 0;
	return uplink != 0 && uplink < work->ask->bandwidth_gbps;
}

static inline uint64_t place_leaf_score(struct place_work *work, uint32_t free, uint32_t used, uint32_t total,
					uint32_t gpus)
{
	const struct score *score = &work->scores[free % SCORES];
	if (score->free == free && score->used == used && score->total == total && score->gpus == gpus &&
	    score->plan == work->plan)
		return score->value;
	return place_score(work, free, used, total, gpus);
}

static inline enum room_when place_when(const struct place_work *work, bool today)
{
	return today ? ROOM_TODAY : work->scope.ever ? ROOM_EVER : ROOM_RULE;
}

/* Members that a node takes by its exceptions, whichever template they are of; UINT32_MAX: as many as its GPUs allow. */
static inline uint32_t place_room(const struct place_work *work, uint32_t position, bool today)
{
	return work->limit[position] == 0 ? UINT32_MAX : place_room_listed(work, position, place_when(work, today));
}

/* GPUs of a node that count as capacity. */
static inline uint32_t place_cap_mask(const struct place_work *work, const struct node *node)
{
	return work->scope.ever ? bits_first(node->gpus) : node_capacity_mask(node);
}

/* What the sums of a leaf say that it takes. Of a leaf with an exception: at most. */
static inline uint32_t leaf_hold(const struct place_work *work, const struct leaf_sum *leaf)
{
	if (work->scope.one_node) {
		uint64_t gpus = (uint64_t)work->gang.missing * work->gang.size;
		return gpus <= FROND_GPUS_MAX && leaf->at_least[gpus] > 0 ? work->gang.missing : 0;
	}
	uint32_t members = leaf->at_least[work->gang.size];
	for (uint32_t gpus = 2 * work->gang.size; gpus <= work->scope.counted_gpus; gpus += work->gang.size)
		members += leaf->at_least[gpus];
	return members;
}

/* Further candidates are looked at only if the budget allows; the first always is. */
static inline void place_pay(struct place_work *work, uint64_t steps)
{
	if (work->candidates.best.found && !budget_take(&work->budget, steps))
		work->candidates.stop = true;
}

/* The leaf has counted its capacity: every node is like the first, or takes nobody. One that lacks some of its GPUs takes
 * nobody if a member wants all of them. */
static inline bool place_cap_counted(const struct place_work *work, uint32_t leaf)
{
	const struct fabric *fabric = work->fabric;
	uint32_t kind = fabric->leaf_kind[leaf], by_nodes = EXCEPTED_CAPACITY;
	if (work->scope.ever && (work->rooms_lack || fabric->leaf_lacking[leaf] > 0))
		by_nodes = EXCEPTED; /* leaf_never is for the rule */
	if (!work->scope.counted || kind == KIND_NONE || work->leaf_excepted[leaf] & by_nodes ||
	    work->ask->bandwidth_gbps > fabric->leaf_slowest[leaf])
		return false;
	return work->scope.ever || fabric->leaf_lacking[leaf] == 0 || fabric->leaf[leaf].odd == 0 ||
	       work->gang.size >= (kind & UINT8_MAX);
}

/* Members and nodes of an item by capacity, and the most on one node. */
static inline uint32_t place_cap(const struct place_work *work, uint32_t item, uint32_t *nodes, uint32_t *node_members)
{
	const struct fabric *fabric = work->fabric;
	if (item >= fabric->leaf_count || !place_cap_counted(work, item))
		return place_cap_by_nodes(work, item, nodes, node_members);
	uint32_t each = (fabric->leaf_kind[item] & UINT8_MAX) / work->gang.size;
	uint32_t nobody = work->leaf_never[item] + (work->scope.ever ? 0u : fabric->leaf_lacking[item]);
	*nodes = each > 0 ? leaf_nodes(fabric, item) - nobody : 0;
	*node_members = *nodes > 0 ? each : 0;
	return *nodes * each;
}

/* Does the spine have another capacity than those of its shape? */
static inline bool place_own_capacity(const struct place_work *work, uint32_t spine)
{
	return !work->scope.shaped || work->spine_excepted[spine] ||
	       (!work->scope.ever && work->fabric->spine[spine].lacking > 0);
}

/* No run of this spine can hold what is missing: its sums say so without a look at its leaves. */
static inline bool place_hopeless(const struct place_work *work, uint32_t spine)
{
	const struct spine_sum *sum = &work->fabric->spine[spine];
	if (work->scope.one_node) {
		uint64_t gpus = (uint64_t)work->gang.missing * work->gang.size;
		return gpus > FROND_GPUS_MAX || sum->at_least[gpus] == 0;
	}
	uint64_t members = sum->at_least[work->gang.size];
	for (uint32_t gpus = 2 * work->gang.size; gpus <= work->scope.counted_gpus; gpus += work->gang.size)
		members += sum->at_least[gpus];
	return members < work->gang.missing;
}

/* Pinned members; the short segment that has its place counts as one more. */
static inline uint32_t item_pin(const struct place_work *work, uint32_t item)
{
	return (item < work->fabric->leaf_count ? work->leaf_pin[item] : work->pin[item_start(work, item)]) +
	       (item == work->segments.tail_item);
}

/* Members that a count of a candidate stands for. */
static inline uint32_t item_members(const struct place_work *work, uint32_t item, uint32_t count)
{
	return work->segments.on ? segments_members(work, item, count) : count;
}

/* Members that the item takes, no more than per_leaf with the pinned ones. */
static inline uint32_t item_most(struct place_work *work, uint32_t item)
{
	if (work->segments.on)
		return segments_most(work, item);
	uint32_t pinned = item_pin(work, item);
	return min_u32(place_hold(work, item), work->scope.per_leaf > pinned ? work->scope.per_leaf - pinned : 0);
}

/* An item that a gang over several items may use. */
static inline bool item_usable(struct place_work *work, uint32_t item)
{
	return !item_slow(work, item) && (item_pin(work, item) > 0 || place_hold(work, item) > 0);
}

/* Nodes may take more than one member: fewest nodes is a question. */
static inline bool place_shares(const struct place_work *work)
{
	return work->ask->strategy == STRATEGY_CONSOLIDATED && !work->answer->whole_nodes && !work->scope.one_node;
}

/* A node without a leaf or NVLink domain takes no segment of that level. */
static inline bool place_admits(const struct place_work *work, uint32_t position)
{
	return !(work->scope.leafed && work->fabric->leaf_of[position] == FROND_NONE) &&
	       !(work->scope.linked && work->fabric->domain_of[position] == FROND_NONE);
}

static inline bool place_in_domain(const struct place_work *work, uint32_t position)
{
	uint32_t domain = work->fabric->domain_of[position];
	if (!place_admits(work, position))
		return false;
	return (work->scope.domain == FROND_NONE || work->scope.domain == domain) &&
	       (work->scope.preferred == FROND_NONE || work->scope.preferred == domain);
}

/* Is every pinned member inside the NVLink domain in question? */
static inline bool place_pins_in_domain(const struct place_work *work)
{
	for (uint32_t i = 0; work->gang.pins > 0 && i < work->ask->count; i++) {
		const struct frond_member *member = &work->ask->members[i];
		if (member->gpus > 0 && member->pinned_slot != FROND_NONE &&
		    !place_in_domain(work, work->fabric->position[member->pinned_slot]))
			return false;
	}
	return true;
}

/* ---- untouched spines of one shape: they have the same candidates -------------------------------------------------- */

static inline void place_alike_forget(struct place_work *work)
{
	memset(work->candidates.alike_seen, 0, work->fabric->spine_count * sizeof *work->candidates.alike_seen);
}

static inline bool place_untouched(const struct place_work *work, uint32_t spine)
{
	return work->scope.alike && work->fabric->spine[spine].touched == 0 && !work->spine_excepted[spine];
}

/* Candidates of a later one lose to those of the first by position: they are counted and not looked at. */
static inline bool place_alike_seen(struct place_work *work, uint32_t spine, bool counting)
{
	uint32_t before = work->candidates.alike_seen[work->fabric->spine[spine].shape];
	if (!place_untouched(work, spine) || before == 0)
		return false;
	if (counting) {
		work->candidates.stop = work->candidates.seen + (before - 1) > FROND_CANDIDATES;
		work->candidates.seen = min_u32(work->candidates.seen + (before - 1), FROND_CANDIDATES);
	}
	return true;
}

static inline void place_alike_remember(struct place_work *work, uint32_t spine, uint32_t candidates)
{
	if (place_untouched(work, spine) && !work->candidates.stop)
		work->candidates.alike_seen[work->fabric->spine[spine].shape] = candidates + 1;
}

#endif
