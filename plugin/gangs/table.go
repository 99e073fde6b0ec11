// SPDX-License-Identifier: Apache-2.0

// Package gangs is the host's table of gangs: which pods belong together, who leads, what was planned, and who waits for
// what. Informer handlers write it, PreEnqueue and the scheduling cycle read it. It owns one lock, under which it may
// call the engine but never the scheduler: PreEnqueue reads it while the scheduling queue's own lock is held.
package gangs

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/workload"
	"github.com/frond-scheduler/frond/shim"
)

const (
	// silence is how long a gang that cannot be formed says nothing: pods and their PodGroup arrive one by one.
	silence = 3 * time.Second
	// gather is how long a PodGroup that has minMember pods waits for more of them, because they are planned jointly.
	gather = 200 * time.Millisecond
	// A gang whose plan failed tries again after 1, 2, 4 … seconds.
	retryLeast, retryMost = time.Second, 10 * time.Second
	// expirySlack is added to the permit timeout before a plan that nobody follows is given back.
	expirySlack = 15 * time.Second
	// nominationPause is how long upstream has to take back the nominations of a plan that came to nothing.
	nominationPause = time.Second
	// sweep is how often pods that ought to be moving are woken again, should a wake-up ever be lost.
	sweep = 10 * time.Second
)

// Ledger is what the table needs of the engine: to give reservations back in one step with forgetting them.
type Ledger interface {
	ReleaseGang(gang shim.Key) (int, error)
	Release(pod shim.Key) error
}

// Table of gangs.
type Table struct {
	now        func() time.Time
	permitWait time.Duration
	ledger     Ledger
	signal     chan struct{}

	mu       sync.Mutex
	gangs    map[workload.GangID]*gang
	pods     map[types.UID]*member
	from     map[workload.Source]map[types.UID]*member // by owner and claim, gang or not: they may change their minds
	specs    map[workload.GangID]workload.Spec
	wakes    map[types.UID]*v1.Pod
	epoch    uint64 // grows when capacity may have appeared
	lastPlan uint64
	swept    time.Time
	visits   uint64 // members looked at one by one: what a change costs
}

type member struct {
	pod  *v1.Pod
	gpus uint32
	node string // bound there; "": pending
	gang *gang  // nil: in none
	rank uint32 // valid while gang.ranked

	index workload.Index // where its rank comes from

	tried   bool   // this scheduler, not another replica, has tried to place it
	cleared string // resource version in which its nomination was found stale
}

// active: counts for the gang. A pod that is going away does not, nor does one that its gates keep from being scheduled.
func (m *member) active() bool {
	return m.pod.DeletionTimestamp == nil && (m.node != "" || len(m.pod.Spec.SchedulingGates) == 0)
}

func (m *member) pending() bool { return m.node == "" && m.active() }

type gang struct {
	id      workload.GangID
	members map[types.UID]*member
	active  int       // members that count
	bound   int       // of those, the bound ones
	ranked  []*member // by rank, active ones; nil: to be computed
	note    string    // why ranks follow names although indices were there
	plan    *plan

	changed time.Time // when a member or the spec last changed
	woken   time.Time // the change that the lead has been woken for
	told    time.Time // the change up to which Told was called
	waiting bool      // the last attempt found no place; capacity wakes it
	lacks   string    // why
	refused bool      // for what it asks for, not for lack of room
	wakeAt  time.Time // end of topology-wait; zero: none
	retryAt time.Time // not before; zero: at once
	idle    time.Time // since when it has had no plan, after an attempt
	fails   int       // attempts whose plan came to nothing, in a row
	said    string    // the reason that the lead has taken to its event
	warned  uint32    // warnings given, bits of the caller's

	whole     bool      // minMember were bound at one time
	begun     bool      // members may be bound, and it has never been whole
	halfSince time.Time // the API server has confirmed that it is half-bound; zero: not yet
	halfBound int       // members that were bound then
}

// tally keeps the counts: gangs may have thousands of members, and every one is asked about on the way in.
func (g *gang) tally(m *member, by int) {
	if !m.active() {
		return
	}
	g.active += by
	if m.node != "" {
		g.bound += by
	}
}

type plan struct {
	id     uint64
	key    shim.Key
	places map[types.UID]string // node; "": a member without GPUs, anywhere
	around []types.UID          // members that were bound when it was made
	size   int                  // places when it was made
	left   int                  // of those, the ones whose pods are not bound yet
	going  bool                 // let through Permit: members may be bound
	made   time.Time
	wait   time.Duration // in Permit: the group's own, else everybody's
	gate   *Gate         // the attempt to lock its nodes; nil: nobody has come to Bind yet
}

