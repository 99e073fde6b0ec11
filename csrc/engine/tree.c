/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/tree.h"

#include "core/sort.h"
#include "text/words.h"

#include <inttypes.h>

_Static_assert(TREE_DOMAINS(FROND_NODES_MAX) < UINT16_MAX, "names in struct standing");

static struct tree_node nowhere(void)
{
	return (struct tree_node){.name = FROND_NONE, .standing = STANDING_NONE};
}

uint64_t tree_scratch(uint32_t nodes)
{
	return (3ull * TREE_DOMAINS(nodes) + 2ull * nodes + 3ull * FABRIC_LEAVES(nodes)) * sizeof(uint32_t);
}

static void scratch_layout(struct tree *tree, uint32_t *at, uint32_t nodes)
{
	uint32_t **by_domain[] = {&tree->parent, &tree->other, &tree->core_of};
	uint32_t **by_leaf[] = {&tree->draft_leaf, &tree->draft_count, &tree->draft_order};
	for (uint32_t i = 0; i < 3; i++, at += TREE_DOMAINS(nodes))
		*by_domain[i] = at;
	for (uint32_t i = 0; i < 3; i++, at += FABRIC_LEAVES(nodes))
		*by_leaf[i] = at;
	tree->place_leaf = at;
	tree->place_spine = at + nodes;
}

void tree_layout(struct tree *tree, struct arena *arena, struct names *names, struct names *domains, uint32_t nodes,
		 void *scratch)
{
	tree->names = names;
	tree->domains = domains;
	tree->cap = nodes;
	standings_layout(&tree->standings, arena, domains, nodes);
	tree->nodes = arena_raw(arena, nodes, sizeof *tree->nodes);
	tree->slot_of = arena_raw(arena, TREE_NAMES(nodes), sizeof *tree->slot_of);
	tree->file_leaf = arena_raw(arena, TREE_DOMAINS(nodes), sizeof *tree->file_leaf);
	tree->file_node = arena_raw(arena, nodes, sizeof *tree->file_node);
	tree->file_gbps = arena_raw(arena, FILE_SPEEDS, sizeof *tree->file_gbps);
	uint32_t **by_leaf[] = {&tree->leaf_name, &tree->file_leaf_spine, &tree->file_leaf_uplink,
				&tree->file_leaf_name};
	for (uint32_t i = 0; i < sizeof by_leaf / sizeof *by_leaf; i++)
		*by_leaf[i] = arena_raw(arena, FABRIC_LEAVES(nodes), sizeof(uint32_t));
	tree->spine_name = arena_raw(arena, FABRIC_SPINES(nodes), sizeof *tree->spine_name);
	if (arena->base == NULL)
		return;
	scratch_layout(tree, scratch, nodes);
	memset(tree->slot_of, 0xff, TREE_NAMES(nodes) * sizeof *tree->slot_of); /* FROND_NONE */
	memset(tree->file_leaf, 0xff, TREE_DOMAINS(nodes) * sizeof *tree->file_leaf);
	for (uint32_t slot = 0; slot < nodes; slot++)
		tree->nodes[slot] = nowhere();
	tree->dirty = true;
}

/* The number of a speed; any other one's when there are too many. */
static uint32_t speed_of(struct tree *tree, uint32_t gbps, uint32_t *known)
{
	for (uint32_t speed = 0; speed < *known; speed++)
		if (tree->file_gbps[speed] == gbps)
			return speed;
	if (*known < FILE_SPEEDS)
		tree->file_gbps[(*known)++] = gbps;
	return *known - 1;
}

