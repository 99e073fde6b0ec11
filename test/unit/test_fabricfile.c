/* SPDX-License-Identifier: Apache-2.0 */
#include "text/fabricfile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

static struct fabricfile fabric;
static struct complaint complaint;

void setUp(void)
{
	memset(&fabric, 0, sizeof(fabric));
	memset(&complaint, 0, sizeof(complaint));
}

void tearDown(void)
{
	fabricfile_free(&fabric);
}

typedef int32_t reader(const char *text, uint32_t len, struct fabricfile *out, struct complaint *complaint);

/* From a copy of exactly this size, so that the sanitizer sees a step beyond. */
static int32_t read_exact(reader *read, const char *text)
{
	uint32_t len = (uint32_t)strlen(text);
	char *copy = malloc(len == 0 ? 1 : len);
	TEST_ASSERT_NOT_NULL(copy);
	memcpy(copy, text, len);
	fabricfile_free(&fabric);
	int32_t code = read(copy, len, &fabric, &complaint);
	free(copy);
	return code;
}

static void accepted(const char *text)
{
	int32_t code = read_exact(fabricfile_read, text);
	TEST_ASSERT_EQUAL_MESSAGE(FROND_OK, code, complaint.text);
}

static void refused_by(reader *read, const char *text, uint32_t line, const char *sentence)
{
	TEST_ASSERT_EQUAL_MESSAGE(FROND_BAD, read_exact(read, text), text);
	TEST_ASSERT_EQUAL_STRING(sentence, complaint.text);
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(line, complaint.line, sentence);
	static const struct fabricfile zero;
	TEST_ASSERT_EQUAL_MEMORY(&zero, &fabric, sizeof(fabric));
}

static void refused(const char *text, uint32_t line, const char *sentence)
{
	refused_by(fabricfile_read, text, line, sentence);
}

static void line_accepted(const char *text)
{
	int32_t code = read_exact(fabricfile_read_line, text);
	TEST_ASSERT_EQUAL_MESSAGE(FROND_OK, code, complaint.text);
}

static void line_refused(const char *text, const char *sentence)
{
	refused_by(fabricfile_read_line, text, 1, sentence);
}

static const struct fabric_model *model_named(const char *name)
{
	for (uint32_t i = 0; i < fabric.model_count; i++) {
		if (strcmp(fabric.models[i].name, name) == 0)
			return &fabric.models[i];
	}
	TEST_FAIL_MESSAGE(name);
	return NULL;
}

#define TREE "spines:\n- name: s\n  leaves:\n  - {name: l, nodes: [a, b]}\n" /* lines 1 to 4 */

/* ---- the file -------------------------------------------------------------------------------------------------- */

static void test_the_sample_of_the_spec_is_read(void)
{
	accepted("apiVersion: topology.scheduler/v1alpha1\n"
		 "kind: Fabric\n"
		 "defaults: {gpus: 8, model: H100-SXM, uplinkGbps: 400}\n"
		 "spines:\n"
		 "- name: spine-1\n"
		 "  leaves:\n"
		 "  - {name: leaf-1, uplinkGbps: 200, nodes: [node-1, node-2, node-3, node-4]}\n"
		 "models:\n"
		 "- {name: box-4, gpus: 4, numa: [0, 0, 1, 1], links: "
		 "[[0,50,25,0],[50,0,0,25],[25,0,0,50],[0,25,50,0]]}\n"
		 "nodes:\n"
		 "- {name: node-3, gpus: 4, usedGpus: [0, 1], unhealthyGpus: [3], cordoned: true, uplinkGbps: 100, "
		 "labels: "
		 "{zone: a}}\n");
	TEST_ASSERT_EQUAL_UINT32(1, fabric.spine_count);
	TEST_ASSERT_EQUAL_STRING("spine-1", fabric.spines[0].name);
	TEST_ASSERT_EQUAL_UINT32(1, fabric.leaf_count);
	TEST_ASSERT_EQUAL_STRING("leaf-1", fabric.leaves[0].name);
	TEST_ASSERT_EQUAL_UINT32(200, fabric.leaves[0].uplink_gbps);
	TEST_ASSERT_EQUAL_UINT32(4, fabric.node_count);
	const struct fabric_node *node = &fabric.nodes[1];
	TEST_ASSERT_EQUAL_STRING("node-2", node->name);
	TEST_ASSERT_EQUAL_UINT32(8, node->gpus);
	TEST_ASSERT_EQUAL_STRING("H100-SXM", fabric.models[node->model].name);
	TEST_ASSERT_EQUAL_UINT32(400, node->uplink_gbps);
	TEST_ASSERT_EQUAL_UINT32(0, node->used_mask);
	TEST_ASSERT_FALSE(node->cordoned);
	node = &fabric.nodes[2];
	TEST_ASSERT_EQUAL_STRING("node-3", node->name);
	TEST_ASSERT_EQUAL_UINT32(4, node->gpus);
	TEST_ASSERT_EQUAL_STRING("H100-SXM", fabric.models[node->model].name);
	TEST_ASSERT_EQUAL_UINT32(100, node->uplink_gbps);
	TEST_ASSERT_EQUAL_HEX32(0x3, node->used_mask);
	TEST_ASSERT_EQUAL_HEX32(0x8, node->unhealthy_mask);
	TEST_ASSERT_TRUE(node->cordoned);
	TEST_ASSERT_EQUAL_UINT32(1, node->label_count);
	TEST_ASSERT_EQUAL_STRING("zone", node->labels[0].key);
	TEST_ASSERT_EQUAL_STRING("a", node->labels[0].value);
	const struct fabric_model *box = model_named("box-4");
	TEST_ASSERT_EQUAL_UINT32(4, box->gpus);
	TEST_ASSERT_EQUAL_UINT32(25, box->link_gbps[1][3]);
	TEST_ASSERT_EQUAL_UINT32(1, box->numa[2]);
}

