/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moves.h - part of oracle.c: judges `recover` and `defrag` by trying every set of members that could move.
 *
 * Where reference 6 and 7 leave room, docs/decisions/0002 decides, and after it:
 *  M1  A lost member gives its healthy GPUs back when its own gang's turn comes; if that gang is not repaired, or its
 *      policy is Wait, it keeps them.
 *  M2  A lost member that comes back on its own node is a move from that node to itself.
 *  M3  The order of moves in the answer is free.
 *  M4  defrag: "fits" means with the rule met, or, when the fabric could never meet it, placed at all; a moved member of a job that was relaxed has no rule to meet.
 */
#ifndef FROND_TEST_MOVES_H
#define FROND_TEST_MOVES_H

#include "check.h"

struct moves { /* of an answer, by job and rank */
	int count, lower_bound;
	int of_job[ENTRIES_MAX];
	bool unrepaired[ENTRIES_MAX];     /* so the answer says */
	bool cut;                         /* one of them because of the bound on a call */
	int to[ENTRIES_MAX][MEMBERS_MAX]; /* -1: stays */
};

struct move_stats {
	int gangs_hit, repaired_met, repaired_relaxed, unrepaired, waiting, healthy_moved;
	int by_policy[RECOVERIES];
	int fits_already, hopeless, opened, by_moves[MEMBERS_MAX + 1];
	int moves;
	int cut; /* by the bound */
};

enum { CUT_FROM = 5 }; /* moves: what needs fewer, no bound may cut on clusters as small as these */

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static bool move_read(const struct instance *instance, const struct course *course, const cJSON *item,
		      struct moves *moves, struct complaint *complaint)
{
	const cJSON *rank_item = cJSON_GetObjectItemCaseSensitive(item, "rank");
	int rank = cJSON_IsNumber(rank_item) ? rank_item->valueint : -1;
	int e = job_by_name(instance, text_of(item, "job"));

	if (cJSON_GetArraySize(item) != 4 || e < 0 || !course->present[e] || rank < 0 ||
	    rank >= course->outcomes[e].members || instance->entries[e].sizes[rank] == 0)
		return complain(complaint, "a move of rank %d of \"%s\", which is not running", rank,
				text_of(item, "job"));
	int from = node_by_name(&instance->fabric, text_of(item, "from"));
	int to = node_by_name(&instance->fabric, text_of(item, "to"));
	if (from != course->outcomes[e].plan.placement.node[rank] || to < 0)
		return complain(complaint, "rank %d of %s is said to move from \"%s\" to \"%s\"", rank,
				text_of(item, "job"), text_of(item, "from"), text_of(item, "to"));
	if (moves->to[e][rank] >= 0)
		return complain(complaint, "rank %d of %s moves twice", rank, text_of(item, "job"));
	moves->to[e][rank] = to;
	moves->of_job[e]++;
	moves->count++;
	return true;
}

/* Jobs that stay as they are, each once, with a reason of one sentence. */
static bool unrepaired_read(const struct instance *instance, const cJSON *root, struct moves *moves,
			    struct complaint *complaint)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "unrepaired"), *item;

	if (!cJSON_IsArray(list))
		return complain(complaint, "the answer must have a list of the unrepaired");
	cJSON_ArrayForEach(item, list)
	{
		int e = job_by_name(instance, text_of(item, "job"));
		const char *reason = text_of(item, "reason");
		if (cJSON_GetArraySize(item) != 2 || e < 0 || moves->unrepaired[e] || !reason[0] ||
		    strchr(reason, '\n'))
			return complain(complaint, "\"%s\" cannot be unrepaired so", text_of(item, "job"));
		moves->unrepaired[e] = true;
		moves->cut |= strstr(reason, "within the bound on a call") != NULL;
	}
	return true;
}

