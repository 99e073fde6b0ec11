/* SPDX-License-Identifier: Apache-2.0 */
/* What the table says in text: buffers that are too small, bindings, codes, the dump, args, fabrics. */
#include "cluster.h"

static struct cluster *c;

void setUp(void)
{
	c = cluster_make("spine:1 leaf:2 node:2 gpu:8", "");
}

void tearDown(void)
{
	cluster_free(c);
}

/* ---- buffers that are too small --------------------------------------------------------------------------------- */

enum reader { READ_DUMP, READ_MAP, READ_PROBLEMS, READ_BINDING, READ_PLAN, READ_FABRIC, READ_ARGS, READERS };

static struct frond_args args;

static int32_t read_into(enum reader reader, char *text, uint32_t cap, uint32_t *len)
{
	static const char fabric[] = "spine:1 leaf:1 node:2 gpu:8",
			  json[] = "{\"gpuResources\":[\"a.com/gpu\",\"b.com/gpu\"]}";
	struct frond_key pod = key_of("a", 1);
	switch (reader) {
	case READ_DUMP:
		return abi->dump(c->engine, text, cap, len);
	case READ_MAP:
		return abi->map(c->engine, 1, text, cap, len);
	case READ_PROBLEMS:
		return abi->problems(c->engine, text, cap, len);
	case READ_BINDING:
		return abi->binding(c->engine, &pod, &(struct frond_place){.slot = 0}, text, cap, len);
	case READ_PLAN:
		return abi->plan(c->engine, &c->request, c->members, NULL, NULL, 0, NULL, 0, &c->plan, c->places, text,
				 cap, len);
	case READ_FABRIC:
		return abi->fabric_expand(fabric, sizeof fabric - 1, 1, text, cap, len);
	default:
		return abi->args(json, sizeof json - 1, &args, text, cap, len);
	}
}

static void test_a_buffer_that_is_too_small_gets_the_size_to_call_again_with(void)
{
	node_put(c, 5, "odd", 8, "leaf-9", NULL);
	place(c, &(struct wanted){.name = "a", .members = 1, .gpus = 8});
	plan(c, &(struct wanted){.name = "b", .members = 2, .gpus = 8});
	c->request.name = (struct frond_span){0, 0};
	for (enum reader reader = 0; reader < READERS; reader++) {
		uint32_t whole = 0, needed = 0, len = 0;
		TEST_ASSERT_EQUAL_INT32(FROND_OK, read_into(reader, c->text, CLUSTER_TEXT, &whole));
		TEST_ASSERT_TRUE(whole > 4);
		for (uint32_t cap = 0; cap < 5; cap++) {
			char small[8] = "#######";
			int32_t code = read_into(reader, cap == 0 ? NULL : small, cap, &needed);
			TEST_ASSERT_EQUAL_INT32(FROND_SMALL, code);
			TEST_ASSERT_TRUE(needed >= whole);
			TEST_ASSERT_EQUAL_STRING(cap < 5 ? "##" : "#", small + 5); /* nothing beyond the end */
		}
		char *exact = malloc(needed);
		TEST_ASSERT_NOT_NULL(exact);
		TEST_ASSERT_EQUAL_INT32(FROND_OK, read_into(reader, exact, needed, &len));
		TEST_ASSERT_EQUAL_UINT32(whole, len);
		TEST_ASSERT_EQUAL_MEMORY(c->text, exact, whole);
		free(exact);
	}
}

static void test_an_errors_sentence_is_cut_instead(void)
{
	char text[8] = "#######";
	uint32_t len = 99;
	struct frond_node node = {.slot = 99, .gpus = 8, .name = {0, 1}};
	TEST_ASSERT_EQUAL_INT32(FROND_BAD, abi->node_put(c->engine, &node, NULL, 0, "n", 1, text, 4, &len));
	TEST_ASSERT_EQUAL_UINT32(4, len);
	TEST_ASSERT_EQUAL_STRING("node###", text);
	TEST_ASSERT_EQUAL_INT32(FROND_BAD, abi->node_put(c->engine, &node, NULL, 0, "n", 1, NULL, 0, &len));
	TEST_ASSERT_EQUAL_UINT32(0, len);
	TEST_ASSERT_EQUAL_INT32(FROND_BAD, abi->args("{\"x\":1}", 7, &args, text, 4, &len));
	TEST_ASSERT_EQUAL_UINT32(4, len);
	TEST_ASSERT_EQUAL_INT32(FROND_BAD, abi->fabric_expand("spine:0", 7, 1, NULL, 0, &len));
	TEST_ASSERT_EQUAL_UINT32(0, len);
}

