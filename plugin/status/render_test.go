// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/apis"
)

// The life of a claim: each phase has its conditions, and a condition keeps its time until it turns.
func TestClaimPhases(t *testing.T) {
	bubble(t, []*unstructured.Unstructured{claimObject("c", "u")}, func(r *rig) {
		begin := time.Now()
		pod := types.NamespacedName{Namespace: "ns", Name: "pod"}
		for minute, c := range []struct {
			state                   ClaimState
			reserved, bound, failed string // status, and minutes since the beginning when it turned
			reason, message         string
			holds                   bool
		}{
			{ClaimState{Phase: apis.ClaimPending}, "False 0", "False 0", "False 0", "Unused", "no pod uses it", false},
			{ClaimState{Phase: apis.ClaimPending, Pod: pod}, "False 0", "False 0", "False 0", "Waiting", "pod pod waits for a place", false},
			{ClaimState{Phase: apis.ClaimPending, Pod: pod, Reason: "NoRoom", Message: "needs 2 GPUs"}, "False 0", "False 0", "False 0", "NoRoom", "needs 2 GPUs", false},
			{ClaimState{Phase: apis.ClaimReserved, Pod: pod}, "True 3", "False 0", "False 0", "Reserved", "GPUs are reserved for pod pod", true},
			{ClaimState{Phase: apis.ClaimBound, Pod: pod}, "True 3", "True 4", "False 0", "PodBound", "GPUs are bound for pod pod", true},
			{ClaimState{Phase: apis.ClaimReleased, Pod: pod}, "False 5", "False 5", "False 0", "PodEnded", "its pod has ended; the claim may be used again", false},
			{ClaimState{Phase: apis.ClaimFailed, Message: "claim.devices.count: 2, but the pod's limit is 4"}, "False 5", "False 5", "True 6", "Refused", "claim.devices.count: 2, but the pod's limit is 4", false},
			{ClaimState{Phase: apis.ClaimBound}, "True 7", "True 7", "False 7", "PodBound", "GPUs are bound", true},
		} {
			c.state.Namespace, c.state.Name, c.state.UID, c.state.PodUID = "ns", "c", "u", "pod-uid"
			c.state.Node, c.state.GPUs = "node-1", []string{"b", "a"}
			r.Claim(c.state)
			r.rest(time.Minute)
			status := r.claim("c").Status
			if status.Phase != c.state.Phase || status.ObservedGeneration != 3 {
				t.Errorf("%d: phase %s, generation %d", minute, status.Phase, status.ObservedGeneration)
			}
			if holds := status.NodeName == "node-1" && slices.Equal(status.GPUIDs, []string{"b", "a"}); holds != c.holds {
				t.Errorf("%s: holds %s %v", c.state.Phase, status.NodeName, status.GPUIDs)
			}
			if named := status.Pod != nil && *status.Pod == (apis.ClaimPod{Name: "pod", UID: "pod-uid"}); named != (c.state.Pod == pod) {
				t.Errorf("%s: pod %v", c.state.Phase, status.Pod)
			}
			for name, want := range map[string]string{apis.ConditionReserved: c.reserved, apis.ConditionBound: c.bound, apis.ConditionFailed: c.failed} {
				got := condition(t, status.Conditions, name)
				turned := int(got.LastTransitionTime.Sub(begin) / time.Minute)
				if text := string(got.Status) + " " + string(rune('0'+turned)); text != want || got.Reason != c.reason || got.Message != c.message || got.ObservedGeneration != 3 {
					t.Errorf("%s: %s is %s (%s: %s, generation %d), want %s (%s: %s)", c.state.Phase, name, text, got.Reason, got.Message, got.ObservedGeneration, want, c.reason, c.message)
				}
			}
		}
	})
}