static void test_order_is_the_order_written_and_json_is_read_too(void)
{
	accepted("{\"spines\": [{\"name\": \"z\", \"leaves\": [{\"name\": \"l9\", \"nodes\": [\"n3\"]}, {\"name\": "
		 "\"l1\", "
		 "\"nodes\": [\"n2\", \"n1\"]}]}, {\"name\": \"a\", \"leaves\": [{\"name\": \"l2\"}]}]}");
	TEST_ASSERT_EQUAL_STRING("z", fabric.spines[0].name);
	TEST_ASSERT_EQUAL_STRING("l1", fabric.leaves[1].name);
	TEST_ASSERT_EQUAL_UINT32(0, fabric.leaves[1].spine);
	TEST_ASSERT_EQUAL_UINT32(1, fabric.leaves[2].spine);
	TEST_ASSERT_EQUAL_STRING("n2", fabric.nodes[1].name);
	TEST_ASSERT_EQUAL_UINT32(1, fabric.nodes[2].leaf);
	TEST_ASSERT_EQUAL_UINT32(3, fabric.node_count);
}

static void test_without_defaults_a_node_has_no_gpus_no_model_and_no_limit(void)
{
	accepted(TREE);
	TEST_ASSERT_EQUAL_UINT32(0, fabric.nodes[0].gpus);
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, fabric.nodes[0].model);
	TEST_ASSERT_EQUAL_UINT32(0, fabric.nodes[0].uplink_gbps);
	TEST_ASSERT_EQUAL_UINT32(0, fabric.leaves[0].uplink_gbps);
}

static void test_a_model_brings_its_gpus(void)
{
	accepted(TREE "defaults: {model: GB200}\nnodes:\n- {name: b, model: DGX-2}\n");
	TEST_ASSERT_EQUAL_UINT32(4, fabric.nodes[0].gpus);
	TEST_ASSERT_EQUAL_UINT32(16, fabric.nodes[1].gpus);
	accepted(TREE "defaults: {gpus: 3}\nnodes:\n- {name: b, gpus: 0}\n");
	TEST_ASSERT_EQUAL_UINT32(3, fabric.nodes[0].gpus);
	TEST_ASSERT_EQUAL_UINT32(0, fabric.nodes[1].gpus);
}

static void test_unknown_keys_are_refused_everywhere(void)
{
	refused(TREE "node: []\n", 5,
		"node: is not a known key; allowed are apiVersion, kind, defaults, spines, models, nodes");
	refused("defaults: {gpu: 8}\n" TREE, 1,
		"defaults.gpu: is not a known key; allowed are gpus, model, uplinkGbps");
	refused("spines:\n- name: s\n  leafs: []\n", 3,
		"spines[0].leafs: is not a known key; allowed are name, leaves");
	refused("spines:\n- name: s\n  leaves:\n  - name: l\n    node: [a]\n", 5,
		"spines[0].leaves[0].node: is not a known key; allowed are name, uplinkGbps, nodes");
	refused(TREE "models:\n- {name: m, gpu: 4}\n", 6,
		"models[0].gpu: is not a known key; allowed are name, gpus, numa, links");
	refused(TREE "nodes:\n- {name: a, used: [0]}\n", 6,
		"nodes[0].used: is not a known key; allowed are name, gpus, model, usedGpus, unhealthyGpus, cordoned, "
		"uplinkGbps, labels");
}

static void test_another_kind_or_version_is_refused(void)
{
	refused("kind: Node\n" TREE, 1, "kind: must be Fabric, got \"Node\"");
	refused("apiVersion: v1\n" TREE, 1, "apiVersion: must be topology.scheduler/v1alpha1, got \"v1\"");
	refused("kind: []\n" TREE, 1, "kind: must be text, got a list");
	refused("[]", 1, "document: must be a map, got a list");
}

static void test_a_tree_without_branches_is_refused(void)
{
	refused("kind: Fabric\n", 1, "spines: is missing");
	refused("spines: []\n", 1, "spines: is empty; at least one spine is needed");
	refused("spines: {}\n", 1, "spines: must be a list, got a map");
	refused("spines:\n- s\n", 2, "spines[0]: must be a map, got a single value");
	refused("spines:\n- {name: s}\n", 2, "spines[0].leaves: is missing");
	refused("spines:\n- {name: s, leaves: []}\n", 2, "spines[0].leaves: is empty; at least one leaf is needed");
	refused("spines:\n- {leaves: [{name: l}]}\n", 2, "spines[0].name: is missing");
	refused("spines:\n- {name: s, leaves: [{nodes: [a]}]}\n", 2, "spines[0].leaves[0].name: is missing");
	refused("spines:\n- {name: s, leaves: [{name: l, nodes: a}]}\n", 2,
		"spines[0].leaves[0].nodes: must be a list, got a single value");
	refused("spines:\n- {name: s, leaves: [{name: l, nodes: [{}]}]}\n", 2,
		"spines[0].leaves[0].nodes[0]: must be text, got a map");
}

