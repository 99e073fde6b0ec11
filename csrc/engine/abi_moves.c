/* SPDX-License-Identifier: Apache-2.0 */
/*
 * abi_moves.c - recover(), defrag() and victims(): who moves or goes, and the sentence.
 */
#include "engine/abi.h"

#include <inttypes.h>

/* ---- repair and room --------------------------------------------------------------------------------------------------------------- */

/* What a gang that says nothing of it goes by. */
static struct ask defaults_of(const struct frond_engine *engine)
{
	struct ask ask = {.only_slot = FROND_NONE,
			  .domain_nvlink = FROND_NONE,
			  .max_nodes_per_leaf = engine->tuning.max_nodes_per_leaf,
			  .max_gpus_per_leaf = engine->tuning.max_gpus_per_leaf,
			  .gpu = GPU_WISH_DEFAULT};
	memcpy(ask.weight, engine->tuning.weight, sizeof ask.weight);
	return ask;
}

/* "2 moves make room", "1 move makes room" */
static int32_t tell_moves(const struct frond_moves *moves, const char *verb, const char *object, const char *answer,
			  struct out *writer, uint32_t *len)
{
	if (moves->outcome == FROND_UNDECIDED)
		out_printf(writer, "no %s was found within the bound on a call's work", answer);
	else if (moves->outcome != FROND_PLACED)
		out_printf(writer, "no moves %s %s", verb, object);
	else if (moves->count == 0)
		out_printf(writer, "nothing has to move");
	else
		out_printf(writer, "%" PRIu32 " move%s %s%s %s%s; fewer than %" PRIu32 " are not possible",
			   moves->count, moves->count == 1 ? "" : "s", verb, moves->count == 1 ? "s" : "", object,
			   moves->flags & FROND_PLAN_RELAXED ? " with the rule relaxed" : "", moves->lower_bound);
	return out_finish(writer, len);
}

static void say_choice(const char *policy, const struct frond_moves *moves, struct out *writer)
{
	if (moves->outcome == FROND_PLACED)
		out_printf(writer, "; %s: %" PRIu32 " move%s", policy, moves->count, moves->count == 1 ? "" : "s");
	else
		out_printf(writer, "; %s: %s", policy,
			   moves->outcome == FROND_UNDECIDED ? "not known within the bound on a call's work"
							     : "no moves help");
}

/* A gang that stays as it is: why, and what each policy would do (reference 6). */
static int32_t tell_unrepaired(frond_engine *engine, uint32_t id, const struct ask *defaults, struct out *writer,
			       uint32_t *len)
{
	struct recover_choices choices;
	struct terms terms = gang_terms(&engine->core.gangs.gangs[id]);
	if (terms.recovery == RECOVERY_WAIT) {
		out_printf(writer, "members are lost, and its recovery policy is Wait");
		return out_finish(writer, len);
	}
	recover_otherwise(&engine->recover, &engine->core, id, defaults, &choices);
	out_printf(writer, "no spare");
	if (choices.first != FROND_NONE) {
		struct name_text first = engine_name(engine, engine->tree.leaf_name[choices.first]);
		struct name_text last = engine_name(engine, engine->tree.leaf_name[choices.last]);
		out_printf(writer, " in %.*s", first.len, first.text);
		if (choices.first != choices.last)
			out_printf(writer, "..%.*s", last.len, last.text);
	}
	if (choices.preferred.outcome != FROND_PLACED)
		say_choice("Preferred", &choices.preferred, writer);
	for (uint32_t i = 0; choices.preferred.outcome == FROND_PLACED && i < choices.preferred.count; i++) {
		if (i == RECOVER_SHOWN) {
			out_printf(writer, " and %" PRIu32 " more", choices.preferred.count - i);
			break;
		}
		struct name_text node = engine_node_name(engine, choices.moves[i].to);
		out_printf(writer, "%srank %" PRIu32 " → %.*s", i == 0 ? "; Preferred: " : ", ", choices.moves[i].rank,
			   node.len, node.text);
	}
	say_choice("MoveGang", &choices.move_gang, writer);
	return out_finish(writer, len);
}

/* More members than a plan may have, or than the what-ifs in hand leave room for. */
static int32_t tell_limit(uint32_t members, struct out *writer, uint32_t *len)
{
	if (members > FROND_MEMBERS_MAX)
		out_printf(writer, "a gang of %" PRIu32 " members; %u at most", members, FROND_MEMBERS_MAX);
	else
		out_printf(writer, "the what-ifs in hand leave no room for %" PRIu32 " members", members);
	int32_t code = out_finish(writer, len);
	return code == FROND_OK ? FROND_LIMIT : code;
}