func TestTheGenerationThatWasDecidedOnIsNamed(t *testing.T) {
	bubble(t, []*unstructured.Unstructured{claimObject("c", "u")}, func(r *rig) {
		state := claimState("c", "u", apis.ClaimPending)
		state.Generation = 2 // the user has changed it since
		r.Claim(state)
		r.rest(time.Second)
		if got := r.claim("c").Status.ObservedGeneration; got != 2 {
			t.Errorf("observed generation %d", got)
		}
	})
}

// A status that somebody filled with other things is replaced whole.
func TestForeignStatusIsReplaced(t *testing.T) {
	odd := claimObject("c", "u")
	odd.Object["status"] = map[string]any{"phase": int64(7), "conditions": "none", "more": true}
	bubble(t, []*unstructured.Unstructured{odd}, func(r *rig) {
		r.Claim(claimState("c", "u", apis.ClaimBound))
		r.rest(time.Second)
		if status := r.get(apis.GpuClaims, "ns", "c").Object["status"].(map[string]any); status["phase"] != "Bound" || status["more"] != nil || len(status["conditions"].([]any)) != 3 {
			t.Errorf("status %v", status)
		}
	})
}

func TestGroupPhases(t *testing.T) {
	bubble(t, []*unstructured.Unstructured{groupObject("g", "u")}, func(r *rig) {
		start := time.Now()
		for _, c := range []struct {
			state GroupState
			want  metav1.ConditionStatus
		}{
			{GroupState{Phase: apis.GroupPending, Message: "2 of 4 pods are there"}, metav1.ConditionFalse},
			{GroupState{Phase: apis.GroupPreScheduling, Start: start, OccupiedBy: "ns/job"}, metav1.ConditionFalse},
			{GroupState{Phase: apis.GroupScheduling, Scheduled: 1}, metav1.ConditionFalse},
			{GroupState{Phase: apis.GroupUnknown, Scheduled: 1}, metav1.ConditionUnknown},
			{GroupState{Phase: apis.GroupScheduled, Scheduled: 4}, metav1.ConditionTrue},
			{GroupState{Phase: apis.GroupRunning, Scheduled: 4, Running: 4}, metav1.ConditionTrue},
			{GroupState{Phase: apis.GroupFinished, Succeeded: 4}, metav1.ConditionTrue},
			{GroupState{Phase: apis.GroupFailed, Succeeded: 3, Failed: 1}, metav1.ConditionFalse},
		} {
			c.state.Namespace, c.state.Name, c.state.UID = "ns", "g", "u"
			r.Group(c.state)
			r.rest(time.Minute)
			status, err := apis.Status[apis.PodGroupStatus](r.get(apis.PodGroups, "ns", "g"))
			if err != nil {
				t.Fatal(err)
			}
			if status.Phase != c.state.Phase || status.Scheduled != c.state.Scheduled || status.Running != c.state.Running ||
				status.Succeeded != c.state.Succeeded || status.Failed != c.state.Failed {
				t.Errorf("%s: status %+v", c.state.Phase, status)
			}
			if got := condition(t, status.Conditions, apis.ConditionScheduled); got.Status != c.want || got.Reason != string(c.state.Phase) || got.Message != c.state.Message {
				t.Errorf("%s: condition %+v", c.state.Phase, got)
			}
			if c.state.Phase == apis.GroupPending {
				continue
			}
			if status.OccupiedBy != "ns/job" || status.ScheduleStartTime == nil || status.ScheduleStartTime.Unix() != start.Unix() {
				t.Errorf("%s: started %v by %q", c.state.Phase, status.ScheduleStartTime, status.OccupiedBy)
			}
		}
	})
}

func TestConfigConditions(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apis.Topology.String(), "kind": apis.KindSchedulerConfig,
		"metadata": map[string]any{"name": "default", "uid": "u", "generation": int64(9)},
	}}
	bubble(t, []*unstructured.Unstructured{object}, func(r *rig) {
		for _, applied := range []bool{true, false} {
			r.Config(ConfigState{Resource: apis.SchedulerConfigs, Name: "default", UID: "u", Generation: 8, Applied: applied, Reason: "Why", Message: "because"})
			r.rest(time.Second)
			status, err := apis.Status[apis.ConfigStatus](r.get(apis.SchedulerConfigs, "", "default"))
			if err != nil {
				t.Fatal(err)
			}
			got := condition(t, status.Conditions, apis.ConditionApplied)
			if got.Status != truth(applied) || got.ObservedGeneration != 8 || status.ObservedGeneration != 8 || got.Reason != "Why" || got.Message != "because" {
				t.Errorf("status %+v", status)
			}
		}
	})
}

