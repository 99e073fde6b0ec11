// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/workload"
	"github.com/frond-scheduler/frond/shim"
)

// bench is a table with a clock that the test moves, and the gang ml/train.
type bench struct {
	*Table
	t     *testing.T
	mu    sync.Mutex
	clock time.Time
	id    workload.GangID
}

func newBench(t *testing.T, minMember int) *bench {
	b := &bench{t: t, clock: time.Unix(1_000_000, 0), id: gangNamed("train")}
	b.Table = New(time.Minute, func() time.Time {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.clock
	})
	if minMember > 0 {
		b.Step(SpecSet{ID: b.id, Spec: workload.Spec{MinMember: minMember}})
	}
	return b
}

func (b *bench) pass(d time.Duration) {
	b.mu.Lock()
	b.clock = b.clock.Add(d)
	b.mu.Unlock()
}

func podOf(rank int) *v1.Pod   { return podNamed(strconv.Itoa(rank)) }
func uidOf(rank int) types.UID { return podOf(rank).UID }

func (b *bench) set(pod *v1.Pod) {
	b.Step(PodSet{Pod: pod, Class: workload.Class{Kind: workload.Member, GPUs: 8, Gang: b.id}})
}

func (b *bench) add(ranks ...int) {
	for _, rank := range ranks {
		b.set(podOf(rank))
	}
}

// reserve plays the lead: begins, and books every pending member on node-RANK.
func (b *bench) reserve(lead int) uint64 {
	b.t.Helper()
	turn := b.Begin(uidOf(lead))
	if turn.Task != Lead {
		b.t.Fatalf("pod %d does not lead: %+v", lead, turn)
	}
	var places []Place
	for _, peer := range turn.Members {
		if peer.Node == "" {
			places = append(places, Place{UID: peer.Pod.UID, Node: fmt.Sprintf("node-%d", peer.Rank)})
		}
	}
	number, ok := b.Reserved(turn.ID, workload.GangKey(turn.ID), places)
	if !ok {
		b.t.Fatal("the plan was not taken")
	}
	return number
}

// hands performs effects on nothing, and calls back into the table as PreEnqueue does.
type hands struct {
	table     *Table
	mu        sync.Mutex
	activated int
	released  []shim.Key
	rejected  string
	locks     error
}

func (h *hands) Activate(pods []*v1.Pod) {
	for _, pod := range pods {
		h.table.Admit(pod.UID)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.activated++
}

func (h *hands) Ask(Turn) (bool, string) { return true, "" }
func (h *hands) Allow([]types.UID)       {}

func (h *hands) Reject(_ []types.UID, message string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rejected = message
}

func (h *hands) Lock(_ context.Context, lock Lock, gate *Gate) error {
	gate.Renew(map[types.UID]string{lock.Places[0].Pod.UID: "2", "nobody": "3"})
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.locks
}

func (h *hands) Unlock([]Placed) {}

func (h *hands) Release(gang shim.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.released = append(h.released, gang)
}

func (h *hands) Forget(workload.GangID)     {}
func (h *hands) ReleasePod(types.UID)       {}
func (h *hands) ClearNominations([]*v1.Pod) {}

// run starts the executor, and returns a function that waits until something is so.
func (b *bench) run(h *hands) (until func(what string, so func() bool)) {
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	h.table = b.Table
	group.Go(func() { b.Run(ctx, h) })
	b.t.Cleanup(func() { cancel(); group.Wait() })
	return func(what string, so func() bool) {
		b.t.Helper()
		for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
			h.mu.Lock()
			is := so()
			h.mu.Unlock()
			if is {
				return
			}
			if time.Now().After(end) {
				b.t.Fatalf("%s: not within 5 s", what)
			}
		}
	}
}

