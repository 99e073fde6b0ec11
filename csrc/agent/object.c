/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/object.h"

#include <stdio.h>

void object_path(const char *node, bool status, char out[OBJECT_PATH_ROOM])
{
	snprintf(out, OBJECT_PATH_ROOM, "/apis/gpu.scheduling/v1/gpunodestatuses/%s%s", node, status ? "/status" : "");
}

char *object_body(const char *node, const struct status *status)
{
	char *text = NULL;
	cJSON *object = cJSON_CreateObject(), *metadata = NULL, *part = NULL;
	if (object == NULL || cJSON_AddStringToObject(object, "apiVersion", "gpu.scheduling/v1") == NULL ||
	    cJSON_AddStringToObject(object, "kind", "GpuNodeStatus") == NULL ||
	    (metadata = cJSON_AddObjectToObject(object, "metadata")) == NULL ||
	    cJSON_AddStringToObject(metadata, "name", node) == NULL)
		goto out;
	if (status == NULL) {
		part = cJSON_AddObjectToObject(object, "spec");
		if (part == NULL || cJSON_AddStringToObject(part, "nodeName", node) == NULL)
			goto out;
	} else {
		part = status_json(status);
		if (part == NULL || !cJSON_AddItemToObject(object, "status", part)) {
			cJSON_Delete(part);
			goto out;
		}
	}
	text = cJSON_PrintUnformatted(object);
out:
	cJSON_Delete(object);
	return text;
}
