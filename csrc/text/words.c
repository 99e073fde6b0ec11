/* SPDX-License-Identifier: Apache-2.0 */
#include "text/words.h"

#include "text/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SHOWN_BYTES_MAX 40u

static bool is_control(const char *character, uint32_t length);
static bool is_digit(char byte);
static uint32_t digits_end(const char *text, uint32_t at, uint32_t len);
static int digits_compare(const char *a, uint32_t a_len, const char *b, uint32_t b_len);

int32_t complain(struct complaint *complaint, uint32_t line, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int written = vsnprintf(complaint->text, sizeof(complaint->text), format, arguments);
	va_end(arguments);
	if (written < 0)
		complaint->text[0] = '\0';
	bool cut = written >= (int)sizeof(complaint->text);
	complaint->line = line;

	/* One line whatever came in; a character that the cut has halved goes. */
	uint32_t len = (uint32_t)strlen(complaint->text);
	uint32_t at = 0;
	while (at < len) {
		uint32_t length = utf8_length(complaint->text + at, len - at);
		if (length == 0 && cut && len - at < 4) {
			complaint->text[at] = '\0';
			break;
		}
		uint32_t bytes = length == 0 ? 1 : length;
		if (length == 0 || is_control(complaint->text + at, length))
			memset(complaint->text + at, '?', bytes);
		at += bytes;
	}
	return FROND_BAD;
}

struct shown shown(const char *value, uint64_t len)
{
	struct shown out;
	uint32_t used = 0;
	uint64_t at = 0;
	while (at < len) {
		uint32_t length = utf8_length(value + at, len - at);
		bool kept = length > 0 && !is_control(value + at, length);
		uint32_t bytes = kept ? length : 1;
		if (used + bytes > SHOWN_BYTES_MAX)
			break;
		if (kept)
			memcpy(out.text + used, value + at, bytes);
		else
			out.text[used] = '?';
		used += bytes;
		at += length == 0 ? 1 : length;
	}
	static const char more[] = "…";
	_Static_assert(SHOWN_BYTES_MAX + sizeof(more) <= sizeof(out.text), "the cut mark has its place");
	if (at < len) {
		memcpy(out.text + used, more, sizeof(more) - 1);
		used += (uint32_t)sizeof(more) - 1;
	}
	out.text[used] = '\0';
	return out;
}

/* A name is a row of tokens: a run of digits, by its value, or one other byte. Rows compare token by token. A digit
 * against another byte compares as bytes, the same for every run of digits, so the order is total. */
int natural_compare(const char *a, uint32_t a_len, const char *b, uint32_t b_len)
{
	uint32_t i = 0, j;
	while (i + 8 <= a_len && i + 8 <= b_len && memcmp(a + i, b + i, 8) == 0)
		i += 8; /* names of one cluster begin alike; a number is compared from its first digit */
	while (i < a_len && i < b_len && a[i] == b[i])
		i++;
	uint32_t digits = i;
	while (digits < a_len && digits < b_len && is_digit(a[digits]) && is_digit(b[digits]))
		digits++;
	if (i < digits && digits == a_len && digits == b_len) /* node-017 and node-123: like their bytes */
		return a[i] < b[i] ? -1 : 1;
	while (i > 0 && is_digit(a[i - 1]))
		i--;
	j = i;
	while (i < a_len && j < b_len) {
		if (is_digit(a[i]) && is_digit(b[j])) {
			uint32_t i_end = digits_end(a, i, a_len), j_end = digits_end(b, j, b_len);
			int order = digits_compare(a + i, i_end - i, b + j, j_end - j);
			if (order != 0)
				return order;
			i = i_end;
			j = j_end;
			continue;
		}
		if (a[i] != b[j])
			return (unsigned char)a[i] < (unsigned char)b[j] ? -1 : 1;
		i++;
		j++;
	}
	if (i < a_len || j < b_len)
		return i < a_len ? 1 : -1;

	/* Equal but for leading zeros: by bytes. */
	uint32_t common = a_len < b_len ? a_len : b_len;
	int order = common == 0 ? 0 : memcmp(a, b, common);
	if (order != 0)
		return order < 0 ? -1 : 1;
	return a_len == b_len ? 0 : a_len < b_len ? -1 : 1;
}

/* C0, DEL and C1 (U+0080 … U+009F) steer terminals. */
static bool is_control(const char *character, uint32_t length)
{
	unsigned char first = (unsigned char)character[0];
	if (length == 1)
		return first < 0x20 || first == 0x7f;
	return first == 0xc2 && (unsigned char)character[1] < 0xa0;
}

static bool is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

static uint32_t digits_end(const char *text, uint32_t at, uint32_t len)
{
	while (at < len && is_digit(text[at]))
		at++;
	return at;
}

/* By value, without computing it: runs may have any length. */
static int digits_compare(const char *a, uint32_t a_len, const char *b, uint32_t b_len)
{
	while (a_len > 0 && *a == '0') {
		a++;
		a_len--;
	}
	while (b_len > 0 && *b == '0') {
		b++;
		b_len--;
	}
	if (a_len != b_len)
		return a_len < b_len ? -1 : 1;
	int order = a_len == 0 ? 0 : memcmp(a, b, a_len);
	return order == 0 ? 0 : order < 0 ? -1 : 1;
}
