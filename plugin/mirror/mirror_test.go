// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/frond-scheduler/frond/plugin/workload"
	"github.com/frond-scheduler/frond/shim"
)

// engine is an honest stand-in: it refuses what the real one refuses, and keeps the rest.
type engine struct {
	mu       sync.Mutex
	limits   shim.Limits
	nodes    map[uint32]shim.Node
	pods     map[shim.Key]shim.Pod
	puts     int
	problems []string
	refuse   string // a node that it has no room for
}

func newEngine(nodes, pods uint32) *engine {
	return &engine{limits: shim.Limits{Nodes: nodes, Pods: pods}, nodes: map[uint32]shim.Node{}, pods: map[shim.Key]shim.Pod{}}
}

func (e *engine) Limits() shim.Limits { return e.limits }

func (e *engine) NodePut(node shim.Node, _ map[string]string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if node.GPUs > shim.GPUsMax || node.Slot >= e.limits.Nodes || node.Name == e.refuse {
		return &shim.Error{Code: shim.CodeLimit, Text: "over a limit"}
	}
	e.nodes[node.Slot] = node
	e.puts++
	return nil
}

func (e *engine) NodeRemove(slot uint32) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, known := e.nodes[slot]; !known {
		return &shim.Error{Code: shim.CodeUnknown}
	}
	delete(e.nodes, slot)
	for key, pod := range e.pods {
		if pod.Slot == slot {
			delete(e.pods, key)
		}
	}
	return nil
}

func (e *engine) TopologyPut(shim.Topology) (uint32, error) { return 0, nil }

func (e *engine) Swap(out []shim.Key, in []shim.Pod) []error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, key := range out {
		delete(e.pods, key)
	}
	errs := make([]error, len(in))
	for i, pod := range in {
		errs[i] = e.podPut(pod)
	}
	return errs
}

func (e *engine) Pod(pod shim.Key) (shim.Held, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, there := e.pods[pod]; !there {
		return shim.Held{}, &shim.Error{Code: shim.CodeUnknown}
	}
	return shim.Held{Slot: e.pods[pod].Slot, GPUs: e.pods[pod].GPUs, GPUMask: e.pods[pod].GPUMask}, nil
}

func (e *engine) podPut(pod shim.Pod) error {
	if _, known := e.nodes[pod.Slot]; !known {
		return &shim.Error{Code: shim.CodeUnknown, Text: "the pod's node is not known"}
	}
	if _, there := e.pods[pod.Key]; !there && len(e.pods) >= int(e.limits.Pods) {
		return &shim.Error{Code: shim.CodeLimit, Text: "no room for further pods"}
	}
	e.pods[pod.Key] = pod
	e.puts++
	return nil
}

func (e *engine) Release(pod shim.Key) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, there := e.pods[pod]; !there {
		return &shim.Error{Code: shim.CodeUnknown}
	}
	delete(e.pods, pod)
	return nil
}

func (e *engine) Problems() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.problems)
}

func reader() *workload.Reader {
	return workload.NewReader([]string{"nvidia.com/gpu"}, workload.NewOwners(), workload.NewClaims())
}

func gpus(n int64) v1.ResourceList {
	return v1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(n, resource.DecimalSI)}
}

func nodeOf(name string, count int64) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"leaf": "leaf-1"}},
		Status: v1.NodeStatus{Allocatable: gpus(count), Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}}}
}

func podOf(name, node string, count int64) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID("uid-" + name), Annotations: map[string]string{}},
		Spec: v1.PodSpec{NodeName: node, Containers: []v1.Container{{Resources: v1.ResourceRequirements{Limits: gpus(count), Requests: gpus(count)}}}}}
}

func TestNodes(t *testing.T) {
	e := newEngine(4, 4)
	m := New(e, reader())
	set := func(node *v1.Node) bool {
		t.Helper()
		changed, err := m.SetNode(node)
		if err != nil {
			t.Fatal(err)
		}
		return changed
	}
	if !set(nodeOf("a", 8)) || set(nodeOf("a", 8)) {
		t.Error("only what is new is told")
	}
	heartbeat := nodeOf("a", 8)
	heartbeat.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
	if set(heartbeat) {
		t.Error("a heartbeat is no news")
	}
	cordoned := nodeOf("a", 8)
	cordoned.Spec.Unschedulable = true
	cordoned.Status.Conditions = nil
	if !set(cordoned) || e.nodes[0].Flags != shim.NodeCordoned|shim.NodeDown {
		t.Errorf("got %+v", e.nodes[0])
	}
	relabelled := nodeOf("a", 8)
	relabelled.Labels["leaf"] = "leaf-2"
	if !set(relabelled) {
		t.Error("labels are news")
	}
	set(nodeOf("b", 8))
	if slot, ok := m.Slot("b"); !ok || slot != 1 || m.Name(1) != "b" || m.Name(99) != "" {
		t.Errorf("got %d %v", slot, ok)
	}
	if got := m.Slots([]string{"b", "x", "a"}); !slices.Equal(got, []uint32{1, shim.None, 0}) {
		t.Errorf("got %v", got)
	}
}

