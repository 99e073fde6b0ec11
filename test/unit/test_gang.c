/* SPDX-License-Identifier: Apache-2.0 */
/* Through the ABI: a gang is what reserve() books, permit() lets through, confirm() and pod_put() bind. */
#include "cluster.h"
#include "engine/engine.h"

static struct cluster *c;

void setUp(void)
{
	c = cluster_make("spine:1 leaf:2 node:4 gpu:8", "");
}

void tearDown(void)
{
	cluster_free(c);
}

static struct frond_key member(const char *gang, uint32_t rank)
{
	return key_of(gang, rank + 1);
}

static uint32_t permit(const char *gang, uint32_t rank)
{
	struct frond_key pod = member(gang, rank);
	uint32_t verdict = 99;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->permit(c->engine, &pod, &verdict));
	check(c);
	return verdict;
}

static int32_t confirm(const char *gang, uint32_t rank)
{
	struct frond_key pod = member(gang, rank);
	int32_t code = abi->confirm(c->engine, &pod);
	check(c);
	return code;
}

static uint32_t release_gang(const char *gang)
{
	struct frond_key key = key_of(gang, UINT64_MAX);
	uint32_t pods = 99;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release_gang(c->engine, &key, &pods));
	check(c);
	return pods;
}

static void test_nobody_goes_before_the_last_member_has_arrived(void)
{
	place(c, &(struct wanted){.name = "a", .members = 3, .gpus = 8});
	TEST_ASSERT_EQUAL_UINT32(FROND_HOLD, permit("a", 2));
	TEST_ASSERT_EQUAL_UINT32(FROND_HOLD, permit("a", 0));
	TEST_ASSERT_EQUAL_UINT32(FROND_GO, permit("a", 1));
	TEST_ASSERT_EQUAL_UINT32(FROND_GO, permit("a", 0)); /* those that waited ask again */
	TEST_ASSERT_EQUAL_UINT32(FROND_GO, permit("a", 2));
}

static void test_arriving_twice_counts_once(void)
{
	place(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8});
	TEST_ASSERT_EQUAL_UINT32(FROND_HOLD, permit("a", 0));
	TEST_ASSERT_EQUAL_UINT32(FROND_HOLD, permit("a", 0));
	TEST_ASSERT_EQUAL_UINT32(FROND_GO, permit("a", 1));
}

static void test_a_gang_of_one_goes_at_once(void)
{
	place(c, &(struct wanted){.name = "a", .members = 1, .gpus = 1});
	TEST_ASSERT_EQUAL_UINT32(FROND_GO, permit("a", 0));
}

static void test_members_without_gpus_are_waited_for(void)
{
	const uint32_t sizes[] = {0, 8, 8};
	place(c, &(struct wanted){.name = "a", .members = 3, .sizes = sizes});
	TEST_ASSERT_EQUAL_UINT32(FROND_HOLD, permit("a", 1));
	TEST_ASSERT_EQUAL_UINT32(FROND_HOLD, permit("a", 2));
	TEST_ASSERT_EQUAL_UINT32(FROND_GO, permit("a", 0));
	TEST_ASSERT_EQUAL_UINT32(3, stats(c).pods);
}

static void test_gangs_do_not_wait_for_each_other(void)
{
	place(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8});
	place(c, &(struct wanted){.name = "b", .members = 2, .gpus = 8});
	TEST_ASSERT_EQUAL_UINT32(2, stats(c).gangs);
	TEST_ASSERT_EQUAL_UINT32(FROND_HOLD, permit("a", 0));
	TEST_ASSERT_EQUAL_UINT32(FROND_HOLD, permit("b", 0));
	TEST_ASSERT_EQUAL_UINT32(FROND_GO, permit("b", 1));
	TEST_ASSERT_EQUAL_UINT32(FROND_HOLD, permit("a", 0));
}

static void test_a_confirmed_member_is_bound_and_no_longer_permitted(void)
{
	place(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8});
	permit("a", 0);
	permit("a", 1);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, confirm("a", 0));
	TEST_ASSERT_EQUAL_UINT32(8, stats(c).gpus_bound);
	TEST_ASSERT_EQUAL_UINT32(8, stats(c).gpus_reserved);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, confirm("a", 0)); /* the watch may have been faster */
	struct frond_key pod = member("a", 0);
	uint32_t verdict = 99;
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, abi->permit(c->engine, &pod, &verdict));
	TEST_ASSERT_EQUAL_UINT32(99, verdict);
}

