/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bad input of every kind to every function of the table: a code, a sentence that names the path and what is allowed, and
 * the state to the last byte as it was. One table per way in; the sentences are part of the contract with users.
 */
#include "cluster.h"

#define FABRIC "apiVersion: topology.scheduler/v1alpha1\nkind: Fabric\n"
#define TREE   "spines: [{name: s, leaves: [{name: l, nodes: [a]}]}]\n"
#define KEY    "topology.scheduler/"

struct bad {
	const char *input, *sentence;
};

static struct cluster *c;

/* A cluster in use, so that there is something to spoil. */
void setUp(void)
{
	c = cluster_make("spine:1 leaf:2 node:2 gpu:8", "");
	occupy(c, "node-1", 0x01);
	occupy_by_count(c, "node-2", 2);
	place(c, &(struct wanted){.name = "held", .members = 2, .gpus = 2, .deadline_ms = 1000});
	remember(c);
}

void tearDown(void)
{
	cluster_free(c);
}

static void refused(int32_t expected, int32_t code, const char *input, const char *sentence)
{
	c->text[c->len] = 0;
	TEST_ASSERT_EQUAL_INT32_MESSAGE(expected, code, input);
	TEST_ASSERT_EQUAL_STRING_MESSAGE(sentence, c->text, input);
	unchanged(c);
}

/* ---- args ------------------------------------------------------------------------------------------------------- */

static const struct bad bad_args[] = {
	{"{\"scoringWeights\":{\"topologyAlignment\":-3}}",
	 "args.scoringWeights.topologyAlignment: must be between 0 and 1, got -3"},
	{"{\"scoringWeights\":{\"topologyAlignment\":NaN}}", "args: is not valid JSON at byte 39"},
	{"{\"scoringWeights\":{\"topologyAlignment\":1e999}}",
	 "args.scoringWeights.topologyAlignment: must be between 0 and 1, got inf"},
	{"{\"scoringWeights\":{\"topologyAlignment\":\"x\"}}",
	 "args.scoringWeights.topologyAlignment: must be between 0 and 1, got \"x\""},
	{"{\"topologyConstraints\":{\"maxNodesPerLeaf\":-1}}",
	 "args.topologyConstraints.maxNodesPerLeaf: must be a whole number between 1 and 131072, got -1"},
	{"{\"topologyConstraints\":{\"maxNodesPerLeaf\":4294967296}}",
	 "args.topologyConstraints.maxNodesPerLeaf: must be a whole number between 1 and 131072, got 4294967296"},
	{"{\"permitWaitingTimeSeconds\":1e300}",
	 "args.permitWaitingTimeSeconds: must be a whole number between 1 and 900, got 1e+300"},
	{"{\"defaultStrategy\":\"sideways\"}",
	 "args.defaultStrategy: must be balanced, consolidated or distributed, got \"sideways\""},
	{"{\"defaultTopologyWait\":\"-5m\"}",
	 "args.defaultTopologyWait: \"-5m\" is not a duration; write for example \"10m\" or \"forever\""},
	{"{\"nonsense\":1}", "args.nonsense: is not a known field"},
	{"{\"gpuResources\":[\"a/b\",\"a/b\"]}", "args.gpuResources[1]: repeats entry 0"},
	{"{\"gpuResources\":[]}", "args.gpuResources: is empty; 1 to 8 resource names are allowed"},
	{"{\"permitWaitingTimeSeconds\":1,\"permitWaitingTimeSeconds\":2}",
	 "args.permitWaitingTimeSeconds: is written twice"},
	{"[]", "args: must be an object"},
	{"{", "args: is not valid JSON at byte 1"},
	{"\xff\xfe", "args: is not UTF-8 at byte 0"},
	{"{\"corePath\":\"\xff\"}", "args: is not UTF-8 at byte 13"},
};