int32_t abi_recover(frond_engine *engine, const struct frond_key *gang, const struct frond_room *room,
		    uint32_t room_count, struct frond_moves *out, struct frond_move *moves, uint32_t cap, char *text,
		    uint32_t text_cap, uint32_t *len)
{
	struct out writer = {.text = text, .cap = text_cap};
	*len = 0;
	abi_build(engine);
	uint32_t id = gangs_find(&engine->core.gangs, *gang);
	if (id == FROND_NONE)
		return abi_fail(FROND_UNKNOWN, "nobody of the gang holds anything", text, text_cap, len);
	struct complaint complaint;
	int32_t code = rooms_formed(engine, &(struct frond_member){.pod_template = 0}, 1, room, room_count, &complaint);
	if (code != FROND_OK)
		return abi_fail(code, complaint.text, text, text_cap, len);
	struct ask defaults = defaults_of(engine);
	defaults.room = room;
	defaults.room_count = room_count;
	tree_find_hash(&engine->tree, &engine->core.fabric, gang_terms(&engine->core.gangs.gangs[id]).domain,
		       &defaults.domain_first, &defaults.domain_end, &defaults.domain_nvlink);
	ledger_lift(&engine->core.ledger, *gang); /* for what other policies would do, too */
	code = recover(&engine->recover, &engine->core, id, &defaults, out, moves, cap);
	if (code == FROND_LIMIT)
		code = tell_limit((uint32_t)engine->core.gangs.gangs[id].members, &writer, len);
	else if (code == FROND_OK && out->outcome == FROND_WAITS)
		code = tell_unrepaired(engine, id, &defaults, &writer, len);
	else if (code == FROND_OK)
		code = tell_moves(out, "repair", "the gang", "repair", &writer, len);
	ledger_lower(&engine->core.ledger);
	return code;
}

int32_t abi_defrag(frond_engine *engine, const struct frond_request *request, const struct frond_member *members,
		   const struct frond_pair *annotations, const char *in, uint32_t in_len, const struct frond_room *room,
		   uint32_t room_count, struct frond_moves *out, struct frond_move *moves, uint32_t cap, char *text,
		   uint32_t text_cap, uint32_t *len)
{
	struct asked asked;
	bool refused;
	struct out writer = {.text = text, .cap = text_cap};
	*len = 0;
	struct complaint complaint;
	struct ask defaults = defaults_of(engine);
	*out = (struct frond_moves){.outcome = FROND_REFUSED};
	abi_build(engine);
	ledger_lift(&engine->core.ledger, request->gang);
	int32_t code = request_read(engine, request, members, annotations, in, in_len, room, room_count, &asked,
				    &refused, &complaint);
	bool formed = code == FROND_OK;
	if (formed && !refused)
		code = defrag(&engine->defrag, &engine->core, &asked.ask, &defaults, out, moves, cap);
	ledger_lower(&engine->core.ledger);
	if (!formed)
		return abi_fail(code, complaint.text, text, text_cap, len);
	if (refused) {
		out_printf(&writer, "%s", complaint.text);
		return out_finish(&writer, len);
	}
	if (code == FROND_LIMIT) {
		out_printf(&writer,
			   "room takes more than %u moves, moves of more than %u gangs, or more than the what-ifs in "
			   "hand leave room for",
			   DEFRAG_MOVES, DEFRAG_GANGS);
		code = out_finish(&writer, len);
		return code == FROND_OK ? FROND_LIMIT : code;
	}
	return code != FROND_OK ? code : tell_moves(out, "make", "room", "set of moves", &writer, len);
}

/* What is said to be impossible has been proven; what a bound cut off is told as that. */
static void tell_victims(const struct frond_victims *out, int32_t priority, struct out *writer)
{
	if (out->outcome == FROND_PLACED && out->count == 0)
		out_printf(writer, "it fits, nobody has to go");
	else if (out->outcome == FROND_PLACED)
		out_printf(writer,
			   "%" PRIu32 " pod%s of %" PRIu32 " gang%s with %" PRIu32
			   " GPUs have to go, of priority %" PRId32 " at most, %" PRIu32
			   " against a disruption budget%s",
			   out->count, out->count == 1 ? "" : "s", out->gangs, out->gangs == 1 ? "" : "s", out->gpus,
			   out->priority, out->budgets,
			   out->plan.flags & FROND_PLAN_BOUNDED
				   ? "; within the bound on a call's work nothing cheaper was found"
				   : "");
	else if (out->outcome == FROND_NEVER)
		out_printf(writer, "it never fits, whoever goes");
	else if (out->outcome == FROND_REFUSED)
		out_printf(writer, "it is refused, whoever goes");
	else if (out->outcome == FROND_UNDECIDED)
		out_printf(writer,
			   "within the bound on a call's work no pods of lower priority than %" PRId32
			   " were found that make room; there may be some",
			   priority);
	else
		out_printf(writer, "even without every pod of lower priority than %" PRId32 " it does not fit",
			   priority);
}

int32_t abi_victims(frond_engine *engine, const struct frond_request *request, const struct frond_member *members,
		    const struct frond_pair *annotations, const char *in, uint32_t in_len,
		    const struct frond_room *room, uint32_t room_count, struct frond_victims *out,
		    struct frond_place *places, struct frond_key *pods, uint32_t cap, char *text, uint32_t text_cap,
		    uint32_t *len)
{
	struct asked asked;
	bool refused;
	struct out writer = {.text = text, .cap = text_cap};
	*len = 0;
	struct complaint complaint;
	*out = (struct frond_victims){.outcome = FROND_REFUSED};
	abi_build(engine);
	ledger_lift(&engine->core.ledger, request->gang);
	int32_t code = request_read(engine, request, members, annotations, in, in_len, room, room_count, &asked,
				    &refused, &complaint);
	bool formed = code == FROND_OK;
	if (formed && !refused)
		code = victims(&engine->victims, &engine->core, &asked.ask, request->priority, out, places, pods, cap);
	ledger_lower(&engine->core.ledger);
	if (!formed)
		return abi_fail(code, complaint.text, text, text_cap, len);
	if (refused) {
		out_printf(&writer, "%s", complaint.text);
		return out_finish(&writer, len);
	}
	if (code != FROND_OK)
		return code;
	tell_victims(out, request->priority, &writer);
	return out_finish(&writer, len);
}
