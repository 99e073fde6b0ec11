/* SPDX-License-Identifier: Apache-2.0 */
/*
 * defrag.c - phases:
 *
 *   1  does it fit as it is? which rule must it meet?
 *   2  a lower bound from counting alone: in each domain of the rule, the GPUs that are missing and the most that so
 *      many moves can free on its nodes
 *   3  small clusters: every set of k members, k from the lower bound upwards, and every place for them, until the gang
 *      fits and the rules of those that moved hold. A k that fails entirely raises the lower bound
 *   4  larger ones: the cheapest domains by counting; the members in the way leave, the gang goes in, and their gangs
 *      are planned anew around the members that stay, or as a whole. The fewest moves win
 */
#include "core/defrag.h"

#include "core/sort.h"

#define RATIO_ONE 720720u /* divisible by every number of GPUs in a node */

void defrag_layout(struct defrag_work *work, struct arena *arena, uint32_t pods)
{
	roster_layout(&work->roster, arena, pods);
	work->places = arena_raw(arena, FROND_MEMBERS_MAX, sizeof *work->places);
	work->room = arena_raw(arena, DEFRAG_MOVES, sizeof *work->room);
	work->movers = arena_raw(arena, DEFRAG_MOVES, sizeof *work->movers);
	work->best = arena_raw(arena, DEFRAG_MOVES, sizeof *work->best);
	work->gangs = arena_raw(arena, DEFRAG_GANGS, sizeof *work->gangs);
}

struct dig { /* one call */
	struct defrag_work *work;
	struct core *core;
	const struct fabric *fabric;
	struct ask ask;
	const struct ask *defaults;
	struct answer answer;
	uint32_t size, need; /* GPUs of a member and members to place; sizes differ: 1 and GPUs */
	uint32_t own_gang;   /* of the asked gang, when some of it is bound; FROND_NONE: none */
	uint32_t plans;      /* left for the exact search */
	bool limited;        /* an answer was over DEFRAG_MOVES, DEFRAG_GANGS or the undo log */
};

/* A plan of so many members is paid for, beside what the planner pays itself. */
static bool pay(struct dig *dig, uint32_t members)
{
	return budget_take(place_budget(dig->core->work), STEPS_PLAN + (uint64_t)STEPS_MOVER * members +
								  (uint64_t)STEPS_LEAF * dig->fabric->leaf_count);
}

static bool fits(struct dig *dig)
{
	place_gang(dig->core->work, &dig->ask, &dig->answer, dig->work->places);
	return dig->answer.plan.outcome == FROND_PLACED;
}

static void begin(struct dig *dig, const struct ask *ask)
{
	bool mixed = false;
	uint32_t gpus = 0, missing = 0;
	dig->ask = *ask;
	if (ask->mode == MODE_PREFERRED)
		dig->ask.mode = MODE_REQUIRED; /* nobody moves for a relaxed placement */
	dig->own_gang = FROND_NONE;
	for (uint32_t i = 0; i < ask->count; i++) {
		const struct frond_member *member = &ask->members[i];
		uint32_t entry = ledger_find(&dig->core->ledger, member->pod);
		if (entry != FROND_NONE)
			dig->own_gang = entry_gang(&dig->core->ledger.entries[entry]);
		if (member->gpus == 0)
			continue;
		mixed |= dig->size != 0 && member->gpus != dig->size;
		dig->size = member->gpus;
		if (member->pinned_slot == FROND_NONE) {
			missing++;
			gpus += member->gpus;
		}
	}
	dig->size = mixed ? 1 : dig->size;
	dig->need = mixed ? gpus : missing;
}

static bool movable(const struct dig *dig, const struct entry *entry)
{
	return entry->hold == HOLD_BOUND && entry_gang(entry) != FROND_NONE && entry_gang(entry) != dig->own_gang &&
	       entry_slot(entry) != FROND_NONE && entry_gpus(entry) > 0;
}

static uint32_t frees(const struct dig *dig, const struct entry *entry)
{
	return bits_count(ledger_frees(&dig->core->ledger, entry) &
			  ~(uint32_t)dig->core->nodes[entry_slot(entry)].unhealthy) +
	       (uint32_t)entry->by_count;
}

/* ---- what a gang must keep -------------------------------------------------------------------------------------------- */

