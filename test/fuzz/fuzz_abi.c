/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is a sequence of calls of the table, decoded from small alphabets so that deep states are reached: few
 * nodes, pods and gangs, fewer ledger entries than pods. After every call the invariant checker runs, and whatever was
 * refused or only asked has left the dump and the generation as they were.
 *
 * A further call is a function and an entry at the end of operations[]; kept inputs keep their meaning when it takes what
 * else it needs from `later`, which its own operation sets.
 */
#include "fuzz.h"

#include <stdbool.h>

enum {
	NODES = 8,
	PODS = 20,
	LEDGER = 8, /* entries: fewer than pods, so that the limit is met */
	GANGS = 5,
	MEMBERS = 6,
	STEPS = 256,
	TEXT = 1 << 15,
	WISHES = 3,
	KINDS = 4,
	TRIALS = 3,
	HOLDS = 6, /* fewer than ranks of all gangs */
	RANKS = 4,
	TABLE_BYTES = 1 << 17, /* for GPU-set tables: nodes of 16 GPUs do not fit, a few kinds of smaller ones do */
	OPERATIONS_ROOM = 32,  /* an operation is a byte modulo this */
};

struct picture {
	uint32_t len;
	char text[TEXT];
};

struct run {
	const uint8_t *at, *end; /* what is left of the input */
	const struct frond_abi *abi;
	frond_engine *engine;
	uint64_t generation;
	uint32_t before_len;
	char before[TEXT]; /* the dump before the call */
	char text[TEXT];

	/* the last plan, for reserve */
	bool planned;
	struct frond_request request;
	struct frond_member members[MEMBERS];
	struct frond_place places[MEMBERS];
	uint64_t planned_generation;

	int64_t now_ms;
	struct picture trials[TRIALS]; /* before each what_if that is open */
	uint32_t trial_count;
	struct {                   /* for the calls to come */
		uint32_t topology; /* an id, now and then one that nobody gave */
		const char *model, *claim;
		int32_t priority;
		int64_t deadline_ms;
		uint32_t rank; /* of pods that are bound */
		uint32_t named_count;
		struct frond_named named[FROND_GPUS_MAX];
	} later;
};

/* What a call may have done: only a call that changes things and succeeds may have changed any. */
enum effect { ASKS, CHANGES, TAKES_BACK };

struct words { /* strings of one call and their spans */
	char text[1024];
	uint32_t len;
};

/* ---- decoding --------------------------------------------------------------------------------------------------- */

static uint32_t below(struct run *run, uint32_t bound) /* 0 when the input is used up */
{
	uint32_t byte = run->at < run->end ? *run->at++ : 0;
	return byte % bound;
}

static bool rarely(struct run *run) /* once in 16, and never at the end of the input */
{
	return below(run, 16) == 15;
}

static struct frond_key pod_key(struct run *run)
{
	uint32_t pod = below(run, PODS + 1); /* the last one is no key at all */
	return pod < PODS ? (struct frond_key){1 + pod % 2, pod + 1} : (struct frond_key){0, 0};
}

static struct frond_key gang_key(struct run *run)
{
	uint32_t gang = below(run, GANGS + 1);
	return gang < GANGS ? (struct frond_key){7, gang + 1} : (struct frond_key){0, 0};
}

static struct frond_span say(struct words *words, const char *text)
{
	struct frond_span span = {words->len, (uint32_t)strlen(text)};
	MUST(words->len + span.len <= sizeof words->text);
	memcpy(words->text + words->len, text, span.len);
	words->len += span.len;
	return span;
}

static struct frond_span say_number(struct words *words, const char *prefix, uint32_t number)
{
	char text[64];
	snprintf(text, sizeof text, "%s%u", prefix, (unsigned)number);
	return say(words, text);
}

/* ---- what holds after every call -------------------------------------------------------------------------------- */

static uint64_t generation(struct run *run)
{
	struct frond_stats stats;
	MUST(run->abi->stats(run->engine, &stats) == FROND_OK);
	/* Pods held by count may ask for more than there is: what is free is a lower bound on capacity, never above. */
	MUST(stats.gpus_free + stats.gpus_unhealthy <= stats.gpus || stats.gpus_free == 0);
	MUST(stats.pods <= LEDGER && stats.nodes <= NODES && stats.nodes_without_leaf <= stats.nodes);
	return stats.generation;
}

static void check(struct run *run)
{
	char text[FROND_TEXT_MAX + 1];
	uint32_t len = 0;
	int32_t code = run->abi->check(run->engine, text, FROND_TEXT_MAX, &len);
	text[len] = 0;
	if (code != FROND_OK)
		fprintf(stderr, "check: %s\n", text);
	MUST(code == FROND_OK);
}

static void picture(struct run *run)
{
	MUST(run->abi->dump(run->engine, run->before, TEXT, &run->before_len) == FROND_OK);
	run->before[run->before_len < TEXT ? run->before_len : TEXT - 1] = 0;
	run->generation = generation(run);
}

