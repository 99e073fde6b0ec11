/* SPDX-License-Identifier: Apache-2.0 */
/* Reading: libyaml's events become the tree, one value an event, with a stack of our own. docread.c has the readers. */
#include "text/doc.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct reading {
	struct doc *doc;
	struct complaint *complaint;
	uint32_t stack[DOC_DEPTH_MAX]; /* open lists and maps, outermost first */
	uint32_t depth;
	bool has_key; /* the innermost map waits for the value of this key */
	uint32_t key_at, key_len, key_line;
	bool stream;       /* more than one document is allowed */
	uint32_t root;     /* of the last document that has one; DOC_NONE: none yet */
	uint32_t doc_line; /* where the document starts */
};

static int32_t events_read(yaml_parser_t *parser, const char *text, uint32_t len, struct reading *reading);
static int32_t event_take(struct reading *reading, const yaml_event_t *event);
static int32_t container_open(struct reading *reading, const yaml_event_t *event, enum doc_kind kind);
static int32_t scalar_take(struct reading *reading, const yaml_event_t *event);
static int32_t key_take(struct reading *reading, const yaml_event_t *event, uint32_t map);
static int32_t value_add(struct reading *reading, enum doc_kind kind, uint32_t line, uint32_t *out);
static int32_t text_add(struct reading *reading, const yaml_event_t *event, uint32_t *at, uint32_t *len);
static int32_t plain_only(struct reading *reading, uint32_t at, const yaml_char_t *anchor, const yaml_char_t *tag);
static int32_t syntax_complain(const yaml_parser_t *parser, const char *text, uint32_t len,
			       struct complaint *complaint);

static int32_t any_read(const char *text, uint32_t len, bool stream, struct doc *out, struct complaint *complaint)
{
	memset(out, 0, sizeof(*out));
	if (len > DOC_BYTES_MAX)
		return complain(complaint, 1, "document: has %u bytes; at most %u are read", len, DOC_BYTES_MAX);
	if (len == 0)
		return complain(complaint, 1, "document: is empty");
	yaml_parser_t parser;
	if (!yaml_parser_initialize(&parser))
		return complain(complaint, 1, "document: out of memory");
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);

	struct doc doc = {0};
	struct reading reading = {.doc = &doc, .complaint = complaint, .stream = stream, .root = DOC_NONE};
	int32_t code = events_read(&parser, text, len, &reading);
	yaml_parser_delete(&parser);
	if (code == FROND_OK)
		*out = doc;
	else
		doc_free(&doc);
	return code;
}

int32_t doc_read(const char *text, uint32_t len, struct doc *out, struct complaint *complaint)
{
	return any_read(text, len, false, out, complaint);
}

int32_t doc_read_stream(const char *text, uint32_t len, struct doc *out, struct complaint *complaint)
{
	return any_read(text, len, true, out, complaint);
}

void doc_free(struct doc *doc)
{
	free(doc->values);
	free(doc->text);
	memset(doc, 0, sizeof(*doc));
}

/* Ends: every event but those of stream and document adds a value or a key, or closes a value, and those are limited; a
 * document has a value of its own. */
static int32_t events_read(yaml_parser_t *parser, const char *text, uint32_t len, struct reading *reading)
{
	uint32_t documents = 0;
	for (;;) {
		yaml_event_t event;
		if (!yaml_parser_parse(parser, &event))
			return syntax_complain(parser, text, len, reading->complaint);
		uint32_t line = (uint32_t)event.start_mark.line + 1;
		int32_t code = FROND_OK;
		if (event.type == YAML_STREAM_END_EVENT) {
			if (documents == 0)
				code = complain(reading->complaint, 1, "document: is empty");
			yaml_event_delete(&event);
			return code;
		}
		if (event.type == YAML_DOCUMENT_START_EVENT)
			reading->doc_line = line;
		if (event.type == YAML_DOCUMENT_START_EVENT && documents++ > 0 && !reading->stream)
			code = complain(reading->complaint, line,
					"document: a second one starts here; one a file is allowed");
		else
			code = event_take(reading, &event);
		yaml_event_delete(&event);
		if (code != FROND_OK)
			return code;
	}
}

