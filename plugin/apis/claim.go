// SPDX-License-Identifier: Apache-2.0

package apis

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// GpuClaim is what a pod asks of the GPUs inside its node (reference 3.2).
type GpuClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   GpuClaimSpec   `json:"spec"`
	Status GpuClaimStatus `json:"status,omitempty"`
}

// GpuClaimSpec is what the user wrote. The engine decides what it means.
type GpuClaimSpec struct {
	Devices  ClaimDevices   `json:"devices,omitempty"`
	Topology ClaimTopology  `json:"topology,omitempty"`
	Selector *ClaimSelector `json:"selector,omitempty"`
	GangRef  string         `json:"gangRef,omitempty"`
}

// ClaimDevices says how many GPUs, and which.
type ClaimDevices struct {
	Count          int32                `json:"count,omitempty"`
	Policy         string               `json:"policy,omitempty"`
	PreferIDs      []intstr.IntOrString `json:"preferIds,omitempty"`
	Exclusivity    string               `json:"exclusivity,omitempty"`
	MemoryMiB      int64                `json:"memoryMiB,omitempty"`
	ComputePercent int32                `json:"computePercent,omitempty"`
	MIGProfile     string               `json:"migProfile,omitempty"`
}

// ClaimTopology says what must hold between them.
type ClaimTopology struct {
	Mode             string `json:"mode,omitempty"`
	Locality         string `json:"locality,omitempty"`
	MinBandwidthGBps int32  `json:"minBandwidthGBps,omitempty"`
}

// ClaimSelector says on which nodes.
type ClaimSelector struct {
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
}

// GpuClaimStatus is what the scheduler wrote.
type GpuClaimStatus struct {
	Phase              ClaimPhase         `json:"phase,omitempty"`
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	NodeName           string             `json:"nodeName,omitempty"`
	GPUIDs             []string           `json:"gpuIds,omitempty"`
	Pod                *ClaimPod          `json:"pod,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// ClaimPod is the pod that a claim serves; it is in the claim's namespace.
type ClaimPod struct {
	Name string    `json:"name,omitempty"`
	UID  types.UID `json:"uid,omitempty"`
}

// ClaimPhase is how far a claim has come.
type ClaimPhase string

const (
	ClaimPending  ClaimPhase = "Pending"
	ClaimReserved ClaimPhase = "Reserved" // its GPUs are kept for its pod
	ClaimBound    ClaimPhase = "Bound"    // its pod has its node and its GPUs
	ClaimReleased ClaimPhase = "Released" // its pod has ended; another one may use it
	ClaimFailed   ClaimPhase = "Failed"   // what it asks for is refused
)

// Conditions of a claim.
const (
	ConditionReserved = "Reserved"
	ConditionBound    = "Bound"
	ConditionFailed   = "Failed"
)
