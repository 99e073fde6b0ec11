/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuset.c - the quality of every set, the best set for every question, and ring order.
 *
 * Bandwidths become levels: the distinct values in ascending order, level 0 being 0 GB/s. A set's quality packs its
 * bottleneck's level above its sum over pairs, so one comparison of integers is the first two steps of reference 3.7.
 * The bottlenecks of all sets come from one pass of dynamic programming over subsets, whatever the number of levels.
 *
 * The best sets of small nodes are looked up for all masks when the table is built. For larger ones that would be 3^16
 * sets to compare, most of them for masks that never occur: an entry is searched for when it is asked for, and remembered
 * until another count of another mask wants its place. Gangs of one size never get into each other's way.
 */
#include "core/gpuset.h"

#define PAIRS_MAX    (FROND_GPUS_MAX * (FROND_GPUS_MAX - 1) / 2)
#define LEVELS_MAX   (PAIRS_MAX + 1)
#define SUM_BITS     23u
#define QUALITY_BITS 30u
#define NUMA_BITS    4u
#define GPUS_SMALL   8u /* up to here an entry is a byte and the whole table is filled at once */

/* A level and a sum make a quality; two qualities with a NUMA count in between make the order of sets. */
_Static_assert((uint64_t)PAIRS_MAX *UINT16_MAX < 1u << SUM_BITS, "sum of all pairs");
_Static_assert(LEVELS_MAX <= 1u << (QUALITY_BITS - SUM_BITS), "level above the sum");
_Static_assert(FROND_GPUS_MAX <= 1u << NUMA_BITS, "NUMA nodes");
_Static_assert(2 * QUALITY_BITS + NUMA_BITS <= 64, "order of sets");

/* Disjoint masks that cover all GPUs. */
struct groups {
	uint32_t mask[FROND_GPUS_MAX];
	uint32_t count;
};

struct gpuset {
	struct topology topology;
	struct groups numa, islands;
	uint16_t level_gbps[LEVELS_MAX];
	uint8_t level[FROND_GPUS_MAX][FROND_GPUS_MAX];
	bool uniform;
	uint32_t *quality; /* by set: level << SUM_BITS | sum */
	/* Up to GPUS_SMALL a byte by free mask and count - 1: a set. Else as many entries as masks: a set, its size above it;
	 * see best_at(). 0: not looked for yet. */
	void *best;
	uint32_t compared;   /* gpuset_compared() */
	uint64_t *rings;     /* those that were asked for last, by what stands for their set */
	uint16_t *rings_set; /* the set; 0: none */
	void *scratch;
	int32_t (*far)[FROND_GPUS_MAX]; /* the same, for rings */
};

static const struct gpu_wish wish_default = GPU_WISH_DEFAULT;

static uint32_t table_best(struct gpuset *table, uint32_t free, uint32_t count);

