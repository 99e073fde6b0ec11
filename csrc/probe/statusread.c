/* SPDX-License-Identifier: Apache-2.0 */
/* Part of status.h: from JSON. */
#include "probe/status.h"

#include "text/section.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))
#define PATH_ROOM    96u
#define SECOND_MAX   253402300799ll /* the last of the year 9999 */

/* ---- parts of a section ------------------------------------------------------------------------------------------ */

static int32_t whole_read(const struct section *section, const char *key, uint32_t max, int64_t *out)
{
	uint32_t number = 0;
	int32_t code = section_whole(section, key, 0, max, &number);
	*out = section_field(section, key) == NULL ? PROBE_UNKNOWN : (int64_t)number;
	return code;
}

static int32_t small_read(const struct section *section, const char *key, uint32_t max, int32_t *out)
{
	int64_t number;
	int32_t code = whole_read(section, key, max, &number);
	*out = (int32_t)number;
	return code;
}

static int32_t missing(const struct section *section, const char *key)
{
	return complain(section->complaint, 0, "%s.%s: is missing", section->path, key);
}

static int32_t need(const struct section *section, const char *key)
{
	return section_field(section, key) == NULL ? missing(section, key) : FROND_OK;
}

/* Text of 1 … max bytes that fits the rule; absent is "". */
static int32_t text_read(const struct section *section, const char *key, uint32_t max, bool (*rule)(const char *),
			 const char *what, char *out)
{
	const cJSON *item = section_field(section, key);
	out[0] = '\0';
	if (item == NULL)
		return FROND_OK;
	if (!cJSON_IsString(item) || item->valuestring[0] == '\0' || strlen(item->valuestring) > max ||
	    !rule(item->valuestring))
		return section_refuse(section, key, what, item);
	strcpy(out, item->valuestring);
	return FROND_OK;
}

static bool is_alnum(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool is_id(const char *text)
{
	size_t len = strlen(text);
	for (size_t i = 0; i < len; i++)
		if (!is_alnum(text[i]) && (strchr("-._", text[i]) == NULL || i == 0 || i + 1 == len))
			return false;
	return true;
}

static bool is_plain(const char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return false;
	return true;
}

/* DDDD:BB:DD.F, the domain with up to eight digits */
static bool is_pci(const char *text)
{
	static const char hex[] = "0123456789ABCDEFabcdef";
	size_t domain = strspn(text, hex);
	if (domain < 4 || domain > 8)
		return false;
	text += domain;
	return text[0] == ':' && strspn(text + 1, hex) == 2 && text[3] == ':' && strspn(text + 4, hex) == 2 &&
	       text[6] == '.' && text[7] >= '0' && text[7] <= '7' && text[8] == '\0';
}

/* A UID, or namespace/name. */
static bool is_pod(const char *text)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";
	size_t len = strspn(text, allowed);
	if (len > 0 && text[len] == '/') {
		size_t rest = strspn(text + len + 1, allowed);
		return rest > 0 && text[len + 1 + rest] == '\0';
	}
	return len > 0 && text[len] == '\0';
}

/* A list of at most max entries, each given to read(); absent is empty. */
static int32_t list_read(const struct section *section, const char *key, uint32_t max, void *to,
			 int32_t (*read)(const struct section *section, const cJSON *item, uint32_t i, void *to))
{
	const cJSON *list = section_field(section, key);
	if (list == NULL)
		return FROND_OK;
	if (!cJSON_IsArray(list))
		return section_refuse(section, key, "must be a list", list);
	char path[PATH_ROOM];
	uint32_t i = 0;
	int32_t code = FROND_OK;
	for (const cJSON *item = list->child; item != NULL && code == FROND_OK; item = item->next, i++) {
		if (i == max)
			return complain(section->complaint, 0, "%s.%s: has more than %u entries", section->path, key,
					max);
		snprintf(path, sizeof(path), "%s.%s[%u]", section->path, key, i);
		struct section entry = {.object = item, .path = path, .complaint = section->complaint};
		code = read(&entry, item, i, to);
	}
	return code;
}

/* ---- a device ---------------------------------------------------------------------------------------------------- */

static const struct choice health_words = {
	3, {[PROBE_HEALTH_UNKNOWN] = "Unknown", [PROBE_HEALTHY] = "Healthy", [PROBE_UNHEALTHY] = "Unhealthy"}};
