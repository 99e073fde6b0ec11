/* SPDX-License-Identifier: Apache-2.0 */
/* Every machine that we can play: what the probe says is what the description says, all of it. */
#include "probe_rig.h"

#include "text/models.h"

#include <pthread.h>
#include <time.h>

void setUp(void)
{
	probe = NULL;
	description[0] = proc_folder[0] = '\0';
}

void tearDown(void)
{
	rig_stop();
}

static void reads_right(enum probe_depth depth)
{
	probe_read(probe, depth, &report);
	TEST_ASSERT_EQUAL_STRING("", report.reason);
	TEST_ASSERT_EQUAL(PROBE_OK, report.state);
	TEST_ASSERT_EQUAL_STRING(machine.driver, report.driver);
	TEST_ASSERT_EQUAL_UINT32(machine.gpu_count, report.gpu_count);
	TEST_ASSERT_EQUAL_UINT32(machine.nic_count, report.nic_count);
	TEST_ASSERT_TRUE_MESSAGE(report_is(&machine, &report, true), wrong_text);
	TEST_ASSERT_TRUE_MESSAGE(report_holds_together(&report), wrong_text);
}

static void is_as_described(const char *name)
{
	rig_start(name, "");
	reads_right(PROBE_ALL);
	TEST_ASSERT_EQUAL_UINT32(0, report.failures_found);
	reads_right(PROBE_CHANGES);
	TEST_ASSERT_EQUAL_UINT32(0, report.failures_found);
}

/* Links in GB/s and NUMA nodes as reference 3.7 has them for the model. */
static void is_the_model(const char *name)
{
	static struct fabric_model model;
	uint32_t index = 0;
	while (strcmp(models_known[index].name, name) != 0)
		TEST_ASSERT_TRUE(++index < MODELS_KNOWN);
	models_fill(index, &model);
	TEST_ASSERT_EQUAL_UINT32(model.gpus, report.gpu_count);
	for (uint32_t a = 0; a < model.gpus; a++) {
		TEST_ASSERT_EQUAL_INT(model.numa[a], report.gpus[a].numa);
		for (uint32_t b = 0; b < model.gpus; b++)
			TEST_ASSERT_EQUAL_INT(model.link_gbps[a][b], report.pairs[a][b].gbps);
	}
}

static void test_dgx_1v_is_the_cube_mesh_of_the_spec(void)
{
	is_as_described("dgx-1v");
	is_the_model("DGX-1V");
	TEST_ASSERT_EQUAL_INT(150, report.gpus[0].link_gbps);
	TEST_ASSERT_EQUAL(PROBE_REMOTE_GPU, report.pairs[0][3].through);
	TEST_ASSERT_EQUAL_INT(0, report.gpus[7].island);
}

static void test_dgx_2_is_all_to_all_at_150(void)
{
	is_as_described("dgx-2");
	is_the_model("DGX-2");
	TEST_ASSERT_EQUAL(PROBE_REMOTE_SWITCH, report.pairs[0][15].through);
}

static void test_dgx_a100_is_all_to_all_at_300_and_shares_its_nics_out(void)
{
	is_as_described("dgx-a100");
	is_the_model("A100-SXM");
	static const char *const rails[] = {"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3",
					    "mlx5_5", "mlx5_6", "mlx5_7", "mlx5_8"};
	for (uint32_t i = 0; i < COUNT(rails); i++)
		TEST_ASSERT_EQUAL_STRING(rails[i], report.nics[report.gpus[i].rail].name);
}

static void test_dgx_h100_is_all_to_all_at_450(void)
{
	is_as_described("dgx-h100");
	is_the_model("H100-SXM");
	TEST_ASSERT_TRUE(report.gpus[0].cluster_known);
	TEST_ASSERT_EQUAL_INT(PROBE_LEVEL_ONE_SWITCH, report.gpus[5].rail_level);
}

