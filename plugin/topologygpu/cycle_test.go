// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/frond-scheduler/frond/plugin/gangs"
	"github.com/frond-scheduler/frond/plugin/workload"
	"github.com/frond-scheduler/frond/shim"
)

var ctx = context.Background()

func TestPodsWithoutGPUsAreLeftAlone(t *testing.T) {
	b := newBench(t)
	plain := pod("plain", 0, 1)
	state, _, status := b.preFilter(plain)
	if !status.IsSuccess() || !state.GetSkipFilterPlugins().Has(Name) {
		t.Errorf("PreFilter must skip: %v", status)
	}
	infos, _ := b.snapshot.NodeInfos().List()
	if status := b.plugin.PreScore(ctx, state, plain, infos); !status.IsSkip() {
		t.Errorf("PreScore must skip: %v", status)
	}
	if status := b.plugin.Reserve(ctx, state, plain, "node-1"); !status.IsSuccess() {
		t.Error(status)
	}
	if status, _ := b.plugin.Permit(ctx, state, plain, "node-1"); !status.IsSuccess() {
		t.Error(status)
	}
	if status := b.plugin.Bind(ctx, state, plain, "node-1"); !status.IsSkip() {
		t.Errorf("DefaultBinder binds it: %v", status)
	}
	b.plugin.Unreserve(ctx, state, plain, "node-1")
}

func TestASinglePodFromPreFilterToBind(t *testing.T) {
	b := newBench(t)
	one := pod("one", 4, 1)
	state, _, status := b.preFilter(one)
	if !status.IsSuccess() {
		t.Fatal(status)
	}
	nodes := b.feasible(state, one)
	if len(nodes) != 4 {
		t.Fatalf("feasible: %v", nodes)
	}
	infos, _ := b.snapshot.NodeInfos().List()
	best, chosen := int64(-1), ""
	for _, info := range infos {
		score, status := b.plugin.Score(ctx, state, one, info)
		if !status.IsSuccess() || score < 97 || score > 100 {
			t.Errorf("%s scores %d: %v", info.Node().Name, score, status)
		}
		if score > best {
			best, chosen = score, info.Node().Name
		}
	}
	if best != 100 {
		t.Errorf("the best scores %d", best)
	}
	if status := b.plugin.Reserve(ctx, state, one, chosen); !status.IsSuccess() {
		t.Fatal(status)
	}
	if b.reserved() != 4 {
		t.Errorf("%d GPUs are reserved", b.reserved())
	}
	b.plugin.Unreserve(ctx, state, one, chosen)
	b.plugin.Unreserve(ctx, state, one, chosen)
	if b.reserved() != 0 {
		t.Errorf("%d GPUs are still reserved", b.reserved())
	}
	if status := b.plugin.Reserve(ctx, state, one, chosen); !status.IsSuccess() {
		t.Fatal(status)
	}
	if status, wait := b.plugin.Permit(ctx, state, one, chosen); !status.IsSuccess() || wait != 0 {
		t.Fatal(status)
	}
	var binding *v1.Binding
	b.client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		binding = action.(clienttesting.CreateAction).GetObject().(*v1.Binding)
		return true, binding, nil
	})
	if status := b.plugin.Bind(ctx, state, one, chosen); !status.IsSuccess() {
		t.Fatal(status)
	}
	if binding.Target.Name != chosen || binding.UID != one.UID || len(strings.Split(binding.Annotations[workload.Allocated], ",")) != 4 ||
		binding.Annotations[workload.Rank] != "0" || binding.Annotations[workload.Domain] == "" {
		t.Errorf("got %+v", binding)
	}
	if b.reserved() != 0 {
		t.Error("confirmed, so no longer only reserved")
	}
	b.check()
}

func TestABindingWhoseAnswerWasLost(t *testing.T) {
	b := newBench(t)
	one := pod("one", 1, 1)
	b.client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		binding := action.(clienttesting.CreateAction).GetObject().(*v1.Binding)
		bound := one.DeepCopy()
		bound.Spec.NodeName, bound.Annotations = binding.Target.Name, binding.Annotations
		if binding.Name == one.Name {
			_ = b.client.Tracker().Add(bound) // the second time it is there
		}
		return true, nil, context.DeadlineExceeded
	})
	state, _, _ := b.preFilter(one)
	if status := b.plugin.Reserve(ctx, state, one, "node-1"); !status.IsSuccess() {
		t.Fatal(status)
	}
	if status := b.plugin.Bind(ctx, state, one, "node-1"); !status.IsSuccess() {
		t.Errorf("it is bound where we wanted it: %v", status)
	}
	two := pod("two", 1, 1)
	state, _, _ = b.preFilter(two)
	if status := b.plugin.Reserve(ctx, state, two, "node-1"); !status.IsSuccess() {
		t.Fatal(status)
	}
	if status := b.plugin.Bind(ctx, state, two, "node-1"); status.IsSuccess() {
		t.Error("this one is not")
	}
}

