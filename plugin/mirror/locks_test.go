// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

type owners = map[string]types.UID

func TestLocksHoldGPUsForPodsThatAreNotBound(t *testing.T) {
	w := newWorld(t)
	w.own("a", owners{"a-gpu-0": "uid-p", "a-gpu-1": "uid-p", "a-gpu-2": "uid-q"})
	w.node("a", 8)
	w.wantsLock("a", "uid-p", "mask 3 count 0")
	w.wantsLock("a", "uid-q", "mask 4 count 0")
	w.wants("uid-p", "") // it can still be reserved itself
	if w.own("a", owners{"a-gpu-0": "uid-p", "a-gpu-1": "uid-p", "a-gpu-2": "uid-q"}) {
		t.Error("nothing has changed")
	}
	if !w.own("a", owners{"a-gpu-0": "uid-p", "a-gpu-1": "uid-p", "a-gpu-3": ""}) {
		t.Error("there is more room")
	}
	w.wantsLock("a", "uid-q", "")
	w.DropNode("a")
	w.node("a", 8)
	w.wantsLock("a", "uid-p", "mask 3 count 0")
	w.own("a", nil)
	w.wantsLock("a", "uid-p", "")
	w.wantsNoConflict()
}

func TestABoundPodTakesOverItsLock(t *testing.T) {
	w := newWorld(t)
	w.node("a", 8)
	w.node("b", 8)
	w.own("a", owners{"a-gpu-0": "uid-p", "a-gpu-1": "uid-p"})
	w.own("b", owners{"b-gpu-0": "uid-p"}) // somebody else's mistake
	w.pod(allocated(podOf("p", "a", 2), "a-gpu-1,a-gpu-0"))
	w.wants("uid-p", "mask 3 count 0")
	w.wantsLock("a", "uid-p", "")
	w.wantsLock("b", "uid-p", "")
	w.own("a", owners{"a-gpu-0": "uid-p", "a-gpu-1": "uid-p"})
	w.wantsLock("a", "uid-p", "")
	// The pod ends; its Lease is freed a moment later, and is changed for others meanwhile.
	if !w.DropPod("uid-p") {
		t.Error("it held GPUs")
	}
	w.wantsLock("a", "uid-p", "")
	w.own("a", owners{"a-gpu-0": "uid-p", "a-gpu-1": "uid-p", "a-gpu-5": "uid-q"})
	w.wantsLock("a", "uid-p", "")
	w.wantsLock("a", "uid-q", "mask 20 count 0")
	w.own("a", owners{})
	w.wantsNoConflict()
	if len(w.locked["uid-p"]) != 1 || len(w.owners) != 1 {
		t.Errorf("left over: %v %v", w.locked, w.owners)
	}
}

func TestALockOfADeletedPodIsNoObstacle(t *testing.T) {
	w := newWorld(t)
	w.node("a", 8)
	w.own("a", owners{"a-gpu-0": "uid-p"})
	if !w.DropPod("uid-p") {
		t.Error("it kept a GPU from others")
	}
	w.wantsLock("a", "uid-p", "")
}

func TestYield(t *testing.T) {
	w := newWorld(t)
	w.node("a", 4)
	all := owners{"a-gpu-0": "uid-p", "a-gpu-1": "uid-p", "a-gpu-2": "uid-q", "a-gpu-3": "uid-q"}
	w.own("a", all)
	w.Yield("uid-p", "uid-unknown")
	w.wantsLock("a", "uid-p", "")
	w.Unyield("uid-p", "uid-unknown")
	w.wantsLock("a", "uid-p", "mask 3 count 0")

	w.Yield("uid-p")
	reserve(t, w, "uid-p", 2) // it fits on its own lock only
	w.own("a", all)
	w.wantsLock("a", "uid-p", "")
	w.wantsLock("a", "uid-q", "mask c count 0")
	w.wantsNoConflict()

	w.Unreserve("uid-p") // the Lease is not freed yet
	w.check()
	w.wantsLock("a", "uid-p", "mask 3 count 0")
	w.wantsNoConflict()

	w.Yield("uid-p")
	reserve(t, w, "uid-p", 2)
	w.pod(allocated(podOf("p", "a", 2), "a-gpu-0,a-gpu-1"))
	w.wants("uid-p", "mask 3 count 0")
	w.wantsNoConflict()
	w.Yield("uid-p", "uid-unknown") // bound by now: nothing to yield
	if len(w.yielded) != 1 {
		t.Errorf("left over: %v", w.yielded)
	}
	w.DropPod("uid-unknown")
	if len(w.yielded) != 0 {
		t.Errorf("left over: %v", w.yielded)
	}
}

