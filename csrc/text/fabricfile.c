/* SPDX-License-Identifier: Apache-2.0 */
/* The fabric file: models and defaults first, then the tree in the order written, then the exceptions. */
#include "text/fabricload.h"

#include "text/kubename.h"
#include "text/range.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

static int32_t document_read(struct fabric_load *load);
static int32_t header_read(const struct fabric_load *load);
static int32_t tree_measure(struct fabric_load *load, uint32_t spines);
static int32_t leaves_measure(struct fabric_load *load, uint32_t spine);
static int32_t tree_allocate(struct fabric_load *load);
static int32_t spine_read(struct fabric_load *load, uint32_t at);
static int32_t leaf_read(struct fabric_load *load, uint32_t at);
static int32_t nodes_measure(struct fabric_load *load, uint32_t list);
static int32_t nodes_read(struct fabric_load *load, uint32_t at);
static int32_t node_add(struct fabric_load *load, uint32_t at, const char *name);
static int32_t domain_name_read(const struct fabric_load *load, uint32_t map, uint32_t index,
				struct fabric_entry *entry, char **out);
static int32_t names_sort(const struct fabric_load *load, struct fabric_entry *entries, uint32_t count,
			  const char *what);

int32_t fabricfile_read(const char *text, uint32_t len, struct fabricfile *out, struct complaint *complaint)
{
	memset(out, 0, sizeof(*out));
	struct doc doc;
	int32_t code = doc_read(text, len, &doc, complaint);
	if (code != FROND_OK)
		return code;
	struct fabricfile fabric = {0};
	struct fabric_load load = {.doc = &doc, .fabric = &fabric, .complaint = complaint};
	code = document_read(&load);
	free(load.spine_names);
	free(load.leaf_names);
	free(load.node_names);
	free(load.exception);
	doc_free(&doc);
	if (code == FROND_OK)
		*out = fabric;
	else
		fabricfile_free(&fabric);
	return code;
}

void fabricfile_free(struct fabricfile *fabric)
{
	for (uint32_t i = 0; i < fabric->model_count; i++)
		free(fabric->models[i].name);
	for (uint32_t i = 0; i < fabric->spine_count; i++)
		free(fabric->spines[i].name);
	for (uint32_t i = 0; i < fabric->leaf_count; i++)
		free(fabric->leaves[i].name);
	for (uint32_t i = 0; i < fabric->node_count; i++) {
		struct fabric_node *node = &fabric->nodes[i];
		free(node->name);
		for (uint32_t j = 0; j < node->label_count; j++) {
			free(node->labels[j].key);
			free(node->labels[j].value);
		}
		free(node->labels);
	}
	free(fabric->models);
	free(fabric->spines);
	free(fabric->leaves);
	free(fabric->nodes);
	memset(fabric, 0, sizeof(*fabric));
}

static int32_t document_read(struct fabric_load *load)
{
	const struct doc *doc = load->doc;
	struct fabricfile *fabric = load->fabric;
	uint32_t spines = DOC_NONE;
	int32_t code = header_read(load);
	if (code == FROND_OK)
		code = fabric_models_load(load);
	if (code == FROND_OK)
		code = fabric_defaults_load(load);
	if (code == FROND_OK)
		code = doc_need(doc, 0, "spines", &spines, load->complaint);
	if (code == FROND_OK)
		code = tree_measure(load, spines);
	if (code == FROND_OK)
		code = tree_allocate(load);
	if (code != FROND_OK)
		return code;
	for (uint32_t i = doc->values[spines].first; i != DOC_NONE && code == FROND_OK; i = doc->values[i].next)
		code = spine_read(load, i);
	if (code == FROND_OK)
		code = names_sort(load, load->spine_names, fabric->spine_count, "spine");
	if (code == FROND_OK)
		code = names_sort(load, load->leaf_names, fabric->leaf_count, "leaf");
	if (code == FROND_OK)
		code = names_sort(load, load->node_names, fabric->node_count, "node");
	return code == FROND_OK ? fabric_exceptions_load(load) : code;
}

/* apiVersion and kind may be left out, but not be those of something else. */
static int32_t header_read(const struct fabric_load *load)
{
	static const char *const known[] = {"apiVersion", "kind", "defaults", "spines", "models", "nodes"};
	static const char *const want[] = {"topology.scheduler/v1alpha1", "Fabric"};
	int32_t code = doc_map_of(load->doc, 0, known, COUNT(known), load->complaint);
	for (uint32_t i = 0; i < COUNT(want) && code == FROND_OK; i++) {
		uint32_t at = doc_get(load->doc, 0, known[i]);
		const char *text = want[i];
		if (at != DOC_NONE)
			code = doc_word(load->doc, at, &text, load->complaint);
		if (code == FROND_OK && strcmp(text, want[i]) != 0)
			code = doc_complain(load->doc, at, load->complaint, "must be %s, got \"%s\"", want[i],
					    shown(text, strlen(text)).text);
	}
	return code;
}

