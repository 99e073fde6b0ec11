// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/nodereport"
	"github.com/frond-scheduler/frond/shim"
)

// reported is what a node's agent has said. A report is used when it fits what the node lets pods have; one that does
// not is refused, and the one that was used before stays, or the node goes by allocatable and labels if there was none.
// So 8 → 7 → 8 devices while allocatable says 8 changes nothing, and 8 → 7 in both is taken as soon as both say so. Where a
// node lets pods have replicas of shared GPUs, the report knows the devices and allocatable does not.
type reported struct {
	latest   *nodereport.Report // newest that was whole; nil: taken back
	used     *nodereport.Report // that the engine goes by; nil: none
	names    *nodereport.Report // whose ids pods and Leases carry: used, or the last that was, even when it was taken back
	topology uint32             // of used
	uid      types.UID          // of the object, whatever it says
	broken   string             // why the newest one was not whole; "": it was
	spoke    bool               // a report that was not whole has come since the last look
	nonsense time.Time          // of the look that found it; its agent is alive
	told     string             // why the latest is not used, or not all of it
	stale    string             // why nobody knows whether it is still true; "": it is
	held     bool               // no new pods go there
	old      bool               // latest is from before the node came back: it may be of another machine
}

// SetReport takes what an agent says of its node. changed: the engine was told something new.
func (m *Mirror) SetReport(report *nodereport.Report) (changed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.reports[report.Node]
	if r == nil {
		r = &reported{topology: shim.None}
		m.reports[report.Node] = r
	}
	before, old := r.latest, r.old
	m.wroteReport(before, report)
	r.latest, r.uid, r.broken, r.old = report, report.UID, "", false
	if before != nil && before.Same(report) && !old && m.nodes[report.Node] != nil {
		// Only the heartbeat is new, and what came of the report before comes of it now.
		if r.used == before {
			r.used = report
		}
		if r.names == before {
			r.names = report
		}
		return false
	}
	return m.reportChanged(report.Node)
}

// DropReport: the object is gone. The node goes by allocatable and labels again; the ids of its GPUs are kept as long as
// the node is, because pods carry them.
func (m *Mirror) DropReport(name string) (changed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.reports[name]
	if r == nil {
		return false
	}
	r.latest, r.used, r.broken, r.told, r.stale, r.held = nil, nil, "", "", "", false
	if r.names == nil {
		delete(m.reports, name)
	}
	return m.reportChanged(name)
}

// RefuseReport: an agent wrote what cannot be. It is told once; the last good report stays.
func (m *Mirror) RefuseReport(name string, uid types.UID, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.reports[name]
	if r == nil {
		r = &reported{topology: shim.None}
		m.reports[name] = r
	}
	sentence := err.Error() + "; the report is refused"
	if r.broken != sentence {
		m.tell((&nodereport.Report{Node: name, UID: uid}).Object(), ReasonReportRefused, sentence)
	}
	r.broken, r.uid, r.spoke = sentence, uid, true
}

// reportChanged renews the node. A pod that the engine cannot take was told when it came.
func (m *Mirror) reportChanged(name string) (changed bool) {
	if m.nodes[name] == nil {
		return false
	}
	changed, err := m.renew(name, false)
	if err != nil {
		if r := m.reports[name]; r != nil && r.latest != nil {
			m.refuse(r, r.latest.Object(), err.Error())
		}
	}
	return changed
}

func (m *Mirror) refuse(r *reported, object runtime.Object, sentence string) {
	if r.told != sentence {
		r.told = sentence
		m.tell(object, ReasonReportRefused, sentence)
	}
}

// choose the report that the engine goes by.
func (m *Mirror) choose(name string, allocatable uint32) {
	r := m.reports[name]
	if r == nil || r.latest == nil {
		return
	}
	fits := r.latest.Fits(allocatable)
	if !fits && !r.old && (r.used == nil || r.used == r.latest || !r.used.Fits(allocatable)) {
		fits = r.latest.Replicated(allocatable)
	}
	if r.latest == r.used && fits && r.topology != shim.None {
		r.told = "" // the node has agreed again
		return
	}
	if !fits {
		m.refuse(r, r.latest.Object(), fmt.Sprintf("status.devices: must be at least as many as the node lets pods have, %d, got %d; the report is refused until the node agrees",
			allocatable, len(r.latest.Devices)))
		return
	}
	id, err := m.engine.TopologyPut(r.latest.Topology)
	if err != nil {
		id = shim.None
		m.refuse(r, r.latest.Object(), fmt.Sprintf("its links are not used: %v", err))
	} else {
		r.told = ""
	}
	r.used, r.topology = r.latest, id
	m.setNames(name, r, r.latest)
}

