/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/podtemplate.h"

#include "text/kubename.h"

#include <string.h>

#define PREFIX          "topology.scheduler/"
#define GROUP_LABEL     "scheduling.x-k8s.io/pod-group"
#define GROUP_LABEL_OLD "pod-group.scheduling.sigs.k8s.io"
#define CLAIM_KEY       "gpu.scheduling/claim"
#define INDEX_KEY       "batch.kubernetes.io/job-completion-index"

static const char *const gpu_resources[] = {"nvidia.com/gpu", "amd.com/gpu"};
enum { GPU_RESOURCES = sizeof(gpu_resources) / sizeof(gpu_resources[0]) };

static int32_t labels_read(const struct job_load *load, uint32_t at, struct pod_template *out);
static int32_t gpus_read(const struct job_load *load, uint32_t spec, struct pod_template *out);
static int32_t containers_find(const struct job_load *load, uint32_t spec, const char *key, uint32_t *out);
static int32_t container_read(const struct job_load *load, uint32_t at, uint32_t *gpus, bool *sidecar);
static int32_t quantity_read(const struct job_load *load, uint32_t at, uint32_t *out);

int32_t pod_template_read(const struct job_load *load, uint32_t at, struct pod_template *out)
{
	const struct doc *doc = &load->jobs->doc;
	*out = (struct pod_template){.group_at = DOC_NONE, .claim_at = DOC_NONE, .index_at = DOC_NONE};
	uint32_t spec = DOC_NONE;
	int64_t priority = 0;
	int32_t code = doc_map(doc, at, load->complaint);
	if (code == FROND_OK)
		code = annotations_find(load, at, &out->annotations);
	if (code == FROND_OK)
		code = labels_read(load, at, out);
	if (code == FROND_OK)
		code = doc_need(doc, at, "spec", &spec, load->complaint);
	if (code == FROND_OK)
		code = doc_map(doc, spec, load->complaint);
	if (code == FROND_OK && doc_get(doc, spec, "schedulingGroup") != DOC_NONE)
		return doc_complain(
			doc, doc_get(doc, spec, "schedulingGroup"), load->complaint,
			"is not read here; name a PodGroup of scheduling.x-k8s.io with the label " GROUP_LABEL);
	if (code == FROND_OK)
		code = number_find(load, spec, "priority", INT32_MIN, INT32_MAX, &priority);
	out->priority = (int32_t)priority;
	return code == FROND_OK ? gpus_read(load, spec, out) : code;
}

int32_t map_find(const struct job_load *load, uint32_t at, const char *key, uint32_t *out)
{
	const struct doc *doc = &load->jobs->doc;
	*out = doc_get(doc, at, key);
	if (*out == DOC_NONE || doc_is_null(doc, *out)) {
		*out = DOC_NONE;
		return FROND_OK;
	}
	return doc_map(doc, *out, load->complaint);
}

int32_t number_find(const struct job_load *load, uint32_t at, const char *key, int64_t min, int64_t max, int64_t *out)
{
	const struct doc *doc = &load->jobs->doc;
	uint32_t value = doc_get(doc, at, key);
	if (value == DOC_NONE || doc_is_null(doc, value))
		return FROND_OK;
	return doc_whole(doc, value, min, max, out, load->complaint);
}

/* Keys of others may have any value. */
int32_t annotations_find(const struct job_load *load, uint32_t at, uint32_t *out)
{
	const struct doc *doc = &load->jobs->doc;
	uint32_t meta;
	*out = DOC_NONE;
	int32_t code = map_find(load, at, "metadata", &meta);
	if (code == FROND_OK && meta != DOC_NONE)
		code = map_find(load, meta, "annotations", out);
	uint32_t i = code == FROND_OK && *out != DOC_NONE ? doc->values[*out].first : DOC_NONE;
	for (; i != DOC_NONE && code == FROND_OK; i = doc->values[i].next)
		if (strncmp(doc_key(doc, i), PREFIX, strlen(PREFIX)) == 0)
			code = annotation_check(load, *out, i);
	return code;
}

/* A name of a map, if it is there: a PodGroup's or a GpuClaim's. */
static int32_t name_find(const struct job_load *load, uint32_t map, const char *key, uint32_t *out)
{
	const struct doc *doc = &load->jobs->doc;
	const char *name = NULL;
	*out = map == DOC_NONE ? DOC_NONE : doc_get(doc, map, key);
	int32_t code = *out == DOC_NONE ? FROND_OK : doc_word(doc, *out, &name, load->complaint);
	if (code == FROND_OK && name != NULL && !is_node_name(name, strlen(name)))
		return doc_complain(doc, *out, load->complaint, "\"%s\" is not a name; allowed are " NODE_NAME_RULE,
				    shown(name, strlen(name)).text);
	return code;
}

