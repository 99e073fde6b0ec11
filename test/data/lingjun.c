/* SPDX-License-Identifier: Apache-2.0 */
#include "lingjun.h"

#include "driver.h"
#include "greedy.h"
#include "optimum.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum placer { FROND, FIRST_BY_NAME, FIRST_BY_FABRIC, BEST_LEAF, BEST_TREE, PLACERS };

static greedy_placer *const greedy[PLACERS] = {
	[FIRST_BY_NAME] = greedy_first_by_name,
	[FIRST_BY_FABRIC] = greedy_first_by_fabric,
	[BEST_LEAF] = greedy_best_leaf,
	[BEST_TREE] = greedy_best_tree,
};

static const uint32_t sizes[] = {2, 4, 8, 16, 32, 64, 128, 256, 512};
enum { SIZES = sizeof sizes / sizeof sizes[0], SEEDS_MAX = 32 };

static const struct filling {
	uint32_t percent, seeds;
} fillings[] = {{50, 20}, {25, 10}, {0, 1}};

struct ratio { /* to the optimum, over the states */
	double sum, worst;
};

struct row { /* one gang size on all states of one filling */
	struct rule rule;
	uint32_t states, fits, met, required_placed, required_waits, preferred_relaxed;
	uint64_t leaves, spines; /* of the optimum, summed */
	uint32_t rule_met[PLACERS];
	struct ratio leaf_ratio[PLACERS], spine_ratio[PLACERS];
};

struct stage {
	struct topo *topo;
	struct driver driver;
	struct tally *tally;
	uint64_t seed;
	uint32_t percent;
	struct supply capacity, today;
};

/* ---- one gang on one state -------------------------------------------------------------------------------------- */

/* Slots are the nodes' places in fabric order. Whole nodes that nobody uses, each once? */
static bool places_valid(const struct stage *stage, uint32_t need, uint32_t *nodes)
{
	bool taken[TOPO_NODES_MAX] = {false};
	for (uint32_t i = 0; i < need; i++) {
		const struct frond_place *place = &stage->driver.places[i];
		if (place->slot >= stage->topo->nodes || stage->topo->node[place->slot].used || taken[place->slot] ||
		    place->gpu_mask != (1u << TOPO_GPUS) - 1)
			return false;
		taken[place->slot] = true;
		nodes[i] = place->slot;
	}
	return true;
}

/* Asks Frond, and compares with what the rule and the optimum call for. */
static void ask_frond(struct stage *stage, uint32_t need, const char *mode, const struct rule *rule, bool fits,
		      bool met, const struct cost *best, struct cost *got)
{
	bool required = strcmp(mode, "Required") == 0, placed = fits && (met || !required);
	struct gang gang = {.members = need, .gpus = TOPO_GPUS, .mode = mode, .only_slot = FROND_NONE};
	uint32_t outcome = driver_plan(&stage->driver, &gang), nodes[TOPO_NODES_MAX];
	const struct frond_plan *plan = &stage->driver.plan;
	char what[96];
	snprintf(what, sizeof what, "%u %% full, seed %llu: %s gang of %u nodes", stage->percent,
		 (unsigned long long)stage->seed, mode, need);
	/* A relaxed gang that finds too few nodes waits for nodes, not for a rule. */
	bool named = plan->rule == rule->kind || (!placed && !required);
	if (!tally_that(stage->tally, outcome == (placed ? FROND_PLACED : FROND_WAITS) && named,
			"%s: outcome %u, rule %u: %s", what, outcome, plan->rule, stage->driver.text) ||
	    !placed)
		return;
	bool valid = places_valid(stage, need, nodes);
	*got = valid ? cost_of(stage->topo, nodes, need) : (struct cost){0};
	bool relaxed = (plan->flags & FROND_PLAN_RELAXED) != 0;
	tally_that(stage->tally,
		   valid && plan->spines == got->spines && plan->leaves == got->leaves && plan->runs == got->runs,
		   "%s: the places are not what the plan says", what);
	tally_that(stage->tally, relaxed == !met && rule_allows(rule, got) == met, "%s: the rule can%s be met, plan %s",
		   what, met ? "" : "not", relaxed ? "relaxed" : "not relaxed");
	tally_that(stage->tally, got->spines == best->spines && got->leaves == best->leaves,
		   "%s: %u spines, %u leaves; the optimum is %u, %u (plan flags %u)", what, got->spines, got->leaves,
		   best->spines, best->leaves, plan->flags);
	tally_that(stage->tally, got->runs == best->runs, "%s: %u runs; the optimum is %u (plan flags %u)", what,
		   got->runs, best->runs, plan->flags);
}

static void ratio_add(struct ratio *ratio, uint32_t got, uint32_t best)
{
	double value = (double)got / best;
	ratio->sum += value;
	if (value > ratio->worst)
		ratio->worst = value;
}

static void row_add(struct row *row, enum placer placer, const struct cost *got, const struct cost *best)
{
	row->rule_met[placer] += rule_allows(&row->rule, got);
	ratio_add(&row->leaf_ratio[placer], got->leaves, best->leaves);
	ratio_add(&row->spine_ratio[placer], got->spines, best->spines);
}

