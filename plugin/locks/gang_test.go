// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

const lease = "gang-of-p"

// gangLocks of one more scheduler: pods are in the gang of their name's first letter.
func (a *api) gangLocks(name string, change ...func(*Options)) *Locks {
	l := a.locks(name, append([]func(*Options){func(o *Options) {
		o.GangOf = func(pod *v1.Pod) (string, bool) { return "gang-of-" + pod.Name[:1], true }
	}}, change...)...)
	l.wait = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	return l
}

func hasty(o *Options) { o.GangPatience = time.Nanosecond }

func gangP(bound ...*v1.Pod) Gang {
	g := Gang{Lease: lease, Namespace: "ml", Name: "p", Bound: map[types.UID]bool{}}
	for _, pod := range bound {
		g.Bound[pod.UID] = true
	}
	return g
}

func mustTakeGang(t *testing.T, l *Locks, g Gang) map[types.UID]string {
	t.Helper()
	versions, err := l.TakeGang(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	return versions
}

func TestGangLeaseNames(t *testing.T) {
	names := map[string]bool{}
	for _, words := range [][]string{{"Job", "ml", "train", "u1"}, {"Job", "ml", "train", "u2"}, {"PodGroup", "ml", "train", ""}, {"Job", "m", "ltrain", "u1"}} {
		name := GangLease(words...)
		if len(name) != len("gang-")+40 || names[name] {
			t.Errorf("%v: %s", words, name)
		}
		names[name] = true
	}
}

// A plan costs one write, and nothing is read for it.
func TestOneWritePerPlanOfAGang(t *testing.T) {
	a := newAPI(t)
	l := a.gangLocks("a")
	a.addPod("p1")
	mustTakeGang(t, l, gangP())
	mustTakeGang(t, l, gangP())
	if a.count("create leases") != 1 || a.count("update leases") != 1 || a.count("get leases") != 0 || a.count("list pods") != 0 || a.count("patch pods") != 0 {
		t.Errorf("calls: %v", a.calls)
	}
	if err := l.CheckGang(t.Context(), lease); err != nil {
		t.Error(err)
	}
	if got := a.leases[lease]; got.Annotations[GangAnnotation] != "ml/p" || got.Labels[Label] != "gang" || holder(got) != l.Identity() {
		t.Errorf("the Lease is %+v", got)
	}
}

// What was prepared before another took the gang over does not get through, neither at once nor when it is sent again.
func TestAGangThatIsTakenOver(t *testing.T) {
	a := newAPI(t)
	old, next := a.gangLocks("a"), a.gangLocks("b", hasty)
	p, q, r := a.addPod("p1"), a.addPod("p2"), a.addPod("r1")
	mustTakeGang(t, old, gangP())
	versions := mustTakeGang(t, next, gangP())
	if err := a.bind(p, "n1", "g0"); !apierrors.IsConflict(err) {
		t.Errorf("the old leader's Binding: %v, want a conflict", err)
	}
	held := &GangHeldError{}
	if err := old.CheckGang(t.Context(), lease); !errors.As(err, &held) || held.Gang != "ml/p" || held.Holder != next.Identity() {
		t.Errorf("the old leader asks again: %v, want that %s has it", err, next.Identity())
	}
	if len(versions) != 2 || versions[r.UID] != "" {
		t.Errorf("fenced are %v, want the two pods of the gang", versions)
	}
	q.ResourceVersion = versions[q.UID]
	if err := a.bind(q, "n2", "g0"); err != nil {
		t.Errorf("the new leader's Binding: %v", err)
	}
	if next.Stats().Takeovers != 1 || old.Stats().Takeovers != 0 {
		t.Errorf("takeovers: %d and %d", old.Stats().Takeovers, next.Stats().Takeovers)
	}
}

// A plan that was made without knowing what is bound is refused, until it is known.
// A takeover that ran out of time goes on where it was: what was fenced is not fenced again.
func TestATakeoverGoesOn(t *testing.T) {
	a := newAPI(t)
	pending := []*v1.Pod{a.addPod("p1"), a.addPod("p2"), a.addPod("p3")}
	mustTakeGang(t, a.gangLocks("b"), gangP())
	next := a.gangLocks("a", hasty)
	bound := a.addPod("p4")
	a.changePod("p4", func(pod *v1.Pod) { pod.Spec.NodeName = "n" })
	patches := func() int { return a.count("patch pods") }
	if _, err := next.TakeGang(t.Context(), gangP()); err == nil {
		t.Fatal("a bound member that the plan does not know")
	}
	before := patches()
	next.rememberFences(lease, map[types.UID]string{pending[0].UID: "", pending[1].UID: ""})
	versions := mustTakeGang(t, next, gangP(bound))
	if len(versions) != 3 || patches()-before != 1 {
		t.Errorf("%d versions, %d patches, want 3 and 1; calls: %v", len(versions), patches()-before, a.calls)
	}
	for _, pod := range pending {
		if versions[pod.UID] != a.getPod(pod.Name).ResourceVersion {
			t.Errorf("%s: version %q is not the newest", pod.Name, versions[pod.UID])
		}
	}
}

func TestAGangWithMembersThatThePlanDoesNotKnow(t *testing.T) {
	a := newAPI(t)
	old, next := a.gangLocks("a"), a.gangLocks("b", hasty)
	p := a.addPod("p1")
	a.addPod("p2")
	mustTakeGang(t, old, gangP())
	if err := a.bind(p, "n1", "g0"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time it holds the Lease itself
		moved := &GangMovedError{}
		if _, err := next.TakeGang(t.Context(), gangP()); !errors.As(err, &moved) || moved.Pod != "p1" || moved.Node != "n1" {
			t.Fatalf("got %v, want that p1 is on n1", err)
		}
	}
	mustTakeGang(t, next, gangP(p))
	lists := a.count("list pods")
	mustTakeGang(t, next, gangP(p))
	if a.count("list pods") != lists {
		t.Error("what it knows by now is read again")
	}
}

func TestAGangOfAnotherThatIsAlive(t *testing.T) {
	a := newAPI(t)
	now := time.Now()
	old, next := a.gangLocks("a"), a.gangLocks("b", func(o *Options) { o.Now = func() time.Time { return now } })
	mustTakeGang(t, old, gangP())
	next.wait = func(context.Context, time.Duration) error {
		mustTakeGang(t, old, gangP())
		return nil
	}
	held := &GangHeldError{}
	if _, err := next.TakeGang(t.Context(), gangP()); !errors.As(err, &held) || held.Holder != old.Identity() {
		t.Errorf("got %v, want that %s has it", err, old.Identity())
	}
	// One that does not stir is waited for, once.
	next.wait = func(_ context.Context, length time.Duration) error {
		now = now.Add(length)
		return nil
	}
	before := now
	mustTakeGang(t, next, gangP())
	if now.Sub(before) != gangPatience {
		t.Errorf("waited %s, want %s", now.Sub(before), gangPatience)
	}
}

func TestSweepGangs(t *testing.T) {
	none := func() map[string]bool { return nil }
	for _, c := range []struct {
		name    string
		prepare func(a *api, l *Locks)
		living  map[string]bool
		left    bool
		lists   int
	}{
		{"own, gone", func(_ *api, l *Locks) { mustTakeGang(t, l, gangP()) }, nil, false, 0},
		{"own, living", func(_ *api, l *Locks) { mustTakeGang(t, l, gangP()) }, map[string]bool{lease: true}, true, 0},
		{"another's, gone", func(a *api, _ *Locks) { mustTakeGang(t, a.gangLocks("b"), gangP()) }, nil, false, 1},
		{"another's, with a pod that is not known here", func(a *api, _ *Locks) {
			a.addPod("p1")
			mustTakeGang(t, a.gangLocks("b"), gangP())
		}, nil, true, 1},
		{"another's, with a pod whose gang nobody knows yet", func(a *api, l *Locks) {
			a.addPod("x1")
			l.opts.GangOf = func(*v1.Pod) (string, bool) { return "", false }
			mustTakeGang(t, a.gangLocks("b"), gangP())
		}, nil, true, 1},
		{"another's, with a pod that has ended", func(a *api, _ *Locks) {
			a.addPod("p1")
			a.changePod("p1", func(pod *v1.Pod) { pod.Status.Phase = v1.PodSucceeded })
			mustTakeGang(t, a.gangLocks("b"), gangP())
		}, nil, false, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAPI(t)
			l := a.gangLocks("a", hasty)
			c.prepare(a, l)
			l.observeGang(a.leases[lease].DeepCopy()) // what the watch would do
			if err := l.SweepGangs(t.Context(), func() map[string]bool { return c.living }); err != nil {
				t.Fatal(err)
			}
			if left := a.leases[lease] != nil; left != c.left || a.count("list pods") != c.lists {
				t.Errorf("left: %v, calls: %v", left, a.calls)
			}
		})
	}
	a := newAPI(t)
	l := a.gangLocks("a")
	mustTakeGang(t, l, gangP())
	mustTakeGang(t, a.gangLocks("b", hasty), gangP()) // the watch has not told yet
	if err := l.SweepGangs(t.Context(), none); err != nil || a.leases[lease] == nil {
		t.Errorf("a Lease that another has taken meanwhile was deleted: %v", err)
	}
}