static const struct choice kind_words = {
	4,
	{[STATUS_NVLINK] = "NVLink", [STATUS_NVSWITCH] = "NVSwitch", [STATUS_XGMI] = "XGMI", [STATUS_PCIE] = "PCIe"}};

static int32_t link_read(const struct section *entry, const cJSON *item, uint32_t i, void *to)
{
	static const char *const known[] = {"peer", "kind", "bandwidthGBps"};
	struct status_device *device = to;
	struct status_link *link = &device->links[i];
	uint32_t kind = STATUS_KIND_UNSAID;
	(void)item;
	int32_t code = section_check(entry, known, COUNT(known));
	if (code == FROND_OK)
		code = need(entry, "peer");
	if (code == FROND_OK)
		code = need(entry, "bandwidthGBps");
	if (code == FROND_OK)
		code = section_whole(entry, "peer", 0, PROBE_GPUS_MAX - 1, &link->peer);
	if (code == FROND_OK)
		code = section_choice(entry, "kind", &kind_words, &kind);
	if (code == FROND_OK)
		code = section_whole(entry, "bandwidthGBps", 0, STATUS_GBPS_MAX, &link->gbps);
	if (code == FROND_OK && i > 0 && link->peer <= device->links[i - 1].peer)
		return complain(entry->complaint, 0, "%s.peer: %u comes after %u; peers must ascend", entry->path,
				link->peer, device->links[i - 1].peer);
	link->kind = (enum status_kind)kind;
	device->link_count = i + 1;
	return code;
}

static int32_t slice_read(const struct section *entry, const cJSON *item, uint32_t i, void *to)
{
	static const char *const known[] = {"id", "profile"};
	struct status_device *device = to;
	struct status_slice *slice = &device->slices[i];
	(void)item;
	int32_t code = section_check(entry, known, COUNT(known));
	if (code == FROND_OK)
		code = need(entry, "id");
	if (code == FROND_OK)
		code = need(entry, "profile");
	if (code == FROND_OK)
		code = text_read(entry, "id", STATUS_ID_MAX, is_plain, "must be 1 to 128 printable characters",
				 slice->id);
	if (code == FROND_OK)
		code = text_read(entry, "profile", STATUS_PROFILE_MAX, is_plain, "must be 1 to 32 printable characters",
				 slice->profile);
	for (uint32_t j = 0; j < i && code == FROND_OK; j++)
		if (strcmp(device->slices[j].id, slice->id) == 0)
			code = complain(entry->complaint, 0, "%s.id: repeats entry %u", entry->path, j);
	device->slice_count = i + 1;
	return code;
}

static int32_t pod_read(const struct section *entry, const cJSON *item, uint32_t i, void *to)
{
	struct status_device *device = to;
	if (!cJSON_IsString(item) || strlen(item->valuestring) > STATUS_POD_MAX || !is_pod(item->valuestring))
		return complain(entry->complaint, 0, "%s: must be the UID of a pod or namespace/name", entry->path);
	strcpy(device->pods[i], item->valuestring);
	if (i > 0 && strcmp(device->pods[i - 1], device->pods[i]) >= 0)
		return complain(entry->complaint, 0, "%s: must come after the entry before it, and once", entry->path);
	device->pod_count = i + 1;
	return FROND_OK;
}

static int32_t device_numbers(const struct section *entry, struct status_device *device)
{
	int32_t code = whole_read(entry, "memoryMiB", STATUS_MIB_MAX, &device->memory_mib);
	if (code == FROND_OK)
		code = whole_read(entry, "memoryUsedMiB", STATUS_MIB_MAX, &device->memory_used_mib);
	if (code == FROND_OK)
		code = small_read(entry, "numaNode", STATUS_NUMA_MAX, &device->numa);
	if (code == FROND_OK)
		code = small_read(entry, "island", PROBE_GPUS_MAX - 1, &device->island);
	if (code == FROND_OK)
		code = small_read(entry, "bandwidthGBps", STATUS_SUM_MAX, &device->gbps);
	if (code == FROND_OK)
		code = small_read(entry, "utilization", 100, &device->utilization);
	return code;
}

