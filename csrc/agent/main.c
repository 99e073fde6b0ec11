/* SPDX-License-Identifier: Apache-2.0 */
/* frond-agent: command line, environment and signals; everything else is in agent.c. */
#include "agent/agent.h"

#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

enum exit_code { EXIT_ANSWERED = 0, EXIT_NO_ANSWER = 1, EXIT_USAGE = 2 };

static int once(const struct agent_options *options);

static void end_now(int number)
{
	(void)number;
	_exit(EXIT_ANSWERED);
}

int main(int argc, char *argv[])
{
	struct agent_options options;
	struct complaint complaint;
	const struct agent_environment environment = {.node_name = getenv("NODE_NAME"),
						      .service_host = getenv("KUBERNETES_SERVICE_HOST"),
						      .service_port = getenv("KUBERNETES_SERVICE_PORT")};
	if (agent_options_read(argc, argv, &environment, &options, &complaint) != FROND_OK) {
		fprintf(stderr, "frond-agent: %s\n", complaint.text);
		return EXIT_USAGE;
	}
	if (options.verb == AGENT_HELP) {
		fputs(agent_help, stdout);
		return EXIT_ANSWERED;
	}
	mallopt(M_ARENA_MAX, 1); /* two threads that rarely allocate: a second arena is only memory */
	if (options.verb == AGENT_ONCE)
		return once(&options);

	/* Blocked before there is a thread, so that all inherit it and the signals come as something to read. */
	sigset_t ends;
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGALRM, end_now); /* asked to end, and the driver does not let us */
	sigprocmask(SIG_BLOCK, &ends, NULL);
	int signals = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0 || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
		fprintf(stderr, "frond-agent: cannot start: out of descriptors or memory\n");
		return EXIT_NO_ANSWER;
	}
	bool ran = agent_run(&options, signals);
	curl_global_cleanup();
	close(signals);
	return ran ? EXIT_ANSWERED : EXIT_NO_ANSWER;
}

static int print_status(const struct probe_report *report)
{
	int code = EXIT_NO_ANSWER;
	struct status *status = calloc(1, sizeof(*status));
	cJSON *json = NULL;
	char *text = NULL;
	if (status != NULL) {
		status_from(report, (int64_t)time(NULL), status);
		json = status_json(status);
		text = json == NULL ? NULL : cJSON_Print(json);
	}
	if (text == NULL)
		fprintf(stderr, "frond-agent: out of memory\n");
	else if (puts(text) >= 0 && fflush(stdout) == 0)
		code = EXIT_ANSWERED;
	free(text);
	cJSON_Delete(json);
	free(status);
	return code;
}

static int once(const struct agent_options *options)
{
	const struct probe_options probe = {.nvml = options->nvml, .hwloc_xml = options->hwloc_xml};
	struct worker *worker = worker_start(&probe);
	if (worker == NULL) {
		fprintf(stderr, "frond-agent: out of memory, threads or descriptors\n");
		return EXIT_NO_ANSWER;
	}
	struct pollfd answer = {.fd = worker_fd(worker), .events = POLLIN};
	worker_ask(worker, PROBE_ALL);
	poll(&answer, 1, AGENT_HANG_MS);
	const struct probe_report *report = worker_take(worker);
	if (report == NULL) {
		fprintf(stderr, "frond-agent: the driver has not come back from a call for %d s\n",
			AGENT_HANG_MS / 1000);
		fflush(NULL);
		_exit(EXIT_NO_ANSWER); /* the thread is still inside the driver */
	}
	int code = EXIT_NO_ANSWER;
	if (report->state == PROBE_OK)
		code = print_status(report);
	else
		fprintf(stderr, "frond-agent: %s\n", report->reason);
	worker_stop(worker);
	return code;
}
