/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/bench.h"

#include "core/gpuset.h"
#include "text/models.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LEAF_NODES   32u
#define SPINE_LEAVES 32u
#define SPINE_NODES  (LEAF_NODES * SPINE_LEAVES)
#define NODE_GPUS    8u
#define MEMBERS_MOST 8192u
#define PLAN_NODES   (3 * SPINE_NODES) /* the third spine is free for a gang of 1,024 */
#define RECOVERED    1024u             /* members of the gang that is repaired */
#define MOST_NS      2000000000ull     /* a case is not measured again after so long */
#define SCAN_WORDS   (1u << 17)        /* 1 MiB */
#define NAME_ROOM    16u
#define LINE_ROOM    112u
#define ALIGN        64u

struct line { /* what is said of a node */
	struct frond_span name, leaf, spine;
	uint32_t len;
	char text[LINE_ROOM];
};

struct shape {
	uint32_t leaf_nodes;   /* 0: no node has a leaf */
	uint32_t spine_leaves; /* 0: all leaves are under one spine */
};

static const struct shape shape_usual = {LEAF_NODES, SPINE_LEAVES};

struct bench {
	struct line *lines; /* by slot */
	struct shape shape;
	const struct frond_abi *abi;
	void *memory;
	uint64_t bytes;
	frond_engine *engine;
	uint32_t nodes;
	uint64_t dice;
	struct frond_member members[MEMBERS_MOST];
	struct frond_place places[MEMBERS_MOST];
	struct frond_move moves[MEMBERS_MOST];
	struct frond_key keys[MEMBERS_MOST];
	struct frond_room *room; /* exceptions: by slot, room_count of them */
	uint32_t room_count;
	struct frond_plan plan;
	char text[FROND_TEXT_MAX];
	uint32_t len;
	uint16_t *position; /* by slot */
	struct gpuset *set; /* an 8-GPU table, for the look-up */
	void *set_memory;
	uint64_t sink;
};

struct bench_case {
	const char *name, *what;
	uint32_t nodes;            /* 0: as many as asked for */
	uint32_t least;            /* nodes that it makes sense with */
	uint64_t most_ns;          /* what it may take */
	uint32_t batch;            /* operations in one run of it */
	uint32_t percent;          /* of the nodes that are exceptions: CPU, memory, taints or filters decide there */
	const struct shape *shape; /* NULL: the usual one, filled as usual */
	void (*prepare)(struct bench *bench);
	void (*run)(struct bench *bench);
};

static uint64_t roll(struct bench *bench)
{
	bench->dice = bench->dice * 6364136223846793005ull + 1442695040888963407ull;
	return bench->dice >> 33;
}

static struct frond_key key_of(uint64_t kind, uint64_t number)
{
	return (struct frond_key){.hi = kind, .lo = number + 1};
}

static void must(const struct bench *bench, int32_t code, const char *what)
{
	if (code == FROND_OK)
		return;
	fprintf(stderr, "frond-sim: bench: %s: %s: %.*s\n", what, bench->abi->code_text(code), (int)bench->len,
		bench->text);
	abort();
}

/* ---- the cluster --------------------------------------------------------------------------------------------------- */

/* Node 0 … of leaf 0 … of spine 0 …, named and labelled as a cloud would; the text is made before anything is timed. */
static void write_node(struct line *line, const struct shape *shape, uint32_t slot)
{
	static const char keys[] = "fabric.topograph.run/tier-0fabric.topograph.run/tier-1" MODEL_LINE;
	uint32_t used = sizeof keys - 1, leaf = shape->leaf_nodes == 0 ? 0 : slot / shape->leaf_nodes;
	memcpy(line->text, keys, used);
	line->name.off = used;
	used += line->name.len = (uint32_t)snprintf(line->text + used, NAME_ROOM, "node-%06" PRIu32, slot);
	line->leaf.off = used;
	used += line->leaf.len = (uint32_t)snprintf(line->text + used, NAME_ROOM, "leaf-%05" PRIu32, leaf);
	line->spine.off = used;
	used += line->spine.len = (uint32_t)snprintf(line->text + used, NAME_ROOM, "spine-%04" PRIu32,
						     shape->spine_leaves == 0 ? 0 : leaf / shape->spine_leaves);
	line->len = used;
}

