/* SPDX-License-Identifier: Apache-2.0 */
/* Bad input to every function of the table that changes something: it is refused, and nothing has changed. */
#include "cluster.h"

static struct cluster *c;

void setUp(void)
{
	c = cluster_make("spine:1 leaf:2 node:2 gpu:8", "");
	occupy(c, "node-1", 0x01);
	place(c, &(struct wanted){.name = "held", .members = 1, .gpus = 4});
}

void tearDown(void)
{
	cluster_free(c);
}

/* ---- life ------------------------------------------------------------------------------------------------------- */

static void test_size_of_answers_zero_for_limits_out_of_range(void)
{
	static const struct frond_limits wrong[] = {
		{0, 1, 0, 0, 0},
		{1, 0, 0, 0, 0},
		{FROND_NODES_MAX + 1, 1, 0, 0, 0},
		{1, FROND_PODS_MAX + 1, 0, 0, 0},
		{1, 1, 0, 4095, 0}, /* not even the smallest table */
		{1, 1, 0, (1u << 30) + 1, 0},
		{1, 1, (1u << 30) + 1, 0, 0},
		{1, 1, 0, 0, FROND_HOLDS_MAX + 1},
	};
	for (uint32_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		TEST_ASSERT_EQUAL_UINT64(0, abi->size_of(&wrong[i]));
	struct frond_limits limits = {.nodes = 1, .pods = 1};
	uint64_t least = abi->size_of(&limits);
	TEST_ASSERT_NOT_EQUAL(0, least);
	limits = (struct frond_limits){.nodes = FROND_NODES_MAX, .pods = FROND_PODS_MAX, .text_bytes = 1u << 30};
	TEST_ASSERT_TRUE(abi->size_of(&limits) > least);
	limits = (struct frond_limits){.nodes = 1000, .pods = 10000};
	TEST_ASSERT_TRUE(abi->size_of(&limits) < 32u << 20);
}

static void create(int32_t expected, void *mem, uint64_t bytes, const struct frond_limits *limits, const char *args,
		   const char *fabric, const char *part)
{
	frond_engine *engine = NULL;
	int32_t code = abi->create(mem, bytes, limits, args, (uint32_t)strlen(args), fabric, (uint32_t)strlen(fabric),
				   &engine, c->text, CLUSTER_TEXT - 1, &c->len);
	c->text[c->len] = 0;
	TEST_ASSERT_EQUAL_INT32_MESSAGE(expected, code, c->text);
	TEST_ASSERT_EQUAL(code == FROND_OK, engine != NULL);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(c->text, part), c->text);
}