/* Ends every operation: the code is one that the call may return, and the state is as it must be. */
static void answered(struct run *run, enum effect effect, int32_t code)
{
	uint32_t len = 0;
	MUST(code >= FROND_OK && code < FROND_BROKEN);
	check(run);
	MUST(run->abi->dump(run->engine, run->text, TEXT, &len) == FROND_OK);
	bool same = len == run->before_len && memcmp(run->text, run->before, len) == 0;
	uint64_t now = generation(run);
	if (code != FROND_OK || effect == ASKS) {
		if (!same)
			fprintf(stderr, "before:\n%.*s\nafter:\n%.*s\n", (int)run->before_len, run->before, (int)len,
				run->text);
		MUST(same);
		MUST(now == run->generation);
	}
	MUST(effect == TAKES_BACK || now >= run->generation);
	memcpy(run->before, run->text, len);
	run->before[len < TEXT ? len : TEXT - 1] = 0;
	run->before_len = len;
	run->generation = now;
}

/* The sentence of a call that was refused; calls that succeed may have left none. */
static void said(const struct run *run, int32_t code, uint32_t len)
{
	MUST(len <= TEXT);
	if (code != FROND_OK)
		must_be_sentence(run->text, len);
}

/* ---- cluster state ---------------------------------------------------------------------------------------------- */

static void node_put(struct run *run)
{
	static const char *const leaf_key = "fabric.topograph.run/tier-0", *const spine_key =
										   "fabric.topograph.run/tier-1";
	static const uint32_t sizes[] = {8, 4, 8, 16, 2, 1, 0, 8};
	struct words words = {.len = 0};
	uint32_t slot = below(run, NODES + 1), labels = 0, len = 0;
	struct frond_node node = {.slot = slot,
				  .gpus = sizes[below(run, 8)],
				  .topology = run->later.topology,
				  .name = say_number(&words, "node-", slot + 1),
				  .model = say(&words, run->later.model)};
	uint32_t leaf = below(run, 6), spine = below(run, 4);
	struct frond_pair pairs[2];
	if (leaf < 5)
		pairs[labels++] = (struct frond_pair){say(&words, leaf_key), say_number(&words, "leaf-", leaf)};
	if (spine < 3) /* a leaf names its own spine unless it is rare: trees are the usual case */
		pairs[labels++] = (struct frond_pair){say(&words, spine_key),
						      say_number(&words, "spine-", spine == 2 ? 9 : leaf / 2)};
	if (rarely(run))
		node.name = say_number(&words, "node-", below(run, NODES)); /* often another one's */
	if (rarely(run))
		node.unhealthy_mask = below(run, 256);
	if (rarely(run))
		node.flags = below(run, 17);
	if (rarely(run))
		node.unavailable_mask = node.unhealthy_mask & below(run, 256);
	if (rarely(run))
		node.unavailable_mask = below(run, 256);
	if (rarely(run))
		node.uplink_gbps = 100 * below(run, 5);
	int32_t code =
		run->abi->node_put(run->engine, &node, pairs, labels, words.text, words.len, run->text, TEXT, &len);
	said(run, code, len);
	answered(run, CHANGES, code);
}

static void node_remove(struct run *run)
{
	answered(run, CHANGES, run->abi->node_remove(run->engine, below(run, NODES + 1)));
}

static void pod_put(struct run *run)
{
	struct words words = {.len = 0};
	uint32_t len = 0, mask = below(run, 256);
	/* One after the other: inside one list each compiler has its own order. */
	struct frond_key key = pod_key(run), gang = gang_key(run);
	struct frond_pod pod = {.pod = key, .slot = below(run, NODES + 1), .gang = gang, .rank = run->later.rank};
	pod.gpu_mask = mask;
	for (; mask != 0; mask &= mask - 1)
		pod.gpus++;
	if (rarely(run))
		pod.gpu_mask = 0; /* held by count */
	if (rarely(run))
		pod.gpus = below(run, 20); /* not what the mask says */
	if (rarely(run))
		pod.gpu_mask |= 1u << below(run, 32); /* perhaps no GPU of the node */
	if (rarely(run))
		pod.reserved = below(run, 2);
	if (rarely(run))
		pod.name = say_number(&words, "ns/job-", below(run, 4));
	if (rarely(run))
		pod.name.off = words.len + 1;
	int32_t code = run->abi->pod_put(run->engine, &pod, words.text, words.len, run->text, TEXT, &len);
	said(run, code, len);
	answered(run, CHANGES, code);
}

/* ---- plans ------------------------------------------------------------------------------------------------------ */

/* One of our annotations with one of its values, now and then a wrong one. */
static struct frond_pair wish(struct run *run, struct words *words)
{
	static const char *const wishes[][2] = {
		{"placement-strategy", "consolidated"},
		{"placement-strategy", "distributed"},
		{"topology-mode", "Preferred"},
		{"topology-mode", "Ignore"},
		{"topology-mode", "Required"},
		{"latency-sensitive", "true"},
		{"network-bandwidth", "200Gb"},
		{"preferred-domain", "leaf-1"},
		{"preferred-domain", "spine-0"},
		{"preferred-domain", "nowhere"},
		{"topology-wait", "10s"},
		{"topology-wait", "forever"},
		{"gpu-count", "8"},
		{"recovery", "MoveGang"},
		{"topology-mode", "required"},
		{"unknown", "1"},
	};
	uint32_t which = below(run, sizeof wishes / sizeof wishes[0]);
	struct frond_pair pair = {.key = say(words, "topology.scheduler/")};
	pair.key.len += say(words, wishes[which][0]).len;
	pair.value = say(words, wishes[which][1]);
	return pair;
}

