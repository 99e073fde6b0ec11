/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_BYTES (1u << 20) /* of nodes and domains; the names of Lingjun's hosts are 64 bytes long */
#define PAIRS_MAX   2u

static void must(struct driver *driver, int32_t code, const char *what)
{
	driver->text[driver->len] = 0;
	if (code == FROND_OK)
		return;
	fprintf(stderr, "traces: %s: %s: %s\n", what, driver->abi->code_text(code), driver->text);
	exit(1);
}

static void *take(uint64_t count, uint64_t bytes)
{
	void *mem = aligned_alloc(16, (count * bytes + 15) / 16 * 16);
	if (mem == NULL) {
		fputs("traces: not enough memory\n", stderr);
		exit(1);
	}
	return memset(mem, 0, (count * bytes + 15) / 16 * 16);
}

void driver_start(struct driver *driver, uint32_t nodes, uint32_t pods, const char *fabric)
{
	*driver = (struct driver){.abi = frond_abi_get(),
				  .members = take(FROND_MEMBERS_MAX, sizeof *driver->members),
				  .places = take(FROND_MEMBERS_MAX, sizeof *driver->places)};
	struct frond_limits limits = {.nodes = nodes, .pods = pods, .text_bytes = NAMES_BYTES};
	uint64_t bytes = driver->abi->size_of(&limits);
	driver->mem = take(1, bytes);
	int32_t code = driver->abi->create(driver->mem, bytes, &limits, "", 0, fabric, (uint32_t)strlen(fabric),
					   &driver->engine, driver->text, sizeof driver->text - 1, &driver->len);
	must(driver, code, "create");
}

void driver_stop(struct driver *driver)
{
	free(driver->mem);
	free(driver->members);
	free(driver->places);
}

void driver_node(struct driver *driver, uint32_t slot, const char *name, uint32_t gpus)
{
	uint32_t name_len = (uint32_t)strlen(name);
	struct frond_node node = {.slot = slot, .gpus = gpus, .topology = FROND_NONE, .name = {0, name_len}};
	must(driver,
	     driver->abi->node_put(driver->engine, &node, NULL, 0, name, name_len, driver->text,
				   sizeof driver->text - 1, &driver->len),
	     "node_put");
}

void driver_occupy(struct driver *driver, uint32_t slot, uint32_t gpus)
{
	struct frond_pod pod = {.pod = {1, ++driver->keys}, .slot = slot, .gpus = gpus};
	must(driver,
	     driver->abi->pod_put(driver->engine, &pod, "", 0, driver->text, sizeof driver->text - 1, &driver->len),
	     "pod_put");
}

/* Fills request and members; in gets the text that pairs are spans of. Returns its length. */
static uint32_t ask(struct driver *driver, const struct gang *gang, char *in, uint32_t cap, struct frond_pair *pairs)
{
	static const char *const keys[PAIRS_MAX] = {"topology.scheduler/topology-mode",
						    "topology.scheduler/placement-strategy"};
	const char *const values[PAIRS_MAX] = {gang->mode, gang->strategy};
	uint32_t at = 0, count = 0;
	for (uint32_t i = 0; i < PAIRS_MAX; i++) {
		if (values[i] == NULL)
			continue;
		uint32_t key = (uint32_t)strlen(keys[i]), value = (uint32_t)strlen(values[i]);
		assert(at + key + value <= cap);
		memcpy(in + at, keys[i], key);
		memcpy(in + at + key, values[i], value);
		pairs[count++] = (struct frond_pair){{at, key}, {at + key, value}};
		at += key + value;
	}
	driver->request = (struct frond_request){.gang = {1, ++driver->keys},
						 .members = gang->members,
						 .min_member = gang->members,
						 .gpus_desired = (uint64_t)gang->members * gang->gpus,
						 .only_slot = gang->only_slot,
						 .annotations = count};
	for (uint32_t i = 0; i < gang->members; i++)
		driver->members[i] = (struct frond_member){
			.pod = {1, ++driver->keys}, .rank = i, .gpus = gang->gpus, .pinned_slot = FROND_NONE};
	return at;
}

uint32_t driver_plan(struct driver *driver, const struct gang *gang)
{
	char in[256];
	struct frond_pair pairs[PAIRS_MAX];
	uint32_t in_len = ask(driver, gang, in, sizeof in, pairs);
	must(driver,
	     driver->abi->plan(driver->engine, &driver->request, driver->members, pairs, in, in_len, gang->room,
			       gang->room_count, &driver->plan, driver->places, driver->text, sizeof driver->text - 1,
			       &driver->len),
	     "plan");
	return driver->plan.outcome;
}

uint32_t driver_order(struct driver *driver, const struct gang *gang, const struct thrift *thrift, uint16_t *position)
{
	char in[256];
	bool careful = thrift != NULL;
	struct frond_pair pairs[PAIRS_MAX];
	uint32_t in_len = ask(driver, gang, in, sizeof in, pairs);
	must(driver,
	     driver->abi->order(driver->engine, &driver->request, driver->members, pairs, in, in_len, gang->room,
				gang->room_count, careful ? &thrift->asks : NULL, careful ? thrift->kinds : NULL,
				careful ? thrift->left : NULL, &driver->plan, position, driver->text,
				sizeof driver->text - 1, &driver->len),
	     "order");
	return driver->plan.outcome;
}

void driver_reserve(struct driver *driver)
{
	driver->len = 0;
	must(driver, driver->abi->reserve(driver->engine, &driver->request, driver->members, driver->places),
	     "reserve");
}

void driver_check(struct driver *driver)
{
	must(driver, driver->abi->check(driver->engine, driver->text, sizeof driver->text - 1, &driver->len), "check");
}
