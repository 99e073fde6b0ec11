/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is the status of a GpuNodeStatus as JSON. What status_read() accepts is written and read back as the same; a
 * refusal has a sentence and leaves the status as it was.
 */
#include "fuzz.h"

#include "probe/status.h"

static void check_device(const struct status *status, uint32_t i)
{
	const struct status_device *device = &status->devices[i];
	MUST(device->index == i && device->id[0] != '\0');
	MUST(device->link_count < PROBE_GPUS_MAX && device->slice_count <= STATUS_SLICES_MAX &&
	     device->pod_count <= STATUS_PODS_MAX);
	for (uint32_t k = 0; k < device->link_count; k++)
		MUST(device->links[k].peer < status->device_count && device->links[k].peer != i);
	for (uint32_t k = 0; k < i; k++)
		MUST(strcmp(status->devices[k].id, device->id) != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct status status, again, before;
	static struct complaint complaint;
	memset(&status, 0xa5, sizeof status);
	memset(&before, 0xa5, sizeof before);
	int32_t code = status_read((const char *)data, (uint32_t)size, &status, &complaint);
	MUST(code == FROND_OK || code == FROND_BAD);
	if (code == FROND_BAD) {
		must_be_sentence(complaint.text, strlen(complaint.text));
		MUST(memcmp(&status, &before, sizeof status) == 0);
		return 0;
	}
	for (uint32_t i = 0; i < status.device_count; i++)
		check_device(&status, i);
	cJSON *object = status_json(&status);
	MUST(object != NULL);
	char *text = cJSON_PrintUnformatted(object);
	cJSON_Delete(object);
	MUST(text != NULL);
	MUST(status_read(text, (uint32_t)strlen(text), &again, &complaint) == FROND_OK);
	MUST(memcmp(&status, &again, sizeof status) == 0);
	free(text);
	return 0;
}
