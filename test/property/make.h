/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make.h - part of oracle.c: a random instance from (seed, index, verb). The same three give the same instance.
 */
#ifndef FROND_TEST_MAKE_H
#define FROND_TEST_MAKE_H

#include "instance.h"

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

static struct chance chance_for(uint64_t seed, uint64_t index, enum verb verb)
{
	struct chance chance = {seed};
	chance.state = chance_next(&chance) ^ (index * UINT64_C(0xd1342543de82ef95)) ^ ((uint64_t)verb << 60);
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

/* A third of the trees is thin: spines of few small leaves, where gangs must span spines. A wrong choice of spines was
 * once found in 1 of 30,000 instances without them. */
static void make_tree(struct chance *chance, int nodes_max, struct fabric *fabric)
{
	static const int spine_weights[2][SPINES_MAX] = {{40, 38, 15, 7}, {0, 10, 60, 30}};
	static const int leaf_weights[2][LEAVES_PER_SPINE_MAX] = {{15, 30, 30, 25}, {35, 40, 25, 0}};
	static const int node_weights[2][NODES_PER_LEAF_MAX + 1] = {{6, 26, 32, 18, 18}, {8, 52, 40, 0, 0}};
	int thin = chance_percent(chance, 33);

	int spines = 1 + chance_weighted(chance, spine_weights[thin], SPINES_MAX);
	while (fabric->spine_count < spines && fabric->node_count < nodes_max) {
		int s = fabric->spine_count++;
		int leaves = 1 + chance_weighted(chance, leaf_weights[thin], LEAVES_PER_SPINE_MAX);
		for (int l = 0; l < leaves && fabric->node_count < nodes_max; l++) {
			int leaf = fabric->leaf_count++;
			fabric->leaves[leaf].spine = s;
			int nodes = chance_weighted(chance, node_weights[thin], NODES_PER_LEAF_MAX + 1);
			while (nodes-- > 0 && fabric->node_count < nodes_max)
				fabric->nodes[fabric->node_count++].leaf = leaf;
		}
	}
	if (fabric->node_count == 0)
		fabric->nodes[fabric->node_count++].leaf = 0;
}

/* Sixteen leaves of one node: half of them can be chosen in more ways than are compared. */
static void make_wide_tree(struct fabric *fabric)
{
	fabric->spine_count = SPINES_MAX;
	fabric->leaf_count = fabric->node_count = LEAVES_MAX;
	for (int l = 0; l < LEAVES_MAX; l++) {
		fabric->leaves[l].spine = l / LEAVES_PER_SPINE_MAX;
		fabric->nodes[l].leaf = l;
	}
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

/* All pairs alike; two NUMA nodes of equal size, counted over the whole machine. */
static void model_uniform(struct fabric *fabric, const char *name, int gpus, int gbps)
{
	struct model *model = &fabric->models[fabric->model_count++];
	snprintf(model->name, NAME_SIZE, "%s", name);
	model->gpus = gpus > GPUS_MAX ? GPUS_MAX : gpus;
	for (int a = 0; a < model->gpus; a++) {
		model->numa[a] = a >= (gpus + 1) / 2;
		for (int b = 0; b < model->gpus; b++)
			model->links[a][b] = a == b ? 0 : gbps;
	}
}

static void model_dgx1(struct fabric *fabric)
{
	static const int links[GPUS_MAX][GPUS_MAX] = {{0, 25, 25, 50, 50, 0, 0, 0}, {25, 0, 50, 25, 0, 50, 0, 0},
						      {25, 50, 0, 50, 0, 0, 25, 0}, {50, 25, 50, 0, 0, 0, 0, 25},
						      {50, 0, 0, 0, 0, 25, 25, 50}, {0, 50, 0, 0, 25, 0, 50, 25},
						      {0, 0, 25, 0, 25, 50, 0, 50}, {0, 0, 0, 25, 50, 25, 50, 0}};
	model_uniform(fabric, "DGX-1V", GPUS_MAX, 0);
	memcpy(fabric->models[fabric->model_count - 1].links, links, sizeof links);
}

/* Links in blocks, in a ring, or anywhere. */
static void model_random(struct chance *chance, struct fabric *fabric, const char *name)
{
	static const int speeds[] = {0, 0, 25, 50, 50, 100};
	int gpus = chance_percent(chance, 60) ? GPUS_MAX : 2 + chance_below(chance, GPUS_MAX - 1);
	int kind = chance_below(chance, 3), block = 2 + chance_below(chance, 3);

	model_uniform(fabric, name, gpus, 0);
	struct model *model = &fabric->models[fabric->model_count - 1];
	model->own = true;
	for (int a = 0; a < gpus; a++)
		for (int b = 0; b < a; b++) {
			bool linked = kind == 0   ? a / block == b / block
				      : kind == 1 ? a - b == 1 || a - b == gpus - 1
						  : true;
			int gbps = linked ? speeds[chance_below(chance, 6)] : 0;
			model->links[a][b] = model->links[b][a] = gbps;
		}
	model->numa_given = chance_percent(chance, 60);
	for (int a = 0; model->numa_given && a < gpus; a++)
		model->numa[a] = chance_percent(chance, 70) ? a / block % GPUS_MAX : chance_below(chance, 3);
}

static void make_models(struct chance *chance, struct fabric *fabric)
{
	for (int gpus = 0; gpus < MODELS_NONE; gpus++)
		model_uniform(fabric, "", gpus, 0);
	fabric->models[0].gpus = GPUS_MAX; /* a machine without a model has as many as it says */
	model_uniform(fabric, "DGX-2", 16, 150);
	model_uniform(fabric, "A100-SXM", 8, 300);
	model_uniform(fabric, "H100-SXM", 8, 450);
	model_uniform(fabric, "B200-SXM", 8, 900);
	model_uniform(fabric, "GB200", 4, 900);
	model_uniform(fabric, "MI300X", 8, 64);
	model_uniform(fabric, "PCIE-4", 4, 0);
	model_uniform(fabric, "PCIE-8", 8, 0);
	model_dgx1(fabric);
	model_random(chance, fabric, "box-a");
	model_random(chance, fabric, "box-b");
	assert(fabric->model_count == MODELS_MAX);
}

/* DGX-1V and the machines of the file's own are where links matter. */
static int pick_model(struct chance *chance)
{
	static const int weights[] = {4, 4, 5, 16, 5, 6, 5, 4, 6, 22, 12, 11};
	int picked = chance_weighted(chance, weights, MODELS_MAX - MODELS_NONE + 1);
	return picked == 0 ? 0 : MODELS_NONE - 1 + picked;
}

/* A node without a model: how its GPUs sit follows from their number. */
static void settle_models(struct fabric *fabric)
{
	for (int n = 0; n < fabric->node_count; n++)
		if (!model_is_named(fabric, fabric->nodes[n].model))
			fabric->nodes[n].model = fabric->nodes[n].gpus;
}

static void make_gpus(struct chance *chance, struct fabric *fabric)
{
	bool mixed = chance_percent(chance, 45);

	fabric->default_model = pick_model(chance);
	int whole = fabric->models[fabric->default_model].gpus;
	fabric->default_gpus = chance_percent(chance, 75) ? whole : 1 + chance_below(chance, whole);
	for (int n = 0; n < fabric->node_count; n++) {
		struct node *node = &fabric->nodes[n];
		node->gpus = fabric->default_gpus;
		node->model = fabric->default_model;
		if (!mixed || chance_percent(chance, 55))
			continue;
		if (chance_percent(chance, 25)) { /* the same machine with fewer GPUs */
			node->gpus = chance_below(chance, whole + 1);
			continue;
		}
		node->model = pick_model(chance);
		node->model_given = node->model != 0;
		if (node->model == 0) /* an entry can name another model, not take one away */
			node->model = fabric->default_model;
		else
			node->gpus = fabric->models[node->model].gpus;
		node->gpus_implied = node->model_given && strcmp(fabric->models[node->model].name, "DGX-2") != 0 &&
				     chance_percent(chance, 50);
		if (!node->gpus_implied && chance_percent(chance, 40))
			node->gpus = 1 + chance_below(chance, node->gpus);
	}
	if (chance_percent(chance, 8)) { /* no defaults: every node says what it has */
		fabric->default_gpus = 0;
		fabric->default_model = 0;
		for (int n = 0; n < fabric->node_count; n++)
			fabric->nodes[n].model_given = fabric->nodes[n].model != 0;
	}
	settle_models(fabric);
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
			node->used_mask = node_all(node);
	}
}

/* A rolling upgrade: of each leaf a node is cordoned, or waits for the repair of some GPUs. */
static void make_maintenance(struct chance *chance, struct fabric *fabric)
{
	for (int l = 0; l < fabric->leaf_count; l++) {
		int nodes = 0, turn;
		for (int n = 0; n < fabric->node_count; n++)
			nodes += fabric->nodes[n].leaf == l;
		if (nodes == 0 || chance_percent(chance, 15))
			continue;
		turn = chance_below(chance, nodes);
		for (int n = 0; n < fabric->node_count; n++) {
			struct node *node = &fabric->nodes[n];
			if (node->leaf != l || turn-- != 0)
				continue;
			if (chance_percent(chance, 60))
				node->cordoned = true;
			else
				node->unhealthy_mask |= (unsigned)chance_below(chance, 1 << node->gpus);
		}
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
			node->used_mask = chance_percent(chance, 35) ? node_all(node)
								     : (unsigned)chance_below(chance, 1 << node->gpus);
		if (chance_percent(chance, 5))
			node->unhealthy_mask = (unsigned)chance_below(chance, 1 << node->gpus);
		node->cordoned = chance_percent(chance, 5);
	}
	if (kind == 4)
		take_domain(chance, fabric);
	if (chance_percent(chance, 30))
		make_maintenance(chance, fabric);
}

static bool make_speeds(struct chance *chance, struct fabric *fabric)
{
	static const int speeds[] = {50, 100, 200, 400, 1600};

	if (!chance_percent(chance, 30))
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

/* NVLink domains of a leaf, some nodes in none; zones for selectors. */
static void make_labels(struct chance *chance, struct fabric *fabric)
{
	bool cliques = chance_percent(chance, 40), zones = chance_percent(chance, 40);
	int racks = 1 + chance_below(chance, 3), linked = chance_percent(chance, 40) ? 100 : 85;

	for (int n = 0; n < fabric->node_count; n++) {
		struct node *node = &fabric->nodes[n];
		if (cliques && chance_percent(chance, linked))
			snprintf(node->clique, NAME_SIZE, "rack-%d.%d", node->leaf + 1, chance_below(chance, racks));
		if (zones && chance_percent(chance, 80))
			node->zone = (char)('a' + chance_below(chance, 2));
	}
}

/* Other names for the same machines, so that models are all that tells them apart. Whole leaves have one, mostly. */
static void make_brands(struct chance *chance, struct fabric *fabric)
{
	static const char *const brands[] = {"PCIE-8", "A100-SXM", "H100-SXM"};
	int in_leaf = chance_percent(chance, 60), brand = 0;

	if (!chance_percent(chance, 35))
		return;
	for (int n = 0; n < fabric->node_count; n++) {
		struct node *node = &fabric->nodes[n];
		if (n == 0 || !in_leaf || node->leaf != fabric->nodes[n - 1].leaf || chance_percent(chance, 15))
			brand = chance_below(chance, 3);
		for (int m = 0; m < fabric->model_count; m++)
			if (strcmp(fabric->models[m].name, brands[brand]) == 0)
				node->model = m;
		node->model_given = true;
		node->gpus_implied = false;
	}
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
static void make_members(struct chance *chance, const struct fabric *fabric, int members_max, struct job *job)
{
	static const int size_weights[GPUS_MAX] = {14, 24, 10, 22, 5, 5, 4, 16};
	int size = 1, places = 0;

	for (int attempt = 0; attempt < 4 && places == 0; attempt++) {
		size = 1 + chance_weighted(chance, size_weights, GPUS_MAX);
		places = places_on_empty_fabric(fabric, size);
	}
	int most = places < members_max && places > 0 && chance_percent(chance, 92) ? places : members_max;
	job->members = 1 + chance_below(chance, most);
	if (job->members < 3 && chance_percent(chance, 60)) /* small gangs are easy, too */
		job->members = 1 + chance_below(chance, most);
	for (int rank = 0; rank < job->members; rank++)
		job->sizes[rank] = size;
}

/* Members of up to three sizes that fill some nodes, one after the other, to the last GPU or nearly so: what first fit
 * seldom finds. Half of them with the members of one size in a row, as a launcher and its workers are. */
static void make_tight_members(struct chance *chance, const struct fabric *fabric, struct job *job)
{
	int kinds[3], members = 0, nodes = 1 + chance_below(chance, 4), n = chance_below(chance, fabric->node_count);
	bool today = chance_percent(chance, 50), blocks = chance_percent(chance, 50);

	for (int i = 0; i < 3; i++)
		kinds[i] = 1 + chance_below(chance, chance_percent(chance, 70) ? 4 : GPUS_MAX);
	for (; nodes > 0; nodes--, n = (n + 1) % fabric->node_count) {
		const struct node *node = &fabric->nodes[n];
		unsigned mask = node_all(node) & ~(today ? node->used_mask | node->unhealthy_mask : 0);
		for (int left = mask_count(mask), tries = 0; tries < 6 && members < MEMBERS_MAX; tries++) {
			int size = kinds[chance_below(chance, 3)];
			if (size > left)
				continue;
			job->sizes[members++] = size;
			left -= size;
		}
	}
	if (members < 2)
		return;
	job->members = members;
	for (int i = members - 1; i > 0; i--) {
		int other = chance_below(chance, i + 1), kept = job->sizes[i];
		job->sizes[i] = job->sizes[other];
		job->sizes[other] = kept;
	}
	for (int i = 0; blocks && i < members; i++)
		for (int j = i + 1; j < members; j++)
			if (job->sizes[j] > job->sizes[i]) {
				int kept = job->sizes[i];
				job->sizes[i] = job->sizes[j];
				job->sizes[j] = kept;
			}
}

/* The members of each size follow each other in rank: K1 of pack.h. */
static bool sizes_in_blocks(const struct job *job)
{
	int blocks = 0, kinds = 0;
	for (int rank = 0; rank < job->members; rank++) {
		bool seen = false;
		for (int lower = 0; lower < rank; lower++)
			seen = seen || job->sizes[lower] == job->sizes[rank];
		kinds += !seen;
		blocks += rank == 0 || job->sizes[rank] != job->sizes[rank - 1];
	}
	return blocks == kinds;
}

/* Sizes that differ, members without GPUs, minMember, gpu-count. */
static void make_odd_members(struct chance *chance, const struct fabric *fabric, struct job *job)
{
	bool mixed = chance_percent(chance, 12);

	for (int rank = 0; mixed && rank < job->members; rank++)
		job->sizes[rank] = 1 + chance_below(chance, job->sizes[0]);
	if (!mixed && chance_percent(chance, 25))
		make_tight_members(chance, fabric, job);
	if (chance_percent(chance, 4))
		for (int rank = 1; rank < job->members; rank++)
			if (chance_percent(chance, 40))
				job->sizes[rank] = 0;
	if (job->members > 1 && chance_percent(chance, 7))
		job->min_member = 1 + chance_below(chance, job->members);
	if (chance_percent(chance, 6)) /* a quarter of them wrong */
		job->gpu_count = job_total_gpus(job) + (chance_percent(chance, 25) ? job->sizes[0] : 0);
}

static void make_claim(struct chance *chance, const struct fabric *fabric, bool filters, struct claim *claim)
{
	static const int speeds[] = {0, 0, 0, 25, 50, 64, 100, 300, 450};

	claim->given = true;
	claim->policy = (enum policy)chance_below(chance, POLICIES);
	claim->mode = filters ? (enum mode)chance_below(chance, MODES)
			      : (enum mode)(MODE_PREFERRED + chance_below(chance, 2));
	claim->mode_given = claim->mode != MODE_PREFERRED || chance_percent(chance, 50);
	claim->locality = (enum locality)chance_below(chance, LOCALITIES);
	claim->min_gbps = speeds[chance_below(chance, 9)];
	if (claim->policy == POLICY_PREFER_IDS && chance_percent(chance, 70)) {
		claim->prefer_mask = 1 + (unsigned)chance_below(chance, SETS - 1);
	} else if (claim->policy == POLICY_PREFER_IDS) {
		claim->prefer_node = chance_below(chance, fabric->node_count);
		claim->prefer_node_mask = 1 + (unsigned)chance_below(chance, SETS - 1);
	}
	bool zones = false;
	for (int n = 0; n < fabric->node_count; n++)
		zones = zones || fabric->nodes[n].zone;
	if (chance_percent(chance, zones ? 40 : 3))
		claim->zone = (char)('a' + chance_below(chance, 2));
}

static void make_preferred(struct chance *chance, const struct fabric *fabric, struct job *job)
{
	const struct node *node = &fabric->nodes[chance_below(chance, fabric->node_count)];
	int kind = chance_below(chance, 10);
	const char *name = kind == 0  ? "leaf-77"
			   : kind < 4 ? fabric->spine_names[chance_below(chance, fabric->spine_count)]
			   : kind < 7 && node->clique[0]
				   ? node->clique
				   : fabric->leaves[chance_below(chance, fabric->leaf_count)].name;
	snprintf(job->preferred, NAME_SIZE, "%s", name);
}

static void make_wishes(struct chance *chance, const struct fabric *fabric, bool speeds_matter, struct job *job)
{
	static const struct {
		const char *text;
		int gbps;
	} floors[] = {{"50Gb", 50}, {"100Gb", 100}, {"200Gb", 200}, {"400Gb", 400}, {"1.6Tb", 1600}};
	static const int mode_weights[MODES] = {50, 30, 20};

	job->mode = (enum mode)chance_weighted(chance, mode_weights, MODES);
	job->mode_given = job->mode != MODE_REQUIRED || chance_percent(chance, 50);
	job->strategy = (enum strategy)chance_below(chance, STRATEGIES);
	job->strategy_given = job->strategy != STRATEGY_BALANCED || chance_percent(chance, 50);
	if (chance_percent(chance, speeds_matter ? 60 : 4)) {
		int floor = chance_percent(chance, 90) ? chance_below(chance, 4) : 4;
		job->floor_gbps = floors[floor].gbps;
		job->floor_text = floors[floor].text;
	}
	if (chance_percent(chance, 22))
		make_preferred(chance, fabric, job);
	job->latency_sensitive = chance_percent(chance, 10);
	job->claim = CLAIM_NONE;
}

static struct job *job_add(struct instance *instance)
{
	struct job *job = &instance->entries[instance->entry_count];
	snprintf(job->name, NAME_SIZE, "job-%c", 'a' + instance->entry_count);
	job->removes = -1;
	instance->entry_count++;
	return job;
}

static void make_jobs(struct chance *chance, bool speeds_matter, enum verb verb, struct instance *instance)
{
	int jobs = 1 + chance_below(chance, verb == VERB_PLAN ? 4 : 2);
	bool removed[ENTRIES_MAX] = {false};

	for (int j = 0; j < jobs; j++) {
		struct job *job = job_add(instance);
		make_members(chance, &instance->fabric, verb == VERB_PLAN ? MEMBERS_MAX : 5, job);
		make_wishes(chance, &instance->fabric, speeds_matter, job);
		if (verb == VERB_PLAN)
			make_odd_members(chance, &instance->fabric, job);
		job->sizes_as_list = !sizes_equal(job, job->members) || chance_percent(chance, 10);
		for (int rank = 0; rank < job->members; rank++)
			job->sizes_as_list = job->sizes_as_list || job->sizes[rank] == 0;
		if (chance_percent(chance, 35))
			make_claim(chance, &instance->fabric, sizes_in_blocks(job), &job->claim);
		if (verb == VERB_RECOVER) {
			static const int weights[RECOVERIES] = {45, 45, 10};
			job->recovery = (enum recovery)chance_weighted(chance, weights, RECOVERIES);
			job->recovery_given = job->recovery != RECOVERY_REPLACE || chance_percent(chance, 50);
		}
		if (j == jobs - 1 || !chance_percent(chance, verb == VERB_PLAN ? 20 : 5))
			continue;
		int victim = chance_below(chance, instance->entry_count);
		if (removed[victim] || instance->entries[victim].removes >= 0)
			continue;
		removed[victim] = true;
		instance->entries[instance->entry_count++] = (struct job){.removes = victim};
	}
}

/* Gangs of whole nodes that go anywhere. */
static void make_wide(struct chance *chance, struct instance *instance)
{
	struct fabric *fabric = &instance->fabric;

	make_wide_tree(fabric);
	make_names(chance, fabric);
	fabric->default_model = pick_model(chance);
	fabric->default_gpus = fabric->models[fabric->default_model].gpus;
	for (int n = 0; n < fabric->node_count; n++) {
		fabric->nodes[n].gpus = fabric->default_gpus;
		fabric->nodes[n].model = fabric->default_model;
		if (chance_percent(chance, 5))
			fabric->nodes[n].used_mask = 1u << chance_below(chance, fabric->default_gpus);
	}
	settle_models(fabric);
	for (int j = 0; j < 2; j++) {
		struct job *job = job_add(instance);
		make_wishes(chance, fabric, false, job);
		job->mode = chance_percent(chance, 70) ? MODE_IGNORE : MODE_PREFERRED;
		job->strategy = chance_percent(chance, 70) ? STRATEGY_DISTRIBUTED : job->strategy;
		job->mode_given = job->strategy_given = true;
		job->members = 4 + chance_below(chance, 5);
		for (int rank = 0; rank < job->members; rank++)
			job->sizes[rank] = fabric->default_gpus;
	}
}

/* A leaf or two of many nodes in several racks, some of them taken. */
static void make_racks(struct chance *chance, struct instance *instance)
{
	struct fabric *fabric = &instance->fabric;
	int leaves = 1 + chance_below(chance, 3), nodes = 3 + chance_below(chance, leaves == 1 ? 10 : 14 / leaves - 2);
	int jobs = 1 + chance_below(chance, 3), busy = 15 * chance_below(chance, 4);

	fabric->spine_count = 1;
	fabric->default_gpus = 1 + chance_below(chance, 4);
	for (int l = 0; l < leaves; l++) {
		fabric->leaf_count++;
		for (int n = 0; n < nodes && fabric->node_count < NODES_MAX; n++) {
			struct node *node = &fabric->nodes[fabric->node_count++];
			node->leaf = l;
			node->gpus = fabric->default_gpus;
			if (chance_percent(chance, busy))
				node->used_mask = (unsigned)chance_below(chance, 1 << node->gpus);
		}
	}
	settle_models(fabric);
	make_names(chance, fabric);
	make_labels(chance, fabric);
	make_brands(chance, fabric);
	for (int n = 0; n < fabric->node_count; n++) { /* some racks side by side */
		struct node *node = &fabric->nodes[n];
		if (chance_percent(chance, 80))
			snprintf(node->clique, NAME_SIZE, "rack-%d.%d", node->leaf + 1,
				 n / 2 % (1 + chance_below(chance, 4)));
	}
	for (int j = 0; j < jobs; j++) {
		struct job *job = job_add(instance);
		make_wishes(chance, fabric, false, job);
		job->members = 1 + chance_below(chance, MEMBERS_MAX);
		int size = chance_percent(chance, 50) ? fabric->default_gpus
						      : 1 + chance_below(chance, fabric->default_gpus);
		for (int rank = 0; rank < job->members; rank++)
			job->sizes[rank] = size;
	}
}

/* ---- recover, defrag -------------------------------------------------------------------------------------------- */

static void make_failures(struct chance *chance, struct instance *instance)
{
	int count = 1 + chance_below(chance, FAILURES_MAX);

	for (int i = 0; i < count; i++) {
		int n = chance_below(chance, instance->fabric.node_count);
		bool again = instance->fabric.nodes[n].gpus == 0;
		for (int f = 0; f < instance->failure_count; f++)
			again = again || instance->failures[f].node == n;
		if (again)
			continue;
		int gpu = chance_percent(chance, 30) ? chance_below(chance, instance->fabric.nodes[n].gpus) : -1;
		instance->failures[instance->failure_count++] = (struct failure){n, gpu};
	}
	/* Only nodes without GPUs were drawn; a question without a failure is none, so any node fails as a whole. */
	if (instance->failure_count == 0)
		instance->failures[instance->failure_count++] =
			(struct failure){chance_below(chance, instance->fabric.node_count), -1};
}

enum { DEFRAG_NODES = 6, DEFRAG_MEMBERS = 6 };

/* Small members all over the place, and then a job that wants whole nodes. */
static void make_defrag(struct chance *chance, struct instance *instance)
{
	int jobs = 2 + chance_below(chance, 2), members = 0;
	struct fabric *fabric = &instance->fabric;

	fabric->default_gpus = 2 + chance_below(chance, 3);
	for (int n = 0; n < fabric->node_count; n++) {
		struct node *node = &fabric->nodes[n];
		node->gpus = chance_percent(chance, 85) ? fabric->default_gpus : 1 + chance_below(chance, 4);
		if (chance_percent(chance, 15))
			node->used_mask = (unsigned)chance_below(chance, 1 << node->gpus);
		node->cordoned = chance_percent(chance, 6);
	}
	if (chance_percent(chance, 30))
		make_maintenance(chance, fabric);
	settle_models(fabric);
	make_labels(chance, fabric);
	make_brands(chance, fabric);
	for (int j = 0; j < jobs && members < DEFRAG_MEMBERS; j++) {
		struct job *job = job_add(instance);
		make_wishes(chance, fabric, false, job);
		job->latency_sensitive = false;
		job->strategy = chance_percent(chance, 60) ? STRATEGY_DISTRIBUTED : job->strategy;
		job->strategy_given = true;
		job->members = 1 + chance_below(chance, 4);
		if (members + job->members > DEFRAG_MEMBERS)
			job->members = DEFRAG_MEMBERS - members;
		members += job->members;
		int size = 1 + chance_below(chance, 2);
		for (int rank = 0; rank < job->members; rank++)
			job->sizes[rank] = size;
	}
	instance->defrag_for = instance->entry_count;
	struct job *job = job_add(instance);
	make_wishes(chance, fabric, false, job);
	job->members = 1 + chance_below(chance, 3);
	int size = chance_percent(chance, 70) ? fabric->default_gpus : 1 + chance_below(chance, 3);
	for (int rank = 0; rank < job->members; rank++)
		job->sizes[rank] = size;
}

enum { PREEMPT_NODES = 8, PREEMPT_RUNNING = 6, PREEMPT_MEMBERS = 4 };

/* Gangs of all priorities and sizes until little is left, some that may shrink, some with a budget; then one that wants more
 * than there is. */
static void make_preempt(struct chance *chance, struct instance *instance)
{
	struct fabric *fabric = &instance->fabric;
	int priorities = 1 + chance_below(chance, 3), whole_percent = 25 * chance_below(chance, 5),
	    budgeted = 8 * chance_below(chance, 5);
	bool speeds_matter;

	fabric->default_gpus = 1 + chance_below(chance, 4);
	for (int n = 0; n < fabric->node_count; n++) {
		struct node *node = &fabric->nodes[n];
		node->gpus = chance_percent(chance, 90) ? fabric->default_gpus : 1 + chance_below(chance, 4);
		if (chance_percent(chance, 6))
			node->used_mask = (unsigned)chance_below(chance, 1 << node->gpus);
		if (chance_percent(chance, 4))
			node->unhealthy_mask = (unsigned)chance_below(chance, 1 << node->gpus);
		node->cordoned = chance_percent(chance, 4);
	}
	if (chance_percent(chance, 30))
		make_maintenance(chance, fabric);
	settle_models(fabric);
	speeds_matter = make_speeds(chance, fabric);
	make_labels(chance, fabric);
	make_brands(chance, fabric);
	for (int j = 0; j < PREEMPT_RUNNING + 1; j++) {
		struct job *job = job_add(instance);
		bool asks = j == PREEMPT_RUNNING;
		int size = chance_percent(chance, whole_percent) ? fabric->default_gpus
								 : 1 + chance_below(chance, fabric->default_gpus);
		make_wishes(chance, fabric, speeds_matter && asks, job);
		job->latency_sensitive = asks && chance_percent(chance, 10);
		job->members = 1 + chance_below(chance, PREEMPT_MEMBERS);
		for (int rank = 0; rank < job->members; rank++)
			job->sizes[rank] = size;
		if (chance_percent(chance, asks ? 12 : 8)) {
			job->sizes[0] = 1 + chance_below(chance, fabric->default_gpus);
			job->sizes_as_list = true;
		}
		if (!asks && chance_percent(chance, 70)) { /* anywhere: else many of them would not run */
			job->mode = MODE_IGNORE;
			job->mode_given = true;
		}
		if (job->members > 1 && chance_percent(chance, asks ? 5 : 40))
			job->min_member = 1 + chance_below(chance, job->members);
		job->priority = asks ? priorities + chance_below(chance, 2) : chance_below(chance, priorities + 1);
		job->budgeted = !asks && chance_percent(chance, budgeted);
		if (chance_percent(chance, 12))
			make_claim(chance, fabric, sizes_equal(job, job->members), &job->claim);
		instance->defrag_for = instance->entry_count - 1;
	}
}

/* The same with ends, few of them different; the one that asks is seldom the most important. */
static void make_reserve(struct chance *chance, struct instance *instance)
{
	static const int minutes[] = {0, 5, 10, 30, 45, 60, ENDS_MAX};
	int known = 25 * chance_below(chance, 5), highest = 0;

	make_preempt(chance, instance);
	for (int e = 0; e < instance->defrag_for; e++) {
		struct job *job = &instance->entries[e];
		highest = job->priority > highest ? job->priority : highest;
		job->ends_given = chance_percent(chance, known);
		if (job->ends_given)
			job->ends_m = minutes[chance_below(chance, (int)(sizeof minutes / sizeof *minutes))];
	}
	instance->entries[instance->defrag_for].priority = chance_below(chance, highest + 2);
}

/* Leaves alike, gangs of whole or half nodes: one that lost a node finds another place, alone or as a whole. */
static void make_calm(struct chance *chance, struct instance *instance)
{
	struct fabric *fabric = &instance->fabric;
	int leaves = 2 + chance_below(chance, 2), nodes = 2 + chance_below(chance, 2),
	    jobs = 1 + chance_below(chance, 3);

	fabric->spine_count = 1 + chance_below(chance, 2);
	fabric->default_model = MODELS_NONE + chance_below(chance, MODELS_MAX - MODELS_NONE);
	fabric->default_gpus = fabric->models[fabric->default_model].gpus;
	for (int l = 0; l < leaves * fabric->spine_count; l++) {
		fabric->leaves[fabric->leaf_count++].spine = l / leaves;
		for (int n = 0; n < nodes && fabric->node_count < NODES_MAX; n++) {
			struct node *node = &fabric->nodes[fabric->node_count++];
			node->leaf = l;
			node->model = fabric->default_model;
			node->gpus = fabric->default_gpus;
		}
	}
	make_names(chance, fabric);
	make_labels(chance, fabric);
	if (fabric->default_gpus > 4)
		make_brands(chance, fabric);
	for (int j = 0; j < jobs; j++) {
		static const int recovery_weights[RECOVERIES] = {30, 65, 5};
		struct job *job = job_add(instance);
		make_wishes(chance, fabric, false, job);
		job->members = 2 + chance_below(chance, 3);
		int size = chance_percent(chance, 65) ? fabric->default_gpus : (fabric->default_gpus + 1) / 2;
		for (int rank = 0; rank < job->members; rank++)
			job->sizes[rank] = size;
		job->recovery = (enum recovery)chance_weighted(chance, recovery_weights, RECOVERIES);
		job->recovery_given = true;
	}
	make_failures(chance, instance);
}

static void instance_make(uint64_t seed, uint64_t index, enum verb verb, struct instance *instance)
{
	struct chance chance = chance_for(seed, index, verb);

	memset(instance, 0, sizeof *instance);
	make_models(&chance, &instance->fabric);
	if (verb == VERB_PLAN && chance_percent(&chance, 2)) {
		make_wide(&chance, instance);
		return;
	}
	if (verb == VERB_PLAN && chance_percent(&chance, 20)) {
		make_racks(&chance, instance);
		return;
	}
	if (verb == VERB_RECOVER && chance_percent(&chance, 60)) {
		make_calm(&chance, instance);
		return;
	}
	int nodes_max = verb == VERB_DEFRAG                            ? DEFRAG_NODES
			: verb == VERB_PREEMPT || verb == VERB_RESERVE ? PREEMPT_NODES
			: verb == VERB_RECOVER                         ? 10
			: chance_percent(&chance, 10)                  ? NODES_MAX
								       : 12;
	make_tree(&chance, nodes_max, &instance->fabric);
	make_names(&chance, &instance->fabric);
	if (verb == VERB_DEFRAG) {
		make_defrag(&chance, instance);
		return;
	}
	if (verb == VERB_PREEMPT || verb == VERB_RESERVE) {
		(verb == VERB_PREEMPT ? make_preempt : make_reserve)(&chance, instance);
		return;
	}
	make_gpus(&chance, &instance->fabric);
	make_weather(&chance, &instance->fabric);
	bool speeds_matter = make_speeds(&chance, &instance->fabric);
	make_labels(&chance, &instance->fabric);
	make_jobs(&chance, speeds_matter, verb, instance);
	if (verb == VERB_RECOVER)
		make_failures(&chance, instance);
}

#endif
