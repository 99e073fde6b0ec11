// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// History is everything that a verdict rests on.
type History struct {
	Records []Record
	Gangs   []Gang
	// Released gangs, and pods by name, may go from then on: the test deletes them.
	Released map[string]time.Time
	// Resumed are the moments at which the scheduler could work again after the test had stopped it or cut it off: the
	// 30 s of a half-bound gang and the time to bind run from there.
	Resumed []time.Time
	Ended   time.Time
}

// Replay goes through a history and returns what should not have been, in order.
func Replay(rules Rules, history History) []Violation {
	r := &replay{
		rules: rules.withDefaults(), history: history,
		pods: map[string]*pod{}, owners: map[string]string{}, nodes: map[string]*node{}, gangs: map[string]*gang{},
		locks: map[string]map[string]lock{}, lost: map[lockKey][]span{},
	}
	for _, g := range history.Gangs {
		r.gangs[g.ID] = &gang{Gang: g, members: map[string]*pod{}}
	}
	records := slices.Clone(history.Records)
	slices.SortStableFunc(records, func(a, b Record) int {
		if a.Initial != b.Initial || a.Initial {
			return order(a) - order(b) // what was there before has no order but that pods stand on nodes
		}
		return cmp.Compare(a.Version, b.Version)
	})
	for i := range records {
		r.at = &records[i]
		switch {
		case r.at.Node != nil:
			r.seeNode()
		case r.at.Lease != nil:
			r.seeLease()
		case r.at.Pod != nil:
			r.seePod()
		}
	}
	r.at = nil
	r.end()
	return r.found
}

func order(record Record) int {
	switch {
	case !record.Initial:
		return 3
	case record.Pod != nil:
		return 2
	case record.Lease != nil:
		return 1
	default:
		return 0
	}
}

type pod struct {
	Pod
	gone    bool
	created time.Time
	bound   uint64 // the version that gave it a node; 0: none yet
}

// holds says whether it occupies GPUs.
func (p *pod) holds() bool { return p.Node != "" && !p.gone && !p.Over }

type node struct {
	Node
	closed time.Time // when it stopped taking pods
	gone   bool
}

type lock struct {
	owner   string // UID
	version uint64 // when that owner got it
}

type lockKey struct{ id, owner string }

// span of versions in which somebody had a lock.
type span struct{ from, until uint64 }

type replay struct {
	rules   Rules
	history History
	at      *Record // nil: at the end
	pods    map[string]*pod
	owners  map[string]string // GPU → UID
	nodes   map[string]*node
	gangs   map[string]*gang
	locks   map[string]map[string]lock // Lease → GPU → owner
	lost    map[lockKey][]span         // locks that somebody had
	found   []Violation
}

func (r *replay) violate(kind Kind, format string, args ...any) {
	v := Violation{Kind: kind, Text: fmt.Sprintf(format, args...), Final: r.at == nil && passing[kind]}
	if r.at != nil {
		v.Version = r.at.Version
	}
	r.found = append(r.found, v)
}

func (r *replay) seeNode() {
	now := r.at.Node
	n := r.nodes[now.Name]
	if n == nil {
		n = &node{}
		r.nodes[now.Name] = n
	}
	if n.closed.IsZero() && (!now.Takes || r.at.Gone) {
		n.closed = r.at.Seen
	} else if now.Takes && !r.at.Gone {
		n.closed = time.Time{}
	}
	n.Node, n.gone = *now, r.at.Gone
}

func (r *replay) seePod() {
	now := r.at.Pod
	p := r.pods[now.UID]
	if p == nil {
		p = &pod{created: r.at.Seen}
		r.pods[now.UID] = p
	}
	before := *p
	p.Pod, p.gone = *now, r.at.Gone
	switch {
	case before.Node == "" && now.Node != "":
		p.bound = r.at.Version
		r.bound(p)
	case before.Node != now.Node:
		r.violate(Changed, "%s was on %s and is on %s", p.Name, before.Node, now.Node)
	case now.Node != "" && !slices.Equal(before.IDs, now.IDs):
		r.violate(Changed, "%s had %s and has %s", p.Name, strings.Join(before.IDs, ","), strings.Join(now.IDs, ","))
	}
	r.own(p)
	if now.Gang != "" {
		r.seeMember(p, before.holds())
	}
}

// own keeps who holds which GPU, at every moment of the history.
func (r *replay) own(p *pod) {
	for _, id := range p.IDs {
		owner, taken := r.owners[id]
		switch {
		case !p.holds():
			if owner == p.UID {
				delete(r.owners, id)
			}
		case taken && owner != p.UID:
			r.violate(DoubleBooked, "%s and %s both hold %s", r.pods[owner].Name, p.Name, id)
		default:
			r.owners[id] = p.UID
		}
	}
}

// bound checks a pod at the moment at which it gets its node.
func (r *replay) bound(p *pod) {
	if p.GPUs > 0 && slices.Contains(r.rules.Profiles, p.Scheduler) {
		r.checkGPUs(p)
		if r.rules.Locks && !r.at.Initial {
			r.checkLock(p)
		}
	}
	n := r.nodes[p.Node]
	if n == nil {
		r.violate(BadNode, "%s is on %s, which does not exist", p.Name, p.Node)
		return
	}
	if late := r.at.Seen.Sub(n.closed); !n.closed.IsZero() && late > r.rules.NodeGrace && !r.at.Initial {
		r.violate(BadNode, "%s was bound to %s %s after that was cordoned, tainted or lost", p.Name, p.Node, late.Round(time.Millisecond))
	}
	used := 0
	for _, other := range r.pods {
		if other.Node == p.Node && other.holds() {
			used += other.GPUs
		}
	}
	if used > n.GPUs && !n.gone {
		r.violate(OverCapacity, "%s uses %d GPUs with %s and has %d", p.Node, used, p.Name, n.GPUs)
	}
}

func (r *replay) checkGPUs(p *pod) {
	if len(p.IDs) != p.GPUs {
		r.violate(WrongGPUs, "%s asks for %d GPUs and has %d: %q", p.Name, p.GPUs, len(p.IDs), p.IDs)
	}
	devices := r.devices(p.Node)
	for i, id := range p.IDs {
		if slices.Contains(p.IDs[:i], id) {
			r.violate(WrongGPUs, "%s has %s twice", p.Name, id)
		}
		if !slices.Contains(devices, id) {
			r.violate(WrongGPUs, "%s on %s has %q, which is no GPU of that node", p.Name, p.Node, id)
		}
	}
	if n := r.nodes[p.Node]; n != nil && n.Leaf != "" && p.Domain != n.Spine+"/"+n.Leaf && !r.at.Initial {
		r.violate(WrongMetadata, "%s on %s says %q, want %q", p.Name, p.Node, p.Domain, n.Spine+"/"+n.Leaf)
	}
}

// devices of a node: without an agent's report they are named by their number.
func (r *replay) devices(name string) []string {
	if r.rules.Devices != nil {
		return r.rules.Devices(name)
	}
	n := r.nodes[name]
	if n == nil {
		return nil
	}
	ids := make([]string, n.GPUs)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s-gpu-%d", name, i)
	}
	return ids
}

func (r *replay) end() {
	for _, id := range sortedKeys(r.gangs) {
		r.endGang(r.gangs[id])
	}
	if r.rules.Locks {
		r.compareLocks()
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
