// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"github.com/frond-scheduler/frond/plugin/failpoint"
	"github.com/frond-scheduler/frond/plugin/gangs"
	"github.com/frond-scheduler/frond/plugin/workload"
	"github.com/frond-scheduler/frond/shim"
)

// Bind writes the pod's node, GPUs, rank and domain in one write, once everything that its gang needs is locked. Pods
// without GPUs are DefaultBinder's, but for those of a gang, which wait for its locks, too, and get their rank.
func (p *Plugin) Bind(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	c := read(state)
	if c == nil {
		return fwk.NewStatus(fwk.Skip)
	}
	var gate *gangs.Gate
	if c.member {
		var err error
		if gate, err = p.lockGang(ctx, pod, c.plan); err != nil {
			return fwk.AsStatus(fmt.Errorf("locking the GPUs of pod %s/%s's gang: %w", pod.Namespace, pod.Name, err))
		}
	}
	if c.gpus == 0 && gate == nil {
		return fwk.NewStatus(fwk.Skip)
	}
	if c.gpus == 0 { // nothing to lock, but another leader must not bind it beside ours either; its rank says that it is bound by us
		rank := map[string]string{workload.Rank: strconv.FormatUint(uint64(p.table.Rank(pod.UID)), 10)}
		if err := p.assign(ctx, pod, node, rank, gate, c.plan); err != nil {
			return fwk.AsStatus(fmt.Errorf("binding pod %s/%s to node %s: %w", pod.Namespace, pod.Name, node, err))
		}
		return nil
	}
	annotations, err := p.annotations(pod, node)
	if err != nil {
		if c.member && shim.IsCode(err, shim.CodeUnknown) {
			p.table.Step(gangs.MemberRefused{UID: pod.UID})
			p.unlock([]types.UID{pod.UID}, node)
		}
		return fwk.AsStatus(fmt.Errorf("no GPUs are reserved for pod %s/%s: %w", pod.Namespace, pod.Name, err))
	}
	if err := p.assign(ctx, pod, node, annotations, gate, c.plan); err != nil {
		return fwk.AsStatus(fmt.Errorf("binding pod %s/%s to node %s: %w", pod.Namespace, pod.Name, node, err))
	}
	p.bound(pod, node)
	if gate != nil {
		sent, of := gate.Sent()
		_ = failpoint.HitNth("bind", sent, of)
	}
	return nil
}

// annotations that the pod's Binding carries; its GPUs by the names that users know.
func (c *cluster) annotations(pod *v1.Pod, node string) (map[string]string, error) {
	place, annotations, err := c.engine.Binding(podKey(pod))
	if err == nil && place.GPUMask != 0 {
		annotations[workload.Allocated] = c.mirror.Allocated(node, place)
	}
	return annotations, err
}

// PostBind hears of members without GPUs.
func (p *Plugin) PostBind(_ context.Context, state fwk.CycleState, pod *v1.Pod, node string) {
	if c := read(state); c != nil && c.member && c.gpus == 0 {
		p.bound(pod, node)
	}
}

func (p *Plugin) bound(pod *v1.Pod, node string) {
	if err := p.engine.Confirm(podKey(pod)); err != nil && !shim.IsCode(err, shim.CodeUnknown) { // unknown: deleted meanwhile
		klog.Background().Error(err, "The engine did not take a binding", "pod", klog.KObj(pod), "node", node)
	}
	p.table.Step(gangs.MemberBound{UID: pod.UID, Node: node})
}

// A Binding that failed may have been carried out all the same: the API server itself is asked, for as long as it takes it to
// answer again, within reason.
const (
	readBackPause  = 200 * time.Millisecond
	readBackWithin = 10 * time.Second
)

// One that was not carried out is sent again from here: the others of the gang may be bound by now, and in the scheduling
// queue hundreds may stand before this one. Not for longer than a half-bound gang has to get on.
const (
	bindWithin                    = 8 * time.Second
	bindPauseLeast, bindPauseMost = 20 * time.Millisecond, time.Second
)

var errElsewhere = errors.New("another scheduler has bound the pod")

