/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - answers as JSON (reference 11, byte for byte) or as text for people. Writes to the stream, decides
 * nothing.
 */
#ifndef FROND_SIM_REPORT_H
#define FROND_SIM_REPORT_H

#include "sim/options.h"
#include "sim/warnings.h"

#include <stdio.h>

struct report_tail { /* what comes after the moves: entries of a list, collected while moves are written */
	FILE *stream;
	char *text;
	size_t len;
	uint32_t count;
};

struct report {
	FILE *stream;
	enum sim_format format;
	const struct fabricfile *fabric;
	uint32_t answers; /* written so far */
	struct report_tail unrepaired, warned;
};

struct answer_placed { /* ranks 0 … members - 1 */
	const char *name;
	const struct frond_plan *plan;
	const struct frond_place *places; /* slot = index of the node in the fabric */
	uint32_t members;                 /* that got a place */
	uint32_t asked;                   /* members of the job */
	uint64_t *scratch;                /* room for members entries */
	const struct warnings *warnings;
};

void report_begin(struct report *report);
void report_placed(struct report *report, const struct answer_placed *answer);
void report_refused(struct report *report, const char *name, const char *reason, const struct warnings *warnings);
void report_end(struct report *report);

struct answer_victims { /* who goes so that the job fits */
	const struct answer_placed *placed;
	const struct frond_victims *cost;
	const char *const *jobs; /* of each victim */
	const uint32_t *ranks;
};
/* preempt's whole answer, which is one of these. */
void report_victims(struct report *report, const struct answer_victims *answer);
void report_stays(struct report *report, const char *name, const char *reason, const struct warnings *warnings);

struct answer_window { /* reserve's whole answer */
	const char *name;
	const struct frond_window *window;
	const struct frond_place *places;
	uint32_t members; /* 0: no window */
	const char *reason;
	uint64_t *scratch; /* room for members entries */
	const struct warnings *warnings;
};
void report_window(struct report *report, const struct answer_window *answer);

/* Moves, for recover and defrag; from and to are indices of nodes in the fabric. report_moves_end() goes with every
 * report_moves_begin(), which may find no memory. */
int32_t report_moves_begin(struct report *report, struct complaint *complaint);
void report_move(struct report *report, const char *job, uint32_t rank, uint32_t from, uint32_t to);
void report_unrepaired(struct report *report, const char *job, const char *reason);
void report_warned(struct report *report, const char *job, const struct warnings *warnings);
void report_moves_end(struct report *report, uint32_t lower_bound);

struct answer_summary {
	uint32_t used, gpus; /* GPUs in use, of how many */
	uint32_t members;    /* of the largest gang of whole nodes that still fits */
	uint32_t gpus_each;  /* of a whole node */
	bool exact;          /* else a larger one may fit, too */
};
/* The last line of a text. */
void report_summary(struct report *report, const struct answer_summary *answer);

#endif
