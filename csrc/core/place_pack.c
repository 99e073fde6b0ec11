/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_pack.c - can a span hold members of several sizes, and how well? Exactly, if there are not too many of them: a table
 * of the cheapest way (reference 3.4, step 3) to have placed so many members of each size on the items up to here. What
 * it costs is paid from the budget, item by item; a search that the budget or the scratch is too small for says so and
 * proves nothing. Never decides which of equal placements is better from step 4 on.
 */
#include "core/place_work.h"

#define FLAGS     5u
#define PATTERNS  1024u /* of all sizes, and of three pod templates of one size, there are fewer on 16 GPUs */
#define UNREACHED UINT16_MAX

/* How far the run or runs of a table's row have come. */
enum flag {
	FLAG_NONE,  /* nothing used: of the spine (PACK_ANY), or at all */
	FLAG_RUN,   /* the item before is used */
	FLAG_GAP,   /* the spine is used, the item before is not */
	FLAG_NEXT,  /* PACK_CHAIN: the spine before is used, of this one nothing yet */
	FLAG_CLOSED /* no further item may be used */
};

/* ---- search -------------------------------------------------------------------------------------------------------- */

struct pattern {         /* members of each size, on a node or in an item */
	uint64_t counts; /* some bits a size: shift[] */
	uint32_t state;  /* the same as an index */
	uint32_t gpus;
	uint16_t members;
	uint16_t price; /* nodes, or members that are not the first on their node, by the goal */
};

struct search {
	struct place_work *work;
	uint32_t lo, hi;
	enum pack_form form;
	enum pack_goal goal;
	uint32_t states; /* from none placed to all: one for every choice of counts */
	uint32_t stride[FROND_GPUS_MAX];
	uint32_t shift[FROND_GPUS_MAX]; /* of a size in counts, where a bit above each guards it */
	uint64_t guard;                 /* these bits */
	uint64_t full;                  /* counts of the last state, with them */
	uint64_t *counts;               /* by state */
	uint16_t *least;                /* by state: the price of having so many in the item in hand */
	uint16_t *nodes;                /* rows of the same, node by node, when a placement is read off */
	uint64_t node_rows;             /* there is room for */
	struct pattern *fits, *options;
	uint32_t fit_count, option_count;
	bool crowded;                      /* there were more than PATTERNS: nothing is proven */
	bool reached;                      /* somebody fits on a node of the item that add_item_fits() has had last */
	uint32_t fit_gpus, fit_members;    /* that fits[] are for; FROND_NONE: for none */
	uint32_t fit_room[FROND_GPUS_MAX]; /* likewise, by kind */
	uint64_t *cost;                    /* by item, state and flag */
	uint64_t steps, most_steps;
};

static bool within(const struct search *search, uint64_t counts)
{
	return ((search->full - counts) & search->guard) == search->guard;
}

/* Has the state at least so many of each size? */
static bool contains(const struct search *search, uint32_t state, const struct pattern *pattern)
{
	return (((search->counts[state] | search->guard) - pattern->counts) & search->guard) == search->guard;
}

static uint64_t *cost_row(const struct search *search, uint32_t items)
{
	return search->cost + (uint64_t)items * search->states * FLAGS;
}

/* May the search work so many steps more? It may spend half of what is left of the budget. */
static bool spend(struct search *search, uint64_t steps)
{
	search->steps += STEPS_POINT * steps;
	return search->steps <= search->most_steps;
}

static void *carve(const struct search *search, uint8_t **at, uint64_t count, uint64_t size)
{
	uint8_t *memory = *at, *end = search->work->scratch.end;
	count = (count * size + 7) / 8 * 8;
	if (memory == NULL || count > (uint64_t)(end - memory)) {
		*at = NULL;
		return NULL;
	}
	*at = memory + count;
	return memory;
}

