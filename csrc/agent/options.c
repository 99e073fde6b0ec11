/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/options.h"

#include "text/kubename.h"

#include <stdio.h>
#include <string.h>

#define HINT    "; try frond-agent --help"
#define ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount/"

#define INTERVAL_MIN_MS  1
#define INTERVAL_MAX_MS  60000
#define HEARTBEAT_MIN_MS 1000
#define HEARTBEAT_MAX_MS 80000 /* the scheduler calls an agent silent after 90 s */

const char agent_help[] =
	"frond-agent - reports the GPUs of this node as the GpuNodeStatus object that has the node's name, and renews\n"
	"the Lease gns-NODE in frond-system as long as it lives\n"
	"\n"
	"usage: frond-agent [--node NAME] [--api URL] [--listen ADDRESS:PORT]\n"
	"       frond-agent --once\n"
	"\n"
	"  --node NAME            the node; default: NODE_NAME of the environment\n"
	"  --api URL              https://HOST[:PORT]; default: from KUBERNETES_SERVICE_HOST and _PORT\n"
	"  --token-file FILE      bearer token, read again when it changes; default: the service account's\n"
	"  --ca-file FILE         whom to trust, read again when it changes; default: the service account's\n"
	"  --nvml FILE            the driver's library; default: libnvidia-ml.so.1 where the loader finds it\n"
	"  --hwloc-xml FILE       a machine described by hwloc instead of this one\n"
	"  --listen ADDRESS:PORT  /healthz and /metrics; default 127.0.0.1:9417, none: not served\n"
	"  --interval TIME        between two looks at the GPUs, 1ms to 60s; default 500ms\n"
	"  --heartbeat TIME       the Lease is renewed at least this often, 1s to 80s; default 30s. A report without "
	"news\n"
	"                         is written once in ten of these, or every 5 min if that is sooner\n"
	"  --once                 prints the status as JSON and ends; needs no API server\n"
	"  --help                 this text\n"
	"\n"
	"exit: 0 ended by SIGTERM or SIGINT, or --once had an answer; 1 --once had none, with the reason on stderr;\n"
	"2 wrong usage. Nothing that the driver or the API server does ends it.\n";

struct flag {
	const char *name;
	const char **value;
};

static int32_t flags_read(int argc, char *const argv[], const struct flag *flags, uint32_t count,
			  struct agent_options *out, struct complaint *complaint);
static int32_t node_read(const char *value, const struct agent_environment *environment, struct agent_options *out,
			 struct complaint *complaint);
static int32_t api_read(const char *value, const struct agent_environment *environment, struct agent_options *out,
			struct complaint *complaint);
static int32_t listen_read(const char *value, struct agent_options *out, struct complaint *complaint);
static int32_t time_read(const char *flag, const char *value, int64_t least, int64_t most, int64_t *out_ms,
			 struct complaint *complaint);
static struct shown quoted(const char *text);

int32_t agent_options_read(int argc, char *const argv[], const struct agent_environment *environment,
			   struct agent_options *out, struct complaint *complaint)
{
	const char *node = NULL, *api = NULL, *listen = NULL, *interval = NULL, *heartbeat = NULL;
	memset(out, 0, sizeof(*out));
	const struct flag flags[] = {{"--node", &node},
				     {"--api", &api},
				     {"--token-file", &out->token_file},
				     {"--ca-file", &out->ca_file},
				     {"--nvml", &out->nvml},
				     {"--hwloc-xml", &out->hwloc_xml},
				     {"--listen", &listen},
				     {"--interval", &interval},
				     {"--heartbeat", &heartbeat}};
	if (flags_read(argc, argv, flags, sizeof(flags) / sizeof(flags[0]), out, complaint) != FROND_OK)
		return FROND_BAD;
	if (out->verb == AGENT_HELP)
		return FROND_OK;
	if (out->token_file == NULL)
		out->token_file = ACCOUNT "token";
	if (out->ca_file == NULL)
		out->ca_file = ACCOUNT "ca.crt";
	out->interval_ms = 500; /* so that a death is known to the scheduler within a second */
	out->heartbeat_ms = 30000;
	if (time_read("--interval", interval, INTERVAL_MIN_MS, INTERVAL_MAX_MS, &out->interval_ms, complaint) ||
	    time_read("--heartbeat", heartbeat, HEARTBEAT_MIN_MS, HEARTBEAT_MAX_MS, &out->heartbeat_ms, complaint) ||
	    listen_read(listen == NULL ? "127.0.0.1:9417" : listen, out, complaint))
		return FROND_BAD;
	if (out->verb == AGENT_ONCE)
		return FROND_OK;
	if (node_read(node, environment, out, complaint) != FROND_OK)
		return FROND_BAD;
	return api_read(api, environment, out, complaint);
}

