// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"context"
	"fmt"
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/workload"
	"github.com/frond-scheduler/frond/shim"
)

// ledger remembers what was given back.
type ledger struct {
	mu    sync.Mutex
	gangs []shim.Key
	pods  []shim.Key
}

func (l *ledger) ReleaseGang(gang shim.Key) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gangs = append(l.gangs, gang)
	return 0, nil
}

func (l *ledger) Release(pod shim.Key) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pods = append(l.pods, pod)
	return nil
}

// bench is a table with a clock that the test moves.
type bench struct {
	*Table
	t      *testing.T
	ledger *ledger
	mu     sync.Mutex
	clock  time.Time
	gang   workload.GangID
}

func newBench(t *testing.T, minMember int) *bench {
	b := &bench{t: t, ledger: &ledger{}, clock: time.Unix(1_000_000, 0), gang: workload.GangID{Kind: workload.KindJob, Namespace: "ml", Name: "train", UID: "j"}}
	b.Table = New(b.ledger, time.Minute, func() time.Time {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.clock
	})
	if minMember > 0 {
		b.SetSpec(b.gang, workload.Spec{MinMember: minMember})
	}
	return b
}

func (b *bench) pass(d time.Duration) {
	b.mu.Lock()
	b.clock = b.clock.Add(d)
	b.mu.Unlock()
}

func podOf(rank int) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: fmt.Sprintf("train-%d", rank), UID: types.UID(fmt.Sprintf("uid-%02d", rank)),
		Labels: map[string]string{workload.CompletionIndex: fmt.Sprint(rank)}}}
}

func (b *bench) add(ranks ...int) {
	for _, rank := range ranks {
		b.set(podOf(rank))
	}
}

func (b *bench) set(pod *v1.Pod) []types.UID {
	return b.SetPod(pod, workload.Class{Kind: workload.Member, GPUs: 8, Gang: b.gang})
}

