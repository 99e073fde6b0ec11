// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/gangs"
	"github.com/frond-scheduler/frond/plugin/workload"
	"github.com/frond-scheduler/frond/shim"
)

// When room appears, the engine is asked which of the gangs that wait fits now, outside of any scheduling cycle: 500 gangs
// that do not fit cost some engine calls, not 500 cycles. What upstream's filters said of the nodes is kept from the gang's
// last attempt; of nodes that have changed since nothing is assumed, so the answer may be too good, and the attempt decides.

// changeSlack: the scheduler's picture of the nodes may be older than ours by so much when an attempt looks at it.
const changeSlack = time.Second

// keptRooms are the exceptions that the last attempts of waiting gangs have found.
type keptRooms struct {
	mu      sync.Mutex
	gangs   map[workload.GangID]*keptRoom
	changed map[uint32]time.Time // by slot: when a pod left the node, or the node changed
}

type keptRoom struct {
	rooms rooms
	of    map[types.UID]uint16 // template of a member
	from  time.Time            // nodes that changed later than this may be other than rooms says
}

func newKeptRooms() *keptRooms {
	return &keptRooms{gangs: map[workload.GangID]*keptRoom{}, changed: map[uint32]time.Time{}}
}

// keep remembers what an attempt found that began at a time.
func (k *keptRooms) keep(id workload.GangID, s *survey, begun time.Time) {
	kept := &keptRoom{rooms: slices.Clone(s.rooms), of: s.numbers(), from: begun.Add(-changeSlack)}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.gangs[id] = kept
}

// forget: nothing is known of the gang's nodes, or it waits no more.
func (k *keptRooms) forget(id workload.GangID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.gangs, id)
}

// forgetAll: nominations have changed, which are part of what was found and of no node's state.
func (k *keptRooms) forgetAll() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.gangs)
}

// knows says whether the gang's last attempt came to look at nodes at all.
func (k *keptRooms) knows(id workload.GangID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.gangs[id] != nil
}

// change notes that a node is not what it was.
func (k *keptRooms) change(slot uint32, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changed[slot] = at
}

// now is what is still true of what the gang's last attempt found; known is false when that is nothing.
func (k *keptRooms) now(id workload.GangID) (room rooms, of map[types.UID]uint16, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	kept := k.gangs[id]
	if kept == nil {
		return nil, nil, false
	}
	for _, exception := range kept.rooms {
		if at, changed := k.changed[exception.Slot]; !changed || !at.After(kept.from) {
			room = append(room, exception)
		}
	}
	return room, kept.of, true
}

// Ask says whether a gang that waits would find a place now, as far as the engine can tell, and otherwise why not. True when in
// doubt: its attempt decides.
func (p *performer) Ask(turn gangs.Turn) (fits bool, reason string) {
	room, of, known := p.kept.now(turn.ID)
	if !known {
		return true, ""
	}
	pending := 0
	for _, peer := range turn.Members {
		if peer.Node != "" || len(p.mirror.LockedOn(peer.Pod.UID)) > 0 {
			return true, "" // it is finished around those that are bound, where it was locked
		}
		if _, seen := of[peer.Pod.UID]; peer.GPUs > 0 && !seen {
			return true, "" // a pod of which the last attempt knew nothing
		}
		pending++
	}
	sizes := []int{pending}
	if turn.Least < pending {
		sizes = append(sizes, turn.Least)
	}
	var outcome shim.Outcome
	for _, size := range sizes {
		if fits, outcome, reason = p.fits(turn, size, room, of); fits {
			return true, ""
		}
	}
	lead := turn.Members[0].Pod // nobody is bound
	p.report.podTold(lead.UID, p.retell(lead, outcome, reason), outcome == shim.Refused)
	p.report.gangTouched(turn.ID)
	return false, reason
}

func (p *performer) fits(turn gangs.Turn, size int, room rooms, of map[types.UID]uint16) (fits bool, outcome shim.Outcome, reason string) {
	members := p.members(turn, size)
	if p.reader.GangProblem(members) != "" {
		return true, shim.Refused, ""
	}
	request, asked, annotations := p.reader.GangRequest(turn.ID, turn.Spec, members[0].Pod, members, p.now(), turn.Since)
	numbers := numberTemplates(members, asked, of)
	plan, _, sentence, err := p.engine.Plan(request, asked, annotations, room.of(numbers))
	return err != nil || plan.Outcome == shim.Placed || plan.Outcome == shim.Undecided, plan.Outcome, sentence
}
