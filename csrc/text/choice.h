/* SPDX-License-Identifier: Apache-2.0 */
/*
 * choice.h - words that stand for an enum, spelled exactly so in args and annotations. The position of a word is the
 * value of its enum in words.h.
 */
#ifndef FROND_TEXT_CHOICE_H
#define FROND_TEXT_CHOICE_H

#include <stdint.h>

#define CHOICE_WORDS_MAX 8u

struct choice {
	uint32_t count;
	const char *words[CHOICE_WORDS_MAX];
};

extern const struct choice choice_strategy;
extern const struct choice choice_mode;
extern const struct choice choice_recovery;

/* The position of value[0..len), FROND_NONE when it is none of the words. */
uint32_t choice_find(const struct choice *choice, const char *value, uint64_t len);

/* "a, b or c", for a sentence. */
struct choice_list {
	char text[160];
};
struct choice_list choice_list(const struct choice *choice);

#endif
