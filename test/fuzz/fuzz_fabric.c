/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is a fabric file, YAML or JSON.
 */
#include "fuzz_fabric.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *fabric = (const char *)data;
	/* create() would take this one for the one-line form. */
	if (size < 6 || memcmp(fabric, "spine:", 6) != 0)
		fabric_try(fabric, (uint32_t)size, 0);
	return 0;
}