func TestABindingThatFailsIsSentAgain(t *testing.T) {
	pods := v1.Resource("pods/binding")
	for _, c := range []struct {
		name  string
		err   error
		again bool
	}{
		{"409", apierrors.NewConflict(pods, "one", errors.New("the object has been modified")), true},
		{"429", apierrors.NewTooManyRequests("busy", 1), true},
		{"500", apierrors.NewInternalError(errors.New("no leader")), true},
		{"no answer", errors.New("connection refused"), true},
		{"403", apierrors.NewForbidden(pods, "one", errors.New("no")), false},
		{"400", apierrors.NewBadRequest("no"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			one, sent := pod("one", 1, 1), 0
			if err := b.client.Tracker().Add(one); err != nil {
				t.Fatal(err)
			}
			b.client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				if sent++; sent <= 6 {
					return true, nil, c.err
				}
				return true, nil, nil
			})
			state, _, _ := b.preFilter(one)
			if status := b.plugin.Reserve(ctx, state, one, "node-1"); !status.IsSuccess() {
				t.Fatal(status)
			}
			status := b.plugin.Bind(ctx, state, one, "node-1")
			if want := map[bool]int{true: 7, false: 1}[c.again]; status.IsSuccess() != c.again || sent != want {
				t.Errorf("sent %d times, want %d: %v", sent, want, status)
			}
		})
	}
}

func TestAPodThatAnotherSchedulerHasBoundIsGivenBack(t *testing.T) {
	b := newBench(t)
	one := pod("one", 1, 1)
	elsewhere := one.DeepCopy()
	elsewhere.Spec.NodeName, elsewhere.Annotations = "node-1", map[string]string{workload.Allocated: "node-1-gpu-7"}
	if err := b.client.Tracker().Add(elsewhere); err != nil {
		t.Fatal(err)
	}
	b.client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(v1.Resource("pods/binding"), "one", errors.New("already assigned"))
	})
	state, _, _ := b.preFilter(one)
	if status := b.plugin.Reserve(ctx, state, one, "node-1"); !status.IsSuccess() {
		t.Fatal(status)
	}
	status := b.plugin.Bind(ctx, state, one, "node-1")
	if status.IsSuccess() || !strings.Contains(status.Message(), errElsewhere.Error()) {
		t.Errorf("the same node, but other GPUs: got %v", status)
	}
	if b.reserved() != 0 {
		t.Error("what was reserved for it is still held")
	}
	b.check()
}

func TestSinglePodsThatAreRefused(t *testing.T) {
	b := newBench(t)
	contradiction := pod("contradiction", 1, 1)
	contradiction.Annotations[workload.GPUCount] = "4"
	nothing := pod("nothing", 0, 1)
	nothing.Annotations[workload.GPUCount] = "4"
	for _, test := range []struct {
		pod  *v1.Pod
		want string
	}{{contradiction, "4"}, {nothing, "4"}, {pod("large", 9, 1), "never fits"}} {
		state, _, status := b.preFilter(test.pod)
		if status.Code() != fwk.UnschedulableAndUnresolvable || !strings.Contains(status.Message(), test.want) {
			t.Errorf("%s: %v", test.pod.Name, status)
		}
		if _, status := b.plugin.PostFilter(ctx, state, test.pod, nil); status.Code() != fwk.UnschedulableAndUnresolvable {
			t.Errorf("%s: no eviction helps: %v", test.pod.Name, status)
		}
	}
}

