/* SPDX-License-Identifier: Apache-2.0 */
/* From a model, a product name or a report to the link table of a node (reference 3.7). */
#include "cluster.h"
#include "engine/engine.h"

static struct cluster *c;

void setUp(void)
{
	c = calloc(1, sizeof *c);
	TEST_ASSERT_NOT_NULL(c);
	engine_make(c, 8, 8, "", "");
}

void tearDown(void)
{
	cluster_free(c);
}

/* Puts a node with a model and a product label, each NULL for none; its table's id. */
static uint32_t table_of(const char *name, uint32_t gpus, uint32_t topology, const char *model, const char *product)
{
	static const char key[] = "nvidia.com/gpu.product";
	char in[512];
	uint32_t a = (uint32_t)strlen(name), b = model == NULL ? 0 : (uint32_t)strlen(model), k = sizeof key - 1;
	int end = snprintf(in, sizeof in, "%s%s%s%s", name, model == NULL ? "" : model, key,
			   product == NULL ? "" : product);
	struct frond_pair pair = {{a + b, k}, {a + b + k, (uint32_t)end - a - b - k}};
	struct frond_node node = {.slot = 0, .gpus = gpus, .topology = topology, .name = {0, a}, .model = {a, b}};
	int32_t code = abi->node_put(c->engine, &node, &pair, product != NULL, in, (uint32_t)end, c->text,
				     CLUSTER_TEXT - 1, &c->len);
	c->text[c->len] = 0;
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, code, c->text);
	check(c);
	return c->engine->core.nodes[0].topology;
}

static uint32_t by_model(const char *model, uint32_t gpus)
{
	return table_of("n", gpus, FROND_NONE, model, NULL);
}

static uint32_t by_product(const char *product, uint32_t gpus)
{
	return table_of("n", gpus, FROND_NONE, NULL, product);
}

static uint64_t sum(uint32_t table, uint32_t set)
{
	return gpuset_sum(c->engine->core.sets[table], set);
}

static uint32_t gpus(uint32_t table)
{
	return gpuset_gpus(c->engine->core.sets[table]);
}

static void test_the_models_that_everybody_knows(void)
{
	static const struct {
		const char *model;
		uint32_t gpus, pair_gbps;
	} known[] = {{"DGX-2", 16, 150}, {"A100-SXM", 8, 300}, {"H100-SXM", 8, 450}, {"B200-SXM", 8, 900},
		     {"GB200", 4, 900},  {"MI300X", 8, 64},    {"PCIE-4", 4, 0},     {"PCIE-8", 8, 0}};
	for (uint32_t i = 0; i < sizeof known / sizeof *known; i++) {
		uint32_t table = by_model(known[i].model, known[i].gpus), all = (1u << known[i].gpus) - 1;
		TEST_ASSERT_EQUAL_UINT32(known[i].gpus, gpus(table));
		TEST_ASSERT_EQUAL_UINT64((uint64_t)known[i].pair_gbps * known[i].gpus * (known[i].gpus - 1) / 2,
					 sum(table, all));
		TEST_ASSERT_EQUAL_UINT32_MESSAGE(known[i].pair_gbps,
						 gpuset_bottleneck(c->engine->core.sets[table], all), known[i].model);
		TEST_ASSERT_TRUE(gpuset_uniform(c->engine->core.sets[table]));
	}
}

static void test_the_first_dgx_has_the_matrix_of_the_spec(void)
{
	static const uint32_t rows[8][8] = {{0, 25, 25, 50, 50, 0, 0, 0}, {25, 0, 50, 25, 0, 50, 0, 0},
					    {25, 50, 0, 50, 0, 0, 25, 0}, {50, 25, 50, 0, 0, 0, 0, 25},
					    {50, 0, 0, 0, 0, 25, 25, 50}, {0, 50, 0, 0, 25, 0, 50, 25},
					    {0, 0, 25, 0, 25, 50, 0, 50}, {0, 0, 0, 25, 50, 25, 50, 0}};
	uint32_t table = by_model("DGX-1V", 8);
	for (uint32_t a = 0; a < 8; a++)
		for (uint32_t b = a + 1; b < 8; b++)
			TEST_ASSERT_EQUAL_UINT64(rows[a][b], sum(table, 1u << a | 1u << b));
	TEST_ASSERT_FALSE(gpuset_uniform(c->engine->core.sets[table]));
}

