// SPDX-License-Identifier: Apache-2.0

// Package nodereport reads GpuNodeStatus objects: what an agent says of the GPUs of its node becomes a report that is
// whole, free of contradictions and in the engine's terms, or a sentence that says why not. It trusts nothing: the object
// may have been written by hand, or by an agent that is broken. It keeps nothing and decides nothing.
package nodereport

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/shim"
)

// Kind of the objects.
const Kind = "GpuNodeStatus"

// Resource that agents write, one object a node.
func Resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "gpu.scheduling", Version: "v1", Resource: "gpunodestatuses"}
}

// Report is what is known of a node's GPUs. Whoever shares one does not change it.
type Report struct {
	Node      string
	UID       types.UID // of the object
	Devices   []Device  // by index
	Model     string    // of all devices; "": they differ, or nobody said
	Topology  shim.Topology
	Unhealthy uint32    // bit i: device i cannot be given away whole: it is not healthy, or it is in MIG mode, with or without slices
	Heartbeat time.Time // zero: none was written
}

// Device is one GPU.
type Device struct {
	ID      string
	InUseBy []string // pods, by UID or as namespace/name
}

// Healthy devices, how many.
func (r *Report) Healthy() uint32 {
	healthy := uint32(0)
	for i := range r.Devices {
		healthy += 1 - r.Unhealthy>>i&1
	}
	return healthy
}

// Index of the device with that id.
func (r *Report) Index(id string) (uint32, bool) {
	for i := range r.Devices {
		if r.Devices[i].ID == id {
			return uint32(i), true
		}
	}
	return 0, false
}

// UsedBy are the devices, as a mask, that the report says a pod uses.
func (r *Report) UsedBy(uid types.UID, name types.NamespacedName) (mask uint32) {
	full := name.String()
	for i := range r.Devices {
		for _, pod := range r.Devices[i].InUseBy {
			if pod == string(uid) || pod == full {
				mask |= 1 << i
			}
		}
	}
	return mask
}

// Same says whether two reports differ in nothing but their heartbeats.
func (r *Report) Same(other *Report) bool {
	return r.Node == other.Node && r.UID == other.UID && r.Model == other.Model && r.Unhealthy == other.Unhealthy &&
		r.Topology == other.Topology && slices.EqualFunc(r.Devices, other.Devices, func(a, b Device) bool {
		return a.ID == b.ID && slices.Equal(a.InUseBy, b.InUseBy)
	})
}

// Fits says whether a report can be true of a node that lets pods have so many GPUs. Device plugins take a device that
// fails out of allocatable, so a report may have more devices than that; it never has fewer, unless it has lost one
// that is there. A GPU that really goes away leaves allocatable, too, and then the report fits.
func (r *Report) Fits(allocatable uint32) bool { return len(r.Devices) >= int(allocatable) }

// Replicated says whether a node lets pods have replicas of the devices instead of the devices (time-slicing, MPS, HAMi): so
// many times as many, of those that are healthy or of all, or more than a machine can have.
func (r *Report) Replicated(allocatable uint32) bool {
	times := func(devices uint32) bool { return devices > 0 && allocatable > devices && allocatable%devices == 0 }
	return len(r.Devices) > 0 && (allocatable > shim.GPUsMax || times(uint32(len(r.Devices))) || times(r.Healthy()))
}

// Period is how often agents are heard of; Patience is how long a silent one is not worth a word.
const (
	Period   = 30 * time.Second
	Patience = 3 * Period
)

// Got stands in the sentences of Stale before what was there, which is another with every heartbeat.
const Got = ", got "

// Stale is a sentence when the heartbeat in the report is too old, else "". A clock that runs ahead is no sign of life either.
// It counts for agents that have no Lease.
func (r *Report) Stale(now time.Time) string {
	age := now.Sub(r.Heartbeat)
	switch {
	case r.Heartbeat.IsZero():
		return "status.heartbeat: is missing, so nobody knows how old the report is"
	case age > Patience:
		return fmt.Sprintf("status.heartbeat: must not be older than %s%s%s", Patience, Got, r.Heartbeat.UTC().Format(time.RFC3339))
	case age < -Patience:
		return fmt.Sprintf("status.heartbeat: must not lie in the future by more than %s%s%s", Patience, Got, r.Heartbeat.UTC().Format(time.RFC3339))
	default:
		return ""
	}
}

// Object stands for the GpuNodeStatus in events.
func (r *Report) Object() *unstructured.Unstructured { return reference(r.Node, r.UID) }

func reference(name string, uid types.UID) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(Resource().GroupVersion().WithKind(Kind))
	object.SetName(name)
	object.SetUID(uid)
	return object
}
