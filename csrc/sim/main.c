/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frond-sim: the engine alone. A fabric and jobs in, a plan out (reference 11). This file reads the command line and
 * the files and turns outcomes into exit codes and lines.
 */
#include "sim/bench.h"
#include "sim/moves.h"
#include "sim/options.h"
#include "sim/plan.h"
#include "sim/preempt.h"
#include "sim/replay.h"
#include "sim/reserve.h"
#include "sim/source.h"

#include <stdlib.h>
#include <string.h>

enum { EXIT_ANSWERED = 0, EXIT_INPUT = 2, EXIT_BROKEN = 3 };

static int jobs_verb(const struct options *options);
static int replay_verb(const struct options *options);
static int bench_verb(const struct options *options);
static int32_t fabric_load(const struct options *options, struct source *source, struct fabricfile *fabric,
			   struct complaint *complaint);
static int32_t jobs_load(const char *path, struct jobs *jobs, struct complaint *complaint);
static int answer_print(const struct options *options, const struct planning *planning, const struct failure *failures,
			uint32_t job);
static int bad_input(const char *file, const struct complaint *complaint);
static int bad_program(const char *sentence);

int main(int argc, char *argv[])
{
	struct options options;
	struct complaint complaint;
	if (options_read(argc, argv, &options, &complaint) != FROND_OK) {
		fprintf(stderr, "frond-sim: %s\n", complaint.text);
		return EXIT_INPUT;
	}
	switch (options.verb) {
	case VERB_PLAN:
	case VERB_RECOVER:
	case VERB_DEFRAG:
	case VERB_PREEMPT:
	case VERB_RESERVE:
		return jobs_verb(&options);
	case VERB_REPLAY:
		return replay_verb(&options);
	case VERB_BENCH:
		return bench_verb(&options);
	case VERB_HELP:
		fputs(options.help, stdout);
		break;
	case VERB_VERSION:
		printf("frond-sim, ABI %u\n", frond_abi_get()->version);
		break;
	}
	return fflush(stdout) == 0 ? EXIT_ANSWERED : bad_program("cannot write to stdout");
}

/* The job that defrag, preempt or reserve is about: the first entry that is called so. */
static int32_t job_find(const struct jobs *jobs, const char *name, uint32_t *out, struct complaint *complaint)
{
	for (*out = 0; *out < jobs->count; ++*out)
		if (jobs->list[*out].removes == FROND_NONE && strcmp(jobs->list[*out].name, name) == 0)
			return FROND_OK;
	return complain(complaint, 1, "there is no job \"%s\" in the jobs file", shown(name, strlen(name)).text);
}

/* Everything is read and checked before anything is planned, and nothing is printed unless all of it is. */
static int jobs_verb(const struct options *options)
{
	struct source source = {0};
	struct fabricfile fabric = {0};
	struct jobs jobs = {0};
	struct failure *failures = NULL;
	struct complaint complaint;
	uint32_t job = FROND_NONE;
	int status;
	if (fabric_load(options, &source, &fabric, &complaint) != FROND_OK) {
		status = bad_input(options->fabric != NULL ? options->fabric : "--cluster", &complaint);
		goto out;
	}
	if (jobs_load(options->jobs, &jobs, &complaint) != FROND_OK) {
		status = bad_input(options->jobs, &complaint);
		goto out;
	}
	if (options->fail != NULL && failures_read(options->fail, &fabric, &failures, &complaint) != FROND_OK) {
		status = bad_input("--fail", &complaint);
		goto out;
	}
	if (options->for_job != NULL && job_find(&jobs, options->for_job, &job, &complaint) != FROND_OK) {
		status = bad_input("--for", &complaint);
		goto out;
	}
	struct planning planning = {.fabric = &fabric,
				    .fabric_text = options->fabric != NULL ? source.text : options->cluster,
				    .fabric_len = source.len,
				    .jobs = &jobs};
	if (options->cluster != NULL) {
		planning.fabric_text +=
			strspn(options->cluster, " \t\r\n"); /* create() knows the form by its first word */
		planning.fabric_len = (uint32_t)strlen(planning.fabric_text);
	}
	status = answer_print(options, &planning, failures, job);
out:
	free(failures);
	jobs_free(&jobs);
	fabricfile_free(&fabric);
	source_free(&source);
	return status;
}