/* ---- bindings --------------------------------------------------------------------------------------------------- */

static void expect_binding(const char *gang, uint32_t rank, uint32_t slot, uint32_t mask, uint64_t ring,
			   const char *text)
{
	struct frond_key pod = key_of(gang, rank + 1);
	struct frond_place place = {.slot = 77, .gpu_mask = 77, .ring = 77};
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->binding(c->engine, &pod, &place, c->text, CLUSTER_TEXT - 1, &c->len));
	c->text[c->len] = 0;
	TEST_ASSERT_EQUAL_STRING(text, c->text);
	TEST_ASSERT_EQUAL_UINT32(slot, place.slot);
	TEST_ASSERT_EQUAL_HEX32(mask, place.gpu_mask);
	TEST_ASSERT_EQUAL_HEX64(ring, place.ring);
}

static void test_a_binding_says_devices_domain_and_rank(void)
{
	occupy(c, "node-1", 0x02);
	const uint32_t sizes[] = {2, 0, 3};
	place(c, &(struct wanted){.name = "a", .members = 3, .sizes = sizes, .wishes = "preferred-domain=leaf-1"});
	expect_binding("a", 0, 0, 0x05, 0x20, "topology.scheduler/domain=spine-1/leaf-1\ntopology.scheduler/rank=0\n");
	expect_binding("a", 1, FROND_NONE, 0, 0, "topology.scheduler/rank=1\n");
	expect_binding("a", 2, 0, 0x70, 0x654, "topology.scheduler/domain=spine-1/leaf-1\ntopology.scheduler/rank=2\n");
}

static void test_devices_are_listed_in_ring_order(void)
{
	cluster_free(c);
	c = cluster_make("apiVersion: topology.scheduler/v1alpha1\nkind: Fabric\ndefaults: {model: DGX-1V}\n"
			 "spines: [{name: s, leaves: [{name: l, nodes: [a]}]}]\n"
			 "nodes: [{name: a, unhealthyGpus: [1, 2, 5, 6]}]\n",
			 "");
	place(c, &(struct wanted){.name = "a", .members = 1, .gpus = 4});
	TEST_ASSERT_EQUAL_HEX32(0x99, c->places[0].gpu_mask);
	TEST_ASSERT_EQUAL_HEX64(0x4730,
				c->places[0].ring); /* 0-3 50, 3-7 25, 7-4 50, 4-0 50; 0-4-7-3 is the same ring */
	expect_binding("a", 0, 0, 0x99, 0x4730, "topology.scheduler/domain=s/l\ntopology.scheduler/rank=0\n");
}

static void test_what_a_binding_says_is_read_back_as_it_was(void)
{
	place(c, &(struct wanted){.name = "a", .members = 1, .gpus = 8});
	struct frond_key pod = key_of("a", 1);
	struct frond_place place;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->binding(c->engine, &pod, &place, c->text, CLUSTER_TEXT - 1, &c->len));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release(c->engine, &pod));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, pod_try(c, pod, place.slot, 8, place.gpu_mask, "ns/a", pod));
	TEST_ASSERT_EQUAL_UINT32(8, stats(c).gpus_bound);
	TEST_ASSERT_EQUAL_UINT32(0, stats(c).gpus_by_count);
	expect_binding("a", 0, 0, 0xff, 0x76543210,
		       "topology.scheduler/domain=spine-1/leaf-1\n"); /* whoever bound it knows the rank, we do not */
}

static void test_what_is_held_by_count_has_no_place(void)
{
	struct frond_key pod = key_of("a", 1);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, pod_try(c, pod, 0, 2, 0, "", pod));
	expect_binding("a", 0, FROND_NONE, 0, 0, "");
}

