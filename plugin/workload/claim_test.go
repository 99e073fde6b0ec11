// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/apis"
	"github.com/frond-scheduler/frond/shim"
)

func claimText(name, spec string) string {
	return "{apiVersion: gpu.scheduling/v1, kind: GpuClaim, metadata: {namespace: ml, name: " + name + ", uid: uid-" + name + ", generation: 3}, spec: " + spec + "}"
}

func claiming(p *v1.Pod, claim string) *v1.Pod { return with(p, ClaimAnnotation, claim) }

func TestClaims(t *testing.T) {
	bound := claiming(pod("a", 4), "none")
	bound.Spec.NodeName = "node-1"
	for _, test := range []struct {
		name, spec string
		pod        *v1.Pod
		want       Kind
		says       string
	}{
		{"used", "{devices: {count: 8, policy: spread}}", claiming(pod("a", 8), "c"), Single, ""},
		{"count not said", "{}", claiming(pod("a", 8), "c"), Single, ""},
		{"not there", "{}", claiming(pod("a", 8), "none"), Unknown, ""},
		{"not there, and bound", "{}", bound, Single, ""},
		{"other count", "{devices: {count: 4}}", claiming(pod("a", 8), "c"), Refused, "GpuClaim ml/c asks for 4 GPUs and the pod's limits are 8"},
		{"no limits", "{devices: {count: 4}}", claiming(pod("a"), "c"), Refused, "asks for 4 GPUs and the pod's limits are 0"},
		{"no limits, no count", "{}", claiming(pod("a"), "c"), Refused, "1 GPU or more and the pod's limits are 0"},
		{"of another namespace", "{}", claiming(pod("a", 8), "other/c"), Refused, `in the pod's own namespace, got "other/c"`},
		{"empty name", "{}", claiming(pod("a", 8), ""), Refused, "must be the name of a GpuClaim"},
		{"shared", "{devices: {count: 8, exclusivity: Shared}}", claiming(pod("a", 8), "c"), Refused, `devices.exclusivity "Shared" is not supported yet`},
		{"MIG", "{devices: {count: 8, exclusivity: MIG}}", claiming(pod("a", 8), "c"), Refused, `"MIG" is not supported yet`},
		{"exclusive", "{devices: {count: 8, exclusivity: Exclusive}}", claiming(pod("a", 8), "c"), Single, ""},
		{"zero", "{devices: {count: 0}}", claiming(pod("a", 8), "c"), Refused, "devices.count must be a number of 1 or more"},
		{"count no number", "{devices: {count: many}}", claiming(pod("a", 8), "c"), Refused, "devices.count"},
		{"gangRef", "{devices: {count: 8}, gangRef: g}", claiming(pod("a", 8), "c"), Member, ""},
		{"gangRef that is no name", "{devices: {count: 8}, gangRef: My_Gang}", claiming(pod("a", 8), "c"), Refused, `got "My_Gang"`},
		{"gangRef no text", "{gangRef: 7}", claiming(pod("a", 8), "c"), Refused, "gangRef is no text"},
		{"selector", "{selector: {matchLabels: {zone: a}}}", claiming(pod("a", 8), "c"), Single, ""},
		{"bad label", "{selector: {matchLabels: {zone: 'a b'}}}", claiming(pod("a", 8), "c"), Refused, "selector.matchLabels"},
		{"selector no object", "{selector: {matchLabels: 3}}", claiming(pod("a", 8), "c"), Refused, "selector.matchLabels must be an object"},
		{"spec no object", "3", claiming(pod("a", 8), "c"), Refused, "spec is no object"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := reader(t, parse(t, claimText("c", test.spec)), test.pod)
			got := r.Classify(test.pod)
			if got.Kind != test.want || !strings.Contains(got.Problem, test.says) || (test.says == "") != (got.Problem == "") {
				t.Errorf("got %+v", got)
			}
			if test.want == Unknown && (got.Gang != GangID{Kind: KindClaim, Namespace: "ml", Name: "none"} || got.Needs != gpuClaims) {
				t.Errorf("it waits for %+v", got)
			}
			if test.want == Member && (got.Gang != GangID{Kind: KindPodGroup, Namespace: "ml", Name: "g"}) {
				t.Errorf("its gang is %+v", got)
			}
		})
	}
}

func TestWhatAClaimHandsOut(t *testing.T) {
	r := reader(t, parse(t, claimText("c", "{topology: {mode: Required}, devices: {count: 8, policy: spread}, selector: {matchLabels: {zone: a}}}")))
	p := claiming(pod("a", 8), "c")
	claim, problem := r.Claim(p)
	if problem != "" || claim.UID != "uid-c" || claim.Generation != 3 || claim.Count != 8 ||
		!claim.Selector.Matches(labels.Set{"zone": "a", "b": "c"}) || claim.Selector.Matches(labels.Set{"zone": "b"}) {
		t.Errorf("%+v %s", claim, problem)
	}
	request, _, _ := r.SingleRequest(p, time.Now())
	if request.Claim != `{"devices":{"count":8,"policy":"spread"},"selector":{"matchLabels":{"zone":"a"}},"topology":{"mode":"Required"}}` {
		t.Errorf("got %s", request.Claim)
	}
}