static void test_args(void)
{
	struct frond_args out;
	for (uint32_t i = 0; i < sizeof bad_args / sizeof *bad_args; i++) {
		const struct bad *bad = &bad_args[i];
		uint32_t len = (uint32_t)strlen(bad->input);
		refused(FROND_BAD, abi->args(bad->input, len, &out, c->text, CLUSTER_TEXT - 1, &c->len), bad->input,
			bad->sentence);
		uint64_t bytes = abi->size_of(&c->limits);
		frond_engine *engine = NULL;
		void *mem = calloc(1, bytes);
		int32_t code = abi->create(mem, bytes, &c->limits, bad->input, len, "", 0, &engine, c->text,
					   CLUSTER_TEXT - 1, &c->len);
		refused(FROND_BAD, code, bad->input, bad->sentence);
		TEST_ASSERT_NULL(engine);
		free(mem);
	}
}

/* ---- fabrics ---------------------------------------------------------------------------------------------------- */

static const struct bad bad_lines[] = {
	{"", "line 1: spine: is missing; write for example \"spine:2 leaf:4 node:4 gpu:8\""},
	{"spine:0 leaf:1 node:1 gpu:1", "line 1: spine: must be a whole number between 1 and 131072, got \"0\""},
	{"spine:-1 leaf:1 node:1 gpu:1", "line 1: spine: must be a whole number between 1 and 131072, got \"-1\""},
	{"spine:1 leaf:1 node:1 gpu:17",
	 "line 1: gpu: must be a whole number between 1 and 8 (nodes are H100-SXM), got \"17\""},
	{"spine:1 leaf:1 node:99999999999999999999 gpu:8",
	 "line 1: node: must be a whole number between 1 and 131072, got \"99999999999999999999\""},
	{"spine:1 leaf:400 node:400 gpu:8", "line 1: node: brings the cluster to 160000; at most 131072 are allowed"},
	{"leaf:1", "line 1: spine: must come here, got \"leaf:1\"; write for example \"spine:2 leaf:4 node:4 gpu:8\""},
};

static const struct bad bad_files[] = {
	{"", "line 1: document: is empty"},
	{FABRIC, "line 1: spines: is missing"},
	{FABRIC "spines: []\n", "line 3: spines: is empty; at least one spine is needed"},
	{FABRIC "spines: [{name: s, leaves: []}]\n", "line 3: spines[0].leaves: is empty; at least one leaf is needed"},
	{FABRIC "spines: [{name: s, leaves: [{name: l, nodes: [a, a]}]}]\n",
	 "line 3: spines[0].leaves[0].nodes[1]: node \"a\" is already listed on line 3; each is listed once"},
	{FABRIC "spines: [{name: s, leaves: [{name: l, nodes: [a]}, {name: l, nodes: [b]}]}]\n",
	 "line 3: spines[0].leaves[1].name: leaf \"l\" is already listed on line 3; each is listed once"},
	{FABRIC "spines:\n- {name: s, leaves: [{name: l, nodes: [a]}]}\n- {name: s, leaves: [{name: k, nodes: [b]}]}\n",
	 "line 5: spines[1].name: spine \"s\" is already listed on line 4; each is listed once"},
	{FABRIC "spines: [{name: s, color: red, leaves: [{name: l, nodes: [a]}]}]\n",
	 "line 3: spines[0].color: is not a known key; allowed are name, leaves"},
	{FABRIC "spines: [{name: s, leaves: [{name: l, nodes: [\"\xff\"]}]}]\n",
	 "line 3: document: invalid leading UTF-8 octet"},
	{FABRIC "defaults: {gpus: .nan}\n" TREE,
	 "line 3: defaults.gpus: must be a whole number between 0 and 16, got \".nan\""},
	{FABRIC "defaults: {gpus: -8}\n" TREE, "line 3: defaults.gpus: must be between 0 and 16, got -8"},
	{FABRIC "defaults: {gpus: 17}\n" TREE, "line 3: defaults.gpus: must be between 0 and 16, got 17"},
	{FABRIC "defaults: {uplinkGbps: 99999999999999999999}\n" TREE,
	 "line 3: defaults.uplinkGbps: must be a whole number between 1 and 1000000, got \"99999999999999999999\""},
	{FABRIC "spines: &x [*x]\n", /* a cycle */
	 "line 3: spines: anchors and aliases (&x, *x) are not allowed; write the value out"},
	{FABRIC TREE "nodes: [{name: b}]\n", "line 4: nodes[0].name: no leaf lists a node \"b\""},
	{FABRIC TREE "nodes: [{name: a, usedGpus: [8]}]\n",
	 "line 4: nodes[0].usedGpus[0]: names a GPU, but the node has none"},
	{FABRIC TREE "models: [{name: m, gpus: 2, links: [[0, 1], [2, 0]]}]\n",
	 "line 4: models[0].links[1][0]: is 2 but the way back is 1; links must be symmetric"},
	{FABRIC "kind: Fabric\n", "line 3: kind: is written twice in this map, first on line 2"},
};

