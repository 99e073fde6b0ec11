/* SPDX-License-Identifier: Apache-2.0 */
/*
 * section.h - strict reading of a JSON object (cJSON) whose fields are known: unknown fields, fields written twice, wrong
 * types and numbers out of range are one sentence with the path. Owns no field's meaning.
 * Readers leave *out as it is when the field is absent, so that it holds the default before.
 */
#ifndef FROND_TEXT_SECTION_H
#define FROND_TEXT_SECTION_H

#include "text/choice.h"
#include "text/words.h"

#include <cjson/cJSON.h>

#define SECTION_BYTES_MAX  (1u << 20) /* of a whole document */
#define SECTION_FIELDS_MAX 32u        /* in one object */

struct section {
	const cJSON *object; /* NULL: absent, all defaults */
	const char *path;
	struct complaint *complaint;
};

/* Text to a document, which the caller gives to cJSON_Delete(). *out is NULL when there is nothing but white space. */
int32_t section_parse(const char *path, const char *json, uint32_t len, cJSON **out, struct complaint *complaint);

struct section section_of(const struct section *parent, const char *key, const char *path);

/* An object with no fields but these, each at most once. */
int32_t section_check(const struct section *section, const char *const *known, uint32_t known_count);

/* NULL: absent. */
const cJSON *section_field(const struct section *section, const char *key);

/* "PATH.KEY: WHAT, got VALUE" */
int32_t section_refuse(const struct section *section, const char *key, const char *what, const cJSON *got);

int32_t section_whole(const struct section *section, const char *key, uint32_t min, uint32_t max, uint32_t *out);
int32_t section_thousandths(const struct section *section, const char *key, uint32_t *out); /* a number 0 … 1 */
int32_t section_bool(const struct section *section, const char *key, bool *out);
int32_t section_choice(const struct section *section, const char *key, const struct choice *choice, uint32_t *out);

/* A file's path, 1 … max bytes; out has room for max + 1. */
int32_t section_path(const struct section *section, const char *key, uint32_t max, char *out);

#endif
