/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ENGINE_ALIGN 16u
#define TEXT_SLACK   4096u /* names that the engine makes itself */
#define WAIT_KEY     "topology.scheduler/topology-wait"

struct sim {
	const struct planning *planning;
	struct complaint *complaint;
	const struct frond_abi *abi;
	frond_engine *engine;
	void *memory;

	/* By entry of the jobs file: members that hold GPUs. */
	uint32_t *placed;

	/* For one job at a time; room for the largest. */
	uint32_t *gpus;
	struct frond_member *members;
	struct frond_place *places;
	uint64_t *scratch;
};

/* One job as the engine wants it. */
struct question {
	struct frond_request request;
	struct frond_pair pairs[DOC_KEYS_MAX];
};

static int32_t sim_open(struct sim *sim);
static void sim_close(struct sim *sim);
static int32_t limits_find(const struct sim *sim, struct frond_limits *out);
static int32_t node_enter(struct sim *sim, uint32_t slot);
static int32_t used_enter(struct sim *sim, uint32_t slot);
static int32_t job_plan(struct sim *sim, uint32_t index);
static int32_t job_remove(struct sim *sim, uint32_t index);
static void question_make(struct sim *sim, uint32_t index, struct question *out);
static int32_t plan_book(struct sim *sim, uint32_t index, const struct frond_request *request);
static int32_t state_check(struct sim *sim, const char *name);
static int32_t broken(const struct sim *sim, int32_t code, const char *what, const char *name);

/* Keys: a pod that only holds used GPUs, a gang, and a member. Never zero, never the same twice. */
static struct frond_key used_key(uint32_t slot)
{
	return (struct frond_key){.hi = 1, .lo = (uint64_t)slot + 1};
}

static struct frond_key gang_key(uint32_t index)
{
	return (struct frond_key){.hi = 2, .lo = (uint64_t)index + 1};
}

static struct frond_key member_key(uint32_t index, uint32_t rank)
{
	return (struct frond_key){.hi = (uint64_t)index + 3, .lo = (uint64_t)rank + 1};
}

int32_t plan_run(const struct planning *planning, struct complaint *complaint)
{
	struct sim sim = {.planning = planning, .complaint = complaint, .abi = frond_abi_get()};
	int32_t code = sim_open(&sim);
	if (code == FROND_OK)
		report_begin(planning->report);
	for (uint32_t i = 0; i < planning->jobs->count && code == FROND_OK; i++) {
		const struct job *job = &planning->jobs->list[i];
		code = job->removes == FROND_NONE ? job_plan(&sim, i) : job_remove(&sim, job->removes);
		if (code == FROND_OK)
			code = state_check(&sim, job->name);
	}
	if (code == FROND_OK)
		report_end(planning->report);
	sim_close(&sim);
	return code;
}

/* ---- the engine ------------------------------------------------------------------------------------------------ */

static int32_t sim_open(struct sim *sim)
{
	const struct planning *planning = sim->planning;
	uint32_t most = 1;
	for (uint32_t i = 0; i < planning->jobs->count; i++)
		most = planning->jobs->list[i].members > most ? planning->jobs->list[i].members : most;
	struct frond_limits limits;
	int32_t code = limits_find(sim, &limits);
	if (code != FROND_OK)
		return code;
	uint64_t bytes = sim->abi->size_of(&limits);
	if (bytes == 0)
		return complain(sim->complaint, 0, "the engine does not take %" PRIu32 " nodes and %" PRIu32 " pods",
				limits.nodes, limits.pods);
	bytes = (bytes + ENGINE_ALIGN - 1) / ENGINE_ALIGN * ENGINE_ALIGN;
	sim->memory = aligned_alloc(ENGINE_ALIGN, bytes);
	sim->placed = calloc((uint64_t)planning->jobs->count + 1, sizeof(*sim->placed));
	sim->gpus = calloc(most, sizeof(*sim->gpus));
	sim->members = calloc(most, sizeof(*sim->members));
	sim->places = calloc(most, sizeof(*sim->places));
	sim->scratch = calloc(most, sizeof(*sim->scratch));
	if (sim->memory == NULL || sim->placed == NULL || sim->gpus == NULL || sim->members == NULL ||
	    sim->places == NULL || sim->scratch == NULL)
		return complain(sim->complaint, 0, "out of memory");

	char text[FROND_TEXT_MAX];
	uint32_t len = 0;
	code = sim->abi->create(sim->memory, bytes, &limits, NULL, 0, planning->fabric_text, planning->fabric_len,
				&sim->engine, text, sizeof(text), &len);
	if (code != FROND_OK)
		return complain(sim->complaint, 0, "the engine does not take the fabric: %.*s", (int)len, text);
	for (uint32_t slot = 0; slot < planning->fabric->node_count && code == FROND_OK; slot++) {
		code = node_enter(sim, slot);
		if (code == FROND_OK && planning->fabric->nodes[slot].used_mask != 0)
			code = used_enter(sim, slot);
	}
	return code == FROND_OK ? state_check(sim, "the fabric") : code;
}

