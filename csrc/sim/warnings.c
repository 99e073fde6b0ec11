/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/warnings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PREFIX "topology.scheduler/"

static const struct {
	uint32_t flag;
	const char *sentence;
} flag_words[] = {
	{FROND_PLAN_SHAPELESS,
	 "it could never be placed by its rule, though there are GPUs enough: treated as Preferred"},
	{FROND_PLAN_SEGMENTLESS, "no part of the fabric could ever hold its segments in one domain each"},
	{FROND_PLAN_MIXED_MODELS, "its members are on GPUs of different models"},
	{FROND_PLAN_NO_TOPOLOGY, "the cluster has no leaves: treated as Ignore"},
	{FROND_PLAN_BOUNDED, "the bound on the work of a call was reached: there may be a better answer"},
	{FROND_PLAN_UNKNOWN_GPU, "preferIds lists an id that is no GPU of this cluster"},
};

/* An absent speed means unlimited (reference 11), which is worth a word when somebody asks for one. */
static void speeds_add(const struct fabricfile *fabric, struct warnings *out)
{
	uint32_t unknown = 0;
	for (uint32_t slot = 0; slot < fabric->node_count; slot++)
		unknown += fabric->nodes[slot].gpus > 0 && fabric->nodes[slot].uplink_gbps == 0;
	if (unknown > 0)
		snprintf(out->text[out->count++], FROND_TEXT_MAX,
			 "network-bandwidth: the speed of %" PRIu32 " node%s is not known and counts as unlimited",
			 unknown, unknown == 1 ? "" : "s");
}

struct warnings warnings_of(const struct fabricfile *fabric, const struct jobs *jobs, const struct job *job,
			    uint32_t flags)
{
	struct warnings out = {.count = 0};
	const char *domain = job_annotation(jobs, job, PREFIX "preferred-domain");
	if ((flags & FROND_PLAN_UNKNOWN_DOMAIN) != 0 && domain != NULL)
		snprintf(out.text[out.count++], FROND_TEXT_MAX, "preferred-domain: \"%s\" is no domain of this fabric",
			 shown(domain, strlen(domain)).text);
	if (job_annotation(jobs, job, PREFIX "network-bandwidth") != NULL)
		speeds_add(fabric, &out);
	for (uint32_t i = 0; i < sizeof(flag_words) / sizeof(flag_words[0]); i++)
		if ((flags & flag_words[i].flag) != 0)
			snprintf(out.text[out.count++], FROND_TEXT_MAX, "%s", flag_words[i].sentence);
	return out;
}
