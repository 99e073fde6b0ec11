// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/frond-scheduler/frond/plugin/apis"
	"github.com/frond-scheduler/frond/plugin/workload"
)

// run starts l and waits until it has seen all Leases; its own comparisons are off unless the test asks for them.
func run(t *testing.T, l *Locks) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := l.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	eventually(t, "synced", l.Synced)
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not: %s", what)
		}
	}
}

func TestCompare(t *testing.T) {
	type world struct {
		*api
		l       *Locks
		p, q, r *v1.Pod
	}
	for _, c := range []struct {
		name string
		make func(w *world)
		want Repairs
		own  func(w *world) map[string]types.UID
	}{
		{"agrees", func(w *world) {
			mustTake(t, w.l, "n1", claim(w.p, "g0"))
			_ = w.bind(w.p, "n1", "g0")
		}, Repairs{}, func(w *world) map[string]types.UID { return map[string]types.UID{"g0": w.p.UID} }},
		{"gone", func(w *world) {
			mustTake(t, w.l, "n1", claim(w.p, "g0", "g1"))
			w.dropPod("p")
		}, Repairs{Freed: 2}, func(w *world) map[string]types.UID { return map[string]types.UID{} }},
		{"reserved by us", func(w *world) { mustTake(t, w.l, "n1", claim(w.p, "g0")) },
			Repairs{}, func(w *world) map[string]types.UID { return map[string]types.UID{"g0": w.p.UID} }},
		{"reserved by another", func(w *world) { mustTake(t, w.locks("b"), "n1", claim(w.p, "g0")) },
			Repairs{}, func(w *world) map[string]types.UID { return map[string]types.UID{"g0": w.p.UID} }},
		{"no entry", func(w *world) {
			_ = w.bind(w.p, "n1", "g0", "g1")
			mustTake(t, w.l, "n1", claim(w.q, "g2"))
		}, Repairs{Entered: 2}, func(w *world) map[string]types.UID {
			return map[string]types.UID{"g0": w.p.UID, "g1": w.p.UID, "g2": w.q.UID}
		}},
		{"no Lease", func(w *world) { _ = w.bind(w.p, "n1", "g0") },
			Repairs{Entered: 1}, func(w *world) map[string]types.UID { return map[string]types.UID{"g0": w.p.UID} }},
		{"bound pod, owner gone", func(w *world) {
			mustTake(t, w.l, "n1", claim(w.q, "g0"))
			w.dropPod("q")
			_ = w.bind(w.p, "n1", "g0")
		}, Repairs{Replaced: 1}, func(w *world) map[string]types.UID { return map[string]types.UID{"g0": w.p.UID} }},
		{"bound pod, owner pending", func(w *world) {
			mustTake(t, w.locks("b"), "n1", claim(w.q, "g0", "g1"))
			_ = w.bind(w.p, "n1", "g0")
		}, Repairs{Replaced: 1, Revoked: 2}, func(w *world) map[string]types.UID { return map[string]types.UID{"g0": w.p.UID} }},
		{"both bound", func(w *world) {
			mustTake(t, w.l, "n1", claim(w.q, "g0"))
			_ = w.bind(w.q, "n1", "g0")
			_ = w.bind(w.p, "n1", "g0")
		}, Repairs{DoubleBooked: 1}, func(w *world) map[string]types.UID { return map[string]types.UID{"g0": w.q.UID} }},
		{"an entry of somebody who is nobody", func(w *world) {
			mustTake(t, w.l, "n1", claim(w.p, "g0"))
			w.edit("n1", func(lease *coordinationv1.Lease) {
				lease.Annotations[OwnersAnnotation] = strings.Replace(lease.Annotations[OwnersAnnotation], "{", `{"g7":"joe",`, 1)
			})
			_, _, _ = w.l.read(t.Context(), w.l.nodes["n1"])
		}, Repairs{Freed: 1}, func(w *world) map[string]types.UID { return map[string]types.UID{"g0": w.p.UID} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAPI(t)
			w := &world{api: a, l: a.locks("a"), p: a.addPod("p"), q: a.addPod("q"), r: a.addPod("r")}
			c.make(w)
			l := w.l
			if l.nodes["n1"] == nil && w.leases["n1"] != nil {
				n, _ := l.enter(t.Context(), "n1")
				_, _, _ = l.read(t.Context(), n)
				l.leave(n)
			}
			report := l.Compare(t.Context())
			if report.Repairs != c.want || len(report.Errors) != 0 || l.Stats().Repaired != c.want {
				t.Errorf("report %+v, want %+v", report, c.want)
			}
			mustOwn(t, a, "n1", c.own(w))
			again := c.want
			again.Freed, again.Entered, again.Replaced, again.Revoked, again.Rebuilt = 0, 0, 0, 0, 0
			if report := l.Compare(t.Context()); report.Repairs != again {
				t.Errorf("a second comparison finds %+v", report)
			}
		})
	}
}

