// SPDX-License-Identifier: Apache-2.0

// Package workload reads what users wrote: a pod, its controlling Job and its PodGroup become one flat request of
// numbers and key/value pairs for the engine. It owns how pods are counted, which gang a pod belongs to and what rank
// it has. What an annotation means is the engine's business.
package workload

import (
	"fmt"
	"math"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	batchlisters "k8s.io/client-go/listers/batch/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/frond-scheduler/frond/shim"
)

// Names of the workload interface (spec 3.1, 3.5, 3.6).
const (
	Prefix          = "topology.scheduler/"
	GPUCount        = Prefix + "gpu-count"
	PreferredDomain = Prefix + "preferred-domain"
	Rank            = Prefix + "rank"
	Domain          = Prefix + "domain"
	Allocated       = "gpu.scheduling/allocated"
	PodGroupLabel   = "scheduling.x-k8s.io/pod-group"
	CompletionIndex = batchv1.JobCompletionIndexAnnotation // a label too
)

// Kind is what a pod is to us.
type Kind int

const (
	Plain   Kind = iota // no GPUs, no gang, nothing asked: upstream's business alone
	Single              // a gang of one
	Member              // one of a gang
	Unknown             // its Job has not been seen yet, so nothing is known
)

// GangID names a gang by the object that makes it one. A Job's UID is known from its pods; a PodGroup's only from the
// object, which may come and go, so it stays out of the name.
type GangID struct {
	Kind      string // "PodGroup" or "Job"
	Namespace string
	Name      string
	UID       string // of a Job
}

const (
	KindPodGroup = "PodGroup"
	KindJob      = "Job"
)

func (g GangID) String() string { return g.Namespace + "/" + g.Name }

// Class is what is known of a pod from the pod and its Job alone.
type Class struct {
	Kind Kind
	GPUs uint32
	Gang GangID // of a Member; of an Unknown the Job that it waits for
}

// Reader turns API objects into requests. Jobs come from a lister, so every method is cheap and takes no lock of ours.
type Reader struct {
	resources []v1.ResourceName
	jobs      batchlisters.JobLister
}

// NewReader counts the named resources as GPUs and finds controlling Jobs in the lister.
func NewReader(resources []string, jobs batchlisters.JobLister) *Reader {
	r := &Reader{jobs: jobs}
	for _, name := range resources {
		r.resources = append(r.resources, v1.ResourceName(name))
	}
	return r
}

// Classify says what a pod is to us.
func (r *Reader) Classify(pod *v1.Pod) Class {
	class := Class{GPUs: r.GPUs(pod)}
	if name := pod.Labels[PodGroupLabel]; name != "" {
		class.Kind, class.Gang = Member, GangID{Kind: KindPodGroup, Namespace: pod.Namespace, Name: name}
		return class
	}
	owner := controllingJob(pod)
	if owner == nil {
		if class.GPUs > 0 || has(pod.Annotations, GPUCount) {
			class.Kind = Single
		}
		return class
	}
	job := r.job(pod.Namespace, owner)
	switch {
	case has(pod.Annotations, GPUCount):
		class.Kind = Single // the pod carries the count itself, so it speaks of this pod only
	case job == nil:
		class.Kind, class.Gang = Unknown, jobID(pod.Namespace, owner.Name, owner.UID)
	case IsGang(job):
		class.Kind, class.Gang = Member, JobID(job)
	case class.GPUs > 0 || has(job.Annotations, GPUCount):
		class.Kind = Single
	}
	return class
}

// GPUs of a pod, as upstream counts resources: containers together, init containers one at a time.
func (r *Reader) GPUs(pod *v1.Pod) uint32 {
	if !r.mentions(pod.Spec.Containers) && !r.mentions(pod.Spec.InitContainers) {
		return 0
	}
	return r.count(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}))
}

// NodeGPUs of a node: what it lets pods have.
func (r *Reader) NodeGPUs(node *v1.Node) uint32 { return r.count(node.Status.Allocatable) }

// Resources are the names counted as GPUs.
func (r *Reader) Resources() []v1.ResourceName { return r.resources }

func (r *Reader) count(list v1.ResourceList) uint32 {
	sum := uint64(0)
	for _, name := range r.resources {
		if quantity, ok := list[name]; ok {
			sum += uint64(max(quantity.Value(), 0))
		}
	}
	return uint32(min(sum, math.MaxUint32))
}

func (r *Reader) mentions(containers []v1.Container) bool {
	for i := range containers {
		for _, name := range r.resources {
			if has(containers[i].Resources.Requests, name) || has(containers[i].Resources.Limits, name) {
				return true
			}
		}
	}
	return false
}

// Annotations for the engine: each topology.scheduler key from the pod or, if absent there, from its Job. What Frond
// itself wrote on a pod is no wish.
func (r *Reader) Annotations(pod *v1.Pod) map[string]string {
	wishes := map[string]string{}
	if owner := controllingJob(pod); owner != nil {
		if job := r.job(pod.Namespace, owner); job != nil {
			addWishes(wishes, job.Annotations)
		}
	}
	addWishes(wishes, pod.Annotations)
	return wishes
}

func addWishes(wishes, annotations map[string]string) {
	for name, value := range annotations {
		if strings.HasPrefix(name, Prefix) && name != Rank && name != Domain {
			wishes[name] = value
		}
	}
}

