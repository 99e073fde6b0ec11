// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"errors"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/frond-scheduler/frond/plugin/workload"
)

// A walk sends the machine events in any order: duplicate, late, lost, of plans that have ended, of pods that are not there.
// After each the invariants are checked, and what was told to the outside is held against what may be told.

const (
	walkGangs = 3
	walkRanks = 4
)

// witness knows of every plan what was said to the machine and what the machine said to the outside. It shares nothing with
// the machine but events and effects.
type witness struct {
	places   map[uint64]map[types.UID]bool
	ofGang   map[uint64]workload.GangID
	arrived  map[uint64]map[types.UID]bool
	ready    map[uint64]map[types.UID]bool
	gone     map[uint64]map[types.UID]bool // bound, or no longer of the plan
	allowed  map[uint64]bool
	locked   map[uint64]bool
	opened   map[uint64]bool
	rejected map[uint64]bool
	released map[uint64]bool // the machine has asked for it
	answered map[uint64]bool // and the executor has answered
	broken   string
}

func newWitness() *witness {
	return &witness{places: map[uint64]map[types.UID]bool{}, ofGang: map[uint64]workload.GangID{}, arrived: map[uint64]map[types.UID]bool{},
		ready: map[uint64]map[types.UID]bool{}, gone: map[uint64]map[types.UID]bool{}, allowed: map[uint64]bool{}, locked: map[uint64]bool{},
		opened: map[uint64]bool{}, rejected: map[uint64]bool{}, released: map[uint64]bool{}, answered: map[uint64]bool{}}
}

func (w *witness) fail(format string, args ...any) {
	if w.broken == "" {
		w.broken = fmt.Sprintf(format, args...)
	}
}

// all of the plan that are still to be bound are in the set.
func (w *witness) all(plan uint64, set map[types.UID]bool) bool {
	for uid := range w.places[plan] {
		if !set[uid] && !w.gone[plan][uid] {
			return false
		}
	}
	return true
}

// planned is told of a new plan.
func (w *witness) planned(plan uint64, event PlanReserved) {
	for other, id := range w.ofGang {
		if id == event.ID && w.released[other] && !w.answered[other] {
			w.fail("plan %d was taken before the places of plan %d of the same gang were given back", plan, other)
		}
	}
	w.ofGang[plan] = event.ID
	w.places[plan], w.arrived[plan], w.ready[plan], w.gone[plan] = map[types.UID]bool{}, map[types.UID]bool{}, map[types.UID]bool{}, map[types.UID]bool{}
	for _, place := range event.Places {
		w.places[plan][place.UID] = true
	}
}

// heard holds an effect against what was said.
func (w *witness) heard(effect Effect, last uint64) {
	switch e := effect.(type) {
	case Allow:
		plan := uint64(0)
		for number, places := range w.places {
			if len(places) == len(e.Members) && places[e.Members[0]] && !w.released[number] && !w.allowed[number] {
				plan = number
			}
		}
		if plan == 0 || !w.all(plan, w.arrived[plan]) {
			w.fail("members were let go before all of their plan had come to Permit: %v", e.Members)
		}
		w.allowed[plan] = true
	case Lock:
		if !w.allowed[e.Plan] || !w.all(e.Plan, w.ready[e.Plan]) || w.locked[e.Plan] || w.released[e.Plan] {
			w.fail("plan %d is locked too early, twice, or after its end", e.Plan)
		}
		w.locked[e.Plan] = true
	case OpenGate:
		if e.Err == nil && (!w.locked[e.Plan] || w.opened[e.Plan] || w.released[e.Plan]) {
			w.fail("the gate of plan %d opened without its locks, twice, or after its end", e.Plan)
		}
		w.opened[e.Plan] = w.opened[e.Plan] || e.Err == nil
	case Reject:
		w.rejected[last] = true
	case Release:
		if w.released[e.Plan] {
			w.fail("plan %d was given back twice", e.Plan)
		}
		w.released[e.Plan] = true
	}
}

type walk struct {
	*rapid.T
	machine *Machine
	witness *witness
	clock   time.Time
	held    []Effect
}