static void put_node(struct bench *bench, uint32_t slot, uint32_t flags)
{
	const struct line *line = &bench->lines[slot];
	struct frond_pair labels[2] = {{.key = {0, 27}, .value = line->leaf}, {.key = {27, 27}, .value = line->spine}};
	struct frond_node node = {.slot = slot,
				  .gpus = NODE_GPUS,
				  .flags = flags,
				  .topology = FROND_NONE,
				  .name = line->name,
				  .model = {54, sizeof MODEL_LINE - 1}};
	must(bench,
	     bench->abi->node_put(bench->engine, &node, labels, bench->shape.leaf_nodes == 0 ? 0 : 2, line->text,
				  line->len, bench->text, sizeof bench->text, &bench->len),
	     "node_put");
}

static void create(struct bench *bench)
{
	static const char args[] = "{\"topology\": {\"preset\": \"topograph\"}}";
	struct frond_limits limits = {.nodes = bench->nodes, .pods = bench->nodes};
	must(bench,
	     bench->abi->create(bench->memory, bench->bytes, &limits, args, sizeof args - 1, NULL, 0, &bench->engine,
				bench->text, sizeof bench->text, &bench->len),
	     "create");
}

static void load(struct bench *bench)
{
	uint32_t len;
	for (uint32_t slot = 0; slot < bench->nodes; slot++)
		put_node(bench, slot, 0);
	must(bench, bench->abi->problems(bench->engine, bench->text, sizeof bench->text, &len),
	     "problems"); /* builds the tree */
	bench->sink += len;
}

static void put_pod(struct bench *bench, uint32_t slot, uint32_t gpus)
{
	struct frond_pod pod = {.pod = key_of(1, slot), .slot = slot, .gpus = gpus, .rank = FROND_NONE};
	must(bench, bench->abi->pod_put(bench->engine, &pod, NULL, 0, bench->text, sizeof bench->text, &bench->len),
	     "pod_put");
}

/* One spine in three is untouched, in the others half of the nodes are partly used; the last spine of all is free. */
static void fill(struct bench *bench)
{
	for (uint32_t slot = 0; slot < bench->nodes; slot++)
		if (slot / SPINE_NODES % 3 != 2 && roll(bench) % 2 == 0)
			put_pod(bench, slot, 1 + (uint32_t)(roll(bench) % NODE_GPUS));
}

/* The same in the middle of a rolling upgrade: of every leaf one node has been cordoned for long. */
static void fill_upgrade(struct bench *bench)
{
	fill(bench);
	for (uint32_t slot = 0; slot < bench->nodes; slot += LEAF_NODES)
		put_node(bench, slot + (uint32_t)(roll(bench) % LEAF_NODES) % (bench->nodes - slot),
			 FROND_NODE_CORDONED | FROND_NODE_UNAVAILABLE);
}

/* A tenth of the nodes is partly used. */
static void fill_tenth(struct bench *bench)
{
	for (uint32_t slot = 0; slot < bench->nodes; slot++)
		if (roll(bench) % 10 == 0)
			put_pod(bench, slot, 1 + (uint32_t)(roll(bench) % (NODE_GPUS - 1)));
}

/* ---- cases --------------------------------------------------------------------------------------------------------- */

static struct frond_request request_of(uint32_t members)
{
	return (struct frond_request){.gang = key_of(2, 0),
				      .members = members,
				      .min_member = members,
				      .gpus_desired = (uint64_t)members * NODE_GPUS,
				      .only_slot = FROND_NONE};
}

