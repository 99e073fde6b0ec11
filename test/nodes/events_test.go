// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/apis"
	"github.com/frond-scheduler/frond/test/harness"
)

var errNotYet = errors.New("not yet")

// A GPU dies under a running pod. A second after, the next pod gets all the others that are free and never that one.
func TestADeadGPUIsAvoidedWithinASecond(t *testing.T) {
	ns, node := lab.Namespace(t), nodeOfDeath
	create(t, ns, "running", node, 2)
	old, hers := bound(t, ns, "running")
	running(t, ns, "running")
	var reported []time.Duration
	for round := range 2 + rounds(t) {
		// Her own GPU, and one that nobody has.
		victim := hers[0]
		if round%2 == 1 {
			victim = listOf(0xff &^ maskOf(hers))[round%6]
		}
		t.Run(fmt.Sprintf("round-%d-gpu-%d", round, victim), func(t *testing.T) {
			back := seen(t, node, healthy(victim))
			t.Run("dies", func(t *testing.T) {
				told := seen(t, node, sick(victim))
				describe(t, node, fmt.Sprintf("lost %d", victim))
				event := time.Now()
				reported = append(reported, wait(t, told, "a report of the dead GPU").Sub(event))
				time.Sleep(time.Until(event.Add(limit)))
				want := listOf(0xff &^ maskOf(hers) &^ (1 << victim))
				name := fmt.Sprintf("next-%d", round)
				create(t, ns, name, node, len(want))
				pod, got := bound(t, ns, name)
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Errorf("GPU %d is dead, %v are held, and the pod got %v, want %v", victim, hers, got, want)
				}
				if shown := getGNS(t, node); !strings.Contains(shown, "the GPU is lost") || !strings.Contains(shown, fmt.Sprintf(" %d ", victim)) {
					t.Errorf("kubectl get gns shows\n%s", shown)
				}
				remove(t, ns, node, pod)
				untouched(t, old)
			})
			wait(t, back, "a report of the GPU that is back")
		})
	}
	tellTimes(t, "from the death of a GPU to its report", reported)
	if slowest := slices.Max(reported); slowest > limit {
		t.Errorf("%s until a report; the next placement may be wrong for as long", slowest)
	}
}

// A link of a DGX-1V fails, then a whole pair: the best two GPUs are others from then on.
func TestADegradedLinkIsAvoidedWithinASecond(t *testing.T) {
	ns, node := lab.Namespace(t), nodeOfLinks
	create(t, ns, "running", node, 1)
	old, hers := bound(t, ns, "running")
	var reported []time.Duration
	for round, down := range [][]string{{"down 0 2"}, {"down 0 2", "down 0 3"}, {"down 1 1", "down 1 2", "down 4 2"}} {
		back := seen(t, node, func(r *apis.NodeReport) bool { return sameLinks(r, readMachine(t, node)) })
		t.Run(strings.ReplaceAll(strings.Join(down, "-"), " ", "-"), func(t *testing.T) {
			var told <-chan time.Time
			before := readMachine(t, node)
			told = seen(t, node, func(r *apis.NodeReport) bool { return !sameLinks(r, before) })
			describe(t, node, down...)
			event := time.Now()
			reported = append(reported, wait(t, told, "a report of the link").Sub(event))
			time.Sleep(time.Until(event.Add(limit)))
			m := readMachine(t, node)
			j := newJudge(m)
			for k := 2; k <= 4; k++ {
				free := m.free(map[int]bool{hers[0]: true})
				name := fmt.Sprintf("next-%d-%d", round, k)
				create(t, ns, name, node, k)
				pod, got := bound(t, ns, name)
				if want := j.best(free, k); !slices.Equal(got, want) {
					t.Errorf("%d of %v: got %v, the best are %v", k, free, got, want)
				}
				remove(t, ns, node, pod)
			}
			untouched(t, old)
		})
		wait(t, back, "a report of the link that is back")
	}
	tellTimes(t, "from the failure of a link to its report", reported)
	if slowest := slices.Max(reported); slowest > limit {
		t.Errorf("%s until a report", slowest)
	}
}

