/* SPDX-License-Identifier: Apache-2.0 */
/* The one-line form: "spine:2 leaf:4 node:4 gpu:8", each number counted per parent, as hwloc's synthetic topologies. After
 * the levels the machine may be named, and how many consecutive nodes of a leaf share NVLink: "model:GB200 nvlink:18". */
#include "text/fabricfile.h"

#include "text/models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPINE, LEAF, NODE, GPU, LEVELS };

#define LINE_BYTES_MAX 1024u
#define EXAMPLE        "write for example \"spine:2 leaf:4 node:4 gpu:8\""
#define AFTER          "only model:NAME and nvlink:NODES may follow"
#define CLIQUE_LABEL   "nvidia.com/gpu.clique" /* the NVLink domain of a node, as GPU feature discovery says it */

static const char *const level_names[LEVELS] = {"spine", "leaf", "node", "gpu"};

struct line { /* what it says */
	uint32_t counts[LEVELS];
	uint32_t model;  /* index into models_known */
	uint32_t nvlink; /* nodes of an NVLink domain; 0: there are none */
};

struct word {
	const char *text;
	uint32_t len;
};

static int32_t line_read(const char *text, uint32_t len, struct line *out, struct complaint *complaint);
static int32_t levels_read(const struct word words[LEVELS], struct line *line, struct complaint *complaint);
static int32_t model_read(struct word name, struct line *line, struct complaint *complaint);
static int32_t number_read(struct word digits, const char *name, uint32_t max, const char *why, uint32_t *out,
			   struct complaint *complaint);
static bool word_after(struct word word, const char *name, struct word *out);
static int32_t grow(const struct line *line, struct fabricfile *fabric);
static int32_t number_name(const char *word, uint32_t number, char **out);
static int32_t clique_add(struct fabric_node *node, uint32_t number);
static uint32_t model_find(const char *name, uint32_t len);

