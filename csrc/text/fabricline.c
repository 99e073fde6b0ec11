/* SPDX-License-Identifier: Apache-2.0 */
/* The one-line form: "spine:2 leaf:4 node:4 gpu:8", each number counted per parent, as hwloc's synthetic topologies. */
#include "text/fabricfile.h"

#include "text/models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPINE, LEAF, NODE, GPU, LEVELS };

#define LINE_BYTES_MAX 1024u
#define EXAMPLE        "write for example \"spine:2 leaf:4 node:4 gpu:8\""

static const char *const level_names[LEVELS] = {"spine", "leaf", "node", "gpu"};

static int32_t counts_read(const char *text, uint32_t len, uint32_t counts[LEVELS], struct complaint *complaint);
static int32_t level_read(const char *text, uint32_t len, uint32_t level, uint32_t max, uint32_t *out,
			  struct complaint *complaint);
static int32_t grow(const uint32_t counts[LEVELS], struct fabricfile *fabric);
static int32_t number_name(const char *word, uint32_t number, char **out);
static uint32_t line_model(void);

int32_t fabricfile_read_line(const char *text, uint32_t len, struct fabricfile *out, struct complaint *complaint)
{
	memset(out, 0, sizeof(*out));
	uint32_t counts[LEVELS];
	int32_t code = counts_read(text, len, counts, complaint);
	if (code != FROND_OK)
		return code;
	struct fabricfile fabric = {0};
	if (grow(counts, &fabric) != FROND_OK) {
		fabricfile_free(&fabric);
		return complain(complaint, 1, "document: out of memory");
	}
	*out = fabric;
	return FROND_OK;
}

static bool is_space(char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

static int32_t counts_read(const char *text, uint32_t len, uint32_t counts[LEVELS], struct complaint *complaint)
{
	if (len > LINE_BYTES_MAX)
		return complain(complaint, 1, "line: has %u bytes; at most %u are read", len, LINE_BYTES_MAX);
	const uint32_t limits[LEVELS] = {FROND_NODES_MAX, FROND_NODES_MAX, FROND_NODES_MAX,
					 models_known[line_model()].gpus};
	uint32_t at = 0;
	uint64_t product = 1;
	for (uint32_t level = 0; level < LEVELS; level++) {
		while (at < len && is_space(text[at]))
			at++;
		uint32_t start = at;
		while (at < len && !is_space(text[at]))
			at++;
		int32_t code = level_read(text + start, at - start, level, limits[level], &counts[level], complaint);
		if (code != FROND_OK)
			return code;
		product *= level == GPU ? 1 : counts[level];
		if (product > FROND_NODES_MAX)
			return complain(complaint, 1, "%s: brings the cluster to %llu; at most %u are allowed",
					level_names[level], (unsigned long long)product, FROND_NODES_MAX);
	}
	while (at < len && is_space(text[at]))
		at++;
	if (at < len)
		return complain(complaint, 1, "line: \"%s\" comes after gpu, the last level; " EXAMPLE,
				shown(text + at, len - at).text);
	return FROND_OK;
}

/* "NAME:NUMBER" */
static int32_t level_read(const char *text, uint32_t len, uint32_t level, uint32_t max, uint32_t *out,
			  struct complaint *complaint)
{
	const char *name = level_names[level];
	uint32_t name_len = (uint32_t)strlen(name);
	if (len == 0)
		return complain(complaint, 1, "%s: is missing; " EXAMPLE, name);
	if (len <= name_len || memcmp(text, name, name_len) != 0 || text[name_len] != ':')
		return complain(complaint, 1, "%s: must come here, got \"%s\"; " EXAMPLE, name, shown(text, len).text);
	const char *digits = text + name_len + 1;
	uint32_t count = len - name_len - 1;
	uint64_t number = 0;
	bool bad = count == 0 || count > 9;
	for (uint32_t i = 0; i < count && !bad; i++) {
		bad = digits[i] < '0' || digits[i] > '9';
		number = number * 10 + (uint64_t)(digits[i] - '0');
	}
	if (bad || number < 1 || number > max)
		return complain(complaint, 1, "%s: must be a whole number between 1 and %u%s, got \"%s\"", name, max,
				level == GPU ? " (nodes are " MODEL_LINE ")" : "", shown(digits, count).text);
	*out = (uint32_t)number;
	return FROND_OK;
}

/* FROND_BAD: out of memory; the caller frees what there is. */
static int32_t grow(const uint32_t counts[LEVELS], struct fabricfile *fabric)
{
	uint32_t spines = counts[SPINE], leaves = spines * counts[LEAF], nodes = leaves * counts[NODE];
	fabric->models = calloc(1, sizeof(*fabric->models));
	fabric->spines = calloc(spines, sizeof(*fabric->spines));
	fabric->leaves = calloc(leaves, sizeof(*fabric->leaves));
	fabric->nodes = calloc(nodes, sizeof(*fabric->nodes));
	if (fabric->models == NULL || fabric->spines == NULL || fabric->leaves == NULL || fabric->nodes == NULL)
		return FROND_BAD;
	models_fill(line_model(), &fabric->models[0]);
	fabric->model_count = 1;
	fabric->models[0].name = strdup(MODEL_LINE);
	int32_t code = fabric->models[0].name == NULL ? FROND_BAD : FROND_OK;
	for (; fabric->spine_count < spines && code == FROND_OK; fabric->spine_count++)
		code = number_name("spine", fabric->spine_count + 1, &fabric->spines[fabric->spine_count].name);
	for (; fabric->leaf_count < leaves && code == FROND_OK; fabric->leaf_count++) {
		struct fabric_leaf *leaf = &fabric->leaves[fabric->leaf_count];
		leaf->spine = fabric->leaf_count / counts[LEAF];
		code = number_name("leaf", fabric->leaf_count + 1, &leaf->name);
	}
	for (; fabric->node_count < nodes && code == FROND_OK; fabric->node_count++) {
		struct fabric_node *node = &fabric->nodes[fabric->node_count];
		node->leaf = fabric->node_count / counts[NODE];
		node->gpus = counts[GPU];
		code = number_name("node", fabric->node_count + 1, &node->name);
	}
	return code;
}

static int32_t number_name(const char *word, uint32_t number, char **out)
{
	char name[32];
	snprintf(name, sizeof(name), "%s-%u", word, number);
	*out = strdup(name);
	return *out == NULL ? FROND_BAD : FROND_OK;
}

static uint32_t line_model(void)
{
	uint32_t i = 0;
	while (i < MODELS_KNOWN - 1 && strcmp(models_known[i].name, MODEL_LINE) != 0)
		i++;
	return i;
}