func (w *walk) step(event Event) {
	if reserved, ok := event.(PlanReserved); ok {
		w.witness.planned(w.machine.lastPlan+1, reserved)
	}
	switch e := event.(type) {
	case MemberArrived:
		if w.witness.places[e.Plan][e.UID] {
			w.witness.arrived[e.Plan][e.UID] = true
		}
	case MemberReady:
		if w.witness.places[e.Plan][e.UID] {
			w.witness.ready[e.Plan][e.UID] = true
		}
	case PlacesReleased:
		w.witness.answered[e.Plan] = true
	case PodSet:
		w.leaves(e.Pod.UID, e.Pod.Spec.NodeName != "")
	case PodGone:
		w.leaves(e.UID, true)
	case MemberBound:
		w.leaves(e.UID, true)
	case MemberRefused:
		w.leaves(e.UID, true)
	}
	for _, effect := range w.machine.Step(w.clock, event) {
		w.witness.heard(effect, w.machine.lastPlan)
		switch e := effect.(type) {
		case Release, Lock:
			w.held = append(w.held, e)
		case Activate:
			w.activated(e)
		}
	}
	if changed, ok := event.(NodeChanged); ok {
		w.ended(changed.Node)
	}
	if broken := w.machine.check(); broken != "" {
		w.Fatalf("after %#v: %s", event, broken)
	}
	if w.witness.broken != "" {
		w.Fatalf("after %#v: %s", event, w.witness.broken)
	}
}

// leaves: the witness no longer waits for the pod in any plan.
func (w *walk) leaves(uid types.UID, gone bool) {
	for plan := range w.witness.places {
		if gone && w.witness.places[plan][uid] {
			w.witness.gone[plan][uid] = true
		}
	}
}

// activated: only pods that PreEnqueue would let pass are worth it.
func (w *walk) activated(e Activate) {
	for _, pod := range e.Pods {
		if reason, ok := w.machine.Admit(w.clock, pod.UID); !ok {
			w.witness.fail("pod %s is activated, and PreEnqueue holds it: %s", pod.Name, reason)
		}
	}
}

// ended: no plan that has not come to Binding counts on a node that has just changed.
func (w *walk) ended(node string) {
	for number, g := range w.machine.plans {
		if g.plan.state < Binding && g.plan.nodes[node] {
			w.witness.fail("plan %d counts on %s, which has changed", number, node)
		}
	}
}

func (w *walk) gang() string {
	return []string{"train", "other", "group"}[rapid.IntRange(0, walkGangs-1).Draw(w.T, "gang")]
}
func (w *walk) pod() string {
	return fmt.Sprintf("%s-%d", w.gang(), rapid.IntRange(0, walkRanks-1).Draw(w.T, "rank"))
}
func (w *walk) uid() types.UID { return podNamed(w.pod()).UID }
func (w *walk) chance() bool   { return rapid.Bool().Draw(w.T, "chance") }
func (w *walk) node() string {
	return fmt.Sprintf("node-%d", rapid.IntRange(0, walkRanks-1).Draw(w.T, "node"))
}
func (w *walk) plan() (n uint64) { // mostly one that is there
	if g := w.machine.gangs[gangNamed(w.gang())]; g != nil && g.plan != nil {
		return g.plan.id
	}
	return rapid.Uint64Range(0, w.machine.lastPlan+1).Draw(w.T, "plan")
}

// planned is a pod of a plan that is there, or any.
func (w *walk) planned() (types.UID, uint64) {
	number := w.plan()
	if g := w.machine.plans[number]; g != nil {
		return rapid.SampledFrom(g.plan.members()).Draw(w.T, "member"), number
	}
	return w.uid(), number
}

func (w *walk) setPod(change func(pod *v1.Pod)) {
	name := w.pod()
	pod := podNamed(name)
	gang, _ := split(name)
	change(pod)
	w.step(PodSet{Pod: pod, Class: workload.Class{Kind: workload.Member, GPUs: 8, Gang: gangNamed(gang)}})
}

func (w *walk) answer(locks bool) {
	if len(w.held) == 0 {
		return
	}
	at := rapid.IntRange(0, len(w.held)-1).Draw(w.T, "held")
	effect := w.held[at]
	switch e := effect.(type) {
	case Release:
		if !locks {
			w.held = append(w.held[:at:at], w.held[at+1:]...)
			w.step(PlacesReleased{Plan: e.Plan})
		}
	case Lock:
		if locks {
			w.held = append(w.held[:at:at], w.held[at+1:]...)
			var err error
			if rapid.IntRange(0, 3).Draw(w.T, "locks") == 0 {
				err = errors.New("held")
			}
			w.step(LocksTaken{Plan: e.Plan, Places: e.Places, Err: err})
		}
	}
}

