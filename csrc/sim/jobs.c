/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/jobs.h"

#include "text/duration.h"
#include "text/kubename.h"
#include "text/wish.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

struct reading {
	struct jobs *jobs;
	struct args args; /* defaults, to check annotations against */
	struct complaint *complaint;
};

static int32_t list_read(struct reading *reading);
static int32_t entry_read(const struct reading *reading, uint32_t at, struct job *job);
static int32_t claim_check(const struct reading *reading, uint32_t at, struct job *job);
static int32_t removal_read(const struct reading *reading, uint32_t at, struct job *job);
static int32_t name_read(const struct reading *reading, uint32_t at, struct job *job);
static int32_t size_read(const struct reading *reading, uint32_t at, struct job *job);
static int32_t gpus_read(const struct reading *reading, uint32_t at, struct job *job);
static int32_t eviction_read(const struct reading *reading, uint32_t at, struct job *job);
static int32_t annotations_read(const struct reading *reading, uint32_t at, struct job *job);
static int32_t annotation_check(const struct reading *reading, uint32_t map, uint32_t at);
static int32_t names_match(const struct reading *reading);

int32_t jobs_read(const char *text, uint32_t len, struct jobs *out, struct complaint *complaint)
{
	memset(out, 0, sizeof(*out));
	struct jobs jobs = {0};
	struct reading reading = {.jobs = &jobs, .complaint = complaint};
	int32_t code = args_read(NULL, 0, &reading.args, complaint);
	if (code == FROND_OK)
		code = doc_read(text, len, &jobs.doc, complaint);
	if (code == FROND_OK)
		code = list_read(&reading);
	if (code == FROND_OK)
		code = names_match(&reading);
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
		free(jobs->list[i].claim_json);
		free(jobs->list[i].claim);
	}
	free(jobs->list);
	memset(jobs, 0, sizeof(*jobs));
}

uint64_t jobs_gpus(const struct jobs *jobs, const struct job *job, uint32_t *out)
{
	uint64_t sum = 0;
	uint32_t at = job->gpus_each != 0 ? DOC_NONE : jobs->doc.values[job->gpus_list].first;
	for (uint32_t rank = 0; rank < job->members; rank++) {
		int64_t gpus = job->gpus_each;
		if (job->gpus_each == 0) {
			struct complaint unused;
			int32_t code = doc_whole(&jobs->doc, at, 0, FROND_GPUS_MAX, &gpus, &unused);
			assert(code == FROND_OK); /* checked by jobs_read() */
			at = jobs->doc.values[at].next;
		}
		out[rank] = (uint32_t)gpus;
		sum += (uint64_t)gpus;
	}
	return sum;
}

static int32_t list_read(struct reading *reading)
{
	static const char *const known[] = {"jobs"};
	struct jobs *jobs = reading->jobs;
	const struct doc *doc = &jobs->doc;
	uint32_t list = DOC_NONE;
	int32_t code = doc_map_of(doc, 0, known, COUNT(known), reading->complaint);
	if (code == FROND_OK)
		code = doc_need(doc, 0, "jobs", &list, reading->complaint);
	if (code == FROND_OK)
		code = doc_list(doc, list, reading->complaint);
	if (code != FROND_OK)
		return code;
	jobs->list = calloc((uint64_t)doc->values[list].count + 1, sizeof(*jobs->list));
	if (jobs->list == NULL)
		return complain(reading->complaint, 1, "document: out of memory");
	for (uint32_t at = doc->values[list].first; at != DOC_NONE && code == FROND_OK; at = doc->values[at].next)
		code = entry_read(reading, at, &jobs->list[jobs->count++]);
	return code;
}

static int32_t entry_read(const struct reading *reading, uint32_t at, struct job *job)
{
	static const char *const known[] = {"name",     "members", "gpusPerMember", "minMember", "priority",
					    "budgeted", "endsIn",  "annotations",   "claim",     "remove"};
	const struct doc *doc = &reading->jobs->doc;
	*job = (struct job){
		.removes = FROND_NONE, .gpus_list = DOC_NONE, .annotations = DOC_NONE, .ends_in_ms = JOB_NEVER_ENDS};
	int32_t code = doc_map_of(doc, at, known, COUNT(known), reading->complaint);
	if (code != FROND_OK)
		return code;
	uint32_t removal = doc_get(doc, at, "remove"), claim = doc_get(doc, at, "claim");
	uint32_t name = DOC_NONE;
	if (removal != DOC_NONE)
		return removal_read(reading, removal, job);
	code = doc_need(doc, at, "name", &name, reading->complaint);
	if (code == FROND_OK)
		code = name_read(reading, name, job);
	if (code == FROND_OK)
		code = size_read(reading, at, job);
	if (code == FROND_OK)
		code = eviction_read(reading, at, job);
	if (code == FROND_OK && claim != DOC_NONE)
		code = claim_check(reading, claim, job);
	return code == FROND_OK ? annotations_read(reading, at, job) : code;
}