func TestPreemptionSeesWhatItWouldFree(t *testing.T) {
	b := newBench(t)
	for _, node := range b.nodes {
		victim := pod("victim-"+node.Name, 8, 1)
		victim.Spec.NodeName = node.Name
		b.pods = append(b.pods, victim)
	}
	b.look()
	one := pod("one", 4, 1)
	state, _, status := b.preFilter(one)
	if status.Code() != fwk.Unschedulable {
		t.Fatalf("evictions may help: %v", status)
	}
	if result, status := b.plugin.PostFilter(ctx, state, one, nil); result != nil || status.Code() != fwk.Unschedulable || status.Message() != "" {
		t.Errorf("our PostFilter must step aside: %v", status)
	}
	if nodes := b.feasible(state, one); nodes != nil {
		t.Fatalf("feasible: %v", nodes)
	}
	// As upstream does it: on a copy of the state and of the node.
	whatIf := state.Clone()
	info, _ := b.snapshot.NodeInfos().Get("node-3")
	info = info.Snapshot()
	victim, _ := framework.NewPodInfo(b.pods[2])
	if err := info.RemovePod(loggerFor(ctx), victim.Pod); err != nil {
		t.Fatal(err)
	}
	if status := b.framework.RunPreFilterExtensionRemovePod(ctx, whatIf, one, victim, info); !status.IsSuccess() {
		t.Fatal(status)
	}
	if status := b.framework.RunFilterPlugins(ctx, whatIf, one, info); !status.IsSuccess() {
		t.Errorf("it fits once the victim is gone: %v", status)
	}
	if len(read(state).removed) != 0 {
		t.Error("the what-if leaked into the cycle")
	}
	info.AddPodInfo(victim)
	if status := b.framework.RunPreFilterExtensionAddPod(ctx, whatIf, one, victim, info); !status.IsSuccess() {
		t.Fatal(status)
	}
	if status := b.framework.RunFilterPlugins(ctx, whatIf, one, info); status.IsSuccess() {
		t.Error("and not when it is put back")
	}
}

// Upstream's cache may know that a victim has gone before our handler does: nobody else must be evicted for that.
func TestRoomThatTheMirrorHasNotSeenYet(t *testing.T) {
	b := newBench(t)
	for _, node := range b.nodes {
		victim := pod("victim-"+node.Name, 8, 1)
		victim.Spec.NodeName = node.Name
		b.pods = append(b.pods, victim)
	}
	b.look()
	store := b.framework.SharedInformerFactory().Core().V1().Pods().Informer().GetIndexer()
	if err := store.Delete(b.pods[2]); err != nil {
		t.Fatal(err)
	}
	b.snapshot = cache.NewSnapshot(slices.Delete(slices.Clone(b.pods), 2, 3), b.nodes)
	one := pod("one", 8, 1)
	state, _, status := b.preFilter(one)
	if nodes := b.feasible(state, one); !status.IsSuccess() || !slices.Equal(nodes, []string{"node-3"}) {
		t.Errorf("%v on %v", status, nodes)
	}
}

