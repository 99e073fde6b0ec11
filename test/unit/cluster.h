/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster.h - for the suites: an engine with a whole cluster in it from one line of text, gangs from a few words, and
 * the invariant checker after every step. Goes through the ABI only. Included once per suite; main() is the suite's.
 */
#ifndef FROND_TEST_CLUSTER_H
#define FROND_TEST_CLUSTER_H

#include "bounds.h"
#include "frond.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

enum {
	CLUSTER_IN = 4096,
	CLUSTER_NODES = 256,
	CLUSTER_MEMBERS = 128,
	CLUSTER_TEXT = 1 << 16,
	CLUSTER_SPARE = 4,
	CLUSTER_PODS = 512,
	CLUSTER_HOLDS = 128
};

#define ANY_NODE 0u /* for wanted.only */

struct cluster_node { /* by slot; slots follow the fabric's order */
	char name[FROND_NAME_MAX + 1], leaf[FROND_NAME_MAX + 1];
	uint32_t gpus, unhealthy, flags;
};

struct cluster {
	frond_engine *engine;
	void *mem;
	struct frond_limits limits;
	uint32_t count; /* nodes that the fabric has */
	struct cluster_node nodes[CLUSTER_NODES];
	uint64_t others; /* pods of others so far */

	/* the answer of the last call */
	struct frond_plan plan;
	struct frond_place places[CLUSTER_MEMBERS];
	struct frond_member members[CLUSTER_MEMBERS];
	struct frond_request request;
	struct frond_room room[CLUSTER_NODES];
	char text[CLUSTER_TEXT]; /* NUL-terminated here */
	uint32_t len;
	char shown[CLUSTER_TEXT];

	/* what remember() saw */
	char before[CLUSTER_TEXT];
	uint64_t generation;
};

struct wanted {
	const char *name; /* the gang's; its key and its pods' keys follow from it */
	uint32_t members, gpus;
	const uint32_t *sizes;    /* instead of gpus: one per member */
	const uint32_t *pinned;   /* slot of each member, or FROND_NONE; NULL: none is pinned */
	const char *wishes;       /* "topology-mode=Ignore network-bandwidth=100Gb" */
	const char *claim;        /* a GpuClaim's spec, JSON; NULL: none */
	const struct bound *room; /* by slot; NULL: GPUs alone decide */
	uint32_t only;            /* slot + 1, or ANY_NODE */
	uint32_t min_member;      /* 0: all of them */
	int32_t priority;
	int64_t age_ms, deadline_ms;
};

static const struct frond_abi *abi;

/* ---- life ------------------------------------------------------------------------------------------------------- */

static inline struct frond_key key_of(const char *name, uint64_t number)
{
	uint64_t hash = 0xcbf29ce484222325u;
	for (const char *at = name; *at; at++)
		hash = (hash ^ (uint8_t)*at) * 0x100000001b3u;
	return (struct frond_key){hash, number};
}

static inline void check(struct cluster *c)
{
	char text[FROND_TEXT_MAX] = "";
	uint32_t len = 0;
	int32_t code = abi->check(c->engine, text, sizeof text - 1, &len);
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, code, text);
	TEST_ASSERT_EQUAL_UINT32(0, len);
}

/* An engine with room for some nodes, and nothing in it. fabric and args may be empty. */
static inline void engine_make(struct cluster *c, uint32_t nodes, uint32_t pods, const char *args, const char *fabric)
{
	abi = frond_abi_get();
	c->limits = (struct frond_limits){.nodes = nodes, .pods = pods, .holds = CLUSTER_HOLDS};
	uint64_t bytes = abi->size_of(&c->limits);
	TEST_ASSERT_NOT_EQUAL(0, bytes);
	c->mem = aligned_alloc(16, (bytes + 15) / 16 * 16);
	TEST_ASSERT_NOT_NULL(c->mem);
	int32_t code = abi->create(c->mem, bytes, &c->limits, args, (uint32_t)strlen(args), fabric,
				   (uint32_t)strlen(fabric), &c->engine, c->text, CLUSTER_TEXT - 1, &c->len);
	c->text[c->len] = 0;
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, code, c->text);
	check(c);
}

