/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU sets against a naive implementation that shares no code with the table: rings by trying all permutations (for
 * large sets by memoised recursion), sets by trying all of them in lexicographic order and comparing lists of numbers.
 *
 * FROND_SEED: the seed of the random topologies, masks and wishes.
 */
#include "core/gpuset.h"
#include "dice.h"
#include "text/models.h"

#include <stdio.h>
#include <stdlib.h>
#include <unity.h>

enum { SETS = 1 << FROND_GPUS_MAX, KEYS = 8, UNKNOWN = -2, NONE = -1 };

static const struct gpu_wish plain = GPU_WISH_DEFAULT;

static struct topology t;
static void *memory, *scratch;
static struct gpuset *table;
static struct gpu_wish asked; /* what a failure is about */
static uint32_t asked_free, asked_held, asked_count;
static uint64_t compared;

static void build(void);

void setUp(void)
{
	memset(&t, 0, sizeof t);
	asked_count = 0;
}

static void dump(void)
{
	printf("\nwish: policy %d mode %d locality %d min %u prefer %x; free %x held %x count %u; gpus %u, numa, "
	       "links:\n",
	       asked.policy, asked.mode, asked.locality, asked.min_gbps, asked.prefer, asked_free, asked_held,
	       asked_count, t.gpus);
	for (uint32_t i = 0; i < t.gpus; i++) {
		printf("%u:", t.numa[i]);
		for (uint32_t j = 0; j < t.gpus; j++)
			printf(" %u", t.link_gbps[i][j]);
		printf("\n");
	}
}

void tearDown(void)
{
	if (Unity.CurrentTestFailed)
		dump();
	free(memory);
	free(scratch);
	memory = scratch = NULL;
}

/* ---- topologies ------------------------------------------------------------------------------------------------- */

static void link(uint32_t i, uint32_t j, uint32_t gbps)
{
	t.link_gbps[i][j] = t.link_gbps[j][i] = (uint16_t)gbps;
}

static void known(const char *name)
{
	for (uint32_t at = 0; at < MODELS_KNOWN; at++) {
		if (strcmp(models_known[at].name, name) != 0)
			continue;
		struct fabric_model model = {0};
		models_fill(at, &model);
		t.gpus = model.gpus;
		for (uint32_t i = 0; i < t.gpus; i++) {
			t.numa[i] = (uint8_t)model.numa[i];
			for (uint32_t j = 0; j < t.gpus; j++)
				t.link_gbps[i][j] = (uint16_t)model.link_gbps[i][j];
		}
		build();
		return;
	}
	TEST_FAIL_MESSAGE(name);
}

/* Few distinct speeds make ties, many make none; missing links make islands. */
static void roll(uint32_t gpus)
{
	uint32_t speeds = percent(20) ? 1000 : 1 + below(4), scale = percent(5) ? 65 : 1 + below(25);
	uint32_t missing = below(4) * 30, sockets = 1 + below(4);
	t.gpus = gpus;
	for (uint32_t i = 0; i < gpus; i++) {
		t.numa[i] = (uint8_t)(below(sockets) * 85);
		for (uint32_t j = 0; j < i; j++)
			link(i, j, percent(missing) ? 0 : (1 + below(speeds)) * scale);
	}
	build();
}

/* ---- naive: what a set is worth --------------------------------------------------------------------------------- */

struct worth {
	int64_t bottleneck, sum, numa; /* bottleneck UNKNOWN: not computed yet */
	int64_t hops;                  /* sum of the best ring's hops */
	uint8_t ring[FROND_GPUS_MAX];
};

static struct worth worths[SETS];
static bool joined[FROND_GPUS_MAX][FROND_GPUS_MAX]; /* in one island */
static int32_t longest[SETS / 2][FROND_GPUS_MAX];

static bool has(uint32_t set, uint32_t gpu)
{
	return (set & 1u << gpu) != 0;
}

static void build(void)
{
	free(memory);
	free(scratch);
	scratch = malloc(gpuset_scratch());
	memory =
		malloc(gpuset_bytes(t.gpus)); /* exactly as much as it says, so that the sanitizer sees a step beyond */
	TEST_ASSERT_TRUE(memory != NULL && scratch != NULL);
	memset(memory, 0xa5, gpuset_bytes(t.gpus));
	table = gpuset_build(memory, &t, scratch);
	for (uint32_t set = 0; set < 1u << t.gpus; set++)
		worths[set].bottleneck = UNKNOWN;
	for (uint32_t i = 0; i < t.gpus; i++)
		for (uint32_t j = 0; j < t.gpus; j++)
			joined[i][j] = i == j || t.link_gbps[i][j] > 0;
	for (uint32_t k = 0; k < t.gpus; k++)
		for (uint32_t i = 0; i < t.gpus; i++)
			for (uint32_t j = 0; j < t.gpus; j++)
				joined[i][j] = joined[i][j] || (joined[i][k] && joined[k][j]);
}

