/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay.h"

/* What a call is and how it is written is the shim's, and cgo takes no source from outside its folder: it is compiled in
 * from there, so that there is one copy of it and frond-sim is still csrc/sim and the engine, nothing else. */
#include "../shim/call.c"
#include "../shim/record.c"

#include <stdlib.h>

/* What a recording may ask for; far above what a host does, far below what would take the machine down. */
#define ENGINE_BYTES_MAX (512u << 20)
#define TEXT_BYTES_MAX   (64u << 20)
#define LIST_MAX         (1u << 20) /* moves, victims, expired gangs */
#define PAIRS_MAX        (1u << 16) /* labels, annotations */
#define ROOM_MAX         (1u << 20) /* exceptions */
#define HOLDS_PUT_MAX    (1u << 20) /* holds of one call */
#define ENGINE_ALIGN     16u

enum got { GOT_CALL, GOT_END, GOT_CUT, GOT_BAD };

struct reader {
	const char *text;
	uint32_t len;
	uint32_t next;    /* where the next line begins */
	uint32_t at, end; /* what is left of the current line */
	uint32_t line;    /* its number */
	bool cut;         /* the text ended where a line was needed */
	struct complaint *complaint;
	const char *call; /* name of the call that is being read */
};

/* One call with room for all that goes in and comes out. Made anew for each call, so that a sanitizer sees every step
 * beyond what the call was given. */
struct question {
	struct call call;
	struct frond_limits limits;
	struct frond_node node;
	struct frond_topology topology;
	struct frond_pod pod;
	struct frond_request request;
	struct frond_key key, taker;
	struct frond_hold *holds, *hold_list;
	struct frond_pair *pairs;
	struct frond_member *members;
	struct frond_place *booked;
	struct frond_room *room;
	struct frond_thrift thrift;
	struct frond_kind *kinds;
	struct frond_left *left;
	struct frond_end *ends;
	bool kept;

	uint32_t number, len;
	struct frond_plan plan;
	struct frond_place *places;
	uint16_t *position;
	struct frond_gang gang;
	struct frond_held held;
	struct frond_place place;
	struct frond_moves moves;
	struct frond_move *move_list;
	struct frond_victims victims;
	struct frond_window window;
	struct frond_key *keys;
	struct frond_stats stats;
	char *text;
};

struct replay {
	struct reader reader;
	const struct frond_abi *abi;
	frond_engine *engine;
	void *memory;
	bool created;   /* create has been read */
	uint32_t nodes; /* limits.nodes of the engine */
	char *in;       /* strings of the call that is being read: never longer than the recording */
	uint32_t in_len;
	FILE *out; /* NULL: the recording is only checked */
};

static bool recording_read(struct replay *replay);
static bool header_read(struct reader *reader);
static enum got question_read(struct replay *replay, struct question *question);
static void question_free(struct question *question);
static bool question_run(struct replay *replay, struct question *question);
static bool answered(const struct reader *reader);
static void answer_skip(struct reader *reader);
static void note(uint32_t line, const char *sentence);

/* All of it is read and checked before the first call is made. */
int32_t replay_run(const char *text, uint32_t len, FILE *out, struct complaint *complaint)
{
	char *in = malloc((uint64_t)len + 1);
	if (in == NULL)
		return complain(complaint, 0, "out of memory");
	struct replay check = {
		.reader = {.text = text, .len = len, .complaint = complaint}, .abi = frond_abi_get(), .in = in};
	struct replay run = check;
	run.out = out;
	bool good = recording_read(&check) && recording_read(&run);
	free(run.memory);
	free(in);
	return good ? FROND_OK : FROND_BAD;
}

