/* SPDX-License-Identifier: Apache-2.0 */
#include "text/request.h"

#include <inttypes.h>

bool span_inside(struct frond_span span, uint32_t len)
{
	return span.off <= len && span.len <= len - span.off;
}

/* Malformed: our own host would be wrong, not a user. */
static int32_t well_formed(const struct frond_engine *engine, const struct frond_request *request,
			   const struct frond_member *members, uint32_t in_len)
{
	if (key_zero(request->gang) || request->members == 0 || request->age_ms < 0 ||
	    !span_inside(request->name, in_len) ||
	    (request->only_slot != FROND_NONE && request->only_slot >= engine->core.node_cap))
		return FROND_BAD;
	if (request->members > FROND_MEMBERS_MAX)
		return FROND_OK; /* a user's mistake: refused with a sentence before anyone reads the members */
	for (uint32_t i = 0; i < request->members; i++) {
		const struct frond_member *member = &members[i];
		if (key_zero(member->pod) || (i > 0 && member->rank < members[i - 1].rank))
			return FROND_BAD;
		if (member->pinned_slot != FROND_NONE &&
		    (member->pinned_slot >= engine->core.node_cap || !engine->core.nodes[member->pinned_slot].present))
			return FROND_BAD;
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

/* Leaves of the domain that is called so: a leaf, or all leaves of a spine. */
static void find_domain(const struct frond_engine *engine, struct asked *out)
{
	const struct fabric *fabric = &engine->core.fabric;
	const char *wanted = out->wish.preferred_domain;
	if (wanted[0] == 0)
		return;
	uint32_t name = names_find(&engine->names, wanted, (uint32_t)strlen(wanted));
	for (uint32_t leaf = 0; name != FROND_NONE && leaf < fabric->leaf_count; leaf++) {
		if (engine->tree.leaf_name[leaf] != name)
			continue;
		out->ask.domain_first = leaf;
		out->ask.domain_end = leaf + 1;
		return;
	}
	for (uint32_t spine = 0; name != FROND_NONE && spine < fabric->spine_count; spine++) {
		if (engine->tree.spine_name[spine] != name)
			continue;
		out->ask.domain_first = fabric->spine_start[spine];
		out->ask.domain_end = fabric->spine_start[spine + 1];
		return;
	}
	out->flags |= FROND_PLAN_UNKNOWN_DOMAIN;
}

int32_t request_read(const struct frond_engine *engine, const struct frond_request *request,
		     const struct frond_member *members, const struct frond_pair *annotations, const char *in,
		     uint32_t in_len, const struct frond_room *room, struct asked *out, bool *refused,
		     struct complaint *complaint)
{
	*refused = true;
	*out = (struct asked){.flags = 0};
	int32_t code = well_formed(engine, request, members, in_len);
	if (code != FROND_OK)
		return code;
	if (request->members > FROND_MEMBERS_MAX) {
		complain(complaint, 0, "the gang has %" PRIu32 " members, at most %u are possible", request->members,
			 FROND_MEMBERS_MAX);
		return FROND_OK;
	}
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
				.max_nodes_per_leaf = engine->args.max_nodes_per_leaf,
				.max_gpus_per_leaf = engine->args.max_gpus_per_leaf,
				.only_slot = request->only_slot,
				.room = room};
	if (wish->mode == MODE_REQUIRED && !wish->latency_sensitive && request->age_ms >= wish->wait_ms)
		out->ask.mode = MODE_PREFERRED; /* topology-wait is over */
	find_domain(engine, out);
	*refused = false;
	return FROND_OK;
}