static void sim_close(struct sim *sim)
{
	free(sim->memory);
	free(sim->placed);
	free(sim->gpus);
	free(sim->members);
	free(sim->places);
	free(sim->scratch);
}

/* Every pod holds a GPU at least, so there are never more pods than GPUs, nor than the file has. */
static int32_t limits_find(const struct sim *sim, struct frond_limits *out)
{
	const struct fabricfile *fabric = sim->planning->fabric;
	const struct jobs *jobs = sim->planning->jobs;
	uint64_t gpus = 0, pods = 0, text = TEXT_SLACK;
	for (uint32_t i = 0; i < fabric->spine_count; i++)
		text += strlen(fabric->spines[i].name);
	for (uint32_t i = 0; i < fabric->leaf_count; i++)
		text += strlen(fabric->leaves[i].name);
	for (uint32_t i = 0; i < fabric->node_count; i++) {
		const struct fabric_node *node = &fabric->nodes[i];
		gpus += node->gpus;
		pods += node->used_mask != 0;
		text += strlen(node->name);
		for (uint32_t j = 0; j < node->label_count; j++)
			text += strlen(node->labels[j].value);
	}
	for (uint32_t i = 0; i < jobs->count; i++) {
		pods += jobs->list[i].members;
		text += strlen(jobs->list[i].name);
	}
	uint32_t nodes = fabric->node_count;
	nodes = fabric->leaf_count > nodes ? fabric->leaf_count : nodes;
	nodes = fabric->spine_count > nodes ? fabric->spine_count : nodes;
	pods = pods < gpus ? pods : gpus;
	if (text > UINT32_MAX)
		return complain(sim->complaint, 0, "the names of nodes, domains and jobs have %" PRIu64 " bytes", text);
	*out = (struct frond_limits){
		.nodes = nodes, .pods = pods == 0 ? 1 : (uint32_t)pods, .text_bytes = (uint32_t)text};
	return FROND_OK;
}

/* Text of a call, with spans into it. */
static struct frond_span text_append(char *text, uint32_t *used, const char *word)
{
	uint32_t len = (uint32_t)strlen(word);
	struct frond_span span = {.off = *used, .len = len};
	memcpy(text + *used, word, len);
	*used += len;
	return span;
}

static int32_t node_enter(struct sim *sim, uint32_t slot)
{
	const struct fabric_node *node = &sim->planning->fabric->nodes[slot];
	uint64_t bytes = strlen(node->name);
	for (uint32_t i = 0; i < node->label_count; i++)
		bytes += strlen(node->labels[i].key) + strlen(node->labels[i].value);
	char *in = malloc(bytes);
	if (in == NULL)
		return complain(sim->complaint, 0, "out of memory");
	struct frond_pair labels[DOC_KEYS_MAX];
	uint32_t used = 0;
	struct frond_node put = {.slot = slot,
				 .gpus = node->gpus,
				 .unhealthy_mask = node->unhealthy_mask,
				 .flags = node->cordoned ? FROND_NODE_CORDONED : 0,
				 .uplink_gbps = node->uplink_gbps,
				 .name = text_append(in, &used, node->name)};
	for (uint32_t i = 0; i < node->label_count; i++) {
		labels[i].key = text_append(in, &used, node->labels[i].key);
		labels[i].value = text_append(in, &used, node->labels[i].value);
	}
	char text[FROND_TEXT_MAX];
	uint32_t len = 0;
	int32_t code =
		sim->abi->node_put(sim->engine, &put, labels, node->label_count, in, used, text, sizeof(text), &len);
	free(in);
	return code == FROND_OK ? code : broken(sim, code, "node_put", node->name);
}

/* GPUs in use before the first job: one pod a node holds them by their ids. */
static int32_t used_enter(struct sim *sim, uint32_t slot)
{
	const struct fabric_node *node = &sim->planning->fabric->nodes[slot];
	char in[FROND_GPUS_MAX * (FROND_NAME_MAX + 16)];
	uint32_t used = 0, count = 0;
	for (uint32_t gpu = 0; gpu < node->gpus; gpu++) {
		if ((node->used_mask >> gpu & 1) == 0)
			continue;
		used += (uint32_t)snprintf(in + used, sizeof(in) - used, "%s%s-gpu-%" PRIu32, count == 0 ? "" : ",",
					   node->name, gpu);
		count++;
	}
	struct frond_pod pod = {
		.pod = used_key(slot), .slot = slot, .gpus = count, .allocated = {.off = 0, .len = used}};
	char text[FROND_TEXT_MAX];
	uint32_t len = 0;
	int32_t code = sim->abi->pod_put(sim->engine, &pod, in, used, text, sizeof(text), &len);
	return code == FROND_OK ? code : broken(sim, code, "pod_put", node->name);
}

