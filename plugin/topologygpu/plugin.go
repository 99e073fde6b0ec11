// SPDX-License-Identifier: Apache-2.0

// Package topologygpu is the scheduler plugin: a file per extension point, each of which reads state, asks the engine or
// the gang table, and translates the answer into a Status. Placement is decided by the engine, everything that is not
// about GPUs and fabric by upstream's own plugins.
//
// Locks, from outside in: the scheduling queue's (PreEnqueue, SignPod and hints run under it) or that of the sources (what
// pods refer to), the mirror's or the gang table's, the engine's, the reporter's and those of the stores in plugin/workload. No
// Handle call is made under any of ours.
package topologygpu

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/frond-scheduler/frond/shim"
)

// Name of the plugin in configurations.
const Name = "TopologyGPU"

// Plugin is TopologyGPU in one profile. What profiles share is the Host's.
type Plugin struct {
	*cluster
	handle    fwk.Handle
	framework framework.Framework // the handle, seen as what it is: runs upstream's filters for a whole gang
	verdicts  verdicts            // of this profile's filters
}

var (
	_ fwk.PreEnqueuePlugin    = &Plugin{}
	_ fwk.EnqueueExtensions   = &Plugin{}
	_ fwk.PreFilterPlugin     = &Plugin{}
	_ fwk.PreFilterExtensions = &Plugin{}
	_ fwk.FilterPlugin        = &Plugin{}
	_ fwk.PostFilterPlugin    = &Plugin{}
	_ fwk.PreScorePlugin      = &Plugin{}
	_ fwk.ScorePlugin         = &Plugin{}
	_ fwk.ReservePlugin       = &Plugin{}
	_ fwk.PermitPlugin        = &Plugin{}
	_ fwk.BindPlugin          = &Plugin{}
	_ fwk.PostBindPlugin      = &Plugin{}
	_ fwk.SignPlugin          = &Plugin{}
)

// Name of the plugin.
func (p *Plugin) Name() string { return Name }

// cycle is what one pod carries through its scheduling cycle. Pods that are none of our business carry nothing.
type cycle struct {
	gpus uint32

	// a gang's member
	member bool
	plan   uint64
	node   string // "": anywhere, a member without GPUs

	// a pod in no gang
	refused     bool // for a reason that no eviction changes
	request     shim.Request
	self        shim.Member
	room        rooms // what its claim's selector rules out
	annotations map[string]string
	position    []uint16         // by slot; never written after PreFilter, so clones share it
	feasible    []uint16         // likewise, of the nodes that passed all filters; nil: position says it
	removed     map[string]int64 // GPUs that a what-if has taken off nodes (preemption) or put there (negative)
}

// Clone is called for what-ifs: they change what was removed and nothing else.
func (c *cycle) Clone() fwk.StateData {
	clone := *c
	clone.removed = make(map[string]int64, len(c.removed))
	for node, gpus := range c.removed {
		clone.removed[node] = gpus
	}
	return &clone
}

const stateKey fwk.StateKey = Name

// read is nil for pods that are none of our business.
func read(state fwk.CycleState) *cycle {
	data, err := state.Read(stateKey)
	if err != nil {
		return nil
	}
	c, _ := data.(*cycle)
	return c
}

// probing marks the context in which upstream's filters run on a gang's behalf: our own stay out of it.
type probing struct{}

func isProbing(ctx context.Context) bool { return ctx.Value(probing{}) != nil }

func podKey(pod *v1.Pod) shim.Key { return shim.PodKey(string(pod.UID)) }

func unschedulable(reason string) *fwk.Status { return fwk.NewStatus(fwk.Unschedulable, reason) }

func unresolvable(reason string) *fwk.Status {
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, reason)
}