/* The gang's wishes and the rule that it meets today. False: too large. */
static bool describe(struct dig *dig, uint32_t id, struct moved_gang *gang)
{
	struct roster *roster = &dig->work->roster;
	const struct gang *from = &dig->core->gangs.gangs[id];
	struct ask ask;
	struct answer answer;
	*gang = (struct moved_gang){.key = from->key, .id = id, .terms = gang_terms(from)};
	if (roster_fill(roster, dig->core, id) != FROND_OK)
		return false;
	roster_ask(roster, &gang->terms, dig->defaults, NULL, 0, &ask);
	gang->rule = (struct rule){.name = FROND_RULE_NONE, .bandwidth_gbps = ask.bandwidth_gbps};
	if (ask.mode == MODE_IGNORE || dig->fabric->leaf_count == 0 || !place_rule_of(dig->core->work, &ask, &answer) ||
	    (answer.plan.flags & FROND_PLAN_SHAPELESS))
		return true;
	struct rule rule = rule_of(&ask, &answer);
	uint32_t count = 0;
	for (uint32_t i = 0; i < roster->count; i++)
		if (roster->members[i].gpus > 0)
			roster->entries[count++] = dig->fabric->position[roster->members[i].pinned_slot];
	if (positions_meet(dig->fabric, roster->entries, count, &rule))
		gang->rule = rule;
	return true;
}

/* ---- counting: what a domain costs, at least ---------------------------------------------------------------------------- */

static bool node_usable(const struct node *node, uint32_t bandwidth_gbps)
{
	return node_open(node) && (node->uplink_gbps == 0 || node->uplink_gbps >= bandwidth_gbps);
}

struct hole { /* where the gang could go */
	struct span span;
	uint32_t moves; /* that it costs at least */
};

struct ladder { /* members that a node gains when so many leave it, the largest first */
	uint32_t room;
	uint32_t gain[FROND_GPUS_MAX + 1]; /* by moves */
	uint32_t moves;                    /* entries behind [0] */
};

static struct ladder ladder_of(const struct dig *dig, uint32_t position)
{
	const struct entry *entries = dig->core->ledger.entries;
	uint32_t slot = dig->fabric->order[position], sizes[FROND_GPUS_MAX + 1] = {0};
	const struct node *node = &dig->core->nodes[slot];
	struct ladder ladder = {.room = 0};
	if (!node_usable(node, dig->ask.bandwidth_gbps) ||
	    (dig->ask.only_slot != FROND_NONE && dig->ask.only_slot != slot))
		return ladder;
	for (uint32_t at = node->first; at != FROND_NONE; at = entry_node_next(&entries[at]))
		if (movable(dig, &entries[at]))
			sizes[min_u32(frees(dig, &entries[at]), FROND_GPUS_MAX)]++;
	uint32_t free = node_free_count(node), all = min_u32(node->gpus, FROND_GPUS_MAX);
	ladder.room = free / dig->size;
	for (uint32_t size = FROND_GPUS_MAX; size > 0; size--)
		for (; sizes[size] > 0 && ladder.moves < FROND_GPUS_MAX; sizes[size]--) {
			free = min_u32(free + size, all);
			ladder.gain[++ladder.moves] = free / dig->size - ladder.room;
		}
	return ladder;
}

/* Moves for the best ratio of moves to members gained, and the members; 0: nothing to gain. */
static uint32_t best_step(const struct ladder *ladder, uint32_t *gain)
{
	uint32_t best = 0;
	*gain = 0;
	for (uint32_t moves = 1; moves <= ladder->moves; moves++)
		if (ladder->gain[moves] > 0 && (best == 0 || moves * *gain < best * ladder->gain[moves])) {
			best = moves;
			*gain = ladder->gain[moves];
		}
	return best;
}

struct steps { /* members to be gained in a domain, by moves and members of the best step on their node */
	uint64_t members[FROND_GPUS_MAX + 1][FROND_GPUS_MAX + 1];
	uint32_t gains[FROND_GPUS_MAX + 1]; /* by moves: mask of the members for which there are any */
	uint64_t room;
};

/* A node comes into the domain, or leaves it. */
static void steps_count(const struct dig *dig, struct steps *steps, uint32_t position, bool comes)
{
	struct ladder ladder = ladder_of(dig, position);
	uint32_t gain, moves = best_step(&ladder, &gain);
	steps->room += comes ? ladder.room : ~(uint64_t)ladder.room + 1;
	if (moves == 0)
		return;
	uint64_t *members = &steps->members[moves][gain], all = ladder.gain[ladder.moves];
	*members += comes ? all : ~all + 1; /* all that the node can gain, at its best ratio */
	steps->gains[moves] = *members > 0 ? steps->gains[moves] | 1u << gain : steps->gains[moves] & ~(1u << gain);
}

