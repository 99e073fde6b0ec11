// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/shim"
)

type plan struct {
	id      uint64
	key     shim.Key
	state   PlanState
	places  map[types.UID]*place
	nodes   map[string]bool // that it counts on
	around  []types.UID     // members that were bound when it was made
	left    int             // places whose pods are not bound yet
	coming  int             // of those, the ones whose pods have not come to Permit
	unready int             // and to Bind
	made    time.Time
	wait    time.Duration // in Permit: the group's own, else everybody's
}

type place struct {
	node           string // "": anywhere, a member without GPUs
	arrived, ready bool   // at Permit, at Bind
}

// planReserved enters a plan. When a member, or all of the gang, is gone by now, the plan has ended at once.
func (m *Machine) planReserved(e PlanReserved) {
	g := m.gangs[e.ID]
	if g == nil {
		g = m.made(e.ID)
	} else if g.plan != nil {
		panic(fmt.Sprintf("gangs: %s has a plan and was planned again", g.id)) // only a lead plans, and there is none
	}
	m.lastPlan++
	p := &plan{id: m.lastPlan, key: e.Key, places: make(map[types.UID]*place, len(e.Places)), nodes: map[string]bool{}, around: e.Around,
		left: len(e.Places), coming: len(e.Places), unready: len(e.Places), made: m.now, wait: m.permitWait}
	if own := m.specs[e.ID].ScheduleTimeout; own > 0 {
		p.wait = own
	}
	complete := true
	for _, to := range e.Places {
		p.places[to.UID] = &place{node: to.Node}
		if to.Node != "" {
			p.nodes[to.Node] = true
		}
		complete = complete && g.members[to.UID] != nil && g.members[to.UID].pending()
	}
	g.plan = p
	m.plans[p.id] = g
	m.enter(g, Planned)
	if !complete {
		m.end(g, CauseLeft, nil)
		return
	}
	m.wakePlanned(g)
}

// wakePlanned activates the members of a plan that are not bound.
func (m *Machine) wakePlanned(g *gang) {
	g.since = m.now
	m.touched[g] = true
	m.visits += uint64(len(g.plan.places))
	for _, peer := range m.ranks(g) {
		if g.plan.places[peer.pod.UID] != nil && peer.pending() {
			m.wake(peer.pod)
		}
	}
}

// planOf is the pod's place in its gang's plan, if that is still the numbered one and has not ended.
func (m *Machine) planOf(uid types.UID, number uint64) (*gang, *place) {
	g := m.gangOf(uid)
	if g == nil || g.plan == nil || g.plan.id != number || g.plan.state == Ended || g.plan.places[uid] == nil {
		return nil, nil
	}
	return g, g.plan.places[uid]
}

func (m *Machine) memberArrived(uid types.UID, number uint64) {
	g, at := m.planOf(uid, number)
	if g == nil || at.arrived || g.members[uid].node != "" {
		return
	}
	at.arrived = true
	g.plan.coming--
	m.advance(g)
}

func (m *Machine) memberReady(uid types.UID, number uint64) {
	g, at := m.planOf(uid, number)
	if g == nil || at.ready || g.members[uid].node != "" {
		return
	}
	at.ready = true
	g.plan.unready--
	m.advance(g)
}

// advance moves a plan on whose last member has come to Permit, or to Bind.
func (m *Machine) advance(g *gang) {
	p := g.plan
	m.touched[g] = true
	if p.state == Reserved && p.coming == 0 {
		p.state = Permitted
		m.emit(Allow{Members: p.members()})
	}
	if p.state == Permitted && p.unready == 0 {
		p.state = Locking
		m.emit(Lock{Plan: p.id, ID: g.id, Places: m.placed(g), Around: p.around})
	}
}

// members in the order of their UIDs.
func (p *plan) members() []types.UID {
	members := make([]types.UID, 0, len(p.places))
	for uid := range p.places {
		members = append(members, uid)
	}
	slices.Sort(members)
	return members
}

// placed are the pods that are still to be bound, by rank.
func (m *Machine) placed(g *gang) (places []Placed) {
	for _, peer := range m.ranks(g) {
		if at := g.plan.places[peer.pod.UID]; at != nil && peer.node == "" {
			places = append(places, Placed{Pod: peer.pod, Node: at.node})
		}
	}
	return places
}