/* False: there are too many sizes, members or items for it. */
static bool search_open(struct search *search)
{
	const struct pack *pack = &search->work->pack;
	uint64_t states = 1, items = search->hi - search->lo;
	uint8_t *at = (uint8_t *)pack->free;
	uint32_t bits = 0;
	if (pack->oversized)
		return false;
	search->full = search->guard = 0;
	for (uint32_t kind = 0; kind < pack->kinds; kind++) {
		search->stride[kind] = (uint32_t)states;
		states *= pack->count[kind] + 1u;
		uint32_t width = 1;
		while (pack->count[kind] >> width > 0)
			width++;
		if (states > UINT16_MAX || bits + width + 1 > 64)
			return false;
		search->shift[kind] = bits;
		search->full |= (uint64_t)pack->count[kind] << bits;
		search->guard |= 1ull << (bits + width);
		bits += width + 1;
	}
	search->full |= search->guard;
	search->states = (uint32_t)states;
	search->fit_gpus = FROND_NONE;
	search->counts = carve(search, &at, states, sizeof *search->counts);
	search->least = carve(search, &at, states, sizeof *search->least);
	search->fits = carve(search, &at, PATTERNS, sizeof *search->fits);
	search->options = carve(search, &at, states, sizeof *search->options);
	search->cost = carve(search, &at, (items + 1) * states * FLAGS, sizeof *search->cost);
	if (at == NULL || !spend(search, states * (items + 1)))
		return false;
	search->nodes = (uint16_t *)(void *)at;
	search->node_rows = (uint64_t)(search->work->scratch.end - at) / sizeof *search->nodes / states;
	for (uint32_t state = 0; state < states; state++) {
		uint64_t counts = 0;
		uint32_t left = state;
		for (uint32_t kind = pack->kinds; kind-- > 0; left %= search->stride[kind])
			counts |= (uint64_t)(left / search->stride[kind]) << search->shift[kind];
		search->counts[state] = counts;
	}
	return true;
}

/* Adds what fits on a node with so many GPUs and places, of the sizes from this one on. */
static void list_fits(struct search *search, uint32_t kind, uint32_t gpus, uint32_t members, struct pattern fit)
{
	const struct pack *pack = &search->work->pack;
	if (kind == pack->kinds) {
		if (fit.members > 0 && search->fit_count < PATTERNS)
			search->fits[search->fit_count++] = fit;
		else if (fit.members > 0)
			search->crowded = true;
		return;
	}
	for (uint32_t count = 0; count <= pack->count[kind] && count <= members && count <= search->fit_room[kind] &&
				 count * pack->size[kind] <= gpus;
	     count++) {
		list_fits(search, kind + 1, gpus - count * pack->size[kind], members - count, fit);
		fit.counts += 1ull << search->shift[kind];
		fit.state += search->stride[kind];
		fit.gpus += pack->size[kind];
		fit.members++;
	}
}

static uint32_t count_in(const struct search *search, uint64_t counts, uint32_t kind)
{
	uint32_t end = kind + 1 < search->work->pack.kinds ? search->shift[kind + 1] : 64;
	uint64_t guarded = counts >> search->shift[kind], width = end - search->shift[kind];
	return (uint32_t)(width < 64 ? guarded & ((1ull << width) - 1) : guarded);
}

/* A claim rules some sets of GPUs out: the members choose one after the other, sizes in the order of their lowest ranks. */
static bool chosen_fit(const struct search *search, uint32_t position, uint64_t counts)
{
	const struct place_work *work = search->work;
	const struct pack *pack = &work->pack;
	uint32_t slot = work->fabric->order[position];
	const struct node *node = &work->nodes[slot];
	uint32_t free = pack->today ? node_free_mask(node) : place_cap_mask(work, node);
	uint32_t held = pack->today ? node->held : 0;
	for (uint32_t turn = 0; turn < pack->kinds; turn++) {
		uint32_t kind = pack->turn[turn];
		for (uint32_t left = count_in(search, counts, kind); left > 0; left--) {
			uint32_t set = place_choose(work, slot, free, held, pack->size[kind]);
			if (set == 0)
				return false;
			free &= ~set;
			held |= set;
		}
	}
	return true;
}

