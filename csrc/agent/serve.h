/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.h - GET /healthz and GET /metrics for whoever is near: a few connections, one answer each, never blocking. Owns
 * its sockets. What is asked is bounded and only compared; what is answered comes from the caller.
 */
#ifndef FROND_AGENT_SERVE_H
#define FROND_AGENT_SERVE_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

#define SERVE_CLIENTS_MAX 8u
#define SERVE_FDS_MAX     (SERVE_CLIENTS_MAX + 1)
#define SERVE_ASKED_MAX   2048u /* headers and all */
#define SERVE_TEXT_MAX    8192u
#define SERVE_PATIENCE_MS 5000 /* with a client that does not say or take anything */

struct serve_client {
	int fd; /* -1: free */
	int64_t since_ms;
	uint32_t asked_len, answer_len, answer_sent;
	char asked[SERVE_ASKED_MAX + 1];
	char answer[SERVE_TEXT_MAX + 256];
};

struct serve {
	int fd; /* -1: not served */
	struct serve_client clients[SERVE_CLIENTS_MAX];
};

/* Fills text[0..SERVE_TEXT_MAX) with the page. */
typedef void serve_page(void *context, char *text);

void serve_start(struct serve *serve);

/* false: errno says why. */
bool serve_listen(struct serve *serve, const char *host, uint16_t port);

/* What to wait for; at most SERVE_FDS_MAX of them. */
uint32_t serve_fds(const struct serve *serve, struct curl_waitfd *out);

/* Accepts, reads, answers, gives up; returns at once. */
void serve_step(struct serve *serve, int64_t now_ms, serve_page *metrics, void *context);

void serve_end(struct serve *serve);

#endif
