// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"math"
	"slices"
	"testing"

	"github.com/frond-scheduler/frond/shim"
)

func TestRoomsAscendAndOnlyEverGoDown(t *testing.T) {
	r := closed([]uint32{9, 2}, 3)
	r = r.lower(5, 1, 2)
	r = r.lower(5, 0, 1)
	r = r.lower(5, 1, 7) // more than before: stays
	r = r.lower(9, 0, 4)
	want := rooms{{Slot: 2, Ever: 3}, {Slot: 5, Today: 1, Ever: math.MaxUint16}, {Slot: 5, Template: 1, Today: 2, Ever: math.MaxUint16}, {Slot: 9, Ever: 3}}
	if !slices.Equal(r, want) {
		t.Errorf("got %v, want %v", r, want)
	}
	if got, want := r.of(map[uint16]uint16{1: 0}), (rooms{{Slot: 5, Today: 2, Ever: math.MaxUint16}}); !slices.Equal(got, want) {
		t.Errorf("of the second template: got %v, want %v", got, want)
	}
}

func TestANodeWithoutAnExceptionIsNotNamed(t *testing.T) {
	b := newBench(t)
	one, two := pod("w-0", 8, 1), pod("w-1", 8, 1)
	b.gang(2, one, two)
	if _, _, status := b.preFilter(one); !status.IsSuccess() {
		t.Fatal(status)
	}
	if !b.called(" room 0 cap ") {
		t.Error("GPUs alone decide on every node: there is nothing to say")
	}
}

// A worker has CPU for itself alone on a node of 64; the launcher asks for one.
func TestALauncherDoesNotInheritTheWorkersLimit(t *testing.T) {
	b := newBench(t)
	launcher, worker := pod("a-launcher", 1, 1), pod("b-worker", 1, 40)
	b.gang(2, launcher, worker)
	_, result, status := b.preFilter(launcher)
	if !status.IsSuccess() {
		t.Fatal(status)
	}
	if !b.called(" room 4 cap ") || !b.called(" room slot 0 pod_template 1 today 1 ever 1 unavailable 0\n") {
		t.Error("the four nodes are exceptions for the worker's template alone")
	}
	_, other, status := b.preFilter(worker)
	if !status.IsSuccess() || !result.NodeNames.Equal(other.NodeNames) {
		t.Errorf("one node takes both: %v and %v %v", result, other, status)
	}
}

func TestExceptionsAreOfNodesThatTheEngineHas(t *testing.T) {
	b := newBench(t)
	known := b.plugin.mirror.Known([]string{"node-2", "no-such-node"})
	if known.Slots[0] == shim.None || known.GPUs[0] != 8 || known.Slots[1] != shim.None {
		t.Errorf("node-2 and nobody: %+v", known)
	}
	if len(known.Others) != 3 || !slices.IsSorted(known.Others) || slices.Contains(known.Others, known.Slots[0]) {
		t.Errorf("the other three, in order: %+v", known)
	}
}
