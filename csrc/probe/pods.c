/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/pods.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define CGROUP_BYTES_MAX 8192u
#define UID_BYTES        36u /* 8-4-4-4-12 */
#define STATIC_BYTES     32u /* a static pod's: a hash without hyphens */

/* systemd does not allow hyphens in what it names, so the kubelet writes underscores. */
static bool uid_read(const char *text, char out[POD_UID_ROOM])
{
	static const char pattern[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
	uint32_t len = 0;
	while (len < UID_BYTES &&
	       (isxdigit((unsigned char)text[len]) ? pattern[len] == 'x'
						   : pattern[len] == '-' && (text[len] == '-' || text[len] == '_'))) {
		out[len] = text[len] == '_' ? '-' : (char)tolower((unsigned char)text[len]);
		len++;
	}
	if (len < UID_BYTES) {
		for (len = 0; len < STATIC_BYTES && isxdigit((unsigned char)text[len]); len++)
			out[len] = (char)tolower((unsigned char)text[len]);
		if (len < STATIC_BYTES)
			return false;
	}
	out[len] = '\0';
	return !isalnum((unsigned char)text[len]);
}

/* …/kubepods/burstable/pod4cf8db2d-… or …/kubepods-burstable-pod4cf8db2d_….slice/… */
bool pod_of_cgroup(const char *text, char out[POD_UID_ROOM])
{
	const char *group = strstr(text, "kubepods");
	for (const char *at = group == NULL ? NULL : group + strlen("kubepods"); at != NULL; at += strlen("pod")) {
		at = strstr(at, "pod");
		if (at == NULL)
			break;
		if ((at[-1] == '/' || at[-1] == '-') && uid_read(at + strlen("pod"), out))
			return true;
	}
	out[0] = '\0';
	return false;
}

void pod_of_process(const char *proc, uint32_t pid, char out[POD_UID_ROOM])
{
	char path[512], text[CGROUP_BYTES_MAX];
	out[0] = '\0';
	int len = snprintf(path, sizeof(path), "%s/%u/cgroup", proc, (unsigned)pid);
	FILE *file = len > 0 && len < (int)sizeof(path) ? fopen(path, "r") : NULL;
	if (file == NULL)
		return;
	size_t got = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[got] = '\0';
	pod_of_cgroup(text, out);
}
