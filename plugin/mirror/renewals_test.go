// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/frond-scheduler/frond/plugin/apis"
	"github.com/frond-scheduler/frond/plugin/nodereport"
)

const second = time.Second

// beaten is a world with a report of node a, and of others that never fall silent: one is not most of them. Times are seconds
// after the report of a was written.
type beaten struct {
	*world
	report nodereport.Report
}

func newBeaten(t *testing.T) *beaten {
	w := &beaten{world: newWorld(t), report: *reportOf("a", 8, 100)}
	for _, name := range []string{"a", "b", "c"} {
		w.node(name, 8)
		w.world.report(reportOf(name, 8, 100))
	}
	return w
}

func (w *beaten) at(after time.Duration) time.Time { return w.report.Heartbeat.Add(after) }

// renewed: the Lease of a says one time and is seen at another one.
func (w *beaten) renewed(said, seen time.Duration) { w.SetRenewal("a", w.at(said), w.at(seen)) }

// silent says what is thought of node a at a time: nothing, or why it is not trusted.
func (w *beaten) silent(after time.Duration) string {
	w.t.Helper()
	for _, name := range []string{"b", "c"} {
		w.SetRenewal(name, w.at(after), w.at(after))
	}
	w.CheckReports(w.at(after))
	v := w.Verdicts()[0]
	if v.Held != (v.Stale != "") {
		w.t.Errorf("after %s: %+v", after, v)
	}
	return v.Stale
}

func (w *beaten) wants(after time.Duration, words string) {
	w.t.Helper()
	if got := w.silent(after); !strings.HasPrefix(got, words) || (got == "") != (words == "") {
		w.t.Errorf("after %s: got %q, want %q", after, got, words)
	}
}

const (
	leaseOld = "Lease frond-system/gns-a: must be renewed within 1m30s, got "
	byReport = "status.heartbeat: must not be older than 1m30s, got "
)

func TestAnAgentLivesByItsLease(t *testing.T) {
	w := newBeaten(t)
	for after := 30 * second; after <= time.Hour; after += 30 * second {
		w.renewed(after, after)
		w.wants(after+29*second, "")
	}
	w.wants(time.Hour+90*second, "")
	w.wants(time.Hour+91*second, leaseOld+"1970-01-01T01:16:40Z")
	w.wantsTold("StaleReport a: " + leaseOld + "1970-01-01T01:16:40Z; what it said last stays")
	w.renewed(2*time.Hour, 2*time.Hour)
	w.wants(2*time.Hour, "")
	w.wantsTold()
}

// By whose clock: a node's may be years off.
func TestTheClockOfANodeDoesNotMatter(t *testing.T) {
	for _, off := range []time.Duration{-24 * time.Hour, -5 * time.Minute, 5 * time.Minute, 24 * time.Hour} {
		w := newBeaten(t)
		w.renewed(off, 0)
		w.renewed(30*second+off, 31*second)
		w.wants(121*second, "")
		w.wants(122*second, leaseOld)
		w.renewed(60*second+off, 130*second)
		w.wants(220*second, "")
		w.wants(221*second, leaseOld)
	}
}

// The first that is seen of a Lease may be old: who was silent before the scheduler started is no better than others.
func TestALeaseThatWasOldAtTheStart(t *testing.T) {
	w := newBeaten(t)
	w.renewed(10*second, 600*second)
	w.wants(600*second, leaseOld)
	w.renewed(40*second, 630*second) // it lives, with a wrong clock
	w.wants(720*second, "")
	w.wants(721*second, leaseOld)

	w = newBeaten(t)
	w.renewed(time.Hour, 600*second) // ahead, but seen only now
	w.wants(690*second, "")
	w.wants(691*second, leaseOld)
}

// Leases are shown again after a watch has ended; that is no sign of life.
func TestALeaseThatIsOnlyShownAgain(t *testing.T) {
	w := newBeaten(t)
	w.renewed(10*second, 10*second)
	for after := 20 * second; after < 100*second; after += 10 * second {
		w.renewed(10*second, after)
	}
	w.wants(100*second, "")
	w.wants(101*second, leaseOld)
	w.renewed(200*second, 200*second)
	w.renewed(111*second, 200*second) // set back: it counts as what it says
	w.wants(201*second, "")
	w.wants(202*second, leaseOld)
}

// A Lease that is deleted by hand is made again within a heartbeat; until then its last renewal counts. After that the report
// says itself how old it is.
func TestALeaseThatIsDeleted(t *testing.T) {
	w := newBeaten(t)
	w.renewed(300*second, 300*second)
	w.DropRenewal("a")
	w.wants(390*second, "")
	w.wants(391*second, byReport)
	w.renewed(400*second, 400*second)
	w.wants(490*second, "")
	w.DropRenewal("a")
	w.renewed(480*second, 480*second)
	w.wants(570*second, "")
	w.wants(571*second, leaseOld)
	w.DropRenewal("nobody")
}

