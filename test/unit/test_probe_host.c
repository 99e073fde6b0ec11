/* SPDX-License-Identifier: Apache-2.0 */
/* Places on the host that no machine of ours has: odd NUMA, deep switches, plain network devices, too many NICs. */
#include "probe/host.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unity.h>

static char path[64], xml[32768];
static uint32_t used, next_id;
static struct host host;

void setUp(void)
{
	setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 1); /* hwloc's own reader of XML: nothing to load */
	snprintf(path, sizeof(path), "build/nvml/host.%d.xml", (int)getpid());
	used = 0;
	next_id = 100;
	memset(&host, 0xa5, sizeof(host));
}

void tearDown(void)
{
	unlink(path);
}

static void put(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void put(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	used += (uint32_t)vsnprintf(xml + used, sizeof(xml) - used, format, args);
	va_end(args);
	TEST_ASSERT_TRUE(used < sizeof(xml));
}

/* One processor with two NUMA nodes; the second could be the memory of a GPU. */
static void begin(void)
{
	put("<?xml version=\"1.0\" encoding=\"UTF-8\"?><!DOCTYPE topology SYSTEM \"hwloc2.dtd\"><topology "
	    "version=\"2.0\">"
	    "<object type=\"Machine\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" allowed_cpuset=\"0x1\" "
	    "nodeset=\"0x3\" "
	    "complete_nodeset=\"0x3\" allowed_nodeset=\"0x3\" gp_index=\"1\">"
	    "<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x1\" "
	    "complete_nodeset=\"0x1\" "
	    "gp_index=\"3\" local_memory=\"1\"/>"
	    "<object type=\"NUMANode\" os_index=\"1\" cpuset=\"0x0\" complete_cpuset=\"0x0\" nodeset=\"0x2\" "
	    "complete_nodeset=\"0x2\" "
	    "gp_index=\"4\" local_memory=\"1\"/>"
	    "<object type=\"Core\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x3\" "
	    "complete_nodeset=\"0x3\" "
	    "gp_index=\"5\"><object type=\"PU\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x3\" "
	    "complete_nodeset=\"0x3\" gp_index=\"6\"/></object>"
	    "<object type=\"Bridge\" gp_index=\"7\" bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"0000:[00-ff]\">");
}

static void bridge(uint32_t bus, uint32_t depth)
{
	put("<object type=\"Bridge\" gp_index=\"%u\" bridge_type=\"1-1\" depth=\"%u\" bridge_pci=\"0000:[%02x-%02x]\" "
	    "pci_busid=\"0000:%02x:1f.0\" pci_type=\"0604 [10b5:8747] [0000:0000] ca\" pci_link_speed=\"1\">",
	    next_id++, depth, bus, bus, bus);
}

static void gpu(uint32_t bus)
{
	put("<object type=\"PCIDev\" gp_index=\"%u\" pci_busid=\"0000:%02x:00.0\" pci_type=\"0302 [10de:20b0] "
	    "[10de:134f] a1\" "
	    "pci_link_speed=\"1\"/>",
	    next_id++, bus);
}

/* Kinds of device, as hwloc counts: 2 network, 3 RDMA. */
static void nic(uint32_t bus, const char *network, const char *rdma)
{
	put("<object type=\"PCIDev\" gp_index=\"%u\" pci_busid=\"0000:%02x:00.0\" pci_type=\"0200 [15b3:101b] "
	    "[15b3:0007] 00\" "
	    "pci_link_speed=\"1\">",
	    next_id++, bus);
	if (network != NULL)
		put("<object type=\"OSDev\" gp_index=\"%u\" name=\"%s\" osdev_type=\"2\"/>", next_id++, network);
	if (rdma != NULL)
		put("<object type=\"OSDev\" gp_index=\"%u\" name=\"%s\" osdev_type=\"3\"/>", next_id++, rdma);
	put("</object>");
}

static void end(uint32_t bridges)
{
	for (uint32_t i = 0; i < bridges; i++)
		put("</object>");
}

static bool read_gpu(uint32_t bus)
{
	end(2); /* the host bridge and the machine */
	put("</topology>");
	FILE *file = fopen(path, "w");
	TEST_ASSERT_NOT_NULL(file);
	for (uint32_t i = 0; i < used; i++) {
		fputc(xml[i], file);
		if (xml[i] == '>')
			fputc('\n', file); /* hwloc's own reader wants a tag a line */
	}
	fclose(file);
	struct probe_pci pci = {.known = true, .bus = bus};
	return host_read(path, &pci, 1, &host);
}

static void test_memory_beside_that_of_the_processors_is_not_where_a_gpu_is(void)
{
	begin();
	gpu(1);
	TEST_ASSERT_TRUE(read_gpu(1));
	TEST_ASSERT_EQUAL_INT(0, host.numa[0]);
}

/* Two packages with a node each, and a host bridge that belongs to neither. */
static void test_a_gpu_that_hangs_above_all_nodes_is_nearest_to_none(void)
{
	put("<?xml version=\"1.0\" encoding=\"UTF-8\"?><!DOCTYPE topology SYSTEM \"hwloc2.dtd\"><topology "
	    "version=\"2.0\">"
	    "<object type=\"Machine\" os_index=\"0\" cpuset=\"0x3\" complete_cpuset=\"0x3\" allowed_cpuset=\"0x3\" "
	    "nodeset=\"0x3\" "
	    "complete_nodeset=\"0x3\" allowed_nodeset=\"0x3\" gp_index=\"1\">");
	for (uint32_t i = 0; i < 2; i++) {
		char sets[128];
		snprintf(sets, sizeof(sets),
			 "cpuset=\"0x%x\" complete_cpuset=\"0x%x\" nodeset=\"0x%x\" complete_nodeset=\"0x%x\"", 1u << i,
			 1u << i, 1u << i, 1u << i);
		put("<object type=\"Package\" os_index=\"%u\" %s gp_index=\"%u\">", i, sets, next_id++);
		put("<object type=\"NUMANode\" os_index=\"%u\" %s gp_index=\"%u\" local_memory=\"1\"/>", i, sets,
		    next_id++);
		put("<object type=\"PU\" os_index=\"%u\" %s gp_index=\"%u\"/></object>", i, sets, next_id++);
	}
	put("<object type=\"Bridge\" gp_index=\"7\" bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"0000:[00-ff]\">");
	gpu(1);
	TEST_ASSERT_TRUE(read_gpu(1));
	TEST_ASSERT_EQUAL_INT(PROBE_UNKNOWN, host.numa[0]);
}

/* Memory that all share beside the memory of each package: the nearer one counts, whatever its number. */
static void test_the_memory_of_the_package_is_nearer_than_that_of_the_machine(void)
{
	put("<?xml version=\"1.0\" encoding=\"UTF-8\"?><!DOCTYPE topology SYSTEM \"hwloc2.dtd\"><topology "
	    "version=\"2.0\">"
	    "<object type=\"Machine\" os_index=\"0\" cpuset=\"0x3\" complete_cpuset=\"0x3\" allowed_cpuset=\"0x3\" "
	    "nodeset=\"0x7\" "
	    "complete_nodeset=\"0x7\" allowed_nodeset=\"0x7\" gp_index=\"1\">"
	    "<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x3\" complete_cpuset=\"0x3\" nodeset=\"0x1\" "
	    "complete_nodeset=\"0x1\" gp_index=\"2\" local_memory=\"1\"/>");
	for (uint32_t i = 0; i < 2; i++) {
		put("<object type=\"Package\" os_index=\"%u\" cpuset=\"0x%x\" complete_cpuset=\"0x%x\" "
		    "nodeset=\"0x%x\" "
		    "complete_nodeset=\"0x%x\" gp_index=\"%u\">",
		    i, 1u << i, 1u << i, 1u | 2u << i, 1u | 2u << i, next_id++);
		put("<object type=\"NUMANode\" os_index=\"%u\" cpuset=\"0x%x\" complete_cpuset=\"0x%x\" "
		    "nodeset=\"0x%x\" "
		    "complete_nodeset=\"0x%x\" gp_index=\"%u\" local_memory=\"1\"/>",
		    i + 1, 1u << i, 1u << i, 2u << i, 2u << i, next_id++);
		put("<object type=\"PU\" os_index=\"%u\" cpuset=\"0x%x\" complete_cpuset=\"0x%x\" nodeset=\"0x%x\" "
		    "complete_nodeset=\"0x%x\" gp_index=\"%u\"/>",
		    i, 1u << i, 1u << i, 1u | 2u << i, 1u | 2u << i, next_id++);
		if (i == 0)
			end(1);
	}
	put("<object type=\"Bridge\" gp_index=\"7\" bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"0000:[00-ff]\">");
	gpu(1);
	end(1);
	TEST_ASSERT_TRUE(read_gpu(1));
	TEST_ASSERT_EQUAL_INT(2, host.numa[0]);
}

static void test_a_gpu_that_hwloc_does_not_see_is_nowhere(void)
{
	begin();
	nic(2, "eth0", "mlx5_0");
	TEST_ASSERT_TRUE(read_gpu(9));
	TEST_ASSERT_EQUAL_INT(PROBE_UNKNOWN, host.numa[0]);
	TEST_ASSERT_EQUAL_INT(PROBE_UNKNOWN, host.level[0][0]);
}

static void test_switches_below_switches_are_further_than_one(void)
{
	begin();
	bridge(1, 1);
	bridge(2, 2);
	gpu(3);
	end(1);
	bridge(4, 2);
	nic(5, NULL, "near");
	end(1);
	bridge(6, 2);
	bridge(7, 3);
	bridge(8, 4);
	nic(9, NULL, "far");
	end(4);
	bridge(10, 1);
	nic(11, NULL, "beside");
	end(1);
	TEST_ASSERT_TRUE(read_gpu(3));
	TEST_ASSERT_EQUAL_UINT32(3, host.nic_count);
	static const struct {
		const char *name;
		int32_t level;
	} want[] = {
		{"near", PROBE_LEVEL_ONE_SWITCH}, {"far", PROBE_LEVEL_SWITCHES}, {"beside", PROBE_LEVEL_HOST_BRIDGE}};
	for (uint32_t i = 0; i < 3; i++) {
		TEST_ASSERT_EQUAL_STRING(want[i].name, host.nics[i].name);
		TEST_ASSERT_EQUAL_INT(want[i].level, host.level[0][i]);
	}
}

static void test_only_nics_that_do_rdma_are_rails_where_there_are_any(void)
{
	begin();
	gpu(1);
	nic(2, "eth0", NULL);
	nic(3, "eth1", "mlx5_0");
	TEST_ASSERT_TRUE(read_gpu(1));
	TEST_ASSERT_EQUAL_UINT32(1, host.nic_count);
	TEST_ASSERT_EQUAL_STRING("mlx5_0", host.nics[0].name);

	setUp();
	begin();
	gpu(1);
	nic(3, "eth1", NULL);
	nic(2, "eth0", NULL);
	TEST_ASSERT_TRUE(read_gpu(1));
	TEST_ASSERT_EQUAL_UINT32(2, host.nic_count); /* by address, not as hwloc lists them */
	TEST_ASSERT_EQUAL_STRING("eth0", host.nics[0].name);
	TEST_ASSERT_EQUAL_STRING("eth1", host.nics[1].name);
}

static void test_the_first_nics_by_address_are_kept_and_all_are_counted(void)
{
	for (uint32_t count = PROBE_NICS_MAX; count <= PROBE_NICS_MAX + 2; count++) {
		setUp();
		begin();
		gpu(1);
		for (uint32_t i = 0; i < count; i++) {
			char name[16];
			snprintf(name, sizeof(name), "n%u", i);
			nic(100 + (i * 7) % count, name, NULL); /* mixed */
		}
		TEST_ASSERT_TRUE(read_gpu(1));
		TEST_ASSERT_EQUAL_UINT32(PROBE_NICS_MAX, host.nic_count);
		TEST_ASSERT_EQUAL_UINT32(count, host.nics_found);
		for (uint32_t i = 0; i < PROBE_NICS_MAX; i++)
			TEST_ASSERT_EQUAL_UINT32(100 + i, host.nics[i].pci.bus);
	}
}

static void test_what_is_no_topology_is_no_answer(void)
{
	struct host before = host;
	struct probe_pci pci = {.known = false};
	TEST_ASSERT_FALSE(host_read("build/nvml/none.xml", &pci, 1, &host));
	FILE *file = fopen(path, "w");
	TEST_ASSERT_NOT_NULL(file);
	fputs("<topology><object>", file);
	fclose(file);
	TEST_ASSERT_FALSE(host_read(path, &pci, 1, &host));
	TEST_ASSERT_EQUAL_MEMORY(&before, &host, sizeof(host));
}

static void test_this_machine_can_be_read(void)
{
	struct probe_pci pci = {.known = false};
	TEST_ASSERT_TRUE(host_read(NULL, &pci, 1, &host));
	TEST_ASSERT_EQUAL_INT(PROBE_UNKNOWN, host.numa[0]);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_memory_beside_that_of_the_processors_is_not_where_a_gpu_is);
	RUN_TEST(test_a_gpu_that_hangs_above_all_nodes_is_nearest_to_none);
	RUN_TEST(test_the_memory_of_the_package_is_nearer_than_that_of_the_machine);
	RUN_TEST(test_a_gpu_that_hwloc_does_not_see_is_nowhere);
	RUN_TEST(test_switches_below_switches_are_further_than_one);
	RUN_TEST(test_only_nics_that_do_rdma_are_rails_where_there_are_any);
	RUN_TEST(test_the_first_nics_by_address_are_kept_and_all_are_counted);
	RUN_TEST(test_what_is_no_topology_is_no_answer);
	RUN_TEST(test_this_machine_can_be_read);
	return UNITY_END();
}
