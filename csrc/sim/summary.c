/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/summary.h"

#include <inttypes.h>
#include <stdlib.h>

#define MODE     "topology.scheduler/topology-modeRequired" /* key and value */
#define ASKS_MAX 2048u                                      /* one to the node up to so many */

struct probe { /* a gang that nobody has asked for */
	struct frond_member *members;
	struct frond_place *places;
	uint32_t gpus; /* of a member: a whole node */
};

/* A whole node is one with as many GPUs as most nodes have; of equals the larger. */
static uint32_t whole_node(const struct fabricfile *fabric)
{
	uint32_t nodes[FROND_GPUS_MAX + 1] = {0}, gpus = 0;
	for (uint32_t slot = 0; slot < fabric->node_count; slot++)
		nodes[fabric->nodes[slot].gpus]++;
	for (uint32_t i = 1; i <= FROND_GPUS_MAX; i++)
		gpus = nodes[i] > 0 && nodes[i] >= nodes[gpus] ? i : gpus;
	return gpus;
}

static int32_t fits(struct sim *sim, struct probe *probe, uint32_t members, bool *out)
{
	const struct frond_pair pair = {{0, 32}, {32, 8}};
	struct frond_request request = {.gang = {.hi = UINT64_MAX, .lo = 1},
					.members = members,
					.min_member = members,
					.gpus_desired = (uint64_t)members * probe->gpus,
					.only_slot = FROND_NONE,
					.annotations = 1};
	struct frond_plan plan;
	char text[FROND_TEXT_MAX];
	uint32_t len = 0;
	int32_t code = sim->abi->plan(sim->engine, &request, probe->members, &pair, MODE, sizeof(MODE) - 1, NULL, 0,
				      &plan, probe->places, text, sizeof(text), &len);
	*out = code == FROND_OK && plan.outcome == FROND_PLACED;
	return code == FROND_OK ? code : sim_broken(sim, code, "plan", "the summary");
}

/* The first that fits from *at down to above, in steps; *at is where the search has ended. */
static int32_t search(struct sim *sim, struct probe *probe, uint32_t above, uint32_t step, uint32_t *at, bool *found)
{
	int32_t code = FROND_OK;
	*found = false;
	while (code == FROND_OK && *at > above) {
		code = fits(sim, probe, *at, found);
		if (*found)
			break;
		*at -= *at - above < step ? *at - above : step;
	}
	return code;
}

/* From above, one by one: a larger gang may fit where a smaller one does not (five nodes in two leaves with three free
 * each, but not four, which want a complete leaf), so halving would miss it. After ASKS_MAX questions steps get wider,
 * and what they find is a lower bound. */
static int32_t largest(struct sim *sim, struct probe *probe, uint32_t most, uint32_t *out, bool *exact)
{
	bool found;
	uint32_t rest = most > ASKS_MAX ? most - ASKS_MAX : 0, step = rest / ASKS_MAX + 1;
	*out = most;
	int32_t code = search(sim, probe, rest, 1, out, &found);
	if (code != FROND_OK || found)
		return code;
	*exact = step == 1;
	code = search(sim, probe, 0, step, out, &found);
	if (code != FROND_OK || !found || step == 1)
		return code;
	uint32_t coarse = *out;
	*out += step - 1;
	return search(sim, probe, coarse - 1, 1, out, &found);
}

int32_t summary_write(struct sim *sim, struct report *report)
{
	if (report->format != FORMAT_TEXT)
		return FROND_OK;
	struct frond_stats stats;
	struct probe probe = {.gpus = whole_node(sim->planning->fabric)};
	uint32_t most = 0, members = 0;
	bool exact = true;
	int32_t code = sim->abi->stats(sim->engine, &stats);
	if (code != FROND_OK)
		return sim_broken(sim, code, "stats", "the summary");
	if (probe.gpus > 0)
		most = stats.gpus_free / probe.gpus < FROND_MEMBERS_MAX ? stats.gpus_free / probe.gpus
									: FROND_MEMBERS_MAX;
	probe.members = calloc((uint64_t)most + 1, sizeof(*probe.members));
	probe.places = calloc((uint64_t)most + 1, sizeof(*probe.places));
	if (probe.members == NULL || probe.places == NULL)
		code = complain(sim->complaint, 0, "out of memory");
	for (uint32_t i = 0; i < most && code == FROND_OK; i++)
		probe.members[i] = (struct frond_member){.pod = {.hi = UINT64_MAX, .lo = (uint64_t)i + 2},
							 .rank = i,
							 .gpus = probe.gpus,
							 .pinned_slot = FROND_NONE};
	if (code == FROND_OK)
		code = largest(sim, &probe, most, &members, &exact);
	if (code == FROND_OK)
		report_summary(report, &(struct answer_summary){.used = stats.gpus_bound + stats.gpus_reserved +
									stats.gpus_by_count,
								.gpus = stats.gpus,
								.members = members,
								.gpus_each = probe.gpus,
								.exact = exact});
	free(probe.members);
	free(probe.places);
	return code;
}
