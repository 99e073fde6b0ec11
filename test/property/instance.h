/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instance.h - part of oracle.c: what a small cluster with its jobs is made of.
 *
 * Knows nothing of rules or answers. Everything is in fabric order: an index in an array is a position in the fabric.
 */
#ifndef FROND_TEST_INSTANCE_H
#define FROND_TEST_INSTANCE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum {
	SPINES_MAX = 4,
	LOOSE_MAX = 2, /* nodes without a leaf */
	LEAVES_PER_SPINE_MAX = 4,
	LEAVES_MAX = SPINES_MAX * LEAVES_PER_SPINE_MAX,
	NODES_PER_LEAF_MAX = 4,
	NODES_MAX = 16,
	GPUS_MAX = 8,
	SETS = 1 << GPUS_MAX,
	MODELS_NONE = GPUS_MAX + 1, /* models[0] to [8]: no model, so many GPUs */
	MODELS_MAX = MODELS_NONE + 11,
	MEMBERS_MAX = 8,
	ENTRIES_MAX = 8, /* jobs and removals */
	FAILURES_MAX = 3,
	ENDS_MAX = 90,
	NAME_SIZE = 24,
};

enum mode { MODE_REQUIRED, MODE_PREFERRED, MODE_IGNORE, MODES };
enum strategy { STRATEGY_CONSOLIDATED, STRATEGY_BALANCED, STRATEGY_DISTRIBUTED, STRATEGIES };
enum policy { POLICY_CONTIGUOUS, POLICY_SPREAD, POLICY_PREFER_IDS, POLICIES };
enum locality { LOCALITY_ANY, LOCALITY_SAME_NODE, LOCALITY_SAME_SOCKET, LOCALITY_NVLINK, LOCALITIES };
enum recovery { RECOVERY_REPLACE, RECOVERY_MOVE_GANG, RECOVERY_WAIT, RECOVERIES };
enum verb { VERB_PLAN, VERB_RECOVER, VERB_DEFRAG, VERB_PREEMPT, VERB_RESERVE, VERBS };

static const char *const MODE_NAMES[MODES] = {"Required", "Preferred", "Ignore"};
static const char *const STRATEGY_NAMES[STRATEGIES] = {"consolidated", "balanced", "distributed"};
static const char *const POLICY_NAMES[POLICIES] = {"contiguous", "spread", "preferIds"};
static const char *const LOCALITY_NAMES[LOCALITIES] = {"any", "same-node", "same-socket", "nvlink"};
static const char *const RECOVERY_NAMES[RECOVERIES] = {"Replace", "MoveGang", "Wait"};
static const char *const VERB_NAMES[VERBS] = {"plan", "recover", "defrag", "preempt", "reserve"};

struct model { /* its first eight GPUs: no node here has more */
	char name[NAME_SIZE];
	bool own; /* defined in the fabric file */
	bool numa_given;
	int gpus;
	int numa[GPUS_MAX];
	int links[GPUS_MAX][GPUS_MAX]; /* GB/s */
};

struct node {
	char name[NAME_SIZE];
	int leaf;
	int gpus;
	int model;         /* what the node has in the end */
	bool model_given;  /* in its own entry of the file, not from the defaults */
	bool gpus_implied; /* the entry names the model and leaves the number to it */
	int uplink_gbps;   /* 0: unlimited */
	unsigned used_mask, unhealthy_mask;
	bool cordoned;
	char clique[NAME_SIZE]; /* label nvidia.com/gpu.clique; empty: none */
	char zone;              /* label zone; 0: none */
};

struct leaf {
	char name[NAME_SIZE];
	int spine;
	int uplink_gbps; /* 0: unlimited */
	bool loose;      /* no leaf: a node that has none, by itself, under a spine that the fabric does not count */
};

struct fabric {
	int spine_count, leaf_count, node_count, model_count;
	char spine_names[SPINES_MAX + LOOSE_MAX][NAME_SIZE]; /* the latter are empty */
	struct leaf leaves[LEAVES_MAX];
	struct node nodes[NODES_MAX];
	struct model models[MODELS_MAX];
	int default_gpus; /* 0: the file has no defaults */
	int default_model;
	int default_uplink_gbps;
};

struct claim {
	bool given;
	enum policy policy;
	enum mode mode;
	bool mode_given;
	enum locality locality;
	int min_gbps;
	unsigned prefer_mask; /* by index, on every node */
	int prefer_node;      /* by id, on one node; -1: none */
	unsigned prefer_node_mask;
	char zone; /* selector.matchLabels; 0: none */
};

struct job {
	char name[NAME_SIZE];
	int removes; /* entry of the job that is given back; -1: this is a job */
	int members;
	int sizes[MEMBERS_MAX];
	bool sizes_as_list;
	int min_member; /* 0: not given */
	int gpu_count;  /* 0: not given */
	enum mode mode;
	bool mode_given;
	enum strategy strategy;
	bool strategy_given;
	int floor_gbps; /* 0: not given */
	const char *floor_text;
	char preferred[NAME_SIZE]; /* empty: not given */
	bool latency_sensitive;
	enum recovery recovery;
	bool recovery_given;
	int priority;
	bool budgeted;
	bool ends_given;
	int ends_m; /* minutes from now, at most ENDS_MAX */
	struct claim claim;
};

struct failure {
	int node;
	int gpu; /* -1: the whole node */
};

struct instance {
	struct fabric fabric;
	int entry_count;
	struct job entries[ENTRIES_MAX];
	int failure_count; /* recover */
	struct failure failures[FAILURES_MAX];
	int defrag_for; /* defrag, preempt, reserve: the entry that is to fit */
};

/* All jobs run but one, which is asked about. */
static bool skips_one(enum verb verb)
{
	return verb == VERB_DEFRAG || verb == VERB_PREEMPT || verb == VERB_RESERVE;
}

/* The default claim: what a job without one asks for. */
static const struct claim CLAIM_NONE = {.mode = MODE_PREFERRED, .prefer_node = -1};

/* Members without GPUs have no size. */
static bool sizes_equal(const struct job *job, int members)
{
	int size = 0;
	for (int rank = 0; rank < members; rank++) {
		if (job->sizes[rank] == 0)
			continue;
		if (size > 0 && job->sizes[rank] != size)
			return false;
		size = job->sizes[rank];
	}
	return true;
}

static int job_total_gpus(const struct job *job)
{
	int total = 0;
	for (int rank = 0; rank < job->members; rank++)
		total += job->sizes[rank];
	return total;
}

static bool model_is_named(const struct fabric *fabric, int model)
{
	return fabric->models[model].name[0] != '\0';
}

static unsigned node_all(const struct node *node)
{
	return (1u << node->gpus) - 1;
}

static int mask_count(unsigned mask)
{
	return __builtin_popcount(mask);
}

static int node_by_name(const struct fabric *fabric, const char *name)
{
	for (int n = 0; n < fabric->node_count; n++)
		if (strcmp(fabric->nodes[n].name, name) == 0)
			return n;
	return -1;
}

static int job_by_name(const struct instance *instance, const char *name)
{
	for (int e = 0; e < instance->entry_count; e++)
		if (instance->entries[e].removes < 0 && strcmp(instance->entries[e].name, name) == 0)
			return e;
	return -1;
}

#endif
