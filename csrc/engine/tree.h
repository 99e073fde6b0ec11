/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.h - labels and fabric file → the ordered tree. Owns what each node says about itself, and what is wrong with it.
 * A node that the fabric file lists stands where the file says; any other where its labels say. Labels that do not form
 * a tree (a leaf with two parents, a loop, a leaf without a spine) are named; those nodes stay schedulable, without a leaf.
 * Order: the file's, then natural order of names; nodes of one NVLink domain stand together.
 */
#ifndef FROND_ENGINE_TREE_H
#define FROND_ENGINE_TREE_H

#include "core/fabric.h"
#include "core/node.h"
#include "core/out.h"
#include "text/fabricfile.h"
#include "engine/standing.h"

#define TREE_PROBLEMS_MAX 16u /* sentences; further ones are counted */

struct tree_node {         /* by slot */
	uint32_t name;     /* id; FROND_NONE: there is no node */
	uint32_t standing; /* what its labels say */
};

struct file_node { /* what the fabric file says of a node */
	uint32_t leaf : 15;
	uint32_t model : 8; /* index in the file; FILE_NO_MODEL: none named */
	uint32_t speed : 9; /* of its uplink, in tree.file_gbps */
};
#define FILE_NO_MODEL UINT8_MAX
#define FILE_SPEEDS   512u /* different ones */
_Static_assert(FABRIC_LEAVES(FROND_NODES_MAX) <= 1u << 15, "leaf of a file's node");

enum tree_problem_kind {
	PROBLEM_TWO_PARENTS,
	PROBLEM_TWO_CORES,
	PROBLEM_LOOP,
	PROBLEM_NO_SPINE,
	PROBLEM_NO_LEAF,
	PROBLEM_OFF_FILE,
	PROBLEM_LEAF_FULL,
	PROBLEM_TOO_MANY,
	PROBLEM_NO_NAMES
};

struct tree_problem {
	enum tree_problem_kind kind;
	uint32_t domain, other, third; /* names */
	uint32_t nodes;                /* that it puts outside the tree */
};

struct tree {
	struct names *names;   /* of nodes; those of the file come first, so that such an id is an index in the file */
	struct names *domains; /* of everything above; the file's spines come first, likewise */
	struct standings standings;
	uint32_t cap;
	bool two_levels; /* spine labels are expected */
	bool dirty;
	uint32_t with_domain, with_core; /* nodes that say so */
	struct tree_node *nodes;         /* by slot */

	uint32_t *slot_of;   /* by node name */
	uint32_t *file_leaf; /* by domain name: leaf of the file */

	/* the fabric file */
	struct file_node *file_node;
	uint32_t *file_gbps;                          /* by speed; 0: unlimited */
	uint32_t *file_leaf_spine, *file_leaf_uplink; /* by file leaf: name of its spine */
	uint32_t file_nodes, file_leaves, file_spines;
	uint32_t *file_leaf_name;

	/* the built tree */
	uint32_t *leaf_name, *spine_name; /* by leaf, by spine of the fabric */

	/* while building only, in memory that others use at other times */
	uint32_t *parent;  /* leaf name → spine name, as labels or the file say; FROND_NONE: not seen */
	uint32_t *other;   /* leaf name → a second spine name; then → its number while it is put in order */
	uint32_t *core_of; /* spine name → core name, as labels say; FROND_NONE: none, or two of them */
	uint32_t *place_leaf, *place_spine; /* by slot: names; FROND_NONE: outside the tree */
	uint32_t *draft_leaf, *draft_count; /* leaves while they are put in order: name, nodes */
	uint32_t *draft_order;

	struct tree_problem problems[TREE_PROBLEMS_MAX];
	uint32_t problem_count; /* may exceed the array */
};

/* Nodes, and nodes of the file that are not there; leaves, spines, cores and NVLink domains. */
#define TREE_NAMES(nodes)   ((uint32_t)((nodes) + (nodes) / 8ull + 16ull))
#define TREE_DOMAINS(nodes) ((uint32_t)(FABRIC_LEAVES(nodes) + FABRIC_SPINES(nodes) + STANDING_DOMAINS(nodes)))

/* Bytes that building a tree wants beside it, aligned to 4. */
uint64_t tree_scratch(uint32_t nodes);

/* names and domains have room for TREE_NAMES and TREE_DOMAINS. scratch: of tree_scratch() bytes, whoever else uses it. */
void tree_layout(struct tree *tree, struct arena *arena, struct names *names, struct names *domains, uint32_t nodes,
		 void *scratch);

/* Takes the file's tree over; FROND_LIMIT when it has more nodes or leaves than the engine, or more
 * than FILE_SPEEDS speeds of nodes. */
int32_t tree_load(struct tree *tree, const struct fabricfile *file);

/* Index of a node's name, or of a spine's, in the file; FROND_NONE: not listed. */
static inline uint32_t tree_file_node(const struct tree *tree, uint32_t name)
{
	return name < tree->file_nodes ? name : FROND_NONE;
}
static inline uint32_t tree_file_spine(const struct tree *tree, uint32_t name)
{
	return name < tree->file_spines ? name : FROND_NONE;
}

static inline const struct standing *tree_standing(const struct tree *tree, uint32_t slot)
{
	return standing_of(&tree->standings, tree->nodes[slot].standing);
}

/* Enters or changes a node. Name and standing are held by the caller until now; the tree holds them from here on.
 * Returns the uplink to use: the host's, else (0) the file's. */
uint32_t tree_put(struct tree *tree, uint32_t slot, const struct tree_node *node, uint32_t uplink_gbps);
void tree_remove(struct tree *tree, uint32_t slot);

/* Rebuilds the fabric when something has changed. True: it did. */
bool tree_build(struct tree *tree, const struct node *nodes, struct fabric *fabric);

/* Positions of the domain that is called so: a leaf, a spine, a core or an NVLink domain, then *domain says which nodes of
 * them are meant. False: there is none. */
bool tree_find(const struct tree *tree, const struct fabric *fabric, const char *name, uint32_t *first, uint32_t *end,
	       uint32_t *domain);

/* The same by what the name hashes to; 0 is the hash of "", and no domain's. */
#define TREE_HASH_BITS 27u
uint64_t tree_hash(const char *name);
bool tree_find_hash(const struct tree *tree, const struct fabric *fabric, uint64_t hash, uint32_t *first, uint32_t *end,
		    uint32_t *domain);

void tree_problems(const struct tree *tree, struct out *out);

#endif
