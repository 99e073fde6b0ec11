// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/test/harness"
	"github.com/frond-scheduler/frond/test/judge"
)

// group tells the judge of a gang, named without its namespace, and creates its PodGroup and all its pods of whole nodes.
func group(t *testing.T, j *judge.Judge, ns string, g judge.Gang) {
	t.Helper()
	name := g.ID
	g.ID = ns + "/" + name
	j.Expect(g)
	lab.Group(t, ns, name, int64(g.Size))
	for rank := range g.Size {
		lab.Member(t, ns, fmt.Sprintf("%s-%d", name, rank), name, 8)
	}
}

// bystander is somebody else's gang, which must not notice.
func bystander(t *testing.T, j *judge.Judge, ns string) {
	t.Helper()
	submit(t, j, ns, harness.Gang{Name: "bystander", Pods: 2, GPUs: 8}, healing)
}

func boundPods(t *testing.T, ns, group string) int {
	t.Helper()
	pods, err := lab.Client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "scheduling.x-k8s.io/pod-group=" + group})
	if err != nil {
		t.Fatal(err)
	}
	return harness.BoundCount(pods.Items)
}

// A PodGroup that is deleted while its pods wait takes their permission with it; a new one gives it back.
func TestPodGroupDeletedWhileWaiting(t *testing.T) {
	ns := lab.Namespace(t)
	j := watch(t)
	lab.Run(t, harness.Setup{})
	j.Expect(judge.Gang{ID: ns + "/train", Size: 3, Required: true})
	lab.Group(t, ns, "train", 3)
	lab.Member(t, ns, "train-0", "train", 8)
	lab.Member(t, ns, "train-1", "train", 8)
	lab.WaitReason(t, ns, "train")
	lab.Ungroup(t, ns, "train")
	time.Sleep(time.Second)
	lab.Member(t, ns, "train-2", "train", 8)
	bystander(t, j, ns)
	time.Sleep(2 * time.Second)
	if bound := boundPods(t, ns, "train"); bound != 0 {
		t.Errorf("%d pods are bound without their PodGroup", bound)
	}
	lab.Group(t, ns, "train", 3)
	verdict(t, j, settling)
}

// Fewer pods than minMember stay where they are, and are told so.
func TestMinMemberLargerThanThePods(t *testing.T) {
	ns := lab.Namespace(t)
	j := watch(t)
	lab.Run(t, harness.Setup{})
	j.Expect(judge.Gang{ID: ns + "/train", Size: 3, MinMember: 4, Fate: judge.MustNotBind})
	lab.Group(t, ns, "train", 4)
	for rank := range 3 {
		lab.Member(t, ns, fmt.Sprintf("train-%d", rank), "train", 8)
	}
	bystander(t, j, ns)
	lab.WaitReason(t, ns, "train", "3", "4")
	verdict(t, j, settling)
}

// Pods that all say that they are the first are ranked by their names.
func TestDuplicateRanks(t *testing.T) {
	ns := lab.Namespace(t)
	j := watch(t)
	lab.Run(t, harness.Setup{})
	j.Expect(judge.Gang{ID: ns + "/train", Size: 4, Required: true, Within: healing})
	lab.Group(t, ns, "train", 4)
	for rank := range 4 {
		lab.Member(t, ns, fmt.Sprintf("train-%d", rank), "train", 8, func(pod *corev1.Pod) {
			pod.Labels["batch.kubernetes.io/job-completion-index"] = "0"
		})
	}
	bystander(t, j, ns)
	verdict(t, j, settling)
}

// held starts a scheduler that stops for a while at a point, and waits until it is there.
func held(t *testing.T, point string, submit func()) {
	t.Helper()
	scheduler := lab.Run(t, harness.Setup{Program: "scheduler-faults", Failpoints: point + "=sleep:1500ms"})
	submit()
	harness.Eventually(t, 30*time.Second, func(context.Context) error {
		if !scheduler.Passed(point) {
			return errors.New("the scheduler has not come by " + point)
		}
		return nil
	})
}

// A pod that is deleted between two steps and comes back under the same name: the gang becomes whole with the new one.
func TestPodDeletedBetweenSteps(t *testing.T) {
	for _, point := range either([]string{"reserved", "bind-half"}, []string{"planned", "reserved", "permitted", "gang-locked", "lock-half", "bind-first", "bind-half", "bind-last-but-one"}) {
		t.Run(point, func(t *testing.T) {
			ns := lab.Namespace(t)
			j := watch(t)
			held(t, point, func() { group(t, j, ns, judge.Gang{ID: "train", Size: 4, Required: true}) })
			j.Release(ns + "/train-1")
			now := int64(0)
			if err := lab.Client.CoreV1().Pods(ns).Delete(t.Context(), "train-1", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
				t.Fatal(err)
			}
			lab.Member(t, ns, "train-1", "train", 8)
			bystander(t, j, ns)
			verdict(t, j, settling)
		})
	}
}

// A node that is deleted while a gang has its GPUs reserved there: the gang finds other nodes.
func TestNodeDeletedWhileReserved(t *testing.T) {
	const name = "node-2" // of the first leaf, which an empty cluster gives away first
	ns := lab.Namespace(t)
	j := watch(t)
	held(t, "reserved", func() { group(t, j, ns, judge.Gang{ID: "train", Size: 4, Required: true}) })
	nodes := lab.Client.CoreV1().Nodes()
	node, err := nodes.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := nodes.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { restore(t, node) })
	bystander(t, j, ns)
	verdict(t, j, settling)
}

// restore creates a deleted node anew and waits until it takes pods.
func restore(t *testing.T, node *corev1.Node) {
	t.Helper()
	again := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels, Annotations: node.Annotations}, Status: node.Status}
	if _, err := lab.Client.CoreV1().Nodes().Create(context.Background(), again, metav1.CreateOptions{}); err != nil {
		t.Errorf("create %s anew: %v", node.Name, err)
		return
	}
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		live, err := lab.Client.CoreV1().Nodes().Get(context.Background(), node.Name, metav1.GetOptions{})
		if err == nil && len(live.Spec.Taints) == 0 {
			return
		}
	}
	t.Errorf("%s does not take pods 30 s after it was created anew", node.Name)
}

// A node that moves to another leaf while a gang has its GPUs reserved there: the gang is planned anew and bound whole, with
// its rule met, and the cluster goes on.
func TestNodeRelabelledWhileReserved(t *testing.T) {
	relabel := func(ctx context.Context, leaf string) error {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"fabric.topograph.run/tier-0":%q}}}`, leaf)
		_, err := lab.Client.CoreV1().Nodes().Patch(ctx, "node-2", types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
	ns := lab.Namespace(t)
	j := watch(t)
	t.Cleanup(func() {
		if err := relabel(context.Background(), "leaf-1"); err != nil {
			t.Error(err)
		}
	})
	held(t, "reserved", func() { group(t, j, ns, judge.Gang{ID: "train", Size: 4, Required: true}) })
	if err := relabel(t.Context(), "leaf-2"); err != nil {
		t.Fatal(err)
	}
	bystander(t, j, ns)
	verdict(t, j, settling)
}
