/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instance.h - part of oracle.c: one small random cluster with its jobs, and how it is made from (seed, index).
 *
 * Knows nothing of rules or answers. Everything is in fabric order: an index in an array is a position in the fabric.
 */
#ifndef FROND_TEST_INSTANCE_H
#define FROND_TEST_INSTANCE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum {
	SPINES_MAX = 3,
	LEAVES_PER_SPINE_MAX = 4,
	LEAVES_MAX = SPINES_MAX * LEAVES_PER_SPINE_MAX,
	NODES_PER_LEAF_MAX = 4,
	NODES_MAX = 14, /* eight members on fourteen nodes are 203,490 placements: few enough to look at each */
	GPUS_MAX = 8,
	MEMBERS_MAX = 8,
	ENTRIES_MAX = 8, /* jobs and removals */
	NAME_SIZE = 24,
};

enum mode { MODE_REQUIRED, MODE_PREFERRED, MODE_IGNORE };
enum strategy { STRATEGY_CONSOLIDATED, STRATEGY_BALANCED, STRATEGY_DISTRIBUTED };

static const char *const MODE_NAMES[] = {"Required", "Preferred", "Ignore"};
static const char *const STRATEGY_NAMES[] = {"consolidated", "balanced", "distributed"};

struct node {
	char name[NAME_SIZE];
	int leaf;
	int gpus;
	const char *model; /* NULL: what the defaults say */
	int uplink_gbps;   /* 0: unlimited */
	unsigned used_mask, unhealthy_mask;
	bool cordoned;
};

struct leaf {
	char name[NAME_SIZE];
	int spine;
	int uplink_gbps; /* 0: unlimited */
};

struct fabric {
	int spine_count, leaf_count, node_count;
	char spine_names[SPINES_MAX][NAME_SIZE];
	struct leaf leaves[LEAVES_MAX];
	struct node nodes[NODES_MAX];
	int default_gpus; /* 0: the file has no defaults */
	const char *default_model;
	int default_uplink_gbps;
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
};

struct instance {
	struct fabric fabric;
	int entry_count;
	struct job entries[ENTRIES_MAX];
};

static bool job_has_equal_sizes(const struct job *job)
{
	for (int rank = 1; rank < job->members; rank++)
		if (job->sizes[rank] != job->sizes[0])
			return false;
	return true;
}

static int job_total_gpus(const struct job *job)
{
	int total = 0;
	for (int rank = 0; rank < job->members; rank++)
		total += job->sizes[rank];
	return total;
}

/* ---- chance: splitmix64, so that (seed, index) is all that a rerun needs --------------------------------------- */

struct chance {
	uint64_t state;
};

