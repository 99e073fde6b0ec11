// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/frond-scheduler/frond/shim"
)

// hours is a clock that stands still until it is moved.
type hours struct {
	mu  sync.Mutex
	now time.Time
}

func (h *hours) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hours) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

func aged(t *testing.T) (*world, *hours) {
	t.Helper()
	w, h := newWorld(t), &hours{now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
	w.SetUnavailableAfter(time.Minute, h.Now)
	return w, h
}

func (w *world) set(object *v1.Node) {
	w.t.Helper()
	if _, err := w.SetNode(object); err != nil {
		w.t.Fatal(err)
	}
	w.check()
}

func (w *world) wantsAge(changed bool) {
	w.t.Helper()
	if got := w.Age(); got != changed {
		w.t.Errorf("aging changed something: %v, want %v", got, changed)
	}
	w.check()
}

const open, cordonedFresh, cordonedLong, downFresh, downLong = "flags 0 ", "flags 1 ", "flags 9 ", "flags 2 ", "flags 10 "

func (w *world) wantsFlags(name, want string) {
	w.t.Helper()
	w.wantsNode(name, "gpus 8 topology 1 unhealthy 0 unavailable 0 "+want)
}

func cordonedNode(name string) *v1.Node {
	node := nodeOf(name, 8)
	node.Spec.Unschedulable = true
	return node
}

func TestACordonedNodeIsUnavailableAfterAMinute(t *testing.T) {
	w, h := aged(t)
	w.set(nodeOf("a", 8))
	w.set(nodeOf("b", 8))
	w.wantsAge(false)
	w.set(cordonedNode("a"))
	w.wantsFlags("a", cordonedFresh)
	h.pass(59 * time.Second)
	w.wantsAge(false)
	w.set(cordonedNode("a")) // said again: nothing new
	w.wantsFlags("a", cordonedFresh)
	h.pass(time.Second)
	w.wantsAge(true)
	w.wantsFlags("a", cordonedLong)
	w.wantsFlags("b", open)
	w.wantsAge(false)
	w.set(nodeOf("a", 8)) // open again: capacity at once
	w.wantsFlags("a", open)
	w.set(cordonedNode("a")) // and the time starts anew
	w.wantsFlags("a", cordonedFresh)
	h.pass(time.Minute)
	w.wantsAge(true)
	w.wantsFlags("a", cordonedLong)
	if len(w.aging) != 0 {
		t.Errorf("nothing is to come, but %v are watched", w.aging)
	}
}

func TestANodeThatIsClosedForAnotherReasonStaysClosed(t *testing.T) {
	w, h := aged(t)
	w.set(cordonedNode("a"))
	h.pass(40 * time.Second)
	down := cordonedNode("a")
	down.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionFalse, LastTransitionTime: metav1.NewTime(h.Now())}}
	w.set(down)
	w.wantsFlags("a", "flags 3 ")
	h.pass(20 * time.Second)
	w.wantsAge(true)
	w.wantsFlags("a", "flags 11 ")
	down = down.DeepCopy()
	down.Spec.Unschedulable = false
	w.set(down)
	w.wantsFlags("a", downLong)
}

func TestAfterARestartConditionsAndTaintsTellSinceWhen(t *testing.T) {
	w, h := aged(t)
	at := func(ago time.Duration) metav1.Time { return metav1.NewTime(h.Now().Add(-ago)) }
	down := func(name string, since metav1.Time) *v1.Node {
		node := nodeOf(name, 8)
		node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionUnknown, LastTransitionTime: since}}
		return node
	}
	tainted := cordonedNode("tainted")
	since := at(2 * time.Minute)
	tainted.Spec.Taints = []v1.Taint{{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule, TimeAdded: &since}}
	w.set(down("long", at(time.Minute)))
	w.set(down("fresh", at(30*time.Second)))
	w.set(down("ahead", at(-time.Hour))) // its clock is wrong
	w.set(down("silent", metav1.Time{}))
	w.set(tainted)
	w.set(cordonedNode("untold"))
	w.wantsFlags("long", downLong)
	w.wantsFlags("fresh", downFresh)
	w.wantsFlags("ahead", downFresh)
	w.wantsFlags("silent", downFresh)
	w.wantsFlags("tainted", cordonedLong)
	w.wantsFlags("untold", cordonedFresh)
	h.pass(30 * time.Second)
	w.wantsAge(true)
	w.wantsFlags("fresh", downLong)
	w.wantsFlags("ahead", downFresh)
	h.pass(30 * time.Second)
	w.wantsAge(true)
	for _, name := range []string{"ahead", "silent"} {
		w.wantsFlags(name, downLong)
	}
	w.wantsFlags("untold", cordonedLong)
}

