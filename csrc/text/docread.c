/* SPDX-License-Identifier: Apache-2.0 */
/* The readers of doc.h: paths, and values of the kind that is asked for or a complaint. */
#include "text/doc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define WHOLE_DIGITS_MAX 18u /* always fits int64_t */

static const char *kind_words(const struct doc_value *value);
static bool whole_parse(const char *text, int64_t *out);

int32_t doc_complain(const struct doc *doc, uint32_t at, struct complaint *complaint, const char *format, ...)
{
	char sentence[FROND_TEXT_MAX];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(sentence, sizeof(sentence), format, arguments);
	va_end(arguments);
	return complain(complaint, doc->values[at].line, "%s: %s", doc_path(doc, at).text, sentence);
}

struct doc_path doc_path(const struct doc *doc, uint32_t at)
{
	struct doc_path out = {"document"};
	uint32_t chain[DOC_DEPTH_MAX + 1], depth = 0;
	for (; doc->values[at].parent != DOC_NONE; at = doc->values[at].parent)
		chain[depth++] = at;

	uint32_t used = 0;
	while (depth > 0 && used < sizeof(out.text)) {
		const struct doc_value *value = &doc->values[chain[--depth]];
		char *end = out.text + used;
		uint64_t room = sizeof(out.text) - used;
		if (doc->values[value->parent].kind == DOC_LIST)
			used += (uint32_t)snprintf(end, room, "[%u]", value->index);
		else
			used += (uint32_t)snprintf(end, room, "%s%s", used == 0 ? "" : ".",
						   shown(doc->text + value->key_at, value->key_len).text);
	}
	return out;
}

uint32_t doc_get(const struct doc *doc, uint32_t map, const char *key)
{
	uint64_t len = strlen(key);
	for (uint32_t i = doc->values[map].first; i != DOC_NONE; i = doc->values[i].next) {
		if (doc->values[i].key_len == len && memcmp(doc_key(doc, i), key, len) == 0)
			return i;
	}
	return DOC_NONE;
}

int32_t doc_list(const struct doc *doc, uint32_t at, struct complaint *complaint)
{
	if (doc->values[at].kind == DOC_LIST)
		return FROND_OK;
	return doc_complain(doc, at, complaint, "must be a list, got %s", kind_words(&doc->values[at]));
}

int32_t doc_map(const struct doc *doc, uint32_t at, struct complaint *complaint)
{
	if (doc->values[at].kind == DOC_MAP)
		return FROND_OK;
	return doc_complain(doc, at, complaint, "must be a map, got %s", kind_words(&doc->values[at]));
}

int32_t doc_map_of(const struct doc *doc, uint32_t at, const char *const *keys, uint32_t key_count,
		   struct complaint *complaint)
{
	int32_t code = doc_map(doc, at, complaint);
	if (code != FROND_OK)
		return code;
	for (uint32_t i = doc->values[at].first; i != DOC_NONE; i = doc->values[i].next) {
		uint32_t k = 0;
		while (k < key_count && strcmp(keys[k], doc_key(doc, i)) != 0)
			k++;
		if (k < key_count)
			continue;
		char allowed[FROND_TEXT_MAX / 2] = "";
		uint32_t used = 0;
		for (k = 0; k < key_count && used < sizeof(allowed); k++)
			used += (uint32_t)snprintf(allowed + used, sizeof(allowed) - used, "%s%s", k == 0 ? "" : ", ",
						   keys[k]);
		return complain(complaint, doc->values[i].key_line, "%s: is not a known key; allowed are %s",
				doc_path(doc, i).text, allowed);
	}
	return FROND_OK;
}

int32_t doc_need(const struct doc *doc, uint32_t map, const char *key, uint32_t *out, struct complaint *complaint)
{
	*out = doc_get(doc, map, key);
	if (*out != DOC_NONE)
		return FROND_OK;
	struct doc_path path = doc_path(doc, map);
	bool root = doc->values[map].parent == DOC_NONE;
	return complain(complaint, doc->values[map].line, "%s%s%s: is missing", root ? "" : path.text, root ? "" : ".",
			key);
}

int32_t doc_word(const struct doc *doc, uint32_t at, const char **out, struct complaint *complaint)
{
	if (doc->values[at].kind != DOC_SCALAR)
		return doc_complain(doc, at, complaint, "must be text, got %s", kind_words(&doc->values[at]));
	if (doc_is_null(doc, at))
		return doc_complain(doc, at, complaint, "must be text, got nothing");
	*out = doc_scalar(doc, at);
	return FROND_OK;
}

int32_t doc_whole(const struct doc *doc, uint32_t at, int64_t min, int64_t max, int64_t *out,
		  struct complaint *complaint)
{
	const struct doc_value *value = &doc->values[at];
	int64_t number = 0;
	if (value->kind != DOC_SCALAR || doc_is_null(doc, at))
		return doc_complain(doc, at, complaint, "must be a whole number, got %s",
				    value->kind == DOC_SCALAR ? "nothing" : kind_words(value));
	struct shown got = shown(doc_scalar(doc, at), value->scalar_len);
	if (!value->plain)
		return doc_complain(doc, at, complaint, "must be a whole number without quotes, got \"%s\"", got.text);
	if (!whole_parse(doc_scalar(doc, at), &number))
		return doc_complain(doc, at, complaint, "must be a whole number between %lld and %lld, got \"%s\"",
				    (long long)min, (long long)max, got.text);
	if (number < min || number > max)
		return doc_complain(doc, at, complaint, "must be between %lld and %lld, got %s", (long long)min,
				    (long long)max, got.text);
	*out = number;
	return FROND_OK;
}

int32_t doc_bool(const struct doc *doc, uint32_t at, bool *out, struct complaint *complaint)
{
	const struct doc_value *value = &doc->values[at];
	if (value->kind != DOC_SCALAR)
		return doc_complain(doc, at, complaint, "must be true or false, got %s", kind_words(value));
	bool yes = strcmp(doc_scalar(doc, at), "true") == 0;
	if (!value->plain || (!yes && strcmp(doc_scalar(doc, at), "false") != 0))
		return doc_complain(doc, at, complaint, "must be true or false, got \"%s\"",
				    shown(doc_scalar(doc, at), value->scalar_len).text);
	*out = yes;
	return FROND_OK;
}

static const char *kind_words(const struct doc_value *value)
{
	return value->kind == DOC_LIST ? "a list" : value->kind == DOC_MAP ? "a map" : "a single value";
}

bool doc_is_null(const struct doc *doc, uint32_t at)
{
	static const char *const words[] = {"", "~", "null", "Null", "NULL"};
	if (doc->values[at].kind != DOC_SCALAR || !doc->values[at].plain)
		return false;
	for (uint32_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(doc_scalar(doc, at), words[i]) == 0)
			return true;
	}
	return false;
}

/* Decimal only: 010 is eight to one YAML reader and ten to the next. */
static bool whole_parse(const char *text, int64_t *out)
{
	bool negative = text[0] == '-';
	const char *digits = text + negative;
	uint64_t len = strlen(digits);
	if (len == 0 || len > WHOLE_DIGITS_MAX || (digits[0] == '0' && len > 1))
		return false;
	int64_t number = 0;
	for (uint64_t i = 0; i < len; i++) {
		if (digits[i] < '0' || digits[i] > '9')
			return false;
		number = number * 10 + (digits[i] - '0');
	}
	*out = negative ? -number : number;
	return true;
}