int32_t fabricfile_read_line(const char *text, uint32_t len, struct fabricfile *out, struct complaint *complaint)
{
	memset(out, 0, sizeof(*out));
	struct line line = {.model = model_find(MODEL_LINE, (uint32_t)strlen(MODEL_LINE))};
	int32_t code = line_read(text, len, &line, complaint);
	if (code != FROND_OK)
		return code;
	struct fabricfile fabric = {0};
	if (grow(&line, &fabric) != FROND_OK) {
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

/* The next word from *at on; empty at the end. */
static struct word word_next(const char *text, uint32_t len, uint32_t *at)
{
	while (*at < len && is_space(text[*at]))
		++*at;
	struct word word = {.text = text + *at};
	for (; *at < len && !is_space(text[*at]); ++*at)
		word.len++;
	return word;
}

/* The model comes last but says how many GPUs there may be, so it is read before the levels. */
static int32_t line_read(const char *text, uint32_t len, struct line *out, struct complaint *complaint)
{
	if (len > LINE_BYTES_MAX)
		return complain(complaint, 1, "line: has %u bytes; at most %u are read", len, LINE_BYTES_MAX);
	struct word words[LEVELS], word, value, model = {.text = NULL}, nvlink = {.text = NULL}, last = {.text = NULL};
	uint32_t at = 0;
	for (uint32_t level = 0; level < LEVELS; level++)
		words[level] = word_next(text, len, &at);
	while ((word = word_next(text, len, &at)).len > 0 && last.text == NULL) {
		struct word *option = word_after(word, "model", &value)    ? &model
				      : word_after(word, "nvlink", &value) ? &nvlink
									   : &last;
		if (option != &last && option->text != NULL)
			return complain(complaint, 1, "%s: is written twice", option == &model ? "model" : "nvlink");
		*option = option == &last ? (struct word){word.text, (uint32_t)(text + len - word.text)} : value;
	}
	int32_t code = model.text == NULL ? FROND_OK : model_read(model, out, complaint);
	if (code == FROND_OK)
		code = levels_read(words, out, complaint);
	if (code == FROND_OK && last.text != NULL)
		return complain(complaint, 1, "line: \"%s\" comes after gpu, the last level; " AFTER,
				shown(last.text, last.len).text);
	if (code == FROND_OK && nvlink.text != NULL)
		code = number_read(nvlink, "nvlink", out->counts[NODE], " (the nodes of a leaf)", &out->nvlink,
				   complaint);
	return code;
}

static int32_t levels_read(const struct word words[LEVELS], struct line *line, struct complaint *complaint)
{
	const struct model_known *model = &models_known[line->model];
	char why[64];
	snprintf(why, sizeof(why), " (nodes are %s)", model->name);
	uint64_t product = 1;
	for (uint32_t level = 0; level < LEVELS; level++) {
		const char *name = level_names[level];
		struct word digits;
		if (words[level].len == 0)
			return complain(complaint, 1, "%s: is missing; " EXAMPLE, name);
		if (!word_after(words[level], name, &digits))
			return complain(complaint, 1, "%s: must come here, got \"%s\"; " EXAMPLE, name,
					shown(words[level].text, words[level].len).text);
		int32_t code = number_read(digits, name, level == GPU ? model->gpus : FROND_NODES_MAX,
					   level == GPU ? why : "", &line->counts[level], complaint);
		if (code != FROND_OK)
			return code;
		product *= level == GPU ? 1 : line->counts[level];
		if (product > FROND_NODES_MAX)
			return complain(complaint, 1, "%s: brings the cluster to %llu; at most %u are allowed", name,
					(unsigned long long)product, FROND_NODES_MAX);
	}
	return FROND_OK;
}

static int32_t model_read(struct word name, struct line *line, struct complaint *complaint)
{
	line->model = model_find(name.text, name.len);
	if (line->model != MODELS_KNOWN)
		return FROND_OK;
	char known[FROND_TEXT_MAX / 2] = "";
	uint32_t used = 0;
	for (uint32_t i = 0; i < MODELS_KNOWN && used < sizeof(known); i++)
		used += (uint32_t)snprintf(known + used, sizeof(known) - used, "%s%s", i == 0 ? "" : ", ",
					   models_known[i].name);
	return complain(complaint, 1, "model: \"%s\" is not a known model; known are %s",
			shown(name.text, name.len).text, known);
}

/* What follows "NAME:" in a word. */
static bool word_after(struct word word, const char *name, struct word *out)
{
	uint32_t len = (uint32_t)strlen(name);
	if (word.len <= len || memcmp(word.text, name, len) != 0 || word.text[len] != ':')
		return false;
	*out = (struct word){word.text + len + 1, word.len - len - 1};
	return true;
}

static int32_t number_read(struct word digits, const char *name, uint32_t max, const char *why, uint32_t *out,
			   struct complaint *complaint)
{
	uint64_t number = 0;
	bool bad = digits.len == 0 || digits.len > 9;
	for (uint32_t i = 0; i < digits.len && !bad; i++) {
		bad = digits.text[i] < '0' || digits.text[i] > '9';
		number = number * 10 + (uint64_t)(digits.text[i] - '0');
	}
	if (bad || number < 1 || number > max)
		return complain(complaint, 1, "%s: must be a whole number between 1 and %u%s, got \"%s\"", name, max,
				why, shown(digits.text, digits.len).text);
	*out = (uint32_t)number;
	return FROND_OK;
}

/* FROND_BAD: out of memory; the caller frees what there is. */
static int32_t grow(const struct line *line, struct fabricfile *fabric)
{
	const uint32_t *counts = line->counts;
	uint32_t spines = counts[SPINE], leaves = spines * counts[LEAF], nodes = leaves * counts[NODE];
	fabric->models = calloc(1, sizeof(*fabric->models));
	fabric->spines = calloc(spines, sizeof(*fabric->spines));
	fabric->leaves = calloc(leaves, sizeof(*fabric->leaves));
	fabric->nodes = calloc(nodes, sizeof(*fabric->nodes));
	if (fabric->models == NULL || fabric->spines == NULL || fabric->leaves == NULL || fabric->nodes == NULL)
		return FROND_BAD;
	models_fill(line->model, &fabric->models[0]);
	fabric->model_count = 1;
	fabric->models[0].name = strdup(models_known[line->model].name);
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
		if (code == FROND_OK && line->nvlink > 0) {
			uint32_t of_leaf = (counts[NODE] + line->nvlink - 1) / line->nvlink;
			uint32_t in_leaf = fabric->node_count % counts[NODE] / line->nvlink;
			code = clique_add(node, node->leaf * of_leaf + in_leaf + 1);
		}
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

/* The last NVLink domain of a leaf may have fewer nodes; domains count through the cluster, as all generated names do. */
static int32_t clique_add(struct fabric_node *node, uint32_t number)
{
	node->labels = calloc(1, sizeof(*node->labels));
	if (node->labels == NULL)
		return FROND_BAD;
	node->label_count = 1;
	node->labels[0].key = strdup(CLIQUE_LABEL);
	int32_t code = number_name("nvlink", number, &node->labels[0].value);
	return node->labels[0].key == NULL ? FROND_BAD : code;
}

/* MODELS_KNOWN: there is none of this name. */
static uint32_t model_find(const char *name, uint32_t len)
{
	uint32_t i = 0;
	while (i < MODELS_KNOWN &&
	       (strlen(models_known[i].name) != len || memcmp(models_known[i].name, name, len) != 0))
		i++;
	return i;
}
