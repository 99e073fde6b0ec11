// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kinds of objects that make a gang, as sentences name them.
const (
	KindNativeGroup     = "scheduling.k8s.io PodGroup"
	KindPodGroup        = "PodGroup"
	KindClaim           = "GpuClaim"
	KindJobSet          = "JobSet"
	KindLeaderWorkerSet = "LeaderWorkerSet"
	KindJob             = "Job"
)

// Resource is one that the scheduler reads besides pods and nodes.
type Resource struct {
	Group    string
	Kind     string
	Plural   string
	Versions []string // that we can read, best first; the API server may serve another set
	Owner    bool     // it may own pods
	BuiltIn  bool     // every API server serves it
}

func (r *Resource) String() string {
	if r.Group == "" {
		return r.Plural
	}
	return r.Plural + "." + r.Group
}

const kubeflowGroup = "kubeflow.org"

// Resources that are read. Pods are among them because the workers of a LeaderWorkerSet are owned by their leader.
var (
	leaderPods       = &Resource{Kind: "Pod", Plural: "pods", Versions: []string{"v1"}, Owner: true, BuiltIn: true}
	jobs             = &Resource{Group: "batch", Kind: KindJob, Plural: "jobs", Versions: []string{"v1"}, Owner: true, BuiltIn: true}
	cronJobs         = &Resource{Group: "batch", Kind: "CronJob", Plural: "cronjobs", Versions: []string{"v1"}, Owner: true, BuiltIn: true}
	replicaSets      = &Resource{Group: "apps", Kind: "ReplicaSet", Plural: "replicasets", Versions: []string{"v1"}, Owner: true, BuiltIn: true}
	deployments      = &Resource{Group: "apps", Kind: "Deployment", Plural: "deployments", Versions: []string{"v1"}, Owner: true, BuiltIn: true}
	statefulSets     = &Resource{Group: "apps", Kind: "StatefulSet", Plural: "statefulsets", Versions: []string{"v1"}, Owner: true, BuiltIn: true}
	daemonSets       = &Resource{Group: "apps", Kind: "DaemonSet", Plural: "daemonsets", Versions: []string{"v1"}, Owner: true, BuiltIn: true}
	jobSets          = &Resource{Group: "jobset.x-k8s.io", Kind: KindJobSet, Plural: "jobsets", Versions: []string{"v1alpha2"}, Owner: true}
	leaderWorkerSets = &Resource{Group: "leaderworkerset.x-k8s.io", Kind: KindLeaderWorkerSet, Plural: "leaderworkersets", Versions: []string{"v1"}, Owner: true}
	mpiJobs          = &Resource{Group: kubeflowGroup, Kind: "MPIJob", Plural: "mpijobs", Versions: []string{"v2beta1", "v1"}, Owner: true}
	nativeGroups     = &Resource{Group: "scheduling.k8s.io", Kind: "PodGroup", Plural: "podgroups", Versions: []string{"v1beta1", "v1alpha3"}}
	podGroups        = &Resource{Group: "scheduling.x-k8s.io", Kind: "PodGroup", Plural: "podgroups", Versions: []string{"v1alpha1"}}
	gpuClaims        = &Resource{Group: "gpu.scheduling", Kind: KindClaim, Plural: "gpuclaims", Versions: []string{"v1"}}
)

// kubeflowSpecs is where each kind of training job keeps its replicas.
var kubeflowSpecs = map[string]string{
	"PyTorchJob": "pytorchReplicaSpecs", "TFJob": "tfReplicaSpecs", "MPIJob": "mpiReplicaSpecs",
	"XGBoostJob": "xgbReplicaSpecs", "PaddleJob": "paddleReplicaSpecs", "JAXJob": "jaxReplicaSpecs",
}

var resources = []*Resource{
	leaderPods, jobs, cronJobs, replicaSets, deployments, statefulSets, daemonSets, jobSets, leaderWorkerSets, mpiJobs,
	kubeflowResource("PyTorchJob"), kubeflowResource("TFJob"), kubeflowResource("XGBoostJob"),
	kubeflowResource("PaddleJob"), kubeflowResource("JAXJob"), nativeGroups, podGroups, gpuClaims,
}

func kubeflowResource(kind string) *Resource {
	return &Resource{Group: kubeflowGroup, Kind: kind, Plural: strings.ToLower(kind) + "s", Versions: []string{"v1"}, Owner: true}
}

// Resources are all that the scheduler reads besides pods and nodes.
func Resources() []*Resource { return resources[1:] }

// FindResource is nil when objects of that kind are none of ours.
func FindResource(group, kind string) *Resource {
	for _, r := range resources {
		if r.Kind == kind && r.Group == group {
			return r
		}
	}
	return nil
}

// ownerResource is nil for owners of a kind that we do not know: their annotations cannot be read, and they say nothing.
func ownerResource(ref *metav1.OwnerReference) *Resource {
	group, _, found := strings.Cut(ref.APIVersion, "/")
	if !found {
		group = ""
	}
	if r := FindResource(group, ref.Kind); r != nil && r.Owner {
		return r
	}
	return nil
}