/* The cheapest step that is left; false: none. For as many moves the one that gains most is the cheapest. */
static bool cheapest_step(const uint32_t *gains, uint32_t *moves, uint32_t *gain)
{
	bool found = false;
	for (uint32_t m = 1; m <= FROND_GPUS_MAX; m++) {
		uint32_t g = FROND_GPUS_MAX;
		if (gains[m] == 0)
			continue;
		while ((gains[m] >> g & 1) == 0)
			g--;
		if (!found || m * *gain < *moves * g) {
			*moves = m;
			*gain = g;
			found = true;
		}
	}
	return found;
}

/* Moves without which the domain has no room; UINT32_MAX: it never has. Each member gained costs no less than the best
 * ratio of its node, so that the cheapest nodes, taken in fractions, bound every choice from below. */
static uint32_t least_moves(const struct dig *dig, const struct steps *steps)
{
	uint32_t gains[FROND_GPUS_MAX + 1];
	memcpy(gains, steps->gains, sizeof gains);
	uint64_t cost = 0, missing = steps->room >= dig->need ? 0 : dig->need - steps->room;
	while (missing > 0) {
		uint32_t moves = 0, gain = 1;
		if (!cheapest_step(gains, &moves, &gain))
			return UINT32_MAX;
		uint64_t taken = missing < steps->members[moves][gain] ? missing : steps->members[moves][gain];
		cost += taken * moves * (RATIO_ONE / gain);
		missing -= taken;
		gains[moves] &= ~(1u << gain);
	}
	return (uint32_t)((cost + RATIO_ONE - 1) / RATIO_ONE);
}

/* From the span before to this one: they come in order, so that every node comes once and leaves once. Spans of NVLink
 * domains may share a leaf, and begin anew. */
static void steps_slide(const struct dig *dig, const struct span *from, const struct span *to, struct steps *steps)
{
	bool anew = to->nvlink != FROND_NONE || to->first < from->first || to->end < from->end;
	if (anew)
		memset(steps, 0, sizeof *steps);
	for (uint32_t position = from->first; position < min_u32(from->end, to->first) && !anew; position++)
		steps_count(dig, steps, position, false);
	for (uint32_t position = anew ? to->first : max_u32(from->end, to->first); position < to->end; position++)
		if (span_has(dig->fabric, to, position))
			steps_count(dig, steps, position, true);
}

/* The cheapest domains in order; returns how many. The first one's moves are a lower bound. */
static uint32_t find_holes(struct dig *dig, struct hole *holes)
{
	uint32_t count = 0;
	struct rule rule = rule_of(&dig->ask, &dig->answer);
	struct span before = {0, 0, FROND_NONE};
	struct steps steps = {.room = 0};
	for (struct spans spans = spans_of(dig->fabric, &rule, ask_spreads(&dig->ask)); spans_next(&spans);) {
		struct hole hole = {.span = spans.span};
		steps_slide(dig, &before, &hole.span, &steps);
		before = hole.span;
		hole.moves = least_moves(dig, &steps);
		uint32_t at = count;
		while (at > 0 && hole.moves < holes[at - 1].moves)
			at--;
		if (hole.moves == UINT32_MAX || at == DEFRAG_HOLES)
			continue;
		count = min_u32(count + 1, DEFRAG_HOLES);
		memmove(&holes[at + 1], &holes[at], (count - 1 - at) * sizeof *holes);
		holes[at] = hole;
	}
	return count;
}

/* ---- small clusters: every set of members --------------------------------------------------------------------------------- */

static bool mover_before(const struct dig *dig, const struct mover *a, const struct mover *b)
{
	struct frond_key key_a = dig->work->gangs[a->gang].key, key_b = dig->work->gangs[b->gang].key;
	if (!key_equal(key_a, key_b))
		return key_before(key_a, key_b);
	return a->rank != b->rank ? a->rank < b->rank : key_before(a->pod, b->pod);
}

