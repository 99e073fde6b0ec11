/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - calls of the ABI as text (docs/recording.md): what went in before the call is made, what came out after it.
 * Writes to a stream that it does not own; flushing, and what happens when a write fails, are the caller's.
 */
#ifndef FROND_RECORD_H
#define FROND_RECORD_H

#include "call.h"

#include <stdio.h>

#define RECORD_FORMAT 1u

/* The first line. */
void record_header(FILE *file);

/* A call and all that goes into it. nodes: limits.nodes of the engine, entries of a room array. */
void record_question(FILE *file, const struct call *call, uint32_t nodes);

/* What came out: lines that begin with '='. */
void record_answer(FILE *file, const struct call *call, uint32_t nodes, int32_t code);

#endif
