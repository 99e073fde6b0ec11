/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cluster.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENGINE_ALIGN 16u
#define TEXT_SLACK   4096u /* names that the engine makes itself */
#define NAME_SLACK   8u    /* bytes that the engine keeps beside each name */
#define WAIT_KEY     "topology.scheduler/topology-wait"

static int32_t limits_find(const struct sim *sim, struct frond_limits *out);
static int32_t node_enter(struct sim *sim, uint32_t slot, bool down, uint32_t unhealthy);
static int32_t pod_enter(struct sim *sim, const struct frond_pod *pod, const uint8_t *gpus);
static int32_t used_enter(struct sim *sim, uint32_t slot);
static int32_t job_plan(struct sim *sim, uint32_t index);
static int32_t job_remove(struct sim *sim, uint32_t index);
static int32_t plan_book(struct sim *sim, uint32_t index, const struct question *question);
static int32_t budget_enter(struct sim *sim, uint32_t index);
static int32_t state_check(struct sim *sim, const char *name);

/* Keys: a pod that only holds used GPUs, a gang, and a member. Never zero, never the same twice. */
static struct frond_key used_key(uint32_t slot)
{
	return (struct frond_key){.hi = 1, .lo = (uint64_t)slot + 1};
}

struct frond_key gang_key(uint32_t index)
{
	return (struct frond_key){.hi = 2, .lo = (uint64_t)index + 1};
}

struct frond_key member_key(uint32_t index, uint32_t rank)
{
	return (struct frond_key){.hi = (uint64_t)index + 3, .lo = (uint64_t)rank + 1};
}

uint32_t member_job(struct frond_key pod)
{
	return (uint32_t)(pod.hi - 3);
}

uint32_t member_rank(struct frond_key pod)
{
	return (uint32_t)(pod.lo - 1);
}

int32_t sim_job(struct sim *sim, uint32_t index)
{
	const struct job *job = &sim->planning->jobs->list[index];
	int32_t code = job->removes == FROND_NONE ? job_plan(sim, index) : job_remove(sim, job->removes);
	return code == FROND_OK ? state_check(sim, job->name) : code;
}

int32_t sim_jobs_but(struct sim *sim, uint32_t skipped)
{
	const struct jobs *jobs = sim->planning->jobs;
	int32_t code = FROND_OK;
	for (uint32_t i = 0; i < jobs->count && code == FROND_OK; i++)
		if (i != skipped && (jobs->list[i].removes == FROND_NONE || jobs->list[i].removes != skipped))
			code = sim_job(sim, i);
	return code;
}

uint32_t sim_members(const struct sim *sim)
{
	uint32_t members = 1;
	for (uint32_t i = 0; i < sim->planning->jobs->count; i++)
		members += sim->placed[i];
	return members;
}

/* ---- the engine ------------------------------------------------------------------------------------------------ */

int32_t sim_open(struct sim *sim, const struct planning *planning, struct complaint *complaint)
{
	*sim = (struct sim){.planning = planning, .complaint = complaint, .abi = frond_abi_get()};
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
	sim->room = calloc(limits.nodes, sizeof(*sim->room));
	if (sim->memory == NULL || sim->placed == NULL || sim->gpus == NULL || sim->members == NULL ||
	    sim->places == NULL || sim->scratch == NULL || sim->room == NULL)
		return complain(sim->complaint, 0, "out of memory");

	char text[FROND_TEXT_MAX];
	uint32_t len = 0;
	code = sim->abi->create(sim->memory, bytes, &limits, NULL, 0, planning->fabric_text, planning->fabric_len,
				&sim->engine, text, sizeof(text), &len);
	if (code != FROND_OK)
		return complain(sim->complaint, 0, "the engine does not take the fabric: %.*s", (int)len, text);
	for (uint32_t slot = 0; slot < planning->fabric->node_count && code == FROND_OK; slot++) {
		code = node_enter(sim, slot, false, 0);
		if (code == FROND_OK && planning->fabric->nodes[slot].used_mask != 0)
			code = used_enter(sim, slot);
	}
	return code == FROND_OK ? state_check(sim, "the fabric") : code;
}