static uint32_t pick_members(struct run *run, uint32_t count)
{
	static const uint32_t sizes[] = {8, 4, 2, 1, 8, 16, 0, 17};
	uint32_t size = sizes[below(run, 8)], first = below(run, PODS), total = 0;
	bool mixed = rarely(run);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t pod = (first + i) % PODS;
		run->members[i] = (struct frond_member){.pod = {1 + pod % 2, pod + 1},
							.rank = i,
							.gpus = mixed ? sizes[below(run, 8)] : size,
							.pinned_slot = FROND_NONE};
		total += run->members[i].gpus;
	}
	struct frond_member *odd = &run->members[below(run, count)];
	if (rarely(run))
		odd->pinned_slot = below(run, NODES + 1);
	if (rarely(run))
		odd->pod = pod_key(run); /* often one that is there twice */
	if (rarely(run))
		run->members[0].rank = below(run, 3);
	return total;
}

/* Fills run->request and run->members; returns the pairs' number. */
static uint32_t pick_request(struct run *run, uint32_t count, struct words *words, struct frond_pair *pairs)
{
	struct frond_request *request = &run->request;
	*request = (struct frond_request){.gang = gang_key(run),
					  .members = count,
					  .min_member = count,
					  .only_slot = FROND_NONE,
					  .name = say(words, "ns/gang"),
					  .deadline_ms = run->later.deadline_ms,
					  .priority = run->later.priority,
					  .named_count = run->later.named_count,
					  .claim = say(words, run->later.claim)};
	memcpy(request->named, run->later.named, sizeof request->named);
	request->gpus_desired = pick_members(run, count);
	request->annotations = below(run, WISHES + 1);
	for (uint32_t i = 0; i < request->annotations; i++)
		pairs[i] = wish(run, words);
	if (rarely(run))
		request->only_slot = below(run, NODES + 1);
	if (rarely(run))
		request->age_ms = 5000 * (int64_t)below(run, 100) - 5000;
	if (rarely(run))
		request->min_member = below(run, MEMBERS + 2);
	if (rarely(run))
		request->members = below(run, 2) == 0 ? 0 : FROND_MEMBERS_MAX + 1;
	return request->annotations;
}

/* The dump before this call says so. */
static bool node_there(const struct run *run, uint32_t slot)
{
	char line[32];
	snprintf(line, sizeof line, "\nnode %u ", (unsigned)slot);
	return strstr(run->before, line) != NULL;
}

/* Exceptions: none, as for most requests; some; or, rarely, a list that is not well formed. Returns how many. */
static uint32_t pick_room(struct run *run, struct frond_room *room)
{
	uint32_t count = 0;
	if (!rarely(run))
		return 0;
	for (uint32_t slot = 0; slot < NODES; slot++) {
		if (!node_there(run, slot) || below(run, 3) == 0)
			continue;
		uint32_t ever = below(run, 20), today = below(run, ever + 1u);
		uint32_t unavailable = below(run, 3) > 0 ? 0 : below(run, 2) > 0 ? ever : below(run, ever + 1u);
		room[count++] = (struct frond_room){.slot = slot,
						    .today = (uint16_t)today,
						    .ever = (uint16_t)ever,
						    .unavailable = (uint16_t)unavailable};
	}
	if (count > 0 && rarely(run))
		room[below(run, count)].slot = below(run, NODES + 2);
	if (count > 0 && rarely(run))
		room[below(run, count)].pod_template = (uint16_t)below(run, MEMBERS + 1);
	return count;
}

/* The ring names the GPUs of the mask, each once, the lowest first. */
static void check_ring(const struct frond_place *place)
{
	uint32_t seen = 0, count = (uint32_t)__builtin_popcount(place->gpu_mask);
	for (uint32_t i = 0; i < count; i++)
		seen |= 1u << (place->ring >> 4 * i & 15);
	MUST(seen == place->gpu_mask && (place->gpu_mask & ((1u << (place->ring & 15)) - 1)) == 0);
	MUST(count == 16 || place->ring >> 4 * count == 0);
}

/* A plan holds GPUs that are there, as many as asked for, each once. Pinned members stay where they are. */
static void check_places(const struct run *run)
{
	uint32_t taken[NODES] = {0};
	for (uint32_t i = 0; i < run->request.members; i++) {
		const struct frond_member *member = &run->members[i];
		const struct frond_place *place = &run->places[i];
		if (member->pinned_slot != FROND_NONE) {
			MUST(place->slot == member->pinned_slot || member->gpus == 0);
			continue;
		}
		if (member->gpus == 0) {
			MUST(place->slot == FROND_NONE);
			continue;
		}
		MUST(place->slot < NODES && (uint32_t)__builtin_popcount(place->gpu_mask) == member->gpus);
		MUST((taken[place->slot] & place->gpu_mask) == 0);
		MUST(run->request.only_slot == FROND_NONE || place->slot == run->request.only_slot);
		taken[place->slot] |= place->gpu_mask;
		check_ring(place);
	}
}