static bool recording_read(struct replay *replay)
{
	struct reader *reader = &replay->reader;
	enum got got;
	if (!header_read(reader))
		return false;
	if (replay->out != NULL)
		record_header(replay->out);
	do {
		struct question question = {.number = 0};
		uint32_t line = reader->line + 1;
		got = question_read(replay, &question);
		/* Said before the call is made: the recorded engine may have crashed in it, and so may ours. */
		if (got == GOT_CALL && !answered(reader) && replay->out != NULL)
			note(line, "the recording ends before this call was answered");
		if (got == GOT_CUT && replay->out != NULL)
			note(line, "the recording ends in the middle of a call, which is left out");
		if (got == GOT_CALL && !question_run(replay, &question))
			got = GOT_BAD;
		answer_skip(reader);
		question_free(&question);
	} while (got == GOT_CALL);
	return got != GOT_BAD;
}

static void note(uint32_t line, const char *sentence)
{
	fprintf(stderr, "frond-sim: line %" PRIu32 ": %s\n", line, sentence);
}

/* ---- lines and words --------------------------------------------------------------------------------------------- */

/* Steps to the next line; false when there is no whole one. */
static bool line_next(struct reader *reader)
{
	const char *end = reader->next == reader->len
				  ? NULL
				  : memchr(reader->text + reader->next, '\n', reader->len - reader->next);
	if (end == NULL) {
		reader->cut = true;
		return false;
	}
	reader->line++;
	reader->at = reader->next;
	reader->end = (uint32_t)(end - reader->text);
	reader->next = reader->end + 1;
	return true;
}

static bool refuse(struct reader *reader, const char *field, const char *allowed)
{
	uint32_t at = reader->at < reader->end ? reader->at : reader->end;
	complain(reader->complaint, reader->line, "%s%s%s: %s, got \"%s\"", reader->call, *field == '\0' ? "" : ".",
		 field, allowed, shown(reader->text + at, reader->end - at).text);
	return false;
}

static bool literal(struct reader *reader, const char *word)
{
	uint64_t len = strlen(word);
	if (reader->end - reader->at < len || memcmp(reader->text + reader->at, word, len) != 0)
		return false;
	reader->at += (uint32_t)len;
	return true;
}

/* " NAME " before a value. */
static bool name_read(struct reader *reader, const char *name)
{
	uint32_t start = reader->at;
	if (literal(reader, " ") && literal(reader, name) && literal(reader, " "))
		return true;
	reader->at = start;
	return refuse(reader, name, "expected this name and a value");
}

/* The end of a line. */
static bool line_end(struct reader *reader)
{
	return reader->at == reader->end || refuse(reader, "", "expected the end of the line");
}

/* A line of the call that is being read, " NAME" at its begin. */
static bool line_begin(struct reader *reader, const char *name)
{
	if (!line_next(reader))
		return false;
	uint32_t start = reader->at;
	if (literal(reader, " ") && literal(reader, name) &&
	    (reader->at == reader->end || reader->text[reader->at] == ' '))
		return true;
	reader->at = start;
	return refuse(reader, name, "expected a line that begins with a blank and this name");
}

/* Digits up to a blank or another separator. Leading zeros would not be written the same way again. */
static bool digits_read(struct reader *reader, const char *field, uint64_t max, uint64_t *out)
{
	uint32_t start = reader->at;
	uint64_t value = 0;
	bool fits = true;
	while (reader->at < reader->end && reader->text[reader->at] >= '0' && reader->text[reader->at] <= '9') {
		uint64_t digit = (uint64_t)(reader->text[reader->at++] - '0');
		fits = fits && digit <= max && value <= (max - digit) / 10;
		value = fits ? value * 10 + digit : 0;
	}
	uint32_t count = reader->at - start;
	if (count > 0 && fits && (count == 1 || reader->text[start] != '0')) {
		*out = value;
		return true;
	}
	char allowed[64];
	snprintf(allowed, sizeof(allowed), "must be a number from 0 to %" PRIu64, max);
	reader->at = start;
	return refuse(reader, field, allowed);
}

static bool u32_read(struct reader *reader, const char *field, uint32_t max, uint32_t *out)
{
	uint64_t value = 0;
	bool good = digits_read(reader, field, max, &value);
	*out = (uint32_t)value;
	return good;
}