int32_t tree_load(struct tree *tree, const struct fabricfile *file)
{
	uint32_t speeds = 0;
	if (file->node_count > tree->cap || file->leaf_count > FABRIC_LEAVES(tree->cap) ||
	    file->spine_count > FABRIC_SPINES(tree->cap))
		return FROND_LIMIT;
	for (uint32_t i = 0; i < file->spine_count; i++) {
		uint32_t name = names_hold(tree->domains, file->spines[i].name, (uint32_t)strlen(file->spines[i].name));
		if (name == FROND_NONE)
			return FROND_LIMIT;
		assert(name == i);
	}
	for (uint32_t i = 0; i < file->leaf_count; i++) {
		const struct fabric_leaf *leaf = &file->leaves[i];
		uint32_t name = names_hold(tree->domains, leaf->name, (uint32_t)strlen(leaf->name));
		if (name == FROND_NONE)
			return FROND_LIMIT;
		tree->file_leaf[name] = i;
		tree->file_leaf_name[i] = name;
		tree->file_leaf_spine[i] = leaf->spine;
		tree->file_leaf_uplink[i] = leaf->uplink_gbps;
	}
	for (uint32_t i = 0; i < file->node_count; i++) {
		const struct fabric_node *node = &file->nodes[i];
		uint32_t name = names_hold(tree->names, node->name, (uint32_t)strlen(node->name));
		if (name == FROND_NONE || (node->model != FROND_NONE && node->model >= FILE_NO_MODEL))
			return FROND_LIMIT;
		uint32_t speed = speed_of(tree, node->uplink_gbps, &speeds);
		if (tree->file_gbps[speed] != node->uplink_gbps)
			return FROND_LIMIT;
		assert(name == i && node->leaf < file->leaf_count);
		tree->file_node[i] = (struct file_node){.leaf = node->leaf & 0x7fff,
							.model = node->model & UINT8_MAX, /* FROND_NONE too */
							.speed = speed & (FILE_SPEEDS - 1)};
	}
	tree->file_spines = file->spine_count;
	tree->file_leaves = file->leaf_count;
	tree->file_nodes = file->node_count;
	return FROND_OK;
}

static void let_go(struct tree *tree, const struct tree_node *node)
{
	const struct standing *standing = standing_of(&tree->standings, node->standing);
	tree->slot_of[node->name] = FROND_NONE;
	tree->with_domain -= standing_name(standing, LEVEL_DOMAIN) != FROND_NONE;
	tree->with_core -= standing_name(standing, LEVEL_CORE) != FROND_NONE;
	names_drop(tree->names, node->name);
	standings_drop(&tree->standings, node->standing);
}

uint32_t tree_put(struct tree *tree, uint32_t slot, const struct tree_node *node, uint32_t uplink_gbps)
{
	struct tree_node *mine = &tree->nodes[slot];
	const struct standing *standing = standing_of(&tree->standings, node->standing);
	tree->dirty |= mine->name != node->name || mine->standing != node->standing;
	if (mine->name != FROND_NONE)
		let_go(tree, mine);
	*mine = *node;
	tree->with_domain += standing_name(standing, LEVEL_DOMAIN) != FROND_NONE;
	tree->with_core += standing_name(standing, LEVEL_CORE) != FROND_NONE;
	tree->slot_of[node->name] = slot;
	uint32_t file = tree_file_node(tree, node->name);
	return uplink_gbps == 0 && file != FROND_NONE ? tree->file_gbps[tree->file_node[file].speed] : uplink_gbps;
}

void tree_remove(struct tree *tree, uint32_t slot)
{
	assert(tree->nodes[slot].name != FROND_NONE);
	let_go(tree, &tree->nodes[slot]);
	tree->nodes[slot] = nowhere();
	tree->dirty = true;
}

/* ---- order ---------------------------------------------------------------------------------------------------------- */

static int compare_texts(const struct names *names, uint32_t a, uint32_t b)
{
	if (a == b)
		return 0;
	uint32_t a_len, b_len;
	const char *a_text = names_text(names, a, &a_len), *b_text = names_text(names, b, &b_len);
	return natural_compare(a_text, a_len, b_text, b_len);
}

static int compare_names(const struct tree *tree, uint32_t a, uint32_t b)
{
	return compare_texts(tree->domains, a, b);
}

/* The file's order first; what it does not know follows in natural order. */
static int compare_listed(const struct tree *tree, const uint32_t *in_file, uint32_t a, uint32_t b)
{
	if (in_file[a] != in_file[b])
		return in_file[a] < in_file[b] ? -1 : 1;
	return compare_names(tree, a, b);
}

static int compare_some(const struct tree *tree, uint32_t a, uint32_t b)
{
	if (a == FROND_NONE || b == FROND_NONE)
		return (a == FROND_NONE) - (b == FROND_NONE);
	return compare_names(tree, a, b);
}

