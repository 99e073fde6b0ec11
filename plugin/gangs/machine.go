// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/workload"
	"github.com/frond-scheduler/frond/shim"
)

const (
	// silence is how long a gang that cannot be formed says nothing: pods and their PodGroup arrive one by one.
	silence = 3 * time.Second
	// gather is how long a PodGroup that has minMember pods waits for more of them, because they are planned jointly.
	gather = 200 * time.Millisecond
	// A gang whose plan ended tries again after 1, 2, 4 … seconds.
	retryLeast, retryMost = time.Second, 10 * time.Second
	// expirySlack is added to the permit timeout before a plan that nobody follows is given back.
	expirySlack = 15 * time.Second
	// nominationPause is how long upstream has to take back the nominations of a plan that came to nothing.
	nominationPause = time.Second
	// sweep is how often pods that ought to be moving are activated again, should an activation ever be lost.
	sweep = 10 * time.Second
	// askAgain is how long after an attempt that found less than the engine the engine is asked once more: by then the
	// scheduler has heard of what the mirror knew.
	askAgain = time.Second
	// turnMost is how long the others of a round wait for a lead that does not come.
	turnMost = time.Second
)

// Machine is the lifecycle of all gangs: see the head of lifecycle.go. It is not safe for use from several goroutines; Table
// is.
type Machine struct {
	permitWait time.Duration

	gangs    map[workload.GangID]*gang
	pods     map[types.UID]*member
	from     map[workload.Source]map[types.UID]*member // by owner and claim, gang or not: they may change their minds
	specs    map[workload.GangID]workload.Spec
	plans    map[uint64]*gang // by the number of the plan that a gang has
	waiting  map[*gang]bool   // those in the stage Waiting
	round    []*gang          // that wait and are still to be asked about, in this order
	turnOf   *gang            // of the round: the one that is being asked about, or attempts; nil: no round
	alarms   alarms           // gangs that time moves
	epoch    uint64           // grows when room may have appeared
	lastPlan uint64           // number
	visits   uint64           // members looked at one by one: what a change costs
	now      time.Time        // of the present step
	effects  []Effect         // of the present step
	wakes    []*v1.Pod        // that the present step activates
	woken    map[types.UID]bool
	touched  map[*gang]bool // gangs whose alarm the present step may have moved
}

// NewMachine makes an empty one. permitWait: how long members wait in Permit for each other.
func NewMachine(permitWait time.Duration) *Machine {
	return &Machine{
		permitWait: permitWait,
		gangs:      map[workload.GangID]*gang{}, pods: map[types.UID]*member{}, from: map[workload.Source]map[types.UID]*member{},
		specs: map[workload.GangID]workload.Spec{}, plans: map[uint64]*gang{}, waiting: map[*gang]bool{},
		woken: map[types.UID]bool{}, touched: map[*gang]bool{},
	}
}

type member struct {
	pod  *v1.Pod
	gpus uint32
	node string // bound there; "": pending
	gang *gang  // nil: in none
	rank uint32 // valid while gang.ranked

	index workload.Index // where its rank comes from

	ungated time.Time // when the last of its gates was seen to go; zero: it had none

	tried   bool   // this scheduler, not another replica, has tried to place it
	cleared string // resource version in which its nomination was found stale
}

// active: counts for the gang. A pod that is going away does not, nor does one that its gates keep from being scheduled.
func (m *member) active() bool {
	return m.pod.DeletionTimestamp == nil && (m.node != "" || len(m.pod.Spec.SchedulingGates) == 0)
}

func (m *member) pending() bool { return m.node == "" && m.active() }

// since when the pod could be scheduled.
func (m *member) since() time.Time {
	if created := m.pod.CreationTimestamp.Time; created.After(m.ungated) {
		return created
	}
	return m.ungated
}