static bool signed_read(struct reader *reader, const char *field, int64_t max, int64_t *out)
{
	uint64_t value = 0;
	if (!literal(reader, "-")) {
		bool good = digits_read(reader, field, (uint64_t)max, &value);
		*out = (int64_t)value;
		return good;
	}
	if (!digits_read(reader, field, (uint64_t)max + 1, &value))
		return false;
	if (value == 0)
		return refuse(reader, field, "zero has no sign");
	*out = -(int64_t)(value - 1) - 1; /* the lowest number has no positive twin */
	return true;
}

static bool hex_read(struct reader *reader, const char *field, uint64_t *out)
{
	uint32_t start = reader->at;
	*out = 0;
	for (uint32_t i = 0; i < 16; i++) {
		char digit = reader->at < reader->end ? reader->text[reader->at] : '\0';
		bool letter = digit >= 'a' && digit <= 'f';
		if (!letter && (digit < '0' || digit > '9')) {
			reader->at = start;
			return refuse(reader, field, "must be hexadecimal digits, 16 of a ring, 32 of a key");
		}
		*out = *out << 4 | (uint64_t)(letter ? digit - 'a' + 10 : digit - '0');
		reader->at++;
	}
	return true;
}

static bool key_read(struct reader *reader, const char *field, struct frond_key *out)
{
	return hex_read(reader, field, &out->hi) && hex_read(reader, field, &out->lo);
}

/* One escape after its backslash; -1 when it is none of ours. */
static int escape_read(struct reader *reader)
{
	static const char letters[] = "\"\\nt", bytes[] = "\"\\\n\t";
	for (uint32_t i = 0; i < sizeof(letters) - 1; i++) {
		const char word[] = {letters[i], '\0'};
		if (literal(reader, word))
			return bytes[i];
	}
	int value = 0;
	if (!literal(reader, "u00") || reader->end - reader->at < 2)
		return -1;
	for (uint32_t i = 0; i < 2; i++) {
		char digit = reader->text[reader->at++];
		bool letter = digit >= 'a' && digit <= 'f';
		if (!letter && (digit < '0' || digit > '9'))
			return -1;
		value = value << 4 | (letter ? digit - 'a' + 10 : digit - '0');
	}
	return value;
}

/* A quoted text, added to the strings of the call. */
static bool text_read(struct replay *replay, const char *field, struct frond_span *out)
{
	struct reader *reader = &replay->reader;
	uint32_t start = reader->at;
	out->off = replay->in_len;
	bool good = literal(reader, "\"");
	while (good && reader->at < reader->end && reader->text[reader->at] != '"') {
		int byte = (unsigned char)reader->text[reader->at++];
		if (byte == '\\')
			byte = escape_read(reader);
		else if (byte < 0x20)
			byte = -1;
		good = byte >= 0;
		if (good)
			replay->in[replay->in_len++] = (char)byte;
	}
	out->len = replay->in_len - out->off;
	if (good && literal(reader, "\""))
		return true;
	reader->at = start;
	return refuse(reader, field, "must be a text in quotes, with \\\" \\\\ \\n \\t or \\u00XX for other bytes");
}

/* ---- records and arrays ------------------------------------------------------------------------------------------ */