static bool moves_read(const struct instance *instance, const struct course *course, const cJSON *root,
		       struct moves *moves, struct complaint *complaint)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "moves"), *item;
	const cJSON *bound = cJSON_GetObjectItemCaseSensitive(root, "lowerBound");

	memset(moves, 0, sizeof *moves);
	memset(moves->to, -1, sizeof moves->to);
	bool warns = cJSON_HasObjectItem(root, "warnings");
	if (!cJSON_IsArray(list) || !cJSON_IsNumber(bound) || cJSON_GetArraySize(root) != (warns ? 4 : 3))
		return complain(complaint, "the answer must have moves, lowerBound and unrepaired");
	moves->lower_bound = bound->valueint;
	if (!unrepaired_read(instance, root, moves, complaint))
		return false;
	cJSON_ArrayForEach(item, list) if (!move_read(instance, course, item, moves, complaint)) return false;
	return true;
}

/* ---- recover ---------------------------------------------------------------------------------------------------- */

static void fail_state(const struct instance *instance, struct state *state)
{
	for (int f = 0; f < instance->failure_count; f++) {
		const struct failure *failure = &instance->failures[f];
		if (failure->gpu < 0)
			state->closed[failure->node] = true;
		else
			state->sick[failure->node] |= 1u << failure->gpu;
	}
}

/* Bit by rank: on a failed node, or holding a failed GPU. */
static unsigned lost_members(const struct instance *instance, const struct placement *placement)
{
	unsigned lost = 0;
	for (int rank = 0; rank < placement->members; rank++)
		for (int f = 0; f < instance->failure_count; f++) {
			const struct failure *failure = &instance->failures[f];
			if (placement->node[rank] == failure->node &&
			    (failure->gpu < 0 || (placement->mask[rank] & (1u << failure->gpu))))
				lost |= 1u << rank;
		}
	return lost;
}

/* The gang with all but these members pinned, and the cluster without what they held. */
static struct gang gang_without(struct course *course, const struct job *job, const struct outcome *before,
				unsigned moving, const struct state *state, struct state *freed)
{
	const struct placement *placement = &before->plan.placement;
	struct gang gang = gang_of(&course->world, job, before->members);

	*freed = *state;
	for (int rank = 0; rank < before->members; rank++) {
		if (moving & (1u << rank))
			freed->held[placement->node[rank]] &= ~placement->mask[rank];
		else
			gang.pin[rank] = placement->node[rank];
	}
	return gang;
}

struct repair {
	bool possible;
	bool exact; /* the places must be these; else any that meet the rule */
	int moves;
	unsigned moving; /* bit by rank */
	struct outcome outcome;
};

/* Required as the user wrote it, or latency-sensitive: waits for its rule for ever, in a repair too. */
static bool insists(const struct job *job)
{
	return job->latency_sensitive || (job->mode_given && job->mode == MODE_REQUIRED);
}

/* Beside the members that stay: with the rule met, else at the nearest place unless the gang insists. */
static struct outcome plan_beside(const struct gang *gang, const struct state *state)
{
	const struct rule none = {.kind = RULE_NONE};
	struct outcome outcome = gang_plan(gang, state);

	if (!outcome.placed && !outcome.rule.never && !outcome.rule.too_wide && gang->job->mode == MODE_REQUIRED &&
	    !insists(gang->job))
		outcome.relaxed = plan_under(gang, state, &none, ~0u, &outcome);
	return outcome;
}

static struct repair repair_of(struct course *course, const struct job *job, const struct outcome *before,
			       unsigned lost, const struct state *state)
{
	struct repair repair = {.possible = false};
	struct state freed;

	for (int moves = mask_count(lost); job->recovery == RECOVERY_MOVE_GANG && moves <= before->members; moves++)
		for (unsigned moving = 0; moving < 1u << before->members; moving++) {
			bool sized = true;
			for (int rank = 0; rank < before->members; rank++)
				sized = sized && (!(moving & (1u << rank)) || job->sizes[rank] > 0);
			if ((lost & ~moving) || mask_count(moving) != moves || !sized)
				continue;
			struct gang gang = gang_without(course, job, before, moving, state, &freed);
			repair.outcome = gang_plan_met(&gang, &freed);
			repair.possible = repair.outcome.placed;
			repair.moves = moves;
			repair.moving = moving;
			if (repair.possible)
				return repair;
		}
	struct gang gang = gang_without(course, job, before, lost, state, &freed);
	repair.outcome = plan_beside(&gang, &freed);
	repair.possible = repair.outcome.placed;
	repair.exact = repair.outcome.placed && !repair.outcome.open;
	repair.moves = mask_count(lost);
	repair.moving = lost;
	return repair;
}

