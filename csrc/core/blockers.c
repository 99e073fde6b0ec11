/* SPDX-License-Identifier: Apache-2.0 */
#include "core/blockers.h"

#include "core/place_work.h"

struct blockers place_blockers(const struct place_work *work, uint32_t first, uint32_t last)
{
	struct blockers blockers = {{0}, {0}};
	for (uint32_t position = first; position <= last && position < work->fabric->node_count; position++) {
		const struct node *node = &work->nodes[work->fabric->order[position]];
		if (work->now[position] >= work->cap[position] || work->pin[position] > 0)
			continue;
		enum blocker why = BLOCKED_FILTERED;
		if (node->flags & FROND_NODE_DOWN)
			why = BLOCKED_DOWN;
		else if (node->flags & FROND_NODE_CORDONED)
			why = BLOCKED_CORDONED;
		else if (node->held != 0 || node->by_count != 0)
			why = BLOCKED_IN_USE;
		else if (node->unhealthy != 0)
			why = BLOCKED_UNHEALTHY;
		if (blockers.count[why]++ == 0)
			blockers.first[why] = position;
	}
	return blockers;
}