static void test_fabric_lines_and_files(void)
{
	for (uint32_t i = 0; i < sizeof bad_lines / sizeof *bad_lines; i++) {
		const struct bad *bad = &bad_lines[i];
		refused(FROND_BAD,
			abi->fabric_expand(bad->input, (uint32_t)strlen(bad->input), 1, c->text, CLUSTER_TEXT - 1,
					   &c->len),
			bad->input, bad->sentence);
	}
	for (uint32_t i = 0; i < sizeof bad_files / sizeof *bad_files; i++) {
		const struct bad *bad = &bad_files[i];
		refused(FROND_BAD,
			abi->fabric_expand(bad->input, (uint32_t)strlen(bad->input), 0, c->text, CLUSTER_TEXT - 1,
					   &c->len),
			bad->input, bad->sentence);
	}
}

/* ---- what a user writes on a workload --------------------------------------------------------------------------- */

static const struct bad bad_annotations[] = {
	{"gpu-count=-1",
	 KEY "gpu-count: \"-1\" is not a number of GPUs from 1 to 2147483648; write for example \"16\""},
	{"gpu-count=NaN",
	 KEY "gpu-count: \"NaN\" is not a number of GPUs from 1 to 2147483648; write for example \"16\""},
	{"gpu-count=99999999999999999999", KEY "gpu-count: \"99999999999999999999\" is not a number of GPUs from 1 to "
					       "2147483648; write for example \"16\""},
	{"network-bandwidth=-5Gb", KEY "network-bandwidth: \"-5Gb\" is not a bandwidth of at most 1000Tb; write for "
				       "example \"100Gb\", \"1.6Tb\" or \"500Mb\""},
	{"network-bandwidth=1e400Gb", KEY "network-bandwidth: \"1e400Gb\" is not a bandwidth of at most 1000Tb; write "
					  "for example \"100Gb\", \"1.6Tb\" or \"500Mb\""},
	{"network-bandwidth=\xff\xfe", KEY "network-bandwidth: \"??\" is not a bandwidth of at most 1000Tb; write for "
					   "example \"100Gb\", \"1.6Tb\" or \"500Mb\""},
	{"latency-sensitive=maybe",
	 KEY "latency-sensitive: \"maybe\" is not true or false; write for example \"true\""},
	{"placement-strategy=sideways", KEY "placement-strategy: \"sideways\" is not a strategy; write "
					    "\"consolidated\", \"distributed\" or \"balanced\""},
	{"topology-mode=must",
	 KEY "topology-mode: \"must\" is not a mode; write \"Required\", \"Preferred\" or \"Ignore\""},
	{"topology-wait=-5m", KEY "topology-wait: \"-5m\" is not a duration; write for example \"10m\" or \"forever\""},
	{"topology-wait=99999999999999h", KEY "topology-wait: \"99999999999999h\" is not a duration of at most 1000h; "
					      "for longer write \"forever\""},
	{"recovery=Perhaps",
	 KEY "recovery: \"Perhaps\" is not a recovery policy; write \"Replace\", \"MoveGang\" or \"Wait\""},
	{"preferred-domain=",
	 KEY "preferred-domain: \"\" is not the name of a domain; write for example \"leaf-1\" or \"spine-1\""},
};