// assign sends the Binding. With device locks it carries the version that the pod had before they were taken: whoever
// takes a pod's locks away writes to the pod first, so that a Binding prepared before is refused. A version that has
// changed for another reason (upstream notes nominations on the pod) is looked up, and the locks are taken again.
// gate: of the pod's gang and its numbered plan, whose locks are had; nil: in no gang, and its lock is still to be taken.
// annotations: without GPUs for a pod that has none, and locks none.
func (p *Plugin) assign(ctx context.Context, pod *v1.Pod, node string, annotations map[string]string, gate *gangs.Gate, number uint64) error {
	binding := &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Annotations: annotations},
		Target:     v1.ObjectReference{Kind: "Node", Name: node},
	}
	version := ""
	if gate != nil {
		version = gate.Version(pod.UID)
	}
	locked := p.locks == nil || version != ""
	if p.locks != nil {
		binding.ResourceVersion = cmp.Or(version, p.version(pod))
	}
	begun, pause := p.now(), bindPauseLeast
	for {
		if !locked && annotations[workload.Allocated] != "" {
			if err := p.lockPod(ctx, pod, node, annotations); err != nil {
				return err
			}
		}
		err := p.send(ctx, binding)
		if err == nil {
			return nil
		}
		live, lost := p.readBack(ctx, pod)
		switch {
		case lost != nil:
			return errors.Join(err, lost)
		case live.Spec.NodeName == node && live.Annotations[workload.Allocated] == annotations[workload.Allocated]:
			return nil // the answer was lost, or a retry of the client's met its own success
		case live.Spec.NodeName != "":
			p.mirror.Unreserve(pod.UID) // the watch enters it where it is
			return fmt.Errorf("%w to node %s: %w", errElsewhere, live.Spec.NodeName, err)
		case live.DeletionTimestamp != nil || !passing(err) || p.now().Sub(begun) > bindWithin:
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		case <-time.After(pause):
			pause = min(2*pause, bindPauseMost)
		}
		if gate != nil && !p.table.Holds(pod.UID, number, node) {
			return errors.Join(err, errDropped)
		}
		if p.locks == nil || !apierrors.IsConflict(err) {
			continue // the same once more: if the first arrives late, the second is refused
		}
		if lost := p.checkGang(ctx, pod, gate, number); lost != nil {
			return errors.Join(err, lost)
		}
		binding.ResourceVersion, locked = live.ResourceVersion, false
	}
}

// passing: what the Binding was refused for may be over by the next try, or nobody knows what became of it.
func passing(err error) bool {
	status := apierrors.APIStatus(nil)
	return !errors.As(err, &status) || apierrors.IsConflict(err) || status.Status().Code == http.StatusTooManyRequests ||
		status.Status().Code >= http.StatusInternalServerError
}

// version of the pod as this process knows it: the watch may be ahead of the scheduling cycle.
func (p *Plugin) version(pod *v1.Pod) string {
	known, err := p.handle.SharedInformerFactory().Core().V1().Pods().Lister().Pods(pod.Namespace).Get(pod.Name)
	if err != nil || known.UID != pod.UID {
		return pod.ResourceVersion
	}
	return known.ResourceVersion
}

// bindWidth is how many Bindings are on their way at once. A connection to the API server carries 250 requests; a gang whose
// members come all together would open one more for each beyond that, and spend more on handshakes than on Bindings.
const bindWidth = 100

// send goes the way that DefaultBinder goes.
func (p *Plugin) send(ctx context.Context, binding *v1.Binding) error {
	select {
	case p.binding <- struct{}{}:
		defer func() { <-p.binding }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if cacher := p.handle.APICacher(); cacher != nil {
		finished, err := cacher.BindPod(binding)
		if err != nil {
			return err
		}
		return cacher.WaitOnFinish(ctx, finished)
	}
	return util.BindPod(ctx, p.handle.ClientSet(), binding)
}

// readBack asks the API server for the pod. An error says that it is gone, or that nobody knows.
func (p *Plugin) readBack(ctx context.Context, pod *v1.Pod) (*v1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, readBackWithin)
	defer cancel()
	for {
		live, err := p.handle.ClientSet().CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		switch {
		case err == nil && live.UID == pod.UID:
			return live, nil
		case err == nil || apierrors.IsNotFound(err):
			return nil, fmt.Errorf("pod %s/%s is gone", pod.Namespace, pod.Name)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("reading the pod back: %w", err)
		case <-time.After(readBackPause):
		}
	}
}
