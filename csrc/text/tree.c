/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tree.h"

#include "text/words.h"

#include <inttypes.h>

void tree_layout(struct tree *tree, struct arena *arena, struct names *names, uint32_t nodes, uint32_t name_cap)
{
	tree->names = names;
	tree->cap = nodes;
	tree->nodes = arena_take(arena, nodes, sizeof *tree->nodes);
	uint32_t **by_name[] = {&tree->slot_of,    &tree->file_node, &tree->file_leaf,
				&tree->file_spine, &tree->parent,    &tree->other};
	uint32_t **by_node[] = {&tree->file_node_leaf,   &tree->file_node_uplink, &tree->file_leaf_spine,
				&tree->file_leaf_uplink, &tree->file_leaf_name,   &tree->sorted,
				&tree->place_leaf,       &tree->place_spine};
	tree->leaf_name = arena_take(arena, FABRIC_LEAVES(nodes), sizeof *tree->leaf_name);
	tree->spine_name = arena_take(arena, FABRIC_LEAVES(nodes), sizeof *tree->spine_name);
	for (uint32_t i = 0; i < sizeof by_name / sizeof *by_name; i++)
		*by_name[i] = arena_take(arena, name_cap, sizeof(uint32_t));
	for (uint32_t i = 0; i < sizeof by_node / sizeof *by_node; i++)
		*by_node[i] = arena_take(arena, nodes, sizeof(uint32_t));
	if (arena->base == NULL)
		return;
	for (uint32_t i = 0; i < sizeof by_name / sizeof *by_name; i++)
		for (uint32_t name = 0; name < name_cap; name++)
			(*by_name[i])[name] = FROND_NONE;
	for (uint32_t slot = 0; slot < nodes; slot++)
		tree->nodes[slot] = (struct tree_node){.name = FROND_NONE, .leaf = FROND_NONE, .spine = FROND_NONE};
	tree->dirty = true;
}

int32_t tree_load(struct tree *tree, const struct fabricfile *file)
{
	if (file->node_count > tree->cap || file->leaf_count > tree->cap || file->spine_count > tree->cap)
		return FROND_LIMIT;
	for (uint32_t i = 0; i < file->spine_count; i++) {
		uint32_t name = names_hold(tree->names, file->spines[i].name, (uint32_t)strlen(file->spines[i].name));
		if (name == FROND_NONE)
			return FROND_LIMIT;
		tree->file_spine[name] = i;
	}
	for (uint32_t i = 0; i < file->leaf_count; i++) {
		const struct fabric_leaf *leaf = &file->leaves[i];
		const char *spine = file->spines[leaf->spine].name;
		uint32_t name = names_hold(tree->names, leaf->name, (uint32_t)strlen(leaf->name));
		if (name == FROND_NONE)
			return FROND_LIMIT;
		tree->file_leaf[name] = i;
		tree->file_leaf_name[i] = name;
		tree->file_leaf_spine[i] = names_find(tree->names, spine, (uint32_t)strlen(spine));
		tree->file_leaf_uplink[i] = leaf->uplink_gbps;
	}
	for (uint32_t i = 0; i < file->node_count; i++) {
		const struct fabric_node *node = &file->nodes[i];
		uint32_t name = names_hold(tree->names, node->name, (uint32_t)strlen(node->name));
		if (name == FROND_NONE)
			return FROND_LIMIT;
		tree->file_node[name] = i;
		tree->file_node_leaf[i] = node->leaf;
		tree->file_node_uplink[i] = node->uplink_gbps;
	}
	tree->file_spines = file->spine_count;
	tree->file_leaves = file->leaf_count;
	tree->file_nodes = file->node_count;
	return FROND_OK;
}

uint32_t tree_put(struct tree *tree, uint32_t slot, const struct tree_node *node)
{
	struct tree_node *mine = &tree->nodes[slot];
	if (mine->name != node->name || mine->leaf != node->leaf || mine->spine != node->spine)
		tree->dirty = true;
	if (mine->name != FROND_NONE)
		tree->slot_of[mine->name] = FROND_NONE;
	names_drop(tree->names, mine->name);
	names_drop(tree->names, mine->leaf);
	names_drop(tree->names, mine->spine);
	*mine = *node;
	tree->slot_of[node->name] = slot;
	uint32_t file = tree->file_node[node->name];
	if (node->uplink_gbps == 0 && file != FROND_NONE)
		return tree->file_node_uplink[file];
	return node->uplink_gbps;
}

