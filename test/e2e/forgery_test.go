// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/locks"
	"github.com/frond-scheduler/frond/test/harness"
)

const (
	allocatedKey = "gpu.scheduling/allocated"
	podPolicy    = "frond-pod-annotations"
	ourAccount   = "system:serviceaccount:frond-system:frond-scheduler"
)

var ourKeys = []string{allocatedKey, "gpu.scheduling/share", "topology.scheduler/domain", "topology.scheduler/rank"}

// onNode is one container on a node of its author's choice, which no scheduler is asked about.
func onNode(node string, gpus int64) corev1.PodSpec {
	spec := harness.PodSpec("nobody", gpus)
	spec.NodeName = node
	return spec
}

// refused checks that the policy said no, and why.
func refused(t *testing.T, what string, err error, keys ...string) {
	t.Helper()
	if !apierrors.IsForbidden(err) {
		t.Errorf("%s: got %v, want a refusal", what, err)
		return
	}
	for _, part := range append([]string{"annotation " + strings.Join(keys, ", ") + ": only Frond, as " + ourAccount, "leave it out of the pod"}, keys...) {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v; the refusal does not say %q", what, err, part)
		}
	}
}

// awaitPolicy waits until the API server enforces the policy, or does no longer.
func awaitPolicy(t *testing.T, ns string, on bool) {
	t.Helper()
	harness.Eventually(t, 30*time.Second, func(ctx context.Context) error {
		forged := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "asks", Annotations: map[string]string{allocatedKey: "x"}}, Spec: harness.PodSpec("nobody", 0)}
		_, err := lab.Client.CoreV1().Pods(ns).Create(ctx, forged, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsForbidden(err) == on && (on || err == nil) {
			return nil
		}
		return fmt.Errorf("the policy is not yet as it should be (on: %t): %v", on, err)
	})
}

// withoutPolicy is a cluster where somebody has removed it, until the test ends.
func withoutPolicy(t *testing.T, ns string) {
	t.Helper()
	bindings := lab.Client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	binding, err := bindings.Get(t.Context(), podPolicy, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := bindings.Delete(t.Context(), podPolicy, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		binding.ObjectMeta = metav1.ObjectMeta{Name: binding.Name}
		if _, err := bindings.Create(context.Background(), binding, metav1.CreateOptions{}); err != nil {
			t.Errorf("the policy is gone: %v", err)
		}
	})
	awaitPolicy(t, ns, false)
}

func annotate(key string, value any) []byte {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
	if err != nil {
		panic(err)
	}
	return patch
}

