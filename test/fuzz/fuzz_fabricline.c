/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is what follows "spine:" in the one-line form of a fabric.
 */
#include "fuzz_fabric.h"

enum { LINE_MAX_BYTES = 256 };

/* The form may ask for 131,072 nodes, which is right and slow: only small clusters are worth the time here. What follows
 * the levels makes no nodes. */
static int is_small(const char *line, size_t size)
{
	uint64_t product = 1, number = 0;
	for (size_t i = 0; i <= size && (i == size || line[i] != 'm'); i++) {
		int digit = i < size && line[i] >= '0' && line[i] <= '9';
		if (digit && number < 1000)
			number = number * 10 + (uint64_t)(line[i] - '0');
		if (!digit && number > 0) {
			product *= number;
			number = 0;
		}
		if (product > 10000)
			return 0;
	}
	return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > LINE_MAX_BYTES || !is_small((const char *)data, size))
		return 0;
	char *line = malloc(size + 6);
	MUST(line != NULL);
	memcpy(line, "spine:", 6);
	memcpy(line + 6, data, size);
	fabric_try(line, (uint32_t)size + 6, 1);
	free(line);
	return 0;
}
