/* SPDX-License-Identifier: Apache-2.0 */
#include "shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY    "libfrond.so"
#define SYMBOL     "frond_abi_get"
#define PATH_BYTES 4096u

static void say(char *text, size_t cap, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void say(char *text, size_t cap, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	(void)vsnprintf(text, cap, format, list);
	va_end(list);
}

/* The first bytes of every shared library. dlopen's own words for a text file ("invalid ELF header", "file too short")
 * do not say to a reader that the path is simply wrong. */
static const unsigned char elf_magic[4] = {0x7f, 'E', 'L', 'F'};

/* 0 when the file is there and begins like a library; otherwise text says why not. */
static int look(const char *path, char *text, size_t cap)
{
	FILE *file = fopen(path, "rbe");
	if (!file) {
		if (errno == ENOENT || errno == ENOTDIR)
			say(text, cap, "engine library %s: the file is missing", path);
		else
			say(text, cap, "engine library %s: cannot be read: %s", path, strerror(errno));
		return -1;
	}
	unsigned char head[sizeof(elf_magic)] = {0};
	size_t got = fread(head, 1, sizeof(head), file);
	(void)fclose(file);
	if (got != sizeof(head) || memcmp(head, elf_magic, sizeof(head)) != 0) {
		say(text, cap, "engine library %s: is not a shared library", path);
		return -1;
	}
	return 0;
}

/* libfrond.so in the folder of the running program; -1 when that folder cannot be told. */
static int beside(char *path, size_t cap)
{
	char self[PATH_BYTES];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (len <= 0)
		return -1;
	self[len] = '\0';
	char *slash = strrchr(self, '/');
	if (!slash)
		return -1;
	*slash = '\0';
	int need = snprintf(path, cap, "%s/%s", self, LIBRARY);
	return need > 0 && (size_t)need < cap ? 0 : -1;
}

/* Loads the library and tells where it was found. */
static void *load(const char *path, char *found, size_t found_cap, char *text, size_t cap)
{
	char near[PATH_BYTES] = "";
	if (path && *path) {
		/* dlopen looks for a name without a slash in the system's path; a user who writes one means a file. */
		(void)snprintf(found, found_cap, "%s%s", strchr(path, '/') ? "" : "./", path);
	} else if (beside(near, sizeof(near)) == 0 && access(near, F_OK) == 0) {
		(void)snprintf(found, found_cap, "%s", near);
	} else {
		(void)snprintf(found, found_cap, "%s", LIBRARY);
		void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
		if (!handle)
			say(text, cap,
			    "engine library %s: not beside the program (%s) and not in the system's path: %s", LIBRARY,
			    *near ? near : "its folder is unknown", dlerror());
		return handle;
	}
	if (look(found, text, cap))
		return NULL;
	void *handle = dlopen(found, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		say(text, cap, "engine library %s: cannot be loaded: %s", found, dlerror());
	return handle;
}

const struct frond_abi *shim_open(const char *path, char *text, size_t cap)
{
	char found[PATH_BYTES + sizeof("./")] = "";
	void *handle = load(path, found, sizeof(found), text, cap);
	if (!handle)
		return NULL;

	const struct frond_abi *(*get)(void) = NULL;
	void *symbol = dlsym(handle, SYMBOL);
	if (!symbol) {
		say(text, cap, "engine library %s: has no symbol %s", found, SYMBOL);
		goto refuse;
	}
	memcpy(&get, &symbol, sizeof(get)); /* ISO C has no cast from an object to a function pointer */

	/* Version and size come first in every version of the table, so they may be read before anything is known. */
	const struct frond_abi *abi = get();
	if (!abi) {
		say(text, cap, "engine library %s: %s returned no table", found, SYMBOL);
		goto refuse;
	}
	if (abi->version != FROND_ABI_VERSION) {
		say(text, cap, "engine library %s: version %u where %u is needed", found, abi->version,
		    FROND_ABI_VERSION);
		goto refuse;
	}
	if (abi->size != sizeof(*abi)) {
		say(text, cap, "engine library %s: its table has %u bytes where %zu are needed", found, abi->size,
		    sizeof(*abi));
		goto refuse;
	}
	return abi; /* the handle stays open for the life of the process: engines hold pointers into the library */

refuse:
	(void)dlclose(handle);
	return NULL;
}

void *shim_alloc(uint64_t bytes)
{
	if (bytes == 0 || bytes > SIZE_MAX)
		return NULL;
	/* Aligned to max_align_t (16), and pages that are never touched cost nothing. */
	return calloc(1, (size_t)bytes);
}

void shim_free(void *mem)
{
	free(mem);
}

/* ---- the table, function by function --------------------------------------------------------------------------- */

int32_t shim_args(const struct frond_abi *abi, const char *json, uint32_t json_len, struct frond_args *out, char *text,
		  uint32_t cap, uint32_t *len)
{
	return abi->args(json, json_len, out, text, cap, len);
}

int32_t shim_fabric_expand(const struct frond_abi *abi, const char *fabric, uint32_t fabric_len, uint32_t is_line,
			   char *text, uint32_t cap, uint32_t *len)
{
	return abi->fabric_expand(fabric, fabric_len, is_line, text, cap, len);
}

uint64_t shim_size_of(const struct frond_abi *abi, const struct frond_limits *limits)
{
	return abi->size_of(limits);
}

int32_t shim_create(const struct frond_abi *abi, void *mem, uint64_t bytes, const struct frond_limits *limits,
		    const char *args, uint32_t args_len, const char *fabric, uint32_t fabric_len, frond_engine **out,
		    char *text, uint32_t cap, uint32_t *len)
{
	return abi->create(mem, bytes, limits, args, args_len, fabric, fabric_len, out, text, cap, len);
}

int32_t shim_node_put(const struct frond_abi *abi, frond_engine *engine, const struct frond_node *node,
		      const struct frond_pair *labels, uint32_t label_count, const char *in, uint32_t in_len,
		      char *text, uint32_t cap, uint32_t *len)
{
	return abi->node_put(engine, node, labels, label_count, in, in_len, text, cap, len);
}

int32_t shim_node_remove(const struct frond_abi *abi, frond_engine *engine, uint32_t slot)
{
	return abi->node_remove(engine, slot);
}

int32_t shim_pod_put(const struct frond_abi *abi, frond_engine *engine, const struct frond_pod *pod, const char *in,
		     uint32_t in_len, char *text, uint32_t cap, uint32_t *len)
{
	return abi->pod_put(engine, pod, in, in_len, text, cap, len);
}

int32_t shim_plan(const struct frond_abi *abi, frond_engine *engine, const struct frond_request *request,
		  const struct frond_member *members, const struct frond_pair *annotations, const char *in,
		  uint32_t in_len, const struct frond_room *room, struct frond_plan *out, struct frond_place *places,
		  char *text, uint32_t cap, uint32_t *len)
{
	return abi->plan(engine, request, members, annotations, in, in_len, room, out, places, text, cap, len);
}

int32_t shim_order(const struct frond_abi *abi, frond_engine *engine, const struct frond_request *request,
		   const struct frond_member *member, const struct frond_pair *annotations, const char *in,
		   uint32_t in_len, const struct frond_room *room, struct frond_plan *out, uint16_t *position,
		   char *text, uint32_t cap, uint32_t *len)
{
	return abi->order(engine, request, member, annotations, in, in_len, room, out, position, text, cap, len);
}

int32_t shim_reserve(const struct frond_abi *abi, frond_engine *engine, const struct frond_request *request,
		     const struct frond_member *members, const struct frond_place *places)
{
	return abi->reserve(engine, request, members, places);
}

int32_t shim_permit(const struct frond_abi *abi, frond_engine *engine, const struct frond_key *pod, uint32_t *verdict)
{
	return abi->permit(engine, pod, verdict);
}

int32_t shim_confirm(const struct frond_abi *abi, frond_engine *engine, const struct frond_key *pod)
{
	return abi->confirm(engine, pod);
}

int32_t shim_release(const struct frond_abi *abi, frond_engine *engine, const struct frond_key *pod)
{
	return abi->release(engine, pod);
}

int32_t shim_release_gang(const struct frond_abi *abi, frond_engine *engine, const struct frond_key *gang,
			  uint32_t *pods)
{
	return abi->release_gang(engine, gang, pods);
}

int32_t shim_binding(const struct frond_abi *abi, frond_engine *engine, const struct frond_key *pod, char *text,
		     uint32_t cap, uint32_t *len)
{
	return abi->binding(engine, pod, text, cap, len);
}

int32_t shim_stats(const struct frond_abi *abi, frond_engine *engine, struct frond_stats *out)
{
	return abi->stats(engine, out);
}

int32_t shim_problems(const struct frond_abi *abi, frond_engine *engine, char *text, uint32_t cap, uint32_t *len)
{
	return abi->problems(engine, text, cap, len);
}

int32_t shim_map(const struct frond_abi *abi, frond_engine *engine, uint32_t color, char *text, uint32_t cap,
		 uint32_t *len)
{
	return abi->map(engine, color, text, cap, len);
}

int32_t shim_dump(const struct frond_abi *abi, frond_engine *engine, char *text, uint32_t cap, uint32_t *len)
{
	return abi->dump(engine, text, cap, len);
}

int32_t shim_check(const struct frond_abi *abi, frond_engine *engine, char *text, uint32_t cap, uint32_t *len)
{
	return abi->check(engine, text, cap, len);
}

const char *shim_code_text(const struct frond_abi *abi, int32_t code)
{
	return abi->code_text(code);
}
