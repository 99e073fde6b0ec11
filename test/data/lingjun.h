/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lingjun.h - gangs of whole nodes on Lingjun's fabric, empty and filled at random: Frond against greedy placers and
 * against the exact optimum, every plan on the same state. Prints Markdown tables, counts what held.
 */
#ifndef FROND_DATA_LINGJUN_H
#define FROND_DATA_LINGJUN_H

#include "tally.h"

void lingjun_report(const char *path, struct tally *tally);

#endif