static const struct bad bad_claims[] = {
	{"{\"devices\":{\"count\":0}}", "claim.devices.count: must be a whole number between 1 and 16, got 0"},
	{"{\"devices\":{\"count\":17}}", "claim.devices.count: must be a whole number between 1 and 16, got 17"},
	{"{\"devices\":{\"count\":-1}}", "claim.devices.count: must be a whole number between 1 and 16, got -1"},
	{"{\"devices\":{\"count\":NaN}}", "claim: is not valid JSON at byte 20"},
	{"{\"devices\":{\"count\":1e99}}", "claim.devices.count: must be a whole number between 1 and 16, got 1e+99"},
	{"{\"devices\":{\"policy\":\"near\"}}",
	 "claim.devices.policy: must be contiguous, spread or preferIds, got \"near\""},
	{"{\"devices\":{\"policy\":\"preferIds\",\"preferIds\":[\"0\",\"0\"]}}",
	 "claim.devices.preferIds[1]: repeats entry 0; each GPU is listed once"},
	{"{\"devices\":{\"exclusivity\":\"Shared\"}}",
	 "claim.devices.exclusivity: Shared is not yet supported; only Exclusive is allowed"},
	{"{\"devices\":{\"migProfile\":\"1g.5gb\"}}", "claim.devices.migProfile: is not yet supported; leave it out"},
	{"{\"topology\":{\"minBandwidthGBps\":-1}}",
	 "claim.topology.minBandwidthGBps: must be a whole number between 0 and 1000000, got -1"},
	{"{\"topology\":{\"mode\":\"must\"}}",
	 "claim.topology.mode: must be Required, Preferred or Ignore, got \"must\""},
	{"{\"color\":1}", "claim.color: is not a known field"},
	{"{\"devices\":{\"count\":1,\"count\":2}}", "claim.devices.count: is written twice"},
	{"[", "claim: is not valid JSON at byte 1"},
	{"\xff", "claim: is not UTF-8 at byte 0"},
};

/* The same words are refused by gang_put(), as an error: there is no outcome to put them in. */
static void user_error(const struct wanted *w, const char *sentence)
{
	const char *input = w->claim != NULL ? w->claim : w->wishes;
	char in[CLUSTER_IN];
	struct frond_pair pairs[16];
	plan(c, w);
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(FROND_REFUSED, c->plan.outcome, input);
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, c->plan.wait_ms); /* no time makes it right */
	refused(FROND_OK, FROND_OK, input, sentence);
	uint32_t in_len = request_make(c, w, in, pairs);
	int32_t code = abi->gang_put(c->engine, &c->request, pairs, in, in_len, c->text, CLUSTER_TEXT - 1, &c->len);
	refused(FROND_BAD, code, input, sentence);
}

static void test_annotations_and_claims(void)
{
	for (uint32_t i = 0; i < sizeof bad_annotations / sizeof *bad_annotations; i++)
		user_error(
			&(struct wanted){.name = "held", .members = 1, .gpus = 8, .wishes = bad_annotations[i].input},
			bad_annotations[i].sentence);
	for (uint32_t i = 0; i < sizeof bad_claims / sizeof *bad_claims; i++)
		user_error(&(struct wanted){.name = "held", .members = 1, .gpus = 8, .claim = bad_claims[i].input},
			   bad_claims[i].sentence);
}

static void test_numbers_that_contradict_each_other(void)
{
	plan(c, &(struct wanted){.name = "a", .members = 1, .gpus = 8, .wishes = "gpu-count=7"});
	TEST_ASSERT_EQUAL_UINT32(FROND_REFUSED, c->plan.outcome);
	refused(0, 0, "gpu-count", KEY "gpu-count is 7 but the limits of the pods add up to 8");
	plan(c, &(struct wanted){.name = "a", .members = 1, .gpus = 8, .claim = "{\"devices\":{\"count\":4}}"});
	TEST_ASSERT_EQUAL_UINT32(FROND_REFUSED, c->plan.outcome);
	refused(0, 0, "claim", "claim.devices.count is 4 but rank 0 asks for 8 GPUs");
	plan(c, &(struct wanted){.name = "a", .members = 1, .gpus = 17});
	TEST_ASSERT_EQUAL_UINT32(FROND_REFUSED, c->plan.outcome);
	refused(0, 0, "gpus", "rank 0 asks for 17 GPUs, a node has at most 16");
	plan(c, &(struct wanted){.name = "a", .members = 1, .gpus = 1, .min_member = FROND_MEMBERS_MAX + 1});
	TEST_ASSERT_EQUAL_UINT32(FROND_REFUSED, c->plan.outcome);
	refused(0, 0, "minMember", "minMember must be between 1 and 16384, got 16385");
}