struct walk {
	uint8_t gpu[FROND_GPUS_MAX];
	uint32_t len, size;
};

/* All rings in lexicographic order; a later one must be really better. */
static void permute(struct walk *walk, uint32_t left, int64_t narrowest, int64_t hops, struct worth *worth)
{
	uint32_t last = walk->gpu[walk->len - 1];
	if (left == 0) {
		int64_t close = t.link_gbps[last][walk->gpu[0]];
		narrowest = close < narrowest ? close : narrowest;
		hops += close;
		if (narrowest > worth->bottleneck || (narrowest == worth->bottleneck && hops > worth->hops)) {
			worth->bottleneck = narrowest;
			worth->hops = hops;
			memcpy(worth->ring, walk->gpu, walk->size);
		}
		return;
	}
	for (uint32_t next = 0; next < t.gpus; next++) {
		if (!has(left, next))
			continue;
		int64_t hop = t.link_gbps[last][next];
		walk->gpu[walk->len++] = (uint8_t)next;
		permute(walk, left & ~(1u << next), hop < narrowest ? hop : narrowest, hops + hop, worth);
		walk->len--;
	}
}

/* For sets with too many permutations: the longest way home through all that is left, by hops of at least `floor`. */
static int32_t way_home(uint32_t home, uint32_t at, uint32_t left, int64_t floor)
{
	if (left == 0)
		return t.link_gbps[at][home] < floor ? NONE : t.link_gbps[at][home];
	int32_t *known_way = &longest[left >> 1][at];
	if (*known_way != UNKNOWN)
		return *known_way;
	int32_t best = NONE;
	for (uint32_t next = 0; next < t.gpus; next++) {
		if (!has(left, next) || t.link_gbps[at][next] < floor)
			continue;
		int32_t rest = way_home(home, next, left & ~(1u << next), floor);
		if (rest != NONE && rest + t.link_gbps[at][next] > best)
			best = rest + t.link_gbps[at][next];
	}
	return *known_way = best;
}

static void ring_by_memo(uint32_t set, uint32_t home, uint32_t size, struct worth *worth)
{
	int64_t floor = INT64_MAX; /* from the fastest link down to the first that some ring keeps to */
	do {
		int64_t slower = NONE;
		for (uint32_t i = 0; i < t.gpus; i++)
			for (uint32_t j = 0; j < t.gpus; j++)
				if (t.link_gbps[i][j] < floor && t.link_gbps[i][j] > slower)
					slower = t.link_gbps[i][j];
		floor = slower;
		for (uint32_t i = 0; i < SETS / 2; i++)
			for (uint32_t j = 0; j < FROND_GPUS_MAX; j++)
				longest[i][j] = UNKNOWN;
	} while (way_home(home, home, set & ~(1u << home), floor) == NONE);
	worth->bottleneck = floor;
	worth->hops = way_home(home, home, set & ~(1u << home), floor);
	int64_t wanted = worth->hops;
	uint32_t left = set & ~(1u << home), at = home;
	worth->ring[0] = (uint8_t)home;
	for (uint32_t len = 1; len < size; len++) {
		for (uint32_t next = 0; next < t.gpus; next++) {
			if (!has(left, next) || t.link_gbps[at][next] < floor)
				continue;
			int32_t rest = way_home(home, next, left & ~(1u << next), floor);
			if (rest == NONE || rest + t.link_gbps[at][next] != wanted)
				continue;
			wanted = rest;
			left &= ~(1u << next);
			at = next;
			break;
		}
		worth->ring[len] = (uint8_t)at;
	}
}

static const struct worth *worth_of(uint32_t set)
{
	struct worth *worth = &worths[set];
	if (worth->bottleneck != UNKNOWN)
		return worth;
	bool sockets[256] = {false};
	struct walk walk = {.len = 1};
	int64_t slowest = INT64_MAX, fastest = 0;
	*worth = (struct worth){.bottleneck = NONE};
	for (uint32_t i = 0; i < t.gpus; i++) {
		if (!has(set, i))
			continue;
		walk.gpu[walk.size++] = (uint8_t)i;
		worth->numa += !sockets[t.numa[i]];
		sockets[t.numa[i]] = true;
		for (uint32_t j = 0; j < i; j++) {
			if (!has(set, j))
				continue;
			slowest = t.link_gbps[i][j] < slowest ? t.link_gbps[i][j] : slowest;
			fastest = t.link_gbps[i][j] > fastest ? t.link_gbps[i][j] : fastest;
			worth->sum += t.link_gbps[i][j];
		}
	}
	if (walk.size < 2 || (walk.size > 6 && slowest == fastest)) { /* every ring is as good as any other */
		worth->bottleneck = fastest;
		memcpy(worth->ring, walk.gpu, walk.size);
	} else if (walk.size > 8) {
		ring_by_memo(set, walk.gpu[0], walk.size, worth);
	} else {
		permute(&walk, set & ~(1u << walk.gpu[0]), INT64_MAX, 0, worth);
	}
	return worth;
}