func TestSlotsAreReusedLate(t *testing.T) {
	m := New(newEngine(3, 4), reader())
	for _, name := range []string{"a", "b"} {
		if _, err := m.SetNode(nodeOf(name, 8)); err != nil {
			t.Fatal(err)
		}
	}
	m.DropNode("a")
	m.DropNode("a")
	m.DropNode("nobody")
	for _, test := range []struct {
		name string
		slot uint32
	}{{"c", 2}, {"d", 0}} {
		if _, err := m.SetNode(nodeOf(test.name, 8)); err != nil {
			t.Fatal(err)
		}
		if slot, _ := m.Slot(test.name); slot != test.slot {
			t.Errorf("%s has %d, want %d", test.name, slot, test.slot)
		}
	}
	if _, err := m.SetNode(nodeOf("e", 8)); err == nil || !strings.Contains(err.Error(), "made for 3 nodes") {
		t.Errorf("over the limit: %v", err)
	}
}

func TestANodeThatTheEngineCannotHoldIsLeftOut(t *testing.T) {
	e := newEngine(4, 4)
	m := New(e, reader())
	e.refuse = "big"
	if _, err := m.SetNode(nodeOf("big", 12)); err == nil || len(e.nodes) != 0 {
		t.Errorf("got %v", err)
	}
	if _, ok := m.Slot("big"); ok {
		t.Error("it has no slot")
	}
	e.refuse = ""
	if _, err := m.SetNode(nodeOf("big", 8)); err != nil {
		t.Fatal(err)
	}
	if err := m.SetPod(podOf("p", "big", 8)); err != nil {
		t.Fatal(err)
	}
	e.refuse = "big"
	if _, err := m.SetNode(nodeOf("big", 12)); err == nil || len(e.nodes) != 0 {
		t.Errorf("what was known is not true any more: %v %v", err, e.nodes)
	}
	e.refuse = ""
	if _, err := m.SetNode(nodeOf("big", 16)); err != nil || len(e.pods) != 1 {
		t.Errorf("it comes back with its pods: %v %v", err, e.pods)
	}
}

func TestPods(t *testing.T) {
	e := newEngine(4, 2)
	m := New(e, reader())
	set := func(pod *v1.Pod) {
		t.Helper()
		if err := m.SetPod(pod); err != nil {
			t.Fatal(err)
		}
	}
	set(podOf("pending", "", 8))
	set(podOf("plain", "a", 0))
	early := podOf("early", "a", 2)
	early.Annotations[workload.Allocated], early.Annotations[workload.Rank] = "a-gpu-5,a-gpu-1", "7"
	set(early)
	if len(e.pods) != 0 {
		t.Error("nothing is entered before its node")
	}
	if _, err := m.SetNode(nodeOf("a", 8)); err != nil || len(e.pods) != 1 {
		t.Errorf("then it is: %v %v", err, e.pods)
	}
	if got := e.pods[shim.PodKey("uid-early")]; got.GPUs != 2 || got.GPUMask != 0x22 || got.Rank != 7 || got.Name != "ml/early" || got.Gang != (shim.Key{}) {
		t.Errorf("got %+v", got)
	}
	puts := e.puts
	set(early)
	if e.puts != puts {
		t.Error("the same again is no news")
	}
	grouped := with(podOf("member", "a", 1), workload.Rank, "0")
	grouped.Labels = map[string]string{workload.PodGroupLabel: "g"}
	set(grouped)
	if got := e.pods[shim.PodKey("uid-member")]; got.Name != "ml/g" || got.Gang != workload.GangKey(workload.GangID{Kind: workload.KindPodGroup, Namespace: "ml", Name: "g"}) {
		t.Errorf("got %+v", got)
	}
	if err := m.SetPod(podOf("third", "a", 1)); !shim.IsCode(err, shim.CodeLimit) {
		t.Errorf("over the limit: %v", err)
	}
	if !m.DropPod("uid-early") || m.DropPod("uid-early") || m.DropPod("uid-plain") {
		t.Error("freed once, and only what was held")
	}
	m.DropNode("a")
	if len(e.pods) != 0 {
		t.Error("pods go with their node")
	}
	if _, err := m.SetNode(nodeOf("a", 8)); err != nil || len(e.pods) != 2 {
		t.Errorf("and come back with it, those that had no room included: %v %v", err, e.pods)
	}
}

