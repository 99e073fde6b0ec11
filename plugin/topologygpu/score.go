// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"context"
	"fmt"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/frond-scheduler/frond/plugin/demand"
	"github.com/frond-scheduler/frond/shim"
)

// PreScore keeps Score away from pods that have no order, and has the engine order what upstream's filters have left: in
// the order of PreFilter a hundred nodes without CPU could stand before the first that admits the pod.
func (p *Plugin) PreScore(_ context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	c := read(state)
	if c == nil || c.member {
		return fwk.NewStatus(fwk.Skip)
	}
	names := make([]string, len(nodes))
	for i, info := range nodes {
		names[i] = info.Node().Name
	}
	slots := p.mirror.Slots(names)
	thrift := p.thrift(pod, nodes, slots)
	if thrift == nil && c.all(slots) {
		return nil
	}
	plan, position, _, err := p.engine.Order(c.request, c.self, c.annotations, p.among(c, names), thrift)
	if shim.IsCode(err, shim.CodeUnknown) { // a node has left meanwhile: the order of PreFilter stands
		return nil
	}
	if err != nil {
		return fwk.AsStatus(fmt.Errorf("ordering the feasible nodes for pod %s: %w", c.request.Name, err))
	}
	if plan.Outcome == shim.Placed { // else the cluster has changed since, and Reserve will see that
		c.feasible = position
	}
	return nil
}

// all: every node that has a position passed the filters, so the positions stand.
func (c *cycle) all(slots []uint32) bool {
	ordered, passed := 0, 0
	for _, position := range c.position {
		if position != shim.NoPosition {
			ordered++
		}
	}
	for _, slot := range slots {
		if int64(slot) < int64(len(c.position)) && c.position[slot] != shim.NoPosition {
			passed++
		}
	}
	return ordered == passed
}

// among is the room for a pod that may go to these nodes today; what it could ever have is as before.
func (p *Plugin) among(c *cycle, names []string) rooms {
	room := closed(p.mirror.Known(names).Others, math.MaxUint16)
	for _, never := range c.room { // none of them has passed
		if at, found := slices.BinarySearchFunc(room, never, compareRooms); found {
			room[at].Ever = never.Ever
		}
	}
	return room
}

// thrift is what the engine wants to know of CPU and memory for a pod in no gang; nil: nobody is expected.
func (p *Plugin) thrift(pod *v1.Pod, nodes []fwk.NodeInfo, slots []uint32) *shim.Thrift {
	kinds := p.demand.Kinds()
	if len(kinds) == 0 {
		return nil
	}
	thrift := &shim.Thrift{Asks: demand.Asks(pod), Kinds: kinds, Left: make([]shim.Left, p.engine.Limits().Nodes)}
	for i, info := range nodes {
		if int64(slots[i]) < int64(len(thrift.Left)) {
			has, used := info.GetAllocatable(), info.GetRequested()
			thrift.Left[slots[i]] = demand.Left(has.GetMilliCPU()-used.GetMilliCPU(), has.GetMemory()-used.GetMemory())
		}
	}
	return thrift
}

// Score is 100 for the node that the engine likes best, 99 for the next, 0 beyond the hundredth: soft preferences of
// other plugins count against it through the profile's weights.
func (p *Plugin) Score(_ context.Context, state fwk.CycleState, _ *v1.Pod, info fwk.NodeInfo) (int64, *fwk.Status) {
	c := read(state)
	if c == nil || c.member {
		return 0, nil
	}
	order := c.position
	if c.feasible != nil {
		order = c.feasible
	}
	slot, known := p.mirror.Slot(info.Node().Name)
	if !known || int64(slot) >= int64(len(order)) {
		return 0, nil
	}
	return max(fwk.MaxScore-int64(order[slot]), 0), nil
}

// ScoreExtensions: positions need no normalising.
func (p *Plugin) ScoreExtensions() fwk.ScoreExtensions { return nil }
