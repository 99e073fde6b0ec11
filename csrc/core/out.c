/* SPDX-License-Identifier: Apache-2.0 */
#include "core/out.h"

#include <stdarg.h>
#include <stdio.h>

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
