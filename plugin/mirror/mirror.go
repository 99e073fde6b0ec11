// SPDX-License-Identifier: Apache-2.0

// Package mirror is the only writer of cluster state into the engine: nodes with what their agents report, bound pods, and
// GPUs that are locked for pods which are not bound yet, as informers tell them. It owns the dense numbers (slots) by
// which the engine knows nodes, and the names of GPUs: to the engine a GPU is a bit, users see UUIDs where an agent reports
// them and NODE-gpu-INDEX elsewhere (names.go). It decides nothing.
//
// Events come in any order. Each changes what is known, and then the node that it concerns is settled: what the engine
// should hold there is worked out anew and compared with what it holds (settle.go).
package mirror

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/frond-scheduler/frond/plugin/nodereport"
	"github.com/frond-scheduler/frond/plugin/workload"
	"github.com/frond-scheduler/frond/shim"
)

// Limits of the engine that the scheduler runs. Over them is an error that is logged and told, never a crash. The engine's
// own room for names and link tables is made for 100,000 nodes in 32 MB; clouds give nodes names of 60 bytes, and failing
// links make many tables. The largest gang can have all of its places kept.
func Limits() shim.Limits {
	return shim.Limits{Nodes: 16384, Pods: 65536, TextBytes: 2 << 20, TableBytes: 4 << 20, Holds: shim.MembersMax}
}

// Engine is what the mirror writes to.
type Engine interface {
	NodePut(node shim.Node, labels map[string]string) error
	NodeRemove(slot uint32) error
	TopologyPut(topology shim.Topology) (uint32, error)
	Swap(out []shim.Key, in []shim.Pod) []error
	Release(pod shim.Key) error
	Pod(pod shim.Key) (shim.Held, error)
	Problems() []string
	Limits() shim.Limits
}

// Mirror of the cluster.
type Mirror struct {
	engine Engine
	reader *workload.Reader
	dirty  chan struct{} // the fabric has changed
	now    func() time.Time
	after  time.Duration // what has been unavailable for longer is no capacity for a rule
	// snapshot: the cluster is looked at once, so that nobody knows since when things are as they are
	snapshot bool

	mu       sync.RWMutex
	nodes    map[string]*node
	names    []string // by slot; "": free
	free     []uint32 // given back, oldest first
	used     uint32   // slots handed out so far
	pods     map[types.UID]*pod
	on       map[string]map[types.UID]*pod     // by node name, known or not
	reports  map[string]*reported              // by node name, known or not
	renewals map[string]*renewal               // by node name, known or not: of agents' Leases
	ids      map[string]string                 // GPU id → the node that it was reported of last
	owners   map[string]map[types.UID]*lock    // by node name, known or not: what its Lease says
	locked   map[types.UID]map[string]struct{} // the nodes whose Leases name a pod
	yielded  map[types.UID]struct{}            // pods whose own locks are no obstacle
	short    map[string]struct{}               // nodes with locks whose GPUs somebody else has reserved
	aging    map[string]struct{}               // nodes of which something will have lasted too long
	news     []news                            // to be told
}

type node struct {
	slot        uint32
	allocatable uint32
	flags       shim.NodeFlag
	labels      map[string]string
	entry       shim.Node             // as the engine knows it
	in          map[shim.Key]shim.Pod // what the engine was told to hold there
	known       bool                  // the engine has it
	age         age
}

type pod struct {
	uid       types.UID
	name      types.NamespacedName
	node      string
	created   time.Time
	carried   string   // the GPUs that were written on it when it was first seen here: with its Binding, if they are true
	planned   bool     // they are those that this process had reserved for it
	rewritten bool     // others are written on it by now
	entry     shim.Pod // without node and GPUs, which depend on what is known of the node
	ids       []string // its GPUs by name, as the engine was told; nil: by count, or as the report has it
	told      string   // what was last said about it
}

