/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oracle.c - the independent proof: random small clusters, answered by frond-sim, judged by brute force.
 *
 * Shares no code with the engine; written from reference 3, 6, 7 and 11 and the readings in docs/decisions alone. The
 * parts, each a header that is included here only, from the bottom up:
 *   instance.h  a cluster with its jobs               make.h     a random one
 *   files.h     the same as YAML or JSON              gpus.h     which GPUs inside a node (3.7)
 *   rules.h     what a gang must meet (3.3)           pack.h     the same, and step 3, for several sizes
 *   plan.h      the best placement (3.4)
 *   answer.h    what is wrong with an answer          greedy.h   a plain scheduler, for comparison
 *   check.h     an instance from first to last job    moves.h    recover and defrag
 *   victims.h   preempt                                window.h   reserve
 *   selftest.h  right answers pass, wrong ones are caught
 *
 * oracle --sim PATH --count N [--verb plan|recover|defrag|preempt|reserve] [--seed S] [--from K]     instances K to K + N - 1 of seed S
 * oracle --self-test [--seed S]
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "files.h"
#include "make.h"
#include "moves.h"
#include "selftest.h"

enum {
	FAILED_MAX = 20,
	PROGRESS_S = 5,
	REPEAT_EVERY = 50,
	SIM_CPU_S = 60,
	PATH_SIZE = 96,
	FAIL_TEXT = FAILURES_MAX * (NAME_SIZE + 8),
	CUT_ONE_IN = 500,        /* defragmentations of five moves or more */
	GREEDY_SHARE_MIN = 20,   /* percent */
	GREEDY_SAMPLE_MIN = 200, /* instances; with fewer the share says nothing */
};

struct options {
	const char *sim;
	int64_t count, from;
	uint64_t seed;
	enum verb verb;
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

struct question { /* the texts that the simulator gets, and how it is asked */
	enum verb verb;
	char *fabric, *jobs;
	char fail[FAIL_TEXT];   /* recover */
	char target[NAME_SIZE]; /* defrag, preempt, reserve */
};

static void question_close(struct question *question)
{
	free(question->fabric);
	free(question->jobs);
}

static struct question question_of(const struct instance *instance, enum verb verb, bool fabric_yaml, bool jobs_yaml)
{
	struct question question = {.verb = verb,
				    .fabric = fabric_text(&instance->fabric, fabric_yaml),
				    .jobs = jobs_text(instance, jobs_yaml)};
	size_t used = 0;