// woken are the names that the waker would activate now.
func (b *bench) woken() string {
	b.Due()
	var names []string
	for _, pod := range b.takeWakes() {
		names = append(names, strings.TrimPrefix(pod.Name, "train-"))
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// admitted are the ranks that PreEnqueue lets pass.
func (b *bench) admitted(ranks ...int) string {
	var names []string
	for _, rank := range ranks {
		if _, ok := b.Admit(podOf(rank).UID); ok {
			names = append(names, fmt.Sprint(rank))
		}
	}
	return strings.Join(names, " ")
}

func (b *bench) expect(what, got, want string) {
	b.t.Helper()
	if got != want {
		b.t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// reserve plays the lead: begins, books every pending member on node-RANK.
func (b *bench) reserve(lead int) uint64 {
	b.t.Helper()
	turn := b.Begin(podOf(lead).UID)
	if turn.Step != Lead {
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

func bound(rank int) *v1.Pod {
	pod := podOf(rank)
	pod.Spec.NodeName = fmt.Sprintf("node-%d", rank)
	return pod
}

func TestOnlyTheLeadOfACompleteGangIsAdmitted(t *testing.T) {
	b := newBench(t, 3)
	b.add(2, 1)
	b.expect("incomplete", b.admitted(1, 2), "")
	if reason, _ := b.Admit("uid-01"); reason != "gang ml/train has 2 of 3 pods" {
		t.Errorf("got %q", reason)
	}
	b.expect("nobody is woken", b.woken(), "")
	b.add(0)
	b.expect("complete", b.admitted(0, 1, 2), "0")
	b.expect("the lead is woken", b.woken(), "0")
	if reason, _ := b.Admit("uid-02"); reason != "gang ml/train is planned through pod train-0" {
		t.Errorf("got %q", reason)
	}
	b.DropPod("uid-00")
	b.expect("incomplete again", b.admitted(1, 2), "")
	b.add(3)
	b.expect("the next rank leads", b.admitted(1, 2, 3), "1")
}

func TestAReservedPlanAdmitsItsMembers(t *testing.T) {
	b := newBench(t, 2)
	b.add(0, 1)
	b.woken()
	number := b.reserve(0)
	b.expect("all are woken", b.woken(), "0 1")
	b.add(2)
	b.expect("a late one waits", b.admitted(0, 1, 2), "0 1")
	if turn := b.Begin("uid-01"); turn.Step != Follow || turn.Node != "node-1" || turn.Plan != number {
		t.Errorf("got %+v", turn)
	}
	if !b.Holds("uid-01", number, "node-1") || b.Holds("uid-01", number, "node-0") || b.Holds("uid-01", number+1, "node-1") || b.Holds("uid-02", number, "node-2") {
		t.Error("Holds must answer for the pod, the plan and the node")
	}
	if got := b.Go("uid-01", number); len(got) != 2 {
		t.Errorf("got %v", got)
	}
	b.Bound("uid-00", "node-0")
	b.expect("the late one still waits", b.admitted(2), "")
	b.set(bound(1))
	b.expect("then it leads", b.admitted(2), "2")
	turn := b.Begin("uid-02")
	if turn.Step != Lead || turn.Least != 1 || len(turn.Members) != 3 || turn.Members[0].Node != "node-0" || turn.Members[2].Node != "" {
		t.Errorf("it is planned around those bound: %+v", turn)
	}
}

func TestAPlanThatFailsBeforeGoEndsForAll(t *testing.T) {
	b := newBench(t, 3)
	b.add(0, 1, 2)
	number := b.reserve(0)
	b.woken()
	if got := b.Fail("uid-01", number); !slices.Equal(got, []types.UID{"uid-00", "uid-01", "uid-02"}) {
		t.Errorf("all are to be rejected, got %v", got)
	}
	if len(b.ledger.gangs) != 1 {
		t.Error("the engine must be told")
	}
	if got := b.Fail("uid-02", number); got != nil {
		t.Errorf("a second failure of the same plan changes nothing, got %v", got)
	}
	b.expect("it backs off", b.admitted(0, 1, 2), "")
	b.expect("nobody is woken", b.woken(), "")
	b.pass(retryLeast)
	b.expect("then the lead is woken", b.woken(), "0")
	b.expect("and admitted", b.admitted(0, 1, 2), "0")

	number = b.reserve(0)
	b.Fail("uid-00", number)
	b.pass(retryLeast)
	b.expect("the second time it takes longer", b.admitted(0), "")
	b.pass(retryLeast)
	b.expect("but not for ever", b.admitted(0), "0")
}

func TestAfterGoAMemberKeepsItsPlace(t *testing.T) {
	b := newBench(t, 2)
	b.add(0, 1)
	number := b.reserve(0)
	b.Go("uid-00", number)
	b.set(bound(0))
	if got := b.Fail("uid-01", number); got != nil || len(b.ledger.gangs) != 0 {
		t.Errorf("nothing is given back, got %v", got)
	}
	b.expect("it retries in place", b.admitted(1), "1")
	if turn := b.Begin("uid-01"); turn.Step != Follow || turn.Node != "node-1" {
		t.Errorf("got %+v", turn)
	}

	b.Forsake("uid-01")
	if len(b.ledger.pods) != 1 {
		t.Error("a member that cannot go there gives its own place back")
	}
	b.pass(retryLeast)
	b.woken()
	if turn := b.Begin("uid-01"); turn.Step != Lead || turn.Least != 1 || turn.Members[0].Node != "node-0" {
		t.Errorf("and is planned around the bound ones: %+v", turn)
	}
}

func TestAMemberThatLeavesTakesThePlanWithIt(t *testing.T) {
	b := newBench(t, 2)
	b.add(0, 1)
	b.reserve(0)
	if got := b.DropPod("uid-01"); len(got) != 2 || len(b.ledger.gangs) != 1 {
		t.Errorf("got %v", got)
	}

	b = newBench(t, 2)
	b.add(0, 1)
	b.reserve(0)
	deleting := podOf(1)
	now := metav1.Now()
	deleting.DeletionTimestamp = &now
	if got := b.set(deleting); len(got) != 2 || len(b.ledger.gangs) != 1 {
		t.Errorf("a pod that is being deleted counts as gone, got %v", got)
	}

	b = newBench(t, 2)
	b.add(0, 1)
	number := b.reserve(0)
	b.Go("uid-00", number)
	if got := b.DropPod("uid-01"); got != nil || len(b.ledger.gangs) != 0 {
		t.Errorf("after GO the others go on, got %v", got)
	}
	b.set(bound(0))
	if b.gangs[b.gang].plan != nil {
		t.Error("the plan has ended")
	}
}

func TestAPlanOfAPodThatIsGoneIsGivenBack(t *testing.T) {
	b := newBench(t, 2)
	b.add(0, 1)
	turn := b.Begin("uid-00")
	b.DropPod("uid-01")
	b.add(2)
	if _, ok := b.Reserved(turn.ID, shim.Key{Hi: 1, Lo: 1}, []Place{{"uid-00", "a"}, {"uid-01", "b"}}); ok {
		t.Error("taken")
	}
	if len(b.ledger.gangs) != 1 {
		t.Error("the booking must be given back")
	}
}

func TestAWaitingGangIsWokenByCapacity(t *testing.T) {
	b := newBench(t, 1)
	b.add(0)
	b.woken()
	turn := b.Begin("uid-00")
	if !b.Wait(turn.ID, turn.Epoch, "full", false, 0) || b.Wait(turn.ID, turn.Epoch, "full", false, 0) || !b.Wait(turn.ID, turn.Epoch, "fuller", false, 0) {
		t.Error("only another reason is news")
	}
	b.expect("quiet", b.woken(), "")
	b.pass(2 * sweep)
	b.expect("a sweep does not wake those that wait", b.woken(), "")
	b.Capacity()
	b.expect("capacity", b.woken(), "0")

	turn = b.Begin("uid-00")
	b.Capacity()
	b.woken()
	b.Wait(turn.ID, turn.Epoch, "full", false, 0)
	b.expect("capacity that came during planning is not missed", b.woken(), "0")
}

func TestWhatOneGangGivesBackWakesAnother(t *testing.T) {
	b := newBench(t, 1)
	b.add(0)
	number := b.reserve(0)
	other := workload.GangID{Kind: workload.KindJob, Namespace: "ml", Name: "other", UID: "o"}
	b.SetSpec(other, workload.Spec{MinMember: 1})
	b.SetPod(podOf(7), workload.Class{Kind: workload.Member, GPUs: 8, Gang: other})
	b.woken()
	turn := b.Begin("uid-07")
	b.Wait(turn.ID, turn.Epoch, "full", false, 0)
	if !b.Waiting("uid-07") || b.Waiting("uid-00") || b.Waiting("nobody") {
		t.Error("only the lead of a gang that waits is waiting")
	}
	b.expect("quiet", b.woken(), "")
	b.Fail("uid-00", number)
	b.expect("woken", b.woken(), "7")
}

func TestTopologyWaitWakes(t *testing.T) {
	b := newBench(t, 1)
	b.add(0)
	b.woken()
	turn := b.Begin("uid-00")
	b.Wait(turn.ID, turn.Epoch, "full", false, 5*time.Minute)
	b.expect("quiet", b.woken(), "")
	b.pass(5*time.Minute - time.Millisecond)
	b.expect("a little early", b.woken(), "")
	if due := b.Due(); due.Next > time.Millisecond {
		t.Errorf("the waker sleeps %v too long", due.Next)
	}
	b.pass(time.Millisecond)
	b.expect("in time", b.woken(), "0")
}

func TestAGangThatCannotBeFormedSpeaksOnceThroughItsLead(t *testing.T) {
	b := newBench(t, 0)
	b.gang = workload.GangID{Kind: workload.KindPodGroup, Namespace: "ml", Name: "g"}
	b.add(0, 1)
	b.expect("silent at first", b.woken()+b.admitted(0, 1), "")
	b.pass(silence)
	b.expect("then the lead is woken", b.woken(), "0")
	b.expect("and admitted", b.admitted(0, 1), "0")
	if turn := b.Begin("uid-00"); turn.Step != Hold || turn.Reason != "waiting for PodGroup ml/g" {
		t.Errorf("got %+v", turn)
	}
	b.pass(2 * sweep)
	b.expect("once", b.woken()+b.admitted(0, 1), "")
	b.SetSpec(b.gang, workload.Spec{Problem: "PodGroup ml/g: spec.minMember must be between 1 and 16384, got 0"})
	b.pass(silence)
	b.expect("a new reason", b.woken(), "0")
	if turn := b.Begin("uid-00"); !strings.Contains(turn.Reason, "got 0") {
		t.Errorf("got %+v", turn)
	}
	b.SetSpec(b.gang, workload.Spec{MinMember: 2})
	b.expect("it gathers", b.woken(), "")
	b.pass(gather)
	b.expect("and goes", b.woken(), "0")
	if turn := b.Begin("uid-00"); turn.Step != Lead {
		t.Errorf("got %+v", turn)
	}
	b.DropSpec(b.gang)
	if turn := b.Begin("uid-00"); turn.Step != Hold {
		t.Errorf("got %+v", turn)
	}
}

func TestHalfBoundGangsAreFinished(t *testing.T) {
	b := newBench(t, 4)
	b.set(bound(0))
	b.set(bound(1))
	b.add(2, 3)
	b.expect("with all there, at once", b.woken(), "2")
	if turn := b.Begin("uid-02"); turn.Step != Lead || turn.Least != 2 || len(turn.Members) != 4 {
		t.Errorf("got %+v", turn)
	}

	b = newBench(t, 4)
	b.set(bound(0))
	b.add(1)
	b.expect("with some missing, after a while", b.woken()+b.admitted(1), "")
	b.pass(silence)
	b.expect("it joins", b.woken(), "1")
	if turn := b.Begin("uid-01"); turn.Step != Lead || turn.Least != 1 {
		t.Errorf("got %+v", turn)
	}
}

func TestMorePodsThanMinMember(t *testing.T) {
	b := newBench(t, 2)
	b.add(0, 1, 2, 3)
	if turn := b.Begin("uid-00"); turn.Least != 2 || len(turn.Members) != 4 {
		t.Errorf("got %+v", turn)
	}
}

func TestGatedPodsDoNotCount(t *testing.T) {
	b := newBench(t, 2)
	gated := podOf(1)
	gated.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "x"}}
	b.add(0)
	b.set(gated)
	b.expect("incomplete", b.admitted(0, 1), "")
	b.add(1)
	b.expect("complete", b.admitted(0, 1), "0")
}

func TestAnOldEventDoesNotUnbind(t *testing.T) {
	b := newBench(t, 1)
	b.add(0)
	number := b.reserve(0)
	b.Go("uid-00", number)
	b.Bound("uid-00", "node-0")
	b.add(0)
	if turn := b.Begin("uid-00"); turn.Step != Hold {
		t.Errorf("a bound pod has no turn: %+v", turn)
	}
}

func TestAPlanThatNobodyFollowsExpires(t *testing.T) {
	b := newBench(t, 2)
	b.add(0, 1)
	b.reserve(0)
	b.pass(time.Minute)
	if due := b.Due(); due.Expired != nil {
		t.Errorf("too early: %v", due.Expired)
	}
	b.pass(expirySlack)
	if due := b.Due(); len(due.Expired) != 2 || len(b.ledger.gangs) != 1 {
		t.Errorf("got %v", due.Expired)
	}
}

func TestNominationsLeftOverAreTakenBackOnce(t *testing.T) {
	b := newBench(t, 2)
	nominated := podOf(1)
	nominated.ResourceVersion = "5"
	nominated.Status.NominatedNodeName = "node-1"
	b.add(0)
	b.set(nominated)
	b.pass(time.Minute)
	if due := b.Due(); due.Stale != nil {
		t.Error("another replica may lead: what it nominates is not ours to take back")
	}
	number := b.reserve(0)
	b.pass(2 * nominationPause)
	if due := b.Due(); due.Stale != nil || !b.Nominated("uid-01", "node-1") || b.Nominated("uid-01", "node-0") || !b.Nominated("nobody", "x") {
		t.Error("planned ones stay")
	}
	b.Fail("uid-00", number)
	if due := b.Due(); due.Stale != nil || b.Nominated("uid-01", "node-1") {
		t.Error("upstream has a moment to do it itself")
	}
	b.pass(nominationPause)
	if due := b.Due(); len(due.Stale) != 1 || due.Stale[0].Name != "train-1" {
		t.Errorf("got %v", due.Stale)
	}
	b.pass(sweep)
	if due := b.Due(); due.Stale != nil {
		t.Error("once for what is there")
	}
}

func TestAJobMayChangeItsMind(t *testing.T) {
	b := newBench(t, 2)
	yes := true
	owned := func(rank int) *v1.Pod {
		pod := podOf(rank)
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "train", UID: "j", Controller: &yes}}
		return pod
	}
	b.SetPod(owned(0), workload.Class{Kind: workload.Unknown, Gang: b.gang})
	b.expect("held", b.admitted(0), "")
	if got := b.PodsFrom(workload.Source{Owner: "j"}); len(got) != 1 || len(b.Pods()) != 1 {
		t.Fatalf("got %v", got)
	}
	b.takeWakes()
	b.SetPod(owned(0), workload.Class{Kind: workload.Single, GPUs: 8})
	b.expect("no gang after all", b.woken()+" "+b.admitted(0), "0 0")
	if b.Member("uid-00") {
		t.Error("still a member")
	}
	b.SetPod(owned(1), workload.Class{Kind: workload.Plain})
	b.expect("one that PreEnqueue may have held is woken when first seen", b.woken(), "1")
	b.SetPod(owned(1), workload.Class{Kind: workload.Plain})
	b.expect("once", b.woken(), "")
	b.DropPod("uid-00")
	b.DropPod("uid-01")
	if len(b.pods)+len(b.from)+len(b.gangs) != 0 {
		t.Errorf("something is left: %v %v %v", b.pods, b.from, b.gangs)
	}
}

func TestWarningsAreGivenOnce(t *testing.T) {
	b := newBench(t, 1)
	b.add(0)
	if !b.Warn(b.gang, 4) || b.Warn(b.gang, 4) || !b.Warn(b.gang, 2) || b.Warn(workload.GangID{}, 1) {
		t.Error("each once, and only for gangs that exist")
	}
}

func TestUnknownPods(t *testing.T) {
	b := newBench(t, 1)
	if _, ok := b.Admit("nobody"); ok {
		t.Error("admitted")
	}
	if turn := b.Begin("nobody"); turn.Step != Hold {
		t.Errorf("got %+v", turn)
	}
	b.Bound("nobody", "n")
	b.Reconsider("nobody")
	if b.DropPod("nobody") != nil || b.Fail("nobody", 1) != nil || b.Forsake("nobody") != nil || b.Go("nobody", 1) != nil {
		t.Error("something happened")
	}
}

// counter is a waker that counts and calls back into the table, as PreEnqueue does.
type counter struct {
	table *Table
	mu    sync.Mutex
	calls int
	done  chan struct{}
	once  sync.Once
}

func (c *counter) Activate(pods []*v1.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, pod := range pods {
		c.table.Admit(pod.UID)
	}
	c.calls++
	c.once.Do(func() { close(c.done) })
}

func (c *counter) Reject([]types.UID, string) {}
func (c *counter) Denominate([]*v1.Pod)       {}

func TestTheWakerDoesNotSpin(t *testing.T) {
	b := newBench(t, 2)
	ctx, cancel := context.WithCancel(context.Background())
	waker := &counter{table: b.Table, done: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		b.Run(ctx, waker)
		close(ended)
	}()
	b.add(0, 1)
	<-waker.done
	time.Sleep(50 * time.Millisecond)
	cancel()
	<-ended
	if waker.calls > 3 {
		t.Errorf("%d calls for one change", waker.calls)
	}
}

// audit recounts what the table keeps count of.
func (b *bench) audit() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Table.mu.Lock()
	defer b.Table.mu.Unlock()
	for id, g := range b.gangs {
		active, bound := 0, 0
		for _, m := range g.members {
			if m.active() {
				active++
				if m.node != "" {
					bound++
				}
			}
		}
		if g.active != active || g.bound != bound || len(g.members) == 0 {
			b.t.Errorf("%v: counted %d and %d, found %d and %d", id, g.active, g.bound, active, bound)
		}
		if p := g.plan; p != nil {
			left := 0
			for uid := range p.places {
				if g.members[uid].node == "" {
					left++
				}
			}
			if p.left != left || left == 0 {
				b.t.Errorf("%v: counted %d places left, found %d", id, p.left, left)
			}
		}
	}
}

// A random walk over everything that can happen to a gang; the counts must hold after every step.
func TestCountsHold(t *testing.T) {
	for seed := range int64(30) {
		b := newBench(t, 3)
		random := rand.New(rand.NewSource(seed))
		plans := map[int]uint64{}
		for range 400 {
			rank := random.Intn(6)
			uid := podOf(rank).UID
			switch random.Intn(10) {
			case 0:
				b.DropPod(uid)
			case 1, 2, 3:
				b.add(rank)
			case 4:
				b.set(bound(rank))
			case 5:
				deleting := podOf(rank)
				now := metav1.Now()
				deleting.DeletionTimestamp = &now
				b.set(deleting)
			case 6:
				if turn := b.Begin(uid); turn.Step == Lead {
					plans[rank] = b.reserve(rank)
				} else if turn.Step == Follow {
					plans[rank] = turn.Plan
				}
			case 7:
				b.Go(uid, plans[rank])
				b.Bound(uid, "n")
			case 8:
				b.Fail(uid, plans[rank])
				b.Forsake(uid)
			case 9:
				b.pass(time.Duration(random.Intn(5)) * time.Second)
				b.Due()
			}
			b.audit()
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
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
		b.Go("uid-00", number)
		for rank := range size {
			b.Bound(podOf(rank).UID, "n")
		}
		for rank := range size { // what the Bindings have written
			pod := podOf(rank)
			pod.Spec.NodeName = "n"
			pod.Annotations = map[string]string{workload.Rank: strconv.Itoa(rank)}
			b.set(pod)
		}
		if b.visits == 0 || b.visits > uint64(looks*size) {
			t.Fatalf("%d members were looked at %d times, allowed are %d times each", size, b.visits, looks)
		}
		b.audit()
	}
}

func TestRace(t *testing.T) {
	b := newBench(t, 4)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go b.Run(ctx, &counter{table: b.Table, done: make(chan struct{})})
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := range 300 {
				rank := (worker + i) % 6
				uid := podOf(rank).UID
				switch i % 7 {
				case 0:
					b.DropPod(uid)
				case 1:
					b.Capacity()
				case 2:
					b.Admit(uid)
				case 3, 4:
					b.add(rank)
				case 5:
					if turn := b.Begin(uid); turn.Step == Lead {
						var places []Place
						for _, peer := range turn.Members {
							places = append(places, Place{UID: peer.Pod.UID, Node: "n"})
						}
						if number, ok := b.Reserved(turn.ID, shim.Key{Lo: 1}, places); ok {
							b.Fail(uid, number)
						}
					} else {
						b.Wait(b.gang, 0, "full", false, time.Second)
					}
				case 6:
					b.pass(time.Second)
				}
			}
		})
	}
	group.Wait()
}

