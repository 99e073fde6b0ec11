/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/host.h"

#include <hwloc.h>
#include <stdio.h>
#include <string.h>

#define CLASS_NETWORK 0x02u
#define DEPTH_MAX     64u /* of bridges below bridges */
#define SWITCH_HOPS   4   /* up to a port of the switch, across it, down again */

static hwloc_topology_t topology_load(const char *xml);
static void nics_find(hwloc_topology_t topology, struct host *out, hwloc_obj_t *nodes);
static int32_t numa_of(hwloc_topology_t topology, hwloc_obj_t device);
static int32_t level_between(hwloc_topology_t topology, hwloc_obj_t a, hwloc_obj_t b, int32_t *hops);

bool host_read(const char *xml, const struct probe_pci *gpus, uint32_t gpu_count, struct host *out)
{
	hwloc_topology_t topology = topology_load(xml);
	if (topology == NULL)
		return false;
	hwloc_obj_t nodes[PROBE_NICS_MAX];
	memset(out, 0, sizeof(*out));
	nics_find(topology, out, nodes);
	out->gpu_count = gpu_count;
	for (uint32_t i = 0; i < gpu_count; i++) {
		hwloc_obj_t gpu = gpus[i].known ? hwloc_get_pcidev_by_busid(topology, gpus[i].domain, gpus[i].bus,
									    gpus[i].device, 0)
						: NULL;
		out->gpus[i] = gpus[i];
		out->numa[i] = gpu == NULL ? PROBE_UNKNOWN : numa_of(topology, gpu);
		for (uint32_t nic = 0; nic < out->nic_count; nic++)
			out->level[i][nic] = gpu == NULL ? PROBE_UNKNOWN
							 : level_between(topology, gpu, nodes[nic], &out->hops[i][nic]);
	}
	hwloc_topology_destroy(topology);
	return true;
}

/* Without caches, cores and what else nobody asks for here; without components that open GPU drivers, which may hang. */
static hwloc_topology_t topology_load(const char *xml)
{
	static const char *const unwanted[] = {"nvml", "cuda", "opencl", "rsmi", "levelzero", "gl"};
	hwloc_topology_t topology = NULL;
	if (hwloc_topology_init(&topology) != 0)
		return NULL;
	for (uint32_t i = 0; i < sizeof(unwanted) / sizeof(unwanted[0]); i++)
		hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, unwanted[i]);
	bool good = hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_STRUCTURE) == 0 &&
		    hwloc_topology_set_cache_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE) == 0 &&
		    hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) == 0 &&
		    (xml == NULL || hwloc_topology_set_xml(topology, xml) == 0) && hwloc_topology_load(topology) == 0;
	if (good)
		return topology;
	hwloc_topology_destroy(topology);
	return NULL;
}

/* ---- NICs -------------------------------------------------------------------------------------------------------- */

static struct probe_pci pci_of(hwloc_obj_t device)
{
	const struct hwloc_pcidev_attr_s *pci = &device->attr->pcidev;
	return (struct probe_pci){.known = true, .domain = pci->domain, .bus = pci->bus, .device = pci->dev};
}

static hwloc_obj_t device_below(hwloc_obj_t pci, hwloc_obj_osdev_type_t type)
{
	for (hwloc_obj_t child = pci->io_first_child; child != NULL; child = child->next_sibling)
		if (child->type == HWLOC_OBJ_OS_DEVICE && child->attr->osdev.type == type)
			return child;
	return NULL;
}

static bool any_rdma(hwloc_topology_t topology)
{
	for (hwloc_obj_t at = NULL; (at = hwloc_get_next_osdev(topology, at)) != NULL;)
		if (at->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS)
			return true;
	return false;
}

static bool before(const struct probe_pci *a, const struct probe_pci *b)
{
	if (a->domain != b->domain)
		return a->domain < b->domain;
	return a->bus != b->bus ? a->bus < b->bus : a->device < b->device;
}

