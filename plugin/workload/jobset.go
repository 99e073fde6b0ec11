// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/frond-scheduler/frond/shim"
)

// jobSet is what we read of a JobSet.
type jobSet struct {
	Spec struct {
		ReplicatedJobs []struct {
			Name     string `json:"name"`
			Replicas *int32 `json:"replicas"`
			Template struct {
				Spec batchv1.JobSpec `json:"spec"`
			} `json:"template"`
			DependsOn []struct {
				Name string `json:"name"`
			} `json:"dependsOn"`
		} `json:"replicatedJobs"`
		StartupPolicy struct {
			Order string `json:"startupPolicyOrder"`
		} `json:"startupPolicy"`
	} `json:"spec"`
	Status struct {
		ReplicatedJobs []struct {
			Name      string `json:"name"`
			Succeeded int32  `json:"succeeded"`
		} `json:"replicatedJobsStatus"`
	} `json:"status"`
}

// compactJobSet: the gang is the whole JobSet. One that starts its replicated jobs in order, or lets one depend on another,
// creates the later ones only when the earlier ones run: waiting for all would never end, so each replicated job is a
// gang of its own.
func (r *Reader) compactJobSet(object *unstructured.Unstructured) *Owner {
	owner := &Owner{ObjectMeta: compactMeta(object), Resource: jobSets}
	var set jobSet
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &set); err != nil {
		owner.Gangs = []Gang{{ID: owner.id(), Spec: unreadable(owner, err)}}
		return owner
	}
	owner.Stepwise = set.Spec.StartupPolicy.Order == "InOrder"
	ended := map[string]int64{}
	for _, status := range set.Status.ReplicatedJobs {
		ended[status.Name] = int64(status.Succeeded)
	}
	need := int64(0)
	for i := range set.Spec.ReplicatedJobs {
		job := &set.Spec.ReplicatedJobs[i]
		part := Part{Name: job.Name, Count: replicas(job.Replicas), Pods: int64(desiredPods(&job.Template.Spec))}
		owner.Parts = append(owner.Parts, part)
		owner.Templates = append(owner.Templates, Template{Pods: times(part.Count, part.Pods), GPUs: r.template(&job.Template.Spec.Template)})
		owner.Stepwise = owner.Stepwise || len(job.DependsOn) > 0
		need = plus(need, partNeed(part, ended))
	}
	if !owner.Stepwise {
		owner.Gangs = []Gang{{ID: owner.id(), Spec: owner.spec(owner.Pods(), need)}}
		return owner
	}
	for _, part := range owner.Parts {
		owner.Gangs = append(owner.Gangs, Gang{ID: owner.partID(part.Name), Spec: owner.spec(times(part.Count, part.Pods), partNeed(part, ended))})
	}
	return owner
}

// partNeed: Jobs that have succeeded do not come back.
func partNeed(part Part, ended map[string]int64) int64 {
	return times(part.Count-max(ended[part.Name], 0), part.Pods)
}

// spec of a gang of so many pods, of which need have not ended.
func (o *Owner) spec(pods, need int64) Spec {
	return Spec{UID: o.UID, MinMember: int(min(max(need, 1), shim.MembersMax)), Problem: sizeProblem(pods, func(n int64) string {
		return fmt.Sprintf("%s %s/%s: a gang has 1 to %d pods, it asks for %d", o.Resource.Kind, o.Namespace, o.Name, shim.MembersMax, n)
	})}
}

// unreadable is the gang of an object whose fields are not what its kind has.
func unreadable(owner *Owner, err error) Spec {
	return Spec{UID: owner.UID, Problem: fmt.Sprintf("%s %s/%s cannot be understood: %.200s", owner.Resource.Kind, owner.Namespace, owner.Name, err)}
}

// partID names the gang of one replicated job.
func (o *Owner) partID(part string) GangID {
	id := o.id()
	id.Name, id.UID = id.Name+"-"+part, id.UID+"/"+part
	return id
}

// jobSetGang is the gang of a JobSet's pod.
func jobSetGang(owner *Owner, pod *v1.Pod) (id GangID, problem string) {
	if !owner.Stepwise {
		return owner.id(), ""
	}
	name := pod.Labels[jobSetReplicated]
	for _, part := range owner.Parts {
		if part.Name == name {
			return owner.partID(name), ""
		}
	}
	return id, fmt.Sprintf("label %s is %q, which is no replicated job of JobSet %s/%s", jobSetReplicated, shorten(name), owner.Namespace, owner.Name)
}

// jobSetIndex: ranks count through the Jobs in order of their global index, the pods of each by completion index. The
// pods of the Jobs before one are global index × parallelism when all Jobs are of one size.
func jobSetIndex(set, job *Owner, pod *v1.Pod) (index Index, ok bool) {
	global, err := parseRank(pod.Labels[jobSetGlobalIndex])
	if err != nil {
		return index, false
	}
	before := int64(global)
	if set == nil {
		if job == nil {
			return index, false
		}
		return newIndex(CompletionIndex, times(before, job.Pods())), true
	}
	base := int64(0)
	for _, part := range set.Parts {
		if before < part.Count {
			return newIndex(CompletionIndex, plus(base, times(before, part.Pods))), true
		}
		before -= part.Count
		base = plus(base, times(part.Count, part.Pods))
	}
	return index, false
}
