// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/workload"
	"github.com/frond-scheduler/frond/shim"
)

// Reasons that a pod is held for, besides those of its gang as a whole.
const (
	reasonUnseen  = "its gang is not known yet"
	reasonFollows = "gang %s is planned through pod %s"
	reasonJoins   = "gang %s is being bound; this pod joins it afterwards"
	reasonRetries = "gang %s tries again in a moment"
)

// Admit says whether a pod of a gang may enter the scheduling queue: the lead of a gang that can be planned, any member
// of a reserved plan, and the lead of a gang that cannot be formed once it has something new to say. Otherwise the reason.
func (t *Table) Admit(uid types.UID) (reason string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.pods[uid]
	if m == nil {
		return reasonUnseen, false
	}
	if m.gang == nil {
		return "", true
	}
	g := m.gang
	if g.plan != nil {
		_, planned := g.plan.places[uid]
		return fmt.Sprintf(reasonJoins, g.id), planned
	}
	if reason, _ = t.blocked(g); reason != "" {
		news := reason != g.said && !t.now().Before(g.changed.Add(silence))
		return reason, news && t.lead(g) == m
	}
	switch lead := t.lead(g); lead {
	case m:
		return fmt.Sprintf(reasonRetries, g.id), !t.now().Before(g.retryAt)
	case nil:
		return fmt.Sprintf(reasonJoins, g.id), false
	default:
		return fmt.Sprintf(reasonFollows, g.id, lead.pod.Name), false
	}
}

// Member says whether a pod is in a gang: its wake-ups are ours, not upstream's.
func (t *Table) Member(uid types.UID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.pods[uid]
	return m != nil && m.gang != nil
}

// Waiting says whether a pod leads a gang that waits for room.
func (t *Table) Waiting(uid types.UID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.pods[uid]
	return m != nil && m.gang != nil && m.gang.waiting && m.gang.plan == nil && t.lead(m.gang) == m
}

// Nominated says whether a pod's nomination for a node counts. Of a gang's member it does when a plan puts it there;
// otherwise it is a left-over. For other pods that is upstream's to say.
func (t *Table) Nominated(uid types.UID, node string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.pods[uid]
	if m == nil || m.gang == nil {
		return true
	}
	return m.gang.plan != nil && m.gang.plan.places[uid] == node
}

// Step is what a gang's pod does in its scheduling cycle.
type Step int

const (
	Hold   Step = iota // nothing: Reason says why
	Lead               // plan the gang
	Follow             // go where the plan says
)

// Turn is a pod's turn in the scheduling cycle.
type Turn struct {
	Step   Step
	Reason string

	// Follow
	Plan uint64
	Node string // "": anywhere, a member without GPUs

	// Lead
	ID      workload.GangID
	Spec    workload.Spec
	Members []Peer // active ones by rank, bound ones included
	Least   int    // this many of the pending ones, by rank, make the gang whole
	Note    string // about ranks, for the log
	Epoch   uint64 // for Wait
}

// Peer is a member of a gang as the lead sees it.
type Peer struct {
	Pod  *v1.Pod
	GPUs uint32
	Rank uint32
	Node string // bound there; "": pending
}

// Rank that a member of a plan had when the plan was made.
func (t *Table) Rank(uid types.UID) uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := t.pods[uid]; m != nil {
		return m.rank
	}
	return 0
}

// Begin is called when a gang's pod is scheduled. It checks again what Admit checked: pods that come from backoff have
// not passed it.
func (t *Table) Begin(uid types.UID) Turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.pods[uid]
	if m == nil || m.gang == nil {
		return Turn{Reason: reasonUnseen}
	}
	g := m.gang
	if p := g.plan; p != nil {
		if node, planned := p.places[uid]; planned {
			return Turn{Step: Follow, Plan: p.id, Node: node, ID: g.id}
		}
		return Turn{Reason: fmt.Sprintf(reasonJoins, g.id)}
	}
	if reason, _ := t.blocked(g); reason != "" {
		g.said = reason
		return Turn{Reason: reason}
	}
	lead := t.lead(g)
	if lead != m {
		if lead == nil {
			return Turn{Reason: fmt.Sprintf(reasonJoins, g.id)}
		}
		t.wake(lead.pod)
		return Turn{Reason: fmt.Sprintf(reasonFollows, g.id, lead.pod.Name)}
	}
	g.waiting, g.wakeAt, g.said = false, time.Time{}, ""
	spec := t.specs[g.id]
	turn := Turn{Step: Lead, ID: g.id, Spec: spec, Note: g.note, Epoch: t.epoch}
	for _, peer := range t.order(g) {
		peer.tried = true
		turn.Members = append(turn.Members, Peer{Pod: peer.pod, GPUs: peer.gpus, Rank: peer.rank, Node: peer.node})
	}
	turn.Least = min(max(spec.MinMember-g.bound, 1), g.active-g.bound)
	return turn
}

// Place is where a plan puts a pod.
type Place struct {
	UID  types.UID
	Node string // "": anywhere
}