/* "FLAG VALUE" and "FLAG=VALUE", each once. */
static int32_t flags_read(int argc, char *const argv[], const struct flag *flags, uint32_t count,
			  struct agent_options *out, struct complaint *complaint)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			out->verb = AGENT_HELP;
			return FROND_OK;
		}
		if (strcmp(argv[i], "--once") == 0) {
			out->verb = AGENT_ONCE;
			continue;
		}
		uint32_t f = 0;
		uint64_t len = 0;
		for (; f < count; f++) {
			len = strlen(flags[f].name);
			if (strncmp(argv[i], flags[f].name, len) == 0 && (argv[i][len] == '\0' || argv[i][len] == '='))
				break;
		}
		if (f == count)
			return complain(complaint, 0, "\"%s\" is not a flag" HINT, quoted(argv[i]).text);
		if (*flags[f].value != NULL)
			return complain(complaint, 0, "%s is given twice" HINT, flags[f].name);
		if (argv[i][len] == '=')
			*flags[f].value = argv[i] + len + 1;
		else if (i + 1 < argc)
			*flags[f].value = argv[++i];
		if (*flags[f].value == NULL || **flags[f].value == '\0')
			return complain(complaint, 0, "%s needs a value" HINT, flags[f].name);
	}
	return FROND_OK;
}

static int32_t node_read(const char *value, const struct agent_environment *environment, struct agent_options *out,
			 struct complaint *complaint)
{
	const char *from = value == NULL ? "NODE_NAME" : "--node";
	if (value == NULL)
		value = environment->node_name;
	if (value == NULL)
		return complain(complaint, 0, "--node is missing, and so is NODE_NAME in the environment" HINT);
	if (!is_node_name(value, strlen(value)))
		return complain(complaint, 0, "%s must be " NODE_NAME_RULE ", got \"%s\"", from, quoted(value).text);
	snprintf(out->node, sizeof(out->node), "%s", value);
	return FROND_OK;
}

/* The token goes there, so nothing but https, and nothing that could lead elsewhere: user, path, query. */
static int32_t api_read(const char *value, const struct agent_environment *environment, struct agent_options *out,
			struct complaint *complaint)
{
	char made[OPTIONS_URL_ROOM];
	if (value == NULL) {
		const char *host = environment->service_host, *port = environment->service_port;
		if (host == NULL || port == NULL)
			return complain(complaint, 0,
					"--api is missing, and so are KUBERNETES_SERVICE_HOST and "
					"KUBERNETES_SERVICE_PORT in the environment" HINT);
		bool v6 = strchr(host, ':') != NULL;
		int written =
			snprintf(made, sizeof(made), "https://%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "", port);
		if (written < 0 || (uint32_t)written >= sizeof(made))
			return complain(complaint, 0, "KUBERNETES_SERVICE_HOST is too long");
		value = made;
	}
	static const char scheme[] = "https://";
	uint64_t len = strlen(value), begin = sizeof(scheme) - 1;
	if (len > begin && value[len - 1] == '/')
		len--;
	bool good = len > begin && len < sizeof(out->api) && strncmp(value, scheme, begin) == 0;
	for (uint64_t i = begin; good && i < len; i++)
		good = (value[i] >= 'a' && value[i] <= 'z') || (value[i] >= 'A' && value[i] <= 'Z') ||
		       (value[i] >= '0' && value[i] <= '9') || strchr("-.:[]", value[i]) != NULL;
	if (!good)
		return complain(complaint, 0, "--api must be https://HOST or https://HOST:PORT, got \"%s\"",
				quoted(value).text);
	memcpy(out->api, value, len);
	return FROND_OK;
}

/* ADDRESS:PORT; the last colon parts them, so that IPv6 works with brackets and without. */
static int32_t listen_read(const char *value, struct agent_options *out, struct complaint *complaint)
{
	if (strcmp(value, "none") == 0)
		return FROND_OK;
	const char *colon = strrchr(value, ':');
	const char *begin = value[0] == '[' ? value + 1 : value;
	const char *end = colon != NULL && value[0] == '[' && colon[-1] == ']' ? colon - 1 : colon;
	uint32_t port = 0;
	uint64_t digits = colon == NULL ? 0 : strspn(colon + 1, "0123456789");
	for (uint64_t i = 0; i < digits && i < 6; i++)
		port = port * 10 + (uint32_t)(colon[1 + i] - '0');
	if (colon == NULL || digits == 0 || digits > 5 || colon[1 + digits] != '\0' || port == 0 || port > 65535 ||
	    end <= begin || (uint64_t)(end - begin) >= sizeof(out->host))
		return complain(complaint, 0, "--listen must be ADDRESS:PORT or none, got \"%s\"", quoted(value).text);
	memcpy(out->host, begin, (uint64_t)(end - begin));
	out->port = (uint16_t)port;
	return FROND_OK;
}

static int32_t time_read(const char *flag, const char *value, int64_t least, int64_t most, int64_t *out_ms,
			 struct complaint *complaint)
{
	static const struct {
		const char *name;
		int64_t ms;
	} units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}};
	if (value == NULL)
		return FROND_OK;
	uint64_t digits = strspn(value, "0123456789");
	int64_t number = 0;
	for (uint64_t i = 0; i < digits && i < 7; i++)
		number = number * 10 + (value[i] - '0');
	for (uint32_t u = 0; u < 3; u++)
		if (digits > 0 && digits < 7 && strcmp(value + digits, units[u].name) == 0 &&
		    number * units[u].ms >= least && number * units[u].ms <= most) {
			*out_ms = number * units[u].ms;
			return FROND_OK;
		}
	return complain(complaint, 0, "%s must be a time like 500ms or 30s between %dms and %ds, got \"%s\"", flag,
			(int)least, (int)(most / 1000), quoted(value).text);
}

static struct shown quoted(const char *text)
{
	return shown(text, strlen(text));
}
