/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - answers as JSON (spec 11, byte for byte) or as text for people. Writes to the stream, decides nothing.
 */
#ifndef FROND_SIM_REPORT_H
#define FROND_SIM_REPORT_H

#include "sim/options.h"
#include "text/fabricfile.h"

#include <stdio.h>

struct report {
	FILE *stream;
	enum sim_format format;
	const struct fabricfile *fabric;
	uint32_t answers; /* written so far */
};

struct answer_placed { /* ranks 0 … members - 1 */
	const char *name;
	const struct frond_plan *plan;
	const struct frond_place *places; /* slot = index of the node in the fabric */
	uint32_t members;
	uint64_t *scratch; /* room for members entries */
};

void report_begin(struct report *report);
void report_placed(struct report *report, const struct answer_placed *answer);
void report_refused(struct report *report, const char *name, const char *reason);
void report_end(struct report *report);

struct answer_victims { /* who goes so that the job fits */
	const struct answer_placed *placed;
	const struct frond_victims *cost;
	const char *const *jobs; /* of each victim */
	const uint32_t *ranks;
};
/* preempt's whole answer, which is one of these. */
void report_victims(struct report *report, const struct answer_victims *answer);
void report_stays(struct report *report, const char *name, const char *reason);

struct answer_window { /* reserve's whole answer */
	const char *name;
	const struct frond_window *window;
	const struct frond_place *places;
	uint32_t members; /* 0: no window */
	const char *reason;
	uint64_t *scratch; /* room for members entries */
};
void report_window(struct report *report, const struct answer_window *answer);

/* Moves, for recover and defrag; from and to are indices of nodes in the fabric. */
void report_moves_begin(struct report *report);
void report_move(struct report *report, const char *job, uint32_t rank, uint32_t from, uint32_t to);
void report_moves_end(struct report *report, uint32_t lower_bound);
/* Why there are none: a line on stderr, so that the answer keeps its form. */
void report_note(struct report *report, const char *job, const char *text, uint32_t len);

#endif