func TestReportConditionsLeaveTheReportAlone(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apis.GPU.String(), "kind": apis.KindGpuNodeStatus, "metadata": map[string]any{"name": "node-1", "uid": "u"},
		"status": map[string]any{"total": int64(8), "heartbeat": "2026-01-02T15:04:05Z"},
	}}
	bubble(t, []*unstructured.Unstructured{object}, func(r *rig) {
		begin := time.Now()
		for minute, c := range []struct {
			state           ReportState
			accepted, fresh string // status, and minutes since the beginning when it turned
			says            string
		}{
			{ReportState{}, "True 0", "True 0", ""},
			{ReportState{Stale: "old"}, "True 0", "False 1", "old; what it said last stays"},
			{ReportState{Stale: "old", Held: true}, "True 0", "False 1", "old; what it said last stays, and no new pods go there"},
			{ReportState{Refused: "odd"}, "False 3", "True 3", ""},
		} {
			c.state.Name, c.state.UID = "node-1", "u"
			r.Report(c.state)
			r.Report(c.state)
			r.rest(time.Minute)
			status, err := apis.Status[apis.NodeReport](r.get(apis.GpuNodeStatuses, "", "node-1"))
			if err != nil {
				t.Fatal(err)
			}
			if status.Total != 8 || status.Heartbeat.IsZero() || len(status.Conditions) != 2 {
				t.Errorf("%d: status %+v", minute, status)
			}
			for name, want := range map[string]string{apis.ConditionAccepted: c.accepted, apis.ConditionFresh: c.fresh} {
				got := condition(t, status.Conditions, name)
				if text := fmt.Sprintf("%s %d", got.Status, got.LastTransitionTime.Sub(begin)/time.Minute); text != want {
					t.Errorf("%d: %s is %s, want %s", minute, name, text, want)
				}
			}
			if got := condition(t, status.Conditions, apis.ConditionFresh).Message; got != c.says {
				t.Errorf("%d: says %q", minute, got)
			}
		}
		if len(r.patches) != 4 {
			t.Errorf("%d patches for 4 states", len(r.patches))
		}
	})
}

// An object into which nobody has written yet has no report that could be judged.
func TestAnEmptyReportHasNoConditions(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apis.GPU.String(), "kind": apis.KindGpuNodeStatus, "metadata": map[string]any{"name": "node-1", "uid": "u"},
	}}
	bubble(t, []*unstructured.Unstructured{object}, func(r *rig) {
		r.Report(ReportState{Name: "node-1", UID: "u"})
		r.rest(time.Minute)
		if _, there := r.get(apis.GpuNodeStatuses, "", "node-1").Object["status"]; there || len(r.patches) != 0 {
			t.Errorf("%d patches", len(r.patches))
		}
	})
}

func TestMessagesAreClippedBetweenLetters(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"short", "as it is", "as it is"},
		{"as long as allowed", strings.Repeat("x", apis.MessageMax), strings.Repeat("x", apis.MessageMax)},
		{"one more", strings.Repeat("x", apis.MessageMax+1), strings.Repeat("x", apis.MessageMax-3) + "…"},
		{"in a letter", strings.Repeat("ü", apis.MessageMax), strings.Repeat("ü", apis.MessageMax/2-2) + "…"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := clip(c.in); got != c.want || !utf8.ValidString(got) || len(got) > apis.MessageMax {
				t.Errorf("%d bytes: …%q", len(got), got[max(0, len(got)-8):])
			}
		})
	}
}
