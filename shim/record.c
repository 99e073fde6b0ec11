/* SPDX-License-Identifier: Apache-2.0 */
#include "record.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

enum runs { RUNS_U8, RUNS_U16, RUNS_LEFT };

static void write_fields(FILE *file, enum call_record record, const void *base, const char *in, uint32_t in_len);
static void write_key(FILE *file, const struct frond_key *key);
static void write_span(FILE *file, const char *in, uint32_t in_len, struct frond_span span);
static void write_text(FILE *file, const char *text, uint32_t len);
static void write_runs(FILE *file, enum runs type, const void *base, uint32_t count);
static void write_lines(FILE *file, const struct call *call, uint32_t nodes);
static void write_pairs(FILE *file, const struct call *call, const char *name, uint32_t count);
static void write_holds(FILE *file, const char *name, const struct frond_hold *holds, uint32_t count);
static void write_code(FILE *file, int32_t code);
static void write_list(FILE *file, const struct call *call, uint32_t nodes);

void record_header(FILE *file)
{
	fprintf(file, "frond-recording %u abi %u\n", RECORD_FORMAT, FROND_ABI_VERSION);
}

/* ---- what goes in ------------------------------------------------------------------------------------------------ */

void record_question(FILE *file, const struct call *call, uint32_t nodes)
{
	const struct call_shape *shape = &call_shapes[call->kind];
	fputs(shape->name, file);
	if (shape->in & IN_LIMITS)
		write_fields(file, RECORD_LIMITS, call->limits, NULL, 0);
	if (shape->in & IN_TEXTS) {
		fputs(" args ", file);
		write_text(file, call->args, call->args_len);
		fputs(" fabric ", file);
		write_text(file, call->fabric, call->fabric_len);
	}
	if (shape->in & IN_JSON) {
		fputs(" json ", file);
		write_text(file, call->in, call->in_len);
	}
	if (shape->in & IN_NODE)
		write_fields(file, RECORD_NODE, call->node, call->in, call->in_len);
	if (shape->in & IN_TOPOLOGY)
		fprintf(file, " gpus %" PRIu32, call->topology->gpus);
	if (shape->in & IN_POD)
		write_fields(file, RECORD_POD, call->pod, call->in, call->in_len);
	if (shape->in & IN_REQUEST)
		write_fields(file, RECORD_REQUEST, call->request, call->in, call->in_len);
	if (shape->in & (IN_POD_KEY | IN_GANG_KEY)) {
		fputs(shape->in & IN_POD_KEY ? " pod " : " gang ", file);
		write_key(file, call->key);
	}
	if (shape->in & IN_ANY_GANG) {
		fputs(" gang ", file);
		if (call->key == NULL)
			fputs("none", file);
		else
			write_key(file, call->key);
	}
	if (shape->in & IN_RANK && call->rank == FROND_NONE)
		fputs(" rank none", file);
	else if (shape->in & IN_RANK)
		fprintf(file, " rank %" PRIu32, call->rank);
	if (shape->in & IN_TAKER) {
		fputs(" pod ", file);
		write_key(file, call->taker);
	}
	if (shape->in & IN_HOLDS)
		fprintf(file, " holds %" PRIu32, call->hold_count);
	if (shape->in & IN_SLOT)
		fprintf(file, " slot %" PRIu32, call->slot);
	if (shape->in & IN_NOW)
		fprintf(file, " now_ms %" PRId64, call->now_ms);
	if (shape->in & IN_COLOR)
		fprintf(file, " color %" PRIu32, call->color);
	if (shape->in & IN_LABELS)
		fprintf(file, " labels %" PRIu32, call->label_count);
	if (shape->in & IN_ROOM)
		fprintf(file, " room %" PRIu32, call->room_count);
	if (shape->in & IN_THRIFT && call->thrift == NULL)
		fputs(" thrift none", file);
	if (shape->in & IN_THRIFT && call->thrift != NULL) {
		fprintf(file, " thrift %" PRIu32, nodes);
		write_fields(file, RECORD_THRIFT, call->thrift, NULL, 0);
	}
	if (shape->in & IN_ENDS)
		fprintf(file, " ends %" PRIu32, call->end_count);
	if (shape->in & IN_KEPT)
		fprintf(file, " kept %s", call->booked == NULL ? "none" : "places");
	if (shape->in & IN_LIST_CAP)
		fprintf(file, " list_cap %" PRIu32, call->list_cap);
	if (shape->in & IN_CAP)
		fprintf(file, " cap %" PRIu32, call->cap);
	fputc('\n', file);
	write_lines(file, call, nodes);
}