static void test_names_are_listed_once(void)
{
	refused("spines:\n- name: s\n  leaves:\n  - {name: l, nodes: [a, b]}\n  - {name: m, nodes: [c, a]}\n", 5,
		"spines[0].leaves[1].nodes[1]: node \"a\" is already listed on line 4; each is listed once");
	refused("spines:\n- {name: s, leaves: [{name: l}]}\n- {name: t, leaves: [{name: l}]}\n", 3,
		"spines[1].leaves[0].name: leaf \"l\" is already listed on line 2; each is listed once");
	refused("spines:\n- {name: s, leaves: [{name: l}]}\n- {name: s, leaves: [{name: m}]}\n", 3,
		"spines[1].name: spine \"s\" is already listed on line 2; each is listed once");
}

static void test_of_several_doubles_the_first_in_the_file_is_reported(void)
{
	refused("spines:\n- name: s\n  leaves:\n  - {name: l, nodes: [z, a, a,\n      a, z]}\n", 4,
		"spines[0].leaves[0].nodes[2]: node \"a\" is already listed on line 4; each is listed once");
}

static void test_names_that_are_no_names_are_refused(void)
{
	refused("spines:\n- {name: s, leaves: [{name: l, nodes: [Node_1]}]}\n", 2,
		"spines[0].leaves[0].nodes[0]: \"Node_1\" is not a node's name; allowed are 1 to 253 of a-z, 0-9, "
		"\"-\" and "
		"\".\", with a letter or digit at both ends of each part");
	refused("spines:\n- {name: 's 1', leaves: [{name: l}]}\n", 2,
		"spines[0].name: \"s 1\" is not a domain's name; allowed are 1 to 253 letters, digits, \"-\", \"_\" "
		"and \".\", "
		"with a letter or digit at both ends");
	refused("spines:\n- {name: s, leaves: [{name: ''}]}\n", 2,
		"spines[0].leaves[0].name: \"\" is not a domain's name; allowed are 1 to 253 letters, digits, \"-\", "
		"\"_\" and "
		"\".\", with a letter or digit at both ends");
	refused("spines:\n- {name: s, leaves: [{name: l, nodes: [~]}]}\n", 2,
		"spines[0].leaves[0].nodes[0]: must be text, got nothing");
	accepted("spines:\n- {name: Spine_1, leaves: [{name: L.1, nodes: [a.b-c]}]}\n");
}

static void test_speeds_are_1_to_a_million(void)
{
	accepted("defaults: {uplinkGbps: 1000000}\n" TREE);
	TEST_ASSERT_EQUAL_UINT32(1000000, fabric.nodes[0].uplink_gbps);
	refused("defaults: {uplinkGbps: 1000001}\n" TREE, 1,
		"defaults.uplinkGbps: must be between 1 and 1000000, got 1000001");
	refused("spines:\n- {name: s, leaves: [{name: l, uplinkGbps: 0}]}\n", 2,
		"spines[0].leaves[0].uplinkGbps: must be between 1 and 1000000, got 0");
	refused(TREE "nodes: [{name: a, uplinkGbps: fast}]\n", 5,
		"nodes[0].uplinkGbps: must be a whole number between 1 and 1000000, got \"fast\"");
}

static void test_gpus_keep_to_16_and_to_their_model(void)
{
	accepted("defaults: {gpus: 16}\n" TREE);
	refused("defaults: {gpus: 17}\n" TREE, 1, "defaults.gpus: must be between 0 and 16, got 17");
	refused("defaults: {gpus: -1}\n" TREE, 1, "defaults.gpus: must be between 0 and 16, got -1");
	refused("defaults: {gpus: 9, model: H100-SXM}\n" TREE, 1,
		"defaults.gpus: is 9, but H100-SXM has 8 GPUs; at most 8 are allowed");
	refused("defaults: {model: GB200}\n" TREE "nodes:\n- name: b\n  gpus: 5\n", 8,
		"nodes[0].gpus: is 5, but GB200 has 4 GPUs; at most 4 are allowed");
}

static void test_an_unknown_model_lists_the_known_ones(void)
{
	refused("defaults: {model: H200}\n" TREE, 1,
		"defaults.model: \"H200\" is not a known model; known are DGX-1V, DGX-2, A100-SXM, H100-SXM, B200-SXM, "
		"GB200, "
		"MI300X, PCIE-4, PCIE-8; others are defined under models");
}

/* ---- exceptions ------------------------------------------------------------------------------------------------ */

static void test_exceptions_are_for_listed_nodes_once_each(void)
{
	refused(TREE "nodes: [{name: c}]\n", 5, "nodes[0].name: no leaf lists a node \"c\"");
	refused(TREE "nodes:\n- {name: a}\n- {name: a}\n", 7,
		"nodes[1].name: node \"a\" already has an entry on line 6; one is allowed");
	refused(TREE "nodes: [{gpus: 4}]\n", 5, "nodes[0].name: is missing");
	refused(TREE "nodes: {a: {}}\n", 5, "nodes: must be a list, got a map");
	accepted(TREE "nodes: []\n");
}