static void plan(struct bench *bench, uint32_t members)
{
	struct frond_request request = request_of(members);
	must(bench,
	     bench->abi->plan(bench->engine, &request, bench->members, NULL, NULL, 0, bench->room, bench->room_count,
			      &bench->plan, bench->places, bench->text, sizeof bench->text, &bench->len),
	     "plan");
}

/* Nodes that take no member: a third of them never (a label), the others not today (CPU in use, a taint). */
static void except(struct bench *bench, uint32_t percent)
{
	bench->room_count = 0;
	for (uint32_t slot = 0; slot < bench->nodes; slot++)
		if (roll(bench) % 100 < percent)
			bench->room[bench->room_count++] =
				(struct frond_room){.slot = slot, .ever = roll(bench) % 3 == 0 ? 0 : UINT16_MAX};
}

static void run_plan_1024(struct bench *bench)
{
	plan(bench, 1024);
}

static void run_plan_8(struct bench *bench)
{
	plan(bench, 8);
}

static void plan_preferred(struct bench *bench, uint32_t members)
{
	static const char in[] = "topology.scheduler/topology-modePreferred";
	const struct frond_pair pair = {{0, 32}, {32, 9}};
	struct frond_request request = request_of(members);
	request.annotations = 1;
	must(bench,
	     bench->abi->plan(bench->engine, &request, bench->members, &pair, in, sizeof in - 1, bench->room,
			      bench->room_count, &bench->plan, bench->places, bench->text, sizeof bench->text,
			      &bench->len),
	     "plan");
	if (bench->plan.outcome != FROND_PLACED)
		abort();
}

static void run_preferred_1024(struct bench *bench)
{
	plan_preferred(bench, 1024);
}

static void run_preferred_8192(struct bench *bench)
{
	plan_preferred(bench, 8192);
}

static void run_order(struct bench *bench)
{
	struct frond_request request = request_of(1);
	struct frond_member member = {.pod = key_of(3, 0), .gpus = 1, .pinned_slot = FROND_NONE};
	must(bench,
	     bench->abi->order(bench->engine, &request, &member, NULL, NULL, 0, bench->room, bench->room_count, NULL,
			       NULL, NULL, &bench->plan, bench->position, bench->text, sizeof bench->text, &bench->len),
	     "order");
	if (bench->plan.outcome != FROND_PLACED)
		abort();
}

/* A complete leaf is asked for; every leaf lacks a node. */
static void prepare_refusal(struct bench *bench)
{
	for (uint32_t slot = 0; slot < bench->nodes; slot += LEAF_NODES)
		put_pod(bench, slot, 1);
}

static void run_refusal(struct bench *bench)
{
	plan(bench, LEAF_NODES);
	if (bench->plan.outcome != FROND_WAITS &&
	    bench->room_count == 0) /* else another rule may hold, by which it may fit */
		abort();
}

static void run_gpu_delta(struct bench *bench)
{
	for (uint32_t i = 0; i < 512; i++) {
		uint32_t slot = (uint32_t)(roll(bench) % bench->nodes);
		struct frond_key pod = key_of(1, slot);
		if (bench->abi->release(bench->engine, &pod) != FROND_OK)
			put_pod(bench, slot, 1);
		else
			put_pod(bench, slot, 2);
	}
}

static void run_node_delta(struct bench *bench)
{
	for (uint32_t i = 0; i < 1024; i++)
		put_node(bench, (uint32_t)(roll(bench) % bench->nodes), roll(bench) % 8 == 0 ? FROND_NODE_CORDONED : 0);
}

static void run_gpu_set(struct bench *bench)
{
	static const struct gpu_wish wish = GPU_WISH_DEFAULT;
	for (uint32_t i = 0; i < 4096; i++)
		bench->sink += gpuset_choose(bench->set, &wish, (uint32_t)(i * 37 % 255 + 1), 0, 1 + i % 4);
}

static void run_load(struct bench *bench)
{
	create(bench);
	load(bench);
}