/* A rail is a NIC that does RDMA; a node that has none has rails of plain network devices. */
static void nics_find(hwloc_topology_t topology, struct host *out, hwloc_obj_t *nodes)
{
	hwloc_obj_osdev_type_t wanted = any_rdma(topology) ? HWLOC_OBJ_OSDEV_OPENFABRICS : HWLOC_OBJ_OSDEV_NETWORK;
	for (hwloc_obj_t at = NULL; (at = hwloc_get_next_pcidev(topology, at)) != NULL;) {
		hwloc_obj_t device = device_below(at, wanted);
		if (device == NULL || at->attr->pcidev.class_id >> 8 != CLASS_NETWORK)
			continue;
		out->nics_found++;
		struct probe_nic nic = {.pci = pci_of(at), .numa = numa_of(topology, at)};
		snprintf(nic.name, sizeof(nic.name), "%s", device->name == NULL ? "" : device->name);
		uint32_t place = out->nic_count;
		while (place > 0 && before(&nic.pci, &out->nics[place - 1].pci))
			place--;
		if (place == PROBE_NICS_MAX)
			continue;
		uint32_t moved = (out->nic_count < PROBE_NICS_MAX ? out->nic_count : PROBE_NICS_MAX - 1) - place;
		memmove(&out->nics[place + 1], &out->nics[place], moved * sizeof(out->nics[0]));
		memmove(&nodes[place + 1], &nodes[place], moved * sizeof(nodes[0]));
		out->nics[place] = nic;
		nodes[place] = at;
		if (out->nic_count < PROBE_NICS_MAX)
			out->nic_count++;
	}
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

/* The part of the processor tree whose local memory the node is. */
static hwloc_obj_t owner_of(hwloc_obj_t node)
{
	while (node != NULL && hwloc_obj_type_is_memory(node->type))
		node = node->parent;
	return node;
}

static bool is_inside(hwloc_obj_t part, hwloc_obj_t whole)
{
	while (part != NULL && part != whole)
		part = part->parent;
	return part != NULL;
}

/* The NUMA node that is local to the smallest part of the tree that the device hangs on. Where that part has several, as
 * when a GPU's own memory is a node, the first is the processors'. A device that hangs above all nodes is nearest to none. */
static int32_t numa_of(hwloc_topology_t topology, hwloc_obj_t device)
{
	hwloc_obj_t host = hwloc_get_non_io_ancestor_obj(topology, device), best = NULL;
	for (hwloc_obj_t node = NULL;
	     (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != NULL;) {
		hwloc_obj_t owner = owner_of(node);
		if (owner == NULL || !is_inside(host, owner) || node->os_index > INT32_MAX)
			continue;
		if (best == NULL || owner->depth > owner_of(best)->depth ||
		    (owner == owner_of(best) && node->os_index < best->os_index))
			best = node;
	}
	return best == NULL ? PROBE_UNKNOWN : (int32_t)best->os_index;
}

static uint32_t depth_of(hwloc_obj_t device)
{
	uint32_t depth = 0;
	for (; device != NULL && hwloc_obj_type_is_io(device->type) && depth < DEPTH_MAX; device = device->parent)
		depth++;
	return depth;
}

/* The lowest bridge above both decides: below a PCI-PCI bridge the host is not on the way. */
static int32_t level_between(hwloc_topology_t topology, hwloc_obj_t a, hwloc_obj_t b, int32_t *hops)
{
	uint32_t deep_a = depth_of(a), deep_b = depth_of(b);
	*hops = 0;
	while (a != b && (deep_a > 0 || deep_b > 0)) {
		if (deep_a >= deep_b) {
			a = a->parent;
			deep_a--;
			++*hops;
		} else {
			b = b->parent;
			deep_b--;
			++*hops;
		}
	}
	if (a == b && a->type == HWLOC_OBJ_BRIDGE) {
		if (a->attr->bridge.upstream_type != HWLOC_OBJ_BRIDGE_PCI)
			return PROBE_LEVEL_HOST_BRIDGE;
		return *hops <= SWITCH_HOPS ? PROBE_LEVEL_ONE_SWITCH : PROBE_LEVEL_SWITCHES;
	}
	*hops = 0; /* the host is on the way, which costs more than bridges */
	int32_t left = numa_of(topology, a), right = numa_of(topology, b);
	return left >= 0 && left == right ? PROBE_LEVEL_NUMA : PROBE_LEVEL_SYSTEM;
}
