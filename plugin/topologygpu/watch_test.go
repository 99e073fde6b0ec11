// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/frond-scheduler/frond/plugin/demand"
	"github.com/frond-scheduler/frond/plugin/gangs"
	"github.com/frond-scheduler/frond/plugin/mirror"
	"github.com/frond-scheduler/frond/plugin/workload"
	"github.com/frond-scheduler/frond/shim"
)

// served is an API server that serves what the test says.
type served struct {
	discovery.ServerResourcesInterface
	mu    sync.Mutex
	lists map[string][]string // group/version → resources
	err   error
	asked int
}

func (s *served) ServerResourcesForGroupVersion(name string) (*metav1.APIResourceList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.err != nil {
		return nil, s.err
	}
	names, found := s.lists[name]
	if !found {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, name)
	}
	list := &metav1.APIResourceList{}
	for _, plural := range names {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: plural})
	}
	return list, nil
}

// nothing is an engine that takes all and holds nothing.
type nothing struct{}

func (nothing) NodePut(shim.Node, map[string]string) error { return nil }
func (nothing) NodeRemove(uint32) error                    { return nil }
func (nothing) TopologyPut(shim.Topology) (uint32, error)  { return 0, nil }
func (nothing) Swap(_ []shim.Key, in []shim.Pod) []error   { return make([]error, len(in)) }
func (nothing) Pod(shim.Key) (shim.Held, error)            { return shim.Held{}, nil }
func (nothing) Release(shim.Key) error                     { return nil }
func (nothing) ReleaseGang(shim.Key) (int, error)          { return 0, nil }
func (nothing) Problems() []string                         { return nil }
func (nothing) Limits() shim.Limits                        { return shim.Limits{Nodes: 8, Pods: 8} }

// watchBench is an observer with watches of its own, whose clock the test moves, on fake API servers.
type watchBench struct {
	t        *testing.T
	observer *observer
	watches  *watches
	served   *served
	client   *fake.Clientset
	dynamic  *dynamicfake.FakeDynamicClient
	events   *record.FakeRecorder

	mu    sync.Mutex
	clock time.Time
}

func newWatchBench(t *testing.T) *watchBench {
	b := &watchBench{t: t, served: &served{lists: map[string][]string{}}, client: fake.NewClientset(), events: record.NewFakeRecorder(20), clock: time.Unix(1_000_000, 0)}
	kinds := map[schema.GroupVersionResource]string{}
	for _, resource := range workload.Resources() {
		for _, version := range resource.Versions {
			kinds[schema.GroupVersionResource{Group: resource.Group, Version: version, Resource: resource.Plural}] = resource.Kind + "List"
		}
	}
	b.dynamic = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds)
	c := &cluster{sources: newSources(), kept: newKeptRooms(), demand: demand.New(), recorder: b.events, now: func() time.Time {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.clock
	}}
	c.profiles.Store("gpu", true)
	c.reader = workload.NewReader([]string{"nvidia.com/gpu"}, c.sources.owners, c.sources.claims)
	c.mirror = mirror.New(nothing{}, c.reader)
	c.table = gangs.New(time.Minute, c.now)
	c.report = newReporter(c, nil, nil)
	b.observer = &observer{cluster: c, logger: loggerFor(ctx)}
	typed := informers.NewSharedInformerFactoryWithOptions(b.client, 0, informers.WithTransform(c.reader.Compact))
	b.watches = makeWatches(b.observer, b.served, typed, b.dynamic)
	c.sources.watches = b.watches
	return b
}

func (b *watchBench) run() {
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() { b.watches.run(ctx) })
	b.t.Cleanup(func() { cancel(); group.Wait() })
}

// pass moves the clock and lets the watches look.
func (b *watchBench) pass(d time.Duration) {
	b.mu.Lock()
	b.clock = b.clock.Add(d)
	b.mu.Unlock()
	b.watches.poke()
}

func (b *watchBench) serve(version string, plurals ...string) {
	b.served.mu.Lock()
	defer b.served.mu.Unlock()
	if len(plurals) == 0 {
		delete(b.served.lists, version)
		return
	}
	b.served.lists[version] = plurals
}