static void plan(struct run *run)
{
	struct words words = {.len = 0};
	struct frond_pair pairs[WISHES];
	struct frond_room room[NODES];
	struct frond_plan out;
	uint32_t len = 0;
	pick_request(run, 1 + below(run, MEMBERS), &words, pairs);
	int32_t code = run->abi->plan(run->engine, &run->request, run->members, pairs, words.text, words.len, room,
				      pick_room(run, room), &out, run->places, run->text, TEXT, &len);
	said(run, code, len);
	run->planned = code == FROND_OK && out.outcome == FROND_PLACED;
	run->planned_generation = run->generation;
	if (code == FROND_OK) {
		must_be_sentence(run->text, len);
		MUST(out.outcome >= FROND_PLACED && out.outcome <= FROND_UNDECIDED &&
		     out.generation == run->generation);
	}
	if (run->planned)
		check_places(run);
	answered(run, ASKS, code);
}

/* The order of nodes for one pod begins where its plan would put it, and is empty when there is no plan. */
static void order(struct run *run)
{
	struct words words = {.len = 0};
	struct frond_pair pairs[WISHES];
	struct frond_room room[NODES];
	struct frond_plan ordered, planned;
	struct frond_place place;
	uint16_t position[NODES];
	uint32_t len = 0;
	run->planned = false;
	pick_request(run, 1, &words, pairs);
	uint32_t rooms = pick_room(run, room);
	int32_t code = run->abi->order(run->engine, &run->request, run->members, pairs, words.text, words.len, room,
				       rooms, NULL, NULL, NULL, &ordered, position, run->text, TEXT, &len);
	said(run, code, len);
	if (code == FROND_OK) {
		MUST(run->abi->plan(run->engine, &run->request, run->members, pairs, words.text, words.len, room, rooms,
				    &planned, &place, run->text, TEXT, &len) == FROND_OK);
		MUST(ordered.outcome == planned.outcome && ordered.rule == planned.rule);
		for (uint32_t slot = 0; slot < NODES; slot++)
			MUST((position[slot] == 0) == (planned.outcome == FROND_PLACED && place.slot == slot));
	}
	answered(run, ASKS, code);
}

/* Thrift changes which node comes first, and nothing else; over a limit it is refused. */
static void order_with_thrift(struct run *run)
{
	struct words words = {.len = 0};
	struct frond_pair pairs[WISHES];
	struct frond_plan ordered, careful;
	struct frond_left left[NODES];
	struct frond_kind kinds[KINDS];
	uint16_t position[NODES], other[NODES];
	uint32_t len = 0, feasible = 0, placed = 0;
	bool sound = true;
	run->planned = false;
	pick_request(run, 1, &words, pairs);
	struct frond_thrift thrift = {below(run, 8), below(run, 8), below(run, KINDS + 1), 0};
	for (uint32_t i = 0; i < thrift.kinds; i++) {
		kinds[i] = (struct frond_kind){below(run, 8), below(run, 8), 1 + below(run, FROND_GPUS_MAX),
					       FROND_PODS_MAX};
		if (rarely(run))
			kinds[i].pods = below(run, 2) == 0 ? 0 : UINT32_MAX;
		if (rarely(run))
			kinds[i].gpus = below(run, 2) == 0 ? 0 : FROND_GPUS_MAX + 1;
		sound = sound && kinds[i].gpus - 1 < FROND_GPUS_MAX && kinds[i].pods == FROND_PODS_MAX;
	}
	for (uint32_t slot = 0; slot < NODES; slot++)
		left[slot] = (struct frond_left){below(run, 64), rarely(run) ? UINT32_MAX : below(run, 64)};
	int32_t code = run->abi->order(run->engine, &run->request, run->members, pairs, words.text, words.len, NULL, 0,
				       &thrift, kinds, left, &careful, position, run->text, TEXT, &len);
	said(run, code, len);
	MUST(sound || code != FROND_OK);
	if (code == FROND_OK) {
		MUST(run->abi->order(run->engine, &run->request, run->members, pairs, words.text, words.len, NULL, 0,
				     NULL, NULL, NULL, &ordered, other, run->text, TEXT, &len) == FROND_OK);
		MUST(memcmp(&ordered, &careful, sizeof ordered) == 0);
		for (uint32_t slot = 0; slot < NODES; slot++) {
			MUST((position[slot] == UINT16_MAX) == (other[slot] == UINT16_MAX));
			feasible += position[slot] != UINT16_MAX;
			placed |= position[slot] != UINT16_MAX ? 1u << position[slot] : 0;
		}
		MUST(placed == (1u << feasible) - 1); /* each place once */
	}
	answered(run, ASKS, code);
}

/* ---- reservations ----------------------------------------------------------------------------------------------- */

static bool holds(struct run *run, struct frond_key pod)
{
	struct frond_held held;
	int32_t code = run->abi->pod_get(run->engine, &pod, &held);
	MUST(code == FROND_OK || code == FROND_UNKNOWN);
	return code == FROND_OK;
}

/* Members that are to be placed, hold nothing yet and are named once; pinned ones that hold something. */
static bool members_are_sound(struct run *run)
{
	for (uint32_t i = 0; i < run->request.members; i++) {
		const struct frond_member *member = &run->members[i];
		if (holds(run, member->pod) != (member->pinned_slot != FROND_NONE))
			return false;
		for (uint32_t j = 0; j < i; j++)
			if (member->pod.hi == run->members[j].pod.hi && member->pod.lo == run->members[j].pod.lo)
				return false;
	}
	return true;
}

