/* SPDX-License-Identifier: Apache-2.0 */
/*
 * secret.h - a small file that somebody else replaces: the token and the CA of a service account. Owns the last content
 * that made sense. The kubelet replaces such files by renaming, so another inode, size or time means another content.
 */
#ifndef FROND_AGENT_SECRET_H
#define FROND_AGENT_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#define SECRET_MAX (256u << 10) /* a CA bundle of some clusters is large; a token is about 1 KiB */

enum secret_kind { SECRET_TOKEN, SECRET_CA };

struct secret {
	const char *path; /* the caller's */
	enum secret_kind kind;
	char *text; /* NUL-terminated; NULL: never read */
	size_t len;
	struct stat seen;
};

void secret_start(struct secret *secret, const char *path, enum secret_kind kind);

/* Reads it if it has changed, or if forced. false: what it has now is not usable; *problem says why, and what was read
 * before stays. *changed: the content is another. */
bool secret_refresh(struct secret *secret, bool forced, bool *changed, const char **problem);

void secret_end(struct secret *secret);

#endif