func TestAGangFromLeadToPermit(t *testing.T) {
	b := newBench(t)
	pods := []*v1.Pod{pod("w-0", 8, 1), pod("w-1", 8, 1), pod("driver", 0, 1)}
	b.gang(3, pods...)
	if status := b.plugin.PreEnqueue(ctx, pods[0]); status.IsSuccess() {
		t.Error("driver comes before w-0 by name, so it leads")
	}
	lead := pods[2]
	lead.Spec.Priority = new(int32(7))
	lead.Annotations["topology.scheduler/recovery"] = "MoveGang"
	if status := b.plugin.PreEnqueue(ctx, lead); !status.IsSuccess() {
		t.Fatal(status)
	}
	state, result, status := b.preFilter(lead)
	if !status.IsSuccess() || !result.AllNodes() {
		t.Fatalf("%v %v", result, status)
	}
	if b.reserved() != 16 {
		t.Errorf("%d GPUs are reserved", b.reserved())
	}
	if gang, err := b.plugin.engine.Gang(workload.GangKey(groupGang)); err != nil || gang.State != shim.GangPlanned || gang.MinMember != 3 || gang.Priority != 7 {
		t.Errorf("%+v %v", gang, err)
	}
	if !b.called("\n annotation \"topology.scheduler/recovery\" \"MoveGang\"\n= OK text \"\"\n") || !b.called("\ngang_put ") {
		t.Error("the engine was not told what the gang asks for")
	}
	states := map[string]fwk.CycleState{lead.Name: state}
	places := map[string]string{lead.Name: "node-4"}
	for _, member := range pods[:2] {
		if status := b.plugin.PreEnqueue(ctx, member); !status.IsSuccess() {
			t.Fatalf("the plan is reserved, so all may come: %v", status)
		}
		state, result, status := b.preFilter(member)
		if !status.IsSuccess() || len(result.NodeNames) != 1 {
			t.Fatalf("%v %v", result, status)
		}
		nodes := b.feasible(state, member)
		if len(nodes) != 1 || !result.NodeNames.Has(nodes[0]) {
			t.Errorf("every other node is refused, even when tried: %v", nodes)
		}
		states[member.Name], places[member.Name] = state, nodes[0]
	}
	if leaf := func(node string) bool { return node == "node-1" || node == "node-2" }; leaf(places["w-0"]) != leaf(places["w-1"]) {
		t.Errorf("two nodes share a leaf: %v", places)
	}
	for i, member := range []*v1.Pod{lead, pods[0], pods[1]} {
		if status := b.plugin.Reserve(ctx, states[member.Name], member, places[member.Name]); !status.IsSuccess() {
			t.Fatal(status)
		}
		status, wait := b.plugin.Permit(ctx, states[member.Name], member, places[member.Name])
		if last := i == 2; last != status.IsSuccess() || last != (wait == 0) || (!last && !status.IsWait()) {
			t.Errorf("%s: %v %v", member.Name, status, wait)
		}
	}
	ranks := make(chan string, 3)
	b.client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		bound := action.(clienttesting.CreateAction).GetObject().(*v1.Binding)
		ranks <- bound.Name + " " + bound.Annotations[workload.Rank]
		return true, bound, nil
	})
	binding := make(chan *fwk.Status, 2)
	for _, member := range pods[:2] {
		go func() { binding <- b.plugin.Bind(ctx, states[member.Name], member, places[member.Name]) }()
	}
	select {
	case status := <-binding:
		t.Errorf("a member is bound before the driver has come through its PreBind: %v", status)
	case <-time.After(50 * time.Millisecond):
	}
	if status := b.plugin.Bind(ctx, states["driver"], lead, "node-4"); !status.IsSuccess() {
		t.Fatal(status)
	}
	for range 2 {
		if status := <-binding; !status.IsSuccess() {
			t.Error(status)
		}
	}
	if got := slices.Sorted(slices.Values([]string{<-ranks, <-ranks, <-ranks})); !slices.Equal(got, []string{"driver 0", "w-0 1", "w-1 2"}) {
		t.Errorf("each is known by its rank as bound by us, the one without GPUs, too: %v", got)
	}
	b.check()
}

func TestNobodyIsBoundWithoutAMemberThatWasDeleted(t *testing.T) {
	b := newBench(t)
	pods := []*v1.Pod{pod("w-0", 8, 1), pod("w-1", 8, 1)}
	b.gang(2, pods...)
	b.client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		t.Error("a Binding was sent")
		return true, nil, nil
	})
	state, place := fwk.CycleState(nil), ""
	for _, member := range pods {
		made, result, status := b.preFilter(member)
		if !status.IsSuccess() {
			t.Fatal(status)
		}
		state, place = made, result.NodeNames.UnsortedList()[0]
		if status := b.plugin.Reserve(ctx, state, member, place); !status.IsSuccess() {
			t.Fatal(status)
		}
		b.plugin.Permit(ctx, state, member, place)
	}
	bound := make(chan *fwk.Status)
	go func() { bound <- b.plugin.Bind(ctx, state, pods[1], place) }() // waits for the other one's PreBind
	time.Sleep(20 * time.Millisecond)
	b.plugin.table.Step(gangs.PodGone{UID: pods[0].UID})
	if status := <-bound; status.IsSuccess() || !strings.Contains(status.Message(), string(gangs.CauseLeft)) {
		t.Errorf("got %v", status)
	}
	b.givenBack("a member was deleted")
	b.check()
}

func TestAMemberThatFailsTakesTheGangWithIt(t *testing.T) {
	b := newBench(t)
	pods := []*v1.Pod{pod("w-0", 8, 1), pod("w-1", 8, 1)}
	b.gang(2, pods...)
	state, result, status := b.preFilter(pods[0])
	if !status.IsSuccess() {
		t.Fatal(status)
	}
	node := result.NodeNames.UnsortedList()[0]
	if status := b.plugin.Reserve(ctx, state, pods[0], "node-4"); node != "node-4" && status.IsSuccess() {
		t.Error("another node than the planned one")
	}
	b.givenBack("a member failed")
	b.plugin.Unreserve(ctx, state, pods[0], node) // idempotent
	if len(b.queue.nominated) != 0 {
		t.Errorf("still nominated: %v", b.queue.nominated)
	}
	if status := b.plugin.PreEnqueue(ctx, pods[0]); status.IsSuccess() {
		t.Error("it backs off first")
	}
	b.check()
}

