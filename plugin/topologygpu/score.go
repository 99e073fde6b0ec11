// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// PreScore keeps Score away from pods that have no order.
func (p *Plugin) PreScore(_ context.Context, state fwk.CycleState, _ *v1.Pod, _ []fwk.NodeInfo) *fwk.Status {
	if c := read(state); c == nil || c.member {
		return fwk.NewStatus(fwk.Skip)
	}
	return nil
}

// Score is 100 for the node that the engine likes best, 99 for the next, 0 beyond the hundredth: soft preferences of
// other plugins count against it through the profile's weights.
func (p *Plugin) Score(_ context.Context, state fwk.CycleState, _ *v1.Pod, info fwk.NodeInfo) (int64, *fwk.Status) {
	c := read(state)
	if c == nil || c.member {
		return 0, nil
	}
	slot, known := p.mirror.Slot(info.Node().Name)
	if !known || int64(slot) >= int64(len(c.position)) {
		return 0, nil
	}
	return max(fwk.MaxScore-int64(c.position[slot]), 0), nil
}

// ScoreExtensions: positions need no normalising.
func (p *Plugin) ScoreExtensions() fwk.ScoreExtensions { return nil }
