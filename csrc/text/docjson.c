/* SPDX-License-Identifier: Apache-2.0 */
/* Part of doc.h: a value of a document as JSON, for readers that want text. */
#include "text/doc.h"
#include "text/json.h"

#include <stdlib.h>

/* Would JSON read the plain scalar as a number? */
static bool is_number(const char *text)
{
	text += *text == '-';
	if (*text < '0' || *text > '9' || (text[0] == '0' && text[1] >= '0' && text[1] <= '9'))
		return false;
	text += strspn(text, "0123456789");
	if (*text == '.') {
		size_t digits = strspn(text + 1, "0123456789");
		if (digits == 0)
			return false;
		text += 1 + digits;
	}
	if (*text == 'e' || *text == 'E') {
		text += 1 + (text[1] == '+' || text[1] == '-');
		size_t digits = strspn(text, "0123456789");
		if (digits == 0)
			return false;
		text += digits;
	}
	return *text == '\0';
}

static void write_scalar(struct out *out, const struct doc *doc, uint32_t at)
{
	const char *text = doc_scalar(doc, at);
	bool word = strcmp(text, "true") == 0 || strcmp(text, "false") == 0 || strcmp(text, "null") == 0;
	if (doc->values[at].plain && (text[0] == '\0' || strcmp(text, "~") == 0))
		out_printf(out, "null");
	else if (doc->values[at].plain && (word || is_number(text)))
		out_printf(out, "%s", text);
	else
		json_string(out, text, doc->values[at].scalar_len);
}

static void write_value(struct out *out, const struct doc *doc, uint32_t at) /* as deep as DOC_DEPTH_MAX */
{
	const struct doc_value *value = &doc->values[at];
	if (value->kind == DOC_SCALAR) {
		write_scalar(out, doc, at);
		return;
	}
	bool map = value->kind == DOC_MAP;
	out_printf(out, map ? "{" : "[");
	for (uint32_t i = value->first; i != DOC_NONE; i = doc->values[i].next) {
		if (i != value->first)
			out_printf(out, ",");
		if (map) {
			json_string(out, doc_key(doc, i), doc->values[i].key_len);
			out_printf(out, ":");
		}
		write_value(out, doc, i);
	}
	out_printf(out, map ? "}" : "]");
}

char *doc_json(const struct doc *doc, uint32_t at)
{
	struct out count = {.text = NULL};
	write_value(&count, doc, at);
	char *text = malloc(count.len + 1);
	if (text == NULL)
		return NULL;
	struct out out = {.text = text, .cap = (uint32_t)count.len + 1};
	write_value(&out, doc, at);
	text[out.len] = '\0';
	return text;
}
