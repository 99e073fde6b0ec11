// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/frond-scheduler/frond/plugin/gangs"
)

// PostFilter comes first. For a gang it ends the chain, so that upstream's preemption never evicts anybody for one
// member of many; a member that failed on its planned node takes the plan with it. A single pod that the engine refused is
// not helped by evictions either. For all other pods it steps aside.
func (p *Plugin) PostFilter(_ context.Context, state fwk.CycleState, pod *v1.Pod, _ fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	if p.table.Member(pod.UID) {
		p.table.Step(gangs.MemberRefused{UID: pod.UID})
		p.unlock([]types.UID{pod.UID})
	} else if c := read(state); c == nil || !c.refused {
		return nil, fwk.NewStatus(fwk.Unschedulable) // the next plugin runs
	}
	return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable) // no further plugin runs
}