static uint32_t bits_low(uint32_t mask)
{
	assert(mask != 0);
	return (uint32_t)__builtin_ctz(mask);
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

static uint64_t best_bytes(uint32_t gpus)
{
	return gpus <= GPUS_SMALL ? (uint64_t)gpus << gpus : sizeof(uint32_t) << gpus;
}

/* Rings that are remembered, as bits: gangs take few different sets of a kind of node, and a search takes a microsecond for
 * 8 GPUs and a thousand for 16. */
static uint32_t rings_bits(uint32_t gpus)
{
	return gpus <= GPUS_SMALL ? 3 : 10;
}

static struct gpuset *table_layout(struct arena *arena, uint32_t gpus)
{
	assert(gpus <= FROND_GPUS_MAX);
	struct gpuset *table = arena_take(arena, 1, sizeof(*table));
	uint32_t *quality = arena_take(arena, 1u << gpus, sizeof(*quality));
	uint64_t *rings = arena_take(arena, 1u << rings_bits(gpus), sizeof(*rings));
	uint16_t *rings_set = arena_take(arena, 1u << rings_bits(gpus), sizeof(*rings_set));
	void *best = arena_take(arena, best_bytes(gpus), 1);
	if (table != NULL)
		*table = (struct gpuset){.quality = quality, .best = best, .rings = rings, .rings_set = rings_set};
	return table;
}

uint64_t gpuset_scratch(void)
{
	uint64_t ring = (sizeof(int32_t) * FROND_GPUS_MAX) << (FROND_GPUS_MAX - 1);
	uint64_t building = (uint64_t)FROND_GPUS_MAX << FROND_GPUS_MAX; /* bottlenecks_build() */
	return ring > building ? ring : building;
}

uint64_t gpuset_bytes(uint32_t gpus)
{
	struct arena arena = {NULL, 0};
	table_layout(&arena, gpus);
	return arena.used;
}

/* ---- building --------------------------------------------------------------------------------------------------- */

static void topology_check(const struct topology *topology)
{
	assert(topology->gpus <= FROND_GPUS_MAX);
	for (uint32_t i = 0; i < topology->gpus; i++) {
		assert(topology->link_gbps[i][i] == 0);
		for (uint32_t j = 0; j < i; j++)
			assert(topology->link_gbps[i][j] == topology->link_gbps[j][i]);
	}
}

static void numa_build(struct gpuset *table)
{
	const struct topology *topology = &table->topology;
	struct groups *numa = &table->numa;
	uint8_t id[FROND_GPUS_MAX];
	for (uint32_t gpu = 0; gpu < topology->gpus; gpu++) {
		uint32_t at = 0;
		while (at < numa->count && id[at] != topology->numa[gpu])
			at++;
		if (at == numa->count)
			id[numa->count++] = topology->numa[gpu];
		numa->mask[at] |= 1u << gpu;
	}
}

/* GPUs joined by links > 0, directly or through others. */
static void islands_build(struct gpuset *table)
{
	const struct topology *topology = &table->topology;
	struct groups *islands = &table->islands;
	uint32_t left = bits_first(topology->gpus);
	while (left != 0) {
		uint32_t island = left & (~left + 1), todo = island;
		while (todo != 0) {
			uint32_t gpu = bits_low(todo);
			todo ^= 1u << gpu;
			for (uint32_t peer = 0; peer < topology->gpus; peer++) {
				if (topology->link_gbps[gpu][peer] > 0 && !(island >> peer & 1)) {
					island |= 1u << peer;
					todo |= 1u << peer;
				}
			}
		}
		islands->mask[islands->count++] = island;
		left &= ~island;
	}
}

static void levels_build(struct gpuset *table)
{
	const struct topology *topology = &table->topology;
	uint32_t count = 1; /* level 0: 0 GB/s */
	for (uint32_t i = 0; i < topology->gpus; i++) {
		for (uint32_t j = 0; j < i; j++) {
			uint16_t gbps = topology->link_gbps[i][j];
			uint32_t at = count;
			while (table->level_gbps[at - 1] > gbps)
				at--;
			if (table->level_gbps[at - 1] == gbps)
				continue;
			memmove(&table->level_gbps[at + 1], &table->level_gbps[at],
				(count - at) * sizeof(table->level_gbps[0]));
			table->level_gbps[at] = gbps;
			count++;
		}
	}
	table->uniform = true;
	for (uint32_t i = 0; i < topology->gpus; i++) {
		for (uint32_t j = 0; j < topology->gpus; j++) {
			while (table->level_gbps[table->level[i][j]] != topology->link_gbps[i][j])
				table->level[i][j]++;
			if (i != j && topology->link_gbps[i][j] != topology->link_gbps[0][1])
				table->uniform = false;
		}
	}
}

static void sums_build(struct gpuset *table)
{
	table->quality[0] = 0;
	for (uint32_t set = 1; set < 1u << table->topology.gpus; set++) {
		uint32_t first = bits_low(set), others = set & (set - 1), sum = table->quality[others];
		for (uint32_t left = others; left != 0; left &= left - 1)
			sum += table->topology.link_gbps[first][bits_low(left)];
		table->quality[set] = sum;
	}
}

/* The level of the widest path that ends in `last` after visiting all of `before`; widest: the same by last GPU of
 * `before`. */
static uint8_t widest_step(const struct gpuset *table, const uint8_t *widest, uint32_t before, uint32_t last)
{
	uint8_t out = 0;
	for (uint32_t left = before; left != 0; left &= left - 1) {
		uint32_t from = bits_low(left);
		uint8_t hop = table->level[from][last];
		uint8_t path = widest[from] < hop ? widest[from] : hop;
		if (path > out)
			out = path;
	}
	return out;
}

/*
 * Adds every set's bottleneck to its quality. widest[set][last] = the highest level such that a path of hops no slower
 * starts at the lowest GPU of the set, visits all of it and ends at `last`; the ring closes it. The levels are kept
 * in the scratch.
 */
static void bottlenecks_build(struct gpuset *table)
{
	uint32_t gpus = table->topology.gpus;
	uint8_t *widest = table->scratch;
	for (uint32_t set = 1; set < 1u << gpus; set++) {
		uint32_t first = bits_low(set), others = set & (set - 1);
		uint8_t ring = 0;
		if (table->uniform) {
			ring = others == 0 ? 0 : table->level[0][1];
		} else {
			/* Alone it is a path of no hops; in a larger set no path ends where it starts. */
			widest[set * gpus + first] = others == 0 ? UINT8_MAX : 0;
			for (uint32_t left = others; left != 0; left &= left - 1) {
				uint32_t last = bits_low(left), before = set ^ 1u << last;
				uint8_t path = widest_step(table, &widest[before * gpus], before, last);
				uint8_t hop = table->level[last][first];
				widest[set * gpus + last] = path;
				ring = (uint8_t)max_u32(ring, min_u32(path, hop));
			}
		}
		table->quality[set] |= (uint32_t)ring << SUM_BITS;
	}
}

struct gpuset *gpuset_build(void *memory, const struct topology *topology, void *scratch)
{
	assert(memory != NULL && (uintptr_t)memory % ARENA_ALIGN == 0);
	topology_check(topology);
	struct arena arena = {memory, 0};
	uint32_t gpus = topology->gpus;
	struct gpuset *table = table_layout(&arena, gpus);
	table->topology = *topology;
	table->scratch = table->far = scratch;
	numa_build(table);
	islands_build(table);
	levels_build(table);
	sums_build(table);
	bottlenecks_build(table);
	memset(table->best, 0, best_bytes(gpus));
	for (uint32_t free = 1; gpus <= GPUS_SMALL && free < 1u << gpus; free++) {
		for (uint32_t count = 1; count <= bits_count(free); count++)
			table_best(table, free, count);
	}
	return table;
}

struct gpuset *gpuset_move(struct gpuset *table, void *memory)
{
	assert((uintptr_t)memory % ARENA_ALIGN == 0);
	ptrdiff_t by = (uint8_t *)memory - (uint8_t *)table;
	memmove(memory, table, gpuset_bytes(table->topology.gpus));
	struct gpuset *moved = memory;
	moved->quality = (uint32_t *)(void *)((uint8_t *)moved->quality + by);
	moved->best = (uint8_t *)moved->best + by;
	moved->rings = (uint64_t *)(void *)((uint8_t *)moved->rings + by);
	moved->rings_set = (uint16_t *)(void *)((uint8_t *)moved->rings_set + by);
	return moved;
}

/* ---- what a table knows ----------------------------------------------------------------------------------------- */

bool gpuset_same(const struct gpuset *table, const struct topology *topology)
{
	const struct topology *own = &table->topology;
	if (own->gpus != topology->gpus || memcmp(own->numa, topology->numa, own->gpus * sizeof(own->numa[0])) != 0)
		return false;
	for (uint32_t i = 0; i < own->gpus; i++) {
		if (memcmp(own->link_gbps[i], topology->link_gbps[i], own->gpus * sizeof(own->link_gbps[i][0])) != 0)
			return false;
	}
	return true;
}

static uint32_t quality_of(const struct gpuset *table, uint32_t set)
{
	assert(set >> table->topology.gpus == 0);
	return table->quality[set];
}

uint32_t gpuset_bottleneck(const struct gpuset *table, uint32_t set)
{
	return table->level_gbps[quality_of(table, set) >> SUM_BITS];
}

uint64_t gpuset_sum(const struct gpuset *table, uint32_t set)
{
	return quality_of(table, set) & ((1u << SUM_BITS) - 1);
}

uint32_t gpuset_compared(const struct gpuset *table)
{
	return table->compared;
}

uint32_t gpuset_gpus(const struct gpuset *table)
{
	return table->topology.gpus;
}

bool gpuset_uniform(const struct gpuset *table)
{
	return table->uniform;
}

static uint32_t groups_touched(const struct groups *groups, uint32_t set)
{
	uint32_t touched = 0;
	for (uint32_t i = 0; i < groups->count; i++)
		touched += (groups->mask[i] & set) != 0;
	return touched;
}

/* ---- choosing --------------------------------------------------------------------------------------------------- */

/* What a set lacks of a claim's wishes. As a number: with Preferred the locality weighs more than the bandwidth. */
enum { LACKS_BANDWIDTH = 1, LACKS_LOCALITY = 2, LACKS_ALL = 3 };

static bool wants_island(const struct gpu_wish *wish)
{
	return wish->locality == GPU_NVLINK || (wish->policy == GPU_CONTIGUOUS && wish->mode == MODE_REQUIRED);
}

static uint32_t lacks(const struct gpuset *table, const struct gpu_wish *wish, uint32_t set)
{
	uint32_t out = 0;
	if (wish->locality == GPU_SAME_SOCKET && groups_touched(&table->numa, set) > 1)
		out |= LACKS_LOCALITY;
	if (wants_island(wish) && groups_touched(&table->islands, set) > 1)
		out |= LACKS_LOCALITY;
	if (wish->min_gbps > 0 && (set & (set - 1)) != 0 && gpuset_bottleneck(table, set) < wish->min_gbps)
		out |= LACKS_BANDWIDTH;
	return out;
}

/* Bottleneck, sum, fewest NUMA nodes, the remainder's bottleneck and sum. */
static uint64_t order_contiguous(const struct gpuset *table, uint32_t set, uint32_t remainder)
{
	uint64_t order = table->quality[set];
	order = order << NUMA_BITS | (FROND_GPUS_MAX - groups_touched(&table->numa, set));
	return order << QUALITY_BITS | table->quality[remainder];
}

/* Smallest sum, most NUMA nodes, least loaded islands. */
static uint64_t order_spread(const struct gpuset *table, uint32_t set, uint32_t held)
{
	const struct groups *islands = &table->islands;
	uint32_t load = 0;
	for (uint32_t i = 0; i < islands->count; i++)
		load += bits_count(islands->mask[i] & held) * bits_count(islands->mask[i] & set);
	uint64_t order = (1u << SUM_BITS) - gpuset_sum(table, set);
	order = order << 8 | groups_touched(&table->numa, set);
	return order << 16 | (UINT16_MAX - load);
}

#define FURTHER_LOOKS 3u /* that a set takes which the first step of the order does not turn away */
#define PLAIN_LOOKS   3u /* that one takes without a claim, on average: many a bandwidth of an uneven node ties */

/* What is asked, and the best set so far. */
struct quest {
	struct gpuset *table;
	const struct gpu_wish *wish;
	uint32_t free, held, count;
	uint32_t best, best_wishes;
	uint64_t best_order;
	uint32_t compared; /* sets, and those that tie with the best once more for each further look */
};

static void compare(struct quest *quest, uint32_t set)
{
	const struct gpu_wish *wish = quest->wish;
	uint32_t lacking = lacks(quest->table, wish, set);
	quest->compared += FURTHER_LOOKS;
	if (lacking != 0 && wish->mode == MODE_REQUIRED)
		return;
	uint32_t listed = wish->policy == GPU_PREFER ? bits_count(set & wish->prefer) : 0;
	uint32_t wishes = (LACKS_ALL - lacking) << 8 | listed;
	uint64_t order = wish->policy == GPU_SPREAD ? order_spread(quest->table, set, quest->held)
						    : order_contiguous(quest->table, set, quest->free ^ set);
	/* Ascending lists of indices compare as the lowest index in which they differ: who has it is first. */
	bool lower = ((set ^ quest->best) & (~(set ^ quest->best) + 1) & set) != 0;
	bool better = wishes != quest->best_wishes ? wishes > quest->best_wishes
		      : order != quest->best_order ? order > quest->best_order
						   : lower;
	if (quest->best != 0 && !better)
		return;
	quest->best = set;
	quest->best_wishes = wishes;
	quest->best_order = order;
}

/* Which GPUs of a pool a number stands for whose bit i is the i-th of them: four bits at a time. */
struct spreading {
	uint16_t mask[FROND_GPUS_MAX / 4][16];
};

static struct spreading spreading_of(uint32_t pool)
{
	struct spreading out = {{{0}}};
	for (uint32_t i = 0; pool != 0; i++, pool &= pool - 1) {
		uint32_t gpu = pool & (~pool + 1), bit = 1u << i % 4;
		for (uint32_t lower = 0; lower < bit; lower++)
			out.mask[i / 4][bit | lower] = (uint16_t)(out.mask[i / 4][lower] | gpu);
	}
	return out;
}

static uint32_t spread_out(const struct spreading *spreading, uint32_t number)
{
	return (uint32_t)spreading->mask[0][number & 15] | spreading->mask[1][number >> 4 & 15] |
	       spreading->mask[2][number >> 8 & 15] | spreading->mask[3][number >> 12];
}

/* All sets of `count` of the pool, with `fixed` beside them. None of them has more than `most` of what is wished for: once
 * the best one has as much, the first step of the order turns most of the others away, by one look. */
static void try_sets(struct quest *quest, uint32_t fixed, uint32_t pool, uint32_t count, uint32_t most)
{
	const struct spreading spreading = spreading_of(pool);
	const uint32_t *quality = quest->table->quality;
	uint32_t flip = quest->wish->policy == GPU_SPREAD ? UINT32_MAX : 0,
		 steps = flip != 0 ? (1u << SUM_BITS) - 1 : UINT32_MAX;
	uint32_t least = 0; /* of the first step, higher first: the best one's */
	for (uint32_t part = bits_first(count), end = 1u << bits_count(pool); part < end;) {
		uint32_t set = fixed | spread_out(&spreading, part);
		quest->compared++;
		if (((quality[set] ^ flip) & steps) >= least) {
			compare(quest, set);
			if (quest->best != 0 && quest->best_wishes >= most)
				least = (quality[quest->best] ^ flip) & steps;
		}
		if (part == 0)
			break;
		/* The next number with as many bits: the lowest run moves its topmost up, the others fall to the bottom. */
		uint32_t moved = part + (part & (~part + 1));
		part = moved | (part ^ moved) >> (2 + bits_low(part));
	}
}

/* The sets of these free GPUs, all of which lack `lacking`. Those with a GPU that is not listed in place of one that is
 * cannot win, unless they are faster and that counts. */
static void try_within(struct quest *quest, uint32_t within, uint32_t lacking)
{
	const struct gpu_wish *wish = quest->wish;
	uint32_t count = quest->count, listed = wish->policy == GPU_PREFER ? wish->prefer & within : 0;
	bool fast = wish->min_gbps == 0 || count < 2;
	if (!fast && gpuset_bottleneck(quest->table, table_best(quest->table, within, count)) < wish->min_gbps) {
		lacking |= LACKS_BANDWIDTH; /* the best of all has the best bottleneck */
		fast = true;
	}
	uint32_t most = (LACKS_ALL - lacking) << 8 | min_u32(bits_count(listed), count);
	if (quest->best_wishes > most || (lacking != 0 && wish->mode == MODE_REQUIRED))
		return;
	if (listed == 0 || !fast)
		try_sets(quest, 0, within, count, most);
	else if (bits_count(listed) >= count)
		try_sets(quest, 0, listed, count, most);
	else
		try_sets(quest, listed, within ^ listed, count - bits_count(listed), most);
}

/* Locality weighs most: where a NUMA node or an island has enough free GPUs, sets that reach beyond it cannot win. */
static uint32_t search(struct gpuset *table, const struct gpu_wish *wish, uint32_t free, uint32_t held, uint32_t count)
{
	static const struct groups all = {.mask = {UINT32_MAX}, .count = 1};
	struct quest quest = {.table = table, .wish = wish, .free = free, .held = held, .count = count};
	const struct groups *numa = wish->locality == GPU_SAME_SOCKET ? &table->numa : &all;
	const struct groups *islands = wants_island(wish) ? &table->islands : &all;
	bool enough = false;
	for (uint32_t i = 0; i < numa->count; i++) {
		for (uint32_t j = 0; j < islands->count; j++) {
			uint32_t within = free & numa->mask[i] & islands->mask[j];
			if (bits_count(within) < count)
				continue;
			try_within(&quest, within, 0);
			enough = true;
		}
	}
	if (!enough)
		try_within(&quest, free, LACKS_LOCALITY);
	table->compared += quest.compared;
	return quest.best;
}

/* Where the best set of a mask and a count is remembered. With one count all masks have places of their own; the counts of
 * one mask are spread, because a multiple of an odd number is another one for each of them. */
static uint32_t best_at(const struct gpuset *table, uint32_t mask, uint32_t count)
{
	return (mask ^ count * 0x9e37u) & bits_first(table->topology.gpus);
}

/* Sets of `count` of so many GPUs. */
static uint32_t sets_of(uint32_t gpus, uint32_t count)
{
	uint32_t sets = 1;
	for (uint32_t i = 0; i < count; i++)
		sets = sets * (gpus - i) / (i + 1);
	return sets;
}

/* The best of `count` free GPUs without a claim. */
static uint32_t table_best(struct gpuset *table, uint32_t free, uint32_t count)
{
	if (table->topology.gpus <= GPUS_SMALL) {
		uint32_t at = free * table->topology.gpus + count - 1;
		uint8_t *best = table->best;
		if (best[at] == 0)
			best[at] = (uint8_t)search(table, &wish_default, free, 0, count);
		return best[at];
	}
	uint32_t *best = (uint32_t *)table->best + best_at(table, free, count);
	uint32_t compared = table->compared + PLAIN_LOOKS * sets_of(bits_count(free), count);
	if (*best >> FROND_GPUS_MAX != count)
		*best = count << FROND_GPUS_MAX | search(table, &wish_default, free, 0, count);
	table->compared = compared; /* the same, remembered or not */
	return *best & bits_first(FROND_GPUS_MAX);
}

uint32_t gpuset_choose(struct gpuset *table, const struct gpu_wish *wish, uint32_t free, uint32_t held, uint32_t count)
{
	assert(free >> table->topology.gpus == 0);
	table->compared = 0;
	if (count == 0 || count > bits_count(free))
		return 0;
	if (wish->mode == MODE_IGNORE)
		return bits_lowest(free, count);
	if (wish->policy == GPU_CONTIGUOUS || (wish->policy == GPU_PREFER && (wish->prefer & free) == 0)) {
		/* The best of all sets is also the best of those that lack nothing, if it is one of them. And it has the
		 * best bottleneck of all. */
		uint32_t set = table_best(table, free, count), lacking = lacks(table, wish, set);
		if (lacking == 0)
			return set;
		if ((lacking & LACKS_BANDWIDTH) != 0 && wish->mode == MODE_REQUIRED)
			return 0;
	}
	return search(table, wish, free, held, count);
}

/* ---- ring order ------------------------------------------------------------------------------------------------- */

#define LANES   FROND_GPUS_MAX /* of a row, whatever is needed of it: the compiler makes vectors of that */
#define NO_PATH (-(1 << 29))   /* with any number of hops less than a path of none, and no overflow */

/* A ring from `home` through gpu[0..count) in any order, by hops of at least the bottleneck. */
struct ring {
	uint8_t gpu[FROND_GPUS_MAX]; /* ascending */
	uint32_t count;
	int32_t home[LANES];       /* GB/s of the hop from there; NO_PATH: too slow */
	int32_t hop[LANES][LANES]; /* likewise, from one to the other */
	int32_t (*far)[LANES];     /* see ring_walk() */
};

/* far[set][last]: the largest sum of a path that starts at home, visits all of the set in any order and goes on to `last`,
 * which is not of it; members by their index in gpu. Every set comes after those that it contains. */
static void ring_walk(const struct ring *ring)
{
	memcpy(ring->far[0], ring->home, sizeof ring->home);
	for (uint32_t set = 1; set < 1u << ring->count; set++) {
		int32_t row[LANES];
		for (uint32_t i = 0; i < LANES; i++)
			row[i] = NO_PATH;
		for (uint32_t left = set; left != 0; left &= left - 1) {
			uint32_t last = bits_low(left);
			int32_t sum = ring->far[set ^ 1u << last][last];
			const int32_t *hop = ring->hop[last];
			for (uint32_t i = 0; i < LANES; i++)
				row[i] = sum + hop[i] > row[i] ? sum + hop[i] : row[i];
		}
		memcpy(ring->far[set], row, sizeof row);
	}
}

static int32_t hop_of(const struct gpuset *table, uint32_t from, uint32_t to, uint32_t least_gbps)
{
	uint32_t gbps = table->topology.link_gbps[from][to];
	return from == to || gbps < least_gbps ? NO_PATH : (int32_t)gbps;
}

/* Links have no direction: the best path home from where the ring has come to is the best one from home to there. */
static void ring_search(const struct gpuset *table, uint32_t set, uint32_t count, uint8_t order[FROND_GPUS_MAX])
{
	struct ring ring = {.count = count - 1, .far = table->far};
	uint32_t least_gbps = gpuset_bottleneck(table, set);
	memcpy(ring.gpu, &order[1], ring.count);
	for (uint32_t i = 0; i < LANES; i++) {
		ring.home[i] = i < ring.count ? hop_of(table, order[0], ring.gpu[i], least_gbps) : NO_PATH;
		for (uint32_t j = 0; j < LANES; j++)
			ring.hop[i][j] = i < ring.count && j < ring.count
						 ? hop_of(table, ring.gpu[i], ring.gpu[j], least_gbps)
						 : NO_PATH;
	}
	ring_walk(&ring);
	const int32_t *hop = ring.home;
	uint32_t left = bits_first(ring.count);
	for (uint32_t placed = 1; placed < count; placed++) {
		uint32_t next = 0;
		int32_t best = NO_PATH;
		for (uint32_t i = 0; i < ring.count; i++) {
			if (!(left >> i & 1) || hop[i] + ring.far[left ^ 1u << i][i] <= best)
				continue;
			best = hop[i] + ring.far[left ^ 1u << i][i];
			next = i;
		}
		assert(best >= 0);
		order[placed] = ring.gpu[next];
		left ^= 1u << next;
		hop = ring.hop[next];
	}
}

static uint64_t ring_pack(const uint8_t order[FROND_GPUS_MAX], uint32_t count)
{
	uint64_t ring = 0;
	for (uint32_t i = count; i-- > 0;)
		ring = ring << 4 | order[i];
	return ring;
}

uint64_t gpuset_ring_packed(struct gpuset *table, uint32_t set)
{
	uint8_t order[FROND_GPUS_MAX];
	uint32_t count = 0;
	for (uint32_t left = set; left != 0; left &= left - 1)
		order[count++] = (uint8_t)bits_low(left);
	/* A node that has lost GPUs may still have pods that hold them: nobody knows their links. */
	bool known = set >> table->topology.gpus == 0;
	if (count < 4 || table->uniform || !known)
		return ring_pack(order, count); /* all rings are equal */
	uint32_t at = set * 0x9e3779b1u >> (32 - rings_bits(table->topology.gpus));
	if (table->rings_set[at] != set) {
		ring_search(table, set, count, order);
		table->rings_set[at] = (uint16_t)set;
		table->rings[at] = ring_pack(order, count);
	}
	return table->rings[at];
}

uint32_t gpuset_ring(struct gpuset *table, uint32_t set, uint8_t order[FROND_GPUS_MAX])
{
	uint32_t count = bits_count(set);
	uint64_t ring = gpuset_ring_packed(table, set);
	for (uint32_t i = 0; i < count; i++, ring >>= 4)
		order[i] = ring & 0xf;
	return count;
}
