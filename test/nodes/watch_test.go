// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"os/exec"
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

// limit is how long after an event the next placement may still be wrong.
const limit = time.Second

// seen says when the API server first had a report of the node for which done holds.
func seen(t *testing.T, node string, done func(*apis.NodeReport) bool) <-chan time.Time {
	t.Helper()
	list, err := objects.Resource(apis.GpuNodeStatuses).List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + node})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := objects.Resource(apis.GpuNodeStatuses).Watch(t.Context(),
		metav1.ListOptions{FieldSelector: "metadata.name=" + node, ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	when := make(chan time.Time, 1)
	go func() {
		defer stream.Stop()
		for event := range stream.ResultChan() {
			object, ok := event.Object.(*unstructured.Unstructured)
			if !ok {
				return
			}
			if status, err := apis.Status[apis.NodeReport](object); err == nil && done(status) {
				when <- time.Now()
				return
			}
		}
	}()
	return when
}

func wait(t *testing.T, when <-chan time.Time, what string) time.Time {
	t.Helper()
	select {
	case at := <-when:
		return at
	case <-time.After(20 * time.Second):
		t.Fatalf("never seen: %s", what)
		return time.Time{}
	}
}

func healthy(index int) func(*apis.NodeReport) bool {
	return func(r *apis.NodeReport) bool {
		return index < len(r.Devices) && device(r, index).Health == apis.Healthy
	}
}

func sick(index int) func(*apis.NodeReport) bool {
	return func(r *apis.NodeReport) bool {
		return len(r.Devices) > index && device(r, index).Health != apis.Healthy
	}
}

func device(r *apis.NodeReport, index int) apis.Device {
	return r.Devices[slices.IndexFunc(r.Devices, func(d apis.Device) bool { return int(d.Index) == index })]
}

// untouched: a pod is as it was.
func untouched(t *testing.T, was *corev1.Pod) {
	t.Helper()
	now, err := lab.Client.CoreV1().Pods(was.Namespace).Get(t.Context(), was.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("a running pod: %v", err)
	}
	if now.UID != was.UID || now.DeletionTimestamp != nil || now.Spec.NodeName != was.Spec.NodeName ||
		now.Annotations["gpu.scheduling/allocated"] != was.Annotations["gpu.scheduling/allocated"] || now.Status.Phase == corev1.PodFailed {
		t.Errorf("running pod %s was touched: %+v", was.Name, now.ObjectMeta)
	}
}

func running(t *testing.T, ns, name string) {
	t.Helper()
	harness.Eventually(t, 20*time.Second, func(ctx context.Context) error {
		pod, err := lab.Client.CoreV1().Pods(ns).Get(ctx, name, metav1.GetOptions{})
		if err == nil && pod.Status.Phase != corev1.PodRunning {
			return errNotYet
		}
		return err
	})
}

// getGNS is what a person sees: header and line of `kubectl get gns NODE`.
func getGNS(t *testing.T, node string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), lab.Program("kubectl"), "--kubeconfig", lab.Kubeconfig(), "get", "gns", node).CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl get gns: %v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// tellTimes prints the middle and the largest of some delays.
func tellTimes(t *testing.T, what string, delays []time.Duration) {
	t.Helper()
	slices.Sort(delays)
	t.Logf("%s: p50 %s, max %s of %d", what, delays[len(delays)/2].Round(time.Millisecond), delays[len(delays)-1].Round(time.Millisecond), len(delays))
}
