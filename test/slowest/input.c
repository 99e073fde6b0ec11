/* SPDX-License-Identifier: Apache-2.0 */
#include "input.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	uint32_t least, most;
	const char *values;
} numbers[NUMBERS] = {
#define X(id, name, least, most, values) {name, least, most, values},
	INPUT_NUMBERS(X)
#undef X
};

static const struct {
	const char *name;
	uint32_t share;
} calls[CALL_KINDS] = {
#define X(id, name, share) {name, share},
	CALLS(X)
#undef X
};

const char *call_name(uint32_t call)
{
	return calls[call].name;
}

uint32_t call_named(const char *name, uint32_t len)
{
	uint32_t at = 0;
	while (at < CALL_KINDS && (strlen(calls[at].name) != len || strncmp(calls[at].name, name, len) != 0))
		at++;
	return at;
}

uint32_t below(struct dice *dice, uint32_t limit)
{
	dice->state = dice->state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((dice->state >> 33) % limit);
}

bool percent(struct dice *dice, uint32_t chance)
{
	return below(dice, 100) < chance;
}

/* A value that is worth trying, or any, small ones as often as large ones. */
static uint32_t roll(struct dice *dice, uint32_t number)
{
	uint32_t least = numbers[number].least, most = numbers[number].most;
	if (number == N_CALL) {
		uint32_t all = 0, at = 0;
		for (uint32_t i = 0; i < CALL_KINDS; i++)
			all += calls[i].share;
		for (uint32_t left = below(dice, all); left >= calls[at].share; at++)
			left -= calls[at].share;
		return at;
	}
	if (percent(dice, 65)) {
		uint32_t count = 1;
		for (const char *at = numbers[number].values; *at != 0; at++)
			count += *at == ' ';
		const char *value = numbers[number].values;
		for (uint32_t skip = below(dice, count); skip > 0; skip--)
			value = strchr(value, ' ') + 1;
		return (uint32_t)strtoul(value, NULL, 10);
	}
	uint32_t span = most - least + 1, bits = 0;
	while (bits < 31 && 1u << bits < span)
		bits++;
	uint32_t size = 1u << (1 + below(dice, bits == 0 ? 1 : bits));
	return least + below(dice, size < span ? size : span);
}

static void set(struct input *input, struct dice *dice, uint32_t number, uint32_t nodes_most)
{
	input->number[number] = roll(dice, number);
	if (number == N_NODES && input->number[number] > nodes_most)
		input->number[number] = nodes_most;
}

void input_roll(struct input *input, struct dice *dice, uint32_t from, uint32_t to, uint32_t nodes_most)
{
	for (uint32_t i = from; i < to; i++)
		set(input, dice, i, nodes_most);
}

void input_change(struct input *input, struct dice *dice, uint32_t from, uint32_t to, uint32_t nodes_most)
{
	for (uint32_t changes = 1 + below(dice, 3); changes > 0; changes--) {
		uint32_t at = from + below(dice, to - from), value = input->number[at];
		if (at == N_CALL)
			continue;
		if (percent(dice, 50) || value < 4) {
			set(input, dice, at, nodes_most);
			continue;
		}
		uint32_t least = numbers[at].least, most = at == N_NODES ? nodes_most : numbers[at].most;
		value = value / 2 + below(dice, value + 1); /* half to one and a half times */
		input->number[at] = value < least ? least : value > most ? most : value;
	}
}

/* Numbers [from, to] do not matter unless `matters`. */
static void trim(struct input *input, bool matters, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; !matters && i <= to; i++)
		input->number[i] = numbers[i].least;
}

void input_trim(struct input *input)
{
	uint32_t *number = input->number, call = number[N_CALL];
	bool booking = call >= CALL_RESERVE && call <= CALL_TICK,
	     asks = call <= CALL_DEFRAG || booking || call == CALL_REBUILD;
	trim(input, asks, N_MEMBERS, N_RECOVERY);
	trim(input, call != CALL_ORDER && call != CALL_RECOVER, N_SECOND, N_THIRD_COUNT);
	trim(input, call != CALL_ORDER, N_MEMBERS, N_MEMBERS);
	trim(input, call != CALL_ORDER && call != CALL_RECOVER, N_PINS, N_PINS);
	trim(input, number[N_SECOND] > 0, N_SECOND_COUNT, N_SECOND_COUNT);
	trim(input, number[N_THIRD] > 0, N_THIRD_COUNT, N_THIRD_COUNT);
	trim(input, number[N_SEGMENT] > 0, N_LEVEL, N_LEVEL);
	trim(input, number[N_CLAIM] > 0, N_POLICY, N_LINK);
	trim(input, call <= CALL_DEFRAG && number[N_ROOM] > 0, N_ROOM, N_ROOM_LEFT);
	trim(input, call == CALL_ORDER, N_THRIFT, N_THRIFT);
	trim(input, call >= CALL_VICTIMS && call <= CALL_DEFRAG, N_PRIORITY, N_PRIORITY);
	trim(input, call == CALL_RECOVER, N_LOST, N_RECOVERY);
}

void input_print(const struct input *input, char *text, uint32_t cap)
{
	uint32_t used = 0;
	text[0] = 0;
	for (uint32_t i = 0; i < NUMBERS && used < cap; i++) {
		if (i == N_CALL)
			used += (uint32_t)snprintf(text + used, cap - used, " call=%s", call_name(input->number[i]));
		else if (input->number[i] != numbers[i].least)
			used += (uint32_t)snprintf(text + used, cap - used, "%s%s=%" PRIu32, used > 0 ? " " : "",
						   numbers[i].name, input->number[i]);
	}
}

/* One word of it; false: not one of ours, or out of range. */
static bool read_word(struct input *input, const char *word, size_t len)
{
	size_t name = strcspn(word, "= ");
	uint32_t at = 0;
	while (at < NUMBERS && (strlen(numbers[at].name) != name || strncmp(numbers[at].name, word, name) != 0))
		at++;
	if (at == NUMBERS || name + 1 >= len)
		return false;
	if (at == N_CALL)
		return (input->number[at] = call_named(word + name + 1, (uint32_t)(len - name - 1))) < CALL_KINDS;
	char *end;
	unsigned long value = strtoul(word + name + 1, &end, 10);
	input->number[at] = (uint32_t)value;
	return end == word + len && value >= numbers[at].least && value <= numbers[at].most;
}

bool input_read(struct input *input, const char *text)
{
	for (uint32_t i = 0; i < NUMBERS; i++)
		input->number[i] = numbers[i].least;
	while (*(text += strspn(text, " ")) != 0) {
		size_t len = strcspn(text, " ");
		if (!read_word(input, text, len))
			return false;
		text += len;
	}
	return true;
}
