// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/frond-scheduler/frond/plugin/workload"
)

const (
	// discoveryPause is how often the API server is asked what it serves: CRDs come and go.
	discoveryPause = 30 * time.Second
	// wantedPause is how soon it is asked again for a resource that a pod waits for; the longer the wait, the rarer.
	wantedPause = time.Second
	// patience is how long a pod waits for an owner of a kind that cannot be read.
	patience = 10 * time.Second
)

// reasonUnreadable is the event of a pod whose owner cannot be read.
const reasonUnreadable = "OwnerUnreadable"

// watches runs the informers of what pods refer to. They are ours: the scheduler waits for every informer of its own before
// it starts, and would wait for ever for a CRD that is not installed or an object that its account may not read. A resource
// of third parties is watched once the API server serves it, one of the API server's own once a pod refers to it.
type watches struct {
	observer  *observer
	logger    klog.Logger
	discovery discovery.ServerResourcesInterface
	typed     informers.SharedInformerFactory
	dynamic   dynamic.Interface
	now       func() time.Time
	wanted    chan struct{} // a pod refers to what is not watched yet

	mu    sync.Mutex
	state map[*workload.Resource]*watched
}

// watched is the state of one resource.
type watched struct {
	stop    context.CancelFunc // nil: not watched
	objects cache.Store
	version string
	synced  func() bool
	since   time.Time // a pod has been waiting for it; zero: none is
	asked   time.Time // when the API server was last asked for it
	lost    time.Time // since when it has not been served although it is watched; zero: it is
	problem string    // why it cannot be read, as far as is known
	silent  bool      // given up: its objects say nothing
	again   bool      // a pod has come since the API server was last asked
}

func (s *watched) ready() bool { return s.stop != nil && s.synced() }

// pause is how often it is looked at: soon after a pod began to wait for it, then ever more rarely, until another pod comes.
func (s *watched) pause(now time.Time) time.Duration {
	switch {
	case s.since.IsZero():
		return discoveryPause
	case s.again && s.stop == nil:
		return wantedPause
	}
	waited := now.Sub(s.since)
	pause := min(max(waited/4, wantedPause), discoveryPause)
	if waited < patience {
		pause = min(pause, patience-waited) // the end of the patience is not to be missed
	}
	return pause
}

func newWatches(observer *observer, handle fwk.Handle) (*watches, error) {
	client, err := dynamic.NewForConfig(handle.KubeConfig())
	if err != nil {
		return nil, fmt.Errorf("making a client for owners, groups and claims: %w", err)
	}
	return makeWatches(observer, handle.ClientSet().Discovery(), informers.NewSharedInformerFactoryWithOptions(handle.ClientSet(), 0,
		informers.WithTransform(observer.reader.Compact)), client), nil
}

func makeWatches(observer *observer, discovery discovery.ServerResourcesInterface, typed informers.SharedInformerFactory, client dynamic.Interface) *watches {
	w := &watches{
		observer: observer, logger: observer.logger, discovery: discovery, typed: typed, dynamic: client, now: observer.now,
		wanted: make(chan struct{}, 1), state: map[*workload.Resource]*watched{},
	}
	for _, resource := range workload.Resources() {
		w.state[resource] = &watched{}
	}
	return w
}

// need says that a pod refers to a resource. It is cheap, and never waits.
func (w *watches) need(resource *workload.Resource) {
	w.mu.Lock()
	s := w.state[resource]
	news := s != nil && !s.ready() && (s.since.IsZero() || !s.again)
	if news {
		s.again = true
		if s.since.IsZero() {
			s.since = w.now()
		}
	}
	w.mu.Unlock()
	if news {
		w.poke()
	}
}

func (w *watches) poke() {
	select {
	case w.wanted <- struct{}{}:
	default:
	}
}

// run watches until the context ends. It is the only goroutine that starts and stops informers.
func (w *watches) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wanted:
		case <-timer.C:
		}
		answers := map[string]answer{}
		for _, resource := range workload.Resources() {
			w.look(ctx, resource, answers)
		}
		w.judge()
		timer.Reset(w.pause())
	}
}

// pause: nothing is due before.
func (w *watches) pause() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	least := discoveryPause
	for _, s := range w.state {
		least = min(least, s.pause(w.now()))
	}
	return least
}

// look starts the informer of a resource that is wanted and served, and stops that of one that is served no more.
func (w *watches) look(ctx context.Context, resource *workload.Resource, answers map[string]answer) {
	w.mu.Lock()
	s := w.state[resource]
	running, version, wanted, due := s.stop != nil, s.version, !s.since.IsZero(), w.due(s)
	w.mu.Unlock()
	if resource.BuiltIn {
		if !running && (wanted || resource.Kind == workload.KindJob) {
			w.start(ctx, resource, resource.Versions[0])
		}
		return
	}
	if !due {
		return
	}
	served, err := w.served(resource, answers)
	w.mu.Lock()
	s.asked, s.again = w.now(), false
	if served != "" || err != nil {
		s.lost = time.Time{}
	} else if s.lost.IsZero() {
		s.lost = s.asked
	}
	lost := !s.lost.IsZero() && s.asked.Sub(s.lost) >= discoveryPause
	if err != nil {
		s.problem = err.Error()
	} else if served == "" {
		s.problem = fmt.Sprintf("the API server does not serve %s", resource)
	}
	w.mu.Unlock()
	switch {
	case err != nil: // the API server may be restarting; nothing is known of its resources
	case running && served != "" && served != version:
		w.end(resource)
		w.start(ctx, resource, served)
	case running && lost: // asked twice: an API server that has just started does not know all its CRDs
		w.end(resource)
	case !running && served != "":
		w.start(ctx, resource, served)
	}
}