// New makes an empty table.
func New(ledger Ledger, permitWait time.Duration, now func() time.Time) *Table {
	return &Table{
		now: now, permitWait: permitWait, ledger: ledger, signal: make(chan struct{}, 1),
		gangs: map[workload.GangID]*gang{}, pods: map[types.UID]*member{},
		from: map[workload.Source]map[types.UID]*member{}, specs: map[workload.GangID]workload.Spec{},
		wakes: map[types.UID]*v1.Pod{},
	}
}

// ---- what the informers say ----------------------------------------------------------------------------------------

// SetPod enters or changes a pod of ours. It returns pods whose plan came to nothing by that: they are to be rejected where
// they wait.
func (t *Table) SetPod(pod *v1.Pod, class workload.Class) []types.UID {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.pods[pod.UID]
	inGang := class.Kind == workload.Member || class.Kind == workload.Unknown
	sources := workload.Sources(pod)
	if m == nil {
		if !inGang && len(sources) == 0 {
			return nil
		}
		m = &member{}
		t.pods[pod.UID] = m
	}
	first := m.pod == nil
	t.track(m, pod, sources)
	before, next := m.gang, member{pod: pod, node: pod.Spec.NodeName}
	if next.node == "" {
		next.node = m.node // an event from before the binding: pods are never unbound
	}
	if class.Kind == workload.Unknown && next.node != "" && before != nil {
		class.Gang = before.id // its owner cannot be found any more; a bound pod stays what it was
	}
	rewritten := first || !sameWishes(m.pod, pod)
	changed := first || m.node != next.node || m.gpus != class.GPUs || m.index != class.Index || m.active() != next.active() ||
		rewritten && next.node == "" // the Binding writes to the pod, too
	bound := m.node == "" && next.node != ""
	if before != nil {
		before.tally(m, -1)
	}
	m.pod, m.node, m.gpus, m.index = pod, next.node, class.GPUs, class.Index

	var rejected []types.UID
	if before != nil && (!inGang || before.id != class.Gang) {
		rejected = t.leave(before, m)
	}
	if !inGang {
		// PreEnqueue may have held it while less was known.
		if (first || before != nil) && m.pending() {
			t.wake(pod)
		}
		return rejected
	}
	g := t.join(m, class.Gang)
	if rewritten {
		g.ranked = nil
	}
	changed = t.sized(g, m, class.Size) || changed
	if before != g || changed {
		rejected = append(rejected, t.changed(g, m, bound)...)
	}
	return rejected
}

// sized takes a gang's size from its pods, where they say it. Those that are bound may be left from before it was another.
func (t *Table) sized(g *gang, m *member, size int) (changed bool) {
	spec, known := t.specs[g.id]
	if size == 0 || spec.MinMember == size || (known && !m.pending()) {
		return false
	}
	t.specs[g.id] = workload.Spec{MinMember: size}
	return true
}

// track keeps the index of what pods are read from.
func (t *Table) track(m *member, pod *v1.Pod, sources []workload.Source) {
	if m.pod != nil {
		t.untrack(m.pod)
	}
	for _, source := range sources {
		if t.from[source] == nil {
			t.from[source] = map[types.UID]*member{}
		}
		t.from[source][pod.UID] = m
	}
}

func (t *Table) untrack(pod *v1.Pod) {
	for _, source := range workload.Sources(pod) {
		delete(t.from[source], pod.UID)
		if len(t.from[source]) == 0 {
			delete(t.from, source)
		}
	}
}

// changed: a member has come, or is not what it was.
func (t *Table) changed(g *gang, m *member, bound bool) (rejected []types.UID) {
	g.ranked, g.changed = nil, t.now()
	t.measure(g)
	if g.plan == nil {
		t.poke(g)
		return nil
	}
	place, planned := g.plan.places[m.pod.UID]
	switch {
	case planned && bound && place != "" && place != m.node && !g.plan.going:
		rejected = t.drop(g) // another has bound it: the others would not be beside it
		t.poke(g)
	case planned && bound:
		t.settle(g)
	case planned && m.pending():
		t.wake(m.pod)
	case planned && !m.active() && !g.plan.going:
		rejected = t.drop(g)
		t.poke(g)
	}
	return rejected
}

