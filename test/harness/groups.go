// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// PodGroups is their resource.
var PodGroups = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}

// Group creates a PodGroup.
func (l *Lab) Group(t testing.TB, namespace, name string, minMember int64) {
	t.Helper()
	group := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": PodGroups.GroupVersion().String(), "kind": "PodGroup",
		"metadata": map[string]any{"name": name, "namespace": namespace},
		"spec":     map[string]any{"minMember": minMember},
	}}
	if _, err := dynamic.NewForConfigOrDie(l.Config).Resource(PodGroups).Namespace(namespace).Create(t.Context(), group, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create PodGroup %s: %v", name, err)
	}
}

// Ungroup deletes a PodGroup.
func (l *Lab) Ungroup(t testing.TB, namespace, name string) {
	t.Helper()
	if err := dynamic.NewForConfigOrDie(l.Config).Resource(PodGroups).Namespace(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete PodGroup %s: %v", name, err)
	}
}

// Member creates a pod of a PodGroup, changed as asked.
func (l *Lab) Member(t testing.TB, namespace, name, group string, gpus int64, change ...func(*corev1.Pod)) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"scheduling.x-k8s.io/pod-group": group}, Annotations: map[string]string{}},
		Spec:       PodSpec(Profile, gpus),
	}
	for _, how := range change {
		how(pod)
	}
	if _, err := l.Client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create pod %s: %v", name, err)
	}
}

// RunFor lets a pod end by itself.
func RunFor(seconds string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Annotations["frond.lab/run-seconds"] = seconds }
}