/* ---- naive: the best set ---------------------------------------------------------------------------------------- */

static bool one_island(uint32_t set)
{
	for (uint32_t i = 0; i < t.gpus; i++)
		for (uint32_t j = 0; j < i; j++)
			if (has(set, i) && has(set, j) && !joined[i][j])
				return false;
	return true;
}

static int64_t loads(uint32_t set, uint32_t held)
{
	int64_t load = 0;
	for (uint32_t i = 0; i < t.gpus; i++)
		for (uint32_t j = 0; j < t.gpus; j++)
			load += has(set, i) && has(held, j) && joined[i][j];
	return load;
}

static int64_t listed(uint32_t set, uint32_t prefer)
{
	int64_t count = 0;
	for (uint32_t i = 0; i < t.gpus; i++)
		count += has(set, i) && has(prefer, i);
	return count;
}

/* The numbers that decide, the first first, larger is better. False: refused. */
static bool judge(const struct gpu_wish *wish, uint32_t set, uint32_t free_gpus, uint32_t held, uint32_t count,
		  int64_t keys[KEYS])
{
	const struct worth *worth = worth_of(set), *remainder = worth_of(free_gpus & ~set);
	uint32_t n = 0;
	memset(keys, 0, KEYS * sizeof *keys);
	if (wish->mode == MODE_IGNORE)
		return true;
	bool near = wish->locality == GPU_SAME_SOCKET ? worth->numa == 1
		    : wish->locality == GPU_NVLINK    ? one_island(set)
						      : true;
	bool fast = count < 2 || worth->bottleneck >= wish->min_gbps;
	if (wish->mode == MODE_REQUIRED) {
		if (!near || !fast || (wish->policy == GPU_CONTIGUOUS && !one_island(set)))
			return false;
	} else {
		keys[n++] = near;
		keys[n++] = fast;
	}
	if (wish->policy == GPU_SPREAD) {
		keys[n++] = -worth->sum;
		keys[n++] = worth->numa;
		keys[n++] = -loads(set, held);
		return true;
	}
	if (wish->policy == GPU_PREFER)
		keys[n++] = listed(set, wish->prefer);
	keys[n++] = worth->bottleneck;
	keys[n++] = worth->sum;
	keys[n++] = -worth->numa;
	keys[n++] = remainder->bottleneck;
	keys[n++] = remainder->sum;
	return true;
}

struct naive {
	const struct gpu_wish *wish;
	uint32_t free, held, count, best;
	int64_t keys[KEYS];
};

/* Sets in lexicographic order of their indices; a later one must be really better. */
static void try_all(struct naive *naive, uint32_t set, uint32_t size, uint32_t from)
{
	if (size < naive->count) {
		for (uint32_t gpu = from; gpu < t.gpus; gpu++)
			if (has(naive->free, gpu))
				try_all(naive, set | 1u << gpu, size + 1, gpu + 1);
		return;
	}
	int64_t keys[KEYS];
	if (!judge(naive->wish, set, naive->free, naive->held, naive->count, keys))
		return;
	uint32_t n = 0;
	while (naive->best != 0 && n < KEYS && keys[n] == naive->keys[n])
		n++;
	if (naive->best == 0 || (n < KEYS && keys[n] > naive->keys[n])) {
		naive->best = set;
		memcpy(naive->keys, keys, sizeof keys);
	}
}

static void compare_choice(const struct gpu_wish *wish, uint32_t free_gpus, uint32_t held, uint32_t count)
{
	struct naive naive = {.wish = wish, .free = free_gpus, .held = held, .count = count};
	if (count > 0)
		try_all(&naive, 0, 0, 0);
	asked = *wish;
	asked_free = free_gpus;
	asked_held = held;
	asked_count = count;
	compared++;
	TEST_ASSERT_EQUAL_HEX32(naive.best, gpuset_choose(table, wish, free_gpus, held, count));
}