/* Two nodes of a leaf, or without one. */
static bool slot_before(const void *context, uint32_t a, uint32_t b)
{
	const struct tree *tree = context;
	const struct tree_node *node = &tree->nodes[a], *other = &tree->nodes[b];
	uint32_t in_file = tree_file_node(tree, node->name), other_in_file = tree_file_node(tree, other->name);
	if (in_file != other_in_file)
		return in_file < other_in_file;
	int order = node->standing == other->standing
			    ? 0
			    : compare_some(tree, standing_name(tree_standing(tree, a), LEVEL_DOMAIN),
					   standing_name(tree_standing(tree, b), LEVEL_DOMAIN));
	return (order != 0 ? order : compare_texts(tree->names, node->name, other->name)) < 0;
}

/* Two leaves, by their numbers in the draft. */
static bool leaf_before(const void *context, uint32_t a, uint32_t b)
{
	const struct tree *tree = context;
	uint32_t leaf = tree->draft_leaf[a], other = tree->draft_leaf[b];
	uint32_t spine = tree->parent[leaf], other_spine = tree->parent[other];
	int order = 0;
	if (spine != other_spine) {
		uint32_t in_file = tree_file_spine(tree, spine), other_in_file = tree_file_spine(tree, other_spine);
		if (in_file != other_in_file)
			return in_file < other_in_file;
		order = compare_some(tree, tree->core_of[spine], tree->core_of[other_spine]);
		if (order == 0)
			order = compare_names(tree, spine, other_spine);
	}
	return (order != 0 ? order : compare_listed(tree, tree->file_leaf, leaf, other)) < 0;
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
	const struct standing *standing = tree_standing(tree, slot);
	uint32_t leaf = standing_name(standing, LEVEL_LEAF), spine = standing_name(standing, LEVEL_SPINE);
	if (leaf == FROND_NONE) {
		if (node->standing == STANDING_LOST)
			report(tree, PROBLEM_NO_NAMES, FROND_NONE, node->name, FROND_NONE);
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
	for (uint32_t name = 0; name < tree->domains->fresh; name++)
		tree->parent[name] = tree->other[name] = tree->core_of[name] = FROND_NONE;
	for (uint32_t slot = 0; slot < tree->cap; slot++) {
		const struct standing *standing = tree_standing(tree, slot);
		uint32_t leaf = standing_name(standing, LEVEL_LEAF), spine = standing_name(standing, LEVEL_SPINE);
		bool labelled = nodes[slot].present && leaf != FROND_NONE && spine != FROND_NONE;
		if (labelled && tree_file_node(tree, tree->nodes[slot].name) == FROND_NONE)
			note_parent(tree, leaf, spine);
	}
	for (uint32_t slot = 0; slot < tree->cap; slot++) {
		tree->place_leaf[slot] = tree->place_spine[slot] = FROND_NONE;
		if (!nodes[slot].present)
			continue;
		uint32_t in_file = tree_file_node(tree, tree->nodes[slot].name);
		if (in_file == FROND_NONE) {
			place_by_labels(tree, slot);
			continue;
		}
		uint32_t leaf = tree->file_node[in_file].leaf;
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
		fabric->spine_core[fabric->spine_count] = tree->core_of[spine];
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
					      : tree_file_spine(tree, file_spine) <= tree_file_spine(tree, spine);
			if (!before)
				return;
		}
		open_leaf(tree, fabric, tree->file_leaf_name[*next], file_spine, position);
	}
}

/* Numbers the leaves in use and counts their nodes; nodes over a limit stay outside the tree. */
static uint32_t draft_leaves(struct tree *tree, const struct node *nodes)
{
	uint32_t leaves = 0, own = 0; /* own: not of the file, whose leaves all have their place */
	uint64_t most = FABRIC_LEAVES(tree->cap) - tree->file_leaves;
	uint64_t spines = FABRIC_SPINES(tree->cap) - tree->file_spines; /* likewise */
	for (uint32_t slot = 0; slot < tree->cap; slot++)
		if (nodes[slot].present && tree->place_leaf[slot] != FROND_NONE) {
			tree->other[tree->place_leaf[slot]] = FROND_NONE;
			tree->core_of[tree->place_spine[slot]] = FROND_NONE; /* not met yet */
		}
	for (uint32_t slot = 0; slot < tree->cap; slot++) {
		uint32_t leaf = tree->place_leaf[slot];
		if (!nodes[slot].present || leaf == FROND_NONE)
			continue;
		uint32_t *number = &tree->other[leaf];
		bool listed = tree->file_leaf[leaf] != FROND_NONE;
		uint32_t *met = &tree->core_of[tree->place_spine[slot]];
		bool new_spine = *met == FROND_NONE && tree_file_spine(tree, tree->place_spine[slot]) == FROND_NONE;
		if (*number == FROND_NONE && (listed || own < most) && (!new_spine || spines > 0)) {
			*number = leaves++;
			own += !listed;
			spines -= new_spine;
			*met = 0;
			tree->draft_leaf[*number] = leaf;
			tree->draft_count[*number] = 0;
			tree->draft_order[*number] = *number;
		}
		if (*number != FROND_NONE && tree->draft_count[*number] < FROND_LEAF_NODES) {
			tree->parent[leaf] = tree->place_spine[slot];
			tree->draft_count[*number]++;
			continue;
		}
		report(tree, *number == FROND_NONE ? PROBLEM_TOO_MANY : PROBLEM_LEAF_FULL, leaf, tree->nodes[slot].name,
		       FROND_NONE);
		tree->place_leaf[slot] = tree->place_spine[slot] = FROND_NONE;
	}
	return leaves;
}

