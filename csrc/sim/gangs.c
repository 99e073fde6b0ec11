/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs out of Kubernetes objects: which pods are a gang, in which order of rank, with which annotations and claim
 * (reference 3.1, 3.5). What the scheduler would wait for without end, or refuse, is bad input here. */
#include "sim/manifests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gang_part { /* consecutive ranks of one part, of which there is at least one */
	const struct part *part;
	uint64_t pods;
};

struct gang { /* a job that is being made */
	const struct object *object;
	struct gang_part *parts; /* in order of rank */
	uint32_t part_count;
	const char *suffix; /* of the name, after "-"; NULL: the object's name */
	uint32_t min_member, min_member_at;
};

struct group_pod {  /* a pod of a PodGroup */
	char *name; /* malloc'd */
	const struct part *part;
	int64_t index; /* -1: none */
};

static int32_t names_check(const struct manifests *manifests);
static int32_t references_find(struct manifests *manifests);
static int32_t pods_make(struct manifests *manifests, const struct object *object);
static int32_t singles_make(struct manifests *manifests, const struct object *object);
static int32_t group_make(struct manifests *manifests, uint32_t index);
static int32_t gang_make(struct manifests *manifests, const struct gang *gang);

int32_t gangs_make(struct manifests *manifests)
{
	int32_t code = names_check(manifests);
	if (code == FROND_OK)
		code = references_find(manifests);
	for (uint32_t i = 0; i < manifests->object_count && code == FROND_OK; i++) {
		const struct object *object = &manifests->objects[i];
		if (object->role == OBJECT_PODS && object->group == FROND_NONE)
			code = pods_make(manifests, object);
		/* A PodGroup is complete with the last object that belongs to it, and comes in there. */
		uint32_t group = object->role == OBJECT_GROUP ? i : object->group;
		if (code == FROND_OK && group != FROND_NONE && manifests->objects[group].last == i)
			code = group_make(manifests, group);
	}
	return code;
}

/* ---- names ----------------------------------------------------------------------------------------------------- */

static int object_compare(const void *a, const void *b)
{
	const struct object *x = *(const struct object *const *)a, *y = *(const struct object *const *)b;
	int order = strcmp(x->kind, y->kind);
	order = order != 0 ? order : strcmp(x->space, y->space);
	order = order != 0 ? order : strcmp(x->name, y->name);
	return order != 0 ? order : (x > y) - (x < y);
}

/* Of one kind and namespace each name is there once; of several that are not, the first in the file is reported. */
static int32_t names_check(const struct manifests *manifests)
{
	const struct doc *doc = &manifests->load->jobs->doc;
	const struct object **sorted = calloc((uint64_t)manifests->object_count + 1, sizeof(*sorted));
	const struct object *first = NULL, *twice = NULL;
	if (sorted == NULL)
		return complain(manifests->load->complaint, 1, "document: out of memory");
	for (uint32_t i = 0; i < manifests->object_count; i++)
		sorted[i] = &manifests->objects[i];
	qsort(sorted, manifests->object_count, sizeof(*sorted), object_compare);
	for (uint32_t i = 1; i < manifests->object_count; i++) {
		const struct object *a = sorted[i - 1], *b = sorted[i];
		if (strcmp(a->kind, b->kind) != 0 || strcmp(a->space, b->space) != 0 || strcmp(a->name, b->name) != 0)
			continue;
		first = twice == NULL || b < twice ? a : first;
		twice = twice == NULL || b < twice ? b : twice;
	}
	free(sorted);
	if (twice == NULL)
		return FROND_OK;
	return doc_complain(doc, twice->name_at, manifests->load->complaint,
			    "there is a %s \"%s\" on line %u already; choose another name", twice->kind,
			    shown(twice->name, strlen(twice->name)).text, doc->values[first->name_at].line);
}

