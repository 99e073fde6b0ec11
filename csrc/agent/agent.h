/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent.h - the loop of frond-agent: looks at the GPUs, writes what is news, answers who asks how it is. Owns all its
 * parts and the only thread beside the worker's. Ends by a signal, by nothing else.
 */
#ifndef FROND_AGENT_H
#define FROND_AGENT_H

#include "agent/api.h"
#include "agent/lease.h"
#include "agent/object.h"
#include "agent/options.h"
#include "agent/pace.h"
#include "agent/picture.h"
#include "agent/serve.h"
#include "agent/worker.h"

#define AGENT_HANG_MS  10000 /* a read that takes longer is a driver that hangs */
#define AGENT_WHOLE_MS 60000 /* between two reads of everything; those between ask only what changes */

/* A report that says nothing new is written once in ten heartbeats, or in this if that is less. */
#define AGENT_REPORT_BEATS 10
#define AGENT_REPORT_MS    300000
#define AGENT_LEASE_TRIES  3 /* that the API server answered, but did not take: then reports say that we live */

/* What is under way at the API server. In this order at the start: what was reported before, the node that owns the object,
 * the object, its status, the Lease. */
enum agent_request { REQUEST_NONE, REQUEST_RECALL, REQUEST_NODE, REQUEST_OBJECT, REQUEST_STATUS, REQUEST_LEASE };

/* Something that is written again and again: when, and what the log says about it. */
struct agent_channel {
	const char *name;
	struct pace pace;
	bool said_failure;
	enum api_answer said; /* the last failure that was logged */
	int64_t accepted_s;   /* since 1970; 0: never */
};

struct agent_counts {
	uint64_t reads, hangs;
	uint64_t failed_calls; /* of the last read */
	uint64_t all_failed_calls;
	uint64_t answers[API_ANSWER_COUNT];
	int64_t read_ms; /* how long the last one took */
};

struct agent {
	const struct agent_options *options;
	int signals;
	struct worker *worker;
	struct api *api;
	struct serve serve;
	struct picture picture;
	struct agent_channel report, lease;
	struct agent_counts counts;

	int64_t look_at_ms, asked_ms, whole_ms;
	bool seen; /* a first answer came */
	bool hung;
	enum probe_state state;

	enum agent_request request;
	bool recalled; /* what an earlier agent reported is known, or there is nothing to know */
	bool object_there;
	bool owner_asked;
	char owner[OBJECT_UID_ROOM]; /* uid of the node; "": may not be read */
	bool reported;               /* the last report was accepted; without it no Lease may say that all is well */
	uint32_t lease_failures;     /* that the API server answered, since the last success */
	bool beat_by_report;         /* the Lease was not taken, so a report is due in its place */
};

/* Runs until one of the signals of the descriptor comes; false: could not start, and why is on stderr. */
bool agent_run(const struct agent_options *options, int signals);

/* metrics.c: the page in Prometheus' text format. */
void agent_metrics(void *agent, char *text);

#endif