static bool node_fits(struct search *search, uint32_t position)
{
	const struct place_work *work = search->work;
	uint32_t gpus = pack_gpus(work, position, work->pack.today);
	uint32_t members = pack_members(work, position, work->pack.today);
	if (gpus == 0 || members == 0)
		return false;
	uint32_t room[FROND_GPUS_MAX];
	for (uint32_t kind = 0; kind < FROND_GPUS_MAX; kind++)
		room[kind] = kind < work->pack.kinds ? pack_room(work, position, kind, work->pack.today) : 0;
	if (gpus != search->fit_gpus || members != search->fit_members ||
	    memcmp(room, search->fit_room, sizeof room) != 0) {
		search->fit_count = 0;
		memcpy(search->fit_room, room, sizeof room);
		list_fits(search, 0, gpus, members, (struct pattern){.counts = 0});
		search->fit_gpus = gpus;
		search->fit_members = members;
	}
	return search->fit_count > 0;
}

static uint32_t fit_price(const struct search *search, uint32_t position, const struct pattern *fit)
{
	if (search->goal == PACK_MOST_NODES)
		return fit->members - 1;
	return search->work->pack.today && search->work->pin[position] > 0 ? 0 : 1;
}

/* One node more: prices in `least` for the item's nodes up to this one, in place. */
static bool add_fits(struct search *search, uint32_t position, uint16_t *least)
{
	if (!node_fits(search, position))
		return true;
	if (search->crowded || !spend(search, (uint64_t)search->fit_count * search->states))
		return false;
	search->reached = true;
	bool constrained = search->work->scope.constrained;
	uint64_t allowed[PATTERNS / 64] = {0};
	for (uint32_t i = 0; i < search->fit_count; i++)
		if (!constrained || chosen_fit(search, position, search->fits[i].counts))
			allowed[i / 64] |= 1ull << (i % 64);
	for (uint32_t state = search->states; state-- > 1;)
		for (uint32_t i = 0; i < search->fit_count; i++) {
			const struct pattern *fit = &search->fits[i];
			if (fit->state > state || !contains(search, state, fit) || !(allowed[i / 64] >> (i % 64) & 1) ||
			    least[state - fit->state] == UNREACHED)
				continue;
			uint32_t price = least[state - fit->state] + fit_price(search, position, fit);
			if (price < least[state])
				least[state] = (uint16_t)price;
		}
	return true;
}

static void none_placed(const struct search *search, uint16_t *least)
{
	least[0] = 0;
	for (uint32_t state = 1; state < search->states; state++)
		least[state] = UNREACHED;
}

struct in_leaf { /* what pinned members take of the caps of a leaf */
	uint32_t nodes, gpus, members;
};

static struct in_leaf pinned_in(const struct place_work *work, uint32_t item)
{
	struct in_leaf in = {0};
	if (!work->pack.today || item_pin(work, item) == 0)
		return in;
	in.members = item_pin(work, item);
	for (uint32_t at = item_start(work, item); at < item_end(work, item); at++)
		in.nodes += work->pin[at] > 0;
	for (uint32_t i = 0; i < work->ask->count; i++) {
		const struct frond_member *member = &work->ask->members[i];
		if (member->gpus > 0 && member->pinned_slot != FROND_NONE &&
		    item_of(work, work->fabric->position[member->pinned_slot]) == item)
			in.gpus += member->gpus;
	}
	return in;
}

/* Keeps in options[] what an item may be given under the caps per leaf; by_nodes: `least` are nodes. False: the search is
 * over. */
static bool list_options(struct search *search, uint32_t item, bool by_nodes)
{
	search->option_count = 0;
	if (!search->reached)
		return true; /* nobody fits on any of its nodes: no state has to be looked at */
	if (!spend(search, search->states))
		return false;
	const struct place_work *work = search->work;
	const struct pack *pack = &work->pack;
	bool leaf = item < work->fabric->leaf_count;
	uint32_t most_gpus = leaf ? work->ask->max_gpus_per_leaf : 0;
	uint32_t most_nodes = leaf ? work->ask->max_nodes_per_leaf : 0;
	struct in_leaf in = pinned_in(work, item);
	for (uint32_t state = 1; state < search->states; state++) {
		uint32_t gpus = 0, members = 0;
		if (search->least[state] == UNREACHED)
			continue;
		for (uint32_t kind = 0; kind < pack->kinds; kind++) {
			uint32_t count = count_in(search, search->counts[state], kind);
			members += count;
			gpus += count * pack->size[kind];
		}
		if ((most_gpus > 0 && in.gpus + gpus > most_gpus) || in.members + members > work->scope.per_leaf ||
		    (by_nodes && most_nodes > 0 && in.nodes + search->least[state] > most_nodes))
			continue;
		search->options[search->option_count++] = (struct pattern){.counts = search->counts[state],
									   .state = state,
									   .gpus = gpus,
									   .members = (uint16_t)members,
									   .price = search->least[state]};
	}
	return true;
}

