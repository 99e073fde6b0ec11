/* SPDX-License-Identifier: Apache-2.0 */
#include "text/range.h"

#include <stdio.h>
#include <string.h>

#define DIGITS_MAX 9u
#define EXAMPLE    "write for example node[001-032] or node[1-4,7]"

static const char *item_read(const char *at, const char *end, struct range *range);
static const char *number_read(const char **at, const char *end, uint64_t *out);

const char *range_open(const char *word, struct range *out)
{
	struct range range = {.word = word, .open = strchr(word, '['), .item = word, .count = 1};
	if (range.open == NULL) {
		*out = range;
		return NULL;
	}
	range.close = strchr(range.open, ']');
	if (range.close == NULL)
		return "has a range without its end; " EXAMPLE;
	if (strchr(range.open + 1, '[') != NULL || strchr(range.close + 1, ']') != NULL)
		return "has more than one pair of brackets; one is allowed";
	range.item = range.open + 1;

	/* Any number with a leading zero sets the width of all: [08-12] is fine, [8-012] and [08-100] are not. */
	uint32_t least = UINT32_MAX, most = 0;
	bool padded = false;
	range.count = 0;
	for (const char *at = range.item; at <= range.close;) {
		struct range one = range;
		const char *end = at + strcspn(at, ",]"), *wrong = item_read(at, end, &one);
		if (wrong != NULL)
			return wrong;
		range.count += one.last - one.next + 1;
		if (range.count > RANGE_NAMES_MAX)
			return "stands for more than 131072 names, the most that are allowed";
		for (const char *digit = at; digit < end; digit += strspn(digit, "0123456789") + 1) {
			uint32_t width = (uint32_t)strspn(digit, "0123456789");
			padded |= width > 1 && *digit == '0';
			least = width < least ? width : least;
			most = width > most ? width : most;
		}
		at = end + 1;
	}
	if (padded && least != most)
		return "has numbers of different width; with leading zeros all need the same number of digits";
	range.digits = padded ? most : 0;
	range.next = 1; /* nothing is being read yet */
	*out = range;
	return NULL;
}

bool range_next(struct range *range, char out[FROND_NAME_MAX + 2])
{
	if (range->item == NULL && range->next > range->last)
		return false;
	if (range->open == NULL) {
		snprintf(out, FROND_NAME_MAX + 2, "%s", range->word);
		range->item = NULL;
		range->next = 1;
		return true;
	}
	if (range->next > range->last) {
		const char *end = range->item + strcspn(range->item, ",]");
		item_read(range->item, end, range); /* range_open() has seen that it is well */
		range->item = end == range->close ? NULL : end + 1;
	}
	snprintf(out, FROND_NAME_MAX + 2, "%.*s%0*llu%s", (int)(range->open - range->word), range->word,
		 (int)range->digits, (unsigned long long)range->next++, range->close + 1);
	return true;
}

/* "7" or "1-4" into next and last. */
static const char *item_read(const char *at, const char *end, struct range *range)
{
	if (at == end)
		return "has an empty range; " EXAMPLE;
	const char *wrong = number_read(&at, end, &range->next);
	range->last = range->next;
	if (wrong == NULL && at < end && *at == '-') {
		at++;
		wrong = number_read(&at, end, &range->last);
	}
	if (wrong == NULL && at < end)
		wrong = "has something else than numbers in its range; " EXAMPLE;
	if (wrong == NULL && range->last < range->next)
		wrong = "has a range that runs backwards; the lower number comes first";
	return wrong;
}

static const char *number_read(const char **at, const char *end, uint64_t *out)
{
	uint32_t digits = 0;
	uint64_t number = 0;
	for (; *at < end && **at >= '0' && **at <= '9'; ++*at, digits++) {
		if (digits == DIGITS_MAX)
			return "has a number of more than 9 digits, the most that are allowed";
		number = number * 10 + (uint64_t)(**at - '0');
	}
	*out = number;
	return digits == 0 ? "has something else than numbers in its range; " EXAMPLE : NULL;
}
