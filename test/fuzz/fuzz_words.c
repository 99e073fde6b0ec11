/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is three strings with NUL between them, for the small readers: which names are names, durations, natural
 * order, UTF-8, words for a sentence.
 */
#include "fuzz.h"

#include "text/choice.h"
#include "text/duration.h"
#include "text/kubename.h"
#include "text/utf8.h"
#include "text/words.h"

struct string {
	const char *text;
	uint32_t len;
};

static int compare(struct string a, struct string b)
{
	int order = natural_compare(a.text, a.len, b.text, b.len);
	return (order > 0) - (order < 0);
}

/* A total order: sorting names gives the same list everywhere. */
static void check_order(struct string a, struct string b, struct string c)
{
	int same = a.len == b.len && memcmp(a.text, b.text, a.len) == 0;
	MUST(compare(a, a) == 0);
	MUST(compare(a, b) == -compare(b, a));
	MUST((compare(a, b) == 0) == (same != 0));
	if (compare(a, b) <= 0 && compare(b, c) <= 0)
		MUST(compare(a, c) <= 0);
}

static void check_names(struct string s)
{
	bool label = is_namespace_name(s.text, s.len), node = is_node_name(s.text, s.len);
	bool key = is_label_key(s.text, s.len), resource = is_resource_name(s.text, s.len);
	MUST(!label || node);                         /* a DNS label is a DNS name */
	MUST(!node || is_domain_name(s.text, s.len)); /* which is a name of a domain */
	MUST(!resource || key);                       /* an extended resource is spelled like a label key */
	MUST(!resource || memchr(s.text, '/', s.len) != NULL);
	MUST(!is_label_value(s.text, s.len) || s.len <= 63);
	MUST(!is_domain_name(s.text, s.len) || (s.len > 0 && s.len <= FROND_NAME_MAX));
}

static void check_duration(struct string s)
{
	int64_t ms = -1;
	const char *wrong = duration_read(s.text, s.len, &ms);
	MUST((wrong == NULL) == (ms != -1));
	MUST(wrong != NULL || ms == WAIT_FOREVER || (ms >= 0 && ms < UINT32_MAX && ms % 1000 == 0));
}

static void check_shown(struct string s)
{
	struct shown out = shown(s.text, s.len);
	size_t len = strnlen(out.text, sizeof out.text);
	MUST(len < sizeof out.text && utf8_valid_until(out.text, len) == len);
	for (size_t i = 0; i < len; i++)
		MUST((unsigned char)out.text[i] >= 0x20 && out.text[i] != 0x7f);
	uint64_t valid = utf8_valid_until(s.text, s.len);
	MUST(valid <= s.len && (valid == s.len || utf8_length(s.text + valid, s.len - valid) == 0));
}

static void check_choice(struct string s)
{
	uint32_t found = choice_find(&choice_strategy, s.text, s.len);
	MUST(found == FROND_NONE || strlen(choice_strategy.words[found]) == s.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct string strings[3];
	const char *at = (const char *)data, *end = at + size;
	for (uint32_t i = 0; i < 3; i++) {
		const char *stop = i < 2 && at < end ? memchr(at, 0, (size_t)(end - at)) : NULL;
		strings[i] = (struct string){at, (uint32_t)((stop != NULL ? stop : end) - at)};
		at = stop != NULL ? stop + 1 : end;
	}
	check_order(strings[0], strings[1], strings[2]);
	for (uint32_t i = 0; i < 3; i++) {
		check_names(strings[i]);
		check_duration(strings[i]);
		check_shown(strings[i]);
		check_choice(strings[i]);
	}
	return 0;
}
