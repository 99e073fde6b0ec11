/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.h - one request at a time to the Kubernetes API: server-side apply, or a read, by libcurl, without ever blocking.
 * Owns the connection and the credentials. Decides nothing about when to try again.
 *
 * The token goes to the configured address only: https, verified by the configured CA alone, no proxy, no redirect.
 */
#ifndef FROND_AGENT_API_H
#define FROND_AGENT_API_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

#define API_TIMEOUT_MS 10000 /* of a whole request: a slower server has no use for our reports either */

/* clang-format off */
#define API_ANSWERS(X) \
	X(API_OK, "ok") X(API_MISSING, "not_found") X(API_CONFLICT, "conflict") X(API_UNAUTHORIZED, "unauthorized") \
	X(API_THROTTLED, "throttled") X(API_REFUSED, "refused") X(API_SERVER, "server_error") \
	X(API_TLS, "tls_error") X(API_UNREACHABLE, "unreachable") X(API_NO_CREDENTIALS, "no_credentials")
/* clang-format on */

enum api_answer {
#define X(name, word) name,
	API_ANSWERS(X)
#undef X
		API_ANSWER_COUNT,
};

struct api_result {
	enum api_answer answer;
	bool created;          /* it was not there before */
	int64_t retry_after_s; /* 0: the server did not say */
	char text[200];        /* why, for a log: one printable line, without credentials */
};

struct api;

/* Keeps the pointers. NULL: out of memory. */
struct api *api_open(const char *url, const char *token_file, const char *ca_file);

/* Begins PATCH url+path as manager frond-agent. Takes body, which came from malloc. Nothing else may be under way. */
void api_apply(struct api *api, const char *path, char *body);

/* Begins GET url+path: the object, or only its metadata, which is all that most objects are asked for. */
void api_get(struct api *api, const char *path, bool metadata_only);

/* What the last api_get() brought; "" when it brought nothing. Valid until the next request. */
const char *api_body(const struct api *api);

/* Waits for the request, the descriptors or the time, whatever comes first. */
void api_wait(struct api *api, struct curl_waitfd *fds, uint32_t count, int64_t wait_ms);

/* true: the request that was begun has ended. */
bool api_done(struct api *api, struct api_result *out);

void api_close(struct api *api);

const char *api_answer_word(enum api_answer answer);

#endif
