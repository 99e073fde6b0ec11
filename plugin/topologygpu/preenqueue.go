// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/frond-scheduler/frond/plugin/workload"
)

// PreEnqueue lets pods in no gang pass. Of a gang it admits the lead, and all members once a plan is reserved: so one
// member fails, backs off, is woken and gets the event, not all of them. It runs under the scheduling queue's lock and
// reads nothing but listers and the gang table.
func (p *Plugin) PreEnqueue(_ context.Context, pod *v1.Pod) *fwk.Status {
	switch p.reader.Classify(pod).Kind {
	case workload.Plain, workload.Single, workload.Refused: // a refusal becomes an event only in the scheduling cycle
		return nil
	}
	if reason, ok := p.table.Admit(pod.UID); !ok {
		return unresolvable(reason)
	}
	return nil
}