/* The last plan as it was, which must be had if nothing has happened since; or with one place changed. */
static void reserve(struct run *run)
{
	if (!run->planned)
		return;
	bool fresh = run->planned_generation == run->generation && members_are_sound(run);
	if (rarely(run)) {
		struct frond_place *place = &run->places[below(run, run->request.members)];
		place->slot = below(run, NODES + 1);
		place->gpu_mask = below(run, 256);
		fresh = run->planned = false;
	}
	int32_t code = run->abi->reserve(run->engine, &run->request, run->members, run->places);
	MUST(!fresh || code == FROND_OK || code == FROND_LIMIT);
	answered(run, CHANGES, code);
}

static void permit(struct run *run)
{
	struct frond_key pod = pod_key(run);
	uint32_t verdict = 0;
	int32_t code = run->abi->permit(run->engine, &pod, &verdict);
	MUST(code != FROND_OK || verdict == FROND_HOLD || verdict == FROND_GO);
	answered(run, CHANGES, code);
}

static void confirm(struct run *run)
{
	struct frond_key pod = pod_key(run);
	answered(run, CHANGES, run->abi->confirm(run->engine, &pod));
}

static void release(struct run *run)
{
	struct frond_key pod = pod_key(run);
	bool held = holds(run, pod);
	int32_t code = run->abi->release(run->engine, &pod);
	MUST(code == (held ? FROND_OK : FROND_UNKNOWN) && !holds(run, pod));
	answered(run, CHANGES, code);
}

static void release_gang(struct run *run)
{
	struct frond_key gang = gang_key(run);
	uint32_t pods = 0;
	int32_t code = run->abi->release_gang(run->engine, &gang, &pods);
	MUST(pods <= LEDGER);
	answered(run, pods > 0 ? CHANGES : ASKS, code);
}

/* ---- gangs, time, what if --------------------------------------------------------------------------------------- */

static void gang_put(struct run *run)
{
	struct words words = {.len = 0};
	struct frond_pair pairs[WISHES];
	uint32_t len = 0;
	run->planned = false;
	pick_request(run, 1 + below(run, MEMBERS), &words, pairs);
	int32_t code =
		run->abi->gang_put(run->engine, &run->request, pairs, words.text, words.len, run->text, TEXT, &len);
	said(run, code, len);
	answered(run, CHANGES, code);
}

static void gang_get(struct run *run)
{
	struct frond_key gang = gang_key(run);
	struct frond_gang out;
	int32_t code = run->abi->gang_get(run->engine, &gang, &out);
	if (code == FROND_OK) {
		MUST(out.state >= FROND_GANG_GATHERING && out.state <= FROND_GANG_DEGRADED && out.reserved == 0);
		MUST(out.members > 0 && out.arrived + out.bound <= out.members && out.members <= LEDGER);
	}
	answered(run, ASKS, code);
}

static uint64_t holds_expired(struct run *run)
{
	struct frond_stats stats;
	MUST(run->abi->stats(run->engine, &stats) == FROND_OK);
	return stats.holds_expired;
}

/* Holds end without being told of by key. */
static void tick(struct run *run)
{
	struct frond_key expired[2];
	uint32_t count = 0, cap = below(run, 3);
	uint64_t holds = holds_expired(run);
	run->now_ms += 1000 * (int64_t)below(run, 20);
	int32_t code = run->abi->tick(run->engine, run->now_ms, expired, cap, &count);
	MUST(count <= LEDGER);
	answered(run, count > 0 || holds_expired(run) > holds ? CHANGES : ASKS, code);
}

static void what_if(struct run *run)
{
	if (run->trial_count == TRIALS)
		return;
	struct picture *trial = &run->trials[run->trial_count];
	trial->len = run->before_len;
	memcpy(trial->text, run->before, trial->len);
	int32_t code = run->abi->what_if(run->engine);
	run->trial_count += code == FROND_OK;
	answered(run, CHANGES, code);
}

/* What was booked since what_if() is as if it had never been. A plan made meanwhile is of no use any more. */
static void undo(struct run *run)
{
	int32_t code = run->abi->undo(run->engine);
	MUST((code == FROND_OK) == (run->trial_count > 0));
	run->planned = false;
	answered(run, TAKES_BACK, code);
	if (code != FROND_OK)
		return;
	const struct picture *trial = &run->trials[--run->trial_count];
	MUST(trial->len == run->before_len && memcmp(trial->text, run->before, trial->len) == 0);
}

/* ---- holds ------------------------------------------------------------------------------------------------------ */

/* Those of one gang are those of all that are its; in order, each rank once, no GPU twice. Returns how many there are. */
static uint32_t check_holds(struct run *run, const struct frond_key *gang)
{
	struct frond_hold all[HOLDS], own[HOLDS];
	uint32_t count = 0, own_count = 0, seen = 0;
	MUST(run->abi->hold_list(run->engine, NULL, all, HOLDS, &count) == FROND_OK && count <= HOLDS);
	MUST(run->abi->hold_list(run->engine, gang, own, HOLDS, &own_count) == FROND_OK && own_count <= count);
	for (uint32_t i = 0; i < count; i++) {
		const struct frond_hold *hold = &all[i], *before = &all[i > 0 ? i - 1 : 0];
		if (hold->gang.hi == gang->hi && hold->gang.lo == gang->lo)
			MUST(seen < own_count && memcmp(&own[seen++], hold, sizeof *hold) == 0);
		MUST(i == 0 || before->gang.lo < hold->gang.lo ||
		     (before->gang.lo == hold->gang.lo && before->rank < hold->rank));
		for (uint32_t j = 0; j < i; j++)
			MUST(all[j].slot != hold->slot || (all[j].gpu_mask & hold->gpu_mask) == 0);
	}
	MUST(seen == own_count);
	if (count > 0)
		MUST(run->abi->hold_list(run->engine, NULL, all, count - 1, &own_count) == FROND_SMALL &&
		     own_count == count);
	return count;
}