void tree_remove(struct tree *tree, uint32_t slot)
{
	struct tree_node *mine = &tree->nodes[slot];
	assert(mine->name != FROND_NONE);
	tree->slot_of[mine->name] = FROND_NONE;
	names_drop(tree->names, mine->name);
	names_drop(tree->names, mine->leaf);
	names_drop(tree->names, mine->spine);
	*mine = (struct tree_node){.name = FROND_NONE, .leaf = FROND_NONE, .spine = FROND_NONE};
	tree->dirty = true;
}

/* ---- order ---------------------------------------------------------------------------------------------------------- */

static int compare_names(const struct tree *tree, uint32_t a, uint32_t b)
{
	if (a == b)
		return 0;
	uint32_t a_len, b_len;
	const char *a_text = names_text(tree->names, a, &a_len), *b_text = names_text(tree->names, b, &b_len);
	return natural_compare(a_text, a_len, b_text, b_len);
}

/* The file's order first; what it does not know follows in natural order. */
static int compare_listed(const struct tree *tree, const uint32_t *in_file, uint32_t a, uint32_t b)
{
	if (in_file[a] != in_file[b])
		return in_file[a] < in_file[b] ? -1 : 1;
	return compare_names(tree, a, b);
}

/* Nodes in the tree come first. */
static int compare_slots(const struct tree *tree, uint32_t a, uint32_t b)
{
	uint32_t a_leaf = tree->place_leaf[a], b_leaf = tree->place_leaf[b];
	if ((a_leaf == FROND_NONE) != (b_leaf == FROND_NONE))
		return a_leaf == FROND_NONE ? 1 : -1;
	int order = 0;
	if (a_leaf != FROND_NONE) {
		uint32_t a_spine = tree->place_spine[a], b_spine = tree->place_spine[b];
		if (a_spine != b_spine)
			order = compare_listed(tree, tree->file_spine, a_spine, b_spine);
		if (order == 0)
			order = compare_listed(tree, tree->file_leaf, a_leaf, b_leaf);
	}
	if (order == 0)
		order = compare_listed(tree, tree->file_node, tree->nodes[a].name, tree->nodes[b].name);
	return order;
}

static void sift(const struct tree *tree, uint32_t *slots, uint32_t root, uint32_t count)
{
	for (uint32_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
		if (child + 1 < count && compare_slots(tree, slots[child], slots[child + 1]) < 0)
			child++;
		if (compare_slots(tree, slots[root], slots[child]) >= 0)
			return;
		uint32_t slot = slots[root];
		slots[root] = slots[child];
		slots[child] = slot;
		root = child;
	}
}

static void sort_slots(const struct tree *tree, uint32_t *slots, uint32_t count)
{
	for (uint32_t i = count / 2; i > 0; i--)
		sift(tree, slots, i - 1, count);
	for (uint32_t end = count; end > 1; end--) {
		uint32_t slot = slots[0];
		slots[0] = slots[end - 1];
		slots[end - 1] = slot;
		sift(tree, slots, 0, end - 1);
	}
}

/* ---- what forms a tree and what does not --------------------------------------------------------------------------- */

static void report(struct tree *tree, enum tree_problem_kind kind, uint32_t domain, uint32_t other, uint32_t third)
{
	for (uint32_t i = 0; i < tree->problem_count && i < TREE_PROBLEMS_MAX; i++) {
		struct tree_problem *problem = &tree->problems[i];
		if (problem->kind == kind && problem->domain == domain) {
			problem->nodes++;
			return;
		}
	}
	if (tree->problem_count < TREE_PROBLEMS_MAX)
		tree->problems[tree->problem_count] = (struct tree_problem){
			.kind = kind, .domain = domain, .other = other, .third = third, .nodes = 1};
	tree->problem_count++;
}

/* Which spines each labelled leaf names: the first two in natural order. */
static void note_parent(struct tree *tree, uint32_t leaf, uint32_t spine)
{
	uint32_t *first = &tree->parent[leaf], *second = &tree->other[leaf];
	if (*first == spine || *second == spine)
		return;
	if (*first == FROND_NONE || compare_names(tree, spine, *first) < 0) {
		*second = *first;
		*first = spine;
	} else if (*second == FROND_NONE || compare_names(tree, spine, *second) < 0) {
		*second = spine;
	}
}

/* Is the leaf above itself? Its spine may be the name of a leaf too, and so on. */
static bool loops(const struct tree *tree, uint32_t leaf)
{
	uint32_t at = leaf;
	for (uint32_t steps = 0; steps < 8; steps++) { /* names repeat in a loop; two levels make short ones */
		at = tree->parent[at];
		if (at == leaf)
			return true;
		if (at == FROND_NONE)
			return false;
	}
	return false;
}

