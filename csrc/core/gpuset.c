/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuset.c - the quality of every set, the best set for every question, and ring order.
 *
 * Bandwidths become levels: the distinct values in ascending order, level 0 being 0 GB/s. A set's quality packs its
 * bottleneck's level above its sum over pairs, so one comparison of integers is the first two steps of spec 3.7. The
 * bottlenecks of all sets come from one pass of dynamic programming over subsets, whatever the number of levels.
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
	int32_t *layer[2]; /* scratch of gpuset_ring */
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

/* Entries of the largest layer of gpuset_ring: sets of one size of all GPUs but the first, times their members. */
static uint64_t layer_entries(uint32_t gpus)
{
	uint64_t largest = 0, sets = 1;
	for (uint32_t others = gpus == 0 ? 0 : gpus - 1, size = 1; size <= others; size++) {
		sets = sets * (others - size + 1) / size;
		if (sets * size > largest)
			largest = sets * size;
	}
	return largest;
}

static struct gpuset *table_layout(struct arena *arena, uint32_t gpus)
{
	assert(gpus <= FROND_GPUS_MAX);
	struct gpuset *table = arena_take(arena, 1, sizeof(*table));
	uint32_t *quality = arena_take(arena, 1u << gpus, sizeof(*quality));
	void *best = arena_take(arena, best_bytes(gpus), 1);
	if (table != NULL)
		*table = (struct gpuset){.quality = quality, .best = best};
	return table;
}

