/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/options.h"

#include <string.h>

#define HINT "; try frond-sim --help"

static const char help[] =
	"frond-sim - where Frond would put jobs: a fabric and jobs in, a plan out, no cluster needed\n"
	"\n"
	"usage: frond-sim plan    CLUSTER --jobs FILE [-o json|text]\n"
	"       frond-sim recover CLUSTER --jobs FILE --fail node-3,node-9/gpu-2 [-o json|text]\n"
	"       frond-sim defrag  CLUSTER --jobs FILE --for JOB [-o json|text]\n"
	"       frond-sim preempt CLUSTER --jobs FILE --for JOB [-o json|text]\n"
	"       frond-sim reserve CLUSTER --jobs FILE --for JOB [-o json|text]\n"
	"       frond-sim replay  RECORDING\n"
	"       frond-sim bench   [--nodes N] [--case NAME] [--repeat N]\n"
	"       frond-sim VERB --help says more, with an example\n"
	"\n"
	"CLUSTER is one of\n"
	"  --fabric FILE   spines, leaves and nodes, YAML or JSON; - is stdin\n"
	"  --cluster LINE  the same in one line, each number per parent: 'spine:2 leaf:4 node:4 gpu:8';\n"
	"                  model:GB200 and nvlink:18 (nodes of an NVLink domain) may follow\n"
	"\n"
	"  --jobs FILE     jobs in the order in which they come, YAML or JSON, or Kubernetes manifests as they are; - "
	"is\n"
	"                  stdin\n"
	"  --fail LIST     nodes, GPUs, leaves and spines that fail once the jobs run: the fewest moves that repair "
	"them\n"
	"  --for JOB       all jobs but this one run: the fewest moves after which it fits (defrag), or the\n"
	"                  cheapest pods of lower priority that have to go (preempt), or where and when it will\n"
	"                  find room by the ends of the others (reserve)\n"
	"  -o FORMAT       json (default) or text\n"
	"  --nodes N       nodes of the generated cluster (default 100000); --repeat N runs of each case (default "
	"101)\n"
	"  --help          this text\n"
	"  --version       the version of the engine's ABI\n"
	"\n"
	"exit: 0 answered (a job that does not fit is an answer), 2 bad input or usage, with one line\n"
	"FILE:LINE: PATH: what is wrong, what is allowed; 3 the program is wrong\n";

static const char plan_help[] =
	"frond-sim plan CLUSTER --jobs FILE [-o json|text]\n"
	"\n"
	"Places the jobs in the order of the file; each sees what the earlier ones took.\n"
	"CLUSTER is --fabric FILE or --cluster LINE. FILE has `jobs:`, or Kubernetes manifests: Job, JobSet, "
	"PyTorchJob and\n"
	"its kin, PodGroup with Pods, Pod, GpuClaim. A Job without the annotation topology.scheduler/gpu-count is no "
	"gang: its\n"
	"pods are jobs NAME-0, NAME-1 and so on.\n"
	"\n"
	"example: frond-sim plan --cluster 'spine:2 leaf:4 node:4 gpu:8' --jobs jobs.yaml -o text\n"
	"with jobs.yaml:\n"
	"  jobs:\n"
	"  - {name: train, members: 8, gpusPerMember: 8}\n";

static const char recover_help[] =
	"frond-sim recover CLUSTER --jobs FILE --fail LIST [-o json|text]\n"
	"\n"
	"Places the jobs, lets something fail, and says the fewest moves that repair the jobs, and which stay "
	"unrepaired.\n"
	"LIST has nodes (node-3), GPUs (node-9/gpu-2), leaves (leaf-1) and spines (spine-2), with commas between.\n"
	"\n"
	"example: frond-sim recover --cluster 'spine:2 leaf:4 node:4 gpu:8' --jobs jobs.yaml --fail node-3,leaf-2\n";

static const char defrag_help[] =
	"frond-sim defrag CLUSTER --jobs FILE --for JOB [-o json|text]\n"
	"\n"
	"Places all jobs but JOB and says the fewest moves of the others after which JOB fits.\n"
	"\n"
	"example: frond-sim defrag --cluster 'spine:2 leaf:4 node:4 gpu:8' --jobs jobs.yaml --for big-job\n";

static const char preempt_help[] =
	"frond-sim preempt CLUSTER --jobs FILE --for JOB [-o json|text]\n"
	"\n"
	"Places all jobs but JOB and says which pods of lower priority have to go so that JOB fits, at the lowest "
	"cost.\n"
	"\n"
	"example: frond-sim preempt --cluster 'spine:2 leaf:4 node:4 gpu:8' --jobs jobs.yaml --for urgent-job\n";

