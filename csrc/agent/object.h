/* SPDX-License-Identifier: Apache-2.0 */
/*
 * object.h - the bodies and the address of our node's GpuNodeStatus. Owns nothing; texts are the caller's to free().
 */
#ifndef FROND_AGENT_OBJECT_H
#define FROND_AGENT_OBJECT_H

#include "probe/status.h"

#define OBJECT_PATH_ROOM 320u
#define OBJECT_UID_ROOM  64u

void object_path(const char *node, bool status, char out[OBJECT_PATH_ROOM]);
void object_node_path(const char *node, char out[OBJECT_PATH_ROOM]);

/* The object of that metadata goes when the node with that uid does; false: out of memory. */
bool object_owner_put(cJSON *metadata, const char *node, const char *uid);

/* Without a status: the object itself, which must be there before its status can be and goes when the node with that uid
 * does. NULL: out of memory. */
char *object_body(const char *node, const char *uid, const struct status *status);

/* metadata.uid of an object; false: it has none that makes sense. */
bool object_uid(const char *json, char out[OBJECT_UID_ROOM]);

/* The status of a GpuNodeStatus: FROND_OK, or FROND_BAD with a sentence; then *out is as before. */
int32_t object_status(const char *json, struct status *out, struct complaint *complaint);

#endif
