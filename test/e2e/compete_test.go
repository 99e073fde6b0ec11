// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/frond-scheduler/frond/test/harness"
)

// Two gangs of 16 nodes want 24 free ones: one is bound whole, the other waits and says why, then runs.
func TestTwoGangsCompeteForTwentyFourNodes(t *testing.T) {
	ns := lab.Namespace(t)
	lab.Cordon(t, 25, harness.Nodes) // spine-2: 24 nodes of spine-1 are left
	watch := startWatcher(t, ns)
	first := harness.Gang{Name: "first", Pods: 16, GPUs: 8, RunSeconds: 8}
	second := harness.Gang{Name: "second", Pods: 16, GPUs: 8, RunSeconds: 2}
	watch.expect(first)
	watch.expect(second)
	lab.Submit(t, ns, first)
	checkPlacement(t, lab.Bound(t, ns, first), 8, 4)
	lab.Submit(t, ns, second)
	lab.WaitReason(t, ns, "needs 16 nodes in 4 adjacent leaves", "has 8 free")
	pods, err := lab.JobPods(t.Context(), ns, second.Name)
	if err != nil {
		t.Fatal(err)
	}
	if count := harness.BoundCount(pods); count != 0 {
		t.Errorf("%d of the waiting gang's pods are bound", count)
	}
	checkPlacement(t, lab.Bound(t, ns, second), 8, 4)
	watch.verdict(t)
}

// A gang that goes on waiting says so again when the numbers change.
func TestReasonFollowsTheCluster(t *testing.T) {
	ns := lab.Namespace(t)
	lab.Cordon(t, 25, harness.Nodes)
	first := harness.Gang{Name: "first", Pods: 16, GPUs: 8}
	lab.Submit(t, ns, first)
	lab.Bound(t, ns, first)
	lab.Submit(t, ns, harness.Gang{Name: "second", Pods: 16, GPUs: 8})
	lab.WaitReason(t, ns, "needs 16 nodes in 4 adjacent leaves", "has 8 free")
	lab.Cordon(t, 24, 24)
	lab.WaitReason(t, ns, "needs 16 nodes in 4 adjacent leaves", "has 7 free")
}

// Many gangs at once on a cluster that they fill several times over. An independent watcher sees that none is ever
// half-bound at rest and that no GPU has two owners.
func TestInterleavedGangsAreNeverHalfBound(t *testing.T) {
	count := 200
	if text := os.Getenv("FROND_E2E_GANGS"); text != "" {
		var err error
		if count, err = strconv.Atoi(text); err != nil {
			t.Fatalf("FROND_E2E_GANGS: %v", err)
		}
	}
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("FROND_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("FROND_SEED: %v", err)
		}
	}
	t.Logf("FROND_SEED=%d, %d gangs", seed, count)
	random := rand.New(rand.NewPCG(seed, 0))
	ns := lab.Namespace(t)
	watch := startWatcher(t, ns)
	sizes := []int32{2, 2, 2, 3, 4, 4, 5, 8, 12, 16}
	pods := 0
	for i := range count {
		g := harness.Gang{Name: fmt.Sprintf("gang-%d", i), Pods: sizes[random.IntN(len(sizes))], GPUs: 8, RunSeconds: 1}
		if random.IntN(4) == 0 {
			g.GPUs = []int64{1, 2, 4}[random.IntN(3)]
		}
		pods += int(g.Pods)
		watch.expect(g)
		lab.Submit(t, ns, g)
	}
	t.Logf("%d pods submitted", pods)
	begin := time.Now()
	harness.Eventually(t, 8*time.Minute, func(ctx context.Context) error {
		jobs, err := lab.Client.BatchV1().Jobs(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		done := 0
		for i := range jobs.Items {
			if jobs.Items[i].Status.CompletionTime != nil {
				done++
			}
			if jobs.Items[i].Status.Failed > 0 {
				t.Errorf("%s has failed pods", jobs.Items[i].Name)
			}
		}
		if done < count {
			return fmt.Errorf("%d of %d gangs have ended", done, count)
		}
		return nil
	})
	t.Logf("all have ended %.0f s after the last was submitted", time.Since(begin).Seconds())
	watch.verdict(t)
}