/* Where a labelled node stands: place_leaf and place_spine, or a problem. */
static void place_by_labels(struct tree *tree, uint32_t slot)
{
	const struct tree_node *node = &tree->nodes[slot];
	uint32_t leaf = node->leaf, spine = node->spine;
	if (leaf == FROND_NONE) {
		if (spine != FROND_NONE)
			report(tree, PROBLEM_NO_LEAF, spine, node->name, FROND_NONE);
		return;
	}
	uint32_t in_file = tree->file_leaf[leaf];
	if (in_file != FROND_NONE) {
		if (spine != FROND_NONE && spine != tree->file_leaf_spine[in_file]) {
			report(tree, PROBLEM_OFF_FILE, leaf, tree->file_leaf_spine[in_file], spine);
			return;
		}
		spine = tree->file_leaf_spine[in_file];
	} else if (!tree->two_levels) {
		spine = leaf; /* replaced below by one nameless spine */
	} else if (spine == FROND_NONE) {
		report(tree, PROBLEM_NO_SPINE, leaf, node->name, FROND_NONE);
		return;
	} else if (loops(tree, leaf)) {
		report(tree, PROBLEM_LOOP, leaf, spine, FROND_NONE);
		return;
	} else if (tree->other[leaf] != FROND_NONE) {
		report(tree, PROBLEM_TWO_PARENTS, leaf, tree->parent[leaf], tree->other[leaf]);
		return;
	}
	tree->place_leaf[slot] = leaf;
	tree->place_spine[slot] = spine;
}

static void place_nodes(struct tree *tree, const struct node *nodes)
{
	tree->problem_count = 0;
	for (uint32_t slot = 0; slot < tree->cap; slot++) {
		const struct tree_node *node = &tree->nodes[slot];
		if (nodes[slot].present && node->leaf != FROND_NONE)
			tree->parent[node->leaf] = tree->other[node->leaf] = FROND_NONE;
		if (nodes[slot].present && node->spine != FROND_NONE)
			tree->parent[node->spine] = tree->other[node->spine] = FROND_NONE;
	}
	for (uint32_t slot = 0; slot < tree->cap; slot++) {
		const struct tree_node *node = &tree->nodes[slot];
		bool labelled = nodes[slot].present && node->leaf != FROND_NONE && node->spine != FROND_NONE;
		if (labelled && tree->file_node[node->name] == FROND_NONE)
			note_parent(tree, node->leaf, node->spine);
	}
	for (uint32_t slot = 0; slot < tree->cap; slot++) {
		tree->place_leaf[slot] = tree->place_spine[slot] = FROND_NONE;
		if (!nodes[slot].present)
			continue;
		uint32_t in_file = tree->file_node[tree->nodes[slot].name];
		if (in_file == FROND_NONE) {
			place_by_labels(tree, slot);
			continue;
		}
		uint32_t leaf = tree->file_node_leaf[in_file];
		tree->place_leaf[slot] = tree->file_leaf_name[leaf];
		tree->place_spine[slot] = tree->file_leaf_spine[leaf];
	}
	if (tree->two_levels || tree->file_nodes > 0)
		return;
	uint32_t nameless =
		FROND_NONE; /* one level of labels: every leaf under one spine, named after its first leaf */
	for (uint32_t slot = 0; slot < tree->cap; slot++) {
		uint32_t leaf = tree->place_leaf[slot];
		if (leaf != FROND_NONE && (nameless == FROND_NONE || compare_names(tree, leaf, nameless) < 0))
			nameless = leaf;
	}
	for (uint32_t slot = 0; slot < tree->cap; slot++)
		if (tree->place_leaf[slot] != FROND_NONE)
			tree->place_spine[slot] = nameless;
}

/* Opens the next leaf of the fabric, and its spine when that is new. */
static void open_leaf(struct tree *tree, struct fabric *fabric, uint32_t leaf, uint32_t spine, uint32_t position)
{
	if (fabric->spine_count == 0 || tree->spine_name[fabric->spine_count - 1] != spine) {
		fabric->spine_start[fabric->spine_count] = fabric->leaf_count;
		tree->spine_name[fabric->spine_count++] = spine;
	}
	uint32_t in_file = tree->file_leaf[leaf];
	fabric->leaf_start[fabric->leaf_count] = position;
	fabric->leaf_spine[fabric->leaf_count] = fabric->spine_count - 1;
	fabric->leaf_uplink[fabric->leaf_count] = in_file == FROND_NONE ? 0 : tree->file_leaf_uplink[in_file];
	tree->leaf_name[fabric->leaf_count++] = leaf;
}