static inline void cluster_free(struct cluster *c)
{
	if (c == NULL)
		return;
	free(c->mem);
	free(c);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

/* leaf and spine NULL: no such label (the labels are those of the default preset). */
static inline int32_t node_try(struct cluster *c, uint32_t slot, const char *name, uint32_t gpus, uint32_t unhealthy,
			       uint32_t flags, uint32_t uplink_gbps, const char *leaf, const char *spine)
{
	const char *words[5] = {name, "fabric.topograph.run/tier-0", leaf, "fabric.topograph.run/tier-1", spine};
	char in[2048];
	struct frond_span spans[5] = {{0, 0}};
	uint32_t at = 0, labels = 0;
	for (uint32_t i = 0; i < 5; i++) {
		spans[i] = (struct frond_span){at, words[i] == NULL ? 0 : (uint32_t)strlen(words[i])};
		if (words[i] != NULL)
			memcpy(in + at, words[i], spans[i].len);
		at += spans[i].len;
	}
	struct frond_pair pairs[2] = {{{0, 0}, {0, 0}}};
	if (leaf != NULL)
		pairs[labels++] = (struct frond_pair){spans[1], spans[2]};
	if (spine != NULL)
		pairs[labels++] = (struct frond_pair){spans[3], spans[4]};
	struct frond_node node = {.slot = slot,
				  .gpus = gpus,
				  .unhealthy_mask = unhealthy,
				  .flags = flags,
				  .uplink_gbps = uplink_gbps,
				  .topology = FROND_NONE,
				  .name = spans[0]};
	int32_t code = abi->node_put(c->engine, &node, pairs, labels, in, at, c->text, CLUSTER_TEXT - 1, &c->len);
	c->text[c->len] = 0;
	return code;
}

static inline void node_put(struct cluster *c, uint32_t slot, const char *name, uint32_t gpus, const char *leaf,
			    const char *spine)
{
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, node_try(c, slot, name, gpus, 0, 0, 0, leaf, spine), c->text);
	struct cluster_node *node = &c->nodes[slot];
	*node = (struct cluster_node){.gpus = gpus};
	snprintf(node->name, sizeof node->name, "%s", name);
	snprintf(node->leaf, sizeof node->leaf, "%s", leaf == NULL ? "none" : leaf);
	c->count = slot >= c->count ? slot + 1 : c->count;
	check(c);
}

static inline void node_remove(struct cluster *c, uint32_t slot)
{
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->node_remove(c->engine, slot));
	check(c);
}

static inline uint32_t slot_of(const struct cluster *c, const char *name)
{
	for (uint32_t slot = 0; slot < c->count; slot++)
		if (strcmp(c->nodes[slot].name, name) == 0)
			return slot;
	TEST_FAIL_MESSAGE(name);
	return FROND_NONE;
}

/* A node of the fabric file: its place and its uplink come from there. */
static inline void node_refresh(struct cluster *c, uint32_t slot)
{
	const struct cluster_node *node = &c->nodes[slot];
	int32_t code = node_try(c, slot, node->name, node->gpus, node->unhealthy, node->flags, 0, NULL, NULL);
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, code, c->text);
	check(c);
}

static inline void node_flags(struct cluster *c, const char *name, uint32_t flags)
{
	c->nodes[slot_of(c, name)].flags = flags;
	node_refresh(c, slot_of(c, name));
}

static inline void cordon(struct cluster *c, const char *name)
{
	node_flags(c, name, FROND_NODE_CORDONED);
}

static inline void unhealthy(struct cluster *c, const char *name, uint32_t mask)
{
	c->nodes[slot_of(c, name)].unhealthy = mask;
	node_refresh(c, slot_of(c, name));
}

/* ---- pods of others --------------------------------------------------------------------------------------------- */

/* mask 0: held by count */
static inline int32_t pod_try(struct cluster *c, struct frond_key pod, uint32_t slot, uint32_t gpus, uint32_t mask,
			      const char *name, struct frond_key gang)
{
	struct frond_pod record = {.pod = pod,
				   .slot = slot,
				   .gpus = gpus,
				   .gpu_mask = mask,
				   .name = {0, (uint32_t)strlen(name)},
				   .gang = gang,
				   .rank = FROND_NONE};
	int32_t code = abi->pod_put(c->engine, &record, name, record.name.len, c->text, CLUSTER_TEXT - 1, &c->len);
	c->text[c->len] = 0;
	return code;
}

/* Somebody else's pod on these GPUs of the node. Returns its key. */
static inline struct frond_key occupy(struct cluster *c, const char *node, uint32_t mask)
{
	struct frond_key pod = {1, ++c->others};
	uint32_t slot = slot_of(c, node);
	int32_t code = pod_try(c, pod, slot, (uint32_t)__builtin_popcount(mask), mask, "", (struct frond_key){0, 0});
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, code, c->text);
	check(c);
	return pod;
}

