// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/frond-scheduler/frond/test/faultproxy"
	"github.com/frond-scheduler/frond/test/harness"
)

// apart keeps bindings from being on their way all at once: a scheduler that dies of the fourth answer has bound four.
const apart = 20 * time.Millisecond

// crash is a step of the scheduler at which it is killed, and what makes it come there; nothing: every gang does.
type crash struct {
	point   string
	refused float64                              // share of its Bindings, for good: others are sent again
	provoke func(*testing.T, *harness.Scheduler) // once the gang is submitted
	ends    bool                                 // by itself, without being killed
}

// loseLease gives the leader's lease to somebody else, as an operator or another replica might: upstream ends the process.
func loseLease(t *testing.T, victim *harness.Scheduler) {
	holds(t, victim.Lease, "")
	harness.Eventually(t, healing, func(ctx context.Context) error {
		leases := lab.Client.CoordinationV1().Leases("frond-system")
		lease, err := leases.Get(ctx, victim.Lease, metav1.GetOptions{})
		if err != nil {
			return err
		}
		now := metav1.NowMicro()
		lease.Spec.HolderIdentity, lease.Spec.RenewTime, lease.Spec.AcquireTime = new("somebody else"), &now, &now
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		return err
	})
}

// makeGroup gives the scheduler a status to write: annotated Jobs have none.
func makeGroup(t *testing.T, _ *harness.Scheduler) {
	lab.Group(t, metav1.NamespaceDefault, fmt.Sprintf("crash-%d", time.Now().UnixNano()), 2)
}

var crashes = []crash{
	{point: "planned"}, {point: "reserved"}, {point: "permitted"},
	{point: "gang-locked"}, {point: "lock-first"}, {point: "lock-half"}, {point: "lock-last"},
	{point: "bind-first"}, {point: "bind-half"}, {point: "bind-last-but-one"}, {point: "bind-last"},
	{point: "status-write", provoke: makeGroup}, {point: "unreserve", refused: 0.5}, {point: "lease-lost", provoke: loseLease, ends: true},
}

// The steps of the sample: before anything is written, and with a part of it written.
var sampled = map[string]bool{"reserved": true, "bind-last-but-one": true}

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
	proxy.Set(faultproxy.Faults{Forbidden: c.refused, Apart: apart})
	setup := harness.Setup{Program: "scheduler-faults", Server: proxy.Address(), Lease: lease}
	if !c.ends {
		setup.Failpoints = c.point + "=kill"
	}
	victim := lab.Run(t, setup)

	gpus := []int64{8, 4, 2}[random.IntN(3)]
	if size == 64 {
		gpus = []int64{4, 2, 1}[random.IntN(3)] // 64 whole nodes are not there
	}
	submit(t, j, ns, harness.Gang{Name: "train", Pods: size, GPUs: gpus}, healing)
	if c.provoke != nil {
		c.provoke(t, victim)
	}
	if random.IntN(2) == 0 {
		submit(t, j, ns, harness.Gang{Name: "beside", Pods: 2, GPUs: 8}, healing)
	}
	if c.ends {
		ended(t, victim, c.point)
	} else {
		died(t, victim, c.point)
	}
	time.Sleep(time.Second) // what it has sent may still arrive, and be seen
	j.Resume()
	begin := time.Now()
	lab.Run(t, harness.Setup{Lease: lease})
	verdict(t, j, settling)
	t.Logf("%d pods of %d GPUs, killed at %s: at rest %.1f s after the restart", size, gpus, c.point, time.Since(begin).Seconds())
}

// died waits for the death of a scheduler at a point.
func died(t *testing.T, victim *harness.Scheduler, point string) {
	t.Helper()
	ended(t, victim, point)
	if !victim.Killed() || !victim.Passed(point) {
		t.Fatalf("the scheduler ended before it came by %s:\n%s", point, harness.Tail([]byte(victim.Output())))
	}
}

// ended waits for the end of a scheduler, however it comes.
func ended(t *testing.T, victim *harness.Scheduler, point string) {
	t.Helper()
	select {
	case <-victim.Gone():
	case <-time.After(30 * time.Second):
		t.Fatalf("the scheduler lives: it has not come by %s", point)
	}
}
