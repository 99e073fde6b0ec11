/* SPDX-License-Identifier: Apache-2.0 */
#include "text/json.h"

#include "text/utf8.h"

static bool is_plain(const char *character, uint32_t length)
{
	return length > 1 ||
	       (length == 1 && (unsigned char)*character >= 0x20 && *character != '"' && *character != '\\');
}

void json_string(struct out *out, const char *text, uint64_t len)
{
	out_printf(out, "\"");
	uint64_t at = 0;
	while (at < len) {
		uint64_t start = at;
		uint32_t length = utf8_length(text + at, len - at);
		while (is_plain(text + at, length) && at - start < 1024) {
			at += length;
			length = utf8_length(text + at, len - at);
		}
		if (at > start) {
			out_printf(out, "%.*s", (int)(at - start), text + start);
			continue;
		}
		if (length == 0)
			out_printf(out, "\\ufffd");
		else if (text[at] == '"' || text[at] == '\\')
			out_printf(out, "\\%c", text[at]);
		else
			out_printf(out, "\\u%04x", (unsigned)text[at]);
		at++;
	}
	out_printf(out, "\"");
}
