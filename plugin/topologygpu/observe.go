// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"context"
	"fmt"
	"maps"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/frond-scheduler/frond/plugin/workload"
)

// reasonLeft is what members are told whose plan counted on a pod that went away.
const reasonLeft = "a pod of the gang went away before all were bound"

// observer feeds the gang table from informers.
type observer struct {
	*cluster
	logger klog.Logger
}

// PodSeen: a pod was created or has changed.
func (o *observer) PodSeen(pod *v1.Pod) {
	if _, ours := o.profiles.Load(pod.Spec.SchedulerName); ours {
		o.reject(o.table.SetPod(pod, o.reader.Classify(pod)), reasonLeft)
	}
}

// PodGone: a pod was deleted or has ended.
func (o *observer) PodGone(pod *v1.Pod) {
	o.told.Delete(pod.UID)
	if pod.Spec.NodeName != "" {
		o.unlock([]types.UID{pod.UID}, pod.Spec.NodeName)
	} else {
		o.unlock([]types.UID{pod.UID})
	}
	o.reject(o.table.DropPod(pod.UID), reasonLeft)
}

// Freed: there may be room that was not there before.
func (o *observer) Freed(gpus bool) { o.roomAppeared(gpus) }

// Problem is told as an event on the object.
func (o *observer) Problem(object runtime.Object, reason, sentence string) {
	o.recorder.Event(object, v1.EventTypeWarning, reason, sentence)
}

func (o *observer) watchJobs(informer cache.SharedIndexInformer) error {
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { o.jobSet(nil, object.(*batchv1.Job)) },
		UpdateFunc: func(old, object any) {
			before, job := old.(*batchv1.Job), object.(*batchv1.Job)
			if before.UID != job.UID {
				o.table.DropSpec(workload.JobID(before))
				before = nil
			}
			o.jobSet(before, job)
		},
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			if job, ok := object.(*batchv1.Job); ok {
				o.table.DropSpec(workload.JobID(job))
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watching Jobs: %w", err)
	}
	return quiet(informer, o.logger, "Jobs cannot be read; pods of Jobs are held until they can")
}

func (o *observer) jobSet(before, job *batchv1.Job) {
	id, gang := workload.JobID(job), workload.IsGang(job)
	if gang {
		o.table.SetSpec(id, workload.JobSpec(job))
	}
	wishes := before == nil || !maps.Equal(before.Annotations, job.Annotations)
	if !wishes && workload.IsGang(before) == gang {
		return
	}
	// What the Job's pods are, or what they ask for, may have changed.
	for _, pod := range o.table.PodsOfJob(id) {
		o.PodSeen(pod)
		o.table.Reconsider(pod.UID)
	}
	if !gang {
		o.table.DropSpec(id)
	}
}

// watchPodGroups makes an informer of our own: the CRD may not be installed, now or ever, which must not hold anything up.
func (o *observer) watchPodGroups(config *rest.Config) (cache.SharedIndexInformer, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for PodGroups: %w", err)
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(client, workload.PodGroupResource(), metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	set := func(object any) {
		if group, ok := object.(*unstructured.Unstructured); ok {
			o.table.SetSpec(groupID(group), workload.PodGroupSpec(group))
		}
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    set,
		UpdateFunc: func(_, object any) { set(object) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			if group, ok := object.(*unstructured.Unstructured); ok {
				o.table.DropSpec(groupID(group))
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watching PodGroups: %w", err)
	}
	return informer, quiet(informer, o.logger, "PodGroups cannot be read; the CRD may not be installed")
}

func groupID(group *unstructured.Unstructured) workload.GangID {
	return workload.GangID{Kind: workload.KindPodGroup, Namespace: group.GetNamespace(), Name: group.GetName()}
}

// quiet says once that a resource cannot be read; the informer goes on trying with backoff.
func quiet(informer cache.SharedIndexInformer, logger klog.Logger, message string) error {
	var once sync.Once
	err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		once.Do(func() { logger.Info(message, "err", err) })
	})
	if err != nil {
		return fmt.Errorf("setting a watch error handler: %w", err)
	}
	return nil
}

func objectMeta(uid types.UID) metav1.ObjectMeta { return metav1.ObjectMeta{UID: uid} }
