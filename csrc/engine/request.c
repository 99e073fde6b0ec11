/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/request.h"

#include "text/claim.h"

#include <inttypes.h>

/* Malformed: our own host would be wrong, not a user. */
static int32_t record_formed(const struct frond_engine *engine, const struct frond_request *request, uint32_t in_len,
			     struct complaint *complaint)
{
	if (key_zero(request->gang))
		return complain(complaint, 0, "request.gang: must not be zero");
	if (request->members == 0)
		return complain(complaint, 0, "request.members: must be between 1 and %u, got 0", FROND_MEMBERS_MAX);
	if (request->age_ms < 0)
		return complain(complaint, 0, "request.ageMs: must not be negative, got %" PRId64, request->age_ms);
	if (request->deadline_ms < 0 || request->deadline_ms > FROND_DEADLINE_MAX)
		return complain(complaint, 0, "request.deadlineMs: must be between 0 and %lld, got %" PRId64,
				FROND_DEADLINE_MAX, request->deadline_ms);
	if (!span_inside(request->name, in_len))
		return complain(complaint, 0, "request.name: lies outside the %" PRIu32 " bytes of text", in_len);
	if (!span_inside(request->claim, in_len))
		return complain(complaint, 0, "request.claim: lies outside the %" PRIu32 " bytes of text", in_len);
	if (request->only_slot != FROND_NONE && request->only_slot >= engine->core.node_cap)
		return complain(complaint, 0, "request.onlySlot: must be under %" PRIu32 ", got %" PRIu32,
				engine->core.node_cap, request->only_slot);
	return named_formed(engine, request, complaint);
}

int32_t named_formed(const struct frond_engine *engine, const struct frond_request *request,
		     struct complaint *complaint)
{
	if (request->named_count > FROND_GPUS_MAX)
		return complain(complaint, 0, "request.namedCount: must be at most %u, got %" PRIu32, FROND_GPUS_MAX,
				request->named_count);
	for (uint32_t i = 0; i < FROND_GPUS_MAX; i++) {
		const struct frond_named *named = &request->named[i];
		if (i >= request->named_count) {
			if (named->slot != 0 || named->gpu_mask != 0)
				return complain(complaint, 0,
						"request.named[%" PRIu32 "]: must be zero, there are %" PRIu32, i,
						request->named_count);
			continue;
		}
		if (named->slot >= engine->core.node_cap)
			return complain(complaint, 0,
					"request.named[%" PRIu32 "].slot: must be under %" PRIu32 ", got %" PRIu32, i,
					engine->core.node_cap, named->slot);
		if (named->gpu_mask == 0 || named->gpu_mask >> FROND_GPUS_MAX != 0)
			return complain(complaint, 0,
					"request.named[%" PRIu32 "].gpuMask: must be 1 to ffff, got %" PRIx32, i,
					named->gpu_mask);
		for (uint32_t j = 0; j < i; j++)
			if (request->named[j].slot == named->slot)
				return complain(complaint, 0,
						"request.named[%" PRIu32 "].slot: must be there once, got %" PRIu32
						" as in named[%" PRIu32 "]",
						i, named->slot, j);
	}
	return FROND_OK;
}

static int32_t members_formed(const struct frond_engine *engine, const struct frond_request *request,
			      const struct frond_member *members, struct complaint *complaint)
{
	for (uint32_t i = 0; i < request->members; i++) {
		const struct frond_member *member = &members[i];
		if (key_zero(member->pod))
			return complain(complaint, 0, "members[%" PRIu32 "].pod: must not be zero", i);
		if (member->pod_template >= request->members)
			return complain(complaint, 0,
					"members[%" PRIu32 "].podTemplate: must be under %" PRIu32
					", the number of members, got %" PRIu32,
					i, request->members, member->pod_template);
		if (member->rank > FROND_RANK_MAX)
			return complain(complaint, 0,
					"members[%" PRIu32 "].rank: must be between 0 and %u, got %" PRIu32, i,
					FROND_RANK_MAX, member->rank);
		if (i > 0 && member->rank < members[i - 1].rank)
			return complain(complaint, 0,
					"members[%" PRIu32 "].rank: must not be under the one before it, %" PRIu32
					", got %" PRIu32,
					i, members[i - 1].rank, member->rank);
		if (member->pinned_slot != FROND_NONE &&
		    (member->pinned_slot >= engine->core.node_cap || !engine->core.nodes[member->pinned_slot].present))
			return complain(complaint, 0,
					"members[%" PRIu32 "].pinnedSlot: must be a slot with a node, got %" PRIu32, i,
					member->pinned_slot);
	}
	return FROND_OK;
}