func (b *watchBench) make(resource string, object *unstructured.Unstructured) {
	b.t.Helper()
	gv, err := schema.ParseGroupVersion(object.GetAPIVersion())
	if err == nil {
		_, err = b.dynamic.Resource(gv.WithResource(resource)).Namespace("ml").Create(ctx, object, metav1.CreateOptions{})
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *watchBench) eventually(what string, check func() bool) {
	b.t.Helper()
	for range 500 {
		if check() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.t.Fatalf("never: %s", what)
}

func ownedBy(p *v1.Pod, api, kind, name, uid string) *v1.Pod {
	yes := true
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: api, Kind: kind, Name: name, UID: types.UID(uid), Controller: &yes}}
	return p
}

func object(api, kind, name, uid string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": api, "kind": kind, "metadata": map[string]any{"namespace": "ml", "name": name, "uid": uid}, "spec": spec}}
}

func workers(count int64) map[string]any {
	return map[string]any{"pytorchReplicaSpecs": map[string]any{"Worker": map[string]any{"replicas": count}}}
}

func (b *watchBench) kind(p *v1.Pod) workload.Kind { return b.observer.reader.Classify(p).Kind }

// admitted says whether the table lets a pod pass.
func (b *watchBench) admitted(p *v1.Pod) bool {
	_, ok := b.observer.table.Admit(p.UID)
	return ok
}

// A CRD that is installed after the start is watched as soon as a pod refers to its kind.
func TestACRDThatIsInstalledLater(t *testing.T) {
	b := newWatchBench(t)
	b.run()
	pods := []*v1.Pod{ownedBy(pod("w-0", 8, 1), "kubeflow.org/v1", "PyTorchJob", "tj", "u"), ownedBy(pod("w-1", 8, 1), "kubeflow.org/v1", "PyTorchJob", "tj", "u")}
	b.eventually("the first look", func() bool { b.served.mu.Lock(); defer b.served.mu.Unlock(); return b.served.asked > 0 })
	b.serve("kubeflow.org/v1", "pytorchjobs")
	b.make("pytorchjobs", object("kubeflow.org/v1", "PyTorchJob", "tj", "u", workers(2)))
	b.pass(2 * wantedPause)
	for _, p := range pods {
		b.observer.PodSeen(p)
	}
	b.eventually("the gang is known", func() bool { return b.kind(pods[0]) == workload.Member && b.admitted(pods[0]) })
	if b.admitted(pods[1]) {
		t.Error("one leads")
	}
}

// An owner whose kind nobody serves holds its pods for a while, and then counts as saying nothing, with one event.
func TestAnOwnerThatCannotBeRead(t *testing.T) {
	b := newWatchBench(t)
	b.run()
	p, q := ownedBy(pod("a", 8, 1), "kubeflow.org/v1", "PyTorchJob", "tj", "u"), ownedBy(pod("b", 8, 1), "kubeflow.org/v1", "PyTorchJob", "tj", "u")
	b.observer.PodSeen(p)
	b.observer.PodSeen(q)
	b.pass(patience / 2)
	time.Sleep(100 * time.Millisecond)
	if b.kind(p) != workload.Unknown || b.admitted(q) {
		t.Error("held; the first of them takes the reason to its event")
	}
	b.pass(patience)
	b.eventually("it counts as saying nothing", func() bool { return b.kind(p) == workload.Single && b.admitted(p) && b.admitted(q) })
	event := <-b.events.Events
	if !strings.Contains(event, reasonUnreadable) || !strings.Contains(event, "PyTorchJob") || !strings.Contains(event, "does not serve pytorchjobs.kubeflow.org") {
		t.Errorf("got %s", event)
	}
	b.serve("kubeflow.org/v1", "pytorchjobs")
	b.make("pytorchjobs", object("kubeflow.org/v1", "PyTorchJob", "tj", "u", workers(2)))
	b.pass(discoveryPause)
	b.eventually("and is heard once it can be read", func() bool { return b.kind(p) == workload.Member && !b.admitted(q) })
	b.serve("kubeflow.org/v1")
	b.pass(discoveryPause)
	time.Sleep(50 * time.Millisecond)
	if b.kind(p) != workload.Member {
		t.Error("an API server that has just started does not know all its CRDs")
	}
	b.pass(discoveryPause)
	b.eventually("until the CRD is gone", func() bool { return b.kind(p) != workload.Member })
	if len(b.events.Events) != 0 {
		t.Errorf("one event: %s", <-b.events.Events)
	}
}