// Answers that are lost, and writes that arrive late, leave nobody with a gang that another binds.
func TestAGangWhoseAnswersAreLost(t *testing.T) {
	for _, kind := range []fault{failed, dropped, late} {
		for _, taken := range []bool{false, true} {
			a := newAPI(t)
			l := a.gangLocks("a")
			if taken {
				mustTakeGang(t, l, gangP())
			}
			faults := 1
			a.set(func(verb, resource, _ string) fault {
				if resource == "leases" && verb != "get" && faults > 0 {
					faults--
					return kind
				}
				return none
			})
			mustTakeGang(t, l, gangP())
			a.land()
			if err := l.CheckGang(t.Context(), lease); err != nil {
				t.Errorf("fault %d, taken before: %v: %v", kind, taken, err)
			}
		}
	}
}

// Leaders without patience race for one gang after the other, with old copies of its pods and an API server that loses
// answers. Each plans a gang of which it knows nothing on nodes of its own; whoever knows a bound member goes where that
// is. In the end every gang is whole and in one place.
func TestNoGangInTwoPlaces(t *testing.T) {
	const leaders, gangs, size = 3, 60, 4
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	a := newAPI(t)
	dice := rand.New(rand.NewPCG(seed, 0))
	a.set(func(_, resource, _ string) fault { // under the fake's lock
		switch dice.IntN(25) {
		case 0:
			return failed
		case 1:
			if resource == "leases" {
				return dropped
			}
		}
		return none
	})
	takeovers := uint64(0)
	for number := range gangs {
		name := fmt.Sprintf("%c", 'a'+number%26)
		var pods []string
		for i := range size {
			pods = append(pods, fmt.Sprintf("%s%d-%d", name, number, i))
			a.addPod(pods[i])
		}
		g := Gang{Lease: fmt.Sprintf("gang-of-%d", number), Namespace: "ml", Name: name}
		var group sync.WaitGroup
		var all []*Locks
		for i := range leaders {
			l := a.gangLocks(fmt.Sprintf("leader-%d", i), hasty, func(o *Options) {
				o.GangOf = func(pod *v1.Pod) (string, bool) {
					if slices.Contains(pods, pod.Name) {
						return g.Lease, true
					}
					return "", true
				}
			})
			all = append(all, l)
			r := &gangRacer{a: a, l: l, gang: g, pods: pods, home: fmt.Sprintf("home-%d", i), dice: rand.New(rand.NewPCG(seed, uint64(number*leaders+i+1)))}
			group.Go(func() { r.run(t) })
		}
		group.Wait()
		for _, l := range all {
			takeovers += l.Stats().Takeovers
		}
		homes := map[string]bool{}
		for _, pod := range pods {
			homes[a.getPod(pod).Spec.NodeName] = true
		}
		if len(homes) != 1 || homes[""] {
			t.Fatalf("gang %d is in %v", number, homes)
		}
	}
	t.Logf("%d takeovers", takeovers)
	if takeovers == 0 {
		t.Error("nobody ever took a gang over")
	}
}

