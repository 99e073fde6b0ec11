// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/frond-scheduler/frond/plugin/apis"
	"github.com/frond-scheduler/frond/test/harness"
)

// createPreferring makes a claim that would rather have these GPUs, and a pod that uses it and fits on any node.
func createPreferring(t *testing.T, ns, name string, gpus int, ids ...string) {
	t.Helper()
	list := make([]any, len(ids))
	for i, id := range ids {
		list[i] = id
	}
	claim := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "gpu.scheduling/v1", "kind": "GpuClaim", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"devices": map[string]any{"count": int64(gpus), "policy": "preferIds", "preferIds": list}},
	}}
	if _, err := objects.Resource(apis.GpuClaims).Namespace(ns).Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"gpu.scheduling/claim": name}},
		Spec: harness.PodSpec(harness.Profile, int64(gpus))}
	if _, err := lab.Client.CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// A user who names GPUs by the UUIDs that agents report gets exactly these, wherever they are, when they are free; else as
// many of them as are, and the best beside them; and hears of ids that nobody knows.
func TestPodsGetTheGPUsTheyPrefer(t *testing.T) {
	const node = "node-12" // dgx-1v: not the first, and its links are not all alike
	ns := lab.Namespace(t)
	uuid := map[int]string{}
	for _, device := range report(t, node).Devices {
		uuid[int(device.Index)] = device.ID
	}
	wants := func(name string, want ...int) *corev1.Pod {
		t.Helper()
		pod, got := bound(t, ns, name)
		slices.Sort(got)
		if pod.Spec.NodeName != node || !slices.Equal(got, want) {
			t.Errorf("%s is on %s with GPUs %v, want %s with %v", name, pod.Spec.NodeName, got, node, want)
		}
		return pod
	}
	createPreferring(t, ns, "all", 3, uuid[6], uuid[1], uuid[4])
	all := wants("all", 1, 4, 6)
	createPreferring(t, ns, "one", 1, uuid[1], uuid[7]) // 1 is taken
	one := wants("one", 7)
	createPreferring(t, ns, "beside", 2, uuid[4], uuid[0]) // 4 is taken; 0 has two links to 3
	beside := wants("beside", 0, 3)
	createPreferring(t, ns, "none", 2, uuid[6], uuid[1])
	none, got := bound(t, ns, "none")
	if none.Spec.NodeName == node && (slices.Contains(got, 1) || slices.Contains(got, 6)) {
		t.Errorf("GPUs %v are somebody's", got)
	}
	createPreferring(t, ns, "unknown", 1, "GPU-ffffffff-0000-0000-0000-000000000000", uuid[5])
	unknown := wants("unknown", 5)
	harness.Eventually(t, 10*time.Second, func(ctx context.Context) error {
		events, err := lab.Client.CoreV1().Events(ns).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=unknown"})
		if err != nil {
			return err
		}
		for i := range events.Items {
			if e := &events.Items[i]; e.Reason == "UnknownPreferredGPU" && e.Type == corev1.EventTypeWarning && strings.Contains(e.Message, `"GPU-ffffffff-0000-0000-0000-000000000000"`) {
				return nil
			}
		}
		return fmt.Errorf("no event names the GPU that nobody has, in %d", len(events.Items))
	})
	remove(t, ns, node, all, one, beside, unknown)
	remove(t, ns, none.Spec.NodeName, none)
	createPreferring(t, ns, "again", 2, uuid[6], uuid[1]) // now they are free
	remove(t, ns, node, wants("again", 1, 6))
}
