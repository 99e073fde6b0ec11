// SPDX-License-Identifier: Apache-2.0

package gangs

import (
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

// Place is where a plan puts a pod that is not bound yet. Without a place: why its gang has none, "" when that is not known or
// the pod is in no gang.
func (t *Table) Place(uid types.UID) (node string, planned bool, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.pods[uid]
	if m == nil || m.gang == nil {
		return "", false, ""
	}
	if m.gang.plan != nil {
		if node, planned = m.gang.plan.places[uid]; planned {
			return node, true, ""
		}
	}
	return "", false, t.reason(m.gang)
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
