/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warnings.h - what an answer has to say beside itself: wishes that could not be taken as they were written (reference 11). The
 * one place where flags of a plan become sentences.
 */
#ifndef FROND_SIM_WARNINGS_H
#define FROND_SIM_WARNINGS_H

#include "sim/jobs.h"
#include "text/fabricfile.h"

#define WARNINGS_MAX 8u

struct warnings {
	char text[WARNINGS_MAX][FROND_TEXT_MAX];
	uint32_t count;
};

/* flags: enum frond_plan_flag of the answer about the job. */
struct warnings warnings_of(const struct fabricfile *fabric, const struct jobs *jobs, const struct job *job,
			    uint32_t flags);

#endif
