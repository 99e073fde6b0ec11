// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/frond-scheduler/frond/plugin/locks"
	"github.com/frond-scheduler/frond/plugin/workload"
	"github.com/frond-scheduler/frond/test/harness"
)

const (
	raceNodes   = 4
	raceGPUs    = 8
	racePods    = 40
	raceLeaders = 4
	raceThreads = 4 // of each leader
)

// Leaders that know nothing of each other lock and bind the same pods at random places, with so little patience that
// they revoke each other's reservations all the time, while pods are deleted and made again. No GPU ever has two pods.
func TestNoGPUTwice(t *testing.T) {
	seed, length := uint64(time.Now().UnixNano()), 15*time.Second
	if text := os.Getenv("FROND_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	if text := os.Getenv("FROND_SECONDS"); text != "" {
		seconds, _ := strconv.Atoi(text)
		length = time.Duration(seconds) * time.Second
	}
	t.Logf("FROND_SEED=%d", seed)
	namespace := lab.Namespace(t)
	for i := range racePods {
		pod(t, namespace, fmt.Sprintf("p%d", i))
	}
	judge := newJudge(t, namespace)
	ctx, stop := context.WithTimeout(t.Context(), length)
	defer stop()
	var group sync.WaitGroup
	var leaders []*locks.Locks
	var binds, held, refused atomic.Int64
	for i := range raceLeaders {
		l := start(t, 1000, locks.Options{Holder: fmt.Sprintf("leader-%d", i), Bound: bound(namespace),
			Every: time.Second, Patience: time.Duration(20+40*i) * time.Millisecond})
		leaders = append(leaders, l)
		for j := range raceThreads {
			r := &racer{l: l, namespace: namespace, dice: rand.New(rand.NewPCG(seed, uint64(i*raceThreads+j))), binds: &binds, held: &held, refused: &refused}
			group.Go(func() { r.run(ctx, t) })
		}
	}
	group.Go(func() { churn(ctx, namespace, rand.New(rand.NewPCG(seed, 1000))) })
	group.Wait()
	judge.end(t)

	var all locks.Repairs
	for _, l := range leaders {
		stats := l.Stats()
		t.Logf("%s: %+v", l.Identity(), stats)
		all.Revoked += stats.Repaired.Revoked
		all.DoubleBooked += stats.Repaired.DoubleBooked
	}
	t.Logf("%d bound, %d refused by locks, %d Bindings refused by their resource version, %d revoked", binds.Load(), held.Load(), refused.Load(), all.Revoked)
	if binds.Load() < 20 || held.Load() < 20 || all.Revoked == 0 || all.DoubleBooked != 0 {
		t.Error("too little has happened, or too much")
	}
	// At rest the Leases say what is bound.
	harness.Eventually(t, 20*time.Second, func(context.Context) error {
		for i := 1; i <= raceNodes; i++ {
			pairs := map[int]string{}
			for _, h := range bound(namespace)() {
				for _, gpu := range h.GPUs {
					if h.Node == node(i) {
						pairs[harness.Number(gpu)] = fmt.Sprintf("%q:%q", gpu, h.Pod)
					}
				}
			}
			var texts []string
			for g := range raceGPUs {
				if pairs[g] != "" {
					texts = append(texts, pairs[g])
				}
			}
			if got, want := owners(t, node(i)), "{"+strings.Join(texts, ",")+"}"; got != want {
				return fmt.Errorf("%s: owners %s, bound %s", node(i), got, want)
			}
		}
		return nil
	})
}

func node(i int) string { return fmt.Sprintf("node-%d", i) }

type racer struct {
	l                    *locks.Locks
	namespace            string
	dice                 *rand.Rand
	binds, held, refused *atomic.Int64
}