/* Carries the answer's moves of one gang out, each on its node, in rank order. */
static bool moves_apply(struct course *course, const struct job *job, const struct outcome *before, const int *to,
			struct state *state, struct facts *facts, struct complaint *complaint)
{
	const struct fabric *fabric = course->world.fabric;
	struct state freed;
	unsigned moving = 0;
	int node[MEMBERS_MAX];

	for (int rank = 0; rank < before->members; rank++) {
		node[rank] = to[rank] < 0 ? before->plan.placement.node[rank] : to[rank];
		moving |= to[rank] < 0 ? 0 : 1u << rank;
	}
	struct gang gang = gang_without(course, job, before, moving, state, &freed);
	for (int rank = 0; rank < before->members; rank++) {
		if (to[rank] < 0)
			continue;
		const struct node *there = &fabric->nodes[to[rank]];
		unsigned free = free_mask(fabric, &freed, to[rank]);
		if (freed.closed[to[rank]] || !node_admits(there, job))
			return complain(complaint, "rank %d of %s goes to %s, which it may not use", rank, job->name,
					there->name);
		unsigned set = choose_on(&gang, to[rank], free, freed.held[to[rank]], job->sizes[rank]);
		if (!set)
			return complain(complaint, "rank %d of %s has no place on %s", rank, job->name, there->name);
		freed.held[to[rank]] |= set;
	}
	*state = freed;
	*facts = facts_of_nodes(fabric, job, node, before->members);
	return facts->links_admit || complain(complaint, "%s crosses a slow leaf link", job->name);
}

static bool check_repair(struct course *course, const struct job *job, const struct outcome *before, unsigned lost,
			 const struct repair *repair, const struct moves *moves, int e, struct state *state,
			 struct complaint *complaint)
{
	const struct fabric *fabric = course->world.fabric;
	struct facts facts;

	for (int rank = 0; rank < before->members; rank++) {
		bool is_lost = lost & (1u << rank);
		if (is_lost && moves->to[e][rank] < 0)
			return complain(complaint, "rank %d of %s is lost and can be repaired, but does not move", rank,
					job->name);
		if (!is_lost && moves->to[e][rank] >= 0 && repair->moves == mask_count(lost))
			return complain(complaint, "rank %d of %s is healthy and moves", rank, job->name);
	}
	if (moves->of_job[e] != repair->moves)
		return complain(complaint, "%s needs %d moves, not %d", job->name, repair->moves, moves->of_job[e]);
	for (int rank = 0; repair->exact && rank < before->members; rank++) {
		int best = repair->outcome.plan.placement.node[rank];
		if (moves->to[e][rank] >= 0 && moves->to[e][rank] != best)
			return complain(complaint, "rank %d of %s belongs on %s, not on %s", rank, job->name,
					fabric->nodes[best].name, fabric->nodes[moves->to[e][rank]].name);
	}
	if (!moves_apply(course, job, before, moves->to[e], state, &facts, complaint))
		return false;
	struct gang gang = gang_of(&course->world, job, before->members);
	int node[MEMBERS_MAX];
	for (int rank = 0; rank < before->members; rank++)
		node[rank] = moves->to[e][rank] >= 0 ? moves->to[e][rank] : before->plan.placement.node[rank];
	if (!repair->outcome.relaxed && is_segmented(&gang) && !segments_met(&gang, node))
		return complain(complaint, "%s has a segment in two domains afterwards", job->name);
	return repair->outcome.relaxed || rule_is_met(&repair->outcome.rule, &facts) ||
	       complain(complaint, "%s does not meet its rule \"%s\" afterwards", job->name,
			RULE_NAMES[repair->outcome.rule.kind]);
}

