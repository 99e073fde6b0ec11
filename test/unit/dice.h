/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dice.h - random numbers for the suites that roll them: the same seed, the same run. Included once per suite.
 */
#ifndef FROND_TEST_DICE_H
#define FROND_TEST_DICE_H

#include <stdbool.h>
#include <stdint.h>

static uint64_t dice; /* the suite seeds it and prints the seed */

static inline uint32_t below(uint32_t bound) /* splitmix64 */
{
	uint64_t z = (dice += 0x9e3779b97f4a7c15u);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (uint32_t)((z ^ (z >> 31)) % bound);
}

static inline bool percent(uint32_t chance)
{
	return below(100) < chance;
}

#endif
