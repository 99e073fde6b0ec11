/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe.h - what a GPU node has and how it is: NVML (by dlopen, never linked) and hwloc, merged into one report.
 * Owns its two libraries' state and what it remembers between reads. Never exits, prints, reads the environment or the
 * clock, and decides nothing about placement.
 *
 * A missing library, a missing driver, a dead GPU and a call that fails are answers, not errors: the report says what is
 * known, what is not, and which call answered what. A report whose state is not PROBE_OK has no GPUs because nobody could
 * be asked, not because there are none: who publishes reports must tell the two apart.
 *
 * Threads. There are no globals: probes are independent, each used by one thread at a time. A call into a sick driver may
 * never come back, and nothing here can end it. So the caller reads on a thread of its own, watches it, and on a hang leaves
 * that thread and its probe alone: probe_close() on a probe that is inside probe_read() is not allowed.
 */
#ifndef FROND_PROBE_H
#define FROND_PROBE_H

#include <stdbool.h>
#include <stdint.h>

/* Over a limit the report keeps the first ones and says how many there were: …_count are kept, …_found were there. */
#define PROBE_GPUS_MAX      16u
#define PROBE_LINKS_MAX     36u /* of one GPU; as many as NVML knows */
#define PROBE_SLICES_MAX    7u  /* MIG devices of one GPU */
#define PROBE_PROCESSES_MAX 64u /* of one GPU */
#define PROBE_NICS_MAX      32u
#define PROBE_FAILURES_MAX  128u

#define PROBE_UNKNOWN (-1) /* for every number below: could not be read */
#define PROBE_ABSENT  (-2) /* the driver says that this device has no such thing */

/* In place of an NVML code. */
#define PROBE_CODE_MISSING (-1) /* the driver's library does not have the function */
#define PROBE_CODE_ODD     (-2) /* it answered with something that cannot be */

enum probe_state {
	PROBE_OK,
	PROBE_NO_LIBRARY, /* libnvidia-ml.so.1 cannot be loaded */
	PROBE_NO_DRIVER,  /* the library is there, the driver does not answer it */
	PROBE_BROKEN,     /* the driver answers, but not with its devices */
};

enum probe_health { PROBE_HEALTH_UNKNOWN, PROBE_HEALTHY, PROBE_UNHEALTHY };
#define PROBE_XID_REASON "XID " /* begins the reason of a GPU that a critical XID made unhealthy */

enum probe_remote { PROBE_REMOTE_UNKNOWN, PROBE_REMOTE_GPU, PROBE_REMOTE_SWITCH, PROBE_REMOTE_OTHER };

/* PCIe distance: the ladder and the numbers of NVML, for GPUs and NICs alike. */
enum probe_level {
	PROBE_LEVEL_SAME_BOARD = 0,
	PROBE_LEVEL_ONE_SWITCH = 10,
	PROBE_LEVEL_SWITCHES = 20,
	PROBE_LEVEL_HOST_BRIDGE = 30,
	PROBE_LEVEL_NUMA = 40,
	PROBE_LEVEL_SYSTEM = 50,
};

struct probe_pci {
	bool known;
	uint32_t domain, bus, device;
};

struct probe_link {      /* one NVLink of a GPU */
	int32_t up;      /* 1, 0 or PROBE_UNKNOWN */
	int32_t version; /* as NVML counts them */
	int32_t line_mbps;
	int32_t gbps; /* one direction; 0 when down */
	enum probe_remote remote;
	int32_t peer; /* a GPU of this node */
	struct probe_pci remote_pci;
};

struct probe_slice { /* a MIG device */
	char uuid[96];
	char profile[32]; /* "1g.5gb" */
};

struct probe_process {
	uint32_t pid;
	int64_t memory_mib;
	char pod[40]; /* UID of its pod; "": in none, or not known */
};