void sim_close(struct sim *sim)
{
	free(sim->memory);
	free(sim->placed);
	free(sim->gpus);
	free(sim->members);
	free(sim->places);
	free(sim->scratch);
	free(sim->room);
}

/* A pod holds a GPU, so there are never more pods than GPUs, nor than the file has; but a list may name members that ask
 * for none. */
static int32_t limits_find(const struct sim *sim, struct frond_limits *out)
{
	const struct fabricfile *fabric = sim->planning->fabric;
	const struct jobs *jobs = sim->planning->jobs;
	uint64_t gpus = 0, pods = 0, text = TEXT_SLACK;
	for (uint32_t i = 0; i < fabric->spine_count; i++)
		text += strlen(fabric->spines[i].name) + NAME_SLACK;
	for (uint32_t i = 0; i < fabric->leaf_count; i++)
		text += strlen(fabric->leaves[i].name) + NAME_SLACK;
	for (uint32_t i = 0; i < fabric->node_count; i++) {
		const struct fabric_node *node = &fabric->nodes[i];
		gpus += node->gpus;
		pods += node->used_mask != 0;
		text += strlen(node->name) + NAME_SLACK;
		for (uint32_t j = 0; j < node->label_count; j++)
			text += strlen(node->labels[j].value) + NAME_SLACK;
	}
	for (uint32_t i = 0; i < jobs->count; i++) {
		pods += jobs->list[i].members;
		if (jobs->list[i].removes == FROND_NONE && jobs->list[i].gpus != NULL)
			gpus += jobs->list[i].members; /* some may ask for none */
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

static int32_t node_enter(struct sim *sim, uint32_t slot, bool down, uint32_t unhealthy)
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
				 .unhealthy_mask = node->unhealthy_mask | unhealthy,
				 .unavailable_mask = node->unhealthy_mask, /* a file has no clock: what it says lasts */
				 .flags = (node->cordoned ? FROND_NODE_CORDONED | FROND_NODE_UNAVAILABLE : 0u) |
					  (down ? FROND_NODE_DOWN : 0u),
				 .uplink_gbps = node->uplink_gbps,
				 .topology = FROND_NONE,
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
	return code == FROND_OK ? code : sim_broken(sim, code, "node_put", node->name);
}

/* A bound pod that holds these GPUs. */
static int32_t pod_enter(struct sim *sim, const struct frond_pod *pod, const uint8_t *gpus)
{
	const struct fabric_node *node = &sim->planning->fabric->nodes[pod->slot];
	struct frond_pod put = *pod;
	for (uint32_t i = 0; i < pod->gpus; i++)
		put.gpu_mask |= 1u << gpus[i];
	char text[FROND_TEXT_MAX];
	uint32_t len = 0;
	int32_t code = sim->abi->pod_put(sim->engine, &put, "", 0, text, sizeof(text), &len);
	return code == FROND_OK ? code : sim_broken(sim, code, "pod_put", node->name);
}

/* GPUs in use before the first job: one pod a node holds them. */
static int32_t used_enter(struct sim *sim, uint32_t slot)
{
	uint8_t gpus[FROND_GPUS_MAX];
	struct frond_pod pod = {.pod = used_key(slot), .slot = slot, .rank = FROND_NONE};
	for (uint8_t gpu = 0; gpu < FROND_GPUS_MAX; gpu++)
		if (sim->planning->fabric->nodes[slot].used_mask >> gpu & 1)
			gpus[pod.gpus++] = gpu;
	return pod_enter(sim, &pod, gpus);
}

int32_t sim_fail(struct sim *sim, uint32_t slot, bool down, uint32_t gpu_mask)
{
	return node_enter(sim, slot, down, gpu_mask);
}

int32_t sim_move(struct sim *sim, uint32_t index, const struct frond_move *move)
{
	const char *name = sim->planning->jobs->list[index].name;
	uint8_t gpus[FROND_GPUS_MAX];
	struct frond_pod pod = {.pod = move->pod, .slot = move->to, .gang = gang_key(index), .rank = move->rank};
	for (uint32_t left = move->gpu_mask; left != 0; left &= left - 1, pod.gpus++)
		gpus[pod.gpus] = move->ring >> 4 * pod.gpus & 15;
	int32_t code = pod_enter(sim, &pod, gpus);
	return code == FROND_OK ? state_check(sim, name) : code;
}

/* ---- jobs ------------------------------------------------------------------------------------------------------ */

/* All members, else the minMember lowest ranks (reference 3.5). */
static int32_t job_plan(struct sim *sim, uint32_t index)
{
	const struct job *job = &sim->planning->jobs->list[index];
	struct question question;
	int32_t code = question_make(sim, index, &question);
	if (code != FROND_OK)
		return code;

	code = sim_ask(sim, index, &question, job->members);
	if (code == FROND_OK && sim->plan.outcome != FROND_PLACED && job->min_member < job->members) {
		question.request.members = job->min_member;
		code = sim_ask(sim, index, &question, job->min_member);
	}
	if (code == FROND_OK && sim->plan.outcome == FROND_PLACED)
		code = plan_book(sim, index, &question);
	free(question.in);
	return code;
}

int32_t sim_ask(struct sim *sim, uint32_t index, const struct question *question, uint32_t members)
{
	uint32_t len = 0;
	struct frond_request request = question->request;
	request.members = members;
	int32_t code = sim->abi->plan(sim->engine, &request, sim->members, question->pairs, question->in,
				      question->in_len, question->room, question->room_count, &sim->plan, sim->places,
				      sim->reason, sizeof(sim->reason) - 1, &len);
	sim->reason[code == FROND_OK ? len : 0] = '\0';
	return code == FROND_OK ? code : sim_broken(sim, code, "plan", sim->planning->jobs->list[index].name);
}

static bool labels_match(const struct claim *claim, const struct fabric_node *node)
{
	for (uint32_t i = 0; i < claim->label_count; i++) {
		bool found = false;
		for (uint32_t j = 0; j < node->label_count && !found; j++)
			found = strcmp(claim->labels[i].key, node->labels[j].key) == 0 &&
				strcmp(claim->labels[i].value, node->labels[j].value) == 0;
		if (!found)
			return false;
	}
	return true;
}

/* topology-wait has been checked but never elapses here (reference 11), so the engine does not get to see it. A
 * selector is the host's affair: nodes that it rules out have no room. */
int32_t question_make(struct sim *sim, uint32_t index, struct question *out)
{
	const struct jobs *jobs = sim->planning->jobs;
	const struct job *job = &jobs->list[index];
	const struct doc *doc = &jobs->doc;
	*out = (struct question){.request = {.gang = gang_key(index),
					     .members = job->members,
					     .min_member = job->min_member,
					     .gpus_desired = job_gpus(job, sim->gpus),
					     .only_slot = FROND_NONE,
					     .priority = job->priority}};
	for (uint32_t rank = 0; rank < job->members; rank++)
		sim->members[rank] = (struct frond_member){.pod = member_key(index, rank),
							   .rank = rank,
							   .gpus = sim->gpus[rank],
							   .pinned_slot = FROND_NONE};
	if (job->gpus_desired != 0)
		out->request.gpus_desired = job->gpus_desired;
	uint64_t bytes = strlen(job->name) + (job->claim_json == NULL ? 0 : strlen(job->claim_json)) + 1;
	for (uint32_t i = 0; i < job->annotation_count; i++)
		bytes += doc->values[job->annotations[i]].key_len + doc->values[job->annotations[i]].scalar_len;
	out->in = malloc(bytes);
	if (out->in == NULL)
		return complain(sim->complaint, 0, "out of memory");
	out->request.name = text_append(out->in, &out->in_len, job->name);
	for (uint32_t i = 0; i < job->annotation_count; i++)
		if (strcmp(doc_key(doc, job->annotations[i]), WAIT_KEY) != 0) {
			struct frond_pair *pair = &out->pairs[out->request.annotations++];
			pair->key = text_append(out->in, &out->in_len, doc_key(doc, job->annotations[i]));
			pair->value = text_append(out->in, &out->in_len, doc_scalar(doc, job->annotations[i]));
		}
	if (job->claim_json != NULL)
		out->request.claim = text_append(out->in, &out->in_len, job->claim_json);
	if (job->claim != NULL && job->claim->label_count > 0) {
		const struct fabricfile *fabric = sim->planning->fabric;
		for (uint32_t slot = 0; slot < fabric->node_count; slot++)
			if (!labels_match(job->claim, &fabric->nodes[slot]))
				sim->room[out->room_count++] = (struct frond_room){.slot = slot};
		out->room = sim->room;
	}
	return FROND_OK;
}

static int32_t plan_book(struct sim *sim, uint32_t index, const struct question *question)
{
	const char *name = sim->planning->jobs->list[index].name;
	const struct frond_request *request = &question->request;
	char text[FROND_TEXT_MAX];
	uint32_t len = 0;
	int32_t code = sim->abi->reserve(sim->engine, request, sim->members, sim->places);
	if (code != FROND_OK)
		return sim_broken(sim, code, "reserve", name);
	for (uint32_t rank = 0; rank < request->members; rank++) {
		code = sim->abi->confirm(sim->engine, &sim->members[rank].pod);
		if (code != FROND_OK)
			return sim_broken(sim, code, "confirm", name);
	}
	sim->placed[index] = request->members;
	code = sim->abi->gang_put(sim->engine, request, question->pairs, question->in, question->in_len, text,
				  sizeof(text), &len);
	if (code != FROND_OK)
		return sim_broken(sim, code, "gang_put", name);
	return sim->planning->jobs->list[index].budgeted ? budget_enter(sim, index) : FROND_OK;
}

/* Only a bound pod tells that a budget is about it. A member without GPUs is on no node of ours: the first will do. */
static int32_t budget_enter(struct sim *sim, uint32_t index)
{
	int32_t code = FROND_OK;
	for (uint32_t rank = 0; rank < sim->placed[index] && code == FROND_OK; rank++) {
		const struct frond_place *place = &sim->places[rank];
		uint8_t gpus[FROND_GPUS_MAX];
		struct frond_pod pod = {.pod = member_key(index, rank),
					.slot = place->slot == FROND_NONE ? 0 : place->slot,
					.gang = gang_key(index),
					.rank = rank,
					.flags = FROND_POD_BUDGETED};
		for (uint32_t left = place->gpu_mask; left != 0; left &= left - 1, pod.gpus++)
			gpus[pod.gpus] = place->ring >> 4 * pod.gpus & 15;
		code = pod_enter(sim, &pod, gpus);
	}
	return code;
}

static int32_t job_remove(struct sim *sim, uint32_t index)
{
	for (uint32_t rank = 0; rank < sim->placed[index]; rank++) {
		struct frond_key pod = member_key(index, rank);
		int32_t code = sim->abi->release(sim->engine, &pod);
		if (code != FROND_OK)
			return sim_broken(sim, code, "release", sim->planning->jobs->list[index].name);
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
	return complain(sim->complaint, 0, "the engine's check fails after %s: %.*s", name, (int)len, text);
}

int32_t sim_broken(const struct sim *sim, int32_t code, const char *what, const char *name)
{
	return complain(sim->complaint, 0, "%s fails for %s: %s", what, name, sim->abi->code_text(code));
}