/* The PodGroup or GpuClaim that a value names, in the namespace of the object that names it. */
static int32_t named_find(const struct manifests *manifests, const struct object *from, enum object_role role,
			  const char *name, uint32_t at, uint32_t *out)
{
	for (*out = 0; *out < manifests->object_count; ++*out) {
		const struct object *object = &manifests->objects[*out];
		if (object->role == role && strcmp(object->name, name) == 0 && strcmp(object->space, from->space) == 0)
			return FROND_OK;
	}
	return doc_complain(&manifests->load->jobs->doc, at, manifests->load->complaint,
			    "there is no %s \"%s\" in this file and namespace; put it there, too",
			    role == OBJECT_GROUP ? "PodGroup" : "GpuClaim", shown(name, strlen(name)).text);
}

/* A claim without gangRef serves one pod at a time (reference 3.2). */
static int32_t claim_use(struct manifests *manifests, const struct part *part, struct object *claim)
{
	claim->users += part->pods;
	if (claim->claim->gang_ref[0] != '\0' || claim->users <= 1)
		return FROND_OK;
	return doc_complain(
		&manifests->load->jobs->doc, part->pod.claim_at, manifests->load->complaint,
		"GpuClaim \"%s\" serves one pod at a time and %llu name it; one with a gangRef serves every "
		"pod of that PodGroup",
		shown(claim->name, strlen(claim->name)).text, (unsigned long long)claim->users);
}

/* The PodGroup of a part: by its label, or by the gangRef of its claim. */
static int32_t part_group_find(struct manifests *manifests, const struct object *object, struct part *part,
			       uint32_t *out)
{
	const struct doc *doc = &manifests->load->jobs->doc;
	uint32_t at = part->pod.group_at;
	const char *name = at == DOC_NONE ? NULL : doc_scalar(doc, at);
	int32_t code = FROND_OK;
	*out = FROND_NONE;
	if (part->pod.claim_at != DOC_NONE)
		code = named_find(manifests, object, OBJECT_CLAIM, doc_scalar(doc, part->pod.claim_at),
				  part->pod.claim_at, &part->claim);
	if (code == FROND_OK && part->claim != FROND_NONE)
		code = claim_use(manifests, part, &manifests->objects[part->claim]);
	if (code != FROND_OK)
		return code;
	const char *ref = part->claim == FROND_NONE ? "" : manifests->objects[part->claim].claim->gang_ref;
	if (name != NULL && ref[0] != '\0' && strcmp(name, ref) != 0)
		return doc_complain(
			doc, part->pod.claim_at, manifests->load->complaint,
			"the gangRef of this claim is PodGroup \"%s\" and a label names \"%s\"; only one is "
			"possible",
			shown(ref, strlen(ref)).text, shown(name, strlen(name)).text);
	if (name == NULL && ref[0] == '\0')
		return FROND_OK;
	return named_find(manifests, object, OBJECT_GROUP, name != NULL ? name : ref,
			  name != NULL ? at : part->pod.claim_at, out);
}

static int32_t references_find(struct manifests *manifests)
{
	for (uint32_t i = 0; i < manifests->object_count; i++) {
		struct object *object = &manifests->objects[i];
		for (uint32_t p = 0; p < object->part_count; p++) {
			struct part *part = &manifests->parts[object->first_part + p];
			uint32_t group = FROND_NONE;
			int32_t code = part_group_find(manifests, object, part, &group);
			if (code != FROND_OK)
				return code;
			if (p > 0 && group != object->group)
				return doc_complain(&manifests->load->jobs->doc, object->at, manifests->load->complaint,
						    "some of its pods belong to a PodGroup and others do not; all of "
						    "them must, to the same one, or none");
			object->group = group;
		}
		if (object->group != FROND_NONE)
			manifests->objects[object->group].last = i;
	}
	/* A PodGroup after the last of its pods, or without any, is complete where it stands itself. */
	for (uint32_t i = 0; i < manifests->object_count; i++) {
		struct object *object = &manifests->objects[i];
		if (object->role == OBJECT_GROUP && (object->last == FROND_NONE || object->last < i))
			object->last = i;
	}
	return FROND_OK;
}