static void test_eighteen_gb200_trays_are_one_nvlink_domain_of_72_gpus(void)
{
	static char seen[72][96];
	uint8_t cluster[16] = {0};
	for (uint32_t tray = 0; tray < 18; tray++) {
		char line[16];
		snprintf(line, sizeof(line), "node %u", tray);
		rig_start("gb200", line);
		reads_right(PROBE_ALL);
		is_the_model("GB200");
		if (tray == 0)
			memcpy(cluster, report.gpus[0].cluster, sizeof(cluster));
		for (uint32_t i = 0; i < 4; i++) {
			TEST_ASSERT_EQUAL_MEMORY(cluster, report.gpus[i].cluster, sizeof(cluster));
			TEST_ASSERT_EQUAL_INT64(32766, report.gpus[i].clique);
			memcpy(seen[tray * 4 + i], report.gpus[i].uuid, sizeof(seen[0]));
			for (uint32_t k = 0; k < tray * 4 + i; k++)
				TEST_ASSERT_TRUE(strcmp(seen[k], report.gpus[i].uuid) != 0);
		}
		rig_stop();
	}
}

static void test_pcie_cards_have_no_links_and_islands_of_their_own(void)
{
	is_as_described("pcie-4");
	is_the_model("PCIE-4");
	for (int32_t i = 0; i < 4; i++)
		TEST_ASSERT_EQUAL_INT(i, report.gpus[i].island);
}

static void test_slices_are_listed_by_uuid_and_profile(void)
{
	is_as_described("mig");
	TEST_ASSERT_EQUAL_INT(7, report.gpus[0].slice_count);
	TEST_ASSERT_EQUAL_STRING("1g.5gb", report.gpus[0].slices[6].profile);
	TEST_ASSERT_EQUAL_INT(1, report.gpus[2].mig);
	TEST_ASSERT_EQUAL_INT(0, report.gpus[2].slice_count);
	TEST_ASSERT_EQUAL_INT(0, report.gpus[4].mig);
}

static void test_a_slice_that_is_not_named_gets_its_profile_from_its_parts(void)
{
	rig_start("mig", "fail nvmlDeviceGetName any 999");
	probe_read(probe, PROBE_ALL, &report);
	static const char *const profiles[] = {"1c.2g.10gb", "4g.20gb"};
	for (uint32_t i = 0; i < COUNT(profiles); i++)
		TEST_ASSERT_EQUAL_STRING(profiles[i], report.gpus[3].slices[i].profile);
	TEST_ASSERT_EQUAL_STRING("1g.5gb", report.gpus[0].slices[0].profile);
	TEST_ASSERT_EQUAL_STRING("3g.20gb", report.gpus[1].slices[1].profile);
	TEST_ASSERT_EQUAL_STRING("", report.gpus[0].model);
}

static void test_one_of_everything_that_ails_a_gpu(void)
{
	is_as_described("busy");
	static const char *const reasons[] = {"",
					      "",
					      "3 uncorrectable memory errors since the last reset",
					      "bad rows of its memory could not be remapped",
					      "",
					      "XID 79",
					      "",
					      ""};
	for (uint32_t i = 0; i < COUNT(reasons); i++) {
		TEST_ASSERT_EQUAL_STRING(reasons[i], report.gpus[i].reason);
		TEST_ASSERT_EQUAL(reasons[i][0] == '\0' ? PROBE_HEALTHY : PROBE_UNHEALTHY, report.gpus[i].health);
	}
	TEST_ASSERT_EQUAL_INT(275, report.pairs[0][7].gbps); /* eleven of twelve links */
	TEST_ASSERT_EQUAL_INT(275, report.gpus[7].link_gbps);
	TEST_ASSERT_EQUAL_INT(31, report.gpus[6].xid);
}

/* ---- what changes ------------------------------------------------------------------------------------------------ */

