/* SPDX-License-Identifier: Apache-2.0 */
/*
 * greedy.h - how others place a gang of whole nodes, for comparison. Each takes `need` unused nodes; ties go to the
 * first in fabric order. The caller has made sure that there are enough.
 *
 *   first-fit, names     nodes in order of their names: a scheduler that knows no fabric and scores all alike
 *   first-fit, fabric    nodes in fabric order
 *   best-fit, leaves     while nodes are missing: the leaf with the least room that holds the rest, else the leaf with
 *                        the most room, whole
 *   best-fit, tree       the same among spines, then inside each spine among its leaves: lowest level that fits,
 *                        fullest domain first, as Slurm's tree and Kueue's topology-aware scheduling do
 */
#ifndef FROND_DATA_GREEDY_H
#define FROND_DATA_GREEDY_H

#include "topo.h"

typedef void greedy_placer(const struct topo *topo, uint32_t need, uint32_t *nodes);

greedy_placer greedy_first_by_name, greedy_first_by_fabric, greedy_best_leaf, greedy_best_tree;

#endif