/* What decides whether others may have its place, and when it gives it back itself. */
static int32_t eviction_read(const struct reading *reading, uint32_t at, struct job *job)
{
	const struct doc *doc = &reading->jobs->doc;
	uint32_t priority = doc_get(doc, at, "priority"), budgeted = doc_get(doc, at, "budgeted");
	uint32_t ends_in = doc_get(doc, at, "endsIn");
	int32_t code = FROND_OK;
	if (priority != DOC_NONE) {
		int64_t number = 0;
		code = doc_whole(doc, priority, INT32_MIN, INT32_MAX, &number, reading->complaint);
		job->priority = (int32_t)number;
	}
	if (code == FROND_OK && budgeted != DOC_NONE)
		code = doc_bool(doc, budgeted, &job->budgeted, reading->complaint);
	if (code != FROND_OK || ends_in == DOC_NONE)
		return code;
	const char *text = NULL;
	int64_t ms = 0;
	code = doc_word(doc, ends_in, &text, reading->complaint);
	if (code != FROND_OK)
		return code;
	if (duration_read(text, strlen(text), &ms) != NULL || ms == WAIT_FOREVER)
		return doc_complain(doc, ends_in, reading->complaint,
				    "must be a duration of at most 1000h such as 45m, or absent for never, got \"%s\"",
				    shown(text, strlen(text)).text);
	job->ends_in_ms = ms;
	return FROND_OK;
}

/* A claim is read from JSON, so it is written as such first; its complaints get the line where it begins. */
static int32_t claim_check(const struct reading *reading, uint32_t at, struct job *job)
{
	const struct doc *doc = &reading->jobs->doc;
	struct complaint wrong;
	int32_t code = doc_map(doc, at, reading->complaint);
	if (code != FROND_OK)
		return code;
	job->claim_json = doc_json(doc, at);
	job->claim = calloc(1, sizeof(*job->claim));
	if (job->claim_json == NULL || job->claim == NULL)
		return complain(reading->complaint, 1, "document: out of memory");
	if (claim_read(job->claim_json, (uint32_t)strlen(job->claim_json), job->claim, &wrong) == FROND_OK)
		return FROND_OK;
	return complain(reading->complaint, doc->values[at].key_line, "%s.%s",
			doc_path(doc, doc->values[at].parent).text, wrong.text);
}

/* `{remove: NAME}`; which job that is, names_match() says. */
static int32_t removal_read(const struct reading *reading, uint32_t at, struct job *job)
{
	const struct doc *doc = &reading->jobs->doc;
	if (doc->values[doc->values[at].parent].count > 1)
		return doc_complain(doc, at, reading->complaint, "must be alone in its entry");
	job->removes = 0;
	return name_read(reading, at, job);
}

static int32_t name_read(const struct reading *reading, uint32_t at, struct job *job)
{
	const struct doc *doc = &reading->jobs->doc;
	int32_t code = doc_word(doc, at, &job->name, reading->complaint);
	if (code == FROND_OK && !is_domain_name(job->name, strlen(job->name)))
		return doc_complain(doc, at, reading->complaint,
				    "\"%s\" is not a job's name; allowed are " DOMAIN_NAME_RULE,
				    shown(job->name, strlen(job->name)).text);
	return code;
}