func (w *walk) actions() map[string]func(*rapid.T) {
	member := func(do func(uid types.UID, plan uint64)) func(*rapid.T) {
		return func(*rapid.T) {
			uid, plan := w.planned()
			do(uid, plan)
		}
	}
	return map[string]func(*rapid.T){
		"pod":      func(*rapid.T) { w.setPod(func(*v1.Pod) {}) },
		"pod 2":    func(*rapid.T) { w.setPod(func(*v1.Pod) {}) },
		"seen":     func(*rapid.T) { w.setPod(func(pod *v1.Pod) { pod.Spec.NodeName = w.node() }) },
		"deleting": func(*rapid.T) { w.setPod(func(pod *v1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: w.clock} }) },
		"gated": func(*rapid.T) {
			w.setPod(func(pod *v1.Pod) { pod.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "x"}} })
		},
		"gone": func(*rapid.T) { w.step(PodGone{UID: w.uid()}) },
		"spec": func(*rapid.T) {
			w.step(SpecSet{ID: gangNamed(w.gang()), Spec: workload.Spec{MinMember: rapid.IntRange(1, walkRanks).Draw(w.T, "min"), More: w.chance()}})
		},
		"spec gone": func(*rapid.T) { w.step(SpecGone{ID: gangNamed(w.gang())}) },
		"wish":      func(*rapid.T) { w.step(WishChanged{UID: w.uid()}) },
		"room":      func(*rapid.T) { w.step(RoomAppeared{}) },
		"node":      func(*rapid.T) { w.step(NodeChanged{Node: w.node()}) },
		"lock":      func(*rapid.T) { w.step(LockFound{UID: w.uid()}) },
		"lead":      func(*rapid.T) { w.lead() },
		"lead 2":    func(*rapid.T) { w.lead() },
		"arrive":    member(func(uid types.UID, plan uint64) { w.step(MemberArrived{UID: uid, Plan: plan}) }),
		"arrive 2":  member(func(uid types.UID, plan uint64) { w.step(MemberArrived{UID: uid, Plan: plan}) }),
		"ready":     member(func(uid types.UID, plan uint64) { w.step(MemberReady{UID: uid, Plan: plan}) }),
		"ready 2":   member(func(uid types.UID, plan uint64) { w.step(MemberReady{UID: uid, Plan: plan}) }),
		"bound":     member(func(uid types.UID, _ uint64) { w.step(MemberBound{UID: uid, Node: w.node()}) }),
		"fail":      member(func(uid types.UID, plan uint64) { w.step(MemberFailed{UID: uid, Plan: plan}) }),
		"refused":   member(func(uid types.UID, _ uint64) { w.step(MemberRefused{UID: uid}) }),
		"lost":      member(func(uid types.UID, plan uint64) { w.step(LocksLost{UID: uid, Plan: plan}) }),
		"release":   func(*rapid.T) { w.answer(false) },
		"release 2": func(*rapid.T) { w.answer(false) },
		"locked":    func(*rapid.T) { w.answer(true) },
		"late":      func(*rapid.T) { w.step(PlacesReleased{Plan: w.machine.lastPlan + 7}) },
		"half":      func(*rapid.T) { w.step(HalfSeen{ID: gangNamed(w.gang()), Confirmed: w.chance()}) },
		"abandon":   func(*rapid.T) { w.step(HalfAbandoned{ID: gangNamed(w.gang())}) },
		"pass": func(*rapid.T) {
			w.clock = w.clock.Add(time.Duration(rapid.IntRange(0, 15000).Draw(w.T, "ms")) * time.Millisecond)
			w.step(Tick{})
		},
	}
}

// lead plays a scheduling cycle of any pod.
func (w *walk) lead() {
	w.machine.now = w.clock
	turn, event := w.machine.turn(w.uid())
	if event != nil {
		w.step(event)
	}
	if turn.Task != Lead {
		return
	}
	if w.chance() && w.chance() {
		w.step(NoPlace{ID: turn.ID, Epoch: turn.Epoch, Reason: "full", TopologyWait: time.Duration(rapid.IntRange(0, 20).Draw(w.T, "wait")) * time.Second})
		return
	}
	if w.chance() && w.chance() { // something happens while the lead plans
		w.step(PodGone{UID: turn.Members[len(turn.Members)-1].Pod.UID})
	}
	reserved := PlanReserved{ID: turn.ID, Key: workload.GangKey(turn.ID)}
	for _, peer := range turn.Members {
		if peer.Node != "" {
			reserved.Around = append(reserved.Around, peer.Pod.UID)
		} else {
			reserved.Places = append(reserved.Places, Place{UID: peer.Pod.UID, Node: fmt.Sprintf("node-%d", peer.Rank)})
		}
	}
	w.step(reserved)
}

