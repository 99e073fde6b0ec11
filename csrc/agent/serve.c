/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void client_close(struct serve_client *client);
static void client_step(struct serve_client *client, serve_page *metrics, void *context);
static void answer_make(struct serve_client *client, serve_page *metrics, void *context);

void serve_start(struct serve *serve)
{
	memset(serve, 0, sizeof(*serve));
	serve->fd = -1;
	for (uint32_t i = 0; i < SERVE_CLIENTS_MAX; i++)
		serve->clients[i].fd = -1;
}

static bool never_block(int fd)
{
	return fcntl(fd, F_SETFL, O_NONBLOCK) == 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

bool serve_listen(struct serve *serve, const char *host, uint16_t port)
{
	const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	char service[8];
	int yes = 1;
	snprintf(service, sizeof(service), "%u", port);
	if (getaddrinfo(host, service, &hints, &found) != 0) {
		errno = EADDRNOTAVAIL;
		return false;
	}
	serve->fd = socket(found->ai_family, SOCK_STREAM, 0);
	bool good = serve->fd >= 0 && never_block(serve->fd) &&
		    setsockopt(serve->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
		    bind(serve->fd, found->ai_addr, found->ai_addrlen) == 0 && listen(serve->fd, 8) == 0;
	int why = errno;
	freeaddrinfo(found);
	if (!good) {
		serve_end(serve);
		errno = why;
	}
	return good;
}

uint32_t serve_fds(const struct serve *serve, struct curl_waitfd *out)
{
	uint32_t count = 0;
	bool room = false;
	for (uint32_t i = 0; i < SERVE_CLIENTS_MAX; i++) {
		const struct serve_client *client = &serve->clients[i];
		room = room || client->fd < 0;
		if (client->fd >= 0)
			out[count++] = (struct curl_waitfd){.fd = client->fd,
							    .events = client->answer_len > 0 ? CURL_WAIT_POLLOUT
											     : CURL_WAIT_POLLIN};
	}
	if (serve->fd >= 0 && room)
		out[count++] = (struct curl_waitfd){.fd = serve->fd, .events = CURL_WAIT_POLLIN};
	return count;
}

void serve_step(struct serve *serve, int64_t now_ms, serve_page *metrics, void *context)
{
	bool more = serve->fd >= 0; /* clients that wait to be accepted */
	for (uint32_t i = 0; i < SERVE_CLIENTS_MAX; i++) {
		struct serve_client *client = &serve->clients[i];
		if (client->fd < 0 && more) {
			int fd = accept(serve->fd, NULL, NULL);
			more = fd >= 0;
			if (fd >= 0 && !never_block(fd)) {
				close(fd);
				fd = -1;
			}
			client->fd = fd;
			client->since_ms = now_ms;
			client->asked_len = client->answer_len = client->answer_sent = 0;
		}
		if (client->fd >= 0)
			client_step(client, metrics, context);
		if (client->fd >= 0 && now_ms - client->since_ms > SERVE_PATIENCE_MS)
			client_close(client);
	}
}

void serve_end(struct serve *serve)
{
	for (uint32_t i = 0; i < SERVE_CLIENTS_MAX; i++)
		if (serve->clients[i].fd >= 0)
			client_close(&serve->clients[i]);
	if (serve->fd >= 0)
		close(serve->fd);
	serve->fd = -1;
}

static void client_close(struct serve_client *client)
{
	close(client->fd);
	client->fd = -1;
}

static bool later(ssize_t n)
{
	return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

static void client_step(struct serve_client *client, serve_page *metrics, void *context)
{
	if (client->answer_len == 0) {
		ssize_t n = recv(client->fd, client->asked + client->asked_len, SERVE_ASKED_MAX - client->asked_len, 0);
		if (later(n))
			return;
		if (n <= 0) {
			client_close(client);
			return;
		}
		client->asked_len += (uint32_t)n;
		client->asked[client->asked_len] = '\0';
		if (strstr(client->asked, "\r\n\r\n") == NULL && client->asked_len < SERVE_ASKED_MAX)
			return;
		answer_make(client, metrics, context);
	}
	ssize_t n = send(client->fd, client->answer + client->answer_sent, client->answer_len - client->answer_sent,
			 MSG_NOSIGNAL);
	if (later(n))
		return;
	if (n > 0)
		client->answer_sent += (uint32_t)n;
	if (n <= 0 || client->answer_sent == client->answer_len)
		client_close(client);
}

static void answer_make(struct serve_client *client, serve_page *metrics, void *context)
{
	char page[SERVE_TEXT_MAX] = "not found\n";
	const char *line = "404 Not Found";
	bool asks_metrics = strncmp(client->asked, "GET /metrics ", 13) == 0;
	if (asks_metrics || strncmp(client->asked, "GET /healthz ", 13) == 0) {
		line = "200 OK";
		if (asks_metrics)
			metrics(context, page);
		else
			memcpy(page, "ok\n", sizeof("ok\n"));
	}
	int written = snprintf(client->answer, sizeof(client->answer),
			       "HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: %zu\r\n"
			       "Connection: close\r\n\r\n%s",
			       line, strlen(page), page);
	client->answer_len = written < 0 ? 0 : (uint32_t)written;
}
