/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_fabric.h - one fabric, in any of its forms: expanded, loaded into an engine, its nodes put and a gang planned.
 */
#ifndef FROND_TEST_FUZZ_FABRIC_H
#define FROND_TEST_FUZZ_FABRIC_H

#include "fuzz.h"

#include <cjson/cJSON.h>

enum { FABRIC_NODES = 64 };

static inline uint32_t fabric_number(const cJSON *node, const char *key)
{
	const cJSON *value = cJSON_GetObjectItemCaseSensitive(node, key);
	return cJSON_IsNumber(value) ? (uint32_t)value->valuedouble : 0;
}

static inline uint32_t fabric_mask(const cJSON *node, const char *key)
{
	const cJSON *gpu;
	uint32_t mask = 0;
	cJSON_ArrayForEach(gpu, cJSON_GetObjectItemCaseSensitive(node, key))
	{
		MUST(gpu->valueint >= 0 && gpu->valueint < (int)FROND_GPUS_MAX);
		mask |= 1u << gpu->valueint;
	}
	return mask;
}

/* Every node of the expansion is one that the engine takes, if it has the room. */
static inline void fabric_fill(const struct frond_abi *abi, frond_engine *engine, const cJSON *nodes)
{
	char text[FROND_TEXT_MAX];
	uint32_t slot = 0, len;
	const cJSON *item;
	cJSON_ArrayForEach(item, nodes)
	{
		const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "name"));
		MUST(name != NULL);
		struct frond_node node = {.slot = slot++,
					  .gpus = fabric_number(item, "gpus"),
					  .unhealthy_mask = fabric_mask(item, "unhealthyGpus"),
					  .topology = FROND_NONE,
					  .name = {0, (uint32_t)strlen(name)}};
		int32_t code = abi->node_put(engine, &node, NULL, 0, name, node.name.len, text, sizeof text, &len);
		MUST(code == FROND_OK || code == FROND_LIMIT); /* no room for the tables of many models */
		MUST(abi->check(engine, text, sizeof text, &len) == FROND_OK);
	}
}

static inline void fabric_plan(const struct frond_abi *abi, frond_engine *engine)
{
	struct frond_request request = {
		.gang = {1, 1}, .members = 2, .min_member = 2, .gpus_desired = 4, .only_slot = FROND_NONE};
	struct frond_member members[2] = {{.pod = {2, 1}, .rank = 0, .gpus = 2, .pinned_slot = FROND_NONE},
					  {.pod = {2, 2}, .rank = 1, .gpus = 2, .pinned_slot = FROND_NONE}};
	struct frond_plan plan;
	struct frond_place places[2];
	char text[FROND_TEXT_MAX];
	uint32_t len;
	MUST(abi->plan(engine, &request, members, NULL, NULL, 0, NULL, 0, &plan, places, text, sizeof text, &len) ==
	     FROND_OK);
	must_be_sentence(text, len);
	if (plan.outcome == FROND_PLACED)
		MUST(abi->reserve(engine, &request, members, places) == FROND_OK);
	MUST(abi->check(engine, text, sizeof text, &len) == FROND_OK);
}

/* A fabric over the engine's limits is refused, any other that could be expanded is taken. */
static inline void fabric_create(const struct frond_abi *abi, const char *fabric, uint32_t size, const cJSON *nodes)
{
	const struct frond_limits limits = {.nodes = FABRIC_NODES, .pods = 8, .text_bytes = 1 << 16};
	frond_engine *engine;
	char text[FROND_TEXT_MAX + 32];
	uint32_t len;
	uint64_t bytes;
	void *mem = engine_memory(abi, &limits, &bytes);
	int32_t code = abi->create(mem, bytes, &limits, NULL, 0, fabric, size, &engine, text, sizeof text, &len);
	MUST(code == FROND_OK || code == FROND_LIMIT);
	if (code != FROND_OK)
		return;
	MUST(cJSON_GetArraySize(nodes) <= FABRIC_NODES);
	fabric_fill(abi, engine, nodes);
	fabric_plan(abi, engine);
}

static inline void fabric_try(const char *fabric, uint32_t size, uint32_t is_line)
{
	const struct frond_abi *abi = frond_abi_get();
	char sentence[FROND_TEXT_MAX + 32];
	uint32_t cap = 0;
	int32_t code = abi->fabric_expand(fabric, size, is_line, sentence, sizeof sentence, &cap);
	if (code == FROND_BAD) {
		must_be_sentence(sentence, cap);
		return;
	}
	MUST(code == FROND_OK || code == FROND_SMALL);
	cap += 1;
	char *json = malloc(cap);
	uint32_t len;
	MUST(json != NULL && abi->fabric_expand(fabric, size, is_line, json, cap, &len) == FROND_OK && len < cap);
	cJSON *root = cJSON_ParseWithLength(json, len);
	free(json);
	MUST(root != NULL);
	fabric_create(abi, fabric, size, cJSON_GetObjectItemCaseSensitive(root, "nodes"));
	cJSON_Delete(root);
}

#endif
