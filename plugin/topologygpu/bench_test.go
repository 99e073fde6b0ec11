// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/frond-scheduler/frond/plugin/gangs"
	"github.com/frond-scheduler/frond/plugin/workload"
)

const realLibrary = "../../bin/libfrond.so"

// queue stands in for the scheduling queue: it remembers nominations and who was activated.
type queue struct {
	mu        sync.Mutex
	nominated map[types.UID]fwk.PodInfo
	node      map[types.UID]string
	activated map[string]bool
}

func (q *queue) AddNominatedPod(_ klog.Logger, pod fwk.PodInfo, info *fwk.NominatingInfo) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.nominated[pod.GetPod().UID], q.node[pod.GetPod().UID] = pod, info.NominatedNodeName
}

func (q *queue) DeleteNominatedPodIfExists(pod *v1.Pod) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.nominated, pod.UID)
}

func (q *queue) UpdateNominatedPod(klog.Logger, *v1.Pod, fwk.PodInfo) {}

func (q *queue) NominatedPodsForNode(node string) (pods []fwk.PodInfo) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for uid, pod := range q.nominated {
		if q.node[uid] == node {
			pods = append(pods, pod)
		}
	}
	return pods
}

func (q *queue) Activate(_ klog.Logger, pods map[string]*v1.Pod) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for name := range pods {
		q.activated[name] = true
	}
}

// bench is upstream's framework with its own plugins and ours, on the real engine and a snapshot of a small cluster: two
// leaves under one spine, two nodes each, eight GPUs and 64 cores a node.
type bench struct {
	t         *testing.T
	plugin    *Plugin
	framework framework.Framework
	queue     *queue
	client    *fake.Clientset
	nodes     []*v1.Node
	pods      []*v1.Pod
	snapshot  *cache.Snapshot
	recorder  *events.FakeRecorder
	recording string // of the engine's calls
}

// lister is a snapshot that the test may exchange; what our tests do not need stays with the first one.
type lister struct {
	fwk.SharedLister
	bench *bench
}

func (l lister) NodeInfos() fwk.NodeInfoLister       { return l.bench.snapshot.NodeInfos() }
func (l lister) StorageInfos() fwk.StorageInfoLister { return l.bench.snapshot.StorageInfos() }

func needLibrary(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(realLibrary); err != nil {
		t.Fatalf("%s is not built (make engine)", realLibrary)
	}
}

func arguments(json string) *runtime.Unknown { return &runtime.Unknown{Raw: []byte(json)} }

func profile(t *testing.T, name string, args runtime.Object, first bool) *config.KubeSchedulerProfile {
	t.Helper()
	defaults, err := latest.Default()
	if err != nil {
		t.Fatal(err)
	}
	p := &defaults.Profiles[0]
	p.SchedulerName = name
	// Claims need a manager of their own, which only a whole scheduler has.
	p.Plugins.MultiPoint.Enabled = slices.DeleteFunc(p.Plugins.MultiPoint.Enabled, func(plugin config.Plugin) bool { return plugin.Name == names.DynamicResources })
	p.Plugins.MultiPoint.Enabled = append(p.Plugins.MultiPoint.Enabled, config.Plugin{Name: Name, Weight: 100})
	if first {
		p.Plugins.Bind.Enabled = append(p.Plugins.Bind.Enabled, config.Plugin{Name: Name})
		p.Plugins.PostFilter.Enabled = append(p.Plugins.PostFilter.Enabled, config.Plugin{Name: Name})
	}
	p.PluginConfig = append(p.PluginConfig, config.PluginConfig{Name: Name, Args: args})
	return p
}

const withLibrary = `{"corePath": "` + realLibrary + `", "topology": {"preset": "topograph"}, "deviceLocks": {"enabled": false}}`

func newBench(t *testing.T) *bench {
	t.Helper()
	needLibrary(t)
	metrics.Register()
	b := &bench{t: t, client: fake.NewClientset(), recorder: events.NewFakeRecorder(100),
		queue: &queue{nominated: map[types.UID]fwk.PodInfo{}, node: map[types.UID]string{}, activated: map[string]bool{}}}
	b.snapshot = cache.NewEmptySnapshot()
	b.recording = filepath.Join(t.TempDir(), "recording")
	host := &Host{Record: b.recording}
	b.framework = b.build(host, profile(t, "gpu", arguments(withLibrary), true))
	for _, extension := range b.framework.EnqueueExtensions() {
		if extension.Name() == Name {
			b.plugin = extension.(*Plugin)
		}
	}
	b.plugin.synced = func() bool { return true }
	for i := range 4 {
		b.node(fmt.Sprintf("node-%d", i+1), fmt.Sprintf("leaf-%d", i/2+1))
	}
	b.look()
	return b
}

func (b *bench) build(host *Host, profile *config.KubeSchedulerProfile) framework.Framework {
	b.t.Helper()
	f, err := b.tryBuild(host, profile)
	if err != nil {
		b.t.Fatal(err)
	}
	return f
}