// What was damaged by hand is refused to everybody, then rebuilt: reservations from what was seen last.
func TestDamagedByHand(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(a *api, l *coordinationv1.Lease)
	}{
		{"bad JSON", func(_ *api, l *coordinationv1.Lease) { l.Annotations[OwnersAnnotation] = "{" }},
		{"no annotation", func(_ *api, l *coordinationv1.Lease) { delete(l.Annotations, OwnersAnnotation) }},
		{"nothing of ours at all", func(_ *api, l *coordinationv1.Lease) { l.Annotations, l.Labels = nil, nil }},
		{"one entry", func(_ *api, l *coordinationv1.Lease) {
			l.Annotations[OwnersAnnotation] = strings.Replace(l.Annotations[OwnersAnnotation], `"g1":"`, `"g1":"!`, 1)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAPI(t)
			p, q, r := a.addPod("p"), a.addPod("q"), a.addPod("r")
			l := a.locks("a")
			mustTake(t, l, "n1", claim(p, "g0"))
			mustTake(t, l, "n1", claim(q, "g1"))
			if err := a.bind(p, "n1", "g0"); err != nil {
				t.Fatal(err)
			}
			a.edit("n1", func(lease *coordinationv1.Lease) { c.damage(a, lease) })
			var broken *LeaseError
			if err := l.Take(t.Context(), "n1", []Claimant{claim(r, "g1")}); !errors.As(err, &broken) {
				t.Fatalf("got %v", err)
			}
			if report := l.Compare(t.Context()); report.Rebuilt != 1 {
				t.Errorf("%+v", report)
			}
			mustOwn(t, a, "n1", map[string]types.UID{"g0": p.UID, "g1": q.UID})
			mustTake(t, l, "n1", claim(r, "g2"))
		})
	}
}

func TestDeletedByHand(t *testing.T) {
	a := newAPI(t)
	p, q := a.addPod("p"), a.addPod("q")
	l := a.locks("a", func(o *Options) { o.Every = time.Hour })
	run(t, l)
	mustTake(t, l, "n1", claim(p, "g0"))
	a.erase("n1")
	eventually(t, "written again", func() bool { return a.owners("n1")["g0"] == p.UID })
	a.erase("n1")
	var held *HeldError
	if err := l.Take(t.Context(), "n1", []Claimant{claim(q, "g0")}); !errors.As(err, &held) {
		t.Fatalf("got %v", err)
	}
}

func TestALeaseOfLeaderElectionIsLeftAlone(t *testing.T) {
	a := newAPI(t)
	seconds, holder := int32(15), "leader"
	election := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: DefaultNamespace, Name: "frond-scheduler", ResourceVersion: a.next()},
		Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: &seconds, HolderIdentity: &holder}}
	a.store(watch.Added, election)
	l := a.locks("a")
	run(t, l)
	p := a.addPod("p")
	var broken *LeaseError
	if err := l.Take(t.Context(), "frond-scheduler", []Claimant{claim(p, "g0")}); !errors.As(err, &broken) {
		t.Fatalf("got %v", err)
	}
	_ = a.bind(p, "frond-scheduler", "g0")
	l.Compare(t.Context())
	if len(a.leases["frond-scheduler"].Annotations) != 0 {
		t.Error("it was written")
	}
}

