/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain.c - one sentence per outcome, with numbers: what is needed, the best that there is, what stands in the way.
 */
#include "engine/engine.h"

#include <inttypes.h>

const char *rule_text(uint32_t rule)
{
	static const char *const texts[] = {"none",          "single node",     "nvlink domain",  "same leaf",
					    "complete leaf", "adjacent leaves", "adjacent spines"};
	assert(rule < sizeof texts / sizeof *texts);
	return texts[rule];
}

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

/* "leaf-3" or "leaf-3..leaf-4" */
static void say_range(const struct frond_engine *engine, const uint32_t *names, uint32_t first, uint32_t last,
		      struct out *out)
{
	struct name_text from = engine_name(engine, names[first]), to = engine_name(engine, names[last]);
	out_printf(out, "%.*s", from.len, from.text);
	if (first != last)
		out_printf(out, "..%.*s", to.len, to.text);
}

/* "8 nodes", "12 members of 2 GPUs", "6 members with 40 GPUs" */
static void say_need(const struct answer *answer, struct out *out)
{
	if (answer->whole_nodes)
		out_printf(out, "%" PRIu32 " node%s", answer->members, plural(answer->members));
	else if (answer->gpus_each != 0)
		out_printf(out, "%" PRIu32 " member%s of %" PRIu32 " GPU%s", answer->members, plural(answer->members),
			   answer->gpus_each, plural(answer->gpus_each));
	else
		out_printf(out, "%" PRIu32 " members with %" PRIu64 " GPUs", answer->members, answer->gpus);
}

/* What the best place has: "7 free", "room for 10", "36 free GPUs". */
static void say_room(const struct answer *answer, struct out *out)
{
	if (answer->best == BEST_NODE || answer->gpus_each == 0)
		out_printf(out, "%" PRIu64 " free GPU%s", answer->best_room, plural(answer->best_room));
	else if (answer->whole_nodes)
		out_printf(out, "%" PRIu64 " free", answer->best_room);
	else
		out_printf(out, "room for %" PRIu64, answer->best_room);
}

static void say_blockers(const struct frond_engine *engine, const struct answer *answer, struct out *out)
{
	static const char *const causes[BLOCKERS] = {"cordoned", "not ready", "with unhealthy GPUs", "in use",
						     "ruled out by other constraints"};
	const char *before = " (";
	for (uint32_t cause = 0; cause < BLOCKERS; cause++) {
		if (answer->blocked[cause] == 0)
			continue;
		if (answer->blocked[cause] == 1) {
			uint32_t slot = engine->core.fabric.order[answer->blocked_first[cause]];
			struct name_text name = engine_node_name(engine, slot);
			out_printf(out, "%s%.*s %s", before, name.len, name.text, causes[cause]);
		} else {
			out_printf(out, "%s%" PRIu32 " nodes %s", before, answer->blocked[cause], causes[cause]);
		}
		before = ", ";
	}
	if (before[0] == ',')
		out_printf(out, ")");
}

static void say_best(const struct frond_engine *engine, const struct answer *answer, struct out *out)
{
	const struct fabric *fabric = &engine->core.fabric;
	uint32_t first = answer->best_first, last = answer->best_last;
	switch (answer->best) {
	case BEST_NODE: {
		struct name_text name = engine_node_name(engine, fabric->order[first]);
		out_printf(out, "; best %.*s has ", name.len, name.text);
		break;
	}
	case BEST_LEAVES:
		out_printf(out, "; best %s", first == last ? "" : "run ");
		say_range(engine, engine->tree.leaf_name, first, last, out);
		out_printf(out, " has ");
		break;
	case BEST_SPINES:
		out_printf(out, "; best run ");
		say_range(engine, engine->tree.spine_name, first, last, out);
		out_printf(out, " has ");
		break;
	case BEST_CLUSTER:
		out_printf(out, "; the cluster has ");
		break;
	case BEST_NONE:
		if (answer->missing < answer->members)
			out_printf(out, "; its bound members are apart");
		return;
	}
	say_room(answer, out);
	if (answer->best_gap != FROND_NONE && answer->best_room >= answer->missing) {
		/* Enough in all, but not without a break. */
		const uint32_t *names = answer->best == BEST_SPINES ? engine->tree.spine_name : engine->tree.leaf_name;
		struct name_text gap = engine_name(engine, names[answer->best_gap]);
		out_printf(out, " but none in %.*s", gap.len, gap.text);
	}
	say_blockers(engine, answer, out);
}