/* Arrays: lines of their own, indented, in this order. */
static void write_lines(FILE *file, const struct call *call, uint32_t nodes)
{
	const struct call_shape *shape = &call_shapes[call->kind];
	if (shape->in & IN_TOPOLOGY) {
		fputs(" numa", file);
		write_runs(file, RUNS_U8, call->topology->numa, FROND_GPUS_MAX);
		for (uint32_t i = 0; i < FROND_GPUS_MAX; i++) {
			fputs(" links", file);
			write_runs(file, RUNS_U16, call->topology->link_gbps[i], FROND_GPUS_MAX);
		}
	}
	if (shape->in & IN_LABELS)
		write_pairs(file, call, "label", call->label_count);
	for (uint32_t i = 0; shape->in & IN_NAMED && i < call->request->named_count && i < FROND_GPUS_MAX; i++) {
		fputs(" named", file);
		write_fields(file, RECORD_NAMED, &call->request->named[i], NULL, 0);
		fputc('\n', file);
	}
	for (uint32_t i = 0; shape->in & IN_MEMBERS && i < call_members(call); i++) {
		fputs(" member", file);
		write_fields(file, RECORD_MEMBER, &call->members[i], NULL, 0);
		fputc('\n', file);
	}
	bool places = shape->in & IN_PLACES || (shape->in & IN_KEPT && call->booked != NULL);
	for (uint32_t i = 0; places && i < call_members(call); i++) {
		fputs(" place", file);
		write_fields(file, RECORD_PLACE, &call->booked[i], NULL, 0);
		fputc('\n', file);
	}
	if (shape->in & IN_ANNOTATIONS)
		write_pairs(file, call, "annotation", call->request->annotations);
	for (uint32_t i = 0; shape->in & IN_ROOM && i < call->room_count; i++) {
		fputs(" room", file);
		write_fields(file, RECORD_ROOM, &call->room[i], NULL, 0);
		fputc('\n', file);
	}
	if (shape->in & IN_HOLDS)
		write_holds(file, " hold", call->holds, call->hold_count);
	for (uint32_t i = 0; shape->in & IN_ENDS && i < call->end_count; i++) {
		fputs(" end", file);
		write_fields(file, RECORD_END, &call->ends[i], NULL, 0);
		fputc('\n', file);
	}
	if (!(shape->in & IN_THRIFT) || call->thrift == NULL)
		return;
	for (uint32_t i = 0; i < call->thrift->kinds; i++) {
		fputs(" kind", file);
		write_fields(file, RECORD_KIND, &call->kinds[i], NULL, 0);
		fputc('\n', file);
	}
	fputs(" left", file);
	write_runs(file, RUNS_LEFT, call->left, nodes);
}

static void write_pairs(FILE *file, const struct call *call, const char *name, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		fprintf(file, " %s ", name);
		write_span(file, call->in, call->in_len, call->pairs[i].key);
		fputc(' ', file);
		write_span(file, call->in, call->in_len, call->pairs[i].value);
		fputc('\n', file);
	}
}

static void write_holds(FILE *file, const char *name, const struct frond_hold *holds, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		fputs(name, file);
		write_fields(file, RECORD_HOLD, &holds[i], NULL, 0);
		fputc('\n', file);
	}
}

/* ---- what comes out ---------------------------------------------------------------------------------------------- */

