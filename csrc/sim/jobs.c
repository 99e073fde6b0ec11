/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/jobs.h"

#include "sim/jobload.h"
#include "text/duration.h"
#include "text/kubename.h"
#include "text/wish.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define JOBS_MAX     FROND_PODS_MAX
#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

static int32_t list_read(struct job_load *load);
static int32_t entry_read(const struct job_load *load, uint32_t at, struct job *job);
static int32_t removal_read(const struct job_load *load, uint32_t at, struct job *job);
static int32_t name_read(const struct job_load *load, uint32_t at, struct job *job);
static int32_t size_read(const struct job_load *load, uint32_t at, struct job *job);
static int32_t gpus_read(const struct job_load *load, uint32_t at, struct job *job);
static int32_t eviction_read(const struct job_load *load, uint32_t at, struct job *job);
static int32_t annotations_read(const struct job_load *load, uint32_t at, struct job *job);
static int32_t names_match(const struct job_load *load);

/* Manifests say what they are; the form of reference 11 has nothing but `jobs`. */
static bool is_manifest(const struct doc *doc)
{
	for (uint32_t root = 0; root != DOC_NONE; root = doc->values[root].next) {
		if (doc_is_null(doc, root))
			continue;
		return doc->values[root].kind == DOC_MAP &&
		       (doc_get(doc, root, "kind") != DOC_NONE || doc_get(doc, root, "apiVersion") != DOC_NONE);
	}
	return false;
}

int32_t jobs_read(const char *text, uint32_t len, struct jobs *out, struct complaint *complaint)
{
	memset(out, 0, sizeof(*out));
	struct jobs jobs = {0};
	struct job_load load = {.jobs = &jobs, .complaint = complaint};
	int32_t code = args_read(NULL, 0, &load.args, complaint);
	if (code == FROND_OK)
		code = doc_read_stream(text, len, &jobs.doc, complaint);
	if (code == FROND_OK)
		code = is_manifest(&jobs.doc) ? manifests_read(&load) : list_read(&load);
	if (code == FROND_OK)
		code = names_match(&load);
	if (code == FROND_OK)
		*out = jobs;
	else
		jobs_free(&jobs);
	return code;
}

void jobs_free(struct jobs *jobs)
{
	doc_free(&jobs->doc);
	for (uint32_t i = 0; i < jobs->count; i++) {
		free(jobs->list[i].name_made);
		free(jobs->list[i].gpus);
		free(jobs->list[i].annotations);
		free(jobs->list[i].claim_json);
		free(jobs->list[i].claim);
	}
	free(jobs->list);
	memset(jobs, 0, sizeof(*jobs));
}

uint64_t job_gpus(const struct job *job, uint32_t *out)
{
	uint64_t sum = 0;
	for (uint32_t rank = 0; rank < job->members; rank++)
		sum += out[rank] = job->gpus != NULL ? job->gpus[rank] : job->gpus_each;
	return sum;
}

const char *job_annotation(const struct jobs *jobs, const struct job *job, const char *key)
{
	for (uint32_t i = 0; i < job->annotation_count; i++)
		if (strcmp(doc_key(&jobs->doc, job->annotations[i]), key) == 0)
			return doc_scalar(&jobs->doc, job->annotations[i]);
	return NULL;
}

int32_t job_add(struct job_load *load, uint32_t at, struct job **out)
{
	struct jobs *jobs = load->jobs;
	if (jobs->count == JOBS_MAX)
		return doc_complain(&jobs->doc, at, load->complaint, "is one job too many; at most %u are allowed",
				    JOBS_MAX);
	if (jobs->count == load->room) {
		uint32_t room = load->room == 0 ? 64 : load->room * 2;
		struct job *grown = realloc(jobs->list, room * sizeof(*grown));
		if (grown == NULL)
			return complain(load->complaint, 1, "document: out of memory");
		jobs->list = grown;
		load->room = room;
	}
	*out = &jobs->list[jobs->count++];
	**out = (struct job){.at = at, .removes = FROND_NONE, .ends_in_ms = JOB_NEVER_ENDS};
	return FROND_OK;
}