static const char reserve_help[] =
	"frond-sim reserve CLUSTER --jobs FILE --for JOB [-o json|text]\n"
	"\n"
	"Places all jobs but JOB and says where and when JOB will find room by the ends of the others: `endsIn: 45m` "
	"of a job;\n"
	"absent, it never ends.\n"
	"\n"
	"example: frond-sim reserve --cluster 'spine:2 leaf:4 node:4 gpu:8' --jobs jobs.yaml --for big-job\n";

static const char replay_help[] = "frond-sim replay RECORDING\n"
				  "\n"
				  "Repeats every call of a recording and writes it with the answers that this engine "
				  "gives: the same bytes, when it is\n"
				  "the same engine. - is stdin.\n"
				  "\n"
				  "example: frond-sim replay /var/tmp/frond.rec >again.rec\n";

static const char bench_help[] = "frond-sim bench [--nodes N] [--case NAME] [--repeat N]\n"
				 "\n"
				 "Measures the engine on a generated cluster of N nodes (100 to 131072, default "
				 "100000) and prints a table. Cases that\n"
				 "need more nodes than N say so and are not run.\n"
				 "\n"
				 "example: frond-sim bench --nodes 1000 --case plan-8\n";

#define BENCH_NODES  100000u
#define BENCH_REPEAT 101u

struct flag {
	const char *name;
	const char **value;
};

static bool is_help(const char *argument);
static int32_t flags_read(int argc, char *const argv[], const char *verb, const struct flag *flags, uint32_t count,
			  struct options *out, struct complaint *complaint);
static int32_t jobs_verb_read(int argc, char *const argv[], struct options *out, struct complaint *complaint);
static int32_t replay_read(int argc, char *const argv[], struct options *out, struct complaint *complaint);
static int32_t bench_read(int argc, char *const argv[], struct options *out, struct complaint *complaint);
static const char *flag_value(const char *flag, const char *argument);
static int32_t format_read(const char *value, struct options *out, struct complaint *complaint);
static struct shown quoted(const char *text);

int32_t options_read(int argc, char *const argv[], struct options *out, struct complaint *complaint)
{
	static const struct {
		const char *name, *help;
		enum sim_verb verb;
		int32_t (*read)(int argc, char *const argv[], struct options *out, struct complaint *complaint);
	} verbs[] = {{"plan", plan_help, VERB_PLAN, jobs_verb_read},
		     {"recover", recover_help, VERB_RECOVER, jobs_verb_read},
		     {"defrag", defrag_help, VERB_DEFRAG, jobs_verb_read},
		     {"preempt", preempt_help, VERB_PREEMPT, jobs_verb_read},
		     {"reserve", reserve_help, VERB_RESERVE, jobs_verb_read},
		     {"replay", replay_help, VERB_REPLAY, replay_read},
		     {"bench", bench_help, VERB_BENCH, bench_read}};
	*out = (struct options){.help = help};
	if (argc < 2)
		return complain(complaint, 0,
				"a verb is missing; use plan, recover, defrag, preempt, reserve, replay or bench" HINT);
	if (is_help(argv[1]) || strcmp(argv[1], "help") == 0) {
		out->verb = VERB_HELP;
		return FROND_OK;
	}
	if (strcmp(argv[1], "--version") == 0) {
		out->verb = VERB_VERSION;
		return FROND_OK;
	}
	for (uint32_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(argv[1], verbs[i].name) == 0) {
			out->verb = verbs[i].verb;
			out->help = verbs[i].help;
			return verbs[i].read(argc, argv, out, complaint);
		}
	return complain(complaint, 0,
			"\"%s\" is not a verb; use plan, recover, defrag, preempt, reserve, replay or bench" HINT,
			quoted(argv[1]).text);
}