/* Every mask, every size, one too many and none; held ones are some of those that are not free. */
static void compare_choices(const struct gpu_wish *wish)
{
	uint32_t held = below(SETS);
	for (uint32_t free_gpus = 0; free_gpus < 1u << t.gpus; free_gpus++)
		for (uint32_t count = 0; count <= t.gpus + 1; count++)
			compare_choice(wish, free_gpus, held & ~free_gpus & ((1u << t.gpus) - 1), count);
}

static void compare_worth(uint32_t set)
{
	const struct worth *worth = worth_of(set);
	uint8_t order[FROND_GPUS_MAX];
	asked_free = set;
	uint32_t size = gpuset_ring(table, set, order);
	TEST_ASSERT_EQUAL_UINT32(__builtin_popcount(set), size);
	TEST_ASSERT_EQUAL_UINT32(worth->bottleneck, gpuset_bottleneck(table, set));
	TEST_ASSERT_EQUAL_UINT64(worth->sum, gpuset_sum(table, set));
	if (size > 0)
		TEST_ASSERT_EQUAL_UINT8_ARRAY(worth->ring, order, size);
}

static void compare_worths(void)
{
	for (uint32_t set = 0; set < 1u << t.gpus; set++)
		compare_worth(set);
	bool equal = true;
	for (uint32_t i = 0; i < t.gpus; i++)
		for (uint32_t j = 0; j < i; j++)
			equal = equal && t.link_gbps[i][j] == t.link_gbps[1][0];
	TEST_ASSERT_EQUAL(equal, gpuset_uniform(table));
}

static uint32_t any_link(void)
{
	return t.gpus < 2 ? 0 : t.link_gbps[below(t.gpus)][below(t.gpus)];
}

static struct gpu_wish any_wish(void)
{
	return (struct gpu_wish){
		.policy = (enum gpu_policy)below(3),
		.mode = percent(10)   ? MODE_IGNORE
			: percent(50) ? MODE_REQUIRED
				      : MODE_PREFERRED,
		.locality = (enum gpu_locality)below(3),
		.min_gbps = percent(50) ? 0 : any_link() + below(2),
		.prefer = below(SETS),
	};
}

/* ---- known machines --------------------------------------------------------------------------------------------- */

static void test_known_models_every_mask_size_and_wish(void)
{
	static const char *const names[] = {"DGX-1V", "A100-SXM", "H100-SXM", "B200-SXM",
					    "GB200",  "MI300X",   "PCIE-4",   "PCIE-8"};
	for (uint32_t at = 0; at < sizeof names / sizeof *names; at++) {
		known(names[at]);
		compare_worths();
		compare_choices(&plain);
		uint32_t link_gbps = t.link_gbps[0][1];
		const uint32_t floors[] = {0, link_gbps, link_gbps + 1, 2 * link_gbps + 1};
		for (uint32_t i = 0; i < 3 * 3 * 3 * 4; i++) {
			struct gpu_wish wish = {(enum gpu_policy)(i % 3), (enum mode)(i / 3 % 3),
						(enum gpu_locality)(i / 9 % 3), floors[i / 27], below(SETS)};
			compare_choices(&wish);
		}
	}
}

static void test_the_sixteen_gpus_of_a_dgx_2(void)
{
	known("DGX-2");
	TEST_ASSERT_TRUE(gpuset_uniform(table));
	for (uint32_t free_gpus = 0; free_gpus < 1u << 10; free_gpus++)
		for (uint32_t count = 0; count <= 11; count++)
			compare_choice(&plain, free_gpus, 0, count);
	for (uint32_t i = 0; i < 4000; i++) {
		uint32_t free_gpus = below(SETS);
		struct gpu_wish wish = any_wish();
		compare_choice(&plain, free_gpus, 0, 1 + below(16));
		compare_choice(&wish, free_gpus, below(SETS) & ~free_gpus, 1 + below(16));
		compare_worth(free_gpus);
	}
	for (uint32_t count = 0; count <= 17; count++)
		compare_choice(&plain, SETS - 1, 0, count);
}