static void test_create_refuses_wrong_memory_limits_args_and_fabrics(void)
{
	const struct frond_limits limits = {.nodes = 2, .pods = 2}, wrong = {.nodes = 0, .pods = 2};
	uint64_t bytes = abi->size_of(&limits);
	char *mem = aligned_alloc(16, (bytes + 31) / 16 * 16);
	TEST_ASSERT_NOT_NULL(mem);
	create(FROND_OK, mem, bytes, &limits, "", "", "");
	create(FROND_OK, mem, bytes, &limits, "{}", "spine:1 leaf:2 node:1 gpu:8", "");
	create(FROND_LIMIT, mem, bytes, &wrong, "", "",
	       "limits: nodes must be 1 to 131072, pods 1 to 1048575, holds 0 to 32768, textBytes and tableBytes 0 or "
	       "up to 1 GiB");
	create(FROND_BAD, NULL, bytes, &limits, "", "", "too small or not aligned to 16");
	create(FROND_BAD, mem + 8, bytes, &limits, "", "", "too small or not aligned to 16");
	create(FROND_BAD, mem, bytes - 1, &limits, "", "", "too small or not aligned to 16");
	create(FROND_BAD, mem, bytes, &limits, "{\"nonsense\":1}", "", "nonsense");
	create(FROND_BAD, mem, bytes, &limits, "[", "", "args");
	create(FROND_BAD, mem, bytes, &limits, "", "spine:1 leaf:2", "line 1: node");
	create(FROND_BAD, mem, bytes, &limits, "", "kind: Nothing\n", "kind");
	create(FROND_LIMIT, mem, bytes, &limits, "", "spine:1 leaf:1 node:3 gpu:8", "more nodes");
	for (uint32_t text = 8; text < 25; text += 8) { /* room for no name, for the spine's, for the leaf's too */
		const struct frond_limits short_of = {.nodes = 2, .pods = 2, .text_bytes = text};
		create(FROND_LIMIT, mem, bytes, &short_of, "", "spine:1 leaf:1 node:1 gpu:8",
		       "names, speeds or models than the engine");
	}
	create(FROND_OK, mem, bytes, &limits, "", "", "");
	free(mem);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

static struct frond_node good_node(void)
{
	return (struct frond_node){.slot = 4, .gpus = 8, .topology = FROND_NONE, .name = {0, 5}};
}

static void put_node(int32_t expected, struct frond_node node, const struct frond_pair *labels, uint32_t count)
{
	static const char in[] = "node-0123456789";
	int32_t code =
		abi->node_put(c->engine, &node, labels, count, in, sizeof in - 1, c->text, CLUSTER_TEXT - 1, &c->len);
	c->text[c->len] = 0;
	TEST_ASSERT_EQUAL_INT32_MESSAGE(expected, code, c->text);
	TEST_ASSERT_EQUAL(expected != FROND_OK, c->len > 0);
	check(c);
}

static void test_node_put_refuses_what_a_node_cannot_be(void)
{
	remember(c);
	struct frond_node node = good_node();
	node.slot = c->limits.nodes;
	put_node(FROND_BAD, node, NULL, 0);
	node.slot = FROND_NONE;
	put_node(FROND_BAD, node, NULL, 0);
	node = good_node();
	node.gpus = 17;
	put_node(FROND_BAD, node, NULL, 0);
	node = good_node();
	node.unhealthy_mask = 0x100;
	put_node(FROND_BAD, node, NULL, 0);
	node = good_node();
	node.flags = 16;
	put_node(FROND_BAD, node, NULL, 0);
	node.flags = FROND_NODE_UNAVAILABLE; /* an open node is capacity */
	put_node(FROND_BAD, node, NULL, 0);
	node.flags = FROND_NODE_UNAVAILABLE | FROND_NODE_REPLICAS;
	put_node(FROND_BAD, node, NULL, 0);
	node = good_node();
	node.unhealthy_mask = 0x6;
	node.unavailable_mask = 0x1;
	put_node(FROND_BAD, node, NULL, 0);
	node = good_node();
	node.uplink_gbps = FROND_UPLINK_MAX + 1;
	put_node(FROND_BAD, node, NULL, 0);
	node = good_node();
	node.reserved = 1;
	put_node(FROND_BAD, node, NULL, 0);
	node = good_node();
	node.topology = FROND_TOPOLOGIES; /* no such table */
	put_node(FROND_BAD, node, NULL, 0);
	node.topology = 0; /* of nodes without GPUs */
	put_node(FROND_BAD, node, NULL, 0);
	node = good_node();
	node.model = (struct frond_span){14, 2};
	put_node(FROND_BAD, node, NULL, 0);
	node = good_node();
	node.name = (struct frond_span){0, 0};
	put_node(FROND_BAD, node, NULL, 0);
	node.name = (struct frond_span){14, 2};
	put_node(FROND_BAD, node, NULL, 0);
	node.name = (struct frond_span){FROND_NONE, 2};
	put_node(FROND_BAD, node, NULL, 0);
	node.name = (struct frond_span){1, FROND_NONE};
	put_node(FROND_BAD, node, NULL, 0);
	node.name = (struct frond_span){0, 6}; /* node-0 is new, node-1 is taken */
	const struct frond_pair outside[] = {{{0, 1}, {0, 1}}, {{15, 1}, {0, 1}}};
	put_node(FROND_BAD, node, outside, 2);
	const struct frond_pair outside_too[] = {{{0, 1}, {3, 13}}};
	put_node(FROND_BAD, node, outside_too, 1);
	unchanged(c);
	node.gpus = 16;
	node.unhealthy_mask = node.unavailable_mask = 0xffff;
	node.flags = 11;
	node.uplink_gbps = FROND_UPLINK_MAX;
	put_node(FROND_OK, node, outside, 1);
}

static void test_a_name_is_in_one_slot_only(void)
{
	remember(c);
	TEST_ASSERT_EQUAL_INT32(FROND_BAD, node_try(c, 5, "node-1", 8, 0, 0, 0, NULL, NULL));
	TEST_ASSERT_EQUAL_STRING("node node-1 is in slot 0 already", c->text);
	unchanged(c);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, node_try(c, 5, "leaf-1", 8, 0, 0, 0, NULL, NULL)); /* a leaf is no node */
	check(c);
}

