// SPDX-License-Identifier: Apache-2.0

// Package mirror is the only writer of cluster state into the engine: nodes and bound pods, as informers tell them. It
// owns the dense numbers (slots) by which the engine knows nodes. It decides nothing.
package mirror

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/frond-scheduler/frond/plugin/workload"
	"github.com/frond-scheduler/frond/shim"
)

// Limits of the engine that the scheduler runs. Over them is an error that is logged and told, never a crash.
func Limits() shim.Limits { return shim.Limits{Nodes: 16384, Pods: 65536} }

// Engine is what the mirror writes to.
type Engine interface {
	NodePut(node shim.Node, labels map[string]string) error
	NodeRemove(slot uint32) error
	PodPut(pod shim.Pod) error
	Release(pod shim.Key) error
	Problems() []string
	Limits() shim.Limits
}

// Mirror of the cluster.
type Mirror struct {
	engine Engine
	reader *workload.Reader
	dirty  chan struct{} // the fabric has changed

	mu    sync.RWMutex
	nodes map[string]*node
	names []string // by slot; "": free
	free  []uint32 // given back, oldest first
	used  uint32   // slots handed out so far
	pods  map[types.UID]*pod
	on    map[string]map[types.UID]*pod // by node name, known or not
}

type node struct {
	slot   uint32
	entry  shim.Node
	labels map[string]string
}

type pod struct {
	name  types.NamespacedName
	entry shim.Pod
	node  string
	in    bool // the engine has it
}

// New makes an empty mirror of an engine.
func New(engine Engine, reader *workload.Reader) *Mirror {
	return &Mirror{
		engine: engine, reader: reader, dirty: make(chan struct{}, 1), nodes: map[string]*node{},
		pods: map[types.UID]*pod{}, on: map[string]map[types.UID]*pod{},
	}
}

// Slot is the engine's number for a node.
func (m *Mirror) Slot(name string) (uint32, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n := m.nodes[name]
	if n == nil {
		return shim.None, false
	}
	return n.slot, true
}

// Slots looks many nodes up at once; shim.None for those that are not known.
func (m *Mirror) Slots(names []string) []uint32 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	slots := make([]uint32, len(names))
	for i, name := range names {
		if n := m.nodes[name]; n != nil {
			slots[i] = n.slot
		} else {
			slots[i] = shim.None
		}
	}
	return slots
}

// Name is the node with that number, "" when there is none.
func (m *Mirror) Name(slot uint32) string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if int64(slot) >= int64(len(m.names)) {
		return ""
	}
	return m.names[slot]
}

