// SPDX-License-Identifier: Apache-2.0

// Package judge says whether a scheduler has kept its promises, from what the API server shows and from nothing else: no
// line of it is shared with the plugin or the engine.
//
// It has two halves. Watch writes down every change of pods, nodes and Leases as small records. Replay goes through such
// a history in the order of resource versions, which in one etcd is the order in which everything happened, also across
// kinds, and returns what should not have been. Replay is pure, so tests feed it bad histories: a judge must be able to
// fail.
package judge

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Fate is what a gang may come to.
type Fate int

const (
	MustBind    Fate = iota // all members are bound in the end
	MayWait                 // bound whole or not at all
	MustNotBind             // no member ever has a node
)

// Gang is one that was submitted, told to the judge before its first pod exists.
type Gang struct {
	ID        string // as Rules.GangOf says
	Size      int    // pods
	MinMember int    // 0: Size
	Fate      Fate
	Within    time.Duration // from the last pod's creation to the last binding; 0: any time before the verdict
	Required  bool          // the rule of reference 3.3 holds
	Spread    bool          // placement-strategy distributed: the rule counts one node for a member
}

func (g Gang) minMember() int {
	if g.MinMember > 0 {
		return g.MinMember
	}
	return g.Size
}

// Rules are what differs from test to test.
type Rules struct {
	Profiles     []string // schedulerNames whose pods with GPUs must say which
	Locks        bool     // Leases hold who owns what
	PartialLimit time.Duration
	NodeGrace    time.Duration              // how long after a node was cordoned or lost a binding under way may still land there
	Devices      func(node string) []string // nil: NODE-gpu-0 …
	GangOf       func(*corev1.Pod) string   // with the namespace, "": none; nil: by the labels of Jobs and PodGroups
}

// Defaults of Rules.
const (
	PartialLimit = 30 * time.Second
	NodeGrace    = 3 * time.Second
)

func (r Rules) withDefaults() Rules {
	if r.PartialLimit == 0 {
		r.PartialLimit = PartialLimit
	}
	if r.NodeGrace == 0 {
		r.NodeGrace = NodeGrace
	}
	if r.GangOf == nil {
		r.GangOf = GangOf
	}
	return r
}

// Kind names the promise that was broken.
type Kind string

const (
	DoubleBooked  Kind = "a GPU has two owners"
	OverCapacity  Kind = "more GPUs are used than a node has"
	WrongGPUs     Kind = "the allocated GPUs are not what was asked for"
	Changed       Kind = "a binding changed"
	HalfBound     Kind = "a gang is half-bound"
	NotBound      Kind = "a gang is not bound"
	Forbidden     Kind = "a pod is bound that must not be"
	WrongRanks    Kind = "ranks are not 0..n-1"
	WrongRing     Kind = "the ring crosses too many leaves"
	RuleBroken    Kind = "the topology rule is broken"
	BadNode       Kind = "a pod landed on a node that takes none"
	Touched       Kind = "a running pod was taken away"
	LockMissing   Kind = "a pod is bound without its lock"
	LockStolen    Kind = "a lock was taken from its living owner"
	LocksDiffer   Kind = "locks and bound pods differ"
	WatchBroken   Kind = "the judge did not see everything"
	UnknownPod    Kind = "a pod belongs to no gang that was submitted"
	WrongMetadata Kind = "the domain annotation is wrong"
)

// passing are those that may be over in a moment: at the end of a history they count only if it is at rest.
var passing = map[Kind]bool{HalfBound: true, NotBound: true, LocksDiffer: true}

// Violation is one promise broken.
type Violation struct {
	Kind    Kind
	Version uint64 // of the record that showed it; 0: at the end
	Text    string
	Final   bool // seen at the end of the history; it may have been too early
}

func (v Violation) String() string {
	return fmt.Sprintf("%s: %s (version %d)", v.Kind, v.Text, v.Version)
}