int32_t rooms_formed(const struct frond_engine *engine, const struct frond_member *members, uint32_t count,
		     const struct frond_room *room, uint32_t room_count, struct complaint *complaint)
{
	uint64_t templates[FROND_MEMBERS_MAX / 64] = {0}; /* that a member has */
	for (uint32_t i = 0; room_count > 0 && i < count; i++)
		templates[members[i].pod_template / 64] |= 1ull << members[i].pod_template % 64;
	if (room_count > 0 && room == NULL)
		return complain(complaint, 0, "room: is missing, %" PRIu32 " entries were announced", room_count);
	for (uint32_t i = 0; i < room_count; i++) {
		const struct frond_room *it = &room[i], *before = i == 0 ? NULL : it - 1;
		if (it->slot >= engine->core.node_cap || !engine->core.nodes[it->slot].present) {
			complain(complaint, 0, "room[%" PRIu32 "].slot: must be a slot with a node, got %" PRIu32, i,
				 it->slot);
			return it->slot >= engine->core.node_cap ? FROND_BAD : FROND_UNKNOWN;
		}
		if (before != NULL &&
		    (it->slot < before->slot || (it->slot == before->slot && it->pod_template <= before->pod_template)))
			return complain(
				complaint, 0,
				"room[%" PRIu32 "]: must ascend by slot, then template, each pair once; slot %" PRIu32
				" template %u comes after slot %" PRIu32 " template %u",
				i, it->slot, (unsigned)it->pod_template, before->slot, (unsigned)before->pod_template);
		if (it->pod_template >= FROND_MEMBERS_MAX ||
		    !(templates[it->pod_template / 64] >> it->pod_template % 64 & 1))
			return complain(complaint, 0, "room[%" PRIu32 "].podTemplate: no member has template %u", i,
					(unsigned)it->pod_template);
		if (it->unavailable > it->ever)
			return complain(complaint, 0, "room[%" PRIu32 "].unavailable: must be at most ever, %u, got %u",
					i, (unsigned)it->ever, (unsigned)it->unavailable);
	}
	return FROND_OK;
}

/* What a user may get wrong; *refused with a sentence. */
static bool acceptable(const struct frond_request *request, const struct frond_member *members, const struct wish *wish,
		       struct complaint *complaint)
{
	if (request->min_member < 1 || request->min_member > FROND_MEMBERS_MAX) {
		complain(complaint, 0, "minMember must be between 1 and %u, got %" PRId32, FROND_MEMBERS_MAX,
			 (int32_t)request->min_member);
		return false;
	}
	for (uint32_t i = 0; i < request->members; i++)
		if (members[i].gpus > FROND_GPUS_MAX) {
			complain(complaint, 0, "rank %" PRIu32 " asks for %" PRIu32 " GPUs, a node has at most %u",
				 members[i].rank, members[i].gpus, FROND_GPUS_MAX);
			return false;
		}
	if (wish->gpu_count != 0 && wish->gpu_count != request->gpus_desired) {
		complain(complaint, 0,
			 "topology.scheduler/gpu-count is %" PRIu64 " but the limits of the pods add up to %" PRIu64,
			 wish->gpu_count, request->gpus_desired);
		return false;
	}
	return true;
}

/* "NODE-gpu-INDEX" → the GPU of a node that is there. */
static bool find_gpu(const struct frond_engine *engine, const char *id, struct gpu_named *out)
{
	size_t len = strlen(id), digits = 0;
	while (digits < len && id[len - digits - 1] >= '0' && id[len - digits - 1] <= '9')
		digits++;
	if (digits == 0 || digits > 2 || len < digits + 6 || memcmp(id + len - digits - 5, "-gpu-", 5) != 0)
		return false;
	uint32_t name = names_find(&engine->names, id, (uint32_t)(len - digits - 5)), index = 0;
	for (size_t i = len - digits; i < len; i++)
		index = index * 10 + (uint32_t)(id[i] - '0');
	if (name == FROND_NONE || engine->tree.slot_of[name] == FROND_NONE || index >= FROND_GPUS_MAX)
		return false;
	*out = (struct gpu_named){.slot = engine->tree.slot_of[name], .mask = 1u << index};
	return true;
}