/* ---- a job ----------------------------------------------------------------------------------------------------- */

/* Of an annotation's key the value nearest to the pod; DOC_NONE: nobody carries it. */
static uint32_t nearest(const struct doc *doc, const struct part *part, const char *key, uint32_t *link)
{
	for (*link = 0; *link < part->links; ++*link) {
		uint32_t map = part->chain[*link].annotations;
		uint32_t at = map == DOC_NONE ? DOC_NONE : doc_get(doc, map, key);
		if (at != DOC_NONE)
			return at;
	}
	return DOC_NONE;
}

/* Every key of ours from the nearest object that carries it: the pod, then its owners upwards. */
static int32_t annotations_make(const struct manifests *manifests, const struct part *lead, struct job *job)
{
	const struct doc *doc = &manifests->load->jobs->doc;
	int32_t code = FROND_OK;
	for (uint32_t link = 0; link < lead->links; link++) {
		uint32_t map = lead->chain[link].annotations;
		uint32_t i = map == DOC_NONE ? DOC_NONE : doc->values[map].first;
		for (; i != DOC_NONE && code == FROND_OK; i = doc->values[i].next) {
			uint32_t found;
			if (strncmp(doc_key(doc, i), "topology.scheduler/", 19) == 0 &&
			    nearest(doc, lead, doc_key(doc, i), &found) == i)
				code = job_annotate(manifests->load, job, i);
		}
	}
	return code;
}

/* What the object that carries gpu-count asks for in all. Of objects that carry the same value the uppermost counts, because
 * controllers copy annotations downwards. Where no pod has a GPU, gpu-count is dealt out to them (reference 3.1). */
static int32_t gpu_count_apply(const struct manifests *manifests, const struct part *lead, bool without,
			       struct job *job)
{
	const struct doc *doc = &manifests->load->jobs->doc;
	uint32_t link, at = nearest(doc, lead, GPU_COUNT_KEY, &link);
	if (at == DOC_NONE && without)
		return doc_complain(doc, lead->pod.gpus_at, manifests->load->complaint,
				    "ask for no GPUs; a limit nvidia.com/gpu or amd.com/gpu of 1 to %u is needed",
				    FROND_GPUS_MAX);
	if (at == DOC_NONE)
		return FROND_OK;
	for (uint32_t i = link + 1; i < lead->links; i++) {
		uint32_t map = lead->chain[i].annotations;
		uint32_t above = map == DOC_NONE ? DOC_NONE : doc_get(doc, map, GPU_COUNT_KEY);
		link = above != DOC_NONE && strcmp(doc_scalar(doc, above), doc_scalar(doc, at)) == 0 ? i : link;
	}
	job->gpus_desired = lead->chain[link].gpus;
	if (!without)
		return FROND_OK;
	uint64_t count = strtoull(doc_scalar(doc, at), NULL, 10), pods = lead->chain[link].pods;
	if (count % pods != 0 || count / pods > FROND_GPUS_MAX)
		return doc_complain(doc, at, manifests->load->complaint,
				    "%llu GPUs do not divide by %llu pods into 1 to %u each, and no pod has a limit "
				    "nvidia.com/gpu or amd.com/gpu",
				    (unsigned long long)count, (unsigned long long)pods, FROND_GPUS_MAX);
	job->gpus_desired = count;
	job->gpus_each = (uint32_t)(count / pods);
	return FROND_OK;
}

/* A claim says how many GPUs a pod has, or that it has some. */
static int32_t claim_agrees(const struct manifests *manifests, const struct part *part, const struct object *claim,
			    uint32_t gpus)
{
	uint32_t count = claim->claim->count;
	if (gpus > 0 && (count == 0 || count == gpus))
		return FROND_OK;
	return doc_complain(&manifests->load->jobs->doc, part->pod.claim_at, manifests->load->complaint,
			    "GpuClaim \"%s\" asks for %u GPU%s%s and the pod's limits are %u; they must be equal",
			    shown(claim->name, strlen(claim->name)).text, count == 0 ? 1 : count, count <= 1 ? "" : "s",
			    count == 0 ? " or more" : "", gpus);
}