void record_answer(FILE *file, const struct call *call, uint32_t nodes, int32_t code)
{
	static const struct {
		uint32_t part;
		const char *name;
	} numbers[] = {{OUT_ID, "id"},
		       {OUT_VERDICT, "verdict"},
		       {OUT_PODS, "pods"},
		       {OUT_EXPIRED, "expired"},
		       {OUT_COUNT | OUT_HOLDS, "count"}};
	const struct call_shape *shape = &call_shapes[call->kind];
	write_code(file, code);
	if (code == FROND_OK) {
		for (uint32_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
			if (shape->out & numbers[i].part)
				fprintf(file, " %s %" PRIu32, numbers[i].name, *call->number);
		if (shape->out & OUT_MOVES)
			write_fields(file, RECORD_MOVES, call->moves, NULL, 0);
		if (shape->out & OUT_VICTIMS) {
			write_fields(file, RECORD_VICTIMS, call->victims, NULL, 0);
			fputs(" plan", file);
			write_fields(file, RECORD_PLAN, &call->victims->plan, NULL, 0);
		}
		if (shape->out & OUT_WINDOW) {
			write_fields(file, RECORD_WINDOW, call->window, NULL, 0);
			fputs(" plan", file);
			write_fields(file, RECORD_PLAN, &call->window->plan, NULL, 0);
		}
		if (shape->out & OUT_PLAN)
			write_fields(file, RECORD_PLAN, call->plan, NULL, 0);
		if (shape->out & OUT_GANG)
			write_fields(file, RECORD_GANG, call->gang, NULL, 0);
		if (shape->out & OUT_HELD)
			write_fields(file, RECORD_HELD, call->held, NULL, 0);
		if (shape->out & OUT_PLACE)
			write_fields(file, RECORD_PLACE, call->place, NULL, 0);
		if (shape->out & OUT_STATS)
			write_fields(file, RECORD_STATS, call->stats, NULL, 0);
	}
	if (code == FROND_SMALL && shape->out & (OUT_MOVES | OUT_VICTIMS | OUT_HOLDS))
		fprintf(file, " count %" PRIu32,
			shape->out & OUT_MOVES     ? call->moves->count
			: shape->out & OUT_VICTIMS ? call->victims->count
						   : *call->number);
	if (shape->out & OUT_TEXT && code == FROND_SMALL) {
		fprintf(file, " len %" PRIu32, *call->len);
	} else if (shape->out & OUT_TEXT && code != CALL_MISSING) {
		fputs(" text ", file);
		write_text(file, call->text, *call->len < call->cap ? *call->len : call->cap);
	}
	fputc('\n', file);
	if (code == FROND_OK)
		write_list(file, call, nodes);
}

static void write_code(FILE *file, int32_t code)
{
	static const struct {
		int32_t code;
		const char *name;
	} names[] = {
#define X(name, number, text) {number, #name},
		FROND_CODES(X)
#undef X
			{CALL_MISSING, "FROND_MISSING"}};
	for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].code == code) {
			fprintf(file, "= %s", names[i].name + sizeof("FROND_") - 1);
			return;
		}
	fprintf(file, "= %" PRId32, code);
}

static uint32_t at_most(uint32_t count, uint32_t cap)
{
	return count < cap ? count : cap;
}

static void write_keys(FILE *file, const char *name, const struct frond_key *keys, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		fprintf(file, "= %s ", name);
		write_key(file, &keys[i]);
		fputc('\n', file);
	}
}

