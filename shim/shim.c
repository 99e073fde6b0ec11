/* SPDX-License-Identifier: Apache-2.0 */
#include "shim.h"

#include "record.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

/* ---- recordings ---------------------------------------------------------------------------------------------------- */

#define RECORD_BUFFER 65536u

struct recorder {
	FILE *file;     /* NULL: the recording has ended early */
	uint32_t nodes; /* limits.nodes of the engine */
	int lost;       /* errno that ended it and has not been told */
};

/* Only a regular file is moved away; anything else at that path is refused when it is opened. */
static void keep_old(const char *path)
{
	struct stat old;
	char kept[PATH_BYTES];
	int need = snprintf(kept, sizeof(kept), "%s.old", path);
	if (need > 0 && (size_t)need < sizeof(kept) && lstat(path, &old) == 0 && S_ISREG(old.st_mode))
		(void)rename(path, kept);
}

struct recorder *shim_record(const char *path, char *text, size_t cap)
{
	keep_old(path);
	/* Not blocking, because a pipe without a reader would stop the scheduler; for its owner only, because it names
	 * everybody's workloads. */
	int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0600);
	if (descriptor < 0) {
		say(text, cap, "recording %s: cannot be written: %s", path, strerror(errno));
		return NULL;
	}
	struct stat is;
	struct recorder *recorder = calloc(1, sizeof(*recorder));
	if (fstat(descriptor, &is) != 0 || !S_ISREG(is.st_mode)) {
		say(text, cap, "recording %s: is not a regular file", path);
		goto refuse;
	}
	if (recorder == NULL || (recorder->file = fdopen(descriptor, "w")) == NULL) {
		say(text, cap, "recording %s: %s", path, strerror(ENOMEM));
		goto refuse;
	}
	(void)setvbuf(recorder->file, NULL, _IOFBF, RECORD_BUFFER);
	record_header(recorder->file);
	return recorder;

refuse:
	free(recorder);
	(void)close(descriptor);
	return NULL;
}

void shim_record_end(struct recorder *recorder)
{
	if (recorder != NULL && recorder->file != NULL)
		(void)fclose(recorder->file);
	free(recorder);
}

int shim_record_lost(struct recorder *recorder)
{
	int lost = recorder->lost;
	recorder->lost = 0;
	return lost;
}

/* What is written reaches the kernel before the call goes on, so that a crash leaves it. A failure ends the recording,
 * nothing else. */
static void flush(struct recorder *recorder)
{
	errno = 0;
	if (fflush(recorder->file) == 0 && !ferror(recorder->file))
		return;
	recorder->lost = errno != 0 ? errno : EIO;
	(void)fclose(recorder->file);
	recorder->file = NULL;
}

/* ---- the table, function by function --------------------------------------------------------------------------- */

/* Makes the call; writes down what goes in before it and what comes out after it. */
static int32_t make(const struct shim *shim, const struct call *call)
{
	struct recorder *recorder = shim->recorder;
	if (recorder != NULL && recorder->file != NULL) {
		if (call->kind == CALL_create)
			recorder->nodes = call->limits->nodes;
		record_question(recorder->file, call, recorder->nodes);
		flush(recorder);
	}
	int32_t code = call_run(shim->abi, shim->engine, call);
	if (recorder != NULL && recorder->file != NULL) {
		record_answer(recorder->file, call, recorder->nodes, code);
		flush(recorder);
	}
	if (code == CALL_MISSING && call_shapes[call->kind].out & OUT_TEXT) {
		say(call->text, call->cap, "this engine library does not have %s", call_shapes[call->kind].name);
		*call->len = (uint32_t)strlen(call->text);
	}
	return code;
}

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

const char *shim_code_text(const struct frond_abi *abi, int32_t code)
{
	return code == CALL_MISSING ? "this engine library does not have the call" : abi->code_text(code);
}