static uint64_t chance_next(struct chance *chance)
{
	uint64_t z = (chance->state += UINT64_C(0x9e3779b97f4a7c15));
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static int chance_below(struct chance *chance, int bound)
{
	return (int)(chance_next(chance) % (uint64_t)bound);
}

static bool chance_percent(struct chance *chance, int percent)
{
	return chance_below(chance, 100) < percent;
}

/* The index of a weight, drawn in proportion to the weights. */
static int chance_weighted(struct chance *chance, const int *weights, int count)
{
	int total = 0;
	for (int i = 0; i < count; i++)
		total += weights[i];
	int drawn = chance_below(chance, total);
	int i = 0;
	while (drawn >= weights[i])
		drawn -= weights[i++];
	return i;
}

static struct chance chance_for(uint64_t seed, uint64_t index)
{
	struct chance chance = {seed};
	chance.state = chance_next(&chance) ^ (index * UINT64_C(0xd1342543de82ef95));
	chance_next(&chance);
	return chance;
}

/* ---- the fabric ------------------------------------------------------------------------------------------------- */

/* Numbers for names: rising, falling or shuffled, because the file's order decides and not the natural one. */
static void make_numbers(struct chance *chance, int *numbers, int count)
{
	const int weights[] = {40, 25, 35};
	int kind = chance_weighted(chance, weights, 3);
	for (int i = 0; i < count; i++)
		numbers[i] = kind == 1 ? count + 8 - i : i + 1;
	for (int i = count - 1; kind == 2 && i > 0; i--) {
		int other = chance_below(chance, i + 1);
		int kept = numbers[i];
		numbers[i] = numbers[other];
		numbers[other] = kept;
	}
}

/* A third of the trees is thin: three spines of few small leaves, where gangs must span spines. A wrong choice of
 * spines was once found in 1 of 30,000 instances without them. */
static void make_tree(struct chance *chance, struct fabric *fabric)
{
	static const int spine_weights[2][SPINES_MAX] = {{40, 40, 20}, {0, 10, 90}};
	static const int leaf_weights[2][LEAVES_PER_SPINE_MAX] = {{15, 30, 30, 25}, {35, 40, 25, 0}};
	static const int node_weights[2][NODES_PER_LEAF_MAX + 1] = {{6, 26, 32, 18, 18}, {8, 52, 40, 0, 0}};
	int thin = chance_percent(chance, 33);

	int spines = 1 + chance_weighted(chance, spine_weights[thin], SPINES_MAX);
	while (fabric->spine_count < spines && fabric->node_count < NODES_MAX) {
		int s = fabric->spine_count++;
		int leaves = 1 + chance_weighted(chance, leaf_weights[thin], LEAVES_PER_SPINE_MAX);
		for (int l = 0; l < leaves && fabric->node_count < NODES_MAX; l++) {
			int leaf = fabric->leaf_count++;
			fabric->leaves[leaf].spine = s;
			int nodes = chance_weighted(chance, node_weights[thin], NODES_PER_LEAF_MAX + 1);
			while (nodes-- > 0 && fabric->node_count < NODES_MAX)
				fabric->nodes[fabric->node_count++].leaf = leaf;
		}
	}
	if (fabric->node_count == 0)
		fabric->nodes[fabric->node_count++].leaf = 0;
}

static void make_names(struct chance *chance, struct fabric *fabric)
{
	int numbers[NODES_MAX];

	make_numbers(chance, numbers, fabric->spine_count);
	for (int s = 0; s < fabric->spine_count; s++)
		snprintf(fabric->spine_names[s], NAME_SIZE, "spine-%d", numbers[s]);
	make_numbers(chance, numbers, fabric->leaf_count);
	for (int l = 0; l < fabric->leaf_count; l++)
		snprintf(fabric->leaves[l].name, NAME_SIZE, "leaf-%d", numbers[l]);
	make_numbers(chance, numbers, fabric->node_count);
	for (int n = 0; n < fabric->node_count; n++)
		snprintf(fabric->nodes[n].name, NAME_SIZE, "node-%d", numbers[n]);
}

/* A model that has at least this many GPUs, or none. GB200 is left out: its NVLink domain spans nodes. */
static const char *make_model(struct chance *chance, int gpus)
{
	static const char *const eight[] = {NULL, "H100-SXM", "A100-SXM", "B200-SXM", "MI300X", "DGX-1V", "PCIE-8"};
	static const char *const four[] = {NULL, "PCIE-4", "box-4", "H100-SXM"};
	return gpus > 4 ? eight[chance_below(chance, 7)] : four[chance_below(chance, 4)];
}

static void make_gpus(struct chance *chance, struct fabric *fabric)
{
	const int size_weights[] = {6, 14, 25, 55};
	bool mixed = chance_percent(chance, 30);

	fabric->default_gpus = 1 << chance_weighted(chance, size_weights, 4);
	fabric->default_model = make_model(chance, fabric->default_gpus);
	for (int n = 0; n < fabric->node_count; n++) {
		struct node *node = &fabric->nodes[n];
		node->gpus = fabric->default_gpus;
		if (!mixed || chance_percent(chance, 55))
			continue;
		node->gpus = 1 << chance_weighted(chance, size_weights, 4);
		/* A node may have fewer GPUs than its model, never more. */
		if (node->gpus > fabric->default_gpus && fabric->default_model)
			node->model = node->gpus > 4 ? "H100-SXM" : "PCIE-4";
		else if (chance_percent(chance, 50))
			node->model = make_model(chance, node->gpus);
	}
	if (chance_percent(chance, 10)) { /* no defaults: every node says what it has */
		fabric->default_gpus = 0;
		fabric->default_model = NULL;
	}
}

static unsigned make_mask(struct chance *chance, int gpus)
{
	return (unsigned)chance_below(chance, 1 << gpus);
}

/* Takes a whole leaf or spine, so that what lies on both sides of it is no longer adjacent. */
static void take_domain(struct chance *chance, struct fabric *fabric)
{
	int leaf = chance_below(chance, fabric->leaf_count);
	bool only_leaf = chance_percent(chance, 50);

	for (int n = 0; n < fabric->node_count; n++) {
		struct node *node = &fabric->nodes[n];
		bool same_spine = fabric->leaves[node->leaf].spine == fabric->leaves[leaf].spine;
		if (only_leaf ? node->leaf == leaf : same_spine)
			node->used_mask = (1u << node->gpus) - 1;
	}
}

/* What the day brings: use, bad GPUs, cordons. */
static void make_weather(struct chance *chance, struct fabric *fabric)
{
	const int busy_percent[] = {0, 15, 30, 50, 5}; /* the last with a domain taken: else little would be left */
	int kind = chance_below(chance, 5);

	for (int n = 0; n < fabric->node_count; n++) {
		struct node *node = &fabric->nodes[n];
		if (chance_percent(chance, busy_percent[kind]))
			node->used_mask =
				chance_percent(chance, 50) ? (1u << node->gpus) - 1 : make_mask(chance, node->gpus);
		if (chance_percent(chance, 4))
			node->unhealthy_mask = make_mask(chance, node->gpus);
		node->cordoned = chance_percent(chance, 5);
	}
	if (kind == 4)
		take_domain(chance, fabric);
}

static bool make_speeds(struct chance *chance, struct fabric *fabric)
{
	static const int speeds[] = {50, 100, 200, 400, 1600};

	if (!chance_percent(chance, 35))
		return false;
	if (chance_percent(chance, 50) && fabric->default_gpus > 0)
		fabric->default_uplink_gbps = speeds[1 + chance_below(chance, 4)];
	for (int n = 0; n < fabric->node_count; n++) {
		fabric->nodes[n].uplink_gbps = fabric->default_uplink_gbps;
		if (chance_percent(chance, 20))
			fabric->nodes[n].uplink_gbps = speeds[chance_below(chance, 5)];
	}
	for (int l = 0; l < fabric->leaf_count; l++)
		if (chance_percent(chance, 40))
			fabric->leaves[l].uplink_gbps = speeds[chance_below(chance, 5)];
	return true;
}

/* ---- the jobs --------------------------------------------------------------------------------------------------- */

static int places_on_empty_fabric(const struct fabric *fabric, int size)
{
	int places = 0;
	for (int n = 0; n < fabric->node_count; n++)
		places += fabric->nodes[n].gpus / size;
	return places;
}

/* Members that mostly, not always, fit into the empty cluster: gangs that never fit are easily answered. */
static void make_members(struct chance *chance, const struct fabric *fabric, struct job *job)
{
	const int size_weights[] = {15, 22, 28, 35};
	int size = 1, places = 0;

	for (int attempt = 0; attempt < 4 && places == 0; attempt++) {
		size = 1 << chance_weighted(chance, size_weights, 4);
		places = places_on_empty_fabric(fabric, size);
	}
	int most = places < MEMBERS_MAX && places > 0 && chance_percent(chance, 90) ? places : MEMBERS_MAX;
	job->members = 1 + chance_below(chance, most);
	if (job->members < 3 && chance_percent(chance, 60)) /* small gangs are easy, too */
		job->members = 1 + chance_below(chance, most);
	bool mixed = chance_percent(chance, 10);
	for (int rank = 0; rank < job->members; rank++)
		job->sizes[rank] = mixed ? 1 << chance_below(chance, 4) : size;
	job->sizes_as_list = !job_has_equal_sizes(job) || chance_percent(chance, 10);
	if (job_has_equal_sizes(job) && job->members > 1 && chance_percent(chance, 6))
		job->min_member = 1 + chance_below(chance, job->members);
	if (job_has_equal_sizes(job) && chance_percent(chance, 8)) /* a quarter of them wrong */
		job->gpu_count = job_total_gpus(job) + (chance_percent(chance, 25) ? job->sizes[0] : 0);
}

static void make_wishes(struct chance *chance, const struct fabric *fabric, bool speeds_matter, struct job *job)
{
	static const struct {
		const char *text;
		int gbps;
	} floors[] = {{"50Gb", 50}, {"100Gb", 100}, {"200Gb", 200}, {"400Gb", 400}, {"1.6Tb", 1600}};
	const int mode_weights[] = {50, 30, 20};

	job->mode = (enum mode)chance_weighted(chance, mode_weights, 3);
	job->mode_given = job->mode != MODE_REQUIRED || chance_percent(chance, 50);
	job->strategy = (enum strategy)chance_below(chance, 3);
	job->strategy_given = job->strategy != STRATEGY_BALANCED || chance_percent(chance, 50);
	if (chance_percent(chance, speeds_matter ? 60 : 4)) {
		int floor = chance_percent(chance, 90) ? chance_below(chance, 4) : 4;
		job->floor_gbps = floors[floor].gbps;
		job->floor_text = floors[floor].text;
	}
	if (chance_percent(chance, 22)) {
		int kind = chance_below(chance, 8);
		const char *name = kind == 0  ? "leaf-77"
				   : kind < 4 ? fabric->spine_names[chance_below(chance, fabric->spine_count)]
					      : fabric->leaves[chance_below(chance, fabric->leaf_count)].name;
		snprintf(job->preferred, NAME_SIZE, "%s", name);
	}
	job->latency_sensitive = chance_percent(chance, 6);
}

static void make_jobs(struct chance *chance, bool speeds_matter, struct instance *instance)
{
	int jobs = 1 + chance_below(chance, 4);
	bool removed[ENTRIES_MAX] = {false};

	for (int j = 0; j < jobs; j++) {
		struct job *job = &instance->entries[instance->entry_count];
		snprintf(job->name, NAME_SIZE, "job-%c", 'a' + j);
		job->removes = -1;
		make_members(chance, &instance->fabric, job);
		make_wishes(chance, &instance->fabric, speeds_matter, job);
		instance->entry_count++;
		if (j == jobs - 1 || !chance_percent(chance, 20))
			continue;
		int victim = chance_below(chance, instance->entry_count);
		if (removed[victim] || instance->entries[victim].removes >= 0)
			continue;
		removed[victim] = true;
		instance->entries[instance->entry_count++] = (struct job){.removes = victim};
	}
}

static void instance_make(uint64_t seed, uint64_t index, struct instance *instance)
{
	struct chance chance = chance_for(seed, index);

	memset(instance, 0, sizeof *instance);
	make_tree(&chance, &instance->fabric);
	make_names(&chance, &instance->fabric);
	make_gpus(&chance, &instance->fabric);
	make_weather(&chance, &instance->fabric);
	bool speeds_matter = make_speeds(&chance, &instance->fabric);
	make_jobs(&chance, speeds_matter, instance);
}

#endif