static void test_the_watch_binds_a_reserved_member_by_itself(void)
{
	place(c, &(struct wanted){.name = "a", .members = 2, .gpus = 4});
	struct frond_place at = c->places[0];
	int32_t code = pod_try(c, member("a", 0), at.slot, 4, at.gpu_mask, "ns/a", key_of("a", UINT64_MAX));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, code);
	check(c);
	TEST_ASSERT_EQUAL_UINT32(4, stats(c).gpus_bound);
	TEST_ASSERT_EQUAL_UINT32(4, stats(c).gpus_reserved);
	TEST_ASSERT_EQUAL_UINT32(1, stats(c).gangs);
	TEST_ASSERT_EQUAL_UINT32(FROND_GO, permit("a", 1)); /* nobody is missing but this one */
}

static void test_the_watch_binds_it_without_an_annotation_and_the_plan_stands(void)
{
	place(c, &(struct wanted){.name = "a", .members = 1, .gpus = 4});
	struct frond_place at = c->places[0];
	TEST_ASSERT_EQUAL_INT32(FROND_OK, pod_try(c, member("a", 0), at.slot, 4, 0, "", (struct frond_key){0, 0}));
	check(c);
	TEST_ASSERT_EQUAL_UINT32(4, stats(c).gpus_bound);
	TEST_ASSERT_EQUAL_UINT32(0, stats(c).gpus_by_count);
}

static void test_a_member_that_was_bound_elsewhere_gives_its_reservation_back(void)
{
	place(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8});
	uint32_t elsewhere = slot_of(c, "node-8");
	TEST_ASSERT_NOT_EQUAL(elsewhere, c->places[0].slot);
	int32_t code = pod_try(c, member("a", 0), elsewhere, 8, 0xff, "ns/a", key_of("a", UINT64_MAX));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, code);
	check(c);
	TEST_ASSERT_EQUAL_UINT32(8, stats(c).gpus_bound);
	TEST_ASSERT_EQUAL_UINT32(8, stats(c).gpus_reserved);
	TEST_ASSERT_EQUAL_UINT32(1, stats(c).gangs);
	TEST_ASSERT_EQUAL_UINT32(2, stats(c).pods);
}

static void test_release_gang_gives_back_what_is_not_bound(void)
{
	place(c, &(struct wanted){.name = "a", .members = 3, .gpus = 8});
	confirm("a", 1);
	TEST_ASSERT_EQUAL_UINT32(2, release_gang("a"));
	TEST_ASSERT_EQUAL_UINT32(8, stats(c).gpus_bound);
	TEST_ASSERT_EQUAL_UINT32(0, stats(c).gpus_reserved);
	TEST_ASSERT_EQUAL_UINT32(1, stats(c).gangs);
	TEST_ASSERT_EQUAL_UINT32(0, release_gang("a"));
	TEST_ASSERT_EQUAL_UINT32(0, release_gang("nobody"));
}

static void test_the_last_release_ends_the_gang_and_a_new_one_starts_afresh(void)
{
	place(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8});
	permit("a", 0);
	permit("a", 1);
	release(c, "a", 2);
	TEST_ASSERT_EQUAL_UINT32(0, stats(c).gangs);
	TEST_ASSERT_EQUAL_UINT32(64, stats(c).gpus_free);
	place(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8});
	TEST_ASSERT_EQUAL_UINT32(FROND_HOLD, permit("a", 0)); /* that it had gone before does not count */
}

static void test_a_member_that_comes_back_goes_at_once(void)
{
	place(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8});
	permit("a", 0);
	permit("a", 1);
	confirm("a", 0);
	struct frond_key pod = member("a", 1);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release(c->engine, &pod)); /* its bind failed */
	uint32_t pinned[] = {c->places[0].slot, FROND_NONE};
	place(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8, .pinned = pinned});
	TEST_ASSERT_EQUAL_UINT32(FROND_GO, permit("a", 1));
}

