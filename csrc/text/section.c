/* SPDX-License-Identifier: Apache-2.0 */
#include "text/section.h"

#include "text/utf8.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THOUSAND 1000u

static bool has_escaped_nul(const char *json, uint32_t len);
static bool is_blank(const char *text);

int32_t section_parse(const char *path, const char *json, uint32_t len, cJSON **out, struct complaint *complaint)
{
	*out = NULL;
	if (len == 0)
		return FROND_OK;
	if (len > SECTION_BYTES_MAX)
		return complain(complaint, 0, "%s: has %u bytes; at most %u are read", path, len, SECTION_BYTES_MAX);
	if (memchr(json, 0, len) != NULL || has_escaped_nul(json, len))
		return complain(complaint, 0, "%s: holds a NUL byte, which is not allowed", path);
	uint64_t valid = utf8_valid_until(json, len);
	if (valid < len)
		return complain(complaint, 0, "%s: is not UTF-8 at byte %llu", path, (unsigned long long)valid);

	char *text = malloc((uint64_t)len + 1); /* cJSON reads safely only what ends in NUL */
	if (text == NULL)
		return complain(complaint, 0, "%s: out of memory", path);
	memcpy(text, json, len);
	text[len] = '\0';
	int32_t code = FROND_OK;
	const char *end = NULL;
	if (!is_blank(text)) {
		*out = cJSON_ParseWithLengthOpts(text, (uint64_t)len + 1, &end, false);
		if (*out == NULL)
			code = complain(complaint, 0, "%s: is not valid JSON at byte %llu", path,
					(unsigned long long)(end == NULL ? 0 : end - text));
		else if (!is_blank(end))
			code = complain(complaint, 0, "%s: has more text after the end of its object, at byte %llu",
					path, (unsigned long long)(end - text));
	}
	free(text);
	if (code != FROND_OK) {
		cJSON_Delete(*out);
		*out = NULL;
	}
	return code;
}

struct section section_of(const struct section *parent, const char *key, const char *path)
{
	return (struct section){.object = section_field(parent, key), .path = path, .complaint = parent->complaint};
}

int32_t section_check(const struct section *section, const char *const *known, uint32_t known_count)
{
	if (section->object == NULL)
		return FROND_OK;
	if (!cJSON_IsObject(section->object))
		return complain(section->complaint, 0, "%s: must be an object", section->path);
	assert(known_count <= SECTION_FIELDS_MAX);
	uint32_t seen = 0; /* bit per known field */
	for (const cJSON *item = section->object->child; item != NULL; item = item->next) {
		uint32_t i = 0;
		while (i < known_count && strcmp(known[i], item->string) != 0)
			i++;
		if (i == known_count)
			return complain(section->complaint, 0, "%s.%s: is not a known field", section->path,
					shown(item->string, strlen(item->string)).text);
		if ((seen & 1u << i) != 0)
			return complain(section->complaint, 0, "%s.%s: is written twice", section->path, known[i]);
		seen |= 1u << i;
	}
	return FROND_OK;
}

const cJSON *section_field(const struct section *section, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(section->object, key);
}

int32_t section_refuse(const struct section *section, const char *key, const char *what, const cJSON *got)
{
	if (cJSON_IsString(got))
		return complain(section->complaint, 0, "%s.%s: %s, got \"%s\"", section->path, key, what,
				shown(got->valuestring, strlen(got->valuestring)).text);
	if (cJSON_IsNumber(got))
		return complain(section->complaint, 0, "%s.%s: %s, got %.15g", section->path, key, what,
				got->valuedouble);
	const char *kind = cJSON_IsObject(got)  ? "an object"
			   : cJSON_IsArray(got) ? "a list"
			   : cJSON_IsNull(got)  ? "null"
			   : cJSON_IsTrue(got)  ? "true"
						: "false";
	return complain(section->complaint, 0, "%s.%s: %s, got %s", section->path, key, what, kind);
}

int32_t section_whole(const struct section *section, const char *key, uint32_t min, uint32_t max, uint32_t *out)
{
	const cJSON *item = section_field(section, key);
	if (item == NULL)
		return FROND_OK;
	char what[80];
	snprintf(what, sizeof(what), "must be a whole number between %u and %u", min, max);
	if (!cJSON_IsNumber(item) || !(item->valuedouble >= min && item->valuedouble <= max))
		return section_refuse(section, key, what, item);
	uint32_t number = (uint32_t)item->valuedouble;
	if (number != item->valuedouble)
		return section_refuse(section, key, what, item);
	*out = number;
	return FROND_OK;
}

/* A weight. The division is correctly rounded, so it gives back the very double that cJSON read exactly when the text
 * was a number of thousandths. */
int32_t section_thousandths(const struct section *section, const char *key, uint32_t *out)
{
	const cJSON *item = section_field(section, key);
	if (item == NULL)
		return FROND_OK;
	if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble <= 1))
		return section_refuse(section, key, "must be between 0 and 1", item);
	uint32_t thousandths = (uint32_t)(item->valuedouble * THOUSAND + 0.5);
	if ((double)thousandths / THOUSAND != item->valuedouble)
		return section_refuse(section, key, "must have at most 3 decimals", item);
	*out = thousandths;
	return FROND_OK;
}

int32_t section_bool(const struct section *section, const char *key, bool *out)
{
	const cJSON *item = section_field(section, key);
	if (item == NULL)
		return FROND_OK;
	if (!cJSON_IsBool(item))
		return section_refuse(section, key, "must be true or false", item);
	*out = cJSON_IsTrue(item);
	return FROND_OK;
}

int32_t section_choice(const struct section *section, const char *key, const struct choice *choice, uint32_t *out)
{
	const cJSON *item = section_field(section, key);
	if (item == NULL)
		return FROND_OK;
	uint32_t found =
		cJSON_IsString(item) ? choice_find(choice, item->valuestring, strlen(item->valuestring)) : FROND_NONE;
	char what[200];
	snprintf(what, sizeof(what), "must be %s", choice_list(choice).text);
	if (found == FROND_NONE)
		return section_refuse(section, key, what, item);
	*out = found;
	return FROND_OK;
}

int32_t section_path(const struct section *section, const char *key, uint32_t max, char *out)
{
	const cJSON *item = section_field(section, key);
	if (item == NULL)
		return FROND_OK;
	if (!cJSON_IsString(item) || item->valuestring[0] == '\0')
		return section_refuse(section, key, "must be the path of a file", item);
	uint64_t len = strlen(item->valuestring);
	if (len > max)
		return complain(section->complaint, 0, "%s.%s: is %llu bytes long; at most %u are allowed",
				section->path, key, (unsigned long long)len, max);
	for (uint64_t i = 0; i < len; i++) {
		if ((unsigned char)item->valuestring[i] < 0x20)
			return section_refuse(section, key, "must be a path without control characters", item);
	}
	memcpy(out, item->valuestring, len + 1);
	return FROND_OK;
}

/* \u0000 would cut a string short in C. A backslash only ever stands inside a string, before what it escapes. */
static bool has_escaped_nul(const char *json, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++) {
		if (json[i] != '\\')
			continue;
		if (len - i >= 6 && memcmp(json + i, "\\u0000", 6) == 0)
			return true;
		i++;
	}
	return false;
}

static bool is_blank(const char *text)
{
	return text[strspn(text, " \t\r\n")] == '\0';
}