/* What the claim asks of the GPUs inside a node. Returns how many of its preferIds are no GPUs of this cluster. */
static uint32_t wish_of_claim(const struct frond_engine *engine, const struct frond_request *request,
			      const struct claim *claim, struct ask *out)
{
	uint32_t found = 0;
	out->gpu = (struct gpu_wish){
		.policy = claim->policy, .mode = claim->mode, .locality = claim->locality, .min_gbps = claim->min_gbps};
	for (uint32_t i = 0; i < claim->prefer_count; i++) {
		const struct claim_id *id = &claim->prefer[i];
		if (id->by_index)
			out->gpu.prefer |= 1u << id->index;
		else if (find_gpu(engine, id->id, &out->named[out->named_count]))
			out->named_count++;
		else
			continue; /* one that only the host knows, or nobody */
		found++;
	}
	uint32_t own = out->named_count;
	for (uint32_t i = 0; claim->prefer_count > 0 && i < request->named_count; i++) {
		struct gpu_named named = {.slot = request->named[i].slot, .mask = request->named[i].gpu_mask};
		out->named[out->named_count++] = named;
		for (uint32_t j = 0; j < own; j++)
			named.mask &= out->named[j].slot == named.slot ? ~out->named[j].mask : UINT32_MAX;
		found += bits_count(named.mask);
	}
	return claim->prefer_count > found ? claim->prefer_count - found : 0;
}

/*
 * A GPU that the host names is on one node, so a pod that would rather have it would rather be there: that node stands for
 * a preferred domain, unless the user has named one. It is the node with most of the named GPUs free, as far as one member
 * can use them; then the first in the fabric. One that has no room for the smallest member today is not in question.
 */
static void prefer_node(const struct frond_engine *engine, const struct frond_request *request, struct ask *ask)
{
	uint32_t most = 0, least_gpus = FROND_GPUS_MAX;
	for (uint32_t i = 0; i < ask->count; i++)
		if (ask->members[i].gpus > 0)
			least_gpus = min_u32(least_gpus, ask->members[i].gpus);
	for (uint32_t i = 0; i < request->named_count; i++) {
		uint32_t slot = request->named[i].slot;
		const struct node *node = &engine->core.nodes[slot];
		if (!node_open(node) || node_free_count(node) < least_gpus)
			continue;
		uint32_t named = bits_count(request->named[i].gpu_mask & node_free_mask(node));
		uint32_t position = engine->core.fabric.position[slot];
		if (ask->count == 1)
			named = min_u32(named, least_gpus);
		if (named > most || (named == most && named > 0 && position < ask->domain_first)) {
			most = named;
			ask->domain_first = position;
			ask->domain_end = position + 1;
		}
	}
}

static int32_t claim_of(const struct frond_request *request, const char *in, struct claim *out,
			struct complaint *complaint)
{
	return claim_read(request->claim.len == 0 ? NULL : in + request->claim.off, request->claim.len, out, complaint);
}

int32_t terms_read(const struct frond_engine *engine, const struct frond_request *request,
		   const struct frond_pair *annotations, const char *in, uint32_t in_len, struct wish *wish,
		   struct terms *out, struct complaint *complaint)
{
	struct claim claim;
	struct ask ask = {.count = 0};
	if (wish_read(annotations, request->annotations, in, in_len, &engine->args, wish, complaint) != FROND_OK ||
	    claim_of(request, in, &claim, complaint) != FROND_OK)
		return FROND_BAD;
	wish_of_claim(engine, request, &claim, &ask);
	*out = (struct terms){.strategy = (uint8_t)wish->strategy,
			      .mode = (uint8_t)wish->mode,
			      .recovery = (uint8_t)wish->recovery,
			      .latency_sensitive = wish->latency_sensitive,
			      .insists = wish->wait_ms == WAIT_FOREVER,
			      .bandwidth_gbps = wish->bandwidth_gbps,
			      .domain = tree_hash(wish->preferred_domain),
			      .gpu = ask.gpu};
	return FROND_OK;
}