// desiredGPUs is what gpu-count is held against: GPUs of a pod × desired pods of the object that carries it.
func (r *Reader) desiredGPUs(pod *v1.Pod, gpus uint32) uint64 {
	if has(pod.Annotations, GPUCount) {
		return uint64(gpus)
	}
	if owner := controllingJob(pod); owner != nil {
		if job := r.job(pod.Namespace, owner); job != nil && has(job.Annotations, GPUCount) {
			return uint64(gpus) * uint64(desiredPods(job))
		}
	}
	return uint64(gpus)
}

// SingleRequest is the request of a pod in no gang.
func (r *Reader) SingleRequest(pod *v1.Pod, now time.Time) (shim.Request, shim.Member, map[string]string) {
	gpus, key := r.GPUs(pod), shim.PodKey(string(pod.UID))
	request := shim.Request{
		Gang: key, MinMember: 1, GPUsDesired: r.desiredGPUs(pod, gpus), Age: age(now, pod), OnlySlot: shim.None,
		Name: pod.Namespace + "/" + pod.Name, Priority: priority(pod),
	}
	return request, shim.Member{Pod: key, GPUs: gpus, PinnedSlot: shim.None}, r.Annotations(pod)
}

// GangMember is one pod of a gang, with its rank.
type GangMember struct {
	Pod  *v1.Pod
	GPUs uint32
	Rank uint32
	Slot uint32 // of the node it is bound to; shim.None: to be placed
}

// GangRequest is the request of a gang: members by ascending rank, the wishes of the lead.
func (r *Reader) GangRequest(id GangID, spec Spec, lead *v1.Pod, members []GangMember, now time.Time) (shim.Request, []shim.Member, map[string]string) {
	request := shim.Request{
		Gang: GangKey(id), MinMember: uint32(min(max(spec.MinMember, 1), len(members))),
		GPUsDesired: r.desiredGPUs(lead, r.GPUs(lead)), OnlySlot: shim.None, Name: id.String(), Age: math.MaxInt64,
		Priority: priority(lead),
	}
	out := make([]shim.Member, len(members))
	for i, m := range members {
		out[i] = shim.Member{Pod: shim.PodKey(string(m.Pod.UID)), Rank: m.Rank, GPUs: m.GPUs, PinnedSlot: m.Slot}
		if m.Slot == shim.None {
			request.Age = min(request.Age, age(now, m.Pod)) // topology-wait counts from the youngest member
		}
	}
	return request, out, r.Annotations(lead)
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

// Spec is what the API says of a gang.
type Spec struct {
	MinMember int    // pods that must be there together
	Problem   string // why no gang can be formed; "": none
}

// JobSpec is the gang that a Job makes: all pods that it still runs at one time.
func JobSpec(job *batchv1.Job) Spec {
	need := int64(desiredPods(job))
	if job.Spec.Completions != nil {
		// Pods that have succeeded do not come back; the last ones must not wait for them.
		need = min(need, int64(*job.Spec.Completions)-int64(job.Status.Succeeded))
	}
	return Spec{MinMember: int(max(need, 1)), Problem: sizeProblem(int64(desiredPods(job)), func(n int64) string {
		return fmt.Sprintf("Job %s/%s: a gang has at most %d pods, parallelism asks for %d", job.Namespace, job.Name, shim.MembersMax, n)
	})}
}

func sizeProblem(n int64, sentence func(int64) string) string {
	if n < 1 || n > shim.MembersMax {
		return sentence(n)
	}
	return ""
}

// JobID names the gang of a Job's pods.
func JobID(job *batchv1.Job) GangID { return jobID(job.Namespace, job.Name, job.UID) }

// OwnerJobID names the gang of the pod's controlling Job, if it has one.
func OwnerJobID(pod *v1.Pod) (GangID, bool) {
	owner := controllingJob(pod)
	if owner == nil {
		return GangID{}, false
	}
	return jobID(pod.Namespace, owner.Name, owner.UID), true
}

func jobID(namespace, name string, uid types.UID) GangID {
	return GangID{Kind: KindJob, Namespace: namespace, Name: name, UID: string(uid)}
}

// IsGang says whether a Job makes its pods a gang.
func IsGang(job *batchv1.Job) bool { return has(job.Annotations, GPUCount) && desiredPods(job) > 1 }

func controllingJob(pod *v1.Pod) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind != "Job" || !strings.HasPrefix(owner.APIVersion, batchv1.GroupName+"/") {
		return nil
	}
	return owner
}

// job is nil when it is not known, or when its name belongs to another Job by now.
func (r *Reader) job(namespace string, owner *metav1.OwnerReference) *batchv1.Job {
	job, err := r.jobs.Jobs(namespace).Get(owner.Name)
	if err != nil || job.UID != owner.UID {
		return nil
	}
	return job
}

// desiredPods that a Job runs at one time, by its spec.
func desiredPods(job *batchv1.Job) uint32 {
	pods := int32(1)
	if job.Spec.Parallelism != nil {
		pods = *job.Spec.Parallelism
	}
	if job.Spec.Completions != nil {
		pods = min(pods, *job.Spec.Completions)
	}
	return uint32(max(pods, 0))
}

func has[K comparable, V any](values map[K]V, key K) bool {
	_, found := values[key]
	return found
}

// NoJobs is a lister that knows no Job, for programs that only count GPUs.
type NoJobs struct{ batchlisters.JobLister }

// Jobs finds nothing.
func (NoJobs) Jobs(string) batchlisters.JobNamespaceLister { return noJobs{} }

type noJobs struct {
	batchlisters.JobNamespaceLister
}

func (noJobs) Get(name string) (*batchv1.Job, error) {
	return nil, apierrors.NewNotFound(batchv1.Resource("jobs"), name)
}