static void test_gpu_lists_keep_to_the_nodes_gpus_without_doubles(void)
{
	accepted("defaults: {gpus: 8}\n" TREE "nodes: [{name: a, usedGpus: [7, 0], unhealthyGpus: []}]\n");
	TEST_ASSERT_EQUAL_HEX32(0x81, fabric.nodes[0].used_mask);
	refused("defaults: {gpus: 8}\n" TREE "nodes: [{name: a, usedGpus: [8]}]\n", 6,
		"nodes[0].usedGpus[0]: must be between 0 and 7, got 8");
	refused("defaults: {gpus: 8}\n" TREE "nodes: [{name: a, gpus: 4, unhealthyGpus: [0, 4]}]\n", 6,
		"nodes[0].unhealthyGpus[1]: must be between 0 and 3, got 4");
	refused("defaults: {gpus: 8}\n" TREE "nodes: [{name: a, usedGpus: [1, 1]}]\n", 6,
		"nodes[0].usedGpus[1]: GPU 1 is already listed");
	refused("defaults: {gpus: 8}\n" TREE "nodes: [{name: a, usedGpus: 1}]\n", 6,
		"nodes[0].usedGpus: must be a list, got a single value");
	refused(TREE "nodes: [{name: a, usedGpus: [0]}]\n", 5,
		"nodes[0].usedGpus[0]: names a GPU, but the node has none");
}

static void test_cordoned_is_a_boolean(void)
{
	refused(TREE "nodes: [{name: a, cordoned: yes}]\n", 5, "nodes[0].cordoned: must be true or false, got \"yes\"");
}

static void test_labels_are_kubernetes_labels(void)
{
	accepted(TREE "nodes: [{name: a, labels: {example.com/zone: A_1, empty: ''}}]\n");
	TEST_ASSERT_EQUAL_UINT32(2, fabric.nodes[0].label_count);
	TEST_ASSERT_EQUAL_STRING("", fabric.nodes[0].labels[1].value);
	refused(TREE "nodes: [{name: a, labels: {'a b': c}}]\n", 5,
		"nodes[0].labels.a b: is not a label key; allowed is a name of 1 to 63 letters, digits, \"-\", \"_\" "
		"and \".\", "
		"optionally after a DNS name and \"/\"");
	refused(TREE "nodes: [{name: a, labels: {a: 'b c'}}]\n", 5,
		"nodes[0].labels.a: \"b c\" is not a label value; allowed are 0 to 63 letters, digits, \"-\", \"_\" "
		"and \".\", "
		"with a letter or digit at both ends");
	refused(TREE "nodes: [{name: a, labels: {a: [b]}}]\n", 5, "nodes[0].labels.a: must be text, got a list");
	refused(TREE "nodes: [{name: a, labels: x}]\n", 5, "nodes[0].labels: must be a map, got a single value");
}

/* ---- models ---------------------------------------------------------------------------------------------------- */

static void all_pairs(const char *name, uint32_t gpus, uint32_t gbps)
{
	const struct fabric_model *model = model_named(name);
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(gpus, model->gpus, name);
	for (uint32_t i = 0; i < gpus; i++) {
		TEST_ASSERT_EQUAL_UINT32_MESSAGE(i < gpus / 2 ? 0 : 1, model->numa[i], name);
		for (uint32_t j = 0; j < gpus; j++)
			TEST_ASSERT_EQUAL_UINT32_MESSAGE(i == j ? 0 : gbps, model->link_gbps[i][j], name);
	}
}

static void test_models_known_by_name_are_those_of_the_spec(void)
{
	static const uint32_t dgx_1v[8][8] = {
		{0, 25, 25, 50, 50, 0, 0, 0}, {25, 0, 50, 25, 0, 50, 0, 0}, {25, 50, 0, 50, 0, 0, 25, 0},
		{50, 25, 50, 0, 0, 0, 0, 25}, {50, 0, 0, 0, 0, 25, 25, 50}, {0, 50, 0, 0, 25, 0, 50, 25},
		{0, 0, 25, 0, 25, 50, 0, 50}, {0, 0, 0, 25, 50, 25, 50, 0},
	};
	accepted(TREE);
	TEST_ASSERT_EQUAL_UINT32(9, fabric.model_count);
	all_pairs("DGX-2", 16, 150);
	all_pairs("A100-SXM", 8, 300);
	all_pairs("H100-SXM", 8, 450);
	all_pairs("B200-SXM", 8, 900);
	all_pairs("GB200", 4, 900);
	all_pairs("MI300X", 8, 64);
	all_pairs("PCIE-4", 4, 0);
	all_pairs("PCIE-8", 8, 0);
	const struct fabric_model *model = model_named("DGX-1V");
	TEST_ASSERT_EQUAL_UINT32(8, model->gpus);
	for (uint32_t i = 0; i < 8; i++) {
		TEST_ASSERT_EQUAL_UINT32_ARRAY(dgx_1v[i], model->link_gbps[i], 8);
		TEST_ASSERT_EQUAL_UINT32(i / 4, model->numa[i]);
		for (uint32_t j = 0; j < 8; j++)
			TEST_ASSERT_EQUAL_UINT32(dgx_1v[i][j], dgx_1v[j][i]);
	}
}

static void test_an_own_model_can_be_used_and_has_two_numa_nodes_by_default(void)
{
	accepted("models: [{name: m, gpus: 3, links: [[0,1,2],[1,0,3],[2,3,0]]}]\ndefaults: {model: m}\n" TREE);
	TEST_ASSERT_EQUAL_UINT32(3, fabric.nodes[0].gpus);
	const struct fabric_model *model = &fabric.models[fabric.nodes[0].model];
	TEST_ASSERT_EQUAL_STRING("m", model->name);
	TEST_ASSERT_EQUAL_UINT32_ARRAY(((const uint32_t[]){0, 0, 1}), model->numa, 3);
	TEST_ASSERT_EQUAL_UINT32(3, model->link_gbps[2][1]);
}

#define MODEL(fields) "models:\n- {" fields "}\n" TREE