static inline struct frond_key occupy_by_count(struct cluster *c, const char *node, uint32_t gpus)
{
	struct frond_key pod = {1, ++c->others};
	int32_t code = pod_try(c, pod, slot_of(c, node), gpus, 0, "", (struct frond_key){0, 0});
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, code, c->text);
	check(c);
	return pod;
}

/* A cluster from "spine:2 leaf:4 node:4 gpu:8", or from a fabric file in YAML or JSON; args may be empty. */
static inline struct cluster *cluster_make(const char *fabric, const char *args)
{
	struct cluster *c = calloc(1, sizeof *c);
	TEST_ASSERT_NOT_NULL(c);
	abi = frond_abi_get();
	bool line = strncmp(fabric, "spine:", 6) == 0;
	int32_t code = abi->fabric_expand(fabric, (uint32_t)strlen(fabric), line, c->text, CLUSTER_TEXT - 1, &c->len);
	c->text[code == FROND_SMALL ? 0 : c->len] = 0;
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, code, c->text);
	cJSON *root = cJSON_Parse(c->text), *node;
	const cJSON *nodes = cJSON_GetObjectItem(root, "nodes");
	uint32_t count = (uint32_t)cJSON_GetArraySize(nodes), slot = 0;
	TEST_ASSERT_LESS_OR_EQUAL_UINT32(CLUSTER_NODES - CLUSTER_SPARE, count);
	engine_make(c, count + CLUSTER_SPARE, CLUSTER_PODS, args, fabric);
	cJSON_ArrayForEach(node, nodes)
	{
		struct cluster_node *mine = &c->nodes[slot];
		snprintf(mine->name, sizeof mine->name, "%s", cJSON_GetObjectItem(node, "name")->valuestring);
		snprintf(mine->leaf, sizeof mine->leaf, "%s", cJSON_GetObjectItem(node, "leaf")->valuestring);
		mine->gpus = (uint32_t)cJSON_GetObjectItem(node, "gpus")->valueint;
		mine->flags = cJSON_IsTrue(cJSON_GetObjectItem(node, "cordoned")) ? FROND_NODE_CORDONED : 0;
		uint32_t used = 0;
		const cJSON *gpu;
		cJSON_ArrayForEach(gpu, cJSON_GetObjectItem(node, "usedGpus")) used |= 1u << gpu->valueint;
		cJSON_ArrayForEach(gpu, cJSON_GetObjectItem(node, "unhealthyGpus")) mine->unhealthy |= 1u
												       << gpu->valueint;
		c->count = slot + 1;
		node_refresh(c, slot++);
		if (used != 0)
			occupy(c, mine->name, used);
	}
	cJSON_Delete(root);
	return c;
}

/* ---- gangs ------------------------------------------------------------------------------------------------------ */

/* "a=1 b=2" → pairs with our prefix; returns the bytes of in. */
static inline uint32_t wishes_read(const char *wishes, char *in, uint32_t at, struct frond_pair *pairs, uint32_t *count)
{
	static const char prefix[] = "topology.scheduler/";
	*count = 0;
	while (wishes != NULL && *wishes) {
		size_t key = strcspn(wishes, "="), whole = strcspn(wishes, " ");
		TEST_ASSERT_LESS_THAN(whole, key);
		pairs[*count].key = (struct frond_span){at, (uint32_t)(sizeof prefix - 1 + key)};
		memcpy(in + at, prefix, sizeof prefix - 1);
		memcpy(in + at + sizeof prefix - 1, wishes, key);
		at += pairs[*count].key.len;
		pairs[*count].value = (struct frond_span){at, (uint32_t)(whole - key - 1)};
		memcpy(in + at, wishes + key + 1, whole - key - 1);
		at += pairs[(*count)++].value.len;
		wishes += whole + strspn(wishes + whole, " ");
	}
	return at;
}

