/* SPDX-License-Identifier: Apache-2.0 */
/*
 * range.h - a word that stands for many names: "node[001-032]" or "node[1-4,7].rack". Owns the grammar: one pair of
 * brackets, in it numbers and ranges of numbers with commas between, in the order written; leading zeros are kept, and
 * with them all numbers have the same number of digits. A word without a bracket stands for itself. Which names are
 * names is for others to say.
 */
#ifndef FROND_TEXT_RANGE_H
#define FROND_TEXT_RANGE_H

#include "frond.h"

#include <stdbool.h>
#include <stdint.h>

#define RANGE_NAMES_MAX FROND_NODES_MAX /* that one word may stand for */

struct range { /* a word while its names are read one after the other */
	const char *word;
	const char *open, *close; /* the brackets; NULL: there are none */
	const char *item;         /* the next number or range; NULL: no name is left */
	uint64_t next, last;      /* of the range that is being read, in which next <= last */
	uint32_t digits;          /* that every number is padded to; 0: not padded */
	uint64_t count;           /* names in all */
};

/* NULL on success; else what is wrong and what is allowed, to end a sentence that begins with the word. The word must live
 * as long as the range. */
const char *range_open(const char *word, struct range *out);

/* The next name, at most FROND_NAME_MAX + 1 bytes with its NUL; a longer one is cut there, and is then no name any more. */
bool range_next(struct range *range, char out[FROND_NAME_MAX + 2]);

#endif
