// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func uid(rank int) types.UID { return podOf(rank).UID }

func TestAGangIsHalfBoundFromItsFirstBindingToItsLast(t *testing.T) {
	b := newBench(t, 3)
	b.add(0, 1, 2)
	number := b.reserve(0)
	if b.Go(uid(0), number) == nil {
		t.Fatal("the plan was not let through")
	}
	if halves := b.Halves(); len(halves) != 0 {
		t.Fatalf("nothing is bound, yet %v is half-bound", halves)
	}
	b.Bound(uid(0), "node-0")
	b.Bound(uid(1), "node-1")
	halves := b.Halves()
	if len(halves) != 1 || halves[0].ID != b.gang || len(halves[0].Bound) != 2 || halves[0].Overdue {
		t.Fatalf("got %+v, want one gang with two bound members and time left", halves)
	}
	b.Bound(uid(2), "node-2")
	if halves := b.Halves(); len(halves) != 0 {
		t.Fatalf("the gang is whole, yet %v is half-bound", halves)
	}
	b.DropPod(uid(2))
	b.add(3)
	if halves := b.Halves(); len(halves) != 0 {
		t.Fatal("a gang that was whole and lost a member counts as half-bound")
	}
}

func TestTheTimeOfAHalfBoundGangRunsWhileTheAPIAnswers(t *testing.T) {
	b := newBench(t, 2)
	b.add(0, 1)
	number := b.reserve(0)
	b.Go(uid(0), number)
	b.Bound(uid(0), "node-0")
	b.pass(time.Hour)
	if halves := b.Halves(); len(halves) != 1 || halves[0].Overdue {
		t.Fatalf("got %+v: nobody has asked the API server yet, so no time has run", halves)
	}
	b.HalfSeen(b.gang, true)
	b.pass(halfPatience - time.Second)
	b.HalfSeen(b.gang, true)
	if b.Halves()[0].Overdue {
		t.Fatal("overdue too early")
	}
	b.HalfSeen(b.gang, false)
	b.pass(2 * time.Second)
	if b.Halves()[0].Overdue {
		t.Fatal("an API server that does not answer must stop the time")
	}
	b.HalfSeen(b.gang, true)
	b.pass(halfPatience)
	if !b.Halves()[0].Overdue {
		t.Fatal("not overdue after its time")
	}
	rejected, ok := b.Abandon(b.gang)
	if !ok || len(rejected) != 2 || len(b.ledger.gangs) != 1 {
		t.Fatalf("abandoned %v, %v; given back %v; want the plan's members and one gang", rejected, ok, b.ledger.gangs)
	}
	b.DropPod(uid(0))
	if halves := b.Halves(); len(halves) != 0 {
		t.Fatalf("nothing is bound any more, yet %v is half-bound", halves)
	}
}

func TestAWholeGangIsNotAbandoned(t *testing.T) {
	b := newBench(t, 2)
	b.add(0, 1)
	number := b.reserve(0)
	b.Go(uid(0), number)
	b.Bound(uid(0), "node-0")
	b.Bound(uid(1), "node-1")
	if rejected, ok := b.Abandon(b.gang); ok || rejected != nil {
		t.Fatalf("abandoned %v", rejected)
	}
}

func TestALockOfAnEarlierSchedulerTellsHalfBoundFromDegraded(t *testing.T) {
	b := newBench(t, 3)
	b.add(1, 2)
	b.set(bound(0))
	if halves := b.Halves(); len(halves) != 0 {
		t.Fatal("without evidence a gang with one member bound may have been whole before")
	}
	b.Began(uid(1))
	if halves := b.Halves(); len(halves) != 1 {
		t.Fatalf("got %+v, want the gang: a lock was found for a member that is not bound", halves)
	}
}

func TestOneMemberLocksForAllAndTheOthersWait(t *testing.T) {
	b := newBench(t, 2)
	b.add(0, 1)
	number := b.reserve(0)
	b.Go(uid(0), number)
	gate, first, places := b.Enter(uid(0), number)
	if gate == nil || !first || len(places) != 2 {
		t.Fatalf("first %v, places %v; want the attempt and both places", first, places)
	}
	again, first, _ := b.Enter(uid(1), number)
	if again != gate || first {
		t.Fatal("the second member must wait for the first one's attempt")
	}
	select {
	case <-again.Done():
		t.Fatal("the gate is open before its attempt has ended")
	default:
	}
	broken := errors.New("held")
	gate.Open(broken)
	<-again.Done()
	if again.Err() != broken {
		t.Fatalf("got %v", again.Err())
	}
	if rejected := b.Abort(uid(0), number); len(rejected) != 2 {
		t.Fatalf("aborted for %v, want both members", rejected)
	}
	if gate, _, _ := b.Enter(uid(1), number); gate != nil {
		t.Fatal("a plan that was aborted still lets members in")
	}
	if rejected := b.Abort(uid(1), number); rejected != nil {
		t.Fatal("aborted twice")
	}
}