// Agents renew Leases in the same namespace. No lock is made of them, nobody hears of them, and none is deleted, though there
// are no nodes of their names and nobody owns anything in them.
func TestHeartbeatsOfAgentsAreLeftAlone(t *testing.T) {
	a := newAPI(t)
	seconds, holder := int32(90), "n1"
	beat := func(name string) *coordinationv1.Lease {
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: DefaultNamespace, Name: name, ResourceVersion: a.next(), Labels: map[string]string{apis.HeartbeatLabel: "true"}},
			Spec:       coordinationv1.LeaseSpec{LeaseDurationSeconds: &seconds, HolderIdentity: &holder, RenewTime: &metav1.MicroTime{Time: time.Now()}},
		}
	}
	a.mu.Lock()
	a.store(watch.Added, beat("gns-n1"))
	a.mu.Unlock()
	changed := make(chan string, 64)
	l := a.locks("a", func(o *Options) {
		o.Changed = func(node string) { changed <- node }
		o.HasNode = func(string) bool { return false }
		o.Every = time.Hour
	})
	run(t, l)
	a.mu.Lock()
	a.store(watch.Modified, beat("gns-n1"))
	a.store(watch.Added, beat("gns-n2"))
	delete(a.leases, "gns-n2")
	a.tell(watch.Event{Type: watch.Deleted, Object: beat("gns-n2")})
	a.mu.Unlock()
	p := a.addPod("p")
	if err := l.Take(t.Context(), "n1", []Claimant{claim(p, "g0")}); err != nil {
		t.Fatal(err)
	}
	if name := <-changed; name != "n1" {
		t.Errorf("heard of %s", name)
	}
	if report := l.Compare(t.Context()); report.Deleted != 0 || len(report.Errors) != 0 {
		t.Errorf("got %+v", report)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if lease := a.leases["gns-n1"]; lease == nil || len(lease.Annotations) != 0 || *lease.Spec.HolderIdentity != "n1" {
		t.Errorf("got %+v", lease)
	}
}

func TestFree(t *testing.T) {
	a := newAPI(t)
	l := a.locks("a", func(o *Options) { o.Every = time.Hour })
	run(t, l)
	var gone []types.UID
	for _, name := range []string{"p0", "p1", "p2", "p3"} {
		p := a.addPod(name)
		mustTake(t, l, "n1", claim(p, "g-"+name))
		if err := a.bind(p, "n1", "g-"+name); err != nil {
			t.Fatal(err)
		}
		if name != "p3" {
			a.dropPod(name)
		}
		gone = append(gone, p.UID)
	}
	writes := l.Stats().Writes
	for _, uid := range gone {
		l.Free("n1", uid) // p3 too, which lives
	}
	eventually(t, "freed", func() bool { return len(a.owners("n1")) == 1 })
	if l.Stats().Writes != writes+1 {
		t.Errorf("%d writes", l.Stats().Writes-writes)
	}
	mustOwn(t, a, "n1", map[string]types.UID{"g-p3": gone[3]})
	l.Free("n1", "somebody-else")
	l.Free("n9", gone...)
}

// A pending pod's lock is freed only after no Binding from before can succeed.
func TestFreeOfAReservationStopsItsBinding(t *testing.T) {
	a := newAPI(t)
	l := a.locks("a", func(o *Options) { o.Every = time.Hour })
	run(t, l)
	p := a.addPod("p")
	mustTake(t, l, "n1", claim(p, "g0"))
	l.Free("n1", p.UID)
	eventually(t, "freed", func() bool { return len(a.owners("n1")) == 0 })
	if err := a.bind(p, "n1", "g0"); err == nil {
		t.Error("a Binding from before was accepted")
	}
	eventually(t, "counted", func() bool { return l.Stats().Repaired.Revoked == 1 })
	again := a.getPod("p")
	mustTake(t, l, "n1", claim(p, "g0"))
	if err := a.bind(again, "n1", "g0"); err != nil {
		t.Error(err)
	}
}

// A scheduler died after it had locked, before it bound: its successor waits a while, then revokes.
func TestReservationsOfTheDeadAreRevoked(t *testing.T) {
	a := newAPI(t)
	p := a.addPod("p")
	mustTake(t, a.locks("dead"), "n1", claim(p, "g0"))
	l := a.locks("a", func(o *Options) { o.Every, o.Patience = time.Hour, 100*time.Millisecond })
	begin := time.Now()
	run(t, l)
	eventually(t, "revoked", func() bool { return len(a.owners("n1")) == 0 })
	if took := time.Since(begin); took < 100*time.Millisecond {
		t.Errorf("after %s", took)
	}
}