func (b *bench) tryBuild(host *Host, profile *config.KubeSchedulerProfile) (framework.Framework, error) {
	ctx, cancel := context.WithCancel(context.Background())
	b.t.Cleanup(cancel)
	registry := plugins.NewInTreeRegistry()
	if err := registry.Register(Name, host.Factory); err != nil {
		b.t.Fatal(err)
	}
	return frameworkruntime.NewFramework(ctx, registry, profile,
		frameworkruntime.WithClientSet(b.client), frameworkruntime.WithKubeConfig(&rest.Config{Host: "127.0.0.1:1"}),
		frameworkruntime.WithInformerFactory(informers.NewSharedInformerFactory(b.client, 0)),
		frameworkruntime.WithSnapshotSharedLister(lister{b.snapshot, b}), frameworkruntime.WithPodNominator(b.queue),
		frameworkruntime.WithPodActivator(b.queue), frameworkruntime.WithEventRecorder(b.recorder),
		frameworkruntime.WithWaitingPods(frameworkruntime.NewWaitingPodsMap()))
}

func (b *bench) node(name, leaf string) *v1.Node {
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			"kubernetes.io/hostname": name, "fabric.topograph.run/tier-0": leaf, "fabric.topograph.run/tier-1": "spine-1"}},
		Status: v1.NodeStatus{
			Allocatable: v1.ResourceList{"nvidia.com/gpu": resource.MustParse("8"), "cpu": resource.MustParse("64"), "memory": resource.MustParse("1Ti"), "pods": resource.MustParse("110")},
			Conditions:  []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}},
	}
	b.nodes = append(b.nodes, node)
	return node
}

// look takes a fresh snapshot and tells the mirror, as the informers would.
func (b *bench) look() {
	b.t.Helper()
	b.snapshot = cache.NewSnapshot(b.pods, b.nodes)
	for _, node := range b.nodes {
		if _, err := b.plugin.mirror.SetNode(node); err != nil {
			b.t.Fatal(err)
		}
	}
	store := b.framework.SharedInformerFactory().Core().V1().Pods().Informer().GetIndexer()
	for _, pod := range b.pods {
		if err := errors.Join(store.Add(pod), b.plugin.mirror.SetPod(pod)); err != nil {
			b.t.Fatal(err)
		}
	}
}

func pod(name string, gpus, cpu int64) *v1.Pod {
	list := v1.ResourceList{"cpu": *resource.NewQuantity(cpu, resource.DecimalSI)}
	if gpus > 0 {
		list["nvidia.com/gpu"] = *resource.NewQuantity(gpus, resource.DecimalSI)
	}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{}, Annotations: map[string]string{}, CreationTimestamp: metav1.Now()},
		Spec:       v1.PodSpec{SchedulerName: "gpu", Containers: []v1.Container{{Resources: v1.ResourceRequirements{Limits: list, Requests: list}}}},
	}
}

const group = "train"

var groupGang = workload.GangID{Kind: workload.KindPodGroup, Namespace: "ml", Name: group}

// gang enters pods of a PodGroup into the table.
func (b *bench) gang(minMember int, pods ...*v1.Pod) {
	b.t.Helper()
	b.plugin.table.Step(gangs.SpecSet{ID: groupGang, Spec: workload.Spec{MinMember: minMember}})
	for _, pod := range pods {
		pod.Labels[workload.PodGroupLabel] = group
		b.plugin.table.Step(gangs.PodSet{Pod: pod, Class: b.plugin.reader.Classify(pod)})
	}
	time.Sleep(250 * time.Millisecond) // PodGroups gather for a moment
}

// givenBack waits until the executor has had the engine give everything back.
func (b *bench) givenBack(why string) {
	b.t.Helper()
	for end := time.Now().Add(5 * time.Second); b.reserved() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("%s: %d GPUs are still reserved", why, b.reserved())
		}
	}
}

// preFilter runs the pod's PreFilter as upstream does, all plugins together.
func (b *bench) preFilter(pod *v1.Pod) (fwk.CycleState, *fwk.PreFilterResult, *fwk.Status) {
	state := framework.NewCycleState()
	result, status, _ := b.framework.RunPreFilterPlugins(context.Background(), state, pod)
	return state, result, status
}

// feasible are the nodes that pass all filters.
func (b *bench) feasible(state fwk.CycleState, pod *v1.Pod) (names []string) {
	infos, err := b.snapshot.NodeInfos().List()
	if err != nil {
		b.t.Fatal(err)
	}
	for _, info := range infos {
		if b.framework.RunFilterPluginsWithNominatedPods(context.Background(), state, pod, info).IsSuccess() {
			names = append(names, info.Node().Name)
		}
	}
	return names
}

func (b *bench) check() {
	b.t.Helper()
	if err := b.plugin.engine.Check(); err != nil {
		b.t.Fatal(err)
	}
}

// called says whether a call to the engine, or part of one, is in the recording.
func (b *bench) called(text string) bool {
	b.t.Helper()
	recording, err := os.ReadFile(b.recording)
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.Contains(string(recording), text)
}

func (b *bench) reserved() uint32 {
	b.t.Helper()
	stats, err := b.plugin.engine.Stats()
	if err != nil {
		b.t.Fatal(err)
	}
	return stats.GPUsReserved
}
