// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func mustTake(t *testing.T, l *Locks, node string, want ...Claimant) {
	t.Helper()
	if err := l.Take(t.Context(), node, want); err != nil {
		t.Fatal(err)
	}
}

func mustOwn(t *testing.T, a *api, node string, want map[string]types.UID) {
	t.Helper()
	if got := a.owners(node); !maps.Equal(got, want) {
		t.Fatalf("owners of %s are %v, want %v", node, got, want)
	}
}

func TestOneWritePerNodeAndGang(t *testing.T) {
	a := newAPI(t)
	l := a.locks("a")
	p, q := a.addPod("p"), a.addPod("q")
	mustTake(t, l, "n1", claim(p, "g0", "g1"), claim(q, "g2"))
	mustOwn(t, a, "n1", map[string]types.UID{"g0": p.UID, "g1": p.UID, "g2": q.UID})
	lease := a.leases["n1"]
	if got, want := lease.Annotations[OwnersAnnotation], fmt.Sprintf(`{"g0":"%s","g1":"%s","g2":"%s"}`, p.UID, p.UID, q.UID); got != want {
		t.Errorf("annotation is %s, want %s", got, want)
	}
	if *lease.Spec.HolderIdentity != l.Identity() || !strings.HasPrefix(l.Identity(), "a_") || lease.Labels[Label] == "" {
		t.Errorf("holder %s, labels %v", *lease.Spec.HolderIdentity, lease.Labels)
	}
	r := a.addPod("r")
	mustTake(t, l, "n1", claim(r, "g3")) // from what the last write has shown
	if a.count("create leases") != 1 || a.count("update leases") != 1 || a.count("get leases") != 1 || a.count("get pods") != 0 {
		t.Errorf("calls: %v", a.calls)
	}
}

func TestReentrantForItsOwner(t *testing.T) {
	a := newAPI(t)
	l := a.locks("a")
	p := a.addPod("p")
	mustTake(t, l, "n1", claim(p, "g0"))
	writes := l.Stats().Writes
	mustTake(t, l, "n1", claim(p, "g0"))
	if l.Stats().Writes != writes {
		t.Error("taking again has written again")
	}
	// Another scheduler may come for the same pod: from then on neither may give it back alone.
	other := a.locks("b")
	mustTake(t, other, "n1", claim(p, "g0"))
	if by := parse(a.leases["n1"]).pods[p.UID].By; by != "" {
		t.Errorf("taken by %q, want nobody in particular", by)
	}
}

func TestHeld(t *testing.T) {
	finish := func(phase v1.PodPhase) func(*v1.Pod) { return func(p *v1.Pod) { p.Status.Phase = phase } }
	for _, c := range []struct {
		name    string
		become  func(a *api, owner *v1.Pod)
		held    bool
		pending bool
	}{
		{"pending", func(*api, *v1.Pod) {}, true, true},
		{"bound there", func(a *api, p *v1.Pod) { _ = a.bind(p, "n1", "g0") }, true, false},
		{"bound there without saying to what", func(a *api, p *v1.Pod) { a.changePod("p", func(p *v1.Pod) { p.Spec.NodeName = "n1" }) }, true, false},
		{"bound and being deleted", func(a *api, p *v1.Pod) {
			_ = a.bind(p, "n1", "g0")
			a.changePod("p", func(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{} })
		}, true, false},
		{"pending and being deleted", func(a *api, p *v1.Pod) { a.changePod("p", func(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{} }) }, false, false},
		{"bound there, and rewritten", func(a *api, p *v1.Pod) { _ = a.bind(p, "n1", "g5") }, true, false},
		{"bound elsewhere", func(a *api, p *v1.Pod) { _ = a.bind(p, "n2", "g0") }, false, false},
		{"succeeded", func(a *api, p *v1.Pod) { a.changePod("p", finish(v1.PodSucceeded)) }, false, false},
		{"failed", func(a *api, p *v1.Pod) { a.changePod("p", finish(v1.PodFailed)) }, false, false},
		{"gone", func(a *api, p *v1.Pod) { a.dropPod("p") }, false, false},
		{"another pod of that name", func(a *api, p *v1.Pod) { a.dropPod("p"); a.addPod("p") }, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAPI(t)
			p, q := a.addPod("p"), a.addPod("q")
			mustTake(t, a.locks("a"), "n1", claim(p, "g0"))
			c.become(a, p)
			told := 0
			l := a.locks("b", func(o *Options) { o.OnConflict = func(*HeldError) { told++ } })
			err := l.Take(t.Context(), "n1", []Claimant{claim(q, "g0", "g1")})
			if !c.held {
				if err != nil {
					t.Fatal(err)
				}
				mustOwn(t, a, "n1", map[string]types.UID{"g0": q.UID, "g1": q.UID})
				return
			}
			var held *HeldError
			if !errors.As(err, &held) || *held != (HeldError{"n1", "g0", q.UID, p.UID, "ml/p", c.pending}) {
				t.Fatalf("got %v", err)
			}
			if told != 1 || l.Stats().Conflicts != 1 {
				t.Errorf("told %d times, counted %d", told, l.Stats().Conflicts)
			}
			mustOwn(t, a, "n1", map[string]types.UID{"g0": p.UID}) // all or nothing
		})
	}
}