// A resource of the API server's own that the account may not read is one, too.
func TestAnOwnerThatMayNotBeRead(t *testing.T) {
	b := newWatchBench(t)
	b.client.PrependReactor("list", "statefulsets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "statefulsets"}, "", errors.New("no"))
	})
	b.run()
	p := ownedBy(pod("a", 8, 1), "apps/v1", "StatefulSet", "ss", "u")
	b.observer.PodSeen(p)
	b.eventually("the failure is noted", func() bool {
		b.watches.mu.Lock()
		defer b.watches.mu.Unlock()
		for resource, s := range b.watches.state {
			if resource.Kind == "StatefulSet" && strings.Contains(s.problem, "forbidden") {
				return true
			}
		}
		return false
	})
	if b.kind(p) != workload.Unknown {
		t.Error("held")
	}
	b.pass(patience)
	b.eventually("it counts as saying nothing", func() bool { return b.kind(p) == workload.Single && b.admitted(p) })
}

// Groups and claims are waited for without end: without them a pod would be placed wrongly.
func TestGroupsAndClaimsAreWaitedFor(t *testing.T) {
	b := newWatchBench(t)
	b.run()
	grouped, claiming := pod("a", 8, 1), pod("b", 8, 1)
	grouped.Labels[workload.PodGroupLabel] = "g"
	claiming.Annotations[workload.ClaimAnnotation] = "c"
	b.observer.PodSeen(grouped)
	b.observer.PodSeen(claiming)
	b.pass(10 * patience)
	time.Sleep(100 * time.Millisecond)
	if b.kind(claiming) != workload.Unknown || len(b.events.Events) != 0 {
		t.Error("still waiting, without an event")
	}
	b.serve("scheduling.x-k8s.io/v1alpha1", "podgroups")
	b.serve("gpu.scheduling/v1", "gpuclaims")
	b.make("podgroups", object("scheduling.x-k8s.io/v1alpha1", "PodGroup", "g", "g-1", map[string]any{"minMember": int64(1)}))
	b.make("gpuclaims", object("gpu.scheduling/v1", "GpuClaim", "c", "c-1", map[string]any{"devices": map[string]any{"count": int64(8)}}))
	b.pass(discoveryPause)
	b.eventually("the claim is there", func() bool { return b.kind(claiming) == workload.Single && b.admitted(claiming) })
	b.eventually("the group is there", func() bool { b.pass(time.Second); return b.admitted(grouped) })
	if err := b.dynamic.Resource(schema.GroupVersionResource{Group: "gpu.scheduling", Version: "v1", Resource: "gpuclaims"}).Namespace("ml").Delete(ctx, "c", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.eventually("the claim is gone", func() bool { return b.kind(claiming) == workload.Unknown && !b.admitted(claiming) })
}

// A claim is one pod's at a time; the next has it when that has gone.
func TestAClaimIsHandedOn(t *testing.T) {
	b := newWatchBench(t)
	kept, err := b.observer.reader.Compact(object("gpu.scheduling/v1", "GpuClaim", "c", "c-1", map[string]any{"devices": map[string]any{"count": int64(8)}}))
	if err != nil {
		t.Fatal(err)
	}
	b.observer.objectSet(kept)
	pods := []*v1.Pod{pod("a", 8, 1), pod("b", 8, 1)}
	for _, p := range pods {
		p.Annotations[workload.ClaimAnnotation] = "c"
		b.observer.PodSeen(p)
	}
	if b.kind(pods[0]) != workload.Single || b.kind(pods[1]) != workload.Refused {
		t.Error("the first has it")
	}
	b.observer.PodGone(pods[0])
	if b.kind(pods[1]) != workload.Single || !b.admitted(pods[1]) {
		t.Error("the second has it now")
	}
}

// A pod that comes before its owners is read anew with each of them.
func TestOwnersThatComeAfterTheirPods(t *testing.T) {
	b := newWatchBench(t)
	set := func(object runtime.Object) {
		kept, err := b.observer.reader.Compact(object)
		if err != nil {
			t.Fatal(err)
		}
		b.observer.objectSet(kept)
	}
	p := ownedBy(pod("a", 8, 1), "batch/v1", "Job", "js-w-0", "j")
	b.observer.PodSeen(p)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "js-w-0", UID: "j"}}
	job.OwnerReferences = ownedBy(pod("x", 0, 0), "jobset.x-k8s.io/v1alpha2", "JobSet", "js", "s").OwnerReferences
	set(job)
	if b.kind(p) != workload.Unknown || b.admitted(p) {
		t.Error("the JobSet is missing")
	}
	jobs := func(name string) map[string]any {
		return map[string]any{"replicatedJobs": []any{map[string]any{"name": name}}}
	}
	set(object("jobset.x-k8s.io/v1alpha2", "JobSet", "js", "s", jobs("w")))
	if b.kind(p) != workload.Member || !b.admitted(p) {
		t.Error("whole")
	}
	larger := object("jobset.x-k8s.io/v1alpha2", "JobSet", "js", "s", jobs("w"))
	larger.Object["spec"].(map[string]any)["replicatedJobs"].([]any)[0].(map[string]any)["replicas"] = int64(2)
	set(larger)
	if b.admitted(p) {
		t.Error("it has grown, and one pod is missing")
	}
	kept, _ := b.observer.reader.Compact(larger)
	b.watches.OnDelete(kept)
	if b.kind(p) != workload.Unknown {
		t.Error("gone")
	}
	anew := object("jobset.x-k8s.io/v1alpha2", "JobSet", "js", "s2", jobs("w"))
	old, _ := b.observer.reader.Compact(larger)
	now, _ := b.observer.reader.Compact(anew)
	b.watches.OnUpdate(old, now)
	if b.kind(p) != workload.Unknown {
		t.Error("another JobSet of that name is not its owner")
	}
}