int32_t shim_create(struct shim *shim, void *mem, uint64_t bytes, const struct frond_limits *limits, const char *args,
		    uint32_t args_len, const char *fabric, uint32_t fabric_len, char *text, uint32_t cap, uint32_t *len)
{
	struct call call = {.kind = CALL_create,
			    .engine = &shim->engine,
			    .mem = mem,
			    .mem_bytes = bytes,
			    .limits = limits,
			    .args = args,
			    .args_len = args_len,
			    .fabric = fabric,
			    .fabric_len = fabric_len,
			    .text = text,
			    .cap = cap,
			    .len = len};
	return make(shim, &call);
}

int32_t shim_config_put(const struct shim *shim, const char *json, uint32_t json_len, char *text, uint32_t cap,
			uint32_t *len)
{
	struct call call = {
		.kind = CALL_config_put, .in = json, .in_len = json_len, .text = text, .cap = cap, .len = len};
	return make(shim, &call);
}

int32_t shim_node_put(const struct shim *shim, const struct frond_node *node, const struct frond_pair *labels,
		      uint32_t label_count, const char *in, uint32_t in_len, char *text, uint32_t cap, uint32_t *len)
{
	struct call call = {.kind = CALL_node_put,
			    .node = node,
			    .pairs = labels,
			    .label_count = label_count,
			    .in = in,
			    .in_len = in_len,
			    .text = text,
			    .cap = cap,
			    .len = len};
	return make(shim, &call);
}

int32_t shim_topology_put(const struct shim *shim, const struct frond_topology *topology, uint32_t *id, char *text,
			  uint32_t cap, uint32_t *len)
{
	struct call call = {
		.kind = CALL_topology_put, .topology = topology, .number = id, .text = text, .cap = cap, .len = len};
	return make(shim, &call);
}

int32_t shim_node_remove(const struct shim *shim, uint32_t slot)
{
	struct call call = {.kind = CALL_node_remove, .slot = slot};
	return make(shim, &call);
}

int32_t shim_pod_put(const struct shim *shim, const struct frond_pod *pod, const char *in, uint32_t in_len, char *text,
		     uint32_t cap, uint32_t *len)
{
	struct call call = {
		.kind = CALL_pod_put, .pod = pod, .in = in, .in_len = in_len, .text = text, .cap = cap, .len = len};
	return make(shim, &call);
}

int32_t shim_pod_get(const struct shim *shim, const struct frond_key *pod, struct frond_held *out)
{
	struct call call = {.kind = CALL_pod_get, .key = pod, .held = out};
	return make(shim, &call);
}

int32_t shim_plan(const struct shim *shim, const struct frond_request *request, const struct frond_member *members,
		  const struct frond_pair *annotations, const char *in, uint32_t in_len, const struct frond_room *room,
		  uint32_t room_count, struct frond_plan *out, struct frond_place *places, char *text, uint32_t cap,
		  uint32_t *len)
{
	struct call call = {.kind = CALL_plan,
			    .request = request,
			    .members = members,
			    .pairs = annotations,
			    .in = in,
			    .in_len = in_len,
			    .room = room,
			    .room_count = room_count,
			    .plan = out,
			    .places = places,
			    .text = text,
			    .cap = cap,
			    .len = len};
	return make(shim, &call);
}

int32_t shim_order(const struct shim *shim, const struct frond_request *request, const struct frond_member *member,
		   const struct frond_pair *annotations, const char *in, uint32_t in_len, const struct frond_room *room,
		   uint32_t room_count, const struct frond_thrift *thrift, const struct frond_kind *kinds,
		   const struct frond_left *left, struct frond_plan *out, uint16_t *position, char *text, uint32_t cap,
		   uint32_t *len)
{
	struct call call = {.kind = CALL_order,
			    .request = request,
			    .members = member,
			    .pairs = annotations,
			    .in = in,
			    .in_len = in_len,
			    .room = room,
			    .room_count = room_count,
			    .thrift = thrift,
			    .kinds = kinds,
			    .left = left,
			    .plan = out,
			    .position = position,
			    .text = text,
			    .cap = cap,
			    .len = len};
	return make(shim, &call);
}

int32_t shim_reserve(const struct shim *shim, const struct frond_request *request, const struct frond_member *members,
		     const struct frond_place *places)
{
	struct call call = {.kind = CALL_reserve, .request = request, .members = members, .booked = places};
	return make(shim, &call);
}

