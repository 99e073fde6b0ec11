/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.h - a file, or stdin, read whole. Owns the bytes until source_free(). Never interprets them.
 */
#ifndef FROND_SIM_SOURCE_H
#define FROND_SIM_SOURCE_H

#include "text/words.h"

struct source {
	char *text; /* not NUL-terminated */
	uint32_t len;
};

/* path "-" is stdin. On failure *out is all zero. */
int32_t source_read(const char *path, struct source *out, struct complaint *complaint);
void source_free(struct source *source);

#endif
