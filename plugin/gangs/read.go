// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/workload"
)

// What the machine says of itself. Nothing here changes a stage or a plan.

// Reasons that a pod is held for, besides those of its gang as a whole.
const (
	reasonUnseen  = "its gang is not known yet"
	reasonFollows = "gang %s is planned through pod %s"
	reasonJoins   = "gang %s is being bound; this pod joins it afterwards"
	reasonRetries = "gang %s tries again in a moment"
)

// Admit says whether a pod of a gang may enter the scheduling queue: the lead of a gang that can be planned, any member
// of a plan, and the lead of a gang that cannot be planned once it has something new to say. Otherwise the reason.
func (m *Machine) Admit(now time.Time, uid types.UID) (reason string, ok bool) {
	m.now = now
	peer := m.pods[uid]
	if peer == nil {
		return reasonUnseen, false
	}
	if peer.gang == nil {
		return "", true
	}
	g := peer.gang
	if g.plan != nil {
		if g.plan.state == Ended {
			return fmt.Sprintf(reasonRetries, g.id), false
		}
		return fmt.Sprintf(reasonJoins, g.id), g.plan.places[uid] != nil
	}
	if reason, _ = m.blocked(g); reason != "" {
		news := reason != g.said && !now.Before(g.changed.Add(silence))
		return reason, news && m.lead(g) == peer
	}
	switch lead := m.lead(g); lead {
	case peer:
		return fmt.Sprintf(reasonRetries, g.id), !now.Before(g.retryAt)
	case nil:
		return fmt.Sprintf(reasonJoins, g.id), false
	default:
		return fmt.Sprintf(reasonFollows, g.id, lead.pod.Name), false
	}
}

// Member says whether a pod is in a gang: its activations are ours, not upstream's.
func (m *Machine) Member(uid types.UID) bool { return m.gangOf(uid) != nil }

// Waiting says whether a pod leads a gang that waits for room.
func (m *Machine) Waiting(uid types.UID) bool {
	g := m.gangOf(uid)
	return g != nil && g.stage == Waiting && m.lead(g) == m.pods[uid]
}

// Nominated says whether a pod's nomination for a node counts. Of a gang's member it does when a plan puts it there;
// otherwise it is a left-over. For other pods that is upstream's to say.
func (m *Machine) Nominated(uid types.UID, node string) bool {
	g := m.gangOf(uid)
	if g == nil {
		return true
	}
	return g.plan != nil && g.plan.state != Ended && g.plan.places[uid] != nil && g.plan.places[uid].node == node
}

// Task is what a gang's pod does in its scheduling cycle.
type Task int

const (
	Hold   Task = iota // nothing: Reason says why
	Lead               // plan the gang
	Follow             // go where the plan says
)

// Turn is a pod's turn in the scheduling cycle.
type Turn struct {
	Task   Task
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
	Epoch   uint64 // for NoPlace
}

// Peer is a member of a gang as the lead sees it.
type Peer struct {
	Pod  *v1.Pod
	GPUs uint32
	Rank uint32
	Node string // bound there; "": pending
}

// turn is a pod's turn, and what is to be told to the machine because it has it.
func (m *Machine) turn(uid types.UID) (Turn, Event) {
	g := m.gangOf(uid)
	if g == nil {
		return Turn{Reason: reasonUnseen}, nil
	}
	if p := g.plan; p != nil {
		switch at := p.places[uid]; {
		case p.state == Ended:
			return Turn{Reason: fmt.Sprintf(reasonRetries, g.id)}, nil
		case at == nil:
			return Turn{Reason: fmt.Sprintf(reasonJoins, g.id)}, nil
		default:
			return Turn{Task: Follow, Plan: p.id, Node: at.node, ID: g.id}, nil
		}
	}
	if reason, _ := m.blocked(g); reason != "" {
		return Turn{Reason: reason}, ReasonTold{UID: uid, Reason: reason}
	}
	switch lead := m.lead(g); {
	case lead == nil:
		return Turn{Reason: fmt.Sprintf(reasonJoins, g.id)}, nil
	case lead.pod.UID != uid:
		return Turn{Reason: fmt.Sprintf(reasonFollows, g.id, lead.pod.Name)}, WishChanged{UID: uid}
	}
	spec := m.specs[g.id]
	turn := Turn{Task: Lead, ID: g.id, Spec: spec, Epoch: m.epoch, Members: m.peers(g), Note: g.note}
	turn.Least = min(max(spec.MinMember-g.bound, 1), g.active-g.bound)
	return turn, AttemptBegun{UID: uid}
}

func (m *Machine) peers(g *gang) []Peer {
	ranked := m.ranks(g)
	peers := make([]Peer, len(ranked))
	for i, peer := range ranked {
		peers[i] = Peer{Pod: peer.pod, GPUs: peer.gpus, Rank: peer.rank, Node: peer.node}
	}
	return peers
}

// Holds says whether the plan still puts the pod on the node.
func (m *Machine) Holds(uid types.UID, number uint64, node string) bool {
	_, at := m.planOf(uid, number)
	return at != nil && (at.node == node || at.node == "")
}

// State is what can be said of a gang from outside.
type State struct {
	Pods    int    // that are there and neither ended nor going away
	Bound   int    // of those
	Planned bool   // places are reserved for members that are not bound yet
	Whole   bool   // minMember were bound at one time, and some still are
	Reason  string // why it has no place; "": it has not tried yet
}

// State of a gang; that of one without pods is empty.
func (m *Machine) State(now time.Time, id workload.GangID) State {
	m.now = now
	g := m.gangs[id]
	if g == nil {
		return State{}
	}
	return State{Pods: g.active, Bound: g.bound, Planned: g.plan != nil && g.plan.state != Ended, Whole: g.extent == whole, Reason: m.reason(g)}
}

// reason is why a gang has no place.
func (m *Machine) reason(g *gang) string {
	if g.plan != nil {
		return ""
	}
	if reason, _ := m.blocked(g); reason != "" {
		return reason
	}
	return g.lacks
}

// Place is where a plan puts a pod that is not bound yet. Without a place: why its gang has none, "" when that is not known or
// the pod is in no gang; refused: that is what the gang asks for, so all of its members fail by it.
func (m *Machine) Place(now time.Time, uid types.UID) (node string, planned bool, reason string, refused bool) {
	m.now = now
	g := m.gangOf(uid)
	if g == nil {
		return "", false, "", false
	}
	if g.plan != nil && g.plan.state != Ended && g.plan.places[uid] != nil {
		return g.plan.places[uid].node, true, "", false
	}
	reason = m.reason(g)
	return "", false, reason, reason != "" && reason == g.lacks && g.refused
}

// Held is a gang with bound members, as it is now.
type Held struct {
	ID      workload.GangID
	Spec    workload.Spec
	Members []Peer // by rank, at least one

	version uint64
}

// Held are the gangs with bound members that have changed since Told, or whose Spec has.
func (m *Machine) Held() (all []Held) {
	for id, g := range m.gangs {
		if spec, known := m.specs[id]; known && g.bound > 0 && g.told != g.version {
			all = append(all, Held{ID: id, Spec: spec, Members: m.peers(g), version: g.version})
		}
	}
	return all
}