/* ---- nesting ---------------------------------------------------------------------------------------------------- */

static void test_ten_thousand_nested_braces(void)
{
	enum { DEEP = 10000 };
	static char text[5 * DEEP + 1];
	struct frond_args args;
	static const char *const opening[] = {"{", "[", "{\"a\":", "[[[[", "{a: "};
	for (uint32_t i = 0; i < sizeof opening / sizeof *opening; i++) {
		uint32_t size = (uint32_t)strlen(opening[i]), len = size * DEEP;
		for (uint32_t at = 0; at < len; at += size)
			memcpy(text + at, opening[i], size);
		TEST_ASSERT_EQUAL_INT32(FROND_BAD, abi->args(text, len, &args, c->text, CLUSTER_TEXT - 1, &c->len));
		TEST_ASSERT_EQUAL_MEMORY("args: is not valid JSON at byte ", c->text, 32);
		TEST_ASSERT_EQUAL_INT32(FROND_BAD,
					abi->fabric_expand(text, len, 0, c->text, CLUSTER_TEXT - 1, &c->len));
		c->text[c->len] = 0;
		TEST_ASSERT_NOT_NULL_MESSAGE(strstr(c->text, i == 0 ? "document: has a key that is not a plain word"
								    : ": is nested more than 32 deep"),
					     c->text); /* in YAML a brace after a brace is a key */
		unchanged(c);
		struct frond_request request = {.gang = key_of("held", UINT64_MAX),
						.members = 1,
						.min_member = 1,
						.gpus_desired = 1,
						.only_slot = FROND_NONE,
						.claim = {0, len}};
		struct frond_member member = {.pod = {5, 5}, .gpus = 1, .pinned_slot = FROND_NONE};
		TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->plan(c->engine, &request, &member, NULL, text, len, NULL, 0,
							    &c->plan, c->places, c->text, CLUSTER_TEXT - 1, &c->len));
		TEST_ASSERT_EQUAL_UINT32(FROND_REFUSED, c->plan.outcome);
		TEST_ASSERT_EQUAL_MEMORY("claim: is ", c->text, 10);
		unchanged(c);
	}
}

/* ---- records ---------------------------------------------------------------------------------------------------- */

static struct frond_node good_node(void)
{
	return (struct frond_node){.slot = 4, .gpus = 8, .topology = FROND_NONE, .name = {0, 4}};
}

static void node(struct frond_node record, const struct frond_pair *labels, uint32_t count, const char *sentence)
{
	int32_t code = abi->node_put(c->engine, &record, labels, count, "node", 4, c->text, CLUSTER_TEXT - 1, &c->len);
	refused(FROND_BAD, code, sentence, sentence);
}

static void test_nodes(void)
{
	struct frond_node record = good_node();
	const struct frond_pair label = {{0, 4}, {4, 1}};
	record.slot = 8;
	node(record, NULL, 0, "node slot 8: the engine has room for 8 nodes");
	record = good_node();
	record.name.len = 0;
	node(record, NULL, 0, "a node's name must have 1 to 253 bytes");
	record = good_node();
	record.gpus = 17;
	node(record, NULL, 0, "node node has 17 GPUs, at most 16 are possible");
	record = good_node();
	record.unhealthy_mask = 0x100;
	node(record, NULL, 0, "node node: unhealthy GPUs 100 but it has 8");
	record = good_node();
	record.flags = 16;
	node(record, NULL, 0, "node node: flags must be a sum of 1, 2, 4 and 8, got 16");
	record.flags = 8;
	node(record, NULL, 0, "node node: an unavailable node (8) must be cordoned (1) or down (2), got flags 8");
	record = good_node();
	record.topology = 99;
	node(record, NULL, 0, "node node: topology 99 is not known, or not of a node with 8 GPUs");
	node(good_node(), &label, 1, "node node: a label that is too long");
	TEST_ASSERT_EQUAL_INT32(FROND_BAD, node_try(c, 5, "node-1", 8, 0, 0, 0, NULL, NULL));
	refused(0, 0, "twice", "node node-1 is in slot 0 already");
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, abi->node_remove(c->engine, 5));
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, abi->node_remove(c->engine, FROND_NONE));
	unchanged(c);
}