/* A spine's core is what the labels of its nodes say; one that several claim, or that the file knows, has none. */
static void find_cores(struct tree *tree, const struct node *nodes)
{
	for (uint32_t slot = 0; slot < tree->cap; slot++)
		if (nodes[slot].present && tree->place_spine[slot] != FROND_NONE)
			tree->core_of[tree->place_spine[slot]] = FROND_NONE;
	for (uint32_t slot = 0; tree->with_core > 0 && slot < tree->cap; slot++) {
		uint32_t spine = tree->place_spine[slot], core = standing_name(tree_standing(tree, slot), LEVEL_CORE);
		if (!nodes[slot].present || spine == FROND_NONE || core == FROND_NONE || !tree->two_levels ||
		    tree_file_spine(tree, spine) != FROND_NONE)
			continue;
		uint32_t *known = &tree->core_of[spine];
		if (*known == FROND_NONE || compare_names(tree, core, *known) < 0)
			*known = core;
	}
	for (uint32_t slot = 0; tree->with_core > 0 && slot < tree->cap;
	     slot++) { /* the lowest stays unless another node names another */
		uint32_t spine = tree->place_spine[slot], core = standing_name(tree_standing(tree, slot), LEVEL_CORE);
		if (!nodes[slot].present || spine == FROND_NONE || core == FROND_NONE ||
		    tree->core_of[spine] == FROND_NONE || tree->core_of[spine] == core)
			continue;
		report(tree, PROBLEM_TWO_CORES, spine, tree->core_of[spine], core);
		tree->core_of[spine] = FROND_NONE;
	}
}

/* Opens the leaves in order, with those of the file that have no node, and gives each its stretch of positions:
 * draft_count becomes the leaf's first position. */
static uint32_t open_leaves(struct tree *tree, struct fabric *fabric, uint32_t leaves)
{
	uint32_t position = 0, next_file = 0;
	fabric->leaf_count = fabric->spine_count = 0;
	for (uint32_t i = 0; i < leaves; i++) {
		uint32_t number = tree->draft_order[i], leaf = tree->draft_leaf[number], spine = tree->parent[leaf];
		open_empty(tree, fabric, leaf, spine, position, &next_file);
		open_leaf(tree, fabric, leaf, spine, position);
		next_file += tree->file_leaf[leaf] == next_file;
		uint32_t nodes = tree->draft_count[number];
		for (uint32_t at = position; at < position + nodes; at++)
			fabric->leaf_of[at] = fabric->leaf_count - 1;
		tree->draft_count[number] = position;
		position += nodes;
	}
	open_empty(tree, fabric, FROND_NONE, FROND_NONE, position, &next_file);
	fabric->leaf_start[fabric->leaf_count] = position;
	fabric->spine_start[fabric->spine_count] = fabric->leaf_count;
	return position;
}

/* What the node at a position says of its NVLink domain. */
static uint32_t domain_label(const struct tree *tree, const struct fabric *fabric, uint32_t at)
{
	return standing_name(tree_standing(tree, fabric->order[at]), LEVEL_DOMAIN);
}