func TestPostFilterEndsTheChainForGangs(t *testing.T) {
	b := newBench(t)
	pods := []*v1.Pod{pod("w-0", 8, 1), pod("w-1", 8, 1)}
	b.gang(2, pods...)
	if _, _, status := b.preFilter(pods[0]); !status.IsSuccess() {
		t.Fatal(status)
	}
	result, status := b.framework.RunPostFilterPlugins(ctx, framework.NewCycleState(), pods[1], framework.NewDefaultNodeToStatus())
	if result != nil || status.Code() != fwk.UnschedulableAndUnresolvable || status.Plugin() != Name {
		t.Errorf("got %v %v by %s", result, status, status.Plugin())
	}
	b.givenBack("a member that failed on its node ends the plan")
}

func TestAGangWaitsWithAReason(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"node-1", "node-3"} {
		other := pod("other-"+name, 8, 1)
		other.Spec.NodeName = name
		b.pods = append(b.pods, other)
	}
	b.look()
	pods := []*v1.Pod{pod("w-0", 8, 1), pod("w-1", 8, 1)}
	b.gang(2, pods...)
	_, _, status := b.preFilter(pods[0])
	if status.Code() != fwk.UnschedulableAndUnresolvable || !strings.Contains(status.Message(), "leaf") {
		t.Errorf("got %v", status)
	}
	if !b.plugin.table.Waiting(pods[0].UID) || b.reserved() != 0 {
		t.Error("it waits, and holds nothing")
	}
	for object, want := range map[*v1.Pod]fwk.QueueingHint{pods[0]: fwk.QueueSkip, pods[1]: fwk.QueueSkip, pod("single", 1, 1): fwk.Queue} {
		if hint, err := b.plugin.podLeft(loggerFor(ctx), object, b.pods[0], nil); hint != want || err != nil {
			t.Errorf("%s: hint %v, %v", object.Name, hint, err)
		}
	}
}

func TestUpstreamsFiltersCount(t *testing.T) {
	b := newBench(t)
	eater := pod("eater", 0, 60) // CPU of node-1 is gone; its GPUs are free
	eater.Spec.NodeName = "node-1"
	b.pods = append(b.pods, eater)
	b.nodes[1].Spec.Taints = []v1.Taint{{Key: "x", Effect: v1.TaintEffectNoSchedule}}
	b.look()
	pods := []*v1.Pod{pod("w-0", 8, 8), pod("w-1", 8, 8)}
	b.gang(2, pods...)
	state, _, status := b.preFilter(pods[0])
	if !status.IsSuccess() {
		t.Fatal(status)
	}
	got := append(b.feasible(state, pods[0]), b.plannedNode(pods[1])...)
	slices.Sort(got)
	if !slices.Equal(got, []string{"node-3", "node-4"}) {
		t.Errorf("got %v", got)
	}
}

// plannedNode is where the gang's plan puts a pod.
func (b *bench) plannedNode(pod *v1.Pod) []string {
	_, result, status := b.preFilter(pod)
	if !status.IsSuccess() || result.AllNodes() {
		b.t.Fatal(status)
	}
	return result.NodeNames.UnsortedList()
}

func TestSeveralMembersOnANodeAreRehearsed(t *testing.T) {
	b := newBench(t)
	var pods []*v1.Pod
	for _, name := range []string{"w-0", "w-1", "w-2", "w-3"} {
		member := pod(name, 1, 1)
		member.Labels["app"] = "w"
		member.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
			TopologyKey: "kubernetes.io/hostname", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w"}}}}}}
		pods = append(pods, member)
	}
	b.gang(4, pods...)
	if _, _, status := b.preFilter(pods[0]); !status.IsSuccess() {
		t.Fatal(status)
	}
	nodes := map[string]bool{}
	for _, member := range pods {
		nodes[b.plannedNode(member)[0]] = true
	}
	if len(nodes) != 4 {
		t.Errorf("members that do not bear one another share nodes: %v", nodes)
	}
	b.check()
}

