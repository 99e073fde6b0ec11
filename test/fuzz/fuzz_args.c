/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is TopologyGPUArgs as JSON. Whatever args() accepts, create() accepts; what it refuses has a sentence.
 */
#include "fuzz.h"

enum { TEXT = 1 << 14 };

static void create(const struct frond_abi *abi, const char *json, uint32_t len)
{
	const struct frond_limits limits = {.nodes = 2, .pods = 2};
	frond_engine *engine;
	char text[FROND_TEXT_MAX];
	uint32_t text_len;
	uint64_t bytes;
	void *mem = engine_memory(abi, &limits, &bytes);
	MUST(abi->create(mem, bytes, &limits, json, len, NULL, 0, &engine, text, sizeof text, &text_len) == FROND_OK);
	MUST(abi->check(engine, text, sizeof text, &text_len) == FROND_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct frond_abi *abi = frond_abi_get();
	static char text[TEXT];
	struct frond_args out;
	uint32_t len;
	const char *json = (const char *)data;
	int32_t code = abi->args(json, (uint32_t)size, &out, text, sizeof text, &len);
	MUST(code == FROND_OK || code == FROND_BAD);
	MUST(len <= sizeof text);
	if (code == FROND_BAD) {
		must_be_sentence(text, len);
		return 0;
	}
	MUST(out.permit_wait_s > 0 && out.resource_count > 0 && out.resource_count <= FROND_RESOURCES_MAX);
	MUST(out.fabric_file.off <= len && out.fabric_file.len <= len - out.fabric_file.off);
	for (uint32_t i = 0; i < out.resource_count; i++)
		MUST(out.resources[i].off <= len && out.resources[i].len <= len - out.resources[i].off);
	uint32_t again = 0;
	MUST(abi->args(json, (uint32_t)size, &out, text, 0, &again) == FROND_SMALL && again >= len);
	create(abi, json, (uint32_t)size);
	return 0;
}