static bool field_read(struct replay *replay, const struct field *field, char *at)
{
	struct reader *reader = &replay->reader;
	union {
		uint16_t u16;
		uint32_t u32;
		int32_t i32;
		uint64_t u64;
		int64_t i64;
		struct frond_key key;
		struct frond_span span;
	} value = {.u64 = 0};
	int64_t number = 0;
	bool good = name_read(reader, field->name);
	switch (field->type) {
	case FIELD_U16:
		good = good && u32_read(reader, field->name, UINT16_MAX, &value.u32);
		value.u16 = (uint16_t)value.u32;
		memcpy(at, &value.u16, sizeof(value.u16));
		break;
	case FIELD_U32:
		good = good && u32_read(reader, field->name, UINT32_MAX, &value.u32);
		memcpy(at, &value.u32, sizeof(value.u32));
		break;
	case FIELD_SLOT:
		value.u32 = FROND_NONE;
		good = good && (literal(reader, "none") || u32_read(reader, field->name, FROND_NONE - 1, &value.u32));
		memcpy(at, &value.u32, sizeof(value.u32));
		break;
	case FIELD_I32:
		good = good && signed_read(reader, field->name, INT32_MAX, &number);
		value.i32 = (int32_t)number;
		memcpy(at, &value.i32, sizeof(value.i32));
		break;
	case FIELD_U64:
		good = good && digits_read(reader, field->name, UINT64_MAX, &value.u64);
		memcpy(at, &value.u64, sizeof(value.u64));
		break;
	case FIELD_I64:
		good = good && signed_read(reader, field->name, INT64_MAX, &value.i64);
		memcpy(at, &value.i64, sizeof(value.i64));
		break;
	case FIELD_HEX:
		good = good && hex_read(reader, field->name, &value.u64);
		memcpy(at, &value.u64, sizeof(value.u64));
		break;
	case FIELD_KEY:
		good = good && key_read(reader, field->name, &value.key);
		memcpy(at, &value.key, sizeof(value.key));
		break;
	case FIELD_SPAN:
		good = good && text_read(replay, field->name, &value.span);
		memcpy(at, &value.span, sizeof(value.span));
		break;
	}
	return good;
}

static bool fields_read(struct replay *replay, enum call_record record, void *base)
{
	for (uint32_t i = 0; i < call_fields[record].count; i++) {
		const struct field *field = &call_fields[record].fields[i];
		if (!field_read(replay, field, (char *)base + field->at))
			return false;
	}
	return true;
}

/* " VALUE*COUNT" again and again, count entries in all, to the end of the line. */
static bool runs_read(struct reader *reader, const char *field, enum runs type, void *base, uint32_t count)
{
	bool two = type == RUNS_LEFT;
	uint32_t max = type == RUNS_U8 ? UINT8_MAX : type == RUNS_LEFT ? UINT32_MAX : UINT16_MAX;
	uint32_t filled = 0;
	while (filled < count) {
		uint32_t value = 0, second = 0, times = 1;
		if (!literal(reader, " "))
			return refuse(reader, field, "expected a blank and more values");
		if (!u32_read(reader, field, max, &value))
			return false;
		if (two && !literal(reader, "/"))
			return refuse(reader, field, "expected CPU/MEMORY");
		if (two && !u32_read(reader, field, max, &second))
			return false;
		if (literal(reader, "*") && !u32_read(reader, field, count - filled, &times))
			return false;
		for (uint32_t i = 0; i < times; i++, filled++) {
			if (type == RUNS_U8)
				((uint8_t *)base)[filled] = (uint8_t)value;
			else if (type == RUNS_U16)
				((uint16_t *)base)[filled] = (uint16_t)value;
			else
				((struct frond_left *)base)[filled] =
					(struct frond_left){.cpu_milli = value, .memory_mib = second};
		}
	}
	return line_end(reader);
}

/* An array of at least one entry, so that NULL always means that there is no memory. */
static void *array(struct reader *reader, uint32_t count, uint64_t size)
{
	void *entries = calloc(count == 0 ? 1 : count, size);
	if (entries == NULL)
		complain(reader->complaint, 0, "out of memory");
	return entries;
}

static bool pairs_read(struct replay *replay, struct question *question, const char *name, uint32_t count)
{
	struct reader *reader = &replay->reader;
	if (count > PAIRS_MAX) {
		complain(reader->complaint, reader->line, "%s: at most %u lines %s are possible, got %" PRIu32,
			 reader->call, PAIRS_MAX, name, count);
		return false;
	}
	question->pairs = array(reader, count, sizeof(*question->pairs));
	question->call.pairs = question->pairs;
	bool good = question->pairs != NULL;
	for (uint32_t i = 0; good && i < count; i++) {
		struct frond_pair *pair = &question->pairs[i];
		good = line_begin(reader, name);
		good = good && (literal(reader, " ") || refuse(reader, name, "expected two texts"));
		good = good && text_read(replay, name, &pair->key);
		good = good && (literal(reader, " ") || refuse(reader, name, "expected two texts"));
		good = good && text_read(replay, name, &pair->value) && line_end(reader);
	}
	return good;
}

