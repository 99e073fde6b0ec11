/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shim.h - opens libfrond.so and calls through its table, because cgo cannot call function pointers.
 * Owns the dlopen handle for the life of the process. Never decides anything, never keeps a caller's pointer.
 */
#ifndef FROND_SHIM_H
#define FROND_SHIM_H

#include "frond.h"

#include <stddef.h>

#define SHIM_TEXT_MAX 4608u /* a path of 4 KiB and a sentence around it */

/* Finds, loads and checks the library: path when given, else libfrond.so beside the running program, else the system's
 * search path. NULL: *text is one sentence that says what is wrong. */
const struct frond_abi *shim_open(const char *path, char *text, size_t cap);

/* Zeroed memory aligned for an engine; shim_free() gives it back. NULL when there is none. */
void *shim_alloc(uint64_t bytes);
void shim_free(void *mem);

int32_t shim_args(const struct frond_abi *abi, const char *json, uint32_t json_len, struct frond_args *out, char *text,
		  uint32_t cap, uint32_t *len);
int32_t shim_fabric_expand(const struct frond_abi *abi, const char *fabric, uint32_t fabric_len, uint32_t is_line,
			   char *text, uint32_t cap, uint32_t *len);
uint64_t shim_size_of(const struct frond_abi *abi, const struct frond_limits *limits);
int32_t shim_create(const struct frond_abi *abi, void *mem, uint64_t bytes, const struct frond_limits *limits,
		    const char *args, uint32_t args_len, const char *fabric, uint32_t fabric_len, frond_engine **out,
		    char *text, uint32_t cap, uint32_t *len);
int32_t shim_node_put(const struct frond_abi *abi, frond_engine *engine, const struct frond_node *node,
		      const struct frond_pair *labels, uint32_t label_count, const char *in, uint32_t in_len,
		      char *text, uint32_t cap, uint32_t *len);
int32_t shim_node_remove(const struct frond_abi *abi, frond_engine *engine, uint32_t slot);
int32_t shim_pod_put(const struct frond_abi *abi, frond_engine *engine, const struct frond_pod *pod, const char *in,
		     uint32_t in_len, char *text, uint32_t cap, uint32_t *len);
int32_t shim_plan(const struct frond_abi *abi, frond_engine *engine, const struct frond_request *request,
		  const struct frond_member *members, const struct frond_pair *annotations, const char *in,
		  uint32_t in_len, const struct frond_room *room, struct frond_plan *out, struct frond_place *places,
		  char *text, uint32_t cap, uint32_t *len);
int32_t shim_order(const struct frond_abi *abi, frond_engine *engine, const struct frond_request *request,
		   const struct frond_member *member, const struct frond_pair *annotations, const char *in,
		   uint32_t in_len, const struct frond_room *room, struct frond_plan *out, uint16_t *position,
		   char *text, uint32_t cap, uint32_t *len);
int32_t shim_reserve(const struct frond_abi *abi, frond_engine *engine, const struct frond_request *request,
		     const struct frond_member *members, const struct frond_place *places);
int32_t shim_permit(const struct frond_abi *abi, frond_engine *engine, const struct frond_key *pod, uint32_t *verdict);
int32_t shim_confirm(const struct frond_abi *abi, frond_engine *engine, const struct frond_key *pod);
int32_t shim_release(const struct frond_abi *abi, frond_engine *engine, const struct frond_key *pod);
int32_t shim_release_gang(const struct frond_abi *abi, frond_engine *engine, const struct frond_key *gang,
			  uint32_t *pods);
int32_t shim_binding(const struct frond_abi *abi, frond_engine *engine, const struct frond_key *pod, char *text,
		     uint32_t cap, uint32_t *len);
int32_t shim_stats(const struct frond_abi *abi, frond_engine *engine, struct frond_stats *out);
int32_t shim_problems(const struct frond_abi *abi, frond_engine *engine, char *text, uint32_t cap, uint32_t *len);
int32_t shim_map(const struct frond_abi *abi, frond_engine *engine, uint32_t color, char *text, uint32_t cap,
		 uint32_t *len);
int32_t shim_dump(const struct frond_abi *abi, frond_engine *engine, char *text, uint32_t cap, uint32_t *len);
int32_t shim_check(const struct frond_abi *abi, frond_engine *engine, char *text, uint32_t cap, uint32_t *len);
const char *shim_code_text(const struct frond_abi *abi, int32_t code);

#endif
