// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/frond-scheduler/frond/shim"
)

func groupText(api, spec string) string {
	return "{apiVersion: " + api + ", kind: PodGroup, metadata: {namespace: ml, name: g, uid: u, annotations: {a: b}}, spec: " + spec + "}"
}

func TestPodGroups(t *testing.T) {
	const ours, native = "scheduling.x-k8s.io/v1alpha1", "scheduling.k8s.io/v1beta1"
	for _, test := range []struct {
		name, api, spec string
		want            int
		bad             string
	}{
		{"good", ours, "{minMember: 8}", 8, ""},
		{"one", ours, "{minMember: 1}", 1, ""},
		{"zero", ours, "{minMember: 0}", 0, "PodGroup ml/g: spec.minMember must be between 1 and 16384, got 0"},
		{"negative", ours, "{minMember: -3}", 0, "got -3"},
		{"2^31-1", ours, "{minMember: 2147483647}", 0, "got 2147483647"},
		{"limit", ours, fmt.Sprintf("{minMember: %d}", shim.MembersMax), shim.MembersMax, ""},
		{"limit + 1", ours, fmt.Sprintf("{minMember: %d}", shim.MembersMax+1), 0, "got 16385"},
		{"missing", ours, "{}", 0, "is missing"},
		{"no number", ours, "{minMember: eight}", 0, "is not a number"},
		{"no spec", ours, "7", 0, "spec is no object"},
		{"timeout zero", ours, "{minMember: 8, scheduleTimeoutSeconds: 0}", 8, "spec.scheduleTimeoutSeconds must be between 1 and 2147483647, got 0"},
		{"timeout negative", ours, "{minMember: 8, scheduleTimeoutSeconds: -1}", 8, "got -1"},
		{"timeout too large", ours, "{minMember: 8, scheduleTimeoutSeconds: 4294967296}", 8, "got 4294967296"},
		{"timeout no number", ours, "{minMember: 8, scheduleTimeoutSeconds: soon}", 8, "spec.scheduleTimeoutSeconds is not a number"},
		{"resources no object", ours, "{minMember: 8, minResources: 7}", 8, "spec.minResources must be an object"},
		{"resources no quantity", ours, "{minMember: 8, minResources: {cpu: many}}", 8, `spec.minResources.cpu must be a quantity of 0 or more, such as "8" or "64Gi", got "many"`},
		{"resources negative", ours, "{minMember: 8, minResources: {cpu: -1}}", 8, `got "-1"`},
		{"native gang", native, "{schedulingPolicy: {gang: {minCount: 4}}}", 4, ""},
		{"native basic", native, "{schedulingPolicy: {basic: {}}}", 1, ""},
		{"native zero", native, "{schedulingPolicy: {gang: {minCount: 0}}}", 0, "spec.schedulingPolicy.gang.minCount must be between 1 and 16384, got 0"},
		{"native no object", native, "{schedulingPolicy: {gang: 4}}", 0, "spec.schedulingPolicy.gang is no object"},
		{"native alpha", "scheduling.k8s.io/v1alpha3", "{schedulingPolicy: {gang: {minCount: 4}}}", 4, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			kept, err := reader(t).Compact(parse(t, groupText(test.api, test.spec)))
			group, ok := kept.(*Group)
			if err != nil || !ok {
				t.Fatalf("%T %v", kept, err)
			}
			want := GangID{Kind: KindPodGroup, Namespace: "ml", Name: "g"}
			if test.api != ours {
				want.Kind = KindNativeGroup
			}
			got := group.Spec
			if group.ID != want || got.UID != "u" || got.MinMember != test.want || (test.bad == "") != (got.Problem == "") || !strings.Contains(got.Problem, test.bad) || len(group.Annotations) != 0 {
				t.Errorf("got %+v", group)
			}
		})
	}
}

func TestWishesOfAGroup(t *testing.T) {
	read := func(spec string) Spec {
		return newPodGroup(parse(t, groupText("scheduling.x-k8s.io/v1alpha1", spec))).Spec
	}
	got := read("{minMember: 8, scheduleTimeoutSeconds: 90, minResources: {cpu: 64, memory: 1Ti, nvidia.com/gpu: '64'}}")
	if got.Problem != "" || got.ScheduleTimeout != 90*time.Second || len(got.MinResources) != 3 || !got.MinResources.Memory().Equal(resource.MustParse("1Ti")) {
		t.Errorf("got %+v", got)
	}
	if none := read("{minMember: 8}"); none.MinResources != nil || none.ScheduleTimeout != 0 {
		t.Errorf("got %+v", none)
	}
	if !got.Equal(read("{minMember: 8, scheduleTimeoutSeconds: 90, minResources: {cpu: 64000m, memory: 1024Gi, nvidia.com/gpu: 64}}")) {
		t.Error("the same in other words")
	}
	for _, other := range []string{"{minMember: 7, scheduleTimeoutSeconds: 90, minResources: {cpu: 64, memory: 1Ti, nvidia.com/gpu: 64}}",
		"{minMember: 8, scheduleTimeoutSeconds: 91, minResources: {cpu: 64, memory: 1Ti, nvidia.com/gpu: 64}}",
		"{minMember: 8, scheduleTimeoutSeconds: 90, minResources: {cpu: 64, memory: 1Ti}}", "{minMember: 0}"} {
		if got.Equal(read(other)) {
			t.Errorf("%s is another", other)
		}
	}
}