struct probe_gpu {
	uint32_t index;  /* the driver's */
	char uuid[96];   /* "": never seen */
	char model[96];  /* "": not known */
	bool remembered; /* uuid, model, memory or PCI address come from an earlier read */
	struct probe_pci pci;
	int64_t memory_mib, memory_used_mib;
	int32_t utilization; /* percent */

	enum probe_health health;
	char reason[120];                                 /* why it is not healthy */
	int64_t ecc_errors;                               /* uncorrectable, since the last reset */
	int32_t rows_failed, rows_pending, pages_pending; /* repairs of memory: 1 yes, 0 no */
	int32_t xid; /* the last critical one since the probe was opened; 0: none */

	int32_t link_count; /* NVLinks of the GPU; PROBE_UNKNOWN: nothing is said about them */
	uint32_t links_found;
	struct probe_link links[PROBE_LINKS_MAX];
	int32_t link_gbps; /* all of them together */

	int32_t fabric; /* NVML's registration state, 3: complete */
	int32_t fabric_status;
	int64_t clique;
	bool cluster_known;
	uint8_t cluster[16]; /* all zero: a fabric that ends at the node */

	int32_t mig; /* 1 on, 0 off */
	int32_t slice_count;
	uint32_t slices_found;
	struct probe_slice slices[PROBE_SLICES_MAX];

	int32_t process_count;
	uint32_t processes_found;
	struct probe_process processes[PROBE_PROCESSES_MAX]; /* by PID */

	int32_t numa;
	int32_t rail; /* its nearest NIC; where several GPUs share several, each takes another */
	int32_t rail_level;
	int32_t island;       /* GPUs that known links join have the same, numbered by their lowest index */
	uint64_t unsupported; /* a bit for each call that this GPU does not support */
};

struct probe_pair {
	int32_t gbps; /* one direction; 0: PCIe or the host only; the same both ways */
	enum probe_remote through;
	int32_t level;                           /* enum probe_level */
	int32_t p2p_read, p2p_write, p2p_nvlink; /* 1 yes, 0 no */
};

struct probe_nic {
	char name[32]; /* of its RDMA device, else of its network device */
	struct probe_pci pci;
	int32_t numa;
};

struct probe_failure {
	int32_t gpu; /* -1: of none */
	uint32_t call;
	int32_t code; /* NVML's, or PROBE_CODE_… */
	uint32_t times;
};

struct probe_report {
	enum probe_state state;
	char reason[256]; /* a sentence when the state is not PROBE_OK, or more GPUs were found than are reported */
	char driver[80];
	uint32_t gpu_count, gpus_found;
	struct probe_gpu gpus[PROBE_GPUS_MAX]; /* by index, without gaps */
	struct probe_pair pairs[PROBE_GPUS_MAX][PROBE_GPUS_MAX];
	bool host_known; /* hwloc answered */
	uint32_t nic_count, nics_found;
	struct probe_nic nics[PROBE_NICS_MAX]; /* by PCI address: the position is the rail */
	uint32_t failure_count, failures_found;
	struct probe_failure failures[PROBE_FAILURES_MAX];
};

struct probe_options {
	const char *nvml;      /* path of the library; NULL: libnvidia-ml.so.1 where the loader finds it */
	const char *hwloc_xml; /* NULL: this machine */
	const char *proc;      /* NULL: /proc */
};

enum probe_depth {
	PROBE_ALL,
	PROBE_CHANGES, /* what does not change while a link is up and a GPU is there comes from the last whole read */
};

struct probe;

/* Copies the options; touches neither library. NULL: out of memory or a path too long. */
struct probe *probe_open(const struct probe_options *options);

/* Fills all of *report, whatever happens. A driver that was not there is looked for again every time. */
void probe_read(struct probe *probe, enum probe_depth depth, struct probe_report *report);

void probe_close(struct probe *probe); /* NULL is fine */

/* Of a failure or a bit of probe_gpu.unsupported: the name of NVML's function; NULL after the last one. */
const char *probe_call_name(uint32_t call);

#endif
