/* SPDX-License-Identifier: Apache-2.0 */
#include "core/waste.h"

/* How many of `most` pods that ask for this much fit into what is left. A product tells it without a division where all
 * of them do, which is the usual case. */
static uint32_t bounded(uint32_t most, uint32_t asks, uint32_t left)
{
	return (uint64_t)most * asks <= left ? most : left / asks;
}

static void sort_out(const struct thrift *thrift, uint32_t free, struct waste_row *row)
{
	*row = (struct waste_row){.always = 0};
	for (uint32_t ones = 0; ones < 2; ones++) /* first those of which one fits, then the others */
		for (uint32_t i = 0; i < thrift->count; i++) {
			const struct frond_kind *kind = &thrift->kinds[i];
			uint32_t most = free / kind->gpus;
			if (most == 0)
				row->always += ones == 0 ? kind->pods * free : 0;
			if (most == 0 || (most == 1) != (ones == 0))
				continue;
			row->kind[row->count++] = (struct waste_kind){.cpu_milli = kind->cpu_milli,
								      .memory_mib = kind->memory_mib,
								      .gpus = kind->gpus,
								      .most = most,
								      .each = kind->pods * kind->gpus,
								      .none = kind->pods * (most * kind->gpus + free)};
			row->ones += most == 1;
			row->usable = max_u32(row->usable, most * kind->gpus);
			uint64_t cpu = (uint64_t)most * kind->cpu_milli, memory = (uint64_t)most * kind->memory_mib;
			row->cpu_milli = cpu > row->cpu_milli ? cpu : row->cpu_milli;
			row->memory_mib = memory > row->memory_mib ? memory : row->memory_mib;
		}
}

void waste_begin(struct waste_table *table, const struct thrift *thrift)
{
	assert(thrift->count <= FROND_KINDS_MAX);
	table->thrift = thrift;
	for (uint32_t free = 0; free <= FROND_GPUS_MAX; free++)
		sort_out(thrift, free, &table->row[free]);
}

struct waste waste_of(const struct waste_table *table, struct frond_left left, uint32_t free)
{
	assert(free <= FROND_GPUS_MAX);
	const struct waste_row *row = &table->row[free];
	if (left.cpu_milli >= row->cpu_milli && left.memory_mib >= row->memory_mib)
		return (struct waste){.lost = 0, .expected = row->always};
	uint32_t expected = row->always, used = 0; /* used: GPUs by the kind that uses most of them, by everything */
	for (uint32_t i = 0; i < row->ones; i++) { /* without a branch: what is left comes in any order */
		const struct waste_kind *kind = &row->kind[i];
		uint32_t lacks = (left.cpu_milli < kind->cpu_milli) | (left.memory_mib < kind->memory_mib);
		expected += kind->none & (0 - lacks);
		used = max_u32(used, kind->gpus & (lacks - 1));
	}
	for (uint32_t i = row->ones; i < row->count; i++) {
		const struct waste_kind *kind = &row->kind[i];
		uint32_t fit = bounded(bounded(kind->most, kind->cpu_milli, left.cpu_milli), kind->memory_mib,
				       left.memory_mib);
		expected += fit == 0 ? kind->none : (kind->most - fit) * kind->each;
		used = max_u32(used, fit * kind->gpus);
	}
	return (struct waste){.lost = row->usable - used, .expected = expected};
}

struct waste waste_growth(const struct waste_table *table, uint32_t slot, uint32_t free, uint32_t gpus)
{
	assert(gpus <= free);
	const struct thrift *thrift = table->thrift;
	struct frond_left now = thrift->left[slot], then = now;
	then.cpu_milli -= min_u32(then.cpu_milli, thrift->asks.cpu_milli);
	then.memory_mib -= min_u32(then.memory_mib, thrift->asks.memory_mib);
	struct waste before = waste_of(table, now, free);
	struct waste after = waste_of(table, then, free - gpus);
	return (struct waste){.lost = LOST_MAX + after.lost - before.lost,
			      .expected = (uint32_t)WASTE_MAX + after.expected - before.expected};
}