// Pods are entered while their owners come and go: at the end each is what it is now.
func TestNoPodIsLeftAsItWas(t *testing.T) {
	b := newWatchBench(t)
	const count = 40
	var group sync.WaitGroup
	pods := make([]*v1.Pod, count)
	for i := range pods {
		pods[i] = ownedBy(pod(fmt.Sprint("p-", i), 8, 1), "batch/v1", "Job", fmt.Sprint("j-", i), fmt.Sprint("u-", i))
	}
	group.Go(func() {
		for _, p := range pods {
			b.observer.PodSeen(p)
		}
	})
	group.Go(func() {
		for i := range count {
			kept, _ := b.observer.reader.Compact(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: fmt.Sprint("j-", i), UID: types.UID(fmt.Sprint("u-", i))}})
			b.observer.objectSet(kept)
		}
	})
	group.Wait()
	for _, p := range pods {
		if b.observer.table.Member(p.UID) || !b.admitted(p) {
			t.Errorf("%s still waits for its Job", p.Name)
		}
	}
}

// An API server that does not answer tells nothing about what it serves.
func TestDiscoveryThatFailsEndsNothing(t *testing.T) {
	b := newWatchBench(t)
	b.serve("kubeflow.org/v1", "pytorchjobs")
	b.make("pytorchjobs", object("kubeflow.org/v1", "PyTorchJob", "tj", "u", workers(1)))
	b.run()
	p := ownedBy(pod("a", 8, 1), "kubeflow.org/v1", "PyTorchJob", "tj", "u")
	b.observer.PodSeen(p)
	b.eventually("known", func() bool { return b.kind(p) == workload.Member })
	b.served.mu.Lock()
	b.served.err = errors.New("connection refused")
	before := b.served.asked
	b.served.mu.Unlock()
	b.pass(discoveryPause)
	b.eventually("asked", func() bool { b.served.mu.Lock(); defer b.served.mu.Unlock(); return b.served.asked > before })
	time.Sleep(50 * time.Millisecond)
	if b.kind(p) != workload.Member {
		t.Error("still known")
	}
}