static void test_after_a_restart_the_rest_waits_for_each_other_around_the_bound(void)
{
	struct frond_key gang = key_of("a", UINT64_MAX);
	uint32_t slot = slot_of(c, "node-2");
	TEST_ASSERT_EQUAL_INT32(FROND_OK, pod_try(c, member("a", 0), slot, 8, 0xff, "ns/a", gang));
	const uint32_t pinned[] = {slot, FROND_NONE, FROND_NONE};
	place(c, &(struct wanted){.name = "a", .members = 3, .gpus = 8, .pinned = pinned});
	TEST_ASSERT_EQUAL_STRING("node-2 node-1 node-3", spots(c));
	TEST_ASSERT_EQUAL_UINT32(1, stats(c).gangs);
	TEST_ASSERT_EQUAL_UINT32(FROND_HOLD, permit("a", 1));
	TEST_ASSERT_EQUAL_UINT32(FROND_GO, permit("a", 2));
}

static void test_a_removed_node_takes_its_members_out_of_their_gang(void)
{
	place(c, &(struct wanted){.name = "a", .members = 3, .gpus = 8});
	uint32_t lost = c->places[1].slot;
	TEST_ASSERT_EQUAL_UINT32(FROND_HOLD, permit("a", 0));
	node_remove(c, lost);
	TEST_ASSERT_EQUAL_UINT32(2, stats(c).pods);
	TEST_ASSERT_EQUAL_UINT32(16, stats(c).gpus_reserved);
	struct frond_key pod = member("a", 1);
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, abi->release(c->engine, &pod));
	TEST_ASSERT_EQUAL_UINT32(FROND_GO, permit("a", 2)); /* the host must have dropped the plan: nobody is missing */
}

/* ---- states ----------------------------------------------------------------------------------------------------- */

static struct frond_gang gang(const char *name)
{
	struct frond_key key = key_of(name, UINT64_MAX);
	struct frond_gang out;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->gang_get(c->engine, &key, &out));
	TEST_ASSERT_EQUAL_UINT32(0, out.reserved);
	return out;
}

static void state(uint32_t expected, uint32_t members, uint32_t arrived, uint32_t bound, uint32_t lost)
{
	struct frond_gang out = gang("a");
	TEST_ASSERT_EQUAL_UINT32(expected, out.state);
	TEST_ASSERT_EQUAL_UINT32(members, out.members);
	TEST_ASSERT_EQUAL_UINT32(arrived, out.arrived);
	TEST_ASSERT_EQUAL_UINT32(bound, out.bound);
	TEST_ASSERT_EQUAL_UINT32(lost, out.lost);
}

static int32_t put_terms(const char *name, uint32_t min_member, int32_t priority, const char *wishes)
{
	char in[256];
	struct frond_pair pairs[8];
	struct frond_request request = {
		.gang = key_of(name, UINT64_MAX), .min_member = min_member, .priority = priority};
	uint32_t in_len = wishes_read(wishes, in, 0, pairs, &request.annotations);
	int32_t code = abi->gang_put(c->engine, &request, pairs, in, in_len, c->text, CLUSTER_TEXT - 1, &c->len);
	c->text[c->len] = 0;
	check(c);
	return code;
}

static void test_a_gang_is_planned_then_reserved_then_bound(void)
{
	place(c, &(struct wanted){.name = "a", .members = 3, .gpus = 8, .priority = -4, .deadline_ms = 77});
	state(FROND_GANG_PLANNED, 3, 0, 0, 0);
	TEST_ASSERT_EQUAL_UINT32(3, gang("a").min_member);
	TEST_ASSERT_EQUAL_INT32(-4, gang("a").priority);
	TEST_ASSERT_EQUAL_INT64(77, gang("a").deadline_ms);
	permit("a", 1);
	state(FROND_GANG_RESERVED, 3, 1, 0, 0);
	permit("a", 0);
	permit("a", 2);
	state(FROND_GANG_RESERVED, 3, 3, 0, 0);
	confirm("a", 0);
	state(FROND_GANG_RESERVED, 3, 2, 1, 0);
	confirm("a", 1);
	confirm("a", 2);
	state(FROND_GANG_BOUND, 3, 0, 3, 0);
}

