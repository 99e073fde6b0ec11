/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/source.h"

#include "text/doc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES 65536u

static int32_t stream_read(FILE *stream, struct source *out, struct complaint *complaint);

int32_t source_read(const char *path, struct source *out, struct complaint *complaint)
{
	memset(out, 0, sizeof(*out));
	bool is_stdin = strcmp(path, "-") == 0;
	FILE *stream = is_stdin ? stdin : fopen(path, "rb");
	if (stream == NULL)
		return complain(complaint, 1, "file: cannot be opened, %s", strerror(errno));
	int32_t code = stream_read(stream, out, complaint);
	if (!is_stdin)
		fclose(stream);
	if (code != FROND_OK)
		source_free(out);
	return code;
}

void source_free(struct source *source)
{
	free(source->text);
	memset(source, 0, sizeof(*source));
}

/* One byte more than a document may have is enough to know that it is too long. */
static int32_t stream_read(FILE *stream, struct source *out, struct complaint *complaint)
{
	uint32_t room = 0;
	for (;;) {
		if (out->len == room) {
			room = room == 0 ? FIRST_BYTES : room * 2;
			room = room > DOC_BYTES_MAX + 1 ? DOC_BYTES_MAX + 1 : room;
			char *grown = realloc(out->text, room);
			if (grown == NULL)
				return complain(complaint, 1, "file: out of memory");
			out->text = grown;
		}
		size_t got = fread(out->text + out->len, 1, room - out->len, stream);
		if (ferror(stream))
			return complain(complaint, 1, "file: cannot be read, %s", strerror(errno));
		out->len += (uint32_t)got;
		if (out->len > DOC_BYTES_MAX)
			return complain(complaint, 1, "file: has more than %u bytes", DOC_BYTES_MAX);
		if (got == 0 || feof(stream))
			return FROND_OK;
	}
}
