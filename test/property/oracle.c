/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oracle.c - the independent proof: random small clusters, answered by frond-sim, checked by brute force.
 *
 * Shares no code with the engine; written from spec 3.1, 3.3, 3.4, 3.5 and 11 alone. The parts, each a header that is
 * included here only:
 *   instance.h  a random cluster with its jobs        files.h   the same as YAML or JSON
 *   rules.h     every placement, the rule, the best   answer.h  what is wrong with an answer
 *   greedy.h    a plain scheduler, for comparison     check.h   an instance from first to last job
 *   selftest.h  right answers pass, wrong ones are caught
 *
 * oracle --sim PATH --count N [--seed S] [--from K]     instances K to K + N - 1 of seed S
 * oracle --self-test [--seed S]
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "answer.h"
#include "check.h"
#include "files.h"
#include "greedy.h"
#include "instance.h"
#include "rules.h"
#include "selftest.h"

enum {
	FAILURES_MAX = 20,
	REPEAT_EVERY = 50,
	SIM_CPU_S = 60,
	PATH_SIZE = 64,
	GREEDY_SHARE_MIN = 20,   /* percent */
	GREEDY_SAMPLE_MIN = 200, /* instances; with fewer the share says nothing */
};

struct options {
	const char *sim;
	int64_t count, from;
	uint64_t seed;
	bool self_test;
};

struct files { /* in a directory of our own, removed at the end */
	char dir[PATH_SIZE], fabric[PATH_SIZE], jobs[PATH_SIZE], out[PATH_SIZE], err[PATH_SIZE];
};

/* ---- files ------------------------------------------------------------------------------------------------------ */

static bool files_open(struct files *files)
{
	snprintf(files->dir, PATH_SIZE, "/tmp/frond-oracle-XXXXXX");
	if (!mkdtemp(files->dir))
		return false;
	snprintf(files->fabric, PATH_SIZE, "%.40s/fabric", files->dir);
	snprintf(files->jobs, PATH_SIZE, "%.40s/jobs", files->dir);
	snprintf(files->out, PATH_SIZE, "%.40s/out", files->dir);
	snprintf(files->err, PATH_SIZE, "%.40s/err", files->dir);
	return true;
}

static void files_close(const struct files *files)
{
	unlink(files->fabric);
	unlink(files->jobs);
	unlink(files->out);
	unlink(files->err);
	rmdir(files->dir);
}

static bool file_write(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	if (!file)
		return false;
	bool written = fputs(text, file) >= 0;
	return fclose(file) == 0 && written;
}

/* The whole file as a string, empty when it cannot be read. The caller frees it. */
static char *file_read(const char *path)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	FILE *file = fopen(path, "r");
	char piece[4096];
	size_t got;

	while (file && (got = fread(piece, 1, sizeof piece, file)) > 0)
		fwrite(piece, 1, got, out);
	if (file)
		fclose(file);
	fclose(out);
	return text;
}

/* ---- the simulator ---------------------------------------------------------------------------------------------- */