/* The claim of all members that have GPUs; they may name several that say the same. */
static int32_t claim_make(const struct manifests *manifests, const struct gang *gang, struct job *job)
{
	const struct object *claim = NULL;
	for (uint32_t i = 0, seen = 0; i < gang->part_count; i++) {
		const struct part *part = gang->parts[i].part;
		uint32_t gpus = part->pod.gpus == 0 && job->gpus == NULL ? job->gpus_each : part->pod.gpus;
		const struct object *own = part->claim == FROND_NONE ? NULL : &manifests->objects[part->claim];
		int32_t code = own == NULL ? FROND_OK : claim_agrees(manifests, part, own, gpus);
		if (code != FROND_OK)
			return code;
		if (gpus == 0)
			continue;
		if (seen++ == 0)
			claim = own;
		if (own != claim && (own == NULL || claim == NULL || strcmp(own->claim_json, claim->claim_json) != 0))
			return doc_complain(
				&manifests->load->jobs->doc, part->pod.gpus_at, manifests->load->complaint,
				"belong to a gang of which others have another claim, or none; all that have "
				"GPUs need the same");
	}
	if (claim == NULL)
		return FROND_OK;
	job->claim_json = strdup(claim->claim_json);
	job->claim = malloc(sizeof(*job->claim));
	if (job->claim_json == NULL || job->claim == NULL)
		return complain(manifests->load->complaint, 1, "document: out of memory");
	*job->claim = *claim->claim;
	return FROND_OK;
}

static int32_t name_make(const struct manifests *manifests, const char *name, const char *suffix, struct job *job)
{
	job->name = name;
	if (suffix == NULL)
		return FROND_OK;
	size_t len = strlen(name) + strlen(suffix) + 2;
	job->name_made = malloc(len);
	if (job->name_made == NULL)
		return complain(manifests->load->complaint, 1, "document: out of memory");
	snprintf(job->name_made, len, "%s-%s", name, suffix);
	job->name = job->name_made;
	if (len - 1 > FROND_NAME_MAX)
		return doc_complain(&manifests->load->jobs->doc, job->at, manifests->load->complaint,
				    "is too long: with \"-%s\" after it it has %zu bytes, at most %u are allowed",
				    suffix, len - 1, FROND_NAME_MAX);
	return FROND_OK;
}

/* GPUs by rank, and how many members there are. */
static int32_t members_make(const struct manifests *manifests, const struct gang *gang, struct job *job)
{
	uint64_t members = 0;
	bool equal = true;
	for (uint32_t i = 0; i < gang->part_count; i++) {
		members += gang->parts[i].pods;
		equal &= gang->parts[i].part->pod.gpus == gang->parts[0].part->pod.gpus;
	}
	if (members == 0 || members > FROND_MEMBERS_MAX)
		return doc_complain(&manifests->load->jobs->doc, gang->object->name_at, manifests->load->complaint,
				    "is a gang of %llu pods; 1 to %u are allowed", (unsigned long long)members,
				    FROND_MEMBERS_MAX);
	job->members = job->min_member = (uint32_t)members;
	if (equal) {
		job->gpus_each = gang->parts[0].part->pod.gpus;
		return FROND_OK;
	}
	job->gpus = malloc(members);
	if (job->gpus == NULL)
		return complain(manifests->load->complaint, 1, "document: out of memory");
	for (uint32_t i = 0, rank = 0; i < gang->part_count; i++)
		for (uint64_t pod = 0; pod < gang->parts[i].pods; pod++)
			job->gpus[rank++] = (uint8_t)gang->parts[i].part->pod.gpus;
	return FROND_OK;
}