// The gate opens when the last member has come and the locks are had, for all at once; a plan that ends closes it.
func TestMembersMeetAtTheGate(t *testing.T) {
	for _, locks := range []error{nil, errors.New("held")} {
		b := newBench(t, 2)
		h := &hands{locks: locks}
		until := b.run(h)
		b.add(0, 1)
		number := b.reserve(0)
		for rank := range 2 {
			if allowed, wait, ok := b.Arrive(uidOf(rank), number); allowed != (rank == 1) || wait != time.Minute || !ok {
				t.Fatalf("pod %d: allowed %v, wait %v, %v", rank, allowed, wait, ok)
			}
		}
		first := b.Ready(uidOf(0), number)
		select {
		case <-first.Done():
			t.Fatal("the gate is open before the last member has come")
		case <-time.After(20 * time.Millisecond):
		}
		if second := b.Ready(uidOf(1), number); second != first {
			t.Fatal("the members do not meet at one gate")
		}
		<-first.Done()
		if locks == nil {
			if first.Err() != nil || first.Version(uidOf(0)) != "2" || first.Version(uidOf(1)) != "1" || first.Gang != b.id {
				t.Fatalf("got %v, versions %q and %q", first.Err(), first.Version(uidOf(0)), first.Version(uidOf(1)))
			}
			if sent, of := first.Sent(); sent != 1 || of != 2 {
				t.Errorf("%d of %d", sent, of)
			}
			continue
		}
		if ended := (*EndedError)(nil); !errors.As(first.Err(), &ended) || ended.Cause != CauseLocks || !errors.Is(first.Err(), locks) {
			t.Fatalf("got %v", first.Err())
		}
		until("the places are given back", func() bool { return len(h.released) == 1 && h.rejected == first.Err().Error() })
		if b.Ready(uidOf(1), number) != nil {
			t.Error("a plan that has ended still lets members in")
		}
		if _, _, ok := b.Arrive(uidOf(1), number); ok {
			t.Error("a plan that has ended still waits for members")
		}
	}
}

// An activation that changes nothing is not repeated.
func TestTheExecutorDoesNotSpin(t *testing.T) {
	b := newBench(t, 2)
	h := &hands{}
	until := b.run(h)
	b.add(0, 1)
	until("the lead is activated", func() bool { return h.activated > 0 })
	time.Sleep(50 * time.Millisecond)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.activated > 3 {
		t.Errorf("%d activations for one change", h.activated)
	}
}

// A gang that comes and is bound costs a few looks at each member, whatever its size: a square of the size would take minutes.
func TestALargeGangCostsNoMorePerMember(t *testing.T) {
	const looks = 8
	for _, size := range []int{64, shim.MembersMax} {
		b := newBench(t, size)
		for rank := range size {
			pod := podOf(rank)
			b.set(pod)
			b.Admit(pod.UID)
		}
		number := b.reserve(0)
		for rank := range size {
			b.Arrive(uidOf(rank), number)
		}
		for rank := range size {
			b.Ready(uidOf(rank), number)
		}
		b.Step(LocksTaken{Plan: number})
		for rank := range size {
			b.Step(MemberBound{UID: uidOf(rank), Node: "n"})
		}
		for rank := range size { // what the Bindings have written
			pod := podOf(rank)
			pod.Spec.NodeName = "n"
			pod.Annotations = map[string]string{workload.Rank: strconv.Itoa(rank)}
			b.set(pod)
		}
		if b.machine.visits == 0 || b.machine.visits > uint64(looks*size) {
			t.Fatalf("%d members were looked at %d times, allowed are %d times each", size, b.machine.visits, looks)
		}
		if broken := b.machine.check(); broken != "" {
			t.Fatal(broken)
		}
	}
}