static void sim_exec(const char *sim, const struct files *files)
{
	const struct rlimit cpu = {SIM_CPU_S, SIM_CPU_S}; /* a simulator that never ends is a failure, not a wait */
	int in = open(files->jobs, O_RDONLY);
	int out = open(files->out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	int err = open(files->err, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (in < 0 || out < 0 || err < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
		_exit(126);
	setrlimit(RLIMIT_CPU, &cpu);
	execl(sim, sim, "plan", "--fabric", files->fabric, "--jobs", "-", (char *)NULL);
	_exit(127);
}

/* Runs it on the texts. The answer's text, which the caller frees, or NULL with a complaint. */
static char *sim_run(const char *sim, const struct files *files, const char *fabric, const char *jobs,
		     struct complaint *complaint)
{
	int status = 0;

	if (!file_write(files->fabric, fabric) || !file_write(files->jobs, jobs)) {
		complain(complaint, "cannot write to %s", files->dir);
		return NULL;
	}
	fflush(stdout); /* or the child would print it again */
	pid_t child = fork();
	if (child == 0)
		sim_exec(sim, files);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return file_read(files->out);
	char *said = file_read(files->err);
	complain(complaint, "%s ended with %s %d: %.300s", sim, WIFSIGNALED(status) ? "signal" : "code",
		 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), said);
	free(said);
	return NULL;
}

/* F: the same input gives the same bytes, whichever way the files are written. */
static bool sim_repeats(const char *sim, const struct files *files, const struct instance *instance, const char *first,
			struct complaint *complaint)
{
	bool same = true;
	for (int form = 0; same && form < 4; form++) {
		char *fabric = fabric_text(&instance->fabric, form & 1);
		char *jobs = jobs_text(instance, form & 2);
		char *again = sim_run(sim, files, fabric, jobs, complaint);
		same = again != NULL;
		if (again && strcmp(first, again) != 0)
			same = complain(complaint, "fabric as %s and jobs as %s give other bytes",
					form & 1 ? "YAML" : "JSON", form & 2 ? "YAML" : "JSON");
		free(again);
		free(jobs);
		free(fabric);
	}
	return same;
}

/* ---- one instance ----------------------------------------------------------------------------------------------- */

static bool run_one(const struct options *options, const struct files *files, int64_t index, struct stats *stats)
{
	struct instance instance;
	struct complaint complaint = {""};

	instance_make(options->seed, (uint64_t)index, &instance);
	char *fabric = fabric_text(&instance.fabric, index & 1);
	char *jobs = jobs_text(&instance, index & 2);
	char *answer = sim_run(options->sim, files, fabric, jobs, &complaint);
	cJSON *root = answer ? cJSON_Parse(answer) : NULL;
	bool right = false;
	if (answer && !root)
		complain(&complaint, "the answer is not JSON");
	if (root)
		right = check_instance(&instance, root, stats, &complaint);
	if (right && index % REPEAT_EVERY == 0)
		right = sim_repeats(options->sim, files, &instance, answer, &complaint);
	if (!right)
		printf("FAILED seed %llu index %lld: %s\n--- fabric\n%s\n--- jobs\n%s\n--- answer\n%s\n",
		       (unsigned long long)options->seed, (long long)index, complaint.text, fabric, jobs,
		       answer ? answer : "");
	cJSON_Delete(root);
	free(answer);
	free(jobs);
	free(fabric);
	return right;
}

/* Ctrl-C and kill end the run after the instance at hand, so that it still cleans up and says how far it came. */
static volatile sig_atomic_t stop_asked;

static void ask_to_stop(int signal_number)
{
	(void)signal_number;
	stop_asked = 1;
}

static int run_all(const struct options *options)
{
	const struct sigaction stop = {.sa_handler = ask_to_stop};
	struct stats stats = {0};
	struct files files;
	int passed = 0, failed = 0;

	if (!files_open(&files)) {
		fprintf(stderr, "oracle: cannot make a directory under /tmp\n");
		return 2;
	}
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	printf("seed %llu, instances %lld to %lld\n", (unsigned long long)options->seed, (long long)options->from,
	       (long long)(options->from + options->count - 1));
	for (int64_t i = 0; i < options->count && failed < FAILURES_MAX && !stop_asked; i++) {
		if (run_one(options, &files, options->from + i, &stats))
			passed++;
		else
			failed++;
	}
	files_close(&files);
	stats_print(&stats);
	if (stop_asked) { /* a proof that was cut short is none */
		printf("FAILED: stopped before the end\n");
		failed++;
	}
	if (stats.instances >= GREEDY_SAMPLE_MIN &&
	    stats.instances_greedy_lost * 100 < stats.instances * GREEDY_SHARE_MIN) {
		printf("FAILED: too few instances defeat greedy first-fit, %d %% are needed\n", GREEDY_SHARE_MIN);
		failed++;
	}
	printf("%d passed, %d failed\n", passed, failed);
	return failed > 0;
}

/* ---- the command line ------------------------------------------------------------------------------------------- */

static int usage(void)
{
	fprintf(stderr, "usage: oracle --sim PATH --count N [--seed S] [--from K] | --self-test [--seed S]\n");
	return 2;
}

static bool parse_number(const char *text, uint64_t *number)
{
	char *end;
	errno = 0;
	*number = strtoull(text, &end, 10);
	return errno == 0 && *text >= '0' && *text <= '9' && *end == '\0';
}

static bool parse_options(int argc, char **argv, struct options *options)
{
	for (int i = 1; i < argc; i++) {
		uint64_t number = 0;
		if (strcmp(argv[i], "--self-test") == 0) {
			options->self_test = true;
			continue;
		}
		const char *key = argv[i++];
		if (i == argc)
			return false;
		if (strcmp(key, "--sim") == 0)
			options->sim = argv[i];
		else if (!parse_number(argv[i], &number))
			return false;
		else if (strcmp(key, "--seed") == 0)
			options->seed = number;
		else if (strcmp(key, "--count") == 0 && number < INT_MAX)
			options->count = (int64_t)number;
		else if (strcmp(key, "--from") == 0 && number < INT_MAX)
			options->from = (int64_t)number;
		else
			return false;
	}
	return options->self_test || (options->sim && options->count > 0);
}

int main(int argc, char **argv)
{
	struct options options = {.seed = (uint64_t)time(NULL)};

	if (!parse_options(argc, argv, &options))
		return usage();
	return options.self_test ? self_test(options.seed) : run_all(&options);
}
