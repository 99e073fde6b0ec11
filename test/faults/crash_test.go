// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/frond-scheduler/frond/test/faultproxy"
	"github.com/frond-scheduler/frond/test/harness"
)

// crash is a step of the scheduler at which it is killed, and what makes it come there.
type crash struct {
	point   string
	provoke func(*testing.T, *harness.Scheduler, *faultproxy.Proxy) // nil: every gang does
}

// refuseBindings makes members give back what they hold.
func refuseBindings(_ *testing.T, _ *harness.Scheduler, proxy *faultproxy.Proxy) {
	proxy.Set(faultproxy.Faults{Error: 0.5})
}

// loseLease pauses the leader for longer than its lease lasts; somebody else may have it when it wakes up.
func loseLease(t *testing.T, victim *harness.Scheduler, _ *faultproxy.Proxy) {
	if err := victim.Pause(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(4 * time.Second)
	if err := victim.Continue(); err != nil {
		t.Fatal(err)
	}
}

// makeGroup gives the scheduler a status to write: annotated Jobs have none.
func makeGroup(t *testing.T, _ *harness.Scheduler, _ *faultproxy.Proxy) {
	lab.Group(t, metav1.NamespaceDefault, fmt.Sprintf("crash-%d", time.Now().UnixNano()), 2)
}

var crashes = []crash{
	{"planned", nil}, {"reserved", nil}, {"permitted", nil},
	{"lock-first", nil}, {"lock-half", nil}, {"lock-last", nil},
	{"bind-first", nil}, {"bind-half", nil}, {"bind-last-but-one", nil}, {"bind-last", nil},
	{"status-write", makeGroup}, {"unreserve", refuseBindings}, {"lease-lost", loseLease},
}

// The steps of the sample: before anything is written, and with a part of it written.
var sampled = map[string]bool{"reserved": true, "bind-first": true, "bind-last-but-one": true}

// A scheduler that is killed at any step leaves nothing behind that its successor does not heal in 30 s: the gang is
// bound whole, each GPU once.
func TestCrashMatrix(t *testing.T) {
	random := seeded(t)
	sizes := either([]int32{4, 16}, []int32{4, 16, 64})
	for _, c := range crashes {
		if !full() && !sampled[c.point] {
			continue
		}
		for _, size := range sizes {
			for round := range either(1, 3) {
				seed := random.Uint64()
				t.Run(fmt.Sprintf("%s/%d/%d", c.point, size, round), func(t *testing.T) { crashOnce(t, c, size, seed) })
			}
		}
	}
}

func crashOnce(t *testing.T, c crash, size int32, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	ns := lab.Namespace(t)
	j := watch(t)
	lease := "crash-" + ns
	proxy := proxied(t, seed, lease)
	victim := lab.Run(t, harness.Setup{Program: "scheduler-faults", Server: proxy.Address(), Lease: lease, Failpoints: c.point + "=kill"})

	gpus := []int64{8, 4, 2}[random.IntN(3)]
	if size == 64 {
		gpus = []int64{4, 2, 1}[random.IntN(3)] // 64 whole nodes are not there
	}
	if c.provoke == nil {
		submit(t, j, ns, harness.Gang{Name: "train", Pods: size, GPUs: gpus}, healing)
	} else {
		submit(t, j, ns, harness.Gang{Name: "train", Pods: size, GPUs: gpus}, 0)
		c.provoke(t, victim, proxy)
	}
	if random.IntN(2) == 0 {
		submit(t, j, ns, harness.Gang{Name: "beside", Pods: 2, GPUs: 8}, healing)
	}
	select {
	case <-victim.Gone():
	case <-time.After(30 * time.Second):
		t.Fatalf("the scheduler lives: it has not come by %s", c.point)
	}
	if !victim.Killed() || !strings.Contains(victim.Output(), "failpoint "+c.point+": kill") {
		t.Fatalf("the scheduler ended before it came by %s:\n%s", c.point, harness.Tail([]byte(victim.Output())))
	}
	j.Resume()
	begin := time.Now()
	lab.Run(t, harness.Setup{Lease: lease})
	verdict(t, j, healing+5*time.Second)
	t.Logf("%d pods of %d GPUs, killed at %s: at rest %.1f s after the restart", size, gpus, c.point, time.Since(begin).Seconds())
}
