/* SPDX-License-Identifier: Apache-2.0 */
#include "core/span.h"

#include "core/sort.h"

struct span span_of_nvlink(const struct fabric *fabric, uint32_t position)
{
	uint32_t domain = fabric->domain_of[position];
	if (domain == FROND_NONE)
		return (struct span){0, 0, FROND_NONE};
	struct span span = span_of_leaf(fabric, fabric->leaf_of[position]);
	span.nvlink = domain;
	return span;
}

struct rule rule_of(const struct ask *ask, const struct answer *answer)
{
	bool segments = answer->plan.rule != FROND_RULE_NONE && answer->members > 1;
	return (struct rule){.name = answer->plan.rule,
			     .need_leaves = answer->need_leaves,
			     .need_spines = answer->need_spines,
			     .bandwidth_gbps = ask->bandwidth_gbps,
			     .segment_size = segments ? answer->segment_size : 0,
			     .segment_nvlink = answer->segment_nvlink};
}

/* ---- the spans of a rule ------------------------------------------------------------------------------------------------ */

struct spans spans_of(const struct fabric *fabric, const struct rule *rule, bool spreads)
{
	return (struct spans){
		.fabric = fabric, .rule = *rule, .spreads = spreads, .span = {.nvlink = FROND_NONE}, .cursor = 0};
}

static bool next_node(struct spans *spans)
{
	spans->span = span_of_node(spans->cursor++);
	return spans->cursor <= spans->fabric->node_count;
}

/* NVLink domains are numbered by their first nodes: a lower one has been seen. */
static bool next_nvlink(struct spans *spans)
{
	const struct fabric *fabric = spans->fabric;
	for (; spans->cursor < fabric->node_count; spans->cursor++) {
		uint32_t domain = fabric->domain_of[spans->cursor];
		if (domain == FROND_NONE || (spans->span.nvlink != FROND_NONE && domain <= spans->span.nvlink))
			continue;
		spans->span = span_of_nvlink(fabric, spans->cursor);
		return true;
	}
	return false;
}

/* The run of leaves that begins at the cursor, or after it. A gang that may use fewer leaves than the rule allows can
 * stay in front of a slow link, or inside one leaf behind it. */
static bool next_run(struct spans *spans)
{
	const struct fabric *fabric = spans->fabric;
	uint32_t floor = spans->rule.bandwidth_gbps, length = spans->rule.need_leaves;
	for (uint32_t leaf = spans->cursor; leaf < fabric->leaf_count; leaf++) {
		uint32_t end = leaf + 1, most = fabric->spine_start[fabric->leaf_spine[leaf] + 1];
		while (end < min_u32(leaf + length, most) && !leaf_slow(fabric, leaf, floor) &&
		       !leaf_slow(fabric, end, floor))
			end++;
		bool whole = spans->spreads || end == leaf + length;
		if (!whole || fabric->leaf_start[leaf] == fabric->leaf_start[end])
			continue;
		spans->span = (struct span){fabric->leaf_start[leaf], fabric->leaf_start[end], FROND_NONE};
		spans->cursor = leaf + 1;
		return true;
	}
	return false;
}

static bool next_chain(struct spans *spans)
{
	const struct fabric *fabric = spans->fabric;
	uint32_t length = spans->rule.need_spines;
	for (uint32_t spine = spans->cursor; spine < fabric->spine_count; spine++) {
		uint32_t end = spine + 1;
		while (end < min_u32(spine + length, fabric->spine_count) && spine_adjacent(fabric, end))
			end++;
		spans->span = (struct span){fabric->leaf_start[fabric->spine_start[spine]],
					    fabric->leaf_start[fabric->spine_start[end]], FROND_NONE};
		bool whole = spans->spreads || end == spine + length;
		if (!whole || spans->span.first == spans->span.end)
			continue;
		spans->cursor = spine + 1;
		return true;
	}
	return false;
}

bool spans_next(struct spans *spans)
{
	switch (spans->rule.name) {
	case FROND_RULE_NONE:
		spans->span.end = spans->fabric->node_count;
		return spans->cursor++ == 0 && spans->span.end > 0;
	case FROND_RULE_SINGLE_NODE:
		return next_node(spans);
	case FROND_RULE_NVLINK_DOMAIN:
		return next_nvlink(spans);
	case FROND_RULE_ADJACENT_SPINES:
		return next_chain(spans);
	default:
		return next_run(spans);
	}
}

/* ---- is a rule met? ----------------------------------------------------------------------------------------------------- */

bool use_meets(const struct use *use, const struct rule *rule)
{
	const struct extent *extent = &use->extent;
	if (extent->leaves > 1 && use->slow > 0)
		return false; /* no gang crosses a slow link */
	switch (rule->name) {
	case FROND_RULE_NONE:
		return true;
	case FROND_RULE_SINGLE_NODE:
		return extent->nodes == 1;
	case FROND_RULE_NVLINK_DOMAIN:
		return use->domains == 1 && use->unlinked == 0;
	case FROND_RULE_SAME_LEAF:
	case FROND_RULE_COMPLETE_LEAF:
		return extent->leaves == 1 && use->loose == 0;
	case FROND_RULE_ADJACENT_LEAVES:
		return extent->spines == 1 && extent->runs == 1 && extent->leaves <= rule->need_leaves &&
		       use->loose == 0;
	default:
		return use->chains == 1 && extent->runs == extent->spines && extent->spines <= rule->need_spines &&
		       use->loose == 0;
	}
}

static bool lower(const void *context, uint32_t a, uint32_t b)
{
	(void)context;
	return a < b;
}

/* Each segment lies in one domain. */
static bool segments_meet(const struct fabric *fabric, const uint32_t *positions, uint32_t count,
			  const struct rule *rule)
{
	uint32_t last = FROND_NONE;
	for (uint32_t i = 0; rule->segment_size > 0 && i < count; i++) {
		uint32_t at = positions[i], domain = rule->segment_nvlink ? fabric->domain_of[at] : fabric->leaf_of[at];
		if (domain == FROND_NONE || (i % rule->segment_size != 0 && domain != last))
			return false;
		last = domain;
	}
	return true;
}

bool positions_meet(const struct fabric *fabric, uint32_t *positions, uint32_t count, const struct rule *rule)
{
	struct use use = use_none();
	if (!segments_meet(fabric, positions, count, rule))
		return false;
	sort_ids(positions, count, lower, NULL);
	for (uint32_t i = 0; i < count; i++)
		use_add(&use, fabric, positions[i], rule->bandwidth_gbps);
	return use_meets(&use, rule);
}