static void test_a_bad_matrix_is_refused(void)
{
	refused(MODEL("name: m, gpus: 2, links: [[0,1]]"), 2,
		"models[0].links: has 1 rows; 2 are needed, one for each GPU");
	refused(MODEL("name: m, gpus: 2, links: [[0,1],[1]]"), 2,
		"models[0].links[1]: has 1 entries; 2 are needed, one for each GPU");
	refused(MODEL("name: m, gpus: 2, links: [[0,1],[2,0]]"), 2,
		"models[0].links[1][0]: is 2 but the way back is 1; links must be symmetric");
	refused(MODEL("name: m, gpus: 2, links: [[0,1],[1,5]]"), 2,
		"models[0].links[1][1]: must be 0, a GPU has no link to itself, got 5");
	refused(MODEL("name: m, gpus: 1, links: [[-1]]"), 2,
		"models[0].links[0][0]: must be between 0 and 65535, got -1");
	refused(MODEL("name: m, gpus: 1, links: [0]"), 2, "models[0].links[0]: must be a list, got a single value");
	refused(MODEL("name: m, gpus: 1, links: 0"), 2, "models[0].links: must be a list, got a single value");
	refused(MODEL("name: m, gpus: 1"), 2, "models[0].links: is missing");
}

static void test_a_models_gpus_numa_and_name_are_checked(void)
{
	refused(MODEL("name: m, links: []"), 2, "models[0].gpus: is missing");
	refused(MODEL("name: m, gpus: 0, links: []"), 2, "models[0].gpus: must be between 1 and 16, got 0");
	refused(MODEL("name: m, gpus: 17, links: []"), 2, "models[0].gpus: must be between 1 and 16, got 17");
	refused(MODEL("gpus: 1, links: [[0]]"), 2, "models[0].name: is missing");
	refused(MODEL("name: GB200, gpus: 1, links: [[0]]"), 2,
		"models[0].name: model \"GB200\" is already defined; choose another name");
	refused(MODEL("name: '', gpus: 1, links: [[0]]"), 2,
		"models[0].name: \"\" is not a model's name; allowed are 1 to 253 letters, digits, \"-\", \"_\" and "
		"\".\", with "
		"a letter or digit at both ends");
	refused(MODEL("name: m, gpus: 1, links: [[0]], numa: [0, 1]"), 2,
		"models[0].numa: has 2 entries; 1 are needed, one for each GPU");
	refused(MODEL("name: m, gpus: 1, links: [[0]], numa: [16]"), 2,
		"models[0].numa[0]: must be between 0 and 15, got 16");
	refused("models:\n- {name: m, gpus: 1, links: [[0]]}\n- {name: m, gpus: 1, links: [[0]]}\n" TREE, 3,
		"models[1].name: model \"m\" is already defined; choose another name");
	refused("models: {}\n" TREE, 1, "models: must be a list, got a map");
}

static char *many_models(uint32_t count)
{
	char *text = malloc(count * 48 + 200);
	TEST_ASSERT_NOT_NULL(text);
	uint32_t used = (uint32_t)sprintf(text, TREE "models:\n");
	for (uint32_t i = 0; i < count; i++)
		used += (uint32_t)sprintf(text + used, "- {name: m%u, gpus: 1, links: [[0]]}\n", i);
	return text;
}

static void test_64_own_models_are_read_and_65_are_not(void)
{
	char *text = many_models(64);
	accepted(text);
	TEST_ASSERT_EQUAL_UINT32(9 + 64, fabric.model_count);
	free(text);
	text = many_models(65);
	refused(text, 6, "models: has 65 entries; at most 64 are allowed");
	free(text);
}

/* ---- limits ---------------------------------------------------------------------------------------------------- */

static char *many_nodes(uint32_t count)
{
	char *text = malloc((uint64_t)count * 10 + 100);
	TEST_ASSERT_NOT_NULL(text);
	uint32_t used = (uint32_t)sprintf(text, "spines: [{name: s, leaves: [{name: l, nodes: [\n");
	for (uint32_t i = 0; i < count; i++)
		used += (uint32_t)sprintf(text + used, "n%u,\n", i);
	sprintf(text + used, "]}]}]\n");
	return text;
}

static void test_as_many_nodes_as_the_limit_are_read_and_no_more(void)
{
	char *text = many_nodes(FROND_NODES_MAX);
	accepted(text);
	TEST_ASSERT_EQUAL_UINT32(FROND_NODES_MAX, fabric.node_count);
	free(text);
	text = many_nodes(FROND_NODES_MAX + 1);
	refused(text, 1, "spines[0].leaves[0].nodes: brings the nodes to 131073; at most 131072 are allowed");
	free(text);
}

/* One leaf under each spine, or all leaves under one. */
static char *many_domains(uint32_t count, bool spines)
{
	char *text = malloc((uint64_t)count * 48 + 100);
	TEST_ASSERT_NOT_NULL(text);
	uint32_t used = (uint32_t)sprintf(text, spines ? "spines:\n" : "spines:\n- name: s\n  leaves:\n");
	for (uint32_t i = 0; i < count; i++)
		used += spines ? (uint32_t)sprintf(text + used, "- {name: s%u, leaves: [{name: l%u}]}\n", i, i)
			       : (uint32_t)sprintf(text + used, "  - {name: l%u}\n", i);
	return text;
}