func TestMembersShareNodesByArithmetic(t *testing.T) {
	b := newBench(t)
	var pods []*v1.Pod
	for _, name := range []string{"w-0", "w-1", "w-2", "w-3"} {
		pods = append(pods, pod(name, 1, 32)) // two a node by CPU
	}
	b.gang(4, pods...)
	if _, _, status := b.preFilter(pods[0]); !status.IsSuccess() {
		t.Fatal(status)
	}
	count := map[string]int{}
	for _, member := range pods {
		count[b.plannedNode(member)[0]]++
	}
	for node, n := range count {
		if n != 2 {
			t.Errorf("%s has %d", node, n)
		}
	}
}

func TestNominatedPodsCountAsThere(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"node-1", "node-2"} {
		preemptor := pod("preemptor-"+name, 8, 1)
		info, _ := framework.NewPodInfo(preemptor)
		b.queue.AddNominatedPod(loggerFor(ctx), info, &fwk.NominatingInfo{NominatedNodeName: name})
	}
	pods := []*v1.Pod{pod("w-0", 8, 1), pod("w-1", 8, 1)}
	own, _ := framework.NewPodInfo(pods[1]) // left over from an earlier scheduler
	b.queue.AddNominatedPod(loggerFor(ctx), own, &fwk.NominatingInfo{NominatedNodeName: "node-3"})
	b.gang(2, pods...)
	if _, _, status := b.preFilter(pods[0]); !status.IsSuccess() {
		t.Fatal(status)
	}
	got := append(b.plannedNode(pods[0]), b.plannedNode(pods[1])...)
	slices.Sort(got)
	if !slices.Equal(got, []string{"node-3", "node-4"}) {
		t.Errorf("got %v", got)
	}
	if b.queue.node[pods[0].UID] == "" {
		t.Error("members are nominated on their nodes")
	}
}

func TestHalfBoundGangsArePlannedAround(t *testing.T) {
	b := newBench(t)
	first := pod("w-0", 8, 1)
	first.Labels[workload.PodGroupLabel] = group
	first.Spec.NodeName = "node-3"
	first.Annotations[workload.Rank] = "0"
	b.pods = append(b.pods, first)
	b.look()
	rest := pod("w-1", 8, 1)
	b.gang(2, first, rest)
	if got := b.plannedNode(rest); got[0] != "node-4" {
		t.Errorf("the rest belongs beside the first: %v", got)
	}
}

// A pod that came with its node is no part of a gang, whatever it says: the gang is not whole with it, nor planned around it.
func TestPodsThatCameWithANodeDoNotCount(t *testing.T) {
	for _, gpus := range []int64{0, 8} {
		b := newBench(t)
		foreign := pod("foreign", gpus, 1)
		foreign.Labels[workload.PodGroupLabel] = group
		foreign.Spec.NodeName = "node-3"
		b.pods = append(b.pods, foreign)
		b.look()
		pods := []*v1.Pod{pod("w-0", 8, 1), pod("w-1", 8, 1)}
		b.gang(3, foreign, pods[0], pods[1])
		if _, _, status := b.preFilter(pods[0]); status.IsSuccess() || !strings.Contains(status.Message(), "has 2 of 3 pods") {
			t.Errorf("it completes the gang: %v", status)
		}
		b = newBench(t)
		b.pods = append(b.pods, foreign)
		b.look()
		b.gang(2, foreign, pods[0], pods[1])
		if _, _, status := b.preFilter(pods[0]); !status.IsSuccess() {
			t.Fatal(status)
		}
		places := append(b.plannedNode(pods[0]), b.plannedNode(pods[1])...)
		slices.Sort(places)
		if !slices.Equal(places, []string{"node-1", "node-2"}) {
			t.Errorf("planned around it: %v", places)
		}
	}
}