func (r *racer) run(ctx context.Context, t *testing.T) {
	api := client(t, 500)
	for ctx.Err() == nil {
		before, err := api.CoreV1().Pods(r.namespace).Get(ctx, fmt.Sprintf("p%d", r.dice.IntN(racePods)), metav1.GetOptions{})
		if err != nil || before.Spec.NodeName != "" {
			continue
		}
		name := node(1 + r.dice.IntN(raceNodes))
		var gpus []string
		for _, g := range r.dice.Perm(raceGPUs)[:1+r.dice.IntN(2)] {
			gpus = append(gpus, fmt.Sprintf("%s-gpu-%d", name, g))
		}
		want := map[string][]locks.Claimant{name: {claim(before, gpus...)}}
		if err := r.l.TakeAll(ctx, want); err != nil {
			if held := (*locks.HeldError)(nil); errors.As(err, &held) {
				r.held.Add(1)
			} else if ctx.Err() == nil {
				t.Errorf("TakeAll: %v", err)
			}
			continue
		}
		switch r.dice.IntN(4) {
		case 0:
			continue // as if killed here: others have to revoke it
		case 1:
			time.Sleep(time.Duration(r.dice.IntN(400)) * time.Millisecond) // paused, longer than others have patience
		}
		err = bind(ctx, api, before, name, gpus)
		if apierrors.IsConflict(err) {
			r.refused.Add(1)
			after, readErr := api.CoreV1().Pods(r.namespace).Get(ctx, before.Name, metav1.GetOptions{})
			if readErr == nil && after.UID == before.UID && after.Spec.NodeName == "" && r.l.TakeAll(ctx, want) == nil {
				time.Sleep(time.Duration(r.dice.IntN(100)) * time.Millisecond)
				err = bind(ctx, api, after, name, gpus)
			}
		}
		if err == nil {
			r.binds.Add(1)
		} else {
			r.l.Free(name, before.UID)
		}
	}
}

// churn deletes pods and makes new ones of the same name.
func churn(ctx context.Context, namespace string, dice *rand.Rand) {
	pods := lab.Client.CoreV1().Pods(namespace)
	now := int64(0)
	for ctx.Err() == nil {
		name := fmt.Sprintf("p%d", dice.IntN(racePods))
		_ = pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now})
		_, _ = pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: harness.PodSpec("nobody", 0)}, metav1.CreateOptions{})
		time.Sleep(time.Duration(dice.IntN(60)) * time.Millisecond)
	}
}

// judge follows the pods in the order of the API server's writes.
type judge struct {
	watch  watch.Interface
	ending atomic.Bool
	done   chan struct{}
	found  []string
	seen   int
}

func newJudge(t *testing.T, namespace string) *judge {
	t.Helper()
	list, err := lab.Client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := lab.Client.CoreV1().Pods(namespace).Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	j := &judge{watch: w, done: make(chan struct{})}
	go j.follow()
	return j
}

func (j *judge) follow() {
	defer close(j.done)
	owner := map[string]string{} // node/GPU → pod
	for event := range j.watch.ResultChan() {
		p, ok := event.Object.(*corev1.Pod)
		if !ok && j.ending.Load() {
			return
		}
		if !ok {
			j.found = append(j.found, fmt.Sprintf("the watch broke: %v", event.Object))
			return
		}
		ended := event.Type == watch.Deleted || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		for gpu := range strings.SplitSeq(p.Annotations[workload.Allocated], ",") {
			place, who := p.Spec.NodeName+"/"+gpu, p.Name+" "+string(p.UID)
			switch {
			case gpu == "":
			case ended && owner[place] == who:
				delete(owner, place)
			case ended:
			case owner[place] == "":
				owner[place] = who
				j.seen++
			case owner[place] != who:
				j.found = append(j.found, fmt.Sprintf("%s: %s and %s", place, owner[place], who))
			}
		}
	}
}

func (j *judge) end(t *testing.T) {
	t.Helper()
	time.Sleep(time.Second) // the last events
	j.ending.Store(true)
	j.watch.Stop()
	<-j.done
	if len(j.found) > 0 || j.seen == 0 {
		t.Fatalf("%d GPUs given; given twice: %v", j.seen, j.found)
	}
	t.Logf("%d GPUs given, none twice", j.seen)
}