static void test_as_many_leaves_and_spines_as_the_limit_are_read_and_no_more(void)
{
	for (uint32_t spines = 0; spines < 2; spines++) {
		char *text = many_domains(FROND_NODES_MAX, spines);
		accepted(text);
		TEST_ASSERT_EQUAL_UINT32(FROND_NODES_MAX, fabric.leaf_count);
		free(text);
	}
	char *text = many_domains(FROND_NODES_MAX + 1, false);
	refused(text, 131076, "spines[0].leaves[131072]: is one leaf too many; at most 131072 are allowed");
	free(text);
	text = many_domains(FROND_NODES_MAX + 1, true);
	refused(text, 131074, "spines[131072].leaves[0]: is one leaf too many; at most 131072 are allowed");
	free(text);
}

/* ---- one line -------------------------------------------------------------------------------------------------- */

static void test_a_line_counts_per_parent_and_names_through_the_cluster(void)
{
	line_accepted("spine:2 leaf:4 node:4 gpu:8");
	TEST_ASSERT_EQUAL_UINT32(2, fabric.spine_count);
	TEST_ASSERT_EQUAL_UINT32(8, fabric.leaf_count);
	TEST_ASSERT_EQUAL_UINT32(32, fabric.node_count);
	TEST_ASSERT_EQUAL_STRING("spine-2", fabric.spines[1].name);
	TEST_ASSERT_EQUAL_STRING("leaf-5", fabric.leaves[4].name);
	TEST_ASSERT_EQUAL_UINT32(1, fabric.leaves[4].spine);
	TEST_ASSERT_EQUAL_UINT32(0, fabric.leaves[3].spine);
	TEST_ASSERT_EQUAL_STRING("node-1", fabric.nodes[0].name);
	TEST_ASSERT_EQUAL_STRING("node-17", fabric.nodes[16].name);
	TEST_ASSERT_EQUAL_UINT32(4, fabric.nodes[16].leaf);
	TEST_ASSERT_EQUAL_UINT32(8, fabric.nodes[31].gpus);
	TEST_ASSERT_EQUAL_STRING("H100-SXM", fabric.models[fabric.nodes[31].model].name);
	all_pairs("H100-SXM", 8, 450);
	TEST_ASSERT_EQUAL_UINT32(0, fabric.nodes[31].uplink_gbps);
}

static void test_a_line_may_have_spaces_around_its_parts(void)
{
	line_accepted("  spine:1\tleaf:1  node:1 gpu:1\n");
	TEST_ASSERT_EQUAL_UINT32(1, fabric.nodes[0].gpus);
}

static void test_a_line_in_another_order_or_with_gaps_is_refused(void)
{
	line_refused("", "spine: is missing; write for example \"spine:2 leaf:4 node:4 gpu:8\"");
	line_refused("spine:2 leaf:4 node:4", "gpu: is missing; write for example \"spine:2 leaf:4 node:4 gpu:8\"");
	line_refused("leaf:4 spine:2 node:4 gpu:8",
		     "spine: must come here, got \"leaf:4\"; write for example \"spine:2 leaf:4 node:4 gpu:8\"");
	line_refused("spine:2 leaf node:4 gpu:8",
		     "leaf: must come here, got \"leaf\"; write for example \"spine:2 leaf:4 node:4 gpu:8\"");
	line_refused("spine:2 leaf:4 node:4 gpu:8 gpu:8",
		     "line: \"gpu:8\" comes after gpu, the last level; only model:NAME and nvlink:NODES may follow");
	line_refused("spine: 2 leaf:4 node:4 gpu:8", "spine: must be a whole number between 1 and 131072, got \"\"");
}

static void test_a_lines_numbers_keep_to_their_bounds(void)
{
	line_refused("spine:0 leaf:4 node:4 gpu:8", "spine: must be a whole number between 1 and 131072, got \"0\"");
	line_refused("spine:2 leaf:-4 node:4 gpu:8", "leaf: must be a whole number between 1 and 131072, got \"-4\"");
	line_refused("spine:2 leaf:4 node:x gpu:8", "node: must be a whole number between 1 and 131072, got \"x\"");
	line_refused("spine:2 leaf:4 node:4 gpu:9",
		     "gpu: must be a whole number between 1 and 8 (nodes are H100-SXM), got \"9\"");
	line_refused("spine:2 leaf:4 node:4 gpu:0",
		     "gpu: must be a whole number between 1 and 8 (nodes are H100-SXM), got \"0\"");
	line_refused("spine:99999999999999999999 leaf:4 node:4 gpu:8",
		     "spine: must be a whole number between 1 and 131072, got \"99999999999999999999\"");
}

static void test_a_line_makes_as_many_nodes_as_the_limit_and_no_more(void)
{
	line_accepted("spine:2 leaf:256 node:256 gpu:1");
	TEST_ASSERT_EQUAL_UINT32(FROND_NODES_MAX, fabric.node_count);
	line_refused("spine:3 leaf:256 node:256 gpu:1",
		     "node: brings the cluster to 196608; at most 131072 are allowed");
	line_refused("spine:131072 leaf:131072 node:131072 gpu:8",
		     "leaf: brings the cluster to 17179869184; at most 131072 are allowed");
}

static void test_a_very_long_line_is_refused(void)
{
	char text[1026];
	memset(text, ' ', sizeof(text));
	memcpy(text, "spine:1 leaf:1 node:1 gpu:1", 27);
	text[1024] = '\0';
	line_accepted(text);
	text[1024] = ' ';
	text[1025] = '\0';
	line_refused(text, "line: has 1025 bytes; at most 1024 are read");
}

