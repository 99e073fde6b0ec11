// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/workload"
)

// State is what can be said of a gang from outside.
type State struct {
	Pods    int    // that are there and neither ended nor going away
	Bound   int    // of those
	Planned bool   // places are reserved for members that are not bound yet
	Whole   bool   // minMember were bound at one time, and some still are
	Reason  string // why it has no place; "": it has not tried yet
}

// State of a gang; that of one without pods is empty.
func (t *Table) State(id workload.GangID) State {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gangs[id]
	if g == nil {
		return State{}
	}
	return State{Pods: g.active, Bound: g.bound, Planned: g.plan != nil, Whole: g.whole, Reason: t.reason(g)}
}

// Gangs are all that have pods, in no order.
func (t *Table) Gangs() []workload.GangID {
	t.mu.Lock()
	defer t.mu.Unlock()
	ids := make([]workload.GangID, 0, len(t.gangs))
	for id := range t.gangs {
		ids = append(ids, id)
	}
	return ids
}

// Held is a gang with bound members, as it is now.
type Held struct {
	ID      workload.GangID
	Spec    workload.Spec
	Members []Peer // by rank, at least one

	changed time.Time
}

// Held are the gangs with bound members that have changed since Told, or whose Spec has.
func (t *Table) Held() (all []Held) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, g := range t.gangs {
		spec, known := t.specs[id]
		if !known || g.bound == 0 || g.told.Equal(g.changed) {
			continue
		}
		held := Held{ID: id, Spec: spec, changed: g.changed}
		for _, m := range t.order(g) {
			held.Members = append(held.Members, Peer{Pod: m.pod, GPUs: m.gpus, Rank: m.rank, Node: m.node})
		}
		all = append(all, held)
	}
	return all
}

// Told says that what Held has said is known.
func (t *Table) Told(held Held) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if g := t.gangs[held.ID]; g != nil {
		g.told = held.changed
	}
}

// Place is where a plan puts a pod that is not bound yet. Without a place: why its gang has none, "" when that is not known or
// the pod is in no gang; refused: that is what the gang asks for, so all of its members fail by it.
func (t *Table) Place(uid types.UID) (node string, planned bool, reason string, refused bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.pods[uid]
	if m == nil || m.gang == nil {
		return "", false, "", false
	}
	if m.gang.plan != nil {
		if node, planned = m.gang.plan.places[uid]; planned {
			return node, true, "", false
		}
	}
	reason = t.reason(m.gang)
	return "", false, reason, reason != "" && reason == m.gang.lacks && m.gang.refused
}

func (t *Table) reason(g *gang) string {
	if g.plan != nil {
		return ""
	}
	if reason, _ := t.blocked(g); reason != "" {
		return reason
	}
	return g.lacks
}
