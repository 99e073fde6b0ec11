// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/frond-scheduler/frond/shim"
)

// Reasons that a node is refused for.
const (
	reasonElsewhere = "node(s) are not where the gang's plan puts this pod"
	reasonUnknown   = "node(s) are not in the fabric"
	reasonNoGPUs    = "node(s) have no fitting GPUs free"
)

// Filter refuses every node but the planned one: nominated nodes and hints are tried before PreFilterResult counts. For
// single pods it looks the node up in the engine's order.
func (p *Plugin) Filter(_ context.Context, state fwk.CycleState, _ *v1.Pod, info fwk.NodeInfo) *fwk.Status {
	c := read(state)
	if c == nil {
		return nil
	}
	node := info.Node().Name
	if c.member {
		if c.node != "" && c.node != node {
			return unresolvable(reasonElsewhere)
		}
		return nil
	}
	slot, known := p.mirror.Slot(node)
	if !known || int64(slot) >= int64(len(c.position)) {
		return unresolvable(reasonUnknown)
	}
	if c.position[slot] != shim.NoPosition {
		return nil
	}
	if c.removed[node] > 0 && p.fitsOnceEmpty(c, slot, info) {
		return nil
	}
	return unschedulable(reasonNoGPUs)
}

// fitsOnceEmpty answers a preemption what-if: the engine says whether the pod could ever run there, so that nothing is
// evicted from a node that is too slow or too small; the node's own count says whether enough has been removed.
func (p *Plugin) fitsOnceEmpty(c *cycle, slot uint32, info fwk.NodeInfo) bool {
	free := int64(0)
	for _, name := range p.reader.Resources() {
		free += info.GetAllocatable().GetScalarResources()[name] - info.GetRequested().GetScalarResources()[name]
	}
	if free < int64(c.gpus) {
		return false
	}
	request := c.request
	request.OnlySlot = slot
	plan, _, _, err := p.engine.Plan(request, []shim.Member{c.self}, c.annotations, c.room)
	return err == nil && (plan.Outcome == shim.Placed || plan.Outcome == shim.Waits)
}
