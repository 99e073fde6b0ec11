// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/frond-scheduler/frond/plugin/apis"
	"github.com/frond-scheduler/frond/test/harness"
)

// statusPatience is how long a status may take on a busy machine.
const statusPatience = 30 * time.Second

// statusOf reads the status of an object.
func statusOf[T any](ctx context.Context, resource schema.GroupVersionResource, ns, name string) (*T, int64, error) {
	object, err := dynamic.NewForConfigOrDie(lab.Config).Resource(resource).Namespace(ns).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, 0, err
	}
	status, err := apis.Status[T](object)
	return status, object.GetGeneration(), err
}

// wantClaim waits until a claim is in the phase, with these parts in the message of all its conditions.
func wantClaim(t *testing.T, ns, name string, phase apis.ClaimPhase, says ...string) (got *apis.GpuClaimStatus) {
	t.Helper()
	harness.Eventually(t, statusPatience, func(ctx context.Context) error {
		var generation int64
		var err error
		if got, generation, err = statusOf[apis.GpuClaimStatus](ctx, apis.GpuClaims, ns, name); err != nil {
			return err
		}
		if got.Phase != phase || got.ObservedGeneration != generation || len(got.Conditions) != 3 {
			return fmt.Errorf("GpuClaim %s, generation %d, is %+v, want %s", name, generation, *got, phase)
		}
		for _, condition := range got.Conditions {
			for _, part := range says {
				if !strings.Contains(condition.Message, part) {
					return fmt.Errorf("condition %s of GpuClaim %s says %q, want %q in it", condition.Type, name, condition.Message, part)
				}
			}
		}
		return nil
	})
	for condition, want := range map[string]bool{
		apis.ConditionReserved: phase == apis.ClaimReserved || phase == apis.ClaimBound,
		apis.ConditionBound:    phase == apis.ClaimBound, apis.ConditionFailed: phase == apis.ClaimFailed,
	} {
		if meta.IsStatusConditionTrue(got.Conditions, condition) != want {
			t.Errorf("a claim that is %s has condition %s: %+v", phase, condition, got.Conditions)
		}
	}
	return got
}

func wantGroup(t *testing.T, ns, name string, phase apis.GroupPhase, says ...string) (got *apis.PodGroupStatus) {
	t.Helper()
	harness.Eventually(t, statusPatience, func(ctx context.Context) error {
		var err error
		if got, _, err = statusOf[apis.PodGroupStatus](ctx, apis.PodGroups, ns, name); err != nil {
			return err
		}
		condition := meta.FindStatusCondition(got.Conditions, apis.ConditionScheduled)
		if got.Phase != phase || condition == nil {
			return fmt.Errorf("PodGroup %s is %+v, want %s; %s", name, *got, phase, lab.Reasons(ctx, ns))
		}
		for _, part := range says {
			if !strings.Contains(condition.Message, part) {
				return fmt.Errorf("PodGroup %s says %q, want %q in it", name, condition.Message, part)
			}
		}
		return nil
	})
	return got
}

func makeClaim(t *testing.T, ns, name, spec string) {
	t.Helper()
	mustKubectl(t, fmt.Sprintf("apiVersion: gpu.scheduling/v1\nkind: GpuClaim\nmetadata: {name: %s}\nspec: %s", name, spec), "apply", "-n", ns, "-f", "-")
}

func makeClaimPod(t *testing.T, ns, name, claim string, gpus int64, change ...func(*corev1.Pod)) {
	t.Helper()
	change = append(change, func(pod *corev1.Pod) {
		pod.Labels = nil
		pod.Annotations["gpu.scheduling/claim"] = claim
	})
	lab.Member(t, ns, name, "", gpus, change...)
}

