// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// depthMost is how many owners above a pod are read. What lies further up says nothing.
const depthMost = 6

// Owner is what is kept of an object that owns pods, directly or through other objects. It is never changed once it is
// in a store. The metadata holds what identifies it, its controller, and annotations that users wrote for us.
type Owner struct {
	metav1.ObjectMeta
	Resource  *Resource
	Templates []Template // of its pods; none: it is only a link of the chain
	Gangs     []Gang     // that it makes of its pods
	Parts     []Part     // of a JobSet its replicated jobs, of a Kubeflow job its replica types, in order of rank
	Stepwise  bool       // it makes a part of its pods only after another part runs: all of them never wait together
	Padded    bool       // of an MPIJob: the launcher works too and has index 0, the workers count from 1
}

// Template is a pod template with the number of pods that are wanted of it.
type Template struct {
	Pods int64
	GPUs uint32 // of a pod, as far as the template tells
}

// Gang is one with what its owner says of it.
type Gang struct {
	ID   GangID
	Spec Spec
}

// Part of an owner's pods.
type Part struct {
	Name  string
	Count int64 // Jobs of a replicated job, pods of a replica type
	Pods  int64 // of each
}

// Pods that are wanted of all templates.
func (o *Owner) Pods() int64 {
	sum := int64(0)
	for _, t := range o.Templates {
		sum = plus(sum, t.Pods)
	}
	return sum
}

// id names the owner as a gang, or as what a pod waits for.
func (o *Owner) id() GangID {
	return GangID{Kind: o.Resource.Kind, Namespace: o.Namespace, Name: o.Name, UID: string(o.UID)}
}

// Same says whether pods of the owner are read alike with both: neither status nor what is not ours counts.
func (o *Owner) Same(other *Owner) bool {
	return o.UID == other.UID && o.Stepwise == other.Stepwise && o.Padded == other.Padded &&
		maps.Equal(o.Annotations, other.Annotations) && slices.Equal(o.Templates, other.Templates) && slices.Equal(o.Parts, other.Parts) &&
		slices.EqualFunc(o.OwnerReferences, other.OwnerReferences, func(a, b metav1.OwnerReference) bool { return a.UID == b.UID })
}

// Owners is the store of objects that own pods. Informers write it; a reader asks it for the chain of owners above a pod.
type Owners struct {
	mu       sync.RWMutex
	byUID    map[types.UID]*Owner
	children map[types.UID]map[types.UID]bool // by controlling owner, seen or not
	silent   map[*Resource]bool               // cannot be read: such owners say nothing
}

// NewOwners makes an empty store.
func NewOwners() *Owners {
	return &Owners{byUID: map[types.UID]*Owner{}, children: map[types.UID]map[types.UID]bool{}, silent: map[*Resource]bool{}}
}

// Set enters an owner, or what it is now, and returns what it was, nil when it is new.
func (s *Owners) Set(owner *Owner) (before *Owner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before = s.forget(owner.UID)
	s.byUID[owner.UID] = owner
	if parent := metav1.GetControllerOfNoCopy(owner); parent != nil {
		if s.children[parent.UID] == nil {
			s.children[parent.UID] = map[types.UID]bool{}
		}
		s.children[parent.UID][owner.UID] = true
	}
	return before
}

// Drop forgets an owner that is gone, and returns what it was, nil when it was not known.
func (s *Owners) Drop(uid types.UID) *Owner {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.forget(uid)
}

func (s *Owners) forget(uid types.UID) *Owner {
	old := s.byUID[uid]
	if old == nil {
		return nil
	}
	delete(s.byUID, uid)
	if parent := metav1.GetControllerOfNoCopy(old); parent != nil {
		delete(s.children[parent.UID], uid)
		if len(s.children[parent.UID]) == 0 {
			delete(s.children, parent.UID)
		}
	}
	return old
}

// SetSilent says that owners of a resource cannot be read, or again can.
func (s *Owners) SetSilent(resource *Resource, silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent[resource] = silent
}

// Under are the UIDs of an owner and of all owners below it: pods that any of them controls are read anew when it changes.
func (s *Owners) Under(uid types.UID) []types.UID {
	s.mu.RLock()
	defer s.mu.RUnlock()
	list, seen := []types.UID{uid}, map[types.UID]bool{uid: true}
	for i := 0; i < len(list); i++ {
		for child := range s.children[list[i]] {
			if !seen[child] {
				seen[child] = true
				list = append(list, child)
			}
		}
	}
	return list
}

// lineage is the chain of controlling owners above a pod, nearest first, as far as it is known.
type lineage struct {
	owners  []*Owner
	missing *metav1.OwnerReference // the next one, which has not been seen; nil: the chain is whole
	silent  *Resource              // of the next one, which cannot be read
	problem string                 // why it is no chain
}

// lineage walks up. An owner is the one that is meant only when UID, kind, namespace and name agree: a reference is
// written by users, and must not reach into another namespace.
func (s *Owners) lineage(pod *v1.Pod) (line lineage) {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil {
		return line
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for ref != nil && len(line.owners) < depthMost {
		resource := ownerResource(ref)
		if resource == nil || (resource == leaderPods && !has(pod.Labels, lwsName)) {
			return line // pods that own pods elsewhere say nothing either
		}
		if ref.UID == pod.UID || slices.ContainsFunc(line.owners, func(o *Owner) bool { return o.UID == ref.UID }) {
			line.problem = fmt.Sprintf("the owners of the pod go in a circle: %s %s/%s comes twice", ref.Kind, pod.Namespace, ref.Name)
			return line
		}
		owner := s.byUID[ref.UID]
		if owner == nil || owner.Resource != resource || owner.Namespace != pod.Namespace || owner.Name != ref.Name {
			if line.missing = ref; s.silent[resource] {
				line.missing, line.silent = nil, resource
			}
			return line
		}
		line.owners = append(line.owners, owner)
		ref = metav1.GetControllerOfNoCopy(owner)
	}
	return line
}

// find is the nearest owner of a resource.
func (l *lineage) find(resource *Resource) *Owner {
	for _, owner := range l.owners {
		if owner.Resource == resource {
			return owner
		}
	}
	return nil
}

// wishes are the annotations for the engine: each key from the nearest object that carries it.
func (l *lineage) wishes(pod *v1.Pod) map[string]string {
	wishes := map[string]string{}
	for i := len(l.owners) - 1; i >= 0; i-- {
		maps.Copy(wishes, l.owners[i].Annotations)
	}
	for name, value := range pod.Annotations {
		if isWish(name) {
			wishes[name] = value
		}
	}
	return wishes
}

// counted is the owner that carries gpu-count, nil when none does. Controllers copy annotations downwards (a Deployment to
// its ReplicaSets, a LeaderWorkerSet to its StatefulSets), so of those that carry the same value the furthest is meant.
func (l *lineage) counted() (carrier *Owner) {
	value := ""
	for _, owner := range l.owners {
		if text, found := owner.Annotations[GPUCount]; found && (carrier == nil || text == value) {
			carrier, value = owner, text
		}
	}
	return carrier
}

// most bounds sums of pods, far beyond what a gang may have, so that no product of numbers from outside overflows.
const most = int64(1) << 40

func plus(a, b int64) int64 { return min(a+b, most) }

func times(a, b int64) int64 {
	if a <= 0 || b <= 0 {
		return 0
	}
	if a > most/b {
		return most
	}
	return a * b
}
