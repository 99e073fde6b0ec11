// SPDX-License-Identifier: Apache-2.0

// Package workload reads what users wrote: a pod, the objects that own it, its group and its claim become one flat
// request of numbers and key/value pairs for the engine. It owns how pods are counted, which gang a pod belongs to and
// what rank it has. What an annotation means is the engine's business.
package workload

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/shim"
)

// Names of the workload interface (reference 3.1, 3.2, 3.5, 3.6).
const (
	Prefix           = "topology.scheduler/"
	GPUCount         = Prefix + "gpu-count"
	PreferredDomain  = Prefix + "preferred-domain"
	SegmentSize      = Prefix + "segment-size"
	Rank             = Prefix + "rank"
	Domain           = Prefix + "domain"
	Allocated        = "gpu.scheduling/allocated"
	ClaimAnnotation  = "gpu.scheduling/claim"
	PodGroupLabel    = "scheduling.x-k8s.io/pod-group"
	OldPodGroupLabel = "pod-group.scheduling.sigs.k8s.io"
	CompletionIndex  = batchv1.JobCompletionIndexAnnotation // a label too
)

// Labels and annotations that controllers of third parties write on their pods.
const (
	jobSetGlobalIndex = "jobset.sigs.k8s.io/job-global-index"
	jobSetReplicated  = "jobset.sigs.k8s.io/replicatedjob-name"

	lwsName        = "leaderworkerset.sigs.k8s.io/name"
	lwsGroupKey    = "leaderworkerset.sigs.k8s.io/group-key"
	lwsGroupIndex  = "leaderworkerset.sigs.k8s.io/group-index"
	lwsWorkerIndex = "leaderworkerset.sigs.k8s.io/worker-index"
	lwsSize        = "leaderworkerset.sigs.k8s.io/size"

	kubeflowReplicaIndex = "training.kubeflow.org/replica-index"
	kubeflowReplicaType  = "training.kubeflow.org/replica-type"
	kubeflowJobRole      = "training.kubeflow.org/job-role"
)

// Kind is what a pod is to us.
type Kind int

const (
	Plain   Kind = iota // no GPUs, no gang, nothing asked: upstream's business alone
	Single              // a gang of one
	Member              // one of a gang
	Unknown             // an object that it refers to has not been seen yet, so nothing is known
	Refused             // what it says of itself cannot be: it stays pending with the Problem as its event
)

// GangID names a gang by the object that makes it one. An owner's UID is known from its pods; a PodGroup's only from
// the object, which may come and go, so it stays out of the name.
type GangID struct {
	Kind      string // of the object
	Namespace string
	Name      string
	UID       string // of an owner, or what else tells two gangs of one name apart
}

func (g GangID) String() string { return g.Namespace + "/" + g.Name }

// Gathers says whether more pods than the gang needs may be on their way, so that it is worth a moment to wait for them.
func (g GangID) Gathers() bool { return g.Kind == KindPodGroup || g.Kind == KindNativeGroup }

// OwnSize says whether the pods themselves say how many they are, without an object that does.
func (g GangID) OwnSize() bool { return g.Kind == KindLeaderWorkerSet }

// Class is what is known of a pod from the pod and the objects that it refers to.
type Class struct {
	Kind    Kind
	GPUs    uint32
	Gang    GangID    // of a Member; of an Unknown the object that it waits for
	Size    int       // of a Member whose Gang has its OwnSize
	Index   Index     // where its rank comes from
	Needs   *Resource // what the scheduler would have to read to know more; nil: nothing
	Problem string    // of a Refused
}

// Spec is what the API says of a gang.
type Spec struct {
	MinMember       int
	More            bool            // it has more pods than MinMember
	MinResources    v1.ResourceList // nil: none
	ScheduleTimeout time.Duration   // 0: none
	UID             types.UID       // of the object that says it
	Problem         string          // why the gang cannot be formed as it is
}

// Equal compares all of it.
func (s Spec) Equal(other Spec) bool {
	return s.MinMember == other.MinMember && s.More == other.More && s.ScheduleTimeout == other.ScheduleTimeout && s.UID == other.UID &&
		s.Problem == other.Problem && equality.Semantic.DeepEqual(s.MinResources, other.MinResources)
}

// Reader turns API objects into requests. What is not in the pod comes from stores of our own, so every method is cheap
// and never waits for the API.
type Reader struct {
	counter
	owners *Owners
	claims *Claims

	nativeTaken bool // upstream forms native groups itself
	serves      func(schedulerName string) bool
	findGPU     func(id string) (shim.Named, bool)
}

// NewReader counts the named resources as GPUs, and finds owners and claims in the stores.
func NewReader(resources []string, owners *Owners, claims *Claims) *Reader {
	r := &Reader{owners: owners, claims: claims}
	for _, name := range resources {
		r.resources = append(r.resources, v1.ResourceName(name))
	}
	return r
}

// FindGPUs says who knows where the GPU with an id is, for claims that prefer some. To be called before the first request.
func (r *Reader) FindGPUs(find func(id string) (shim.Named, bool)) { r.findGPU = find }

// Serve says which schedulers' pods may be in gangs; else those of all may. To be called before the first pod is read.
func (r *Reader) Serve(serves func(schedulerName string) bool) { r.serves = serves }

// LeaveNativeGroups says that upstream's own gang scheduling is on. It takes a native group through one cycle of its own, in which
// all members must be in the queue, and we hold all but the lead back until they are planned: such a group would wait for ever,
// so its pods with GPUs are refused instead.
func (r *Reader) LeaveNativeGroups() { r.nativeTaken = true }

const problemNative = "spec.schedulingGroup: this scheduler runs with the feature gate GenericWorkload, under which upstream forms the group and nobody " +
	"chooses its GPUs; turn the gate off in the scheduler, or use label %s with a PodGroup of scheduling.x-k8s.io"

func has[K comparable, V any](values map[K]V, key K) bool {
	_, found := values[key]
	return found
}
