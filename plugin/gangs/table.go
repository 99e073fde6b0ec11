// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/workload"
	"github.com/frond-scheduler/frond/shim"
)

// Table is the machine behind one lock, with the effects that are still to be performed. Informer handlers and cycles tell it
// what has happened; PreEnqueue reads it while the scheduling queue's own lock is held, so nothing is ever performed under
// the table's lock.
type Table struct {
	now    func() time.Time
	signal chan struct{}

	mu      sync.Mutex
	machine *Machine
	effects []Effect         // to be performed, in this order
	gates   map[uint64]*Gate // of plans whose members have come to Bind
}

// New makes an empty table. permitWait: how long members wait in Permit for each other, unless their group says so.
func New(permitWait time.Duration, now func() time.Time) *Table {
	return &Table{now: now, signal: make(chan struct{}, 1), machine: NewMachine(permitWait), gates: map[uint64]*Gate{}}
}

// Step tells the machine that something has happened. What follows from it is performed by Run.
func (t *Table) Step(event Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.step(event)
}

func (t *Table) step(event Event) {
	for _, effect := range t.machine.Step(t.now(), event) {
		if open, ok := effect.(OpenGate); ok {
			t.open(open) // waits for nobody and touches nobody else
			continue
		}
		t.effects = append(t.effects, effect)
	}
	select {
	case t.signal <- struct{}{}: // there are effects, or the next alarm is another
	default:
	}
}

// ---- what extension points ask -------------------------------------------------------------------------------------

// Admit says whether PreEnqueue lets a pod pass.
func (t *Table) Admit(uid types.UID) (reason string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.machine.Admit(t.now(), uid)
}

// Begin is called when a gang's pod is scheduled. It checks again what Admit checked: pods that come from backoff have
// not passed it.
func (t *Table) Begin(uid types.UID) Turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.machine.now = t.now()
	turn, event := t.machine.turn(uid)
	if event != nil {
		t.step(event)
	}
	return turn
}

// peek is the turn that the lead of a gang would have that waits.
func (t *Table) peek(id workload.GangID) (turn Turn, waits bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.machine.now = t.now()
	g := t.machine.gangs[id]
	if g == nil || g.stage != Waiting {
		return Turn{}, false
	}
	if lead := t.machine.lead(g); lead != nil {
		turn, _ = t.machine.turn(lead.pod.UID)
	}
	return turn, turn.Task == Lead
}

// Reserved enters a plan that the engine has booked, made around members that are bound. ok is false when a member is gone by
// now: the booking is given back, and the lead tries again.
func (t *Table) Reserved(id workload.GangID, key shim.Key, places []Place, around ...types.UID) (number uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.step(PlanReserved{ID: id, Key: key, Places: places, Around: around})
	g := t.machine.plans[t.machine.lastPlan]
	return t.machine.lastPlan, g != nil && g.plan.state != Ended
}

// Wait says that the gang found no place. news: the reason is another than the last time.
func (t *Table) Wait(event NoPlace) (news bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.machine.gangs[event.ID]
	news = g == nil || g.lacks != event.Reason
	t.step(event)
	return news
}

// Arrive says that a member has come to Permit. allowed: all have, and it may go on at once; otherwise it waits, for as long as
// wait says. ok is false when the plan is not the pod's any more.
func (t *Table) Arrive(uid types.UID, number uint64) (allowed bool, wait time.Duration, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.step(MemberArrived{UID: uid, Plan: number})
	g, _ := t.machine.planOf(uid, number)
	if g == nil {
		return false, 0, false
	}
	return g.plan.state != Reserved, g.plan.wait, true
}

// Holds says whether the plan still puts the pod on the node.
func (t *Table) Holds(uid types.UID, number uint64, node string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.machine.Holds(uid, number, node)
}

// Rank that a member of a plan has.
func (t *Table) Rank(uid types.UID) uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if peer := t.machine.pods[uid]; peer != nil {
		return peer.rank
	}
	return 0
}

// Member says whether a pod is in a gang.
func (t *Table) Member(uid types.UID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.machine.Member(uid)
}

// Waiting says whether a pod leads a gang that waits for room.
func (t *Table) Waiting(uid types.UID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.machine.Waiting(uid)
}

// Nominated says whether a pod's nomination for a node counts.
func (t *Table) Nominated(uid types.UID, node string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.machine.Nominated(uid, node)
}

// Warn says whether a warning about the gang is new, and remembers it.
func (t *Table) Warn(id workload.GangID, bit uint32) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.machine.gangs[id]
	if g == nil || g.warned&bit != 0 {
		return false
	}
	g.warned |= bit
	return true
}

// ---- half-bound gangs ----------------------------------------------------------------------------------------------

