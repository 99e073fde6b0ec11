// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/frond-scheduler/frond/test/faultproxy"
	"github.com/frond-scheduler/frond/test/harness"
)

// Gangs come and go while the way to the API server is broken in one manner after the other. All are bound whole, and
// when all is well again everything is at rest.
func TestFaultyAPI(t *testing.T) {
	random := seeded(t)
	for _, c := range []struct {
		name   string
		faults faultproxy.Faults
	}{
		{"drop-reply", faultproxy.Faults{DropReply: 0.3}},
		{"conflict", faultproxy.Faults{Conflict: 0.3}},
		{"too-many", faultproxy.Faults{TooMany: 0.1}},
		{"error", faultproxy.Faults{Error: 0.3}},
		{"delay", faultproxy.Faults{Delayed: 0.5, Delay: 500 * time.Millisecond}},
		{"cut-watches", faultproxy.Faults{WatchLife: 3 * time.Second}},
		{"all", faultproxy.Faults{DropReply: 0.05, Conflict: 0.05, TooMany: 0.05, Error: 0.05, Delayed: 0.1, Delay: 300 * time.Millisecond, WatchLife: 10 * time.Second}},
	} {
		seed := random.Uint64()
		t.Run(c.name, func(t *testing.T) {
			ns := lab.Namespace(t)
			j := watch(t)
			proxy := proxied(t, seed, "")
			lab.Run(t, harness.Setup{Server: proxy.Address()})
			proxy.Set(c.faults)
			count, pods := either(20, 500), 0
			own := rand.New(rand.NewPCG(seed, 0)) // the same gangs, whichever kinds run
			for i := range count {
				g := randomGang(own, i)
				pods += int(g.Pods)
				submit(t, j, ns, g, 0)
			}
			begin := time.Now()
			verdict(t, j, time.Duration(60+2*count)*time.Second)
			t.Logf("%d gangs of %d pods bound %.1f s after the last was submitted; %+v", count, pods, time.Since(begin).Seconds(), proxy.Counts())
			if proxy.Counts().Injected() == 0 {
				t.Error("there was no fault")
			}
		})
	}
}

// An API server that is away for a while in the middle of a burst: every gang is whole 30 s after it is back.
func TestAPIServerAway(t *testing.T) {
	random := seeded(t)
	ns := lab.Namespace(t)
	j := watch(t)
	proxy := proxied(t, random.Uint64(), "")
	lab.Run(t, harness.Setup{Server: proxy.Address()})
	for i := range 4 {
		g := randomGang(random, i)
		g.RunSeconds = 0
		g.Pods = min(g.Pods, 8)
		submit(t, j, ns, g, healing)
	}
	time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond)
	proxy.Set(faultproxy.Faults{Down: true})
	time.Sleep(either(5*time.Second, 20*time.Second))
	proxy.Set(faultproxy.Faults{})
	j.Resume()
	verdict(t, j, settling)
}
