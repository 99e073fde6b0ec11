/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/worker.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define STACK_BYTES (512u << 10) /* the probe's deepest frames are a few KiB; a driver's are not ours to know */

enum step { STEP_FREE, STEP_ASKED, STEP_READING, STEP_ANSWERED, STEP_END };

struct worker {
	pthread_mutex_t lock; /* guards step and depth; the report belongs to the thread from ASKED to ANSWERED */
	pthread_cond_t asked;
	pthread_t thread;
	int fd;
	enum step step;
	enum probe_depth depth;
	struct probe *probe;
	struct probe_report report;
};

static void *work(void *argument)
{
	struct worker *worker = argument;
	pthread_mutex_lock(&worker->lock);
	for (;;) {
		while (worker->step != STEP_ASKED && worker->step != STEP_END)
			pthread_cond_wait(&worker->asked, &worker->lock);
		if (worker->step == STEP_END)
			break;
		worker->step = STEP_READING;
		pthread_mutex_unlock(&worker->lock);
		probe_read(worker->probe, worker->depth, &worker->report);
		pthread_mutex_lock(&worker->lock);
		worker->step = STEP_ANSWERED;
		eventfd_write(worker->fd, 1);
	}
	pthread_mutex_unlock(&worker->lock);
	return NULL;
}

struct worker *worker_start(const struct probe_options *options)
{
	pthread_attr_t attributes;
	struct worker *worker = calloc(1, sizeof(*worker));
	if (worker == NULL)
		return NULL;
	worker->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	worker->probe = probe_open(options);
	if (worker->fd < 0 || worker->probe == NULL || pthread_attr_init(&attributes) != 0)
		goto fail;
	pthread_mutex_init(&worker->lock, NULL);
	pthread_cond_init(&worker->asked, NULL);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	int code = pthread_create(&worker->thread, &attributes, work, worker);
	pthread_attr_destroy(&attributes);
	if (code == 0)
		return worker;
fail:
	if (worker->fd >= 0)
		close(worker->fd);
	probe_close(worker->probe);
	free(worker);
	return NULL;
}

int worker_fd(const struct worker *worker)
{
	return worker->fd;
}

static enum step step_of(struct worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	enum step step = worker->step;
	pthread_mutex_unlock(&worker->lock);
	return step;
}

bool worker_free(struct worker *worker)
{
	return step_of(worker) == STEP_FREE;
}

void worker_ask(struct worker *worker, enum probe_depth depth)
{
	pthread_mutex_lock(&worker->lock);
	if (worker->step == STEP_FREE) {
		worker->step = STEP_ASKED;
		worker->depth = depth;
		pthread_cond_signal(&worker->asked);
	}
	pthread_mutex_unlock(&worker->lock);
}

const struct probe_report *worker_take(struct worker *worker)
{
	const struct probe_report *report = NULL;
	pthread_mutex_lock(&worker->lock);
	if (worker->step == STEP_ANSWERED) {
		eventfd_t count;
		eventfd_read(worker->fd, &count);
		worker->step = STEP_FREE;
		report = &worker->report;
	}
	pthread_mutex_unlock(&worker->lock);
	return report;
}

bool worker_stop(struct worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	bool inside = worker->step == STEP_ASKED || worker->step == STEP_READING;
	if (!inside) {
		worker->step = STEP_END;
		pthread_cond_signal(&worker->asked);
	}
	pthread_mutex_unlock(&worker->lock);
	if (inside)
		return false;
	pthread_join(worker->thread, NULL);
	pthread_cond_destroy(&worker->asked);
	pthread_mutex_destroy(&worker->lock);
	probe_close(worker->probe);
	close(worker->fd);
	free(worker);
	return true;
}
