/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.h - the verb `replay`: a recording of an engine's calls (docs/recording.md) is read, every call is made again on
 * an engine of this program, and the recording is written anew with the answers that came. The same bytes mean that the
 * engine decides as the recorded one did. Owns the engine while it runs; the answers in the recording are not looked at.
 */
#ifndef FROND_SIM_REPLAY_H
#define FROND_SIM_REPLAY_H

#include "text/words.h"

#include <stdio.h>

/* FROND_BAD: the complaint has the line of the recording; line 0: the program's fault, or memory that ran out. A last call
 * that is cut off is left out, with a note on stderr. A complaint comes before anything is written to out, unless
 * create is refused here and calls follow it. */
int32_t replay_run(const char *text, uint32_t len, FILE *out, struct complaint *complaint);

#endif