static void test_a_line_may_name_its_model(void)
{
	line_accepted("spine:1 leaf:1 node:2 gpu:4 model:GB200");
	TEST_ASSERT_EQUAL_UINT32(4, fabric.nodes[1].gpus);
	TEST_ASSERT_EQUAL_STRING("GB200", fabric.models[fabric.nodes[1].model].name);
	TEST_ASSERT_EQUAL_UINT32(0, fabric.nodes[1].label_count);
	all_pairs("GB200", 4, 900);
	line_accepted("spine:1 leaf:1 node:1 gpu:16 model:DGX-2");
	TEST_ASSERT_EQUAL_UINT32(16, fabric.nodes[0].gpus);
	line_accepted("spine:1 leaf:1 node:1 gpu:3 model:GB200"); /* the first ones */
	TEST_ASSERT_EQUAL_UINT32(3, fabric.nodes[0].gpus);
	line_refused("spine:1 leaf:1 node:2 gpu:5 model:GB200",
		     "gpu: must be a whole number between 1 and 4 (nodes are GB200), got \"5\"");
	line_refused("spine:1 leaf:1 node:2 gpu:4 model:GB300",
		     "model: \"GB300\" is not a known model; known are DGX-1V, DGX-2, A100-SXM, H100-SXM, B200-SXM, "
		     "GB200, MI300X, PCIE-4, PCIE-8");
	line_refused("spine:1 leaf:1 node:2 gpu:4 model:",
		     "model: \"\" is not a known model; known are DGX-1V, DGX-2, A100-SXM, H100-SXM, B200-SXM, "
		     "GB200, MI300X, PCIE-4, PCIE-8");
	line_refused("spine:1 leaf:1 node:2 gpu:4 model:GB200 model:GB200", "model: is written twice");
	line_refused("spine:1 leaf:1 node:2 model:GB200 gpu:4",
		     "gpu: must come here, got \"model:GB200\"; write for example \"spine:2 leaf:4 node:4 gpu:8\"");
}

static void clique_is(uint32_t node, const char *value)
{
	TEST_ASSERT_EQUAL_UINT32(1, fabric.nodes[node].label_count);
	TEST_ASSERT_EQUAL_STRING("nvidia.com/gpu.clique", fabric.nodes[node].labels[0].key);
	TEST_ASSERT_EQUAL_STRING(value, fabric.nodes[node].labels[0].value);
}

static void test_a_line_may_give_consecutive_nodes_of_a_leaf_an_nvlink_domain(void)
{
	line_accepted("spine:1 leaf:2 node:5 gpu:4 nvlink:2 model:GB200"); /* in either order */
	static const char *const want[] = {"nvlink-1", "nvlink-1", "nvlink-2", "nvlink-2", "nvlink-3",
					   "nvlink-4", "nvlink-4", "nvlink-5", "nvlink-5", "nvlink-6"};
	for (uint32_t i = 0; i < 10; i++)
		clique_is(i, want[i]);
	line_accepted("spine:2 leaf:1 node:3 gpu:8 nvlink:3");
	clique_is(2, "nvlink-1");
	clique_is(3, "nvlink-2");
	line_refused("spine:2 leaf:1 node:3 gpu:8 nvlink:4",
		     "nvlink: must be a whole number between 1 and 3 (the nodes of a leaf), got \"4\"");
	line_refused("spine:2 leaf:1 node:3 gpu:8 nvlink:0",
		     "nvlink: must be a whole number between 1 and 3 (the nodes of a leaf), got \"0\"");
	line_refused("spine:2 leaf:1 node:3 gpu:8 nvlink:1 nvlink:1", "nvlink: is written twice");
}

/* ---- ranges ---------------------------------------------------------------------------------------------------- */

#define RANGED(nodes) "spines:\n- name: s\n  leaves:\n  - {name: l, nodes: [" nodes "]}\n" /* lines 1 to 4 */

static void test_a_range_stands_for_its_nodes_in_leaves_and_exceptions(void)
{
	accepted(RANGED("\"n[08-11]\", x, \"m[3,1-2].rack\"") "nodes:\n- {name: \"n[09-10]\", gpus: 4, usedGpus: [1], "
							      "labels: {a: b}}\n");
	static const char *const want[] = {"n08", "n09", "n10", "n11", "x", "m3.rack", "m1.rack", "m2.rack"};
	TEST_ASSERT_EQUAL_UINT32(8, fabric.node_count);
	for (uint32_t i = 0; i < 8; i++) {
		bool changed = i == 1 || i == 2;
		TEST_ASSERT_EQUAL_STRING(want[i], fabric.nodes[i].name);
		TEST_ASSERT_EQUAL_UINT32(changed ? 4 : 0, fabric.nodes[i].gpus);
		TEST_ASSERT_EQUAL_UINT32(changed ? 2 : 0, fabric.nodes[i].used_mask);
		TEST_ASSERT_EQUAL_UINT32(changed, fabric.nodes[i].label_count);
	}
}