static bool add_item_fits(struct search *search, uint32_t item)
{
	search->reached = false;
	none_placed(search, search->least);
	for (uint32_t at = item_start(search->work, item); at < item_end(search->work, item); at++)
		if (!add_fits(search, at, search->least))
			return false;
	return true;
}

/* What an item may be given, and at which price. False: the search is over. */
static bool find_options(struct search *search, uint32_t item)
{
	const struct place_work *work = search->work;
	uint32_t most_nodes = item < work->fabric->leaf_count ? work->ask->max_nodes_per_leaf : 0;
	search->option_count = 0;
	if (search->hi - search->lo > 1 && item_slow(work, item))
		return true; /* a gang over several leaves may not cross a slow link */
	if (search->goal != PACK_MOST_NODES || most_nodes == 0)
		return add_item_fits(search, item) && list_options(search, item, search->goal != PACK_MOST_NODES);
	/* as many nodes as possible, but no more than the cap: what fits into so few, then how far it spreads */
	search->goal = PACK_FEWEST_NODES;
	bool done = add_item_fits(search, item);
	search->goal = PACK_MOST_NODES;
	if (!done || !list_options(search, item, true) || !add_item_fits(search, item))
		return false;
	for (uint32_t i = 0; i < search->option_count; i++) {
		struct pattern *option = &search->options[i];
		uint32_t nodes = min_u32(option->members - search->least[option->state], most_nodes);
		option->price = (uint16_t)(option->members - nodes);
	}
	return true;
}

/* The flag on entering a spine, and behind an item that is left out. */
static enum flag flag_at_spine(const struct search *search, enum flag flag, bool adjacent)
{
	if (search->form == PACK_ANY || flag == FLAG_NONE)
		return FLAG_NONE;
	return search->form == PACK_CHAIN && adjacent && (flag == FLAG_RUN || flag == FLAG_GAP) ? FLAG_NEXT
												: FLAG_CLOSED;
}

static enum flag flag_before(const struct search *search, uint32_t item, enum flag flag)
{
	const struct place_work *work = search->work;
	if (item == search->lo || item_spine(work, item) == item_spine(work, item - 1))
		return flag;
	bool leaf = item < work->fabric->leaf_count;
	return flag_at_spine(search, flag, leaf && spine_adjacent(work->fabric, item_spine(work, item)));
}

static enum flag flag_left_out(enum flag flag)
{
	return flag == FLAG_RUN ? FLAG_GAP : flag;
}

/* What using an item adds; PACK_NONE: it may not be used. */
static uint64_t item_price(const struct search *search, enum flag flag)
{
	uint64_t leaf = search->goal == PACK_MOST_NODES ? 0 : PACK_LEAF;
	uint64_t run = search->goal == PACK_MOST_NODES ? 0 : PACK_RUN_OF_LEAVES;
	uint64_t spine = search->goal == PACK_MOST_NODES ? 0 : PACK_SPINE;
	switch (flag) {
	case FLAG_NONE:
	case FLAG_NEXT:
		return spine + leaf + run;
	case FLAG_RUN:
		return leaf;
	case FLAG_GAP:
		return search->form == PACK_ANY ? leaf + run : PACK_NONE;
	default:
		return PACK_NONE;
	}
}

static uint64_t option_price(const struct search *search, const struct pattern *option)
{
	return search->goal == PACK_FEWEST_LEAVES ? 0 : option->price;
}

static void lower(uint64_t *cost, uint64_t to)
{
	if (to < *cost)
		*cost = to;
}

static bool item_pinned(const struct search *search, uint32_t item)
{
	return search->work->pack.today && item_pin(search->work, item) > 0;
}