static int32_t event_take(struct reading *reading, const yaml_event_t *event)
{
	uint32_t at;
	switch (event->type) {
	case YAML_MAPPING_START_EVENT:
		return container_open(reading, event, DOC_MAP);
	case YAML_SEQUENCE_START_EVENT:
		return container_open(reading, event, DOC_LIST);
	case YAML_SCALAR_EVENT:
		return scalar_take(reading, event);
	case YAML_MAPPING_END_EVENT:
	case YAML_SEQUENCE_END_EVENT:
		assert(reading->depth > 0);
		reading->depth--;
		return FROND_OK;
	case YAML_ALIAS_EVENT:
		if (value_add(reading, DOC_SCALAR, (uint32_t)event->start_mark.line + 1, &at) != FROND_OK)
			return FROND_BAD;
		return plain_only(reading, at, event->data.alias.anchor, NULL);
	default:
		return FROND_OK;
	}
}

static int32_t container_open(struct reading *reading, const yaml_event_t *event, enum doc_kind kind)
{
	uint32_t line = (uint32_t)event->start_mark.line + 1;
	if (reading->depth == DOC_DEPTH_MAX)
		return doc_complain(reading->doc, reading->stack[DOC_DEPTH_MAX - 1], reading->complaint,
				    "is nested more than %u deep", DOC_DEPTH_MAX);
	uint32_t at;
	int32_t code = value_add(reading, kind, line, &at);
	if (code != FROND_OK)
		return code;
	reading->stack[reading->depth++] = at;
	return kind == DOC_MAP
		       ? plain_only(reading, at, event->data.mapping_start.anchor, event->data.mapping_start.tag)
		       : plain_only(reading, at, event->data.sequence_start.anchor, event->data.sequence_start.tag);
}

static int32_t scalar_take(struct reading *reading, const yaml_event_t *event)
{
	struct doc *doc = reading->doc;
	uint32_t parent = reading->depth == 0 ? DOC_NONE : reading->stack[reading->depth - 1];
	if (parent != DOC_NONE && doc->values[parent].kind == DOC_MAP && !reading->has_key)
		return key_take(reading, event, parent);

	uint32_t at, text_at = 0, text_len = 0;
	int32_t code = value_add(reading, DOC_SCALAR, (uint32_t)event->start_mark.line + 1, &at);
	if (code == FROND_OK)
		code = plain_only(reading, at, event->data.scalar.anchor, event->data.scalar.tag);
	if (code == FROND_OK && memchr(event->data.scalar.value, 0, event->data.scalar.length) != NULL)
		code = doc_complain(doc, at, reading->complaint, "holds a NUL byte, which is not allowed");
	if (code == FROND_OK)
		code = text_add(reading, event, &text_at, &text_len);
	if (code != FROND_OK)
		return code;
	doc->values[at].plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	doc->values[at].scalar_at = text_at;
	doc->values[at].scalar_len = text_len;
	return FROND_OK;
}

static int32_t key_take(struct reading *reading, const yaml_event_t *event, uint32_t map)
{
	struct doc *doc = reading->doc;
	const char *key = (const char *)event->data.scalar.value;
	uint64_t len = event->data.scalar.length;
	uint32_t line = (uint32_t)event->start_mark.line + 1;
	int32_t code = plain_only(reading, map, event->data.scalar.anchor, event->data.scalar.tag);
	if (code != FROND_OK)
		return code;
	if (memchr(key, 0, len) != NULL)
		return doc_complain(doc, map, reading->complaint, "has a key with a NUL byte, which is not allowed");
	if (doc->values[map].count == DOC_KEYS_MAX)
		return doc_complain(doc, map, reading->complaint, "has more than %u keys", DOC_KEYS_MAX);
	for (uint32_t i = doc->values[map].first; i != DOC_NONE; i = doc->values[i].next) {
		if (doc->values[i].key_len != len || memcmp(doc_key(doc, i), key, len) != 0)
			continue;
		return complain(reading->complaint, line, "%s: is written twice in this map, first on line %u",
				doc_path(doc, i).text, doc->values[i].key_line);
	}
	reading->has_key = true;
	reading->key_line = line;
	return text_add(reading, event, &reading->key_at, &reading->key_len);
}