static void test_a_dgx_1v_by_hand(void)
{
	static const uint8_t whole[] = {0, 3, 2, 1, 5, 6, 7, 4}, half[] = {0, 1, 2, 3};
	uint8_t order[FROND_GPUS_MAX];
	known("DGX-1V");
	TEST_ASSERT_FALSE(gpuset_uniform(table));
	/* The double links form one ring of all eight. */
	TEST_ASSERT_EQUAL_UINT32(50, gpuset_bottleneck(table, 0xff));
	TEST_ASSERT_EQUAL_UINT32(8, gpuset_ring(table, 0xff, order));
	TEST_ASSERT_EQUAL_UINT8_ARRAY(whole, order, 8);
	/* Half of it has three double links in a row and a single one to close the ring. */
	TEST_ASSERT_EQUAL_UINT32(25, gpuset_bottleneck(table, 0x0f));
	TEST_ASSERT_EQUAL_UINT64(3 * 50 + 3 * 25, gpuset_sum(table, 0x0f));
	TEST_ASSERT_EQUAL_UINT32(4, gpuset_ring(table, 0x0f, order));
	TEST_ASSERT_EQUAL_UINT8_ARRAY(half, order, 4);
	TEST_ASSERT_EQUAL_HEX32(0x0f, gpuset_choose(table, &plain, 0xff, 0, 4));
	/* GPUs 0 and 5 have no link; 5 and 6 have two. */
	TEST_ASSERT_EQUAL_UINT32(0, gpuset_bottleneck(table, 0x21));
	TEST_ASSERT_EQUAL_HEX32(0x60, gpuset_choose(table, &plain, 0x61, 0, 2));
	/* One GPU of three: the one whose leaving keeps the double link. */
	TEST_ASSERT_EQUAL_HEX32(0x01, gpuset_choose(table, &plain, 0x61, 0, 1));
}

/* ---- policies and filters by hand ------------------------------------------------------------------------------- */

/* Two islands, 0-1-2 in a row (no ring) and 3-4, one socket each, and 5 alone on the second socket. */
static void two_islands(void)
{
	t.gpus = 6;
	link(0, 1, 10);
	link(1, 2, 10);
	link(3, 4, 40);
	t.numa[3] = t.numa[4] = t.numa[5] = 1;
	build();
}

static void test_required_contiguous_is_one_island_even_without_a_ring(void)
{
	struct gpu_wish wish = {GPU_CONTIGUOUS, MODE_REQUIRED, GPU_ANYWHERE, 0, 0};
	two_islands();
	TEST_ASSERT_EQUAL_HEX32(0x19, gpuset_choose(table, &plain, 0x1b, 0, 3)); /* across islands: largest sum */
	TEST_ASSERT_EQUAL_HEX32(0x07, gpuset_choose(table, &wish, 0x3f, 0, 3));
	TEST_ASSERT_EQUAL_HEX32(0x18, gpuset_choose(table, &wish, 0x3f, 0, 2));
	TEST_ASSERT_EQUAL_HEX32(0, gpuset_choose(table, &wish, 0x1b, 0, 3));
	TEST_ASSERT_EQUAL_HEX32(0, gpuset_choose(table, &wish, 0x3f, 0, 4));
	TEST_ASSERT_EQUAL_HEX32(0x05,
				gpuset_choose(table, &wish, 0x25, 0, 2)); /* joined through GPU 1, which is taken */
	TEST_ASSERT_EQUAL_HEX32(0x20, gpuset_choose(table, &wish, 0x20, 0, 1));
	wish.policy = GPU_PREFER; /* the demand for an island is the contiguous policy's alone */
	TEST_ASSERT_NOT_EQUAL(0, gpuset_choose(table, &wish, 0x3f, 0, 4));
}

static void test_bandwidth_counts_for_two_gpus_or_more(void)
{
	struct gpu_wish wish = {GPU_CONTIGUOUS, MODE_REQUIRED, GPU_ANYWHERE, 40, 0};
	two_islands();
	TEST_ASSERT_EQUAL_HEX32(0x18, gpuset_choose(table, &wish, 0x3f, 0, 2));
	TEST_ASSERT_EQUAL_HEX32(0, gpuset_choose(table, &wish, 0x37, 0, 2));
	TEST_ASSERT_EQUAL_HEX32(0x20, gpuset_choose(table, &wish, 0x3f, 0, 1));
	wish.min_gbps = 41;
	TEST_ASSERT_EQUAL_HEX32(0, gpuset_choose(table, &wish, 0x3f, 0, 2));
	wish.mode = MODE_PREFERRED;
	TEST_ASSERT_EQUAL_HEX32(0x18, gpuset_choose(table, &wish, 0x3f, 0, 2));
	wish.mode = MODE_IGNORE;
	TEST_ASSERT_EQUAL_HEX32(0x05, gpuset_choose(table, &wish, 0x3d, 0, 2));
}

static void test_preferred_locality_weighs_more_than_preferred_bandwidth(void)
{
	struct gpu_wish wish = {GPU_CONTIGUOUS, MODE_PREFERRED, GPU_SAME_SOCKET, 50, 0};
	t.gpus = 3;
	link(0, 1, 100);
	t.numa[0] = 1;
	build();
	TEST_ASSERT_EQUAL_HEX32(0x3, gpuset_choose(table, &plain, 0x7, 0, 2));
	TEST_ASSERT_EQUAL_HEX32(0x6, gpuset_choose(table, &wish, 0x7, 0, 2));
	TEST_ASSERT_EQUAL_HEX32(0x3,
				gpuset_choose(table, &wish, 0x3, 0, 2)); /* no choice: after the others, not refused */
	wish.mode = MODE_REQUIRED;
	TEST_ASSERT_EQUAL_HEX32(0, gpuset_choose(table, &wish, 0x7, 0, 2));
}