// compose what the engine knows of a node: by its report, else by allocatable and labels. More GPUs than a machine can have
// are replicas of shared ones, and so are those beyond the devices of a report: no pod gets one, and the engine names the node
// in its problems.
func (m *Mirror) compose(name string, n *node) shim.Node {
	entry := shim.Node{Slot: n.slot, Name: name, GPUs: n.allocatable, Flags: n.flags, Topology: shim.None}
	if entry.GPUs > shim.GPUsMax {
		entry.GPUs = 0
	}
	if r := m.reports[name]; r != nil && r.used != nil {
		entry.GPUs, entry.UnhealthyMask, entry.Topology = uint32(len(r.used.Devices)), r.used.Unhealthy, r.topology
		if r.topology != shim.None {
			entry.Model = r.used.Model
		}
		if r.held {
			entry.Flags |= shim.NodeCordoned
		}
	}
	if n.allocatable > entry.GPUs {
		entry.Flags |= shim.NodeReplicas
	}
	m.grow(name, n, &entry)
	return entry
}

// CheckReports looks for agents that have fallen silent. What they said last stays; somebody is told, once. A node whose
// agent is silent takes no new pods, as if it were cordoned: what happens to its GPUs now nobody would hear. But when most
// agents are silent, it is not the nodes that are ill: then none is held back. Nodes that are down do not count. An agent that
// writes what cannot be is not silent. changed are the nodes that take pods no more, or again.
func (m *Mirror) CheckReports(now time.Time) (changed []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.checkRenewals(now)
	silent, all := 0, 0
	for name, r := range m.reports {
		before := r.stale
		r.stale = ""
		if r.spoke {
			r.spoke, r.nonsense = false, now
		}
		if r.latest == nil || m.nodes[name] == nil {
			continue
		}
		counts := m.nodes[name].flags&shim.NodeDown == 0
		if counts {
			all++
		}
		if now.Sub(r.nonsense) > nodereport.Patience {
			r.stale = m.silent(name, r.latest, now)
		}
		if r.stale == "" {
			continue
		}
		if counts {
			silent++
		}
		if before == "" {
			m.tell(r.latest.Object(), ReasonStaleReport, r.stale+"; what it said last stays")
		}
	}
	hold := 2*silent <= all
	for name, r := range m.reports {
		if held := hold && r.stale != "" && r.used != nil; held != r.held {
			r.held = held
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	return slices.DeleteFunc(changed, func(name string) bool { return !m.reportChanged(name) })
}

// Verdict is what is thought of a node's report. Sentences are empty when all is well.
type Verdict struct {
	Node    string
	UID     types.UID // of the object
	Refused string    // why the newest one is not used, or not all of it
	Stale   string    // why nobody knows whether it is still true
	Held    bool      // no new pods go to the node because of that
}

// Verdicts on all reports, by name of the node.
func (m *Mirror) Verdicts() []Verdict {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var list []Verdict
	for _, name := range slices.Sorted(maps.Keys(m.reports)) {
		if r := m.reports[name]; r.latest != nil || r.broken != "" {
			list = append(list, Verdict{Node: name, UID: r.uid, Refused: cmp.Or(r.broken, r.told), Stale: r.stale, Held: r.held})
		}
	}
	return list
}

// Stale is how many nodes have an agent that has fallen silent.
func (m *Mirror) Stale() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	count := 0
	for _, r := range m.reports {
		if r.stale != "" {
			count++
		}
	}
	return count
}

// ---- what somebody should hear ------------------------------------------------------------------------------------

type news struct {
	object           runtime.Object
	reason, sentence string
}

// tell keeps a sentence until the lock is given back: observers may take their time.
func (m *Mirror) tell(object runtime.Object, reason, sentence string) {
	m.news = append(m.news, news{object, reason, sentence})
}

// Tell passes on what has been found since the last time.
func (m *Mirror) Tell(observer Observer) {
	m.mu.Lock()
	news := m.news
	m.news = nil
	m.mu.Unlock()
	for _, n := range news {
		observer.Problem(n.object, n.reason, n.sentence)
	}
}
