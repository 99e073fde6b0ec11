/* SPDX-License-Identifier: Apache-2.0 */
#include "text/claim.h"

#include "text/choice.h"
#include "text/kubename.h"
#include "text/section.h"

#include <stdio.h>
#include <string.h>

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

static const struct choice policy_words = {
	3, {[GPU_CONTIGUOUS] = "contiguous", [GPU_SPREAD] = "spread", [GPU_PREFER] = "preferIds"}};

static int32_t root_read(const struct section *root, struct claim *claim);
static int32_t devices_read(const struct section *root, struct claim *claim);
static int32_t later_refuse(const struct section *devices);
static int32_t prefer_read(const struct section *devices, struct claim *claim);
static int32_t prefer_item_read(const struct section *devices, const cJSON *item, struct claim *claim);
static bool id_read(const cJSON *item, struct claim_id *out);
static bool is_gpu_id(const char *text, uint64_t len);
static int32_t topology_read(const struct section *root, struct claim *claim);
static int32_t selector_read(const struct section *root, struct claim *claim);
static int32_t label_read(const struct section *labels, const cJSON *item, struct claim *claim);
static int32_t gang_ref_read(const struct section *root, struct claim *claim);

int32_t claim_read(const char *json, uint32_t len, struct claim *out, struct complaint *complaint)
{
	cJSON *document = NULL;
	int32_t code = section_parse("claim", json, len, &document, complaint);
	if (code != FROND_OK)
		return code;

	struct claim claim;
	memset(&claim, 0, sizeof(claim));
	claim.policy = GPU_CONTIGUOUS;
	claim.mode = MODE_PREFERRED;
	claim.locality = GPU_ANYWHERE;
	struct section root = {.object = document, .path = "claim", .complaint = complaint};
	code = root_read(&root, &claim);
	cJSON_Delete(document);
	if (code == FROND_OK)
		*out = claim;
	return code;
}

static int32_t root_read(const struct section *root, struct claim *claim)
{
	static const char *const known[] = {"devices", "topology", "selector", "gangRef"};
	int32_t (*const readers[])(const struct section *, struct claim *) = {devices_read, topology_read,
									      selector_read, gang_ref_read};
	int32_t code = section_check(root, known, COUNT(known));
	for (uint32_t i = 0; i < COUNT(readers) && code == FROND_OK; i++)
		code = readers[i](root, claim);
	return code;
}

/* ---- devices --------------------------------------------------------------------------------------------------- */

static int32_t devices_read(const struct section *root, struct claim *claim)
{
	static const char *const known[] = {"count",     "policy",         "preferIds", "exclusivity",
					    "memoryMiB", "computePercent", "migProfile"};
	struct section devices = section_of(root, "devices", "claim.devices");
	uint32_t policy = claim->policy;
	int32_t code = section_check(&devices, known, COUNT(known));
	if (code == FROND_OK)
		code = later_refuse(&devices);
	if (code == FROND_OK)
		code = section_whole(&devices, "count", 1, FROND_GPUS_MAX, &claim->count);
	if (code == FROND_OK)
		code = section_choice(&devices, "policy", &policy_words, &policy);
	claim->policy = (enum gpu_policy)policy;
	return code == FROND_OK ? prefer_read(&devices, claim) : code;
}

/* Reference 10: sharing and MIG are a later chapter. A claim that asks for them must not get whole devices in
 * silence. */
static int32_t later_refuse(const struct section *devices)
{
	static const struct choice words = {3, {"Exclusive", "Shared", "MIG"}};
	static const char *const later[] = {"memoryMiB", "computePercent", "migProfile"};
	uint32_t exclusivity = 0;
	int32_t code = section_choice(devices, "exclusivity", &words, &exclusivity);
	if (code == FROND_OK && exclusivity != 0)
		return complain(devices->complaint, 0,
				"claim.devices.exclusivity: %s is not yet supported; only Exclusive is allowed",
				words.words[exclusivity]);
	for (uint32_t i = 0; i < COUNT(later) && code == FROND_OK; i++) {
		if (section_field(devices, later[i]) != NULL)
			code = complain(devices->complaint, 0, "claim.devices.%s: is not yet supported; leave it out",
					later[i]);
	}
	return code;
}

