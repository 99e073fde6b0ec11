/* SPDX-License-Identifier: Apache-2.0 */
/* Reading: every object becomes an entry with its parts, the templates that its pods are made from. What we know of a
 * kind is what docs/gangs.md says of it; fields that do not matter here are passed over. */
#include "sim/manifests.h"

#include "text/kubename.h"

#include <stdlib.h>
#include <string.h>

#define KINDS "Job, JobSet, PyTorchJob, TFJob, MPIJob, XGBoostJob, PaddleJob, JAXJob, PodGroup, Pod, GpuClaim and List"

struct kind {
	const char *name, *group, *example;
	int32_t (*read)(struct manifests *manifests, const struct kind *kind, struct object *object);
	const char *replicas; /* training jobs: the field with the replica types */
};

static int32_t pod_read(struct manifests *manifests, const struct kind *kind, struct object *object);
static int32_t job_read(struct manifests *manifests, const struct kind *kind, struct object *object);
static int32_t jobset_read(struct manifests *manifests, const struct kind *kind, struct object *object);
static int32_t training_read(struct manifests *manifests, const struct kind *kind, struct object *object);
static int32_t group_read(struct manifests *manifests, const struct kind *kind, struct object *object);
static int32_t claim_object_read(struct manifests *manifests, const struct kind *kind, struct object *object);

static const struct kind kinds[] = {
	{"Pod", "", "v1", pod_read, NULL},
	{"Job", "batch", "batch/v1", job_read, NULL},
	{"JobSet", "jobset.x-k8s.io", "jobset.x-k8s.io/v1alpha2", jobset_read, NULL},
	{"PyTorchJob", "kubeflow.org", "kubeflow.org/v1", training_read, "pytorchReplicaSpecs"},
	{"TFJob", "kubeflow.org", "kubeflow.org/v1", training_read, "tfReplicaSpecs"},
	{"MPIJob", "kubeflow.org", "kubeflow.org/v2beta1", training_read, "mpiReplicaSpecs"},
	{"XGBoostJob", "kubeflow.org", "kubeflow.org/v1", training_read, "xgbReplicaSpecs"},
	{"PaddleJob", "kubeflow.org", "kubeflow.org/v1", training_read, "paddleReplicaSpecs"},
	{"JAXJob", "kubeflow.org", "kubeflow.org/v1", training_read, "jaxReplicaSpecs"},
	{"PodGroup", "scheduling.x-k8s.io", "scheduling.x-k8s.io/v1alpha1", group_read, NULL},
	{"GpuClaim", "gpu.scheduling", "gpu.scheduling/v1", claim_object_read, NULL},
};

static int32_t object_read(struct manifests *manifests, uint32_t at);
static int32_t list_read(struct manifests *manifests, uint32_t at);
static int32_t kind_find(const struct manifests *manifests, uint32_t at, const struct kind **out);
static int32_t object_add(struct manifests *manifests, uint32_t at, const struct kind *kind, struct object **out);
static int32_t part_add(struct manifests *manifests, struct object *object, uint32_t at, struct part **out);
static void link_add(struct part *part, uint32_t annotations, uint64_t pods);
static void object_link(struct manifests *manifests, const struct object *object, uint32_t annotations);
static int32_t job_pods_read(const struct manifests *manifests, uint32_t spec, struct part *part);

int32_t manifests_read(struct job_load *load)
{
	const struct doc *doc = &load->jobs->doc;
	struct manifests manifests = {.load = load};
	int32_t code = FROND_OK;
	for (uint32_t root = 0; root != DOC_NONE && code == FROND_OK; root = doc->values[root].next)
		if (!doc_is_null(doc, root)) /* nothing between two "---" */
			code = object_read(&manifests, root);
	if (code == FROND_OK)
		code = gangs_make(&manifests);
	for (uint32_t i = 0; i < manifests.object_count; i++) {
		free(manifests.objects[i].claim_json);
		free(manifests.objects[i].claim);
	}
	free(manifests.objects);
	free(manifests.parts);
	return code;
}

static int32_t object_read(struct manifests *manifests, uint32_t at) /* as deep as DOC_DEPTH_MAX */
{
	const struct doc *doc = &manifests->load->jobs->doc;
	const struct kind *kind = NULL;
	struct object *object = NULL;
	int32_t code = doc_map(doc, at, manifests->load->complaint);
	if (code == FROND_OK)
		code = kind_find(manifests, at, &kind);
	if (code == FROND_OK && kind == NULL)
		return list_read(manifests, at);
	if (code == FROND_OK)
		code = object_add(manifests, at, kind, &object);
	return code == FROND_OK ? kind->read(manifests, kind, object) : code;
}

