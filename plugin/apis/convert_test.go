// SPDX-License-Identifier: Apache-2.0

package apis

import (
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestObjectsSurviveTheWayThere(t *testing.T) {
	numa := int32(1)
	at := metav1.NewTime(time.Unix(1_800_000_000, 0))
	claim := GpuClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns", UID: "u", Generation: 2},
		Spec: GpuClaimSpec{
			Devices:  ClaimDevices{Count: 2, Policy: "preferIds", PreferIDs: []intstr.IntOrString{intstr.FromInt32(3), intstr.FromString("GPU-1")}},
			Topology: ClaimTopology{Mode: "Required", MinBandwidthGBps: 200},
			Selector: &ClaimSelector{MatchLabels: map[string]string{"zone": "a"}}, GangRef: "group",
		},
		Status: GpuClaimStatus{
			Phase: ClaimBound, NodeName: "node-1", GPUIDs: []string{"b", "a"}, Pod: &ClaimPod{Name: "p", UID: "q"},
			Conditions: []metav1.Condition{{Type: ConditionBound, Status: metav1.ConditionTrue, LastTransitionTime: at, Reason: "R", Message: "m"}},
		},
	}
	report := GpuNodeStatus{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Status: NodeReport{
		Total: 1, Heartbeat: at,
		Devices: []Device{{ID: "GPU-1", Health: Unhealthy, NUMANode: &numa, Links: []Link{{Peer: 1, Kind: "NVLink", BandwidthGBps: 450}}, InUseBy: []string{"ns/pod"}}},
	}}
	again(t, claim)
	again(t, report)
}

func again[T any](t *testing.T, in T) {
	t.Helper()
	content, err := Encode(&in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := Decode[T](content)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(in, *out) {
		t.Errorf("went in as %+v, came out as %+v", in, *out)
	}
}

func TestStatusOfOddObjects(t *testing.T) {
	for _, c := range []struct {
		name   string
		status any
		ok     bool
	}{
		{"none", nil, true},
		{"empty", map[string]any{}, true},
		{"unknown field", map[string]any{"colour": "red"}, true},
		{"text", "Bound", false},
		{"number for a phase", map[string]any{"phase": int64(3)}, false},
		{"text for conditions", map[string]any{"conditions": "Bound"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: map[string]any{"kind": "GpuClaim", "metadata": map[string]any{"name": "c"}}}
			if c.status != nil {
				object.Object["status"] = c.status
			}
			if _, err := Status[GpuClaimStatus](object); (err == nil) != c.ok {
				t.Errorf("said %v", err)
			}
		})
	}
}
