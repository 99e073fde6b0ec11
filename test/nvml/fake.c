/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define HANG_STEP_NS 5000000L

/* A driver is one per process, and so is this. */
static struct {
	pthread_mutex_t lock;
	uint32_t opened;
	struct machine machine;
	struct stat seen;
	uint64_t dice;
	uint32_t bytes_used;
	uint32_t xids_told[MACHINE_GPUS_MAX];
} fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct nvmlDevice_st handles[MACHINE_GPUS_MAX][MACHINE_INSTANCES_MAX + 1];

static uint32_t below(uint32_t bound) /* splitmix64, or the bytes of the description */
{
	if (fake.machine.byte_count > 0)
		return fake.bytes_used < fake.machine.byte_count ? fake.machine.bytes[fake.bytes_used++] % bound
								 : bound - 1;
	uint64_t z = (fake.dice += 0x9e3779b97f4a7c15u);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (uint32_t)((z ^ (z >> 31)) % bound);
}

/* A file that cannot be read, or half written, leaves the machine as it was. */
/* Looking at the file costs more than all else here, and no real driver does it: who measures says how old it may be. */
static bool recent(void)
{
	static int64_t looked_ms;
	const char *every = getenv("FROND_FAKE_NVML_EVERY");
	struct timespec now;
	if (every == NULL)
		return false;
	clock_gettime(CLOCK_MONOTONIC, &now);
	int64_t now_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
	if (looked_ms != 0 && now_ms - looked_ms < atoi(every))
		return true;
	looked_ms = now_ms;
	return false;
}

static void reload(void)
{
	static struct machine next;
	if (recent())
		return;
	const char *path = getenv("FROND_FAKE_NVML");
	struct stat now;
	if (path == NULL || stat(path, &now) != 0)
		return;
	if (now.st_ino == fake.seen.st_ino && now.st_size == fake.seen.st_size &&
	    now.st_mtim.tv_sec == fake.seen.st_mtim.tv_sec && now.st_mtim.tv_nsec == fake.seen.st_mtim.tv_nsec)
		return;
	uint32_t bad = machine_read(path, &next);
	if (bad != 0) {
		fprintf(stderr, "fake NVML: %s:%u: is not a line of a machine\n", path, bad);
		return;
	}
	fake.machine = next;
	fake.seen = now;
	fake.dice = next.seed;
	fake.bytes_used = 0;
	for (uint32_t i = 0; i < MACHINE_GPUS_MAX; i++)
		if (fake.xids_told[i] > next.gpus[i].xid_count)
			fake.xids_told[i] = next.gpus[i].xid_count;
}

static const struct machine_rule *rule_for(const char *function, int32_t gpu)
{
	for (uint32_t i = 0; i < fake.machine.rule_count; i++) {
		const struct machine_rule *rule = &fake.machine.rules[i];
		bool named = strcmp(rule->function, function) == 0;
		bool all = strcmp(rule->function, "all") == 0 && strncmp(function, "nvmlInit", 8) != 0 &&
			   strcmp(function, "nvmlShutdown") != 0;
		if ((named || all) && (rule->gpu == -1 || rule->gpu == gpu))
			return rule;
	}
	return NULL;
}

/* Waits while the description says so. The lock is free meanwhile: others may use the driver. */
static nvmlReturn_t ruled(const char *function, int32_t gpu)
{
	for (;;) {
		reload();
		const struct machine_rule *rule = rule_for(function, gpu);
		if (rule == NULL)
			return NVML_SUCCESS;
		if (rule->code != 0)
			return (nvmlReturn_t)rule->code;
		pthread_mutex_unlock(&fake.lock);
		nanosleep(&(struct timespec){.tv_nsec = HANG_STEP_NS}, NULL);
		pthread_mutex_lock(&fake.lock);
	}
}

static nvmlReturn_t injected(void)
{
	if (fake.machine.inject_percent == 0 || below(100) >= fake.machine.inject_percent)
		return NVML_SUCCESS;
	uint32_t code = 1 + below(NVML_ERROR_RESET_TYPE_NOT_SUPPORTED + 1);
	return code > NVML_ERROR_RESET_TYPE_NOT_SUPPORTED ? NVML_ERROR_UNKNOWN : (nvmlReturn_t)code;
}

static struct call begin(const char *function, int32_t gpu, const void *out)
{
	struct call call = {.machine = &fake.machine, .instance = -1, .locked = true};
	pthread_mutex_lock(&fake.lock);
	call.code = ruled(function, gpu);
	if (call.code == NVML_SUCCESS && fake.opened == 0)
		call.code = NVML_ERROR_UNINITIALIZED;
	if (call.code == NVML_SUCCESS)
		call.code = injected();
	if (call.code == NVML_SUCCESS && out == NULL)
		call.code = NVML_ERROR_INVALID_ARGUMENT;
	return call;
}