static int32_t prefer_read(const struct section *devices, struct claim *claim)
{
	const cJSON *list = section_field(devices, "preferIds"), *item;
	if (list == NULL && claim->policy == GPU_PREFER)
		return complain(devices->complaint, 0,
				"claim.devices.preferIds: is missing; policy preferIds needs 1 to %u indices or ids",
				FROND_GPUS_MAX);
	if (list == NULL)
		return FROND_OK;
	if (claim->policy != GPU_PREFER)
		return complain(devices->complaint, 0,
				"claim.devices.preferIds: is allowed with policy preferIds only, got policy %s",
				policy_words.words[claim->policy]);
	if (!cJSON_IsArray(list))
		return section_refuse(devices, "preferIds", "must be a list of GPU indices or ids", list);
	int32_t code = FROND_OK;
	for (item = list->child; item != NULL && code == FROND_OK; item = item->next)
		code = prefer_item_read(devices, item, claim);
	if (code == FROND_OK && claim->prefer_count == 0)
		return complain(devices->complaint, 0,
				"claim.devices.preferIds: is empty; 1 to %u indices or ids are allowed",
				FROND_GPUS_MAX);
	return code;
}

static int32_t prefer_item_read(const struct section *devices, const cJSON *item, struct claim *claim)
{
	uint32_t count = claim->prefer_count;
	if (count == FROND_GPUS_MAX)
		return complain(devices->complaint, 0,
				"claim.devices.preferIds: has more than %u entries; a node has no more GPUs",
				FROND_GPUS_MAX);
	struct claim_id *id = &claim->prefer[count];
	if (!id_read(item, id)) {
		char key[24], what[200];
		snprintf(key, sizeof(key), "preferIds[%u]", count);
		snprintf(what, sizeof(what),
			 "must be an index from 0 to %u, or an id of at most %u letters, digits, \"-\", \"_\" and "
			 "\".\" with a letter or digit at both ends",
			 FROND_GPUS_MAX - 1, CLAIM_ID_MAX);
		return section_refuse(devices, key, what, item);
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct claim_id *other = &claim->prefer[i];
		if (other->by_index == id->by_index && other->index == id->index && strcmp(other->id, id->id) == 0)
			return complain(devices->complaint, 0,
					"claim.devices.preferIds[%u]: repeats entry %u; each GPU is listed once", count,
					i);
	}
	claim->prefer_count++;
	return FROND_OK;
}

/* A number, or a string of digits, is an index; any other string is an id. */
static bool id_read(const cJSON *item, struct claim_id *out)
{
	memset(out, 0, sizeof(*out));
	if (cJSON_IsNumber(item)) {
		if (!(item->valuedouble >= 0 && item->valuedouble < FROND_GPUS_MAX))
			return false;
		out->by_index = true;
		out->index = (uint32_t)item->valuedouble;
		return out->index == item->valuedouble;
	}
	if (!cJSON_IsString(item))
		return false;

	const char *text = item->valuestring;
	uint64_t len = strlen(text);
	if (!is_gpu_id(text, len))
		return false;
	out->by_index = strspn(text, "0123456789") == len;
	if (!out->by_index)
		memcpy(out->id, text, len + 1);
	for (uint64_t i = 0; i < len && out->by_index; i++) {
		out->index = out->index * 10 + (uint32_t)(text[i] - '0');
		if (out->index >= FROND_GPUS_MAX)
			return false;
	}
	return true;
}