static int32_t list_read(struct manifests *manifests, uint32_t at)
{
	const struct doc *doc = &manifests->load->jobs->doc;
	uint32_t items = DOC_NONE;
	int32_t code = doc_need(doc, at, "items", &items, manifests->load->complaint);
	if (code == FROND_OK)
		code = doc_list(doc, items, manifests->load->complaint);
	uint32_t i = code == FROND_OK ? doc->values[items].first : DOC_NONE;
	for (; i != DOC_NONE && code == FROND_OK; i = doc->values[i].next)
		code = object_read(manifests, i);
	return code;
}

/* NULL: a List. */
static int32_t kind_find(const struct manifests *manifests, uint32_t at, const struct kind **out)
{
	const struct doc *doc = &manifests->load->jobs->doc;
	struct complaint *complaint = manifests->load->complaint;
	uint32_t kind_at = DOC_NONE, version_at = DOC_NONE;
	const char *kind = NULL, *version = NULL;
	int32_t code = doc_need(doc, at, "kind", &kind_at, complaint);
	if (code == FROND_OK)
		code = doc_word(doc, kind_at, &kind, complaint);
	if (code == FROND_OK)
		code = doc_need(doc, at, "apiVersion", &version_at, complaint);
	if (code == FROND_OK)
		code = doc_word(doc, version_at, &version, complaint);
	if (code != FROND_OK)
		return code;
	bool list = strcmp(kind, "List") == 0;
	const char *slash = strchr(version, '/'), *want = "v1";
	size_t len = slash == NULL ? 0 : (size_t)(slash - version);
	for (uint32_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && *out == NULL; i++)
		*out = strcmp(kinds[i].name, kind) == 0 ? &kinds[i] : NULL;
	if (*out == NULL && !list)
		return doc_complain(doc, kind_at, complaint, "\"%s\" is not read here; allowed are " KINDS,
				    shown(kind, strlen(kind)).text);
	const char *group = list ? "" : (*out)->group;
	want = list ? want : (*out)->example;
	if (strlen(group) != len || memcmp(group, version, len) != 0)
		return doc_complain(doc, version_at, complaint, "must be that of a %s, such as %s, got \"%s\"", kind,
				    want, shown(version, strlen(version)).text);
	return FROND_OK;
}

/* ---- entries --------------------------------------------------------------------------------------------------- */

static int32_t meta_read(const struct manifests *manifests, struct object *object)
{
	const struct doc *doc = &manifests->load->jobs->doc;
	struct complaint *complaint = manifests->load->complaint;
	uint32_t meta = DOC_NONE;
	int32_t code = doc_need(doc, object->at, "metadata", &meta, complaint);
	if (code == FROND_OK)
		code = doc_map(doc, meta, complaint);
	if (code == FROND_OK)
		code = doc_need(doc, meta, "name", &object->name_at, complaint);
	if (code == FROND_OK)
		code = doc_word(doc, object->name_at, &object->name, complaint);
	if (code == FROND_OK && !is_node_name(object->name, strlen(object->name)))
		return doc_complain(doc, object->name_at, complaint,
				    "\"%s\" is not a name; allowed are " NODE_NAME_RULE,
				    shown(object->name, strlen(object->name)).text);
	uint32_t space = code == FROND_OK ? doc_get(doc, meta, "namespace") : DOC_NONE;
	if (space == DOC_NONE)
		return code;
	code = doc_word(doc, space, &object->space, complaint);
	if (code == FROND_OK && !is_namespace_name(object->space, strlen(object->space)))
		return doc_complain(doc, space, complaint, "\"%s\" is not a namespace; allowed are " NAMESPACE_RULE,
				    shown(object->space, strlen(object->space)).text);
	return code;
}

static int32_t object_add(struct manifests *manifests, uint32_t at, const struct kind *kind, struct object **out)
{
	if (manifests->object_count == manifests->object_room) {
		uint32_t room = manifests->object_room == 0 ? 64 : manifests->object_room * 2;
		struct object *grown = realloc(manifests->objects, room * sizeof(*grown));
		if (grown == NULL)
			return complain(manifests->load->complaint, 1, "document: out of memory");
		manifests->objects = grown;
		manifests->object_room = room;
	}
	*out = &manifests->objects[manifests->object_count++];
	**out = (struct object){.kind = kind->name,
				.space = "",
				.at = at,
				.first_part = manifests->part_count,
				.min_member_at = DOC_NONE,
				.group = FROND_NONE,
				.last = FROND_NONE};
	return meta_read(manifests, *out);
}

