// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	randomNodes = 3
	randomGPUs  = 4
	randomPods  = 12
)

// Several schedulers, none of which knows that it does not lead, lock and bind the same pods to random places, with a
// faulty API server, while pods end and come back, and schedulers die between any two steps. The judge is the fake API
// server itself: at every Binding it looks for GPUs with two living pods. Afterwards Leases and bound pods must agree.
func TestManyLeaders(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("FROND_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	rounds := 12
	if text := os.Getenv("FROND_ROUNDS"); text != "" {
		rounds, _ = strconv.Atoi(text)
	}
	for round := range rounds {
		seed := seed + uint64(round)
		t.Run(fmt.Sprint(seed), func(t *testing.T) { manyLeaders(t, seed) })
		if t.Failed() {
			t.Fatalf("repeat with FROND_SEED=%d", seed)
		}
	}
}

func manyLeaders(t *testing.T, seed uint64) {
	a := newAPI(t)
	dice := rand.New(rand.NewPCG(seed, 1))
	badly := dice.IntN(2) == 0
	a.fault = func(verb, resource, _ string) fault {
		if !badly || verb == "list" || dice.IntN(6) > 0 { // under the fake's lock
			return none
		}
		kind := fault(1 + dice.IntN(3))
		if kind == late && verb == "get" {
			kind = failed
		}
		return kind
	}
	for i := range randomPods {
		a.addPod(fmt.Sprintf("p%d", i))
	}
	ctx, stop := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer stop()
	var group sync.WaitGroup
	var bound, tried sync.Map
	for i := range 4 {
		group.Go(func() {
			dice := rand.New(rand.NewPCG(seed, uint64(10+i)))
			for life := 0; ctx.Err() == nil; life++ {
				one := &scheduler{a: a, t: t, dice: dice, bound: &bound, tried: &tried}
				one.live(ctx, fmt.Sprintf("s%d-%d", i, life))
			}
		})
	}
	group.Go(func() { chaos(ctx, a, rand.New(rand.NewPCG(seed, 2))) })
	group.Wait()

	a.set(nil)
	a.land()
	if len(a.doubles) > 0 {
		t.Fatalf("bound twice: %v", a.doubles)
	}
	last := a.locks("last", func(o *Options) { o.Patience = time.Nanosecond })
	run(t, last)
	for range 2 {
		if report := last.Compare(t.Context()); len(report.Errors) > 0 {
			t.Fatalf("%+v", report)
		}
	}
	want := map[string]map[string]string{}
	for _, h := range a.holdings() {
		if want[h.Node] == nil {
			want[h.Node] = map[string]string{}
		}
		for _, gpu := range h.GPUs {
			want[h.Node][gpu] = string(h.Pod)
		}
	}
	for i := range randomNodes {
		node := fmt.Sprintf("n%d", i)
		got := map[string]string{}
		for gpu, uid := range a.owners(node) {
			got[gpu] = string(uid)
		}
		if fmt.Sprint(got) != fmt.Sprint(want[node]) && len(got)+len(want[node]) > 0 {
			t.Errorf("%s: owners %v, bound %v", node, got, want[node])
		}
	}
	if size(&bound) == 0 || size(&tried) == 0 {
		t.Errorf("bound %d, refused %d: nothing was tested", size(&bound), size(&tried))
	}
}

func size(m *sync.Map) (count int) {
	m.Range(func(any, any) bool { count++; return true })
	return count
}

// chaos ends pods, and makes new ones of the same names.
func chaos(ctx context.Context, a *api, dice *rand.Rand) {
	for ctx.Err() == nil {
		time.Sleep(time.Duration(dice.IntN(5)) * time.Millisecond)
		name := fmt.Sprintf("p%d", dice.IntN(randomPods))
		switch dice.IntN(4) {
		case 0:
			a.replacePod(name)
		case 1:
			a.changePod(name, func(p *v1.Pod) {
				if p.Spec.NodeName != "" {
					p.Status.Phase = v1.PodSucceeded
				}
			})
		case 2:
			a.changePod(name, func(*v1.Pod) {}) // somebody writes a condition
		case 3:
			a.land()
		}
	}
}

type scheduler struct {
	a            *api
	t            *testing.T
	dice         *rand.Rand
	bound, tried *sync.Map
}

// live runs one process until it dies.
func (s *scheduler) live(ctx context.Context, name string) {
	patience := time.Duration(1+s.dice.IntN(20)) * time.Millisecond
	l := s.a.locks(name, func(o *Options) { o.Patience, o.Every = patience, 15*time.Millisecond })
	ctx, die := context.WithTimeout(ctx, time.Duration(20+s.dice.IntN(150))*time.Millisecond)
	defer die()
	var group sync.WaitGroup
	if s.dice.IntN(4) > 0 { // some have no cache at all
		group.Go(func() { _ = l.Run(ctx) })
	}
	for ctx.Err() == nil {
		s.gang(ctx, l)
	}
	group.Wait()
}

// gang locks one or two pods, on one or two nodes, and binds them one after the other.
func (s *scheduler) gang(ctx context.Context, l *Locks) {
	type place struct {
		pod  *v1.Pod
		node string
		gpus []string
	}
	var places []place
	want := map[string][]Claimant{}
	used := map[string]bool{}
	for range 1 + s.dice.IntN(2) {
		pod := s.a.getPod(fmt.Sprintf("p%d", s.dice.IntN(randomPods)))
		node := fmt.Sprintf("n%d", s.dice.IntN(randomNodes))
		if pod.Spec.NodeName != "" || sighted(pod, pod.UID).gone || used[pod.Name] {
			continue
		}
		var gpus []string
		for _, i := range s.dice.Perm(randomGPUs)[:1+s.dice.IntN(2)] {
			gpu := fmt.Sprintf("%s-gpu-%d", node, i)
			if used[gpu] {
				continue
			}
			used[gpu] = true
			gpus = append(gpus, gpu)
		}
		if len(gpus) == 0 {
			continue
		}
		used[pod.Name] = true
		places = append(places, place{pod, node, gpus})
		want[node] = append(want[node], claim(pod, gpus...))
	}
	if len(places) == 0 {
		time.Sleep(time.Millisecond)
		return
	}
	if err := l.TakeAll(ctx, want); err != nil {
		var held *HeldError
		if errors.As(err, &held) {
			s.tried.Store(held.Owner, true)
		} else if ctx.Err() == nil {
			s.t.Errorf("TakeAll: %v", err)
		}
		return
	}
	for _, p := range places {
		time.Sleep(time.Duration(s.dice.IntN(30)) * time.Millisecond) // longer than many have patience
		if s.dice.IntN(8) == 0 {
			l.Free(p.node, p.pod.UID)
			continue
		}
		err := s.a.bind(p.pod, p.node, p.gpus...)
		if apierrors.IsConflict(err) && s.dice.IntN(2) == 0 {
			live := s.a.getPod(p.pod.Name)
			claims := slices.DeleteFunc(slices.Clone(want[p.node]), func(c Claimant) bool { return c.Pod != p.pod.UID })
			if live.UID != p.pod.UID || l.Take(ctx, p.node, claims) != nil {
				continue
			}
			err = s.a.bind(live, p.node, p.gpus...)
		}
		if err == nil {
			s.bound.Store(p.pod.UID, true)
		} else {
			l.Free(p.node, p.pod.UID)
		}
	}
}