// Nobody but Frond writes what Frond says of a pod: here it is the cluster's admin who tries.
func TestForgedAnnotationsAreRefused(t *testing.T) {
	ns := lab.Namespace(t)
	awaitPolicy(t, ns, true)
	pods := lab.Client.CoreV1().Pods(ns)
	create := func(name string, spec corev1.PodSpec, annotations map[string]string) (*corev1.Pod, error) {
		return pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}, Spec: spec}, metav1.CreateOptions{})
	}
	patch := func(name, key string, value any, subresources ...string) error {
		_, err := pods.Patch(t.Context(), name, types.MergePatchType, annotate(key, value), metav1.PatchOptions{}, subresources...)
		return err
	}
	if _, err := create("pending", harness.PodSpec("nobody", 1), map[string]string{"note": "mine"}); err != nil {
		t.Fatal(err)
	}
	if _, err := create("ours", harness.PodSpec(harness.Profile, 1), nil); err != nil {
		t.Fatal(err)
	}
	var ours *corev1.Pod
	harness.Eventually(t, time.Minute, func(ctx context.Context) (err error) {
		if ours, err = pods.Get(ctx, "ours", metav1.GetOptions{}); err == nil && ours.Spec.NodeName == "" {
			err = fmt.Errorf("not bound; %s", lab.Reasons(ctx, ns))
		}
		return err
	})
	if ours.Annotations[allocatedKey] == "" || ours.Annotations["topology.scheduler/rank"] != "0" {
		t.Fatalf("Frond itself may: %v", ours.Annotations)
	}
	for _, key := range ourKeys {
		_, err := create("forged", harness.PodSpec(harness.Profile, 1), map[string]string{key: "0"})
		refused(t, "create, "+key, err, key)
		_, err = create("forged", onNode("node-9", 1), map[string]string{key: ""})
		refused(t, "create for another scheduler, empty, "+key, err, key)
		refused(t, "update, "+key, patch("pending", key, "0"), key)
		refused(t, "update of status, "+key, patch("pending", key, "0", "status"), key)
		binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "pending", Annotations: map[string]string{key: "0"}}, Target: corev1.ObjectReference{Kind: "Node", Name: "node-9"}}
		refused(t, "binding, "+key, pods.Bind(t.Context(), binding, metav1.CreateOptions{}), key)
		binding.Namespace = ns
		refused(t, "binding by the older way, "+key, lab.Client.CoreV1().RESTClient().Post().Namespace(ns).Resource("bindings").Body(binding).Do(t.Context()).Error(), key)
		for _, subresource := range []string{"ephemeralcontainers", "resize"} { // these drop what they do not know
			_ = patch("pending", key, "0", subresource)
		}
		if ours.Annotations[key] == "" {
			continue
		}
		refused(t, "change of a bound pod, "+key, patch("ours", key, "5"), key)
		refused(t, "removal, "+key, patch("ours", key, nil), key)
		refused(t, "change by status, "+key, patch("ours", key, "5", "status"), key)
	}
	_, err := create("forged", harness.PodSpec("nobody", 1), map[string]string{"topology.scheduler/rank": "0", allocatedKey: "x"})
	refused(t, "two", err, allocatedKey, "topology.scheduler/rank")

	// What is not ours is none of our business, on pods that carry our annotations, too.
	for _, name := range []string{"pending", "ours"} {
		if err := patch(name, "note", "changed"); err != nil {
			t.Error(err)
		}
		if err := patch(name, "note", "changed again", "status"); err != nil {
			t.Error(err)
		}
	}
	if err := pods.Bind(t.Context(), &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "pending"}, Target: corev1.ObjectReference{Kind: "Node", Name: "node-9"}}, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	pending, err := pods.Get(t.Context(), "pending", metav1.GetOptions{})
	if err != nil || pending.Spec.NodeName != "node-9" || slices.ContainsFunc(ourKeys, func(key string) bool { _, there := pending.Annotations[key]; return there }) {
		t.Errorf("%v, %v", pending, err)
	}

	// A template that carries one makes no pods, and its Job says why.
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "copies"}, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{allocatedKey: "node-9-gpu-0"}}, Spec: harness.PodSpec(harness.Profile, 1)}}}
	if _, err := lab.Client.BatchV1().Jobs(ns).Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	lab.WaitReason(t, ns, "Job/copies FailedCreate", "annotation "+allocatedKey+": only Frond", "template")
}

func ownersOf(ctx context.Context, node string) (map[string]types.UID, error) {
	lease, err := lab.Client.CoordinationV1().Leases(locks.DefaultNamespace).Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	owners := map[string]types.UID{}
	return owners, json.Unmarshal([]byte(lease.Annotations[locks.OwnersAnnotation]), &owners)
}

// pinned lets a pod run on one node only.
func pinned(node string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": node} }
}

// Where the policy was removed, a pod that says it had all GPUs of a node has as many as its limits say, and no gang waits for
// the rest.
func TestAForgedPodHasWhatItsLimitsSay(t *testing.T) {
	const node = "node-9"
	ns := lab.Namespace(t)
	withoutPolicy(t, ns)
	var all []string
	for i := range 8 {
		all = append(all, fmt.Sprintf("%s-gpu-%d", node, i))
	}
	forged, err := lab.Client.CoreV1().Pods(ns).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "forged", Annotations: map[string]string{allocatedKey: strings.Join(all, ",")}}, Spec: onNode(node, 1)}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lab.WaitReason(t, ns, "Pod/forged UnknownGPU", "it has 1 GPUs and carries another number of them")

	// A comparison of Leases and bound pods, which deleting a Lease brings about, does not enter it.
	lab.Group(t, ns, "first", 1)
	lab.Member(t, ns, "first-0", "first", 1, pinned(node))
	awaitBound(t, ns, 2)
	first, err := lab.Client.CoreV1().Pods(ns).Get(t.Context(), "first-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := lab.Client.CoordinationV1().Leases(locks.DefaultNamespace).Delete(t.Context(), node, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, 30*time.Second, func(ctx context.Context) error {
		owners, err := ownersOf(ctx, node)
		if err == nil && (len(owners) != 1 || owners[first.Annotations[allocatedKey]] != first.UID) {
			return fmt.Errorf("the Lease of %s says %v; the forged pod is %s", node, owners, forged.UID)
		}
		return err
	})
	deletePod(t, ns, "first-0")

	// Nor is a Lease believed in which an earlier version has entered it.
	harness.Eventually(t, 30*time.Second, func(ctx context.Context) error {
		lease, err := lab.Client.CoordinationV1().Leases(locks.DefaultNamespace).Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		owners := map[string]types.UID{}
		for _, gpu := range all {
			owners[gpu] = forged.UID
		}
		text, err := json.Marshal(owners)
		if err != nil {
			return err
		}
		lease.Annotations[locks.OwnersAnnotation] = string(text)
		lease.Annotations[locks.PodsAnnotation] = fmt.Sprintf(`{%q:{"pod":"%s/forged"}}`, forged.UID, ns)
		_, err = lab.Client.CoordinationV1().Leases(locks.DefaultNamespace).Update(ctx, lease, metav1.UpdateOptions{})
		return err
	})
	lab.Group(t, ns, "seven", 7)
	for i := range 7 {
		lab.Member(t, ns, fmt.Sprint("seven-", i), "seven", 1, pinned(node))
	}
	awaitBound(t, ns, 8)
	checkOwners(t, ns, node, 7)
}