func TestCatchUp(t *testing.T) {
	e := newEngine(4, 4)
	m := New(e, reader())
	if _, err := m.SetNode(nodeOf("a", 8)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"stays", "gone"} {
		if err := m.SetPod(podOf(name, "a", 4)); err != nil {
			t.Fatal(err)
		}
	}
	gone := func(name types.NamespacedName, uid types.UID) bool {
		return name.String() == "ml/gone" && uid == "uid-gone"
	}
	if first, second := m.CatchUp(gone), m.CatchUp(gone); first != 1 || second != 0 || len(e.pods) != 1 {
		t.Errorf("%d, then %d; left %v", first, second, e.pods)
	}
	if m.DropPod("uid-gone") {
		t.Error("the handler comes too late, and frees nothing")
	}
}

func TestUnreserveLeavesBoundPodsAlone(t *testing.T) {
	e := newEngine(4, 4)
	m := New(e, reader())
	if _, err := m.SetNode(nodeOf("a", 8)); err != nil {
		t.Fatal(err)
	}
	e.pods[shim.PodKey("uid-reserved")] = shim.Pod{}
	m.Unreserve("uid-reserved")
	if err := m.SetPod(podOf("bound", "a", 8)); err != nil {
		t.Fatal(err)
	}
	m.Unreserve("uid-bound")
	if len(e.pods) != 1 {
		t.Errorf("got %v", e.pods)
	}
}

func TestFill(t *testing.T) {
	e := newEngine(4, 4)
	ended := podOf("ended", "node-2", 8)
	ended.Status.Phase = v1.PodSucceeded
	nodes := []*v1.Node{nodeOf("node-10", 8), nodeOf("node-2", 8)}
	err := Fill(e, shim.Args{Resources: []string{"nvidia.com/gpu"}}, nodes, []*v1.Pod{podOf("p", "node-10", 4), ended, podOf("q", "nowhere", 4)})
	if err != nil || e.nodes[0].Name != "node-2" || e.nodes[1].Name != "node-10" || len(e.pods) != 1 {
		t.Errorf("%v %v %v", err, e.nodes, e.pods)
	}
	if nodes[0].Name != "node-10" {
		t.Error("the caller's list was changed")
	}
}

// witness writes down what it hears.
type witness struct {
	mu    sync.Mutex
	heard []string
}

func (w *witness) say(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard = append(w.heard, text)
}

func (w *witness) PodSeen(pod *v1.Pod)       { w.say("seen " + pod.Name) }
func (w *witness) PodGone(pod *v1.Pod)       { w.say("gone " + pod.Name) }
func (w *witness) NodeChanged(string)        {}
func (w *witness) Freed(gpus bool)           { w.say(fmt.Sprint("freed ", gpus)) }
func (w *witness) ReportChanged(name string) { w.say("reported " + name) }
func (w *witness) Problem(object runtime.Object, reason, _ string) {
	w.say(reason + " " + object.(metav1.Object).GetName())
}

func (w *witness) wait(t *testing.T, want string) {
	t.Helper()
	for range 500 {
		w.mu.Lock()
		found := slices.Contains(w.heard, want)
		w.mu.Unlock()
		if found {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("never heard %q, only %q", want, w.heard)
}

func TestWatch(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client := fake.NewClientset(nodeOf("a", 8), podOf("p", "a", 8), podOf("cpu", "a", 0))
	factory := informers.NewSharedInformerFactory(client, 0)
	e, w := newEngine(4, 4), &witness{}
	m := New(e, reader())
	nodes := factory.Core().V1().Nodes().Informer()
	synced, err := m.Watch(klog.Background(), nodes, factory.Core().V1().Pods().Informer(), w)
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced) {
		t.Fatal("not synced")
	}
	go m.Run(ctx, klog.Background(), synced, nodes.GetStore(), w)
	w.wait(t, "seen p")
	w.wait(t, "freed true")

	ended := podOf("p", "a", 8)
	ended.Status.Phase = v1.PodFailed
	if _, err := client.CoreV1().Pods("ml").Update(ctx, ended, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.wait(t, "gone p")
	if err := client.CoreV1().Pods("ml").Delete(ctx, "cpu", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.wait(t, "freed false")

	e.mu.Lock()
	e.problems, e.refuse = []string{"leaf-1 has two parents: spine-1 and spine-2"}, "big"
	e.mu.Unlock()
	if _, err := client.CoreV1().Nodes().Update(ctx, nodeOf("a", 7), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.wait(t, "FabricProblem a")
	if _, err := client.CoreV1().Nodes().Create(ctx, nodeOf("big", 9), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.wait(t, "LeftOutOfFabric big")
	if err := client.CoreV1().Nodes().Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for range 200 {
		if _, known := m.Slot("a"); !known {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error(errors.New("the node was not forgotten"))
}