func TestOurOwnReservationIsNoConflict(t *testing.T) {
	w := newWorld(t)
	w.node("a", 4)
	reserve(t, w, "uid-p", 2)
	w.own("a", owners{"a-gpu-0": "uid-p", "a-gpu-1": "uid-p"})
	w.wantsLock("a", "uid-p", "")
	w.wantsNoConflict()
	w.Unreserve("uid-p")
	w.wantsLock("a", "uid-p", "mask 3 count 0")
}

// Another leader was faster: what our engine has reserved cannot be bound, and once it is given back the lock stands.
func TestALockOnGPUsThatWeHaveReservedForAnother(t *testing.T) {
	w := newWorld(t)
	w.node("a", 4)
	reserve(t, w, "uid-ours", 2)
	w.own("a", owners{"a-gpu-0": "uid-theirs", "a-gpu-1": "uid-theirs"})
	w.wantsLock("a", "uid-theirs", "mask 0 count 2")
	w.Yield("uid-ours")
	w.wantsLock("a", "uid-theirs", "mask 0 count 2")
	w.Unreserve("uid-ours")
	w.Yield("uid-ours")
	w.check()
	w.wantsLock("a", "uid-theirs", "mask 3 count 0")
	reserve(t, w, "uid-ours", 2)
	if len(w.short) != 0 {
		t.Errorf("left over: %v", w.short)
	}
	w.Yield("uid-theirs")
	w.wantsLock("a", "uid-theirs", "")
}

func TestIdsInALease(t *testing.T) {
	w := newWorld(t)
	w.node("a", 8)
	w.pod(allocated(podOf("bound", "a", 1), "a-gpu-0"))
	w.own("a", owners{"a-gpu-0": "uid-p", "a-gpu-1": "uid-p"})
	w.wantsLock("a", "uid-p", "mask 2 count 0") // what a bound pod has, it has
	w.own("a", owners{uuid("a", 1): "uid-p", "a-gpu-2": "uid-p"})
	w.wantsLock("a", "uid-p", "mask 0 count 2") // a report will tell
	w.report(reportOf("a", 8, 100))
	w.wantsLock("a", "uid-p", "mask 6 count 0")
	w.own("a", owners{uuid("a", 1): "uid-p", "GPU-of-another": "uid-p", "a-gpu-8": "uid-q"})
	w.wantsLock("a", "uid-p", "mask 2 count 0")
	w.wantsLock("a", "uid-q", "")
	w.wantsNoConflict()
}

func TestALeaseFullOfNonsenseHoldsNoMoreThanTheNode(t *testing.T) {
	w := newWorld(t)
	w.node("a", 8)
	w.pod(allocated(podOf("bound", "a", 2), "a-gpu-0,a-gpu-1"))
	full := owners{}
	for i := range 10_000 {
		full[fmt.Sprintf("id-%d", i)] = types.UID(fmt.Sprintf("uid-%d", i%5_000))
	}
	w.own("a", full)
	w.wantsNode("a", "held 3 count 6")
	w.own("a", nil)
	w.wantsNode("a", "held 3 count 0")
	if len(w.locked) != 0 {
		t.Errorf("%d left over", len(w.locked))
	}
}
