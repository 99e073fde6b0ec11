// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/frond-scheduler/frond/test/faultproxy"
	"github.com/frond-scheduler/frond/test/harness"
	"github.com/frond-scheduler/frond/test/judge"
)

// The scheduler dies with a gang half-bound, and before it is back others have taken every place that is left: the gang
// cannot be finished, so what is bound of it is given back within 30 s, and it waits as a whole.
func TestHalfGangThatCannotBeFinished(t *testing.T) {
	for _, point := range either([]string{"bind-half"}, []string{"bind-first", "bind-half", "bind-last-but-one"}) {
		t.Run(point, func(t *testing.T) {
			ns := lab.Namespace(t)
			j := watch(t)
			lease := "taken-" + ns
			proxy := proxied(t, 0, lease)
			proxy.Set(faultproxy.Faults{Apart: apart})
			victim := lab.Run(t, harness.Setup{Program: "scheduler-faults", Server: proxy.Address(), Lease: lease, Failpoints: point + "=kill"})
			j.Expect(judge.Gang{ID: ns + "/train", Size: 16, Fate: judge.MayWait, Required: true})
			lab.Submit(t, ns, harness.Gang{Name: "train", Pods: 16, GPUs: 8})
			died(t, victim, point)
			if bound := boundOf(t, ns, "train"); bound == 0 || bound == 16 {
				t.Fatalf("%d of 16 pods are bound: the scheduler died at the wrong moment", bound)
			}
			takeFree(t, lab.Namespace(t))
			j.Resume()
			lab.Run(t, harness.Setup{Lease: lease})
			harness.Eventually(t, healing, func(context.Context) error {
				if bound := boundOf(t, ns, "train"); bound != 0 {
					return fmt.Errorf("%d of 16 pods are bound, and the others can never be", bound)
				}
				return nil
			})
			verdict(t, j, settling)
		})
	}
}

func boundOf(t *testing.T, ns, job string) int {
	t.Helper()
	pods, err := lab.JobPods(t.Context(), ns, job)
	if err != nil {
		t.Fatal(err)
	}
	return harness.BoundCount(pods)
}

// takeFree puts a pod of nobody's on every node that has none.
func takeFree(t *testing.T, ns string) {
	t.Helper()
	pods, err := lab.Client.CoreV1().Pods(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for i := range pods.Items {
		used[pods.Items[i].Spec.NodeName] = true
	}
	for n := 1; n <= harness.Nodes; n++ {
		node := fmt.Sprintf("node-%d", n)
		if used[node] {
			continue
		}
		spec := harness.PodSpec("nobody", 8)
		spec.NodeName = node
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "on-" + node}, Spec: spec}
		if _, err := lab.Client.CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatalf("take %s: %v", node, err)
		}
	}
}

// The old leader is paused between its decision and its first binding. The new one gives the same GPUs to a gang of higher
// priority. When the old one wakes up it goes on with what it had decided: it must not get through.
func TestOldLeaderCannotDoubleBook(t *testing.T) {
	const point = "permitted"
	ns := lab.Namespace(t)
	lab.Cordon(t, 5, harness.Nodes) // four nodes are left
	urgent := priority(t, "urgent-"+ns)
	j := watch(t)
	lease := "old-" + ns
	old := lab.Run(t, harness.Setup{Program: "scheduler-faults", Lease: lease, Failpoints: point + "=sleep:3s"})
	holder := holds(t, lease, "")
	group(t, j, ns, judge.Gang{ID: "first", Size: 4, Fate: judge.MayWait})
	harness.Eventually(t, healing, func(context.Context) error {
		if !old.Passed(point) {
			return errors.New("the scheduler has not come by " + point)
		}
		return nil
	})
	if err := old.Pause(); err != nil {
		t.Fatal(err)
	}
	j.Expect(judge.Gang{ID: ns + "/second", Size: 4, Within: healing})
	lab.Group(t, ns, "second", 4)
	for rank := range 4 {
		lab.Member(t, ns, fmt.Sprintf("second-%d", rank), "second", 8, func(pod *corev1.Pod) { pod.Spec.PriorityClassName = urgent })
	}
	lab.Run(t, harness.Setup{Lease: lease})
	holds(t, lease, holder)
	harness.Eventually(t, healing, func(context.Context) error {
		if bound := boundPods(t, ns, "second"); bound != 4 {
			return fmt.Errorf("%d of 4 pods of the urgent gang are bound", bound)
		}
		return nil
	})
	if err := old.Continue(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-old.Gone():
	case <-time.After(healing):
		t.Error("the old leader goes on although the lease is another's")
	}
	verdict(t, j, settling)
}

// priority makes a class above all others for as long as the test runs. Nobody is preempted for it.
func priority(t *testing.T, name string) string {
	t.Helper()
	never := corev1.PreemptNever
	classes := lab.Client.SchedulingV1().PriorityClasses()
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: 1000, PreemptionPolicy: &never}
	if _, err := classes.Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create a priority class: %v", err)
	}
	t.Cleanup(func() { _ = classes.Delete(context.Background(), name, metav1.DeleteOptions{}) })
	return name
}