static void write_list(FILE *file, const struct call *call, uint32_t nodes)
{
	uint32_t out = call_shapes[call->kind].out;
	uint32_t outcome = out & OUT_PLAN      ? call->plan->outcome
			   : out & OUT_VICTIMS ? call->victims->outcome
			   : out & OUT_WINDOW  ? call->window->outcome
					       : (uint32_t)FROND_REFUSED;
	/* Places are only filled in when everybody has one. */
	for (uint32_t i = 0; out & OUT_PLACES && outcome == FROND_PLACED && i < call_members(call); i++) {
		fputs("= place", file);
		write_fields(file, RECORD_PLACE, &call->places[i], NULL, 0);
		fputc('\n', file);
	}
	if (out & OUT_POSITION) {
		fputs("= position", file);
		write_runs(file, RUNS_U16, call->position, nodes);
	}
	for (uint32_t i = 0; out & OUT_MOVES && i < at_most(call->moves->count, call->list_cap); i++) {
		fputs("= move", file);
		write_fields(file, RECORD_MOVE, &call->move_list[i], NULL, 0);
		fputc('\n', file);
	}
	if (out & OUT_VICTIMS)
		write_keys(file, "pod", call->keys, at_most(call->victims->count, call->list_cap));
	if (out & OUT_EXPIRED)
		write_keys(file, "gang", call->keys, at_most(*call->number, call->list_cap));
	if (out & OUT_HOLDS)
		write_holds(file, "= hold", call->hold_list, at_most(*call->number, call->list_cap));
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static void write_fields(FILE *file, enum call_record record, const void *base, const char *in, uint32_t in_len)
{
	for (uint32_t i = 0; i < call_fields[record].count; i++) {
		const struct field *field = &call_fields[record].fields[i];
		const char *at = (const char *)base + field->at;
		union {
			uint16_t u16;
			uint32_t u32;
			int32_t i32;
			uint64_t u64;
			int64_t i64;
			struct frond_key key;
			struct frond_span span;
		} value;
		fprintf(file, " %s ", field->name);
		switch (field->type) {
		case FIELD_U16:
			memcpy(&value.u16, at, sizeof(value.u16));
			fprintf(file, "%u", (unsigned)value.u16);
			break;
		case FIELD_U32:
			memcpy(&value.u32, at, sizeof(value.u32));
			fprintf(file, "%" PRIu32, value.u32);
			break;
		case FIELD_SLOT:
			memcpy(&value.u32, at, sizeof(value.u32));
			if (value.u32 == FROND_NONE)
				fputs("none", file);
			else
				fprintf(file, "%" PRIu32, value.u32);
			break;
		case FIELD_I32:
			memcpy(&value.i32, at, sizeof(value.i32));
			fprintf(file, "%" PRId32, value.i32);
			break;
		case FIELD_U64:
			memcpy(&value.u64, at, sizeof(value.u64));
			fprintf(file, "%" PRIu64, value.u64);
			break;
		case FIELD_I64:
			memcpy(&value.i64, at, sizeof(value.i64));
			fprintf(file, "%" PRId64, value.i64);
			break;
		case FIELD_HEX:
			memcpy(&value.u64, at, sizeof(value.u64));
			fprintf(file, "%016" PRIx64, value.u64);
			break;
		case FIELD_KEY:
			memcpy(&value.key, at, sizeof(value.key));
			write_key(file, &value.key);
			break;
		case FIELD_SPAN:
			memcpy(&value.span, at, sizeof(value.span));
			write_span(file, in, in_len, value.span);
			break;
		}
	}
}

static void write_key(FILE *file, const struct frond_key *key)
{
	fprintf(file, "%016" PRIx64 "%016" PRIx64, key->hi, key->lo);
}

/* A span outside its text is the caller's mistake, which the engine refuses; there is nothing to write of it. */
static void write_span(FILE *file, const char *in, uint32_t in_len, struct frond_span span)
{
	if (span.off > in_len || span.len > in_len - span.off)
		span = (struct frond_span){0, 0};
	write_text(file, span.len == 0 ? NULL : in + span.off, span.len);
}

/* Bytes of the character at text[0..left) that may stand as they are; 0: escape one byte. The Unicode standard's table
 * 3-7: the second byte's range depends on the first, the others are 80..BF. */
static uint32_t plain(const unsigned char *byte, uint32_t left)
{
	if (byte[0] < 0x80)
		return byte[0] >= 0x20 && byte[0] != 0x7f && byte[0] != '"' && byte[0] != '\\';
	if (byte[0] < 0xc2 || byte[0] > 0xf4)
		return 0;
	uint32_t length = byte[0] < 0xe0 ? 2 : byte[0] < 0xf0 ? 3 : 4;
	unsigned char low = byte[0] == 0xe0 ? 0xa0 : byte[0] == 0xf0 ? 0x90 : 0x80;
	unsigned char high = byte[0] == 0xed ? 0x9f : byte[0] == 0xf4 ? 0x8f : 0xbf;
	if (left < length || byte[1] < low || byte[1] > high)
		return 0;
	for (uint32_t i = 2; i < length; i++)
		if (byte[i] < 0x80 || byte[i] > 0xbf)
			return 0;
	return length;
}

/* JSON, with one addition: \u0080 … \u00ff stand for a byte that is not part of any UTF-8 character. Characters are never
 * escaped, so nothing else is written that way, and every text comes back byte for byte. */
static void write_text(FILE *file, const char *text, uint32_t len)
{
	const unsigned char *byte = (const unsigned char *)text;
	fputc('"', file);
	for (uint32_t i = 0; i < len;) {
		uint32_t length = plain(byte + i, len - i);
		if (length > 0) {
			(void)fwrite(byte + i, 1, length, file);
			i += length;
			continue;
		}
		if (byte[i] == '"' || byte[i] == '\\')
			fprintf(file, "\\%c", byte[i]);
		else if (byte[i] == '\n')
			fputs("\\n", file);
		else if (byte[i] == '\t')
			fputs("\\t", file);
		else
			fprintf(file, "\\u%04x", (unsigned)byte[i]);
		i++;
	}
	fputc('"', file);
}

static uint64_t value_at(enum runs type, const void *base, uint32_t i)
{
	if (type == RUNS_U8)
		return ((const uint8_t *)base)[i];
	if (type == RUNS_U16)
		return ((const uint16_t *)base)[i];
	const struct frond_left *left = &((const struct frond_left *)base)[i];
	return (uint64_t)left->cpu_milli << 32 | left->memory_mib;
}

/* " VALUE*COUNT" for every run of equal values, and the end of the line; "*1" is left out. */
static void write_runs(FILE *file, enum runs type, const void *base, uint32_t count)
{
	uint32_t end;
	for (uint32_t i = 0; i < count; i = end) {
		uint64_t value = value_at(type, base, i);
		for (end = i + 1; end < count && value_at(type, base, end) == value;)
			end++;
		if (type == RUNS_LEFT)
			fprintf(file, " %" PRIu64 "/%" PRIu64, value >> 32, value & UINT32_MAX);
		else
			fprintf(file, " %" PRIu64, value);
		if (end - i > 1)
			fprintf(file, "*%" PRIu32, end - i);
	}
	fputc('\n', file);
}