static void test_a_dead_gpu_hides_no_other(void)
{
	is_as_described("dgx-h100");
	machine_set("dgx-h100", "lost 3");
	for (enum probe_depth depth = PROBE_ALL; depth <= PROBE_CHANGES; depth++) {
		probe_read(probe, depth, &report);
		TEST_ASSERT_TRUE_MESSAGE(report_is(&machine, &report, true), wrong_text);
		TEST_ASSERT_TRUE_MESSAGE(report_holds_together(&report), wrong_text);
		TEST_ASSERT_EQUAL_UINT32(8, report.gpu_count);
		TEST_ASSERT_EQUAL(PROBE_UNHEALTHY, report.gpus[3].health);
		TEST_ASSERT_EQUAL_STRING("the GPU is lost: it no longer answers its driver", report.gpus[3].reason);
		TEST_ASSERT_TRUE(report.gpus[3].remembered); /* its name is known from before */
		TEST_ASSERT_EQUAL_STRING("GPU-1a5b7c04-0000-4000-8000-000000000003", report.gpus[3].uuid);
		TEST_ASSERT_EQUAL_INT(0, report.gpus[3].numa);
		TEST_ASSERT_EQUAL_INT(PROBE_UNKNOWN, report.pairs[3][4].gbps);
		TEST_ASSERT_EQUAL_INT(450, report.pairs[2][4].gbps);
		TEST_ASSERT_EQUAL_UINT32(1, report.failures_found);
		TEST_ASSERT_EQUAL_STRING("nvmlDeviceGetHandleByIndex_v2", probe_call_name(report.failures[0].call));
		TEST_ASSERT_EQUAL_INT(15, report.failures[0].code);
	}
	machine_set("dgx-h100", ""); /* it comes back */
	reads_right(PROBE_ALL);
}

static void test_a_gpu_that_was_dead_from_the_start_has_an_index_and_no_name(void)
{
	rig_start("dead-gpu", "");
	probe_read(probe, PROBE_ALL, &report);
	TEST_ASSERT_TRUE_MESSAGE(report_is(&machine, &report, true), wrong_text);
	TEST_ASSERT_TRUE_MESSAGE(report_holds_together(&report), wrong_text);
	TEST_ASSERT_EQUAL_STRING("", report.gpus[3].uuid);
	TEST_ASSERT_EQUAL(PROBE_UNHEALTHY, report.gpus[3].health);
	TEST_ASSERT_EQUAL(PROBE_HEALTHY, report.gpus[4].health);
}

static void test_a_link_goes_down_and_comes_back(void)
{
	is_as_described("dgx-1v");
	machine_set("dgx-1v", "down 0 2\ndown 2 5");
	for (uint32_t i = 0; i < 2; i++) {
		reads_right(i == 0 ? PROBE_CHANGES : PROBE_ALL);
		TEST_ASSERT_EQUAL_INT(25, report.pairs[0][3].gbps);
		TEST_ASSERT_EQUAL_INT(25, report.pairs[3][0].gbps);
		TEST_ASSERT_EQUAL_INT(0, report.pairs[6][2].gbps);
		TEST_ASSERT_EQUAL_INT(125, report.gpus[2].link_gbps);
	}
	machine_set("dgx-1v", "");
	reads_right(PROBE_CHANGES);
	is_the_model("DGX-1V");
	rig_stop();
	is_as_described("link-down");
}

static void test_a_link_that_trained_at_half_its_speed_counts_half(void)
{
	rig_start("dgx-h100", "speed 0 0 13281");
	reads_right(PROBE_ALL);
	TEST_ASSERT_EQUAL_INT(10, report.gpus[0].links[0].gbps);
	TEST_ASSERT_EQUAL_INT(435, report.pairs[0][1].gbps);
}

static void test_a_link_that_is_faster_than_its_version_is_believed(void)
{
	rig_start("dgx-h100", "speed 0 0 53125");
	probe_read(probe, PROBE_ALL, &report);
	TEST_ASSERT_EQUAL_INT(50, report.gpus[0].links[0].gbps);
}