// SetNode enters or changes a node. changed: the engine was told something new.
func (m *Mirror) SetNode(object *v1.Node) (changed bool, err error) {
	entry := shim.Node{Name: object.Name, GPUs: m.reader.NodeGPUs(object), Topology: shim.None}
	if object.Spec.Unschedulable {
		entry.Flags |= shim.NodeCordoned
	}
	if !ready(object) {
		entry.Flags |= shim.NodeDown
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.nodes[object.Name]
	if n != nil {
		entry.Slot = n.slot
		if n.entry == entry && maps.Equal(n.labels, object.Labels) {
			return false, nil
		}
	} else {
		slot, ok := m.take()
		if !ok {
			return false, fmt.Errorf("node %s: the scheduler is made for %d nodes and cannot take another", object.Name, m.engine.Limits().Nodes)
		}
		entry.Slot = slot
	}
	if err := m.engine.NodePut(entry, object.Labels); err != nil {
		// What the engine knew of the node is no longer true, and what is true it cannot hold.
		if n != nil {
			m.remove(object.Name)
		} else {
			m.free = append(m.free, entry.Slot)
		}
		return n != nil, fmt.Errorf("node %s is left out: %w", object.Name, err)
	}
	m.touched()
	if n != nil {
		n.entry, n.labels = entry, object.Labels
		return true, nil
	}
	m.nodes[object.Name] = &node{slot: entry.Slot, entry: entry, labels: object.Labels}
	m.names[entry.Slot] = object.Name
	return true, m.enter(object.Name)
}

// DropNode forgets a node; its pods are kept, should it come back.
func (m *Mirror) DropNode(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.nodes[name] != nil {
		m.remove(name)
		m.touched()
	}
}

// SetPod enters a bound pod that holds GPUs. Others are none of the engine's business.
func (m *Mirror) SetPod(object *v1.Pod) error {
	if object.Spec.NodeName == "" || m.reader.GPUs(object) == 0 {
		return nil
	}
	class := m.reader.Classify(object)
	entry := shim.Pod{Key: shim.PodKey(string(object.UID)), GPUs: class.GPUs, Allocated: object.Annotations[workload.Allocated],
		Name: object.Namespace + "/" + object.Name, Rank: shim.None}
	switch class.Kind {
	case workload.Member:
		entry.Name, entry.Gang = class.Gang.String(), workload.GangKey(class.Gang)
	case workload.Unknown:
		entry.Name = class.Gang.String()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pods[object.UID]
	if p != nil && class.Kind == workload.Unknown {
		entry.Name, entry.Gang = p.entry.Name, p.entry.Gang // its owner cannot be found any more; it is what it was
	}
	if p != nil && p.in && p.node == object.Spec.NodeName {
		entry.Slot = p.entry.Slot
		if p.entry == entry {
			return nil
		}
	}
	if p == nil {
		p = &pod{name: types.NamespacedName{Namespace: object.Namespace, Name: object.Name}, node: object.Spec.NodeName}
		m.pods[object.UID] = p
		if m.on[p.node] == nil {
			m.on[p.node] = map[types.UID]*pod{}
		}
		m.on[p.node][object.UID] = p
	}
	p.entry = entry
	return m.put(p)
}

// DropPod gives back what a pod holds, bound or reserved. freed: it held GPUs.
func (m *Mirror) DropPod(uid types.UID) (freed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.drop(uid)
}

// CatchUp drops pods that are gone although the handler has not come to them yet, and says how many. The caller asks the
// informer's store, which is ahead of every handler. Without it a pod that has just made room by preemption might look at
// an engine which does not know of that room yet, and evict another.
func (m *Mirror) CatchUp(gone func(name types.NamespacedName, uid types.UID) bool) (dropped int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for uid, p := range m.pods {
		if gone(p.name, uid) {
			m.drop(uid)
			dropped++
		}
	}
	return dropped
}

func (m *Mirror) drop(uid types.UID) (freed bool) {
	if p := m.pods[uid]; p != nil {
		delete(m.pods, uid)
		delete(m.on[p.node], uid)
		if len(m.on[p.node]) == 0 {
			delete(m.on, p.node)
		}
	}
	return m.engine.Release(shim.PodKey(string(uid))) == nil // unknown: it held nothing
}

// Unreserve gives back what a pod has reserved, unless it is bound by now: a call that seemed to fail may have been
// carried out, and the watch may have been faster than the caller.
func (m *Mirror) Unreserve(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pods[uid] == nil {
		_ = m.engine.Release(shim.PodKey(string(uid))) // unknown: it held nothing
	}
}

// ---- inside, under the lock ----------------------------------------------------------------------------------------

// take hands out a slot: a fresh one while there are any, then the one that was given back longest ago, so that a number
// found a moment ago does not name another node by now.
func (m *Mirror) take() (uint32, bool) {
	if m.used < m.engine.Limits().Nodes {
		m.used++
		m.names = append(m.names, "")
		return m.used - 1, true
	}
	if len(m.free) == 0 {
		return shim.None, false
	}
	slot := m.free[0]
	m.free = slices.Delete(m.free, 0, 1)
	return slot, true
}

func (m *Mirror) remove(name string) {
	n := m.nodes[name]
	if err := m.engine.NodeRemove(n.slot); err != nil {
		klog.Background().Error(err, "The engine did not forget a node", "node", name, "slot", n.slot)
	}
	delete(m.nodes, name)
	m.names[n.slot] = ""
	m.free = append(m.free, n.slot)
	for _, p := range m.on[name] {
		p.in = false // the engine gave it back with the node
	}
}

// enter puts the pods of a node that has appeared.
func (m *Mirror) enter(name string) error {
	var first error
	for _, uid := range slices.Sorted(maps.Keys(m.on[name])) {
		if err := m.put(m.on[name][uid]); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// put enters a pod if its node is known; otherwise it waits for the node.
func (m *Mirror) put(p *pod) error {
	n := m.nodes[p.node]
	if n == nil {
		p.in = false
		return nil
	}
	p.entry.Slot = n.slot
	if err := m.engine.PodPut(p.entry); err != nil {
		p.in = false
		return fmt.Errorf("pod of %s on node %s is not counted: %w", p.entry.Name, p.node, err)
	}
	p.in = true
	return nil
}

func (m *Mirror) touched() {
	select {
	case m.dirty <- struct{}{}:
	default:
	}
}

func ready(object *v1.Node) bool {
	for i := range object.Status.Conditions {
		if object.Status.Conditions[i].Type == v1.NodeReady {
			return object.Status.Conditions[i].Status == v1.ConditionTrue
		}
	}
	return false
}

// Fill enters a whole cluster at once, in order of names: for programs that look at a cluster without watching it.
func Fill(engine Engine, args shim.Args, nodes []*v1.Node, pods []*v1.Pod) error {
	m := New(engine, workload.NewReader(args.Resources, workload.NewOwners(), workload.NewClaims()))
	nodes, pods = slices.Clone(nodes), slices.Clone(pods)
	slices.SortFunc(nodes, func(a, b *v1.Node) int { return workload.NaturalCompare(a.Name, b.Name) })
	slices.SortFunc(pods, func(a, b *v1.Pod) int {
		return workload.NaturalCompare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	for _, object := range nodes {
		if _, err := m.SetNode(object); err != nil {
			return err
		}
	}
	for _, object := range pods {
		if object.Status.Phase == v1.PodSucceeded || object.Status.Phase == v1.PodFailed {
			continue
		}
		if err := m.SetPod(object); err != nil {
			return err
		}
	}
	return nil
}
