/* SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define IN_CAP    4096u
#define PAIRS_MAX 16u
#define MOVES_MAX FROND_MEMBERS_MAX

struct caller {
	timer_t timer; /* of wall time: with one of processor time its clock would only tick every 4 ms */
	uint64_t most_ns, begin;
	struct frond_request request;
	struct frond_member members[FROND_MEMBERS_MAX];
	struct frond_place places[FROND_MEMBERS_MAX];
	struct frond_move moves[MOVES_MAX];
	struct frond_key keys[FROND_PODS_MAX];
	struct frond_end ends[FROND_NODES_MAX];
	uint32_t end_count;
	struct frond_room room[FROND_NODES_MAX]; /* exceptions */
	uint32_t room_count;
	struct frond_left left[FROND_NODES_MAX];
	struct frond_kind kinds[FROND_KINDS_MAX];
	uint16_t position[FROND_NODES_MAX];
	struct frond_pair pairs[PAIRS_MAX];
	char in[IN_CAP];
	uint32_t in_len;
	struct result result;
};

/* ---- time ------------------------------------------------------------------------------------------------------------- */

static sigjmp_buf given_up;

static void give_up(int signal_number)
{
	(void)signal_number;
	siglongjmp(given_up, 1); /* the engine has no lock and no memory of its own: it is put back */
}

static uint64_t now_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void timer_arm(const struct caller *caller, uint64_t ns)
{
	struct itimerspec when = {.it_value = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)}};
	timer_settime(caller->timer, 0, &when, NULL);
}

struct caller *caller_open(uint32_t most_ms)
{
	struct caller *caller = calloc(1, sizeof *caller);
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	struct sigaction action = {.sa_handler = give_up};
	if (caller == NULL)
		return NULL;
	caller->most_ns = most_ms * 1000000ull;
	if (sigaction(SIGUSR1, &action, NULL) != 0 || timer_create(CLOCK_MONOTONIC, &event, &caller->timer) != 0) {
		free(caller);
		return NULL;
	}
	return caller;
}

void caller_close(struct caller *caller)
{
	if (caller != NULL)
		timer_delete(caller->timer);
	free(caller);
}

static void digest(struct caller *caller, const void *bytes, size_t count)
{
	const uint8_t *at = bytes;
	uint64_t hash = caller->result.digest;
	for (size_t i = 0; i < count; i++)
		hash = (hash ^ at[i]) * 0x100000001b3u;
	caller->result.digest = hash;
}

/* ---- the request -------------------------------------------------------------------------------------------------------- */

static struct frond_span say(struct caller *caller, const char *text)
{
	struct frond_span span = {caller->in_len, (uint32_t)strlen(text)};
	memcpy(caller->in + span.off, text, span.len);
	caller->in_len += span.len;
	return span;
}

static void wish(struct caller *caller, const char *key, const char *value)
{
	caller->pairs[caller->request.annotations++] =
		(struct frond_pair){.key = say(caller, key), .value = say(caller, value)};
}

static void say_claim(struct caller *caller, const uint32_t *number)
{
	static const char *const policies[] = {"contiguous", "spread", "preferIds"};
	static const char *const modes[] = {"Required", "Preferred", "Ignore"};
	static const char *const localities[] = {"any", "same-socket", "nvlink"};
	char claim[256];
	snprintf(claim, sizeof claim,
		 "{\"devices\":{\"policy\":\"%s\"%s},\"topology\":{\"mode\":\"%s\",\"locality\":\"%s\"",
		 policies[number[N_POLICY]], number[N_POLICY] == 2 ? ",\"preferIds\":[1,3,5,6]" : "",
		 modes[number[N_CLAIM_MODE]], localities[number[N_LOCALITY]]);
	size_t used = strlen(claim);
	if (number[N_LINK] > 0)
		used += (size_t)snprintf(claim + used, sizeof claim - used, ",\"minBandwidthGBps\":%" PRIu32,
					 number[N_LINK]);
	snprintf(claim + used, sizeof claim - used, "}}");
	caller->request.claim = say(caller, claim);
}