static int32_t gang_make(struct manifests *manifests, const struct gang *gang)
{
	struct job *job = NULL;
	int32_t code = job_add(manifests->load, gang->object->name_at, &job);
	if (code == FROND_OK)
		code = name_make(manifests, gang->object->name, gang->suffix, job);
	if (code == FROND_OK)
		code = members_make(manifests, gang, job);
	if (code != FROND_OK)
		return code;
	const struct part *lead = gang->parts[0].part;
	if (gang->min_member > job->members)
		return doc_complain(&manifests->load->jobs->doc, gang->min_member_at, manifests->load->complaint,
				    "must be between 1 and %u, the number of its pods, got %u", job->members,
				    gang->min_member);
	job->min_member = gang->min_member == 0 ? job->members : gang->min_member;
	job->priority = lead->pod.priority;
	code = annotations_make(manifests, lead, job);
	if (code == FROND_OK)
		code = gpu_count_apply(manifests, lead, job->gpus == NULL && job->gpus_each == 0, job);
	if (code == FROND_OK)
		code = claim_make(manifests, gang, job);
	return code;
}

/* ---- owners ---------------------------------------------------------------------------------------------------- */

static int32_t pods_make(struct manifests *manifests, const struct object *object)
{
	if (!object->gang)
		return singles_make(manifests, object);
	struct gang_part *parts = calloc((uint64_t)object->part_count + 1, sizeof(*parts));
	int32_t code = FROND_OK;
	if (parts == NULL)
		return complain(manifests->load->complaint, 1, "document: out of memory");
	uint32_t count = 0;
	for (uint32_t i = 0; i < object->part_count; i++) {
		const struct part *part = &manifests->parts[object->first_part + i];
		if (part->pods > 0)
			parts[count++] = (struct gang_part){.part = part, .pods = part->pods};
	}
	struct gang gang = {.object = object,
			    .parts = parts,
			    .part_count = count,
			    .min_member = object->min_member,
			    .min_member_at = object->min_member_at};
	if (!object->stepwise || count == 0)
		code = gang_make(manifests, &gang);
	for (uint32_t i = 0; i < count && object->stepwise && code == FROND_OK; i++) {
		gang.parts = &parts[i];
		gang.part_count = 1;
		gang.suffix = parts[i].part->name;
		code = gang_make(manifests, &gang);
	}
	free(parts);
	return code;
}

/* Pods in no gang: NAME when there is one, else NAME-0, NAME-1 and so on. */
static int32_t singles_make(struct manifests *manifests, const struct object *object)
{
	const struct part *part = &manifests->parts[object->first_part];
	struct gang_part one = {.part = part, .pods = 1};
	int32_t code = FROND_OK;
	for (uint64_t i = 0; i < part->pods && code == FROND_OK; i++) {
		char number[24];
		struct gang gang = {.object = object, .parts = &one, .part_count = 1};
		snprintf(number, sizeof(number), "%llu", (unsigned long long)i);
		gang.suffix = part->pods > 1 ? number : NULL;
		code = gang_make(manifests, &gang);
	}
	return code;
}

/* ---- PodGroups ------------------------------------------------------------------------------------------------- */

static int by_index(const void *a, const void *b)
{
	const struct group_pod *x = a, *y = b;
	return (x->index > y->index) - (x->index < y->index);
}

static int by_name(const void *a, const void *b)
{
	const struct group_pod *x = a, *y = b;
	int order = natural_compare(x->name, (uint32_t)strlen(x->name), y->name, (uint32_t)strlen(y->name));
	return order != 0 ? order : by_index(a, b);
}

/* A decimal number as Kubernetes writes it; -1: none. */
static int64_t index_of(const struct doc *doc, uint32_t at)
{
	if (at == DOC_NONE || doc->values[at].kind != DOC_SCALAR)
		return -1;
	const char *text = doc_scalar(doc, at);
	size_t len = strlen(text);
	bool bad = len == 0 || len > 7 || strspn(text, "0123456789") != len || (text[0] == '0' && len > 1);
	int64_t index = bad ? -1 : (int64_t)strtoll(text, NULL, 10);
	return index > FROND_RANK_MAX ? -1 : index;
}

