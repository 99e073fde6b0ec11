// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/frond-scheduler/frond/plugin/gangs"
	"github.com/frond-scheduler/frond/plugin/workload"
)

// keeperBench is a keeper of its own over the bench's framework: three members are planned, two are bound, and the clock is
// the test's.
type keeperBench struct {
	*bench
	keeper  *keeper
	clock   time.Time
	pods    []*v1.Pod
	number  uint64
	mu      sync.Mutex // members are deleted side by side
	deleted []string
}

func newKeeperBench(t *testing.T) *keeperBench {
	t.Helper()
	b := &keeperBench{bench: newBench(t), clock: time.Unix(1_000_000, 0)}
	now := func() time.Time { return b.clock }
	c := &cluster{ctx: ctx, first: b.framework, now: now, table: gangs.New(time.Minute, now), kept: newKeptRooms(), reader: b.plugin.reader,
		recorder: record.NewFakeRecorder(10), mirror: b.plugin.mirror, report: b.plugin.report}
	b.keeper = &keeper{cluster: c, logger: loggerFor(ctx)}
	b.client.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		asked := action.(clienttesting.DeleteActionImpl)
		want := b.bound(asked.Name)
		if with := asked.DeleteOptions.Preconditions; with == nil || want == nil || *with.UID != want.UID || *with.ResourceVersion != want.ResourceVersion {
			t.Errorf("%s is deleted whoever it is by now", asked.Name)
			return true, nil, nil
		}
		b.mu.Lock()
		b.deleted = append(b.deleted, asked.Name)
		b.mu.Unlock()
		c.table.Step(gangs.PodGone{UID: want.UID}) // as the watch would tell
		return true, nil, nil
	})
	c.table.Step(gangs.SpecSet{ID: groupGang, Spec: workload.Spec{MinMember: 3}})
	var places []gangs.Place
	for _, name := range []string{"w-0", "w-1", "w-2"} {
		member := pod(name, 8, 1)
		member.Labels[workload.PodGroupLabel], member.ResourceVersion = group, "7"
		b.pods = append(b.pods, member)
		c.table.Step(gangs.PodSet{Pod: member, Class: c.reader.Classify(member)})
		places = append(places, gangs.Place{UID: member.UID, Node: "node-1"})
	}
	b.clock = b.clock.Add(time.Second)
	number, ok := c.table.Reserved(groupGang, workload.GangKey(groupGang), places)
	if !ok {
		t.Fatal("there is no plan")
	}
	for _, member := range b.pods {
		c.table.Arrive(member.UID, number)
		c.table.Ready(member.UID, number)
	}
	c.table.Step(gangs.LocksTaken{Plan: number}) // as the executor would tell, of whom there is none here
	b.number = number
	for _, member := range b.pods[:2] {
		c.table.Step(gangs.MemberBound{UID: member.UID, Node: "node-1"})
		live := member.DeepCopy()
		live.Spec.NodeName = "node-1"
		if err := b.client.Tracker().Add(live); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// bound is what the API server holds of a bound member.
func (b *keeperBench) bound(name string) *v1.Pod {
	i := slices.IndexFunc(b.pods, func(pod *v1.Pod) bool { return pod.Name == name })
	if i < 0 || i > 1 {
		return nil
	}
	return b.pods[i]
}

// seconds lets the keeper make a round each second.
func (b *keeperBench) seconds(count int) {
	for range count {
		b.clock = b.clock.Add(time.Second)
		b.keeper.round(ctx)
	}
}

func (b *keeperBench) expect(what string, names ...string) {
	b.t.Helper()
	slices.Sort(b.deleted)
	if !slices.Equal(b.deleted, names) {
		b.t.Fatalf("%s: %v were deleted, want %v", what, b.deleted, names)
	}
}

func TestAHalfBoundGangIsReleasedInTime(t *testing.T) {
	b := newKeeperBench(t)
	b.seconds(10)
	b.expect("it has ten seconds from when the API server first confirmed it")
	b.seconds(3)
	b.expect("its bound members, and they alone", "w-0", "w-1")
	if b.keeper.table.Holds(b.pods[2].UID, b.number, "node-1") {
		t.Error("the plan stands although its members are deleted")
	}
	b.seconds(30)
	b.expect("once", "w-0", "w-1")
}

func TestAGangThatBecomesWholeIsKept(t *testing.T) {
	b := newKeeperBench(t)
	b.seconds(9)
	b.keeper.table.Step(gangs.MemberBound{UID: b.pods[2].UID, Node: "node-1"})
	b.seconds(30)
	b.expect("it is whole")
}

func TestTheKeeperDoesNotActOnWhatItCannotSee(t *testing.T) {
	b := newKeeperBench(t)
	down := true
	b.client.PrependReactor("*", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return down && action.GetVerb() != "delete", nil, errors.New("no answer")
	})
	b.seconds(60)
	b.expect("while nobody answers nothing can be finished either")
	down = false
	b.seconds(10)
	b.expect("the time starts when it answers")
	b.seconds(3)
	b.expect("then it runs", "w-0", "w-1")
}

func TestAKeeperThatWasAsleepStartsAnew(t *testing.T) {
	b := newKeeperBench(t)
	b.seconds(9)
	b.clock = b.clock.Add(time.Minute)
	b.keeper.round(ctx)
	b.seconds(9)
	b.expect("another leader may be finishing the gang")
	b.seconds(4)
	b.expect("nobody did", "w-0", "w-1")
}

func TestAMemberThatIsNoLongerWhatWasSeenIsNotDeleted(t *testing.T) {
	b := newKeeperBench(t)
	live := b.pods[1].DeepCopy()
	live.UID, live.Spec.NodeName = "another", "node-1"
	if err := b.client.Tracker().Update(v1.SchemeGroupVersion.WithResource("pods"), live, live.Namespace); err != nil {
		t.Fatal(err)
	}
	b.seconds(13)
	b.expect("the second is another pod of that name", "w-0")
}