/* A gang of 1,024 nodes runs; eight of its nodes fail, spread over its leaves. */
static void prepare_recovery(struct bench *bench)
{
	plan(bench, RECOVERED);
	struct frond_request request = {
		.gang = key_of(2, 0), .members = RECOVERED, .min_member = RECOVERED, .only_slot = FROND_NONE};
	must(bench, bench->abi->reserve(bench->engine, &request, bench->members, bench->places), "reserve");
	for (uint32_t i = 0; i < RECOVERED; i++)
		must(bench, bench->abi->confirm(bench->engine, &bench->members[i].pod), "confirm");
	request.annotations = 2;
	static const char in[] = "topology.scheduler/recoveryMoveGangtopology.scheduler/topology-modePreferred";
	const struct frond_pair pairs[] = {{{0, 27}, {27, 8}}, {{35, 32}, {67, 9}}};
	must(bench,
	     bench->abi->gang_put(bench->engine, &request, pairs, in, sizeof in - 1, bench->text, sizeof bench->text,
				  &bench->len),
	     "gang_put");
	for (uint32_t i = 0; i < 8; i++)
		put_node(bench, bench->places[i * 128 + 7].slot, FROND_NODE_DOWN);
}

static void run_recovery(struct bench *bench)
{
	struct frond_key gang = key_of(2, 0);
	struct frond_moves out;
	must(bench,
	     bench->abi->recover(bench->engine, &gang, NULL, 0, &out, bench->moves, RECOVERED, bench->text,
				 sizeof bench->text, &bench->len),
	     "recover");
	if (out.outcome != FROND_PLACED || out.count < 8)
		abort();
}

/* Gangs of one node on the first `single` nodes, of two on the others: every GPU is held. */
static void fill_gangs(struct bench *bench, uint32_t single)
{
	for (uint32_t slot = 0; slot < bench->nodes; slot++) {
		struct frond_key pod = key_of(1, slot);
		int32_t code = bench->abi->release(bench->engine, &pod);
		must(bench, code == FROND_UNKNOWN ? FROND_OK : code, "release");
	}
	for (uint32_t slot = 0; slot < bench->nodes; slot++) {
		bool alone = slot < single;
		uint32_t gang = alone ? slot : single + (slot - single) / 2, members = alone ? 1 : 2;
		struct frond_pod pod = {.pod = key_of(4, slot),
					.slot = slot,
					.gpus = NODE_GPUS,
					.gang = key_of(5, gang),
					.rank = alone ? 0 : slot % 2};
		struct frond_request request = {.gang = pod.gang,
						.members = members,
						.min_member = members,
						.only_slot = FROND_NONE,
						.priority = (int32_t)(gang % 7)};
		must(bench,
		     bench->abi->pod_put(bench->engine, &pod, NULL, 0, bench->text, sizeof bench->text, &bench->len),
		     "pod_put");
		must(bench,
		     bench->abi->gang_put(bench->engine, &request, NULL, NULL, 0, bench->text, sizeof bench->text,
					  &bench->len),
		     "gang_put");
	}
}

static void victims(struct bench *bench, uint32_t members)
{
	struct frond_request request = request_of(members);
	struct frond_victims out;
	request.priority = 100;
	must(bench,
	     bench->abi->victims(bench->engine, &request, bench->members, NULL, NULL, 0, NULL, 0, &out, bench->places,
				 bench->keys, MEMBERS_MOST, bench->text, sizeof bench->text, &bench->len),
	     "victims");
	if (out.outcome != FROND_PLACED || out.count == 0)
		abort();
}

static void prepare_victims(struct bench *bench) /* 700 gangs */
{
	fill_gangs(bench, 400);
}

static void run_victims(struct bench *bench)
{
	victims(bench, 32);
}

static void prepare_victims_512(struct bench *bench) /* 4,000 gangs */
{
	fill_gangs(bench, 3000);
}

static void run_victims_512(struct bench *bench)
{
	victims(bench, 512);
}