int32_t job_annotate(const struct job_load *load, struct job *job, uint32_t at)
{
	uint32_t *grown = realloc(job->annotations, (job->annotation_count + 1) * sizeof(*grown));
	if (grown == NULL)
		return complain(load->complaint, 1, "document: out of memory");
	job->annotations = grown;
	job->annotations[job->annotation_count++] = at;
	return FROND_OK;
}

static int32_t list_read(struct job_load *load)
{
	static const char *const known[] = {"jobs"};
	struct jobs *jobs = load->jobs;
	const struct doc *doc = &jobs->doc;
	uint32_t list = DOC_NONE, second = doc->values[0].next;
	if (second != DOC_NONE)
		return complain(load->complaint, doc->values[second].key_line,
				"document: a second one starts here; one a file is allowed");
	int32_t code = doc_map_of(doc, 0, known, COUNT(known), load->complaint);
	if (code == FROND_OK)
		code = doc_need(doc, 0, "jobs", &list, load->complaint);
	if (code == FROND_OK)
		code = doc_list(doc, list, load->complaint);
	uint32_t at = code == FROND_OK ? doc->values[list].first : DOC_NONE;
	for (; at != DOC_NONE && code == FROND_OK; at = doc->values[at].next) {
		struct job *job;
		code = job_add(load, at, &job);
		if (code == FROND_OK)
			code = entry_read(load, at, job);
	}
	return code;
}

static int32_t entry_read(const struct job_load *load, uint32_t at, struct job *job)
{
	static const char *const known[] = {"name",     "members", "gpusPerMember", "minMember", "priority",
					    "budgeted", "endsIn",  "annotations",   "claim",     "remove"};
	const struct doc *doc = &load->jobs->doc;
	int32_t code = doc_map_of(doc, at, known, COUNT(known), load->complaint);
	if (code != FROND_OK)
		return code;
	uint32_t removal = doc_get(doc, at, "remove"), claim = doc_get(doc, at, "claim");
	uint32_t name = DOC_NONE;
	if (removal != DOC_NONE)
		return removal_read(load, removal, job);
	code = doc_need(doc, at, "name", &name, load->complaint);
	if (code == FROND_OK)
		code = name_read(load, name, job);
	if (code == FROND_OK)
		code = size_read(load, at, job);
	if (code == FROND_OK)
		code = eviction_read(load, at, job);
	if (code == FROND_OK && claim != DOC_NONE)
		code = claim_load(load, claim, doc_path(doc, claim).text, &job->claim_json, &job->claim);
	return code == FROND_OK ? annotations_read(load, at, job) : code;
}

/* What decides whether others may have its place, and when it gives it back itself. */
static int32_t eviction_read(const struct job_load *load, uint32_t at, struct job *job)
{
	const struct doc *doc = &load->jobs->doc;
	uint32_t priority = doc_get(doc, at, "priority"), budgeted = doc_get(doc, at, "budgeted");
	uint32_t ends_in = doc_get(doc, at, "endsIn");
	int32_t code = FROND_OK;
	if (priority != DOC_NONE) {
		int64_t number = 0;
		code = doc_whole(doc, priority, INT32_MIN, INT32_MAX, &number, load->complaint);
		job->priority = (int32_t)number;
	}
	if (code == FROND_OK && budgeted != DOC_NONE)
		code = doc_bool(doc, budgeted, &job->budgeted, load->complaint);
	if (code != FROND_OK || ends_in == DOC_NONE)
		return code;
	const char *text = NULL;
	int64_t ms = 0;
	code = doc_word(doc, ends_in, &text, load->complaint);
	if (code != FROND_OK)
		return code;
	if (duration_read(text, strlen(text), &ms) != NULL || ms == WAIT_FOREVER)
		return doc_complain(doc, ends_in, load->complaint,
				    "must be a duration of at most 1000h such as 45m, or absent for never, got \"%s\"",
				    shown(text, strlen(text)).text);
	job->ends_in_ms = ms;
	return FROND_OK;
}

