/* SPDX-License-Identifier: Apache-2.0 */
/*
 * abi_window.c - window() and backfill(): where and when a gang that waits will find room, and who may use that room until
 * then (reference 7).
 */
#include "engine/abi.h"
#include "text/duration.h"

#include <inttypes.h>

/* ---- window ---------------------------------------------------------------------------------------------------------- */

static int32_t ends_formed(const struct frond_end *ends, uint32_t count, struct complaint *complaint)
{
	if (count > FROND_PODS_MAX)
		return complain(complaint, 0, "ends: %" PRIu32 " of them; %u at most", count, FROND_PODS_MAX);
	for (uint32_t i = 0; i < count; i++) {
		if (ends[i].ends_in_ms < 0 || ends[i].ends_in_ms > FROND_DEADLINE_MAX)
			return complain(complaint, 0,
					"ends[%" PRIu32 "].ends_in_ms: must be between 0 and %lld, got %" PRId64, i,
					FROND_DEADLINE_MAX, ends[i].ends_in_ms);
		if (i > 0 && ends[i].ends_in_ms < ends[i - 1].ends_in_ms)
			return complain(complaint, 0,
					"ends[%" PRIu32 "].ends_in_ms: must ascend, got %" PRId64 " after %" PRId64, i,
					ends[i].ends_in_ms, ends[i - 1].ends_in_ms);
	}
	return FROND_OK;
}

/* "in leaf-3..leaf-4", "in leaf-3 and elsewhere"; nothing where no member is in a leaf. */
static void say_leaves(const struct frond_engine *engine, const struct frond_place *places, uint32_t members,
		       uint32_t leaves, struct out *writer)
{
	const struct fabric *fabric = &engine->core.fabric;
	uint32_t first = FROND_NONE, last = 0;
	for (uint32_t i = 0; i < members; i++) {
		uint32_t slot = places[i].slot;
		uint32_t leaf = slot == FROND_NONE ? FROND_NONE : fabric->leaf_of[fabric->position[slot]];
		if (leaf == FROND_NONE)
			continue;
		first = leaf < first ? leaf : first;
		last = leaf > last ? leaf : last;
	}
	if (first == FROND_NONE)
		return;
	struct name_text from = engine_name(engine, engine->tree.leaf_name[first]);
	struct name_text to = engine_name(engine, engine->tree.leaf_name[last]);
	if (leaves == 1)
		out_printf(writer, " in %.*s", from.len, from.text);
	else
		out_printf(writer, " in %" PRIu32 " leaves from %.*s to %.*s", leaves, from.len, from.text, to.len,
			   to.text);
}

/* What is said never to be has been proven; what a bound cut off is told as that. */
static void tell_window(const struct frond_engine *engine, const struct frond_window *out,
			const struct frond_place *places, uint32_t members, struct out *writer)
{
	struct duration_text start = duration_text(out->start_ms);
	switch (out->outcome) {
	case FROND_PLACED:
		out_printf(writer, "%" PRIu32 " of %" PRIu32 " node%s free", out->free, out->nodes,
			   out->nodes == 1 ? " is" : "s are");
		say_leaves(engine, places, members, out->plan.leaves, writer);
		if (out->start_ms > 0)
			out_printf(writer, ", all of them in %s", start.text);
		if (out->kept)
			out_printf(writer, "; no other window starts earlier");
		break;
	case FROND_NEVER:
		out_printf(writer, "it never fits, whoever ends");
		break;
	case FROND_REFUSED:
		out_printf(writer, "it is refused, whoever ends");
		break;
	case FROND_UNDECIDED:
		out_printf(writer, "within the bound on a call's work no window was found; there may be one");
		break;
	default:
		out_printf(writer, "no window: it does not fit even when every pod has ended whose end is expected");
	}
}