func TestRace(t *testing.T) {
	b := newBench(t, 4)
	b.run(&hands{})
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := range 300 {
				rank := (worker + i) % 6
				uid := uidOf(rank)
				switch i % 8 {
				case 0:
					b.Step(PodGone{UID: uid})
				case 1:
					b.Step(RoomAppeared{})
				case 2:
					b.Admit(uid)
				case 3, 4:
					b.add(rank)
				case 5:
					b.lead(uid)
				case 6:
					b.pass(time.Second)
				case 7:
					b.Halves()
					b.Held()
					b.State(b.id)
					b.Place(uid)
				}
			}
		})
	}
	group.Wait()
	b.Table.mu.Lock()
	defer b.Table.mu.Unlock()
	if broken := b.machine.check(); broken != "" {
		t.Error(broken)
	}
}

// leads are one at a time, as in the scheduler.
var leads sync.Mutex

func (b *bench) lead(uid types.UID) {
	leads.Lock()
	defer leads.Unlock()
	turn := b.Begin(uid)
	if turn.Task != Lead {
		b.Wait(NoPlace{ID: b.id, Reason: "full", TopologyWait: time.Second})
		return
	}
	var places []Place
	for _, peer := range turn.Members {
		if peer.Node == "" {
			places = append(places, Place{UID: peer.Pod.UID, Node: "n"})
		}
	}
	if number, ok := b.Reserved(turn.ID, shim.Key{Lo: 1}, places); ok {
		b.Arrive(uid, number)
		b.Ready(uid, number)
		b.Step(MemberFailed{UID: uid, Plan: number})
	}
}

// What pods are read from is found whatever kind it is, and follows the pod when it names another.
func TestPodsAreFoundByWhatTheyAreReadFrom(t *testing.T) {
	b := newBench(t, 2)
	pod := podOf(0)
	pod.Annotations = map[string]string{workload.ClaimAnnotation: "c"}
	from := func(claim string) int {
		return len(b.PodsFrom(workload.Source{Claim: types.NamespacedName{Namespace: "ml", Name: claim}}))
	}
	b.Step(PodSet{Pod: pod, Class: workload.Class{Kind: workload.Refused, Problem: "x"}})
	if from("c") != 1 || b.Member(pod.UID) {
		t.Error("a refused pod is found, and in no gang")
	}
	moved := pod.DeepCopy()
	moved.Annotations[workload.ClaimAnnotation] = "d"
	b.set(moved)
	if from("c") != 0 || from("d") != 1 || len(b.Pods()) != 1 {
		t.Errorf("%d and %d", from("c"), from("d"))
	}
	b.Step(PodGone{UID: pod.UID})
	if from("d") != 0 || len(b.machine.from)+len(b.Pods())+len(b.Gangs()) != 0 {
		t.Errorf("left: %v", b.machine.from)
	}
}

// A pod that turns out to be in no gang is activated: PreEnqueue may have held it while less was known.
func TestAJobMayChangeItsMind(t *testing.T) {
	m := NewMachine(time.Minute)
	now, yes := time.Unix(1_000_000, 0), true
	owned := func(rank int) *v1.Pod {
		pod := podOf(rank)
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "train", UID: "j", Controller: &yes}}
		return pod
	}
	expect := func(what string, effects []Effect, want int) {
		t.Helper()
		if len(effects) != want {
			t.Errorf("%s: %v", what, effects)
		}
	}
	expect("held", m.Step(now, PodSet{Pod: owned(0), Class: workload.Class{Kind: workload.Unknown, Gang: gangNamed("train")}}), 0)
	expect("no gang after all, which is gone by that", m.Step(now, PodSet{Pod: owned(0), Class: workload.Class{Kind: workload.Single, GPUs: 8}}), 2)
	if _, ok := m.Admit(now, uidOf(0)); !ok || m.Member(uidOf(0)) {
		t.Error("still a member")
	}
	expect("first seen", m.Step(now, PodSet{Pod: owned(1), Class: workload.Class{Kind: workload.Plain}}), 1)
	expect("once", m.Step(now, PodSet{Pod: owned(1), Class: workload.Class{Kind: workload.Plain}}), 0)
	expect("its wish changes", m.Step(now, WishChanged{UID: uidOf(1)}), 1)
	m.Step(now, PodGone{UID: uidOf(0)})
	m.Step(now, PodGone{UID: uidOf(1)})
	if len(m.pods)+len(m.from)+len(m.gangs) != 0 {
		t.Errorf("something is left: %v %v %v", m.pods, m.from, m.gangs)
	}
}

