/* SPDX-License-Identifier: Apache-2.0 */
/*
 * out.h - text into a buffer of the caller's. Keeps counting past the end, so the caller learns what it needs.
 */
#ifndef FROND_CORE_OUT_H
#define FROND_CORE_OUT_H

#include "core/base.h"

struct out {
	char *text;
	uint32_t cap;
	uint64_t len; /* of the whole text, written or not */
};

/* Bytes as they are. */
void out_bytes(struct out *out, const char *bytes, uint32_t count);

void out_printf(struct out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* FROND_OK and the text's length, or FROND_SMALL and the capacity that it takes. */
int32_t out_finish(const struct out *out, uint32_t *len);

#endif
