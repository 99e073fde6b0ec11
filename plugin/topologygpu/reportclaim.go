// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/apis"
	"github.com/frond-scheduler/frond/plugin/status"
	"github.com/frond-scheduler/frond/plugin/workload"
)

// messageMembers is what a claim says that serves a gang, besides what its least advanced pod is told.
const messageMembers = "%d of %d pods have their GPUs"

// toldClaim is what a claim was told last.
type toldClaim struct {
	uid   types.UID
	phase apis.ClaimPhase
	pod   apis.ClaimPod
}

// use is how far one pod has come with its claim.
type use struct {
	pod      *v1.Pod
	phase    apis.ClaimPhase
	node     string
	gpus     []string
	sentence string // "": the phase has words of its own
}

// tellClaim derives a claim's state. Its last one counts only when nobody uses it: it then tells whether somebody did.
func (r *reporter) tellClaim(name types.NamespacedName) {
	claim, holder, pods := r.cluster.sources.claims.Users(name)
	if claim == nil {
		delete(r.toldClaims, name)
		return
	}
	if holder == nil && claim.Phase != "" && r.foreign(name.Namespace, func(pod *v1.Pod) bool { return pod.Annotations[workload.ClaimAnnotation] == name.Name }) {
		return
	}
	last, known := r.toldClaims[name]
	if !known || last.uid != claim.UID {
		last = toldClaim{uid: claim.UID, phase: claim.Phase, pod: claim.Pod}
	}
	state := status.ClaimState{Namespace: name.Namespace, Name: name.Name, UID: claim.UID, Generation: claim.Generation}
	switch {
	case holder == nil:
		r.unused(&state, claim, last)
	case claim.GangRef != "":
		r.gangUse(&state, pods)
	default:
		u := r.useOf(holder)
		state.Phase, state.Node, state.GPUs, state.Message = u.phase, u.node, u.gpus, u.sentence
		state.Pod, state.PodUID = types.NamespacedName{Namespace: holder.Namespace, Name: holder.Name}, holder.UID
	}
	r.toldClaims[name] = toldClaim{uid: claim.UID, phase: state.Phase, pod: apis.ClaimPod{Name: state.Pod.Name, UID: state.PodUID}}
	r.out.Claim(state)
}

func (r *reporter) unused(state *status.ClaimState, claim *workload.Claim, last toldClaim) {
	switch {
	case claim.Problem != "":
		state.Phase, state.Message = apis.ClaimFailed, claim.Problem
	case last.phase == apis.ClaimReserved || last.phase == apis.ClaimBound || last.phase == apis.ClaimReleased:
		state.Phase, state.PodUID = apis.ClaimReleased, last.pod.UID
		state.Pod = types.NamespacedName{Namespace: claim.Namespace, Name: last.pod.Name}
	default:
		state.Phase = apis.ClaimPending
	}
}

// Phases of a claim that is in use, from the least advanced on.
var phaseOrder = []apis.ClaimPhase{apis.ClaimFailed, apis.ClaimPending, apis.ClaimReserved, apis.ClaimBound}

// gangUse is the state of a claim that serves a gang: that of its least advanced pod, the first of them by name.
func (r *reporter) gangUse(state *status.ClaimState, pods []*v1.Pod) {
	slices.SortFunc(pods, func(a, b *v1.Pod) int { return workload.NaturalCompare(a.Name, b.Name) })
	var least use
	have := 0
	for i, pod := range pods {
		u := r.useOf(pod)
		if u.phase == apis.ClaimBound {
			have++
		}
		if i == 0 || slices.Index(phaseOrder, u.phase) < slices.Index(phaseOrder, least.phase) {
			least = u
		}
	}
	state.Phase = least.phase
	state.Reason = map[apis.ClaimPhase]string{apis.ClaimPending: status.ReasonWaiting}[least.phase] // without a pod it would say that nobody uses it
	state.Message = fmt.Sprintf(messageMembers, have, len(pods))
	if least.sentence != "" {
		state.Message += fmt.Sprintf("; pod %s: %s", least.pod.Name, least.sentence)
	}
	if len(pods) == 1 {
		state.Node, state.GPUs = least.node, least.gpus
		state.Pod, state.PodUID = types.NamespacedName{Namespace: least.pod.Namespace, Name: least.pod.Name}, least.pod.UID
	}
}

// useOf asks everybody who knows something of the pod.
func (r *reporter) useOf(pod *v1.Pod) use {
	if pod.Spec.NodeName != "" {
		return use{pod: pod, phase: apis.ClaimBound, node: pod.Spec.NodeName, gpus: gpuIDs(pod.Annotations)}
	}
	if class := r.cluster.reader.Classify(pod); class.Kind == workload.Refused {
		return use{pod: pod, phase: apis.ClaimFailed, sentence: class.Problem}
	}
	var own reported
	r.mu.Lock()
	if p := r.pods[pod.UID]; p != nil {
		own = *p
	}
	r.mu.Unlock()
	node, planned, reason, refused := r.cluster.table.Place(pod.UID)
	if !planned {
		node = own.node
	}
	if node != "" {
		// What is reserved may have been given back a moment ago: then the pod waits again.
		if annotations, err := r.cluster.annotations(pod, node); err == nil {
			return use{pod: pod, phase: apis.ClaimReserved, node: node, gpus: gpuIDs(annotations)}
		}
	}
	if own.refused || refused {
		return use{pod: pod, phase: apis.ClaimFailed, sentence: cmp.Or(own.sentence, reason)}
	}
	return use{pod: pod, phase: apis.ClaimPending, sentence: cmp.Or(own.sentence, reason, unscheduled(pod))}
}

// unscheduled is what upstream told the pod: other plugins have their say, too, and a scheduler before this one had it.
func unscheduled(pod *v1.Pod) string {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}

func gpuIDs(annotations map[string]string) []string {
	if annotations[workload.Allocated] == "" {
		return nil
	}
	return strings.Split(annotations[workload.Allocated], ",")
}