static void test_a_node_without_a_leaf_has_no_domain(void)
{
	node_put(c, 4, "stray", 1, NULL, NULL);
	place(c, &(struct wanted){.name = "a", .members = 1, .gpus = 1, .only = 5});
	expect_binding("a", 0, 4, 0x01, 0, "topology.scheduler/rank=0\n");
}

static void test_sixteen_devices_and_long_names_fit(void)
{
	char name[FROND_NAME_MAX + 1], leaf[FROND_NAME_MAX + 1], spine[FROND_NAME_MAX + 1];
	memset(name, 'n', sizeof name);
	memset(leaf, 'l', sizeof leaf);
	memset(spine, 's', sizeof spine);
	name[FROND_NAME_MAX] = leaf[FROND_NAME_MAX] = spine[FROND_NAME_MAX] = 0;
	node_put(c, 4, name, 16, leaf, spine);
	place(c, &(struct wanted){.name = "a", .members = 1, .gpus = 16});
	struct frond_key pod = key_of("a", 1);
	struct frond_place at;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->binding(c->engine, &pod, &at, c->text, CLUSTER_TEXT - 1, &c->len));
	c->text[c->len] = 0;
	TEST_ASSERT_EQUAL_UINT32(strlen(c->text), c->len);
	TEST_ASSERT_NOT_NULL(strstr(c->text, "sss/lll"));
	TEST_ASSERT_EQUAL_HEX64(0xfedcba9876543210, at.ring);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->map(c->engine, 0, c->text, CLUSTER_TEXT - 1, &c->len));
}

/* ---- replicas of shared GPUs ------------------------------------------------------------------------------------ */

static const char *problems(void)
{
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->problems(c->engine, c->text, CLUSTER_TEXT - 1, &c->len));
	c->text[c->len] = 0;
	return c->text;
}

static void test_nodes_with_replicas_are_named_and_scheduled_by_devices(void)
{
	static const char known[] =
		"node odd lets pods have more GPUs than its 4 devices: replicas of shared GPUs are not "
		"scheduled, whole devices are\n",
			  unknown[] =
				  "node odd lets pods have more than 16 GPUs and no report names its devices: replicas "
				  "of shared GPUs are not scheduled, no pod with GPUs goes there\n";
	TEST_ASSERT_EQUAL_STRING("", problems());
	TEST_ASSERT_EQUAL_INT32(FROND_OK, node_try(c, 4, "odd", 4, 0, FROND_NODE_REPLICAS, 0, "leaf-9", "spine-1"));
	TEST_ASSERT_EQUAL_STRING(known, problems());
	TEST_ASSERT_NOT_NULL(strstr(dump(c), "node 4 gpus 4 topology 2 unhealthy 0 unavailable 0 flags 4 "));
	place(c, &(struct wanted){.name = "a", .members = 1, .gpus = 4, .only = 5}); /* it is open */
	TEST_ASSERT_EQUAL_INT32(FROND_OK, node_try(c, 4, "odd", 0, 0, FROND_NODE_REPLICAS | FROND_NODE_CORDONED, 0,
						   "leaf-9", "spine-1"));
	TEST_ASSERT_EQUAL_STRING(unknown, problems());
	TEST_ASSERT_EQUAL_INT32(FROND_OK, node_try(c, 4, "odd", 4, 0, 0, 0, "leaf-9", "spine-1"));
	TEST_ASSERT_EQUAL_STRING("", problems());
	check(c);
}

static void test_of_many_nodes_with_replicas_the_first_are_named(void)
{
	char name[16];
	cluster_free(c);
	c = calloc(1, sizeof *c);
	TEST_ASSERT_NOT_NULL(c);
	engine_make(c, 70, 2, "", "");
	for (uint32_t slot = 0; slot < 66; slot++) {
		snprintf(name, sizeof name, "n%u", (unsigned)slot);
		TEST_ASSERT_EQUAL_INT32(FROND_OK, node_try(c, slot, name, 2, 0, FROND_NODE_REPLICAS, 0, NULL, NULL));
	}
	TEST_ASSERT_NOT_NULL(strstr(problems(), "node n63 lets"));
	TEST_ASSERT_NULL(strstr(c->text, "node n64 lets"));
	TEST_ASSERT_NOT_NULL(strstr(c->text, "\n2 further nodes let pods have more GPUs than they have devices\n"));
}