static bool is_help(const char *argument)
{
	return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

/* "FLAG VALUE" and "FLAG=VALUE" from argv[2] on, each once. --help makes it the verb help. */
static int32_t flags_read(int argc, char *const argv[], const char *verb, const struct flag *flags, uint32_t count,
			  struct options *out, struct complaint *complaint)
{
	for (int i = 2; i < argc; i++) {
		if (is_help(argv[i])) {
			out->verb = VERB_HELP;
			return FROND_OK;
		}
		uint32_t f = 0;
		const char *value = NULL;
		while (f < count && (value = flag_value(flags[f].name, argv[i])) == NULL)
			f++;
		if (value == NULL)
			return complain(complaint, 0, "\"%s\" is not a flag of %s" HINT, quoted(argv[i]).text, verb);
		if (*value == '\0' && i + 1 == argc)
			return complain(complaint, 0, "%s needs a value" HINT, flags[f].name);
		if (*flags[f].value != NULL)
			return complain(complaint, 0, "%s is given twice" HINT, flags[f].name);
		*flags[f].value = *value == '\0' ? argv[++i] : value + 1;
	}
	return FROND_OK;
}

/* plan, recover, defrag, preempt and reserve: a cluster and jobs, and what each verb wants besides. */
static int32_t jobs_verb_read(int argc, char *const argv[], struct options *out, struct complaint *complaint)
{
	const char *format = NULL, *verb = argv[1];
	struct flag flags[] = {{"--fabric", &out->fabric},
			       {"--cluster", &out->cluster},
			       {"--jobs", &out->jobs},
			       {"-o", &format},
			       {"--fail", &out->fail}};
	uint32_t count = 4 + (out->verb != VERB_PLAN);
	if (out->verb == VERB_DEFRAG || out->verb == VERB_PREEMPT || out->verb == VERB_RESERVE)
		flags[4] = (struct flag){"--for", &out->for_job};
	int32_t code = flags_read(argc, argv, verb, flags, count, out, complaint);
	if (code != FROND_OK || out->verb == VERB_HELP)
		return code;
	if (format != NULL && format_read(format, out, complaint) != FROND_OK)
		return FROND_BAD;
	if ((out->fabric == NULL) == (out->cluster == NULL))
		return complain(complaint, 0, "%s needs either --fabric or --cluster%s" HINT, verb,
				out->fabric == NULL ? "" : ", not both");
	if (out->jobs == NULL)
		return complain(complaint, 0, "%s needs --jobs" HINT, verb);
	if (out->verb != VERB_PLAN && *flags[4].value == NULL)
		return complain(complaint, 0, "%s needs %s" HINT, verb, flags[4].name);
	if (out->fabric != NULL && strcmp(out->fabric, "-") == 0 && strcmp(out->jobs, "-") == 0)
		return complain(complaint, 0, "--fabric and --jobs cannot both be stdin" HINT);
	return FROND_OK;
}

static int32_t replay_read(int argc, char *const argv[], struct options *out, struct complaint *complaint)
{
	for (int i = 2; i < argc; i++)
		if (is_help(argv[i])) {
			out->verb = VERB_HELP;
			return FROND_OK;
		}
	if (argc != 3)
		return complain(complaint, 0, "replay needs one recording" HINT);
	out->recording = argv[2];
	return FROND_OK;
}

static int32_t number_read(const char *flag, const char *value, uint32_t least, uint32_t most, uint32_t *out,
			   struct complaint *complaint)
{
	uint64_t number = 0;
	size_t digits = value == NULL ? 0 : strspn(value, "0123456789");
	if (value == NULL)
		return FROND_OK;
	for (size_t i = 0; i < digits && i < 10; i++)
		number = number * 10 + (uint64_t)(value[i] - '0');
	if (digits == 0 || digits > 9 || value[digits] != '\0' || number < least || number > most)
		return complain(complaint, 0, "%s must be a number between %u and %u, got \"%s\"" HINT, flag, least,
				most, quoted(value).text);
	*out = (uint32_t)number;
	return FROND_OK;
}

static int32_t bench_read(int argc, char *const argv[], struct options *out, struct complaint *complaint)
{
	const char *nodes = NULL, *repeat = NULL;
	const struct flag flags[] = {{"--nodes", &nodes}, {"--case", &out->bench_case}, {"--repeat", &repeat}};
	int32_t code = flags_read(argc, argv, "bench", flags, 3, out, complaint);
	out->nodes = BENCH_NODES;
	out->repeat = BENCH_REPEAT;
	if (code == FROND_OK)
		code = number_read("--nodes", nodes, 100, FROND_NODES_MAX, &out->nodes, complaint);
	if (code == FROND_OK)
		code = number_read("--repeat", repeat, 1, 100000, &out->repeat, complaint);
	return code;
}

/* What follows the flag in "FLAG" or "FLAG=VALUE"; NULL when the argument is another. */
static const char *flag_value(const char *flag, const char *argument)
{
	uint64_t len = strlen(flag);
	if (strncmp(argument, flag, len) != 0 || (argument[len] != '\0' && argument[len] != '='))
		return NULL;
	return argument + len;
}

static int32_t format_read(const char *value, struct options *out, struct complaint *complaint)
{
	if (strcmp(value, "json") != 0 && strcmp(value, "text") != 0)
		return complain(complaint, 0, "-o must be json or text, got \"%s\"" HINT, quoted(value).text);
	out->format = strcmp(value, "text") == 0 ? FORMAT_TEXT : FORMAT_JSON;
	return FROND_OK;
}

static struct shown quoted(const char *text)
{
	return shown(text, strlen(text));
}