/* One item more. */
static bool add_item(struct search *search, uint32_t item)
{
	const uint64_t *before = cost_row(search, item - search->lo);
	uint64_t *behind = cost_row(search, item - search->lo + 1), price[FLAGS];
	enum flag left_out[FLAGS];
	bool pinned = item_pinned(search, item), crossed = search->hi - search->lo > 1 && item_slow(search->work, item);
	if (!find_options(search, item) ||
	    !spend(search, (uint64_t)search->states * (search->option_count + 4 * FLAGS)))
		return false;
	for (enum flag flag = FLAG_NONE; flag <= FLAG_CLOSED; flag++) {
		enum flag at = flag_before(search, item, flag);
		left_out[flag] = flag_left_out(at);
		price[flag] = item_price(search, at);
	}
	for (uint64_t i = 0; i < (uint64_t)search->states * FLAGS; i++)
		behind[i] = PACK_NONE;
	for (uint32_t state = 0; state < search->states; state++) {
		const uint64_t *cost = before + (uint64_t)state * FLAGS;
		uint64_t open = PACK_NONE; /* the cheapest way to have placed that many, if the item is used then */
		for (enum flag flag = FLAG_NONE; flag <= FLAG_CLOSED; flag++) {
			if (cost[flag] == PACK_NONE)
				continue;
			if (!pinned)
				lower(&behind[(uint64_t)state * FLAGS + left_out[flag]], cost[flag]);
			if (price[flag] != PACK_NONE)
				lower(&open, cost[flag] + price[flag]);
		}
		if (open == PACK_NONE || crossed)
			continue; /* nor may a pinned member sit behind a slow link */
		if (pinned)
			lower(&behind[(uint64_t)state * FLAGS + FLAG_RUN], open);
		for (uint32_t i = 0; i < search->option_count; i++) {
			const struct pattern *option = &search->options[i];
			if (within(search, search->counts[state] + option->counts))
				lower(&behind[(uint64_t)(state + option->state) * FLAGS + FLAG_RUN],
				      open + option_price(search, option));
		}
	}
	return true;
}

/* Puts the highest ranks that are not placed yet on a node: from the last node to the first, lower ranks come to lie on
 * lower nodes. next[]: behind the highest such rank, by size. */
static void put_ranks(struct search *search, uint32_t position, const struct pattern *fit, uint32_t *next)
{
	struct place_work *work = search->work;
	const struct pack *pack = &work->pack;
	work->take[position] = (uint8_t)fit->members;
	for (uint32_t kind = 0; kind < pack->kinds; kind++)
		for (uint32_t left = count_in(search, fit->counts, kind); left > 0; left--) {
			do {
				assert(next[kind] > 0);
				next[kind]--;
			} while (!pack_is(work, next[kind], kind) || !pack_counts(work, next[kind], pack->today));
			work->member_pos[next[kind]] = position;
		}
}

/* Later nodes and items get the fewest members, then the smallest: so the first ones come to be full. */
static bool gives_less(const struct pattern *a, const struct pattern *b)
{
	return a->members != b->members ? a->members < b->members : a->gpus < b->gpus;
}

/* Places what an item was given, from its last node to its first. */
static bool put_item(struct search *search, uint32_t item, uint32_t state, uint32_t *next)
{
	uint32_t start = item_start(search->work, item), count = item_end(search->work, item) - start;
	if (count + 1 > search->node_rows || !spend(search, (uint64_t)count * search->states))
		return false;
	none_placed(search, search->nodes);
	for (uint32_t i = 0; i < count; i++) {
		uint16_t *row = search->nodes + (uint64_t)(i + 1) * search->states;
		memcpy(row, row - search->states, search->states * sizeof *row);
		if (!add_fits(search, start + i, row))
			return false;
	}
	for (uint32_t i = count; i-- > 0 && state > 0;) {
		const uint16_t *before = search->nodes + (uint64_t)i * search->states, *row = before + search->states;
		const struct pattern *best = NULL;
		if (before[state] == row[state])
			continue;
		bool any = node_fits(search, start + i);
		assert(any);
		for (uint32_t j = 0; j < search->fit_count; j++) {
			const struct pattern *fit = &search->fits[j];
			if (fit->state > state || before[state - fit->state] == UNREACHED ||
			    !contains(search, state, fit) ||
			    before[state - fit->state] + fit_price(search, start + i, fit) != row[state] ||
			    (search->work->scope.constrained && !chosen_fit(search, start + i, fit->counts)))
				continue;
			if (best == NULL || gives_less(fit, best))
				best = fit;
		}
		assert(best != NULL);
		put_ranks(search, start + i, best, next);
		state -= best->state;
	}
	assert(state == 0);
	return true;
}

