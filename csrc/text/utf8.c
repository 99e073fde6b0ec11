/* SPDX-License-Identifier: Apache-2.0 */
#include "text/utf8.h"

/* The Unicode standard's table 3-7: the second byte's range depends on the first, the others are 80..BF. */
uint32_t utf8_length(const char *text, uint64_t left)
{
	if (left == 0)
		return 0;
	const uint8_t *byte = (const uint8_t *)text;
	if (byte[0] < 0x80)
		return 1;
	if (byte[0] < 0xc2 || byte[0] > 0xf4)
		return 0;
	uint32_t length = byte[0] < 0xe0 ? 2 : byte[0] < 0xf0 ? 3 : 4;
	if (left < length)
		return 0;
	uint8_t low = byte[0] == 0xe0 ? 0xa0 : byte[0] == 0xf0 ? 0x90 : 0x80;
	uint8_t high = byte[0] == 0xed ? 0x9f : byte[0] == 0xf4 ? 0x8f : 0xbf;
	if (byte[1] < low || byte[1] > high)
		return 0;
	for (uint32_t i = 2; i < length; i++) {
		if (byte[i] < 0x80 || byte[i] > 0xbf)
			return 0;
	}
	return length;
}

uint64_t utf8_valid_until(const char *text, uint64_t len)
{
	uint64_t at = 0;
	while (at < len) {
		uint32_t length = utf8_length(text + at, len - at);
		if (length == 0)
			return at;
		at += length;
	}
	return len;
}
