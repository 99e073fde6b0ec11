// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// story builds a history: a cluster of 2 spines of 3 leaves of 2 nodes of 8 GPUs, and what happens on it, a second a step.
type story struct {
	History
	now     time.Time
	version uint64
	pods    map[string]Pod
}

func newStory(gangs ...Gang) *story {
	s := &story{now: time.Unix(1000, 0), version: 100, pods: map[string]Pod{}}
	s.Gangs, s.Released = gangs, map[string]time.Time{}
	for n := 1; n <= 12; n++ {
		s.node(n, true)
	}
	return s
}

func (s *story) add(record Record) {
	s.now = s.now.Add(time.Second)
	s.version++
	record.Version, record.Seen = s.version, s.now
	s.Records = append(s.Records, record)
}

func nodeName(n int) string { return fmt.Sprintf("node-%d", n) }

func (s *story) node(n int, takes bool) {
	leaf := (n-1)/2 + 1
	s.add(Record{Node: &Node{Name: nodeName(n), Leaf: fmt.Sprintf("leaf-%d", leaf), Spine: fmt.Sprintf("spine-%d", (leaf-1)/3+1), GPUs: 8, Takes: takes}})
}

func (s *story) see(p Pod, gone bool) {
	s.pods[p.Name] = p
	s.add(Record{Pod: &p, Gone: gone})
}

// create makes a pending pod ns/GANG-RANK of gang ns/GANG.
func (s *story) create(gang string, rank, gpus int) string {
	name := fmt.Sprintf("ns/%s-%d", gang, rank)
	s.see(Pod{UID: "uid of " + name, Name: name, Gang: "ns/" + gang, Scheduler: "ours", GPUs: gpus, Rank: fmt.Sprint(rank)}, false)
	return name
}

// bind gives a pod GPUs first… of a node.
func (s *story) bind(name string, n, first int) {
	p := s.pods[name]
	p.Node = nodeName(n)
	for i := range p.GPUs {
		p.IDs = append(p.IDs, fmt.Sprintf("%s-gpu-%d", p.Node, first+i))
	}
	leaf := (n-1)/2 + 1
	p.Domain = fmt.Sprintf("spine-%d/leaf-%d", (leaf-1)/3+1, leaf)
	s.see(p, false)
}

func (s *story) change(name string, how func(*Pod)) {
	p := s.pods[name]
	how(&p)
	s.see(p, false)
}

func (s *story) finish(name string) { s.change(name, func(p *Pod) { p.Over = true }) }

func (s *story) remove(name string) { s.see(s.pods[name], true) }

func (s *story) lock(n int, owners map[string]string) {
	s.add(Record{Lease: &Lease{Name: nodeName(n), Owners: owners, Locks: true}})
}

// own is the lock entry of a bound or still unbound pod.
func own(name string, n, first, gpus int) map[string]string {
	owners := map[string]string{}
	for i := range gpus {
		owners[fmt.Sprintf("%s-gpu-%d", nodeName(n), first+i)] = "uid of " + name
	}
	return owners
}

// gang creates and binds one of whole nodes, rank i on the i-th of nodes.
func (s *story) gang(name string, nodes ...int) {
	for rank := range nodes {
		s.create(name, rank, 8)
	}
	for rank, n := range nodes {
		s.bind(fmt.Sprintf("ns/%s-%d", name, rank), n, 0)
	}
}

func (s *story) wait(d time.Duration) { s.now = s.now.Add(d) }

// implied is what is true along with a broken promise.
var implied = map[Kind]Kind{DoubleBooked: OverCapacity, BadNode: WrongGPUs, LockMissing: LocksDiffer}