static void topology(const struct frond_topology *record, const char *sentence)
{
	uint32_t id = 77;
	int32_t code = abi->topology_put(c->engine, record, &id, c->text, CLUSTER_TEXT - 1, &c->len);
	refused(FROND_BAD, code, sentence, sentence);
	TEST_ASSERT_EQUAL_UINT32(77, id);
}

static void test_topologies(void)
{
	struct frond_topology record = {.gpus = 17};
	topology(&record, "topology.gpus: must be 0 to 16");
	record = (struct frond_topology){.gpus = 2, .link_gbps = {{0, 5}, {6, 0}}};
	topology(&record, "topology.linkGbps[0][1]: must be the same in both directions, got 5");
	record = (struct frond_topology){.gpus = 2, .link_gbps = {{5, 0}}};
	topology(&record, "topology.linkGbps[0][0]: must be 0, got 5");
	record = (struct frond_topology){.gpus = 2, .link_gbps = {{0, 0, 5}, {0}, {5}}};
	topology(&record, "topology.linkGbps[0][2]: must be 0, got 5");
	record = (struct frond_topology){.gpus = 2, .numa = {0, 0, 1}};
	topology(&record, "topology.numa[2]: must be 0, there are 2 GPUs, got 1");
}

static void pod(struct frond_pod record, int32_t code, const char *sentence)
{
	int32_t got = abi->pod_put(c->engine, &record, "text", 4, c->text, CLUSTER_TEXT - 1, &c->len);
	refused(code, got, sentence, sentence);
}

static void test_pods(void)
{
	static const char outside[] = "pod.name: must lie inside the text";
	pod((struct frond_pod){.rank = FROND_NONE}, FROND_BAD, "pod.pod: must not be zero");
	pod((struct frond_pod){.pod = {1, 9}, .name = {4, 1}}, FROND_BAD, outside);
	pod((struct frond_pod){.pod = {1, 9}, .name = {1, FROND_NONE}}, FROND_BAD, outside);
	pod((struct frond_pod){.pod = {1, 9}, .reserved = 1}, FROND_BAD, "pod.reserved: must be 0");
	pod((struct frond_pod){.pod = {1, 9}, .gpus = 2, .gpu_mask = 0x101}, FROND_BAD,
	    "pod.gpuMask: must be GPUs of node node-1, which has 8, got mask 101");
	pod((struct frond_pod){.pod = {1, 9}, .gpus = 2, .gpu_mask = 0x70}, FROND_BAD,
	    "pod.gpuMask: must be 0 or as many GPUs as pod.gpus, 2, got mask 70 with 3");
	pod((struct frond_pod){.pod = {1, 9}, .flags = 2}, FROND_BAD, "pod.flags: must be 0 or 1");
	pod((struct frond_pod){.pod = {1, 9}, .slot = 4}, FROND_UNKNOWN, "the pod's node is not known");
	pod((struct frond_pod){.pod = {1, 9}, .slot = 99}, FROND_UNKNOWN, "the pod's node is not known");
	pod((struct frond_pod){.pod = {1, 9}, .gpus = 32769}, FROND_BAD, "pod.gpus: must be at most 32768");
}

/* A good request for a gang of one; each case spoils it in one way. */
static void spoiled(uint32_t way, struct frond_request *request, struct frond_member *member)
{
	*request = (struct frond_request){
		.gang = {5, 5}, .members = 1, .min_member = 1, .gpus_desired = 1, .only_slot = FROND_NONE};
	*member = (struct frond_member){.pod = {5, 5}, .gpus = 1, .pinned_slot = FROND_NONE};
	switch (way) {
	case 0:
		request->gang = (struct frond_key){0, 0};
		break;
	case 1:
		request->members = 0;
		break;
	case 2:
		request->age_ms = INT64_MIN;
		break;
	case 3:
		request->deadline_ms = -1;
		break;
	case 4:
		request->named_count = 17;
		break;
	case 5:
		request->name = (struct frond_span){0, 1};
		break;
	case 6:
		request->claim = (struct frond_span){FROND_NONE, 1};
		break;
	case 7:
		request->only_slot = 8;
		break;
	case 8:
		member->pod = (struct frond_key){0, 0};
		break;
	case 9:
		member->pinned_slot = 4; /* nobody is there */
		break;
	case 10:
		request->named_count = 1;
		request->named[0] = (struct frond_named){.slot = 8, .gpu_mask = 1};
		break;
	case 11:
		request->named_count = 1;
		request->named[0] = (struct frond_named){.slot = 1, .gpu_mask = 0x10000};
		break;
	case 12:
		request->named_count = 1;
		break;
	case 13:
		request->named_count = 2;
		request->named[0] = request->named[1] = (struct frond_named){.slot = 1, .gpu_mask = 1};
		break;
	case 14:
		request->named[15].slot = 1;
		break;
	case 15:
		member->pod_template = 1;
		break;
	default:
		break;
	}
}