static void test_a_node_with_fewer_gpus_than_its_model_has_the_first_ones(void)
{
	uint32_t four = by_model("DGX-1V", 4);
	TEST_ASSERT_EQUAL_UINT32(4, gpus(four));
	TEST_ASSERT_EQUAL_UINT64(25 + 25 + 50 + 50 + 25 + 50, sum(four, 0xf));
	TEST_ASSERT_NOT_EQUAL(four, by_model("DGX-1V", 8));
	TEST_ASSERT_EQUAL_UINT32(four, by_model("DGX-1V", 4)); /* one table for all that are alike */
	TEST_ASSERT_EQUAL_UINT32(0, gpus(by_model("H100-SXM", 0)));
	uint32_t three = by_model("H100-SXM", 3); /* NUMA nodes stay those of the whole machine: 0-3 and 4-7 */
	const struct gpu_wish socket = {GPU_SPREAD, MODE_REQUIRED, GPU_SAME_SOCKET, 0, 0};
	TEST_ASSERT_EQUAL_HEX32(0x7, gpuset_choose(c->engine->core.sets[three], &socket, 0x7, 0, 3));
}

static void test_whatever_is_unknown_has_no_links_and_two_numa_nodes(void)
{
	uint32_t unknown = by_model("X-9000", 8);
	TEST_ASSERT_EQUAL_UINT64(0, sum(unknown, 0xff));
	TEST_ASSERT_EQUAL_UINT32(unknown, by_product("NVIDIA-L4", 8));
	TEST_ASSERT_EQUAL_UINT32(unknown, table_of("n", 8, FROND_NONE, NULL, NULL));
	TEST_ASSERT_EQUAL_UINT32(unknown, by_model("PCIE-8", 8)); /* an equal table is the same table */
	TEST_ASSERT_EQUAL_UINT32(unknown, by_model("h100-sxm", 8));
	const struct gpu_wish socket = {GPU_SPREAD, MODE_REQUIRED, GPU_SAME_SOCKET, 0, 0};
	TEST_ASSERT_EQUAL_HEX32(0x0f, gpuset_choose(c->engine->core.sets[unknown], &socket, 0xff, 0, 4));
	TEST_ASSERT_EQUAL_HEX32(0, gpuset_choose(c->engine->core.sets[unknown], &socket, 0xff, 0, 5));
	uint32_t odd = by_model("X-9000", 5); /* with an odd number the first NUMA node has one more */
	TEST_ASSERT_EQUAL_HEX32(0x07, gpuset_choose(c->engine->core.sets[odd], &socket, 0x1f, 0, 3));
}

static void test_a_node_with_more_gpus_than_its_model_is_not_that_model(void)
{
	TEST_ASSERT_EQUAL_UINT64(0, sum(by_model("GB200", 8), 0xff));
	TEST_ASSERT_EQUAL_UINT64(0, sum(by_model("A100-SXM", 16), 0xffff));
}

static void test_products_are_known_by_how_they_begin(void)
{
	static const struct {
		const char *product, *model;
		uint32_t gpus;
	} products[] = {{"NVIDIA-H100-80GB-HBM3", "H100-SXM", 8},
			{"NVIDIA-H200", "H100-SXM", 8},
			{"NVIDIA-H200-141GB", "H100-SXM", 8},
			{"NVIDIA-A100-SXM4-80GB", "A100-SXM", 8},
			{"NVIDIA-A100-SXM4-40GB", "A100-SXM", 4},
			{"NVIDIA-B200", "B200-SXM", 8},
			{"NVIDIA-GB200", "GB200", 4},
			{"Tesla-V100-SXM2-16GB", "DGX-1V", 8},
			{"Tesla-V100-SXM3-32GB", "DGX-2", 16},
			{"AMD_Instinct_MI300X_OAM", "MI300X", 8},
			{"NVIDIA-A100-PCIE-40GB", "PCIE-8", 8},
			{"NVIDIA-H100-PCIe", "PCIE-8", 8},
			{"Tesla-V100-SXM2-16GB", "X", 4}, /* half a DGX-1 is another machine */
			{"Tesla-V100-SXM3-32GB", "X", 8},
			{"NVIDIA-H10", "X", 8},
			{"xNVIDIA-H200", "X", 8}};
	for (uint32_t i = 0; i < sizeof products / sizeof *products; i++)
		TEST_ASSERT_EQUAL_UINT32_MESSAGE(by_model(products[i].model, products[i].gpus),
						 by_product(products[i].product, products[i].gpus),
						 products[i].product);
}