// sameWishes: neither labels nor annotations have changed, which are all that can change a pending pod's request.
func sameWishes(a, b *v1.Pod) bool {
	return equal(a.Annotations, b.Annotations) && equal(a.Labels, b.Labels)
}

func equal(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for key, value := range a {
		if other, ok := b[key]; !ok || other != value {
			return false
		}
	}
	return true
}

// DropPod forgets a pod that is gone. It returns pods whose plan came to nothing by that: they are to be rejected where
// they wait.
func (t *Table) DropPod(uid types.UID) []types.UID {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.pods[uid]
	if m == nil {
		return nil
	}
	delete(t.pods, uid)
	delete(t.wakes, uid)
	t.untrack(m.pod)
	if m.gang == nil {
		return nil
	}
	m.gang.tally(m, -1)
	return t.leave(m.gang, m)
}

// SetSpec says what the API knows of a gang.
func (t *Table) SetSpec(id workload.GangID, spec workload.Spec) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old, known := t.specs[id]; known && old.Equal(spec) {
		return
	}
	t.specs[id] = spec
	if g := t.gangs[id]; g != nil {
		g.changed = t.now()
		t.measure(g)
		t.poke(g)
	}
}

// DropSpec says that the object which made the gang is gone. A plan that has not been let through comes to nothing: its
// members are returned, to be rejected where they wait.
func (t *Table) DropSpec(id workload.GangID) (rejected []types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.specs, id)
	g := t.gangs[id]
	if g == nil {
		return nil
	}
	if g.plan != nil && !g.plan.going {
		rejected = t.drop(g)
	}
	g.changed = t.now()
	t.poke(g)
	return rejected
}

// PodsFrom are the tracked pods that are read from these: what they are may change with them.
func (t *Table) PodsFrom(sources ...workload.Source) (pods []*v1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, source := range sources {
		for _, m := range t.from[source] {
			pods = append(pods, m.pod)
		}
	}
	return pods
}

// Pods are all that are tracked.
func (t *Table) Pods() []*v1.Pod {
	t.mu.Lock()
	defer t.mu.Unlock()
	pods := make([]*v1.Pod, 0, len(t.pods))
	for _, m := range t.pods {
		pods = append(pods, m.pod)
	}
	return pods
}

// Reconsider wakes a pod's gang, or the pod itself, because what it asks for may have changed.
func (t *Table) Reconsider(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch m := t.pods[uid]; {
	case m == nil:
	case m.gang != nil:
		if m.gang.bound > 0 {
			m.gang.changed = t.now() // what it asks for may be told to the engine once more
		}
		t.poke(m.gang)
	case m.pending():
		t.wake(m.pod)
	}
}

// Capacity wakes every gang that waits for room.
func (t *Table) Capacity() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.capacity()
}

// ---- inside, under the lock ----------------------------------------------------------------------------------------

func (t *Table) join(m *member, id workload.GangID) *gang {
	g := t.gangs[id]
	if g == nil {
		g = &gang{id: id, members: map[types.UID]*member{}, changed: t.now()}
		t.gangs[id] = g
	}
	g.members[m.pod.UID], m.gang = m, g
	g.tally(m, 1)
	return g
}

// leave takes a member out that is no longer counted. A plan that relied on it, and has not been let through, comes to
// nothing.
func (t *Table) leave(g *gang, m *member) (rejected []types.UID) {
	delete(g.members, m.pod.UID)
	m.gang = nil
	g.ranked, g.changed = nil, t.now()
	t.measure(g)
	if g.plan != nil {
		if _, planned := g.plan.places[m.pod.UID]; planned && !g.plan.going {
			rejected = t.drop(g)
		} else if planned {
			delete(g.plan.places, m.pod.UID)
			if m.node == "" {
				t.settle(g)
			}
		}
	}
	if len(g.members) == 0 {
		delete(t.gangs, g.id)
		if g.id.OwnSize() {
			delete(t.specs, g.id)
		}
		return rejected
	}
	if g.plan == nil {
		t.poke(g)
	}
	return rejected
}

