/* SPDX-License-Identifier: Apache-2.0 */
/*
 * victims_node.c - the cheapest victims on one node. When any GPUs will do, a knapsack over the GPUs to be freed; when some
 * sets are not allowed, which GPUs become free matters: every choice of pods that costs less than the best one known.
 */
#include "core/victims_work.h"

#define NODE_CHOICES (1u << 20) /* of pods that are looked at in one call, on all nodes: 16 nodes at the very worst */
#define NODE_ASKS    4096u      /* of them, that the planner is asked about */

/* Pods of the node that may go and free something, by key: the node's own list goes by history. */
static uint32_t pods_of(const struct hunt *hunt, const struct domain *domain, uint32_t pods[NODE_PODS])
{
	const struct entry *entries = hunt->core->ledger.entries;
	const struct node *node = &hunt->core->nodes[hunt->fabric->order[domain->span.first]];
	uint32_t count = 0;
	for (uint32_t at = node->first; at != FROND_NONE && count < NODE_PODS; at = entry_node_next(&entries[at]))
		if (hunt_evictable(hunt, &entries[at]) && hunt_frees(hunt, &entries[at]) > 0)
			pods[count++] = at;
	for (uint32_t i = 1; i < count; i++)
		for (uint32_t j = i; j > 0 && key_before(entries[pods[j]].pod, entries[pods[j - 1]].pod); j--) {
			uint32_t swap = pods[j];
			pods[j] = pods[j - 1];
			pods[j - 1] = swap;
		}
	return count;
}

/* ---- any GPUs will do ------------------------------------------------------------------------------------------------ */

enum { FREED = FROND_GPUS_MAX + 1 };

struct option { /* what one gang, or the first gangs, can free, and the price */
	bool there, whole;
	uint32_t budgets, gangs, gpus;
	uint32_t pods; /* of the node, by index, with `whole` false */
	uint32_t from; /* GPUs that the gangs before it free */
};

static bool option_before(const struct option *a, const struct option *b)
{
	if (a->there != b->there)
		return a->there;
	if (a->budgets != b->budgets)
		return a->budgets < b->budgets;
	if (a->gangs != b->gangs)
		return a->gangs < b->gangs;
	return a->gpus < b->gpus;
}

static void offer(struct option *best, struct option option)
{
	if (option_before(&option, best))
		*best = option;
}

/* What a gang can free on the node, by GPUs: some of its pods, as many as may go, or all of it. */
static void unit_options(const struct hunt *hunt, const struct unit *unit, const uint32_t *pods, uint32_t count,
			 struct option options[FREED])
{
	struct option parts[NODE_PODS + 1][FREED] = {{{.there = false}}}; /* by pods, GPUs */
	const struct entry *entries = hunt->core->ledger.entries;
	uint32_t all = 0, most = min_u32(unit->spare, NODE_PODS);
	parts[0][0] = (struct option){.there = true};
	for (uint32_t i = 0; i < count; i++) {
		const struct entry *entry = &entries[pods[i]];
		if (entry_gang(entry) != unit->gang)
			continue;
		uint32_t gpus = hunt_frees(hunt, entry);
		all += gpus;
		for (uint32_t n = most; n > 0; n--)
			for (uint32_t freed = gpus; freed < FREED; freed++) {
				struct option option = parts[n - 1][freed - gpus];
				option.budgets += entry->budgeted;
				option.gpus += entry_gpus(entry);
				option.gangs = 1;
				option.pods |= 1u << i;
				if (option.there)
					offer(&parts[n][freed], option);
			}
	}
	for (uint32_t freed = 0; freed < FREED; freed++) {
		options[freed] = (struct option){.there = freed == 0};
		for (uint32_t n = 1; n <= most; n++)
			offer(&options[freed], parts[n][freed]);
	}
	if (all > 0 && all < FREED)
		offer(&options[all],
		      (struct option){
			      .there = true, .whole = true, .budgets = unit->budgets, .gangs = 1, .gpus = unit->gpus});
}

struct table { /* [i]: after the first i units, by GPUs freed */
	struct option cell[NODE_PODS + 1][FREED];
};