// nominationLeft: upstream writes a nomination for every pod that waits in Permit, and takes it back when the pod is
// rejected, unless its own cache has not seen the first write yet. What is left then keeps everybody else off the node.
func (m *member) nominationLeft() bool {
	return m.tried && m.pending() && m.pod.Status.NominatedNodeName != "" && m.cleared != m.pod.ResourceVersion
}

// extent is how much of a gang has ever been bound.
type extent uint8

const (
	fresh extent = iota // nobody
	begun               // members may be bound, and it has never been whole
	whole               // minMember were bound at one time, and some still are
)

type gang struct {
	id      workload.GangID
	members map[types.UID]*member
	active  int       // members that count
	bound   int       // of those, the bound ones
	ranked  []*member // by rank, active ones; nil: to be computed
	note    string    // why ranks follow names although indices were there
	stage   Stage
	plan    *plan // with the stage Planned

	version uint64    // counts changes of its members and its spec
	told    uint64    // the version up to which Told was called
	changed time.Time // when a member or the spec last changed
	since   time.Time // when pods of it were last activated
	wakeAt  time.Time // Waiting: end of topology-wait; zero: none
	retryAt time.Time // not before; zero: at once
	leftAt  time.Time // nominations may have been left in the API; zero: no
	fails   int       // plans that ended before their time, in a row

	completeAt time.Time // when it could first be planned: its turn; zero: not yet
	againAt    time.Time // Waiting: ask once more, because what the last attempt saw may have been old; zero: no

	lacks  string // why the last attempt found no place
	lack   Lack
	said   string // the reason that the lead has taken to its event
	warned uint32 // warnings given, bits of the caller's

	extent    extent
	halfSince time.Time // the API server has confirmed that it is half-bound; zero: not yet
	halfBound int       // members that were bound then

	alarm     time.Time // in the machine's alarms; zero: not in them
	alarmSlot int
}

// tally keeps the counts: gangs may have thousands of members, and every one is asked about on the way in.
func (g *gang) tally(m *member, by int) {
	if !m.active() {
		return
	}
	g.active += by
	if m.node != "" {
		g.bound += by
	}
}

// Step is the only way in which the state changes.
func (m *Machine) Step(now time.Time, event Event) []Effect {
	m.now, m.effects, m.wakes = now, nil, nil
	clear(m.woken)
	clear(m.touched)
	switch e := event.(type) {
	case PodSet:
		m.podSet(e.Pod, e.Class)
	case PodGone:
		m.podGone(e.UID)
	case SpecSet:
		m.specSet(e.ID, e.Spec)
	case SpecGone:
		m.specGone(e.ID)
	case WishChanged:
		m.wishChanged(e.UID)
	case RoomAppeared:
		m.roomAppeared(e.Nodes)
	case NodeChanged:
		m.nodeChanged(e.Node)
	case LockFound:
		m.lockFound(e.UID)
	case ReasonTold:
		m.reasonTold(e.UID, e.Reason)
	case AttemptBegun:
		m.attemptBegun(e.UID)
	case NoPlace:
		m.noPlace(e)
	case RoomAnswered:
		m.roomAnswered(e)
	case PlanReserved:
		m.planReserved(e)
	case MemberArrived:
		m.memberArrived(e.UID, e.Plan)
	case MemberReady:
		m.memberReady(e.UID, e.Plan)
	case MemberBound:
		m.memberBound(e.UID, e.Node)
	case MemberFailed:
		m.memberFailed(e.UID, e.Plan)
	case MemberRefused:
		m.memberRefused(e.UID)
	case LocksTaken:
		m.locksTaken(e)
	case LocksLost:
		m.locksLost(e.UID, e.Plan)
	case PlacesReleased:
		m.placesReleased(e.Plan)
	case HalfSeen:
		m.halfSeen(e.ID, e.Confirmed)
	case HalfAbandoned:
		m.halfAbandoned(e.ID)
	case Tick:
		m.tick()
	default:
		panic(fmt.Sprintf("gangs: event %T has no transition", event))
	}
	m.goRound()
	for g := range m.touched {
		m.arm(g)
	}
	if len(m.wakes) > 0 {
		m.emit(Activate{Pods: m.wakes})
	}
	return m.effects
}

