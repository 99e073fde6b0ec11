/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sort.h - heap sort: no memory, the same result everywhere. Owns nothing.
 */
#ifndef FROND_CORE_SORT_H
#define FROND_CORE_SORT_H

#include "core/base.h"

void sort_u64(uint64_t *keys, uint32_t count);

/* Does a come before b? A total order: no two ids are equal. */
typedef bool sort_before(const void *context, uint32_t a, uint32_t b);

/* Ids by what they stand for. Mostly they are in order already, which one look finds out. */
void sort_ids(uint32_t *ids, uint32_t count, sort_before *before, const void *context);

#endif