// What pods are read from is found whatever kind it is, and follows the pod when it names another.
func TestPodsAreFoundByWhatTheyAreReadFrom(t *testing.T) {
	b := newBench(t, 2)
	pod := podOf(0)
	pod.Annotations = map[string]string{workload.ClaimAnnotation: "c"}
	from := func(claim string) int {
		return len(b.PodsFrom(workload.Source{Claim: types.NamespacedName{Namespace: "ml", Name: claim}}))
	}
	b.SetPod(pod, workload.Class{Kind: workload.Refused, Problem: "x"})
	if from("c") != 1 || b.Member(pod.UID) {
		t.Error("a refused pod is found, and in no gang")
	}
	moved := pod.DeepCopy()
	moved.Annotations[workload.ClaimAnnotation] = "d"
	b.SetPod(moved, workload.Class{Kind: workload.Member, Gang: b.gang})
	if from("c") != 0 || from("d") != 1 {
		t.Errorf("%d and %d", from("c"), from("d"))
	}
	b.DropPod(pod.UID)
	if from("d") != 0 || len(b.from)+len(b.Pods()) != 0 {
		t.Errorf("left: %v", b.from)
	}
}

// Pods of a LeaderWorkerSet say themselves how many they are.
func TestAGangWhosePodsSayItsSize(t *testing.T) {
	b := newBench(t, 0)
	id := workload.GangID{Kind: workload.KindLeaderWorkerSet, Namespace: "ml", Name: "serve-0", UID: "k"}
	set := func(rank, size int) {
		b.SetPod(podOf(rank), workload.Class{Kind: workload.Member, GPUs: 8, Gang: id, Size: size})
	}
	set(0, 3)
	set(1, 3)
	b.expect("one is missing", b.admitted(0, 1), "")
	set(2, 3)
	b.expect("whole", b.admitted(0, 1, 2), "0")
	for rank := range 3 {
		b.DropPod(podOf(rank).UID)
	}
	if len(b.specs) != 0 {
		t.Errorf("left: %v", b.specs)
	}
}