// GPUs that a claim names by id are found where they are; indices and what is no text are the engine's to read.
func TestGPUsThatAClaimPrefers(t *testing.T) {
	r := reader(t, parse(t, claimText("c", `{devices: {policy: preferIds, preferIds: [GPU-b1, 3, "5", GPU-x, GPU-a0, GPU-b7, node-1-gpu-2]}}`)),
		parse(t, claimText("none", "{devices: {count: 8}}")))
	p := claiming(pod("a", 2), "c")
	if request, _, _ := r.SingleRequest(p, time.Now()); request.Named != nil {
		t.Errorf("nobody looks for them yet: %v", request.Named)
	}
	known := map[string]shim.Named{"GPU-a0": {Slot: 0, GPUMask: 1}, "GPU-b1": {Slot: 4, GPUMask: 2}, "GPU-b7": {Slot: 4, GPUMask: 128}, "node-1-gpu-2": {Slot: 1, GPUMask: 4}}
	r.FindGPUs(func(id string) (shim.Named, bool) {
		gpu, found := known[id]
		return gpu, found
	})
	want := []shim.Named{{Slot: 4, GPUMask: 130}, {Slot: 0, GPUMask: 1}, {Slot: 1, GPUMask: 4}}
	request, _, _ := r.SingleRequest(p, time.Now())
	if !slices.Equal(request.Named, want) {
		t.Errorf("got %v", request.Named)
	}
	request, _, _ = r.GangRequest(GangID{Kind: "Job", Namespace: "ml", Name: "g"}, Spec{MinMember: 1}, p, []GangMember{{Pod: p, GPUs: 2, Slot: shim.None}}, time.Now(), time.Now())
	if !slices.Equal(request.Named, want) {
		t.Errorf("of a gang: got %v", request.Named)
	}
	if unknown := r.UnknownGPUs(p); !slices.Equal(unknown, []string{"GPU-x"}) {
		t.Errorf("unknown: %v", unknown)
	}
	for _, other := range []*v1.Pod{claiming(pod("b", 8), "none"), pod("c", 8)} {
		if request, _, _ := r.SingleRequest(other, time.Now()); request.Named != nil || r.UnknownGPUs(other) != nil {
			t.Errorf("%s prefers %v", other.Name, request.Named)
		}
	}
}

// A claim serves one pod at a time: the first that was seen, a bound one before all others, the oldest when that goes.
func TestAClaimHasOneHolder(t *testing.T) {
	at := func(name string, second int64, node string) *v1.Pod {
		p := claiming(pod(name, 8), "c")
		p.CreationTimestamp, p.Spec.NodeName = metav1.NewTime(time.Unix(second, 0)), node
		if node != "" {
			with(p, Rank, "0")
		}
		return p
	}
	a, b, c := at("a", 30, ""), at("b", 20, ""), at("c", 10, "")
	r := reader(t, parse(t, claimText("c", "{devices: {count: 8}}")), a, b, c)
	expect := func(what, holder string) {
		t.Helper()
		for _, p := range []*v1.Pod{a, b, c} {
			got := r.Classify(p)
			if p.Name == holder && got.Kind != Single || p.Name != holder && (got.Kind != Refused || !strings.Contains(got.Problem, "pod ml/"+holder+" uses it")) {
				t.Errorf("%s: %s is %+v", what, p.Name, got)
			}
		}
	}
	expect("the first", "a")
	if passed := r.claims.Leave("uid-a"); fmt.Sprint(passed) != "[ml/c]" {
		t.Errorf("got %v", passed)
	}
	expect("the oldest of the others", "c")
	if passed := r.claims.Use(a); passed != nil {
		t.Errorf("got %v", passed)
	}
	expect("who comes later waits", "c")
	foreign := claiming(pod("f", 8), "c")
	foreign.Spec.NodeName = "node-3"
	if passed := r.claims.Use(foreign); passed != nil {
		t.Errorf("one that came with a node: got %v", passed)
	}
	expect("who came with a node has not asked", "c")
	if passed := r.claims.Use(at("b", 20, "node-1")); fmt.Sprint(passed) != "[ml/c]" {
		t.Errorf("got %v", passed)
	}
	if got := r.Classify(a); !strings.Contains(got.Problem, "pod ml/b uses it") {
		t.Errorf("a bound one holds it: %+v", got)
	}
	if passed := r.claims.Use(at("c", 10, "node-2")); passed != nil {
		t.Errorf("two bound ones: the first keeps it, got %v", passed)
	}
	moved := claiming(pod("b", 8), "d")
	if passed := r.claims.Use(moved); fmt.Sprint(passed) != "[ml/c]" {
		t.Errorf("named another: got %v", passed)
	}
	for _, uid := range []string{"a", "b", "c", "c"} {
		r.claims.Leave(pod(uid).UID)
	}
	if len(r.claims.users)+len(r.claims.of) != 0 {
		t.Errorf("left: %v %v", r.claims.users, r.claims.of)
	}
}