func (m *Machine) emit(effect Effect) { m.effects = append(m.effects, effect) }

// wake activates a pod. All of a step are one effect, its last: what the step gives back is there by then.
func (m *Machine) wake(pod *v1.Pod) {
	if !m.woken[pod.UID] {
		m.woken[pod.UID] = true
		m.wakes = append(m.wakes, pod)
	}
}

// ---- stages --------------------------------------------------------------------------------------------------------

func (m *Machine) enter(g *gang, stage Stage) {
	if g.stage == Waiting && stage != Waiting {
		delete(m.waiting, g)
	}
	if stage == Waiting {
		m.waiting[g] = true
	}
	g.stage = stage
	m.touched[g] = true
}

// review finds the stage of a gang without a plan after a change, and asks its lead to plan it if it can be planned.
func (m *Machine) review(g *gang) {
	m.touched[g] = true
	if g.plan != nil {
		return
	}
	switch reason, _ := m.blocked(g); {
	case g.bound == g.active && g.active > 0:
		m.enter(g, Settled)
	case reason != "":
		m.enter(g, Gathering)
		if g.bound == 0 {
			g.completeAt = time.Time{}
		}
	default:
		m.complete(g)
		if m.now.Before(g.retryAt) {
			m.enter(g, Backoff)
		} else {
			m.ask(g)
		}
	}
}

// complete notes when the gang could first be planned: with its youngest pod, or when the last gate was taken off. An attempt
// that fails does not change that, nor does a replacement.
func (m *Machine) complete(g *gang) {
	if !g.completeAt.IsZero() {
		return
	}
	for _, peer := range g.members {
		if since := peer.since(); peer.active() && since.After(g.completeAt) {
			g.completeAt = since
		}
	}
	if g.completeAt.IsZero() || g.completeAt.After(m.now) {
		g.completeAt = m.now // the API server's clock is another
	}
}

// ask activates the lead, for the present state of the gang.
func (m *Machine) ask(g *gang) {
	lead := m.lead(g)
	if lead == nil {
		m.enter(g, Settled)
		return
	}
	m.enter(g, Asked)
	g.since = m.now
	m.wake(lead.pod)
}

// ---- rounds: who of those that wait fits now -------------------------------------------------------------------------

// roomAppeared begins a round, or begins the present one anew.
func (m *Machine) roomAppeared(nodes bool) {
	m.epoch++
	m.round = m.round[:0]
	for g := range m.waiting {
		if g.lack == LackRoom || g.lack == LackEver && nodes {
			m.round = append(m.round, g)
		}
	}
	slices.SortFunc(m.round, m.compareTurns)
}

// compareTurns is the order in which gangs are served: by priority, then by the time at which they became complete.
func (m *Machine) compareTurns(a, b *gang) int {
	return cmp.Or(-cmp.Compare(m.priority(a), m.priority(b)), a.completeAt.Compare(b.completeAt), compareIDs(a.id, b.id))
}

// priority of a gang is that of its lead.
func (m *Machine) priority(g *gang) int32 {
	if lead := m.lead(g); lead != nil && lead.pod.Spec.Priority != nil {
		return *lead.pod.Spec.Priority
	}
	return 0
}

// goRound asks about the next of the round, unless somebody has the turn.
func (m *Machine) goRound() {
	if m.turnOf != nil && m.gangs[m.turnOf.id] == m.turnOf && (m.turnOf.stage == Waiting || m.turnOf.stage == Asked || m.turnOf.stage == Trying) {
		return
	}
	m.turnOf = nil
	for len(m.round) > 0 && m.turnOf == nil {
		g := m.round[0]
		m.round = m.round[1:]
		if g.stage == Waiting {
			m.turnOf = g
			m.emit(Ask{ID: g.id})
		}
	}
}

