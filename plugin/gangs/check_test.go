// SPDX-License-Identifier: Apache-2.0

package gangs

import "fmt"

// check recounts everything that the machine keeps count of, and asks of every gang what must be true of it at any time. It
// says what is broken, "" if nothing is.
func (m *Machine) check() string {
	for uid, peer := range m.pods {
		if peer.gang != nil && (m.gangs[peer.gang.id] != peer.gang || peer.gang.members[uid] != peer) {
			return fmt.Sprintf("pod %s is in gang %s, which does not know it", uid, peer.gang.id)
		}
	}
	planned := 0
	for id, g := range m.gangs {
		if broken := m.checkGang(g); broken != "" {
			return fmt.Sprintf("gang %s: %s", id, broken)
		}
		if g.plan != nil {
			planned++
		}
	}
	if planned != len(m.plans) {
		return fmt.Sprintf("%d gangs have a plan, %d plans are known", planned, len(m.plans))
	}
	armed := 0
	for i, g := range m.alarms {
		if g.alarmSlot != i || m.gangs[g.id] != g {
			return fmt.Sprintf("the alarm of gang %s is lost", g.id)
		}
		armed++
	}
	for g := range m.waiting {
		if m.gangs[g.id] != g {
			return fmt.Sprintf("gang %s waits and is gone", g.id)
		}
	}
	return ""
}

func (m *Machine) checkGang(g *gang) string {
	active, bound := 0, 0
	for _, peer := range g.members {
		if peer.active() {
			active++
			if peer.node != "" {
				bound++
			}
		}
	}
	spec, known := m.specs[g.id]
	switch {
	case g.active != active || g.bound != bound:
		return fmt.Sprintf("counted %d and %d bound, found %d and %d", g.active, g.bound, active, bound)
	case len(g.members) == 0 && g.plan == nil:
		return "has no members and is still there"
	case (g.plan != nil) != (g.stage == Planned):
		return fmt.Sprintf("its stage is %s and its plan %v", g.stage, g.plan)
	case (g.stage == Waiting) != m.waiting[g]:
		return fmt.Sprintf("its stage is %s, and it is among those that wait: %v", g.stage, m.waiting[g])
	case g.extent == whole && known && bound == 0:
		return "was whole, and nobody is bound any more"
	case g.extent == begun && known && spec.Problem == "" && bound >= spec.MinMember:
		return "is whole and counts as half-bound"
	case !g.halfSince.IsZero() && !m.half(g):
		return "has a time of a half-bound gang and is none"
	case !m.due(g).Equal(g.alarm) && g.plan == nil && g.stage != Gathering:
		return fmt.Sprintf("is due at %v, its alarm is at %v", m.due(g), g.alarm)
	}
	// Nobody is forgotten: a gang that could go on is being moved by somebody, or has an alarm.
	switch g.stage {
	case Asked, Trying, Backoff, Planned:
		if g.alarm.IsZero() && (g.plan == nil || g.plan.state != Ended) {
			return fmt.Sprintf("is %s without an alarm", g.stage)
		}
	case Settled:
		if bound < active {
			return "is settled, and somebody is pending"
		}
	}
	if g.plan == nil {
		return ""
	}
	return m.checkPlan(g)
}

func (m *Machine) checkPlan(g *gang) string {
	p := g.plan
	if m.plans[p.id] != g {
		return "its plan is not known by its number"
	}
	if p.state == Ended {
		return "" // its places are what is to be given back, whoever is still there
	}
	left, coming, unready := 0, 0, 0
	for uid, at := range p.places {
		peer := g.members[uid]
		if peer == nil {
			return fmt.Sprintf("its plan has a place for %s, who is gone", uid)
		}
		if peer.node != "" {
			continue
		}
		left++
		if !at.arrived {
			coming++
		}
		if !at.ready {
			unready++
		}
		if p.state < Binding && !peer.active() {
			return fmt.Sprintf("its plan, which has not come to Binding, counts on %s, who is going away", uid)
		}
		if at.node != "" && !p.nodes[at.node] {
			return fmt.Sprintf("its plan has %s on %s and does not know the node", uid, at.node)
		}
	}
	switch {
	case left == 0 || left != p.left || coming != p.coming || unready != p.unready:
		return fmt.Sprintf("its plan counts %d left, %d coming, %d unready; found %d, %d, %d", p.left, p.coming, p.unready, left, coming, unready)
	case p.state == Reserved && coming == 0:
		return "all have come to Permit, and nobody was let go"
	case p.state == Permitted && (coming > 0 || unready == 0):
		return fmt.Sprintf("is permitted with %d coming and %d not at Bind", coming, unready)
	case p.state == Locking && (coming > 0 || unready > 0):
		return fmt.Sprintf("is being locked with %d coming and %d not at Bind", coming, unready)
	case p.state == Binding && g.extent == fresh:
		return "is being bound, and counts as one that was never begun"
	}
	return ""
}
