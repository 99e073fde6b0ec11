/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake.h - how every function of the fake driver begins and ends. Owns the machine being played (one per process, as the
 * real driver's), its lock and its dice. The description is read again whenever its file has changed, between two calls.
 *
 *	struct call call = enter(__func__, device, out);
 *	if (call.code == NVML_SUCCESS)
 *		*out = …;
 *	return leave(&call, out, sizeof(*out));
 */
#ifndef FROND_TEST_FAKE_H
#define FROND_TEST_FAKE_H

#include "machine.h"

#include <stddef.h>

/* Every prototype is the header's, old versions included; all that it declares is exported, nothing else. */
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#pragma GCC visibility push(default)
#include <nvml.h>
#pragma GCC visibility pop

struct nvmlDevice_st { /* what a handle points to */
	uint32_t gpu;
	int32_t instance; /* of MIG; -1: the GPU itself */
};

struct call {
	nvmlReturn_t code;
	const struct machine *machine; /* while the call lasts */
	const struct machine_gpu *gpu;
	uint32_t index;
	int32_t instance;
	bool locked;
};

/* A call about a device; out is where its answer goes, which must not be NULL. */
struct call enter(const char *function, nvmlDevice_t device, const void *out);

/* The same for a slice of a GPU as well; other functions do not support slices. */
struct call enter_any(const char *function, nvmlDevice_t device, const void *out);

/* A call about the machine. */
struct call enter_machine(const char *function, const void *out);

/* Gives the lock back. With "garbage" in the description, the size bytes at out may become any bytes. */
nvmlReturn_t leave(struct call *call, void *out, size_t size);

/* leave() with a text for a buffer of the caller's. */
nvmlReturn_t leave_text(struct call *call, const char *text, char *out, unsigned int length);

nvmlDevice_t handle_of(uint32_t gpu, int32_t instance);
nvmlReturn_t second_gpu(const struct call *call, nvmlDevice_t device, uint32_t *index); /* the peer of a pair */
nvmlReturn_t fake_open(const char *function);
nvmlReturn_t fake_close(const char *function);

void pci_fill(const struct machine_place *place, uint32_t device_id, nvmlPciInfo_t *out);

/* The next XID that nobody was told yet, of the GPUs whose bits are set. */
bool xid_next(uint32_t wanted, uint32_t *gpu, uint32_t *xid);

#endif