static void try_size(struct stage *stage, uint32_t need, struct row *row)
{
	struct cost best, got = {0};
	bool known = topo_rule(&stage->capacity, need, &row->rule);
	assert(known); /* the fabric holds every size that is asked for */
	bool met = optimum_rule(&stage->today, &row->rule, need, &best);
	bool fits = met || optimum_any(&stage->today, need, &best);
	row->states++;
	ask_frond(stage, need, "Required", &row->rule, fits, met, &best, &got);
	row->required_placed += stage->driver.plan.outcome == FROND_PLACED;
	row->required_waits += stage->driver.plan.outcome == FROND_WAITS;
	ask_frond(stage, need, "Preferred", &row->rule, fits, met, &best, &got);
	if (!fits)
		return;
	row->fits++;
	row->met += met;
	row->preferred_relaxed += (stage->driver.plan.flags & FROND_PLAN_RELAXED) != 0;
	row->leaves += best.leaves;
	row->spines += best.spines;
	row_add(row, FROND, &got, &best);
	for (uint32_t placer = FROND + 1; placer < PLACERS; placer++) {
		uint32_t nodes[TOPO_NODES_MAX];
		greedy[placer](stage->topo, need, nodes);
		got = cost_of(stage->topo, nodes, need);
		row_add(row, placer, &got, &best);
	}
}

/* ---- tables ----------------------------------------------------------------------------------------------------- */

static const char *rule_text(const struct rule *rule, char *text, size_t cap)
{
	if (rule->kind == FROND_RULE_ADJACENT_SPINES)
		snprintf(text, cap, "%u adjacent spines", rule->spines);
	else if (rule->kind == FROND_RULE_ADJACENT_LEAVES)
		snprintf(text, cap, "%u adjacent leaves", rule->leaves);
	else
		snprintf(text, cap, "%s", rule->kind == FROND_RULE_COMPLETE_LEAF ? "complete leaf" : "same leaf");
	return text;
}

static void print_outcomes(const struct row *rows)
{
	printf("| nodes | rule | states | fits today | rule can be met | Required placed | Required waits | "
	       "Preferred relaxed | rule met by Frond | first-fit, names | first-fit, fabric | best-fit, leaves | "
	       "best-fit, tree |\n|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
	for (uint32_t i = 0; i < SIZES; i++) {
		char text[64];
		const struct row *row = &rows[i];
		printf("| %u | %s | %u | %u | %u | %u | %u | %u |", sizes[i], rule_text(&row->rule, text, sizeof text),
		       row->states, row->fits, row->met, row->required_placed, row->required_waits,
		       row->preferred_relaxed);
		for (uint32_t placer = 0; placer < PLACERS; placer++)
			printf(" %u |", row->rule_met[placer]);
		printf("\n");
	}
}

static void print_ratios(const struct row *rows)
{
	printf("| nodes | optimum: spines | leaves | Frond | first-fit, names | first-fit, fabric | best-fit, leaves | "
	       "best-fit, tree |\n|--:|--:|--:|--:|--:|--:|--:|--:|\n");
	for (uint32_t i = 0; i < SIZES; i++) {
		const struct row *row = &rows[i];
		if (row->fits == 0)
			continue;
		printf("| %u | %.2f | %.2f |", sizes[i], (double)row->spines / row->fits,
		       (double)row->leaves / row->fits);
		for (uint32_t placer = 0; placer < PLACERS; placer++)
			printf(" %.2f · %.2f (%.2f) |", row->spine_ratio[placer].sum / row->fits,
			       row->leaf_ratio[placer].sum / row->fits, row->leaf_ratio[placer].worst);
		printf("\n");
	}
}

static void stage_set(struct stage *stage, uint64_t seed, uint32_t percent, const char *fabric)
{
	struct topo *topo = stage->topo;
	topo_fill(topo, seed, percent);
	stage->seed = seed;
	stage->percent = percent;
	supply_capacity(&stage->capacity, topo);
	supply_today(&stage->today, topo);
	driver_start(&stage->driver, topo->nodes, topo->nodes, fabric);
	for (uint32_t i = 0; i < topo->nodes; i++)
		driver_node(&stage->driver, i, topo->node[i].name, TOPO_GPUS);
	for (uint32_t i = 0; i < topo->nodes; i++)
		if (topo->node[i].used)
			driver_occupy(&stage->driver, i, TOPO_GPUS);
	driver_check(&stage->driver);
}

void lingjun_report(const char *path, struct tally *tally)
{
	static struct topo topo;
	static struct stage stage;
	topo_read(&topo, path);
	char *fabric = topo_fabric(&topo);
	stage.topo = &topo;
	stage.tally = tally;
	printf("### Gangs on Lingjun's fabric\n\n"
	       "%u hosts of %u GPUs in %u leaves, a leaf being a (PSW, ASW) pair, under %u spines; members take whole "
	       "nodes. Every plan of a row is made on the same states. The optimum (fewest spines, then leaves, then "
	       "runs; "
	       "of those that meet the rule where one does) is computed exactly, without the engine. "
	       "Ratios are spines · leaves (worst leaves) to the optimum; below 1.00 means fewer leaves at the price "
	       "of "
	       "more spines or of the rule.\n",
	       topo.nodes, TOPO_GPUS, topo.leaves, topo.spines);
	for (uint32_t i = 0; i < sizeof fillings / sizeof fillings[0]; i++) {
		struct row rows[SIZES] = {{.states = 0}};
		for (uint64_t seed = 1; seed <= fillings[i].seeds; seed++) {
			stage_set(&stage, seed, fillings[i].percent, fabric);
			for (uint32_t size = 0; size < SIZES; size++)
				try_size(&stage, sizes[size], &rows[size]);
			driver_stop(&stage.driver);
		}
		printf("\n%u %% of the nodes in use, %u %s:\n\n", fillings[i].percent, fillings[i].seeds,
		       fillings[i].seeds == 1 ? "state" : "seeds");
		print_outcomes(rows);
		printf("\n");
		print_ratios(rows);
	}
	free(fabric);
}