// Halves are the half-bound gangs, in the order of their names.
func (t *Table) Halves() []Half {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.machine.Halves(t.now())
}

// Abandon gives up whatever plan a half-bound gang has, before its bound members are deleted; false when the gang is whole by
// now, or has got on.
func (t *Table) Abandon(id workload.GangID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.machine.gangs[id]
	if g == nil || !t.machine.half(g) || !t.machine.overdue(g, t.now()) {
		return false
	}
	t.step(HalfAbandoned{ID: id})
	return true
}

// ---- what is told of gangs -----------------------------------------------------------------------------------------

// State of a gang; that of one without pods is empty.
func (t *Table) State(id workload.GangID) State {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.machine.State(t.now(), id)
}

// Place is where a plan puts a pod that is not bound yet; see Machine.Place.
func (t *Table) Place(uid types.UID) (node string, planned bool, reason string, refused bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.machine.Place(t.now(), uid)
}

// Gangs are all that have pods, in no order.
func (t *Table) Gangs() []workload.GangID {
	t.mu.Lock()
	defer t.mu.Unlock()
	ids := make([]workload.GangID, 0, len(t.machine.gangs))
	for id := range t.machine.gangs {
		ids = append(ids, id)
	}
	return ids
}

// Held are the gangs with bound members that have changed since Told, or whose Spec has.
func (t *Table) Held() []Held {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.machine.Held()
}

// Told says that what Held has said is known.
func (t *Table) Told(held Held) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if g := t.machine.gangs[held.ID]; g != nil {
		g.told = held.version
	}
}

// PodsFrom are the tracked pods that are read from these: what they are may change with them.
func (t *Table) PodsFrom(sources ...workload.Source) (pods []*v1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, source := range sources {
		for _, peer := range t.machine.from[source] {
			pods = append(pods, peer.pod)
		}
	}
	return pods
}

// Pods are all that are tracked.
func (t *Table) Pods() []*v1.Pod {
	t.mu.Lock()
	defer t.mu.Unlock()
	pods := make([]*v1.Pod, 0, len(t.machine.pods))
	for _, peer := range t.machine.pods {
		pods = append(pods, peer.pod)
	}
	return pods
}

// ---- the gate at Bind ----------------------------------------------------------------------------------------------

// Gate is where the members of a plan meet at Bind: each comes there after its own PreBind, the last one makes the executor
// take the locks, and with these the gate opens.
type Gate struct {
	Gang     workload.GangID
	versions map[types.UID]string
	done     chan struct{}
	err      error
	sent     atomic.Int32
}

// Sent counts a Binding that was carried out, and says how many there are by now, of how many.
func (g *Gate) Sent() (sent, of int) { return int(g.sent.Add(1)), len(g.versions) }

// Version of a member's pod from before its locks were taken: its Binding carries it, so that it is refused if somebody has
// taken the locks away since. Once the gate is open.
func (g *Gate) Version(uid types.UID) string { return g.versions[uid] }

// Renew takes newer versions, because who takes the locks has written to the pods itself. Before the gate opens.
func (g *Gate) Renew(versions map[types.UID]string) {
	for uid, version := range versions {
		if _, planned := g.versions[uid]; planned {
			g.versions[uid] = version
		}
	}
}

// Done is closed when the gate is open; Err is valid then.
func (g *Gate) Done() <-chan struct{} { return g.done }

// Err is why the plan's Bindings must not be sent.
func (g *Gate) Err() error { return g.err }

// Ready says that a member has come to Bind. The gate is nil when the plan is not the pod's any more.
func (t *Table) Ready(uid types.UID, number uint64) *Gate {
	t.mu.Lock()
	defer t.mu.Unlock()
	if g, _ := t.machine.planOf(uid, number); g == nil {
		return nil
	}
	gate := t.gate(number)
	t.step(MemberReady{UID: uid, Plan: number})
	return gate
}

// gate of a plan; made when its first member comes, forgotten with the plan.
func (t *Table) gate(number uint64) *Gate {
	gate := t.gates[number]
	if gate == nil {
		for other := range t.gates {
			if t.machine.plans[other] == nil {
				delete(t.gates, other)
			}
		}
		gate = &Gate{versions: map[types.UID]string{}, done: make(chan struct{})}
		if g := t.machine.plans[number]; g != nil {
			gate.Gang = g.id
		}
		t.gates[number] = gate
	}
	return gate
}

func (t *Table) open(effect OpenGate) {
	gate := t.gates[effect.Plan]
	if gate == nil {
		return // nobody has come to Bind
	}
	if effect.Err != nil {
		delete(t.gates, effect.Plan)
	}
	select {
	case <-gate.done: // open already; the plan has ended while Bindings were sent
	default:
		gate.err = effect.Err
		close(gate.done)
	}
}