static void hold_put(struct run *run, struct frond_key gang, uint32_t there)
{
	struct frond_hold list[HOLDS + 1];
	uint32_t count = 1 + below(run, HOLDS), len = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t slot = below(run, NODES), mask = below(run, 256);
		list[i] = (struct frond_hold){.gang = gang, .rank = below(run, RANKS), .slot = slot, .gpu_mask = mask};
		list[i].deadline_ms = run->later.deadline_ms;
		if (rarely(run))
			list[i].gang = gang_key(run);
		if (rarely(run))
			list[i].rank = FROND_RANK_MAX + below(run, 2);
		if (rarely(run))
			list[i].deadline_ms = below(run, 2) == 0 ? FROND_DEADLINE_MAX + 1 : INT64_MIN;
		if (rarely(run))
			list[i].reserved = 1;
	}
	int32_t code = run->abi->hold_put(run->engine, list, count, run->text, TEXT, &len);
	said(run, code, len);
	MUST((code == FROND_LIMIT) == (there + count > HOLDS && run->trial_count == 0));
	answered(run, CHANGES, code);
	MUST(check_holds(run, &gang) == there + (code == FROND_OK ? count : 0));
}

static void hold(struct run *run)
{
	struct frond_key gang = gang_key(run), pod;
	uint32_t kind = below(run, 4), rank = below(run, RANKS), count = 0, there = check_holds(run, &gang);
	run->later.rank = rank;
	if (kind < 2) {
		hold_put(run, gang, there);
	} else if (kind == 2) {
		pod = pod_key(run);
		bool held = holds(run, pod);
		int32_t code = run->abi->hold_take(run->engine, &gang, rank, &pod);
		MUST(code != FROND_OK || (!held && holds(run, pod)));
		answered(run, CHANGES, code);
		MUST(check_holds(run, &gang) == there - (code == FROND_OK));
	} else {
		if (rarely(run))
			rank = FROND_NONE;
		int32_t code = run->abi->hold_drop(run->engine, &gang, rank, &count);
		MUST((code == FROND_OK) == (run->trial_count == 0) && (rank == FROND_NONE || count <= 1));
		answered(run, CHANGES, code);
		MUST(check_holds(run, &gang) == there - count);
	}
}

/* ---- moves ------------------------------------------------------------------------------------------------------ */

static void check_moves(const struct run *run, int32_t code, const struct frond_moves *out,
			const struct frond_move *moves, uint32_t cap, uint32_t len)
{
	if (code == FROND_SMALL)
		MUST(out->count > cap);
	if (code != FROND_OK)
		return;
	must_be_sentence(run->text, len);
	MUST(out->outcome >= FROND_PLACED && out->outcome <= FROND_UNDECIDED);
	MUST(out->count <= cap && out->lower_bound <= out->count);
	for (uint32_t i = 0; i < out->count; i++) {
		MUST(moves[i].from < NODES && moves[i].to < NODES && moves[i].gpu_mask != 0);
		check_ring(&(struct frond_place){moves[i].to, moves[i].gpu_mask, moves[i].ring});
	}
}

static void recover(struct run *run)
{
	struct frond_key gang = gang_key(run);
	struct frond_room room[NODES];
	struct frond_moves out;
	struct frond_move moves[LEDGER];
	uint32_t len = 0, cap = rarely(run) ? below(run, 2) : LEDGER;
	int32_t code = run->abi->recover(run->engine, &gang, room, pick_room(run, room), &out, moves, cap, run->text,
					 TEXT, &len);
	check_moves(run, code, &out, moves, cap, len);
	answered(run, ASKS, code);
}

static void defrag(struct run *run)
{
	struct words words = {.len = 0};
	struct frond_pair pairs[WISHES];
	struct frond_room room[NODES];
	struct frond_moves out;
	struct frond_move moves[LEDGER];
	uint32_t len = 0;
	run->planned = false;
	pick_request(run, 1 + below(run, MEMBERS), &words, pairs);
	int32_t code = run->abi->defrag(run->engine, &run->request, run->members, pairs, words.text, words.len, room,
					pick_room(run, room), &out, moves, LEDGER, run->text, TEXT, &len);
	check_moves(run, code, &out, moves, LEDGER, len);
	answered(run, ASKS, code);
}

static void victims(struct run *run)
{
	struct words words = {.len = 0};
	struct frond_pair pairs[WISHES];
	struct frond_room room[NODES];
	struct frond_victims out;
	struct frond_key pods[LEDGER];
	uint32_t len = 0;
	run->planned = false;
	pick_request(run, 1 + below(run, MEMBERS), &words, pairs);
	int32_t code = run->abi->victims(run->engine, &run->request, run->members, pairs, words.text, words.len, room,
					 pick_room(run, room), &out, run->places, pods, LEDGER, run->text, TEXT, &len);
	if (code == FROND_OK) {
		must_be_sentence(run->text, len);
		MUST(out.count <= LEDGER && out.budgets <= out.count && out.gangs <= out.count);
		for (uint32_t i = 0; i < out.count; i++)
			MUST(holds(run, pods[i]));
		if (out.outcome == FROND_PLACED)
			check_places(run);
	}
	answered(run, ASKS, code);
}

