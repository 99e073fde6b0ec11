// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/frond-scheduler/frond/test/harness"
)

// Two nodes have four GPUs left. On the higher one CPU is short, so that of the kinds of pods that run only a small one could
// use them; the lower one could take any. In a cluster without topology a small pod goes to the higher one, although the
// lower one comes first and upstream likes it better. The scheduler is one that looks for labels which the nodes do not have.
func TestWithoutTopologyCPUDoesNotStrandGPUs(t *testing.T) {
	lab.StartScheduler(t, `
- schedulerName: flat-scheduler
  plugins:
    multiPoint: {enabled: [{name: TopologyGPU, weight: 100}]}
    bind: {enabled: [{name: TopologyGPU}]}
    postFilter: {enabled: [{name: TopologyGPU}]}
  pluginConfig:
  - name: TopologyGPU
    args: {topology: {preset: eks}}
`)
	ns := lab.Namespace(t)
	const lower, higher = "node-47", "node-48"
	single(t, ns, "middle", 4, "60", lower)
	single(t, ns, "hungry", 4, "100", higher)
	if node := single(t, ns, "small", 4, "8", ""); node != higher {
		t.Errorf("the small pod is on %s, want %s, whose GPUs no other kind of pod could use", node, higher)
	}
	// What is left on the lower node is for the kind that needs it; elsewhere it would break up a whole node.
	if node := single(t, ns, "another", 4, "60", ""); node != lower {
		t.Errorf("the pod of middle size is on %s, want %s", node, lower)
	}
}

// single creates a pod, on a given node or anywhere, and says where it was bound.
func single(t *testing.T, ns, name string, gpus int64, cpu, node string) string {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns}, Spec: harness.PodSpec("flat-scheduler", gpus)}
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	if node != "" {
		pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	}
	if _, err := lab.Client.CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	bound := ""
	harness.Eventually(t, 30*time.Second, func(ctx context.Context) error {
		live, err := lab.Client.CoreV1().Pods(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if bound = live.Spec.NodeName; bound == "" {
			return fmt.Errorf("%s is not bound; %s", name, lab.Reasons(ctx, ns))
		}
		return nil
	})
	return bound
}
