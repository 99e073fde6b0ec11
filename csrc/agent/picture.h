/* SPDX-License-Identifier: Apache-2.0 */
/*
 * picture.h - what the agent says about its node: the last good report, calmed down, and whether that is news. Owns the
 * picture and what was last written; no clock, no threads, no I/O.
 *
 * Never "no GPUs" because nobody could be asked: then the last known GPUs stay, and those that were healthy are unknown.
 * Before there ever was a good report there is no picture, and nothing may be written, unless an agent before this one has
 * left a report: then that is what was last known. It is also asked for names of GPUs that are dead by now, and for critical
 * XIDs, which the driver tells only once.
 */
#ifndef FROND_AGENT_PICTURE_H
#define FROND_AGENT_PICTURE_H

#include "probe/status.h"

#define PICTURE_PERCENT_STEP 5   /* utilisation is said in these steps */
#define PICTURE_PERCENT_NEWS 10  /* and is news when it is this far from what was said */
#define PICTURE_MIB_STEP     256 /* the same for used memory */
#define PICTURE_MIB_NEWS     1024

struct picture_use { /* of one device */
	char id[STATUS_ID_MAX + 1];
	int32_t smooth;  /* percent * 256; PROBE_UNKNOWN: never read */
	int64_t mib;     /* as last read */
	int32_t percent; /* said */
	int64_t said_mib;
};

struct picture {
	bool good;    /* there was a good report */
	bool doubted; /* the last attempt had no answer */
	bool news;    /* `now` differs from `written` */
	bool worse;   /* and in a way that should keep somebody away: a GPU is not healthy any more, a link is slower */
	bool confirmed; /* the API server has `written` */
	struct picture_use use[PROBE_GPUS_MAX];
	struct status now, written; /* both without a heartbeat */
	struct status *recalled;    /* what was reported before this agent started; NULL: nothing, or of no more use */
	bool xids_stand;            /* neither node nor driver has been started again since then */
	bool driver_began;          /* the driver has, after this agent: it may be before the report is recalled */
};

void picture_start(struct picture *picture);
void picture_end(struct picture *picture);

/* An earlier agent's report, before or after the first of our own; copied. xids_stand: the driver has run on since. */
void picture_recall(struct picture *picture, const struct status *status, bool xids_stand);

void picture_take(struct picture *picture, const struct probe_report *report);

/* Nobody could be asked, and why: a hang. picture_take() does the same with a report that is not PROBE_OK. */
void picture_doubt(struct picture *picture, const char *why);

/* Is there something that the API server does not have? Something bad? */
bool picture_changed(const struct picture *picture);
bool picture_worse(const struct picture *picture);

/* A write begins: use is said as it is now, since it costs nothing then. The status for it: picture->written. */
void picture_write(struct picture *picture);
void picture_wrote(struct picture *picture, bool accepted);

#endif