/* Nodes of a leaf with one label are an NVLink domain. other[label] is the position of the last one that had it. */
static void number_domains(struct tree *tree, struct fabric *fabric)
{
	fabric->domain_count = 0;
	if (tree->with_domain == 0) {
		memset(fabric->domain_of, 0xff, fabric->node_count * sizeof *fabric->domain_of);
		return;
	}
	for (uint32_t at = 0; at < fabric->node_count; at++) {
		uint32_t label = domain_label(tree, fabric, at), leaf = fabric->leaf_of[at];
		fabric->domain_of[at] = FROND_NONE;
		if (leaf == FROND_NONE || label == FROND_NONE)
			continue;
		uint32_t last = tree->other[label];
		bool known = last < at && fabric->leaf_of[last] == leaf && domain_label(tree, fabric, last) == label;
		fabric->domain_of[at] = known ? fabric->domain_of[last] : fabric->domain_count++;
		tree->other[label] = at;
	}
}

/* Phases: where each node stands; the leaves in order; nodes into their leaves; nodes of a leaf in order. */
static void rebuild(struct tree *tree, const struct node *nodes, struct fabric *fabric)
{
	place_nodes(tree, nodes);
	uint32_t leaves = draft_leaves(tree, nodes);
	find_cores(tree, nodes);
	sort_ids(tree->draft_order, leaves, leaf_before, tree);
	uint32_t loose = open_leaves(tree, fabric, leaves), next = loose;
	for (uint32_t slot = 0; slot < tree->cap; slot++) {
		fabric->position[slot] = FROND_NONE;
		if (!nodes[slot].present)
			continue;
		uint32_t leaf = tree->place_leaf[slot];
		uint32_t at = leaf == FROND_NONE ? next++ : tree->draft_count[tree->other[leaf]]++;
		fabric->order[at] = slot;
	}
	fabric->node_count = next;
	for (uint32_t at = loose; at < next; at++)
		fabric->leaf_of[at] = FROND_NONE;
	for (uint32_t leaf = 0; leaf < fabric->leaf_count; leaf++)
		sort_ids(fabric->order + fabric->leaf_start[leaf], leaf_nodes(fabric, leaf), slot_before, tree);
	sort_ids(fabric->order + loose, next - loose, slot_before, tree);
	for (uint32_t at = 0; at < next; at++)
		fabric->position[fabric->order[at]] = at;
	number_domains(tree, fabric);
}

bool tree_build(struct tree *tree, const struct node *nodes, struct fabric *fabric)
{
	if (!tree->dirty && !fabric->stale)
		return false;
	if (tree->dirty)
		rebuild(tree, nodes, fabric);
	fabric_settle(fabric, nodes);
	tree->dirty = false;
	return true;
}

static bool positions_of(const struct tree *tree, const struct fabric *fabric, uint32_t name, uint32_t *first,
			 uint32_t *end, uint32_t *domain)
{
	for (uint32_t leaf = 0; leaf < fabric->leaf_count; leaf++)
		if (tree->leaf_name[leaf] == name) {
			*first = fabric->leaf_start[leaf];
			*end = fabric->leaf_start[leaf + 1];
			return true;
		}
	bool found = false;
	for (uint32_t spine = 0; spine < fabric->spine_count; spine++)
		if (tree->spine_name[spine] == name || fabric->spine_core[spine] == name) {
			*first = found ? *first : fabric->leaf_start[fabric->spine_start[spine]];
			*end = fabric->leaf_start[fabric->spine_start[spine + 1]];
			found = true;
		}
	for (uint32_t at = 0; at < fabric->node_count && !found; at++) {
		if (fabric->domain_of[at] == FROND_NONE || domain_label(tree, fabric, at) != name)
			continue;
		*domain = fabric->domain_of[at];
		*first = at;
		*end = fabric->leaf_start[fabric->leaf_of[at] + 1];
		found = true;
	}
	return found;
}

bool tree_find(const struct tree *tree, const struct fabric *fabric, const char *name, uint32_t *first, uint32_t *end,
	       uint32_t *domain)
{
	uint32_t id = names_find(tree->domains, name, (uint32_t)strlen(name));
	*domain = FROND_NONE;
	return id != FROND_NONE && positions_of(tree, fabric, id, first, end, domain);
}

static uint64_t hash_bytes(const char *text, uint32_t len)
{
	uint64_t mixed = 0xcbf29ce484222325ull; /* FNV-1a */
	for (uint32_t i = 0; i < len; i++)
		mixed = (mixed ^ (uint8_t)text[i]) * 0x100000001b3ull;
	return len == 0 ? 0 : (mixed >> (64 - TREE_HASH_BITS)) | 1;
}

