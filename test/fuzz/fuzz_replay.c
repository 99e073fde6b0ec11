/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is a recording. What replay_run() accepts it can replay again to the same bytes: a recording of a recording
 * says the same.
 */
#include "fuzz.h"

#include "sim/replay.h"

#include <stdlib.h>

static char *replay(const char *text, size_t len, size_t *out_len, int32_t *code, struct complaint *complaint)
{
	char *out = NULL;
	FILE *stream = open_memstream(&out, out_len);
	MUST(stream != NULL);
	*code = replay_run(text, (uint32_t)len, stream, complaint);
	fclose(stream);
	return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct complaint complaint;
	int32_t code;
	size_t len, again_len;
	char *once = replay((const char *)data, size, &len, &code, &complaint);
	MUST(code == FROND_OK || code == FROND_BAD);
	if (code == FROND_BAD) {
		must_be_sentence(complaint.text, strlen(complaint.text));
	} else if (len > 0) {
		char *twice = replay(once, len, &again_len, &code, &complaint);
		MUST(code == FROND_OK && again_len == len && memcmp(once, twice, len) == 0);
		free(twice);
	}
	free(once);
	return 0;
}
