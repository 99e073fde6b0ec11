/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api.h"

#include "agent/secret.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_MAX (4u << 20) /* the server sends the whole object back */
#define KEPT_MAX   512u       /* of it, for a log */
#define BODY_MAX   (1u << 20) /* of what we asked for */

struct api {
	const char *url;
	struct secret token, ca;
	bool doubt_token,
		doubt_ca; /* the server did not like it, or we not the server: read again whatever stat says */
	CURLM *multi;
	CURL *easy;
	bool under_way;
	bool ended; /* result is ready */
	struct api_result result;
	struct curl_slist *headers;
	char *body; /* to be sent; NULL: a read */
	bool metadata_only;
	char *read; /* by a read, NUL-terminated; NULL: nothing */
	size_t read_len, read_room;
	uint64_t received;
	char kept[KEPT_MAX + 1];
	char error[CURL_ERROR_SIZE];
};

static void begin(struct api *api, const char *path);
static bool credentials_ready(struct api *api);
static CURLcode request_set(struct api *api, const char *path);
static void request_drop(struct api *api);
static void judge(struct api *api, CURLcode code);
static void explain(struct api_result *result, const char *what, const char *detail);
static size_t receive(char *data, size_t size, size_t count, void *argument);

struct api *api_open(const char *url, const char *token_file, const char *ca_file)
{
	struct api *api = calloc(1, sizeof(*api));
	if (api == NULL)
		return NULL;
	api->url = url;
	secret_start(&api->token, token_file, SECRET_TOKEN);
	secret_start(&api->ca, ca_file, SECRET_CA);
	api->multi = curl_multi_init();
	api->easy = curl_easy_init();
	if (api->multi != NULL && api->easy != NULL)
		return api;
	api_close(api);
	return NULL;
}

void api_close(struct api *api)
{
	if (api->under_way)
		request_drop(api);
	if (api->easy != NULL)
		curl_easy_cleanup(api->easy);
	if (api->multi != NULL)
		curl_multi_cleanup(api->multi);
	free(api->read);
	secret_end(&api->token);
	secret_end(&api->ca);
	free(api);
}

void api_apply(struct api *api, const char *path, char *body)
{
	api->body = body;
	begin(api, path);
}

void api_get(struct api *api, const char *path, bool metadata_only)
{
	api->body = NULL;
	api->metadata_only = metadata_only;
	begin(api, path);
}

const char *api_body(const struct api *api)
{
	return api->read == NULL ? "" : api->read;
}

static void begin(struct api *api, const char *path)
{
	free(api->read);
	api->read = NULL;
	api->read_len = api->read_room = 0;
	api->received = 0;
	api->kept[0] = api->error[0] = '\0';
	memset(&api->result, 0, sizeof(api->result));
	api->ended = true;
	if (!credentials_ready(api)) {
		request_drop(api);
		return;
	}
	CURLcode code = request_set(api, path);
	if (code == CURLE_OK && curl_multi_add_handle(api->multi, api->easy) == CURLM_OK) {
		api->under_way = true;
		api->ended = false;
		return;
	}
	api->result.answer = API_UNREACHABLE;
	explain(&api->result, "the request cannot be made", curl_easy_strerror(code));
	request_drop(api);
}

void api_wait(struct api *api, struct curl_waitfd *fds, uint32_t count, int64_t wait_ms)
{
	int running = 0, left = 0;
	if (api->under_way)
		curl_multi_perform(api->multi, &running);
	if (!api->under_way || running > 0)
		curl_multi_poll(api->multi, fds, count, wait_ms > 60000 ? 60000 : (int)wait_ms, NULL);
	if (!api->under_way)
		return;
	curl_multi_perform(api->multi, &running);
	for (CURLMsg *message; (message = curl_multi_info_read(api->multi, &left)) != NULL;)
		if (message->msg == CURLMSG_DONE) {
			judge(api, message->data.result);
			request_drop(api);
			api->ended = true;
			break;
		}
}