static bool check_recover(const struct instance *instance, struct course *course, const cJSON *root,
			  struct move_stats *stats, struct complaint *complaint)
{
	struct state state = course->state;
	struct moves moves;
	int least = 0;

	if (!moves_read(instance, course, root, &moves, complaint))
		return false;
	fail_state(instance, &state);
	for (int e = 0; e < instance->entry_count; e++) {
		const struct job *job = &instance->entries[e];
		const struct outcome *before = &course->outcomes[e];
		struct repair repair = {.possible = false};
		unsigned lost = 0;
		if (course->present[e])
			lost = lost_members(instance, &before->plan.placement);
		if (lost && job->recovery != RECOVERY_WAIT)
			repair = repair_of(course, job, before, lost, &state);
		stats->gangs_hit += lost != 0;
		stats->by_policy[job->recovery] += lost != 0;
		stats->waiting += lost && job->recovery == RECOVERY_WAIT;
		if (!repair.possible) {
			stats->unrepaired += lost && job->recovery != RECOVERY_WAIT;
			if (moves.of_job[e] > 0)
				return complain(complaint, "%s moves, but %s", job->name,
						!lost                            ? "nothing of it is lost"
						: job->recovery == RECOVERY_WAIT ? "its policy is Wait"
										 : "it cannot be repaired");
			if (moves.unrepaired[e] != (lost != 0))
				return complain(complaint, "%s is %s", job->name,
						lost ? "not named as unrepaired"
						     : "unrepaired, and nothing of it is lost");
			continue;
		}
		if (moves.unrepaired[e])
			return complain(complaint, "%s is repaired and named as unrepaired", job->name);
		*(repair.outcome.relaxed ? &stats->repaired_relaxed : &stats->repaired_met) += 1;
		stats->healthy_moved += repair.moves - mask_count(lost);
		stats->moves += repair.moves;
		least += repair.moves;
		if (!check_repair(course, job, before, lost, &repair, &moves, e, &state, complaint))
			return false;
	}
	if (moves.lower_bound != least)
		return complain(complaint, "lowerBound must be %d, not %d", least, moves.lower_bound);
	return true;
}

/* ---- defrag ----------------------------------------------------------------------------------------------------- */

enum { RUNNING_MAX = ENTRIES_MAX * MEMBERS_MAX, FITS_MEMORY = 531441 /* nine to the power of DEFRAG_NODES */ };

/* Members are told apart by job and rank only; GPUs by number only, for no job here has a claim. */
struct shuffle {
	const struct instance *instance;
	struct course *course;
	int count;
	int job[RUNNING_MAX], rank[RUNNING_MAX], before[RUNNING_MAX];
	int node[RUNNING_MAX];     /* afterwards */
	int free[NODES_MAX];       /* afterwards, counting what is left to shuffle as not there */
	signed char *fits_by_free; /* by free GPUs of each node: 0 not known, 1 fits, -1 does not */
};

static bool job_fits(struct shuffle *shuffle)
{
	const struct fabric *fabric = &shuffle->instance->fabric;
	const struct job *job = &shuffle->instance->entries[shuffle->instance->defrag_for];
	struct state state = state_of_day(fabric);
	int key = 0;

	for (int n = 0; n < fabric->node_count; n++) {
		key = key * (GPUS_MAX + 1) + shuffle->free[n];
		for (int gpu = 0; mask_count(free_mask(fabric, &state, n)) > shuffle->free[n]; gpu++)
			state.held[n] |= free_mask(fabric, &state, n) & (1u << gpu);
	}
	signed char *known = &shuffle->fits_by_free[key];
	if (*known == 0) {
		struct gang gang = gang_of(&shuffle->course->world, job, job->members);
		*known = (rule_of(&gang).shapeless ? gang_plan(&gang, &state) : gang_plan_met(&gang, &state)).placed
				 ? 1
				 : -1;
	}
	return *known > 0;
}

