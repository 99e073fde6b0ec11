// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/apis"
	"github.com/frond-scheduler/frond/plugin/status"
	"github.com/frond-scheduler/frond/test/harness"
)

// startWriter runs one until the test ends.
func startWriter(t *testing.T) *status.Writer {
	t.Helper()
	writer := status.New(client, time.Now)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); writer.Run(ctx, 4) }()
	t.Cleanup(func() { cancel(); <-done })
	return writer
}

func create(t *testing.T, resource schema.GroupVersionResource, ns, kind, name string, spec map[string]any) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": resource.GroupVersion().String(), "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
	}}
	made, err := client.Resource(resource).Namespace(ns).Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create %s %s: %v", kind, name, err)
	}
	return made
}

func claimStatus(ctx context.Context, ns, name string) (*apis.GpuClaimStatus, error) {
	object, err := client.Resource(apis.GpuClaims).Namespace(ns).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return apis.Status[apis.GpuClaimStatus](object)
}

// A claim goes through all its phases; while GPUs are held for it, its spec stays as it is.
func TestTheLifeOfAClaim(t *testing.T) {
	ns, writer := lab.Namespace(t), startWriter(t)
	claims := client.Resource(apis.GpuClaims).Namespace(ns)
	made := create(t, apis.GpuClaims, ns, apis.KindGpuClaim, "claim", map[string]any{"devices": map[string]any{"count": int64(2)}})
	state := status.ClaimState{Namespace: ns, Name: "claim", UID: made.GetUID(), Node: "node-1", GPUs: []string{"node-1-gpu-1", "node-1-gpu-0"}}
	for i, c := range []struct {
		phase  apis.ClaimPhase
		pod    string
		frozen bool
	}{
		{apis.ClaimPending, "", false},
		{apis.ClaimPending, "pod", false},
		{apis.ClaimReserved, "pod", true},
		{apis.ClaimBound, "pod", true},
		{apis.ClaimReleased, "pod", false},
		{apis.ClaimFailed, "other", false},
		{apis.ClaimBound, "other", true},
	} {
		state.Phase, state.Pod = c.phase, types.NamespacedName{Namespace: ns, Name: c.pod}
		writer.Claim(state)
		harness.Eventually(t, 10*time.Second, func(ctx context.Context) error {
			got, err := claimStatus(ctx, ns, "claim")
			if err != nil {
				return err
			}
			held := got.NodeName == "node-1" && slices.Equal(got.GPUIDs, state.GPUs)
			if got.Phase != c.phase || held != c.frozen || len(got.Conditions) != 3 || (got.Pod == nil) != (c.pod == "") {
				return fmt.Errorf("%s: status is %+v", c.phase, got)
			}
			return nil
		})
		patch := fmt.Appendf(nil, `{"spec":{"devices":{"count":%d}}}`, i+3)
		_, err := claims.Patch(t.Context(), "claim", types.MergePatchType, patch, metav1.PatchOptions{})
		if c.frozen && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "may not change while the claim is "+string(c.phase))) {
			t.Errorf("%s: a changed spec is answered with %v", c.phase, err)
		}
		if !c.frozen && err != nil {
			t.Errorf("%s: a changed spec is answered with %v", c.phase, err)
		}
	}
}

