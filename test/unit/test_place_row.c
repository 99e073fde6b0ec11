/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of node counts against a loop over every pair of cells. */
#include "core/place_row.h"
#include "dice.h"

#include <unity.h>

enum { CELLS_MOST = 64 };

void setUp(void)
{
}

void tearDown(void)
{
}

/* A row that does not fall from cell `start` on, and is none before it and from some cell on. */
static void roll(uint16_t *row, uint32_t cells, uint32_t start)
{
	uint32_t end = start + below(cells - start + 1), nodes = below(3);
	for (uint32_t i = 0; i < cells; i++) {
		nodes += i > start && below(2) == 0 ? below(4) : 0;
		row[i] = (uint16_t)(i < start || i >= end ? NO_NODES : nodes);
	}
}

static void one_part_more(void)
{
	uint16_t from[CELLS_MOST + LANES], own_nodes[CELLS_MOST + LANES], least[CELLS_MOST + LANES];
	uint32_t most = below(CELLS_MOST), start = below(most + 1), own = below(CELLS_MOST), first = below(own + 1);
	roll(from, CELLS_MOST + LANES, start);
	roll(own_nodes, CELLS_MOST + LANES, 0);
	for (uint32_t i = 0; i < CELLS_MOST + LANES; i++)
		least[i] = NO_NODES;
	row_add(least, from, start, most, own_nodes, first, own);
	for (uint32_t all = 0; all <= most; all++) {
		uint32_t fewest = NO_NODES;
		for (uint32_t w = first; w <= own && w <= all; w++)
			fewest = min_u32(fewest, (uint32_t)from[all - w] + own_nodes[w]);
		TEST_ASSERT_EQUAL_UINT32(fewest, least[all]);
	}
}

static void test_two_parts_need_the_fewest_nodes_of_all_ways_to_share(void)
{
	for (uint32_t seed = 0; seed < 20000; seed++) {
		dice = seed;
		one_part_more();
	}
}

static void test_a_row_is_bounded_cell_by_cell(void)
{
	for (uint32_t count = 0; count <= CELLS_MOST; count++) {
		uint16_t from[CELLS_MOST + LANES], least[CELLS_MOST + LANES];
		int16_t reach[CELLS_MOST + LANES], best[CELLS_MOST + LANES];
		for (uint32_t i = 0; i < CELLS_MOST + LANES; i++) {
			from[i] = (uint16_t)(below(4) == 0 ? NO_NODES : below(100));
			least[i] = (uint16_t)(below(4) == 0 ? NO_NODES : below(100));
			reach[i] = (int16_t)(below(4) == 0 ? NO_REACH : (int32_t)below(100));
			best[i] = (int16_t)(below(4) == 0 ? NO_REACH : (int32_t)below(100));
		}
		uint16_t less[CELLS_MOST];
		int16_t more[CELLS_MOST];
		for (uint32_t i = 0; i < count; i++) {
			less[i] = from[i] + 7 < least[i] ? (uint16_t)(from[i] + 7) : least[i];
			more[i] = reach[i] + 7 > best[i] ? (int16_t)(reach[i] + 7) : best[i];
		}
		row_least(least, from, count, 7);
		row_most(best, reach, count, 7);
		for (uint32_t i = 0; i < count; i++) {
			TEST_ASSERT_EQUAL_UINT16(less[i], least[i]);
			TEST_ASSERT_EQUAL_INT16(more[i], best[i]);
		}
	}
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_two_parts_need_the_fewest_nodes_of_all_ways_to_share);
	RUN_TEST(test_a_row_is_bounded_cell_by_cell);
	return UNITY_END();
}