static void test_names_have_253_bytes_at_most(void)
{
	char name[256];
	memset(name, 'n', sizeof name);
	name[FROND_NAME_MAX + 1] = 0;
	remember(c);
	TEST_ASSERT_EQUAL_INT32(FROND_BAD, node_try(c, 5, name, 8, 0, 0, 0, NULL, NULL));
	TEST_ASSERT_EQUAL_INT32(FROND_BAD, node_try(c, 5, "ok", 8, 0, 0, 0, name, "s"));
	unchanged(c);
	name[FROND_NAME_MAX] = 0;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, node_try(c, 5, name, 8, 0, 0, 0, name, name + 1));
	check(c);
}

static void expect_problems(const char *text)
{
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->problems(c->engine, c->text, CLUSTER_TEXT - 1, &c->len));
	c->text[c->len] = 0;
	TEST_ASSERT_EQUAL_STRING(text, c->text);
}

static void test_without_room_for_names_nodes_are_refused_and_domains_left_out(void)
{
	struct cluster *small = calloc(1, sizeof *small), *kept = c;
	TEST_ASSERT_NOT_NULL(small);
	c = small;
	engine_make(c, 4, 1, "", "");
	free(c->mem);
	c->limits.text_bytes = 46; /* each name has its length in front of it, two bytes */
	uint64_t bytes = abi->size_of(&c->limits);
	c->mem = aligned_alloc(16, (bytes + 15) / 16 * 16);
	create(FROND_OK, c->mem, bytes, &c->limits, "", "", "");
	int32_t code = abi->create(c->mem, bytes, &c->limits, "", 0, "", 0, &c->engine, c->text, CLUSTER_TEXT, &c->len);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, code);
	node_put(c, 0, "node-1", 8, "leaf", "spine"); /* 21 of 46 bytes */
	remember(c);
	TEST_ASSERT_EQUAL_INT32(FROND_LIMIT,
				node_try(c, 1, "a-name-that-is-a-little-longer", 8, 0, 0, 0, "leaf", "spine"));
	unchanged(c);
	expect_problems("");
	node_put(c, 1, "node-2", 8, "leaf", "another-spine-of-that-leaf");
	expect_problems("there is no room for the names of all leaves, spines and NVLink domains, among them those of "
			"node node-2; 1 node is scheduled without topology\n");
	TEST_ASSERT_EQUAL_UINT32(1, stats(c).nodes_without_leaf);
	for (int i = 0; i < 100; i++) { /* names that were left out leave nothing behind */
		node_put(c, 2, "n-3", 8, "leaf-that-is-long", "sp");
		check(c);
	}
	TEST_ASSERT_EQUAL_UINT32(2, stats(c).nodes_without_leaf);
	node_put(c, 1, "node-2", 8, "leaf", "spine");
	node_put(c, 2, "n-3", 8, "leaf", "spine");
	TEST_ASSERT_EQUAL_UINT32(0, stats(c).nodes_without_leaf);
	expect_problems("");
	cluster_free(small);
	c = kept;
}

static void test_node_remove_knows_its_nodes(void)
{
	remember(c);
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, abi->node_remove(c->engine, 4));
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, abi->node_remove(c->engine, c->limits.nodes));
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, abi->node_remove(c->engine, FROND_NONE));
	unchanged(c);
	node_remove(c, 0);
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, abi->node_remove(c->engine, 0));
}