/* ---- codes, dump, args, fabrics --------------------------------------------------------------------------------- */

static void test_every_code_has_a_text(void)
{
	static const char *const texts[] = {"done",
					    "bad input",
					    "over a limit",
					    "not known",
					    "the plan is stale",
					    "output buffer too small",
					    "an invariant does not hold"};
	for (int32_t code = 0; code < 7; code++)
		TEST_ASSERT_EQUAL_STRING(texts[code], abi->code_text(code));
	TEST_ASSERT_EQUAL_STRING("unknown code", abi->code_text(7));
	TEST_ASSERT_EQUAL_STRING("unknown code", abi->code_text(-1));
	TEST_ASSERT_EQUAL_STRING("unknown code", abi->code_text(INT32_MAX));
	TEST_ASSERT_EQUAL_STRING("unknown code", abi->code_text(INT32_MIN));
}

static void test_the_dump_is_canonical(void)
{
	cluster_free(c);
	c = calloc(1, sizeof *c);
	TEST_ASSERT_NOT_NULL(c);
	engine_make(c, 3, 8, "", "");
	node_put(c, 2, "a", 4, "l", "s");
	node_put(c, 0, "b", 8, NULL, NULL);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, node_try(c, 0, "b", 8, 0x80, 1, 100, NULL, NULL));
	const struct frond_key late = {2, 1}, early = {1, 9}, gang = {3, 3};
	TEST_ASSERT_EQUAL_INT32(FROND_OK, pod_try(c, late, 2, 2, 0xa, "", gang));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, pod_try(c, early, 0, 3, 0, "", (struct frond_key){0, 0}));
	struct frond_member member = {.pod = {1, 1}, .rank = 4, .gpus = 1, .pinned_slot = FROND_NONE};
	struct frond_request request = {.gang = gang, .members = 1, .min_member = 1, .only_slot = FROND_NONE};
	TEST_ASSERT_EQUAL_INT32(
		FROND_OK, abi->reserve(c->engine, &request, &member, &(struct frond_place){.slot = 2, .gpu_mask = 1}));
	static const char first[] =
		"frond dump 1\n"
		"node 0 gpus 8 topology 2 unhealthy 80 unavailable 0 flags 1 uplink 100 held 0 count 3 position 1 leaf "
		"none\n"
		"node 2 gpus 4 topology 1 unhealthy 0 unavailable 0 flags 0 uplink 0 held b count 0 position 0 leaf 0 "
		"spine 0\n"
		"pod 00000000000000010000000000000001 reserved node 2 mask 1 count 0 rank 4 "
		"gang 00000000000000030000000000000003 state 3 min 1 lost 0 priority 0 deadline 0 terms 0 0 0 0 0 0 "
		"gpu 0 1 0 0 0\n"
		"pod 00000000000000010000000000000009 bound node 0 mask 0 count 3\n"
		"pod 00000000000000020000000000000001 bound node 2 mask a count 0 gang "
		"00000000000000030000000000000003 state 3 min 1 lost 0 priority 0 deadline 0 terms 0 0 0 0 0 0 gpu 0 1 "
		"0 0 0\n";
	TEST_ASSERT_EQUAL_STRING(first, dump(c));
	uint32_t verdict;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->permit(c->engine, &member.pod, &verdict));
	TEST_ASSERT_NOT_NULL(strstr(dump(c), "0001 arrived node 2 mask 1 count 0 rank 4 "
					     "gang 00000000000000030000000000000003 state 3 min 1 lost 0 gone "));
}

static void test_the_same_state_has_the_same_dump_whatever_its_history(void)
{
	occupy(c, "node-1", 0x01);
	place(c, &(struct wanted){.name = "a", .members = 2, .gpus = 4});
	static char first[CLUSTER_TEXT];
	strcpy(first, dump(c));
	struct cluster *other = cluster_make("spine:1 leaf:2 node:2 gpu:8", ""), *kept = c;
	c = other;
	node_put(c, 6, "passing", 8, "l", "s");
	place(c, &(struct wanted){.name = "gone", .members = 3, .gpus = 8});
	occupy(c, "node-4", 0x01);
	release(c, "gone", 3);
	struct frond_key pod = {1, 1};
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release(c->engine, &pod));
	node_remove(c, 6);
	c->others = 0;
	occupy(c, "node-1", 0x01);
	place(c, &(struct wanted){.name = "a", .members = 2, .gpus = 4});
	TEST_ASSERT_EQUAL_STRING(first, dump(c));
	cluster_free(other);
	c = kept;
}