static void test_islands_follow_the_links(void)
{
	/* Without what joins the two halves of the cube there are two. */
	rig_start("dgx-1v", "down 0 4\ndown 0 5\ndown 1 4\ndown 1 5\ndown 2 5\ndown 3 5");
	reads_right(PROBE_ALL);
	for (int32_t i = 0; i < 8; i++)
		TEST_ASSERT_EQUAL_INT(i / 4, report.gpus[i].island);
}

static void test_a_fabric_that_is_not_ready_promises_nothing(void)
{
	rig_start("gb200", "fabric 5f2c1e0a9b7d4c3e8f60112233445566 32766 2 0");
	probe_read(probe, PROBE_ALL, &report);
	TEST_ASSERT_EQUAL_INT(PROBE_UNKNOWN, report.pairs[0][1].gbps);
	TEST_ASSERT_EQUAL_INT(2, report.gpus[0].fabric);
	TEST_ASSERT_FALSE(report.gpus[0].cluster_known);
	TEST_ASSERT_EQUAL(PROBE_HEALTHY, report.gpus[0].health);
	machine_set("gb200", "fabric 5f2c1e0a9b7d4c3e8f60112233445566 32766 3 999");
	probe_read(probe, PROBE_CHANGES, &report);
	TEST_ASSERT_EQUAL(PROBE_UNHEALTHY, report.gpus[0].health);
	TEST_ASSERT_EQUAL_STRING("joining the NVLink fabric failed with code 999", report.gpus[0].reason);
}

static void test_gpus_of_two_cliques_are_not_joined(void)
{
	rig_start("gb200", "clique 2 1\nclique 3 1");
	probe_read(probe, PROBE_ALL, &report);
	TEST_ASSERT_EQUAL_INT(900, report.pairs[0][1].gbps);
	TEST_ASSERT_EQUAL_INT(900, report.pairs[2][3].gbps);
	TEST_ASSERT_EQUAL_INT(0, report.pairs[1][2].gbps);
	TEST_ASSERT_EQUAL_INT(1, report.gpus[3].island);
	TEST_ASSERT_EQUAL_INT64(32767, report.gpus[3].clique);
}

static void test_answers_that_cannot_be_are_not_believed(void)
{
	rig_start("dgx-a100", "same-uuid 1 0\nsame-bus 2 0\nmig-mode 3 7\nused 4 40961");
	probe_read(probe, PROBE_ALL, &report);
	TEST_ASSERT_EQUAL_STRING("", report.gpus[1].uuid); /* the first keeps its name */
	TEST_ASSERT_TRUE(report.gpus[0].uuid[0] != '\0');
	TEST_ASSERT_EQUAL(PROBE_HEALTH_UNKNOWN, report.gpus[1].health);
	TEST_ASSERT_FALSE(report.gpus[2].pci.known);
	TEST_ASSERT_TRUE(report.gpus[0].pci.known);
	TEST_ASSERT_EQUAL_INT(PROBE_UNKNOWN, report.gpus[3].mig);
	TEST_ASSERT_EQUAL_INT64(PROBE_UNKNOWN, report.gpus[4].memory_used_mib);
	TEST_ASSERT_EQUAL_UINT32(4, report.failures_found);
	for (uint32_t i = 0; i < 4; i++)
		TEST_ASSERT_EQUAL_INT(PROBE_CODE_ODD, report.failures[i].code);
	TEST_ASSERT_TRUE_MESSAGE(report_holds_together(&report), wrong_text);
}