func (m *Machine) roomAnswered(e RoomAnswered) {
	g := m.gangs[e.ID]
	switch {
	case g == nil || g != m.turnOf || g.stage != Waiting:
	case e.Fits:
		m.ask(g)
	default:
		g.lacks = cmp.Or(e.Reason, g.lacks)
		m.turnOf = nil
	}
}

func compareIDs(a, b workload.GangID) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.UID, b.UID))
}

// blocked says why the gang cannot be planned at all, "" when it can; until: a moment at which that may change by itself.
func (m *Machine) blocked(g *gang) (reason string, until time.Time) {
	spec, known := m.specs[g.id]
	switch {
	case !known:
		return fmt.Sprintf("waiting for %s %s", g.id.Kind, g.id), time.Time{}
	case spec.Problem != "":
		return spec.Problem, time.Time{}
	case g.active > shim.MembersMax:
		return fmt.Sprintf("gang %s has %d pods, at most %d are allowed", g.id, g.active, shim.MembersMax), time.Time{}
	case g.active < spec.MinMember:
		reason = fmt.Sprintf("gang %s has %d of %d pods", g.id, g.active, spec.MinMember)
		if g.bound == 0 {
			return reason, time.Time{}
		}
		// Something is bound, so all were there once. Those that are left join them, after a while in which their
		// companions may turn up: the missing may have ended well and never come back.
		if until = g.changed.Add(silence); m.now.Before(until) {
			return reason, until
		}
	case (spec.More || g.id.Gathers()) && g.bound == 0:
		if until = g.changed.Add(gather); m.now.Before(until) {
			return fmt.Sprintf("gang %s has %d pods and gathers more", g.id, g.active), until
		}
	}
	return "", time.Time{}
}

// ranks orders the active members.
func (m *Machine) ranks(g *gang) []*member {
	if g.ranked != nil {
		return g.ranked
	}
	list := make([]*member, 0, len(g.members))
	m.visits += uint64(len(g.members))
	for _, peer := range g.members {
		if peer.active() {
			list = append(list, peer)
		}
	}
	slices.SortFunc(list, func(a, b *member) int { return cmp.Compare(a.pod.UID, b.pod.UID) })
	pods, indices := make([]*v1.Pod, len(list)), make([]workload.Index, len(list))
	for i, peer := range list {
		pods[i], indices[i] = peer.pod, peer.index
	}
	ranks, note := workload.Ranks(pods, indices)
	for i, peer := range list {
		peer.rank = ranks[i]
	}
	slices.SortFunc(list, func(a, b *member) int { return cmp.Compare(a.rank, b.rank) })
	g.ranked, g.note = list, note
	return list
}

// lead is the pending member of lowest rank.
func (m *Machine) lead(g *gang) *member {
	for _, peer := range m.ranks(g) {
		m.visits++
		if peer.node == "" {
			return peer
		}
	}
	return nil
}

// ---- attempts ------------------------------------------------------------------------------------------------------

func (m *Machine) gangOf(uid types.UID) *gang {
	if peer := m.pods[uid]; peer != nil {
		return peer.gang
	}
	return nil
}

func (m *Machine) reasonTold(uid types.UID, reason string) {
	if g := m.gangOf(uid); g != nil {
		g.said = reason
		m.touched[g] = true
	}
}

func (m *Machine) attemptBegun(uid types.UID) {
	g := m.gangOf(uid)
	if g == nil || g.plan != nil {
		return
	}
	m.enter(g, Trying)
	g.since, g.wakeAt, g.retryAt, g.said = m.now, time.Time{}, time.Time{}, ""
	for _, peer := range m.ranks(g) {
		peer.tried = true
	}
}

