// SPDX-License-Identifier: Apache-2.0

package apis

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// GpuNodeStatus is what a node's agent reports (reference 4). It is named after its node.
type GpuNodeStatus struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Status NodeReport `json:"status,omitempty"`
}

// NodeReport is the GPUs of a node.
type NodeReport struct {
	Total      int32              `json:"total"`
	Heartbeat  metav1.Time        `json:"heartbeat"`
	Devices    []Device           `json:"devices,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Device is one GPU.
type Device struct {
	ID            string   `json:"id"`
	Index         int32    `json:"index"`
	Model         string   `json:"model,omitempty"`
	MemoryMiB     int64    `json:"memoryMiB,omitempty"`
	Health        Health   `json:"health"`
	Reason        string   `json:"reason,omitempty"`   // why it is not healthy
	NUMANode      *int32   `json:"numaNode,omitempty"` // nil: not known
	PCIBusID      string   `json:"pciBusId,omitempty"`
	Rail          string   `json:"rail,omitempty"`   // the nearest NIC
	Clique        string   `json:"clique,omitempty"` // NVLink domain beyond the node
	Island        int32    `json:"island"`
	BandwidthGBps int32    `json:"bandwidthGBps,omitempty"`
	Links         []Link   `json:"links,omitempty"`
	MIGMode       bool     `json:"migMode,omitempty"`
	MIG           []Slice  `json:"mig,omitempty"`
	Utilization   int32    `json:"utilization,omitempty"` // percent
	MemoryUsedMiB int64    `json:"memoryUsedMiB,omitempty"`
	InUseBy       []string `json:"inUseBy,omitempty"` // pods, by UID or as namespace/name
}

// Link joins a device to another one of its node.
type Link struct {
	Peer          int32  `json:"peer"` // the other's index
	Kind          string `json:"kind,omitempty"`
	BandwidthGBps int32  `json:"bandwidthGBps"`
}

// Slice is a part of a device under MIG.
type Slice struct {
	ID      string `json:"id"`
	Profile string `json:"profile"`
}

// Health of a device.
type Health string

const (
	Healthy       Health = "Healthy"
	Unhealthy     Health = "Unhealthy"
	HealthUnknown Health = "Unknown"
)

// Conditions of a GpuNodeStatus, written by the scheduler.
const (
	ConditionAccepted = "Accepted" // the report is believed
	ConditionFresh    = "Fresh"    // its agent is alive
)