/* Ends of pods that may be there, now and then out of order, twice, or in the past; the window that was found once more. */
static void window(struct run *run)
{
	struct words words = {.len = 0};
	struct frond_pair pairs[WISHES];
	struct frond_room room[NODES];
	struct frond_end ends[LEDGER];
	struct frond_place kept[MEMBERS];
	struct frond_window out;
	uint32_t len = 0, count = below(run, LEDGER + 1);
	int64_t at = 0;
	run->planned = false;
	for (uint32_t i = 0; i < count; i++) {
		at += (int64_t)below(run, 4) * 1000 - (below(run, 64) == 0 ? 2000 : 0);
		ends[i] = (struct frond_end){pod_key(run), at};
	}
	pick_request(run, 1 + below(run, MEMBERS), &words, pairs);
	uint32_t rooms = pick_room(run, room);
	for (int turn = 0; turn < 2; turn++) {
		int32_t code = run->abi->window(run->engine, &run->request, run->members, pairs, words.text, words.len,
						room, rooms, ends, count, turn == 0 ? NULL : kept, &out, run->places,
						run->text, TEXT, &len);
		if (code == FROND_OK) {
			must_be_sentence(run->text, len);
			MUST((out.outcome == FROND_PLACED) == (out.start_ms >= 0) && out.free <= out.nodes);
			MUST(out.start_ms <= at && out.kept <= (uint32_t)turn);
		}
		if (code != FROND_OK || out.outcome != FROND_PLACED)
			break;
		MUST(turn == 0 || out.kept == 1 || out.plan.flags & FROND_PLAN_BOUNDED);
		memcpy(kept, run->places, sizeof kept);
		answered(run, ASKS, code);
	}
	struct frond_backfill question = {.start_ms = at,
					  .ends_in_ms = (int64_t)below(run, 9) * 1000 - 2000,
					  .window_priority = (int32_t)below(run, 3),
					  .window_preempts = below(run, 3)};
	uint32_t allowed = 2;
	if (run->abi->backfill(&question, &allowed, run->text, TEXT, &len) == FROND_OK) {
		must_be_sentence(run->text, len);
		MUST(allowed <= 1);
	}
}

/* ---- for the calls to come -------------------------------------------------------------------------------------- */

/* Links in pairs, a ring or all to all, now and then not symmetric. */
static void topology_put(struct run *run)
{
	static const uint32_t sizes[] = {8, 4, 2, 16, 1, 0, 17};
	struct frond_topology topology = {.gpus = sizes[below(run, 7)]};
	uint32_t gpus = topology.gpus < FROND_GPUS_MAX ? topology.gpus : FROND_GPUS_MAX;
	uint32_t shape = below(run, 3), len = 0, id = FROND_NONE;
	for (uint32_t a = 0; a < gpus; a++) {
		topology.numa[a] = (uint8_t)(2 * a / gpus);
		for (uint32_t b = 0; b < a; b++) {
			bool joined = shape == 0 ? a / 2 == b / 2 : shape == 1 ? a - b == 1 || a - b == gpus - 1 : true;
			uint16_t gbps = joined ? (uint16_t)(25 * (1 + (a + b) % 3)) : 0;
			topology.link_gbps[a][b] = topology.link_gbps[b][a] = gbps;
		}
	}
	if (rarely(run)) /* more tables than there is room for */
		topology.link_gbps[0][1] = topology.link_gbps[1][0] = gpus > 1 ? (uint16_t)below(run, 256) : 0;
	if (rarely(run))
		topology.link_gbps[below(run, 8)][1]++;
	int32_t code = run->abi->topology_put(run->engine, &topology, &id, run->text, TEXT, &len);
	said(run, code, len);
	MUST(code != FROND_OK || id < FROND_TOPOLOGIES);
	run->later.topology = code == FROND_OK ? id : FROND_NONE;
	if (rarely(run))
		run->later.topology = below(run, 4);
	answered(run, CHANGES, code);
}

static void ask_later(struct run *run)
{
	static const char *const models[] = {"", "DGX-1V", "PCIE-4", "H100-SXM", "nobody's"};
	static const char *const claims[] = {
		"",
		"{\"devices\":{\"policy\":\"spread\"}}",
		"{\"topology\":{\"mode\":\"Required\",\"minBandwidthGBps\":50}}",
		"{\"topology\":{\"mode\":\"Required\",\"locality\":\"nvlink\"}}",
		"{\"topology\":{\"locality\":\"same-socket\"}}",
		"{\"devices\":{\"policy\":\"preferIds\",\"preferIds\":[3,\"node-1-gpu-1\"]}}",
		"{\"topology\":{\"mode\":\"Ignore\"}}",
		"{\"devices\":{\"count\":3}}",
		"{",
	};
	run->later.topology = FROND_NONE;
	run->later.model = models[below(run, 5)];
	run->later.claim = claims[below(run, 9)];
	run->later.priority = (int32_t)below(run, 4) - 1;
	run->later.deadline_ms = run->now_ms + 1000 * (int64_t)below(run, 30);
	memset(run->later.named, 0, sizeof run->later.named);
	run->later.named_count = strstr(run->later.claim, "preferIds") == NULL ? 0 : below(run, 4);
	for (uint32_t i = 0; i < run->later.named_count; i++) { /* a slot twice, or no GPU, now and then */
		run->later.named[i].slot = below(run, NODES + 1);
		run->later.named[i].gpu_mask = below(run, 256);
	}
}

