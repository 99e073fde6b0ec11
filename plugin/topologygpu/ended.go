// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/frond-scheduler/frond/plugin/workload"
)

// endedOnly selects the pods that the scheduler's own informer leaves out: there a pod that ends is a pod that vanishes, and
// whether it ended well is not to be seen.
const endedOnly = "status.phase!=Pending,status.phase!=Running,status.phase!=Unknown"

// endedPods follows pods that have ended, for as long as they are there, on the reporter's behalf.
type endedPods struct {
	cluster  *cluster
	informer cache.SharedIndexInformer
	synced   func() bool
}

func newEndedPods(c *cluster, client kubernetes.Interface) (*endedPods, error) {
	e := &endedPods{cluster: c, informer: coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, 0, cache.Indexers{},
		func(options *metav1.ListOptions) { options.FieldSelector = endedOnly })}
	if err := e.informer.SetTransform(compactEnded); err != nil {
		return nil, fmt.Errorf("watching pods that have ended: %w", err)
	}
	registration, err := e.informer.AddEventHandler(e)
	if err != nil {
		return nil, fmt.Errorf("watching pods that have ended: %w", err)
	}
	e.synced = registration.HasSynced
	return e, nil
}

func (e *endedPods) run(ctx context.Context) { e.informer.RunWithContext(ctx) }

// OnAdd is called for a pod that has ended.
func (e *endedPods) OnAdd(object any, _ bool) {
	pod, ok := object.(*v1.Pod)
	if !ok {
		return
	}
	if _, ours := e.cluster.profiles.Load(pod.Spec.SchedulerName); ours {
		e.cluster.report.podEnded(pod)
	}
}

// OnUpdate is called for one that has changed, or was made anew under the same name.
func (e *endedPods) OnUpdate(old, object any) {
	before, ok := old.(*v1.Pod)
	if now, also := object.(*v1.Pod); ok && also && before.UID != now.UID {
		e.OnDelete(old)
	}
	e.OnAdd(object, false)
}

// OnDelete is called for one that is gone.
func (e *endedPods) OnDelete(object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	if pod, ok := object.(*v1.Pod); ok {
		e.cluster.report.podDeleted(pod.UID)
	}
}

// claimSet: a claim tells the group of pods that name it and may have been read without it.
func (e *endedPods) claimSet(name types.NamespacedName) {
	for _, object := range e.informer.GetStore().List() {
		if pod, ok := object.(*v1.Pod); ok {
			if claim, named := workload.ClaimName(pod); named && claim == name {
				e.OnAdd(pod, false)
			}
		}
	}
}

// compactEnded keeps what says whose pod it was and how it ended: there may be thousands.
func compactEnded(object any) (any, error) {
	pod, ok := object.(*v1.Pod)
	if !ok {
		return object, nil
	}
	slim := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion},
		Spec:       v1.PodSpec{SchedulerName: pod.Spec.SchedulerName, NodeName: pod.Spec.NodeName, SchedulingGroup: pod.Spec.SchedulingGroup},
		Status:     v1.PodStatus{Phase: pod.Status.Phase},
	}
	for _, key := range []string{workload.PodGroupLabel, workload.OldPodGroupLabel} {
		if value, found := pod.Labels[key]; found {
			metav1.SetMetaDataLabel(&slim.ObjectMeta, key, value)
		}
	}
	if rank, bound := pod.Annotations[workload.Rank]; bound { // else it would be no member
		metav1.SetMetaDataAnnotation(&slim.ObjectMeta, workload.Rank, rank)
	}
	if claim, named := workload.ClaimName(pod); named {
		metav1.SetMetaDataAnnotation(&slim.ObjectMeta, workload.ClaimAnnotation, claim.Name)
	}
	if owner := metav1.GetControllerOf(pod); owner != nil {
		slim.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return slim, nil
}
