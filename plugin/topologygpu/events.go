// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"context"
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/frond-scheduler/frond/plugin/workload"
)

// EventsToRegister names what may help a pod that found no place. Gangs are woken by the gang table, at once; for the
// lead of one that waits these events are the second way: upstream sends them after its own cache has changed, whereas the
// table may hear of a change first and wake a lead that then looks at yesterday's cache. Other members sleep on. Upstream
// asks for this list once the profile is complete and stops the start on an error, which makes it the place to refuse a
// profile whose plugins stand in the wrong order.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	if err := checkOrder(p.handle.ProfileName(), p.framework.ListPlugins()); err != nil {
		return nil, err
	}
	nodes := fwk.Add | fwk.UpdateNodeAllocatable | fwk.UpdateNodeLabel | fwk.UpdateNodeTaint | fwk.UpdateNodeCondition
	return []fwk.ClusterEventWithHint{
		{Event: fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete}, QueueingHintFn: p.podLeft},
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: nodes}, QueueingHintFn: p.mayHelp},
		{Event: fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.Update}, QueueingHintFn: p.podChanged},
	}, nil
}

// mayHelp: a pod that is refused for what it says of itself is helped by nothing that happens to nodes.
func (p *Plugin) mayHelp(_ klog.Logger, pod *v1.Pod, _, _ any) (fwk.QueueingHint, error) {
	if p.reader.Classify(pod).Kind == workload.Refused {
		return fwk.QueueSkip, nil
	}
	return p.unlessHeld(pod), nil
}

func (p *Plugin) unlessHeld(pod *v1.Pod) fwk.QueueingHint {
	if p.table.Member(pod.UID) && !p.table.Waiting(pod.UID) {
		return fwk.QueueSkip
	}
	return fwk.Queue
}

// podChanged: what a pending pod asks for stands in its annotations, labels and limits; its status changes with every
// attempt and helps nothing.
func (p *Plugin) podChanged(_ klog.Logger, pod *v1.Pod, old, object any) (fwk.QueueingHint, error) {
	before, ok := old.(*v1.Pod)
	now, also := object.(*v1.Pod)
	if ok && also && maps.Equal(before.Annotations, now.Annotations) && maps.Equal(before.Labels, now.Labels) && p.reader.GPUs(before) == p.reader.GPUs(now) {
		return fwk.QueueSkip, nil
	}
	return p.unlessHeld(pod), nil
}

// podLeft: a single pod was refused for GPUs alone; a gang may wait for CPU and memory, too.
func (p *Plugin) podLeft(logger klog.Logger, pod *v1.Pod, old, object any) (fwk.QueueingHint, error) {
	if left, ok := old.(*v1.Pod); ok && p.reader.GPUs(left) == 0 && !p.table.Member(pod.UID) {
		return fwk.QueueSkip, nil
	}
	return p.mayHelp(logger, pod, old, object)
}
