// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/frond-scheduler/frond/plugin/apis"
	"github.com/frond-scheduler/frond/shim"
)

// Claim is what is kept of a GpuClaim. It is never changed once it is in a store.
type Claim struct {
	metav1.ObjectMeta
	JSON     string          // the spec, for the engine, which says what is wrong with it
	Devices  string          // the part of the spec that is about GPUs inside a node; equal texts ask for the same
	Count    int64           // GPUs of a pod; 0: not said
	Selector labels.Selector // of nodes; nil: any
	GangRef  string          // "": none
	Prefers  []string        // ids of GPUs that it would rather have; indices, which are any node's, are the engine's to read
	Problem  string          // why no pod can use it

	// What a scheduler wrote into the status last.
	Phase apis.ClaimPhase
	Pod   apis.ClaimPod
}

// newClaim reads a GpuClaim. Only what the host needs is looked at: the rest of the spec is the engine's to judge.
func newClaim(object *unstructured.Unstructured) *Claim {
	claim := &Claim{ObjectMeta: compactMeta(object)}
	claim.Annotations, claim.OwnerReferences = nil, nil
	if status, err := apis.Status[apis.GpuClaimStatus](object); err == nil { // else nobody of ours wrote it
		claim.Phase = status.Phase
		if status.Pod != nil {
			claim.Pod = *status.Pod
		}
	}
	if err := claim.read(object); err != nil {
		claim.Problem = fmt.Sprintf("GpuClaim %s/%s: %v", claim.Namespace, claim.Name, err)
	}
	return claim
}

func (c *Claim) read(object *unstructured.Unstructured) error {
	spec, _, err := unstructured.NestedMap(object.Object, "spec")
	if err != nil {
		return fmt.Errorf("spec is no object")
	}
	if spec == nil {
		spec = map[string]any{}
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("spec: %w", err)
	}
	devices, err := json.Marshal([]any{spec["devices"], spec["topology"]})
	if err != nil {
		return fmt.Errorf("spec.devices: %w", err)
	}
	c.JSON, c.Devices = string(text), string(devices)

	exclusivity, _, err := unstructured.NestedString(spec, "devices", "exclusivity")
	if err != nil {
		return fmt.Errorf("devices.exclusivity is no text")
	}
	if exclusivity != "" && exclusivity != "Exclusive" {
		return fmt.Errorf("devices.exclusivity %q is not supported yet; only Exclusive is", shorten(exclusivity))
	}
	count, found, err := unstructured.NestedInt64(spec, "devices", "count")
	if err != nil || (found && count < 1) {
		return fmt.Errorf("devices.count must be a number of 1 or more")
	}
	c.Count = count
	c.Prefers = preferred(spec)
	if c.GangRef, _, err = unstructured.NestedString(spec, "gangRef"); err != nil {
		return fmt.Errorf("gangRef is no text")
	}
	if c.GangRef != "" && !isObjectName(c.GangRef) {
		return fmt.Errorf("gangRef must be the name of a PodGroup in the same namespace, got %q", shorten(c.GangRef))
	}
	match, _, err := unstructured.NestedStringMap(spec, "selector", "matchLabels")
	if err != nil {
		return fmt.Errorf("selector.matchLabels must be an object of labels and their values")
	}
	if len(match) > 0 {
		if c.Selector, err = labels.ValidatedSelectorFromSet(match); err != nil {
			return fmt.Errorf("selector.matchLabels: %.200s", err)
		}
	}
	return nil
}

// preferred are the texts of devices.preferIds that are no indices. What else is in the list, and too much of it, the engine
// refuses.
func preferred(spec map[string]any) (ids []string) {
	list, _, _ := unstructured.NestedSlice(spec, "devices", "preferIds")
	for _, item := range list {
		if id, ok := item.(string); ok && len(ids) < shim.GPUsMax && strings.Trim(id, "0123456789") != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

func isObjectName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

// Claims is the store of GpuClaims and of the pods that use them. A claim serves one pod at a time, the first that was
// seen, but a bound one before all others; with a gangRef it serves every pod of that group, each with its own GPUs.
type Claims struct {
	mu     sync.RWMutex
	byName map[types.NamespacedName]*Claim
	users  map[types.NamespacedName]*claimUsers
	of     map[types.UID]types.NamespacedName // by pod
}

type claimUsers struct {
	pods   map[types.UID]*v1.Pod
	holder types.UID
}

// NewClaims makes an empty store.
func NewClaims() *Claims {
	return &Claims{byName: map[types.NamespacedName]*Claim{}, users: map[types.NamespacedName]*claimUsers{}, of: map[types.UID]types.NamespacedName{}}
}

// Set enters a claim, or what it is now. news: its spec is another than before, not only its status.
func (s *Claims) Set(claim *Claim) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}
	before := s.byName[name]
	s.byName[name] = claim
	return before == nil || before.UID != claim.UID || before.Generation != claim.Generation || before.JSON != claim.JSON
}

