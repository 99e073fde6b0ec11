/* SPDX-License-Identifier: Apache-2.0 */
/*
 * object.h - the bodies and the address of our node's GpuNodeStatus. Owns nothing; texts are the caller's to free().
 */
#ifndef FROND_AGENT_OBJECT_H
#define FROND_AGENT_OBJECT_H

#include "probe/status.h"

#define OBJECT_PATH_ROOM 320u

void object_path(const char *node, bool status, char out[OBJECT_PATH_ROOM]);

/* Without a status: the object itself, which must be there before its status can be. NULL: out of memory. */
char *object_body(const char *node, const struct status *status);

#endif
