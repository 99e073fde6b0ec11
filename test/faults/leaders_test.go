// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/frond-scheduler/frond/test/harness"
	"github.com/frond-scheduler/frond/test/judge"
)

// The leader is paused in the middle of a burst, the other one takes over, the old one wakes up and believes for a moment
// that it still leads: no GPU is booked twice. A full run is ten rounds; make proof runs it with five seeds.
func TestTwoLeaders(t *testing.T) {
	random := seeded(t)
	pause := either(7*time.Second, 20*time.Second)
	ns := lab.Namespace(t)
	lease := "leaders-" + ns
	j := watch(t)
	leader := lab.Run(t, harness.Setup{Lease: lease})
	holder := holds(t, lease, "")
	standby := lab.Run(t, harness.Setup{Lease: lease})
	number := 0
	burst := func(gangs int) {
		for range gangs {
			submit(t, j, ns, randomGang(random, number), 0)
			number++
		}
	}
	for round := range either(1, 10) {
		burst(6)
		time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
		if err := leader.Pause(); err != nil {
			t.Fatal(err)
		}
		burst(6)
		time.Sleep(pause)
		holder = holds(t, lease, holder)
		if err := leader.Continue(); err != nil {
			t.Fatal(err)
		}
		burst(4)
		select {
		case <-leader.Gone():
		case <-time.After(30 * time.Second):
			t.Fatalf("round %d: the old leader goes on although the lease is another's", round)
		}
		for _, violation := range j.Look() {
			if violation.Kind == judge.DoubleBooked {
				t.Fatalf("round %d: %s", round, violation)
			}
		}
		leader, standby = standby, lab.Run(t, harness.Setup{Lease: lease})
	}
	verdict(t, j, time.Duration(60+number)*time.Second)
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
