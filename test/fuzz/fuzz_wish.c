/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is annotations, KEY=VALUE a line; a key without "/" is one of ours.
 */
#include "fuzz.h"

#include "text/wish.h"

enum { PAIRS = 16, TEXT = 8192 };
#define PREFIX "topology.scheduler/"

struct annotations {
	struct frond_pair pairs[PAIRS];
	uint32_t count, len;
	char text[TEXT];
};

static struct frond_span keep(struct annotations *out, const char *prefix, const char *text, uint32_t len)
{
	uint32_t start = out->len, prefix_len = (uint32_t)strlen(prefix);
	memcpy(out->text + start, prefix, prefix_len);
	memcpy(out->text + start + prefix_len, text, len);
	out->len += prefix_len + len;
	return (struct frond_span){start, prefix_len + len};
}

static void split(const char *text, size_t size, struct annotations *out)
{
	const char *end = text + size;
	while (text < end && out->count < PAIRS && out->len + (uint32_t)(end - text) + sizeof PREFIX < TEXT) {
		const char *line_end = memchr(text, '\n', (size_t)(end - text));
		line_end = line_end != NULL ? line_end : end;
		const char *equals = memchr(text, '=', (size_t)(line_end - text));
		const char *key_end = equals != NULL ? equals : line_end;
		const char *value = equals != NULL ? equals + 1 : line_end;
		uint32_t key_len = (uint32_t)(key_end - text);
		struct frond_pair *pair = &out->pairs[out->count++];
		pair->key = keep(out, memchr(text, '/', key_len) != NULL ? "" : PREFIX, text, key_len);
		pair->value = keep(out, "", value, (uint32_t)(line_end - value));
		text = line_end + (line_end < end);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct args args; /* read once: all defaults, and the same for every input */
	struct complaint complaint;
	if (args.resource_count == 0)
		MUST(args_read("", 0, &args, &complaint) == FROND_OK);
	struct annotations *given = calloc(1, sizeof *given);
	MUST(given != NULL);
	split((const char *)data, size, given);
	struct wish wish;
	int32_t code = wish_read(given->pairs, given->count, given->text, given->len, &args, &wish, &complaint);
	MUST(code == FROND_OK || code == FROND_BAD);
	if (code == FROND_BAD) {
		must_be_sentence(complaint.text, strlen(complaint.text));
	} else {
		MUST(memchr(wish.preferred_domain, 0, sizeof wish.preferred_domain) != NULL);
		MUST(wish.bandwidth_gbps <= 1000000);
		MUST(wish.wait_ms >= 0 && (wish.wait_ms == WAIT_FOREVER || wish.wait_ms <= UINT32_MAX));
		MUST(!wish.latency_sensitive || (wish.mode == MODE_REQUIRED && wish.wait_ms == WAIT_FOREVER));
	}
	/* A span that ends beyond the text is refused, wherever it stands. */
	if (given->count > 0) {
		given->pairs[given->count - 1].value.len = given->len + 1;
		MUST(wish_read(given->pairs, given->count, given->text, given->len, &args, &wish, &complaint) ==
		     FROND_BAD);
	}
	free(given);
	return 0;
}
