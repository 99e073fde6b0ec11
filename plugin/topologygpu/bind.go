// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"github.com/frond-scheduler/frond/plugin/workload"
	"github.com/frond-scheduler/frond/shim"
)

// Bind writes the pod's node, GPUs, rank and domain in one write. Pods without GPUs are DefaultBinder's.
func (p *Plugin) Bind(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	c := read(state)
	if c == nil || c.gpus == 0 {
		return fwk.NewStatus(fwk.Skip)
	}
	annotations, err := p.engine.Binding(podKey(pod))
	if err != nil {
		if c.member && shim.IsCode(err, shim.CodeUnknown) {
			p.reject(p.table.Forsake(pod.UID), reasonDropped)
		}
		return fwk.AsStatus(fmt.Errorf("no GPUs are reserved for pod %s/%s: %w", pod.Namespace, pod.Name, err))
	}
	if allocated, there := annotations[workload.Allocated]; there {
		annotations[workload.Allocated] = p.mirror.Visible(node, allocated)
	}
	binding := &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Annotations: annotations},
		Target:     v1.ObjectReference{Kind: "Node", Name: node},
	}
	if err := p.send(ctx, binding); err != nil && !p.isBound(ctx, pod, node) {
		return fwk.AsStatus(fmt.Errorf("binding pod %s/%s to node %s: %w", pod.Namespace, pod.Name, node, err))
	}
	p.bound(pod, node)
	return nil
}

// PostBind hears of members without GPUs that DefaultBinder has bound.
func (p *Plugin) PostBind(_ context.Context, state fwk.CycleState, pod *v1.Pod, node string) {
	if c := read(state); c != nil && c.member && c.gpus == 0 {
		p.bound(pod, node)
	}
}

func (p *Plugin) bound(pod *v1.Pod, node string) {
	if err := p.engine.Confirm(podKey(pod)); err != nil && !shim.IsCode(err, shim.CodeUnknown) { // unknown: deleted meanwhile
		klog.Background().Error(err, "The engine did not take a binding", "pod", klog.KObj(pod), "node", node)
	}
	p.table.Bound(pod.UID, node)
}

// send goes the way that DefaultBinder goes.
func (p *Plugin) send(ctx context.Context, binding *v1.Binding) error {
	if cacher := p.handle.APICacher(); cacher != nil {
		finished, err := cacher.BindPod(binding)
		if err != nil {
			return err
		}
		return cacher.WaitOnFinish(ctx, finished)
	}
	return util.BindPod(ctx, p.handle.ClientSet(), binding)
}

const readBackTimeout = 5 * time.Second

// isBound looks at the API server itself: a call that failed may have been carried out all the same.
func (p *Plugin) isBound(ctx context.Context, pod *v1.Pod, node string) bool {
	ctx, cancel := context.WithTimeout(ctx, readBackTimeout)
	defer cancel()
	live, err := p.handle.ClientSet().CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	return err == nil && live.UID == pod.UID && live.Spec.NodeName == node
}