static void test_the_report_wins_over_the_model_and_the_model_over_the_product(void)
{
	struct frond_topology report = {.gpus = 2, .link_gbps = {{0, 77}, {77, 0}}};
	uint32_t id = FROND_NONE, again = FROND_NONE;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->topology_put(c->engine, &report, &id, c->text, CLUSTER_TEXT, &c->len));
	TEST_ASSERT_EQUAL_UINT32(0, c->len);
	TEST_ASSERT_EQUAL_INT32(FROND_OK,
				abi->topology_put(c->engine, &report, &again, c->text, CLUSTER_TEXT, &c->len));
	TEST_ASSERT_EQUAL_UINT32(id, again); /* equal tables share one id */
	TEST_ASSERT_EQUAL_UINT32(id, table_of("n", 2, id, "H100-SXM", "NVIDIA-B200"));
	TEST_ASSERT_EQUAL_UINT64(77, sum(id, 0x3));
	TEST_ASSERT_EQUAL_UINT64(450, sum(table_of("n", 2, FROND_NONE, "H100-SXM", "NVIDIA-B200"), 0x3));
	TEST_ASSERT_EQUAL_UINT64(900, sum(table_of("n", 2, FROND_NONE, NULL, "NVIDIA-B200"), 0x3));
	TEST_ASSERT_EQUAL_UINT64(0, sum(table_of("n", 2, FROND_NONE, "X", "NVIDIA-B200"), 0x3)); /* named, unknown */
}

/* ---- the fabric file -------------------------------------------------------------------------------------------- */

#define FILE_HEAD "apiVersion: topology.scheduler/v1alpha1\nkind: Fabric\n"

static void file(const char *text)
{
	cluster_free(c);
	c = cluster_make(text, "");
}

static uint32_t put_table(uint32_t slot)
{
	return c->engine->core.nodes[slot].topology;
}

static void test_the_file_says_which_model_its_nodes_are(void)
{
	file(FILE_HEAD "defaults: {model: A100-SXM}\n"
		       "spines: [{name: s, leaves: [{name: l, nodes: [a, b, d, e]}]}]\n"
		       "models: [{name: box, gpus: 3, numa: [0, 0, 1], links: [[0, 5, 6], [5, 0, 7], [6, 7, 0]]}]\n"
		       "nodes: [{name: b, model: box}, {name: d, gpus: 4}, {name: e, model: box, gpus: 2}]\n");
	TEST_ASSERT_EQUAL_UINT64(28 * 300, sum(put_table(0), 0xff));
	TEST_ASSERT_EQUAL_UINT64(18, sum(put_table(1), 0x7));
	TEST_ASSERT_EQUAL_UINT64(6 * 300, sum(put_table(2), 0xf));
	TEST_ASSERT_EQUAL_UINT64(5, sum(put_table(3), 0x3));
	TEST_ASSERT_EQUAL_UINT32(2, gpus(put_table(3)));
}

static void test_a_model_of_the_file_hides_one_that_is_known(void)
{
	file(FILE_HEAD "spines: [{name: s, leaves: [{name: l, nodes: [a]}]}]\n"
		       "models: [{name: box, gpus: 2, links: [[0, 5], [5, 0]]}]\n"
		       "nodes: [{name: a, model: box}]\n");
	TEST_ASSERT_EQUAL_UINT64(5, sum(put_table(0), 0x3));
	TEST_ASSERT_EQUAL_UINT64(5, sum(by_model("box", 2), 0x3));
	TEST_ASSERT_EQUAL_UINT64(5, sum(table_of("guest", 2, FROND_NONE, "box", NULL), 0x3)); /* of any node */
}

/* ---- limits ----------------------------------------------------------------------------------------------------- */

/* A report of so many GPUs, of which the first two are joined. */
static int32_t report(uint32_t gpus, uint16_t gbps, uint32_t *id)
{
	struct frond_topology links = {.gpus = gpus};
	links.link_gbps[0][1] = links.link_gbps[1][0] = gbps;
	return abi->topology_put(c->engine, &links, id, c->text, CLUSTER_TEXT - 1, &c->len);
}

static void has_table(uint32_t slot, uint32_t gpus, uint32_t id)
{
	char name[16];
	struct frond_node node = {.slot = slot, .gpus = gpus, .topology = id};
	node.name.len = (uint32_t)snprintf(name, sizeof name, "n%u", (unsigned)slot);
	int32_t code =
		abi->node_put(c->engine, &node, NULL, 0, name, node.name.len, c->text, CLUSTER_TEXT - 1, &c->len);
	c->text[c->len] = 0;
	TEST_ASSERT_EQUAL_INT32_MESSAGE(FROND_OK, code, c->text);
}