/* ---- pods ------------------------------------------------------------------------------------------------------- */

static void put_pod(int32_t expected, struct frond_key pod, uint32_t slot, uint32_t gpus, uint32_t mask,
		    struct frond_span name)
{
	struct frond_pod record = {
		.pod = pod, .slot = slot, .gpus = gpus, .gpu_mask = mask, .name = name, .rank = FROND_NONE};
	int32_t code = abi->pod_put(c->engine, &record, "0123456789", 10, c->text, CLUSTER_TEXT - 1, &c->len);
	c->text[c->len] = 0;
	TEST_ASSERT_EQUAL_INT32_MESSAGE(expected, code, c->text);
	TEST_ASSERT_EQUAL(expected != FROND_OK, c->len > 0);
	check(c);
}

static void test_pod_put_refuses_what_a_pod_cannot_be(void)
{
	const struct frond_key pod = {3, 3}, zero = {0, 0};
	const struct frond_span none = {0, 0};
	remember(c);
	put_pod(FROND_BAD, zero, 0, 1, 0, none);
	put_pod(FROND_BAD, pod, 0, 1, 0, (struct frond_span){11, 0});
	put_pod(FROND_BAD, pod, 0, 1, 0, (struct frond_span){4, FROND_NONE});
	put_pod(FROND_UNKNOWN, pod, 4, 1, 0, none);
	put_pod(FROND_UNKNOWN, pod, c->limits.nodes, 1, 0, none);
	put_pod(FROND_UNKNOWN, pod, FROND_NONE, 1, 0, none);
	put_pod(FROND_BAD, pod, 0, FROND_POD_GPUS_MAX + 1, 0, none);
	put_pod(FROND_BAD, pod, 0, 1, 0x100, none); /* the node has eight */
	put_pod(FROND_BAD, pod, 0, 1, 0x80000000, none);
	put_pod(FROND_BAD, pod, 0, 9, 0x1ff, none);
	put_pod(FROND_BAD, pod, 0, 1, 0x03, none); /* another number */
	put_pod(FROND_BAD, pod, 0, 3, 0x03, none);
	put_pod(FROND_BAD, pod, 0, 0, 0x01, none);
	unchanged(c);
	put_pod(FROND_OK, pod, 0, FROND_POD_GPUS_MAX, 0, none);
	put_pod(FROND_OK, pod, 0, 0, 0, (struct frond_span){10, 0});
	put_pod(FROND_OK, pod, 0, 8, 0xff, none);
}

static struct frond_held held(struct frond_key pod)
{
	struct frond_held out;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->pod_get(c->engine, &pod, &out));
	return out;
}

static void expect_held(struct frond_held want, struct frond_held got)
{
	TEST_ASSERT_EQUAL_UINT32(want.slot, got.slot);
	TEST_ASSERT_EQUAL_UINT32(want.gpus, got.gpus);
	TEST_ASSERT_EQUAL_HEX32(want.gpu_mask, got.gpu_mask);
	TEST_ASSERT_EQUAL_UINT32(want.by_count, got.by_count);
	TEST_ASSERT_EQUAL_UINT32(want.rank, got.rank);
	TEST_ASSERT_EQUAL_UINT32(want.state, got.state);
	TEST_ASSERT_EQUAL_MEMORY(&want.gang, &got.gang, sizeof want.gang);
}

