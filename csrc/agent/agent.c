/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent.h"

#include "agent/pages.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define STOP_S     3
#define HANG_WORDS "the driver has not come back from a call for %d s"

static bool start(struct agent *agent);
static void look(struct agent *agent, int64_t now_ms);
static void taken(struct agent *agent, const struct probe_report *report, int64_t now_ms);
static void request_step(struct agent *agent, int64_t now_ms);
static void answered(struct agent *agent, const struct api_result *result, int64_t now_ms);
static void report_answered(struct agent *agent, enum agent_request what, const struct api_result *result,
			    int64_t now_ms);
static void lease_answered(struct agent *agent, const struct api_result *result, int64_t now_ms);
static int64_t wait_ms(struct agent *agent, int64_t now_ms);
static bool wait_for_something(struct agent *agent, int64_t now_ms);
static void stop(struct agent *agent);

static int64_t clock_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t clock_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

bool agent_run(const struct agent_options *options, int signals)
{
	struct agent *agent = calloc(1, sizeof(*agent));
	bool good = false;
	if (agent == NULL) {
		fprintf(stderr, "frond-agent: out of memory\n");
		return false;
	}
	agent->options = options;
	agent->signals = signals;
	serve_start(&agent->serve);
	picture_start(&agent->picture);
	if (!start(agent))
		goto out;
	good = true;
	for (;;) {
		int64_t now_ms = clock_ms();
		look(agent, now_ms);
		request_step(agent, now_ms);
		serve_step(&agent->serve, now_ms, agent_metrics, agent);
		if (!wait_for_something(agent, now_ms))
			break;
	}
out:
	stop(agent);
	return good;
}

/* Between two reports that say nothing new. The pace takes up to a tenth off, and that is given here: not before its time. */
static int64_t report_period_ms(int64_t heartbeat_ms)
{
	int64_t period = heartbeat_ms * AGENT_REPORT_BEATS;
	return (period < AGENT_REPORT_MS ? period : AGENT_REPORT_MS) * 10 / 9;
}

static bool start(struct agent *agent)
{
	const struct agent_options *options = agent->options;
	const struct probe_options probe = {.nvml = options->nvml, .hwloc_xml = options->hwloc_xml};
	int64_t now_ms = clock_ms();
	uint64_t seed = 0;
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = (uint64_t)now_ms ^ (uint64_t)getpid() << 32;
	agent->report.name = "report";
	agent->lease.name = "Lease";
	pace_start(&agent->report.pace, report_period_ms(options->heartbeat_ms), seed, now_ms);
	pace_start(&agent->lease.pace, options->heartbeat_ms, ~seed, now_ms);
	agent->look_at_ms = now_ms;
	agent->worker = worker_start(&probe);
	agent->api = api_open(options->api, options->token_file, options->ca_file);
	if (agent->worker == NULL || agent->api == NULL) {
		fprintf(stderr, "frond-agent: out of memory, threads or descriptors\n");
		return false;
	}
	if (options->port != 0 && !serve_listen(&agent->serve, options->host, options->port)) {
		fprintf(stderr, "frond-agent: --listen: cannot listen on %s port %u: %s\n", options->host,
			options->port, strerror(errno));
		return false;
	}
	fprintf(stderr, "frond-agent: reports node %s to %s\n", options->node, options->api);
	return true;
}

static void stop(struct agent *agent)
{
	serve_end(&agent->serve);
	if (agent->api != NULL)
		api_close(agent->api);
	alarm(STOP_S); /* closing the driver may hang as well; main() ends us then */
	if (agent->worker != NULL && !worker_stop(agent->worker)) {
		/* A thread inside the driver uses what exit() would take down. */
		fflush(NULL);
		_exit(0);
	}
	alarm(0);
	picture_end(&agent->picture);
	free(agent);
}

/* ---- looking ----------------------------------------------------------------------------------------------------- */

static void doubt_hung(struct agent *agent)
{
	char why[STATUS_REASON_MAX];
	snprintf(why, sizeof(why), HANG_WORDS, AGENT_HANG_MS / 1000);
	picture_doubt(&agent->picture, why);
}

