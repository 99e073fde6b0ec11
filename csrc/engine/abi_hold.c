/* SPDX-License-Identifier: Apache-2.0 */
/*
 * abi_hold.c - holds (reference 7): put, take, drop and list them.
 */
#include "engine/abi.h"

#include <inttypes.h>

/* Who keeps the hold from being put: one that was there before; FROND_NONE: another of the same list. */
static uint32_t in_the_way(const struct frond_engine *engine, const struct frond_hold *hold)
{
	const struct holds *holds = &engine->core.ledger.holds;
	for (uint32_t at = 0; at < holds->used; at++) {
		const struct hold *other = &holds->all[holds->order[at]];
		if (other->slot == hold->slot && (other->mask & hold->gpu_mask) != 0)
			return holds->order[at];
	}
	return FROND_NONE;
}

static void tell_clash(const struct frond_engine *engine, const struct frond_hold *list, uint32_t bad,
		       struct complaint *complaint)
{
	const struct frond_hold *hold = &list[bad];
	uint32_t id = in_the_way(engine, hold), rank = 0, mask = 0;
	struct frond_key gang = {0, 0};
	if (id != FROND_NONE) {
		const struct hold *other = &engine->core.ledger.holds.all[id];
		rank = other->rank;
		mask = other->mask;
		gang = other->gang;
	}
	for (uint32_t i = 0; id == FROND_NONE && i < bad; i++)
		if (list[i].slot == hold->slot && (list[i].gpu_mask & hold->gpu_mask) != 0) {
			rank = list[i].rank;
			mask = list[i].gpu_mask;
			gang = list[i].gang;
		}
	struct name_text name = engine_node_name(engine, hold->slot);
	complain(complaint, 0,
		 "holds[%" PRIu32 "].gpuMask: GPUs %" PRIx32 " of node %s are kept for rank %" PRIu32
		 " of %s gang already",
		 bad, mask & hold->gpu_mask, shown(name.text, (uint32_t)name.len).text, rank,
		 key_equal(gang, hold->gang) ? "the same" : "another");
}

static void tell_fault(const struct frond_engine *engine, enum hold_fault fault, const struct frond_hold *list,
		       uint32_t bad, struct complaint *complaint)
{
	const struct frond_hold *hold = &list[bad];
	switch (fault) {
	case HOLD_NO_GANG:
		complain(complaint, 0, "holds[%" PRIu32 "].gang: must not be zero", bad);
		break;
	case HOLD_BAD_RANK:
		complain(complaint, 0, "holds[%" PRIu32 "].rank: must be 0 to %u, got %" PRIu32, bad, FROND_RANK_MAX,
			 hold->rank);
		break;
	case HOLD_NO_NODE:
		complain(complaint, 0, "holds[%" PRIu32 "].slot: must be a node that is there, got %" PRIu32, bad,
			 hold->slot);
		break;
	case HOLD_BAD_MASK: {
		struct name_text name = engine_node_name(engine, hold->slot);
		complain(complaint, 0,
			 "holds[%" PRIu32 "].gpuMask: must be some GPUs of node %s, which has %u, got mask %" PRIx32,
			 bad, shown(name.text, (uint32_t)name.len).text, (unsigned)engine->core.nodes[hold->slot].gpus,
			 hold->gpu_mask);
		break;
	}
	case HOLD_NOT_ZERO:
		complain(complaint, 0, "holds[%" PRIu32 "].reserved: must be 0", bad);
		break;
	case HOLD_BAD_DEADLINE:
		complain(complaint, 0, "holds[%" PRIu32 "].deadlineMs: must be 0 to %lld, got %" PRId64, bad,
			 FROND_DEADLINE_MAX, hold->deadline_ms);
		break;
	case HOLD_CLASH:
		tell_clash(engine, list, bad, complaint);
		break;
	default:
		complain(complaint, 0, "holds[%" PRIu32 "].rank: rank %" PRIu32 " of its gang has a hold already", bad,
			 hold->rank);
	}
}

int32_t abi_hold_put(frond_engine *engine, const struct frond_hold *holds, uint32_t count, char *text, uint32_t cap,
		     uint32_t *len)
{
	struct complaint complaint;
	uint32_t bad = 0;
	*len = 0;
	if (engine->core.undo.depth > 0)
		return abi_fail(FROND_BAD, "holds cannot be put inside a what-if", text, cap, len);
	enum hold_fault fault = core_hold_put(&engine->core, holds, count, &bad);
	if (fault == HOLD_FINE)
		return FROND_OK;
	if (fault == HOLD_NO_ROOM) {
		complain(&complaint, 0,
			 "holds: the engine has room for %" PRIu32 ", there are %" PRIu32 ", got %" PRIu32 " more",
			 engine->core.ledger.holds.cap, engine->core.ledger.holds.used, count);
		return abi_fail(FROND_LIMIT, complaint.text, text, cap, len);
	}
	tell_fault(engine, fault, holds, bad, &complaint);
	return abi_complain(&complaint, text, cap, len);
}

int32_t abi_hold_take(frond_engine *engine, const struct frond_key *gang, uint32_t rank, const struct frond_key *pod)
{
	return key_zero(*pod) ? FROND_BAD : core_hold_take(&engine->core, *gang, rank, *pod);
}

int32_t abi_hold_drop(frond_engine *engine, const struct frond_key *gang, uint32_t rank, uint32_t *count)
{
	*count = 0;
	if (engine->core.undo.depth > 0)
		return FROND_BAD;
	*count = core_hold_drop(&engine->core, *gang, rank);
	return FROND_OK;
}

int32_t abi_hold_list(frond_engine *engine, const struct frond_key *gang, struct frond_hold *out, uint32_t cap,
		      uint32_t *count)
{
	const struct holds *holds = &engine->core.ledger.holds;
	uint32_t first = 0, end = holds->used;
	if (gang != NULL)
		holds_of(holds, *gang, &first, &end);
	*count = end - first;
	if (*count > cap)
		return FROND_SMALL;
	for (uint32_t at = first; at < end; at++) {
		const struct hold *hold = &holds->all[holds->order[at]];
		out[at - first] = (struct frond_hold){.gang = hold->gang,
						      .rank = hold->rank,
						      .slot = hold->slot,
						      .gpu_mask = hold->mask,
						      .deadline_ms = (int64_t)hold->deadline_ms};
	}
	return FROND_OK;
}