/* A claim is read from JSON, so it is written as such first; its complaints get the line where it begins. */
int32_t claim_load(const struct job_load *load, uint32_t at, const char *path, char **json, struct claim **claim)
{
	const struct doc *doc = &load->jobs->doc;
	struct complaint wrong;
	int32_t code = doc_map(doc, at, load->complaint);
	if (code != FROND_OK)
		return code;
	*json = doc_json(doc, at);
	*claim = calloc(1, sizeof(**claim));
	if (*json == NULL || *claim == NULL)
		return complain(load->complaint, 1, "document: out of memory");
	if (claim_read(*json, (uint32_t)strlen(*json), *claim, &wrong) == FROND_OK)
		return FROND_OK;
	return complain(load->complaint, doc->values[at].key_line, "%s%s", path, wrong.text + strlen("claim"));
}

/* `{remove: NAME}`; which job that is, names_match() says. */
static int32_t removal_read(const struct job_load *load, uint32_t at, struct job *job)
{
	const struct doc *doc = &load->jobs->doc;
	if (doc->values[doc->values[at].parent].count > 1)
		return doc_complain(doc, at, load->complaint, "must be alone in its entry");
	job->removes = 0;
	return name_read(load, at, job);
}

static int32_t name_read(const struct job_load *load, uint32_t at, struct job *job)
{
	const struct doc *doc = &load->jobs->doc;
	job->at = at;
	int32_t code = doc_word(doc, at, &job->name, load->complaint);
	if (code == FROND_OK && !is_domain_name(job->name, strlen(job->name)))
		return doc_complain(doc, at, load->complaint,
				    "\"%s\" is not a job's name; allowed are " DOMAIN_NAME_RULE,
				    shown(job->name, strlen(job->name)).text);
	return code;
}

static int32_t size_read(const struct job_load *load, uint32_t at, struct job *job)
{
	const struct doc *doc = &load->jobs->doc;
	uint32_t members = DOC_NONE, gpus = DOC_NONE, min_member = doc_get(doc, at, "minMember");
	int64_t number = 0;
	int32_t code = doc_need(doc, at, "members", &members, load->complaint);
	if (code == FROND_OK)
		code = doc_whole(doc, members, 1, FROND_MEMBERS_MAX, &number, load->complaint);
	job->members = job->min_member = (uint32_t)number;
	if (code == FROND_OK)
		code = doc_need(doc, at, "gpusPerMember", &gpus, load->complaint);
	if (code == FROND_OK)
		code = gpus_read(load, gpus, job);
	if (code == FROND_OK && min_member != DOC_NONE) {
		code = doc_whole(doc, min_member, 1, job->members, &number, load->complaint);
		job->min_member = (uint32_t)number;
	}
	return code;
}

static int32_t gpus_read(const struct job_load *load, uint32_t at, struct job *job)
{
	const struct doc *doc = &load->jobs->doc;
	int64_t number = 0;
	if (doc->values[at].kind != DOC_LIST) {
		int32_t code = doc_whole(doc, at, 1, FROND_GPUS_MAX, &number, load->complaint);
		job->gpus_each = (uint32_t)number;
		return code;
	}
	if (doc->values[at].count != job->members)
		return doc_complain(doc, at, load->complaint, "has %u entries; %u are needed, one for each member",
				    doc->values[at].count, job->members);
	job->gpus = malloc(job->members);
	if (job->gpus == NULL)
		return complain(load->complaint, 1, "document: out of memory");
	int32_t code = FROND_OK;
	uint32_t i = doc->values[at].first;
	for (uint32_t rank = 0; i != DOC_NONE && code == FROND_OK; i = doc->values[i].next) {
		code = doc_whole(doc, i, 0, FROND_GPUS_MAX, &number, load->complaint);
		job->gpus[rank++] = (uint8_t)number;
	}
	return code;
}