/* Appends a value to the innermost open list or map, under the key that waits there. */
static int32_t value_add(struct reading *reading, enum doc_kind kind, uint32_t line, uint32_t *out)
{
	struct doc *doc = reading->doc;
	uint32_t parent = reading->depth == 0 ? DOC_NONE : reading->stack[reading->depth - 1];
	if (parent != DOC_NONE && doc->values[parent].kind == DOC_MAP && !reading->has_key)
		return complain(reading->complaint, line, "%s: has a key that is not a plain word",
				doc_path(doc, parent).text);
	if (doc->value_count == DOC_VALUES_MAX)
		return complain(reading->complaint, line, "document: has more than %u values", DOC_VALUES_MAX);
	if (doc->value_count == doc->value_room) {
		uint32_t room = doc->value_room == 0 ? 64 : doc->value_room * 2;
		struct doc_value *grown = realloc(doc->values, room * sizeof(*grown));
		if (grown == NULL)
			return complain(reading->complaint, line, "document: out of memory");
		doc->values = grown;
		doc->value_room = room;
	}

	uint32_t at = doc->value_count++;
	struct doc_value *value = &doc->values[at];
	*value = (struct doc_value){.kind = kind, .line = line, .parent = parent, .next = DOC_NONE};
	value->first = value->last = DOC_NONE;
	if (reading->has_key) {
		value->key_at = reading->key_at;
		value->key_len = reading->key_len;
		value->key_line = reading->key_line;
		reading->has_key = false;
	}
	if (parent == DOC_NONE) {
		value->key_line = reading->doc_line;
		if (reading->root != DOC_NONE)
			doc->values[reading->root].next = at;
		reading->root = at;
	} else {
		struct doc_value *above = &doc->values[parent];
		value->index = above->count++;
		if (above->last == DOC_NONE)
			above->first = at;
		else
			doc->values[above->last].next = at;
		above->last = at;
	}
	*out = at;
	return FROND_OK;
}

/* Decoded text is at most 3 bytes for 2 of the document ("\L"), so with DOC_BYTES_MAX it fits 32 bits. */
static int32_t text_add(struct reading *reading, const yaml_event_t *event, uint32_t *at, uint32_t *len)
{
	_Static_assert(DOC_BYTES_MAX < UINT32_MAX / 8, "text and its doubling fit 32 bits");
	struct doc *doc = reading->doc;
	uint32_t bytes = (uint32_t)event->data.scalar.length;
	if (doc->text_room - doc->text_len < bytes + 1) {
		uint32_t room = (doc->text_len + bytes + 1) * 2;
		char *grown = realloc(doc->text, room);
		if (grown == NULL)
			return complain(reading->complaint, (uint32_t)event->start_mark.line + 1,
					"document: out of memory");
		doc->text = grown;
		doc->text_room = room;
	}
	memcpy(doc->text + doc->text_len, event->data.scalar.value, bytes);
	doc->text[doc->text_len + bytes] = '\0';
	*at = doc->text_len;
	*len = bytes;
	doc->text_len += bytes + 1;
	return FROND_OK;
}

static int32_t plain_only(struct reading *reading, uint32_t at, const yaml_char_t *anchor, const yaml_char_t *tag)
{
	if (anchor != NULL)
		return doc_complain(reading->doc, at, reading->complaint,
				    "anchors and aliases (&%s, *%s) are not allowed; write the value out",
				    shown((const char *)anchor, strlen((const char *)anchor)).text,
				    shown((const char *)anchor, strlen((const char *)anchor)).text);
	if (tag != NULL)
		return doc_complain(reading->doc, at, reading->complaint,
				    "tags (%s) are not allowed; write the plain value",
				    shown((const char *)tag, strlen((const char *)tag)).text);
	return FROND_OK;
}

/* libyaml marks a line for what it scans and parses, and only a byte offset for what it cannot decode. A line after the
 * last, where it missed something, is the last. */
static int32_t syntax_complain(const yaml_parser_t *parser, const char *text, uint32_t len, struct complaint *complaint)
{
	if (parser->error == YAML_MEMORY_ERROR)
		return complain(complaint, 1, "document: out of memory");
	bool undecoded = parser->error == YAML_READER_ERROR;
	size_t end = undecoded && parser->problem_offset < len ? parser->problem_offset + 1 : len;
	uint32_t line = 1;
	for (size_t i = 0; i + 1 < end; i++)
		line += text[i] == '\n';
	if (!undecoded && parser->problem_mark.line < line)
		line = (uint32_t)parser->problem_mark.line + 1;
	const char *problem = parser->problem == NULL ? "cannot be read" : parser->problem;
	if (parser->context == NULL)
		return complain(complaint, line, "document: %s", problem);
	return complain(complaint, line, "document: %s %s", problem, parser->context);
}