func TestAPlanIsCompleteWhileAllOfItAreThere(t *testing.T) {
	for _, c := range []struct {
		name string
		lose func(b *bench)
		want bool
	}{
		{"nothing", func(*bench) {}, true},
		{"another pod has come", func(b *bench) { b.add(3) }, true},
		{"one is gone", func(b *bench) { b.DropPod(uid(1)) }, false},
		{"one is going", func(b *bench) {
			going := podOf(1)
			going.DeletionTimestamp = &metav1.Time{Time: b.now()}
			b.set(going)
		}, false},
		{"one has lost its node", func(b *bench) { b.Forsake(uid(1)) }, false},
		{"the asker itself is gone", func(b *bench) { b.DropPod(uid(0)) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, 3)
			b.add(0, 1, 2)
			number := b.reserve(0)
			b.Go(uid(0), number)
			c.lose(b)
			if got := b.Complete(uid(0), number); got != c.want {
				t.Errorf("got %v", got)
			}
			if b.Complete(uid(0), number+1) {
				t.Error("a plan that is not there is complete")
			}
		})
	}
}

func TestAPlanOnANodeThatChangesIsMadeAnew(t *testing.T) {
	b := newBench(t, 2)
	b.add(0, 1)
	b.reserve(0)
	if rejected := b.Disturb("elsewhere"); rejected != nil {
		t.Fatalf("rejected %v for a node that nobody counts on", rejected)
	}
	if rejected := b.Disturb("node-1"); len(rejected) != 2 || len(b.ledger.gangs) != 1 {
		t.Fatalf("rejected %v, given back %v; want both members and the gang", rejected, b.ledger.gangs)
	}
	b.pass(time.Minute)
	b.Go(uid(0), b.reserve(0))
	if rejected := b.Disturb("node-1"); rejected != nil {
		t.Fatalf("rejected %v although members may be bound by now", rejected)
	}
}

// A large gang on a slow API server is half-bound for long, and gets on all the time.
// A member that turns out to be bound somewhere else than planned ends the plan: the others would not be beside it.
func TestAMemberBoundElsewhereEndsThePlan(t *testing.T) {
	for node, holds := range map[string]bool{"node-1": true, "node-7": false} {
		b := newBench(t, 4)
		b.add(0, 1, 2, 3)
		number := b.reserve(0)
		pod := podOf(1)
		pod.Spec.NodeName = node
		b.set(pod)
		if got := b.Holds(uid(0), number, "node-0"); got != holds {
			t.Errorf("bound to %s: the plan holds: %v", node, got)
		}
	}
}

// Members that were bound since the last look give it time, too, and it is not abandoned for what was seen before.
func TestAGangThatGotOnUnseenIsNotAbandoned(t *testing.T) {
	b := newBench(t, 4)
	b.add(0, 1, 2, 3)
	b.Go(uid(0), b.reserve(0))
	b.Bound(uid(0), "n")
	b.HalfSeen(b.gang, true)
	b.pass(halfPatience - time.Second)
	b.Bound(uid(1), "n")
	b.pass(time.Second)
	if halves := b.Halves(); len(halves) != 1 || halves[0].Overdue {
		t.Fatalf("%+v, want one that has time", halves)
	}
	if _, ok := b.Abandon(b.gang); ok {
		t.Error("abandoned although it gets on")
	}
	b.HalfSeen(b.gang, true)
	b.pass(halfPatience)
	if _, ok := b.Abandon(b.gang); !ok {
		t.Error("it has had its time")
	}
}

func TestAGangThatGetsOnIsNotOverdue(t *testing.T) {
	b := newBench(t, 4)
	b.add(0, 1, 2, 3)
	b.Go(uid(0), b.reserve(0))
	for rank := range 3 {
		b.Bound(uid(rank), "n")
		b.HalfSeen(b.gang, true)
		b.pass(halfPatience - time.Second)
		if halves := b.Halves(); len(halves) != 1 || halves[0].Overdue {
			t.Fatalf("with %d bound: %+v, want one that has time", rank+1, halves)
		}
	}
	b.HalfSeen(b.gang, true)
	b.pass(time.Second)
	if halves := b.Halves(); len(halves) != 1 || !halves[0].Overdue {
		t.Fatalf("%+v, want one that has had its time", halves)
	}
}
