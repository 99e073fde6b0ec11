// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/test/harness"
)

// share makes a node's device plugin let pods have so many GPUs, until the test ends.
func share(t *testing.T, name string, gpus int64) {
	t.Helper()
	node, err := lab.Client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	set := func(gpus int64) error {
		patch := fmt.Sprintf(`{"status":{"capacity":{"nvidia.com/gpu":"%d"},"allocatable":{"nvidia.com/gpu":"%d"}}}`, gpus, gpus)
		_, err := lab.Client.CoreV1().Nodes().Patch(context.Background(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		return err
	}
	before := node.Status.Allocatable.Name("nvidia.com/gpu", resource.DecimalSI).Value()
	if err := set(gpus); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set(before); err != nil {
			t.Error(err)
		}
	})
}

// nodeEvent waits for an event on a node that says so.
func nodeEvent(t *testing.T, name, sentence string) {
	t.Helper()
	harness.Eventually(t, 20*time.Second, func(ctx context.Context) error {
		events, err := lab.Client.CoreV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Node,involvedObject.name=" + name})
		if err != nil {
			return err
		}
		for i := range events.Items {
			if e := &events.Items[i]; e.Reason == "FabricProblem" && e.Type == corev1.EventTypeWarning && strings.Contains(e.Message, sentence) {
				return nil
			}
		}
		return fmt.Errorf("none of %d events of %s says %q", len(events.Items), name, sentence)
	})
}

// Time-slicing makes four GPUs sixteen. Pods get whole devices of the four that the agent reports; the rest is told. A node
// with more than a machine can have, of which nobody reports a device, gets none, and that is told, too.
func TestReplicasAreToldAndNeverTakenForDevices(t *testing.T) {
	const shared, unknown = "node-6", "node-20" // pcie-4, with an agent; and one without a machine
	ns := lab.Namespace(t)
	share(t, shared, 16)
	share(t, unknown, 64)
	nodeEvent(t, shared, "lets pods have more GPUs than its 4 devices")
	nodeEvent(t, unknown, "lets pods have more than 16 GPUs and no report names its devices")
	create(t, ns, "four", shared, 4)
	four, indices := bound(t, ns, "four")
	if len(indices) != 4 {
		t.Errorf("got %v", indices)
	}
	create(t, ns, "fifth", shared, 1) // upstream alone would let twelve more in
	create(t, ns, "lost", unknown, 1)
	time.Sleep(2 * time.Second)
	for _, name := range []string{"fifth", "lost"} {
		if pod, err := lab.Client.CoreV1().Pods(ns).Get(t.Context(), name, metav1.GetOptions{}); err != nil || pod.Spec.NodeName != "" {
			t.Errorf("%s is on %q, %v", name, pod.Spec.NodeName, err)
		}
	}
	for _, name := range []string{"fifth", "lost"} {
		if err := lab.Client.CoreV1().Pods(ns).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}
	remove(t, ns, shared, four)
}
