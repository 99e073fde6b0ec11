// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/frond-scheduler/frond/shim"
)

// Annotations for the engine: each topology.scheduler key from the pod or else from the nearest owner that carries it.
func (r *Reader) Annotations(pod *v1.Pod) map[string]string {
	line := r.owners.lineage(pod)
	return line.wishes(pod)
}

// SingleRequest is the request of a pod in no gang.
func (r *Reader) SingleRequest(pod *v1.Pod, now time.Time) (shim.Request, shim.Member, map[string]string) {
	gpus, key, line := r.GPUs(pod), shim.PodKey(string(pod.UID)), r.owners.lineage(pod)
	request := shim.Request{
		Gang: key, MinMember: 1, GPUsDesired: desiredGPUs(&line, pod, gpus, nil), Age: age(now, pod), OnlySlot: shim.None,
		Name: pod.Namespace + "/" + pod.Name, Priority: priority(pod),
	}
	if claim, _ := r.Claim(pod); claim != nil {
		request.Claim = claim.JSON
		request.Named, _ = r.named(claim)
	}
	return request, shim.Member{Pod: key, GPUs: gpus, PinnedSlot: shim.None}, line.wishes(pod)
}

// GangMember is one pod of a gang, with its rank.
type GangMember struct {
	Pod  *v1.Pod
	GPUs uint32
	Rank uint32
	Slot uint32 // of the node it is bound to; shim.None: to be placed
}

// GangRequest is the request of a gang: members by ascending rank, the wishes of the lead. since: when the gang became
// complete, from which topology-wait counts; zero: it does not wait.
func (r *Reader) GangRequest(id GangID, spec Spec, lead *v1.Pod, members []GangMember, now, since time.Time) (shim.Request, []shim.Member, map[string]string) {
	line := r.owners.lineage(lead)
	request := shim.Request{
		Gang: GangKey(id), MinMember: uint32(min(max(spec.MinMember, 1), len(members))),
		GPUsDesired: desiredGPUs(&line, lead, r.GPUs(lead), members), OnlySlot: shim.None, Name: id.String(), Age: max(now.Sub(since), 0),
		Priority: priority(lead),
	}
	out := make([]shim.Member, len(members))
	for i, m := range members {
		out[i] = shim.Member{Pod: shim.PodKey(string(m.Pod.UID)), Rank: m.Rank, GPUs: m.GPUs, PinnedSlot: m.Slot}
		if m.Slot != shim.None {
			continue
		}
		if claim, _ := r.Claim(m.Pod); claim != nil && request.Claim == "" {
			request.Claim = claim.JSON // GangProblem has seen that all of them ask for the same
			request.Named, _ = r.named(claim)
		}
	}
	return request, out, line.wishes(lead)
}

// named are the GPUs that a claim would rather have, node by node, and the ids that are no GPUs of this cluster.
func (r *Reader) named(claim *Claim) (named []shim.Named, unknown []string) {
	for _, id := range claim.Prefers {
		gpu, found := shim.Named{}, false
		if r.findGPU != nil {
			gpu, found = r.findGPU(id)
		}
		if !found {
			unknown = append(unknown, id)
			continue
		}
		at := slices.IndexFunc(named, func(other shim.Named) bool { return other.Slot == gpu.Slot })
		if at < 0 {
			named = append(named, gpu)
		} else {
			named[at].GPUMask |= gpu.GPUMask
		}
	}
	return named, unknown
}

// UnknownGPUs are the ids in the preferIds of a pod's claim that are no GPUs of this cluster.
func (r *Reader) UnknownGPUs(pod *v1.Pod) []string {
	claim, _ := r.Claim(pod)
	if claim == nil {
		return nil
	}
	_, unknown := r.named(claim)
	return unknown
}

// GangProblem is why the members to be placed cannot be one request, "" when they can: a request has one claim, which is
// every member's that has GPUs.
func (r *Reader) GangProblem(members []GangMember) string {
	var before *Claim
	var beforePod *v1.Pod
	for _, m := range members {
		if m.Slot != shim.None || m.GPUs == 0 {
			continue
		}
		claim, _ := r.Claim(m.Pod)
		if beforePod == nil {
			before, beforePod = claim, m.Pod
			continue
		}
		switch {
		case (before == nil) != (claim == nil):
			return fmt.Sprintf("pods %s and %s are of one gang, and only one of them has a GpuClaim; all or none must", beforePod.Name, m.Pod.Name)
		case claim != nil && (claim.Devices != before.Devices || selector(claim) != selector(before)):
			return fmt.Sprintf("pods %s and %s are of one gang, and their GpuClaims %s and %s ask for different devices or nodes; they must be alike", beforePod.Name, m.Pod.Name, before.Name, claim.Name)
		}
	}
	return ""
}

func selector(claim *Claim) string {
	if claim.Selector == nil {
		return ""
	}
	return claim.Selector.String()
}

// desiredGPUs is what gpu-count is held against: the GPUs that the object which carries it asks for in all. An object with
// one pod template: GPUs of the pod × desired pods. One with several: the sum over its templates; where no template tells
// GPUs, because something else sets the pods' limits, the sum over the gang's pods.
func desiredGPUs(line *lineage, pod *v1.Pod, gpus uint32, members []GangMember) uint64 {
	carrier := line.counted()
	if has(pod.Annotations, GPUCount) || carrier == nil {
		return uint64(gpus)
	}
	if len(carrier.Templates) <= 1 {
		return uint64(times(int64(gpus), carrier.Pods()))
	}
	told, sum := int64(0), uint64(0)
	for _, t := range carrier.Templates {
		told = plus(told, times(t.Pods, int64(t.GPUs)))
	}
	if told > 0 || len(members) == 0 {
		return uint64(told)
	}
	for _, m := range members {
		sum += uint64(m.GPUs)
	}
	return sum
}

// GangKey is the gang's identity in the engine. It follows from the pods alone, so that bound pods are entered under the
// right gang before the object that makes it one has been seen.
func GangKey(id GangID) shim.Key {
	return shim.GangKey(id.Kind, id.Namespace, id.Name, id.UID)
}

func priority(pod *v1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

func age(now time.Time, pod *v1.Pod) time.Duration {
	return max(now.Sub(pod.CreationTimestamp.Time), 0)
}
