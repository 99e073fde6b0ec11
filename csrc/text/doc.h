/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doc.h - a YAML or JSON document as a tree that remembers its lines, and strict readers over it.
 * Owns the tree until doc_free(). Knows nothing of fabrics or jobs. Refuses what would make two readers disagree or one
 * of them explode: keys twice, anchors and aliases, tags, a second document unless a stream is asked for, bytes that are
 * not UTF-8, NUL.
 *
 * A value is its position in doc.values; the root is 0. Complaints carry the value's line and its path, such as
 * "spines[0].leaves[2].nodes". Text is NUL-terminated and holds no other NUL.
 */
#ifndef FROND_TEXT_DOC_H
#define FROND_TEXT_DOC_H

#include "text/words.h"

#define DOC_BYTES_MAX  (64u << 20)
#define DOC_VALUES_MAX (4u << 20) /* a fabric with every node's exceptions in full has some 3 million */
#define DOC_DEPTH_MAX  32u
#define DOC_KEYS_MAX   256u /* in one map */
#define DOC_NONE       UINT32_MAX

enum doc_kind { DOC_SCALAR, DOC_LIST, DOC_MAP };

struct doc_value {
	enum doc_kind kind;
	bool plain; /* a scalar without quotes: may be a number, a boolean or null */
	uint32_t line;
	uint32_t key_line;              /* in a map; of a root: where its document starts */
	uint32_t parent, next;          /* DOC_NONE: none */
	uint32_t first, last, count;    /* of a list or map */
	uint32_t index;                 /* in its parent */
	uint32_t key_at, key_len;       /* in doc.text; in a map */
	uint32_t scalar_at, scalar_len; /* in doc.text; of a scalar */
};

struct doc {
	struct doc_value *values;
	char *text;
	uint32_t value_count, value_room;
	uint32_t text_len, text_room;
};

/* On success the caller frees with doc_free(); on failure *out is all zero. */
int32_t doc_read(const char *text, uint32_t len, struct doc *out, struct complaint *complaint);
/* A stream of documents: their roots follow one another by next. */
int32_t doc_read_stream(const char *text, uint32_t len, struct doc *out, struct complaint *complaint);
void doc_free(struct doc *doc);

static inline const char *doc_key(const struct doc *doc, uint32_t at)
{
	return doc->text + doc->values[at].key_at;
}

static inline const char *doc_scalar(const struct doc *doc, uint32_t at)
{
	return doc->text + doc->values[at].scalar_at;
}

/* "PATH: " and the sentence, with the value's line. */
int32_t doc_complain(const struct doc *doc, uint32_t at, struct complaint *complaint, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

struct doc_path {
	char text[200];
};
struct doc_path doc_path(const struct doc *doc, uint32_t at);

/* docjson.c: a value as JSON, malloc'd and NUL-terminated; NULL: out of memory. A plain scalar that JSON does not know
 * is a string. */
char *doc_json(const struct doc *doc, uint32_t at);

/* Is the scalar one of YAML's ways to write nothing? */
bool doc_is_null(const struct doc *doc, uint32_t at);

/* The value of a map's key; DOC_NONE when the map does not have it. */
uint32_t doc_get(const struct doc *doc, uint32_t map, const char *key);

/* Strict readers. Each refuses a value of another kind. */
int32_t doc_list(const struct doc *doc, uint32_t at, struct complaint *complaint);
int32_t doc_map(const struct doc *doc, uint32_t at, struct complaint *complaint);
int32_t doc_map_of(const struct doc *doc, uint32_t at, const char *const *keys, uint32_t key_count,
		   struct complaint *complaint); /* no keys but these */
int32_t doc_need(const struct doc *doc, uint32_t map, const char *key, uint32_t *out, struct complaint *complaint);
int32_t doc_word(const struct doc *doc, uint32_t at, const char **out, struct complaint *complaint); /* not null */
int32_t doc_whole(const struct doc *doc, uint32_t at, int64_t min, int64_t max, int64_t *out,
		  struct complaint *complaint);
int32_t doc_bool(const struct doc *doc, uint32_t at, bool *out, struct complaint *complaint);

#endif