static void test_a_bound_gang_that_loses_members_is_degraded_and_bound_again_when_they_are_back(void)
{
	place(c, &(struct wanted){.name = "a", .members = 3, .gpus = 8, .min_member = 2});
	for (uint32_t rank = 0; rank < 3; rank++)
		confirm("a", rank);
	struct frond_key first = member("a", 0), second = member("a", 1);
	uint32_t kept = c->places[2].slot;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release(c->engine, &first));
	state(FROND_GANG_BOUND, 2, 0, 2, 1); /* minMember are left */
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release(c->engine, &second));
	state(FROND_GANG_DEGRADED, 1, 0, 1, 2);
	const uint32_t pinned[] = {FROND_NONE, FROND_NONE, kept};
	place(c, &(struct wanted){.name = "a", .members = 3, .gpus = 8, .min_member = 2, .pinned = pinned});
	state(FROND_GANG_RESERVED, 3, 0, 1, 2);
	confirm("a", 0);
	confirm("a", 1);
	state(FROND_GANG_BOUND, 3, 0, 3, 0); /* whole again: nobody is lost */
}

static void test_members_that_are_lost_with_their_node_count_as_lost(void)
{
	place(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8});
	uint32_t slot = c->places[0].slot;
	confirm("a", 0);
	confirm("a", 1);
	node_remove(c, slot);
	state(FROND_GANG_DEGRADED, 1, 0, 1, 1);
}

static void test_reservations_that_go_are_not_lost(void)
{
	place(c, &(struct wanted){.name = "a", .members = 3, .gpus = 8});
	confirm("a", 0);
	release_gang("a");
	state(FROND_GANG_GATHERING, 1, 0, 1, 0); /* it was never whole: nothing to repair */
}

static void test_after_a_restart_a_gang_gathers_until_its_promise_is_known(void)
{
	struct frond_key key = key_of("a", UINT64_MAX);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, pod_try(c, member("a", 0), 0, 8, 0, "", key));
	state(FROND_GANG_BOUND, 1, 0, 1, 0); /* until somebody says otherwise one member is enough */
	release_gang("a");
	struct frond_key pod = member("a", 0);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release(c->engine, &pod));
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, put_terms("a", 2, 0, ""));
	TEST_ASSERT_EQUAL_STRING("nobody of the gang holds anything", c->text);
}

static void test_a_promise_is_min_member_priority_and_terms(void)
{
	place(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8, .deadline_ms = 5});
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, put_terms("a", 1, 9, "recovery=MoveGang topology-mode=Ignore"),
					c->text);
	TEST_ASSERT_EQUAL_UINT32(1, gang("a").min_member);
	TEST_ASSERT_EQUAL_INT32(9, gang("a").priority);
	TEST_ASSERT_EQUAL_INT64(5, gang("a").deadline_ms); /* reserve() and nobody else sets it */
	confirm("a", 0);
	confirm("a", 1);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, put_terms("a", 3, 9, ""));
	state(FROND_GANG_DEGRADED, 2, 0, 2, 0); /* it was whole, and now too few are there */
	remember(c);
	TEST_ASSERT_EQUAL_INT32(FROND_BAD, put_terms("a", 0, 9, ""));
	TEST_ASSERT_EQUAL_INT32(FROND_BAD, put_terms("a", FROND_MEMBERS_MAX + 1, 9, ""));
	TEST_ASSERT_EQUAL_INT32(FROND_BAD, put_terms("a", 1, 9, "recovery=Perhaps"));
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(c->text, "topology.scheduler/recovery"), c->text);
	unchanged(c);
	struct frond_key nobody = key_of("nobody", UINT64_MAX);
	struct frond_gang out;
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, abi->gang_get(c->engine, &nobody, &out));
}

