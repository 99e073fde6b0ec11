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

// EventsToRegister names what may help a pod that found no place. Gangs are woken by their lifecycle, but for what we do not
// watch: volumes, claims and devices. Upstream
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
		{Event: fwk.ClusterEvent{Resource: fwk.PersistentVolumeClaim, ActionType: fwk.Add | fwk.Update}, QueueingHintFn: p.objectCame},
		{Event: fwk.ClusterEvent{Resource: fwk.PersistentVolume, ActionType: fwk.Add | fwk.Update}, QueueingHintFn: p.objectCame},
		{Event: fwk.ClusterEvent{Resource: fwk.StorageClass, ActionType: fwk.Add | fwk.Update}, QueueingHintFn: p.objectCame},
		{Event: fwk.ClusterEvent{Resource: fwk.ResourceClaim, ActionType: fwk.Add | fwk.Update}, QueueingHintFn: p.objectCame},
		{Event: fwk.ClusterEvent{Resource: fwk.ResourceSlice, ActionType: fwk.Add | fwk.Update}, QueueingHintFn: p.objectCame},
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

// unlessHeld: gangs are activated by their lifecycle alone.
func (p *Plugin) unlessHeld(pod *v1.Pod) fwk.QueueingHint {
	if p.table.Member(pod.UID) {
		return fwk.QueueSkip
	}
	return fwk.Queue
}

// objectCame: a volume, a claim or devices that upstream's plugins refused a whole gang for may be there now. Nothing else tells
// us of these.
func (p *Plugin) objectCame(_ klog.Logger, pod *v1.Pod, _, _ any) (fwk.QueueingHint, error) {
	if p.table.Waiting(pod.UID) && !p.kept.knows(p.reader.Classify(pod).Gang) {
		return fwk.Queue, nil
	}
	return fwk.QueueSkip, nil
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

// podLeft: a single pod was refused for GPUs alone.
func (p *Plugin) podLeft(logger klog.Logger, pod *v1.Pod, old, object any) (fwk.QueueingHint, error) {
	if left, ok := old.(*v1.Pod); ok && p.reader.GPUs(left) == 0 {
		return fwk.QueueSkip, nil
	}
	return p.mayHelp(logger, pod, old, object)
}
