// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Names of reference 3.6 and 4, written down here once more: the judge takes nobody's word.
const (
	allocatedKey = "gpu.scheduling/allocated"
	ownersKey    = "gpu.scheduling/owners"
	rankKey      = "topology.scheduler/rank"
	domainKey    = "topology.scheduler/domain"
	leafKey      = "fabric.topograph.run/tier-0"
	spineKey     = "fabric.topograph.run/tier-1"
	gpuResource  = "nvidia.com/gpu"
	lockSpace    = "frond-system"
)

// Record is one change of one object. Exactly one of Pod, Node and Lease is set.
type Record struct {
	Version uint64
	Seen    time.Time
	Initial bool // it was there before the judge came
	Gone    bool // the object was deleted
	Pod     *Pod
	Node    *Node
	Lease   *Lease
}

// Pod is what matters of one.
type Pod struct {
	UID, Name, Gang string // Name with its namespace; Gang "": none
	Scheduler       string
	GPUs            int // of its limits
	Node            string
	IDs             []string
	Rank, Domain    string
	Over            bool // succeeded or failed
	Failed          bool
}

// Node is what matters of one.
type Node struct {
	Name, Leaf, Spine string
	GPUs              int // allocatable
	Takes             bool
}

// Lease holds the owners of a node's GPUs, by id.
type Lease struct {
	Name   string
	Owners map[string]string
	Locks  bool // it has the annotation, or never had another use
}

func podRecord(pod *corev1.Pod, gangOf func(*corev1.Pod) string) *Pod {
	record := &Pod{
		UID: string(pod.UID), Name: pod.Namespace + "/" + pod.Name, Gang: gangOf(pod), Scheduler: pod.Spec.SchedulerName,
		Node: pod.Spec.NodeName, Rank: pod.Annotations[rankKey], Domain: pod.Annotations[domainKey],
		Failed: pod.Status.Phase == corev1.PodFailed,
		Over:   pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
	}
	for i := range pod.Spec.Containers {
		gpus := pod.Spec.Containers[i].Resources.Limits[gpuResource]
		record.GPUs += int(gpus.Value())
	}
	if text := pod.Annotations[allocatedKey]; text != "" {
		record.IDs = strings.Split(text, ",")
	}
	return record
}

func nodeRecord(node *corev1.Node) *Node {
	gpus := node.Status.Allocatable[gpuResource]
	record := &Node{
		Name: node.Name, Leaf: node.Labels[leafKey], Spine: node.Labels[spineKey], GPUs: int(gpus.Value()), Takes: !node.Spec.Unschedulable,
	}
	for _, taint := range node.Spec.Taints {
		if taint.Effect != corev1.TaintEffectPreferNoSchedule {
			record.Takes = false
		}
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			record.Takes = false
		}
	}
	return record
}

// leaseRecord reads a Lease of the locks' namespace; the one of leader election has no owners, and none are read.
func leaseRecord(lease *coordinationv1.Lease) (*Lease, error) {
	record := &Lease{Name: lease.Name, Owners: map[string]string{}}
	text, found := lease.Annotations[ownersKey]
	record.Locks = found
	if !found || text == "" {
		return record, nil
	}
	if err := json.Unmarshal([]byte(text), &record.Owners); err != nil {
		return record, fmt.Errorf("Lease %s: annotation %s: %w", lease.Name, ownersKey, err)
	}
	return record, nil
}

func version(object metav1.Object) (uint64, error) {
	number, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s has resource version %q, which is no number", object.GetName(), object.GetResourceVersion())
	}
	return number, nil
}

// GangOf is the gang of a pod by the labels that the tests use, with its namespace; "": none.
func GangOf(pod *corev1.Pod) string {
	for _, label := range []string{"scheduling.x-k8s.io/pod-group", "batch.kubernetes.io/job-name"} {
		if name := pod.Labels[label]; name != "" {
			return pod.Namespace + "/" + name
		}
	}
	return ""
}
