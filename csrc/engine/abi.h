/* SPDX-License-Identifier: Apache-2.0 */
/*
 * abi.h - the functions behind the ABI's table (frond.h says what each does): each checks what came in, calls the core,
 * and puts words around the answer. Private to csrc/engine.
 */
#ifndef FROND_ENGINE_ABI_H
#define FROND_ENGINE_ABI_H

#include "engine/request.h"

/* An error's sentence is cut at cap: the error is what matters. Returns the code. */
int32_t abi_fail(int32_t code, const char *sentence, char *text, uint32_t cap, uint32_t *len);
int32_t abi_complain(const struct complaint *complaint, char *text, uint32_t cap, uint32_t *len);
/* The tree and the counts, when nodes have changed since. */
void abi_build(struct frond_engine *engine);

int32_t abi_args(const char *json, uint32_t json_len, struct frond_args *out, char *text, uint32_t cap, uint32_t *len);
int32_t abi_fabric_expand(const char *fabric, uint32_t fabric_len, uint32_t line, char *text, uint32_t cap,
			  uint32_t *len);
uint64_t abi_size_of(const struct frond_limits *limits);
int32_t abi_create(void *mem, uint64_t bytes, const struct frond_limits *limits, const char *args, uint32_t args_len,
		   const char *fabric, uint32_t fabric_len, frond_engine **out, char *text, uint32_t cap,
		   uint32_t *len);
int32_t abi_config_put(frond_engine *engine, const char *json, uint32_t json_len, char *text, uint32_t cap,
		       uint32_t *len);
int32_t abi_node_put(frond_engine *engine, const struct frond_node *node, const struct frond_pair *labels,
		     uint32_t label_count, const char *in, uint32_t in_len, char *text, uint32_t cap, uint32_t *len);
int32_t abi_topology_put(frond_engine *engine, const struct frond_topology *topology, uint32_t *id, char *text,
			 uint32_t cap, uint32_t *len);
int32_t abi_node_remove(frond_engine *engine, uint32_t slot);
int32_t abi_pod_put(frond_engine *engine, const struct frond_pod *pod, const char *in, uint32_t in_len, char *text,
		    uint32_t cap, uint32_t *len);
int32_t abi_plan(frond_engine *engine, const struct frond_request *request, const struct frond_member *members,
		 const struct frond_pair *annotations, const char *in, uint32_t in_len, const struct frond_room *room,
		 uint32_t room_count, struct frond_plan *out, struct frond_place *places, char *text, uint32_t cap,
		 uint32_t *len);
int32_t abi_order(frond_engine *engine, const struct frond_request *request, const struct frond_member *member,
		  const struct frond_pair *annotations, const char *in, uint32_t in_len, const struct frond_room *room,
		  uint32_t room_count, const struct frond_thrift *thrift, const struct frond_kind *kinds,
		  const struct frond_left *left, struct frond_plan *out, uint16_t *position, char *text, uint32_t cap,
		  uint32_t *len);
int32_t abi_reserve(frond_engine *engine, const struct frond_request *request, const struct frond_member *members,
		    const struct frond_place *places);
int32_t abi_permit(frond_engine *engine, const struct frond_key *pod, uint32_t *verdict);
int32_t abi_confirm(frond_engine *engine, const struct frond_key *pod);
int32_t abi_release(frond_engine *engine, const struct frond_key *pod);
int32_t abi_release_gang(frond_engine *engine, const struct frond_key *gang, uint32_t *pods);
int32_t abi_hold_put(frond_engine *engine, const struct frond_hold *holds, uint32_t count, char *text, uint32_t cap,
		     uint32_t *len);
int32_t abi_hold_take(frond_engine *engine, const struct frond_key *gang, uint32_t rank, const struct frond_key *pod);
int32_t abi_hold_drop(frond_engine *engine, const struct frond_key *gang, uint32_t rank, uint32_t *count);
int32_t abi_hold_list(frond_engine *engine, const struct frond_key *gang, struct frond_hold *out, uint32_t cap,
		      uint32_t *count);
int32_t abi_gang_put(frond_engine *engine, const struct frond_request *request, const struct frond_pair *annotations,
		     const char *in, uint32_t in_len, char *text, uint32_t cap, uint32_t *len);
int32_t abi_gang_get(frond_engine *engine, const struct frond_key *key, struct frond_gang *out);
int32_t abi_tick(frond_engine *engine, int64_t now_ms, struct frond_key *expired, uint32_t cap, uint32_t *count);
int32_t abi_what_if(frond_engine *engine);
int32_t abi_undo(frond_engine *engine);
int32_t abi_recover(frond_engine *engine, const struct frond_key *gang, const struct frond_room *room,
		    uint32_t room_count, struct frond_moves *out, struct frond_move *moves, uint32_t cap, char *text,
		    uint32_t text_cap, uint32_t *len);
int32_t abi_defrag(frond_engine *engine, const struct frond_request *request, const struct frond_member *members,
		   const struct frond_pair *annotations, const char *in, uint32_t in_len, const struct frond_room *room,
		   uint32_t room_count, struct frond_moves *out, struct frond_move *moves, uint32_t cap, char *text,
		   uint32_t text_cap, uint32_t *len);
int32_t abi_victims(frond_engine *engine, const struct frond_request *request, const struct frond_member *members,
		    const struct frond_pair *annotations, const char *in, uint32_t in_len,
		    const struct frond_room *room, uint32_t room_count, struct frond_victims *out,
		    struct frond_place *places, struct frond_key *pods, uint32_t cap, char *text, uint32_t text_cap,
		    uint32_t *len);
int32_t abi_window(frond_engine *engine, const struct frond_request *request, const struct frond_member *members,
		   const struct frond_pair *annotations, const char *in, uint32_t in_len, const struct frond_room *room,
		   uint32_t room_count, const struct frond_end *ends, uint32_t end_count,
		   const struct frond_place *kept, struct frond_window *out, struct frond_place *places, char *text,
		   uint32_t cap, uint32_t *len);
int32_t abi_backfill(const struct frond_backfill *question, uint32_t *allowed, char *text, uint32_t cap, uint32_t *len);
int32_t abi_pod_get(frond_engine *engine, const struct frond_key *pod, struct frond_held *out);
int32_t abi_binding(frond_engine *engine, const struct frond_key *pod, struct frond_place *place, char *text,
		    uint32_t cap, uint32_t *len);
int32_t abi_stats(frond_engine *engine, struct frond_stats *out);
int32_t abi_problems(frond_engine *engine, char *text, uint32_t cap, uint32_t *len);
int32_t abi_map(frond_engine *engine, uint32_t color, char *text, uint32_t cap, uint32_t *len);
int32_t abi_dump(frond_engine *engine, char *text, uint32_t cap, uint32_t *len);
int32_t abi_check(frond_engine *engine, char *text, uint32_t cap, uint32_t *len);
const char *abi_code_text(int32_t code);

#endif