/* What recover, victims and defrag read later: every field has bits of its own, and each of its bits is kept. */
static void test_terms_are_kept_to_the_last_bit(void)
{
	const uint64_t domain = (1ull << TERMS_DOMAIN_BITS) - 1;
	const uint32_t listed = (1u << FROND_GPUS_MAX) - 1;
	const struct terms kept[] = {
		{.strategy = STRATEGY_DISTRIBUTED},
		{.mode = MODE_IGNORE},
		{.recovery = RECOVERY_WAIT},
		{.latency_sensitive = true},
		{.bandwidth_gbps = TERMS_GBPS_MASK},
		{.domain = domain},
		{.gpu = {.policy = GPU_PREFER}},
		{.gpu = {.mode = MODE_IGNORE}},
		{.gpu = {.locality = GPU_NVLINK}},
		{.gpu = {.min_gbps = TERMS_GBPS_MASK}},
		{.gpu = {.prefer = listed}},
		{.insists = true},
		{STRATEGY_CONSOLIDATED,
		 MODE_PREFERRED,
		 RECOVERY_MOVE_GANG,
		 true,
		 false,
		 400,
		 0x123456789abull,
		 {GPU_SPREAD, MODE_PREFERRED, GPU_SAME_SOCKET, 300, 0x8001}},
	};
	place(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8, .priority = 3, .deadline_ms = 7});
	struct gangs *gangs = &c->engine->core.gangs;
	uint32_t id = gangs_find(gangs, key_of("a", UINT64_MAX));
	for (uint32_t i = 0; i < sizeof kept / sizeof *kept; i++) {
		gangs_terms(gangs, id, &kept[i]);
		struct terms out = gang_terms(&gangs->gangs[id]);
		TEST_ASSERT_EQUAL_UINT8(kept[i].strategy, out.strategy);
		TEST_ASSERT_EQUAL_UINT8(kept[i].mode, out.mode);
		TEST_ASSERT_EQUAL_UINT8(kept[i].recovery, out.recovery);
		TEST_ASSERT_EQUAL(kept[i].latency_sensitive, out.latency_sensitive);
		TEST_ASSERT_EQUAL(kept[i].insists, out.insists);
		TEST_ASSERT_EQUAL_UINT32(kept[i].bandwidth_gbps, out.bandwidth_gbps);
		TEST_ASSERT_EQUAL_HEX64(kept[i].domain, out.domain);
		TEST_ASSERT_EQUAL(kept[i].gpu.policy, out.gpu.policy);
		TEST_ASSERT_EQUAL(kept[i].gpu.mode, out.gpu.mode);
		TEST_ASSERT_EQUAL(kept[i].gpu.locality, out.gpu.locality);
		TEST_ASSERT_EQUAL_UINT32(kept[i].gpu.min_gbps, out.gpu.min_gbps);
		TEST_ASSERT_EQUAL_HEX32(kept[i].gpu.prefer, out.gpu.prefer);
		state(FROND_GANG_PLANNED, 2, 0, 0, 0);
		TEST_ASSERT_EQUAL_INT32(3, gang("a").priority);
		TEST_ASSERT_EQUAL_INT64(7, gang("a").deadline_ms);
	}
}

static void test_a_member_that_tells_its_devices_later_is_not_lost(void)
{
	struct frond_key key = key_of("a", UINT64_MAX);
	for (uint32_t rank = 0; rank < 2; rank++)
		TEST_ASSERT_EQUAL_INT32(FROND_OK, pod_try(c, member("a", rank), rank, 8, 0, "", key));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, put_terms("a", 2, 5, ""));
	for (uint32_t rank = 0; rank < 2; rank++) {
		TEST_ASSERT_EQUAL_INT32(FROND_OK, pod_try(c, member("a", rank), rank, 8, 0xff, "", key));
		state(FROND_GANG_BOUND, 2, 0, 2, 0);
	}
	TEST_ASSERT_EQUAL_UINT32(16, stats(c).gpus_bound);
	struct frond_key pod = member("a", 1), alone = key_of("b", 1);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, pod_try(c, alone, 2, 8, 0, "", key_of("b", UINT64_MAX)));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, put_terms("b", 1, 5, ""));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, pod_try(c, alone, 2, 8, 0xff, "", key_of("b", UINT64_MAX)));
	TEST_ASSERT_EQUAL_INT32(5, gang("b").priority); /* what it was promised stays, though it is alone */
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release(c->engine, &pod));
	state(FROND_GANG_DEGRADED, 1, 0, 1, 1);
}

