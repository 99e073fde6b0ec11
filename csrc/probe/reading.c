/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/reading.h"

#include <string.h>

#define PCI_BUS_MAX    0xffu
#define PCI_DEVICE_MAX 0x1fu

/* Once for each GPU, call and code: a driver that fails always fails the same way. */
static void note(struct probe_report *report, int32_t gpu, uint32_t call, int32_t code)
{
	for (uint32_t i = 0; i < report->failure_count; i++) {
		struct probe_failure *failure = &report->failures[i];
		if (failure->gpu == gpu && failure->call == call && failure->code == code) {
			failure->times++;
			return;
		}
	}
	report->failures_found++;
	if (report->failure_count < PROBE_FAILURES_MAX)
		report->failures[report->failure_count++] =
			(struct probe_failure){.gpu = gpu, .call = call, .code = code, .times = 1};
}

bool asks(const struct reading *reading, int32_t gpu, bool there)
{
	return there && (gpu < 0 || !reading->gone[gpu]);
}

int32_t answered(struct reading *reading, int32_t gpu, uint32_t call, int32_t code)
{
	if (code == NVML_SUCCESS)
		return code;
	if (code == NVML_ERROR_NOT_SUPPORTED && gpu >= 0) {
		reading->report->gpus[gpu].unsupported |= 1ull << call;
		return code;
	}
	if (gpu >= 0 && code == NVML_ERROR_GPU_IS_LOST)
		reading->gone[gpu] = true;
	if (gpu >= 0 && code == NVML_ERROR_RESET_REQUIRED)
		reading->reset[gpu] = true;
	note(reading->report, gpu, call, code);
	return code;
}

int32_t unasked(struct reading *reading, uint32_t call, bool there)
{
	if (there)
		return NVML_ERROR_GPU_IS_LOST; /* that it is gone was noted when it was found out */
	note(reading->report, -1, call, PROBE_CODE_MISSING);
	return PROBE_CODE_MISSING;
}

void odd(struct reading *reading, int32_t gpu, uint32_t call)
{
	note(reading->report, gpu, call, PROBE_CODE_ODD);
}

bool same_gpu(const struct reading *reading, uint32_t index)
{
	const struct probe_gpu *now = &reading->report->gpus[index], *before = &reading->before->gpus[index];
	return index < reading->report->gpu_count && index < reading->before->gpu_count && now->uuid[0] != '\0' &&
	       strcmp(now->uuid, before->uuid) == 0;
}

int32_t without(int32_t code)
{
	return code == NVML_ERROR_NOT_SUPPORTED || code == PROBE_CODE_MISSING ? PROBE_ABSENT : PROBE_UNKNOWN;
}

bool text_settle(char *buffer, uint32_t size)
{
	char *end = memchr(buffer, 0, size);
	if (end == NULL || end == buffer)
		return false;
	for (const char *at = buffer; at < end; at++)
		if (*at < 0x20 || *at > 0x7e)
			return false;
	memset(end, 0, size - (size_t)(end - buffer));
	return true;
}

bool pci_from(const nvmlPciInfo_t *info, struct probe_pci *out)
{
	if (info->bus > PCI_BUS_MAX || info->device > PCI_DEVICE_MAX)
		return false;
	*out = (struct probe_pci){.known = true, .domain = info->domain, .bus = info->bus, .device = info->device};
	return true;
}

bool pci_same(const struct probe_pci *a, const struct probe_pci *b)
{
	return a->known && b->known && a->domain == b->domain && a->bus == b->bus && a->device == b->device;
}