/* at: the template, or the pod itself. */
static int32_t part_add(struct manifests *manifests, struct object *object, uint32_t at, struct part **out)
{
	if (manifests->part_count == manifests->part_room) {
		uint32_t room = manifests->part_room == 0 ? 64 : manifests->part_room * 2;
		struct part *grown = realloc(manifests->parts, room * sizeof(*grown));
		if (grown == NULL)
			return complain(manifests->load->complaint, 1, "document: out of memory");
		manifests->parts = grown;
		manifests->part_room = room;
	}
	*out = &manifests->parts[manifests->part_count++];
	**out = (struct part){.pods = 1, .claim = FROND_NONE};
	object->part_count++;
	int32_t code = pod_template_read(manifests->load, at, &(*out)->pod);
	if (code == FROND_OK)
		link_add(*out, (*out)->pod.annotations, 1);
	return code;
}

/* The next owner of the part's pods, which has so many of them. */
static void link_add(struct part *part, uint32_t annotations, uint64_t pods)
{
	part->chain[part->links++] =
		(struct chain_link){.annotations = annotations, .pods = pods, .gpus = pods * part->pod.gpus};
}

/* The object itself, which owns the pods of all its parts. */
static void object_link(struct manifests *manifests, const struct object *object, uint32_t annotations)
{
	struct part *parts = &manifests->parts[object->first_part];
	uint64_t pods = 0, gpus = 0;
	for (uint32_t i = 0; i < object->part_count; i++) {
		pods += parts[i].pods;
		gpus += parts[i].pods * parts[i].pod.gpus;
	}
	for (uint32_t i = 0; i < object->part_count; i++)
		parts[i].chain[parts[i].links++] =
			(struct chain_link){.annotations = annotations, .pods = pods, .gpus = gpus};
}

/* ---- kinds ----------------------------------------------------------------------------------------------------- */

static int32_t spec_find(const struct manifests *manifests, uint32_t at, uint32_t *out)
{
	const struct doc *doc = &manifests->load->jobs->doc;
	int32_t code = doc_need(doc, at, "spec", out, manifests->load->complaint);
	return code == FROND_OK ? doc_map(doc, *out, manifests->load->complaint) : code;
}

static int32_t pod_read(struct manifests *manifests, const struct kind *kind, struct object *object)
{
	struct part *part;
	(void)kind;
	return part_add(manifests, object, object->at, &part);
}

/* A Job without gpu-count, or with gpu-count on its pods, is no gang (reference 3.5). */
static int32_t job_read(struct manifests *manifests, const struct kind *kind, struct object *object)
{
	const struct doc *doc = &manifests->load->jobs->doc;
	uint32_t spec = DOC_NONE, template = DOC_NONE, annotations = DOC_NONE;
	struct part *part = NULL;
	(void)kind;
	int32_t code = spec_find(manifests, object->at, &spec);
	if (code == FROND_OK)
		code = doc_need(doc, spec, "template", &template, manifests->load->complaint);
	if (code == FROND_OK)
		code = part_add(manifests, object, template, &part);
	if (code == FROND_OK)
		code = annotations_find(manifests->load, object->at, &annotations);
	if (code == FROND_OK)
		code = job_pods_read(manifests, spec, part);
	if (code != FROND_OK)
		return code;
	bool counted = annotations != DOC_NONE && doc_get(doc, annotations, GPU_COUNT_KEY) != DOC_NONE;
	bool own = part->pod.annotations != DOC_NONE && doc_get(doc, part->pod.annotations, GPU_COUNT_KEY) != DOC_NONE;
	object->gang = counted && !own && part->pods > 1;
	object_link(manifests, object, annotations);
	return FROND_OK;
}

/* Pods that a Job runs at one time. */
static int32_t job_pods_read(const struct manifests *manifests, uint32_t spec, struct part *part)
{
	const struct doc *doc = &manifests->load->jobs->doc;
	int64_t pods = 1, completions = FROND_MEMBERS_MAX;
	int32_t code = number_find(manifests->load, spec, "parallelism", 1, FROND_MEMBERS_MAX, &pods);
	if (code == FROND_OK)
		code = number_find(manifests->load, spec, "completions", 1, INT32_MAX, &completions);
	uint32_t mode = doc_get(doc, spec, "completionMode");
	part->pods = (uint64_t)(completions < pods ? completions : pods);
	part->indexed = mode != DOC_NONE && doc->values[mode].kind == DOC_SCALAR &&
			strcmp(doc_scalar(doc, mode), "Indexed") == 0;
	return code;
}