/* Every job of which a member moved meets the rule that it met before. */
static bool rules_kept(const struct shuffle *shuffle)
{
	const struct instance *instance = shuffle->instance;

	for (int e = 0; e < instance->entry_count; e++) {
		const struct outcome *outcome = &shuffle->course->outcomes[e];
		int node[MEMBERS_MAX];
		bool moved = false;
		if (!shuffle->course->present[e])
			continue;
		memcpy(node, outcome->plan.placement.node, sizeof node);
		for (int i = 0; i < shuffle->count; i++)
			if (shuffle->job[i] == e) {
				node[shuffle->rank[i]] = shuffle->node[i];
				moved = moved || shuffle->node[i] != shuffle->before[i];
			}
		struct facts facts = facts_of_nodes(&instance->fabric, &instance->entries[e], node, outcome->members);
		struct gang gang = gang_of(&shuffle->course->world, &instance->entries[e], outcome->members);
		if (moved && !outcome->relaxed && is_segmented(&gang) && !segments_met(&gang, node))
			return false;
		if (moved && (!facts.links_admit || (!outcome->relaxed && !rule_is_met(&outcome->rule, &facts))))
			return false;
	}
	return true;
}

static bool may_go(const struct shuffle *shuffle, int i, int n)
{
	const struct job *job = &shuffle->instance->entries[shuffle->job[i]];
	if (shuffle->free[n] < job->sizes[shuffle->rank[i]])
		return false;
	return n == shuffle->before[i] ||
	       (!shuffle->course->state.closed[n] && node_admits(&shuffle->instance->fabric.nodes[n], job));
}

/* Gives every member from i on a node, with so many moves at most. */
static bool shuffle_try(struct shuffle *shuffle, int i, int moves)
{
	if (i == shuffle->count)
		return rules_kept(shuffle) && job_fits(shuffle);
	int size = shuffle->instance->entries[shuffle->job[i]].sizes[shuffle->rank[i]];
	for (int n = 0; n < shuffle->instance->fabric.node_count; n++) {
		bool moving = n != shuffle->before[i];
		if (moving > moves || !may_go(shuffle, i, n))
			continue;
		shuffle->node[i] = n;
		shuffle->free[n] -= size;
		bool found = shuffle_try(shuffle, i + 1, moves - moving);
		shuffle->free[n] += size;
		if (found)
			return true;
	}
	return false;
}

static void shuffle_open(struct shuffle *shuffle, const struct instance *instance, struct course *course)
{
	const struct state day = state_of_day(&instance->fabric);

	*shuffle = (struct shuffle){.instance = instance, .course = course};
	shuffle->fits_by_free = calloc(FITS_MEMORY, 1);
	assert(shuffle->fits_by_free);
	for (int n = 0; n < instance->fabric.node_count; n++)
		shuffle->free[n] = mask_count(free_mask(&instance->fabric, &day, n));
	for (int e = 0; e < instance->entry_count; e++)
		for (int rank = 0; course->present[e] && rank < course->outcomes[e].members; rank++) {
			shuffle->job[shuffle->count] = e;
			shuffle->rank[shuffle->count] = rank;
			shuffle->before[shuffle->count++] = course->outcomes[e].plan.placement.node[rank];
		}
}

/* The fewest moves after which the job fits; 0 when it fits already, -1 when no moves help. */
static int fewest_moves(struct shuffle *shuffle)
{
	const struct job *job = &shuffle->instance->entries[shuffle->instance->defrag_for];
	struct gang gang = gang_of(&shuffle->course->world, job, job->members);
	struct rule rule = rule_of(&gang);

	if (rule.never || rule.too_wide)
		return -1;
	for (int moves = 0; moves <= shuffle->count; moves++)
		if (shuffle_try(shuffle, 0, moves))
			return moves;
	return -1;
}