static void test_spread_takes_distant_gpus_of_the_least_loaded_islands(void)
{
	struct gpu_wish wish = {GPU_SPREAD, MODE_PREFERRED, GPU_ANYWHERE, 0, 0};
	t.gpus = 8; /* four pairs on one socket */
	for (uint32_t i = 0; i < 8; i += 2)
		link(i, i + 1, 100);
	build();
	TEST_ASSERT_EQUAL_HEX32(0x05, gpuset_choose(table, &wish, 0xff, 0, 2));
	TEST_ASSERT_EQUAL_HEX32(0x50, gpuset_choose(table, &wish, 0xfa, 0x05, 2));
	TEST_ASSERT_EQUAL_HEX32(0x42, gpuset_choose(table, &wish, 0xea, 0x15, 2));
	t.numa[3] = 1; /* more sockets come before less load */
	build();
	TEST_ASSERT_EQUAL_HEX32(0x18, gpuset_choose(table, &wish, 0xfa, 0x05, 2));
}

static void test_listed_gpus_come_first(void)
{
	struct gpu_wish wish = {GPU_PREFER, MODE_PREFERRED, GPU_ANYWHERE, 0, 0x21};
	known("DGX-1V");
	TEST_ASSERT_EQUAL_HEX32(0x21, gpuset_choose(table, &wish, 0xff, 0, 2));
	TEST_ASSERT_EQUAL_HEX32(0x09, gpuset_choose(table, &wish, 0x0f, 0, 2));
	TEST_ASSERT_EQUAL_HEX32(0x06, gpuset_choose(table, &wish, 0x0e, 0, 2)); /* none of them is free */
	wish.prefer = 0;
	for (uint32_t count = 1; count <= 8; count++)
		TEST_ASSERT_EQUAL_HEX32(gpuset_choose(table, &plain, 0xff, 0, count),
					gpuset_choose(table, &wish, 0xff, 0, count));
}

/* ---- random topologies ------------------------------------------------------------------------------------------ */

static void test_random_topologies_of_up_to_eight_gpus(void)
{
	for (uint32_t i = 0; i < 3000; i++) {
		roll(i % 16 == 0 ? 8 : i % 4 == 0 ? 7 : below(7));
		compare_worths();
		compare_choices(&plain);
		for (uint32_t wishes = 0; wishes < 3; wishes++) {
			struct gpu_wish wish = any_wish();
			compare_choices(&wish);
		}
	}
}

static void test_random_topologies_of_more_gpus(void)
{
	for (uint32_t i = 0; i < 60; i++) {
		roll(9 + below(8));
		for (uint32_t rolls = 0; rolls < 50; rolls++) {
			uint32_t free_gpus = 0;
			while (__builtin_popcount(free_gpus) < 8)
				free_gpus |= 1u << below(t.gpus);
			struct gpu_wish wish = any_wish();
			uint32_t held = below(1u << t.gpus) & ~free_gpus, count = 1 + below(8);
			compare_choice(&plain, free_gpus, held, count);
			compare_choice(&wish, free_gpus, held, count);
			compare_worth(free_gpus & below(1u << t.gpus));
		}
	}
}

static void test_rings_of_more_than_eight_gpus(void)
{
	for (uint32_t i = 0; i < 16; i++) {
		t.gpus = i < 3 ? 16 : 9 + below(6);
		for (uint32_t a = 0; a < t.gpus; a++)
			for (uint32_t b = 0; b < a; b++) /* i = 0: two islands, so that no ring has a bottleneck */
				link(a, b, i == 0 ? ((a ^ b) & 1 ? 0 : 1 + below(3)) : below(3) * (1 + below(i)));
		build();
		compare_worth((1u << t.gpus) - 1);
	}
}

/* Few are remembered: another one may have taken the place since. */
static void test_a_ring_is_the_same_when_it_is_asked_for_again(void)
{
	for (uint32_t i = 0; i < 60; i++) {
		roll(i % 4 == 0 ? 4 + below(4) : 8);
		for (uint32_t rolls = 0; rolls < 400; rolls++) {
			uint32_t set = below(1u << t.gpus);
			compare_worth(set);
			if (percent(30))
				compare_worth(set);
		}
	}
}