static void expect_span(const char *text, struct frond_span span)
{
	TEST_ASSERT_EQUAL_UINT32(strlen(text), span.len);
	TEST_ASSERT_EQUAL_INT(0, memcmp(text, c->text + span.off, span.len));
}

static void test_args_give_the_host_what_it_needs(void)
{
	static const char json[] = "{\"permitWaitingTimeSeconds\":30,\"gpuResources\":[\"a.com/gpu\",\"b.com/gpu\"],"
				   "\"topology\":{\"fabricFile\":\"/etc/fabric.yaml\"}}";
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->args("", 0, &args, c->text, CLUSTER_TEXT, &c->len));
	TEST_ASSERT_EQUAL_UINT32(60, args.permit_wait_s);
	TEST_ASSERT_EQUAL_UINT32(2, args.resource_count);
	expect_span("", args.fabric_file);
	expect_span("nvidia.com/gpu", args.resources[0]);
	expect_span("amd.com/gpu", args.resources[1]);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->args(json, sizeof json - 1, &args, c->text, CLUSTER_TEXT, &c->len));
	TEST_ASSERT_EQUAL_UINT32(30, args.permit_wait_s);
	expect_span("/etc/fabric.yaml", args.fabric_file);
	expect_span("b.com/gpu", args.resources[1]);
	TEST_ASSERT_EQUAL_UINT32(0, args.resources[2].len);
}

static void test_a_fabric_is_expanded_to_its_nodes(void)
{
	static const char line[] = "spine:2 leaf:1 node:1 gpu:4";
	TEST_ASSERT_EQUAL_INT32(FROND_OK,
				abi->fabric_expand(line, sizeof line - 1, 1, c->text, CLUSTER_TEXT - 1, &c->len));
	c->text[c->len] = 0;
	TEST_ASSERT_NOT_NULL(
		strstr(c->text, "\"name\":\"node-2\",\"spine\":\"spine-2\",\"leaf\":\"leaf-2\",\"gpus\":4"));
	TEST_ASSERT_EQUAL_INT32(FROND_BAD,
				abi->fabric_expand(line, sizeof line - 1, 0, c->text, CLUSTER_TEXT - 1, &c->len));
	TEST_ASSERT_EQUAL_INT32(FROND_BAD, abi->fabric_expand("", 0, 0, c->text, CLUSTER_TEXT - 1, &c->len));
	TEST_ASSERT_EQUAL_INT32(FROND_BAD, abi->fabric_expand("", 0, 1, c->text, CLUSTER_TEXT - 1, &c->len));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_a_buffer_that_is_too_small_gets_the_size_to_call_again_with);
	RUN_TEST(test_an_errors_sentence_is_cut_instead);
	RUN_TEST(test_a_binding_says_devices_domain_and_rank);
	RUN_TEST(test_devices_are_listed_in_ring_order);
	RUN_TEST(test_what_a_binding_says_is_read_back_as_it_was);
	RUN_TEST(test_what_is_held_by_count_has_no_place);
	RUN_TEST(test_a_node_without_a_leaf_has_no_domain);
	RUN_TEST(test_sixteen_devices_and_long_names_fit);
	RUN_TEST(test_nodes_with_replicas_are_named_and_scheduled_by_devices);
	RUN_TEST(test_of_many_nodes_with_replicas_the_first_are_named);
	RUN_TEST(test_every_code_has_a_text);
	RUN_TEST(test_the_dump_is_canonical);
	RUN_TEST(test_the_same_state_has_the_same_dump_whatever_its_history);
	RUN_TEST(test_args_give_the_host_what_it_needs);
	RUN_TEST(test_a_fabric_is_expanded_to_its_nodes);
	return UNITY_END();
}