/* The cheapest way to free at least `need` GPUs with units up to a priority; the GPUs that it frees, or FREED: none. */
static uint32_t fill_table(const struct hunt *hunt, struct option options[NODE_PODS][FREED], int32_t most,
			   uint32_t need, struct table *table)
{
	const struct victims_work *work = hunt->work;
	memset(table->cell[0], 0, sizeof table->cell[0]);
	table->cell[0][0].there = true;
	for (uint32_t i = 0; i < work->unit_count; i++) {
		bool allowed = hunt->core->gangs.gangs[work->units[i].gang].priority <= most;
		for (uint32_t freed = 0; freed < FREED; freed++) {
			struct option best = {.there = false};
			for (uint32_t own = 0; own <= freed; own++) {
				const struct option *before = &table->cell[i][freed - own], *mine = &options[i][own];
				if (!before->there || !mine->there || (own > 0 && !allowed))
					continue;
				offer(&best, (struct option){.there = true,
							     .whole = mine->whole,
							     .budgets = before->budgets + mine->budgets,
							     .gangs = before->gangs + mine->gangs,
							     .gpus = before->gpus + mine->gpus,
							     .pods = mine->pods,
							     .from = freed - own});
			}
			table->cell[i + 1][freed] = best;
		}
	}
	uint32_t best = FREED;
	for (uint32_t freed = need; freed < FREED; freed++)
		if (table->cell[work->unit_count][freed].there &&
		    (best == FREED ||
		     option_before(&table->cell[work->unit_count][freed], &table->cell[work->unit_count][best])))
			best = freed;
	return best;
}

/* The lowest priority that is higher than `above` among the units; false: none. */
static bool next_priority(const struct hunt *hunt, bool first, int32_t above, int32_t *next)
{
	bool found = false;
	for (uint32_t i = 0; i < hunt->work->unit_count; i++) {
		int32_t priority = hunt->core->gangs.gangs[hunt->work->units[i].gang].priority;
		if ((first || priority > above) && (!found || priority < *next)) {
			*next = priority;
			found = true;
		}
	}
	return found;
}

/* Fewest budgets, then the lowest highest priority with which that is possible, then gangs, then GPUs. */
void hunt_solve_node(struct hunt *hunt, const struct domain *domain)
{
	struct victims_work *work = hunt->work;
	const struct node *node = &hunt->core->nodes[hunt->fabric->order[domain->span.first]];
	uint32_t pods[NODE_PODS], free = node_free_count(node);
	struct option options[NODE_PODS][FREED];
	struct table table;
	if (hunt_has_room(hunt, domain) || hunt->gpus > node->gpus)
		return;
	uint32_t count = pods_of(hunt, domain, pods);
	for (uint32_t i = 0; i < work->unit_count; i++)
		unit_options(hunt, &work->units[i], pods, count, options[i]);
	uint32_t need = (uint32_t)hunt->gpus > free ? (uint32_t)hunt->gpus - free : 0;
	uint32_t freed = fill_table(hunt, options, INT32_MAX, need, &table);
	if (freed == FREED)
		return;
	uint32_t budgets = table.cell[work->unit_count][freed].budgets;
	int32_t most = 0;
	for (bool first = true; next_priority(hunt, first, most, &most); first = false) {
		freed = fill_table(hunt, options, most, need, &table);
		if (freed < FREED && table.cell[work->unit_count][freed].budgets == budgets)
			break;
	}
	for (uint32_t i = work->unit_count; i-- > 0;) {
		const struct option *cell = &table.cell[i + 1][freed];
		if (cell->whole)
			hunt_set_whole(hunt, &work->units[i], domain, true);
		for (uint32_t p = 0; p < count; p++)
			if (cell->pods >> p & 1)
				hunt_set_part(hunt, &work->units[i], pods[p], true);
		freed = cell->from;
	}
}

/* ---- some sets are not allowed ----------------------------------------------------------------------------------------- */

struct search { /* of one node */
	struct hunt *hunt;
	const struct domain *domain;
	const struct node *node;
	struct gpu_wish wish;
	uint32_t pods[NODE_PODS];
	struct unit units[NODE_PODS];
	uint32_t own[NODE_PODS];       /* by unit: its pods, by index */
	uint32_t later[NODE_PODS + 1]; /* by unit: GPUs that it and those behind it can free */
	uint32_t unit_count;
	struct price least; /* to be undercut */
	bool found, equal;  /* equal: no dearer is enough, for the node comes first in fabric order */
	struct choice best;
};

static bool search_begin(struct search *search)
{
	struct hunt *hunt = search->hunt;
	const struct entry *entries = hunt->core->ledger.entries;
	uint32_t slot = hunt->fabric->order[search->domain->span.first];
	search->node = &hunt->core->nodes[slot];
	search->wish = hunt->ask.gpu;
	for (uint32_t i = 0; i < hunt->ask.named_count; i++)
		if (hunt->ask.named[i].slot == slot)
			search->wish.prefer |= hunt->ask.named[i].mask;
	hunt_collect(hunt, search->domain);
	search->unit_count = hunt->work->unit_count;
	if (search->unit_count > NODE_PODS || !node_open(search->node))
		return false;
	memcpy(search->units, hunt->work->units, search->unit_count * sizeof *search->units);
	uint32_t count = pods_of(hunt, search->domain, search->pods);
	for (uint32_t i = search->unit_count; i-- > 0;) {
		search->later[i] = search->later[i + 1];
		for (uint32_t p = 0; p < count; p++)
			if (entry_gang(&entries[search->pods[p]]) == search->units[i].gang) {
				search->own[i] |= 1u << p;
				search->later[i] += hunt_frees(hunt, &entries[search->pods[p]]);
			}
	}
	return true;
}