static int32_t replicated_read(struct manifests *manifests, struct object *object, uint32_t at)
{
	const struct doc *doc = &manifests->load->jobs->doc;
	struct complaint *complaint = manifests->load->complaint;
	uint32_t name = DOC_NONE, job = DOC_NONE, spec = DOC_NONE, template = DOC_NONE, annotations = DOC_NONE;
	struct part *part = NULL;
	int64_t replicas = 1;
	int32_t code = doc_map(doc, at, complaint);
	if (code == FROND_OK)
		code = doc_need(doc, at, "name", &name, complaint);
	const char *text = NULL;
	if (code == FROND_OK)
		code = doc_word(doc, name, &text, complaint);
	if (code == FROND_OK && !is_namespace_name(text, strlen(text)))
		return doc_complain(doc, name, complaint, "\"%s\" is not a name; allowed are " NAMESPACE_RULE,
				    shown(text, strlen(text)).text);
	if (code == FROND_OK)
		code = number_find(manifests->load, at, "replicas", 0, FROND_MEMBERS_MAX, &replicas);
	if (code == FROND_OK)
		code = doc_need(doc, at, "template", &job, complaint);
	if (code == FROND_OK)
		code = doc_map(doc, job, complaint);
	if (code == FROND_OK)
		code = spec_find(manifests, job, &spec);
	if (code == FROND_OK)
		code = doc_need(doc, spec, "template", &template, complaint);
	if (code == FROND_OK)
		code = part_add(manifests, object, template, &part);
	if (code == FROND_OK)
		code = annotations_find(manifests->load, job, &annotations);
	if (code == FROND_OK)
		code = job_pods_read(manifests, spec, part);
	if (code != FROND_OK)
		return code;
	link_add(part, annotations, part->pods);
	part->name = text;
	part->pods *= (uint64_t)replicas;
	part->indexed = true;
	uint32_t depends = doc_get(doc, at, "dependsOn");
	object->stepwise |= depends != DOC_NONE && doc->values[depends].count > 0;
	return FROND_OK;
}

/* One that starts its replicated jobs in order, or lets one depend on another, creates the later ones only when the earlier
 * ones run: each is a gang of its own. */
static int32_t jobset_read(struct manifests *manifests, const struct kind *kind, struct object *object)
{
	const struct doc *doc = &manifests->load->jobs->doc;
	uint32_t spec = DOC_NONE, list = DOC_NONE, policy = DOC_NONE, annotations = DOC_NONE;
	(void)kind;
	int32_t code = spec_find(manifests, object->at, &spec);
	if (code == FROND_OK)
		code = doc_need(doc, spec, "replicatedJobs", &list, manifests->load->complaint);
	if (code == FROND_OK)
		code = doc_list(doc, list, manifests->load->complaint);
	uint32_t i = code == FROND_OK ? doc->values[list].first : DOC_NONE;
	for (; i != DOC_NONE && code == FROND_OK; i = doc->values[i].next)
		code = replicated_read(manifests, object, i);
	if (code == FROND_OK)
		code = map_find(manifests->load, spec, "startupPolicy", &policy);
	if (code == FROND_OK)
		code = annotations_find(manifests->load, object->at, &annotations);
	if (code != FROND_OK)
		return code;
	uint32_t order = policy == DOC_NONE ? DOC_NONE : doc_get(doc, policy, "startupPolicyOrder");
	object->gang = true;
	object->stepwise |= order != DOC_NONE && doc->values[order].kind == DOC_SCALAR &&
			    strcmp(doc_scalar(doc, order), "InOrder") == 0;
	object_link(manifests, object, annotations);
	return FROND_OK;
}

/* Replica types in order of rank: those that lead, the workers, all others; by name where that is equal. */
static int type_order(const char *name)
{
	static const char *const lead[] = {"Master", "Chief", "Launcher"};
	for (uint32_t i = 0; i < sizeof(lead) / sizeof(lead[0]); i++)
		if (strcmp(name, lead[i]) == 0)
			return 0;
	return strcmp(name, "Worker") == 0 ? 1 : 2;
}