// Drop forgets a claim that is gone.
func (s *Claims) Drop(claim *Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}
	if known := s.byName[name]; known != nil && known.UID == claim.UID {
		delete(s.byName, name)
	}
}

// Use says that a pod is there which may name a claim. passed: claims that have another holder by now, whose pods are to be
// read anew.
func (s *Claims) Use(pod *v1.Pod) (passed []types.NamespacedName) {
	name, named := ClaimName(pod)
	foreign := pod.Spec.NodeName != "" && !BoundByUs(pod) // whoever set its node has not asked for the claim
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, using := s.of[pod.UID]; using && (!named || foreign || old != name) {
		passed = s.leave(pod.UID)
	}
	if !named || foreign {
		return passed
	}
	users := s.users[name]
	if users == nil {
		users = &claimUsers{pods: map[types.UID]*v1.Pod{}, holder: pod.UID}
		s.users[name] = users
	}
	users.pods[pod.UID], s.of[pod.UID] = pod, name
	if pod.Spec.NodeName != "" && users.holder != pod.UID && users.pods[users.holder].Spec.NodeName == "" {
		users.holder = pod.UID
		passed = append(passed, name)
	}
	return passed
}

// Leave says that a pod has gone or ended.
func (s *Claims) Leave(uid types.UID) (passed []types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leave(uid)
}

func (s *Claims) leave(uid types.UID) (passed []types.NamespacedName) {
	name, using := s.of[uid]
	if !using {
		return nil
	}
	delete(s.of, uid)
	users := s.users[name]
	delete(users.pods, uid)
	if len(users.pods) == 0 {
		delete(s.users, name)
		return nil
	}
	if users.holder != uid {
		return nil
	}
	waiting := make([]*v1.Pod, 0, len(users.pods))
	for _, pod := range users.pods {
		waiting = append(waiting, pod)
	}
	users.holder = slices.MinFunc(waiting, func(a, b *v1.Pod) int {
		return cmp.Or(bound(b)-bound(a), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), NaturalCompare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	}).UID
	return []types.NamespacedName{name}
}

func bound(pod *v1.Pod) int {
	if pod.Spec.NodeName == "" {
		return 0
	}
	return 1
}

// get is the claim, nil when it has not been seen, and the pod that holds it.
func (s *Claims) get(name types.NamespacedName) (claim *Claim, holder *v1.Pod) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if users := s.users[name]; users != nil {
		holder = users.pods[users.holder]
	}
	return s.byName[name], holder
}

// Users are the claim, nil when it has not been seen, the pod that holds it, nil when none does, and all pods that name it,
// in no order.
func (s *Claims) Users(name types.NamespacedName) (claim *Claim, holder *v1.Pod, pods []*v1.Pod) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	users := s.users[name]
	if users == nil {
		return s.byName[name], nil, nil
	}
	for _, pod := range users.pods {
		pods = append(pods, pod)
	}
	return s.byName[name], users.pods[users.holder], pods
}

// Names of all claims that have been seen, in no order.
func (s *Claims) Names() []types.NamespacedName {
	s.mu.RLock()
	defer s.mu.RUnlock()
	names := make([]types.NamespacedName, 0, len(s.byName))
	for name := range s.byName {
		names = append(names, name)
	}
	return names
}

// ClaimName is the claim that a pod names, in its own namespace.
func ClaimName(pod *v1.Pod) (types.NamespacedName, bool) {
	name, found := pod.Annotations[ClaimAnnotation]
	return types.NamespacedName{Namespace: pod.Namespace, Name: name}, found
}

// Claim of a pod: nil when it names none, or one that has not been seen. problem: why the pod cannot have it.
func (r *Reader) Claim(pod *v1.Pod) (claim *Claim, problem string) {
	name, named := ClaimName(pod)
	if !named {
		return nil, ""
	}
	if !isObjectName(name.Name) {
		return nil, fmt.Sprintf("annotation %s must be the name of a GpuClaim in the pod's own namespace, got %q", ClaimAnnotation, shorten(name.Name))
	}
	claim, holder := r.claims.get(name)
	gpus := int64(r.GPUs(pod))
	switch {
	case claim == nil:
		return nil, ""
	case claim.Problem != "":
		return claim, claim.Problem
	case gpus == 0 && claim.Count == 0:
		return claim, fmt.Sprintf("GpuClaim %s is for pods with 1 GPU or more and the pod's limits are 0", name)
	case claim.Count > 0 && claim.Count != gpus:
		return claim, fmt.Sprintf("GpuClaim %s asks for %d GPUs and the pod's limits are %d; they must be equal", name, claim.Count, gpus)
	case claim.GangRef == "" && holder != nil && holder.UID != pod.UID:
		return claim, fmt.Sprintf("GpuClaim %s serves one pod at a time and pod %s/%s uses it; a claim with a gangRef serves every pod of that group", name, holder.Namespace, holder.Name)
	}
	return claim, ""
}
