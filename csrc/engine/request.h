/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.h - a request from the host, checked and read into integers for the core. Changes nothing.
 */
#ifndef FROND_ENGINE_REQUEST_H
#define FROND_ENGINE_REQUEST_H

#include "engine/engine.h"
#include "text/wish.h"

struct asked {
	struct ask ask;
	struct wish wish;
	uint32_t flags; /* enum frond_plan_flag, found while reading */
};

/* FROND_OK; FROND_BAD when the call itself is malformed, FROND_UNKNOWN when it names a node that is not there. A request that a user got wrong is FROND_OK with *refused and
 * the sentence in complaint. */
int32_t request_read(const struct frond_engine *engine, const struct frond_request *request,
		     const struct frond_member *members, const struct frond_pair *annotations, const char *in,
		     uint32_t in_len, const struct frond_room *room, uint32_t room_count, struct asked *out,
		     bool *refused, struct complaint *complaint);

/* Exceptions for a gang of these members: FROND_OK; FROND_UNKNOWN when a node is not there (any more), else FROND_BAD. */
int32_t rooms_formed(const struct frond_engine *engine, const struct frond_member *members, uint32_t count,
		     const struct frond_room *room, uint32_t room_count, struct complaint *complaint);

/* The GPUs that the host says preferIds names: of nodes that are there, or were when the host looked; none twice. */
int32_t named_formed(const struct frond_engine *engine, const struct frond_request *request,
		     struct complaint *complaint);

/* What a gang asks for, for gang.h: annotations and claim. */
int32_t terms_read(const struct frond_engine *engine, const struct frond_request *request,
		   const struct frond_pair *annotations, const char *in, uint32_t in_len, struct wish *wish,
		   struct terms *out, struct complaint *complaint);

#endif