/* The pods of an object, by name and by index. */
static int32_t group_pods_add(const struct manifests *manifests, const struct object *object, struct group_pod *pods,
			      uint32_t *count)
{
	const struct doc *doc = &manifests->load->jobs->doc;
	uint64_t total = 0;
	for (uint32_t p = 0; p < object->part_count; p++)
		total += manifests->parts[object->first_part + p].pods;
	for (uint32_t p = 0, number = 0; p < object->part_count; p++) {
		const struct part *part = &manifests->parts[object->first_part + p];
		for (uint64_t i = 0; i < part->pods; i++, number++) {
			struct group_pod *pod = &pods[(*count)++];
			size_t len = strlen(object->name) + 12;
			pod->part = part;
			pod->index = part->indexed ? (int64_t)number : index_of(doc, part->pod.index_at);
			pod->name = malloc(len);
			if (pod->name == NULL)
				return complain(manifests->load->complaint, 1, "document: out of memory");
			snprintf(pod->name, len, total > 1 ? "%s-%u" : "%s", object->name, number);
		}
	}
	return FROND_OK;
}

/* By index when all have one and no two the same, else by name. */
static void group_sort(struct group_pod *pods, uint32_t count)
{
	bool indexed = true;
	qsort(pods, count, sizeof(*pods), by_index);
	for (uint32_t i = 0; i < count; i++)
		indexed &= pods[i].index >= 0 && (i == 0 || pods[i - 1].index != pods[i].index);
	if (!indexed)
		qsort(pods, count, sizeof(*pods), by_name);
}

static int32_t group_size(const struct manifests *manifests, uint32_t index, uint32_t *out)
{
	const struct object *group = &manifests->objects[index];
	uint64_t pods = 0;
	for (uint32_t i = 0; i <= group->last; i++)
		for (uint32_t p = 0; manifests->objects[i].group == index && p < manifests->objects[i].part_count; p++)
			pods += manifests->parts[manifests->objects[i].first_part + p].pods;
	*out = (uint32_t)pods;
	if (pods >= 1 && pods <= FROND_MEMBERS_MAX)
		return FROND_OK;
	return doc_complain(&manifests->load->jobs->doc, group->name_at, manifests->load->complaint,
			    "is the PodGroup of %llu pods; 1 to %u must name it with the label "
			    "scheduling.x-k8s.io/pod-group",
			    (unsigned long long)pods, FROND_MEMBERS_MAX);
}

static int32_t group_make(struct manifests *manifests, uint32_t index)
{
	const struct object *group = &manifests->objects[index];
	uint32_t size = 0, count = 0;
	int32_t code = group_size(manifests, index, &size);
	if (code != FROND_OK)
		return code;
	struct group_pod *pods = calloc(size, sizeof(*pods));
	struct gang_part *parts = calloc(size, sizeof(*parts));
	if (pods == NULL || parts == NULL)
		code = complain(manifests->load->complaint, 1, "document: out of memory");
	for (uint32_t i = 0; i <= group->last && code == FROND_OK; i++)
		if (manifests->objects[i].group == index)
			code = group_pods_add(manifests, &manifests->objects[i], pods, &count);
	if (code == FROND_OK) {
		group_sort(pods, size);
		for (uint32_t i = 0; i < size; i++)
			parts[i] = (struct gang_part){.part = pods[i].part, .pods = 1};
		code = gang_make(manifests, &(struct gang){.object = group,
							   .parts = parts,
							   .part_count = size,
							   .min_member = group->min_member,
							   .min_member_at = group->min_member_at});
	}
	for (uint32_t i = 0; i < count; i++)
		free(pods[i].name);
	free(pods);
	free(parts);
	return code;
}
