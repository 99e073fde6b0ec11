/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster.h - an engine with the fabric's nodes in it, and jobs that are planned and booked there one after the other.
 * Owns the engine's memory from sim_open() to sim_close(). What a verb prints is its own affair.
 */
#ifndef FROND_SIM_CLUSTER_H
#define FROND_SIM_CLUSTER_H

#include "sim/jobs.h"
#include "text/fabricfile.h"

struct planning {
	const struct fabricfile *fabric;
	const char *fabric_text; /* the same, for the engine */
	uint32_t fabric_len;
	const struct jobs *jobs;
};

struct sim {
	const struct planning *planning;
	struct complaint *complaint;
	const struct frond_abi *abi;
	frond_engine *engine;
	void *memory;

	/* By entry of the jobs file: members that hold places. */
	uint32_t *placed;

	/* For one job at a time; room for the largest. */
	uint32_t *gpus;
	struct frond_member *members;
	struct frond_place *places;
	uint64_t *scratch;
	struct frond_room *room; /* nodes that a claim with a selector rules out */

	/* The answer for the job that was planned last. */
	struct frond_plan plan;
	char reason[FROND_TEXT_MAX];
};

/* One job as the engine wants it. */
struct question {
	struct frond_request request;
	struct frond_pair pairs[DOC_KEYS_MAX];
	char *in; /* malloc'd: the text of the request */
	uint32_t in_len;
	const struct frond_room *room; /* exceptions */
	uint32_t room_count;
};

int32_t sim_open(struct sim *sim, const struct planning *planning, struct complaint *complaint);
void sim_close(struct sim *sim);

/* Plans an entry of the jobs file and books it, or takes a job away. The answer is in plan, places and reason. */
int32_t sim_job(struct sim *sim, uint32_t index);

/* Every entry but this one and its removal; FROND_NONE: all. */
int32_t sim_jobs_but(struct sim *sim, uint32_t skipped);
/* Members that hold places, and one more: as many as an answer can name. */
uint32_t sim_members(const struct sim *sim);

/* members and room are set too; the caller frees question->in. */
int32_t question_make(struct sim *sim, uint32_t index, struct question *out);

/* A node fails, or some of its GPUs. */
int32_t sim_fail(struct sim *sim, uint32_t slot, bool down, uint32_t gpu_mask);
/* A member of a running job has gone to another place. */
int32_t sim_move(struct sim *sim, uint32_t index, const struct frond_move *move);

/* Asks the engine about so many lowest ranks of a job; the answer is in plan, places and reason. */
int32_t sim_ask(struct sim *sim, uint32_t index, const struct question *question, uint32_t members);

struct frond_key gang_key(uint32_t index);
struct frond_key member_key(uint32_t index, uint32_t rank);
/* The entry of the jobs file that a member belongs to. */
uint32_t member_job(struct frond_key pod);
uint32_t member_rank(struct frond_key pod);

int32_t sim_broken(const struct sim *sim, int32_t code, const char *what, const char *name);

#endif