static void look(struct agent *agent, int64_t now_ms)
{
	const struct probe_report *report = worker_take(agent->worker);
	if (report != NULL)
		taken(agent, report, now_ms);
	if (!worker_free(agent->worker)) {
		if (!agent->hung && now_ms - agent->asked_ms >= AGENT_HANG_MS) {
			agent->hung = true;
			agent->counts.hangs++;
			doubt_hung(agent);
			fprintf(stderr, "frond-agent: " HANG_WORDS "\n", AGENT_HANG_MS / 1000);
		}
		return;
	}
	if (now_ms < agent->look_at_ms)
		return;
	bool whole = agent->picture.doubted || !agent->picture.good || now_ms - agent->whole_ms >= AGENT_WHOLE_MS;
	if (whole)
		agent->whole_ms = now_ms;
	agent->asked_ms = now_ms;
	agent->look_at_ms = now_ms + agent->options->interval_ms;
	worker_ask(agent->worker, whole ? PROBE_ALL : PROBE_CHANGES);
}

static void taken(struct agent *agent, const struct probe_report *report, int64_t now_ms)
{
	bool news = !agent->seen || agent->hung || report->state != agent->state;
	agent->counts.reads++;
	agent->counts.failed_calls = report->failures_found;
	agent->counts.all_failed_calls += report->failures_found;
	agent->counts.read_ms = now_ms - agent->asked_ms;
	agent->seen = true;
	agent->hung = false;
	agent->state = report->state;
	picture_take(&agent->picture, report);
	if (!news)
		return;
	pages_drop(); /* what it took to start, or to read everything */
	if (report->state == PROBE_OK)
		fprintf(stderr, "frond-agent: %" PRIu32 " GPUs, driver %s\n", report->gpu_count, report->driver);
	else
		fprintf(stderr, "frond-agent: %s; %s\n", report->reason,
			agent->picture.good ? "the last known GPUs are reported as unknown"
					    : "no GPU was ever seen, so nothing is reported");
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static int64_t report_wait_ms(const struct agent *agent, int64_t now_ms)
{
	enum pace_news news = PACE_NO_NEWS;
	if (!agent->recalled || agent->beat_by_report || picture_worse(&agent->picture))
		news = PACE_BAD_NEWS;
	else if (!agent->reported || picture_changed(&agent->picture))
		news = PACE_NEWS;
	return pace_wait_ms(&agent->report.pace, news, now_ms);
}

/* What is to be asked or said next, and in how long. Of two that are due the report goes first, and a Lease says that the
 * report is what we see: it waits for one that was not accepted. */
static enum agent_request request_next(const struct agent *agent, int64_t now_ms, int64_t *wait_ms)
{
	*wait_ms = report_wait_ms(agent, now_ms);
	if (!agent->recalled)
		return REQUEST_RECALL;
	if (!agent->picture.good)
		return REQUEST_NONE;
	if (!agent->object_there)
		return agent->owner_asked ? REQUEST_OBJECT : REQUEST_NODE;
	int64_t lease_ms = pace_wait_ms(&agent->lease.pace, PACE_NO_NEWS, now_ms);
	int64_t server_ms = pace_wait_ms(&agent->report.pace, PACE_BAD_NEWS, now_ms);
	lease_ms = lease_ms < server_ms ? server_ms : lease_ms;
	if (!agent->reported || agent->beat_by_report || lease_ms >= *wait_ms)
		return REQUEST_STATUS;
	*wait_ms = lease_ms;
	return REQUEST_LEASE;
}

static char *status_body(struct agent *agent)
{
	struct picture *picture = &agent->picture;
	picture_write(picture);
	picture->written.heartbeat_s = (int64_t)time(NULL);
	char *body = object_body(agent->options->node, "", &picture->written);
	picture->written.heartbeat_s = PROBE_UNKNOWN;
	return body;
}

static void request_begin(struct agent *agent, enum agent_request what, int64_t now_ms)
{
	char path[OBJECT_PATH_ROOM];
	const char *node = agent->options->node;
	char *body = NULL;
	if (what == REQUEST_NODE)
		object_node_path(node, path);
	else if (what == REQUEST_LEASE)
		lease_path(node, path);
	else
		object_path(node, what == REQUEST_STATUS, path);
	if (what == REQUEST_RECALL || what == REQUEST_NODE) {
		agent->request = what;
		api_get(agent->api, path, what == REQUEST_NODE);
		return;
	}
	if (what == REQUEST_STATUS)
		body = status_body(agent);
	else if (what == REQUEST_LEASE)
		body = lease_body(node, agent->owner, clock_us());
	else
		body = object_body(node, agent->owner, NULL);
	if (body == NULL) { /* out of memory: perhaps not for ever */
		pace_failed(what == REQUEST_LEASE ? &agent->lease.pace : &agent->report.pace, 0, now_ms);
		return;
	}
	agent->request = what;
	api_apply(agent->api, path, body);
}

static void request_step(struct agent *agent, int64_t now_ms)
{
	struct api_result result;
	int64_t wait;
	if (agent->request != REQUEST_NONE && api_done(agent->api, &result))
		answered(agent, &result, now_ms);
	if (agent->request != REQUEST_NONE)
		return;
	enum agent_request next = request_next(agent, now_ms, &wait);
	if (next != REQUEST_NONE && wait == 0)
		request_begin(agent, next, now_ms);
}

/* Seconds since 1970 when this machine was started. */
static int64_t boot_s(void)
{
	struct timespec up;
	clock_gettime(CLOCK_BOOTTIME, &up);
	return (int64_t)time(NULL) - up.tv_sec;
}

static void recall(struct agent *agent)
{
	struct complaint complaint;
	struct status *status = calloc(1, sizeof(*status));
	agent->recalled = true;
	if (status == NULL)
		return;
	if (object_status(api_body(agent->api), status, &complaint) == FROND_OK)
		picture_recall(&agent->picture, status, status->heartbeat_s > boot_s());
	else
		fprintf(stderr, "frond-agent: the report of an earlier agent is not used: %s\n", complaint.text);
	free(status);
	if (agent->hung) /* no look will come that shows what was recalled */
		doubt_hung(agent);
}

/* A read that may not be for good, or whose object is not there, is an answer as well. The node must be there: without it we
 * would make an object that nobody ever deletes. */
static bool read_answered(struct agent *agent, enum agent_request what, enum api_answer answer, bool refused_for_good)
{
	if (answer != API_OK && !refused_for_good && !(answer == API_MISSING && what == REQUEST_RECALL))
		return false;
	if (refused_for_good)
		fprintf(stderr, "frond-agent: may not read %s; goes on without\n",
			what == REQUEST_NODE ? "its node, so the report is not deleted with it" : "its own report");
	if (what == REQUEST_NODE) {
		agent->owner_asked = true;
		if (answer != API_OK || !object_uid(api_body(agent->api), agent->owner))
			agent->owner[0] = '\0';
	} else if (answer == API_OK) {
		recall(agent);
	} else {
		agent->recalled = true;
	}
	return true;
}

static void answered(struct agent *agent, const struct api_result *result, int64_t now_ms)
{
	enum agent_request what = agent->request;
	agent->request = REQUEST_NONE;
	agent->counts.answers[result->answer]++;
	if (what == REQUEST_LEASE)
		lease_answered(agent, result, now_ms);
	else
		report_answered(agent, what, result, now_ms);
}

static void channel_failed(struct agent_channel *channel, const struct api_result *result)
{
	if (!channel->said_failure || channel->said != result->answer)
		fprintf(stderr, "frond-agent: the %s was not accepted, will try again: %s\n", channel->name,
			result->text);
	channel->said_failure = true;
	channel->said = result->answer;
}

static void channel_wrote(struct agent_channel *channel, int64_t now_ms)
{
	if (channel->said_failure)
		fprintf(stderr, "frond-agent: the %s is accepted again\n", channel->name);
	if (channel->said_failure || channel->accepted_s == 0)
		pages_drop(); /* what it took to connect */
	channel->said_failure = false;
	channel->accepted_s = (int64_t)time(NULL);
	pace_wrote(&channel->pace, now_ms);
}

/* Something of ours was deleted: make it again, perhaps for another node. */
static void object_gone(struct agent *agent)
{
	agent->object_there = agent->owner_asked = agent->reported = false;
}

/* What is accepted is followed by the next at once: the pace has not moved. */
static void report_answered(struct agent *agent, enum agent_request what, const struct api_result *result,
			    int64_t now_ms)
{
	bool refused_for_good = pace_refused(&agent->report.pace, result->answer == API_REFUSED, now_ms);
	if (what == REQUEST_STATUS) {
		agent->reported = result->answer == API_OK;
		picture_wrote(&agent->picture, agent->reported);
	}
	if ((what == REQUEST_RECALL || what == REQUEST_NODE) &&
	    read_answered(agent, what, result->answer, refused_for_good))
		return;
	if (result->answer != API_OK) {
		if (result->answer == API_MISSING)
			object_gone(agent);
		pace_failed(&agent->report.pace, result->retry_after_s, now_ms);
		channel_failed(&agent->report, result);
		return;
	}
	if (what == REQUEST_OBJECT) {
		agent->object_there = true;
		return;
	}
	channel_wrote(&agent->report, now_ms);
	if (agent->beat_by_report)
		pace_wrote(&agent->lease.pace, now_ms);
	agent->beat_by_report = false;
}

/* A server that cannot be reached, does not know us or has too much to do would take no report either: reports wait as well.
 * One that takes reports but no Lease (the right to it is not given yet, its namespace is not there) hears from us by reports,
 * as often. */
static void lease_answered(struct agent *agent, const struct api_result *result, int64_t now_ms)
{
	struct agent_channel *lease = &agent->lease;
	enum api_answer answer = result->answer;
	if (answer == API_OK) {
		if (result->created && lease->accepted_s != 0)
			object_gone(agent); /* it was deleted: perhaps with its node, and the report with both */
		agent->lease_failures = 0;
		channel_wrote(lease, now_ms);
		pace_answered(&agent->report.pace);
		return;
	}
	channel_failed(lease, result);
	if (answer == API_MISSING || answer == API_CONFLICT || answer == API_REFUSED || answer == API_SERVER) {
		pace_failed(&lease->pace, result->retry_after_s, now_ms);
		agent->beat_by_report = ++agent->lease_failures >= AGENT_LEASE_TRIES;
	} else {
		pace_failed(&agent->report.pace, result->retry_after_s, now_ms);
	}
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

static int64_t wait_ms(struct agent *agent, int64_t now_ms)
{
	int64_t until = now_ms + 60000;
	if (worker_free(agent->worker))
		until = agent->look_at_ms;
	else if (!agent->hung)
		until = agent->asked_ms + AGENT_HANG_MS;
	int64_t request_ms;
	if (agent->request == REQUEST_NONE && request_next(agent, now_ms, &request_ms) != REQUEST_NONE)
		until = now_ms + request_ms < until ? now_ms + request_ms : until;
	return until > now_ms ? until - now_ms : 0;
}

/* false: a signal says that this is the end. */
static bool wait_for_something(struct agent *agent, int64_t now_ms)
{
	struct curl_waitfd fds[SERVE_FDS_MAX + 2] = {
		{.fd = agent->signals, .events = CURL_WAIT_POLLIN},
		{.fd = worker_fd(agent->worker), .events = CURL_WAIT_POLLIN},
	};
	uint32_t served = serve_fds(&agent->serve, fds + 2);
	int64_t wait = wait_ms(agent, now_ms);
	if (served > 1 && wait > 1000)
		wait = 1000; /* somebody is connected, and our patience ends */
	api_wait(agent->api, fds, served + 2, wait);
	return (fds[0].revents & CURL_WAIT_POLLIN) == 0;
}