// awaitBound waits for so many bound pods, whatever is written on them.
func awaitBound(t *testing.T, ns string, count int) {
	t.Helper()
	harness.Eventually(t, time.Minute, func(ctx context.Context) error {
		list, err := lab.Client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		if err == nil && harness.BoundCount(list.Items) != count {
			err = fmt.Errorf("%d of %d pods bound; %s", harness.BoundCount(list.Items), count, lab.Reasons(ctx, ns))
		}
		return err
	})
}

// checkOwners checks that the Lease of a node names so many pods of the namespace, each with the GPUs that it carries.
func checkOwners(t *testing.T, ns, node string, count int) {
	t.Helper()
	list, err := lab.Client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "scheduling.x-k8s.io/pod-group"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]types.UID{}
	for _, pod := range list.Items {
		for id := range strings.SplitSeq(pod.Annotations[allocatedKey], ",") {
			want[id] = pod.UID
		}
	}
	if len(want) != count {
		t.Errorf("%d GPUs have pods of the gang, want %d", len(want), count)
	}
	harness.Eventually(t, 10*time.Second, func(ctx context.Context) error {
		owners, err := ownersOf(ctx, node)
		if err == nil && fmt.Sprint(owners) != fmt.Sprint(want) {
			return fmt.Errorf("the Lease of %s says %v, want %v", node, owners, want)
		}
		return err
	})
}

// What is written on a bound pod later frees none of its GPUs, for this scheduler and for the next.
func TestAPodThatIsRewrittenKeepsItsGPU(t *testing.T) {
	const node = "node-10"
	ns := lab.Namespace(t)
	withoutPolicy(t, ns)
	lab.Group(t, ns, "first", 1)
	lab.Member(t, ns, "first-0", "first", 1, pinned(node))
	first := allBound(t, ns, 1)[0]
	has := first.Annotations[allocatedKey]
	claims := node + "-gpu-7"
	if has == claims {
		claims = node + "-gpu-0"
	}
	if _, err := lab.Client.CoreV1().Pods(ns).Patch(t.Context(), "first-0", types.MergePatchType, annotate(allocatedKey, claims), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	lab.WaitReason(t, ns, "Pod/first-0 GPUsRewritten", "it still has "+has)
	signal(t, "scheduler", syscall.SIGKILL) // the lab starts another one
	lab.Group(t, ns, "rest", 7)
	for i := range 7 {
		lab.Member(t, ns, fmt.Sprint("rest-", i), "rest", 1, pinned(node))
	}
	for _, pod := range allBound(t, ns, 8) {
		if pod.Name != "first-0" && pod.Annotations[allocatedKey] == has {
			t.Errorf("pod %s has %s, which is first-0's", pod.Name, has)
		}
	}
	if owners, err := ownersOf(t.Context(), node); err != nil || owners[has] != first.UID || len(owners) != 8 {
		t.Errorf("the Lease says %v, %v; first-0 is %s", owners, err, first.UID)
	}
}

// A pod that comes with its node is in no gang, whatever its labels say.
func TestAPodWithANodeOfItsOwnIsInNoGang(t *testing.T) {
	ns := lab.Namespace(t)
	lab.Group(t, ns, "gang", 3)
	for name, gpus := range map[string]int64{"foreign": 1, "idle": 0} {
		lab.Member(t, ns, name, "gang", gpus, func(pod *corev1.Pod) { pod.Spec.NodeName = "node-11" })
	}
	lab.Member(t, ns, "w-0", "gang", 8)
	lab.Member(t, ns, "w-1", "gang", 8)
	lab.WaitReason(t, ns, "gang "+ns+"/gang has 2 of 3 pods")
	pods, err := lab.Client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil || harness.BoundCount(pods.Items) != 2 {
		t.Fatalf("%d are bound, %v", harness.BoundCount(pods.Items), err)
	}
	lab.Member(t, ns, "w-2", "gang", 8)
	inOrder(t, allBound(t, ns, 5), "w-0", "w-1", "w-2")
}