func TestVerdicts(t *testing.T) {
	two, four := Gang{ID: "ns/a", Size: 2, Required: true}, Gang{ID: "ns/a", Size: 4, Required: true}
	for _, c := range []struct {
		name  string
		gangs []Gang
		rules Rules
		tell  func(*story)
		want  Kind // "": all is well
		says  string
	}{
		{"a gang on one leaf", []Gang{two}, Rules{}, func(s *story) { s.gang("a", 1, 2) }, "", ""},
		{"a GPU given again after its pod has ended", []Gang{two, {ID: "ns/b", Size: 2}}, Rules{}, func(s *story) {
			s.gang("a", 1, 2)
			s.finish("ns/a-0")
			s.finish("ns/a-1")
			s.gang("b", 1, 2)
		}, "", ""},
		{"a GPU with two owners", []Gang{two, {ID: "ns/b", Size: 2}}, Rules{}, func(s *story) {
			s.gang("a", 1, 2)
			s.finish("ns/a-0")
			s.gang("b", 1, 2)
		}, DoubleBooked, "node-2-gpu-0"},
		{"a GPU given before its owner's end, seen late", []Gang{{ID: "ns/a", Size: 1}, {ID: "ns/b", Size: 1}}, Rules{}, func(s *story) {
			s.gang("a", 1)
			s.gang("b", 1)
			s.finish("ns/a-0")
		}, DoubleBooked, "node-1-gpu-0"},
		{"a terminating pod still holds its GPUs", []Gang{{ID: "ns/a", Size: 1, Fate: MayWait}, {ID: "ns/b", Size: 1}}, Rules{}, func(s *story) {
			s.gang("a", 1)
			s.Released["ns/a"] = s.now
			s.gang("b", 1)
			s.remove("ns/a-0")
		}, DoubleBooked, "node-1-gpu-0"},
		{"a pod of the same name is another pod", []Gang{{ID: "ns/a", Size: 1}}, Rules{}, func(s *story) {
			s.gang("a", 1)
			other := s.pods["ns/a-0"]
			other.UID, other.Gang = "another", ""
			s.see(other, false)
		}, DoubleBooked, "node-1-gpu-0"},
		{"more GPUs by count than the node has", nil, Rules{}, func(s *story) {
			s.see(Pod{UID: "x", Name: "ns/x", Scheduler: "other", GPUs: 5, Node: "node-1"}, false)
			s.see(Pod{UID: "y", Name: "ns/y", Scheduler: "other", GPUs: 4, Node: "node-1"}, false)
		}, OverCapacity, "9 GPUs"},
		{"fewer ids than limits", nil, Rules{}, func(s *story) {
			s.see(Pod{UID: "x", Name: "ns/x", Scheduler: "ours", GPUs: 2, Node: "node-1", IDs: []string{"node-1-gpu-0"}, Domain: "spine-1/leaf-1"}, false)
		}, WrongGPUs, "asks for 2 GPUs and has 1"},
		{"no ids at all", nil, Rules{}, func(s *story) {
			s.see(Pod{UID: "x", Name: "ns/x", Scheduler: "ours", GPUs: 1, Node: "node-1", Domain: "spine-1/leaf-1"}, false)
		}, WrongGPUs, "has 0"},
		{"an id twice", nil, Rules{}, func(s *story) {
			s.see(Pod{UID: "x", Name: "ns/x", Scheduler: "ours", GPUs: 2, Node: "node-1", IDs: []string{"node-1-gpu-0", "node-1-gpu-0"}, Domain: "spine-1/leaf-1"}, false)
		}, WrongGPUs, "twice"},
		{"an id of another node", nil, Rules{}, func(s *story) {
			s.see(Pod{UID: "x", Name: "ns/x", Scheduler: "ours", GPUs: 1, Node: "node-1", IDs: []string{"node-2-gpu-0"}, Domain: "spine-1/leaf-1"}, false)
		}, WrongGPUs, "no GPU of that node"},
		{"an id beyond the node's number", nil, Rules{}, func(s *story) {
			s.see(Pod{UID: "x", Name: "ns/x", Scheduler: "ours", GPUs: 1, Node: "node-1", IDs: []string{"node-1-gpu-8"}, Domain: "spine-1/leaf-1"}, false)
		}, WrongGPUs, "node-1-gpu-8"},
		{"ids by report", nil, Rules{Devices: func(string) []string { return []string{"GPU-1"} }}, func(s *story) {
			s.see(Pod{UID: "x", Name: "ns/x", Scheduler: "ours", GPUs: 1, Node: "node-1", IDs: []string{"GPU-1"}, Domain: "spine-1/leaf-1"}, false)
		}, "", ""},
		{"wrong domain", nil, Rules{}, func(s *story) {
			s.see(Pod{UID: "x", Name: "ns/x", Scheduler: "ours", GPUs: 1, Node: "node-1", IDs: []string{"node-1-gpu-0"}, Domain: "spine-1/leaf-2"}, false)
		}, WrongMetadata, "leaf-2"},
		{"ids change after binding", []Gang{two}, Rules{}, func(s *story) {
			s.gang("a", 1, 2)
			s.change("ns/a-0", func(p *Pod) { p.IDs = slices.Clone(p.IDs[:7]) })
		}, Changed, "ns/a-0"},
		{"a half-bound gang at the end", []Gang{four}, Rules{}, func(s *story) {
			for rank := range 4 {
				s.create("a", rank, 8)
			}
			s.bind("ns/a-0", 1, 0)
		}, HalfBound, "1 of at least 4"},
		{"half-bound for too long, then whole", []Gang{two}, Rules{}, func(s *story) {
			s.create("a", 0, 8)
			s.create("a", 1, 8)
			s.bind("ns/a-0", 1, 0)
			s.wait(time.Minute)
			s.bind("ns/a-1", 2, 0)
		}, HalfBound, "allowed are 30s"},
		{"half-bound for too long, then released", []Gang{{ID: "ns/a", Size: 2, Fate: MayWait}}, Rules{}, func(s *story) {
			s.create("a", 0, 8)
			s.create("a", 1, 8)
			s.bind("ns/a-0", 1, 0)
			s.wait(time.Minute)
			s.remove("ns/a-0")
		}, HalfBound, "allowed are 30s"},
		{"half-bound while the scheduler was away", []Gang{two}, Rules{}, func(s *story) {
			s.create("a", 0, 8)
			s.create("a", 1, 8)
			s.bind("ns/a-0", 1, 0)
			s.wait(time.Minute)
			s.Resumed = append(s.Resumed, s.now)
			s.bind("ns/a-1", 2, 0)
		}, "", ""},
		{"minMember bound and more to come", []Gang{{ID: "ns/a", Size: 3, MinMember: 2, Fate: MayWait}}, Rules{}, func(s *story) {
			s.create("a", 0, 8)
			s.create("a", 1, 8)
			s.create("a", 2, 8)
			s.bind("ns/a-0", 1, 0)
			s.bind("ns/a-1", 2, 0)
		}, "", ""},
		{"a gang of which nothing is bound", []Gang{two}, Rules{}, func(s *story) {
			s.create("a", 0, 8)
			s.create("a", 1, 8)
		}, NotBound, "0 of 2"},
		{"a gang that may wait", []Gang{{ID: "ns/a", Size: 2, Fate: MayWait}}, Rules{}, func(s *story) {
			s.create("a", 0, 8)
			s.create("a", 1, 8)
		}, "", ""},
		{"a gang that took too long", []Gang{{ID: "ns/a", Size: 2, Within: 10 * time.Second}}, Rules{}, func(s *story) {
			s.create("a", 0, 8)
			s.create("a", 1, 8)
			s.wait(11 * time.Second)
			s.bind("ns/a-0", 1, 0)
			s.bind("ns/a-1", 2, 0)
		}, NotBound, "allowed are 10s"},
		{"a gang that must not be bound", []Gang{{ID: "ns/a", Size: 1, Fate: MustNotBind}}, Rules{}, func(s *story) { s.gang("a", 1) }, Forbidden, "ns/a-0"},
		{"a gang that nobody submitted", []Gang{two}, Rules{}, func(s *story) {
			s.gang("a", 1, 2)
			s.create("b", 0, 8)
		}, UnknownPod, "ns/b"},
		{"equal ranks", []Gang{two}, Rules{}, func(s *story) {
			s.create("a", 0, 8)
			s.create("a", 1, 8)
			s.change("ns/a-1", func(p *Pod) { p.Rank = "0" })
			s.bind("ns/a-0", 1, 0)
			s.bind("ns/a-1", 2, 0)
		}, WrongRanks, "both have rank 0"},
		{"a rank beyond the gang", []Gang{two}, Rules{}, func(s *story) {
			s.create("a", 0, 8)
			s.create("a", 2, 8)
			s.bind("ns/a-0", 1, 0)
			s.bind("ns/a-2", 2, 0)
		}, WrongRanks, `"2"`},
		{"no rank", []Gang{two}, Rules{}, func(s *story) {
			s.create("a", 0, 8)
			s.create("a", 1, 8)
			s.change("ns/a-1", func(p *Pod) { p.Rank = "" })
			s.bind("ns/a-0", 1, 0)
			s.bind("ns/a-1", 2, 0)
		}, WrongRanks, `""`},
		{"a ring that goes to and fro", []Gang{four}, Rules{}, func(s *story) { s.gang("a", 1, 3, 2, 4) }, WrongRing, "2 leaves and its ring crosses 4"},
		{"two adjacent leaves", []Gang{four}, Rules{}, func(s *story) { s.gang("a", 3, 4, 5, 6) }, "", ""},
		{"leaves with a gap", []Gang{four}, Rules{}, func(s *story) { s.gang("a", 1, 2, 5, 6) }, RuleBroken, "not adjacent"},
		{"more leaves than it needs", []Gang{two}, Rules{}, func(s *story) { s.gang("a", 2, 3) }, RuleBroken, "fits 1 adjacent leaves and is on 2"},
		{"more leaves than it needs, but not Required", []Gang{{ID: "ns/a", Size: 2}}, Rules{}, func(s *story) { s.gang("a", 2, 3) }, "", ""},
		{"the rest of a gang of which one has ended", []Gang{two}, Rules{}, func(s *story) {
			s.create("a", 0, 8)
			s.create("a", 1, 8)
			s.bind("ns/a-0", 1, 0)
			s.finish("ns/a-0")
			s.bind("ns/a-1", 5, 0)
		}, "", ""},
		{"two spines for what fits one", []Gang{four}, Rules{}, func(s *story) { s.gang("a", 5, 6, 7, 8) }, RuleBroken, "under 2 spines"},
		{"two nodes for what fits one", []Gang{two}, Rules{}, func(s *story) {
			s.create("a", 0, 4)
			s.create("a", 1, 4)
			s.bind("ns/a-0", 1, 0)
			s.bind("ns/a-1", 2, 0)
		}, RuleBroken, "fits one node and is on 2"},
		{"spread takes a node for each", []Gang{{ID: "ns/a", Size: 2, Required: true, Spread: true}}, Rules{}, func(s *story) {
			s.create("a", 0, 4)
			s.create("a", 1, 4)
			s.bind("ns/a-0", 1, 0)
			s.bind("ns/a-1", 2, 0)
		}, "", ""},
		{"spine after spine", []Gang{{ID: "ns/a", Size: 8, Required: true}}, Rules{}, func(s *story) { s.gang("a", 3, 4, 5, 6, 7, 8, 9, 10) }, "", ""},
		{"a gap inside a spine", []Gang{{ID: "ns/a", Size: 8, Required: true}}, Rules{}, func(s *story) { s.gang("a", 1, 2, 5, 6, 7, 8, 9, 10) }, RuleBroken, "not adjacent"},
		{"bound to a cordoned node", []Gang{{ID: "ns/a", Size: 1}}, Rules{}, func(s *story) {
			s.node(1, false)
			s.wait(time.Minute)
			s.gang("a", 1)
		}, BadNode, "node-1"},
		{"bound in the moment of the cordon", []Gang{{ID: "ns/a", Size: 1}}, Rules{}, func(s *story) {
			s.create("a", 0, 8)
			s.node(1, false)
			s.bind("ns/a-0", 1, 0)
		}, "", ""},
		{"bound after the cordon is over", []Gang{{ID: "ns/a", Size: 1}}, Rules{}, func(s *story) {
			s.node(1, false)
			s.wait(time.Minute)
			s.node(1, true)
			s.gang("a", 1)
		}, "", ""},
		{"bound to a node that is not there", []Gang{{ID: "ns/a", Size: 1}}, Rules{}, func(s *story) { s.gang("a", 77) }, BadNode, "does not exist"},
		{"a running pod is deleted", []Gang{two}, Rules{}, func(s *story) {
			s.gang("a", 1, 2)
			s.remove("ns/a-0")
		}, Touched, "ns/a-0"},
		{"a running pod is deleted by the test", []Gang{two}, Rules{}, func(s *story) {
			s.gang("a", 1, 2)
			s.Released["ns/a"] = s.now
			s.remove("ns/a-0")
		}, "", ""},
		{"a half gang is released", []Gang{{ID: "ns/a", Size: 2, Fate: MayWait}}, Rules{}, func(s *story) {
			s.create("a", 0, 8)
			s.create("a", 1, 8)
			s.bind("ns/a-0", 1, 0)
			s.remove("ns/a-0")
		}, "", ""},
		{"locked, then bound", []Gang{two}, Rules{Locks: true}, func(s *story) {
			s.lock(1, own("ns/a-0", 1, 0, 8))
			s.lock(2, own("ns/a-1", 2, 0, 8))
			s.gang("a", 1, 2)
		}, "", ""},
		{"bound without a lock", []Gang{{ID: "ns/a", Size: 1}}, Rules{Locks: true}, func(s *story) {
			s.gang("a", 1)
			s.lock(1, own("ns/a-0", 1, 0, 8))
		}, LockMissing, "node-1-gpu-0"},
		{"bound with somebody else's lock", []Gang{{ID: "ns/a", Size: 1}}, Rules{Locks: true}, func(s *story) {
			s.lock(1, own("ns/b-0", 1, 0, 8))
			s.gang("a", 1)
		}, LockMissing, "uid of ns/b-0"},
		{"the first bound before the last is locked", []Gang{two}, Rules{Locks: true}, func(s *story) {
			s.create("a", 0, 8)
			s.create("a", 1, 8)
			s.lock(1, own("ns/a-0", 1, 0, 8))
			s.bind("ns/a-0", 1, 0)
			s.lock(2, own("ns/a-1", 2, 0, 8))
			s.bind("ns/a-1", 2, 0)
		}, LockMissing, "after the gang's first binding"},
		{"locked, revoked and locked again", []Gang{two}, Rules{Locks: true}, func(s *story) {
			s.create("a", 0, 8)
			s.create("a", 1, 8)
			s.lock(1, own("ns/a-0", 1, 0, 8))
			s.lock(2, own("ns/a-1", 2, 0, 8))
			s.bind("ns/a-0", 1, 0)
			s.lock(2, nil)
			s.lock(2, own("ns/a-1", 2, 0, 8))
			s.bind("ns/a-1", 2, 0)
		}, "", ""},
		{"revoked before the first is bound", []Gang{two}, Rules{Locks: true}, func(s *story) {
			s.create("a", 0, 8)
			s.create("a", 1, 8)
			s.lock(1, own("ns/a-0", 1, 0, 8))
			s.lock(2, own("ns/a-1", 2, 0, 8))
			s.lock(2, nil)
			s.bind("ns/a-0", 1, 0)
			s.lock(2, own("ns/a-1", 2, 0, 8))
			s.bind("ns/a-1", 2, 0)
		}, LockMissing, "after the gang's first binding"},
		{"the rest locked after a restart", []Gang{two}, Rules{Locks: true}, func(s *story) {
			s.create("a", 0, 8)
			s.create("a", 1, 8)
			s.lock(1, own("ns/a-0", 1, 0, 8))
			s.bind("ns/a-0", 1, 0)
			s.wait(time.Second)
			s.Resumed = append(s.Resumed, s.now)
			s.lock(2, own("ns/a-1", 2, 0, 8))
			s.bind("ns/a-1", 2, 0)
		}, "", ""},
		{"a lock taken from a living pod", []Gang{{ID: "ns/a", Size: 1}}, Rules{Locks: true}, func(s *story) {
			s.lock(1, own("ns/a-0", 1, 0, 8))
			s.gang("a", 1)
			s.lock(1, own("ns/b-0", 1, 0, 8))
			s.lock(1, own("ns/a-0", 1, 0, 8))
		}, LockStolen, "uid of ns/b-0"},
		{"a lock deleted under a living pod", []Gang{{ID: "ns/a", Size: 1}}, Rules{Locks: true}, func(s *story) {
			s.lock(1, own("ns/a-0", 1, 0, 8))
			s.gang("a", 1)
			s.add(Record{Gone: true, Lease: &Lease{Name: "node-1", Locks: true}})
			s.lock(1, own("ns/a-0", 1, 0, 8))
		}, LockStolen, "ns/a-0"},
		{"a lock that nobody gave back", []Gang{{ID: "ns/a", Size: 1}}, Rules{Locks: true}, func(s *story) {
			s.lock(1, own("ns/a-0", 1, 0, 8))
			s.gang("a", 1)
			s.finish("ns/a-0")
		}, LocksDiffer, "held by \"\""},
		{"a lock without a pod", nil, Rules{Locks: true}, func(s *story) { s.lock(1, own("ns/a-0", 1, 0, 8)) }, LocksDiffer, "uid of ns/a-0"},
		{"locks do not matter when they are off", []Gang{{ID: "ns/a", Size: 1}}, Rules{}, func(s *story) { s.gang("a", 1) }, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStory(c.gangs...)
			c.tell(s)
			s.Ended = s.now
			c.rules.Profiles = []string{"ours"}
			found := Replay(c.rules, s.History)
			if c.want == "" {
				if len(found) > 0 {
					t.Errorf("found %v, and all was well", found)
				}
				return
			}
			for _, v := range found {
				if v.Kind != c.want && v.Kind != implied[c.want] {
					t.Errorf("found %s, and that was not wrong", v)
				}
			}
			if !slices.ContainsFunc(found, func(v Violation) bool { return v.Kind == c.want && strings.Contains(v.Text, c.says) }) {
				t.Errorf("found %v, want %q with %q", found, c.want, c.says)
			}
		})
	}
}

// Watches of several kinds come in any order; what counts is the version.
func TestRecordsAreOrderedByVersion(t *testing.T) {
	s := newStory(Gang{ID: "ns/a", Size: 1})
	s.lock(1, own("ns/a-0", 1, 0, 8))
	s.gang("a", 1)
	slices.Reverse(s.Records)
	if found := Replay(Rules{Profiles: []string{"ours"}, Locks: true}, s.History); len(found) > 0 {
		t.Errorf("found %v, and all was well", found)
	}
}

func TestNaturalOrder(t *testing.T) {
	names := []string{"leaf-10", "leaf-2", "leaf-02a", "leaf", "spine-1"}
	slices.SortFunc(names, natural)
	if got := strings.Join(names, " "); got != "leaf leaf-2 leaf-02a leaf-10 spine-1" {
		t.Error(got)
	}
}