bool api_done(struct api *api, struct api_result *out)
{
	if (!api->ended)
		return false;
	api->ended = false;
	*out = api->result;
	return true;
}

const char *api_answer_word(enum api_answer answer)
{
	static const char *const words[] = {
#define X(name, word) word,
		API_ANSWERS(X)
#undef X
	};
	return words[answer];
}

/* ---- a request --------------------------------------------------------------------------------------------------- */

/* A file that is just being replaced may not be readable for a moment: then what was read before is tried. */
static bool credentials_ready(struct api *api)
{
	struct secret *secrets[] = {&api->token, &api->ca};
	bool *doubts[] = {&api->doubt_token, &api->doubt_ca};
	for (uint32_t i = 0; i < 2; i++) {
		bool changed;
		const char *problem;
		if (secret_refresh(secrets[i], *doubts[i], &changed, &problem))
			*doubts[i] = false;
		if (secrets[i]->text == NULL) {
			api->result.answer = API_NO_CREDENTIALS;
			explain(&api->result, secrets[i]->path, problem);
			return false;
		}
	}
	return true;
}

static bool header_add(struct curl_slist **list, const char *text)
{
	struct curl_slist *longer = curl_slist_append(*list, text);
	if (longer != NULL)
		*list = longer;
	return longer != NULL;
}

static bool headers_set(struct api *api)
{
	size_t room = api->token.len + sizeof("Authorization: Bearer ");
	char *bearer = malloc(room);
	if (bearer == NULL)
		return false;
	snprintf(bearer, room, "Authorization: Bearer %s", api->token.text);
	bool writes = api->body != NULL;
	bool good = header_add(&api->headers, bearer) &&
		    header_add(&api->headers, !writes && api->metadata_only
						      ? "Accept: application/json;as=PartialObjectMetadata;"
							"g=meta.k8s.io;v=v1"
						      : "Accept: application/json");
	if (writes)
		good = good && header_add(&api->headers, "Content-Type: application/apply-patch+yaml") &&
		       header_add(&api->headers, "Expect:"); /* no pause before the body */
	free(bearer);
	return good;
}