/* Link tables move together when another one goes: nothing of a table may stay behind, what it remembers included. */
static void test_a_table_that_was_moved_leaves_nothing_behind(void)
{
	known("DGX-1V");
	build();
	uint32_t free_mask = 0x7f;
	uint64_t bytes = gpuset_bytes(t.gpus), before[5], after[5];
	for (uint32_t i = 0; i < 5; i++)
		before[i] = gpuset_ring_packed(table, 0x1fu << i % 3 & 0xff);
	uint32_t set = gpuset_choose(table, &plain, free_mask, 0, 4);
	uint8_t *to = aligned_alloc(16, (bytes + 15) / 16 * 16), *old = memory;
	TEST_ASSERT_NOT_NULL(to);
	table = gpuset_move(table, to);
	memset(old, 0xa5, bytes);
	for (uint32_t i = 0; i < 5; i++)
		after[i] = gpuset_ring_packed(table, 0x1fu << i % 3 & 0xff);
	TEST_ASSERT_EQUAL_MEMORY(before, after, sizeof before);
	TEST_ASSERT_EQUAL_HEX32(set, gpuset_choose(table, &plain, free_mask, 0, 4));
	for (uint32_t mask = 3; mask < 256; mask++) /* rings that were not asked for before are remembered, too */
		if ((mask & (mask - 1)) != 0)
			gpuset_ring_packed(table, mask);
	for (uint64_t i = 0; i < bytes; i++)
		TEST_ASSERT_EQUAL_HEX8(0xa5, old[i]);
	memory = to;
	free(old);
}