static void test_requests(void)
{
	static const char *const sentences[] = {
		"request.gang: must not be zero",
		"request.members: must be between 1 and 16384, got 0",
		"request.ageMs: must not be negative, got -9223372036854775808",
		"request.deadlineMs: must be between 0 and 4398046511103, got -1",
		"request.namedCount: must be at most 16, got 17",
		"request.name: lies outside the 0 bytes of text",
		"request.claim: lies outside the 0 bytes of text",
		"request.onlySlot: must be under 8, got 8",
		"members[0].pod: must not be zero",
		"members[0].pinnedSlot: must be a slot with a node, got 4",
		"request.named[0].slot: must be under 8, got 8",
		"request.named[0].gpuMask: must be 1 to ffff, got 10000",
		"request.named[0].gpuMask: must be 1 to ffff, got 0",
		"request.named[1].slot: must be there once, got 1 as in named[0]",
		"request.named[15]: must be zero, there are 0",
		"members[0].podTemplate: must be under 1, the number of members, got 1",
	};
	struct frond_request request;
	struct frond_member member;
	for (uint32_t way = 0; way < sizeof sentences / sizeof *sentences; way++) {
		spoiled(way, &request, &member);
		int32_t code = abi->plan(c->engine, &request, &member, NULL, "", 0, NULL, 0, &c->plan, c->places,
					 c->text, CLUSTER_TEXT - 1, &c->len);
		refused(FROND_BAD, code, "plan", sentences[way]);
	}
	uint64_t counted = stats(c).plans;
	TEST_ASSERT_EQUAL_UINT64(1, counted); /* what is malformed is no decision */
}

/* Node n-0 to n-3 are there, of eight slots. */
static void test_exceptions(void)
{
	static const struct {
		struct frond_room room[2];
		uint32_t count;
		int32_t code;
		const char *sentence;
	} bad[] = {
		{{{.slot = 8}}, 1, FROND_BAD, "room[0].slot: must be a slot with a node, got 8"},
		{{{.slot = FROND_NONE}}, 1, FROND_BAD, "room[0].slot: must be a slot with a node, got 4294967295"},
		{{{.slot = 0}, {.slot = 4}}, 2, FROND_UNKNOWN, "room[1].slot: must be a slot with a node, got 4"},
		{{{.slot = 1}, {.slot = 1}},
		 2,
		 FROND_BAD,
		 "room[1]: must ascend by slot, then template, each pair once; slot 1 template 0 comes after slot 1 "
		 "template 0"},
		{{{.slot = 2}, {.slot = 1}},
		 2,
		 FROND_BAD,
		 "room[1]: must ascend by slot, then template, each pair once; slot 1 template 0 comes after slot 2 "
		 "template 0"},
		{{{.slot = 1, .pod_template = 1}}, 1, FROND_BAD, "room[0].podTemplate: no member has template 1"},
		{{{.slot = 1, .pod_template = UINT16_MAX}},
		 1,
		 FROND_BAD,
		 "room[0].podTemplate: no member has template 65535"},
		{{{.slot = 1, .ever = 2, .unavailable = 3}},
		 1,
		 FROND_BAD,
		 "room[0].unavailable: must be at most ever, 2, got 3"},
	};
	struct frond_request request;
	struct frond_member member;
	struct frond_moves moves;
	struct frond_victims victims;
	struct frond_thrift *none = NULL;
	uint16_t position[8];
	spoiled(FROND_NONE, &request, &member);
	for (uint32_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		const struct frond_room *room = bad[i].room;
		uint32_t count = bad[i].count;
		refused(bad[i].code,
			abi->plan(c->engine, &request, &member, NULL, "", 0, room, count, &c->plan, c->places, c->text,
				  CLUSTER_TEXT - 1, &c->len),
			"plan", bad[i].sentence);
		refused(bad[i].code,
			abi->order(c->engine, &request, &member, NULL, "", 0, room, count, none, NULL, NULL, &c->plan,
				   position, c->text, CLUSTER_TEXT - 1, &c->len),
			"order", bad[i].sentence);
		refused(bad[i].code,
			abi->defrag(c->engine, &request, &member, NULL, "", 0, room, count, &moves, NULL, 0, c->text,
				    CLUSTER_TEXT - 1, &c->len),
			"defrag", bad[i].sentence);
		refused(bad[i].code,
			abi->victims(c->engine, &request, &member, NULL, "", 0, room, count, &victims, c->places, NULL,
				     0, c->text, CLUSTER_TEXT - 1, &c->len),
			"victims", bad[i].sentence);
	}
	refused(FROND_BAD,
		abi->plan(c->engine, &request, &member, NULL, "", 0, NULL, 3, &c->plan, c->places, c->text,
			  CLUSTER_TEXT - 1, &c->len),
		"plan", "room: is missing, 3 entries were announced");
}