uint64_t tree_hash(const char *name)
{
	return hash_bytes(name, (uint32_t)strlen(name));
}

static bool hashes_to(const struct tree *tree, uint32_t name, uint64_t hash)
{
	uint32_t len;
	if (name == FROND_NONE)
		return false;
	const char *text = names_text(tree->domains, name, &len);
	return hash_bytes(text, len) == hash;
}

bool tree_find_hash(const struct tree *tree, const struct fabric *fabric, uint64_t hash, uint32_t *first, uint32_t *end,
		    uint32_t *domain)
{
	*domain = FROND_NONE;
	*first = *end = 0;
	for (uint32_t leaf = 0; hash != 0 && leaf < fabric->leaf_count; leaf++)
		if (hashes_to(tree, tree->leaf_name[leaf], hash))
			return positions_of(tree, fabric, tree->leaf_name[leaf], first, end, domain);
	for (uint32_t spine = 0; hash != 0 && spine < fabric->spine_count; spine++) {
		uint32_t names[] = {tree->spine_name[spine], fabric->spine_core[spine]};
		for (uint32_t i = 0; i < 2; i++)
			if (hashes_to(tree, names[i], hash))
				return positions_of(tree, fabric, names[i], first, end, domain);
	}
	for (uint32_t at = 0; hash != 0 && at < fabric->node_count; at++)
		if (fabric->domain_of[at] != FROND_NONE && hashes_to(tree, domain_label(tree, fabric, at), hash))
			return positions_of(tree, fabric, domain_label(tree, fabric, at), first, end, domain);
	return false;
}

/* ---- in words --------------------------------------------------------------------------------------------------------- */

static struct shown show(const struct names *names, uint32_t name)
{
	uint32_t len;
	if (name == FROND_NONE)
		return shown("", 0);
	const char *text = names_text(names, name, &len);
	return shown(text, len);
}

void tree_problems(const struct tree *tree, struct out *out)
{
	for (uint32_t i = 0; i < tree->problem_count && i < TREE_PROBLEMS_MAX; i++) {
		const struct tree_problem *problem = &tree->problems[i];
		bool node = problem->kind == PROBLEM_NO_SPINE || problem->kind == PROBLEM_NO_LEAF ||
			    problem->kind == PROBLEM_LEAF_FULL || problem->kind == PROBLEM_TOO_MANY ||
			    problem->kind == PROBLEM_NO_NAMES;
		struct shown domain = show(tree->domains, problem->domain),
			     other = show(node ? tree->names : tree->domains, problem->other);
		switch (problem->kind) {
		case PROBLEM_TWO_PARENTS:
			out_printf(out, "leaf %s has two parents, %s and %s", domain.text, other.text,
				   show(tree->domains, problem->third).text);
			break;
		case PROBLEM_TWO_CORES:
			out_printf(out, "spine %s has two parents, %s and %s; it is scheduled without a core",
				   domain.text, other.text, show(tree->domains, problem->third).text);
			break;
		case PROBLEM_LEAF_FULL:
			out_printf(out, "leaf %s has more than %u nodes", domain.text, FROND_LEAF_NODES);
			break;
		case PROBLEM_TOO_MANY:
			out_printf(out,
				   "there are more than %" PRIu64 " leaves or %" PRIu64 " spines, among them leaf %s",
				   (uint64_t)FABRIC_LEAVES(tree->cap), (uint64_t)FABRIC_SPINES(tree->cap), domain.text);
			break;
		case PROBLEM_NO_NAMES:
			out_printf(out,
				   "there is no room for the names of all leaves, spines and NVLink domains, among "
				   "them those "
				   "of node %s",
				   other.text);
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
				   other.text, show(tree->domains, problem->third).text);
			break;
		}
		if (problem->kind == PROBLEM_TWO_CORES)
			out_printf(out, "\n");
		else
			out_printf(out, "; %" PRIu32 " node%s scheduled without topology\n", problem->nodes,
				   problem->nodes == 1 ? " is" : "s are");
	}
	if (tree->problem_count > TREE_PROBLEMS_MAX)
		out_printf(out, "%" PRIu32 " further problems of the fabric\n",
			   tree->problem_count - TREE_PROBLEMS_MAX);
}