// gangRacer is one leader: its copy of the gang's pods is of some moment that has passed.
type gangRacer struct {
	a    *api
	l    *Locks
	gang Gang
	pods []string
	home string
	dice *rand.Rand
}

func (r *gangRacer) run(t *testing.T) {
	var old []*v1.Pod
	for range 2000 {
		if r.dice.IntN(3) > 0 || old == nil {
			old = r.look()
		}
		if r.try(t.Context(), old) {
			return
		}
	}
	t.Error("a leader never came to an end")
}

func (r *gangRacer) look() (pods []*v1.Pod) {
	for _, name := range r.pods {
		pods = append(pods, r.a.getPod(name))
	}
	return pods
}

// try is one plan; true: it knows that all are bound.
func (r *gangRacer) try(ctx context.Context, pods []*v1.Pod) bool {
	g, home := r.gang, r.home
	g.Bound = map[types.UID]bool{}
	for _, pod := range pods {
		if pod.Spec.NodeName != "" {
			g.Bound[pod.UID], home = true, pod.Spec.NodeName
		}
	}
	if len(g.Bound) == len(pods) {
		return true
	}
	versions, err := r.l.TakeGang(ctx, g)
	if err != nil {
		return false
	}
	for i, pod := range pods {
		if pod.Spec.NodeName != "" {
			continue
		}
		switch r.dice.IntN(8) {
		case 0:
			return false // it goes on with something else
		case 1:
			time.Sleep(time.Duration(r.dice.IntN(200)) * time.Microsecond)
		}
		pod := pod.DeepCopy()
		if version := versions[pod.UID]; version != "" {
			pod.ResourceVersion = version
		}
		gpu := strings.Join([]string{home, pod.Name}, "-")
		if err := r.a.bind(pod, home, gpu); apierrors.IsConflict(err) {
			live := r.a.getPod(r.pods[i])
			if live.Spec.NodeName == "" && r.l.CheckGang(ctx, g.Lease) == nil {
				_ = r.a.bind(live, home, gpu)
			}
		}
	}
	return false
}
