/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/picture.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool same(const struct status *a, const struct status *b);
static void compare(struct picture *picture);
static void recall(struct picture *picture);
static void use_take(struct picture_use *use, const struct status_device *device);
static int64_t rounded(int64_t value, int64_t step, int64_t most);

static const struct picture_use use_unknown = {
	.smooth = PROBE_UNKNOWN, .mib = PROBE_UNKNOWN, .percent = PROBE_UNKNOWN, .said_mib = PROBE_UNKNOWN};

void picture_start(struct picture *picture)
{
	memset(picture, 0, sizeof(*picture));
	for (uint32_t i = 0; i < PROBE_GPUS_MAX; i++)
		picture->use[i] = use_unknown;
}

void picture_take(struct picture *picture, const struct probe_report *report)
{
	if (report->state != PROBE_OK) {
		picture_doubt(picture, report->reason);
		/* A driver that is not there starts afresh, and what it said of XIDs is over. */
		if (report->state == PROBE_NO_LIBRARY || report->state == PROBE_NO_DRIVER) {
			picture->driver_began = true;
			picture->xids_stand = false;
		}
		return;
	}
	picture->good = true;
	picture->doubted = false;
	status_from(report, PROBE_UNKNOWN, &picture->now);
	if (picture->recalled != NULL)
		recall(picture);
	for (uint32_t i = 0; i < picture->now.device_count; i++) {
		struct status_device *device = &picture->now.devices[i];
		use_take(&picture->use[i], device);
		device->utilization = picture->use[i].percent;
		device->memory_used_mib = picture->use[i].said_mib;
	}
	compare(picture);
}

void picture_end(struct picture *picture)
{
	free(picture->recalled);
	picture->recalled = NULL;
}

void picture_recall(struct picture *picture, const struct status *status, bool xids_stand)
{
	free(picture->recalled);
	picture->recalled = malloc(sizeof(*status));
	if (picture->recalled == NULL)
		return;
	*picture->recalled = *status;
	picture->recalled->heartbeat_s = PROBE_UNKNOWN;
	picture->xids_stand = xids_stand && !picture->driver_began;
	if (picture->good) { /* our own report goes out next, perhaps before another look */
		recall(picture);
		compare(picture);
	}
}

void picture_doubt(struct picture *picture, const char *why)
{
	if (!picture->good && picture->recalled != NULL) {
		picture->now = *picture->recalled;
		picture->good = true;
	}
	picture->doubted = true;
	for (uint32_t i = 0; i < picture->now.device_count; i++)
		if (picture->now.devices[i].health == PROBE_HEALTHY) { /* a dead one is not less dead */
			picture->now.devices[i].health = PROBE_HEALTH_UNKNOWN;
			status_reason_set(&picture->now.devices[i], why);
		}
	compare(picture);
}

bool picture_changed(const struct picture *picture)
{
	return picture->good && (picture->news || !picture->confirmed);
}

bool picture_worse(const struct picture *picture)
{
	return picture->good && picture->news && picture->worse;
}

void picture_write(struct picture *picture)
{
	for (uint32_t i = 0; i < picture->now.device_count; i++) {
		struct picture_use *use = &picture->use[i];
		struct status_device *device = &picture->now.devices[i];
		/* What was not read is as picture_take() left it, or as it was recalled. */
		if (use->smooth >= 0)
			device->utilization = use->percent =
				(int32_t)rounded((use->smooth + 128) / 256, PICTURE_PERCENT_STEP, 100);
		if (use->mib >= 0)
			device->memory_used_mib = use->said_mib = rounded(use->mib, PICTURE_MIB_STEP, STATUS_MIB_MAX);
	}
	picture->confirmed = false;
	picture->news = false;
	picture->written = picture->now;
}

void picture_wrote(struct picture *picture, bool accepted)
{
	picture->confirmed = accepted;
}

static uint32_t gbps_to(const struct status_device *device, uint32_t peer)
{
	for (uint32_t i = 0; i < device->link_count; i++)
		if (device->links[i].peer == peer)
			return device->links[i].gbps;
	return 0;
}