// Reserved enters a plan that the engine has booked, made around members that are bound. When a member is gone by now, the booking is given back and ok is
// false: the lead tries again.
func (t *Table) Reserved(id workload.GangID, key shim.Key, places []Place, around ...types.UID) (number uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gangs[id]
	whole := g != nil && g.plan == nil
	for _, place := range places {
		whole = whole && g.members[place.UID] != nil && g.members[place.UID].pending()
	}
	if !whole {
		_, _ = t.ledger.ReleaseGang(key)
		return 0, false
	}
	t.lastPlan++
	wait := t.permitWait
	if own := t.specs[id].ScheduleTimeout; own > 0 {
		wait = own
	}
	g.plan = &plan{id: t.lastPlan, wait: wait, key: key, around: around, places: make(map[types.UID]string, len(places)), size: len(places), left: len(places), made: t.now()}
	for _, place := range places {
		g.plan.places[place.UID] = place.Node
	}
	t.poke(g)
	return g.plan.id, true
}

// Wait remembers that the gang found no place, and why; refused: for what it asks for. Capacity wakes it; so does the end of
// its topology-wait, if it has one. news: the reason is another than the last time.
func (t *Table) Wait(id workload.GangID, epoch uint64, reason string, refused bool, topologyWait time.Duration) (news bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gangs[id]
	if g == nil {
		return true
	}
	news = g.lacks != reason
	g.waiting, g.lacks, g.refused, g.idle = true, reason, refused, t.now()
	if topologyWait > 0 {
		g.wakeAt = t.now().Add(topologyWait)
	}
	if t.epoch != epoch { // capacity appeared while the gang was being planned without it
		t.wakeLead(g)
	}
	t.notify()
	return news
}

// Holds says whether the plan still puts the pod on the node.
func (t *Table) Holds(uid types.UID, number uint64, node string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.planOf(uid, number)
	if p == nil {
		return false
	}
	planned, ok := p.places[uid]
	return ok && (planned == node || planned == "")
}

// Patience is how long members of the pod's plan wait in Permit for each other.
func (t *Table) Patience(uid types.UID, number uint64) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.planOf(uid, number); p != nil {
		return p.wait
	}
	return t.permitWait
}

// Go lets a plan through Permit and returns its members, who may be waiting there.
func (t *Table) Go(uid types.UID, number uint64) []types.UID {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.planOf(uid, number)
	if p == nil {
		return nil
	}
	p.going = true
	t.pods[uid].gang.begin()
	members := make([]types.UID, 0, len(p.places))
	for member := range p.places {
		members = append(members, member)
	}
	return members
}

// Bound says that a member is bound.
func (t *Table) Bound(uid types.UID, node string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.pods[uid]
	if m == nil || m.gang == nil || m.node != "" {
		return
	}
	g := m.gang
	g.tally(m, -1)
	m.node = node
	g.tally(m, 1)
	t.changed(g, m, true)
}

// Fail says that a member of a plan came to nothing. Before the plan was let through that ends the plan: the members are
// returned, to be rejected where they wait. Afterwards others may be bound, so the member keeps its place and retries.
func (t *Table) Fail(uid types.UID, number uint64) []types.UID {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.planOf(uid, number)
	if p == nil || p.going {
		return nil
	}
	return t.drop(t.pods[uid].gang)
}

// Disturb says that a node is not what it was: its labels, its GPUs, its health, or whether it takes pods. Plans that count
// on it and have not been let through come to nothing and are made anew; the members are returned, to be rejected where
// they wait.
func (t *Table) Disturb(node string) (rejected []types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, g := range t.gangs {
		if g.plan == nil || g.plan.going {
			continue
		}
		for _, place := range g.plan.places {
			if place == node {
				rejected = append(rejected, t.drop(g)...)
				break
			}
		}
	}
	slices.Sort(rejected)
	return rejected
}

// Forsake says that a member cannot be scheduled where the plan puts it, for a reason of the node's. Before the plan was
// let through that ends the plan, as in Fail; afterwards the member alone gives its place back and is planned anew around
// those that are bound.
func (t *Table) Forsake(uid types.UID) []types.UID {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.pods[uid]
	if m == nil || m.gang == nil || m.gang.plan == nil {
		return nil
	}
	g := m.gang
	if _, planned := g.plan.places[uid]; !planned || m.node != "" {
		return nil
	}
	if !g.plan.going {
		return t.drop(g)
	}
	_ = t.ledger.Release(shim.PodKey(string(uid))) // unknown: nothing was held
	t.capacity()
	delete(g.plan.places, uid)
	g.plan.left--
	if g.plan.left == 0 {
		g.plan, g.fails = nil, 0
	}
	g.woken, g.retryAt = time.Time{}, t.now().Add(retryLeast)
	t.notify()
	return nil
}

// Warn says whether a warning about the gang is new, and remembers it.
func (t *Table) Warn(id workload.GangID, bit uint32) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gangs[id]
	if g == nil || g.warned&bit != 0 {
		return false
	}
	g.warned |= bit
	return true
}

// planOf is the pod's plan if it is still the numbered one. The lock is held.
func (t *Table) planOf(uid types.UID, number uint64) *plan {
	m := t.pods[uid]
	if m == nil || m.gang == nil || m.gang.plan == nil || m.gang.plan.id != number {
		return nil
	}
	return m.gang.plan
}
