/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input.h - a cluster and one call on it, as a few numbers with names: what the search rolls, changes a little, prints and
 * reads back. Owns their ranges and their text; knows nothing of the engine.
 */
#ifndef FROND_SLOWEST_INPUT_H
#define FROND_SLOWEST_INPUT_H

#include <stdbool.h>
#include <stdint.h>

/* name, least, most, values that are worth trying, separated by blanks. First what makes the cluster, then the call. */
#define INPUT_NUMBERS(X)                                                                                               \
	X(NODES, "nodes", 100, 100000, "100 1000 5000 10000 30000 100000")                                             \
	X(LEAF, "leaf", 0, 5000, "0 1 2 8 16 18 32 32 64 5000") /* nodes of a leaf; 0: no leaves */                    \
	X(SPINE, "spine", 1, 20000, "1 2 4 16 32 500 20000")    /* leaves of a spine */                                \
	X(RACK, "rack", 0, 5000, "0 0 0 0 1 2 16 18 72")        /* nodes of an NVLink domain; 0: no domains */         \
	X(LOOSE, "loose", 0, 100, "0 0 0 0 10")                 /* percent of the nodes have no leaf */                \
	X(KINDS, "kinds", 1, 255, "1 1 2 3 4 8 8 16 32 64 9")   /* bit by bit: enum node_kind */                       \
	X(MIX, "mix", 0, 2, "0 1 2")                            /* kinds differ by node, leaf, spine */                \
	X(USED, "used", 0, 100, "0 10 50 90 100 100")           /* percent of the nodes */                             \
	X(USE, "use", 0, 5, "0 1 2 3 4 5")                      /* how: enum use */                                    \
	X(GANG, "gang", 1, 16384, "1 1 2 4 8 64 512 8192")      /* nodes of a running gang */                          \
	X(SPARE, "spare", 0, 100, "0 0 50 100")                 /* percent of its members that it can do without */    \
	X(LEVELS, "levels", 1, 100, "1 7 100")                  /* different priorities of running gangs */            \
	X(SICK, "sick", 0, 100, "0 0 10")                       /* percent of the nodes have unhealthy GPUs */         \
	X(CLOSED, "closed", 0, 100, "0 0 1 10")                 /* percent are cordoned or down */                     \
	X(SLOW, "slow", 0, 100, "0 0 10")                       /* percent have a slow uplink */                       \
	X(SEED, "seed", 0, 999999, "1 2 3")                                                                            \
	X(CALL, "call", 0, 99, "0") /* enum call; see input_roll() */                                                  \
	X(MEMBERS, "members", 1, 16384, "1 2 8 32 64 128 512 1024 2200 4096 8192 16384")                               \
	X(GPUS, "gpus", 1, 16, "1 1 2 3 4 7 8 8 8 16")                                                                 \
	X(SECOND, "second", 0, 16, "0 0 0 1 2 7 8") /* size of other members; 0: all are alike */                      \
	X(SECOND_COUNT, "second-count", 1, 8192, "1 1 2 8 64 512")                                                     \
	X(THIRD, "third", 0, 16, "0 0 0 1 3")                                                                          \
	X(THIRD_COUNT, "third-count", 1, 8192, "1 2 64")                                                               \
	X(STRATEGY, "strategy", 0, 2, "0 1 2")                                                                         \
	X(MODE, "mode", 0, 2, "0 1 1 2")                                                                               \
	X(LATENCY, "latency", 0, 1, "0 0 0 0 1")                                                                       \
	X(BANDWIDTH, "bandwidth", 0, 800, "0 0 0 0 100 200 400")                                                       \
	X(DOMAIN, "domain", 0, 3, "0 0 0 1 2 3") /* preferred: none, a leaf, a spine, one that is not there */         \
	X(CLAIM, "claim", 0, 1, "0 0 0 1")                                                                             \
	X(POLICY, "policy", 0, 2, "0 1 2")                                                                             \
	X(CLAIM_MODE, "claim-mode", 0, 2, "0 0 1")                                                                     \
	X(LOCALITY, "locality", 0, 2, "0 1 2")                                                                         \
	X(LINK, "link", 0, 900, "0 0 1 25 50 300 450") /* GB/s inside of the set */                                    \
	X(ROOM, "room", 0, 100, "0 0 1 50 100")        /* percent of the nodes where it binds */                       \
	X(ROOM_LEFT, "room-left", 0, 8, "0 0 1 2")     /* members that fit there */                                    \
	X(PINS, "pins", 0, 64, "0 0 0 0 1 8")          /* members that run already */                                  \
	X(ONLY, "only", 0, 1, "0 0 0 0 0 0 0 0 1")     /* one node alone is asked about */                             \
	X(THRIFT, "thrift", 0, 64, "0 0 1 8 64")       /* kinds of pods that order() expects */                        \
	X(PRIORITY, "priority", 0, 100, "3 100 100")                                                                   \
	X(LOST, "lost", 1, 512, "1 1 2 8 64") /* nodes that fail before recover() */                                   \
	X(RECOVERY, "recovery", 0, 2, "0 0 1 1 2")                                                                     \
	X(DICE, "dice", 0, 999999, "1 2 3")