/* ---- jobs ------------------------------------------------------------------------------------------------------ */

/* All members, else the minMember lowest ranks (spec 3.5). */
static int32_t job_plan(struct sim *sim, uint32_t index)
{
	const struct jobs *jobs = sim->planning->jobs;
	const struct job *job = &jobs->list[index];
	struct question question;
	question_make(sim, index, &question);

	struct frond_plan plan;
	char reason[FROND_TEXT_MAX];
	const uint32_t tries[] = {job->members, job->min_member};
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t len = 0;
		question.request.members = tries[i];
		int32_t code =
			sim->abi->plan(sim->engine, &question.request, sim->members, question.pairs, jobs->doc.text,
				       jobs->doc.text_len, NULL, &plan, sim->places, reason, sizeof(reason) - 1, &len);
		if (code != FROND_OK)
			return broken(sim, code, "plan", job->name);
		reason[len] = '\0';
		if (plan.outcome == FROND_PLACED || job->min_member == job->members)
			break;
	}
	if (plan.outcome != FROND_PLACED) {
		report_refused(sim->planning->report, job->name, reason);
		return FROND_OK;
	}
	int32_t code = plan_book(sim, index, &question.request);
	if (code != FROND_OK)
		return code;
	report_placed(sim->planning->report, &(struct answer_placed){.name = job->name,
								     .plan = &plan,
								     .places = sim->places,
								     .members = question.request.members,
								     .scratch = sim->scratch});
	return FROND_OK;
}

/* Spans are of the document's own text. topology-wait has been checked but never elapses here (spec 11), so the engine
 * does not get to see it. */
static void question_make(struct sim *sim, uint32_t index, struct question *out)
{
	const struct jobs *jobs = sim->planning->jobs;
	const struct job *job = &jobs->list[index];
	const struct doc *doc = &jobs->doc;
	out->request = (struct frond_request){
		.gang = gang_key(index),
		.members = job->members,
		.min_member = job->min_member,
		.gpus_desired = jobs_gpus(jobs, job, sim->gpus),
		.only_slot = FROND_NONE,
		.name = {.off = (uint32_t)(job->name - doc->text), .len = (uint32_t)strlen(job->name)},
	};
	for (uint32_t rank = 0; rank < job->members; rank++)
		sim->members[rank] = (struct frond_member){.pod = member_key(index, rank),
							   .rank = rank,
							   .gpus = sim->gpus[rank],
							   .pinned_slot = FROND_NONE};
	uint32_t at = job->annotations == DOC_NONE ? DOC_NONE : doc->values[job->annotations].first;
	for (; at != DOC_NONE; at = doc->values[at].next) {
		const struct doc_value *value = &doc->values[at];
		if (strcmp(doc_key(doc, at), WAIT_KEY) == 0)
			continue;
		out->pairs[out->request.annotations++] =
			(struct frond_pair){{value->key_at, value->key_len}, {value->scalar_at, value->scalar_len}};
	}
}

static int32_t plan_book(struct sim *sim, uint32_t index, const struct frond_request *request)
{
	const char *name = sim->planning->jobs->list[index].name;
	int32_t code = sim->abi->reserve(sim->engine, request, sim->members, sim->places);
	if (code != FROND_OK)
		return broken(sim, code, "reserve", name);
	for (uint32_t rank = 0; rank < request->members; rank++) {
		code = sim->abi->confirm(sim->engine, &sim->members[rank].pod);
		if (code != FROND_OK)
			return broken(sim, code, "confirm", name);
	}
	sim->placed[index] = request->members;
	return FROND_OK;
}

static int32_t job_remove(struct sim *sim, uint32_t index)
{
	for (uint32_t rank = 0; rank < sim->placed[index]; rank++) {
		struct frond_key pod = member_key(index, rank);
		int32_t code = sim->abi->release(sim->engine, &pod);
		if (code != FROND_OK)
			return broken(sim, code, "release", sim->planning->jobs->list[index].name);
	}
	sim->placed[index] = 0;
	return FROND_OK;
}

static int32_t state_check(struct sim *sim, const char *name)
{
	char text[FROND_TEXT_MAX];
	uint32_t len = 0;
	int32_t code = sim->abi->check(sim->engine, text, sizeof(text), &len);
	if (code == FROND_OK)
		return FROND_OK;
	if (len >= sizeof(text))
		len = 0; /* too long for the buffer: it holds nothing useful */
	return complain(sim->complaint, 0, "the engine's check fails after %s: %.*s", name, (int)len, text);
}

static int32_t broken(const struct sim *sim, int32_t code, const char *what, const char *name)
{
	return complain(sim->complaint, 0, "%s fails for %s: %s", what, name, sim->abi->code_text(code));
}