static void say_wishes(struct caller *caller, const struct cluster *cluster, const uint32_t *number, struct dice *dice)
{
	static const char *const strategies[] = {"balanced", "consolidated", "distributed"};
	static const char *const modes[] = {"Required", "Preferred", "Ignore"};
	static const char *const recoveries[] = {"Replace", "MoveGang", "Wait"};
	char text[64];
	const struct machine *machine = &cluster->machines[below(dice, cluster->nodes)];
	wish(caller, "topology.scheduler/placement-strategy", strategies[number[N_STRATEGY]]);
	wish(caller, "topology.scheduler/topology-mode", modes[number[N_MODE]]);
	wish(caller, "topology.scheduler/recovery", recoveries[number[N_RECOVERY]]);
	if (number[N_LATENCY])
		wish(caller, "topology.scheduler/latency-sensitive", "true");
	if (number[N_BANDWIDTH] > 0) {
		snprintf(text, sizeof text, "%" PRIu32 "Gb", number[N_BANDWIDTH]);
		wish(caller, "topology.scheduler/network-bandwidth", text);
	}
	if (number[N_DOMAIN] > 0) {
		snprintf(text, sizeof text, "%c%" PRIu32, "xlsx"[number[N_DOMAIN]],
			 number[N_DOMAIN] == 1 ? machine->leaf : machine->spine);
		wish(caller, "topology.scheduler/preferred-domain", text);
	}
	if (number[N_SEGMENT] > 0) {
		snprintf(text, sizeof text, "%" PRIu32, number[N_SEGMENT]);
		wish(caller, "topology.scheduler/segment-size", text);
	}
	if (number[N_SEGMENT] > 0 && number[N_LEVEL] > 0)
		wish(caller, "topology.scheduler/segment-level", number[N_LEVEL] == 1 ? "nvlink" : "leaf");
	if (number[N_CLAIM])
		say_claim(caller, number);
}

/* Members by rank: those that run already, then the larger group, then the others. */
static void say_members(struct caller *caller, const struct cluster *cluster, const uint32_t *number, struct dice *dice)
{
	struct frond_request *request = &caller->request;
	uint32_t second = number[N_SECOND] > 0 ? number[N_SECOND_COUNT] : 0;
	uint32_t third = number[N_THIRD] > 0 ? number[N_THIRD_COUNT] : 0, count = number[N_MEMBERS];
	bool alone = number[N_CALL] == CALL_ORDER;
	if (alone)
		count = 1, second = third = 0;
	if (second > FROND_MEMBERS_MAX - count)
		second = FROND_MEMBERS_MAX - count;
	if (third > FROND_MEMBERS_MAX - count - second)
		third = FROND_MEMBERS_MAX - count - second;
	for (uint32_t i = 0; i < count + second + third; i++) {
		uint32_t gpus = i < count ? number[N_GPUS] : i < count + second ? number[N_SECOND] : number[N_THIRD];
		caller->members[i] =
			(struct frond_member){.pod = {3, i + 1ull}, .rank = i, .gpus = gpus, .pinned_slot = FROND_NONE};
		request->gpus_desired += gpus;
	}
	request->gang = (struct frond_key){4, 1};
	request->members = request->min_member = count + second + third;
	uint32_t slot = below(dice, cluster->nodes), pins = 0;
	for (; pins < number[N_PINS] && pins + 1 < count && !alone && slot < cluster->nodes; slot++) {
		if ((uint32_t)__builtin_popcount(cluster->machines[slot].used) != number[N_GPUS])
			continue;
		caller->members[pins].pod = pod_key(slot);
		caller->members[pins++].pinned_slot = slot;
	}
	request->only_slot = number[N_ONLY] ? below(dice, cluster->nodes) : FROND_NONE;
}

static void say_request(struct caller *caller, const struct cluster *cluster, const uint32_t *number, struct dice *dice)
{
	caller->request = (struct frond_request){.priority = (int32_t)number[N_PRIORITY]};
	caller->in_len = 0;
	caller->request.name = say(caller, "team/gang");
	say_wishes(caller, cluster, number, dice);
	say_members(caller, cluster, number, dice);
}