func TestAClaimThatIsMadeAnewIsNotDroppedWithTheOld(t *testing.T) {
	first, second := newClaim(parse(t, claimText("c", "{}"))), newClaim(parse(t, claimText("c", "{}")))
	second.UID = "another"
	r := reader(t)
	r.claims.Set(first)
	r.claims.Set(second)
	r.claims.Drop(first)
	if claim, _ := r.Claim(claiming(pod("a", 8), "c")); claim != second {
		t.Errorf("got %v", claim)
	}
}

func TestWhatWasWrittenIntoAClaimIsKeptAndIsNoNews(t *testing.T) {
	object := parse(t, claimText("c", "{devices: {count: 8}}"))
	claims := NewClaims()
	if !claims.Set(newClaim(object)) {
		t.Error("a claim that is seen first is news")
	}
	object.Object["status"] = map[string]any{"phase": "Bound", "pod": map[string]any{"name": "a", "uid": "uid-a"}}
	if claims.Set(newClaim(object)) {
		t.Error("its status is none")
	}
	user := claiming(pod("a", 8), "c")
	claims.Use(user)
	name := types.NamespacedName{Namespace: "ml", Name: "c"}
	claim, holder, pods := claims.Users(name)
	if claim.Phase != apis.ClaimBound || claim.Pod.Name != "a" || claim.Pod.UID != "uid-a" || holder != user || !slices.Equal(pods, []*v1.Pod{user}) || !slices.Equal(claims.Names(), []types.NamespacedName{name}) {
		t.Errorf("got %+v, held by %v, used by %v", claim, holder, pods)
	}
	object.SetGeneration(4)
	if !claims.Set(newClaim(object)) {
		t.Error("another generation is")
	}
	object.Object["status"] = "strange"
	if claim := newClaim(object); claim.Phase != "" || claim.Problem != "" {
		t.Errorf("a status that nobody of ours wrote: %+v", claim)
	}
}

func TestAClaimWithAGangRefServesItsGroup(t *testing.T) {
	pods := []*v1.Pod{claiming(pod("a", 8), "c"), claiming(pod("b", 8), "c")}
	r := reader(t, parse(t, claimText("c", "{devices: {count: 8}, gangRef: g}")), pods[0], pods[1])
	for _, p := range pods {
		if got := r.Classify(p); got.Kind != Member || got.Gang.Name != "g" {
			t.Errorf("got %+v", got)
		}
	}
	members := []GangMember{{Pod: pods[0], GPUs: 8, Slot: shim.None}, {Pod: pods[1], GPUs: 8, Rank: 1, Slot: shim.None}}
	if problem := r.GangProblem(members); problem != "" {
		t.Error(problem)
	}
	request, _, _ := r.GangRequest(GangID{Kind: KindPodGroup, Namespace: "ml", Name: "g"}, Spec{MinMember: 2}, pods[0], members, time.Now(), time.Now())
	if request.Claim != `{"devices":{"count":8},"gangRef":"g"}` {
		t.Errorf("got %s", request.Claim)
	}
}

func TestClaimsOfOneGangMustBeAlike(t *testing.T) {
	r := reader(t, parse(t, claimText("one", "{devices: {count: 8}}")), parse(t, claimText("same", "{devices: {count: 8}}")),
		parse(t, claimText("spread", "{devices: {count: 8, policy: spread}}")), parse(t, claimText("zone", "{devices: {count: 8}, selector: {matchLabels: {zone: a}}}")))
	first := GangMember{Pod: claiming(pod("a", 8), "one"), GPUs: 8, Slot: shim.None}
	other := func(claim string, gpus uint32, slot uint32) GangMember {
		p := pod("b", int64(gpus))
		if claim != "" {
			claiming(p, claim)
		}
		return GangMember{Pod: p, GPUs: gpus, Rank: 1, Slot: slot}
	}
	for _, test := range []struct {
		name   string
		member GangMember
		want   string
	}{
		{"alike", other("same", 8, shim.None), ""},
		{"other devices", other("spread", 8, shim.None), "GpuClaims one and spread ask for different"},
		{"other nodes", other("zone", 8, shim.None), "GpuClaims one and zone ask for different"},
		{"none", other("", 8, shim.None), "pods a and b are of one gang, and only one of them has a GpuClaim"},
		{"no GPUs, no claim", other("", 0, shim.None), ""},
		{"bound", other("spread", 8, 3), ""},
	} {
		if got := r.GangProblem([]GangMember{first, test.member}); !strings.Contains(got, test.want) || (test.want == "") != (got == "") {
			t.Errorf("%s: got %q", test.name, got)
		}
	}
}
