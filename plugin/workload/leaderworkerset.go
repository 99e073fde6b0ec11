// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/frond-scheduler/frond/shim"
)

// leaderWorkerSet is what we read of a LeaderWorkerSet.
type leaderWorkerSet struct {
	Spec struct {
		Replicas      *int32 `json:"replicas"`
		StartupPolicy string `json:"startupPolicy"`
		Template      struct {
			Size   *int32              `json:"size"`
			Leader *v1.PodTemplateSpec `json:"leaderTemplate"`
			Worker v1.PodTemplateSpec  `json:"workerTemplate"`
		} `json:"leaderWorkerTemplate"`
	} `json:"spec"`
}

// compactLeaderWorkerSet: its gangs are its groups, and those are named and sized by their pods, because groups of an older
// revision may have another size. With LeaderReady the workers are created only once the leader runs: then the leader is
// on its own, and the workers of the group are a gang.
func (r *Reader) compactLeaderWorkerSet(object *unstructured.Unstructured) *Owner {
	owner := &Owner{ObjectMeta: compactMeta(object), Resource: leaderWorkerSets}
	var set leaderWorkerSet
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &set); err != nil {
		return owner // pods say all that is needed; gpu-count, if there, is held against the pods
	}
	owner.Stepwise = set.Spec.StartupPolicy == "LeaderReady"
	groups, size, worker := replicas(set.Spec.Replicas), replicas(set.Spec.Template.Size), r.template(&set.Spec.Template.Worker)
	if set.Spec.Template.Leader == nil {
		owner.Templates = []Template{{Pods: times(groups, size), GPUs: worker}}
		return owner
	}
	owner.Templates = []Template{{Pods: groups, GPUs: r.template(set.Spec.Template.Leader)}, {Pods: times(groups, size-1), GPUs: worker}}
	return owner
}

// leaderWorkerGang is the group of a LeaderWorkerSet's pod, by its labels; ok: it is one's pod. A size of 1: a pod on its own.
func leaderWorkerGang(set *Owner, pod *v1.Pod) (id GangID, size int, problem string, ok bool) {
	key, name := pod.Labels[lwsGroupKey], pod.Labels[lwsName]
	if key == "" || name == "" {
		return id, 0, "", false
	}
	text := pod.Annotations[lwsSize]
	size, err := strconv.Atoi(text)
	if err != nil || size < 1 || size > shim.MembersMax {
		return id, 0, fmt.Sprintf("annotation %s must be a number from 1 to %d, got %q", lwsSize, shim.MembersMax, shorten(text)), true
	}
	id = GangID{Kind: KindLeaderWorkerSet, Namespace: pod.Namespace, Name: name + "-" + pod.Labels[lwsGroupIndex], UID: key}
	if set != nil && set.Stepwise {
		if pod.Labels[lwsWorkerIndex] == "0" {
			return id, 1, "", true
		}
		id.Name, id.UID, size = id.Name+" workers", id.UID+"/workers", size-1
	}
	return id, size, "", true
}
