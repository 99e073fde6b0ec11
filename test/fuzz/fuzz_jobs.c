/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is a jobs file or Kubernetes manifests, YAML or JSON. What jobs_read() accepts keeps its own limits.
 */
#include "fuzz.h"

#include "sim/jobs.h"

static void check_job(const struct jobs *jobs, uint32_t at)
{
	static uint32_t gpus[FROND_MEMBERS_MAX];
	const struct job *job = &jobs->list[at];
	MUST(job->name != NULL && job->name[0] != 0);
	if (job->removes != FROND_NONE) {
		MUST(job->removes < at && jobs->list[job->removes].removes == FROND_NONE);
		return;
	}
	MUST(job->members >= 1 && job->members <= FROND_MEMBERS_MAX);
	MUST(job->min_member >= 1 && job->min_member <= job->members);
	MUST(job->ends_in_ms == JOB_NEVER_ENDS || (job->ends_in_ms >= 0 && job->ends_in_ms <= 1000 * 3600000ll));
	uint64_t sum = 0;
	uint64_t said = job_gpus(job, gpus);
	for (uint32_t i = 0; i < job->members; i++) {
		MUST(gpus[i] <= FROND_GPUS_MAX);
		sum += gpus[i];
	}
	MUST(sum == said);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jobs jobs;
	struct complaint complaint;
	int32_t code = jobs_read((const char *)data, (uint32_t)size, &jobs, &complaint);
	MUST(code == FROND_OK || code == FROND_BAD);
	if (code == FROND_BAD) {
		MUST(complaint.line > 0);
		must_be_sentence(complaint.text, strlen(complaint.text));
		return 0;
	}
	for (uint32_t i = 0; i < jobs.count; i++)
		check_job(&jobs, i);
	jobs_free(&jobs);
	return 0;
}