static int32_t size_read(const struct reading *reading, uint32_t at, struct job *job)
{
	const struct doc *doc = &reading->jobs->doc;
	uint32_t members = DOC_NONE, gpus = DOC_NONE, min_member = doc_get(doc, at, "minMember");
	int64_t number = 0;
	int32_t code = doc_need(doc, at, "members", &members, reading->complaint);
	if (code == FROND_OK)
		code = doc_whole(doc, members, 1, FROND_MEMBERS_MAX, &number, reading->complaint);
	job->members = job->min_member = (uint32_t)number;
	if (code == FROND_OK)
		code = doc_need(doc, at, "gpusPerMember", &gpus, reading->complaint);
	if (code == FROND_OK)
		code = gpus_read(reading, gpus, job);
	if (code == FROND_OK && min_member != DOC_NONE) {
		code = doc_whole(doc, min_member, 1, job->members, &number, reading->complaint);
		job->min_member = (uint32_t)number;
	}
	return code;
}

static int32_t gpus_read(const struct reading *reading, uint32_t at, struct job *job)
{
	const struct doc *doc = &reading->jobs->doc;
	int64_t number = 0;
	if (doc->values[at].kind != DOC_LIST) {
		int32_t code = doc_whole(doc, at, 1, FROND_GPUS_MAX, &number, reading->complaint);
		job->gpus_each = (uint32_t)number;
		return code;
	}
	if (doc->values[at].count != job->members)
		return doc_complain(doc, at, reading->complaint, "has %u entries; %u are needed, one for each member",
				    doc->values[at].count, job->members);
	job->gpus_list = at;
	int32_t code = FROND_OK;
	for (uint32_t i = doc->values[at].first; i != DOC_NONE && code == FROND_OK; i = doc->values[i].next)
		code = doc_whole(doc, i, 0, FROND_GPUS_MAX, &number, reading->complaint);
	return code;
}

static int32_t annotations_read(const struct reading *reading, uint32_t at, struct job *job)
{
	const struct doc *doc = &reading->jobs->doc;
	job->annotations = doc_get(doc, at, "annotations");
	if (job->annotations == DOC_NONE)
		return FROND_OK;
	int32_t code = doc_map(doc, job->annotations, reading->complaint);
	uint32_t i = code == FROND_OK ? doc->values[job->annotations].first : DOC_NONE;
	for (; i != DOC_NONE && code == FROND_OK; i = doc->values[i].next)
		code = annotation_check(reading, job->annotations, i);
	return code;
}

static struct frond_pair pair_of(const struct doc *doc, uint32_t at)
{
	const struct doc_value *value = &doc->values[at];
	return (struct frond_pair){{value->key_at, value->key_len}, {value->scalar_at, value->scalar_len}};
}

/* One at a time, so that the line is known; a key twice cannot come out of a document. */
static int32_t annotation_check(const struct reading *reading, uint32_t map, uint32_t at)
{
	const struct doc *doc = &reading->jobs->doc;
	const struct doc_value *value = &doc->values[at];
	const char *text;
	int32_t code = doc_word(doc, at, &text, reading->complaint);
	if (code != FROND_OK)
		return code;
	/* A segment-level is wrong without a segment-size, which comes with each of the others. */
	uint32_t size = doc_get(doc, map, "topology.scheduler/segment-size");
	struct frond_pair pairs[2] = {pair_of(doc, at)};
	if (size != DOC_NONE && size != at)
		pairs[1] = pair_of(doc, size);
	struct complaint wrong;
	struct wish wish;
	if (wish_read(pairs, size != DOC_NONE && size != at ? 2 : 1, doc->text, doc->text_len, &reading->args, &wish,
		      &wrong) == FROND_OK)
		return FROND_OK;
	return complain(reading->complaint, value->line, "%s.%s", doc_path(doc, map).text, wrong.text);
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
static int32_t names_match(const struct reading *reading)
{
	struct jobs *jobs = reading->jobs;
	struct entry *entries = calloc((uint64_t)jobs->count + 1, sizeof(*entries));
	if (entries == NULL)
		return complain(reading->complaint, 1, "document: out of memory");
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

	const struct doc *doc = &jobs->doc;
	uint32_t at = doc->values[doc_get(doc, 0, "jobs")].first;
	for (uint32_t i = 0; i < wrong; i++)
		at = doc->values[at].next;
	bool removal = jobs->list[wrong].removes != FROND_NONE;
	return doc_complain(doc, doc_get(doc, at, removal ? "remove" : "name"), reading->complaint,
			    removal ? "there is no job \"%s\" at this point; name one that came before"
				    : "there is a job \"%s\" already; remove it first or choose another name",
			    shown(jobs->list[wrong].name, strlen(jobs->list[wrong].name)).text);
}
