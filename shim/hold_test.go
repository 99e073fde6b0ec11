// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func holder(t *testing.T, holds uint32) *Engine {
	t.Helper()
	e, err := library(t).New(Limits{Nodes: 4, Pods: 64, Holds: holds}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	for slot, name := range []string{"node-1", "node-2"} {
		if err := e.NodePut(Node{Slot: uint32(slot), GPUs: 8, Topology: None, Name: name}, nil); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

func TestAHoldKeepsGPUsForItsRank(t *testing.T) {
	e := holder(t, 200)
	mine, other := GangKey("Job", "ml", "mine", "1"), GangKey("Job", "ml", "other", "2")
	holds := []GangHold{{Gang: mine, Rank: 0, Slot: 0, GPUMask: 0xff, DeadlineMillis: 5000}, {Gang: mine, Rank: 1, Slot: 1, GPUMask: 0x0f}}
	if err := e.HoldPut(holds); err != nil {
		t.Fatal(err)
	}
	if got, err := e.HoldList(mine); err != nil || !reflect.DeepEqual(got, holds) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := e.HoldList(other); err != nil || len(got) != 0 {
		t.Errorf("got %v, %v", got, err)
	}
	request, members := gang(1, 8)
	request.Gang = other
	if plan, _, sentence, err := e.Plan(request, members, nil, nil); err != nil || plan.Outcome != Waits {
		t.Errorf("another gang got %v, %q, %v", plan.Outcome, sentence, err)
	}
	request.Gang = mine
	if plan, places, _, err := e.Plan(request, members, nil, nil); err != nil || plan.Outcome != Placed || places[0].Slot > 1 {
		t.Errorf("the gang itself got %v, %v", plan.Outcome, err)
	}
	if stats, err := e.Stats(); err != nil || stats.Holds != 2 || stats.GPUsKept != 12 || stats.GPUsFree != 4 {
		t.Errorf("got %+v, %v", stats, err)
	}
	if err := e.HoldTake(mine, 7, uid(1)); !IsCode(err, CodeUnknown) {
		t.Errorf("a rank without a hold: %v", err)
	}
	if err := e.HoldTake(mine, 1, uid(1)); err != nil {
		t.Error(err)
	}
	if held, err := e.Pod(uid(1)); err != nil || held.GPUMask != 0x0f || held.Slot != 1 || held.Rank != 1 || held.Gang != mine || held.State != HeldReserved {
		t.Errorf("got %+v, %v", held, err)
	}
	if _, err := e.Tick(time.UnixMilli(5001)); err != nil {
		t.Error(err)
	}
	if stats, _ := e.Stats(); stats.Holds != 0 || stats.HoldsExpired != 1 {
		t.Errorf("after its deadline: %+v", stats)
	}
}

func TestHoldsThatCannotBePutAreNamed(t *testing.T) {
	e := holder(t, 2)
	mine := GangKey("Job", "ml", "mine", "1")
	if err := e.HoldPut(nil); err != nil {
		t.Error(err)
	}
	if err := e.HoldPut([]GangHold{{Gang: mine, Slot: 0, GPUMask: 1}}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		holds []GangHold
		code  Code
		want  string
	}{
		{[]GangHold{{Gang: mine, Rank: 1, Slot: 0, GPUMask: 1}}, CodeBad, "holds[0].gpuMask: GPUs 1 of node node-1 are kept for rank 0 of the same gang"},
		{[]GangHold{{Gang: mine, Rank: 1, Slot: 3, GPUMask: 1}}, CodeBad, "holds[0].slot: must be a node that is there"},
		{[]GangHold{{Gang: mine, Rank: 0, Slot: 1, GPUMask: 1}}, CodeBad, "rank 0 of its gang has a hold already"},
		{make([]GangHold, 2), CodeLimit, "holds: the engine has room for 2, there are 1, got 2 more"},
	} {
		if err := e.HoldPut(test.holds); !IsCode(err, test.code) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
	if count, err := e.HoldDrop(mine, None); count != 1 || err != nil {
		t.Errorf("dropped %d, %v", count, err)
	}
}

// More than fit into the first list that the shim offers.
func TestALongListOfHoldsComesWhole(t *testing.T) {
	e, err := library(t).New(Limits{Nodes: 20, Pods: 4, Holds: 160}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	var holds []GangHold
	for slot := range uint32(20) {
		if err := e.NodePut(Node{Slot: slot, GPUs: 8, Topology: None, Name: "node-" + string(rune('a'+slot))}, nil); err != nil {
			t.Fatal(err)
		}
		for gpu := range uint32(8) {
			holds = append(holds, GangHold{Gang: GangKey("Job", "ml", "mine", "1"), Rank: slot*8 + gpu, Slot: slot, GPUMask: 1 << gpu})
		}
	}
	if err := e.HoldPut(holds); err != nil {
		t.Fatal(err)
	}
	if got, err := e.HoldList(Key{}); err != nil || !reflect.DeepEqual(got, holds) {
		t.Errorf("got %d, %v", len(got), err)
	}
}
