/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace.h - when to write: a change at once, otherwise once in a while, and never faster than the API server bears. Owns the back-off and its dice. No clock: times are milliseconds that the caller gives, never going back.
 *
 * Jitter everywhere, because a thousand agents that started together would otherwise write together for ever.
 */
#ifndef FROND_AGENT_PACE_H
#define FROND_AGENT_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define PACE_GAP_MS       1000   /* between two writes in the long run: a GPU that flickers must be no flood */
#define PACE_BURST        3      /* so many may come in a row: a second GPU dies while the first is told */
#define PACE_LEAST_MS     50     /* between any two; bad news waits for that only, since good news comes before it */
#define PACE_BACKOFF_MS   1000   /* after the first failure; doubles */
#define PACE_BACKOFF_MAX  30000  /* so that a report is fresh again soon after an outage */
#define PACE_OBEYED_MAX_S 300    /* of what the server asks for in Retry-After */
#define PACE_REFUSAL_MS   300000 /* refused for so long, it is meant: rights come late, or are lost for a moment */

struct pace {
	int64_t period_ms;
	uint64_t dice;
	int64_t due_ms;          /* though nothing has changed */
	int64_t not_before_ms;   /* no news earlier */
	int64_t never_before_ms; /* no request earlier, whatever it is */
	int64_t spent_ms;        /* until when the writes so far use up the long run */
	uint32_t failures;       /* since the last success */
	bool refused;            /* by the last answer */
	int64_t refused_ms;      /* since when there was no other */
};

void pace_start(struct pace *pace, int64_t period_ms, uint64_t seed, int64_t now_ms);

enum pace_news { PACE_NO_NEWS, PACE_NEWS, PACE_BAD_NEWS };

/* Milliseconds until a write is due; 0: now. */
int64_t pace_wait_ms(const struct pace *pace, enum pace_news news, int64_t now_ms);

void pace_wrote(struct pace *pace, int64_t now_ms);

/* The server has taken something else: the next failure is a first one. */
void pace_answered(struct pace *pace);

void pace_failed(struct pace *pace, int64_t retry_after_s, int64_t now_ms);

/* For each answer, before the others: was it a refusal? true: it was nothing else for so long that it is meant. */
bool pace_refused(struct pace *pace, bool refused, int64_t now_ms);

#endif