static struct mover mover_of(const struct dig *dig, uint32_t at, uint32_t gang)
{
	const struct entry *entry = &dig->core->ledger.entries[at];
	return (struct mover){.pod = entry->pod,
			      .entry = at,
			      .gang = gang,
			      .rank = entry_rank(entry),
			      .gpus = entry_gpus(entry),
			      .from = entry_slot(entry),
			      .to = entry_slot(entry),
			      .fixed = !movable(dig, entry)};
}

static void sift_movers(const struct dig *dig, struct mover *movers, uint32_t root, uint32_t count)
{
	for (uint32_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
		if (child + 1 < count && mover_before(dig, &movers[child], &movers[child + 1]))
			child++;
		if (!mover_before(dig, &movers[root], &movers[child]))
			return;
		struct mover mover = movers[child];
		movers[child] = movers[root];
		movers[root] = mover;
		root = child;
	}
}

/* By gang, rank and key: the ledger's lists go by history. */
static void sort_movers(struct dig *dig)
{
	struct mover *movers = dig->work->movers;
	uint32_t count = dig->work->count;
	for (uint32_t root = count / 2; root > 0; root--)
		sift_movers(dig, movers, root - 1, count);
	for (uint32_t end = count; end > 1; end--) {
		struct mover mover = movers[end - 1];
		movers[end - 1] = movers[0];
		movers[0] = mover;
		sift_movers(dig, movers, 0, end - 1);
	}
}

/* Every member of every gang that may move. False: too many for an exact search. */
static bool gather(struct dig *dig)
{
	struct defrag_work *work = dig->work;
	const struct gangs *gangs = &dig->core->gangs;
	const struct entry *entries = dig->core->ledger.entries;
	work->count = work->gang_count = 0;
	if (dig->fabric->node_count > DEFRAG_NODES || gangs->used > DEFRAG_MEMBERS)
		return false;
	for (uint32_t id = 0; id < gangs->fresh; id++) {
		if (gang_first(&gangs->gangs[id]) == FROND_NONE || id == dig->own_gang)
			continue;
		if (gangs->gangs[id].members > DEFRAG_MEMBERS - work->count ||
		    !describe(dig, id, &work->gangs[work->gang_count]))
			return false;
		uint32_t gang = work->gang_count++;
		for (uint32_t at = gang_first(&gangs->gangs[id]); at != FROND_NONE; at = entry_gang_next(&entries[at]))
			if (entry_slot(&entries[at]) != FROND_NONE && entry_gpus(&entries[at]) > 0)
				work->movers[work->count++] = mover_of(dig, at, gang);
	}
	sort_movers(dig);
	return true;
}

struct search {
	struct dig *dig;
	uint32_t moves;                /* to be made */
	uint32_t chosen[DEFRAG_DEPTH]; /* movers */
};

static bool plan_fits(struct dig *dig)
{
	if (dig->plans == 0 || !pay(dig, dig->ask.count)) {
		dig->plans = 0;
		return false;
	}
	dig->plans--;
	bool placed = fits(dig);
	if (!placed && dig->answer.cut)
		dig->plans = 0; /* a plan that a bound has ended rules nothing out */
	return placed;
}

/* Every gang of which a member moves meets the rule that it met. */
static bool rules_kept(const struct search *search)
{
	const struct defrag_work *work = search->dig->work;
	for (uint32_t i = 0; i < search->moves; i++) {
		uint32_t positions[DEFRAG_MEMBERS], count = 0, gang = work->movers[search->chosen[i]].gang;
		for (uint32_t m = 0; m < work->count; m++)
			if (work->movers[m].gang == gang)
				positions[count++] = search->dig->fabric->position[work->movers[m].to];
		if (!positions_meet(search->dig->fabric, positions, count, &work->gangs[gang].rule))
			return false;
	}
	return true;
}