/* The nodes where something else than GPUs decides how many members fit, for members of the first kind. */
static void say_room(struct caller *caller, const struct cluster *cluster, const uint32_t *number, struct dice *dice)
{
	caller->room_count = 0;
	for (uint32_t slot = 0; slot < cluster->nodes && number[N_ROOM] > 0; slot++)
		if (percent(dice, number[N_ROOM]))
			caller->room[caller->room_count++] = (struct frond_room){
				.slot = slot,
				.today = (uint16_t)number[N_ROOM_LEFT],
				.ever = percent(dice, 50) ? (uint16_t)number[N_ROOM_LEFT] : UINT16_MAX};
}

/* ---- calls ---------------------------------------------------------------------------------------------------------------- */

#define TEXT cluster->text, TEXT_CAP, &cluster->len
#define ROOM caller->room, caller->room_count
#define ASK  &caller->request, caller->members, caller->pairs, caller->in, caller->in_len

/* Runs CALL with the clock on. */
#define MEASURED(CALL)                                                                                                 \
	do {                                                                                                           \
		caller->begin = now_ns();                                                                              \
		if (sigsetjmp(given_up, 1) == 0) {                                                                     \
			timer_arm(caller, caller->most_ns);                                                            \
			caller->begin = now_ns();                                                                      \
			caller->result.code = (CALL);                                                                  \
		} else {                                                                                               \
			caller->result.stopped = cluster->dirty = true;                                                \
		}                                                                                                      \
		caller->result.ns = now_ns() - caller->begin;                                                          \
		timer_arm(caller, 0);                                                                                  \
	} while (0)

static void make_plan(struct caller *caller, struct cluster *cluster)
{
	struct frond_plan plan = {0};
	MEASURED(cluster->abi->plan(cluster->engine, ASK, ROOM, &plan, caller->places, TEXT));
	caller->result.outcome = plan.outcome;
	caller->result.flags = plan.flags;
	if (caller->result.stopped || caller->result.code != FROND_OK)
		return;
	digest(caller, &plan, sizeof plan);
	if (plan.outcome == FROND_PLACED)
		digest(caller, caller->places, caller->request.members * sizeof *caller->places);
}

static void make_order(struct caller *caller, struct cluster *cluster, const uint32_t *number, struct dice *dice)
{
	struct frond_plan plan = {0};
	struct frond_thrift thrift = {.cpu_milli = 4000, .memory_mib = 16384, .kinds = number[N_THRIFT]};
	for (uint32_t i = 0; i < number[N_THRIFT]; i++)
		caller->kinds[i] = (struct frond_kind){.cpu_milli = 1000 * below(dice, 64),
						       .memory_mib = 1024 * below(dice, 256),
						       .gpus = 1 + below(dice, 8),
						       .pods = 1 + below(dice, 100)};
	for (uint32_t slot = 0; number[N_THRIFT] > 0 && slot < cluster->nodes; slot++)
		caller->left[slot] = (struct frond_left){1000 * below(dice, 128), 1024 * below(dice, 1024)};
	MEASURED(cluster->abi->order(cluster->engine, ASK, ROOM, number[N_THRIFT] > 0 ? &thrift : NULL, caller->kinds,
				     caller->left, &plan, caller->position, TEXT));
	caller->result.outcome = plan.outcome;
	caller->result.flags = plan.flags;
	if (caller->result.stopped || caller->result.code != FROND_OK)
		return;
	digest(caller, &plan, sizeof plan);
	digest(caller, caller->position, cluster->nodes * sizeof *caller->position);
}

static void made_moves(struct caller *caller, const struct frond_moves *out)
{
	caller->result.outcome = out->outcome;
	caller->result.flags = out->flags;
	if (caller->result.stopped || caller->result.code != FROND_OK)
		return;
	digest(caller, out, sizeof *out);
	digest(caller, caller->moves, out->count * sizeof *caller->moves);
}