static void test_calls_about_nobody(void)
{
	const struct frond_key nobody = {77, 77}, none = {0, 0};
	struct frond_request request = {.gang = nobody, .min_member = 1};
	struct frond_gang gang;
	struct frond_held held;
	struct frond_place place_out;
	uint32_t verdict, pods = 9;
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, abi->pod_get(c->engine, &nobody, &held));
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, abi->pod_get(c->engine, &none, &held));
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, abi->permit(c->engine, &nobody, &verdict));
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, abi->confirm(c->engine, &nobody));
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, abi->release(c->engine, &none));
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, abi->gang_get(c->engine, &nobody, &gang));
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN,
				abi->binding(c->engine, &nobody, &place_out, c->text, CLUSTER_TEXT, &c->len));
	TEST_ASSERT_EQUAL_INT32(FROND_UNKNOWN, abi->undo(c->engine));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->release_gang(c->engine, &nobody, &pods));
	TEST_ASSERT_EQUAL_UINT32(0, pods);
	int32_t code = abi->gang_put(c->engine, &request, NULL, "", 0, c->text, CLUSTER_TEXT - 1, &c->len);
	refused(FROND_UNKNOWN, code, "gang_put", "nobody of the gang holds anything");
}

/* ---- labels ------------------------------------------------------------------------------------------------------ */

/* Labels are not refused: a node stays schedulable, and what is wrong with it is told. */
static void test_cycles_of_labels_are_named_and_leave_the_nodes_schedulable(void)
{
	node_put(c, 4, "n1", 8, "x", "y");
	node_put(c, 5, "n2", 8, "y", "x");
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->problems(c->engine, c->text, CLUSTER_TEXT - 1, &c->len));
	c->text[c->len] = 0;
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(c->text, "is above itself"), c->text);
	TEST_ASSERT_EQUAL_UINT32(2, stats(c).nodes_without_leaf);
	plan(c, &(struct wanted){.name = "a", .members = 1, .gpus = 8, .only = 5});
	TEST_ASSERT_EQUAL_UINT32(FROND_PLACED, c->plan.outcome);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_args);
	RUN_TEST(test_fabric_lines_and_files);
	RUN_TEST(test_annotations_and_claims);
	RUN_TEST(test_numbers_that_contradict_each_other);
	RUN_TEST(test_ten_thousand_nested_braces);
	RUN_TEST(test_nodes);
	RUN_TEST(test_topologies);
	RUN_TEST(test_pods);
	RUN_TEST(test_requests);
	RUN_TEST(test_exceptions);
	RUN_TEST(test_calls_about_nobody);
	RUN_TEST(test_cycles_of_labels_are_named_and_leave_the_nodes_schedulable);
	return UNITY_END();
}