/* A place for mover number i and those behind it, with room for the gang left. Depth: DEFRAG_DEPTH. */
static bool settle(struct search *search, uint32_t i)
{
	struct dig *dig = search->dig;
	struct core *core = dig->core;
	if (i == search->moves)
		return true;
	struct mover *mover = &dig->work->movers[search->chosen[i]];
	struct gpu_wish wish = dig->work->gangs[mover->gang].terms.gpu;
	for (uint32_t position = 0; position < dig->fabric->node_count && dig->plans > 0; position++) {
		uint32_t slot = dig->fabric->order[position], entry;
		const struct node *node = &core->nodes[slot];
		if (slot == mover->from || node_free_count(node) < mover->gpus ||
		    !node_usable(node, dig->work->gangs[mover->gang].rule.bandwidth_gbps))
			continue;
		mover->mask =
			gpuset_choose(core->sets[node->topology], &wish, node_free_mask(node), node->held, mover->gpus);
		if (mover->mask == 0)
			continue;
		mover->to = slot;
		mover->ring = gpuset_ring_packed(dig->core->sets[dig->core->nodes[slot].topology], mover->mask);
		if (i + 1 == search->moves && !rules_kept(search))
			continue;
		undo_begin(&core->undo);
		int32_t code = ledger_enter(&core->ledger, mover->pod, HOLD_BOUND, slot, mover->mask, 0, mover->rank,
					    FROND_NONE, &entry);
		assert(code == FROND_OK); /* it has just left */
		bool found = plan_fits(dig) && settle(search, i + 1);
		undo_back(&core->undo);
		if (found)
			return true;
	}
	mover->to = mover->from;
	return false;
}

/* Is it as good as the one before it? Then a set with this one and without that one has been tried already. */
static bool like_before(const struct dig *dig, uint32_t m)
{
	if (m == 0)
		return false;
	const struct mover *mover = &dig->work->movers[m], *before = mover - 1;
	bool constrained = dig->ask.gpu.mode == MODE_REQUIRED ||
			   dig->work->gangs[mover->gang].terms.gpu.mode == MODE_REQUIRED; /* devices matter */
	return mover->gang == before->gang && mover->from == before->from && mover->gpus == before->gpus &&
	       !before->fixed && !before->moves && !constrained &&
	       frees(dig, &dig->core->ledger.entries[mover->entry]) ==
		       frees(dig, &dig->core->ledger.entries[before->entry]); /* one may be unhealthy or kept */
}

/* Members from `start` on that leave, `chosen` having left. Depth: DEFRAG_DEPTH. */
static bool choose(struct search *search, uint32_t start, uint32_t chosen)
{
	struct dig *dig = search->dig;
	if (chosen == search->moves)
		return plan_fits(dig) && settle(search, 0);
	for (uint32_t m = start; m < dig->work->count && dig->plans > 0; m++) {
		struct mover *mover = &dig->work->movers[m];
		if (mover->fixed || like_before(dig, m))
			continue;
		search->chosen[chosen] = m;
		mover->moves = true;
		undo_begin(&dig->core->undo);
		what_if_leave(dig->core, mover->entry);
		bool found = choose(search, m + 1, chosen + 1);
		undo_back(&dig->core->undo);
		if (found)
			return true;
		mover->moves = false;
	}
	return false;
}

enum verdict { FOUND, HOPELESS, OPEN };

/* *least: no set has fewer. OPEN: nobody knows. */
static enum verdict search_all(struct dig *dig, uint32_t *least)
{
	uint32_t able = 0;
	for (uint32_t m = 0; m < dig->work->count; m++)
		able += !dig->work->movers[m].fixed;
	dig->plans = DEFRAG_PLANS;
	for (; *least <= min_u32(able, DEFRAG_DEPTH); ++*least) {
		struct search search = {.dig = dig, .moves = *least};
		if (choose(&search, 0, 0))
			return FOUND;
		if (dig->plans == 0)
			return OPEN;
	}
	return able <= DEFRAG_DEPTH ? HOPELESS : OPEN;
}

/* ---- larger clusters: one hole ---------------------------------------------------------------------------------------------- */

/* The gang's index, known from now on; FROND_NONE: no room for it, or the budget is spent. */
static uint32_t know_gang(struct dig *dig, uint32_t id)
{
	struct defrag_work *work = dig->work;
	for (uint32_t i = 0; i < work->gang_count; i++)
		if (work->gangs[i].id == id)
			return i;
	dig->limited |= work->gang_count == DEFRAG_GANGS;
	if (work->gang_count == DEFRAG_GANGS || !pay(dig, (uint32_t)dig->core->gangs.gangs[id].members) ||
	    !describe(dig, id, &work->gangs[work->gang_count]))
		return FROND_NONE;
	return work->gang_count++;
}

/* Marks the largest members of a node, lowest key first; they leave when all have been marked, for the rules are of the
 * day. False: over a limit, or the budget is spent. */
