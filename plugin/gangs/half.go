// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"slices"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/workload"
)

// A gang is half-bound while some of its members are bound, fewer than minMember, and it has never been whole: a crash, a
// failed write or a vanished node came between its first and its last Binding. It is finished around those that are bound
// or, when that does not come about, released whole. A gang that was whole once and has lost members is another matter:
// it is repaired, and nobody of it is deleted.

// halfPatience is how long a half-bound gang has to get on before its bound members are deleted: nobody of it was bound for so
// long. With an election, the checks and the deletion around it the gang is whole or gone 30 seconds after the API server
// answers.
const halfPatience = 10 * time.Second

// begin notes that members may be bound from now on.
func (g *gang) begin() {
	if !g.whole {
		g.begun = true
	}
}

// measure notes whether the gang is, or has ever been, whole.
func (t *Table) measure(g *gang) {
	spec, known := t.specs[g.id]
	switch {
	case known && spec.Problem == "" && g.bound >= spec.MinMember:
		g.whole, g.begun, g.halfSince = true, false, time.Time{}
	case g.bound == 0 && (g.plan == nil || !g.plan.going):
		g.whole, g.begun, g.halfSince = false, false, time.Time{} // nothing stands: it starts from the beginning
	}
}

// half says whether the gang is half-bound.
func (t *Table) half(g *gang) bool {
	spec, known := t.specs[g.id]
	return known && g.begun && !g.whole && g.bound > 0 && g.bound < spec.MinMember
}

// Began says that members of the pod's gang may have been bound by a scheduler before this one: a lock of its was found for
// a pod that is not bound.
func (t *Table) Began(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := t.pods[uid]; m != nil && m.gang != nil && m.node == "" {
		m.gang.begin()
		t.measure(m.gang)
		t.notify()
	}
}

// Half is a half-bound gang.
type Half struct {
	ID        workload.GangID
	MinMember int
	Bound     []*v1.Pod // by name
	Overdue   bool      // it has had its time
}

// Halves are the half-bound gangs, in the order of their names.
func (t *Table) Halves() (halves []Half) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, g := range t.gangs {
		if !t.half(g) {
			g.halfSince = time.Time{}
			continue
		}
		half := Half{ID: g.id, MinMember: t.specs[g.id].MinMember}
		half.Overdue = t.overdue(g)
		for _, m := range g.members {
			if m.node != "" && m.active() {
				half.Bound = append(half.Bound, m.pod)
			}
		}
		slices.SortFunc(half.Bound, func(a, b *v1.Pod) int { return workload.NaturalCompare(a.Name, b.Name) })
		halves = append(halves, half)
	}
	slices.SortFunc(halves, func(a, b Half) int { return workload.NaturalCompare(a.ID.String(), b.ID.String()) })
	return halves
}

// overdue: nobody of the half-bound gang was bound for as long as it may take.
func (t *Table) overdue(g *gang) bool {
	return !g.halfSince.IsZero() && g.bound <= g.halfBound && !t.now().Before(g.halfSince.Add(halfPatience))
}

// HalfSeen says that the API server itself has confirmed the half-bound gang (its time runs from the first time on, and anew
// when others are bound), or that it could not be asked (its time starts anew: while it does not answer, nothing can be
// finished either).
func (t *Table) HalfSeen(id workload.GangID, confirmed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gangs[id]
	switch {
	case g == nil:
	case !confirmed:
		g.halfSince = time.Time{}
	case g.halfSince.IsZero() || g.bound != g.halfBound:
		g.halfSince, g.halfBound = t.now(), g.bound
	}
}

// Abandon gives up whatever plan a half-bound gang has, before its bound members are deleted. It returns the members to be
// rejected where they wait; ok is false when the gang is whole by now, or has got on.
func (t *Table) Abandon(id workload.GangID) (rejected []types.UID, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gangs[id]
	if g == nil || !t.half(g) || !t.overdue(g) {
		return nil, false
	}
	if g.plan != nil {
		rejected = t.drop(g)
	}
	g.retryAt = t.now().Add(retryMost)
	return rejected, true
}

// Abort says that a plan's locks could not be had, or were taken away. The plan ends as if it had never been let through; who
// is bound already is so. It returns the members to be rejected where they wait.
func (t *Table) Abort(uid types.UID, number uint64) []types.UID {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.planOf(uid, number)
	if p == nil {
		return nil
	}
	g := t.pods[uid].gang
	rejected := t.drop(g)
	t.measure(g)
	return rejected
}

// Complete says whether all that the pod's plan was made for are still there: asked before the first of them is bound.
func (t *Table) Complete(uid types.UID, number uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.planOf(uid, number)
	if p == nil || len(p.places) < p.size {
		return false
	}
	for member := range p.places {
		if !t.pods[member].active() {
			return false
		}
	}
	return true
}

// Gate is the one attempt to lock what a plan needs: the first member that comes to Bind makes it, the others wait for its
// outcome.
type Gate struct {
	Gang     workload.GangID
	Around   []types.UID // members that were bound when the plan was made
	versions map[types.UID]string
	done     chan struct{}
	err      error
	sent     atomic.Int32
}

// Sent counts a Binding that was carried out, and says how many there are by now, of how many.
func (g *Gate) Sent() (sent, of int) { return int(g.sent.Add(1)), len(g.versions) }

// Version of a member's pod from before the attempt: its Binding carries it, so that it is refused if somebody has taken the
// lock away since.
func (g *Gate) Version(uid types.UID) string { return g.versions[uid] }

// Renew takes newer versions: this attempt itself has written to the pods. Before Open.
func (g *Gate) Renew(versions map[types.UID]string) {
	for uid, version := range versions {
		if _, planned := g.versions[uid]; planned {
			g.versions[uid] = version
		}
	}
}

// Open says how the attempt ended; called once, by the member that makes it.
func (g *Gate) Open(err error) {
	g.err = err
	close(g.done)
}

// Done is closed when the attempt has ended; Err is valid then.
func (g *Gate) Done() <-chan struct{} { return g.done }

// Err is why the locks could not be had.
func (g *Gate) Err() error { return g.err }

// Placed is a pod and where a plan puts it.
type Placed struct {
	Pod  *v1.Pod
	Node string // "": anywhere
}

// Enter is called by a member that is about to be bound. first: it makes the attempt, for the given places. gate is nil when
// the plan is no longer the pod's.
func (t *Table) Enter(uid types.UID, number uint64) (gate *Gate, first bool, places []Placed) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.planOf(uid, number)
	if p == nil {
		return nil, false, nil
	}
	if p.gate != nil {
		return p.gate, false, nil
	}
	p.gate = &Gate{Gang: t.pods[uid].gang.id, Around: p.around, versions: make(map[types.UID]string, len(p.places)), done: make(chan struct{})}
	for member, node := range p.places {
		pod := t.pods[member].pod
		p.gate.versions[member] = pod.ResourceVersion
		places = append(places, Placed{Pod: pod, Node: node})
	}
	return p.gate, true, places
}
