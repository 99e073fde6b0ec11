/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/lease.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#define NAMESPACE "frond-system"
#define PREFIX    "gns-"
/* Tells our Leases from the scheduler's in the same namespace: neither watches the other's. */
#define LABEL "gpu.scheduling/heartbeat"

void lease_path(const char *node, char out[OBJECT_PATH_ROOM])
{
	snprintf(out, OBJECT_PATH_ROOM, "/apis/coordination.k8s.io/v1/namespaces/" NAMESPACE "/leases/" PREFIX "%s",
		 node);
}

static bool metadata_put(cJSON *object, const char *node, const char *uid)
{
	char name[OBJECT_PATH_ROOM];
	snprintf(name, sizeof(name), PREFIX "%s", node);
	cJSON *metadata = cJSON_AddObjectToObject(object, "metadata"), *labels = NULL;
	return metadata != NULL && cJSON_AddStringToObject(metadata, "name", name) != NULL &&
	       (labels = cJSON_AddObjectToObject(metadata, "labels")) != NULL &&
	       cJSON_AddStringToObject(labels, LABEL, "true") != NULL &&
	       (uid[0] == '\0' || object_owner_put(metadata, node, uid));
}

static bool spec_put(cJSON *object, const char *node, int64_t now_us)
{
	time_t now_s = (time_t)(now_us / 1000000);
	struct tm at;
	char date[sizeof("2026-01-31T23:59:59")], text[48];
	if (gmtime_r(&now_s, &at) == NULL || strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &at) == 0)
		return false;
	snprintf(text, sizeof(text), "%s.%06" PRId64 "Z", date, now_us % 1000000);
	cJSON *spec = cJSON_AddObjectToObject(object, "spec");
	return spec != NULL && cJSON_AddStringToObject(spec, "holderIdentity", node) != NULL &&
	       cJSON_AddNumberToObject(spec, "leaseDurationSeconds", LEASE_DURATION_S) != NULL &&
	       cJSON_AddStringToObject(spec, "renewTime", text) != NULL;
}

char *lease_body(const char *node, const char *uid, int64_t now_us)
{
	char *text = NULL;
	cJSON *object = cJSON_CreateObject();
	if (object != NULL && cJSON_AddStringToObject(object, "apiVersion", "coordination.k8s.io/v1") != NULL &&
	    cJSON_AddStringToObject(object, "kind", "Lease") != NULL && metadata_put(object, node, uid) &&
	    spec_put(object, node, now_us))
		text = cJSON_PrintUnformatted(object);
	cJSON_Delete(object);
	return text;
}
