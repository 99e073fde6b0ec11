/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shim.h - opens libfrond.so and calls through its table, because cgo cannot call function pointers; records the calls of
 * an engine when asked to. Owns the dlopen handle for the life of the process, and the file of a recording until it is
 * closed. Never decides anything, never keeps a caller's pointer.
 */
#ifndef FROND_SHIM_H
#define FROND_SHIM_H

#include "call.h"

#define SHIM_TEXT_MAX 4608u /* a path of 4 KiB and a sentence around it */

struct recorder;

/* One engine, as its calls need it. */
struct shim {
	const struct frond_abi *abi;
	frond_engine *engine;
	struct recorder *recorder; /* NULL: nothing is recorded */
};

/* Finds, loads and checks the library: path when given, else libfrond.so beside the running program, else the system's
 * search path. NULL: *text is one sentence that says what is wrong. */
const struct frond_abi *shim_open(const char *path, char *text, size_t cap);

/* Zeroed memory aligned for an engine; shim_free() gives it back. NULL when there is none. */
void *shim_alloc(uint64_t bytes);
void shim_free(void *mem);

/* Begins a recording (docs/recording.md). A file that is there already is kept as PATH.old: the scheduler that crashed
 * has left it, and the one that starts after it must not destroy it. NULL: *text says what is wrong. */
struct recorder *shim_record(const char *path, char *text, size_t cap);
void shim_record_end(struct recorder *recorder);
/* Says once why the recording has ended early: an errno; 0: it has not, or that was said. */
int shim_record_lost(struct recorder *recorder);

/* ---- without an engine ------------------------------------------------------------------------------------------- */

int32_t shim_args(const struct frond_abi *abi, const char *json, uint32_t json_len, struct frond_args *out, char *text,
		  uint32_t cap, uint32_t *len);
int32_t shim_fabric_expand(const struct frond_abi *abi, const char *fabric, uint32_t fabric_len, uint32_t is_line,
			   char *text, uint32_t cap, uint32_t *len);
uint64_t shim_size_of(const struct frond_abi *abi, const struct frond_limits *limits);
const char *shim_code_text(const struct frond_abi *abi, int32_t code);

/* ---- of an engine; CALL_MISSING when the library does not have the call -------------------------------------------- */

/* On success shim->engine is the engine. */
int32_t shim_create(struct shim *shim, void *mem, uint64_t bytes, const struct frond_limits *limits, const char *args,
		    uint32_t args_len, const char *fabric, uint32_t fabric_len, char *text, uint32_t cap,
		    uint32_t *len);
int32_t shim_config_put(const struct shim *shim, const char *json, uint32_t json_len, char *text, uint32_t cap,
			uint32_t *len);
int32_t shim_node_put(const struct shim *shim, const struct frond_node *node, const struct frond_pair *labels,
		      uint32_t label_count, const char *in, uint32_t in_len, char *text, uint32_t cap, uint32_t *len);
int32_t shim_topology_put(const struct shim *shim, const struct frond_topology *topology, uint32_t *id, char *text,
			  uint32_t cap, uint32_t *len);
int32_t shim_node_remove(const struct shim *shim, uint32_t slot);
int32_t shim_pod_put(const struct shim *shim, const struct frond_pod *pod, const char *in, uint32_t in_len, char *text,
		     uint32_t cap, uint32_t *len);
int32_t shim_pod_get(const struct shim *shim, const struct frond_key *pod, struct frond_held *out);
int32_t shim_plan(const struct shim *shim, const struct frond_request *request, const struct frond_member *members,
		  const struct frond_pair *annotations, const char *in, uint32_t in_len, const struct frond_room *room,
		  uint32_t room_count, struct frond_plan *out, struct frond_place *places, char *text, uint32_t cap,
		  uint32_t *len);
int32_t shim_order(const struct shim *shim, const struct frond_request *request, const struct frond_member *member,
		   const struct frond_pair *annotations, const char *in, uint32_t in_len, const struct frond_room *room,
		   uint32_t room_count, const struct frond_thrift *thrift, const struct frond_kind *kinds,
		   const struct frond_left *left, struct frond_plan *out, uint16_t *position, char *text, uint32_t cap,
		   uint32_t *len);