// An index that another source gives changes the order.
func TestRanksComeFromTheIndexOfTheClass(t *testing.T) {
	b := newBench(t, 2)
	b.SetPod(podOf(0), workload.Class{Kind: workload.Member, GPUs: 8, Gang: b.gang, Index: workload.Index{Base: 5}})
	b.SetPod(podOf(1), workload.Class{Kind: workload.Member, GPUs: 8, Gang: b.gang})
	b.expect("the base counts", b.admitted(0, 1), "1")
	b.SetPod(podOf(0), workload.Class{Kind: workload.Member, GPUs: 8, Gang: b.gang})
	b.expect("and is forgotten", b.admitted(0, 1), "0")
}

// A bound pod whose owner cannot be found any more stays in the gang that it was bound in; a pending one waits for the owner.
func TestBoundPodsKeepTheirGang(t *testing.T) {
	b := newBench(t, 2)
	lost := workload.Class{Kind: workload.Unknown, GPUs: 8, Gang: workload.GangID{Kind: "JobSet", Namespace: "ml", Name: "js"}}
	for rank := range 2 {
		pod := podOf(rank)
		pod.Spec.NodeName = "node"
		b.SetPod(pod, workload.Class{Kind: workload.Member, GPUs: 8, Gang: b.gang})
		b.SetPod(pod, lost)
	}
	b.SetPod(podOf(2), workload.Class{Kind: workload.Member, GPUs: 8, Gang: b.gang})
	b.SetPod(podOf(2), lost)
	if len(b.gangs[b.gang].members) != 2 || b.gangs[b.gang].bound != 2 || len(b.gangs[lost.Gang].members) != 1 {
		t.Errorf("got %+v and %+v", b.gangs[b.gang], b.gangs[lost.Gang])
	}
}

// A gang that may have more pods than it needs waits a moment for them, whoever says so.
func TestMorePodsMayBeOnTheirWay(t *testing.T) {
	b := newBench(t, 0)
	b.SetSpec(b.gang, workload.Spec{MinMember: 2, More: true})
	b.add(0, 1)
	b.expect("gathers", b.admitted(0, 1), "")
	b.pass(gather)
	b.expect("goes", b.admitted(0, 1), "0")
}