static bool mark_node(struct dig *dig, uint32_t position, uint32_t moves)
{
	struct defrag_work *work = dig->work;
	const struct entry *entries = dig->core->ledger.entries;
	uint32_t first = work->count;
	for (; moves > 0; moves--) {
		uint32_t best = FROND_NONE;
		for (uint32_t at = dig->core->nodes[dig->fabric->order[position]].first; at != FROND_NONE;
		     at = entry_node_next(&entries[at])) {
			bool marked = !movable(dig, &entries[at]);
			for (uint32_t i = first; i < work->count && !marked; i++)
				marked = work->movers[i].entry == at;
			uint32_t size = frees(dig, &entries[at]),
				 other = best == FROND_NONE ? 0 : frees(dig, &entries[best]);
			if (!marked && (best == FROND_NONE || size > other ||
					(size == other && key_before(entries[at].pod, entries[best].pod))))
				best = at;
		}
		assert(best != FROND_NONE); /* the ladder has counted it */
		uint32_t gang = know_gang(dig, entry_gang(&entries[best]));
		dig->limited |= work->count == DEFRAG_MOVES;
		if (gang == FROND_NONE || work->count == DEFRAG_MOVES)
			return false;
		work->movers[work->count++] = mover_of(dig, best, gang);
	}
	return true;
}

static struct ladder hole_ladder(const struct dig *dig, const struct hole *hole, uint32_t position)
{
	return span_has(dig->fabric, &hole->span, position) ? ladder_of(dig, position) : (struct ladder){.room = 0};
}

/* Marks who stands in the way: node after node at the best ratio, lowest position first. */
static bool mark_hole(struct dig *dig, const struct hole *hole)
{
	uint64_t room = 0;
	for (uint32_t position = hole->span.first; position < hole->span.end; position++)
		room += hole_ladder(dig, hole, position).room;
	for (uint32_t ratio_moves = 1, ratio_gain = FROND_GPUS_MAX; room < dig->need;) {
		/* The next ratio, and the nodes that have it. */
		uint32_t next_moves = 0, next_gain = 0;
		for (uint32_t position = hole->span.first; position < hole->span.end && room < dig->need; position++) {
			struct ladder ladder = hole_ladder(dig, hole, position);
			uint32_t gain, moves = best_step(&ladder, &gain);
			if (moves == 0 || moves * ratio_gain < ratio_moves * gain)
				continue;
			if (moves * ratio_gain > ratio_moves * gain) {
				if (next_moves == 0 || moves * next_gain < next_moves * gain) {
					next_moves = moves;
					next_gain = gain;
				}
				continue;
			}
			for (uint32_t m = 1; m < moves; m++) /* less may be enough for the last node */
				if (room + ladder.gain[m] >= dig->need)
					moves = m;
			room += ladder.gain[moves];
			if (!mark_node(dig, position, moves))
				return false;
		}
		if (room < dig->need && next_moves == 0)
			return false;
		ratio_moves = next_moves;
		ratio_gain = next_gain;
	}
	return true;
}

/* The asked gang takes its places. */
static bool enter_ask(struct dig *dig)
{
	struct ledger *ledger = &dig->core->ledger;
	for (uint32_t i = 0; i < dig->ask.count; i++) {
		const struct frond_member *member = &dig->ask.members[i];
		uint32_t entry;
		if (member->gpus == 0 || member->pinned_slot != FROND_NONE)
			continue;
		dig->limited |= !undo_room(&dig->core->undo, 1);
		if (ledger_find(ledger, member->pod) != FROND_NONE || dig->limited ||
		    ledger_enter(ledger, member->pod, HOLD_BOUND, dig->work->places[i].slot,
				 dig->work->places[i].gpu_mask, 0, member->rank, FROND_NONE, &entry) != FROND_OK)
			return false;
	}
	return true;
}

static bool member_before(const struct frond_member *a, const struct frond_member *b)
{
	return a->rank != b->rank ? a->rank < b->rank : key_before(a->pod, b->pod);
}