static int32_t annotations_read(const struct job_load *load, uint32_t at, struct job *job)
{
	const struct doc *doc = &load->jobs->doc;
	uint32_t map = doc_get(doc, at, "annotations");
	if (map == DOC_NONE)
		return FROND_OK;
	int32_t code = doc_map(doc, map, load->complaint);
	uint32_t i = code == FROND_OK ? doc->values[map].first : DOC_NONE;
	for (; i != DOC_NONE && code == FROND_OK; i = doc->values[i].next) {
		code = annotation_check(load, map, i);
		if (code == FROND_OK)
			code = job_annotate(load, job, i);
	}
	return code;
}

static struct frond_pair pair_of(const struct doc *doc, uint32_t at)
{
	const struct doc_value *value = &doc->values[at];
	return (struct frond_pair){{value->key_at, value->key_len}, {value->scalar_at, value->scalar_len}};
}

/* One at a time, so that the line is known; a key twice cannot come out of a document. */
int32_t annotation_check(const struct job_load *load, uint32_t map, uint32_t at)
{
	const struct doc *doc = &load->jobs->doc;
	const struct doc_value *value = &doc->values[at];
	const char *text;
	int32_t code = doc_word(doc, at, &text, load->complaint);
	if (code != FROND_OK)
		return code;
	/* A segment-level is wrong without a segment-size, which comes with each of the others. */
	uint32_t size = doc_get(doc, map, "topology.scheduler/segment-size");
	struct frond_pair pairs[2] = {pair_of(doc, at)};
	if (size != DOC_NONE && size != at)
		pairs[1] = pair_of(doc, size);
	struct complaint wrong;
	struct wish wish;
	if (wish_read(pairs, size != DOC_NONE && size != at ? 2 : 1, doc->text, doc->text_len, &load->args, &wish,
		      &wrong) == FROND_OK)
		return FROND_OK;
	return complain(load->complaint, value->line, "%s.%s", doc_path(doc, map).text, wrong.text);
}

/* ---- names ----------------------------------------------------------------------------------------------------- */

struct entry {
	const char *name;
	uint32_t index;
};

static int entry_compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = strcmp(x->name, y->name);
	return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

/* Among the entries of one name, in file order, a job and its removal take turns. The first that is out of turn in the
 * file is reported. */
static int32_t names_match(const struct job_load *load)
{
	struct jobs *jobs = load->jobs;
	struct entry *entries = calloc((uint64_t)jobs->count + 1, sizeof(*entries));
	if (entries == NULL)
		return complain(load->complaint, 1, "document: out of memory");
	for (uint32_t i = 0; i < jobs->count; i++)
		entries[i] = (struct entry){.name = jobs->list[i].name, .index = i};
	qsort(entries, jobs->count, sizeof(*entries), entry_compare);

	uint32_t live = FROND_NONE, wrong = FROND_NONE;
	for (uint32_t i = 0; i < jobs->count; i++) {
		struct job *job = &jobs->list[entries[i].index];
		bool removal = job->removes != FROND_NONE;
		if (i > 0 && strcmp(entries[i - 1].name, entries[i].name) != 0)
			live = FROND_NONE;
		if (removal == (live == FROND_NONE) && entries[i].index < wrong)
			wrong = entries[i].index;
		if (removal)
			job->removes = live == FROND_NONE ? 0 : live;
		live = removal ? FROND_NONE : entries[i].index;
	}
	free(entries);
	if (wrong == FROND_NONE)
		return FROND_OK;

	const struct job *job = &jobs->list[wrong];
	return doc_complain(&jobs->doc, job->at, load->complaint,
			    job->removes != FROND_NONE
				    ? "there is no job \"%s\" at this point; name one that came before"
				    : "there is a job \"%s\" already; remove it first or choose another name",
			    shown(job->name, strlen(job->name)).text);
}