// The holder comes back between the mark and the end of a revocation: then it keeps its lock.
func TestTakenAgainWhileBeingRevoked(t *testing.T) {
	a := newAPI(t)
	holder := a.locks("holder")
	p := a.addPod("p")
	mustTake(t, holder, "n1", claim(p, "g0"))
	var again *v1.Pod
	client := a.client()
	client.PrependReactor("patch", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		handled, object, err := a.react(action)
		if again == nil {
			again = a.getPod("p")
			mustTake(t, holder, "n1", claim(p, "g0"))
		}
		return handled, object, err
	})
	l := a.locks("a", func(o *Options) { o.Patience = time.Nanosecond })
	l.client = client
	n, _ := l.enter(t.Context(), "n1")
	_, _, _ = l.read(t.Context(), n)
	l.leave(n)
	time.Sleep(time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	report := l.Compare(ctx)
	if again == nil {
		t.Fatalf("nothing was revoked: %+v", report)
	}
	free := len(a.owners("n1")) == 0
	if bound := a.bind(again, "n1", "g0") == nil; free && bound {
		t.Error("the GPU was freed, and its Binding accepted")
	}
}

// The pod is replaced by another of its name just before it would be fenced.
func TestReplacedWhileBeingRevoked(t *testing.T) {
	a := newAPI(t)
	p := a.addPod("p")
	mustTake(t, a.locks("dead"), "n1", claim(p, "g0"))
	client := a.client()
	client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		a.replacePod("p")
		return false, nil, nil
	})
	l := a.locks("a", func(o *Options) { o.Every, o.Patience = time.Hour, time.Millisecond })
	l.client = client
	run(t, l)
	eventually(t, "freed", func() bool { return len(a.owners("n1")) == 0 })
	eventually(t, "counted", func() bool { return l.Stats().Repaired.Freed == 1 })
}

func TestStandbysTidyNothing(t *testing.T) {
	a := newAPI(t)
	p := a.addPod("p")
	mustTake(t, a.locks("other"), "n1", claim(p, "g0"))
	a.dropPod("p")
	l := a.locks("a", func(o *Options) { o.Every, o.Leading = 5*time.Millisecond, func() bool { return false } })
	run(t, l)
	l.Free("n1", p.UID)
	time.Sleep(100 * time.Millisecond)
	mustOwn(t, a, "n1", map[string]types.UID{"g0": p.UID})
	if got := l.Owners("n1"); got["g0"] != p.UID || len(l.Owners("n2")) != 0 {
		t.Errorf("owners %v", got)
	}
}

func TestLeasesOfNodesThatAreGone(t *testing.T) {
	for _, c := range []struct {
		name                  string
		cached, there, living bool
		left                  bool
	}{
		{"gone", false, false, false, false},
		{"gone, with a pod", false, false, true, true},
		{"only the cache lost it", false, true, false, true},
		{"there", true, true, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAPI(t)
			l := a.locks("a", func(o *Options) { o.HasNode = func(string) bool { return c.cached } })
			a.nodes["n1"] = c.there
			p := a.addPod("p")
			mustTake(t, l, "n1", claim(p, "g0"))
			_ = a.bind(p, "n1", "g0")
			if !c.living {
				a.dropPod("p")
			}
			l.Compare(t.Context())
			if left := a.leases["n1"] != nil; left != c.left {
				t.Errorf("the Lease is there: %v", left)
			}
			if !c.left && len(l.nodes) != 0 {
				t.Errorf("%d nodes are remembered", len(l.nodes))
			}
		})
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	a := newAPI(t)
	l := a.locks("a")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- l.Run(ctx) }()
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("still running")
	}
}

