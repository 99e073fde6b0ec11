/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_row.h - rows of node counts, one for each number of members or segments, and how two parts of the fabric become one:
 * the fewest nodes that both need together, or the most that both can use. Private to place*.c.
 *
 * Cells are 16 bits wide, and their number is a multiple of LANES, so that compilers use vectors. Every row has room for so
 * many cells more.
 */
#ifndef FROND_CORE_PLACE_ROW_H
#define FROND_CORE_PLACE_ROW_H

#include "core/base.h"

#define LANES    8u
#define NO_NODES 0x7000u /* fewest: they do not fit */
#define NO_REACH (-(int32_t)FROND_MEMBERS_MAX - 1)
_Static_assert(NO_NODES > FROND_MEMBERS_MAX && NO_NODES * 2 <= UINT16_MAX, "a sum shows that one is none");
_Static_assert(NO_REACH >= INT16_MIN && FROND_MEMBERS_MAX <= INT16_MAX, "so does one with a number of nodes");

static inline uint32_t row_cells(uint32_t count)
{
	return (count + LANES - 1) / LANES * LANES;
}

/* least[w] is no more than from[w] + more, for `count` cells and up to LANES - 1 behind them. */
static inline void row_least(uint16_t *restrict least, const uint16_t *restrict from, uint32_t count, uint16_t more)
{
	uint32_t cells = row_cells(count);
	for (uint32_t w = 0; w < cells; w++) {
		uint16_t nodes = (uint16_t)(from[w] + more);
		least[w] = nodes < least[w] ? nodes : least[w];
	}
}

/* best[w] is no less than from[w] + more, likewise. */
static inline void row_most(int16_t *restrict best, const int16_t *restrict from, uint32_t count, int16_t more)
{
	uint32_t cells = row_cells(count);
	for (uint32_t w = 0; w < cells; w++) {
		int16_t nodes = (int16_t)(from[w] + more);
		best[w] = nodes > best[w] ? nodes : best[w];
	}
}

/* One part more, of which `first` … `own` are taken on own_nodes[] nodes: from[] becomes least[], up to cell `most`. Cells of
 * from[] before `start` are none; neither row falls from there on. So of numbers that need as many nodes as the next only the
 * last is worth a look, unless the others are at their start. */
static inline void row_add(uint16_t *restrict least, const uint16_t *restrict from, uint32_t start, uint32_t most,
			   const uint16_t *own_nodes, uint32_t first, uint32_t own)
{
	for (uint32_t w = first; w <= own && start + w <= most; w++) {
		uint16_t alone = (uint16_t)(from[start] + own_nodes[w]);
		least[start + w] = alone < least[start + w] ? alone : least[start + w];
		if (own_nodes[w] < NO_NODES && (w == own || own_nodes[w + 1] != own_nodes[w] || start + w == most))
			row_least(least + start + w, from + start, most - start - w + 1, own_nodes[w]);
	}
}

#endif
