/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - frond-agent's command line and the few things it takes from the environment of its pod, read into a struct
 * or refused with one line. Owns usage and defaults; opens nothing. The environment comes as an argument.
 */
#ifndef FROND_AGENT_OPTIONS_H
#define FROND_AGENT_OPTIONS_H

#include "text/words.h"

#define OPTIONS_NODE_ROOM 254u
#define OPTIONS_URL_ROOM  300u
#define OPTIONS_HOST_ROOM 64u

enum agent_verb { AGENT_RUN, AGENT_ONCE, AGENT_HELP };

struct agent_options { /* pointers are those of argv */
	enum agent_verb verb;
	char node[OPTIONS_NODE_ROOM];
	char api[OPTIONS_URL_ROOM]; /* https://HOST:PORT, no "/" at the end */
	const char *token_file, *ca_file;
	const char *nvml, *hwloc_xml; /* NULL: as the machine has them */
	char host[OPTIONS_HOST_ROOM]; /* to listen on: a numeric address */
	uint16_t port;                /* 0: not served */
	int64_t interval_ms, heartbeat_ms;
};

struct agent_environment { /* NULL: not set */
	const char *node_name, *service_host, *service_port;
};

extern const char agent_help[];

int32_t agent_options_read(int argc, char *const argv[], const struct agent_environment *environment,
			   struct agent_options *out, struct complaint *complaint);

#endif
