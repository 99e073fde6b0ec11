/* SPDX-License-Identifier: Apache-2.0 */
#include "core/waste.h"

/* How many of `most` pods that ask for this much fit into what is left. A product tells it without a division where all
 * of them do, which is the usual case. */
static uint32_t bounded(uint32_t most, uint32_t asks, uint32_t left)
{
	return (uint64_t)most * asks <= left ? most : left / asks;
}

struct waste waste_of(const struct frond_kind *kinds, uint32_t count, struct frond_left left, uint32_t free)
{
	assert(count <= FROND_KINDS_MAX && free <= FROND_GPUS_MAX);
	uint32_t expected = 0, most_by_gpus = 0, most_by_all = 0; /* most: GPUs that one kind would use */
	for (uint32_t i = 0; i < count; i++) {
		const struct frond_kind *kind = &kinds[i];
		uint32_t by_gpus = free / kind->gpus;
		uint32_t by_all =
			bounded(bounded(by_gpus, kind->cpu_milli, left.cpu_milli), kind->memory_mib, left.memory_mib);
		uint32_t useless = (by_gpus - by_all) * kind->gpus + (by_all == 0 ? free : 0);
		expected += kind->pods * useless;
		most_by_gpus = max_u32(most_by_gpus, by_gpus * kind->gpus);
		most_by_all = max_u32(most_by_all, by_all * kind->gpus);
	}
	return (struct waste){.lost = most_by_gpus - most_by_all, .expected = expected};
}

struct waste waste_growth(const struct thrift *thrift, uint32_t slot, uint32_t free, uint32_t gpus)
{
	assert(gpus <= free);
	struct frond_left now = thrift->left[slot], then = now;
	then.cpu_milli -= min_u32(then.cpu_milli, thrift->asks.cpu_milli);
	then.memory_mib -= min_u32(then.memory_mib, thrift->asks.memory_mib);
	struct waste before = waste_of(thrift->kinds, thrift->count, now, free);
	struct waste after = waste_of(thrift->kinds, thrift->count, then, free - gpus);
	return (struct waste){.lost = LOST_MAX + after.lost - before.lost,
			      .expected = (uint32_t)WASTE_MAX + after.expected - before.expected};
}