int32_t abi_window(frond_engine *engine, const struct frond_request *request, const struct frond_member *members,
		   const struct frond_pair *annotations, const char *in, uint32_t in_len, const struct frond_room *room,
		   uint32_t room_count, const struct frond_end *ends, uint32_t end_count,
		   const struct frond_place *kept, struct frond_window *out, struct frond_place *places, char *text,
		   uint32_t cap, uint32_t *len)
{
	struct asked asked;
	struct complaint complaint;
	bool refused;
	uint32_t bad;
	struct out writer = {.text = text, .cap = cap};
	*len = 0;
	abi_build(engine);
	struct window_question question = {
		.ask = &asked.ask, .priority = request->priority, .ends = ends, .end_count = end_count, .kept = kept};
	int32_t code = ends_formed(ends, end_count, &complaint);
	if (code != FROND_OK)
		return abi_fail(code, complaint.text, text, cap, len);
	*out = (struct frond_window){.outcome = FROND_REFUSED, .start_ms = FROND_WINDOW_NEVER};
	ledger_lift(&engine->core.ledger, request->gang);
	code = request_read(engine, request, members, annotations, in, in_len, room, room_count, &asked, &refused,
			    &complaint);
	bool formed = code == FROND_OK;
	if (formed && !refused)
		code = window(&engine->window, &engine->core, &question, out, places, &bad);
	ledger_lower(&engine->core.ledger);
	if (formed && code != FROND_OK)
		complain(&complaint, 0, "ends[%" PRIu32 "]: its pod has an end already; each pod once", bad);
	if (code != FROND_OK)
		return abi_fail(code, complaint.text, text, cap, len);
	if (refused) {
		out_printf(&writer, "%s", complaint.text);
		return out_finish(&writer, len);
	}
	out->plan.flags |= asked.flags;
	tell_window(engine, out, places, request->members, &writer);
	return out_finish(&writer, len);
}

/* ---- backfill -------------------------------------------------------------------------------------------------------- */

int32_t abi_backfill(const struct frond_backfill *question, uint32_t *allowed, char *text, uint32_t cap, uint32_t *len)
{
	struct complaint complaint;
	struct out writer = {.text = text, .cap = cap};
	*len = 0;
	int32_t code = FROND_OK;
	if (question->start_ms < 0 || question->start_ms > FROND_DEADLINE_MAX)
		code = complain(&complaint, 0, "start_ms: must be between 0 and %lld, got %" PRId64, FROND_DEADLINE_MAX,
				question->start_ms);
	else if (question->ends_in_ms < FROND_WINDOW_NEVER || question->ends_in_ms > FROND_DEADLINE_MAX)
		code = complain(&complaint, 0, "ends_in_ms: must be between %lld and %lld, got %" PRId64,
				FROND_WINDOW_NEVER, FROND_DEADLINE_MAX, question->ends_in_ms);
	else if (question->window_preempts > 1 || question->reserved != 0)
		code = complain(&complaint, 0, "window_preempts: must be 0 or 1, got %" PRIu32 ", and reserved 0",
				question->window_preempts);
	if (code != FROND_OK)
		return abi_fail(code, complaint.text, text, cap, len);
	bool known = question->ends_in_ms != FROND_WINDOW_NEVER;
	bool early = known && question->ends_in_ms <= question->start_ms;
	bool evictable = question->window_preempts && question->pod_priority < question->window_priority;
	struct duration_text ends = duration_text(question->ends_in_ms), start = duration_text(question->start_ms);
	*allowed = early || evictable;
	if (early)
		out_printf(&writer, "it ends %s%s, the reservation starts %s%s", question->ends_in_ms > 0 ? "in " : "",
			   ends.text, question->start_ms > 0 ? "in " : "", start.text);
	else if (evictable)
		out_printf(&writer, "it may be evicted for the reservation: priority %" PRId32 " is under %" PRId32,
			   question->pod_priority, question->window_priority);
	else
		out_printf(&writer, "%s%s, the reservation starts %s%s, and priority %" PRId32 " %s",
			   known ? "it ends in " : "nobody knows when it ends", known ? ends.text : "",
			   question->start_ms > 0 ? "in " : "", start.text, question->pod_priority,
			   question->window_preempts ? "is not lower"
						     : "does not matter, because the gang never preempts");
	return out_finish(&writer, len);
}