/* ---- the tree -------------------------------------------------------------------------------------------------- */

/* Checks the shape and the keys, and counts, so that everything is allocated once. */
static int32_t tree_measure(struct fabric_load *load, uint32_t spines)
{
	static const char *const known[] = {"name", "leaves"};
	const struct doc *doc = load->doc;
	int32_t code = doc_list(doc, spines, load->complaint);
	if (code == FROND_OK && doc->values[spines].count == 0)
		return doc_complain(doc, spines, load->complaint, "is empty; at least one spine is needed");
	if (code != FROND_OK)
		return code;
	for (uint32_t i = doc->values[spines].first; i != DOC_NONE; i = doc->values[i].next) {
		code = doc_map_of(doc, i, known, COUNT(known), load->complaint);
		if (code == FROND_OK)
			code = leaves_measure(load, i);
		if (code != FROND_OK)
			return code;
		load->spines++; /* never more than leaves, which are limited */
	}
	return FROND_OK;
}

/* A leaf may have no nodes here: in a cluster they may come by their labels. */
static int32_t leaves_measure(struct fabric_load *load, uint32_t spine)
{
	static const char *const known[] = {"name", "uplinkGbps", "nodes"};
	const struct doc *doc = load->doc;
	uint32_t leaves;
	int32_t code = doc_need(doc, spine, "leaves", &leaves, load->complaint);
	if (code == FROND_OK)
		code = doc_list(doc, leaves, load->complaint);
	if (code == FROND_OK && doc->values[leaves].count == 0)
		return doc_complain(doc, leaves, load->complaint, "is empty; at least one leaf is needed");
	if (code != FROND_OK)
		return code;
	for (uint32_t i = doc->values[leaves].first; i != DOC_NONE; i = doc->values[i].next) {
		code = doc_map_of(doc, i, known, COUNT(known), load->complaint);
		uint32_t nodes = code == FROND_OK ? doc_get(doc, i, "nodes") : DOC_NONE;
		if (nodes != DOC_NONE)
			code = doc_list(doc, nodes, load->complaint);
		if (code != FROND_OK)
			return code;
		if (++load->leaves > FROND_NODES_MAX)
			return doc_complain(doc, i, load->complaint, "is one leaf too many; at most %u are allowed",
					    FROND_NODES_MAX);
		if (nodes != DOC_NONE)
			code = nodes_measure(load, nodes);
		if (code != FROND_OK)
			return code;
	}
	return FROND_OK;
}

/* A name may be a range. One that is no text counts as one and is refused when it is read. */
static int32_t nodes_measure(struct fabric_load *load, uint32_t list)
{
	const struct doc *doc = load->doc;
	uint64_t nodes = load->nodes;
	for (uint32_t i = doc->values[list].first; i != DOC_NONE; i = doc->values[i].next) {
		struct range range = {.count = 1};
		int32_t code = doc->values[i].kind == DOC_SCALAR ? fabric_range_open(load, i, &range) : FROND_OK;
		if (code != FROND_OK)
			return code;
		nodes += range.count;
	}
	if (nodes > FROND_NODES_MAX)
		return doc_complain(doc, list, load->complaint, "brings the nodes to %llu; at most %u are allowed",
				    (unsigned long long)nodes, FROND_NODES_MAX);
	load->nodes = (uint32_t)nodes;
	return FROND_OK;
}

static int32_t tree_allocate(struct fabric_load *load)
{
	struct fabricfile *fabric = load->fabric;
	fabric->spines = fabric_take(load, load->spines, sizeof(*fabric->spines));
	fabric->leaves = fabric_take(load, load->leaves, sizeof(*fabric->leaves));
	fabric->nodes = fabric_take(load, load->nodes, sizeof(*fabric->nodes));
	load->spine_names = fabric_take(load, load->spines, sizeof(*load->spine_names));
	load->leaf_names = fabric_take(load, load->leaves, sizeof(*load->leaf_names));
	load->node_names = fabric_take(load, load->nodes, sizeof(*load->node_names));
	load->exception = fabric_take(load, load->nodes, sizeof(*load->exception));
	bool all = fabric->spines != NULL && fabric->leaves != NULL && fabric->nodes != NULL &&
		   load->spine_names != NULL && load->leaf_names != NULL && load->node_names != NULL &&
		   load->exception != NULL;
	return all ? FROND_OK : FROND_BAD;
}

static int32_t spine_read(struct fabric_load *load, uint32_t at)
{
	const struct doc *doc = load->doc;
	uint32_t index = load->fabric->spine_count;
	int32_t code = domain_name_read(load, at, index, &load->spine_names[index], &load->fabric->spines[index].name);
	if (code != FROND_OK)
		return code;
	load->fabric->spine_count++;
	uint32_t leaves = doc_get(doc, at, "leaves");
	for (uint32_t i = doc->values[leaves].first; i != DOC_NONE && code == FROND_OK; i = doc->values[i].next)
		code = leaf_read(load, i);
	return code;
}

