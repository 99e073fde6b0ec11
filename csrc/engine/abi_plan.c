/* SPDX-License-Identifier: Apache-2.0 */
/*
 * abi_plan.c - plan() and order(): read the request, ask the core, put words around the answer.
 */
#include "engine/abi.h"

#include <inttypes.h>

/* ---- plans -------------------------------------------------------------------------------------------------------------------- */

/* A decision counts when its sentence has been told, not when the caller has to come again with more room. */
static int32_t told(frond_engine *engine, const struct answer *answer, struct out *writer, uint32_t *len)
{
	int32_t code = out_finish(writer, len);
	if (code == FROND_OK)
		core_count(&engine->core, answer);
	return code;
}

/* Reads, plans (or orders, when position is given), explains. The gang's own holds are lifted from the first look at the
 * request on. */
static int32_t decide(frond_engine *engine, const struct frond_request *request, const struct frond_member *members,
		      const struct frond_pair *annotations, const char *in, uint32_t in_len,
		      const struct frond_room *room, uint32_t room_count, const struct thrift *thrift,
		      struct frond_plan *out, struct frond_place *places, uint16_t *position, char *text, uint32_t cap,
		      uint32_t *len)
{
	struct asked asked;
	struct complaint complaint;
	bool refused;
	*len = 0;
	abi_build(engine);
	struct out writer = {.text = text, .cap = cap};
	struct answer answer = {.plan = {.generation = engine->core.generation, .outcome = FROND_REFUSED}};
	ledger_lift(&engine->core.ledger, request->gang);
	int32_t code = request_read(engine, request, members, annotations, in, in_len, room, room_count, &asked,
				    &refused, &complaint);
	asked.ask.thrift = thrift;
	if (code == FROND_OK && !refused && position != NULL)
		core_order(&engine->core, &asked.ask, &answer, position);
	else if (code == FROND_OK && !refused)
		core_plan(&engine->core, &asked.ask, &answer, places);
	ledger_lower(&engine->core.ledger);
	if (code != FROND_OK)
		return abi_fail(code, complaint.text, text, cap, len);
	if (refused) {
		answer.plan.wait_ms = FROND_NONE;
		*out = answer.plan;
		out_printf(&writer, "%s", complaint.text);
		return told(engine, &answer, &writer, len);
	}
	answer.plan.flags |= asked.flags;
	answer.plan.wait_ms = FROND_NONE;
	/* Without a rule (no topology, no such shape) nothing changes when topology-wait ends. */
	bool insists =
		asked.ask.mode == MODE_REQUIRED && answer.plan.rule != FROND_RULE_NONE && !asked.wish.latency_sensitive;
	if (answer.plan.outcome == FROND_WAITS && insists && asked.wish.wait_ms != WAIT_FOREVER) {
		int64_t left = asked.wish.wait_ms - request->age_ms;
		answer.plan.wait_ms = left < FROND_NONE - 1 ? (uint32_t)left : FROND_NONE - 1;
	}
	*out = answer.plan;
	explain(engine, &answer, &writer);
	return told(engine, &answer, &writer, len);
}

int32_t abi_plan(frond_engine *engine, const struct frond_request *request, const struct frond_member *members,
		 const struct frond_pair *annotations, const char *in, uint32_t in_len, const struct frond_room *room,
		 uint32_t room_count, struct frond_plan *out, struct frond_place *places, char *text, uint32_t cap,
		 uint32_t *len)
{
	return decide(engine, request, members, annotations, in, in_len, room, room_count, NULL, out, places, NULL,
		      text, cap, len);
}

/* Over a limit waste.c would overflow. CPU and memory may be anything. */
static bool thrift_formed(const struct frond_thrift *thrift, const struct frond_kind *kinds,
			  const struct frond_left *left, struct complaint *complaint)
{
	if (thrift->kinds > FROND_KINDS_MAX || thrift->reserved != 0) {
		complain(complaint, 0, "thrift: kinds must be 0 to %u, got %" PRIu32 ", and reserved 0",
			 FROND_KINDS_MAX, thrift->kinds);
		return false;
	}
	if (left == NULL || (kinds == NULL && thrift->kinds > 0)) {
		complain(complaint, 0, "kinds, left: must not be missing beside thrift");
		return false;
	}
	for (uint32_t i = 0; i < thrift->kinds; i++) {
		if (kinds[i].gpus < 1 || kinds[i].gpus > FROND_GPUS_MAX) {
			complain(complaint, 0, "kinds[%" PRIu32 "].gpus: must be 1 to %u, got %" PRIu32, i,
				 FROND_GPUS_MAX, kinds[i].gpus);
			return false;
		}
		if (kinds[i].pods < 1 || kinds[i].pods > FROND_PODS_MAX) {
			complain(complaint, 0, "kinds[%" PRIu32 "].pods: must be 1 to %u, got %" PRIu32, i,
				 FROND_PODS_MAX, kinds[i].pods);
			return false;
		}
	}
	return true;
}

int32_t abi_order(frond_engine *engine, const struct frond_request *request, const struct frond_member *member,
		  const struct frond_pair *annotations, const char *in, uint32_t in_len, const struct frond_room *room,
		  uint32_t room_count, const struct frond_thrift *thrift, const struct frond_kind *kinds,
		  const struct frond_left *left, struct frond_plan *out, uint16_t *position, char *text, uint32_t cap,
		  uint32_t *len)
{
	struct complaint complaint;
	struct thrift care;
	*len = 0;
	if (request->members != 1 || member->gpus == 0 || member->pinned_slot != FROND_NONE)
		return abi_fail(FROND_BAD, "only one pod with GPUs can be ordered", text, cap, len);
	if (thrift != NULL && !thrift_formed(thrift, kinds, left, &complaint))
		return abi_complain(&complaint, text, cap, len);
	if (thrift != NULL)
		care = (struct thrift){kinds, thrift->kinds, {thrift->cpu_milli, thrift->memory_mib}, left};
	memset(position, 0xff, engine->core.node_cap * sizeof *position);
	return decide(engine, request, member, annotations, in, in_len, room, room_count, thrift == NULL ? NULL : &care,
		      out, NULL, position, text, cap, len);
}
