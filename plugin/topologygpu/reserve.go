// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/frond-scheduler/frond/plugin/failpoint"
	"github.com/frond-scheduler/frond/plugin/gangs"
	"github.com/frond-scheduler/frond/shim"
)

// Reasons that a reservation fails for.
const (
	reasonStale   = "the plan is stale: the GPUs went to somebody else meanwhile"
	reasonDropped = "the gang's plan was given back"
)

// Reserve books the GPUs of a single pod on the chosen node. A gang was booked as a whole by its lead; here a member only
// checks that the booking still stands.
func (p *Plugin) Reserve(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	c := read(state)
	if c == nil {
		return nil
	}
	if c.member {
		if !p.table.Holds(pod.UID, c.plan, node) {
			p.table.Step(gangs.MemberFailed{UID: pod.UID, Plan: c.plan})
			return unschedulable(reasonDropped)
		}
		return nil
	}
	slot, known := p.mirror.Slot(node)
	if !known {
		return unschedulable(reasonUnknown)
	}
	request := c.request
	request.OnlySlot = slot
	plan, places, sentence, err := p.engine.Plan(request, []shim.Member{c.self}, c.annotations, c.room)
	if err != nil {
		return fwk.AsStatus(err)
	}
	if plan.Outcome != shim.Placed {
		return p.again(ctx, pod, sentence)
	}
	if err := p.engine.Reserve(request, []shim.Member{c.self}, places); err != nil {
		if shim.IsCode(err, shim.CodeStale) {
			return p.again(ctx, pod, reasonStale)
		}
		return fwk.AsStatus(err)
	}
	p.report.podReserved(pod.UID, node)
	p.remember(ctx, request, c.annotations)
	// A cluster without topology is no news to a single pod, which needs none.
	p.warn(pod, plan, func(flag shim.PlanFlag) bool { return flag != shim.PlanNoTopology })
	loggerFor(ctx).Info("Pod placed", "pod", klog.KObj(pod), "node", node, "gpus", c.gpus, "rule", plan.Rule.String(),
		"relaxed", plan.Flags&shim.PlanRelaxed != 0, "generation", plan.Generation, "why", sentence)
	return nil
}

// remember tells the engine what the owner of a booking asked for, which repair and preemption go by later. Without it they
// go by the defaults, so a failure is no reason to give the booking back.
func (p *Plugin) remember(ctx context.Context, request shim.Request, annotations map[string]string) {
	err := p.engine.GangPut(request, annotations)
	if err != nil && !shim.IsCode(err, shim.CodeUnknown) { // unknown: members without GPUs hold nothing
		loggerFor(ctx).Error(err, "The engine does not know what the gang asks for", "gang", request.Name)
	}
}

// again fails a single pod for a reason that has passed by the time it is told: it is woken at once.
func (p *Plugin) again(ctx context.Context, pod *v1.Pod, reason string) *fwk.Status {
	p.activate(loggerFor(ctx), pod)
	return unschedulable(reason)
}

// Unreserve gives a single pod's GPUs back. A member that fails before the first Binding takes the whole plan with it;
// afterwards others may be bound, so it keeps its place and retries there.
func (p *Plugin) Unreserve(_ context.Context, state fwk.CycleState, pod *v1.Pod, node string) {
	c := read(state)
	if c == nil {
		return
	}
	_ = failpoint.Hit("unreserve")
	if c.member {
		p.table.Step(gangs.MemberFailed{UID: pod.UID, Plan: c.plan})
	} else {
		p.mirror.Unreserve(pod.UID)
		p.report.podReserved(pod.UID, "")
		p.unlock([]types.UID{pod.UID}, node)
	}
	p.roomAppeared(true) // upstream forgets the pod next
}

func loggerFor(ctx context.Context) klog.Logger {
	return klog.LoggerWithName(klog.FromContext(ctx), Name)
}