// What was meant for a deleted claim never reaches the one that was made after it, whenever it was made.
func TestARecreatedClaimIsNotHit(t *testing.T) {
	ns, writer := lab.Namespace(t), startWriter(t)
	claims := client.Resource(apis.GpuClaims).Namespace(ns)
	for range 20 {
		old := create(t, apis.GpuClaims, ns, apis.KindGpuClaim, "claim", map[string]any{})
		writer.Claim(status.ClaimState{Namespace: ns, Name: "claim", UID: old.GetUID(), Phase: apis.ClaimBound})
		if err := claims.Delete(t.Context(), "claim", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		fresh := create(t, apis.GpuClaims, ns, apis.KindGpuClaim, "claim", map[string]any{})
		writer.Claim(status.ClaimState{Namespace: ns, Name: "claim", UID: fresh.GetUID(), Phase: apis.ClaimPending})
		writer.Claim(status.ClaimState{Namespace: ns, Name: "claim", UID: old.GetUID(), Phase: apis.ClaimReleased})
		harness.Eventually(t, 10*time.Second, func(ctx context.Context) error {
			got, err := claimStatus(ctx, ns, "claim")
			if err != nil {
				return err
			}
			if got.Phase != apis.ClaimPending {
				return fmt.Errorf("phase %q", got.Phase)
			}
			return nil
		})
		if err := claims.Delete(t.Context(), "claim", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// A gang of 512 pods costs a handful of writes; the last state is there.
func TestAGangCostsAFewWrites(t *testing.T) {
	ns, writer := lab.Namespace(t), startWriter(t)
	made := create(t, apis.PodGroups, ns, "PodGroup", "group", map[string]any{"minMember": int64(512)})
	watch, err := client.Resource(apis.PodGroups).Namespace(ns).Watch(t.Context(), metav1.ListOptions{ResourceVersion: made.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	var writes atomic.Int32
	go func() {
		for range watch.ResultChan() {
			writes.Add(1)
		}
	}()
	start := time.Now()
	for n := range int32(512) {
		writer.Group(status.GroupState{Namespace: ns, Name: "group", UID: made.GetUID(), Phase: apis.GroupScheduling, Scheduled: n, Start: start})
		time.Sleep(time.Millisecond)
	}
	writer.Group(status.GroupState{Namespace: ns, Name: "group", UID: made.GetUID(), Phase: apis.GroupScheduled, Scheduled: 512, OccupiedBy: ns + "/job"})
	took := time.Since(start)
	harness.Eventually(t, 10*time.Second, func(ctx context.Context) error {
		object, err := client.Resource(apis.PodGroups).Namespace(ns).Get(ctx, "group", metav1.GetOptions{})
		if err != nil {
			return err
		}
		got, err := apis.Status[apis.PodGroupStatus](object)
		if err != nil {
			return err
		}
		if got.Phase != apis.GroupScheduled || got.Scheduled != 512 || got.OccupiedBy != ns+"/job" || got.ScheduleStartTime.Unix() != start.Unix() {
			return fmt.Errorf("status is %+v", got)
		}
		return nil
	})
	allowed := int32(took/(200*time.Millisecond)) + 2
	if got := writes.Load(); got > allowed {
		t.Errorf("%d writes in %s, at most %d are allowed", got, took, allowed)
	}
	t.Logf("513 states in %s cost %d writes", took.Round(time.Millisecond), writes.Load())
}

// Claims, one for each pod of a gang, are reserved and bound at the same moment.
func TestManyClaimsAtOnce(t *testing.T) {
	ns, writer := lab.Namespace(t), startWriter(t)
	const count = 128
	uids := make([]types.UID, count)
	for i := range uids {
		uids[i] = create(t, apis.GpuClaims, ns, apis.KindGpuClaim, fmt.Sprint("claim-", i), map[string]any{}).GetUID()
	}
	start := time.Now()
	for _, phase := range []apis.ClaimPhase{apis.ClaimReserved, apis.ClaimBound} {
		for i, uid := range uids {
			writer.Claim(status.ClaimState{Namespace: ns, Name: fmt.Sprint("claim-", i), UID: uid, Phase: phase, Node: "node-1", GPUs: []string{"node-1-gpu-0"}})
		}
		time.Sleep(50 * time.Millisecond)
	}
	harness.Eventually(t, 30*time.Second, func(ctx context.Context) error {
		list, err := client.Resource(apis.GpuClaims).Namespace(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		bound := 0
		for i := range list.Items {
			if got, err := apis.Status[apis.GpuClaimStatus](&list.Items[i]); err == nil && got.Phase == apis.ClaimBound {
				bound++
			}
		}
		if bound != count {
			return fmt.Errorf("%d of %d are Bound", bound, count)
		}
		return nil
	})
	t.Logf("%d claims said Bound after %s", count, time.Since(start).Round(time.Millisecond))
}

// The API server's answers for a kind without a definition and for a missing object are told apart as the writer does.
func TestAMissingDefinitionIsNotAMissingObject(t *testing.T) {
	definitions := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	name := apis.TopologySchedulerConfigs.GroupResource().String()
	definition, err := definitions.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := definitions.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	wantServed := func(want bool) {
		t.Helper()
		harness.Eventually(t, 30*time.Second, func(ctx context.Context) error {
			_, err := client.Resource(apis.TopologySchedulerConfigs).Get(ctx, "nobody", metav1.GetOptions{})
			if served := !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse); served != want || !apierrors.IsNotFound(err) {
				return fmt.Errorf("served: %t; %v", served, err)
			}
			return nil
		})
	}
	wantServed(false)
	fresh := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": definition.GetAPIVersion(), "kind": definition.GetKind(), "metadata": map[string]any{"name": name}, "spec": definition.Object["spec"],
	}}
	if _, err := definitions.Create(t.Context(), fresh, metav1.CreateOptions{}); err != nil {
		t.Fatalf("put the definition back: %v", err)
	}
	wantServed(true)
}