static void test_what_cannot_be_heard_is_not_called_healthy(void)
{
	static const struct {
		const char *lines, *reason;
		enum probe_health health;
	} cases[] = {
		{"fail nvmlDeviceGetTotalEccErrors 2 999", "its memory errors cannot be read", PROBE_HEALTH_UNKNOWN},
		{"fail nvmlDeviceGetRemappedRows 2 4", "the repairs of its memory cannot be read",
		 PROBE_HEALTH_UNKNOWN},
		{"fail nvmlDeviceRegisterEvents 2 20", "its XIDs cannot be read", PROBE_HEALTH_UNKNOWN},
		{"fail nvmlDeviceGetGpuFabricInfoV 2 10", "the state of its NVLink fabric cannot be read",
		 PROBE_HEALTH_UNKNOWN},
		{"fail nvmlDeviceGetUUID 2 1", "its UUID cannot be read", PROBE_HEALTH_UNKNOWN},
		{"fail nvmlDeviceGetUtilizationRates 2 16", "the driver wants the GPU reset before it is used again",
		 PROBE_UNHEALTHY},
		{"fail nvmlDeviceGetUtilizationRates 2 15", "the GPU is lost: it no longer answers its driver",
		 PROBE_UNHEALTHY},
		{"fail nvmlDeviceGetUtilizationRates 2 999", "", PROBE_HEALTHY},
	};
	for (uint32_t i = 0; i < COUNT(cases); i++) {
		rig_start("dgx-h100", cases[i].lines);
		probe_read(probe, PROBE_ALL, &report);
		TEST_ASSERT_EQUAL_STRING(cases[i].reason, report.gpus[2].reason);
		TEST_ASSERT_EQUAL(cases[i].health, report.gpus[2].health);
		TEST_ASSERT_EQUAL(PROBE_HEALTHY, report.gpus[1].health);
		TEST_ASSERT_EQUAL(PROBE_HEALTHY, report.gpus[3].health);
		rig_stop();
	}
}

static void test_an_xid_is_told_once_and_stays(void)
{
	is_as_described("dgx-a100");
	machine_set("dgx-a100", "xid 1 31\nxid 1 79\nxid 2 43");
	for (uint32_t i = 0; i < 3; i++) {
		reads_right(i == 1 ? PROBE_ALL : PROBE_CHANGES);
		TEST_ASSERT_EQUAL_STRING("XID 79", report.gpus[1].reason);
		TEST_ASSERT_EQUAL(PROBE_HEALTHY, report.gpus[2].health); /* a program's fault, not the GPU's */
	}
}

static void test_a_programs_xid_does_not_excuse_one_of_the_gpu(void)
{
	is_as_described("dgx-a100");
	machine_set("dgx-a100", "xid 1 79\nxid 1 45\nxid 2 74"); /* in one look */
	reads_right(PROBE_CHANGES);
	TEST_ASSERT_EQUAL_STRING("XID 79", report.gpus[1].reason);
	machine_set("dgx-a100", "xid 1 79\nxid 1 45\nxid 2 74\nxid 2 43"); /* in a later one */
	for (uint32_t i = 0; i < 3; i++) {
		reads_right(i == 1 ? PROBE_ALL : PROBE_CHANGES);
		TEST_ASSERT_EQUAL_STRING("XID 79", report.gpus[1].reason);
		TEST_ASSERT_EQUAL_STRING("XID 74", report.gpus[2].reason);
		TEST_ASSERT_EQUAL(PROBE_UNHEALTHY, report.gpus[2].health);
	}
}

static void test_a_slice_made_and_a_process_started_are_seen(void)
{
	is_as_described("dgx-a100");
	machine_set("dgx-a100", "instance 5 7g.40gb 7 7 40192\nprocess 2 900 70\nutilization 2 55\nused 2 71");
	reads_right(PROBE_CHANGES);
	TEST_ASSERT_EQUAL_INT(1, report.gpus[5].slice_count);
	TEST_ASSERT_EQUAL_INT(55, report.gpus[2].utilization);
}

/* ---- drivers ----------------------------------------------------------------------------------------------------- */

static void test_no_library_is_an_answer(void)
{
	probe = probe_open(&(struct probe_options){.nvml = "build/nvml/none.so"});
	probe_read(probe, PROBE_ALL, &report);
	TEST_ASSERT_EQUAL(PROBE_NO_LIBRARY, report.state);
	TEST_ASSERT_EQUAL_UINT32(0, report.gpu_count);
	TEST_ASSERT_EQUAL_STRING_LEN("build/nvml/none.so cannot be loaded: ", report.reason, 37);
	TEST_ASSERT_TRUE_MESSAGE(report_holds_together(&report), wrong_text);
	probe_close(probe);
	probe = probe_open(&(struct probe_options){.nvml = "libcjson.so.1"}); /* a library, but not that one */
	probe_read(probe, PROBE_ALL, &report);
	TEST_ASSERT_EQUAL(PROBE_NO_LIBRARY, report.state);
	TEST_ASSERT_EQUAL_STRING("libcjson.so.1 is no NVML that we know: nvmlInit_v2 or what goes with it is missing",
				 report.reason);
}