static int32_t device_read(const struct section *entry, const cJSON *item, uint32_t i, void *to)
{
	static const char *const known[] = {"id",       "index",       "model",         "memoryMiB",     "health",
					    "numaNode", "pciBusId",    "island",        "bandwidthGBps", "links",
					    "mig",      "utilization", "memoryUsedMiB", "inUseBy",       "reason",
					    "rail",     "clique",      "migMode"};
	static const char *const needed[] = {"id", "index", "health"};
	struct status *status = to;
	struct status_device *device = &status->devices[i];
	uint32_t health = PROBE_HEALTH_UNKNOWN;
	(void)item;
	int32_t code = section_check(entry, known, COUNT(known));
	for (uint32_t k = 0; k < COUNT(needed) && code == FROND_OK; k++)
		code = need(entry, needed[k]);
	if (code == FROND_OK)
		code = text_read(entry, "id", STATUS_ID_MAX, is_id,
				 "must be at most 128 letters, digits, \"-\", \".\" and \"_\" with a letter or digit "
				 "at both ends",
				 device->id);
	if (code == FROND_OK)
		code = section_whole(entry, "index", 0, PROBE_GPUS_MAX - 1, &device->index);
	if (code == FROND_OK && device->index != i)
		return complain(entry->complaint, 0, "%s.index: is %u; indices must be 0 to n - 1 in order",
				entry->path, device->index);
	if (code == FROND_OK)
		code = text_read(entry, "model", STATUS_MODEL_MAX, is_plain, "must be at most 128 printable characters",
				 device->model);
	if (code == FROND_OK)
		code = text_read(entry, "pciBusId", sizeof(device->pci) - 1, is_pci, "must be like 00000000:1B:00.0",
				 device->pci);
	if (code == FROND_OK)
		code = text_read(entry, "reason", STATUS_REASON_MAX, is_plain,
				 "must be at most 128 printable characters", device->reason);
	if (code == FROND_OK)
		code = text_read(entry, "rail", STATUS_RAIL_MAX, is_plain, "must be at most 64 printable characters",
				 device->rail);
	if (code == FROND_OK)
		code = text_read(entry, "clique", STATUS_CLIQUE_MAX, is_id,
				 "must be at most 64 letters, digits, \"-\", \".\" and \"_\" with a letter or digit "
				 "at both ends",
				 device->clique);
	if (code == FROND_OK)
		code = section_choice(entry, "health", &health_words, &health);
	if (code == FROND_OK)
		code = device_numbers(entry, device);
	if (code == FROND_OK)
		code = list_read(entry, "links", PROBE_GPUS_MAX - 1, device, link_read);
	if (code == FROND_OK)
		code = section_bool(entry, "migMode", &device->mig_mode);
	if (code == FROND_OK)
		code = list_read(entry, "mig", STATUS_SLICES_MAX, device, slice_read);
	if (code == FROND_OK)
		code = list_read(entry, "inUseBy", STATUS_PODS_MAX, device, pod_read);
	for (uint32_t j = 0; j < i && code == FROND_OK; j++)
		if (strcmp(status->devices[j].id, device->id) == 0)
			code = complain(entry->complaint, 0, "%s.id: is also the id of device %u", entry->path, j);
	device->health = (enum probe_health)health;
	status->device_count = i + 1;
	return code;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

/* YYYY-MM-DDTHH:MM:SSZ, as the agent writes it: whole seconds, UTC. */
static bool time_read(const char *text, int64_t *out)
{
	static const char pattern[] = "dddd-dd-ddTdd:dd:ddZ";
	static const uint8_t days_of[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	uint32_t part[6] = {0}, at = 0, i = 0;
	for (; pattern[i] != '\0'; i++) {
		if (pattern[i] != 'd' && text[i] != pattern[i])
			return false;
		if (pattern[i] == 'd' && (text[i] < '0' || text[i] > '9'))
			return false;
		if (pattern[i] == 'd')
			part[at] = part[at] * 10 + (uint32_t)(text[i] - '0');
		else
			at++;
	}
	uint32_t year = part[0], month = part[1], day = part[2];
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	if (text[i] != '\0' || year < 1970 || month < 1 || month > 12 || day < 1 ||
	    day > days_of[month - 1] + (uint32_t)(leap && month == 2) || part[3] > 23 || part[4] > 59 || part[5] > 59)
		return false;
	int64_t before = year - 1, days = before * 365 + before / 4 - before / 100 + before / 400 - 719162;
	for (uint32_t m = 1; m < month; m++)
		days += days_of[m - 1] + (leap && m == 2);
	*out = ((days + day - 1) * 24 + part[3]) * 3600 + part[4] * 60 + part[5];
	return *out <= SECOND_MAX;
}

static int32_t heartbeat_read(const struct section *root, struct status *status)
{
	const cJSON *item = section_field(root, "heartbeat");
	status->heartbeat_s = PROBE_UNKNOWN;
	if (item == NULL || (cJSON_IsString(item) && time_read(item->valuestring, &status->heartbeat_s)))
		return FROND_OK;
	return section_refuse(root, "heartbeat", "must be a time like 2026-01-31T23:59:59Z", item);
}

static uint32_t gbps_to(const struct status_device *device, uint32_t peer)
{
	for (uint32_t i = 0; i < device->link_count; i++)
		if (device->links[i].peer == peer)
			return device->links[i].gbps;
	return 0;
}

/* A link has two ends that say the same, neither of them the device itself or one that is not there. */
static int32_t links_check(const struct status *status, struct complaint *complaint)
{
	for (uint32_t a = 0; a < status->device_count; a++) {
		for (uint32_t i = 0; i < status->devices[a].link_count; i++) {
			const struct status_link *link = &status->devices[a].links[i];
			if (link->peer == a || link->peer >= status->device_count)
				return complain(complaint, 0, "status.devices[%u].links[%u].peer: %u is %s", a, i,
						link->peer, link->peer == a ? "the device itself" : "no device");
			uint32_t back = gbps_to(&status->devices[link->peer], a);
			if (back != link->gbps)
				return complain(
					complaint, 0,
					"status.devices[%u].links[%u].bandwidthGBps: is %u, but device %u says %u", a,
					i, link->gbps, link->peer, back);
		}
	}
	return FROND_OK;
}

/* Devices have the same island exactly when links lead from one to the other; islands may be left out altogether. */
static int32_t islands_check(const struct status *status, struct complaint *complaint)
{
	uint32_t count = status->device_count, lowest[PROBE_GPUS_MAX];
	for (uint32_t i = 0; i < count; i++)
		lowest[i] = i;
	for (uint32_t round = 0; round < count; round++)
		for (uint32_t a = 0; a < count; a++)
			for (uint32_t b = 0; b < count; b++)
				if (gbps_to(&status->devices[a], b) > 0 && lowest[b] < lowest[a])
					lowest[a] = lowest[b];
	for (uint32_t a = 0; a < count; a++) {
		for (uint32_t b = 0; b < a; b++) {
			int32_t left = status->devices[a].island, right = status->devices[b].island;
			if (left >= 0 && right >= 0 && (left == right) != (lowest[a] == lowest[b]))
				return complain(
					complaint, 0,
					"status.devices[%u].island: is %d as device %u has %d, but links %s the two", a,
					(int)left, b, (int)right, lowest[a] == lowest[b] ? "join" : "do not join");
		}
	}
	return FROND_OK;
}

static int32_t root_read(const struct section *root, struct status *status)
{
	static const char *const known[] = {"total", "heartbeat", "devices", "conditions"}; /* the last: not ours */
	uint32_t total = 0;
	int32_t code = section_check(root, known, COUNT(known));
	if (code == FROND_OK)
		code = need(root, "total");
	if (code == FROND_OK)
		code = section_whole(root, "total", 0, PROBE_GPUS_MAX, &total);
	if (code == FROND_OK)
		code = heartbeat_read(root, status);
	if (code == FROND_OK)
		code = list_read(root, "devices", PROBE_GPUS_MAX, status, device_read);
	if (code == FROND_OK && total != status->device_count)
		code = complain(root->complaint, 0, "status.total: is %u, but there are %u devices", total,
				status->device_count);
	if (code == FROND_OK)
		code = links_check(status, root->complaint);
	return code == FROND_OK ? islands_check(status, root->complaint) : code;
}

int32_t status_read(const char *json, uint32_t len, struct status *out, struct complaint *complaint)
{
	cJSON *document = NULL;
	int32_t code = section_parse("status", json, len, &document, complaint);
	if (code != FROND_OK)
		return code;
	struct status *status = calloc(1, sizeof(*status));
	struct section root = {.object = document, .path = "status", .complaint = complaint};
	if (status == NULL)
		code = complain(complaint, 0, "status: out of memory");
	else if (document == NULL)
		code = complain(complaint, 0, "status: is empty");
	else
		code = root_read(&root, status);
	if (code == FROND_OK)
		*out = *status;
	free(status);
	cJSON_Delete(document);
	return code;
}