// Pods of a LeaderWorkerSet say themselves how many they are.
func TestAGangWhosePodsSayItsSize(t *testing.T) {
	m := NewMachine(time.Minute)
	now := time.Unix(1_000_000, 0)
	id := workload.GangID{Kind: workload.KindLeaderWorkerSet, Namespace: "ml", Name: "serve-0", UID: "k"}
	for rank := range 3 {
		effects := m.Step(now, PodSet{Pod: podOf(rank), Class: workload.Class{Kind: workload.Member, GPUs: 8, Gang: id, Size: 3}})
		if (len(effects) == 1) != (rank == 2) {
			t.Errorf("with pod %d: %v", rank, effects)
		}
	}
	for rank := range 3 {
		m.Step(now, PodGone{UID: uidOf(rank)})
	}
	if len(m.specs) != 0 {
		t.Errorf("left: %v", m.specs)
	}
}

// An index that another source gives changes the order.
func TestRanksComeFromTheIndexOfTheClass(t *testing.T) {
	b := newBench(t, 2)
	leads := func(rank int) {
		t.Helper()
		for other := range 2 {
			if _, ok := b.Admit(uidOf(other)); ok != (other == rank) {
				t.Errorf("pod %d passes: %v", other, ok)
			}
		}
	}
	b.Step(PodSet{Pod: podOf(0), Class: workload.Class{Kind: workload.Member, GPUs: 8, Gang: b.id, Index: workload.Index{Base: 5}}})
	b.add(1)
	leads(1)
	b.add(0)
	leads(0)
}

// A bound pod whose owner cannot be found any more stays in the gang that it was bound in; a pending one waits for the owner.
func TestBoundPodsKeepTheirGang(t *testing.T) {
	b := newBench(t, 2)
	lost := workload.Class{Kind: workload.Unknown, GPUs: 8, Gang: workload.GangID{Kind: "JobSet", Namespace: "ml", Name: "js"}}
	for rank := range 3 {
		pod := podOf(rank)
		if rank < 2 {
			pod.Spec.NodeName = "node"
		}
		b.set(pod)
		b.Step(PodSet{Pod: pod, Class: lost})
	}
	if got := b.State(b.id); got.Pods != 2 || got.Bound != 2 || b.State(lost.Gang).Pods != 1 {
		t.Errorf("got %+v and %+v", got, b.State(lost.Gang))
	}
}

// An event from before the binding does not unbind, nor do events of pods and plans that are not there do anything.
func TestLateAndUnknown(t *testing.T) {
	b := newBench(t, 1)
	b.add(0)
	number := b.reserve(0)
	b.Arrive(uidOf(0), number)
	b.Ready(uidOf(0), number)
	b.Step(LocksTaken{Plan: number})
	b.Step(MemberBound{UID: uidOf(0), Node: "node-0"})
	b.add(0)
	if turn := b.Begin(uidOf(0)); turn.Task != Hold {
		t.Errorf("a bound pod has no turn: %+v", turn)
	}
	if _, ok := b.Admit("nobody"); ok {
		t.Error("admitted")
	}
	if turn := b.Begin("nobody"); turn.Task != Hold || b.Holds("nobody", 1, "n") || b.Ready("nobody", 1) != nil || b.Abandon(b.id) || b.Warn(workload.GangID{}, 1) {
		t.Error("something happened")
	}
	for _, event := range []Event{PodGone{UID: "nobody"}, WishChanged{UID: "nobody"}, LockFound{UID: "nobody"}, ReasonTold{UID: "nobody"}, AttemptBegun{UID: "nobody"},
		NoPlace{}, MemberArrived{UID: "nobody"}, MemberReady{UID: "nobody"}, MemberBound{UID: "nobody"}, MemberFailed{UID: "nobody"}, MemberRefused{UID: "nobody"},
		LocksLost{UID: "nobody"}, PlacesReleased{Plan: 99}, HalfSeen{}, HalfAbandoned{}, SpecGone{}, RoomAnswered{}} {
		if effects := b.machine.Step(b.clock, event); len(effects) != 0 {
			t.Errorf("%T: %v", event, effects)
		}
	}
	if !b.Warn(b.id, 4) || b.Warn(b.id, 4) || !b.Warn(b.id, 2) {
		t.Error("each warning once")
	}
}

