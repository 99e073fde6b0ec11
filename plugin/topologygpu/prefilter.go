// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/frond-scheduler/frond/plugin/gangs"
	"github.com/frond-scheduler/frond/plugin/workload"
	"github.com/frond-scheduler/frond/shim"
)

// PreFilter decides where pods may go: a member of a planned gang on its one node, a single pod on the nodes that the
// engine orders. The lead of a gang without a plan makes one.
func (p *Plugin) PreFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if isProbing(ctx) {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	class := p.reader.Classify(pod)
	if class.Kind == workload.Plain {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	if class.Kind == workload.Refused {
		state.Write(stateKey, &cycle{refused: true})
		p.retell(pod, shim.Refused, class.Problem)
		return nil, unresolvable(class.Problem)
	}
	if err := p.await(ctx); err != nil {
		return nil, fwk.AsStatus(err)
	}
	if class.Kind == workload.Single {
		return p.preFilterSingle(ctx, state, pod)
	}
	switch turn := p.table.Begin(pod.UID); turn.Task {
	case gangs.Lead:
		return p.lead(ctx, state, pod, nodes, turn)
	case gangs.Follow:
		return p.follow(state, class.GPUs, turn.Plan, turn.Node), nil
	default:
		return nil, unresolvable(p.retell(pod, outcomeHeld, turn.Reason))
	}
}

// PreFilterExtensions keep single pods' what-ifs.
func (p *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return p }

// follow pins a member to its place. One without GPUs goes where upstream puts it.
func (p *Plugin) follow(state fwk.CycleState, gpus uint32, plan uint64, node string) *fwk.PreFilterResult {
	state.Write(stateKey, &cycle{gpus: gpus, member: true, plan: plan, node: node})
	if node == "" {
		return nil
	}
	return &fwk.PreFilterResult{NodeNames: sets.New(node)}
}

func (p *Plugin) preFilterSingle(ctx context.Context, state fwk.CycleState, pod *v1.Pod) (*fwk.PreFilterResult, *fwk.Status) {
	request, self, annotations := p.reader.SingleRequest(pod, p.now())
	if self.GPUs == 0 {
		return p.preFilterWithoutGPUs(state, request, self, annotations)
	}
	room, err := p.selected(pod)
	if err != nil {
		return nil, fwk.AsStatus(err)
	}
	p.mirror.Yield(pod.UID) // what is locked for the pod from before is no obstacle to itself
	plan, position, sentence, err := p.engine.Order(request, self, annotations, room, nil)
	if err == nil && plan.Outcome == shim.Waits && p.mirror.CatchUp(p.gone) > 0 {
		plan, position, sentence, err = p.engine.Order(request, self, annotations, room, nil)
	}
	if err != nil || plan.Outcome != shim.Placed {
		p.mirror.Unyield(pod.UID)
	}
	if err != nil {
		return nil, fwk.AsStatus(fmt.Errorf("ordering nodes for pod %s: %w", request.Name, err))
	}
	c := &cycle{gpus: self.GPUs, room: room, request: request, self: self, annotations: annotations, position: position,
		removed: map[string]int64{}}
	state.Write(stateKey, c)
	switch plan.Outcome {
	case shim.Placed:
		p.report.podTold(pod.UID, "", false)
		return nil, nil
	case shim.Waits, shim.Undecided:
		if plan.WaitMillis != shim.None {
			p.wakeLater(ctx, pod, time.Duration(plan.WaitMillis)*time.Millisecond)
		}
		p.report.podTold(pod.UID, sentence, false)
		return nil, unschedulable(sentence) // preemption may help
	default:
		p.report.podTold(pod.UID, sentence, plan.Outcome == shim.Refused)
		c.refused = true
		return nil, unresolvable(sentence)
	}
}

// selected is what the selector of the pod's claim rules out.
func (p *Plugin) selected(pod *v1.Pod) (rooms, error) {
	claim, _ := p.reader.Claim(pod)
	if claim == nil || claim.Selector == nil {
		return nil, nil
	}
	nodes, err := p.handle.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	var names []string
	for _, info := range nodes {
		if claim.Selector.Matches(labels.Set(info.Node().Labels)) {
			names = append(names, info.Node().Name)
		}
	}
	return closed(p.mirror.Known(names).Others, 0), nil
}

// gone asks the informer's store.
func (p *Plugin) gone(name types.NamespacedName, uid types.UID) bool {
	live, err := p.handle.SharedInformerFactory().Core().V1().Pods().Lister().Pods(name.Namespace).Get(name.Name)
	return err != nil || live.UID != uid
}

// preFilterWithoutGPUs is for a pod that has gpu-count and no GPU limit: the engine names both numbers.
func (p *Plugin) preFilterWithoutGPUs(state fwk.CycleState, request shim.Request, self shim.Member, annotations map[string]string) (*fwk.PreFilterResult, *fwk.Status) {
	plan, _, sentence, err := p.engine.Plan(request, []shim.Member{self}, annotations, nil)
	if err != nil {
		return nil, fwk.AsStatus(fmt.Errorf("planning pod %s: %w", request.Name, err))
	}
	if plan.Outcome == shim.Placed {
		return nil, fwk.NewStatus(fwk.Skip) // it asks for nothing of ours after all
	}
	state.Write(stateKey, &cycle{refused: true})
	return nil, unresolvable(sentence)
}

// wakeLater activates a single pod when its topology-wait is over. The pod may be gone by then; nobody minds.
func (p *Plugin) wakeLater(ctx context.Context, pod *v1.Pod, wait time.Duration) {
	if _, set := p.alarms.LoadOrStore(pod.UID, true); set {
		return // an earlier attempt has set it, for the same moment
	}
	time.AfterFunc(wait, func() {
		p.alarms.Delete(pod.UID)
		p.activate(loggerFor(ctx), pod)
	})
}

// AddPod is a what-if: a pod stands on the node, too.
func (p *Plugin) AddPod(_ context.Context, state fwk.CycleState, _ *v1.Pod, other fwk.PodInfo, node fwk.NodeInfo) *fwk.Status {
	p.whatIf(state, other, node, -1)
	return nil
}

// RemovePod is a what-if: a pod has left the node.
func (p *Plugin) RemovePod(_ context.Context, state fwk.CycleState, _ *v1.Pod, other fwk.PodInfo, node fwk.NodeInfo) *fwk.Status {
	p.whatIf(state, other, node, 1)
	return nil
}

func (p *Plugin) whatIf(state fwk.CycleState, other fwk.PodInfo, node fwk.NodeInfo, sign int64) {
	c := read(state)
	if c == nil || c.member || node == nil || node.Node() == nil {
		return
	}
	if gpus := p.reader.GPUs(other.GetPod()); gpus > 0 {
		c.removed[node.Node().Name] += sign * int64(gpus)
	}
}
