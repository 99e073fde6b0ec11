// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/frond-scheduler/frond/plugin/workload"
)

const reasonUnsigned = "the best node depends on the state of the whole fabric"

// SignPod has nothing to add for pods that are none of our business, so that upstream may batch them. The others are not
// to be batched: their best node changes with every pod placed.
func (p *Plugin) SignPod(_ context.Context, pod *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if p.reader.Classify(pod).Kind == workload.Plain {
		return nil, nil
	}
	return nil, unschedulable(reasonUnsigned)
}