/* A claim counts GPUs per pod, as the limits do. */
static bool claim_agrees(const struct frond_request *request, const struct frond_member *members,
			 const struct claim *claim, struct complaint *complaint)
{
	for (uint32_t i = 0; claim->count != 0 && i < request->members; i++)
		if (members[i].gpus != 0 && members[i].gpus != claim->count) {
			complain(complaint, 0,
				 "claim.devices.count is %" PRIu32 " but rank %" PRIu32 " asks for %" PRIu32 " GPUs",
				 claim->count, members[i].rank, members[i].gpus);
			return false;
		}
	return true;
}

/* The claim, if there is one; false: refused. */
static bool ask_claim(const struct frond_engine *engine, const struct frond_request *request,
		      const struct frond_member *members, const char *in, struct asked *out,
		      struct complaint *complaint)
{
	struct claim claim;
	out->ask.gpu = (struct gpu_wish)GPU_WISH_DEFAULT;
	if (request->claim.len == 0)
		return true;
	if (claim_of(request, in, &claim, complaint) != FROND_OK || !claim_agrees(request, members, &claim, complaint))
		return false;
	if (wish_of_claim(engine, request, &claim, &out->ask) > 0)
		out->flags |= FROND_PLAN_UNKNOWN_GPU;
	return true;
}

int32_t request_read(const struct frond_engine *engine, const struct frond_request *request,
		     const struct frond_member *members, const struct frond_pair *annotations, const char *in,
		     uint32_t in_len, const struct frond_room *room, uint32_t room_count, struct asked *out,
		     bool *refused, struct complaint *complaint)
{
	*refused = true;
	*out = (struct asked){.flags = 0};
	int32_t code = record_formed(engine, request, in_len, complaint);
	if (code != FROND_OK)
		return code;
	if (request->members > FROND_MEMBERS_MAX) { /* a user's mistake: refused before anyone reads the members */
		complain(complaint, 0, "the gang has %" PRIu32 " members, at most %u are possible", request->members,
			 FROND_MEMBERS_MAX);
		return FROND_OK;
	}
	code = members_formed(engine, request, members, complaint);
	if (code == FROND_OK)
		code = rooms_formed(engine, members, request->members, room, room_count, complaint);
	if (code != FROND_OK)
		return code;
	if (wish_read(annotations, request->annotations, in, in_len, &engine->args, &out->wish, complaint) !=
		    FROND_OK ||
	    !acceptable(request, members, &out->wish, complaint))
		return FROND_OK;
	const struct wish *wish = &out->wish;
	out->ask = (struct ask){.members = members,
				.count = request->members,
				.strategy = wish->strategy,
				.mode = wish->mode,
				.latency_sensitive = wish->latency_sensitive,
				.bandwidth_gbps = wish->bandwidth_gbps,
				.max_nodes_per_leaf = engine->tuning.max_nodes_per_leaf,
				.max_gpus_per_leaf = engine->tuning.max_gpus_per_leaf,
				.only_slot = request->only_slot,
				.room = room,
				.room_count = room_count};
	if (wish->mode == MODE_REQUIRED && !wish->latency_sensitive && request->age_ms >= wish->wait_ms)
		out->ask.mode = MODE_PREFERRED; /* topology-wait is over */
	out->ask.domain_nvlink = FROND_NONE;
	memcpy(out->ask.weight, engine->tuning.weight, sizeof out->ask.weight);
	if (!ask_claim(engine, request, members, in, out, complaint))
		return FROND_OK;
	if (wish->preferred_domain[0] == 0 && out->ask.gpu.policy == GPU_PREFER && out->ask.gpu.mode != MODE_IGNORE)
		prefer_node(engine, request, &out->ask);
	else if (wish->preferred_domain[0] != 0 &&
		 !tree_find(&engine->tree, &engine->core.fabric, wish->preferred_domain, &out->ask.domain_first,
			    &out->ask.domain_end, &out->ask.domain_nvlink))
		out->flags |= FROND_PLAN_UNKNOWN_DOMAIN;
	*refused = false;
	return FROND_OK;
}