func sameLinks(r *apis.NodeReport, m *machine) bool {
	for _, d := range r.Devices {
		row := make([]int, m.gpus)
		for _, link := range d.Links {
			row[link.Peer] = int(link.BandwidthGBps)
		}
		if !slices.Equal(row, m.gbps[d.Index]) {
			return false
		}
	}
	return len(r.Devices) == m.gpus
}

// An agent falls silent. The event is the moment in which its report counts as stale, 90 s after the last renewal of its Lease;
// so that the test need not wait, that is set back to a moment before it, unless FROND_FULL asks for all of it.
func TestASilentNodeTakesNoNewPodsWithinASecond(t *testing.T) {
	ns, node := lab.Namespace(t), nodeOfSilence
	create(t, ns, "running", node, 2)
	old, _ := bound(t, ns, "running")
	agent, err := lab.Running("frond-agent-" + node)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(agent.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	resumed := false
	resume := func() {
		if !resumed {
			resumed = true
			if err := syscall.Kill(agent.PID, syscall.SIGCONT); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(resume)
	beat := renewed(t, node)
	if os.Getenv("FROND_FULL") == "" {
		beat = setBack(t, node)
	}
	event := beat.Add(90 * time.Second)
	told := seen(t, node, func(r *apis.NodeReport) bool { return meta.IsStatusConditionFalse(r.Conditions, apis.ConditionFresh) })
	time.Sleep(time.Until(event.Add(limit)))
	create(t, ns, "next", node, 1)
	t.Logf("from the moment to the condition: %s", wait(t, told, "the condition").Sub(event).Round(time.Millisecond))
	lab.WaitReason(t, ns, "next")
	if pod, err := lab.Client.CoreV1().Pods(ns).Get(t.Context(), "next", metav1.GetOptions{}); err != nil || pod.Spec.NodeName != "" {
		t.Errorf("the next pod went to %s, %v", pod.Spec.NodeName, err)
	}
	if shown := getGNS(t, node); !strings.Contains(shown, "False") {
		t.Errorf("kubectl get gns shows\n%s", shown)
	}
	scheduler, err := lab.Running("scheduler")
	if err != nil {
		t.Fatal(err)
	}
	page, err := lab.Scrape(t.Context(), scheduler.Port, "/metrics")
	for _, line := range []string{"topology_scheduler_stale_reports 1\n", "topology_scheduler_held_nodes 1\n", "topology_scheduler_refused_reports 0\n"} {
		if err != nil || !strings.Contains(string(page), line) {
			t.Errorf("the scheduler's metrics lack %q, %v", line, err)
		}
	}
	harness.Eventually(t, 10*time.Second, func(ctx context.Context) error {
		events, err := lab.Client.CoreV1().Events("").List(ctx, metav1.ListOptions{FieldSelector: "reason=StaleReport,involvedObject.name=" + node})
		if err == nil && len(events.Items) == 0 {
			err = errNotYet
		}
		return err
	})
	untouched(t, old)
	describe(t, node, "used 0 9000") // something to write: its next renewal may be half a minute away
	resume()
	fresh := time.Now()
	pod, _ := bound(t, ns, "next")
	t.Logf("from the agent's return to the binding of the pod that waited: %s", time.Since(fresh).Round(time.Millisecond))
	if pod.Spec.NodeName != node {
		t.Errorf("bound to %s", pod.Spec.NodeName)
	}
	harness.Eventually(t, 10*time.Second, func(context.Context) error {
		if !meta.IsStatusConditionTrue(report(t, node).Conditions, apis.ConditionFresh) {
			return errNotYet
		}
		return nil
	})
	untouched(t, old)
}

// renewed is when the agent of a node has last renewed its Lease.
func renewed(t *testing.T, node string) time.Time {
	t.Helper()
	lease, err := lab.Client.CoordinationV1().Leases(apis.HeartbeatNamespace).Get(t.Context(), apis.HeartbeatPrefix+node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return lease.Spec.RenewTime.Time
}

// setBack makes the last renewal one that is stale in a moment.
func setBack(t *testing.T, node string) time.Time {
	t.Helper()
	beat := time.Now().Add(-89 * time.Second).UTC().Truncate(time.Microsecond)
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"renewTime": metav1.NewMicroTime(beat)}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lab.Client.CoordinationV1().Leases(apis.HeartbeatNamespace).Patch(t.Context(), apis.HeartbeatPrefix+node, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	return beat
}

// A report that cannot be is refused in its own conditions, and the last good one stays. The agent puts it right.
func TestAReportThatContradictsItselfIsNotBelieved(t *testing.T) {
	ns, node := lab.Namespace(t), nodeOfErasure
	agent, err := lab.Running("frond-agent-" + node)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(agent.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(agent.PID, syscall.SIGCONT) }()
	patch := []byte(`[{"op":"replace","path":"/status/devices/0/links/0/bandwidthGBps","value":7}]`)
	if _, err := objects.Resource(apis.GpuNodeStatuses).Patch(t.Context(), node, types.JSONPatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, 10*time.Second, func(context.Context) error {
		condition := meta.FindStatusCondition(report(t, node).Conditions, apis.ConditionAccepted)
		if condition == nil || condition.Status != metav1.ConditionFalse || !strings.Contains(condition.Message, "must say the same as the other end") {
			return fmt.Errorf("condition %+v", condition)
		}
		return nil
	})
	create(t, ns, "next", node, 8)
	if _, got := bound(t, ns, "next"); !slices.Equal(got, []int{0, 1, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("got %v", got)
	}
	if err := syscall.Kill(agent.PID, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	describe(t, node, "used 0 5000") // something to write
	harness.Eventually(t, 40*time.Second, func(context.Context) error {
		if !meta.IsStatusConditionTrue(report(t, node).Conditions, apis.ConditionAccepted) {
			return errNotYet
		}
		return nil
	})
}

// The object is deleted: its agent makes it again, and pods meanwhile go by the last ids that were known.
func TestADeletedReportComesBack(t *testing.T) {
	node := nodeOfErasure
	before, err := objects.Resource(apis.GpuNodeStatuses).Get(t.Context(), node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := objects.Resource(apis.GpuNodeStatuses).Delete(t.Context(), node, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	describe(t, node, "used 1 9000")
	harness.Eventually(t, 40*time.Second, func(ctx context.Context) error {
		after, err := objects.Resource(apis.GpuNodeStatuses).Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if _, there := after.Object["status"]; after.GetUID() == before.GetUID() || !there {
			return errNotYet
		}
		if owners := after.GetOwnerReferences(); len(owners) != 1 || owners[0].Kind != "Node" || owners[0].Name != node {
			return fmt.Errorf("owners %v", owners)
		}
		return nil
	})
}

// A node goes for good: its report and its agent's Lease go with it, and the agent, if it still runs, does not bring them back.
func TestAReportGoesWithItsNode(t *testing.T) {
	node := nodeThatGoes
	if err := lab.Client.CoreV1().Nodes().Delete(t.Context(), node, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, 40*time.Second, func(ctx context.Context) error {
		_, err := objects.Resource(apis.GpuNodeStatuses).Get(ctx, node, metav1.GetOptions{})
		if err == nil {
			return errNotYet
		}
		return nil
	})
	describe(t, node, "lost 0")
	time.Sleep(3 * time.Second)
	if object, err := objects.Resource(apis.GpuNodeStatuses).Get(t.Context(), node, metav1.GetOptions{}); err == nil {
		t.Errorf("it is back: %v", object.GetOwnerReferences())
	}
	harness.Eventually(t, 40*time.Second, func(ctx context.Context) error {
		_, err := lab.Client.CoordinationV1().Leases(apis.HeartbeatNamespace).Get(ctx, apis.HeartbeatPrefix+node, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return errors.Join(errNotYet, err)
		}
		return nil
	})
}