static bool type_before(const struct doc *doc, uint32_t a, uint32_t b)
{
	int left = type_order(doc_key(doc, a)), right = type_order(doc_key(doc, b));
	return left != right ? left < right : strcmp(doc_key(doc, a), doc_key(doc, b)) < 0;
}

/* The type that comes after this one; DOC_NONE: the first, or there is none. */
static uint32_t type_next(const struct doc *doc, uint32_t map, uint32_t after)
{
	uint32_t best = DOC_NONE;
	for (uint32_t i = doc->values[map].first; i != DOC_NONE; i = doc->values[i].next)
		if ((after == DOC_NONE || type_before(doc, after, i)) &&
		    (best == DOC_NONE || type_before(doc, i, best)))
			best = i;
	return best;
}

static int32_t replicas_read(struct manifests *manifests, struct object *object, uint32_t at)
{
	const struct doc *doc = &manifests->load->jobs->doc;
	uint32_t template = DOC_NONE;
	struct part *part = NULL;
	int64_t replicas = 1;
	int32_t code = doc_map(doc, at, manifests->load->complaint);
	if (code == FROND_OK)
		code = number_find(manifests->load, at, "replicas", 0, FROND_MEMBERS_MAX, &replicas);
	if (code == FROND_OK)
		code = doc_need(doc, at, "template", &template, manifests->load->complaint);
	if (code == FROND_OK)
		code = part_add(manifests, object, template, &part);
	if (code != FROND_OK)
		return code;
	part->pods = (uint64_t)replicas;
	part->indexed = true;
	return FROND_OK;
}

/* Kubeflow: the gang is all replicas, or minAvailable of them. */
static int32_t training_read(struct manifests *manifests, const struct kind *kind, struct object *object)
{
	const struct doc *doc = &manifests->load->jobs->doc;
	uint32_t spec = DOC_NONE, map = DOC_NONE, run = DOC_NONE, policy = DOC_NONE, annotations = DOC_NONE;
	int64_t least = 0;
	int32_t code = spec_find(manifests, object->at, &spec);
	if (code == FROND_OK)
		code = doc_need(doc, spec, kind->replicas, &map, manifests->load->complaint);
	if (code == FROND_OK)
		code = doc_map(doc, map, manifests->load->complaint);
	uint32_t i = code == FROND_OK ? type_next(doc, map, DOC_NONE) : DOC_NONE;
	for (; i != DOC_NONE && code == FROND_OK; i = type_next(doc, map, i))
		code = replicas_read(manifests, object, i);
	if (code == FROND_OK)
		code = map_find(manifests->load, spec, "runPolicy", &run);
	if (code == FROND_OK && run != DOC_NONE)
		code = map_find(manifests->load, run, "schedulingPolicy", &policy);
	if (code == FROND_OK && policy != DOC_NONE)
		code = number_find(manifests->load, policy, "minAvailable", 1, FROND_MEMBERS_MAX, &least);
	if (code == FROND_OK)
		code = annotations_find(manifests->load, object->at, &annotations);
	if (code != FROND_OK)
		return code;
	object->gang = true;
	object->min_member = (uint32_t)least;
	object->min_member_at = least == 0 ? DOC_NONE : doc_get(doc, policy, "minAvailable");
	object_link(manifests, object, annotations);
	return FROND_OK;
}

static int32_t group_read(struct manifests *manifests, const struct kind *kind, struct object *object)
{
	const struct doc *doc = &manifests->load->jobs->doc;
	uint32_t spec = DOC_NONE;
	int64_t least = 0;
	(void)kind;
	object->role = OBJECT_GROUP;
	int32_t code = spec_find(manifests, object->at, &spec);
	if (code == FROND_OK)
		code = doc_need(doc, spec, "minMember", &object->min_member_at, manifests->load->complaint);
	if (code == FROND_OK)
		code = doc_whole(doc, object->min_member_at, 1, FROND_MEMBERS_MAX, &least, manifests->load->complaint);
	object->min_member = (uint32_t)least;
	return code;
}

static int32_t claim_object_read(struct manifests *manifests, const struct kind *kind, struct object *object)
{
	uint32_t spec = DOC_NONE;
	(void)kind;
	object->role = OBJECT_CLAIM;
	int32_t code = spec_find(manifests, object->at, &spec);
	if (code != FROND_OK)
		return code;
	struct doc_path path = doc_path(&manifests->load->jobs->doc, spec);
	return claim_load(manifests->load, spec, path.text, &object->claim_json, &object->claim);
}