static void say_waits(const struct frond_engine *engine, const struct answer *answer, struct out *out)
{
	out_printf(out, "needs ");
	switch (answer->plan.rule) {
	case FROND_RULE_SINGLE_NODE:
		out_printf(out, "1 node with %" PRIu64 " free GPU%s", answer->gpus, plural(answer->gpus));
		break;
	case FROND_RULE_NVLINK_DOMAIN:
		say_need(answer, out);
		out_printf(out, " in one NVLink domain");
		break;
	case FROND_RULE_SAME_LEAF:
		say_need(answer, out);
		out_printf(out, " in one leaf");
		break;
	case FROND_RULE_COMPLETE_LEAF:
		say_need(answer, out);
		out_printf(out, " in one complete leaf");
		break;
	case FROND_RULE_ADJACENT_LEAVES:
		say_need(answer, out);
		out_printf(out, " in %" PRIu32 " adjacent leaves", answer->need_leaves);
		break;
	case FROND_RULE_ADJACENT_SPINES:
		say_need(answer, out);
		out_printf(out, " in %" PRIu32 " adjacent spines", answer->need_spines);
		break;
	default:
		say_need(answer, out);
		break;
	}
	say_best(engine, answer, out);
}

static void say_never(const struct answer *answer, struct out *out)
{
	out_printf(out, "never fits: needs ");
	say_need(answer, out);
	out_printf(out, "; the cluster could hold %" PRIu64 " %s at best", answer->ever,
		   answer->gpus_each == 0 ? "GPUs" : "of them");
	if (answer->gpus_each == 0 && answer->ever >= answer->gpus)
		out_printf(out, ", but members of these sizes do not fit its nodes together");
	if (answer->bandwidth_gbps > 0)
		out_printf(out, " on links of %" PRIu32 " Gb or more", answer->bandwidth_gbps);
	if (answer->claimed)
		out_printf(out, " with GPU sets that its claim allows");
}

static void say_placed(const struct answer *answer, struct out *out)
{
	const struct frond_plan *plan = &answer->plan;
	if (answer->members == 0) {
		out_printf(out, "no member asks for GPUs");
		return;
	}
	out_printf(out, "%" PRIu32 " member%s on %" PRIu32 " node%s", answer->members, plural(answer->members),
		   plan->nodes, plural(plan->nodes));
	if (plan->leaves > 0)
		out_printf(out, " in %" PRIu32 " %s under %" PRIu32 " spine%s", plan->leaves,
			   plan->leaves == 1 ? "leaf" : "leaves", plan->spines, plural(plan->spines));
	if (plan->flags & FROND_PLAN_RELAXED)
		out_printf(out, "; rule %s relaxed", rule_text(plan->rule));
	else if (plan->rule != FROND_RULE_NONE)
		out_printf(out, "; rule %s met", rule_text(plan->rule));
	if (plan->flags & FROND_PLAN_SHAPELESS)
		out_printf(out, "; the fabric could never meet it");
	if (plan->flags & FROND_PLAN_NO_TOPOLOGY)
		out_printf(out, "; the cluster has no topology");
	if (plan->flags & FROND_PLAN_MIXED_MODELS)
		out_printf(out, "; its GPUs are of %" PRIu32 " models", models_count(answer->gain.models));
	if (answer->cut)
		out_printf(out, "; the bound on a plan's work was reached: a better place may exist");
	else if (plan->flags & FROND_PLAN_BOUNDED)
		out_printf(out, "; the first %u of more equal placements were compared", FROND_CANDIDATES);
}

void explain(const struct frond_engine *engine, const struct answer *answer, struct out *out)
{
	switch (answer->plan.outcome) {
	case FROND_PLACED:
		say_placed(answer, out);
		break;
	case FROND_WAITS:
		say_waits(engine, answer, out);
		break;
	case FROND_NEVER:
		say_never(answer, out);
		break;
	case FROND_REFUSED: /* the core refuses for one reason only; the others are found while reading the request */
		out_printf(out, "latency-sensitive asks for one leaf at most, but ");
		say_need(answer, out);
		out_printf(out, " never fit in one leaf");
		break;
	case FROND_UNDECIDED:
		out_printf(out, "for ");
		say_need(answer, out);
		out_printf(out, " no place was found within the bound on a plan's work; it may fit");
		break;
	}
	if (answer->plan.flags & FROND_PLAN_UNKNOWN_DOMAIN)
		out_printf(out, "; preferred-domain is not in the fabric");
	if (answer->plan.flags & FROND_PLAN_UNKNOWN_GPU)
		out_printf(out, "; preferIds lists a GPU that is not in the cluster");
}