// What the Lease has entered for a plan that came to nothing is free, once the pod is bound to what a later plan has locked.
func TestTheLockOfAnEarlierPlanIsNoObstacle(t *testing.T) {
	a := newAPI(t)
	p, q := a.addPod("p"), a.addPod("q")
	mustTake(t, a.locks("a"), "n1", claim(p, "g0"))
	mustTake(t, a.locks("b"), "n1", claim(p, "g5"))
	if err := a.bind(p, "n1", "g5"); err != nil {
		t.Fatal(err)
	}
	mustTake(t, a.locks("c"), "n1", claim(q, "g0", "g1"))
	mustOwn(t, a, "n1", map[string]types.UID{"g0": q.UID, "g1": q.UID, "g5": p.UID})
}

// An owner without a note cannot be looked up: it is honoured, and Compare finds out.
func TestAnOwnerWithoutANameIsHonoured(t *testing.T) {
	a := newAPI(t)
	p, q := a.addPod("p"), a.addPod("q")
	l := a.locks("a")
	mustTake(t, l, "n1", claim(p, "g0"))
	a.edit("n1", func(lease *coordinationv1.Lease) {
		lease.Annotations[OwnersAnnotation] = `{"g0":"joe","g1":"` + string(p.UID) + `"}`
		delete(lease.Annotations, PodsAnnotation)
	})
	for _, gpu := range []string{"g0", "g1"} {
		var held *HeldError
		if err := l.Take(t.Context(), "n1", []Claimant{claim(q, gpu)}); !errors.As(err, &held) {
			t.Fatalf("got %v", err)
		}
	}
	l.Compare(t.Context())
	mustTake(t, l, "n1", claim(q, "g0"))
	mustOwn(t, a, "n1", map[string]types.UID{"g0": q.UID, "g1": p.UID})
}

// A cache that knows the pod under another name wins over the Lease's note.
func TestForgedNameDoesNotKill(t *testing.T) {
	a := newAPI(t)
	p, q := a.addPod("p"), a.addPod("q")
	l := a.locks("a", func(o *Options) {
		o.Find = func(uid types.UID) (types.NamespacedName, bool) {
			return types.NamespacedName{Namespace: "ml", Name: "p"}, uid == p.UID
		}
	})
	mustTake(t, l, "n1", claim(p, "g0"))
	a.edit("n1", func(lease *coordinationv1.Lease) {
		lease.Annotations[PodsAnnotation] = strings.ReplaceAll(lease.Annotations[PodsAnnotation], "ml/p", "ml/nobody")
	})
	var held *HeldError
	if err := l.Take(t.Context(), "n1", []Claimant{claim(q, "g0")}); !errors.As(err, &held) {
		t.Fatalf("got %v", err)
	}
}

// once lets the first call with that verb and resource fail.
func once(verb, resource string, kind fault) func(string, string, string) fault {
	calls := 0
	return func(v, r, _ string) fault {
		if v == verb && r == resource {
			if calls++; calls == 1 {
				return kind
			}
		}
		return none
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name, verb, resource string
		kind                 fault
	}{
		{"500 on create", "create", "leases", failed},
		{"reply to create lost", "create", "leases", dropped},
		{"500 on update", "update", "leases", failed},
		{"reply to update lost", "update", "leases", dropped},
		{"update still under way", "update", "leases", late},
		{"500 on reading the Lease", "get", "leases", failed},
		{"500 on reading the owner", "get", "pods", failed},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAPI(t)
			p, q := a.addPod("p"), a.addPod("q")
			if c.verb != "create" {
				mustTake(t, a.locks("before"), "n1", claim(p, "g0"))
				a.dropPod("p")
			}
			a.set(once(c.verb, c.resource, c.kind))
			l := a.locks("a")
			mustTake(t, l, "n1", claim(q, "g0", "g1"))
			a.land()
			mustOwn(t, a, "n1", map[string]types.UID{"g0": q.UID, "g1": q.UID})
			if l.Stats().Retries == 0 {
				t.Error("no retry was counted")
			}
			if err := l.TakeAll(t.Context(), map[string][]Claimant{"n1": {claim(q, "g1")}, "n2": {claim(q, "bad id")}}); err == nil {
				t.Error("a bad id was taken")
			}
			mustOwn(t, a, "n1", map[string]types.UID{"g0": q.UID, "g1": q.UID}) // held before: not given back
		})
	}
}

