/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/options.h"

#include <string.h>

#define HINT "; try frond-sim --help"

const char options_help[] =
	"frond-sim - where Frond would put jobs: a fabric and jobs in, a plan out, no cluster needed\n"
	"\n"
	"usage: frond-sim plan (--fabric FILE | --cluster LINE) --jobs FILE [-o json|text]\n"
	"\n"
	"  --fabric FILE   spines, leaves and nodes, YAML or JSON; - is stdin\n"
	"  --cluster LINE  the same in one line, each number per parent: 'spine:2 leaf:4 node:4 gpu:8'\n"
	"  --jobs FILE     jobs in the order in which they come, YAML or JSON; - is stdin\n"
	"  -o FORMAT       json (default) or text\n"
	"  --help          this text\n"
	"  --version       the version of the engine's ABI\n"
	"\n"
	"exit: 0 planned (a job that does not fit is an answer), 2 bad input or usage, with one line\n"
	"FILE:LINE: PATH: what is wrong, what is allowed; 3 the program is wrong\n";

static int32_t plan_read(int argc, char *const argv[], struct options *out, struct complaint *complaint);
static const char *flag_value(const char *flag, const char *argument);
static int32_t format_read(const char *value, struct options *out, struct complaint *complaint);
static struct shown quoted(const char *text);

int32_t options_read(int argc, char *const argv[], struct options *out, struct complaint *complaint)
{
	static const char *const later[] = {"recover", "defrag", "replay", "bench"};
	memset(out, 0, sizeof(*out));
	if (argc < 2)
		return complain(complaint, 0, "a verb is missing; use plan" HINT);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
		out->verb = VERB_HELP;
		return FROND_OK;
	}
	if (strcmp(argv[1], "--version") == 0) {
		out->verb = VERB_VERSION;
		return FROND_OK;
	}
	if (strcmp(argv[1], "plan") == 0)
		return plan_read(argc, argv, out, complaint);
	for (uint32_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
		if (strcmp(argv[1], later[i]) == 0)
			return complain(complaint, 0, "%s is not in this version; use plan" HINT, later[i]);
	}
	return complain(complaint, 0, "\"%s\" is not a verb; use plan" HINT, quoted(argv[1]).text);
}

static int32_t plan_read(int argc, char *const argv[], struct options *out, struct complaint *complaint)
{
	const char *format = NULL;
	struct {
		const char *flag;
		const char **value;
	} flags[] = {{"--fabric", &out->fabric}, {"--cluster", &out->cluster}, {"--jobs", &out->jobs}, {"-o", &format}};

	out->verb = VERB_PLAN;
	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			out->verb = VERB_HELP;
			return FROND_OK;
		}
		uint32_t f = 0;
		const char *value = NULL;
		while (f < sizeof(flags) / sizeof(flags[0]) && (value = flag_value(flags[f].flag, argv[i])) == NULL)
			f++;
		if (value == NULL)
			return complain(complaint, 0, "\"%s\" is not a flag of plan" HINT, quoted(argv[i]).text);
		if (*value == '\0' && i + 1 == argc)
			return complain(complaint, 0, "%s needs a value" HINT, flags[f].flag);
		if (*flags[f].value != NULL)
			return complain(complaint, 0, "%s is given twice" HINT, flags[f].flag);
		*flags[f].value = *value == '\0' ? argv[++i] : value + 1;
	}
	if (format != NULL && format_read(format, out, complaint) != FROND_OK)
		return FROND_BAD;
	if ((out->fabric == NULL) == (out->cluster == NULL))
		return complain(complaint, 0, "plan needs either --fabric or --cluster%s" HINT,
				out->fabric == NULL ? "" : ", not both");
	if (out->jobs == NULL)
		return complain(complaint, 0, "plan needs --jobs" HINT);
	if (out->fabric != NULL && strcmp(out->fabric, "-") == 0 && strcmp(out->jobs, "-") == 0)
		return complain(complaint, 0, "--fabric and --jobs cannot both be stdin" HINT);
	return FROND_OK;
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