static const struct shape shape_leaf = {5000, 0}, shape_spine = {10, 0}, shape_pairs = {2, 4}, shape_small = {8, 32},
			  shape_loose = {0, 0};

static const struct bench_case cases[] = {
	{"plan-1024", "plan of 1,024 whole nodes", 0, PLAN_NODES, 100000, 1, 0, NULL, NULL, run_plan_1024},
	{"plan-1024-1", "the same, 1 % of the nodes are exceptions", 0, PLAN_NODES, 0, 1, 1, NULL, NULL, run_plan_1024},
	{"plan-1024-50", "the same, 50 %", 0, PLAN_NODES, 0, 1, 50, NULL, NULL, run_plan_1024},
	{"plan-1024-upgrade", "the same, a node of every leaf is unavailable: over two spines", 0, PLAN_NODES, 0, 1, 0,
	 &shape_usual, fill_upgrade, run_plan_1024},
	{"plan-8", "plan of 8 whole nodes", 0, 0, 20000, 1, 0, NULL, NULL, run_plan_8},
	{"plan-8-1", "the same, 1 % of the nodes are exceptions", 0, 0, 0, 1, 1, NULL, NULL, run_plan_8},
	{"plan-8-50", "the same, 50 %", 0, 0, 0, 1, 50, NULL, NULL, run_plan_8},
	{"plan-8-upgrade", "the same, a node of every leaf is unavailable", 0, 0, 20000, 1, 0, &shape_usual,
	 fill_upgrade, run_plan_8},
	{"gpu-delta", "one GPU delta (a pod comes or goes)", 0, 0, 1000, 1024, 0, NULL, NULL, run_gpu_delta},
	{"gpu-delta-small", "the same, leaves of eight, all free at first", 0, 0, 1000, 1024, 0, &shape_small, NULL,
	 run_gpu_delta},
	{"node-delta", "one node delta (cordon, uncordon)", 0, 0, 1000, 1024, 0, NULL, NULL, run_node_delta},
	{"gpu-set", "GPU set look-up, 8 GPUs", 0, 0, 50, 4096, 0, NULL, NULL, run_gpu_set},
	{"refusal", "refusal of an impossible gang, with its reason", 0, 0, 20000, 1, 0, NULL, prepare_refusal,
	 run_refusal},
	{"refusal-1", "the same, 1 % of the nodes are exceptions", 0, 0, 0, 1, 1, NULL, prepare_refusal, run_refusal},
	{"refusal-50", "the same, 50 %", 0, 0, 0, 1, 50, NULL, prepare_refusal, run_refusal},
	{"load", "cold load, create included, GPU-set tables not", 0, 0, 20000000, 1, 0, NULL, NULL, run_load},
	{"preferred-1024", "Preferred, 1,024 whole nodes, a tenth of the nodes partly used", 0, PLAN_NODES, 2000000, 1,
	 0, &shape_usual, fill_tenth, run_preferred_1024},
	{"preferred-8192", "Preferred, 8,192 whole nodes, a tenth of the nodes partly used", 0, 10240, 20000000, 1, 0,
	 &shape_usual, fill_tenth, run_preferred_8192},
	{"order-leaf", "order of a 1-GPU pod, one leaf", 5000, 0, 1000000, 1, 0, &shape_leaf, fill_tenth, run_order},
	{"order-spine", "order of a 1-GPU pod, 500 leaves under one spine", 5000, 0, 1000000, 1, 0, &shape_spine,
	 fill_tenth, run_order},
	{"order-pairs", "order of a 1-GPU pod, leaves of two, spines of four", 5000, 0, 1000000, 1, 0, &shape_pairs,
	 fill_tenth, run_order},
	{"order-loose", "order of a 1-GPU pod, no topology", 5000, 0, 1000000, 1, 0, &shape_loose, fill_tenth,
	 run_order},
	{"order-50", "the same, 50 % of the nodes are exceptions", 5000, 0, 1000000, 1, 50, &shape_loose, fill_tenth,
	 run_order},
	{"recovery", "recovery plan, 8 failures in a gang of 1,024 nodes", 10000, 0, 1000000, 1, 0, NULL,
	 prepare_recovery, run_recovery},
	{"victims", "victims for a gang of 256 GPUs among 700 running gangs", 1000, 0, 10000000, 1, 0, NULL,
	 prepare_victims, run_victims},
	{"victims-512", "victims for a gang of 512 whole nodes among 4,000 running gangs", 5000, 0, 10000000, 1, 0,
	 &shape_usual, prepare_victims_512, run_victims_512},
};

