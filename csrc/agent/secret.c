/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/secret.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void secret_start(struct secret *secret, const char *path, enum secret_kind kind)
{
	*secret = (struct secret){.path = path, .kind = kind};
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* The whole file, NUL-terminated; NULL: not readable, empty or too large. */
static char *file_read(const char *path, struct stat *seen, size_t *len)
{
	char *text = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return NULL;
	if (fstat(fd, seen) != 0 || !S_ISREG(seen->st_mode) || seen->st_size <= 0 || seen->st_size > SECRET_MAX)
		goto out;
	size_t want = (size_t)seen->st_size, got = 0;
	text = malloc(want + 1);
	while (text != NULL && got < want) {
		ssize_t n = read(fd, text + got, want - got);
		if (n <= 0)
			break;
		got += (size_t)n;
	}
	if (text != NULL && got < want) { /* cut while we read it: the next look will see the rest */
		free(text);
		text = NULL;
	}
	if (text != NULL)
		text[want] = '\0';
	*len = want;
out:
	close(fd);
	return text;
}

/* A token goes into a header: one line of printable characters. */
static const char *token_problem(char *text, size_t *len)
{
	while (*len > 0 && (text[*len - 1] == '\n' || text[*len - 1] == '\r'))
		text[--*len] = '\0';
	if (*len == 0)
		return "is empty";
	for (size_t i = 0; i < *len; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return "is not one line of printable characters";
	return NULL;
}

bool secret_refresh(struct secret *secret, bool forced, bool *changed, const char **problem)
{
	struct stat now;
	size_t len = 0;
	*changed = false;
	*problem = NULL;
	if (!forced && secret->text != NULL && stat(secret->path, &now) == 0 && same_file(&now, &secret->seen))
		return true;
	char *text = file_read(secret->path, &now, &len);
	if (text == NULL)
		*problem = "is not a readable file of 1 byte to 256 KiB";
	else if (secret->kind == SECRET_TOKEN)
		*problem = token_problem(text, &len);
	else if (strstr(text, "-----BEGIN CERTIFICATE-----") == NULL)
		*problem = "has no certificate in it";
	if (*problem != NULL) {
		free(text);
		return false;
	}
	*changed = secret->text == NULL || secret->len != len || memcmp(secret->text, text, len) != 0;
	free(secret->text);
	secret->text = text;
	secret->len = len;
	secret->seen = now;
	return true;
}

void secret_end(struct secret *secret)
{
	free(secret->text);
	secret->text = NULL;
}
