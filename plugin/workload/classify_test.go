// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestClassify(t *testing.T) {
	gang, plain := job(4, 4, GPUCount, "32"), job(4, 4)
	jobGang := GangID{Kind: KindJob, Namespace: "ml", Name: "train", UID: "job-1"}
	groupGang := GangID{Kind: KindPodGroup, Namespace: "ml", Name: "g"}
	member := func(gpus uint32) Class { return Class{Kind: Member, GPUs: gpus, Gang: groupGang, Needs: podGroups} }
	recreated := job(4, 4, GPUCount, "32")
	recreated.UID = "job-2"
	native := pod("a", 8)
	native.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: new("g")}
	nativeGang := Class{Kind: Member, GPUs: 8, Gang: GangID{Kind: KindNativeGroup, Namespace: "ml", Name: "g"}, Needs: nativeGroups}
	other := of(pod("a", 8), gang)
	other.Namespace = "theirs"
	bound := with(grouped(of(pod("a", 8), gang), "g"), Rank, "0")
	bound.Spec.NodeName = "node-1"
	foreign := grouped(of(pod("a", 8), gang), "g") // it came with a node, or another scheduler has bound it
	foreign.Spec.NodeName = "node-1"
	idle := grouped(pod("a"), "g")
	idle.Spec.NodeName = "node-1"
	elsewhere := with(grouped(pod("a", 8), "g"), Rank, "0")
	elsewhere.Spec.SchedulerName = "another-scheduler"
	settled := elsewhere.DeepCopy()
	settled.Spec.NodeName = "node-1"
	for _, test := range []struct {
		name    string
		objects []any
		pod     *v1.Pod
		want    Class
	}{
		{"no GPUs, no owner", nil, pod("a"), Class{Kind: Plain}},
		{"GPUs", nil, pod("a", 2, 1), Class{Kind: Single, GPUs: 3}},
		{"gpu-count without GPUs is a contradiction to be told", nil, with(pod("a"), GPUCount, "8"), Class{Kind: Single}},
		{"native group", nil, native, nativeGang},
		{"native group before labels", nil, grouped(native.DeepCopy(), "g"), nativeGang},
		{"group", nil, grouped(pod("a", 8), "g"), member(8)},
		{"older label", nil, labelled(pod("a", 8), OldPodGroupLabel, "g"), member(8)},
		{"both labels", nil, labelled(grouped(pod("a", 8), "g"), OldPodGroupLabel, "g"), member(8)},
		{"empty label", nil, grouped(pod("a", 8), ""), Class{Kind: Single, GPUs: 8}},
		{"group wins over Job", []any{gang}, grouped(of(pod("a", 8), gang), "g"), member(8)},
		{"group waits for its Job, which carries annotations", nil, grouped(of(pod("a", 8), gang), "g"), Class{Kind: Unknown, GPUs: 8, Gang: jobGang, Needs: jobs}},
		{"unless it is bound", nil, bound, member(8)},
		{"bound by somebody else", []any{gang}, foreign, Class{Kind: Single, GPUs: 8}},
		{"bound by somebody else, no GPUs", nil, idle, Class{Kind: Plain}},
		{"of another scheduler", nil, elsewhere, Class{Kind: Single, GPUs: 8}},
		{"of another scheduler, bound", nil, settled, Class{Kind: Single, GPUs: 8}},
		{"group without GPUs", nil, grouped(pod("a"), "g"), member(0)},
		{"Job with gpu-count", []any{gang}, of(pod("a", 8), gang), Class{Kind: Member, GPUs: 8, Gang: jobGang}},
		{"Job with gpu-count, no limits", []any{gang}, of(pod("a"), gang), Class{Kind: Member, Gang: jobGang}},
		{"a plain Job never becomes a gang", []any{plain}, of(pod("a", 8), plain), Class{Kind: Single, GPUs: 8}},
		{"a plain Job without GPUs", []any{plain}, of(pod("a"), plain), Class{Kind: Plain}},
		{"a pod that carries gpu-count speaks for itself", []any{gang}, with(of(pod("a", 8), gang), GPUCount, "8"), Class{Kind: Single, GPUs: 8}},
		{"parallelism 1", []any{job(1, 4, GPUCount, "8")}, of(pod("a", 8), gang), Class{Kind: Single, GPUs: 8}},
		{"one completion", []any{job(4, 1, GPUCount, "8")}, of(pod("a", 8), gang), Class{Kind: Single, GPUs: 8}},
		{"Job not seen yet", nil, of(pod("a", 8), gang), Class{Kind: Unknown, GPUs: 8, Gang: jobGang, Needs: jobs}},
		{"another Job of that name", []any{recreated}, of(pod("a", 8), gang), Class{Kind: Unknown, GPUs: 8, Gang: jobGang, Needs: jobs}},
		{"a Job of another namespace", []any{gang}, other, Class{Kind: Unknown, GPUs: 8, Gang: GangID{Kind: KindJob, Namespace: "theirs", Name: "train", UID: "job-1"}, Needs: jobs}},
		{"an owner of unknown kind says nothing", nil, owned(pod("a", 8), "example.com/v1 Thing x u"), Class{Kind: Single, GPUs: 8}},
		{"a Job of another API group", nil, owned(pod("a", 8), "example.com/v1 Job x u"), Class{Kind: Single, GPUs: 8}},
		{"a pod that owns pods, as Spark's driver", nil, owned(pod("a", 8), "v1 Pod driver u"), Class{Kind: Single, GPUs: 8}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := reader(t, test.objects...)
			r.Serve(func(schedulerName string) bool { return schedulerName != "another-scheduler" })
			if got := r.Classify(test.pod); got != test.want {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestContradictionsAreRefusedByName(t *testing.T) {
	native := func(p *v1.Pod, name string) *v1.Pod {
		p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &name}
		return p
	}
	claim := parse(t, claimText("c", "{devices: {count: 8}, gangRef: theirs}"))
	for _, test := range []struct {
		name string
		pod  *v1.Pod
		want []string
	}{
		{"two labels", labelled(grouped(pod("a", 8), "mine"), OldPodGroupLabel, "theirs"), []string{`"mine"`, `"theirs"`, OldPodGroupLabel}},
		{"native and label", native(grouped(pod("a", 8), "theirs"), "mine"), []string{`"mine"`, `"theirs"`, PodGroupLabel}},
		{"label and claim", with(grouped(pod("a", 8), "mine"), ClaimAnnotation, "c"), []string{`"mine"`, `"theirs"`, "gangRef of GpuClaim c"}},
		{"native and claim", with(native(pod("a", 8), "mine"), ClaimAnnotation, "c"), []string{`"mine"`, `"theirs"`}},
		{"no name of an object", grouped(pod("a", 8), "My_Group"), []string{PodGroupLabel, "My_Group", "lower case"}},
		{"a long one is cut", grouped(pod("a", 8), strings.Repeat("X", 63)), []string{"…"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := reader(t, claim).Classify(test.pod)
			if got.Kind != Refused || got.Gang != (GangID{}) {
				t.Fatalf("got %+v", got)
			}
			for _, want := range test.want {
				if !strings.Contains(got.Problem, want) {
					t.Errorf("%q lacks %q", got.Problem, want)
				}
			}
		})
	}
}

func TestNativeGroupsAreUpstreamsWhereItFormsThem(t *testing.T) {
	native := func(p *v1.Pod) *v1.Pod {
		p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: new("g")}
		return p
	}
	r := reader(t)
	r.LeaveNativeGroups()
	if got := r.Classify(native(pod("a", 8))); got.Kind != Refused || !strings.Contains(got.Problem, "GenericWorkload") || !strings.Contains(got.Problem, PodGroupLabel) {
		t.Errorf("with GPUs: %+v", got)
	}
	if got := r.Classify(native(pod("a"))); got != (Class{Kind: Plain}) {
		t.Errorf("without GPUs: %+v", got)
	}
	bound := native(with(pod("a", 8), Rank, "0"))
	bound.Spec.NodeName = "node-1"
	if got := r.Classify(bound); got.Kind != Member {
		t.Errorf("bound: %+v", got)
	}
	if got := r.Classify(grouped(pod("a", 8), "g")); got.Kind != Member {
		t.Errorf("a PodGroup of ours: %+v", got)
	}
}