// A free that is still under way must not take away what was taken again meanwhile.
func TestALateFreeHitsNothing(t *testing.T) {
	a := newAPI(t)
	p := a.addPod("p")
	l := a.locks("a")
	mustTake(t, l, "n1", claim(p, "g0"))
	a.set(func(verb, resource, _ string) fault {
		if verb == "update" && resource == "leases" {
			return late
		}
		return none
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	l.giveBack(ctx, "n1", []types.UID{p.UID})
	cancel()
	a.set(nil)
	mustTake(t, l, "n1", claim(p, "g0"))
	a.land()
	mustOwn(t, a, "n1", map[string]types.UID{"g0": p.UID})
}

func TestRefusalsEndAtOnce(t *testing.T) {
	a := newAPI(t)
	p := a.addPod("p")
	l := a.locks("a")
	client := a.client()
	for _, err := range []error{
		apierrors.NewForbidden(coordinationv1.Resource("leases"), "n1", errors.New("no")),
		apierrors.NewNotFound(v1.Resource("namespaces"), "frond-system"),
	} {
		client.PrependReactor("create", "leases", answer(err))
		l.client = client
		if got := l.Take(t.Context(), "n1", []Claimant{claim(p, "g0")}); got == nil || !apierrors.IsForbidden(got) {
			t.Errorf("got %v", got)
		}
	}
}

func TestTheContextEndsATake(t *testing.T) {
	a := newAPI(t)
	p := a.addPod("p")
	a.set(func(_, resource, _ string) fault {
		if resource == "leases" {
			return failed
		}
		return none
	})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begin := time.Now()
	err := a.locks("a").Take(ctx, "n1", []Claimant{claim(p, "g0")})
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > time.Second {
		t.Fatalf("after %s: %v", time.Since(begin), err)
	}
}

func TestTakeAllGivesBack(t *testing.T) {
	a := newAPI(t)
	p, q := a.addPod("p"), a.addPod("q")
	l := a.locks("a")
	mustTake(t, a.locks("b"), "n3", claim(q, "g0"))
	mustTake(t, l, "n1", claim(p, "g0")) // before: stays
	want := map[string][]Claimant{}
	for i := 1; i <= 100; i++ {
		want[fmt.Sprintf("n%d", i)] = []Claimant{claim(p, "g0")}
	}
	var held *HeldError
	if err := l.TakeAll(t.Context(), want); !errors.As(err, &held) || held.Node != "n3" {
		t.Fatalf("got %v", err)
	}
	for i := 1; i <= 100; i++ {
		node := fmt.Sprintf("n%d", i)
		switch i {
		case 1:
			mustOwn(t, a, node, map[string]types.UID{"g0": p.UID})
		case 3:
			mustOwn(t, a, node, map[string]types.UID{"g0": q.UID})
		default:
			mustOwn(t, a, node, map[string]types.UID{})
		}
	}
	delete(want, "n3")
	if err := l.TakeAll(t.Context(), want); err != nil {
		t.Fatal(err)
	}
}

func TestBadClaims(t *testing.T) {
	a := newAPI(t)
	l := a.locks("a")
	good := claim(a.addPod("p"), "g0")
	change := func(f func(*Claimant)) []Claimant {
		c := good
		f(&c)
		return []Claimant{c}
	}
	for _, c := range []struct {
		want []Claimant
		text string
	}{
		{change(func(c *Claimant) { c.Pod = "" }), "no pod UID"},
		{change(func(c *Claimant) { c.Pod = "a b" }), "no pod UID"},
		{change(func(c *Claimant) { c.Name = "" }), "namespace and name"},
		{change(func(c *Claimant) { c.GPUs = nil }), "no GPUs"},
		{change(func(c *Claimant) { c.GPUs = []string{"a\nb"} }), "no GPU id"},
		{change(func(c *Claimant) { c.GPUs = []string{strings.Repeat("x", 254)} }), "no GPU id"},
		{change(func(c *Claimant) { c.GPUs = []string{"g1", "g1"} }), "asked for twice"},
	} {
		if err := l.Take(t.Context(), "n1", c.want); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%+v: got %v, want %q", c.want, err, c.text)
		}
	}
	if len(a.calls) != 0 {
		t.Errorf("calls: %v", a.calls)
	}
}