static void test_a_gang_whose_only_member_is_bound_elsewhere_is_the_same_gang(void)
{
	place(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8, .priority = 3, .deadline_ms = 9});
	confirm("a", 0);
	confirm("a", 1);
	struct frond_key second = member("a", 1);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release(c->engine, &second));
	state(FROND_GANG_DEGRADED, 1, 0, 1, 1);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, pod_try(c, member("a", 0), 6, 8, 0, "", key_of("a", UINT64_MAX)));
	check(c);
	TEST_ASSERT_EQUAL_UINT32(FROND_GANG_DEGRADED, gang("a").state); /* it has been whole */
	TEST_ASSERT_EQUAL_UINT32(2, gang("a").min_member);
	TEST_ASSERT_EQUAL_INT32(3, gang("a").priority);
	TEST_ASSERT_EQUAL_INT64(9, gang("a").deadline_ms);
	TEST_ASSERT_EQUAL_UINT32(1, gang("a").lost);
}

/* ---- time ------------------------------------------------------------------------------------------------------- */

static uint32_t tick(int64_t now_ms, uint32_t cap, struct frond_key *expired)
{
	uint32_t count = 99;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->tick(c->engine, now_ms, expired, cap, &count));
	check(c);
	return count;
}

static void test_an_overdue_gang_gives_back_what_is_not_bound(void)
{
	struct frond_key expired[4];
	place(c, &(struct wanted){.name = "a", .members = 3, .gpus = 8, .deadline_ms = 1000});
	place(c, &(struct wanted){.name = "b", .members = 1, .gpus = 8});
	confirm("a", 1);
	TEST_ASSERT_EQUAL_UINT32(0, tick(999, 4, expired));
	TEST_ASSERT_EQUAL_UINT32(0, tick(1000, 4, expired)); /* later than the deadline, not at it */
	TEST_ASSERT_EQUAL_UINT32(1, tick(1001, 4, expired));
	struct frond_key key = key_of("a", UINT64_MAX);
	TEST_ASSERT_EQUAL_MEMORY(&key, &expired[0], sizeof key);
	state(FROND_GANG_GATHERING, 1, 0, 1, 0);
	TEST_ASSERT_EQUAL_UINT32(0, tick(INT64_MAX, 4, expired)); /* what is bound stays; "b" has no deadline */
	TEST_ASSERT_EQUAL_UINT64(1, stats(c).expired);
	TEST_ASSERT_EQUAL_UINT32(8, stats(c).gpus_reserved);
}

static void test_a_bound_gang_is_never_overdue(void)
{
	struct frond_key expired[4];
	place(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8, .deadline_ms = 1});
	confirm("a", 0);
	confirm("a", 1);
	TEST_ASSERT_EQUAL_UINT32(0, tick(INT64_MAX, 4, expired));
	state(FROND_GANG_BOUND, 2, 0, 2, 0);
}

static void test_many_overdue_gangs_come_a_few_at_a_time(void)
{
	struct frond_key expired[2];
	char name[4] = "g0";
	for (; name[1] < '5'; name[1]++)
		place(c, &(struct wanted){.name = name, .members = 1, .gpus = 8, .deadline_ms = 3});
	TEST_ASSERT_EQUAL_UINT32(2, tick(4, 2, expired));
	TEST_ASSERT_EQUAL_UINT32(2, tick(4, 2, expired));
	TEST_ASSERT_EQUAL_UINT32(1, tick(4, 2, expired));
	TEST_ASSERT_EQUAL_UINT32(0, tick(4, 2, expired));
	TEST_ASSERT_EQUAL_UINT32(0, stats(c).gangs);
	TEST_ASSERT_EQUAL_UINT64(5, stats(c).expired);
}

static void test_a_new_deadline_replaces_the_old_one(void)
{
	struct frond_key expired[2];
	place(c, &(struct wanted){.name = "a", .members = 1, .gpus = 8, .deadline_ms = 10});
	const uint32_t pinned[] = {c->places[0].slot, FROND_NONE};
	place(c, &(struct wanted){.name = "a", .members = 2, .gpus = 8, .pinned = pinned, .deadline_ms = 20});
	TEST_ASSERT_EQUAL_UINT32(0, tick(15, 2, expired));
	TEST_ASSERT_EQUAL_UINT32(1, tick(21, 2, expired));
	TEST_ASSERT_EQUAL_UINT32(0, stats(c).gangs);
}

