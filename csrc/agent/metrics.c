/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

struct page {
	char *text;
	uint32_t len;
};

/* What does not fit is left out; the page is far smaller than its room. */
__attribute__((format(printf, 2, 3))) static void put(struct page *page, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int n = vsnprintf(page->text + page->len, SERVE_TEXT_MAX - page->len, format, arguments);
	va_end(arguments);
	if (n > 0 && (uint32_t)n < SERVE_TEXT_MAX - page->len)
		page->len += (uint32_t)n;
	else
		page->text[page->len] = '\0';
}

static void head(struct page *page, const char *name, const char *type, const char *help)
{
	put(page, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_driver(struct page *page, const struct agent *agent)
{
	static const char *const words[] = {"ok", "no_library", "no_driver", "broken", "hung", "not_asked"};
	uint32_t state = agent->hung ? 4 : !agent->seen ? 5 : (uint32_t)agent->state;
	head(page, "frond_agent_driver_state", "gauge", "1 for what the GPU driver is, as last heard.");
	for (uint32_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		put(page, "frond_agent_driver_state{state=\"%s\"} %d\n", words[i], i == state);
}

static void put_devices(struct page *page, const struct agent *agent)
{
	static const char *const words[] = {"Unknown", "Healthy", "Unhealthy"};
	uint32_t counts[3] = {0};
	for (uint32_t i = 0; i < agent->picture.now.device_count; i++)
		counts[agent->picture.now.devices[i].health]++;
	head(page, "frond_agent_devices", "gauge", "GPUs by health, as reported.");
	for (uint32_t i = 0; i < 3; i++)
		put(page, "frond_agent_devices{health=\"%s\"} %" PRIu32 "\n", words[i], counts[i]);
}

static void put_process(struct page *page)
{
	struct rusage used;
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");
	if (file != NULL) {
		if (fscanf(file, "%*u %lu", &pages) != 1)
			pages = 0;
		fclose(file);
	}
	head(page, "process_resident_memory_bytes", "gauge", "Memory in use.");
	put(page, "process_resident_memory_bytes %lu\n", pages * (unsigned long)sysconf(_SC_PAGESIZE));
	if (getrusage(RUSAGE_SELF, &used) != 0)
		return;
	int64_t us = (int64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 + used.ru_utime.tv_usec +
		     used.ru_stime.tv_usec;
	head(page, "process_cpu_seconds_total", "counter", "Time of the processor used.");
	put(page, "process_cpu_seconds_total %" PRId64 ".%06" PRId64 "\n", us / 1000000, us % 1000000);
}

void agent_metrics(void *argument, char *text)
{
	const struct agent *agent = argument;
	const struct agent_counts *counts = &agent->counts;
	struct page page = {.text = text};
	put_driver(&page, agent);
	put_devices(&page, agent);
	head(&page, "frond_agent_reporting", "gauge", "0: no GPU was ever seen, so there is nothing to report.");
	put(&page, "frond_agent_reporting %d\n", agent->picture.good);
	head(&page, "frond_agent_reads_total", "counter", "Looks at the GPUs that ended.");
	put(&page, "frond_agent_reads_total %" PRIu64 "\n", counts->reads);
	head(&page, "frond_agent_read_milliseconds", "gauge", "How long the last look took.");
	put(&page, "frond_agent_read_milliseconds %" PRId64 "\n", counts->read_ms);
	head(&page, "frond_agent_failed_calls", "gauge", "Driver calls that failed in the last look.");
	put(&page, "frond_agent_failed_calls %" PRIu64 "\n", counts->failed_calls);
	head(&page, "frond_agent_failed_calls_total", "counter", "Driver calls that failed.");
	put(&page, "frond_agent_failed_calls_total %" PRIu64 "\n", counts->all_failed_calls);
	head(&page, "frond_agent_hangs_total", "counter", "Looks that took longer than the watchdog allows.");
	put(&page, "frond_agent_hangs_total %" PRIu64 "\n", counts->hangs);
	head(&page, "frond_agent_requests_total", "counter", "Requests to the API server by their answer.");
	for (uint32_t i = 0; i < API_ANSWER_COUNT; i++)
		put(&page, "frond_agent_requests_total{answer=\"%s\"} %" PRIu64 "\n", api_answer_word(i),
		    counts->answers[i]);
	head(&page, "frond_agent_accepted_timestamp_seconds", "gauge", "When a report was last accepted; 0: never.");
	put(&page, "frond_agent_accepted_timestamp_seconds %" PRId64 "\n", agent->report.accepted_s);
	head(&page, "frond_agent_renewed_timestamp_seconds", "gauge", "When the Lease was last renewed; 0: never.");
	put(&page, "frond_agent_renewed_timestamp_seconds %" PRId64 "\n", agent->lease.accepted_s);
	put_process(&page);
}
