/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words.h - what every part of csrc/text says errors with, and the enums that words become.
 * Owns nothing. Sentences are one line, at most FROND_TEXT_MAX - 1 bytes, and quote user input only shortened.
 */
#ifndef FROND_TEXT_WORDS_H
#define FROND_TEXT_WORDS_H

#include "core/ask.h" /* enum strategy, enum mode, enum recovery */

#include <stdbool.h>
#include <stdint.h>

#define WAIT_FOREVER INT64_MAX /* ms */

struct complaint {
	uint32_t line;             /* 1-based line of the document; 0: has none */
	char text[FROND_TEXT_MAX]; /* "PATH: what is wrong, what is allowed" */
};

/* Formats into the complaint, cuts at its size, replaces control bytes by '?'. Returns FROND_BAD for `return complain(…)`. */
int32_t complain(struct complaint *complaint, uint32_t line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* value[0..len) for a sentence: printable, at most 40 bytes then "…", NUL-terminated in out. */
struct shown {
	char text[64];
};
struct shown shown(const char *value, uint64_t len);

/* Natural order of names: runs of digits compare as numbers, so leaf-2 comes before leaf-10; <0, 0, >0. Total: names
 * that differ never compare equal (leaf-02 and leaf-2 fall back to bytes). */
int natural_compare(const char *a, uint32_t a_len, const char *b, uint32_t b_len);

/* Do the bytes of a span lie inside the text that came with it? */
static inline bool span_inside(struct frond_span span, uint32_t len)
{
	return span.off <= len && span.len <= len - span.off;
}

#endif