/* Those that stay, pinned, and those that move, which are sorted. False: too many. */
static bool muster(struct dig *dig, uint32_t gang)
{
	struct defrag_work *work = dig->work;
	struct roster *roster = &work->roster;
	uint32_t id = gangs_find(&dig->core->gangs, work->gangs[gang].key), moving = 0;
	roster->count = 0;
	if (id != FROND_NONE && roster_fill(roster, dig->core, id) != FROND_OK)
		return false;
	for (uint32_t m = 0; m < work->count; m++)
		moving += work->movers[m].gang == gang;
	if (moving > roster->cap - roster->count)
		return false;
	uint32_t stay = roster->count, at = stay + moving;
	roster->count = at;
	for (uint32_t m = work->count;
	     m-- > 0;) { /* the last ones first: nothing is overwritten that is still to come */
		const struct mover *mover = &work->movers[m];
		if (mover->gang != gang)
			continue;
		struct frond_member member = {
			.pod = mover->pod, .rank = mover->rank, .gpus = mover->gpus, .pinned_slot = FROND_NONE};
		while (stay > 0 && member_before(&member, &roster->members[stay - 1]))
			roster->members[--at] = roster->members[--stay];
		roster->members[--at] = member;
	}
	return true;
}

/* Nobody comes back to the node that it leaves: it is closed to its gang while the plan is made. */
static void forbid_home(struct dig *dig, uint32_t gang)
{
	struct defrag_work *work = dig->work;
	work->room_count = 0;
	for (uint32_t m = 0; m < work->count; m++) {
		uint32_t slot = work->movers[m].from, i = work->room_count;
		if (work->movers[m].gang != gang)
			continue;
		while (i > 0 && work->room[i - 1].slot > slot)
			i--;
		if (i > 0 && work->room[i - 1].slot == slot)
			continue;
		memmove(&work->room[i + 1], &work->room[i], (work->room_count++ - i) * sizeof *work->room);
		work->room[i] = (struct frond_room){.slot = slot, .ever = UINT16_MAX};
	}
}

/* Takes the places of the plan over to the movers of the gang, and books them. */
static bool take_places(struct dig *dig, uint32_t gang)
{
	struct defrag_work *work = dig->work;
	for (uint32_t m = 0, i = 0; m < work->count; m++) { /* both are sorted */
		struct mover *mover = &work->movers[m];
		uint32_t entry;
		if (mover->gang != gang)
			continue;
		while (!key_equal(work->roster.members[i].pod, mover->pod))
			i++;
		mover->to = work->places[i].slot;
		mover->mask = work->places[i].gpu_mask;
		mover->ring = work->places[i].ring;
		dig->limited |= !undo_room(&dig->core->undo, 1);
		if (dig->limited || ledger_enter(&dig->core->ledger, mover->pod, HOLD_BOUND, mover->to, mover->mask, 0,
						 mover->rank, FROND_NONE, &entry) != FROND_OK)
			return false;
	}
	return true;
}

/* New places for the movers of a gang; when its rule does not allow that, for all of it. */
static bool rehouse(struct dig *dig, uint32_t gang)
{
	struct defrag_work *work = dig->work;
	struct moved_gang *moved = &work->gangs[gang];
	struct ask ask;
	struct answer answer;
	for (uint32_t whole = 0; whole < 2; whole++) {
		uint32_t id = gangs_find(&dig->core->gangs, moved->key);
		for (uint32_t at = whole && id != FROND_NONE ? gang_first(&dig->core->gangs.gangs[id]) : FROND_NONE,
			      next;
		     at != FROND_NONE; at = next) {
			const struct entry *entry = &dig->core->ledger.entries[at];
			next = entry_gang_next(entry);
			if (!movable(dig, entry))
				continue;
			dig->limited |= work->count == DEFRAG_MOVES || !undo_room(&dig->core->undo, 2);
			if (dig->limited)
				return false;
			work->movers[work->count++] = mover_of(dig, at, gang);
			what_if_leave(dig->core, at);
		}
		if (whole)
			sort_movers(dig);
		if (!muster(dig, gang) || !pay(dig, work->roster.count))
			return false;
		forbid_home(dig, gang);
		roster_ask(&work->roster, &moved->terms, dig->defaults, work->room, work->room_count, &ask);
		ask.mode = moved->rule.name == FROND_RULE_NONE ? MODE_IGNORE : MODE_REQUIRED;
		place_gang(dig->core->work, &ask, &answer, work->places);
		if (answer.plan.outcome == FROND_PLACED)
			return take_places(dig, gang);
	}
	return false;
}

