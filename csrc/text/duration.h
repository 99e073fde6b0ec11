/* SPDX-License-Identifier: Apache-2.0 */
/*
 * duration.h - how long, as users write it: "5m", "90s", "1h30m" or "forever". Hours, then minutes, then seconds, each
 * at most once and in whole numbers; there is no bare number, because 5 of what?
 */
#ifndef FROND_TEXT_DURATION_H
#define FROND_TEXT_DURATION_H

#include <stdint.h>

#define DURATION_HOURS_MAX 1000u /* so that milliseconds fit 32 bits; longer is "forever" */

/* NULL on success; WAIT_FOREVER for "forever". Else *out_ms is untouched and the answer ends the sentence
 * "… is not". */
const char *duration_read(const char *text, uint64_t len, int64_t *out_ms);

struct duration_text {
	char text[40];
};

/* The other way round: "1h30m", "45m", "20s", part of a second as one; 0: "now"; below it: "never". */
struct duration_text duration_text(int64_t ms);

#endif
