// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Classify says what a pod is to us. The ways to be in a gang are those of reference 3.5, in that order.
func (r *Reader) Classify(pod *v1.Pod) Class {
	line := r.owners.lineage(pod)
	class := Class{GPUs: r.GPUs(pod), Index: rankIndex(&line, pod), Needs: line.silent}
	if !r.admits(pod) {
		class.Needs = nil
		if class.GPUs > 0 {
			class.Kind = Single
		}
		return class
	}
	claim, problem := r.Claim(pod)
	settled := pod.Spec.NodeName != "" // what it is cannot be held against it any more

	// What it refers to must be there, and must not contradict itself.
	name, kind, contradiction := groupOf(pod, claim)
	if kind == KindNativeGroup && r.nativeTaken && contradiction == "" {
		if class.GPUs == 0 {
			return Class{Kind: Plain}
		}
		contradiction = fmt.Sprintf(problemNative, PodGroupLabel)
	}
	switch missing := line.missing; {
	case settled:
	case problem != "" || contradiction != "" || line.problem != "":
		class.Kind, class.Problem = Refused, first(problem, contradiction, line.problem)
		return class
	case claim == nil && has(pod.Annotations, ClaimAnnotation):
		class.Kind, class.Needs = Unknown, gpuClaims
		class.Gang = GangID{Kind: KindClaim, Namespace: pod.Namespace, Name: pod.Annotations[ClaimAnnotation]}
		return class
	case missing != nil:
		return unseen(class, pod, missing)
	}

	// A group, then an owner.
	if name != "" {
		class.Kind, class.Gang, class.Needs = Member, GangID{Kind: kind, Namespace: pod.Namespace, Name: name}, podGroups
		if kind == KindNativeGroup {
			class.Needs = nativeGroups
		}
		return class
	}
	if line.missing != nil {
		return unseen(class, pod, line.missing)
	}
	if id, size, problem, ok := ownerGang(&line, pod); ok {
		class.Kind, class.Gang, class.Size, class.Problem = Member, id, size, problem
		if problem != "" {
			class.Kind, class.Gang, class.Size = Refused, GangID{}, 0
		}
		return class
	}
	if class.GPUs > 0 || has(pod.Annotations, GPUCount) || line.counted() != nil {
		class.Kind = Single
	}
	return class
}

// admits: the pod may be in a gang. One of another scheduler may not, nor one whose node somebody else has set, whatever it says
// of itself: it was never part of a plan, so it neither completes a gang nor stands for a member that is missing.
func (r *Reader) admits(pod *v1.Pod) bool {
	return (r.serves == nil || r.serves(pod.Spec.SchedulerName)) && (pod.Spec.NodeName == "" || BoundByUs(pod))
}

// BoundByUs says whether this scheduler, or one like it, has bound the pod: its Binding writes the rank, which an admission
// policy lets nobody else write (docs/security.md).
func BoundByUs(pod *v1.Pod) bool { return pod.Spec.NodeName != "" && has(pod.Annotations, Rank) }

// unseen waits for an owner.
func unseen(class Class, pod *v1.Pod, owner *metav1.OwnerReference) Class {
	class.Kind, class.Needs = Unknown, ownerResource(owner)
	class.Gang = GangID{Kind: owner.Kind, Namespace: pod.Namespace, Name: owner.Name, UID: string(owner.UID)}
	return class
}

// groupOf is the PodGroup that a pod belongs to. All that name one must name the same: whoever wrote two names means one of
// them, and nobody can tell which.
func groupOf(pod *v1.Pod, claim *Claim) (name, kind, problem string) {
	say := func(source, value, as string) {
		switch {
		case value == "" || problem != "":
		case !isObjectName(value):
			problem = fmt.Sprintf("%s must be the name of a PodGroup: lower case letters, digits, \"-\" and \".\", got %q", source, shorten(value))
		case name == "":
			name, kind = value, as
		case name != value:
			problem = fmt.Sprintf("the pod belongs to PodGroup %q and, by %s, to PodGroup %q; only one is possible", name, source, value)
		}
	}
	if group := pod.Spec.SchedulingGroup; group != nil && group.PodGroupName != nil {
		say("spec.schedulingGroup.podGroupName", *group.PodGroupName, KindNativeGroup)
	}
	say("label "+PodGroupLabel, pod.Labels[PodGroupLabel], KindPodGroup)
	say("label "+OldPodGroupLabel, pod.Labels[OldPodGroupLabel], KindPodGroup)
	if claim != nil {
		say("gangRef of GpuClaim "+claim.Name, claim.GangRef, KindPodGroup)
	}
	return name, kind, problem
}

// ownerGang is the gang that an owner makes of the pod: a JobSet, a LeaderWorkerSet, a training job, or a Job with gpu-count
// on it or above it. A pod that carries gpu-count itself speaks of this pod only, so its Job makes no gang of it.
func ownerGang(line *lineage, pod *v1.Pod) (id GangID, size int, problem string, ok bool) {
	if set := line.find(jobSets); set != nil {
		id, problem = jobSetGang(set, pod)
		return id, 0, problem, true
	}
	if id, size, problem, ok = leaderWorkerGang(line.find(leaderWorkerSets), pod); ok {
		return id, size, problem, true
	}
	for _, owner := range line.owners {
		if owner.Resource.Group == kubeflowGroup {
			return owner.id(), 0, "", true
		}
	}
	job := line.find(jobs)
	if job == nil || job.Pods() < 2 || has(pod.Annotations, GPUCount) || line.counted() == nil {
		return id, 0, "", false
	}
	return job.id(), 0, "", true
}

// rankIndex says where a pod's rank comes from: the controller that made it tells.
func rankIndex(line *lineage, pod *v1.Pod) Index {
	if has(pod.Labels, jobSetGlobalIndex) {
		if index, ok := jobSetIndex(line.find(jobSets), line.find(jobs), pod); ok {
			return index
		}
	}
	if has(pod.Labels, lwsWorkerIndex) {
		return newIndex(lwsWorkerIndex, 0)
	}
	for _, owner := range line.owners {
		if owner.Resource.Group == kubeflowGroup {
			if index, ok := kubeflowIndex(owner, pod); ok {
				return index
			}
		}
	}
	return Index{}
}

// Source is what a pod is read from besides itself: its controlling owner, or its claim.
type Source struct {
	Owner types.UID
	Claim types.NamespacedName
}

// Sources of a pod: when one of them changes, the pod is read anew.
func Sources(pod *v1.Pod) (sources []Source) {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && ownerResource(owner) != nil {
		sources = append(sources, Source{Owner: owner.UID})
	}
	if name, named := ClaimName(pod); named {
		sources = append(sources, Source{Claim: name})
	}
	return sources
}

func first(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