/* ---- measuring ----------------------------------------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Callgrind counts what happens in here. */
__attribute__((noinline)) static void bench_measured(void (*run)(struct bench *bench), struct bench *bench)
{
	run(bench);
	__asm__ volatile("" ::: "memory");
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static uint64_t scan_ns(struct bench *bench, const uint64_t *words)
{
	uint64_t best = UINT64_MAX;
	for (uint32_t i = 0; i < 64; i++) {
		uint64_t begin = now_ns();
		for (uint32_t at = 0; at < SCAN_WORDS; at++)
			bench->sink += words[at];
		__asm__ volatile("" ::: "memory");
		uint64_t took = now_ns() - begin;
		best = took < best ? took : best;
	}
	return best;
}

static void measure(struct bench *bench, const struct bench_case *one, uint32_t repeat, uint64_t *samples,
		    const uint64_t *words, FILE *out)
{
	except(bench, one->percent);
	if (one->prepare != NULL)
		one->prepare(bench);
	uint64_t all = 0;
	uint32_t count = 0;
	while (count < repeat && all < MOST_NS) {
		uint64_t begin = now_ns();
		bench_measured(one->run, bench);
		all += samples[count++] = now_ns() - begin;
	}
	qsort(samples, count, sizeof *samples, compare);
	uint64_t median = samples[count / 2] / one->batch, scan = scan_ns(bench, words);
	double ratio = (double)samples[count / 2] / one->batch / (double)scan;
	bool over = median > one->most_ns;
	fprintf(out, "| %s | %" PRIu32 " | %.3f | %.3f |", one->what, bench->nodes, (double)median / 1000.0, ratio);
	if (one->most_ns == 0)
		fprintf(out, " – | |\n");
	else
		fprintf(out, " %.3f | %s |\n", (double)one->most_ns / 1000.0, over ? "**over**" : "held");
}

static void bench_close(struct bench *bench)
{
	if (bench == NULL)
		return;
	free(bench->memory);
	free(bench->set_memory);
	free(bench->lines);
	free(bench->room);
	free(bench->position);
	free(bench);
}

/* A loaded cluster of this shape, empty, or of the usual one and partly used; NULL: complaint. */
static struct bench *bench_open(uint32_t nodes, const struct shape *shape, struct complaint *complaint)
{
	struct bench *bench = calloc(1, sizeof *bench);
	struct frond_limits limits = {.nodes = nodes, .pods = nodes};
	struct topology topology = {.gpus = NODE_GPUS, .numa = {0, 0, 0, 0, 1, 1, 1, 1}};
	if (bench == NULL)
		goto out;
	bench->abi = frond_abi_get();
	bench->nodes = nodes;
	bench->dice = 1;
	bench->bytes = (bench->abi->size_of(&limits) + ALIGN - 1) / ALIGN * ALIGN;
	bench->memory = aligned_alloc(ALIGN, bench->bytes);
	uint64_t set_bytes = (gpuset_bytes(NODE_GPUS) + ALIGN - 1) / ALIGN * ALIGN;
	bench->set_memory = aligned_alloc(ALIGN, set_bytes + (gpuset_scratch() + ALIGN - 1) / ALIGN * ALIGN);
	bench->lines = calloc(nodes, sizeof *bench->lines);
	bench->room = calloc(nodes, sizeof *bench->room);
	bench->position = calloc(nodes, sizeof *bench->position);
	bench->shape = shape == NULL ? shape_usual : *shape;
	if (bench->memory == NULL || bench->set_memory == NULL || bench->lines == NULL || bench->room == NULL ||
	    bench->position == NULL)
		goto out;
	for (uint32_t i = 0; i < NODE_GPUS; i++)
		for (uint32_t j = 0; j < NODE_GPUS; j++)
			topology.link_gbps[i][j] = i == j ? 0 : 450;
	bench->set = gpuset_build(bench->set_memory, &topology, (char *)bench->set_memory + set_bytes);
	for (uint32_t i = 0; i < MEMBERS_MOST; i++)
		bench->members[i] = (struct frond_member){
			.pod = key_of(3, i), .rank = i, .gpus = NODE_GPUS, .pinned_slot = FROND_NONE};
	for (uint32_t slot = 0; slot < nodes; slot++)
		write_node(&bench->lines[slot], &bench->shape, slot);
	create(bench);
	load(bench);
	if (shape == NULL)
		fill(bench);
	return bench;
out:
	bench_close(bench);
	complain(complaint, 0, "out of memory");
	return NULL;
}

/* Resident memory of the process, bytes; 0: not known here. */
static uint64_t resident(void)
{
	uint64_t pages = 0;
	FILE *statm = fopen("/proc/self/statm", "r");
	if (statm != NULL && fscanf(statm, "%*u %" SCNu64, &pages) != 1)
		pages = 0;
	if (statm != NULL)
		fclose(statm);
	return pages * 4096;
}

int32_t bench_run(const char *name, uint32_t nodes, uint32_t repeat, FILE *out, struct complaint *complaint)
{
	uint64_t *samples = calloc(repeat, sizeof *samples), *words = calloc(SCAN_WORDS, sizeof *words);
	bool found = false;
	int32_t code = samples == NULL || words == NULL ? complain(complaint, 0, "out of memory") : FROND_OK;
	uint64_t before = resident();
	struct bench *large = code == FROND_OK ? bench_open(nodes, NULL, complaint) : NULL;
	if (large == NULL) {
		code = FROND_BAD;
		goto out;
	}
	uint64_t touched = resident() - before, lines = (uint64_t)nodes * sizeof *large->lines;
	fprintf(out, "| what | nodes | µs | ÷ scan of 1 MiB | may take µs | |\n|---|---|---|---|---|---|\n");
	for (uint32_t i = 0; code == FROND_OK && i < sizeof cases / sizeof *cases; i++) {
		if (name != NULL && strcmp(name, cases[i].name) != 0)
			continue;
		found = true;
		if (nodes < cases[i].least) {
			fprintf(out, "| %s | %" PRIu32 " | – | – | – | needs %" PRIu32 " nodes |\n", cases[i].what,
				nodes, cases[i].least);
			continue;
		}
		bool own = cases[i].nodes != 0 || cases[i].shape != NULL;
		struct bench *bench =
			!own ? large
			     : bench_open(cases[i].nodes != 0 ? cases[i].nodes : nodes, cases[i].shape, complaint);
		if (bench == NULL)
			code = FROND_BAD;
		else
			measure(bench, &cases[i], repeat, samples, words, out);
		if (bench != large)
			bench_close(bench);
	}
	if (code == FROND_OK && !found)
		code = complain(complaint, 0, "there is no case \"%s\"", shown(name, strlen(name)).text);
	if (code == FROND_OK && name == NULL)
		fprintf(out,
			"\nMemory for %" PRIu32
			" nodes and as many pods: %.1f MB reserved, %.1f MB touched after loading.\n",
			nodes, (double)large->bytes / 1e6, touched > lines ? (double)(touched - lines) / 1e6 : 0.0);
out:
	bench_close(large);
	free(samples);
	free(words);
	return code;
}