/* Could the gang choose its GPUs one member after the other, with these pods gone? Of several sizes only the planner
 * knows in which order. */
static bool sets_there(const struct search *search, uint32_t gone)
{
	const struct hunt *hunt = search->hunt;
	const struct entry *entries = hunt->core->ledger.entries;
	struct node node = *search->node;
	for (uint32_t p = 0; p < NODE_PODS; p++)
		if (gone >> p & 1) {
			node.held = (uint16_t)(node.held & ~entries[search->pods[p]].mask);
			node.by_count -= entries[search->pods[p]].by_count;
		}
	if (node_count_free(&node) < hunt->gpus)
		return false;
	uint32_t free = node_free_mask(&node), held = node.held;
	for (uint32_t member = 0; member < hunt->need && !hunt->mixed; member++) {
		uint32_t set = gpuset_choose(hunt->core->sets[node.topology], &search->wish, free, held, hunt->size);
		if (set == 0)
			return false;
		free &= ~set;
		held |= set;
	}
	return true;
}

static bool undercuts(const struct search *search, const struct price *price)
{
	int order = price_compare(price, &search->least);
	return order < 0 || (order == 0 && search->equal);
}

static void judge(struct search *search, struct choice choice, const struct price *price)
{
	struct hunt *hunt = search->hunt;
	uint32_t gone = choice.pods;
	for (uint32_t i = 0; i < search->unit_count; i++)
		gone |= choice.whole >> i & 1 ? search->own[i] : 0;
	hunt->choices++;
	if (gone == 0 || !sets_there(search, gone) || hunt->asks == NODE_ASKS)
		return;
	hunt->asks++;
	if (!hunt_realise_choice(hunt, search->domain, choice))
		return;
	search->best = choice;
	search->least = *price;
	search->found = true;
	search->equal = false;
}

/* Adds what goes of unit i and of those behind it, in every way. A gang of which more go than it can spare goes whole. */
static void choose(struct search *search, uint32_t i, struct choice choice, struct price price, uint32_t freed)
{
	struct hunt *hunt = search->hunt;
	const struct entry *entries = hunt->core->ledger.entries;
	if (!undercuts(search, &price) || hunt->choices == NODE_CHOICES ||
	    bits_count(node_free_mask(search->node)) + freed + search->later[i] < hunt->gpus)
		return;
	if (i == search->unit_count) {
		judge(search, choice, &price);
		return;
	}
	choose(search, i + 1, choice, price, freed);
	const struct unit *unit = &search->units[i];
	uint32_t own = search->own[i];
	price.gangs++;
	if (price.priority < hunt->core->gangs.gangs[unit->gang].priority)
		price.priority = hunt->core->gangs.gangs[unit->gang].priority;
	for (uint32_t some = own & (0u - own); some != 0; some = (some - own) & own) {
		bool whole = bits_count(some) > unit->spare;
		if (whole && some != own)
			continue;
		struct choice with = choice;
		struct price sum = price;
		uint32_t gone = 0;
		for (uint32_t p = 0; p < NODE_PODS; p++)
			if (some >> p & 1) {
				gone += hunt_frees(hunt, &entries[search->pods[p]]);
				sum.budgets += whole ? 0 : entries[search->pods[p]].budgeted;
				sum.gpus += whole ? 0 : entry_gpus(&entries[search->pods[p]]);
			}
		sum.budgets += whole ? unit->budgets : 0;
		sum.gpus += whole ? unit->gpus : 0;
		with.whole |= whole ? 1u << i : 0;
		with.pods |= whole ? 0 : some;
		choose(search, i + 1, with, sum, freed + gone);
	}
}

bool hunt_search_node(struct hunt *hunt, const struct domain *domain, bool equal, struct price *least,
		      struct choice *choice)
{
	struct search search = {.hunt = hunt, .domain = domain, .least = *least, .equal = equal};
	if (search_begin(&search))
		choose(&search, 0, (struct choice){0, 0}, (struct price){.priority = INT32_MIN}, 0);
	if (!search.found)
		return false;
	*least = search.least;
	*choice = search.best;
	return true;
}

void hunt_mark_choice(struct hunt *hunt, const struct domain *domain, struct choice choice)
{
	struct victims_work *work = hunt->work;
	uint32_t pods[NODE_PODS], count = pods_of(hunt, domain, pods);
	for (uint32_t i = 0; i < work->unit_count; i++)
		if (choice.whole >> i & 1)
			hunt_set_whole(hunt, &work->units[i], domain, true);
	for (uint32_t p = 0; p < count; p++)
		if (choice.pods >> p & 1) {
			uint32_t unit = work->unit_of[entry_gang(&hunt->core->ledger.entries[pods[p]])];
			hunt_set_part(hunt, &work->units[unit], pods[p], true);
		}
}
