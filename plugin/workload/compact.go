// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Compact turns an object of one of the Resources into what is kept of it: an *Owner, a *Group or a *Claim. It is the
// transform of informers, so that a cluster with many objects costs little memory; what is compact already stays, because
// informers may ask twice. Other objects are kept as they are.
func (r *Reader) Compact(object any) (any, error) {
	switch o := object.(type) {
	case *batchv1.Job:
		return r.compactJob(o), nil
	case *batchv1.CronJob:
		return r.compactPlain(o, cronJobs, int64(desiredPods(&o.Spec.JobTemplate.Spec)), &o.Spec.JobTemplate.Spec.Template), nil
	case *appsv1.ReplicaSet:
		return r.compactPlain(o, replicaSets, replicas(o.Spec.Replicas), &o.Spec.Template), nil
	case *appsv1.Deployment:
		return r.compactPlain(o, deployments, replicas(o.Spec.Replicas), &o.Spec.Template), nil
	case *appsv1.StatefulSet:
		return r.compactPlain(o, statefulSets, replicas(o.Spec.Replicas), &o.Spec.Template), nil
	case *appsv1.DaemonSet:
		return r.compactPlain(o, daemonSets, int64(max(o.Status.DesiredNumberScheduled, 0)), &o.Spec.Template), nil
	case *unstructured.Unstructured:
		return r.compactUnstructured(o), nil
	}
	return object, nil
}

func (r *Reader) compactUnstructured(object *unstructured.Unstructured) any {
	kind := object.GroupVersionKind()
	switch resource := FindResource(kind.Group, kind.Kind); {
	case resource == nil:
		return object
	case resource == nativeGroups:
		return newNativeGroup(object)
	case resource == podGroups:
		return newPodGroup(object)
	case resource == gpuClaims:
		return newClaim(object)
	case resource == jobSets:
		return r.compactJobSet(object)
	case resource == leaderWorkerSets:
		return r.compactLeaderWorkerSet(object)
	case resource.Group == kubeflowGroup:
		return r.compactKubeflow(object, resource)
	default:
		return object
	}
}

// compactPlain is for owners of one template that make no gang.
func (r *Reader) compactPlain(object metav1.Object, resource *Resource, pods int64, template *v1.PodTemplateSpec) *Owner {
	return &Owner{ObjectMeta: compactMeta(object), Resource: resource, Templates: []Template{{Pods: pods, GPUs: r.template(template)}}}
}

func (r *Reader) compactJob(job *batchv1.Job) *Owner {
	pods := int64(desiredPods(&job.Spec))
	owner := r.compactPlain(job, jobs, pods, &job.Spec.Template)
	if pods > 1 {
		owner.Gangs = []Gang{{ID: owner.id(), Spec: jobSpec(job)}}
	}
	return owner
}

// LinkOwner is what is kept of a pod that may own others: the leader of a LeaderWorkerSet's group, whose workers' StatefulSet
// it controls. It is a link of the chain; what it asks for it asks for itself. nil: the pod owns none.
func LinkOwner(pod *v1.Pod) *Owner {
	if pod.Labels[lwsWorkerIndex] != "0" || !has(pod.Labels, lwsName) {
		return nil
	}
	meta := compactMeta(pod)
	meta.Annotations = nil
	return &Owner{ObjectMeta: meta, Resource: leaderPods}
}

// compactMeta keeps what identifies an object, its controller, and what users wrote for us.
func compactMeta(object metav1.Object) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
		Generation: object.GetGeneration(),
	}
	if controller := metav1.GetControllerOfNoCopy(object); controller != nil {
		meta.OwnerReferences = []metav1.OwnerReference{*controller}
	}
	for name, value := range object.GetAnnotations() {
		if isWish(name) {
			if meta.Annotations == nil {
				meta.Annotations = map[string]string{}
			}
			meta.Annotations[name] = value
		}
	}
	return meta
}

// isWish: what Frond itself wrote on a pod is no wish.
func isWish(name string) bool {
	return strings.HasPrefix(name, Prefix) && name != Rank && name != Domain
}

// replicas has the API server's default.
func replicas(count *int32) int64 {
	if count == nil {
		return 1
	}
	return int64(max(*count, 0))
}
