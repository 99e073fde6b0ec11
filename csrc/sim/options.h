/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - frond-sim's command line, read into a struct or refused with one line. Owns usage and flags; opens nothing.
 */
#ifndef FROND_SIM_OPTIONS_H
#define FROND_SIM_OPTIONS_H

#include "text/words.h"

enum sim_verb {
	VERB_HELP,
	VERB_VERSION,
	VERB_PLAN,
	VERB_RECOVER,
	VERB_DEFRAG,
	VERB_PREEMPT,
	VERB_RESERVE,
	VERB_REPLAY,
	VERB_BENCH
};
enum sim_format { FORMAT_JSON, FORMAT_TEXT };

struct options { /* strings are those of argv */
	enum sim_verb verb;
	enum sim_format format;
	const char *help;    /* of the verb, or of all */
	const char *fabric;  /* a file, "-": stdin; NULL: not given */
	const char *cluster; /* the one-line form; NULL: not given. One of the two is. */
	const char *jobs;
	const char *fail;       /* recover: what fails */
	const char *for_job;    /* defrag, preempt, reserve: the job that wants room */
	const char *recording;  /* replay: a file, "-": stdin */
	const char *bench_case; /* bench: NULL: all of them */
	uint32_t nodes, repeat; /* bench */
};

/* A complaint about usage has no line and no path. */
int32_t options_read(int argc, char *const argv[], struct options *out, struct complaint *complaint);

#endif