/* Leaves of the file that stand before a leaf and have no node today keep their place: they part their neighbours. */
static void open_empty(struct tree *tree, struct fabric *fabric, uint32_t leaf, uint32_t spine, uint32_t position,
		       uint32_t *next)
{
	for (; *next < tree->file_leaves; ++*next) {
		uint32_t file_spine = tree->file_leaf_spine[*next];
		if (leaf != FROND_NONE) {
			bool before = tree->file_leaf[leaf] != FROND_NONE
					      ? *next < tree->file_leaf[leaf]
					      : tree->file_spine[file_spine] <= tree->file_spine[spine];
			if (!before)
				return;
		}
		open_leaf(tree, fabric, tree->file_leaf_name[*next], file_spine, position);
	}
}

bool tree_build(struct tree *tree, const struct node *nodes, struct fabric *fabric)
{
	if (!tree->dirty)
		return false;
	place_nodes(tree, nodes);
	uint32_t count = 0;
	for (uint32_t slot = 0; slot < tree->cap; slot++) {
		fabric->position[slot] = FROND_NONE;
		if (nodes[slot].present)
			tree->sorted[count++] = slot;
	}
	sort_slots(tree, tree->sorted, count);
	fabric->node_count = count;
	fabric->leaf_count = fabric->spine_count = 0;
	uint32_t last_leaf = FROND_NONE, inside = 0, next_file = 0;
	for (uint32_t position = 0; position < count; position++) {
		uint32_t slot = tree->sorted[position], leaf = tree->place_leaf[slot], spine = tree->place_spine[slot];
		fabric->order[position] = slot;
		fabric->position[slot] = position;
		fabric->leaf_of[position] = FROND_NONE;
		if (leaf == FROND_NONE)
			continue;
		if (leaf != last_leaf) {
			open_empty(tree, fabric, leaf, spine, position, &next_file);
			open_leaf(tree, fabric, leaf, spine, position);
			next_file += tree->file_leaf[leaf] == next_file;
		}
		fabric->leaf_of[position] = fabric->leaf_count - 1;
		last_leaf = leaf;
		inside = position + 1;
	}
	open_empty(tree, fabric, FROND_NONE, FROND_NONE, inside, &next_file);
	fabric->leaf_start[fabric->leaf_count] = inside;
	fabric->spine_start[fabric->spine_count] = fabric->leaf_count;
	tree->dirty = false;
	return true;
}

/* ---- in words --------------------------------------------------------------------------------------------------------- */

static struct shown show(const struct tree *tree, uint32_t name)
{
	uint32_t len;
	const char *text = names_text(tree->names, name, &len);
	return shown(text, len);
}

void tree_problems(const struct tree *tree, struct out *out)
{
	for (uint32_t i = 0; i < tree->problem_count && i < TREE_PROBLEMS_MAX; i++) {
		const struct tree_problem *problem = &tree->problems[i];
		struct shown domain = show(tree, problem->domain), other = show(tree, problem->other);
		switch (problem->kind) {
		case PROBLEM_TWO_PARENTS:
			out_printf(out, "leaf %s has two parents, %s and %s", domain.text, other.text,
				   show(tree, problem->third).text);
			break;
		case PROBLEM_LOOP:
			out_printf(out, "leaf %s is above itself: its spine %s is a leaf under it", domain.text,
				   other.text);
			break;
		case PROBLEM_NO_SPINE:
			out_printf(out, "leaf %s has no spine label on node %s", domain.text, other.text);
			break;
		case PROBLEM_NO_LEAF:
			out_printf(out, "node %s has the spine %s but no leaf label", other.text, domain.text);
			break;
		case PROBLEM_OFF_FILE:
			out_printf(out, "leaf %s is under %s in the fabric file but labelled %s", domain.text,
				   other.text, show(tree, problem->third).text);
			break;
		}
		out_printf(out, "; %" PRIu32 " node%s scheduled without topology\n", problem->nodes,
			   problem->nodes == 1 ? " is" : "s are");
	}
	if (tree->problem_count > TREE_PROBLEMS_MAX)
		out_printf(out, "%" PRIu32 " further problems of the fabric\n",
			   tree->problem_count - TREE_PROBLEMS_MAX);
}