/* The characters of a domain's name, but longer: an id may be a node's name with "-gpu-15" after it. */
static bool is_gpu_id(const char *text, uint64_t len)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
	return len > 0 && len <= CLAIM_ID_MAX && strspn(text, allowed) == len && is_domain_name(text, 1) &&
	       is_domain_name(text + len - 1, 1);
}

/* ---- topology, selector, gang ------------------------------------------------------------------------------------ */

static int32_t topology_read(const struct section *root, struct claim *claim)
{
	static const char *const known[] = {"mode", "locality", "minBandwidthGBps"};
	static const struct choice words = {4, {"any", "same-node", "same-socket", "nvlink"}};
	/* The GPUs of a pod are always on one node. */
	static const enum gpu_locality localities[] = {GPU_ANYWHERE, GPU_ANYWHERE, GPU_SAME_SOCKET, GPU_NVLINK};
	struct section topology = section_of(root, "topology", "claim.topology");
	uint32_t mode = claim->mode, locality = 0;
	int32_t code = section_check(&topology, known, COUNT(known));
	if (code == FROND_OK)
		code = section_choice(&topology, "mode", &choice_mode, &mode);
	if (code == FROND_OK)
		code = section_choice(&topology, "locality", &words, &locality);
	if (code == FROND_OK)
		code = section_whole(&topology, "minBandwidthGBps", 0, CLAIM_GBPS_MAX, &claim->min_gbps);
	claim->mode = (enum mode)mode;
	claim->locality = localities[locality];
	return code;
}

static int32_t selector_read(const struct section *root, struct claim *claim)
{
	static const char *const known[] = {"matchLabels"};
	struct section selector = section_of(root, "selector", "claim.selector");
	int32_t code = section_check(&selector, known, COUNT(known));
	if (code != FROND_OK)
		return code;
	struct section labels = section_of(&selector, "matchLabels", "claim.selector.matchLabels");
	if (labels.object == NULL)
		return FROND_OK;
	if (!cJSON_IsObject(labels.object))
		return section_refuse(&selector, "matchLabels", "must be an object of label keys and values",
				      labels.object);
	for (const cJSON *item = labels.object->child; item != NULL && code == FROND_OK; item = item->next)
		code = label_read(&labels, item, claim);
	return code;
}

static int32_t label_read(const struct section *labels, const cJSON *item, struct claim *claim)
{
	if (claim->label_count == CLAIM_LABELS_MAX)
		return complain(labels->complaint, 0, "%s: has more than %u labels", labels->path, CLAIM_LABELS_MAX);
	const char *key = item->string;
	struct shown shown_key = shown(key, strlen(key));
	if (!is_label_key(key, strlen(key)))
		return complain(labels->complaint, 0, "%s: \"%s\" is not a label key; allowed is " LABEL_KEY_RULE,
				labels->path, shown_key.text);
	for (uint32_t i = 0; i < claim->label_count; i++) {
		if (strcmp(claim->labels[i].key, key) == 0)
			return complain(labels->complaint, 0, "%s.%s: is written twice", labels->path, shown_key.text);
	}
	if (!cJSON_IsString(item) || !is_label_value(item->valuestring, strlen(item->valuestring)))
		return section_refuse(labels, shown_key.text, "must be a label value in quotes: " LABEL_VALUE_RULE,
				      item);
	struct claim_label *label = &claim->labels[claim->label_count++];
	strcpy(label->key, key); /* both lengths are part of the rules */
	strcpy(label->value, item->valuestring);
	return FROND_OK;
}

static int32_t gang_ref_read(const struct section *root, struct claim *claim)
{
	const cJSON *item = section_field(root, "gangRef");
	if (item == NULL)
		return FROND_OK;
	if (!cJSON_IsString(item) || !is_node_name(item->valuestring, strlen(item->valuestring)))
		return section_refuse(root, "gangRef", "must be the name of a PodGroup: " NODE_NAME_RULE, item);
	strcpy(claim->gang_ref, item->valuestring); /* at most FROND_NAME_MAX bytes */
	return FROND_OK;
}