func TestNewRefusesBadOptions(t *testing.T) {
	a := newAPI(t)
	if _, err := New(nil, Options{Holder: "a"}); err == nil {
		t.Error("no client")
	}
	for _, o := range []Options{{}, {Holder: "a", Every: -1}, {Holder: "a", Patience: -1}} {
		if _, err := New(a.client(), o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}

// What is written on a pod is its author's word. It counts as far as the Lease or the pod's limits let it.
func TestCompareKnowsForgedPods(t *testing.T) {
	all := []string{"g0", "g1", "g2", "g3", "g4", "g5", "g6", "g7"}
	everything := func(uid types.UID) map[string]types.UID {
		owners := map[string]types.UID{}
		for _, gpu := range all {
			owners[gpu] = uid
		}
		return owners
	}
	for _, c := range []struct {
		name  string
		make  func(a *api, l *Locks, p, q *v1.Pod)
		bound func(p, q *v1.Pod) []Holding // as the mirror knows them
		want  Repairs
		own   func(p, q *v1.Pod) map[string]types.UID
	}{
		{"nobody pending is revoked for it", func(a *api, l *Locks, p, q *v1.Pod) {
			mustTake(t, a.locks("b"), "n1", claim(p, "g0"))
			_ = a.bind(q, "n1", all...)
		}, func(p, q *v1.Pod) []Holding { return []Holding{{"n1", claim(q, "g0")}} },
			Repairs{}, func(p, q *v1.Pod) map[string]types.UID { return map[string]types.UID{"g0": p.UID} }},
		{"what it has entered goes", func(a *api, l *Locks, p, q *v1.Pod) {
			mustTake(t, a.locks("b"), "n1", claim(q, all...))
			_ = a.bind(q, "n1", all...)
		}, func(p, q *v1.Pod) []Holding { return nil },
			Repairs{Freed: 8}, func(p, q *v1.Pod) map[string]types.UID { return map[string]types.UID{} }},
		{"rewritten to another GPU", func(a *api, l *Locks, p, q *v1.Pod) {
			mustTake(t, l, "n1", claim(p, "g3"))
			_ = a.bind(p, "n1", "g3")
			a.changePod("p", func(p *v1.Pod) { p.Annotations[workload.Allocated] = "g5" })
		}, func(p, q *v1.Pod) []Holding { return []Holding{{"n1", claim(p, "g3")}} },
			Repairs{}, func(p, q *v1.Pod) map[string]types.UID { return map[string]types.UID{"g3": p.UID} }},
		{"rewritten, and not in the cache yet", func(a *api, l *Locks, p, q *v1.Pod) {
			mustTake(t, a.locks("b"), "n1", claim(p, "g3"))
			_ = a.bind(p, "n1", "g3")
			a.changePod("p", func(p *v1.Pod) { p.Annotations[workload.Allocated] = "g5,g6" })
		}, func(p, q *v1.Pod) []Holding { return nil },
			Repairs{}, func(p, q *v1.Pod) map[string]types.UID { return map[string]types.UID{"g3": p.UID} }},
		{"an earlier plan's GPU is free", func(a *api, l *Locks, p, q *v1.Pod) {
			mustTake(t, a.locks("b"), "n1", claim(p, "g3"))
			mustTake(t, a.locks("c"), "n1", claim(p, "g4"))
			_ = a.bind(p, "n1", "g4")
		}, func(p, q *v1.Pod) []Holding { return []Holding{{"n1", claim(p, "g4")}} },
			Repairs{Freed: 1}, func(p, q *v1.Pod) map[string]types.UID { return map[string]types.UID{"g4": p.UID} }},
		{"as many as it has", func(a *api, l *Locks, p, q *v1.Pod) { _ = a.bind(p, "n1", "g3") },
			func(p, q *v1.Pod) []Holding { return []Holding{{"n1", claim(p, "g3")}} },
			Repairs{Entered: 1}, func(p, q *v1.Pod) map[string]types.UID { return map[string]types.UID{"g3": p.UID} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAPI(t)
			p, q := a.addPod("p"), a.addPod("q")
			l := a.locks("a", func(o *Options) {
				o.GPUs = func(*v1.Pod) int { return 1 }
				o.Bound = func() []Holding { return c.bound(p, q) }
			})
			c.make(a, l, p, q)
			n, err := l.enter(t.Context(), "n1")
			if err != nil {
				t.Fatal(err)
			}
			_, _, _ = l.read(t.Context(), n)
			l.leave(n)
			if report := l.Compare(t.Context()); report.Repairs != c.want || len(report.Errors) != 0 {
				t.Errorf("report %+v, want %+v", report, c.want)
			}
			mustOwn(t, a, "n1", c.own(p, q))
		})
	}
	// One that was believed once: whoever wants the GPUs need not wait for a comparison.
	a := newAPI(t)
	p, q := a.addPod("p"), a.addPod("q")
	mustTake(t, a.locks("b"), "n1", claim(q, all...))
	_ = a.bind(q, "n1", all...)
	mustOwn(t, a, "n1", everything(q.UID))
	l := a.locks("a", func(o *Options) { o.GPUs = func(*v1.Pod) int { return 1 } })
	mustTake(t, l, "n1", claim(p, "g0"))
	mustOwn(t, a, "n1", map[string]types.UID{"g0": p.UID})
}
