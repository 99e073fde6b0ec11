// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/frond-scheduler/frond/plugin/gangs"
	"github.com/frond-scheduler/frond/plugin/workload"
)

func TestVerdictsAreRememberedUntilTheNodeChanges(t *testing.T) {
	b := newBench(t)
	wide := []*v1.Pod{pod("w-0", 8, 1), pod("w-1", 8, 1), pod("w-2", 8, 1), pod("w-3", 8, 1), pod("w-4", 8, 1)}
	b.gang(5, wide...)
	if _, _, status := b.preFilter(wide[0]); status.IsSuccess() {
		t.Fatal("five whole nodes of four")
	}
	kept := b.plugin.verdicts.asks
	if len(kept) != 1 {
		t.Fatalf("%d kinds of pods are remembered, want 1", len(kept))
	}
	var said *verdict
	for _, said = range kept {
	}
	known := 0
	for slot := range said.bySlot {
		if said.bySlot[slot].generation != 0 {
			known++
			said.bySlot[slot].today = 0 // a lie that only memory can tell
		}
	}
	if known != 4 {
		t.Fatalf("%d nodes are remembered, want 4", known)
	}
	b.spec(workload.Spec{MinMember: 2})
	if _, _, status := b.preFilter(wide[0]); status.IsSuccess() {
		t.Error("the nodes have not changed, so what was said of them counts")
	}
	b.nodes[2] = b.nodes[2].DeepCopy()
	b.nodes[2].Labels["changed"] = "yes"
	b.nodes[3] = b.nodes[3].DeepCopy()
	b.nodes[3].Labels["changed"] = "yes"
	b.look()
	if _, _, status := b.preFilter(wide[0]); !status.IsSuccess() {
		t.Errorf("two nodes are asked afresh and take the two that minMember needs: %v", status)
	}
}

func TestPodsThatLookAtOtherPodsAreAskedAfresh(t *testing.T) {
	b := newBench(t)
	one, two := pod("w-0", 8, 1), pod("w-1", 8, 1)
	for _, member := range []*v1.Pod{one, two} {
		member.Labels["app"] = "w"
		member.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
			TopologyKey: "kubernetes.io/hostname", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w"}}}}}}
	}
	b.gang(2, one, two)
	if _, _, status := b.preFilter(one); !status.IsSuccess() {
		t.Fatal(status)
	}
	if len(b.plugin.verdicts.asks) != 0 {
		t.Error("what anti-affinity said must not be remembered by node")
	}
}

func TestTheOldestVerdictsGoFirst(t *testing.T) {
	b := newBench(t)
	for i := range asksMost + 3 {
		made, status := b.plugin.template(ctx, pod("p", 1, int64(i+1)))
		if !status.IsSuccess() {
			t.Fatal(status)
		}
		if b.plugin.verdicts.lookup(made, nil, 4) == nil {
			t.Fatal("nothing is remembered")
		}
	}
	first, _ := asks(pod("p", 1, 1))
	last, _ := asks(pod("p", 1, asksMost+3))
	if _, there := b.plugin.verdicts.asks[first]; there || len(b.plugin.verdicts.asks) != asksMost || b.plugin.verdicts.asks[last] == nil {
		t.Errorf("%d remembered, the first still there: %v", len(b.plugin.verdicts.asks), there)
	}
}

func TestMinResourcesMustBeFree(t *testing.T) {
	for _, test := range []struct {
		name   v1.ResourceName
		amount string
		want   string // "": enough
	}{
		{"cpu", "256", ""},
		{"cpu", "257", "spec.minResources asks for 257 cpu, and nodes that admit its pods have 256 free"},
		{"nvidia.com/gpu", "33", "spec.minResources asks for 33 nvidia.com/gpu, and nodes that admit its pods have 32 free"},
		{"memory", "5Ti", "spec.minResources asks for 5Ti memory, and nodes that admit its pods have 4Ti free"},
		{"example.com/none", "1", "have 0 free"},
	} {
		b := newBench(t)
		one, two := pod("w-0", 8, 1), pod("w-1", 8, 1)
		b.gang(2, one, two)
		b.spec(workload.Spec{MinMember: 2, MinResources: v1.ResourceList{test.name: resource.MustParse(test.amount)}})
		_, _, status := b.preFilter(one)
		if status.IsSuccess() != (test.want == "") || !strings.Contains(status.Message(), test.want) {
			t.Errorf("%s %s: got %v, want %q", test.amount, test.name, status, test.want)
		}
	}
}

// spec changes what the group asks for.
func (b *bench) spec(spec workload.Spec) {
	b.plugin.table.Step(gangs.SpecSet{ID: groupGang, Spec: spec})
	time.Sleep(250 * time.Millisecond) // PodGroups gather for a moment
}

// claim gives the bench a claim that selects nodes by label.
func (b *bench) claim(match map[string]string, pods ...*v1.Pod) {
	b.plugin.sources.claims.Set(&workload.Claim{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "c", UID: "c"},
		JSON: `{"devices":{"count":8}}`, Devices: "x", Count: 8, GangRef: group, Selector: labels.SelectorFromSet(match)})
	for _, pod := range pods {
		pod.Annotations[workload.ClaimAnnotation] = "c"
		b.plugin.sources.claims.Use(pod)
	}
}

func TestAClaimSelectsNodes(t *testing.T) {
	b := newBench(t)
	one, two := pod("w-0", 8, 1), pod("w-1", 8, 1)
	b.claim(map[string]string{"fabric.topograph.run/tier-0": "leaf-2"}, one, two)
	b.gang(2, one, two)
	_, result, status := b.preFilter(one)
	if !status.IsSuccess() || !result.NodeNames.HasAny("node-3", "node-4") {
		t.Errorf("got %v %v, want a node of leaf-2", result, status)
	}

	b = newBench(t)
	single := pod("single", 8, 1)
	b.claim(map[string]string{"kubernetes.io/hostname": "node-4"}, single)
	c, _ := b.plugin.reader.Claim(single)
	c.GangRef = ""
	state, _, status := b.preFilter(single)
	if nodes := b.feasible(state, single); !status.IsSuccess() || !slices.Equal(nodes, []string{"node-4"}) {
		t.Errorf("%v on %v, want node-4 alone", status, nodes)
	}
	if status := b.plugin.Reserve(ctx, state, single, "node-4"); !status.IsSuccess() {
		t.Error(status)
	}
}

func TestAGroupsOwnTimeoutHoldsInPermit(t *testing.T) {
	b := newBench(t)
	one, two := pod("w-0", 8, 1), pod("w-1", 8, 1)
	b.gang(2, one, two)
	b.spec(workload.Spec{MinMember: 2, ScheduleTimeout: 7 * time.Second})
	state, result, status := b.preFilter(one)
	if !status.IsSuccess() {
		t.Fatal(status)
	}
	node := result.NodeNames.UnsortedList()[0]
	if status := b.plugin.Reserve(ctx, state, one, node); !status.IsSuccess() {
		t.Fatal(status)
	}
	if status, wait := b.plugin.Permit(ctx, state, one, node); status.Code() != fwk.Wait || wait != 7*time.Second {
		t.Errorf("got %v for %v, want Wait for 7 s", status, wait)
	}
	b.plugin.table.Step(gangs.SpecGone{ID: groupGang})
	b.givenBack("the group was deleted while its plan waited")
}
