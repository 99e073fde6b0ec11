// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/frond-scheduler/frond/plugin/gangs"
	"github.com/frond-scheduler/frond/plugin/workload"
)

// refusal starts a profile and returns the error that stops it.
func refusal(t *testing.T, host *Host, name, args string) string {
	t.Helper()
	metrics.Register()
	b := &bench{t: t, client: fake.NewClientset(), queue: &queue{}, snapshot: cache.NewEmptySnapshot(), recorder: events.NewFakeRecorder(1)}
	_, err := b.tryBuild(host, profile(t, name, arguments(args), true))
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestWhatStopsTheStart(t *testing.T) {
	needLibrary(t)
	bad := filepath.Join(t.TempDir(), "fabric.yaml")
	if err := os.WriteFile(bad, []byte("spines: 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	core := `"corePath": "` + realLibrary + `"`
	for _, test := range []struct{ name, args, want string }{
		{"missing library", `{"corePath": "/nowhere/libfrond.so"}`, "engine library /nowhere/libfrond.so: the file is missing"},
		{"unknown field", `{` + core + `, "foo": 1}`, "args.foo"},
		{"wrong type", `{` + core + `, "permitWaitingTimeSeconds": "x"}`, "args.permitWaitingTimeSeconds"},
		{"negative weight", `{` + core + `, "scoringWeights": {"topologyAlignment": -3}}`, "args.scoringWeights.topologyAlignment: must be between 0 and 1, got -3"},
		{"unreadable fabric", `{` + core + `, "topology": {"fabricFile": "/nowhere/fabric.yaml"}}`, "args.topology.fabricFile: cannot read /nowhere/fabric.yaml: no such file or directory"},
		{"bad fabric", `{` + core + `, "topology": {"fabricFile": "` + bad + `"}}`, "args.topology.fabricFile: " + bad + ": line 1: spines"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := refusal(t, &Host{}, "gpu", test.args); !strings.Contains(got, test.want) || strings.Contains(got, "\n") {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestProfilesShareOneEngine(t *testing.T) {
	needLibrary(t)
	host := &Host{}
	if got := refusal(t, host, "a", `{"corePath": "`+realLibrary+`", "permitWaitingTimeSeconds": 30}`); got != "" {
		t.Fatal(got)
	}
	if got := refusal(t, host, "b", `{"permitWaitingTimeSeconds":30,"corePath":"`+realLibrary+`"}`); got != "" {
		t.Errorf("the same args in another order: %s", got)
	}
	if got := refusal(t, host, "c", `{"corePath": "`+realLibrary+`"}`); !strings.Contains(got, `profile "c": the args of TopologyGPU differ`) {
		t.Errorf("other args: %s", got)
	}
	host.shared.engine.Close()
}

func TestAProfileInTheWrongOrderIsRefused(t *testing.T) {
	needLibrary(t)
	metrics.Register()
	b := &bench{t: t, client: fake.NewClientset(), queue: &queue{}, snapshot: cache.NewEmptySnapshot(), recorder: events.NewFakeRecorder(1)}
	// Enabled through multiPoint alone. Upstream asks for events once the profile is complete.
	f := b.build(&Host{}, profile(t, "gpu", arguments(withLibrary), false))
	for _, extension := range f.EnqueueExtensions() {
		if extension.Name() != Name {
			continue
		}
		if _, err := extension.EventsToRegister(ctx); err == nil || !strings.Contains(err.Error(), "is not first under bind, is not first under postFilter") {
			t.Errorf("got %v", err)
		}
		return
	}
	t.Error("the plugin is not there")
}

func TestNothingIsDecidedBeforeTheMirrorHasCaughtUp(t *testing.T) {
	b := newBench(t)
	b.plugin.synced = func() bool { return false }
	clock := time.Now()
	b.plugin.now = func() time.Time {
		clock = clock.Add(syncPatience)
		return clock
	}
	if _, _, status := b.preFilter(pod("one", 1, 1)); !status.IsError() || !strings.Contains(status.Message(), reasonNotSynced) {
		t.Errorf("got %v", status)
	}
	if _, _, status := b.preFilter(pod("plain", 0, 1)); !status.IsSuccess() {
		t.Errorf("pods without GPUs do not wait for us: %v", status)
	}
}

func TestObserverFollowsPodsOfItsProfiles(t *testing.T) {
	b := newBench(t)
	o := &observer{cluster: b.plugin.cluster, logger: loggerFor(ctx)}
	mine, other := pod("mine", 8, 1), pod("other", 8, 1)
	for _, p := range []*v1.Pod{mine, other} {
		p.Labels["scheduling.x-k8s.io/pod-group"] = group
	}
	other.Spec.SchedulerName = "default-scheduler"
	o.PodSeen(mine)
	o.PodSeen(other)
	if !b.plugin.table.Member(mine.UID) || b.plugin.table.Member(other.UID) {
		t.Error("only pods of profiles that use the plugin")
	}
	o.PodGone(mine)
	if b.plugin.table.Member(mine.UID) {
		t.Error("gone is gone")
	}
}

func TestRoomWakesWaitingGangs(t *testing.T) {
	b := newBench(t)
	pods := []*v1.Pod{pod("w-0", 8, 1), pod("w-1", 8, 1), pod("w-2", 8, 1), pod("w-3", 8, 1)}
	blocker := pod("blocker", 1, 1)
	blocker.Spec.NodeName = "node-1"
	b.pods = append(b.pods, blocker)
	b.look()
	b.gang(4, pods...)
	if _, _, status := b.preFilter(pods[0]); status.IsSuccess() {
		t.Fatal("placed")
	}
	b.queue.mu.Lock()
	clear(b.queue.activated)
	b.queue.mu.Unlock()
	observer := &observer{cluster: b.plugin.cluster, logger: loggerFor(ctx)}
	observer.Freed(true)
	time.Sleep(10 * gpuPause)
	b.queue.mu.Lock()
	if len(b.queue.activated) > 0 {
		t.Errorf("%v are woken, and the engine knows of no room for them", b.queue.activated)
	}
	b.queue.mu.Unlock()
	b.pods = nil
	b.look()
	b.plugin.mirror.DropPod(blocker.UID)
	observer.PodGone(blocker)
	observer.Freed(true)
	b.wantActivated("ml/w-0")
}

// What upstream's filters said of a node counts until the node has changed: then the gang's own attempt decides.
func TestAskingTrustsWhatTheLastAttemptFoundOfNodesThatHaveNotChanged(t *testing.T) {
	b := newBench(t)
	eater := pod("eater", 0, 60) // CPU of node-1 is gone; its GPUs are free
	eater.Spec.NodeName = "node-1"
	b.pods = append(b.pods, eater)
	b.look()
	pods := []*v1.Pod{pod("w-0", 8, 8), pod("w-1", 8, 8), pod("w-2", 8, 8), pod("w-3", 8, 8)}
	b.gang(4, pods...)
	if _, _, status := b.preFilter(pods[0]); status.IsSuccess() {
		t.Fatal("placed")
	}
	asks := func() bool {
		turn := gangs.Turn{Task: gangs.Lead, ID: groupGang, Spec: workload.Spec{MinMember: 4}, Least: 4, Since: time.Now()}
		for rank, member := range pods {
			turn.Members = append(turn.Members, gangs.Peer{Pod: member, GPUs: 8, Rank: uint32(rank)})
		}
		fits, _ := (&performer{cluster: b.plugin.cluster, logger: loggerFor(ctx)}).Ask(turn)
		return fits
	}
	if asks() {
		t.Error("four nodes have GPUs, and one of them no CPU")
	}
	(&observer{cluster: b.plugin.cluster, logger: loggerFor(ctx)}).PodGone(eater)
	if !asks() {
		t.Error("a pod has left the node: nobody knows what it takes now")
	}
	b.plugin.kept.forgetAll()
	if !asks() {
		t.Error("nothing is known")
	}
}

// At a start bound pods may be seen before the object that makes them a gang: the engine has them under it afterwards.
func TestBoundPodsFindTheirGangLater(t *testing.T) {
	b := newBench(t)
	o := &observer{cluster: b.plugin.cluster, logger: loggerFor(ctx)}
	pods := []*v1.Pod{ownedBy(pod("w-0", 8, 1), "kubeflow.org/v1", "PyTorchJob", "tj", "u"), ownedBy(pod("w-1", 8, 1), "kubeflow.org/v1", "PyTorchJob", "tj", "u")}
	for i, p := range pods {
		p.Spec.NodeName, p.Annotations[workload.Rank] = b.nodes[i].Name, fmt.Sprint(i)
		o.PodSeen(p)
		if err := b.plugin.mirror.SetPod(p); err != nil {
			t.Fatal(err)
		}
	}
	key := workload.GangKey(workload.GangID{Kind: "PyTorchJob", Namespace: "ml", Name: "tj", UID: "u"})
	if gang, err := b.plugin.engine.Gang(key); err == nil {
		t.Fatalf("known too early: %+v", gang)
	}
	kept, err := b.plugin.reader.Compact(object("kubeflow.org/v1", "PyTorchJob", "tj", "u", workers(2)))
	if err != nil {
		t.Fatal(err)
	}
	o.objectSet(kept)
	if gang, err := b.plugin.engine.Gang(key); err != nil || gang.Members != 2 {
		t.Errorf("%+v %v", gang, err)
	}
	o.objectGone(kept)
	if gang, err := b.plugin.engine.Gang(key); err != nil || gang.Members != 2 || !b.plugin.table.Member(pods[0].UID) {
		t.Errorf("bound pods stay what they were: %+v %v", gang, err)
	}
	b.check()
}

// What a pod says of itself and cannot be is an event of its cycle, and no change of a node helps.
func TestARefusedPodIsTold(t *testing.T) {
	b := newBench(t)
	p := pod("odd", 8, 1)
	p.Labels[workload.PodGroupLabel], p.Labels[workload.OldPodGroupLabel] = "mine", "theirs"
	if status := b.plugin.PreEnqueue(ctx, p); !status.IsSuccess() {
		t.Errorf("it has to get into its cycle: %v", status)
	}
	state, _, status := b.preFilter(p)
	if status.Code() != fwk.UnschedulableAndUnresolvable || !strings.Contains(status.Message(), `"mine"`) || !strings.Contains(status.Message(), `"theirs"`) {
		t.Errorf("got %v", status)
	}
	if _, status := b.plugin.PostFilter(ctx, state, p, nil); status.Code() != fwk.UnschedulableAndUnresolvable {
		t.Errorf("nobody is evicted for it: %v", status)
	}
	if hint, _ := b.plugin.mayHelp(loggerFor(ctx), p, nil, b.nodes[0]); hint != fwk.QueueSkip {
		t.Error("a node does not help")
	}
	fixed := p.DeepCopy()
	delete(fixed.Labels, workload.OldPodGroupLabel)
	if hint, _ := b.plugin.podChanged(loggerFor(ctx), p, p, fixed); hint != fwk.Queue {
		t.Error("its own change does")
	}
}

// Members whose claims differ cannot be one request.
func TestAGangWithDifferentClaimsIsTold(t *testing.T) {
	b := newBench(t)
	o := &observer{cluster: b.plugin.cluster, logger: loggerFor(ctx)}
	pods := []*v1.Pod{pod("w-0", 2, 1), pod("w-1", 2, 1)}
	for i, policy := range []string{"contiguous", "spread"} {
		kept, err := b.plugin.reader.Compact(object("gpu.scheduling/v1", "GpuClaim", policy, policy, map[string]any{"devices": map[string]any{"count": int64(2), "policy": policy}}))
		if err != nil {
			t.Fatal(err)
		}
		o.objectSet(kept)
		pods[i].Annotations[workload.ClaimAnnotation] = policy
		o.PodSeen(pods[i])
	}
	b.gang(2, pods...)
	if _, _, status := b.preFilter(pods[0]); !strings.Contains(status.Message(), "GpuClaims contiguous and spread ask for different") {
		t.Errorf("got %v", status)
	}
	pods[1] = pods[1].DeepCopy()
	pods[1].Annotations[workload.ClaimAnnotation] = "contiguous"
	o.PodSeen(pods[1])
	if got := b.plugin.reader.Classify(pods[1]); got.Kind != workload.Refused || !strings.Contains(got.Problem, "pod ml/w-0 uses it") {
		t.Errorf("got %+v", got)
	}
}

// Pods of one training job are made from several templates: each is filtered on its own.
func TestReplicaTypesAreDifferentTemplates(t *testing.T) {
	b := newBench(t)
	o := &observer{cluster: b.plugin.cluster, logger: loggerFor(ctx)}
	kept, err := b.plugin.reader.Compact(object("kubeflow.org/v1", "PyTorchJob", "tj", "u", map[string]any{"pytorchReplicaSpecs": map[string]any{
		"Master": map[string]any{"replicas": int64(1)}, "Worker": map[string]any{"replicas": int64(2)}}}))
	if err != nil {
		t.Fatal(err)
	}
	o.objectSet(kept)
	master, workers := pod("m-0", 0, 60), []*v1.Pod{pod("w-0", 8, 1), pod("w-1", 8, 1)}
	workers[1].Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": "node-3"}
	workers[0].Spec.NodeSelector = workers[1].Spec.NodeSelector
	for i, p := range append([]*v1.Pod{master}, workers...) {
		p.Labels["training.kubeflow.org/replica-type"], p.Labels["training.kubeflow.org/replica-index"] = "worker", strconv.Itoa(max(i-1, 0))
		if i == 0 {
			p.Labels["training.kubeflow.org/replica-type"] = "master"
		}
		o.PodSeen(ownedBy(p, "kubeflow.org/v1", "PyTorchJob", "tj", "u"))
	}
	// The master fits anywhere; both workers want the same whole node.
	if _, _, status := b.preFilter(master); status.IsSuccess() {
		t.Error("the workers were filtered as the master")
	}
}