func TestAnyOrderOfEvents(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := &walk{T: r, machine: NewMachine(time.Minute), witness: newWitness(), clock: time.Unix(1_000_000, 0)}
		for _, name := range []string{"train", "other", "group"} {
			w.step(SpecSet{ID: gangNamed(name), Spec: workload.Spec{MinMember: 2}})
		}
		r.Repeat(w.actions())
		w.finish()
	})
}

// finish: when nothing more goes wrong, every gang that can be planned is, and every plan is bound.
func (w *walk) finish() {
	for round := 0; round < 400; round++ {
		for len(w.held) > 0 {
			effect := w.held[0]
			w.held = w.held[1:]
			switch e := effect.(type) {
			case Release:
				w.step(PlacesReleased{Plan: e.Plan})
			case Lock:
				w.step(LocksTaken{Plan: e.Plan, Places: e.Places})
			}
		}
		if w.rest() {
			return
		}
		w.clock = w.clock.Add(time.Second)
		w.step(Tick{})
	}
	for id, g := range w.machine.gangs {
		w.Fatalf("gang %s does not come to rest: %s, plan %+v", id, g.stage, g.plan)
	}
}

// rest plays cycles for whoever was activated last, and says whether nothing is left to do.
func (w *walk) rest() bool {
	done := true
	for _, id := range sortedIDs(w.machine) {
		g := w.machine.gangs[id]
		if g == nil {
			continue
		}
		switch {
		case g.stage == Asked:
			done = false
			lead := w.machine.lead(g)
			w.machine.now = w.clock
			turn, event := w.machine.turn(lead.pod.UID)
			if event != nil {
				w.step(event)
			}
			if turn.Task == Lead {
				reserved := PlanReserved{ID: turn.ID, Key: workload.GangKey(turn.ID)}
				for _, peer := range turn.Members {
					if peer.Node == "" {
						reserved.Places = append(reserved.Places, Place{UID: peer.Pod.UID, Node: fmt.Sprintf("node-%d", peer.Rank)})
					}
				}
				w.step(reserved)
			}
		case g.stage == Trying || g.stage == Backoff || g.stage == Waiting && !g.wakeAt.IsZero():
			done = false
		case g.stage == Gathering:
			if _, until := w.machine.blocked(g); !until.IsZero() {
				done = false
			}
		case g.plan != nil:
			done = false
			p := g.plan
			for _, uid := range p.members() {
				if g.plan != p || p.state == Ended || g.members[uid] == nil || g.members[uid].node != "" {
					continue
				}
				if !g.members[uid].active() {
					w.step(PodGone{UID: uid}) // its deletion comes to an end
					continue
				}
				w.step(MemberArrived{UID: uid, Plan: p.id})
				w.step(MemberReady{UID: uid, Plan: p.id})
				if p.state == Binding {
					w.step(MemberBound{UID: uid, Node: p.places[uid].node})
				}
			}
		}
	}
	return done
}

// What the witness watches for is told to it falsely, each once.
func TestTheWitnessNotices(t *testing.T) {
	two := PlanReserved{ID: gangNamed("train"), Places: []Place{{UID: "a"}, {UID: "b"}}}
	for name, lie := range map[string]func(w *witness){
		"let go before all have come": func(w *witness) { w.heard(Allow{Members: []types.UID{"a", "b"}}, 1) },
		"locked before all are at Bind": func(w *witness) {
			w.arrived[1]["a"], w.arrived[1]["b"] = true, true
			w.heard(Allow{Members: []types.UID{"a", "b"}}, 1)
			w.heard(Lock{Plan: 1}, 1)
		},
		"opened without locks":        func(w *witness) { w.heard(OpenGate{Plan: 1}, 1) },
		"given back twice":            func(w *witness) { w.heard(Release{Plan: 1}, 1); w.heard(Release{Plan: 1}, 1) },
		"planned before it was given": func(w *witness) { w.heard(Release{Plan: 1}, 1); w.planned(2, two) },
	} {
		w := newWitness()
		w.planned(1, two)
		if lie(w); w.broken == "" {
			t.Errorf("%s: not noticed", name)
		}
	}
}
