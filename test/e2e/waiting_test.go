// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/frond-scheduler/frond/test/harness"
)

// Gangs that wait are served in the order in which they became complete, one whenever a leaf becomes whole.
func TestRoomGoesToTheGangThatHasWaitedLongest(t *testing.T) {
	const gangs, leaf = 6, 4
	ns := lab.Namespace(t)
	for node := 1; node <= harness.Nodes; node++ {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("block-%d", node)}, Spec: harness.PodSpec("nobody", 1)}
		pod.Spec.NodeName = fmt.Sprintf("node-%d", node)
		if _, err := lab.Client.CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(2 * time.Second)
	for i := range gangs {
		lab.Submit(t, ns, harness.Gang{Name: fmt.Sprintf("gang-%d", i), Pods: leaf, GPUs: 8})
		time.Sleep(1100 * time.Millisecond) // creation times are whole seconds
	}
	for round := range 3 {
		for i := range leaf {
			now := int64(0)
			name := fmt.Sprintf("block-%d", harness.Nodes-leaf*round-i)
			if err := lab.Client.CoreV1().Pods(ns).Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(300 * time.Millisecond)
		}
		harness.Eventually(t, 5*time.Second, func(ctx context.Context) error {
			for i := range gangs {
				pods, err := lab.JobPods(ctx, ns, fmt.Sprintf("gang-%d", i))
				if err != nil {
					return err
				}
				want := 0
				if i <= round {
					want = leaf
				}
				if bound := harness.BoundCount(pods); bound != want {
					return fmt.Errorf("after %d leaves gang-%d has %d bound pods, want %d; %s", round+1, i, bound, want, lab.Reasons(ctx, ns))
				}
			}
			return nil
		})
	}
}