// State and Place are what is told of a gang; Held is what the engine is told of it.
func TestStatePlaceAndHeldFollowAGang(t *testing.T) {
	b := newBench(t, 2)
	expect := func(what string, want State) {
		t.Helper()
		if got := b.State(b.id); got != want {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	place := func(rank int, node string, planned bool, reason string) {
		t.Helper()
		if gotNode, gotPlanned, gotReason, refused := b.Place(uidOf(rank)); gotNode != node || gotPlanned != planned || gotReason != reason || refused {
			t.Errorf("pod %d: %q %v %q, want %q %v %q", rank, gotNode, gotPlanned, gotReason, node, planned, reason)
		}
	}
	expect("nobody", State{})
	place(0, "", false, "")
	b.add(0)
	expect("one of two", State{Pods: 1, Reason: "gang ml/train has 1 of 2 pods"})
	place(0, "", false, "gang ml/train has 1 of 2 pods")
	b.add(1)
	expect("not tried yet", State{Pods: 2})
	turn := b.Begin(uidOf(0))
	if !b.Wait(NoPlace{ID: turn.ID, Epoch: turn.Epoch, Reason: "full"}) || b.Wait(NoPlace{ID: turn.ID, Epoch: turn.Epoch, Reason: "full"}) {
		t.Error("only another reason is news")
	}
	if !b.Waiting(uidOf(0)) || b.Waiting(uidOf(1)) || b.Waiting("nobody") {
		t.Error("only the lead of a gang that waits is waiting")
	}
	expect("waits", State{Pods: 2, Reason: "full"})
	number := b.reserve(0)
	b.add(2)
	expect("planned", State{Pods: 3, Planned: true})
	place(1, "node-1", true, "")
	place(2, "", false, "")
	if !b.Nominated(uidOf(1), "node-1") || b.Nominated(uidOf(1), "node-0") || !b.Nominated("nobody", "x") {
		t.Error("a nomination counts where the plan puts the pod")
	}
	if !b.Holds(uidOf(1), number, "node-1") || b.Holds(uidOf(1), number, "node-0") || b.Holds(uidOf(1), number+1, "node-1") || b.Holds(uidOf(2), number, "node-2") {
		t.Error("Holds must answer for the pod, the plan and the node")
	}
	for rank := range 2 {
		b.Arrive(uidOf(rank), number)
		b.Ready(uidOf(rank), number)
	}
	b.Step(LocksTaken{Plan: number})
	b.Step(MemberBound{UID: uidOf(0), Node: "node-0"})
	expect("half", State{Pods: 3, Bound: 1, Planned: true})
	b.Step(MemberBound{UID: uidOf(1), Node: "node-1"})
	if got := b.State(b.id); !got.Whole || got.Bound != 2 || got.Planned {
		t.Errorf("whole: %+v", got)
	}
	held := b.Held()
	if len(held) != 1 || len(held[0].Members) != 3 || held[0].Spec.MinMember != 2 {
		t.Fatalf("got %+v", held)
	}
	b.Told(held[0])
	if len(b.Held()) != 0 {
		t.Error("told, and nothing has changed")
	}
	b.Step(WishChanged{UID: uidOf(0)})
	if len(b.Held()) != 1 {
		t.Error("what it asks for may have changed")
	}
}

// Every invariant that the tests check is broken on purpose once, to see that it is noticed.
func TestBrokenInvariantsAreNoticed(t *testing.T) {
	at := func(state PlanState) *bench {
		b := newBench(t, 2)
		b.add(0, 1)
		number := b.reserve(0)
		for rank := range 2 {
			if state >= Permitted {
				b.Arrive(uidOf(rank), number)
			}
		}
		for rank := range 2 {
			if state >= Locking {
				b.Ready(uidOf(rank), number)
			}
		}
		if state == Binding {
			b.Step(LocksTaken{Plan: number})
		}
		return b
	}
	for name, c := range map[string]struct {
		state PlanState
		spoil func(m *Machine, g *gang)
	}{
		"a member too few is counted":       {Reserved, func(_ *Machine, g *gang) { g.active-- }},
		"a bound one too many":              {Reserved, func(_ *Machine, g *gang) { g.bound++ }},
		"a stage without its plan":          {Reserved, func(_ *Machine, g *gang) { g.stage = Asked }},
		"a plan that nobody knows":          {Reserved, func(m *Machine, g *gang) { delete(m.plans, g.plan.id) }},
		"a plan of nobody":                  {Reserved, func(m *Machine, g *gang) { m.plans[99] = g }},
		"a gang of nobody":                  {Reserved, func(m *Machine, _ *gang) { m.made(gangNamed("empty")) }},
		"a place of a pod that is gone":     {Reserved, func(_ *Machine, g *gang) { g.plan.places["nobody"] = &place{} }},
		"a count of places":                 {Reserved, func(_ *Machine, g *gang) { g.plan.left++ }},
		"nobody was let go":                 {Reserved, func(_ *Machine, g *gang) { arriveAll(g) }},
		"let go too early":                  {Reserved, func(_ *Machine, g *gang) { g.plan.state = Permitted }},
		"locked too early":                  {Permitted, func(_ *Machine, g *gang) { g.plan.state = Locking }},
		"bound without having begun":        {Binding, func(_ *Machine, g *gang) { g.extent = fresh }},
		"a node that the plan forgot":       {Reserved, func(_ *Machine, g *gang) { clear(g.plan.nodes) }},
		"a member who is going away":        {Locking, func(_ *Machine, g *gang) { g.members[uidOf(0)].pod.DeletionTimestamp = &metav1.Time{}; g.active-- }},
		"an alarm that is lost":             {Reserved, func(m *Machine, g *gang) { m.disarm(g) }},
		"a heap that is out of order":       {Reserved, func(_ *Machine, g *gang) { g.alarmSlot = 7 }},
		"a waiting gang that does not wait": {Reserved, func(m *Machine, g *gang) { m.waiting[g] = true }},
		"a waiting gang that is gone":       {Reserved, func(m *Machine, _ *gang) { m.waiting[&gang{}] = true }},
		"whole, and nobody is bound":        {Reserved, func(_ *Machine, g *gang) { g.extent = whole }},
		"half-bound time of a whole gang":   {Reserved, func(_ *Machine, g *gang) { g.halfSince = time.Unix(1, 0) }},
		"a pod whose gang does not know it": {Reserved, func(_ *Machine, g *gang) { delete(g.members, uidOf(1)) }},
		"settled with a pending member": {Reserved, func(m *Machine, g *gang) {
			delete(m.plans, g.plan.id)
			g.plan = nil
			m.disarm(g)
			g.stage = Settled
		}},
	} {
		b := at(c.state)
		if broken := b.machine.check(); broken != "" {
			t.Fatalf("%s: before: %s", name, broken)
		}
		c.spoil(b.machine, b.machine.gangs[b.id])
		if b.machine.check() == "" {
			t.Errorf("%s: not noticed", name)
		}
	}
}

func arriveAll(g *gang) {
	for _, at := range g.plan.places {
		at.arrived = true
	}
	g.plan.coming = 0
}
