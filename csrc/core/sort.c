/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sort.h"

static void sift_u64(uint64_t *keys, uint32_t root, uint32_t count)
{
	for (uint32_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
		if (child + 1 < count && keys[child + 1] > keys[child])
			child++;
		if (keys[root] >= keys[child])
			return;
		uint64_t key = keys[root];
		keys[root] = keys[child];
		keys[child] = key;
		root = child;
	}
}

void sort_u64(uint64_t *keys, uint32_t count)
{
	for (uint32_t i = count / 2; i > 0; i--)
		sift_u64(keys, i - 1, count);
	for (uint32_t end = count; end > 1; end--) {
		uint64_t key = keys[0];
		keys[0] = keys[end - 1];
		keys[end - 1] = key;
		sift_u64(keys, 0, end - 1);
	}
}

static void sift_ids(uint32_t *ids, uint32_t root, uint32_t count, sort_before *before, const void *context)
{
	for (uint32_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
		if (child + 1 < count && before(context, ids[child], ids[child + 1]))
			child++;
		if (!before(context, ids[root], ids[child]))
			return;
		uint32_t id = ids[root];
		ids[root] = ids[child];
		ids[child] = id;
		root = child;
	}
}

void sort_ids(uint32_t *ids, uint32_t count, sort_before *before, const void *context)
{
	uint32_t ordered = 1;
	while (ordered < count && !before(context, ids[ordered], ids[ordered - 1]))
		ordered++;
	if (ordered >= count)
		return;
	for (uint32_t i = count / 2; i > 0; i--)
		sift_ids(ids, i - 1, count, before, context);
	for (uint32_t end = count; end > 1; end--) {
		uint32_t id = ids[0];
		ids[0] = ids[end - 1];
		ids[end - 1] = id;
		sift_ids(ids, 0, end - 1, before, context);
	}
}