func (m *Machine) noPlace(e NoPlace) {
	g := m.gangs[e.ID]
	if g == nil || g.plan != nil {
		return
	}
	g.lacks, g.lack, g.leftAt = e.Reason, e.Lack, m.now
	m.touched[g] = true
	if g.stage != Trying {
		return // it has changed meanwhile, and is asked again for that
	}
	m.enter(g, Waiting)
	if e.TopologyWait > 0 {
		g.wakeAt = m.now.Add(e.TopologyWait)
	}
	switch {
	case m.epoch != e.Epoch: // room appeared while the gang was being planned without it
		m.round = append(m.round, g)
		slices.SortFunc(m.round, m.compareTurns)
	case g == m.turnOf: // the engine found room, and the lead did not: the scheduler's picture of the nodes may lag behind
		g.againAt = m.now.Add(askAgain)
	}
	if g == m.turnOf {
		m.turnOf = nil
	}
}

// ---- what the informers say ----------------------------------------------------------------------------------------

func (m *Machine) podSet(pod *v1.Pod, class workload.Class) {
	peer := m.pods[pod.UID]
	inGang := class.Kind == workload.Member || class.Kind == workload.Unknown
	sources := workload.Sources(pod)
	if peer == nil {
		if !inGang && len(sources) == 0 {
			return
		}
		peer = &member{}
		m.pods[pod.UID] = peer
	}
	first := peer.pod == nil
	m.track(peer, pod, sources)
	before, next := peer.gang, member{pod: pod, node: pod.Spec.NodeName}
	if next.node == "" {
		next.node = peer.node // an event from before the binding: pods are never unbound
	}
	if class.Kind == workload.Unknown && next.node != "" && before != nil {
		class.Gang = before.id // its owner cannot be found any more; a bound pod stays what it was
	}
	rewritten := first || !sameWishes(peer.pod, pod)
	changed := first || peer.node != next.node || peer.gpus != class.GPUs || peer.index != class.Index || peer.active() != next.active() ||
		rewritten && next.node == "" // the Binding writes to the pod, too
	bound := peer.node == "" && next.node != ""
	if !first && len(peer.pod.Spec.SchedulingGates) > 0 && len(pod.Spec.SchedulingGates) == 0 {
		peer.ungated = m.now
	}
	if before != nil {
		before.tally(peer, -1)
	}
	peer.pod, peer.node, peer.gpus, peer.index = pod, next.node, class.GPUs, class.Index

	if before != nil && (!inGang || before.id != class.Gang) {
		m.leave(before, peer)
	}
	if !inGang {
		// PreEnqueue may have held it while less was known.
		if (first || before != nil) && peer.pending() {
			m.wake(pod)
		}
		return
	}
	g := m.join(peer, class.Gang)
	if rewritten {
		g.ranked = nil
	}
	if g.plan == nil && g.leftAt.IsZero() && peer.nominationLeft() {
		g.leftAt = m.now
		m.touched[g] = true
	}
	changed = m.sized(g, peer, class.Size) || changed
	if before != g || changed {
		m.memberChanged(g, peer, bound)
	}
}

// sized takes a gang's size from its pods, where they say it. Those that are bound may be left from before it was another.
func (m *Machine) sized(g *gang, peer *member, size int) (changed bool) {
	spec, known := m.specs[g.id]
	if size == 0 || spec.MinMember == size || (known && !peer.pending()) {
		return false
	}
	m.specs[g.id] = workload.Spec{MinMember: size}
	return true
}

// track keeps the index of what pods are read from.
func (m *Machine) track(peer *member, pod *v1.Pod, sources []workload.Source) {
	if peer.pod != nil {
		m.untrack(peer.pod)
	}
	for _, source := range sources {
		if m.from[source] == nil {
			m.from[source] = map[types.UID]*member{}
		}
		m.from[source][pod.UID] = peer
	}
}

func (m *Machine) untrack(pod *v1.Pod) {
	for _, source := range workload.Sources(pod) {
		delete(m.from[source], pod.UID)
		if len(m.from[source]) == 0 {
			delete(m.from, source)
		}
	}
}

// sameWishes: neither labels nor annotations have changed, which are all that can change a pending pod's request.
func sameWishes(a, b *v1.Pod) bool {
	return equal(a.Annotations, b.Annotations) && equal(a.Labels, b.Labels)
}

