// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/frond-scheduler/frond/test/harness"
	"github.com/frond-scheduler/frond/test/judge"
)

// pair is two schedulers of which one leads. One that has ended, because it lost its lease, is started again, as a
// Deployment would.
type pair struct {
	t          *testing.T
	lease      string
	schedulers [2]*harness.Scheduler
}

func startPair(t *testing.T, lease string) *pair {
	t.Helper()
	p := &pair{t: t, lease: lease}
	p.revive()
	return p
}

func (p *pair) revive() {
	p.t.Helper()
	for i, scheduler := range p.schedulers {
		if scheduler == nil || scheduler.Ended() {
			p.schedulers[i] = lab.Run(p.t, harness.Setup{Lease: p.lease})
		}
	}
}

var leading = regexp.MustCompile(`(?m)^leader_election_master_status\{.*\} 1$`)

// leader waits until one of them leads, the other than except.
func (p *pair) leader(except int) int {
	p.t.Helper()
	leads := -1
	harness.Eventually(p.t, time.Minute, func(ctx context.Context) error {
		for i, scheduler := range p.schedulers {
			if i == except {
				continue // it may be paused, and answer nobody
			}
			if scheduler.Ended() {
				p.revive()
			}
			if text, err := lab.Scrape(ctx, p.schedulers[i].Port, "/metrics"); err == nil && leading.Match(text) {
				leads = i
				return nil
			}
		}
		return errors.New("nobody leads")
	})
	return leads
}

// The leader is paused in the middle of a burst, the other one takes over, the old one wakes up and believes for a moment
// that it still leads: no GPU is booked twice, and no gang is split between the two. A full run is ten rounds; make proof runs it with five seeds.
func TestTwoLeaders(t *testing.T) {
	random := seeded(t)
	pause := either(8*time.Second, 20*time.Second)
	ns := lab.Namespace(t)
	j := watch(t)
	both := startPair(t, "leaders-"+ns)
	number := 0
	burst := func(gangs int) {
		for range gangs {
			g := randomGang(random, number)
			number++
			j.Expect(judge.Gang{ID: ns + "/" + g.Name, Size: int(g.Pods), Required: true})
			lab.Submit(t, ns, g)
		}
	}
	for round := range either(1, 10) {
		both.revive()
		old := both.leader(-1)
		burst(6)
		time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
		if err := both.schedulers[old].Pause(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // what it has sent may still arrive
		j.Resume()              // whatever is half-bound now is another's to finish
		burst(6)
		time.Sleep(pause)
		both.leader(old)
		j.Resume()
		if err := both.schedulers[old].Continue(); err != nil {
			t.Fatal(err)
		}
		burst(4)
		select {
		case <-both.schedulers[old].Gone():
		case <-time.After(30 * time.Second):
			t.Fatalf("round %d: the old leader goes on although the lease is another's", round)
		}
		j.Resume()
		for _, violation := range j.Look() {
			if violation.Kind == judge.DoubleBooked {
				t.Fatalf("round %d: %s", round, violation)
			}
		}
	}
	for deadline := time.Now().Add(time.Duration(60+number) * time.Second); time.Now().Before(deadline) && !j.AtRest(); time.Sleep(time.Second) {
		both.revive()
	}
	verdict(t, j, time.Second)
}

// holds waits until the lease has another holder than before.
func holds(t *testing.T, lease, before string) string {
	t.Helper()
	now := before
	harness.Eventually(t, 30*time.Second, func(ctx context.Context) error {
		found, err := lab.Client.CoordinationV1().Leases("frond-system").Get(ctx, lease, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if found.Spec.HolderIdentity == nil || *found.Spec.HolderIdentity == "" {
			return errors.New("nobody leads")
		}
		if now = *found.Spec.HolderIdentity; now == before {
			return fmt.Errorf("%s still leads", now)
		}
		return nil
	})
	return now
}
