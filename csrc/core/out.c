/* SPDX-License-Identifier: Apache-2.0 */
#include "core/out.h"

#include <stdarg.h>
#include <stdio.h>

/* As out_printf() leaves it: what fits, and a NUL behind it. */
void out_bytes(struct out *out, const char *bytes, uint32_t count)
{
	uint64_t room = out->len < out->cap ? out->cap - out->len : 0;
	if (room > 0) {
		uint64_t fits = count < room ? count : room - 1;
		memcpy(out->text + out->len, bytes, fits);
		out->text[out->len + fits] = 0;
	}
	out->len += count;
}

void out_printf(struct out *out, const char *format, ...)
{
	uint64_t room = out->len < out->cap ? out->cap - out->len : 0;
	va_list arguments;
	va_start(arguments, format);
	int written = vsnprintf(room > 0 ? out->text + out->len : NULL, room, format, arguments);
	va_end(arguments);
	assert(written >= 0);
	out->len += (uint64_t)written;
}

int32_t out_finish(const struct out *out, uint32_t *len)
{
	assert(out->len < UINT32_MAX);
	bool fits = out->len < out->cap;
	*len = (uint32_t)out->len + !fits; /* vsnprintf wants a byte more, for its NUL */
	return fits ? FROND_OK : FROND_SMALL;
}
