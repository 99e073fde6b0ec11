// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/frond-scheduler/frond/plugin/failpoint"
	"github.com/frond-scheduler/frond/shim"
)

// Permit holds members until the last one has come, then lets all of them go.
func (p *Plugin) Permit(_ context.Context, state fwk.CycleState, pod *v1.Pod, _ string) (*fwk.Status, time.Duration) {
	c := read(state)
	if c == nil {
		return nil, 0
	}
	verdict, err := p.engine.Permit(podKey(pod))
	switch {
	case err != nil && c.member:
		p.reject(p.table.Forsake(pod.UID), reasonDropped) // its node was removed, and its booking with it
		return unschedulable(reasonDropped), 0
	case err != nil:
		return unschedulable(reasonStale), 0
	case !c.member:
		return nil, 0 // a gang of one is complete
	case verdict != shim.Go:
		return fwk.NewStatus(fwk.Wait), p.table.Patience(pod.UID, c.plan)
	}
	members := p.table.Go(pod.UID, c.plan)
	if members == nil { // somebody's wait ran out in this very moment, and the plan with it
		return unschedulable(reasonDropped), 0
	}
	_ = failpoint.Hit("permitted")
	for _, uid := range members {
		if waiting := p.handle.GetWaitingPod(uid); waiting != nil {
			waiting.Allow(Name)
		}
	}
	return nil, 0
}