/* Inside a what-if: those in the way leave, the gang goes in, and they find new places. */
static bool open_hole(struct dig *dig, const struct hole *hole)
{
	struct defrag_work *work = dig->work;
	work->count = work->gang_count = 0;
	if (!budget_take(place_budget(dig->core->work), (uint64_t)STEPS_HOLE * (hole->span.end - hole->span.first)) ||
	    !mark_hole(dig, hole))
		return false;
	sort_movers(dig);
	for (uint32_t m = 0; m < work->count; m++) {
		dig->limited |= !undo_room(&dig->core->undo, 2);
		if (dig->limited)
			return false;
		what_if_leave(dig->core, work->movers[m].entry);
	}
	dig->ask.domain_first = hole->span.first;
	dig->ask.domain_end = hole->span.end;
	dig->ask.domain_nvlink = hole->span.nvlink;
	bool opened = pay(dig, dig->ask.count + work->count) && fits(dig) && enter_ask(dig);
	for (uint32_t gang = 0; gang < work->gang_count && opened; gang++)
		opened = rehouse(dig, gang);
	return opened;
}

/* The fewest moves of those that the holes ask for, into best. */
static bool dig_holes(struct dig *dig, const struct hole *holes, uint32_t count)
{
	struct defrag_work *work = dig->work;
	bool limited = false;
	work->best_count = UINT32_MAX;
	struct budget *budget = place_budget(dig->core->work);
	for (uint32_t i = 0; i < count && holes[i].moves < work->best_count && !budget->spent; i++) {
		dig->limited = false;
		undo_begin(&dig->core->undo);
		bool opened = open_hole(dig, &holes[i]);
		undo_back(&dig->core->undo);
		limited |= dig->limited;
		if (opened && work->count < work->best_count) {
			memcpy(work->best, work->movers, work->count * sizeof *work->best);
			work->best_count = work->count;
		}
	}
	dig->limited = limited;
	return work->best_count != UINT32_MAX;
}

/* ---- the answer ------------------------------------------------------------------------------------------------------------ */

static int32_t tell(const struct mover *movers, uint32_t count, struct frond_moves *out, struct frond_move *moves,
		    uint32_t cap)
{
	out->count = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (movers[i].to == movers[i].from)
			continue;
		if (out->count < cap)
			moves[out->count] = (struct frond_move){.pod = movers[i].pod,
								.rank = movers[i].rank,
								.from = movers[i].from,
								.to = movers[i].to,
								.gpu_mask = movers[i].mask,
								.ring = movers[i].ring};
		out->count++;
	}
	return out->count > cap ? FROND_SMALL : FROND_OK;
}

int32_t defrag(struct defrag_work *work, struct core *core, const struct ask *ask, const struct ask *defaults,
	       struct frond_moves *out, struct frond_move *moves, uint32_t cap)
{
	struct dig dig = {.work = work, .core = core, .fabric = &core->fabric, .defaults = defaults};
	struct hole holes[DEFRAG_HOLES];
	*out = (struct frond_moves){0};
	budget_begin(place_budget(core->work), core->fabric.node_count);
	if (!undo_room(&core->undo, 4ull * DEFRAG_DEPTH))
		return FROND_LIMIT;
	begin(&dig, ask);
	bool placed = fits(&dig);
	out->outcome = dig.answer.plan.outcome;
	out->flags = dig.answer.plan.flags;
	if (placed || dig.answer.plan.outcome != FROND_WAITS)
		return FROND_OK;
	uint32_t count = find_holes(&dig, holes);
	if (count == 0)
		return FROND_OK;
	uint32_t least = max_u32(holes[0].moves, 1);
	enum verdict verdict = OPEN;
	struct budget *budget = place_budget(core->work);
	uint64_t half = budget->left / 2; /* for the holes */
	budget->left -= half;
	if (ask->max_nodes_per_leaf == 0 && ask->max_gpus_per_leaf == 0 && gather(&dig))
		verdict = search_all(&dig, &least);
	*budget = (struct budget){.left = budget->left + half};
	int32_t code = FROND_OK;
	if (verdict == FOUND)
		code = tell(work->movers, work->count, out, moves, cap);
	else if (verdict == OPEN && dig_holes(&dig, holes, count))
		code = tell(work->best, work->best_count, out, moves, cap);
	if (out->count > 0) {
		out->outcome = FROND_PLACED;
		out->flags = verdict == OPEN && out->count > least ? FROND_PLAN_BOUNDED : 0;
		out->lower_bound = least;
	} else if (dig.limited) {
		code = FROND_LIMIT;
	} else if (verdict == OPEN) { /* of the holes only the cheapest are tried, each in one way */
		out->outcome = FROND_UNDECIDED;
		out->flags = FROND_PLAN_BOUNDED;
	}
	return code;
}