/* Reads a placement of that cost off the table, from the last item to the first. */
static bool put_all(struct search *search, uint64_t cost)
{
	uint32_t next[FROND_GPUS_MAX], state = search->states - 1;
	enum flag flag = FLAG_CLOSED; /* rather left out than used, from the last item on */
	for (uint32_t kind = 0; kind < FROND_GPUS_MAX; kind++)
		next[kind] = search->work->ask->count;
	while (cost_row(search, search->hi - search->lo)[(uint64_t)state * FLAGS + flag] != cost)
		flag--;
	for (uint32_t item = search->hi; item-- > search->lo;) {
		const uint64_t *before = cost_row(search, item - search->lo);
		const struct pattern *given = NULL;
		enum flag from = FLAG_CLOSED + 1, given_from = from;
		bool pinned = item_pinned(search, item);
		for (enum flag f = FLAG_NONE; f <= FLAG_CLOSED && flag != FLAG_RUN; f++)
			if (before[(uint64_t)state * FLAGS + f] == cost &&
			    flag_left_out(flag_before(search, item, f)) == flag)
				from = f;
		if (flag != FLAG_RUN) {
			assert(from <= FLAG_CLOSED);
			flag = from;
			continue;
		}
		for (enum flag f = FLAG_NONE; f <= FLAG_CLOSED && pinned && from > FLAG_CLOSED; f++) {
			uint64_t price = item_price(search, flag_before(search, item, f));
			uint64_t had = before[(uint64_t)state * FLAGS + f];
			if (had != PACK_NONE && price != PACK_NONE && had + price == cost)
				from = f;
		}
		if (from > FLAG_CLOSED && !find_options(search, item))
			return false;
		for (uint32_t i = 0; from > FLAG_CLOSED && i < search->option_count; i++) {
			const struct pattern *option = &search->options[i];
			if (option->state > state || (given != NULL && !gives_less(option, given)) ||
			    !contains(search, state, option))
				continue;
			for (enum flag f = FLAG_NONE; f <= FLAG_CLOSED; f++) {
				uint64_t price = item_price(search, flag_before(search, item, f));
				uint64_t had = before[(uint64_t)(state - option->state) * FLAGS + f];
				if (had == PACK_NONE || price == PACK_NONE ||
				    had + price + option_price(search, option) != cost)
					continue;
				given = option;
				given_from = f;
				break;
			}
		}
		if (given != NULL) {
			from = given_from;
			uint32_t given_state = given->state;
			if (!put_item(search, item, given_state, next))
				return false;
			state -= given_state;
		}
		assert(from <= FLAG_CLOSED);
		cost = before[(uint64_t)state * FLAGS + from];
		flag = from;
	}
	return true;
}

enum pack_answer pack_search(struct place_work *work, uint32_t lo, uint32_t hi, enum pack_form form,
			     enum pack_goal goal, bool put, uint64_t *cost)
{
	struct search search = {.work = work,
				.lo = lo,
				.hi = hi,
				.form = form,
				.goal = goal,
				.most_steps = work->budget.spent ? 0 : work->budget.left / 2};
	bool done = search_open(&search);
	*cost = PACK_NONE;
	for (uint32_t i = 0; done && i < search.states * FLAGS; i++)
		search.cost[i] = i == FLAG_NONE ? 0 : PACK_NONE;
	for (uint32_t item = lo; done && item < hi; item++)
		done = add_item(&search, item);
	for (enum flag flag = FLAG_NONE; done && flag <= FLAG_CLOSED; flag++)
		lower(cost, cost_row(&search, hi - lo)[(uint64_t)(search.states - 1) * FLAGS + flag]);
	if (done && put && *cost != PACK_NONE)
		done = put_all(&search, *cost);
	bool paid = budget_take(&work->budget, search.steps < search.most_steps ? search.steps : search.most_steps);
	if (!done || !paid)
		return PACK_CUT;
	return *cost == PACK_NONE ? PACK_IMPOSSIBLE : PACK_HOLDS;
}
