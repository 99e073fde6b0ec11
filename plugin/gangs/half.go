// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"slices"
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
// answers; a large one has longer, because the locks of those that are missing are taken first.
const (
	halfPatience       = 10 * time.Second
	halfPatienceMember = 15 * time.Millisecond // for each that is missing
)

// measure notes whether the gang is, or has ever been, whole.
func (m *Machine) measure(g *gang) {
	spec, known := m.specs[g.id]
	switch {
	case known && spec.Problem == "" && g.bound >= spec.MinMember:
		g.extent = whole
	case g.bound > 0:
	case g.plan != nil && g.plan.state == Binding:
		g.extent = begun // what was whole is gone, and others are being bound
	default:
		g.extent = fresh // nothing stands: it starts from the beginning
	}
	if !m.half(g) {
		g.halfSince = time.Time{}
	}
}

// half says whether the gang is half-bound.
func (m *Machine) half(g *gang) bool {
	spec, known := m.specs[g.id]
	return known && g.extent == begun && g.bound > 0 && g.bound < spec.MinMember
}

// overdue: nobody of the half-bound gang was bound for as long as it may take.
func (m *Machine) overdue(g *gang, now time.Time) bool {
	patience := halfPatience + time.Duration(max(m.specs[g.id].MinMember-g.bound, 0))*halfPatienceMember
	return !g.halfSince.IsZero() && g.bound <= g.halfBound && !now.Before(g.halfSince.Add(patience))
}

func (m *Machine) lockFound(uid types.UID) {
	if peer := m.pods[uid]; peer != nil && peer.gang != nil && peer.node == "" && peer.gang.extent == fresh {
		peer.gang.extent = begun
		m.measure(peer.gang)
	}
}

func (m *Machine) halfSeen(id workload.GangID, confirmed bool) {
	g := m.gangs[id]
	switch {
	case g == nil || !m.half(g):
	case !confirmed:
		g.halfSince = time.Time{}
	case g.halfSince.IsZero() || g.bound != g.halfBound:
		g.halfSince, g.halfBound = m.now, g.bound
	}
}

// halfAbandoned gives up whatever plan a half-bound gang has, before its bound members are deleted.
func (m *Machine) halfAbandoned(id workload.GangID) {
	g := m.gangs[id]
	if g == nil || !m.half(g) || !m.overdue(g, m.now) {
		return
	}
	if g.plan != nil && g.plan.state != Ended {
		m.end(g, CauseReleased, nil)
	}
	g.retryAt = m.now.Add(retryMost)
	m.review(g)
}

// Half is a half-bound gang.
type Half struct {
	ID        workload.GangID
	MinMember int
	Bound     []*v1.Pod // by name
	Overdue   bool      // it has had its time
}

// Halves are the half-bound gangs, in the order of their names.
func (m *Machine) Halves(now time.Time) (halves []Half) {
	for _, g := range m.gangs {
		if !m.half(g) {
			continue
		}
		half := Half{ID: g.id, MinMember: m.specs[g.id].MinMember, Overdue: m.overdue(g, now)}
		for _, peer := range g.members {
			if peer.node != "" && peer.active() {
				half.Bound = append(half.Bound, peer.pod)
			}
		}
		slices.SortFunc(half.Bound, func(a, b *v1.Pod) int { return workload.NaturalCompare(a.Name, b.Name) })
		halves = append(halves, half)
	}
	slices.SortFunc(halves, func(a, b Half) int { return workload.NaturalCompare(a.ID.String(), b.ID.String()) })
	return halves
}