static void compare(struct picture *picture)
{
	const struct status *now = &picture->now, *written = &picture->written;
	picture->news = !same(now, written);
	picture->worse = now->device_count < written->device_count;
	for (uint32_t i = 0; picture->news && i < now->device_count && i < written->device_count; i++) {
		const struct status_device *x = &now->devices[i], *y = &written->devices[i];
		picture->worse |= x->health != PROBE_HEALTHY && y->health == PROBE_HEALTHY;
		for (uint32_t k = 0; k < y->link_count; k++)
			picture->worse |= gbps_to(x, y->links[k].peer) < y->links[k].gbps;
	}
}

/* The same machine: as many GPUs, and each whose name is known is the one that was there. */
static bool same_machine(const struct status *a, const struct status *b)
{
	bool same_one = a->device_count == b->device_count;
	for (uint32_t i = 0; same_one && i < a->device_count; i++)
		same_one = strcmp(a->devices[i].id, b->devices[i].id) == 0 || status_nameless(&a->devices[i]) ||
			   status_nameless(&b->devices[i]);
	return same_one;
}

/* What the driver cannot tell any more. */
static void recall(struct picture *picture)
{
	bool needed = false;
	bool same_one = same_machine(&picture->now, picture->recalled);
	for (uint32_t i = 0; same_one && i < picture->now.device_count; i++) {
		struct status_device *now = &picture->now.devices[i];
		const struct status_device *then = &picture->recalled->devices[i];
		if (status_nameless(now) && !status_nameless(then)) {
			memcpy(now->id, then->id, sizeof(now->id));
			memcpy(now->model, then->model, sizeof(now->model));
			memcpy(now->pci, then->pci, sizeof(now->pci));
			memcpy(now->rail, then->rail, sizeof(now->rail));
			now->memory_mib = then->memory_mib;
			now->numa = then->numa;
			needed = true;
		}
		if (picture->xids_stand && then->health == PROBE_UNHEALTHY && status_by_xid(then)) {
			if (now->health != PROBE_UNHEALTHY) {
				now->health = PROBE_UNHEALTHY;
				status_reason_set(now, then->reason);
			}
			needed = true;
		}
	}
	if (!needed)
		picture_end(picture);
}

/* By bytes, which status_from() clears first; not those of pods that are not there, because they are most of them. */
static bool same(const struct status *a, const struct status *b)
{
	bool equal = a->device_count == b->device_count;
	for (uint32_t i = 0; equal && i < a->device_count; i++) {
		const struct status_device *x = &a->devices[i], *y = &b->devices[i];
		equal = memcmp(x, y, offsetof(struct status_device, pods)) == 0 &&
			memcmp(x->pods, y->pods, x->pod_count * sizeof(x->pods[0])) == 0;
	}
	return equal;
}

static void use_take(struct picture_use *use, const struct status_device *device)
{
	if (strcmp(use->id, device->id) != 0) {
		*use = use_unknown;
		memcpy(use->id, device->id, sizeof(use->id));
	}
	/* A quarter of each new reading: at two a second most of a step is seen after three seconds. */
	if (device->utilization < 0)
		use->smooth = use->percent = PROBE_UNKNOWN;
	else if (use->smooth < 0)
		use->smooth = device->utilization * 256;
	else
		use->smooth += (device->utilization * 256 - use->smooth) / 4;
	int32_t percent = use->smooth < 0 ? PROBE_UNKNOWN : (use->smooth + 128) / 256;
	if (percent >= 0 && (use->percent < 0 || percent - use->percent >= PICTURE_PERCENT_NEWS ||
			     use->percent - percent >= PICTURE_PERCENT_NEWS))
		use->percent = (int32_t)rounded(percent, PICTURE_PERCENT_STEP, 100);

	use->mib = device->memory_used_mib;
	if (use->mib < 0)
		use->said_mib = PROBE_UNKNOWN;
	else if (use->said_mib < 0 || use->mib - use->said_mib >= PICTURE_MIB_NEWS ||
		 use->said_mib - use->mib >= PICTURE_MIB_NEWS)
		use->said_mib = rounded(use->mib, PICTURE_MIB_STEP, STATUS_MIB_MAX);
}

static int64_t rounded(int64_t value, int64_t step, int64_t most)
{
	int64_t near = (value + step / 2) / step * step;
	return near < most ? near : most;
}
