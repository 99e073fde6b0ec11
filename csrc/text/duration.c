/* SPDX-License-Identifier: Apache-2.0 */
#include "text/duration.h"

#include "text/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DIGITS_MAX 7u /* 1000 hours are 3,600,000 seconds */

static const struct {
	char letter;
	int64_t ms;
} units[] = {{'h', 3600000}, {'m', 60000}, {'s', 1000}};
static const uint32_t unit_count = sizeof(units) / sizeof(units[0]);

const char *duration_read(const char *text, uint64_t len, int64_t *out_ms)
{
	static const char forever[] = "forever";
	static const char none[] = "a duration; write for example \"10m\" or \"forever\"";
	static const char too_long[] = "a duration of at most 1000h; for longer write \"forever\"";
	if (len == sizeof(forever) - 1 && memcmp(text, forever, len) == 0) {
		*out_ms = WAIT_FOREVER;
		return NULL;
	}

	uint32_t unit = 0; /* the next that may come */
	int64_t total_ms = 0;
	uint64_t at = 0;
	while (at < len) {
		int64_t number = 0;
		uint64_t start = at;
		for (; at < len && text[at] >= '0' && text[at] <= '9'; at++) {
			if (at - start == DIGITS_MAX)
				return too_long;
			number = number * 10 + (text[at] - '0');
		}
		if (at == start || at == len)
			return none;
		while (unit < unit_count && units[unit].letter != text[at])
			unit++;
		if (unit == unit_count)
			return none;
		total_ms += number * units[unit].ms;
		unit++;
		at++;
	}
	if (len == 0)
		return none;
	if (total_ms > (int64_t)DURATION_HOURS_MAX * units[0].ms)
		return too_long;
	*out_ms = total_ms;
	return NULL;
}

struct duration_text duration_text(int64_t ms)
{
	struct duration_text out = {.text = "now"};
	int len = 0;
	if (ms < 0)
		return (struct duration_text){.text = "never"};
	int64_t left = ms / 1000 + (ms % 1000 > 0);
	for (uint32_t i = 0; i < unit_count; i++) {
		int64_t unit_s = units[i].ms / 1000, count = left / unit_s;
		left -= count * unit_s;
		if (count > 0)
			len += snprintf(out.text + len, sizeof(out.text) - (size_t)len, "%" PRId64 "%c", count,
					units[i].letter);
	}
	return out;
}