static void test_pods_of_others_are_in_no_gang(void)
{
	struct frond_key pod = occupy(c, "node-1", 0x01);
	TEST_ASSERT_EQUAL_UINT32(0, stats(c).gangs);
	uint32_t verdict;
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, abi->permit(c->engine, &pod, &verdict));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release(c->engine, &pod));
	check(c);
}

static void many_come_and_go(void)
{
	enum { MANY = 500 };
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < MANY; i++) {
			struct frond_key key = {3, i + 1};
			TEST_ASSERT_EQUAL_INT32(FROND_OK, pod_try(c, key, i % 8, 0, 0, "", key));
		}
		TEST_ASSERT_EQUAL_UINT32(MANY, stats(c).gangs);
		for (uint32_t i = 0; i < MANY; i++) {
			struct frond_key key = {3, (round == 0 ? i : i * 7 % MANY) + 1};
			TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release(c->engine, &key));
			if (i % 50 == 0)
				check(c);
		}
		TEST_ASSERT_EQUAL_UINT32(0, stats(c).gangs);
	}
}

static void test_many_gangs_come_and_go_in_any_order(void)
{
	many_come_and_go();
}

static void test_what_was_in_the_memory_before_does_not_matter(void)
{
	memset(c->mem, 0xa5, abi->size_of(&c->limits));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->create(c->mem, abi->size_of(&c->limits), &c->limits, "", 0, "", 0,
						      &c->engine, c->text, CLUSTER_TEXT - 1, &c->len));
	check(c);
	for (uint32_t slot = 0; slot < c->count; slot++)
		node_refresh(c, slot);
	many_come_and_go();
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_nobody_goes_before_the_last_member_has_arrived);
	RUN_TEST(test_arriving_twice_counts_once);
	RUN_TEST(test_a_gang_of_one_goes_at_once);
	RUN_TEST(test_members_without_gpus_are_waited_for);
	RUN_TEST(test_gangs_do_not_wait_for_each_other);
	RUN_TEST(test_a_confirmed_member_is_bound_and_no_longer_permitted);
	RUN_TEST(test_the_watch_binds_a_reserved_member_by_itself);
	RUN_TEST(test_the_watch_binds_it_without_an_annotation_and_the_plan_stands);
	RUN_TEST(test_a_member_that_was_bound_elsewhere_gives_its_reservation_back);
	RUN_TEST(test_release_gang_gives_back_what_is_not_bound);
	RUN_TEST(test_the_last_release_ends_the_gang_and_a_new_one_starts_afresh);
	RUN_TEST(test_a_member_that_comes_back_goes_at_once);
	RUN_TEST(test_after_a_restart_the_rest_waits_for_each_other_around_the_bound);
	RUN_TEST(test_a_removed_node_takes_its_members_out_of_their_gang);
	RUN_TEST(test_a_gang_is_planned_then_reserved_then_bound);
	RUN_TEST(test_a_bound_gang_that_loses_members_is_degraded_and_bound_again_when_they_are_back);
	RUN_TEST(test_members_that_are_lost_with_their_node_count_as_lost);
	RUN_TEST(test_reservations_that_go_are_not_lost);
	RUN_TEST(test_after_a_restart_a_gang_gathers_until_its_promise_is_known);
	RUN_TEST(test_a_promise_is_min_member_priority_and_terms);
	RUN_TEST(test_terms_are_kept_to_the_last_bit);
	RUN_TEST(test_a_member_that_tells_its_devices_later_is_not_lost);
	RUN_TEST(test_a_gang_whose_only_member_is_bound_elsewhere_is_the_same_gang);
	RUN_TEST(test_an_overdue_gang_gives_back_what_is_not_bound);
	RUN_TEST(test_a_bound_gang_is_never_overdue);
	RUN_TEST(test_many_overdue_gangs_come_a_few_at_a_time);
	RUN_TEST(test_a_new_deadline_replaces_the_old_one);
	RUN_TEST(test_pods_of_others_are_in_no_gang);
	RUN_TEST(test_many_gangs_come_and_go_in_any_order);
	RUN_TEST(test_what_was_in_the_memory_before_does_not_matter);
	return UNITY_END();
}