func (m *Machine) locksTaken(e LocksTaken) {
	g := m.plans[e.Plan]
	switch {
	case g == nil || g.plan.state != Locking:
		m.emit(Unlock{Places: e.Places}) // the plan has ended meanwhile, and some may have been taken after that
	case e.Err != nil:
		m.emit(Unlock{Places: e.Places})
		m.end(g, CauseLocks, e.Err)
	default:
		g.plan.state = Binding
		if g.extent == fresh {
			g.extent = begun
		}
		m.touched[g] = true
		m.emit(OpenGate{Plan: e.Plan})
	}
}

func (m *Machine) memberBound(uid types.UID, node string) {
	peer := m.pods[uid]
	if peer == nil || peer.gang == nil || peer.node != "" {
		return
	}
	peer.gang.tally(peer, -1)
	peer.node = node
	peer.gang.tally(peer, 1)
	m.memberChanged(peer.gang, peer, true)
}

// settle counts a place whose pod is bound or gone. With the last one the plan is done, and the rest of the gang may be planned
// around those that are bound, not before retryAt.
func (m *Machine) settle(g *gang, at *place, retryAt time.Time) {
	p := g.plan
	p.left--
	if !at.arrived {
		p.coming--
	}
	if !at.ready {
		p.unready--
	}
	if p.left > 0 {
		m.advance(g)
		return
	}
	g.fails, g.retryAt = 0, retryAt
	delete(m.plans, p.id)
	g.plan = nil
	m.measure(g)
	m.review(g)
}

// memberFailed: until the Bindings that ends the plan for all; afterwards others may be bound, so the member keeps its place
// and tries again there.
func (m *Machine) memberFailed(uid types.UID, number uint64) {
	if g, _ := m.planOf(uid, number); g != nil && g.plan.state < Binding {
		m.end(g, CauseFailed, nil)
	}
}

// memberRefused: until the Bindings that ends the plan for all; afterwards the member alone gives its place back and is planned
// anew around those that are bound.
func (m *Machine) memberRefused(uid types.UID) {
	g := m.gangOf(uid)
	if g == nil || g.plan == nil || g.plan.state == Ended || g.members[uid].node != "" {
		return
	}
	at := g.plan.places[uid]
	switch {
	case at == nil:
	case g.plan.state < Binding:
		m.end(g, CauseNodeRefused, nil)
	default:
		m.emit(ReleasePod{UID: uid})
		delete(g.plan.places, uid)
		m.settle(g, at, m.now.Add(retryLeast))
		m.roomAppeared()
	}
}

func (m *Machine) nodeChanged(node string) {
	var concerned []*gang
	for _, g := range m.plans {
		if g.plan.state < Binding && g.plan.nodes[node] {
			concerned = append(concerned, g)
		}
	}
	slices.SortFunc(concerned, func(a, b *gang) int { return compareIDs(a.id, b.id) })
	for _, g := range concerned {
		m.end(g, CauseNodeChanged, nil)
	}
}

func (m *Machine) locksLost(uid types.UID, number uint64) {
	if g, _ := m.planOf(uid, number); g != nil {
		m.end(g, CauseLocksLost, nil)
	}
}

// end is the one way in which a plan ends before its time. Who is bound by then is so.
func (m *Machine) end(g *gang, cause Cause, detail error) {
	p := g.plan
	why := &EndedError{Cause: cause, Detail: detail}
	if p.state != Reserved {
		m.emit(OpenGate{Plan: p.id, Err: why})
	}
	p.state = Ended
	m.emit(Reject{Members: p.members(), Message: why.Error()})
	m.emit(Release{Plan: p.id, Key: p.key})
	g.leftAt = m.now
	g.retryAt = m.now.Add(min(retryLeast<<min(g.fails, 10), retryMost))
	g.fails++
	m.touched[g] = true
}

// placesReleased: the gang may be planned anew, and others may have what it gave back.
func (m *Machine) placesReleased(number uint64) {
	g := m.plans[number]
	if g == nil || g.plan.state != Ended {
		return
	}
	delete(m.plans, number)
	g.plan = nil
	if !m.forget(g) {
		m.measure(g)
		m.review(g)
	}
	m.roomAppeared()
}