	for (int f = 0; f < instance->failure_count; f++) {
		const struct failure *failure = &instance->failures[f];
		used += (size_t)snprintf(question.fail + used, FAIL_TEXT - used, "%s%s", f > 0 ? "," : "",
					 instance->fabric.nodes[failure->node].name);
		if (failure->gpu >= 0)
			used += (size_t)snprintf(question.fail + used, FAIL_TEXT - used, "/gpu-%d", failure->gpu);
	}
	snprintf(question.target, NAME_SIZE, "%s", instance->entries[instance->defrag_for].name);
	return question;
}

static const char *verb_option(enum verb verb)
{
	return verb == VERB_RECOVER ? "--fail" : verb == VERB_PLAN ? NULL : "--for";
}

static const char *verb_value(const struct question *question)
{
	return question->verb == VERB_RECOVER ? question->fail : question->target;
}

static void sim_exec(const char *sim, const struct files *files, const struct question *question)
{
	const struct rlimit cpu = {SIM_CPU_S, SIM_CPU_S}; /* a simulator that never ends is a failure, not a wait */
	int in = open(files->jobs, O_RDONLY);
	int out = open(files->out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	int err = open(files->err, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (in < 0 || out < 0 || err < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
		_exit(126);
	setrlimit(RLIMIT_CPU, &cpu);
	execl(sim, sim, VERB_NAMES[question->verb], "--fabric", files->fabric, "--jobs", "-",
	      verb_option(question->verb), verb_value(question), (char *)NULL);
	_exit(127);
}

/* Runs it on the texts. The answer's text, which the caller frees, or NULL with a complaint. */
static char *sim_run(const char *sim, const struct files *files, const struct question *question,
		     struct complaint *complaint)
{
	int status = 0;

	if (!file_write(files->fabric, question->fabric) || !file_write(files->jobs, question->jobs)) {
		complain(complaint, "cannot write to %s", files->dir);
		return NULL;
	}
	fflush(stdout); /* or the child would print it again */
	pid_t child = fork();
	if (child == 0)
		sim_exec(sim, files, question);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return file_read(files->out);
	char *said = file_read(files->err);
	complain(complaint, "%s %s ended with %s %d: %.300s", sim, VERB_NAMES[question->verb],
		 WIFSIGNALED(status) ? "signal" : "code", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
		 said);
	free(said);
	return NULL;
}

/* The same input gives the same bytes, whichever way the files are written. */
static bool sim_repeats(const char *sim, const struct files *files, const struct instance *instance, enum verb verb,
			const char *first, struct complaint *complaint)
{
	bool same = true;
	for (int form = 0; same && form < 4; form++) {
		struct question question = question_of(instance, verb, form & 1, form & 2);
		char *again = sim_run(sim, files, &question, complaint);
		same = again != NULL;
		if (again && strcmp(first, again) != 0)
			same = complain(complaint, "fabric as %s and jobs as %s give other bytes",
					form & 1 ? "YAML" : "JSON", form & 2 ? "YAML" : "JSON");
		free(again);
		question_close(&question);
	}
	return same;
}

/* ---- one instance ----------------------------------------------------------------------------------------------- */

struct totals {
	struct stats plans;
	struct move_stats moves;
	struct victim_stats victims;
	struct window_stats windows;
	int passed, failed;
};

/* Writes what is needed to see the first failure again, and says how. */
static void failure_keep(const struct options *options, int64_t index, const struct question *question,
			 const char *answer)
{
	const char *option = verb_option(question->verb);
	char dir[PATH_SIZE], path[PATH_SIZE + 16];

	snprintf(dir, sizeof dir, "/tmp/frond-oracle-failed-%s-%llu-%lld", VERB_NAMES[options->verb],
		 (unsigned long long)options->seed, (long long)index);
	if (mkdir(dir, 0700) != 0 && errno != EEXIST)
		return;
	snprintf(path, sizeof path, "%s/fabric", dir);
	file_write(path, question->fabric);
	snprintf(path, sizeof path, "%s/jobs", dir);
	file_write(path, question->jobs);
	snprintf(path, sizeof path, "%s/answer", dir);
	file_write(path, answer ? answer : "");
	printf("--- fabric\n%s\n--- jobs\n%s\n--- answer\n%s\n--- again\n", question->fabric, question->jobs,
	       answer ? answer : "");
	printf("%s %s --fabric %s/fabric --jobs %s/jobs%s%s%s%s\n", options->sim, VERB_NAMES[question->verb], dir, dir,
	       option ? " " : "", option ? option : "", option ? " " : "", option ? verb_value(question) : "");
	printf("oracle --sim %s --verb %s --seed %llu --from %lld --count 1\n", options->sim, VERB_NAMES[options->verb],
	       (unsigned long long)options->seed, (long long)index);
}

/* Asks one question and has the answer judged. What is right follows from the answer to `plan` where several plans are. */
static bool ask(const struct options *options, const struct files *files, int64_t index,
		const struct instance *instance, enum verb verb, struct course *course, struct totals *totals)
{
	struct complaint complaint = {""};
	struct question question = question_of(instance, verb, index & 1, index & 2);
	char *answer = sim_run(options->sim, files, &question, &complaint);
	cJSON *root = answer ? cJSON_Parse(answer) : NULL;
	bool right = false;

	if (answer && !root)
		complain(&complaint, "the answer is not JSON");
	if (verb == VERB_PLAN) {
		course_run(instance, -1, root, course);
		stats_add_course(&totals->plans, instance, course);
	}
	if (root && verb == VERB_PLAN)
		right = check_plans(instance, course, root, &complaint);
	else if (root && verb == VERB_RECOVER)
		right = check_recover(instance, course, root, &totals->moves, &complaint);
	else if (root && verb == VERB_PREEMPT)
		right = check_preempt(instance, course, root, &totals->victims, &complaint);
	else if (root && verb == VERB_RESERVE)
		right = check_window(instance, course, root, &totals->windows, &complaint);
	else if (root)
		right = check_defrag(instance, course, root, &totals->moves, &complaint);
	if (right && index % REPEAT_EVERY == 0)
		right = sim_repeats(options->sim, files, instance, verb, answer, &complaint);
	if (!right) {
		printf("FAILED %s seed %llu index %lld: %s\n", VERB_NAMES[verb], (unsigned long long)options->seed,
		       (long long)index, complaint.text);
		if (totals->failed == 0)
			failure_keep(options, index, &question, answer);
	}
	cJSON_Delete(root);
	free(answer);
	question_close(&question);
	return right;
}

/* defrag, preempt and reserve plan all but one job, the last one, so what `plan` says of the others is where they are: of gangs of
 * several sizes more than one placement is right. */
static void follow_plans(const struct options *options, const struct files *files, const struct instance *instance,
			 struct course *course)
{
	struct complaint complaint = {""};
	struct question question = question_of(instance, VERB_PLAN, false, false);
	char *answer = sim_run(options->sim, files, &question, &complaint);
	cJSON *root = answer ? cJSON_Parse(answer) : NULL;
	course_run(instance, instance->defrag_for, root, course);
	cJSON_Delete(root);
	free(answer);
	question_close(&question);
}

static void run_one(const struct options *options, const struct files *files, int64_t index, struct totals *totals)
{
	static struct course course; /* large */
	struct instance instance;
	bool right = true;

	instance_make(options->seed, (uint64_t)index, options->verb, &instance);
	if (skips_one(options->verb))
		follow_plans(options, files, &instance, &course);
	else
		right = ask(options, files, index, &instance, VERB_PLAN, &course, totals);
	if (right && options->verb != VERB_PLAN)
		right = ask(options, files, index, &instance, options->verb, &course, totals);
	*(right ? &totals->passed : &totals->failed) += 1;
}

/* Ctrl-C and kill end the run after the instance at hand, so that it still cleans up and says how far it came. */
static volatile sig_atomic_t stop_asked;

static void ask_to_stop(int signal_number)
{
	(void)signal_number;
	stop_asked = 1;
}

static bool greedy_share_is_low(const struct stats *stats)
{
	return stats->instances >= GREEDY_SAMPLE_MIN &&
	       stats->instances_greedy_lost * 100 < stats->instances * GREEDY_SHARE_MIN;
}

static int run_all(const struct options *options)
{
	const struct sigaction stop = {.sa_handler = ask_to_stop};
	static struct totals totals;
	struct files files;
	time_t began = time(NULL), said = began;

	if (!files_open(&files)) {
		fprintf(stderr, "oracle: cannot make a directory under /tmp\n");
		return 2;
	}
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	printf("%s, seed %llu, instances %lld to %lld\n", VERB_NAMES[options->verb], (unsigned long long)options->seed,
	       (long long)options->from, (long long)(options->from + options->count - 1));
	for (int64_t i = 0; i < options->count && totals.failed < FAILED_MAX && !stop_asked; i++) {
		run_one(options, &files, options->from + i, &totals);
		time_t now = time(NULL);
		if (now - said < PROGRESS_S)
			continue;
		said = now;
		printf("... %lld of %lld, %d failed, %lld a second\n", (long long)(i + 1), (long long)options->count,
		       totals.failed, (long long)((i + 1) / (now - began)));
		fflush(stdout);
	}
	files_close(&files);
	if (options->verb == VERB_PREEMPT)
		victim_stats_print(&totals.victims);
	if (options->verb == VERB_RESERVE)
		window_stats_print(&totals.windows);
	if (!skips_one(options->verb))
		stats_print(&totals.plans);
	move_stats_print(options->verb, &totals.moves);
	if (stop_asked) { /* a proof that was cut short is none */
		printf("FAILED: stopped before the end\n");
		totals.failed++;
	}
	if (totals.moves.cut > 1 + options->count / CUT_ONE_IN) {
		printf("FAILED: the bound on a call cut %d, one in %d may be\n", totals.moves.cut, CUT_ONE_IN);
		totals.failed++;
	}
	if (options->verb == VERB_PLAN && greedy_share_is_low(&totals.plans)) {
		printf("FAILED: too few instances defeat greedy first-fit, %d %% are needed\n", GREEDY_SHARE_MIN);
		totals.failed++;
	}
	printf("%d passed, %d failed\n", totals.passed, totals.failed);
	return totals.failed > 0;
}

/* ---- the command line ------------------------------------------------------------------------------------------- */

static int usage(void)
{
	fprintf(stderr, "usage: oracle --sim PATH --count N [--verb plan|recover|defrag|preempt|reserve] [--seed S] "
			"[--from K]\n"
			"       oracle --self-test [--seed S]\n");
	return 2;
}

static bool parse_number(const char *text, uint64_t *number)
{
	char *end;
	errno = 0;
	*number = strtoull(text, &end, 10);
	return errno == 0 && *text >= '0' && *text <= '9' && *end == '\0';
}

static bool parse_verb(const char *text, enum verb *verb)
{
	int v = 0;
	while (v < VERBS && strcmp(VERB_NAMES[v], text) != 0)
		v++;
	*verb = (enum verb)v;
	return v < VERBS;
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
		if (strcmp(key, "--sim") == 0) {
			options->sim = argv[i];
			continue;
		}
		if (strcmp(key, "--verb") == 0) {
			if (!parse_verb(argv[i], &options->verb))
				return false;
			continue;
		}
		if (!parse_number(argv[i], &number))
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
