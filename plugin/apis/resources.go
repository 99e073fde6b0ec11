// SPDX-License-Identifier: Apache-2.0

// Package apis names the kinds that Frond reads and writes beside those of Kubernetes, and gives the parts of them that
// programs need as Go types. The definitions themselves are manifests/crds; nothing here is generated. Objects travel as
// unstructured ones, because the API server may serve none of these kinds.
package apis

import "k8s.io/apimachinery/pkg/runtime/schema"

// Groups and versions.
var (
	GPU        = schema.GroupVersion{Group: "gpu.scheduling", Version: "v1"}
	Topology   = schema.GroupVersion{Group: "topology.scheduler", Version: "v1alpha1"}
	Scheduling = schema.GroupVersion{Group: "scheduling.x-k8s.io", Version: "v1alpha1"}
)

// Resources.
var (
	GpuClaims                = GPU.WithResource("gpuclaims")
	GpuNodeStatuses          = GPU.WithResource("gpunodestatuses")
	SchedulerConfigs         = Topology.WithResource("schedulerconfigs")
	TopologySchedulerConfigs = Topology.WithResource("topologyschedulerconfigs")
	PodGroups                = Scheduling.WithResource("podgroups")
)

// Kinds.
const (
	KindGpuClaim                = "GpuClaim"
	KindGpuNodeStatus           = "GpuNodeStatus"
	KindSchedulerConfig         = "SchedulerConfig"
	KindTopologySchedulerConfig = "TopologySchedulerConfig"
)

// MessageMax is how long a condition's message may be, by every definition of ours.
const MessageMax = 1024