uint64_t gpuset_scratch(void)
{
	uint64_t ring = 2 * layer_entries(FROND_GPUS_MAX) * sizeof(int32_t);
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
	uint8_t *widest = (uint8_t *)table->layer[0];
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
	table->layer[0] = scratch;
	table->layer[1] = table->layer[0] + layer_entries(FROND_GPUS_MAX);
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
	ptrdiff_t quality = (uint8_t *)table->quality - (uint8_t *)table,
		  best = (uint8_t *)table->best - (uint8_t *)table;
	memmove(memory, table, gpuset_bytes(table->topology.gpus));
	struct gpuset *moved = memory;
	moved->quality = (uint32_t *)((uint8_t *)memory + quality);
	moved->best = (uint8_t *)memory + best;
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

static uint32_t lacks(const struct gpuset *table, const struct gpu_wish *wish, uint32_t set)
{
	bool island = wish->locality == GPU_NVLINK || (wish->policy == GPU_CONTIGUOUS && wish->mode == MODE_REQUIRED);
	uint32_t out = 0;
	if (wish->locality == GPU_SAME_SOCKET && groups_touched(&table->numa, set) > 1)
		out |= LACKS_LOCALITY;
	if (island && groups_touched(&table->islands, set) > 1)
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

/* The next set of as many of the free GPUs in ascending order of masks; 0 after the last: the lowest run of chosen
 * ones moves its topmost up, the others fall to the bottom. */
static uint32_t set_next(uint32_t set, uint32_t free, uint32_t count)
{
	uint32_t moved = ((set | ~free) + (set & (~set + 1))) & free;
	return moved == 0 ? 0 : moved | bits_lowest(free, count - bits_count(moved));
}

static uint32_t search(const struct gpuset *table, const struct gpu_wish *wish, uint32_t free, uint32_t held,
		       uint32_t count)
{
	uint32_t best = 0, best_wishes = 0;
	uint64_t best_order = 0;
	for (uint32_t set = bits_lowest(free, count); set != 0; set = set_next(set, free, count)) {
		uint32_t lacking = lacks(table, wish, set);
		if (lacking != 0 && wish->mode == MODE_REQUIRED)
			continue;
		uint32_t listed = wish->policy == GPU_PREFER ? bits_count(set & wish->prefer) : 0;
		uint32_t wishes = (LACKS_ALL - lacking) << 8 | listed;
		uint64_t order = wish->policy == GPU_SPREAD ? order_spread(table, set, held)
							    : order_contiguous(table, set, free ^ set);
		/* Ascending lists of indices compare as the lowest index in which they differ: who has it is first. */
		bool lower = ((set ^ best) & (~(set ^ best) + 1) & set) != 0;
		bool better = wishes != best_wishes ? wishes > best_wishes
			      : order != best_order ? order > best_order
						    : lower;
		if (best == 0 || better) {
			best = set;
			best_wishes = wishes;
			best_order = order;
		}
	}
	return best;
}

/* Where the best set of a mask and a count is remembered. With one count all masks have places of their own; the counts of
 * one mask are spread, because a multiple of an odd number is another one for each of them. */
static uint32_t best_at(const struct gpuset *table, uint32_t mask, uint32_t count)
{
	return (mask ^ count * 0x9e37u) & bits_first(table->topology.gpus);
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
	if (*best >> FROND_GPUS_MAX != count)
		*best = count << FROND_GPUS_MAX | search(table, &wish_default, free, 0, count);
	return *best & bits_first(FROND_GPUS_MAX);
}

uint32_t gpuset_choose(struct gpuset *table, const struct gpu_wish *wish, uint32_t free, uint32_t held, uint32_t count)
{
	assert(free >> table->topology.gpus == 0);
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

#define NO_PATH (-1)

/* A ring from `home` through gpu[0..count) in any order, by hops of at least min_gbps. */
struct ring {
	const struct gpuset *table;
	uint32_t min_gbps;
	uint32_t home;
	uint8_t gpu[FROND_GPUS_MAX]; /* ascending */
	uint32_t count;
	uint32_t choose[FROND_GPUS_MAX][FROND_GPUS_MAX]; /* n, k: sets of k of n */
};

static int32_t hop(const struct ring *ring, uint32_t from, uint32_t to, int32_t further)
{
	uint16_t gbps = ring->table->topology.link_gbps[from][to];
	return further == NO_PATH || gbps < ring->min_gbps ? NO_PATH : further + gbps;
}

/*
 * From one layer to the next: for a set of `size` members, the largest sum of a path that starts at each of them in
 * turn, visits the others and ends at home. The layer lists its sets in ascending order of masks, and in it the set
 * c0 < c1 < … stands in place C(c0,1) + C(c1,2) + …; without its t-th member those behind it count one less.
 */
static void ring_set(const struct ring *ring, uint32_t set, uint32_t size, const int32_t *shorter, int32_t *out)
{
	uint32_t at[FROND_GPUS_MAX], behind = 0, before = 0;
	for (uint32_t i = 0; i < size; i++, set &= set - 1) {
		at[i] = bits_low(set);
		behind += ring->choose[at[i]][i];
	}
	for (uint32_t start = 0; start < size; start++) {
		behind -= ring->choose[at[start]][start];
		const int32_t *further = &shorter[(uint64_t)(before + behind) * (size - 1)];
		before += ring->choose[at[start]][start + 1];
		out[start] = NO_PATH;
		for (uint32_t i = 0; i < size; i++) {
			if (i == start)
				continue;
			int32_t sum = hop(ring, ring->gpu[at[start]], ring->gpu[at[i]], further[i - (i > start)]);
			if (sum > out[start])
				out[start] = sum;
		}
	}
}

/* By first GPU: the largest sum of a path through all of ring->gpu that ends at home. */
static const int32_t *ring_rest(const struct ring *ring)
{
	int32_t *layer = ring->table->layer[0], *shorter = ring->table->layer[1];
	for (uint32_t i = 0; i < ring->count; i++)
		layer[i] = hop(ring, ring->gpu[i], ring->home, 0);
	for (uint32_t size = 2; size <= ring->count; size++) {
		int32_t *swap = layer;
		layer = shorter;
		shorter = swap;
		uint32_t all = bits_first(ring->count), place = 0;
		for (uint32_t set = bits_first(size); set != 0; set = set_next(set, all, size), place++)
			ring_set(ring, set, size, shorter, &layer[(uint64_t)place * size]);
	}
	return layer;
}

/*
 * Only two layers are kept: after each step they are computed again for the GPUs that are left. That is twice the work
 * of the first time in all: about 2^n·n² for n GPUs.
 */
uint32_t gpuset_ring(const struct gpuset *table, uint32_t set, uint8_t order[FROND_GPUS_MAX])
{
	/* A node that has lost GPUs may still have pods that hold them: nobody knows their links. */
	bool known = set >> table->topology.gpus == 0;
	uint32_t count = 0;
	for (uint32_t left = set; left != 0; left &= left - 1)
		order[count++] = (uint8_t)bits_low(left);
	if (count < 4 || table->uniform || !known)
		return count; /* all rings are equal */
	struct ring ring = {.table = table, .min_gbps = gpuset_bottleneck(table, set)};
	for (uint32_t n = 0; n < FROND_GPUS_MAX; n++) {
		ring.choose[n][0] = 1;
		for (uint32_t k = 1; k <= n; k++)
			ring.choose[n][k] = ring.choose[n - 1][k - 1] + ring.choose[n - 1][k];
	}
	ring.home = order[0];
	ring.count = count - 1;
	memcpy(ring.gpu, &order[1], ring.count);
	for (uint32_t placed = 1; placed < count; placed++) {
		const int32_t *rest = ring_rest(&ring);
		uint32_t next = 0;
		int32_t best = NO_PATH;
		for (uint32_t i = 0; i < ring.count; i++) {
			int32_t sum = hop(&ring, order[placed - 1], ring.gpu[i], rest[i]);
			if (sum > best) {
				best = sum;
				next = i;
			}
		}
		assert(best != NO_PATH);
		order[placed] = ring.gpu[next];
		ring.count--;
		memmove(&ring.gpu[next], &ring.gpu[next + 1], ring.count - next);
	}
	return count;
}

uint64_t gpuset_ring_packed(const struct gpuset *table, uint32_t set)
{
	uint8_t order[FROND_GPUS_MAX];
	uint64_t ring = 0;
	for (uint32_t i = gpuset_ring(table, set, order); i-- > 0;)
		ring = ring << 4 | order[i];
	return ring;
}