func TestGPUsThatStayUnhealthyAreUnavailable(t *testing.T) {
	w, h := aged(t)
	w.set(nodeOf("a", 8))
	sick := func(mask uint32) {
		report := reportOf("a", 8, 450)
		report.Unhealthy, report.Heartbeat = mask, h.Now()
		w.report(report)
	}
	sick(0b0100)
	w.wantsNode("a", "unhealthy 4 unavailable 0 flags 0 ")
	h.pass(30 * time.Second)
	sick(0b0110)
	h.pass(30 * time.Second)
	w.wantsAge(true)
	w.wantsNode("a", "unhealthy 6 unavailable 4 flags 0 ")
	sick(0b0010) // one is well again
	w.wantsNode("a", "unhealthy 2 unavailable 0 flags 0 ")
	h.pass(30 * time.Second)
	w.wantsAge(true)
	w.wantsNode("a", "unhealthy 2 unavailable 2 flags 0 ")
	sick(0b0110)
	w.wantsNode("a", "unhealthy 6 unavailable 2 flags 0 ")
	sick(0)
	w.wantsNode("a", "unhealthy 0 unavailable 0 flags 0 ")
}

func TestTaintsThatLastAreListedAndTellNothingToTheEngine(t *testing.T) {
	w, h := aged(t)
	taint := func(key string, effect v1.TaintEffect) v1.Taint {
		return v1.Taint{Key: key, Value: "x", Effect: effect}
	}
	node := nodeOf("a", 8)
	node.Spec.Taints = []v1.Taint{
		taint("nvidia.com/gpu", v1.TaintEffectNoSchedule), taint("soft", v1.TaintEffectPreferNoSchedule),
		taint("upgrade", v1.TaintEffectNoSchedule),
	}
	lasting := func(want ...string) {
		t.Helper()
		var got []string
		for _, taint := range w.Known([]string{"a"}).Taints[0] {
			got = append(got, taint.Key)
		}
		if len(got) != len(want) || (len(got) > 0 && got[0] != want[0]) {
			t.Errorf("%v have lasted, want %v", got, want)
		}
	}
	w.set(nodeOf("a", 8))
	w.set(node)
	lasting()
	h.pass(30 * time.Second)
	more := node.DeepCopy()
	more.Spec.Taints = append(more.Spec.Taints, taint("late", v1.TaintEffectNoExecute))
	w.set(more)
	h.pass(30 * time.Second)
	lasting("upgrade")
	w.wantsAge(true) // gangs that do not tolerate it have another rule
	w.wantsAge(false)
	w.wantsFlags("a", open)
	h.pass(30 * time.Second)
	w.wantsAge(true)
	lasting("upgrade", "late")
	changed := more.DeepCopy()
	changed.Spec.Taints[2].Value = "y" // another taint
	w.set(changed)
	lasting("late")
	w.set(nodeOf("a", 8))
	lasting()
	old := node.DeepCopy()
	since := metav1.NewTime(h.Now().Add(-time.Hour))
	old.Spec.Taints[2].TimeAdded = &since
	w.set(old)
	lasting("upgrade")
}

func TestANodeThatComesBackIsYoung(t *testing.T) {
	w, h := aged(t)
	w.set(cordonedNode("a"))
	w.DropNode("a")
	h.pass(time.Hour)
	w.wantsAge(false)
	w.set(cordonedNode("a"))
	w.wantsFlags("a", cordonedFresh)
}

// A cluster that is looked at once has no past: what is closed counts as lasting, as in a fabric file.
func TestFillTakesWhatIsClosedAsLasting(t *testing.T) {
	w := newWorld(t)
	fresh := nodeOf("b", 8)
	fresh.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionFalse, LastTransitionTime: metav1.Now()}}
	err := Fill(w.engine, shim.Args{Resources: []string{"nvidia.com/gpu"}, UnavailableAfter: time.Minute}, []*v1.Node{cordonedNode("a"), fresh}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"node 0 gpus 8 topology 1 unhealthy 0 unavailable 0 flags 9 ", "node 1 gpus 8 topology 1 unhealthy 0 unavailable 0 flags 2 "} {
		if !strings.Contains(w.dump(), line) {
			t.Errorf("got %s want %s", w.dump(), line)
		}
	}
}

func TestRunAgeWakesThoseWhoWait(t *testing.T) {
	w, h := aged(t)
	w.set(cordonedNode("a"))
	seen := &witness{}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		w.RunAge(ctx, seen)
		close(done)
	}()
	h.pass(time.Minute)
	seen.wait(t, "freed true")
	cancel()
	<-done
	w.wantsFlags("a", cordonedLong)
}