static CURLcode request_set(struct api *api, const char *path)
{
	char url[1024];
	bool writes = api->body != NULL;
	int written = snprintf(url, sizeof(url), "%s%s%s", api->url, path,
			       writes ? "?fieldManager=frond-agent&force=true" : "");
	if (written < 0 || (size_t)written >= sizeof(url))
		return CURLE_URL_MALFORMAT;
	if (!headers_set(api))
		return CURLE_OUT_OF_MEMORY;
	/* By value: libcurl keeps what it read from a path for a day, and compares blobs before it reuses a connection. */
	struct curl_blob ca = {.data = api->ca.text, .len = api->ca.len, .flags = CURL_BLOB_COPY};
	CURL *easy = api->easy;
	CURLcode code = CURLE_OK;
	curl_easy_reset(easy); /* keeps the connection */
#define SET(option, value) code = code != CURLE_OK ? code : curl_easy_setopt(easy, CURLOPT_##option, value)
	SET(URL, url);
	SET(PROTOCOLS_STR, "https");
	SET(HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(NOPROXY, "*");
	SET(FOLLOWLOCATION, 0L);
	SET(CAINFO_BLOB, &ca);
	SET(CAPATH, NULL);
	SET(SSL_VERIFYPEER, 1L);
	SET(SSL_VERIFYHOST, 2L);
	SET(SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (writes) {
		SET(CUSTOMREQUEST, "PATCH");
		SET(POSTFIELDS, api->body);
	} else {
		SET(HTTPGET, 1L);
	}
	SET(HTTPHEADER, api->headers);
	SET(CONNECTTIMEOUT_MS, (long)(API_TIMEOUT_MS / 2));
	SET(TIMEOUT_MS, (long)API_TIMEOUT_MS);
	SET(NOSIGNAL, 1L);
	SET(TCP_KEEPALIVE, 1L);
	SET(BUFFERSIZE, 4096L);
	SET(UPLOAD_BUFFERSIZE, 16384L);
	SET(WRITEFUNCTION, receive);
	SET(WRITEDATA, api);
	SET(ERRORBUFFER, api->error);
	SET(USERAGENT, "frond-agent");
#undef SET
	return code;
}

static void request_drop(struct api *api)
{
	if (api->under_way)
		curl_multi_remove_handle(api->multi, api->easy);
	api->under_way = false;
	curl_slist_free_all(api->headers);
	api->headers = NULL;
	free(api->body);
	api->body = NULL;
}

/* false: more than anybody would answer to what we ask, or out of memory. */
static bool keep(struct api *api, const char *data, size_t bytes)
{
	if (bytes >= BODY_MAX - api->read_len)
		return false;
	if (api->read_len + bytes + 1 > api->read_room) {
		size_t room = 2 * (api->read_len + bytes + 1);
		char *larger = realloc(api->read, room);
		if (larger == NULL)
			return false;
		api->read = larger;
		api->read_room = room;
	}
	memcpy(api->read + api->read_len, data, bytes);
	api->read_len += bytes;
	api->read[api->read_len] = '\0';
	return true;
}

static size_t receive(char *data, size_t size, size_t count, void *argument)
{
	struct api *api = argument;
	size_t bytes = size * count, len = strlen(api->kept);
	api->received += bytes;
	if (api->received > ANSWER_MAX)
		return 0; /* libcurl ends the request */
	size_t take = bytes < KEPT_MAX - len ? bytes : KEPT_MAX - len;
	for (size_t i = 0; i < take; i++)
		api->kept[len + i] = data[i] < ' ' || data[i] > '~' ? ' ' : data[i];
	api->kept[len + take] = '\0';
	return api->body != NULL || keep(api, data, bytes) ? bytes : 0;
}

/* ---- what the answer means --------------------------------------------------------------------------------------- */

static bool about_trust(CURLcode code)
{
	return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CONNECT_ERROR ||
	       code == CURLE_SSL_CACERT_BADFILE || code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_ISSUER_ERROR ||
	       code == CURLE_SSL_INVALIDCERTSTATUS;
}

static enum api_answer answer_of(long status)
{
	switch (status) {
	case 200:
	case 201:
		return API_OK;
	case 401:
		return API_UNAUTHORIZED;
	case 404:
		return API_MISSING;
	case 409:
		return API_CONFLICT;
	case 429:
		return API_THROTTLED;
	default:
		return status >= 500 ? API_SERVER : API_REFUSED;
	}
}

/* What the server says in a Status object, without a parser: it is for a log only. */
static const char *message_of(char *kept)
{
	char *message = strstr(kept, "\"message\":\"");
	if (message == NULL)
		return kept;
	message += sizeof("\"message\":\"") - 1;
	char *end = strstr(message, "\",\"");
	if (end != NULL)
		*end = '\0';
	return message;
}

static void judge(struct api *api, CURLcode code)
{
	struct api_result *result = &api->result;
	long status = 0;
	curl_off_t retry_after = 0;
	char what[32];
	if (code != CURLE_OK) {
		result->answer = about_trust(code) ? API_TLS : API_UNREACHABLE;
		api->doubt_ca = api->doubt_ca || result->answer == API_TLS;
		explain(result, curl_easy_strerror(code), api->error);
		return;
	}
	curl_easy_getinfo(api->easy, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(api->easy, CURLINFO_RETRY_AFTER, &retry_after);
	result->answer = answer_of(status);
	result->created = status == 201;
	result->retry_after_s = retry_after > 0 ? (int64_t)retry_after : 0;
	if (result->answer == API_OK)
		return;
	api->doubt_token = api->doubt_token || result->answer == API_UNAUTHORIZED;
	snprintf(what, sizeof(what), "HTTP %ld", status);
	explain(result, what, message_of(api->kept));
}

static void explain(struct api_result *result, const char *what, const char *detail)
{
	snprintf(result->text, sizeof(result->text), "%.90s%s%.100s", what, detail[0] == '\0' ? "" : ": ", detail);
}
