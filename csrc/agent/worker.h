/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.h - the thread that calls the driver, so that a call that never comes back stops nothing else. Owns the thread,
 * its probe and its report. One asks, one answers: there is never a second read, or a second thread, while one hangs.
 */
#ifndef FROND_AGENT_WORKER_H
#define FROND_AGENT_WORKER_H

#include "probe/probe.h"

struct worker;

/* Copies the options. NULL: no memory, thread or descriptor. */
struct worker *worker_start(const struct probe_options *options);

/* Becomes readable when an answer is there. */
int worker_fd(const struct worker *worker);

/* Is it free to be asked? Not while it reads, and not before its answer was taken. */
bool worker_free(struct worker *worker);
void worker_ask(struct worker *worker, enum probe_depth depth);

/* The answer, valid until the next question; NULL: not yet. */
const struct probe_report *worker_take(struct worker *worker);

/* Ends the thread and frees everything; false: it is inside the driver, and was left alone with all it uses. */
bool worker_stop(struct worker *worker);

#endif