func deletePod(t *testing.T, ns, name string) {
	t.Helper()
	if err := lab.Client.CoreV1().Pods(ns).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// A claim says at every moment how far it has come, where, and why not further.
func TestClaimPhases(t *testing.T) {
	ns := lab.Namespace(t)
	makeClaim(t, ns, "mine", "{devices: {count: 4}, topology: {mode: Required, minBandwidthGBps: 1000}}")
	wantClaim(t, ns, "mine", apis.ClaimPending, "no pod uses it")
	makeClaimPod(t, ns, "one", "mine", 4)
	lab.WaitReason(t, ns, "never fits")
	wantClaim(t, ns, "mine", apis.ClaimPending, "never fits", "that its claim allows")

	makeClaim(t, ns, "mine", "{devices: {count: 4}}")
	got := wantClaim(t, ns, "mine", apis.ClaimBound, "pod one")
	pod, err := lab.Client.CoreV1().Pods(ns).Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.NodeName != pod.Spec.NodeName || strings.Join(got.GPUIDs, ",") != pod.Annotations["gpu.scheduling/allocated"] || len(got.GPUIDs) != 4 || got.Pod == nil || got.Pod.UID != pod.UID {
		t.Errorf("the claim says %+v, the pod is on %s with %v", got, pod.Spec.NodeName, pod.Annotations)
	}
	wantFields(t, mustKubectl(t, "", "get", "gclaim", "-n", ns), "mine", "Bound", "4", "contiguous", pod.Spec.NodeName, "one")

	deletePod(t, ns, "one")
	if got := wantClaim(t, ns, "mine", apis.ClaimReleased); got.NodeName != "" || got.GPUIDs != nil || got.Pod == nil || got.Pod.Name != "one" {
		t.Errorf("released: %+v", got)
	}
	makeClaimPod(t, ns, "two", "mine", 4, harness.RunFor("1"))
	harness.Eventually(t, statusPatience, func(ctx context.Context) error { // it runs for a second only
		got, _, err := statusOf[apis.GpuClaimStatus](ctx, apis.GpuClaims, ns, "mine")
		if err == nil && (got.Phase != apis.ClaimReleased || got.Pod.Name != "two") {
			err = fmt.Errorf("the claim is %+v", *got)
		}
		return err
	})
	deletePod(t, ns, "two")

	makeClaimPod(t, ns, "three", "mine", 2)
	wantClaim(t, ns, "mine", apis.ClaimFailed, "asks for 4 GPUs and the pod's limits are 2")
	deletePod(t, ns, "three")
	wantClaim(t, ns, "mine", apis.ClaimPending, "no pod uses it")
}

// A scheduler that was not there when a pod went away finds the claim and lets it go.
func TestClaimIsReleasedAcrossARestart(t *testing.T) {
	ns := lab.Namespace(t)
	makeClaim(t, ns, "mine", "{devices: {count: 4}}")
	makeClaimPod(t, ns, "one", "mine", 4)
	held := wantClaim(t, ns, "mine", apis.ClaimBound)
	pid := signal(t, "scheduler", syscall.SIGSTOP)
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) }) // should the test end before it is killed
	deletePod(t, ns, "one")
	harness.Eventually(t, statusPatience, func(ctx context.Context) error {
		_, err := lab.Client.CoreV1().Pods(ns).Get(ctx, "one", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the pod is still there (%v)", err)
		}
		return nil
	})
	signal(t, "scheduler", syscall.SIGKILL) // the lab starts another one
	if got := wantClaim(t, ns, "mine", apis.ClaimReleased); got.Pod == nil || got.Pod.Name != "one" {
		t.Errorf("released: %+v", got)
	}
	harness.Eventually(t, 10*time.Second, func(ctx context.Context) error { // its GPUs are to be had again, too
		lease, err := lab.Client.CoordinationV1().Leases("frond-system").Get(ctx, held.NodeName, metav1.GetOptions{})
		if err == nil && strings.Contains(lease.Annotations["gpu.scheduling/owners"], string(held.Pod.UID)) {
			err = fmt.Errorf("node %s is still locked for the pod", held.NodeName)
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// A claim with a gangRef is as far as the last of its pods.
func TestClaimOfAGang(t *testing.T) {
	ns := lab.Namespace(t)
	makeClaim(t, ns, "pairs", "{devices: {count: 2}, gangRef: group}")
	lab.Group(t, ns, "group", 2)
	makeClaimPod(t, ns, "w-0", "pairs", 2)
	wantClaim(t, ns, "pairs", apis.ClaimPending, "0 of 1 pods have their GPUs; pod w-0: ", "1 of 2 pods")
	makeClaimPod(t, ns, "w-1", "pairs", 2)
	if got := wantClaim(t, ns, "pairs", apis.ClaimBound, "2 of 2 pods have their GPUs"); got.NodeName != "" || got.GPUIDs != nil || got.Pod != nil {
		t.Errorf("it serves two pods: %+v", got)
	}
	wantGroup(t, ns, "group", apis.GroupRunning)
	makeClaimPod(t, ns, "w-2", "pairs", 4)
	wantClaim(t, ns, "pairs", apis.ClaimFailed, "2 of 3 pods", "pod w-2: ", "asks for 2 GPUs and the pod's limits are 4")
	for _, name := range []string{"w-0", "w-1", "w-2"} {
		deletePod(t, ns, name)
	}
	wantGroup(t, ns, "group", apis.GroupPending, "no pod")
}

// signal sends one to a program of the lab.
func signal(t *testing.T, name string, what syscall.Signal) (pid int) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(lab.Dir, "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	var state struct {
		Programs []struct {
			Name string
			PID  int
		}
	}
	if err := json.Unmarshal(data, &state); err != nil {
		t.Fatal(err)
	}
	for _, program := range state.Programs {
		if program.Name != name || program.PID <= 0 {
			continue
		}
		if err := syscall.Kill(program.PID, what); err != nil {
			t.Fatal(err)
		}
		return program.PID
	}
	t.Fatalf("the lab runs no %s", name)
	return 0
}

// pauseKWOK keeps bound pods from running, until the returned function is called.
func pauseKWOK(t *testing.T) (resume func()) {
	t.Helper()
	pid := signal(t, "kwok", syscall.SIGSTOP)
	resume = func() { _ = syscall.Kill(pid, syscall.SIGCONT) }
	t.Cleanup(resume)
	return resume
}

// A PodGroup says at every moment how far it has come and what it waits for, whichever label its pods carry.
func TestPodGroupPhases(t *testing.T) {
	ns := lab.Namespace(t)
	lab.Group(t, ns, "group", 4)
	wantGroup(t, ns, "group", apis.GroupPending, "no pod")
	lab.Cordon(t, 4, harness.Nodes) // three are left
	old := func(pod *corev1.Pod) {
		pod.Labels = map[string]string{"pod-group.scheduling.sigs.k8s.io": "group"}
	}
	lab.Member(t, ns, "w-0", "group", 8, harness.RunFor("3"))
	lab.Member(t, ns, "w-1", "group", 8, harness.RunFor("3"), old)
	if got := wantGroup(t, ns, "group", apis.GroupPending, "2 of 4 pods are there"); got.ScheduleStartTime != nil {
		t.Errorf("nothing was tried yet: %+v", got)
	}
	lab.Member(t, ns, "w-2", "group", 8, harness.RunFor("3"))
	lab.Member(t, ns, "w-3", "group", 8, harness.RunFor("3"), old)
	if got := wantGroup(t, ns, "group", apis.GroupPreScheduling, "needs 4 nodes", "has 3 free"); got.ScheduleStartTime == nil {
		t.Errorf("an attempt was made: %+v", got)
	}
	resume := pauseKWOK(t)
	mustKubectl(t, "", "uncordon", "node-4")
	if got := wantGroup(t, ns, "group", apis.GroupScheduled); got.Scheduled != 4 || got.Running != 0 {
		t.Errorf("scheduled: %+v", got)
	}
	resume()
	if got := wantGroup(t, ns, "group", apis.GroupRunning); got.Running == 0 {
		t.Errorf("running: %+v", got)
	}
	if got := wantGroup(t, ns, "group", apis.GroupFinished); got.Succeeded != 4 || got.Running != 0 || got.Scheduled != 0 {
		t.Errorf("finished: %+v", got)
	}
	wantFields(t, mustKubectl(t, "", "get", "podgroups", "-n", ns), "group", "Finished", "4", "4")
}

func TestPodGroupsThatFailOrLoseMembers(t *testing.T) {
	ns := lab.Namespace(t)
	for _, name := range []string{"fails", "loses"} {
		lab.Group(t, ns, name, 2)
		lab.Member(t, ns, name+"-0", name, 1)
		lab.Member(t, ns, name+"-1", name, 1, func(pod *corev1.Pod) {
			if name == "fails" {
				pod.Annotations["frond.lab/fail-seconds"] = "2"
			}
		})
	}
	wantGroup(t, ns, "loses", apis.GroupRunning)
	deletePod(t, ns, "loses-1")
	wantGroup(t, ns, "loses", apis.GroupUnknown, "1 of 2 pods are left")
	if got := wantGroup(t, ns, "fails", apis.GroupFailed, "1 pods have failed"); got.Failed != 1 || got.Running != 1 {
		t.Errorf("failed: %+v", got)
	}
}

// wantApplied waits for the verdict on the newest version of the SchedulerConfig named default.
func wantApplied(t *testing.T, want metav1.ConditionStatus, says string) {
	t.Helper()
	harness.Eventually(t, statusPatience, func(ctx context.Context) error {
		got, generation, err := statusOf[apis.ConfigStatus](ctx, apis.SchedulerConfigs, "", apis.ConfigName)
		if err != nil {
			return err
		}
		applied := meta.FindStatusCondition(got.Conditions, apis.ConditionApplied)
		if applied == nil || applied.Status != want || applied.ObservedGeneration != generation || !strings.Contains(applied.Message, says) {
			return fmt.Errorf("generation %d: %+v, want %s %q", generation, *got, want, says)
		}
		return nil
	})
}

// Live configuration counts for the next gang, a bad one does not, and without the object all is as before: who waits is
// woken by that alone.
func TestLiveConfigurationDecidesWhatFits(t *testing.T) {
	ns := lab.Namespace(t)
	configs := dynamic.NewForConfigOrDie(lab.Config).Resource(apis.SchedulerConfigs)
	t.Cleanup(func() {
		if err := configs.Delete(context.Background(), apis.ConfigName, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	before, after := harness.Gang{Name: "before", Pods: 16, GPUs: 8, RunSeconds: 1}, harness.Gang{Name: "after", Pods: 16, GPUs: 8}
	lab.Submit(t, ns, before)
	checkPlacement(t, lab.Bound(t, ns, before), 8, 4)

	put := func(spec string) {
		t.Helper()
		mustKubectl(t, "apiVersion: topology.scheduler/v1alpha1\nkind: SchedulerConfig\nmetadata: {name: default}\nspec: "+spec, "apply", "-f", "-")
	}
	put("{topologyConstraints: {maxNodesPerLeaf: 1}}") // 12 leaves
	wantApplied(t, metav1.ConditionTrue, "in force")
	lab.Submit(t, ns, after)
	lab.WaitReason(t, ns, "never fits", "16 nodes")

	put("{topologyConstraints: {maxNodesPerLeaf: 4}, scoringWeights: {modelCache: 0.1234}}")
	wantApplied(t, metav1.ConditionFalse, "spec.scoringWeights.modelCache")
	wantApplied(t, metav1.ConditionFalse, "the last good version of this object stays in force")
	if pods, err := lab.JobPods(t.Context(), ns, after.Name); err != nil || harness.BoundCount(pods) != 0 {
		t.Errorf("%d pods are bound by a configuration that was refused (%v)", harness.BoundCount(pods), err)
	}
	mustKubectl(t, "", "delete", "scfg", apis.ConfigName)
	checkPlacement(t, lab.Bound(t, ns, after), 8, 4)
}