/* A running gang loses nodes. */
static void make_recover(struct caller *caller, struct cluster *cluster, const uint32_t *number, struct dice *dice)
{
	uint32_t gang = gang_of(cluster, below(dice, cluster->nodes)), each = cluster->input.number[N_GANG];
	uint32_t first = gang * each, end = first + each < cluster->nodes ? first + each : cluster->nodes;
	struct frond_key key = gang_key(gang);
	struct frond_moves out = {0};
	caller->request.gang = key;
	caller->request.min_member = end - first;
	int32_t code = cluster->abi->gang_put(cluster->engine, &caller->request, caller->pairs, caller->in,
					      caller->in_len, TEXT);
	cluster->dirty = true;
	for (uint32_t i = 0; i < number[N_LOST]; i++) {
		uint32_t slot = first + below(dice, end - first);
		must(cluster,
		     put_node(cluster, slot, FROND_NODE_DOWN, cluster->machines[slot].uplink,
			      cluster->machines[slot].leaf),
		     "node_put");
	}
	if (code != FROND_OK) {
		caller->result.code = code; /* nobody of it runs */
		return;
	}
	MEASURED(cluster->abi->recover(cluster->engine, &key, ROOM, &out, caller->moves, MOVES_MAX, TEXT));
	made_moves(caller, &out);
}

static void make_defrag(struct caller *caller, struct cluster *cluster)
{
	struct frond_moves out = {0};
	MEASURED(cluster->abi->defrag(cluster->engine, ASK, ROOM, &out, caller->moves, MOVES_MAX, TEXT));
	made_moves(caller, &out);
}

static void make_victims(struct caller *caller, struct cluster *cluster)
{
	struct frond_victims out = {0};
	MEASURED(cluster->abi->victims(cluster->engine, ASK, ROOM, &out, caller->places, caller->keys, FROND_PODS_MAX,
				       TEXT));
	caller->result.outcome = out.outcome;
	caller->result.flags = out.plan.flags;
	if (caller->result.stopped || caller->result.code != FROND_OK)
		return;
	digest(caller, &out, sizeof out);
	digest(caller, caller->keys, out.count * sizeof *caller->keys);
}

/* Nine of ten pods have an end, at different times in the order of slots, or at a few in no order. */
static void say_ends(struct caller *caller, const struct cluster *cluster, struct dice *dice)
{
	uint32_t count = 0, times = percent(dice, 50) ? 8 : UINT16_MAX;
	for (uint32_t slot = 0; slot < cluster->nodes; slot++)
		if (cluster->machines[slot].used != 0 && percent(dice, 90))
			caller->ends[count++].pod = pod_key(slot);
	for (uint32_t i = 0; i < count; i++)
		caller->ends[i].ends_in_ms = (int64_t)((uint64_t)i * times / count) * 1000;
	for (uint32_t i = 0; i < count && times == 8; i++) {
		uint32_t with = below(dice, count);
		struct frond_key pod = caller->ends[i].pod;
		caller->ends[i].pod = caller->ends[with].pod;
		caller->ends[with].pod = pod;
	}
	caller->end_count = count;
}

static void make_window(struct caller *caller, struct cluster *cluster)
{
	struct frond_window out = {0};
	MEASURED(cluster->abi->window(cluster->engine, ASK, ROOM, caller->ends, caller->end_count, NULL, &out,
				      caller->places, TEXT));
	caller->result.outcome = out.outcome;
	caller->result.flags = out.plan.flags;
	if (caller->result.stopped || caller->result.code != FROND_OK)
		return;
	digest(caller, &out, sizeof out);
	if (out.outcome == FROND_PLACED)
		digest(caller, caller->places, caller->request.members * sizeof *caller->places);
}