/* Fills c->request and c->members from the words; returns the bytes of in. */
static inline uint32_t request_make(struct cluster *c, const struct wanted *w, char *in, struct frond_pair *pairs)
{
	TEST_ASSERT_LESS_OR_EQUAL_UINT32(CLUSTER_MEMBERS, w->members);
	uint32_t name = (uint32_t)strlen(w->name);
	memcpy(in, w->name, name);
	c->request = (struct frond_request){.gang = key_of(w->name, UINT64_MAX),
					    .members = w->members,
					    .min_member = w->min_member != 0 ? w->min_member : w->members,
					    .age_ms = w->age_ms,
					    .deadline_ms = w->deadline_ms,
					    .priority = w->priority,
					    .only_slot = w->only == ANY_NODE ? FROND_NONE : w->only - 1,
					    .name = {0, name}};
	for (uint32_t i = 0; i < w->members; i++) {
		c->members[i] = (struct frond_member){.pod = key_of(w->name, i + 1),
						      .rank = i,
						      .gpus = w->sizes != NULL ? w->sizes[i] : w->gpus,
						      .pinned_slot = w->pinned != NULL ? w->pinned[i] : FROND_NONE};
		c->request.gpus_desired += c->members[i].gpus;
	}
	uint32_t end = wishes_read(w->wishes, in, name, pairs, &c->request.annotations);
	if (w->claim != NULL) {
		c->request.claim = (struct frond_span){end, (uint32_t)strlen(w->claim)};
		memcpy(in + end, w->claim, c->request.claim.len);
		end += c->request.claim.len;
	}
	return end;
}

/* Plans; the answer is in c->plan, c->places and c->text. Changes nothing. */
static inline uint32_t plan(struct cluster *c, const struct wanted *w)
{
	char in[CLUSTER_IN];
	struct frond_pair pairs[16];
	uint32_t in_len = request_make(c, w, in, pairs);
	memset(&c->plan, 0xa5, sizeof c->plan);
	memset(c->places, 0xa5, sizeof c->places);
	int32_t code = abi->plan(c->engine, &c->request, c->members, pairs, in, in_len, c->room,
				 exceptions_of(w->room, c->count, c->room), &c->plan, c->places, c->text,
				 CLUSTER_TEXT - 1, &c->len);
	c->text[c->len] = 0;
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, code, c->text);
	check(c);
	return c->plan.outcome;
}

/* Plans and books it. */
static inline void place(struct cluster *c, const struct wanted *w)
{
	uint32_t outcome = plan(c, w);
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_PLACED, outcome, c->text);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->reserve(c->engine, &c->request, c->members, c->places));
	check(c);
}

static inline void release(struct cluster *c, const char *name, uint32_t members)
{
	for (uint32_t i = 0; i < members; i++) {
		struct frond_key pod = key_of(name, i + 1);
		TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release(c->engine, &pod));
		check(c);
	}
}

/* ---- answers as text -------------------------------------------------------------------------------------------- */

/* "node-1 node-1 node-2": by rank; "-" for a member without GPUs. */
static inline const char *spots(struct cluster *c)
{
	int at = 0;
	c->shown[0] = 0;
	for (uint32_t i = 0; i < c->request.members; i++)
		at += snprintf(c->shown + at, CLUSTER_TEXT - (size_t)at, "%s%s", i > 0 ? " " : "",
			       c->places[i].slot == FROND_NONE ? "-" : c->nodes[c->places[i].slot].name);
	return c->shown;
}

/* "leaf-1:4 leaf-2:4": members in each leaf, in fabric order, pinned ones included. */
static inline const char *leaves(struct cluster *c)
{
	int at = 0;
	c->shown[0] = 0;
	for (uint32_t slot = 0; slot < c->count; slot++) {
		uint32_t members = 0;
		if (slot > 0 && strcmp(c->nodes[slot].leaf, c->nodes[slot - 1].leaf) == 0)
			continue;
		for (uint32_t i = 0; i < c->request.members; i++)
			members += c->places[i].slot != FROND_NONE &&
				   strcmp(c->nodes[c->places[i].slot].leaf, c->nodes[slot].leaf) == 0;
		if (members > 0)
			at += snprintf(c->shown + at, CLUSTER_TEXT - (size_t)at, "%s%s:%u", at > 0 ? " " : "",
				       c->nodes[slot].leaf, (unsigned)members);
	}
	return c->shown;
}

static inline const char *dump(struct cluster *c)
{
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->dump(c->engine, c->text, CLUSTER_TEXT - 1, &c->len));
	c->text[c->len] = 0;
	return c->text;
}

static inline struct frond_stats stats(struct cluster *c)
{
	struct frond_stats out;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->stats(c->engine, &out));
	return out;
}

/* Takes a picture of the whole state; unchanged() compares with it. */
static inline void remember(struct cluster *c)
{
	strcpy(c->before, dump(c));
	c->generation = stats(c).generation;
}

static inline void unchanged(struct cluster *c)
{
	TEST_ASSERT_EQUAL_STRING(c->before, dump(c));
	TEST_ASSERT_EQUAL_UINT64(c->generation, stats(c).generation);
	check(c);
}

#endif
