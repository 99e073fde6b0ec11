// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"container/heap"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Time moves gangs: each has at most one alarm, for the next moment at which something may be due.

// alarms is a heap of gangs, the earliest alarm first.
type alarms []*gang

func (a alarms) Len() int           { return len(a) }
func (a alarms) Less(i, j int) bool { return a[i].alarm.Before(a[j].alarm) }
func (a alarms) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].alarmSlot, a[j].alarmSlot = i, j
}

func (a *alarms) Push(g any) {
	g.(*gang).alarmSlot = len(*a)
	*a = append(*a, g.(*gang))
}

func (a *alarms) Pop() any {
	last := len(*a) - 1
	g := (*a)[last]
	(*a)[last] = nil
	*a = (*a)[:last]
	return g
}

// arm sets the gang's alarm for the next moment at which it may have to move.
func (m *Machine) arm(g *gang) {
	at := m.due(g)
	switch {
	case at.IsZero():
		m.disarm(g)
	case g.alarm.IsZero():
		g.alarm = at
		heap.Push(&m.alarms, g)
	default:
		g.alarm = at
		heap.Fix(&m.alarms, g.alarmSlot)
	}
}

func (m *Machine) disarm(g *gang) {
	if !g.alarm.IsZero() {
		heap.Remove(&m.alarms, g.alarmSlot)
		g.alarm = time.Time{}
	}
}

// Next is when the next Tick is due; zero: time alone moves nothing.
func (m *Machine) Next() time.Time {
	if len(m.alarms) == 0 {
		return time.Time{}
	}
	return m.alarms[0].alarm
}

// due is when time moves the gang; zero: never.
func (m *Machine) due(g *gang) (at time.Time) {
	earlier := func(moment time.Time) {
		if at.IsZero() || moment.Before(at) {
			at = moment
		}
	}
	switch g.stage {
	case Gathering:
		reason, until := m.blocked(g)
		switch {
		case !until.IsZero():
			earlier(until)
		case reason == "":
			earlier(m.now) // the moment has come
		case reason != g.said:
			earlier(m.tellAt(g))
		}
	case Asked, Trying:
		earlier(g.since.Add(sweep))
	case Waiting:
		if !g.wakeAt.IsZero() {
			earlier(g.wakeAt)
		}
	case Backoff:
		earlier(g.retryAt)
	case Planned:
		if g.plan.state == Reserved {
			earlier(m.expiry(g))
		}
		if g.plan.state != Ended {
			earlier(g.since.Add(sweep))
		}
	}
	if g.plan == nil && !g.leftAt.IsZero() {
		earlier(g.leftAt.Add(nominationPause))
	}
	return at
}

// tellAt: the lead of a gang that cannot be planned takes the reason to its event, once, after a while in which what is
// missing may come.
func (m *Machine) tellAt(g *gang) time.Time {
	at := g.changed.Add(silence)
	if again := g.since.Add(sweep); !g.since.Before(at) && again.After(at) {
		return again // it was activated for that, and has not come
	}
	return at
}

func (m *Machine) expiry(g *gang) time.Time { return g.plan.made.Add(g.plan.wait + expirySlack) }

func (m *Machine) tick() {
	var due []*gang
	for len(m.alarms) > 0 && !m.now.Before(m.alarms[0].alarm) {
		g := m.alarms[0]
		m.disarm(g)
		due = append(due, g)
	}
	slices.SortFunc(due, func(a, b *gang) int { return compareIDs(a.id, b.id) })
	for _, g := range due {
		m.touched[g] = true
		m.moved(g)
	}
}

// moved does what is due for a gang.
func (m *Machine) moved(g *gang) {
	passed := func(moment time.Time) bool { return !m.now.Before(moment) }
	if g.plan == nil && !g.leftAt.IsZero() && passed(g.leftAt.Add(nominationPause)) {
		g.leftAt = time.Time{}
		m.clearNominations(g)
	}
	switch g.stage {
	case Gathering:
		reason, until := m.blocked(g)
		switch {
		case reason == "":
			m.review(g)
		case until.IsZero() && reason != g.said && passed(m.tellAt(g)):
			g.since = m.now
			if lead := m.lead(g); lead != nil {
				m.wake(lead.pod)
			}
		}
	case Asked, Trying:
		if passed(g.since.Add(sweep)) {
			m.ask(g)
		}
	case Waiting:
		if !g.wakeAt.IsZero() && passed(g.wakeAt) {
			g.wakeAt = time.Time{}
			m.ask(g)
		}
	case Backoff:
		if passed(g.retryAt) {
			m.review(g)
		}
	case Planned:
		switch {
		case g.plan.state == Reserved && passed(m.expiry(g)):
			m.end(g, CauseExpired, nil)
		case g.plan.state != Ended && passed(g.since.Add(sweep)):
			m.wakePlanned(g)
		}
	}
}

func (m *Machine) clearNominations(g *gang) {
	var pods []*v1.Pod
	for _, peer := range m.ranks(g) {
		if peer.nominationLeft() {
			peer.cleared = peer.pod.ResourceVersion
			pods = append(pods, peer.pod)
		}
	}
	if len(pods) > 0 {
		m.emit(ClearNominations{Pods: pods})
	}
}