// An older agent in the place of a newer one leaves the Lease as it is, and writes reports.
func TestReportsAreSignsOfLifeBesideALease(t *testing.T) {
	w := newBeaten(t)
	w.renewed(0, 0)
	for after := 30 * second; after <= 300*second; after += 30 * second {
		next := w.report
		next.Heartbeat = w.at(after - time.Hour) // by a wrong clock
		w.world.report(&next)
		w.wants(after, "")
	}
	w.wants(390*second, "")
	w.wants(391*second, leaseOld)
	again := w.report
	again.Heartbeat = w.at(300*second - time.Hour)
	w.world.report(&again) // shown again
	w.wants(392*second, leaseOld)
}

func TestReportsWithoutALeaseAreAsOldAsTheySay(t *testing.T) {
	w := newBeaten(t)
	w.wants(90*second, "")
	w.wants(91*second, byReport)
	next := w.report
	next.Heartbeat = w.at(-time.Hour)
	w.world.report(&next)
	w.wants(92*second, byReport)
}

// ---- the watch ----------------------------------------------------------------------------------------------------

func leaseOf(name string, renewed time.Time) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: apis.HeartbeatNamespace, Name: name, Labels: map[string]string{apis.HeartbeatLabel: "true"}}}
	if !renewed.IsZero() {
		lease.Spec.RenewTime = &metav1.MicroTime{Time: renewed}
	}
	return lease
}

func TestWatchRenewals(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begin := time.Unix(1000, 0)
	client := fake.NewClientset(leaseOf("gns-a", begin), leaseOf("gns-never", time.Time{}), leaseOf("odd", begin))
	var selectors atomic.Int32
	client.PrependReactor("list", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
		list := action.(clienttesting.ListActionImpl)
		if list.Namespace == "frond-system" && list.ListRestrictions.Labels.String() == "gpu.scheduling/heartbeat" {
			selectors.Add(1)
		}
		return false, nil, nil
	})
	m := New(newEngine(4, 4), reader())
	informer, synced, err := m.WatchRenewals(klog.Background(), client, func() time.Time { return begin.Add(10 * second) })
	if err != nil || synced() {
		t.Fatalf("%v", err)
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), synced) {
		t.Fatal("not synced")
	}
	known := func(name string) (r renewal, ok bool) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if found := m.renewals[name]; found != nil {
			return *found, true
		}
		return renewal{}, false
	}
	if r, ok := known("a"); !ok || !r.heard.Equal(begin) {
		t.Errorf("got %+v, %v", r, ok)
	}
	for _, name := range []string{"never", "odd", ""} {
		if r, ok := known(name); ok {
			t.Errorf("%q: got %+v", name, r)
		}
	}
	leases := client.CoordinationV1().Leases(apis.HeartbeatNamespace)
	if _, err := leases.Update(ctx, leaseOf("gns-a", begin.Add(2*second)), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "renewed", func() bool { r, _ := known("a"); return r.heard.Equal(begin.Add(10 * second)) })
	for _, object := range informer.GetStore().List() {
		if _, ok := object.(*heartbeat); !ok {
			t.Errorf("the whole object is kept: %T", object)
		}
	}
	if err := leases.Delete(ctx, "gns-a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "gone", func() bool { r, _ := known("a"); return r.gone })
	if selectors.Load() == 0 {
		t.Error("all Leases of the cluster are watched, or all of the namespace")
	}
}

func TestLeasesThatCannotBeReadHoldNothingUp(t *testing.T) {
	client := fake.NewClientset()
	refused := apierrors.NewForbidden(coordinationv1.Resource("leases"), "", errors.New("rbac"))
	client.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, refused })
	client.PrependWatchReactor("*", clienttesting.DefaultWatchReactor(nil, refused))
	informer, synced, err := New(newEngine(1, 1), reader()).WatchRenewals(klog.Background(), client, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	go informer.RunWithContext(t.Context())
	waitFor(t, "synced", synced)
}

// Before the Leases are known a report may look older than its agent's last sign of life.
func TestNobodyIsCalledSilentBeforeAllIsKnown(t *testing.T) {
	e := newEngine(4, 4)
	m := New(e, reader())
	if _, err := m.SetNode(nodeOf("a", 8)); err != nil {
		t.Fatal(err)
	}
	m.SetReport(reportOf("a", 8, 100))
	var known atomic.Bool
	looks := make(chan int, 64)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go m.RunReports(ctx, known.Load, func() time.Time { return reportOf("a", 8, 100).Heartbeat.Add(time.Hour) }, &witness{}, func() { looks <- m.Stale() })
	time.Sleep(3 * reportsPause)
	if len(looks) != 0 || m.Stale() != 0 {
		t.Error("looked before all was known")
	}
	known.Store(true)
	if stale := <-looks; stale != 1 {
		t.Errorf("%d are stale", stale)
	}
}