int32_t shim_gang_put(const struct shim *shim, const struct frond_request *request,
		      const struct frond_pair *annotations, const char *in, uint32_t in_len, char *text, uint32_t cap,
		      uint32_t *len)
{
	struct call call = {.kind = CALL_gang_put,
			    .request = request,
			    .pairs = annotations,
			    .in = in,
			    .in_len = in_len,
			    .text = text,
			    .cap = cap,
			    .len = len};
	return make(shim, &call);
}

int32_t shim_gang_get(const struct shim *shim, const struct frond_key *gang, struct frond_gang *out)
{
	struct call call = {.kind = CALL_gang_get, .key = gang, .gang = out};
	return make(shim, &call);
}

int32_t shim_permit(const struct shim *shim, const struct frond_key *pod, uint32_t *verdict)
{
	struct call call = {.kind = CALL_permit, .key = pod, .number = verdict};
	return make(shim, &call);
}

int32_t shim_confirm(const struct shim *shim, const struct frond_key *pod)
{
	struct call call = {.kind = CALL_confirm, .key = pod};
	return make(shim, &call);
}

int32_t shim_release(const struct shim *shim, const struct frond_key *pod)
{
	struct call call = {.kind = CALL_release, .key = pod};
	return make(shim, &call);
}

int32_t shim_release_gang(const struct shim *shim, const struct frond_key *gang, uint32_t *pods)
{
	struct call call = {.kind = CALL_release_gang, .key = gang, .number = pods};
	return make(shim, &call);
}

int32_t shim_hold_put(const struct shim *shim, const struct frond_hold *holds, uint32_t count, char *text, uint32_t cap,
		      uint32_t *len)
{
	struct call call = {
		.kind = CALL_hold_put, .holds = holds, .hold_count = count, .text = text, .cap = cap, .len = len};
	return make(shim, &call);
}

int32_t shim_hold_take(const struct shim *shim, const struct frond_key *gang, uint32_t rank,
		       const struct frond_key *pod)
{
	struct call call = {.kind = CALL_hold_take, .key = gang, .rank = rank, .taker = pod};
	return make(shim, &call);
}

int32_t shim_hold_drop(const struct shim *shim, const struct frond_key *gang, uint32_t rank, uint32_t *count)
{
	struct call call = {.kind = CALL_hold_drop, .key = gang, .rank = rank, .number = count};
	return make(shim, &call);
}

int32_t shim_hold_list(const struct shim *shim, const struct frond_key *gang, struct frond_hold *out, uint32_t list_cap,
		       uint32_t *count)
{
	struct call call = {
		.kind = CALL_hold_list, .key = gang, .hold_list = out, .list_cap = list_cap, .number = count};
	return make(shim, &call);
}

int32_t shim_tick(const struct shim *shim, int64_t now_ms, struct frond_key *expired, uint32_t cap, uint32_t *count)
{
	struct call call = {.kind = CALL_tick, .now_ms = now_ms, .keys = expired, .list_cap = cap, .number = count};
	return make(shim, &call);
}

int32_t shim_what_if(const struct shim *shim)
{
	struct call call = {.kind = CALL_what_if};
	return make(shim, &call);
}

int32_t shim_undo(const struct shim *shim)
{
	struct call call = {.kind = CALL_undo};
	return make(shim, &call);
}

int32_t shim_recover(const struct shim *shim, const struct frond_key *gang, const struct frond_room *room,
		     uint32_t room_count, struct frond_moves *out, struct frond_move *moves, uint32_t list_cap,
		     char *text, uint32_t cap, uint32_t *len)
{
	struct call call = {.kind = CALL_recover,
			    .key = gang,
			    .room = room,
			    .room_count = room_count,
			    .moves = out,
			    .move_list = moves,
			    .list_cap = list_cap,
			    .text = text,
			    .cap = cap,
			    .len = len};
	return make(shim, &call);
}