static void config_put(struct run *run)
{
	static const char *const specs[] = {
		"{}",
		"{\"scoringPreset\":\"agents\"}",
		"{\"topologyConstraints\":{\"maxNodesPerLeaf\":1}}",
		"{\"topologyConstraints\":{\"maxGPUsPerLeaf\":4},\"scoringWeights\":{\"resourceAvailability\":0}}",
		"{\"topologyConstraints\":{\"maxNodesPerLeaf\":0}}",
		"{\"defaultStrategy\":\"balanced\"}",
		"",
	};
	const char *spec = specs[below(run, 7)];
	uint32_t len = 0;
	int32_t code = run->abi->config_put(run->engine, spec, (uint32_t)strlen(spec), run->text, TEXT, &len);
	said(run, code, len);
	MUST(code == FROND_OK || len > 0);
	uint64_t before = run->generation;
	answered(run, CHANGES, code);
	MUST(code != FROND_OK || run->generation > before);
}

/* ---- seen from outside ------------------------------------------------------------------------------------------ */

static void look(struct run *run)
{
	struct frond_key pod = pod_key(run);
	uint32_t len = 0, cap = below(run, 200), needed = 0;
	struct frond_place place;
	struct frond_held held;
	int32_t code = run->abi->pod_get(run->engine, &pod, &held);
	MUST((run->abi->binding(run->engine, &pod, &place, run->text, TEXT, &len) == FROND_OK) == (code == FROND_OK));
	if (code == FROND_OK)
		MUST(place.gpu_mask == held.gpu_mask && (place.slot == held.slot || held.gpu_mask == 0));
	answered(run, ASKS, code);
	answered(run, ASKS, run->abi->problems(run->engine, run->text, TEXT, &len));
	answered(run, ASKS, run->abi->map(run->engine, cap & 1, run->text, TEXT, &len));
	if (run->abi->map(run->engine, 0, run->text, cap, &needed) == FROND_SMALL)
		MUST(needed > cap && run->abi->map(run->engine, 0, run->text, needed, &len) == FROND_OK &&
		     len <= needed);
}

/* ---- the sequence ----------------------------------------------------------------------------------------------- */

static void (*const operations[OPERATIONS_ROOM])(struct run *run) = {
	node_put,  node_put,   node_put,          node_remove, pod_put, plan,    plan,         plan,   order,
	reserve,   reserve,    reserve,           permit,      confirm, release, release_gang, look,   gang_put,
	gang_get,  tick,       what_if,           undo,        recover, defrag,  victims,      window, topology_put,
	ask_later, config_put, order_with_thrift, hold,
};

static bool create(struct run *run)
{
	static const char *const args[] = {
		"", "{\"topologyConstraints\":{\"maxNodesPerLeaf\":1}}",
		"{\"topologyConstraints\":{\"maxGPUsPerLeaf\":8},\"defaultTopologyMode\":\"Preferred\"}",
		"{\"topology\":{\"levels\":[\"fabric.topograph.run/tier-0\"]}}"};
	static const char *const fabrics[] = {"", "spine:2 leaf:2 node:2 gpu:8", "spine:1 leaf:3 node:1 gpu:4",
					      "spine:3 leaf:2 node:3 gpu:8"};
	static const uint32_t text_bytes[] = {0, 4096, 96, 32};
	const struct frond_limits limits = {.nodes = NODES,
					    .pods = LEDGER,
					    .text_bytes = text_bytes[below(run, 4)],
					    .table_bytes = TABLE_BYTES,
					    .holds = HOLDS};
	const char *arg = args[below(run, 4)], *fabric = fabrics[below(run, 4)];
	uint32_t len = 0;
	uint64_t bytes;
	void *mem = engine_memory(run->abi, &limits, &bytes);
	int32_t code = run->abi->create(mem, bytes, &limits, arg, (uint32_t)strlen(arg), fabric,
					(uint32_t)strlen(fabric), &run->engine, run->text, TEXT, &len);
	MUST(code == FROND_OK || code == FROND_LIMIT);
	said(run, code, len);
	return code == FROND_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct run state; /* large, and wholly overwritten where it matters */
	struct run *run = &state;
	run->at = data;
	run->end = data + size;
	run->abi = frond_abi_get();
	run->planned = false;
	run->now_ms = 0;
	run->trial_count = 0;
	run->later.topology = FROND_NONE;
	run->later.model = run->later.claim = "";
	run->later.named_count = 0;
	memset(run->later.named, 0, sizeof run->later.named);
	run->later.rank = FROND_NONE;
	run->later.priority = 0;
	run->later.deadline_ms = 0;
	if (!create(run))
		return 0;
	check(run);
	picture(run);
	for (uint32_t step = 0; step < STEPS && run->at < run->end; step++) {
		void (*operation)(struct run *) = operations[below(run, OPERATIONS_ROOM)];
		if (operation != NULL)
			operation(run);
	}
	return 0;
}