static int replay_verb(const struct options *options)
{
	struct source source = {0};
	struct complaint complaint;
	int status = EXIT_ANSWERED;
	if (source_read(options->recording, &source, &complaint) != FROND_OK ||
	    replay_run(source.text, source.len, stdout, &complaint) != FROND_OK)
		status = bad_input(options->recording, &complaint);
	source_free(&source);
	if (status == EXIT_ANSWERED && fflush(stdout) != 0)
		status = bad_program("cannot write to stdout");
	return status;
}

/* Over a bound is an answer, not a failure of the program: the table says so. */
static int bench_verb(const struct options *options)
{
	struct complaint complaint;
	if (bench_run(options->bench_case, options->nodes, options->repeat, stdout, &complaint) != FROND_OK) {
		fprintf(stderr, "frond-sim: %s\n", complaint.text);
		return EXIT_INPUT;
	}
	return fflush(stdout) == 0 ? EXIT_ANSWERED : bad_program("cannot write to stdout");
}

static int32_t fabric_load(const struct options *options, struct source *source, struct fabricfile *fabric,
			   struct complaint *complaint)
{
	if (options->cluster != NULL) {
		uint64_t len = strlen(options->cluster);
		return fabricfile_read_line(options->cluster, len > UINT32_MAX ? UINT32_MAX : (uint32_t)len, fabric,
					    complaint);
	}
	int32_t code = source_read(options->fabric, source, complaint);
	return code == FROND_OK ? fabricfile_read(source->text, source->len, fabric, complaint) : code;
}

static int32_t jobs_load(const char *path, struct jobs *jobs, struct complaint *complaint)
{
	struct source source;
	int32_t code = source_read(path, &source, complaint);
	if (code == FROND_OK)
		code = jobs_read(source.text, source.len, jobs, complaint);
	source_free(&source);
	return code;
}

static int answer_print(const struct options *options, const struct planning *planning, const struct failure *failures,
			uint32_t job)
{
	char *text = NULL;
	size_t len = 0;
	struct complaint complaint;
	FILE *stream = open_memstream(&text, &len);
	if (stream == NULL)
		return bad_program("out of memory");
	struct report report = {.stream = stream, .format = options->format, .fabric = planning->fabric};
	int32_t code = options->verb == VERB_PLAN      ? plan_run(planning, &report, &complaint)
		       : options->verb == VERB_RECOVER ? recover_run(planning, failures, &report, &complaint)
		       : options->verb == VERB_DEFRAG  ? defrag_run(planning, job, &report, &complaint)
		       : options->verb == VERB_PREEMPT ? preempt_run(planning, job, &report, &complaint)
						       : reserve_run(planning, job, &report, &complaint);
	bool whole = ferror(stream) == 0;
	whole = fclose(stream) == 0 && whole;
	int status = EXIT_ANSWERED;
	if (code != FROND_OK)
		status = bad_program(complaint.text);
	else if (!whole)
		status = bad_program("out of memory");
	else if (fwrite(text, 1, len, stdout) != len || fflush(stdout) != 0)
		status = bad_program("cannot write to stdout");
	free(text);
	return status;
}

/* "FILE:LINE: PATH: what is wrong, what is allowed", on one line whatever the file is called. */
static int bad_input(const char *file, const struct complaint *complaint)
{
	for (; *file != '\0'; file++)
		fputc((unsigned char)*file < 0x20 || *file == 0x7f ? '?' : *file, stderr);
	fprintf(stderr, ":%u: %s\n", complaint->line, complaint->text);
	return EXIT_INPUT;
}

static int bad_program(const char *sentence)
{
	fprintf(stderr, "frond-sim: %s\n", sentence);
	return EXIT_BROKEN;
}
