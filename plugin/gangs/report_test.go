// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"testing"

	"github.com/frond-scheduler/frond/plugin/workload"
)

func TestStateAndPlaceFollowAGang(t *testing.T) {
	b := newBench(t, 2)
	expect := func(what string, want State) {
		t.Helper()
		if got := b.State(b.gang); got != want {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	place := func(rank int, node string, planned bool, reason string) {
		t.Helper()
		if gotNode, gotPlanned, gotReason, refused := b.Place(uid(rank)); gotNode != node || gotPlanned != planned || gotReason != reason || refused {
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
	turn := b.Begin(uid(0))
	b.Wait(turn.ID, turn.Epoch, "full", false, 0)
	expect("waits", State{Pods: 2, Reason: "full"})
	number := b.reserve(0)
	b.add(2)
	expect("planned", State{Pods: 3, Planned: true})
	place(1, "node-1", true, "")
	place(2, "", false, "")
	b.Go(uid(0), number)
	b.Bound(uid(0), "node-0")
	expect("half", State{Pods: 3, Bound: 1, Planned: true})
	b.Bound(uid(1), "node-1")
	if got := b.State(b.gang); !got.Whole || got.Bound != 2 || got.Planned {
		t.Errorf("whole: %+v", got)
	}
	b.SetPod(podOf(9), workload.Class{Kind: workload.Single})
	place(9, "", false, "")
}