/* A plan is booked and taken back; what of it is measured, `call` says. */
static void make_booking(struct caller *caller, struct cluster *cluster, enum call call)
{
	const struct frond_abi *abi = cluster->abi;
	struct frond_key gang = caller->request.gang, expired[4];
	uint32_t pods;
	cluster->dirty = true;
	caller->request.deadline_ms = 1000;
	make_plan(caller, cluster);
	if (caller->result.stopped || caller->result.code != FROND_OK || caller->result.outcome != FROND_PLACED) {
		caller->result.ns = 0; /* not what was asked for */
		return;
	}
	if (call == CALL_UNDO)
		must(cluster, abi->what_if(cluster->engine), "what_if");
	MEASURED(abi->reserve(cluster->engine, &caller->request, caller->members, caller->places));
	if (call == CALL_RESERVE || caller->result.stopped || caller->result.code != FROND_OK)
		return;
	if (call == CALL_RELEASE)
		MEASURED(abi->release_gang(cluster->engine, &gang, &pods));
	else if (call == CALL_UNDO)
		MEASURED(abi->undo(cluster->engine));
	else
		MEASURED(abi->tick(cluster->engine, 2000, expired, 4, &pods));
}

static void make_change(struct caller *caller, struct cluster *cluster, enum call call, struct dice *dice)
{
	uint32_t slot = below(dice, cluster->nodes), id;
	const struct machine *machine = &cluster->machines[slot];
	struct frond_topology links;
	cluster->dirty = true;
	switch (call) {
	case CALL_NODE_PUT:
		MEASURED(put_node(cluster, slot, FROND_NODE_CORDONED, machine->uplink, machine->leaf));
		break;
	case CALL_NODE_REMOVE:
		MEASURED(cluster->abi->node_remove(cluster->engine, slot));
		break;
	case CALL_POD_PUT:
		if (machine->used != 0)
			MEASURED(put_pod(cluster, slot));
		break;
	case CALL_REBUILD: /* into a leaf that is not there yet, after the last */
		must(cluster, put_node(cluster, slot, 0, machine->uplink, cluster->nodes), "node_put");
		make_plan(caller, cluster);
		break;
	default:
		links = links_uneven(dice);
		MEASURED(cluster->abi->topology_put(cluster->engine, &links, &id, TEXT));
	}
}

static void make_look(struct caller *caller, struct cluster *cluster, enum call call)
{
	const struct frond_abi *abi = cluster->abi;
	struct frond_stats stats = {0};
	if (call == CALL_DUMP)
		MEASURED(abi->dump(cluster->engine, TEXT));
	else if (call == CALL_CHECK)
		MEASURED(abi->check(cluster->engine, TEXT));
	else if (call == CALL_MAP)
		MEASURED(abi->map(cluster->engine, 0, TEXT));
	else if (call == CALL_STATS)
		MEASURED(abi->stats(cluster->engine, &stats));
	else
		MEASURED(abi->problems(cluster->engine, TEXT));
}

struct result call_make(struct caller *caller, struct cluster *cluster, const struct input *input)
{
	const uint32_t *number = input->number;
	enum call call = (enum call)number[N_CALL];
	struct dice dice = {number[N_DICE]};
	caller->result = (struct result){.digest = 0xcbf29ce484222325u};
	if (cluster->dirty)
		cluster_restore(cluster);
	say_request(caller, cluster, number, &dice);
	say_room(caller, cluster, number, &dice);
	if (call == CALL_PLAN)
		make_plan(caller, cluster);
	else if (call == CALL_ORDER)
		make_order(caller, cluster, number, &dice);
	else if (call == CALL_RECOVER)
		make_recover(caller, cluster, number, &dice);
	else if (call == CALL_VICTIMS)
		make_victims(caller, cluster);
	else if (call == CALL_WINDOW) {
		say_ends(caller, cluster, &dice);
		make_window(caller, cluster);
	} else if (call == CALL_DEFRAG)
		make_defrag(caller, cluster);
	else if (call <= CALL_TICK)
		make_booking(caller, cluster, call);
	else if (call <= CALL_TOPOLOGY)
		make_change(caller, cluster, call, &dice);
	else
		make_look(caller, cluster, call);
	return caller->result;
}