static void test_rings_of_the_fastest_links_there_can_be(void)
{
	t.gpus = FROND_GPUS_MAX;
	for (uint32_t a = 0; a < t.gpus; a++)
		for (uint32_t b = 0; b < a; b++)
			link(a, b, percent(50) ? UINT16_MAX : percent(50) ? UINT16_MAX - 1 : 0);
	build();
	compare_worth((1u << t.gpus) - 1);
	compare_worth(0xbfff);
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

static void test_memory_stays_small(void)
{
	TEST_ASSERT_TRUE(gpuset_bytes(8) <= 4400);
	TEST_ASSERT_TRUE(gpuset_bytes(16) <= 1320000);
	for (uint32_t gpus = 1; gpus <= FROND_GPUS_MAX; gpus++)
		TEST_ASSERT_TRUE(gpuset_bytes(gpus - 1) < gpuset_bytes(gpus));
}

/* Without a sanitizer too: whatever was behind the table is there still. */
static void test_building_writes_nothing_beyond_its_bytes(void)
{
	enum { BEHIND = 64 };
	for (uint32_t gpus = 0; gpus <= 9; gpus++) { /* both layouts */
		roll(gpus);
		uint64_t bytes = gpuset_bytes(gpus);
		for (uint32_t filler = 0; filler <= UINT8_MAX; filler += UINT8_MAX) {
			uint8_t *larger = malloc(bytes + BEHIND);
			TEST_ASSERT_NOT_NULL(larger);
			memset(larger, (int)filler, bytes + BEHIND);
			gpuset_build(larger, &t, scratch);
			bool kept = true;
			for (uint64_t i = 0; i < BEHIND; i++)
				kept &= larger[bytes + i] == filler;
			free(larger);
			TEST_ASSERT_TRUE(kept);
		}
	}
}

static void test_no_gpu_and_one(void)
{
	uint8_t order[FROND_GPUS_MAX];
	t.gpus = 0;
	build();
	TEST_ASSERT_EQUAL_HEX32(0, gpuset_choose(table, &plain, 0, 0, 0));
	TEST_ASSERT_EQUAL_HEX32(0, gpuset_choose(table, &plain, 0, 0, 1));
	TEST_ASSERT_EQUAL_UINT32(0, gpuset_ring(table, 0, order));
	TEST_ASSERT_TRUE(gpuset_uniform(table));
	t.gpus = 1;
	build();
	TEST_ASSERT_EQUAL_HEX32(1, gpuset_choose(table, &plain, 1, 0, 1));
	TEST_ASSERT_EQUAL_UINT32(1, gpuset_ring(table, 1, order));
	TEST_ASSERT_EQUAL_UINT8(0, order[0]);
	TEST_ASSERT_EQUAL_UINT32(0, gpuset_bottleneck(table, 1));
	TEST_ASSERT_TRUE(gpuset_uniform(table));
}

static void test_the_fastest_links_do_not_overflow(void)
{
	t.gpus = 16;
	for (uint32_t i = 0; i < 16; i++) {
		t.numa[i] = (uint8_t)(255 - i);
		for (uint32_t j = 0; j < i; j++)
			link(i, j, UINT16_MAX - i * (i - 1) / 2 - j); /* 120 speeds */
	}
	build();
	TEST_ASSERT_EQUAL_UINT64(120u * UINT16_MAX - 119 * 120 / 2, gpuset_sum(table, 0xffff));
	compare_worth(0xffff);
	for (uint32_t i = 0; i < 200; i++) {
		uint32_t free_gpus = 1u << below(16) | 1u << below(16) | 1u << below(16) | 1u << below(16);
		compare_choice(&plain, free_gpus, 0, 1 + below(4));
	}
}

static void test_same_means_an_equal_topology(void)
{
	known("DGX-1V");
	struct topology other = t;
	TEST_ASSERT_TRUE(gpuset_same(table, &other));
	other.numa[8] = 7; /* no GPU of this machine */
	other.link_gbps[3][8] = 7;
	other.link_gbps[8][3] = 7;
	TEST_ASSERT_TRUE(gpuset_same(table, &other));
	other.numa[7] = 0;
	TEST_ASSERT_FALSE(gpuset_same(table, &other));
	other = t;
	other.link_gbps[6][7] = other.link_gbps[7][6] = 51;
	TEST_ASSERT_FALSE(gpuset_same(table, &other));
	other = t;
	other.gpus = 7;
	TEST_ASSERT_FALSE(gpuset_same(table, &other));
}

static void test_a_node_with_fewer_gpus_may_use_the_larger_table(void)
{
	known("DGX-1V");
	struct gpuset *whole = table;
	void *whole_memory = memory;
	memory = NULL;
	for (t.gpus = 1; t.gpus < 8; t.gpus++) {
		build();
		for (uint32_t free_gpus = 0; free_gpus < 1u << t.gpus; free_gpus++)
			for (uint32_t count = 0; count <= t.gpus; count++)
				TEST_ASSERT_EQUAL_HEX32(gpuset_choose(table, &plain, free_gpus, 0, count),
							gpuset_choose(whole, &plain, free_gpus, 0, count));
	}
	free(whole_memory);
}

static void test_the_order_of_questions_does_not_matter(void)
{
	static uint32_t first[1 << 12][12];
	roll(12);
	for (uint32_t free_gpus = 0; free_gpus < 1u << 12; free_gpus++)
		for (uint32_t count = 0; count < 12; count++)
			first[free_gpus][count] = gpuset_choose(table, &plain, free_gpus, 0, count);
	build();
	for (uint32_t free_gpus = 1u << 12; free_gpus-- > 0;) {
		for (uint32_t count = 12; count-- > 0;) {
			uint32_t set = gpuset_choose(table, &plain, free_gpus, 0, count);
			TEST_ASSERT_EQUAL_HEX32(first[free_gpus][count], set);
			TEST_ASSERT_EQUAL_HEX32(set, gpuset_choose(table, &plain, free_gpus, 0, count));
		}
	}
}

int main(void)
{
	const char *seed_text = getenv("FROND_SEED");
	dice = seed_text == NULL ? 20260101 : strtoull(seed_text, NULL, 0);
	printf("seed %llu\n", (unsigned long long)dice);
	UNITY_BEGIN();
	RUN_TEST(test_known_models_every_mask_size_and_wish);
	RUN_TEST(test_the_sixteen_gpus_of_a_dgx_2);
	RUN_TEST(test_a_dgx_1v_by_hand);
	RUN_TEST(test_required_contiguous_is_one_island_even_without_a_ring);
	RUN_TEST(test_bandwidth_counts_for_two_gpus_or_more);
	RUN_TEST(test_preferred_locality_weighs_more_than_preferred_bandwidth);
	RUN_TEST(test_spread_takes_distant_gpus_of_the_least_loaded_islands);
	RUN_TEST(test_listed_gpus_come_first);
	RUN_TEST(test_random_topologies_of_up_to_eight_gpus);
	RUN_TEST(test_random_topologies_of_more_gpus);
	RUN_TEST(test_rings_of_more_than_eight_gpus);
	RUN_TEST(test_a_ring_is_the_same_when_it_is_asked_for_again);
	RUN_TEST(test_a_table_that_was_moved_leaves_nothing_behind);
	RUN_TEST(test_rings_of_the_fastest_links_there_can_be);
	RUN_TEST(test_memory_stays_small);
	RUN_TEST(test_building_writes_nothing_beyond_its_bytes);
	RUN_TEST(test_no_gpu_and_one);
	RUN_TEST(test_the_fastest_links_do_not_overflow);
	RUN_TEST(test_same_means_an_equal_topology);
	RUN_TEST(test_a_node_with_fewer_gpus_may_use_the_larger_table);
	RUN_TEST(test_the_order_of_questions_does_not_matter);
	printf("%llu choices compared\n", (unsigned long long)compared);
	return UNITY_END();
}