enum number {
#define X(id, name, least, most, values) N_##id,
	INPUT_NUMBERS(X)
#undef X
		NUMBERS,
	CLUSTER_NUMBERS = N_CALL /* the first so many make the cluster */
};

enum node_kind {
	KIND_H100,
	KIND_DGX1V,
	KIND_DGX2,
	KIND_UNEVEN,
	KIND_PAIRS,
	KIND_GB200,
	KIND_PCIE,
	KIND_ODD,
	NODE_KINDS
};
enum use { USE_WHOLE, USE_ONE, USE_MASK, USE_COUNT, USE_HALF, USE_ALL_BUT_ONE };

#define CALLS(X)                                                                                                       \
	X(PLAN, "plan", 40)                                                                                            \
	X(ORDER, "order", 10)                                                                                          \
	X(RECOVER, "recover", 10)                                                                                      \
	X(VICTIMS, "victims", 15)                                                                                      \
	X(WINDOW, "window", 5)                                                                                         \
	X(DEFRAG, "defrag", 10)                                                                                        \
	X(RESERVE, "reserve", 1)                                                                                       \
	X(RELEASE, "release_gang", 1)                                                                                  \
	X(UNDO, "undo", 1)                                                                                             \
	X(TICK, "tick", 1)                                                                                             \
	X(NODE_PUT, "node_put", 1)                                                                                     \
	X(NODE_REMOVE, "node_remove", 1)                                                                               \
	X(POD_PUT, "pod_put", 1)                                                                                       \
	X(REBUILD, "rebuild", 1) /* a plan after a node has changed its place */                                       \
	X(TOPOLOGY, "topology_put", 1)                                                                                 \
	X(DUMP, "dump", 1)                                                                                             \
	X(CHECK, "check", 1)                                                                                           \
	X(MAP, "map", 1)                                                                                               \
	X(STATS, "stats", 1)                                                                                           \
	X(PROBLEMS, "problems", 1)

enum call {
#define X(id, name, share) CALL_##id,
	CALLS(X)
#undef X
		CALL_KINDS
};

struct input {
	uint32_t number[NUMBERS];
};

struct dice {
	uint64_t state;
};
uint32_t below(struct dice *dice, uint32_t limit);
bool percent(struct dice *dice, uint32_t chance);

/* Rolls the numbers [from, to). */
void input_roll(struct input *input, struct dice *dice, uint32_t from, uint32_t to, uint32_t nodes_most);
/* Changes one to three of them. */
void input_change(struct input *input, struct dice *dice, uint32_t from, uint32_t to, uint32_t nodes_most);
/* What does not matter for this call becomes least. */
void input_trim(struct input *input);
/* "nodes=100 leaf=8 …": numbers that are least are left out. */
void input_print(const struct input *input, char *text, uint32_t cap);
/* The same back; what is not named is least. False: a word is not one of ours, or out of range. */
bool input_read(struct input *input, const char *text);

const char *call_name(uint32_t call);
/* CALL_KINDS: there is none of this name. */
uint32_t call_named(const char *name, uint32_t len);

#endif