/* The answer's moves, as one final state. */
static bool check_shuffle(struct shuffle *shuffle, const struct moves *moves, struct complaint *complaint)
{
	const struct fabric *fabric = &shuffle->instance->fabric;

	for (int pass = 0; pass < 2; pass++) /* those that stay, then those that come */
		for (int i = 0; i < shuffle->count; i++) {
			const struct job *job = &shuffle->instance->entries[shuffle->job[i]];
			int to = moves->to[shuffle->job[i]][shuffle->rank[i]];
			if ((to >= 0) != (pass == 1))
				continue;
			shuffle->node[i] = to < 0 ? shuffle->before[i] : to;
			if (to == shuffle->before[i] || !may_go(shuffle, i, shuffle->node[i]))
				return complain(complaint, "rank %d of %s cannot go to %s", shuffle->rank[i], job->name,
						fabric->nodes[shuffle->node[i]].name);
			shuffle->free[shuffle->node[i]] -= job->sizes[shuffle->rank[i]];
		}
	if (!rules_kept(shuffle))
		return complain(complaint, "a job that moved does not meet its rule any more");
	return job_fits(shuffle) || complain(complaint, "the job still does not fit with its rule met");
}

static bool check_defrag(const struct instance *instance, struct course *course, const cJSON *root,
			 struct move_stats *stats, struct complaint *complaint)
{
	struct shuffle shuffle;
	struct moves moves;
	bool fine = moves_read(instance, course, root, &moves, complaint);

	if (!fine)
		return false;
	shuffle_open(&shuffle, instance, course);
	int least = fewest_moves(&shuffle);
	*(least < 0 ? &stats->hopeless : least == 0 ? &stats->fits_already : &stats->opened) += 1;
	stats->moves += least > 0 ? least : 0;
	if (least > 0)
		stats->by_moves[least < MEMBERS_MAX ? least : MEMBERS_MAX]++;
	if (least >= CUT_FROM && moves.count == 0 && moves.lower_bound == 0 && moves.cut) {
		stats->cut++; /* flagged, and not told as impossible */
		free(shuffle.fits_by_free);
		return true;
	}
	if (least <= 0 && (moves.count > 0 || moves.lower_bound != 0))
		fine = complain(complaint, "%s, but the answer has %d moves and lowerBound %d",
				least == 0 ? "it fits already" : "no moves help", moves.count, moves.lower_bound);
	else if (least > 0 && moves.lower_bound > least)
		fine = complain(complaint, "lowerBound %d is above the minimum, %d", moves.lower_bound, least);
	else if (least > 0 && moves.count != least)
		fine = complain(complaint, "%d moves are enough and needed, the answer has %d", least, moves.count);
	else if (least > 0)
		fine = check_shuffle(&shuffle, &moves, complaint);
	for (int e = 0; fine && e < instance->entry_count; e++)
		if (moves.unrepaired[e] != (least < 0 && e == instance->defrag_for))
			fine = complain(complaint, "%s is %sunrepaired", instance->entries[e].name,
					moves.unrepaired[e] ? "" : "not ");
	free(shuffle.fits_by_free);
	return fine;
}

static void move_stats_print(enum verb verb, const struct move_stats *stats)
{
	if (verb == VERB_RECOVER)
		printf("  %d gangs hit (%d Replace, %d MoveGang, %d Wait): %d repaired with the rule met, %d relaxed, "
		       "%d not repairable, %d waiting; %d moves, %d of them of healthy members\n",
		       stats->gangs_hit, stats->by_policy[RECOVERY_REPLACE], stats->by_policy[RECOVERY_MOVE_GANG],
		       stats->by_policy[RECOVERY_WAIT], stats->repaired_met, stats->repaired_relaxed, stats->unrepaired,
		       stats->waiting, stats->moves, stats->healthy_moved);
	if (verb == VERB_DEFRAG)
		printf("  %d fit already, %d hopeless, %d opened by moves: %d by 1, %d by 2, %d by 3, %d by more; %d "
		       "cut by the bound\n",
		       stats->fits_already, stats->hopeless, stats->opened, stats->by_moves[1], stats->by_moves[2],
		       stats->by_moves[3], stats->opened - stats->by_moves[1] - stats->by_moves[2] - stats->by_moves[3],
		       stats->cut);
}

#endif