// drop gives a plan back of which no member is being bound, and returns its members. The engine is told under the table's
// lock: otherwise the gang might plan anew in between and lose that plan.
func (t *Table) drop(g *gang) []types.UID {
	members := make([]types.UID, 0, len(g.plan.places))
	for uid := range g.plan.places {
		members = append(members, uid)
	}
	slices.Sort(members)
	_, _ = t.ledger.ReleaseGang(g.plan.key) // unknown: nothing was held, which is what was wanted
	g.plan, g.woken, g.idle = nil, time.Time{}, t.now()
	g.retryAt = t.now().Add(min(retryLeast<<min(g.fails, 10), retryMost))
	g.fails++
	t.capacity() // others may have what it gave back
	t.notify()   // the retry is due at a time that the waker does not know yet
	return members
}

func (t *Table) capacity() {
	t.epoch++
	for _, g := range t.gangs {
		if g.waiting {
			t.wakeLead(g)
		}
	}
}

// settle counts a place whose pod is bound or gone. With the last one the plan has ended, and the rest of the gang may be
// planned around those that are bound.
func (t *Table) settle(g *gang) {
	g.plan.left--
	if g.plan.left > 0 {
		return
	}
	g.plan, g.fails, g.retryAt = nil, 0, time.Time{}
	t.poke(g)
}

// order ranks the active members.
func (t *Table) order(g *gang) []*member {
	if g.ranked != nil {
		return g.ranked
	}
	list := make([]*member, 0, len(g.members))
	t.visits += uint64(len(g.members))
	for _, m := range g.members {
		if m.active() {
			list = append(list, m)
		}
	}
	slices.SortFunc(list, func(a, b *member) int { return cmp.Compare(a.pod.UID, b.pod.UID) })
	pods, indices := make([]*v1.Pod, len(list)), make([]workload.Index, len(list))
	for i, m := range list {
		pods[i], indices[i] = m.pod, m.index
	}
	ranks, note := workload.Ranks(pods, indices)
	for i, m := range list {
		m.rank = ranks[i]
	}
	slices.SortFunc(list, func(a, b *member) int { return cmp.Compare(a.rank, b.rank) })
	g.ranked, g.note = list, note
	return list
}

// lead is the pending member of lowest rank.
func (t *Table) lead(g *gang) *member {
	for _, m := range t.order(g) {
		t.visits++
		if m.node == "" {
			return m
		}
	}
	return nil
}

// blocked says why the gang cannot be planned at all, "" when it can; until: a moment at which that may change by itself.
func (t *Table) blocked(g *gang) (reason string, until time.Time) {
	spec, known := t.specs[g.id]
	switch {
	case !known:
		return fmt.Sprintf("waiting for %s %s", g.id.Kind, g.id), time.Time{}
	case spec.Problem != "":
		return spec.Problem, time.Time{}
	case g.active > shim.MembersMax:
		return fmt.Sprintf("gang %s has %d pods, at most %d are allowed", g.id, g.active, shim.MembersMax), time.Time{}
	case g.active < spec.MinMember:
		reason = fmt.Sprintf("gang %s has %d of %d pods", g.id, g.active, spec.MinMember)
		if g.bound == 0 {
			return reason, time.Time{}
		}
		// Something is bound, so all were there once. Those that are left join them, after a while in which their
		// companions may turn up: the missing may have ended well and never come back.
		if until = g.changed.Add(silence); t.now().Before(until) {
			return reason, until
		}
	case (spec.More || g.id.Gathers()) && g.bound == 0:
		if until = g.changed.Add(gather); t.now().Before(until) {
			return fmt.Sprintf("gang %s has %d pods and gathers more", g.id, g.active), until
		}
	}
	return "", time.Time{}
}

// poke wakes whoever may move on after a change.
func (t *Table) poke(g *gang) {
	if g.plan != nil {
		t.visits += uint64(len(g.plan.places))
		for uid := range g.plan.places {
			if m := g.members[uid]; m != nil && m.pending() {
				t.wake(m.pod)
			}
		}
		return
	}
	if reason, _ := t.blocked(g); reason == "" && !t.now().Before(g.retryAt) {
		t.wakeLead(g)
	}
	t.notify() // whatever else is due at a time, the waker recomputes
}

// wakeLead wakes the lead for the present state of the gang.
func (t *Table) wakeLead(g *gang) {
	g.woken = g.changed
	if g.plan != nil || g.bound == g.active {
		return
	}
	if lead := t.lead(g); lead != nil {
		t.wake(lead.pod)
	}
}

func (t *Table) wake(pod *v1.Pod) {
	t.wakes[pod.UID] = pod
	t.notify()
}

func (t *Table) notify() {
	select {
	case t.signal <- struct{}{}:
	default:
	}
}