static bool known(nvmlDevice_t device)
{
	const struct nvmlDevice_st *first = &handles[0][0];
	return device.handle >= first && device.handle < first + MACHINE_GPUS_MAX * (MACHINE_INSTANCES_MAX + 1);
}

struct call enter_any(const char *function, nvmlDevice_t device, const void *out)
{
	struct call call = begin(function, known(device) ? (int32_t)device.handle->gpu : -1, out);
	if (call.code != NVML_SUCCESS)
		return call;
	if (!known(device) || device.handle->gpu >= fake.machine.gpu_count) {
		call.code = NVML_ERROR_INVALID_ARGUMENT;
		return call;
	}
	call.index = device.handle->gpu;
	call.instance = device.handle->instance;
	call.gpu = &fake.machine.gpus[call.index];
	if (call.gpu->lost)
		call.code = NVML_ERROR_GPU_IS_LOST;
	else if (call.instance >= 0 && (uint32_t)call.instance >= call.gpu->instance_count)
		call.code = NVML_ERROR_NOT_FOUND;
	return call;
}

struct call enter(const char *function, nvmlDevice_t device, const void *out)
{
	struct call call = enter_any(function, device, out);
	if (call.code == NVML_SUCCESS && call.instance >= 0)
		call.code = NVML_ERROR_NOT_SUPPORTED;
	return call;
}

struct call enter_machine(const char *function, const void *out)
{
	return begin(function, -1, out);
}

nvmlReturn_t leave(struct call *call, void *out, size_t size)
{
	if (call->code == NVML_SUCCESS && fake.machine.garbage_percent > 0 &&
	    below(100) < fake.machine.garbage_percent) {
		uint32_t kind = below(4); /* all ones, all zero, a few odd bytes, any bytes */
		unsigned char *bytes = out;
		for (size_t i = 0; i < size; i++) {
			if (kind < 2)
				bytes[i] = kind == 0 ? 0xff : 0;
			else if (kind == 3 || below(8) == 0)
				bytes[i] = (unsigned char)below(256);
		}
	}
	if (call->locked)
		pthread_mutex_unlock(&fake.lock);
	return call->code;
}

nvmlReturn_t leave_text(struct call *call, const char *text, char *out, unsigned int length)
{
	if (call->code == NVML_SUCCESS && strlen(text) >= length)
		call->code = NVML_ERROR_INSUFFICIENT_SIZE;
	if (call->code == NVML_SUCCESS)
		memcpy(out, text, strlen(text) + 1);
	return leave(call, out, length);
}

nvmlDevice_t handle_of(uint32_t gpu, int32_t instance)
{
	struct nvmlDevice_st *device = &handles[gpu][instance + 1];
	*device = (struct nvmlDevice_st){.gpu = gpu, .instance = instance};
	return (nvmlDevice_t){.handle = device};
}

nvmlReturn_t second_gpu(const struct call *call, nvmlDevice_t device, uint32_t *index)
{
	if (!known(device) || device.handle->gpu >= call->machine->gpu_count || device.handle->instance >= 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	*index = device.handle->gpu;
	return call->machine->gpus[*index].lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

nvmlReturn_t fake_open(const char *function)
{
	pthread_mutex_lock(&fake.lock);
	nvmlReturn_t code = ruled(function, -1);
	if (code == NVML_SUCCESS)
		code = injected();
	if (code == NVML_SUCCESS && (fake.machine.no_driver || fake.seen.st_ino == 0))
		code = NVML_ERROR_DRIVER_NOT_LOADED;
	if (code == NVML_SUCCESS)
		fake.opened++;
	pthread_mutex_unlock(&fake.lock);
	return code;
}

nvmlReturn_t fake_close(const char *function)
{
	struct call call = begin(function, -1, "");
	if (call.code == NVML_SUCCESS)
		fake.opened--;
	return leave(&call, NULL, 0);
}

void pci_fill(const struct machine_place *place, uint32_t device_id, nvmlPciInfo_t *out)
{
	memset(out, 0, sizeof(*out));
	out->domain = place->domain;
	out->bus = place->bus;
	out->device = place->device;
	out->pciDeviceId = device_id;
	snprintf(out->busId, sizeof(out->busId), NVML_DEVICE_PCI_BUS_ID_FMT, out->domain, out->bus, out->device);
	snprintf(out->busIdLegacy, sizeof(out->busIdLegacy), NVML_DEVICE_PCI_BUS_ID_LEGACY_FMT, out->domain & 0xffffu,
		 out->bus & 0xffu, out->device & 0xffu);
}

bool xid_next(uint32_t wanted, uint32_t *gpu, uint32_t *xid)
{
	for (*gpu = 0; *gpu < fake.machine.gpu_count; (*gpu)++) {
		if ((wanted & 1u << *gpu) != 0 && fake.xids_told[*gpu] < fake.machine.gpus[*gpu].xid_count) {
			*xid = fake.machine.gpus[*gpu].xids[fake.xids_told[*gpu]++];
			return true;
		}
	}
	return false;
}