// The rest of a half-bound gang goes where it was locked, if that is known of all of it and still to be had.
func TestHalfBoundGangsAreFinishedInPlace(t *testing.T) {
	lower, upper := "node-2-gpu-0 node-2-gpu-1 node-2-gpu-2 node-2-gpu-3", "node-2-gpu-4 node-2-gpu-5 node-2-gpu-6 node-2-gpu-7"
	for _, c := range []struct {
		name  string
		locks map[string]string // by pod
		taken bool              // by another
		want  []string          // of w-1 and w-2
	}{
		{"no locks", nil, false, []string{"node-1", "node-2"}},
		{"all are locked", map[string]string{"w-1": lower, "w-2": upper}, false, []string{"node-2", "node-2"}},
		{"one is not", map[string]string{"w-1": lower}, false, []string{"node-1", "node-2"}},
		{"a lock is worth nothing any more", map[string]string{"w-1": lower, "w-2": upper}, true, []string{"node-1", "node-2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			pods := []*v1.Pod{pod("w-0", 4, 1), pod("w-1", 4, 1), pod("w-2", 4, 1)}
			pods[0].Spec.NodeName, pods[0].Annotations[workload.Rank] = "node-1", "0"
			b.pods = append(b.pods, pods[0])
			if c.taken {
				other := pod("other", 4, 1)
				other.Spec.NodeName = "node-2"
				b.pods = append(b.pods, other)
			}
			b.look()
			b.gang(3, pods...)
			owners := map[string]types.UID{}
			for name, gpus := range c.locks {
				for _, gpu := range strings.Fields(gpus) {
					owners[gpu] = types.UID("uid-" + name)
				}
			}
			b.plugin.mirror.SetOwners("node-2", owners)
			for i, member := range pods[1:] {
				if got := b.plannedNode(member); len(got) != 1 || got[0] != c.want[i] {
					t.Errorf("%s is planned on %v, want %s", member.Name, got, c.want[i])
				}
			}
			b.check()
		})
	}
}

func TestMorePodsThanFit(t *testing.T) {
	b := newBench(t)
	var pods []*v1.Pod
	for _, name := range []string{"w-0", "w-1", "w-2", "w-3", "w-4"} {
		pods = append(pods, pod(name, 8, 1))
	}
	b.gang(2, pods...)
	if _, _, status := b.preFilter(pods[0]); !status.IsSuccess() {
		t.Fatalf("five never fit, two do: %v", status)
	}
	if b.reserved() != 16 {
		t.Errorf("%d GPUs are reserved", b.reserved())
	}
	if status := b.plugin.PreEnqueue(ctx, pods[4]); status.IsSuccess() {
		t.Error("the others join later")
	}
}

func TestSignPod(t *testing.T) {
	b := newBench(t)
	member := pod("member", 0, 1)
	member.Labels[workload.PodGroupLabel] = group
	for _, test := range []struct {
		pod    *v1.Pod
		signed bool
	}{{pod("plain", 0, 1), true}, {pod("gpu", 1, 1), false}, {member, false}} {
		fragments, status := b.plugin.SignPod(ctx, test.pod)
		if status.IsSuccess() != test.signed || len(fragments) != 0 || (!test.signed && status.Code() != fwk.Unschedulable) {
			t.Errorf("%s: %v %v", test.pod.Name, fragments, status)
		}
	}
}

// One plugin that does not sign switches batching off for all pods of a profile. Upstream's default spreading leaves most
// pods unsigned, so it is taken out here.
func TestUpstreamsBatchingStaysOn(t *testing.T) {
	b := newBench(t)
	p := profile(t, "gpu", arguments(withLibrary), true)
	for _, entry := range p.PluginConfig {
		if args, ok := entry.Args.(*config.PodTopologySpreadArgs); ok {
			args.DefaultingType = config.ListDefaulting
		}
	}
	f := b.build(&Host{}, p)
	if f.SignPod(ctx, pod("plain", 0, 1)) == nil {
		t.Error("a pod without GPUs must stay signed")
	}
	if f.SignPod(ctx, pod("gpu", 1, 1)) != nil {
		t.Error("a pod with GPUs must not be signed")
	}
}

func TestHints(t *testing.T) {
	b := newBench(t)
	one, changed := pod("one", 1, 1), pod("one", 1, 1)
	changed.Status.Phase = v1.PodPending
	if hint, _ := b.plugin.podChanged(loggerFor(ctx), one, one, changed); hint != fwk.QueueSkip {
		t.Error("status is no news")
	}
	changed.Annotations["topology.scheduler/gpu-count"] = "1"
	if hint, _ := b.plugin.podChanged(loggerFor(ctx), one, one, changed); hint != fwk.Queue {
		t.Error("annotations are")
	}
	if hint, _ := b.plugin.podLeft(loggerFor(ctx), one, pod("cpu", 0, 1), nil); hint != fwk.QueueSkip {
		t.Error("a pod without GPUs frees none")
	}
}