// New makes an empty mirror of an engine.
func New(engine Engine, reader *workload.Reader) *Mirror {
	return &Mirror{
		engine: engine, reader: reader, dirty: make(chan struct{}, 1), nodes: map[string]*node{},
		pods: map[types.UID]*pod{}, on: map[string]map[types.UID]*pod{}, reports: map[string]*reported{}, renewals: map[string]*renewal{},
		owners: map[string]map[types.UID]*lock{}, locked: map[types.UID]map[string]struct{}{},
		yielded: map[types.UID]struct{}{}, short: map[string]struct{}{}, ids: map[string]string{},
		now: time.Now, after: time.Minute, aging: map[string]struct{}{},
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
	allocatable, flags := m.reader.NodeGPUs(object), shim.NodeFlag(0)
	if object.Spec.Unschedulable {
		flags |= shim.NodeCordoned
	}
	if !ready(object) {
		flags |= shim.NodeDown
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.nodes[object.Name]
	if n != nil {
		n.age.begun = begun(object)
		m.setTaints(object.Name, n, object.Spec.Taints)
		if n.allocatable == allocatable && n.flags == flags && maps.Equal(n.labels, object.Labels) {
			return false, nil
		}
	} else {
		slot, ok := m.take()
		if !ok {
			return false, fmt.Errorf("node %s: the scheduler is made for %d nodes and cannot take another", object.Name, m.engine.Limits().Nodes)
		}
		n = &node{slot: slot, in: map[shim.Key]shim.Pod{}}
		m.nodes[object.Name], m.names[slot] = n, object.Name
		n.age.begun = begun(object)
		m.setTaints(object.Name, n, object.Spec.Taints)
	}
	relabelled := !maps.Equal(n.labels, object.Labels)
	n.allocatable, n.flags, n.labels = allocatable, flags, object.Labels
	return m.renew(object.Name, relabelled)
}

// DropNode forgets a node; its pods, its report and its locks are kept, should it come back.
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
	entry := shim.Pod{Key: shim.PodKey(string(object.UID)), GPUs: class.GPUs, Name: object.Namespace + "/" + object.Name, Rank: rankOf(object)}
	switch class.Kind {
	case workload.Member:
		entry.Name, entry.Gang = class.Gang.String(), workload.GangKey(class.Gang)
	case workload.Unknown:
		entry.Name = class.Gang.String()
	}
	carried := object.Annotations[workload.Allocated]
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pods[object.UID]
	if p != nil && class.Kind == workload.Unknown {
		entry.Name, entry.Gang = p.entry.Name, p.entry.Gang // its owner cannot be found any more; it is what it was
	}
	if p == nil {
		p = &pod{uid: object.UID, name: types.NamespacedName{Namespace: object.Namespace, Name: object.Name},
			node: object.Spec.NodeName, created: object.CreationTimestamp.Time, carried: carried}
		p.planned = m.planned(p, entry.Key)
		m.pods[p.uid] = p
		if m.on[p.node] == nil {
			m.on[p.node] = map[types.UID]*pod{}
		}
		m.on[p.node][p.uid] = p
		delete(m.yielded, p.uid)
	} else if p.entry == entry && p.rewritten == (carried != p.carried) {
		if n := m.nodes[p.node]; n == nil || n.has(entry.Key) {
			return nil
		}
	}
	p.entry, p.rewritten = entry, carried != p.carried
	failed := m.settle(p.node).failed[entry.Key]
	for name := range m.locked[p.uid] {
		m.settle(name) // a Lease of another node that names it is wrong by now
	}
	return failed
}

// rankOf a bound pod, as written on it.
func rankOf(object *v1.Pod) uint32 {
	text := object.Annotations[workload.Rank]
	rank, err := strconv.ParseUint(text, 10, 31)
	if err != nil || text != strconv.FormatUint(rank, 10) {
		return shim.None
	}
	return uint32(rank)
}

// DropPod gives back what a pod holds, bound, reserved or locked. freed: it held GPUs.
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
	freed = m.engine.Release(shim.PodKey(string(uid))) == nil // unknown: it held nothing
	delete(m.yielded, uid)
	if p := m.pods[uid]; p != nil {
		delete(m.pods, uid)
		delete(m.on[p.node], uid)
		if len(m.on[p.node]) == 0 {
			delete(m.on, p.node)
		}
		if n := m.nodes[p.node]; n != nil {
			delete(n.in, p.entry.Key)
		}
		m.settle(p.node) // what it held may be somebody's who was only counted
	}
	for name := range m.locked[uid] {
		m.owners[name][uid].gone = true // its Lease is freed later than the pod goes
		freed = m.settle(name).freed || freed
	}
	return freed
}

// Unreserve gives back what a pod has reserved, unless it is bound by now: a call that seemed to fail may have been
// carried out, and the watch may have been faster than the caller. GPUs that a Lease still locks for the pod stay held.
func (m *Mirror) Unreserve(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pods[uid] != nil {
		return
	}
	delete(m.yielded, uid)
	key := shim.PodKey(string(uid))
	for name := range m.locked[uid] {
		m.settle(name, key)
	}
	_ = m.engine.Release(key) // unknown: it holds nothing, or no longer
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
	if n.known {
		if err := m.engine.NodeRemove(n.slot); err != nil {
			klog.Background().Error(err, "The engine did not forget a node", "node", name, "slot", n.slot)
		}
	}
	delete(m.nodes, name)
	delete(m.short, name)
	delete(m.aging, name)
	m.names[n.slot] = ""
	m.free = append(m.free, n.slot)
	if r := m.reports[name]; r != nil {
		r.used, r.old = nil, true // what comes back under the name may be another machine
		m.setNames(name, r, nil)
		if r.latest == nil {
			delete(m.reports, name)
		}
	}
}

// renew tells the engine what is known of a node by now, and settles it.
func (m *Mirror) renew(name string, relabelled bool) (changed bool, err error) {
	n, known := m.nodes[name], m.nodes[name].known
	m.choose(name, n.allocatable)
	entry := m.compose(name, n)
	if changed = !known || relabelled || entry != n.entry; changed {
		if err := m.engine.NodePut(entry, n.labels); err != nil {
			m.remove(name) // what the engine knew of it is no longer true, and what is true it cannot hold
			if known {
				m.touched()
			}
			return known, fmt.Errorf("node %s is left out: %w", name, err)
		}
		n.entry, n.known = entry, true
		m.touched()
	}
	result := m.settle(name)
	return changed || result.changed, result.first
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
func Fill(engine Engine, args shim.Args, nodes []*v1.Node, pods []*v1.Pod, reports ...*nodereport.Report) error {
	m := New(engine, workload.NewReader(args.Resources, workload.NewOwners(), workload.NewClaims()))
	m.after, m.snapshot = args.UnavailableAfter, true
	nodes, pods = slices.Clone(nodes), slices.Clone(pods)
	slices.SortFunc(nodes, func(a, b *v1.Node) int { return workload.NaturalCompare(a.Name, b.Name) })
	slices.SortFunc(pods, func(a, b *v1.Pod) int {
		return workload.NaturalCompare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	for _, report := range reports {
		m.SetReport(report)
	}
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