static void test_a_bad_range_is_refused_where_it_stands(void)
{
	refused(RANGED("\"n[3-1]\""), 4,
		"spines[0].leaves[0].nodes[0]: \"n[3-1]\" has a range that runs backwards; the lower number comes "
		"first");
	refused(RANGED("a") "nodes:\n- {name: \"n[]\"}\n", 6,
		"nodes[0].name: \"n[]\" has an empty range; write for example node[001-032] or node[1-4,7]");
	refused(RANGED("a") "nodes:\n- {name: \"n[1-2]\"}\n", 6, "nodes[0].name: no leaf lists a node \"n1\"");
	refused(RANGED("\"n[1-4]\", n3"), 4,
		"spines[0].leaves[0].nodes[1]: node \"n3\" is already listed on line 4; each is listed once");
	refused(RANGED("\"n[1-4,2]\""), 4,
		"spines[0].leaves[0].nodes[0]: node \"n2\" is already listed on line 4; each is listed once");
	refused(RANGED("\"n[1-4]\"") "nodes:\n- {name: \"n[1-3,2]\"}\n", 6,
		"nodes[0].name: node \"n2\" already has an entry on line 6; one is allowed");
	refused(RANGED("\"N[1-4]\""), 4,
		"spines[0].leaves[0].nodes[0]: \"N1\" is not a node's name; allowed are 1 to 253 of a-z, 0-9, \"-\" "
		"and "
		"\".\", with a letter or digit at both ends of each part");
	refused(RANGED("\"a[1-131072]\", b"), 4,
		"spines[0].leaves[0].nodes: brings the nodes to 131073; at most 131072 are allowed");
	accepted(RANGED("\"a[1-131071]\", b"));
	TEST_ASSERT_EQUAL_STRING("a131071", fabric.nodes[131070].name);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

static void test_json_has_every_node_in_full(void)
{
	accepted("defaults: {gpus: 4, uplinkGbps: 400}\n" TREE "nodes: [{name: b, model: H100-SXM, usedGpus: [0, 2], "
		 "unhealthyGpus: [1], cordoned: true, labels: {z: a, y: "
		 "b}}]\n");
	char *json = fabricfile_json(&fabric);
	TEST_ASSERT_EQUAL_STRING(
		"{\"nodes\":[{\"name\":\"a\",\"spine\":\"s\",\"leaf\":\"l\",\"gpus\":4,\"model\":\"\",\"uplinkGbps\":"
		"400,"
		"\"usedGpus\":[],\"unhealthyGpus\":[],\"cordoned\":false,\"labels\":{}},"
		"{\"name\":\"b\",\"spine\":\"s\",\"leaf\":\"l\",\"gpus\":8,\"model\":\"H100-SXM\",\"uplinkGbps\":400,"
		"\"usedGpus\":[0,2],\"unhealthyGpus\":[1],\"cordoned\":true,\"labels\":{\"z\":\"a\",\"y\":\"b\"}}]}",
		json);
	free(json);
}

static void test_json_of_a_fabric_without_nodes_is_an_empty_list(void)
{
	accepted("spines: [{name: s, leaves: [{name: l}]}]\n");
	char *json = fabricfile_json(&fabric);
	TEST_ASSERT_EQUAL_STRING("{\"nodes\":[]}", json);
	free(json);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_the_sample_of_the_spec_is_read);
	RUN_TEST(test_order_is_the_order_written_and_json_is_read_too);
	RUN_TEST(test_without_defaults_a_node_has_no_gpus_no_model_and_no_limit);
	RUN_TEST(test_a_model_brings_its_gpus);
	RUN_TEST(test_unknown_keys_are_refused_everywhere);
	RUN_TEST(test_another_kind_or_version_is_refused);
	RUN_TEST(test_a_tree_without_branches_is_refused);
	RUN_TEST(test_names_are_listed_once);
	RUN_TEST(test_of_several_doubles_the_first_in_the_file_is_reported);
	RUN_TEST(test_names_that_are_no_names_are_refused);
	RUN_TEST(test_speeds_are_1_to_a_million);
	RUN_TEST(test_gpus_keep_to_16_and_to_their_model);
	RUN_TEST(test_an_unknown_model_lists_the_known_ones);
	RUN_TEST(test_exceptions_are_for_listed_nodes_once_each);
	RUN_TEST(test_gpu_lists_keep_to_the_nodes_gpus_without_doubles);
	RUN_TEST(test_cordoned_is_a_boolean);
	RUN_TEST(test_labels_are_kubernetes_labels);
	RUN_TEST(test_models_known_by_name_are_those_of_the_spec);
	RUN_TEST(test_an_own_model_can_be_used_and_has_two_numa_nodes_by_default);
	RUN_TEST(test_a_bad_matrix_is_refused);
	RUN_TEST(test_a_models_gpus_numa_and_name_are_checked);
	RUN_TEST(test_64_own_models_are_read_and_65_are_not);
	RUN_TEST(test_as_many_nodes_as_the_limit_are_read_and_no_more);
	RUN_TEST(test_as_many_leaves_and_spines_as_the_limit_are_read_and_no_more);
	RUN_TEST(test_a_line_counts_per_parent_and_names_through_the_cluster);
	RUN_TEST(test_a_line_may_have_spaces_around_its_parts);
	RUN_TEST(test_a_line_in_another_order_or_with_gaps_is_refused);
	RUN_TEST(test_a_lines_numbers_keep_to_their_bounds);
	RUN_TEST(test_a_line_makes_as_many_nodes_as_the_limit_and_no_more);
	RUN_TEST(test_a_very_long_line_is_refused);
	RUN_TEST(test_a_line_may_name_its_model);
	RUN_TEST(test_a_line_may_give_consecutive_nodes_of_a_leaf_an_nvlink_domain);
	RUN_TEST(test_a_range_stands_for_its_nodes_in_leaves_and_exceptions);
	RUN_TEST(test_a_bad_range_is_refused_where_it_stands);
	RUN_TEST(test_json_has_every_node_in_full);
	RUN_TEST(test_json_of_a_fabric_without_nodes_is_an_empty_list);
	return UNITY_END();
}