static void test_a_full_table_memory_refuses_and_changes_nothing(void)
{
	struct frond_limits limits = {.nodes = 300, .pods = 2, .table_bytes = 1u << 16};
	uint64_t bytes = abi->size_of(&limits);
	void *mem = calloc(1, bytes);
	TEST_ASSERT_NOT_NULL(mem);
	free(c->mem);
	c->mem = mem;
	c->limits = limits;
	TEST_ASSERT_EQUAL_INT32(
		FROND_OK, abi->create(mem, bytes, &limits, "", 0, "", 0, &c->engine, c->text, CLUSTER_TEXT, &c->len));
	uint32_t id = 99, slot = 0;
	int32_t code = FROND_OK;
	for (uint16_t gbps = 1; code == FROND_OK; gbps++, slot++) {
		TEST_ASSERT_LESS_THAN_UINT16(200, gbps);
		remember(c);
		id = 99;
		code = report(8, gbps, &id);
		if (code == FROND_OK)
			has_table(slot, 8, id);
	}
	c->text[c->len] = 0;
	TEST_ASSERT_EQUAL_INT32(FROND_LIMIT, code);
	TEST_ASSERT_EQUAL_STRING("no room for further link tables of nodes", c->text);
	unchanged(c);
	TEST_ASSERT_EQUAL_INT32(FROND_LIMIT, node_try(c, slot, "n", 16, 0, 0, 0, "l", "s"));
	unchanged(c);
	TEST_ASSERT_EQUAL_UINT32(FROND_NONE, names_find(&c->engine->names, "n", 1)); /* nor are names kept */
	TEST_ASSERT_EQUAL_INT32(FROND_OK, report(8, 1, &id));                        /* it is there */
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->node_remove(c->engine, 3));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, report(8, 999, &id)); /* in the place of what that node had */
	check(c);
}

static void test_256_tables_at_most_are_had_by_nodes(void)
{
	uint32_t id = 0;
	cluster_free(c);
	c = calloc(1, sizeof *c);
	TEST_ASSERT_NOT_NULL(c);
	engine_make(c, 300, 2, "", "");
	for (uint16_t gbps = 0; gbps < FROND_TOPOLOGIES - 1; gbps++) { /* one is of nodes without GPUs */
		TEST_ASSERT_EQUAL_INT32(FROND_OK, report(2, gbps, &id));
		TEST_ASSERT_EQUAL_UINT32(gbps + 1u, id);
		has_table(gbps, 2, id);
	}
	TEST_ASSERT_EQUAL_INT32(FROND_LIMIT, report(2, 999, &id));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->node_remove(c->engine, 77));
	TEST_ASSERT_EQUAL_INT32(FROND_OK, report(2, 999, &id));
	TEST_ASSERT_EQUAL_UINT32(78, id);
	has_table(77, 2, id);
	TEST_ASSERT_EQUAL_UINT64(999, sum(id, 0x3));
}

/* ---- tables that no node has ------------------------------------------------------------------------------------- */

/* A link table that is another for each number: GPU 0 is joined to the others by so many GB/s, bit by bit of the number. */
static struct frond_topology variant(uint32_t gpus, uint32_t number)
{
	struct frond_topology out = {.gpus = gpus};
	for (uint32_t i = 1; i < gpus; i++)
		out.link_gbps[0][i] = out.link_gbps[i][0] = (uint16_t)(1 + (number >> (2 * (i - 1)) & 3));
	return out;
}

/* A node whose links fail one after the other, beside others that keep theirs: there is always room, and nobody else's
 * links change. */