int32_t shim_defrag(const struct shim *shim, const struct frond_request *request, const struct frond_member *members,
		    const struct frond_pair *annotations, const char *in, uint32_t in_len,
		    const struct frond_room *room, uint32_t room_count, struct frond_moves *out,
		    struct frond_move *moves, uint32_t list_cap, char *text, uint32_t cap, uint32_t *len)
{
	struct call call = {.kind = CALL_defrag,
			    .request = request,
			    .members = members,
			    .pairs = annotations,
			    .in = in,
			    .in_len = in_len,
			    .room = room,
			    .room_count = room_count,
			    .moves = out,
			    .move_list = moves,
			    .list_cap = list_cap,
			    .text = text,
			    .cap = cap,
			    .len = len};
	return make(shim, &call);
}

int32_t shim_victims(const struct shim *shim, const struct frond_request *request, const struct frond_member *members,
		     const struct frond_pair *annotations, const char *in, uint32_t in_len,
		     const struct frond_room *room, uint32_t room_count, struct frond_victims *out,
		     struct frond_place *places, struct frond_key *pods, uint32_t list_cap, char *text, uint32_t cap,
		     uint32_t *len)
{
	struct call call = {.kind = CALL_victims,
			    .request = request,
			    .members = members,
			    .pairs = annotations,
			    .in = in,
			    .in_len = in_len,
			    .room = room,
			    .room_count = room_count,
			    .victims = out,
			    .places = places,
			    .keys = pods,
			    .list_cap = list_cap,
			    .text = text,
			    .cap = cap,
			    .len = len};
	return make(shim, &call);
}

int32_t shim_window(const struct shim *shim, const struct frond_request *request, const struct frond_member *members,
		    const struct frond_pair *annotations, const char *in, uint32_t in_len,
		    const struct frond_room *room, uint32_t room_count, const struct frond_end *ends,
		    uint32_t end_count, const struct frond_place *kept, struct frond_window *out,
		    struct frond_place *places, char *text, uint32_t cap, uint32_t *len)
{
	struct call call = {.kind = CALL_window,
			    .request = request,
			    .members = members,
			    .pairs = annotations,
			    .in = in,
			    .in_len = in_len,
			    .room = room,
			    .room_count = room_count,
			    .ends = ends,
			    .end_count = end_count,
			    .booked = kept,
			    .window = out,
			    .places = places,
			    .text = text,
			    .cap = cap,
			    .len = len};
	return make(shim, &call);
}

int32_t shim_backfill(const struct frond_abi *abi, const struct frond_backfill *question, uint32_t *allowed, char *text,
		      uint32_t cap, uint32_t *len)
{
	return abi->backfill(question, allowed, text, cap, len);
}

int32_t shim_binding(const struct shim *shim, const struct frond_key *pod, struct frond_place *place, char *text,
		     uint32_t cap, uint32_t *len)
{
	struct call call = {.kind = CALL_binding, .key = pod, .place = place, .text = text, .cap = cap, .len = len};
	return make(shim, &call);
}

int32_t shim_stats(const struct shim *shim, struct frond_stats *out)
{
	struct call call = {.kind = CALL_stats, .stats = out};
	return make(shim, &call);
}

int32_t shim_problems(const struct shim *shim, char *text, uint32_t cap, uint32_t *len)
{
	struct call call = {.kind = CALL_problems, .text = text, .cap = cap, .len = len};
	return make(shim, &call);
}

int32_t shim_map(const struct shim *shim, uint32_t color, char *text, uint32_t cap, uint32_t *len)
{
	struct call call = {.kind = CALL_map, .color = color, .text = text, .cap = cap, .len = len};
	return make(shim, &call);
}

int32_t shim_dump(const struct shim *shim, char *text, uint32_t cap, uint32_t *len)
{
	struct call call = {.kind = CALL_dump, .text = text, .cap = cap, .len = len};
	return make(shim, &call);
}

int32_t shim_check(const struct shim *shim, char *text, uint32_t cap, uint32_t *len)
{
	struct call call = {.kind = CALL_check, .text = text, .cap = cap, .len = len};
	return make(shim, &call);
}