func equal(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for key, value := range a {
		if other, ok := b[key]; !ok || other != value {
			return false
		}
	}
	return true
}

// renew notes a change of the gang's members or its spec.
func (m *Machine) renew(g *gang) {
	g.version++
	g.changed = m.now
	m.measure(g)
	m.touched[g] = true
}

// memberChanged: a member has come, or is not what it was.
func (m *Machine) memberChanged(g *gang, peer *member, bound bool) {
	g.ranked = nil
	m.renew(g)
	p := g.plan
	if p == nil {
		m.review(g)
		return
	}
	place := p.places[peer.pod.UID]
	switch {
	case place == nil || p.state == Ended:
	case bound && place.node != "" && place.node != peer.node && p.state < Binding:
		m.end(g, CauseElsewhere, nil) // the others would not be beside it
	case bound:
		m.settle(g, place, time.Time{})
	case peer.pending():
		m.wake(peer.pod)
	case !peer.active() && p.state < Binding:
		m.end(g, CauseLeft, nil)
	}
}

func (m *Machine) podGone(uid types.UID) {
	peer := m.pods[uid]
	if peer == nil {
		return
	}
	delete(m.pods, uid)
	m.untrack(peer.pod)
	if peer.gang != nil {
		peer.gang.tally(peer, -1)
		m.leave(peer.gang, peer)
	}
}

func (m *Machine) specSet(id workload.GangID, spec workload.Spec) {
	if old, known := m.specs[id]; known && old.Equal(spec) {
		return
	}
	m.specs[id] = spec
	if g := m.gangs[id]; g != nil {
		m.renew(g)
		m.review(g)
	}
}

func (m *Machine) specGone(id workload.GangID) {
	delete(m.specs, id)
	g := m.gangs[id]
	if g == nil {
		return
	}
	if g.plan != nil && g.plan.state < Binding {
		m.end(g, CauseObjectGone, nil)
	}
	m.renew(g)
	m.review(g)
}

func (m *Machine) wishChanged(uid types.UID) {
	switch peer := m.pods[uid]; {
	case peer == nil:
	case peer.gang != nil:
		if peer.gang.bound > 0 {
			peer.gang.version++ // what it asks for may be told to the engine once more
		}
		m.review(peer.gang)
	case peer.pending():
		m.wake(peer.pod)
	}
}

func (m *Machine) join(peer *member, id workload.GangID) *gang {
	g := m.gangs[id]
	if g == nil {
		g = m.made(id)
	}
	g.members[peer.pod.UID], peer.gang = peer, g
	g.tally(peer, 1)
	return g
}

func (m *Machine) made(id workload.GangID) *gang {
	g := &gang{id: id, members: map[types.UID]*member{}, changed: m.now, version: 1}
	m.gangs[id] = g
	return g
}

// leave takes a member out that is no longer counted. Its counts are given back already.
func (m *Machine) leave(g *gang, peer *member) {
	uid := peer.pod.UID
	delete(g.members, uid)
	peer.gang = nil
	g.ranked = nil
	m.renew(g)
	if p := g.plan; p != nil && p.places[uid] != nil {
		switch {
		case p.state < Binding:
			m.end(g, CauseLeft, nil)
		case p.state == Binding:
			place := p.places[uid]
			delete(p.places, uid)
			if peer.node == "" {
				m.settle(g, place, time.Time{})
			}
		}
	}
	if !m.forget(g) {
		m.review(g)
	}
}

// forget ends a gang without members. One whose plan is still to be given back stays until it is: the engine knows the
// places by the gang.
func (m *Machine) forget(g *gang) bool {
	if len(g.members) > 0 || g.plan != nil {
		return false
	}
	m.enter(g, Settled)
	m.disarm(g)
	delete(m.touched, g)
	delete(m.gangs, g.id)
	m.emit(Forget{ID: g.id})
	if g.id.OwnSize() {
		delete(m.specs, g.id)
	}
	return true
}