static int32_t labels_read(const struct job_load *load, uint32_t at, struct pod_template *out)
{
	const struct doc *doc = &load->jobs->doc;
	uint32_t meta, labels = DOC_NONE, old = DOC_NONE;
	int32_t code = map_find(load, at, "metadata", &meta);
	if (code == FROND_OK && meta != DOC_NONE)
		code = map_find(load, meta, "labels", &labels);
	if (code == FROND_OK)
		code = name_find(load, labels, GROUP_LABEL, &out->group_at);
	if (code == FROND_OK)
		code = name_find(load, labels, GROUP_LABEL_OLD, &old);
	if (code == FROND_OK)
		code = name_find(load, out->annotations, CLAIM_KEY, &out->claim_at);
	if (code != FROND_OK)
		return code;
	if (out->group_at != DOC_NONE && old != DOC_NONE &&
	    strcmp(doc_scalar(doc, out->group_at), doc_scalar(doc, old)) != 0)
		return doc_complain(doc, old, load->complaint,
				    "names PodGroup \"%s\" and " GROUP_LABEL " names \"%s\"; only one is possible",
				    shown(doc_scalar(doc, old), doc->values[old].scalar_len).text,
				    shown(doc_scalar(doc, out->group_at), doc->values[out->group_at].scalar_len).text);
	out->group_at = out->group_at == DOC_NONE ? old : out->group_at;
	out->index_at = labels == DOC_NONE ? DOC_NONE : doc_get(doc, labels, INDEX_KEY);
	if (out->index_at == DOC_NONE && out->annotations != DOC_NONE)
		out->index_at = doc_get(doc, out->annotations, INDEX_KEY);
	return FROND_OK;
}

/* ---- GPUs ------------------------------------------------------------------------------------------------------ */

/* As Kubernetes counts: containers and sidecars together, other init containers one at a time, each beside the sidecars
 * that were started before it. */
static int32_t gpus_read(const struct job_load *load, uint32_t spec, struct pod_template *out)
{
	const struct doc *doc = &load->jobs->doc;
	uint32_t containers = DOC_NONE, inits = DOC_NONE, at;
	uint64_t together = 0, beside = 0, most = 0;
	int32_t code = doc_need(doc, spec, "containers", &at, load->complaint);
	if (code == FROND_OK)
		code = containers_find(load, spec, "initContainers", &inits);
	if (code == FROND_OK)
		code = containers_find(load, spec, "containers", &containers);
	out->gpus_at = containers == DOC_NONE ? spec : containers;
	at = code == FROND_OK && inits != DOC_NONE ? doc->values[inits].first : DOC_NONE;
	for (; at != DOC_NONE && code == FROND_OK; at = doc->values[at].next) {
		uint32_t gpus = 0;
		bool sidecar = false;
		code = container_read(load, at, &gpus, &sidecar);
		beside += sidecar ? gpus : 0;
		uint64_t now = sidecar ? beside : beside + gpus;
		most = now > most ? now : most;
	}
	at = code == FROND_OK && containers != DOC_NONE ? doc->values[containers].first : DOC_NONE;
	for (; at != DOC_NONE && code == FROND_OK; at = doc->values[at].next) {
		uint32_t gpus = 0;
		bool sidecar;
		code = container_read(load, at, &gpus, &sidecar);
		together += gpus;
	}
	most = together + beside > most ? together + beside : most;
	if (code == FROND_OK && most > FROND_GPUS_MAX)
		return doc_complain(doc, out->gpus_at, load->complaint, "ask for %llu GPUs; a pod has at most %u",
				    (unsigned long long)most, FROND_GPUS_MAX);
	out->gpus = (uint32_t)most;
	return code;
}

static int32_t containers_find(const struct job_load *load, uint32_t spec, const char *key, uint32_t *out)
{
	const struct doc *doc = &load->jobs->doc;
	uint32_t at = doc_get(doc, spec, key);
	if (at == DOC_NONE || doc_is_null(doc, at))
		return FROND_OK;
	*out = at;
	return doc_list(doc, at, load->complaint);
}

/* Of each resource the limit, else the request. */
static int32_t container_read(const struct job_load *load, uint32_t at, uint32_t *gpus, bool *sidecar)
{
	static const char *const lists[] = {"limits", "requests"};
	const struct doc *doc = &load->jobs->doc;
	uint32_t resources = DOC_NONE, list[2] = {DOC_NONE, DOC_NONE};
	int32_t code = doc_map(doc, at, load->complaint);
	if (code != FROND_OK)
		return code;
	uint32_t policy = doc_get(doc, at, "restartPolicy");
	*sidecar = policy != DOC_NONE && doc->values[policy].kind == DOC_SCALAR &&
		   strcmp(doc_scalar(doc, policy), "Always") == 0;
	code = map_find(load, at, "resources", &resources);
	for (uint32_t i = 0; i < 2 && code == FROND_OK && resources != DOC_NONE; i++)
		code = map_find(load, resources, lists[i], &list[i]);
	for (uint32_t r = 0; r < GPU_RESOURCES && code == FROND_OK; r++) {
		uint32_t value = DOC_NONE, number = 0;
		for (uint32_t i = 0; i < 2 && value == DOC_NONE; i++)
			value = list[i] == DOC_NONE ? DOC_NONE : doc_get(doc, list[i], gpu_resources[r]);
		if (value != DOC_NONE)
			code = quantity_read(load, value, &number);
		*gpus += number;
	}
	return code;
}

/* Of Kubernetes' quantities the whole numbers, with or without quotes: there are no parts of a GPU here. */
static int32_t quantity_read(const struct job_load *load, uint32_t at, uint32_t *out)
{
	const struct doc *doc = &load->jobs->doc;
	const char *text = NULL;
	int32_t code = doc_word(doc, at, &text, load->complaint);
	if (code != FROND_OK)
		return code;
	size_t len = strlen(text);
	uint32_t number = 0;
	for (size_t i = 0; i < len && i < 3; i++)
		number = number * 10 + (uint32_t)(text[i] - '0');
	if (len == 0 || len > 2 || strspn(text, "0123456789") != len || number > FROND_GPUS_MAX)
		return doc_complain(doc, at, load->complaint,
				    "must be a whole number of GPUs between 0 and %u, got \"%s\"", FROND_GPUS_MAX,
				    shown(text, len).text);
	*out = number;
	return FROND_OK;
}
