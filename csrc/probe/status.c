/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NAMELESS "unknown-"

/* ---- from a report ----------------------------------------------------------------------------------------------- */

static int64_t at_most(int64_t value, int64_t max)
{
	return value < 0 ? PROBE_UNKNOWN : value < max ? value : max;
}

static void links_from(const struct probe_report *report, uint32_t index, struct status_device *out)
{
	for (uint32_t peer = 0; peer < report->gpu_count; peer++) {
		const struct probe_pair *pair = &report->pairs[index][peer];
		if (peer == index || pair->gbps <= 0)
			continue;
		out->links[out->link_count++] = (struct status_link){
			.peer = peer,
			.kind = pair->through == PROBE_REMOTE_SWITCH ? STATUS_NVSWITCH : STATUS_NVLINK,
			.gbps = (uint32_t)at_most(pair->gbps, STATUS_GBPS_MAX)};
	}
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void pods_from(const struct probe_gpu *gpu, struct status_device *out)
{
	for (int32_t i = 0; i < gpu->process_count; i++) {
		bool known = gpu->processes[i].pod[0] == '\0';
		for (uint32_t j = 0; j < out->pod_count; j++)
			known = known || strcmp(out->pods[j], gpu->processes[i].pod) == 0;
		if (!known)
			memcpy(out->pods[out->pod_count++], gpu->processes[i].pod, sizeof(gpu->processes[i].pod));
	}
	qsort(out->pods, out->pod_count, sizeof(out->pods[0]), by_text);
}

/* Cut to its room, the rest zero: devices are compared by bytes. */
static void printable(const char *text, uint32_t room, char *out)
{
	memset(out, 0, room);
	for (uint32_t i = 0; i + 1 < room && text[i] != '\0'; i++)
		out[i] = text[i] < ' ' || text[i] > '~' ? '?' : text[i];
}

void status_reason_set(struct status_device *device, const char *text)
{
	printable(text, sizeof(device->reason), device->reason);
}

bool status_nameless(const struct status_device *device)
{
	return strncmp(device->id, NAMELESS, sizeof(NAMELESS) - 1) == 0;
}

bool status_by_xid(const struct status_device *device)
{
	return strncmp(device->reason, PROBE_XID_REASON, sizeof(PROBE_XID_REASON) - 1) == 0;
}

/* CLUSTER.CLIQUE as GPU feature discovery writes it; a fabric that ends at the node has no cluster. */
static void clique_from(const struct probe_gpu *gpu, struct status_device *out)
{
	static const uint8_t alone[sizeof(gpu->cluster)] = {0};
	const uint8_t *c = gpu->cluster;
	if (!gpu->cluster_known || memcmp(c, alone, sizeof(alone)) == 0 || gpu->clique < 0)
		return;
	snprintf(out->clique, sizeof(out->clique),
		 "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x.%lld", c[0], c[1], c[2], c[3],
		 c[4], c[5], c[6], c[7], c[8], c[9], c[10], c[11], c[12], c[13], c[14], c[15], (long long)gpu->clique);
}

static void device_from(const struct probe_report *report, uint32_t index, struct status_device *out)
{
	const struct probe_gpu *gpu = &report->gpus[index];
	memset(out, 0, sizeof(*out));
	if (gpu->uuid[0] == '\0')
		snprintf(out->id, sizeof(out->id), NAMELESS "%u", gpu->index);
	else
		memcpy(out->id, gpu->uuid, sizeof(gpu->uuid));
	memcpy(out->model, gpu->model, sizeof(gpu->model));
	if (gpu->pci.known)
		snprintf(out->pci, sizeof(out->pci), "%08X:%02X:%02X.0", gpu->pci.domain, gpu->pci.bus & 0xffu,
			 gpu->pci.device & 0xffu);
	out->index = gpu->index;
	out->health = gpu->health;
	out->memory_mib = at_most(gpu->memory_mib, STATUS_MIB_MAX);
	out->memory_used_mib = at_most(gpu->memory_used_mib, STATUS_MIB_MAX);
	out->numa = gpu->numa > (int32_t)STATUS_NUMA_MAX ? PROBE_UNKNOWN : (int32_t)at_most(gpu->numa, STATUS_NUMA_MAX);
	out->island = gpu->island;
	out->gbps = (int32_t)at_most(gpu->link_gbps, STATUS_SUM_MAX);
	out->utilization = (int32_t)at_most(gpu->utilization, 100);
	status_reason_set(out, gpu->reason);
	if (gpu->rail >= 0 && (uint32_t)gpu->rail < report->nic_count)
		printable(report->nics[gpu->rail].name, sizeof(out->rail), out->rail);
	clique_from(gpu, out);
	links_from(report, index, out);
	out->mig_mode = gpu->mig == 1;
	for (int32_t i = 0; i < gpu->slice_count; i++) {
		struct status_slice *slice = &out->slices[out->slice_count++];
		memcpy(slice->id, gpu->slices[i].uuid, sizeof(gpu->slices[i].uuid));
		memcpy(slice->profile, gpu->slices[i].profile, sizeof(gpu->slices[i].profile));
	}
	pods_from(gpu, out);
}

void status_from(const struct probe_report *report, int64_t heartbeat_s, struct status *out)
{
	memset(out, 0, sizeof(*out));
	out->heartbeat_s = heartbeat_s;
	out->device_count = report->gpu_count;
	for (uint32_t i = 0; i < report->gpu_count; i++)
		device_from(report, i, &out->devices[i]);
}

/* ---- to JSON ----------------------------------------------------------------------------------------------------- */

/* Each returns false when memory is out. */
static bool put_text(cJSON *object, const char *key, const char *text)
{
	return text[0] == '\0' || cJSON_AddStringToObject(object, key, text) != NULL;
}

static bool put_number(cJSON *object, const char *key, int64_t number)
{
	return number < 0 || cJSON_AddNumberToObject(object, key, (double)number) != NULL;
}

/* A list of count objects, each filled by fill(); an empty one is left out. */
static bool put_list(cJSON *object, const char *key, uint32_t count, const void *from,
		     bool (*fill)(cJSON *item, const void *from, uint32_t i))
{
	if (count == 0)
		return true;
	cJSON *list = cJSON_AddArrayToObject(object, key);
	for (uint32_t i = 0; list != NULL && i < count; i++) {
		cJSON *item = cJSON_CreateObject();
		if (item == NULL)
			return false;
		if (!cJSON_AddItemToArray(list, item)) {
			cJSON_Delete(item);
			return false;
		}
		if (!fill(item, from, i))
			return false;
	}
	return list != NULL;
}

static bool put_true(cJSON *object, const char *key, bool value)
{
	return !value || cJSON_AddTrueToObject(object, key) != NULL;
}

static const char *const kinds[] = {"NVLink", "NVSwitch", "XGMI", "PCIe", ""};
static const char *const healths[] = {"Unknown", "Healthy", "Unhealthy"};

static bool link_fill(cJSON *item, const void *from, uint32_t i)
{
	const struct status_link *link = &((const struct status_device *)from)->links[i];
	return put_number(item, "peer", link->peer) && put_text(item, "kind", kinds[link->kind]) &&
	       put_number(item, "bandwidthGBps", link->gbps);
}

static bool slice_fill(cJSON *item, const void *from, uint32_t i)
{
	const struct status_slice *slice = &((const struct status_device *)from)->slices[i];
	return put_text(item, "id", slice->id) && put_text(item, "profile", slice->profile);
}

static bool pods_put(cJSON *object, const struct status_device *device)
{
	if (device->pod_count == 0)
		return true;
	cJSON *list = cJSON_AddArrayToObject(object, "inUseBy");
	for (uint32_t i = 0; list != NULL && i < device->pod_count; i++) {
		cJSON *item = cJSON_CreateString(device->pods[i]);
		if (item == NULL || !cJSON_AddItemToArray(list, item)) {
			cJSON_Delete(item);
			return false;
		}
	}
	return list != NULL;
}

static bool device_fill(cJSON *item, const void *from, uint32_t i)
{
	const struct status_device *device = &((const struct status *)from)->devices[i];
	return put_text(item, "id", device->id) && put_number(item, "index", device->index) &&
	       put_text(item, "model", device->model) && put_number(item, "memoryMiB", device->memory_mib) &&
	       put_text(item, "health", healths[device->health]) && put_text(item, "reason", device->reason) &&
	       put_number(item, "numaNode", device->numa) && put_text(item, "pciBusId", device->pci) &&
	       put_text(item, "rail", device->rail) && put_text(item, "clique", device->clique) &&
	       put_number(item, "island", device->island) && put_number(item, "bandwidthGBps", device->gbps) &&
	       put_list(item, "links", device->link_count, device, link_fill) &&
	       put_true(item, "migMode", device->mig_mode) &&
	       put_list(item, "mig", device->slice_count, device, slice_fill) &&
	       put_number(item, "utilization", device->utilization) &&
	       put_number(item, "memoryUsedMiB", device->memory_used_mib) && pods_put(item, device);
}

static bool heartbeat_put(cJSON *object, int64_t seconds)
{
	struct tm parts;
	time_t when = (time_t)seconds;
	char text[32];
	if (seconds < 0 || gmtime_r(&when, &parts) == NULL ||
	    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
		return true;
	return put_text(object, "heartbeat", text);
}

cJSON *status_json(const struct status *status)
{
	cJSON *object = cJSON_CreateObject();
	if (object != NULL && put_number(object, "total", status->device_count) &&
	    heartbeat_put(object, status->heartbeat_s) &&
	    put_list(object, "devices", status->device_count, status, device_fill))
		return object;
	cJSON_Delete(object);
	return NULL;
}
