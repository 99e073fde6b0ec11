// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
)

func lwsText(extra string) string {
	return `
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {namespace: ml, name: serve, uid: lws-1, annotations: {topology.scheduler/gpu-count: "48"}}
spec:
  replicas: 2
  ` + extra + `
  leaderWorkerTemplate:
    size: 4
    workerTemplate: {spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: 8}}}]}}
`
}

// lwsObjects are what the controller makes for group 0: the leaders' StatefulSet, the leader, and its workers' StatefulSet,
// which the leader owns. The controller copies the annotations of the set to both.
func lwsObjects() []any {
	return []any{
		&appsv1.StatefulSet{ObjectMeta: meta("serve", "sts-leaders", "leaderworkerset.x-k8s.io/v1 LeaderWorkerSet serve lws-1", GPUCount, "48"),
			Spec: appsv1.StatefulSetSpec{Replicas: new(int32(2))}},
		lwsPod(0),
		&appsv1.StatefulSet{ObjectMeta: meta("serve-0", "sts-workers", "v1 Pod serve-0 uid-serve-0", GPUCount, "48"),
			Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3))}},
	}
}

func lwsPod(worker int) *v1.Pod {
	name, by := "serve-0", "apps/v1 StatefulSet serve sts-leaders"
	if worker > 0 {
		name, by = fmt.Sprint("serve-0-", worker), "apps/v1 StatefulSet serve-0 sts-workers"
	}
	p := labelled(owned(pod(name, 8), by), "leaderworkerset.sigs.k8s.io/name", "serve", "leaderworkerset.sigs.k8s.io/group-index", "0",
		"leaderworkerset.sigs.k8s.io/group-key", "689ad2", "leaderworkerset.sigs.k8s.io/worker-index", fmt.Sprint(worker),
		"leaderworkerset.sigs.k8s.io/template-revision-hash", "7c9", "apps.kubernetes.io/pod-index", fmt.Sprint(worker))
	return with(p, "leaderworkerset.sigs.k8s.io/size", "4")
}

func TestALeaderWorkerSetIsAGangPerGroup(t *testing.T) {
	r := reader(t, append(lwsObjects(), parse(t, lwsText("")))...)
	pods := []*v1.Pod{lwsPod(3), lwsPod(0), lwsPod(1), lwsPod(2)}
	want := GangID{Kind: KindLeaderWorkerSet, Namespace: "ml", Name: "serve-0", UID: "689ad2"}
	for _, p := range pods {
		if got := r.Classify(p); got.Kind != Member || got.Gang != want || got.Size != 4 || !got.Gang.OwnSize() {
			t.Errorf("%s: %+v", p.Name, got)
		}
		request, _, wishes := r.SingleRequest(p, time.Now())
		if request.GPUsDesired != 2*4*8 || wishes[GPUCount] != "48" {
			t.Errorf("%s: copies on StatefulSets are not what carries gpu-count: %d %v", p.Name, request.GPUsDesired, wishes)
		}
	}
	if got, note := ranksOf(r, pods); !slices.Equal(got, []uint32{3, 0, 1, 2}) || note != "" {
		t.Errorf("ranks %v %s", got, note)
	}
	other := lwsPod(1)
	other.Labels[lwsGroupKey], other.Labels[lwsGroupIndex] = "aa01", "1"
	if got := r.Classify(other); got.Gang.String() != "ml/serve-1" || got.Gang.UID != "aa01" {
		t.Errorf("another group: %+v", got)
	}
}

func TestTheChainOfAWorkerGoesThroughItsLeader(t *testing.T) {
	objects := lwsObjects()
	r := reader(t, objects[0], objects[2], parse(t, lwsText("")))
	if got := r.Classify(lwsPod(1)); got.Kind != Unknown || got.Gang.Kind != "Pod" || got.Gang.Name != "serve-0" {
		t.Errorf("the leader has not been seen: %+v", got)
	}
	enter(t, r, with(lwsPod(0), GPUCount, "8"))
	if got := r.Annotations(lwsPod(1))[GPUCount]; got != "48" {
		t.Errorf("what the leader asks for it asks for itself: %s", got)
	}
}

func TestALeaderThatIsWaitedForIsAGangOfItsOwn(t *testing.T) {
	r := reader(t, append(lwsObjects(), parse(t, lwsText("startupPolicy: LeaderReady")))...)
	if got := r.Classify(lwsPod(0)); got.Kind != Member || got.Size != 1 {
		t.Errorf("got %+v", got)
	}
	for worker := 1; worker < 4; worker++ {
		if got := r.Classify(lwsPod(worker)); got.Kind != Member || got.Size != 3 || got.Gang.Name != "serve-0 workers" {
			t.Errorf("got %+v", got)
		}
	}
}

func TestLeaderWorkerSetsWithTwoTemplates(t *testing.T) {
	text := strings.Replace(lwsText(""), "size: 4", "size: 4\n    leaderTemplate: {spec: {containers: [{name: c}]}}", 1)
	r := reader(t, append(lwsObjects(), parse(t, text))...)
	if request, _, _ := r.SingleRequest(lwsPod(1), time.Now()); request.GPUsDesired != 2*3*8 {
		t.Errorf("got %d", request.GPUsDesired)
	}
}

func TestGroupsOfNoGoodSize(t *testing.T) {
	for _, size := range []string{"", "0", "-1", "four", "16385", "99999999999999999999"} {
		p := pod("a", 8)
		labelled(p, lwsName, "serve", lwsGroupKey, "k")
		if size != "" {
			with(p, lwsSize, size)
		}
		if got := reader(t).Classify(p); got.Kind != Refused || !strings.Contains(got.Problem, "must be a number from 1 to 16384, got \""+size) {
			t.Errorf("%q: got %+v", size, got)
		}
	}
	if got := reader(t).Classify(labelled(pod("a", 8), lwsName, "serve")); got.Kind != Single {
		t.Errorf("no group: %+v", got)
	}
	odd := reader(t, append(lwsObjects(), parse(t, strings.Replace(lwsText(""), "size: 4", "size: many", 1)))...)
	if got := odd.Classify(lwsPod(1)); got.Kind != Member || got.Size != 4 {
		t.Errorf("pods say all that is needed: %+v", got)
	}
}