static void test_pod_get_says_what_a_pod_holds(void)
{
	const struct frond_key pod = {3, 3}, second = {3, 4}, none = {0, 0}, gang = key_of("a", UINT64_MAX);
	struct frond_held out;
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, abi->pod_get(c->engine, &pod, &out));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, pod_try(c, pod, 1, 2, 0xa0, "", none));
	expect_held((struct frond_held){none, 1, 2, 0xa0, 0, FROND_NONE, FROND_HELD_BOUND}, held(pod));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, pod_try(c, second, 1, 3, 0xe0, "", gang)); /* two of them are taken */
	expect_held((struct frond_held){gang, 1, 3, 0x40, 2, FROND_NONE, FROND_HELD_BOUND}, held(second));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, pod_try(c, second, 1, 0, 0, "", none));
	expect_held((struct frond_held){gang, 1, 0, 0, 0, FROND_NONE, FROND_HELD_BOUND}, held(second));
	const uint32_t sizes[] = {4, 0};
	place(c, &(struct wanted){.name = "b", .members = 2, .sizes = sizes, .only = 3});
	uint32_t mask = c->places[0].gpu_mask;
	struct frond_key reserved = key_of("b", 1), without = key_of("b", 2), b = key_of("b", UINT64_MAX);
	expect_held((struct frond_held){b, 2, 4, mask, 0, 0, FROND_HELD_RESERVED}, held(reserved));
	expect_held((struct frond_held){b, FROND_NONE, 0, 0, 0, 1, FROND_HELD_RESERVED}, held(without));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->confirm(c->engine, &reserved));
	expect_held((struct frond_held){b, 2, 4, mask, 0, 0, FROND_HELD_BOUND}, held(reserved));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release(c->engine, &pod));
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, abi->pod_get(c->engine, &pod, &out));
}

static void test_a_full_ledger_refuses_pods_and_reservations(void)
{
	struct cluster *small = calloc(1, sizeof *small), *kept = c;
	TEST_ASSERT_NOT_NULL(small);
	c = small;
	engine_make(c, 1, 2, "", "");
	node_put(c, 0, "n", 8, "l", "s");
	place(c, &(struct wanted){.name = "a", .members = 1, .gpus = 1});
	remember(c);
	plan(c, &(struct wanted){.name = "b", .members = 2, .gpus = 1});
	TEST_ASSERT_EQUAL_INT32(FROND_LIMIT, abi->reserve(c->engine, &c->request, c->members, c->places));
	unchanged(c);
	place(c, &(struct wanted){.name = "b", .members = 1, .gpus = 1});
	remember(c);
	const struct frond_key pod = {3, 3};
	TEST_ASSERT_EQUAL_INT32(FROND_LIMIT, pod_try(c, pod, 0, 1, 0x80, "ns/x", pod));
	TEST_ASSERT_EQUAL_STRING("no room for further pods", c->text);
	unchanged(c);
	struct frond_key known = key_of("b", 1); /* one that it knows may change */
	TEST_ASSERT_EQUAL_INT32(FROND_OK, pod_try(c, known, 0, 1, 0x80, "ns/b", known));
	check(c);
	cluster_free(small);
	c = kept;
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

static struct frond_request request;
static struct frond_member members[3];

static void good_request(void)
{
	request = (struct frond_request){.gang = {9, 9},
					 .members = 3,
					 .min_member = 3,
					 .gpus_desired = 6,
					 .only_slot = FROND_NONE,
					 .name = {0, 4}};
	for (uint32_t i = 0; i < 3; i++)
		members[i] = (struct frond_member){.pod = {9, i + 1}, .rank = i, .gpus = 2, .pinned_slot = FROND_NONE};
}

static void ask(int32_t expected)
{
	uint16_t position[8];
	int32_t code = abi->plan(c->engine, &request, members, NULL, "name", 4, NULL, 0, &c->plan, c->places, c->text,
				 CLUSTER_TEXT - 1, &c->len);
	TEST_ASSERT_EQUAL_INT32(expected, code);
	TEST_ASSERT_NOT_EQUAL(0, c->len);
	request.members = request.members == 3 ? 1 : request.members;
	request.gpus_desired = 2;
	code = abi->order(c->engine, &request, members, NULL, "name", 4, NULL, 0, NULL, NULL, NULL, &c->plan, position,
			  c->text, CLUSTER_TEXT - 1, &c->len);
	TEST_ASSERT_EQUAL_INT32(expected, code);
	TEST_ASSERT_NOT_EQUAL(0, c->len);
	good_request();
}

static void test_plan_and_order_refuse_malformed_requests(void)
{
	good_request();
	remember(c);
	ask(FROND_OK);
	request.gang = (struct frond_key){0, 0};
	ask(FROND_BAD);
	request.members = 0;
	ask(FROND_BAD);
	request.age_ms = -1;
	ask(FROND_BAD);
	request.name = (struct frond_span){0, 5};
	ask(FROND_BAD);
	request.name = (struct frond_span){FROND_NONE, 2};
	ask(FROND_BAD);
	request.only_slot = c->limits.nodes;
	ask(FROND_BAD);
	request.only_slot = c->limits.nodes - 1; /* nobody there: an answer */
	ask(FROND_OK);
	members[0].pod = (struct frond_key){0, 0};
	ask(FROND_BAD);
	unchanged(c);
}

static void test_plan_refuses_malformed_members(void)
{
	good_request();
	remember(c);
	static const uint32_t slots[] = {4, 8, FROND_NONE - 1};
	for (uint32_t i = 0; i < 3; i++) {
		members[2].pinned_slot = slots[i]; /* no node there, and out of range */
		TEST_ASSERT_EQUAL_INT32(FROND_BAD, abi->plan(c->engine, &request, members, NULL, "name", 4, NULL, 0,
							     &c->plan, c->places, c->text, CLUSTER_TEXT, &c->len));
	}
	good_request();
	members[1].rank = 5; /* before rank 2 */
	TEST_ASSERT_EQUAL_INT32(FROND_BAD, abi->plan(c->engine, &request, members, NULL, "name", 4, NULL, 0, &c->plan,
						     c->places, c->text, CLUSTER_TEXT, &c->len));
	good_request();
	members[1].rank = members[2].rank = 0; /* equal ranks are in order */
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->plan(c->engine, &request, members, NULL, "name", 4, NULL, 0, &c->plan,
						    c->places, c->text, CLUSTER_TEXT, &c->len));
	unchanged(c);
}

