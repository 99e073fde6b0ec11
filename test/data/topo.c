/* SPDX-License-Identifier: Apache-2.0 */
#include "topo.h"

#include "csv.h"
#include "tally.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "P8" before "P10". */
static int natural(const char *a, const char *b)
{
	size_t letters_a = strcspn(a, "0123456789"), letters_b = strcspn(b, "0123456789");
	if (letters_a != letters_b || strncmp(a, b, letters_a) != 0)
		return strcmp(a, b);
	long number_a = strtol(a + letters_a, NULL, 10), number_b = strtol(b + letters_b, NULL, 10);
	return number_a != number_b ? (number_a > number_b) - (number_a < number_b) : strcmp(a, b);
}

static int by_fabric(const void *left, const void *right)
{
	const struct topo_node *a = left, *b = right;
	int order = natural(a->spine_name, b->spine_name);
	if (order == 0)
		order = natural(a->leaf_name, b->leaf_name);
	return order != 0 ? order : strcmp(a->name, b->name);
}

struct named {
	const char *name;
	uint32_t node;
};

static int by_name(const void *left, const void *right)
{
	const struct named *a = left, *b = right;
	return strcmp(a->name, b->name);
}

static void copy(const struct csv *csv, uint32_t field, char *out, size_t cap)
{
	if (csv->field[field][0] == 0 || strlen(csv->field[field]) >= cap)
		data_refuse("%s:%u: field %u should be a short name", csv->path, csv->line, field + 1);
	strcpy(out, csv->field[field]);
}

static void build_leaves(struct topo *topo, const char *path)
{
	for (uint32_t i = 0; i < topo->nodes; i++) {
		struct topo_node *node = &topo->node[i];
		bool new_spine = i == 0 || strcmp(node->spine_name, node[-1].spine_name) != 0;
		bool new_leaf = new_spine || strcmp(node->leaf_name, node[-1].leaf_name) != 0;
		if (topo->spines + new_spine > TOPO_SPINES_MAX || topo->leaves + new_leaf > TOPO_LEAVES_MAX)
			data_refuse("%s: has more than %u spines or %u leaves", path, TOPO_SPINES_MAX, TOPO_LEAVES_MAX);
		topo->spines += new_spine;
		if (new_leaf)
			topo->leaf[topo->leaves++] = (struct topo_leaf){.spine = topo->spines - 1, .first = i};
		node->leaf = topo->leaves - 1;
		topo->leaf[node->leaf].nodes++;
	}
}

void topo_read(struct topo *topo, const char *path)
{
	struct csv csv;
	csv_open(&csv, path, "ip,DSW,PSW,ASW");
	*topo = (struct topo){0};
	while (csv_row(&csv)) {
		if (topo->nodes == TOPO_NODES_MAX)
			data_refuse("%s: has more than %u hosts", path, TOPO_NODES_MAX);
		struct topo_node *node = &topo->node[topo->nodes++];
		copy(&csv, 0, node->name, sizeof node->name);
		copy(&csv, 2, node->spine_name, sizeof node->spine_name);
		copy(&csv, 3, node->leaf_name, sizeof node->leaf_name);
	}
	csv_close(&csv);
	qsort(topo->node, topo->nodes, sizeof topo->node[0], by_fabric);
	build_leaves(topo, path);

	static struct named names[TOPO_NODES_MAX];
	for (uint32_t i = 0; i < topo->nodes; i++)
		names[i] = (struct named){topo->node[i].name, i};
	qsort(names, topo->nodes, sizeof names[0], by_name);
	for (uint32_t i = 0; i < topo->nodes; i++)
		topo->node[i].by_name = names[i].node;
}

char *topo_fabric(const struct topo *topo)
{
	size_t cap = 256 + (size_t)topo->nodes * 80 + (size_t)topo->leaves * 80 + (size_t)topo->spines * 40;
	char *text = malloc(cap);
	if (text == NULL)
		data_refuse("not enough memory for the fabric");
	int at = snprintf(text, cap,
			  "apiVersion: topology.scheduler/v1alpha1\nkind: Fabric\ndefaults: {gpus: %u}\nspines:\n",
			  TOPO_GPUS);
	for (uint32_t leaf = 0; leaf < topo->leaves; leaf++) {
		const struct topo_leaf *here = &topo->leaf[leaf];
		const struct topo_node *first = &topo->node[here->first];
		if (leaf == 0 || here->spine != topo->leaf[leaf - 1].spine)
			at += snprintf(text + at, cap - (size_t)at, "- name: %s\n  leaves:\n", first->spine_name);
		at += snprintf(text + at, cap - (size_t)at, "  - {name: %s-%s, nodes: [", first->spine_name,
			       first->leaf_name);
		for (uint32_t i = 0; i < here->nodes; i++) /* quoted: a hash of digits alone would be a number */
			at += snprintf(text + at, cap - (size_t)at, "%s\"%s\"", i > 0 ? ", " : "", first[i].name);
		at += snprintf(text + at, cap - (size_t)at, "]}\n");
	}
	return text;
}

/* ---- use -------------------------------------------------------------------------------------------------------- */

static uint32_t below(uint64_t *dice, uint32_t bound) /* splitmix64 */
{
	uint64_t z = (*dice += 0x9e3779b97f4a7c15u);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (uint32_t)((z ^ (z >> 31)) % bound);
}

void topo_fill(struct topo *topo, uint64_t seed, uint32_t percent)
{
	static const uint32_t sizes[] = {1, 1, 1, 2, 4, 8};
	uint32_t left = (uint32_t)((uint64_t)topo->nodes * percent / 100);
	for (uint32_t i = 0; i < topo->nodes; i++)
		topo->node[i].used = false;
	while (left > 0) {
		uint32_t size = sizes[below(&seed, sizeof sizes / sizeof sizes[0])];
		uint32_t at = size == 1 ? below(&seed, topo->nodes) : topo->leaf[below(&seed, topo->leaves)].first;
		for (size = size < left ? size : left; size > 0; at = (at + 1) % topo->nodes) {
			if (topo->node[at].used)
				continue;
			topo->node[at].used = true;
			size--;
			left--;
		}
	}
}