static bool records_read(struct replay *replay, const char *name, enum call_record record, void *base, uint64_t size,
			 uint32_t count)
{
	bool good = base != NULL;
	for (uint32_t i = 0; good && i < count; i++)
		good = line_begin(&replay->reader, name) && fields_read(replay, record, (char *)base + i * size) &&
		       line_end(&replay->reader);
	return good;
}

static bool topology_lines_read(struct reader *reader, struct frond_topology *topology)
{
	bool good = line_begin(reader, "numa") && runs_read(reader, "numa", RUNS_U8, topology->numa, FROND_GPUS_MAX);
	for (uint32_t i = 0; good && i < FROND_GPUS_MAX; i++)
		good = line_begin(reader, "links") &&
		       runs_read(reader, "links", RUNS_U16, topology->link_gbps[i], FROND_GPUS_MAX);
	return good;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static bool header_read(struct reader *reader)
{
	uint32_t format = 0, abi = 0;
	reader->call = "recording";
	if (!line_next(reader)) {
		complain(reader->complaint, 1, "recording: expected a first line frond-recording %u abi %u",
			 RECORD_FORMAT, FROND_ABI_VERSION);
		return false;
	}
	if (!literal(reader, "frond-recording "))
		return refuse(reader, "", "expected frond-recording");
	if (!u32_read(reader, "format", UINT32_MAX, &format) || !name_read(reader, "abi") ||
	    !u32_read(reader, "abi", UINT32_MAX, &abi) || !line_end(reader))
		return false;
	if (format == RECORD_FORMAT && abi == FROND_ABI_VERSION)
		return true;
	complain(reader->complaint, reader->line,
		 "recording: format %" PRIu32 " of ABI %" PRIu32 ", this program reads format %u of ABI %u", format,
		 abi, RECORD_FORMAT, FROND_ABI_VERSION);
	return false;
}

/* The call that the line begins with. One name may begin another, so what follows it counts. */
static bool kind_read(struct reader *reader, enum call_kind *out)
{
	uint32_t start = reader->at;
	for (uint32_t kind = 0; kind < CALL_KINDS; kind++) {
		if (literal(reader, call_shapes[kind].name) &&
		    (reader->at == reader->end || reader->text[reader->at] == ' ')) {
			*out = (enum call_kind)kind;
			return true;
		}
		reader->at = start;
	}
	return refuse(reader, "", "expected a call or its answer");
}

/* What comes as an array with an entry for each slot: none, or how many slots there are. */
static bool by_slot_read(struct replay *replay, const char *name, bool *has)
{
	struct reader *reader = &replay->reader;
	uint32_t entries = 0;
	if (!name_read(reader, name))
		return false;
	*has = !literal(reader, "none");
	if (*has && !u32_read(reader, name, replay->nodes, &entries))
		return false;
	return !*has || entries == replay->nodes ||
	       refuse(reader, name, "must be none or the number of nodes of the engine");
}

/* The first line after the name of the call, in the order in which record.c writes it. */
static bool first_line_read(struct replay *replay, struct question *question, bool *has_thrift, bool *all_gangs)
{
	struct reader *reader = &replay->reader;
	struct call *call = &question->call;
	uint32_t in = call_shapes[call->kind].in;
	struct frond_span args = {0, 0}, fabric = {0, 0}, json = {0, 0};
	bool good = true;
	if (in & IN_LIMITS)
		good = good && fields_read(replay, RECORD_LIMITS, &question->limits);
	if (in & IN_TEXTS)
		good = good && name_read(reader, "args") && text_read(replay, "args", &args) &&
		       name_read(reader, "fabric") && text_read(replay, "fabric", &fabric);
	if (in & IN_JSON)
		good = good && name_read(reader, "json") && text_read(replay, "json", &json);
	if (in & IN_NODE)
		good = good && fields_read(replay, RECORD_NODE, &question->node);
	if (in & IN_TOPOLOGY)
		good = good && name_read(reader, "gpus") &&
		       u32_read(reader, "gpus", UINT32_MAX, &question->topology.gpus);
	if (in & IN_POD)
		good = good && fields_read(replay, RECORD_POD, &question->pod);
	if (in & IN_REQUEST)
		good = good && fields_read(replay, RECORD_REQUEST, &question->request);
	if (in & (IN_POD_KEY | IN_GANG_KEY)) {
		const char *name = in & IN_POD_KEY ? "pod" : "gang";
		good = good && name_read(reader, name) && key_read(reader, name, &question->key);
	}
	if (in & IN_ANY_GANG)
		good = good && name_read(reader, "gang") &&
		       ((*all_gangs = literal(reader, "none")) || key_read(reader, "gang", &question->key));
	call->rank = FROND_NONE;
	if (in & IN_RANK)
		good = good && name_read(reader, "rank") &&
		       (literal(reader, "none") || u32_read(reader, "rank", FROND_NONE - 1, &call->rank));
	if (in & IN_TAKER)
		good = good && name_read(reader, "pod") && key_read(reader, "pod", &question->taker);
	if (in & IN_HOLDS)
		good = good && name_read(reader, "holds") &&
		       u32_read(reader, "holds", HOLDS_PUT_MAX, &call->hold_count);
	if (in & IN_SLOT)
		good = good && name_read(reader, "slot") && u32_read(reader, "slot", UINT32_MAX, &call->slot);
	if (in & IN_NOW)
		good = good && name_read(reader, "now_ms") && signed_read(reader, "now_ms", INT64_MAX, &call->now_ms);
	if (in & IN_COLOR)
		good = good && name_read(reader, "color") && u32_read(reader, "color", UINT32_MAX, &call->color);
	if (in & IN_LABELS)
		good = good && name_read(reader, "labels") && u32_read(reader, "labels", PAIRS_MAX, &call->label_count);
	if (in & IN_ROOM)
		good = good && name_read(reader, "room") && u32_read(reader, "room", ROOM_MAX, &call->room_count);
	if (in & IN_THRIFT)
		good = good && by_slot_read(replay, "thrift", has_thrift) &&
		       (!*has_thrift || fields_read(replay, RECORD_THRIFT, &question->thrift));
	if (in & IN_ENDS)
		good = good && name_read(reader, "ends") && u32_read(reader, "ends", LIST_MAX, &call->end_count);
	if (in & IN_KEPT) {
		good = good && name_read(reader, "kept");
		question->kept = good && !literal(reader, "none");
		good = good && (!question->kept || literal(reader, "places") ||
				refuse(reader, "kept", "must be none or places"));
	}
	if (in & IN_LIST_CAP)
		good = good && name_read(reader, "list_cap") && u32_read(reader, "list_cap", LIST_MAX, &call->list_cap);
	if (in & IN_CAP)
		good = good && name_read(reader, "cap") && u32_read(reader, "cap", TEXT_BYTES_MAX, &call->cap);
	call->args = replay->in + args.off;
	call->args_len = args.len;
	call->fabric = replay->in + fabric.off;
	call->fabric_len = fabric.len;
	return good && line_end(reader);
}

static bool thrift_lines_read(struct replay *replay, struct question *question)
{
	struct reader *reader = &replay->reader;
	struct call *call = &question->call;
	uint32_t kinds = question->thrift.kinds;
	if (kinds > PAIRS_MAX) {
		complain(reader->complaint, reader->line, "%s.kinds: at most %u are possible, got %" PRIu32,
			 reader->call, PAIRS_MAX, kinds);
		return false;
	}
	call->thrift = &question->thrift;
	call->kinds = question->kinds = array(reader, kinds, sizeof(*question->kinds));
	call->left = question->left = array(reader, replay->nodes, sizeof(*question->left));
	return question->left != NULL &&
	       records_read(replay, "kind", RECORD_KIND, question->kinds, sizeof(*question->kinds), kinds) &&
	       line_begin(reader, "left") && runs_read(reader, "left", RUNS_LEFT, question->left, replay->nodes);
}

/* The arrays, and room for what comes out. */
static bool arrays_read(struct replay *replay, struct question *question, bool has_thrift)
{
	struct reader *reader = &replay->reader;
	struct call *call = &question->call;
	uint32_t in = call_shapes[call->kind].in, out = call_shapes[call->kind].out;
	bool good = true;
	uint32_t members = in & IN_MEMBERS ? call_members(call) : 0;
	if (members > FROND_MEMBERS_MAX) {
		complain(reader->complaint, reader->line, "%s.members: at most %u are possible, got %" PRIu32,
			 reader->call, FROND_MEMBERS_MAX, members);
		return false;
	}
	if (in & IN_TOPOLOGY)
		good = topology_lines_read(reader, &question->topology);
	if (in & IN_LABELS)
		good = good && pairs_read(replay, question, "label", call->label_count);
	if (in & IN_NAMED && question->request.named_count > FROND_GPUS_MAX) {
		complain(reader->complaint, reader->line, "%s.named_count: at most %u are possible, got %" PRIu32,
			 reader->call, FROND_GPUS_MAX, question->request.named_count);
		return false;
	}
	if (in & IN_NAMED)
		good = good && records_read(replay, "named", RECORD_NAMED, question->request.named,
					    sizeof(question->request.named[0]), question->request.named_count);
	if (in & IN_MEMBERS) {
		call->members = question->members = array(reader, members, sizeof(*question->members));
		good = good && records_read(replay, "member", RECORD_MEMBER, question->members,
					    sizeof(*question->members), members);
	}
	if (in & IN_PLACES || question->kept) {
		call->booked = question->booked = array(reader, members, sizeof(*question->booked));
		good = good && records_read(replay, "place", RECORD_PLACE, question->booked, sizeof(*question->booked),
					    members);
	}
	if (in & IN_ANNOTATIONS)
		good = good && pairs_read(replay, question, "annotation", question->request.annotations);
	if (in & IN_ROOM) {
		call->room = question->room = array(reader, call->room_count, sizeof(*question->room));
		good = good && records_read(replay, "room", RECORD_ROOM, question->room, sizeof(*question->room),
					    call->room_count);
	}
	if (in & IN_HOLDS) {
		call->holds = question->holds = array(reader, call->hold_count, sizeof(*question->holds));
		good = good && records_read(replay, "hold", RECORD_HOLD, question->holds, sizeof(*question->holds),
					    call->hold_count);
	}
	if (in & IN_ENDS) {
		call->ends = question->ends = array(reader, call->end_count, sizeof(*question->ends));
		good = good && records_read(replay, "end", RECORD_END, question->ends, sizeof(*question->ends),
					    call->end_count);
	}
	if (has_thrift)
		good = good && thrift_lines_read(replay, question);
	if (out & OUT_PLACES)
		good = good && (question->places = array(reader, members, sizeof(*question->places))) != NULL;
	if (out & OUT_POSITION)
		good = good && (question->position = array(reader, replay->nodes, sizeof(*question->position))) != NULL;
	if (out & OUT_MOVES)
		good = good &&
		       (question->move_list = array(reader, call->list_cap, sizeof(*question->move_list))) != NULL;
	if (out & (OUT_VICTIMS | OUT_EXPIRED))
		good = good && (question->keys = array(reader, call->list_cap, sizeof(*question->keys))) != NULL;
	if (out & OUT_HOLDS)
		good = good &&
		       (question->hold_list = array(reader, call->list_cap, sizeof(*question->hold_list))) != NULL;
	if (out & OUT_TEXT)
		good = good && (question->text = array(reader, call->cap, 1)) != NULL;
	return good;
}

static enum got question_read(struct replay *replay, struct question *question)
{
	struct reader *reader = &replay->reader;
	struct call *call = &question->call;
	bool has_thrift = false, all_gangs = false;
	reader->call = "recording";
	if (reader->next == reader->len)
		return GOT_END;
	if (!line_next(reader))
		return GOT_CUT;
	if (!kind_read(reader, &call->kind))
		return GOT_BAD;
	reader->call = call_shapes[call->kind].name;
	if ((call->kind == CALL_create) == replay->created) {
		complain(reader->complaint, reader->line, "%s: %s", reader->call,
			 call->kind == CALL_create ? "there is an engine already, a recording has one"
						   : "expected create first");
		return GOT_BAD;
	}
	if (call->kind != CALL_create && replay->engine == NULL && replay->out != NULL) {
		complain(reader->complaint, reader->line, "%s: there is no engine, create was refused", reader->call);
		return GOT_BAD;
	}
	replay->in_len = 0;
	call->request = &question->request;
	if (!first_line_read(replay, question, &has_thrift, &all_gangs))
		return GOT_BAD;
	if (!arrays_read(replay, question, has_thrift))
		return reader->cut ? GOT_CUT : GOT_BAD;
	call->limits = &question->limits;
	call->node = &question->node;
	call->topology = &question->topology;
	call->pod = &question->pod;
	call->key = all_gangs ? NULL : &question->key;
	call->taker = &question->taker;
	call->hold_list = question->hold_list;
	call->in = replay->in;
	call->in_len = replay->in_len;
	call->engine = &replay->engine;
	call->number = &question->number;
	call->plan = &question->plan;
	call->places = question->places;
	call->position = question->position;
	call->gang = &question->gang;
	call->held = &question->held;
	call->place = &question->place;
	call->moves = &question->moves;
	call->move_list = question->move_list;
	call->victims = &question->victims;
	call->window = &question->window;
	call->keys = question->keys;
	call->stats = &question->stats;
	call->text = question->text;
	call->len = &question->len;
	return GOT_CALL;
}

static void question_free(struct question *question)
{
	free(question->holds);
	free(question->hold_list);
	free(question->pairs);
	free(question->members);
	free(question->booked);
	free(question->room);
	free(question->kinds);
	free(question->left);
	free(question->ends);
	free(question->places);
	free(question->position);
	free(question->move_list);
	free(question->keys);
	free(question->text);
}

/* Checks what create asks for and, when it is to be called, finds the memory. */
static bool engine_make_room(struct replay *replay, struct question *question)
{
	struct reader *reader = &replay->reader;
	uint64_t bytes = replay->abi->size_of(&question->limits);
	if (bytes == 0 || bytes > ENGINE_BYTES_MAX) {
		complain(reader->complaint, reader->line,
			 "create: an engine of %" PRIu32 " nodes and %" PRIu32
			 " pods is not possible, or needs more than %u MiB",
			 question->limits.nodes, question->limits.pods, ENGINE_BYTES_MAX >> 20);
		return false;
	}
	replay->created = true;
	replay->nodes = question->limits.nodes;
	if (replay->out == NULL)
		return true;
	bytes = (bytes + ENGINE_ALIGN - 1) / ENGINE_ALIGN * ENGINE_ALIGN;
	replay->memory = aligned_alloc(ENGINE_ALIGN, bytes);
	if (replay->memory == NULL) {
		complain(reader->complaint, 0, "out of memory");
		return false;
	}
	question->call.mem = replay->memory;
	question->call.mem_bytes = bytes;
	return true;
}

static bool question_run(struct replay *replay, struct question *question)
{
	struct call *call = &question->call;
	if (call->kind == CALL_create && !engine_make_room(replay, question))
		return false;
	if (replay->out == NULL)
		return true;
	record_question(replay->out, call, replay->nodes);
	if (!answered(&replay->reader))
		(void)fflush(replay->out);
	int32_t code = call_run(replay->abi, replay->engine, call);
	record_answer(replay->out, call, replay->nodes, code);
	return true;
}

/* Whether a whole line follows: the first of the answer, or the next call of a script that has none. */
static bool answered(const struct reader *reader)
{
	return reader->next < reader->len &&
	       memchr(reader->text + reader->next, '\n', reader->len - reader->next) != NULL;
}

/* Passes over the lines of the answer. Half a line at the end is no call, either. */
static void answer_skip(struct reader *reader)
{
	while (reader->next < reader->len && reader->text[reader->next] == '=')
		if (!line_next(reader))
			reader->next = reader->len;
}
