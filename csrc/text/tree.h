/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.h - labels and fabric file → the ordered tree. Owns what each node says about itself, and what is wrong with it.
 * A node that the fabric file lists stands where the file says; any other where its labels say. Labels that do not form
 * a tree (a leaf with two parents, a loop, a leaf without a spine) are named; those nodes stay schedulable, without a leaf.
 * Order: the file's, then natural order of names; nodes of one NVLink domain stand together.
 */
#ifndef FROND_TEXT_TREE_H
#define FROND_TEXT_TREE_H

#include "core/fabric.h"
#include "core/node.h"
#include "core/out.h"
#include "text/fabricfile.h"
#include "text/names.h"

#define TREE_PROBLEMS_MAX 16u /* sentences; further ones are counted */

struct tree_node { /* by slot; names are ids; FROND_NONE: it does not say */
	uint32_t name, domain, leaf, spine, core;
	uint32_t uplink_gbps; /* said by the host; 0: ask the file */
};

enum tree_problem_kind {
	PROBLEM_TWO_PARENTS,
	PROBLEM_TWO_CORES,
	PROBLEM_LOOP,
	PROBLEM_NO_SPINE,
	PROBLEM_NO_LEAF,
	PROBLEM_OFF_FILE,
	PROBLEM_LEAF_FULL,
	PROBLEM_TOO_MANY
};

struct tree_problem {
	enum tree_problem_kind kind;
	uint32_t domain, other, third; /* names */
	uint32_t nodes;                /* that it puts outside the tree */
};

struct tree {
	struct names *names;
	uint32_t cap;
	bool two_levels; /* spine labels are expected */
	bool dirty;
	uint32_t with_domain, with_core; /* nodes that say so */
	struct tree_node *nodes;         /* by slot */

	/* by name id */
	uint32_t *slot_of;   /* node name → slot */
	uint32_t *file_node; /* node name → index in the file */
	uint32_t *file_leaf; /* leaf name → index in the file */
	uint32_t *file_spine;
	uint32_t *parent; /* leaf name → spine name, as labels or the file say; FROND_NONE: not seen */
	uint32_t *other;  /* leaf name → a second spine name; then → its number while it is put in order */

	uint32_t *core_of; /* spine name → core name, as labels say; FROND_NONE: none, or two of them */

	/* the fabric file */
	uint32_t *file_node_leaf, *file_node_uplink;  /* by file node */
	uint32_t *file_node_model;                    /* index in the file; FROND_NONE: none named */
	uint32_t *file_leaf_spine, *file_leaf_uplink; /* by file leaf: name of its spine */
	uint32_t file_nodes, file_leaves, file_spines;
	uint32_t *file_leaf_name;

	/* the built tree */
	uint32_t *leaf_name, *spine_name;   /* by leaf, by spine of the fabric */
	uint32_t *place_leaf, *place_spine; /* by slot, while building: names; FROND_NONE: outside the tree */
	uint32_t *draft_leaf, *draft_count; /* leaves while they are put in order: name, nodes */
	uint32_t *draft_order;
	struct tree_problem problems[TREE_PROBLEMS_MAX];
	uint32_t problem_count; /* may exceed the array */
};

void tree_layout(struct tree *tree, struct arena *arena, struct names *names, uint32_t nodes, uint32_t name_cap);

/* Takes the file's tree over; FROND_LIMIT when it has more nodes or leaves than the engine. */
int32_t tree_load(struct tree *tree, const struct fabricfile *file);

/* Enters or changes a node. Names are FROND_NONE or held by the caller until now; the tree holds them from here on.
 * Returns the uplink to use: the host's, else the file's. */
uint32_t tree_put(struct tree *tree, uint32_t slot, const struct tree_node *node);
void tree_remove(struct tree *tree, uint32_t slot);

/* Rebuilds the fabric when something has changed. True: it did. */
bool tree_build(struct tree *tree, const struct node *nodes, struct fabric *fabric);

/* Positions of the domain that is called so: a leaf, a spine, a core or an NVLink domain, then *domain says which nodes of
 * them are meant. False: there is none. */
bool tree_find(const struct tree *tree, const struct fabric *fabric, const char *name, uint32_t *first, uint32_t *end,
	       uint32_t *domain);

/* The same by what the name hashes to; 0 is the hash of "", and no domain's. */
uint64_t tree_hash(const char *name);
bool tree_find_hash(const struct tree *tree, const struct fabric *fabric, uint64_t hash, uint32_t *first, uint32_t *end,
		    uint32_t *domain);

void tree_problems(const struct tree *tree, struct out *out);

#endif