static void test_annotations_outside_their_text_are_refused(void)
{
	good_request();
	request.annotations = 1;
	const struct frond_pair pair = {{0, 4}, {4, 1}};
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->plan(c->engine, &request, members, &pair, "name", 4, NULL, 0, &c->plan,
						    c->places, c->text, CLUSTER_TEXT, &c->len));
	TEST_ASSERT_EQUAL_UINT32(FROND_REFUSED, c->plan.outcome);
}

static void test_order_is_for_one_pod_with_gpus(void)
{
	uint16_t position[8];
	for (uint32_t i = 0; i < 3; i++) {
		good_request();
		request.members = i == 0 ? 2 : 1;
		members[0].gpus = i == 1 ? 0 : 2;
		members[0].pinned_slot = i == 2 ? 0 : FROND_NONE;
		TEST_ASSERT_EQUAL_INT32(FROND_BAD,
					abi->order(c->engine, &request, members, NULL, "name", 4, NULL, 0, NULL, NULL,
						   NULL, &c->plan, position, c->text, CLUSTER_TEXT, &c->len));
	}
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_size_of_answers_zero_for_limits_out_of_range);
	RUN_TEST(test_create_refuses_wrong_memory_limits_args_and_fabrics);
	RUN_TEST(test_node_put_refuses_what_a_node_cannot_be);
	RUN_TEST(test_a_name_is_in_one_slot_only);
	RUN_TEST(test_names_have_253_bytes_at_most);
	RUN_TEST(test_without_room_for_names_nodes_are_refused_and_domains_left_out);
	RUN_TEST(test_node_remove_knows_its_nodes);
	RUN_TEST(test_pod_put_refuses_what_a_pod_cannot_be);
	RUN_TEST(test_pod_get_says_what_a_pod_holds);
	RUN_TEST(test_a_full_ledger_refuses_pods_and_reservations);
	RUN_TEST(test_plan_and_order_refuse_malformed_requests);
	RUN_TEST(test_plan_refuses_malformed_members);
	RUN_TEST(test_annotations_outside_their_text_are_refused);
	RUN_TEST(test_order_is_for_one_pod_with_gpus);
	return UNITY_END();
}