static void test_a_driver_that_is_not_there_is_found_when_it_comes(void)
{
	rig_start("dgx-a100", "no-driver");
	for (uint32_t i = 0; i < 2; i++) {
		probe_read(probe, PROBE_ALL, &report);
		TEST_ASSERT_EQUAL(PROBE_NO_DRIVER, report.state);
		TEST_ASSERT_EQUAL_STRING("the NVIDIA driver does not answer: NVML code 9", report.reason);
	}
	machine_set("dgx-a100", "");
	reads_right(PROBE_CHANGES);
	machine_set("dgx-a100", "fail nvmlDeviceGetCount_v2 any 9");
	probe_read(probe, PROBE_CHANGES, &report);
	TEST_ASSERT_EQUAL(PROBE_NO_DRIVER, report.state);
	TEST_ASSERT_EQUAL_STRING("the NVIDIA driver no longer answers: NVML code 9", report.reason);
	machine_set("dgx-a100", "fail nvmlDeviceGetCount_v2 any 999");
	probe_read(probe, PROBE_CHANGES, &report);
	TEST_ASSERT_EQUAL(PROBE_BROKEN, report.state);
	machine_set("dgx-a100", "");
	reads_right(PROBE_CHANGES);
}

static void test_an_old_library_says_less_and_nothing_wrong(void)
{
	static const char *const names[] = {"dgx-1v", "dgx-2", "pcie-4"};
	for (uint32_t i = 0; i < COUNT(names); i++) {
		machine_set(names[i], "process 0 7 7\nused 0 8\nxid 1 79");
		probe = machine_open(FAKE_OLD, names[i]);
		probe_read(probe, PROBE_ALL, &report);
		TEST_ASSERT_EQUAL(PROBE_OK, report.state);
		TEST_ASSERT_TRUE_MESSAGE(report_is(&machine, &report, false), wrong_text);
		TEST_ASSERT_TRUE_MESSAGE(report_holds_together(&report), wrong_text);
		TEST_ASSERT_EQUAL_INT(1, report.gpus[0].process_count);
		TEST_ASSERT_EQUAL_INT64(8, report.gpus[0].memory_used_mib);
		TEST_ASSERT_EQUAL_INT(PROBE_ABSENT, report.gpus[0].mig);
		TEST_ASSERT_EQUAL(PROBE_UNHEALTHY, report.gpus[1].health);
		TEST_ASSERT_EQUAL(PROBE_HEALTHY, report.gpus[2].health);
		/* Where links end is only seen at GPUs: a switch cannot be told from anything else. */
		if (i == 0)
			is_the_model("DGX-1V");
		else
			TEST_ASSERT_EQUAL_INT(i == 1 ? PROBE_UNKNOWN : 0, report.pairs[0][1].gbps);
		for (uint32_t k = 0; k < report.failure_count; k++)
			TEST_ASSERT_EQUAL_INT(PROBE_CODE_MISSING, report.failures[k].code);
		rig_stop();
	}
}

/* ---- a driver that hangs ----------------------------------------------------------------------------------------- */

struct worker {
	pthread_mutex_t lock;
	bool done;
	struct probe *probe;
	struct probe_report report;
};

static void *work(void *argument)
{
	struct worker *worker = argument;
	probe_read(worker->probe, PROBE_ALL, &worker->report);
	pthread_mutex_lock(&worker->lock);
	worker->done = true;
	pthread_mutex_unlock(&worker->lock);
	return NULL;
}