// due: it is time to ask the API server for the resource.
func (w *watches) due(s *watched) bool {
	pause := discoveryPause
	if s.stop == nil {
		pause = s.pause(w.now())
	}
	return w.now().Sub(s.asked) >= pause
}

// answer of the API server about one version of a group, which several resources share.
type answer struct {
	list *metav1.APIResourceList
	err  error
}

// served is the first version of a resource that the API server serves and we can read, "" when there is none.
func (w *watches) served(resource *workload.Resource, answers map[string]answer) (string, error) {
	for _, version := range resource.Versions {
		name := schema.GroupVersion{Group: resource.Group, Version: version}.String()
		got, asked := answers[name]
		if !asked {
			got.list, got.err = w.discovery.ServerResourcesForGroupVersion(name)
			answers[name] = got
		}
		if apierrors.IsNotFound(got.err) {
			continue
		}
		if got.err != nil {
			return "", fmt.Errorf("asking the API server for %s: %w", resource, got.err)
		}
		if slices.ContainsFunc(got.list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource.Plural }) {
			return version, nil
		}
	}
	return "", nil
}

func (w *watches) start(parent context.Context, resource *workload.Resource, version string) {
	informer, err := w.informer(resource, version)
	var registration cache.ResourceEventHandlerRegistration
	if err == nil {
		registration, err = informer.AddEventHandler(w)
	}
	if err == nil {
		err = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { w.failed(resource, err) })
	}
	if err != nil {
		w.failed(resource, fmt.Errorf("watching %s: %w", resource, err))
		return
	}
	ctx, stop := context.WithCancel(parent)
	w.mu.Lock()
	s := w.state[resource]
	s.stop, s.objects, s.version, s.synced, s.problem = stop, informer.GetStore(), version, registration.HasSynced, ""
	w.mu.Unlock()
	go informer.RunWithContext(ctx)
	w.logger.V(2).Info("Watching", "resource", resource.String(), "version", version)
}

func (w *watches) informer(resource *workload.Resource, version string) (cache.SharedIndexInformer, error) {
	gvr := schema.GroupVersionResource{Group: resource.Group, Version: version, Resource: resource.Plural}
	if resource.BuiltIn {
		generic, err := w.typed.ForResource(gvr)
		if err != nil {
			return nil, err
		}
		return generic.Informer(), nil
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(w.dynamic, gvr, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	return informer, informer.SetTransform(w.observer.reader.Compact)
}

// end stops watching a resource that is served no more: with the CRD its objects are gone.
func (w *watches) end(resource *workload.Resource) {
	w.mu.Lock()
	s := w.state[resource]
	s.stop()
	objects := s.objects.List()
	s.stop, s.objects, s.version, s.synced = nil, nil, "", nil
	w.mu.Unlock()
	w.logger.Info("No longer served", "resource", resource.String())
	for _, object := range objects {
		w.observer.objectGone(object)
	}
}

// failed remembers why a resource cannot be read; the informer goes on trying with backoff.
func (w *watches) failed(resource *workload.Resource, err error) {
	w.mu.Lock()
	s := w.state[resource]
	news := s.problem == "" && !s.ready()
	s.problem = err.Error()
	w.mu.Unlock()
	if news {
		w.logger.Info("Cannot be read", "resource", resource.String(), "err", err)
	}
}

// judge ends the waiting: of pods whose resource can be read by now, and of those that have waited long enough for an owner
// of a kind that cannot. A group or a claim is waited for without end: a pod without it would be placed wrongly.
func (w *watches) judge() {
	for _, resource := range workload.Resources() {
		w.mu.Lock()
		s := w.state[resource]
		problem, before := s.problem, s.silent
		switch {
		case s.ready():
			s.since, s.silent = time.Time{}, false
		case resource.Owner && !s.since.IsZero() && problem != "" && w.now().Sub(s.since) >= patience:
			s.silent = true
		}
		silent := s.silent
		w.mu.Unlock()
		if silent != before {
			w.observer.silence(resource, silent, problem)
		}
	}
}

// silence: objects of the resource count as saying nothing, or again as what they say.
func (o *observer) silence(resource *workload.Resource, silent bool, problem string) {
	o.sources.mu.Lock()
	all := o.table.Pods()
	waiting := slices.DeleteFunc(slices.Clone(all), func(pod *v1.Pod) bool {
		class := o.reader.Classify(pod)
		return pod.Spec.NodeName != "" || class.Kind != workload.Unknown || class.Needs != resource
	})
	o.sources.owners.SetSilent(resource, silent)
	o.readPods(all)
	o.sources.mu.Unlock()
	o.logger.Info("Owners", "resource", resource.String(), "ignored", silent, "problem", problem)
	if silent && len(waiting) > 0 {
		pod := slices.MinFunc(waiting, func(a, b *v1.Pod) int { return workload.NaturalCompare(a.Name, b.Name) })
		o.recorder.Eventf(pod, v1.EventTypeWarning, reasonUnreadable, "the %s that owns this pod cannot be read and counts as saying nothing: %.300s", resource.Kind, problem)
	}
}

// ---- what informers say -----------------------------------------------------------------------------------------------

// OnAdd is called for an object that is there.
func (w *watches) OnAdd(object any, _ bool) { w.observer.objectSet(object) }

// OnUpdate is called for an object that has changed, or was deleted and made anew under the same name.
func (w *watches) OnUpdate(old, object any) {
	before, ok := old.(metav1.Object)
	now, also := object.(metav1.Object)
	if ok && also && before.GetUID() != now.GetUID() {
		w.observer.objectGone(old)
	}
	w.observer.objectSet(object)
}

// OnDelete is called for an object that is gone.
func (w *watches) OnDelete(object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	w.observer.objectGone(object)
}