static void test_ten_thousand_variants_one_after_the_other(void)
{
	enum { OTHERS = 20 };
	uint32_t kept[OTHERS], id = 0;
	cluster_free(c);
	c = calloc(1, sizeof *c);
	TEST_ASSERT_NOT_NULL(c);
	engine_make(c, OTHERS + 2, 2, "", "");
	for (uint32_t i = 0; i < OTHERS; i++) {
		TEST_ASSERT_EQUAL_INT32(FROND_OK, report(8, (uint16_t)(100 + i), &kept[i]));
		has_table(i, 8, kept[i]);
	}
	for (uint32_t number = 0; number < 10000; number++) {
		struct frond_topology links = variant(number % 97 == 5 ? 16 : 8, number);
		TEST_ASSERT_EQUAL_INT32(FROND_OK,
					abi->topology_put(c->engine, &links, &id, c->text, CLUSTER_TEXT, &c->len));
		has_table(OTHERS, links.gpus, id);
		uint64_t expected = 0;
		for (uint32_t i = 1; i < links.gpus; i++)
			expected += links.link_gbps[0][i];
		TEST_ASSERT_EQUAL_UINT64(expected, sum(id, (1u << links.gpus) - 1));
		if (number % 1000 == 0) /* by model, between them */
			TEST_ASSERT_EQUAL_INT32(FROND_OK, node_try(c, OTHERS + 1, "model", 8, 0, 0, 0, NULL, NULL));
		if (number % 100 != 0)
			continue;
		check(c);
		for (uint32_t i = 0; i < OTHERS; i++) {
			TEST_ASSERT_EQUAL_UINT32(kept[i], c->engine->core.nodes[i].topology);
			TEST_ASSERT_EQUAL_UINT64(100 + i, sum(kept[i], 0x3));
		}
	}
	TEST_ASSERT_GREATER_THAN_UINT32(9000, c->engine->core.tables.freed);
}

/* Nodes by model are asked for between reports; the model's table goes and comes again, and is the model's. */
static void test_the_table_of_a_model_that_was_freed_is_made_again(void)
{
	uint32_t id = 0;
	uint64_t links = sum(by_model("H100-SXM", 8), 0xff);
	TEST_ASSERT_EQUAL_UINT64(28 * 450, links);
	TEST_ASSERT_EQUAL_INT32(FROND_OK, abi->node_remove(c->engine, 0));
	for (uint32_t number = 0; number < 400; number++) {
		struct frond_topology other = variant(8, number);
		TEST_ASSERT_EQUAL_INT32(FROND_OK,
					abi->topology_put(c->engine, &other, &id, c->text, CLUSTER_TEXT, &c->len));
	}
	TEST_ASSERT_EQUAL_UINT64(links, sum(by_model("H100-SXM", 8), 0xff));
	check(c);
}

/* An id is good while a node has it: here a table of another size has got it since. */
static void test_an_id_whose_table_was_freed_is_refused(void)
{
	struct frond_topology last = {.gpus = 16};
	uint32_t first = 0, id = 0;
	TEST_ASSERT_EQUAL_INT32(FROND_OK, report(8, 7, &first));
	for (uint32_t number = 0; number < 3; number++) { /* there is room for one table of 16 GPUs beside 127 others */
		last.link_gbps[0][1] = last.link_gbps[1][0] = (uint16_t)(number + 1);
		TEST_ASSERT_EQUAL_INT32(FROND_OK,
					abi->topology_put(c->engine, &last, &id, c->text, CLUSTER_TEXT, &c->len));
		check(c);
	}
	struct frond_node node = {.slot = 1, .gpus = 8, .topology = first, .name = {0, 1}};
	TEST_ASSERT_EQUAL_INT32(FROND_BAD,
				abi->node_put(c->engine, &node, NULL, 0, "x", 1, c->text, CLUSTER_TEXT, &c->len));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_the_models_that_everybody_knows);
	RUN_TEST(test_the_first_dgx_has_the_matrix_of_the_spec);
	RUN_TEST(test_a_node_with_fewer_gpus_than_its_model_has_the_first_ones);
	RUN_TEST(test_whatever_is_unknown_has_no_links_and_two_numa_nodes);
	RUN_TEST(test_a_node_with_more_gpus_than_its_model_is_not_that_model);
	RUN_TEST(test_products_are_known_by_how_they_begin);
	RUN_TEST(test_the_report_wins_over_the_model_and_the_model_over_the_product);
	RUN_TEST(test_the_file_says_which_model_its_nodes_are);
	RUN_TEST(test_a_model_of_the_file_hides_one_that_is_known);
	RUN_TEST(test_a_full_table_memory_refuses_and_changes_nothing);
	RUN_TEST(test_256_tables_at_most_are_had_by_nodes);
	RUN_TEST(test_ten_thousand_variants_one_after_the_other);
	RUN_TEST(test_the_table_of_a_model_that_was_freed_is_made_again);
	RUN_TEST(test_an_id_whose_table_was_freed_is_refused);
	return UNITY_END();
}