int32_t shim_reserve(const struct shim *shim, const struct frond_request *request, const struct frond_member *members,
		     const struct frond_place *places);
int32_t shim_gang_put(const struct shim *shim, const struct frond_request *request,
		      const struct frond_pair *annotations, const char *in, uint32_t in_len, char *text, uint32_t cap,
		      uint32_t *len);
int32_t shim_gang_get(const struct shim *shim, const struct frond_key *gang, struct frond_gang *out);
int32_t shim_permit(const struct shim *shim, const struct frond_key *pod, uint32_t *verdict);
int32_t shim_confirm(const struct shim *shim, const struct frond_key *pod);
int32_t shim_release(const struct shim *shim, const struct frond_key *pod);
int32_t shim_release_gang(const struct shim *shim, const struct frond_key *gang, uint32_t *pods);
int32_t shim_hold_put(const struct shim *shim, const struct frond_hold *holds, uint32_t count, char *text, uint32_t cap,
		      uint32_t *len);
int32_t shim_hold_take(const struct shim *shim, const struct frond_key *gang, uint32_t rank,
		       const struct frond_key *pod);
int32_t shim_hold_drop(const struct shim *shim, const struct frond_key *gang, uint32_t rank, uint32_t *count);
int32_t shim_hold_list(const struct shim *shim, const struct frond_key *gang, struct frond_hold *out, uint32_t list_cap,
		       uint32_t *count);
int32_t shim_tick(const struct shim *shim, int64_t now_ms, struct frond_key *expired, uint32_t cap, uint32_t *count);
int32_t shim_what_if(const struct shim *shim);
int32_t shim_undo(const struct shim *shim);
int32_t shim_recover(const struct shim *shim, const struct frond_key *gang, const struct frond_room *room,
		     uint32_t room_count, struct frond_moves *out, struct frond_move *moves, uint32_t list_cap,
		     char *text, uint32_t cap, uint32_t *len);
int32_t shim_defrag(const struct shim *shim, const struct frond_request *request, const struct frond_member *members,
		    const struct frond_pair *annotations, const char *in, uint32_t in_len,
		    const struct frond_room *room, uint32_t room_count, struct frond_moves *out,
		    struct frond_move *moves, uint32_t list_cap, char *text, uint32_t cap, uint32_t *len);
int32_t shim_victims(const struct shim *shim, const struct frond_request *request, const struct frond_member *members,
		     const struct frond_pair *annotations, const char *in, uint32_t in_len,
		     const struct frond_room *room, uint32_t room_count, struct frond_victims *out,
		     struct frond_place *places, struct frond_key *pods, uint32_t list_cap, char *text, uint32_t cap,
		     uint32_t *len);
int32_t shim_window(const struct shim *shim, const struct frond_request *request, const struct frond_member *members,
		    const struct frond_pair *annotations, const char *in, uint32_t in_len,
		    const struct frond_room *room, uint32_t room_count, const struct frond_end *ends,
		    uint32_t end_count, const struct frond_place *kept, struct frond_window *out,
		    struct frond_place *places, char *text, uint32_t cap, uint32_t *len);
int32_t shim_backfill(const struct frond_abi *abi, const struct frond_backfill *question, uint32_t *allowed, char *text,
		      uint32_t cap, uint32_t *len);
int32_t shim_binding(const struct shim *shim, const struct frond_key *pod, struct frond_place *place, char *text,
		     uint32_t cap, uint32_t *len);
int32_t shim_stats(const struct shim *shim, struct frond_stats *out);
int32_t shim_problems(const struct shim *shim, char *text, uint32_t cap, uint32_t *len);
int32_t shim_map(const struct shim *shim, uint32_t color, char *text, uint32_t cap, uint32_t *len);
int32_t shim_dump(const struct shim *shim, char *text, uint32_t cap, uint32_t *len);
int32_t shim_check(const struct shim *shim, char *text, uint32_t cap, uint32_t *len);

#endif
