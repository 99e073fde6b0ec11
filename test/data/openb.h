/* SPDX-License-Identifier: Apache-2.0 */
/*
 * openb.h - the pods of Alibaba's 2023 GPU trace that ask for whole GPUs, replayed on its nodes: how much of the GPUs
 * Frond, best-fit and FGD can give away. Prints Markdown tables, counts what held.
 */
#ifndef FROND_DATA_OPENB_H
#define FROND_DATA_OPENB_H

#include "tally.h"

void openb_report(const char *dir, struct tally *tally);

#endif
