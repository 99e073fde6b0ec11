/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.h - reference 7: where and when a gang that waits will find room, by the expected ends of those in its way. State and
 * ends in, places and a start out; what it tries it takes back. Never keeps anything: the host holds what is free of a
 * window (holds), asks again when ends change, and says which window it has, which stays unless another starts earlier.
 *
 * A pod whose end is not known stays for ever, unless it is of lower priority: then the gang could evict it, and its GPUs
 * count as free now. The start is the first of the ends by which the gang fits as plan() would place it; with a rule the
 * window lies in the first domain in fabric order that then holds the gang.
 */
#ifndef FROND_CORE_WINDOW_H
#define FROND_CORE_WINDOW_H

#include "core/core.h"

struct window_question {
	const struct ask *ask;
	int32_t priority;
	const struct frond_end *ends; /* ascending; well-formed but for pods that it names twice */
	uint32_t end_count;
	const struct frond_place *kept; /* by member: the window that the gang has; NULL: none */
};

struct leaver {         /* a pod whose end is known */
	uint32_t entry; /* of the ledger */
	uint32_t end;   /* of the question */
};

struct window_work {
	struct leaver *leavers; /* room for every pod */
};

void window_layout(struct window_work *work, struct arena *arena, uint32_t pods);

/* places: by member. FROND_BAD: a pod has two ends, *bad says the second one; nothing else is refused. */
int32_t window(struct window_work *work, struct core *core, const struct window_question *question,
	       struct frond_window *out, struct frond_place *places, uint32_t *bad);

#endif
