// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/frond-scheduler/frond/plugin/failpoint"
)

// Permit holds members until the last one has come; then the lifecycle lets all of them go.
func (p *Plugin) Permit(_ context.Context, state fwk.CycleState, pod *v1.Pod, _ string) (*fwk.Status, time.Duration) {
	c := read(state)
	if c == nil {
		return nil, 0
	}
	if !c.member {
		return nil, 0 // a gang of one is complete
	}
	switch allowed, wait, ok := p.table.Arrive(pod.UID, c.plan); {
	case !ok: // the plan has ended in this very moment
		return unschedulable(reasonDropped), 0
	case !allowed:
		return fwk.NewStatus(fwk.Wait), wait
	}
	_ = failpoint.Hit("permitted")
	return nil, 0
}
