/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.h - a GPU node as one of our description files tells it: what the fake driver answers, and what a test expects.
 * Owns the format (README.md); a line that it does not know is refused with its number. Later lines add to earlier ones, so
 * a test appends "lost 3" to a file and has the same machine with a dead GPU.
 */
#ifndef FROND_TEST_MACHINE_H
#define FROND_TEST_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#define MACHINE_GPUS_MAX      24u /* more than the probe's limit, so that a test can go over it */
#define MACHINE_LINKS_MAX     36u
#define MACHINE_INSTANCES_MAX 8u
#define MACHINE_PROCESSES_MAX 128u
#define MACHINE_NICS_MAX      40u
#define MACHINE_XIDS_MAX      16u
#define MACHINE_RULES_MAX     16u
#define MACHINE_BYTES_MAX     8192u
#define MACHINE_ON_SWITCH     (-1)
#define MACHINE_NO_SWITCH     UINT32_MAX

struct machine_place { /* where on PCIe something sits */
	uint32_t domain, bus, device;
	uint32_t numa, root, plx; /* host bridge and PCIe switch below it, numbered through the machine */
};

struct machine_link {
	int32_t peer; /* a GPU, or MACHINE_ON_SWITCH */
	uint32_t peer_link, nvswitch;
	bool up;
	uint32_t mbps;
};

struct machine_instance {
	char profile[24];
	uint32_t slices, compute_slices, memory_mib;
};

struct machine_process {
	uint32_t pid;
	uint64_t memory_mib;
};

struct machine_gpu {
	bool placed, lost, ecc_on, mig_on, remap_failed, remap_pending, pages_pending;
	struct machine_place place;
	uint32_t link_count, instance_count, process_count, xid_count;
	struct machine_link links[MACHINE_LINKS_MAX];
	struct machine_instance instances[MACHINE_INSTANCES_MAX];
	struct machine_process processes[MACHINE_PROCESSES_MAX];
	uint32_t xids[MACHINE_XIDS_MAX];
	uint32_t utilization;
	uint64_t used_mib, ecc_errors;
	uint32_t twin;             /* shows the UUID of GPU twin - 1; 0: its own */
	uint32_t mig_odd;          /* a mode that there is not; 0: none */
	uint32_t clique_elsewhere; /* added to the machine's */
};

struct machine_nic {
	char name[16];
	struct machine_place place;
};

struct machine_rule {      /* what a function does instead of answering */
	char function[64]; /* "all": every one but init and shutdown */
	int32_t gpu;       /* -1: whichever */
	uint32_t code;     /* 0: hangs until the line is gone */
};

struct machine {
	char driver[40], model[64], uuid[9];
	uint32_t cuda, gpu_count, nic_count, numa_count, memory_mib, node, rule_count;
	uint32_t major, minor, link_version, link_mbps;
	bool no_driver, fabric, has_mig, has_remap;
	uint32_t fabric_state, fabric_status, clique;
	uint8_t cluster[16];
	uint32_t inject_percent, garbage_percent;
	uint64_t seed;
	uint32_t byte_count; /* where the dice come from when there are any; after the last one nothing odd happens */
	uint8_t bytes[MACHINE_BYTES_MAX];
	struct machine_gpu gpus[MACHINE_GPUS_MAX];
	struct machine_nic nics[MACHINE_NICS_MAX];
	struct machine_rule rules[MACHINE_RULES_MAX];
};

/* 0, or the number of the bad line; UINT32_MAX: the file cannot be read. */
uint32_t machine_read(const char *path, struct machine *out);

void machine_uuid(const struct machine *machine, uint32_t gpu, char out[48]);
void machine_mig_uuid(const struct machine *machine, uint32_t gpu, uint32_t instance, char out[48]);

/* NVML's ladder: 10 one PCIe switch, 30 one host bridge, 40 one NUMA node, 50 further. */
uint32_t machine_level(const struct machine_place *a, const struct machine_place *b);

#endif
