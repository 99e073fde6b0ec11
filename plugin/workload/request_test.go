// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/frond-scheduler/frond/shim"
)

func TestRequests(t *testing.T) {
	now := time.Unix(1000, 0)
	j := job(4, 2, GPUCount, "16")
	p := of(pod("a", 8), j)
	p.CreationTimestamp = metav1.NewTime(now.Add(-time.Minute))
	r := reader(t, j)

	urgent := with(pod("s", 4), GPUCount, "4")
	urgent.Spec.Priority = new(int32(1000))
	single, member, _ := r.SingleRequest(urgent, now)
	if single.Priority != 1000 || single.GPUsDesired != 4 || member.GPUs != 4 || member.PinnedSlot != shim.None || single.Name != "ml/s" || single.Gang != member.Pod || single.Claim != "" {
		t.Errorf("single: %+v %+v", single, member)
	}

	young := of(pod("b", 8), j)
	young.CreationTimestamp = metav1.NewTime(now.Add(-time.Second))
	future := of(pod("c", 8), j)
	future.CreationTimestamp = metav1.NewTime(now.Add(time.Hour))
	members := []GangMember{{Pod: p, GPUs: 8, Rank: 0, Slot: shim.None}, {Pod: young, GPUs: 8, Rank: 1, Slot: shim.None}, {Pod: future, GPUs: 8, Rank: 2, Slot: 5}}
	request, out, annotations := r.GangRequest(r.Classify(p).Gang, jobSpec(j), p, members, now, now.Add(-time.Second))
	if request.Priority != 0 || request.GPUsDesired != 16 || request.MinMember != 2 || request.Age != time.Second || request.Name != "ml/train" {
		t.Errorf("gang: %+v", request)
	}
	if len(out) != 3 || out[2].PinnedSlot != 5 || out[1].Rank != 1 || annotations[GPUCount] != "16" {
		t.Errorf("members: %+v", out)
	}
}

// gpu-count is held against the GPUs that the object which carries it asks for in all.
func TestWhatGPUCountIsHeldAgainst(t *testing.T) {
	count := []string{GPUCount, "64"}
	deployment := func(annotations ...string) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: meta("web", "d", "", annotations...), Spec: appsv1.DeploymentSpec{Replicas: new(int32(8))}}
	}
	replicaSet := func(replicas int32, annotations ...string) *appsv1.ReplicaSet {
		return &appsv1.ReplicaSet{ObjectMeta: meta("web-1", "r", "apps/v1 Deployment web d", annotations...), Spec: appsv1.ReplicaSetSpec{Replicas: &replicas}}
	}
	web := func() *v1.Pod { return owned(pod("a", 8), "apps/v1 ReplicaSet web-1 r") }
	cron := &batchv1.CronJob{ObjectMeta: meta("nightly", "c", "", count...), Spec: batchv1.CronJobSpec{JobTemplate: batchv1.JobTemplateSpec{Spec: job(4, 4).Spec}}}
	nightly := job(4, 4)
	nightly.OwnerReferences = []metav1.OwnerReference{controller("batch/v1 CronJob nightly c")}
	daemons := &appsv1.DaemonSet{ObjectMeta: meta("ds", "ds", "", count...), Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 5}}
	set := &appsv1.StatefulSet{ObjectMeta: meta("ss", "ss", "", count...)}
	for _, test := range []struct {
		name    string
		objects []any
		pod     *v1.Pod
		want    uint64
	}{
		{"the pod", []any{deployment(count...), replicaSet(3)}, with(web(), GPUCount, "8"), 8},
		{"nobody", []any{deployment(), replicaSet(3)}, web(), 8},
		{"Deployment", []any{deployment(count...), replicaSet(3)}, web(), 64},
		{"a copy on the ReplicaSet, which is half rolled out", []any{deployment(count...), replicaSet(3, count...)}, web(), 64},
		{"another value on the ReplicaSet", []any{deployment(count...), replicaSet(3, GPUCount, "24")}, web(), 24},
		{"Job", []any{job(4, 2, count...)}, of(pod("a", 8), job(4, 2)), 16},
		{"CronJob", []any{cron, nightly}, of(pod("a", 8), nightly), 32},
		{"StatefulSet, replicas by default", []any{set}, owned(pod("a", 8), "apps/v1 StatefulSet ss ss"), 8},
		{"DaemonSet", []any{daemons}, owned(pod("a", 8), "apps/v1 DaemonSet ds ds"), 40},
	} {
		t.Run(test.name, func(t *testing.T) {
			request, _, _ := reader(t, test.objects...).SingleRequest(test.pod, time.Now())
			if request.GPUsDesired != test.want {
				t.Errorf("got %d, want %d", request.GPUsDesired, test.want)
			}
		})
	}
	if got := reader(t, cron, nightly).Classify(of(pod("a", 8), nightly)); got.Kind != Member || got.Gang.Name != "train" {
		t.Errorf("gpu-count on the CronJob makes each of its Jobs a gang: %+v", got)
	}
	if got := reader(t, deployment(count...), replicaSet(3)).Classify(web()); got.Kind != Single {
		t.Errorf("a Deployment makes no gang: %+v", got)
	}
	if got := reader(t, deployment(count...), replicaSet(3)).Classify(owned(pod("a"), "apps/v1 ReplicaSet web-1 r")); got.Kind != Single {
		t.Errorf("a contradiction to be told: %+v", got)
	}
}

func TestSumsDoNotOverflow(t *testing.T) {
	if times(1<<31, 1<<31) != most || plus(most, most) != most || times(-1, 5) != 0 || times(3, 4) != 12 {
		t.Error("sums are bounded")
	}
}
