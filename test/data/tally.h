/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tally.h - how many statements held. Tables go to stdout; a statement that does not hold is a sentence on stderr.
 */
#ifndef FROND_DATA_TALLY_H
#define FROND_DATA_TALLY_H

#include <stdbool.h>
#include <stdint.h>

struct tally {
	uint32_t passed, failed;
};

/* Counts; returns holds. */
bool tally_that(struct tally *tally, bool holds, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Data that is missing or not what it should be: one sentence, exit 2. */
_Noreturn void data_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
