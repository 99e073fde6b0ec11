/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/object.h"

#include <stdio.h>
#include <string.h>

void object_path(const char *node, bool status, char out[OBJECT_PATH_ROOM])
{
	snprintf(out, OBJECT_PATH_ROOM, "/apis/gpu.scheduling/v1/gpunodestatuses/%s%s", node, status ? "/status" : "");
}

void object_node_path(const char *node, char out[OBJECT_PATH_ROOM])
{
	snprintf(out, OBJECT_PATH_ROOM, "/api/v1/nodes/%s", node);
}

bool object_owner_put(cJSON *metadata, const char *node, const char *uid)
{
	cJSON *list = cJSON_AddArrayToObject(metadata, "ownerReferences"), *owner = cJSON_CreateObject();
	if (list == NULL || owner == NULL || !cJSON_AddItemToArray(list, owner)) {
		cJSON_Delete(owner);
		return false;
	}
	return cJSON_AddStringToObject(owner, "apiVersion", "v1") != NULL &&
	       cJSON_AddStringToObject(owner, "kind", "Node") != NULL &&
	       cJSON_AddStringToObject(owner, "name", node) != NULL &&
	       cJSON_AddStringToObject(owner, "uid", uid) != NULL;
}

char *object_body(const char *node, const char *uid, const struct status *status)
{
	char *text = NULL;
	cJSON *object = cJSON_CreateObject(), *metadata = NULL, *part = NULL;
	if (object == NULL || cJSON_AddStringToObject(object, "apiVersion", "gpu.scheduling/v1") == NULL ||
	    cJSON_AddStringToObject(object, "kind", "GpuNodeStatus") == NULL ||
	    (metadata = cJSON_AddObjectToObject(object, "metadata")) == NULL ||
	    cJSON_AddStringToObject(metadata, "name", node) == NULL)
		goto out;
	if (status == NULL) {
		if (uid[0] != '\0' && !object_owner_put(metadata, node, uid))
			goto out;
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

bool object_uid(const char *json, char out[OBJECT_UID_ROOM])
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
	cJSON *object = cJSON_Parse(json);
	const cJSON *uid =
		cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(object, "metadata"), "uid");
	const char *text = cJSON_IsString(uid) ? uid->valuestring : "";
	size_t len = strlen(text);
	bool good = len > 0 && len < OBJECT_UID_ROOM && strspn(text, allowed) == len;
	if (good)
		memcpy(out, text, len + 1);
	cJSON_Delete(object);
	return good;
}

int32_t object_status(const char *json, struct status *out, struct complaint *complaint)
{
	cJSON *object = cJSON_Parse(json);
	cJSON *status = cJSON_GetObjectItemCaseSensitive(object, "status");
	char *text = status == NULL ? NULL : cJSON_PrintUnformatted(status);
	int32_t code = FROND_BAD;
	if (text == NULL)
		complain(complaint, 0, "status: is missing");
	else
		code = status_read(text, (uint32_t)strlen(text), out, complaint);
	cJSON_free(text);
	cJSON_Delete(object);
	return code;
}