static int32_t leaf_read(struct fabric_load *load, uint32_t at)
{
	const struct doc *doc = load->doc;
	uint32_t index = load->fabric->leaf_count;
	struct fabric_leaf *leaf = &load->fabric->leaves[index];
	leaf->spine = load->fabric->spine_count - 1;
	int32_t code = domain_name_read(load, at, index, &load->leaf_names[index], &leaf->name);
	if (code != FROND_OK)
		return code;
	load->fabric->leaf_count++;
	code = fabric_uplink_read(load, at, &leaf->uplink_gbps);
	uint32_t nodes = doc_get(doc, at, "nodes");
	uint32_t i = nodes == DOC_NONE ? DOC_NONE : doc->values[nodes].first;
	for (; i != DOC_NONE && code == FROND_OK; i = doc->values[i].next)
		code = nodes_read(load, i);
	return code;
}

/* One name, or a range of them. */
static int32_t nodes_read(struct fabric_load *load, uint32_t at)
{
	const char *word = NULL;
	struct range range;
	char name[FROND_NAME_MAX + 2];
	int32_t code = doc_word(load->doc, at, &word, load->complaint);
	if (code == FROND_OK)
		code = fabric_range_open(load, at, &range);
	while (code == FROND_OK && range_next(&range, name))
		code = node_add(load, at, name);
	return code;
}

static int32_t node_add(struct fabric_load *load, uint32_t at, const char *name)
{
	if (!is_node_name(name, strlen(name)))
		return doc_complain(load->doc, at, load->complaint,
				    "\"%s\" is not a node's name; allowed are " NODE_NAME_RULE,
				    shown(name, strlen(name)).text);
	uint32_t index = load->fabric->node_count;
	struct fabric_node *node = &load->fabric->nodes[index];
	*node = load->defaults;
	node->leaf = load->fabric->leaf_count - 1;
	int32_t code = fabric_copy(load, name, &node->name);
	load->fabric->node_count++;
	load->node_names[index] = (struct fabric_entry){.name = node->name, .index = index, .value = at};
	return code;
}

static int32_t domain_name_read(const struct fabric_load *load, uint32_t map, uint32_t index,
				struct fabric_entry *entry, char **out)
{
	uint32_t at;
	const char *name = NULL;
	int32_t code = doc_need(load->doc, map, "name", &at, load->complaint);
	if (code == FROND_OK)
		code = doc_word(load->doc, at, &name, load->complaint);
	if (code != FROND_OK)
		return code;
	if (!is_domain_name(name, strlen(name)))
		return doc_complain(load->doc, at, load->complaint,
				    "\"%s\" is not a domain's name; allowed are " DOMAIN_NAME_RULE,
				    shown(name, strlen(name)).text);
	*entry = (struct fabric_entry){.name = name, .index = index, .value = at};
	return fabric_copy(load, name, out);
}

/* ---- names ----------------------------------------------------------------------------------------------------- */

static int entry_compare(const void *a, const void *b)
{
	const struct fabric_entry *x = a, *y = b;
	int order = strcmp(x->name, y->name);
	return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

/* Sorts by name. Of names that stand twice it reports the one whose second place comes first in the file. */
static int32_t names_sort(const struct fabric_load *load, struct fabric_entry *entries, uint32_t count,
			  const char *what)
{
	const struct fabric_entry *first = NULL, *twice = NULL;
	qsort(entries, count, sizeof(*entries), entry_compare);
	for (uint32_t i = 1; i < count; i++) {
		if (strcmp(entries[i - 1].name, entries[i].name) != 0 ||
		    (twice != NULL && twice->index < entries[i].index))
			continue;
		first = &entries[i - 1];
		twice = &entries[i];
	}
	if (twice == NULL)
		return FROND_OK;
	return doc_complain(load->doc, twice->value, load->complaint,
			    "%s \"%s\" is already listed on line %u; each is listed once", what,
			    shown(twice->name, strlen(twice->name)).text, load->doc->values[first->value].line);
}

int32_t fabric_range_open(const struct fabric_load *load, uint32_t at, struct range *out)
{
	const char *wrong = range_open(doc_scalar(load->doc, at), out);
	if (wrong == NULL)
		return FROND_OK;
	return doc_complain(load->doc, at, load->complaint, "\"%s\" %s",
			    shown(doc_scalar(load->doc, at), load->doc->values[at].scalar_len).text, wrong);
}

void *fabric_take(const struct fabric_load *load, uint64_t count, uint64_t size)
{
	void *taken = calloc(count == 0 ? 1 : count, size);
	if (taken == NULL)
		complain(load->complaint, 1, "document: out of memory");
	return taken;
}

int32_t fabric_copy(const struct fabric_load *load, const char *text, char **out)
{
	*out = strdup(text);
	return *out != NULL ? FROND_OK : complain(load->complaint, 1, "document: out of memory");
}