static bool is_done(struct worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	bool done = worker->done;
	pthread_mutex_unlock(&worker->lock);
	return done;
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void test_a_hanging_driver_holds_only_the_thread_that_reads(void)
{
	static struct worker worker = {.lock = PTHREAD_MUTEX_INITIALIZER};
	pthread_t thread;
	machine_set("hang", "");
	worker.probe = machine_open(FAKE, "hang");
	TEST_ASSERT_EQUAL(0, pthread_create(&thread, NULL, work, &worker));
	pause_ms(100);
	TEST_ASSERT_FALSE(is_done(&worker));
	/* Others go on meanwhile, as long as they do not need that call: this one finds no driver to ask. */
	struct probe *other = probe_open(&(struct probe_options){.nvml = "build/nvml/none.so"});
	probe_read(other, PROBE_ALL, &report);
	TEST_ASSERT_EQUAL(PROBE_NO_LIBRARY, report.state);
	probe_close(other);
	TEST_ASSERT_FALSE(is_done(&worker));
	machine_set("dgx-h100", "uuid 1a5b7c0a"); /* the driver recovers */
	for (uint32_t i = 0; i < 500 && !is_done(&worker); i++)
		pause_ms(10);
	TEST_ASSERT_TRUE(is_done(&worker));
	pthread_join(thread, NULL);
	TEST_ASSERT_TRUE_MESSAGE(report_is(&machine, &worker.report, true), wrong_text);
	probe_close(worker.probe);
}

static void test_two_probes_do_not_know_of_each_other(void)
{
	static struct worker workers[3];
	pthread_t threads[3];
	machine_set("dgx-2", "");
	for (uint32_t i = 0; i < COUNT(workers); i++) {
		pthread_mutex_init(&workers[i].lock, NULL);
		workers[i].probe = machine_open(FAKE, "dgx-2");
		TEST_ASSERT_EQUAL(0, pthread_create(&threads[i], NULL, work, &workers[i]));
	}
	for (uint32_t i = 0; i < COUNT(workers); i++) {
		pthread_join(threads[i], NULL);
		TEST_ASSERT_TRUE_MESSAGE(report_is(&machine, &workers[i].report, true), wrong_text);
		probe_close(workers[i].probe);
	}
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

static void test_over_a_limit_is_said(void)
{
	rig_start("dgx-2", "gpus 20");
	probe_read(probe, PROBE_ALL, &report);
	TEST_ASSERT_EQUAL_UINT32(16, report.gpu_count);
	TEST_ASSERT_EQUAL_UINT32(20, report.gpus_found);
	TEST_ASSERT_EQUAL_STRING("the driver has 20 GPUs; only the first 16 are reported", report.reason);
	rig_stop();

	rig_start("dgx-a100", "process 0 1000 1 64\nprocess 1 1000 1 65\nprocess 2 1000 1 128");
	probe_read(probe, PROBE_ALL, &report);
	static const uint32_t found[] = {64, 65, 128};
	for (uint32_t i = 0; i < COUNT(found); i++) {
		TEST_ASSERT_EQUAL_INT(64, report.gpus[i].process_count);
		TEST_ASSERT_EQUAL_UINT32(found[i], report.gpus[i].processes_found);
		TEST_ASSERT_EQUAL_UINT32(1063, report.gpus[i].processes[63].pid);
	}
	TEST_ASSERT_TRUE_MESSAGE(report_is(&machine, &report, true), wrong_text);
	rig_stop();

	rig_start("mig", "instance 0 1g.5gb 1 1 4864"); /* an eighth */
	probe_read(probe, PROBE_ALL, &report);
	TEST_ASSERT_EQUAL_INT(7, report.gpus[0].slice_count);
	TEST_ASSERT_EQUAL_UINT32(8, report.gpus[0].slices_found);
	rig_stop();

	rig_start("dgx-2", "fail all any 999"); /* every call of every GPU fails: more kinds than the list holds */
	machine_set("dgx-2",
		    "fail nvmlDeviceGetUUID any 1\nfail nvmlDeviceGetName any 2\nfail nvmlDeviceGetPciInfo_v3 any 4\n"
		    "fail nvmlDeviceGetMemoryInfo_v2 any 5\nfail nvmlDeviceGetUtilizationRates any 6\n"
		    "fail nvmlDeviceGetComputeRunningProcesses_v3 any 8\nfail nvmlDeviceGetTotalEccErrors any 11\n"
		    "fail nvmlDeviceGetFieldValues any 13\nfail nvmlDeviceGetMigMode any 14\n"
		    "fail nvmlDeviceRegisterEvents any 17");
	probe_read(probe, PROBE_ALL, &report);
	TEST_ASSERT_EQUAL_UINT32(PROBE_FAILURES_MAX, report.failure_count);
	TEST_ASSERT_EQUAL_UINT32(160, report.failures_found);
	TEST_ASSERT_EQUAL_STRING("its UUID cannot be read", report.gpus[0].reason);
	TEST_ASSERT_EQUAL(PROBE_HEALTH_UNKNOWN, report.gpus[0].health);
	TEST_ASSERT_TRUE_MESSAGE(report_is(&machine, &report, false), wrong_text);
}

static void test_a_path_that_is_too_long_is_refused(void)
{
	static char path[600];
	memset(path, 'x', sizeof(path) - 1);
	TEST_ASSERT_NULL(probe_open(&(struct probe_options){.nvml = path}));
	TEST_ASSERT_NULL(probe_open(&(struct probe_options){.hwloc_xml = path}));
	TEST_ASSERT_NULL(probe_open(&(struct probe_options){.proc = path}));
	probe_close(NULL);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_dgx_1v_is_the_cube_mesh_of_the_spec);
	RUN_TEST(test_dgx_2_is_all_to_all_at_150);
	RUN_TEST(test_dgx_a100_is_all_to_all_at_300_and_shares_its_nics_out);
	RUN_TEST(test_dgx_h100_is_all_to_all_at_450);
	RUN_TEST(test_eighteen_gb200_trays_are_one_nvlink_domain_of_72_gpus);
	RUN_TEST(test_pcie_cards_have_no_links_and_islands_of_their_own);
	RUN_TEST(test_slices_are_listed_by_uuid_and_profile);
	RUN_TEST(test_a_slice_that_is_not_named_gets_its_profile_from_its_parts);
	RUN_TEST(test_one_of_everything_that_ails_a_gpu);
	RUN_TEST(test_a_dead_gpu_hides_no_other);
	RUN_TEST(test_a_gpu_that_was_dead_from_the_start_has_an_index_and_no_name);
	RUN_TEST(test_a_link_goes_down_and_comes_back);
	RUN_TEST(test_a_link_that_trained_at_half_its_speed_counts_half);
	RUN_TEST(test_a_link_that_is_faster_than_its_version_is_believed);
	RUN_TEST(test_islands_follow_the_links);
	RUN_TEST(test_a_fabric_that_is_not_ready_promises_nothing);
	RUN_TEST(test_gpus_of_two_cliques_are_not_joined);
	RUN_TEST(test_answers_that_cannot_be_are_not_believed);
	RUN_TEST(test_what_cannot_be_heard_is_not_called_healthy);
	RUN_TEST(test_an_xid_is_told_once_and_stays);
	RUN_TEST(test_a_programs_xid_does_not_excuse_one_of_the_gpu);
	RUN_TEST(test_a_slice_made_and_a_process_started_are_seen);
	RUN_TEST(test_no_library_is_an_answer);
	RUN_TEST(test_a_driver_that_is_not_there_is_found_when_it_comes);
	RUN_TEST(test_an_old_library_says_less_and_nothing_wrong);
	RUN_TEST(test_a_hanging_driver_holds_only_the_thread_that_reads);
	RUN_TEST(test_two_probes_do_not_know_of_each_other);
	RUN_TEST(test_over_a_limit_is_said);
	RUN_TEST(test_a_path_that_is_too_long_is_refused);
	return UNITY_END();
}
