/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz.h - what every fuzz target shares: the entry point that libFuzzer and replay.c call, and how a target says that
 * something is wrong. A target is one file fuzz_NAME.c, its inputs are in corpus/NAME, its words in dict/NAME.
 */
#ifndef FROND_TEST_FUZZ_H
#define FROND_TEST_FUZZ_H

#include "frond.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One fact that must hold for every input; libFuzzer keeps the input when it does not. */
#define MUST(fact)                                                                                                     \
	do {                                                                                                           \
		if (!(fact)) {                                                                                         \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #fact);                      \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

/* A refusal's sentence: there is one, on one line, without bytes that a terminal would obey. */
static inline void must_be_sentence(const char *text, uint64_t len)
{
	MUST(len > 0 && len < FROND_TEXT_MAX + 32);
	for (uint64_t i = 0; i < len; i++)
		MUST((unsigned char)text[i] >= 0x20 && text[i] != 0x7f);
}

/* Memory for an engine, of exactly the size that it asks for, so that a step beyond it is seen. Kept until the end: every
 * input makes its engine in the same place, and create() must not rely on what is there. */
static inline void *engine_memory(const struct frond_abi *abi, const struct frond_limits *limits, uint64_t *bytes)
{
	static void *mem;
	static uint64_t room;
	*bytes = abi->size_of(limits);
	MUST(*bytes > 0);
	if (*bytes != room) {
		free(mem);
		mem = aligned_alloc(16, (*bytes + 15) / 16 * 16);
		room = *bytes;
	}
	MUST(mem != NULL);
	return mem;
}

#endif
