/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reading.h - one read in progress: what its parts (gpu.c, health.c, links.c, pairs.c, mig.c) share. Owns nothing.
 * Every call of the driver goes through ASK(), so that no failure is forgotten and a GPU that is gone is asked no more.
 */
#ifndef FROND_PROBE_READING_H
#define FROND_PROBE_READING_H

#include "probe/driver.h"
#include "probe/host.h"
#include "probe/probe.h"

#include <stddef.h>

struct identity { /* what a GPU is, from the last read that could say */
	char uuid[96], model[96];
	struct probe_pci pci;
	int64_t memory_mib;
};

struct gpu_session { /* of one GPU, as long as the driver stays initialised */
	struct identity identity;
	int32_t xid; /* last critical one */
	bool watched;
	nvmlDevice_t watched_as; /* the handle that events come with */
};

struct reading {
	const struct driver *driver;
	struct probe_report *report;
	const struct probe_report *before; /* NULL: read everything */
	const char *proc;
	nvmlDevice_t devices[PROBE_GPUS_MAX];
	bool opened[PROBE_GPUS_MAX]; /* devices[] holds its handle */
	bool gone[PROBE_GPUS_MAX];   /* it is lost */
	bool reset[PROBE_GPUS_MAX];  /* the driver wants it reset */
};

/* The driver's code. Failures go to the report; "not supported" is a fact about the GPU and goes there. gpu -1: none. */
#define ASK(reading, gpu, function, ...)                                                                               \
	(asks((reading), (gpu), (reading)->driver->function != NULL)                                                   \
		 ? answered((reading), (gpu), CALL_##function, (int32_t)(reading)->driver->function(__VA_ARGS__))      \
		 : unasked((reading), CALL_##function, (reading)->driver->function != NULL))

bool asks(const struct reading *reading, int32_t gpu, bool there);
int32_t answered(struct reading *reading, int32_t gpu, uint32_t call, int32_t code);
int32_t unasked(struct reading *reading, uint32_t call, bool there);

/* It answered, but with what cannot be: noted as a failure. */
void odd(struct reading *reading, int32_t gpu, uint32_t call);

/* Does the index mean the GPU that it meant in the read before? There was one. */
bool same_gpu(const struct reading *reading, uint32_t index);

/* PROBE_ABSENT for "not supported" and for functions that the library does not have, else PROBE_UNKNOWN. */
int32_t without(int32_t code);

/* Is there a text in buffer[0..size), ended by NUL, of printable ASCII, not empty? Then all bytes after it become zero, so
 * that equal texts are equal bytes. */
bool text_settle(char *buffer, uint32_t size);

bool pci_from(const nvmlPciInfo_t *info, struct probe_pci *out);
bool pci_same(const struct probe_pci *a, const struct probe_pci *b);

void gpu_open(struct reading *reading, uint32_t index);
void gpu_identify(struct reading *reading, uint32_t index, struct gpu_session *session);
void gpu_use(struct reading *reading, uint32_t index);
void slices_read(struct reading *reading, uint32_t index);
void links_read(struct reading *reading, uint32_t index);
void fabric_read(struct reading *reading, uint32_t index);
void pairs_read(struct reading *reading);
void memory_health_read(struct reading *reading, uint32_t index);
void health_judge(const struct reading *reading, uint32_t index);

/* An XID that says nothing against the GPU. */
bool is_programs_fault(int32_t xid);

/* merge.c: from what was read. */
void merge_links(struct probe_report *report);
void merge_islands(struct probe_report *report);
void merge_host(struct probe_report *report, const struct host *host);

#endif
